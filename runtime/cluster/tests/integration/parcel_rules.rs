//! Parcels.

use bytes::Bytes;
use maniple_cluster::{Failure, JobBuilder, ParcelFuture, ParcelName};
use maniple_realm::Realm;
use maniple_realm::machine::NodeId;
use maniple_realm::net::loopback::Network;

use super::nodes::{simulate, simulate_with};

fn name(operation: u64) -> ParcelName {
    ParcelName { operation, exchange: 0, number: 0 }
}

#[test]
fn parcels_are_found_by_name_whether_they_arrive_before_or_after_they_are_awaited() {
    for seed in 0..40 {
        let outcomes = simulate(seed, 2, |job| {
            let (other, count) = (1 - job.rank(), 20);
            // Each node sends in another order than the other one awaits.
            for operation in (0..count).rev() {
                match operation % 3 {
                    0 => job.send_short_parcel(other, name(operation), &operation.to_le_bytes()),
                    1 => job.send_parcel(other, name(operation), Ok(Bytes::from(vec![7; operation as usize * 100]))),
                    _ => {
                        let failure = Failure { node: job.rank(), message: operation.to_string() };
                        job.send_parcel(other, name(operation), Err(failure));
                    }
                }
            }
            let arrived = (0..count).step_by(2).map(|operation| {
                let parcels = ParcelFuture::new(2, job.realm());
                job.expect(&parcels, [(other, name(operation)), (other, name(operation + 1))].into_iter());
                job.realm().wait(parcels.complete(job.realm())).unwrap();
                [0, 1].map(|number| parcels.take(number, job.realm()).unwrap())
            });
            let arrived: Vec<_> = arrived.flatten().collect();
            (arrived, job.open_exchanges())
        });
        for (rank, (arrived, open)) in outcomes.into_iter().enumerate() {
            assert_eq!(open, 0);
            for (operation, delivery) in (0_u64..).zip(arrived) {
                let expected = match operation % 3 {
                    0 => Ok(Bytes::copy_from_slice(&operation.to_le_bytes())),
                    1 => Ok(Bytes::from(vec![7; operation as usize * 100])),
                    _ => Err(Failure { node: 1 - rank, message: operation.to_string() }),
                };
                assert_eq!(delivery, expected, "seed {seed}, operation {operation}");
            }
        }
    }
}

#[test]
fn fragments_of_a_long_payload_arrive_as_a_whole_in_any_order_of_messages() {
    const LENGTHS: [usize; 6] = [0, 9, 10, 11, 100, 1_234];
    let bytes = |length: usize| Bytes::from_iter((0..length).map(|byte| byte as u8));
    for seed in 0..20 {
        let join = |builder: JobBuilder| builder.longest_message(10);
        let whole = simulate_with(seed, 3, join, move |job| {
            let others = || (0..3).filter(|&other| other != job.rank());
            for length in LENGTHS {
                others().for_each(|to| job.send_parcel(to, name(length as u64), Ok(bytes(length))));
            }
            let all: Vec<_> = others().flat_map(|from| LENGTHS.map(|length| (from, length))).collect();
            let parcels = ParcelFuture::new(all.len(), job.realm());
            job.expect(&parcels, all.iter().map(|&(from, length)| (from, name(length as u64))));
            job.realm().wait(parcels.complete(job.realm())).unwrap();
            let mut all = all.iter().enumerate();
            all.all(|(number, &(_, length))| {
                let is_whole = parcels.take(number, job.realm()) == Some(Ok(bytes(length)));
                is_whole && parcels.take(number, job.realm()).is_none()
            })
        });
        assert_eq!(whole, [true; 3], "seed {seed}");
    }
}

#[test]
fn fragments_of_several_threads_do_not_mix() {
    const LENGTHS: [usize; 6] = [0, 9, 10, 11, 100, 12_345];
    let network = Network::new(2);
    let pump = network.pump();
    let realms = [(); 2].map(|()| Realm::builder().workers(1).build().unwrap());
    let jobs = [0, 1].map(|node| {
        let transport = network.node(NodeId(node as u16));
        JobBuilder::new(transport, &realms[node]).longest_message(10).join()
    });
    let bytes = |length: usize| Bytes::from_iter((0..length).map(|byte| byte as u8));
    let parcels = ParcelFuture::new(LENGTHS.len(), &realms[1]);
    jobs[1].expect(&parcels, LENGTHS.iter().map(|&length| (0, name(length as u64))));
    std::thread::scope(|scope| {
        for lengths in LENGTHS.chunks(3) {
            let sender = &jobs[0];
            scope.spawn(move || {
                lengths.iter().for_each(|&length| sender.send_parcel(1, name(length as u64), Ok(bytes(length))))
            });
        }
    });
    realms[1].wait(parcels.complete(&realms[1])).unwrap();
    for (number, &length) in LENGTHS.iter().enumerate() {
        assert_eq!(parcels.take(number, &realms[1]), Some(Ok(bytes(length))));
    }
    std::thread::scope(|scope| jobs.iter().for_each(|job| drop(scope.spawn(|| job.leave()))));
    drop(pump);
}
