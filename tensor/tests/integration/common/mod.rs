//! Functions that tests of kernels have in common.

use maniple_tensor::kernel::{Compiler, Kernels};

/// Kernels compiled into a folder of the test's own; `None`, said aloud, where there is no compiler.
pub fn compiled(folder: &tempfile::TempDir) -> Option<Kernels> {
    let compiler = Compiler::find();
    if compiler.is_none() {
        eprintln!("no C compiler: compiled kernels are not tested");
    }
    Some(Kernels::new(Some(compiler?), Some(folder.path().join("kernels"))))
}
