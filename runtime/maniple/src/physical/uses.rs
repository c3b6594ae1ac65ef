//! Who uses an instance, and for which points.

use maniple_realm::{After, Event, EventStatus, Realm};
use maniple_region::{Shape, ShapeTable};
use smallvec::SmallVec;

use super::cover::Cover;

/// Uses of an instance for parts of a set, each ended when its event has triggered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses(SmallVec<[(Event, Cover); 2]>);

impl Uses {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a use. With a realm, forgets ended ones whenever the list has doubled.
    pub(crate) fn push(&mut self, event: Event, cover: Cover, realm: Option<&Realm>) {
        if let (Some(realm), true) = (realm, self.has_doubled()) {
            self.0.retain(|(event, _)| !realm.has_triggered(*event));
        }
        self.0.push((event, cover));
    }

    /// If these are writers: forgets those that have ended well whenever the list has doubled. The values of those that failed stay invalidated.
    pub(crate) fn forget_successes(&mut self, realm: Option<&Realm>) {
        if let (Some(realm), true) = (realm, self.has_doubled()) {
            self.0.retain(|(event, _)| !matches!(realm.status(*event), EventStatus::Triggered));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Forgets all uses but a new one of everything.
    pub(crate) fn restart(&mut self, event: Event) {
        self.0.clear();
        self.0.push((event, Cover::Everything));
    }

    fn has_doubled(&self) -> bool {
        self.0.len() >= 8 && self.0.len().is_power_of_two()
    }

    /// The events of uses that touch `cover`.
    pub(crate) fn touching(&self, cover: &Cover, shapes: &ShapeTable, events: &mut SmallVec<[Event; 8]>) {
        for (event, used) in &self.0 {
            if used.overlaps(cover, shapes) {
                add(events, *event);
            }
        }
    }

    /// If these are writers: adds those that made just the points of `cover` to `same`, and others that touch it to `touching`.
    pub(crate) fn made(
        &self,
        cover: &Cover,
        shapes: &ShapeTable,
        (same, touching): (&mut SmallVec<[Event; 8]>, &mut SmallVec<[Event; 8]>),
    ) {
        for (event, used) in &self.0 {
            if used == cover {
                add(same, *event);
            } else if used.overlaps(cover, shapes) {
                add(touching, *event);
            }
        }
    }

    /// Adds a use that fails if an earlier one of just the same points has: it stands for those now.
    pub(crate) fn succeed(&mut self, event: Event, cover: Cover, realm: Option<&Realm>) {
        self.0.retain(|(_, used)| *used != cover);
        self.forget_successes(realm);
        self.0.push((event, cover));
    }

    /// The ends of all uses.
    pub(crate) fn events(&self) -> impl Iterator<Item = Event> {
        self.0.iter().map(|(event, _)| *event)
    }

    pub(crate) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// If these are writers: who made the values in `cover`, a part of `whole`.
    pub(crate) fn makers(&self, cover: &Cover, whole: &Shape, shapes: &ShapeTable) -> Makers {
        if self.0.iter().all(|(_, used)| used.contains(cover, shapes) || !used.overlaps(cover, shapes)) {
            let mut events = SmallVec::new();
            self.touching(cover, shapes, &mut events);
            return Makers::OfAll(events);
        }
        let parts = self.0.iter().map(|(event, used)| (*event, used.and(cover, whole, shapes)));
        Makers::OfParts(Self(parts.filter(|(_, part)| !part.is_nothing()).collect()))
    }

    /// Adds a use. With a realm, it and the last but one of the same points become one, which fails if either does: most often, the next use
    /// of all comes before that is needed.
    pub(crate) fn join(&mut self, event: Event, cover: Cover, realm: Option<&Realm>) {
        self.forget_successes(realm);
        let mut same = self.0.iter_mut().filter(|(_, used)| *used == cover);
        match (realm, same.next(), same.next()) {
            (Some(realm), Some(_), Some((known, _))) => *known = realm.merge(After::needs(&[*known, event])),
            _ => self.push(event, cover, None),
        }
    }

    /// Drops uses that lie within `cover`: somebody who comes after all of them stands for them now.
    pub(crate) fn forget(&mut self, cover: &Cover, shapes: &ShapeTable) {
        self.0.retain(|(_, used)| !cover.contains(used, shapes));
    }

    pub(crate) fn within(&self, part: &Shape, shapes: &ShapeTable) -> Self {
        let uses = self.0.iter().map(|(event, cover)| (*event, cover.within(part, shapes)));
        Self(uses.filter(|(_, cover)| !cover.is_nothing()).collect())
    }
}

/// Who made some values: if they fail, the values are invalidated.
pub(crate) enum Makers {
    /// All of them together.
    OfAll(SmallVec<[Event; 8]>),
    /// Each only a part.
    OfParts(Uses),
}

impl Makers {
    /// Those that are the same for all values.
    pub(crate) fn shared(self) -> Option<SmallVec<[Event; 8]>> {
        match self {
            Self::OfAll(events) => Some(events),
            Self::OfParts(_) => None,
        }
    }
}

/// Adds an event unless it was added lately. That keeps nearly all doubles out, which would do no harm, and never takes long.
pub(crate) fn add(events: &mut SmallVec<[Event; 8]>, event: Event) {
    const LATELY: usize = 16;
    let lately = &events[events.len().saturating_sub(LATELY)..];
    if !event.is_none() && !lately.contains(&event) {
        events.push(event);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use maniple_realm::Fault;

    use super::*;

    #[test]
    fn writers_that_ended_well_are_forgotten_and_those_that_failed_are_not() {
        let realm = Realm::builder().workers(1).build().expect("there is a worker");
        let mut writers = Uses::default();
        let mut failed = Vec::new();
        for number in 0..1000 {
            let event = realm.user_event();
            writers.push(event.event(), Cover::Everything, None);
            writers.forget_successes(Some(&realm));
            if number % 100 == 50 {
                realm.poison(event, Arc::new(Fault::new(std::fmt::Error)));
                failed.push(event.event());
            } else {
                realm.trigger(event);
            }
        }
        assert!(writers.0.len() < 50, "{} are left", writers.0.len());
        assert!(failed.iter().all(|event| writers.events().any(|kept| kept == *event)));
    }
}
