//! Puts and gets: bytes from memory to memory.

use maniple_realm::instance::{Instance, InstanceKind};
use maniple_realm::layout::{FieldId, FieldSpec, LayoutSpec};
use maniple_realm::machine::{MemoryId, NodeId};
use maniple_realm::memory::MemoryPool;
use maniple_realm::net::{Get, HandlerId, Handlers, NetError, Options, Put, Registration, RemoteSegment, Segment};
use maniple_space::Rect;

use crate::cluster::{Cluster, Counter, List};
use crate::rules;

const TOLD: HandlerId = HandlerId(3);

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 251) as u8).collect()
}

fn registered<C: Cluster>(cluster: &C, node: usize, bytes: Vec<u8>) -> (Segment, Registration, RemoteSegment) {
    let segment = Segment::from_vec(bytes);
    let registration = cluster.endpoints()[node].register(segment.clone());
    let remote = registration.remote();
    (segment, registration, remote)
}

rules! {
    fn a_put_writes_the_bytes_where_it_says_and_nowhere_else(make: make) {
        for length in [0, 1, 4096, 100_000, 1_500_000] {
            let done = List::default();
            let cluster = make(2, Options::default(), &|_| Handlers::new());
            let (target, registration, remote) = registered(&cluster, 1, vec![9; length + 20]);
            let source = Segment::from_vec(pattern(length + 5));
            let call = done.clone();
            let (from, to) = (source.span(5..length + 5).unwrap(), remote.span(10..10 + length as u64));
            cluster.endpoints()[0].put(Put::new(from, to).on_done(move |result| call.push(result))).unwrap();
            cluster.until(|| done.len() == 1);
            done.get()[0].clone().unwrap();
            drop(registration);
            let found = target.whole().read(<[u8]>::to_vec);
            assert!(found[..10] == [9; 10] && found[10 + length..] == [9; 10]);
            assert!(found[10..10 + length] == pattern(length + 5)[5..]);
            cluster.shutdown();
        }
    }

    fn a_put_tells_the_other_node_once_the_bytes_are_there(make: make) {
        let seen = List::default();
        let target = Segment::from_vec(vec![0; 800_000]);
        let cluster = make(2, Options { chunk: 1000, ..Options::default() }, &|node| {
            let (seen, target) = (seen.clone(), target.clone());
            Handlers::new().on(TOLD, move |message| {
                let is_there = target.whole().read(|bytes| bytes.iter().all(|&byte| byte == 5));
                seen.push((node, message.from(), message.header().to_vec(), is_there));
            })
        });
        let registration = cluster.endpoints()[1].register(target.clone());
        let source = Segment::from_vec(vec![5; 800_000]);
        let put = Put::new(source.whole(), registration.remote().whole()).notify(TOLD, b"here");
        cluster.endpoints()[0].put(put).unwrap();
        cluster.until(|| seen.len() == 1);
        assert_eq!(seen.get(), [(NodeId(1), NodeId(0), b"here".to_vec(), true)]);
        cluster.shutdown();
    }

    fn what_was_put_may_change_after_local_completion(make: make) {
        let (sent, done) = (Counter::default(), List::default());
        let cluster = make(2, Options::default(), &|_| Handlers::new());
        let (target, _registration, remote) = registered(&cluster, 1, vec![0; 2_000_000]);
        let source = Segment::from_vec(vec![1; 2_000_000]);
        let (local, call) = (sent.clone(), done.clone());
        let again = source.clone();
        let put = Put::new(source.whole(), remote.whole())
            .on_sent(move |()| {
                again.whole().write(|bytes| bytes.fill(2));
                local.add(1);
            })
            .on_done(move |result| call.push(result));
        cluster.endpoints()[0].put(put).unwrap();
        cluster.until(|| done.len() == 1 && sent.get() == 1);
        done.get()[0].clone().unwrap();
        assert!(target.whole().read(|bytes| bytes.iter().all(|&byte| byte == 1)));
        cluster.shutdown();
    }

    fn a_get_reads_what_is_there(make: make) {
        for length in [0, 1, 70_000, 1_500_000] {
            let done = List::default();
            let cluster = make(2, Options::default(), &|_| Handlers::new());
            let (_source, _registration, remote) = registered(&cluster, 1, pattern(length + 30));
            let target = Segment::from_vec(vec![0; length + 2]);
            let call = done.clone();
            let get = Get::new(remote.span(17..17 + length as u64), target.span(1..length + 1).unwrap());
            cluster.endpoints()[0].get(get.on_done(move |result| call.push(result))).unwrap();
            cluster.until(|| done.len() == 1);
            done.get()[0].clone().unwrap();
            let found = target.whole().read(<[u8]>::to_vec);
            assert!(found[1..=length] == pattern(length + 30)[17..17 + length]);
            assert_eq!((found[0], found[length + 1]), (0, 0));
            cluster.shutdown();
        }
    }

    /// As a copy between nodes will: the halo of one node's instance goes into a part of another's.
    fn transfers_go_straight_from_and_into_instances(make: make) {
        let done = List::default();
        let field = FieldId(1);
        let instance = || {
            let pool = MemoryPool::new(MemoryId(0), 1 << 20);
            let spec = LayoutSpec::new(Rect::from(0..1000).into(), vec![FieldSpec::of::<f64>(field)]);
            Instance::create(&pool, spec.build().unwrap(), InstanceKind::Normal, |_, _| ()).unwrap().0
        };
        let (ours, theirs) = (instance(), instance());
        // SAFETY: the instances are this test's, which uses them before and after the transfer only, and releases none.
        let (from, into) = unsafe {
            (0..1000_i64).for_each(|point| ours.write(field, point, point as f64));
            (Segment::of_instance(ours.clone()).unwrap(), Segment::of_instance(theirs.clone()).unwrap())
        };
        let cluster = make(2, Options::default(), &|_| Handlers::new());
        let registration = cluster.endpoints()[1].register(into);
        let call = done.clone();
        let put = Put::new(from.span(8 * 900..8 * 1000).unwrap(), registration.remote().span(0..8 * 100));
        cluster.endpoints()[0].put(put.on_done(move |result| call.push(result))).unwrap();
        cluster.until(|| done.len() == 1);
        // SAFETY: as above.
        let found: Vec<f64> = (0..101_i64).map(|point| unsafe { theirs.read(field, point) }).collect();
        assert_eq!(found[..100], (900..1000).map(f64::from).collect::<Vec<_>>());
        assert_eq!(found[100], 0.0);
        drop(registration);
        cluster.shutdown();
    }

    fn a_node_transfers_within_itself(make: make) {
        let done = List::default();
        let cluster = make(1, Options::default(), &|_| Handlers::new());
        let (target, _registration, remote) = registered(&cluster, 0, vec![0; 1000]);
        let source = Segment::from_vec(pattern(1000));
        let call = done.clone();
        cluster.endpoints()[0].put(Put::new(source.whole(), remote.whole()).on_done(move |result| call.push(result))).unwrap();
        cluster.until(|| done.len() == 1);
        let back = Segment::from_vec(vec![0; 1000]);
        let call = done.clone();
        cluster.endpoints()[0].get(Get::new(remote.whole(), back.whole()).on_done(move |result| call.push(result))).unwrap();
        cluster.until(|| done.len() == 2);
        assert_eq!(done.get(), [Ok(()), Ok(())]);
        assert!(target.whole().read(<[u8]>::to_vec) == pattern(1000) && back.whole().read(<[u8]>::to_vec) == pattern(1000));
        cluster.shutdown();
    }

    fn many_transfers_between_all_nodes_go_on_at_once(make: make) {
        let (nodes, size) = (3, 60_000);
        let done = List::default();
        let cluster = make(nodes, Options { chunk: 4096, ..Options::default() }, &|_| Handlers::new());
        let targets: Vec<_> = (0..nodes).map(|node| registered(&cluster, node, vec![0; nodes * size])).collect();
        let sources: Vec<_> = (0..nodes).map(|node| Segment::from_vec(vec![node as u8 + 1; size])).collect();
        let results: Vec<_> = (0..nodes * nodes).map(|_| Segment::from_vec(vec![0; size])).collect();
        for (from, source) in sources.iter().enumerate() {
            for (.., remote) in &targets {
                let to = remote.span((from * size) as u64..((from + 1) * size) as u64);
                let call = done.clone();
                cluster.endpoints()[from].put(Put::new(source.whole(), to).on_done(move |result| call.push(result))).unwrap();
            }
        }
        cluster.until(|| done.len() == nodes * nodes);
        for (pair, into) in results.iter().enumerate() {
            let from = targets[pair % nodes].2.span((pair / nodes * size) as u64..((pair / nodes + 1) * size) as u64);
            let call = done.clone();
            let get = Get::new(from, into.whole()).on_done(move |result| call.push(result));
            cluster.endpoints()[(pair + 1) % nodes].get(get).unwrap();
        }
        cluster.until(|| done.len() == 2 * nodes * nodes);
        assert!(done.get().iter().all(Result::is_ok));
        for (pair, into) in results.iter().enumerate() {
            assert!(into.whole().read(|bytes| bytes.iter().all(|&byte| usize::from(byte) == pair / nodes + 1)));
        }
        cluster.shutdown();
    }

    fn a_transfer_outside_of_a_segment_or_with_none_fails_and_disturbs_nobody(make: make) {
        let (done, told) = (List::default(), Counter::default());
        let cluster = make(2, Options::default(), &|_| {
            let told = told.clone();
            Handlers::new().on(TOLD, move |_| told.add(1))
        });
        let (_a, registration, remote) = registered(&cluster, 1, vec![0; 100]);
        let (_b, gone, missing) = registered(&cluster, 1, vec![0; 100]);
        drop(gone);
        let local = Segment::from_vec(vec![1; 100]);
        let node = &cluster.endpoints()[0];
        let put = |to| {
            let call = done.clone();
            node.put(Put::new(local.whole(), to).notify(TOLD, &[]).on_done(move |result| call.push(result))).unwrap();
        };
        let get = |from| {
            let call = done.clone();
            node.get(Get::new(from, local.whole()).on_done(move |result| call.push(result))).unwrap();
        };
        put(remote.span(1..101));
        cluster.until(|| done.len() == 1);
        put(missing.whole());
        cluster.until(|| done.len() == 2);
        get(remote.span(1..101));
        cluster.until(|| done.len() == 3);
        get(missing.whole());
        cluster.until(|| done.len() == 4);
        put(remote.whole());
        cluster.until(|| done.len() == 5);
        let results = done.get();
        let is_out = |result: &Result<(), NetError>| matches!(result, Err(NetError::OutOfRange { offset: 1, end: 101, .. }));
        let is_missing = |result: &Result<(), NetError>| matches!(result, Err(NetError::NoSegment { node: NodeId(1), .. }));
        assert!(is_out(&results[0]) && is_missing(&results[1]), "{results:?}");
        assert!(is_out(&results[2]) && is_missing(&results[3]), "{results:?}");
        assert_eq!((&results[4], told.get()), (&Ok(()), 1));
        drop(registration);
        cluster.shutdown();
    }

    fn ends_of_different_lengths_are_refused_at_once(make: make) {
        let cluster = make(2, Options::default(), &|_| Handlers::new());
        let (_segment, _registration, remote) = registered(&cluster, 1, vec![0; 100]);
        let local = Segment::from_vec(vec![1; 99]);
        let expected = Err(NetError::LengthsDiffer { here: 99, there: 100 });
        assert_eq!(cluster.endpoints()[0].put(Put::new(local.whole(), remote.whole())), expected);
        assert_eq!(cluster.endpoints()[0].get(Get::new(remote.whole(), local.whole())), expected);
        cluster.shutdown();
    }
}
