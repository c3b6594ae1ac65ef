//! Moving values between a file and memory.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use maniple_files::tcs::Source;
use maniple_files::tcs::store::Target;
use maniple_realm::disk::{self, DiskUse};
use maniple_space::AnyRect;

use super::array::{Array, ByteRun};
use crate::support::error::{Error, FileError, Result};

/// Bytes that are read or written at once, by each of the threads.
const CHUNK: usize = 2 << 20;

/// Runs of bytes that are no further apart than this are read together.
const GAP: u64 = 32 << 10;

/// The place of values: a file, and an array in it.
pub(super) struct FilePlace {
    pub(super) file: Opened,
    pub(super) path: PathBuf,
    pub(super) array: Array,
    pub(super) region: String,
    /// The file is being made, by this node.
    pub(super) partial: Option<Partial>,
}

/// A file, as far as this node has it.
pub(super) enum Opened {
    Here(fs::File),
    /// It is another node's, which alone reads and writes it.
    Elsewhere,
    /// Another node has made it; here it is opened when it is written. Where it is says that node.
    Later(OnceLock<PathBuf>),
}

impl FilePlace {
    fn failed(&self, action: &'static str, offset: u64, source: io::Error) -> Error {
        system(action, &self.path, offset, source)
    }

    /// Reads the values of a piece.
    pub(super) fn read(&self, piece: &AnyRect, bytes: &mut [u8]) -> Result<()> {
        let Opened::Here(file) = &self.file else { return Ok(()) };
        let mut runs = self.array.runs(piece).peekable();
        let (mut together, mut window, mut rest) = (Vec::<ByteRun>::new(), Vec::new(), &mut *bytes);
        while let Some(first) = runs.next() {
            together.clear();
            together.push(first);
            let mut end = first.offset + first.bytes as u64;
            while let Some(next) = runs.peek()
                && next.offset - end <= GAP
                && next.offset + next.bytes as u64 - first.offset <= CHUNK as u64
            {
                end = next.offset + next.bytes as u64;
                together.extend(runs.next());
            }
            match together[..] {
                [ByteRun { offset, bytes }] => {
                    let (values, others) = rest.split_at_mut(bytes);
                    rest = others;
                    for (chunk, place) in values.chunks_mut(CHUNK).zip((offset..).step_by(CHUNK)) {
                        self.read_at(file, place, chunk)?;
                    }
                }
                _ => {
                    window.resize((end - first.offset) as usize, 0);
                    self.read_at(file, first.offset, &mut window)?;
                    for run in &together {
                        let (values, others) = rest.split_at_mut(run.bytes);
                        rest = others;
                        values.copy_from_slice(&window[(run.offset - first.offset) as usize..][..run.bytes]);
                    }
                }
            }
        }
        self.array.swap(bytes);
        Ok(())
    }

    fn read_at(&self, file: &fs::File, offset: u64, bytes: &mut [u8]) -> Result<()> {
        match disk::ask(DiskUse::Read).and_then(|()| Source::read_at(file, offset, bytes)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let found = file.metadata().map_or(offset, |data| data.len());
                Err(self.too_short(found))
            }
            Err(error) => Err(self.failed("read", offset, error)),
        }
    }

    /// Writes the values of a piece. The bytes are those of the file afterwards.
    pub(super) fn write(&self, piece: &AnyRect, bytes: &mut [u8]) -> Result<()> {
        let opened;
        let file = match &self.file {
            Opened::Here(file) => file,
            Opened::Elsewhere => return Ok(()),
            Opened::Later(path) => {
                let path = path.get().unwrap_or(&self.path);
                let asked = disk::ask(DiskUse::Open).and_then(|()| OpenOptions::new().write(true).open(path));
                opened = asked.map_err(|error| system("open", path, 0, error))?;
                &opened
            }
        };
        let is_synced = matches!(self.file, Opened::Later(_));
        self.array.swap(bytes);
        let mut rest = &*bytes;
        for ByteRun { offset, bytes } in self.array.runs(piece) {
            let (values, others) = rest.split_at(bytes);
            rest = others;
            for (chunk, place) in values.chunks(CHUNK).zip((offset..).step_by(CHUNK)) {
                let written = disk::ask(DiskUse::Write(chunk.len() as u64));
                let written = written.and_then(|()| Target::write_at(file, place, chunk));
                written.map_err(|error| self.failed("write", place, error))?;
            }
        }
        // The node that made it has only its own part written to the disk before the file takes its place.
        if is_synced {
            file.sync_data().map_err(|error| self.failed("write", self.array.start, error))?;
        }
        Ok(())
    }

    /// A file that was being made is whole.
    pub(super) fn finish(&self) -> Result<()> {
        let (Opened::Here(file), Some(partial)) = (&self.file, &self.partial) else { return Ok(()) };
        partial.finish(file).map_err(|error| self.failed("finish", 0, error))
    }

    pub(super) fn too_short(&self, found: u64) -> Error {
        let (path, region, offset) = (self.path.clone(), self.region.clone(), self.array.start);
        FileError::TooShort { path, region, offset, end: self.array.end(), found }.into()
    }
}

/// A file that is being made, beside the place that it takes when it is whole. If it never is, it is removed.
pub(super) struct Partial {
    pub(super) path: PathBuf,
    place: PathBuf,
    is_whole: AtomicBool,
}

impl Partial {
    /// Makes a file, under a name that no other has.
    pub(super) fn create(place: &Path) -> io::Result<(Self, fs::File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = place.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        loop {
            let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let mut own = name.to_owned();
            own.push(format!(".{process}-{number}.partial"));
            let path = place.with_file_name(own);
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                // Of a process that had the same number, and was ended.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    return Ok((Self { path, place: place.to_owned(), is_whole: AtomicBool::new(false) }, file));
                }
            }
        }
    }

    fn finish(&self, file: &fs::File) -> io::Result<()> {
        disk::ask(DiskUse::Finish)?;
        file.sync_all()?;
        fs::rename(&self.path, &self.place)?;
        self.is_whole.store(true, Ordering::Relaxed);
        // That it has another name is on the disk when its folder is. Some file systems refuse to be asked for that.
        if let Some(Ok(folder)) = self.place.parent().map(fs::File::open) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_whole.load(Ordering::Relaxed)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(target: "maniple::files", "cannot remove `{}`: {error}", self.path.display());
        }
    }
}

pub(super) fn system(action: &'static str, path: &Path, offset: u64, source: io::Error) -> Error {
    let advice = match source.kind() {
        io::ErrorKind::NotFound => "check the path, or create the file",
        io::ErrorKind::PermissionDenied => "check who may use it",
        _ => "check that the disk has room and is sound",
    };
    FileError::System { action, path: path.to_owned(), offset, source: Arc::new(source), advice }.into()
}

#[cfg(test)]
mod tests {
    use maniple_space::Rect;

    use super::*;

    fn place(name: &str, bytes: &[u8], options: &mut OpenOptions, shape: [i64; 2]) -> FilePlace {
        let path = std::env::temp_dir().join(format!("maniple-load-{}-{name}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        let file = Opened::Here(options.open(&path).unwrap());
        fs::remove_file(&path).unwrap();
        let bounds = Rect::<2>::from_shape(shape).into();
        let array = Array { start: 2, bounds, by_columns: false, size: 1, swapped: 1 };
        FilePlace { file, path, array, region: "region `r`".to_owned(), partial: None }
    }

    #[test]
    fn what_ends_too_early_says_how_long_it_is_and_how_long_it_should_be() {
        let place = place("short", b"0123456", OpenOptions::new().read(true), [2, 3]);
        let mut bytes = [0; 2];
        // The second column is there, and the third is not.
        place.read(&Rect::<2>::new([0, 1], [1, 1]).into(), &mut bytes).unwrap();
        assert_eq!(&bytes, b"36");
        let found = place.read(&Rect::<2>::new([0, 2], [1, 2]).into(), &mut bytes);
        let Err(Error::File(FileError::TooShort { offset: 2, end: 8, found: 7, .. })) = found else {
            panic!("{found:?}")
        };
    }

    #[test]
    fn runs_that_are_near_and_runs_that_are_far_apart_are_read_alike() {
        let rows = 40;
        for columns in [7, GAP as usize / 2, 2 * GAP as usize] {
            let values: Vec<u8> = (0..rows * columns).map(|number| (number % 251) as u8).collect();
            let bytes = [b"xx", &values[..]].concat();
            let place = place("runs", &bytes, OpenOptions::new().read(true), [rows as i64, columns as i64]);
            let piece = Rect::<2>::new([3, 2], [rows as i64 - 2, 5]);
            let mut found = vec![0; piece.volume() as usize];
            place.read(&piece.into(), &mut found).unwrap();
            let expected = piece.points().map(|point| values[point[0] as usize * columns + point[1] as usize]);
            assert!(found.into_iter().eq(expected));
        }
    }

    #[test]
    fn what_the_system_refuses_is_told_with_file_and_offset() {
        let place = place("refused", b"0123456", OpenOptions::new().read(true), [1, 3]);
        let piece = place.array.bounds;
        let refused = place.write(&piece, &mut b"abc".to_owned());
        let Err(Error::File(FileError::System { action: "write", offset: 2, .. })) = &refused else {
            panic!("{refused:?}")
        };
        let place = FilePlace { file: Opened::Elsewhere, ..place };
        place.write(&piece, &mut b"abc".to_owned()).unwrap();
        place.read(&piece, &mut [0; 3]).unwrap();
    }

    #[test]
    fn a_file_that_is_not_finished_is_removed_and_leaves_what_was_there() {
        let path = std::env::temp_dir().join(format!("maniple-partial-{}", std::process::id()));
        fs::write(&path, "before").unwrap();
        let (partial, _) = Partial::create(&path).unwrap();
        let (other, file) = Partial::create(&path).unwrap();
        assert_ne!(partial.path, other.path);
        drop(partial);
        assert_eq!(fs::read(&path).unwrap(), b"before");
        other.finish(&file).unwrap();
        drop(other);
        assert_eq!(fs::read(&path).unwrap(), b"");
        fs::remove_file(&path).unwrap();
    }
}
