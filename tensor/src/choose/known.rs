//! Candidates that are published algorithms.

use super::grids::factors;
use super::wishes::grid_text;
use crate::algorithms::{self, Algorithm, AlgorithmError, in_any_order};
use crate::concrete::Statement;

/// All published algorithms that compute `statement`, on grids of so many processors, or as many of them as the
/// algorithm can use.
pub(super) fn all(statement: &Statement, processors: usize) -> Vec<(String, Algorithm)> {
    let mut known = KnownAlgorithms { found: Vec::new() };
    let processors = processors as i64;
    let shapes = |dimensions: usize| -> Vec<Vec<i64>> {
        (1..=dimensions)
            .flat_map(|count| factors(processors, count))
            .map(|mut grid| {
                grid.resize(dimensions, 1);
                grid
            })
            .collect()
    };
    matrices(&mut known, statement, processors, shapes(2));
    for grid in shapes(2) {
        known.add("TTV", &grid, in_any_order(statement, |of| algorithms::ttv(of, [grid[0], grid[1]])));
    }
    for grid in shapes(3) {
        known.add("MTTKRP", &grid, in_any_order(statement, |of| algorithms::mttkrp(of, [grid[0], grid[1], grid[2]])));
    }
    if processors > 1 {
        known.add("TTM", &[processors], in_any_order(statement, |of| algorithms::ttm(of, processors)));
        known.add("innerprod", &[processors], in_any_order(statement, |of| algorithms::innerprod(of, &[processors])));
    }
    known.found
}

/// Products of matrices.
fn matrices(known: &mut KnownAlgorithms, statement: &Statement, processors: i64, mut grids: Vec<Vec<i64>>) {
    let extents: Vec<i64> = statement.spine().iter().filter_map(|outer| statement.extent(&outer.variable)).collect();
    let [rows, columns, sums] = extents[..] else { return };
    if processors == 1 {
        return;
    }
    grids.sort_by_key(|grid| grid[0].abs_diff(grid[1]));
    // The nearest to a square, and the same the other way round.
    for grid in grids.iter().take(2).map(|grid| [grid[0], grid[1]]) {
        let chunk = (sums / (4 * grid[0].max(grid[1]))).max(1);
        known.add("Cannon", &grid, in_any_order(statement, |of| algorithms::cannon(of, grid)));
        known.add("PUMMA", &grid, in_any_order(statement, |of| algorithms::pumma(of, grid)));
        known.add(
            &format!("SUMMA in chunks of {chunk}"),
            &grid,
            in_any_order(statement, |of| algorithms::summa(of, grid, chunk)),
        );
    }
    let cut = algorithms::cosma_grid([rows, columns, sums], processors, 1, None);
    known.add("Johnson", &cut.grid, in_any_order(statement, |of| algorithms::johnson(of, cut.grid)));
    let cut = algorithms::CosmaGrid { steps: [1, 1, 4], ..cut };
    known.add("COSMA in 4 steps", &cut.grid, in_any_order(statement, |of| algorithms::cosma(of, cut)));
    for copies in (2..=processors).filter(|copies| processors % copies == 0) {
        if let Ok(algorithm) = in_any_order(statement, |of| algorithms::solomonik(of, processors, copies)) {
            let grid = algorithm.grid.clone();
            known.add("2.5D", &grid, Ok(algorithm));
        }
    }
}

struct KnownAlgorithms {
    found: Vec<(String, Algorithm)>,
}

impl KnownAlgorithms {
    /// Adds an algorithm, if it computes what it should.
    fn add(&mut self, name: &str, grid: &[i64], algorithm: Result<Algorithm, AlgorithmError>) {
        let Ok(algorithm) = algorithm else { return };
        self.found.push((format!("{name} on {}", grid_text(grid)), algorithm));
    }
}
