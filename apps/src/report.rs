//! What a simulation prints when it has ended.

use std::fmt;
use std::time::Duration;

/// Lines of a name and a value, aligned.
#[derive(Clone, Debug, Default)]
pub struct Table {
    lines: Vec<(&'static str, String)>,
}

impl Table {
    /// A table without lines.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a line.
    #[must_use]
    pub fn line(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.lines.push((name, value.to_string()));
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

impl fmt::Display for Table {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_below_each_other() {
        let table = Table::new().line("steps", 3).maybe("nothing", None::<u32>).line("largest error", "1e-9");
        assert_eq!(table.to_string(), "  steps          3\n  largest error  1e-9\n");
    }

    #[test]
    fn durations_are_in_seconds_or_milliseconds() {
        assert_eq!(seconds(Duration::from_millis(1500)), "1.500 s");
        assert_eq!(seconds(Duration::from_micros(1500)), "1.500 ms");
    }

    #[test]
    fn bytes_are_in_binary_units() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
