//! Inputs: the results of a launch that a later launch or a function takes.

use std::sync::Arc;

use maniple_realm::{Event, Realm};
use maniple_space::AnyPoint;

use super::Results;
use crate::support::error::Error;

/// Results of a launch that a later one takes, or a function.
#[derive(Clone)]
pub(crate) struct Input {
    results: Arc<Results>,
    part: InputPart,
}

/// Which results those are.
#[derive(Clone, Copy)]
enum InputPart {
    All,
    /// That of one point, by its number.
    One(u32),
    /// For each point of the later launch, that of the same point.
    PerPoint,
}

impl Input {
    /// All results.
    pub(crate) fn all(results: Arc<Results>) -> Self {
        Self { results, part: InputPart::All }
    }

    /// The result of one point. A launch has at most 2^28.
    pub(crate) fn one(results: Arc<Results>, index: usize) -> Self {
        Self { results, part: InputPart::One(index as u32) }
    }

    /// For each point of a later launch, the result of the same point.
    pub(crate) fn per_point(results: Arc<Results>) -> Self {
        Self { results, part: InputPart::PerPoint }
    }

    pub(crate) fn results(&self) -> &Arc<Results> {
        &self.results
    }

    pub(crate) fn into_results(self) -> Arc<Results> {
        self.results
    }

    pub(crate) fn is_per_point(&self) -> bool {
        matches!(self.part, InputPart::PerPoint)
    }

    /// See [`Results::is_of`].
    pub(crate) fn is_of(&self, realm: &Realm) -> bool {
        self.results.is_of(realm)
    }

    /// The number of the point, if one result is taken.
    pub(crate) fn index(&self) -> usize {
        match self.part {
            InputPart::One(index) => index as usize,
            InputPart::All | InputPart::PerPoint => 0,
        }
    }

    /// Triggers when everything is there that any point takes; poisoned if anything of it is a failure.
    pub(crate) fn end(&self) -> Event {
        match self.part {
            InputPart::One(index) => self.results.end_of(index as usize),
            InputPart::All | InputPart::PerPoint => self.results.completion(),
        }
    }

    /// Triggers when what a point takes is there; poisoned if that is a failure.
    pub(crate) fn end_at(&self, point: AnyPoint) -> Event {
        match self.taken_at(point) {
            Taken::All => self.results.completion(),
            Taken::One(index) => self.results.end_of(index),
            Taken::Nothing => Event::NONE,
        }
    }

    /// Whether what a point takes is there.
    pub(crate) fn has_ended_at(&self, point: AnyPoint) -> bool {
        match self.taken_at(point) {
            Taken::All => self.results.has_ended(),
            Taken::One(index) => self.results.point_has_ended(index),
            Taken::Nothing => true,
        }
    }

    /// Whether everything is there that any point takes.
    pub(crate) fn has_ended(&self) -> bool {
        match self.part {
            InputPart::One(index) => self.results.point_has_ended(index as usize),
            InputPart::All | InputPart::PerPoint => self.results.has_ended(),
        }
    }

    /// The failure among what a point takes, once that is there.
    pub(crate) fn error_at(&self, point: AnyPoint) -> Option<Error> {
        match self.taken_at(point) {
            Taken::All => self.results.error(),
            Taken::One(index) => self.results.error_of(index),
            Taken::Nothing => None,
        }
    }

    /// Whether everything that is taken is there, and none of it is a failure.
    pub(super) fn is_settled(&self) -> bool {
        match self.part {
            InputPart::One(index) => self.has_ended() && self.results.error_of(index as usize).is_none(),
            InputPart::All | InputPart::PerPoint => self.has_ended() && self.results.error().is_none(),
        }
    }

    fn taken_at(&self, point: AnyPoint) -> Taken {
        match self.part {
            InputPart::All => Taken::All,
            InputPart::One(index) => Taken::One(index as usize),
            InputPart::PerPoint => match self.results.index_of(point) {
                Some(index) => Taken::One(index),
                // Of a launch that was refused there may be no points.
                None if self.results.domain.is_empty() => Taken::All,
                None => Taken::Nothing,
            },
        }
    }
}

/// The results that one point takes.
enum Taken {
    All,
    One(usize),
    /// It is a point that the earlier launch did not have: it finds out when it asks for the value.
    Nothing,
}
