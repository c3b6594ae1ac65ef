//! A system's BLAS in place of the crate `gemm`: vendors' libraries are faster on some processors.
//!
//! It is found at run time, by the environment variable `MANIPLE_BLAS` or by [`use_library`]: nothing links to it. The threads are the
//! runtime's own, so the library is told to have one.

mod product;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

use libloading::Library;

pub(super) use product::Numbers;

/// Which library multiplies: a name or path that the system's loader finds; `auto`; or `none`, as if it were unset, for the crate `gemm`.
const VARIABLE: &str = "MANIPLE_BLAS";

/// What `auto` tries, in this order.
const USUAL: &[&str] =
    &["libopenblas.so.0", "libopenblas.so", "libblis.so.4", "libblis.so", "libmkl_rt.so.2", "libmkl_rt.so"];

/// Why a library does not multiply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlasError {
    /// The system's loader does not find it, or cannot load it.
    #[error(
        "{library} cannot be loaded: {message}; give a path, or the name of a library where the system looks for them"
    )]
    Load {
        /// What was asked for.
        library: String,
        /// What the loader says.
        message: String,
    },
    /// None of those that `auto` stands for.
    #[error("none of {} is installed", USUAL.join(", "))]
    NoneFound,
    /// It has not all functions that are needed.
    #[error("{library} has no `{function}`: it must have the C interface of BLAS (CBLAS)")]
    Missing {
        /// What was asked for.
        library: String,
        /// The function.
        function: String,
    },
    /// It takes integers of 64 bits.
    #[error("{library} takes integers of 64 bits; one that takes 32 bits (LP64) is needed")]
    Integers {
        /// What was asked for.
        library: String,
    },
    /// It was built for one thread, without locks.
    #[error("{library} was built for programs of one thread; one built with threads, or with USE_LOCKING, is needed")]
    OneThread {
        /// What was asked for.
        library: String,
    },
    /// It gets products wrong.
    #[error("{library} gets small products wrong; does its interface have integers of 32 bits (LP64)?")]
    Wrong {
        /// What was asked for.
        library: String,
    },
    /// Another one has been chosen, or products have been computed.
    #[error("{library} is asked for when products are already by {used}: choose before the first product")]
    Late {
        /// What was asked for.
        library: String,
        /// What is used.
        used: String,
    },
}

/// The functions of a library that multiply, by element type.
#[derive(Debug)]
pub(super) struct Blas {
    /// What was loaded, with its version if it tells.
    name: String,
    single: <f32 as Numbers>::Function,
    double: <f64 as Numbers>::Function,
    complex_single: <num_complex::Complex<f32> as Numbers>::Function,
    complex_double: <num_complex::Complex<f64> as Numbers>::Function,
}

/// What multiplies in this process. None: the crate `gemm`.
static SHARED: OnceLock<Option<Blas>> = OnceLock::new();

/// The library that multiplies in this process, if it is not the crate `gemm`.
pub(super) fn shared() -> Option<&'static Blas> {
    SHARED.get_or_init(|| Blas::find_or_warn(&std::env::var(VARIABLE).unwrap_or_default())).as_ref()
}

/// Chooses what multiplies matrices in this process, in place of the environment variable `MANIPLE_BLAS`: a library's name or path, `auto` for the first of
/// OpenBLAS, BLIS and MKL that is installed, or `none` for the crate `gemm`. To be called before the first product.
///
/// # Errors
///
/// [`BlasError`] if the library cannot be used; then nothing has been chosen, except if it is too late.
pub fn use_library(name: &str) -> Result<(), BlasError> {
    let late = || BlasError::Late { library: name.to_owned(), used: library().to_owned() };
    if SHARED.get().is_some() {
        return Err(late());
    }
    SHARED.set(Blas::find(name)?).map_err(|_| late())
}

/// What multiplies matrices of floats and complex numbers in this process: the name of a library, or `gemm`. Chooses if nothing has been chosen.
pub fn library() -> &'static str {
    shared().map_or("gemm", |blas| &blas.name)
}

impl Blas {
    /// What `wanted` stands for; nothing for the crate `gemm`.
    fn find(wanted: &str) -> Result<Option<Self>, BlasError> {
        match wanted.trim() {
            "" | "none" => Ok(None),
            "auto" => {
                let mut refused = None;
                for name in USUAL {
                    match Self::open(name) {
                        Ok(blas) => return Ok(Some(blas)),
                        Err(BlasError::Load { .. }) => (),
                        Err(error) => refused = refused.or(Some(error)),
                    }
                }
                Err(refused.unwrap_or(BlasError::NoneFound))
            }
            name => Self::open(name).map(Some),
        }
    }

    /// The same, where the crate `gemm` takes the place of what cannot be used.
    fn find_or_warn(wanted: &str) -> Option<Self> {
        Self::find(wanted).unwrap_or_else(|error| {
            tracing::warn!("matrices are multiplied by the crate gemm, not by {VARIABLE}={wanted}: {error}");
            None
        })
    }

    /// Loads a library, tells it to have one thread, and tries it.
    pub(super) fn open(name: &str) -> Result<Self, BlasError> {
        let library = || name.to_owned();
        // SAFETY: what a library does when it is loaded is its own affair: the user names it, as one names those that a program links to.
        let loaded = unsafe { Library::new(name) }
            .map_err(|error| BlasError::Load { library: library(), message: error.to_string() })?;
        let version = one_thread(&loaded, name)?;
        let blas = Self {
            name: version.map_or_else(library, |version| format!("{version} ({name})")),
            single: function::<f32>(&loaded, name)?,
            double: function::<f64>(&loaded, name)?,
            complex_single: function::<num_complex::Complex<f32>>(&loaded, name)?,
            complex_double: function::<num_complex::Complex<f64>>(&loaded, name)?,
        };
        // Its functions are used, and threads of its own may run, until the process ends.
        std::mem::forget(loaded);
        if blas.is_right() { Ok(blas) } else { Err(BlasError::Wrong { library: library() }) }
    }
}

/// The function for elements of one type.
fn function<T: Numbers>(library: &Library, name: &str) -> Result<T::Function, BlasError> {
    let missing = |_| BlasError::Missing { library: name.to_owned(), function: T::SYMBOL.to_owned() };
    // SAFETY: what has this name in a BLAS has this type; whether its integers are so long has been asked where it can be.
    unsafe { library.get::<T::Function>(T::SYMBOL.as_bytes()) }.map(|found| *found).map_err(missing)
}

/// Tells a library not to start threads, and finds out whether it can be called by several. Its name and version, if it tells.
fn one_thread(library: &Library, name: &str) -> Result<Option<String>, BlasError> {
    type Set = unsafe extern "C" fn(c_int);
    type Tell = unsafe extern "C" fn() -> c_int;
    type Text = unsafe extern "C" fn() -> *const c_char;
    // SAFETY: functions of these names have these types in OpenBLAS.
    let (config, parallel) = unsafe {
        (library.get::<Text>(b"openblas_get_config").ok(), library.get::<Tell>(b"openblas_get_parallel").ok())
    };
    // SAFETY: the text is a constant of the library, or in a buffer that others fill with the same.
    let config = config.map(|config| unsafe { CStr::from_ptr(config()) }.to_string_lossy().into_owned());
    // SAFETY: it only tells a number.
    let parallel = parallel.map(|parallel| unsafe { parallel() });
    may_be_shared(name, config.as_deref().unwrap_or_default(), parallel)?;
    // SAFETY: functions of these names have these types in MKL and BLIS; the latter's integer may have 64 bits, which a small one fits as
    // well, as it is passed in a register.
    unsafe {
        if let Ok(width) = library.get::<Tell>(b"bli_info_get_blas_int_type_size")
            && width() != 32
        {
            return Err(BlasError::Integers { library: name.to_owned() });
        }
        let one: [&[u8]; 3] = [b"openblas_set_num_threads", b"bli_thread_set_num_threads", b"MKL_Set_Num_Threads"];
        one.into_iter().filter_map(|function| library.get::<Set>(function).ok()).for_each(|set| set(1));
    }
    Ok(config.map(|config| config.split_whitespace().take(2).collect::<Vec<_>>().join(" ")))
}

/// Whether an OpenBLAS, by what it says of how it was built, takes integers of 32 bits and calls from several threads. Others are not asked.
fn may_be_shared(name: &str, config: &str, parallel: Option<c_int>) -> Result<(), BlasError> {
    let has = |word: &str| config.split_whitespace().any(|known| known == word);
    let library = name.to_owned();
    if has("USE64BITINT") {
        Err(BlasError::Integers { library })
    } else if parallel == Some(0) && !has("USE_LOCKING") {
        Err(BlasError::OneThread { library })
    } else {
        Ok(())
    }
}
