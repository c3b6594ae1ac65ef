//! The place where a failed operation was launched.

use maniple_region::Provenance;

use super::Error;

/// The place where a failed operation was launched; `None` if it is not known, as of an operation that another node has
/// launched.
pub type Launched = Option<Box<Provenance>>;

/// As messages end: ` (launched at src/main.rs:12:5)`.
pub(super) fn shown(launched: &Launched) -> String {
    launched.as_ref().map_or_else(String::new, |launched| format!(" (launched at {launched})"))
}

impl Error {
    /// The place where the failed operation was launched, if the error is one of an operation and the place is known.
    /// If an operation has failed because another one had, it is the place of the other.
    #[must_use]
    pub fn provenance(&self) -> Option<&Provenance> {
        // Only looked at.
        self.place().and_then(|place| place.as_deref())
    }

    /// The same error of an operation that was launched there.
    pub(crate) fn launched_at(mut self, provenance: Option<&Provenance>) -> Self {
        if let (Some(place @ None), Some(provenance)) = (self.place_mut(), provenance) {
            *place = Some(Box::new(provenance.clone()));
        }
        self
    }
}

/// Declares how errors tell where their operation was launched: those of these kinds.
macro_rules! places {
    ($($kind:ident),*) => {
        impl Error {
            fn place(&self) -> Option<&Launched> {
                match self {
                    $(Self::$kind { launched, .. })|* => Some(launched),
                    _ => None,
                }
            }

            fn place_mut(&mut self) -> Option<&mut Launched> {
                match self {
                    $(Self::$kind { launched, .. })|* => Some(launched),
                    _ => None,
                }
            }
        }
    };
}

places!(
    Panicked,
    Stranded,
    TaskFailed,
    PrivilegeNotHeld,
    RequirementsInterfere,
    NoPieceNamed,
    PointsInterfere,
    MappedByParent,
    OutOfMemory,
    SystemRefused,
    NoSuchMapper,
    Mapper,
    Launch,
    DanglingPointer
);
