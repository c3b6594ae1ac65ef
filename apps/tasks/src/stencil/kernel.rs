//! The star stencil on plain rows.

/// The weights of a star of radius `R`: of the neighbours at distance 1 to `R` on the far side. On the near side they
/// are the opposite.
///
/// The star measures how steep the grid is: on a grid that rises by 1 from point to point in both directions it
/// gives 2.
#[must_use]
pub fn weights<const R: usize>() -> [f64; R] {
    std::array::from_fn(|distance| 1.0 / (2.0 * (distance + 1) as f64 * R as f64))
}

/// Adds the star around each point of a row to `output`.
///
/// `row` holds the points' own row, `R` longer than `output` at both ends; `before` and `after` the rows at distance 1
/// to `R`, as long as `output`.
///
/// # Panics
/// If the lengths are others.
#[inline]
pub fn add_star<const R: usize>(
    output: &mut [f64],
    row: &[f64],
    before: [&[f64]; R],
    after: [&[f64]; R],
    weights: &[f64; R],
) {
    let length = output.len();
    assert_eq!(row.len(), length + 2 * R, "the row is longer by the radius at both ends");
    // All slices get the length of the output, so that the compiler sees that no index can be out of bounds.
    let before = before.map(|row| &row[..length]);
    let after = after.map(|row| &row[..length]);
    let left: [&[f64]; R] = std::array::from_fn(|distance| &row[R - 1 - distance..][..length]);
    let right: [&[f64]; R] = std::array::from_fn(|distance| &row[R + 1 + distance..][..length]);
    for (column, output) in output.iter_mut().enumerate() {
        let mut sum = 0.0;
        for distance in 0..R {
            let vertical = after[distance][column] - before[distance][column];
            let horizontal = right[distance][column] - left[distance][column];
            sum += weights[distance] * (vertical + horizontal);
        }
        *output += sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_a_slope<const R: usize>() -> Vec<f64> {
        let value = |row: usize, column: usize| (3 * row + column) as f64;
        let line = |row: usize, columns: std::ops::Range<usize>| columns.map(|column| value(row, column)).collect();
        let (middle, columns) = (R, R..R + 5);
        let before: Vec<Vec<f64>> = (1..=R).map(|distance| line(middle - distance, columns.clone())).collect();
        let after: Vec<Vec<f64>> = (1..=R).map(|distance| line(middle + distance, columns.clone())).collect();
        let row: Vec<f64> = line(middle, 0..5 + 2 * R);
        let mut output = vec![10.0; 5];
        let (before, after) = (std::array::from_fn(|d| &before[d][..]), std::array::from_fn(|d| &after[d][..]));
        add_star::<R>(&mut output, &row, before, after, &weights());
        output
    }

    #[test]
    fn the_star_is_the_slope_whatever_its_radius() {
        // Three a row and one a column.
        for output in [on_a_slope::<1>(), on_a_slope::<2>(), on_a_slope::<3>(), on_a_slope::<4>()] {
            assert!(output.iter().all(|value| (value - 14.0).abs() < 1e-12), "{output:?}");
        }
    }
}
