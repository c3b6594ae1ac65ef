//! The analysis against comparing every pair of operations.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use maniple_region::operators::{Max, Sum};
use maniple_region::{
    FieldId, FieldMask, FieldType, Forest, IndexSpaceNode, LogicalRegion, OperatorId, Partitioning, Privilege,
    Requirement, Target,
};
use maniple_space::{AnyRect, AnySpace, IndexSpace, Rect};
use proptest::prelude::*;

use super::{Contributions, InOrderQueue, OrderedOperation, ProgramOrder};

/// An operation that remembers what it depends on.
#[derive(Clone)]
struct Op(Rc<RefCell<OpData>>);

struct OpData {
    number: usize,
    mapped: bool,
    after: BTreeSet<usize>,
}

impl Op {
    fn new(number: usize) -> Self {
        Self(Rc::new(RefCell::new(OpData { number, mapped: false, after: BTreeSet::new() })))
    }

    fn number(&self) -> usize {
        self.0.borrow().number
    }
}

impl OrderedOperation for Op {
    fn is_mapped(&self) -> bool {
        self.0.borrow().mapped
    }

    fn is_same(&self, other: &Self) -> bool {
        self.number() == other.number()
    }
}

fn interval(lo: i64, hi: i64) -> AnySpace {
    IndexSpace::from(Rect::<1>::from(lo..hi)).into()
}

/// A region of 16 rows and 3 fields with several partitions: halves, their quarters, overlapping windows, and a sparse
/// one.
struct World {
    region: LogicalRegion,
    targets: Vec<Target>,
}

fn world() -> World {
    let forest = Forest::new();
    let rows = forest.index_space(&interval(0, 16));
    let fields = forest.field_space(8);
    for name in ["a", "b", "c"] {
        fields.allocate(name, FieldType::of::<i64>()).unwrap();
    }
    let region = forest.region(&rows, &fields).unwrap();
    let split = |space: &IndexSpaceNode, pieces: &[AnySpace]| -> Arc<Partitioning> {
        let colors = AnyRect::from(Rect::<1>::from(0..pieces.len() as i64));
        forest.partition(space, colors, pieces).unwrap()
    };
    let halves = split(&rows, &[interval(0, 8), interval(8, 16)]);
    let lower = halves.piece(0.into()).unwrap();
    let quarters = split(&lower, &[interval(0, 4), interval(4, 8)]);
    let windows = split(&rows, &[interval(0, 6), interval(4, 12), interval(10, 16)]);
    let sparse = IndexSpace::from_rects([Rect::<1>::from(0..1), Rect::<1>::from(9..11)]).into();
    let holes = split(&rows, &[sparse, interval(3, 5)]);
    let mut targets = vec![Target::from(region.clone())];
    for partition in [&halves, &windows, &holes] {
        let logical = region.partition(partition).unwrap();
        targets.push(logical.clone().into());
        for color in partition.colors().points() {
            targets.push(logical.piece(color).unwrap().into());
        }
    }
    let logical = region.with_space(lower).partition(&quarters).unwrap();
    targets.push(logical.clone().into());
    targets.extend(quarters.colors().points().map(|color| logical.piece(color).unwrap().into()));
    World { region, targets }
}

/// The points that a requirement may touch.
fn points(target: &Target) -> AnySpace {
    match target {
        Target::Region(region, _) => region.space().space().clone(),
        Target::Partition(partition, _) => partition.partitioning().union().space().clone(),
    }
}

fn interfere(a: &Requirement, b: &Requirement, contributions: Contributions) -> bool {
    points(&a.target).overlaps(&points(&b.target)).unwrap()
        && a.fields.overlaps(&b.fields)
        && contributions.conflict(b.privilege, a.privilege)
}

fn requirements() -> impl Strategy<Value = (prop::sample::Index, u8, u8)> {
    (any::<prop::sample::Index>(), 1..8_u8, 0..5_u8)
}

fn requirement(world: &World, (target, fields, privilege): &(prop::sample::Index, u8, u8)) -> Requirement {
    let privileges = [
        Privilege::Read,
        Privilege::ReadWrite,
        Privilege::Discard,
        Privilege::Reduce(OperatorId::of::<Sum>()),
        Privilege::Reduce(OperatorId::of::<Max>()),
    ];
    let fields: FieldMask = (0..3_u32).filter(|bit| fields >> bit & 1 == 1).map(FieldId).collect();
    Requirement::new(target.get(&world.targets).clone(), fields, privileges[*privilege as usize])
}

/// Which operations come before each, directly or not.
fn closure(ops: &[Op]) -> Vec<BTreeSet<usize>> {
    let mut before: Vec<BTreeSet<usize>> = Vec::new();
    for op in ops {
        let direct = op.0.borrow().after.clone();
        let mut all = direct.clone();
        direct.iter().for_each(|&earlier| all.extend(&before[earlier]));
        before.push(all);
    }
    before
}

/// Registers a use, and returns how many nodes that visited.
fn register(order: &mut ProgramOrder<Op>, op: &Op, requirement: &Requirement, contributions: Contributions) -> u64 {
    order.register(op, requirement, contributions, &mut |earlier: &Op| {
        assert!(earlier.number() < op.number(), "dependences lead backwards");
        op.0.borrow_mut().after.insert(earlier.number());
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn operations_that_interfere_are_mapped_in_program_order(
        stream in prop::collection::vec((prop::collection::vec(requirements(), 1..3), any::<u8>()), 1..25),
        in_order_from in 0..40_usize,
    ) {
        let contributions =
            |number| if number < in_order_from { Contributions::Commute } else { Contributions::InOrder };
        let world = world();
        let mut order = ProgramOrder::default();
        let mut ops: Vec<(Op, Vec<Requirement>)> = Vec::new();
        for (number, (wanted, mapped)) in stream.iter().enumerate() {
            let op = Op::new(number);
            let requirements: Vec<_> = wanted.iter().map(|wanted| requirement(&world, wanted)).collect();
            requirements.iter().for_each(|requirement| _ = register(&mut order, &op, requirement, contributions(number)));
            ops.push((op, requirements));
            // Every now and then some prefix of the stream has been mapped.
            if mapped % 4 == 0 {
                let done = number * usize::from(mapped / 4) / 64;
                ops[..done].iter().for_each(|(op, _)| op.0.borrow_mut().mapped = true);
            }
        }
        let before = closure(&ops.iter().map(|(op, _)| op.clone()).collect::<Vec<_>>());
        for (later, (_, wanted)) in ops.iter().enumerate() {
            for (earlier, (op, had)) in ops[..later].iter().enumerate() {
                let must = wanted.iter().any(|a| had.iter().any(|b| interfere(a, b, contributions(later))));
                let mapped_in_time = op.0.borrow().mapped;
                prop_assert!(
                    !must || before[later].contains(&earlier) || mapped_in_time,
                    "operation {later} must come after {earlier}: {wanted:?} after {had:?}"
                );
            }
        }
    }
}

/// Returns the operations that each operation of a stream depends on, and the number of nodes that were visited.
fn run(world: &World, stream: &[(usize, Privilege)]) -> (Vec<BTreeSet<usize>>, u64) {
    let (mut order, mut visits) = (ProgramOrder::default(), 0);
    let field = FieldMask::of(FieldId(0));
    let ops: Vec<Op> = (0..stream.len()).map(Op::new).collect();
    for (op, (target, privilege)) in ops.iter().zip(stream) {
        let requirement = Requirement::new(world.targets[*target].clone(), field.clone(), *privilege);
        visits += register(&mut order, op, &requirement, Contributions::Commute);
    }
    (ops.iter().map(|op| op.0.borrow().after.clone()).collect(), visits)
}

const ROOT: usize = 0;
const HALVES: usize = 1;
const LOWER: usize = 2;
const UPPER: usize = 3;

#[test]
fn readers_of_one_write_depend_on_it_and_not_on_each_other() {
    let (after, _) = run(&world(), &[(ROOT, Privilege::ReadWrite), (ROOT, Privilege::Read), (ROOT, Privilege::Read)]);
    assert_eq!(after, [BTreeSet::new(), BTreeSet::from([0]), BTreeSet::from([0])]);
}

#[test]
fn pieces_of_a_disjoint_partition_do_not_depend_on_each_other() {
    let (after, _) = run(&world(), &[(LOWER, Privilege::ReadWrite), (UPPER, Privilege::ReadWrite)]);
    assert_eq!(after, [BTreeSet::new(), BTreeSet::new()]);
}

#[test]
fn reducers_with_one_operator_do_not_depend_on_each_other_and_others_do() {
    let (sum, max) = (Privilege::Reduce(OperatorId::of::<Sum>()), Privilege::Reduce(OperatorId::of::<Max>()));
    let (after, _) = run(&world(), &[(ROOT, sum), (ROOT, sum), (ROOT, max)]);
    assert_eq!(after, [BTreeSet::new(), BTreeSet::new(), BTreeSet::from([0, 1])]);
}

#[test]
fn a_writer_that_was_hidden_by_a_reader_is_still_found() {
    // A partial write, a read of everything, then a read of the part: the last must come after the write.
    let stream = [(LOWER, Privilege::ReadWrite), (ROOT, Privilege::Read), (LOWER, Privilege::Read)];
    let (after, _) = run(&world(), &stream);
    assert!(after[2].contains(&0) || (after[2].contains(&1) && after[1].contains(&0)));
}

#[test]
fn two_half_writes_and_then_a_read_of_all_depend_on_both() {
    let stream = [(LOWER, Privilege::ReadWrite), (UPPER, Privilege::ReadWrite), (ROOT, Privilege::Read)];
    let (after, _) = run(&world(), &stream);
    assert_eq!(after[2], BTreeSet::from([0, 1]));
}

#[test]
fn a_long_loop_keeps_short_lists() {
    let windows = 4;
    let stream: Vec<_> = (0..200).flat_map(|_| [(HALVES, Privilege::ReadWrite), (windows, Privilege::Read)]).collect();
    let (after, visits) = run(&world(), &stream);
    assert!(after.iter().all(|after| after.len() <= 4), "{:?}", after.iter().map(BTreeSet::len).max());
    assert!(visits <= 12 * stream.len() as u64, "{visits} visits");
}

#[test]
fn a_sub_tree_that_was_taken_over_is_closed() {
    let windows = 4;
    let stream = [(HALVES, Privilege::ReadWrite), (windows, Privilege::Read), (windows, Privilege::Read)];
    let (after, _) = run(&world(), &stream);
    // The second reader comes after the first, which took the halves over; it does not take them over again.
    let mut longer = stream.to_vec();
    longer.push((windows, Privilege::Read));
    let (after_longer, _) = run(&world(), &longer);
    assert_eq!(after[2], BTreeSet::from([1]));
    assert_eq!(after_longer[3], BTreeSet::from([1]));
}

#[test]
fn partitions_that_are_used_once_leave_nothing_behind() {
    let World { region, .. } = world();
    let (forest, field) = (Arc::clone(region.space().forest()), FieldMask::of(FieldId(0)));
    for privilege in [Privilege::Read, Privilege::ReadWrite] {
        let (mut order, mut visits) = (ProgramOrder::default(), 0);
        for number in 0..2000 {
            let colors = AnyRect::from(Rect::<1>::from(0..2));
            let halves = forest.partition(region.space(), colors, &[interval(0, 8), interval(8, 16)]).unwrap();
            let op = Op::new(number);
            let requirement = Requirement::new(region.partition(&halves).unwrap(), field.clone(), privilege);
            visits += register(&mut order, &op, &requirement, Contributions::Commute);
            op.0.borrow_mut().mapped = true;
        }
        assert!(order.nodes() <= 64, "{} nodes", order.nodes());
        assert!(visits <= 70 * 2000, "{visits} visits");
    }
}

#[test]
fn subtrees_disjoint_from_the_path_are_not_visited() {
    let visits = |stream: &[(usize, Privilege)]| run(&world(), stream).1;
    let write = |target| (target, Privilege::ReadWrite);
    let alone = visits(&[write(LOWER), write(LOWER)]) - visits(&[write(LOWER)]);
    let beside = visits(&[write(LOWER), write(UPPER), write(LOWER)]) - visits(&[write(LOWER), write(UPPER)]);
    // One more open child of the partition costs nothing where the path leads elsewhere.
    assert_eq!(beside, alone);
}

#[test]
fn an_operation_never_depends_on_itself() {
    let world = world();
    let mut order = ProgramOrder::default();
    let op = Op::new(0);
    let field = FieldMask::of(FieldId(0));
    for target in [2, 3, 5, 1] {
        let requirement = Requirement::new(world.targets[target].clone(), field.clone(), Privilege::ReadWrite);
        register(&mut order, &op, &requirement, Contributions::Commute);
    }
    assert!(op.0.borrow().after.is_empty());
    assert_eq!(world.region.fields().fields().len(), 3);
}

proptest! {
    /// An operation that waits for another node is mapped after all that precede it, directly or not, unless they have
    /// been mapped.
    #[test]
    fn what_waits_for_another_node_is_mapped_after_all_before_it(stream in prop::collection::vec((any::<bool>(), 0..8_u8), 1..200)) {
        let mut queue = InOrderQueue::default();
        let mut ops: Vec<Op> = Vec::new();
        for (number, &(waits, mapped)) in stream.iter().enumerate() {
            let op = Op::new(number);
            queue.push(&op, waits).for_each(|earlier| _ = op.0.borrow_mut().after.insert(earlier.number()));
            prop_assert!(waits || op.0.borrow().after.is_empty());
            ops.push(op);
            if mapped == 0 {
                ops.iter().for_each(|op| op.0.borrow_mut().mapped = true);
            }
            let before = closure(&ops);
            let missing = ops[..number].iter().find(|op| !op.0.borrow().mapped && !before[number].contains(&op.number()));
            prop_assert!(!waits || missing.is_none(), "operation {number} is not after {:?}", missing.map(Op::number));
        }
    }
}
