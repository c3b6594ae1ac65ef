//! Which part of an equivalence set something applies to.

use maniple_region::{Shape, ShapeTable};
use maniple_space::AnySpace;
use smallvec::SmallVec;

/// A part of a set of points that is known from the context (*the whole*). Nearly always everything, which costs
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cover {
    /// No point.
    Nothing,
    /// All points of the whole.
    Everything,
    /// Neither empty nor the whole.
    Part(Shape),
}

/// Fewer parts are united one after the other.
const FEW_PARTS: usize = 8;

impl Cover {
    /// The part of `whole` that is also in `region`.
    #[inline]
    pub(super) fn of(region: &Shape, whole: &Shape, shapes: &ShapeTable) -> Self {
        if !shapes.overlaps(region, whole) {
            return Self::Nothing;
        }
        Self::from_part(shapes.intersection(region, whole), whole)
    }

    fn from_part(part: Shape, whole: &Shape) -> Self {
        if part == *whole {
            Self::Everything
        } else if part.is_empty() {
            Self::Nothing
        } else {
            Self::Part(part)
        }
    }

    #[inline]
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }

    #[inline]
    pub(super) fn is_everything(&self) -> bool {
        *self == Self::Everything
    }

    #[inline]
    pub(super) fn overlaps(&self, other: &Self, shapes: &ShapeTable) -> bool {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => false,
            (Self::Everything, _) | (_, Self::Everything) => true,
            (Self::Part(a), Self::Part(b)) => shapes.overlaps(a, b),
        }
    }

    #[inline]
    pub(super) fn contains(&self, other: &Self, shapes: &ShapeTable) -> bool {
        match (self, other) {
            (Self::Everything, _) | (_, Self::Nothing) => true,
            (Self::Nothing, _) | (_, Self::Everything) => false,
            (Self::Part(a), Self::Part(b)) => shapes.is_subset(b, a),
        }
    }

    #[inline]
    pub(super) fn minus(&self, other: &Self, whole: &Shape, shapes: &ShapeTable) -> Self {
        match (self, other) {
            (_, Self::Everything) | (Self::Nothing, _) => Self::Nothing,
            (_, Self::Nothing) => self.clone(),
            (Self::Everything, Self::Part(b)) => Self::from_part(shapes.difference(whole, b), whole),
            (Self::Part(a), Self::Part(b)) => Self::from_part(shapes.difference(a, b), whole),
        }
    }

    #[inline]
    pub(super) fn plus(&self, other: &Self, whole: &Shape, shapes: &ShapeTable) -> Self {
        match (self, other) {
            (Self::Everything, _) | (_, Self::Everything) => Self::Everything,
            (Self::Nothing, cover) | (cover, Self::Nothing) => cover.clone(),
            (Self::Part(a), Self::Part(b)) => Self::from_part(shapes.union(a, b), whole),
        }
    }

    /// Returns the union of several parts of `whole`. It is found at once: to add many parts one after the other takes
    /// the square of the time, and makes a shape each time.
    pub(super) fn union_of<'a>(covers: impl IntoIterator<Item = &'a Self>, whole: &Shape, shapes: &ShapeTable) -> Self {
        let mut parts: SmallVec<[&Shape; 8]> = SmallVec::new();
        for cover in covers {
            match cover {
                Self::Everything => return Self::Everything,
                Self::Nothing => {}
                Self::Part(part) => parts.push(part),
            }
        }
        match parts[..] {
            [] => Self::Nothing,
            // Of few, the answers are remembered.
            [first, ref others @ ..] if others.len() < FEW_PARTS => {
                let add = |all: Shape, part: &&Shape| shapes.union(&all, part);
                Self::from_part(others.iter().fold(first.clone(), add), whole)
            }
            _ => {
                let union = AnySpace::union_all(whole.space().dim(), parts.into_iter().map(Shape::space));
                Self::from_part(shapes.intern(&union.expect("parts have the dimension of the whole")), whole)
            }
        }
    }

    #[inline]
    pub(super) fn and(&self, other: &Self, whole: &Shape, shapes: &ShapeTable) -> Self {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            (Self::Everything, cover) | (cover, Self::Everything) => cover.clone(),
            (Self::Part(a), Self::Part(b)) if shapes.overlaps(a, b) => {
                Self::from_part(shapes.intersection(a, b), whole)
            }
            (Self::Part(_), Self::Part(_)) => Self::Nothing,
        }
    }

    /// The same points seen from a smaller whole.
    #[inline]
    pub(super) fn within(&self, smaller: &Shape, shapes: &ShapeTable) -> Self {
        match self {
            Self::Part(part) => Self::of(part, smaller, shapes),
            cover => cover.clone(),
        }
    }

    /// The points.
    #[inline]
    pub(super) fn shape<'a>(&'a self, whole: &'a Shape) -> Option<&'a Shape> {
        match self {
            Self::Nothing => None,
            Self::Everything => Some(whole),
            Self::Part(part) => Some(part),
        }
    }
}
