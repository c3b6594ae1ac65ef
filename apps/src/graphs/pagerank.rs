//! PageRank (Page, Brin, Motwani, Winograd, *The PageRank citation ranking: bringing order to the web*, 1999) by the power method.

use std::time::Instant;

use clap::Args;
use maniple_tensor::sparse::Computation;

use super::{GraphOptions, Report, usage, vector};
use crate::error::{Error, Result};
use crate::options::positive;
use crate::report::scientific;

/// What `maniple run pagerank` teaches.
pub const ABOUT: &str = "\
Rank the vertices of a graph: that of a vertex is shared by those that it has edges to.

Each round is a product of the matrix, by columns, with the shares of all vertices. What vertices without edges have is shared by all. The ranks are right if they add up to 1 and another round, computed edge by edge, changes them by no more than the tolerance.";

/// What `maniple run pagerank` gives as examples.
pub const EXAMPLES: &str = "\
Examples:
  maniple run pagerank --generate rmat:16
  maniple run pagerank --matrix web.mtx --damping 0.9";

/// How to rank.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The graph.
    #[command(flatten)]
    pub graph: GraphOptions,

    /// The part of a rank that goes along edges
    #[arg(long, value_name = "D", default_value_t = 0.85, value_parser = part)]
    pub damping: f64,

    /// Stop when a round changes all ranks together by no more than this
    #[arg(long, value_name = "T", default_value_t = 1e-9, value_parser = part)]
    pub tolerance: f64,

    /// The most rounds
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = positive)]
    pub iterations: usize,
}

fn part(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0 && *number < 1.0);
    number.ok_or_else(|| "it must be a number between 0 and 1".to_owned())
}

/// Ranks the vertices of a graph.
///
/// # Errors
/// [`Error::Usage`] and [`Error::Input`] for the graph, [`Error::NoConvergence`], [`Error::Verification`].
pub fn run(options: &Options) -> Result<Report> {
    let graph = options.graph.graph()?;
    let (n, damping) = (graph.vertices as f64, options.damping);
    // By columns, so that rounds add up each rank at once.
    let matrix = graph.matrix("csc")?;
    let degrees = graph.statement("d(i) = A(i,j)", "csc")?;
    let share = graph.statement("w(i) = select(d(i) == 0, 0, v(i) / d(i))", "csc")?;
    let lost = graph.statement("s = select(d(i) == 0, v(i), 0)", "csc")?;
    let round = graph.statement("y(j) = A(i,j) * w(i)", "csc")?;
    let difference = graph.statement("s = abs(r(i) - v(i))", "csc")?;
    let [degrees, share, lost, round, difference] =
        [&degrees, &share, &lost, &round, &difference].map(Computation::new);
    let (share, lost, round) = (share.map_err(usage)?, lost.map_err(usage)?, round.map_err(usage)?);
    let difference = difference.map_err(usage)?;
    let d = graph.compute(&degrees.map_err(usage)?, &[("A", &matrix)])?;
    let mut ranks = vector(vec![1.0 / n; graph.vertices as usize])?;
    let started = Instant::now();
    for iteration in 1..=options.iterations {
        let shares = graph.compute(&share, &[("d", &d), ("v", &ranks)])?;
        let lost = graph.compute(&lost, &[("d", &d), ("v", &ranks)])?.values()[0];
        let mut next = graph.compute(&round, &[("A", &matrix), ("w", &shares)])?;
        let all = (1.0 - damping) / n + damping * lost / n;
        next.values_mut().iter_mut().for_each(|rank| *rank = all + damping * *rank);
        let change = graph.compute(&difference, &[("r", &next), ("v", &ranks)])?.values()[0];
        ranks = next;
        if change > options.tolerance {
            continue;
        }
        let time = started.elapsed();
        // Another round, edge by edge.
        let (neighbours, old) = (graph.neighbours(), ranks.values());
        let mut again = vec![0.0; old.len()];
        let mut lost = 0.0;
        for (vertex, neighbours) in neighbours.iter().enumerate() {
            match neighbours.len() {
                0 => lost += old[vertex],
                count => neighbours.iter().for_each(|&to| again[to] += old[vertex] / count as f64),
            }
        }
        let moved = again.iter().zip(old);
        let moved: f64 =
            moved.map(|(new, old)| ((1.0 - damping + damping * lost) / n + damping * new - old).abs()).sum();
        let sum: f64 = old.iter().sum();
        // Rounding of sums over all edges.
        let tolerance = options.tolerance + 1e-12 * n.sqrt();
        if !((sum - 1.0).abs() <= 1e-9 && moved <= tolerance) {
            let found = format!("ranks add up to {sum}, and another round changes them by {}", scientific(moved));
            return Err(Error::Verification(format!("{found}, not by {} at most", scientific(tolerance))));
        }
        let best = old.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(vertex, _)| vertex);
        let found = vec![
            ("rounds", format!("{iteration}")),
            ("change", format!("{} (at most {})", scientific(change), scientific(options.tolerance))),
            ("highest rank", format!("{:.6} of vertex {}", old[best], best + 1)),
        ];
        return Ok(Report::new("pagerank", &graph, time, found));
    }
    let rounds = options.iterations;
    Err(Error::NoConvergence(format!(
        "after {rounds} rounds ranks still change; allow more --iterations or a larger --tolerance"
    )))
}
