//! How long it takes to make a kernel: by the compiler, and of what is kept on disk.

use std::time::Instant;

use maniple_tensor::kernel::{Compiler, Kernels};
use maniple_tensor::plan::Plan;

use super::works::{Method, Work};
use crate::error::{Error, Result};
use crate::median;
use crate::targets::findings::{Bound, Row};

/// How it is asked for.
pub const NAME: &str = "kernels";

/// Makes the kernels of a tensor times a vector and of an inner product several times.
///
/// # Errors
/// If a kernel can't be made.
pub fn measure(rounds: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (what, work) in [
        ("TTV", Work::new(Method::Ttv, &[2, 1], &[400; 3])),
        ("innerprod", Work::new(Method::Innerprod, &[2], &[400; 3])),
    ] {
        let plan = Plan::new(&work.algorithm()?.statement).map_err(Error::tensor)?;
        let (mut cold, mut kept) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let folder = tempfile::tempdir().map_err(|error| Error::file(&std::env::temp_dir(), error))?;
            for times in [&mut cold, &mut kept] {
                // Each time as a process that begins: nothing is in memory.
                let kernels = Kernels::new(Compiler::find(), Some(folder.path().join("kernels")));
                let start = Instant::now();
                let executable = kernels.get(&plan.leaf().kernel).map_err(Error::tensor)?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
                if !executable.is_compiled() {
                    return Err(Error::NotBuilt("there is no C compiler that works".to_owned()));
                }
            }
        }
        let row = |how: &str, times, must| {
            Row::new(format!("{NAME}: {what}, {how}"), median(times), "ms").must(Bound::AtMost(must))
        };
        rows.extend([row("compiled", cold, 300.0), row("from disk", kept, 1.0)]);
    }
    Ok(rows)
}
