//! Programs that once went wrong: found by random programs, shrunk, and kept.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use maniple::mapper::{
    DefaultMapper, InstanceChoice, Mapper, MappingContext, RequirementMapping, TaskInfo, TaskMapping,
};
use maniple::{MemoryId, ProcessorId, Rect, Runtime};
use maniple_tests::execute::{Run, run_program};
use maniple_tests::oracle::World;
use maniple_tests::program::{
    Action, Block, Body, FieldsName, FutureName, Launch, Node, Program, RegionName, Right, Site, SpaceName, Statement,
    Target, TraceName, Use,
};
use maniple_tests::value::{Kind, Operator};

/// The only space, fields and region of all programs here.
const ROWS: SpaceName = SpaceName(1);
const FIELDS: FieldsName = FieldsName(1);
const REGION: RegionName = RegionName(1);

/// A program: a region of one field, and then some actions.
fn program(actions: Vec<Action>) -> Program {
    let foundations = [
        Action::CreateSpace(ROWS, vec![Rect::<1>::from(0..6).into()]),
        Action::CreateFields(FIELDS, vec![Kind::Long], 1),
        Action::CreateRegion(REGION, ROWS, FIELDS),
    ];
    Program { seed: 0, body: block(100, foundations.into_iter().chain(actions)) }
}

fn block(first: u32, actions: impl IntoIterator<Item = Action>) -> Block {
    let statements = (first..).zip(actions).map(|(id, action)| Statement::new(id, action));
    Block(statements.collect())
}

/// A launch of one task that uses the whole region by some privileges.
fn launch(name: u32, rights: &[Right], body: Body) -> Action {
    let whole = |&right: &Right| Use { region: REGION, target: Target::Node(Node::Root(ROWS)), fields: vec![0], right };
    let requirements = rights.iter().map(whole).collect();
    let name = FutureName(name);
    Action::Launch(Arc::new(Launch { name, domain: None, requirements, arguments: Vec::new(), body, fault: None }))
}

fn nesting(first: u32, actions: Vec<Action>) -> Body {
    Body::Blocks { inner: false, blocks: vec![block(first, actions)] }
}

/// Runs a program. One that hangs is left behind after a minute: it ends within milliseconds, if ever.
fn equals_the_oracle(program: Program, workers: usize, mapper: impl Mapper + Clone + 'static) {
    let (expected, fate) = World::run(&program.body).unwrap();
    let run = Arc::new(Run::new(program, expected, fate));
    let (sender, receiver) = mpsc::channel();
    let watched = Arc::clone(&run);
    std::thread::spawn(move || {
        let runtime = Runtime::builder().workers(workers).mapper(mapper).build().unwrap();
        run_program(&watched, &runtime);
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(60)).expect("the program hangs");
    assert!(run.deviations().is_empty(), "{:?}", run.deviations());
}

/// Maps one of two requirements virtually, and everything else into one memory: reductions into buffers, and into those
/// that exist.
#[derive(Clone)]
struct HalfVirtual {
    which: usize,
    default: DefaultMapper,
}

impl Mapper for HalfVirtual {
    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mut mapping = self.default.map_task(task, context);
        mapping.requirements.fill(InstanceChoice::in_memory(MemoryId(0)).into());
        if let [_, _] = mapping.requirements[..] {
            mapping.requirements[self.which] = RequirementMapping::Virtual;
        }
        mapping
    }
}

/// The child found the buffer that its parent held through the other requirement, and waited for its parent, which
/// waited for it.
#[test]
fn a_child_does_not_wait_for_the_buffer_of_its_own_parent() {
    for which in 0..2 {
        let sum = Right::Reduce(Operator::Sum);
        let child = launch(2, &[sum], Body::Leaf);
        let parent = launch(1, &[sum, sum], nesting(200, vec![child]));
        let mapper = HalfVirtual { which, default: DefaultMapper::new() };
        equals_the_oracle(program(vec![parent, Action::Wait(FutureName(1))]), 1, mapper);
    }
}

/// Maps all requirements of tasks that launch virtually, and has another worker run them than the one that maps them,
/// mostly.
#[derive(Clone)]
struct Virtual(DefaultMapper);

impl Mapper for Virtual {
    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mut mapping = self.0.map_task(task, context);
        if !task.variants[mapping.variant].is_leaf {
            mapping.requirements.fill(RequirementMapping::Virtual);
            mapping.processor = ProcessorId(3);
        }
        mapping
    }
}

/// A task that launches nothing was over before the recording of its trace was told that it might have launched
/// something. So the recording became a template without the task, and no replay ran it any more.
#[test]
fn a_task_that_might_launch_is_in_no_template_however_soon_it_ends() {
    for _ in 0..100 {
        let turn = |turn: u32| {
            let ids = 100 * turn..;
            let actions =
                [launch(10 * turn, &[], Body::Leaf), launch(10 * turn + 1, &[Right::Write], nesting(0, vec![]))];
            let statements = ids.zip(1..).zip(actions);
            let at = |((id, site), action)| Statement { site: Site(site), ..Statement::new(id, action) };
            let traced = Action::Traced(TraceName(1), Block(statements.map(at).collect()));
            Block(vec![Statement { site: Site(3), ..Statement::new(100 * turn + 50, traced) }])
        };
        let waits = (1..5).map(|turn| Action::Wait(FutureName(10 * turn + 1)));
        let actions = std::iter::once(Action::Repeat((1..5).map(turn).collect())).chain(waits);
        let mut program = program(actions.collect());
        // The numbers of the turns are taken.
        for (number, statement) in program.body.0.iter_mut().enumerate() {
            *statement = Statement::new(1000 + number as u32, statement.action.clone());
        }
        equals_the_oracle(program, 4, Virtual(DefaultMapper::new()));
    }
}
