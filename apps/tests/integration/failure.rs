//! A job of which one process fails, in every way that we know of: all end, with one message each that names the node,
//! and no process is left behind.
//!
//! The nodes are this test program itself, which `maniple launch` starts with the name of a part to play. Each says
//! when it is running, and has a *line* open, a named pipe: when no process has it any more, all are gone. Nothing
//! here waits for a time, but for the heartbeats that are to be missed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::{Shutdown, TcpStream};
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use maniple::prelude::*;
use maniple::{Machine, Result, Runtime};

/// Which part a node plays, if this process is one.
const PART: &str = "MANIPLE_FAILURE_TEST";

/// The node to which something happens.
const VICTIM: usize = 1;

#[derive(Fields)]
struct Cell {
    value: f64,
    next: f64,
}

#[task(leaf)]
fn start(#[discards(value)] tile: Piece<Cell>) {
    tile.points().for_each(|point| tile.value[point] = (point[0] % 7) as f64);
}

#[task(leaf)]
fn smooth(#[discards(next)] tile: Piece<Cell>, #[reads(value)] around: Piece<Cell>) {
    for point in tile.points() {
        let side = |step: i64| around.value.get([point[0] + step]).unwrap_or(0.0);
        // Whole numbers, which add up to the same in any order.
        tile.next[point] = (side(-1) + 2.0 * side(1)) % 1009.0;
    }
}

#[task(leaf)]
fn take_over(
    #[writes(value)]
    #[reads(next)]
    tile: Piece<Cell>,
) -> f64 {
    tile.points().for_each(|point| tile.value[point] = tile.next[point]);
    tile.points().map(|point| tile.value[point]).sum()
}

#[task(leaf)]
fn panic_on_the_third(#[point] at: Point<1>, #[writes(value)] _tile: Piece<Cell>) {
    assert!(at[0] != 3, "the third has had enough");
}

/// A stencil over 12 tiles, for so many steps.
async fn stencil(cx: &Context, steps: usize, mut when_running: impl FnMut()) -> Result<f64> {
    const TILES: usize = 12;
    let cells = cx.region::<Cell>(40 * TILES)?;
    let tiles = cells.partition(TILES).equal()?;
    let around = cells.around(&tiles, [1])?;
    cx.index_launch(TILES, start(&tiles));
    let mut sum = 0.0;
    for step in 0..steps {
        for _ in 0..5 {
            cx.index_launch(TILES, smooth(&tiles, &around));
            sum = cx.index_launch(TILES, take_over(&tiles)).reduce(Sum).await?;
        }
        if step == 1 {
            when_running();
        }
    }
    Ok(sum)
}

/// Shuts all sockets of this process down, as if the connections had been cut.
fn cut_sockets() {
    for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let is_socket = fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"));
        let number = entry.file_name().to_string_lossy().parse();
        if let (true, Ok(number)) = (is_socket, number) {
            // SAFETY: the descriptor is open, and is not closed here: the stream is forgotten.
            let socket = std::mem::ManuallyDrop::new(unsafe { TcpStream::from_raw_fd(number) });
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// One of the nodes below, if the environment says so.
#[test]
fn node() {
    let Ok(part) = std::env::var(PART) else { return };
    let is_victim = std::env::var("MANIPLE_RANK").unwrap() == VICTIM.to_string();
    let memory = if part == "memory" && is_victim { 200 } else { 1 << 20 };
    let runtime = Runtime::builder().machine(Machine::uniform(1, memory)).workers(1).build().unwrap();
    let say = || println!("\n{} is running", std::process::id());
    let outcome = runtime.run(async |cx| match part.as_str() {
        "run" => stencil(cx, usize::MAX, say).await,
        "finish" => stencil(cx, 60, say).await,
        "sockets" => {
            stencil(cx, usize::MAX, || {
                if is_victim {
                    cut_sockets()
                }
            })
            .await
        }
        "panic" => stencil(cx, usize::MAX, || assert!(!is_victim, "this node alone has had enough")).await,
        "task" => {
            let tiles = cx.region::<Cell>(40)?.partition(8).equal()?;
            cx.index_launch(8, start(&tiles));
            cx.index_launch(8, panic_on_the_third(&tiles));
            Ok(0.0)
        }
        "memory" => stencil(cx, 1, say).await,
        other => panic!("there is no part `{other}`"),
    });
    drop(runtime);
    match outcome {
        Ok(sum) => println!("\nthe sum is {sum}"),
        Err(error) => {
            eprintln!("\nerror: {error}");
            std::process::exit(3);
        }
    }
}

/// A job at which a test looks while it runs.
struct Job {
    launcher: Child,
    stdout: BufReader<ChildStdout>,
    stderr: ChildStderr,
    line: File,
}

/// How a job has ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stderr: String,
}

impl Ended {
    /// The messages of the nodes, by rank.
    fn messages(&self) -> Vec<(usize, &str)> {
        let message = |line: &'_ str| -> Option<(usize, usize)> {
            let (rank, rest) = line.strip_prefix('[')?.split_once("] ")?;
            rest.starts_with("error: ").then_some((rank.parse().ok()?, line.len() - rest.len()))
        };
        let lines = self.stderr.lines();
        let mut messages: Vec<_> =
            lines.filter_map(|line| message(line).map(|(rank, at)| (rank, &line[at..]))).collect();
        messages.sort_unstable();
        messages
    }
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("failure-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    path
}

/// This program, as a node.
fn this() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

impl Job {
    /// Three nodes that play a part.
    fn start(part: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
        command.args(["launch", "-n", "3", "--grace", "1", "--"]);
        Self::watch(command, part, part, "exec 9>\"$0\"; exec \"$@\"")
    }

    /// Nodes that a command starts, by a script that is given the line and the program.
    fn watch(mut command: Command, test: &str, part: &str, script: &str) -> Self {
        let line = folder(test).join("line");
        assert!(Command::new("mkfifo").arg(&line).status().unwrap().success());
        command.args([
            "bash",
            "-c",
            script,
            line.to_str().unwrap(),
            &this(),
            "failure::node",
            "--exact",
            "--nocapture",
        ]);
        // Heartbeats that are missed are missed soon, if any is to be missed.
        let silence = if part == "finish" { "60" } else { "1.5" };
        command.env(PART, part).env("MANIPLE_SILENCE", silence).env("RUST_BACKTRACE", "0");
        let mut launcher = command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        // Waits until a process opens the other end.
        let line = File::open(line).unwrap();
        let (stdout, stderr) = (BufReader::new(launcher.stdout.take().unwrap()), launcher.stderr.take().unwrap());
        Self { launcher, stdout, stderr, line }
    }

    /// Waits until a node is running. Its process.
    fn running(&mut self, rank: usize) -> u32 {
        let prefix = format!("[{rank}] ");
        let says = |line: String| line.strip_prefix(&prefix)?.strip_suffix(" is running")?.parse().ok();
        self.stdout.by_ref().lines().map(Result::unwrap).find_map(says).unwrap()
    }

    /// Waits until all has ended well. What nodes said.
    fn finish(self) -> Vec<String> {
        let said = self.stdout.lines().map(Result::unwrap).collect();
        let mut stderr = self.stderr;
        let mut told = String::new();
        stderr.read_to_string(&mut told).unwrap();
        let mut launcher = self.launcher;
        assert!(launcher.wait().unwrap().success(), "{told}");
        assert!(!told.contains("error: "), "{told}");
        said
    }

    /// Waits until the launcher has ended, and no process that was started is left.
    fn end(mut self) -> Ended {
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).unwrap();
        self.line.read_to_string(&mut String::new()).unwrap();
        Ended { code: self.launcher.wait().unwrap().code(), stderr }
    }
}

fn kill(signal: &str, process: u32) {
    assert!(Command::new("kill").args(["-s", signal, &process.to_string()]).status().unwrap().success());
}

/// Both others say that the victim is lost, and what it was doing.
fn others_name_the_victim(ended: &Ended) {
    assert!(!matches!(ended.code, None | Some(0)), "{ended:?}");
    let messages = ended.messages();
    let others: Vec<_> = messages.iter().filter(|(rank, _)| *rank != VICTIM).collect();
    assert_eq!(others.len(), 2, "{ended:?}");
    for (_, message) in &others {
        assert!(message.contains("node 1 is lost"), "{ended:?}");
    }
    let tells = |word: &str| others.iter().any(|(_, message)| message.contains(word));
    assert!(tells("`smooth`") || tells("`take_over`") || tells("`reduce`"), "{ended:?}");
}

#[test]
fn a_process_that_is_stopped_is_missed_and_named() {
    let mut job = Job::start("run");
    let victim = job.running(VICTIM);
    kill("STOP", victim);
    let ended = job.end();
    others_name_the_victim(&ended);
    assert!(ended.stderr.contains("nothing was heard of it for "), "{ended:?}");
}

#[test]
fn a_process_whose_connections_are_cut_is_named_and_ends_too() {
    let ended = Job::start("sockets").end();
    others_name_the_victim(&ended);
    assert_eq!(ended.messages().len(), 3, "{ended:?}");
}

#[test]
fn a_process_that_panics_is_named() {
    let ended = Job::start("panic").end();
    others_name_the_victim(&ended);
    let others = ended.messages();
    assert!(others.iter().any(|(_, message)| message.contains("`: this node alone has had enough")), "{ended:?}");
}

#[test]
fn a_task_that_panics_fails_the_job_on_all_nodes_with_its_point_and_node() {
    let ended = Job::start("task").end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let messages = ended.messages();
    assert_eq!(messages.len(), 3, "{ended:?}");
    for (rank, message) in messages {
        assert!(message.contains("task `panic_on_the_third` at point (3) panicked"), "{ended:?}");
        assert!(message.contains("the third has had enough"), "{ended:?}");
        assert_eq!(message.contains("on node 1: "), rank != 1, "{ended:?}");
    }
}

#[test]
fn want_of_memory_on_one_node_is_told_on_all_with_node_memory_and_request() {
    let ended = Job::start("memory").end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let messages = ended.messages();
    assert_eq!(messages.len(), 3, "{ended:?}");
    for (rank, message) in messages {
        assert!(message.contains("cannot place `start` at point ("), "{ended:?}");
        assert!(message.contains("in memory 0, which has 200 bytes"), "{ended:?}");
        assert_eq!(message.contains("on node 1: "), rank != 1, "{ended:?}");
    }
}

/// Two network namespaces of this machine, with a wire between them that can be cut.
#[derive(Debug)]
struct Wire {
    names: [String; 2],
}

impl Wire {
    const ENDS: [&str; 2] = ["10.77.13.1", "10.77.13.2"];

    /// None, with a loud word, where this user or this system may have no namespaces.
    fn new(test: &str) -> Option<Self> {
        let names = ["a", "b"].map(|end| format!("maniple-{test}-{}-{end}", std::process::id()));
        let wire = Self { names };
        let [a, b] = &wire.names;
        // Unique among all interfaces, of which these are made before they go where they belong.
        let veth = [0, 1].map(|end| format!("mv{}{end}{}", &test[..1], std::process::id() % 100_000));
        let both = |make: &dyn Fn(usize) -> String| (0..2).try_for_each(|end| ip(&make(end)));
        let made = both(&|end| format!("netns add {}", wire.names[end]))
            .and_then(|()| ip(&format!("link add {} netns {a} type veth peer name {} netns {b}", veth[0], veth[1])))
            .and_then(|()| both(&|end| format!("-n {} link set {} name wire", wire.names[end], veth[end])))
            .and_then(|()| both(&|end| format!("-n {} addr add {}/24 dev wire", wire.names[end], Self::ENDS[end])))
            .and_then(|()| both(&|end| format!("-n {} link set wire up", wire.names[end])))
            .and_then(|()| both(&|end| format!("-n {} link set lo up", wire.names[end])));
        match made {
            Ok(()) => Some(wire),
            Err(why) => {
                eprintln!("\nNOT TESTED: {test}: this machine gives no network namespaces to this user: {why}\n");
                assert!(std::env::var_os("MANIPLE_NEEDS_NAMESPACES").is_none(), "{why}");
                None
            }
        }
    }

    fn cut(&self) {
        ip(&format!("-n {} link set wire down", self.names[0])).unwrap();
    }

    fn mend(&self) {
        ip(&format!("-n {} link set wire up", self.names[0])).unwrap();
    }

    /// From now on each end loses one in twenty of the packets that come to it.
    fn lose_packets(&self) -> Result<(), String> {
        self.names.iter().try_for_each(|end| {
            let nft = |arguments: &str| ip(&format!("netns exec {end} nft {arguments}"));
            nft("add table ip loss")?;
            nft("add chain ip loss input { type filter hook input priority 0 ; }")?;
            nft("add rule ip loss input numgen random mod 20 0 counter drop")
        })
    }

    /// How many packets each end has lost.
    fn lost(&self) -> [u64; 2] {
        [0, 1].map(|end| {
            let list = ["netns", "exec", &self.names[end], "nft", "list", "chain", "ip", "loss", "input"];
            let said = Command::new("ip").args(list).output().unwrap();
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            let counted = said.split_once("counter packets ").and_then(|(_, rest)| rest.split(' ').next());
            counted.unwrap_or_else(|| panic!("no counter in: {said}")).parse().unwrap()
        })
    }

    /// Two nodes that play a part, one at each end.
    fn start(&self, test: &str, part: &str) -> Job {
        let [a, b] = &self.names;
        // As a launcher of one's own would, with the numbers of nodes before what they say.
        let node = |rank: usize, space: &str| {
            let number = format!("sed -u 's/^/[{rank}] /'");
            format!("MANIPLE_RANK={rank} ip netns exec {space} \"$@\" > >({number}) 2> >({number} >&2) & n{rank}=$!;")
        };
        let script = format!("exec 9>\"$0\"; {} {} wait $n0; s=$?; wait $n1 && exit $s", node(0, a), node(1, b));
        let mut command = Command::new("env");
        let secret = "5".repeat(64);
        command.args(["MANIPLE_NODES=2", "MANIPLE_RENDEZVOUS=10.77.13.1:45217", "MANIPLE_LISTEN=0.0.0.0"]);
        command.arg(format!("MANIPLE_SECRET={secret}"));
        Job::watch(command, test, part, &script)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.names.iter().for_each(|name| drop(ip(&format!("netns del {name}"))));
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| format!("`ip`: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("`ip {arguments}`: {}", said.trim())) }
}

#[test]
fn nodes_between_which_the_network_is_cut_name_each_other() {
    let Some(wire) = Wire::new("cut") else { return };
    let mut job = wire.start("cut", "run");
    job.running(0);
    wire.cut();
    let ended = job.end();
    let messages = ended.messages();
    assert_eq!(messages.len(), 2, "{ended:?}");
    for (rank, message) in messages {
        assert!(message.contains(&format!("node {} is lost", 1 - rank)), "{ended:?}");
        assert!(message.contains("nothing was heard of it for "), "{ended:?}");
    }
}

#[test]
fn a_network_that_loses_much_changes_nothing() {
    let Some(wire) = Wire::new("lossy") else { return };
    let alone = || -> Result<f64> {
        Runtime::builder()
            .machine(Machine::uniform(1, 1 << 20))
            .alone()
            .build()?
            .run(async |cx| stencil(cx, 60, || {}).await)
    };
    let expected = format!("the sum is {}", alone().unwrap());
    let loses = wire.lose_packets();
    let mut job = wire.start("lossy", "finish");
    job.running(0);
    // Where the kernel cannot lose packets by chance, the wire is cut for as long as it takes to start a program, again
    // and again.
    if let Err(why) = &loses {
        eprintln!("no packets are lost by chance, so the wire is cut and mended: {why}");
        for _ in 0..20 {
            wire.cut();
            wire.mend();
        }
    }
    let said = job.finish();
    assert_eq!(said.iter().filter(|line| line.ends_with(&expected)).count(), 2, "{said:?}, not {expected}");
    if loses.is_ok() {
        assert!(wire.lost().iter().all(|&lost| lost > 0), "nothing was lost: {:?}", wire.lost());
    }
}
