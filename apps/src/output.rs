//! Files that are to be written: whether they can be, before anything is computed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The file that is there is overwritten.
    Over,
    /// A file beside it is written, which then takes its place.
    Beside,
}

/// Whether a file is a pipe or a device, which is written as it is, and whose name tells nothing. So is what a shell
/// has put in the place of one.
pub(crate) fn is_special(path: &Path) -> bool {
    is_descriptor(path) || fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

fn is_descriptor(path: &Path) -> bool {
    ["/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|known| path == Path::new(known))
        || ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder))
}

/// Whether what is read from a file comes to an end, but only once: of a pipe, and not of a device.
pub(crate) fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    let is_fifo = |data: fs::Metadata| {
        use std::os::unix::fs::FileTypeExt;
        data.file_type().is_fifo() || data.file_type().is_socket()
    };
    #[cfg(not(unix))]
    let is_fifo = |_: fs::Metadata| false;
    is_descriptor(path) || fs::metadata(path).is_ok_and(is_fifo)
}

/// Whether it is the standard output.
pub(crate) fn is_standard(path: &Path) -> bool {
    [Path::new("/dev/stdout"), Path::new("/dev/fd/1")].contains(&path)
}

/// The folder for files beside this one, or for temporary ones if it is a pipe or a device.
pub(crate) fn folder(path: &Path) -> PathBuf {
    let parent = || path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if is_special(path) { std::env::temp_dir() } else { parent().to_owned() }
}

/// Returns the prefix and the suffix of the name of a file that is written beside another one.
pub(crate) fn around(path: &Path) -> (String, &'static str) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (format!(".{name}."), ".part")
}

/// Writes a file beside another one, which then takes its place; if that fails, all stays as it was. A pipe or device
/// gets all at the end.
///
/// # Errors
/// [`Error::Write`].
pub(crate) fn write<R>(path: &Path, write: impl FnOnce(&mut File) -> io::Result<R>) -> Result<R> {
    let write_all = || {
        if is_special(path) {
            let mut file = tempfile::tempfile()?;
            let written = write(&mut file)?;
            file.rewind()?;
            match is_standard(path) {
                true => io::copy(&mut file, &mut io::stdout().lock())?,
                false => io::copy(&mut file, &mut OpenOptions::new().append(true).open(path)?)?,
            };
            return Ok(written);
        }
        let (prefix, suffix) = around(path);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(suffix);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(folder(path))?;
        let written = write(file.as_file_mut())?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(written)
    };
    write_all().map_err(|source| Error::write(path, source))
}

/// Refuses a file that can't be written, as far as that can be known before: what it takes is room alone.
///
/// # Errors
/// [`Error::Write`].
pub(crate) fn check(path: &Path, way: Way) -> Result<()> {
    tried(path, way).map_err(|source| Error::write(path, source))
}

fn tried(path: &Path, way: Way) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        // To open a pipe is to wait for its other end.
        Ok(_) if is_special(path) => return Ok(()),
        // What is write-protected stays, also where its folder is not.
        Ok(_) => drop(OpenOptions::new().write(true).open(path)?),
        Err(_) => {}
    }
    if way == Way::Over && path.exists() {
        return Ok(());
    }
    tempfile::tempfile_in(folder(path)).map(drop)
}

#[cfg(test)]
mod tests {
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
