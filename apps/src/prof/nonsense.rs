//! Profiles that make no sense are shown all the same.

use maniple::profile::{Graph, GraphId, Kind, LabelId, OperationId, Record, Tag};
use proptest::prelude::*;

use super::chrome;
use super::model::Profile;
use super::page::page;
use super::script::Script;
use super::summary::Summary;
use super::together::{Together, together};

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![0..100u64, Just(u64::MAX), any::<u64>()]
}

fn operation() -> impl Strategy<Value = OperationId> {
    prop_oneof![(0..12u64).prop_map(OperationId), Just(OperationId(u64::MAX))]
}

fn any_record() -> impl Strategy<Value = Record> {
    let tag = (0..14u32, any::<u32>()).prop_map(|(label, index)| Tag { label: LabelId(label), index });
    prop_oneof![
        (tag, operation(), time(), time()).prop_map(|(tag, operation, start, end)| Record::Span {
            tag,
            operation,
            start,
            end
        }),
        (operation(), operation(), time()).prop_map(|(operation, by, time)| Record::Launched { operation, by, time }),
        (operation(), time()).prop_map(|(operation, time)| Record::Ready { operation, time }),
        (operation(), [operation(), operation(), operation(), operation()])
            .prop_map(|(operation, after)| Record::After { operation, after }),
        (operation(), operation(), time()).prop_map(|(event, by, time)| Record::Triggered { event, by, time }),
        (operation(), operation(), time()).prop_map(|(operation, event, time)| Record::Awaited {
            operation,
            event,
            time
        }),
        (operation(), 0..3u32, 0..3u32, any::<u64>()).prop_map(|(operation, from, to, bytes)| Record::Transfer {
            operation,
            from,
            to,
            bytes
        }),
        (0..3u32, any::<u64>(), time()).prop_map(|(memory, used, time)| Record::Memory { memory, used, time }),
        (0..3u32, operation(), operation(), time()).prop_map(|(graph, first, by, time)| Record::Replayed {
            graph: GraphId(graph),
            first,
            by,
            time
        }),
        (operation(), 0..3u16, 0..3u64, time()).prop_map(|(by, to, number, time)| Record::Sent {
            by,
            to,
            number,
            time
        }),
        (operation(), 0..3u16, 0..3u64, time()).prop_map(|(message, from, number, time)| Record::Received {
            message,
            from,
            number,
            time
        }),
    ]
}

/// Of three threads, with these records.
fn script(records: Vec<(usize, Record)>) -> Script {
    let mut script = Script::new(3);
    let kinds = [Kind::Task, Kind::Waiting, Kind::Asleep, Kind::Mapping, Kind::Copy, Kind::Fill];
    for kind in kinds {
        script.label(kind, "label");
    }
    script.launch("launch", i64::MAX);
    script.0.graphs.push(Graph { nodes: vec![vec![], vec![0], vec![u32::MAX, 1, 2]] });
    records.into_iter().for_each(|(thread, record)| script.record(thread, record));
    script
}

proptest! {
    #[test]
    fn no_records_make_the_viewer_panic(records in prop::collection::vec((0..4usize, any_record()), 0..60)) {
        let profile = Profile::of(script(records).0);
        prop_assert!(!page(&profile).is_empty());
        prop_assert!(Summary(&profile).to_string().contains("critical path"));
        prop_assert!(chrome::write(&profile, std::io::sink()).is_ok());
    }

    #[test]
    fn no_records_of_several_processes_make_the_viewer_panic(
        all in prop::collection::vec((time(), prop::collection::vec((0..4usize, any_record()), 0..40)), 2..4)
    ) {
        let recordings = (0..).zip(all).map(|(node, (began, records))| {
            let mut recording = script(records).0;
            recording.header.began = began;
            recording.header.processors.iter_mut().for_each(|processor| processor.node = node);
            recording.threads.iter_mut().for_each(|thread| thread.node = node);
            recording
        });
        let Together { recording, notes } = together(recordings.collect()).expect("there are some");
        let profile = Profile::of(recording).with_notes(notes);
        prop_assert!(!page(&profile).is_empty());
        prop_assert!(Summary(&profile).to_string().contains("critical path"));
        prop_assert!(chrome::write(&profile, std::io::sink()).is_ok());
    }
}
