//! Who runs the chunks of a `Threads` loop.

/// A group of threads that runs the chunks of a loop. The runtime gives its workers; [`Serial`] and [`Scoped`] are for use without it.
pub trait Team: Sync {
    /// How many chunks a loop should be cut into.
    fn size(&self) -> usize;

    /// Runs `body(0)`, ..., `body(chunks - 1)`, each once, in any order or at the same time, and returns when all are done.
    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync));
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

/// A team that starts threads for each loop: for tests, and for loops that take much longer than starting a thread.
#[derive(Clone, Copy, Debug)]
pub struct Scoped {
    /// How many threads.
    pub threads: usize,
}

impl Team for Scoped {
    fn size(&self) -> usize {
        self.threads.max(1)
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            // The last chunk is for this thread.
            let Some(last) = chunks.checked_sub(1) else { return };
            for chunk in 0..last {
                let builder = std::thread::Builder::new();
                if builder.spawn_scoped(scope, move || body(chunk)).is_err() {
                    body(chunk);
                }
            }
            body(last);
        });
    }
}
