//! Partitioning operators for dimensions that are known at run time agree with those that have them in their types.

use bytemuck::Pod;
use maniple_space::partition::dynamic::{self, IntegerField, Names};
use maniple_space::partition::{self, PartitionError};
use maniple_space::{AnySpace, IndexSpace, Point, Rect};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::model::{space, spaces, window};

/// A value at each point, by a function; read so many values at a time.
struct Field<V, const S: usize>(Box<dyn Fn(Point<S>) -> V>, usize);

impl<V: Pod, const S: usize> Field<V, S> {
    /// At each point one of some values.
    fn of(values: Vec<V>, chunk: usize) -> Self {
        let number = |at: Point<S>| at.0.iter().fold(0, |number, at| number * window(S) + at).rem_euclid(1 << 20);
        Self(Box::new(move |at| values[number(at) as usize % values.len()]), chunk)
    }
}

impl<V: Pod, const S: usize> IntegerField for Field<V, S> {
    fn for_each_chunk(&self, space: &AnySpace, visit: &mut dyn FnMut(&[i64])) {
        let values: Vec<V> = space.typed::<S>().unwrap().points().map(&self.0).collect();
        values.chunks(self.1).for_each(|chunk| visit(bytemuck::cast_slice(chunk)));
        visit(&[]);
    }
}

fn any<const D: usize>(spaces: &[IndexSpace<D>]) -> Vec<AnySpace> {
    spaces.iter().cloned().map(AnySpace::from).collect()
}

fn points<const D: usize>() -> impl Strategy<Value = Vec<Point<D>>> {
    vec(proptest::array::uniform::<_, D>(-1..window(D) + 1).prop_map(Point), 1..60)
}

fn rects<const D: usize>() -> impl Strategy<Value = Vec<Rect<D>>> {
    let extent = proptest::array::uniform::<_, D>(0i64..4);
    let rect = (proptest::array::uniform::<_, D>(-1..window(D)), extent)
        .prop_map(|(lo, extent)| Rect::new(lo, Point(lo) + Point(extent) - Point::splat(1)));
    vec(rect, 1..60)
}

/// Images and preimages, of spaces of `S` dimensions in a target of `T`.
fn assert_agrees<const S: usize, const T: usize>(
    (sources, targets): (&[IndexSpace<S>], &[IndexSpace<T>]),
    (pointers, rects, chunk): (Vec<Point<T>>, Vec<Rect<T>>, usize),
) {
    let (source, target) = (IndexSpace::union_all(sources), IndexSpace::union_all(targets));
    let (any_source, any_target) = (AnySpace::from(source.clone()), AnySpace::from(target.clone()));
    let (any_sources, any_targets) = (any(sources), any(targets));
    let pointers = Field::<_, S>::of(pointers, chunk);
    let names = Names::Points(&pointers);
    let field = |at: Point<S>| pointers.0(at);
    assert_eq!(dynamic::image(&any_sources, names, &any_target), any(&partition::image(sources, &field, &target)));
    let preimage = partition::preimage(targets, &field, &source);
    assert_eq!(dynamic::preimage(&any_targets, names, &any_source), Ok(any(&preimage)));
    let rects = Field::<_, S>::of(rects, chunk);
    let names = Names::Rects(&rects);
    let field = |at: Point<S>| rects.0(at);
    let image = partition::image_rects(sources, &field, &target);
    assert_eq!(dynamic::image(&any_sources, names, &any_target), any(&image));
    let preimage = partition::preimage_rects(targets, &field, &source);
    assert_eq!(dynamic::preimage(&any_targets, names, &any_source), Ok(any(&preimage)));
}

in_each_dimension! {
    fn an_image_and_a_preimage_are_those_of_typed_spaces<const D: usize>(
        sources in spaces::<D>(), lines in spaces::<1>(), planes in spaces::<2>(), targets in spaces::<D>(),
        to_lines in (points::<1>(), rects::<1>()), to_targets in (points::<D>(), rects::<D>()), chunk in 1usize..40,
    ) {
        assert_agrees((&sources, &lines), (to_lines.0, to_lines.1, chunk));
        assert_agrees((&planes, &targets), (to_targets.0, to_targets.1, chunk));
    }

    fn a_partition_by_numbers_of_colors_is_that_of_a_typed_space<const D: usize>(
        parent in space::<D>(), colors in vec(-1i64..5, 1..40), chunk in 1usize..40, pieces in 1usize..9,
    ) {
        let any_parent = AnySpace::from(parent.clone());
        let field = Field::<_, D>::of(colors, chunk);
        let expected = partition::by_field(&parent, 4, &|at: Point<D>| field.0(at)).unwrap();
        prop_assert_eq!(dynamic::by_field(&any_parent, 4, &field).unwrap(), any(&expected));
        prop_assert_eq!(dynamic::by_field(&any_parent, 0, &field), Err(PartitionError::NoPieces));
        let expected = partition::equal(&parent, pieces).unwrap();
        prop_assert_eq!(dynamic::equal(&any_parent, pieces).unwrap(), any(&expected));
    }

    /// The bounds have more than 2^64 points, or the last or first coordinates that there are.
    fn points_far_from_each_other_are_dealt_to_the_right_pieces<const D: usize>(
        parent in space::<D>(), ends in proptest::bool::ANY,
    ) {
        let far = [i64::MIN, if ends { i64::MAX } else { 1 << 62 }].map(Point::splat);
        let parent = parent.union(&IndexSpace::from_points(far));
        let color = |at: Point<D>| (at[D - 1] & 3) - 1;
        let pieces = partition::by_field(&parent, 3, &color).unwrap();
        for (number, piece) in (0..).zip(&pieces) {
            let expected = IndexSpace::from_points(parent.points().filter(|&at| color(at) == number));
            prop_assert_eq!(piece, &expected);
        }
        let any_parent = AnySpace::from(parent);
        let field = Field::<_, D>(Box::new(color), 7);
        prop_assert_eq!(dynamic::by_field(&any_parent, 3, &field).unwrap(), any(&pieces));
    }
}

#[test]
fn targets_of_different_dimensions_are_refused() {
    let (line, plane) = (AnySpace::from(Rect::<1>::from(0..3)), AnySpace::from(Rect::<2>::from_shape([2, 2])));
    let field = Field::<_, 1>::of(vec![Point([1])], 2);
    assert!(dynamic::preimage(&[line.clone(), plane], Names::Points(&field), &line).is_err());
    assert_eq!(dynamic::preimage(&[], Names::Points(&field), &line), Ok(Vec::new()));
}
