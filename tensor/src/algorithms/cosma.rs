//! COSMA.

use super::roles::{Roles, matrices};
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, Substitution};

/// How COSMA cuts a product of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CosmaGrid {
    /// The processors along rows of the result, columns of the result, and the sum.
    pub grid: [i64; 3],
    /// In how many steps each processor goes through each of them.
    pub steps: [i64; 3],
}

/// Chooses a grid of at most `processors` for a product of an `m` x `k` and a `k` x `n` matrix: as many processors as
/// possible, in blocks as near to cubes as possible, none with less than `smallest` rows, columns or terms. If a
/// processor has memory for `memory` elements only, it goes through its block in steps, which halve the longest
/// dimension until the parts of all three matrices fit. (Kwasniewski et al., *Red-blue pebbling revisited: near optimal
/// parallel matrix-matrix multiplication*, 2019, and their implementation.)
pub fn cosma_grid([m, n, k]: [i64; 3], processors: i64, smallest: i64, memory: Option<i64>) -> CosmaGrid {
    let extents = [m, n, k];
    let side = (m.max(1) as f64 * n.max(1) as f64 * k.max(1) as f64 / processors.max(1) as f64).cbrt();
    let most = |extent: i64| (extent / smallest.max(1)).clamp(1, processors.max(1));
    let deviation = |grid: [i64; 3]| -> f64 {
        extents.iter().zip(grid).map(|(&extent, pieces)| (extent as f64 / pieces as f64 - side).abs()).sum()
    };
    let mut best = [1, 1, 1];
    for rows in 1..=most(m) {
        for columns in 1..=most(n).min(processors / rows) {
            let sums = most(k).min(processors / (rows * columns));
            // Fewer along the sum are never more processors, but may be as many with more elsewhere.
            let grid = [rows, columns, sums];
            let (used, before) = (grid.iter().product::<i64>(), best.iter().product::<i64>());
            if used > before || used == before && deviation(grid) < deviation(best) {
                best = grid;
            }
        }
    }
    CosmaGrid { grid: best, steps: steps(extents, best, memory) }
}

/// In how many steps a processor's block fits into its memory.
fn steps(extents: [i64; 3], grid: [i64; 3], memory: Option<i64>) -> [i64; 3] {
    let mut steps = [1; 3];
    let block = |steps: [i64; 3]| {
        let mut block = [0; 3];
        for dimension in 0..3 {
            let pieces = grid[dimension].saturating_mul(steps[dimension]);
            block[dimension] = (extents[dimension] as u64).div_ceil(pieces as u64) as i64;
        }
        block
    };
    loop {
        let [rows, columns, sums] = block(steps);
        let needed = rows as i128 * columns as i128 + (rows as i128 + columns as i128) * sums as i128;
        let longest = if sums >= rows.max(columns) { 2 } else { usize::from(columns > rows) };
        if memory.is_none_or(|memory| needed <= memory.into()) || rows.max(columns).max(sums) <= 1 {
            return steps;
        }
        steps[longest] *= 2;
    }
}

/// COSMA with a grid and steps from [`cosma_grid`], or of one's own. Steps over rows and columns of the result are
/// around the launch, those over the sum inside of it.
///
/// # Errors
///
/// If the statement is no product of two matrices, or a number is less than 1.
pub fn cosma(statement: &Statement, CosmaGrid { grid, steps }: CosmaGrid) -> Result<Algorithm, AlgorithmError> {
    let names = matrices("COSMA", statement)?;
    let scheduled = if steps[0] == 1 && steps[1] == 1 {
        statement.distribute(names.names("i j k"), names.names("io jo ko"), names.names("ii ji ki"), &grid)?
    } else {
        sequential(statement, &names, grid, steps)?
    };
    let scheduled = scheduled
        .divide(names.one("ki"), names.one("kio"), names.one("kii"), steps[2])?
        .reorder(names.names("kio ii ji kii"))?
        .communicate(names.tensors(&[0]), names.one("ko"))?
        .communicate(names.tensors(&[1, 2]), names.one("kio"))?
        .substitute(names.names("ii ji kii"), Substitution::GEMM)?;
    Ok(names.algorithm(scheduled, &grid, &["xy -> xy0", "xz -> x0z", "zy -> 0yz"]))
}

/// Steps over parts of the result, and in each a launch.
fn sequential(
    statement: &Statement,
    names: &Roles,
    grid: [i64; 3],
    steps: [i64; 3],
) -> Result<Statement, AlgorithmError> {
    Ok(statement
        .divide(names.one("i"), names.one("it"), names.one("ir"), steps[0])?
        .divide(names.one("j"), names.one("jt"), names.one("jr"), steps[1])?
        .reorder(names.names("it jt ir jr"))?
        .distribute(names.names("ir jr k"), names.names("io jo ko"), names.names("ii ji ki"), &grid)?)
}
