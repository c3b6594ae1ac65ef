//! The libraries that schedules can name.

use std::sync::{Arc, LazyLock, RwLock};

use super::functions::{LeafFunction, LeafLibrary, Nest};
use super::gemm::Gemm;
use crate::concrete::Substitution;

/// The function that computes a leaf.
#[derive(Clone, Debug)]
pub struct Substituted {
    /// The name of its library.
    pub library: Substitution,
    /// The function.
    pub function: Arc<dyn LeafFunction>,
}

/// Which function it is follows from the library and the loops, which are compared where this is.
impl PartialEq for Substituted {
    fn eq(&self, other: &Self) -> bool {
        self.library == other.library
    }
}

impl Substituted {
    /// The function of a library that computes loops. None if there is none: schedules ask before.
    pub(crate) fn find(library: &Substitution, nest: &Nest<'_>) -> Option<Self> {
        let function = find(library)?.find(nest).ok()?;
        Some(Self { library: library.clone(), function })
    }
}

/// A library cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// Another one has its name.
    #[error("a library named {0} is registered already: register each once, and give it a name of its own")]
    Taken(String),
    /// The name is none that a schedule could name.
    #[error("`{0}` is no name: expected a letter or `_`, then letters, digits and `_`")]
    NoName(String),
}

static LIBRARIES: LazyLock<RwLock<Vec<Arc<dyn LeafLibrary>>>> = LazyLock::new(|| RwLock::new(vec![Arc::new(Gemm)]));

/// Adds a library whose functions schedules can name. On several nodes all have to do so.
///
/// # Errors
///
/// [`RegisterError`].
pub fn register(library: Arc<dyn LeafLibrary>) -> Result<(), RegisterError> {
    let name = library.name().to_owned();
    if !crate::notation::is_name(&name) {
        return Err(RegisterError::NoName(name));
    }
    let mut libraries = LIBRARIES.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if libraries.iter().any(|known| known.name() == name) {
        return Err(RegisterError::Taken(name));
    }
    libraries.push(library);
    Ok(())
}

/// The library that a schedule names, if it is registered.
pub fn find(name: &Substitution) -> Option<Arc<dyn LeafLibrary>> {
    let libraries = LIBRARIES.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    libraries.iter().find(|known| known.name() == name.name()).cloned()
}

/// The names of all registered libraries.
pub fn names() -> Vec<String> {
    let libraries = LIBRARIES.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    libraries.iter().map(|known| known.name().to_owned()).collect()
}
