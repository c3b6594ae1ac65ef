//! Compiled kernels on disk, by content.
//!
//! An entry is a shared library followed by a SHA-256 of its key and itself, in a file named after the key: the SHA-256
//! of all that it was made from. Entries are written under another name and then renamed, so a process that sees one
//! sees all of it, and of two processes that write the same one the last wins. An entry whose sum is wrong is made
//! again.
//!
//! Libraries are code that will be run. So the folder must belong to this user, and no other user may write to it, or
//! put another one in its place; and so must each entry: it may have been put there while others could write to the
//! folder. An entry that fails is made again. With that, what is checked is what is loaded.

mod private;
mod prune;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use private::Owner;

const SUM: usize = 32;

/// When an entry was last used is noted once in this time.
const NOTED: Duration = Duration::from_hours(24);

/// A folder of compiled kernels.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    owner: Owner,
    /// When it was opened, by the clock of the file system.
    opened: SystemTime,
    pruned: Once,
    /// Keeps the folder if it is a temporary one.
    _temporary: Option<tempfile::TempDir>,
}

impl Cache {
    /// The folder `wanted`, or a private temporary one if that cannot be used.
    pub(super) fn open(wanted: Option<PathBuf>) -> io::Result<Self> {
        if let Some(folder) = wanted {
            match private::make(&folder).and_then(|()| Self::of(&folder, None)) {
                Ok(cache) => return Ok(cache),
                Err(error) => {
                    tracing::warn!(
                        "compiled kernels are not kept after this process: {} cannot be used: {error}",
                        folder.display()
                    );
                }
            }
        }
        let temporary = tempfile::Builder::new().prefix("maniple-kernels-").tempdir()?;
        let folder = temporary.path().to_owned();
        Self::of(&folder, Some(temporary))
    }

    /// The folder `folder`, which is there.
    fn of(folder: &Path, temporary: Option<tempfile::TempDir>) -> io::Result<Self> {
        // Where links lead to is where they led to when that was checked.
        let folder = folder.canonicalize()?;
        // A file that was just made is this user's, and tells the time.
        let probe = tempfile::tempfile_in(&folder)?.metadata()?;
        let owner = Owner::of(&probe);
        private::check(&folder, owner)?;
        Ok(Self { folder, owner, opened: probe.modified()?, pruned: Once::new(), _temporary: temporary })
    }

    /// The folder for this user: `MANIPLE_KERNELS`, or `maniple/kernels` in the user's folder for caches.
    pub(super) fn usual_folder() -> Option<PathBuf> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        variable("MANIPLE_KERNELS").or_else(|| {
            let caches = variable("XDG_CACHE_HOME")
                .filter(|folder| folder.is_absolute())
                .or_else(|| variable("HOME").map(|home| home.join(".cache")));
            caches.map(|folder| folder.join("maniple").join("kernels"))
        })
    }

    /// The file of the library for `key`, if it is there, whole, and this user's own.
    pub(super) fn find(&self, key: &str) -> Option<PathBuf> {
        let path = self.file(key);
        // Not a link, which could lead anywhere.
        let found = fs::symlink_metadata(&path).ok()?;
        if let Err(error) = self.owner.check_file(&found) {
            tracing::warn!("the compiled kernel {} is not used, but made again: {error}", path.display());
            return None;
        }
        let mut file = File::open(&path).ok()?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).ok()?;
        let (library, sum) = content.split_at_checked(content.len().checked_sub(SUM)?)?;
        if sum_of(key, library)[..] != *sum {
            return None;
        }
        if found.modified().is_ok_and(|used| self.opened.duration_since(used).is_ok_and(|since| since > NOTED)) {
            // If it can't be noted, the entry may be deleted early, and is made again.
            let _ = file.set_modified(self.opened);
        }
        Some(path)
    }

    /// Makes the library for `key`: `make` is given the file to write it to.
    pub(super) fn insert<E: From<io::Error>>(
        &self,
        key: &str,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        // A folder of its own, which others can't enter, so that the compiler need not care about permissions and
        // names.
        let place = tempfile::Builder::new().prefix("making-").tempdir_in(&self.folder)?;
        let made = place.path().join("kernel.so");
        make(&made)?;
        let sum = sum_of(key, &fs::read(&made)?);
        let mut file = File::options().append(true).open(&made)?;
        file.write_all(&sum)?;
        // A process that reads the file now needs no more; after a crash of the machine, the sum tells a file that is
        // incomplete.
        drop(file);
        private::restrict(&made)?;
        let file = self.file(key);
        fs::rename(&made, &file)?;
        // Once for all that this process makes: that takes time for each entry.
        self.pruned.call_once(|| prune::prune(&self.folder, self.opened, prune::SIZE));
        Ok(file)
    }

    fn file(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.so"))
    }
}

/// The key of what is made from `parts`.
pub(super) fn key(parts: &[&str]) -> String {
    let mut sum = Sha256::new();
    for part in parts {
        sum.update((part.len() as u64).to_le_bytes());
        sum.update(part.as_bytes());
    }
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The checksum that an entry ends with.
fn sum_of(key: &str, library: &[u8]) -> [u8; SUM] {
    let mut sum = Sha256::new();
    sum.update(key.as_bytes());
    sum.update(library);
    sum.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn keys_tell_where_one_part_ends_and_the_next_begins() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }
}
