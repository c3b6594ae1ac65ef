//! Why a library does not multiply.

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
