//! Published algorithms by their names, on a grid that is given or suits the statement.

use super::loops::on_one;
use super::wishes::{AlgorithmName, ChooseError, Wishes, grid_text};
use crate::algorithms::{self, Algorithm, AlgorithmError, CosmaGrid, cosma_grid, in_any_order};
use crate::concrete::Statement;

/// The algorithm, with a description in a few words.
///
/// # Errors
///
/// [`ChooseError`] if it does not fit the statement, or the grid.
pub(super) fn named(
    name: AlgorithmName,
    statement: &Statement,
    wishes: Wishes<'_>,
) -> Result<(String, Algorithm), ChooseError> {
    use AlgorithmName::{Cannon, Cosma, Innerprod, Johnson, Mttkrp, Pumma, Solomonik, Summa, Ttm, Ttv};
    let processors = wishes.processors;
    // Extents of the loops, in the order of the statement: those of the result, then those of the sum.
    let extents: Vec<i64> =
        statement.spine().iter().map(|outer| statement.extent(&outer.variable).unwrap_or(1)).collect();
    let in_plane = |make: fn(&Statement, [i64; 2]) -> Result<Algorithm, AlgorithmError>| {
        let grid = plane(&extents, wishes)?;
        Ok::<_, ChooseError>(in_any_order(statement, |of| make(of, grid))?)
    };
    let in_box = |extents: &[i64], make: fn(&Statement, [i64; 3]) -> Result<Algorithm, AlgorithmError>| {
        let grid = cuboid(extents, wishes)?;
        Ok::<_, ChooseError>(in_any_order(statement, |of| make(of, grid))?)
    };
    let (text, algorithm) = match name {
        Cannon => ("Cannon's algorithm", in_plane(algorithms::cannon)?),
        Pumma => ("PUMMA", in_plane(algorithms::pumma)?),
        Summa => {
            let grid = plane(&extents, wishes)?;
            let sum = extents.get(2).copied().unwrap_or(1);
            let chunk = wishes.chunk.unwrap_or_else(|| tile(sum, grid[0].max(grid[1])));
            let summa = in_any_order(statement, |of| algorithms::summa(of, grid, chunk))?;
            return Ok((format!("SUMMA in chunks of {chunk}"), summa));
        }
        Johnson => ("Johnson's algorithm", in_box(&extents, algorithms::johnson)?),
        Solomonik => {
            let (processors, copies) = match wishes.grid {
                Some(_) => {
                    let [rows, columns, layers] = cuboid(&extents, wishes)?;
                    if rows != columns {
                        let grid = grid_text(&[rows, columns, layers]);
                        return Err(ChooseError::Unfit(format!(
                            "grid {grid}: the 2.5D algorithm takes square layers, such as 2x2x1 or 2x2x2"
                        )));
                    }
                    (rows * columns * layers, layers)
                }
                None => layers(processors),
            };
            let solomonik = in_any_order(statement, |of| algorithms::solomonik(of, processors, copies))?;
            ("the 2.5D algorithm", solomonik)
        }
        Cosma => {
            let cut = match wishes.grid {
                Some(_) => CosmaGrid { grid: cuboid(&extents, wishes)?, steps: [1; 3] },
                None => match extents[..] {
                    [m, n, k] => cosma_grid([m, n, k], processors, 1, None),
                    _ => CosmaGrid { grid: [1; 3], steps: [1; 3] },
                },
            };
            ("COSMA", in_any_order(statement, |of| algorithms::cosma(of, cut))?)
        }
        Ttv => ("TTV: nothing moves", in_plane(algorithms::ttv)?),
        Innerprod => {
            let grid = wishes.grid.map_or_else(|| vec![processors], <[i64]>::to_vec);
            let innerprod = in_any_order(statement, |of| algorithms::innerprod(of, &grid))?;
            ("inner product: one number for each processor moves", innerprod)
        }
        Ttm => {
            let processors = given::<1>(wishes)?.map_or(processors, |[extent]| extent);
            ("TTM: nothing moves", in_any_order(statement, |of| algorithms::ttm(of, processors))?)
        }
        Mttkrp => {
            // The sum is over the second and third dimension of the first operand.
            let of_tensor = match extents[..] {
                [i, _, j, k] => &[i, j, k],
                _ => &extents[..],
            };
            ("MTTKRP: the largest tensor stays where it is", in_box(of_tensor, algorithms::mttkrp)?)
        }
        AlgorithmName::None => return Ok(on_one(statement)),
    };
    Ok((text.to_owned(), algorithm))
}

/// A block of so many pieces.
fn tile(extent: i64, pieces: i64) -> i64 {
    ((extent as u64).div_ceil(pieces.max(1) as u64) as i64).max(1)
}

fn given<const D: usize>(wishes: Wishes<'_>) -> Result<Option<[i64; D]>, ChooseError> {
    let Some(grid) = wishes.grid else { return Ok(None) };
    let extents: Result<[i64; D], _> = grid.try_into();
    extents.map(Some).map_err(|_| {
        let (rank, example) = (grid.len(), ["4", "2x2", "2x2x2"][D - 1]);
        ChooseError::Unfit(format!(
            "grid {} has {rank} dimension{}: this algorithm takes a grid of {D}, such as {example}",
            grid_text(grid),
            if rank == 1 { "" } else { "s" },
        ))
    })
}

fn plane(extents: &[i64], wishes: Wishes<'_>) -> Result<[i64; 2], ChooseError> {
    let processors = wishes.processors;
    let (rows, columns) = (extents.first().copied().unwrap_or(1), extents.get(1).copied().unwrap_or(1));
    let best = || {
        let grids = divisors(processors).map(|height| [height, processors / height]);
        let around = |grid: &[i64; 2]| tile(rows, grid[0]) + tile(columns, grid[1]);
        grids.min_by_key(around).unwrap_or([processors, 1])
    };
    Ok(given(wishes)?.unwrap_or_else(best))
}

fn cuboid(extents: &[i64], wishes: Wishes<'_>) -> Result<[i64; 3], ChooseError> {
    let processors = wishes.processors;
    let extent = |dimension: usize| extents.get(dimension).copied().unwrap_or(1);
    let best = || {
        let grids = divisors(processors).flat_map(|height| {
            let rest = processors / height;
            divisors(rest).map(move |width| [height, width, rest / width])
        });
        let surface = |grid: &[i64; 3]| {
            let [a, b, c] = [0, 1, 2].map(|dimension| i128::from(tile(extent(dimension), grid[dimension])));
            a * b + b * c + a * c
        };
        grids.min_by_key(surface).unwrap_or([processors, 1, 1])
    };
    Ok(given(wishes)?.unwrap_or_else(best))
}

fn divisors(number: i64) -> impl Iterator<Item = i64> {
    (1..=number).filter(move |divisor| number % divisor == 0)
}

/// As many processors as the 2.5D algorithm can use, and how many layers then: as many as there can be.
fn layers(processors: i64) -> (i64, i64) {
    let fits = |used: i64, copies: i64| {
        let side = (used / copies).isqrt();
        used % copies == 0 && side * side == used / copies && side % copies == 0
    };
    let pairs = (1..=processors).flat_map(|used| (1..=used).map(move |copies| (used, copies)));
    pairs.filter(|&(used, copies)| fits(used, copies)).max().unwrap_or((1, 1))
}
