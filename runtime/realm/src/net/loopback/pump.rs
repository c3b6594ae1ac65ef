//! A thread that steps a network.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::Network;

/// A thread that steps a network, until this is dropped.
pub struct Pump {
    network: Network,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pump {
    pub(super) fn start(network: &Network) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (network, stop) = (network.clone(), Arc::clone(&stop));
            move || {
                while !stop.load(Ordering::Acquire) {
                    if !network.step() {
                        let mut schedule = network.core.schedule.lock();
                        // Looked at under the lock that a signalling thread has taken before.
                        if !schedule.has_events() && !stop.load(Ordering::Acquire) {
                            network.core.work.wait(&mut schedule);
                        }
                    }
                }
            }
        });
        Self { network: network.clone(), stop, thread: Some(thread) }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        {
            let _schedule = self.network.core.schedule.lock();
            self.stop.store(true, Ordering::Release);
        }
        self.network.core.work.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}
