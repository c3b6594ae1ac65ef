//! A task graph as a region and an index launch for each step.
//!
//! The region has a row for each value of each point's output, and a few fields that the steps write in turn, so that a
//! step need not wait until the one before has been read. A partition has a piece for each point, to write; another one
//! for each set of dependences, whose pieces are what each point reads and may overlap. How many fields there are is
//! known at run time only, hence the API beneath the macros.

use std::sync::Arc;

use maniple::prelude::*;
use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{FieldId, FieldMask, FieldType, FieldValue, Privilege, Requirement};
use maniple::{LogicalPartition, LogicalRegion, Target};

use super::dependences::DependenceTable;
use super::graph::{Graph, Interval};
use super::point::{Stamp, TaskPlace, Wrong, stamps};
use super::scratch;

/// Requirements of a task: its output comes first, its inputs next unless the pattern has none, its scratch last if it
/// has one.
const OUTPUT: usize = 0;

/// A region of which the steps write one field after the other, and its partition into what the points have.
struct Columns {
    region: LogicalRegion,
    pieces: LogicalPartition,
    fields: Vec<FieldId>,
}

impl Columns {
    /// So many rows of `T` for each point.
    fn new<T: FieldValue>(cx: &Context, name: &str, width: i64, rows: i64, fields: usize) -> Result<Self> {
        let columns = cx.field_space(fields);
        let ids = (0..fields).map(|number| columns.allocate(&format!("{name} {number}"), FieldType::of::<T>()));
        let fields = ids.collect::<Result<Vec<FieldId>, _>>()?;
        let rows = cx.index_space(&Rect::from(0..width * rows).into());
        let region: Region<()> = Region::try_from_logical(cx.logical_region(&rows, &columns)?)?.named(name);
        let pieces = region.partition(width as usize).equal()?.named("points");
        Ok(Self { region: region.logical().clone(), pieces: pieces.logical().clone(), fields })
    }

    /// A partition into what the points read, named by the intervals of points that have it.
    fn sources<'a>(&self, stamps: i64, mut of_point: impl FnMut(i64) -> &'a [Interval]) -> Result<Target> {
        let region: Region<()> = Region::try_from_logical(self.region.clone())?;
        let colors = self.pieces.partitioning().colors();
        let rows = |interval: &Interval| rows_of(*interval, stamps);
        let pieces =
            region.partition(colors).by(|point| IndexSpace::from_rects(of_point(point[0]).iter().map(rows)))?;
        // Where all points read the same, or each its own, there is a simpler name for it.
        let everything = region.space();
        if pieces.pieces().all(|piece| piece == everything) {
            return Ok(self.region.clone().into());
        }
        let own = Partition::<()>::try_from_logical(self.pieces.clone())?;
        if pieces.pieces().eq(own.pieces()) {
            return Ok(self.pieces.clone().into());
        }
        Ok(pieces.named("inputs").logical().clone().into())
    }

    /// The field that a step writes. A step reads what the one before has written; the first one finds there what an
    /// earlier run has left.
    fn field_at(&self, step: i64) -> FieldId {
        field_at(&self.fields, step)
    }
}

fn field_at(fields: &[FieldId], step: i64) -> FieldId {
    fields[step.rem_euclid(fields.len() as i64) as usize]
}

/// The rows of some points' outputs.
fn rows_of(points: Interval, stamps: i64) -> Rect<1> {
    (points.first * stamps..(points.last + 1) * stamps).into()
}

/// A task graph that can be launched, step by step.
pub struct Tasks {
    graph: Arc<Graph>,
    /// All of a launch but its step: for each set of dependences, one for each field that is written.
    launchers: Vec<TaskLauncher>,
    outputs: Columns,
    scratch: Option<Columns>,
}

/// The data of a graph that its tasks share.
struct Knowledge {
    graph: Arc<Graph>,
    dependences: DependenceTable,
    stamps: i64,
    fields: Vec<FieldId>,
    /// The requirement of the inputs, if there are any.
    inputs: Option<usize>,
    /// The requirement and the fields of the scratch, if there is one.
    scratch: Option<(usize, Vec<FieldId>)>,
}

impl Tasks {
    /// Makes the regions and partitions of a graph, with so many fields for the steps to write in turn.
    ///
    /// # Errors
    /// [`Error::Region`] if there are too many fields.
    pub fn new(cx: &Context, graph: &Graph, fields: usize) -> Result<Self> {
        let graph = Arc::new(graph.clone());
        let stamps = stamps(graph.output_bytes);
        let outputs = Columns::new::<Stamp>(cx, "output", graph.width, stamps, fields)?;
        let words = graph.scratch_bytes / size_of::<u64>() as i64;
        let scratch =
            (words > 0).then(|| Columns::new::<u64>(cx, "scratch", graph.width, words, fields)).transpose()?;
        let dependences = DependenceTable::of(&graph);
        let has_inputs = !dependences.is_empty();
        let inputs = |set| outputs.sources(stamps, |point| dependences.of_point(set, point));
        let inputs = (0..graph.sets()).map(|set| has_inputs.then(|| inputs(set)).transpose());
        let inputs = inputs.collect::<Result<Vec<Option<Target>>>>()?;
        let input_number = has_inputs.then_some(OUTPUT + 1);
        let scratch_number = input_number.unwrap_or(OUTPUT) + 1;
        let knowledge = Knowledge {
            graph: Arc::clone(&graph),
            dependences,
            stamps,
            fields: outputs.fields.clone(),
            inputs: input_number,
            scratch: scratch.as_ref().map(|scratch| (scratch_number, scratch.fields.clone())),
        };
        let task = TaskDefinition::new("execute_point")
            .leaf(TaskOptions::default(), move |call| knowledge.execute(call).map(Value::new));
        let task = Arc::new(task);
        let launchers = inputs.iter().flat_map(|inputs| {
            let of_field = |field| launcher(&task, &outputs, inputs.as_ref(), scratch.as_ref(), field);
            (0..fields as i64).map(of_field)
        });
        let launchers = launchers.collect();
        Ok(Self { graph, launchers, outputs, scratch })
    }

    /// How many steps the graph has.
    #[must_use]
    pub fn steps(&self) -> i64 {
        self.graph.steps
    }

    /// Prepares the scratch of all points.
    pub fn prepare(&self, cx: &Context) {
        let Some(Columns { pieces, fields, .. }) = &self.scratch else { return };
        let (kernel, prepared) = (self.graph.kernel.kind, fields.clone());
        let task = TaskDefinition::new("prepare_scratch").leaf(TaskOptions::default(), move |call| {
            for &field in &prepared {
                let mut words = call.write::<u64, 1>(0, field)?;
                let row = words.space().bounds();
                scratch::prepare(kernel, &mut words.span_mut(row));
            }
            Ok(Value::new(()))
        });
        let everything = Requirement::new(pieces.clone(), fields.iter().copied().collect(), Privilege::Discard);
        let launcher = TaskLauncher::new(&Arc::new(task)).requirement(everything);
        cx.index_launch(self.graph.width as usize, launcher.typed::<()>());
    }

    /// Launches the tasks of a step.
    pub fn launch(&self, cx: &Context, step: i64) -> FutureMap<()> {
        let (set, fields) = (self.graph.set_at(step) as usize, self.outputs.fields.len());
        let launcher = self.launchers[set * fields + step as usize % fields].clone();
        let Interval { first, last } = self.graph.window(step);
        cx.index_launch(first..last + 1, launcher.arguments(step).typed::<()>())
    }
}

/// The launch of a step that writes the field of this number and reads the one before.
fn launcher(
    task: &Arc<TaskDefinition>,
    outputs: &Columns,
    inputs: Option<&Target>,
    scratch: Option<&Columns>,
    field: i64,
) -> TaskLauncher {
    let written = FieldMask::of(outputs.field_at(field));
    let mut launcher =
        TaskLauncher::new(task).requirement(Requirement::new(outputs.pieces.clone(), written, Privilege::Discard));
    if let Some(inputs) = inputs {
        let read = FieldMask::of(outputs.field_at(field - 1));
        launcher = launcher.requirement(Requirement::new(inputs.clone(), read, Privilege::Read));
    }
    if let Some(scratch) = scratch {
        let used = FieldMask::of(scratch.field_at(field));
        launcher = launcher.requirement(Requirement::new(scratch.pieces.clone(), used, Privilege::ReadWrite));
    }
    launcher
}

impl Knowledge {
    /// The body of a task: checks what it reads, writes its stamp, does its work.
    fn execute(&self, call: &LeafCall<'_>) -> Result<()> {
        let graph = &*self.graph;
        let (step, point) = (*call.arguments::<i64>()?, call.point()[0]);
        let place = TaskPlace { graph: graph.index, step, point };
        if let Some(number) = self.inputs {
            let inputs = call.read::<Stamp, 1>(number, field_at(&self.fields, step - 1))?;
            let sources = self.dependences.of_point(graph.set_at(step), point);
            let read = |points| inputs.span(rows_of(points, self.stamps));
            place
                .check_inputs(sources, graph.window(step - 1), self.stamps as usize, read)
                .map_err(Error::application)?;
        }
        let mut output = call.write::<Stamp, 1>(OUTPUT, field_at(&self.fields, step))?;
        output.span_mut(rows_of(Interval::one(point), self.stamps)).fill(place.stamp());
        match &self.scratch {
            None => graph.kernel.execute(graph.index, step, point, &mut []),
            Some((number, fields)) => {
                let mut words = call.write::<u64, 1>(*number, field_at(fields, step))?;
                let row = words.space().bounds();
                let mut words = words.span_mut(row);
                if !scratch::is_intact(&words) {
                    return Err(Error::application(Wrong::Scratch { graph: graph.index + 1, step, point }));
                }
                graph.kernel.execute(graph.index, step, point, &mut words);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taskbench::graph::Pattern;
    use crate::taskbench::kernel::{Kernel, KernelKind};
    use maniple::Field;

    /// Runs a program on two workers.
    fn run<T>(program: impl AsyncFnOnce(&Context) -> Result<T>) -> Result<T> {
        Runtime::builder().workers(2).build()?.run(program)
    }

    fn graph(pattern: Pattern) -> Graph {
        Graph { pattern, width: 5, steps: 9, output_bytes: 40, ..Graph::new(0) }
    }

    fn region(columns: &Columns) -> Result<Region<()>> {
        Region::try_from_logical(columns.region.clone())
    }

    #[test]
    fn outputs_are_the_stamps_of_the_tasks_that_wrote_them() {
        let outputs = run(async |cx| {
            let tasks = Tasks::new(cx, &graph(Pattern::Stencil1d), 3)?;
            (0..5).for_each(|step| _ = tasks.launch(cx, step));
            let outputs = region(&tasks.outputs)?;
            let step_3 = cx.map_read(&outputs, Field::<(), Stamp>::new(tasks.outputs.field_at(3))).await?.to_vec();
            let step_4 = cx.map_read(&outputs, Field::<(), Stamp>::new(tasks.outputs.field_at(4))).await?.to_vec();
            Ok([step_3, step_4])
        });
        let expected = |step| (0..15).map(|index| Stamp { step, point: index / 3 }).collect::<Vec<_>>();
        assert_eq!(outputs.expect("nothing fails"), [expected(3), expected(4)]);
    }

    #[test]
    fn a_corrupted_input_is_an_error_of_the_run() {
        let error = run(async |cx| {
            let tasks = Tasks::new(cx, &graph(Pattern::Dom), 2)?;
            (0..5).for_each(|step| _ = tasks.launch(cx, step));
            let output = Field::<(), Stamp>::new(tasks.outputs.field_at(4));
            // Three values a point: the last of point 4, which only point 4 reads.
            cx.map_write(&region(&tasks.outputs)?, output).await?[14].step = 2;
            tasks.launch(cx, 5);
            Ok(())
        })
        .expect_err("an input is wrong");
        let wrong = Wrong::Input {
            graph: 1,
            step: 5,
            point: 4,
            input: 1,
            position: 2,
            expected: Stamp { step: 4, point: 4 },
            found: Stamp { step: 2, point: 4 },
        };
        assert_eq!(error.downcast_ref(), Some(&wrong));
    }

    #[test]
    fn a_spoilt_scratch_is_an_error_of_the_run() {
        let kernel = Kernel { kind: KernelKind::MemoryBound, iterations: 5, ..Graph::new(0).kernel };
        let graph = Graph { kernel, scratch_bytes: 256, ..graph(Pattern::Trivial) };
        let error = run(async |cx| {
            let tasks = Tasks::new(cx, &graph, 2)?;
            tasks.prepare(cx);
            (0..3).for_each(|step| _ = tasks.launch(cx, step));
            let scratch = tasks.scratch.as_ref().expect("the kernel needs one");
            // 32 words a point: the first of point 3.
            cx.map_write(&region(scratch)?, Field::<(), u64>::new(scratch.field_at(1))).await?[96] = 0;
            tasks.launch(cx, 3);
            Ok(())
        })
        .expect_err("a scratch is spoilt");
        assert_eq!(error.downcast_ref(), Some(&Wrong::Scratch { graph: 1, step: 3, point: 3 }));
    }

    #[test]
    fn what_points_read_has_the_simplest_name_that_there_is() {
        let sources = |pattern| {
            let graph = graph(pattern);
            run(async |cx| {
                let columns = Columns::new::<Stamp>(cx, "output", graph.width, 3, 2)?;
                let table = DependenceTable::of(&graph);
                let sources = columns.sources(3, |point| table.of_point(0, point))?;
                Ok(match &sources {
                    Target::Region(..) => "the region",
                    Target::Partition(partition, _)
                        if Arc::ptr_eq(partition.partitioning(), columns.pieces.partitioning()) =>
                    {
                        "what each wrote"
                    }
                    Target::Partition(..) => "a partition of its own",
                })
            })
            .expect("nothing fails")
        };
        assert_eq!(sources(Pattern::AllToAll), "the region");
        assert_eq!(sources(Pattern::NoComm), "what each wrote");
        assert_eq!(sources(Pattern::Stencil1d), "a partition of its own");
    }
}
