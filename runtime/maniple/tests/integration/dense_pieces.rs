//! The values of a piece that is a rectangle lie in one rectangle of its instance, whatever the region around it looks
//! like and the mapper says.

use std::sync::{Arc, LazyLock};

use maniple::access::Strided;
use maniple::mapper::{
    DefaultMapper, Extent, InstanceChoice, InstanceId, Mapper, MappingContext, RandomMapper, RequirementInfo,
    RequirementMapping, Reuse, TaskInfo,
};
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::simulation::Simulation;
use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    Arrangement, FieldMask, IndexSpace, LayoutConstraint, Machine, OperatorId, Privilege, ProcessorId, Requirement,
    Statistics, TaskLauncher,
};

const LONG: i64 = 400;
const WIDE: i64 = 4;

#[derive(Fields)]
struct Cell {
    value: i64,
    seen: i64,
}

/// The arm downwards, which is stored in two rectangles with the rest of the region, and what is left of the arm to the
/// right.
fn arms() -> [IndexSpace<2>; 2] {
    [Rect::new([0, 0], [LONG - 1, WIDE - 1]).into(), Rect::new([0, WIDE], [WIDE - 1, LONG - 1]).into()]
}

/// Parts of the arm downwards: in the first rectangle, in both, and in the second.
fn blocks() -> [IndexSpace<2>; 3] {
    let rows = [(0, 1), (2, 9), (10, LONG - 1)];
    rows.map(|(first, last)| Rect::new([first, 0], [last, WIDE - 1]).into())
}

fn corner() -> IndexSpace<2> {
    let [down, right] = arms();
    down.union(&right)
}

fn split<const N: usize>(region: &Region<Cell, 2>, pieces: [IndexSpace<2>; N]) -> Result<Partition<Cell, 2>> {
    region.partition(N).by(|color| pieces[color.coords()[0] as usize].clone())
}

/// A task that calls `change` with the addresses of each value of a field of the first requirement, and of the value of
/// another field of the second.
fn at_addresses(
    name: &str,
    fields: [FieldMask; 2],
    change: impl Fn(Point<2>, *mut i64, *mut i64) + Send + Sync + 'static,
) -> Arc<TaskDefinition> {
    let fields = fields.map(|fields| fields.iter().next().unwrap());
    let body = move |call: &LeafCall<'_>| -> Result<Value> {
        let first = call.strided::<i64>(0, fields[0])?;
        let second = call.strided::<i64>(1, fields[1]).unwrap_or_else(|_| first.clone());
        for point in first.bounds().points() {
            let at = |strided: &Strided<'_>| {
                let lowest = strided.bounds().lo();
                let steps = point.coords().iter().zip(lowest.coords()).zip(strided.strides());
                let offset: isize = steps.map(|((at, lowest), stride)| (at - lowest) as isize * stride).sum();
                // SAFETY: the point is one of those of the view.
                unsafe { strided.address().offset(offset).cast::<i64>() }
            };
            change(point.typed().unwrap(), at(&first), at(&second));
        }
        Ok(Value::new(()))
    };
    let arrays = LayoutConstraint { arrangement: Some(Arrangement::StructOfArrays), ..LayoutConstraint::default() };
    Arc::new(TaskDefinition::new(name).leaf(TaskOptions { layout: arrays, ..TaskOptions::default() }, body))
}

fn value() -> FieldMask {
    FieldMask::of(Cell::value.id())
}

fn seen() -> FieldMask {
    FieldMask::of(Cell::seen.id())
}

fn changed([x, y]: [i64; 2], value: i64) -> i64 {
    value.wrapping_mul(3) + x - 2 * y
}

/// Changes values.
static CHANGE: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    // SAFETY: the task writes the field, whose values are at these addresses.
    at_addresses("change", [value(), value()], |Point(at), place, _| unsafe { *place = changed(at, *place) })
});

/// Contributes to values.
static ADD: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    maniple::register_reduction::<Sum, i64>();
    // SAFETY: the task contributes to the field, to sums of the same type.
    at_addresses("add", [value(), value()], |Point([x, _]), place, _| unsafe { *place += x + 1 })
});

/// Keeps what values are.
static SEE: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    // SAFETY: the task reads the first field and writes the second, whose values are at these addresses.
    at_addresses("see", [value(), seen()], |_, value, seen| unsafe { *seen = *value })
});

fn launch(task: &Arc<TaskDefinition>, requirements: impl IntoIterator<Item = Requirement>) -> maniple::Launch<()> {
    requirements.into_iter().fold(TaskLauncher::new(task), TaskLauncher::requirement).typed()
}

fn of(pieces: &Partition<Cell, 2>, fields: FieldMask, privilege: Privilege) -> Requirement {
    Requirement::new(pieces.logical().clone(), fields, privilege)
}

fn change(pieces: &Partition<Cell, 2>) -> maniple::Launch<()> {
    launch(&CHANGE, [of(pieces, value(), Privilege::ReadWrite)])
}

fn add(pieces: &Partition<Cell, 2>) -> maniple::Launch<()> {
    launch(&ADD, [of(pieces, value(), Privilege::Reduce(OperatorId::of::<Sum>()))])
}

fn see(pieces: &Partition<Cell, 2>) -> maniple::Launch<()> {
    launch(&SEE, [of(pieces, value(), Privilege::Read), of(pieces, seen(), Privilege::Discard)])
}

#[task(leaf)]
fn number(#[discards(value, seen)] cells: Piece<Cell, 2>) {
    for point in cells.points() {
        cells.value[point] = 1000 * point[0] + point[1];
        cells.seen[point] = -1;
    }
}

/// Does all of this for its own pieces.
#[task]
async fn round_within(cx: &Context, #[writes(value, seen)] cells: Region<Cell, 2>) -> Result<()> {
    round(cx, &split(&cells, arms())?, &split(&cells, blocks())?);
    Ok(())
}

fn round(cx: &Context, arms: &Partition<Cell, 2>, blocks: &Partition<Cell, 2>) {
    cx.index_launch(2, change(arms));
    cx.index_launch(3, add(blocks));
    cx.index_launch(3, see(blocks));
    cx.index_launch(2, change(arms));
}

type Values = (Vec<i64>, Vec<i64>);

/// Rounds that are replayed, rounds of a task with children, and what the program looks at itself.
async fn program(cx: &Context, rounds: usize) -> Result<Values> {
    let cells = cx.region_over::<Cell, 2>(corner())?;
    let arms = split(&cells, arms())?;
    let blocks = split(&arms.piece(0)?, blocks())?;
    cx.launch(number(&cells));
    for _ in 0..rounds {
        cx.trace("round", |cx| round(cx, &arms, &blocks));
    }
    for _ in 0..rounds {
        cx.launch(round_within(&cells)).await?;
    }
    for _ in 0..rounds {
        let mut mapped = cx.map_write(&arms.piece(0)?, Cell::value).await?;
        for x in 0..LONG {
            mapped[[x, 0]] += 1;
        }
    }
    cx.index_launch(2, see(&arms)).all().await?;
    let values = cx.map_read(&cells, Cell::value).await?.to_vec();
    Ok((values, cx.map_read(&cells, Cell::seen).await?.to_vec()))
}

fn expected(rounds: usize) -> Values {
    let of = |Point([x, y]): Point<2>| {
        let mut value = 1000 * x + y;
        for _ in 0..2 * rounds {
            value = changed([x, y], value);
            value += if y < WIDE { x + 1 } else { 0 };
            value = changed([x, y], value);
        }
        value + if y == 0 { rounds as i64 } else { 0 }
    };
    let values: Vec<i64> = corner().points().map(of).collect();
    (values.clone(), values)
}

fn run(rounds: usize, mapper: impl Mapper + Clone + 'static) -> (Result<Values>, Statistics) {
    let runtime = Runtime::builder().machine(Machine::uniform(2, 1 << 24)).workers(2).mapper(mapper).build().unwrap();
    let outcome = runtime.run(async |cx| program(cx, rounds).await);
    (outcome, runtime.statistics())
}

/// Instances for the largest region, or so many levels above, with whatever may be reused.
#[derive(Clone)]
struct Wide(Extent, Reuse);

impl Wide {
    fn choice(&self, processor: ProcessorId, machine: &Machine) -> RequirementMapping {
        let memory = machine.memories_visible_from(processor)[0].memory;
        InstanceChoice { extent: self.0, reuse: self.1, ..InstanceChoice::in_memory(memory) }.into()
    }
}

impl Mapper for Wide {
    fn map_requirement(
        &mut self,
        _: &TaskInfo<'_>,
        _: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        self.choice(processor, context.machine())
    }

    fn map_inline(
        &mut self,
        _: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        self.choice(processor, context.machine())
    }
}

#[test]
fn kernels_get_a_rectangle_in_one_view_whatever_the_mapper_says() {
    for mapper in [DefaultMapper::new(), DefaultMapper::piecewise()] {
        let (outcome, statistics) = run(8, mapper);
        assert_eq!(outcome.unwrap(), expected(8), "{}", mapper.name());
        assert!(statistics.replays > 0, "{}: {statistics:?}", mapper.name());
    }
    let expected = expected(3);
    for extent in [Extent::Region, Extent::Ancestor(1), Extent::Ancestor(2), Extent::Root] {
        for reuse in [Reuse::Any, Reuse::Exact, Reuse::Never, Reuse::Only(InstanceId(0)), Reuse::Only(InstanceId(1))] {
            let (outcome, _) = run(3, Wide(extent, reuse));
            assert_eq!(outcome.unwrap(), expected, "{extent}, {reuse}");
        }
    }
}

#[test]
fn kernels_get_a_rectangle_in_one_view_whatever_chance_says() {
    let expected = expected(3);
    for seed in 0..40 {
        assert_eq!(run(3, RandomMapper::new(seed)).0.unwrap(), expected, "seed {seed}");
        assert_eq!(run(3, RandomMapper::steady(seed)).0.unwrap(), expected, "steady, seed {seed}");
    }
}

#[test]
fn a_piece_that_does_not_lie_in_one_rectangle_gets_an_instance_once() {
    let of = |mapper: &Wide, rounds| {
        let (outcome, statistics) = run(rounds, mapper.clone());
        outcome.unwrap();
        statistics.instances
    };
    for extent in [Extent::Region, Extent::Ancestor(1), Extent::Root] {
        // The whole region is mapped first, into an instance that some of the pieces cannot use.
        for reuse in [Reuse::Any, Reuse::Only(InstanceId(0))] {
            let mapper = Wide(extent, reuse);
            let looping = |rounds| {
                let runtime = Runtime::builder().workers(1).mapper(mapper.clone()).build().unwrap();
                let outcome = runtime.run(async |cx| {
                    let cells = cx.region_over::<Cell, 2>(corner())?;
                    let arms = split(&cells, arms())?;
                    cx.launch(number(&cells)).await?;
                    for _ in 0..rounds {
                        cx.index_launch(2, change(&arms)).all().await?;
                    }
                    Ok(())
                });
                outcome.unwrap();
                runtime.statistics().instances
            };
            assert_eq!(looping(3), looping(30), "{extent}, {reuse}");
        }
        // What is lent to a task with children is another table, each time.
        let mapper = Wide(extent, Reuse::Any);
        let (few, more, many) = (of(&mapper, 4), of(&mapper, 5), of(&mapper, 6));
        assert_eq!(more - few, many - more, "{extent}");
    }
}

#[test]
fn kernels_on_several_nodes_get_a_rectangle_in_one_view() {
    let expected = expected(2);
    for seed in 0..8 {
        let nodes = 2 + seed as usize % 2;
        let network = Network::seeded(nodes, seed, seed % 20);
        let mut simulation = Simulation::new(seed).network(&network);
        let answers: Vec<_> = (0..nodes)
            .map(|node| {
                let transport = network.node(maniple::machine::NodeId(node as u16));
                simulation.thread(format!("node {node}"), move || {
                    let mapper = move |_: &Machine, processor: ProcessorId| match seed % 4 {
                        0 => Box::new(DefaultMapper::new()) as Box<dyn Mapper>,
                        1 => Box::new(RandomMapper::steady(seed + u64::from(processor.0))),
                        _ => Box::new(RandomMapper::new(seed + 10 * node as u64 + u64::from(processor.0))),
                    };
                    let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1);
                    let runtime = builder.mapper_for(mapper).network(transport).build().unwrap();
                    runtime.run(async |cx| program(cx, 2).await)
                })
            })
            .collect();
        simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
        for answer in answers {
            assert_eq!(answer.take().unwrap().unwrap(), expected, "seed {seed}");
        }
    }
}
