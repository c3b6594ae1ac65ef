//! Jobs: where they are queued, which worker runs them, and in what order.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use maniple_realm::operation::with_context;
use maniple_realm::{Job, Realm, Spawn, WorkerContext};

fn realm(workers: usize) -> Realm {
    Realm::builder().workers(workers).build().unwrap()
}

fn job(call: impl FnOnce() + Send + 'static) -> Job {
    Job::new(|_| call())
}

/// Runs `body` on the realm's only worker, with a handle to queue jobs that call the names that it is given, and gives
/// the names in the order in which they were called.
fn order_of(body: impl FnOnce(&WorkerContext<'_>, &dyn Fn(&'static str)) + Send + 'static) -> Vec<&'static str> {
    let realm = realm(1);
    let (sender, called) = mpsc::channel();
    let done = realm.spawn(
        Spawn::ANYWHERE,
        with_context(move |context| {
            let realm = context.realm();
            let queue = |name| {
                let sender = sender.clone();
                realm.queue_job(job(move || sender.send(name).unwrap()));
            };
            body(context, &queue);
        }),
    );
    realm.wait(done).unwrap();
    let order = called.iter().collect();
    drop(realm);
    order
}

#[test]
fn a_job_from_outside_is_run_by_a_sleeping_worker() {
    for workers in 1..4 {
        let realm = realm(workers);
        for round in 0..100 {
            let (sender, ran) = mpsc::channel();
            realm.queue_job(job(move || sender.send(round).unwrap()));
            assert_eq!(ran.recv(), Ok(round));
        }
    }
}

#[test]
fn a_worker_runs_its_last_job_first() {
    let order = order_of(|_, queue| ["first", "second", "third"].into_iter().for_each(queue));
    assert_eq!(order, ["third", "second", "first"]);
}

#[test]
fn what_the_end_of_a_job_makes_ready_first_is_run_next() {
    let order = order_of(|context, queue| {
        queue("before");
        context.settle(|| {
            queue("next");
            queue("later");
        });
    });
    assert_eq!(order, ["next", "later", "before"]);
}

#[test]
fn jobs_of_a_worker_that_is_busy_are_stolen() {
    let realm = realm(2);
    let (sender, ran) = mpsc::channel();
    let done = realm.spawn(
        Spawn::ANYWHERE,
        with_context(move |context| {
            let mine = context.worker();
            for _ in 0..3 {
                let sender = sender.clone();
                context.realm().queue_job(Job::new(move |context| sender.send(context.worker()).unwrap()));
            }
            // This worker runs nothing else until all have been run.
            let others = ran.iter().take(3).filter(|&worker| worker != mine).count();
            assert_eq!(others, 3);
        }),
    );
    realm.wait(done).unwrap();
}

/// A job that queues itself as long as it is to go on.
fn forever(go_on: Arc<AtomicBool>, in_settling: bool) -> Job {
    Job::new(move |context| {
        if go_on.load(Ordering::Relaxed) {
            let again = || context.realm().queue_job(forever(go_on, in_settling));
            if in_settling { context.settle(again) } else { again() }
        }
    })
}

#[test]
fn a_job_that_is_queued_again_and_again_lets_others_have_their_turn() {
    for in_settling in [false, true] {
        let realm = realm(1);
        let go_on = Arc::new(AtomicBool::new(true));
        realm.queue_job(forever(Arc::clone(&go_on), in_settling));
        // From outside, and from the worker itself.
        let realm = Arc::new(realm);
        let inner = Arc::clone(&realm);
        let (sender, own) = mpsc::channel();
        let handed = realm.spawn(Spawn::ANYWHERE, move || sender.send(inner.spawn(Spawn::ANYWHERE, || ())).unwrap());
        realm.wait(handed).unwrap();
        realm.wait(own.recv().unwrap()).unwrap();
        let (sender, job_from_outside) = mpsc::channel();
        realm.queue_job(job(move || sender.send(()).unwrap()));
        job_from_outside.recv().unwrap();
        go_on.store(false, Ordering::Relaxed);
    }
}

#[test]
fn a_worker_that_waits_runs_jobs() {
    let realm = realm(1);
    let event = realm.user_event();
    let done = realm.spawn(
        Spawn::ANYWHERE,
        with_context(move |context| {
            let inner = context.realm().clone();
            context.realm().queue_job(job(move || inner.try_trigger(event).unwrap()));
            context.realm().wait(event.event()).unwrap();
        }),
    );
    realm.wait(done).unwrap();
}

#[test]
fn a_condition_that_a_job_changes_is_looked_at_again() {
    let realm = realm(2);
    let changed = Arc::new(AtomicBool::new(false));
    let condition = Arc::clone(&changed);
    let (sender, helping) = mpsc::channel();
    let done = realm.spawn(
        Spawn::ANYWHERE,
        with_context(move |context| {
            sender.send(()).unwrap();
            assert!(context.realm().help_while(|| !condition.load(Ordering::Relaxed)));
        }),
    );
    helping.recv().unwrap();
    realm.queue_job(job(move || changed.store(true, Ordering::Relaxed)));
    realm.wait(done).unwrap();
}

#[test]
fn jobs_that_queue_jobs_are_all_run_once_by_any_number_of_workers() {
    fn spread(depth: u32, ran: Arc<AtomicUsize>) -> Job {
        Job::new(move |context| {
            ran.fetch_add(1, Ordering::Relaxed);
            for _ in 0..if depth > 0 { 3 } else { 0 } {
                context.realm().queue_job(spread(depth - 1, Arc::clone(&ran)));
            }
        })
    }
    for workers in [1, 2, 5] {
        let realm = realm(workers);
        let ran = Arc::new(AtomicUsize::new(0));
        realm.queue_job(spread(8, Arc::clone(&ran)));
        let expected = (3_usize.pow(9) - 1) / 2;
        realm.help_while(|| ran.load(Ordering::Relaxed) < expected);
        drop(realm);
        assert_eq!(ran.load(Ordering::Relaxed), expected);
    }
}

#[test]
fn jobs_that_were_not_run_are_dropped_when_the_realm_ends() {
    struct Dropped(Arc<Mutex<usize>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    fn never(dropped: &Arc<Mutex<usize>>) -> Job {
        let dropped = Dropped(Arc::clone(dropped));
        job(move || drop(dropped))
    }
    let realm = realm(1);
    let dropped = Arc::new(Mutex::new(0));
    let (sender, running) = mpsc::channel();
    let (ending, ended) = mpsc::channel::<()>();
    let counted = Arc::clone(&dropped);
    realm.spawn(
        Spawn::ANYWHERE,
        with_context(move |context| {
            sender.send(()).unwrap();
            // The last handle goes while this runs.
            assert!(ended.recv().is_err());
            while !context.realm().has_triggered(context.realm().spawn(Spawn::ANYWHERE, || ())) {
                context.realm().queue_job(never(&counted));
            }
        }),
    );
    running.recv().unwrap();
    realm.queue_job(never(&dropped));
    drop(ending);
    drop(realm);
    assert_eq!(Arc::strong_count(&dropped), 1);
    assert!(*dropped.lock().unwrap() > 0);
}

fn counting(ran: &Arc<AtomicUsize>) -> Job {
    let ran = Arc::clone(ran);
    job(move || {
        ran.fetch_add(1, Ordering::Relaxed);
    })
}

/// Runs `body` on one worker as a job, on top of which it may help.
fn on_one_worker<T: Send + 'static>(body: impl FnOnce(&WorkerContext<'_>) -> T + Send + 'static) -> T {
    let realm = realm(1);
    let (sender, result) = mpsc::channel();
    realm.queue_job(Job::new(move |context| sender.send(body(context)).unwrap()));
    result.recv().unwrap()
}

#[test]
fn who_helps_runs_jobs_of_its_own_until_it_is_done() {
    let ran = on_one_worker(|context| {
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..10 {
            context.realm().queue_job(counting(&ran));
        }
        let done_at = |count| ran.load(Ordering::Relaxed) == count;
        assert!(context.realm().help_with_own_jobs(|| done_at(4)));
        assert!(done_at(4));
        assert!(!context.realm().help_with_own_jobs(|| false));
        ran.load(Ordering::Relaxed)
    });
    assert_eq!(ran, 10);
}

#[test]
fn what_was_kept_to_be_run_next_goes_to_the_queue_when_a_help_is_done() {
    let order = on_one_worker(|context| {
        let (order, realm) = (Arc::new(Mutex::new(Vec::new())), context.realm());
        let note = |name| {
            let order = Arc::clone(&order);
            job(move || order.lock().unwrap().push(name))
        };
        let (helped, kept) = (Arc::new(AtomicBool::new(false)), note("kept"));
        let done = Arc::clone(&helped);
        realm.queue_job(Job::new(move |context| {
            context.settle(|| context.realm().queue_job(kept));
            done.store(true, Ordering::Relaxed);
        }));
        assert!(realm.help_with_own_jobs(|| helped.load(Ordering::Relaxed)));
        realm.queue_job(note("last"));
        assert!(!realm.help_with_own_jobs(|| false));
        Arc::into_inner(order).unwrap().into_inner().unwrap()
    });
    assert_eq!(order, ["last", "kept"]);
}

#[test]
fn helps_on_top_of_one_another_leave_most_of_the_stack() {
    /// Helps with a job that does the same, until one is not run: notes how deep the stack is then.
    fn deeper(context: &WorkerContext<'_>, bottom: usize, deepest: Arc<AtomicUsize>) {
        let here = 0_u8;
        let found = Arc::clone(&deepest);
        context.realm().queue_job(Job::new(move |context| {
            if deepest.load(Ordering::Relaxed) == 0 {
                deeper(context, bottom, deepest);
            }
        }));
        if !context.realm().help_with_own_jobs(|| found.load(Ordering::Relaxed) > 0) {
            found.store(bottom.abs_diff(&raw const here as usize), Ordering::Relaxed);
        }
    }
    let used = on_one_worker(|context| {
        let (bottom, deepest) = (0_u8, Arc::new(AtomicUsize::new(0)));
        deeper(context, &raw const bottom as usize, Arc::clone(&deepest));
        deepest.load(Ordering::Relaxed)
    });
    assert!(used > 1 << 20 && used < 3 << 20, "{used}");
}

#[test]
fn who_helps_lets_work_of_the_runtime_and_of_others_come_first() {
    on_one_worker(|context| {
        let realm = context.realm();
        realm.queue_job(job(|| ()));
        let ended = realm.spawn(Spawn { class: maniple_realm::Class::Runtime, ..Spawn::ANYWHERE }, || ());
        assert!(!realm.help_with_own_jobs(|| false) && !realm.has_triggered(ended));
    });
    let ran = on_one_worker(|context| {
        context.realm().spawn(Spawn::ANYWHERE, || ());
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..1000 {
            context.realm().queue_job(counting(&ran));
        }
        assert!(!context.realm().help_with_own_jobs(|| false));
        ran.load(Ordering::Relaxed)
    });
    assert!(ran < 100, "{ran}");
}

#[test]
fn a_worker_lets_go_before_it_sleeps() {
    static RESTED: AtomicUsize = AtomicUsize::new(0);
    let realm = realm(2);
    realm.on_rest(|| {
        RESTED.fetch_add(1, Ordering::Relaxed);
    });
    for round in 1..20 {
        realm.wait(realm.spawn(Spawn::ANYWHERE, || ())).unwrap();
        realm.wait_until_idle();
        assert!(RESTED.load(Ordering::Relaxed) >= round);
    }
}
