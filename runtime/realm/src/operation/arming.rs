//! How a slot comes to wait for its preconditions.

use std::sync::Arc;

use smallvec::SmallVec;

use super::operations::{Operations, Slot};
use crate::events::precondition::{Awaited, Remaining};
use crate::events::slot::{LINKS, SlotKind};
use crate::events::word::{Phase, Ready};
use crate::events::{After, Event};
use crate::fault::Fault;

/// Events were triggered last, or will be, by other workers: their words are fetched so many ahead.
const PREFETCH_DISTANCE: usize = 8;

impl Operations {
    /// Sets the triggered events of `after` aside.
    #[inline]
    pub(crate) fn remaining(&self, after: After<'_>) -> Remaining {
        let mut remaining = Remaining { awaited: SmallVec::new(), poisoned: None };
        let count = after.needs.len() + after.follows.len();
        if count > remaining.awaited.inline_size() {
            remaining.awaited.reserve(count);
        }
        for (events, spreads) in [(after.needs, true), (after.follows, false)] {
            for (number, &event) in events.iter().enumerate() {
                if let Some(soon) = events.get(number + PREFETCH_DISTANCE) {
                    self.table.prefetch(soon.slot());
                }
                match self.phase(event) {
                    // What is needed stands before what is only followed.
                    Phase::Pending if !spreads && remaining.awaited.iter().any(|known| known.event == event) => {}
                    Phase::Pending => remaining.awaited.push(Awaited { event, spreads }),
                    Phase::Triggered => {}
                    phase => {
                        if spreads && self.is_poisoned(event, phase) {
                            remaining.poisoned = Some(event);
                        }
                    }
                }
            }
        }
        remaining
    }

    /// How `event` stands.
    #[inline]
    pub(crate) fn phase(&self, event: Event) -> Phase {
        if event.is_none() {
            return Phase::Triggered;
        }
        self.table.slot(event.slot()).word.phase(event.generation())
    }

    /// Whether the event has not triggered.
    #[inline]
    pub(crate) fn is_pending(&self, event: Event) -> bool {
        self.phase(event) == Phase::Pending
    }

    /// Whether an event whose word has said this is poisoned.
    #[inline]
    pub(crate) fn is_poisoned(&self, event: Event, phase: Phase) -> bool {
        match phase {
            Phase::Pending | Phase::Triggered => false,
            Phase::Poisoned => true,
            Phase::Past => self.faults.has(event),
        }
    }

    /// Makes the slot, which the caller owns and has filled in, wait for `after`. `Some` if it is ready at once; then
    /// the caller still owns it. Otherwise the thread that triggers the last precondition does, and the caller must not
    /// touch it again.
    #[inline]
    pub(crate) fn arm(&self, index: u32, slot: &Slot, after: After<'_>) -> Option<Ready> {
        if after.needs.is_empty() && after.follows.is_empty() {
            slot.preconditions.none();
            return Some(Ready { poisoned: false });
        }
        self.arm_remaining(index, slot, &mut self.remaining(after))
    }

    /// [`arm`](Self::arm), with the preconditions looked at before.
    pub(crate) fn arm_remaining(&self, index: u32, slot: &Slot, remaining: &mut Remaining) -> Option<Ready> {
        while remaining.awaited.len() > LINKS {
            remaining.awaited = self.merge_some(&remaining.awaited);
        }
        let awaited = &remaining.awaited;
        slot.preconditions.begin(awaited.len() as u32);
        if let Some(event) = remaining.poisoned {
            self.inherit(index, slot, event);
        }
        let spreads = awaited.iter().enumerate().fold(0, |bits, (link, next)| bits | (u8::from(next.spreads) << link));
        // SAFETY: the caller owns the slot, and nothing can make it ready before the guard's count is given up below.
        unsafe { slot.header_mut() }.spreads = spreads;
        let mut done = 1;
        for (link, &Awaited { event, spreads }) in awaited.iter().enumerate() {
            let word = &self.table.slot(event.slot()).word;
            let node = node_of(index, link);
            if let Err(phase) = word.subscribe(event.generation(), node, &slot.links[link]) {
                done += 1;
                if spreads && self.is_poisoned(event, phase) {
                    self.inherit(index, slot, event);
                }
            }
        }
        slot.preconditions.arrive(done)
    }

    /// One level of the tree of merges: as many events as a slot can wait for become one. If a single merge leaves few
    /// enough, it is of no more than it has to be.
    fn merge_some(&self, awaited: &[Awaited]) -> SmallVec<[Awaited; 8]> {
        let merge = |some: &[Awaited]| {
            if let [alone] = some {
                return *alone;
            }
            let remaining = Remaining { awaited: SmallVec::from_slice(some), poisoned: None };
            Awaited { event: self.merge_remaining(remaining), spreads: true }
        };
        let kept = if awaited.len() < 2 * LINKS { LINKS - 1 } else { 0 };
        let (kept, others) = awaited.split_at(kept);
        let mut fewer = SmallVec::from_slice(kept);
        others.chunks(LINKS).for_each(|some| fewer.push(merge(some)));
        fewer
    }

    /// One event that triggers after all of these, allocating a slot only when there is no other way.
    pub(crate) fn merge_remaining(&self, mut remaining: Remaining) -> Event {
        if let Some(event) = remaining.as_single() {
            return event;
        }
        let index = self.take_slot();
        let slot = self.table.slot(index);
        let event = slot.pending_event(index);
        // SAFETY: the slot was just taken.
        unsafe { slot.header_mut() }.kind = SlotKind::Event;
        if let Some(ready) = self.arm_remaining(index, slot, &mut remaining) {
            self.trigger_slot(index, slot, ready.poisoned);
        }
        event
    }

    /// Notes that the fault of the poisoned event `source` has reached slot `index`, unless another has before. The
    /// slot is pending, and stays so meanwhile.
    pub(crate) fn inherit(&self, index: u32, slot: &Slot, source: Event) {
        self.faults.file(slot.pending_event(index), self.fault_of(source));
        slot.preconditions.poison();
    }

    /// The fault of an event that is poisoned, or that poison has reached.
    pub(crate) fn fault_of(&self, event: Event) -> Arc<Fault> {
        self.faults.get(event).expect("an event is marked poisoned after its fault was filed")
    }
}

/// The waiter node of a slot's link.
pub(crate) fn node_of(index: u32, link: usize) -> u32 {
    index * LINKS as u32 + link as u32
}
