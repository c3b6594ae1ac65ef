//! Threads that read and write files, so that no worker waits for a disk.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::threads::{Home, Thread, simulated};

/// So many files are read or written at a time. A disk is busy with a few, but some may be on a network's disk that
/// does not answer, and others must not wait for those.
const MOST_THREADS: usize = 32;

/// The stack of a thread, in bytes: enough to move bytes between a file and memory.
const STACK: usize = 256 << 10;

type Work = Box<dyn FnOnce() + Send>;

/// Threads that wait for files. They are started when there is work, and end when there is none.
#[derive(Clone)]
pub struct IoThreads(Arc<Threads>);

struct Threads {
    queue: Mutex<Queue>,
    /// No thread is there any more.
    idle: Condvar,
    /// Work may come with a message, which no thread of a simulation receives.
    home: Option<Home>,
}

impl Default for IoThreads {
    fn default() -> Self {
        Self(Arc::new(Threads { queue: Mutex::default(), idle: Condvar::new(), home: simulated::home() }))
    }
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    threads: usize,
}

impl IoThreads {
    /// Has a thread do work that waits for files. Work is begun in this order. If the system refuses a thread when
    /// there is none, it is done here.
    ///
    /// It must not panic: nothing would hear of that.
    pub fn run(&self, work: impl FnOnce() + Send + 'static) {
        let mut queue = self.0.queue.lock();
        queue.waiting.push_back(Box::new(work));
        if queue.threads == MOST_THREADS {
            return;
        }
        queue.threads += 1;
        drop(queue);
        let (own, name) = (self.clone(), "maniple-io".to_owned());
        if Thread::start_at(self.0.home, name, STACK, move || own.work()).is_err() {
            self.work();
        }
    }

    /// Waits until all work is done, and what it held has been dropped. Not for work itself, which would wait for its
    /// own end.
    pub fn wait_until_idle(&self) {
        if simulated::is_inside() {
            simulated::wait_until("files to be read and written", &|| self.0.queue.lock().threads == 0);
            return;
        }
        let mut queue = self.0.queue.lock();
        while queue.threads > 0 {
            self.0.idle.wait(&mut queue);
        }
    }

    /// Does what there is.
    fn work(&self) {
        loop {
            let next = {
                let mut queue = self.0.queue.lock();
                let next = queue.waiting.pop_front();
                queue.threads -= usize::from(next.is_none());
                if queue.threads == 0 {
                    self.0.idle.notify_all();
                }
                next
            };
            match next {
                Some(work) => {
                    simulated::turn();
                    work();
                }
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn all_work_is_done_and_no_more_threads_at_a_time_than_allowed() {
        let (threads, (sender, receiver)) = (IoThreads::default(), mpsc::channel());
        for number in 0..100 {
            let (sender, own) = (sender.clone(), threads.clone());
            threads.run(move || {
                let working = own.0.queue.lock().threads;
                sender.send((number, working)).unwrap();
            });
        }
        let mut done: Vec<(usize, usize)> = receiver.iter().take(100).collect();
        done.sort_unstable();
        assert!(done.iter().map(|(number, _)| *number).eq(0..100));
        assert!(done.iter().all(|(_, working)| (1..=MOST_THREADS).contains(working)));
    }
}
