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

/// The five-point discretisation of the Laplace equation on a square of `side` x `side` unknowns, with zero on the boundary.
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

/// Checks what positive definite matrices have in common, and Jacobi's preconditioner needs: a positive diagonal.
///
/// # Errors
/// Which row has none.
pub fn check_diagonal(matrix: &Matrix) -> Result<(), String> {
    for row in 0..matrix.dimensions()[0] {
        let diagonal = matrix.get(&[row, row]);
        if diagonal <= 0.0 {
            return Err(format!(
                "row {} has the diagonal entry {diagonal}, but those of a positive definite matrix are positive",
                row + 1
            ));
        }
    }
    Ok(())
}

/// The matrix times a vector, by one thread.
///
/// # Panics
/// If the vector has fewer elements than the matrix has columns.
#[must_use]
pub fn times(matrix: &Matrix, vector: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; rows(matrix)];
    matrix.for_each(|at, value| product[at[0] as usize] += value * vector[at[1] as usize]);
    product
}

/// Where to cut rows into so many consecutive pieces with about as many entries each, and at least one row: the first row of each piece but the first. There must not be more pieces than
/// rows.
#[must_use]
pub fn balanced(matrix: &Matrix, pieces: usize) -> Vec<i64> {
    let (rows, pos) = (rows(matrix), matrix.levels()[1].component("pos"));
    let entries = pos.get(rows);
    let mut first = 0;
    let cut = |piece: usize| {
        let wanted = (entries as i128 * piece as i128 / pieces as i128) as i64;
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = (low + high) / 2;
            if pos.get(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        // The piece before and all that follow need a row.
        first = low.clamp(first + 1, rows - (pieces - piece));
        first as i64
    };
    (1..pieces).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// A matrix whose rows have so many entries.
    fn matrix(entries: &[i64]) -> Matrix {
        let mut all = EntryList::new(2);
        for (row, &entries) in (0..).zip(entries) {
            (0..entries).for_each(|column| all.push(&[row, column], 1.0));
        }
        from_entries(entries.len().max(100), all).unwrap()
    }

    #[test]
    fn pieces_have_about_as_many_entries_each() {
        assert_eq!(balanced(&matrix(&[1; 100]), 3), [33, 66]);
        assert_eq!(balanced(&matrix(&[50, 1, 1, 1, 1]), 2), [1]);
    }

    #[test]
    fn every_piece_has_a_row_wherever_the_entries_are() {
        let mut last = vec![0; 100];
        last[99] = 100;
        assert_eq!(balanced(&matrix(&[100, 1, 1, 1]), 4), [1, 2, 3]);
        assert_eq!(balanced(&matrix(&last), 3), [98, 99]);
        assert!(balanced(&matrix(&[5]), 1).is_empty());
        assert_eq!(balanced(&matrix(&[]), 100), (1..100).collect::<Vec<_>>());
    }
}
