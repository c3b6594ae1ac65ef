//! Operations on whole regions: copies, gathers and scatters, fences.

use std::sync::{Arc, LazyLock};

use maniple_realm::transfer::{Dangling, Transfer, TransferError};
use maniple_realm::{After, Event, Fault};
use maniple_record::Kind;
use maniple_region::{Field, FieldMask, FieldType, FieldValue, Privilege, Ptr, Requirement};
use maniple_space::{AnyRect, Rect};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::{Context, ContextState};
use crate::error::{Error, Result};
use crate::future::{Future, FutureMap};
use crate::instances::validity::Preconditions;
use crate::launch::{Launch, TaskLauncher};
use crate::operation::{Mappable, Operation};
use crate::regions::Region;
use crate::replication::{PER_NODE, Replica};
use crate::results::{Origin, Results, Sources};
use crate::task::{LeafCall, TaskDefinition, TaskOptions, Value};

/// A fence in flight.
struct FenceOperation {
    kind: Fence,
    context: Arc<ContextState>,
    after: Vec<Event>,
    /// Of nothing, at one point.
    results: Arc<Results>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fence {
    Mapping,
    Execution,
}

impl Fence {
    fn name(self) -> &'static str {
        match self {
            Self::Mapping => "mapping fence",
            Self::Execution => "execution fence",
        }
    }
}

impl ContextState {
    fn fence(self: &Arc<Self>, kind: Fence) -> Future<()> {
        let (realm, one) = (self.core.realm(), AnyRect::from(Rect::<1>::from(0..1)));
        let completion = realm.user_event();
        let results = Results::new(realm, Origin::BuiltIn(kind.name()), one, completion.event(), Sources::new());
        let operation = self.submit_fence(kind == Fence::Execution, completion, |earlier| {
            let after = if kind == Fence::Execution { earlier } else { Vec::new() };
            Arc::new(FenceOperation { kind, context: Arc::clone(self), after, results: Arc::clone(&results) })
        });
        match operation {
            Ok(operation) => results.produced_by(&operation),
            Err(error) => realm.poison(completion, Arc::<Fault>::from(error)),
        }
        Future::new(results, 0)
    }
}

impl Mappable for FenceOperation {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn map(self: Arc<Self>, operation: &Arc<Operation>) {
        if let (Some(place), Fence::Execution) = (operation.place(0), self.kind) {
            let after = Preconditions { follows: self.after.iter().copied().collect(), ..Preconditions::default() };
            let fence = || Kind::Fence { place };
            self.context.core.store.record_ended(Some(place.parent), &after, operation.completion.event(), fence);
        }
        operation.mark_mapped();
        let (operation, results) = (Arc::clone(operation), Arc::clone(&self.results));
        self.context.core.realm().when(After::follows(&self.after), move |_| {
            results.set(0, Ok(Value::new(())));
            operation.retire(Ok(()));
        });
    }
}

impl Context {
    /// Copies a field from one region to another, or to another field: at every point of `to`, which `from` must have too.
    ///
    /// The future fails as that of a launch does; [`Error::Launch`] if `from` lacks points of `to` or the fields have different types.
    pub fn copy<F, G, T: FieldValue, const D: usize>(
        &self,
        (from, source): (&Region<F, D>, Field<F, T>),
        (to, destination): (&Region<G, D>, Field<G, T>),
    ) -> Future<()> {
        let requirements = [one(from, source, Privilege::Read), one(to, destination, Privilege::Discard)];
        let complaint = lacking(from, "source", to, "destination");
        self.launch(built_in_launch(&COPY, requirements, complaint))
    }

    /// Copies a field through pointers: `to[p] = from[pointer[p]]` at every point of `to`, which the region of the pointers must have too.
    ///
    /// The future fails as that of a launch does, and if a pointer points outside of `from`.
    pub fn gather<F: 'static, G, P, T: FieldValue, const D: usize, const E: usize>(
        &self,
        (from, source): (&Region<F, E>, Field<F, T>),
        (pointers, pointer): (&Region<P, D>, Field<P, Ptr<F, E>>),
        (to, destination): (&Region<G, D>, Field<G, T>),
    ) -> Future<()> {
        let requirements = [
            one(from, source, Privilege::Read),
            one(pointers, pointer, Privilege::Read),
            one(to, destination, Privilege::Discard),
        ];
        let complaint = lacking(pointers, "pointers", to, "destination");
        self.launch(built_in_launch(&GATHER, requirements, complaint))
    }

    /// Copies a field through pointers: `to[pointer[p]] = from[p]` at every point of `from`, which the region of the pointers must have too.
    /// Of several points that point to one, the last in row-major order wins.
    ///
    /// The future fails as that of a launch does, and if a pointer points outside of `to`.
    pub fn scatter<F, G: 'static, P, T: FieldValue, const D: usize, const E: usize>(
        &self,
        (from, source): (&Region<F, D>, Field<F, T>),
        (pointers, pointer): (&Region<P, D>, Field<P, Ptr<G, E>>),
        (to, destination): (&Region<G, E>, Field<G, T>),
    ) -> Future<()> {
        let requirements = [
            one(from, source, Privilege::Read),
            one(pointers, pointer, Privilege::Read),
            one(to, destination, Privilege::ReadWrite),
        ];
        let complaint = lacking(pointers, "pointers", from, "source");
        self.launch(built_in_launch(&SCATTER, requirements, complaint))
    }

    /// Everything launched before is mapped before anything launched later. Returns at once; the future is there when everything before has been
    /// mapped.
    pub fn mapping_fence(&self) -> Future<()> {
        self.state.fence(Fence::Mapping)
    }

    /// What each node of the job says, at the point of its number: the one thing in a program that may differ from node to node. For what nodes know
    /// of themselves, such as how long something took or how many tasks they have run; in a runtime without others, or in a task, one value.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # Runtime::builder().workers(1).build()?.run(async |cx| {
    /// let slowest = cx.per_node(0.7_f64).reduce(Max).await?;
    /// # assert_eq!(slowest, 0.7);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    pub fn per_node<T>(&self, value: T) -> FutureMap<T>
    where
        T: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let realm = self.state.core.realm();
        match Replica::of(&self.state) {
            None => FutureMap::new(Results::ready(realm, PER_NODE, value)),
            Some(replica) => replica.per_node(realm, value),
        }
    }

    /// Everything launched before has ended before anything launched later begins. Returns at once; the future is there when everything before
    /// has ended, well or badly: it tells of no failure, and who awaits it has seen none.
    ///
    /// Mappings that the task holds itself are not waited for. In a program that several nodes run, each node goes on by itself; who awaits the future waits for
    /// all of them.
    pub fn execution_fence(&self) -> Future<()> {
        let fence = self.state.fence(Fence::Execution);
        match Replica::of(&self.state) {
            None => fence,
            Some(replica) => replica.spread(Fence::Execution.name(), &fence),
        }
    }
}

/// What is wrong if a region lacks points of another; the words say what the two are for.
fn lacking<F, G, const D: usize>(
    region: &Region<F, D>,
    role: &str,
    other: &Region<G, D>,
    other_role: &str,
) -> Option<String> {
    if other.space().is_subset_of(region.space()) {
        return None;
    }
    let point = other.space().difference(region.space()).points().next()?;
    let (region, other) = (region.logical(), other.logical());
    Some(format!(
        "the {role}, {region}, has no row {point}, but the {other_role}, {other}, does; name a part of it that fits"
    ))
}

/// What a bulk operation does with one field, of the type that the caller says.
pub(crate) fn one<F, T: FieldValue, const D: usize>(
    region: &Region<F, D>,
    field: Field<F, T>,
    privilege: Privilege,
) -> Result<Requirement> {
    let (fields, wanted) = (region.logical().fields(), FieldType::of::<T>());
    let declared = fields.type_of(field.id())?;
    if declared != wanted {
        let problem = format!("field `{}` holds {declared:?}, not {wanted:?}", fields.name_of(field.id()));
        return Err(Error::launch("bulk operation", problem));
    }
    Ok(Requirement::new(region.logical().clone(), FieldMask::of(field.id()), privilege))
}

/// A launch of a built-in task, refused if there is a complaint.
fn built_in_launch<const N: usize>(
    task: &Arc<TaskDefinition>,
    requirements: [Result<Requirement>; N],
    complaint: Option<String>,
) -> Launch<()> {
    let mut launcher = TaskLauncher::new(task);
    for requirement in requirements {
        launcher = match requirement {
            Ok(requirement) => launcher.requirement(requirement),
            Err(error) => launcher.fail(error),
        };
    }
    if let Some(problem) = complaint {
        launcher = launcher.fail(Error::launch(task.name(), problem));
    }
    launcher.typed()
}

/// A built-in leaf task of transfers. Pointers, if there are some, lead into the data of the requirement `targets`.
fn built_in(
    name: &'static str,
    targets: usize,
    body: impl Fn(&LeafCall<'_>) -> Result<Transfer> + Send + Sync + 'static,
) -> Arc<TaskDefinition> {
    let options = TaskOptions::default();
    let run = move |call: &LeafCall<'_>| -> Result<Value> {
        let transfer = body(call)?;
        // SAFETY: the task holds what the transfer reads and writes, with these privileges, while this body runs; requirements of one
        // task do not interfere.
        unsafe { transfer.execute() }.map_err(|error| explain(error, name, targets, call))?;
        Ok(Value::new(()))
    };
    Arc::new(TaskDefinition::new(name).leaf(options, run))
}

/// The error of a built-in task whose transfer failed. Pointers are the second requirement's, and lead into the data of `targets`.
fn explain(error: TransferError, name: &str, targets: usize, call: &LeafCall<'_>) -> Error {
    match (&error, call.region(1), call.region(targets)) {
        (&TransferError::DanglingPointer { field, point, pointer, .. }, Ok(pointers), Ok(targets)) => {
            Error::DanglingPointer {
                operation: name.to_owned(),
                field: pointers.fields().name_of(field),
                pointers: pointers.to_string(),
                point,
                pointer,
                region: targets.to_string(),
            }
        }
        _ => Error::application(error),
    }
}

static COPY: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    built_in("copy", 0, |call| {
        let space = call.region(1)?.space().space().clone();
        Transfer::copy(space, call.storage(0)?, call.storage(1)?).map_err(Error::application)
    })
});

static GATHER: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    built_in("gather", 0, |call| {
        let (targets, space) = (call.region(0)?.space().space().clone(), call.region(2)?.space().space().clone());
        let (from, pointers, to) = (call.storage(0)?, call.storage(1)?, call.storage(2)?);
        Transfer::gather(space, pointers, from, to, targets, Dangling::Fail).map_err(Error::application)
    })
});

static SCATTER: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    built_in("scatter", 2, |call| {
        let (space, targets) = (call.region(0)?.space().space().clone(), call.region(2)?.space().space().clone());
        let (from, pointers, to) = (call.storage(0)?, call.storage(1)?, call.storage(2)?);
        Transfer::scatter(space, pointers, from, to, targets, Dangling::Fail).map_err(Error::application)
    })
});
