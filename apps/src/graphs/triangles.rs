//! How many triangles a graph has: products of its lower triangle with itself, where it has edges (Azad, Buluç,
//! Gilbert, *Parallel triangle counting and enumeration using matrix algebra*, 2015).

use std::time::Instant;

use clap::Args;
use maniple_tensor::distributed::{self, DistributedError, Tensor};
use maniple_tensor::element::Scalar;
use maniple_tensor::notation::parse;
use maniple_tensor::sparse::Computation;

use super::{DistributedGraph, GraphOptions, GraphReport, matrix};
use crate::error::{Error, Result};
use crate::report::counted;

/// The long description of `maniple run triangles`, which its `--help` shows.
pub const ABOUT: &str = "\
Count the triangles of a graph: vertices that have edges to each other by three, whichever way edges go.

Of the edges, both ways, the lower triangle L of the matrix is left. Triangles are the sum of L(i,j) * L(i,k) * M(j,k), where M is L: for each edge, the neighbours of one vertex are looked up among those of the other. The number is compared with that of neighbours that vertices have in common: on several nodes, of graphs of up to four million edges.";

/// The examples that `maniple run triangles --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run triangles --generate rmat:14
  maniple run triangles --matrix web.mtx";

/// Which graph.
#[derive(Args, Clone, Debug)]
pub struct TrianglesOptions {
    /// The graph.
    #[command(flatten)]
    pub graph: GraphOptions,
}

/// Counts triangles.
///
/// # Errors
/// [`Error::Usage`] and [`Error::Input`] for the graph, [`Error::Verification`], [`Error::Runtime`].
pub fn run(options: &TrianglesOptions) -> Result<GraphReport> {
    options.graph.run(async |graph| count(graph).await)
}

/// So many edges of a graph are brought to each of several nodes, to count once more.
const MOST_CHECKED: usize = 1 << 22;

async fn count(graph: &DistributedGraph<'_>) -> Result<Result<GraphReport>, DistributedError> {
    let cx = graph.cx;
    let variable = matrix("L", graph.vertices, "csr")?;
    let lower = graph.matrix.mapped::<f64, f64>(cx, &variable, |at, _, visit| {
        if at[0] != at[1] {
            visit(&[at[0].max(at[1]), at[0].min(at[1])], 1.0);
        }
    });
    let lower = lower.await?;
    // Edges both ways are one.
    lower.fill(cx, Scalar::F64(1.0))?;
    let triangles = graph.number("s", 0.0)?;
    // By a name of their own, the rows that are looked up are brought, and no others.
    let looked_up = lower.renamed(&matrix("M", graph.vertices, "csr")?)?;
    let variables = [triangles.variable().clone(), variable, looked_up.variable().clone()];
    let statement = parse("s = L(i,j) * L(i,k) * M(j,k)", &variables).map_err(maniple::Error::from_task)?;
    // All rows j that a row i names are compared with it.
    let schedule = "mergeby(k, bitmap)".parse().map_err(maniple::Error::from_task)?;
    let loops = Computation::new(&statement).and_then(|loops| loops.scheduled(&schedule));
    let plan = graph.plan_of(&loops.map_err(maniple::Error::from_task)?)?;
    let counting = distributed::Computation::new(cx, &plan, &[&triangles, &lower, &looked_up]).await?;
    cx.execution_fence().await?;
    let started = Instant::now();
    counting.launch(cx)?.await?;
    let found = graph.value(&triangles).await?;
    let time = started.elapsed();
    let is_checked = cx.nodes() == 1 || lower.count() <= MOST_CHECKED;
    if is_checked {
        let expected = in_common(graph, &lower).await?;
        if found != expected as f64 {
            let told = format!("{found} triangles, and {expected} by neighbours in common");
            return Ok(Err(Error::Verification(told)));
        }
    }
    let mut lines = vec![("triangles", counted(found as usize, "triangle", "triangles"))];
    if !is_checked {
        lines.push(("checked", format!("no: more than {MOST_CHECKED} edges")));
    }
    Ok(Ok(GraphReport::new("triangles", graph, time, lines)))
}

/// How many neighbours vertices have in common with their neighbours, of those before both.
async fn in_common(graph: &DistributedGraph<'_>, lower: &Tensor) -> Result<usize, DistributedError> {
    let mut below = vec![Vec::new(); graph.vertices as usize];
    lower.read_sparse::<f64>(graph.cx).await?.for_each(|at, _| below[at[0] as usize].push(at[1]));
    let common = lower.fold_entries::<f64, usize>(
        graph.cx,
        || 0,
        move |common, at, _| {
            let [vertex, other] = [at[0], at[1]].map(|vertex| &below[vertex as usize]);
            *common += other.iter().filter(|third| vertex.binary_search(third).is_ok()).count();
        },
    );
    Ok(common.await?.into_iter().sum())
}
