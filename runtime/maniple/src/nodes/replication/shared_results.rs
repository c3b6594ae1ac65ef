//! Results of a launch that several nodes share: each has those of its own points, and gets the others' when it asks.
//!
//! All nodes run the same program, so if one looks at a result, all do. The first look is an all-gather: it sends what
//! is there up a tree and brings everything down. Without a look nothing is sent.

use std::sync::Arc;

use maniple_cluster::{CollectiveName, Failure, Gathered, encode};
use maniple_realm::locks::Mutex;
use maniple_realm::{After, Event, UserEvent};
use maniple_space::AnyRect;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::node::JobNode;
use super::operations::{Check, Digested, use_of_results};
use crate::results::{Input, Local, Origin, PointResults, Results, SharedLaunch};
use crate::support::error::Error;
use crate::task::Codec;

/// The results of a launch whose points run on several nodes, as one node sees them.
pub(crate) struct SharedResults {
    pub(super) node: Arc<JobNode>,
    pub(super) check: Arc<Check>,
    pub(super) name: CollectiveName,
    pub(super) origin: Origin,
    pub(super) domain: AnyRect,
    /// The points that run here, with their results.
    pub(super) local: Local,
    pub(super) codec: Option<Codec>,
    /// The results of all points, once they are here.
    pub(super) values: PointResults,
    /// Triggers when all are here. Made when the program first looks at a result: otherwise no exchange would trigger
    /// it.
    pub(super) complete: Mutex<Option<UserEvent>>,
}

/// The results of one node.
#[derive(Serialize, Deserialize)]
struct NodeResults {
    /// Results that are not `()`, by the numbers of their points.
    points: Vec<(u64, ResultOutcome)>,
    /// Why the launch failed there, if not for one of these.
    failure: Option<Failure>,
}

#[derive(Serialize, Deserialize)]
enum ResultOutcome {
    Value(Vec<u8>),
    Failed(Failure),
    /// It has a value that can't be sent.
    NoCodec,
}

impl SharedResults {
    /// The results of all points of a launch, of which some run here.
    pub(crate) fn results(
        node: &Arc<JobNode>,
        check: &Arc<Check>,
        name: CollectiveName,
        origin: Origin,
        domain: AnyRect,
        codec: Option<Codec>,
        local: Local,
    ) -> Arc<Results> {
        let sources = local.iter().map(|(_, results)| Input::all(Arc::clone(results))).collect();
        let shared = Self {
            node: Arc::clone(node),
            check: Arc::clone(check),
            name,
            origin: origin.clone(),
            domain,
            local,
            codec,
            values: PointResults::default(),
            complete: Mutex::new(None),
        };
        Results::from_afar(node.realm(), origin, domain, Arc::new(shared) as Arc<dyn SharedLaunch>, sources)
    }

    /// A use of the results by the program, which nodes compare.
    pub(super) fn used(&self, what: &'static str) -> Digested {
        use_of_results(what, self.name.operation, &self.origin)
    }

    /// Does something once the results of the points that run here are there.
    pub(super) fn when_here(&self, call: impl FnOnce() + Send + 'static) {
        let ends: SmallVec<[Event; 1]> = self.local.iter().map(|(_, results)| results.completion()).collect();
        self.node.realm().when(After::follows(&ends), move |_| call());
    }

    pub(super) fn exchange(self: Arc<Self>, complete: UserEvent) {
        let mine = encode(&self.part());
        let (node, name) = (Arc::clone(&self.node), self.name);
        node.all_gather(name, &mine, move |all| self.take_in(&all, complete));
    }

    /// The part that is sent to the other nodes, which may look at results though nothing on this node does any more.
    fn part(&self) -> NodeResults {
        let mut part = NodeResults { points: Vec::new(), failure: None };
        for (points, results) in &self.local {
            let mut failed = false;
            for (index, point) in points.points().enumerate() {
                let outcome = match results.value(index) {
                    None => continue,
                    Some(Ok(value)) => match self.codec.and_then(|codec| codec.encode(value)) {
                        Some(bytes) => ResultOutcome::Value(bytes),
                        None => ResultOutcome::NoCodec,
                    },
                    Some(Err(error)) => {
                        failed = true;
                        ResultOutcome::Failed(self.node.tell(error))
                    }
                };
                part.points.push((self.domain.linear(point), outcome));
            }
            if !failed && part.failure.is_none() {
                part.failure = results.error().map(|error| self.node.tell(&error));
            }
        }
        part
    }

    fn take_in(&self, all: &Gathered, complete: UserEvent) {
        let (task, volume) = (self.origin.name(), self.domain.volume());
        let mut failure = None;
        for part in all.decode() {
            let Some(NodeResults { points, failure: failed }) = part else {
                failure = Some(Error::launch(task, "results of another node can't be read"));
                continue;
            };
            let first = points.iter().find_map(|(_, outcome)| match outcome {
                ResultOutcome::Failed(failure) => Some(failure.clone()),
                _ => None,
            });
            failure = failure.or(first.or(failed).map(|failure| self.node.hear(failure)));
            for (index, outcome) in points {
                let value = match outcome {
                    ResultOutcome::Failed(failure) => Err(self.node.hear(failure)),
                    ResultOutcome::Value(bytes) => match self.codec.and_then(|codec| codec.decode(&bytes)) {
                        Some(value) => Ok(value),
                        None => Err(Error::NotSendable { task: task.to_owned() }),
                    },
                    ResultOutcome::NoCodec => Err(Error::NotSendable { task: task.to_owned() }),
                };
                if index < volume {
                    self.values.set(volume as usize, index as usize, value);
                }
            }
        }
        match failure {
            None => self.node.realm().trigger(complete),
            Some(error) => self.node.realm().poison(complete, error),
        }
    }
}

impl Drop for SharedResults {
    fn drop(&mut self) {
        self.values.drop_caught(self.origin.name());
    }
}
