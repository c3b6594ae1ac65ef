//! A compiled kernel: loaded, and called.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

use bytemuck::bytes_of;
use libloading::Library;

use super::team::run_once_each;
use super::{Argument, KernelError, Team};
use crate::element::Scalar;
use crate::loops::ENTRY;
use crate::with_scalar;

type Entry = unsafe extern "C" fn(*const u64) -> i32;
type Chunk = unsafe extern "C" fn(*mut c_void, i64) -> i32;

/// Statuses that the generated code and [`run_chunks`] give.
const DIVISION_BY_ZERO: i32 = 1;
const OUT_OF_MEMORY: i32 = 2;
const TEAM: i32 = 3;

/// A kernel in a shared library.
#[derive(Debug)]
pub(super) struct Compiled {
    entry: Entry,
    /// Keeps the code.
    _library: Library,
}

impl Compiled {
    /// Loads the library `file`.
    ///
    /// # Safety
    ///
    /// It must have been compiled from what [`print_c`](crate::loops::print_c) printed.
    pub(super) unsafe fn load(kernel: &str, file: &Path) -> Result<Self, KernelError> {
        let failed = |error: libloading::Error| KernelError::Load {
            kernel: kernel.to_owned(),
            path: file.to_owned(),
            message: error.to_string(),
        };
        // SAFETY: the caller vouches for the library; generated code runs nothing when it is loaded.
        let library = unsafe { Library::new(file) }.map_err(failed)?;
        // SAFETY: the exported function has this type.
        let entry = *unsafe { library.get::<Entry>(ENTRY.as_bytes()) }.map_err(failed)?;
        Ok(Self { entry, _library: library })
    }

    /// Calls the kernel.
    ///
    /// # Safety
    ///
    /// The arguments must fit the parameters, and all that the kernel accesses must be in the views; iterations of its
    /// parallel loops must be independent.
    pub(super) unsafe fn call(
        &self,
        kernel: &str,
        arguments: &mut [Argument<'_>],
        team: &dyn Team,
    ) -> Result<(), KernelError> {
        let run = KernelRun { team, panic: Mutex::new(None) };
        let handle: *const KernelRun<'_> = &run;
        let mut words = Vec::with_capacity(3 + 8 * arguments.len());
        let function: RunChunks = run_chunks;
        words.push(function as usize as u64);
        words.push(handle.expose_provenance() as u64);
        words.push(team.size() as u64);
        arguments.iter().for_each(|argument| push(&mut words, argument));
        // SAFETY: the words are what the entry takes: the team, then the arguments, of which the caller says that they
        // fit. `run` outlives the call.
        let status = unsafe { (self.entry)(words.as_ptr()) };
        if let Some(panic) = run.panic.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            resume_unwind(panic);
        }
        let kernel = kernel.to_owned();
        match status {
            0 => Ok(()),
            DIVISION_BY_ZERO => Err(KernelError::DivisionByZero { kernel }),
            OUT_OF_MEMORY => Err(KernelError::OutOfMemory { kernel }),
            _ => Err(KernelError::Team { kernel }),
        }
    }
}

/// A word that begins with these bytes, at most eight, as a number of fewer bytes lies in it.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

/// Appends `argument` as the entry takes it.
fn push(words: &mut Vec<u64>, argument: &Argument<'_>) {
    match argument {
        Argument::Scalar(scalar) => match *scalar {
            Scalar::C64(value) => words.extend([value.re.to_bits(), value.im.to_bits()]),
            scalar => words.push(with_scalar!(scalar, value => word(bytes_of(&value)))),
        },
        Argument::View(view) => {
            words.push(view.address().expose_provenance() as u64);
            for dimension in view.dimensions() {
                words.extend([dimension.low as u64, dimension.high as u64, dimension.used_stride() as u64]);
            }
        }
    }
}

/// The context in which a kernel's loops over threads run.
struct KernelRun<'a> {
    team: &'a dyn Team,
    /// The panic of the team, to be resumed when the generated code has returned.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The chunk's function and context, for the team's threads.
struct ChunkBody {
    chunk: Chunk,
    context: *mut c_void,
}

// SAFETY: generated code reads the context and writes per chunk only.
unsafe impl Sync for ChunkBody {}

impl ChunkBody {
    /// Runs a chunk.
    ///
    /// # Safety
    ///
    /// Each chunk may run once.
    unsafe fn run(&self, number: i64) -> i32 {
        // SAFETY: chunks are independent, and the context lives until the team is done.
        unsafe { (self.chunk)(self.context, number) }
    }
}

type RunChunks = unsafe extern "C" fn(*mut c_void, i64, Chunk, *mut c_void) -> i32;

/// Lets the team run the chunks of a loop. Generated code calls it.
///
/// # Safety
///
/// `handle` is that of a [`KernelRun`], and `chunk` may be called with `context` once for each number below `chunks`.
unsafe extern "C" fn run_chunks(handle: *mut c_void, chunks: i64, chunk: Chunk, context: *mut c_void) -> i32 {
    // SAFETY: the caller says so.
    let run = unsafe { &*handle.cast::<KernelRun<'_>>() };
    let body = ChunkBody { chunk, context };
    let chunks = usize::try_from(chunks).unwrap_or(0);
    let status = AtomicI32::new(0);
    let one = |number: usize| {
        // SAFETY: no chunk runs twice.
        let result = unsafe { body.run(number as i64) };
        if result != 0 {
            status.store(result, Ordering::Relaxed);
        }
    };
    match catch_unwind(AssertUnwindSafe(|| run_once_each(run.team, chunks, &one))) {
        Ok(true) => status.into_inner(),
        Ok(false) => TEAM,
        Err(panic) => {
            *run.panic.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(panic);
            TEAM
        }
    }
}
