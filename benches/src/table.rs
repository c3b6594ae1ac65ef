//! Tables that are read on a terminal and pasted into a page: Markdown, with columns of even width.

use std::fmt;

/// A table of figures with a title.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table. The first column has names, the others have figures.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self { title: title.into(), columns: columns.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// Adds a row. Cells that it lacks are empty.
    ///
    /// # Panics
    /// If it has more cells than there are columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut cells: Vec<String> = cells.into_iter().collect();
        assert!(cells.len() <= self.columns.len(), "{} cells for {} columns", cells.len(), self.columns.len());
        cells.resize(self.columns.len(), String::new());
        self.rows.push(cells);
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| &row[column]).chain([&self.columns[column]]);
        // The rule below the heads takes three.
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "**{}**\n", self.title)?;
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        let line = |f: &mut fmt::Formatter<'_>, cells: &[String]| {
            for (column, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(f, "| {cell:<width$} |")?,
                    _ => write!(f, " {cell:>width$} |")?,
                }
            }
            writeln!(f)
        };
        line(f, &self.columns)?;
        let rules = widths.iter().enumerate();
        let rules = rules.map(|(column, width)| match column {
            0 => "-".repeat(*width),
            _ => format!("{}:", "-".repeat(width - 1)),
        });
        line(f, &rules.collect::<Vec<_>>())?;
        self.rows.iter().try_for_each(|row| line(f, row))
    }
}

/// A number with three digits that count.
#[must_use]
pub fn figure(number: f64) -> String {
    if !number.is_finite() {
        return "-".to_owned();
    }
    let before_the_point = number.abs().max(1e-9).log10().floor() as i32 + 1;
    format!("{number:.*}", (3 - before_the_point).clamp(0, 4) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new("Tasks", &["who", "ns a task", "r"]);
        table.row(["ours".to_owned(), "5".to_owned(), "1".to_owned()]);
        table.row(["somebody".to_owned(), "1234567890".to_owned()]);
        let expected = "**Tasks**\n\n\
                        | who      |  ns a task |   r |\n\
                        | -------- | ---------: | --: |\n\
                        | ours     |          5 |   1 |\n\
                        | somebody | 1234567890 |     |\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        let figures = [1234.5, 123.4, 12.34, 1.234, 0.1234, 0.01234, 0.0, f64::NAN].map(figure);
        assert_eq!(figures, ["1234", "123", "12.3", "1.23", "0.123", "0.0123", "0.0000", "-"]);
    }
}
