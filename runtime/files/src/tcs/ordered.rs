//! Entries in the order of levels, each place once, or the line that breaks the rule.

use std::cmp::Ordering;

use super::entries::EntryStream;
use super::plan::{ConvertError, Duplicates, EntryProblem, Extent, StoragePlan};
use crate::error::{Problem, ReadError};

/// Sorted entries, each place once, with coordinates in the order of levels.
#[derive(Debug)]
pub(super) struct Ordered<'a, S, T> {
    stream: S,
    plan: &'a StoragePlan<T>,
    /// The entry that was taken last, which others may be added to.
    held: Option<T>,
    held_at: Vec<u64>,
    coordinates: Vec<u64>,
    next_at: Vec<u64>,
    /// How many entries were added to others.
    pub(super) added: u64,
}

impl<'a, T: Copy, S: EntryStream<T>> Ordered<'a, S, T> {
    pub(super) fn new(stream: S, plan: &'a StoragePlan<T>) -> Self {
        let [held_at, coordinates, next_at] = std::array::from_fn(|_| Vec::new());
        Self { stream, plan, held: None, held_at, coordinates, next_at, added: 0 }
    }

    fn wrong(&self, problem: EntryProblem) -> ConvertError {
        ConvertError::Entry { line: self.stream.line(), problem }
    }

    /// Takes the next entry from the stream: its coordinates in the order of levels are in `next_at` then.
    fn take(&mut self) -> Result<Option<T>, ConvertError> {
        let next = self.stream.next_entry(&mut self.coordinates)?;
        self.next_at.clear();
        if next.is_none() {
            return Ok(None);
        }
        let (found, rank) = (&self.coordinates, self.plan.order.len());
        if found.len() != rank {
            let reason = format!("the entry has {} coordinates, and is stored in {rank} levels", found.len());
            return Err(ReadError::Line { line: self.stream.line(), problem: Problem::Malformed(reason) }.into());
        }
        for (dimension, (at, extent)) in found.iter().zip(&self.plan.extents).enumerate() {
            if let Extent::Given(range) = extent
                && !range.contains(at)
            {
                return Err(self.wrong(EntryProblem::Outside {
                    found: found.clone(),
                    dimension,
                    range: range.clone(),
                }));
            }
        }
        self.next_at.extend(self.plan.order.iter().map(|mode| found[*mode]));
        Ok(next)
    }

    /// The next entry, with its coordinates in the order of levels; none after the last one.
    pub(super) fn next(&mut self, at: &mut Vec<u64>) -> Result<Option<T>, ConvertError> {
        loop {
            let next = self.take()?;
            // By iterators: slices this short are compared faster than by a call of the system's library.
            let order = next.and(self.held).map(|_| self.next_at.iter().cmp(&self.held_at));
            match (self.held, next) {
                (Some(held), Some(next)) if order == Some(Ordering::Equal) => match self.plan.duplicates {
                    Duplicates::Add(sum) => {
                        self.held = Some(sum(held, next));
                        self.added += 1;
                    }
                    Duplicates::Refuse => {
                        return Err(self.wrong(EntryProblem::Duplicate { found: self.coordinates.clone() }));
                    }
                },
                (Some(_), Some(_)) if order == Some(Ordering::Less) => {
                    let mut last = vec![0; self.held_at.len()];
                    self.plan.order.iter().zip(&self.held_at).for_each(|(mode, at)| last[*mode] = *at);
                    let (found, order) = (self.coordinates.clone(), self.plan.order.clone());
                    return Err(self.wrong(EntryProblem::Unsorted { found, last, order }));
                }
                (None, None) => return Ok(None),
                (held, next) => {
                    self.held = next;
                    std::mem::swap(&mut self.held_at, &mut self.next_at);
                    if held.is_some() {
                        std::mem::swap(at, &mut self.next_at);
                        return Ok(held);
                    }
                }
            }
        }
    }
}
