//! The replay of a record over the instances: it shows the values that every operation did see.

use maniple_mapper::InstanceId;
use maniple_region::{FieldId, LogicalRegion, Privilege};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::check::atoms::Atoms;
use crate::check::order::{OperationOrder, Question};
use crate::check::program::{Expected, data, each_atom};
use crate::check::versions::{Refused, Version, Versions};
use crate::check::violation::{Data, Violation};
use crate::record::{Contribution, Instance, Kind, OperationNumber, Part, Record, Usage, Value};

/// An atom of a field in an instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Spot {
    instance: InstanceId,
    field: FieldId,
    atom: u32,
}

/// The content of a spot, and the operations that have used it since it was last changed.
struct ReplayCell {
    version: Version,
    changed_by: Option<u32>,
    /// Operations that have read it since then.
    readers: SmallVec<[u32; 4]>,
}

/// The result of playing a record.
pub(crate) struct Replayed {
    /// Which operations must come after which others for this to be what happened, and a spot that both use.
    pub(crate) questions: FxHashMap<Question, Spot>,
    /// The first thing that went wrong, if all questions are answered well.
    pub(crate) violation: Option<Violation>,
    /// How many times an operation has seen an atom of a field.
    pub(crate) reads: u64,
    /// How many times contributions were added to an atom of a field.
    pub(crate) contributions: u64,
}

/// Plays a record in an order that its operations can have had.
///
/// For each use of a spot that changes it, the questions are whether it comes after the change before and after all
/// reads since; for each read, whether it comes after the change before. All other pairs that interfere are ordered if
/// these are.
pub(crate) fn replay(
    record: &Record,
    order: &OperationOrder,
    atoms: &Atoms,
    versions: &mut Versions,
    expected: &Expected,
) -> Replayed {
    let replayed = Replayed { questions: FxHashMap::default(), violation: None, reads: 0, contributions: 0 };
    let mut machine = ReplayMachine { record, atoms, versions, cells: FxHashMap::default(), replayed };
    for &position in order.sequence() {
        machine.play(position, expected);
    }
    machine.replayed
}

struct ReplayMachine<'a> {
    record: &'a Record,
    atoms: &'a Atoms,
    versions: &'a mut Versions,
    cells: FxHashMap<Spot, ReplayCell>,
    replayed: Replayed,
}

impl<'a> ReplayMachine<'a> {
    fn play(&mut self, position: u32, expected: &Expected) {
        let record = self.record;
        let Some(operation) = record.operations.get(position as usize) else { return };
        match &operation.kind {
            Kind::Copy { from, to, parts, .. } => {
                parts.iter().for_each(|part| self.copy(position, *from, *to, part));
            }
            Kind::Fill { to, parts, .. } => {
                for (part, value) in parts {
                    let version = match value {
                        Value::Initial => Versions::INITIAL,
                        Value::Of(number) => self.versions.written(*number),
                        Value::Lost => Versions::LOST,
                    };
                    self.overwrite(position, *to, part, version);
                }
            }
            Kind::Refill { buffer, part, .. } => self.overwrite(position, *buffer, part, Versions::IDENTITY),
            Kind::Apply { to, contributions, .. } => {
                contributions.iter().for_each(|contribution| self.apply(position, *to, contribution));
            }
            kind => {
                let number = record.number(position as usize);
                self.look(position, number, kind.usages(), expected.get(&number));
                self.change(position, number, kind.usages());
            }
        }
    }

    fn copy(&mut self, position: u32, from: InstanceId, to: InstanceId, part: &Part) {
        for spot in self.spots(position, to, part) {
            let version = self.read(position, Spot { instance: from, ..spot });
            self.write(position, spot, version);
        }
    }

    fn overwrite(&mut self, position: u32, to: InstanceId, part: &Part, version: Version) {
        for spot in self.spots(position, to, part) {
            self.write(position, spot, version);
        }
    }

    fn apply(&mut self, position: u32, to: InstanceId, contribution: &Contribution) {
        let Contribution { buffer, operator, part } = contribution;
        for spot in self.spots(position, to, part) {
            let buffered = self.read(position, Spot { instance: *buffer, ..spot });
            self.reduce(position, spot, |versions, current| versions.applied(current, *operator, buffered));
        }
    }

    /// Reads what an operation must see, and compares.
    fn look(&mut self, position: u32, number: OperationNumber, usages: &[Usage], expected: Option<&Vec<Version>>) {
        let mut expected = expected.into_iter().flatten();
        for usage in usages.iter().filter(|usage| usage.privilege.sees_data()) {
            let atoms = self.atoms;
            each_atom(atoms, &usage.region, &usage.fields, |field, atom| {
                let Some(instance) = self.place(number, usage, field) else { return };
                let found = self.read(position, Spot { instance, field, atom });
                let wanted = expected.next().copied().unwrap_or(Versions::ANYTHING);
                self.replayed.reads += 1;
                if found == wanted || self.versions.is_anything(wanted) {
                    return;
                }
                let (versions, record) = (&*self.versions, self.record);
                self.replayed.violation.get_or_insert_with(|| Violation::WrongVersion {
                    reader: record.name(number),
                    data: Data { instance: Some(instance), ..data(atoms, &usage.region, field, atom) },
                    found: versions.describe(found, record),
                    expected: versions.describe(wanted, record),
                });
            });
        }
    }

    fn change(&mut self, position: u32, number: OperationNumber, usages: &[Usage]) {
        for (requirement, usage) in usages.iter().enumerate() {
            let atoms = self.atoms;
            if usage.privilege == Privilege::Read {
                continue;
            }
            each_atom(atoms, &usage.region, &usage.fields, |field, atom| {
                let Some(instance) = self.place(number, usage, field) else { return };
                let spot = Spot { instance, field, atom };
                match usage.privilege {
                    Privilege::Reduce(operator) => self.reduce(position, spot, |versions, current| {
                        versions.contributed(current, operator, (number, requirement))
                    }),
                    _ => {
                        let version = self.versions.written(number);
                        self.write(position, spot, version);
                    }
                }
            });
        }
    }

    /// Returns the instance in which a field of a usage is. If there is none, notes a violation.
    fn place(&mut self, number: OperationNumber, usage: &Usage, field: FieldId) -> Option<InstanceId> {
        let found = usage.instances.iter().find(|(fields, _)| fields.contains(field)).map(|(_, instance)| *instance);
        let is_large_enough = |instance: &InstanceId| {
            self.record.instances.get(instance).is_some_and(|known| has_room(known, &usage.region))
        };
        let place = found.filter(is_large_enough);
        if place.is_none() {
            let record = self.record;
            self.replayed.violation.get_or_insert_with(|| Violation::Malformed {
                operation: record.name(number),
                problem: match found {
                    None => format!("no instance holds its field `{}`", usage.region.fields().name_of(field)),
                    Some(instance) => format!("instance {} has no room for {}", instance.0, usage.region),
                },
            });
        }
        place
    }

    /// The spots of a part of an instance.
    fn spots(&mut self, position: u32, instance: InstanceId, part: &Part) -> Vec<Spot> {
        let record = self.record;
        let Some(known) = record.instances.get(&instance) else {
            self.replayed.violation.get_or_insert_with(|| Violation::Malformed {
                operation: record.name(record.number(position as usize)),
                problem: format!("there is no instance {}", instance.0),
            });
            return Vec::new();
        };
        let inside = self.atoms.of(known.region.tree().id(), &part.points);
        let of_field = |field| inside.iter().map(move |&atom| Spot { instance, field, atom });
        part.fields.iter().flat_map(of_field).collect()
    }

    fn read(&mut self, position: u32, spot: Spot) -> Version {
        let cell = cell(&mut self.cells, self.record, spot);
        if let Some(first) = cell.changed_by.filter(|&first| first != position) {
            self.replayed.questions.entry(Question { first, second: position }).or_insert(spot);
        }
        if cell.readers.last() != Some(&position) {
            cell.readers.push(position);
        }
        cell.version
    }

    fn write(&mut self, position: u32, spot: Spot, version: Version) {
        let cell = cell(&mut self.cells, self.record, spot);
        let before = cell.readers.drain(..).chain(cell.changed_by.replace(position));
        for first in before.filter(|&first| first != position) {
            self.replayed.questions.entry(Question { first, second: position }).or_insert(spot);
        }
        cell.version = version;
    }

    fn reduce(
        &mut self,
        position: u32,
        spot: Spot,
        add: impl FnOnce(&mut Versions, Version) -> Result<Version, Refused>,
    ) {
        self.replayed.contributions += 1;
        let current = cell(&mut self.cells, self.record, spot).version;
        let version = add(self.versions, current).unwrap_or_else(|refused| {
            let violation = self.misapplied(position, spot, refused);
            self.replayed.violation.get_or_insert(violation);
            current
        });
        self.write(position, spot, version);
    }

    fn misapplied(&self, position: u32, spot: Spot, refused: Refused) -> Violation {
        let record = self.record;
        let problem = match refused {
            Refused::Twice((contributor, _)) => {
                format!("what {} contributes is in it already", record.name(contributor))
            }
            Refused::NoContributions => "the buffer holds no contributions of this operator".to_owned(),
        };
        let operation = record.name(record.number(position as usize));
        Violation::Misapplied { operation, data: spot.data(record, self.atoms), problem }
    }
}

impl Spot {
    /// The spot, for messages.
    pub(crate) fn data(self, record: &Record, atoms: &Atoms) -> Data {
        let Self { instance, field, atom } = self;
        let region = &record.instances[&instance].region;
        Data { instance: Some(instance), ..data(atoms, region, field, atom) }
    }
}

/// A spot's cell. At first it holds nothing, or if it is in a buffer no contributions.
fn cell<'c>(cells: &'c mut FxHashMap<Spot, ReplayCell>, record: &Record, spot: Spot) -> &'c mut ReplayCell {
    cells.entry(spot).or_insert_with(|| {
        let is_buffer = record.instances.get(&spot.instance).is_some_and(|instance| instance.buffer.is_some());
        let version = if is_buffer { Versions::IDENTITY } else { Versions::NOTHING };
        ReplayCell { version, changed_by: None, readers: SmallVec::new() }
    })
}

fn has_room(instance: &Instance, region: &LogicalRegion) -> bool {
    let bounds = instance.region.space().space().bounds();
    instance.region.tree().id() == region.tree().id()
        && bounds.contains_rect(&region.space().space().bounds()).unwrap_or(false)
}
