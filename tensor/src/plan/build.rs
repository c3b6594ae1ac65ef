//! Statements to plans.

use std::collections::BTreeMap;

use super::privilege;
use super::step::{Launch, Leaf, Plan, Privilege, Sequence, Step, Use};
use crate::concrete::{Loop, Statement, StatementNode};
use crate::element::ElementType;
use crate::format::{Format, Level};
use crate::lower::{self, Appending, Output, Slot, StoredKernel, adds_up, stored_leaf};
use crate::notation::{IndexVariable, TensorVariable};
use crate::substitute::{Nest, Substituted};

/// A statement can't run on several processors as it is scheduled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Points would write different elements of overlapping parts.
    #[error(
        "points of the launch over {variables} would write different elements, but overlapping parts, of {tensor}; \
         {advice}"
    )]
    Overlap {
        /// The launch's variables.
        variables: String,
        /// The result.
        tensor: String,
        /// Advice for the user.
        advice: &'static str,
    },
    /// A statement on tensors in levels reads the elements that its result had before.
    #[error("{tensor} is read and assigned; where loops over levels are distributed, give what is read another name")]
    ReadsResult {
        /// The result.
        tensor: String,
    },
    /// Positions that begin below those of other loops are dealt to points or steps.
    #[error(
        "{variable} goes through positions of {tensor} below those of other loops, and where these begin is not known where it is distributed or communicates; \
         distribute a loop around, or take the positions of all levels"
    )]
    Below {
        /// The loop.
        variable: String,
        /// The tensor.
        tensor: String,
    },
    /// The result has levels that points cannot assemble.
    #[error("{tensor} is stored as {format}, {reason}")]
    Stored {
        /// The result.
        tensor: String,
        /// Its format.
        format: Format,
        /// Why they cannot, and what to do.
        reason: &'static str,
    },
}

impl Plan {
    /// The plan of a scheduled statement.
    ///
    /// # Errors
    ///
    /// [`PlanError`].
    pub fn new(statement: &Statement) -> Result<Self, PlanError> {
        let result = statement.result();
        let Some(appending) = Appending::new(statement) else { return Self::of(statement, Output::Elements) };
        let refused = |reason| {
            Err(PlanError::Stored { tensor: result.name().to_owned(), format: result.format().clone(), reason })
        };
        let is_assembled = match unassembled(statement, &appending) {
            None => Ok(()),
            Some(reason) => refused(reason),
        };
        if appending.pattern.is_none() {
            is_assembled?;
            return Self::of(statement, Output::Entries);
        }
        match Self::of(statement, Output::Beside) {
            // Points may share positions of the operand, and have the result in parts all the same.
            Err(error @ PlanError::Overlap { .. }) if is_assembled.is_ok() => {
                Self::of(statement, Output::Entries).map_err(|_| error)
            }
            other => other,
        }
    }

    /// The plan, where this becomes of what the leaf computes.
    fn of(statement: &Statement, output: Output) -> Result<Self, PlanError> {
        let spine = statement.spine();
        let spine = &spine[..steps(&spine)];
        let result = statement.result();
        let fixed: Vec<IndexVariable> = spine.iter().map(|outer| outer.variable.clone()).collect();
        for positions in statement.positions().filter(|positions| positions.outermost > 0) {
            if let Some(inside) = fixed.iter().find(|variable| statement.descends(variable, &positions.position)) {
                let tensor = positions.access.tensor.name().to_owned();
                return Err(PlanError::Below { variable: inside.name().to_owned(), tensor });
            }
        }
        let is_stored = statement.tensors().iter().any(|tensor| !tensor.format().is_dense());
        if is_stored && statement.operands().contains(result) {
            return Err(PlanError::ReadsResult { tensor: result.name().to_owned() });
        }
        // Where each element is made by one leaf, it may give the element its first value. Where a loop has no
        // iterations no element is used, and no leaf runs.
        let may_overwrite = spine.iter().all(|outer| outer.level().is_some())
            && statement.extents.values().all(|extent| *extent > 0)
            && privilege::is_made_whole(statement, &fixed);
        let stored =
            is_stored.then(|| stored_leaf(statement, &fixed, &|_, _, _| ElementType::I32, output, may_overwrite));
        let initial = match &stored {
            Some(_) if output == Output::Entries => None,
            Some(stored) if stored.overwrites => None,
            // What no iteration visits has the fill value.
            Some(_) if !statement.accumulates() => statement.initial().or(Some(result.fill())),
            _ => statement.initial(),
        };
        let leading = result.format().levels().iter().take_while(|level| **level == Level::Dense).count();
        let is_in_rows = || Appending::new(statement).is_some_and(|appending| appending.is_in_rows());
        let leading = if output == Output::Entries { appended(statement, is_in_rows()) } else { leading };
        let parents = result.format().order().get(..leading).unwrap_or_default().to_vec();
        let builder = Builder { statement, spine, stored, made: (output, parents) };
        let root = builder.step(0, 0, false)?;
        Ok(Self { statement: statement.clone(), initial, root })
    }
}

/// How many of the outermost levels of a result tell the rows that are assembled: those that are dense; what is not in
/// rows is in blocks of the outermost level.
fn appended(statement: &Statement, is_in_rows: bool) -> usize {
    let levels = statement.result().format().levels().iter();
    if is_in_rows { levels.take_while(|level| **level == Level::Dense).count() } else { 1 }
}

/// Whether steps of loops that are not distributed, but move something, have rows of the result of their own.
fn steps_have_rows(statement: &Statement, spine: &[&Loop], is_in_rows: bool) -> bool {
    let variables = |outer: &&Loop| outer.variable.clone();
    let fixed: Vec<IndexVariable> = spine.iter().map(variables).collect();
    let sequences: Vec<IndexVariable> = spine.iter().filter(|outer| outer.level().is_none()).map(variables).collect();
    let rows = statement.result().format().order().get(..appended(statement, is_in_rows)).unwrap_or_default();
    privilege::of_rows(statement, rows, &sequences, &fixed).is_some()
}

/// How many of the loops of a spine are above the leaf: below the last one that moves something it is.
fn steps(spine: &[&Loop]) -> usize {
    spine.iter().rposition(|outer| moves(outer)).map_or(0, |last| last + 1)
}

/// Why points do not assemble a result, if it is not one that they do.
fn unassembled(statement: &Statement, appending: &Appending) -> Option<&'static str> {
    let (format, spine) = (statement.result().format(), statement.spine());
    let is_assembled = |(number, level): (usize, &Level)| match level {
        Level::Dense | Level::Compressed => true,
        Level::Singleton | Level::Hashed | Level::RunLength => number > 0,
        Level::Bitmap | Level::Range | Level::Counter => false,
    };
    if statement.accumulates() {
        Some(
            "and accumulated into: where loops are distributed, its old elements are an operand, as `Computation::with_old_elements` has it",
        )
    } else if format.is_plain() && !steps_have_rows(statement, &spine[..steps(&spine)], appending.is_in_rows()) {
        Some(
            "and assembled in steps that have rows of their own: communicate only at loops over blocks of its outermost dimension, or declare it dense",
        )
    } else if !appending.once && !adds_up(statement) {
        Some("and what is combined into an element is written in parts that are not sums: declare it dense")
    } else if !format.is_plain() {
        Some(match format.rank() {
            0 | 1 => {
                "whose levels are no dimensions, and points assemble blocks of the outermost one: declare it {C}, and have tasks convert it"
            }
            2 => {
                "whose levels are no dimensions, and points assemble blocks of the outermost one: declare it csr or dcsr, and have tasks convert it"
            }
            _ => {
                "whose levels are no dimensions, and points assemble blocks of the outermost one: declare it csf, and have tasks convert it"
            }
        })
    } else if !format.levels().iter().enumerate().all(is_assembled)
        || format.properties().iter().any(|level| level.ranges)
    {
        Some(match format.rank() {
            0 | 1 => "and points assemble dense and compressed levels: declare it {C}, and have tasks convert it",
            2 => {
                "and points assemble dense and compressed levels, and singleton, hashed and run-length ones below the outermost: declare it csr, dcsr or coo, and have tasks convert it"
            }
            _ => {
                "and points assemble dense and compressed levels, and singleton, hashed and run-length ones below the outermost: declare it csf or coo, and have tasks convert it"
            }
        })
    } else {
        None
    }
}

fn moves(outer: &Loop) -> bool {
    outer.level().is_some() || !outer.communicate.is_empty()
}

struct Builder<'a> {
    statement: &'a Statement,
    spine: &'a [&'a Loop],
    /// The leaf's kernel, if it is one for tensors in levels.
    stored: Option<StoredKernel>,
    /// The output of the kernel, and the modes of the result's rows, if the kernel appends to them.
    made: (Output, Vec<usize>),
}

impl Builder<'_> {
    /// The step that begins with loop number `position` of the spine, inside of `depth` launches; `reduced` if a launch
    /// around already reduces into the result.
    fn step(&self, position: usize, depth: usize, reduced: bool) -> Result<Step, PlanError> {
        let Some(first) = self.spine.get(position) else { return Ok(Step::Leaf(Box::new(self.leaf()))) };
        let end = match first.level() {
            None => position + 1,
            Some(level) => {
                let same = self.spine[position..].iter().take_while(|outer| outer.level() == Some(level));
                position + same.count()
            }
        };
        let fixed: Vec<IndexVariable> = self.spine[..end].iter().map(|outer| outer.variable.clone()).collect();
        let own = &self.spine[position..end];
        let extents: Vec<i64> = own.iter().map(|outer| self.statement.extents[&outer.variable]).collect();
        let variables: Vec<IndexVariable> = own.iter().map(|outer| outer.variable.clone()).collect();
        let launch = first.level().is_some();
        let result = self.statement.result();
        let of_launch = || match &self.made {
            (Output::Elements, _) => privilege::of_launch(self.statement, &variables, &fixed),
            (Output::Beside, rows) => privilege::of_elements(self.statement, rows, &variables, &fixed),
            (_, parents) => privilege::of_rows(self.statement, parents, &variables, &fixed),
        };
        let privilege = match (launch, reduced) {
            (true, false) => of_launch().ok_or_else(|| {
                let names: Vec<_> = variables.iter().map(IndexVariable::name).collect();
                let advice = match &self.made.0 {
                    Output::Elements => "distribute loops over blocks of its dimensions",
                    _ => "distribute one loop, over the dimension that it stores outermost, or declare it dense",
                };
                PlanError::Overlap { variables: names.join(", "), tensor: result.name().to_owned(), advice }
            })?,
            _ if self.made.0 == Output::Beside => Privilege::ReadWrite,
            _ => privilege::of_step(self.statement, &fixed, reduced),
        };
        let privilege = match (privilege, self.stored.as_ref().map(|stored| stored.overwrites)) {
            (Privilege::ReadWrite, Some(true)) => Privilege::Write,
            // Where nothing is stored, elements stay as they are.
            (Privilege::Write, Some(false)) => Privilege::ReadWrite,
            (other, _) => other,
        };
        let reduced = matches!(privilege, Privilege::Reduce(_));
        let uses = self.uses(position..end, launch, privilege);
        let body = Box::new(self.step(end, depth + usize::from(launch), reduced)?);
        Ok(if launch {
            Step::Launch(Launch { depth, variables, extents, fixed, uses, body })
        } else {
            Step::Sequence(Sequence { variable: variables[0].clone(), extent: extents[0], fixed, uses, body })
        })
    }

    fn uses(&self, own: std::ops::Range<usize>, launch: bool, of_result: Privilege) -> Vec<Use> {
        let innermost = launch && !self.spine[own.end..].iter().any(|outer| outer.level().is_some());
        let names = |outer: &&Loop, tensor: &TensorVariable| outer.communicate.iter().any(|name| name == tensor.name());
        let fetched = |tensor: &TensorVariable| {
            self.spine[own.clone()].iter().any(|outer| names(outer, tensor))
                || innermost && !self.spine[own.end..].iter().any(|outer| names(outer, tensor))
        };
        let result = self.statement.result();
        let privilege = |tensor: &TensorVariable| if tensor == result { of_result } else { Privilege::Read };
        self.statement
            .tensors()
            .into_iter()
            .map(|tensor| Use { tensor: tensor.clone(), privilege: privilege(tensor), fetched: fetched(tensor) })
            .collect()
    }

    fn leaf(&self) -> Leaf {
        let fixed: Vec<IndexVariable> = self.spine.iter().map(|outer| outer.variable.clone()).collect();
        let tensors: Vec<TensorVariable> = self.statement.tensors().into_iter().cloned().collect();
        if let Some(StoredKernel { kernel, slots, overwrites, .. }) = self.stored.clone() {
            let sizes = slots.iter().filter_map(|slot| match slot {
                Slot::Size(variable) => Some((variable.clone(), self.statement.extents[variable])),
                _ => None,
            });
            let sizes = sizes.collect();
            let gathered = lower::gathered(&kernel, &slots);
            return Leaf {
                kernel,
                slots,
                output: self.made.0,
                overwrites,
                gathered,
                sizes,
                tensors,
                fixed,
                substituted: None,
            };
        }
        let node = self.statement.inside(&fixed);
        let substituted = match node {
            StatementNode::Forall(outer, _) => outer.substitution.as_ref().and_then(|library| {
                Substituted::find(library, &Nest { statement: self.statement, node, fixed: &fixed })
            }),
            _ => None,
        };
        let statement = self.statement;
        let (kernel, sizes) = if statement.extents.values().all(|extent| *extent > 0) {
            lower::leaf_of_any_size(statement, &fixed)
        } else {
            (lower::leaf(statement, &fixed), Vec::new())
        };
        let elements = tensors.iter().map(|tensor| Slot::Elements(tensor.name().to_owned()));
        let scalars = fixed.iter().cloned().map(Slot::Fixed).chain(sizes.iter().cloned().map(Slot::Size));
        let slots = elements.chain(scalars).collect();
        let sizes = sizes.into_iter().map(|variable| (variable.clone(), statement.extents[&variable])).collect();
        let output = Output::Elements;
        Leaf { kernel, slots, output, overwrites: false, gathered: BTreeMap::new(), sizes, tensors, fixed, substituted }
    }
}
