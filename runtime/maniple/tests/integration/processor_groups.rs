//! Groups of processors, of which the first that is free runs a task.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use maniple::machine::{Affinity, MemoryKind, NodeId, ProcessorKind};
use maniple::mapper::{DefaultMapper, Mapper, MappingContext, TaskInfo, TaskMapping, TaskProfile};
use maniple::prelude::*;
use maniple::{Error, Machine, ProcessorId};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] += 1);
}

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

/// Has `add` run by a group, and anything else by a processor alone.
#[derive(Clone)]
struct Grouping {
    inner: DefaultMapper,
    group: Vec<ProcessorId>,
    /// The processor of all tasks.
    processor: ProcessorId,
    /// Each task gets a group of other processors.
    differs: bool,
    ran_on: Arc<Mutex<Vec<ProcessorId>>>,
}

impl Grouping {
    fn of(group: &[u32], processor: u32) -> Self {
        let group = group.iter().copied().map(ProcessorId).collect();
        let (inner, processor) = (DefaultMapper::new(), ProcessorId(processor));
        Self { inner, group, processor, differs: false, ran_on: Arc::default() }
    }

    fn ran_on(&self) -> BTreeSet<u32> {
        self.ran_on.lock().unwrap().iter().map(|processor| processor.0).collect()
    }
}

impl Mapper for Grouping {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let (processor, mapping) = (self.processor, self.inner.map_task(task, context));
        if task.name != "add" {
            return TaskMapping { processor, pinned: true, ..mapping };
        }
        let mut group = self.group.clone();
        if self.differs {
            let bits = task.index() + 1;
            group = (0..32).filter(|bit| bits >> bit & 1 != 0).map(ProcessorId).collect();
        }
        TaskMapping { processor: if self.differs { group[0] } else { processor }, group, profile: true, ..mapping }
    }

    fn task_profiled(&mut self, _task: &str, profile: &TaskProfile) {
        self.ran_on.lock().unwrap().push(profile.processor);
    }
}

fn run<T>(machine: Machine, mapper: &Grouping, program: impl AsyncFnOnce(&Context) -> Result<T>) -> Result<T> {
    Runtime::builder().machine(machine).mapper(mapper.clone()).build().unwrap().run(program)
}

/// Adds to 64 pieces, over and over.
async fn additions(cx: &Context, times: i64) -> Result<()> {
    let cells = cx.region::<Cell>(128)?;
    let pieces = cells.partition(64).equal()?;
    for _ in 0..times {
        cx.trace("step", |cx| cx.index_launch(64, add(&pieces)));
    }
    assert_eq!(cx.map_read(&cells, Cell::value).await?.to_vec(), [times; 128]);
    Ok(())
}

#[test]
fn tasks_run_on_members_of_their_group_and_on_no_other() {
    for group in [&[2][..], &[1, 3], &[3, 2, 0], &[0, 1, 2, 3]] {
        let mapper = Grouping::of(group, group[0]);
        run(Machine::uniform(4, 1 << 20), &mapper, async |cx| additions(cx, 12).await).unwrap();
        let (ran_on, group) = (mapper.ran_on(), group.iter().copied().collect());
        assert!(!ran_on.is_empty() && ran_on.is_subset(&group), "{ran_on:?} of {group:?}");
    }
}

#[test]
fn replays_deal_points_to_all_members_of_their_group_and_to_no_other() {
    for group in [&[2, 1][..], &[1, 3], &[3, 2, 0], &[3]] {
        let mapper = Grouping::of(group, group[0]);
        let builder = Runtime::builder().machine(Machine::uniform(4, 1 << 20)).mapper(mapper.clone());
        let runtime = builder.build().unwrap();
        runtime
            .run(async |cx| {
                let cells = cx.region::<Cell>(128)?;
                let pieces = cells.partition(64).equal()?;
                let step = |cx: &Context| cx.index_launch(64, add(&pieces));
                for _ in 0..8 {
                    cx.trace("step", step);
                }
                cx.execution_fence().await?;
                mapper.ran_on.lock().unwrap().clear();
                // From here on each step is a replay. A free worker may take all points of a member that is slow to
                // wake up, but not again and again.
                let (mut times, members) = (8, group.iter().copied().collect());
                while mapper.ran_on() != members && times < 8000 {
                    (0..40).for_each(|_| _ = cx.trace("step", step));
                    cx.execution_fence().await?;
                    times += 40;
                }
                assert_eq!(mapper.ran_on(), members);
                assert_eq!(cx.map_read(&cells, Cell::value).await?.to_vec(), [times; 128]);
                assert!(runtime.statistics().replays as i64 >= times - 8, "{:?}", runtime.statistics());
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn a_task_of_a_group_does_not_wait_for_its_processor_if_another_is_free() {
    let ((has_begun, begun), (end, may_end)) = (channel(), channel());
    let gate = Arc::new(Gate { has_begun, may_end: Mutex::new(may_end) });
    let mapper = Grouping::of(&[1, 2], 1);
    let outcome = run(Machine::uniform(3, 1 << 20), &mapper, async |cx| {
        let occupied = cx.launch(occupy(gate));
        begun.recv().unwrap();
        // Their processor is occupied. A trace would wait for what was launched before.
        let cells = cx.region::<Cell>(128)?;
        cx.index_launch(64, add(&cells.partition(64).equal()?)).all().await?;
        end.send(()).unwrap();
        occupied.await
    });
    outcome.unwrap();
    assert_eq!(mapper.ran_on(), BTreeSet::from([2]));
}

/// Two processors that see one memory each, and one in common; then processors of another kind and node, if there is a
/// worker for none of them.
fn unlike() -> Machine {
    let mut machine = Machine::builder();
    let affinity = Affinity { bandwidth_mb_s: 1000, latency_ns: 100 };
    let common = machine.memory(MemoryKind::System, 1 << 20);
    for _ in 0..2 {
        let own = machine.memory(MemoryKind::Socket, 1 << 22);
        let processor = machine.processor(ProcessorKind::Cpu);
        machine.sees(processor, common, affinity);
        machine.sees(processor, own, Affinity { bandwidth_mb_s: 9000, latency_ns: 10 });
    }
    let device = machine.processor(ProcessorKind::Gpu);
    machine.sees(device, common, affinity);
    machine.place(NodeId(1), 0);
    let elsewhere = machine.processor(ProcessorKind::Cpu);
    machine.sees(elsewhere, common, affinity);
    machine.build().unwrap()
}

#[test]
fn processors_that_cannot_run_a_task_in_each_others_place_are_refused() {
    for (group, processor, said) in [
        (&[0, 2][..], 0, "differ in node or kind"),
        (&[0, 3], 0, "differ in node or kind"),
        (&[0, 0], 0, "named twice"),
        (&[0, 9], 0, "is not of this machine"),
        (&[1], 0, "none of the group"),
        // The default mapper puts the data into the memory that the processor sees best.
        (&[0, 1], 0, "does not see"),
    ] {
        let mapper = Grouping::of(group, processor);
        let outcome = run(unlike(), &mapper, async |cx| {
            let cells = cx.region::<Cell>(8)?;
            cx.launch(add(&cells)).await
        });
        match outcome {
            Err(Error::Mapper { call: "map_task", problem, .. }) => {
                assert!(problem.contains("`add`") && problem.contains(said), "{problem}");
            }
            other => panic!("{group:?}: {other:?}"),
        }
    }
}

#[test]
fn a_mapper_that_names_ever_new_groups_is_refused() {
    let mapper = Grouping { differs: true, ..Grouping::of(&[], 0) };
    let outcome = run(Machine::uniform(9, 1 << 20), &mapper, async |cx| {
        let cells = cx.region::<Cell>(511)?;
        let pieces = cells.partition(511).equal()?;
        cx.index_launch(256, add(&pieces)).all().await?;
        assert!(cx.index_launch(256, add(&pieces)).all().await.is_ok(), "they are known");
        match cx.index_launch(511, add(&pieces)).all().await {
            Err(Error::Mapper { problem, .. }) if problem.contains("same groups") => Ok(()),
            other => panic!("{other:?}"),
        }
    });
    outcome.unwrap();
}
