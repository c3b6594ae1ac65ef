//! The second pass over sorted entries: what is appended to each array.

use std::io;

use super::count::first_difference;
use super::layout::{Level, TcsLevelKind};

/// A receiver of the elements of arrays, each array from its first element to its last.
pub trait Sink<T> {
    /// Appends a bound of segments of a level, several times.
    ///
    /// # Errors
    /// As of what is written to.
    fn pos(&mut self, level: usize, bound: u64, times: u64) -> io::Result<()>;

    /// Appends a coordinate of a level.
    ///
    /// # Errors
    /// As of what is written to.
    fn idx(&mut self, level: usize, coordinate: u64) -> io::Result<()>;

    /// Appends as many zeros.
    ///
    /// # Errors
    /// As of what is written to.
    fn zeros(&mut self, times: u64) -> io::Result<()>;

    /// Appends an element.
    ///
    /// # Errors
    /// As of what is written to.
    fn value(&mut self, value: T) -> io::Result<()>;
}

/// Sorted entries as the arrays of levels (Shinde 2019, *SuperTaco*, section 4.3).
///
/// A filler can go on where another one has stopped: then it gets how many nodes there were, and the last entry.
#[derive(Clone, Debug)]
pub struct Filler {
    levels: Vec<Level>,
    /// How many nodes each level has so far, as if all were sparse.
    nodes: Vec<u64>,
    /// The entry before; empty if there was none.
    last: Vec<u64>,
}

impl Filler {
    /// Starts with empty arrays.
    #[must_use]
    pub fn new(levels: &[Level]) -> Self {
        Self::after(levels, vec![0; levels.len()], Vec::new())
    }

    /// Goes on after entries that have so many nodes, of which the last one is given; empty if there were none.
    #[must_use]
    pub fn after(levels: &[Level], nodes: Vec<u64>, last: Vec<u64>) -> Self {
        Self { levels: levels.to_vec(), nodes, last }
    }

    /// Appends an entry that comes after the last one and is in the ranges of levels: its coordinates are in the order
    /// of levels.
    ///
    /// # Errors
    /// As of `into`; [`io::ErrorKind::InvalidInput`] if the entry does not come after the last one, or is outside of
    /// the ranges.
    pub fn add<T>(&mut self, at: &[u64], value: T, into: &mut impl Sink<T>) -> io::Result<()> {
        let is_inside =
            at.len() == self.levels.len() && self.levels.iter().zip(at).all(|(level, at)| level.range.contains(at));
        // How many bounds or zeros the next array of numbers gets: those of nodes without children, and this one's.
        let (first, mut places) = match first_difference(&self.last, at) {
            None if self.last.is_empty() && is_inside => (0, 1),
            Some(first) if self.last[first] < at[first] && is_inside => (first, 0),
            _ => {
                let reason = format!("entry {at:?} is outside of the tensor, or does not come after {:?}", self.last);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
        };
        for (number, level) in self.levels.iter().enumerate().skip(first) {
            match level.kind {
                TcsLevelKind::Dense => {
                    let last = self.last.get(number).map_or(level.range.end - 1, |last| *last);
                    places = places * level.extent() + at[number] - last;
                }
                TcsLevelKind::Sparse => {
                    into.pos(number, self.nodes[number], places)?;
                    into.idx(number, at[number])?;
                    places = 1;
                }
            }
            self.nodes[number] += 1;
        }
        self.last.clear();
        self.last.extend_from_slice(at);
        into.zeros(places.saturating_sub(1))?;
        into.value(value)
    }

    /// Appends what comes after the last entry.
    ///
    /// # Errors
    /// As of `into`.
    pub fn finish<T>(self, into: &mut impl Sink<T>) -> io::Result<()> {
        if self.last.is_empty() {
            return self.finish_empty(into);
        }
        let mut places = 1;
        for (number, level) in self.levels.iter().enumerate() {
            match level.kind {
                TcsLevelKind::Dense => places = places * level.extent() + level.range.start - self.last[number],
                TcsLevelKind::Sparse => {
                    into.pos(number, self.nodes[number], places)?;
                    places = 1;
                }
            }
        }
        into.zeros(places - 1)
    }

    /// The arrays of a tensor without entries: nothing but zeros.
    fn finish_empty<T>(self, into: &mut impl Sink<T>) -> io::Result<()> {
        let mut nodes = 1;
        for (number, level) in self.levels.iter().enumerate() {
            nodes = match level.kind {
                TcsLevelKind::Dense => nodes * level.extent(),
                TcsLevelKind::Sparse => {
                    into.pos(number, 0, nodes + 1)?;
                    0
                }
            };
        }
        into.zeros(nodes)
    }
}
