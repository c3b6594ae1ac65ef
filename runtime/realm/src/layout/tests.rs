use std::collections::BTreeMap;

use maniple_space::{AnyPoint, IndexSpace, Point, Rect};
use proptest::prelude::*;

use super::*;

fn fields() -> Vec<FieldSpec> {
    vec![FieldSpec::of::<u8>(FieldId(5)), FieldSpec::of::<f64>(FieldId(2)), FieldSpec::of::<u16>(FieldId(9))]
}

fn line(points: i64) -> AnySpace {
    Rect::from(0..points).into()
}

fn offsets(layout: &Layout, field: u32) -> Vec<usize> {
    let address = layout.field(FieldId(field)).unwrap();
    layout.points().points().map(|point| address.offset_any(point)).collect()
}

#[test]
fn a_struct_of_arrays_keeps_each_field_together() {
    let layout = LayoutSpec::new(line(3), fields()).build().unwrap();
    assert_eq!(offsets(&layout, 5), [0, 1, 2]);
    assert_eq!(offsets(&layout, 2), [8, 16, 24]);
    assert_eq!(offsets(&layout, 9), [32, 34, 36]);
    assert_eq!((layout.bytes(), layout.align()), (38, 8));
}

#[test]
fn an_array_of_structs_keeps_each_point_together() {
    let layout = LayoutSpec::new(line(3), fields()).arranged(Arrangement::ArrayOfStructs).build().unwrap();
    assert_eq!(offsets(&layout, 5), [0, 24, 48]);
    assert_eq!(offsets(&layout, 2), [8, 32, 56]);
    assert_eq!(offsets(&layout, 9), [16, 40, 64]);
    assert_eq!(layout.bytes(), 72);
}

#[test]
fn blocks_keep_so_many_values_of_a_field_together() {
    let layout = LayoutSpec::new(line(3), fields()).arranged(Arrangement::Blocked(2)).build().unwrap();
    assert_eq!(offsets(&layout, 5), [0, 1, 32]);
    assert_eq!(offsets(&layout, 2), [8, 16, 40]);
    assert_eq!(offsets(&layout, 9), [24, 26, 56]);
    assert_eq!(layout.bytes(), 64);
}

#[test]
fn the_order_decides_which_dimension_runs_fastest() {
    let bounds = AnySpace::from(Rect::<2>::new([10, 20], [11, 22]));
    let field = vec![FieldSpec::of::<u8>(FieldId(0))];
    let rows = LayoutSpec::new(bounds.clone(), field.clone()).build().unwrap();
    let columns = LayoutSpec::new(bounds, field).ordered(DimensionOrder::column_major(2)).build().unwrap();
    assert_eq!(offsets(&rows, 0), [0, 1, 2, 3, 4, 5]);
    assert_eq!(offsets(&columns, 0), [0, 2, 4, 1, 3, 5]);
    assert_eq!((rows.unit_stride_dimension(), columns.unit_stride_dimension()), (1, 0));
}

#[test]
fn one_field_alone_is_an_array_in_every_arrangement() {
    for arrangement in [Arrangement::StructOfArrays, Arrangement::ArrayOfStructs, Arrangement::Blocked(4)] {
        let field = vec![FieldSpec::of::<u32>(FieldId(0))];
        let layout = LayoutSpec::new(line(6), field).arranged(arrangement).build().unwrap();
        assert!(layout.field(FieldId(0)).unwrap().single().unwrap().contiguous_along(0), "{arrangement}");
        let wanted = LayoutConstraint { arrangement: Some(Arrangement::StructOfArrays), ..LayoutConstraint::default() };
        assert!(layout.satisfies(&wanted), "{arrangement}");
    }
}

#[test]
fn rows_are_slices_only_where_neighbours_touch() {
    let bounds = AnySpace::from(Rect::<2>::from_shape([4, 4]));
    let contiguous = |spec: LayoutSpec, dimension| {
        let layout = spec.build().unwrap();
        layout.field(FieldId(2)).unwrap().single().unwrap().contiguous_along(dimension)
    };
    let spec = LayoutSpec::new(bounds, fields());
    assert!(contiguous(spec.clone(), 1));
    assert!(!contiguous(spec.clone(), 0));
    assert!(contiguous(spec.clone().ordered(DimensionOrder::column_major(2)), 0));
    assert!(!contiguous(spec.clone().arranged(Arrangement::ArrayOfStructs), 1));
    assert!(!contiguous(spec.arranged(Arrangement::Blocked(2)), 1));
}

#[test]
fn no_points_take_no_bytes() {
    let layout = LayoutSpec::new(line(0), fields()).build().unwrap();
    assert_eq!(layout.bytes(), 0);
    assert!(layout.field(FieldId(9)).is_some());
}

#[test]
fn the_rectangles_of_a_space_lie_one_after_the_other_however_far_apart() {
    let points = IndexSpace::<1>::from_rects([Rect::from(0..2), Rect::from(1 << 39..(1 << 39) + 3)]);
    let layout = LayoutSpec::new(points.into(), fields()).build().unwrap();
    assert_eq!(offsets(&layout, 5), [0, 1, 2, 3, 4]);
    assert_eq!(offsets(&layout, 2), [8, 16, 24, 32, 40]);
    assert_eq!(layout.bytes(), 58);
    assert!(layout.field(FieldId(2)).unwrap().single().is_none());
}

#[test]
fn gaps_are_stored_while_they_are_no_larger_than_what_is_around_them() {
    let intervals = |intervals: &[(i64, i64)]| -> AnySpace {
        IndexSpace::<1>::from_rects(intervals.iter().map(|&(lo, end)| Rect::from(lo..end))).into()
    };
    let large = 4096;
    let scattered = intervals(&[(0, 10), (12, 15), (900, 901), (905, 906), (1000, 1001)]);
    let stored = with_gaps(&scattered, large);
    assert_eq!(stored, intervals(&[(0, 15), (900, 901), (905, 906), (1000, 1001)]));
    assert_eq!(with_gaps(&scattered, 1), intervals(&[(0, 1001)]));
    let most = intervals(&[(0, 600), (700, 1000)]);
    assert_eq!(with_gaps(&most, large), intervals(&[(0, 1000)]));
}

#[test]
fn bounds_at_the_ends_of_the_coordinates_are_fine() {
    for lo in [i64::MIN, i64::MAX - 2] {
        let bounds = Rect::<2>::new([lo, i64::MAX - 2], [lo + 2, i64::MAX]);
        let layout = LayoutSpec::new(bounds.into(), vec![FieldSpec::of::<u16>(FieldId(0))]).build().unwrap();
        assert_eq!(offsets(&layout, 0), (0..9).map(|rank| 2 * rank).collect::<Vec<_>>());
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let spec = LayoutSpec::new(line(4), fields());
    let all = AnyRect::from(Rect::<1>::new([i64::MIN], [i64::MAX]));
    let huge = LayoutSpec { points: all.into(), ..spec.clone() };
    assert_eq!(huge.build(), Err(LayoutError::TooLarge { bounds: all }));
    let large = LayoutSpec::new(line(i64::MAX / 4), vec![FieldSpec::of::<u64>(FieldId(0))]);
    assert!(matches!(large.build(), Err(LayoutError::TooLarge { .. })));
    let mut twice = spec.clone();
    twice.fields.push(FieldSpec::of::<u64>(FieldId(5)));
    assert_eq!(twice.build(), Err(LayoutError::RepeatedField { field: FieldId(5) }));
    let mut odd = spec.clone();
    odd.fields[0] = FieldSpec { id: FieldId(1), size: 6, align: 4 };
    assert_eq!(odd.build(), Err(LayoutError::MisalignedField { field: FieldId(1), size: 6, align: 4 }));
    for found in [0, 3] {
        let blocked = spec.clone().arranged(Arrangement::Blocked(found));
        assert_eq!(blocked.build(), Err(LayoutError::BlockNotPowerOfTwo { found }));
    }
    assert_eq!(DimensionOrder::new(&[0, 0]), Err(LayoutError::NotAnOrder { found: vec![0, 0] }));
    assert!(DimensionOrder::new(&[]).is_err());
    assert!(DimensionOrder::new(&[4, 3, 2, 1, 0]).is_err());
    let order = DimensionOrder::row_major(2);
    assert_eq!(spec.ordered(order).build(), Err(LayoutError::OrderOfOtherDimension { bounds: 1, order: 2 }));
}

#[test]
fn a_constraint_ignores_dimensions_that_the_instance_does_not_extend_in() {
    let column_major = LayoutConstraint { order: Some(DimensionOrder::column_major(3)), ..LayoutConstraint::default() };
    let satisfied = |shape: [i64; 3], order: &[usize]| {
        let bounds = Rect::<3>::from_shape(shape).into();
        let spec = LayoutSpec::new(bounds, fields()).ordered(DimensionOrder::new(order).unwrap());
        spec.build().unwrap().satisfies(&column_major)
    };
    assert!(satisfied([2, 2, 2], &[2, 1, 0]));
    assert!(!satisfied([2, 2, 2], &[0, 1, 2]));
    assert!(satisfied([1, 5, 1], &[0, 1, 2]));
    assert!(satisfied([2, 1, 2], &[2, 0, 1]));
}

#[test]
fn constraints_entail_what_they_contain_and_combine_unless_they_clash() {
    let none = LayoutConstraint::default();
    let arrays = LayoutConstraint { arrangement: Some(Arrangement::StructOfArrays), ..LayoutConstraint::default() };
    let structs = LayoutConstraint { arrangement: Some(Arrangement::ArrayOfStructs), ..LayoutConstraint::default() };
    let rows = LayoutConstraint { order: Some(DimensionOrder::row_major(2)), ..LayoutConstraint::default() };
    assert!(arrays.entails(&none) && !none.entails(&arrays) && !arrays.entails(&structs));
    let wide = LayoutConstraint { align: Some(64), ..none };
    let narrow = LayoutConstraint { align: Some(16), ..rows };
    assert!(
        wide.entails(&LayoutConstraint { align: Some(16), ..none }) && !narrow.entails(&wide) && wide.entails(&none)
    );
    assert_eq!(wide.and(&narrow), Some(LayoutConstraint { align: Some(64), ..rows }));
    let both = arrays.and(&rows).unwrap();
    assert!(both.entails(&arrays) && both.entails(&rows));
    assert_eq!(arrays.and(&structs), None);
}

/// A layout of random rectangles, order, fields and arrangement.
pub(crate) fn layouts(dim: usize) -> impl Strategy<Value = LayoutSpec> {
    let sides = prop::collection::vec((-5..5i64, 0..6i64, 0..3i64), dim);
    let rects = prop::collection::vec(sides, 1..4);
    let order = Just((0..dim).collect::<Vec<_>>()).prop_shuffle();
    let sizes = prop::collection::vec((0..5u32, 1..4usize), 1..4);
    let arrangement = prop_oneof![
        Just(Arrangement::StructOfArrays),
        Just(Arrangement::ArrayOfStructs),
        (0..5u32).prop_map(|log| Arrangement::Blocked(1 << log)),
    ];
    (rects, any::<bool>(), order, sizes, arrangement).prop_map(|(rects, is_far, order, sizes, arrangement)| {
        let far = if is_far { 1i64 << 39 } else { 0 };
        let lo = |side: &(i64, i64, i64)| side.0 + side.2 * far;
        let corner = |sides: &[_], pick: &dyn Fn(&(i64, i64, i64)) -> i64| {
            AnyPoint::new(&sides.iter().map(pick).collect::<Vec<_>>()).unwrap()
        };
        let rect =
            |sides: Vec<_>| AnyRect::new(corner(&sides, &lo), corner(&sides, &|side| lo(side) + side.1 - 1)).unwrap();
        let empty = AnySpace::empty(rects[0].len()).unwrap();
        let points = rects.into_iter().fold(empty, |all, sides| all.union(&rect(sides).into()).unwrap());
        let fields = sizes.iter().zip(0..).map(|(&(log, count), id)| FieldSpec {
            id: FieldId(id),
            size: count << log,
            align: 1 << log,
        });
        LayoutSpec::new(points, fields.collect()).ordered(DimensionOrder::new(&order).unwrap()).arranged(arrangement)
    })
}

proptest! {
    #[test]
    fn values_are_aligned_inside_and_apart(spec in (1..=4usize).prop_flat_map(layouts)) {
        let layout = spec.build().unwrap();
        let mut taken = BTreeMap::new();
        for field in &layout.spec().fields {
            let address = layout.field(field.id).unwrap();
            prop_assert_eq!(address.size(), field.size);
            for point in layout.points().points() {
                let offset = address.offset_any(point);
                prop_assert_eq!(offset % field.align, 0);
                prop_assert!(offset + field.size <= layout.bytes());
                prop_assert_eq!(taken.insert(offset, field.size), None);
            }
        }
        let ends = taken.iter().map(|(offset, size)| offset + size);
        for (end, next) in ends.zip(taken.keys().skip(1)) {
            prop_assert!(end <= *next);
        }
    }

    #[test]
    fn what_is_aligned_begins_so_and_is_else_as_before(spec in (1..=3usize).prop_flat_map(layouts), log in 0..9u32) {
        let (align, layout) = (1usize << log, spec.clone().build().unwrap());
        let aligned = spec.clone().aligned(align).build().unwrap();
        let wanted = LayoutConstraint { align: Some(1 << log), ..LayoutConstraint::default() };
        prop_assert!(aligned.align() >= align && aligned.satisfies(&wanted));
        let starts = aligned.fields().map(|(_, field)| field.ranked().offset_of_linear(0));
        if spec.arrangement == Arrangement::StructOfArrays {
            prop_assert!(starts.into_iter().all(|start| start % align == 0));
        } else {
            // Structs and blocks lie as near to each other as without.
            prop_assert_eq!(aligned.bytes(), layout.bytes());
            prop_assert!(starts.min().is_none_or(|start| start == 0));
        }
    }

    #[test]
    fn typed_affine_and_erased_addresses_agree(spec in layouts(3)) {
        let layout = spec.build().unwrap();
        for (_, field) in layout.fields() {
            for point in layout.points().points() {
                let typed = point.typed::<3>().unwrap();
                prop_assert_eq!(field.offset(typed), field.offset_any(point));
                if let Some(affine) = field.single().and_then(FieldAddress::affine) {
                    prop_assert_eq!(affine.offset(typed) as usize, field.offset(typed));
                }
            }
        }
    }

    #[test]
    fn the_parts_of_a_rectangle_have_the_offsets_of_its_points(
        spec in layouts(2), lo in prop::array::uniform2(-7..7i64), extent in prop::array::uniform2(0..9i64)
    ) {
        let layout = spec.build().unwrap();
        let stored: &IndexSpace<2> = layout.points().typed().unwrap();
        let rect = Rect::new(lo, [lo[0] + extent[0] - 1, lo[1] + extent[1] - 1]);
        for (_, field) in layout.fields().filter(|(_, field)| field.single().is_none()) {
            let mut found = Vec::new();
            field.for_each_part(rect, |part, address| {
                found.extend(part.points().map(|point| (point, address.offset(point))));
            });
            let all = rect.points().filter(|&point| stored.contains(point));
            found.sort_unstable();
            prop_assert_eq!(found, all.map(|point| (point, field.offset(point))).collect::<Vec<_>>());
        }
    }

    #[test]
    fn few_points_are_stored_besides_those_wanted(spec in (1..=3usize).prop_flat_map(layouts), size in 1..5000usize) {
        let wanted = spec.points;
        let stored = with_gaps(&wanted, size);
        prop_assert!(wanted.is_subset_of(&stored).unwrap());
        prop_assert!(stored.rect_count() <= wanted.rect_count().max(1));
        let most = (2 * wanted.volume() * size as u64 + 64 * wanted.rect_count() as u64).max(4096);
        prop_assert!(stored.volume() * size as u64 <= most, "{stored} for {wanted}");
    }

    #[test]
    fn room_around_a_rectangle_is_all_that_is_near_enough(
        lo in prop::array::uniform2(-7..7i64), extent in prop::array::uniform2(0..6i64), pad in 0..5u32, other in 0..5u32
    ) {
        let rect = Rect::new(lo, [lo[0] + extent[0] - 1, lo[1] + extent[1] - 1]);
        let points = AnySpace::from(rect);
        let wide = padded(&points, pad).unwrap();
        let away = |point: Point<2>| (0..2).map(|d| (rect.lo[d] - point[d]).max(point[d] - rect.hi[d])).max().unwrap();
        for point in Rect::new([-20, -20], [20, 20]).points() {
            let is_near = !rect.is_empty() && away(point) <= i64::from(pad);
            prop_assert_eq!(wide.contains(point.into()), is_near);
        }
        prop_assert_eq!(has_room(&wide, &points, other), rect.is_empty() || other <= pad);
        prop_assert!(padded(&Rect::new([0, i64::MAX - 1], [3, i64::MAX]).into(), pad).is_some() == (pad == 0));
    }

    #[test]
    fn a_rectangle_lies_in_one_of_those_stored_or_in_several_parts(
        spec in layouts(2), size in 1..5000usize, lo in prop::array::uniform2(-5..5i64), extent in prop::array::uniform2(0..9i64)
    ) {
        let rect = AnySpace::from(Rect::new(lo, [lo[0] + extent[0] - 1, lo[1] + extent[1] - 1]));
        let wanted = spec.points.clone();
        // Each stored rectangle, a part of one, and a rectangle that may be in several.
        let among: Vec<AnySpace> = wanted.rects().map(AnySpace::from).collect();
        let parts = among.iter().map(|one| one.intersection(&rect).unwrap()).chain(among.iter().cloned());
        for part in parts.chain([rect.clone()]).filter(|part| part.is_subset_of(&wanted).unwrap()) {
            let keeps = |points: AnySpace| {
                let layout = LayoutSpec { points, ..spec.clone() }.build().unwrap();
                let (mut pieces, (_, field)) = (0, layout.fields().next().unwrap());
                field.for_each_part(part.bounds().typed::<2>().unwrap(), |_, _| pieces += 1);
                assert_eq!(layout.keeps_in_one(&part), pieces == 1 || part.is_empty(), "{part} in {}", layout.points());
                layout.keeps_in_one(&part)
            };
            prop_assert!(keeps(with_gaps(&wanted, size)) || !keeps_in_one(&wanted, size, &part), "{part} in {wanted}");
            prop_assert!(keeps_in_one(&wanted, size, &part) || !keeps(wanted.clone()), "{part} in {wanted}");
        }
    }

    #[test]
    fn straight_runs_are_straight_and_end_where_they_must(spec in layouts(1), step in 1..4i64) {
        let layout = spec.build().unwrap();
        let volume = layout.volume();
        for (_, field) in layout.fields() {
            let address = field.ranked();
            for linear in 0..volume {
                let run = address.straight_run(linear, step).min((volume - linear).div_ceil(step as usize));
                let pitch = step as usize * address.pitch();
                for index in 0..run {
                    let at = linear + index * step as usize;
                    prop_assert_eq!(address.offset_of_linear(at), address.offset_of_linear(linear) + index * pitch);
                }
                prop_assert!(run > 0);
            }
        }
    }
}
