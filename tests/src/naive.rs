//! A second opinion on records: every pair of operations and every point one by one, and nothing clever.
//!
//! It shares with [`maniple::record::check`] only the record. The two must agree on every record, right or wrong.

use std::collections::{BTreeMap, BTreeSet};

use maniple::mapper::InstanceId;
use maniple::record::{Kind, OperationNumber, Part, Place, Record, Usage, Value};
use maniple::{AnyPoint, FieldId, FieldMask, LogicalRegion, OperatorId, Privilege, TreeId};

/// The contents of a field at a point.
#[derive(Clone, PartialEq, Debug)]
enum Holds {
    Nothing,
    Anything,
    Lost,
    Zero,
    Written(OperationNumber),
    /// A value, or nothing of a buffer, changed by contributions of one operator.
    Reduced(Option<Box<Self>>, OperatorId, BTreeSet<(OperationNumber, usize)>),
    EmptyBuffer,
}

type Spot = (InstanceId, FieldId, Vec<i64>);

/// Says what is wrong with a record, if something is.
///
/// # Errors
/// The first thing found to be wrong.
pub fn verdict(record: &Record) -> Result<(), String> {
    let order = Order::of(record)?;
    every_pair_is_ordered(record, &order)?;
    every_pair_was_mapped_in_order(record)?;
    let expected = run(record)?;
    play(record, &order, &expected)
}

/// All operations that each operation comes after.
struct Order(Vec<BTreeSet<usize>>);

impl Order {
    fn of(record: &Record) -> Result<Self, String> {
        let direct = |position: usize| {
            let after = &record.operations[position].after;
            after
                .iter()
                .filter_map(|number| number.0.checked_sub(record.first_operation.0))
                .map(|number| number as usize)
        };
        let mut order = Vec::new();
        for position in 0..record.operations.len() {
            let gathers = matches!(record.operations[position].kind, Kind::End { .. } | Kind::Join);
            if direct(position).any(|earlier| earlier >= record.operations.len() || (earlier >= position && !gathers)) {
                return Err(format!("{position} comes after one that was issued later"));
            }
            let (mut all, mut open): (BTreeSet<usize>, Vec<usize>) = (BTreeSet::new(), direct(position).collect());
            while let Some(earlier) = open.pop() {
                if all.insert(earlier) {
                    open.extend(direct(earlier));
                }
            }
            if all.contains(&position) {
                return Err(format!("{position} comes after itself"));
            }
            order.push(all);
        }
        Ok(Self(order))
    }

    /// An order in which all can have happened: an operation that comes after fewer others comes first.
    fn sequence(&self) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.0.len()).collect();
        all.sort_by_key(|&position| self.0[position].len());
        all
    }
}

fn every_pair_is_ordered(record: &Record, order: &Order) -> Result<(), String> {
    let mut users: BTreeMap<Spot, Vec<(usize, bool)>> = BTreeMap::new();
    for (position, operation) in record.operations.iter().enumerate() {
        each_use(&operation.kind, &mut |spot, changes| users.entry(spot).or_default().push((position, changes)));
    }
    for (spot, users) in users {
        for (index, &(one, one_changes)) in users.iter().enumerate() {
            for &(other, other_changes) in &users[..index] {
                let is_ordered = one == other || order.0[one].contains(&other) || order.0[other].contains(&one);
                if (one_changes || other_changes) && !is_ordered {
                    return Err(format!("{other} and {one} both use {spot:?}"));
                }
            }
        }
    }
    Ok(())
}

/// Calls a function with everything in instances that an operation uses, and whether it changes it.
fn each_use(kind: &Kind, visit: &mut dyn FnMut(Spot, bool)) {
    let mut each = |instance: InstanceId, part: &Part, changes: bool| {
        each_point(part, |field, point| visit((instance, field, point.coords().to_vec()), changes));
    };
    match kind {
        Kind::Copy { from, to, parts, .. } => {
            parts.iter().for_each(|part| each(*from, part, false));
            parts.iter().for_each(|part| each(*to, part, true));
        }
        Kind::Fill { to, parts, .. } => parts.iter().for_each(|(part, _)| each(*to, part, true)),
        Kind::Refill { buffer, part, .. } => each(*buffer, part, true),
        Kind::Apply { to, contributions, .. } => {
            contributions.iter().for_each(|one| each(one.buffer, &one.part, false));
            contributions.iter().for_each(|one| each(*to, &one.part, true));
        }
        kind => {
            for usage in kind.usages() {
                for (fields, instance) in &usage.instances {
                    let fields = fields.intersection(&usage.fields);
                    each(*instance, &part_of(&usage.region, &fields), usage.privilege.changes_data());
                }
            }
        }
    }
}

fn part_of(region: &LogicalRegion, fields: &FieldMask) -> Part {
    Part { fields: fields.clone(), points: region.space().space().clone() }
}

fn each_point(part: &Part, mut visit: impl FnMut(FieldId, AnyPoint)) {
    for field in part.fields.iter() {
        part.points.points().for_each(|point| visit(field, point));
    }
}

fn every_pair_was_mapped_in_order(record: &Record) -> Result<(), String> {
    let users: Vec<(OperationNumber, Place, Vec<Usage>)> = (record.numbered())
        .filter_map(|(number, operation)| Some((number, operation.kind.place()?, launched_to_use(&operation.kind))))
        .collect();
    for (one, place, usages) in &users {
        for (other, earlier, other_usages) in &users {
            if earlier.parent == place.parent && earlier.launch < place.launch && other > one {
                let interfere = |a: &Usage| other_usages.iter().any(|b| interferes(a, b));
                if usages.iter().any(interfere) {
                    return Err(format!("{one} was mapped before {other}"));
                }
            }
        }
    }
    Ok(())
}

fn launched_to_use(kind: &Kind) -> Vec<Usage> {
    match kind {
        Kind::Task(task) => task.usages.clone(),
        Kind::Lost { usages, .. } => usages.clone(),
        Kind::Mapping { usage, .. } => vec![usage.clone()],
        Kind::FillRegion { region, fields, .. } => vec![Usage {
            region: region.clone(),
            fields: fields.clone(),
            privilege: Privilege::Discard,
            instances: Vec::new(),
        }],
        _ => Vec::new(),
    }
}

fn interferes(a: &Usage, b: &Usage) -> bool {
    let points = |usage: &Usage| usage.region.space().space().clone();
    a.region.tree().id() == b.region.tree().id()
        && a.fields.overlaps(&b.fields)
        && a.privilege.interferes_with(b.privilege)
        && points(a).points().any(|point| points(b).contains(point))
}

/// The contents that each operation must see, in the order of its requirements, fields and points.
type Expected = BTreeMap<OperationNumber, Vec<Holds>>;

/// Runs the program, one operation after another.
fn run(record: &Record) -> Result<Expected, String> {
    let mut ordered: Vec<(Path, OperationNumber)> = (record.numbered())
        .filter(|(_, operation)| operation.kind.place().is_some())
        .map(|(number, _)| (path(record, number), number))
        .collect();
    ordered.sort();
    let mut data: BTreeMap<(TreeId, FieldId, Vec<i64>), Holds> = BTreeMap::new();
    let mut expected = Expected::new();
    for (_, number) in ordered {
        let kind = &record.operations[(number.0 - record.first_operation.0) as usize].kind;
        let mut seen = Vec::new();
        for usage in kind.usages().iter().filter(|usage| usage.privilege.sees_data()) {
            each_point(&part_of(&usage.region, &usage.fields), |field, point| {
                let here = data.get(&(usage.region.tree().id(), field, point.coords().to_vec()));
                seen.push(here.cloned().unwrap_or(Holds::Zero));
            });
        }
        expected.insert(number, seen);
        let mut twice = Ok(());
        let mut set = |region: &LogicalRegion, fields: &FieldMask, change: &dyn Fn(Holds) -> Result<Holds, String>| {
            each_point(&part_of(region, fields), |field, point| {
                let here = data.entry((region.tree().id(), field, point.coords().to_vec())).or_insert(Holds::Zero);
                match change(here.clone()) {
                    Ok(changed) => *here = changed,
                    Err(problem) => twice = Err(problem),
                }
            });
        };
        match kind {
            Kind::FillRegion { region, fields, .. } => set(region, fields, &|_| Ok(Holds::Written(number))),
            Kind::Lost { usages, .. } => {
                usages.iter().for_each(|usage| set(&usage.region, &usage.fields, &|_| Ok(Holds::Anything)));
            }
            Kind::Task(task) if !task.is_leaf => {
                for usage in task.usages.iter().filter(|usage| usage.privilege == Privilege::Discard) {
                    set(&usage.region, &usage.fields, &|_| Ok(Holds::Anything));
                }
            }
            kind => {
                for (requirement, usage) in kind.usages().iter().enumerate() {
                    let change = |before: Holds| changed(before, number, requirement, usage.privilege);
                    set(&usage.region, &usage.fields, &change);
                }
            }
        }
        twice?;
    }
    Ok(expected)
}

/// The way from the top-level task to an operation: launch, point and number of each task.
type Path = Vec<(u64, u64, u64)>;

fn path(record: &Record, number: OperationNumber) -> Path {
    let mut path = Vec::new();
    let mut here = Some(number);
    while let Some(number) = here {
        let place = record.operation(number).and_then(|operation| operation.kind.place());
        match place {
            Some(place) => path.push((place.launch.0, place.index, number.0)),
            None => path.push((number.0, 0, 0)),
        }
        here = place.map(|place| place.parent);
    }
    path.reverse();
    path
}

fn changed(before: Holds, by: OperationNumber, requirement: usize, privilege: Privilege) -> Result<Holds, String> {
    match privilege {
        Privilege::Read => Ok(before),
        Privilege::ReadWrite | Privilege::Discard => Ok(Holds::Written(by)),
        Privilege::Reduce(operator) => reduced(before, operator, &BTreeSet::from([(by, requirement)])),
    }
}

fn reduced(before: Holds, operator: OperatorId, more: &BTreeSet<(OperationNumber, usize)>) -> Result<Holds, String> {
    let (base, mut all) = match before {
        Holds::Reduced(base, by, contributors) if by == operator => (base, contributors),
        Holds::EmptyBuffer => (None, BTreeSet::new()),
        other => (Some(Box::new(other)), BTreeSet::new()),
    };
    match more.iter().find(|contributor| all.contains(contributor)) {
        Some(twice) => Err(format!("{twice:?} contributes twice")),
        None => {
            all.extend(more);
            Ok(Holds::Reduced(base, operator, all))
        }
    }
}

fn play(record: &Record, order: &Order, expected: &Expected) -> Result<(), String> {
    let mut memory = Memory { record, spots: BTreeMap::new() };
    for position in order.sequence() {
        let number = OperationNumber(record.first_operation.0 + position as u64);
        match &record.operations[position].kind {
            Kind::Copy { from, to, parts, .. } => {
                for (field, point) in parts.iter().flat_map(points_of) {
                    let value = memory.get((*from, field, point.clone()));
                    memory.set((*to, field, point), value);
                }
            }
            Kind::Fill { to, parts, .. } => {
                for (part, value) in parts {
                    let holds = match value {
                        Value::Initial => Holds::Zero,
                        Value::Of(fill) => Holds::Written(*fill),
                        Value::Lost => Holds::Lost,
                    };
                    points_of(part)
                        .into_iter()
                        .for_each(|(field, point)| memory.set((*to, field, point), holds.clone()));
                }
            }
            Kind::Refill { buffer, part, .. } => {
                for (field, point) in points_of(part) {
                    memory.set((*buffer, field, point), Holds::EmptyBuffer);
                }
            }
            Kind::Apply { to, contributions, .. } => {
                for one in contributions {
                    for (field, point) in points_of(&one.part) {
                        let before = memory.get((*to, field, point.clone()));
                        let after = match memory.get((one.buffer, field, point.clone())) {
                            Holds::EmptyBuffer => before,
                            Holds::Reduced(None, by, all) if by == one.operator => reduced(before, by, &all)?,
                            other => return Err(format!("{number} applies {other:?}")),
                        };
                        memory.set((*to, field, point), after);
                    }
                }
            }
            kind => memory.use_by(number, kind.usages(), expected.get(&number).map_or(&[], Vec::as_slice))?,
        }
    }
    Ok(())
}

fn points_of(part: &Part) -> Vec<(FieldId, Vec<i64>)> {
    let mut found = Vec::new();
    each_point(part, |field, point| found.push((field, point.coords().to_vec())));
    found
}

/// The contents of all instances.
struct Memory<'a> {
    record: &'a Record,
    spots: BTreeMap<Spot, Holds>,
}

impl Memory<'_> {
    fn get(&self, spot: Spot) -> Holds {
        let is_buffer = self.record.instances[&spot.0].buffer.is_some();
        let fresh = if is_buffer { Holds::EmptyBuffer } else { Holds::Nothing };
        self.spots.get(&spot).cloned().unwrap_or(fresh)
    }

    fn set(&mut self, spot: Spot, holds: Holds) {
        self.spots.insert(spot, holds);
    }

    fn use_by(&mut self, number: OperationNumber, usages: &[Usage], expected: &[Holds]) -> Result<(), String> {
        let mut expected = expected.iter();
        let mut uses = Vec::new();
        for (requirement, usage) in usages.iter().enumerate() {
            for (field, point) in points_of(&part_of(&usage.region, &usage.fields)) {
                let place = usage.instances.iter().find(|(fields, _)| fields.contains(field));
                let (_, instance) = place.ok_or_else(|| format!("{number} has nowhere to look"))?;
                let bounds = self.record.instances[instance].region.space().space().bounds();
                if self.record.instances[instance].region.tree().id() != usage.region.tree().id()
                    || !AnyPoint::new(&point).is_ok_and(|point| bounds.contains(point))
                {
                    return Err(format!("{number} has no room"));
                }
                let spot = (*instance, field, point);
                if usage.privilege.sees_data() {
                    let (found, wanted) = (self.get(spot.clone()), expected.next());
                    if wanted.is_some_and(|wanted| !is_anything(wanted) && *wanted != found) {
                        return Err(format!("{number} finds {found:?} in {spot:?}, not {wanted:?}"));
                    }
                }
                uses.push((requirement, usage.privilege, spot));
            }
        }
        for (requirement, privilege, spot) in uses {
            let after = changed(self.get(spot.clone()), number, requirement, privilege)?;
            self.set(spot, after);
        }
        Ok(())
    }
}

fn is_anything(holds: &Holds) -> bool {
    match holds {
        Holds::Anything => true,
        Holds::Reduced(Some(base), ..) => is_anything(base),
        _ => false,
    }
}
