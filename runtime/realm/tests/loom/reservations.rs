//! Reservations.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::lock::{EXCLUSIVE, Lock};
use crate::model;

/// A reservation, and the value that it guards.
struct Guarded {
    lock: Lock,
    inside: UnsafeCell<u32>,
}

impl Guarded {
    /// Acquires; the visit that gets the reservation, now or by another's release, does its work at once and releases.
    fn visit(&self, mode: u32, ticket: u64) {
        if self.lock.acquire(mode, || ticket).is_none() {
            self.hold(mode);
        }
    }

    fn hold(&self, mode: u32) {
        if mode == EXCLUSIVE {
            // SAFETY: loom checks that no other thread is here.
            self.inside.with_mut(|inside| unsafe { *inside += 1 });
        } else {
            // SAFETY: as above; readers may be many.
            self.inside.with(|inside| unsafe { std::hint::black_box(*inside) });
        }
        for ticket in self.lock.release().unwrap() {
            self.hold(ticket as u32);
        }
    }
}

fn reservation_with(modes: [u32; 3]) {
    model(move || {
        let guarded = Arc::new(Guarded { lock: Lock::new(), inside: UnsafeCell::new(0) });
        let threads: Vec<_> = modes[1..]
            .iter()
            .map(|&mode| {
                let guarded = guarded.clone();
                thread::spawn(move || guarded.visit(mode, u64::from(mode)))
            })
            .collect();
        guarded.visit(modes[0], u64::from(modes[0]));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let writers = modes.iter().filter(|&&mode| mode == EXCLUSIVE).count() as u32;
        // SAFETY: the threads have ended.
        assert_eq!(guarded.inside.with(|inside| unsafe { *inside }), writers);
        assert!(guarded.lock.release().is_err());
    });
}

#[test]
fn exclusive_holders_exclude_one_another_and_all_have_their_turn() {
    reservation_with([EXCLUSIVE, EXCLUSIVE, EXCLUSIVE]);
}

#[test]
fn readers_and_a_writer_exclude_one_another_and_all_have_their_turn() {
    reservation_with([1, EXCLUSIVE, 1]);
}
