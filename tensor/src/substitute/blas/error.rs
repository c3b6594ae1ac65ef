//! Why a library does not multiply.

/// Why a library does not multiply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlasError {
    /// The system's loader does not find it, or cannot load it.
    #[error(
        "{library} cannot be loaded: {message}; give a path, or the name of a library where the system looks for them"
    )]
    Load {
        /// The library that was asked for.
        library: String,
        /// The message of the loader.
        message: String,
    },
    /// It has not all functions that are needed.
    #[error("{library} has no `{function}`: it must have the C interface of BLAS (CBLAS)")]
    Missing {
        /// The library that was asked for.
        library: String,
        /// The function.
        function: String,
    },
    /// It takes integers of 64 bits.
    #[error("{library} takes integers of 64 bits; one that takes 32 bits (LP64) is needed")]
    Integers {
        /// The library that was asked for.
        library: String,
    },
    /// It was built for one thread, without locks.
    #[error("{library} was built for programs of one thread; one built with threads, or with USE_LOCKING, is needed")]
    OneThread {
        /// The library that was asked for.
        library: String,
    },
    /// It gets products wrong.
    #[error("{library} gets small products wrong; does its interface have integers of 32 bits (LP64)?")]
    Wrong {
        /// The library that was asked for.
        library: String,
    },
    /// Another one has been chosen, or products have been computed.
    #[error("{library} is asked for when products are already by {used}: choose before the first product")]
    Late {
        /// The library that was asked for.
        library: String,
        /// The library that is used.
        used: String,
    },
}
