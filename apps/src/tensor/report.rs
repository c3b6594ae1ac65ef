//! The report of a computation, as it is printed.

use std::fmt;
use std::time::Duration;

use maniple_tensor::program::Program;

use crate::report::{ReportTable, seconds};

/// The statements that were computed, how, and how fast.
#[derive(Clone, Debug)]
pub struct TensorReport {
    title: &'static str,
    table: ReportTable,
    /// The median of the times after the first, and how many these were.
    pub time: (Duration, usize),
}

impl TensorReport {
    /// A report of a program, with the extents of its index variables.
    pub(super) fn new(title: &'static str, program: &Program) -> Self {
        let extents = program.extents();
        let sizes: Vec<String> = extents.iter().map(|(variable, extent)| format!("{variable}={extent}")).collect();
        let sizes = if sizes.is_empty() { "none".to_owned() } else { sizes.join(", ") };
        let table = ReportTable::new().line("statement", text(program)).line("sizes", sizes);
        Self { title, table, time: (Duration::ZERO, 0) }
    }

    /// Adds a line.
    pub(super) fn line(self, name: &'static str, value: impl fmt::Display) -> Self {
        self.maybe(name, Some(value))
    }

    /// Adds a line if there is a value.
    pub(super) fn maybe(self, name: &'static str, value: Option<impl fmt::Display>) -> Self {
        Self { table: self.table.maybe(name, value), ..self }
    }

    /// Adds how long the first time took, with making kernels and room, and the others.
    pub(super) fn times(self, times: &[Duration]) -> Self {
        let (first, rest) = times.split_first().map_or((Duration::ZERO, times), |(first, rest)| (*first, rest));
        let mut sorted = rest.to_vec();
        sorted.sort_unstable();
        let (median, repeats) = (sorted.get(sorted.len() / 2).copied().unwrap_or(first), rest.len());
        let timed = self.line("first time", seconds(first));
        let timed = timed.line("time", format_args!("{} (median of {repeats})", seconds(median)));
        Self { time: (median, repeats), ..timed }
    }
}

impl fmt::Display for TensorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.title, self.table)
    }
}

/// The statements of a program in one line.
pub(super) fn text(program: &Program) -> String {
    program.statements().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
