//! The thread that makes all calls of MPI: it receives, runs handlers, sends the frames that other threads have queued,
//! looks after heartbeats, and ends it all.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Events, Sender};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mpi::environment::Universe;
use mpi::request::Request;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Equivalence, Source};
use mpi::{Tag, Threading};

use super::error::JoinError;
use super::flight::Flight;
use super::{Settings, SharedMpi};
use crate::machine::NodeId;
use crate::net::build::BuildId;
use crate::net::error::Loss;
use crate::net::frame::{Frame, Header, Lane, MAX_BODY, MAX_HEADER, Violation};
use crate::net::outbox::{FULL, Outbox, word};
use crate::net::transport::{BytesPlace, Close, Flush, Receiver, hand_over};
use crate::net::wire::{MAX_PREFIX, cut};

/// A lane is a tag: MPI keeps the order of what has one sender, one receiver and one tag.
const LANES: [(Lane, Tag); 2] = [(Lane::Messages, 1), (Lane::Bulk, 2)];

/// How much of a lane to one node MPI is given at once. What is sent meanwhile gathers.
const MOST_SENDING: u8 = 2;

/// How much MPI is given room for at once.
const MOST_RECEIVING: usize = 64;

/// The longest message: what has gathered, and one frame.
const LONGEST: usize = FULL + MAX_PREFIX + MAX_HEADER + MAX_BODY;

/// How long to look for work all the time; the same while MPI moves something, which it does only when it is called;
/// and then how long to sleep at first and at last before looking again.
const AWAKE: Duration = Duration::from_micros(100);
const AWAKE_IN_FLIGHT: Duration = Duration::from_millis(5);
const SHORTEST_SLEEP: Duration = Duration::from_micros(20);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// A request to the thread.
pub(super) enum MpiEvent {
    Start(Arc<dyn Receiver>),
    Close(Close),
}

/// The thread: initialises MPI, tells how that went, drives it, and finalises it.
pub(super) fn run(settings: Settings, joined: &Sender<Result<Arc<SharedMpi>, JoinError>>, events: Events<MpiEvent>) {
    match begin() {
        Err(error) => {
            let _ = joined.send(Err(error));
        }
        Ok((universe, world, shared)) => {
            let is_clean =
                joined.send(Ok(Arc::clone(&shared))).is_ok() && Driver::new(settings, shared, &world, events).drive();
            if is_clean {
                // In this order: a communicator is freed before the end.
                drop(world);
                drop(universe);
            } else {
                // Finalising waits for all nodes, and one of them is gone, or we are to be.
                mem::forget((world, universe));
            }
        }
    }
}

fn begin() -> Result<(Universe, SimpleCommunicator, Arc<SharedMpi>), JoinError> {
    let ours = BuildId::of_this_program();
    let ours = ours.map_err(|error| JoinError::Io {
        what: "reading this program's file, after which its build is named",
        error,
    })?;
    let (universe, provided) = mpi::initialize_with_threading(Threading::Funneled).ok_or(JoinError::Started)?;
    if provided < Threading::Funneled {
        return Err(JoinError::NoThreads);
    }
    // Of our own: whatever else is sent, it does not mix.
    let world = universe.world().duplicate();
    let nodes = world.size() as usize;
    if nodes > 1 << 16 {
        return Err(JoinError::TooManyNodes { nodes });
    }
    let mut builds = vec![0_u64; nodes];
    world.all_gather_into(&hash(&ours), &mut builds[..]);
    if let Some(different) = builds.iter().position(|build| *build != builds[0]) {
        return Err(JoinError::DifferentBuild { node: NodeId(different as u16), ours });
    }
    let shared = SharedMpi {
        rank: NodeId(world.rank() as u16),
        outboxes: (0..nodes).map(|_| Outbox::default()).collect(),
        listed: Default::default(),
        own: Default::default(),
        wants_flush: AtomicBool::new(false),
        is_closing: AtomicBool::new(false),
        thread: thread::current(),
    };
    Ok((universe, world, Arc::new(shared)))
}

/// The same for one build on all machines; its name has a check sum in it.
fn hash(build: &BuildId) -> u64 {
    build
        .as_str()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The state kept of another node.
struct Peer {
    /// It sends nothing any more, or this node does not listen to it.
    has_ended: bool,
    /// It has given up, or gone without a last word.
    is_lost: bool,
    /// It has given up: it stays for a moment, until all have heard.
    has_given_up: bool,
    /// Whether something has come since the last heartbeat.
    has_spoken: bool,
    /// Whether something was sent since the last heartbeat.
    was_sent_to: bool,
    /// Since when nothing has come.
    silent_since: Instant,
    /// How much MPI is sending to it, in each lane.
    sending: [u8; 2],
}

struct Sending {
    to: NodeId,
    lane: usize,
    flight: Flight,
}

struct Receiving {
    from: NodeId,
    lane: usize,
    flight: Flight,
}

struct Driver<'a> {
    settings: Settings,
    shared: Arc<SharedMpi>,
    world: &'a SimpleCommunicator,
    events: Events<MpiEvent>,
    receiver: Option<Arc<dyn Receiver>>,
    peers: Vec<Peer>,
    /// Nodes with something in their outbox.
    active: Vec<NodeId>,
    sending: Vec<Sending>,
    /// In the order in which they came.
    receiving: Vec<Receiving>,
    last_beat: Instant,
    /// Since when this node has been closing, and for how long.
    closing: Option<(Instant, Duration)>,
    last_meeting: LastMeeting,
}

/// The last meeting of all nodes. A node comes to it when it has heard the last word of all others and has sent all it
/// had to.
///
/// Bulk frames of a node may come after its last word, and MPI must not be finalised while a message of another node
/// still needs this node to receive it. Nor may it be finalised where a node has left: finalising waits for all. A node
/// that has come may have left before the last one came. So the nodes meet twice, and the second time all come at once.
#[derive(Default)]
struct LastMeeting {
    /// How often all have met.
    met: u8,
    /// This node waits for the others.
    waiting: Option<Request<'static, ()>>,
}

impl LastMeeting {
    /// Comes, or looks again whether all others have come.
    fn has_met(&mut self, world: &SimpleCommunicator) -> bool {
        let request = self.waiting.take().unwrap_or_else(|| world.immediate_barrier());
        if let Err(request) = request.test() {
            self.waiting = Some(request);
            return false;
        }
        self.met += 1;
        true
    }

    /// Goes, with the others or without.
    fn leave(self) {
        // A request that is dropped panics.
        mem::forget(self.waiting);
    }
}

impl<'a> Driver<'a> {
    fn new(
        settings: Settings,
        shared: Arc<SharedMpi>,
        world: &'a SimpleCommunicator,
        events: Events<MpiEvent>,
    ) -> Self {
        let now = Instant::now();
        let peer = |rank| Peer {
            has_ended: rank == usize::from(shared.rank.0),
            is_lost: false,
            has_given_up: false,
            has_spoken: true,
            was_sent_to: true,
            silent_since: now,
            sending: [0; 2],
        };
        Self {
            settings,
            world,
            events,
            receiver: None,
            peers: (0..shared.outboxes.len()).map(peer).collect(),
            active: Vec::new(),
            sending: Vec::new(),
            receiving: Vec::new(),
            last_beat: now,
            closing: None,
            last_meeting: LastMeeting::default(),
            shared,
        }
    }

    /// Goes on until the end; gives whether all nodes have come to it.
    fn drive(mut self) -> bool {
        let (mut worked_at, mut sleep) = (Instant::now(), SHORTEST_SLEEP);
        loop {
            let mut has_worked = self.hear();
            let has_received = self.receive();
            has_worked |= has_received | self.send(has_received);
            let now = Instant::now();
            self.look_at_heartbeats(now);
            if let Some(is_clean) = self.end(now) {
                self.last_meeting.leave();
                return is_clean;
            }
            let awake = if self.sending.is_empty() && self.receiving.is_empty() { AWAKE } else { AWAKE_IN_FLIGHT };
            if has_worked {
                (worked_at, sleep) = (now, SHORTEST_SLEEP);
            } else if now - worked_at < awake {
                thread::yield_now();
            } else {
                // MPI wakes no thread. The thread that sends does.
                thread::park_timeout(sleep);
                sleep = (sleep * 2).min(LONGEST_SLEEP);
            }
        }
    }

    fn hear(&mut self) -> bool {
        let mut has_heard = false;
        while let Ok(event) = self.events.try_recv() {
            has_heard = true;
            match event {
                MpiEvent::Start(receiver) => {
                    let now = Instant::now();
                    self.peers.iter_mut().for_each(|peer| peer.silent_since = now);
                    self.receiver = Some(receiver);
                }
                MpiEvent::Close(close) => self.close(close),
            }
        }
        has_heard
    }

    /// Takes what has come, and what this node has sent to itself.
    fn receive(&mut self) -> bool {
        if self.receiver.is_none() && self.closing.is_none() {
            // It waits until it is wanted.
            return false;
        }
        let mut has_received = self.probe();
        let mut waiting = mem::take(&mut self.receiving);
        let mut is_blocked = Vec::new();
        for Receiving { from, lane, flight } in waiting.drain(..) {
            if is_blocked.contains(&(from, lane)) {
                self.receiving.push(Receiving { from, lane, flight });
                continue;
            }
            match flight.test() {
                Ok(bytes) => {
                    has_received = true;
                    self.take(from, bytes.into());
                }
                Err(flight) => {
                    // What came later is not to overtake it.
                    is_blocked.push((from, lane));
                    self.receiving.push(Receiving { from, lane, flight });
                }
            }
        }
        has_received | self.receive_own()
    }

    /// Makes room for what MPI has at hand.
    fn probe(&mut self) -> bool {
        let mut has_found = false;
        for (lane, (_, tag)) in LANES.into_iter().enumerate() {
            while self.receiving.len() < MOST_RECEIVING
                && let Some((message, status)) = self.world.any_process().immediate_matched_probe_with_tag(tag)
            {
                has_found = true;
                let from = NodeId(status.source_rank() as u16);
                let length = usize::try_from(status.count(u8::equivalent_datatype())).unwrap_or(usize::MAX);
                if length > LONGEST {
                    // It stays where it is.
                    mem::forget(message);
                    let (part, found, limit) = ("frames", length as u64, LONGEST as u64);
                    self.lose(from, Loss::Violation(Violation::TooLong { part, found, limit }.to_string()));
                    continue;
                }
                self.receiving.push(Receiving { from, lane, flight: Flight::receive(message, length) });
            }
        }
        has_found
    }

    fn receive_own(&mut self) -> bool {
        let Some(receiver) = self.receiver.clone() else { return false };
        let mut has_received = false;
        loop {
            let frame = self.shared.own.lock().pop_front();
            let Some(frame) = frame else { return has_received };
            has_received = true;
            if self.is_closing() {
                continue;
            }
            if let Err(violation) = hand_over(&*receiver, self.shared.rank, frame) {
                receiver.lost(self.shared.rank, Loss::Violation(violation.to_string()));
            }
        }
    }

    fn is_closing(&self) -> bool {
        self.shared.is_closing.load(Ordering::Relaxed)
    }

    /// All frames of a message.
    fn take(&mut self, from: NodeId, mut bytes: Bytes) {
        self.peers[usize::from(from.0)].has_spoken = true;
        while !bytes.is_empty() && !self.peers[usize::from(from.0)].has_ended {
            if let Err(violation) = self.take_frame(from, &mut bytes) {
                self.lose(from, Loss::Violation(violation.to_string()));
            }
        }
    }

    fn take_frame(&mut self, from: NodeId, bytes: &mut Bytes) -> Result<(), Violation> {
        const CUT_OFF: Violation = Violation::OutOfPlace("a frame that is cut off");
        let decoded = Header::decode(bytes)?.ok_or(CUT_OFF)?;
        if bytes.len() < decoded.body.end {
            return Err(CUT_OFF);
        }
        let frame = bytes.split_to(decoded.body.end);
        let (header, head, body) = (decoded.header, &frame[decoded.head], frame.slice(decoded.body));
        match header {
            Header::Heartbeat => return Ok(()),
            Header::Goodbye => {
                self.peers[usize::from(from.0)].has_ended = true;
                return Ok(());
            }
            Header::Abort => {
                self.lose(from, Loss::Aborted(String::from_utf8_lossy(&body).into_owned()));
                return Ok(());
            }
            _ => {}
        }
        let Some(receiver) = self.receiver.clone().filter(|_| !self.is_closing()) else { return Ok(()) };
        if !header.is_placed() {
            return receiver.receive(from, &header, head, body);
        }
        if let BytesPlace::Memory(span) = receiver.place(from, &header, body.len())? {
            span.write(|place| place.copy_from_slice(&body));
        }
        receiver.placed(from, &header, body.len());
        Ok(())
    }

    /// Gives MPI what is to leave, and takes back what has left.
    fn send(&mut self, has_received: bool) -> bool {
        // Before the list is looked at: what was queued before a flush was asked for is in it.
        let flush = self.shared.wants_flush.swap(false, Ordering::AcqRel) || has_received;
        self.active.append(&mut self.shared.listed.lock());
        let mut has_sent = self.take_back();
        let shared = Arc::clone(&self.shared);
        let mut active = mem::take(&mut self.active);
        active.retain(|&to| {
            let Some(outbox) = shared.outbox(to) else { return false };
            if flush {
                outbox.flush();
            }
            for (lane, (which, tag)) in LANES.into_iter().enumerate() {
                while self.peers[usize::from(to.0)].sending[lane] < MOST_SENDING
                    && let Some(bytes) = outbox.take(which)
                {
                    has_sent = true;
                    let peer = &mut self.peers[usize::from(to.0)];
                    peer.sending[lane] += 1;
                    peer.was_sent_to = true;
                    let flight = Flight::send(&self.world.process_at_rank(i32::from(to.0)), tag, bytes);
                    self.sending.push(Sending { to, lane, flight });
                }
            }
            !outbox.unlist()
        });
        self.active.append(&mut active);
        // Much of what is short has left already.
        has_sent | self.take_back()
    }

    fn take_back(&mut self) -> bool {
        let before = self.sending.len();
        let mut sending = mem::take(&mut self.sending);
        for Sending { to, lane, flight } in sending.drain(..) {
            match flight.test() {
                Ok(_) => self.peers[usize::from(to.0)].sending[lane] -= 1,
                Err(flight) => self.sending.push(Sending { to, lane, flight }),
            }
        }
        self.sending.len() < before
    }

    /// A node sends nothing any more.
    fn lose(&mut self, node: NodeId, loss: Loss) {
        let peer = &mut self.peers[usize::from(node.0)];
        if mem::replace(&mut peer.has_ended, true) {
            return;
        }
        peer.is_lost = true;
        peer.has_given_up = matches!(loss, Loss::Aborted(_));
        let last = match &loss {
            // It waits until all nodes have heard.
            Loss::Aborted(_) => word(Header::Goodbye, ""),
            loss => word(Header::Abort, cut(&format!("it could not go on with {node}: {loss}"), 4000)),
        };
        self.shared.send_last(node, last, false);
        if let (None, Some(receiver)) = (self.closing, self.receiver.clone()) {
            receiver.lost(node, loss);
        }
    }

    fn close(&mut self, close: Close) {
        if self.closing.is_some() {
            return;
        }
        let patience = match &close {
            Close::Orderly => self.settings.silence,
            Close::Abort(_) => self.patience_with_failures(),
        };
        self.closing = Some((Instant::now(), patience));
        self.shared.is_closing.store(true, Ordering::Relaxed);
        for rank in 0..self.peers.len() {
            let last = match &close {
                Close::Orderly => word(Header::Goodbye, ""),
                Close::Abort(reason) => word(Header::Abort, cut(reason, 4000)),
            };
            self.shared.send_last(NodeId(rank as u16), last, true);
        }
    }

    /// For how long to close when a node has failed: others may be as badly off.
    fn patience_with_failures(&self) -> Duration {
        self.settings.silence.min(Duration::from_secs(5))
    }

    /// Whether all nodes have come to the end, once there is nothing more to do.
    fn end(&mut self, now: Instant) -> Option<bool> {
        let (since, mut patience) = self.closing?;
        if self.peers.iter().any(|peer| peer.is_lost) {
            patience = patience.min(self.patience_with_failures());
        }
        if now >= since + patience {
            return Some(false);
        }
        // What MPI was given for a node that is gone may never leave.
        let is_gone = |peer: &Peer| peer.is_lost && !peer.has_given_up;
        let is_sent = |rank: usize, peer: &Peer| {
            self.shared.outboxes[rank].is_empty() && (is_gone(peer) || peer.sending == [0; 2])
        };
        if !self.peers.iter().enumerate().all(|(rank, peer)| peer.has_ended && is_sent(rank, peer)) {
            return None;
        }
        if self.peers.iter().any(is_gone) {
            return Some(false);
        }
        if self.last_meeting.met < 2 && self.last_meeting.has_met(self.world) {
            // From here on they come at once.
            self.closing = Some((now, patience));
        }
        // When all have met, all that others have sent is here, or a part of it.
        (self.last_meeting.met == 2 && self.receiving.is_empty()).then_some(true)
    }

    fn look_at_heartbeats(&mut self, now: Instant) {
        let since = now - self.last_beat;
        if since < self.settings.heartbeat {
            return;
        }
        self.last_beat = now;
        // If we were stopped ourselves, or held up by a handler, others may well have spoken: their words wait to be
        // received.
        let was_away = since > 2 * self.settings.heartbeat + self.settings.silence / 4;
        for rank in 0..self.peers.len() {
            let (node, is_listening) = (NodeId(rank as u16), self.receiver.is_some());
            let peer = &mut self.peers[rank];
            if peer.has_ended {
                continue;
            }
            if mem::take(&mut peer.has_spoken) || was_away {
                peer.silent_since = now;
            }
            let silence = now - peer.silent_since;
            if !mem::take(&mut peer.was_sent_to) {
                self.shared.send(node, smallvec::smallvec![Frame::new(Header::Heartbeat)], Flush::Now);
            }
            if is_listening && silence >= self.settings.silence {
                self.lose(node, Loss::Silent { silence });
            }
        }
    }
}
