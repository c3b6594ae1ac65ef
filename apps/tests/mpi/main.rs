//! The simulations as ranks of `mpirun`: the same answers as one process.
//!
//! Without `mpirun` nothing is tested, and the output says so; with `MANIPLE_NEEDS_MPI` that is a failure.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

use std::process::{Command, Output};

const MANIPLE: &str = env!("CARGO_BIN_EXE_maniple");

/// Runs `maniple` as so many ranks.
fn ranks(ranks: usize, arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-n", &ranks.to_string(), MANIPLE]).args(arguments);
    // Containers have one user.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            assert!(std::env::var_os("MANIPLE_NEEDS_MPI").is_none(), "mpirun: {error}");
            eprintln!("\nNOT TESTED: there is no mpirun: {error}\n");
            None
        }
    }
}

/// The lines of a report that do not tell of time.
fn timeless(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let tells_time = |line: &&str| ["time", "/s", "Elapsed"].iter().any(|word| line.contains(word));
    text.lines().filter(|line| !tells_time(line)).map(str::to_owned).collect()
}

/// The same report, printed once, from one process and from two and four ranks.
fn agree(arguments: &[&str]) {
    let alone = Command::new(MANIPLE).arg("run").args(arguments).output().unwrap();
    let expected = timeless(&alone);
    assert!(expected.len() > 3, "{expected:?}");
    for count in [2, 4] {
        let Some(output) = ranks(count, &[&["run"][..], arguments].concat()) else { return };
        assert_eq!(timeless(&output), expected, "{arguments:?} on {count} ranks");
    }
}

#[test]
fn simulations_are_the_same_on_one_process_and_on_two_and_four_ranks() {
    agree(&["stencil", "--size", "60", "--tiles", "4x2", "--steps", "7"]);
    for pattern in ["stencil_1d", "fft", "all_to_all"] {
        agree(&[
            "taskbench",
            "-width",
            "8",
            "-steps",
            "30",
            "-type",
            pattern,
            "-kernel",
            "compute_bound",
            "-iter",
            "4",
        ]);
    }
    for count in [2, 4] {
        let circuit = ["run", "circuit", "--pieces", "8", "--steps", "10", "--nodes-per-piece", "50"];
        let Some(output) = ranks(count, &circuit) else { return };
        let report = timeless(&output).join("\n");
        assert!(
            report.contains("tasks run               240") && report.contains("(at most 1e-9 is right)"),
            "{report}"
        );
        let Some(output) = ranks(count, &["run", "cg", "--poisson", "30", "--pieces", "8"]) else { return };
        assert!(timeless(&output).join("\n").contains("iterations"), "{output:?}");
    }
}

#[test]
fn information_shows_all_ranks_once() {
    let Some(output) = ranks(3, &["info", "--workers", "1", "--memory", "1GiB"]) else { return };
    let shown = timeless(&output).join("\n");
    assert!(shown.starts_with("3 nodes, started by Open MPI's mpirun, talk over MPI\n"), "{shown}");
    assert_eq!(shown.lines().count(), 6, "{shown}");
}
