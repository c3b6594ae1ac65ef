//! Keeps a record of what is launched and issued, if that is wanted.
//!
//! Operations are numbered, and name the operations that they came after by number. The numbers are found from events:
//! the code that records an operation says which event is its [end](Recorder::ends_with), and the code that waits for
//! events asks for their [numbers](Recorder::numbers_of). An operation that waits for no events, because it was given
//! its place in a graph beforehand, is [pushed](Recorder::push) with the numbers.
//!
//! Some order is enforced without events: before a trace is replayed, and after it, everything has ended. Such a
//! [standstill](Recorder::stand_still) of a task is an operation too, after which comes all that the task issues from
//! then on.
//!
//! Two things make an event useless for that: it may never come to be, since merging events that have all triggered
//! gives none; and it may be forgotten once it has triggered. So while a record is kept, events that stand for several
//! others get a handle of their own ([`Store::merged`]), and ended uses are not forgotten ([`Store::prunes`]).
//!
//! [`Store::merged`]: crate::instances::store::Store::merged
//! [`Store::prunes`]: crate::instances::store::Store::prunes

use std::collections::BTreeSet;

use maniple_mapper::InstanceId;
use maniple_realm::locks::Mutex;
use maniple_realm::{After, Event, Realm};
use maniple_record::{
    Because, Dependence, Instance, Kind, Launch, LaunchNumber, Operation, OperationNumber, Place, Record, Task,
};
use maniple_region::LogicalRegion;
use rustc_hash::FxHashMap;

/// A record in the making.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Recording>);

#[derive(Default)]
struct Recording {
    record: Record,
    ends: FxHashMap<Event, End>,
    /// For each task that launches, the number of its end.
    ends_of_tasks: FxHashMap<OperationNumber, OperationNumber>,
    /// Tasks that launch, and have not ended.
    under_way: BTreeSet<OperationNumber>,
    /// For each task that has come to a standstill, the latest one.
    standstills: FxHashMap<OperationNumber, OperationNumber>,
    /// For each launch, the ends of its points so far.
    points: FxHashMap<LaunchNumber, Vec<OperationNumber>>,
    /// The ends of launches of several points, where they were asked for.
    joined: FxHashMap<LaunchNumber, OperationNumber>,
    /// The end of each trace, by its beginning.
    ends_of_traces: FxHashMap<LaunchNumber, LaunchNumber>,
    /// Joins of launches that may not have been mapped yet.
    open_joins: Vec<(OperationNumber, Vec<End>)>,
}

/// The operation or launch that ends with an event.
#[derive(Clone, Copy)]
enum End {
    Operation(OperationNumber),
    /// All points of a launch.
    Launch(LaunchNumber),
}

impl Recorder {
    /// Records a launch, whose end is an event.
    pub(crate) fn launch(&self, launch: Launch, completion: Event) -> LaunchNumber {
        let mut recording = self.0.lock();
        let number = recording.record.next_launch();
        recording.record.launches.push(launch);
        recording.ends.insert(completion, End::Launch(number));
        number
    }

    /// Records something that is no launch of the program's, and stands for a moment after some launches of a task and
    /// before others.
    pub(crate) fn fence(
        &self,
        parent: OperationNumber,
        name: &str,
        after: impl IntoIterator<Item = LaunchNumber>,
    ) -> LaunchNumber {
        let after = after.into_iter().map(|on| Dependence { on, because: Because::Fence }).collect();
        let record = &mut self.0.lock().record;
        let number = record.next_launch();
        let (name, launched, requirements) = (name.to_owned(), None, Vec::new());
        record.launches.push(Launch { parent, name, launched, points: 1, requirements, after });
        number
    }

    /// Records where the launches of a task end that are traced since this one. What comes after the trace depends on
    /// that.
    pub(crate) fn end_trace(&self, parent: OperationNumber, beginning: LaunchNumber) {
        let end = self.fence(parent, "end of trace", []);
        self.0.lock().ends_of_traces.insert(beginning, end);
    }

    /// The end of the trace that begins with a launch; the launch itself if it begins none.
    pub(crate) fn end_of_trace(&self, launch: LaunchNumber) -> LaunchNumber {
        self.0.lock().ends_of_traces.get(&launch).copied().unwrap_or(launch)
    }

    /// Records that a launch is mapped after another one.
    pub(crate) fn depends(&self, launch: LaunchNumber, on: LaunchNumber, because: Because) {
        let mut recording = self.0.lock();
        let index = launch.0.checked_sub(recording.record.first_launch.0);
        let after = index.and_then(|index| recording.record.launches.get_mut(index as usize));
        let (dependence, after) = (Dependence { on, because }, after.map(|launch| &mut launch.after));
        if let Some(after) = after.filter(|after| !after.contains(&dependence)) {
            after.push(dependence);
        }
    }

    /// Records that everything has ended that a task had issued, and these: all that it issues from now on comes after.
    pub(crate) fn stand_still(&self, task: OperationNumber, mut after: Vec<OperationNumber>) {
        let mut recording = self.0.lock();
        after.push(recording.issued_after(task));
        let standstill = recording.append(Kind::Join, after);
        recording.standstills.insert(task, standstill);
    }

    /// Records that a task has ended, with all that it issued, before its parent issues anything that uses what it
    /// leaves behind.
    pub(crate) fn return_to(&self, parent: OperationNumber, task: OperationNumber) {
        let end = self.0.lock().end_of(task);
        self.stand_still(parent, vec![end]);
    }

    /// Says that a task that launches has ended, with all that it launched.
    pub(crate) fn has_ended(&self, task: OperationNumber) {
        self.0.lock().under_way.remove(&task);
    }

    /// The operation that all operations follow which a task issues now: its beginning, or its latest standstill.
    pub(crate) fn issued_after(&self, task: OperationNumber) -> OperationNumber {
        self.0.lock().issued_after(task)
    }

    /// Says that an operation was replayed.
    pub(crate) fn mark_replayed(&self, operation: OperationNumber) {
        self.0.lock().record.replayed.insert(operation);
    }

    /// The kind of the operation that ends with an event, unless its record was taken.
    pub(crate) fn ending_with(&self, event: Event) -> Option<Kind> {
        let recording = self.0.lock();
        let &End::Operation(number) = recording.ends.get(&event)? else { return None };
        Some(recording.record.operation(number)?.kind.clone())
    }

    /// Records an operation. A task that launches also gets an [end](Kind::End), which comes after it and all that it
    /// launches.
    pub(crate) fn push(&self, kind: Kind, after: Vec<OperationNumber>) -> OperationNumber {
        self.0.lock().push(kind, after)
    }

    /// Says that an event is the end of an operation; of a task that launches, the end of all.
    pub(crate) fn ends_with(&self, operation: OperationNumber, event: Event) {
        let mut recording = self.0.lock();
        let end = recording.end_of(operation);
        recording.ends.insert(event, End::Operation(end));
    }

    /// The numbers of the operations whose ends these events are. Events that are the end of nothing recorded have
    /// none: memory that comes free, and what has failed without having begun.
    pub(crate) fn numbers_of(&self, events: impl IntoIterator<Item = Event>) -> Vec<OperationNumber> {
        let mut recording = self.0.lock();
        let mut numbers = Vec::new();
        for event in events {
            if let Some(&end) = recording.ends.get(&event) {
                recording.resolve(end, &mut numbers);
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Records that an event comes after others, whose launches may not have been mapped yet.
    pub(crate) fn joins(&self, event: Event, of: impl IntoIterator<Item = Event>) -> OperationNumber {
        let mut recording = self.0.lock();
        let ends = of.into_iter().filter_map(|event| recording.ends.get(&event).copied()).collect();
        let number = recording.push(Kind::Join, Vec::new());
        recording.open_joins.push((number, ends));
        recording.ends.insert(event, End::Operation(number));
        number
    }

    /// An event that comes after all of some others, with a handle of its own.
    pub(crate) fn merged(&self, realm: &Realm, after: After<'_>) -> Event {
        let own = own_handle(realm, realm.merge(after));
        self.joins(own, after.needs.iter().chain(after.follows).copied());
        own
    }

    /// Says what the end of a task that launches comes after, besides what it launched.
    pub(crate) fn ends_after(&self, task: OperationNumber, events: impl IntoIterator<Item = Event>) {
        let after = self.numbers_of(events);
        let mut recording = self.0.lock();
        let end = recording.end_of(task);
        recording.come_before(end, after);
    }

    /// The region that an instance was made for.
    pub(crate) fn region_of(&self, id: InstanceId) -> Option<LogicalRegion> {
        Some(self.0.lock().record.instances.get(&id)?.region.clone())
    }

    /// Records an instance.
    pub(crate) fn instance(&self, id: InstanceId, instance: Instance) {
        self.0.lock().record.instances.insert(id, instance);
    }

    /// The record so far. What comes later makes another one.
    pub(crate) fn take(&self) -> Record {
        let mut recording = self.0.lock();
        for (join, ends) in std::mem::take(&mut recording.open_joins) {
            let mut after = Vec::new();
            ends.into_iter().for_each(|end| recording.resolve(end, &mut after));
            after.sort_unstable();
            after.dedup();
            recording.come_before(join, after);
        }
        let record = &recording.record;
        let next = Record {
            first_launch: record.next_launch(),
            first_operation: record.next_operation(),
            // What they did before will be missing from it.
            unfinished: recording.under_way.clone(),
            instances: record.instances.clone(),
            ..Record::default()
        };
        let mut record = std::mem::replace(&mut recording.record, next);
        record.unfinished.extend(&recording.under_way);
        record
    }
}

impl Recording {
    fn push(&mut self, kind: Kind, after: Vec<OperationNumber>) -> OperationNumber {
        let (place, launches) = (kind.place(), launches(&kind));
        let has_end = !matches!(kind, Kind::FillRegion { .. } | Kind::Lost { .. });
        let number = self.append(kind, after);
        if launches {
            let end = self.append(Kind::End { task: number }, vec![number]);
            self.ends_of_tasks.insert(number, end);
            self.under_way.insert(number);
        }
        if let Some(Place { parent, launch, .. }) = place.filter(|_| has_end) {
            let end = self.end_of(number);
            self.points.entry(launch).or_default().push(end);
            if let Some(&end_of_parent) = self.ends_of_tasks.get(&parent) {
                self.come_before(end_of_parent, [end]);
            }
        }
        number
    }

    fn append(&mut self, kind: Kind, after: Vec<OperationNumber>) -> OperationNumber {
        let number = self.record.next_operation();
        self.record.operations.push(Operation { kind, after });
        number
    }

    fn issued_after(&self, task: OperationNumber) -> OperationNumber {
        self.standstills.get(&task).copied().unwrap_or(task)
    }

    fn end_of(&self, operation: OperationNumber) -> OperationNumber {
        self.ends_of_tasks.get(&operation).copied().unwrap_or(operation)
    }

    /// Adds to what an operation comes after, unless it was taken with an earlier record.
    fn come_before(&mut self, later: OperationNumber, earlier: impl IntoIterator<Item = OperationNumber>) {
        let index = later.0.checked_sub(self.record.first_operation.0);
        if let Some(later) = index.and_then(|index| self.record.operations.get_mut(index as usize)) {
            later.after.extend(earlier);
        }
    }

    /// Adds the number of an end. An operation that waits for the end of a launch has been mapped after it, so all
    /// points of the launch are known; if they are many, they are joined.
    fn resolve(&mut self, end: End, numbers: &mut Vec<OperationNumber>) {
        let launch = match end {
            End::Operation(number) => return numbers.push(number),
            End::Launch(launch) => launch,
        };
        match (self.joined.get(&launch), self.points.get(&launch).map(Vec::as_slice)) {
            (Some(join), _) => numbers.push(*join),
            (None, Some([only])) => numbers.push(*only),
            (None, Some(points)) => {
                let points = points.to_vec();
                let join = self.append(Kind::Join, points);
                self.joined.insert(launch, join);
                numbers.push(join);
            }
            // It is no more than its place in program order, or has no points.
            (None, None) => {}
        }
    }
}

/// An event that triggers with another one, and that has no other use.
pub(crate) fn own_handle(realm: &Realm, event: Event) -> Event {
    let own = realm.user_event();
    realm.trigger_after(own, &event);
    own.event()
}

fn launches(kind: &Kind) -> bool {
    matches!(kind, Kind::TopLevel | Kind::Task(Task { is_leaf: false, .. }))
}
