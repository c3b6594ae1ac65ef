//! A schedule where the user gives none: candidates are made, their costs estimated, and the cheapest is taken.
//!
//! [`choose`] takes any assignment and a number of processors. Candidates are
//!
//! - no distribution at all, on one processor;
//! - up to three loops distributed over a grid, whatever they are for: over the result's dimensions operands come to
//!   results, and over reductions results are combined across processors. All processors are used, or some fewer where
//!   their number has no good factors;
//! - the same, with what is fetched divided into steps, which need less memory, and overlap with computing;
//! - the [published algorithms](crate::algorithms) that compute what is asked for.
//!
//! There are many grids, so of the distributed loops those are looked at closely that a simple formula likes best.
//! Tensors are placed where they are used: a dimension that is distributed is cut along it. Other dimensions of the
//! grid cut what is not cut yet, so that processors share what all of them need, or else keep it on a face. What the
//! candidates cost is an [`Estimate`]. The same question has the same answer every time.
//!
//! ```
//! use maniple_tensor::choose::choose;
//! use maniple_tensor::cost::Rates;
//! use maniple_tensor::element::ElementType;
//! use maniple_tensor::notation::{TensorVariable, parse};
//!
//! let tensors = ["A", "B", "C"].map(|name| TensorVariable::new(name, ElementType::F64, [2000, 2000]));
//! let product = parse("A(i,j) = B(i,k) * C(k,j)", &tensors)?;
//! let choice = choose(&product, 4, &Rates::default());
//! assert_eq!(choice.best().machine.to_string(), "2x2");
//! println!("{}", choice.explain());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | [`Choice`], [`Candidate`] | the answer |
//! | `grids` | which loops over which grids |
//! | `loops` | candidates that distribute loops |
//! | `known` | candidates that are published algorithms |
//! | `places` | placements |
//! | [`Wishes`], `named` | what the user may say: an algorithm by its name, a grid |
//! | [`Choices`] | how the statements of a program run |
//! | `sparse` | the loops of statements on sparse tensors |

mod choices;
mod grids;
mod known;
mod loops;
mod named;
mod places;
mod sparse;
mod wishes;

pub use self::choices::Choices;
pub use self::sparse::{Processors, SparseCandidate, SparseChoice, SparseEstimate, choose_sparse};
pub use self::wishes::{AlgorithmName, ChooseError, Wishes, grid_text};

use std::fmt::Write;

use crate::algorithms::Algorithm;
use crate::concrete::Statement;
use crate::cost::{self, Estimate, Rates};
use crate::machine::{Grid, Machine};
use crate::notation::{Assignment, IndexVariable, TensorVariable};
use crate::placement::{Along, Placement};
use crate::plan::Plan;
use crate::schedule::{Schedule, ScheduleError};
use crate::traffic::Traffic;

/// Explanations list so many candidates.
const SHOWN: usize = 10;

/// A schedule, with what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// A description of the schedule, in a few words.
    pub name: String,
    /// The scheduled statement, its grid, and where its tensors are.
    pub algorithm: Algorithm,
    /// The grid as a machine.
    pub machine: Machine,
    /// The plan.
    pub plan: Plan,
    /// The data that the plan moves.
    pub traffic: Traffic,
    /// The estimated cost of the plan.
    pub estimate: Estimate,
}

impl Candidate {
    fn new(name: String, algorithm: Algorithm, rates: &Rates) -> Result<Self, ChooseError> {
        let plan = Plan::new(&algorithm.statement)?;
        let extents: Vec<usize> = algorithm.grid.iter().map(|&extent| extent as usize).collect();
        let machine = Machine::from(Grid::new(extents)?);
        let traffic = Traffic::of(&plan, &machine, &algorithm.placements)?;
        let estimate = Estimate::new(&plan, &traffic, &algorithm.placements, rates);
        Ok(Self { name, algorithm, machine, plan, traffic, estimate })
    }

    fn fits(&self, rates: &Rates) -> bool {
        rates.capacity.is_none_or(|capacity| self.estimate.memory <= capacity)
    }

    /// How many tensors have pieces that are not one stretch of their memory, as a dimension is cut that is not the
    /// outermost there.
    fn scattered(&self) -> usize {
        let placements = self.algorithm.placements.iter();
        let is_scattered = |(tensor, placement): &&(TensorVariable, Placement)| {
            let mut cuts = placement.levels.iter().flat_map(|level| &level.grid);
            cuts.any(|along| matches!(along, Along::Partition(dimension, _) if tensor.format().level_of(*dimension) != Some(0)))
        };
        placements.filter(is_scattered).count()
    }

    /// The plan with its costs, as text.
    pub fn explain(&self) -> String {
        cost::explain(&self.plan, &self.algorithm.placements, &self.traffic, &self.estimate)
    }
}

/// All candidates. There is at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    assignment: Assignment,
    processors: usize,
    capacity: Option<u64>,
    candidates: Vec<Candidate>,
}

/// Chooses a schedule for `assignment` on at most so many processors: the one that takes least time of those that fit
/// into memory. If none does, the one that takes least memory. Of several that cost the same, one whose pieces are
/// single stretches of memory, which depends on the formats of tensors.
pub fn choose(assignment: &Assignment, processors: usize, rates: &Rates) -> Choice {
    let statement = Statement::new(assignment);
    let processors = processors.max(1);
    let mut candidates = vec![loops::on_one(&statement)];
    candidates.extend(known::all(&statement, processors));
    candidates.extend(loops::all(&statement, processors, rates));
    let candidates = sorted(candidates, rates);
    Choice { assignment: assignment.clone(), processors, capacity: rates.capacity, candidates }
}

/// The fastest way to distribute loops over exactly this grid; none if it has more dimensions than there are loops, or
/// if nothing can be distributed.
pub fn on_grid(assignment: &Assignment, grid: &[i64], rates: &Rates) -> Option<Candidate> {
    sorted(loops::on_grid(&Statement::new(assignment), grid), rates).into_iter().next()
}

/// The candidates that have plans, the best first.
fn sorted(candidates: Vec<(String, Algorithm)>, rates: &Rates) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> =
        candidates.into_iter().filter_map(|(name, algorithm)| Candidate::new(name, algorithm, rates).ok()).collect();
    // Sorting is stable: of equal ones, the first is best.
    candidates.sort_by(|first, second| {
        let (one, two) = (&first.estimate, &second.estimate);
        let fit = second.fits(rates).cmp(&first.fits(rates));
        let neither = !first.fits(rates) && !second.fits(rates);
        fit.then_with(|| if neither { one.memory.cmp(&two.memory) } else { one.seconds.total_cmp(&two.seconds) })
            .then_with(|| (one.moved + one.copied).cmp(&(two.moved + two.copied)))
            .then_with(|| one.memory.cmp(&two.memory))
            .then_with(|| first.scattered().cmp(&second.scattered()))
    });
    candidates
}

/// The algorithm that a schedule makes of an unscheduled statement: on a grid of as many processors as its launches
/// have points, with each tensor placed where its parts are used.
///
/// # Errors
///
/// If a command is illegal.
pub fn scheduled(statement: &Statement, schedule: &Schedule) -> Result<Algorithm, ScheduleError> {
    let scheduled = schedule.apply(statement)?;
    let launched = scheduled.spine().into_iter().filter(|outer| outer.level().is_some());
    let distributed: Vec<(IndexVariable, i64)> = launched
        .map(|outer| (scheduled.ancestors(&outer.variable)[0].clone(), scheduled.extents[&outer.variable]))
        .collect();
    let grid: Vec<i64> = distributed.iter().map(|(_, points)| *points).collect();
    let placements = places::placements(statement, &distributed);
    Ok(Algorithm { statement: scheduled, grid: if grid.is_empty() { vec![1] } else { grid }, placements })
}

impl Choice {
    /// The best candidate.
    pub fn best(&self) -> &Candidate {
        &self.candidates[0]
    }

    /// All candidates, the best first.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// How the assignment runs, and why so: the best candidate, and what others would cost.
    pub fn explain(&self) -> String {
        let mut text = format!("{}\n", self.assignment);
        let best = self.best();
        let among = match self.processors {
            1 => "1 processor".to_owned(),
            processors => format!("{processors} processors"),
        };
        // Writing to a string succeeds.
        let _ = writeln!(text, "{}, chosen for at most {among}", best.name);
        text.push_str(&best.explain());
        text.push_str("candidates, the best first\n");
        let width =
            self.candidates.iter().take(SHOWN).map(|candidate| candidate.name.chars().count()).max().unwrap_or(0);
        for candidate in self.candidates.iter().take(SHOWN) {
            let estimate = &candidate.estimate;
            let fits = self.capacity.is_none_or(|capacity| estimate.memory <= capacity);
            let _ = writeln!(
                text,
                "  {:width$}  {:>10}  {:>12} moved  {:>12} on a processor{}",
                candidate.name,
                cost::seconds(estimate.seconds),
                cost::bytes(estimate.moved + estimate.copied),
                cost::bytes(estimate.memory),
                if fits { "" } else { ", too much" },
            );
        }
        if let Some(more) = self.candidates.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            let _ = writeln!(text, "  and {more} more");
        }
        text
    }
}
