//! The operations of a program on one node, as far as nodes have not agreed on them.
//!
//! The operations between two comparisons are an *interval*, which has the number of the comparison that ends it. A
//! node may begin many comparisons before all nodes have begun the first of them.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use maniple_realm::locks::Mutex;
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use crate::error::Failure;

/// An operation with its digest.
pub(crate) type Digested<O> = (u64, O);

/// The rest of an interval, after the operations that are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Rest {
    /// Perhaps others: the program has not come further yet.
    Unknown,
    /// Nothing: they have been compared, or the program has ended.
    Nothing,
    /// Nothing, as the program has failed.
    Failure(Failure),
}

/// Intervals that are being compared, with their numbers. Locked after the log: outcomes may come while that is locked.
pub(crate) type UnderWay<O> = Arc<Mutex<VecDeque<(u64, Vec<Digested<O>>)>>>;

/// See the [module](self).
pub(crate) struct Log<O> {
    /// Of all operations.
    digest: u64,
    /// How many they are.
    count: usize,
    under_way: UnderWay<O>,
    /// The number of the interval after those.
    number: u64,
    /// Its operations.
    since: Vec<Digested<O>>,
    /// The rest of the interval. The results of a program that has ended may be looked at later, on some nodes only.
    rest: Rest,
    /// How far the program had come when [`is_at_standstill`](Self::is_at_standstill) was last called, and how often it
    /// has found that since.
    seen: ((u64, usize, bool), u32),
}

impl<O> Log<O> {
    /// That of a program whose first interval has this number.
    pub(crate) fn new(number: u64) -> Self {
        let (under_way, since) = (Arc::default(), Vec::new());
        Self { digest: 0, count: 0, under_way, number, since, rest: Rest::Unknown, seen: ((number, 0, false), 0) }
    }

    /// Adds an operation, unless the program is over.
    pub(crate) fn add(&mut self, operation: Digested<O>) {
        if self.is_over() {
            return;
        }
        let mut hasher = FxHasher::default();
        (self.digest, operation.0).hash(&mut hasher);
        self.digest = hasher.finish();
        self.since.push(operation);
        self.count += 1;
    }

    /// The digest of all operations.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// How many operations there were, and how many of them since the last comparison.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.count, self.since.len())
    }

    /// A comparison with this number begins. The next interval has room for so many operations: a vector that grows
    /// step by step is copied each time.
    pub(crate) fn compare(&mut self, number: u64, room: usize) {
        let since = std::mem::replace(&mut self.since, Vec::with_capacity(room));
        self.under_way.lock().push_back((number, since));
        self.number = number + 1;
    }

    /// The program is over, perhaps with a failure.
    pub(crate) fn end(&mut self, failure: Option<Failure>) {
        self.rest = failure.map_or(Rest::Nothing, Rest::Failure);
    }

    pub(crate) fn is_over(&self) -> bool {
        !matches!(self.rest, Rest::Unknown)
    }

    /// For callbacks that are told of outcomes.
    pub(crate) fn under_way(&self) -> UnderWay<O> {
        Arc::clone(&self.under_way)
    }

    /// Calls with the first interval on which nodes have not agreed: its number, its operations, and what follows them.
    pub(crate) fn with_first<R>(&self, call: impl FnOnce(u64, &[Digested<O>], &Rest) -> R) -> R {
        let under_way = self.under_way.lock();
        match under_way.front() {
            Some((number, operations)) => call(*number, operations, &Rest::Nothing),
            None => call(self.number, &self.since, &self.rest),
        }
    }

    /// Whether the program has come no further since this was called last, and nothing was found then. So of several
    /// calls in a row one gives true, the second.
    pub(crate) fn is_at_standstill(&mut self) -> bool {
        let here =
            self.with_first(|number, operations, rest| (number, operations.len(), !matches!(rest, Rest::Unknown)));
        let (seen, times) = &mut self.seen;
        if *seen != here {
            self.seen = (here, 0);
            return false;
        }
        *times = times.saturating_add(1);
        *times == 1
    }
}

/// An interval has been compared: its operations, which are under way no more.
pub(crate) fn take<O>(under_way: &UnderWay<O>, number: u64) -> Vec<Digested<O>> {
    let mut intervals = under_way.lock();
    let compared = intervals.iter().position(|(known, _)| *known == number);
    compared.and_then(|compared| intervals.remove(compared)).map(|(_, operations)| operations).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(log: &Log<()>) -> (u64, usize, Rest) {
        log.with_first(|number, operations, rest| (number, operations.len(), rest.clone()))
    }

    #[test]
    fn the_first_interval_is_the_one_that_nodes_have_not_agreed_on() {
        let mut log = Log::new(5);
        log.add((1, ()));
        assert_eq!(first(&log), (5, 1, Rest::Unknown));
        log.compare(5, 0);
        (0..2).for_each(|_| log.add((2, ())));
        log.compare(6, 0);
        assert_eq!(first(&log), (5, 1, Rest::Nothing));
        take(&log.under_way(), 5);
        assert_eq!(first(&log), (6, 2, Rest::Nothing));
        take(&log.under_way(), 6);
        assert_eq!(first(&log), (7, 0, Rest::Unknown));
    }

    #[test]
    fn nothing_is_added_after_the_end() {
        let mut log = Log::new(0);
        let failure = Failure { node: 1, message: "it is broken".to_owned() };
        log.end(Some(failure.clone()));
        log.add((1, ()));
        assert_eq!(first(&log), (0, 0, Rest::Failure(failure)));
    }

    #[test]
    fn a_standstill_is_found_once_until_the_program_goes_on() {
        let mut log = Log::new(0);
        let found = |log: &mut Log<()>| [(); 4].map(|()| log.is_at_standstill());
        // It has come nowhere yet.
        assert_eq!(found(&mut log), [true, false, false, false]);
        log.add((1, ()));
        assert_eq!(found(&mut log), [false, true, false, false]);
        log.compare(0, 0);
        assert_eq!(found(&mut log), [false, true, false, false]);
        take(&log.under_way(), 0);
        assert_eq!(found(&mut log), [false, true, false, false]);
        log.end(None);
        assert_eq!(found(&mut log), [false, true, false, false]);
    }
}
