//! Images: where the pointers of a set of points lead.

use super::FieldRead;
use super::collect::PointerSet;
use super::field::{At, Values};
use crate::{IndexSpace, Point, Rect};

/// For each source, the points of the target that its pointers name. Pointers out of the target
/// are dropped.
///
/// The time is that of reading the field, plus that of sorting the pointers of each source or
/// less: pointers that lie close are marked in a bitmap instead.
///
/// ```
/// use maniple_space::partition::{image, SliceField};
/// use maniple_space::{IndexSpace, Point, Rect};
/// let pointers = [3, 0, 3, 99].map(|to| Point([to]));
/// let field = SliceField::new(Rect::from(0..4), &pointers);
/// let source = IndexSpace::from(Rect::from(0..4));
/// let target = IndexSpace::from(Rect::from(0..10));
/// assert_eq!(image(&[source], &field, &target)[0].to_string(), "{(0)..=(0), (3)..=(3)}");
/// ```
pub fn image<const S: usize, const T: usize>(
    sources: &[IndexSpace<S>],
    field: &impl FieldRead<Point<T>, S>,
    target: &IndexSpace<T>,
) -> Vec<IndexSpace<T>> {
    let mut pointers = PointerSet::new(target.membership());
    sources.iter().map(|source| pointers.of(&At(field, source))).collect()
}

/// For each source, the points of the target in the rectangles that its field holds: the entries
/// of the rows of a sparse matrix, say.
///
/// Near-linear in the rectangles; those that continue or repeat the one before cost a compare.
pub fn image_rects<const S: usize, const T: usize>(
    sources: &[IndexSpace<S>],
    field: &impl FieldRead<Rect<T>, S>,
    target: &IndexSpace<T>,
) -> Vec<IndexSpace<T>> {
    sources.iter().map(|source| union_of_rects(&At(field, source), target)).collect()
}

/// The points of the target in some rectangles.
pub(super) fn union_of_rects<const T: usize>(named: &impl Values<Rect<T>>, target: &IndexSpace<T>) -> IndexSpace<T> {
    let (bounds, mut rects) = (target.bounds(), Vec::<Rect<T>>::new());
    named.for_each(|_, rect| {
        let clipped = rect.intersection(&bounds);
        if clipped.is_empty() {
            return;
        }
        match rects.last_mut() {
            Some(last) if last.contains_rect(&clipped) => {}
            Some(last) if T == 1 && continues(last, &clipped) => last.hi = clipped.hi,
            _ => rects.push(clipped),
        }
    });
    IndexSpace::from_rects(rects).intersection(target)
}

/// Whether an interval that reaches beyond the end of another leaves no gap to it.
fn continues<const D: usize>(last: &Rect<D>, next: &Rect<D>) -> bool {
    (last.lo.0[0]..=last.hi.0[0].saturating_add(1)).contains(&next.lo.0[0])
}
