//! Uses of an instance, each for some points.

use maniple_region::{Shape, ShapeTable};
use smallvec::SmallVec;

use super::cover::Cover;
use super::events::{Event, Events, add};

/// Uses of an instance for parts of a set, each ended when its event has triggered.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses<E>(SmallVec<[(E, Cover); 2]>);

impl<E: Event> Uses<E> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a use.
    pub(super) fn add(&mut self, event: E, cover: Cover) {
        self.0.push((event, cover));
    }

    /// Adds a use. With what has become of events, forgets ended ones whenever the list has doubled. Returns whether it
    /// looked for such.
    pub(super) fn push(&mut self, event: E, cover: Cover, events: Option<&impl Events<E>>) -> bool {
        let events = events.filter(|_| self.has_doubled());
        if let Some(events) = events {
            self.0.retain(|(event, _)| !events.has_ended(*event));
        }
        self.0.push((event, cover));
        events.is_some()
    }

    /// If these are writers: forgets those that have ended well whenever the list has doubled. The values of those that
    /// failed stay invalidated.
    pub(super) fn forget_successes(&mut self, events: Option<&impl Events<E>>) {
        if let (Some(events), true) = (events, self.has_doubled()) {
            self.forget_all_successes(events);
        }
    }

    /// If these are writers: forgets those that have ended well. The values of those that failed stay invalidated.
    pub(super) fn forget_all_successes(&mut self, events: &impl Events<E>) {
        self.0.retain(|(event, _)| !events.has_succeeded(*event));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Forgets all uses but a new one of everything.
    pub(super) fn restart(&mut self, event: E) {
        self.0.clear();
        self.0.push((event, Cover::Everything));
    }

    fn has_doubled(&self) -> bool {
        self.0.len() >= 8 && self.0.len().is_power_of_two()
    }

    /// The events of uses that touch `cover`.
    pub(super) fn touching(&self, cover: &Cover, shapes: &ShapeTable, events: &mut SmallVec<[E; 8]>) {
        for (event, used) in &self.0 {
            if used.overlaps(cover, shapes) {
                add(events, *event);
            }
        }
    }

    /// If these are writers: adds those that made just the points of `cover` to `same`, and others that touch it to
    /// `touching`.
    pub(super) fn made(
        &self,
        cover: &Cover,
        shapes: &ShapeTable,
        same: &mut SmallVec<[E; 8]>,
        touching: &mut SmallVec<[E; 8]>,
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
    pub(super) fn succeed(&mut self, event: E, cover: Cover, events: Option<&impl Events<E>>) {
        self.0.retain(|(_, used)| *used != cover);
        self.forget_successes(events);
        self.0.push((event, cover));
    }

    /// The ends of all uses.
    pub(super) fn events(&self) -> impl Iterator<Item = E> {
        self.0.iter().map(|(event, _)| *event)
    }

    pub(super) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// If these are writers: which operations made the values in `cover`, a part of `whole`.
    pub(super) fn makers(&self, cover: &Cover, whole: &Shape, shapes: &ShapeTable) -> Makers<E> {
        if self.0.iter().all(|(_, used)| used.contains(cover, shapes) || !used.overlaps(cover, shapes)) {
            let mut events = SmallVec::new();
            self.touching(cover, shapes, &mut events);
            return Makers::OfAll(events);
        }
        let parts = self.0.iter().map(|(event, used)| (*event, used.and(cover, whole, shapes)));
        Makers::OfParts(Self(parts.filter(|(_, part)| !part.is_nothing()).collect()))
    }

    /// Adds a use. If uses may be merged, it and the last but one of the same points become one, which fails if either
    /// does: most often, the next use of all comes before that is needed.
    pub(super) fn join(&mut self, event: E, cover: Cover, events: Option<&impl Events<E>>) {
        self.forget_successes(events);
        let mut same = self.0.iter_mut().filter(|(_, used)| *used == cover);
        match (events, same.next(), same.next()) {
            (Some(events), Some(_), Some((known, _))) => *known = events.merge(&[*known, event]),
            _ => self.add(event, cover),
        }
    }

    /// Drops uses that lie within `cover`: an operation that comes after all of them stands for them now.
    pub(super) fn forget(&mut self, cover: &Cover, shapes: &ShapeTable) {
        self.0.retain(|(_, used)| !cover.contains(used, shapes));
    }

    pub(super) fn within(&self, part: &Shape, shapes: &ShapeTable) -> Self {
        let uses = self.0.iter().map(|(event, cover)| (*event, cover.within(part, shapes)));
        Self(uses.filter(|(_, cover)| !cover.is_nothing()).collect())
    }
}

impl<'a, E> IntoIterator for &'a Uses<E> {
    type Item = &'a (E, Cover);
    type IntoIter = std::slice::Iter<'a, (E, Cover)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// The makers of some values: if they fail, the values are invalidated.
pub(super) enum Makers<E> {
    /// All of them together.
    OfAll(SmallVec<[E; 8]>),
    /// Each only a part.
    OfParts(Uses<E>),
}

impl<E> Makers<E> {
    /// Returns the makers if they are the same for all values.
    pub(super) fn shared(self) -> Option<SmallVec<[E; 8]>> {
        match self {
            Self::OfAll(events) => Some(events),
            Self::OfParts(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All events have ended, and of a hundred one has failed.
    struct Ended;

    impl Events<u32> for Ended {
        fn has_ended(&self, _: u32) -> bool {
            true
        }

        fn has_succeeded(&self, event: u32) -> bool {
            event % 100 != 50
        }

        fn merge(&self, _: &[u32]) -> u32 {
            unreachable!("nothing is merged")
        }
    }

    #[test]
    fn writers_that_ended_well_are_forgotten_and_those_that_failed_are_not() {
        let mut writers = Uses::default();
        for event in 1..=1000 {
            writers.add(event, Cover::Everything);
            writers.forget_successes(Some(&Ended));
        }
        assert!(writers.0.len() < 50, "{} are left", writers.0.len());
        assert!((1..=1000).filter(|event| event % 100 == 50).all(|event| writers.events().any(|kept| kept == event)));
    }
}
