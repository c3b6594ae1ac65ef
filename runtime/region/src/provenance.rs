//! The provenance of an operation: the place in a program that launched it.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The origin of an operation in a program: the place in the source that launched it, or a text that the program gave
/// in its stead.
///
/// A program that others generate, or a library, says what its own users know: the line of a script, the name of a
/// step.
///
/// ```
/// use std::sync::Arc;
///
/// use maniple_region::Provenance;
///
/// let here = Provenance::here(None);
/// assert!(here.to_string().ends_with(&format!(":{}:{}", here.location().line(), here.location().column())));
/// let said = Provenance::here(Some(Arc::new("solver.py:42".into())));
/// assert_eq!(said.to_string(), "solver.py:42");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Provenance {
    location: &'static Location<'static>,
    said: Option<Arc<Box<str>>>,
}

impl Provenance {
    /// The place of the caller, for which the program says something if it has.
    #[must_use]
    #[track_caller]
    #[inline]
    pub fn here(said: Option<Arc<Box<str>>>) -> Self {
        Self { location: Location::caller(), said }
    }

    /// A place, of which the program has said nothing.
    #[must_use]
    pub const fn at(location: &'static Location<'static>) -> Self {
        Self { location, said: None }
    }

    /// The place in the source of the program.
    #[must_use]
    pub const fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// Returns the text that the program gave, if any.
    #[must_use]
    pub fn said(&self) -> Option<&str> {
        self.said.as_ref().map(|said| &***said)
    }
}

impl fmt::Display for Provenance {
    /// Writes the text that the program gave, or else file, line and column.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.said() {
            Some(said) => f.write_str(said),
            None => self.location.fmt(f),
        }
    }
}
