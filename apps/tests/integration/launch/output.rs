//! The output of nodes: how it is shown, and what happens when it is not read.

use super::*;

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
fn what_is_no_text_is_shown_as_it_is_without_numbers() {
    let bytes = maniple_launch(&["-n", "1", "--no-prefix"], &["printf", r"a\0b\377"]).output().unwrap().stdout;
    assert_eq!(bytes, b"a\0b\xff");
}

/// Nodes of which one prints for ever, to the standard output or, redirected, elsewhere, and the other one says
/// nothing.
fn endless(to: &str) -> String {
    format!("[ $MANIPLE_RANK = 1 ] && exec sleep 100000; exec yes {to}")
}

#[test]
fn a_job_ends_when_nobody_reads_what_it_prints_any_more() {
    for to in ["", ">&2"] {
        for lines in [0, 1, 10_000] {
            let mut watched = Watched::start("unread", &["-n", "2"], &endless(to));
            let (stdout, stderr) = (watched.launcher.stdout.take().unwrap(), watched.launcher.stderr.take().unwrap());
            let read = |from: &mut dyn Read| {
                let lines = BufReader::new(from).lines().take(lines).map(Result::unwrap);
                lines.for_each(|line| assert_eq!(line, "[0] y"));
            };
            let (mut stdout, mut stderr) = (stdout, stderr);
            let other: &mut dyn Read = if to.is_empty() {
                read(&mut stdout);
                drop(stdout);
                &mut stderr
            } else {
                read(&mut stderr);
                drop(stderr);
                &mut stdout
            };
            let mut rest = String::new();
            other.read_to_string(&mut rest).unwrap();
            let (_, run) = watched.end();
            assert_eq!((run.code, rest.as_str()), (Some(128 + 13), ""), "{to} {lines}");
        }
    }
}

#[test]
fn nodes_that_do_not_mind_are_ended_all_the_same() {
    let text = "trap '' PIPE TERM; while :; do echo words; done 2>/dev/null";
    let mut watched = Watched::start("stubborn", &["-n", "2", "--grace", "0.1"], text);
    drop(watched.launcher.stdout.take());
    let (_, run) = watched.end();
    assert_eq!(run.code, Some(128 + 13));
    assert_eq!(run.stderr, "maniple launch: nodes are still there 0.1 s after SIGTERM: killed\n");
}

#[test]
fn a_reader_that_has_gone_does_not_matter_if_nothing_more_is_printed() {
    let folder = folder("enough");
    let gate = folder.join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let mut watched = Watched::start_in(&folder, &["-n", "1"], &format!("echo words; cat '{}'", gate.display()));
    let mut stdout = BufReader::new(watched.launcher.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "[0] words\n");
    drop(stdout);
    drop(File::options().write(true).open(gate).unwrap());
    assert_eq!(watched.end().1.code, Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_an_error_and_ends_the_job() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let folder = folder("full");
    let mut command = Watched::command(&folder, &["-n", "2"], &endless(""));
    command.stdout(full());
    let (_, run) = Watched::watch(&folder, command).end();
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stderr, "error: cannot show what the nodes print: No space left on device (os error 28)\n");
    let folder = super::folder("full-of-errors");
    let mut command = Watched::command(&folder, &["-n", "2"], &endless(">&2"));
    command.stderr(full());
    assert_eq!(Watched::watch(&folder, command).end().1.code, Some(1));
}

/// The output of each node fits into its own pipe (64 KiB), so that the node ends though nothing is read; with the
/// numbers, both outputs together do not fit into the launcher's pipe.
#[test]
fn what_was_printed_before_the_end_is_shown_however_slow_the_reader_is() {
    let mut watched = Watched::start("slow", &["-n", "2", "--grace", "0.01"], "seq 9000");
    let mut rest = String::new();
    // Nothing has been read when the nodes are no more.
    watched.line.read_to_string(&mut rest).unwrap();
    let (_, run) = watched.end();
    assert_eq!((run.code, run.of(0).len(), run.of(1).len()), (Some(0), 9_000, 9_000));
}

#[test]
fn long_lines_are_whole_whatever_their_length() {
    let text = "head -c $((900000 + MANIPLE_RANK)) /dev/zero | tr '\\0' x; echo; echo end";
    let run = script(&["-n", "3"], text);
    for rank in 0..3 {
        assert_eq!(run.of(rank).iter().map(|line| line.len()).collect::<Vec<_>>(), [900_000 + rank, 3]);
    }
    let text = "[ $MANIPLE_RANK = 0 ] && { head -c 20000000 /dev/zero | tr '\\0' x; }; echo end";
    let run = script(&["-n", "2"], text);
    assert_eq!((run.of(0)[0].len(), run.of(1), run.stdout.lines().count()), (20_000_003, vec!["end"], 2));
}

/// Node 1 begins when the first has printed so much that others have to wait, and the first ends its line when node 1
/// has ended.
#[test]
fn a_line_that_others_would_wait_for_too_long_holds_nobody_up() {
    let folder = folder("patience");
    let text = "[ $MANIPLE_RANK = 0 ] && { head -c 3000000 /dev/zero | tr '\\0' x; : >go; cat gone; echo end; exit; }; \
                cat go; exec 5>gone; yes | head -n 3000000";
    assert!(Command::new("mkfifo").args(["go", "gone"]).current_dir(&folder).status().unwrap().success());
    let run = finish(maniple_launch(&["-n", "2"], &["sh", "-c", text]).current_dir(folder).spawn().unwrap());
    assert_eq!((run.code, run.of(1).len()), (Some(0), 3_000_000));
    assert!(run.of(1).iter().all(|line| *line == "y"));
    assert_eq!(run.of(0).concat(), "x".repeat(3_000_000) + "end");
}

#[test]
fn lines_of_both_outputs_do_not_mix_in_one_file() {
    let file = folder("both").join("both");
    let text =
        "for i in 1 2 3 4 5 6 7 8 9; do head -c 300000 /dev/zero | tr '\\0' x; echo; done >&$((1 + MANIPLE_RANK))";
    let mut command = maniple_launch(&["-n", "2"], &["sh", "-c", text]);
    let both = File::create(&file).unwrap();
    let run = finish(command.stdout(both.try_clone().unwrap()).stderr(both).spawn().unwrap());
    let run = Run { stdout: fs::read_to_string(file).unwrap(), ..run };
    for rank in 0..2 {
        assert_eq!(run.of(rank).iter().map(|line| line.len()).collect::<Vec<_>>(), [300_000; 9]);
    }
}
