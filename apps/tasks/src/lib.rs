//! The tasks of the `maniple` program's simulations and benchmarks, with their inner loops. They are compiled for
//! speed, and the program around them for size.

pub mod verify;

/// The circuit.
pub mod circuit {
    pub mod graph;
    pub mod tasks;
}

/// Conjugate gradients.
pub mod cg {
    mod kernels;
    pub mod rows;
    pub mod scalars;
    pub mod tasks;
}

pub mod recursion;

/// The star stencil.
pub mod stencil {
    pub mod kernel;
    pub mod tasks;
}

/// Task Bench.
pub mod taskbench {
    pub mod compute;
    pub mod hash;
    pub mod kernel;
    pub mod scratch;
}
