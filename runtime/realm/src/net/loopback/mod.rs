//! Many nodes in one process, for tests and simulation.
//!
//! Nothing moves by itself: the holder of the [`Network`] calls [`step`](Network::step), which receives one frame at
//! one node, handlers and all, on the calling thread. Which one is chosen by a seed: each frame gets a delay, in ticks
//! of a time that exists in the network alone, but never overtakes another one of its pair and lane. So a run is a
//! function of the seed and of what the nodes do. Nothing here reads a clock or starts a thread, unless
//! [`pump`](Network::pump) asks for one that steps. A pair of nodes that never talk costs nothing.
//!
//! Faults: [`kill`](Network::kill), [`stall`](Network::stall), [`silence`](Network::silence).

mod pump;
mod schedule;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

pub use self::pump::Pump;
use self::schedule::{Schedule, ScheduledEvent, Standing, What};
use super::error::Loss;
use super::frame::Body;
use super::transport::{Close, Flush, Frames, Receiver, Transport, hand_over};
use crate::machine::NodeId;

/// Nodes in one process; a handle, cheap to clone.
#[derive(Clone)]
pub struct Network {
    core: Arc<Core>,
}

struct Core {
    nodes: usize,
    schedule: Mutex<Schedule>,
    /// Held while a frame is received.
    stepping: Mutex<()>,
    /// Signalled when there is something to do, for a pump.
    work: Condvar,
}

/// The frames and bytes that a node has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames: messages, parts of long ones, chunks, and what protocols say.
    pub frames: u64,
    /// Bytes of heads and bodies.
    pub bytes: u64,
}

impl Network {
    /// Nodes whose frames arrive in the order in which they were sent.
    ///
    /// # Panics
    ///
    /// If there are no nodes, or more than 65,536.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        Self::seeded(nodes, 0, 0)
    }

    /// Nodes whose frames take up to `longest_delay` ticks each, as the seed decides.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    #[must_use]
    pub fn seeded(nodes: usize, seed: u64, longest_delay: u64) -> Self {
        assert!((1..=1 << 16).contains(&nodes), "a network has 1 to 65,536 nodes, not {nodes}");
        let schedule = Mutex::new(Schedule::new(nodes, seed, longest_delay));
        Self { core: Arc::new(Core { nodes, schedule, stepping: Mutex::new(()), work: Condvar::new() }) }
    }

    /// The transport of a node, for [`Endpoint::start`](super::Endpoint::start). What is sent to the node before waits
    /// for it.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[must_use]
    pub fn node(&self, rank: NodeId) -> Arc<dyn Transport> {
        assert!(usize::from(rank.0) < self.core.nodes, "{rank} is not one of {} nodes", self.core.nodes);
        Arc::new(LoopbackNode { rank, core: Arc::clone(&self.core) })
    }

    /// Receives one frame somewhere; false if there is nothing to be received.
    ///
    /// # Panics
    ///
    /// If it is called by a handler, or by two threads at once: what happens would depend on more than the seed.
    pub fn step(&self) -> bool {
        let turn = self.core.stepping.try_lock();
        assert!(turn.is_some(), "the network is being stepped already: step from one thread, and not from handlers");
        let next = self.core.schedule.lock().next();
        let Some((event, receiver)) = next else { return false };
        let ScheduledEvent { to, what, .. } = event;
        match (what, receiver) {
            (What::Frame { from, frame }, Some(receiver)) => {
                if let Err(violation) = hand_over(&*receiver, from, frame) {
                    receiver.lost(from, Loss::Violation(violation.to_string()));
                    self.core.schedule.lock().forget(from, to);
                }
            }
            (What::Loss { of, loss }, Some(receiver)) => receiver.lost(of, loss),
            // For a node that is gone. Dropped here, without the lock: what a frame holds may send when it is dropped.
            (_, None) => {}
        }
        true
    }

    /// Steps until nothing is left to be received.
    pub fn run(&self) {
        while self.step() {}
    }

    /// Whether there is anything to be received.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.core.schedule.lock().has_events()
    }

    /// The network's time, in ticks.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.core.schedule.lock().now()
    }

    /// The frames and bytes that a node has sent so far.
    #[must_use]
    pub fn traffic(&self, node: NodeId) -> Traffic {
        self.core.schedule.lock().traffic(node)
    }

    /// A node dies: it receives nothing any more, and the others are told that its connection was closed, each after a
    /// delay, before or after what the node had sent.
    pub fn kill(&self, node: NodeId) {
        self.end(node, Some(&Loss::Closed));
    }

    /// The others are told that nothing was heard of a node for so long, and hear nothing of it from then on. What it
    /// does itself goes on.
    pub fn silence(&self, node: NodeId, silence: Duration) {
        self.core.schedule.lock().lose(node, &Loss::Silent { silence });
        self.core.work.notify_all();
    }

    /// Holds back the frames from one node to another, until [`resume`](Self::resume).
    pub fn stall(&self, from: NodeId, to: NodeId) {
        self.core.schedule.lock().stall(from, to);
    }

    /// Lets frames that were [held back](Self::stall) go on.
    pub fn resume(&self, from: NodeId, to: NodeId) {
        self.core.schedule.lock().resume(from, to);
        self.core.work.notify_all();
    }

    /// Starts a thread that steps, until the value is dropped.
    #[must_use]
    pub fn pump(&self) -> Pump {
        Pump::start(self)
    }

    fn end(&self, node: NodeId, loss: Option<&Loss>) {
        let receiver = {
            let mut schedule = self.core.schedule.lock();
            if schedule.standing(node) != Standing::Present {
                return;
            }
            if let Some(loss) = loss {
                schedule.lose(node, loss);
            }
            schedule.leave(node)
        };
        self.core.work.notify_all();
        drop(receiver);
    }
}

/// A node's transport.
struct LoopbackNode {
    rank: NodeId,
    core: Arc<Core>,
}

impl Transport for LoopbackNode {
    fn rank(&self) -> NodeId {
        self.rank
    }

    fn nodes(&self) -> usize {
        self.core.nodes
    }

    fn start(&self, receiver: Arc<dyn Receiver>) {
        self.core.schedule.lock().start(self.rank, receiver);
        self.core.work.notify_all();
    }

    /// Here nothing is gained by waiting for more: every frame leaves at once.
    fn send(&self, to: NodeId, frames: Frames, _flush: Flush) {
        let refused = {
            let mut schedule = self.core.schedule.lock();
            if schedule.standing(self.rank) == Standing::Present {
                for frame in frames {
                    let bytes = frame.head.len() + Body::len(&frame.body);
                    schedule.send(self.rank, to, frame, bytes);
                }
                None
            } else {
                Some(frames)
            }
        };
        self.core.work.notify_all();
        drop(refused);
    }

    fn flush(&self) {}

    fn close(&self, close: Close) {
        let network = Network { core: Arc::clone(&self.core) };
        match close {
            Close::Orderly => network.end(self.rank, None),
            Close::Abort(reason) => network.end(self.rank, Some(&Loss::Aborted(reason))),
        }
    }

    fn join(&self) {}
}
