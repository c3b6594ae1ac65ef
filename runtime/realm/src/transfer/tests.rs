use std::collections::BTreeMap;

use maniple_space::{AnyPoint, IndexSpace, Point, Rect};
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::instance::InstanceKind;
use crate::layout::{Arrangement, DimensionOrder, FieldSpec, LayoutSpec};
use crate::machine::MemoryId;
use crate::memory::MemoryPool;
use crate::reduction::Reduction;

/// The field under test lies between two others, whose values must survive.
const FIELD: FieldId = FieldId(1);
const BYSTANDERS: [FieldId; 2] = [FieldId(0), FieldId(2)];
const UNTOUCHED: u8 = 0xA5;

struct Sum;

impl Reduction for Sum {
    type Lhs = i64;
    type Rhs = i32;

    fn identity() -> i32 {
        0
    }

    fn apply(value: &mut i64, contribution: i32) {
        *value += i64::from(contribution);
    }

    fn fold(into: &mut i32, contribution: i32) {
        *into += contribution;
    }
}

/// Arrangement and order of an instance, and which points it stores besides those that it must: as many around them as
/// the margin says, and if it is one rectangle, all between them.
#[derive(Clone, Debug)]
struct Shape {
    arrangement: Arrangement,
    order: Vec<usize>,
    margin: i64,
    is_one_rectangle: bool,
}

fn shapes(dim: usize) -> impl Strategy<Value = Shape> {
    let arrangement = prop_oneof![
        Just(Arrangement::StructOfArrays),
        Just(Arrangement::ArrayOfStructs),
        (1..5u32).prop_map(|log| Arrangement::Blocked(1 << log)),
    ];
    let order = Just((0..dim).collect::<Vec<_>>()).prop_shuffle();
    (arrangement, order, 0..3i64, any::<bool>()).prop_map(|(arrangement, order, margin, is_one_rectangle)| Shape {
        arrangement,
        order,
        margin,
        is_one_rectangle,
    })
}

/// An instance that stores the space, with bystanders of one byte each, all bytes set to the mark.
fn instance<const D: usize>(space: &IndexSpace<D>, shape: &Shape, size: usize, align: usize) -> Arc<Instance> {
    let fields = vec![
        FieldSpec::of::<u8>(BYSTANDERS[0]),
        FieldSpec { id: FIELD, size, align },
        FieldSpec::of::<u8>(BYSTANDERS[1]),
    ];
    let grown = |rect: &Rect<D>| rect.grow(Point([shape.margin; D]));
    let points = match shape.is_one_rectangle && space.bounds().volume() < 1 << 16 {
        true => grown(&space.bounds()).into(),
        false => IndexSpace::from_rects(space.rects().iter().map(grown)),
    };
    let spec = LayoutSpec::new(points.into(), fields).arranged(shape.arrangement);
    let layout = spec.ordered(DimensionOrder::new(&shape.order).unwrap()).build().unwrap();
    let pool = MemoryPool::new(MemoryId(0), 1 << 30);
    let bytes = layout.bytes();
    let (instance, _) = Instance::create(&pool, layout, InstanceKind::Normal, |_, _| ()).unwrap();
    // SAFETY: ours alone.
    unsafe { instance.base().unwrap().as_ptr().write_bytes(UNTOUCHED, bytes) };
    instance
}

/// The value of a point in bytes: different for different points and salts.
fn value_of(point: AnyPoint, salt: i64, size: usize) -> Vec<u8> {
    let seed = point.coords().iter().fold(salt, |seed, &at| seed.wrapping_mul(31).wrapping_add(at));
    (0..size as i64).map(|index| (seed.wrapping_mul(167).wrapping_add(index * 59) >> 1) as u8).collect()
}

fn set(instance: &Instance, point: AnyPoint, value: &[u8]) {
    let offset = instance.layout().field(FIELD).unwrap().offset_any(point);
    // SAFETY: ours alone; the point is stored.
    unsafe { instance.base().unwrap().as_ptr().add(offset).copy_from(value.as_ptr(), value.len()) };
}

fn values(instance: &Instance, field: FieldId) -> BTreeMap<AnyPoint, Vec<u8>> {
    let address = instance.layout().field(field).unwrap();
    let value = |point| {
        // SAFETY: ours alone; the point is stored.
        unsafe {
            let first = instance.base().unwrap().as_ptr().add(address.offset_any(point));
            std::slice::from_raw_parts(first, address.size()).to_vec()
        }
    };
    instance.layout().points().points().map(|point| (point, value(point))).collect()
}

fn set_all(instance: &Instance, salt: i64) {
    let size = instance.layout().field(FIELD).unwrap().size();
    instance.layout().points().points().for_each(|point| set(instance, point, &value_of(point, salt, size)));
}

fn execute(transfer: &Transfer) -> Result<(), TransferError> {
    // SAFETY: the instances of a test are its own, and hold numbers.
    unsafe { transfer.execute() }
}

/// Checks that the instance holds exactly what the model says, and that its other fields were left alone.
fn check(instance: &Instance, model: &BTreeMap<AnyPoint, Vec<u8>>) -> Result<(), TestCaseError> {
    prop_assert_eq!(&values(instance, FIELD), model);
    for bystander in BYSTANDERS {
        prop_assert!(values(instance, bystander).values().all(|value| value == &[UNTOUCHED]));
    }
    Ok(())
}

/// How far apart rectangles may be.
const FAR: i64 = 1 << 39;

/// Sparse spaces, some with all rectangles near the origin, some with rectangles far from each other.
fn spaces<const D: usize>() -> impl Strategy<Value = IndexSpace<D>> {
    let side: i64 = if D == 1 { 60 } else { 9 };
    let corner = prop::array::uniform::<_, D>(-side..side);
    let rect = (corner, prop::array::uniform::<_, D>(0..side / 2 + 2), 0..3i64, 0..D);
    (prop::collection::vec(rect, 0..6), any::<bool>()).prop_map(|(rects, is_far)| {
        IndexSpace::from_rects(rects.into_iter().map(|(mut lo, extent, distance, along)| {
            lo[along] += if is_far { distance * FAR } else { 0 };
            Rect::new(lo, std::array::from_fn(|d| lo[d] + extent[d] - 1))
        }))
    })
}

/// Usual and unusual sizes, with an alignment of each.
fn sizes() -> impl Strategy<Value = (usize, usize)> {
    prop::sample::select(vec![(1, 1), (2, 2), (4, 4), (8, 8), (16, 8), (3, 1), (12, 4), (24, 8), (40, 8), (32, 32)])
}

fn copies_like_a_map<const D: usize>(
    space: &IndexSpace<D>,
    shapes: [&Shape; 2],
    (size, align): (usize, usize),
) -> Result<(), TestCaseError> {
    let [from, to] = shapes.map(|shape| instance(space, shape, size, align));
    set_all(&from, 1);
    set_all(&to, 2);
    let mut model = values(&to, FIELD);
    for point in space.points().map(AnyPoint::from) {
        model.insert(point, value_of(point, 1, size));
    }
    execute(&Transfer::copy(space.clone().into(), (&from, FIELD), (&to, FIELD)).unwrap()).unwrap();
    check(&to, &model)?;
    set_all(&to, 2);
    let mut packed = vec![1, 2, 3];
    // SAFETY: the instances are ours alone, and hold bytes.
    let rest = unsafe {
        pack(&space.clone().into(), (&from, FIELD), &mut packed).unwrap();
        let mut rest = &packed[3..];
        unpack(&space.clone().into(), &mut rest, (&to, FIELD)).unwrap();
        rest
    };
    prop_assert!(rest.is_empty() && packed[..3] == [1, 2, 3]);
    check(&to, &model)?;
    set_all(&to, 2);
    let bytes = packed.len() - 3;
    let few = |instance| FewValues::at(&space.clone().into(), (instance, FIELD), bytes).unwrap().unwrap();
    let mut by_few = vec![9; bytes];
    // SAFETY: as above.
    unsafe {
        few(&from).pack(&mut by_few).unwrap();
        few(&to).unpack(&by_few).unwrap();
    }
    prop_assert_eq!(&by_few, &packed[3..]);
    let mut place = vec![9; bytes + 1];
    // SAFETY: as above.
    unsafe {
        let mut rest = &mut place[..];
        pack_into(&space.clone().into(), (&from, FIELD), &mut rest).unwrap();
        prop_assert_eq!(rest, [9]);
        let mut too_short = &mut by_few[..bytes.saturating_sub(1)];
        prop_assert_eq!(pack_into(&space.clone().into(), (&from, FIELD), &mut too_short).is_err(), bytes > 0);
    }
    prop_assert_eq!(&place[..bytes], &packed[3..]);
    check(&to, &model)
}

fn fills_like_a_map<const D: usize>(
    space: &IndexSpace<D>,
    shape: &Shape,
    (size, align): (usize, usize),
) -> Result<(), TestCaseError> {
    let to = instance(space, shape, size, align);
    set_all(&to, 2);
    let value = value_of(AnyPoint::from(77), 5, size);
    let mut model = values(&to, FIELD);
    model.extend(space.points().map(|point| (point.into(), value.clone())));
    execute(&Transfer::fill(space.clone().into(), (&to, FIELD), FillValue::from_bytes(&value)).unwrap()).unwrap();
    check(&to, &model)
}

fn reduces_like_a_map<const D: usize>(space: &IndexSpace<D>, shapes: [&Shape; 3]) -> Result<(), TestCaseError> {
    let number = |point: &AnyPoint| point.coords().iter().fold(7, |sum, &at| (sum * 10 + at) % 100_003) as i32;
    let buffers = [0, 1].map(|index| instance(space, shapes[index], 4, 4));
    let values_at = instance(space, shapes[2], 8, 8);
    for buffer in &buffers {
        buffer.layout().points().points().for_each(|point| set(buffer, point, &number(&point).to_ne_bytes()));
    }
    values_at.layout().points().points().for_each(|point| set(&values_at, point, &1000i64.to_ne_bytes()));
    let (mut folded, mut applied) = (values(&buffers[1], FIELD), values(&values_at, FIELD));
    for point in space.points().map(AnyPoint::from) {
        folded.insert(point, (2 * number(&point)).to_ne_bytes().to_vec());
        applied.insert(point, (1000 + 2 * i64::from(number(&point))).to_ne_bytes().to_vec());
    }
    let reduce = |from: &Arc<Instance>, to: &Arc<Instance>, mode| {
        let operator = RawReduction::of::<Sum>();
        Transfer::reduce(space.clone().into(), (from, FIELD), (to, FIELD), operator, mode).unwrap()
    };
    let transfers =
        [reduce(&buffers[0], &buffers[1], ReductionMode::Fold), reduce(&buffers[1], &values_at, ReductionMode::Apply)];
    // SAFETY: the instances are ours alone, and hold numbers.
    unsafe { execute_all(&transfers) }.unwrap();
    check(&buffers[1], &folded)?;
    check(&values_at, &applied)?;
    let mut packed = vec![0; 1];
    // SAFETY: as above; what was packed are contributions of the operator.
    unsafe {
        pack(&space.clone().into(), (&buffers[0], FIELD), &mut packed).unwrap();
        let operator = RawReduction::of::<Sum>();
        unpack_and_apply(&space.clone().into(), &mut &packed[1..], (&values_at, FIELD), &operator).unwrap();
        unpack_and_fold(&space.clone().into(), &mut &packed[1..], (&buffers[1], FIELD), &operator).unwrap();
    }
    for point in space.points().map(AnyPoint::from) {
        applied.insert(point, (1000 + 3 * i64::from(number(&point))).to_ne_bytes().to_vec());
        folded.insert(point, (3 * number(&point)).to_ne_bytes().to_vec());
    }
    check(&buffers[1], &folded)?;
    check(&values_at, &applied)
}

/// Pointers from the points of one space to points near another, some of which dangle.
struct Pointers {
    instance: Arc<Instance>,
    followed: Vec<(AnyPoint, AnyPoint)>,
}

impl Pointers {
    fn new<const D: usize, const E: usize>(
        space: &IndexSpace<D>,
        shape: &Shape,
        targets: &IndexSpace<E>,
        choices: &[Index],
    ) -> Self {
        let instance = instance(space, shape, 8 * E, 8);
        let around = |rect: &Rect<E>| rect.grow(Point([1; E]));
        let near = IndexSpace::from_rects(targets.rects().iter().map(around).chain([Rect::from_point(Point::ZERO)]));
        let near: Vec<_> = near.points().collect();
        let followed = space.points().zip(choices.iter().cycle()).map(|(point, choice)| {
            let pointer = near[choice.index(near.len())];
            set(&instance, point.into(), bytemuck::cast_slice(&pointer.0));
            (point.into(), pointer.into())
        });
        let followed = followed.collect();
        Self { instance, followed }
    }
}

fn gathers_and_scatters_like_a_map<const D: usize, const E: usize>(
    space: &IndexSpace<D>,
    targets: &IndexSpace<E>,
    near_shapes: [&Shape; 2],
    far_shape: &Shape,
    (size, align): (usize, usize),
    choices: &[Index],
) -> Result<(), TestCaseError> {
    let pointers = Pointers::new(space, near_shapes[0], targets, choices);
    let (near, far) = (instance(space, near_shapes[1], size, align), instance(targets, far_shape, size, align));
    let any = AnySpace::from(targets.clone());
    for gathers in [true, false] {
        set_all(&near, 1);
        set_all(&far, 2);
        let (from, to) = if gathers { (&far, &near) } else { (&near, &far) };
        let (before, mut model) = (values(from, FIELD), values(to, FIELD));
        for &(point, pointer) in pointers.followed.iter().filter(|(_, pointer)| any.contains(*pointer)) {
            let (from, to) = if gathers { (pointer, point) } else { (point, pointer) };
            model.insert(to, before[&from].clone());
        }
        let transfer = |dangling| {
            let make = if gathers { Transfer::gather } else { Transfer::scatter };
            let sides = [&pointers.instance, from, to].map(|instance| InstanceField::from((instance, FIELD)));
            let [pointers, from, to] = sides;
            make(space.clone().into(), pointers, from, to, any.clone(), dangling).unwrap()
        };
        execute(&transfer(Dangling::Skip)).unwrap();
        check(to, &model)?;
        let first = pointers.followed.iter().find(|(_, pointer)| !any.contains(*pointer));
        let expected = first.map_or(Ok(()), |&(point, pointer)| {
            let (instance, targets) = (pointers.instance.id(), Box::new(any.bounds()));
            Err(TransferError::DanglingPointer { instance, field: FIELD, point, pointer, targets })
        });
        prop_assert_eq!(execute(&transfer(Dangling::Fail)), expected);
        check(&pointers.instance, &pointers.followed_or_untouched())?;
    }
    Ok(())
}

impl Pointers {
    fn followed_or_untouched(&self) -> BTreeMap<AnyPoint, Vec<u8>> {
        let mut model = values(&self.instance, FIELD);
        for (point, pointer) in &self.followed {
            model.insert(*point, bytemuck::cast_slice(pointer.coords()).to_vec());
        }
        model
    }
}

/// A field without bytes may be laid out over more points than a program could visit.
#[test]
fn fields_without_bytes_are_transferred_at_once() {
    struct Nothing;

    impl Reduction for Nothing {
        type Lhs = ();
        type Rhs = ();

        fn identity() {}

        fn apply((): &mut (), (): ()) {}

        fn fold((): &mut (), (): ()) {}
    }

    let pool = MemoryPool::new(MemoryId(0), 0);
    let whole = Rect::new([0, 0], [(1 << 60) - 1, 1]);
    let operator = RawReduction::of::<Nothing>();
    let kinds = [InstanceKind::Normal, InstanceKind::Normal, InstanceKind::Reduction(operator)];
    let [a, b, buffer] = kinds.map(|kind| {
        let spec = LayoutSpec::new(whole.into(), vec![FieldSpec::of::<()>(FIELD)]);
        Instance::create(&pool, spec.build().unwrap(), kind, |_, _| ()).unwrap().0
    });
    let sparse = IndexSpace::from(whole).difference(&Rect::from_point(Point([3, 1])).into());
    let space = || AnySpace::from(sparse.clone());
    execute(&Transfer::fill(space(), (&a, FIELD), FillValue::of(())).unwrap()).unwrap();
    execute(&Transfer::copy(space(), (&a, FIELD), (&b, FIELD)).unwrap()).unwrap();
    for mode in [ReductionMode::Apply, ReductionMode::Fold] {
        execute(&Transfer::reduce(space(), (&buffer, FIELD), (&b, FIELD), operator, mode).unwrap()).unwrap();
    }
}

macro_rules! in_each_dimension {
    ($($name:ident: $dim:literal;)*) => { $(mod $name {
        use super::*;

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(200))]

            #[test]
            fn copies_are_right_for_all_layouts_and_spaces(
                space in spaces::<$dim>(), from in shapes($dim), to in shapes($dim), size in sizes()
            ) {
                copies_like_a_map(&space, [&from, &to], size)?;
            }

            #[test]
            fn fills_are_right_for_all_layouts_and_spaces(
                space in spaces::<$dim>(), to in shapes($dim), size in sizes()
            ) {
                fills_like_a_map(&space, &to, size)?;
            }

            #[test]
            fn reductions_are_right_for_all_layouts_and_spaces(
                space in spaces::<$dim>(), a in shapes($dim), b in shapes($dim), c in shapes($dim)
            ) {
                reduces_like_a_map(&space, [&a, &b, &c])?;
            }

            #[test]
            fn gathers_and_scatters_are_right_through_pointers_of_one_dimension(
                space in spaces::<$dim>(), targets in spaces::<1>(), pointers in shapes($dim), near in shapes($dim),
                far in shapes(1), size in sizes(), choices in prop::collection::vec(any::<Index>(), 1..60)
            ) {
                gathers_and_scatters_like_a_map(&space, &targets, [&pointers, &near], &far, size, &choices)?;
            }

            #[test]
            fn gathers_and_scatters_are_right_through_pointers_of_two_dimensions(
                space in spaces::<$dim>(), targets in spaces::<2>(), pointers in shapes($dim), near in shapes($dim),
                far in shapes(2), size in sizes(), choices in prop::collection::vec(any::<Index>(), 1..60)
            ) {
                gathers_and_scatters_like_a_map(&space, &targets, [&pointers, &near], &far, size, &choices)?;
            }
        }
    })* };
}

in_each_dimension! {
    one_dimension: 1;
    two_dimensions: 2;
    three_dimensions: 3;
}

const PLAIN: Shape =
    Shape { arrangement: Arrangement::StructOfArrays, order: Vec::new(), margin: 0, is_one_rectangle: true };

fn plain(dim: usize) -> Shape {
    Shape { order: (0..dim).collect(), ..PLAIN }
}

fn line(points: i64) -> IndexSpace<1> {
    Rect::from(0..points).into()
}

#[test]
fn four_dimensions_work_too() {
    let space =
        IndexSpace::<4>::from_rects([Rect::new([0, 0, 0, 0], [2, 3, 4, 1]), Rect::new([1, 1, 1, 1], [4, 2, 2, 6])]);
    let reversed = Shape { order: vec![3, 1, 2, 0], margin: 1, ..PLAIN };
    copies_like_a_map(&space, [&plain(4), &reversed], (8, 8)).unwrap();
    reduces_like_a_map(&space, [&plain(4), &reversed, &plain(4)]).unwrap();
}

#[test]
fn transposing_more_than_one_chunk_of_rows_misses_none() {
    let space = IndexSpace::<2>::from(Rect::from_shape([70, 45]));
    let columns = Shape { order: vec![1, 0], ..PLAIN };
    copies_like_a_map(&space, [&plain(2), &columns], (8, 8)).unwrap();
    copies_like_a_map(&space, [&columns, &plain(2)], (4, 4)).unwrap();
}

#[test]
fn of_several_points_that_scatter_to_one_the_last_in_row_major_order_wins() {
    // Two rectangles side by side: the rows of the first are not all before those of the second.
    let space = IndexSpace::<2>::from_rects([Rect::new([0, 0], [2, 1]), Rect::new([0, 5], [2, 6])]);
    let (pointers, from) = (instance(&space, &plain(2), 8, 8), instance(&space, &plain(2), 8, 8));
    let to = instance(&line(1), &plain(1), 8, 8);
    for point in space.points().map(AnyPoint::from) {
        set(&pointers, point, &0i64.to_ne_bytes());
        set(&from, point, bytemuck::cast_slice(&[10 * point.coords()[0] + point.coords()[1]]));
    }
    let sides = ((&pointers, FIELD), (&from, FIELD), (&to, FIELD));
    let targets = line(1).into();
    let transfer = Transfer::scatter(space.into(), sides.0, sides.1, sides.2, targets, Dangling::Fail).unwrap();
    execute(&transfer).unwrap();
    assert_eq!(values(&to, FIELD)[&AnyPoint::from(0)], 26i64.to_ne_bytes());
}

#[test]
fn a_field_copied_onto_itself_stays() {
    let only = instance(&line(9), &plain(1), 8, 8);
    set_all(&only, 3);
    let before = values(&only, FIELD);
    execute(&Transfer::copy(line(9).into(), (&only, FIELD), (&only, FIELD)).unwrap()).unwrap();
    assert_eq!(values(&only, FIELD), before);
}

#[test]
fn fill_values_of_types_with_padding_are_fine() {
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Padded(u8, u32);
    let to = instance(&line(4), &plain(1), 8, 4);
    let transfer = Transfer::fill(line(4).into(), (&to, FIELD), FillValue::of(Padded(7, 9))).unwrap();
    execute(&transfer).unwrap();
    // SAFETY: every point was filled with such a value.
    let values = (0..4).map(|point| unsafe { to.read::<Padded>(FIELD, point) });
    assert!(values.into_iter().all(|Padded(first, second)| (first, second) == (7, 9)));
}

#[test]
fn a_transfer_counts_the_bytes_that_it_writes() {
    let to = instance(&line(100), &plain(1), 8, 8);
    let space = IndexSpace::<1>::from_rects([Rect::from(0..10), Rect::from(50..55)]);
    let transfer = Transfer::fill(space.into(), (&to, FIELD), FillValue::of(1u64)).unwrap();
    assert_eq!(transfer.bytes(), 120);
}

#[test]
fn a_transfer_between_what_does_not_fit_is_refused_when_made() {
    let (eight, four) = (instance(&line(10), &plain(1), 8, 8), instance(&line(10), &plain(1), 4, 4));
    let flat = instance(&IndexSpace::<2>::from(Rect::from_shape([2, 5])), &plain(2), 8, 8);
    let refusal = |space: IndexSpace<1>, from: &Arc<Instance>, field, to: &Arc<Instance>| {
        Transfer::copy(space.into(), (from, field), (to, FIELD)).unwrap_err()
    };
    let id = eight.id();
    let stored = vec![FieldId(0), FieldId(1), FieldId(2)];
    let missing = TransferError::NoSuchField { instance: id, field: FieldId(9), stored };
    assert_eq!(refusal(line(10), &eight, FieldId(9), &eight), missing);
    let size = TransferError::OtherSize { instance: four.id(), field: FIELD, expected: 8, found: 4 };
    assert_eq!(refusal(line(10), &eight, FIELD, &four), size);
    let dimension = TransferError::OtherDimension { instance: flat.id(), expected: 1, found: 2 };
    assert_eq!(refusal(line(10), &eight, FIELD, &flat), dimension);
    let [bounds, points] = [10, 11].map(|end| Box::new(Rect::from(0..end).into()));
    let outside = TransferError::OutsideBounds { instance: id, bounds, points };
    assert_eq!(refusal(line(11), &eight, FIELD, &eight), outside);
    let value = Transfer::fill(line(10).into(), (&eight, FIELD), FillValue::of(1u16)).unwrap_err();
    assert_eq!(value, TransferError::OtherSize { instance: id, field: FIELD, expected: 2, found: 8 });
}

#[test]
fn a_reduction_is_refused_on_values_of_other_types_alignment_or_on_itself() {
    let (value, part) = (instance(&line(10), &plain(1), 8, 8), instance(&line(10), &plain(1), 4, 4));
    let crooked = instance(&line(10), &plain(1), 4, 2);
    let refusal = |from: &Arc<Instance>, to: &Arc<Instance>, mode| {
        let operator = RawReduction::of::<Sum>();
        Transfer::reduce(line(10).into(), (from, FIELD), (to, FIELD), operator, mode).unwrap_err()
    };
    assert!(matches!(
        refusal(&value, &value, ReductionMode::Apply),
        TransferError::OtherSize { expected: 4, found: 8, .. }
    ));
    assert!(matches!(
        refusal(&part, &part, ReductionMode::Apply),
        TransferError::OtherSize { expected: 8, found: 4, .. }
    ));
    assert!(matches!(refusal(&part, &part, ReductionMode::Fold), TransferError::IntoItself { .. }));
    assert!(matches!(
        refusal(&crooked, &value, ReductionMode::Apply),
        TransferError::Misaligned { expected: 4, found: 2, .. }
    ));
}

#[test]
fn pointers_have_the_dimension_of_the_targets_and_targets_are_stored() {
    let (pointers, values) = (instance(&line(10), &plain(1), 8, 8), instance(&line(10), &plain(1), 8, 8));
    let flat = IndexSpace::<2>::from(Rect::from_shape([2, 5]));
    let far = instance(&flat, &plain(2), 8, 8);
    let gather = |from: &Arc<Instance>, targets: AnySpace| {
        let sides = ((&pointers, FIELD), (from, FIELD), (&values, FIELD));
        Transfer::gather(line(10).into(), sides.0, sides.1, sides.2, targets, Dangling::Fail).unwrap_err()
    };
    let size = TransferError::OtherSize { instance: pointers.id(), field: FIELD, expected: 16, found: 8 };
    assert_eq!(gather(&far, flat.into()), size);
    assert!(matches!(gather(&values, line(11).into()), TransferError::OutsideBounds { .. }));
}

#[test]
fn pointers_are_not_overwritten_while_they_are_followed() {
    let (pointers, values) = (instance(&line(10), &plain(1), 8, 8), instance(&line(10), &plain(1), 8, 8));
    let refused = TransferError::OverwritesPointers { instance: pointers.id(), field: FIELD };
    for make in [Transfer::gather, Transfer::scatter] {
        let sides = [&pointers, &values, &pointers].map(|instance| InstanceField::from((instance, FIELD)));
        let [follow, from, to] = sides;
        let transfer = make(line(10).into(), follow, from, to, line(10).into(), Dangling::Fail);
        assert_eq!(transfer.unwrap_err(), refused);
    }
}

#[test]
fn a_field_gathered_from_itself_follows_the_order_of_points() {
    let (pointers, values) = (instance(&line(4), &plain(1), 8, 8), instance(&line(4), &plain(1), 8, 8));
    for (point, pointer) in [0, 0, 1, 2].into_iter().enumerate() {
        set(&pointers, (point as i64).into(), bytemuck::bytes_of(&i64::from(pointer)));
        set(&values, (point as i64).into(), bytemuck::bytes_of(&(point as i64 + 5)));
    }
    let sides = ((&pointers, FIELD), (&values, FIELD), (&values, FIELD));
    let (space, targets) = (line(4).into(), line(4).into());
    let gather = Transfer::gather(space, sides.0, sides.1, sides.2, targets, Dangling::Fail).unwrap();
    execute(&gather).unwrap();
    assert!(super::tests::values(&values, FIELD).values().all(|value| value == bytemuck::bytes_of(&5i64)));
}

#[test]
fn packed_values_that_are_too_few_change_nothing() {
    let (from, to) = (instance(&line(10), &plain(1), 8, 8), instance(&line(10), &plain(1), 8, 8));
    let (space, before) = (line(10).into(), values(&to, FIELD));
    let mut packed = Vec::new();
    // SAFETY: the instances are ours alone, and hold bytes.
    let refused = unsafe {
        pack(&space, (&from, FIELD), &mut packed).unwrap();
        unpack(&space, &mut &packed[1..], (&to, FIELD)).unwrap_err()
    };
    assert_eq!(refused, TransferError::TooFewBytes { expected: 80, found: 79 });
    assert_eq!(values(&to, FIELD), before);
}

#[test]
fn a_few_values_are_no_more_than_asked_for_and_no_other_number_of_bytes_goes_in_or_out() {
    let at = instance(&line(10), &plain(1), 8, 8);
    let space = line(10).into();
    assert!(FewValues::at(&space, (&at, FIELD), 79).unwrap().is_none());
    let few = FewValues::at(&space, (&at, FIELD), 80).unwrap().unwrap();
    let before = values(&at, FIELD);
    for length in [0, 79, 81] {
        let refused = Err(TransferError::TooFewBytes { expected: 80, found: length });
        let mut bytes = vec![7; length];
        // SAFETY: the instance is ours alone, and holds bytes.
        unsafe {
            assert_eq!(few.pack(&mut bytes), refused);
            assert_eq!(few.unpack(&bytes), refused);
        }
        assert_eq!(bytes, vec![7; length]);
    }
    assert_eq!(values(&at, FIELD), before);
    // SAFETY: as above; nothing uses the instance any more.
    unsafe {
        at.release();
        assert_eq!(few.pack(&mut [0; 80]), Err(TransferError::NoBytes { instance: at.id() }));
        assert_eq!(few.unpack(&[0; 80]), Err(TransferError::NoBytes { instance: at.id() }));
    }
}

#[test]
fn a_transfer_with_a_released_instance_fails_cleanly() {
    let (from, to) = (instance(&line(10), &plain(1), 8, 8), instance(&line(10), &plain(1), 8, 8));
    let transfer = Transfer::copy(line(10).into(), (&from, FIELD), (&to, FIELD)).unwrap();
    // SAFETY: nothing uses it.
    unsafe { from.release() };
    assert_eq!(execute(&transfer), Err(TransferError::NoBytes { instance: from.id() }));
}
