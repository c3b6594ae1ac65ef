//! Physical instances: memory that holds a region's data.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use maniple_analysis::validity::{self, InstancePart};
use maniple_mapper::{InstanceId, InstanceInfo, Keep};
use maniple_realm::instance::{Claim, Instance, InstanceKind};
use maniple_realm::layout::{Arrangement, LayoutConstraint, has_room};
use maniple_realm::locks::Mutex;
use maniple_realm::machine::MemoryId;
use maniple_realm::memory::OutOfMemory;
use maniple_realm::transfer::{self, Transfer};
use maniple_realm::{After, Class, Event, EventStatus, Realm, Spawn};
use maniple_region::{FieldMask, LogicalRegion, NodeId, OperatorId, Shape};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::recordings::Recordings;
use super::spares::{Listed, Spare, Spares, Why};
use crate::support::error::{Error, Result};
use crate::support::fill::FillValue;
use crate::support::recorder::Recorder;

/// Memory that can hold some fields of a region, or contributions to them.
///
/// It knows nothing of what it holds; the equivalence sets do. Its uses are recorded there too, in views; what a set
/// forgets it hands to [`validity::Instance::leave_behind`], so that no later user overtakes those uses.
pub(crate) struct PhysicalInstance {
    id: InstanceId,
    realm: Realm,
    /// The recorder of its uses, while a record is kept. Then uses that have ended are not forgotten.
    recorder: Option<Arc<Recorder>>,
    storage: Arc<Instance>,
    region: LogicalRegion,
    fields: FieldMask,
    reduction: Option<OperatorId>,
    backing: Backing,
    /// The memory was taken back: nothing may use the instance any more.
    detached: AtomicBool,
    ready: Event,
    /// That was long ago: no operation need wait for it.
    was_ready: AtomicBool,
    /// Copies in instances of lower rank go first when a memory is full.
    rank: AtomicI64,
    /// How many views and pending reductions refer to it: at zero, nothing in it will be needed again.
    holders: AtomicUsize,
    /// The lists of instances that may be given up in each memory.
    spares: Arc<Spares>,
    /// The instance and the state whose it is, once that has it: then it may be given up.
    spare: OnceLock<Spare>,
    /// On which lists of spares it is, as [bits](Why::bit).
    listed: AtomicU8,
    leftovers: Mutex<Leftovers>,
    recordings: Recordings,
    /// Spaces of which the parts are known to count as used.
    claimed: Mutex<FxHashSet<NodeId>>,
    /// The instance that this one stands for in the states of a task that got it from its parent.
    lender: Option<Arc<PhysicalInstance>>,
    /// The transfer that empties it, if it is a buffer: every contribution becomes the identity.
    emptying: OnceLock<Transfer>,
}

/// An instance about to be known to the runtime: its memory, and the values that it is for.
pub(crate) struct NewInstance {
    pub(crate) storage: Arc<Instance>,
    pub(crate) ready: Event,
    pub(crate) region: LogicalRegion,
    pub(crate) fields: FieldMask,
    /// The operator, if it is a buffer.
    pub(crate) reduction: Option<OperatorId>,
    pub(crate) backing: Backing,
}

/// So many spaces are known to be claimed at most: a program that makes ever new ones is not to keep them all.
const MOST_CLAIMED: usize = 1 << 10;

/// The rank of what is kept [while it is used](Keep::WhileUsed) alone: below that of all others.
pub(crate) const USED_ONCE: i64 = i64::MIN;

/// Whose the memory of an instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// The runtime's.
    Own,
    /// The program's, attached to a region, to be read and written.
    Attached,
    /// The program's, to be read only.
    ReadOnly,
    /// The runtime's, attached to a region for the values of a file.
    OfFile,
}

#[derive(Default)]
struct Leftovers {
    uses: Vec<(Event, Option<InstancePart>)>,
    /// Ended uses are dropped when the list is this long.
    sweep_at: usize,
}

impl Listed for PhysicalInstance {
    fn rank(&self) -> i64 {
        Self::rank(self)
    }
}

impl PhysicalInstance {
    pub(crate) fn new(
        id: InstanceId,
        realm: Realm,
        recorder: Option<Arc<Recorder>>,
        spares: Arc<Spares>,
        recordings: Recordings,
        made: NewInstance,
    ) -> Arc<Self> {
        let NewInstance { storage, ready, region, fields, reduction, backing } = made;
        let (holders, leftovers, lender) = (AtomicUsize::new(0), Mutex::default(), None);
        Arc::new(Self {
            id,
            realm,
            recorder,
            storage,
            region,
            fields,
            reduction,
            backing,
            detached: AtomicBool::new(false),
            ready,
            was_ready: AtomicBool::new(false),
            rank: AtomicI64::new(0),
            holders,
            spares,
            spare: OnceLock::new(),
            listed: AtomicU8::new(0),
            leftovers,
            recordings,
            claimed: Mutex::default(),
            lender,
            emptying: OnceLock::new(),
        })
    }

    /// The same instance for the use of a task's children. What the parent's other operations leave behind in it is not
    /// their business: the task has waited for what came before it, and what comes after waits for the task.
    pub(crate) fn lend(self: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            id: self.id,
            realm: self.realm.clone(),
            recorder: self.recorder.clone(),
            storage: Arc::clone(&self.storage),
            region: self.region.clone(),
            fields: self.fields.clone(),
            reduction: self.reduction,
            backing: self.backing,
            detached: AtomicBool::new(false),
            ready: self.ready,
            was_ready: AtomicBool::new(false),
            rank: AtomicI64::new(self.rank()),
            holders: AtomicUsize::new(0),
            spares: Arc::clone(&self.spares),
            spare: OnceLock::new(),
            listed: AtomicU8::new(0),
            leftovers: Mutex::default(),
            recordings: self.recordings.clone(),
            claimed: Mutex::default(),
            lender: Some(Arc::clone(self)),
            emptying: OnceLock::new(),
        })
    }

    pub(crate) fn id(&self) -> InstanceId {
        self.id
    }

    pub(crate) fn storage(&self) -> &Arc<Instance> {
        &self.storage
    }

    pub(crate) fn memory(&self) -> MemoryId {
        self.storage.memory()
    }

    /// The region that the instance was made for.
    pub(crate) fn region(&self) -> &LogicalRegion {
        &self.region
    }

    pub(crate) fn fields(&self) -> &FieldMask {
        &self.fields
    }

    /// The operator, if this is a buffer for contributions.
    pub(crate) fn reduction(&self) -> Option<OperatorId> {
        self.reduction
    }

    /// Whether its memory is the program's, attached to a region.
    pub(crate) fn is_attached(&self) -> bool {
        self.backing != Backing::Own
    }

    /// Whether its memory may only be read: it is given to those that read its values as long as these are current, and
    /// to no other.
    pub(crate) fn is_read_only(&self) -> bool {
        self.backing == Backing::ReadOnly
    }

    /// Whether its memory was taken back.
    pub(crate) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire)
    }

    /// Its memory is taken back by the operation that is being mapped: no later one gets it.
    pub(crate) fn detach(&self) {
        self.detached.store(true, Ordering::Release);
    }

    /// The transfer that empties a buffer: every contribution becomes the identity.
    ///
    /// # Errors
    /// An internal error if the machine refuses the transfer, or if the operator has no identity after all.
    pub(crate) fn emptying(&self) -> Result<&Transfer> {
        if let Some(known) = self.emptying.get() {
            return Ok(known);
        }
        let (InstanceKind::Reduction(operator), Some(field)) = (self.storage.kind(), self.fields.iter().next()) else {
            return Err(Error::internal(NotABuffer));
        };
        let identity = transfer::FillValue::identity_of(&operator).map_err(Error::internal)?;
        let points = self.region.space().space().clone();
        let emptying = Transfer::fill(points, (&self.storage, field), identity).map_err(Error::internal)?;
        Ok(self.emptying.get_or_init(|| emptying))
    }

    /// Whether parts of it do not count as used until they are [claimed](Self::claim).
    #[inline]
    pub(crate) fn is_in_parts(&self) -> bool {
        self.storage.is_in_parts()
    }

    /// Counts the part as used that a region has. What did not count before; nothing if that is known to be nothing.
    ///
    /// # Errors
    /// If there is no room.
    pub(crate) fn claim(&self, region: &LogicalRegion) -> Result<Option<Claim>, OutOfMemory> {
        let id = region.space().id();
        if self.claimed.lock().contains(&id) {
            return Ok(None);
        }
        let claim = self.storage.claim(region.space().space())?;
        let mut claimed = self.claimed.lock();
        if claimed.len() == MOST_CLAIMED {
            claimed.clear();
        }
        claimed.insert(id);
        Ok((claim.bytes() > 0).then_some(claim))
    }

    /// Takes a claim back. The waiters that this lets through are told soon, as they may need what is locked here.
    pub(crate) fn unclaim(&self, claim: &Claim) {
        self.claimed.lock().clear();
        if let Some(granted) = self.storage.unclaim(claim).filter(|granted| !granted.is_empty()) {
            self.realm.spawn(Spawn { class: Class::Runtime, ..Spawn::ANYWHERE }, move || drop(granted));
        }
    }

    /// Whether a region of which it has all points lies in one of its rectangles, if it is a rectangle itself: tasks
    /// may ask for the address of the first value and the distances of the others. True of a region that is no
    /// rectangle.
    #[inline]
    pub(crate) fn keeps_in_one(&self, region: &LogicalRegion) -> bool {
        self.storage.layout().keeps_in_one(region.space().space())
    }

    /// Whether a region's values lie as a constraint wants it.
    pub(crate) fn satisfies(&self, constraint: &LayoutConstraint, region: &LogicalRegion) -> bool {
        let unaligned = LayoutConstraint { align: None, ..*constraint };
        let align = constraint.align.unwrap_or(1) as usize;
        self.storage.layout().satisfies(&unaligned)
            && (align == 1 || self.is_aligned(align, region))
            && constraint.pad.is_none_or(|pad| self.reduction.is_some() || self.has_room(region, pad))
    }

    /// Whether there is room for so many points around a region, in which no values of other points lie.
    pub(crate) fn has_room(&self, region: &LogicalRegion, pad: u32) -> bool {
        let (own, points) = (self.region.space(), region.space());
        own.shape() == points.shape() && has_room(self.storage.layout().points(), points.space(), pad)
    }

    /// Whether the first value of each field of a region, or its first struct or block, is at a multiple of so many
    /// bytes.
    fn is_aligned(&self, align: usize, region: &LogicalRegion) -> bool {
        let layout = self.storage.layout();
        let Some(first) = region.space().space().rects().next() else { return true };
        let base = match self.is_attached() {
            true => self.storage.base().map_or(0, |base| base.addr().get()),
            // Its memory may still be granted.
            false if layout.align() >= align => 0,
            false => return false,
        };
        let offsets = layout.fields().map(|(_, field)| field.offset_any(first.lo()));
        match layout.spec().arrangement {
            Arrangement::StructOfArrays => offsets.into_iter().all(|offset| (base + offset).is_multiple_of(align)),
            _ => offsets.min().is_none_or(|offset| (base + offset).is_multiple_of(align)),
        }
    }

    /// A mapper says how long copies in it are kept. Whether that is not what all others say.
    pub(crate) fn keep(&self, keep: Keep) -> bool {
        let rank = match keep {
            Keep::Rank(rank) => i64::from(rank),
            Keep::WhileUsed => USED_ONCE,
        };
        if self.rank() != rank {
            self.rank.store(rank, Ordering::Relaxed);
        }
        rank != 0
    }

    /// How long copies in it are kept: see [`USED_ONCE`].
    pub(crate) fn rank(&self) -> i64 {
        self.rank.load(Ordering::Relaxed)
    }

    /// A state has it now, which holds nothing in it yet.
    pub(crate) fn belongs_to(self: &Arc<Self>, state: Weak<dyn Any + Send + Sync>) {
        let instance: Weak<Self> = Arc::downgrade(self);
        let _ = self.spare.set(Spare { instance, state });
        self.list(Why::Empty);
    }

    /// Puts it on a list of what may be given up, if it is not there and is the runtime's.
    #[inline]
    pub(crate) fn list(&self, why: Why) {
        if self.listed.load(Ordering::Relaxed) & why.bit() == 0 {
            self.list_anew(why);
        }
    }

    #[cold]
    fn list_anew(&self, why: Why) {
        let Some(spare) = self.spare.get() else { return };
        if self.listed.fetch_or(why.bit(), Ordering::AcqRel) & why.bit() == 0 {
            self.spares.insert(self.memory(), why, self.id, spare.clone());
        }
    }

    /// It was taken off a list.
    pub(crate) fn is_listed_no_more(&self, why: Why) {
        self.listed.fetch_and(!why.bit(), Ordering::AcqRel);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.storage.layout().bytes() as u64
    }

    fn add_to(&self, leftovers: &mut Leftovers, uses: impl IntoIterator<Item = (Event, Option<InstancePart>)>) {
        leftovers.uses.extend(uses);
        let is_recorded = self.recorder.is_some() || self.recordings.are_under_way();
        if leftovers.uses.len() > leftovers.sweep_at {
            // What is left behind is taken up by every set that uses the instance next, and left behind by each of them
            // again.
            let mut seen = FxHashSet::default();
            leftovers.uses.retain(|(event, part)| {
                let key = part.as_ref().map(|part| (part.points.id(), part.fields.clone()));
                (is_recorded || !self.realm.has_triggered(*event)) && seen.insert((*event, key))
            });
            leftovers.sweep_at = 32.max(2 * leftovers.uses.len());
        }
    }

    fn forget_ended(&self, leftovers: &mut Leftovers) {
        if self.recorder.is_none() && !self.recordings.are_under_way() {
            leftovers.uses.retain(|&(event, _)| !self.realm.has_triggered(event));
        }
    }

    /// The description of the instance for mappers.
    pub(crate) fn info(&self, valid: FieldMask) -> InstanceInfo {
        let spec = self.storage.layout().spec();
        // Of what is attached the runtime promises no more than that values are aligned.
        let align = (!self.is_attached() && spec.align > 1).then_some(spec.align as u32);
        let layout =
            LayoutConstraint { arrangement: Some(spec.arrangement), order: Some(spec.order), align, pad: None };
        InstanceInfo {
            id: self.id,
            memory: self.memory(),
            region: self.region.clone(),
            fields: self.fields.clone(),
            valid,
            layout,
            bytes: self.bytes(),
        }
    }
}

impl validity::Instance for PhysicalInstance {
    type Id = InstanceId;
    type Event = Event;
    type Value = FillValue;

    #[inline]
    fn id(&self) -> InstanceId {
        self.id
    }

    fn fields(&self) -> &FieldMask {
        &self.fields
    }

    fn is_lent(&self) -> bool {
        self.lender.is_some()
    }

    fn can_hold(&self, points: &Shape) -> bool {
        // What is stored between the points of a region serves for other points; room around one does not.
        let (own, stored) = (self.region.space().space(), self.storage.layout().points());
        self.reduction.is_none()
            && !self.is_read_only()
            && points.space().is_subset_of(if own.is_dense() { own } else { stored }).unwrap_or(false)
    }

    #[inline]
    fn ready(&self) -> Event {
        if self.was_ready.load(Ordering::Relaxed) {
            return Event::NONE;
        }
        if self.recorder.is_none() && matches!(self.realm.status(self.ready), EventStatus::Triggered) {
            self.was_ready.store(true, Ordering::Relaxed);
        }
        self.ready
    }

    fn holders(&self) -> usize {
        self.holders.load(Ordering::Acquire)
    }

    fn hold(&self) {
        self.holders.fetch_add(1, Ordering::AcqRel);
    }

    fn release(&self) {
        let left = self.holders.fetch_sub(1, Ordering::AcqRel) - 1;
        // What is left of it may be copies.
        self.list(if left == 0 { Why::Empty } else { Why::Copies });
    }

    #[inline]
    fn may_be_spare(&self) {
        self.list(Why::Copies);
    }

    fn is_kept(&self) -> bool {
        self.rank() > 0
    }

    fn leave_behind(&self, uses: impl IntoIterator<Item = (Event, Option<InstancePart>)>) {
        self.add_to(&mut self.leftovers.lock(), uses);
    }

    fn leave_behind_instead(&self, event: Event) {
        let mut leftovers = self.leftovers.lock();
        if !self.recordings.are_under_way() {
            leftovers.uses.clear();
        }
        self.add_to(&mut leftovers, [(event, None)]);
    }

    /// The uses left behind that have not ended. While a record is kept, also those that have.
    fn leftovers(&self) -> SmallVec<[Event; 2]> {
        let mut leftovers = self.leftovers.lock();
        self.forget_ended(&mut leftovers);
        leftovers.uses.iter().map(|(event, _)| *event).collect()
    }

    /// As few events, so that a program that runs far ahead gathers no long lists.
    fn merged_leftovers(&self) -> SmallVec<[Event; 2]> {
        const FEW: usize = 3;
        let mut leftovers = self.leftovers.lock();
        self.forget_ended(&mut leftovers);
        let uses = &mut leftovers.uses;
        // A trace is to know each of them.
        if uses.len() > FEW && !self.recordings.are_under_way() {
            let events: Vec<Event> = uses.drain(..).map(|(event, _)| event).collect();
            let all = After::follows(&events);
            let merged = match &self.recorder {
                None => self.realm.merge(all),
                Some(recorder) => recorder.merged(&self.realm, all),
            };
            uses.push((merged, None));
        }
        uses.iter().map(|(event, _)| *event).collect()
    }

    fn leftovers_near(&self, part: &InstancePart) -> SmallVec<[(Event, Option<InstancePart>); 2]> {
        let bounds = part.points.space().bounds();
        let is_near =
            |used: &InstancePart| used.fields.overlaps(&part.fields) && used.points.space().bounds().overlaps(&bounds);
        let leftovers = self.leftovers.lock();
        leftovers.uses.iter().filter(|(_, used)| used.as_ref().is_none_or(is_near)).cloned().collect()
    }
}

/// An instance of values was to be emptied.
#[derive(Debug, thiserror::Error)]
#[error("only a buffer for contributions can be emptied")]
struct NotABuffer;

impl Drop for PhysicalInstance {
    fn drop(&mut self) {
        if self.spare.get().is_some() {
            self.spares.remove(self.memory(), self.id);
        }
        // What was detached is released by the detachment.
        if self.lender.is_some() || self.is_detached() {
            return;
        }
        let leftovers: Vec<Event> = self.leftovers.get_mut().uses.drain(..).map(|(event, _)| event).collect();
        // SAFETY: no view refers to the instance any more, or it would not be dropped, and views hand their uses to the
        // leftovers. Those are copies that were issued before; tasks hold the instance until they have ended.
        let destroyed = unsafe { self.realm.destroy_instance(&self.storage, After::follows(&leftovers)) };
        debug_assert!(destroyed.is_ok(), "an instance is destroyed once: {destroyed:?}");
    }
}

impl std::fmt::Debug for PhysicalInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "instance {} of {} in {}", self.id.0, self.region, self.memory())
    }
}
