//! PageRank (Page, Brin, Motwani, Winograd, *The PageRank citation ranking: bringing order to the web*, 1999) by the
//! power method.

use std::time::Instant;

use clap::Args;
use maniple_tensor::distributed::{DistributedError, Tensor};
use maniple_tensor::element::Scalar;

use super::{DistributedGraph, GraphOptions, GraphReport};
use crate::error::{Error, Result};
use crate::options::positive;
use crate::report::scientific;

/// The long description of `maniple run pagerank`, which its `--help` shows.
pub const ABOUT: &str = "\
Rank the vertices of a graph: that of a vertex is shared by those that it has edges to.

Each round is a product of the matrix, by columns, with the shares of all vertices. What vertices without edges have is shared by all. The ranks are right if they add up to 1 and another round, computed edge by edge, changes them by no more than the tolerance.";

/// The examples that `maniple run pagerank --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run pagerank --generate rmat:16
  maniple run pagerank --matrix web.mtx --damping 0.9";

/// How to rank.
#[derive(Args, Clone, Debug)]
pub struct PagerankOptions {
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
/// [`Error::Usage`] and [`Error::Input`] for the graph, [`Error::NoConvergence`], [`Error::Verification`],
/// [`Error::Runtime`].
pub fn run(options: &PagerankOptions) -> Result<GraphReport> {
    options.graph.run(async |graph| rank(graph, options).await)
}

async fn rank(
    graph: &DistributedGraph<'_>,
    options: &PagerankOptions,
) -> Result<Result<GraphReport>, DistributedError> {
    let (cx, n, damping) = (graph.cx, graph.vertices as f64, options.damping);
    // By columns, so that rounds add up each rank at once.
    let by_columns = graph.by_columns().await?;
    let [degrees, old, new, shares, sums] = ["d", "v", "r", "w", "y"].map(|name| graph.vector(name));
    let (degrees, old, new, shares, sums) = (degrees?, old?, new?, shares?, sums?);
    // What vertices without edges have, what each vertex has of it and of itself, and how ranks have changed.
    let (lost, all, change) = (graph.number("s", 0.0)?, graph.number("q", 0.0)?, graph.number("t", 0.0)?);
    let (rest, kept) = (graph.number("p", (1.0 - damping) / n)?, graph.number("e", damping / n)?);
    let along = graph.number("g", damping)?;
    graph.prepared(&["d(i) = A(i,j)"], &[&degrees, &graph.matrix]).await?.launch(cx)?.await?;
    let texts = [
        "w(i) = select(d(i) == 0, 0, v(i) / d(i))",
        "s = select(d(i) == 0, v(i), 0)",
        "q = p + e * s",
        "y(j) = A(i,j) * w(i)",
        "r(j) = q + g * y(j)",
        "t = abs(r(i) - v(i))",
        "v(i) = r(i)",
    ];
    let tensors = [&by_columns, &degrees, &old, &new, &shares, &sums, &lost, &all, &change, &rest, &kept, &along];
    let round = graph.prepared(&texts, &tensors).await?;
    old.fill(cx, Scalar::F64(1.0 / n))?;
    cx.execution_fence().await?;
    let started = Instant::now();
    for iteration in 1..=options.iterations {
        round.launch(cx)?.await?;
        let change = graph.value(&change).await?;
        if change <= options.tolerance {
            let (time, ranks) = (started.elapsed(), old.read_elements::<f64>(cx).await?);
            let moved = moved_by_a_round(graph, &by_columns, &ranks, damping).await?;
            return Ok(checked(options, &ranks, moved).map(|()| {
                let best = ranks.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(vertex, _)| vertex);
                let found = vec![
                    ("rounds", format!("{iteration}")),
                    ("change", format!("{} (at most {})", scientific(change), scientific(options.tolerance))),
                    ("highest rank", format!("{:.6} of vertex {}", ranks[best], best + 1)),
                ];
                GraphReport::new("pagerank", graph, time, found)
            }));
        }
    }
    let rounds = options.iterations;
    Ok(Err(Error::NoConvergence(format!(
        "after {rounds} rounds ranks still change; allow more --iterations or a larger --tolerance"
    ))))
}

/// By how much another round changes all ranks together, edge by edge.
async fn moved_by_a_round(
    graph: &DistributedGraph<'_>,
    by_columns: &Tensor,
    ranks: &[f64],
    damping: f64,
) -> Result<f64, DistributedError> {
    let (cx, n) = (graph.cx, ranks.len());
    let counts = graph.matrix.fold_entries::<f64, Vec<(usize, usize)>>(cx, Vec::new, |counts, at, _| {
        match counts.last_mut().filter(|(vertex, _)| *vertex == at[0] as usize) {
            Some((_, count)) => *count += 1,
            None => counts.push((at[0] as usize, 1)),
        }
    });
    let mut edges = vec![0; n];
    counts.await?.into_iter().flatten().for_each(|(vertex, count)| edges[vertex] += count);
    let lost: f64 = ranks.iter().zip(&edges).filter(|(_, edges)| **edges == 0).map(|(rank, _)| rank).sum();
    let shares: Vec<f64> = ranks.iter().zip(&edges).map(|(rank, edges)| rank / *edges as f64).collect();
    let sums = by_columns.fold_entries::<f64, Vec<(usize, f64)>>(cx, Vec::new, move |sums, at, _| {
        let (from, to) = (at[0] as usize, at[1] as usize);
        match sums.last_mut().filter(|(vertex, _)| *vertex == to) {
            Some((_, sum)) => *sum += shares[from],
            None => sums.push((to, shares[from])),
        }
    });
    let mut again = vec![0.0; n];
    sums.await?.into_iter().flatten().for_each(|(vertex, sum)| again[vertex] += sum);
    let all = (1.0 - damping + damping * lost) / n as f64;
    Ok(again.iter().zip(ranks).map(|(new, old)| (all + damping * new - old).abs()).sum())
}

fn checked(options: &PagerankOptions, ranks: &[f64], moved: f64) -> Result<()> {
    let sum: f64 = ranks.iter().sum();
    // Rounding of sums over all edges.
    let tolerance = options.tolerance + 1e-12 * (ranks.len() as f64).sqrt();
    if (sum - 1.0).abs() <= 1e-9 && moved <= tolerance {
        return Ok(());
    }
    let found = format!("ranks add up to {sum}, and another round changes them by {}", scientific(moved));
    Err(Error::Verification(format!("{found}, not by {} at most", scientific(tolerance))))
}
