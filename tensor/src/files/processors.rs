//! The processors that read and write text.

use maniple_files::Parallel;

use crate::kernel::{Scoped, Team};

/// All processors, for readers and writers of text.
pub struct Processors(Scoped);

impl Parallel for Processors {
    fn parts(&self) -> usize {
        self.0.size()
    }

    fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync)) {
        self.0.run(parts, body);
    }
}

/// The processors of this machine.
pub fn processors() -> Processors {
    Processors(Scoped { threads: std::thread::available_parallelism().map_or(1, usize::from) })
}
