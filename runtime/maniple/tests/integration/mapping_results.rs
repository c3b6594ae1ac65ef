//! What mappers hear of their answers, and of the loads of processors.

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

/// What was heard of a task: its name, and of each requirement how many instances there are, how many of them are new, and how many fields they held.
type Heard = (String, Vec<(usize, usize, usize)>);

#[derive(Clone)]
struct Listening {
    inner: DefaultMapper,
    validity: Validity,
    heard: Arc<Mutex<Vec<Heard>>>,
    waiting: Arc<Mutex<Vec<usize>>>,
}

impl Listening {
    fn new(validity: Validity) -> Self {
        Self { inner: DefaultMapper::new(), validity, heard: Arc::default(), waiting: Arc::default() }
    }
}

impl Mapper for Listening {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        self.waiting.lock().unwrap().push(context.waiting(ProcessorId(0)));
        // A processor that there is not.
        assert_eq!(context.waiting(ProcessorId(99)), 0);
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
    let (heard, asked) = (mapper.heard.lock().unwrap().len(), mapper.waiting.lock().unwrap().len());
    assert!(heard == asked && heard < 10, "{heard} {asked}");
}

/// Puts everything on the first processor, which others may not help, and says what it sees when it is asked about the last point.
#[derive(Clone)]
struct Crowding {
    inner: DefaultMapper,
    last: Sender<usize>,
}

impl Mapper for Crowding {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        if task.point[0] == 63 {
            self.last.send(context.waiting(ProcessorId(0))).unwrap();
        }
        TaskMapping { processor: ProcessorId(0), pinned: true, ..self.inner.map_task(task, context) }
    }
}

#[test]
fn a_mapper_sees_that_tasks_wait_for_a_processor() {
    let ((last, seen), (has_begun, begun), (end, may_end)) = (channel(), channel(), channel());
    let mapper = Crowding { inner: DefaultMapper::new(), last };
    let runtime = Runtime::builder().machine(Machine::uniform(2, 1 << 20)).mapper(mapper).build().unwrap();
    let gate = Arc::new(Gate { has_begun, may_end: Mutex::new(may_end) });
    runtime
        .run(async |cx| {
            let cells = cx.region::<Cell>(64)?;
            let pieces = cells.partition(64).equal()?;
            let occupied = cx.launch(occupy(Arc::clone(&gate)));
            begun.recv().unwrap();
            let added = cx.index_launch(64, add(&pieces));
            // One of them waits for each that was mapped before.
            let waiting = seen.recv().unwrap();
            end.send(()).unwrap();
            assert!((60..=64).contains(&waiting), "{waiting}");
            occupied.await?;
            added.await
        })
        .unwrap();
}
