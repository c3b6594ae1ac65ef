//! `maniple launch` as its users run it: who is told what, what is shown, and that nobody is left behind.
//!
//! Nodes are shell scripts. What is to be there while a test looks opens a *line*, a named pipe of which the test reads the other end: it says there what it
//! has done, and the test has read all of it when nobody holds the line any more, however they ended. So nothing here waits for a time.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "the functions of this file are called by tests alone")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use maniple::environment::Place;
use rustix::process::{Pid, Signal, kill_process};

/// What a launch gave.
#[derive(Debug)]
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    /// What a node has printed, without its number.
    fn of(&self, rank: usize) -> Vec<&str> {
        let prefix = format!("[{rank}] ");
        self.stdout.lines().filter_map(|line| line.strip_prefix(&prefix)).collect()
    }
}

fn maniple_launch(options: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.arg("launch").args(options).arg("--").args(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finish(launcher: Child) -> Run {
    let output = launcher.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn launch(options: &[&str], program: &[&str]) -> Run {
    finish(maniple_launch(options, program).spawn().unwrap())
}

/// Runs a script as each node.
fn script(options: &[&str], script: &str) -> Run {
    launch(options, &["sh", "-c", script])
}

/// A folder for one test, empty.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("launch-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    path
}

/// A launch that the test looks at while it runs.
struct Watched {
    launcher: Child,
    line: BufReader<File>,
}

impl Watched {
    /// Starts nodes that run a script with the line as descriptor 3.
    fn start(name: &str, options: &[&str], script: &str) -> Self {
        Self::start_in(&folder(name), options, script)
    }

    fn start_in(folder: &Path, options: &[&str], script: &str) -> Self {
        let path = folder.join("line");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let program = ["sh", "-c", &format!("exec 3>\"$1\"; {script}"), "node", path.to_str().unwrap()];
        let launcher = maniple_launch(options, &program).env("TMPDIR", folder).spawn().unwrap();
        // Waits until somebody opens the other end.
        let line = BufReader::new(File::open(path).unwrap());
        Self { launcher, line }
    }

    /// What so many of those on the line say next.
    fn hear(&mut self, many: usize) -> Vec<String> {
        let mut said: Vec<_> = self.line.by_ref().lines().take(many).map(Result::unwrap).collect();
        said.sort_unstable();
        assert_eq!(said.len(), many, "{said:?}");
        said
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.launcher), signal).unwrap();
    }

    /// Waits until nobody is on the line; gives what they still said, and what the launcher gave.
    fn end(mut self) -> (String, Run) {
        let mut rest = String::new();
        self.line.read_to_string(&mut rest).unwrap();
        (rest, finish(self.launcher))
    }
}

/// Never ends by itself, and has a child that does not either.
const FOR_EVER: &str = "sleep 100000 & sleep 100000";

/// Waits so that a signal is heard at once, whenever it comes: a shell that waits for a child in the foreground hears it when the child has ended, and the
/// child may have missed it.
const WAITING: &str = "sleep 100000 & wait";

mod place {
    use super::*;

    fn value<'a>(run: &'a Run, rank: usize, name: &str) -> &'a str {
        let lines = run.of(rank);
        lines
            .iter()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_else(|| panic!("{name}: {run:?}"))
    }

    #[test]
    fn each_node_is_told_its_own_rank_and_the_same_place_and_secret() {
        let run = script(&["-n", "3"], "env");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        for rank in 0..3 {
            assert_eq!(value(&run, rank, "MANIPLE_RANK"), rank.to_string());
            assert_eq!(value(&run, rank, "MANIPLE_NODES"), "3");
            for name in ["MANIPLE_RENDEZVOUS", "MANIPLE_SECRET", "MANIPLE_LISTEN"] {
                assert_eq!(value(&run, rank, name), value(&run, 0, name));
            }
        }
    }

    #[test]
    fn each_launch_has_a_secret_and_a_place_of_its_own() {
        let [first, second] = [(); 2].map(|()| script(&["-n", "1"], "env"));
        for name in ["MANIPLE_SECRET", "MANIPLE_RENDEZVOUS"] {
            assert_ne!(value(&first, 0, name), value(&second, 0, name));
        }
    }

    /// One of the nodes below, if the environment says so.
    #[test]
    fn node() {
        if std::env::var_os("MANIPLE_LAUNCH_TEST").is_some() {
            let place = Place::find().unwrap();
            let transport = place.connect().unwrap().unwrap();
            println!("\n{} of {} has met the others", transport.rank(), transport.nodes());
        }
    }

    #[test]
    fn a_program_that_uses_the_library_meets_the_others() {
        let this = std::env::current_exe().unwrap();
        let program = [this.to_str().unwrap(), "place::node", "--exact", "--nocapture"];
        let mut command = maniple_launch(&["-n", "3"], &program);
        let run = finish(command.env("MANIPLE_LAUNCH_TEST", "1").spawn().unwrap());
        assert_eq!(run.code, Some(0), "{run:?}");
        for rank in 0..3 {
            let words = format!("node {rank} of 3 has met the others");
            assert!(run.of(rank).contains(&words.as_str()), "{run:?}");
        }
    }

    #[test]
    fn where_nodes_met_is_tidied_up() {
        let run = script(&["-n", "2"], "echo MANIPLE_RENDEZVOUS=$MANIPLE_RENDEZVOUS; touch $MANIPLE_RENDEZVOUS");
        let file = Path::new(value(&run, 0, "MANIPLE_RENDEZVOUS"));
        assert!(!file.exists() && !file.parent().unwrap().exists(), "{}", file.display());
    }

    #[test]
    fn the_first_node_hears_what_the_launcher_hears_and_the_others_nothing() {
        let file = folder("input").join("input");
        fs::write(&file, "words\n").unwrap();
        let mut command = maniple_launch(&["-n", "2"], &["sh", "-c", "cat; echo end"]);
        let run = finish(command.stdin(File::open(file).unwrap()).spawn().unwrap());
        assert_eq!((run.of(0), run.of(1)), (vec!["words", "end"], vec!["end"]));
    }
}

mod output {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_shown_is_an_error_and_the_nodes_end_all_the_same() {
        let mut command = maniple_launch(&["-n", "2"], &["sh", "-c", "seq 100000; echo done >&2"]);
        let full = File::options().write(true).open("/dev/full").unwrap();
        let run = finish(command.stdout(full).spawn().unwrap());
        assert_eq!((run.code, run.stderr.matches("done").count()), (Some(1), 2), "{run:?}");
        assert!(run.stderr.contains("error: cannot show what the nodes print: No space left on device"), "{run:?}");
    }

    #[test]
    fn both_outputs_are_shown_line_by_line_with_the_number_and_without_colours() {
        let run = script(&["-n", "2"], "echo out; echo err >&2; printf 'no end'");
        let mut lines: Vec<_> = run.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["[0] no end", "[0] out", "[1] no end", "[1] out"]);
        let mut lines: Vec<_> = run.stderr.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["[0] err", "[1] err"]);
    }

    #[test]
    fn numbers_can_be_left_out() {
        assert_eq!(script(&["-n", "1", "--no-prefix"], "echo out").stdout, "out\n");
    }

    #[test]
    fn nodes_go_on_when_nobody_reads_what_they_print() {
        let text = "i=0; while [ $i -lt 30000 ]; do echo some words of a node; i=$((i+1)); done; echo done >&3";
        let mut watched = Watched::start("unread", &["-n", "1"], text);
        drop(watched.launcher.stdout.take());
        assert_eq!(watched.hear(1), ["done"]);
        assert_eq!(watched.end().1.code, Some(0));
    }
}

mod failure {
    use super::*;

    #[test]
    fn the_status_is_that_of_the_first_node_that_failed_and_the_others_are_ended() {
        let text = format!("[ $MANIPLE_RANK = 1 ] && exit 7; trap 'exit 0' TERM; {FOR_EVER} & wait");
        let (_, run) = Watched::start("status", &["-n", "3"], &text).end();
        assert_eq!(run.code, Some(7));
        assert_eq!(run.stderr, "maniple launch: node 1 failed with exit code 7; ending the other 2 nodes\n");
    }

    #[test]
    fn a_node_that_a_signal_ended_gives_128_and_its_number() {
        let (_, run) =
            Watched::start("killed", &["-n", "2"], &format!("[ $MANIPLE_RANK = 0 ] && kill -KILL $$; {FOR_EVER}"))
                .end();
        assert_eq!(run.code, Some(128 + 9));
        assert_eq!(run.stderr, "maniple launch: node 0 was ended by SIGKILL; ending the other node\n");
    }

    #[test]
    fn a_node_that_does_not_listen_is_killed() {
        let folder = folder("deaf");
        assert!(Command::new("mkfifo").arg("gate").current_dir(&folder).status().unwrap().success());
        // Node 1 fails when node 0 has opened the gate, which it does when it does not listen any more.
        let deaf = format!("trap '' TERM; : >gate; {FOR_EVER}");
        let text = format!("cd '{}'; [ $MANIPLE_RANK = 0 ] && {{ {deaf}; }}; cat gate; exit 3", folder.display());
        let (_, run) = Watched::start_in(&folder, &["-n", "2", "--grace", "0.2"], &text).end();
        assert_eq!(run.code, Some(3));
        assert!(run.stderr.ends_with("a node is still there 0.2 s after SIGTERM: killed\n"), "{}", run.stderr);
    }

    #[test]
    fn a_node_that_ends_well_early_ends_nobody() {
        let folder = folder("early");
        // The others read until node 0 has ended.
        let text = "[ $MANIPLE_RANK = 0 ] && { exec 4>gate1 5>gate2; exit 0; }; cat gate$MANIPLE_RANK; echo done";
        assert!(Command::new("mkfifo").args(["gate1", "gate2"]).current_dir(&folder).status().unwrap().success());
        let run = finish(maniple_launch(&["-n", "3"], &["sh", "-c", text]).current_dir(folder).spawn().unwrap());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert_eq!((run.of(1), run.of(2)), (vec!["done"], vec!["done"]));
    }

    #[test]
    fn nodes_that_notice_by_themselves_have_a_moment_to_say_so() {
        let folder = folder("moment");
        assert!(Command::new("mkfifo").arg("gate").current_dir(&folder).status().unwrap().success());
        // Node 1 reads until node 0 has ended. What it starts then takes longer than a signal would.
        let speak = "trap 'echo interrupted; exit 1' TERM; cat gate; true | cat | cat; echo noticed";
        let text = format!("[ $MANIPLE_RANK = 0 ] && {{ exec 4>gate; exit 3; }}; {speak}");
        let run = finish(maniple_launch(&["-n", "2"], &["sh", "-c", &text]).current_dir(folder).spawn().unwrap());
        assert_eq!((run.code, run.of(1)), (Some(3), vec!["noticed"]));
    }

    #[test]
    fn a_program_that_is_not_there_is_told_before_anything_starts() {
        let run = launch(&["-n", "2"], &["no-such-program"]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(2), "error: there is no program `no-such-program`\n"));
        let folder = folder("hint");
        fs::write(folder.join("mine"), "").unwrap();
        let run = finish(maniple_launch(&["-n", "2"], &["mine"]).current_dir(folder).spawn().unwrap());
        assert_eq!(run.stderr, "error: there is no program `mine`; the one in this directory is `./mine`\n");
    }

    #[test]
    fn a_directory_is_no_program() {
        let run = launch(&["-n", "2"], &["/"]);
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.starts_with("error: `/` is a directory: expected a program"), "{}", run.stderr);
    }

    #[test]
    fn a_program_that_cannot_be_started_is_named() {
        let file = folder("text").join("text");
        fs::write(&file, "no program").unwrap();
        let run = launch(&["-n", "2"], &[file.to_str().unwrap()]);
        assert_eq!(run.code, Some(1));
        assert!(
            run.stderr.contains(&format!("starting `{}` for node 0: Permission denied", file.display())),
            "{}",
            run.stderr
        );
    }

    #[test]
    fn at_least_one_node_is_asked_for() {
        assert_eq!(launch(&["-n", "0"], &["true"]).code, Some(2));
        let run = launch(&[], &["true"]);
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains("--nodes <N>"), "{}", run.stderr);
    }
}

mod signals {
    use super::*;

    #[test]
    fn signals_are_passed_on_to_all_nodes() {
        for (signal, name) in [(Signal::INT, "INT"), (Signal::TERM, "TERM"), (Signal::QUIT, "QUIT")] {
            let text = format!("trap 'echo heard {name} >&3; exit 0' {name}; echo here >&3; {WAITING}");
            let mut watched = Watched::start(&format!("signal-{name}"), &["-n", "3"], &text);
            watched.hear(3);
            watched.signal(signal);
            let (said, run) = watched.end();
            assert_eq!(said, format!("heard {name}\n").repeat(3));
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        }
    }

    #[test]
    fn a_job_that_a_signal_ends_says_no_more_than_that() {
        for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15)] {
            let mut watched =
                Watched::start(&format!("ended-{number}"), &["-n", "2"], "echo here >&3; exec sleep 100000");
            watched.hear(2);
            watched.signal(signal);
            let (_, run) = watched.end();
            assert_eq!((run.code, run.stderr.as_str()), (Some(128 + number), ""));
        }
    }

    #[test]
    fn the_same_signal_a_second_time_kills() {
        let text = format!("trap 'echo heard >&3' INT; echo here >&3; while true; do {WAITING}; done");
        let mut watched = Watched::start("twice", &["-n", "2"], &text);
        watched.hear(2);
        watched.signal(Signal::INT);
        assert_eq!(watched.hear(2), ["heard", "heard"]);
        watched.signal(Signal::INT);
        let (_, run) = watched.end();
        assert_eq!(run.code, Some(128 + 9));
    }
}

mod orphans {
    use super::*;

    #[test]
    fn nobody_outlives_a_launcher_that_is_killed() {
        let mut watched = Watched::start("orphans", &["-n", "3"], &format!("echo here >&3; {FOR_EVER}"));
        watched.hear(3);
        watched.signal(Signal::KILL);
        let (said, run) = watched.end();
        assert_eq!((said.as_str(), run.code), ("", None));
    }

    #[test]
    fn a_launcher_leaves_no_directory_behind_even_if_it_is_killed() {
        for signal in [Signal::KILL, Signal::TERM] {
            let folder = folder("directory");
            let directories =
                || fs::read_dir(&folder).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count();
            let mut watched = Watched::start_in(&folder, &["-n", "2"], &format!("echo here >&3; {FOR_EVER}"));
            watched.hear(2);
            assert_eq!(directories(), 1, "where the nodes meet");
            watched.signal(signal);
            watched.end();
            assert_eq!(directories(), 0, "after {signal:?}");
        }
    }

    #[test]
    fn what_a_node_leaves_behind_ends_with_the_job() {
        let (_, run) = Watched::start("behind", &["-n", "2"], "sleep 100000 & exit 0").end();
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    }

    /// As scripts do with `trap 'kill 0' EXIT`.
    #[test]
    fn a_node_that_kills_its_own_group_does_not_kill_the_others() {
        let text = "[ $MANIPLE_RANK = 0 ] && { trap '' TERM; kill -TERM 0; exit 0; }; echo done";
        let run = script(&["-n", "3"], text);
        assert_eq!((run.code, run.of(1), run.of(2)), (Some(0), vec!["done"], vec!["done"]));
    }
}

/// With Linux's `setsid`.
#[cfg(target_os = "linux")]
mod hosts {
    use super::*;

    /// A command that does as ssh does, on this machine: a shell runs the line, in a session of its own, until the connection breaks.
    fn ssh(folder: &Path) -> String {
        let file = folder.join("ssh");
        let log = folder.join("log");
        let text = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$*\" >>{}\nexport MACHINE=\"$1\"\nexec setsid -w sh -c \"$2\"\n",
            shlex::try_quote(log.to_str().unwrap()).unwrap()
        );
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        shlex::try_quote(file.to_str().unwrap()).unwrap().into_owned()
    }

    fn machines(folder: &Path, text: &str) -> String {
        let file = folder.join("machines");
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    #[test]
    fn nodes_run_on_the_machines_of_the_file_each_filled_before_the_next() {
        let folder = folder("machines");
        let file = machines(&folder, "a slots=2\nme@b # last");
        let run =
            script(&["--hosts", &file, "--ssh", &ssh(&folder)], "echo $MANIPLE_RANK of $MANIPLE_NODES on $MACHINE");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert_eq!([run.of(0), run.of(1), run.of(2)], [["0 of 3 on a"], ["1 of 3 on a"], ["2 of 3 on me@b"]]);
    }

    #[test]
    fn the_secret_is_given_to_nodes_and_is_on_no_command_line() {
        let folder = folder("secret");
        let file = machines(&folder, "a\nb");
        let run = script(&["--hosts", &file, "--ssh", &ssh(&folder)], "echo $MANIPLE_SECRET");
        let secret = run.of(0)[0];
        assert_eq!((secret.len(), run.of(1)), (64, vec![secret]));
        let lines = fs::read_to_string(folder.join("log")).unwrap();
        assert!(lines.contains("MANIPLE_RANK") && !lines.contains(secret), "{lines}");
    }

    #[test]
    fn the_directory_and_the_words_of_the_command_stay_as_they_are() {
        let folder = folder("it's a \"folder\"");
        let file = machines(&folder, "a");
        let words = ["sh", "-c", "pwd; printf '<%s>\\n' \"$@\"", "sh", "two words", "it's $HOME", "*", "", "a;b"];
        let mut command = maniple_launch(&["--hosts", &file, "--ssh", &ssh(&folder)], &words);
        let run = finish(command.current_dir(&folder).spawn().unwrap());
        let mut expected = vec![folder.to_str().unwrap().to_owned()];
        expected.extend(words[4..].iter().map(|word| format!("<{word}>")));
        assert_eq!(run.of(0), expected, "{run:?}");
    }

    #[test]
    fn nodes_meet_at_the_first_machine_unless_told_otherwise() {
        let folder = folder("meeting");
        let file = machines(&folder, "me@a.example\nb");
        let ssh = ssh(&folder);
        let met = |options: &[&str]| {
            let options = [&["--hosts", &file, "--ssh", &ssh], options].concat();
            let run = script(&options, "echo $MANIPLE_RENDEZVOUS $MANIPLE_LISTEN");
            assert_eq!(run.of(0), run.of(1));
            run.of(0)[0].to_owned()
        };
        let usual = met(&[]);
        let port = usual.strip_prefix("a.example:").and_then(|rest| rest.strip_suffix(" 0.0.0.0")).unwrap();
        assert!(port.parse::<u16>().unwrap() >= 49_152);
        assert_eq!(met(&["--rendezvous", "10.0.0.7:4000"]), "10.0.0.7:4000 0.0.0.0");
    }

    #[test]
    fn a_program_that_uses_the_library_meets_the_others() {
        let folder = folder("meet");
        let (file, ssh) = (machines(&folder, "127.0.0.1 slots=3"), ssh(&folder));
        let this = std::env::current_exe().unwrap();
        let program = ["env", "MANIPLE_LAUNCH_TEST=1", this.to_str().unwrap(), "place::node", "--exact", "--nocapture"];
        let run = launch(&["--hosts", &file, "--ssh", &ssh], &program);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!((0..3).all(|rank| run.stdout.contains(&format!("node {rank} of 3 has met the others"))), "{run:?}");
    }

    #[test]
    fn limits_of_time_are_passed_on() {
        let folder = folder("limits");
        let options = ["--hosts", &machines(&folder, "a"), "--ssh", &ssh(&folder)];
        let mut command = maniple_launch(&options, &["sh", "-c", "echo $MANIPLE_JOIN_TIMEOUT $MANIPLE_SILENCE"]);
        let run = finish(command.env("MANIPLE_JOIN_TIMEOUT", "7").env("MANIPLE_SILENCE", "0.5").spawn().unwrap());
        assert_eq!(run.of(0), ["7 0.5"]);
    }

    #[test]
    fn the_machine_of_a_node_that_failed_is_named_and_the_others_are_ended() {
        let folder = folder("failed");
        let options = ["--hosts", &machines(&folder, "a\nb"), "--ssh", &ssh(&folder)];
        let text = format!("[ $MANIPLE_RANK = 1 ] && exit 255; {FOR_EVER}");
        let (_, run) = Watched::start_in(&folder, &options, &text).end();
        assert_eq!(run.code, Some(255));
        assert_eq!(run.stderr, "maniple launch: node 1 on b failed with exit code 255; ending the other node\n");
    }

    #[test]
    fn signals_reach_other_machines() {
        let folder = folder("signals");
        let options = ["--hosts", &machines(&folder, "a slots=2\nb"), "--ssh", &ssh(&folder)];
        let text = format!("trap 'echo heard >&3; exit 0' INT; echo here >&3; {WAITING}");
        let mut watched = Watched::start_in(&folder, &options, &text);
        watched.hear(3);
        watched.signal(Signal::INT);
        let (said, run) = watched.end();
        assert_eq!((said.as_str(), run.code), ("heard\nheard\nheard\n", Some(0)));
    }

    /// Nothing here kills them: the connection breaks, and they notice.
    #[test]
    fn nobody_on_another_machine_outlives_a_launcher_that_is_killed() {
        let folder = folder("orphans-elsewhere");
        let options = ["--hosts", &machines(&folder, "a\nb"), "--ssh", &ssh(&folder)];
        let mut watched = Watched::start_in(&folder, &options, &format!("echo here >&3; {FOR_EVER}"));
        watched.hear(2);
        watched.signal(Signal::KILL);
        assert_eq!(watched.end().0, "");
    }

    #[test]
    fn a_host_file_that_makes_no_sense_is_refused() {
        let folder = folder("nonsense");
        for (text, words) in [("a slots=0", "line 1: expected `HOST slots=N`"), ("", "lists no machine")] {
            let run = launch(&["--hosts", &machines(&folder, text)], &["true"]);
            assert_eq!(run.code, Some(2));
            assert!(run.stderr.contains(words), "{}", run.stderr);
        }
        let run = launch(&["--hosts", &machines(&folder, "a"), "-n", "2"], &["true"]);
        assert!(run.stderr.contains("2 nodes need as many slots"), "{}", run.stderr);
        assert_eq!(launch(&["--hosts", "no-such-file"], &["true"]).code, Some(2));
    }
}
