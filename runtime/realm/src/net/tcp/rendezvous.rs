//! How the nodes of a job find each other.
//!
//! Node 0 listens where all can find it: at an address that everybody was given, or at one that it writes into a file that everybody reads. The others
//! connect to it and tell where they listen themselves; when all have come, node 0 gives everybody the list, and each node connects to those of lower
//! rank. So there is one connection for each pair of nodes. Once a node has them all it stops listening: a job that runs has no open port.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::error::JoinError;
use super::handshake::{Hello, Role, greet, read_text};
use super::{Meeting, Settings};
use crate::machine::NodeId;

/// How many connections may be greeting at once: strangers cannot take all descriptors.
const MOST_GREETINGS: usize = 128;

/// How long to wait before looking again for node 0.
const AGAIN: Duration = Duration::from_millis(20);

/// A connection for each other node, by rank.
pub(super) type Connections = Vec<Option<TcpStream>>;

/// Finds all nodes.
pub(super) async fn meet(settings: &Settings) -> Result<Connections, JoinError> {
    let nodes = settings.nodes;
    let deadline = Instant::now() + settings.join_timeout;
    let mut found: Connections = (0..nodes).map(|_| None).collect();
    if nodes == 1 {
        return Ok(found);
    }
    let port = Port::open(settings).await?;
    let mut gathering = Gathering { settings, deadline, refused: String::new() };
    if settings.rank.0 == 0 {
        if let Meeting::File(file) = &settings.meeting {
            write_address(file, port.address)?;
        }
        let mut addresses = gathering.accept(port, 1, &mut found).await?;
        addresses[0] = String::new();
        for stream in found.iter_mut().flatten() {
            tell_addresses(stream, &addresses).await?;
        }
    } else {
        let mut first = gathering.reach_first(&port).await?;
        let addresses = gathering.hear_addresses(&mut first).await?;
        found[0] = Some(first);
        let rank = usize::from(settings.rank.0);
        for (node, address) in addresses.iter().enumerate().take(rank).skip(1) {
            let hello = hello(settings, &port);
            let connected = timeout_at(deadline, connect(settings, address, NodeId(node as u16), &hello)).await;
            found[node] = Some(connected.map_err(|_| gathering.timed_out(format!("node {node}")))??);
        }
        gathering.accept(port, rank + 1, &mut found).await?;
    }
    Ok(found)
}

/// Where a node listens.
struct Port {
    listener: TcpListener,
    address: SocketAddr,
}

impl Port {
    async fn open(settings: &Settings) -> Result<Self, JoinError> {
        let wanted = match &settings.meeting {
            Meeting::At(address) if settings.rank.0 == 0 => resolve(address).await?,
            _ => SocketAddr::new(settings.listen, 0),
        };
        let listening = TcpListener::bind(wanted).await;
        let listener = listening.map_err(JoinError::io(format!("listening on {wanted}")))?;
        let address = listener.local_addr().map_err(JoinError::io("asking where we listen"))?;
        Ok(Self { listener, address })
    }
}

async fn resolve(address: &str) -> Result<SocketAddr, JoinError> {
    let what = || format!("looking up {address} (an address is HOST:PORT)");
    let found = lookup_host(address).await.map_err(JoinError::io(what()))?.next();
    found.ok_or_else(|| JoinError::Io { what: what(), error: std::io::ErrorKind::NotFound.into() })
}

fn hello(settings: &Settings, port: &Port) -> Hello {
    Hello {
        nodes: settings.nodes as u32,
        rank: settings.rank,
        address: port.address.to_string(),
        build: settings.build.clone(),
    }
}

/// Written beside and then renamed, so that nobody reads half of it.
fn write_address(file: &Path, address: SocketAddr) -> Result<(), JoinError> {
    if address.ip().is_unspecified() {
        return Err(JoinError::NoAddressToTell { file: file.to_owned() });
    }
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let written = std::fs::write(&beside, address.to_string()).and_then(|()| std::fs::rename(&beside, file));
    written.map_err(JoinError::io(format!("writing where node 0 listens to {}", file.display())))
}

/// Connects to a node that was found, and greets it.
async fn connect(settings: &Settings, address: &str, node: NodeId, hello: &Hello) -> Result<TcpStream, JoinError> {
    let connected = TcpStream::connect(address).await;
    let mut stream = connected.map_err(JoinError::io(format!("connecting to {node} at {address}")))?;
    stream.set_nodelay(true).map_err(JoinError::io("setting up a connection"))?;
    let mut ours = hello.clone();
    if let (Ok(listens), Ok(own)) = (ours.address.parse::<SocketAddr>(), stream.local_addr())
        && listens.ip().is_unspecified()
    {
        // We listen on all addresses: others reach us where we reach node 0 from.
        ours.address = SocketAddr::new(own.ip(), listens.port()).to_string();
    }
    let expected = |theirs: &Hello| match theirs.rank == node {
        true => Ok(()),
        false => Err(JoinError::RankTaken { node: theirs.rank }),
    };
    let greeting = greet(&mut stream, address, Role::Connects, &settings.secret, &ours, expected);
    let greeted = timeout(settings.silence, greeting).await;
    greeted.map_err(|_| JoinError::NotANode { peer: address.to_owned(), found: "it says nothing".to_owned() })??;
    Ok(stream)
}

async fn tell_addresses(stream: &mut TcpStream, addresses: &[String]) -> Result<(), JoinError> {
    let mut text = Vec::new();
    for address in addresses {
        text.extend_from_slice(&(address.len() as u16).to_le_bytes());
        text.extend_from_slice(address.as_bytes());
    }
    stream.write_all(&text).await.map_err(JoinError::io("telling a node where the others are"))
}

struct Gathering<'a> {
    settings: &'a Settings,
    deadline: Instant,
    /// The last that somebody was refused for, or that we were.
    refused: String,
}

impl Gathering<'_> {
    fn timed_out(&self, waited_for: impl Into<String>) -> JoinError {
        JoinError::TimedOut {
            after: self.settings.join_timeout,
            waited_for: waited_for.into(),
            meeting: self.settings.meeting.to_string(),
            refused: self.refused.clone(),
        }
    }

    /// Connects to node 0, however long it takes to come, up to the deadline.
    async fn reach_first(&mut self, port: &Port) -> Result<TcpStream, JoinError> {
        let ours = hello(self.settings, port);
        loop {
            let address = match &self.settings.meeting {
                Meeting::At(address) => Some(address.clone()),
                Meeting::File(file) => std::fs::read_to_string(file).ok(),
            };
            if let Some(address) = address {
                match timeout_at(self.deadline, connect(self.settings, address.trim(), NodeId(0), &ours)).await {
                    Ok(Ok(stream)) => return Ok(stream),
                    Ok(Err(error)) if error.is_final() => return Err(error),
                    // A file may be of an earlier job, whose port somebody else has now. An address was meant.
                    Ok(Err(error)) if !matches!(error, JoinError::Io { .. } | JoinError::NotANode { .. }) => {
                        if matches!(self.settings.meeting, Meeting::At(_)) {
                            return Err(error);
                        }
                        self.refused = error.to_string();
                    }
                    Ok(Err(error)) => self.refused = error.to_string(),
                    Err(_) => {}
                }
            }
            if Instant::now() >= self.deadline {
                return Err(self.timed_out("node 0"));
            }
            sleep(AGAIN).await;
        }
    }

    /// The list from node 0, which comes when all are there.
    async fn hear_addresses(&mut self, first: &mut TcpStream) -> Result<Vec<String>, JoinError> {
        let nodes = self.settings.nodes;
        let listening = async {
            let mut addresses = Vec::new();
            for _ in 0..nodes {
                let text = read_text(first, "node 0").await?;
                addresses.push(String::from_utf8_lossy(&text).into_owned());
            }
            Ok(addresses)
        };
        // Node 0 has the same deadline, about; it says more about who is missing.
        match timeout_at(self.deadline, listening).await {
            Ok(Err(JoinError::NotANode { .. })) => Err(JoinError::Refused {
                peer: "node 0".to_owned(),
                reason: "it ended before all nodes had come; see what it says itself".to_owned(),
            }),
            Ok(heard) => heard,
            Err(_) => Err(self.timed_out("the others (node 0 is there)")),
        }
    }

    /// Waits for all nodes from `first` on; gives where they listen.
    async fn accept(&mut self, port: Port, first: usize, found: &mut Connections) -> Result<Vec<String>, JoinError> {
        let nodes = self.settings.nodes;
        let mut addresses = vec![String::new(); nodes];
        let mut missing = nodes - first;
        if missing == 0 {
            return Ok(addresses);
        }
        let (sender, mut greeted) = mpsc::unbounded_channel();
        let door = Door {
            ours: hello(self.settings, &port),
            settings: self.settings.clone(),
            expected: (0..nodes).map(|node| node >= first).collect::<Vec<_>>(),
        };
        let _accepting = Accepting(tokio::spawn(accept_all(port.listener, Arc::new(Mutex::new(door)), sender)));
        while missing > 0 {
            match timeout_at(self.deadline, greeted.recv()).await {
                Ok(Some(Ok((hello, stream)))) => {
                    let node = usize::from(hello.rank.0);
                    addresses[node] = hello.address;
                    found[node] = Some(stream);
                    missing -= 1;
                }
                Ok(Some(Err(error))) if error.is_final() => return Err(error),
                Ok(Some(Err(error))) => self.refused = format!("somebody was refused: {error}"),
                Ok(None) | Err(_) => return Err(self.timed_out(missing_of(found, first))),
            }
        }
        Ok(addresses)
    }
}

/// Names those who have not come.
fn missing_of(found: &Connections, first: usize) -> String {
    let missing: Vec<_> = (first..found.len()).filter(|&node| found[node].is_none()).collect();
    match *missing {
        [node] => NodeId(node as u16).to_string(),
        [node, ..] => format!("{} of {} nodes (the first is {})", missing.len(), found.len(), NodeId(node as u16)),
        [] => "nobody".to_owned(),
    }
}

/// Stops accepting when it is dropped, and with that closes the port.
struct Accepting(JoinHandle<()>);

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What those who are let in are measured by.
struct Door {
    settings: Settings,
    ours: Hello,
    /// Who has not come yet.
    expected: Vec<bool>,
}

type Greeted = Result<(Hello, TcpStream), JoinError>;

async fn accept_all(listener: TcpListener, door: Arc<Mutex<Door>>, sender: mpsc::UnboundedSender<Greeted>) {
    let places = Arc::new(Semaphore::new(MOST_GREETINGS));
    // Ends with this task, and all greetings with it: strangers who say nothing do not stay when the job has begun.
    let mut greetings = JoinSet::new();
    loop {
        while greetings.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, peer)) = listener.accept().await else {
            // Out of descriptors, perhaps: greetings that end give some back.
            sleep(AGAIN).await;
            continue;
        };
        let (door, sender) = (Arc::clone(&door), sender.clone());
        greetings.spawn(async move {
            let greeted = let_in(stream, peer.ip(), &door).await;
            drop(place);
            let _ = sender.send(greeted);
        });
    }
}

async fn let_in(mut stream: TcpStream, peer: IpAddr, door: &Mutex<Door>) -> Greeted {
    stream.set_nodelay(true).map_err(JoinError::io("setting up a connection"))?;
    let (settings, ours) = {
        let door = door.lock();
        (door.settings.clone(), door.ours.clone())
    };
    let taken = OnceLock::new();
    let take = |theirs: &Hello| {
        let expected = &mut door.lock().expected;
        match expected.get_mut(usize::from(theirs.rank.0)) {
            Some(place) if *place => {
                *place = false;
                let _ = taken.set(usize::from(theirs.rank.0));
                Ok(())
            }
            _ => Err(JoinError::RankTaken { node: theirs.rank }),
        }
    };
    let peer = peer.to_string();
    let greeting = greet(&mut stream, &peer, Role::Accepts, &settings.secret, &ours, take);
    let greeted = timeout(settings.silence, greeting).await;
    if !matches!(greeted, Ok(Ok(_)))
        && let Some(place) = taken.get()
    {
        // It was welcome, but has gone before it heard that: it may come again.
        door.lock().expected[*place] = true;
    }
    match greeted {
        Ok(greeted) => Ok((greeted?, stream)),
        Err(_) => Err(JoinError::NotANode { peer, found: "it says nothing".to_owned() }),
    }
}
