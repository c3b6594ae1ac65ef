//! Projections that are plain data.

use maniple_space::{AnyPoint, AnyRect};

/// The color of each point's piece as a linear function of the point: `color = matrix * point + offset`, around the
/// partition's colors or not.
///
/// It is compared by what it says. So a launch with a projection that is made anew each time is known again, as one
/// with a function is not, which is the same only if it is the same object; and the runtime need not ask it again.
///
/// ```
/// use maniple_region::Affine;
/// use maniple_space::{AnyRect, Rect};
///
/// let colors = AnyRect::from(Rect::<2>::from_shape([4, 3]));
/// let left = Affine::shift([0, -1]);
/// assert_eq!(left.color([2, 1].into(), &colors), Some([2, 0].into()));
/// assert_eq!(left.around().color([2, 0].into(), &colors), Some([2, 2].into()));
/// let transposed = Affine::new([[0, 1], [1, 0]], [0, 0]);
/// assert_eq!(transposed.color([2, 1].into(), &colors), Some([1, 2].into()));
/// let column = Affine::new([[0], [1]], [3, 0]);
/// assert_eq!(column.color(2.into(), &colors), Some([3, 2].into()));
/// assert_eq!(column.color([2, 0].into(), &colors), None, "it is for points of one dimension");
/// assert_eq!(left, Affine::shift([0, -1]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Affine {
    /// Of points.
    from: usize,
    /// Of colors.
    to: usize,
    matrix: [[i64; MOST]; MOST],
    offset: [i64; MOST],
    is_around: bool,
}

/// The most dimensions that there are.
const MOST: usize = 4;

impl Affine {
    /// The color of a point is the point, moved by an offset.
    #[must_use]
    pub fn shift<const D: usize>(offset: [i64; D]) -> Self {
        let mut matrix = [[0; D]; D];
        (0..D).for_each(|d| matrix[d][d] = 1);
        Self::new(matrix, offset)
    }

    /// The color of a point `p` has the coordinates `matrix[d][0] * p[0] + matrix[d][1] * p[1] + .. + offset[d]`.
    ///
    /// # Panics
    /// If points or colors have no dimension, or more than four.
    #[must_use]
    pub fn new<const D: usize, const E: usize>(matrix: [[i64; E]; D], offset: [i64; D]) -> Self {
        assert!((1..=MOST).contains(&D) && (1..=MOST).contains(&E), "points and colors have one to four dimensions");
        let mut known = Self { from: E, to: D, matrix: [[0; MOST]; MOST], offset: [0; MOST], is_around: false };
        known.offset[..D].copy_from_slice(&offset);
        for (known, row) in known.matrix.iter_mut().zip(&matrix) {
            known[..E].copy_from_slice(row);
        }
        known
    }

    /// The same around the colors of the partition: after the last color of a dimension comes the first.
    #[must_use]
    pub fn around(self) -> Self {
        Self { is_around: true, ..self }
    }

    /// How many dimensions the points have that it is for.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.from
    }

    /// The color of a point among those of a partition, of which it need not be one. None if point or colors have other
    /// dimensions than it is for, or the color's coordinates no place in 64 bits.
    #[must_use]
    pub fn color(&self, point: AnyPoint, colors: &AnyRect) -> Option<AnyPoint> {
        if point.dim() != self.from || colors.dim() != self.to {
            return None;
        }
        let mut color = [0; MOST];
        for (d, color) in color.iter_mut().enumerate().take(self.to) {
            let mut terms =
                self.matrix[d].iter().zip(point.coords()).map(|(&factor, &at)| i128::from(factor) * i128::from(at));
            // Each product has a place in 128 bits; their sum may have none.
            let sum = terms.try_fold(i128::from(self.offset[d]), i128::checked_add)?;
            let (lo, hi) = (i128::from(colors.lo().coords()[d]), i128::from(colors.hi().coords()[d]));
            let sum = if self.is_around && lo <= hi { lo + (sum - lo).rem_euclid(hi - lo + 1) } else { sum };
            *color = i64::try_from(sum).ok()?;
        }
        let [a, b, c, d] = color;
        Some(match self.to {
            1 => a.into(),
            2 => [a, b].into(),
            3 => [a, b, c].into(),
            _ => [a, b, c, d].into(),
        })
    }

    /// Whether different points surely have different colors: each coordinate of a point goes into a coordinate of its
    /// own of the color.
    #[must_use]
    pub fn is_injective(&self) -> bool {
        let rows = &self.matrix[..self.to];
        let of_point = |e: usize| rows.iter().filter(|row| row[e] != 0).count() == 1;
        let of_color = |row: &[i64; MOST]| row.iter().filter(|&&factor| factor != 0).count() <= 1;
        !self.is_around && (0..self.from).all(of_point) && rows.iter().all(of_color)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use maniple_space::Rect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn coordinates_without_a_place_are_no_color() {
        let colors = AnyRect::from(Rect::<1>::from(0..10));
        let doubled = Affine::new([[2]], [0]);
        assert_eq!(doubled.color(i64::MAX.into(), &colors), None);
        assert_eq!(
            doubled.around().color(i64::MAX.into(), &colors),
            Some((((i128::from(i64::MAX) * 2) % 10) as i64).into())
        );
        assert_eq!(Affine::shift([1]).around().color(3.into(), &AnyRect::from(Rect::<1>::EMPTY)), Some(4.into()));
    }

    proptest! {
        #[test]
        fn it_is_the_linear_function_and_injective_only_if_no_two_points_share_a_color(
            matrix in prop::array::uniform2(prop::array::uniform2(-2_i64..=2)), offset in prop::array::uniform2(-5_i64..5), around: bool
        ) {
            let (plain, colors) = (Affine::new(matrix, offset), AnyRect::from(Rect::<2>::from_shape([3, 4])));
            let affine = if around { plain.around() } else { plain };
            let mut seen: HashMap<AnyPoint, AnyPoint> = HashMap::new();
            for point in AnyRect::from(Rect::<2>::from_shape([4, 4])).points() {
                let p = point.coords();
                let expected = [0, 1].map(|d| {
                    let sum = matrix[d][0] * p[0] + matrix[d][1] * p[1] + offset[d];
                    if around { sum.rem_euclid([3, 4][d]) } else { sum }
                });
                let color = affine.color(point, &colors);
                prop_assert_eq!(color, Some(AnyPoint::from(expected)));
                let other = seen.insert(color.expect("it was just compared"), point);
                prop_assert!(other.is_none() || !affine.is_injective());
            }
        }
    }
}
