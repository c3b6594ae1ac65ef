//! How many triangles a graph has: products of its lower triangle with itself, where it has edges (Azad, Buluç, Gilbert, *Parallel triangle counting and enumeration using matrix algebra*, 2015).

use std::time::Instant;

use clap::Args;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList};

use super::{GraphOptions, Report, pack, usage};
use crate::error::{Error, Result};
use crate::report::counted;

/// What `maniple run triangles` teaches.
pub const ABOUT: &str = "\
Count the triangles of a graph: vertices that have edges to each other by three, whichever way edges go.

Of the edges, both ways, the lower triangle L of the matrix is left. Triangles are the sum of L(i,j) * L(i,k) * L(j,k): for each edge, the neighbours of one vertex are looked up among those of the other. The number is compared with that of neighbours that vertices have in common.";

/// What `maniple run triangles` gives as examples.
pub const EXAMPLES: &str = "\
Examples:
  maniple run triangles --generate rmat:14
  maniple run triangles --matrix web.mtx";

/// Which graph.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The graph.
    #[command(flatten)]
    pub graph: GraphOptions,
}

/// Counts triangles.
///
/// # Errors
/// [`Error::Usage`] and [`Error::Input`] for the graph, [`Error::Verification`].
pub fn run(options: &Options) -> Result<Report> {
    let graph = options.graph.graph()?;
    let mut lower = EntryList::new(2);
    for (at, _) in graph.edges.iter().filter(|(at, _)| at[0] != at[1]) {
        lower.push(&[at[0].max(at[1]), at[0].min(at[1])], 1.0);
    }
    let lower = pack(&"csr".parse().map_err(usage)?, &[graph.vertices; 2], lower, Duplicates::First)?;
    let count = graph.statement("s = L(i,j) * L(i,k) * L(j,k)", "csr")?;
    // All rows j that a row i names are compared with it.
    let looked_up = "mergeby(k, bitmap)".parse().map_err(usage)?;
    let count = Computation::new(&count).and_then(|count| count.scheduled(&looked_up)?.on_threads()).map_err(usage)?;
    let started = Instant::now();
    let triangles = graph.compute(&count, &[("L", &lower)])?.values()[0];
    let time = started.elapsed();
    let mut below = vec![Vec::new(); graph.vertices as usize];
    lower.for_each(|at, _| below[at[0] as usize].push(at[1]));
    let in_common = |vertex: &Vec<i64>| -> usize {
        let of =
            |&other: &i64| below[other as usize].iter().filter(|third| vertex.binary_search(third).is_ok()).count();
        vertex.iter().map(of).sum()
    };
    let expected: usize = below.iter().map(in_common).sum();
    if triangles != expected as f64 {
        return Err(Error::Verification(format!("{triangles} triangles, and {expected} by neighbours in common")));
    }
    Ok(Report::new("triangles", &graph, time, vec![("triangles", counted(expected, "triangle", "triangles"))]))
}
