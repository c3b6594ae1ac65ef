//! Fills as they are launched, and known again.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_region::{Requirement, TreeId, endings};
use rustc_hash::FxHasher;

use super::site::{changes, has_fields};
use crate::context::ContextState;
use crate::instances::bound::Bound;
use crate::support::fill::FillValue;

/// A fill of one region that arrives.
#[derive(Clone)]
pub(crate) struct Filling {
    /// The name of the operation.
    pub(crate) name: &'static str,
    pub(crate) requirement: Requirement,
    pub(crate) value: FillValue,
}

/// The common part of fills of the same fields of the same region with the same value. They were found to be allowed.
pub(crate) struct FillSite {
    pub(crate) name: &'static str,
    pub(crate) bound: Bound,
    pub(crate) value: FillValue,
    pub(crate) token: u64,
    /// How often fields had been freed, or their ids given to new ones.
    changes: u64,
    /// The latest [number of endings](endings) after which everything was found to be there.
    there_after: AtomicU64,
}

impl Filling {
    pub(crate) fn new(name: &'static str, requirement: Requirement, value: FillValue) -> Self {
        Self { name, requirement, value }
    }

    /// A number that is the same for the same fills, and hardly ever for others.
    fn token(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.name, &self.requirement, &self.value).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether another is of the same fields of the same region, with the same value.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.requirement == other.requirement && self.value.is_same(&other.value)
    }

    /// The fields and the region that are filled, for messages.
    pub(crate) fn shown(&self) -> String {
        shown(self.name, &self.requirement)
    }

    /// Whether replays can tell it from others: see [`FillValue::is_comparable`].
    pub(crate) fn is_comparable(&self) -> bool {
        self.value.is_comparable()
    }
}

impl FillSite {
    /// The site of a fill that was found to be allowed.
    pub(crate) fn new(filling: &Filling, bound: Bound) -> Self {
        Self {
            name: filling.name,
            value: filling.value.clone(),
            token: filling.token(),
            changes: changes(&bound.requirement),
            there_after: AtomicU64::new(u64::MAX),
            bound,
        }
    }

    /// Whether a fill that arrives is one of these, if by a name that another region had before, and its data is there.
    #[inline]
    pub(crate) fn is_same_and_allowed(&self, filling: &Filling, context: &ContextState) -> bool {
        self.name == filling.name
            && self.bound.requirement == filling.requirement
            && self.value.is_same(&filling.value)
            && match self.bound.requirement.target.is_same_name(&filling.requirement.target) {
                true => self.is_there(context),
                false => {
                    let target = &filling.requirement.target;
                    has_fields(&filling.requirement, self.changes, context)
                        && target.check_alive(context).is_ok()
                        && context.may_use(target)
                }
            }
    }

    /// Whether two sites are of the same fills.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.name == other.name && self.bound.requirement == other.bound.requirement && self.value.is_same(&other.value)
    }

    fn is_there(&self, context: &ContextState) -> bool {
        let endings = endings();
        if self.there_after.load(Ordering::Relaxed) == endings {
            return true;
        }
        let requirement = &self.bound.requirement;
        let is_there =
            has_fields(requirement, self.changes, context) && requirement.target.check_alive(context).is_ok();
        if is_there {
            self.there_after.store(endings, Ordering::Relaxed);
        }
        is_there
    }

    /// Such a fill.
    pub(crate) fn filling(&self) -> Filling {
        Filling::new(self.name, self.bound.requirement.clone(), self.value.clone())
    }

    /// Whether it is about a region tree.
    pub(crate) fn uses(&self, tree: TreeId) -> bool {
        self.bound.requirement.target.tree().id() == tree
    }

    /// The fields and the region that are filled, for messages.
    pub(crate) fn shown(&self) -> String {
        shown(self.name, &self.bound.requirement)
    }
}

fn shown(name: &str, requirement: &Requirement) -> String {
    format!("{name} of field(s) {} of {}", requirement.field_names(), requirement.target)
}
