//! Several mappers in one program, by name: each question about a launch goes to the mapper that it is for.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use maniple::machine::{Affinity, MemoryKind};
use maniple::mapper::{
    DefaultMapper, Extent, InstanceInfo, Mapper, MappingContext, MappingFailure, ReadyOperation, RequirementInfo,
    RequirementMapping, Reuse, Slice, TaskInfo, TaskMapping, TaskProfile, Tunable,
};
use maniple::prelude::*;
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{Error, Machine, ProcessorId, ProcessorKind};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|cell| cells.value[cell] += amount);
}

#[task(leaf)]
fn look(#[reads(value)] cells: Piece<Cell>) -> u64 {
    cells.volume()
}

#[task(leaf, mapper = "solver")]
fn solve(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] *= 2);
}

#[task(mapper = "solver")]
fn free(number: i64) -> i64 {
    number + 1
}

#[task]
fn unnamed(number: i64) -> i64 {
    number + 2
}

/// The questions that mappers were asked: the name of the mapper, the call, and the subject of the question.
type Asked = Arc<Mutex<BTreeSet<(&'static str, &'static str, String)>>>;

/// Notes each question, and has what it wants profiled, in new instances of its own.
#[derive(Clone)]
struct Witness {
    name: &'static str,
    asked: Asked,
    inner: DefaultMapper,
}

impl Witness {
    fn note(&self, call: &'static str, about: &str) {
        self.asked.lock().unwrap().insert((self.name, call, about.to_owned()));
    }
}

impl Mapper for Witness {
    fn name(&self) -> &str {
        self.name
    }

    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn slice_launch(&mut self, launch: &TaskInfo<'_>, machine: &Machine) -> Vec<Slice> {
        self.note("slice_launch", launch.name);
        self.inner.slice_launch(launch, machine)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        self.note("map_task", task.name);
        let mut mapping = self.inner.map_task(task, context);
        mapping.profile = true;
        for requirement in &mut mapping.requirements {
            // In new instances, so that values are copied.
            if let RequirementMapping::Instance(choices) = requirement {
                choices.retain(|choice| choice.extent == Extent::Region);
                choices.iter_mut().for_each(|choice| choice.reuse = Reuse::Never);
            }
        }
        mapping
    }

    fn map_inline(
        &mut self,
        requirement: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        self.note("map_inline", &requirement.field_names());
        self.inner.map_inline(requirement, processor, context)
    }

    fn rank_sources(&mut self, sources: &[InstanceInfo], destination: &InstanceInfo, machine: &Machine) -> Vec<usize> {
        self.note("rank_sources", "");
        self.inner.rank_sources(sources, destination, machine)
    }

    fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
        ready.iter().for_each(|operation| self.note("select_operations_to_map", operation.name));
        (0..ready.len()).collect()
    }

    fn tunable(&mut self, tunable: &Tunable<'_>, _: &Machine) -> Option<i64> {
        self.note("tunable", tunable.name);
        Some(if self.name == "usual" { 1 } else { 2 })
    }

    fn mapping_failed(&mut self, task: &TaskInfo<'_>, _: &MappingFailure) {
        self.note("mapping_failed", task.name);
    }

    fn task_profiled(&mut self, task: &str, _: &TaskProfile) {
        self.note("task_profiled", task);
    }
}

/// Two processors that see two memories of these sizes.
fn machine(sizes: [u64; 2]) -> Machine {
    let mut machine = Machine::builder();
    let processors = [(); 2].map(|()| machine.processor(ProcessorKind::Cpu));
    for size in sizes {
        let memory = machine.memory(MemoryKind::System, size);
        for processor in processors {
            machine.sees(processor, memory, Affinity { bandwidth_mb_s: 1, latency_ns: 1 });
        }
    }
    machine.build().unwrap()
}

fn with_mappers(sizes: [u64; 2]) -> (Runtime, Asked) {
    let asked = Asked::default();
    let witness = |name| Witness { name, asked: Arc::clone(&asked), inner: DefaultMapper::new() };
    let builder = Runtime::builder().machine(machine(sizes)).mapper(witness("usual"));
    let builder = builder.mapper_named("solver", witness("solver")).mapper_named("other", witness("other"));
    (builder.build().unwrap(), asked)
}

/// The names of the mappers that a call has asked about something, once the runtime is gone.
fn who(asked: &Asked, call: &str, about: &str) -> Vec<&'static str> {
    let asked = asked.lock().unwrap();
    asked.iter().filter(|(_, by, what)| *by == call && what == about).map(|(who, ..)| *who).collect()
}

#[test]
fn a_launch_names_its_mapper_before_its_task_and_that_before_the_context() {
    let (runtime, asked) = with_mappers([1 << 20; 2]);
    let task = |name: &str| TaskDefinition::new(name).leaf(TaskOptions::default(), |_| Ok(Value::new(())));
    runtime
        .run(async |cx| {
            let other = cx.with_mapper("other")?;
            let launch = |cx: &Context, launcher: TaskLauncher| cx.launch(launcher.typed::<()>());
            launch(cx, TaskLauncher::new(&Arc::new(task("plain"))));
            launch(cx, TaskLauncher::new(&Arc::new(task("by task").mapper("solver"))));
            launch(cx, TaskLauncher::new(&Arc::new(task("by launch").mapper("solver"))).mapper("other"));
            launch(&other, TaskLauncher::new(&Arc::new(task("by context"))));
            launch(&other, TaskLauncher::new(&Arc::new(task("by task in context").mapper("solver"))));
            launch(&other, TaskLauncher::new(&Arc::new(task("by launch in context"))).mapper("solver"));
            other.index_launch(3, TaskLauncher::new(&Arc::new(task("many"))).typed::<()>());
            Ok(())
        })
        .unwrap();
    drop(runtime);
    for (task, mapper) in [
        ("plain", "usual"),
        ("by task", "solver"),
        ("by launch", "other"),
        ("by context", "other"),
        ("by task in context", "solver"),
        ("by launch in context", "solver"),
        ("many", "other"),
    ] {
        assert_eq!(who(&asked, "map_task", task), [mapper], "{task}");
        assert_eq!(who(&asked, "task_profiled", task), [mapper], "{task}");
        assert_eq!(who(&asked, "select_operations_to_map", task), [mapper], "{task}");
    }
    assert_eq!(who(&asked, "slice_launch", "many"), ["other"]);
}

#[test]
fn every_question_about_a_launch_goes_to_its_mapper() {
    let (runtime, asked) = with_mappers([1 << 20, 1 << 20]);
    let sum = runtime
        .run(async |cx| {
            let cells = cx.region::<Cell>(64)?;
            let pieces = cells.partition(4).equal()?;
            cx.fill(&cells, Cell::value, 1)?;
            for _ in 0..3 {
                cx.index_launch(4, add(&pieces, 1));
                cx.index_launch(4, solve(&pieces));
                cx.index_launch(4, add(&pieces, 1).mapper("other"));
            }
            // The first has one source, the others several.
            cx.index_launch(4, look(&pieces));
            for mapper in ["other", "solver", "other"] {
                cx.index_launch(4, look(&pieces).mapper(mapper));
            }
            cx.index_launch(4, look(&pieces));
            let values = cx.with_mapper("solver")?.map_read(&cells, Cell::value).await?;
            Ok(values.to_vec().iter().sum::<i64>())
        })
        .unwrap();
    drop(runtime);
    let one = (0..3).fold(1, |value, _| (value + 1) * 2 + 1);
    assert_eq!(sum, 64 * one);
    assert_eq!(who(&asked, "map_task", "add"), ["other", "usual"]);
    assert_eq!(who(&asked, "map_task", "solve"), ["solver"]);
    assert_eq!(who(&asked, "slice_launch", "solve"), ["solver"]);
    assert_eq!(who(&asked, "rank_sources", ""), ["other", "solver", "usual"]);
    assert_eq!(who(&asked, "map_inline", "value"), ["solver"]);
    assert_eq!(who(&asked, "select_operations_to_map", "inline mapping"), ["solver"]);
}

#[test]
fn the_mapper_of_a_launch_hears_that_there_was_no_room() {
    let (runtime, asked) = with_mappers([64; 2]);
    let error = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(64)?;
        cx.fill(&cells, Cell::value, 1)?;
        cx.launch(solve(&cells)).await
    });
    assert!(matches!(error, Err(Error::OutOfMemory { .. })), "{error:?}");
    drop(runtime);
    assert_eq!(who(&asked, "mapping_failed", "solve"), ["solver"]);
}

#[test]
fn a_task_without_regions_is_mapped_by_the_mapper_that_it_names() {
    let (runtime, asked) = with_mappers([1 << 20; 2]);
    let sum = runtime.run(async |cx| {
        let other = cx.with_mapper("other")?;
        Ok(cx.launch(free(1)).await? + cx.launch(unnamed(1)).await? + other.launch(unnamed(1)).await?)
    });
    assert_eq!(sum.unwrap(), 8);
    drop(runtime);
    assert_eq!(who(&asked, "map_task", "free"), ["solver"]);
    assert_eq!(who(&asked, "map_task", "unnamed"), ["other", "usual"]);
}

#[test]
fn tunables_are_those_of_the_contexts_mapper() {
    let (runtime, _) = with_mappers([1 << 20; 2]);
    let tunables =
        runtime.run(async |cx| Ok((cx.tunable("pieces", 0)?, cx.with_mapper("other")?.tunable("pieces", 0)?)));
    assert_eq!(tunables.unwrap(), (1, 2));
}

#[test]
fn a_name_that_no_mapper_has_is_an_error_with_the_names_that_there_are() {
    let (runtime, _) = with_mappers([1 << 20; 2]);
    let error = runtime.run(async |cx| cx.launch(unnamed(1).mapper("slover")).await).unwrap_err();
    let told = "`unnamed` is to be mapped by `slover`, but the mappers with names are `solver` and `other`";
    assert!(error.to_string().starts_with(told), "{error}");
    let error = runtime.run(async |cx| cx.with_mapper("").map(|_| ())).unwrap_err();
    assert!(
        matches!(&error, Error::NoSuchMapper { name, known, .. } if name.is_empty() && known.len() == 2),
        "{error}"
    );
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let error = runtime.run(async |cx| cx.launch(free(1)).await).unwrap_err();
    assert!(error.to_string().contains("no mapper has a name"), "{error}");
}

#[test]
fn launches_for_different_mappers_are_different_launches() {
    // Alternating, from one line of the program: what one mapper has decided is not taken for what the other would.
    let (runtime, asked) = with_mappers([1 << 20; 2]);
    runtime
        .run(async |cx| {
            let cells = cx.region::<Cell>(64)?;
            let pieces = cells.partition(4).equal()?;
            cx.fill(&cells, Cell::value, 0)?;
            for turn in 0..40 {
                cx.index_launch(4, add(&pieces, 1).mapper(["solver", "other"][turn % 2]));
            }
            let values = cx.map_read(&cells, Cell::value).await?;
            assert!(values.to_vec().iter().all(|value| *value == 40));
            Ok(())
        })
        .unwrap();
    drop(runtime);
    assert_eq!(who(&asked, "map_task", "add"), ["other", "solver"]);
}

#[test]
fn a_strict_trace_is_another_one_for_another_mapper() {
    let (runtime, _) = with_mappers([1 << 20; 2]);
    let error = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        cx.fill(&cells, Cell::value, 0)?;
        for mapper in ["solver", "solver", "other"] {
            cx.strict_trace("step", |cx| cx.launch(add(&cells, 1).mapper(mapper)))?;
        }
        Ok(())
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("for mapper 1 of") && error.contains("for mapper 2 of"), "{error}");
}

#[test]
fn a_name_that_is_given_again_stands_for_the_later_mapper() {
    let asked = Asked::default();
    let witness = |name| Witness { name, asked: Arc::clone(&asked), inner: DefaultMapper::new() };
    let builder = Runtime::builder().workers(1).mapper_named("solver", witness("first"));
    let runtime = builder.mapper_named("solver", witness("second")).build().unwrap();
    assert_eq!(runtime.run(async |cx| cx.launch(free(1)).await).unwrap(), 2);
    drop(runtime);
    assert_eq!(who(&asked, "map_task", "free"), ["second"]);
}
