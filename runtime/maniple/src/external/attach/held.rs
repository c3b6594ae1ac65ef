//! A file that is attached: the place of its values, which is known once the file is opened, and the end of its
//! reading.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use maniple_realm::layout::DimensionOrder;
use maniple_realm::locks::Mutex;
use maniple_realm::{After, Event, Fault, Realm, UserEvent};
use maniple_region::{FieldId, FieldType, LogicalRegion, Shape};
use maniple_space::AnyRect;

use super::ATTACH;
use super::file::{Access, File, Role, open};
use super::load::{FilePlace, Opened};
use super::values::FieldValues;
use crate::context::{Context, ContextState};
use crate::core::{ArrayPart, Earlier, Extent, FileClaim, FileName, FileUse, FileUseKind, number_of};
use crate::future::Future;
use crate::instances::instance::PhysicalInstance;
use crate::nodes::replication::Replica;
use crate::operation::lifecycle::Operation;
use crate::results::{Origin, Results, Sources, one_point};
use crate::support::error::{Error, FileError, Result};

/// A file that is attached, or that all nodes are told is not, as one of them cannot open it.
pub(super) struct HeldFile {
    file: File,
    role: Role,
    region: LogicalRegion,
    field: FieldId,
    ty: FieldType,
    /// The points of the values.
    area: AnyRect,
    name: FileName,
    /// The order of the values, unless the file is opened and says another.
    by_columns: bool,
    place: OnceLock<Result<FilePlace>>,
    refused: OnceLock<Error>,
}

impl HeldFile {
    /// The file, opened now if it is not yet.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(super) fn place(&self) -> Result<&FilePlace> {
        if let Some(refused) = self.refused.get() {
            return Err(refused.clone());
        }
        let place = match self.place.get() {
            Some(place) => place,
            // By several threads at once, perhaps. Nothing is made.
            None => {
                let mut file = self.file.clone();
                file.by_columns = Some(self.by_columns);
                let opened = open(&file, &self.values(), self.area, self.role);
                self.place.get_or_init(|| opened)
            }
        };
        place.as_ref().map_err(Error::clone)
    }

    /// Fails if a problem with the file was found so far.
    pub(super) fn found_out(&self) -> Result<()> {
        if let Some(refused) = self.refused.get() {
            return Err(refused.clone());
        }
        self.place.get().map_or(Ok(()), |place| place.as_ref().map(drop).map_err(Error::clone))
    }

    fn values(&self) -> FieldValues<'_> {
        FieldValues { region: &self.region, field: self.field, ty: self.ty }
    }

    /// The order in which memory has the values.
    pub(super) fn order(&self) -> DimensionOrder {
        match (self.place.get(), self.by_columns) {
            (Some(Ok(place)), _) => place.array.order(),
            (_, true) => DimensionOrder::column_major(self.area.dim()),
            (_, false) => DimensionOrder::row_major(self.area.dim()),
        }
    }

    fn by_columns(&self) -> bool {
        match self.place.get() {
            Some(Ok(place)) => place.array.by_columns,
            _ => self.by_columns,
        }
    }

    pub(super) fn access(&self) -> Access {
        self.file.access
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.file.path
    }

    /// Whether it was to be written, and all nodes are told that it is not.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.get().is_some()
    }

    /// How the file is used when it is written.
    fn written_as(&self) -> FileUseKind {
        match self.file.access {
            Access::Create => FileUseKind::Replace { by_columns: self.by_columns() },
            _ => FileUseKind::Write,
        }
    }

    /// The part of the file that is written, for these points.
    fn extent(&self, points: Shape) -> Extent {
        if self.file.access == Access::Create {
            return Extent::WHOLE;
        }
        let Some(Ok(place)) = self.place.get() else { return Extent::WHOLE };
        let array = &place.array;
        let part = ArrayPart { form: (array.start, array.size, array.by_columns), bounds: array.bounds, points };
        Extent { bytes: array.extent(&self.area), array: Some(part) }
    }

    /// Refuses a file that another one has taken the place of: what is written to it would be lost.
    pub(super) fn check_in_place(&self) -> Result<()> {
        let Opened::Here(file) = &self.place()?.file else { return Ok(()) };
        if self.file.access == Access::Create {
            return Ok(());
        }
        let (here, there) = (file.metadata().ok(), fs::metadata(&self.file.path).ok());
        let numbers = [here, there].map(|data| data.as_ref().and_then(number_of));
        if cfg!(unix) && numbers[0] != numbers[1] {
            return Err(FileError::Replaced { path: self.file.path.clone() }.into());
        }
        Ok(())
    }
}

/// The reading of a file, in one part or several: on all nodes, if several run the program.
pub(super) struct LoadEnd {
    realm: Realm,
    /// Parts that are not read yet, and one more until all are known.
    parts: AtomicUsize,
    failure: Mutex<Option<Error>>,
    end: UserEvent,
}

impl LoadEnd {
    /// One more part.
    pub(super) fn add(&self) {
        self.parts.fetch_add(1, Ordering::Relaxed);
    }

    /// A part is there, or all are known.
    pub(super) fn end_part(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.failure.lock().get_or_insert(error);
        }
        if self.parts.fetch_sub(1, Ordering::AcqRel) == 1 {
            let failure = self.failure.lock().take();
            match failure {
                None => self.realm.trigger(self.end),
                Some(error) => self.realm.poison(self.end, Arc::<Fault>::from(error)),
            }
        }
    }
}

/// A file about to be attached.
pub(super) struct Holding {
    pub(super) at: Arc<HeldFile>,
    /// The claim on the part of the file that is to be written.
    pub(super) claim: Option<Arc<FileClaim>>,
    /// The uses of the file after which it is read.
    pub(super) earlier: Arc<Earlier>,
}

/// The reading of a file that is attached.
pub(super) struct Loading {
    pub(super) end: Arc<LoadEnd>,
    /// Triggers when the values are there, on all nodes.
    pub(super) loaded: Event,
    pub(super) earlier: Arc<Earlier>,
    /// Other nodes read too.
    pub(super) is_afar: bool,
}

/// Reads a piece of a file into the memory of an instance, which is used by nothing else meanwhile.
pub(super) struct Load {
    pub(super) at: Arc<HeldFile>,
    pub(super) piece: AnyRect,
    pub(super) bytes: usize,
    pub(super) loading: Arc<Loading>,
}

impl Load {
    /// Reads, and tells how that ended.
    ///
    /// # Safety
    /// The instance is one of the memory of this file's contents, and nothing uses it before this has returned.
    pub(super) unsafe fn run(self, instance: &PhysicalInstance) {
        // SAFETY: promised by the caller.
        let outcome = unsafe { self.read(instance) };
        self.loading.end.end_part(outcome);
    }

    /// Gives up, with this error.
    pub(super) fn fail(self, error: Error) {
        self.loading.end.end_part(Err(error));
    }

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn read(&self, instance: &PhysicalInstance) -> Result<()> {
        let place = self.at.place();
        if self.at.access().is_read()
            && let Some(base) = instance.storage().base()
        {
            // SAFETY: the memory has so many bytes, all initialised; the rest is promised by the caller.
            let bytes = unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), self.bytes) };
            // What is not read may be what an earlier file had.
            return place.and_then(|place| place.read(&self.piece, bytes)).inspect_err(|_| bytes.fill(0));
        }
        place.map(drop)
    }
}

impl Context {
    /// Opens a file to attach it to points of an area. One that is to be written before, and then is another, is opened
    /// later.
    ///
    /// In a program that several nodes run, what is wrong with the file on one of them is told by its reading.
    pub(super) fn hold(
        &self,
        file: &File,
        role: Role,
        values: &FieldValues<'_>,
        area: AnyRect,
        points: &Shape,
    ) -> Result<Holding> {
        let (state, files) = (&self.state, &self.state.core.files);
        let name = FileName::of(&file.path);
        let mut earlier = state.before(&name, FileUseKind::Read);
        let is_told = Replica::of(state).is_some();
        let is_opened_later = earlier.replaced.is_some() && file.access != Access::Create;
        if !is_opened_later && !file.access.is_read() {
            earlier.events.clear();
        }
        let by_columns = file.by_columns.or(earlier.replaced).unwrap_or(false);
        let opened = (!is_opened_later).then(|| open(file, values, area, role));
        let opened = match opened {
            Some(Err(error)) if !is_told => return Err(error),
            opened => opened,
        };
        let at = HeldFile {
            file: file.clone(),
            role,
            region: values.region.clone(),
            field: values.field,
            ty: values.ty,
            area,
            name,
            by_columns,
            place: opened.map_or_else(OnceLock::new, OnceLock::from),
            refused: OnceLock::new(),
        };
        let is_written = file.access != Access::Read;
        let shapes = values.region.space().forest().shapes();
        let claim = is_written.then(|| files.claim(&at.name, at.extent(points.clone()), shapes));
        if let Some(None) = claim {
            let error = Error::from(FileError::InUse { path: file.path.clone() });
            if !is_told {
                return Err(error);
            }
            at.refused.get_or_init(|| error);
        }
        Ok(Holding { at: Arc::new(at), claim: claim.flatten(), earlier: Arc::new(earlier) })
    }

    /// The reading of a file that is about to begin. If several nodes run the program, there is one for a file that is
    /// not read, too: by its end all nodes are told whether all have the file.
    pub(super) fn loading(&self, at: &HeldFile, earlier: &Arc<Earlier>) -> Option<Loading> {
        let (realm, replica) = (self.state.core.realm(), Replica::of(&self.state));
        if !at.access().is_read() && replica.is_none() {
            return None;
        }
        let end = realm.user_event();
        let loaded = replica.map_or(end.event(), |replica| {
            let own = Results::new(realm, Origin::BuiltIn(ATTACH), one_point(), end.event(), Sources::new());
            replica.spread(ATTACH, &Future::<()>::new(own, 0)).event()
        });
        let end = LoadEnd { realm: realm.clone(), parts: AtomicUsize::new(1), failure: Mutex::default(), end };
        let (end, earlier) = (Arc::new(end), Arc::clone(earlier));
        Some(Loading { end, loaded, earlier, is_afar: replica.is_some() })
    }
}

impl ContextState {
    /// The uses of a file that come before: by the task itself, and by tasks above it before they launched it.
    fn before(&self, file: &FileName, kind: FileUseKind) -> Earlier {
        let comes_before = |one: &FileUse| self.comes_after(&one.task, one.number);
        self.core.files.before(file, kind, self.core.realm(), comes_before)
    }

    /// An event after which a file may be written.
    pub(super) fn before_writing(&self, at: &HeldFile) -> Event {
        let earlier = self.before(&at.name, at.written_as());
        self.core.realm().merge(After::follows(&earlier.events))
    }

    /// Notes that a file is read, until an event.
    pub(super) fn note_reading(&self, at: &HeldFile, loading: &Loading, operation: &Arc<Operation>) {
        if at.access() != Access::Create {
            self.note_file_use(at, FileUseKind::Read, loading.loaded, Some(operation), loading.is_afar);
        }
    }

    /// Notes that a file is written, until an event.
    pub(super) fn note_writing(&self, at: &HeldFile, done: Event, operation: Option<&Arc<Operation>>) {
        self.note_file_use(at, at.written_as(), done, operation, Replica::of(self).is_some());
    }

    fn note_file_use(
        &self,
        at: &HeldFile,
        kind: FileUseKind,
        done: Event,
        operation: Option<&Arc<Operation>>,
        is_afar: bool,
    ) {
        let (task, number) = self.place_for_files();
        let operation = operation.map(Arc::downgrade).unwrap_or_default();
        let one = FileUse { done, kind, task, number, operation, is_afar };
        self.core.files.add(&at.name, one, self.core.realm());
    }
}
