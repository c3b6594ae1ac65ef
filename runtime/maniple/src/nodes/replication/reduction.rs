//! Results of a shared launch folded into one: on each node first, then up the tree, so that `O(log n)` steps carry one
//! value each.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use maniple_cluster::{CollectiveName, Failure, decode, encode};
use maniple_realm::fault;
use maniple_space::{AnyRect, Rect};
use serde::{Deserialize, Serialize};

use super::node::JobNode;

use super::shared_results::SharedResults;
use crate::results::completion::Folding;
use crate::results::{Input, Origin, Results};
use crate::support::error::{Error, Result};
use crate::task::{Codec, Value};

const NAME: &str = "reduce";

/// The result of folding values so far, as it travels between nodes.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Partial {
    Value(Vec<u8>),
    Failed(Failure),
    /// The values can't be sent.
    NoCodec,
}

/// How the values of one launch are folded.
#[derive(Clone)]
pub(super) struct Reduction {
    pub(super) folding: Folding,
    pub(super) codec: Option<Codec>,
    pub(super) node: Arc<JobNode>,
}

impl Reduction {
    pub(super) fn fold<'a>(&self, parts: impl Iterator<Item = Result<&'a dyn Any, Partial>>) -> Partial {
        let mut missing = None;
        let values = parts.map_while(|part| part.map_err(|partial| missing = Some(partial)).ok());
        let folded = fault::catch(|| self.folding.fold(values));
        match (missing, folded) {
            (_, Err(fault)) => Partial::Failed(self.node.tell(&Error::of_fault(&fault, NAME, None))),
            (Some(partial), _) => partial,
            (None, Ok(Some(folded))) => self.encode(&folded),
            (None, Ok(None)) => Partial::NoCodec,
        }
    }

    fn encode(&self, value: &Value) -> Partial {
        self.codec.and_then(|codec| codec.encode(value.as_any())).map_or(Partial::NoCodec, Partial::Value)
    }

    fn decode(&self, bytes: &Bytes) -> Result<Value, Partial> {
        self.value_of(decode(bytes).unwrap_or(Partial::NoCodec))
    }

    pub(super) fn value_of(&self, partial: Partial) -> Result<Value, Partial> {
        let Partial::Value(bytes) = partial else { return Err(partial) };
        self.codec.and_then(|codec| codec.decode(&bytes)).ok_or(Partial::NoCodec)
    }

    /// Folds what parts have come to.
    fn fold_parts(&self, parts: &[Bytes]) -> Partial {
        // To decode a value is the program's code, too.
        match fault::catch(|| parts.iter().map(|part| self.decode(part)).collect::<Result<Vec<Value>, Partial>>()) {
            Ok(Ok(values)) => self.fold(values.iter().map(|value| Ok(value.as_any()))),
            Ok(Err(partial)) => partial,
            Err(fault) => Partial::Failed(self.node.tell(&Error::of_fault(&fault, NAME, None))),
        }
    }
}

/// All results of a launch folded: a result that all nodes get.
pub(super) fn reduce(launch: &Arc<SharedResults>, folding: Folding) -> Arc<Results> {
    let node = &launch.node;
    // A wait for the outcome is a wait for what all nodes have done so far.
    launch.check.add_awaited(node, launch.used("reduces"));
    let name = CollectiveName { operation: node.begin_operation(NAME), part: 0 };
    let complete = node.realm().user_event();
    let sources = launch.local.iter().map(|(_, results)| Input::all(Arc::clone(results)));
    let (origin, one) = (Origin::BuiltIn(NAME), AnyRect::from(Rect::<1>::from(0..1)));
    let folded = Results::from_afar(node.realm(), origin, one, complete.event(), sources.collect());
    let reduction = Reduction { folding, codec: launch.codec, node: Arc::clone(node) };
    let (shared, results) = (Arc::clone(launch), Arc::clone(&folded));
    launch.when_here(move || {
        let mine = encode(&reduction.fold(values(&shared)));
        let (up, down) = (reduction.clone(), reduction);
        let combine = move |parts: Vec<Bytes>| encode(&up.fold_parts(&parts)).into();
        let node = Arc::clone(&shared.node);
        let done = move |all: Bytes| {
            let value = down.decode(&all).map_err(|partial| error(&shared, partial));
            let failure = value.as_ref().err().cloned();
            results.set(0, value);
            match failure {
                None => {
                    results.forget_sources();
                    shared.node.realm().trigger(complete);
                }
                Some(error) => shared.node.realm().poison(complete, error),
            }
        };
        node.all_reduce(name, mine.into(), Box::new(combine), Box::new(done));
    });
    folded
}

/// The results of the points that run here.
fn values(shared: &SharedResults) -> impl Iterator<Item = Result<&dyn Any, Partial>> {
    shared.local.iter().flat_map(|(points, results)| {
        (0..points.volume() as usize).map(|index| match results.error_of(index) {
            Some(error) => Err(Partial::Failed(shared.node.tell(&error))),
            None => Ok(results.value(index).and_then(Result::ok).unwrap_or(&())),
        })
    })
}

/// Why there is no value.
pub(super) fn error(shared: &SharedResults, partial: Partial) -> Error {
    let Partial::Failed(failure) = partial else {
        let task = shared.local.first().map_or(NAME, |(_, results)| results.task());
        return Error::NotSendable { task: task.to_owned() };
    };
    shared.node.hear(failure)
}
