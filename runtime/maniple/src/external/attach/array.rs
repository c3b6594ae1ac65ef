//! The places of an array's elements in a file, and the bytes of a piece among them.

use std::ops::Range;

use maniple_realm::layout::DimensionOrder;
use maniple_space::AnyRect;
use smallvec::SmallVec;

/// An array in a file: an element for each point of a rectangle, one behind the other.
#[derive(Clone, Debug)]
pub(super) struct Array {
    /// The offset of the first element.
    pub(super) start: u64,
    pub(super) bounds: AnyRect,
    /// The first coordinate varies fastest, instead of the last.
    pub(super) by_columns: bool,
    /// The bytes of an element.
    pub(super) size: usize,
    /// The bytes of the numbers that an element consists of, if they are in the other order in the file than in memory;
    /// else 1.
    pub(super) swapped: usize,
}

/// Bytes that follow each other both in a file and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteRun {
    pub(super) offset: u64,
    pub(super) bytes: usize,
}

impl Array {
    /// The order in which memory has to have the elements, so that they are as in the file.
    pub(super) fn order(&self) -> DimensionOrder {
        match self.by_columns {
            true => DimensionOrder::column_major(self.bounds.dim()),
            false => DimensionOrder::row_major(self.bounds.dim()),
        }
    }

    /// The offset at which the last element ends; at most the largest offset.
    pub(super) fn end(&self) -> u64 {
        self.bounds.volume().saturating_mul(self.size as u64).saturating_add(self.start)
    }

    /// The bytes from the first to the last element of a piece.
    pub(super) fn extent(&self, piece: &AnyRect) -> Range<u64> {
        let mut runs = self.runs(piece);
        let Some(first) = runs.next() else { return self.start..self.start };
        let last = runs.next_back().unwrap_or(first);
        first.offset..last.offset.saturating_add(last.bytes as u64)
    }

    /// The bytes of a piece, a rectangle within the array, in the order of the file. That is also their order in
    /// memory, where they have no gaps.
    pub(super) fn runs(&self, piece: &AnyRect) -> impl DoubleEndedIterator<Item = ByteRun> + use<> {
        let dim = self.bounds.dim();
        let (mut offset, mut stride, mut bytes) = (self.start, self.size as u64, self.size as u64);
        // A run goes on into the next dimension as long as the piece has all of the one before.
        let mut goes_on = true;
        let mut outer: SmallVec<[(u64, u64); 4]> = SmallVec::new();
        for place in 0..dim {
            let dimension = if self.by_columns { place } else { dim - 1 - place };
            let (count, extent) = (extent(piece, dimension), extent(&self.bounds, dimension));
            let first = piece.lo()[dimension].wrapping_sub(self.bounds.lo()[dimension]) as u64;
            offset = offset.wrapping_add(first.wrapping_mul(stride));
            match goes_on {
                true => bytes = bytes.wrapping_mul(count),
                false => outer.push((count, stride)),
            }
            goes_on &= count == extent;
            stride = stride.wrapping_mul(extent);
        }
        let runs = if piece.is_empty() { 0 } else { outer.iter().map(|(count, _)| count).product() };
        (0..runs).map(move |number: u64| {
            let mut rest = number;
            let place = outer.iter().map(|(count, stride)| {
                let digit = rest % count;
                rest /= count;
                digit * stride
            });
            ByteRun { offset: offset + place.sum::<u64>(), bytes: bytes as usize }
        })
    }

    /// Turns the bytes of numbers from the order of the file to that of memory, or back.
    pub(super) fn swap(&self, bytes: &mut [u8]) {
        if self.swapped > 1 {
            bytes.chunks_exact_mut(self.swapped).for_each(<[u8]>::reverse);
        }
    }
}

/// The number of coordinates that a rectangle has in a dimension.
pub(super) fn extent(rect: &AnyRect, dimension: usize) -> u64 {
    if rect.is_empty() { 0 } else { (rect.hi()[dimension].wrapping_sub(rect.lo()[dimension]) as u64).saturating_add(1) }
}

#[cfg(test)]
mod tests {
    use maniple_space::Rect;
    use proptest::prelude::*;

    use super::*;

    fn array(bounds: AnyRect, by_columns: bool) -> Array {
        Array { start: 100, bounds, by_columns, size: 4, swapped: 1 }
    }

    /// The offsets of a piece's elements by the definition of both orders.
    fn offsets(array: &Array, piece: &AnyRect) -> Vec<u64> {
        let dim = array.bounds.dim();
        let rank = |point: maniple_space::AnyPoint| {
            let mut dimensions: Vec<usize> = (0..dim).collect();
            if array.by_columns {
                dimensions.reverse();
            }
            dimensions.into_iter().fold(0, |rank, dimension| {
                rank * extent(&array.bounds, dimension) + (point[dimension] - array.bounds.lo()[dimension]) as u64
            })
        };
        let mut offsets: Vec<u64> = piece.points().map(|point| array.start + 4 * rank(point)).collect();
        offsets.sort_unstable();
        offsets
    }

    proptest! {
        #[test]
        fn the_runs_of_a_piece_are_its_elements_in_the_order_of_the_file(
            corners in proptest::collection::vec((-3_i64..3, 1_i64..5, 0_i64..5, 0_i64..5), 1..=3),
            by_columns: bool,
        ) {
            let whole: Vec<_> = corners.iter().map(|&(low, length, ..)| (low, low + length - 1)).collect();
            let part: Vec<_> = corners.iter().map(|&(low, length, first, count)| {
                let first = first % length;
                (low + first, low + (first + count - 1).min(length - 1))
            }).collect();
            let rect = |sides: &[(i64, i64)]| -> AnyRect {
                match *sides {
                    [a] => Rect::<1>::new([a.0], [a.1]).into(),
                    [a, b] => Rect::<2>::new([a.0, b.0], [a.1, b.1]).into(),
                    [a, b, c] => Rect::<3>::new([a.0, b.0, c.0], [a.1, b.1, c.1]).into(),
                    _ => unreachable!(),
                }
            };
            let (array, piece) = (array(rect(&whole), by_columns), rect(&part));
            let runs: Vec<ByteRun> = array.runs(&piece).collect();
            let found: Vec<u64> = runs.iter()
                .flat_map(|run| (0..run.bytes as u64 / 4).map(|element| run.offset + 4 * element))
                .collect();
            prop_assert_eq!(found, offsets(&array, &piece));
            // Whole rows are one run.
            if piece == array.bounds {
                prop_assert_eq!(runs.len(), 1);
            }
        }
    }

    #[test]
    fn a_piece_of_an_array_larger_than_memory_is_where_it_would_be() {
        let rows = 1_i64 << 40;
        let array = array(Rect::<2>::from_shape([rows, 1 << 10]).into(), false);
        let piece: AnyRect = Rect::<2>::new([rows - 2, 0], [rows - 1, 1023]).into();
        let last: Vec<ByteRun> = array.runs(&piece).collect();
        assert_eq!(last, [ByteRun { offset: array.end() - 8192, bytes: 8192 }]);
    }

    #[test]
    fn bytes_are_reversed_number_by_number() {
        let array = Array { swapped: 2, ..array(Rect::<1>::from(0..1).into(), false) };
        let mut bytes = [1, 2, 3, 4];
        array.swap(&mut bytes);
        assert_eq!(bytes, [2, 1, 4, 3]);
    }
}
