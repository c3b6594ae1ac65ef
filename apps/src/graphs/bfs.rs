//! How far vertices are from one, by breadth-first search in the language of linear algebra (Kepner and Gilbert, *Graph algorithms in the language of linear algebra*, 2011).

use std::collections::VecDeque;
use std::time::Instant;

use clap::Args;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList};

use super::{GraphOptions, Report, pack, usage, vector};
use crate::error::{Error, Result};
use crate::report::counted;

/// What `maniple run bfs` teaches.
pub const ABOUT: &str = "\
Find how many edges there are between a vertex and each other one.

The vertices that are reached first at some distance are a sparse vector; those at the next are its product with the matrix, without those that were reached before. Distances are compared with those that a queue finds.";

/// What `maniple run bfs` gives as examples.
pub const EXAMPLES: &str = "\
Examples:
  maniple run bfs --generate rmat:16
  maniple run bfs --generate poisson:1000 --from 500";

/// Where to begin.
#[derive(Args, Clone, Debug)]
pub struct Options {
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
/// [`Error::Usage`] and [`Error::Input`] for the graph, [`Error::Verification`].
pub fn run(options: &Options) -> Result<Report> {
    let graph = options.graph.graph()?;
    let (n, from) = (graph.vertices, options.from - 1);
    if !(0..n).contains(&from) {
        return Err(Error::Usage(format!("--from {}: the graph has the vertices 1 to {n}", options.from)));
    }
    let matrix = graph.matrix("csr")?;
    let step = graph.statement("Y(j) = X(i) * A(i,j) * v(j)", "csr")?;
    let step = Computation::new(&step).map_err(usage)?;
    // 1 for vertices that were not reached so far.
    let mut left = vector(vec![1.0; n as usize])?;
    let mut distances: Vec<Option<usize>> = vec![None; n as usize];
    let sparse = "{C}".parse().map_err(usage)?;
    let mut reached = vec![from];
    let started = Instant::now();
    for distance in 0.. {
        let mut frontier = EntryList::new(1);
        for &vertex in &reached {
            distances[vertex as usize] = Some(distance);
            left.values_mut()[vertex as usize] = 0.0;
            frontier.push(&[vertex], 1.0);
        }
        if reached.is_empty() {
            break;
        }
        let frontier = pack(&sparse, &[n], frontier, Duplicates::First)?;
        let next = graph.compute(&step, &[("X", &frontier), ("A", &matrix), ("v", &left)])?;
        reached.clear();
        next.for_each(|at, paths| {
            if paths != 0.0 {
                reached.push(at[0]);
            }
        });
    }
    let time = started.elapsed();
    let neighbours = graph.neighbours();
    let mut expected: Vec<Option<usize>> = vec![None; n as usize];
    expected[from as usize] = Some(0);
    let mut queue = VecDeque::from([from as usize]);
    while let Some(vertex) = queue.pop_front() {
        for &to in &neighbours[vertex] {
            if expected[to].is_none() {
                expected[to] = expected[vertex].map(|distance| distance + 1);
                queue.push_back(to);
            }
        }
    }
    if let Some(vertex) = (0..n as usize).find(|&vertex| distances[vertex] != expected[vertex]) {
        let (found, expected) = (distances[vertex], expected[vertex]);
        return Err(Error::Verification(format!(
            "vertex {} is at {found:?}, and at {expected:?} by a queue",
            vertex + 1
        )));
    }
    let count = distances.iter().flatten().count();
    let found = vec![
        ("from", format!("vertex {}", options.from)),
        ("reached", counted(count, "vertex", "vertices")),
        ("farthest", counted(distances.iter().flatten().max().copied().unwrap_or(0), "edge away", "edges away")),
    ];
    Ok(Report::new("bfs", &graph, time, found))
}
