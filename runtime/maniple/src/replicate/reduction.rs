//! Results of a shared launch folded into one: on each node first, then up the tree, so that `O(log n)` steps carry one value each.

use std::sync::Arc;

use bytes::Bytes;
use maniple_cluster::{CollectiveName, Failure, decode, encode};
use maniple_realm::fault;
use maniple_space::{AnyRect, Rect};
use serde::{Deserialize, Serialize};

use super::node::Node;
use super::operations::use_of_results;
use super::spread::Spread;
use crate::error::{Error, Result};
use crate::future::{Input, Origin, Results};
use crate::task::{Codec, Value};

const NAME: &str = "reduce";

/// What has been folded so far, on its way.
#[derive(Serialize, Deserialize)]
enum Partial {
    Value(Vec<u8>),
    Failed(Failure),
    /// The values can't be sent.
    NoCodec,
}

/// How values are folded.
#[derive(Clone)]
struct Folding<T> {
    identity: T,
    fold: fn(&mut T, T),
    codec: Option<Codec>,
    node: Arc<Node>,
}

impl<T: Clone + Send + Sync + 'static> Folding<T> {
    fn fold(&self, mut parts: impl Iterator<Item = Result<T, Partial>>) -> Partial {
        let folded = fault::catch(|| {
            parts.try_fold(self.identity.clone(), |mut folded, part| {
                (self.fold)(&mut folded, part?);
                Ok(folded)
            })
        });
        match folded {
            Ok(Ok(folded)) => self.encode(&folded),
            Ok(Err(partial)) => partial,
            Err(fault) => Partial::Failed(self.node.tell(&Error::of_fault(&fault, NAME, None))),
        }
    }

    fn encode(&self, value: &T) -> Partial {
        self.codec.and_then(|codec| codec.encode(value)).map_or(Partial::NoCodec, Partial::Value)
    }

    fn decode(&self, bytes: &Bytes) -> Result<T, Partial> {
        let partial = decode(bytes).unwrap_or(Partial::NoCodec);
        let Partial::Value(bytes) = partial else { return Err(partial) };
        let value = self.codec.and_then(|codec| codec.decode(&bytes)).and_then(|value| value.downcast().ok());
        value.ok_or(Partial::NoCodec)
    }
}

impl Spread {
    /// All results folded: a result that all nodes get.
    pub(crate) fn reduce<T: Clone + Send + Sync + 'static>(
        self: &Arc<Self>,
        identity: T,
        fold: fn(&mut T, T),
    ) -> Arc<Results> {
        // Whoever waits for the outcome waits for what all nodes have done so far.
        self.check.add_awaited(&self.node, use_of_results("reduces", self.launched_as()));
        let name = CollectiveName { operation: self.node.begin_operation(NAME), part: 0 };
        let complete = self.node.realm().user_event();
        let (sources, one) =
            (self.local.iter().map(|(_, results)| Input::all(Arc::clone(results))), Rect::<1>::from(0..1));
        let whole = (Origin::BuiltIn(NAME), AnyRect::from(one));
        let folded = Results::from_afar(self.node.realm(), whole, complete.event(), sources.collect());
        let folding = Folding { identity, fold, codec: self.codec, node: Arc::clone(&self.node) };
        let (spread, results) = (Arc::clone(self), Arc::clone(&folded));
        self.when_here(move || {
            let mine = encode(&folding.fold(spread.values(&folding)));
            let (up, down) = (folding.clone(), folding);
            let combine = move |parts: Vec<Bytes>| encode(&up.fold(parts.iter().map(|part| up.decode(part)))).into();
            let node = Arc::clone(&spread.node);
            let done = move |all: Bytes| {
                let value = down.decode(&all).map_err(|partial| spread.error(partial));
                let failure = value.as_ref().err().cloned();
                results.set(0, value.map(Value::new));
                match failure {
                    None => {
                        results.forget_sources();
                        spread.node.realm().trigger(complete);
                    }
                    Some(error) => spread.node.realm().poison(complete, error),
                }
            };
            node.all_reduce(name, mine.into(), Box::new(combine), Box::new(done));
        });
        folded
    }

    /// The results of the points that run here.
    fn values<'a, T: Clone + 'static>(
        &'a self,
        folding: &'a Folding<T>,
    ) -> impl Iterator<Item = Result<T, Partial>> + 'a {
        let told = |error| Partial::Failed(folding.node.tell(&error));
        self.local.iter().flat_map(move |(points, results)| {
            (0..points.volume() as usize).map(move |index| results.copy(index).map_err(told))
        })
    }

    /// Why there is no value.
    fn error(&self, partial: Partial) -> Error {
        let Partial::Failed(failure) = partial else {
            let task = self.local.first().map_or(NAME, |(_, results)| results.task());
            return Error::NotSendable { task: task.to_owned() };
        };
        self.node.hear(failure)
    }
}
