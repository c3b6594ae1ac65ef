//! The launches of a task whose failures the program has not seen.

use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::results::Results;
use crate::support::error::{Cause, Error};

/// The results of launches whose failure the program has not seen, and the failures that it has.
#[derive(Default)]
pub(crate) struct Watched {
    /// With the numbers of their launches.
    results: Vec<(u64, Arc<Results>)>,
    sweep_at: usize,
    /// Failures of launches that are forgotten, and what the task was told of by what has no results.
    seen: Seen,
}

impl Watched {
    /// Watches a launch.
    pub(crate) fn add(&mut self, number: u64, results: &Arc<Results>) {
        self.results.push((number, Arc::clone(results)));
        if self.results.len() > self.sweep_at {
            self.sweep();
            self.sweep_at = 64.max(2 * self.results.len());
        }
    }

    /// The task was told of a failure.
    pub(crate) fn see(&mut self, failure: &Error) {
        self.seen.add(failure);
    }

    /// Forgets what has ended well, and failures that the task was told of: but for what tells them from others, as
    /// they may spread.
    fn sweep(&mut self) {
        let Self { results, seen, .. } = self;
        results.retain(|(_, results)| {
            if !results.has_ended() {
                return true;
            }
            let (has_failed, is_observed) = (results.error().is_some(), results.is_observed());
            if has_failed && is_observed {
                results.errors().for_each(|error| seen.add(&error));
            }
            has_failed && !is_observed
        });
    }

    /// The first failure, in program order, that the program has not seen.
    pub(crate) fn unseen_failure(mut self) -> Option<Error> {
        // Forks are watched only once they have failed.
        self.results.sort_by_key(|(number, _)| *number);
        let launched = self.results.iter().map(|(_, results)| results);
        let (seen, unseen): (Vec<_>, Vec<_>) = launched.partition(|results| results.is_observed());
        let mut unseen = unseen.into_iter().filter_map(|results| results.error()).peekable();
        unseen.peek()?;
        // A failure spreads: a program that has seen it at one operation has seen it.
        seen.into_iter().flat_map(|results| results.errors()).for_each(|error| self.seen.add(&error));
        unseen.find(|error| !self.seen.has(error))
    }
}

/// Failures that the program has seen, as far as other launches may yet fail for the same reason. For those that only
/// their text identifies that is not known, so as many are remembered as the machine remembers reasons of failures: see
/// [`Realm::status`](maniple_realm::Realm::status).
#[derive(Default)]
struct Seen {
    causes: FxHashMap<usize, Cause>,
    sweep_at: usize,
    /// The hashes of the texts of the latest failures, and of the failures before those.
    texts: [FxHashSet<u64>; 2],
}

/// So many texts fill one set.
const MOST_TEXTS: usize = 1 << 16;

impl Seen {
    fn add(&mut self, error: &Error) {
        let Some(cause) = error.cause() else { return self.add_text(error) };
        if let Entry::Vacant(place) = self.causes.entry(cause.address()) {
            place.insert(cause);
            if self.causes.len() > self.sweep_at {
                self.causes.retain(|_, cause| !cause.is_gone());
                self.sweep_at = 64.max(2 * self.causes.len());
            }
        }
    }

    fn add_text(&mut self, error: &Error) {
        if self.texts[0].len() >= MOST_TEXTS {
            self.texts.swap(0, 1);
            self.texts[0].clear();
        }
        self.texts[0].insert(hash_of_text(error));
    }

    fn has(&self, error: &Error) -> bool {
        match error.cause() {
            Some(cause) => self.causes.contains_key(&cause.address()),
            None => {
                let text = hash_of_text(error);
                self.texts.iter().any(|texts| texts.contains(&text))
            }
        }
    }
}

fn hash_of_text(error: &Error) -> u64 {
    // Not by the hash of tables: two failures with one number would be taken for one.
    BuildHasherDefault::<DefaultHasher>::default().hash_one(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_remembered_as_long_as_it_may_spread() {
        let mut seen = Seen::default();
        let spreads: Vec<Error> = (0..100).map(|number| Error::application(format!("{number} fails"))).collect();
        for error in &spreads {
            seen.add(error);
            seen.add(&error.clone());
            for _ in 0..1_000 {
                let over = Error::application("is over");
                seen.add(&over);
                seen.add(&over.clone());
            }
        }
        assert!(spreads.iter().all(|error| seen.has(error)));
        assert!(!seen.has(&Error::application("0 fails")), "another failure that says the same");
        assert!(seen.causes.len() <= 300, "{} of 100 are remembered", seen.causes.len());
    }

    #[test]
    fn of_failures_that_are_told_by_what_they_say_the_latest_are_remembered() {
        let mut seen = Seen::default();
        let error = |number: usize| Error::launch("task", format!("problem {number}"));
        let all = 5 * MOST_TEXTS;
        (0..all).for_each(|number| seen.add(&error(number)));
        assert!((all - MOST_TEXTS..all).all(|number| seen.has(&error(number))));
        assert!(!seen.has(&error(0)) && !seen.has(&error(all)));
        assert!(seen.texts.iter().all(|texts| texts.len() <= MOST_TEXTS));
    }
}
