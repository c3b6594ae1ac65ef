//! How the nodes of a job find each other.
//!
//! Node 0 listens where all can find it: at an address that every node was given, or at one that it writes into a file
//! that every node reads. The others connect to it and tell where they listen themselves; when all have come, node 0
//! gives every node the list, and each node connects to those of lower rank. So there is one connection for each pair
//! of nodes. Once a node has them all it stops listening, and tells node 0; when all have, node 0 lets them begin. A
//! node that dies meanwhile closes its connection to node 0, which tells all others why nothing will come of it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use crate::locks::Mutex;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::error::JoinError;
use super::handshake::{Hello, LONGEST, Role, greet, read_text};
use super::{Meeting, Settings};
use crate::machine::NodeId;
use crate::net::wire::cut;

/// How many connections may be greeting at once: strangers cannot take all descriptors.
const MOST_GREETINGS: usize = 128;

/// How long a greeting may take whose place another connection waits for: strangers that say nothing cannot keep nodes
/// out.
const LONGEST_IF_CROWDED: Duration = Duration::from_secs(1);

/// How long to wait before looking again for node 0.
const AGAIN: Duration = Duration::from_millis(20);

/// How much longer a node waits that has reached node 0: node 0 alone knows which nodes have not come, and says so when
/// its own time is over.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// As many nodes are named of those that have not come.
const MOST_NAMED: usize = 16;

/// A connection for each other node, by rank.
pub(super) type Connections = Vec<Option<TcpStream>>;

/// Finds all nodes.
pub(super) async fn meet(settings: &Settings) -> Result<Connections, JoinError> {
    let mut found: Connections = (0..settings.nodes).map(|_| None).collect();
    if settings.nodes == 1 {
        return Ok(found);
    }
    let port = Port::open(settings).await?;
    let deadline = Instant::now() + settings.join_timeout;
    let mut gathering = Gathering { settings, deadline, refused: String::new() };
    if settings.rank.0 > 0 {
        gathering.meet_others(port, &mut found).await?;
        return Ok(found);
    }
    let outcome = gathering.gather(port, &mut found).await;
    // All that are there are told that they can begin, or why not.
    let words = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
    for stream in found.iter_mut().flatten() {
        let sent = stream.write_all(&text(cut(&words, LONGEST))).await;
        sent.or_else(|error| if outcome.is_ok() { Err(error) } else { Ok(()) })
            .map_err(JoinError::io("telling a node that the job begins"))?;
    }
    outcome.map(|()| found)
}

/// A text with its length, as `read_text` reads it.
fn text(words: &str) -> Vec<u8> {
    let mut bytes = (words.len() as u16).to_le_bytes().to_vec();
    bytes.extend_from_slice(words.as_bytes());
    bytes
}

/// Which of two comes first.
async fn either<T>(first: impl Future<Output = T>, second: impl Future<Output = T>) -> T {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|context| match first.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(value),
        Poll::Pending => second.as_mut().poll(context),
    })
    .await
}

/// The port at which a node listens.
struct Port {
    listener: TcpListener,
    address: SocketAddr,
}

impl Port {
    async fn open(settings: &Settings) -> Result<Self, JoinError> {
        let wanted = match &settings.meeting {
            Meeting::At(address) if settings.rank.0 == 0 => {
                let met = resolve(address).await?;
                // A machine often knows its own name as one of its loopback addresses, where others do not reach it.
                if settings.listen.is_unspecified() { SocketAddr::new(settings.listen, met.port()) } else { met }
            }
            _ => SocketAddr::new(settings.listen, 0),
        };
        let listener = listen(wanted).await.map_err(JoinError::io(format!("listening on {wanted}")))?;
        let address = listener.local_addr().map_err(JoinError::io("asking where we listen"))?;
        Ok(Self { listener, address })
    }
}

/// Listens on an address; if it stands for all, on those of IPv4 and of IPv6: which of them others reach us at, they
/// know.
async fn listen(wanted: SocketAddr) -> std::io::Result<TcpListener> {
    if !wanted.ip().is_unspecified() {
        return TcpListener::bind(wanted).await;
    }
    match listen_on_all(wanted.port()) {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(error),
        // There may be no IPv6 here.
        Err(_) => TcpListener::bind(wanted).await,
    }
}

fn listen_on_all(port: u16) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_only_v6(false)?;
    socket.set_nonblocking(true)?;
    // As tokio's own sockets: a port whose last connections are still closing is free.
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())?;
    socket.listen(1024)?;
    TcpListener::from_std(socket.into())
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

/// The file in which node 0 says where it listens, until it is dropped.
struct Posted<'a> {
    file: &'a Path,
    text: String,
}

impl<'a> Posted<'a> {
    /// Written beside and then renamed, so that no process reads half of it. The name beside can't be guessed, and a
    /// file of its own: others may write to the folder too, and a link that they have put there would be followed.
    fn new(file: &'a Path, address: SocketAddr) -> Result<Self, JoinError> {
        if address.ip().is_unspecified() {
            return Err(JoinError::NoAddressToTell { file: file.to_owned() });
        }
        check_free(file)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random)?;
        let beside = file.with_extension(format!("{:016x}.new", u64::from_le_bytes(random)));
        let posted = Self { file, text: address.to_string() };
        let written = write_new(&beside, &posted.text).and_then(|()| std::fs::rename(&beside, file));
        if written.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        written.map(|()| posted).map_err(JoinError::io(format!("writing where node 0 listens to {}", file.display())))
    }
}

impl Drop for Posted<'_> {
    /// No node is to come any more. A later job's file stays.
    fn drop(&mut self) {
        if read_posted(self.file).is_ok_and(|text| text.is_some_and(|text| text == self.text)) {
            let _ = std::fs::remove_file(self.file);
        }
    }
}

/// No address is as long.
const LONGEST_ADDRESS: u64 = 256;

/// Refuses a path at which something would be replaced that no job has left: a job that was killed leaves an address.
fn check_free(file: &Path) -> Result<(), JoinError> {
    let refused = |found| Err(JoinError::NotAPlace { file: file.to_owned(), found });
    let looking = || format!("looking whether {} is free for where node 0 listens", file.display());
    match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(JoinError::io(looking())(error)),
        Ok(found) if !found.is_file() => refused("there is no regular file, but a folder, a link, a pipe or a device"),
        Ok(_) => match read_posted(file).map_err(JoinError::io(looking()))? {
            Some(text) if text.is_empty() || text.trim().parse::<SocketAddr>().is_ok() => Ok(()),
            _ => refused("there is a file with something else than the address of an earlier job"),
        },
    }
}

/// Reads what a file says, if it is as short as an address; `None` also if it is no regular file, since to read a pipe
/// would be to wait for its other end.
fn read_posted(file: &Path) -> std::io::Result<Option<String>> {
    if !std::fs::metadata(file)?.is_file() {
        return Ok(None);
    }
    let mut text = Vec::new();
    std::fs::File::open(file)?.take(LONGEST_ADDRESS + 1).read_to_end(&mut text)?;
    Ok(String::from_utf8(text).ok().filter(|text| text.len() as u64 <= LONGEST_ADDRESS))
}

/// Writes a file that did not exist, for this user alone.
fn write_new(file: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(text.as_bytes())
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

struct Gathering<'a> {
    settings: &'a Settings,
    deadline: Instant,
    /// The last that a process was refused for, or that we were.
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
                Meeting::File(file) if std::fs::metadata(file).is_ok_and(|found| !found.is_file()) => {
                    let found = "there is no file, but a folder, a pipe or a device";
                    return Err(JoinError::NotAPlace { file: file.clone(), found });
                }
                Meeting::File(file) => read_posted(file).ok().flatten(),
            };
            if let Some(address) = address {
                match timeout_at(self.deadline, connect(self.settings, address.trim(), NodeId(0), &ours)).await {
                    Ok(Ok(stream)) => return Ok(stream),
                    Ok(Err(error)) if error.is_final() => return Err(error),
                    // A file may be of an earlier job, whose port another program has now. An address was meant.
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

    /// The next words of node 0: none if all is well, else the reason why not.
    async fn hear(&mut self, first: &mut TcpStream) -> Result<String, JoinError> {
        let peer = "node 0";
        match timeout_at(self.deadline + LAST_WORDS, read_text(first, peer)).await {
            Ok(Ok(words)) => Ok(String::from_utf8_lossy(&words).into_owned()),
            Ok(Err(_)) => Err(ended_early()),
            Err(_) => Err(self.timed_out("the others (node 0 is there)")),
        }
    }

    /// Node 0: waits for all, tells them where they are, waits until they have met.
    async fn gather(&mut self, port: Port, found: &mut Connections) -> Result<(), JoinError> {
        let posted = match &self.settings.meeting {
            Meeting::File(file) => Some(Posted::new(file, port.address)?),
            Meeting::At(_) => None,
        };
        let addresses = self.accept(port, 1, found).await?;
        drop(posted);
        // An empty text first: all is well so far.
        let list: Vec<u8> = std::iter::once("").chain(addresses.iter().map(String::as_str)).flat_map(text).collect();
        for stream in found.iter_mut().flatten() {
            stream.write_all(&list).await.map_err(JoinError::io("telling a node where the others are"))?;
        }
        let mut waiting: Vec<usize> = (1..found.len()).collect();
        while !waiting.is_empty() {
            let said = poll_fn(|context| {
                let says = |&node: &usize| found[node].as_ref().is_none_or(|it| it.poll_read_ready(context).is_ready());
                waiting.iter().position(says).map_or(Poll::Pending, Poll::Ready)
            });
            let place = timeout_at(self.deadline, said).await;
            let place = place.map_err(|_| {
                waiting.sort_unstable();
                self.timed_out(format!("word that they have met the others from {}", named(&waiting, found.len())))
            })?;
            let node = NodeId(waiting[place] as u16);
            match found[waiting[place]].as_ref().map(|stream| stream.try_read(&mut [0])) {
                Some(Ok(1)) => drop(waiting.swap_remove(place)),
                Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => {}
                _ => return Err(JoinError::Died { node }),
            }
        }
        Ok(())
    }

    /// Any other node: finds node 0, hears of the others, meets them, and waits for the word to begin.
    async fn meet_others(&mut self, port: Port, found: &mut Connections) -> Result<(), JoinError> {
        let refused = |reason| Err(JoinError::Refused { peer: "node 0".to_owned(), reason });
        let mut first = self.reach_first(&port).await?;
        let words = self.hear(&mut first).await?;
        if !words.is_empty() {
            return refused(words);
        }
        let mut addresses = Vec::new();
        for _ in 0..self.settings.nodes {
            addresses.push(self.hear(&mut first).await?);
        }
        // Node 0 says nothing before we have met all: what comes earlier is why the job does not begin.
        let mut byte = [0];
        let watching = async {
            let _ = first.peek(&mut byte).await;
            Ok(false)
        };
        let has_met = either(async { self.connect_and_accept(port, &addresses, found).await.map(|()| true) }, watching);
        if has_met.await? {
            first.write_all(&[1]).await.map_err(|_| ended_early())?;
        }
        let words = self.hear(&mut first).await?;
        if !words.is_empty() {
            return refused(words);
        }
        found[0] = Some(first);
        Ok(())
    }

    async fn connect_and_accept(
        &mut self,
        port: Port,
        addresses: &[String],
        found: &mut Connections,
    ) -> Result<(), JoinError> {
        let rank = usize::from(self.settings.rank.0);
        let ours = hello(self.settings, &port);
        for node in 1..rank {
            let name = NodeId(node as u16);
            let connecting = connect(self.settings, &addresses[node], name, &ours);
            let connected = timeout_at(self.deadline, connecting).await;
            found[node] = Some(connected.map_err(|_| self.timed_out(name.to_string()))??);
        }
        self.accept(port, rank + 1, found).await.map(drop)
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
                Ok(Some(Err(error))) => self.refused = format!("a process was refused: {error}"),
                Ok(None) | Err(_) => return Err(self.timed_out(missing_of(found, first))),
            }
        }
        Ok(addresses)
    }
}

fn ended_early() -> JoinError {
    let reason = "it ended before the job had come together; see what it says itself".to_owned();
    JoinError::Refused { peer: "node 0".to_owned(), reason }
}

/// Names the nodes that have not come.
fn missing_of(found: &Connections, first: usize) -> String {
    let missing: Vec<_> = (first..found.len()).filter(|&node| found[node].is_none()).collect();
    named(&missing, found.len())
}

/// Names some nodes of all.
fn named(some: &[usize], all: usize) -> String {
    let name = |&node: &usize| NodeId(node as u16).to_string();
    match some {
        [] => "no node".to_owned(),
        [node] => name(node),
        _ => {
            let shown: Vec<String> = some.iter().take(MOST_NAMED).map(name).collect();
            let more = some.len() - shown.len();
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            format!("{} of {all} nodes ({}{more})", some.len(), shown.join(", "))
        }
    }
}

/// Stops accepting when it is dropped, and with that closes the port.
struct Accepting(JoinHandle<()>);

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The criteria by which processes are let in.
struct Door {
    settings: Settings,
    ours: Hello,
    /// Whether a node has not come yet, by rank.
    expected: Vec<bool>,
}

type Greeted = Result<(Hello, TcpStream), JoinError>;

async fn accept_all(listener: TcpListener, door: Arc<Mutex<Door>>, sender: mpsc::UnboundedSender<Greeted>) {
    let places = Arc::new(Semaphore::new(MOST_GREETINGS));
    // Ends with this task, and all greetings with it: strangers that say nothing do not stay when the job has begun.
    let mut greetings = JoinSet::new();
    // When each that is left has begun, and what ends it when it is dropped.
    let mut begun: VecDeque<(Instant, oneshot::Sender<()>)> = VecDeque::new();
    loop {
        while greetings.try_join_next().is_some() {}
        begun.retain(|(_, end)| !end.is_closed());
        let acquired = Arc::clone(&places).acquire_owned();
        let acquired = match begun.front() {
            None => acquired.await,
            Some((oldest, _)) => match timeout_at(*oldest + LONGEST_IF_CROWDED, acquired).await {
                Ok(acquired) => acquired,
                Err(_) => {
                    begun.pop_front();
                    continue;
                }
            },
        };
        let Ok(place) = acquired else { return };
        let Ok((stream, peer)) = listener.accept().await else {
            // Out of descriptors, perhaps: greetings that end give some back.
            sleep(AGAIN).await;
            continue;
        };
        let (door, sender) = (Arc::clone(&door), sender.clone());
        let (end, ended) = oneshot::channel();
        begun.push_back((Instant::now(), end));
        greetings.spawn(async move {
            let greeted = let_in(stream, peer.ip(), &door, ended).await;
            drop(place);
            let _ = sender.send(greeted);
        });
    }
}

async fn let_in(mut stream: TcpStream, peer: IpAddr, door: &Mutex<Door>, ended: oneshot::Receiver<()>) -> Greeted {
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
    let peer = peer.to_canonical().to_string();
    let greeting = greet(&mut stream, &peer, Role::Accepts, &settings.secret, &ours, take);
    let in_time = async { timeout(settings.silence, greeting).await.ok() };
    let crowded_out = async {
        let _ = ended.await;
        None
    };
    let greeted = either(in_time, crowded_out).await;
    if !matches!(greeted, Some(Ok(_)))
        && let Some(place) = taken.get()
    {
        // It was welcome, but has gone before it heard that: it may come again.
        door.lock().expected[*place] = true;
    }
    match greeted {
        Some(greeted) => Ok((greeted?, stream)),
        None => Err(JoinError::NotANode { peer, found: "it says nothing".to_owned() }),
    }
}
