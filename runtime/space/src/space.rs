//! Index spaces: sets of points, dense or sparse.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxBuildHasher;

use crate::bands::{self, Keep};
use crate::bitmap;
use crate::covering::covering;
use crate::finder::Finder;
use crate::rows::{Points, Rows};
use crate::{Membership, Point, Rect};

/// A set of points of a `D`-dimensional grid, `D` from 1 to 4.
///
/// The set is kept as disjoint rectangles in a canonical form, so spaces with the same points are
/// equal, hash alike and list the same rectangles, however they were made. A clone shares them.
///
/// Every operation takes a time near-linear in the rectangles of its operands and its result, and
/// less where bounding boxes already tell. In more than one dimension the canonical form of
/// scattered, overlapping boxes can have more rectangles than there were boxes: each edge cuts
/// its neighbours along the first dimension.
///
/// ```
/// use maniple_space::{IndexSpace, Rect};
/// let a = IndexSpace::from(Rect::from(0..10));
/// let odd = IndexSpace::from_points([1, 3, 5, 7, 9].map(Into::into));
/// let even = a.difference(&odd);
/// assert_eq!(even.volume(), 5);
/// assert!(even.is_subset_of(&a) && !even.overlaps(&odd));
/// assert_eq!(even.union(&odd), a);
/// ```
#[derive(Clone)]
pub struct IndexSpace<const D: usize> {
    /// The test for the bounds, which is the whole truth for a dense space.
    bounds: Membership<D>,
    /// Absent for a dense or empty space.
    sparse: Option<Arc<Sparse<D>>>,
}

/// The data of a space of several rectangles, shared by its clones.
struct Sparse<const D: usize> {
    /// At least two, in canonical form.
    rects: Arc<[Rect<D>]>,
    /// None if it is 2^64 or more.
    volume: Option<u64>,
    hash: OnceLock<u64>,
    membership: OnceLock<Membership<D>>,
    finder: OnceLock<Arc<Finder>>,
}

impl<const D: usize> Sparse<D> {
    fn finder(&self) -> &Arc<Finder> {
        self.finder.get_or_init(|| Arc::new(Finder::new(&self.rects)))
    }
}

impl<const D: usize> IndexSpace<D> {
    const SUPPORTED: () = assert!(1 <= D && D <= 4, "index spaces have 1 to 4 dimensions");

    /// The space without points.
    pub const fn empty() -> Self {
        const { Self::SUPPORTED };
        Self { bounds: Membership::dense(Rect::EMPTY), sparse: None }
    }

    /// The space of all points of some rectangles, which may overlap, in any order.
    pub fn from_rects(rects: impl IntoIterator<Item = Rect<D>>) -> Self {
        Self::from_canonical(bands::from_any(rects.into_iter().collect()))
    }

    /// The space of some points, in any order, repeated or not.
    pub fn from_points(points: impl IntoIterator<Item = Point<D>>) -> Self {
        let mut rects: Vec<Rect<D>> = points.into_iter().map(Rect::from_point).collect();
        if !rects.is_sorted_by(|a, b| a.lo < b.lo) {
            rects.sort_unstable_by_key(|rect| rect.lo);
            rects.dedup();
        }
        Self::from_canonical(bands::coalesce(&rects))
    }

    /// The space of rectangles that are banded, as [`bands::coalesce`] asks: of rows in row-major
    /// order, for one.
    pub(crate) fn from_banded(rects: &[Rect<D>]) -> Self {
        Self::from_canonical(bands::coalesce(rects))
    }

    /// The space of rectangles that are in canonical form. They are copied once, so that a caller
    /// may keep the buffer that it gathered them in.
    pub(crate) fn from_canonical(rects: impl AsRef<[Rect<D>]>) -> Self {
        let rects = rects.as_ref();
        const { Self::SUPPORTED };
        if let [] | [_] = rects {
            return rects.first().copied().map_or_else(Self::empty, Self::from);
        }
        let mut bounds = rects[0];
        let mut volume = Some(0u64);
        for rect in rects {
            bounds = bounds.hull(rect);
            volume = volume.zip(rect.checked_volume()).and_then(|(volume, more)| volume.checked_add(more));
        }
        let (hash, membership, finder) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let sparse = Sparse { rects: rects.into(), volume, hash, membership, finder };
        Self { bounds: Membership::dense(bounds), sparse: Some(Arc::new(sparse)) }
    }

    /// The smallest rectangle around the points; [`Rect::EMPTY`] without points.
    #[inline]
    pub fn bounds(&self) -> Rect<D> {
        *self.bounds.bounds()
    }

    /// Whether the points are exactly those of [`bounds`](Self::bounds); true of an empty space.
    #[inline]
    pub fn is_dense(&self) -> bool {
        self.sparse.is_none()
    }

    /// The points as disjoint rectangles in canonical form: sorted by their lowest points, cut
    /// into maximal bands of the same cross-section along dimension 0, then along dimension 1 in
    /// each band, and so on.
    #[inline]
    pub fn rects(&self) -> &[Rect<D>] {
        match &self.sparse {
            Some(sparse) => &sparse.rects,
            None if self.is_empty() => &[],
            None => std::slice::from_ref(self.bounds.bounds()),
        }
    }

    /// The number of points, at most `u64::MAX`: see [`checked_volume`](Self::checked_volume).
    #[inline]
    pub fn volume(&self) -> u64 {
        self.sparse.as_ref().map_or_else(|| self.bounds().volume(), |sparse| sparse.volume.unwrap_or(u64::MAX))
    }

    /// The number of points; none if it is 2^64 or more.
    pub fn checked_volume(&self) -> Option<u64> {
        self.sparse.as_ref().map_or_else(|| self.bounds().checked_volume(), |sparse| sparse.volume)
    }

    /// Whether there are no points.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sparse.is_none() && self.bounds.bounds().is_empty()
    }

    /// Whether a point is in the space. Logarithmic in the number of rectangles; for many tests
    /// take the [`membership`](Self::membership) first.
    #[inline]
    pub fn contains(&self, point: Point<D>) -> bool {
        self.bounds.contains(point) && (self.is_dense() || bands::locate(self.rects(), point).is_some())
    }

    /// Whether all points of a rectangle are in the space.
    pub fn contains_rect(&self, rect: &Rect<D>) -> bool {
        rect.is_empty()
            || self.bounds().contains_rect(rect)
                && (self.is_dense() || !bands::any(std::slice::from_ref(rect), self.rects(), Keep::DIFFERENCE))
    }

    /// Which of the [rectangles](Self::rects) a point is in. Fast enough for hot loops: at the first call a table is
    /// built, at most once for all clones of a space.
    #[inline]
    pub fn locate(&self, point: Point<D>) -> Option<usize> {
        match &self.sparse {
            None => self.bounds.contains(point).then_some(0),
            Some(sparse) if self.bounds.contains(point) => sparse.finder().locate(&sparse.rects, point),
            Some(_) => None,
        }
    }

    /// Calls `visit` with the number of each of the [rectangles](Self::rects) that shares a point with another, in
    /// order. Logarithmic in those that it skips.
    #[inline]
    pub fn for_each_touching(&self, rect: &Rect<D>, mut visit: impl FnMut(usize)) {
        bands::for_each_touching(self.rects(), rect, &mut visit);
    }

    /// The prepared test of membership for hot loops. Built at the first call, at most once for
    /// all clones of a space; nothing to build for a dense one.
    #[inline]
    pub fn membership(&self) -> &Membership<D> {
        match &self.sparse {
            None => &self.bounds,
            Some(sparse) => sparse
                .membership
                .get_or_init(|| Membership::sparse(self.bounds(), &sparse.rects, || Arc::clone(sparse.finder()))),
        }
    }

    /// Whether the two are known to be equal without looking at rectangles.
    #[inline]
    fn is_same(&self, other: &Self) -> bool {
        match (&self.sparse, &other.sparse) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => self.bounds() == other.bounds(),
            _ => false,
        }
    }

    /// Whether this dense space contains all of the other.
    #[inline]
    fn engulfs(&self, other: &Self) -> bool {
        self.is_dense() && self.bounds().contains_rect(&other.bounds())
    }

    /// The points in either space.
    pub fn union(&self, other: &Self) -> Self {
        if self.is_same(other) || self.engulfs(other) {
            return self.clone();
        }
        if other.engulfs(self) {
            return other.clone();
        }
        Self::from_canonical(bands::combine(self.rects(), other.rects(), Keep::UNION))
    }

    /// The points in both spaces.
    pub fn intersection(&self, other: &Self) -> Self {
        if self.is_same(other) || other.engulfs(self) {
            return self.clone();
        }
        if self.engulfs(other) {
            return other.clone();
        }
        if self.is_dense() && other.is_dense() || !self.bounds().overlaps(&other.bounds()) {
            return Self::from(self.bounds().intersection(&other.bounds()));
        }
        Self::from_canonical(bands::combine(self.rects(), other.rects(), Keep::INTERSECTION))
    }

    /// The points of this space that are not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        if self.is_same(other) || other.engulfs(self) {
            return Self::empty();
        }
        if !self.bounds().overlaps(&other.bounds()) {
            return self.clone();
        }
        Self::from_canonical(bands::combine(self.rects(), other.rects(), Keep::DIFFERENCE))
    }

    /// Whether all points of this space are in the other. Stops at the first that is not.
    pub fn is_subset_of(&self, other: &Self) -> bool {
        if self.is_same(other) || other.engulfs(self) {
            return true;
        }
        self.volume() <= other.volume()
            && other.bounds().contains_rect(&self.bounds())
            && !bands::any(self.rects(), other.rects(), Keep::DIFFERENCE)
    }

    /// Whether the two have a point in common. Stops at the first.
    pub fn overlaps(&self, other: &Self) -> bool {
        if !self.bounds().overlaps(&other.bounds()) {
            return false;
        }
        (self.is_dense() && other.is_dense()) || bands::any(self.rects(), other.rects(), Keep::INTERSECTION)
    }

    /// The points in any of the spaces.
    ///
    /// Many rectangles that crowd in their bounds are painted in a bitmap, in linear time.
    /// Otherwise intervals are sorted, and sets of more dimensions united in rounds: `O(r log r)`
    /// for `r` rectangles, as long as the unions in between have no more.
    pub fn union_all<'a>(spaces: impl IntoIterator<Item = &'a Self>) -> Self {
        let spaces: Vec<&Self> = spaces.into_iter().filter(|space| !space.is_empty()).collect();
        if let [] | [_] | [_, _] = spaces[..] {
            return spaces.into_iter().fold(Self::empty(), |union, space| union.union(space));
        }
        let rects = || spaces.iter().flat_map(|space| space.rects());
        let bounds = spaces.iter().fold(Rect::EMPTY, |hull, space| hull.hull(&space.bounds()));
        // The cost of painting: a step for each row, and for each word of the bitmap.
        let rows = |rect: &Rect<D>| rect.volume() / rect.extent(D - 1);
        let painting = rects().map(rows).fold(bounds.volume() / 64, u64::saturating_add);
        let count = rects().count();
        if painting <= (count as u64).saturating_mul(4) {
            return Self::from_banded(&bitmap::rows_of_union(&bounds, rects()));
        }
        if D == 1 {
            return Self::from_rects(rects().copied());
        }
        Self::union_in_rounds(spaces.into_iter().cloned().collect())
    }

    /// Unites neighbours in the list until one space is left.
    fn union_in_rounds(mut round: Vec<Self>) -> Self {
        while round.len() > 1 {
            round = round
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => a.union(b),
                    _ => pair[0].clone(),
                })
                .collect();
        }
        round.pop().unwrap_or_default()
    }

    /// The points in row-major order.
    pub fn points(&self) -> Points<'_, D> {
        Points::new(self.rects())
    }

    /// The rows (runs of points along the last dimension) in row-major order, each as a rectangle
    /// one point thick in all other dimensions.
    pub fn rows(&self) -> Rows<'_, D> {
        Rows::new(self.rects())
    }

    /// At most `max_rects` (at least 1) disjoint rectangles that contain all points, and as few
    /// others as can be: the fewest in one dimension, where the widest gaps are kept; few, by
    /// greedy cuts, in more.
    pub fn covering(&self, max_rects: usize) -> Vec<Rect<D>> {
        covering(self.rects(), max_rects)
    }

    /// The space moved by `offset`. Points that would leave the range of `i64` are dropped.
    pub fn translate(&self, offset: Point<D>) -> Self {
        let moved = |rect: &Rect<D>| rect.translate(offset);
        let bounds = self.bounds();
        if (0..D).all(|d| moved(&bounds).extent(d) == bounds.extent(d)) {
            Self::from_canonical(self.rects().iter().map(moved).collect::<Vec<_>>())
        } else {
            Self::from_rects(self.rects().iter().map(moved))
        }
    }
}

impl<const D: usize> Default for IndexSpace<D> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<const D: usize> From<Rect<D>> for IndexSpace<D> {
    #[inline]
    fn from(rect: Rect<D>) -> Self {
        const { Self::SUPPORTED };
        let bounds = if rect.is_empty() { Rect::EMPTY } else { rect };
        Self { bounds: Membership::dense(bounds), sparse: None }
    }
}

impl<const D: usize> FromIterator<Rect<D>> for IndexSpace<D> {
    fn from_iter<I: IntoIterator<Item = Rect<D>>>(rects: I) -> Self {
        Self::from_rects(rects)
    }
}

impl<const D: usize> FromIterator<Point<D>> for IndexSpace<D> {
    fn from_iter<I: IntoIterator<Item = Point<D>>>(points: I) -> Self {
        Self::from_points(points)
    }
}

impl<const D: usize> PartialEq for IndexSpace<D> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.sparse, &other.sparse) {
            (None, None) => self.bounds() == other.bounds(),
            (Some(a), Some(b)) => {
                Arc::ptr_eq(a, b) || self.bounds() == other.bounds() && a.volume == b.volume && a.rects == b.rects
            }
            _ => false,
        }
    }
}

impl<const D: usize> Eq for IndexSpace<D> {}

impl<const D: usize> Hash for IndexSpace<D> {
    /// Sparse spaces remember the hash of their rectangles, so only the first call is linear.
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.sparse {
            None => self.bounds().hash(state),
            Some(sparse) => {
                let content = *sparse.hash.get_or_init(|| FxBuildHasher.hash_one(&sparse.rects));
                state.write_u64(content);
            }
        }
    }
}

/// Writes rectangles as a set, the first few of them in full.
pub(crate) fn write_rects<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    rects: impl ExactSizeIterator<Item = T>,
) -> fmt::Result {
    const SHOWN: usize = 8;
    let hidden = rects.len().saturating_sub(SHOWN);
    f.write_str("{")?;
    for (i, rect) in rects.take(SHOWN).enumerate() {
        write!(f, "{}{rect}", if i > 0 { ", " } else { "" })?;
    }
    if hidden > 0 {
        write!(f, ", and {hidden} more")?;
    }
    f.write_str("}")
}

impl<const D: usize> fmt::Display for IndexSpace<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_rects(f, self.rects().iter())
    }
}

impl<const D: usize> fmt::Debug for IndexSpace<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
