//! Every partitioning operator agrees with its definition, point by point.

use crate::model;
use std::collections::BTreeMap;

use maniple_space::partition::{self, FieldRead, PartitionError, SliceField};
use maniple_space::{IndexSpace, Point, Rect};
use model::{Points, canonical, points_of, space, spaces, window};
use proptest::collection::vec;
use proptest::prelude::*;

/// The pieces have these points, and are in canonical form.
fn assert_pieces<const D: usize>(pieces: &[IndexSpace<D>], expected: &[Points<D>]) {
    assert_eq!(pieces.len(), expected.len(), "the number of pieces");
    for (piece, expected) in pieces.iter().zip(expected) {
        assert_eq!(piece.rects(), canonical(expected, 0));
    }
}

/// A field with a value at each point of a window, stored as a program would.
#[derive(Clone, Debug)]
struct Stored<T, const D: usize> {
    rect: Rect<D>,
    values: Vec<T>,
}

impl<T: Copy, const D: usize> Stored<T, D> {
    fn field(&self) -> SliceField<'_, T, D> {
        SliceField::new(self.rect, &self.values)
    }
}

/// A field over all points that `model::space` makes.
fn stored<T: Clone + std::fmt::Debug, const D: usize>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Stored<T, D>> {
    let rect = Rect::<D>::from_shape([window(D); D]);
    vec(value, rect.volume() as usize).prop_map(move |values| Stored { rect, values })
}

fn point<const D: usize>() -> impl Strategy<Value = Point<D>> {
    proptest::array::uniform::<_, D>(-1..window(D) + 1).prop_map(Point)
}

fn rect<const D: usize>() -> impl Strategy<Value = Rect<D>> {
    (point(), proptest::array::uniform::<_, D>(0i64..4))
        .prop_map(|(lo, extent)| Rect::new(lo, lo + Point(extent) - Point::splat(1)))
}

in_each_dimension! {
    fn equal_pieces_follow_each_other_and_differ_by_one_point<const D: usize>(
        parent in space::<D>(), pieces in 1usize..9,
    ) {
        let parts = partition::equal(&parent, pieces).unwrap();
        prop_assert_eq!(parts.len(), pieces);
        let in_order: Vec<Point<D>> = parts.iter().flat_map(|part| part.points()).collect();
        prop_assert_eq!(in_order, parent.points().collect::<Vec<_>>());
        let volumes = || parts.iter().map(IndexSpace::volume);
        prop_assert!(volumes().max().unwrap() - volumes().min().unwrap() <= 1);
        for part in &parts {
            prop_assert_eq!(part.rects(), canonical(&points_of(part), 0));
        }
    }

    fn weighted_pieces_follow_each_other_in_proportion<const D: usize>(
        parent in space::<D>(),
        weights in vec(prop_oneof![4 => 0u64..5, 1 => Just(u64::MAX)], 1..6),
    ) {
        let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
        let parts = partition::weighted(&parent, &weights);
        if total == 0 {
            let error = PartitionError::WeightsAllZero { pieces: weights.len() };
            prop_assert_eq!(parts, Err(error));
            return Ok(());
        }
        let parts = parts.unwrap();
        let in_order: Vec<Point<D>> = parts.iter().flat_map(|part| part.points()).collect();
        prop_assert_eq!(in_order, parent.points().collect::<Vec<_>>());
        for (part, &weight) in parts.iter().zip(&weights) {
            let share = parent.volume() as f64 * (weight as f64 / total as f64);
            prop_assert!((part.volume() as f64 - share).abs() <= 1.0 + 1e-9);
            prop_assert!(weight > 0 || part.is_empty());
        }
    }

    fn tiles_are_grown_blocks_of_the_bounds<const D: usize>(
        parent in space::<D>(),
        shape in proptest::array::uniform::<_, D>(1i64..5),
        halo in proptest::array::uniform::<_, D>(0i64..3),
    ) {
        let (colors, tiles) = partition::tiles(&parent, shape, halo).unwrap();
        if parent.is_empty() {
            prop_assert_eq!((colors, tiles), (Rect::from_shape([1; D]), vec![IndexSpace::empty()]));
            return Ok(());
        }
        let points = points_of(&parent);
        let expected: Vec<Points<D>> = colors.points().map(|color| {
            let lo = parent.bounds().lo + Point(std::array::from_fn(|d| color[d] * shape[d]));
            let tile = Rect::new(lo, lo + Point(shape) - Point::splat(1)).grow(Point(halo));
            points.iter().copied().filter(|&point| tile.contains(point)).collect()
        }).collect();
        assert_pieces(&tiles, &expected);
        let (same_colors, blocks) = partition::blocks(&parent, shape).unwrap();
        prop_assert_eq!(same_colors, colors);
        prop_assert!(partition::is_disjoint(&blocks) && partition::is_complete(&blocks, &parent));
    }

    fn what_is_around_a_piece_is_no_further_from_one_of_its_points_than_the_halo<const D: usize>(
        parent in space::<D>(),
        pieces in spaces::<D>(),
        halo in proptest::array::uniform::<_, D>(0i64..3),
    ) {
        let around = partition::around(&parent, &pieces, halo).unwrap();
        let near = |a: Point<D>, b: Point<D>| (0..D).all(|d| (a[d] - b[d]).abs() <= halo[d]);
        let expected: Vec<Points<D>> = pieces.iter().map(|piece| {
            points_of(&parent).into_iter().filter(|&point| piece.points().any(|other| near(point, other))).collect()
        }).collect();
        assert_pieces(&around, &expected);
    }

    fn a_restriction_moves_a_rectangle_by_a_matrix<const D: usize>(
        parent in space::<D>(),
        transform in proptest::array::uniform::<_, D>(proptest::array::uniform2(-2i64..3)),
        offset in point::<D>(), extent in rect::<D>(),
    ) {
        let colors = Rect::new([-1, 0], [1, 2]);
        let pieces = partition::restriction(&parent, transform, offset, extent, colors).unwrap();
        let points = points_of(&parent);
        let expected: Vec<Points<D>> = colors.points().map(|color| {
            let step = |d: usize| transform[d][0] * color[0] + transform[d][1] * color[1];
            let placed = extent.translate(offset + Point(std::array::from_fn(step)));
            points.iter().copied().filter(|&point| placed.contains(point)).collect()
        }).collect();
        assert_pieces(&pieces, &expected);
    }

    fn a_coloring_gives_each_color_its_rectangles<const D: usize>(
        list in vec((0usize..4, rect::<D>()), 0..8),
    ) {
        let parent = IndexSpace::from_rects(list.iter().map(|&(_, rect)| rect));
        let pieces = partition::by_coloring(&parent, 4, list.clone()).unwrap();
        let expected: Vec<Points<D>> = (0..4).map(|color| {
            list.iter().filter(|entry| entry.0 == color).flat_map(|entry| entry.1.points()).collect()
        }).collect();
        assert_pieces(&pieces, &expected);
    }

    fn by_field_puts_each_point_where_its_field_says<const D: usize>(
        parent in space::<D>(), colors in stored::<_, D>(-1i64..4),
    ) {
        let field = colors.field();
        let pieces = partition::by_field(&parent, 3usize, &field).unwrap();
        let expected: Vec<Points<D>> = (0..3).map(|color| {
            points_of(&parent).into_iter().filter(|&at| field.read(at) == color).collect()
        }).collect();
        assert_pieces(&pieces, &expected);
        let by_call = partition::by_field(&parent, 3usize, &|at: Point<D>| field.read(at)).unwrap();
        prop_assert_eq!(by_call, pieces);
    }

    fn by_field_numbers_colors_of_several_dimensions_row_major<const D: usize>(
        parent in space::<D>(), colors in stored::<_, D>(proptest::array::uniform2(0i64..4)),
    ) {
        let color_space = Rect::new([1, 0], [2, 2]);
        let field = |at: Point<D>| Point(colors.field().read(at));
        let pieces = partition::by_field(&parent, color_space, &field).unwrap();
        let expected: Vec<Points<D>> = color_space.points().map(|color| {
            points_of(&parent).into_iter().filter(|&at| field(at) == color).collect()
        }).collect();
        assert_pieces(&pieces, &expected);
    }

    fn an_image_has_the_points_that_are_pointed_to<const D: usize>(
        sources in spaces::<D>(), target in space::<2>(), pointers in stored::<_, D>(point::<2>()),
    ) {
        let field = pointers.field();
        let expected: Vec<Points<2>> = sources.iter().map(|source| {
            points_of(source).into_iter().map(|at| field.read(at)).filter(|&to| target.contains(to)).collect()
        }).collect();
        assert_pieces(&partition::image(&sources, &field, &target), &expected);
    }

    fn an_image_into_any_dimension_has_the_points_that_are_pointed_to<const D: usize>(
        sources in spaces::<1>(), target in space::<D>(), pointers in stored::<_, 1>(point::<D>()),
    ) {
        let field = pointers.field();
        let expected: Vec<Points<D>> = sources.iter().map(|source| {
            points_of(source).into_iter().map(|at| field.read(at)).filter(|&to| target.contains(to)).collect()
        }).collect();
        assert_pieces(&partition::image(&sources, &field, &target), &expected);
    }

    fn an_image_of_rectangles_has_all_their_points<const D: usize>(
        sources in spaces::<1>(), target in space::<D>(), ranges in stored::<_, 1>(rect::<D>()),
    ) {
        let field = ranges.field();
        let expected: Vec<Points<D>> = sources.iter().map(|source| {
            points_of(source).into_iter().flat_map(|at| field.read(at).points())
                .filter(|&to| target.contains(to)).collect()
        }).collect();
        assert_pieces(&partition::image_rects(&sources, &field, &target), &expected);
    }

    fn a_preimage_has_the_points_that_point_into_it<const D: usize>(
        targets in spaces::<D>(), source in space::<2>(), pointers in stored::<_, 2>(point::<D>()),
    ) {
        let field = pointers.field();
        let expected: Vec<Points<2>> = targets.iter().map(|target| {
            points_of(&source).into_iter().filter(|&at| target.contains(field.read(at))).collect()
        }).collect();
        assert_pieces(&partition::preimage(&targets, &field, &source), &expected);
    }

    fn a_preimage_in_a_vast_target_is_searched<const D: usize>(
        targets in spaces::<D>(), source in space::<1>(), pointers in stored::<_, 1>(point::<D>()),
    ) {
        let far = Point::splat(1 << 60);
        let mut targets = targets;
        targets.push(IndexSpace::from_points([far, Point::ZERO]));
        let field = |at: Point<1>| if at[0] == 0 { far } else { pointers.field().read(at) };
        let expected: Vec<Points<1>> = targets.iter().map(|target| {
            points_of(&source).into_iter().filter(|&at| target.contains(field(at))).collect()
        }).collect();
        assert_pieces(&partition::preimage(&targets, &field, &source), &expected);
    }

    fn a_preimage_of_rectangles_has_the_points_whose_rectangle_touches_it<const D: usize>(
        targets in spaces::<D>(), source in space::<1>(), ranges in stored::<_, 1>(rect::<D>()),
    ) {
        let field = ranges.field();
        let expected: Vec<Points<1>> = targets.iter().map(|target| {
            let touches = |at: &Point<1>| field.read(*at).points().any(|to| target.contains(to));
            points_of(&source).into_iter().filter(touches).collect()
        }).collect();
        assert_pieces(&partition::preimage_rects(&targets, &field, &source), &expected);
    }

    fn pairwise_operations_combine_pieces_of_the_same_color<const D: usize>(
        pairs in vec((space::<D>(), space::<D>()), 0..5), one in space::<D>(),
    ) {
        let (a, b): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let expected = |f: fn(&Points<D>, &Points<D>) -> Points<D>| -> Vec<Points<D>> {
            a.iter().zip(&b).map(|(a, b)| f(&points_of(a), &points_of(b))).collect()
        };
        assert_pieces(&partition::pairwise_union(&a, &b).unwrap(), &expected(|a, b| a | b));
        assert_pieces(&partition::pairwise_intersection(&a, &b).unwrap(), &expected(|a, b| a & b));
        assert_pieces(&partition::pairwise_difference(&a, &b).unwrap(), &expected(|a, b| a - b));
        let within: Vec<_> = a.iter().map(|a| &points_of(a) & &points_of(&one)).collect();
        assert_pieces(&partition::intersect_each(&a, &one), &within);
    }

    fn a_cross_product_has_every_intersection<const D: usize>(
        a in spaces::<D>(), b in spaces::<D>(),
    ) {
        let product: Vec<_> = partition::cross_product(&a, &b).collect();
        prop_assert_eq!(product.len(), a.len());
        for (row, a) in product.iter().zip(&a) {
            let expected: Vec<_> = b.iter().map(|b| &points_of(a) & &points_of(b)).collect();
            assert_pieces(row, &expected);
        }
    }

    fn disjointness_and_completeness_are_counted_points<const D: usize>(
        pieces in spaces::<D>(), parent in space::<D>(), cut in any::<bool>(),
    ) {
        // Random spaces are seldom disjoint: cut away what came before in half of the cases.
        let mut pieces = pieces;
        for i in 1..pieces.len() {
            if cut {
                pieces[i] = pieces[i].difference(&IndexSpace::union_all(&pieces[..i]));
            }
        }
        let mut uses = BTreeMap::new();
        for point in pieces.iter().flat_map(points_of) {
            *uses.entry(point).or_insert(0) += 1;
        }
        prop_assert_eq!(partition::is_disjoint(&pieces), uses.values().all(|&count| count == 1));
        let complete = |parent: &IndexSpace<D>| points_of(parent).iter().all(|at| uses.contains_key(at));
        prop_assert_eq!(partition::is_complete(&pieces, &parent), complete(&parent));
        let covered = parent.intersection(&IndexSpace::union_all(&pieces));
        prop_assert!(partition::is_complete(&pieces, &covered));
    }
}

proptest! {
    /// Dense, sparse, repeated and sorted pointers into small targets and vast ones take different ways to the same
    /// set.
    #[test]
    fn an_image_does_not_depend_on_how_pointers_are_spread(
        pointers in vec(prop_oneof![0i64..200, 0i64..1 << 40, Just(1 << 50)], 0..400),
        sort in any::<bool>(), is_vast in any::<bool>(),
    ) {
        let mut pointers: Vec<Point<1>> = pointers.into_iter().map(Point::from).collect();
        if sort {
            pointers.sort();
        }
        let rect = Rect::from_shape([pointers.len() as i64]);
        let (near, far): (Vec<_>, Vec<_>) = rect.points().partition(|at| pointers[at[0] as usize][0] < 200);
        let sources = [IndexSpace::from(rect), IndexSpace::from_points(near), IndexSpace::from_points(far)];
        let target = IndexSpace::from(if is_vast { Rect::new(i64::MIN, i64::MAX) } else { Rect::from(3..130) });
        let expected: Vec<Points<1>> = sources.iter()
            .map(|source| source.points().map(|at| pointers[at[0] as usize]).filter(|&to| target.contains(to)).collect())
            .collect();
        assert_pieces(&partition::image(&sources, &SliceField::new(rect, &pointers), &target), &expected);
    }
}

#[test]
fn pointers_into_a_space_of_more_than_2_to_the_64_points_are_kept() {
    let all = IndexSpace::from(Rect::<2>::new([i64::MIN; 2], [i64::MAX; 2]));
    let source = IndexSpace::from(Rect::from(0..4));
    let corners = |at: Point<1>| Point([[i64::MIN, i64::MAX][at[0] as usize % 2], at[0] / 2]);
    let expected = IndexSpace::from_points(source.points().map(corners));
    assert_eq!(partition::image(&[source], &corners, &all), [expected]);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let parent = IndexSpace::from(Rect::from_shape([4, 4]));
    assert_eq!(partition::equal(&parent, 0), Err(PartitionError::NoPieces));
    assert_eq!(partition::weighted(&parent, &[]), Err(PartitionError::NoPieces));
    assert_eq!(partition::blocks(&parent, [2, 0]), Err(PartitionError::BlockSize { dimension: 1, found: 0 }));
    assert_eq!(
        partition::tiles(&parent, [2, 2], [-1, 0]),
        Err(PartitionError::NegativeHalo { dimension: 0, found: -1 })
    );
    assert_eq!(partition::around(&parent, &[], [0, -2]), Err(PartitionError::NegativeHalo { dimension: 1, found: -2 }));
    assert_eq!(
        partition::pairwise_union(std::slice::from_ref(&parent), &[]),
        Err(PartitionError::LengthsDiffer { left: 1, right: 0 })
    );
    assert_eq!(
        partition::by_coloring(&parent, 2, [(2, Rect::EMPTY)]),
        Err(PartitionError::ColorOutOfRange { color: 2, colors: 2 })
    );
    let all = IndexSpace::from(Rect::<1>::new(i64::MIN, i64::MAX));
    assert!(matches!(partition::blocks(&all, [1]), Err(PartitionError::TooManyPieces { .. })));
}

#[test]
fn a_rectangle_outside_the_parent_is_named() {
    let parent = IndexSpace::from(Rect::from(0..10));
    let error = partition::by_coloring(&parent, 2, [(0, Rect::from(0..4)), (1, Rect::from(8..12))]);
    assert_eq!(
        error.unwrap_err().to_string(),
        "expected the points of color 1 to lie in the parent, found points of (8)..=(11) outside; \
         the parent's bounds are (0)..=(9)"
    );
}

#[test]
fn blocks_reach_both_ends_of_the_coordinates() {
    let all = IndexSpace::from(Rect::<1>::new(i64::MIN, i64::MAX));
    for size in [i64::MAX, i64::MAX / 2, 0x5555_5555_5555_5555] {
        let (_, blocks) = partition::tiles(&all, [size], [0]).unwrap();
        assert!(partition::is_disjoint(&blocks) && partition::is_complete(&blocks, &all));
    }
}

#[test]
fn a_space_of_2_to_the_64_points_or_more_is_not_cut_by_its_volume_but_by_sizes() {
    let endless = Rect::<2>::new([i64::MIN; 2], [i64::MAX; 2]);
    let halves = [Rect::new([0, i64::MIN], [0, i64::MAX]), Rect::new([2, i64::MIN], [2, i64::MAX])];
    for space in [endless.into(), halves[0].into(), IndexSpace::from_rects(halves)] {
        let too_many = PartitionError::TooManyPoints { bounds: Box::new(space.bounds().into()) };
        assert_eq!(partition::equal(&space, 3), Err(too_many.clone()));
        assert_eq!(partition::weighted(&space, &[1, 2]), Err(too_many));
        let (_, pieces) = partition::blocks(&space, [1 << 62, 1 << 62]).unwrap();
        assert!(partition::is_disjoint(&pieces) && partition::is_complete(&pieces, &space));
    }
    let line = Rect::<1>::new([i64::MIN], [i64::MAX]);
    assert_eq!(
        partition::equal(&line.into(), 1).unwrap_err().to_string(),
        "expected a space of fewer than 2^64 points, found more within (-9223372036854775808)..=(9223372036854775807); \
         cut it by sizes, such as into blocks"
    );
}

#[test]
fn the_largest_space_that_can_be_counted_is_cut_into_equal_pieces() {
    let all_but_one = Rect::<1>::new([i64::MIN + 1], [i64::MAX]);
    let pieces = partition::equal(&all_but_one.into(), 4).unwrap();
    let volumes: Vec<u64> = pieces.iter().map(IndexSpace::volume).collect();
    assert_eq!(volumes, [(1 << 62) - 1, 1 << 62, 1 << 62, 1 << 62]);
}

#[test]
fn pieces_that_share_one_end_point_are_not_disjoint() {
    let pieces = |ranges: [std::ops::Range<i64>; 3]| ranges.map(|range| IndexSpace::from(Rect::from(range)));
    assert!(partition::is_disjoint(&pieces([0..5, 5..9, 9..12])));
    assert!(!partition::is_disjoint(&pieces([0..5, 4..9, 9..12])));
}

#[test]
fn a_restriction_far_beyond_the_coordinates_is_empty() {
    let parent = IndexSpace::from(Rect::from(0..10));
    let colors = Rect::from(0..3);
    let pieces = partition::restriction(&parent, [[i64::MAX]], Point([0]), Rect::from(0..5), colors).unwrap();
    assert_eq!(pieces, [Rect::from(0..5), Rect::EMPTY, Rect::EMPTY].map(IndexSpace::from));
}

#[test]
fn a_stored_field_gives_rows_only_where_it_has_them() {
    let field = SliceField::new(Rect::new([0, 5], [1, 7]), &[1, 2, 3, 4, 5, 6]);
    assert_eq!(field.row(Point([1, 5]), 3), Some(&[4, 5, 6][..]));
    assert_eq!(field.row(Point([0, 6]), 2), Some(&[2, 3][..]));
    assert_eq!(field.row(Point([0, 6]), 3), None);
    assert_eq!(field.row(Point([2, 5]), 1), None);
}

/// Targets of few intervals, which are searched, and of many, for which there is a table; with pointers to the ends of
/// what there is.
#[test]
fn pointers_into_few_and_many_intervals_lead_to_the_same_pieces() {
    let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
    let pointers: Vec<Point<1>> =
        (0..20_000_i64).map(|at| at * 7919 % 6000 - 500).chain(ends).map(|at| Point([at])).collect();
    let rect = Rect::from(0..pointers.len() as i64);
    let source = IndexSpace::from(rect);
    let blocks = |first: i64, step: i64, length: i64, count: i64| {
        IndexSpace::from_rects((0..count).map(|block| {
            let low = first + block * step;
            Rect::from(low..low + length)
        }))
    };
    let everything = IndexSpace::from(Rect::new(Point([i64::MIN]), Point([i64::MAX])));
    for targets in [
        vec![blocks(0, 100, 30, 10), blocks(15, 100, 60, 10), IndexSpace::empty()],
        vec![blocks(-100, 3, 2, 1500), blocks(-99, 5, 3, 1000), blocks(0, 6000, 6000, 1)],
        vec![everything, blocks(-500, 1, 1, 1)],
        Vec::new(),
    ] {
        let found = partition::preimage(&targets, &SliceField::new(rect, &pointers), &source);
        let expected: Vec<Points<1>> = targets
            .iter()
            .map(|target| source.points().filter(|at| target.contains(pointers[at[0] as usize])).collect())
            .collect();
        assert_pieces(&found, &expected);
    }
}
