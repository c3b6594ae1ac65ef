//! Blocks that are traces.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use maniple::threads::Parker;

use super::statement::Frame;
use super::{Stop, Tolerance};
use crate::oracle::Verdict;
use crate::program::{Action, Block, TraceName};

/// The names of traces.
const NAMES: [&str; 4] = ["red", "green", "blue", "white"];

impl Frame<'_> {
    /// Whether this is the top-level task, which runs on no worker and so may block.
    pub(super) fn is_at_top(&self) -> bool {
        self.context.task() == "top level"
    }

    /// Runs a block as a trace, whose body is no `async` code. In a task such code must not wait: a block that does is
    /// no trace there. Nor where other nodes may be lost: our own way of waiting would not hear of it.
    pub(super) async fn traced(&mut self, name: TraceName, block: &Block) -> Result<(), Stop> {
        let may_block = self.is_at_top() && self.run.nodes == 1;
        if !may_block && (waits(block) || self.is_refused_in(block)) {
            return self.run(block).await;
        }
        let context = self.context;
        context.trace(NAMES[name.0 as usize % NAMES.len()], |_| block_on(self.run(block)))
    }

    /// Whether something in a block is to be refused when errors are tolerated: after the loss of a node it may be
    /// accepted, and then never ends.
    fn is_refused_in(&self, block: &Block) -> bool {
        let mut any = false;
        block.each(&mut |statement| {
            any |= matches!(self.run.expected.verdicts.get(&statement.id), Some(Verdict::Refused(_)));
        });
        any && self.run.tolerance == Tolerance::Errors
    }
}

/// Whether the launching task waits somewhere in a block. For launches that are refused it does not: they have failed
/// at once.
fn waits(block: &Block) -> bool {
    block.0.iter().any(|statement| match &statement.action {
        Action::Wait(_) | Action::Inline(_) => true,
        Action::CreatePartition(_, _, split) => split.column().is_some(),
        Action::Repeat(turns) => turns.iter().any(waits),
        Action::Traced(_, block) => waits(block),
        _ => false,
    })
}

#[derive(Default)]
struct Unpark(Parker);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let unpark = Arc::<Unpark>::default();
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => unpark.0.park(),
        }
    }
}
