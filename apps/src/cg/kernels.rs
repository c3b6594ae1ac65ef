//! The inner loops of the solver's tasks, on plain slices.

use maniple::access::{Read, Span};
use maniple::prelude::*;

use super::rows::Row;

/// The entries of some consecutive rows of a matrix.
pub(super) struct Block<'a> {
    first: i64,
    columns: Span<'a, Ptr<Row>>,
    values: Span<'a, f64>,
}

impl<'a> Block<'a> {
    /// All entries of a piece, which lie next to each other because its rows do.
    pub(super) fn new(columns: &'a Read<'_, Ptr<Row>>, values: &'a Read<'_, f64>) -> Self {
        let all = columns.space().bounds();
        Self { first: all.lo[0], columns: columns.span(all), values: values.span(all) }
    }

    /// Multiplies rows, given by their ranges of entries, with a vector.
    pub(super) fn multiply(&self, rows: &[Rect<1>], vector: &Read<'_, f64>, products: &mut [f64]) {
        let bounds = vector.space().bounds();
        if vector.space().is_dense() {
            // One slice: the compiler is left with one comparison an entry.
            let (elements, first) = (vector.span(bounds), bounds.lo[0]);
            self.multiply_by(rows, |column| elements[(column.point()[0] - first) as usize], products);
        } else {
            self.multiply_by(rows, |column| vector[column], products);
        }
    }

    fn multiply_by(&self, rows: &[Rect<1>], element: impl Fn(Ptr<Row>) -> f64, products: &mut [f64]) {
        for (row, product) in rows.iter().zip(products) {
            let range = (row.lo[0] - self.first) as usize..(row.hi[0] + 1 - self.first) as usize;
            let entries = self.columns[range.clone()].iter().zip(&self.values[range]);
            *product = entries.map(|(&column, value)| value * element(column)).sum();
        }
    }
}

/// How many sums run side by side, for the processor's vector units: additions of one sum have to wait for each other.
const LANES: usize = 8;

/// The inner product of two vectors.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (chunks_a, chunks_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = chunks_a.remainder().iter().zip(chunks_b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in chunks_a.zip(chunks_b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_product_has_every_element_once() {
        for length in [0, 1, 7, 8, 9, 31] {
            let a: Vec<f64> = (0..length).map(f64::from).collect();
            let b: Vec<f64> = (0..length).map(|i| f64::from(i % 5)).collect();
            assert_eq!(dot(&a, &b), a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>());
        }
    }
}
