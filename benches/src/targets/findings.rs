//! Figures, and what is wanted of them.

use std::fmt;

use crate::table::{Table, figure};

/// Results of the measurements for a target.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Figures with what is wanted.
    pub rows: Vec<Row>,
    /// The tables that the figures were computed from, where they tell more.
    pub details: Vec<Table>,
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the figure.
    pub what: String,
    /// The median.
    pub figure: f64,
    /// Of what.
    pub unit: &'static str,
    /// The bound that the figure has to keep, if there is one.
    pub must: Option<Bound>,
    /// The bound that the figure should keep.
    pub aim: Option<Bound>,
}

/// A bound on a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// It is no larger.
    AtMost(f64),
    /// It is no smaller.
    AtLeast(f64),
}

impl Bound {
    /// Whether a figure is as it should be. One that is no number is not.
    #[must_use]
    pub fn holds(self, figure: f64) -> bool {
        match self {
            Self::AtMost(most) => figure <= most,
            Self::AtLeast(least) => figure >= least,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "at most {most}"),
            Self::AtLeast(least) => write!(f, "at least {least}"),
        }
    }
}

impl Row {
    /// A figure of which nothing is asked yet.
    pub fn new(what: impl Into<String>, figure: f64, unit: &'static str) -> Self {
        Self { what: what.into(), figure, unit, must: None, aim: None }
    }

    /// Sets the bound that the figure must keep.
    #[must_use]
    pub fn must(self, bound: Bound) -> Self {
        Self { must: Some(bound), ..self }
    }

    /// Sets the bound that the figure should keep.
    #[must_use]
    pub fn aim(self, bound: Bound) -> Self {
        Self { aim: Some(bound), ..self }
    }

    /// The verdict in a word: `aim` if the aim is reached, else `yes` or `no` for the bound that the figure must keep;
    /// empty if there is none.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        let holds = |bound: Option<Bound>| bound.map(|bound| bound.holds(self.figure));
        match (holds(self.must), holds(self.aim)) {
            (_, Some(true)) => "aim",
            (Some(true), _) => "yes",
            (Some(false), _) => "no",
            (None, _) => "",
        }
    }
}

/// Lays figures beside what is wanted.
pub fn table<'a>(title: &str, rows: impl IntoIterator<Item = &'a Row>) -> Table {
    let mut table = Table::new(title, &["", "median", "unit", "must be", "aim", "met"]);
    for row in rows {
        let bound = |bound: Option<Bound>| bound.map_or_else(String::new, |bound| bound.to_string());
        let (unit, verdict) = (row.unit.to_owned(), row.verdict().to_owned());
        table.row([row.what.clone(), figure(row.figure), unit, bound(row.must), bound(row.aim), verdict]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::Bound::{AtLeast, AtMost};
    use super::*;

    #[test]
    fn a_verdict_names_the_most_that_was_reached() {
        let row = |figure| Row::new("a task", figure, "us").must(AtMost(2.0)).aim(AtMost(0.5));
        assert_eq!(
            [0.4, 0.5, 1.0, 2.0, 2.1, f64::NAN].map(|figure| row(figure).verdict()),
            ["aim", "aim", "yes", "yes", "no", "no"]
        );
        assert_eq!(Row::new("a task", 1.0, "us").verdict(), "");
    }

    #[test]
    fn speeds_are_to_be_large() {
        let row = |figure| Row::new("tasks", figure, "M/s").must(AtLeast(6.0));
        assert_eq!([5.9, 6.0, 7.0].map(|figure| row(figure).verdict()), ["no", "yes", "yes"]);
    }
}
