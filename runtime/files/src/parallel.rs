//! Work on parts of a file, by whatever threads the caller has.

use std::sync::{Mutex, PoisonError};

/// What runs several parts at the same time.
pub trait Parallel: Sync {
    /// In how many parts work should be cut.
    fn parts(&self) -> usize;

    /// Runs `body(0)`, ..., `body(parts - 1)`, each once, in any order or at the same time, and returns when all are done.
    fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync));
}

/// Runs one part after the other, in the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct InTurn;

impl Parallel for InTurn {
    fn parts(&self) -> usize {
        1
    }

    fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync)) {
        (0..parts).for_each(body);
    }
}

/// Does `body` with each part; the results in the order of parts, of those that were run.
pub(crate) fn each<P: Send, R: Send>(parallel: &dyn Parallel, parts: Vec<P>, body: impl Fn(P) -> R + Sync) -> Vec<R> {
    let cells: Vec<Mutex<(Option<P>, Option<R>)>> =
        parts.into_iter().map(|part| Mutex::new((Some(part), None))).collect();
    parallel.run(cells.len(), &|number| {
        let Some(cell) = cells.get(number) else { return };
        let part = cell.lock().unwrap_or_else(PoisonError::into_inner).0.take();
        if let Some(part) = part {
            let result = body(part);
            cell.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(result);
        }
    });
    cells.into_iter().filter_map(|cell| cell.into_inner().unwrap_or_else(PoisonError::into_inner).1).collect()
}
