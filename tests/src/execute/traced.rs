//! Blocks that are traces.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use maniple::threads::Parker;

use super::Stop;
use super::statement::Frame;
use crate::program::{Action, Block, Split, TraceName};

/// What traces are called.
const NAMES: [&str; 4] = ["red", "green", "blue", "white"];

impl Frame<'_> {
    /// Whether this is the top-level task, which runs on no worker and so may block.
    pub(super) fn is_at_top(&self) -> bool {
        self.context.task() == "top level"
    }

    /// Runs a block as a trace, whose body is no `async` code. In a task such code must not wait: a block that does is no trace there. Nor where other nodes
    /// may be lost: our own way of waiting would not hear of it.
    pub(super) async fn traced(&mut self, name: TraceName, block: &Block) -> Result<(), Stop> {
        if (!self.is_at_top() || self.run.nodes > 1) && waits(block) {
            return self.run(block).await;
        }
        let context = self.context;
        context.trace(NAMES[name.0 as usize % NAMES.len()], |_| block_on(self.run(block)))
    }
}

/// Whether the launching task waits somewhere in a block. For launches that are refused it does not: they have failed at once.
fn waits(block: &Block) -> bool {
    block.0.iter().any(|statement| match &statement.action {
        Action::Wait(_) | Action::Inline(_) => true,
        Action::CreatePartition(_, _, split) => {
            matches!(split, Split::ByField(..) | Split::Image(..) | Split::Preimage(..))
        }
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
