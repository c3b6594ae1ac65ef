//! The local fields of a task, and those of them that it may use again.

use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_region::{FieldId, FieldSpace, FieldType, LogicalRegion};

use super::ContextState;
use super::region_key::RegionFields;

/// The local fields of a task.
#[derive(Default)]
pub(super) struct LocalFields(Mutex<KnownFields>);

#[derive(Default)]
struct KnownFields {
    all: Vec<Local>,
    /// The fields that nothing uses, the latest last.
    free: Vec<Local>,
}

/// So many local fields that nothing uses are kept at most, each for the next one of its name: as many as a loop makes
/// in an iteration, more or less.
const MOST: usize = 32;

/// A field that ends with its task.
#[derive(Clone)]
pub(crate) struct Local {
    pub(crate) fields: Arc<FieldSpace>,
    pub(crate) field: FieldId,
    /// How many fields had the id before.
    generation: u32,
}

impl Local {
    fn is_same(&self, other: &Self) -> bool {
        (self.fields.id(), self.field, self.generation) == (other.fields.id(), other.field, other.generation)
    }
}

impl ContextState {
    /// A local field that nothing uses any more. Of several that with the lowest id: a loop that makes several gets
    /// each in the same place in every iteration.
    pub(crate) fn take_local_field(&self, fields: &FieldSpace, name: &str, ty: FieldType) -> Option<Local> {
        let known = &mut *self.created.get()?.local_fields.0.lock();
        let fits = |local: &Local| {
            let there = fields.get(local.field).is_some_and(|field| field.name == name && field.ty == ty);
            local.fields.id() == fields.id() && there && self.is_there(local)
        };
        let fitting = (0..known.free.len()).filter(|&number| fits(&known.free[number]));
        let first = fitting.min_by_key(|&number| known.free[number].field)?;
        Some(known.free.remove(first))
    }

    /// The task has made a field as a local one.
    pub(crate) fn mark_local_field(&self, fields: &Arc<FieldSpace>, field: FieldId) -> Local {
        let local = Local { fields: Arc::clone(fields), field, generation: fields.generation(field, self) };
        self.created.local_fields.0.lock().all.push(local.clone());
        local
    }

    /// Nothing uses a local field any more, and its values were given up.
    pub(crate) fn keep_local_field(&self, local: &Local) {
        let mut known = self.created.local_fields.0.lock();
        known.free.push(local.clone());
        let oldest = if known.free.len() > MOST { Some(known.free.remove(0)) } else { None };
        drop(known);
        oldest.iter().for_each(|oldest| self.free_local_field(oldest));
    }

    /// Frees a local field, unless the program has done so.
    pub(crate) fn free_local_field(&self, local: &Local) {
        self.created.local_fields.0.lock().all.retain(|known| !known.is_same(local));
        if self.is_there(local) {
            // It fails if the program has freed it meanwhile.
            let _ = self.note_freed_field(&local.fields, local.field);
        }
    }

    /// The task has ended, and its local fields with it.
    pub(super) fn free_local_fields(&self) {
        let Some(made) = self.created.get() else { return };
        let KnownFields { all, free } = std::mem::take(&mut *made.local_fields.0.lock());
        drop(free);
        all.iter().for_each(|local| self.free_local_field(local));
    }

    /// Whether a local field was not freed.
    pub(crate) fn is_there(&self, local: &Local) -> bool {
        local.fields.has(local.field, self) && local.fields.generation(local.field, self) == local.generation
    }

    /// Whether a region that the task has made has fields of its own, which no other region has.
    pub(crate) fn has_own_fields(&self, region: &LogicalRegion) -> bool {
        let Some(made) = self.created.get() else { return false };
        let regions = made.regions.lock();
        let renewal = regions.by_tree.get(&region.tree().id()).and_then(|created| created.renewal.as_ref());
        renewal.is_some_and(|renewal| matches!(renewal.key.fields, RegionFields::Type(_)))
    }
}
