//! The labels of records: kinds, names, points.

use maniple_space::AnyRect;
use serde::{Deserialize, Serialize};

/// The kind of a thread's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// The user's work: the body of a task.
    Task,
    /// Finding what a launch must be mapped after.
    Analysis,
    /// Choosing processor and instances of a task, and finding the copies that it needs.
    Mapping,
    /// A mapper's decision.
    Mapper,
    /// Moving data: copies, gathers, scatters.
    Copy,
    /// Writing one value many times.
    Fill,
    /// Folding contributions into values.
    Reduction,
    /// The runtime's other work.
    Runtime,
    /// A body that waits: its thread helps with other work or sleeps.
    Waiting,
    /// A worker that sleeps because there is no work.
    Asleep,
}

/// Names a [`Label`] of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LabelId(pub u32);

/// The properties that spans have in common: their kind, their name, and the domain of the launch that they are points
/// of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Label {
    /// The kind of activity.
    pub kind: Kind,
    /// The task's name, or the mapper call's, or another word for it.
    pub name: String,
    /// The domain of an index launch.
    pub domain: Option<Domain>,
    /// The place in the program where it was launched, if that is known.
    pub launched: Option<String>,
}

impl Label {
    /// A label without a domain.
    #[must_use]
    pub fn new(kind: Kind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), domain: None, launched: None }
    }

    /// The label of what was launched over a domain, or not, at a place or at an unknown one.
    pub(super) fn of(kind: Kind, name: &str, domain: Option<&AnyRect>, launched: Option<&str>) -> Self {
        let (name, domain, launched) = (name.to_owned(), domain.map(Domain::from), launched.map(str::to_owned));
        Self { kind, name, domain, launched }
    }

    /// Whether it is [this label](Self::of).
    pub(super) fn is(&self, kind: Kind, name: &str, domain: Option<&AnyRect>, launched: Option<&str>) -> bool {
        let is_same =
            |(own, other): (&Domain, &AnyRect)| own.lo == other.lo().coords() && own.hi == other.hi().coords();
        let has_domain = self.domain.is_some() == domain.is_some();
        let is_named = self.kind == kind && self.name == name && self.launched.as_deref() == launched;
        is_named && has_domain && self.domain.as_ref().zip(domain).is_none_or(is_same)
    }
}

/// The corners of a rectangle, both included.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Domain {
    /// The least coordinates.
    pub lo: Vec<i64>,
    /// The greatest coordinates, as many.
    pub hi: Vec<i64>,
}

impl From<&AnyRect> for Domain {
    fn from(rect: &AnyRect) -> Self {
        Self { lo: rect.lo().coords().to_vec(), hi: rect.hi().coords().to_vec() }
    }
}

impl Domain {
    /// The coordinates of the point with this rank in row-major order; nothing if the domain has no such point.
    #[must_use]
    pub fn point(&self, rank: u32) -> Option<Vec<i64>> {
        let mut rest = i128::from(rank);
        let mut point = vec![0; self.lo.len().min(self.hi.len())];
        for (d, coordinate) in point.iter_mut().enumerate().rev() {
            let extent = i128::from(self.hi[d]) - i128::from(self.lo[d]) + 1;
            if extent <= 0 {
                return None;
            }
            *coordinate = i64::try_from(i128::from(self.lo[d]) + rest % extent).ok()?;
            rest /= extent;
        }
        (rest == 0).then_some(point)
    }
}

/// The description of an operation in its spans: its label, and which point of the label's domain it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tag {
    /// The label.
    pub label: LabelId,
    /// The rank of the point in the label's domain, in row-major order; 0 without a domain.
    pub index: u32,
}

impl Tag {
    /// Nothing: the operation's class says what it is.
    pub const NONE: Self = Self { label: LabelId(u32::MAX), index: 0 };

    /// No point of a domain.
    #[must_use]
    pub const fn of(label: LabelId) -> Self {
        Self { label, index: 0 }
    }
}

impl Default for Tag {
    fn default() -> Self {
        Self::NONE
    }
}
