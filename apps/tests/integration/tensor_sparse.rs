//! `maniple tensor` with sparse tensors.

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
fn verifies(statement: &str, options: &[&str]) -> String {
    let common = ["--workers", "2", "--repeat", "1", "--verify"];
    let (code, out, error) = run(statement, &[&common, options].concat());
    assert_eq!((code, error.as_str()), (Some(0), ""), "{statement} {options:?}\n{out}");
    assert!(out.contains("within rounding"), "{out}");
    out
}

fn write(name: &str, text: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the folder can be written");
    path.display().to_string()
}

#[test]
fn kernels_of_sparse_tensors_are_what_their_statements_say() {
    let generate = ["--generate", "A=uniform:0.1"];
    for (statement, formats, size) in [
        ("y(i) = A(i,j) * x(j)", &["A=csr"][..], "i=60,j=50"),
        ("y(i) = A(i,j) * x(j)", &["A=csc"], "i=60,j=50"),
        ("y(i) = A(j,i) * x(j)", &["A=coo"], "i=60,j=50"),
        ("Y(i,j) = A(i,k) * X(k,j)", &["A=csr"], "i=40,j=8,k=30"),
        ("C(i,j) = A(i,k) * A(k,j)", &["A=csr", "C=csr"], "i=40,j=40,k=40"),
        ("C(i,j) = A(i,j) + B(i,j) + D(i,j)", &["A=csr", "B=csr", "C=csr", "D=dcsr"], "i=40,j=30"),
        ("C(i,j) = A(i,j) * P(i,k) * Q(k,j)", &["A=csr", "C=csr"], "i=40,j=30,k=16"),
        ("M(i,j) = A(i,k,l) * P(k,j) * Q(l,j)", &["A=csf:3"], "i=20,j=8,k=10,l=12"),
        ("C(i,j) = A(i,j) + A(j,i)", &["A=csr", "C=csr"], "i=30,j=30"),
        ("t = A(i,j) * A(i,k) * A(k,j)", &["A=csr"], "i=30,j=30,k=30"),
        ("C(i,j) = A(i,j) ? P(i,k) * Q(k,j)", &["A=csr", "C=csr"], "i=40,j=30,k=16"),
        ("C(i,j) = A(i,j) ? A(i,k) * A(k,j)", &["A=csr", "C=csr"], "i=30,j=30,k=30"),
        ("C(i,j) = reduce(or, k, A(i,k) and A(k,j))", &["A=csr", "C=csr"], "i=30,j=30,k=30"),
        ("y(i) = reduce(any, j, not isfill(A(i,j)) and x(j) > 0)", &["A=csr"], "i=40,j=30"),
        ("C(i,j) = A(i+1,j) - A(i,j-1)", &["A=csr", "C=csr"], "i=30,j=20"),
        ("C(i,j) = A(i,j) * B(i(3,23),j(0,40,2))", &["A=csr", "B=dcsr", "C=csr"], ""),
        ("C(i,j) -= A(i,j) * B(i,j)", &["A=csr", "B=csr"], "i=30,j=20"),
        ("C(i,j) = A(i,j) * 2; y(i) = C(i,j) * x(j)", &["A=bcsr:2x3", "C=csr"], "i=30,j=20"),
    ] {
        let formats: Vec<&str> = formats.iter().flat_map(|format| ["--format", format]).collect();
        let size: &[&str] = if size.is_empty() { &[] } else { &["--size", size] };
        verifies(statement, &[&generate[..], &formats, size].concat());
    }
}

#[test]
fn sparse_matrices_and_tensors_come_from_files_and_go_to_files() {
    let matrix = "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n3 3 4\n1 1 2\n2 1 -1\n2 2 2\n3 3 5.5\n";
    let matrix = write("sparse-in.mtx", matrix);
    let report = verifies(
        "C(i,j) = A(i,j) * 2",
        &["--input", &format!("A={matrix}"), "--format", "A=csr", "--format", "C=csc", "--output", "sparse-out.mtx"],
    );
    assert!(report.contains("A as {D,C}(0,1) with 5 elements"), "{report}");
    let written =
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("sparse-out.mtx")).unwrap();
    let lines: Vec<&str> = written.lines().filter(|line| !line.starts_with('%')).collect();
    assert_eq!(lines, ["3 3 5", "1 1 4.0", "1 2 -2.0", "2 1 -2.0", "2 2 4.0", "3 3 11.0"]);
    let tensor = write("sparse-in.tns", "1 1 2 1.5\n2 3 1 -2\n");
    verifies(
        "y(i) = B(i,j,k) * c(k)",
        &["--input", &format!("B={tensor}"), "--format", "B=csf:3", "--output", "sparse-out.tns"],
    );
}

#[test]
fn what_operations_mean_is_verified_in_all_formats() {
    let a = write("means-a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 2 2\n2 1 4\n2 2 nan\n");
    let b = write("means-b.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n2 2 2\n");
    let inputs = [format!("A={a}"), format!("B={b}")];
    for format in ["csr", "csc", "coo", "bitmap", "ell", "dia", "hash", "{D,L}", "bcsr:2x2", "{C,D}"] {
        let formats = [format!("A={format}"), format!("B={format}")];
        let options = ["--input", &inputs[0], "--input", &inputs[1], "--format", &formats[0], "--format", &formats[1]];
        for statement in [
            "C(i,j) = A(i,j) / B(i,j)",
            "y(i) = A(i,j) / B(i,j)",
            "C(i,j) = mod(A(i,j), B(i,j))",
            "C(i,j) = A(i,k) * B(k,j)",
            "C(i,j) = B(i,k) * A(k,j)",
        ] {
            verifies(statement, &options);
        }
    }
    let options =
        ["--input", &inputs[0], "--format", "A=csr", "--input", &inputs[1], "--format", "B=rows", "--format", "C=csr"];
    let (code, _, error) = run("C(i,j) = A(i,j) / B(i,j)", &options);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("B[0, 0] is 0, and zero divided by that is not zero"), "{error}");
}

#[test]
fn fill_values_are_said_on_the_command_line_and_by_files() {
    let roads = write("fill-in.mtx", "%%MatrixMarket matrix coordinate real general\n9 9 3\n1 2 2\n2 1 4\n9 2 1\n");
    let roads = ["--input", &format!("A={roads}"), "--format", "A=csr"];
    verifies("d(j) = reduce(min, i, A(i,j) + e(i))", &[&roads[..], &["--fill", "A=inf"]].concat());
    let report = verifies(
        "E(i,j) = A(i,j) + 1",
        &[&roads[..], &["--format", "E=csr", "--fill", "E=1", "--output", "fill-out.npz"]].concat(),
    );
    assert!(report.contains("E as {D,C}(0,1) with 3 elements"), "{report}");
    let again = ["--input", "E=fill-out.npz", "--format", "E=csr", "--format", "B=csr", "--fill", "B=2"];
    let report = verifies("B(i,j) = E(i,j) * 2", &again);
    assert!(report.contains("B as {D,C}(0,1) with 3 elements"), "{report}");
    let report =
        verifies("B(i,j) = A(i,j) / A(i,j)", &[&roads[..], &["--format", "B=csr", "--fill", "B=nan"]].concat());
    assert!(report.contains("B as {D,C}(0,1) with 3 elements"), "{report}");
    for (options, message) in [
        (&["--fill", "Z=1"][..], "--fill Z=1: the statement has y, A, x"),
        (&["--fill", "A=x"], "'x' is no number"),
        (&["--fill", "A=1", "--fill", "A=1"], "says twice"),
        (&["--fill", "y=1"], "it is dense"),
        (&["--fill", "A=1", "--grid", "2"], "tasks compute with tensors filled with 0"),
    ] {
        let (code, _, error) = run("y(i) = A(i,j) * x(j)", &[&roads[..], options].concat());
        assert!(code == Some(2) && error.contains(message), "{error}");
    }
}

#[test]
fn what_sparse_tensors_cannot_do_yet_is_refused_with_what_helps() {
    let spmv = "y(i) = A(i,j) * x(j)";
    let refused = |options: &[&str]| {
        let (code, out, error) = run(spmv, options);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{error}");
        error
    };
    let error = refused(&["--format", "A=csr", "--chunk", "2"]);
    assert_eq!(error, "error: --chunk is for dense tensors: leave it out, or give all tensors dense formats\n");
    let error = refused(&["--format", "A=csr", "--place", "A=xy -> x"]);
    assert!(error.contains("no loop is distributed: distribute a loop in each --schedule"), "{error}");
    let error = refused(&["--format", "A=csr", "--output", "y=a.tns", "--output", "a.npz"]);
    assert!(error.contains("--output says twice where y goes"), "{error}");
    let error = refused(&["--format", "A=csr", "--grid", "2", "--place", "A=xy -> x", "--place", "A=xy -> ~y"]);
    assert!(error.contains("--place says twice where A lies"), "{error}");
    let error = refused(&["--format", "A=csr", "--grid", "2", "--place", "B=xy -> x"]);
    assert!(error.contains("--place B: the tensors that are given are A, x"), "{error}");
    let error = refused(&["--format", "A=csr", "--place", "A=xy -> ~"]);
    assert!(error.contains("expected a dimension of the tensor after `~`"), "{error}");
    let error = refused(&["--format", "A=csf:3"]);
    assert_eq!(error, "error: --format A={C,C,C}(0,1,2) is for 3 dimensions, and A has 2\n");
    let error = refused(&["--generate", "A=poisson:3", "--size", "i=4"]);
    assert!(error.starts_with("error: index variable i has 4 values by --size, and 9 by"), "{error}");
    assert!(refused(&["--format", "Z=csr"]).contains("--format Z: the statement has y, A, x"));
    assert!(refused(&["--format", "A=csr", "--type", "A=f32"]).contains("give --type f32 for all"));
    let broken = write("sparse-broken.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 2\n4 1 1\n");
    let (code, _, error) = run(spmv, &["--format", "A=csr", "--input", &format!("A={broken}")]);
    assert!(code == Some(1) && error.contains("sparse-broken.mtx:4:"), "{code:?} {error}");
}

#[test]
fn loops_over_sparse_tensors_are_explained() {
    let (code, out, error) = run("C(i,j) = A(i,j) + A(j,i)", &["--format", "A=csr", "--format", "C=csr", "--explain"]);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(out.contains("A is converted to {D,C}(1,0)") && out.contains("while"), "{out}");
}

#[test]
fn sparse_tensors_have_the_type_that_is_asked_for() {
    for element in ["i32", "i64", "f32", "f64", "c32", "c64"] {
        let options =
            ["--generate", "A=uniform:0.2", "--format", "A=csr", "--format", "C=csr", "--size", "i=20,j=20,k=20"];
        verifies("C(i,j) = A(i,k) * A(k,j) + 2 * A(i,j)", &[&options[..], &["--type", element]].concat());
    }
    let matrix = write("sparse-halves.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 0.5\n");
    let input = format!("A={matrix}");
    let (code, _, error) = run("y(i) = A(i,j)", &["--input", &input, "--format", "A=csr", "--type", "i32"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("sparse-halves.mtx:3: '0.5' is not a whole number"), "{error}");
}

#[test]
fn schedules_change_the_loops_of_sparse_statements() {
    let options = ["--generate", "A=uniform:0.2", "--format", "A=csr", "--size", "i=30,j=40"];
    let schedule = ["--schedule", "split(i, io, ii, 7); parallelize(io, threads); divide(j, jo, ji, 3)"];
    verifies("y(i) = A(i,j) * x(j)", &[&options[..], &schedule].concat());
    let (code, out, _) = run("y(i) = A(i,j) * x(j)", &[&options[..], &schedule, &["--explain"]].concat());
    assert_eq!(code, Some(0));
    assert!(out.contains("threads for io in 0..5") && out.contains("A1_crd"), "{out}");
    let schedule = "fuse(i, j, f); pos(f, p, A); divide(p, po, pi, 5); parallelize(po, threads, reduced)";
    verifies("y(i) = A(i,j) * x(j)", &[&options[..], &["--schedule", schedule]].concat());
    let (code, _, error) =
        run("y(i) = A(i,j) * x(j)", &[&options[..], &["--schedule", "split(q, qo, qi, 7)"]].concat());
    assert_eq!(code, Some(2));
    assert!(error.contains("there is no loop over q"), "{error}");
    for statement in ["C(i,j) = select(A(i,j) < B(i,j), 2 * B(i,j), A(i,j))", "y(i) = reduce(max, j, A(i,j) * x(j))"] {
        verifies(statement, &options);
    }
}

#[test]
fn distributed_loops_run_as_tasks() {
    let rows = ["--schedule", "distribute({i}, {io}, {ii}, {3})", "--generate", "A=uniform:0.1"];
    for (statement, formats, size) in [
        ("y(i) = A(i,j) * x(j)", &["A=csr"][..], "i=61,j=50"),
        ("y(i) += A(i,j) * x(j) + b(i)", &["A=csr"], "i=61,j=50"),
        ("Y(i,k) = A(i,j) * X(j,k)", &["A=csr"], "i=31,j=20,k=8"),
        ("y(i) = A(i,j,k) * X(j,k)", &["A=csf:3"], "i=20,j=10,k=8"),
        ("y(i) = A(i,j) * B(i,j)", &["A=csr", "B=dcsr"], "i=20,j=10"),
        ("Y(i,j) = A(i,j) * x(j)", &["A=csr", "Y=csr"], "i=20,j=10"),
        ("Y(i,j) = A(i,j) + B(i,j)", &["A=csr", "B=dcsr", "Y=csr"], "i=20,j=10"),
        ("Y(i,j) = A(i,k) * B(k,j)", &["A=csr", "B=csr", "Y=csr"], "i=20,j=10,k=15"),
        ("Y(i,j) = A(i,k) * B(k,j)", &["A=dcsr", "B=csr", "Y=dcsr"], "i=20,j=10,k=15"),
        ("Y(i,j) = 2 * A(i,j)", &["A=csr", "Y=coo"], "i=20,j=10"),
        ("Y(i,j,k) = A(i,j,k) + B(i,j,k)", &["A=csf:3", "B=csf:3", "Y=csf:3"], "i=20,j=10,k=8"),
        ("y(i) = A(i,j) * x(j)", &["A=ell"], "i=61,j=50"),
    ] {
        let formats: Vec<&str> = formats.iter().flat_map(|format| ["--format", format]).collect();
        let common = [&rows[..], &formats, &["--size", size]].concat();
        verifies(statement, &common);
        let (code, out, _) = run(statement, &[&common[..], &["--explain"]].concat());
        assert!(code == Some(0) && out.contains("tasks:\n") && out.contains("over 3 points"), "{out}");
    }
    // A grid does so with the outermost loops.
    let grid = ["--generate", "A=uniform:0.1", "--format", "A=csr", "--size", "i=31,j=20,k=8", "--grid"];
    verifies("Y(i,k) = A(i,j) * X(j,k)", &[&grid[..], &["4"]].concat());
    // Entries are dealt to points as they are.
    let entries = ["--generate", "A=uniform:0.1", "--format", "A=coo", "--size", "i=31,j=20", "--grid", "4"];
    verifies("y(i) = A(i,j) * x(j)", &entries);
    let (code, out, _) = run("y(i) = A(i,j) * x(j)", &[&entries[..], &["--explain"]].concat());
    assert!(code == Some(0) && out.contains("with 4 equal parts of level 1 of A"), "{out}");
    // As far as there are loops, in no more blocks than they are long; statements without loops among others.
    let vectors = [&grid[..5], &["i=31,j=20"]].concat();
    verifies("a = 3; y(i) = A(i,j) * x(j); z(i) = y(i) + a", &[&vectors[..], &["--grid", "40x2"]].concat());
    // Statements may read what they assign, and accumulate into what is sparse.
    let square = [&grid[..5], &["i=20,j=20", "--grid", "3"]].concat();
    for statement in ["y(i) = A(i,j) * x(j) + y(i)", "y(i) += A(i,j) * x(j) + y(i)", "A(i,j) = A(i,j) * 2 + A(i,j)"] {
        verifies(statement, &square);
    }
    for format in ["csr", "dcsc", "coo", "bitmap", "bcsr:2x3", "{D,L}"] {
        let format = format!("C={format}");
        for statement in ["C(i,j) += A(i,j) * A(j,i)", "C(i,j) max= A(i,j); C(i,j) *= A(j,i)", "C(i,j) -= A(j,i)"] {
            let common = [&square[..], &["--format", &format]].concat();
            verifies(statement, &common);
            let (code, out, _) = run(statement, &[&common[..], &["--explain"]].concat());
            assert!(code == Some(0) && out.contains("its old elements are an operand"), "{statement} {format}\n{out}");
        }
        verifies("C(i,j) += A(i,j)", &[&square[..6], &["--format", &format, "--split", "i=3"]].concat());
    }
    // What can't be done says what to do.
    let (code, _, error) = run("y(i) = A(i,j) * x(j)", &[&vectors[..], &["--grid", "2"], &rows[..2]].concat());
    assert!(code == Some(2) && error.contains("leave one of the two out"), "{code:?} {error}");
}

/// Tensors in formats that loops do not go through are converted where they are placed, and results are made of the
/// tensors that points assemble; `--explain` says so.
#[test]
fn formats_of_all_kinds_are_distributed() {
    let product = "y(i) = A(i,j) * x(j)";
    let common = ["--generate", "A=uniform:0.1", "--size", "i=20,j=15"];
    for (format, used) in [
        ("dia", None),
        ("hash", Some("{C,C}(0,1)")),
        ("bitmap", None),
        ("{D,L}", Some("{D,C}(0,1)")),
        ("bcsr:2x3", Some("{D,C}(0,1)")),
        ("(i,j) -> (j-i: C, j: R)", Some("{C,C}(0,1)")),
        ("coo", Some("{C,C}(0,1)")),
    ] {
        let format = format!("A={format}");
        let rows = [&common[..], &["--format", &format, "--schedule", "distribute({i}, {io}, {ii}, {3})"]].concat();
        verifies(product, &rows);
        let (code, out, _) = run(product, &[&rows[..], &["--explain"]].concat());
        let told =
            used.map_or("is converted".to_owned(), |used| format!("A is converted to {used} where it is placed: "));
        assert!(code == Some(0) && out.contains(&told) == used.is_some(), "{format}\n{out}");
        // Schedules name it as statements do, and blocks are no other.
        let equal = "fuse(i, j, f); pos(f, p, A); divide(p, po, pi, 4); distribute({po})";
        verifies(product, &[&common[..], &["--format", &format, "--schedule", equal]].concat());
        verifies(product, &[&common[..], &["--format", &format, "--split", "i=3", "--split", "j=2"]].concat());
    }
    // In two formats at once, and in another one by each statement.
    let square = ["--generate", "A=uniform:0.1", "--format", "A=csr", "--size", "i=20,j=20", "--grid", "3"];
    verifies("y(i) = A(i,j) * A(j,i)", &square);
    verifies("B(i,j) = 2 * A(i,j); y(i) = B(j,i) * x(j)", &[&square[..], &["--format", "B=csr"]].concat());
    for format in ["csc", "ell", "dia", "bitmap", "hash", "bcsr:2x3", "{D,L}", "{H,C}"] {
        let format = format!("B={format}");
        for statement in ["B(i,j) = A(i,j) + A(i,j) * 2", "B(i,j) = 2 * A(i,j); y(i) = B(i,j) * x(j)"] {
            verifies(statement, &[&square[..], &["--format", &format]].concat());
        }
        // Runs below rows are assembled as they are.
        let (code, out, _) = run("B(i,j) = 2 * A(i,j)", &[&square[..], &["--format", &format, "--explain"]].concat());
        let is_converted = out.contains("by tasks, block by block");
        assert!(code == Some(0) && is_converted == (format != "B={D,L}"), "{format}\n{out}");
    }
    for format in ["{B}", "{H}", "{L}"] {
        let format = format!("y={format}");
        verifies("y(i) = A(i,j)", &[&square[..], &["--format", &format]].concat());
    }
}

/// `maniple tensor` on two nodes: the exit code, and what is printed on standard output and standard error.
fn on_two_nodes(statement: &str, options: &[&str]) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_maniple");
    let mut command = Command::new(program);
    command.args(["launch", "-n", "2", "--no-prefix", "--", program, "tensor", statement, "--workers", "1"]);
    let output = command.args(options).env_remove("RUST_BACKTRACE").stdin(Stdio::null()).output();
    let output = output.expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A node's half of a result, with what it takes to make it, fits into the memory; the halves of twenty do not.
#[test]
fn results_are_given_back_before_they_are_made_again() {
    let product = ["--size", "i=1000,j=1000,k=1000", "--generate", "A=uniform:0.01", "--generate", "B=uniform:0.01"];
    for format in ["C=dcsr", "C=csc"] {
        let formats = ["--format", "A=csr", "--format", "B=csr", "--format", format];
        let repeats = ["--repeat", "20", "--memory", "6MiB", "--verify"];
        let options = [&product[..], &formats, &repeats].concat();
        let (code, out, error) = on_two_nodes("C(i,j) = A(i,k) * B(k,j)", &options);
        assert!(code == Some(0) && out.contains("within rounding"), "{format}: {code:?}\n{out}\n{error}");
    }
}

/// Singleton levels below dense ones have one element in each row.
#[test]
fn elements_that_levels_do_not_store_are_told_alike_on_any_nodes() {
    let options = ["--size", "i=9,j=8", "--generate", "A=uniform:0.9", "--format", "A=csr", "--format", "C={D,S}"];
    let alone = run("C(i,j) = A(i,j) + A(i,j) * 2", &options);
    let several = on_two_nodes("C(i,j) = A(i,j) + A(i,j) * 2", &options);
    for (code, out, error) in [alone, several] {
        assert!(code == Some(2) && out.is_empty(), "{code:?} {out} {error}");
        assert!(error.contains("of {D,S}(0,1)") && error.contains("it has room for one coordinate"), "{error}");
    }
}

#[test]
fn sums_of_sums_are_distributed_each_and_others_say_how_they_would_be() {
    let options = ["--size", "i=9,j=8", "--format", "A=csr"];
    for (grid, statement) in
        [(&[][..], "s = A(i,j) + x(j)"), (&["--grid", "4"], "s = A(i,j) + x(j)"), (&[], "s = A(i,j); s += x(j)")]
    {
        let (code, out, error) = on_two_nodes(statement, &[&options[..], grid, &["--verify"]].concat());
        assert!(code == Some(0) && out.contains("within rounding"), "{code:?}\n{out}\n{error}");
    }
    let (code, _, error) = on_two_nodes("s = reduce(+, j, x(j)) * reduce(max, i, A(i,i))", &options);
    assert!(code == Some(2) && error.contains("write each reduction as a statement"), "{code:?} {error}");
}

#[test]
fn what_is_wrong_with_distributed_statements_is_said_where_it_is() {
    let refused = |statement: &str, options: &[&str], told: &str| {
        let common = ["--generate", "A=uniform:0.1", "--format", "A=csr", "--size", "i=20,j=10"];
        let (code, out, error) = run(statement, &[&common[..], options].concat());
        assert!(code == Some(2) && out.is_empty() && error.contains(told), "{code:?} {error}");
    };
    let product = "y(i) = A(i,j) * x(j)";
    let place = ["--grid", "2", "--place"];
    refused(product, &[&place[..], &["A=xy -> xy"]].concat(), "--place A=xy -> xy: `xy -> xy` says something about 2");
    refused(product, &[&place[..], &["A=xy -> z"]].concat(), "`z` is no dimension of the tensor, which are x, y");
    refused(
        product,
        &[&place[..], &["A=row,column -> col"]].concat(),
        "no dimension of the tensor, which are row, column",
    );
    refused(product, &["--split", "q=3"], "--split q: the index variables of the statement are i, j");
    let sums = "s = A(i,j) + x(j)";
    refused(
        sums,
        &["--split", "j=3"],
        "--split j: the statement is a sum of sums, of which no loop is around all others",
    );
    let taken = "precompute(A(i,k) * A(k,j), {j}, {jw}, w)";
    let square = ["--size", "i=20,j=20,k=20", "--format", "B=csr", "--schedule", taken];
    let (code, _, error) = run("B(i,j) = A(i,k) * A(k,j)", &[&["--format", "A=csr"], &square[..]].concat());
    assert!(
        code == Some(2) && error.contains("w is taken: without a schedule there is a workspace of this name"),
        "{error}"
    );
    let other = "precompute(A(i,k) * A(k,j), {j}, {jw}, v)";
    let square = ["--size", "i=20,j=20,k=20", "--format", "B=csr", "--schedule", other];
    let (code, _, error) = run("B(i,j) = A(i,k) * A(k,j)", &[&["--format", "A=csr"], &square[..]].concat());
    assert!(code == Some(2) && error.contains("is in no assignment; these assign"), "{error}");
}

#[test]
fn distributed_loops_run_on_several_nodes() {
    let statement = "y(i) = A(i,j) * x(j)";
    let launch = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
        command.args(["launch", "-n", "2", "--", env!("CARGO_BIN_EXE_maniple"), "tensor", statement]).args(options);
        let output = command.env_remove("RUST_BACKTRACE").stdin(Stdio::null()).output().expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let matrix = ["--generate", "A=poisson:20", "--format", "A=csr", "--workers", "1", "--verify"];
    let rows = ["--schedule", "distribute({i}, {io}, {ii}, {4})"];
    let (code, out, error) = launch(&[&matrix[..], &rows].concat());
    assert!(code == Some(0) && out.contains("400 elements in"), "{code:?}\n{out}\n{error}");
    // Without a word, each node gets a block.
    let (code, out, error) = launch(&matrix);
    assert!(code == Some(0) && out.contains("400 elements in"), "{code:?}\n{out}\n{error}");
    // The matrix lies in equal parts before, and the vector everywhere.
    let equal = "fuse(i, j, f); pos(f, p, A); divide(p, po, pi, 2); distribute({po})";
    let placed = ["--schedule", equal, "--place", "A=xy -> f : ~f", "--place", "x=x -> *"];
    let (code, out, error) = launch(&[&matrix[..], &placed].concat());
    assert!(code == Some(0) && out.contains("400 elements in"), "{code:?}\n{out}\n{error}");
    let (code, out, error) = launch(&[&matrix[..], &["--place", "A=xy -> y"]].concat());
    assert!(code == Some(0) && out.contains("400 elements in"), "{code:?}\n{out}\n{error}");
    let (code, _, error) = launch(&[&matrix[..], &["--place", "A=xyz -> y"]].concat());
    assert!(code == Some(2) && error.contains("--place A=xyz -> y: `xyz -> y` names 3 dimensions"), "{code:?} {error}");
    // Each node reads its own file, and a value in it differs.
    let file = |value: &str| format!("%%MatrixMarket matrix coordinate real general\n9 9 2\n1 1 2\n5 3 {value}\n");
    for node in ["0", "1"] {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sparse-node-{node}"));
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        std::fs::write(folder.join("own.mtx"), file(node)).expect("the folder can be written");
    }
    let program = env!("CARGO_BIN_EXE_maniple");
    let given = [
        ("", "own.mtx", "A, from own.mtx, is not the same on node 1 as on node 0"),
        (
            "{program} tensor convert own.mtx own.tcs --format ds;",
            "own.tcs",
            "A, from own.tcs, is not the same on node 1",
        ),
    ];
    for (before, file, told) in given {
        let before = before.replace("{program}", program);
        let script = format!(
            "cd sparse-node-$MANIPLE_RANK; {before} exec {program} tensor '{statement}' --input A={file} --format A=csr --grid 2 --workers 1"
        );
        let mut command = Command::new(program);
        command.args(["launch", "-n", "2", "--", "sh", "-c", &script]).current_dir(env!("CARGO_TARGET_TMPDIR"));
        let output = command.env_remove("RUST_BACKTRACE").stdin(Stdio::null()).output().expect("the program starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(told), "{:?} {error}", output.status);
    }
    let (code, _, error) = launch(&[&matrix[..], &["--schedule", "split(i, io, ii, 4)"]].concat());
    assert!(code == Some(2) && error.contains("distribute a loop"), "{code:?} {error}");
}

/// Rows of 100 million columns: a place for each of them in each thread would be more than there is.
#[cfg(target_os = "linux")]
#[test]
fn rows_of_many_columns_are_gathered_without_a_place_for_each() {
    let product = "Y(i,j) = A(i,k) * B(k,j)";
    let options = "--size i=200,k=100,j=100000000 --generate A=uniform:0.05 --generate B=uniform:1e-7 \
                   --format A=csr --format B=csr --format Y=csr --workers 2 --repeat 1 --verify";
    let limited = |schedule: &str| {
        // In kilobytes of addresses, in which 2.6 GB of lists have no room.
        let script = format!("ulimit -v 2000000; exec \"$0\" tensor '{product}' {options} {schedule}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_maniple")]).env_remove("RUST_BACKTRACE");
        let output = command.stdin(Stdio::null()).output().expect("the shell starts");
        let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, out, error) = limited("");
    assert!(code == Some(0) && out.contains("within rounding"), "{code:?}\n{out}\n{error}");
    let (code, _, error) = limited("--schedule 'store(w, {C~o}); parallelize(i, threads)'");
    assert!(code != Some(0) && error.contains("memory"), "{code:?} {error}");
}

#[test]
fn small_integers_and_truth_values_are_elements_too() {
    for (statement, element) in [
        ("y(i) = A(i,j) * x(j)", "u8"),
        ("y(i) = A(i,j) * x(j)", "i16"),
        ("C(i,j) = A(i,j) + A(j,i)", "i8"),
        ("C(i,j) = A(i,k) * A(k,j)", "u32"),
        ("C(i,j) = A(i,k) * A(k,j)", "bool"),
        ("y(i) = reduce(max, j, A(i,j) - x(j))", "i8"),
    ] {
        let options =
            ["--generate", "A=uniform:0.2", "--format", "A=csr", "--format", "C=csr", "--size", "i=20,j=20,k=20"];
        let used = |option: &&[&str]| {
            statement.contains(&option[1][..1]) || option[0] != "--format" || option[1].starts_with("A=")
        };
        let options: Vec<&str> = options.chunks(2).filter(used).flatten().copied().collect();
        let sizes = if statement.contains('k') { "i=20,j=20,k=20" } else { "i=20,j=20" };
        let options: Vec<&str> =
            options.into_iter().map(|option| if option.starts_with("i=") { sizes } else { option }).collect();
        verifies(statement, &[&options[..], &["--type", element]].concat());
    }
    // Partial results of several tasks are combined.
    for (operator, element) in [("+", "u8"), ("*", "i8"), ("min", "i16"), ("max", "u32"), ("or", "bool"), ("and", "u8")]
    {
        let statement = format!("s = reduce({operator}, i, B(i) * C(i))");
        let (code, out, error) =
            run(&statement, &["--type", element, "--size", "i=1000", "--workers", "2", "--verify"]);
        assert!(code == Some(0), "{statement} {element}: {out}{error}");
    }
    // Numbers that are no f64 stay what they are.
    let large =
        write("sparse-large.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 9007199254740993\n");
    let options = ["--input", &format!("A={large}"), "--format", "A=csr", "--format", "C=csr", "--type", "i64"];
    verifies("C(i,j) = A(i,j)", &[&options[..], &["--output", "sparse-large-out.mtx"]].concat());
    let written = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("sparse-large-out.mtx");
    assert!(std::fs::read_to_string(written).unwrap().contains("1 2 9007199254740993"));
    let (code, _, error) = run("y(i) = 300 * A(i,j)", &["--format", "A=csr", "--type", "u8"]);
    assert!(code == Some(2) && error.contains("300"), "{code:?} {error}");
}

#[test]
fn what_loops_visit_and_what_others_would_cost_is_explained() {
    let product = ["--format", "A=csr", "--format", "B=csr", "--format", "Y=csr", "--size", "i=60,j=50,k=40"];
    let (code, out, _) = run("Y(i,j) = A(i,k) * B(k,j)", &[&product[..], &["--explain"]].concat());
    for part in [
        "loop k: what A(i,k) stores; B(k,j_1) found there\n",
        "loop j_1: what B(k,j_1) stores\n",
        "workspace w: as {C~o}(0)\n",
        "result Y: loops run twice: what there is below each parent is counted, and then written in its place\n",
        "candidates, the best first\n  i, k, j ",
        "of memory; ",
    ] {
        assert!(code == Some(0) && out.contains(part), "{part}\n{out}");
    }
    let sum = ["--format", "A=csr", "--format", "B=csr", "--format", "Y=csr", "--size", "i=20,j=20"];
    let (_, out, _) = run("Y(i,j) = A(i,j) + B(i,j)", &[&sum[..], &["--explain"]].concat());
    assert!(out.contains("loop j: what any stores: A(i,j) and B(i,j); A(i,j); B(i,j)\n"), "{out}");
    let (_, out, _) = run("Y(i,j) = A(i,j) * B(i,j)", &[&sum[..], &["--explain"]].concat());
    assert!(out.contains("where A(i,j) and B(i,j) store something, merged by two-finger"), "{out}");
}

#[test]
fn tensors_are_drawn_in_the_parts_of_threads_and_processors() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let drawn = |name: &str| std::fs::read_to_string(folder.join(name)).expect("there is a picture");
    let options = ["--generate", "A=uniform:0.2", "--format", "A=csr", "--size", "i=6,j=5"];
    verifies("y(i) = A(i,j) * x(j)", &[&options[..], &["--draw", "sparse-drawn.svg"]].concat());
    let picture = drawn("sparse-drawn.svg");
    // Three tensors, of which two are divided; the matrix has a tree of two levels.
    assert_eq!(picture.matches("<title>").count(), 4, "{picture}");
    assert_eq!(picture.matches("in 2 parts").count(), 2, "{picture}");
    assert!(picture.contains("i: D") && picture.contains("j: C"), "{picture}");
    verifies("y(i) = A(i,j) * x(j)", &[&options[..], &["--grid", "3", "--draw", "sparse-grid.svg"]].concat());
    assert_eq!(drawn("sparse-grid.svg").matches("in 3 parts").count(), 2);
    let matrix =
        write("sparse-info.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 2\n2 1 -1\n2 3 7\n");
    let info = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
        command.args(["tensor", "info", &matrix]).args(options).current_dir(folder);
        let output = command.stdin(Stdio::null()).output().expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(info(&["--draw", "sparse-info.svg", "--format", "csr"]).0, Some(0));
    let picture = drawn("sparse-info.svg");
    assert!(picture.contains("{D,C}(0,1): 2 x 3, 3 entries") && picture.contains(">-1<"), "{picture}");
    assert_eq!(info(&["--draw", "sparse-info.svg", "--format", "csf:3"]).0, Some(1));
    assert_eq!(info(&["--format", "csr"]).0, Some(2));
    assert_eq!(info(&["--draw", "no/such/folder.svg"]).0, Some(1));
}

#[test]
fn equal_parts_of_what_is_stored_whole_are_told_to_be_blocks() {
    let options = ["--size", "i=20,j=10", "--format", "A=csr", "--grid", "2", "--repeat", "1", "--place"];
    let placed = |place: &str| {
        let (code, _, error) = run("y(i) = A(i,j) * x(j)", &[&options[..], &[place]].concat());
        assert_eq!(code, Some(0), "{error}");
        error
    };
    assert_eq!(
        placed("A=xy -> ~x").trim(),
        "WARN A stores all of x, so that `~x` in `xy -> ~x` makes blocks: write `x`"
    );
    assert_eq!(placed("A=xy -> ~y"), "");
    assert_eq!(placed("A=xy -> x"), "");
}

#[test]
fn variables_of_one_dimension_have_one_extent() {
    for format in [&["--format", "A=csr"][..], &[]] {
        let (code, out, error) =
            run("Y(i,j) = A(k,i) * A(k,j)", &[&["--size", "i=40", "--repeat", "1"], format].concat());
        assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
        assert!(out.contains("i=40") && out.contains("j=40"), "{out}");
        let (code, _, error) = run("Y(i,j) = A(k,i) * A(k,j)", &[&["--size", "i=40,j=30"], format].concat());
        assert_eq!(code, Some(2), "{error}");
        let expected = "index variable i has 40 values by --size, and 30 by A(k,j) and A(k,i)";
        assert!(error.contains(expected) || error.contains("index variable j has 30 values by --size"), "{error}");
    }
}
