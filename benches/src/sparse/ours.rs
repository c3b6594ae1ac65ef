//! Sparse computations by this project, in turns.

use std::fs;
use std::io::BufRead;
use std::path::Path;
use std::time::Instant;

use maniple_tensor::choose::{Processors, choose_sparse};
use maniple_tensor::kernel::{Kernels, Scoped};
use maniple_tensor::notation::Assignment;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::SparseTensor;

use super::works::{Operands, Work};
use crate::error::{Error, Result};
use crate::tensors::contest::Stage;

/// Computes once.
///
/// # Errors
/// The errors of the computation.
pub fn run(assignment: &Assignment, operands: &Operands, threads: usize) -> Result<SparseTensor<f64>> {
    compute(&Computation::new(assignment).map_err(Error::tensor)?, operands, threads)
}

fn compute(computation: &Computation<'_>, operands: &Operands, threads: usize) -> Result<SparseTensor<f64>> {
    let operands: Vec<(&str, &SparseTensor<f64>)> =
        operands.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    computation.run_by(&operands, Kernels::shared(), &Scoped { threads }).map_err(Error::tensor)
}

/// Writes the data for rivals, and gives how many entries are read and what all must find.
///
/// # Errors
/// If that fails.
pub fn prepare(work: &Work, stage: &Stage) -> Result<(usize, u64)> {
    let (assignment, operands) = work.operands()?;
    let folder = work.folder(stage);
    fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, error))?;
    let numbers = |numbers: Vec<i32>| numbers.into_iter().flat_map(i32::to_le_bytes).collect::<Vec<u8>>();
    let mut entries = 0;
    for (name, tensor) in
        operands.iter().filter(|(_, tensor)| tensor.levels().iter().any(|level| !level.components.is_empty()))
    {
        entries += tensor.values().len();
        let component = |component: &str| {
            let array = tensor.levels()[1].component(component);
            numbers((0..array.len()).map(|at| array.get(at) as i32).collect())
        };
        let values: Vec<u8> = tensor.values().iter().flat_map(|value| value.to_le_bytes()).collect();
        let extents = tensor.dimensions().iter().map(|&extent| extent as i32).collect();
        write(&folder.join("extents"), &numbers(extents))?;
        write(&folder.join(format!("{name}.values")), &values)?;
        if tensor.dimensions().len() == 2 {
            for what in ["pos", "crd"] {
                write(&folder.join(format!("{name}.{what}")), &component(what))?;
            }
            continue;
        }
        let mut coordinates = Vec::with_capacity(3 * tensor.values().len());
        tensor.for_each(|at, _| coordinates.extend(at.iter().map(|&coordinate| coordinate as i32)));
        write(&folder.join(format!("{name}.coordinates")), &numbers(coordinates))?;
    }
    let result = run(&assignment, &operands, stage.toolbox.cores())?;
    Ok((entries, weighed(&result)))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|error| Error::file(path, error))
}

/// Computes over and over, whenever it is its turn, by the loops that costs say are fastest, or by those of the
/// statement as it stands with parts of as many rows for each thread.
///
/// # Errors
/// The errors of the computation.
pub fn serve(work: &Work, threads: usize, is_by_rows: bool) -> Result<()> {
    let (assignment, operands) = work.operands()?;
    let known = operands.iter().map(|(name, tensor)| (name.clone(), tensor.statistics().clone())).collect();
    let processors = Processors { threads, ..Processors::default() };
    let computation = match is_by_rows {
        true => Computation::new(&assignment).map_err(Error::tensor)?,
        false => choose_sparse(&assignment, &known, &processors).map_err(Error::tensor)?.into_best().computation,
    };
    let mut result = compute(&computation, &operands, threads)?;
    let given: Vec<(&str, &SparseTensor<f64>)> =
        operands.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    println!("ready");
    for _ in std::io::stdin().lock().lines() {
        let start = Instant::now();
        let (kernels, team) = (Kernels::shared(), Scoped { threads });
        // Rivals assemble sums and products of matrices each time.
        match ["spadd3", "spgemm"].contains(&work.kernel.as_str()) {
            true => result = computation.run_by(&given, kernels, &team).map_err(Error::tensor)?,
            false => computation.run_into(&given, kernels, &team, &mut result).map_err(Error::tensor)?,
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("{seconds:.9} {}", weighed(&result));
    }
    Ok(())
}

/// The sum of all elements, each times a small number that depends on its coordinates.
#[must_use]
pub fn weighed(result: &SparseTensor<f64>) -> u64 {
    let mut sum = 0.0;
    result.for_each(|at, value| {
        let weight = at.iter().zip([1, 3]).map(|(coordinate, factor)| coordinate * factor).sum::<i64>() % 5;
        sum += value * (weight + 1) as f64;
    });
    sum as u64
}
