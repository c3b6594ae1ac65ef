//! Scans: each result of a shared launch, folded with the results before it, on the node that has the result.
//!
//! Points that follow each other on one node are a *stretch*. Each node folds its stretches, and all nodes get the
//! value of each stretch: if points are dealt in blocks, that is one value a node. The value of a point follows from
//! the stretches before its own, and from the points before it in its own.

use std::any::Any;
use std::sync::Arc;

use maniple_cluster::{CollectiveName, encode};
use maniple_realm::fault;

use super::reduction::{Partial, Reduction, error};
use super::shared_results::SharedResults;
use crate::data::value::Value;
use crate::results::completion::Folding;
use crate::results::{Input, Local, Origin, Results};
use crate::support::error::{Error, Result};

const NAME: &str = "scan";

/// The place of a result among those of this node: its part, and its number there.
type Place = (usize, usize);

/// A scan on this node, over stretches of points that follow each other here.
struct Scan {
    launch: Arc<SharedResults>,
    reduction: Reduction,
    /// With the point's own result.
    inclusive: bool,
    /// The number of the first point of each stretch of this node, and where its points are.
    stretches: Vec<(u64, Vec<Place>)>,
    scanned: Local,
}

/// Starts a scan: each result of a launch is folded with those before it, itself included or not.
pub(super) fn scan(launch: &Arc<SharedResults>, folding: Folding, inclusive: bool) -> Arc<Results> {
    let (node, check) = (&launch.node, &launch.check);
    check.add_awaited(node, launch.used("scans"));
    let exchange = CollectiveName { operation: node.begin_operation(NAME), part: 0 };
    let name = CollectiveName { operation: node.begin_operation(NAME), part: 0 };
    let complete = node.realm().user_event();
    let scanned = launch.local.iter().map(|(points, results)| {
        let sources = [Input::all(Arc::clone(results))].into_iter().collect();
        (*points, Results::from_afar(node.realm(), Origin::BuiltIn(NAME), *points, complete.event(), sources))
    });
    let scanned: Local = scanned.collect();
    let (origin, local) = (Origin::BuiltIn(NAME), scanned.clone());
    let all = SharedResults::results(node, check, name, origin, launch.domain, launch.codec, local);
    let reduction = Reduction { folding, codec: launch.codec, node: Arc::clone(node) };
    let (launch, stretches) = (Arc::clone(launch), stretches(launch));
    let scan = Scan { launch: Arc::clone(&launch), reduction, inclusive, stretches, scanned };
    launch.when_here(move || {
        let mine: Vec<(u64, Partial)> =
            scan.stretches.iter().map(|(first, places)| (*first, scan.fold(places))).collect();
        let node = Arc::clone(&scan.launch.node);
        node.all_gather(exchange, &encode(&mine), move |all| {
            let parts: Option<Vec<Vec<(u64, Partial)>>> = all.decode().collect();
            scan.finish(parts);
            match scan.scanned.iter().find_map(|(_, results)| results.first_error().cloned()) {
                None => {
                    scan.scanned.iter().for_each(|(_, results)| results.forget_sources());
                    scan.launch.node.realm().trigger(complete);
                }
                Some(error) => scan.launch.node.realm().poison(complete, error),
            }
        });
    });
    all
}

/// The points that run here, as stretches of those that follow each other.
fn stretches(launch: &SharedResults) -> Vec<(u64, Vec<Place>)> {
    let mut places: Vec<(u64, Place)> = Vec::new();
    for (part, (points, _)) in launch.local.iter().enumerate() {
        let numbers = points.points().map(|point| launch.domain.linear(point));
        places.extend(numbers.enumerate().map(|(index, number)| (number, (part, index))));
    }
    places.sort_unstable();
    let mut stretches: Vec<(u64, Vec<Place>)> = Vec::new();
    for (number, place) in places {
        match stretches.last_mut() {
            Some((first, own)) if *first + own.len() as u64 == number => own.push(place),
            _ => stretches.push((number, vec![place])),
        }
    }
    stretches
}

impl Scan {
    /// The result of a point that runs here.
    fn value(&self, part: usize, index: usize) -> Result<&dyn Any> {
        let results = &self.launch.local[part].1;
        match results.error_of(index) {
            Some(error) => Err(error),
            None => Ok(results.value(index).and_then(Result::ok).unwrap_or(&())),
        }
    }

    /// Folds the results of a stretch.
    fn fold(&self, places: &[Place]) -> Partial {
        let failed = |error| Partial::Failed(self.launch.node.tell(&error));
        self.reduction.fold(places.iter().map(|&(part, index)| self.value(part, index).map_err(failed)))
    }

    /// Folds values.
    fn folded<'a>(&self, values: impl Iterator<Item = &'a dyn Any>) -> Result<Value> {
        match fault::catch(|| self.reduction.folding.fold(values)) {
            Ok(folded) => folded.ok_or_else(|| error(&self.launch, Partial::NoCodec)),
            Err(fault) => Err(Error::of_fault(&fault, NAME, None)),
        }
    }

    /// Gives the points that run here their values, which follow from the values of the stretches of all nodes.
    fn finish(&self, parts: Option<Vec<Vec<(u64, Partial)>>>) {
        let lost = || error(&self.launch, Partial::NoCodec);
        let is_whole = parts.is_some();
        let mut all: Vec<(u64, Partial)> = parts.into_iter().flatten().flatten().collect();
        all.sort_unstable_by_key(|(first, _)| *first);
        let mut before = if is_whole { self.folded(std::iter::empty()) } else { Err(lost()) };
        let mut own = self.stretches.iter().peekable();
        for (first, partial) in all {
            if let Some((_, places)) = own.next_if(|(number, _)| *number == first) {
                self.put(&before, places);
            }
            before = before.and_then(|before| {
                let value = self.reduction.value_of(partial).map_err(|partial| error(&self.launch, partial))?;
                self.folded([before.as_any(), value.as_any()].into_iter())
            });
        }
        // What another node has sent could not be read.
        own.for_each(|(_, places)| self.put(&Err(lost()), places));
    }

    /// Gives the points of a stretch what they come to, after those before it.
    fn put(&self, before: &Result<Value>, places: &[Place]) {
        let copied = |value: &Result<Value>| {
            let value = value.as_ref().map_err(Error::clone)?;
            self.folded(std::iter::once(value.as_any()))
        };
        let mut before = copied(before);
        for &(part, index) in places {
            let with = match (&before, self.value(part, index)) {
                (Err(error), _) => Err(error.clone()),
                (_, Err(error)) => Err(error),
                (Ok(before), Ok(value)) => self.folded([before.as_any(), value].into_iter()),
            };
            let without = std::mem::replace(&mut before, with);
            self.scanned[part].1.set(index, if self.inclusive { copied(&before) } else { without });
        }
    }
}
