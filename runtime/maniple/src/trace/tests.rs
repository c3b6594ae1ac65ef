//! Whether a record of replays says anything about the graph that runs: of a graph that lacks an edge, the checker must
//! find that. And what a template counts on is there from the moment at which it was seen to be there.

use std::sync::Arc;

use maniple_mapper::DefaultMapper;
use maniple_realm::graph::{Graph, GraphSpec, NodeSpec};
use maniple_realm::machine::ProcessorId;
use maniple_record::{Record, Violation, check};
use maniple_region::{FieldId, FieldMask, FieldType, Privilege, Requirement, Target};
use maniple_space::{AnySpace, IndexSpace, Rect};

use super::template::Template;
use super::trace::TraceId;
use crate::launch::recording::content::Fit;
use crate::task::{TaskDefinition, TaskOptions, Value};
use crate::{Context, IntoTarget, Partition, Region, Result, Runtime, TaskLauncher};

const OLD: FieldId = FieldId(0);
const NEW: FieldId = FieldId(1);

/// Two tasks in turn, over tiles of a region: one sees old values around its tile and makes new ones, the other makes
/// these the old ones. They do nothing: what they are made to wait for is the same.
struct Steps {
    look: Arc<TaskDefinition>,
    keep: Arc<TaskDefinition>,
    tiles: Partition<()>,
    /// The data that `look` reads: around each tile, or everywhere.
    seen: Target,
}

impl Steps {
    fn new(cx: &Context, sees_all: bool) -> Result<Self> {
        let rows = cx.index_space(&AnySpace::from(IndexSpace::from(Rect::<1>::from(0..24))));
        let fields = cx.field_space(2);
        fields.allocate("old", FieldType::of::<i64>())?;
        fields.allocate("new", FieldType::of::<i64>())?;
        let all = Region::<()>::try_from_logical(cx.logical_region(&rows, &fields)?)?;
        let seen = if sees_all { (&all).into_target() } else { (&all.tiles([4], [1])?).into_target() };
        let task = |name| Arc::new(TaskDefinition::new(name).leaf(TaskOptions::default(), |_| Ok(Value::new(()))));
        Ok(Self { look: task("look"), keep: task("keep"), tiles: all.blocks([4])?, seen })
    }

    fn step(&self, cx: &Context) {
        self.launch(cx, 2);
    }

    /// The first of the two, or both.
    fn launch(&self, cx: &Context, tasks: usize) {
        let tiles = || (&self.tiles).into_target();
        let launches = [
            (&self.look, [(self.seen.clone(), OLD, Privilege::Read), (tiles(), NEW, Privilege::Discard)]),
            (&self.keep, [(tiles(), NEW, Privilege::Read), (tiles(), OLD, Privilege::Discard)]),
        ];
        for (task, uses) in launches.into_iter().take(tasks) {
            let requirements = uses.map(|(of, field, how)| Requirement::new(of, FieldMask::of(field), how));
            let launcher = requirements.into_iter().fold(TaskLauncher::new(task), TaskLauncher::requirement);
            cx.index_launch(self.tiles.colors(), launcher.typed::<()>());
        }
    }
}

/// Records some steps of which the later ones are replayed, by a template that `change` has been at.
fn record(mapper: DefaultMapper, sees_all: bool, change: impl FnOnce(&mut Template)) -> Record {
    // One worker runs nodes in program order, whatever the graph says: only the record is to be wrong.
    let runtime = Runtime::builder().workers(1).mapper(mapper).record_operations(true).build();
    let runtime = runtime.expect("there is a thread");
    let run = runtime.run(async |cx| {
        let steps = Steps::new(cx, sees_all)?;
        // The first makes instances, the second is recorded.
        (0..2).for_each(|_| cx.trace("step", |cx| steps.step(cx)));
        cx.execution_fence().await?;
        let (trace, _) = cx.state.tracing().book.get(TraceId::Named("step"));
        let mut template = trace.lock().templates.pop().expect("a step was recorded");
        change(Arc::get_mut(&mut template).expect("nothing replays it yet"));
        trace.lock().templates.push(template);
        (0..3).for_each(|_| cx.trace("step", |cx| steps.step(cx)));
        Ok(())
    });
    run.expect("nothing fails");
    assert_eq!(runtime.statistics().replays, 3);
    runtime.take_record()
}

/// Takes an edge out of a template's graph, if it has so many: first come those within a run, then those from one to
/// the next.
fn drop_edge(template: &mut Template, mut edge: usize) -> bool {
    let records = template.on_record.iter().flat_map(|on_record| &on_record.nodes);
    let nodes = template.graph.predecessors().into_iter().zip(records).map(|(predecessors, record)| NodeSpec {
        stage: record.stage,
        home: ProcessorId(0),
        pinned: false,
        others: Vec::new(),
        takes: false,
        after: predecessors.same_run,
        after_previous: predecessors.run_before,
    });
    let mut nodes: Vec<NodeSpec> = nodes.collect();
    let (within, between): (Vec<_>, Vec<_>) =
        nodes.iter_mut().map(|node| (&mut node.after, &mut node.after_previous)).unzip();
    for edges in within.into_iter().chain(between) {
        if edge < edges.len() {
            edges.remove(edge);
            let spec = GraphSpec { stages: template.stages.len() as u32, nodes };
            template.graph = Arc::new(Graph::new(&spec, &[ProcessorId(0)]));
            return true;
        }
        edge -= edges.len();
    }
    false
}

/// Checks the records of a program's replays by its own graph, and by the same without each of its edges.
fn check_edges(mapper: DefaultMapper, sees_all: bool) {
    assert_eq!(check(&record(mapper, sees_all, |_| {})).err(), None);
    for edge in 0.. {
        let mut is_there = false;
        let record = record(mapper, sees_all, |template| is_there = drop_edge(template, edge));
        if !is_there {
            assert!(edge > 20, "the graph had {edge} edges");
            break;
        }
        let verdict = check(&record);
        assert!(matches!(verdict, Err(Violation::Unordered { .. })), "edge {edge}: {verdict:?}");
    }
}

#[test]
fn a_graph_that_lacks_an_edge_between_tasks_is_found_out() {
    check_edges(DefaultMapper::new(), false);
}

#[test]
fn a_graph_that_lacks_an_edge_to_a_copy_is_found_out() {
    check_edges(DefaultMapper::piecewise(), true);
}

#[test]
fn a_graph_that_lacks_an_edge_at_a_junction_is_found_out() {
    check_edges(DefaultMapper::new(), true);
}

#[test]
fn nothing_that_a_template_counts_on_is_given_up_from_the_moment_at_which_it_was_seen_to_be_there() {
    let runtime = Runtime::builder().workers(1).mapper(DefaultMapper::piecewise()).build().expect("there is a thread");
    let run = runtime.run(async |cx| {
        let steps = Steps::new(cx, true)?;
        // All tasks look at one copy of what is in pieces.
        steps.step(cx);
        (0..2).for_each(|_| cx.trace("step", |cx| steps.launch(cx, 1)));
        cx.execution_fence().await?;
        let (trace, _) = cx.state.tracing().book.get(TraceId::Named("step"));
        let template = trace.lock().templates.pop().expect("a step was recorded");
        let store = &cx.state.core.store;
        // As a search for room does.
        let give_up = || {
            for stage in &template.stages {
                for (bound, region) in
                    stage.points.iter().flat_map(|at| stage.site.bounds.iter().zip(&at.mapped.physical))
                {
                    let mut data = bound.parts[0].1.lock();
                    region.instances().for_each(|instance| _ = data.give_up(instance, store));
                }
            }
        };
        assert_eq!(template.take_up(&store.realm), Fit::Yes);
        give_up();
        assert_eq!(template.take_up(&store.realm), Fit::Yes);
        template.release();
        give_up();
        assert_eq!(template.take_up(&store.realm), Fit::No);
        Ok(())
    });
    run.expect("nothing fails");
}
