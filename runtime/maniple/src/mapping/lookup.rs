//! The context of a mapper: the facts that it may look up while it decides.

use std::cell::RefCell;

use maniple_mapper::{InstanceInfo, Mail, MappingContext};
use maniple_realm::machine::{Machine, MemoryId, ProcessorId};

use super::point::LockedStates;
use super::regions::Regions;
use crate::instances::bound::Bound;
use crate::instances::store::Store;

/// The machine, and the instances of one point's requirements. States stay locked while the mapper decides, so what it
/// sees is what it gets.
pub(crate) struct Lookup<'a, 'l> {
    pub(crate) store: &'a Store,
    pub(crate) bounds: &'a [Bound],
    pub(crate) regions: Regions<'a>,
    pub(crate) states: &'a RefCell<&'a mut LockedStates<'l>>,
    pub(crate) mail: &'a dyn Mail,
}

impl MappingContext for Lookup<'_, '_> {
    fn machine(&self) -> &Machine {
        self.store.realm.machine()
    }

    fn instances(&self, requirement: usize) -> Vec<InstanceInfo> {
        let (Some(bound), Some(region)) = (self.bounds.get(requirement), self.regions.get(requirement)) else {
            return Vec::new();
        };
        let mut states = self.states.borrow_mut();
        let mut infos = Vec::new();
        for (fields, state) in &bound.parts {
            let data = states.of(state);
            for instance in data.table.covering(region) {
                let valid = match instance.reduction() {
                    None => data.validity.valid_fields(region, fields, &instance),
                    Some(_) => maniple_region::FieldMask::new(),
                };
                infos.push(instance.info(valid));
            }
        }
        infos
    }

    fn bytes_used(&self, memory: MemoryId) -> u64 {
        let known = (memory.0 as usize) < self.machine().memories().len();
        if known { self.store.realm.memory_pool(memory).used() } else { 0 }
    }

    fn load(&self, processor: ProcessorId) -> usize {
        self.store.loads.of(processor)
    }

    fn mail(&self) -> &dyn Mail {
        self.mail
    }
}
