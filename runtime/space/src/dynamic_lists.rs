//! Lists of spaces whose dimension is known only at run time.

use crate::dynamic::typed_list;
use crate::{
    AnySpace, DimensionMismatch, IndexSpace, OverlapLists, first_overlapping_pair, for_dimension, overlapping_pairs,
    partition,
};

impl AnySpace {
    /// All points that are in some of the spaces, which have `dim` dimensions. Near-linear in the rectangles.
    ///
    /// # Errors
    /// When a space has another number of dimensions.
    pub fn union_all<'a>(dim: usize, spaces: impl IntoIterator<Item = &'a Self>) -> Result<Self, DimensionMismatch> {
        union_all(dim, &spaces.into_iter().collect::<Vec<_>>())
    }

    /// Whether no two of the spaces, which have `dim` dimensions, share a point. Near-linear in the rectangles.
    ///
    /// # Errors
    /// When a space has another number of dimensions.
    pub fn are_disjoint<'a>(dim: usize, spaces: impl IntoIterator<Item = &'a Self>) -> Result<bool, DimensionMismatch> {
        are_disjoint(dim, &spaces.into_iter().collect::<Vec<_>>())
    }

    /// For each of `a` the list of those of `b` that it overlaps: see [`overlapping_pairs`]. All have `dim` dimensions.
    ///
    /// # Errors
    /// When a space has another number of dimensions.
    pub fn overlapping_pairs<'a>(
        dim: usize,
        a: impl IntoIterator<Item = &'a Self>,
        b: impl IntoIterator<Item = &'a Self>,
    ) -> Result<OverlapLists, DimensionMismatch> {
        pairs(dim, &a.into_iter().collect::<Vec<_>>(), &b.into_iter().collect::<Vec<_>>())
    }

    /// The first two of `a` and `b` that overlap and for which `counts` holds: see [`first_overlapping_pair`]. All have
    /// `dim` dimensions.
    ///
    /// # Errors
    /// When a space has another number of dimensions.
    pub fn first_overlapping_pair<'a>(
        dim: usize,
        a: impl IntoIterator<Item = &'a Self>,
        b: impl IntoIterator<Item = &'a Self>,
        counts: impl Fn(usize, usize) -> bool,
    ) -> Result<Option<(usize, usize)>, DimensionMismatch> {
        first_pair(dim, &a.into_iter().collect::<Vec<_>>(), &b.into_iter().collect::<Vec<_>>(), &counts)
    }
}

// Below, nothing depends on what gives the spaces: it is compiled once for each dimension.

fn union_all(dim: usize, spaces: &[&AnySpace]) -> Result<AnySpace, DimensionMismatch> {
    AnySpace::empty(dim)?;
    for_dimension!(dim, D => {
        let spaces: Vec<&IndexSpace<D>> = spaces.iter().map(|space| space.typed()).collect::<Result<_, _>>()?;
        Ok(IndexSpace::union_all(spaces).into())
    })
}

fn are_disjoint(dim: usize, spaces: &[&AnySpace]) -> Result<bool, DimensionMismatch> {
    AnySpace::empty(dim)?;
    for_dimension!(dim, D => Ok(partition::is_disjoint(&typed_list::<D>(spaces.iter().copied())?)))
}

fn pairs(dim: usize, a: &[&AnySpace], b: &[&AnySpace]) -> Result<OverlapLists, DimensionMismatch> {
    AnySpace::empty(dim)?;
    for_dimension!(dim, D => Ok(overlapping_pairs(&typed_list::<D>(a.iter().copied())?, &typed_list::<D>(b.iter().copied())?)))
}

fn first_pair(
    dim: usize,
    a: &[&AnySpace],
    b: &[&AnySpace],
    counts: &dyn Fn(usize, usize) -> bool,
) -> Result<Option<(usize, usize)>, DimensionMismatch> {
    AnySpace::empty(dim)?;
    for_dimension!(dim, D => Ok(first_overlapping_pair(&typed_list::<D>(a.iter().copied())?, &typed_list::<D>(b.iter().copied())?, counts)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyRect, Rect};
    use proptest::prelude::*;

    fn interval(lo: i64, hi: i64) -> AnySpace {
        Rect::<1>::from(lo..hi).into()
    }

    #[test]
    fn lists_answer_as_their_typed_forms_do() {
        let spaces = [interval(0, 5), interval(3, 8), interval(9, 10)];
        assert_eq!(AnySpace::union_all(1, &spaces).unwrap().volume(), 9);
        assert!(!AnySpace::are_disjoint(1, &spaces).unwrap());
        assert!(AnySpace::are_disjoint(1, &spaces[1..]).unwrap());
        let lists = AnySpace::overlapping_pairs(1, &spaces, &spaces).unwrap();
        assert_eq!((lists.of(0), lists.of(2)), (&[0, 1][..], &[2][..]));
    }

    #[test]
    fn spaces_of_different_dimensions_make_no_list() {
        let plane = AnySpace::from(Rect::<2>::from_shape([2, 2]));
        let mixed = [interval(0, 5), plane];
        assert!(AnySpace::union_all(1, &mixed).is_err());
        assert!(AnySpace::are_disjoint(2, &mixed).is_err());
        assert!(AnySpace::overlapping_pairs(1, &mixed, &mixed).is_err());
        assert!(AnySpace::first_overlapping_pair(1, &mixed, &mixed, |_, _| true).is_err());
        assert!(AnySpace::union_all(5, &[]).is_err());
    }

    proptest! {
        #[test]
        fn the_first_pair_is_the_first_of_all_pairs(bounds in prop::collection::vec((0..30_i64, 0..6_i64), 0..9)) {
            let spaces: Vec<AnySpace> = bounds.iter().map(|&(lo, length)| interval(lo, lo + length)).collect();
            let all = AnySpace::overlapping_pairs(1, &spaces, &spaces).unwrap();
            let counts = |i: usize, j: usize| i < j;
            let mut pairs = all.iter().enumerate().flat_map(|(i, list)| list.iter().map(move |&j| (i, j as usize)));
            let first = AnySpace::first_overlapping_pair(1, &spaces, &spaces, counts).unwrap();
            prop_assert_eq!(first, pairs.find(|&(i, j)| counts(i, j)));
        }

        #[test]
        fn a_split_has_every_point_once_in_parts_of_about_one_size(n in 0..9_i64, m in 1..9_i64, parts in 0..12_usize) {
            let rect = AnyRect::from(Rect::<2>::from_shape([n, m]));
            let pieces = rect.split(parts);
            let spaces: Vec<AnySpace> = pieces.iter().map(|&piece| piece.into()).collect();
            prop_assert_eq!(AnySpace::union_all(2, &spaces).unwrap(), AnySpace::from(rect));
            prop_assert!(AnySpace::are_disjoint(2, &spaces).unwrap());
            let wanted = (parts.max(1) as u64).min(rect.volume().max(1));
            prop_assert_eq!(pieces.len() as u64, wanted);
        }

        #[test]
        fn ranks_and_points_are_inverse(n in 1..9_i64, m in 1..9_i64) {
            let rect = AnyRect::from(Rect::<2>::new([-3, 5], [n - 4, m + 4]));
            for (rank, point) in rect.points().enumerate() {
                prop_assert_eq!(rect.linear(point), rank as u64);
                prop_assert_eq!(rect.delinear(rank as u64), point);
            }
        }
    }
}
