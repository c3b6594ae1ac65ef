//! Overhead of the runtime on a small product of a sparse matrix with a vector: 1,000 rows in 4 pieces, over and over.
//!
//! `cargo run --release -p maniple-benches --example small_products` prints the time of an iteration as tasks, in a
//! trace and without one, and by the kernel alone. Tasks must add 3 us at most to an iteration, and 1 us is the aim.

#![allow(clippy::print_stdout)] // that is what it is for

use std::sync::Arc;
use std::time::Instant;

use maniple::prelude::*;
use maniple_tensor::distributed::{self, Tensor, TensorMapper};
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::kernel::{Kernels, Serial};
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};

type Error = Box<dyn std::error::Error>;

const ROWS: i64 = 1_000;
const ENTRIES: i64 = 8;
const PIECES: i64 = 4;
const REPEATS: u32 = 1_000;
const ROUNDS: usize = 9;

fn main() -> Result<(), Error> {
    let variable = |name: &str, extents: &[i64]| TensorVariable::new(name, F64, extents);
    // As wide as kernels read them: narrower numbers are widened for each run.
    let a = variable("A", &[ROWS, ROWS]).stored("{D,C<i32,i32>}".parse()?);
    let variables = [variable("y", &[ROWS]), a.clone(), variable("x", &[ROWS])];
    let multiply = parse("y(i) = A(i,j) * x(j)", &variables)?;
    let mut entries = EntryList::new(2);
    for row in 0..ROWS {
        (0..ENTRIES).for_each(|number| entries.push(&[row, (row * 31 + number * 127) % ROWS], 1.0));
    }
    let matrix = Arc::new(pack(a.format(), &[ROWS, ROWS], 0.0, entries, Duplicates::Sum)?.tensor);
    let alone = by_kernel(&Computation::new(&multiply)?, &matrix)?;
    let loops = Computation::new(&multiply)?.statement().distribute(["i"], ["io"], ["ii"], &[PIECES])?;
    let plan = Arc::new(Plan::new(&loops)?);
    let runtime = Runtime::builder().mapper(TensorMapper::new()).build()?;
    let workers = runtime.machine().processors_of(maniple::ProcessorKind::Cpu).count();
    let [plain, traced] = runtime.run(async |cx| {
        let (y, a, x) =
            (Tensor::new(cx, &variables[0])?, Tensor::from_sparse(cx, &a, matrix)?, Tensor::new(cx, &variables[2])?);
        x.generate(cx, &x.slabs(PIECES as usize), |at| at[0] as f64)?;
        let computation = distributed::Computation::new(cx, &plan, &[&y, &a, &x]).await?;
        let mut best = [f64::INFINITY; 2];
        for _ in 0..ROUNDS {
            for (is_traced, best) in best.iter_mut().enumerate() {
                let started = Instant::now();
                for _ in 0..REPEATS {
                    match is_traced {
                        0 => drop(computation.launch(cx)?),
                        _ => cx.trace("product", |cx| computation.launch(cx).map(drop))?,
                    }
                }
                cx.execution_fence().await?;
                *best = best.min(started.elapsed().as_secs_f64() / f64::from(REPEATS));
            }
        }
        Ok(best)
    })?;
    let shared = alone / workers.min(PIECES as usize) as f64;
    println!("kernel alone, one thread     {:8.2} us", alone * 1e6);
    for (what, seconds) in [("as tasks", plain), ("as tasks, in a trace", traced)] {
        println!(
            "{what:<28} {:8.2} us, of which {:.2} us are not the kernel's on {workers} workers",
            seconds * 1e6,
            (seconds - shared) * 1e6
        );
    }
    Ok(())
}

/// The seconds that the kernel of all rows takes.
fn by_kernel(computation: &Computation<'_>, matrix: &SparseTensor<f64>) -> Result<f64, Error> {
    let x = SparseTensor::from_elements(&[ROWS], 0.0, vec![1.0; ROWS as usize])?;
    let operands = [("A", matrix), ("x", &x)];
    let mut y = computation.run(&operands)?;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..REPEATS {
            computation.run_into(&operands, Kernels::shared(), &Serial, &mut y)?;
        }
        best = best.min(started.elapsed().as_secs_f64() / f64::from(REPEATS));
    }
    Ok(best)
}
