//! The content of the profile of a realm.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use maniple_realm::instance::InstanceKind;
use maniple_realm::layout::{FieldId, FieldSpec, LayoutSpec};
use maniple_realm::machine::{Machine, MemoryId, ProcessorId};
use maniple_realm::operation::with_context;
use maniple_realm::profile::{Completeness, Graph, Kind, OperationId, Profiler, Record, Recording, Tag};
use maniple_realm::transfer::{FillValue, Transfer};
use maniple_realm::{After, Class, Event, Realm, RealmError, Spawn};
use maniple_space::Rect;

#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The profile of what `run` does on a realm with this machine.
fn profile(machine: Machine, run: impl FnOnce(&Realm, &Profiler)) -> Recording {
    let bytes = Bytes::default();
    let profiler = Profiler::writing_to(bytes.clone());
    let realm = Realm::builder().machine(machine).profile(profiler.clone()).build().unwrap();
    run(&realm, &profiler);
    drop(realm);
    profiler.outcome().unwrap();
    let recording = Recording::read_from(&bytes.0.lock().unwrap()[..], Path::new("test")).unwrap();
    assert_eq!(recording.completeness, Completeness::Whole);
    recording
}

fn two_workers(run: impl FnOnce(&Realm, &Profiler)) -> Recording {
    profile(Machine::uniform(2, 1 << 30), run)
}

fn records(recording: &Recording) -> impl Iterator<Item = &Record> {
    recording.threads.iter().flat_map(|thread| &thread.records)
}

/// The operations that an operation came after.
fn before(recording: &Recording, of: Event) -> Vec<OperationId> {
    let lists = records(recording).filter_map(|record| match record {
        Record::After { operation, after } if *operation == of.into() => Some(after),
        _ => None,
    });
    lists.flatten().copied().filter(|operation| !operation.is_none()).collect()
}

/// The spans of an operation: kind, processor, times.
fn spans(recording: &Recording, of: Event) -> Vec<(Kind, Option<u32>, u64, u64)> {
    let of_thread = |thread: &maniple_realm::profile::ThreadRecording| {
        let processor = thread.thread.processor;
        let spans = thread.records.iter().filter_map(move |record| match record {
            Record::Span { tag, operation, start, end } if *operation == of.into() => {
                Some((recording.label(tag.label)?.kind, processor, *start, *end))
            }
            _ => None,
        });
        spans.collect::<Vec<_>>()
    };
    recording.threads.iter().flat_map(of_thread).collect()
}

#[test]
fn an_operation_is_launched_then_ready_then_runs() {
    let mut tasks = Vec::new();
    let mut last = Event::NONE;
    let recording = two_workers(|realm, _| {
        let gate = realm.user_event();
        tasks = (0..50).map(|_| realm.spawn(&gate.event(), || ())).collect();
        last = realm.merge(&tasks);
        realm.trigger(gate);
        realm.wait(last).unwrap();
    });
    for &task in &tasks {
        let launched = records(&recording).find_map(|record| match record {
            Record::Launched { operation, time, .. } if *operation == task.into() => Some(*time),
            _ => None,
        });
        let ready = records(&recording).find_map(|record| match record {
            Record::Ready { operation, time } if *operation == task.into() => Some(*time),
            _ => None,
        });
        let [(Kind::Task, Some(0 | 1), started, ended)] = spans(&recording, task)[..] else {
            panic!("{:?}", spans(&recording, task))
        };
        let (launched, ready) = (launched.unwrap(), ready.unwrap());
        assert!(launched <= ready && ready <= started && started <= ended);
    }
    assert_eq!(before(&recording, last), tasks.iter().map(|&task| task.into()).collect::<Vec<_>>());
}

#[test]
fn what_an_operation_came_after_is_recorded_whether_it_had_happened_or_not() {
    let mut events = [Event::NONE; 8];
    let recording = two_workers(|realm, _| {
        for index in 0..events.len() - 1 {
            events[index] = realm.spawn(Spawn::ANYWHERE, || ());
        }
        realm.wait(realm.merge(&events[..4])).unwrap();
        let after = After { needs: &events[..5], follows: &events[5..7] };
        events[7] = realm.spawn(after, || ());
        realm.wait(events[7]).unwrap();
    });
    let expected: Vec<OperationId> = events[..7].iter().map(|&event| event.into()).collect();
    assert_eq!(before(&recording, events[7]), expected);
}

#[test]
fn an_operation_that_launches_or_triggers_is_named() {
    let (mut outer, mut inner, mut triggered) = (Event::NONE, Event::NONE, Event::NONE);
    let recording = two_workers(|realm, _| {
        let user = realm.user_event();
        let (handle, (sender, receiver)) = (realm.clone(), std::sync::mpsc::channel());
        outer = realm.spawn(Spawn::ANYWHERE, move || {
            sender.send(handle.spawn(Spawn::ANYWHERE, || ())).unwrap();
            handle.trigger(user);
        });
        inner = receiver.recv().unwrap();
        triggered = user.event();
        realm.wait(realm.merge(&[outer, inner])).unwrap();
    });
    let launched = |by: OperationId| {
        records(&recording).any(|record| {
            matches!(record, Record::Launched { operation, by: found, .. } if *operation == inner.into() && *found == by)
        })
    };
    assert!(launched(outer.into()));
    assert!(records(&recording).any(|record| {
        matches!(record, Record::Triggered { event, by, .. } if *event == triggered.into() && *by == outer.into())
    }));
}

#[test]
fn an_async_operation_has_a_span_for_each_poll_and_tells_what_it_awaited() {
    let (mut task, mut awaited) = (Event::NONE, Event::NONE);
    let recording = two_workers(|realm, profiler| {
        let gate = realm.user_event();
        awaited = gate.event();
        let label = profiler.label(Kind::Task, "patient", None);
        task = realm.spawn_async(Spawn { tag: Tag::of(label), ..Spawn::ANYWHERE }, realm.event_future(awaited));
        // The task must have begun to wait.
        let idle = realm.clone();
        realm.wait(realm.spawn(Spawn { priority: -1, ..Spawn::on(ProcessorId(0)) }, move || drop(idle))).unwrap();
        realm.wait(realm.spawn(Spawn { priority: -1, ..Spawn::on(ProcessorId(1)) }, || ())).unwrap();
        realm.trigger(gate);
        realm.wait(task).unwrap();
    });
    let polls = spans(&recording, task).len();
    let waits = records(&recording).filter(|record| {
        matches!(record, Record::Awaited { operation, event, .. } if *operation == task.into() && *event == awaited.into())
    });
    // The gate may have opened before the first poll.
    assert_eq!(polls, 1 + waits.count());
    assert_eq!(recording.labels.iter().filter(|label| label.name == "patient").count(), 1);
}

#[test]
fn a_body_that_waits_is_waiting_and_what_its_worker_runs_meanwhile_is_within() {
    let (mut outer, mut inner) = (Event::NONE, Event::NONE);
    let recording = profile(Machine::uniform(1, 1 << 20), |realm, _| {
        let handle = realm.clone();
        let (sender, receiver) = std::sync::mpsc::channel();
        outer = realm.spawn(Spawn::ANYWHERE, move || {
            let inner = handle.spawn(Spawn::ANYWHERE, || ());
            sender.send(inner).unwrap();
            handle.wait(inner).unwrap();
        });
        inner = receiver.recv().unwrap();
        realm.wait(outer).unwrap();
    });
    let outer_spans = spans(&recording, outer);
    let kind = |kind: Kind| outer_spans.iter().find(|span| span.0 == kind).copied().unwrap();
    let (waiting, task, inner) = (kind(Kind::Waiting), kind(Kind::Task), spans(&recording, inner)[0]);
    assert!(task.2 <= waiting.2 && waiting.2 <= inner.2 && inner.3 <= waiting.3 && waiting.3 <= task.3);
}

#[test]
fn spans_of_a_thread_are_nested_or_apart() {
    let recording = two_workers(|realm, _| {
        let mut last = Event::NONE;
        for _ in 0..200 {
            let handle = realm.clone();
            let after = last;
            last = realm.spawn(&after, move || {
                let part = handle.spawn(Spawn { class: Class::Runtime, ..Spawn::ANYWHERE }, || ());
                handle.wait(part).unwrap();
            });
        }
        realm.wait(last).unwrap();
    });
    for thread in &recording.threads {
        let mut spans: Vec<(u64, u64)> = (thread.records.iter())
            .filter_map(|record| match record {
                Record::Span { start, end, .. } => Some((*start, *end)),
                _ => None,
            })
            .collect();
        spans.sort_by_key(|&(start, end)| (start, std::cmp::Reverse(end)));
        let mut open: Vec<u64> = Vec::new();
        for (start, end) in spans {
            open.retain(|&outer| outer > start);
            assert!(open.iter().all(|&outer| end <= outer));
            open.push(end);
        }
    }
}

#[test]
fn transfers_tell_their_channel_and_memories_the_bytes_in_use() {
    let mut done = Event::NONE;
    let recording = two_workers(|realm, _| {
        let instance = || {
            let spec = LayoutSpec::new(Rect::from(0..100).into(), vec![FieldSpec::of::<u64>(FieldId(0))]);
            realm.create_instance(MemoryId(0), spec.build().unwrap(), InstanceKind::Normal).unwrap().0
        };
        let (a, b) = (instance(), instance());
        let fill = Transfer::fill(Rect::from(0..100).into(), (&a, FieldId(0)), FillValue::of(1u64)).unwrap();
        let copy = Transfer::copy(Rect::from(0..50).into(), (&a, FieldId(0)), (&b, FieldId(0))).unwrap();
        // SAFETY: nothing else uses the instances.
        let filled = unsafe { realm.transfer(vec![fill], After::NOTHING) };
        // SAFETY: nothing else uses the instances after the fill.
        done = unsafe { realm.transfer(vec![copy], &filled) };
        // SAFETY: nothing uses the instances after the copy.
        let gone = [&a, &b].map(|instance| unsafe { realm.destroy_instance(instance, &done) }.unwrap());
        realm.wait(realm.merge(&gone)).unwrap();
    });
    let transfer = records(&recording).find_map(|record| match *record {
        Record::Transfer { operation, from, to, bytes } if operation == done.into() => Some((from, to, bytes)),
        _ => None,
    });
    assert_eq!(transfer, Some((0, 0, 400)));
    assert_eq!(spans(&recording, done)[0].0, Kind::Copy);
    let mut used: Vec<(u64, u64)> = (records(&recording))
        .filter_map(|record| match *record {
            Record::Memory { memory: 0, used, time } => Some((time, used)),
            _ => None,
        })
        .collect();
    used.sort_unstable();
    let used: Vec<u64> = used.into_iter().map(|(_, used)| used).collect();
    assert_eq!((used.iter().max(), used.last()), (Some(&1600), Some(&0)));
}

#[test]
fn a_graph_is_named_once_and_each_of_its_runs_has_operations_of_its_own() {
    let recording = two_workers(|realm, profiler| {
        let graph = profiler.graph(Graph { nodes: vec![vec![], vec![0], vec![0, 1]] });
        let tag = Tag::of(profiler.label(Kind::Task, "node", None));
        let mut last = OperationId::NONE;
        for _ in 0..2 {
            let first = profiler.replay(graph, 3);
            profiler.came_after(first, [last]);
            for node in 0..3 {
                let operation = OperationId(first.0 + node);
                profiler.activity(operation, tag).end();
                last = operation;
            }
        }
        assert!(realm.profiler().is_some());
    });
    let replays = records(&recording).filter_map(|record| match record {
        Record::Replayed { graph, first, .. } => Some((recording.graph(*graph)?.nodes.len() as u64, first.0)),
        _ => None,
    });
    let replays: Vec<_> = replays.collect();
    let [(3, first), (3, second)] = replays[..] else { panic!("{replays:?}") };
    assert_eq!((second, recording.graphs.len()), (first + 3, 1));
    let after = [OperationId(first + 2), OperationId::NONE, OperationId::NONE, OperationId::NONE];
    let joined = Record::After { operation: OperationId(second), after };
    assert_eq!(records(&recording).filter(|&&record| record == joined).count(), 1);
}

#[test]
fn a_label_has_one_number_in_all_threads() {
    let rect = Rect::from(0..4).into();
    let recording = two_workers(|_, profiler| {
        let ask = || [None, Some(&rect)].map(|domain| profiler.label(Kind::Task, "same", domain));
        let other = std::thread::scope(|scope| scope.spawn(ask).join().unwrap());
        assert_eq!((ask(), ask()), (other, other));
        assert_ne!(other[0], other[1]);
        assert_ne!(profiler.label(Kind::Mapping, "same", None), other[0]);
    });
    assert_eq!(recording.labels.iter().filter(|label| label.name == "same").count(), 3);
}

#[test]
fn a_profiler_serves_one_realm() {
    let profiler = Profiler::writing_to(Bytes::default());
    let _realm = Realm::builder().workers(1).profile(profiler.clone()).build().unwrap();
    let second = Realm::builder().workers(1).profile(profiler).build();
    assert!(matches!(second, Err(RealmError::ProfilerInUse)));
}

#[test]
fn what_others_do_of_a_bodys_loop_is_recorded_as_its_operations() {
    let mut body = Event::NONE;
    let recording = two_workers(|realm, _| {
        let share = |realm: &Realm| {
            // Each call waits for the other to begin.
            let begun = [const { AtomicBool::new(false) }; 2];
            realm.for_each(2, |call| {
                begun[call].store(true, Ordering::SeqCst);
                let has_begun = |_| {
                    std::thread::yield_now();
                    begun[1 - call].load(Ordering::SeqCst)
                };
                assert!((0..10_000_000).any(has_begun));
            });
        };
        body = realm.spawn(Spawn::ANYWHERE, with_context(move |context| share(context.realm())));
        realm.wait(body).unwrap();
    });
    let named = |id| recording.label(id).unwrap().name.as_str();
    let mut spans: Vec<&str> = records(&recording)
        .filter_map(|record| match record {
            Record::Span { tag, operation, .. } if *operation == body.into() => Some(named(tag.label)),
            _ => None,
        })
        .filter(|&name| name != "waiting")
        .collect();
    spans.sort_unstable();
    assert_eq!(spans, ["part of a loop", "task"]);
}
