//! The layout of instances: the place of each field of each point.
//!
//! A [`LayoutSpec`] says what to store: the points, the fields, which dimension runs fastest, and how fields are
//! arranged. It is built into a [`Layout`]: a size and, for each field, a [`FieldLayout`] that knows the offset of each
//! point. Where the points are one rectangle, that is a [`FieldAddress`]: one formula without branches, whatever the
//! arrangement. The rectangles of other spaces lie one after the other; [`with_gaps`] makes them fewer.
//!
//! ```
//! use maniple_realm::layout::{Arrangement, FieldId, FieldSpec, LayoutSpec};
//! use maniple_space::{Point, Rect};
//!
//! let fields = vec![FieldSpec::of::<f64>(FieldId(0)), FieldSpec::of::<u8>(FieldId(1))];
//! let bounds = Rect::<2>::from_shape([10, 10]);
//! let spec = LayoutSpec::new(bounds.into(), fields).arranged(Arrangement::ArrayOfStructs);
//! let layout = spec.build()?;
//!
//! assert_eq!(layout.bytes(), 100 * 16);
//! let second = layout.field(FieldId(1)).unwrap();
//! assert_eq!(second.offset(Point([0, 3])), 3 * 16 + 8);
//! # Ok::<(), maniple_realm::layout::LayoutError>(())
//! ```

mod address;
mod constraint;
mod field;
mod gaps;

use std::fmt;

use maniple_space::{AnyRect, AnySpace};
use thiserror::Error;

use field::Ranking;

pub use address::{AffineAddress, FieldAddress};
pub use constraint::LayoutConstraint;
pub use field::FieldLayout;
pub use gaps::{has_room, keeps_in_one, padded, with_gaps};

/// The most dimensions that a point has.
pub const MAX_DIMENSIONS: usize = 4;

/// Arrays at least this long start on a cache line of their own.
const CACHE_LINE: usize = 64;

/// Names a field of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldId(pub u32);

impl fmt::Display for FieldId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "field {}", self.0)
    }
}

/// A field to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldSpec {
    /// Its name.
    pub id: FieldId,
    /// The bytes of one value: a multiple of the alignment.
    pub size: usize,
    /// The alignment of a value in bytes: a power of two.
    pub align: usize,
}

impl FieldSpec {
    /// A field of values of type `T`.
    #[must_use]
    pub fn of<T>(id: FieldId) -> Self {
        Self { id, size: size_of::<T>(), align: align_of::<T>() }
    }
}

/// How the fields of an instance lie among each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arrangement {
    /// All values of one field, then all of the next.
    #[default]
    StructOfArrays,
    /// All fields of one point, then all of the next.
    ArrayOfStructs,
    /// For so many points, a power of two: all their values of one field, then of the next; then the next so many
    /// points.
    Blocked(u32),
}

impl fmt::Display for Arrangement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StructOfArrays => formatter.write_str("struct of arrays"),
            Self::ArrayOfStructs => formatter.write_str("array of structs"),
            Self::Blocked(points) => write!(formatter, "blocks of {points}"),
        }
    }
}

/// The dimensions of an instance from the slowest to the fastest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DimensionOrder {
    dim: u8,
    slowest_first: [u8; MAX_DIMENSIONS],
}

impl DimensionOrder {
    /// The last dimension fastest, as in C.
    ///
    /// # Panics
    ///
    /// If there are none or more than four.
    #[must_use]
    pub fn row_major(dim: usize) -> Self {
        assert!((1..=MAX_DIMENSIONS).contains(&dim), "expected 1 to 4 dimensions, found {dim}");
        Self { dim: dim as u8, slowest_first: std::array::from_fn(|place| if place < dim { place as u8 } else { 0 }) }
    }

    /// The first dimension fastest, as in Fortran.
    ///
    /// # Panics
    ///
    /// If there are none or more than four.
    #[must_use]
    pub fn column_major(dim: usize) -> Self {
        let mut order = Self::row_major(dim);
        order.slowest_first[..dim].reverse();
        order
    }

    /// Any order: a permutation of the dimensions, the slowest first.
    ///
    /// # Errors
    ///
    /// If there are none or more than four, or it is no permutation.
    pub fn new(slowest_first: &[usize]) -> Result<Self, LayoutError> {
        let dim = slowest_first.len();
        let each_once = (0..dim).all(|dimension| slowest_first.contains(&dimension));
        if !(1..=MAX_DIMENSIONS).contains(&dim) || !each_once {
            return Err(LayoutError::NotAnOrder { found: slowest_first.to_vec() });
        }
        let mut order = Self::row_major(dim);
        for (place, &dimension) in slowest_first.iter().enumerate() {
            order.slowest_first[place] = dimension as u8;
        }
        Ok(order)
    }

    /// The number of dimensions.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim.into()
    }

    /// The dimensions, the slowest first.
    pub fn slowest_first(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let dim = self.dim();
        self.slowest_first
            .into_iter()
            .take(dim)
            .map(usize::from)
            .collect::<smallvec::SmallVec<[usize; 4]>>()
            .into_iter()
    }

    /// The dimension along which neighbours lie next to each other.
    #[must_use]
    pub fn fastest(&self) -> usize {
        self.slowest_first[self.dim() - 1].into()
    }
}

impl fmt::Debug for DimensionOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.slowest_first()).finish()
    }
}

/// The specification of a layout: the points and fields that an instance is to store, and their arrangement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LayoutSpec {
    /// The points stored.
    pub points: AnySpace,
    /// Which dimension runs fastest.
    pub order: DimensionOrder,
    /// The fields stored.
    pub fields: Vec<FieldSpec>,
    /// How the fields lie among each other.
    pub arrangement: Arrangement,
    /// The address of the first value of each array, or of the first block, is a multiple of so many bytes: a power of
    /// two.
    pub align: usize,
}

/// The largest alignment that a layout can ask for: that of a large page.
pub const MAX_ALIGN: usize = 1 << 21;

impl LayoutSpec {
    /// Row-major arrays, one a field: change it by [`arranged`](Self::arranged) and [`ordered`](Self::ordered).
    #[must_use]
    pub fn new(points: AnySpace, fields: Vec<FieldSpec>) -> Self {
        let order = DimensionOrder::row_major(points.dim());
        Self { points, order, fields, arrangement: Arrangement::StructOfArrays, align: 1 }
    }

    /// With another arrangement of fields.
    #[must_use]
    pub fn arranged(mut self, arrangement: Arrangement) -> Self {
        self.arrangement = arrangement;
        self
    }

    /// With another order of dimensions.
    #[must_use]
    pub fn ordered(mut self, order: DimensionOrder) -> Self {
        self.order = order;
        self
    }

    /// With the first value of each array, or the first block, at a multiple of so many bytes.
    #[must_use]
    pub fn aligned(mut self, align: usize) -> Self {
        self.align = align;
        self
    }

    /// Lays the fields out.
    ///
    /// # Errors
    ///
    /// If the alignment is no power of two, or larger than [`MAX_ALIGN`], a field is given twice, its size and
    /// alignment make no sense together, the order is of another number of dimensions, a block is no power of two, or
    /// the whole is larger than memory can be.
    pub fn build(self) -> Result<Layout, LayoutError> {
        Layout::new(self)
    }
}

/// The place of each field of each point in an instance. Made by [`LayoutSpec::build`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    spec: LayoutSpec,
    volume: usize,
    bytes: usize,
    align: usize,
    /// In the order of their ids.
    fields: Vec<(FieldId, FieldLayout)>,
}

impl Layout {
    fn new(spec: LayoutSpec) -> Result<Self, LayoutError> {
        check(&spec)?;
        let Ranking { strides, origin, others, volume } = Ranking::of(&spec.points, spec.order)?;
        let too_large = || LayoutError::TooLarge { bounds: spec.points.bounds() };
        let block = match spec.arrangement {
            Arrangement::StructOfArrays => None,
            Arrangement::ArrayOfStructs => Some(1),
            Arrangement::Blocked(points) => Some(points as usize),
        };
        let whole = BlockShape::of(&spec.fields, block.unwrap_or(volume), block.is_none().then_some(spec.align));
        let whole = whole.ok_or_else(too_large)?;
        let blocks = block.map_or(1, |block| volume.div_ceil(block));
        let align = whole.align.max(spec.align);
        let bytes = whole.bytes.checked_mul(blocks).filter(|&bytes| bytes <= isize::MAX as usize - align);
        let bytes = bytes.ok_or_else(too_large)?;
        let mut fields: Vec<_> = spec
            .fields
            .iter()
            .zip(&whole.offsets)
            .map(|(field, &base)| {
                // Where blocks follow each other without a gap in the field, they are one array.
                let block = block.filter(|&block| block.checked_mul(field.size) != Some(whole.bytes));
                let block = block.map(|block| (block, whole.bytes));
                let address = FieldAddress::new(base, field.size, strides, origin, block);
                (field.id, FieldLayout::new(address, others.as_ref()))
            })
            .collect();
        fields.sort_unstable_by_key(|(id, _)| *id);
        if let Some(pair) = fields.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(LayoutError::RepeatedField { field: pair[0].0 });
        }
        Ok(Self { spec, volume, bytes, align, fields })
    }

    /// The specification that it was made from.
    #[must_use]
    pub fn spec(&self) -> &LayoutSpec {
        &self.spec
    }

    /// The points stored.
    #[must_use]
    pub fn points(&self) -> &AnySpace {
        &self.spec.points
    }

    /// The smallest rectangle around the points stored.
    #[must_use]
    pub fn bounds(&self) -> AnyRect {
        self.spec.points.bounds()
    }

    /// The number of points stored.
    #[must_use]
    pub fn volume(&self) -> usize {
        self.volume
    }

    /// The number of dimensions.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.spec.points.dim()
    }

    /// The size of the whole, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The alignment that the whole should have, in bytes: that of a cache line if there are arrays of some length.
    #[must_use]
    pub fn align(&self) -> usize {
        self.align
    }

    /// The alignment that the whole must have, in bytes, for its values to be aligned.
    #[must_use]
    pub fn required_align(&self) -> usize {
        self.spec.fields.iter().map(|field| field.align).max().unwrap_or(1)
    }

    /// The layout of a field, if it is stored.
    #[must_use]
    pub fn field(&self, field: FieldId) -> Option<&FieldLayout> {
        let place = self.fields.binary_search_by_key(&field, |(id, _)| *id).ok()?;
        Some(&self.fields[place].1)
    }

    /// The size and alignment of a field, if it is stored.
    #[must_use]
    pub fn field_spec(&self, field: FieldId) -> Option<&FieldSpec> {
        self.spec.fields.iter().find(|spec| spec.id == field)
    }

    /// The fields stored, in the order of their ids, and where they lie.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (FieldId, &FieldLayout)> {
        self.fields.iter().map(|(id, layout)| (*id, layout))
    }

    /// The dimension along which neighbours lie next to each other (but for the other fields between them).
    #[must_use]
    pub fn unit_stride_dimension(&self) -> usize {
        self.spec.order.fastest()
    }

    /// Whether a part of the points stored lies in one of their rectangles, if it is a rectangle itself: then its
    /// values are at equal distances in each dimension, unless they are stored in blocks. True of parts that are no
    /// rectangle.
    #[must_use]
    pub fn keeps_in_one(&self, part: &AnySpace) -> bool {
        gaps::lies_in_one(&self.spec.points, part)
    }

    /// Whether the first value of each array, or the first block, is at a multiple of so many bytes, if the whole is
    /// [aligned](Self::align) as it should be.
    #[must_use]
    pub fn is_aligned(&self, align: usize) -> bool {
        let is_spread = self.spec.arrangement == Arrangement::StructOfArrays;
        let starts = |(_, layout): &(FieldId, FieldLayout)| layout.ranked().offset_of_linear(0).is_multiple_of(align);
        self.align >= align && (!is_spread || self.fields.iter().all(starts))
    }

    /// Whether the layout is as the constraint wants it.
    #[must_use]
    pub fn satisfies(&self, constraint: &LayoutConstraint) -> bool {
        constraint.allows(self)
    }
}

fn check(spec: &LayoutSpec) -> Result<(), LayoutError> {
    if spec.order.dim() != spec.points.dim() {
        return Err(LayoutError::OrderOfOtherDimension { bounds: spec.points.dim(), order: spec.order.dim() });
    }
    if let Arrangement::Blocked(points) = spec.arrangement
        && !points.is_power_of_two()
    {
        return Err(LayoutError::BlockNotPowerOfTwo { found: points });
    }
    if !spec.align.is_power_of_two() || spec.align > MAX_ALIGN {
        return Err(LayoutError::Alignment { found: spec.align });
    }
    for &FieldSpec { id, size, align } in &spec.fields {
        if !align.is_power_of_two() || size % align != 0 {
            return Err(LayoutError::MisalignedField { field: id, size, align });
        }
    }
    Ok(())
}

/// Arrays of so many values of each field, one after the other.
struct BlockShape {
    offsets: Vec<usize>,
    bytes: usize,
    align: usize,
}

impl BlockShape {
    /// Lays out an array of `points` values for each field. `spread` is given if these arrays are the whole instance:
    /// then each is aligned to so many bytes, and to a cache line if it is at least as long as one. `None` if the size
    /// overflows.
    fn of(fields: &[FieldSpec], points: usize, spread: Option<usize>) -> Option<Self> {
        let mut shape = Self { offsets: Vec::with_capacity(fields.len()), bytes: 0, align: 1 };
        for field in fields {
            let bytes = field.size.checked_mul(points)?;
            let line = if bytes >= CACHE_LINE { CACHE_LINE } else { 1 };
            let align = spread.map_or(field.align, |align| field.align.max(align).max(line));
            let offset = shape.bytes.checked_next_multiple_of(align)?;
            shape.offsets.push(offset);
            shape.bytes = offset.checked_add(bytes)?;
            shape.align = shape.align.max(align);
        }
        if spread.is_none() {
            shape.bytes = shape.bytes.checked_next_multiple_of(shape.align)?;
        }
        Some(shape)
    }
}

/// A layout that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The bytes cannot be counted, let alone stored.
    #[error("the fields over {bounds} take more bytes than memory can have: store fewer points or fields")]
    TooLarge {
        /// The points to store.
        bounds: AnyRect,
    },
    /// A field given twice.
    #[error("{field} is given twice in one layout: give each field once")]
    RepeatedField {
        /// The field.
        field: FieldId,
    },
    /// A size and an alignment that do not go together.
    #[error(
        "{field} has values of {size} bytes aligned to {align}: expected a power of two as the alignment, and a multiple \
         of it as the size"
    )]
    MisalignedField {
        /// The field.
        field: FieldId,
        /// The bytes of a value.
        size: usize,
        /// Their alignment.
        align: usize,
    },
    /// An alignment that no address has.
    #[error("expected an alignment that is a power of two and at most {MAX_ALIGN} bytes, found {found}")]
    Alignment {
        /// The bytes.
        found: usize,
    },
    /// A block size that the address formula cannot express.
    #[error("expected blocks of a power of two points, found {found}")]
    BlockNotPowerOfTwo {
        /// The points of a block.
        found: u32,
    },
    /// A list of dimensions that is no permutation.
    #[error("expected the dimensions 0 to n - 1, each once, with n from 1 to 4; found {found:?}")]
    NotAnOrder {
        /// The list.
        found: Vec<usize>,
    },
    /// An order for other bounds.
    #[error("the bounds have {bounds} dimensions, but the order {order}: expected the same number")]
    OrderOfOtherDimension {
        /// The dimensions of the bounds.
        bounds: usize,
        /// The dimensions of the order.
        order: usize,
    },
}

#[cfg(test)]
pub(crate) mod tests;
