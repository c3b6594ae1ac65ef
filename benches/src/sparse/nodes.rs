//! Sparse computations by this project on several nodes, in turns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use maniple::{Context, Runtime};
use maniple_tensor::distributed::{Computation as Distributed, DistributedError, Tensor, assemble};
use maniple_tensor::notation::Assignment;
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::SparseTensor;

use super::ours::weighed;
use super::works::{Operands, Work};
use crate::error::{Error, Result};
use crate::tensors::turns::next_turn;

/// Computes over and over, whenever it is its turn: blocks of rows, one for each node. A node that is not the first
/// only takes part.
///
/// # Errors
/// The errors of the computation and of the runtime.
pub fn serve(runtime: &Runtime, work: &Work) -> Result<()> {
    let (assignment, operands) = work.operands()?;
    let nodes = runtime.nodes() as i64;
    let computation = Computation::new(&assignment).and_then(|loops| loops.on_grid(&[nodes])).map_err(Error::tensor)?;
    let plan = Arc::new(Plan::new(computation.statement()).map_err(Error::tensor)?);
    let served =
        runtime.run(async |cx| turns(cx, &assignment, &plan, operands).await.map_err(maniple::Error::from_task));
    Ok(served?)
}

async fn turns(
    cx: &Context,
    assignment: &Assignment,
    plan: &Arc<Plan>,
    operands: Operands,
) -> std::result::Result<(), DistributedError> {
    let mut given: BTreeMap<String, Arc<SparseTensor<f64>>> =
        operands.into_iter().map(|(name, tensor)| (name, Arc::new(tensor))).collect();
    let mut tensors = Vec::new();
    for variable in plan.statement.tensors() {
        match given.remove(variable.name()) {
            Some(stored) if variable.format().is_dense() => {
                let tensor = Tensor::new(cx, variable)?;
                tensor.write_elements(cx, stored.elements())?;
                tensors.push(tensor);
            }
            Some(stored) => tensors.push(Tensor::from_sparse(cx, variable, stored)?),
            None if variable.format().is_dense() => tensors.push(Tensor::new(cx, variable)?),
            // It is assembled.
            None => {}
        }
    }
    let all: Vec<&Tensor> = tensors.iter().collect();
    let result = assignment.left().tensor.name();
    let made = all.iter().copied().find(|tensor| tensor.variable().name() == result);
    let prepared = match made {
        Some(made) => Some((Distributed::new(cx, plan, &all).await?, made)),
        None => None,
    };
    let mut said = None;
    loop {
        cx.execution_fence().await?;
        let start = Instant::now();
        let (seconds, answer) = match &prepared {
            Some((computation, made)) => {
                computation.launch(cx)?.await?;
                let seconds = start.elapsed().as_secs_f64();
                let elements = made.read_elements::<f64>(cx).await?;
                let dense = SparseTensor::from_elements(made.variable().dimensions(), 0.0, elements);
                (seconds, weighed(&dense.map_err(maniple::Error::from_task)?))
            }
            None => {
                let made = assemble(cx, plan, &all).await?;
                cx.execution_fence().await?;
                (start.elapsed().as_secs_f64(), weighed(&made.read_sparse::<f64>(cx).await?))
            }
        };
        // Only the first node talks; what it hears, all know.
        if !next_turn(cx, said.map(|_: ()| (seconds, answer))).await? {
            return Ok(());
        }
        said = Some(());
    }
}
