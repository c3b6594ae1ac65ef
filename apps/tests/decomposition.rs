//! `maniple run cp` and `maniple run tucker` as their users run them.

use std::process::{Command, Output, Stdio};

fn run(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(arguments.split_whitespace()).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    command.output().expect("the program can be started")
}

/// The report of a run on so many nodes, which must succeed.
#[track_caller]
fn report(nodes: usize, arguments: &str) -> String {
    let launch = format!("launch -n {nodes} --no-prefix -- {} run {arguments}", env!("CARGO_BIN_EXE_maniple"));
    let run = run(&if nodes == 1 { format!("run {arguments}") } else { launch });
    assert_eq!((run.status.code(), String::from_utf8_lossy(&run.stderr).as_ref()), (Some(0), ""), "{arguments}");
    String::from_utf8(run.stdout).expect("the program prints text")
}

#[track_caller]
fn value<'a>(report: &'a str, name: &str) -> &'a str {
    let line = report.lines().find_map(|line| line.trim_start().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line '{name}' in\n{report}")).trim()
}

#[track_caller]
fn refuses(arguments: &str, code: i32, message: &str) {
    let run = run(arguments);
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!((run.status.code(), run.stdout.as_slice()), (Some(code), &b""[..]), "{arguments}\n{told}");
    assert!(told.starts_with(&format!("error: {message}")), "{arguments}\n{told}");
}

const CP: &str = "cp --size 20,24,18 --rank 3";
const TUCKER: &str = "tucker --size 20,24,18 --ranks 3,4,2";

#[test]
fn a_tensor_of_low_rank_is_found_again() {
    for seed in 1..4 {
        for (program, rank) in [(CP, "3"), (TUCKER, "3 x 4 x 2")] {
            let report = report(1, &format!("{program} --seed {seed}"));
            assert_eq!((value(&report, "tensor"), value(&report, "rank")), ("20 x 24 x 18", rank));
            assert_eq!(value(&report, "fit"), "1.000000", "{report}");
            let error = value(&report, "relative error").split(' ').next().and_then(|word| word.parse::<f64>().ok());
            assert!(error.is_some_and(|error| error < 1e-5), "{report}");
        }
    }
}

#[test]
fn several_nodes_go_the_same_way() {
    for program in [CP, TUCKER] {
        let [one, two] = [1, 2].map(|nodes| report(nodes, program));
        for line in ["tensor", "rank", "iterations", "fit"] {
            assert_eq!(value(&one, line), value(&two, line), "{program}");
        }
    }
}

#[test]
fn extents_and_ranks_may_be_one() {
    report(1, "cp --size 1,1,1 --rank 1");
    report(1, "cp --size 5,1,3 --rank 1");
    report(1, "tucker --size 4,1,3 --ranks 1,1,1");
}

#[test]
fn a_tensor_that_is_not_found_in_time_is_no_success() {
    let message = "no convergence: after 1 iterations the relative error is ";
    refuses("run cp --size 20,24,18 --rank 6 --iterations 1", 1, message);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let three = "it must be three numbers such as 100,100,100";
    refuses("run cp --size 10,10", 2, &format!("invalid value '10,10' for '--size <I,J,K>': {three}"));
    refuses("run cp --rank 0", 2, "invalid value '0' for '--rank <R>': it must be at least 1");
    refuses(
        "run tucker --tolerance 2",
        2,
        "invalid value '2' for '--tolerance <T>': it must be a number between 0 and 1",
    );
    refuses(
        "run tucker --size 4,4,4 --ranks 1,1,2",
        2,
        "--ranks: rank 3 is 2, but can be 1 at most: neither more than the tensor's extent, 4, nor than the product of the others, 1\n",
    );
}
