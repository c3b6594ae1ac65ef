//! Operations on whole regions: copies, gathers and scatters, fences.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use maniple_realm::clock::Clock;
use maniple_realm::transfer::{Dangling, Transfer, TransferError};
use maniple_realm::{After, Event, Fault};
use maniple_record::Kind;
use maniple_region::{
    FieldId, FieldMask, FieldType, FieldValue, LogicalRegion, OperatorId, Privilege, Ptr, ReductionOperator,
    Requirement, register_reduction,
};
use maniple_space::{AnyRect, Rect};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::{Context, ContextState, Reach};
use crate::data::region_field::RegionField;
use crate::data::regions::Region;
use crate::future::{Argument, Future, FutureMap};
use crate::instances::validity::Preconditions;
use crate::launch::{Launch, TaskLauncher};
use crate::nodes::replication::{PER_NODE, Replica};
use crate::operation::lifecycle::{Mappable, Operation};
use crate::results::{Origin, Results, Sources};
use crate::support::error::{Error, Result};
use crate::task::{Codec, LeafCall, TaskDefinition, TaskOptions, Value};

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
    /// Operations launched later do not wait.
    Time,
}

impl Fence {
    fn reach(self) -> Reach {
        match self {
            Self::Mapping => Reach::Mapping,
            Self::Time => Reach::Ends,
            Self::Execution => Reach::Execution,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Mapping => "mapping fence",
            Self::Execution => "execution fence",
            Self::Time => "time",
        }
    }
}

impl ContextState {
    fn fence(self: &Arc<Self>, kind: Fence) -> Future<()> {
        let (realm, one) = (self.core.realm(), AnyRect::from(Rect::<1>::from(0..1)));
        let completion = realm.user_event();
        let results = Results::new(realm, Origin::BuiltIn(kind.name()), one, completion.event(), Sources::new());
        let operation = self.submit_fence(kind.reach(), completion, |after| {
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
    /// Copies a field from one region to another, or to another field: at every point of `to`, which `from` must have
    /// too.
    ///
    /// The future fails as that of a launch does; [`Error::Launch`] if `from` lacks points of `to` or the fields have
    /// different types.
    #[track_caller]
    pub fn copy<F, G, T: FieldValue, const D: usize>(
        &self,
        from: RegionField<'_, F, T, D>,
        to: RegionField<'_, G, T, D>,
    ) -> Future<()> {
        let requirements = [one(&from, Privilege::Read), one(&to, Privilege::Discard)];
        let complaint = lacking(from.region, "source", to.region, "destination");
        self.launch(built_in_launch(&COPY, requirements, complaint))
    }

    /// Copies several fields from one region to another, or to other fields: each of the first to the second of its
    /// pair. Both regions come first, then the fields, where [`copy`](Self::copy) takes fields of regions. One
    /// operation, however many they are; of none, nothing happens.
    ///
    /// The future fails as that of [`copy`](Self::copy) does; [`Error::Launch`] also if a field is to be copied to
    /// twice.
    ///
    /// ```
    /// use maniple::prelude::*;
    ///
    /// #[derive(Fields)]
    /// struct Cell {
    ///     mass: f64,
    ///     charge: i32,
    /// }
    ///
    /// # Runtime::builder().workers(1).build()?.run(async |cx| {
    /// let (cells, saved) = (cx.region::<Cell>(10)?, cx.region::<Cell>(10)?);
    /// cx.fill(&cells, Cell::charge, 3)?;
    /// cx.copy_fields(&cells, &saved, &[(Cell::mass.into(), Cell::mass.into()), (Cell::charge.into(), Cell::charge.into())]).await?;
    /// assert_eq!(cx.map_read(&saved, Cell::charge).await?.to_vec(), [3; 10]);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    #[track_caller]
    pub fn copy_fields<F, G, const D: usize>(
        &self,
        from: &Region<F, D>,
        to: &Region<G, D>,
        fields: &[(FieldId, FieldId)],
    ) -> Future<()> {
        if fields.is_empty() {
            return Future::new(Results::ready(self.state.core.realm(), "copy", ()), 0);
        }
        let complaint = wrong_pairs(from.logical(), to.logical(), fields);
        let complaint = complaint.or_else(|| lacking(from, "source", to, "destination"));
        let all = |region: &LogicalRegion, privilege, field: fn(&(FieldId, FieldId)) -> FieldId| {
            Ok(Requirement::new(region.clone(), fields.iter().map(field).collect(), privilege))
        };
        let requirements =
            [all(from.logical(), Privilege::Read, |pair| pair.0), all(to.logical(), Privilege::Discard, |pair| pair.1)];
        self.launch(built_in_launcher(&COPY_FIELDS, requirements, complaint).arguments(fields.to_vec()).typed())
    }

    /// Contributes a field's values to another: at every point of `to`, which `from` must have too, the operator puts
    /// that of `from` into that of `to`. Takes its place in the program as a task that reduces does, so several run
    /// side by side.
    ///
    /// The future fails as that of [`copy`](Self::copy) does.
    ///
    /// ```
    /// use maniple::prelude::*;
    ///
    /// #[derive(Fields)]
    /// struct Cell {
    ///     mass: f64,
    ///     total: f64,
    /// }
    ///
    /// # Runtime::builder().workers(1).build()?.run(async |cx| {
    /// let cells = cx.region::<Cell>(10)?;
    /// cx.fill(&cells, Cell::mass, 1.5)?;
    /// cx.contribute(Sum, cells.field(Cell::mass), cells.field(Cell::total));
    /// cx.contribute(Sum, cells.field(Cell::mass), cells.field(Cell::total));
    /// assert_eq!(cx.map_read(&cells, Cell::total).await?.to_vec(), [3.0; 10]);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    #[track_caller]
    pub fn contribute<Op, F, G, T, const D: usize>(
        &self,
        _operator: Op,
        from: RegionField<'_, F, Op::Rhs, D>,
        to: RegionField<'_, G, T, D>,
    ) -> Future<()>
    where
        Op: ReductionOperator<T>,
        T: FieldValue,
    {
        register_reduction::<Op, T>();
        let reduces = Privilege::Reduce(OperatorId::of::<Op>());
        let requirements = [one(&from, Privilege::Read), one(&to, reduces)];
        let complaint = lacking(from.region, "source", to.region, "destination");
        self.launch(built_in_launch(&CONTRIBUTE, requirements, complaint))
    }

    /// Copies a field through pointers: `to[p] = from[pointer[p]]` at every point of `to`, which the region of the
    /// pointers must have too.
    ///
    /// The future fails as that of a launch does, and if a pointer points outside of `from`.
    #[track_caller]
    pub fn gather<F: 'static, G, P, T: FieldValue, const D: usize, const E: usize>(
        &self,
        from: RegionField<'_, F, T, E>,
        pointers: RegionField<'_, P, Ptr<F, E>, D>,
        to: RegionField<'_, G, T, D>,
    ) -> Future<()> {
        let requirements = [one(&from, Privilege::Read), one(&pointers, Privilege::Read), one(&to, Privilege::Discard)];
        let complaint = lacking(pointers.region, "pointers", to.region, "destination");
        self.launch(built_in_launch(&GATHER, requirements, complaint))
    }

    /// Copies a field through pointers: `to[pointer[p]] = from[p]` at every point of `from`, which the region of the
    /// pointers must have too. Of several points that point to one, the last in row-major order wins.
    ///
    /// The future fails as that of a launch does, and if a pointer points outside of `to`.
    #[track_caller]
    pub fn scatter<F, G: 'static, P, T: FieldValue, const D: usize, const E: usize>(
        &self,
        from: RegionField<'_, F, T, D>,
        pointers: RegionField<'_, P, Ptr<G, E>, D>,
        to: RegionField<'_, G, T, E>,
    ) -> Future<()> {
        let requirements =
            [one(&from, Privilege::Read), one(&pointers, Privilege::Read), one(&to, Privilege::ReadWrite)];
        let complaint = lacking(pointers.region, "pointers", from.region, "source");
        self.launch(built_in_launch(&SCATTER, requirements, complaint))
    }

    /// Everything launched before is mapped before anything launched later. Returns at once; the future is there when
    /// everything before has been mapped.
    pub fn mapping_fence(&self) -> Future<()> {
        self.state.fence(Fence::Mapping)
    }

    /// The values that the nodes of the job give, each at the point of its node's number: the one thing in a program
    /// that may differ from node to node. For facts that nodes know of themselves, such as how long something took or
    /// how many tasks they have run. In a runtime without other nodes, or in a task, there is one value.
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

    /// Everything launched before has ended before anything launched later begins. Returns at once; the future is there
    /// when everything before has ended, well or badly: it tells of no failure, and a program that awaits it has seen
    /// none.
    ///
    /// Mappings that the task holds itself are not waited for. In a program that several nodes run, each node goes on
    /// by itself; a program that awaits the future waits for all of them.
    pub fn execution_fence(&self) -> Future<()> {
        let fence = self.state.fence(Fence::Execution);
        match Replica::of(&self.state) {
            None => fence,
            Some(replica) => replica.spread(Fence::Execution.name(), &fence),
        }
    }

    /// The time at which everything launched before has ended, well or badly, since the runtime was made. Returns at
    /// once, and what is launched later does not wait: for programs that time a part of themselves and go on.
    ///
    /// In a program that several nodes run, it is the time at which all of them have come there, by the clock of one. A
    /// replay ends here, as at a fence.
    ///
    /// ```
    /// use maniple::prelude::*;
    ///
    /// #[task(leaf)]
    /// fn work(to: u64) -> u64 {
    ///     (0..to).sum()
    /// }
    ///
    /// Runtime::builder().workers(2).build()?.run(async |cx: &Context| {
    ///     let before = cx.time();
    ///     let sum = cx.launch(work(1_000_000));
    ///     let after = cx.time();
    ///     cx.launch(work(10)); // does not wait for that
    ///     let took = before.zip_with(&after, |before, after| after - before).await?;
    ///     println!("{} in {took:?}", sum.await?);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    pub fn time(&self) -> Future<Duration> {
        let (fence, clock) = (self.state.fence(Fence::Time), self.state.core.clock());
        match Replica::of(&self.state) {
            None => fence.map(move |()| Duration::from_nanos(clock.now_ns())),
            Some(replica) => self.time_after(&replica.spread(Fence::Time.name(), &fence)),
        }
    }

    /// The time at which a result is there, or soon after, since the runtime was made: for a part of a program that
    /// others run beside. It fails if the task has failed. In a program that several nodes run, it is the time of one
    /// of them.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # #[task(leaf)]
    /// # fn work(to: u64) -> u64 { (0..to).sum() }
    /// # Runtime::builder().workers(2).build()?.run(async |cx: &Context| {
    /// let (one, other) = (cx.launch(work(10)), cx.launch(work(1_000_000)));
    /// println!("{:?} and {:?}", cx.time_after(&one).await?, cx.time_after(&other).await?);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    #[track_caller]
    pub fn time_after<T: Clone + Send + Sync + 'static>(&self, future: &Future<T>) -> Future<Duration> {
        let after = Argument::Future(future.clone());
        self.launch(TaskLauncher::new(&TIME).after(&after).arguments(self.state.core.clock()).typed())
    }
}

/// The problem if a region lacks points of another region; the words say what the two regions are for.
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

/// The requirement of a bulk operation for one field, of the type that the caller names.
pub(crate) fn one<F, T: FieldValue, const D: usize>(
    of: &RegionField<'_, F, T, D>,
    privilege: Privilege,
) -> Result<Requirement> {
    of_type(of.region.logical(), of.field.id(), FieldType::of::<T>(), privilege)
}

/// A requirement of one field, which has to have this type.
pub(crate) fn of_type(
    region: &LogicalRegion,
    field: FieldId,
    wanted: FieldType,
    privilege: Privilege,
) -> Result<Requirement> {
    let fields = region.fields();
    let declared = fields.type_of(field)?;
    if declared != wanted {
        let problem = format!("field `{}` holds {declared:?}, not {wanted:?}", fields.name_of(field));
        return Err(Error::launch("bulk operation", problem));
    }
    Ok(Requirement::new(region.clone(), FieldMask::of(field), privilege))
}

/// The problem if fields of two regions can't be copied in pairs.
fn wrong_pairs(from: &LogicalRegion, to: &LogicalRegion, fields: &[(FieldId, FieldId)]) -> Option<String> {
    let known = |region: &LogicalRegion, field| region.fields().type_of(field).map_err(|error| error.to_string());
    fields.iter().enumerate().find_map(|(number, &(source, destination))| {
        let (one, other) = match known(from, source).and_then(|one| Ok((one, known(to, destination)?))) {
            Ok(types) => types,
            Err(problem) => return Some(problem),
        };
        let (source_name, name) = (from.fields().name_of(source), to.fields().name_of(destination));
        if one != other {
            return Some(format!(
                "field `{source_name}` holds {one:?}, and field `{name}` {other:?}; copy it to a field of its type"
            ));
        }
        let is_twice = fields[..number].iter().any(|pair| pair.1 == destination);
        is_twice.then(|| format!("field `{name}` is to be copied to twice; name it once"))
    })
}

/// A launch of a built-in task, refused if there is a complaint.
fn built_in_launch<const N: usize>(
    task: &Arc<TaskDefinition>,
    requirements: [Result<Requirement>; N],
    complaint: Option<String>,
) -> Launch<()> {
    built_in_launcher(task, requirements, complaint).typed()
}

fn built_in_launcher<const N: usize>(
    task: &Arc<TaskDefinition>,
    requirements: [Result<Requirement>; N],
    complaint: Option<String>,
) -> TaskLauncher {
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
    launcher
}

/// A built-in leaf task of transfers. Pointers, if there are some, lead into the data of the requirement `targets`.
fn built_in<T: IntoIterator<Item = Transfer>>(
    name: &'static str,
    targets: usize,
    body: impl Fn(&LeafCall<'_>) -> Result<T> + Send + Sync + 'static,
) -> Arc<TaskDefinition> {
    let options = TaskOptions::default();
    let run = move |call: &LeafCall<'_>| -> Result<Value> {
        for transfer in body(call)? {
            // SAFETY: the task holds what the transfer reads and writes, with these privileges, while this body runs;
            // requirements of one task do not interfere.
            unsafe { transfer.execute() }.map_err(|error| explain(error, name, targets, call))?;
        }
        Ok(Value::new(()))
    };
    Arc::new(TaskDefinition::new(name).leaf(options, run))
}

/// The error of a built-in task whose transfer failed. Pointers are the second requirement's, and lead into the data of
/// `targets`.
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
                launched: None,
            }
        }
        _ => Error::application(error),
    }
}

static TIME: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    let read = |call: &LeafCall<'_>| Ok(Value::new(Duration::from_nanos(call.arguments::<Clock>()?.now_ns())));
    let task = TaskDefinition::new("time").leaf(TaskOptions::default(), read);
    // All nodes take the time of the first.
    Arc::new(task.codec(Codec::of::<Duration>()).dealt_in_blocks())
});

static COPY: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    built_in("copy", 0, |call| {
        let space = call.region(1)?.space().space().clone();
        Transfer::copy(space, call.storage(0)?, call.storage(1)?).map(Some).map_err(Error::application)
    })
});

static COPY_FIELDS: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    built_in("copy", 0, |call| {
        let (pairs, space) = (call.arguments::<Vec<(FieldId, FieldId)>>()?, call.region(1)?.space().space());
        let copy = |&(source, destination): &(FieldId, FieldId)| {
            let (from, to) = (call.storage_of(0, source)?, call.storage_of(1, destination)?);
            Transfer::copy(space.clone(), from, to).map_err(Error::application)
        };
        pairs.iter().map(copy).collect::<Result<Vec<_>>>()
    })
});

static CONTRIBUTE: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    built_in("contribution", 0, |call| {
        let (operator, mode) = call.reduction(1)?;
        let space = call.region(1)?.space().space().clone();
        if space.is_empty() {
            // A field may be contributed to itself at no points.
            return Ok(None);
        }
        let transfer = Transfer::reduce(space, call.storage(0)?, call.storage(1)?, operator, mode);
        transfer.map(Some).map_err(Error::application)
    })
});

static GATHER: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    built_in("gather", 0, |call| {
        let (targets, space) = (call.region(0)?.space().space().clone(), call.region(2)?.space().space().clone());
        let (from, pointers, to) = (call.storage(0)?, call.storage(1)?, call.storage(2)?);
        Transfer::gather(space, pointers, from, to, targets, Dangling::Fail).map(Some).map_err(Error::application)
    })
});

static SCATTER: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    built_in("scatter", 2, |call| {
        let (space, targets) = (call.region(0)?.space().space().clone(), call.region(2)?.space().space().clone());
        let (from, pointers, to) = (call.storage(0)?, call.storage(1)?, call.storage(2)?);
        Transfer::scatter(space, pointers, from, to, targets, Dangling::Fail).map(Some).map_err(Error::application)
    })
});
