//! The promises of the format and the reader, whatever is in a file.

use std::path::Path;

use maniple_space::Rect;
use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;

/// Somewhere to write to and look at.
#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Bytes {
    fn read(&self) -> Result<Recording, RecordingError> {
        read(&self.0.lock())
    }
}

fn read(bytes: &[u8]) -> Result<Recording, RecordingError> {
    Recording::read_from(bytes, Path::new("test"))
}

fn begun() -> (Bytes, Profiler) {
    let bytes = Bytes::default();
    let profiler = Profiler::writing_to(bytes.clone());
    assert!(profiler.begin(&Machine::uniform(2, 1 << 20)));
    (bytes, profiler)
}

/// A whole profile with these records of one thread.
fn written(records: &[Record]) -> Vec<u8> {
    let (bytes, profiler) = begun();
    records.iter().for_each(|&record| profiler.record(record));
    profiler.write_thread();
    profiler.end();
    bytes.0.lock().clone()
}

/// The records read, but for those of writing.
fn told(recording: &Recording) -> Vec<Record> {
    let writes = |record: &Record| matches!(record, Record::Span { tag, .. } if tag.label == common::PROFILE);
    let records = recording.threads.iter().flat_map(|thread| &thread.records);
    records.filter(|record| !writes(record)).copied().collect()
}

fn any_record() -> impl Strategy<Value = Record> {
    let operation = || any::<u64>().prop_map(OperationId);
    let time = any::<u64>;
    let tag = (100..u32::MAX, any::<u32>()).prop_map(|(label, index)| Tag { label: LabelId(label), index });
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
        (operation(), any::<(u32, u32, u64)>()).prop_map(|(operation, (from, to, bytes))| Record::Transfer {
            operation,
            from,
            to,
            bytes
        }),
        any::<(u32, u64, u64)>().prop_map(|(memory, used, time)| Record::Memory { memory, used, time }),
        (any::<u32>(), operation(), operation(), time()).prop_map(|(graph, first, by, time)| Record::Replayed {
            graph: GraphId(graph),
            first,
            by,
            time
        }),
        (operation(), any::<u16>(), any::<u64>(), time()).prop_map(|(by, to, number, time)| Record::Sent {
            by,
            to,
            number,
            time
        }),
        (operation(), any::<u16>(), any::<u64>(), time()).prop_map(|(message, from, number, time)| Record::Received {
            message,
            from,
            number,
            time
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_recorded_is_what_is_read(some in prop::collection::vec(any_record(), 1..20), count in 0..5000usize) {
        let records: Vec<Record> = some.into_iter().cycle().take(count).collect();
        let recording = read(&written(&records)).unwrap();
        prop_assert_eq!(recording.completeness, Completeness::Whole);
        prop_assert_eq!(told(&recording), records);
    }

    #[test]
    fn a_profile_that_was_cut_is_read_up_to_the_cut(records in prop::collection::vec(any_record(), 1..50), cut: prop::sample::Index) {
        let whole = written(&records);
        let cut = cut.index(whole.len());
        match read(&whole[..cut]) {
            Ok(recording) => {
                prop_assert_eq!(recording.completeness, Completeness::Unended);
                prop_assert!(records.starts_with(&told(&recording)));
            }
            Err(RecordingError::Foreign { .. } | RecordingError::Nothing { .. }) => {
                // The magic, the version, and the header are not all there.
                prop_assert!(cut < begun().0.0.lock().len());
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed_and_never_read(records in prop::collection::vec(any_record(), 1..50), at: prop::sample::Index, bit in 0..8) {
        let mut bytes = written(&records);
        let (at, whole) = (at.index(bytes.len()), bytes.len());
        bytes[at] ^= 1u8 << bit;
        match read(&bytes) {
            Ok(recording) => {
                prop_assert_ne!(recording.completeness, Completeness::Whole, "byte {} of {}", at, whole);
                prop_assert!(records.starts_with(&told(&recording)));
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), valid_start: bool) {
        let mut file = Vec::new();
        if valid_start {
            file.extend_from_slice(b"MANIPROF\x02\0\0\0");
        }
        file.extend(bytes);
        let _ = read(&file);
    }

    #[test]
    fn no_chunk_of_a_right_checksum_makes_the_reader_panic(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..8)) {
        let mut file = written(&[]);
        // Without the end.
        file.truncate(file.len() - 9);
        for payload in payloads {
            file.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            file.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
            file.extend(payload);
        }
        prop_assert!(read(&file).is_ok());
    }
}

#[test]
fn other_files_and_other_versions_are_refused_in_words() {
    let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(message(b"").contains("`test` is no profile"));
    assert!(message(b"%%MatrixMarket matrix").contains("`test` is no profile"));
    assert!(message(b"MANIPROF\x09\0\0\0").contains("version 9, and this program reads version 3"));
    assert!(message(b"MANIPROF\x03\0\0\0").contains("damaged at its very beginning"));
    let directory = Recording::read(&std::env::temp_dir()).unwrap_err().to_string();
    assert!(directory.contains("is a directory"), "{directory}");
    let missing = Recording::read(Path::new("/no/such/file.mprof")).unwrap_err().to_string();
    assert!(missing.contains("cannot read `/no/such/file.mprof`"), "{missing}");
}

#[test]
fn a_file_that_is_no_profile_is_not_overwritten() {
    let path = std::env::temp_dir().join(format!("maniple-realm-no-profile-{}", std::process::id()));
    for precious in [&b"precious data"[..], b"p"] {
        std::fs::write(&path, precious).unwrap();
        let error = Profiler::create(&path).unwrap_err();
        assert!(matches!(error, ProfileError::Foreign { .. }), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), precious);
    }
    std::fs::write(&path, written(&[])).unwrap();
    assert!(Profiler::create(&path).is_ok());
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(Profiler::create(&std::env::temp_dir()), Err(ProfileError::Create { .. })));
}

/// A disk with room for so many bytes.
struct Small(usize);

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_profile_and_is_told() {
    let profiler = Profiler::writing_to(Small(1000));
    assert!(profiler.begin(&Machine::uniform(1, 1)));
    assert!(profiler.outcome().is_ok());
    (0..100_000).for_each(|time| profiler.record(Record::Memory { memory: 0, used: 1, time }));
    profiler.end();
    let error = profiler.outcome().unwrap_err();
    assert!(error.to_string().starts_with("the profile ends early: "), "{error}");
}

#[test]
fn each_thread_has_its_records_in_the_order_in_which_it_made_them() {
    let (bytes, profiler) = begun();
    std::thread::scope(|scope| {
        for memory in 0..4 {
            let profiler = profiler.clone();
            scope.spawn(move || {
                (0..10_000).for_each(|used| profiler.record(Record::Memory { memory, used, time: used }));
                // A thread that ends later than its scope may be late for the profile's end.
                profiler.write_thread();
            });
        }
    });
    profiler.end();
    let recording = bytes.read().unwrap();
    assert_eq!(recording.threads.len(), 4);
    for thread in &recording.threads {
        let told = thread.records.iter().filter_map(|record| match record {
            Record::Memory { used, .. } => Some(*used),
            _ => None,
        });
        assert!(told.eq(0..10_000));
    }
}

#[test]
fn a_thread_that_records_two_profiles_in_turn_loses_nothing() {
    let (one, two) = (begun(), begun());
    for time in 0..100 {
        one.1.record(Record::Memory { memory: 1, used: 0, time });
        two.1.record(Record::Memory { memory: 2, used: 0, time });
    }
    for (bytes, profiler) in [one, two] {
        profiler.write_thread();
        profiler.end();
        assert_eq!(told(&bytes.read().unwrap()).len(), 100);
    }
}

#[test]
fn a_program_that_is_killed_leaves_all_but_the_last_second() {
    let (bytes, profiler) = begun();
    let second = 1_000_000_000;
    for time in [0, second / 2, second + 1, second + 2] {
        profiler.record(Record::Memory { memory: 0, used: 0, time });
    }
    let recording = bytes.read().unwrap();
    assert_eq!((recording.completeness, recording.threads[0].records.len()), (Completeness::Unended, 3));
}

#[test]
fn profiles_one_behind_the_other_are_refused() {
    let record = Record::Memory { memory: 0, used: 0, time: 0 };
    let (whole, begun) = (written(&[record]), begun().0.0.lock().clone());
    for first in [&whole, &begun] {
        let error = read(&[&first[..], &whole].concat()).unwrap_err();
        assert!(matches!(error, RecordingError::Several { at, .. } if at == first.len() as u64), "{error}");
        assert!(error.to_string().contains(&format!("after {} bytes", first.len())), "{error}");
    }
}

#[test]
fn what_comes_behind_the_end_is_damage() {
    let whole = written(&[]);
    let recording = read(&[&whole[..], b"some other bytes"].concat()).unwrap();
    assert_eq!(recording.completeness, Completeness::Damaged { at: whole.len() as u64 });
}

#[test]
fn points_of_a_domain_are_found_by_their_rank() {
    let rect = Rect::<2>::new([-1, 5], [1, 8]);
    let domain = Domain::from(&rect.into());
    let points: Vec<_> = (0..12).filter_map(|rank| domain.point(rank)).collect();
    assert_eq!(points, rect.points().map(|point| point.0.to_vec()).collect::<Vec<_>>());
    assert_eq!(domain.point(12), None);
    let strange = Domain { lo: vec![i64::MIN, 5], hi: vec![i64::MAX, 3] };
    assert_eq!(strange.point(7), None);
}

#[test]
fn processes_and_threads_of_a_job_are_on_its_nodes() {
    let bytes = Bytes::default();
    let profiler = Profiler::writing_to(bytes.clone()).of_node(NodeId(3));
    assert!(profiler.begin(&Machine::uniform(2, 1 << 20)));
    profiler.introduce_worker(ProcessorId(1));
    profiler.write_thread();
    let outside = profiler.clone();
    let thread = std::thread::spawn(move || outside.span(Tag::NONE, OperationId(1), 0));
    thread.join().expect("it only records");
    profiler.record(Record::Sent { by: OperationId(1), to: 2, number: 0, time: 5 });
    profiler.write_thread();
    profiler.end();
    let recording = bytes.read().expect("it was recorded");
    assert!(recording.header.processors.iter().all(|processor| processor.node == 3));
    assert!(recording.header.memories.iter().all(|memory| memory.node == 3));
    assert_eq!(recording.threads.iter().map(|thread| thread.node).collect::<Vec<_>>(), [3, 3]);
}
