//! Recording profiles and looking at them, as users do.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use maniple::profile::{Completeness, Kind, Record, Recording};
use maniple_apps::prof::critical_path::CriticalPath;
use maniple_apps::prof::lanes::Span;
use maniple_apps::prof::messages::messages;
use maniple_apps::prof::model::{Profile, SpanPlace};
use maniple_apps::prof::operations::ProfiledOperation;
use maniple_apps::prof::together::together;

const CIRCUIT: &str =
    "run circuit --pieces 4 --nodes-per-piece 20 --wires-per-piece 60 --steps 20 --workers 2 --no-tracing";

/// The same, of which most is replayed.
const REPLAYED: &str =
    "run circuit --pieces 4 --nodes-per-piece 20 --wires-per-piece 60 --steps 20 --workers 2 --trace";

/// A file of this name, for one test.
fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.is_file() {
        std::fs::remove_file(&path).expect("a temporary file can be removed");
    }
    path
}

fn command(arguments: &str, files: &[&Path]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    let mut files = files.iter();
    for argument in arguments.split_whitespace() {
        match argument {
            "FILE" => command.arg(files.next().expect("a file for each place")),
            argument => command.arg(argument),
        };
    }
    command.env_remove("MANIPLE_PROFILE").env_remove("RUST_BACKTRACE").env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Runs the program; `FILE` in the arguments stands for the next of the files.
fn maniple(arguments: &str, files: &[&Path]) -> Output {
    command(arguments, files).output().expect("the program can be started")
}

#[track_caller]
fn prints(arguments: &str, files: &[&Path]) -> String {
    let output = maniple(arguments, files);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""), "{arguments}");
    String::from_utf8(output.stdout).expect("the program prints text")
}

#[track_caller]
fn fails(arguments: &str, files: &[&Path], code: i32, message: &str) {
    let output = maniple(arguments, files);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments}\n{errors}");
    assert!(errors.starts_with("error: ") && errors.contains(message), "{arguments}\n{errors}");
    assert_eq!(errors.matches("error:").count(), 1, "{errors}");
}

/// Records a circuit.
fn recorded(name: &str) -> PathBuf {
    recorded_of(CIRCUIT, name)
}

fn recorded_of(program: &str, name: &str) -> PathBuf {
    let file = file(name);
    let output = maniple(&format!("{program} --profile FILE"), &[&file]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = format!("profile: look at it with `maniple prof {}`\n", file.display());
    assert_eq!(String::from_utf8_lossy(&output.stderr), told);
    file
}

/// How many spans of a kind and name a profile has.
fn count(recording: &Recording, kind: Kind, name: &str) -> usize {
    let records = recording.threads.iter().flat_map(|thread| &thread.records);
    let is_one = |record: &&maniple::profile::Record| match record {
        maniple::profile::Record::Span { tag, .. } => {
            recording.label(tag.label).is_some_and(|label| label.kind == kind && label.name == name)
        }
        _ => false,
    };
    records.filter(is_one).count()
}

#[test]
fn every_task_mapping_and_launch_is_in_the_profile() {
    let recording = Recording::read(&recorded("whole.mprof")).expect("it was recorded");
    assert_eq!(recording.completeness, Completeness::Whole);
    for task in ["calc_new_currents", "distribute_charge", "update_voltages"] {
        assert_eq!(count(&recording, Kind::Task, task), 4 * 20, "{task}");
        assert_eq!(count(&recording, Kind::Mapping, task), 4 * 20, "{task}");
        assert_eq!(count(&recording, Kind::Analysis, task), 20, "{task}");
    }
    // What a mapper says of a point may hold for later launches.
    assert!(count(&recording, Kind::Mapper, "map_task") >= 3 * 4);
    assert!(count(&recording, Kind::Task, "top level") >= 1);
    assert!(count(&recording, Kind::Fill, "fill") >= 1);
    assert!(count(&recording, Kind::Reduction, "reduction") >= 1);
}

#[test]
fn every_replayed_task_and_transfer_is_in_the_profile() {
    let replayed = Recording::read(&recorded_of(REPLAYED, "replayed.mprof")).expect("it was recorded");
    for task in ["calc_new_currents", "distribute_charge", "update_voltages"] {
        assert_eq!(count(&replayed, Kind::Task, task), 4 * 20, "{task}");
        assert!(count(&replayed, Kind::Mapping, task) < 4 * 20, "{task} was replayed");
    }
    for (kind, name) in [(Kind::Fill, "fill"), (Kind::Reduction, "reduction")] {
        assert!(count(&replayed, kind, name) >= 20, "{name}: there are some in each time step");
    }
}

/// How many tasks with each of these names, on each node, what an operation did rests on.
fn rests_on<const N: usize>(profile: &Profile, operation: ProfiledOperation, names: [&str; N]) -> Vec<[usize; N]> {
    let mut counts = vec![[0; N]; profile.lanes.iter().map(|lane| usize::from(lane.node) + 1).max().unwrap_or(0)];
    let (mut seen, mut open) = (HashSet::from([operation]), vec![operation]);
    while let Some(next) = open.pop() {
        for earlier in profile.before(next).into_iter().filter(|&earlier| seen.insert(earlier)) {
            open.push(earlier);
            for place in profile.bodies(earlier).filter(|&place| profile.kind(place) == Kind::Task) {
                let node = usize::from(profile.lanes[place.lane as usize].node);
                if let Some(found) = names.iter().position(|&name| profile.label(profile.span(place)).name == name) {
                    counts[node][found] += 1;
                }
            }
        }
    }
    counts
}

/// The latest task of this name on each node.
fn latest(profile: &Profile, name: &str) -> BTreeMap<u16, ProfiledOperation> {
    let spans = profile.lanes.iter().flat_map(|lane| lane.spans.iter().map(|span| (lane.node, span)));
    let is_one = |span: &Span| profile.label(span).kind == Kind::Task && profile.label(span).name == name;
    let mut ended: Vec<_> = spans
        .filter(|(_, span)| span.is_body && is_one(span))
        .filter_map(|(node, span)| Some((span.end, node, span.operation?)))
        .collect();
    ended.sort_unstable();
    ended.into_iter().map(|(_, node, operation)| (node, operation)).collect()
}

/// That a critical path has no gap, and comes to another node by what was sent there only.
#[track_caller]
fn is_followed(profile: &Profile) {
    let steps = CriticalPath::of(profile).steps;
    assert!(steps.windows(2).all(|two| two[0].end == two[1].start), "{steps:?}");
    assert_eq!(steps.first().map(|step| step.start), Some(profile.began));
    let works: Vec<SpanPlace> = steps.iter().filter_map(|step| step.work).map(|(_, place)| place).collect();
    let node = |place: SpanPlace| profile.lanes[place.lane as usize].node;
    let name = |place: SpanPlace| profile.label(profile.span(place)).name.as_str();
    for two in works.windows(2).filter(|two| node(two[0]) != node(two[1])) {
        assert!(name(two[1]).ends_with("from node"), "{} after {}", name(two[1]), name(two[0]));
    }
    assert!(works.iter().any(|&place| profile.kind(place) == Kind::Task), "{steps:?}");
}

#[test]
fn what_is_replayed_rests_on_each_time_step_before() {
    let recording = Recording::read(&recorded_of(REPLAYED, "path.mprof")).expect("it was recorded");
    let profile = Profile::of(recording);
    is_followed(&profile);
    let last = latest(&profile, "update_voltages")[&0];
    let tasks = rests_on(&profile, last, ["calc_new_currents", "distribute_charge", "update_voltages"]);
    // Of 20 time steps, those before the last at least: pieces that are far apart may not meet in it.
    assert!(tasks[0].iter().all(|&tasks| (19..=80).contains(&tasks)), "{tasks:?}");
}

#[test]
#[cfg(unix)]
fn the_profiles_of_a_job_are_looked_at_together() {
    let profile = file("job.mprof");
    let nodes = [1, 0].map(|node| PathBuf::from(format!("{}.node{node}", profile.display())));
    let job = format!("launch -n 2 -- {} {REPLAYED} --profile FILE", env!("CARGO_BIN_EXE_maniple"));
    let output = maniple(&job, &[&profile]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    assert!(told.contains(&format!("maniple prof {}.node*`", profile.display())), "{told}");
    let output = maniple("prof FILE FILE --summary", &[&nodes[0], &nodes[1]]);
    let (summary, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    // On a busy machine clocks may be told less exactly than messages are fast.
    assert!(told.lines().all(|line| line.starts_with("note: the clock of node 1 was put forward")), "{told}");
    let lines = |start: &str| summary.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((lines("node 0, processor "), lines("node 1, processor ")), (2, 2), "{summary}");
    let updates = summary.lines().find(|line| line.starts_with("update_voltages")).unwrap_or_default();
    assert_eq!(updates.split_whitespace().nth(1), Some("80"), "{summary}");
    fails("prof FILE FILE -o FILE", &[&nodes[0], &nodes[1], &nodes[1]], 2, "is the profile itself");
}

/// The profiles of two processes that have run a circuit together, of 10 time steps that take some milliseconds each.
#[cfg(unix)]
fn job(name: &str, tracing: &str) -> Vec<Recording> {
    let profile = file(name);
    let program = env!("CARGO_BIN_EXE_maniple");
    let circuit =
        "run circuit --pieces 4 --nodes-per-piece 500 --wires-per-piece 4000 --steps 10 --workers 1 --no-verify";
    let job = format!("launch -n 2 -- {program} {circuit} {tracing} --profile FILE");
    let output = maniple(&job, &[&profile]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let node = |node: u32| PathBuf::from(format!("{}.node{node}", profile.display()));
    [0, 1].map(|number| Recording::read(&node(number)).expect("it was recorded")).to_vec()
}

#[test]
#[cfg(unix)]
fn every_message_of_a_job_is_known_to_both_processes() {
    let recordings = job("messages.mprof", "--no-tracing");
    assert!(recordings.iter().all(|recording| recording.completeness == Completeness::Whole));
    let all = || recordings.iter().flat_map(|recording| &recording.threads).flat_map(|thread| &thread.records);
    let sent = all().filter(|record| matches!(record, Record::Sent { .. })).count();
    let received = all().filter(|record| matches!(record, Record::Received { .. })).count();
    assert_eq!((messages(&recordings).len(), received), (sent, sent));
    // Each time step moves charges and voltages, both ways.
    assert!(sent >= 10 * 2 * 2, "{sent}");
}

#[test]
#[cfg(unix)]
fn what_a_process_of_a_job_did_rests_on_what_the_other_did() {
    for (name, tracing) in [("path-analysed.mprof", "--no-tracing"), ("path-replayed.mprof", "--trace")] {
        let profile = Profile::of(together(job(name, tracing)).expect("there are two").recording);
        is_followed(&profile);
        let last = latest(&profile, "update_voltages");
        assert_eq!(last.len(), 2, "{tracing}: {last:?}");
        for (node, operation) in last {
            let tasks = rests_on(&profile, operation, ["calc_new_currents", "distribute_charge", "update_voltages"]);
            // Each of 10 time steps needs what the one before has done, on both nodes.
            assert!(tasks.iter().flatten().all(|tasks| (9..=20).contains(tasks)), "{tracing}, {node}: {tasks:?}");
        }
    }
}

#[test]
fn the_summary_has_tasks_shares_memories_and_the_critical_path() {
    let summary = prints("prof FILE --summary", &[&recorded("summary.mprof")]);
    let line =
        |start: &str| summary.lines().find(|line| line.starts_with(start)).map(str::to_owned).unwrap_or_default();
    assert!(line("update_voltages").split_whitespace().nth(1) == Some("80"), "{summary}");
    for part in ["processor 0", "processor 1", "all processors", "0 (system)", "critical path: ", "longest chain"] {
        assert!(!line(part).is_empty(), "{part}: {summary}");
    }
}

#[test]
fn the_page_and_the_trace_are_written() {
    let (profile, page, trace) = (recorded("written.mprof"), file("written.html"), file("written.json"));
    assert_eq!(prints("prof FILE -o FILE --chrome FILE", &[&profile, &page, &trace]), "");
    let page = std::fs::read_to_string(&page).expect("the page was written");
    assert!(page.starts_with("<!doctype html>") && page.contains("\"update_voltages\""));
    let trace = std::fs::read_to_string(&trace).expect("the trace was written");
    let trace: serde_json::Value = serde_json::from_str(&trace).expect("the trace is JSON");
    let events = trace["traceEvents"].as_array().expect("events are a list");
    let tasks = events.iter().filter(|event| event["ph"] == "X" && event["cat"] == "task");
    assert!(tasks.count() >= 3 * 4 * 20);
}

#[test]
fn the_environment_names_a_profile_for_any_program_and_the_option_comes_first() {
    let (by_variable, by_option) = (file("variable.mprof"), file("option.mprof"));
    let output = command(CIRCUIT, &[]).env("MANIPLE_PROFILE", &by_variable).output().expect("it can be started");
    assert!(output.status.success() && output.stderr.is_empty());
    let recording = Recording::read(&by_variable).expect("the variable named it");
    assert_eq!(count(&recording, Kind::Task, "update_voltages"), 4 * 20);
    std::fs::remove_file(&by_variable).expect("it is there");
    let mut both = command(&format!("{CIRCUIT} --profile FILE"), &[&by_option]);
    assert!(both.env("MANIPLE_PROFILE", &by_variable).output().expect("it can be started").status.success());
    assert!(by_option.exists() && !by_variable.exists());
    let mut empty = command(CIRCUIT, &[]);
    assert!(empty.env("MANIPLE_PROFILE", "").output().expect("it can be started").status.success());
}

#[test]
fn files_that_cannot_be_are_refused_in_words() {
    let (directory, profile) = (Path::new(env!("CARGO_TARGET_TMPDIR")), recorded("refused.mprof"));
    let (nowhere, other) = (directory.join("no/such/place"), file("precious.mtx"));
    std::fs::write(&other, "%%MatrixMarket").expect("a temporary file can be written");
    let run = format!("{CIRCUIT} --profile FILE");
    fails(&run, &[&nowhere], 1, "cannot write a profile to");
    fails(&run, &[directory], 1, "cannot write a profile to");
    fails(&run, &[&other], 1, "exists and is no profile: it would be overwritten");
    assert_eq!(std::fs::read(&other).expect("it is there"), b"%%MatrixMarket");
    fails("prof FILE", &[&nowhere], 1, "cannot read");
    fails("prof FILE", &[directory], 1, "is a directory");
    fails("prof FILE", &[&other], 1, "is no profile");
    fails("prof FILE -o FILE", &[&profile, &nowhere], 1, "cannot write");
    fails("prof FILE -o FILE", &[&profile, directory], 1, "cannot write");
    fails("prof FILE --chrome FILE", &[&profile, directory], 1, "cannot write");
    fails("prof FILE -o FILE", &[&profile, &profile], 2, "is the profile itself");
    fails("prof FILE FILE", &[&profile, &profile], 2, "is named twice");
    fails(
        "prof FILE -o FILE --chrome FILE",
        &[&profile, &nowhere, &nowhere],
        2,
        "can't be both the page and the trace",
    );
    fails("prof", &[], 2, "required arguments were not provided");
    fails("prof FILE --port 70000", &[&profile], 2, "invalid value '70000'");
    fails("prof FILE --port 80 --summary", &[&profile], 2, "cannot be used with");
}

#[test]
fn a_profile_that_was_cut_or_damaged_is_shown_with_a_warning() {
    let whole = std::fs::read(recorded("to-cut.mprof")).expect("it was recorded");
    let told = |name: &str, bytes: &[u8]| {
        let path = file(name);
        std::fs::write(&path, bytes).expect("a temporary file can be written");
        let output = maniple("prof FILE --summary", &[&path]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, warning) = told("cut.mprof", &whole[..whole.len() - 5]);
    assert!(code == Some(0) && warning.contains("the profile has no end"), "{warning}");
    let mut damaged = whole.clone();
    let middle = whole.len() * 3 / 4;
    damaged[middle] ^= 0xff;
    let (code, warning) = told("damaged.mprof", &damaged);
    assert!(code == Some(0) && warning.contains("the profile is damaged after"), "{warning}");
    let (code, error) = told("stub.mprof", &whole[..20]);
    assert!(code == Some(1) && error.contains("nothing can be read"), "{error}");
}

/// A server that ends with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(profile: &Path) -> Self {
        let mut child =
            command("prof FILE", &[profile]).stdout(Stdio::piped()).spawn().expect("the program can be started");
        let mut line = String::new();
        let output = child.stdout.take().expect("the output is piped");
        BufReader::new(output).read_line(&mut line).expect("the server says where it is");
        let address =
            line.split_once("http://").and_then(|(_, rest)| rest.split_once("/ ")).map(|(address, _)| address);
        let address = address.unwrap_or_else(|| panic!("no address in: {line}")).to_owned();
        Self { child, address }
    }

    fn ask(&self, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which a test would have noticed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_is_served_to_this_machine_alone() {
    let server = Server::start(&recorded("served.mprof"));
    assert!(server.address.starts_with("127.0.0.1:"));
    let page = server.ask("/", &server.address);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(server.ask("/../etc/passwd", &server.address).starts_with("HTTP/1.1 404"));
    assert!(server.ask("/", "evil.example").starts_with("HTTP/1.1 403"));
}

#[test]
fn a_port_in_use_is_told() {
    let profile = recorded("port.mprof");
    let server = Server::start(&profile);
    let (_, port) = server.address.rsplit_once(':').expect("an address has a port");
    fails(&format!("prof FILE --port {port}"), &[&profile], 1, "give another port with --port");
}
