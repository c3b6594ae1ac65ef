//! The report of a computation, as it is printed.

use std::fmt;
use std::time::Duration;

use super::choose::{Choices, grid_text};
use super::problem::Problem;
use crate::report::{Table, bytes, counted, scientific, seconds};

/// The statement that was computed, and how fast.
#[derive(Clone, Debug)]
pub struct Report {
    /// The statement, with its sums.
    pub statement: String,
    /// The extents of index variables.
    pub sizes: String,
    /// The type of the elements.
    pub elements: String,
    /// The algorithm.
    pub algorithm: String,
    /// The grid of processors.
    pub grid: Vec<i64>,
    /// How long the first time took, with making kernels and room.
    pub first: Duration,
    /// The median of the other times, and how many these were.
    pub time: (Duration, usize),
    /// The library that multiplied matrices, if the leaves are products of floats or complex numbers.
    pub library: Option<&'static str>,
    /// Operations on numbers.
    pub operations: f64,
    /// Bytes of all tensors.
    pub bytes: f64,
    /// Whether the elements are integers.
    pub is_exact: bool,
    /// Bytes that moved between nodes the last time, if there are several.
    pub moved: Option<u64>,
    /// How the result compares with the definition.
    pub checked: Option<Checked>,
}

/// How the result compares with the definition.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The elements that were compared.
    pub count: usize,
    /// The largest deviation: at most 1 is right.
    pub deviation: f64,
    /// How long it took.
    pub time: Duration,
    /// Whether elements must be equal.
    pub is_exact: bool,
}

impl Checked {
    /// A description of a result that is wrong.
    #[must_use]
    pub fn wrong(&self) -> String {
        let compared = counted(self.count, "element", "elements");
        match self.is_exact {
            true => format!("of {compared} that were compared with the definition, some differ"),
            false => format!(
                "of {compared} that were compared with the definition, some differ by {} times as much as rounding can explain",
                scientific(self.deviation)
            ),
        }
    }
}

/// The number of operations for each byte above which arithmetic is the limit, and not memory.
const INTENSE: f64 = 2.0;

impl Report {
    pub(super) fn new(
        problem: &Problem,
        choices: &Choices,
        times: &[Duration],
        moved: Option<u64>,
        checked: Option<Checked>,
    ) -> Self {
        let extents = problem.extents();
        let sizes: Vec<String> = extents.iter().map(|(variable, extent)| format!("{variable}={extent}")).collect();
        let (first, rest) = times.split_first().map_or((Duration::ZERO, times), |(first, rest)| (*first, rest));
        let mut sorted = rest.to_vec();
        sorted.sort_unstable();
        let is_exact = problem.program.statements().iter().all(|statement| statement.element().is_integer());
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(first);
        Self {
            statement: problem.text(),
            sizes: if sizes.is_empty() { "none".to_owned() } else { sizes.join(", ") },
            elements: problem.elements(),
            algorithm: choices.name(),
            grid: choices.grid().to_vec(),
            first,
            time: (median, rest.len()),
            library: choices.library().map(|(library, _)| library),
            operations: problem.operations(),
            bytes: problem.bytes(),
            is_exact,
            moved,
            checked,
        }
    }

    /// The rate of the computation and its unit: of arithmetic, or of bytes if memory is the limit.
    #[must_use]
    pub fn rate(&self) -> (&'static str, f64) {
        let seconds = self.time.0.as_secs_f64().max(f64::MIN_POSITIVE);
        match self.operations > INTENSE * self.bytes {
            true if self.is_exact => ("GOP/s", self.operations / seconds / 1e9),
            true => ("GFLOP/s", self.operations / seconds / 1e9),
            false => ("GB/s", self.bytes / seconds / 1e9),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time, repeats) = self.time;
        let (unit, rate) = self.rate();
        let checked = self.checked.as_ref().map(|checked| {
            let compared = counted(checked.count, "element", "elements");
            let outcome = match checked.is_exact {
                true => "all equal".to_owned(),
                false => format!("largest error {} of what rounding can do", scientific(checked.deviation)),
            };
            format!("{compared} in {}: {outcome}", seconds(checked.time))
        });
        let table = Table::new()
            .line("statement", &self.statement)
            .line("sizes", &self.sizes)
            .line("elements", &self.elements)
            .line("algorithm", &self.algorithm)
            .line("grid", grid_text(&self.grid))
            .line("first time", seconds(self.first))
            .line("time", format_args!("{} (median of {repeats})", seconds(time)))
            .line(unit, format_args!("{rate:.2}"))
            .maybe("multiplied by", self.library)
            .maybe("moved between nodes", self.moved.map(bytes))
            .maybe("verified", checked);
        write!(f, "tensor\n{table}")
    }
}
