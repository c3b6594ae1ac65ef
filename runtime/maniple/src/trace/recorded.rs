//! Replays on record: every node of every run is an operation, behind those that the graph makes it wait for.
//!
//! The nodes that a node waits for are read from the compiled graph, and not from its source: the check of a record
//! shall tell whether the graph keeps what interferes in order. Besides, all nodes come after the operations that had
//! ended before the replay began, and the nodes of a launch after the results that it takes; and when the replay ends,
//! all of it has ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use maniple_realm::graph::{Edge, Predecessors};
use maniple_realm::locks::Mutex;
use maniple_realm::{Event, Realm};
use maniple_record::{Because, Kind, Launch, LaunchNumber, OperationNumber, Place};
use maniple_region::Provenance;

use super::node_record::NodeRecord;
use super::template::{OnRecord, Template};
use super::values::ReplayValues;
use crate::context::{ContextState, FillNumbers};
use crate::launch::recording::recording::FillTape;
use crate::results::Input;
use crate::support::recorder::Recorder;

/// A replay on record.
pub(super) struct Recorded {
    recorder: Arc<Recorder>,
    /// The task that launches.
    task: OperationNumber,
    /// The launch that stands for the beginning of the replay.
    fence: Option<LaunchNumber>,
    predecessors: Vec<Predecessors>,
    runs: Mutex<Runs>,
}

/// The records of the latest two runs.
#[derive(Default)]
struct Runs {
    current: RecordedRun,
    before: RecordedRun,
    /// All launches so far.
    launched: Vec<LaunchNumber>,
    /// All nodes that none came after so far.
    last: BTreeSet<OperationNumber>,
    values: ReplayValues,
}

#[derive(Default)]
struct RecordedRun {
    launches: Vec<LaunchNumber>,
    nodes: Vec<OperationNumber>,
}

impl Recorded {
    /// A replay begins, if a record is kept: everything has ended, also the operations that made the values that it
    /// finds.
    pub(super) fn begin(context: &ContextState, template: &Template, fence: Option<LaunchNumber>) -> Option<Self> {
        let (recorder, task) = (context.core.store.recorder.as_ref()?, context.recorded?);
        recorder.stand_still(task, recorder.numbers_of(template.makers()));
        let (recorder, predecessors) = (Arc::clone(recorder), template.graph.predecessors());
        let numbers = template.fills.iter().map(|fill| fill.numbers.clone()).collect();
        let runs = Mutex::new(Runs { values: ReplayValues::begin(template.filled_with(), numbers), ..Runs::default() });
        Some(Self { recorder, task, fence, predecessors, runs })
    }

    /// A fill is replayed, which has a number if it has stood in line.
    pub(super) fn fill(&self, template: &Template, number: usize, launch: Option<LaunchNumber>, realm: &Realm) {
        let FillTape { site, numbers } = &template.fills[number];
        let requirement = &site.bound.requirement;
        let launch = launch.unwrap_or_else(|| {
            let (name, requirements) = (site.name.to_owned(), vec![requirement.clone()]);
            let filled = realm.user_event();
            realm.trigger(filled);
            let fill = Launch { parent: self.task, name, launched: None, points: 1, requirements, after: Vec::new() };
            self.recorder.launch(fill, filled.event())
        });
        self.fence.iter().for_each(|&fence| self.recorder.depends(launch, fence, Because::Fence));
        let runs = &mut *self.runs.lock();
        runs.launched.push(launch);
        for (part, (fields, _)) in site.bound.parts.iter().enumerate().take(numbers.len()) {
            let place = Place { parent: self.task, launch, index: 0 };
            let filled = Kind::FillRegion { place, region: requirement.target.bound(), fields: fields.clone() };
            let operation = self.recorder.push(filled, vec![self.recorder.issued_after(self.task)]);
            self.recorder.mark_replayed(operation);
            runs.values.give(number, part, operation);
        }
    }

    /// All of a run has been issued.
    pub(super) fn end_of_run(&self, template: &Template) {
        if let Some(on_record) = &template.on_record {
            self.runs.lock().values.end_of_run(&on_record.after_a_run);
        }
    }

    /// A launch is about to be replayed.
    pub(super) fn launch(
        &self,
        template: &Template,
        stage: usize,
        launched: Option<&Provenance>,
        completion: Event,
    ) -> LaunchNumber {
        self.recorder.launch(template.stages[stage].site.recorded(self.task, launched), completion)
    }

    /// A stage of the current run is about to be opened, when these results are there; the next run's first stage,
    /// after the last.
    pub(super) fn stage(&self, template: &Template, stage: usize, launch: LaunchNumber, sources: &[Input]) {
        let Some(OnRecord { nodes, .. }) = &template.on_record else { return };
        let results = self.recorder.numbers_of(sources.iter().map(Input::end));
        let runs = &mut *self.runs.lock();
        if stage == 0 {
            std::mem::swap(&mut runs.current, &mut runs.before);
            runs.current.launches.clear();
            runs.current.nodes.clear();
        }
        runs.current.launches.push(launch);
        runs.launched.push(launch);
        self.fence.iter().for_each(|&fence| self.recorder.depends(launch, fence, Because::Fence));
        let first = nodes.partition_point(|node| (node.stage as usize) < stage);
        for (node, record) in (first..).zip(&nodes[first..]).take_while(|(_, node)| node.stage as usize == stage) {
            let Predecessors { same_run, run_before, .. } = &self.predecessors[node];
            // The first run comes after none.
            let run_before = if runs.before.nodes.is_empty() { &[] } else { run_before.as_slice() };
            for (run, edges) in [(&runs.current, same_run.as_slice()), (&runs.before, run_before)] {
                for on in launches(nodes, run, edges).filter(|&on| on != launch) {
                    self.recorder.depends(launch, on, Because::Trace);
                }
            }
            let mut after: Vec<_> = edges(&runs.current, same_run).chain(edges(&runs.before, run_before)).collect();
            for earlier in &after {
                runs.last.remove(earlier);
            }
            if after.is_empty() {
                after.push(self.recorder.issued_after(self.task));
            }
            after.extend(&results);
            let number = self.recorder.push(record.of_launch(self.task, launch, &runs.values), after);
            self.recorder.mark_replayed(number);
            runs.current.nodes.push(number);
            runs.last.insert(number);
        }
    }

    /// All runs have ended. Gives their launches, and what their fills were: see [`ReplayValues::take`].
    pub(super) fn end(&self) -> (Vec<LaunchNumber>, [Vec<FillNumbers>; 2]) {
        let runs = std::mem::take(&mut *self.runs.lock());
        self.recorder.stand_still(self.task, runs.last.into_iter().collect());
        (runs.launched, runs.values.take())
    }
}

fn edges<'a>(run: &'a RecordedRun, edges: &'a [Edge]) -> impl Iterator<Item = OperationNumber> + 'a {
    edges.iter().map(|edge| run.nodes[edge.node as usize])
}

/// The launches that nodes of a run belong to.
fn launches<'a>(
    nodes: &'a [NodeRecord],
    run: &'a RecordedRun,
    edges: &'a [Edge],
) -> impl Iterator<Item = LaunchNumber> + 'a {
    edges.iter().map(|edge| run.launches[nodes[edge.node as usize].stage as usize])
}
