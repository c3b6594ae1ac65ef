//! Files that are attached: which attachment writes which part of a file, and what is read from each file and written
//! to it, in program order.
//!
//! A file is known by its path and by what the system knows it by, so that other paths of it are the same file. What
//! reads a file comes after what was to be written to it before, and what writes it after all that was to be read or
//! written before: in the order of the program, as [`deletions`](crate::operation::deletions) know it. So each waits
//! only for what comes before it in the program, and no two wait for each other.

use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use maniple_realm::locks::Mutex;
use maniple_realm::{Event, Realm};
use maniple_region::{Shape, ShapeTable};
use maniple_space::AnyRect;
use rustc_hash::FxHashMap;

use crate::operation::deletions::Log;
use crate::operation::lifecycle::Operation;

/// The files that a runtime has attached.
#[derive(Default)]
pub(crate) struct OpenFiles(Mutex<KnownFiles>);

#[derive(Default)]
struct KnownFiles {
    uses: FileTable<Arc<FileUse>>,
    claims: FileTable<Weak<FileClaim>>,
}

/// Entries of one kind, by the file that they belong to.
struct FileTable<T> {
    of: FxHashMap<Name, Vec<T>>,
    entries: usize,
    sweep_at: usize,
}

/// A name by which a file is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    /// Its path, without links.
    Path(PathBuf),
    /// Device and number.
    System(u64, u64),
}

/// A file: where it is, and what is there.
#[derive(Clone, Debug)]
pub(crate) struct FileName {
    path: PathBuf,
    system: Option<(u64, u64)>,
}

impl FileName {
    /// The file at a path, which need not be there.
    pub(crate) fn of(path: &Path) -> Self {
        let system = fs::metadata(path).ok().and_then(|data| number_of(&data));
        if let Ok(path) = fs::canonicalize(path) {
            return Self { path, system };
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
        let name: Option<OsString> = path.file_name().map(Into::into);
        match (folder, name) {
            (Some(folder), Some(name)) => Self { path: folder.join(name), system },
            _ => Self { path, system },
        }
    }

    fn names(&self) -> impl Iterator<Item = Name> {
        let system = self.system.map(|(device, number)| Name::System(device, number));
        system.into_iter().chain([Name::Path(self.path.clone())])
    }
}

/// The device and the number by which the system knows a file.
#[cfg(unix)]
pub(crate) fn number_of(data: &fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((data.dev(), data.ino()))
}

#[cfg(not(unix))]
pub(crate) fn number_of(_data: &fs::Metadata) -> Option<(u64, u64)> {
    None
}

/// Something that is read from a file or written to it, at one place in the program.
pub(crate) struct FileUse {
    /// Triggers when that is done, well or badly: on all nodes, if several run the program.
    pub(crate) done: Event,
    pub(crate) kind: FileUseKind,
    /// The deletions of the task, by which it is known, and the place among its launches.
    pub(crate) task: Arc<Log>,
    pub(crate) number: u64,
    /// The attachment or detachment.
    pub(crate) operation: Weak<Operation>,
    /// Other nodes take part.
    pub(crate) is_afar: bool,
}

/// The kind of a use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileUseKind {
    Read,
    Write,
    /// Another file takes its place, with the values by columns or by rows.
    Replace {
        by_columns: bool,
    },
}

/// The uses of a file that come before another use.
#[derive(Default)]
pub(crate) struct Earlier {
    /// The ends of the uses that are to be waited for.
    pub(crate) events: Vec<Event>,
    /// All attachments and detachments, also those that are not waited for themselves.
    pub(crate) operations: Vec<Arc<Operation>>,
    pub(crate) are_afar: bool,
    /// The file is still to be replaced by one with this order.
    pub(crate) replaced: Option<bool>,
}

/// A part of a file that is written when an attachment is detached, until that or until its handle is dropped.
#[derive(Debug)]
pub(crate) struct FileClaim(Extent);

/// Values in a file.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    /// The bytes from the first to the last value.
    pub(crate) bytes: Range<u64>,
    /// The array of which they are a part.
    pub(crate) array: Option<ArrayPart>,
}

/// A part of an array.
#[derive(Clone, Debug)]
pub(crate) struct ArrayPart {
    /// The offset at which the array begins, the bytes of an element, and whether its elements are by columns.
    pub(crate) form: (u64, usize, bool),
    /// The points of the array.
    pub(crate) bounds: AnyRect,
    /// The points of the part.
    pub(crate) points: Shape,
}

impl Extent {
    /// A file from its first byte to its last, whatever it has.
    pub(crate) const WHOLE: Self = Self { bytes: 0..u64::MAX, array: None };

    fn overlaps(&self, other: &Self, shapes: &ShapeTable) -> bool {
        let common = self.bytes.start.max(other.bytes.start)..self.bytes.end.min(other.bytes.end);
        if common.is_empty() {
            return false;
        }
        match (&self.array, &other.array) {
            (Some(one), Some(two)) if one.form == two.form && one.bounds == two.bounds => {
                shapes.overlaps(&one.points, &two.points)
            }
            _ => true,
        }
    }
}

impl OpenFiles {
    /// The uses of a file that come before another use, among those that were begun before it. `comes_before` says of
    /// each of those whether it comes before in the program.
    pub(crate) fn before(
        &self,
        file: &FileName,
        kind: FileUseKind,
        realm: &Realm,
        comes_before: impl Fn(&FileUse) -> bool,
    ) -> Earlier {
        let mut earlier = Earlier::default();
        let mut known = self.0.lock();
        for name in file.names() {
            let Some(uses) = known.uses.of.get_mut(&name) else { continue };
            uses.retain(|one| !realm.has_triggered(one.done));
            for one in uses.iter().filter(|one| comes_before(one)) {
                earlier.operations.extend(one.operation.upgrade());
                if kind != FileUseKind::Read || one.kind != FileUseKind::Read {
                    earlier.events.push(one.done);
                    earlier.are_afar |= one.is_afar;
                }
                if let FileUseKind::Replace { by_columns } = one.kind {
                    earlier.replaced = Some(by_columns);
                }
            }
        }
        earlier
    }

    /// Notes a use.
    pub(crate) fn add(&self, file: &FileName, one: FileUse, realm: &Realm) {
        self.0.lock().uses.add(file, &Arc::new(one), |one| !realm.has_triggered(one.done));
    }

    /// Takes a part of a file, which is going to be written; none if another has some of it.
    pub(crate) fn claim(&self, file: &FileName, extent: Extent, shapes: &ShapeTable) -> Option<Arc<FileClaim>> {
        let mut known = self.0.lock();
        for name in file.names() {
            let mut others = known.claims.of.get(&name).into_iter().flatten().filter_map(Weak::upgrade);
            if others.any(|other| other.0.overlaps(&extent, shapes)) {
                return None;
            }
        }
        let claim = Arc::new(FileClaim(extent));
        known.claims.add(file, &Arc::downgrade(&claim), |claim| claim.strong_count() > 0);
        Some(claim)
    }
}

/// So many entries are not swept.
const FEW: usize = 64;

impl<T: Clone> FileTable<T> {
    /// Adds an entry, under each name of a file. What is over is forgotten when there are twice as many as after the
    /// last time.
    fn add(&mut self, file: &FileName, entry: &T, is_kept: impl Fn(&T) -> bool) {
        if self.entries > self.sweep_at.max(FEW) {
            self.of.values_mut().for_each(|entries| entries.retain(&is_kept));
            self.of.retain(|_, entries| !entries.is_empty());
            self.entries = self.of.values().map(Vec::len).sum();
            self.sweep_at = 2 * self.entries;
        }
        for name in file.names() {
            self.of.entry(name).or_default().push(entry.clone());
            self.entries += 1;
        }
    }
}

impl<T> Default for FileTable<T> {
    fn default() -> Self {
        Self { of: FxHashMap::default(), entries: 0, sweep_at: 0 }
    }
}
