//! The content of an equivalence set, without its uses: two sets of the same points with the same content are the same
//! to later operations.

use maniple_analysis::validity::Cover;
use maniple_mapper::InstanceId;
use maniple_realm::{Event, EventStatus, Realm};
use maniple_record as record;
use maniple_region::{FieldMask, OperatorId, Shape};

use crate::instances::state::RegionData;
use crate::instances::validity::{self, EquivalenceSet};
use crate::support::fill::FillValue;

/// A set, found again by its fields and points.
#[derive(Clone, Debug)]
pub(crate) struct ContentEntry {
    /// Which of the template's region states it belongs to.
    pub(crate) state: usize,
    pub(crate) fields: FieldMask,
    pub(crate) shape: Shape,
    pub(crate) content: Content,
}

/// The places of the current values of a set's points.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Content {
    fill: Fill,
    /// In the order of their numbers.
    valid: Vec<(InstanceId, Cover)>,
    /// See [`EquivalenceSet::home`]: it may be one without current values.
    home: Option<InstanceId>,
    /// In program order.
    pending: Vec<(OperatorId, InstanceId, Cover)>,
}

#[derive(Clone, Debug)]
enum Fill {
    None,
    /// A value, whichever fill gave it: the record says of a replay which fill that was.
    Value(FillValue),
    Lost,
}

impl PartialEq for Fill {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Value(mine), Self::Value(theirs)) => mine.is_same(theirs),
            _ => false,
        }
    }
}

impl Content {
    pub(crate) fn of(set: &EquivalenceSet) -> Self {
        let fill = match set.fill() {
            None => Fill::None,
            Some(validity::Fill::Value(value)) => Fill::Value(value.clone()),
            Some(validity::Fill::Lost(_)) => Fill::Lost,
        };
        let views = set.views().iter().filter(|view| *view.valid() != Cover::Nothing);
        let mut valid: Vec<_> = views.map(|view| (view.instance().id(), view.valid().clone())).collect();
        valid.sort_unstable_by_key(|(instance, _)| *instance);
        let pending = set.pending().iter();
        let pending =
            pending.map(|pending| (pending.operator(), pending.buffer().id(), pending.cover().clone())).collect();
        Self { fill, valid, home: set.home().map(|home| home.id()), pending }
    }

    /// The value that is stored nowhere, for the record.
    pub(crate) fn filled_with(&self) -> Option<record::Value> {
        match &self.fill {
            Fill::Value(value) => Some(value.recorded()),
            Fill::None | Fill::Lost => None,
        }
    }
}

/// The state of the operations that made a set's values, or contributed to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Makers {
    /// All have ended well.
    Done,
    /// This one is about to end: of its operation it is known already that it has, but not how.
    Ending(Event),
    /// One has failed, or never ran.
    Failed,
}

impl Makers {
    pub(crate) fn of(set: &EquivalenceSet, realm: &Realm) -> Self {
        if let Some(validity::Fill::Lost(_)) = set.fill() {
            return Self::Failed;
        }
        let mut makers = Self::Done;
        for event in set.makers() {
            match realm.status(event) {
                EventStatus::Triggered => {}
                EventStatus::Pending => makers = Self::Ending(event),
                EventStatus::Poisoned(_) => return Self::Failed,
            }
        }
        makers
    }
}

/// Whether a template may be replayed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Yes,
    No,
    /// That is known after this event.
    After(Event),
}

impl ContentEntry {
    /// The set that the entry is about, if it still has the same points and fields.
    pub(crate) fn find<'a>(&self, data: &'a RegionData) -> Option<&'a EquivalenceSet> {
        data.validity.find_set(&self.fields, &self.shape)
    }

    /// Whether the set is as it was.
    pub(crate) fn fits(&self, data: &RegionData, realm: &Realm) -> Fit {
        match self.find(data) {
            Some(set) if Content::of(set) == self.content => match Makers::of(set, realm) {
                Makers::Done => Fit::Yes,
                Makers::Ending(event) => Fit::After(event),
                Makers::Failed => Fit::No,
            },
            _ => Fit::No,
        }
    }
}
