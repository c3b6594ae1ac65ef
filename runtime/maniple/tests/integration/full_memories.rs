//! Memories that are full: what can be given up is known before it is wanted, and a task that finds no room is told
//! once.

use maniple::machine::{Affinity, Machine, MemoryKind};
use maniple::mapper::{DefaultMapper, InstanceChoice, Mapper, MappingContext, RequirementMapping, Slice, TaskInfo};
use maniple::prelude::*;
use maniple::{Error, ProcessorId, ProcessorKind};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn clear(#[discards(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] = 0);
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|point| cells.value[point] += amount);
}

#[task(leaf)]
fn total(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

/// Asks for a small memory, and for one with room after that.
#[derive(Clone)]
struct SmallFirst;

impl Mapper for SmallFirst {
    fn map_requirement(
        &mut self,
        _: &TaskInfo<'_>,
        _: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let memories = context.machine().memories_visible_from(processor);
        let choices = memories.iter().map(|seen| InstanceChoice::in_memory(seen.memory));
        RequirementMapping::Instance(choices.collect())
    }
}

fn small_and_large(small: u64) -> Machine {
    let mut machine = Machine::builder();
    let processor = machine.processor(ProcessorKind::Cpu);
    for (capacity, latency_ns) in [(small, 1), (1 << 28, 1000)] {
        let memory = machine.memory(MemoryKind::System, capacity);
        machine.sees(processor, memory, Affinity { bandwidth_mb_s: 1000, latency_ns });
    }
    machine.build().unwrap()
}

/// How much was looked at to find room, for each of so many pieces that are used twice, of which few find room in the
/// memory that is asked for first.
fn visits_per_piece(pieces: usize) -> f64 {
    let runtime = Runtime::builder().machine(small_and_large(512)).workers(1).mapper(SmallFirst).build().unwrap();
    let sum = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(4 * pieces)?;
        let parts = cells.partition(pieces).equal()?;
        for _ in 0..2 {
            for piece in 0..pieces {
                cx.launch(add(&parts.piece(piece as i64)?, 1));
            }
        }
        cx.launch(total(&cells)).await
    });
    assert_eq!(sum.unwrap(), 8 * pieces as i64);
    runtime.statistics().room_visits as f64 / pieces as f64
}

#[test]
fn what_it_costs_to_find_a_memory_full_does_not_grow_with_what_is_elsewhere() {
    let (few, many) = (visits_per_piece(100), visits_per_piece(1000));
    assert!(many < 2.0 * few + 8.0, "{few} and {many} visits a piece");
}

/// The same where all that is needed is in one memory, which is full of it; each task gets room by what another has let
/// go.
fn visits_in_one_memory(pieces: usize) -> f64 {
    let bytes = 8 * 4 * (pieces as u64 + 4);
    let runtime = Runtime::builder().machine(Machine::uniform(1, bytes)).workers(1).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(4 * pieces)?;
        let parts = cells.partition(pieces).equal()?;
        cx.index_launch(pieces, add(&parts, 1)).all().await?;
        for _ in 0..pieces {
            let more = cx.region::<Cell>(8)?;
            cx.launch(clear(&more)).await?;
        }
        cx.index_launch(pieces, total(&parts)).reduce(Sum).await
    });
    assert_eq!(outcome.unwrap(), 4 * pieces as i64);
    runtime.statistics().room_visits as f64 / pieces as f64
}

#[test]
fn what_is_needed_is_not_looked_at_again_and_again() {
    let (few, many) = (visits_in_one_memory(100), visits_in_one_memory(1000));
    assert!(many < 2.0 * few + 8.0, "{few} and {many} visits a piece");
}

/// All points of a launch in one slice.
#[derive(Clone)]
struct OneSlice(DefaultMapper);

impl Mapper for OneSlice {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn slice_launch(&mut self, launch: &TaskInfo<'_>, _: &Machine) -> Vec<Slice> {
        vec![Slice { domain: launch.domain, processor: launch.origin }]
    }
}

#[test]
fn points_that_fit_nowhere_fail_one_after_the_other_however_many_they_are() {
    const PIECES: usize = 10_000;
    let mapper = OneSlice(DefaultMapper::new());
    let runtime = Runtime::builder().machine(Machine::uniform(1, 1 << 12)).workers(1).mapper(mapper).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(PIECES * 1024)?;
        let pieces = cells.partition(PIECES).equal()?;
        cx.index_launch(PIECES, clear(&pieces)).all().await
    });
    assert!(matches!(outcome, Err(Error::OutOfMemory { .. })), "{outcome:?}");
}

#[test]
fn points_that_fit_are_mapped_although_others_never_will() {
    let mapper = OneSlice(DefaultMapper::piecewise());
    let runtime = Runtime::builder().machine(Machine::uniform(1, 1 << 12)).workers(1).mapper(mapper).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let (cells, colors) = (cx.region::<Cell>(2000)?, cx.colors(4));
        // The second piece is too large.
        let bounds = [(0, 10), (10, 1980), (1980, 1990), (1990, 2000)];
        let pieces = cells.partition(colors).by(|color| {
            let (from, to) = bounds[color.typed::<1>().unwrap()[0] as usize];
            Rect::<1>::from(from..to).into()
        })?;
        let results = cx.index_launch(4, clear(&pieces));
        let mut fits = Vec::new();
        for point in 0..4 {
            fits.push(results.get(point)?.await.is_ok());
        }
        Ok(fits)
    });
    assert_eq!(outcome.unwrap(), [true, false, true, true]);
}
