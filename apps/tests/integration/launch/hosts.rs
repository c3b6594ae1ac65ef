//! Nodes on other machines, by a command that does as ssh does. With Linux's `setsid`.

use super::*;

/// A command that does as ssh does, on this machine: a shell runs the line, in a session of its own, until the
/// connection breaks.
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
    let run = script(&["--hosts", &file, "--ssh", &ssh(&folder)], "echo $MANIPLE_RANK of $MANIPLE_NODES on $MACHINE");
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
    for address in ["10.0.0.7:4000", "[fd00::7]:4000"] {
        assert_eq!(met(&["--rendezvous", address]), format!("{address} 0.0.0.0"));
    }
}

#[test]
fn machines_may_be_addresses_of_ipv6_with_brackets_or_without() {
    let folder = folder("ipv6");
    let file = machines(&folder, "[fd00::7] slots=2\nme@fd00::8");
    let text = "echo $MANIPLE_RANK on $MACHINE at $MANIPLE_RENDEZVOUS";
    let run = script(&["--hosts", &file, "--ssh", &ssh(&folder)], text);
    for (rank, machine) in ["fd00::7", "fd00::7", "me@fd00::8"].into_iter().enumerate() {
        let expected = format!("{rank} on {machine} at [fd00::7]:");
        assert!(run.of(rank)[0].starts_with(&expected), "{run:?}");
    }
}

#[test]
fn an_address_where_nodes_cannot_meet_is_refused_before_anything_starts() {
    let folder = folder("rendezvous");
    let file = machines(&folder, "a");
    for address in ["node-a", "node-a:", "fd00::7", "fd00::7:4000", "/shared/job", "node-a:70000"] {
        let run = launch(&["--hosts", &file, "--ssh", &ssh(&folder), "--rendezvous", address], &["true"]);
        assert_eq!(run.code, Some(2), "{address}: {run:?}");
        assert!(run.stderr.contains("--rendezvous <HOST:PORT>") && run.stderr.contains("`node-a:45217`"), "{run:?}");
    }
    let run = launch(&["--hosts", &machines(&folder, "fe80::1%eth0"), "--ssh", &ssh(&folder)], &["true"]);
    assert!(run.code == Some(2) && run.stderr.contains("name another one with --rendezvous HOST:PORT"), "{run:?}");
    assert!(!folder.join("log").exists());
}

#[test]
fn what_the_environment_says_to_nodes_is_checked_before_anything_starts() {
    let folder = folder("environment");
    let file = machines(&folder, "a");
    for options in [&["-n", "2"][..], &["--hosts", &file, "--ssh", &ssh(&folder)]] {
        for (name, expected) in [
            ("MANIPLE_JOIN_TIMEOUT", "a number of seconds"),
            ("MANIPLE_SILENCE", "a number of seconds"),
            ("MANIPLE_SHARED_MEMORY", "0 or 1"),
        ] {
            let mut command = maniple_launch(options, &["echo", "started"]);
            let run = finish(command.env(name, "soon").spawn().unwrap());
            let error = format!("error: the environment variable {name} is {expected}, not `soon`\n");
            assert_eq!((run.code, run.stdout.as_str(), run.stderr), (Some(2), "", error));
        }
    }
}

#[test]
fn a_program_that_uses_the_library_meets_the_others() {
    meet("meet", "127.0.0.1 slots=3");
}

#[test]
fn a_program_that_uses_the_library_meets_the_others_by_ipv6() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("this machine has no IPv6: not tested");
        return;
    }
    meet("meet-by-ipv6", "[::1] slots=2\n::1");
}

fn meet(name: &str, text: &str) {
    let folder = folder(name);
    let (file, ssh) = (machines(&folder, text), ssh(&folder));
    let this = std::env::current_exe().unwrap();
    let program =
        ["env", "MANIPLE_LAUNCH_TEST=1", this.to_str().unwrap(), "launch::place::node", "--exact", "--nocapture"];
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

#[test]
fn a_job_on_other_machines_stops_and_goes_on_with_its_launcher() {
    let folder = folder("stop-elsewhere");
    let options = ["--hosts", &machines(&folder, "a"), "--ssh", &ssh(&folder)];
    // Once it has gone on it says so. It is stopped by a signal that cannot be caught.
    let text = format!("trap 'echo went on >&3; exit 0' CONT; echo $$ >&3; while true; do {WAITING}; done");
    let mut watched = Watched::start_in(&folder, &options, &text);
    let node = watched.hear(1).remove(0);
    watched.signal(Signal::TSTP);
    let is_stopped = || fs::read_to_string(format!("/proc/{node}/stat")).unwrap().contains(") T ");
    while !is_stopped() {
        std::thread::yield_now();
    }
    watched.signal(Signal::CONT);
    assert_eq!(watched.hear(1), ["went on"]);
    assert_eq!(watched.end().1.code, Some(0));
}

#[test]
fn a_node_whose_connection_breaks_ends_with_all_that_it_has_started_and_no_other_does() {
    let folder = folder("sessions-elsewhere");
    assert!(Command::new("mkfifo").args(["break", "gone"]).current_dir(&folder).status().unwrap().success());
    // As ssh, but the connection to `b` breaks when a process has opened and closed `break`.
    let file = folder.join("ssh-that-breaks");
    let text = "#!/bin/sh\n[ \"$1\" = b ] || exec setsid -w sh -c \"$2\"\nIFS= read -r secret\n\
                { echo \"$secret\"; cat break; } | setsid -w sh -c \"$2\"\n";
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // Node 0 reads until nothing is left of node 1, both in the test's folder.
    let text = "[ $MANIPLE_RANK = 0 ] && { trap '' TERM; cat gone; echo still here; exit 0; }; \
                exec 4>gone; setsid sh -c ': >break; exec sleep 100000' & sleep 100000";
    let ssh = shlex::try_quote(file.to_str().unwrap()).unwrap().into_owned();
    let options = ["--hosts", &machines(&folder, "a\nb"), "--ssh", &ssh, "--grace", "1000000"];
    let mut command = maniple_launch(&options, &["sh", "-c", text]);
    let run = finish(command.current_dir(&folder).spawn().unwrap());
    assert_eq!((run.code, run.of(0)), (Some(128 + 9), vec!["still here"]), "{run:?}");
}

#[test]
fn what_has_left_its_session_on_another_machine_does_not_outlive_a_launcher_that_is_killed() {
    let folder = folder("orphans-of-sessions-elsewhere");
    let options = ["--hosts", &machines(&folder, "a\nb"), "--ssh", &ssh(&folder)];
    let text = "setsid sh -c 'echo here >&3; exec sleep 100000' & sleep 100000";
    let mut watched = Watched::start_in(&folder, &options, text);
    watched.hear(2);
    watched.signal(Signal::KILL);
    assert_eq!(watched.end().0, "");
}
