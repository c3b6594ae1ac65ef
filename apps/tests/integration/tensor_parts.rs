//! Parts and shifts of dimensions, in all places of a statement; and files that do not tell their extents.

use std::path::Path;
use std::process::{Command, Stdio};

/// The exit code, and what is printed on standard output and standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.arg("tensor").args(arguments).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    let output = command.current_dir(env!("CARGO_TARGET_TMPDIR")).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[track_caller]
fn verifies(arguments: &[&str]) -> String {
    let arguments = [arguments, &["--workers", "2", "--repeat", "1", "--verify"]].concat();
    let (code, out, error) = run(&arguments);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{arguments:?}\n{out}");
    out
}

#[track_caller]
fn refuses(arguments: &[&str], told: &str) {
    let (code, out, error) = run(arguments);
    assert!(matches!(code, Some(1 | 2)) && out.is_empty(), "{arguments:?}: {code:?}\n{out}{error}");
    assert!(error.starts_with("error: ") && error.contains(told), "{arguments:?}\nexpected: {told}\nfound: {error}");
}

fn write(name: &str, text: &str) -> String {
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), text).expect("the folder can be written");
    name.to_owned()
}

#[test]
fn parts_and_shifts_are_computed_wherever_they_are() {
    for (statement, size) in [
        ("s = a(i(0,4)) * b(i)", ""),
        ("y(i) = A(i,j(0,2)) * z(j)", "i=5"),
        ("C(i,k) = A(i+1,j) * A(j,k)", "i=6,j=6,k=6"),
        ("D(i,l) = A(i(0,2),j) * B(j,k) * C(k,l)", "j=30,k=40,l=50"),
        ("s = a(i+1) * b(i)", "i=4"),
        ("y(i) = reduce(max, k, E(i,k+1) * 2)", "i=4,k=5"),
        ("y(i) = A(i(0,4)) + A(i(4,8))", ""),
        ("y(i) = A(i(4,8)) - A(i(0,8,2)) * A(i+1)", ""),
        ("s = a(i-1) * a(i+1); y(j) = a(j(0,3)) * s", "i=9"),
    ] {
        let size: &[&str] = if size.is_empty() { &[] } else { &["--size", size] };
        verifies(&[&[statement], size].concat());
        verifies(&[&[statement, "--algorithm", "none"], size].concat());
        let (code, out, error) = run(&[&[statement, "--explain"], size].concat());
        assert!(code == Some(0) && !out.is_empty(), "{statement}: {error}");
    }
    // Sparse operands too.
    for (statement, size) in [
        ("y(i) = A(i,j(0,2)) * z(j)", "i=5"),
        ("C(i,k) = A(i+1,j) * A(j,k)", "i=6,j=6,k=6"),
        ("C(i,k) = A(i(0,3),j) * A(i(3,6),k)", "j=5,k=5"),
    ] {
        verifies(&[statement, "--size", size, "--generate", "A=uniform:0.5", "-f", "A=csr"]);
    }
}

#[test]
fn what_is_no_index_and_no_function_is_told() {
    for (statement, told) in [
        ("y(i) = A(i,j) * A(i)", "A has another number of dimensions in A(i,j) than in A(i)"),
        ("y(i) = x(i*2)", "there is no function x"),
        ("y(i) = x(i(0,3,-1))", "with a step of at least 1, found '-'"),
        ("s = x(2)", "shifts by whole numbers such as i+1 and i-1, and parts such as i(0,8) and i(0,8,2)"),
        ("y(i) = a(i(0,4)) + a(i(0,5))", "index variable i has extent 4 in y(i), and 5 in a(i(0,5))"),
    ] {
        refuses(&[statement], told);
    }
}

#[test]
fn a_workspace_may_be_a_part_of_what_is_precomputed_next() {
    let sum = ["A(i) = B(i) + C(i) + D(i)", "--size", "i=9"];
    for schedule in [
        "precompute(B(i) + C(i), {i}, {iw}, w); precompute(w(i) + D(i), {i}, {ix}, t)",
        "precompute(B(i) + C(i), {i}, {iw}, w); precompute(w(i) + D(i), {i}, {ix}, t); unroll(ix, 2); unroll(i, 3)",
    ] {
        verifies(&[&sum[..], &["--schedule", schedule]].concat());
        verifies(&[&sum[..], &["--schedule", schedule, "--generate", "B=uniform:0.5", "-f", "B={C}"]].concat());
    }
    refuses(&[&sum[..], &["--schedule", "precompute(w(i), {i}, {iw}, v)"]].concat(), "no tensor is called w");
    refuses(
        &[&sum[..], &["--schedule", "-1: unroll(i, 2)"]].concat(),
        "--schedule -1: the program has 1 statement, numbered from 1",
    );
    refuses(&[&sum[..], &["--schedule", "parallelize(i, threads); parallelize(i, threads)"]].concat(), "say so once");
    refuses(&[&sum[..], &["--grid", "-2"]].concat(), "expected extents of at least 1");
}

#[test]
fn extents_of_files_that_tell_none_are_said_by_size_or_other_operands() {
    let file = write("extents.tns", "1 1 2\n2 2 4\n");
    let input = ["-i", &format!("A={file}")[..], "-f", "A=csr"].map(str::to_owned);
    let input: Vec<&str> = input.iter().map(String::as_str).collect();
    let of = |statement: &'static str, more: &[&'static str]| {
        let mut all = vec![statement];
        all.extend(&input);
        all.extend(more);
        all.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let verified = |arguments: Vec<String>| verifies(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(verified(of("y(i) = A(i,j) * x(j)", &[])).contains("i=2, j=2"));
    assert!(verified(of("y(i) = A(i,j) * x(j)", &["--size", "j=10"])).contains("i=2, j=10"));
    write("vector.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n");
    assert!(verified(of("y(i) = A(i,j) * x(j)", &["-i", "x=vector.mtx"])).contains("i=2, j=3"));
    assert!(verified(of("C(i,k) = A(i,j) * A(j,k)", &["--size", "i=5"])).contains("i=5, j=5, k=5"));
    assert!(verified(of("y(i) = A(i,j(0,4)) * x(j)", &[])).contains("i=2, j=4"));
    let arguments = of("y(i) = A(i,j) * x(j)", &["--size", "j=1"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    refuses(&arguments, "index variable j has 1 values by --size, and A(i,j) in its file has 2 coordinates");
}

/// A matrix with empty rows at its end, or without entries, is read again beside a matrix whose extents fit it.
#[test]
fn what_is_written_as_lines_is_read_again() {
    write("last.mtx", "%%MatrixMarket matrix coordinate real general\n5 4 2\n1 1 2\n2 3 4\n");
    write("none.mtx", "%%MatrixMarket matrix coordinate real general\n5 4 0\n");
    for name in ["last", "none"] {
        let (matrix, lines) = (format!("A={name}.mtx"), format!("{name}.tns"));
        let (code, _, error) = run(&["B(i,j) = A(i,j) * 2", "-i", &matrix, "-f", "A=csr", "-f", "B=csr", "-o", &lines]);
        assert_eq!(code, Some(0), "{error}");
        let again = format!("B={lines}");
        let out = verifies(&["C(i,j) = A(i,j) + B(i,j)", "-i", &matrix, "-i", &again, "-f", "A=csr", "-f", "B=csr"]);
        assert!(out.contains("i=5, j=4"), "{out}");
        verifies(&["y(i) = B(i,j) * x(j)", "-i", &again, "-f", "B=csr", "--size", "i=5,j=4"]);
        let (code, out, error) = run(&["info", &lines]);
        assert!(code == Some(0) && out.contains("entries"), "{out}{error}");
        let (code, out, error) = run(&["convert", &lines, "again.npz", "--extents", "5,4"]);
        assert!(code == Some(0) && out.contains("5 x 4"), "{out}{error}");
        let (code, out, error) = run(&["convert", &lines, "again.tcs", "--extents", "5,4"]);
        assert!(code == Some(0) && out.contains("5 x 4"), "{out}{error}");
    }
    refuses(&["convert", "none.tns", "again.npz"], "say them, as with --extents 100,200");
    refuses(
        &["convert", "last.tns", "again.npz", "--extents", "5,2"],
        "there are 3 coordinates in dimension 1, and --extents gives 2",
    );
    refuses(&["convert", "last.mtx", "again.npz", "--extents", "5,4"], "--extents: last.mtx tells its extents itself");
}

#[test]
fn messages_say_what_to_write() {
    write("zero.tns", "0 1 2\n");
    write("comment.tns", "1 1 1.0 # c\n");
    write("huge.tns", "18446744073709551615 2\n");
    write("four.tns", "1 2 3 4 5.0\n");
    let (code, _, error) = run(&["convert", "last_or_new.npz", "x.npz"]);
    assert!(code == Some(1) && error.contains("last_or_new.npz"), "{error}");
    write("matrix.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 2\n");
    let (code, _, error) = run(&["convert", "matrix.mtx", "matrix.npz"]);
    assert_eq!(code, Some(0), "{error}");
    for (arguments, told) in [
        (&["s = A(i,j)", "-i", "A=matrix.npz"][..], "say how to store it, such as --format A=csr"),
        (&["s = A(i,j,k,l)", "-i", "A=four.tns"], "say how to store it, such as --format A=csf:4"),
        (&["s = A(i,j,k,l)", "-i", "A=four.tns", "-f", "A=coo"], "is for 2 dimensions, and A has 4: take coo:4"),
        (&["s = A(i,j)", "-i", "A=zero.tns", "-f", "A=csr"], "coordinate 0 is below 1, where coordinates begin"),
        (
            &["s = A(i,j)", "-i", "A=comment.tns", "-f", "A=csr"],
            "has text after the value: comments have lines of their own",
        ),
        (&["s = A(i)", "-i", "A=huge.tns", "-f", "A={C}"], "coordinate 18446744073709551615 is too large"),
        (&["s = A(i,j)", "-f", "A={C", "C}"], "unexpected 'C}' after the statement"),
        (&["y(i) = a(i)", "--draw", "y.png"], "its name must end in .svg"),
        (&["a(i,j,k,l,m) = b(i,j,k,l,m)", "--size", "i=2,j=2,k=2,l=2,m=2"], "dense tensors have at most 4"),
    ] {
        refuses(arguments, told);
    }
    let divided = ["q(i) = a(i) / (a(i) - a(i))", "--type", "i32", "--size", "i=3"];
    let (code, _, error) = run(&divided);
    assert_eq!(code, Some(1));
    assert!(
        error.contains("divides an integer by zero") && error.contains("q(i) = ") && !error.contains(".rs"),
        "{error}"
    );
}

#[test]
fn files_that_cannot_be_written_are_refused_before_anything_is_computed() {
    write("a_file", "");
    // What is computed fails, which is not said if nothing is computed.
    let line = ["q(i) = a(i) / (a(i) - a(i))", "--type", "i32", "--size", "i=3"];
    for (option, file) in
        [("-o", "a_file/q.npy"), ("-o", "none/q.npy"), ("--draw", "none/q.svg"), ("--graph", "none/g.svg")]
    {
        let (code, out, error) = run(&[&line[..], &[option, file]].concat());
        assert!(matches!(code, Some(1 | 2)) && out.is_empty(), "{out}{error}");
        assert!(error.contains("folder") || error.contains("directory"), "{option} {file}: {error}");
    }
    let sparse = ["q(i) = a(i) / (a(i) - a(i))", "--type", "i32", "--size", "i=3", "-f", "a={C}"];
    let (_, _, error) = run(&[&sparse[..], &["-o", "none/q.mtx"]].concat());
    assert_eq!(error, "error: cannot write `none/q.mtx`: there is no folder `none`\n");
}
