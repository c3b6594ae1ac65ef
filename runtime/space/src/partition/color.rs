//! Partitions by explicit colors, and by colors stored in a field.

use super::collect::Runs;
use super::error::checked_pieces;
use super::field::{At, Values};
use super::{FieldRead, PartitionError};
use crate::{IndexSpace, Point, Rect};

/// The colors of a partition, as they are stored in a field of colors.
///
/// A number `n` of pieces has the colors `0..n`, stored as `i64`; a rectangle has its points,
/// numbered row-major.
pub trait ColorSet {
    /// The type of the values that a field of colors stores.
    type Color: Copy;

    /// The number of colors, at most `u64::MAX`.
    fn count(&self) -> u64;

    /// The number of a color; `None` for values that are not colors.
    fn index(&self, color: Self::Color) -> Option<usize>;
}

impl ColorSet for usize {
    type Color = i64;

    fn count(&self) -> u64 {
        *self as u64
    }

    #[inline]
    fn index(&self, color: i64) -> Option<usize> {
        usize::try_from(color).ok().filter(|color| color < self)
    }
}

impl<const C: usize> ColorSet for Rect<C> {
    type Color = Point<C>;

    fn count(&self) -> u64 {
        self.volume()
    }

    #[inline]
    fn index(&self, color: Point<C>) -> Option<usize> {
        self.contains(color).then(|| self.linear(color) as usize)
    }
}

/// The pieces named by a list of colored rectangles. A color may have many rectangles, in any
/// order and overlapping, or none; different colors may overlap.
///
/// # Errors
/// When there are no colors, a color is out of range, or a rectangle reaches out of the parent.
pub fn by_coloring<const D: usize>(
    parent: &IndexSpace<D>,
    colors: usize,
    coloring: impl IntoIterator<Item = (usize, Rect<D>)>,
) -> Result<Vec<IndexSpace<D>>, PartitionError> {
    let mut lists = vec![Vec::new(); checked_pieces(colors as u64)?];
    for (color, rect) in coloring {
        lists.get_mut(color).ok_or(PartitionError::ColorOutOfRange { color, colors })?.push(rect);
    }
    let pieces = lists.into_iter().enumerate().map(|(color, rects)| {
        let piece = IndexSpace::from_rects(rects);
        match piece.rects().iter().find(|rect| !parent.contains_rect(rect)) {
            None => Ok(piece),
            Some(&rect) => Err(PartitionError::OutsideParent {
                color,
                rect: Box::new(rect.into()),
                bounds: Box::new(parent.bounds().into()),
            }),
        }
    });
    pieces.collect()
}

/// The pieces named by a field of colors: piece `c` has the points whose field holds `c`. Points
/// with a value that is not a color are in no piece. The pieces are disjoint.
///
/// Linear in the points of the parent.
///
/// ```
/// use maniple_space::{partition, IndexSpace, Point, Rect};
/// let parent = IndexSpace::from(Rect::from(0..9));
/// let pieces = partition::by_field(&parent, 3usize, &|p: Point<1>| p[0] % 4)?;
/// assert_eq!(pieces[1], IndexSpace::from_points([1, 5].map(Point::from)));
/// # Ok::<(), partition::PartitionError>(())
/// ```
///
/// # Errors
/// When there are no colors, or too many.
pub fn by_field<const D: usize, S: ColorSet>(
    parent: &IndexSpace<D>,
    colors: S,
    field: &impl FieldRead<S::Color, D>,
) -> Result<Vec<IndexSpace<D>>, PartitionError> {
    Ok(pieces_by_field(colors, &At(field, parent))?.into_spaces(parent))
}

/// The points of each color.
pub(super) fn pieces_by_field<S: ColorSet>(colors: S, field: &impl Values<S::Color>) -> Result<Runs, PartitionError> {
    let mut pieces = Runs::new(checked_pieces(colors.count())?);
    field.for_each(|number, color| {
        if let Some(piece) = colors.index(color) {
            pieces.push(piece, number);
        }
    });
    Ok(pieces)
}
