//! The control-determinism check: do all nodes run the same program? If not, which operation is the first that differs?
//!
//! Each node computes a digest of its operations as it goes. At certain points, which come at the same operations in
//! equal programs, nodes compare their digests, up a tree and down again; no thread waits for that. Where they differ,
//! they show each other what they have done since they last agreed. The points are: when the program is about to wait
//! for other nodes, where differing programs would wait for ever; after so many operations; and the end. Where programs
//! wait elsewhere, they show what they have done if they get [no further](crate::standstill).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use maniple_realm::locks::Mutex;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Failure};
use crate::evidence::{Describe, Evidence, difference};
use crate::job::Job;
use crate::log::{Digested, Log, take};
use crate::names::{COMPARISON, CollectiveName, END, EVIDENCE, Rank};
use crate::running::RunningProgram;
use crate::standstill::Standstill;
use crate::wire::{decode, encode};

/// Digests are compared after so many operations at the latest.
const INTERVAL: usize = 256;

/// The determinism check of one node: the operations of its program since all nodes last agreed.
pub struct DeterminismCheck<O> {
    node: Rank,
    /// The number of the program among those of the job.
    program: u64,
    log: Mutex<Log<O>>,
    /// Observations that may explain a difference, by name. Nodes need not have observed the same: they may agree on
    /// one answer by themselves.
    observed: Arc<Mutex<BTreeMap<String, i64>>>,
}

/// So many names of observations are remembered.
const MOST_OBSERVED: usize = 64;

/// The claim of a node when nodes compare.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
struct Claim {
    operations: u64,
    digest: u64,
}

/// The message of a node on which the program has ended.
#[derive(Serialize, Deserialize)]
struct Ended {
    failure: Option<Failure>,
    /// How many comparisons it has begun.
    comparisons: u64,
    /// Of all that it has done.
    digest: u64,
}

impl<O: Describe> DeterminismCheck<O> {
    /// A program begins, after any other of the job.
    #[must_use]
    pub fn begin(job: &Job) -> Arc<Self> {
        let program = job.shared.running.next();
        let log = Mutex::new(Log::new(job.comparisons()));
        let check = Arc::new(Self { node: job.rank(), program, log, observed: Arc::default() });
        job.shared.running.begin(program, Arc::downgrade(&check) as _);
        job.shared.check_leaves();
        check
    }

    /// Adds an operation with its digest, which is the same on all nodes, if the operation is.
    pub fn add(&self, job: &Job, operation: (u64, O)) {
        let mut log = self.log.lock();
        log.add(operation);
        let (count, since) = log.counts();
        let is_early = count < INTERVAL && count.is_power_of_two();
        if (is_early || since == INTERVAL) && !log.is_over() {
            self.compare_log(job, &mut log);
        }
    }

    /// Adds an operation for which the program will wait, and compares. Nothing after the [end](Self::end).
    pub fn add_awaited(&self, job: &Job, operation: (u64, O)) {
        let mut log = self.log.lock();
        if !log.is_over() {
            log.add(operation);
            self.compare_log(job, &mut log);
        }
    }

    /// Remembers something that the program was told here, to name it should the nodes differ.
    pub fn observe(&self, name: &str, value: i64) {
        let mut observed = self.observed.lock();
        if let Some(known) = observed.get_mut(name) {
            *known = value;
        } else if observed.len() < MOST_OBSERVED {
            observed.insert(name.to_owned(), value);
        }
    }

    /// Compares digests with the other nodes. It does not wait for that.
    pub fn compare(&self, job: &Job) {
        let mut log = self.log.lock();
        if !log.is_over() {
            self.compare_log(job, &mut log);
        }
    }

    /// The program has ended here, perhaps with a failure: compares for the last time, if without, and waits for the
    /// other nodes. The failure of the first node that has failed, if one has.
    pub fn end(&self, job: &Job, failure: Option<Failure>) -> Option<Failure> {
        job.end_program(failure.clone());
        let digest = self.finish(job, failure.clone());
        let name = CollectiveName { operation: job.begin_operation("end"), part: END };
        let (ended, outcome) = (job.realm().user_event(), Arc::new(Mutex::new(None)));
        let (result, waiting, again) = (Arc::clone(&outcome), job.realm().clone(), job.clone());
        let program = self.program;
        let mine = encode(&Ended { failure, comparisons: job.comparisons(), digest });
        job.all_gather(name, &mine, move |all| {
            // What came before from a node, such as its part of a comparison, is here.
            let ends: Vec<Ended> = all.decode().flatten().collect();
            let differ = |of: fn(&Ended) -> u64| ends.iter().any(|end| of(end) != of(&ends[0]));
            if ends.iter().all(|end| end.failure.is_none()) && differ(|end| end.digest) {
                // If all have come to the last comparison, they are about to show where: that ends the job.
                if differ(|end| end.comparisons) {
                    again.differ("some have compared what they do more often than others".to_owned());
                }
                return;
            }
            // Nodes that have failed have not compared what they did last.
            again.shared.running.end(program);
            again.end_comparisons(ends.iter().map(|end| end.comparisons).max().unwrap_or_default());
            *result.lock() = ends.into_iter().find_map(|end| end.failure);
            waiting.trigger(ended);
        });
        // Should the others be lost, the realm has given up.
        let _ = job.realm().wait(ended.event());
        outcome.lock().take()
    }

    /// Compares for the last time, unless the program has failed. The digest of all of it.
    fn finish(&self, job: &Job, failure: Option<Failure>) -> u64 {
        let mut log = self.log.lock();
        if failure.is_none() {
            self.compare_log(job, &mut log);
        }
        log.end(failure);
        log.digest()
    }

    fn compare_log(&self, job: &Job, log: &mut Log<O>) {
        let number = job.begin_comparison();
        let claim = Claim { operations: job.operations(), digest: log.digest() };
        let (_, since) = log.counts();
        log.compare(number, if since == INTERVAL { INTERVAL } else { 0 });
        let all_alike = |parts: Vec<Bytes>| {
            let differ = parts.iter().any(|part| part != &parts[0]);
            // Empty: they differ.
            if differ { Bytes::new() } else { parts.into_iter().next().unwrap_or_default() }
        };
        let (again, under_way, observed) = (job.clone(), log.under_way(), Arc::clone(&self.observed));
        let done = move |outcome: Bytes| {
            // What it has is dropped under no lock.
            let since = take(&under_way, number);
            match decode::<Claim>(&outcome) {
                Some(agreed) => again.note_operations_of_all(agreed.operations),
                None => show(&again, number, &since, observed.lock().clone()),
            }
        };
        let name = CollectiveName { operation: number, part: COMPARISON };
        job.all_reduce(name, encode(&claim).into(), Box::new(all_alike), Box::new(done));
    }

    /// Returns the standstill that this node shows if it gets no further, or if another node shows one.
    fn shown(&self, log: &Log<O>) -> Standstill {
        log.with_first(|interval, operations, rest| {
            let evidence = Evidence::new(self.node, operations, self.observed.lock().clone());
            Standstill { program: self.program, interval, evidence, rest: rest.clone() }
        })
    }
}

impl<O: Describe> RunningProgram for DeterminismCheck<O> {
    fn look(&self) -> Option<Bytes> {
        let mut log = self.log.lock();
        log.is_at_standstill().then(|| encode(&self.shown(&log)).into())
    }

    fn compare_with(&self, other: Standstill) -> Option<(Bytes, Error)> {
        let own = self.shown(&self.log.lock());
        if !own.differs_from(&other) {
            return None;
        }
        let answer = encode(&own).into();
        let failure = own.failure().or(other.failure()).cloned();
        let mut both = [own.evidence, other.evidence];
        both.sort_by_key(|evidence| evidence.node);
        let error = match failure {
            Some(failure) => Error::Failed(failure),
            None => Error::NodesDiffer { difference: difference::<O>(&both) },
        };
        Some((answer, error))
    }
}

/// Nodes differ: each shows what it has done since they agreed.
fn show<O: Describe>(job: &Job, comparison: u64, since: &[Digested<O>], observed: BTreeMap<String, i64>) {
    let mine = encode(&Evidence::new(job.rank(), since, observed));
    let again = job.clone();
    job.all_gather(CollectiveName { operation: comparison, part: EVIDENCE }, &mine, move |all| {
        let shown: Vec<Evidence> = all.decode().flatten().collect();
        again.differ(difference::<O>(&shown));
    });
}
