//! Loops that a body shares with idle workers: which thread runs what, what panics, and what is left behind.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use maniple_realm::fault::message_of;
use maniple_realm::operation::with_context;
use maniple_realm::{Fault, Realm, Spawn};

fn realm(workers: usize) -> Realm {
    Realm::builder().workers(workers).build().unwrap()
}

/// Runs a body on a worker, and gives what it came to.
fn on_worker<R: Send + 'static>(
    realm: &Realm,
    body: impl FnOnce(&Realm) -> R + Send + 'static,
) -> Result<R, Arc<Fault>> {
    let (sender, result) = mpsc::channel();
    let run = with_context(move |context| sender.send(body(context.realm())).unwrap());
    realm.wait(realm.spawn(Spawn::ANYWHERE, run))?;
    Ok(result.recv().unwrap())
}

/// More often than a thread should have to look for what another thread is about to do.
const LOOKS: usize = 10_000_000;

/// Lets others run until the flag is set, or it is clear that it won't be.
fn expect(flag: &AtomicBool) -> bool {
    (0..LOOKS).any(|_| {
        thread::yield_now();
        flag.load(Ordering::SeqCst)
    })
}

#[test]
fn each_call_is_made_once() {
    for workers in 1..5 {
        on_worker(&realm(workers), |realm| {
            for count in 0..200 {
                let calls: Vec<_> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                realm.for_each(count, |call| _ = calls[call].fetch_add(1, Ordering::Relaxed));
                assert!(calls.into_iter().all(|calls| calls.into_inner() == 1));
            }
        })
        .unwrap();
    }
}

#[test]
fn an_idle_worker_takes_part() {
    on_worker(&realm(2), |realm| {
        for _ in 0..100 {
            let (begun, threads) = ([const { AtomicBool::new(false) }; 2], Mutex::new(BTreeSet::new()));
            // Each waits for the other to begin, which one thread alone can't do.
            realm.for_each(2, |call| {
                begun[call].store(true, Ordering::SeqCst);
                threads.lock().unwrap().insert(realm.current_worker());
                assert!(expect(&begun[1 - call]), "nobody else began a call");
            });
            assert_eq!(threads.into_inner().unwrap(), BTreeSet::from([Some(0), Some(1)]));
        }
    })
    .unwrap();
}

#[test]
fn all_idle_workers_take_part() {
    const WORKERS: usize = 4;
    on_worker(&realm(WORKERS), |realm| {
        let (begun, all) = (AtomicUsize::new(0), AtomicBool::new(false));
        realm.for_each(WORKERS, |_| {
            if begun.fetch_add(1, Ordering::SeqCst) == WORKERS - 1 {
                all.store(true, Ordering::SeqCst);
            }
            assert!(expect(&all), "only some began a call");
        });
    })
    .unwrap();
}

#[test]
fn one_worker_makes_all_calls_in_order() {
    on_worker(&realm(1), |realm| {
        let order = Mutex::new(Vec::new());
        realm.for_each(50, |call| order.lock().unwrap().push((call, realm.current_worker())));
        assert_eq!(order.into_inner().unwrap(), (0..50).map(|call| (call, Some(0))).collect::<Vec<_>>());
    })
    .unwrap();
}

#[test]
fn a_thread_that_is_no_worker_makes_all_calls_in_order() {
    thread_local! {
        static CALLS: Cell<usize> = const { Cell::new(0) };
    }
    realm(3).for_each(50, |call| assert_eq!(CALLS.replace(call + 1), call));
    assert_eq!(CALLS.get(), 50);
}

#[test]
fn calls_may_share_loops_of_their_own() {
    for workers in 1..5 {
        on_worker(&realm(workers), |realm| {
            let calls = AtomicUsize::new(0);
            for _ in 0..20 {
                realm.for_each(7, |_| {
                    realm.for_each(5, |_| realm.for_each(3, |_| _ = calls.fetch_add(1, Ordering::Relaxed)));
                });
            }
            assert_eq!(calls.into_inner(), 20 * 7 * 5 * 3);
        })
        .unwrap();
    }
}

#[test]
fn several_bodies_share_loops_at_a_time() {
    let realm = realm(3);
    let calls = Arc::new(AtomicUsize::new(0));
    let bodies: Vec<_> = (0..300)
        .map(|_| {
            let calls = Arc::clone(&calls);
            let body = move |realm: &Realm| realm.for_each(9, |_| _ = calls.fetch_add(1, Ordering::Relaxed));
            realm.spawn(Spawn::ANYWHERE, with_context(move |context| body(context.realm())))
        })
        .collect();
    realm.wait(realm.merge(&bodies)).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 300 * 9);
}

/// Counts down at the end of a call, be it by panic.
struct Ending<'a>(&'a AtomicUsize);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn a_panic_goes_on_when_all_calls_that_began_have_ended() {
    on_worker(&realm(2), |realm| {
        for _ in 0..20 {
            let (running, second, panics) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
            let loop_ = || {
                realm.for_each(100, |call| {
                    running.fetch_add(1, Ordering::SeqCst);
                    let _ending = Ending(&running);
                    match call {
                        0 => {
                            assert!(expect(&second));
                            panics.store(true, Ordering::SeqCst);
                            panic!("the first call");
                        }
                        1 => {
                            second.store(true, Ordering::SeqCst);
                            assert!(expect(&panics));
                            // So long that the other thread could go on, if it did.
                            (0..1000).for_each(|_| thread::yield_now());
                        }
                        _ => {}
                    }
                });
            };
            let thrown = catch_unwind(AssertUnwindSafe(loop_)).unwrap_err();
            assert_eq!(running.load(Ordering::SeqCst), 0);
            assert_eq!(message_of(&*thrown), "the first call");
        }
    })
    .unwrap();
}

#[test]
fn of_several_panics_the_one_of_the_lowest_number_goes_on() {
    on_worker(&realm(2), |realm| {
        let (begun, panics) = (AtomicBool::new(false), AtomicBool::new(false));
        let loop_ = || {
            realm.for_each(2, |call| {
                if call == 0 {
                    begun.store(true, Ordering::SeqCst);
                    assert!(expect(&panics));
                    (0..1000).for_each(|_| thread::yield_now());
                } else {
                    assert!(expect(&begun));
                    panics.store(true, Ordering::SeqCst);
                }
                panic!("{call}");
            });
        };
        let thrown = catch_unwind(AssertUnwindSafe(loop_)).unwrap_err();
        assert_eq!(message_of(&*thrown), "0");
    })
    .unwrap();
}

#[test]
fn a_panic_on_another_thread_is_the_fault_of_the_body_and_says_where() {
    let fault = on_worker(&realm(2), |realm| {
        let (owner, begun) = (realm.current_worker(), AtomicBool::new(false));
        realm.for_each(2, |_| {
            if realm.current_worker() == owner {
                assert!(expect(&begun));
            } else {
                begun.store(true, Ordering::SeqCst);
                panic!("elsewhere");
            }
        });
    })
    .unwrap_err();
    let panic = fault.panic().unwrap();
    assert_eq!(panic.message, "elsewhere");
    assert!(panic.location.as_ref().unwrap().contains("sharing_rules.rs"), "{panic}");
}

#[test]
fn loops_among_busy_workers_leave_nothing_behind() {
    let realm = realm(2);
    let (began, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let busy = realm.spawn(Spawn::ANYWHERE, move || {
        began.send(()).unwrap();
        may_end.recv().unwrap();
    });
    has_begun.recv().unwrap();
    let left = on_worker(&realm, |realm| {
        (0..1000).for_each(|_| realm.for_each(4, |_| ()));
        realm.queued_jobs()
    });
    assert_eq!(left.unwrap(), 0);
    end.send(()).unwrap();
    realm.wait(busy).unwrap();
}
