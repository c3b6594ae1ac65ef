//! Nothing that a job has started outlives it.

use std::os::unix::fs::PermissionsExt;

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

/// A `mkdir` that is found first, and says on the line that it was called before it does the rest.
fn other_mkdir(folder: &Path, rest: &str) -> String {
    let (programs, line) = (folder.join("programs"), folder.join("line"));
    fs::create_dir(&programs).unwrap();
    let mkdir = programs.join("mkdir");
    fs::write(&mkdir, format!("#!/bin/sh\nexec 3>{}; echo here >&3; {rest}\n", line.display())).unwrap();
    fs::set_permissions(&mkdir, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", programs.display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_launcher_that_is_killed_before_there_is_a_directory_leaves_none_behind() {
    let folder = folder("no-directory");
    let gate = folder.join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // What it leaves behind is on the line until the guard has killed its group, which is the last that it does.
    let rest = format!("sleep 100000 & cat {} >&2; PATH=${{PATH#*:}}; exec mkdir \"$@\" 3>&-", gate.display());
    let path = other_mkdir(&folder, &rest);
    let mut command = Watched::command(&folder, &["-n", "2"], FOR_EVER);
    let temporary = folder.join("temporary");
    fs::create_dir(&temporary).unwrap();
    command.env("PATH", path).env("TMPDIR", &temporary);
    let mut watched = Watched::watch(&folder, command);
    watched.hear(1);
    watched.signal(Signal::KILL);
    // The program that makes the directory goes on only now.
    fs::write(&gate, "").unwrap();
    watched.end();
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_launcher_ends_while_a_node_is_being_started() {
    let folder = folder("starting");
    let path = other_mkdir(&folder, "exec sleep 100000");
    let mut command = Watched::command(&folder, &["-n", "2"], FOR_EVER);
    let mut watched = Watched::watch(&folder, {
        command.env("PATH", path);
        command
    });
    watched.hear(1);
    // Two in a row may count as one.
    while watched.launcher.try_wait().unwrap().is_none() {
        watched.signal(Signal::TERM);
        std::thread::yield_now();
    }
    let (_, run) = watched.end();
    assert_eq!(run.code, Some(128 + 15), "{run:?}");
}

#[test]
fn a_node_whose_guard_was_stopped_with_it_ends_with_the_job() {
    let text = "[ $MANIPLE_RANK = 0 ] && kill -s STOP 0; exit 3";
    for grace in ["0", "0.1"] {
        let run = script(&["-n", "2", "--grace", grace], text);
        assert_eq!(run.code, Some(3), "{run:?}");
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

/// By a session of its own, by a parent that has ended, without the job's environment: it stays a descendant.
#[cfg(target_os = "linux")]
#[test]
fn nothing_that_a_node_has_started_outlives_the_job_wherever_it_goes() {
    for text in [
        "setsid sleep 100000 & exit 0",
        "setsid sh -c 'sleep 100000 & sleep 100000 & wait' & exit 0",
        "(setsid setsid sleep 100000 &) & exit 3",
        "env -i setsid sh -c 'sleep 100000 & exec sleep 100000' & exit 0",
    ] {
        let (said, run) = Watched::start("sessions", &["-n", "2"], &format!("exec >/dev/null 2>&1; {text}")).end();
        assert_eq!(said, "", "{text}");
        assert!(matches!(run.code, Some(0 | 3)), "{run:?}");
    }
}

/// It holds on to the pipe by which the launcher reads what its node prints.
#[cfg(target_os = "linux")]
#[test]
fn what_has_left_its_session_does_not_hold_up_the_end() {
    let (_, run) = Watched::start("held", &["-n", "2", "--grace", "1000000"], "setsid sleep 100000 & exit 0").end();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[cfg(target_os = "linux")]
#[test]
fn what_has_left_its_session_does_not_outlive_a_launcher_that_is_killed() {
    let text = "setsid sh -c 'echo here >&3; exec sleep 100000' & sleep 100000";
    let mut watched = Watched::start("orphans-of-sessions", &["-n", "2"], text);
    watched.hear(2);
    watched.signal(Signal::KILL);
    assert_eq!(watched.end().0, "");
}

/// A process that is just becoming another program shows no environment by which it could be found.
#[cfg(target_os = "linux")]
#[test]
fn what_becomes_another_program_all_the_time_does_not_outlive_a_launcher_that_is_killed() {
    let text = "again='exec sh -c \"$0\" \"$0\"'; for i in 1 2 3 4; do setsid sh -c \"$again\" \"$again\" & done; \
                echo here >&3; sleep 100000";
    let mut watched = Watched::start("becoming", &["-n", "2"], text);
    watched.hear(2);
    watched.signal(Signal::KILL);
    assert_eq!(watched.end().0, "");
}

/// Another job of the same user.
#[cfg(target_os = "linux")]
#[test]
fn a_launcher_that_is_killed_takes_no_other_job_with_it() {
    let text = "trap 'echo heard >&3; exit 0' TERM; echo here >&3; ";
    let mut other = Watched::start("other", &["-n", "2"], &format!("{text}{WAITING}"));
    other.hear(2);
    let mut watched = Watched::start("killed-beside", &["-n", "2"], &format!("echo here >&3; {FOR_EVER}"));
    watched.hear(2);
    watched.signal(Signal::KILL);
    watched.end();
    other.signal(Signal::TERM);
    let (said, run) = other.end();
    assert_eq!((said.as_str(), run.code), ("heard\nheard\n", Some(0)));
}

/// The launcher is the parent of processes whose parents have ended, and takes notice of their end.
#[cfg(target_os = "linux")]
#[test]
fn orphans_that_end_do_not_stay_as_zombies() {
    let text = "orphan=$(setsid sh -c 'sleep 0 >/dev/null & echo $!'); while kill -0 $orphan; do :; done 2>/dev/null; echo gone";
    let run = script(&["-n", "2"], text);
    assert_eq!((run.code, run.of(0), run.of(1)), (Some(0), vec!["gone"], vec!["gone"]));
}
