//! Which signals reach the nodes.

use rustix::process::{WaitOptions, waitpid};

use super::*;

#[test]
fn signals_are_passed_on_to_all_nodes() {
    for (signal, name) in [
        (Signal::INT, "INT"),
        (Signal::TERM, "TERM"),
        (Signal::QUIT, "QUIT"),
        (Signal::HUP, "HUP"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
    ] {
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
    for (signal, number) in
        [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1), (Signal::USR1, 10), (Signal::USR2, 12)]
    {
        let mut watched = Watched::start(&format!("ended-{number}"), &["-n", "2"], "echo here >&3; exec sleep 100000");
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

#[test]
fn signals_that_do_not_ask_for_the_end_may_come_often() {
    for (signal, name) in [(Signal::HUP, "HUP"), (Signal::USR1, "USR1"), (Signal::USR2, "USR2")] {
        let text =
            format!("trap 'echo heard >&3' {name}; trap 'exit 0' TERM; echo here >&3; while true; do {WAITING}; done");
        let mut watched = Watched::start(&format!("often-{name}"), &["-n", "2"], &text);
        watched.hear(2);
        for _ in 0..3 {
            watched.signal(signal);
            assert_eq!(watched.hear(2), ["heard", "heard"]);
        }
        watched.signal(Signal::TERM);
        assert_eq!(watched.end().1.code, Some(0));
    }
}

#[test]
fn a_job_stops_and_goes_on_with_its_launcher() {
    let text = format!(
        "trap 'echo stop >&3' TSTP; trap 'echo go on >&3; exit 0' CONT; echo here >&3; while true; do {WAITING}; done"
    );
    let mut watched = Watched::start("stop", &["-n", "2"], &text);
    watched.hear(2);
    watched.signal(Signal::TSTP);
    assert_eq!(watched.hear(2), ["stop", "stop"]);
    let (_, status) = waitpid(Some(Pid::from_child(&watched.launcher)), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped());
    watched.signal(Signal::CONT);
    assert_eq!(watched.hear(2), ["go on", "go on"]);
    assert_eq!(watched.end().1.code, Some(0));
}

/// As `nohup` does. A shell cannot catch what was ignored when it began.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_the_launcher_is_to_ignore_is_ignored_by_the_nodes_too() {
    for (signal, name) in [(Signal::HUP, "HUP"), (Signal::USR1, "USR1")] {
        let folder = folder(&format!("ignored-{name}"));
        let text = format!("echo here >&3; kill -s {name} $$; echo still here >&3; exec sleep 100000");
        let launch = Watched::command(&folder, &["-n", "2"], &text);
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("trap '' {name}; exec \"$0\" \"$@\"")])
            .arg(launch.get_program())
            .args(launch.get_args());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut watched = Watched::watch(&folder, command);
        watched.hear(4);
        watched.signal(signal);
        watched.signal(Signal::TERM);
        assert_eq!(watched.end().1.code, Some(128 + 15));
    }
}
