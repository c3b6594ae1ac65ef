//! How far vertices are from one, by breadth-first search in the language of linear algebra (Kepner and Gilbert, *Graph
//! algorithms in the language of linear algebra*, 2011).

use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use maniple_tensor::distributed::{DistributedError, Tensor, assemble};
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::format::Format;
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::storage::{Duplicates, EntryList, pack};

use super::{DistributedGraph, GraphOptions, GraphReport};
use crate::error::{Error, Result};
use crate::report::counted;

/// The long description of `maniple run bfs`, which its `--help` shows.
pub const ABOUT: &str = "\
Find how many edges there are between a vertex and each other one.

The vertices that are reached first at some distance are a sparse vector; those at the next are its product with the matrix, without those that were reached before. Distances are right if no edge leads further than by one, and each vertex has an edge from one that is nearer by one: all edges are looked at.";

/// The examples that `maniple run bfs --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run bfs --generate rmat:16
  maniple run bfs --generate poisson:1000 --from 500";

/// The graph and the vertex to begin at.
#[derive(Args, Clone, Debug)]
pub struct BfsOptions {
    /// The graph.
    #[command(flatten)]
    pub graph: GraphOptions,

    /// The vertex that distances are from, counted from 1
    #[arg(long, value_name = "VERTEX", default_value_t = 1)]
    pub from: i64,
}

/// Finds all distances.
///
/// # Errors
/// [`Error::Usage`] and [`Error::Input`] for the graph, [`Error::Verification`], [`Error::Runtime`].
pub fn run(options: &BfsOptions) -> Result<GraphReport> {
    options.graph.run(async |graph| search(graph, options).await)
}

/// The distance of a vertex that was not reached.
const NONE: u32 = u32::MAX;

async fn search(graph: &DistributedGraph<'_>, options: &BfsOptions) -> Result<Result<GraphReport>, DistributedError> {
    let (cx, n, from) = (graph.cx, graph.vertices, options.from - 1);
    if !(0..n).contains(&from) {
        return Ok(Err(Error::Usage(format!("--from {}: the graph has the vertices 1 to {n}", options.from))));
    }
    let sparse: Format = "{C}".parse().map_err(maniple::Error::from_task)?;
    let [reached, next] = ["X", "Y"].map(|name| TensorVariable::new(name, F64, [n]).stored(sparse.clone()));
    let variables = [reached.clone(), next, graph.matrix.variable().clone()];
    let step = graph.plan("Y(j) = X(i) * A(i,j)", &variables)?;
    let mut distances = vec![NONE; n as usize];
    distances[from as usize] = 0;
    let mut frontier = vec![from];
    let started = Instant::now();
    for distance in 1.. {
        if frontier.is_empty() {
            break;
        }
        let mut entries = EntryList::new(1);
        frontier.drain(..).for_each(|vertex| entries.push(&[vertex], 1.0));
        let packed = pack(&sparse, &[n], 0.0, entries, Duplicates::First).map_err(maniple::Error::from_task)?;
        let here = Tensor::from_sparse(cx, &reached, packed.tensor)?;
        let there = assemble(cx, &step, &[&here, &graph.matrix]).await?;
        there.read_sparse::<f64>(cx).await?.for_each(|at, _| {
            let known = &mut distances[at[0] as usize];
            if *known == NONE {
                *known = distance;
                frontier.push(at[0]);
            }
        });
        here.destroy(cx)?;
        there.destroy(cx)?;
    }
    let (time, distances) = (started.elapsed(), Arc::new(distances));
    if let Some(wrong) = contradiction(graph, &distances).await? {
        return Ok(Err(Error::Verification(wrong)));
    }
    let reached = distances.iter().filter(|distance| **distance != NONE);
    let farthest = reached.clone().max().copied().unwrap_or(0);
    let found = vec![
        ("from", format!("vertex {}", options.from)),
        ("reached", counted(reached.count(), "vertex", "vertices")),
        ("farthest", counted(farthest as usize, "edge away", "edges away")),
    ];
    Ok(Ok(GraphReport::new("bfs", graph, time, found)))
}

/// Finds a contradiction in distances: an edge that leads further than by one, or a vertex with no edge from a vertex
/// that is nearer by one. Without a contradiction the distances are right: each vertex has a path of that length, and
/// no path is shorter.
async fn contradiction(
    graph: &DistributedGraph<'_>,
    distances: &Arc<Vec<u32>>,
) -> Result<Option<String>, DistributedError> {
    let cx = graph.cx;
    let of = Arc::clone(distances);
    let skipped = graph.matrix.fold_entries::<f64, Option<[i64; 2]>>(
        cx,
        || None,
        move |found, at, _| {
            let [from, to] = [at[0], at[1]].map(|vertex| of[vertex as usize]);
            if from != NONE && (to == NONE || to > from + 1) {
                found.get_or_insert([at[0], at[1]]);
            }
        },
    );
    if let Some([from, to]) = skipped.await?.into_iter().flatten().next() {
        let [near, far] = [from, to].map(|vertex| distances[vertex as usize]);
        let edge = format!("an edge leads from vertex {} to vertex {}", from + 1, to + 1);
        return Ok(Some(format!("{edge}, which are at {near} and {far}")));
    }
    let of = Arc::clone(distances);
    let by_columns = graph.by_columns().await?;
    let reached = by_columns.fold_entries::<f64, Vec<i64>>(cx, Vec::new, move |reached, at, _| {
        let [from, to] = [at[0], at[1]].map(|vertex| of[vertex as usize]);
        if from != NONE && from + 1 == to && reached.last() != Some(&at[1]) {
            reached.push(at[1]);
        }
    });
    let mut is_reached: Vec<bool> = distances.iter().map(|distance| *distance == NONE || *distance == 0).collect();
    reached.await?.into_iter().flatten().for_each(|vertex| is_reached[vertex as usize] = true);
    let without = is_reached.iter().position(|is_reached| !is_reached);
    Ok(without.map(|vertex| format!("vertex {} is at {}, and no edge leads there", vertex + 1, distances[vertex])))
}
