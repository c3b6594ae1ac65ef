//! Nodes that `mpirun` starts, led from this process.
//!
//! MPI has one node in a process, but the rules of the suite look at all nodes of a job. So each node of a cluster has
//! a *puppet*: this program, started by `mpirun`, with a test named [`puppet`] alone. It joins the job over MPI, and
//! does with its transport what it is told by a socket; what its transport receives it tells, and waits until that is
//! dealt with. Here the endpoints have a transport that does nothing but speak with the puppet.
//!
//! Needs `mpirun`. Without it these tests say that they did not run; with `MANIPLE_NEEDS_MPI` set, as in `.ci/run`,
//! they fail.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver as Answers, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use bytes::Bytes;
use maniple_realm::machine::NodeId;
use maniple_realm::net::frame::{Body, Callback, Frame, Header, Violation};
use maniple_realm::net::mpi::{Mpi as RealTransport, Settings};
use maniple_realm::net::transport::{BytesPlace, Close, Flush, Frames, Receiver, Transport};
use maniple_realm::net::{Endpoint, HandlerId, Handlers, Loss, Options, Segment, Span};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, List, MakeHandlers};

const VARIABLE: &str = "MANIPLE_NET_TEST_PUPPET";

/// An order to a puppet.
#[derive(Serialize, Deserialize)]
enum Order {
    Start,
    /// Frames, as they look on a wire.
    Send {
        to: u16,
        now: bool,
        frames: Vec<Vec<u8>>,
    },
    Flush,
    /// In order, or for a reason.
    Close(Option<String>),
    Join,
    /// The answer to its last report, which was dealt with.
    Answer(Answer),
}

#[derive(Serialize, Deserialize)]
enum Answer {
    Done,
    Nowhere,
    NoHandler(u16),
    OutOfPlace(String),
}

/// A report of a puppet. All but the first and the last wait for an answer.
#[derive(Serialize, Deserialize)]
enum Report {
    Joined { rank: u16, nodes: usize },
    Received { from: u16, frame: Vec<u8> },
    Place { from: u16, header: Vec<u8>, length: usize },
    Placed { from: u16, header: Vec<u8>, bytes: Vec<u8> },
    Lost { node: u16, loss: LossReport },
    Ended,
}

#[derive(Serialize, Deserialize)]
enum LossReport {
    Closed,
    Broken(String),
    Silent(Duration),
    Aborted(String),
    Violation(String),
}

fn tell(mut socket: &UnixStream, what: &impl Serialize) -> io::Result<()> {
    let text = postcard::to_stdvec(what).unwrap();
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend(text);
    // In one piece: several threads speak.
    socket.write_all(&bytes)
}

/// `None` if the process at the other end is gone.
fn hear<T: DeserializeOwned>(mut socket: &UnixStream) -> Option<T> {
    let mut length = [0; 4];
    socket.read_exact(&mut length).ok()?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    socket.read_exact(&mut bytes).ok()?;
    Some(postcard::from_bytes(&bytes).unwrap())
}

/// The `mpirun` of this machine, if it has one.
pub fn mpirun() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|place| place.join("mpirun")).find(|program| program.is_file());
    if found.is_none() {
        let needed = std::env::var_os("MANIPLE_NEEDS_MPI").is_some();
        assert!(!needed, "there is no mpirun, and MANIPLE_NEEDS_MPI is set: apt-get install openmpi-bin");
        eprintln!("NOT RUN: nothing was tested over MPI, since there is no mpirun: apt-get install openmpi-bin");
    }
    found
}

/// Starts this program as so many nodes, each with one test alone.
pub fn start(mpirun: PathBuf, nodes: usize, test: &str) -> Command {
    let mut command = Command::new(mpirun);
    command.args(["-n", &nodes.to_string()]).arg(std::env::current_exe().unwrap()).args([
        test,
        "--exact",
        "--nocapture",
    ]);
    // As root, in containers; more nodes than cores; and without a way of copying that containers do not allow.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    command.env("OMPI_MCA_hwloc_base_binding_policy", "none").env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

// The puppet.

/// A node of a cluster, if the environment says so.
#[test]
fn puppet() {
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    // Without signs of life, which would take along what was forgotten.
    let patient = Settings { heartbeat: Duration::from_secs(600), silence: Duration::from_secs(600) };
    let transport = RealTransport::join(patient).unwrap();
    let socket = Arc::new(UnixStream::connect(path).unwrap());
    tell(&socket, &Report::Joined { rank: transport.rank().0, nodes: transport.nodes() }).unwrap();
    let (answers, incoming) = channel();
    let mut strings =
        Some(Strings { socket: Arc::clone(&socket), speaking: Mutex::new(()), answers: Mutex::new(incoming) });
    while let Some(order) = hear(&socket) {
        match order {
            Order::Start => transport.start(Arc::new(strings.take().unwrap())),
            Order::Send { to, now, frames } => {
                let frames = frames.into_iter().map(|bytes| decode(bytes, true)).collect();
                transport.send(NodeId(to), frames, if now { Flush::Now } else { Flush::Later });
            }
            Order::Flush => transport.flush(),
            Order::Close(None) => transport.close(Close::Orderly),
            Order::Close(Some(reason)) => transport.close(Close::Abort(reason)),
            Order::Join => {
                let (transport, socket) = (Arc::clone(&transport), Arc::clone(&socket));
                thread::spawn(move || {
                    transport.join();
                    let _ = tell(&socket, &Report::Ended);
                });
            }
            Order::Answer(answer) => answers.send(answer).unwrap(),
        }
    }
    std::process::exit(0);
}

/// The receiver of the puppet's transport, which tells the test of all that arrives.
struct Strings {
    socket: Arc<UnixStream>,
    speaking: Mutex<()>,
    answers: Mutex<Answers<Answer>>,
}

impl Strings {
    fn ask(&self, report: &Report) -> Result<BytesPlace, Violation> {
        let _turn = self.speaking.lock();
        // When the test is over, nothing matters.
        let answer = tell(&self.socket, report).ok().and_then(|()| self.answers.lock().recv().ok());
        match answer {
            Some(Answer::Done) => Ok(BytesPlace::Memory(Segment::from_vec(Vec::new()).whole())),
            Some(Answer::Nowhere) | None => Ok(BytesPlace::Nowhere),
            Some(Answer::NoHandler(handler)) => Err(Violation::NoHandler(HandlerId(handler))),
            Some(Answer::OutOfPlace(words)) => Err(Violation::OutOfPlace(words.leak())),
        }
    }
}

thread_local! {
    /// The memory in which the transport places bytes, until it says that it has done so.
    static PLACED: std::cell::RefCell<Option<Span>> = const { std::cell::RefCell::new(None) };
}

impl Receiver for Strings {
    fn place(&self, from: NodeId, header: &Header, length: usize) -> Result<BytesPlace, Violation> {
        let header = header.encode(0, 0).as_slice().to_vec();
        Ok(match self.ask(&Report::Place { from: from.0, header, length })? {
            BytesPlace::Nowhere => BytesPlace::Nowhere,
            BytesPlace::Memory(_) => {
                let span = Segment::from_vec(vec![0; length]).whole();
                PLACED.replace(Some(span.clone()));
                BytesPlace::Memory(span)
            }
        })
    }

    fn placed(&self, from: NodeId, header: &Header, _length: usize) {
        let header = header.encode(0, 0).as_slice().to_vec();
        let bytes = PLACED.take().map(|span| span.read(<[u8]>::to_vec)).unwrap_or_default();
        let _ = self.ask(&Report::Placed { from: from.0, header, bytes });
    }

    fn receive(&self, from: NodeId, header: &Header, head: &[u8], body: Bytes) -> Result<(), Violation> {
        let frame = [header.encode(head.len(), body.len()).as_slice(), head, &body].concat();
        self.ask(&Report::Received { from: from.0, frame }).map(drop)
    }

    fn lost(&self, node: NodeId, loss: Loss) {
        let loss = match loss {
            Loss::Closed => LossReport::Closed,
            Loss::Broken(words) => LossReport::Broken(words),
            Loss::Silent { silence } => LossReport::Silent(silence),
            Loss::Aborted(words) => LossReport::Aborted(words),
            Loss::Violation(words) => LossReport::Violation(words),
            other => panic!("a transport does not tell of {other}"),
        };
        let _ = self.ask(&Report::Lost { node: node.0, loss });
    }
}

/// A frame of what it looks like on a wire; with the body in a segment, if it is one that is.
fn decode(bytes: Vec<u8>, placed_in_segments: bool) -> Frame {
    let bytes = Bytes::from(bytes);
    let decoded = Header::decode(&bytes).unwrap().unwrap();
    let body = bytes.slice(decoded.body);
    let body = match placed_in_segments && decoded.header.is_placed() {
        true => Body::Span(Segment::from_vec(body.to_vec()).whole()),
        false => Body::Bytes(body),
    };
    Frame { header: decoded.header, head: bytes[decoded.head].into(), body, sent: None }
}

// The test.

/// A transport that lets a puppet do its work.
struct Remote {
    rank: NodeId,
    nodes: usize,
    socket: UnixStream,
    speaking: Mutex<()>,
    receiver: OnceLock<Arc<dyn Receiver>>,
    /// Runs what is to be called when bytes were taken, as a transport does: not under the locks of the sender.
    sent: Sender<Callback<()>>,
    listener: OnceLock<ThreadId>,
    ended: Mutex<Option<Answers<()>>>,
}

impl Remote {
    fn new(rank: NodeId, nodes: usize, socket: UnixStream) -> Arc<Self> {
        let (sent, callbacks) = channel::<Callback<()>>();
        let (end, ended) = channel();
        thread::spawn(move || callbacks.into_iter().for_each(|call| call(())));
        let hearing = socket.try_clone().unwrap();
        let remote = Arc::new(Self {
            rank,
            nodes,
            socket,
            speaking: Mutex::default(),
            receiver: OnceLock::new(),
            sent,
            listener: OnceLock::new(),
            ended: Mutex::new(Some(ended)),
        });
        let weak = Arc::downgrade(&remote);
        let thread = thread::spawn(move || {
            let mut placing = None;
            while let Some(report) = hear::<Report>(&hearing) {
                let Some(remote) = weak.upgrade() else { return };
                match remote.deal_with(report, &mut placing) {
                    Some(answer) => remote.order(&Order::Answer(answer)),
                    None => drop(end.send(())),
                }
            }
        });
        remote.listener.set(thread.thread().id()).unwrap();
        remote
    }

    fn order(&self, order: &Order) {
        let _turn = self.speaking.lock();
        // A puppet may be gone.
        let _ = tell(&self.socket, order);
    }

    /// The answer; none if all is over.
    fn deal_with(&self, report: Report, placing: &mut Option<BytesPlace>) -> Option<Answer> {
        let receiver = self.receiver.wait();
        let header = |bytes: &[u8]| Header::decode(bytes).unwrap().unwrap().header;
        let result = match report {
            Report::Received { from, frame } => {
                let Frame { header, head, body: Body::Bytes(body), .. } = decode(frame, false) else { unreachable!() };
                receiver.receive(NodeId(from), &header, &head, body)
            }
            Report::Place { from, header: bytes, length } => {
                receiver.place(NodeId(from), &header(&bytes), length).map(|place| *placing = Some(place))
            }
            Report::Placed { from, header: bytes, bytes: body } => {
                let header = header(&bytes);
                match placing.take() {
                    Some(BytesPlace::Memory(span)) => {
                        span.write(|place| place.copy_from_slice(&body));
                        receiver.placed(NodeId(from), &header, body.len());
                    }
                    _ => receiver.placed(NodeId(from), &header, body.len()),
                }
                Ok(())
            }
            Report::Lost { node, loss } => {
                receiver.lost(
                    NodeId(node),
                    match loss {
                        LossReport::Closed => Loss::Closed,
                        LossReport::Broken(words) => Loss::Broken(words),
                        LossReport::Silent(silence) => Loss::Silent { silence },
                        LossReport::Aborted(words) => Loss::Aborted(words),
                        LossReport::Violation(words) => Loss::Violation(words),
                    },
                );
                Ok(())
            }
            Report::Joined { .. } => unreachable!("it has said so before"),
            Report::Ended => return None,
        };
        Some(match result {
            Ok(()) if matches!(placing, Some(BytesPlace::Nowhere)) => Answer::Nowhere,
            Ok(()) => Answer::Done,
            Err(Violation::NoHandler(handler)) => Answer::NoHandler(handler.0),
            Err(violation) => Answer::OutOfPlace(violation.to_string()),
        })
    }
}

impl Transport for Remote {
    fn rank(&self) -> NodeId {
        self.rank
    }

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn start(&self, receiver: Arc<dyn Receiver>) {
        assert!(self.receiver.set(receiver).is_ok());
        self.order(&Order::Start);
    }

    fn send(&self, to: NodeId, frames: Frames, flush: Flush) {
        let mut calls = Vec::new();
        let encode = |frame: Frame| {
            let mut bytes = frame.header.encode(frame.head.len(), frame.body.len()).as_slice().to_vec();
            bytes.extend_from_slice(&frame.head);
            match &frame.body {
                Body::Bytes(body) => bytes.extend_from_slice(body),
                Body::Span(span) => span.read(|body| bytes.extend_from_slice(body)),
            }
            calls.extend(frame.sent);
            bytes
        };
        let frames = frames.into_iter().map(encode).collect();
        self.order(&Order::Send { to: to.0, now: flush == Flush::Now, frames });
        calls.into_iter().for_each(|call| drop(self.sent.send(call)));
    }

    fn flush(&self) {
        self.order(&Order::Flush);
    }

    fn close(&self, close: Close) {
        self.order(&Order::Close(match close {
            Close::Orderly => None,
            Close::Abort(reason) => Some(reason),
        }));
    }

    fn join(&self) {
        if self.listener.get() == Some(&thread::current().id()) {
            return;
        }
        if let Some(ended) = self.ended.lock().take() {
            self.order(&Order::Join);
            let _ = ended.recv();
        }
    }
}

/// Nodes that `mpirun` has started.
pub struct Mpi {
    endpoints: Vec<Arc<Endpoint>>,
    launcher: Mutex<Child>,
    /// Keeps puppets whose endpoints are gone: one that ends before the others would end them all.
    _sockets: Vec<UnixStream>,
}

impl Mpi {
    fn start(mpirun: PathBuf, nodes: usize, options: &Options, handlers: MakeHandlers<'_>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("maniple-mpi-{}-{number}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let launcher = start(mpirun, nodes, "mpi_cluster::puppet").env(VARIABLE, &path).spawn().unwrap();
        let launcher = Mutex::new(launcher);
        let mut sockets: Vec<_> = (0..nodes).map(|_| None).collect();
        for _ in 0..nodes {
            let socket = loop {
                match listener.accept() {
                    Ok((socket, _)) => break socket,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&launcher),
                    Err(error) => panic!("{error}"),
                }
            };
            socket.set_nonblocking(false).unwrap();
            let Some(Report::Joined { rank, nodes: found }) = hear(&socket) else { panic!("a puppet has ended") };
            assert_eq!(found, nodes);
            assert!(sockets[usize::from(rank)].replace(socket).is_none());
        }
        std::fs::remove_file(path).unwrap();
        let sockets: Vec<_> = sockets.into_iter().map(Option::unwrap).collect();
        let start = |(rank, socket): (usize, &UnixStream)| {
            let node = NodeId(rank as u16);
            let remote = Remote::new(node, nodes, socket.try_clone().unwrap());
            Endpoint::start(remote, handlers(node), options.clone())
        };
        let endpoints = sockets.iter().enumerate().map(start).collect();
        Self { endpoints, launcher, _sockets: sockets }
    }
}

/// For a moment; not for what will not happen any more.
fn wait(launcher: &Mutex<Child>) {
    let mut launcher = launcher.lock();
    if let Some(status) = launcher.try_wait().unwrap() {
        let mut words = String::new();
        let _ = launcher.stderr.take().map(|mut pipe| pipe.read_to_string(&mut words));
        panic!("mpirun has ended: {status}\n{words}");
    }
    drop(launcher);
    thread::yield_now();
}

impl Cluster for Mpi {
    fn each(rule: impl Fn(&mut dyn FnMut(usize, Options, MakeHandlers<'_>) -> Self)) {
        let Some(mpirun) = mpirun() else { return };
        rule(&mut |nodes, options, handlers| Self::start(mpirun.clone(), nodes, &options, handlers));
    }

    fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }

    fn until(&self, mut condition: impl FnMut() -> bool) {
        while !condition() {
            wait(&self.launcher);
        }
    }

    /// `mpirun` itself ends all if a process is really killed.
    fn kill(&mut self, node: NodeId) {
        self.drop_endpoint(node);
    }

    fn drop_endpoint(&mut self, node: NodeId) {
        self.endpoints.retain(|endpoint| endpoint.rank() != node);
    }

    /// All leave in order: `mpirun` has nothing to complain of.
    fn shutdown(self) {
        let results = self.all(|endpoint, call| endpoint.shutdown(call));
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        let Self { endpoints, launcher, _sockets } = self;
        // A rule may have kept one; its puppet has ended by then, and is to be told nothing more.
        endpoints.iter().for_each(|endpoint| endpoint.join());
        drop(endpoints);
        _sockets.iter().for_each(|socket| socket.shutdown(std::net::Shutdown::Both).unwrap_or_default());
        let output = launcher.into_inner().wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn who_gives_up_waits_until_all_others_have_heard() {
    Mpi::each(|make| {
        let losses = List::default();
        let cluster = make(4, Options::default(), &|node| {
            let losses = losses.clone();
            Handlers::new().on_loss(move |lost, _| losses.push((node, lost)))
        });
        let node = &cluster.endpoints()[1];
        node.abort("memory 3 is full");
        node.join();
        assert_eq!(losses.len(), 3, "{:?}", losses.get());
    });
}
