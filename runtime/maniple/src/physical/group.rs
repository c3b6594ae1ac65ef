//! Fields with one history, and the equivalence sets of their points.

use maniple_region::{FieldMask, IndexSpaceNode, NodeId, Partitioning, Shape, ShapeTable};
use rustc_hash::FxHashMap;
use slab::Slab;
use smallvec::SmallVec;

use super::cover::Cover;
use super::set::EquivalenceSet;
use super::set_index::SetIndex;

/// Names an equivalence set within its group.
pub(crate) type SetId = usize;

/// The sets that a region touches, each with the part touched.
pub(crate) type Touched = SmallVec<[(SetId, Cover); 4]>;

/// Remembered look-ups beyond this number are forgotten: they belong to regions that are not used any more, or soon will be again.
const LOOKUP_LIMIT: usize = 1 << 16;

/// A group of fields that have been used alike, with the equivalence sets that cover all points.
///
/// Groups are split when a requirement names only some of their fields, and never joined.
#[derive(Clone)]
pub(crate) struct FieldGroup {
    pub(crate) fields: FieldMask,
    sets: Slab<EquivalenceSet>,
    index: SetIndex,
    /// Which sets each region touches, as long as no set has been split or merged.
    lookups: FxHashMap<NodeId, Touched>,
}

impl FieldGroup {
    pub(crate) fn new(fields: FieldMask, set: EquivalenceSet) -> Self {
        let mut group = Self { fields, sets: Slab::new(), index: SetIndex::default(), lookups: FxHashMap::default() };
        group.insert(set);
        group
    }

    pub(crate) fn set(&self, id: SetId) -> &EquivalenceSet {
        &self.sets[id]
    }

    pub(crate) fn set_mut(&mut self, id: SetId) -> &mut EquivalenceSet {
        &mut self.sets[id]
    }

    pub(crate) fn sets_mut(&mut self) -> impl Iterator<Item = &mut EquivalenceSet> {
        self.sets.iter_mut().map(|(_, set)| set)
    }

    /// The set that has just these points, if there is one.
    pub(crate) fn find(&self, shape: &Shape) -> Option<SetId> {
        let mut found = None;
        self.index.query(&shape.space().bounds(), |id| {
            if self.sets[id].shape == *shape {
                found = Some(id);
            }
        });
        found
    }

    fn insert(&mut self, set: EquivalenceSet) -> SetId {
        let bounds = set.shape.space().bounds();
        let id = self.sets.insert(set);
        self.index.insert(id, bounds);
        id
    }

    fn remove(&mut self, id: SetId) -> EquivalenceSet {
        self.index.remove(id);
        self.sets.remove(id)
    }

    /// The sets that a region touches. Remembered until a set changes its points.
    pub(crate) fn touched(&mut self, region: &IndexSpaceNode, shapes: &ShapeTable) -> Touched {
        if let Some(known) = self.lookups.get(&region.id()) {
            return known.clone();
        }
        let shape = region.shape();
        let mut touched = Touched::new();
        self.index.query(&shape.space().bounds(), |id| {
            let cover = Cover::of(shape, &self.sets[id].shape, shapes);
            if !cover.is_nothing() {
                touched.push((id, cover));
            }
        });
        // The index answers in any order; program order of copies must not depend on it.
        touched.sort_unstable_by_key(|(id, _)| *id);
        if self.lookups.len() >= LOOKUP_LIMIT {
            self.lookups.clear();
        }
        self.lookups.insert(region.id(), touched.clone());
        touched
    }

    /// The sets that a region touches, after splitting those that stick out of it.
    pub(crate) fn carve(&mut self, region: &IndexSpaceNode, shapes: &ShapeTable) -> SmallVec<[SetId; 4]> {
        let touched = self.touched(region, shapes);
        let mut inside = SmallVec::new();
        for (id, cover) in touched {
            let Cover::Part(part) = cover else {
                inside.push(id);
                continue;
            };
            inside.push(self.cut(id, &part, shapes));
        }
        inside
    }

    /// Splits a set in two: the points of `part`, whose set is returned, and the rest.
    pub(crate) fn cut(&mut self, id: SetId, part: &Shape, shapes: &ShapeTable) -> SetId {
        self.lookups.clear();
        let mut outside = self.remove(id);
        let inside = outside.split(part, shapes);
        self.insert(outside);
        self.insert(inside)
    }

    /// Replaces sets by one that has all their points: those of `shape`.
    pub(crate) fn unite(&mut self, sets: &[SetId], shape: &Shape) -> SetId {
        if let [only] = sets {
            return *only;
        }
        self.lookups.clear();
        let mut views = SmallVec::new();
        let mut mark = 0;
        for &id in sets {
            let mut set = self.remove(id);
            mark = mark.max(set.mark);
            views.append(&mut set.views);
        }
        // The caller has made one instance valid everywhere; views of it become one below, others are dropped there.
        let mut united = EquivalenceSet::new(shape.clone(), None);
        (united.views, united.mark) = (views, mark);
        self.insert(united)
    }

    /// If one set has just the points that a disjoint partition splits, splits the set alike: the pieces are about to be used one by one.
    pub(crate) fn refine(&mut self, partition: &Partitioning, shapes: &ShapeTable) {
        if partition.len() < 2 || !partition.is_disjoint() {
            return;
        }
        let parent = partition.parent();
        let [(id, Cover::Everything)] = self.touched(parent, shapes)[..] else { return };
        if self.sets[id].shape != *parent.shape() {
            return;
        }
        let whole = self.remove(id);
        self.lookups.clear();
        for piece in partition.pieces().iter().filter(|piece| !piece.is_empty()) {
            self.insert(whole.within(piece, shapes));
        }
        let rest = shapes.difference(parent.shape(), partition.union());
        if !rest.is_empty() {
            self.insert(whole.within(&rest, shapes));
        }
        whole.dissolve();
    }

    /// The same history for only some of the fields.
    pub(crate) fn narrowed(&self, fields: FieldMask) -> Self {
        Self { fields, ..self.clone() }
    }
}
