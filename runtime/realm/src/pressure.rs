//! How much of the memory that the system allows the process has in use: requests are refused before the system ends
//! the process.
//!
//! The bytes of instances are counted by [`memory`](crate::memory). What else a program makes grows with it too: tables
//! of sets of points, what is known of the data of each piece, arguments and results, operations in flight, what
//! mappers remember. No table counts it byte by byte. The system does, for the process as a whole.

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

/// Whether there is memory left for more of something, of which a thread has made so many more: pieces, or points of
/// launches. Of many a system call is made once, so that each costs next to nothing; the system is asked more often
/// where there is little room.
///
/// # Errors
/// If the process has all but an eighth of what the system lets it use: of the memory of the computer, or of the
/// smallest limit of its control groups; or of its address space, if that is limited, without what the allocator has
/// reserved of it and not used. So much is left as tables grow in steps. On a system that tells nothing, nothing is
/// refused.
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

/// The memory that the system lets the process use, in bytes.
struct Limits {
    resident: Option<u64>,
    addresses: Option<u64>,
    reserve: Reserve,
}

/// Addresses that allocators have taken in advance, by the gigabyte, and that are as good as free to the callers that
/// they give memory to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reserve {
    bytes: u64,
    /// Bytes that were resident when the reserve was measured: those that have become so since may be in the reserve.
    resident: u64,
}

/// Memory without a file of so many bytes was taken in advance: the allocator's arenas are larger, what it takes where
/// there is no room for one is smaller.
const IN_ADVANCE: u64 = 512 << 20;

impl Reserve {
    /// The addresses that are reserved and not used, by what `/proc/self/smaps` says.
    fn of(smaps: &str) -> Self {
        let (mut reserve, mut size, mut is_anonymous) = (Self::default(), 0, false);
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or_default();
            if let Some((start, end)) = first.split_once('-') {
                let address = |text| u64::from_str_radix(text, 16).unwrap_or(0);
                size = address(end).saturating_sub(address(start));
                // Permissions, offset, device, number of the file, name.
                is_anonymous = words.nth(4).is_none();
            } else if first == "Rss:" {
                let resident = words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) << 10;
                reserve.resident += resident;
                if is_anonymous && size >= IN_ADVANCE {
                    reserve.bytes += size.saturating_sub(resident);
                }
            }
        }
        reserve
    }

    /// The bytes that are left of it.
    fn left(self, resident: u64) -> u64 {
        self.bytes.saturating_sub(resident.saturating_sub(self.resident))
    }
}

impl Limits {
    fn read(root: &Path) -> Self {
        let addresses = topology::limit(root, "Max address space");
        // A long text, which is of use only then.
        let smaps = addresses.and_then(|_| fs::read_to_string(root.join("proc/self/smaps")).ok());
        let reserve = smaps.map_or_else(Reserve::default, |smaps| Reserve::of(&smaps));
        Self { resident: topology::memory_told(root), addresses, reserve }
    }

    /// The bytes of room, by what `/proc/self/status` says.
    fn check(&self, status: &str) -> Result<u64, Exhausted> {
        let mut room = u64::MAX;
        let told = |key| topology::parse_kilobytes(status, key);
        let resident = told("VmRSS:");
        let reserved = self.reserve.left(resident.unwrap_or(u64::MAX));
        let addresses = told("VmSize:").map(|taken| taken.saturating_sub(reserved));
        for (taken, limit) in [(resident, self.resident), (addresses, self.addresses)] {
            if let (Some(limit), Some(taken)) = (limit, taken) {
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
            let reserve = Reserve::default();
            Limits { resident: Some(resident << 10), addresses: Some(addresses << 10), reserve }.check(STATUS)
        };
        // 580 KiB less an eighth, and what it has.
        assert_eq!(check(580, 10300), Ok((580 << 10) - (580 << 7) - (500 << 10)));
        assert_eq!(check(570, 10300), Err(Exhausted { taken: 500 << 10, limit: 570 << 10 }));
        assert_eq!(check(580, 9000), Err(Exhausted { taken: 9000 << 10, limit: 9000 << 10 }));
    }

    #[test]
    fn addresses_that_an_allocator_has_reserved_are_free_until_they_are_used() {
        const SMAPS: &str = "\
7f0000000000-7f0040000000 rw-p 00000000 00:00 0
Size:            1048576 kB
Rss:                 100 kB
7f1000000000-7f1004000000 r-xp 00000000 08:01 77   /usr/bin/program
Rss:                 300 kB
7f2000000000-7f2000100000 rw-p 00000000 00:00 0    [heap]
Rss:                 100 kB
";
        let reserve = Reserve::of(SMAPS);
        assert_eq!(reserve, Reserve { bytes: (1 << 30) - (100 << 10), resident: 500 << 10 });
        let status = |resident: u64| format!("VmSize:\t{} kB\nVmRSS:\t{resident} kB\n", (1 << 20) + 9000);
        let limits = Limits { resident: None, addresses: Some((1 << 30) + (20 << 20)), reserve };
        assert!(limits.check(&status(500)).is_ok());
        assert!(limits.check(&status(500 + (1 << 20))).is_err(), "all of it is used");
    }

    #[test]
    fn the_system_is_asked_more_often_where_there_is_little_room() {
        assert_eq!([0, 100 << 20, 1 << 40].map(pieces_in), [ASK_AT_LEAST_EVERY, 100, ASK_EVERY]);
    }

    #[test]
    fn nothing_is_refused_where_the_system_tells_nothing() {
        assert_eq!(Limits::read(Path::new("/there/is/nothing")).check(STATUS), Ok(u64::MAX));
        let reserve = Reserve::default();
        assert_eq!(Limits { resident: Some(1), addresses: Some(1), reserve }.check(""), Ok(u64::MAX));
        assert_eq!(check(ASK_EVERY), Ok(()), "this test is small");
    }
}
