//! How much of the memory that the system allows the process has in use: requests are refused before the system ends the process.
//!
//! The bytes of instances are counted by [`memory`](crate::memory). What else a program makes grows with it too: tables of sets of points, what is
//! known of the data of each piece, arguments and results, operations in flight, what mappers remember. No table counts it byte by byte. The system does,
//! for the process as a whole.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::topology;

/// The process has nearly all of the memory that the system lets it use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the process has {taken} bytes of memory, nearly all of the {limit} that the system lets it use; with more it would be ended: use fewer pieces \
     or more nodes, or give data a smaller part of the memory, so that more is left for the rest"
)]
pub struct Exhausted {
    /// The bytes that it has.
    pub taken: u64,
    /// The bytes that it may have.
    pub limit: u64,
}

/// The system is asked once for so many pieces or points.
const ASK_EVERY: usize = 4096;

/// Whether there is memory left for more of something, of which a thread has made so many more: pieces, or points of launches. Of that many a system call is made once,
/// so that each costs next to nothing.
///
/// # Errors
/// If the process has all but an eighth of what the system lets it use: of the memory of the computer, or of the smallest limit of its control groups; or of
/// its address space, if that is limited. So much is left as tables grow in steps. On a system that tells nothing, nothing is refused.
#[inline]
pub fn check(more: usize) -> Result<(), Exhausted> {
    thread_local! {
        static SINCE: Cell<usize> = const { Cell::new(0) };
    }
    let since = SINCE.get().saturating_add(more);
    if since < ASK_EVERY {
        SINCE.set(since);
        return Ok(());
    }
    let found = check_now();
    // Who was refused asks again at once.
    SINCE.set(if found.is_ok() { 0 } else { ASK_EVERY });
    found
}

#[cold]
fn check_now() -> Result<(), Exhausted> {
    static LIMITS: OnceLock<Limits> = OnceLock::new();
    let root = Path::new("/");
    let limits = LIMITS.get_or_init(|| Limits::read(root));
    limits.check(&fs::read_to_string(root.join("proc/self/status")).unwrap_or_default())
}

/// What the system lets the process use, in bytes.
struct Limits {
    resident: Option<u64>,
    addresses: Option<u64>,
}

impl Limits {
    fn read(root: &Path) -> Self {
        Self { resident: topology::memory_told(root), addresses: topology::limit(root, "Max address space") }
    }

    /// By what `/proc/self/status` says.
    fn check(&self, status: &str) -> Result<(), Exhausted> {
        for (key, limit) in [("VmRSS:", self.resident), ("VmSize:", self.addresses)] {
            if let (Some(limit), Some(taken)) = (limit, topology::parse_kilobytes(status, key))
                && taken > limit - limit / 8
            {
                return Err(Exhausted { taken, limit });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str =
        "Name:\tmaniple\nVmSize:\t    9000 kB\nVmHWM:\t     700 kB\nVmRSS:\t     500 kB\nThreads:\t3\n";

    #[test]
    fn a_process_that_has_nearly_all_is_refused() {
        let check = |resident: u64, addresses: u64| {
            Limits { resident: Some(resident << 10), addresses: Some(addresses << 10) }.check(STATUS)
        };
        assert_eq!(check(580, 10300), Ok(()));
        assert_eq!(check(570, 10300), Err(Exhausted { taken: 500 << 10, limit: 570 << 10 }));
        assert_eq!(check(580, 9000), Err(Exhausted { taken: 9000 << 10, limit: 9000 << 10 }));
    }

    #[test]
    fn nothing_is_refused_where_the_system_tells_nothing() {
        assert_eq!(Limits::read(Path::new("/there/is/nothing")).check(STATUS), Ok(()));
        assert_eq!(Limits { resident: Some(1), addresses: Some(1) }.check(""), Ok(()));
        assert_eq!(check(ASK_EVERY), Ok(()), "this test is small");
    }
}
