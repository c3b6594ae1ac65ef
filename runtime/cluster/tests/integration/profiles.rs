//! Messages in profiles.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use maniple_cluster::{JobBuilder, ParcelFuture, ParcelName};
use maniple_realm::Realm;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::net::loopback::Network;
use maniple_realm::profile::{OperationId, Profiler, Record, Recording};
use rustc_hash::FxHashMap;

/// A profile that is looked at when it is written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The numbers below `end` of what a profile says was sent, or received, and how many of the latter were handled.
fn messages(recording: &Recording, end: u64) -> (Vec<u64>, Vec<u64>, usize) {
    let all = || recording.threads.iter().flat_map(|thread| &thread.records);
    let sent = all().filter_map(|record| if let Record::Sent { number, .. } = record { Some(*number) } else { None });
    let sent = sent.filter(|number| *number < end);
    let received = all().filter_map(|record| match record {
        Record::Received { number, message, .. } if *number < end => Some((*number, *message)),
        _ => None,
    });
    let received: FxHashMap<OperationId, u64> = received.map(|(number, message)| (message, number)).collect();
    let is_handling =
        |record: &&Record| matches!(record, Record::Span { operation, .. } if received.contains_key(operation));
    let handled = all().filter(is_handling).count();
    (sent.collect(), received.into_values().collect(), handled)
}

#[test]
fn both_sides_give_messages_the_same_numbers_in_profiles_however_long_they_are() {
    const LENGTHS: [usize; 4] = [0, 9, 100, 10];
    let network = Network::new(2);
    let pump = network.pump();
    let profiles = [(); 2].map(|()| Written::default());
    let realms = [0, 1].map(|node| {
        let profiler = Profiler::writing_to(profiles[node].clone()).of_node(NodeId(node as u16));
        Realm::builder().workers(1).profile(profiler).build().unwrap()
    });
    let jobs = [0, 1].map(|node| {
        let transport = network.node(NodeId(node as u16));
        JobBuilder::new(transport, &realms[node]).longest_message(10).join()
    });
    let name = |length: usize| ParcelName { operation: length as u64, exchange: 0, number: 0 };
    let expected: Vec<_> = LENGTHS.iter().map(|&length| (0, name(length))).collect();
    let parcels = ParcelFuture::new(expected.len(), &realms[1]);
    jobs[1].expect(&parcels, expected.into_iter());
    LENGTHS.iter().for_each(|&length| jobs[0].send_parcel(1, name(length), Ok(vec![7; length].into())));
    realms[1].wait(parcels.complete(&realms[1])).unwrap();
    std::thread::scope(|scope| jobs.iter().for_each(|job| drop(scope.spawn(|| job.leave()))));
    drop((jobs, pump, parcels));
    drop(realms);
    let [zero, one] = profiles.map(|Written(bytes)| {
        let recording = Recording::read_from(&bytes.lock()[..], Path::new("test")).unwrap();
        // What follows is about leaving the job.
        messages(&recording, LENGTHS.len() as u64)
    });
    assert_eq!(zero.0, [0, 1, 2, 3]);
    let (_, mut received, handled) = one;
    received.sort_unstable();
    assert_eq!((received, handled), (vec![0, 1, 2, 3], 4));
}
