//! `maniple tensor` with several statements, types and outputs by name, and schedules in text.

use std::path::Path;
use std::process::{Command, Stdio};

/// The exit code, and what is printed on standard output and standard error.
fn run(statement: &str, options: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(["tensor", statement]).args(options).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    let output = command.current_dir(env!("CARGO_TARGET_TMPDIR")).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[track_caller]
fn computes(statement: &str, options: &[&str]) -> String {
    let common = ["--workers", "2", "--repeat", "1"];
    let (code, out, error) = run(statement, &[&common, options].concat());
    assert_eq!((code, error.as_str()), (Some(0), ""), "{statement} {options:?}\n{out}");
    out
}

#[track_caller]
fn refuses(statement: &str, options: &[&str], message: &str) {
    assert_eq!(run(statement, options), (Some(2), String::new(), format!("error: {message}\n")));
}

fn value<'a>(report: &'a str, name: &str) -> &'a str {
    let line = report.lines().find_map(|line| line.trim_start().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line '{name}' in\n{report}")).trim()
}

#[test]
fn programs_are_compared_with_what_their_statements_say() {
    for (statement, sizes) in [
        ("T(i,k) = B(i,j) * C(j,k); A(i,l) = T(i,k) * D(k,l)", "i=20,j=30,k=25,l=10"),
        ("T(i,k) = B(i,j) * C(j,k)\na = T(i,k); b(i) -= T(i,k) * 2", "i=20,j=30,k=25"),
        ("A(i,j) = D(i,j); A(i,j) += B(i,k) * C(k,j)", "i=20,j=30,k=25"),
        ("A(i,j) = B(i,k) * C(k,j) + D(i,j) - 3", "i=20,j=30,k=25"),
        ("A(i,l) = 2 * B(i,j) * C(j,k) * D(k,l)", "i=20,j=30,k=25,l=10"),
        ("y(i) max= reduce(max, j, A(i,j)); z(i) = y(i) * y(i)", "i=20,j=30"),
        ("y(i) *= A(i,j)", "i=20,j=30"),
    ] {
        for element in ["i64", "f64"] {
            let report = computes(statement, &["--size", sizes, "--type", element, "--verify"]);
            let verified = value(&report, "verified");
            assert!(verified.contains("all equal") || verified.contains("of what rounding can do"), "{report}");
        }
    }
}

#[test]
fn what_is_assigned_again_after_it_was_used_is_not_compared() {
    refuses(
        "a(i) = b(i); c(i) = a(i); a(i) = 2",
        &["--verify"],
        "--verify: a is assigned several times, and used between; give what it holds each time a name of its own",
    );
}

#[test]
fn tensors_have_types_by_name_and_several_results_are_written() {
    let file = |name: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).display().to_string();
    let (sums, total, again) = (file("sums.npy"), file("total.npy"), file("again.npy"));
    let statement = "s(i) = B(i,j); t = f64(s(i)) * 2";
    let types = ["--type", "f64,B=f32,s=f32", "--size", "i=5,j=4", "--verify"];
    let outputs = ["--output", &format!("s={sums}"), "--output", &total];
    let report = computes(statement, &[&types[..], &outputs[..]].concat());
    assert_eq!(value(&report, "elements"), "s: f32, B: f32, t: f64");
    let again_output = format!("a={again}");
    computes("a(i) = b(i)", &["--input", &format!("b={sums}"), "--output", &again_output]);
    assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&sums).unwrap());
    let shape = |file: &str| String::from_utf8_lossy(&std::fs::read(file).unwrap()[..80]).into_owned();
    assert!(shape(&total).contains("'<f8'") && shape(&total).contains("()"), "{}", shape(&total));
    assert!(shape(&sums).contains("'<f4'") && shape(&sums).contains("(5,)"), "{}", shape(&sums));
    refuses("a(i) = b(i)", &["--output", "b=b.npy"], "--output b: the results are a");
    refuses("a(i) = b(i)", &["--type", "c=f32"], "--type c: the statement has a, b");
    let (code, _, error) = run("a(i) = b(i)", &["--type", "f16"]);
    assert!(code == Some(2) && error.contains("'f16' is no type: there are bool, u8, i8, u16, i16, u32"), "{error}");
}

#[test]
fn schedules_and_placements_are_given_as_text() {
    let product = "A(i,j) = B(i,k) * C(k,j)";
    let summa = "distribute({i, j}, {io, jo}, {ii, ji}, {2, 2}); split(k, ko, ki, 10); reorder({ko, ii, ji, ki}); \
                 communicate(A, jo); communicate({B, C}, ko); substitute({ii, ji, ki}, Gemm)";
    let sizes = ["--size", "i=20,j=30,k=25", "--type", "i64", "--verify"];
    let report = computes(product, &[&sizes[..], &["--schedule", summa]].concat());
    assert_eq!((value(&report, "algorithm"), value(&report, "grid")), ("the given schedule", "2x2"));
    // From a file, with lines and comments; and the same program says how it runs.
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("summa.txt");
    std::fs::write(&file, summa.replace("; ", "\n") + "\n# that is all").unwrap();
    let argument = format!("@{}", file.display());
    let explained = computes(product, &["--schedule", &argument, "--explain", "--place", "B=xy -> x*"]);
    assert!(
        explained.contains("for ko in 0..100, communicates B, C") && explained.contains("B: xy -> x*"),
        "{explained}"
    );
    // The second of two statements.
    let two = "T(i,j) = B(i,j) + 1; A(i,j) = 2 * T(j,i)";
    let size = ["--size", "i=20,j=20", "--type", "i64", "--verify", "--schedule"];
    let report = computes(two, &[&size[..], &["2: distribute(i, io, ii, 3); parallelize(j, vector)"]].concat());
    assert!(value(&report, "algorithm").ends_with("; the given schedule"), "{report}");
    assert_eq!(value(&report, "grid"), "3");
}

#[test]
fn mistakes_in_schedules_are_told_with_line_and_column() {
    let statement = "A(i,j) = B(i,j)";
    refuses(
        statement,
        &["--schedule", "split(i, io, ii, 4);\n  unroll(ii, x)"],
        "--schedule: line 2, column 14: expected a number, found `x`",
    );
    refuses(
        statement,
        &["--schedule", "1: unroll(i, x)"],
        "--schedule: line 1, column 14: expected a number, found `x`",
    );
    refuses(
        statement,
        &["--schedule", "2: unroll(i, 2)"],
        "--schedule 2: the program has 1 statement, numbered from 1",
    );
    refuses(
        statement,
        &["--schedule", "unroll(k, 2)"],
        "--schedule: unroll(k, 2): there is no loop over k; there are loops over i, j",
    );
    refuses(statement, &["--place", "C=xy->x"], "--place C=xy -> x: the statement has A, B");
}

#[test]
fn statements_come_from_files() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program.txt");
    std::fs::write(&file, "T(i,k) = B(i,j)\n  * C(j,k)\na = T(i,i)\n").unwrap();
    let report = computes(&format!("@{}", file.display()), &["--size", "i=9,j=8,k=9", "--verify"]);
    assert_eq!(value(&report, "statement"), "T(i,k) = reduce(+, j, B(i,j) * C(j,k)); a = reduce(+, i, T(i,i))");
}

#[test]
fn any_grid_of_no_more_dimensions_than_loops_runs() {
    for grid in ["1x5", "7", "2x1x3", "5x1"] {
        let options = ["--size", "i=9,j=8,k=7", "--type", "i64", "--verify", "--grid", grid];
        let report = computes("A(i,j) = B(i,k) * C(k,j)", &options);
        assert_eq!(value(&report, "grid"), grid);
        if grid != "2x1x3" {
            computes("A(i,j) = B(j,i)", &[&["--size", "i=9,j=8"], &options[2..]].concat());
        }
    }
}
