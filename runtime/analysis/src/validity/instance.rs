//! Instances as the analysis knows them, and counted references to them.

use std::fmt::Debug;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use maniple_region::{FieldMask, Shape, ShapeTable};
use smallvec::SmallVec;

use super::cover::Cover;
use super::events::Event;

/// Some fields at some points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstancePart {
    /// The fields.
    pub fields: FieldMask,
    /// The points.
    pub points: Shape,
}

impl InstancePart {
    /// The points of this part at which another one has fields in common with it.
    pub(super) fn cover_of(&self, other: &Self, shapes: &ShapeTable) -> Cover {
        match self.fields.overlaps(&other.fields) {
            true => Cover::of(&other.points, &self.points, shapes),
            false => Cover::Nothing,
        }
    }
}

/// Memory that can hold values of some fields, or contributions to them.
///
/// It need not know what it holds: the equivalence sets do, and record which operations use it. What a set forgets it
/// hands to [`leave_behind`](Self::leave_behind), so that no later user of the memory overtakes those uses.
pub trait Instance: Debug {
    /// The identity of an instance. Of several instances that serve alike, the one with the least identity is taken.
    type Id: Copy + Ord + Hash + Debug;
    /// The ends of operations.
    type Event: Event;
    /// One value that all points of a field have. The default is that of fields that were never written.
    type Value: Clone + Default + Debug;

    /// Returns the identity of the instance.
    fn id(&self) -> Self::Id;
    /// The fields that it has room for.
    fn fields(&self) -> &FieldMask;
    /// Whether it can hold values of all these points. A buffer cannot.
    fn can_hold(&self, points: &Shape) -> bool;
    /// Whether others than this state's operations may be reading it.
    fn is_lent(&self) -> bool;
    /// The event after which its memory may be touched.
    fn ready(&self) -> Self::Event;
    /// How many references to it are held by the sets: at zero, nothing in it will be needed again.
    fn holders(&self) -> usize;
    /// One more reference is held.
    fn hold(&self);
    /// One less is held.
    fn release(&self);
    /// Values were copied from it or to it: it may be found to be not needed.
    fn may_be_spare(&self) {}
    /// Whether copies in it are to be kept longer than others.
    fn is_kept(&self) -> bool {
        false
    }
    /// Keeps uses that must end before the memory is used for something else, each with the part used: all of it, if
    /// none is named.
    fn leave_behind(&self, uses: impl IntoIterator<Item = (Self::Event, Option<InstancePart>)>);
    /// The same for a use that comes after all that [`leftovers`](Self::leftovers) has told of: it stands for them.
    fn leave_behind_instead(&self, event: Self::Event);
    /// The uses left behind.
    fn leftovers(&self) -> SmallVec<[Self::Event; 2]>;
    /// The same as few events: from then on, each counts as a use of all.
    fn merged_leftovers(&self) -> SmallVec<[Self::Event; 2]>;
    /// The uses left behind that may be of something in a part, each with the part used.
    fn leftovers_near(&self, part: &InstancePart) -> SmallVec<[(Self::Event, Option<InstancePart>); 2]>;
}

/// Instances that together hold an access's fields, each with the fields that it is for.
pub type Instances<I> = SmallVec<[(FieldMask, Arc<I>); 2]>;

/// A reference from an equivalence set: as long as there is one, the instance may not be taken for something else.
#[derive(Debug)]
pub struct Held<I: Instance>(Arc<I>);

impl<I: Instance> Held<I> {
    pub(super) fn new(instance: &Arc<I>) -> Self {
        instance.hold();
        Self(Arc::clone(instance))
    }

    pub(super) fn arc(&self) -> &Arc<I> {
        &self.0
    }
}

impl<I: Instance> Clone for Held<I> {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl<I: Instance> Drop for Held<I> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl<I: Instance> Deref for Held<I> {
    type Target = I;

    fn deref(&self) -> &I {
        &self.0
    }
}
