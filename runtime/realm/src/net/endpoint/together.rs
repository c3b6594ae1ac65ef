//! The agreements of all nodes: barriers, quiescence, and the end of the job.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::barrier::{Barrier, BarrierStep};
use super::quiescence::{Counts, Quiescence};
use super::{Done, Endpoint};
use crate::machine::NodeId;
use crate::net::error::NetError;
use crate::net::frame::Violation;
use crate::net::transport::Close;

pub(super) struct Together {
    barrier: Barrier<Done>,
    quiescence: Quiescence<Done>,
}

impl Together {
    pub(super) fn new(rank: NodeId, nodes: usize) -> Self {
        Self { barrier: Barrier::new(rank, nodes), quiescence: Quiescence::new(rank, nodes) }
    }
}

/// Says that a node is busy with something that the network does not see, as long as it lives: quiescence is not found
/// meanwhile.
pub struct Activity {
    endpoint: Arc<Endpoint>,
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.endpoint.deactivate();
    }
}

impl Endpoint {
    /// Comes to a barrier; calls when all nodes have come to it. It says nothing about messages: those sent before may
    /// be under way.
    pub fn barrier(&self, call: impl FnOnce(Result<(), NetError>) + Send + 'static) {
        let call: Done = Box::new(call);
        self.take_part(call, |together, call| together.barrier.enter(call));
        self.transport.flush();
    }

    /// Comes to the detection of quiescence; calls when, after all nodes have come to it, nothing happens any more: no
    /// message is under way or being handled, no transfer unfinished, and no [`Activity`] alive, on any node.
    ///
    /// Work that a node begins of its own accord, outside of handlers and activities, is not waited for: it may begin
    /// after that moment.
    pub fn quiescence(&self, call: impl FnOnce(Result<(), NetError>) + Send + 'static) {
        let call: Done = Box::new(call);
        self.take_part(call, |together, call| {
            together.quiescence.enter(call);
            // Before anything is looked at: a thread that makes the node passive looks at it afterwards, and one of the
            // two sees the other. Under the lock, as the thread that had it before us may have found no waiter, and
            // said so; the one that has it after us finds this call.
            self.is_watching.store(true, Ordering::SeqCst);
            let mut step = BarrierStep::default();
            together.quiescence.settle(&|| self.sample(), &mut step);
            self.is_watching.store(together.quiescence.is_awaited(), Ordering::SeqCst);
            step
        });
        self.transport.flush();
    }

    /// Says that this node is busy until the value is dropped. Take it before the reason to be busy could be over.
    #[must_use]
    pub fn activity(self: &Arc<Self>) -> Activity {
        self.activate();
        Activity { endpoint: Arc::clone(self) }
    }

    /// Leaves the job when all nodes want to, after all that is under way has been dealt with; calls when they have
    /// agreed. A process that is about to exit then [waits](Self::join) until the others know too.
    pub fn shutdown(self: &Arc<Self>, call: impl FnOnce(Result<(), NetError>) + Send + 'static) {
        let endpoint = Arc::downgrade(self);
        self.quiescence(move |quiet| {
            let endpoint = endpoint.upgrade().ok_or(NetError::Closed);
            match quiet.and(endpoint) {
                Err(error) => call(Err(error)),
                // No node goes before all know that it is the end: else going would look like failing.
                Ok(endpoint) => {
                    let leaver = Arc::downgrade(&endpoint);
                    endpoint.barrier(move |met| {
                        if met.is_ok()
                            && let Some(endpoint) = leaver.upgrade()
                            && !endpoint.has_closed.swap(true, Ordering::AcqRel)
                        {
                            endpoint.transport.close(Close::Orderly);
                        }
                        call(met);
                    });
                }
            }
        });
    }

    pub(super) fn activate(&self) {
        self.counters.active.fetch_add(1, Ordering::SeqCst);
        self.counters.activations.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn deactivate(&self) {
        if self.counters.active.fetch_sub(1, Ordering::SeqCst) == 1 && self.is_watching.load(Ordering::SeqCst) {
            self.settle();
            self.transport.flush();
        }
    }

    /// Our counts, if we are passive.
    ///
    /// They are not read at one moment. That does no harm: two answers with equal sums mean that none of them changed
    /// from its first reading to its second, between which the decisive moment lies. `activations` is read before
    /// `active`: if it does not change, neither does the zero.
    fn sample(&self) -> Option<Counts> {
        let counters = &self.counters;
        let activations = counters.activations.load(Ordering::SeqCst);
        let handled = counters.handled.load(Ordering::SeqCst);
        let sent = counters.sent.load(Ordering::SeqCst);
        (counters.active.load(Ordering::SeqCst) == 0).then_some(Counts { sent, handled, activations })
    }

    pub(super) fn settle(&self) {
        let _ = self.advance_quiescence(|_, _| Ok(()));
    }

    pub(super) fn advance_quiescence(
        &self,
        change: impl FnOnce(&mut Quiescence<Done>, &mut BarrierStep<Done>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let mut step = BarrierStep::default();
        {
            let quiescence = &mut self.together.lock().quiescence;
            change(quiescence, &mut step)?;
            quiescence.settle(&|| self.sample(), &mut step);
            self.is_watching.store(quiescence.is_awaited(), Ordering::SeqCst);
            self.send_all(&mut step);
        }
        step.done.into_iter().for_each(|call| call(Ok(())));
        Ok(())
    }

    pub(super) fn barrier_round(&self, from: NodeId, generation: u64, round: u32) -> Result<(), Violation> {
        let mut together = self.together.lock();
        let mut step = together.barrier.receive(from, generation, round)?;
        self.send_all(&mut step);
        drop(together);
        step.done.into_iter().for_each(|call| call(Ok(())));
        Ok(())
    }

    /// Adds a waiter, unless there can be none any more.
    fn take_part(&self, call: Done, enter: impl FnOnce(&mut Together, Done) -> BarrierStep<Done>) {
        let mut together = self.together.lock();
        // Looked at under the lock: a thread that closes the endpoint or loses a node takes it afterwards, to find the
        // waiters.
        let error = if self.has_closed.load(Ordering::Acquire) {
            Some(NetError::Closed)
        } else {
            self.first_lost.get().map(|(node, loss)| NetError::Lost { node: *node, loss: loss.clone() })
        };
        if let Some(error) = error {
            drop(together);
            return call(Err(error));
        }
        let mut step = enter(&mut together, call);
        self.send_all(&mut step);
        drop(together);
        step.done.into_iter().for_each(|call| call(Ok(())));
    }

    /// Under the lock, so that two threads' steps leave in the order in which they were taken: sending never receives.
    fn send_all(&self, step: &mut BarrierStep<Done>) {
        step.send.drain(..).for_each(|(to, header)| self.send_header(to, header));
    }

    pub(super) fn give_up_together(&self, error: &NetError) {
        let waiting = {
            let mut together = self.together.lock();
            let mut waiting = together.barrier.give_up();
            waiting.extend(together.quiescence.give_up());
            waiting
        };
        waiting.into_iter().for_each(|call| call(Err(error.clone())));
    }
}
