//! The report that a simulation prints when it has ended.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Lines of a name and a value, aligned.
#[derive(Clone, Debug, Default)]
pub struct ReportTable {
    lines: Vec<(Cow<'static, str>, String)>,
}

impl ReportTable {
    /// A table without lines.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a line.
    #[must_use]
    pub fn line(mut self, name: impl Into<Cow<'static, str>>, value: impl fmt::Display) -> Self {
        self.lines.push((name.into(), value.to_string()));
        self
    }

    /// Adds a line if there is a value.
    #[must_use]
    pub fn maybe(self, name: &'static str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.line(name, value),
            None => self,
        }
    }
}

impl fmt::Display for ReportTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.lines {
            writeln!(f, "  {name:width$}  {value}")?;
        }
        Ok(())
    }
}

/// Lines of several values, aligned below their names.
#[derive(Clone, Debug)]
pub struct Columns<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Columns<N> {
    /// No lines below these names.
    #[must_use]
    pub fn new(names: [&str; N]) -> Self {
        Self { rows: vec![names.map(str::to_owned)] }
    }

    /// Adds a line.
    pub fn row(&mut self, values: [String; N]) {
        self.rows.push(values);
    }
}

impl<const N: usize> fmt::Display for Columns<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: [usize; N] =
            std::array::from_fn(|column| self.rows.iter().map(|row| row[column].len()).max().unwrap_or(0));
        for row in &self.rows {
            let padded: Vec<String> = row.iter().zip(widths).map(|(value, width)| format!("{value:width$}")).collect();
            writeln!(f, "{}", padded.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// A duration in seconds, with as many digits as are of use.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    match duration.as_secs_f64() {
        long if long >= 1.0 => format!("{long:.3} s"),
        short => format!("{:.3} ms", short * 1e3),
    }
}

/// So many a second.
#[must_use]
pub fn rate(count: u64, duration: Duration) -> f64 {
    count as f64 / duration.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// So many of something, in words: `1 row`, `2 rows`.
#[must_use]
pub fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

/// A large number with as many digits as are of use.
#[must_use]
pub fn amount(number: f64) -> String {
    match number {
        _ if number >= 1e9 => format!("{:.1} billion", number / 1e9),
        _ if number >= 1e6 => format!("{:.1} million", number / 1e6),
        _ if number >= 1e3 => format!("{:.1} thousand", number / 1e3),
        _ => format!("{number:.1}"),
    }
}

/// An error or a residual.
#[must_use]
pub fn scientific(number: f64) -> String {
    if number == 0.0 { "0".to_owned() } else { format!("{number:.2e}") }
}

/// Two different numbers of bytes, so that they look different.
#[must_use]
pub fn bytes_apart(a: u64, b: u64) -> (String, String) {
    match (bytes(a), bytes(b)) {
        same if same.0 == same.1 => (format!("{a} bytes"), format!("{b} bytes")),
        apart => apart,
    }
}

/// Bytes, in the largest binary unit of which there is at least one.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut unit = None;
    let mut amount = count as f64;
    for name in UNITS {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = Some(name);
    }
    unit.map_or_else(|| format!("{count} B"), |unit| format!("{amount:.1} {unit}"))
}

/// How many bytes each node has read, written or sent.
pub(crate) fn by_nodes(of_nodes: &[u64]) -> String {
    match of_nodes {
        [one] => bytes(*one),
        few if few.len() <= FEW_NODES => {
            let nodes = few.iter().enumerate().map(|(node, count)| format!("{} by node {node}", bytes(*count)));
            nodes.collect::<Vec<_>>().join(", ")
        }
        many => {
            let (least, most) = (many.iter().min().copied().unwrap_or(0), many.iter().max().copied().unwrap_or(0));
            format!("{} to {} by each of {} nodes", bytes(least), bytes(most), many.len())
        }
    }
}

/// So many nodes are told apart in a report.
const FEW_NODES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_below_each_other() {
        let table = ReportTable::new().line("steps", 3).maybe("nothing", None::<u32>).line("largest error", "1e-9");
        assert_eq!(table.to_string(), "  steps          3\n  largest error  1e-9\n");
    }

    #[test]
    fn durations_are_in_seconds_or_milliseconds() {
        assert_eq!(seconds(Duration::from_millis(1500)), "1.500 s");
        assert_eq!(seconds(Duration::from_micros(1500)), "1.500 ms");
    }

    #[test]
    fn different_numbers_of_bytes_look_different() {
        let text = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(bytes_apart(3 << 20, 1 << 20), text("3.0 MiB", "1.0 MiB"));
        assert_eq!(bytes_apart((1 << 20) + 1, 1 << 20), text("1048577 bytes", "1048576 bytes"));
    }

    #[test]
    fn counts_have_their_plural_and_large_ones_their_unit() {
        assert_eq!((counted(1, "row", "rows"), counted(0, "row", "rows")), ("1 row".into(), "0 rows".into()));
        let amounts = [12.0, 4_560.0, 999_000.0, 2.38e8, 7e12].map(amount);
        assert_eq!(amounts, ["12.0", "4.6 thousand", "999.0 thousand", "238.0 million", "7000.0 billion"]);
    }

    #[test]
    fn errors_have_one_style() {
        assert_eq!([0.0, 1.114e-16, 0.5, f64::NAN].map(scientific), ["0", "1.11e-16", "5.00e-1", "NaN"]);
    }

    #[test]
    fn bytes_are_in_binary_units() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
