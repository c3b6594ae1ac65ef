//! The disk, as whatever reads and writes files asks for it: the seam at which [a simulation](crate::simulation) makes
//! it slow, full or broken.
//!
//! Files themselves are the system's also in a simulation. What uses one asks first.

use std::io;

use crate::threads::simulated;
pub use crate::threads::simulated::DiskUse;

/// Asks the disk. Outside of a simulation it has nothing to say: that is for the system.
///
/// # Errors
/// If a simulated disk refuses the use.
#[inline]
pub fn ask(what: DiskUse) -> io::Result<()> {
    if simulated::is_inside() { simulated::ask_disk(what) } else { Ok(()) }
}
