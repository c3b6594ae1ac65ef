//! The end of a launch, as others wait for it.

use std::sync::Arc;

use maniple_realm::{Event, Fault, Realm, UserEvent};
use parking_lot::Mutex;

/// When a launch has ended.
pub(crate) enum Completion {
    /// When this event has triggered.
    Event(Event),
    /// When somebody says so. There is an event only if somebody asks for one: of most launches that are replayed nobody does.
    OnDemand(Mutex<Ending>),
}

pub(crate) enum Ending {
    /// It has not ended. Somebody may wait for this event.
    Pending(Option<UserEvent>),
    /// It has ended well, or with a failure for which this event is poisoned.
    Ended(Event),
}

impl From<Event> for Completion {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

impl Completion {
    pub(crate) fn on_demand() -> Self {
        Self::OnDemand(Mutex::new(Ending::Pending(None)))
    }

    /// An event that triggers when the launch has ended, poisoned if it failed.
    pub(crate) fn event(&self, realm: &Realm) -> Event {
        match self {
            Self::Event(event) => *event,
            Self::OnDemand(ending) => match &mut *ending.lock() {
                Ending::Pending(event) => event.get_or_insert_with(|| realm.user_event()).event(),
                Ending::Ended(event) => *event,
            },
        }
    }

    pub(crate) fn has_ended(&self, realm: &Realm) -> bool {
        match self {
            Self::Event(event) => realm.has_triggered(*event),
            Self::OnDemand(ending) => matches!(*ending.lock(), Ending::Ended(_)),
        }
    }

    /// The launch has ended: tells those who wait. Only for one that ends when somebody says so, once.
    pub(crate) fn end(&self, realm: &Realm, failure: Option<Arc<Fault>>) {
        let Self::OnDemand(ending) = self else { return };
        let mut ending = ending.lock();
        let Ending::Pending(waiting) = *ending else { return };
        let Some(fault) = failure else {
            // The same event as before, by which a record knows the launch.
            *ending = Ending::Ended(waiting.map_or(Event::NONE, UserEvent::event));
            drop(ending);
            if let Some(waiting) = waiting {
                realm.trigger(waiting);
            }
            return;
        };
        let waiting = waiting.unwrap_or_else(|| realm.user_event());
        *ending = Ending::Ended(waiting.event());
        drop(ending);
        realm.poison(waiting, fault);
    }
}
