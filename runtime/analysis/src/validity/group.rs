//! Fields with one history, and the equivalence sets of their points.

use std::sync::Arc;

use maniple_region::{FieldMask, IndexSpaceNode, NodeId, Partitioning, Shape, ShapeTable};
use maniple_space::AnySpace;
use rustc_hash::FxHashMap;
use slab::Slab;
use smallvec::SmallVec;

use super::cover::Cover;
use super::instance::Instance;
use super::set::EquivalenceSet;
use super::set_index::{SetId, SetIndex};

/// The sets that a region touches, each with the part touched.
pub(super) type Touched = Arc<[(SetId, Cover)]>;

/// Remembered look-ups beyond this number are forgotten: they belong to regions that are not used any more, or soon
/// will be again.
const LOOKUP_LIMIT: usize = 1 << 16;

/// A group of fields that have been used alike, with the equivalence sets that cover all points.
///
/// Groups are split when a requirement names only some of their fields, and never joined.
pub struct FieldGroup<I: Instance> {
    pub(super) fields: FieldMask,
    sets: Slab<EquivalenceSet<I>>,
    index: SetIndex,
    /// The sets by the numbers of their shapes. Sets share no points, so no two have one shape.
    by_shape: FxHashMap<u64, SetId>,
    /// Which sets each region touches, as long as no set has been split or merged.
    lookups: FxHashMap<NodeId, Touched>,
    /// How often sets have changed their points, or the group its fields.
    changes: u64,
}

impl<I: Instance> FieldGroup<I> {
    pub(super) fn new(fields: FieldMask, set: EquivalenceSet<I>) -> Self {
        let (by_shape, lookups) = (FxHashMap::default(), FxHashMap::default());
        let mut group = Self { fields, sets: Slab::new(), index: SetIndex::default(), by_shape, lookups, changes: 0 };
        group.insert(set);
        group
    }

    pub(super) fn set(&self, id: SetId) -> &EquivalenceSet<I> {
        &self.sets[id]
    }

    pub(super) fn set_mut(&mut self, id: SetId) -> &mut EquivalenceSet<I> {
        &mut self.sets[id]
    }

    pub(super) fn sets_mut(&mut self) -> impl Iterator<Item = &mut EquivalenceSet<I>> {
        self.sets.iter_mut().map(|(_, set)| set)
    }

    /// The set that has just these points, if there is one.
    pub(super) fn find(&self, shape: &Shape) -> Option<SetId> {
        self.by_shape.get(&shape.id()).copied()
    }

    fn insert(&mut self, set: EquivalenceSet<I>) -> SetId {
        let (bounds, shape) = (set.shape.space().bounds(), set.shape.id());
        let id = self.sets.insert(set);
        self.index.insert(id, bounds);
        self.by_shape.insert(shape, id);
        id
    }

    fn remove(&mut self, id: SetId) -> EquivalenceSet<I> {
        self.index.remove(id);
        let set = self.sets.remove(id);
        self.by_shape.remove(&set.shape.id());
        set
    }

    /// The sets that a region touches. Remembered until a set changes its points.
    pub(super) fn touched(&mut self, region: &IndexSpaceNode, shapes: &ShapeTable) -> Touched {
        if let Some(known) = self.lookups.get(&region.id()) {
            return Arc::clone(known);
        }
        let near = self.near(region.shape()).into_iter();
        let touched = near.map(|id| (id, Cover::of(region.shape(), &self.sets[id].shape, shapes)));
        let touched: Touched = touched.filter(|(_, cover)| !cover.is_nothing()).collect();
        if self.lookups.len() >= LOOKUP_LIMIT {
            self.lookups.clear();
        }
        self.lookups.insert(region.id(), Arc::clone(&touched));
        touched
    }

    /// The sets that may have some of these points, in the order of their ids: the index answers in any, and program
    /// order of copies must not depend on it.
    fn near(&self, shape: &Shape) -> Vec<SetId> {
        let (space, mut found) = (shape.space(), Vec::new());
        // Points that are far apart have nearly everything in the box around them.
        if (2..=self.sets.len()).contains(&space.rect_count()) {
            space.rects().for_each(|rect| self.index.query(&rect, |id| found.push(id)));
        } else {
            self.index.query(&space.bounds(), |id| found.push(id));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The sets that a region touches, after splitting those that stick out of it.
    pub(super) fn carve(&mut self, region: &IndexSpaceNode, shapes: &ShapeTable) -> Touched {
        let touched = self.touched(region, shapes);
        if touched.iter().all(|(_, cover)| cover.is_everything()) {
            return touched;
        }
        for (id, cover) in touched.iter() {
            if let Cover::Part(part) = cover {
                self.cut(*id, part, shapes);
            }
        }
        self.touched(region, shapes)
    }

    /// Splits a set in two: the points of `part`, whose set is returned, and the rest.
    pub(super) fn cut(&mut self, id: SetId, part: &Shape, shapes: &ShapeTable) -> SetId {
        self.forget_lookups();
        let mut outside = self.remove(id);
        let inside = outside.split(part, shapes);
        self.insert(outside);
        self.insert(inside)
    }

    /// Replaces whole sets by one that has all their points: those of `shape`.
    pub(super) fn unite(&mut self, sets: &[(SetId, Cover)], shape: &Shape) -> SetId {
        if let [(only, _)] = sets {
            return *only;
        }
        self.forget_lookups();
        let mut views = SmallVec::new();
        let mut mark = 0;
        for (id, _) in sets {
            let mut set = self.remove(*id);
            mark = mark.max(set.mark);
            views.append(&mut set.views);
        }
        // The caller has made one instance valid everywhere; views of it become one below, others are dropped there.
        let mut united = EquivalenceSet::new(shape.clone(), None);
        (united.views, united.mark) = (views, mark);
        self.insert(united)
    }

    /// If one set has just the points that a disjoint partition splits, splits the set alike: the pieces are about to
    /// be used one by one. Whether there was one.
    pub(super) fn refine(&mut self, partition: &Partitioning, shapes: &ShapeTable) -> bool {
        let parent = partition.parent();
        if partition.len() < 2 || parent.shape().is_empty() {
            return false;
        }
        // Not by looking at all sets that the parent touches: there may be as many as pieces, and each slice of a
        // launch asks.
        let Some(id) = self.find(parent.shape()) else { return false };
        let whole = self.remove(id);
        self.forget_lookups();
        // Looked at once: more may come to be known meanwhile. The others are used elsewhere.
        let known: Vec<Shape> = partition.known_pieces().filter(|piece| !piece.is_empty()).cloned().collect();
        let union = match partition.piece_source() {
            None => partition.union().clone(),
            Some(_) => {
                let union = AnySpace::union_all(parent.space().dim(), known.iter().map(Shape::space));
                shapes.intern(&union.expect("pieces have their parent's dimension"))
            }
        };
        known.iter().for_each(|piece| _ = self.insert(whole.within(piece, shapes)));
        let rest = shapes.difference(parent.shape(), &union);
        if !rest.is_empty() {
            self.insert(whole.within(&rest, shapes));
        }
        whole.dissolve();
        true
    }

    /// The same history for only some of the fields. What was looked up is not copied, as it may be much: each group
    /// looks up what its own fields are used for.
    pub(super) fn narrowed(&self, fields: &FieldMask) -> Self {
        let Self { fields: all, sets, index, by_shape, changes, .. } = self;
        let (sets, index, by_shape) = (sets.clone(), index.clone(), by_shape.clone());
        let mut other =
            Self { fields: all.clone(), sets, index, by_shape, lookups: FxHashMap::default(), changes: *changes };
        other.narrow(fields);
        other
    }

    /// Leaves only some of the fields to the group.
    pub(super) fn narrow(&mut self, fields: &FieldMask) {
        let views = self.sets_mut().flat_map(|set| &mut set.views);
        views.for_each(|view| view.whole.fields.clone_from(fields));
        self.fields.clone_from(fields);
        self.changes += 1;
    }

    /// Returns the number of changes of the group. The result of a lookup stays right as long as this number is the
    /// same.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    fn forget_lookups(&mut self) {
        self.lookups.clear();
        self.changes += 1;
    }
}
