//! Compiled kernels on disk, by content.
//!
//! An entry is a shared library followed by its SHA-256, in a file named after the SHA-256 of all that it was made from. Entries are written
//! under another name and then renamed, so whoever sees one sees all of it, and of two who write the same one the last wins. An entry
//! whose sum is wrong is made again. Libraries are code that will be run: the folder must belong to this user, and nobody
//! else may write to it.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

const SUM: usize = 32;

/// A folder of compiled kernels.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    /// Keeps the folder if it is a temporary one.
    _temporary: Option<tempfile::TempDir>,
}

impl Cache {
    /// The folder `wanted`, or a private temporary one if that cannot be used.
    pub(super) fn open(wanted: Option<PathBuf>) -> io::Result<Self> {
        if let Some(folder) = wanted {
            match prepare(&folder) {
                Ok(()) => return Ok(Self { folder, _temporary: None }),
                Err(error) => {
                    tracing::warn!(
                        "compiled kernels are not kept after this process: {} cannot be used: {error}",
                        folder.display()
                    );
                }
            }
        }
        let temporary = tempfile::Builder::new().prefix("maniple-kernels-").tempdir()?;
        Ok(Self { folder: temporary.path().to_owned(), _temporary: Some(temporary) })
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

    /// The file of the library for `key`, if it is there and whole.
    pub(super) fn find(&self, key: &str) -> Option<PathBuf> {
        let file = self.file(key);
        let mut content = Vec::new();
        File::open(&file).ok()?.read_to_end(&mut content).ok()?;
        let (library, sum) = content.split_at_checked(content.len().checked_sub(SUM)?)?;
        (Sha256::digest(library)[..] == *sum).then_some(file)
    }

    /// Makes the library for `key`: `make` is given the file to write it to.
    pub(super) fn insert<E: From<io::Error>>(
        &self,
        key: &str,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        // A folder of its own, which others can't enter, so that the compiler need not care about permissions and names.
        let place = tempfile::Builder::new().prefix("making-").tempdir_in(&self.folder)?;
        let made = place.path().join("kernel.so");
        make(&made)?;
        let sum = Sha256::digest(fs::read(&made)?);
        let mut file = File::options().append(true).open(&made)?;
        file.write_all(&sum)?;
        // Not needed for who reads it now; after a crash of the machine, the sum tells a file that is incomplete.
        drop(file);
        restrict(&made, 0o600)?;
        let file = self.file(key);
        fs::rename(&made, &file)?;
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

/// Makes `folder` if it is not there, and sees that nobody else can put code into it.
fn prepare(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};
        builder.mode(0o700).create(folder)?;
        let data = fs::metadata(folder)?;
        // A file that was just made is this user's.
        let probe = tempfile::tempfile_in(folder)?.metadata()?;
        if data.uid() != probe.uid() {
            return Err(io::Error::other("it belongs to another user"));
        }
        if data.mode() & 0o022 != 0 {
            return Err(io::Error::other(
                "others may write to it: take their permission away, or choose another folder",
            ));
        }
        Ok(())
    }
    #[cfg(not(unix))]
    {
        builder.create(folder)?;
        tempfile::tempfile_in(folder).map(drop)
    }
}

fn restrict(file: &Path, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(file, fs::Permissions::from_mode(mode))
    }
    #[cfg(not(unix))]
    {
        let _ = (file, mode);
        Ok(())
    }
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
