//! Levels of accesses that are found where their variables are known: dense and bitmap ones by arithmetic, others by a
//! search.

use super::iterate::{Inside, maybe};
use super::leaf::Lowering;
use super::storage::{Storage, StoragePlace, is_found};
use crate::loops::{Expression, Statement as Step, Variable};

impl Lowering<'_> {
    /// Moves `low` up to, and `high` down to, the first position between them whose coordinate is `least` or greater.
    pub(super) fn bisect(
        &mut self,
        visit: usize,
        level: usize,
        low: &Variable,
        high: &Variable,
        least: Expression,
    ) -> Step {
        let middle = self.names.index("middle");
        let coordinate = self.coordinate(visit, level, middle.value());
        let halve = Step::Sequence(vec![
            Step::bind(&middle, low.value() + (high.value() - low.value()).floor_divide(2)),
            Step::choose(coordinate.less(least), Step::set(low, middle.value() + 1), Step::set(high, middle.value())),
        ]);
        Step::repeat_while(low.value().less(high.value()), halve)
    }

    /// Brings the accesses in `node` as far as the variables that are known, and does `inside`: through dense levels at
    /// once, through compressed ones by a search.
    pub(super) fn located(&mut self, visits: &[usize], inside: Inside<'_, Self>) -> Step {
        for &visit in visits {
            while let Some((level, kind, above)) = self.next(visit) {
                let Some(at) = self.recovered(self.visits[visit].variable(level)) else { break };
                if !is_found(kind) {
                    return self.search(visit, level, above, at, visits, inside);
                }
                let variable = self.visits[visit].variable(level).clone();
                if let Some(within) = self.is_in_dimension(&variable, &at).filter(|_| !self.is_checked(visit, level)) {
                    self.checked.push((visit, level));
                    let there = self.places[visit].clone();
                    let step = self.either(visit, within, there, visits, inside);
                    self.checked.pop();
                    return step;
                }
                let position = self.stored(visit).located(level, &above, at);
                let is_set = self.stored(visit).is_set(level, &position);
                let is_stored = match &self.places[visit] {
                    StoragePlace::Maybe(.., is_stored) => Some(is_stored.clone()),
                    _ => None,
                };
                self.places[visit] = match (is_set, is_stored) {
                    (Some(is_set), is_stored) => {
                        let is_there = is_stored.map(|is_stored| is_stored.value().equal(1));
                        let is_set = is_there.map_or(is_set.clone(), |is_there| is_there.and(is_set));
                        return self.either(visit, is_set, StoragePlace::Level(level + 1, position), visits, inside);
                    }
                    (None, Some(is_stored)) => StoragePlace::Maybe(level + 1, position, is_stored),
                    (None, None) => StoragePlace::Level(level + 1, position),
                };
            }
        }
        inside(self)
    }

    /// Whether it is known that a shift is within a level here.
    fn is_checked(&self, visit: usize, level: usize) -> bool {
        self.checked.contains(&(visit, level))
    }

    /// Finds a coordinate below a position of an access.
    fn search(
        &mut self,
        visit: usize,
        level: usize,
        above: Expression,
        at: Expression,
        visits: &[usize],
        inside: Inside<'_, Self>,
    ) -> Step {
        if let Storage::List(list) = self.stored(visit).clone() {
            let (mut find, is_there, place) = list.find(&at, &mut self.names);
            find.push(self.either(visit, is_there, StoragePlace::Level(level + 1, place), visits, inside));
            return Step::Sequence(find);
        }
        let (low, high) = self.segment(visit, level, &above);
        let (first, last, end) = (self.names.index("p"), self.names.index("q"), self.names.index("end"));
        let halve = self.bisect(visit, level, &first, &last, at.clone());
        let coordinate = self.coordinate(visit, level, first.value());
        let variable = self.visits[visit].variable(level);
        let within = self.is_in_dimension(variable, &at).filter(|_| self.stored(visit).is_padded(level));
        let is_there = first.value().less(end.value()).and(coordinate.equal(at));
        let is_there = within.into_iter().fold(is_there, Expression::and);
        let there = self.below_position(visit, level, first.value());
        let choice = self.either(visit, is_there, there, visits, inside);
        Step::Sequence(vec![
            Step::bind_mutable(&first, low),
            Step::bind(&end, high),
            Step::bind_mutable(&last, end.value()),
            halve,
            choice,
        ])
    }

    fn either(
        &mut self,
        visit: usize,
        is_there: Expression,
        there: StoragePlace,
        visits: &[usize],
        inside: Inside<'_, Self>,
    ) -> Step {
        let before = self.places.clone();
        if self.is_large() {
            let here = self.names.index("here");
            let (there, is_there) = match there {
                StoragePlace::Maybe(level, position, is_stored) => {
                    (StoragePlace::Level(level, position), is_stored.value().equal(1).and(is_there))
                }
                there => (there, is_there),
            };
            self.places[visit] = maybe(there, &here);
            let step = self.located(visits, inside);
            self.places = before;
            return Step::Sequence(vec![Step::bind(&here, is_there.select(1, 0)), step]);
        }
        self.places[visit] = there;
        let then = self.located(visits, inside);
        self.places.clone_from(&before);
        self.places[visit] = StoragePlace::Absent;
        let otherwise = self.located(visits, inside);
        self.places = before;
        Step::choose(is_there, then, otherwise)
    }
}
