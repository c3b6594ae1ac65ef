//! How the loops of a statement on sparse tensors run, where the user says nothing: candidates are made, their costs
//! estimated, and the cheapest is taken.
//!
//! [`choose_sparse`] takes an assignment and what is known of its operands. Candidates are
//!
//! - the loops in each order, with conversions of those operands that store their dimensions in another one;
//! - of the most promising orders: other ways to merge what several operands store in common; other workspaces for rows
//!   that are gathered; and parts of equal numbers of an operand's elements, where rows have very different lengths.
//!
//! The cost of a candidate is a [`SparseEstimate`]. The loops that a computation has without a choice are taken unless
//! others are clearly cheaper. The same question has the same answer every time.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use maniple_tensor::choose::{Processors, choose_sparse};
//! use maniple_tensor::element::ElementType::F64;
//! use maniple_tensor::generate::Generator;
//! use maniple_tensor::notation::{TensorVariable, parse};
//! use maniple_tensor::storage::{Duplicates, pack};
//!
//! let csr = |name: &str| Ok::<_, Box<dyn std::error::Error>>(TensorVariable::new(name, F64, [900, 900]).stored("csr".parse()?));
//! let multiply = parse("Y(i,j) = A(i,k) * A(k,j)", &[csr("Y")?, csr("A")?])?;
//! let entries = "poisson:30".parse::<Generator>()?.rows(&[900, 900], 0..900, 1)?;
//! let a = pack::<f64>(&"csr".parse()?, &[900, 900], 0.0, entries, Duplicates::Sum)?.tensor;
//! let known = BTreeMap::from([("A".to_owned(), a.statistics().clone())]);
//! let choice = choose_sparse(&multiply, &known, &Processors::default())?;
//! assert_eq!(choice.best().name, "i, k, j");
//! println!("{}", choice.explain());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `operand`: what is known of an operand; `estimate`: what loops cost.

mod estimate;
mod operand;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

pub use estimate::SparseEstimate;

use self::estimate::{Walk, converting};
use self::operand::{Operand, visited};
use crate::concrete::{Execution, Merge, Unit};
use crate::cost;
use crate::lower::lattice_points;
use crate::notation::{Assignment, IndexVariable};
use crate::schedule::{Command, Races, Schedule};
use crate::sparse::{Computation, SparseError};
use crate::storage::Statistics;

/// Loops of at most so many variables are tried in all orders.
const ORDERED: usize = 5;

/// How many orders are tried with other merges and workspaces.
const CLOSELY: usize = 3;

/// The factor on the estimated time of the default loops in comparisons: other candidates have to take less than the
/// product.
const DEFAULT: f64 = 0.7;

/// Explanations list so many candidates.
const SHOWN: usize = 8;

/// Threads that take longer than this, relative to what they would take with equal work, may do better with parts of
/// rows.
const UNBALANCED: f64 = 1.05;

/// The processors that run loops, and their memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processors {
    /// How many threads there are.
    pub threads: usize,
    /// How many bytes a second they get from memory together.
    pub memory: f64,
    /// How many bytes of memory there are, if that matters.
    pub capacity: Option<u64>,
}

impl Default for Processors {
    /// Two threads that get 20e9 bytes a second, as those of a laptop do, and memory without end.
    fn default() -> Self {
        Self { threads: 2, memory: 20e9, capacity: None }
    }
}

/// One way to run the loops of an assignment.
#[derive(Debug)]
pub struct SparseCandidate<'a> {
    /// A description of the candidate, in a few words: the order of its loops, and the other choices.
    pub name: String,
    /// The loops.
    pub computation: Computation<'a>,
    /// The estimated cost of the loops.
    pub estimate: SparseEstimate,
}

/// All candidates, the best first. There is at least one.
#[derive(Debug)]
pub struct SparseChoice<'a> {
    candidates: Vec<SparseCandidate<'a>>,
    capacity: Option<u64>,
}

/// Chooses how the loops of `assignment` run, for operands of which this is known, by name; others count as dense. Of
/// those that fit into memory the one that takes least time is taken; if none does, the one that takes least memory.
///
/// # Errors
///
/// As of [`Computation::new`].
pub fn choose_sparse<'a>(
    assignment: &'a Assignment,
    known: &BTreeMap<String, Arc<Statistics>>,
    processors: &Processors,
) -> Result<SparseChoice<'a>, SparseError> {
    let default = Computation::new(assignment)?;
    let free = default.free_loops();
    let is_default = |computation: &Computation<'_>| computation.statement() == default.statement();
    let mut candidates: Vec<SparseCandidate<'a>> = Vec::new();
    let candidate = |name: String, computation: Computation<'a>| {
        let mut estimate = estimated(&computation, known, processors);
        if is_default(&computation) {
            estimate.seconds *= DEFAULT;
        }
        SparseCandidate { name, computation, estimate }
    };
    let orders = if free.len() <= ORDERED { permutations(&free) } else { Vec::new() };
    for order in orders {
        let Ok(computation) = default.in_order(&order) else { continue };
        if !candidates.iter().any(|other| other.computation.statement() == computation.statement()) {
            candidates.push(candidate(listed(&order), computation));
        }
    }
    if !candidates.iter().any(|other| is_default(&other.computation)) {
        candidates.insert(0, candidate("as the formats say".to_owned(), Computation::new(assignment)?));
    }
    // Those that need too much memory may need less with other workspaces.
    sort(&mut candidates, None);
    let closely = candidates.len().min(CLOSELY);
    for number in 0..closely {
        let name = candidates[number].name.clone();
        let made = variants(&candidates[number], processors.threads);
        let made = made.into_iter().map(|(what, made)| candidate(format!("{name}; {what}"), made));
        let made: Vec<SparseCandidate<'a>> = made.collect();
        candidates.extend(made);
    }
    sort(&mut candidates, processors.capacity);
    // What was taken off to favour the default is no part of what it costs.
    for candidate in candidates.iter_mut().filter(|candidate| is_default(&candidate.computation)) {
        candidate.estimate.seconds /= DEFAULT;
    }
    Ok(SparseChoice { candidates, capacity: processors.capacity })
}

fn sort(candidates: &mut [SparseCandidate<'_>], capacity: Option<u64>) {
    let fits = |candidate: &SparseCandidate<'_>| capacity.is_none_or(|most| candidate.estimate.memory <= most as f64);
    // Sorting is stable: of equal ones, the first is best.
    candidates.sort_by(|first, second| {
        let (one, two) = (&first.estimate, &second.estimate);
        let neither = !fits(first) && !fits(second);
        fits(second)
            .cmp(&fits(first))
            .then_with(|| if neither { one.memory.total_cmp(&two.memory) } else { one.seconds.total_cmp(&two.seconds) })
    });
}

/// All orders of some variables, the one that is given first.
fn permutations(variables: &[IndexVariable]) -> Vec<Vec<IndexVariable>> {
    let Some(_) = variables.first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for (number, first) in variables.iter().enumerate() {
        let others = [&variables[..number], &variables[number + 1..]].concat();
        all.extend(permutations(&others).into_iter().map(|rest| [std::slice::from_ref(first), &rest[..]].concat()));
    }
    all
}

fn listed(variables: &[IndexVariable]) -> String {
    let names: Vec<&str> = variables.iter().map(IndexVariable::name).collect();
    if names.is_empty() { "no loops".to_owned() } else { names.join(", ") }
}

/// The same loops with other merges, workspaces, or parts: the latter only where rows, which are dealt to threads by
/// how much is stored in them, are so long that threads wait for each other. In the middle of rows, sums can't be kept
/// in registers.
fn variants<'a>(candidate: &SparseCandidate<'a>, threads: usize) -> Vec<(String, Computation<'a>)> {
    let SparseCandidate { computation, estimate, .. } = candidate;
    let statement = computation.statement();
    let outermost = computation.run_loops().spine().first().map(|outer| outer.execution);
    let is_balanced = outermost == Some(Execution::Parallel(Unit::Threads)) && estimate.imbalance < UNBALANCED;
    let mut made = Vec::new();
    let mut add = |name: String, commands: Vec<Command>, is_parallel: bool| {
        let scheduled = computation.scheduled(&Schedule { commands });
        let scheduled = scheduled.and_then(|made| if is_parallel { Ok(made) } else { made.on_threads() });
        made.extend(scheduled.ok().map(|computation| (name, computation)));
    };
    for outer in statement.body().loops() {
        let variable = &outer.variable;
        let Some((_, body)) = statement.body().find(variable) else { continue };
        if matches!(&lattice_points(statement, variable, body)[..], [point] if point.len() > 1) {
            for merge in [Merge::Gallop, Merge::Locate, Merge::Bitmap, Merge::Hash] {
                let command = Command::MergeBy { variable: variable.clone(), merge };
                add(format!("{merge} over {variable}"), vec![command], false);
            }
        }
    }
    for workspace in statement.body().workspaces().into_iter().filter(|workspace| workspace.order() == 1) {
        for (format, what) in [("{B}", "a bitmap"), ("{H}", "a hash table"), ("{C~o}", "a list")] {
            let Ok(format) = format.parse() else { continue };
            if workspace.format() == &format || workspace.format().is_dense() {
                continue;
            }
            let command = Command::Store { workspace: workspace.name().to_owned(), format };
            add(format!("rows gathered in {what}"), vec![command], false);
        }
    }
    let spine: Vec<IndexVariable> = statement.spine().iter().map(|outer| outer.variable.clone()).collect();
    if let [outer, inner, ..] = &spine[..]
        && !is_balanced
    {
        let fresh = |wish: &str| {
            let names = (0..).map(|number| format!("{wish}{}", "_".repeat(number)));
            names.take(8).find(|name| !statement.is_taken(name)).map(|name| IndexVariable::new(&name))
        };
        for operand in statement.operands().iter().filter(|operand| !operand.format().is_dense()) {
            let names = (fresh("f"), fresh("p"), fresh("part"), fresh("in_part"));
            let (Some(fused), Some(position), Some(part), Some(inside)) = names else { continue };
            let (tensor, pieces) = (operand.name().to_owned(), threads as i64);
            let commands = vec![
                Command::Fuse { outer: outer.clone(), inner: inner.clone(), fused: fused.clone() },
                Command::Pos { variable: fused, position: position.clone(), tensor },
                Command::Divide { variable: position, outer: part.clone(), inner: inside, pieces },
                Command::Parallelize { variable: part, unit: Unit::Threads, races: Races::Reduced },
            ];
            let name = computation.operand_of(operand.name());
            add(format!("parts of as many elements of {name}"), commands, true);
        }
    }
    made
}

fn estimated(
    computation: &Computation<'_>,
    known: &BTreeMap<String, Arc<Statistics>>,
    processors: &Processors,
) -> SparseEstimate {
    let statement = computation.run_loops();
    let (mut operands, mut given) = (BTreeMap::new(), 0.0);
    let mut seconds = 0.0;
    let conversions = computation.conversions();
    for tensor in statement.operands() {
        let name = computation.operand_of(tensor.name());
        let known = known.get(name).map(|known| &**known);
        let is_converted = conversions.iter().any(|(of, format)| of == name && format == tensor.format());
        let format = &visited(tensor.format());
        let operand = Operand::new(name, format, tensor.dimensions(), tensor.element(), known, is_converted);
        if is_converted {
            // It is there as it is given, too.
            given += operand.bytes;
            seconds += converting(&operand, processors.threads);
        }
        operands.insert(tensor.name().to_owned(), operand);
    }
    let mut estimate = Walk::new(statement, operands).estimate(processors.threads, processors.memory);
    estimate.seconds += seconds;
    estimate.converting = seconds;
    estimate.memory += given;
    estimate
}

impl<'a> SparseChoice<'a> {
    /// The best candidate.
    pub fn best(&self) -> &SparseCandidate<'a> {
        &self.candidates[0]
    }

    /// The best candidate, alone.
    pub fn into_best(self) -> SparseCandidate<'a> {
        let mut candidates = self.candidates;
        candidates.swap_remove(0)
    }

    /// All candidates, the best first.
    pub fn candidates(&self) -> &[SparseCandidate<'a>] {
        &self.candidates
    }

    /// Explains the choice: the costs of candidates, the best first, as text.
    pub fn explain(&self) -> String {
        let mut text = "candidates, the best first\n".to_owned();
        let shown = || self.candidates.iter().take(SHOWN);
        let width = shown().map(|candidate| candidate.name.chars().count()).max().unwrap_or(0);
        for SparseCandidate { name, estimate, .. } in shown() {
            let fits = self.capacity.is_none_or(|capacity| estimate.memory <= capacity as f64);
            // Writing to a string succeeds.
            let _ = writeln!(
                text,
                "  {name:width$}  {:>10}  {:>9} steps  {:>12} of memory{}",
                cost::seconds(estimate.seconds),
                short(estimate.steps),
                cost::bytes(estimate.memory as u64),
                if fits { "" } else { ", too much" },
            );
        }
        if let Some(more) = self.candidates.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            let _ = writeln!(text, "  and {more} more");
        }
        text
    }
}

/// A large number, in three digits.
fn short(number: f64) -> String {
    match number {
        0.0..1e3 => format!("{number:.0}"),
        1e3..1e6 => format!("{:.3}e3", number / 1e3),
        1e6..1e9 => format!("{:.3}e6", number / 1e6),
        _ => format!("{number:.2e}"),
    }
}
