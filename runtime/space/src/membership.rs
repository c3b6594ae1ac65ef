//! Whether a point is in an index space, fast enough for the inner loop of a task.

use std::sync::Arc;

use crate::bitmap::{self, Linear};
use crate::finder::Finder;
use crate::rows::Rows;
use crate::{Point, Rect};

/// Bitmaps of at most this many bits are built whatever the number of rectangles.
const SMALL_BITMAP: u64 = 1 << 15;

/// A prepared test for the points of an index space; see [`IndexSpace::membership`].
///
/// For a dense space the test compares the bounds and nothing more. A sparse space is looked up in
/// a bitmap over its bounds if that is small (four kibibytes, or 64 bytes a rectangle), else among
/// its rectangles by a table of their first coordinates, so that its memory follows their number.
///
/// [`IndexSpace::membership`]: crate::IndexSpace::membership
#[derive(Clone, Debug)]
pub struct Membership<const D: usize> {
    bounds: Rect<D>,
    table: MembershipTable<D>,
}

/// The table in which a point within the bounds is looked up.
#[derive(Clone, Debug)]
enum MembershipTable<const D: usize> {
    /// Nothing: all points of the bounds are members.
    Dense,
    /// A bit for each point of the bounds, in row-major order.
    Bitmap { words: Arc<[u64]>, linear: Linear<D> },
    /// The rectangles, in canonical order, and how to find one.
    Sorted(Arc<[Rect<D>]>, Arc<Finder>),
}

impl<const D: usize> Membership<D> {
    /// The test for all points of a rectangle.
    #[inline]
    pub const fn dense(bounds: Rect<D>) -> Self {
        Self { bounds, table: MembershipTable::Dense }
    }

    /// The test for the points of rectangles in canonical form.
    pub(crate) fn sparse(bounds: Rect<D>, rects: &Arc<[Rect<D>]>, finder: impl FnOnce() -> Arc<Finder>) -> Self {
        let bits = bounds.volume();
        let affordable = (rects.len() as u64).saturating_mul(64 * 8);
        let table = if rects.len() == 1 {
            MembershipTable::Dense
        } else if bits <= affordable.max(SMALL_BITMAP) {
            let linear = Linear::of(&bounds);
            let mut words = vec![0u64; bits.div_ceil(64) as usize];
            for row in Rows::new(rects) {
                bitmap::set_range(&mut words, linear.rank(row.lo), linear.rank(row.hi));
            }
            MembershipTable::Bitmap { words: words.into(), linear }
        } else {
            MembershipTable::Sorted(Arc::clone(rects), finder())
        };
        Self { bounds, table }
    }

    /// Whether the point is a member.
    #[inline(always)]
    pub fn contains(&self, point: Point<D>) -> bool {
        self.bounds.contains(point)
            && match &self.table {
                MembershipTable::Dense => true,
                MembershipTable::Bitmap { words, linear } => bitmap::get(words, linear.rank(point)),
                MembershipTable::Sorted(rects, finder) => search(rects, finder, point),
            }
    }

    /// The smallest rectangle around the members.
    #[inline]
    pub fn bounds(&self) -> &Rect<D> {
        &self.bounds
    }

    /// Whether all points of the bounds are members.
    #[inline]
    pub fn is_dense(&self) -> bool {
        matches!(self.table, MembershipTable::Dense)
    }
}

#[cold]
#[inline(never)]
fn search<const D: usize>(rects: &[Rect<D>], finder: &Finder, point: Point<D>) -> bool {
    finder.locate(rects, point).is_some()
}
