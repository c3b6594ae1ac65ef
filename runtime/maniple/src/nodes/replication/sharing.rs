//! A launch that several nodes share, as its results know it.

use std::sync::Arc;

use maniple_cluster::CollectiveName;
use maniple_realm::Event;

use super::reduction::reduce;
use super::scan::scan;
use super::shared_results::SharedResults;
use crate::results::completion::{Folding, Measure};
use crate::results::promise::measured;
use crate::results::{Local, Origin, PointResults, Results, SharedLaunch};
use crate::task::Codec;

impl SharedLaunch for SharedResults {
    fn asked(&self) -> Option<Event> {
        self.complete.lock().map(|complete| complete.event())
    }

    fn ask(self: Arc<Self>) -> Event {
        let mut known = self.complete.lock();
        if let Some(complete) = *known {
            return complete.event();
        }
        let complete = *known.insert(self.node.realm().user_event());
        drop(known);
        self.node.ask();
        self.check.add_awaited(&self.node, self.used("looks at"));
        let shared = Arc::clone(&self);
        self.when_here(move || shared.exchange(complete));
        complete.event()
    }

    fn values(&self) -> &PointResults {
        &self.values
    }

    fn renew(&mut self, operation: u64, local: Local) {
        self.values.drop_caught(self.origin.name());
        self.name = CollectiveName { operation, part: 0 };
        self.local = local;
        *self.complete.get_mut() = None;
    }

    fn local(&self) -> &Local {
        &self.local
    }

    fn measured(self: Arc<Self>, name: &'static str, measure: Measure) -> Arc<Results> {
        self.check.add(&self.node, self.used(name));
        let local = self.local.iter().map(|(points, results)| (*points, measured(name, results, Arc::clone(&measure))));
        let collective = CollectiveName { operation: self.node.begin_operation(name), part: 0 };
        let (origin, codec) = (Origin::BuiltIn(name), Some(Codec::of::<(u64, u64)>()));
        Self::results(&self.node, &self.check, collective, origin, self.domain, codec, local.collect())
    }

    fn reduce(self: Arc<Self>, folding: Folding) -> Arc<Results> {
        reduce(&self, folding)
    }

    fn scan(self: Arc<Self>, folding: Folding, inclusive: bool) -> Arc<Results> {
        scan(&self, folding, inclusive)
    }
}
