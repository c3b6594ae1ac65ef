//! Points that no operation of a record tells apart.

use std::rc::Rc;

use maniple_region::{LogicalRegion, TreeId};
use maniple_space::AnySpace;
use rustc_hash::FxHashMap;

use crate::record::{Instance, Kind, Part, Record, Usage};

/// For each region tree, its points in groups (*atoms*) such that every set of points in the record is a union of some.
///
/// A statement that holds of one point of an atom holds of all, so a checker that goes by atoms is as exact as one that
/// goes by points.
pub(crate) struct Atoms {
    trees: FxHashMap<TreeId, Tree>,
}

#[derive(Default)]
struct Tree {
    atoms: Vec<AnySpace>,
    of: FxHashMap<AnySpace, Rc<[u32]>>,
}

impl Atoms {
    /// Finds the atoms of a record. Takes time proportional to its different sets of points times the atoms, most of
    /// which one comparison of bounds settles.
    pub(crate) fn of_record(record: &Record) -> Self {
        let mut trees: FxHashMap<TreeId, Tree> = FxHashMap::default();
        each_set(record, |tree, points| {
            let tree = trees.entry(tree).or_default();
            if !tree.of.contains_key(points) {
                tree.of.insert(points.clone(), Rc::default());
                tree.cut(points);
            }
        });
        trees.values_mut().for_each(Tree::assign);
        Self { trees }
    }

    /// The atoms of a set of points that is in the record.
    pub(crate) fn of(&self, tree: TreeId, points: &AnySpace) -> Rc<[u32]> {
        let known = self.trees.get(&tree).and_then(|tree| tree.of.get(points));
        known.map(Rc::clone).unwrap_or_default()
    }

    /// The points of an atom.
    pub(crate) fn points(&self, tree: TreeId, atom: u32) -> &AnySpace {
        &self.trees[&tree].atoms[atom as usize]
    }
}

impl Tree {
    /// Cuts atoms such that a set of points is a union of some.
    fn cut(&mut self, points: &AnySpace) {
        let mut rest = points.clone();
        for index in 0..self.atoms.len() {
            if rest.is_empty() {
                break;
            }
            let atom = &self.atoms[index];
            let Some(common) = common(atom, &rest) else { continue };
            rest = minus(&rest, &common);
            let outside = minus(atom, &common);
            if !outside.is_empty() {
                self.atoms[index] = common;
                self.atoms.push(outside);
            }
        }
        if !rest.is_empty() {
            self.atoms.push(rest);
        }
    }

    /// Finds the atoms of each set, now that there will be no others.
    fn assign(&mut self) {
        for (points, atoms) in &mut self.of {
            let inside = self.atoms.iter().enumerate().filter(|(_, atom)| atom.overlaps(points).unwrap_or(false));
            *atoms = inside.map(|(index, _)| index as u32).collect();
        }
    }
}

/// The points in both sets, if there are any.
fn common(a: &AnySpace, b: &AnySpace) -> Option<AnySpace> {
    if !a.overlaps(b).unwrap_or(false) {
        return None;
    }
    a.intersection(b).ok()
}

fn minus(a: &AnySpace, b: &AnySpace) -> AnySpace {
    // Sets of one tree have one dimension.
    a.difference(b).unwrap_or_else(|_| a.clone())
}

/// Calls a function with every set of points of a record that an operation uses.
fn each_set(record: &Record, mut visit: impl FnMut(TreeId, &AnySpace)) {
    let mut of_region = |region: &LogicalRegion| visit(region.tree().id(), region.space().space());
    for operation in &record.operations {
        match &operation.kind {
            Kind::Task(task) => task.usages.iter().for_each(|usage| of_region(&usage.region)),
            Kind::Mapping { usage: Usage { region, .. }, .. } | Kind::FillRegion { region, .. } => of_region(region),
            Kind::Lost { usages, .. } => usages.iter().for_each(|usage| of_region(&usage.region)),
            _ => {}
        }
    }
    for operation in &record.operations {
        each_part(&operation.kind, |instance, part| {
            if let Some(Instance { region, .. }) = record.instances.get(&instance) {
                visit(region.tree().id(), &part.points);
            }
        });
    }
}

fn each_part(kind: &Kind, mut visit: impl FnMut(maniple_mapper::InstanceId, &Part)) {
    match kind {
        Kind::Copy { to, parts, .. } => parts.iter().for_each(|part| visit(*to, part)),
        Kind::Fill { to, parts, .. } => parts.iter().for_each(|(part, _)| visit(*to, part)),
        Kind::Refill { buffer, part, .. } => visit(*buffer, part),
        Kind::Apply { to, contributions, .. } => {
            contributions.iter().for_each(|contribution| visit(*to, &contribution.part));
        }
        _ => {}
    }
}
