//! Nodes that fail, and programs that cannot be started.

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
        Watched::start("killed", &["-n", "2"], &format!("[ $MANIPLE_RANK = 0 ] && kill -KILL $$; {FOR_EVER}")).end();
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
