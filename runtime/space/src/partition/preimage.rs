//! Preimages: the points whose pointers lead to a set of points.

use std::ops::RangeInclusive;

use super::FieldRead;
use super::collect::Runs;
use super::field::{At, Values};
use crate::bitmap::Linear;
use crate::overlap::{LastSeen, index_of_spaces};
use crate::{IndexSpace, OverlapIndex, Point, Rect};

/// For each target, the points of the source whose pointer is in it. Targets may overlap; a point
/// is then in the preimage of each that holds its pointer.
///
/// Linear in the points of the source. The targets of a pointer are found by a search among few intervals if
/// they are that; in a table over the targets where that is not much larger than the source; and else by a
/// search in a tree of their rectangles.
pub fn preimage<const T: usize, const S: usize>(
    targets: &[IndexSpace<T>],
    field: &impl FieldRead<Point<T>, S>,
    source: &IndexSpace<S>,
) -> Vec<IndexSpace<S>> {
    pieces_by_pointers(targets, &At(field, source)).into_spaces(source)
}

/// For each target the pointers into it.
pub(super) fn pieces_by_pointers<const T: usize>(targets: &[IndexSpace<T>], pointers: &impl Values<Point<T>>) -> Runs {
    let mut pieces = Runs::new(targets.len());
    if let Some(stretches) = Stretches::build(targets) {
        // Pointers that follow each other often lead near each other: as long as they do, their points are dealt
        // together.
        let (mut here, mut open) = (stretches.containing(0), None::<[i64; 2]>);
        pointers.for_each(|number, pointer| {
            let is_here = here.range.contains(&pointer[0]);
            match &mut open {
                Some([_, last]) if is_here && last.wrapping_add(1) == number => *last = number,
                _ => {
                    if let Some(run) = open.replace([number; 2]) {
                        stretches.sets.deal(run, here.set, &mut pieces);
                    }
                    if !is_here {
                        here = stretches.containing(pointer[0]);
                    }
                }
            }
        });
        if let Some(run) = open {
            stretches.sets.deal(run, here.set, &mut pieces);
        }
        return pieces;
    }
    match ColorTable::build(targets, pointers.count()) {
        Some(table) => {
            let mut lookups = Vec::with_capacity(LOOKUPS);
            pointers.for_each(|number, pointer| {
                lookups.push((number, table.set_of(pointer)));
                if lookups.len() == LOOKUPS {
                    table.deal(&mut lookups, &mut pieces);
                }
            });
            table.deal(&mut lookups, &mut pieces);
        }
        None => {
            let index = index_of_spaces(targets);
            pointers.for_each(|number, pointer| {
                // The rectangles of one space are disjoint: it comes up at most once.
                index.query(&Rect::from_point(pointer), |color| pieces.push(color as usize, number));
            });
        }
    }
    pieces
}

/// For each target, the points of the source whose rectangle overlaps it.
///
/// A search in a tree of the targets' rectangles for each point of the source.
pub fn preimage_rects<const T: usize, const S: usize>(
    targets: &[IndexSpace<T>],
    field: &impl FieldRead<Rect<T>, S>,
    source: &IndexSpace<S>,
) -> Vec<IndexSpace<S>> {
    pieces_by_rects(targets, &At(field, source)).into_spaces(source)
}

/// For each target the rectangles that overlap it.
pub(super) fn pieces_by_rects<const T: usize>(targets: &[IndexSpace<T>], rects: &impl Values<Rect<T>>) -> Runs {
    let index: OverlapIndex<T> = index_of_spaces(targets);
    let (mut pieces, mut seen) = (Runs::new(targets.len()), LastSeen::new(targets.len()));
    let mut query = 0;
    rects.for_each(|number, rect| {
        query += 1;
        if !rect.is_empty() {
            index.query(&rect, |color| {
                if seen.first_time(color, query) {
                    pieces.push(color as usize, number);
                }
            });
        }
    });
    pieces
}

/// Sets of colors, by numbers. A set is a smaller set and one color more, so there are as many as
/// combinations of colors occur, and their colors form chains.
struct ColorSets {
    sets: Vec<(u32, u32)>,
    /// The set that each set became with the color that was added last, and that color.
    extended: Vec<(u32, u32)>,
}

impl ColorSets {
    fn new() -> Self {
        Self { sets: vec![(EMPTY_SET, 0)], extended: vec![(u32::MAX, EMPTY_SET)] }
    }

    /// Adds a color to a set. Colors are added one after the other, each to all sets that it is to be in.
    #[inline]
    fn extend(&mut self, set: &mut u32, color: u32) {
        let (added, extension) = &mut self.extended[*set as usize];
        if *added != color {
            (*added, *extension) = (color, self.sets.len() as u32);
            self.sets.push((*set, color));
            *set = *extension;
            self.extended.push((u32::MAX, EMPTY_SET));
        } else {
            *set = *extension;
        }
    }

    /// Gives the points of a run to the pieces of all colors of a set.
    #[inline]
    fn deal(&self, run: [i64; 2], mut set: u32, pieces: &mut Runs) {
        while set != EMPTY_SET {
            let (smaller, color) = self.sets[set as usize];
            pieces.push_run(color as usize, run);
            set = smaller;
        }
    }
}

/// The line, cut where one of some spaces begins or ends, and which of them contain each stretch.
struct Stretches {
    /// The beginning of each stretch but the first, in ascending order.
    cuts: Vec<i64>,
    set_of_stretch: Vec<u32>,
    sets: ColorSets,
}

/// A stretch of the line between two cuts.
struct Stretch {
    range: RangeInclusive<i64>,
    set: u32,
}

/// So many intervals are searched: they fit into the first cache.
const FEW_INTERVALS: usize = if cfg!(test) { 8 } else { 1024 };

impl Stretches {
    /// The stretches of spaces of one dimension that are few intervals.
    fn build<const D: usize>(spaces: &[IndexSpace<D>]) -> Option<Self> {
        let intervals: usize = spaces.iter().map(|space| space.rects().len()).sum();
        if D != 1 || intervals > FEW_INTERVALS {
            return None;
        }
        let of = |space: &IndexSpace<D>| space.rects().iter().map(|rect| (rect.lo[0], rect.hi[0])).collect::<Vec<_>>();
        let ends = spaces.iter().flat_map(of).flat_map(|(low, high)| [Some(low), high.checked_add(1)]);
        let mut cuts: Vec<i64> = ends.flatten().collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut stretches = Self { set_of_stretch: vec![EMPTY_SET; cuts.len() + 1], cuts, sets: ColorSets::new() };
        for (color, space) in (0u32..).zip(spaces) {
            for (low, high) in of(space) {
                let (first, last) = (stretches.number(low), stretches.number(high));
                for set in &mut stretches.set_of_stretch[first..=last] {
                    stretches.sets.extend(set, color);
                }
            }
        }
        Some(stretches)
    }

    /// The number of the stretch that a point is in.
    fn number(&self, point: i64) -> usize {
        self.cuts.partition_point(|&cut| cut <= point)
    }

    fn containing(&self, point: i64) -> Stretch {
        let number = self.number(point);
        let first = number.checked_sub(1).map_or(i64::MIN, |before| self.cuts[before]);
        let last = self.cuts.get(number).map_or(i64::MAX, |next| next - 1);
        Stretch { range: first..=last, set: self.set_of_stretch[number] }
    }
}

/// For each point of the bounds of some spaces, which of them contain it.
struct ColorTable<const D: usize> {
    bounds: Rect<D>,
    linear: Linear<D>,
    sets: ColorSets,
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
            sets: ColorSets::new(),
            set_of_point: vec![EMPTY_SET; bounds.volume() as usize],
        };
        for (color, space) in (0u32..).zip(spaces) {
            for row in space.rows() {
                let first = table.linear.rank(row.lo) as usize;
                let last = table.linear.rank(row.hi) as usize;
                for set in &mut table.set_of_point[first..=last] {
                    table.sets.extend(set, color);
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
    fn deal(&self, lookups: &mut Vec<(i64, u32)>, pieces: &mut Runs) {
        for (number, set) in lookups.drain(..) {
            self.sets.deal([number; 2], set, pieces);
        }
    }
}
