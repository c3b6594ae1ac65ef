//! Loops that workers share.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::chunks::Chunks;
use crate::model;

/// A loop: what its owner lends to chunks, and what each chunk does.
struct Loop {
    chunks: Chunks,
    lent: UnsafeCell<u32>,
    done: [UnsafeCell<u32>; 3],
}

impl Loop {
    fn new(count: usize) -> Arc<Self> {
        let done = [UnsafeCell::new(0), UnsafeCell::new(0), UnsafeCell::new(0)];
        Arc::new(Self { chunks: Chunks::new(count), lent: UnsafeCell::new(1), done })
    }

    /// Runs chunks while there are any. The one of the number `panicking` has no thread go on.
    fn take_part(&self, panicking: Option<usize>) {
        while let Some(chunk) = self.chunks.take() {
            // SAFETY: loom checks it: nothing changes what is lent before all chunks have ended, and each chunk is run
            // by one thread.
            let lent = self.lent.with(|lent| unsafe { *lent });
            // SAFETY: as above.
            self.done[chunk].with_mut(|done| unsafe { *done += lent });
            if Some(chunk) == panicking {
                self.chunks.give_up();
            }
            self.chunks.end();
        }
    }

    /// Does the owner's part, and gives how often each chunk was run.
    fn own(&self, panicking: Option<usize>) -> [u32; 3] {
        self.take_part(panicking);
        if !self.chunks.have_ended() {
            self.chunks.wait();
        }
        // SAFETY: loom checks that no chunk uses it any more.
        self.lent.with_mut(|lent| unsafe { *lent = 0 });
        // SAFETY: and that all have ended.
        [0, 1, 2].map(|chunk| self.done[chunk].with(|done| unsafe { *done }))
    }
}

/// Owner and helpers of a loop, which come at any time.
fn share(helpers: usize, count: usize, panicking: Option<usize>) -> [u32; 3] {
    let shared = Loop::new(count);
    let helpers: Vec<_> = (0..helpers)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || shared.take_part(panicking))
        })
        .collect();
    let done = shared.own(panicking);
    helpers.into_iter().for_each(|helper| helper.join().unwrap());
    done
}

#[test]
fn each_chunk_is_run_once_before_the_owner_goes_on() {
    model(|| assert_eq!(share(1, 3, None), [1, 1, 1]));
}

#[test]
fn several_may_take_part_or_come_too_late() {
    model(|| assert_eq!(share(2, 2, None), [1, 1, 0]));
}

#[test]
fn what_is_given_up_is_not_waited_for() {
    model(|| {
        let done = share(2, 3, Some(0));
        assert_eq!(done[0], 1);
        assert!(done.iter().all(|&runs| runs <= 1));
    });
    model(|| assert_eq!(share(1, 3, Some(1))[..2], [1, 1]));
}
