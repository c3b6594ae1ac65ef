//! Whether a record proves that the run was right: what Legion Spy does for Legion (Bauer, Slaughter et al., the tool
//! `legion_spy.py`, which checks logs of the runtime in the same two ways).
//!
//! In reading order:
//!
//! - `order`: an order in which the operations can have happened, and whether of two one was made to wait for the
//!   other;
//! - `atoms`: points that no operation tells apart, so that sets of points become short lists of numbers;
//! - `versions`, on `sets`: what a field holds at a point, told by the operations that made it: its last writer, and
//!   those that have contributed since;
//! - `program`: the operations one after another in program order, on one copy of the data: what every operation must
//!   see;
//! - `mapping`: whether operations that interfere were mapped in program order;
//! - `replay`: the operations in an order in which they can have happened, over the instances: what every operation did
//!   see, and which pairs must be ordered for that;
//! - `violation`: what can be wrong.
//!
//! Three things are taken on trust: that operations do what the record says, that the machine layer starts an operation
//! after those that it was given to wait for, and that memory which is freed and given to another instance is handed
//! over in order, which is the machine layer's own affair.

mod atoms;
mod mapping;
mod order;
mod program;
mod replay;
mod sets;
mod versions;
mod violation;

pub use violation::{Data, Violation};

use crate::record::Record;
use atoms::Atoms;
use order::OperationOrder;
use versions::Versions;

/// The result of a check that found all well: how much of the record there was to check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Proof {
    /// Operations in the record.
    pub operations: usize,
    /// The operations among them that were replayed.
    pub replayed: usize,
    /// Pairs of operations of which one was made to wait for the other.
    pub edges: usize,
    /// Pairs of operations that interfere and between which none interferes with both: they are ordered, and so are all
    /// others.
    pub pairs: usize,
    /// Fields read, counted once for each task or mapping that read them and each set of points that the record tells
    /// apart.
    pub reads: u64,
    /// Contributions to fields, counted likewise, once when a task makes them and once each time that they are applied.
    pub contributions: u64,
}

/// Checks a record that began and ended while nothing ran: that
///
/// 1. no operations wait for each other in a circle, and operations that interfere were mapped in program order;
/// 2. of any two operations that use a field of an instance at a common point, one of them to change it, one was made
///    to wait for the other, directly or by way of others. That goes for reductions too, which are not atomic;
/// 3. every task and mapping that reads a value finds the one that it would find if all had run one after another in
///    program order: that of the right writer, with the contributions of all reductions since then, each once, those of
///    different operators in program order.
///
/// It does so point by point, as far as the record tells points apart. Values that a task was not asked to keep
/// (`discards`) or that were [lost](crate::Kind::Lost) may be anything. Of a record that lacks part of what was done,
/// it says no more than that ([`Violation::Unfinished`]).
///
/// Takes time and memory proportional to what is used, counted by operation, field and set of points, plus the
/// size of the record for each 1024 pairs that are ordered only by way of others.
///
/// # Errors
/// The first thing that is wrong: what kind, which operations, which data, and what was expected.
pub fn check(record: &Record) -> Result<Proof, Violation> {
    // Nothing that it lacks may be taken for wrong.
    if let Some(&task) = record.unfinished.first() {
        return Err(Violation::Unfinished { task: record.name(task) });
    }
    let order = OperationOrder::of(record)?;
    let (atoms, mut versions) = (Atoms::of_record(record), Versions::of_record(record));
    let program = program::program_order(record);
    mapping::check_mapping_order(record, &program, &atoms)?;
    let expected = program::expected(record, &program, &atoms, &mut versions)?;
    let replayed = replay::replay(record, &order, &atoms, &mut versions, &expected);
    let questions: Vec<_> = replayed.questions.keys().copied().collect();
    if let Some(question) = order.first_unordered(&questions) {
        let name = |position: u32| record.name(record.number(position as usize));
        return Err(Violation::Unordered {
            first: name(question.first),
            second: name(question.second),
            data: replayed.questions[&question].data(record, &atoms),
        });
    }
    match replayed.violation {
        Some(violation) => Err(violation),
        None => Ok(Proof {
            operations: record.operations.len(),
            replayed: record.replayed.len(),
            edges: order.edges(),
            pairs: questions.len(),
            reads: replayed.reads,
            contributions: replayed.contributions,
        }),
    }
}
