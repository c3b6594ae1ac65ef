//! The circuit, step by step (Bauer 2014, sections 3.1 and 5.1.3): which tasks wait for which, and what is copied.
//!
//! Four pieces in a ring, each with two private nodes and two shared ones: the first is a ghost of the piece to the
//! left, the second of the piece to the right. So pieces that are not neighbours share nothing.

use std::collections::{BTreeMap, BTreeSet};

use maniple::mapper::DefaultMapper;
use maniple::prelude::*;
use maniple::record::{Kind, LaunchNumber, OperationNumber, Record, check};
use maniple::space::AnySpace;

#[derive(Fields)]
struct Node {
    voltage: i64,
    charge: i64,
}

#[derive(Fields)]
struct Wire {
    current: i64,
}

#[task(leaf)]
fn calc_new_currents(
    #[writes(current)] wires: Piece<Wire>,
    #[reads(voltage)] private: Piece<Node>,
    #[reads(voltage)] shared: Piece<Node>,
    #[reads(voltage)] ghost: Piece<Node>,
) {
    let sum: i64 = private.points().map(|point| private.voltage[point]).sum();
    let sum = shared.points().map(|point| shared.voltage[point]).fold(sum, i64::wrapping_add);
    let sum = ghost.points().map(|point| ghost.voltage[point]).fold(sum, i64::wrapping_add);
    for point in wires.points() {
        wires.current[point] += sum + point[0];
    }
}

#[task(leaf)]
fn distribute_charge(
    #[reads(current)] wires: Piece<Wire>,
    #[reduces(Sum, charge)] private: Piece<Node>,
    #[reduces(Sum, charge)] shared: Piece<Node>,
    #[reduces(Sum, charge)] ghost: Piece<Node>,
) {
    let current: i64 = wires.points().map(|point| wires.current[point]).sum();
    private.points().for_each(|point| private.charge.fold(point, current));
    shared.points().for_each(|point| shared.charge.fold(point, current));
    ghost.points().for_each(|point| ghost.charge.fold(point, current));
}

#[task(leaf)]
fn update_voltages(#[writes(voltage, charge)] private: Piece<Node>, #[writes(voltage, charge)] shared: Piece<Node>) {
    for point in private.points() {
        private.voltage[point] += private.charge[point] % 1000;
        private.charge[point] = 0;
    }
    for point in shared.points() {
        shared.voltage[point] += shared.charge[point] % 1000;
        shared.charge[point] = 0;
    }
}

const PIECES: i64 = 4;
const STEPS: usize = 4;

fn left(piece: i64) -> i64 {
    (piece + PIECES - 1) % PIECES
}

fn right(piece: i64) -> i64 {
    (piece + 1) % PIECES
}

/// Runs the circuit; gives what was recorded and the final voltages.
fn circuit(mapper: DefaultMapper) -> (Steps, Vec<i64>) {
    let runtime = Runtime::builder().workers(2).mapper(mapper).record_operations(true).build().unwrap();
    let voltages = runtime
        .run(async |cx| {
            let pieces = cx.colors(PIECES as usize);
            let nodes = cx.region::<Node>(4 * PIECES as usize)?;
            let wires = cx.region::<Wire>(2 * PIECES as usize)?;
            let of = |piece: i64, range: std::ops::Range<i64>| {
                Rect::<1>::from(4 * piece + range.start..4 * piece + range.end)
            };
            let kinds = (0..PIECES).flat_map(|piece| [(0, of(piece, 0..2)), (1, of(piece, 2..4))]);
            let kinds = nodes.partition(2).by_coloring(&kinds.collect::<Vec<_>>())?;
            let (all_private, all_shared) = (kinds.piece(0)?, kinds.piece(1)?);
            let private = all_private.partition(pieces).by(|color| IndexSpace::from(of(color.coords()[0], 0..2)))?;
            let shared = all_shared.partition(pieces).by(|color| IndexSpace::from(of(color.coords()[0], 2..4)))?;
            let ghost = all_shared.partition(pieces).by(|color| {
                let piece = color.coords()[0];
                IndexSpace::from_rects([of(left(piece), 3..4), of(right(piece), 2..3)])
            })?;
            let wires_of = wires.partition(pieces).equal()?;
            for _ in 0..STEPS {
                cx.index_launch(pieces, calc_new_currents(&wires_of, &private, &shared, &ghost));
                cx.index_launch(pieces, distribute_charge(&wires_of, &private, &shared, &ghost));
                cx.index_launch(pieces, update_voltages(&private, &shared));
            }
            let voltages = cx.map_read(&nodes, Node::voltage).await?;
            let voltages = voltages.values();
            Ok(nodes.space().points().map(|point| voltages[point]).collect())
        })
        .unwrap();
    (Steps::of(runtime.take_record()), voltages)
}

/// A record, divided into steps.
struct Steps {
    record: Record,
    /// The first launch of each, and the first behind the last.
    first: Vec<LaunchNumber>,
}

impl Steps {
    fn of(record: Record) -> Self {
        check(&record).unwrap();
        let begins_step = |name: &str| ["calc_new_currents", "inline mapping"].contains(&name);
        let launches = record.numbered_launches().filter(|(_, launch)| begins_step(&launch.name));
        let first = launches.map(|(number, _)| number).collect();
        Self { record, first }
    }

    /// The step that an operation is part of, if it is of any.
    fn of_operation(&self, number: OperationNumber) -> Option<usize> {
        let launch = self.record.operation(number)?.kind.launch()?;
        self.first.partition_point(|first| *first <= launch).checked_sub(1)
    }

    /// The operations of a step.
    fn operations(&self, step: usize) -> impl Iterator<Item = (OperationNumber, &Kind)> {
        let of_step = move |(number, _): &(OperationNumber, _)| self.of_operation(*number) == Some(step);
        self.record.numbered().filter(of_step).map(|(number, operation)| (number, &operation.kind))
    }
}

type Name = (&'static str, i64);

fn name(kind: &Kind) -> Option<Name> {
    let Kind::Task(task) = kind else { return None };
    let tasks = ["calc_new_currents", "distribute_charge", "update_voltages"];
    let name = tasks.into_iter().find(|name| *name == task.name)?;
    Some((name, task.point?.coords()[0]))
}

/// For each task of a step, the tasks of that step and the one before that it comes after, with only copies, fills and
/// applications of buffers in between.
fn predecessors(steps: &Steps, step: usize) -> BTreeMap<Name, BTreeSet<(bool, Name)>> {
    let mut found = BTreeMap::new();
    for (number, kind) in steps.operations(step) {
        let Some(task) = name(kind) else { continue };
        let (mut tasks, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut open = steps.record.operation(number).unwrap().after.clone();
        while let Some(earlier) = open.pop() {
            let Some(operation) = steps.record.operation(earlier).filter(|_| seen.insert(earlier)) else { continue };
            match (name(&operation.kind), steps.of_operation(earlier)) {
                (Some(name), Some(of)) if of + 1 >= step => drop(tasks.insert((of == step, name))),
                (Some(_), _) => {}
                (None, _) => open.extend_from_slice(&operation.after),
            }
        }
        found.insert(task, tasks);
    }
    found
}

#[test]
fn tasks_wait_for_those_whose_data_they_need() {
    let (steps, _) = circuit(DefaultMapper::piecewise());
    let found = predecessors(&steps, STEPS - 1);
    for piece in 0..PIECES {
        let near = [left(piece), piece, right(piece)];

        // Currents: after the update of the own voltages and of those whose nodes are ghosts here; over the currents
        // that the last distribution read. The copies of ghosts come after the tasks that read the ghosts before.
        let currents = &found[&("calc_new_currents", piece)];
        let expected = near.map(|other| (false, ("update_voltages", other)));
        let expected =
            expected.into_iter().chain([(false, ("distribute_charge", piece)), (false, ("calc_new_currents", piece))]);
        assert_eq!(*currents, expected.collect(), "calc_new_currents {piece}");

        // Charges: after the own currents. Within the step no distribution waits for another.
        let expected = BTreeSet::from([("calc_new_currents", piece)]);
        assert_eq!(in_step(&found, ("distribute_charge", piece)), expected);

        // Voltages: after the charges of the own piece and of the neighbours, and after those that read these voltages
        // before: the own piece. The neighbours have copies.
        let expected = near.map(|other| ("distribute_charge", other)).into_iter();
        let expected: BTreeSet<_> = expected.chain([("calc_new_currents", piece)]).collect();
        assert_eq!(in_step(&found, ("update_voltages", piece)), expected);
    }
}

#[test]
fn in_one_instance_writers_wait_for_the_neighbours_who_read_it() {
    let (steps, _) = circuit(DefaultMapper::new());
    let found = predecessors(&steps, STEPS - 1);
    for piece in 0..PIECES {
        let near = [left(piece), piece, right(piece)];
        let expected = near.map(|other| ("distribute_charge", other)).into_iter();
        let expected: BTreeSet<_> = expected.chain(near.map(|other| ("calc_new_currents", other))).collect();
        assert_eq!(in_step(&found, ("update_voltages", piece)), expected);
    }
}

fn in_step(found: &BTreeMap<Name, BTreeSet<(bool, Name)>>, task: Name) -> BTreeSet<Name> {
    found[&task].iter().filter(|(same_step, _)| *same_step).map(|(_, earlier)| *earlier).collect()
}

#[test]
fn a_step_copies_each_ghost_once_and_nothing_else() {
    let (steps, _) = circuit(DefaultMapper::piecewise());
    let mut moved: Vec<(String, AnySpace)> = Vec::new();
    for (_, kind) in steps.operations(STEPS - 1) {
        if let Kind::Copy { to, parts, .. } = kind {
            let fields = steps.record.instances[to].region.fields();
            moved.extend(parts.iter().map(|part| (fields.names_of(&part.fields), part.points.clone())));
        }
    }
    moved.sort_by_key(|(_, points)| points.bounds().lo());
    // Each shared node is a ghost of one neighbour.
    let ghosts = (0..PIECES).flat_map(|piece| [4 * piece + 2, 4 * piece + 3]);
    let expected: Vec<_> =
        ghosts.map(|node| ("voltage".to_owned(), AnySpace::from(Rect::<1>::from(node..node + 1)))).collect();
    assert_eq!(moved, expected);

    // Every private piece gets one buffer applied, every shared one its own and those of both neighbours.
    let mut buffers: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (_, kind) in steps.operations(STEPS - 1) {
        if let Kind::Apply { to, contributions, .. } = kind {
            let applied = buffers.entry(to.0).or_default();
            contributions.iter().for_each(|one| assert!(applied.insert(one.buffer.0), "applied twice: {kind:?}"));
        }
    }
    let mut applied: Vec<_> = buffers.values().map(BTreeSet::len).collect();
    applied.sort_unstable();
    assert_eq!(applied, [1, 1, 1, 1, 3, 3, 3, 3]);
}

#[test]
fn with_one_instance_for_all_nothing_is_copied() {
    let (steps, _) = circuit(DefaultMapper::new());
    assert!(!steps.record.operations.iter().any(|operation| matches!(operation.kind, Kind::Copy { .. })));
}

#[test]
fn where_data_lives_does_not_change_it() {
    assert_eq!(circuit(DefaultMapper::new()).1, circuit(DefaultMapper::piecewise()).1);
}
