//! Preimages: the points whose pointers lead to a set of points.

use super::FieldRead;
use super::collect::RowLists;
use super::field::for_each_value;
use crate::bitmap::Linear;
use crate::overlap::{LastSeen, index_of_spaces};
use crate::{IndexSpace, OverlapIndex, Point, Rect};

/// For each target, the points of the source whose pointer is in it. Targets may overlap; a point
/// is then in the preimage of each that holds its pointer.
///
/// Linear in the points of the source, with a table over the targets where that is not much larger
/// than the source, and else a search in a tree of their rectangles for each pointer.
pub fn preimage<const T: usize, const S: usize>(
    targets: &[IndexSpace<T>],
    field: &impl FieldRead<Point<T>, S>,
    source: &IndexSpace<S>,
) -> Vec<IndexSpace<S>> {
    let mut lists = RowLists::new(targets.len());
    match ColorTable::build(targets, source.volume()) {
        Some(table) => {
            let mut lookups = Vec::with_capacity(LOOKUPS);
            for_each_value(source, field, |at, pointer| {
                lookups.push((at, table.set_of(pointer)));
                if lookups.len() == LOOKUPS {
                    table.deal(&mut lookups, &mut lists);
                }
            });
            table.deal(&mut lookups, &mut lists);
        }
        None => {
            let index = index_of_spaces(targets);
            for_each_value(source, field, |at, pointer| {
                // The rectangles of one space are disjoint: it comes up at most once.
                index.query(&Rect::from_point(pointer), |color| lists.push(color as usize, at));
            });
        }
    }
    lists.into_spaces()
}

/// For each target, the points of the source whose rectangle overlaps it.
///
/// A search in a tree of the targets' rectangles for each point of the source.
pub fn preimage_rects<const T: usize, const S: usize>(
    targets: &[IndexSpace<T>],
    field: &impl FieldRead<Rect<T>, S>,
    source: &IndexSpace<S>,
) -> Vec<IndexSpace<S>> {
    let index: OverlapIndex<T> = index_of_spaces(targets);
    let mut lists = RowLists::new(targets.len());
    let mut seen = LastSeen::new(targets.len());
    let mut query = 0;
    for_each_value(source, field, |at, rect| {
        if !rect.is_empty() {
            index.query(&rect, |color| {
                if seen.first_time(color, query) {
                    lists.push(color as usize, at);
                }
            });
        }
        query += 1;
    });
    lists.into_spaces()
}

/// For each point of the bounds of some spaces, which of them contain it.
///
/// A point stores the number of a color set. A set is a smaller set and one color more, so the
/// table has as many sets as combinations of colors occur, and their colors form chains.
struct ColorTable<const D: usize> {
    bounds: Rect<D>,
    linear: Linear<D>,
    sets: Vec<(u32, u32)>,
    set_of_point: Vec<u32>,
}

/// How many pointers are looked up before any is dealt with. Look-ups miss the cache, but many can
/// be under way at once if little else is.
const LOOKUPS: usize = 64;

/// The color set without colors.
const EMPTY_SET: u32 = 0;

impl<const D: usize> ColorTable<D> {
    /// The table for some spaces, unless it costs much more than `lookups` look-ups in it.
    fn build(spaces: &[IndexSpace<D>], lookups: u64) -> Option<Self> {
        let bounds = spaces.iter().fold(Rect::EMPTY, |hull, space| hull.hull(&space.bounds()));
        let filled = spaces.iter().fold(0u64, |sum, space| sum.saturating_add(space.volume()));
        let affordable = lookups.saturating_mul(4).max(1 << 12);
        if bounds.volume() > affordable || filled > affordable {
            return None;
        }
        let mut table = Self {
            bounds,
            linear: Linear::of(&bounds),
            sets: vec![(EMPTY_SET, 0)],
            set_of_point: vec![EMPTY_SET; bounds.volume() as usize],
        };
        // The set that each set became with the color being added, and that color.
        let mut extended = vec![(u32::MAX, EMPTY_SET)];
        for (color, space) in (0u32..).zip(spaces) {
            for row in space.rows() {
                let first = table.linear.rank(row.lo) as usize;
                let last = table.linear.rank(row.hi) as usize;
                for set in &mut table.set_of_point[first..=last] {
                    let (added, extension) = &mut extended[*set as usize];
                    if *added != color {
                        (*added, *extension) = (color, table.sets.len() as u32);
                        table.sets.push((*set, color));
                        *set = *extension;
                        extended.push((u32::MAX, EMPTY_SET));
                    } else {
                        *set = *extension;
                    }
                }
            }
        }
        Some(table)
    }

    /// The set of colors of a point.
    #[inline]
    fn set_of(&self, point: Point<D>) -> u32 {
        if self.bounds.contains(point) { self.set_of_point[self.linear.rank(point) as usize] } else { EMPTY_SET }
    }

    /// Gives points to the pieces of all colors of the sets found for them.
    fn deal<const S: usize>(&self, lookups: &mut Vec<(Point<S>, u32)>, lists: &mut RowLists<S>) {
        for (at, mut set) in lookups.drain(..) {
            while set != EMPTY_SET {
                let (smaller, color) = self.sets[set as usize];
                lists.push(color as usize, at);
                set = smaller;
            }
        }
    }
}
