//! A mapper object, and the calls into it.

use std::sync::Arc;

use maniple_mapper::{MappedTask, Mapper, MappingFailure, TaskInfo, TaskProfile, Tunable};
use maniple_realm::fault;
use maniple_realm::locks::Mutex;
use maniple_realm::profile::{Kind, Tag};
use maniple_region::FieldMask;

use super::waiting::without_waiting;
use crate::instances::instance::PhysicalInstance;
use crate::instances::store::Store;
use crate::support::error::{Error, Result};

/// A mapper object: called by one thread at a time.
pub(crate) struct MapperSeat {
    mapper: Mutex<Box<dyn Mapper>>,
    /// The calls of which an answer was disregarded, and logged.
    disregarded: Mutex<Vec<&'static str>>,
}

impl MapperSeat {
    pub(crate) fn new(mapper: Box<dyn Mapper>) -> Self {
        Self { mapper: Mutex::new(mapper), disregarded: Mutex::default() }
    }

    /// Calls the mapper. A panic becomes an error; the mapper stays in use.
    pub(crate) fn call<R>(
        &self,
        store: &Store,
        name: &'static str,
        call: impl FnOnce(&mut dyn Mapper) -> R,
    ) -> Result<R> {
        store.counters.mapper_calls.add(1);
        let mut mapper = self.mapper.lock();
        let recorded = store.realm.profiler().map(|profiler| (profiler, profiler.now_ns()));
        // Others may be waiting for the mapper, or for the data that it is asked about.
        let outcome = fault::catch(|| without_waiting(|| call(&mut **mapper)));
        if let Some((profiler, start)) = recorded {
            profiler.span(Tag::of(profiler.label(Kind::Mapper, name, None)), profiler.current(), start);
        }
        outcome.map_err(|fault| {
            let said = fault.panic().map_or_else(|| fault.to_string(), |panic| panic.message.clone());
            let mapper =
                fault::catch(|| mapper.name().to_owned()).unwrap_or_else(|_| "whose name panics too".to_owned());
            Error::mapper(name, format!("of mapper `{mapper}` panicked: {said}"))
        })
    }

    /// Calls the mapper where the program goes on whatever it does. A panic is logged the first time.
    pub(crate) fn try_call<R>(
        &self,
        store: &Store,
        name: &'static str,
        call: impl FnOnce(&mut dyn Mapper) -> R,
    ) -> Option<R> {
        let outcome = self.call(store, name, call);
        outcome.map_err(|error| self.disregard(name, || error.to_string())).ok()
    }

    /// Logs that an answer is disregarded, if it is the first one to this call.
    fn disregard(&self, call: &'static str, problem: impl FnOnce() -> String) {
        let mut disregarded = self.disregarded.lock();
        if disregarded.contains(&call) {
            return;
        }
        disregarded.push(call);
        drop(disregarded);
        let problem = problem();
        tracing::warn!(
            call,
            problem,
            "a mapper's answer is disregarded, as will be others of its kind without a word; mend the mapper"
        );
    }

    /// Logs that numbers which a mapper has given are no indices of a list with so many entries, or stand there twice,
    /// unless all are right.
    pub(crate) fn check_indices(&self, call: &'static str, given: &[usize], entries: usize) {
        let is_wrong = |&(at, index): &(usize, &usize)| *index >= entries || given[..at].contains(index);
        if let Some((_, wrong)) = given.iter().enumerate().find(is_wrong) {
            let problem = || {
                format!(
                    "mapper call `{call}` gave index {wrong}; expected some of 0 to {entries} (exclusive), each once at most"
                )
            };
            self.disregard(call, problem);
        }
    }

    /// Tells the mapper that what it has chosen did not work.
    pub(crate) fn tell_failure(&self, store: &Store, info: &TaskInfo<'_>, failure: &MappingFailure) {
        // A mapper that panics over the news will be asked again all the same.
        self.try_call(store, "mapping_failed", |mapper| mapper.mapping_failed(info, failure));
    }

    /// Tells the mapper when and where a task ran.
    pub(crate) fn tell_profile(&self, store: &Store, task: &str, profile: &TaskProfile) {
        // The task has run; what the mapper makes of the news can't change that.
        self.try_call(store, "task_profiled", |mapper| mapper.task_profiled(task, profile));
    }

    /// Tells the mapper which instances a task got.
    pub(crate) fn tell_mapped(&self, store: &Store, info: &TaskInfo<'_>, mapped: &MappedTask) {
        self.try_call(store, "task_mapped", |mapper| mapper.task_mapped(info, mapped));
    }

    pub(crate) fn tunable(&self, store: &Store, tunable: &Tunable<'_>) -> Result<Option<i64>> {
        self.call(store, "tunable", |mapper| mapper.tunable(tunable, store.realm.machine()))
    }

    /// Ranks instances that data may come from. A mapper that panics or answers nonsense leaves them as they are.
    pub(crate) fn rank(
        &self,
        store: &Store,
        sources: &[(Arc<PhysicalInstance>, FieldMask)],
        destination: &PhysicalInstance,
    ) -> Vec<usize> {
        const NAME: &str = "rank_sources";
        let infos: Vec<_> = sources.iter().map(|(source, valid)| source.info(valid.clone())).collect();
        let destination = destination.info(FieldMask::new());
        let order =
            self.try_call(store, NAME, |mapper| mapper.rank_sources(&infos, &destination, store.realm.machine()));
        let order = order.unwrap_or_default();
        self.check_indices(NAME, &order, infos.len());
        order
    }
}
