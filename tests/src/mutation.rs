//! Records made wrong on purpose.

use fastrand::Rng;
use maniple::mapper::InstanceId;
use maniple::record::{Kind, Operation, Part, Record, Task, Usage, Value};
use maniple::{FieldMask, TreeId};

/// A way to make a record wrong, as a runtime with a bug would.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mutation {
    /// An operation does not wait for one of those that it waited for.
    DropEdge,
    /// An operation waits for no other.
    DropEdges,
    /// A copy, fill, refill or application does not happen.
    DropMovement,
    /// A part of one does not happen.
    DropPart,
    /// A buffer is applied twice.
    ApplyTwice,
    /// A copy takes another instance.
    StaleSource,
    /// An instance is filled with another value.
    WrongFill,
    /// A task uses another instance.
    WrongInstance,
    /// Two tasks that change the same data change places in program order.
    SwapWriters,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::DropEdge,
        Self::DropEdges,
        Self::DropMovement,
        Self::DropPart,
        Self::ApplyTwice,
        Self::StaleSource,
        Self::WrongFill,
        Self::WrongInstance,
        Self::SwapWriters,
    ];

    /// Makes the mutation somewhere in a record; nothing if there is no place for it.
    #[must_use]
    pub fn of(self, record: &Record, random: &mut Rng) -> Option<Record> {
        let mut mutated = record.clone();
        match self {
            Self::SwapWriters => swap_writers(&mut mutated, random)?,
            _ => {
                let places: Vec<usize> =
                    (0..record.operations.len()).filter(|&place| self.fits(&record.operations[place])).collect();
                let place = *random.choice(&places)?;
                self.mutate(record, &mut mutated.operations[place], random)?;
            }
        }
        Some(mutated)
    }

    fn fits(self, operation: &Operation) -> bool {
        match (self, &operation.kind) {
            (Self::DropEdge | Self::DropEdges, _) => !operation.after.is_empty(),
            (Self::DropMovement, Kind::Copy { .. } | Kind::Fill { .. } | Kind::Refill { .. } | Kind::Apply { .. }) => {
                true
            }
            (Self::DropPart, Kind::Copy { parts, .. }) => !parts.is_empty(),
            (Self::DropPart | Self::WrongFill, Kind::Fill { parts, .. }) => !parts.is_empty(),
            (Self::DropPart | Self::ApplyTwice, Kind::Apply { contributions, .. }) => !contributions.is_empty(),
            (Self::StaleSource, Kind::Copy { .. }) => true,
            (Self::WrongInstance, kind) => !kind.usages().is_empty(),
            _ => false,
        }
    }

    fn mutate(self, record: &Record, operation: &mut Operation, random: &mut Rng) -> Option<()> {
        match (self, &mut operation.kind) {
            (Self::DropEdge, _) => drop(operation.after.remove(random.usize(..operation.after.len()))),
            (Self::DropEdges, _) => operation.after.clear(),
            (Self::DropMovement, Kind::Copy { parts, .. }) => parts.clear(),
            (Self::DropMovement, Kind::Fill { parts, .. }) => parts.clear(),
            (Self::DropMovement, Kind::Refill { part, .. }) => part.fields = FieldMask::new(),
            (Self::DropMovement, Kind::Apply { contributions, .. }) => contributions.clear(),
            (Self::DropPart, Kind::Copy { parts, .. }) => drop(parts.remove(random.usize(..parts.len()))),
            (Self::DropPart, Kind::Fill { parts, .. }) => drop(parts.remove(random.usize(..parts.len()))),
            (Self::DropPart, Kind::Apply { contributions, .. }) => {
                drop(contributions.remove(random.usize(..contributions.len())));
            }
            (Self::ApplyTwice, Kind::Apply { contributions, .. }) => {
                contributions.push(contributions[random.usize(..contributions.len())].clone());
            }
            (Self::StaleSource, Kind::Copy { from, parts, .. }) => {
                let fields = parts.iter().fold(FieldMask::new(), |all, part: &Part| all.union(&part.fields));
                *from = another(record, *from, &fields, random)?;
            }
            (Self::WrongFill, Kind::Fill { parts, .. }) => {
                let index = random.usize(..parts.len());
                parts[index].1 = another_value(record, parts[index].1, random)?;
            }
            (Self::WrongInstance, Kind::Task(Task { usages, .. })) => {
                use_another(record, random.choice(usages.iter_mut())?, random)?;
            }
            (Self::WrongInstance, Kind::Mapping { usage, .. }) => use_another(record, usage, random)?,
            _ => return None,
        }
        Some(())
    }
}

/// Another instance of the same region tree and kind with these fields.
fn another(record: &Record, than: InstanceId, fields: &FieldMask, random: &mut Rng) -> Option<InstanceId> {
    let (tree, buffer) = (tree_of(record, than), record.instances[&than].buffer);
    let fits = |(id, instance): &(&InstanceId, &maniple::record::Instance)| {
        **id != than
            && instance.region.tree().id() == tree
            && fields.is_subset_of(&instance.fields)
            && instance.buffer == buffer
    };
    let others: Vec<InstanceId> = record.instances.iter().filter(fits).map(|(id, _)| *id).collect();
    random.choice(&others).copied()
}

fn tree_of(record: &Record, instance: InstanceId) -> TreeId {
    record.instances[&instance].region.tree().id()
}

fn another_value(record: &Record, than: Value, random: &mut Rng) -> Option<Value> {
    let fills = record.numbered().filter(|(_, operation)| matches!(operation.kind, Kind::FillRegion { .. }));
    let values = fills.map(|(number, _)| Value::Of(number)).chain([Value::Initial]);
    let others: Vec<Value> = values.filter(|value| *value != than).collect();
    random.choice(&others).copied()
}

fn use_another(record: &Record, usage: &mut Usage, random: &mut Rng) -> Option<()> {
    let (fields, instance) = random.choice(usage.instances.iter_mut())?;
    *instance = another(record, *instance, fields, random)?;
    Some(())
}

/// Two operations of one parent that change the same field of the same tree change their places.
fn swap_writers(record: &mut Record, random: &mut Rng) -> Option<()> {
    let changes = |kind: &Kind| -> Vec<(TreeId, FieldMask)> {
        let usages = kind.usages().iter().filter(|usage| usage.privilege.changes_data());
        usages.map(|usage| (usage.region.tree().id(), usage.fields.clone())).collect()
    };
    let writers: Vec<usize> =
        (0..record.operations.len()).filter(|&place| !changes(&record.operations[place].kind).is_empty()).collect();
    let mut pairs = Vec::new();
    for &one in &writers {
        for &other in writers.iter().filter(|&&other| other > one) {
            let kinds = [one, other].map(|place| &record.operations[place].kind);
            let [a, b] = kinds.map(|kind| kind.place());
            let (a, b) = (a?, b?);
            let common = |(tree, fields): &(TreeId, FieldMask)| {
                changes(kinds[1]).iter().any(|(other, others)| other == tree && others.overlaps(fields))
            };
            if a.parent == b.parent && a.launch != b.launch && changes(kinds[0]).iter().any(common) {
                pairs.push((one, other));
            }
        }
    }
    let &(one, other) = random.choice(&pairs)?;
    let places = [one, other].map(|place| record.operations[place].kind.place());
    set_place(&mut record.operations[one].kind, places[1]?);
    set_place(&mut record.operations[other].kind, places[0]?);
    Some(())
}

fn set_place(kind: &mut Kind, to: maniple::record::Place) {
    if let Kind::Task(Task { place, .. }) | Kind::Mapping { place, .. } = kind {
        *place = to;
    }
}
