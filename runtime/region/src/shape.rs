//! Interned point sets with memoised algebra.
//!
//! The analysis asks the same few questions over and over: do these two sets overlap, what do they share? A [`Shape`]
//! is a set of points with a number; equal sets have equal numbers, so that answers can be looked up by a pair of
//! numbers.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_realm::locks::RwLock;
use maniple_space::AnySpace;
use rustc_hash::{FxHashMap, FxHashSet};

/// A set of points in which equality is a comparison of two numbers.
#[derive(Clone)]
pub struct Shape(Arc<Interned>);

struct Interned {
    id: u64,
    space: AnySpace,
}

impl Shape {
    /// The number that equal sets of one [`ShapeTable`] share.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The points.
    #[must_use]
    pub fn space(&self) -> &AnySpace {
        &self.0.space
    }

    /// Whether the set has no points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.space.is_empty()
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {:?}", self.0.id, self.0.space)
    }
}

/// A shape in a table where it is found by its points, which it alone has: there may be as many as points that pieces
/// have in common.
struct ByPoints(Shape);

impl Borrow<AnySpace> for ByPoints {
    fn borrow(&self) -> &AnySpace {
        self.0.space()
    }
}

impl PartialEq for ByPoints {
    fn eq(&self, other: &Self) -> bool {
        self.0.space() == other.0.space()
    }
}

impl Eq for ByPoints {}

impl Hash for ByPoints {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.space().hash(state);
    }
}

/// No points, of the dimension of another set.
fn empty_like(shape: &Shape) -> AnySpace {
    AnySpace::empty(shape.space().dim()).expect("the dimension is that of a space")
}

/// How many answers of each kind are kept; beyond, the memory is emptied and fills anew.
const MEMO_LIMIT: usize = 1 << 18;

/// How many rectangles all answers of a kind have: scattered points have as many as the points. Some 64 to 128 MiB of
/// each kind.
const MEMO_RECTS: usize = 1 << 22;

/// Interns sets of points and remembers the results of operations on them.
///
/// Sets of different dimension share no point: they never overlap.
#[derive(Default)]
pub struct ShapeTable {
    next_id: AtomicU64,
    shapes: RwLock<Shapes>,
    overlaps: Memo<bool>,
    intersections: Memo<Shape>,
    differences: Memo<Shape>,
    unions: Memo<Shape>,
}

#[derive(Default)]
struct Shapes {
    known: FxHashSet<ByPoints>,
    /// The rectangles of all of them.
    rects: usize,
    sweep_at: usize,
    sweep_at_rects: usize,
}

impl ShapeTable {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The shape of a set of points. Cost: a hash of its rectangles.
    pub fn intern(&self, space: &AnySpace) -> Shape {
        if let Some(known) = self.shapes.read().known.get(space) {
            return known.0.clone();
        }
        let mut shapes = self.shapes.write();
        if let Some(known) = shapes.known.get(space) {
            return known.0.clone();
        }
        shapes.sweep();
        let shape =
            Shape(Arc::new(Interned { id: self.next_id.fetch_add(1, Ordering::Relaxed), space: space.clone() }));
        shapes.known.insert(ByPoints(shape.clone()));
        shapes.rects += space.rect_count();
        shape
    }

    /// Whether the two sets share a point.
    pub fn overlaps(&self, a: &Shape, b: &Shape) -> bool {
        if a == b {
            return !a.is_empty();
        }
        if !a.space().bounds().overlaps(&b.space().bounds()) {
            return false;
        }
        let (a, b) = if a.id() <= b.id() { (a, b) } else { (b, a) };
        self.overlaps.get(a, b, || a.space().overlaps(b.space()).unwrap_or(false))
    }

    /// The points in both sets.
    pub fn intersection(&self, a: &Shape, b: &Shape) -> Shape {
        if a == b {
            return a.clone();
        }
        let (a, b) = if a.id() <= b.id() { (a, b) } else { (b, a) };
        self.intersections.get(a, b, || {
            let common = a.space().intersection(b.space());
            self.intern(&common.unwrap_or_else(|_| empty_like(a)))
        })
    }

    /// The points of `a` that are not in `b`.
    pub fn difference(&self, a: &Shape, b: &Shape) -> Shape {
        if !a.space().bounds().overlaps(&b.space().bounds()) {
            return a.clone();
        }
        self.differences.get(a, b, || match a.space().difference(b.space()) {
            Ok(rest) => self.intern(&rest),
            Err(_) => a.clone(),
        })
    }

    /// The points in either set, which have the same dimension.
    ///
    /// # Panics
    /// If the dimensions differ.
    pub fn union(&self, a: &Shape, b: &Shape) -> Shape {
        if a == b || b.is_empty() {
            return a.clone();
        }
        if a.is_empty() {
            return b.clone();
        }
        let (a, b) = if a.id() <= b.id() { (a, b) } else { (b, a) };
        self.unions.get(a, b, || {
            let union = a.space().union(b.space());
            self.intern(&union.expect("the sets of a union have one dimension"))
        })
    }

    /// Whether every point of `a` is in `b`.
    pub fn is_subset(&self, a: &Shape, b: &Shape) -> bool {
        let inside = || b.space().bounds().contains_rect(&a.space().bounds()).unwrap_or(false);
        a == b || a.is_empty() || (inside() && self.intersection(a, b) == *a)
    }
}

impl fmt::Debug for ShapeTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShapeTable({} shapes)", self.shapes.read().known.len())
    }
}

impl Shapes {
    /// Forgets shapes without another reference, whenever the table, or what its shapes weigh, has doubled since the
    /// last time.
    fn sweep(&mut self) {
        if self.known.len() < self.sweep_at.max(1024) && self.rects < self.sweep_at_rects.max(MEMO_RECTS) {
            return;
        }
        self.known.retain(|shape| Arc::strong_count(&shape.0.0) > 1);
        self.rects = self.known.iter().map(|shape| shape.0.space().rect_count()).sum();
        (self.sweep_at, self.sweep_at_rects) = (self.known.len() * 2, self.rects * 2);
    }
}

/// Answers about two shapes.
struct Memo<T>(RwLock<Answers<T>>);

struct Answers<T> {
    known: FxHashMap<(u64, u64), T>,
    /// The rectangles of all answers.
    rects: usize,
}

/// An answer about two shapes that can be kept in a [`Memo`].
trait Answer: Clone {
    /// How many rectangles are kept with it.
    fn rects(&self) -> usize;
}

impl Answer for bool {
    fn rects(&self) -> usize {
        0
    }
}

impl Answer for Shape {
    fn rects(&self) -> usize {
        self.space().rect_count()
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(RwLock::new(Answers { known: FxHashMap::default(), rects: 0 }))
    }
}

impl<T: Answer> Memo<T> {
    fn get(&self, a: &Shape, b: &Shape, compute: impl FnOnce() -> T) -> T {
        // Ids are never used twice, so an answer about a forgotten shape is useless but never wrong.
        let key = (a.id(), b.id());
        if let Some(known) = self.0.read().known.get(&key) {
            return known.clone();
        }
        let answer = compute();
        let mut answers = self.0.write();
        if answers.known.len() >= MEMO_LIMIT || answers.rects >= MEMO_RECTS {
            (answers.known, answers.rects) = Default::default();
        }
        answers.rects += answer.rects();
        answers.known.insert(key, answer.clone());
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maniple_space::{IndexSpace, Rect};

    fn shape(table: &ShapeTable, lo: i64, hi: i64) -> Shape {
        table.intern(&AnySpace::from(IndexSpace::from(Rect::<1>::from(lo..hi))))
    }

    #[test]
    fn equal_sets_have_one_shape_however_they_came_about() {
        let table = ShapeTable::new();
        let (a, b) = (shape(&table, 0, 10), shape(&table, 5, 20));
        assert_eq!(table.intersection(&a, &b), shape(&table, 5, 10));
        assert_eq!(table.difference(&a, &b), shape(&table, 0, 5));
        assert_eq!(table.union(&a, &b), shape(&table, 0, 20));
        assert_ne!(a, b);
    }

    #[test]
    fn relations_agree_with_the_sets() {
        let table = ShapeTable::new();
        let (a, b, c) = (shape(&table, 0, 10), shape(&table, 5, 20), shape(&table, 10, 12));
        assert!(table.overlaps(&a, &b) && !table.overlaps(&a, &c));
        assert!(table.is_subset(&c, &b) && !table.is_subset(&a, &b));
        let none = shape(&table, 0, 0);
        assert!(table.is_subset(&none, &a) && !table.overlaps(&none, &a) && !table.overlaps(&none, &none));
    }

    #[test]
    fn sets_of_different_dimension_never_overlap() {
        let table = ShapeTable::new();
        let plane = table.intern(&AnySpace::from(IndexSpace::from(Rect::<2>::from_shape([3, 3]))));
        assert!(!table.overlaps(&plane, &shape(&table, 0, 10)));
    }

    #[test]
    fn shapes_that_nobody_holds_are_forgotten() {
        let table = ShapeTable::new();
        for i in 0..100_000 {
            shape(&table, i, i + 1);
        }
        assert!(table.shapes.read().known.len() <= 2048);
    }

    #[test]
    fn scattered_shapes_that_nobody_holds_are_forgotten_after_fewer() {
        const POINTS: i64 = 1 << 16;
        let table = ShapeTable::new();
        let whole = shape(&table, 0, 2 * POINTS);
        for i in 0..200 {
            let every_second =
                IndexSpace::from_rects((i..POINTS).map(|point| Rect::<1>::from(2 * point..2 * point + 1)));
            let scattered = table.intern(&every_second.into());
            assert_eq!(table.difference(&whole, &scattered).space().volume(), (POINTS + i) as u64);
        }
        let rects = table.shapes.read().known.iter().map(|shape| shape.0.space().rect_count()).sum::<usize>();
        assert!(rects <= 2 * MEMO_RECTS + POINTS as usize, "{rects} rectangles are kept of {}", 400 * POINTS);
        assert!(table.differences.0.read().rects <= MEMO_RECTS + POINTS as usize);
    }
}
