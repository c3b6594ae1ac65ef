//! Finds, makes and keeps what runs kernels.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use super::cache::{Cache, key};
use super::compiled::Compiled;
use super::view::fit;
use super::{Argument, Compiler, KernelError, Team, interpret};
use crate::loops::{Checked, Kernel, check, print_c};

/// What runs a kernel.
#[derive(Debug)]
pub struct Executable {
    kernel: Checked,
    /// `None` for a kernel that is interpreted.
    compiled: Option<Compiled>,
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
    /// With these arguments, all that the kernel accesses must be in the views, no element of its own buffers may be loaded before it is stored, and iterations of
    /// parallel loops must be independent. [`interpret`] finds out, and is the safe way.
    ///
    /// # Errors
    ///
    /// As [`interpret`], save those that only the interpreter finds.
    pub unsafe fn call(&self, arguments: &mut [Argument<'_>], team: &dyn Team) -> Result<(), KernelError> {
        let Some(compiled) = &self.compiled else { return interpret(&self.kernel, arguments, false) };
        fit(self.kernel(), arguments)?;
        // SAFETY: the arguments fit; the rest is the caller's.
        unsafe { compiled.call(&self.kernel().name, arguments, team) }
    }
}

type Entry = Arc<OnceLock<Result<Arc<Executable>, KernelError>>>;

/// The kernels of a process: each is compiled at most once, and what was compiled is kept on disk.
///
/// Where there is no C compiler, one warning is logged, and kernels are interpreted.
#[derive(Debug)]
pub struct Kernels {
    compiler: Option<(Compiler, String)>,
    cache: Option<Cache>,
    /// By the kernel's text.
    known: Mutex<HashMap<String, Entry>>,
}

impl Kernels {
    /// The kernels of this process, compiled by the system's compiler and kept in the user's folder for caches (or in the folder
    /// that the environment variable `MANIPLE_KERNELS` names).
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Kernels> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(Compiler::find(), Cache::usual_folder()))
    }

    /// Kernels compiled by `compiler` and kept in `folder`. Without a compiler, kernels are interpreted; if the folder cannot be used,
    /// a private temporary one takes its place.
    pub fn new(compiler: Option<Compiler>, folder: Option<PathBuf>) -> Self {
        let cache = compiler.as_ref().and_then(|_| {
            Cache::open(folder)
                .inspect_err(|error| {
                    tracing::warn!("kernels are interpreted: there is no folder to compile them in: {error}")
                })
                .ok()
        });
        if compiler.is_none() {
            tracing::warn!("kernels are interpreted, which is slow: no C compiler found; install one, or set CC");
        }
        let compiler = compiler.map(|compiler| {
            let identity = compiler.identity();
            (compiler, identity)
        });
        Self { compiler, cache, known: Mutex::default() }
    }

    /// What runs `kernel`. The first request in a process finds it on disk or compiles it; others find it in memory.
    ///
    /// # Errors
    ///
    /// [`KernelError::IllFormed`], [`Compile`](KernelError::Compile) and [`Load`](KernelError::Load).
    pub fn get(&self, kernel: &Kernel) -> Result<Arc<Executable>, KernelError> {
        let text = kernel.to_string();
        let entry = {
            let mut known = self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            known.entry(text).or_default().clone()
        };
        // Others who ask for the same kernel wait for this one; other kernels go on.
        entry.get_or_init(|| self.make(kernel).map(Arc::new)).clone()
    }

    fn make(&self, kernel: &Kernel) -> Result<Executable, KernelError> {
        let checked = check(kernel)?;
        let (Some((compiler, identity)), Some(cache)) = (&self.compiler, &self.cache) else {
            return Ok(Executable { kernel: checked, compiled: None });
        };
        let source = print_c(&checked);
        let key = key(&[&source, identity]);
        let file = match cache.find(&key) {
            Some(file) => file,
            None => {
                let failed = |error: Failure| match error {
                    Failure::Kernel(error) => error,
                    Failure::Io(error) => KernelError::Compile {
                        kernel: kernel.name.clone(),
                        compiler: compiler.program().display().to_string(),
                        message: error.to_string(),
                    },
                };
                cache
                    .insert(&key, |file| compiler.compile(&kernel.name, &source, file).map_err(Failure::Kernel))
                    .map_err(failed)?
            }
        };
        // SAFETY: the file is this user's, and its key and sum say that it was compiled from this source.
        let compiled = unsafe { Compiled::load(&kernel.name, &file) }?;
        Ok(Executable { kernel: checked, compiled: Some(compiled) })
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
