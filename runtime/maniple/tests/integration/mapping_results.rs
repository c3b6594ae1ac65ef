//! Results of the answers of mappers, and loads of processors, as mappers are told of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use maniple::mapper::{DefaultMapper, MappedTask, Mapper, MappingContext, TaskInfo, TaskMapping, Validity};
use maniple::prelude::*;
use maniple::{Machine, ProcessorId};

#[derive(Fields)]
struct Cell {
    value: i64,
    other: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] += 1);
}

#[task(leaf)]
fn sum(#[reads(value, other)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point] + cells.other[point]).sum()
}

#[task(leaf)]
fn nothing() {}

/// Runs until it is told to end.
#[task(leaf)]
fn occupy(gate: Arc<Gate>) {
    gate.has_begun.send(()).unwrap();
    gate.may_end.lock().unwrap().recv().unwrap();
}

struct Gate {
    has_begun: Sender<()>,
    may_end: Mutex<Receiver<()>>,
}

/// A report of a task to its mapper: the task's name, and of each requirement how many instances there are, how many of
/// them are new, and how many fields they held.
type Heard = (String, Vec<(usize, usize, usize)>);

#[derive(Clone)]
struct Listening {
    inner: DefaultMapper,
    validity: Validity,
    heard: Arc<Mutex<Vec<Heard>>>,
    asked: Arc<AtomicUsize>,
}

impl Listening {
    fn new(validity: Validity) -> Self {
        Self { inner: DefaultMapper::new(), validity, heard: Arc::default(), asked: Arc::default() }
    }
}

impl Mapper for Listening {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        self.asked.fetch_add(1, Ordering::Relaxed);
        TaskMapping { report: true, validity: self.validity, ..self.inner.map_task(task, context) }
    }

    fn task_mapped(&mut self, task: &TaskInfo<'_>, mapped: &MappedTask) {
        assert_eq!((mapped.processor, mapped.variant), (ProcessorId(0), 0));
        let requirements = mapped.requirements.iter().map(|instances| {
            let new = instances.iter().filter(|mapped| mapped.is_new).count();
            let held = instances.iter().map(|mapped| mapped.instance.valid.iter().count()).sum();
            (instances.len(), new, held)
        });
        self.heard.lock().unwrap().push((task.name.to_owned(), requirements.collect()));
    }
}

fn run<T>(mapper: &Listening, program: impl AsyncFnOnce(&Context) -> Result<T>) -> Result<T> {
    let machine = Machine::uniform(1, 1 << 20);
    Runtime::builder().machine(machine).tracing(false).mapper(mapper.clone()).build().unwrap().run(program)
}

#[test]
fn a_mapper_hears_which_instances_a_task_got_and_what_these_held() {
    let mapper = Listening::new(Validity::Once);
    run(&mapper, async |cx| {
        let cells = cx.region::<Cell>(8)?;
        cx.launch(add(&cells)).await?;
        cx.launch(sum(&cells)).await?;
        cx.launch(sum(&cells)).await?;
        cx.index_launch(1, nothing()).await
    })
    .unwrap();
    let heard = mapper.heard.lock().unwrap();
    let of = |name: &str| heard.iter().filter(|(task, _)| task == name).map(|(_, of)| &of[..]).collect::<Vec<_>>();
    // Made, with nothing in it.
    assert_eq!(of("add"), [[(1, 1, 0)]]);
    // The other field is zero so far, and was put into an instance: then it is there.
    let sums = of("sum");
    assert!(matches!(sums[0], [(instances, new, 1)] if instances == &(1 + new)), "{sums:?}");
    assert!(matches!(sums[1], [(_, 0, 2)]), "{sums:?}");
    assert_eq!(of("nothing"), [[(0, 0, 0); 0]]);
}

#[test]
fn a_decision_that_holds_is_told_of_once() {
    let mapper = Listening::new(Validity::WhileUnchanged);
    run(&mapper, async |cx| {
        let cells = cx.region::<Cell>(8)?;
        for _ in 0..20 {
            cx.launch(add(&cells)).await?;
        }
        Ok(())
    })
    .unwrap();
    let (heard, asked) = (mapper.heard.lock().unwrap().len(), mapper.asked.load(Ordering::Relaxed));
    assert!(heard == asked && heard < 10, "{heard} {asked}");
}

/// Puts everything on the first processor, for once, and notes how many tasks each has before.
#[derive(Clone)]
struct Crowding {
    inner: DefaultMapper,
    validity: Validity,
    loads: Arc<Mutex<Vec<usize>>>,
}

impl Mapper for Crowding {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        // The second has none, nor has one that there is not.
        assert_eq!((context.load(ProcessorId(1)), context.load(ProcessorId(99))), (0, 0));
        if task.name != "occupy" {
            self.loads.lock().unwrap().push(context.load(ProcessorId(0)));
        }
        let mapping = self.inner.map_task(task, context);
        TaskMapping { processor: ProcessorId(0), pinned: true, validity: self.validity, ..mapping }
    }
}

#[test]
fn a_mapper_sees_how_many_tasks_a_processor_has() {
    for validity in [Validity::Once, Validity::WhileUnchanged] {
        let ((has_begun, begun), (end, may_end)) = (channel(), channel());
        let mapper = Crowding { inner: DefaultMapper::new(), validity, loads: Arc::default() };
        let runtime = Runtime::builder().machine(Machine::uniform(2, 1 << 20)).tracing(false);
        let runtime = runtime.mapper(mapper.clone()).build().unwrap();
        let gate = Arc::new(Gate { has_begun, may_end: Mutex::new(may_end) });
        runtime
            .run(async |cx| {
                let cells = cx.region::<Cell>(64)?;
                let pieces = cells.partition(64).equal()?;
                let occupied = cx.launch(occupy(Arc::clone(&gate)));
                begun.recv().unwrap();
                let added = cx.index_launch(64, add(&pieces));
                cx.mapping_fence().await?;
                end.send(()).unwrap();
                occupied.await?;
                added.await?;
                // All have ended.
                cx.launch(sum(&cells)).await.map(drop)
            })
            .unwrap();
        let loads = mapper.loads.lock().unwrap();
        match validity {
            // The points one after the other, behind the one that occupies it; and one on a processor that has nothing.
            Validity::Once => assert_eq!(*loads, (1..=64).chain([0]).collect::<Vec<_>>()),
            Validity::WhileUnchanged => assert!(loads.iter().all(|&load| load == 0), "{loads:?}"),
        }
    }
}
