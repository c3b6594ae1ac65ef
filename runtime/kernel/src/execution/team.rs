//! Teams of threads that run the chunks of a `Threads` loop.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A group of threads that runs the chunks of a loop. The runtime gives its workers; [`Serial`] and [`Scoped`] are for
/// use without it.
pub trait Team: Sync {
    /// How many chunks a loop should be cut into.
    fn size(&self) -> usize;

    /// Runs `body(0)`, ..., `body(chunks - 1)`, each once, in any order or at the same time, and returns when all are
    /// done.
    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync));
}

/// Lets `team` run each chunk once, whatever it does: teams are safe code, and one that runs a chunk twice must not do
/// harm by it. Tells whether all chunks were run.
pub fn run_once_each(team: &dyn Team, chunks: usize, body: &(dyn Fn(usize) + Sync)) -> bool {
    let begun: Vec<AtomicBool> = (0..chunks).map(|_| AtomicBool::new(false)).collect();
    let done = AtomicUsize::new(0);
    team.run(chunks, &|chunk| {
        if begun.get(chunk).is_some_and(|begun| !begun.swap(true, Ordering::Relaxed)) {
            body(chunk);
            done.fetch_add(1, Ordering::Release);
        }
    });
    done.load(Ordering::Acquire) == chunks
}

/// A team of the calling thread alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Team for Serial {
    fn size(&self) -> usize {
        1
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        (0..chunks).for_each(body);
    }
}

/// A team that starts threads for each loop, which take one chunk after the other: for tests, and for loops that take
/// much longer than starting a thread.
#[derive(Clone, Copy, Debug)]
pub struct Scoped {
    /// How many threads.
    pub threads: usize,
}

impl Team for Scoped {
    fn size(&self) -> usize {
        self.threads.max(1)
    }

    #[allow(clippy::disallowed_methods, reason = "it is for use without a runtime")]
    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let take = || {
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    chunk if chunk < chunks => body(chunk),
                    _ => return,
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..chunks.min(self.size()) {
                // Without them this thread takes all that is left.
                if std::thread::Builder::new().spawn_scoped(scope, take).is_err() {
                    break;
                }
            }
            take();
        });
    }
}
