//! The expected values: the program run one operation after another, on one copy of the data, shows the values that
//! every operation must see.

use std::collections::BTreeMap;

use maniple_region::{FieldId, FieldMask, LogicalRegion, Privilege, TreeId};
use rustc_hash::FxHashMap;

use crate::check::atoms::Atoms;
use crate::check::versions::{Version, Versions};
use crate::check::violation::{Data, Violation};
use crate::record::{Kind, OperationNumber, Place, Record, Usage};

/// The operations that have a place in program order, in that order; a task comes before those that it launched.
pub(crate) fn program_order(record: &Record) -> Vec<OperationNumber> {
    let mut children: BTreeMap<OperationNumber, Vec<(Place, OperationNumber)>> = BTreeMap::new();
    for (number, operation) in record.numbered() {
        if let Some(place) = operation.kind.place() {
            children.entry(place.parent).or_default().push((place, number));
        }
    }
    children.values_mut().for_each(|siblings| siblings.sort_unstable());
    let has_parent =
        |number: &OperationNumber| record.operation(*number).is_some_and(|operation| operation.kind.place().is_some());
    // What is left without a parent is top-level tasks, which know nothing of each other's data.
    let tops: Vec<OperationNumber> = children.keys().filter(|number| !has_parent(number)).copied().collect();
    let mut order = Vec::new();
    let mut open: Vec<OperationNumber> = tops.into_iter().rev().collect();
    while let Some(next) = open.pop() {
        order.push(next);
        let launched = children.remove(&next).unwrap_or_default();
        open.extend(launched.into_iter().rev().map(|(_, number)| number));
    }
    order.retain(has_parent);
    order
}

/// For each operation that sees data, the versions that it must see: by requirement, field and atom, in this order.
pub(crate) type Expected = FxHashMap<OperationNumber, Vec<Version>>;

/// Runs the program on one copy of the data.
///
/// # Errors
/// [`Violation::Misapplied`] if an operation contributes twice, which no record of a runtime says.
pub(crate) fn expected(
    record: &Record,
    order: &[OperationNumber],
    atoms: &Atoms,
    versions: &mut Versions,
) -> Result<Expected, Violation> {
    let mut painter = Painter { record, atoms, versions, current: FxHashMap::default() };
    let mut expected = Expected::default();
    for &number in order {
        let Some(operation) = record.operation(number) else { continue };
        match &operation.kind {
            Kind::FillRegion { region, fields, .. } => {
                let version = painter.versions.written(number);
                painter.paint(region, fields, version);
            }
            Kind::Lost { usages, .. } => {
                usages.iter().for_each(|usage| painter.paint(&usage.region, &usage.fields, Versions::ANYTHING));
            }
            // What a task shall not look at, its children need not find.
            Kind::Task(task) if !task.is_leaf => {
                let discarded = task.usages.iter().filter(|usage| usage.privilege == Privilege::Discard);
                discarded.for_each(|usage| painter.paint(&usage.region, &usage.fields, Versions::ANYTHING));
            }
            kind => {
                let seen = painter.look(kind.usages());
                if !seen.is_empty() {
                    expected.insert(number, seen);
                }
                painter.change(number, kind.usages())?;
            }
        }
    }
    Ok(expected)
}

/// The one copy of the data.
struct Painter<'a> {
    record: &'a Record,
    atoms: &'a Atoms,
    versions: &'a mut Versions,
    /// The current values. A spot that was not painted is zero.
    current: FxHashMap<(TreeId, FieldId, u32), Version>,
}

impl Painter<'_> {
    fn paint(&mut self, region: &LogicalRegion, fields: &FieldMask, version: Version) {
        each_atom(self.atoms, region, fields, |field, atom| {
            self.current.insert((region.tree().id(), field, atom), version);
        });
    }

    fn look(&self, usages: &[Usage]) -> Vec<Version> {
        let mut seen = Vec::new();
        for usage in usages.iter().filter(|usage| usage.privilege.sees_data()) {
            let tree = usage.region.tree().id();
            each_atom(self.atoms, &usage.region, &usage.fields, |field, atom| {
                seen.push(self.current.get(&(tree, field, atom)).copied().unwrap_or(Versions::INITIAL));
            });
        }
        seen
    }

    fn change(&mut self, number: OperationNumber, usages: &[Usage]) -> Result<(), Violation> {
        for (requirement, usage) in usages.iter().enumerate() {
            match usage.privilege {
                Privilege::Read => {}
                Privilege::ReadWrite | Privilege::Discard => {
                    let version = self.versions.written(number);
                    self.paint(&usage.region, &usage.fields, version);
                }
                Privilege::Reduce(operator) => {
                    let (atoms, tree) = (self.atoms, usage.region.tree().id());
                    let mut refused = Ok(());
                    each_atom(atoms, &usage.region, &usage.fields, |field, atom| {
                        let current = self.current.entry((tree, field, atom)).or_insert(Versions::INITIAL);
                        match self.versions.contributed(*current, operator, (number, requirement)) {
                            Ok(version) => *current = version,
                            Err(_) => refused = Err((field, atom)),
                        }
                    });
                    refused.map_err(|(field, atom)| Violation::Misapplied {
                        operation: self.record.name(number),
                        data: data(atoms, &usage.region, field, atom),
                        problem: "it contributes to it twice".to_owned(),
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// Calls a function with each field and atom of some data, in order.
pub(crate) fn each_atom(
    atoms: &Atoms,
    region: &LogicalRegion,
    fields: &FieldMask,
    mut visit: impl FnMut(FieldId, u32),
) {
    let inside = atoms.of(region.tree().id(), region.space().space());
    for field in fields.iter() {
        inside.iter().for_each(|&atom| visit(field, atom));
    }
}

/// An atom of a field, for messages.
pub(crate) fn data(atoms: &Atoms, region: &LogicalRegion, field: FieldId, atom: u32) -> Data {
    Data {
        field: region.fields().name_of(field),
        region: region.tree().to_string(),
        points: atoms.points(region.tree().id(), atom).clone(),
        instance: None,
    }
}
