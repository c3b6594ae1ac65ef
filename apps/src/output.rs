//! Files that are to be written: whether they can be, before anything is computed.

use std::fs::File;
use std::io;
use std::path::Path;

pub(crate) use maniple_files::output::{Way, is_special, is_standard};

use crate::error::{Error, Result};

/// Writes a file beside another one, which then takes its place; if that fails, all stays as it was. A pipe or device
/// gets all at the end.
///
/// # Errors
/// [`Error::Write`].
pub(crate) fn write<R>(path: &Path, write: impl FnOnce(&mut File) -> io::Result<R>) -> Result<R> {
    maniple_files::output::write(path, write).map_err(|source| Error::write(path, source))
}

/// Refuses a file that can't be written, as far as that can be known before: what it takes is room alone.
///
/// # Errors
/// [`Error::Write`].
pub(crate) fn check(path: &Path, way: Way) -> Result<()> {
    maniple_files::output::check(path, way).map_err(|source| Error::write(path, source))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn said(path: &Path) -> [Option<String>; 2] {
        [Way::Over, Way::Beside].map(|way| check(path, way).err().map(|error| error.to_string()))
    }

    #[test]
    fn files_that_can_be_written_are_left_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        fs::write(&old, "what was there").unwrap();
        assert_eq!((said(&new), said(&old)), ([None, None], [None, None]));
        assert!(!new.exists());
        assert_eq!(fs::read_to_string(&old).unwrap(), "what was there");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_that_cannot_be_written_are_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let (file, missing) = (folder.path().join("file"), folder.path().join("missing"));
        fs::write(&file, "").unwrap();
        let all = |path: &Path, reason: &str| {
            for told in said(path) {
                assert!(told.as_ref().is_some_and(|told| told.contains(reason)), "{told:?}");
            }
        };
        all(folder.path(), "irectory");
        all(&missing.join("a"), &format!("there is no folder `{}`", missing.display()));
        all(&file.join("a"), "is a file, and no folder");
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_pipes_are_written_as_they_are() {
        assert!(is_special(Path::new("/dev/null")) && !is_special(Path::new("/dev")));
        assert_eq!(said(Path::new("/dev/null")), [None, None]);
    }
}
