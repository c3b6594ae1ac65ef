//! Work on parts of a file, by whatever threads the caller has.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::error::ReadError;

/// An executor that runs several parts at the same time.
pub trait Parallel: Sync {
    /// In how many parts work should be cut.
    fn parts(&self) -> usize;

    /// Runs `body(0)`, ..., `body(parts - 1)`, each once, in any order or at the same time, and returns when all are
    /// done.
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

/// For each thread, so many parts: where one is done, there is another.
const PARTS_EACH: u64 = 4;

/// Does `body` with each of some parts of a file, given as its number and how many there are; the results in the order
/// of parts, or the error of the first part that has one.
pub(crate) fn each_share<R: Send>(
    parallel: &dyn Parallel,
    body: impl Fn(u64, u64) -> Result<R, ReadError> + Sync,
) -> Result<Vec<R>, ReadError> {
    let parts = PARTS_EACH * parallel.parts().max(1) as u64;
    let results = each(parallel, (0..parts).collect(), |part| body(part, parts));
    if results.len() < parts as usize {
        return Err(io::Error::other("a part of the file was not read").into());
    }
    results.into_iter().collect()
}
