//! Statements that run block by block: `--split`, `--order`, `--extend` and `--map`.

use std::process::{Command, Stdio};

fn run(nodes: usize, options: &[&str]) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_maniple");
    let mut command = Command::new(program);
    if nodes > 1 {
        command.args(["launch", "-n", &nodes.to_string(), "--", program]);
    }
    command.arg("tensor").args(options).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    let output = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The sizes, generators and formats of a product with a vector, and of one of a tensor with a matrix.
const PRODUCTS: [&[&str]; 2] = [
    &["a(i) = B(i,j) * c(j)", "--size", "i=31,j=23", "--generate", "B=uniform:0.2", "-f", "B:ds"],
    &["A(i,j,k) = B(i,j,l) * C(k,l)", "--size", "i=9,j=7,k=4,l=6", "--generate", "B=uniform:0.2", "-f", "B:sss"],
];

#[test]
fn blocks_give_what_the_statement_means_in_any_order_and_on_any_nodes() {
    for (product, options) in [
        (0, &["--split", "i=8"][..]),
        (0, &["--split", "i=4", "--split", "j=3", "--order", "j,i"]),
        (0, &["--split", "i=2", "--split", "j=3", "--order", "j,i", "--extend", "j"]),
        (0, &["--split", "i=3", "--split", "j=2", "--map", "i,j"]),
        // Ranges of different lengths, and some without values.
        (0, &["--split", "i=0,5,5,31", "--split", "j=20", "--map", "i"]),
        (1, &["--split", "i=3", "--split", "l=2", "--order", "l,i,j,k"]),
        (1, &["--split", "i=2", "--split", "k=2", "--split", "j=3", "--map", "i"]),
        (1, &["--split", "j=2", "--split", "l=3", "--extend", "l"]),
    ] {
        for nodes in [1, 2] {
            let workers: &[&str] = if nodes > 1 { &["--workers", "1"] } else { &[] };
            let all = [PRODUCTS[product], options, &["--verify", "--repeat", "1"], workers].concat();
            let (code, out, error) = run(nodes, &all);
            assert!(code == Some(0) && out.contains("within rounding"), "{all:?} on {nodes}\n{out}\n{error}");
        }
    }
}

#[test]
fn blocks_become_commands_that_are_shown() {
    let split = ["--split", "i=4", "--split", "j=3", "--order", "j,i", "--explain"];
    let (code, out, error) = run(1, &[PRODUCTS[0], &split].concat());
    assert!(code == Some(0) && out.contains("i_block") && out.contains("tasks:"), "{out}\n{error}");
    let launches = "for j_block in 0..3\n  launch a over 4 points";
    assert!(out.contains(launches), "{out}");
    // A vector that is not split makes no kernel wait for another, whatever the order.
    for order in ["i,j", "j,i"] {
        let (code, out, error) = run(1, &[PRODUCTS[0], &["--split", "i=4", "--order", order, "--explain"]].concat());
        assert!(code == Some(0) && out.contains("c.0 = c in one piece\nlaunch a over 4 points"), "{out}\n{error}");
    }
    // One range is none.
    let (code, out, _) = run(1, &[PRODUCTS[0], &["--split", "i=1", "--explain"]].concat());
    assert!(code == Some(0) && !out.contains("i_block"), "{out}");
}

#[test]
fn blocks_that_do_not_fit_are_refused() {
    for (options, expected) in [
        (&["--split", "i=2", "--order", "i"][..], "must name each of i, j once"),
        (&["--split", "i=2", "--order", "i,k"], "--order k: the index variables of the statement are i, j"),
        (&["--split", "i=2", "--order", "i,i"], "a variable is there twice"),
        (&["--split", "j=2", "--extend", "i"], "i is a variable of the result"),
        (&["--split", "j=2", "--extend", "q"], "--extend q: the index variables of the statement are i, j"),
        (&["--split", "i=9,4"], "points must not decrease"),
        (&["--split", "i=9,400"], "400 is beyond the extent 31 of i"),
        (&["--split", "i=2", "--split", "i=3"], "says twice"),
        (&["--split", "q=2"], "--split q"),
        (&["--split", "i"], "it must be NAME=N"),
        (&["--split", "i=2", "--grid", "2"], "leave --schedule, --grid and --algorithm out"),
    ] {
        let (code, _, error) = run(1, &[PRODUCTS[0], options].concat());
        assert!(code == Some(2) && error.contains(expected), "{options:?}: {code:?} {error}");
    }
    let (code, _, error) = run(2, &[PRODUCTS[0], &["--split", "j=2", "--map", "i"]].concat());
    assert_eq!(code, Some(0), "{error}");
    let sum = ["a(i) = d(i) + B(i,j) * c(j)", "--size", "i=9,j=8", "-f", "B:ds", "--split", "j=2"];
    let (code, _, error) = run(1, &sum);
    assert!(code == Some(2) && error.contains("--split j"), "{code:?} {error}");
    let (code, _, error) = run(1, &["a(i) = B(i,j) * c(j)", "-f", "B:ds:2,0", "--split", "i=2"]);
    assert!(code == Some(2) && error.contains("ds:2,0"), "{code:?} {error}");
}
