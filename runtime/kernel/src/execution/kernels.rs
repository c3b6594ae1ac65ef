//! Finds, makes and keeps what runs kernels.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::cache::{Cache, key};
use super::compiled::Compiled;
use super::compiler::Contraction;
use super::view::{are_as_expected, fit};
use super::{Argument, Compiler, KernelError, Team, interpret};
use crate::loops::{Checked, Kernel, Strides, check, contracts_in_sums_alone, print_c};

/// A kernel that can be run.
#[derive(Debug)]
pub struct Executable {
    kernel: Checked,
    /// `None` for a kernel that is interpreted.
    compiled: Option<Versions>,
}

/// A compiled kernel: for views that are contiguous where they should be, and, made when there is one that is not, for
/// others.
#[derive(Debug)]
struct Versions {
    workshop: Arc<Workshop>,
    expected: Compiled,
    any: OnceLock<Option<Compiled>>,
}

impl Executable {
    /// An executable that interprets `kernel`.
    ///
    /// # Errors
    ///
    /// [`KernelError::IllFormed`].
    pub fn interpreted(kernel: &Kernel) -> Result<Self, KernelError> {
        Ok(Self { kernel: check(kernel)?, compiled: None })
    }

    /// Whether it is machine code.
    pub fn is_compiled(&self) -> bool {
        self.compiled.is_some()
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        self.kernel.kernel()
    }

    /// Runs the kernel, its loops over threads by `team`.
    ///
    /// # Safety
    ///
    /// With these arguments, all that the kernel accesses must be in the views, no element of its own buffers may be
    /// loaded before it is stored, and iterations of parallel loops must be independent. [`interpret`] finds out, and
    /// is the safe way.
    ///
    /// # Errors
    ///
    /// As [`interpret`], save those that only the interpreter finds.
    pub unsafe fn call(&self, arguments: &mut [Argument<'_>], team: &dyn Team) -> Result<(), KernelError> {
        let Some(compiled) = &self.compiled else { return interpret(&self.kernel, arguments, false) };
        fit(self.kernel(), arguments)?;
        let version = if are_as_expected(self.kernel(), arguments) {
            &compiled.expected
        } else {
            match compiled.any.get_or_init(|| compiled.workshop.make(&self.kernel, Strides::Any)) {
                Some(any) => any,
                None => return interpret(&self.kernel, arguments, false),
            }
        };
        // SAFETY: the arguments fit, with their strides; the rest is the caller's.
        unsafe { version.call(&self.kernel().name, arguments, team) }
    }
}

type Entry = Arc<OnceLock<Result<Arc<Executable>, KernelError>>>;

/// The kernels of a process: each is compiled at most once, and what was compiled is kept on disk.
///
/// If there is no C compiler, or if it fails, one warning is logged, and kernels are interpreted.
#[derive(Debug)]
pub struct Kernels {
    /// `None` if kernels are interpreted.
    workshop: Option<Arc<Workshop>>,
    /// By the kernel's text.
    known: Mutex<HashMap<String, Entry>>,
}

impl Kernels {
    /// The kernels of this process, compiled by the system's compiler and kept in the user's folder for caches (or in
    /// the folder that the environment variable `MANIPLE_KERNELS` names).
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Kernels> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(Compiler::find(), Cache::usual_folder()))
    }

    /// Kernels compiled by `compiler` and kept in `folder`. Without a compiler, kernels are interpreted; if the folder
    /// cannot be used, a private temporary one takes its place.
    pub fn new(compiler: Option<Compiler>, folder: Option<PathBuf>) -> Self {
        let workshop = match compiler {
            None => {
                tracing::warn!("kernels are interpreted, which is slow: no C compiler found; install one, or set CC");
                None
            }
            Some(compiler) => match Cache::open(folder) {
                Ok(cache) => Some(Arc::new(Workshop {
                    identity: compiler.identity(),
                    compiler,
                    cache,
                    has_failed: AtomicBool::new(false),
                })),
                Err(error) => {
                    tracing::warn!(
                        "kernels are interpreted, which is slow: there is no folder to compile them in: {error}"
                    );
                    None
                }
            },
        };
        Self { workshop, known: Mutex::default() }
    }

    /// The executable of `kernel`. The first request in a process finds it on disk or compiles it; other requests find
    /// it in memory. A kernel that can't be compiled is interpreted.
    ///
    /// # Errors
    ///
    /// [`KernelError::IllFormed`].
    pub fn get(&self, kernel: &Kernel) -> Result<Arc<Executable>, KernelError> {
        let text = kernel.to_string();
        let entry = {
            let mut known = self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            known.entry(text).or_default().clone()
        };
        // Other threads that ask for the same kernel wait for this one; other kernels go on.
        entry.get_or_init(|| self.make(kernel).map(Arc::new)).clone()
    }

    fn make(&self, kernel: &Kernel) -> Result<Executable, KernelError> {
        let kernel = check(kernel)?;
        let compiled = self.workshop.as_ref().and_then(|workshop| {
            let expected = workshop.make(&kernel, Strides::AsExpected)?;
            Some(Versions { workshop: workshop.clone(), expected, any: OnceLock::new() })
        });
        Ok(Executable { kernel, compiled })
    }
}

/// The compiler of kernels, and the cache for its results.
#[derive(Debug)]
struct Workshop {
    compiler: Compiler,
    identity: String,
    cache: Cache,
    /// Whether a kernel could not be made, and that was said.
    has_failed: AtomicBool,
}

impl Workshop {
    /// Finds the library for `kernel` on disk, or makes it. None if that can't be done, of which the first is warned
    /// of.
    fn make(&self, kernel: &Checked, strides: Strides) -> Option<Compiled> {
        let made = self.try_to_make(kernel, strides);
        if let Err(error) = &made
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!("kernels that cannot be compiled are interpreted, which is slow: {error}");
        }
        made.ok()
    }

    fn try_to_make(&self, kernel: &Checked, strides: Strides) -> Result<Compiled, KernelError> {
        let source = print_c(kernel, strides);
        let name = &kernel.kernel().name;
        let contraction = if contracts_in_sums_alone(kernel) { Contraction::Allowed } else { Contraction::Forbidden };
        let key = key(&[&source, contraction.flag(), &self.identity]);
        let file = match self.cache.find(&key) {
            Some(file) => file,
            None => {
                let compile =
                    |file: &Path| self.compiler.compile(name, &source, contraction, file).map_err(Failure::Kernel);
                self.cache.insert(&key, compile).map_err(|error| match error {
                    Failure::Kernel(error) => error,
                    Failure::Io(error) => KernelError::Compile {
                        kernel: name.clone(),
                        compiler: self.compiler.program().display().to_string(),
                        message: error.to_string(),
                    },
                })?
            }
        };
        // SAFETY: the file is this user's, and its key and sum say that it was compiled from this source.
        unsafe { Compiled::load(name, &file) }
    }
}

/// Why a library could not be made.
enum Failure {
    Kernel(KernelError),
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
