//! The constraints that a task may put on the layout of its instances.

use std::fmt;

use super::{Arrangement, DimensionOrder, Layout};

/// Conditions on a layout; what is `None` does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LayoutConstraint {
    /// How fields lie among each other. With one field, every arrangement is the same.
    pub arrangement: Option<Arrangement>,
    /// The order of dimensions. Dimensions in which the instance is at most one point wide do not matter.
    pub order: Option<DimensionOrder>,
    /// The address of each field's first value is a multiple of so many bytes: a power of two, at most
    /// [`MAX_ALIGN`](super::MAX_ALIGN). Of an array of structs or blocks, that of the first struct or block. The first
    /// value is that of the first point, in the order of the rectangles, of the region that the constraint is for.
    pub align: Option<u32>,
    /// Room for so many points around the points, on both sides of each dimension, where no value of another point
    /// lies. For points that are a rectangle, and not with an alignment. A [`Layout`] does not know of which points it
    /// is to have room around: see [`has_room`](super::has_room).
    pub pad: Option<u32>,
}

impl LayoutConstraint {
    /// Whether every layout that satisfies this one satisfies the other.
    #[must_use]
    pub fn entails(&self, other: &Self) -> bool {
        let arrangement = other.arrangement.is_none() || self.arrangement == other.arrangement;
        let order = other.order.is_none() || self.order == other.order;
        arrangement && order && self.align.unwrap_or(1) >= other.align.unwrap_or(1) && self.pad >= other.pad
    }

    /// The constraint that stands for both, or `None` if no layout satisfies both in general.
    #[must_use]
    pub fn and(&self, other: &Self) -> Option<Self> {
        fn both<T: PartialEq + Copy>(a: Option<T>, b: Option<T>) -> Option<Option<T>> {
            match (a, b) {
                (Some(a), Some(b)) if a != b => None,
                _ => Some(a.or(b)),
            }
        }
        let arrangement = both(self.arrangement, other.arrangement)?;
        let order = both(self.order, other.order)?;
        Some(Self { arrangement, order, align: self.align.max(other.align), pad: self.pad.max(other.pad) })
    }

    pub(super) fn allows(&self, layout: &Layout) -> bool {
        let spec = layout.spec();
        let arrangement = spec.fields.len() <= 1 || self.arrangement.is_none_or(|wanted| wanted == spec.arrangement);
        let align = self.align.is_none_or(|wanted| layout.is_aligned(wanted as usize));
        arrangement && align && self.order.is_none_or(|wanted| alike(wanted, layout))
    }
}

impl fmt::Display for LayoutConstraint {
    /// `struct of arrays, dimensions in the order [1, 0]`, the slowest first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.arrangement.map(|arrangement| arrangement.to_string()),
            self.order.map(|order| format!("dimensions in the order {order:?}")),
            self.align.map(|align| format!("aligned to {align} bytes")),
            self.pad.map(|pad| format!("with room for {pad} points around")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "any layout" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// Whether the dimensions that the instance extends in come in the wanted order.
fn alike(wanted: DimensionOrder, layout: &Layout) -> bool {
    let bounds = layout.bounds();
    let (lo, hi) = (bounds.lo(), bounds.hi());
    let extends = |dimension: &usize| lo.coords()[*dimension] < hi.coords()[*dimension];
    wanted.dim() == layout.dim()
        && wanted.slowest_first().filter(extends).eq(layout.spec().order.slowest_first().filter(extends))
}
