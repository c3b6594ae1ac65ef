//! Matrices of systems: square sparse tensors in compressed rows.

use maniple_tensor::generate::Generator;
use maniple_tensor::kernel::Scoped;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, StorageError, pack_by};

/// A square matrix in compressed rows.
pub type Matrix = SparseTensor<f64>;

/// A matrix of so many rows and columns. Entries at one place add up.
///
/// # Errors
/// If the system does not give the memory.
pub fn from_entries(rows: usize, entries: EntryList<f64>) -> Result<Matrix, StorageError> {
    let csr = "csr".parse().expect("it is the name of a format");
    let team = Scoped { threads: std::thread::available_parallelism().map_or(1, |threads| threads.get()) };
    Ok(pack_by(&team, &csr, &[rows as i64; 2], 0.0, entries, Duplicates::Sum)?.tensor)
}

/// The five-point discretisation of the Laplace equation on a square of `side` x `side` unknowns, with zero on the
/// boundary.
///
/// # Errors
/// If the system does not give the memory.
pub fn poisson(side: usize) -> Result<Matrix, StorageError> {
    let rows = (side * side) as i64;
    let generator = Generator::Poisson { side: side as i64, dimensions: 2 };
    from_entries(side * side, generator.rows(&[rows; 2], 0..rows, 0).expect("these are its extents"))
}

/// The number of rows, and of columns.
#[must_use]
pub fn rows(matrix: &Matrix) -> usize {
    matrix.dimensions()[0] as usize
}

/// As many cuts of rows as make so many pieces that have at least a row each: those given, which ascend, moved as far
/// as they must be, and others at the end. There must not be more pieces than rows.
#[must_use]
pub fn each_with_a_row(cuts: &[i64], pieces: usize, rows: usize) -> Vec<i64> {
    let mut first = 0;
    let cut = |piece: usize| {
        // The piece before and all that follow need a row.
        let wanted = cuts.get(piece - 1).or(cuts.last()).map_or(0, |&cut| cut as usize);
        first = wanted.clamp(first + 1, rows - (pieces - piece));
        first as i64
    };
    (1..pieces).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The matrix times a vector.
    fn times(matrix: &Matrix, vector: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; rows(matrix)];
        matrix.for_each(|at, value| product[at[0] as usize] += value * vector[at[1] as usize]);
        product
    }

    #[test]
    fn poisson_is_four_on_the_diagonal_and_minus_one_at_the_neighbours() {
        let matrix = poisson(3).unwrap();
        assert_eq!((rows(&matrix), matrix.values().len()), (9, 9 + 2 * 12));
        assert_eq!(times(&matrix, &[1.0; 9]), [2.0, 1.0, 2.0, 1.0, 0.0, 1.0, 2.0, 1.0, 2.0]);
        assert_eq!((matrix.get(&[4, 4]), matrix.get(&[4, 1]), matrix.get(&[4, 0])), (4.0, -1.0, 0.0));
        assert_eq!(
            matrix.get(&[2, 3]),
            0.0,
            "the end of one line of the square is no neighbour of the start of the next"
        );
    }

    #[test]
    fn every_piece_has_a_row_wherever_the_cuts_are() {
        assert_eq!(each_with_a_row(&[33, 66], 3, 100), [33, 66]);
        assert_eq!(each_with_a_row(&[1], 4, 5), [1, 2, 3]);
        assert_eq!(each_with_a_row(&[99], 3, 100), [98, 99]);
        assert_eq!(each_with_a_row(&[], 100, 100), (1..100).collect::<Vec<_>>());
        assert!(each_with_a_row(&[], 1, 5).is_empty());
    }
}
