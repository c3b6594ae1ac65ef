//! Random programs on nodes that are processes: each program is a job of all of them, and each process compares what it
//! sees with the oracle.
//!
//! The processes are `stress`, started as a launcher would. To look for more:
//! `maniple launch -n 4 -- target/release/stress --count 1000`.

use std::path::PathBuf;
use std::process::{Command, Output};

use maniple::environment::JOIN_TIMEOUT;
use maniple_tests::processes::job;
use maniple_tests::trial::Family;

const STRESS: &str = env!("CARGO_BIN_EXE_stress");

/// The outputs of so many processes that are started by these commands.
fn stress(name: &str, nodes: usize, shared_memory: bool, command: impl Fn(usize) -> Command) -> Vec<Output> {
    let meeting = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("stress-{name}"));
    // Of an earlier run, where each program left a file.
    for number in 0..PROGRAMS * Family::ALL.len() {
        let _ = std::fs::remove_file(meeting.with_file_name(format!("stress-{name}.{number}")));
    }
    job(nodes, &meeting, shared_memory, command)
}

/// Programs of each family.
const PROGRAMS: usize = 12;

fn command(options: &str) -> Command {
    let mut command = Command::new(STRESS);
    command.args(options.split_whitespace());
    command
}

/// The programs, failures, tasks and parcels that a process tells of in its last line.
fn counts(output: &Output) -> Vec<u64> {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    last.split([' ', ';', ',']).filter_map(|word| word.parse().ok()).collect()
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

/// All programs are right on all processes, and they have worked together.
fn equal_the_oracle(nodes: usize, shared_memory: bool) {
    // Processes that share memory look for messages all the time, and more of them than cores keep each other from it.
    let programs_of_each = if nodes > 2 && shared_memory { PROGRAMS / 2 } else { PROGRAMS };
    let name = format!("{nodes}-{shared_memory}");
    let options = format!("--count {programs_of_each} --seed {}", 100 * nodes);
    for (rank, output) in stress(&name, nodes, shared_memory, |_| command(&options)).iter().enumerate() {
        let said = said(output);
        assert!(output.status.success(), "process {rank} of {nodes}: {said}");
        let [programs, failures, tasks, parcels] = counts(output)[..] else { panic!("{said}") };
        assert_eq!([programs, failures], [(programs_of_each * Family::ALL.len()) as u64, 0], "{said}");
        assert!(
            tasks > 5 * programs && parcels > programs,
            "process {rank} of {nodes} has done next to nothing: {said}"
        );
    }
}

#[test]
fn programs_on_two_processes_that_share_memory_equal_the_oracle() {
    equal_the_oracle(2, true);
}

#[test]
fn programs_on_four_processes_that_share_memory_equal_the_oracle() {
    equal_the_oracle(4, true);
}

#[test]
fn programs_on_two_processes_over_sockets_equal_the_oracle() {
    equal_the_oracle(2, false);
}

#[test]
fn programs_on_four_processes_over_sockets_equal_the_oracle() {
    equal_the_oracle(4, false);
}

#[test]
fn one_process_that_a_launcher_starts_is_a_job_of_its_own() {
    let [output] = &stress("alone", 1, true, |_| command("--count 5"))[..] else { panic!("one process") };
    let said = said(output);
    assert!(output.status.success(), "{said}");
    assert_eq!(counts(output)[..2], [5 * Family::ALL.len() as u64, 0], "{said}");
}

#[test]
fn a_mistake_on_one_process_is_noticed_there_and_where_its_values_go() {
    let options = |rank: usize| {
        let mistake = if rank == 1 { " --mistake WrongValue" } else { "" };
        command(&format!("--family flat --count 20{mistake}"))
    };
    let outputs = stress("mistake", 2, true, options);
    let failures = outputs.iter().map(|output| {
        assert_eq!(output.status.code(), Some(1), "{}", said(output));
        let text = said(output);
        assert!(text.contains("replay: maniple launch -n 2 -- stress --family flat --seed"), "{text}");
        assert!(text.contains(", not "), "{text}");
        counts(output)[1]
    });
    assert!(failures.min() > Some(0));
}

#[test]
fn processes_that_run_different_programs_are_told_so_and_go_on_with_the_next() {
    let options = |rank: usize| command(&format!("--family flat --count 3 --seed {}", [7, 8][rank]));
    for output in stress("differing", 2, true, options) {
        let text = said(&output);
        assert_eq!((output.status.code(), counts(&output)[0]), (Some(1), 3), "{text}");
        assert!(text.contains("do not run the same program"), "{text}");
    }
}

#[test]
fn a_process_whose_others_have_gone_says_so_and_runs_no_more_programs() {
    let outputs = stress("gone", 2, true, |rank| {
        let mut command = command(&format!("--family flat --count {}", [2, 5][rank]));
        // No other process comes any more, so there is no use in waiting long.
        command.env(JOIN_TIMEOUT, "10");
        command
    });
    assert!(outputs[0].status.success(), "{}", said(&outputs[0]));
    let text = said(&outputs[1]);
    assert_eq!((outputs[1].status.code(), &counts(&outputs[1])[..2]), (Some(1), &[3, 1][..]), "{text}");
    assert!(text.contains("cannot meet the other nodes"), "{text}");
}

#[test]
fn what_processes_cannot_do_alike_is_refused() {
    for (options, told) in [
        ("--seconds 3", "give --count, and neither"),
        ("--count 3 --repeat 2", "give --count, and neither"),
        ("--count 3 --nodes 2", "this one is a node of several processes"),
    ] {
        for output in stress("refused", 2, true, |_| command(options)) {
            assert_eq!(output.status.code(), Some(2), "{options}");
            assert!(said(&output).contains(told), "{options}: {}", said(&output));
        }
    }
}
