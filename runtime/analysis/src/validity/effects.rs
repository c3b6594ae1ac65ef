//! Effects of the analysis: copies, fills, and contributions that are applied.

use std::sync::Arc;

use maniple_region::{FieldMask, Shape};

use super::cover::Cover;
use super::events::{Events, Preconditions};
use super::instance::Instance;
use super::set::{Fill, PendingReduction};
use super::set_index::SetId;

/// The caller's part, which carries out the effects that the analysis finds due. Effects come one after the other, each
/// when all events that it comes after have names: the calls are the plan.
pub trait Effects<I: Instance> {
    /// The type that knows the outcomes of events.
    type Events: Events<I::Event>;

    /// Returns the outcomes of events.
    fn events(&self) -> &Self::Events;
    /// The same, if uses that have ended may be forgotten and others merged; nothing if each is to be seen.
    fn pruning(&self) -> Option<&Self::Events>;
    /// Whether the effects have been carried out before, by a replay, and the state only catches up.
    fn is_catching_up(&self) -> bool;
    /// Whether an operation may not be made to wait for others that it has nothing to do with, although they use the
    /// same instances: those that come later in the program may be waiting for it. It costs more effects.
    fn keeps_apart(&self) -> bool;
    /// Ranks the instances that values could be copied from: their indices, best first; those left out come last. With
    /// each come those of the fields wanted of which it holds all values that are wanted.
    fn rank(&mut self, sources: &[(Arc<I>, FieldMask)], destination: &I) -> Vec<usize>;
    /// Carries an effect out after its preconditions, and names its end. If a needed precondition has failed, so has
    /// the effect.
    fn carry_out(&mut self, effect: Effect<'_, I>, after: &Preconditions<I::Event>) -> I::Event;
    /// Notes that the operation applies so many contributions [itself](super::Beginning).
    fn leave_to_operation(&mut self, contributions: usize);
}

/// Something that is due before an operation.
#[derive(Debug)]
pub enum Effect<'a, I: Instance> {
    /// Values are brought to an instance. All movements have one destination and one source (or all are fills); they
    /// are about different fields or points.
    Move(&'a [&'a Movement<I>]),
    /// Contributions to one set are applied, or folded into another buffer, one after the other.
    Apply(&'a [Application<I>]),
}

/// The source of current values.
#[derive(Debug)]
pub enum Source<I: Instance> {
    /// Another instance.
    Instance(Arc<I>),
    /// One value that is stored nowhere.
    Fill(Fill<I::Value, I::Event>),
}

impl<I: Instance> Clone for Source<I> {
    fn clone(&self) -> Self {
        match self {
            Self::Instance(instance) => Self::Instance(Arc::clone(instance)),
            Self::Fill(fill) => Self::Fill(fill.clone()),
        }
    }
}

/// Current values of part of an equivalence set, to be put into an instance.
#[derive(Debug)]
pub struct Movement<I: Instance> {
    pub(super) group: usize,
    pub(super) set: SetId,
    pub(super) cover: Cover,
    /// The fields that are moved.
    pub fields: FieldMask,
    /// The points.
    pub points: Shape,
    /// The source of the values.
    pub source: Source<I>,
    /// The instance to which the values go.
    pub destination: Arc<I>,
}

impl<I: Instance> Movement<I> {
    /// The instance that the values are in, unless they are stored nowhere.
    pub fn from(&self) -> Option<&Arc<I>> {
        match &self.source {
            Source::Instance(instance) => Some(instance),
            Source::Fill(_) => None,
        }
    }

    /// Movements with equal keys go together as one effect.
    pub(super) fn route(&self) -> (Option<I::Id>, I::Id) {
        (self.from().map(|from| from.id()), self.destination.id())
    }
}

/// Contributions to be applied to values, or folded into another buffer.
#[derive(Debug)]
pub struct Application<I> {
    /// The points.
    pub points: Shape,
    /// The fields.
    pub fields: FieldMask,
    /// The buffer that holds the contributions.
    pub from: Arc<I>,
    /// The instance or buffer to which the contributions go.
    pub into: Arc<I>,
}

impl<I: Instance> Application<I> {
    /// Of contributions to fields of a set that has the points of `whole`.
    pub(super) fn of(
        reduction: &PendingReduction<I>,
        whole: &Shape,
        fields: &FieldMask,
        into: &Arc<I>,
    ) -> Option<Self> {
        let points = reduction.cover.shape(whole)?.clone();
        let (fields, from) = (fields.intersection(reduction.buffer.fields()), Arc::clone(reduction.buffer.arc()));
        Some(Self { points, fields, from, into: Arc::clone(into) })
    }
}
