//! Rows of elements, as tasks write them.

use maniple::task::LeafCall;
use maniple::{Context, FieldId, FieldValue};

use crate::element::Element;

/// Bytes that a task should write, so that it is worth its cost.
const WRITTEN_AT_ONCE: usize = 256 << 10;

/// More tasks than this, for each node, write no faster.
const MOST_WRITERS: usize = 16;

/// In how many tasks so many bytes are written: by what all nodes know, not by the processors, of which each may have another number.
pub(super) fn blocks_for(cx: &Context, bytes: usize) -> usize {
    (bytes / WRITTEN_AT_ONCE).clamp(cx.nodes(), MOST_WRITERS * cx.nodes())
}

/// Sets all that a task may write of a field, row by row: `row` is given the coordinates of the first element in the region, and where they go.
pub(super) fn set_rows<T: Element + FieldValue>(
    call: &LeafCall<'_>,
    field: FieldId,
    row: impl FnMut(&[i64], &mut [T]),
) -> maniple::Result<()> {
    fn set<T: Element + FieldValue, const D: usize>(
        call: &LeafCall<'_>,
        field: FieldId,
        mut row: impl FnMut(&[i64], &mut [T]),
    ) -> maniple::Result<()> {
        let mut elements = call.write::<T, D>(0, field)?;
        elements.space().rows().for_each(|rows| row(&rows.lo.0, &mut elements.span_mut(rows)));
        Ok(())
    }
    match call.region(0)?.space().space().dim() {
        1 => set::<T, 1>(call, field, row),
        2 => set::<T, 2>(call, field, row),
        3 => set::<T, 3>(call, field, row),
        _ => set::<T, 4>(call, field, row),
    }
}
