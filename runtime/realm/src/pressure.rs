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

/// The system is asked once for so many pieces or points, if there is room.
const ASK_EVERY: usize = 4096;

/// The bytes that the tables of one piece take at most until the system is asked again, where there is little room.
const BYTES_OF_PIECE: u64 = 1 << 20;

/// While there is little room the system is asked for no fewer pieces.
const ASK_AT_LEAST_EVERY: usize = 16;

/// Whether there is memory left for more of something, of which a thread has made so many more: pieces, or points of launches. Of many a system call is made once, so that each costs next to
/// nothing; the system is asked more often where there is little room.
///
/// # Errors
/// If the process has all but an eighth of what the system lets it use: of the memory of the computer, or of the smallest limit of its control groups; or of
/// its address space, if that is limited. So much is left as tables grow in steps. On a system that tells nothing, nothing is refused.
#[inline]
pub fn check(more: usize) -> Result<(), Exhausted> {
    thread_local! {
        /// How many more may be made before the system is asked.
        static LEFT: Cell<usize> = const { Cell::new(ASK_AT_LEAST_EVERY) };
    }
    if let Some(left) = LEFT.get().checked_sub(more) {
        LEFT.set(left);
        return Ok(());
    }
    let room = check_now();
    // After a refusal it is asked again at once.
    LEFT.set(room.map_or(0, pieces_in));
    room.map(drop)
}

/// How many pieces are made before the system is asked again, when there are so many bytes of room.
fn pieces_in(room: u64) -> usize {
    ((room / BYTES_OF_PIECE) as usize).clamp(ASK_AT_LEAST_EVERY, ASK_EVERY)
}

/// The bytes of room.
#[cold]
fn check_now() -> Result<u64, Exhausted> {
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

    /// The bytes of room, by what `/proc/self/status` says.
    fn check(&self, status: &str) -> Result<u64, Exhausted> {
        let mut room = u64::MAX;
        for (key, limit) in [("VmRSS:", self.resident), ("VmSize:", self.addresses)] {
            if let (Some(limit), Some(taken)) = (limit, topology::parse_kilobytes(status, key)) {
                let left = (limit - limit / 8).checked_sub(taken);
                room = room.min(left.ok_or(Exhausted { taken, limit })?);
            }
        }
        Ok(room)
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
        // 580 KiB less an eighth, and what it has.
        assert_eq!(check(580, 10300), Ok((580 << 10) - (580 << 7) - (500 << 10)));
        assert_eq!(check(570, 10300), Err(Exhausted { taken: 500 << 10, limit: 570 << 10 }));
        assert_eq!(check(580, 9000), Err(Exhausted { taken: 9000 << 10, limit: 9000 << 10 }));
    }

    #[test]
    fn the_system_is_asked_more_often_where_there_is_little_room() {
        assert_eq!([0, 100 << 20, 1 << 40].map(pieces_in), [ASK_AT_LEAST_EVERY, 100, ASK_EVERY]);
    }

    #[test]
    fn nothing_is_refused_where_the_system_tells_nothing() {
        assert_eq!(Limits::read(Path::new("/there/is/nothing")).check(STATUS), Ok(u64::MAX));
        assert_eq!(Limits { resident: Some(1), addresses: Some(1) }.check(""), Ok(u64::MAX));
        assert_eq!(check(ASK_EVERY), Ok(()), "this test is small");
    }
}
