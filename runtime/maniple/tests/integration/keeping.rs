//! How long copies are kept, and how much of memories is used.

use maniple::machine::{Affinity, MemoryKind};
use maniple::mapper::{
    DefaultMapper, Extent, InstanceChoice, Keep, Mapper, MappingContext, RequirementMapping, Reuse, TaskInfo,
};
use maniple::prelude::*;
use maniple::{Machine, MemoryId, MemoryStatistics, ProcessorId, ProcessorKind};

const ROWS: i64 = 1000;
/// Of one field of all rows.
const BYTES: u64 = 8 * ROWS as u64;

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn number(#[discards(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] = cell[0]);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|cell| cells.value[cell]).sum()
}

/// One processor with a small memory beside a large one.
fn machine(small: u64) -> Machine {
    let mut machine = Machine::builder();
    let processor = machine.processor(ProcessorKind::Cpu);
    let large = machine.memory(MemoryKind::System, 1 << 24);
    let near = machine.memory(MemoryKind::Socket, small);
    for memory in [large, near] {
        machine.sees(processor, memory, Affinity { bandwidth_mb_s: 1, latency_ns: 1 });
    }
    machine.copies(large, near, Affinity { bandwidth_mb_s: 1, latency_ns: 1 });
    machine.build().unwrap()
}

const LARGE: MemoryId = MemoryId(0);
const SMALL: MemoryId = MemoryId(1);

/// Tasks that write do so in the large memory; those that read get copies of their pieces in the small one, kept as the
/// tag says.
#[derive(Clone)]
struct Near(fn(u64) -> Keep);

impl Mapper for Near {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        _: usize,
        _: ProcessorId,
        _: usize,
        _: &dyn MappingContext,
    ) -> RequirementMapping {
        match task.name {
            "sum" => {
                InstanceChoice { keep: (self.0)(task.tag), reuse: Reuse::Exact, ..InstanceChoice::in_memory(SMALL) }
            }
            _ => InstanceChoice { extent: Extent::Root, ..InstanceChoice::in_memory(LARGE) },
        }
        .into()
    }
}

fn near(small: u64, keep: fn(u64) -> Keep) -> Runtime {
    Runtime::builder().machine(machine(small)).workers(1).tracing(false).mapper(Near(keep)).build().unwrap()
}

/// Reads some pieces, one after the other, and awaits each. Returns their sums.
fn read(runtime: &Runtime, pieces: i64, order: &[i64]) -> Vec<i64> {
    runtime
        .run(async |cx| {
            let cells = cx.region::<Cell>(ROWS as usize)?;
            let pieces = cells.partition(pieces as usize).equal()?;
            cx.launch(number(&cells));
            let mut sums = Vec::new();
            for &piece in order {
                sums.push(cx.launch(sum(&pieces.piece(piece)?).tag(piece as u64)).await?);
            }
            // Copies go when tasks have ended, which is after their results are there.
            cx.execution_fence().await?;
            Ok(sums)
        })
        .unwrap()
}

fn expected(pieces: i64, order: &[i64]) -> Vec<i64> {
    let length = ROWS / pieces;
    order.iter().map(|piece| (piece * length..(piece + 1) * length).sum()).collect()
}

fn memory(runtime: &Runtime, memory: MemoryId) -> MemoryStatistics {
    runtime.memories()[memory.0 as usize]
}

#[test]
fn peaks_are_the_most_bytes_of_instances_at_a_time_since_they_were_reset() {
    let runtime = near(1 << 20, |_| Keep::default());
    assert_eq!((memory(&runtime, LARGE).peak, memory(&runtime, SMALL).peak), (0, 0));
    let order = [0, 1, 2, 3];
    assert_eq!(read(&runtime, 4, &order), expected(4, &order));
    let [large, small] = [LARGE, SMALL].map(|id| memory(&runtime, id));
    assert_eq!((large.peak, small.peak), (BYTES, BYTES));
    assert_eq!((large.capacity, small.capacity), (1 << 24, 1 << 20));
    assert_eq!((large.memory, small.memory), (LARGE, SMALL));
    while memory(&runtime, SMALL).used > 0 {
        // The region has gone; its last instance goes with its last user.
        std::thread::yield_now();
    }
    runtime.reset_peaks();
    assert_eq!(memory(&runtime, SMALL).peak, 0);
    assert_eq!(read(&runtime, 2, &[1]), expected(2, &[1]));
    assert_eq!(memory(&runtime, SMALL).peak, BYTES / 2, "the rest was not read");
}

/// Each piece is read once: with no copy kept, two of them at most are there at a time, the one that is read and that
/// read before it.
#[test]
fn what_is_kept_while_it_is_used_goes_when_the_task_has_ended() {
    let order: Vec<i64> = (0..10).collect();
    let all = near(1 << 20, |_| Keep::default());
    let once = near(1 << 20, |_| Keep::WhileUsed);
    assert_eq!(read(&all, 10, &order), expected(10, &order));
    assert_eq!(read(&once, 10, &order), expected(10, &order));
    assert_eq!(memory(&all, SMALL).peak, BYTES);
    let peak = memory(&once, SMALL).peak;
    assert!(peak <= 3 * BYTES / 10, "{peak} bytes of {BYTES}");
    assert_eq!(all.statistics().copies, once.statistics().copies);
}

/// It is a copy that goes, and never the only one.
#[test]
fn values_that_no_other_instance_holds_are_kept_in_any_case() {
    #[derive(Clone)]
    struct Once;
    impl Mapper for Once {
        fn map_requirement(
            &mut self,
            task: &TaskInfo<'_>,
            requirement: usize,
            processor: ProcessorId,
            variant: usize,
            context: &dyn MappingContext,
        ) -> RequirementMapping {
            let mut mapping = DefaultMapper::new().map_requirement(task, requirement, processor, variant, context);
            if let RequirementMapping::Instance(choices) = &mut mapping {
                choices.iter_mut().for_each(|choice| choice.keep = Keep::WhileUsed);
            }
            mapping
        }
    }
    let runtime = Runtime::builder().workers(2).mapper(Once).build().unwrap();
    let sums = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(ROWS as usize)?;
        let pieces = cells.partition(10).equal()?;
        for _ in 0..3 {
            cx.index_launch(10, number(&pieces)).await?;
        }
        let first = cx.index_launch(10, sum(&pieces)).reduce(Sum).await?;
        Ok((first, cx.launch(sum(&cells)).await?))
    });
    assert_eq!(sums.unwrap(), (ROWS * (ROWS - 1) / 2, ROWS * (ROWS - 1) / 2));
}

/// The small memory has room for three of ten pieces. The first is kept longer than the others, or less long, and read
/// again at the end: it is copied again if it has gone.
#[test]
fn copies_of_lower_rank_go_first_when_a_memory_is_full() {
    let order = [0, 1, 2, 3, 4, 0];
    let copies = |keep| {
        let runtime = near(3 * BYTES / 10, keep);
        assert_eq!(read(&runtime, 10, &order), expected(10, &order));
        runtime.statistics().copies
    };
    let all_alike = copies(|_| Keep::Rank(7));
    let first_longer = copies(|piece| Keep::Rank(if piece == 0 { 1 } else { 0 }));
    let first_less = copies(|piece| Keep::Rank(if piece == 0 { -1 } else { 0 }));
    assert_eq!((first_longer, first_less), (5, 6));
    assert!((5..=6).contains(&all_alike), "{all_alike}");
    // Nothing is kept for ever: the last rank goes too.
    assert_eq!(copies(|piece| Keep::Rank(i32::MAX - piece as i32)), 5);
    assert_eq!(copies(|_| Keep::Rank(i32::MIN)), all_alike);
}

/// Of very many copies of the same values those go that no task uses, but for those that are to be kept longer.
#[test]
fn copies_of_a_higher_rank_stay_however_many_there_are() {
    #[derive(Clone)]
    struct Anew(Keep);
    impl Mapper for Anew {
        fn map_requirement(
            &mut self,
            task: &TaskInfo<'_>,
            _: usize,
            _: ProcessorId,
            _: usize,
            _: &dyn MappingContext,
        ) -> RequirementMapping {
            match task.name {
                "sum" => InstanceChoice { keep: self.0, reuse: Reuse::Never, ..InstanceChoice::in_memory(SMALL) },
                _ => InstanceChoice::in_memory(LARGE),
            }
            .into()
        }
    }
    let peak = |keep| {
        let runtime =
            Runtime::builder().machine(machine(1 << 23)).workers(1).tracing(false).mapper(Anew(keep)).build().unwrap();
        let sums = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(ROWS as usize)?;
            cx.launch(number(&cells));
            for _ in 0..300 {
                assert_eq!(cx.launch(sum(&cells)).await?, ROWS * (ROWS - 1) / 2);
            }
            Ok(())
        });
        sums.unwrap();
        memory(&runtime, SMALL).peak
    };
    assert_eq!(peak(Keep::Rank(i32::MAX)), 300 * BYTES);
    assert!(peak(Keep::default()) < 300 * BYTES);
}

/// Two regions: what is kept less long goes first, whichever it is of.
#[test]
fn ranks_hold_across_regions() {
    let copies = |keep: fn(u64) -> Keep| {
        let runtime = near(2 * BYTES, keep);
        runtime
            .run(async |cx| {
                let regions = [
                    cx.region::<Cell>(ROWS as usize)?,
                    cx.region::<Cell>(ROWS as usize)?,
                    cx.region::<Cell>(ROWS as usize)?,
                ];
                regions.iter().for_each(|cells| _ = cx.launch(number(cells)));
                for number in [0, 1, 2, 0] {
                    cx.launch(sum(&regions[number]).tag(number as u64)).await?;
                }
                Ok(())
            })
            .unwrap();
        runtime.statistics().copies
    };
    // The third takes the place of the second; or of the first, which is then copied again.
    assert_eq!(copies(|region| Keep::Rank(if region == 0 { 1 } else { 0 })), 3);
    assert_eq!(copies(|region| Keep::Rank(if region == 0 { -1 } else { 0 })), 4);
}
