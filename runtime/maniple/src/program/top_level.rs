//! The top-level task of a program: how it runs, and its end on all nodes.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use maniple_mapper::Tunable;
use maniple_realm::fault::Unavailable;
use maniple_record::Kind;

use crate::context::{Context, ContextState, Owned, PartSlot, TaskIdentity};
use crate::core::RuntimeCore;
use crate::core::block_on::block_on;
use crate::instances::validity::Preconditions;
use crate::nodes::replication::{JobNode, Replica};
use crate::operation::deletions::Inherited;
use crate::results::Origin;
use crate::support::drop_caught::drop_caught;
use crate::support::error::{Error, Result};

/// The name of the task that a program begins with.
const TOP_LEVEL: &str = "top level";

impl Context {
    /// A number that is left to the mapper, such as `"pieces"`; `default` if the mapper does not know the name.
    ///
    /// On several nodes each asks its own mapper. Where answers may differ, nodes agree by
    /// [`per_node`](Self::per_node); should the program differ instead, the error names the tunables whose answers did.
    ///
    /// # Errors
    /// [`Error::Mapper`](crate::Error::Mapper) if the mapper panics; [`Error::Forked`](crate::Error::Forked) in a copy
    /// of the process.
    pub fn tunable(&self, name: &str, default: i64) -> Result<i64> {
        self.tunable_with(name, &[], default)
    }

    /// The same for a number that depends on others, which the mapper is told: how many pieces for so many rows, for
    /// instance.
    ///
    /// # Errors
    /// As of [`tunable`](Self::tunable).
    pub fn tunable_with(&self, name: &str, arguments: &[i64], default: i64) -> Result<i64> {
        let answer = self.ask_tunable(name, arguments)?.unwrap_or(default);
        if let Some(replica) = Replica::of(&self.state) {
            replica.note_tunable(name, answer);
        }
        Ok(answer)
    }

    /// The same, alike on all nodes: the answer of the mapper of node 0, for which the others wait. Each node has to
    /// ask, with the same default.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # Runtime::builder().workers(2).build()?.run(async |cx| {
    /// let pieces = cx.shared_tunable("pieces", &[1_000_000], 8).await?; // those of node 0, whatever the others' machines are
    /// # assert_eq!(pieces, 2);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of [`tunable`](Self::tunable), on all nodes; or why the job is over.
    pub async fn shared_tunable(&self, name: &str, arguments: &[i64], default: i64) -> Result<i64> {
        let Some(replica) = Replica::of(&self.state) else { return self.tunable_with(name, arguments, default) };
        let answer = match replica.rank() {
            0 => self.ask_tunable(name, arguments).map_err(|error| error.to_string()),
            _ => Ok(None),
        };
        // Also if it panicked: the others wait for what comes of it.
        match self.per_node(answer).get(0)?.await? {
            Ok(answer) => Ok(answer.unwrap_or(default)),
            Err(problem) => Err(Error::mapper("tunable", format!("of node 0 failed: {problem}"))),
        }
    }

    fn ask_tunable(&self, name: &str, arguments: &[i64]) -> Result<Option<i64>> {
        let core = &self.state.core;
        core.check_process()?;
        let tunable = Tunable { name, arguments, task: self.task(), nodes: self.nodes() };
        core.seat(self.state.whom(self.mapper)).tunable(&core.store, &tunable)
    }

    /// Runs a function as the top-level task of a runtime, on this thread.
    pub(crate) fn run_top_level<T>(
        core: &Arc<RuntimeCore>,
        node: Option<&Arc<JobNode>>,
        body: impl AsyncFnOnce(&Self) -> Result<T>,
    ) -> Result<T> {
        let top_level = TopLevel::begin(core, node, false);
        match catch_unwind(AssertUnwindSafe(|| top_level.wait(body(top_level.context()), None))) {
            Ok(result) => top_level.end(result),
            Err(panic) => {
                top_level.end_by_panic(maniple_realm::fault::message_of(&*panic));
                resume_unwind(panic)
            }
        }
    }
}

/// A top-level task that has begun and not ended.
pub(crate) struct TopLevel {
    context: Context,
    node: Option<Arc<JobNode>>,
    _running: Box<dyn Any + Send + Sync>,
    /// After the context.
    _owned: Owned,
}

impl TopLevel {
    /// Begins one, from which several threads launch or only the one that waits for it.
    pub(crate) fn begin(core: &Arc<RuntimeCore>, node: Option<&Arc<JobNode>>, is_shared: bool) -> Self {
        let recorded = core.store.record(None, &Preconditions::default(), || Kind::TopLevel);
        let (task, processor) = (Origin::BuiltIn(TOP_LEVEL), core.first_processor());
        let identity = TaskIdentity { task, point: None, recorded, processor, depth: 0 };
        let mut state = ContextState::new(core, identity, Vec::new());
        if let Some(state) = Arc::get_mut(&mut state) {
            if let Some(node) = node {
                state.parts.program = PartSlot::of(Arc::new(Replica::new(node, core.names_of_mappers())));
            }
            state.inherited = Inherited::of_earlier_runs(&core.deletions);
            state.is_shared = is_shared;
        }
        let owned = Owned::new(Arc::clone(&state));
        let (context, running) = (Context::of(state), Box::new(core.top_level_runs()));
        Self { context, node: node.cloned(), _running: running, _owned: owned }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Waits on this thread for a future of the program's: see [`block_on`]. It ends with an error too if the job is
    /// over when the program asks for something that others have.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = Result<T>>, limit: Option<(Duration, T)>) -> Result<T> {
        let state = &self.context.state;
        let wait = || block_on(&state.core, TOP_LEVEL, state.is_shared, future, limit);
        catch_unwind(AssertUnwindSafe(wait)).unwrap_or_else(|panic| match state.core.check_whole() {
            Err(over) if panic.is::<Unavailable>() => Err(over),
            _ => resume_unwind(panic),
        })
    }

    /// Its body has come to this: waits for what it has launched, and for the other nodes.
    pub(crate) fn end<T>(self, result: Result<T>) -> Result<T> {
        let state = &self.context.state;
        state.end_everywhere(state.end(result))
    }

    /// Its body has panicked, of which other nodes will be told: waits for what it has launched here.
    pub(crate) fn end_by_panic(self, message: String) {
        if let Some(node) = &self.node {
            node.note_panic(message);
        }
        // Of what else went wrong the panic is the better witness.
        let _ = self.context.state.end(Ok(()));
    }
}

impl ContextState {
    /// The program has ended here with this result: waits for the other nodes. It has failed if it has on any.
    fn end_everywhere<T>(&self, result: Result<T>) -> Result<T> {
        let Some(replica) = Replica::of(self) else { return result };
        // A node that is lost, or does something else than the others, will not come to the end.
        let elsewhere = match self.core.check_whole() {
            Ok(()) => replica.end(result.as_ref().err()),
            Err(_) => None,
        };
        let elsewhere = self.core.check_whole().err().or(elsewhere);
        match (result, elsewhere) {
            (Ok(value), Some(error)) => {
                drop_caught("a result", self.name(), value);
                Err(error)
            }
            // What went wrong here is nearer to the cause than what others say of it.
            (result, _) => result,
        }
    }
}
