//! More workers than cores: those that have none sleep, unless others wait for what the realm knows nothing of.

use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use maniple_realm::operation::with_context;
use maniple_realm::{Event, Realm, Spawn, Target};

/// A realm with so many workers for each core.
fn crowd(workers_a_core: usize) -> Realm {
    let cores = thread::available_parallelism().unwrap().get();
    Realm::builder().workers(workers_a_core * cores).build().unwrap()
}

/// Bodies, as many as there are workers, of which none ends before all have begun.
fn bodies_that_meet(realm: &Realm, target: impl Fn(usize) -> Target) -> Vec<Event> {
    let workers = realm.processors().len();
    let all = Arc::new(Barrier::new(workers));
    (0..workers)
        .map(|body| {
            let all = Arc::clone(&all);
            let spawn = Spawn { target: target(body), ..Spawn::ANYWHERE };
            realm.spawn(spawn, move || {
                all.wait();
            })
        })
        .collect()
}

#[test]
fn bodies_that_wait_for_one_another_all_begin() {
    let realm = crowd(2);
    for _ in 0..20 {
        realm.wait(realm.merge(&bodies_that_meet(&realm, |_| Target::Any))).unwrap();
        // In between there is enough to do for those that have cores.
        let short: Vec<_> = (0..1000).map(|_| realm.spawn(Spawn::ANYWHERE, || ())).collect();
        realm.wait(realm.merge(&short)).unwrap();
    }
}

#[test]
fn bodies_that_wait_for_one_another_all_begin_wherever_they_had_better_run() {
    let realm = crowd(3);
    let processors = realm.processors().to_vec();
    for last in [0, processors.len() - 1] {
        for _ in 0..5 {
            realm.wait(realm.merge(&bodies_that_meet(&realm, |_| Target::Near(processors[last])))).unwrap();
            realm.wait(realm.merge(&bodies_that_meet(&realm, |body| Target::Near(processors[body])))).unwrap();
            realm.wait(realm.merge(&bodies_that_meet(&realm, |body| Target::On(processors[body])))).unwrap();
        }
    }
}

#[test]
fn what_a_body_spawns_runs_while_the_bodies_on_all_cores_wait_for_it() {
    let realm = crowd(2);
    let cores = realm.processors().len() / 2;
    for _ in 0..20 {
        let waiting: Vec<_> = (0..cores)
            .map(|_| {
                realm.spawn(
                    Spawn::ANYWHERE,
                    with_context(|cx| {
                        let (done, is_done) = mpsc::channel();
                        cx.realm().spawn(Spawn::ANYWHERE, move || done.send(()).unwrap());
                        is_done.recv().unwrap();
                    }),
                )
            })
            .collect();
        realm.wait(realm.merge(&waiting)).unwrap();
    }
}
