//! Recursive matrices (Chakrabarti, Zhan and Faloutsos, *R-MAT: a recursive model for graph mining*, SDM 2004), with
//! the probabilities of Graph500.

use std::ops::Range;

use super::random::Random;

/// The probabilities of the quarters of a square: above left, above right, below left; the rest is below right.
const QUARTERS: [f64; 3] = [0.57, 0.19, 0.19];

/// Visits the places of `edges` edges that are in `rows`, each once, in ascending order.
///
/// The edges of a square are divided among its quarters, at random but by numbers that belong to the square: so any
/// rows can be made without the others.
pub(super) fn places(scale: u32, edges: u64, rows: Range<i64>, seed: u64) -> Vec<[i64; 2]> {
    let mut found = Vec::new();
    divide([0, 0], scale, edges, &rows, seed, &mut found);
    found.sort_unstable();
    found
}

fn divide(at: [i64; 2], scale: u32, edges: u64, rows: &Range<i64>, seed: u64, found: &mut Vec<[i64; 2]>) {
    if edges == 0 || at[0] >= rows.end || at[0] + (1 << scale) <= rows.start {
        return;
    }
    if scale == 0 {
        // Several edges at one place are one.
        found.push(at);
        return;
    }
    let mut random = Random::of(seed, &[scale.into(), at[0], at[1]]);
    let half = 1 << (scale - 1);
    let (mut rest, mut probability) = (edges, 1.0);
    for (quarter, of_quarter) in QUARTERS.into_iter().chain([1.0 - QUARTERS.iter().sum::<f64>()]).enumerate() {
        let own = if quarter == 3 { rest } else { random.successes(rest, of_quarter / probability) };
        (rest, probability) = (rest - own, probability - of_quarter);
        let quarter = [at[0] + half * (quarter as i64 / 2), at[1] + half * (quarter as i64 % 2)];
        divide(quarter, scale - 1, own, rows, seed, found);
    }
}
