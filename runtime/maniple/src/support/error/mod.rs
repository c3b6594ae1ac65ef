//! Errors of the runtime, and the tasks that are told of them.

mod attachment;
mod cause;
mod constructors;
mod file;
mod launched;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use maniple_mapper::{MappingFailure, MappingFileError};
use maniple_realm::machine::MemoryId;
use maniple_realm::pressure::Exhausted;
use maniple_region::RegionError;
use maniple_space::AnyPoint;

pub use self::attachment::AttachmentError;
pub(crate) use self::cause::Cause;
pub use self::file::FileError;
pub use self::launched::Launched;
use self::launched::shown;

/// The result of an operation of the runtime.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation did not do what it was asked to.
///
/// Errors travel: a task that fails, panics or cannot be mapped makes every operation that needs its results fail with
/// the same error, and a task that awaits one of their futures gets it. Cheap to clone. An error says where the failed
/// operation was launched, if that is known ([`provenance`](Self::provenance)).
///
/// A failure that a task was told of, by a future, an inline mapping or a partition that it awaited, is the task's to
/// handle: it is *seen*, wherever else it spreads. One that nothing has seen when the task ends becomes the task's own.
///
/// Its [`Debug`](fmt::Debug) form is the message too, with the stack of a panic where there is one: it is what a `main`
/// that returns an error shows, and what `unwrap` does.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A task's body panicked.
    #[error("task `{task}`{} panicked{}: {message}{}", at(.point), located(.location), shown(.launched))]
    Panicked {
        /// The task.
        task: String,
        /// The point of an index launch.
        point: Option<AnyPoint>,
        /// The message of the panic.
        message: Arc<str>,
        /// File, line and column.
        location: Option<String>,
        /// The stack, if `RUST_BACKTRACE` asked for it.
        backtrace: Option<Arc<str>>,
        /// The place where it was launched.
        launched: Launched,
    },
    /// A task's body waits for something, but its waker has been dropped: it would wait for ever, so it was ended.
    #[error(
        "`{task}`{} waits for something, but its waker has been dropped: whatever it awaits has to keep its waker until it is ready{}",
        at(.point),
        shown(.launched)
    )]
    Stranded {
        /// The task.
        task: String,
        /// The point of an index launch.
        point: Option<AnyPoint>,
        /// The place where it was launched.
        launched: Launched,
    },
    /// A task's body returned an error.
    #[error("task `{task}`{} failed: {source}{}", at(.point), shown(.launched))]
    TaskFailed {
        /// The task.
        task: String,
        /// The point of an index launch.
        point: Option<AnyPoint>,
        /// The error that it returned.
        source: Arc<dyn StdError + Send + Sync>,
        /// The place where it was launched.
        launched: Launched,
    },
    /// An error of the application's own, on its way out of a task.
    #[error("{0}")]
    Application(Arc<dyn StdError + Send + Sync>),
    /// Index spaces, field spaces, partitions or regions were misused.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// Memory of the program's cannot be attached to data, or not be detached.
    #[error(transparent)]
    Attachment(#[from] AttachmentError),
    /// A file cannot be attached to data, read, or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A partition cannot be computed.
    #[error("cannot partition: {0}")]
    Partition(Arc<dyn StdError + Send + Sync>),
    /// An operation asked for more than its parent holds.
    #[error(
        "`{operation}` {wanted} field(s) {fields} of {region}, but its parent `{parent}` {held}; declare it on the parent, or \
         create the region there{}",
        shown(.launched)
    )]
    PrivilegeNotHeld {
        /// The operation that was launched.
        operation: String,
        /// The launching task.
        parent: String,
        /// The data.
        region: String,
        /// The fields.
        fields: String,
        /// The privilege asked for.
        wanted: String,
        /// The privilege that the parent holds on the data.
        held: String,
        /// The place where it was launched.
        launched: Launched,
    },
    /// A task was to destroy a region that it did not make, or to free a field of a field space that it did not make.
    #[error(
        "`{task}` cannot destroy {region}: another task made that, and only that task may, or its parent once it has ended"
    )]
    NotTheMaker {
        /// The task that was to destroy it.
        task: String,
        /// The region or field that was to be destroyed.
        region: String,
    },
    /// Two requirements of one operation get in each other's way.
    #[error(
        "`{operation}` {first} and also {second} field(s) {fields} of {region} at points that both have; an operation needs \
         its data apart, or with one privilege{}",
        shown(.launched)
    )]
    RequirementsInterfere {
        /// The operation.
        operation: String,
        /// A privilege.
        first: String,
        /// Another.
        second: String,
        /// The fields in common.
        fields: String,
        /// The data.
        region: String,
        /// The place where it was launched.
        launched: Launched,
    },
    /// A task that is launched once was given a partition, and not one of its pieces.
    #[error(
        "`{operation}` is launched once but was given {partition}, which has a piece for each point of an index launch; use \
         `index_launch`, or name one piece with `.piece(color)`{}",
        shown(.launched)
    )]
    NoPieceNamed {
        /// The task.
        operation: String,
        /// The partition.
        partition: String,
        /// The place where it was launched.
        launched: Launched,
    },
    /// Points of an index launch get in each other's way.
    #[error(
        "points {first} and {second} of the index launch of `{operation}` interfere: one {privilege} field(s) {fields} of {region}, \
         where the other uses them too; use a disjoint partition, or launch one after the other{}",
        shown(.launched)
    )]
    PointsInterfere {
        /// The task.
        operation: String,
        /// A point.
        first: AnyPoint,
        /// Another.
        second: AnyPoint,
        /// The privilege of the first.
        privilege: String,
        /// The fields.
        fields: String,
        /// The data.
        region: String,
        /// The place where it was launched.
        launched: Launched,
    },
    /// An operation needs data that its parent itself has mapped.
    #[error(
        "`{operation}` {wanted} field(s) {fields} of {region}, which `{parent}` has mapped itself; drop the mapping before \
         the launch{}",
        shown(.launched)
    )]
    MappedByParent {
        /// The operation.
        operation: String,
        /// The launching task.
        parent: String,
        /// The data.
        region: String,
        /// The fields.
        fields: String,
        /// The privilege asked for.
        wanted: String,
        /// The place where it was launched.
        launched: Launched,
    },
    /// Something was launched from the context of a task that has ended.
    #[error("cannot launch from the context of `{task}`, which has ended; launch before its body returns")]
    Ended {
        /// The task.
        task: String,
    },
    /// A task ended while data that it had mapped for itself was still in use.
    #[error("`{task}` ended but kept data mapped; drop mappings before the body returns, and do not return them")]
    StillMapped {
        /// The task.
        task: String,
    },
    /// A field is not accessible in the way asked for.
    #[error("task `{task}`, requirement {requirement}: cannot access field `{field}` of {region}: {problem}")]
    Access {
        /// The task.
        task: String,
        /// The requirement's number.
        requirement: usize,
        /// The field.
        field: String,
        /// The data.
        region: String,
        /// The problem, and advice.
        problem: String,
    },
    /// No memory has room for the data of a task.
    #[error(
        "cannot place `{operation}`{}: no room for field(s) {fields} of {region}: {}; use smaller pieces, or give the memory more \
         capacity{}",
        at(.point),
        .failure.shortage(),
        shown(.launched)
    )]
    OutOfMemory {
        /// The operation.
        operation: String,
        /// The point of an index launch.
        point: Option<AnyPoint>,
        /// The fields for which there is no room.
        fields: String,
        /// Their region.
        region: String,
        /// The request for memory that failed.
        failure: MappingFailure,
        /// The place where it was launched.
        launched: Launched,
    },
    /// The system gave no memory for the data of a task, although a memory has room by the model of the machine.
    #[error(
        "cannot place `{operation}`{}: the system refused {bytes} bytes for {memory}, which has room for them by the model of the machine; use \
         smaller pieces or more nodes, raise the limit of the process if it has one (`ulimit -v`), or give the memory no more capacity than \
         the system gives{}",
        at(.point),
        shown(.launched)
    )]
    SystemRefused {
        /// The operation.
        operation: String,
        /// The point of an index launch.
        point: Option<AnyPoint>,
        /// The memory.
        memory: MemoryId,
        /// The bytes asked for.
        bytes: u64,
        /// The place where it was launched.
        launched: Launched,
    },
    /// The process has nearly all of the memory that the system lets it use.
    #[error("cannot map `{operation}`: {source}")]
    Exhausted {
        /// The operation.
        operation: String,
        /// How much it has.
        source: Exhausted,
    },
    /// A mapper gave an answer that makes no sense, or panicked.
    #[error("mapper call `{call}` {problem}{}", shown(.launched))]
    Mapper {
        /// The call.
        call: &'static str,
        /// The problem with the answer.
        problem: String,
        /// The place where the operation was launched.
        launched: Launched,
    },
    /// A mapper was named that the runtime does not have.
    #[error(
        "`{operation}` is to be mapped by `{name}`, but {}; name one of these, or give the runtime another one with `RuntimeBuilder::mapper_named`{}",
        with_names(.known),
        shown(.launched)
    )]
    NoSuchMapper {
        /// The operation that was launched.
        operation: String,
        /// The name.
        name: String,
        /// The names of the mappers that the runtime has.
        known: Vec<String>,
        /// The place where it was launched.
        launched: Launched,
    },
    /// An index launch was given arguments or a domain that do not fit.
    #[error("cannot launch `{operation}`: {problem}{}", shown(.launched))]
    Launch {
        /// The operation.
        operation: String,
        /// The problem, and advice.
        problem: String,
        /// The place where it was launched.
        launched: Launched,
    },
    /// A reduction operator is not defined on a field's type.
    #[error(
        "operator {operator} is not known on field `{field}` of type {ty}; implement `ReductionOperator` for it and call \
         `register_reduction`"
    )]
    NoReduction {
        /// The operator.
        operator: &'static str,
        /// The field.
        field: String,
        /// Its type.
        ty: &'static str,
    },
    /// A reduction operator panicked while the runtime put contributions together. They, and the values that they were
    /// for, are lost.
    #[error("reduction operator {operator} panicked{}: {message}", located(.location))]
    ReductionPanicked {
        /// The operator.
        operator: &'static str,
        /// The message of the panic.
        message: String,
        /// File, line and column.
        location: Option<String>,
    },
    /// A pointer of a gather or scatter leads to no row.
    #[error(
        "`{operation}`: field `{field}` of {pointers} points from {point} to {pointer}, which is no row of {region}; write pointers \
         that lead into it, or use a region that has the row{}",
        shown(.launched)
    )]
    DanglingPointer {
        /// The operation.
        operation: String,
        /// The field of pointers.
        field: String,
        /// The data that has the pointers.
        pointers: String,
        /// The row of the first pointer that dangles.
        point: AnyPoint,
        /// The point that it leads to.
        pointer: AnyPoint,
        /// The data that it should point into.
        region: String,
        /// The place where it was launched.
        launched: Launched,
    },
    /// A run of a [strict trace](crate::Context::strict_trace) launched something else than the first one. What it
    /// launched is carried out.
    #[error(
        "trace `{trace}`: launch {launch} (counted from 0) differs from that of the first run: expected {expected}, found {found}; launch \
         the same in each run, give what differs a name of its own, or use `Context::trace`, which analyses it"
    )]
    TraceDiffers {
        /// The trace.
        trace: &'static str,
        /// The place of the first launch that differs, counted from 0.
        launch: usize,
        /// The launch, fill or end of the first run at this place, as far as it differs.
        expected: String,
        /// The launch, fill or end of this run at this place.
        found: String,
    },
    /// A run of a [strict trace](crate::Context::strict_trace) has something that is never replayed. It is carried out.
    #[error(
        "trace `{trace}`: after {launches} launch(es) there is {found}, which is never replayed; have it outside of the trace, or use \
         `Context::trace`, which analyses it"
    )]
    NotReplayable {
        /// The trace.
        trace: &'static str,
        /// How many launches come before it in the run.
        launches: usize,
        /// The operation of the run that is never replayed, and the reason.
        found: String,
    },
    /// A [mapping file](crate::RuntimeBuilder::mapping_file) cannot be read, or has a mistake.
    #[error(transparent)]
    MappingFile(Arc<MappingFileError>),
    /// The runtime cannot start.
    #[error("cannot start the runtime: {0}")]
    Start(Arc<dyn StdError + Send + Sync>),
    /// The process is a copy, made by `fork`, of the one in which the runtime was started.
    #[error(
        "this process is a copy, made by `fork`, of the one that started the runtime, and has none of its threads: start a runtime here, or use that one in the \
         process that started it"
    )]
    Forked,
    /// Something panicked whose failure is that of no task: a part of the runtime, or code of the program that it calls
    /// where no task is running. What should have come of it never will, so the run was ended; the runtime runs nothing
    /// more.
    #[error(
        "the runtime has broken down: {during} panicked{}: {message}; make a new runtime, and, unless the place is in code of your own, report \
         this as a bug of the runtime",
        located(.location)
    )]
    BrokenDown {
        /// The activity that panicked.
        during: String,
        /// The message of the panic.
        message: Arc<str>,
        /// File, line and column.
        location: Option<String>,
        /// The stack, if `RUST_BACKTRACE` asked for it.
        backtrace: Option<Arc<str>>,
    },
    /// Something failed on another node.
    #[error("on node {node}: {message}")]
    OnNode {
        /// The node.
        node: usize,
        /// The error there.
        message: Arc<str>,
    },
    /// A node of the job is gone, and with it data that no other node has: the job has ended.
    #[error("node {node} is lost, and the job with it: {reason}")]
    NodeLost {
        /// The node.
        node: usize,
        /// The reason, as far as the network knows it.
        reason: String,
    },
    /// A result is asked for that can't be sent from one node to another.
    #[error(
        "the result of `{task}` cannot be sent to other nodes; have its type derive `serde::Serialize` and `serde::Deserialize`, return a \
         result that does, or write it to a region"
    )]
    NotSendable {
        /// The task.
        task: String,
    },
    /// The top-level task, which runs on all nodes, did not do the same on all of them.
    #[error("{}", maniple_cluster::Error::NodesDiffer { difference: difference.clone() })]
    NodesDiffer {
        /// The first difference, and which node has done what.
        difference: String,
    },
    /// Something that the runtime thought impossible.
    #[error("internal error of the runtime (please report it): {0}")]
    Internal(Arc<dyn StdError + Send + Sync>),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        self.backtrace().map_or(Ok(()), |stack| write!(f, "\n{stack}"))
    }
}

impl From<maniple_cluster::Error> for Error {
    fn from(error: maniple_cluster::Error) -> Self {
        use maniple_cluster::{Error as Job, Failure};
        match error {
            Job::NodeLost { node, reason } => Self::NodeLost { node, reason },
            Job::NodesDiffer { difference } => Self::NodesDiffer { difference },
            Job::Failed(Failure { node, message }) => Self::OnNode { node, message: message.into() },
            Job::Over(fault) => Self::of_fault(&fault, "", None),
            other => Self::internal(other),
        }
    }
}

/// `the mappers with names are `a` and `b``.
fn with_names(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "no mapper has a name".to_owned(),
        Some((only, [])) => format!("the one mapper with a name is {only}"),
        Some((last, others)) => format!("the mappers with names are {} and {last}", others.join(", ")),
    }
}

fn at(point: &Option<AnyPoint>) -> String {
    point.map_or_else(String::new, |point| format!(" at point {point}"))
}

fn located(location: &Option<String>) -> String {
    location.as_ref().map_or_else(String::new, |location| format!(" at {location}"))
}

impl Error {
    /// The call stack of the panic that caused it, if one did and `RUST_BACKTRACE` asked for stacks. The message does
    /// not have it; the `Debug` form does.
    #[must_use]
    pub fn backtrace(&self) -> Option<&str> {
        match self {
            Self::Panicked { backtrace, .. } | Self::BrokenDown { backtrace, .. } => backtrace.as_deref(),
            Self::Region(RegionError::ProjectionPanicked { backtrace, .. }) => backtrace.as_deref(),
            _ => None,
        }
    }

    /// An error of the application, to be returned from a task.
    pub fn application(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Application(error.into().into())
    }

    /// The error that a task's body returned: one of the runtime's stays itself, others become [`Error::Application`].
    pub fn from_task(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        match error.into().downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => Self::Application(other.into()),
        }
    }

    /// The error that the application gave to [`Error::application`] or returned from a task, if it has this type.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match self {
            Self::Application(source) | Self::TaskFailed { source, .. } => source.downcast_ref(),
            _ => None,
        }
    }

    /// The cause that it shares with all errors of the same event, and with no other of its kind. None if it has no
    /// identity: such errors are compared by their messages.
    pub(crate) fn cause(&self) -> Option<Cause> {
        match self {
            Self::Panicked { message, .. } => Some(Cause::Panic(Arc::downgrade(message))),
            Self::TaskFailed { source, .. }
            | Self::Application(source)
            | Self::Partition(source)
            | Self::Internal(source) => Some(Cause::Error(Arc::downgrade(source))),
            _ => None,
        }
    }
}
