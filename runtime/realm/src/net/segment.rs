//! Registered memory: what puts and gets read and write directly.
//!
//! A [`Segment`] keeps its memory alive and names it for other nodes. The network touches the memory of one segment
//! from one thread at a time, under a lock of the segment, so transfers never race with each other. They must not race
//! with any other use either:
//!
//! * [`Segment::from_vec`] owns its bytes, and hands them out again only when no transfer can reach them any more. It
//!   is safe.
//! * [`Segment::of_instance`] and [`Segment::of_memory`] name memory that others use. Making one is `unsafe`, because
//!   the caller promises that all nodes' transfers and all other uses are ordered, by events and messages, as they are
//!   between tasks.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::locks::Mutex;

use crate::instance::Instance;

/// Memory that transfers may use; a handle, cheap to clone. The memory lives as long as any handle or transfer.
#[derive(Clone)]
pub struct Segment {
    memory: Arc<SegmentMemory>,
}

/// A part of a segment.
#[derive(Clone)]
pub struct Span {
    segment: Segment,
    range: Range<usize>,
}

struct SegmentMemory {
    base: NonNull<u8>,
    length: usize,
    /// Held while a transfer touches the bytes.
    turn: Mutex<()>,
    /// Keeps the bytes where they are. A vector is not touched before it is taken out.
    owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the bytes behind `base` are touched under `turn` only, as far as this module touches them; the rest is the
// promise of `of_memory`.
unsafe impl Send for SegmentMemory {}
// SAFETY: as above; `owner` is `Sync` itself.
unsafe impl Sync for SegmentMemory {}

impl Segment {
    /// A segment of bytes that nothing else uses.
    #[must_use]
    pub fn from_vec(mut bytes: Vec<u8>) -> Self {
        let (base, length) = (NonNull::from(bytes.as_mut_slice()).cast(), bytes.len());
        // SAFETY: moving the vector does not move its bytes, and nothing reaches the vector until `into_vec` finds that
        // no handle is left.
        unsafe { Self::of_memory(base, length, Box::new(bytes)) }
    }

    /// The bytes of [`from_vec`](Self::from_vec) again.
    ///
    /// # Errors
    ///
    /// The segment itself, if another handle or a transfer still uses it, or its memory is not its own.
    pub fn into_vec(self) -> Result<Vec<u8>, Self> {
        if !self.memory.owner.is::<Vec<u8>>() {
            return Err(self);
        }
        let memory = Arc::try_unwrap(self.memory).map_err(|memory| Self { memory })?;
        Ok(*memory.owner.downcast().expect("it was found to be a vector above"))
    }

    /// A segment of memory that others may use too.
    ///
    /// # Safety
    ///
    /// Until `owner` is dropped, the `length` bytes from `base` are initialised, readable and writable. While a
    /// transfer of any node reads some of them nothing writes these; while one writes some of them, nothing else uses
    /// these. Two transfers may meet.
    #[must_use]
    pub unsafe fn of_memory(base: NonNull<u8>, length: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self { memory: Arc::new(SegmentMemory { base, length, turn: Mutex::new(()), owner }) }
    }

    /// A segment of all bytes of an instance, as its layout counts them; `None` if it has none, not yet or not any
    /// more.
    ///
    /// # Safety
    ///
    /// As for [`of_memory`](Self::of_memory); and the instance is not released while the segment, or a part of it,
    /// lives.
    #[must_use]
    pub unsafe fn of_instance(instance: Arc<Instance>) -> Option<Self> {
        let (base, length) = (instance.base()?, instance.layout().bytes());
        // SAFETY: an instance's bytes are initialised, and stay until it is released or its last handle is dropped, of
        // which we keep one. The rest is the caller's promise.
        Some(unsafe { Self::of_memory(base, length, Box::new(instance)) })
    }

    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.length
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A part of it; `None` if it has no such part.
    #[must_use]
    pub fn span(&self, range: Range<usize>) -> Option<Span> {
        (range.start <= range.end && range.end <= self.len()).then(|| Span { segment: self.clone(), range })
    }

    /// All of it.
    #[must_use]
    pub fn whole(&self) -> Span {
        Span { segment: self.clone(), range: 0..self.len() }
    }
}

impl Span {
    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Which part of its segment it is.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// A part of it, counted from its start; `None` if it has no such part.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Option<Self> {
        let within = range.start <= range.end && range.end <= self.len();
        let start = self.range.start;
        within.then(|| Self { segment: self.segment.clone(), range: start + range.start..start + range.end })
    }

    /// Looks at its bytes, while no other transfer touches the segment.
    pub fn read<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        let memory = &*self.segment.memory;
        let _turn = memory.turn.lock();
        // SAFETY: the range is within the memory, which is initialised and lives as long as we do. Nothing writes it:
        // other transfers would need the turn, and others still are kept away by the promise of `of_memory`.
        look(unsafe { std::slice::from_raw_parts(memory.base.as_ptr().add(self.range.start), self.len()) })
    }

    /// Changes its bytes, while no other transfer touches the segment.
    pub fn write<R>(&self, change: impl FnOnce(&mut [u8]) -> R) -> R {
        let memory = &*self.segment.memory;
        let _turn = memory.turn.lock();
        // SAFETY: as in `read`, and nothing reads it either.
        change(unsafe { std::slice::from_raw_parts_mut(memory.base.as_ptr().add(self.range.start), self.len()) })
    }

    /// Copies bytes to another span of the same length, which may be of the same segment.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub fn copy_to(&self, target: &Self) {
        assert_eq!(self.len(), target.len(), "a copy has as many bytes at both ends");
        let (source, sink) = (&*self.segment.memory, &*target.segment.memory);
        let _turns = if std::ptr::eq(source, sink) {
            (source.turn.lock(), None)
        } else if std::ptr::from_ref(source) < std::ptr::from_ref(sink) {
            // Two copies in opposite directions take the turns in one order.
            let first = source.turn.lock();
            (first, Some(sink.turn.lock()))
        } else {
            let first = sink.turn.lock();
            (first, Some(source.turn.lock()))
        };
        // SAFETY: both ranges are within their memories, and both turns are ours; `copy` allows that the ranges
        // overlap.
        unsafe {
            let from = source.base.as_ptr().add(self.range.start);
            std::ptr::copy(from, sink.base.as_ptr().add(target.range.start), self.len());
        }
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Segment({} bytes at {:?})", self.len(), self.memory.base)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Span({:?} of {:?})", self.range, self.segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_comes_back_when_nobody_uses_it_any_more() {
        let segment = Segment::from_vec(vec![1, 2, 3]);
        let span = segment.span(1..3).unwrap();
        span.write(|bytes| bytes[0] = 7);
        let segment = segment.into_vec().unwrap_err();
        drop(span);
        assert_eq!(segment.into_vec().unwrap(), [1, 7, 3]);
    }

    #[test]
    fn spans_stay_within_what_they_are_part_of() {
        let segment = Segment::from_vec(vec![0; 10]);
        assert!(segment.span(3..11).is_none());
        let span = segment.span(3..7).unwrap();
        assert!(span.part(2..5).is_none());
        assert_eq!(span.part(2..4).unwrap().range(), 5..7);
    }

    #[test]
    fn a_copy_within_one_segment_may_overlap() {
        let segment = Segment::from_vec(vec![1, 2, 3, 4, 5]);
        segment.span(0..4).unwrap().copy_to(&segment.span(1..5).unwrap());
        assert_eq!(segment.into_vec().unwrap(), [1, 1, 2, 3, 4]);
    }

    #[test]
    fn copies_in_opposite_directions_do_not_wait_for_each_other_for_ever() {
        let (a, b) = (Segment::from_vec(vec![1; 64]), Segment::from_vec(vec![2; 64]));
        std::thread::scope(|scope| {
            scope.spawn(|| (0..1000).for_each(|_| a.whole().copy_to(&b.whole())));
            scope.spawn(|| (0..1000).for_each(|_| b.whole().copy_to(&a.whole())));
        });
    }
}
