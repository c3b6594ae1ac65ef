//! Features that all programs have in common: help, logs, exit codes, and output that is not read.

use super::*;

#[test]
fn the_log_says_why_replays_are_given_up_if_it_is_asked_for() {
    // The steps are replayed by twos or more, so that of one of these numbers some are left at the end.
    let circuit = |steps| format!("run circuit --pieces 2 --nodes-per-piece 8 --wires-per-piece 16 --steps {steps}");
    let logs = [30, 31].map(|steps| maniple_with_log(&circuit(steps), "maniple=debug"));
    assert!(logs.iter().all(|run| run.code == Some(0) && run.stdout.starts_with("circuit\n")));
    assert!(logs.iter().any(|run| run.stderr.contains("a run is replayed no further")), "{}", logs[1].stderr);
    let run = maniple_with_log(&circuit(1), "x=y=z");
    assert!(run.code == Some(0) && run.stderr.starts_with("warning: RUST_LOG=x=y=z is ignored: "), "{}", run.stderr);
}

#[test]
fn the_machine_is_shown_as_the_options_make_it() {
    let tables = prints("info --workers 3 --memory 1GiB");
    let cpus = tables.lines().filter(|line| line.contains("  cpu  ")).count();
    assert_eq!(cpus, 3, "{tables}");
    assert!(tables.contains("system"), "{tables}");
}

#[test]
fn whoever_runs_out_of_memory_is_told_which_options_help() {
    let runs = [
        (&*format!("{SMALL_CIRCUIT} --memory 2KiB"), "--pieces"),
        ("run cg --poisson 10 --memory 2KiB", "--poisson"),
        ("run cg --poisson 10 --memory 11KiB --pieces 4 --mapper piecewise", "--pieces"),
        ("run stencil --size 100 --memory 2KiB", "--size"),
    ];
    for (arguments, option) in runs {
        let run = maniple(arguments);
        let hint = run.stderr.lines().last().and_then(|line| line.strip_prefix("hint: "));
        let helps = hint.is_some_and(|hint| hint.contains("--memory") && hint.contains(option));
        assert!(helps && run.stderr.lines().count() == 2, "maniple {arguments}\n{}", run.stderr);
    }
    assert!(!maniple("run cg --poisson 30 --max-iterations 5").stderr.contains("hint"));
}

#[test]
fn more_memory_than_there_is_gets_a_warning() {
    for command in ["run stencil --size 30 --steps 1", "info"] {
        let run = maniple(&format!("{command} --memory 9000TiB"));
        assert_eq!((run.code, run.stderr.lines().count()), (Some(0), 1), "{}", run.stderr);
        assert!(run.stderr.starts_with("warning: --memory 9000.0 TiB is more than the "), "{}", run.stderr);
    }
}

#[test]
fn information_takes_only_options_that_can_change_it() {
    for option in ["--mapper log", "--window 3", "--seed 4"] {
        let name = option.split(' ').next().unwrap_or_default();
        fails(&format!("info {option}"), 2, &format!("unexpected argument '{name}' found"));
    }
}

const COMMANDS: [&str; 14] = [
    "",
    "run circuit",
    "run cg",
    "run stencil",
    "run recursion",
    "run recursion queens",
    "run cp",
    "run tucker",
    "run taskbench",
    "run metg",
    "tensor",
    "prof",
    "info",
    "launch",
];

#[test]
fn examples_fit_into_80_columns() {
    for command in COMMANDS {
        let help = prints(&format!("{command} --help"));
        let (_, examples) = help.split_once("Examples:\n").unwrap_or_default();
        for line in examples.lines().take_while(|line| !line.is_empty()) {
            assert!(line.len() <= 80 && line.starts_with("  "), "{} columns: {line}", line.len());
            assert!(line.starts_with("  maniple ") || line.starts_with("          "), "broken: {line}");
        }
    }
}

#[test]
fn help_states_the_limits() {
    let states = |command: &str, limits: &[&str]| {
        let help = prints(&format!("{command} --help")).split_whitespace().collect::<Vec<_>>().join(" ");
        limits.iter().for_each(|limit| assert!(help.contains(limit), "{limit}: {help}"));
    };
    states("run circuit", &["at most 1024", "at most 1048576", "at most 4294967295", "powers of 1024"]);
    states("run cg", &["at most 1024", "at most 1048576", "at most 4294967295 rows", "the values add up", "by luck"]);
    states("run stencil", &["at most 1024", "at most 1048576", "at most 281474976710656"]);
    states("", &["130 for Ctrl-C"]);
}

#[test]
fn help_teaches_and_shows_examples() {
    for command in COMMANDS {
        let help = prints(&format!("{command} --help"));
        assert!(help.contains("Examples:\n  maniple "), "{help}");
        assert!(help.contains("Usage: maniple"), "{help}");
    }
}

#[test]
fn what_is_not_known_is_refused() {
    fails("run circuit --no-such-flag", 2, "unexpected argument '--no-such-flag' found");
    fails("run weather", 2, "unrecognized subcommand 'weather'");
    fails("run circuit --mapper magic", 2, "invalid value 'magic' for '--mapper <NAME>'");
    fails("run circuit --workers 0", 2, "invalid value '0' for '--workers <N>'");
    fails("run circuit --memory lots", 2, "invalid value 'lots' for '--memory <SIZE>'");
    fails("run circuit --memory -1", 2, "invalid value '-1' for '--memory <SIZE>'");
    fails("run circuit --window 0", 2, "invalid value '0' for '--window <N>'");
    fails("run circuit --workers 1025", 2, "invalid value '1025' for '--workers <N>': it must be at most 1024");
    fails("run circuit --seed x", 2, "invalid value 'x' for '--seed <N>': it must be a whole number of at least 0");
    fails("run circuit --seed -1", 2, "invalid value '-1' for '--seed <N>': it must be a whole number of at least 0");
    let huge = "99999999999999999999";
    fails(
        &format!("run circuit --pieces {huge}"),
        2,
        &format!("invalid value '{huge}' for '--pieces <N>': it must be at most 1048576"),
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    let child = command.arg("info").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the program can be started");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
