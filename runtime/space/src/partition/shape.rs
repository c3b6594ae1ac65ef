//! Partitions by sizes alone.

use std::iter;

use super::PartitionError;
use super::error::checked_pieces;
use crate::bands::{self, Bands};
use crate::{IndexSpace, Point, Rect};

/// Cuts a space into pieces whose volumes differ by at most one point, consecutive in row-major
/// order. With more pieces than points, some pieces are empty.
///
/// A piece that ends within a row has a ragged edge; for rectangles, take [`blocks`].
///
/// ```
/// use maniple_space::{partition, IndexSpace, Rect};
/// let pieces = partition::equal(&Rect::from(0..10).into(), 3)?;
/// assert_eq!(pieces, [0..3, 3..6, 6..10].map(|r| IndexSpace::from(Rect::from(r))));
/// # Ok::<(), partition::PartitionError>(())
/// ```
///
/// # Errors
/// When no pieces are asked for, or too many, or the space has 2^64 points or more.
pub fn equal<const D: usize>(parent: &IndexSpace<D>, pieces: usize) -> Result<Vec<IndexSpace<D>>, PartitionError> {
    let pieces = checked_pieces(pieces as u64)?;
    let volume = u128::from(countable(parent)?);
    let end = |i: usize| (volume * (i as u128 + 1) / pieces as u128) as u64;
    Ok(cut_at(parent, (0..pieces).map(end)))
}

/// Cuts a space into pieces with volumes in the ratio of the weights, to within one point,
/// consecutive in row-major order. A piece of weight 0 is empty.
///
/// # Errors
/// When there are no weights, or all are 0, or the space has 2^64 points or more.
pub fn weighted<const D: usize>(parent: &IndexSpace<D>, weights: &[u64]) -> Result<Vec<IndexSpace<D>>, PartitionError> {
    let pieces = checked_pieces(weights.len() as u64)?;
    let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    if total == 0 {
        return Err(PartitionError::WeightsAllZero { pieces });
    }
    let volume = countable(parent)?;
    let ends = weights.iter().scan(0u128, |sum, &weight| {
        *sum += u128::from(weight);
        Some(scaled(volume, *sum, total))
    });
    Ok(cut_at(parent, ends))
}

/// The number of points of a space that is to be cut by it.
fn countable<const D: usize>(parent: &IndexSpace<D>) -> Result<u64, PartitionError> {
    parent.checked_volume().ok_or_else(|| PartitionError::TooManyPoints { bounds: Box::new(parent.bounds().into()) })
}

/// `volume * part / whole`, rounded down, for `part <= whole`.
fn scaled(volume: u64, part: u128, whole: u128) -> u64 {
    // Weights that sum to more than 2^64 are rounded first, as the product must fit 128 bits.
    let excess = (128 - whole.leading_zeros()).saturating_sub(64);
    if part == whole {
        return volume;
    }
    (u128::from(volume) * (part >> excess) / (whole >> excess)).min(u128::from(volume)) as u64
}

/// Cuts a space into consecutive pieces in row-major order; piece `i` ends before the point of
/// rank `ends[i]`, except that the last takes all that is left.
fn cut_at<const D: usize>(parent: &IndexSpace<D>, ends: impl Iterator<Item = u64>) -> Vec<IndexSpace<D>> {
    let quotas: Vec<u64> = ends.scan(0, |previous, end| Some(end - std::mem::replace(previous, end))).collect();
    let mut dealer = Dealer { dealt: vec![Vec::new(); quotas.len()], open: 0, left: quotas[0], quotas };
    dealer.deal(parent.rects(), 0, Rect::EMPTY);
    dealer.dealt.iter().map(|rects| IndexSpace::from_banded(rects)).collect()
}

/// Hands out points in row-major order to one piece after another.
struct Dealer<const D: usize> {
    /// The volume that each piece is to have.
    quotas: Vec<u64>,
    /// The rectangles that each piece has.
    dealt: Vec<Vec<Rect<D>>>,
    /// The piece that receives.
    open: usize,
    /// The points that it still lacks.
    left: u64,
}

impl<const D: usize> Dealer<D> {
    /// Deals a cross-section at `dim`; `slab` holds the intervals of the dimensions before.
    fn deal(&mut self, section: &[Rect<D>], dim: usize, slab: Rect<D>) {
        for band in Bands::new(section, dim) {
            let slice_volume = bands::section_volume(band.section, dim + 1);
            let mut lo = band.lo;
            loop {
                let rest = slab.with_interval(dim, lo, band.hi);
                let whole = self.whole_slices(slice_volume, rest.extent(dim));
                if whole == 0 {
                    // The open piece ends within this slice.
                    self.deal(band.section, dim + 1, slab.with_interval(dim, lo, lo));
                } else {
                    let hi = lo.wrapping_add((whole - 1) as i64);
                    let slab = slab.with_interval(dim, lo, hi);
                    bands::append_section(band.section, dim, slab, &mut self.dealt[self.open]);
                    self.left = self.left.saturating_sub(whole.saturating_mul(slice_volume));
                }
                let taken = whole.max(1);
                if taken >= rest.extent(dim) {
                    break;
                }
                lo = lo.wrapping_add(taken as i64);
            }
        }
    }

    /// How many of the next `slices` go to the open piece as a whole, after pieces that have
    /// their fill are closed.
    fn whole_slices(&mut self, slice_volume: u64, slices: u64) -> u64 {
        while self.left == 0 && self.open + 1 < self.quotas.len() {
            self.open += 1;
            self.left = self.quotas[self.open];
        }
        let is_last = self.open + 1 == self.quotas.len();
        if is_last { slices } else { slices.min(self.left / slice_volume) }
    }
}

/// Cuts a space into the blocks of a regular grid that starts at the lowest corner of its bounds.
/// Returns the rectangle of colors, from the origin, and the pieces in row-major order of colors.
/// Blocks at the upper ends may be smaller; of a sparse space, some may be empty. An empty space has one block,
/// which is empty.
///
/// # Errors
/// When a block size is not positive, or there would be too many blocks.
pub fn blocks<const D: usize>(
    parent: &IndexSpace<D>,
    block_shape: [i64; D],
) -> Result<(Rect<D>, Vec<IndexSpace<D>>), PartitionError> {
    tiles(parent, block_shape, [0; D])
}

/// The [`blocks`] of a space, each widened by `halo[d]` points on both sides of every dimension
/// `d`, as far as the space reaches.
///
/// ```
/// use maniple_space::{partition, IndexSpace, Rect};
/// let grid = IndexSpace::from(Rect::from_shape([4, 6]));
/// let (colors, tiles) = partition::tiles(&grid, [2, 3], [1, 1])?;
/// assert_eq!(colors, Rect::from_shape([2, 2]));
/// assert_eq!(tiles[3].bounds(), Rect::new([1, 2], [3, 5]));
/// # Ok::<(), partition::PartitionError>(())
/// ```
///
/// # Errors
/// As [`blocks`], and when the halo is negative.
pub fn tiles<const D: usize>(
    parent: &IndexSpace<D>,
    tile_shape: [i64; D],
    halo: [i64; D],
) -> Result<(Rect<D>, Vec<IndexSpace<D>>), PartitionError> {
    if let Some(dimension) = (0..D).find(|&d| tile_shape[d] < 1) {
        return Err(PartitionError::BlockSize { dimension, found: tile_shape[dimension] });
    }
    check_halo(halo)?;
    let bounds = parent.bounds();
    let counts: [u64; D] = std::array::from_fn(|d| match bounds.extent(d) {
        // A space without points has one block without points.
        0 => 1,
        // From the last offset, as the extent of all of `i64` does not fit `u64`.
        _ => {
            let last = bounds.hi.0[d].wrapping_sub(bounds.lo.0[d]) as u64;
            (last / tile_shape[d] as u64).saturating_add(1)
        }
    });
    checked_pieces(counts.iter().fold(1, |product, &count| product.saturating_mul(count)))?;
    let colors = Rect::from_shape(counts.map(|count| count as i64));
    let pieces = colors.points().map(|color| {
        // The first tile starts at the bounds, so no tile starts beyond `i64`.
        let steps = Point(tile_shape).zip_with(color, i64::wrapping_mul);
        let lo = bounds.lo.zip_with(steps, i64::wrapping_add);
        let hi = lo.zip_with(Point(tile_shape), |lo, size| lo.saturating_add(size - 1));
        let tile = Rect { lo, hi }.intersection(&bounds);
        parent.intersection(&tile.grow(Point(halo)).into())
    });
    let pieces = pieces.collect();
    Ok((colors, pieces))
}

/// The pieces, each widened by `halo[d]` points on both sides of every dimension `d`, as far as the parent reaches: the
/// parent's points that are, in each dimension, no further than that from a point of the piece.
///
/// Pieces need not be within the parent, nor the parent's points around them in any of the pieces.
///
/// ```
/// use maniple_space::{partition, IndexSpace, Rect};
/// let (grid, inside) = (Rect::from_shape([4, 6]), IndexSpace::from(Rect::new([1, 1], [2, 4])));
/// let (_, tiles) = partition::blocks(&inside, [2, 2])?;
/// let around = partition::around(&grid.into(), &tiles, [1, 1])?;
/// assert_eq!(around[0].bounds(), Rect::new([0, 0], [3, 3]));
/// # Ok::<(), partition::PartitionError>(())
/// ```
///
/// # Errors
/// When the halo is negative.
pub fn around<const D: usize>(
    parent: &IndexSpace<D>,
    pieces: &[IndexSpace<D>],
    halo: [i64; D],
) -> Result<Vec<IndexSpace<D>>, PartitionError> {
    check_halo(halo)?;
    let grown = |piece: &IndexSpace<D>| match piece.rects() {
        [rect] => IndexSpace::from(rect.grow(Point(halo))),
        rects => IndexSpace::from_rects(rects.iter().map(|rect| rect.grow(Point(halo)))),
    };
    Ok(pieces.iter().map(|piece| parent.intersection(&grown(piece))).collect())
}

fn check_halo<const D: usize>(halo: [i64; D]) -> Result<(), PartitionError> {
    match (0..D).find(|&d| halo[d] < 0) {
        Some(dimension) => Err(PartitionError::NegativeHalo { dimension, found: halo[dimension] }),
        None => Ok(()),
    }
}

/// For each color `c`, the points of the space in `extent` moved by `transform * c + offset`:
/// tilings, with or without halo, strips, diagonals.
///
/// `transform[d][k]` is how far a step of color dimension `k` moves the piece in dimension `d`.
///
/// # Errors
/// When there are no colors, or too many.
pub fn restriction<const D: usize, const C: usize>(
    parent: &IndexSpace<D>,
    transform: [[i64; C]; D],
    offset: Point<D>,
    extent: Rect<D>,
    colors: Rect<C>,
) -> Result<Vec<IndexSpace<D>>, PartitionError> {
    checked_pieces(colors.volume())?;
    let bounds = parent.bounds();
    let piece = |color: Point<C>| match moved_by_matrix(&extent, &transform, color, offset, &bounds) {
        Some(placed) => parent.intersection(&placed.into()),
        None => IndexSpace::empty(),
    };
    Ok(colors.points().map(piece).collect())
}

/// Returns the part within `bounds` of a rectangle moved by `transform * color + offset`. `None` if the rectangle is
/// empty or moves beyond the coordinates that exist.
fn moved_by_matrix<const D: usize, const C: usize>(
    rect: &Rect<D>,
    transform: &[[i64; C]; D],
    color: Point<C>,
    offset: Point<D>,
    bounds: &Rect<D>,
) -> Option<Rect<D>> {
    if rect.is_empty() {
        return None;
    }
    let mut placed = *bounds;
    for (d, steps) in transform.iter().enumerate() {
        let products = iter::zip(steps, color.0).map(|(&step, at)| i128::from(step) * i128::from(at));
        let by = products.fold(i128::from(offset.0[d]), i128::saturating_add);
        let lo = by.saturating_add(rect.lo.0[d].into()).max(bounds.lo.0[d].into());
        let hi = by.saturating_add(rect.hi.0[d].into()).min(bounds.hi.0[d].into());
        placed = placed.with_interval(d, lo.try_into().ok()?, hi.try_into().ok()?);
    }
    Some(placed)
}
