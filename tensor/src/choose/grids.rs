//! Which loops over which grids: all of them, with a simple formula of their cost.

use crate::concrete::Statement;
use crate::cost::Rates;
use crate::notation::{Access, IndexVariable};

/// Loops, and the extent of the grid along each.
pub(super) type Distributed = Vec<(IndexVariable, i64)>;

/// Loops are distributed over at most so many dimensions.
const DIMENSIONS: usize = 3;

/// So many processors may stay idle, for a grid of better factors.
const FEWER: i64 = 16;

/// Products of `count` factors, each at least 2, in all orders.
pub(super) fn factors(product: i64, count: usize) -> Vec<Vec<i64>> {
    if count == 0 {
        return if product == 1 { vec![Vec::new()] } else { Vec::new() };
    }
    let low: Vec<i64> = (1..=product.isqrt()).filter(|first| product % first == 0).collect();
    let high = low.iter().rev().map(|first| product / first).filter(|second| second * second != product);
    let firsts = low.iter().copied().chain(high).filter(|first| *first > 1);
    firsts
        .flat_map(|first| {
            factors(product / first, count - 1).into_iter().map(move |rest| [&[first], &rest[..]].concat())
        })
        .collect()
}

/// All ways to distribute `loops` over exactly so many processors, none of which has nothing to do.
fn of(statement: &Statement, loops: &[IndexVariable], processors: i64) -> Vec<Distributed> {
    let mut all = Vec::new();
    for chosen in 1_u32..1 << loops.len().min(16) {
        let subset: Vec<&IndexVariable> = loops
            .iter()
            .enumerate()
            .filter(|(position, _)| chosen >> position & 1 == 1)
            .map(|(_, name)| name)
            .collect();
        if subset.len() > DIMENSIONS {
            continue;
        }
        for grid in factors(processors, subset.len()) {
            let fits = |(variable, pieces): (&&IndexVariable, &i64)| {
                // As many blocks as the grid has, and none empty.
                let extent = statement.extent(variable).unwrap_or(0);
                extent >= *pieces && (extent + pieces - 1) / pieces * (pieces - 1) < extent
            };
            if subset.iter().zip(&grid).all(fits) {
                all.push(subset.iter().map(|variable| (*variable).clone()).zip(grid).collect());
            }
        }
    }
    all
}

/// The most promising ways to distribute `loops`: those with the lowest sums of the times that the first processor,
/// which has the largest blocks, computes, and gets what it does not have. Fewer processors than all are tried as far
/// as three quarters of them, or sixteen less.
pub(super) fn promising(
    statement: &Statement,
    loops: &[IndexVariable],
    processors: usize,
    rates: &Rates,
    count: usize,
) -> Vec<Distributed> {
    let processors = processors as i64;
    let mut all: Vec<(f64, Distributed)> = (processors - (processors / 4).min(FEWER)..=processors)
        .rev()
        .filter(|used| *used > 1)
        .flat_map(|used| of(statement, loops, used))
        .map(|distributed| (seconds(statement, &distributed, rates), distributed))
        .collect();
    all.sort_by(|first, second| first.0.total_cmp(&second.0));
    all.truncate(count);
    all.into_iter().map(|(_, distributed)| distributed).collect()
}

fn seconds(statement: &Statement, distributed: &Distributed, rates: &Rates) -> f64 {
    let block = |variable: &IndexVariable| -> f64 {
        let extent = statement.extent(variable).unwrap_or(0);
        let pieces = distributed.iter().find(|(other, _)| other == variable).map_or(1, |(_, pieces)| *pieces);
        ((extent + pieces - 1) / pieces) as f64
    };
    let processors: i64 = distributed.iter().map(|(_, pieces)| pieces).product();
    let iterations =
        |site: &crate::concrete::Site<'_>| -> f64 { site.loops.iter().map(|outer| block(&outer.variable)).product() };
    let sites = statement.body.sites();
    let computing = sites.iter().map(iterations).sum::<f64>() / rates.loops;
    let mut bytes = 0.0;
    let mut seen: Vec<&Access> = Vec::new();
    for access in sites.iter().flat_map(|site| std::iter::once(site.target).chain(site.value.accesses())) {
        if !statement.tensors().contains(&&access.tensor) || seen.contains(&access) {
            continue;
        }
        seen.push(access);
        let elements: f64 = access.variables.iter().map(block).product();
        let here = access.tensor.dimensions().iter().product::<i64>() as f64 / processors as f64;
        bytes += (elements - here).max(0.0) * access.tensor.element().size() as f64;
    }
    computing + bytes / rates.network
}
