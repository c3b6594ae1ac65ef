//! Operations of one context, from launch to retirement, and the order in which they are mapped.
//!
//! An operation may be mapped when all operations that it depends on in the logical analysis have been mapped: then the
//! physical state that it will look at is the right one. The count of reasons to wait starts at one, for the launch
//! itself, so that it can't reach zero while the analysis still adds reasons; an operation that has been mapped has
//! closed its list of dependents, under the lock that adding to it takes, so that no dependent is forgotten.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use maniple_analysis::order;
use maniple_realm::UserEvent;
use maniple_realm::locks::Mutex;
use maniple_record::{Launch, LaunchNumber, OperationNumber, Place};
use maniple_region::{Provenance, TreeId};
use smallvec::SmallVec;

use crate::instances::bound::Bound;
use crate::instances::store::Store;

/// The body of an operation: it maps the operation once the operations before it have been mapped.
pub(crate) trait Mappable: Send + Sync {
    /// Maps the operation, or part of it, and has the machine carry it out. Must lead to [`Operation::mark_mapped`] and
    /// [`Operation::retire`], sooner or later, whatever goes wrong.
    fn map(self: Arc<Self>, operation: &Arc<Operation>);

    /// A name for messages and mappers.
    fn name(&self) -> &str;

    /// The mapper that it is for.
    fn mapper(&self) -> MapperNumber {
        MapperNumber::USUAL
    }

    /// The place in the program that launched it, if that is known.
    fn launched(&self) -> Option<&Provenance> {
        None
    }

    /// How many points it has.
    fn points(&self) -> u64 {
        1
    }

    /// Whether what it does may wait for anything that was launched before: the body of a task that launches, and is
    /// given a future by whatever way.
    fn may_wait(&self) -> bool {
        false
    }

    /// Whether it takes memory that the launching task holds: what was launched before takes what it needs first.
    fn takes_room(&self) -> bool {
        false
    }

    /// Whether it ends when the launching task says so: nothing that the task may wait for can come after its end.
    fn is_held(&self) -> bool {
        false
    }
}

/// A mapper of a runtime by its number: 0 is the one without a name, others are those with a name, in the order in
/// which they were given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct MapperNumber(pub(crate) u16);

impl MapperNumber {
    /// The one that is asked where none is named.
    pub(crate) const USUAL: Self = Self(0);
}

/// The task that has launched an operation, as far as operations know it.
pub(crate) trait Scope: Send + Sync {
    /// The store, which the data of all tasks shares.
    fn store(&self) -> &Store;

    /// The number of the task's beginning, while a record is kept.
    fn recorded(&self) -> Option<OperationNumber>;

    /// The data of a region that was destroyed was given up, and is not used by a replay: what is remembered of its
    /// instances is of no use.
    fn gave_up(&self, tree: TreeId);

    /// An operation may be mapped.
    fn ready_to_map(&self, operation: &Arc<Operation>);

    /// An operation has ended, and so has everything that it launched.
    fn operation_retired(&self);
}

/// An operation as it is recorded when a task launches it.
pub(crate) fn recorded(parent: OperationNumber, body: &dyn Mappable, requirements: &[Bound]) -> Launch {
    Launch {
        parent,
        name: body.name().to_owned(),
        launched: body.launched().cloned(),
        points: body.points(),
        requirements: requirements.iter().map(|bound| bound.requirement.clone()).collect(),
        after: Vec::new(),
    }
}

/// An operation in flight.
pub(crate) struct Operation {
    pub(crate) sequence: u64,
    pub(crate) scope: Arc<dyn Scope>,
    pub(crate) completion: UserEvent,
    /// Its number, while a record is kept.
    pub(crate) recorded: Option<LaunchNumber>,
    /// See [`Mappable::is_held`].
    pub(crate) is_held: bool,
    /// See [`Mappable::takes_room`].
    pub(crate) takes_room: bool,
    /// See [`Mappable::mapper`].
    pub(crate) mapper: MapperNumber,
    /// The body to map; gone once it has been mapped, so that an operation which is only remembered holds no data.
    body: Mutex<Option<Arc<dyn Mappable>>>,
    /// Operations that must be mapped before, plus one while the launch is being analysed.
    waiting: AtomicUsize,
    has_retired: AtomicBool,
    /// The operations that wait for this one to be mapped; `None` once it has been.
    dependents: Mutex<Option<SmallVec<[Arc<Operation>; 2]>>>,
}

impl Operation {
    pub(crate) fn new(
        scope: Arc<dyn Scope>,
        sequence: u64,
        completion: UserEvent,
        recorded: Option<LaunchNumber>,
        body: Arc<dyn Mappable>,
    ) -> Arc<Self> {
        Arc::new(Self {
            sequence,
            scope,
            completion,
            recorded,
            is_held: body.is_held(),
            takes_room: body.takes_room(),
            mapper: body.mapper(),
            body: Mutex::new(Some(body)),
            waiting: AtomicUsize::new(1),
            has_retired: AtomicBool::new(false),
            dependents: Mutex::new(Some(SmallVec::new())),
        })
    }

    /// The place of a point in program order, while a record is kept.
    pub(crate) fn place(&self, index: u64) -> Option<Place> {
        let launch = self.recorded?;
        Some(Place { parent: self.scope.recorded()?, launch, index })
    }

    /// The body to map, unless it has been mapped.
    pub(crate) fn body(&self) -> Option<Arc<dyn Mappable>> {
        self.body.lock().clone()
    }

    /// Makes `self` wait for `earlier` to be mapped, unless that has happened.
    pub(crate) fn map_after(self: &Arc<Self>, earlier: &Self) {
        if let Some(dependents) = &mut *earlier.dependents.lock() {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            dependents.push(Arc::clone(self));
        }
    }

    /// One reason to wait less; with the last one gone the operation is handed to its mapper.
    pub(crate) fn release(self: &Arc<Self>) {
        if self.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.scope.ready_to_map(self);
        }
    }

    /// The physical state now shows the operation: the operations that waited for that may go on.
    pub(crate) fn mark_mapped(&self) {
        drop(self.body.lock().take());
        let dependents = self.dependents.lock().take();
        for dependent in dependents.into_iter().flatten() {
            dependent.release();
        }
    }

    /// The operation has ended, well or badly, and with it everything that it launched.
    pub(crate) fn retire(&self, outcome: Result<(), &crate::Error>) {
        if self.has_retired.swap(true, Ordering::AcqRel) {
            return;
        }
        let realm = &self.scope.store().realm;
        match outcome {
            Ok(()) => realm.trigger(self.completion),
            Err(error) => realm.poison(self.completion, error.clone()),
        }
        self.scope.operation_retired();
    }
}

impl order::OrderedOperation for Operation {
    fn is_mapped(&self) -> bool {
        // While a record is kept, operations are not forgotten: it also has the dependences on those that were mapped
        // before.
        self.recorded.is_none() && self.dependents.lock().is_none()
    }

    fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation #{}", self.sequence)
    }
}
