//! The regions of a task: those that it holds, and those that it has made.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use maniple_realm::locks::{Mutex, MutexGuard};
use maniple_region::{FieldId, FieldMask, FieldSpace, LogicalRegion, Privilege, Requirement, Target, TreeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::created::Created;
use super::local_fields::LocalFields;
use super::renewal::Renewals;
use super::scratch::ScratchRegions;
use super::{ContextPart, ContextState};
use crate::instances::bound::Bound;
use crate::instances::state::RegionState;
use crate::instances::validity::Instances;
use crate::operation::deletions::Log;
use crate::support::error::{Error, Result};

/// A privilege that a task holds, and the state of the data that it is about.
#[derive(Clone)]
pub(crate) struct HeldRegion {
    pub(crate) region: LogicalRegion,
    pub(crate) fields: FieldMask,
    pub(crate) privilege: Privilege,
    pub(crate) state: Arc<RegionState>,
    /// The instances in which the parent wants the data when the task ends; none if the state is the parent's own.
    pub(crate) home: Option<Instances>,
}

impl HeldRegion {
    /// Whether the data is in the state of the parent, where others than this task's operations may change it.
    pub(super) fn is_borrowed(&self) -> bool {
        self.home.is_none() || matches!(self.privilege, Privilege::Reduce(_))
    }
}

/// Regions that a task has made, or tasks that it has launched and that have ended.
#[derive(Default)]
pub(super) struct Regions {
    pub(super) by_tree: FxHashMap<TreeId, Created>,
    sweep_at: usize,
}

/// The regions and field spaces that a task has made, and its deletions.
#[derive(Default)]
pub(super) struct Made {
    pub(super) regions: Mutex<Regions>,
    /// The lowest number that something made by the task may have; unset, zero, before it makes anything.
    first: AtomicU64,
    deletions: Arc<Log>,
    field_spaces: Mutex<FieldSpaces>,
    pub(super) scratch: ScratchRegions,
    pub(super) renewals: Renewals,
    pub(super) local_fields: LocalFields,
    /// The task has freed fields: ids of fields may be those of new ones.
    frees_fields: AtomicBool,
}

/// Field spaces that a task has made, or tasks that it has launched and that have ended, by their numbers: as long as
/// there are handles of them.
#[derive(Default)]
struct FieldSpaces {
    made: FxHashMap<u64, Weak<FieldSpace>>,
    sweep_at: usize,
}

impl FieldSpaces {
    fn extend(&mut self, made: impl IntoIterator<Item = (u64, Weak<FieldSpace>)>) {
        self.made.extend(made);
        if self.made.len() > self.sweep_at {
            self.made.retain(|_, fields| fields.strong_count() > 0);
            self.sweep_at = 64.max(2 * self.made.len());
        }
    }
}

impl Made {
    /// The run of the program has ended whose top-level task made these: `deletions` are for later runs.
    pub(super) fn end_with_run(&self, deletions: &Log) {
        self.regions
            .lock()
            .by_tree
            .values()
            .for_each(|created| created.state.lock().validity.root().tree().end_with_run());
        deletions.absorb(&self.deletions, 0);
    }
}

impl Regions {
    /// Takes the regions that no program can name any more.
    pub(super) fn take_nameless(&mut self) -> Vec<(TreeId, Created)> {
        self.by_tree.extract_if(|_, created| created.is_nameless()).collect()
    }
}

/// Fields that took the ids of freed ones: they are to start as zero.
pub(crate) struct Renewed {
    pub(crate) region: LogicalRegion,
    pub(crate) fields: FieldMask,
    pub(crate) state: Arc<RegionState>,
}

/// A task that has made no more regions than this does not look for those that no program can name any more.
const MANY_REGIONS: usize = 32;

impl ContextState {
    /// The task has made a region: it may do everything with it.
    pub(crate) fn add_created(&self, region: &LogicalRegion) {
        self.parts.iter().for_each(|part| part.made(region));
        let state = RegionState::fresh(region.clone());
        self.core.store.register(&state);
        let created = Created::new(region, state, self);
        let mut regions = self.created.regions.lock();
        regions.by_tree.insert(region.tree().id(), created);
        self.sweep_regions(regions);
    }

    /// Regions that the task made, with what is known of their data: they pass to the parent when the task ends, unless
    /// no handle names them any more, or they are scratch regions.
    pub(crate) fn take_created(&self) -> FxHashMap<TreeId, Created> {
        let mut created = match self.created.get() {
            Some(made) => std::mem::take(&mut made.regions.lock().by_tree),
            None => return FxHashMap::default(),
        };
        let scratch = self.created.scratch.take();
        self.created.renewals.clear();
        created.retain(|tree, created| !scratch.contains(tree) && !created.is_nameless());
        created
    }

    /// Lets go of regions that no program can name any more, when there are many.
    pub(super) fn sweep_regions(&self, mut regions: MutexGuard<'_, Regions>) {
        if regions.by_tree.len() <= regions.sweep_at.max(MANY_REGIONS) {
            return;
        }
        let mut gone = regions.take_nameless();
        let are_still_many = regions.by_tree.len() > MANY_REGIONS.max(regions.sweep_at / 2);
        regions.sweep_at = 2 * regions.by_tree.len();
        drop(regions);
        // Launches that repeat name what they used. They are found out anew if there are more.
        if are_still_many && !self.is_replicated() {
            self.parts.iter().for_each(ContextPart::release_regions);
            let mut regions = self.created.regions.lock();
            gone.extend(regions.take_nameless());
            regions.sweep_at = 2 * regions.by_tree.len();
        }
        if gone.is_empty() {
            return;
        }
        let trees: Vec<TreeId> = gone.iter().map(|(tree, _)| *tree).collect();
        if let Some(stream) = self.stream.get() {
            let mut stream = stream.lock();
            trees.iter().for_each(|&tree| stream.forget_tree(tree));
        }
        self.parts.iter().for_each(|part| part.forget_trees(&trees));
    }

    /// Takes over regions that a task has made which has ended.
    pub(crate) fn adopt(&self, mut created: FxHashMap<TreeId, Created>) {
        // The task may have come before fields were freed that are for this one.
        created.values_mut().for_each(|created| (created.changes, created.renewal) = (u64::MAX, None));
        if !created.is_empty() {
            let mut regions = self.created.regions.lock();
            regions.by_tree.extend(created);
            self.sweep_regions(regions);
        }
    }

    /// The task is about to make something.
    pub(crate) fn makes(&self) {
        let first = &self.created.first;
        if first.load(Ordering::Relaxed) == 0 {
            let next = self.core.forest().next_id();
            // Of several threads the first.
            let _ = first.compare_exchange(0, next, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// The lowest number that something made by the task may have, if it has made anything.
    pub(crate) fn first_made(&self) -> Option<u64> {
        let first = self.created.get()?.first.load(Ordering::Acquire);
        (first > 0).then_some(first)
    }

    /// The task has made a field space.
    pub(crate) fn note_fields(&self, fields: &Arc<FieldSpace>) {
        self.created.field_spaces.lock().extend([(fields.id(), Arc::downgrade(fields))]);
    }

    /// Whether the task has made a field space, or a task that it has launched and that has ended. A top-level task has
    /// what earlier ones have made.
    pub(crate) fn made_fields(&self, fields: &FieldSpace) -> bool {
        let is_known = |made: &Made| made.field_spaces.lock().made.contains_key(&fields.id());
        let is_of_this_run = || self.first_made().is_some_and(|first| fields.id() >= first);
        self.created.get().is_some_and(is_known) || (self.depth == 0 && !is_of_this_run())
    }

    /// The task has ended: its field spaces are its launcher's.
    pub(crate) fn hand_up_field_spaces(&self, parent: &Self) {
        let Some(made) = self.created.get() else { return };
        let spaces = std::mem::take(&mut made.field_spaces.lock().made);
        if !spaces.is_empty() {
            parent.created.field_spaces.lock().extend(spaces);
        }
    }

    /// The log of the task's deletions.
    pub(crate) fn deletions(&self) -> &Arc<Log> {
        &self.created.deletions
    }

    /// The log of the task's deletions, unless it has neither made nor destroyed anything.
    #[inline]
    pub(crate) fn own_deletions(&self) -> Option<&Arc<Log>> {
        self.created.get().map(|made| &made.deletions)
    }

    /// Forgets a region that was destroyed: its instances go when the operations that use them have ended.
    pub(crate) fn forget(&self, region: &LogicalRegion) {
        let tree = region.tree().id();
        self.parts.iter().for_each(|part| part.destroyed(self, region));
        let created = self.created.regions.lock().by_tree.remove(&tree);
        drop(created);
        self.stream.lock().forget_tree(tree);
    }

    /// Whether the task may use a region or partition with the name of another, which it has used and which is there:
    /// it has made the region, or holds it.
    pub(crate) fn may_use(&self, target: &Target) -> bool {
        let (tree, made) = (target.tree(), self.created.get());
        let is_made = |made: &Made| {
            let regions = made.regions.lock();
            regions.by_tree.get(&tree.id()).is_some_and(|created| created.name == tree.name_number())
        };
        made.is_some_and(is_made) || self.held.iter().any(|held| Arc::ptr_eq(held.region.tree(), tree))
    }

    /// Refuses to destroy what another task made.
    pub(crate) fn check_created(&self, region: &LogicalRegion) -> Result<()> {
        self.core.forest().check_own_region(region)?;
        let known = self.created.regions.lock().by_tree.get(&region.tree().id()).map(|created| created.is(region));
        if known == Some(true) {
            return Ok(region.tree().check_alive(self)?);
        }
        region.check_alive(self)?;
        Err(Error::NotTheMaker { task: self.name().to_owned(), region: region.root_region().to_string() })
    }

    /// Checks that the task may launch an operation with this requirement, and finds the state of its data (Bauer 2014,
    /// section 4.2). The session under way has been left: fields may have to be made zero here, in program order.
    pub(crate) fn bind(self: &Arc<Self>, operation: &str, requirement: Requirement) -> Result<Bound> {
        let mut renewed = Vec::new();
        self.fetch_pieces(std::slice::from_ref(&requirement), &[]);
        let bound = self.bind_and(operation, requirement, &mut |zero| renewed.push(zero))?;
        for zero in renewed {
            self.submit_zero(zero)?;
        }
        Ok(bound)
    }

    /// As [`bind`](Self::bind), for a caller that sees to it itself that renewed fields are zero first.
    pub(crate) fn bind_and(
        &self,
        operation: &str,
        requirement: Requirement,
        renew: &mut dyn FnMut(Renewed),
    ) -> Result<Bound> {
        let bound = requirement.target.bound();
        self.core.forest().check_own_region(&bound)?;
        bound.check_place()?;
        if let Err(error) = requirement.target.check_alive(self) {
            self.check_open()?;
            return Err(error.into());
        }
        let fields = requirement.target.tree().fields();
        if let Some(field) = requirement.fields.iter().find(|&field| !fields.has(field, self)) {
            return Err(maniple_region::RegionError::NoSuchField { field }.into());
        }
        if let Privilege::Reduce(operator) = requirement.privilege {
            for field in requirement.fields.iter() {
                let known = operator.reduction_on(fields.type_of(field)?);
                known.ok_or_else(|| Error::no_reduction(operator, &bound, field))?;
            }
        }
        if let Some(state) = self.find_created(&bound, renew) {
            let parts = SmallVec::from_iter([(requirement.fields.clone(), state)]);
            return Ok(Bound { requirement, parts });
        }
        let mut missing = requirement.fields.clone();
        let mut parts = SmallVec::new();
        for held in self.held.iter().filter(|held| bound.is_within(&held.region)) {
            let common = held.fields.intersection(&missing);
            if !common.is_empty() && held.privilege.covers(requirement.privilege) {
                missing = missing.difference(&common);
                parts.push((common, Arc::clone(&held.state)));
            }
        }
        if missing.is_empty() {
            return Ok(Bound { requirement, parts });
        }
        Err(self.not_held(operation, &requirement, &missing))
    }

    /// Fields of a requirement's region that took the ids of freed ones and are to become zero now, if the task has
    /// made it.
    pub(crate) fn new_fields(&self, requirement: &Requirement) -> Option<Renewed> {
        let (bound, mut new) = (requirement.target.bound(), None);
        // What another runtime has made may have the same number.
        if self.core.forest().check_own_region(&bound).is_ok() {
            self.find_created(&bound, &mut |zero| new = Some(zero));
        }
        new
    }

    /// The state of a region that the task made. Fields that took the ids of freed ones start as zero, at this place in
    /// program order.
    pub(super) fn find_created(
        &self,
        region: &LogicalRegion,
        renew: &mut dyn FnMut(Renewed),
    ) -> Option<Arc<RegionState>> {
        let mut created = self.created.get()?.regions.lock();
        let known = created.by_tree.get_mut(&region.tree().id()).filter(|created| created.is(region))?;
        let state = Arc::clone(&known.state);
        let fields = region.fields();
        if known.changes == fields.changes() {
            return Some(state);
        }
        known.changes = fields.changes();
        let generations = &mut known.generations;
        let is_new = |field: &FieldId| {
            let generation = fields.generation(*field, self);
            generations.insert(*field, generation).unwrap_or(0) != generation
        };
        let renewed: FieldMask = fields.fields().iter().filter(is_new).collect();
        drop(created);
        if !renewed.is_empty() {
            renew(Renewed { region: region.root_region(), fields: renewed, state: Arc::clone(&state) });
        }
        Some(state)
    }

    /// The task frees a field.
    pub(crate) fn note_freed_field(&self, fields: &FieldSpace, field: FieldId) -> Result<()> {
        let (tombstone, times) = fields.mark_freed(field)?;
        self.created.frees_fields.store(true, Ordering::Relaxed);
        self.note_deletion((fields.id(), Some(field)), tombstone, times);
        Ok(())
    }

    /// Whether the task has freed fields.
    #[inline]
    pub(crate) fn frees_fields(&self) -> bool {
        self.created.get().is_some_and(|made| made.frees_fields.load(Ordering::Relaxed))
    }

    /// Whether the fields of a requirement are there, and none is to become zero yet as it took the id of one that was
    /// freed. Known of regions that the task has made.
    #[cold]
    pub(crate) fn has_fields_of(&self, requirement: &Requirement) -> bool {
        let (Some(made), tree) = (self.created.get(), requirement.target.tree()) else { return false };
        let regions = made.regions.lock();
        let known = regions.by_tree.get(&tree.id()).filter(|created| created.name == tree.name_number());
        known.is_some_and(|created| created.changes == tree.fields().changes())
            && requirement.fields.iter().all(|field| tree.fields().has(field, self))
    }

    /// Whether data of a requirement is in the state of the parent, where others than this task's operations may change
    /// it.
    pub(crate) fn is_borrowed(&self, bound: &Bound) -> bool {
        let is_lent = |state: &Arc<RegionState>| {
            let held = self.held.iter().find(|held| Arc::ptr_eq(&held.state, state));
            held.is_some_and(HeldRegion::is_borrowed)
        };
        bound.parts.iter().any(|(_, state)| is_lent(state))
    }

    /// As [`is_borrowed`](Self::is_borrowed), before the requirement is bound to states.
    pub(crate) fn borrows(&self, requirement: &Requirement) -> bool {
        let mut borrowed = self.held.iter().filter(|held| held.is_borrowed());
        borrowed.any(|held| {
            held.fields.overlaps(&requirement.fields)
                && held.privilege.covers(requirement.privilege)
                && requirement.target.bound().is_within(&held.region)
        })
    }

    pub(super) fn not_held(&self, operation: &str, requirement: &Requirement, missing: &FieldMask) -> Error {
        let bound = requirement.target.bound();
        let held = self.held.iter().find(|held| bound.is_within(&held.region) && held.fields.overlaps(missing));
        Error::PrivilegeNotHeld {
            operation: operation.to_owned(),
            parent: self.name().to_owned(),
            region: requirement.target.to_string(),
            fields: requirement.target.tree().fields().names_of(missing),
            wanted: requirement.privilege.to_string(),
            held: held.map_or_else(
                || "holds no privilege on them".to_owned(),
                |held| format!("only {} them", held.privilege),
            ),
            launched: None,
        }
    }
}
