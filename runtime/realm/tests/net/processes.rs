//! Nodes in processes of their own, which are killed and stopped.
//!
//! A test is node 0; it starts the others by running itself again, with [`node`] as the only test, which does what a
//! variable of the environment says.

use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use maniple_realm::machine::NodeId;
use maniple_realm::net::tcp::{Meeting, Secret, Settings, Tcp};
use maniple_realm::net::{Endpoint, HandlerId, Handlers, Loss, Message, Options};
use rustix::process::{Pid, Signal, kill_process};

use crate::tcp_cluster::{meeting_file, settings};

const VARIABLE: &str = "MANIPLE_NET_TEST_NODE";

/// The handler for what node 0 hears of the others: a word, and a number.
const WORD: HandlerId = HandlerId(0);
/// Asks how many nodes were lost.
const COUNT: HandlerId = HandlerId(1);
/// Asks to leave in order.
const END: HandlerId = HandlerId(2);

/// A node that does as it is told until all others are gone or it is asked to end.
#[test]
fn node() {
    let Ok(variable) = std::env::var(VARIABLE) else { return };
    let mut words = variable.split(' ');
    let mut word = || words.next().unwrap();
    let (rank, nodes, silence): (u16, usize, u64) =
        (word().parse().unwrap(), word().parse().unwrap(), word().parse().unwrap());
    let (secret, file) = (Secret::from_hex(word()).unwrap(), Path::new(word()));
    let (sender, ended) = channel();
    let losses = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let endpoint: Arc<OnceLock<std::sync::Weak<Endpoint>>> = Arc::default();
    let tell = {
        let (losses, endpoint, sender) = (Arc::clone(&losses), Arc::clone(&endpoint), sender.clone());
        move |node: NodeId, loss: &Loss| {
            losses.lock().push(node);
            let word = Message::new(WORD).header(&[node.0 as u8]).payload(loss.to_string().into_bytes());
            // It may be told before the endpoint is put there.
            if let Some(endpoint) = endpoint.wait().upgrade() {
                let _ = endpoint.send(NodeId(0), word);
            }
            if losses.lock().len() == nodes - 1 {
                sender.send(1).unwrap();
            }
        }
    };
    let handlers = Handlers::new()
        .on(COUNT, move |asked| asked.reply(Message::new(COUNT).header(&[losses.lock().len() as u8])).unwrap())
        .on(END, move |asked| {
            let sender = sender.clone();
            asked.endpoint().shutdown(move |result| sender.send(i32::from(result.is_err()) * 2).unwrap());
        })
        .on_loss(tell);
    let joined = Tcp::join(with_silence(rank, nodes, file, &secret, silence)).unwrap();
    let own = Endpoint::start(joined, handlers, Options::default());
    endpoint.set(Arc::downgrade(&own)).unwrap();
    let status = ended.recv().unwrap();
    if status == 1 {
        own.abort("all others are gone");
    }
    own.join();
    std::process::exit(status);
}

fn with_silence(rank: u16, nodes: usize, file: &Path, secret: &Secret, milliseconds: u64) -> Settings {
    let silence = Duration::from_millis(milliseconds);
    let heartbeat = Duration::from_millis(20);
    Settings { silence, heartbeat, ..settings(rank, nodes, Meeting::File(file.to_owned()), secret) }
}

/// A message that node 0 hears: its sender, a number, words.
type Heard = (NodeId, u8, String);

/// A job of this process and others.
struct Job {
    own: Arc<Endpoint>,
    heard: Receiver<Heard>,
    others: Vec<Child>,
}

impl Job {
    /// Nodes with their patience in milliseconds; the first is this process.
    fn start(patience: &[u64]) -> Self {
        let (file, secret) = (meeting_file(), Secret::random().unwrap());
        let nodes = patience.len();
        let spawn = |rank: usize| {
            let text = format!("{rank} {nodes} {} {} {}", patience[rank], secret.to_hex(), file.display());
            Command::new(std::env::current_exe().unwrap())
                .args(["processes::node", "--exact", "--nocapture"])
                .env(VARIABLE, text)
                .spawn()
                .unwrap()
        };
        let others = (1..nodes).map(spawn).collect();
        let (sender, heard) = channel();
        let (words, counts) = (sender.clone(), sender.clone());
        let handlers = Handlers::new()
            .on(WORD, move |word| {
                let text = String::from_utf8_lossy(word.payload()).into_owned();
                let _ = words.send((word.from(), word.header()[0], text));
            })
            .on(COUNT, move |count| drop(counts.send((count.from(), count.header()[0], String::new()))))
            .on_loss(move |node, loss| drop(sender.send((NodeId(0), node.0 as u8, loss.to_string()))));
        let joined = Tcp::join(with_silence(0, nodes, &file, &secret, patience[0])).unwrap();
        Self { own: Endpoint::start(joined, handlers, Options::default()), heard, others }
    }

    fn signal(&self, rank: usize, signal: Signal) {
        kill_process(Pid::from_child(&self.others[rank - 1]), signal).unwrap();
    }

    /// The next message of each of some nodes, by rank.
    fn hear(&self, from: &[u16]) -> Vec<Heard> {
        let mut heard: Vec<_> = from.iter().map(|_| self.heard.recv().unwrap()).collect();
        heard.sort();
        assert_eq!(heard.iter().map(|(node, ..)| node.0).collect::<Vec<_>>(), from, "{heard:?}");
        heard
    }

    fn end(self) -> Vec<ExitStatus> {
        let Self { own, heard, mut others } = self;
        drop(own);
        let statuses = others.iter_mut().map(|child| child.wait().unwrap()).collect();
        drop(heard);
        statuses
    }
}

/// So long that no machine is too slow for it.
const PATIENT: u64 = 600_000;

#[test]
fn a_process_that_is_killed_is_lost_to_all_others() {
    let job = Job::start(&[PATIENT; 3]);
    job.signal(2, Signal::KILL);
    for (_, lost, words) in job.hear(&[0, 1]) {
        assert_eq!(lost, 2);
        assert!(words.contains("its process has ended without a word"), "{words}");
    }
    // Node 1 ends when this one has gone too.
    let statuses = job.end();
    assert_eq!(statuses[0].code(), Some(1));
    assert_eq!(statuses[1].code(), None);
}

#[test]
fn a_process_that_is_stopped_is_lost_when_patience_ends_and_learns_of_it_later() {
    let job = Job::start(&[300, 300, PATIENT]);
    job.signal(2, Signal::STOP);
    for (_, lost, words) in job.hear(&[0, 1]) {
        assert_eq!(lost, 2);
        assert!(words.contains("nothing was heard of it for"), "{words}");
    }
    job.signal(2, Signal::CONT);
    let statuses = job.end();
    assert_eq!([statuses[0].code(), statuses[1].code()], [Some(1); 2]);
}

#[test]
fn a_process_that_was_stopped_does_not_take_its_own_absence_for_that_of_others() {
    let silence = 400;
    let job = Job::start(&[PATIENT, silence]);
    job.signal(1, Signal::STOP);
    // Longer than node 1 would wait for any node.
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(2 * silence) {
        std::thread::yield_now();
    }
    job.signal(1, Signal::CONT);
    job.own.send(NodeId(1), Message::new(COUNT)).unwrap();
    assert_eq!(job.hear(&[1]), [(NodeId(1), 0, String::new())]);
    // Again, when its heartbeats have had their turn.
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(silence / 2) {
        std::thread::yield_now();
    }
    job.own.send(NodeId(1), Message::new(COUNT)).unwrap();
    assert_eq!(job.hear(&[1]), [(NodeId(1), 0, String::new())]);
    assert_eq!(job.end()[0].code(), Some(1));
}

#[test]
fn processes_that_end_in_order_lose_nobody() {
    let job = Job::start(&[PATIENT; 4]);
    (1..4).for_each(|node| job.own.send(NodeId(node), Message::new(END)).unwrap());
    let (sender, done) = channel();
    job.own.shutdown(move |result| sender.send(result).unwrap());
    done.recv().unwrap().unwrap();
    let heard = job.heard.try_recv();
    assert!(heard.is_err(), "{heard:?}");
    assert!(job.end().iter().all(ExitStatus::success));
}
