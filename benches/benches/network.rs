//! Costs of messages, transfers and regions between nodes, beside sockets that are used by hand.
//!
//! Over TCP, both nodes are in this process and talk over 127.0.0.1. The rival of a round trip is two tokio tasks, each
//! on a thread and runtime of its own, that read and write eight bytes in turn. The rival of a put is a thread that
//! writes to a socket and a thread that reads the bytes into memory. The rival of a region is the same: a task on one
//! node and a task on the other write the region in turn, so that the runtime has to move it each time. Loopback has no
//! rival: its messages are received one after the other by one thread, in the order that a seed decides.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use maniple::mapper::{DefaultMapper, Sharding, ShardingMapper, TaskInfo};
use maniple::prelude::*;
use maniple_benches::{line, median, seconds, side_by_side};
use maniple_realm::machine::NodeId;
use maniple_realm::net::loopback::Network;
use maniple_realm::net::tcp::{Meeting, Secret, Settings, Tcp};
use maniple_realm::net::{Endpoint, HandlerId, Handlers, Message, Options, Put, Segment, SendError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PING: HandlerId = HandlerId(0);
const COUNT: HandlerId = HandlerId(1);

const ROUNDS: usize = 7;
const TRIPS: u64 = 10_000;
const MESSAGES: u64 = 300_000;
const BULK: usize = 256 << 20;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    let nodes = Nodes::join()?;
    round_trips(&nodes)?;
    streams(&nodes);
    puts(&nodes)?;
    drop(nodes);
    for bytes in [1 << 20, 64 << 20] {
        regions(bytes)?;
    }
    loopback(2);
    loopback(1024);
    Ok(())
}

/// Two nodes over TCP.
struct Nodes {
    first: Arc<Endpoint>,
    second: Arc<Endpoint>,
    /// Something that was begun has ended.
    ended: Receiver<()>,
}

/// Sends a message back until its number is zero; counts messages, and tells of the last.
fn handlers(ended: Sender<()>) -> Handlers {
    let counted = ended.clone();
    Handlers::new()
        .on(PING, move |message| match message.header().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)) {
            0 => ended.send(()).unwrap_or_default(),
            left => message.reply(Message::new(PING).header(&(left - 1).to_le_bytes())).unwrap_or_default(),
        })
        .on(COUNT, move |message| {
            if message.header()[0] == 1 {
                let _ = counted.send(());
            }
        })
}

impl Nodes {
    fn join() -> Result<Self> {
        let file = std::env::temp_dir().join(format!("maniple-bench-{}", std::process::id()));
        let secret = Secret::random()?;
        let (sender, ended) = channel();
        let join = |rank| {
            let settings = Settings::new(NodeId(rank), 2, Meeting::File(file.clone()), secret.clone());
            let transport = settings
                .map_err(|error| error.to_string())
                .and_then(|settings| Tcp::join(settings).map_err(|error| error.to_string()))?;
            Ok::<_, String>(Endpoint::start(transport, handlers(sender.clone()), Options::default()))
        };
        let (first, second) = thread::scope(|scope| {
            let first = scope.spawn(|| join(0));
            let second = join(1);
            (first.join().unwrap_or_else(|_| Err("a node panicked".to_owned())), second)
        });
        std::fs::remove_file(file)?;
        Ok(Self { first: first?, second: second?, ended })
    }

    fn wait(&self) {
        self.ended.recv().expect("nodes live as long as they are measured");
    }
}

fn round_trips(nodes: &Nodes) -> Result<()> {
    let mut rival = PingPong::start()?;
    let ours = || {
        // Two messages a trip.
        let ping = Message::new(PING).header(&(2 * TRIPS - 1).to_le_bytes());
        nodes.first.send(NodeId(1), ping).expect("the window is empty");
        nodes.wait();
    };
    let (ours, rival) = side_by_side(ROUNDS, ours, || rival.trips(TRIPS));
    line("round trip of a bare tokio ping-pong", rival / TRIPS as f64 * 1e6, "us", "");
    line("round trip of an active message", ours / TRIPS as f64 * 1e6, "us", "");
    line("  of the bare one", ours / rival, "x", "at most 2");
    Ok(())
}

/// Two tokio tasks that send each other eight bytes.
struct PingPong {
    stream: tokio::net::TcpStream,
    runtime: tokio::runtime::Runtime,
}

impl PingPong {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        thread::spawn(move || -> std::io::Result<()> {
            let (stream, _) = listener.accept()?;
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            runtime()?.block_on(async {
                let mut stream = tokio::net::TcpStream::from_std(stream)?;
                let mut bytes = [0; 8];
                while stream.read_exact(&mut bytes).await.is_ok() {
                    stream.write_all(&bytes).await?;
                }
                Ok(())
            })
        });
        let runtime = runtime()?;
        let stream = runtime.block_on(tokio::net::TcpStream::connect(address))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, runtime })
    }

    fn trips(&mut self, trips: u64) {
        let Self { stream, runtime } = self;
        let outcome: std::io::Result<()> = runtime.block_on(async {
            let mut bytes = [1; 8];
            for _ in 0..trips {
                stream.write_all(&bytes).await?;
                stream.read_exact(&mut bytes).await?;
            }
            Ok(())
        });
        outcome.expect("both ends live as long as they are measured");
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Messages in one direction, as many as the window allows.
fn streams(nodes: &Nodes) {
    let stream = |later: bool| {
        for number in 0..MESSAGES {
            let is_last = number == MESSAGES - 1;
            let mut next = Some(Message::new(COUNT).header(&[u8::from(is_last)]));
            while let Some(message) = next.take() {
                let send = if later && !is_last { Endpoint::send_later } else { Endpoint::send };
                if let Err(SendError::Busy { message, .. }) = send(&nodes.first, NodeId(1), message) {
                    let (sender, room) = channel();
                    nodes.first.when_room(NodeId(1), move |_| sender.send(()).unwrap_or_default());
                    nodes.first.flush();
                    let _ = room.recv();
                    next = Some(message);
                }
            }
        }
        nodes.wait();
    };
    let (now, later) = side_by_side(3, || stream(false), || stream(true));
    line("small messages one way, each sent at once", MESSAGES as f64 / now * 1e-6, "M/s", "");
    line("small messages one way, sent later", MESSAGES as f64 / later * 1e-6, "M/s", "");
}

fn puts(nodes: &Nodes) -> Result<()> {
    let source = Segment::from_vec(vec![1; BULK]);
    let registration = nodes.second.register(Segment::from_vec(vec![0; BULK]));
    let ours = || {
        let (sender, done) = channel();
        let put = Put::new(source.whole(), registration.remote().whole());
        let put = put.on_done(move |result| sender.send(result).unwrap_or_default());
        nodes.first.put(put).expect("both nodes are there");
        done.recv().expect("a put ends").expect("both nodes are there");
    };
    let mut rival = Pipe::of(BULK)?;
    let (ours, rival) = side_by_side(ROUNDS, ours, || rival.send());
    let gigabytes = |time: f64| BULK as f64 / time * 1e-9;
    line("a bare socket, 256 MiB", gigabytes(rival), "GB/s", "");
    line("a put of 256 MiB", gigabytes(ours), "GB/s", "");
    line("  of the bare socket's bandwidth", rival / ours, "x", "at least 0.7");
    Ok(())
}

/// A thread that reads into memory what is written to a socket, and answers with a byte when all has come.
struct Pipe {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Pipe {
    fn of(length: usize) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        thread::spawn(move || -> std::io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            let mut bytes = vec![0; length];
            while stream.read_exact(&mut bytes).is_ok() {
                stream.write_all(&[1])?;
            }
            Ok(())
        });
        Ok(Self { stream: TcpStream::connect(address)?, bytes: vec![1; length] })
    }

    fn send(&mut self) {
        let sent = self.stream.write_all(&self.bytes).and_then(|()| self.stream.read_exact(&mut [0]));
        sent.expect("both ends live as long as they are measured");
    }
}

#[derive(Fields)]
struct Cell {
    value: f64,
}

/// Looks at one cell: the others go along.
#[task(leaf)]
fn touch(#[writes(value)] cells: Piece<Cell>) {
    if let Some(first) = cells.points().next() {
        cells.value[first] += 1.0;
    }
}

/// A region of so many bytes that goes from node to node and back.
fn regions(bytes: usize) -> Result<()> {
    let mut rival = Pipe::of(bytes)?;
    let times = ROUNDS * (BULK / bytes).min(8);
    let socket = median((0..times).map(|_| seconds(|| rival.send())).collect());
    let gigabytes = |time: f64| bytes as f64 / time * 1e-9;
    let size = format!("{} MiB", bytes >> 20);
    line(&format!("a bare socket, {size}"), gigabytes(socket), "GB/s", "");
    for (shared, by, least) in [(true, "by shared memory", "at least 0.7"), (false, "over sockets", "")] {
        let region = region(bytes, times, shared)?;
        line(&format!("a region of {size}, {by}"), gigabytes(region), "GB/s", "");
        line("  of the bare socket's bandwidth", socket / region, "x", least);
    }
    Ok(())
}

/// How long it takes a region to go to the other node: the median of some rounds.
fn region(bytes: usize, times: usize, shared: bool) -> Result<f64> {
    let file = std::env::temp_dir().join(format!("maniple-bench-{}-regions", std::process::id()));
    let secret = Secret::random()?;
    let run = |rank: u16| {
        let settings = Settings::new(NodeId(rank), 2, Meeting::File(file.clone()), secret.clone());
        let settings = settings.map_err(|error| error.to_string())?;
        let transport = Tcp::join(Settings { shared_memory: shared, ..settings }).map_err(|error| error.to_string())?;
        let by_tag = |launch: &TaskInfo<'_>, nodes| Sharding::OnOne(launch.tag as usize % nodes);
        let mapper = ShardingMapper::new(DefaultMapper::new(), by_tag);
        let runtime = Runtime::builder().workers(1).network(transport).mapper(mapper).build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let outcome = runtime.run(async |cx: &Context| {
            let cells = cx.region::<Cell>(bytes / size_of::<f64>())?;
            cx.fill(&cells, Cell::value, 1.0)?;
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS {
                cx.execution_fence().await?;
                let start = Instant::now();
                (0..times as u64).for_each(|trip| drop(cx.launch(touch(&cells).tag(trip))));
                cx.execution_fence().await?;
                rounds.push(start.elapsed().as_secs_f64() / times as f64);
            }
            Ok(median(rounds))
        });
        outcome.map_err(|error| error.to_string())
    };
    let outcomes = thread::scope(|scope| [0, 1].map(|rank| scope.spawn(move || run(rank))).map(|node| node.join()));
    std::fs::remove_file(&file)?;
    let [first, second] = outcomes.map(|outcome| outcome.unwrap_or_else(|_| Err("a node panicked".to_owned())));
    second?;
    Ok(first?)
}

/// Messages that each handler sends on to the next node.
fn loopback(nodes: usize) {
    let times = (0..3)
        .map(|_| {
            let network = Network::seeded(nodes, 1, 100);
            let start = |rank| {
                let next = NodeId(((rank + 1) % nodes) as u16);
                let handlers = Handlers::new().on(PING, move |message| {
                    let left = message.header().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                    if left > 0 {
                        message.send(next, Message::new(PING).header(&(left - 1).to_le_bytes())).unwrap_or_default();
                    }
                });
                Endpoint::start(network.node(NodeId(rank as u16)), handlers, Options::default())
            };
            let endpoints: Vec<_> = (0..nodes).map(start).collect();
            for endpoint in &endpoints {
                let left = MESSAGES / nodes as u64 - 1;
                let first = Message::new(PING).header(&left.to_le_bytes());
                endpoint.send(endpoint.rank(), first).expect("windows are empty");
            }
            seconds(|| network.run())
        })
        .collect();
    let sent = MESSAGES / nodes as u64 * nodes as u64;
    line(&format!("loopback, messages among {nodes} nodes"), sent as f64 / median(times) * 1e-6, "M/s", "");
}
