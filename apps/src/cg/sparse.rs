//! Sparse matrices in rows.

use std::collections::TryReserveError;

/// One entry of a matrix; rows and columns are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// The row.
    pub row: u32,
    /// The column.
    pub column: u32,
    /// The value.
    pub value: f64,
}

impl Entry {
    /// The entry on the other side of the diagonal.
    #[must_use]
    pub fn mirrored(self) -> Self {
        Self { row: self.column, column: self.row, ..self }
    }
}

/// A square matrix in compressed rows: the entries of row `i` are numbered `starts[i]` to `starts[i + 1] - 1`, in the order of columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Sparse {
    /// A matrix of so many rows and columns. Entries at one place add up.
    #[must_use]
    pub fn from_entries(rows: usize, mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| (entry.row, entry.column));
        entries.dedup_by(|later, earlier| {
            let same = (later.row, later.column) == (earlier.row, earlier.column);
            if same {
                earlier.value += later.value;
            }
            same
        });
        let mut starts = vec![0; rows + 1];
        entries.iter().for_each(|entry| starts[entry.row as usize + 1] += 1);
        (0..rows).for_each(|row| starts[row + 1] += starts[row]);
        let columns = entries.iter().map(|entry| entry.column).collect();
        Self { starts, columns, values: entries.iter().map(|entry| entry.value).collect() }
    }

    /// The five-point discretisation of the Laplace equation on a square of `side` x `side` unknowns, with zero on the boundary.
    ///
    /// # Errors
    /// If the system does not give the memory.
    pub fn poisson(side: usize) -> Result<Self, TryReserveError> {
        let rows = side * side;
        let mut matrix = Self { starts: vec![0], columns: Vec::new(), values: Vec::new() };
        matrix.starts.try_reserve_exact(rows)?;
        matrix.columns.try_reserve_exact(5 * rows)?;
        matrix.values.try_reserve_exact(5 * rows)?;
        for row in 0..rows {
            let (y, x) = (row / side, row % side);
            let neighbours = [
                (y > 0).then(|| (row - side, -1.0)),
                (x > 0).then(|| (row - 1, -1.0)),
                Some((row, 4.0)),
                (x + 1 < side).then(|| (row + 1, -1.0)),
                (y + 1 < side).then(|| (row + side, -1.0)),
            ];
            for (column, value) in neighbours.into_iter().flatten() {
                matrix.columns.push(column as u32);
                matrix.values.push(value);
            }
            matrix.starts.push(matrix.columns.len());
        }
        Ok(matrix)
    }

    /// The number of rows, and of columns.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of entries.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Where each row's entries start; one more than there are rows.
    #[must_use]
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The column of each entry.
    #[must_use]
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The value of each entry.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The value at a place; 0 if there is no entry.
    #[must_use]
    pub fn get(&self, row: u32, column: u32) -> f64 {
        let range = self.starts[row as usize]..self.starts[row as usize + 1];
        let found = self.columns[range.clone()].binary_search(&column);
        found.map_or(0.0, |place| self.values[range.start + place])
    }

    /// The largest absolute value.
    #[must_use]
    pub fn largest_value(&self) -> f64 {
        self.values.iter().fold(0.0, |largest, value| largest.max(value.abs()))
    }

    /// Checks what positive definite matrices have in common, and Jacobi's preconditioner needs: a positive diagonal.
    ///
    /// # Errors
    /// Which row has none.
    pub fn check_diagonal(&self) -> Result<(), String> {
        for row in 0..self.rows() as u32 {
            let diagonal = self.get(row, row);
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
    /// If the vector has another length than the matrix has columns.
    #[must_use]
    pub fn times(&self, vector: &[f64]) -> Vec<f64> {
        assert_eq!(vector.len(), self.rows(), "one element a column");
        let row = |row: usize| {
            let range = self.starts[row]..self.starts[row + 1];
            let entries = self.columns[range.clone()].iter().zip(&self.values[range]);
            entries.map(|(&column, value)| value * vector[column as usize]).sum()
        };
        (0..self.rows()).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_is_four_on_the_diagonal_and_minus_one_at_the_neighbours() {
        let matrix = Sparse::poisson(3).unwrap();
        assert_eq!((matrix.rows(), matrix.entries()), (9, 9 + 2 * 12));
        assert_eq!(matrix.times(&[1.0; 9]), [2.0, 1.0, 2.0, 1.0, 0.0, 1.0, 2.0, 1.0, 2.0]);
        assert_eq!((matrix.get(4, 4), matrix.get(4, 1), matrix.get(4, 0)), (4.0, -1.0, 0.0));
        assert_eq!(matrix.get(2, 3), 0.0, "the end of one line of the square is no neighbour of the start of the next");
    }

    #[test]
    fn entries_are_sorted_into_rows_and_added_up() {
        let entry = |row, column, value| Entry { row, column, value };
        let matrix =
            Sparse::from_entries(2, vec![entry(1, 1, 3.0), entry(0, 1, 1.0), entry(1, 1, 4.0), entry(1, 0, 1.0)]);
        assert_eq!((matrix.starts(), matrix.columns()), (&[0, 1, 3][..], &[1, 0, 1][..]));
        assert_eq!(matrix.values(), [1.0, 1.0, 7.0]);
        assert!(matrix.check_diagonal().is_err_and(|reason| reason.starts_with("row 1 ")));
    }
}
