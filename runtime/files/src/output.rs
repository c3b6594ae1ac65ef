//! Files that are written whole or not at all, and pipes and devices in the place of files.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The file that is there is overwritten.
    Over,
    /// A file beside it is written, which then takes its place.
    Beside,
}

/// Whether a file is a pipe or a device, which is written as it is, and whose name tells nothing. So is what a shell
/// has put in the place of one.
pub fn is_special(path: &Path) -> bool {
    is_descriptor(path) || fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

fn is_descriptor(path: &Path) -> bool {
    ["/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|known| path == Path::new(known))
        || ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder))
}

/// Whether what is read from a file comes to an end, but only once: of a pipe, and not of a device.
pub fn is_pipe(path: &Path) -> bool {
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
pub fn is_standard(path: &Path) -> bool {
    [Path::new("/dev/stdout"), Path::new("/dev/fd/1")].contains(&path)
}

/// The folder for files beside this one, or for temporary ones if it is a pipe or a device.
pub fn folder(path: &Path) -> PathBuf {
    let parent = || path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if is_special(path) { env::temp_dir() } else { parent().to_owned() }
}

/// The prefix and the suffix of the name of a file that is written beside another one.
fn around(path: &Path) -> (String, &'static str) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (format!(".{name}."), ".part")
}

/// Returns the files beside a file that [`write()`] was to put in its place and that were left there by a program that
/// was killed, or are being written, in the order of names.
pub fn beside(path: &Path) -> Vec<PathBuf> {
    let (prefix, suffix) = around(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_part = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(&prefix).is_some_and(|rest| rest.ends_with(suffix))
    };
    let mut found: Vec<PathBuf> = files.map(|file| file.path()).filter(is_part).collect();
    found.sort();
    found
}

/// Writes a file beside another one, which then takes its place; if that fails, all stays as it was. A pipe or device
/// gets all at the end.
///
/// # Errors
/// As of the system and of `write`.
pub fn write<R>(path: &Path, write: impl FnOnce(&mut File) -> io::Result<R>) -> io::Result<R> {
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
}

/// Checks that a file can be written, as far as that can be known before: what it takes is room alone.
///
/// # Errors
/// As of the system.
pub fn check(path: &Path, way: Way) -> io::Result<()> {
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

    #[test]
    fn only_parts_of_the_same_file_are_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let names = [".a.tcs.0f.part", ".a.tcs.part", ".b.tcs.0f.part", "a.tcs", "a.tcs.0f.part", ".a.tcs.0f.par"];
        names.iter().for_each(|name| fs::write(folder.path().join(name), "").unwrap());
        assert_eq!(beside(&folder.path().join("a.tcs")), [folder.path().join(".a.tcs.0f.part")]);
        assert_eq!(beside(Path::new("no folder/a.tcs")), [""; 0].map(PathBuf::from));
    }

    #[test]
    fn a_file_that_is_not_written_to_its_end_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path, |file| io::Write::write_all(file, b"first")).unwrap();
        let failed = write(&path, |file| {
            io::Write::write_all(file, b"second")?;
            Err::<(), _>(io::Error::other("no"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no");
        assert_eq!((fs::read(&path).unwrap(), beside(&path)), (b"first".to_vec(), Vec::new()));
    }
}
