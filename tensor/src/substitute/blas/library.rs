//! A shared library: loaded, asked what it is, and tried.

use std::ffi::{CStr, c_char, c_int};

use libloading::Library;
use num_complex::Complex;

use super::error::BlasError;
use super::product::Numbers;

/// The functions of a library that multiply, by element type.
#[derive(Debug)]
pub(in super::super) struct Blas {
    /// The name of the library, with its version and the core that its kernels are for, if it tells.
    pub(super) name: String,
    pub(super) single: <f32 as Numbers>::Function,
    pub(super) double: <f64 as Numbers>::Function,
    pub(super) complex_single: <Complex<f32> as Numbers>::Function,
    pub(super) complex_double: <Complex<f64> as Numbers>::Function,
}

/// A library that is loaded and has said what it is. It has been told nothing yet, and may still be unloaded.
#[derive(Debug)]
pub(super) struct Candidate {
    library: Library,
    /// The name that was asked for.
    name: String,
    /// OpenBLAS tells its own name and version.
    version: Option<String>,
    /// The core that the kernels of an OpenBLAS are for.
    core: Option<String>,
}

impl Candidate {
    /// Loads a library, and finds out whether it can be called by several threads.
    pub(super) fn load(name: &str) -> Result<Self, BlasError> {
        type Text = unsafe extern "C" fn() -> *const c_char;
        type Number = unsafe extern "C" fn() -> c_int;
        // SAFETY: what a library does when it is loaded is its own affair: it is one that programs link to, or that the
        // user names.
        let library = unsafe { Library::new(name) }
            .map_err(|error| BlasError::Load { library: name.to_owned(), message: error.to_string() })?;
        let text = |function: &[u8]| {
            // SAFETY: functions of these names have this type in OpenBLAS. The text is a constant of the library, or in
            // a buffer that others fill with the same.
            unsafe {
                library.get::<Text>(function).ok().map(|text| CStr::from_ptr(text()).to_string_lossy().into_owned())
            }
        };
        let number = |function: &[u8]| {
            // SAFETY: functions of these names have this type in OpenBLAS and in BLIS, whose integer may have 64 bits:
            // a small one fits as well, as it is passed in a register.
            unsafe { library.get::<Number>(function).ok().map(|number| number()) }
        };
        let config = text(b"openblas_get_config");
        may_be_shared(name, config.as_deref().unwrap_or_default(), number(b"openblas_get_parallel"))?;
        if number(b"bli_info_get_blas_int_type_size").is_some_and(|bits| bits != 32) {
            return Err(BlasError::Integers { library: name.to_owned() });
        }
        let core = config.as_ref().map(|_| text(b"openblas_get_corename").unwrap_or_else(|| "Unknown".to_owned()));
        let version = config.map(|config| config.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
        Ok(Self { library, name: name.to_owned(), version, core })
    }

    /// The core that its kernels are for, if it is an OpenBLAS. Others choose among theirs by themselves.
    pub(super) fn core(&self) -> Option<&str> {
        self.core.as_deref()
    }

    /// Tells it to have one thread, and tries it.
    pub(super) fn accept(self) -> Result<Blas, BlasError> {
        let blas = Blas {
            name: self.title(),
            single: self.function::<f32>()?,
            double: self.function::<f64>()?,
            complex_single: self.function::<Complex<f32>>()?,
            complex_double: self.function::<Complex<f64>>()?,
        };
        self.have_one_thread();
        // Its functions are used, and threads of its own may run, until the process ends.
        std::mem::forget(self.library);
        if blas.is_right() { Ok(blas) } else { Err(BlasError::Wrong { library: self.name }) }
    }

    /// As it is printed.
    fn title(&self) -> String {
        match (&self.version, &self.core) {
            (Some(version), Some(core)) => format!("{version} for {core} ({})", self.name),
            _ => self.name.clone(),
        }
    }

    /// The function for elements of one type.
    fn function<T: Numbers>(&self) -> Result<T::Function, BlasError> {
        let missing = |_| BlasError::Missing { library: self.name.clone(), function: T::SYMBOL.to_owned() };
        // SAFETY: what has this name in a BLAS has this type; whether its integers are so long has been asked where it
        // can be.
        unsafe { self.library.get::<T::Function>(T::SYMBOL.as_bytes()) }.map(|found| *found).map_err(missing)
    }

    fn have_one_thread(&self) {
        type Set = unsafe extern "C" fn(c_int);
        let names: [&[u8]; 3] = [b"openblas_set_num_threads", b"bli_thread_set_num_threads", b"MKL_Set_Num_Threads"];
        // SAFETY: functions of these names have this type in OpenBLAS, BLIS and MKL; if the integer has 64 bits, one
        // fits as well, as it is passed in a register.
        unsafe { names.into_iter().filter_map(|name| self.library.get::<Set>(name).ok()).for_each(|set| set(1)) }
    }
}

/// Whether an OpenBLAS, by what it says of how it was built, takes integers of 32 bits and calls from several threads.
/// Others are not asked.
pub(super) fn may_be_shared(name: &str, config: &str, parallel: Option<c_int>) -> Result<(), BlasError> {
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
