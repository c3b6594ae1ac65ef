//! Triggering user events, and how events stand.

use std::sync::Arc;

use super::operations::{Operations, Slot};
use crate::events::slot::SlotKind;
use crate::events::word::Phase;
use crate::events::{After, AlreadyTriggered, Event, EventStatus, UserEvent};
use crate::fault::{self, Abandoned, Fault};

impl Operations {
    /// An event that has triggered, poisoned.
    pub(crate) fn poisoned_event(&self, fault: impl Into<Arc<Fault>>) -> Event {
        let user = self.user_event();
        self.first_trigger(self.poison(user, fault.into()));
        user.event()
    }

    /// No thread triggers an event of the realm's own before the realm does, but for the realm's own end: see
    /// [`Realm::shut_down`](crate::Realm::shut_down).
    pub(crate) fn first_trigger(&self, triggered: Result<(), AlreadyTriggered>) {
        if let Err(error) = triggered {
            assert!(self.discarding().is_some(), "{error}");
        }
    }

    pub(crate) fn user_event(&self) -> UserEvent {
        let index = self.take_slot();
        let slot = self.table.slot(index);
        // SAFETY: the slot was just taken.
        unsafe { slot.header_mut() }.kind = SlotKind::Event;
        slot.word.promise();
        UserEvent { event: slot.pending_event(index), realm: self.id }
    }

    /// The slot of a user event.
    ///
    /// # Panics
    /// If it is another realm's, where the slot may be in use by anything.
    fn user_slot(&self, user: UserEvent) -> &Slot {
        assert_eq!(user.realm, self.id, "{user:?} belongs to another realm: trigger it there");
        self.table.slot(user.event.slot())
    }

    pub(crate) fn trigger(&self, user: UserEvent) -> Result<(), AlreadyTriggered> {
        let event = user.event();
        let slot = self.user_slot(user);
        let head = slot.word.claim_and_trigger(event.generation(), false).ok_or(AlreadyTriggered { event })?;
        self.note_trigger(event);
        self.after_trigger(event.slot(), event.generation(), false, head);
        Ok(())
    }

    pub(crate) fn poison(&self, user: UserEvent, fault: Arc<Fault>) -> Result<(), AlreadyTriggered> {
        let event = user.event();
        let slot = self.user_slot(user);
        if !slot.word.claim(event.generation()) {
            return Err(AlreadyTriggered { event });
        }
        self.note_trigger(event);
        self.complete(event.slot(), slot, Err(fault));
        Ok(())
    }

    #[inline]
    fn note_trigger(&self, event: Event) {
        if let Some(profiler) = &self.profiler {
            profiler.triggered(event.into());
        }
    }

    pub(crate) fn trigger_after(&self, user: UserEvent, after: After<'_>) -> Result<(), AlreadyTriggered> {
        let event = user.event();
        let slot = self.user_slot(user);
        if !slot.word.claim(event.generation()) {
            return Err(AlreadyTriggered { event });
        }
        if let Some(profiler) = &self.profiler {
            profiler.came_after(event.into(), after.names());
        }
        if let Some(ready) = self.arm(event.slot(), slot, after) {
            // Nothing is left to wait for, so it happens because a thread triggers it.
            self.note_trigger(event);
            self.trigger_slot(event.slot(), slot, ready.poisoned);
        }
        Ok(())
    }

    pub(crate) fn status(&self, event: Event) -> EventStatus {
        match self.phase(event) {
            Phase::Pending => EventStatus::Pending,
            Phase::Triggered => EventStatus::Triggered,
            Phase::Poisoned => EventStatus::Poisoned(self.fault_of(event)),
            Phase::Past => self.faults.get(event).map_or(EventStatus::Triggered, EventStatus::Poisoned),
        }
    }

    /// The result of an event that has triggered.
    pub(crate) fn result(&self, event: Event) -> Option<Result<(), Arc<Fault>>> {
        match self.status(event) {
            EventStatus::Pending => None,
            EventStatus::Triggered => Some(Ok(())),
            EventStatus::Poisoned(fault) => Some(Err(fault)),
        }
    }

    /// Poisons the user events that are not triggered yet: all that is pending waits for one of them, or for what does.
    /// Whether there were any.
    pub(crate) fn break_promises(&self, why: &Arc<Fault>) -> bool {
        let promised = self.table.all().filter(|(_, slot)| slot.word.claim_promised());
        promised.map(|(index, slot)| self.complete(index, slot, Err(Arc::clone(why)))).count() > 0
    }

    /// Drops the bodies that never ran, telling what waits for them.
    pub(crate) fn abandon_pending(&self) {
        let fault = Arc::new(Fault::new(Abandoned));
        for (_, slot) in self.table.all() {
            // SAFETY: the workers are gone, no handle is left, and a thread that has none stops at the gate: nothing
            // else uses slots.
            let header = unsafe { slot.header_mut() };
            let kind = std::mem::take(&mut header.kind);
            if let (SlotKind::Inline | SlotKind::Queued, Some(table)) = (kind, header.body.take()) {
                // SAFETY: the slot's kind says that its body is there; the kind was taken away just now.
                let abandon = || unsafe { (table.abandon)(slot.body(), &fault) };
                // A panic of a destructor is reported to no thread.
                let _ = fault::catch(abandon);
            }
        }
    }
}

impl Drop for Operations {
    fn drop(&mut self) {
        // What was spawned through a borrowed handle after the workers' end.
        self.abandon_pending();
    }
}
