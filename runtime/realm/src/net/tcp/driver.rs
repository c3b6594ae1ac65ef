//! The network's thread: it reads, runs handlers, writes what senders could not, looks after heartbeats, and ends it
//! all.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::locks::Mutex;
use bytes::Bytes;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::Settings;
use super::error::JoinError;
use super::link::Link;
use super::reading::{Delivery, Ended, Incoming};
use super::rendezvous::{Connections, meet};
use crate::machine::NodeId;
use crate::net::error::Loss;
use crate::net::frame::{Body, Frame, Header};
use crate::net::transport::{Close, Flush, Frames, Receiver, hand_over};
use crate::net::wire::cut;
use crate::threads::give_way;

/// How often to look whether all is written, at the end.
const LOOK: Duration = Duration::from_millis(5);

/// How long to wait until others have heard why this node gives up.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// At so many connections a worker looks each time.
const LOOKS: usize = 8;

/// An event that the thread is told of.
pub(super) enum TcpEvent {
    Start(Arc<dyn Receiver>),
    Close(Close),
    /// A connection has ended.
    Ended(NodeId, Ended),
    /// Time to look at heartbeats.
    Beat,
    /// Time to look whether all is written.
    Look,
}

/// The state that senders and the thread share.
pub(super) struct SharedTcp {
    rank: NodeId,
    /// By rank; none for this node.
    peers: Vec<Option<Peer>>,
    /// Frames that this node sends to itself.
    own: Mutex<VecDeque<Frame>>,
    own_work: Notify,
    /// The node to look at first for what has come, modulo the number of nodes.
    next_look: AtomicUsize,
    /// Links with something to be flushed.
    dirty: Mutex<Vec<NodeId>>,
    /// Whether there may be any.
    has_dirty: AtomicBool,
    /// Whether nothing is received any more.
    pub(super) is_closing: Arc<AtomicBool>,
}

struct Peer {
    link: Link,
    incoming: Incoming,
    /// Whether it has this machine's address.
    is_near: bool,
}

impl SharedTcp {
    pub(super) fn nodes(&self) -> usize {
        self.peers.len()
    }

    fn peer(&self, node: NodeId) -> Option<&Peer> {
        self.peers.get(usize::from(node.0))?.as_ref()
    }

    /// The nodes that there are connections with.
    fn others(&self) -> impl Iterator<Item = NodeId> {
        let nodes = (0..self.peers.len()).map(|node| NodeId(node as u16));
        nodes.filter(|&node| self.peer(node).is_some())
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        self.peers.iter().flatten().map(|peer| &peer.link)
    }

    pub(super) fn send(&self, to: NodeId, frames: Frames, flush: Flush) {
        if to == self.rank {
            self.own.lock().extend(frames);
            self.own_work.notify_one();
            return;
        }
        let Some(Peer { link, .. }) = self.peer(to) else { return };
        if link.send(frames, flush) && !link.is_dirty.swap(true, Ordering::AcqRel) {
            self.dirty.lock().push(to);
            self.has_dirty.store(true, Ordering::Release);
        }
    }

    pub(super) fn flush(&self) {
        // A thread that flushes often has mostly sent nothing this way. Set behind what is put there: the thread that
        // takes it back takes all that it stood for.
        if !self.has_dirty.load(Ordering::Relaxed) || !self.has_dirty.swap(false, Ordering::AcqRel) {
            return;
        }
        let dirty = mem::take(&mut *self.dirty.lock());
        for peer in dirty.into_iter().filter_map(|node| self.peer(node)) {
            // Cleared before the queue is looked at: what is queued later marks it again.
            peer.link.is_dirty.store(false, Ordering::Release);
            peer.link.flush();
        }
    }

    /// A worker looks whether something has come, from some nodes; whether it has.
    pub(super) fn look(&self) -> bool {
        let nodes = self.peers.len();
        let first = match nodes > LOOKS {
            true => self.next_look.fetch_add(LOOKS, Ordering::Relaxed) % nodes,
            false => 0,
        };
        let mut found = false;
        for node in (first..nodes).chain(0..first).take(LOOKS) {
            if let Some(Peer { link, incoming, .. }) = &self.peers[node] {
                found |= incoming.look(link.stream());
            }
        }
        if found {
            // What the handlers have sent goes out together.
            self.flush();
        }
        found
    }

    pub(super) fn is_near(&self, node: NodeId) -> bool {
        self.peer(node).is_some_and(|peer| peer.is_near)
    }
}

/// The state that senders and the thread share, and the channel by which the thread is told of events.
pub(super) type Joined = Result<(Arc<SharedTcp>, UnboundedSender<TcpEvent>), JoinError>;

/// The thread: joins the job, tells how that went, and drives the connections until the end.
pub(super) fn run(settings: Settings, joined: &Sender<Joined>) {
    give_way();
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = joined.send(Err(JoinError::io("starting the network's runtime")(error)));
            return;
        }
    };
    runtime.block_on(async {
        match meet(&settings).await {
            Err(error) => {
                let _ = joined.send(Err(error));
            }
            Ok(connections) => {
                let shared = share(settings.rank, connections);
                let (sender, events) = unbounded_channel();
                if joined.send(Ok((Arc::clone(&shared), sender.clone()))).is_ok() {
                    drive(settings, shared, sender, events).await;
                }
            }
        }
    });
}

pub(super) fn share(rank: NodeId, connections: Connections) -> Arc<SharedTcp> {
    let peers = connections.into_iter().enumerate().map(|(node, stream)| {
        stream.map(|stream| {
            let is_near =
                matches!((stream.peer_addr(), stream.local_addr()), (Ok(its), Ok(ours)) if its.ip() == ours.ip());
            let (_, writing) = stream.into_split();
            Peer { link: Link::new(writing), incoming: Incoming::new(NodeId(node as u16)), is_near }
        })
    });
    Arc::new(SharedTcp {
        rank,
        peers: peers.collect(),
        own: Mutex::default(),
        own_work: Notify::new(),
        next_look: AtomicUsize::new(0),
        dirty: Mutex::default(),
        has_dirty: AtomicBool::new(false),
        is_closing: Arc::default(),
    })
}

struct Connection {
    node: NodeId,
    shared: Arc<SharedTcp>,
    /// The reader task, since the endpoint has started.
    reader: Option<JoinHandle<()>>,
    writer: JoinHandle<()>,
    has_ended: bool,
    /// Since when nothing has come.
    silent_since: Instant,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stop_reading();
        self.writer.abort();
    }
}

impl Connection {
    fn stop_reading(&self) {
        self.reader.iter().for_each(JoinHandle::abort);
        if let Some(peer) = self.shared.peer(self.node) {
            peer.incoming.stop();
        }
    }
}

async fn drive(
    settings: Settings,
    shared: Arc<SharedTcp>,
    sender: UnboundedSender<TcpEvent>,
    mut events: UnboundedReceiver<TcpEvent>,
) {
    let now = Instant::now();
    let connect = |node| Connection {
        node,
        writer: start_writer(&shared, node),
        shared: Arc::clone(&shared),
        reader: None,
        has_ended: false,
        silent_since: now,
    };
    let mut driver = Driver {
        connections: shared.others().map(connect).collect(),
        last_beat: now,
        closing_until: None,
        settings,
        receiver: None,
        own: None,
        shared,
        sender,
    };
    // From the first moment: a node that joins and then takes its time is not to seem dead.
    let beats = tokio::spawn(beat(driver.settings.heartbeat, driver.sender.clone()));
    while let Some(event) = events.recv().await {
        driver.deal_with(event);
        if driver.is_done() {
            break;
        }
    }
    beats.abort();
    driver.own.iter().for_each(JoinHandle::abort);
    driver.shared.links().for_each(Link::die);
}

fn start_reader(
    shared: &Arc<SharedTcp>,
    node: NodeId,
    receiver: &Arc<dyn Receiver>,
    sender: &UnboundedSender<TcpEvent>,
) -> JoinHandle<()> {
    let (shared, sender, receiver) = (Arc::clone(shared), sender.clone(), Arc::clone(receiver));
    tokio::spawn(async move {
        let Some(Peer { link, incoming, .. }) = shared.peer(node) else { return };
        let tell = Box::new(move |ended| drop(sender.send(TcpEvent::Ended(node, ended))));
        incoming.start(Delivery { receiver, is_closing: Arc::clone(&shared.is_closing), tell });
        incoming.read(link.stream(), || shared.flush()).await;
    })
}

fn start_writer(shared: &Arc<SharedTcp>, node: NodeId) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        if let Some(peer) = shared.peer(node) {
            peer.link.write_when_notified().await;
        }
    })
}

/// Receives what this node sends to itself.
async fn receive_own(shared: Arc<SharedTcp>, receiver: Arc<dyn Receiver>) {
    loop {
        shared.own_work.notified().await;
        loop {
            let frame = shared.own.lock().pop_front();
            let Some(frame) = frame else { break };
            if shared.is_closing.load(Ordering::Relaxed) {
                continue;
            }
            if let Err(violation) = hand_over(&*receiver, shared.rank, frame) {
                receiver.lost(shared.rank, Loss::Violation(violation.to_string()));
            }
            if shared.own.lock().is_empty() {
                shared.flush();
            }
            tokio::task::consume_budget().await;
        }
    }
}

async fn beat(every: Duration, sender: UnboundedSender<TcpEvent>) {
    let mut beats = interval(every.max(Duration::from_millis(1)));
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        if sender.send(TcpEvent::Beat).is_err() {
            return;
        }
    }
}

struct Driver {
    settings: Settings,
    shared: Arc<SharedTcp>,
    receiver: Option<Arc<dyn Receiver>>,
    /// The task that receives what this node sends to itself.
    own: Option<JoinHandle<()>>,
    sender: UnboundedSender<TcpEvent>,
    connections: Vec<Connection>,
    last_beat: Instant,
    /// When closing: when patience ends.
    closing_until: Option<Instant>,
}

impl Driver {
    fn deal_with(&mut self, event: TcpEvent) {
        match event {
            TcpEvent::Start(receiver) => self.start(receiver),
            TcpEvent::Beat => self.look_at_heartbeats(),
            TcpEvent::Ended(node, ended) => self.end(node, ended),
            TcpEvent::Close(close) => self.close(close),
            TcpEvent::Look => {}
        }
    }

    fn start(&mut self, receiver: Arc<dyn Receiver>) {
        let now = Instant::now();
        for connection in &mut self.connections {
            if connection.reader.is_some() {
                continue;
            }
            connection.reader = Some(start_reader(&self.shared, connection.node, &receiver, &self.sender));
            connection.silent_since = now;
        }
        self.own = Some(tokio::spawn(receive_own(Arc::clone(&self.shared), Arc::clone(&receiver))));
        self.receiver = Some(receiver);
    }

    fn is_done(&self) -> bool {
        let Some(until) = self.closing_until else { return false };
        let has_ended = self.connections.iter().all(|connection| connection.has_ended);
        Instant::now() >= until || (has_ended && self.shared.links().all(Link::is_done))
    }

    fn end(&mut self, node: NodeId, ended: Ended) {
        let Some(connection) = self.connections.iter_mut().find(|connection| connection.node == node) else { return };
        if mem::replace(&mut connection.has_ended, true) {
            return;
        }
        let Some(Peer { link, .. }) = self.shared.peer(node) else { return };
        match ended {
            // It sends no more, but waits for our own goodbye.
            Ended::Goodbye => {}
            Ended::Lost(loss) => {
                if let Loss::Violation(_) | Loss::Silent { .. } = loss {
                    link.send(farewell(Header::Abort, &format!("it could not go on with {node}: {loss}")), Flush::Now);
                }
                link.die();
                connection.stop_reading();
                if let (None, Some(receiver)) = (self.closing_until, &self.receiver) {
                    receiver.lost(node, loss);
                    self.shared.flush();
                }
            }
        }
    }

    fn close(&mut self, close: Close) {
        if self.closing_until.is_some() {
            return;
        }
        let patience = match &close {
            Close::Orderly => self.settings.silence,
            // Others may be as badly off as we are, and launchers give a node a moment only to say why it ends.
            Close::Abort(_) => self.settings.silence.min(LAST_WORDS),
        };
        self.closing_until = Some(Instant::now() + patience);
        for connection in self.connections.iter_mut().filter(|connection| connection.reader.is_none()) {
            // The endpoint was never started.
            connection.has_ended = true;
        }
        self.shared.is_closing.store(true, Ordering::Relaxed);
        for link in self.shared.links() {
            let frames = match &close {
                Close::Orderly => farewell(Header::Goodbye, ""),
                Close::Abort(reason) => farewell(Header::Abort, reason),
            };
            link.send(frames, Flush::Now);
        }
        let sender = self.sender.clone();
        tokio::spawn(async move {
            while sender.send(TcpEvent::Look).is_ok() {
                sleep(LOOK).await;
            }
        });
    }

    fn look_at_heartbeats(&mut self) {
        let (now, before) = (Instant::now(), self.last_beat);
        self.last_beat = now;
        // If we were stopped ourselves, or held up by a handler, others may well have spoken: their words wait to be
        // read.
        let was_away = now - before > 2 * self.settings.heartbeat + self.settings.silence / 4;
        let mut lost = Vec::new();
        for connection in self.connections.iter_mut().filter(|connection| !connection.has_ended) {
            let Some(peer) = self.shared.peer(connection.node) else { continue };
            if peer.incoming.has_spoken.swap(false, Ordering::Relaxed) || was_away {
                connection.silent_since = now;
            }
            let silence = now - connection.silent_since;
            if connection.reader.is_some() && silence >= self.settings.silence {
                lost.push((connection.node, silence));
            }
            if !peer.link.take_has_written() {
                peer.link.send(farewell(Header::Heartbeat, ""), Flush::Now);
            }
        }
        for (node, silence) in lost {
            self.end(node, Ended::Lost(Loss::Silent { silence }));
        }
    }
}

fn farewell(header: Header, words: &str) -> Frames {
    let words = cut(words, 4000);
    let mut frames = Frames::new();
    frames.push(Frame { body: Body::Bytes(Bytes::copy_from_slice(words.as_bytes())), ..Frame::new(header) });
    frames
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::Ipv4Addr;

    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::net::tcp::{BuildId, Meeting, Secret};

    /// A driver that has heard nothing of node 1 for a minute, and looked at heartbeats so long ago.
    async fn driver_after(looked: Duration) -> Driver {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let shared = share(NodeId(0), vec![None, Some(stream)]);
        shared.peer(NodeId(1)).unwrap().incoming.has_spoken.store(false, Ordering::Relaxed);
        let connection = Connection {
            node: NodeId(1),
            shared: Arc::clone(&shared),
            reader: Some(tokio::spawn(pending())),
            writer: start_writer(&shared, NodeId(1)),
            has_ended: false,
            silent_since: Instant::now() - Duration::from_secs(60),
        };
        let settings = Settings {
            rank: NodeId(0),
            nodes: 2,
            meeting: Meeting::At(String::new()),
            listen: Ipv4Addr::LOCALHOST.into(),
            secret: Secret::random().unwrap(),
            build: BuildId::new("one"),
            join_timeout: Duration::ZERO,
            heartbeat: Duration::from_secs(1),
            silence: Duration::from_secs(10),
            shared_memory: false,
        };
        Driver {
            settings,
            shared,
            receiver: None,
            own: None,
            sender: unbounded_channel().0,
            connections: vec![connection],
            last_beat: Instant::now() - looked,
            closing_until: None,
        }
    }

    #[test]
    fn who_was_away_itself_gives_the_others_their_time_again() {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let mut away = driver_after(Duration::from_secs(60)).await;
            away.look_at_heartbeats();
            assert!(!away.connections[0].has_ended);
            let mut present = driver_after(Duration::from_secs(1)).await;
            present.look_at_heartbeats();
            assert!(present.connections[0].has_ended);
        });
    }
}
