//! Pieces of several blocks as one sorted sequence.

use crate::error::ReadError;
use crate::number::Number;
use crate::tcs::load::{Found, SortedEntries};
use crate::tcs::tournament::Tournament;

/// Sorted entries that come from several sources, all at different places.
#[derive(Debug)]
pub struct Merge<P, T> {
    sources: Vec<P>,
    tournament: Tournament,
    /// The element of the next entry of each source.
    values: Vec<T>,
    at: Vec<u64>,
    /// The block of all entries: the only one.
    block: Vec<u64>,
    has_begun: bool,
}

impl<T: Number, P: SortedEntries<T>> Merge<P, T> {
    /// The entries of some sources, with as many coordinates each.
    pub fn new(sources: Vec<P>, rank: usize) -> Self {
        let (tournament, values) = (Tournament::new(sources.len(), rank), vec![T::zeroed(); sources.len()]);
        Self { sources, tournament, values, at: vec![0; rank], block: vec![0; rank], has_begun: false }
    }

    fn advance(&mut self, source: usize) -> Result<(), ReadError> {
        let next = self.sources[source].next_sorted()?;
        if let Some(found) = &next {
            self.values[source] = found.value;
        }
        self.tournament.set(source, next.map(|found| found.at));
        Ok(())
    }
}

impl<T: Number, P: SortedEntries<T>> SortedEntries<T> for Merge<P, T> {
    fn next_sorted(&mut self) -> Result<Option<Found<'_, T>>, ReadError> {
        if !self.has_begun {
            (0..self.sources.len()).try_for_each(|source| self.advance(source))?;
            self.has_begun = true;
        }
        let Some(winner) = self.tournament.winner() else { return Ok(None) };
        self.at.copy_from_slice(self.tournament.key(winner));
        let value = self.values[winner];
        self.advance(winner)?;
        Ok(Some(Found { at: &self.at, ranges: &self.block, value }))
    }
}
