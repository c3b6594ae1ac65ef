//! Answers of mappers that are disregarded are logged, once a call.

use crate::log;
use maniple::machine::{Affinity, MemoryKind};
use maniple::mapper::TaskProfile;
use maniple::mapper::{
    DefaultMapper, InstanceChoice, InstanceInfo, Mapper, MappingContext, MappingFailure, ReadyOperation,
    RequirementInfo, RequirementMapping, Reuse, TaskInfo, TaskMapping,
};
use maniple::prelude::*;
use maniple::{Machine, ProcessorId};
use tracing::Level;

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] += 1);
}

#[task(leaf)]
fn total(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

/// Panics, or answers nonsense, wherever that is disregarded.
#[derive(Clone)]
struct Unsound(DefaultMapper);

impl Mapper for Unsound {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mut mapping = self.0.map_task(task, context);
        mapping.profile = true;
        if let RequirementMapping::Instance(choices) = &mut mapping.requirements[0] {
            choices.truncate(1);
            choices[0].reuse = Reuse::Never;
        }
        mapping
    }

    fn map_inline(
        &mut self,
        _: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        // The second is too small.
        let memory = context.machine().memories_visible_from(processor)[1].memory;
        InstanceChoice::in_memory(memory).into()
    }

    fn rank_sources(&mut self, _: &[InstanceInfo], _: &InstanceInfo, _: &Machine) -> Vec<usize> {
        vec![0, 99]
    }

    fn select_operations_to_map(&mut self, _: &[ReadyOperation<'_>]) -> Vec<usize> {
        vec![0, 0]
    }

    fn mapping_failed(&mut self, _: &TaskInfo<'_>, _: &MappingFailure) {
        panic!("over the news");
    }

    fn task_profiled(&mut self, _: &str, _: &TaskProfile) {
        panic!("over a profile");
    }
}

#[test]
fn the_first_answer_of_each_call_that_is_disregarded_is_logged_and_no_other() {
    let log = log::keep(Level::WARN);
    let mut machine = Machine::builder();
    let processor = machine.processor(maniple::ProcessorKind::Cpu);
    for (capacity, bandwidth_mb_s) in [(1 << 20, 9), (8, 1)] {
        let memory = machine.memory(MemoryKind::System, capacity);
        machine.sees(processor, memory, Affinity { bandwidth_mb_s, latency_ns: 1 });
    }
    let runtime = Runtime::builder().machine(machine.build().unwrap()).workers(1).tracing(false);
    let runtime = runtime.mapper(Unsound(DefaultMapper::new())).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        for _ in 0..4 {
            cx.launch(add(&cells)).await?;
            cx.launch(total(&cells)).await?;
            cx.launch(total(&cells)).await?;
        }
        assert!(matches!(cx.map_read(&cells, Cell::value).await, Err(Error::OutOfMemory { .. })));
        Ok(())
    });
    let _ = outcome;
    let lines = log.take();
    for (call, words) in [
        ("rank_sources", "gave index 99"),
        ("select_operations_to_map", "gave index 0"),
        ("mapping_failed", "over the news"),
        ("task_profiled", "over a profile"),
    ] {
        let said = lines.iter().filter(|line| line.contains(call)).collect::<Vec<_>>();
        assert!(said.len() == 1 && said[0].contains(words), "{call}: {said:?} of {lines:#?}");
    }
}
