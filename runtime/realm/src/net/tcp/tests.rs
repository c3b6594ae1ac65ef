//! Strangers, hostile bytes, refusals, and nodes that fall silent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt;

use super::handshake::{Hello, PROTOCOL, Role, greet, read_text};
use super::{BuildId, JoinError, Meeting, Secret, Settings, Tcp};
use crate::machine::NodeId;
use crate::net::error::Loss;
use crate::net::frame::{Header, Outcome, Violation};
use crate::net::message::HandlerId;
use crate::net::transport::{self, BytesPlace, Close, Flush};
use crate::net::{Endpoint, Handlers, Message, Options};

const HELLO: HandlerId = HandlerId(0);

fn meeting_file() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("maniple-tcp-{}-{number}", std::process::id()))
}

fn settings(rank: u16, nodes: usize, file: &Path, secret: &Secret) -> Settings {
    let patient = Duration::from_secs(600);
    Settings {
        rank: NodeId(rank),
        nodes,
        meeting: Meeting::File(file.to_owned()),
        listen: std::net::Ipv4Addr::LOCALHOST.into(),
        secret: secret.clone(),
        build: BuildId::new("one"),
        join_timeout: patient,
        heartbeat: Duration::from_millis(20),
        silence: patient,
        shared_memory: false,
    }
}

/// The address that node 0 has written, which waits for others.
fn address_in(file: &Path) -> SocketAddr {
    loop {
        match std::fs::read_to_string(file) {
            Ok(text) => return text.parse().unwrap(),
            Err(_) => thread::yield_now(),
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

type Losses = Receiver<(NodeId, Loss)>;

/// A node that takes what comes, and tells of losses.
fn listening(settings: Settings) -> Result<(Arc<Endpoint>, Losses), JoinError> {
    let (sender, losses) = channel();
    let handlers = Handlers::new()
        .on(HELLO, |message| message.reply(Message::new(HandlerId(1))).unwrap_or_default())
        .on_loss(move |node, loss| drop(sender.send((node, loss.clone()))));
    let options = Options { max_message: 1 << 20, ..Options::default() };
    Ok((Endpoint::start(Tcp::join(settings)?, handlers, options), losses))
}

/// Two nodes try to join with these settings.
fn pair(first: Settings, second: Settings) -> [Result<(), JoinError>; 2] {
    thread::scope(|scope| {
        let nodes = [first, second].map(|settings| scope.spawn(|| listening(settings).map(drop)));
        nodes.map(|node| node.join().unwrap())
    })
}

#[test]
fn a_different_build_is_refused_on_both_sides_and_both_builds_are_named() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    let other = Settings { build: BuildId::new("two"), ..settings(1, 2, &file, &secret) };
    for refused in pair(settings(0, 2, &file, &secret), other) {
        let error = refused.unwrap_err();
        assert!(matches!(error, JoinError::DifferentBuild { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("build one") && text.contains("build two"), "{text}");
        assert!(text.contains("node 0") && text.contains("node 1"), "{text}");
    }
}

#[test]
#[cfg(unix)]
fn the_meeting_file_follows_no_link_and_is_gone_when_all_have_come() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    let victim = file.with_extension("victim");
    std::fs::write(&victim, "precious").unwrap();
    // Where any user may write, others may put links at names that they can guess.
    let guesses = ["new".to_owned(), format!("{}.new", std::process::id())].map(|guess| file.with_extension(guess));
    for guess in &guesses {
        std::os::unix::fs::symlink(&victim, guess).unwrap();
    }
    for joined in pair(settings(0, 2, &file, &secret), settings(1, 2, &file, &secret)) {
        joined.unwrap();
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    assert!(std::fs::symlink_metadata(&file).is_err(), "the file stays");
    guesses.iter().chain([&victim]).for_each(|file| std::fs::remove_file(file).unwrap());
}

#[test]
#[cfg(unix)]
fn nodes_do_not_meet_in_the_place_of_what_no_job_has_left() {
    let secret = Secret::random().unwrap();
    let folder = std::env::temp_dir();
    let victim = meeting_file();
    std::fs::write(&victim, "precious").unwrap();
    let (link, pipe) = (victim.with_extension("link"), victim.with_extension("pipe"));
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for taken in [&folder, &victim, &link, &pipe, Path::new("/dev/null")] {
        let told = listening(settings(0, 2, taken, &secret)).map(drop).unwrap_err();
        assert!(matches!(told, JoinError::NotAPlace { .. }), "{}: {told}", taken.display());
    }
    for no_file in [&folder, &pipe, Path::new("/dev/null")] {
        let told = listening(settings(1, 2, no_file, &secret)).map(drop).unwrap_err();
        assert!(matches!(told, JoinError::NotAPlace { .. }), "{}: {told}", no_file.display());
    }
    assert_eq!(std::fs::read_to_string(&link).unwrap(), "precious");
    assert!([&link, &pipe].iter().all(|place| !std::fs::symlink_metadata(place).unwrap().is_file()));
    [&victim, &link, &pipe].into_iter().for_each(|file| std::fs::remove_file(file).unwrap());
}

/// Hands on the payloads of messages.
struct Payloads(Sender<Bytes>);

impl transport::Receiver for Payloads {
    fn place(&self, _: NodeId, _: &Header, _: usize) -> Result<BytesPlace, Violation> {
        Ok(BytesPlace::Nowhere)
    }

    fn placed(&self, _: NodeId, _: &Header, _: usize) {}

    fn receive(&self, _: NodeId, header: &Header, head: &[u8], body: Bytes) -> Result<(), Violation> {
        if let Header::Message { payload, .. } = *header {
            assert_eq!((payload, head), (body.len() as u64, &b"head"[..]));
            let _ = self.0.send(body);
        }
        Ok(())
    }

    fn lost(&self, _: NodeId, _: Loss) {}
}

#[test]
#[cfg(target_os = "linux")]
fn a_body_in_memory_that_is_lent_is_read_where_it_is_and_lent_again_once_it_was() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    let join = |rank| Tcp::join(Settings { shared_memory: true, ..settings(rank, 2, &file, &secret) }).unwrap();
    let [first, second] =
        thread::scope(|scope| [0, 1].map(|rank| scope.spawn(move || join(rank))).map(|join| join.join().unwrap()));
    let (sender, came) = channel();
    first.start(Arc::new(Payloads(channel().0)));
    second.start(Arc::new(Payloads(sender)));
    let header = Header::Message { handler: HELLO, payload: 100_000, counted: false, ask: false };
    let lend = || loop {
        // The other node may still be about to open it.
        match first.lend(NodeId(1), 100_000) {
            Some(loan) => return loan,
            None => thread::yield_now(),
        }
    };
    let mut places = Vec::new();
    for round in 0..3_u8 {
        let mut loan = lend();
        loan.bytes_mut().fill(round);
        let body = loan.freeze();
        places.push(body.as_ptr());
        assert!(first.send_lent(NodeId(1), &header, b"head", &body, Flush::Now), "there is room in the ring");
        drop(body);
        let came = came.recv().unwrap();
        assert!(came.iter().all(|&byte| byte == round));
        let mut other = lend();
        assert_ne!(other.bytes_mut().as_ptr(), places[0], "it is still being read");
        other.bytes_mut().fill(99);
        assert!(came.iter().all(|&byte| byte == round));
    }
    assert!(places.iter().all(|&place| place == places[0]), "what was read is lent again");
    assert!(!first.send_lent(NodeId(1), &header, b"head", &vec![0; 100_000], Flush::Now), "memory of another kind");
    [first, second].into_iter().for_each(|node| node.close(Close::Abort("the test is over".to_owned())));
}

#[test]
fn a_job_of_another_size_is_refused() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    for refused in pair(settings(0, 2, &file, &secret), settings(1, 3, &file, &secret)) {
        assert!(matches!(refused, Err(JoinError::DifferentJob { .. })));
    }
}

#[test]
fn a_rank_is_given_once() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    let results: Vec<_> = thread::scope(|scope| {
        let ranks = [0, 1, 1].map(|rank| {
            scope.spawn({
                let settings = settings(rank, 3, &file, &secret);
                || listening(settings).map(drop)
            })
        });
        ranks.into_iter().map(|node| node.join().unwrap()).collect()
    });
    assert!(matches!(results[0], Err(JoinError::RankTaken { node: NodeId(1) })));
    assert!(
        results[1..]
            .iter()
            .any(|result| matches!(result, Err(JoinError::Refused { reason, .. }) if reason.contains("node 1")))
    );
}

#[test]
fn a_node_that_does_not_know_the_secret_does_not_join_and_does_not_disturb() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    thread::scope(|scope| {
        let first = scope.spawn(|| listening(settings(0, 2, &file, &secret)));
        let address = address_in(&file);
        let wrong =
            Settings { meeting: Meeting::At(address.to_string()), ..settings(1, 2, &file, &Secret::random().unwrap()) };
        let error = listening(wrong).map(drop).unwrap_err();
        assert!(matches!(error, JoinError::WrongSecret { .. }), "{error}");
        assert!(error.to_string().contains("secret"));
        let second = listening(settings(1, 2, &file, &secret)).unwrap();
        let first = first.join().unwrap().unwrap();
        drop((first, second));
    });
}

#[test]
fn who_waits_in_vain_is_told_for_whom_and_who_was_refused() {
    let secret = Secret::random().unwrap();
    // Time enough for a stranger, however slow the machine is: again with more, if it came too late.
    let attempt = |patience: Duration| {
        let file = meeting_file();
        let first = Settings { join_timeout: patience, ..settings(0, 3, &file, &secret) };
        let (error, came) = thread::scope(|scope| {
            let first = scope.spawn(|| listening(first).map(drop).unwrap_err());
            // The file is gone when node 0 has given up.
            let address = loop {
                match std::fs::read_to_string(&file) {
                    Ok(address) => break Some(address),
                    Err(_) if first.is_finished() => break None,
                    Err(_) => thread::yield_now(),
                }
            };
            let stranger = address.and_then(|address| TcpStream::connect(address).ok());
            let came = stranger.is_some_and(|mut stranger| stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").is_ok());
            (first.join().unwrap().to_string(), came)
        });
        assert!(error.contains("2 of 3 nodes") && error.contains("node 1"), "{error}");
        (came && error.contains("refused")).then_some(error)
    };
    let text = (0..).find_map(|try_again| attempt(Duration::from_millis(50 << try_again))).unwrap();
    assert!(text.contains("no Maniple node") && text.contains("GET"), "{text}");
}

#[test]
fn who_waits_in_vain_with_node_0_hears_from_it_for_whom() {
    let secret = Secret::random().unwrap();
    // The one that waits is the less patient. Time enough for it to reach node 0, however slow the machine is: again
    // with more, if it did not.
    let attempt = |patience: Duration| {
        let file = meeting_file();
        let first = Settings { join_timeout: 2 * patience, ..settings(0, 4, &file, &secret) };
        let third = Settings { join_timeout: patience, ..settings(2, 4, &file, &secret) };
        let [first, third] = pair(first, third).map(|joined| joined.unwrap_err().to_string());
        (first.contains("2 of 4 nodes (node 1, node 3) had not come"), third)
    };
    let mut attempts = (0..5).map(|try_again| attempt(Duration::from_millis(50 << try_again)));
    let heard = attempts.find(|(both, third)| *both && third.contains("node 0 refused"));
    let (_, third) = heard.expect("node 0 says who has not come");
    assert!(third.contains("(node 1, node 3) had not come"), "{third}");
}

#[test]
fn another_version_of_the_protocol_is_named() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let meeting = Meeting::At(listener.local_addr().unwrap().to_string());
    let second = Settings { meeting, ..settings(1, 2, &file, &secret) };
    let error = thread::scope(|scope| {
        let second = scope.spawn(|| listening(second).map(drop).unwrap_err());
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"maniple\n\x09\x00").unwrap();
        second.join().unwrap()
    });
    let text = error.to_string();
    assert!(text.contains("version 9") && text.contains(&format!("version {PROTOCOL}")), "{text}");
}

#[test]
fn a_stale_file_is_read_again_until_it_is_right() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    // Where no process listens: the port was free a moment ago.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    std::fs::write(&file, gone.to_string()).unwrap();
    thread::scope(|scope| {
        let second = scope.spawn(|| listening(settings(1, 2, &file, &secret)));
        let first = listening(settings(0, 2, &file, &secret)).unwrap();
        drop((first, second.join().unwrap().unwrap()));
    });
}

/// A machine may know its own name as 127.0.1.1, where others do not reach it.
#[test]
fn node_0_listens_on_all_addresses_if_told_so_however_it_is_met() {
    let secret = Secret::random().unwrap();
    // The port was free a moment ago.
    let port = std::net::TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
    let node = |rank, host| Settings {
        meeting: Meeting::At(format!("{host}:{port}")),
        listen: std::net::Ipv4Addr::UNSPECIFIED.into(),
        ..settings(rank, 2, Path::new(""), &secret)
    };
    let (first, second) = (node(0, "127.0.0.2"), node(1, "127.0.0.1"));
    thread::scope(|scope| {
        let first = scope.spawn(|| listening(first).unwrap());
        let second = listening(second).unwrap();
        drop((first.join().unwrap(), second));
    });
}

/// The third is met by the second, which has to listen on an address of the same kind.
#[test]
fn nodes_that_listen_on_all_addresses_meet_by_ipv6_too() {
    let secret = Secret::random().unwrap();
    let Ok(free) = std::net::TcpListener::bind("[::1]:0") else {
        eprintln!("this machine has no IPv6: not tested");
        return;
    };
    let port = free.local_addr().unwrap().port();
    drop(free);
    for listen in ["0.0.0.0", "::"] {
        let node = |rank| Settings {
            meeting: Meeting::At(format!("[::1]:{port}")),
            listen: listen.parse().unwrap(),
            ..settings(rank, 3, Path::new(""), &secret)
        };
        thread::scope(|scope| {
            let others = [1, 2].map(|rank| scope.spawn(move || listening(node(rank)).unwrap()));
            let first = listening(node(0)).unwrap();
            drop((first, others.map(|other| other.join().unwrap())));
        });
    }
}

#[test]
fn nobody_listens_once_all_are_there() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    thread::scope(|scope| {
        let first = scope.spawn(|| listening(settings(0, 2, &file, &secret)).unwrap());
        let address = address_in(&file);
        let second = listening(settings(1, 2, &file, &secret)).unwrap();
        let first = first.join().unwrap();
        while TcpStream::connect(address).is_ok() {
            thread::yield_now();
        }
        drop((first, second));
    });
}

#[test]
fn who_repeats_all_that_it_hears_is_refused() {
    let secret = Secret::random().unwrap();
    let ours = Hello { nodes: 2, rank: NodeId(0), address: "127.0.0.1:1".to_owned(), build: BuildId::new("one") };
    let refused = runtime().block_on(async {
        let (mut ear, mut mirror) = tokio::io::duplex(4096);
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = tokio::io::AsyncReadExt::read(&mut mirror, &mut bytes).await {
                let _ = mirror.write_all(&bytes[..length]).await;
            }
        });
        greet(&mut ear, "a mirror", Role::Accepts, &secret, &ours, |_| Ok(())).await.unwrap_err()
    });
    assert!(matches!(refused, JoinError::WrongSecret { .. }), "{refused}");
}

#[test]
fn what_a_stranger_says_is_shown_as_printable_ascii() {
    let secret = Secret::random().unwrap();
    let ours = Hello { nodes: 2, rank: NodeId(0), address: "127.0.0.1:1".to_owned(), build: BuildId::new("one") };
    let refused = runtime().block_on(async {
        let (mut ear, mut stranger) = tokio::io::duplex(4096);
        stranger.write_all("Jv\u{1b}\"é\u{202e}\n\n".as_bytes()).await.unwrap();
        greet(&mut ear, "a stranger", Role::Accepts, &secret, &ours, |_| Ok(())).await.unwrap_err()
    });
    assert_eq!(refused.to_string(), r#"a stranger is no Maniple node: it begins with "Jv\x1b\"\xc3\xa9\xe2\x80""#);
}

/// The opening of a process that does not know the secret: nonsense, or a hello that is nearly right.
fn opening(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = b"maniple\n\x01\x00".to_vec();
    let mut hello = Vec::new();
    hello.extend_from_slice(&2_u32.to_le_bytes());
    hello.extend_from_slice(&1_u16.to_le_bytes());
    hello.extend_from_slice(&[7; 32]);
    hello.extend_from_slice(&9_u16.to_le_bytes());
    hello.extend_from_slice(b"127.0.0.1one");
    bytes.extend_from_slice(&(hello.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&hello);
    bytes.extend_from_slice(&[0; 34]);
    for _ in 0..random.usize(0..6) {
        let place = random.usize(..bytes.len());
        match random.u8(0..4) {
            0 => bytes[place] = random.u8(..),
            1 => bytes.truncate(place.max(1)),
            2 => bytes.extend((0..random.usize(0..3000)).map(|_| random.u8(..))),
            _ => bytes[place] ^= 1 << random.u8(0..8),
        }
    }
    if random.u8(0..4) == 0 { (0..random.usize(0..200)).map(|_| random.u8(..)).collect() } else { bytes }
}

/// Many strangers at the port of one job, which comes together in the end.
#[test]
fn random_and_mutated_bytes_at_the_port_let_nobody_in() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    thread::scope(|scope| {
        let first = scope.spawn(|| listening(settings(0, 2, &file, &secret)));
        let address = address_in(&file);
        let mut random = fastrand::Rng::with_seed(1);
        let mut lingering = Vec::new();
        for attempt in 0..400 {
            let mut stranger = TcpStream::connect(address).unwrap();
            // It may be thrown out while it is talking.
            let _ = stranger.write_all(&opening(&mut random));
            match attempt % 20 {
                // Some stay, and say no more.
                0 => lingering.push(stranger),
                _ => drop(stranger),
            }
        }
        let second = listening(settings(1, 2, &file, &secret)).unwrap();
        let first = first.join().unwrap().unwrap();
        for mut stranger in lingering {
            let mut said = Vec::new();
            let _ = stranger.read_to_end(&mut said);
            // A greeting and at most a proof: never a verdict, which is for nodes that know the secret.
            assert!(said.len() <= 12 + 4 + 2 + 32 + 2 + 21 + 3 + 32, "{}", said.len());
        }
        drop((first, second));
    });
}

/// As many as may greet at once. They would be given ten minutes each, and the nodes have one to come together.
#[test]
fn strangers_who_say_nothing_do_not_keep_nodes_out() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    let settings = |rank| Settings { join_timeout: Duration::from_secs(60), ..settings(rank, 2, &file, &secret) };
    thread::scope(|scope| {
        let first = scope.spawn(|| listening(settings(0)));
        let address = address_in(&file);
        let silent: Vec<TcpStream> = (0..128).map(|_| TcpStream::connect(address).unwrap()).collect();
        let second = listening(settings(1)).unwrap();
        drop((first.join().unwrap().unwrap(), second, silent));
    });
}

/// Node 1 of a job of these nodes, as far as it is greeted and told where the others are.
async fn greeted(address: SocketAddr, nodes: u32, listens: &str, secret: &Secret) -> tokio::net::TcpStream {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let ours = Hello { nodes, rank: NodeId(1), address: listens.to_owned(), build: BuildId::new("one") };
    greet(&mut stream, "node 0", Role::Connects, secret, &ours, |_| Ok(())).await.unwrap();
    for _ in 0..=nodes {
        read_text(&mut stream, "node 0").await.unwrap();
    }
    stream
}

/// A node of the job whose process is damaged: it knows the secret, and then sends these bytes.
fn damaged(address: SocketAddr, secret: &Secret, bytes: &[u8]) {
    runtime().block_on(async {
        let mut stream = greeted(address, 2, "127.0.0.1:1", secret).await;
        stream.write_all(&[1]).await.unwrap();
        read_text(&mut stream, "node 0").await.unwrap();
        // The other side may have given up in the middle.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut rest = Vec::new();
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await;
    });
}

#[test]
fn a_node_that_ends_while_the_job_comes_together_ends_it_for_all() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    thread::scope(|scope| {
        let others = [0, 2].map(|rank| {
            let settings = settings(rank, 3, &file, &secret);
            scope.spawn(move || listening(settings).map(drop).unwrap_err())
        });
        let address = address_in(&file);
        // Node 2 can connect to it, but is not greeted.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listens = listener.local_addr().unwrap().to_string();
        runtime().block_on(async { drop(greeted(address, 3, &listens, &secret).await) });
        let [first, second] = others.map(|other| other.join().unwrap());
        assert!(matches!(first, JoinError::Died { node: NodeId(1) }), "{first}");
        assert!(second.to_string().contains("node 0 refused: node 1 ended while"), "{second}");
    });
}

fn frames(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.usize(0..8) {
        let number = |random: &mut fastrand::Rng| if random.bool() { random.u64(0..4) } else { random.u64(..) };
        let handler = HandlerId(random.u16(0..2));
        let header = match random.u8(0..14) {
            0..=3 => {
                Header::Message { handler, payload: random.u64(0..300), counted: random.bool(), ask: random.bool() }
            }
            4 => Header::Part,
            5 => Header::Credit { bytes: number(random) },
            6 => Header::PutChunk { transfer: number(random), segment: number(random), offset: number(random) },
            7 => Header::PutEnd { transfer: number(random), notify: random.bool().then_some(handler) },
            8 => Header::Ended { transfer: number(random), outcome: Outcome::Done },
            9 => Header::GetAsk {
                transfer: number(random),
                segment: number(random),
                offset: number(random),
                length: number(random),
            },
            10 => Header::GetChunk { transfer: number(random), offset: number(random) },
            11 => Header::Barrier { generation: random.u64(0..3), round: random.u32(0..40) },
            12 => Header::Report { wave: random.u64(0..3), sent: 1, handled: number(random), activations: 0 },
            _ => Header::Heartbeat,
        };
        let body = random.usize(0..200);
        bytes.extend_from_slice(header.encode(0, body).as_slice());
        bytes.extend((0..if random.u8(0..8) == 0 { body / 2 } else { body }).map(|_| random.u8(..)));
    }
    for _ in 0..random.usize(0..3) {
        if let Some(last) = bytes.len().checked_sub(1) {
            bytes[random.usize(..=last)] = random.u8(..);
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A damaged node may send anything: the others say that it is lost, and that is all.
    #[test]
    fn a_damaged_node_is_lost_and_nothing_else_happens(seed: u64) {
        let (file, secret) = (meeting_file(), Secret::random().unwrap());
        let bytes = frames(&mut fastrand::Rng::with_seed(seed));
        let lost = thread::scope(|scope| {
            let first = scope.spawn(|| listening(settings(0, 2, &file, &secret)).unwrap());
            let address = address_in(&file);
            scope.spawn({
                let secret = &secret;
                move || damaged(address, secret, &bytes)
            });
            let (endpoint, losses) = first.join().unwrap();
            let lost = losses.recv().unwrap();
            drop(endpoint);
            assert!(losses.recv().is_err(), "told more than once");
            lost
        });
        prop_assert_eq!(lost.0, NodeId(1));
        prop_assert!(matches!(lost.1, Loss::Violation(_) | Loss::Closed | Loss::Aborted(_)), "{}", lost.1);
    }
}

#[test]
fn a_long_message_that_never_comes_takes_no_memory() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    let mut bytes = Vec::new();
    let header = Header::Message { handler: HELLO, payload: 1 << 50, counted: false, ask: false };
    bytes.extend_from_slice(header.encode(0, 0).as_slice());
    let lost = thread::scope(|scope| {
        let first = scope.spawn(|| listening(settings(0, 2, &file, &secret)).unwrap());
        damaged(address_in(&file), &secret, &bytes);
        let (_endpoint, losses) = first.join().unwrap();
        losses.recv().unwrap()
    });
    assert!(matches!(lost, (NodeId(1), Loss::Violation(text)) if text.contains("1125899906842624 bytes of payload")));
}

#[test]
fn a_node_that_says_nothing_is_lost_after_a_while() {
    let (file, secret) = (meeting_file(), Secret::random().unwrap());
    static END: OnceLock<()> = OnceLock::new();
    let lost = thread::scope(|scope| {
        let impatient = Settings { silence: Duration::from_millis(150), ..settings(0, 2, &file, &secret) };
        let first = scope.spawn(|| listening(impatient).unwrap());
        let address = address_in(&file);
        let secret = &secret;
        scope.spawn(move || {
            runtime().block_on(async {
                let mut stream = greeted(address, 2, "127.0.0.1:1", secret).await;
                stream.write_all(&[1]).await.unwrap();
                END.wait();
            });
        });
        let (_endpoint, losses) = first.join().unwrap();
        let lost = losses.recv().unwrap();
        END.set(()).unwrap();
        lost
    });
    assert!(matches!(lost, (NodeId(1), Loss::Silent { .. })), "{lost:?}");
}
