//! Several threads that read from one connection, one at a time, as `net/tcp/reading.rs` does.

use loom::sync::Arc;
use loom::thread;

use crate::model;
use crate::sync::{AtomicU32, Ordering};
use crate::turn::Turns;

/// A connection from which as many bytes can be read as have come.
struct Connection {
    turns: Turns,
    come: AtomicU32,
    /// How many were read, by the thread that had the turn.
    read: AtomicU32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Read,
    Nothing,
    Busy,
}

impl Connection {
    fn new() -> Arc<Self> {
        Arc::new(Self { turns: Turns::default(), come: AtomicU32::new(0), read: AtomicU32::new(0) })
    }

    fn attempt(&self) -> (Attempt, bool) {
        let Some(turn) = self.turns.begin() else { return (Attempt::Busy, false) };
        // One has the turn, so what it loads and stores need not be one step.
        let (come, read) = (self.come.load(Ordering::Relaxed), self.read.load(Ordering::Relaxed));
        self.read.store(come, Ordering::Relaxed);
        let attempt = if come > read { Attempt::Read } else { Attempt::Nothing };
        (attempt, turn.end())
    }

    /// As a worker.
    fn look(&self) {
        let (_, mut is_left) = self.attempt();
        while is_left {
            is_left = match self.attempt() {
                (Attempt::Read, _) => true,
                (Attempt::Nothing, is_left) => is_left,
                (Attempt::Busy, _) => !self.turns.leave(),
            };
        }
    }

    /// As the task that is told when something has come.
    fn read(&self) {
        loop {
            match self.attempt() {
                (Attempt::Read, _) => {}
                (Attempt::Nothing, is_left) if is_left => {}
                (Attempt::Nothing, _) => break,
                (Attempt::Busy, _) if self.turns.leave() => break,
                (Attempt::Busy, _) => {}
            }
        }
    }

    /// Something comes, and the task is told of it.
    fn receive(&self) {
        self.come.fetch_add(1, Ordering::Relaxed);
        self.read();
    }

    fn is_read(&self) -> bool {
        self.come.load(Ordering::Relaxed) == self.read.load(Ordering::Relaxed)
    }
}

#[test]
fn what_the_task_leaves_to_a_worker_is_read() {
    model(|| {
        let connection = Connection::new();
        let worker = thread::spawn({
            let connection = Arc::clone(&connection);
            move || connection.look()
        });
        connection.receive();
        connection.receive();
        worker.join().unwrap();
        assert!(connection.is_read());
    });
}

#[test]
fn what_is_left_is_read_whoever_of_several_workers_has_the_turn() {
    model(|| {
        let connection = Connection::new();
        let workers = [(); 2].map(|()| {
            let connection = Arc::clone(&connection);
            thread::spawn(move || connection.look())
        });
        connection.receive();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert!(connection.is_read());
    });
}
