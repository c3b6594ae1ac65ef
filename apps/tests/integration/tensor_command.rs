//! `maniple tensor` as its users run it.

use std::process::{Command, Stdio};

/// The exit code and the output of a run of the program.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(arguments).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    let output = command.output().expect("the program can be started");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs a statement with options, which must succeed, and gives what is printed: nothing on standard error.
#[track_caller]
fn computes(statement: &str, options: &str) -> String {
    computes_on(1, statement, options)
}

/// The same on so many nodes of two workers each.
#[track_caller]
fn computes_on(nodes: usize, statement: &str, options: &str) -> String {
    let program = ["tensor", statement, "--workers", "2"];
    let number = nodes.to_string();
    let launched = ["launch", "-n", &number, "--no-prefix", "--", env!("CARGO_BIN_EXE_maniple")];
    let launch: &[&str] = if nodes == 1 { &[] } else { &launched };
    let arguments: Vec<&str> = launch.iter().chain(&program).copied().chain(options.split_whitespace()).collect();
    let run = run(&arguments);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{arguments:?}\n{}", run.stdout);
    run.stdout
}

/// Runs a statement with options, which is refused: with this exit code, and exactly this message.
#[track_caller]
fn refuses(statement: &str, options: &str, code: i32, message: &str) {
    let arguments: Vec<&str> = ["tensor", statement].into_iter().chain(options.split_whitespace()).collect();
    let run = run(&arguments);
    assert_eq!((run.code, run.stdout.as_str()), (Some(code), ""), "{arguments:?}\n{}", run.stderr);
    assert_eq!(run.stderr, format!("error: {message}\n"), "{arguments:?}");
}

/// The value of a line of a report.
#[track_caller]
fn value<'a>(report: &'a str, name: &str) -> &'a str {
    let line = report.lines().find_map(|line| line.trim_start().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line '{name}' in\n{report}")).trim()
}

const PRODUCT: &str = "A(i,j) = B(i,k) * C(k,j)";
/// A tensor times a matrix, and so on.
const TTV: &str = "A(i,j) = B(i,j,k) * c(k)";
const INNER_PRODUCT: &str = "a = B(i,j,k) * C(i,j,k)";
const TTM: &str = "A(i,j,l) = B(i,j,k) * C(k,l)";
const MTTKRP: &str = "A(i,l) = B(i,j,k) * C(j,l) * D(k,l)";

#[test]
fn the_report_says_what_was_computed_and_how() {
    let report = computes(PRODUCT, "--size i=20,j=30,k=40 --verify --repeat 2");
    assert!(report.starts_with("tensor\n"), "{report}");
    assert_eq!(value(&report, "statement"), "A(i,j) = reduce(+, k, B(i,k) * C(k,j))");
    assert_eq!((value(&report, "sizes"), value(&report, "elements")), ("i=20, j=30, k=40", "f64"));
    assert!(!value(&report, "algorithm").is_empty() && !value(&report, "grid").is_empty(), "{report}");
    assert!(value(&report, "time").ends_with("s (median of 2)"), "{report}");
    assert!(value(&report, "GFLOP/s").parse::<f64>().is_ok_and(|rate| rate > 0.0), "{report}");
    assert!(value(&report, "verified").starts_with("600 elements in "), "{report}");
    assert!(!report.contains("moved"), "nothing moves where there is one node: {report}");
}

#[test]
fn a_library_that_multiplies_is_named_and_one_that_does_not_is_refused_or_replaced() {
    let options = "--size i=70,j=80,k=90 --verify --repeat 1 --algorithm summa --grid 1x1";
    assert_eq!(value(&computes(PRODUCT, &format!("{options} --blas none")), "multiplied by"), "gemm");
    // Integers are multiplied by loops.
    assert!(!computes(PRODUCT, &format!("{options} --type i64")).contains("multiplied by"));
    let Run { code, stderr, .. } =
        run(&["tensor", PRODUCT, "--size", "i=70,j=80,k=90", "--blas", "/nowhere/libfast.so"]);
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with("error: /nowhere/libfast.so cannot be loaded: "), "{stderr}");
    // What the environment names is replaced.
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(["tensor", PRODUCT]).args(options.split(' ')).env("MANIPLE_BLAS", "/nowhere/libfast.so");
    let output = command.stdin(Stdio::null()).output().expect("the program can be started");
    let report = String::from_utf8(output.stdout).expect("the program prints text");
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(warnings.matches("not by MANIPLE_BLAS=/nowhere/libfast.so").count(), 1, "{warnings}");
    assert_eq!(value(&report, "multiplied by"), "gemm");
    assert!(value(&report, "verified").starts_with("5600 elements in "), "{report}");
}

#[test]
fn what_is_installed_and_knows_the_processor_multiplies_by_default_and_gemm_where_nothing_does() {
    let options = "--size i=70,j=80,k=90 --verify --repeat 1 --algorithm summa --grid 1x1";
    let by = |told: &[&str], environment: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
        command.args(["tensor", PRODUCT]).args(options.split(' ')).args(told).env("MANIPLE_BLAS", environment);
        let output = command.stdin(Stdio::null()).output().expect("the program can be started");
        let report = String::from_utf8(output.stdout).expect("the program prints text");
        assert!(value(&report, "verified").starts_with("5600 elements in "), "{report}");
        (value(&report, "multiplied by").to_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let nothing_said = String::new();
    let (default, said) = by(&[], "");
    assert_eq!(said, nothing_said, "whatever is found or not");
    assert_eq!(by(&[], ""), (default.clone(), nothing_said.clone()), "each time the same");
    assert_eq!(by(&[], "none"), ("gemm".to_owned(), nothing_said));
    let (library, said) = by(&["--blas", "auto"], "none");
    assert_eq!(library, default, "the command line goes before the environment");
    // With `--blas auto` the user is told why there is no library.
    assert_eq!(said.contains("matrices are multiplied by the crate gemm: "), default == "gemm", "{said}");
}

#[test]
fn an_explanation_says_what_multiplies_and_why() {
    let explained = |statement: &str, options: &str| {
        let text = computes(statement, &format!("{options} --explain"));
        text.split_once("multiplied by\n").map(|(_, library)| library.to_owned())
    };
    assert_eq!(explained(PRODUCT, "--blas none").as_deref(), Some("  gemm: it was asked for\n"));
    let default = explained(PRODUCT, "").expect("it says so");
    let reasons = [": it is installed, and ", " is installed\n", ", with ", " is not known\n"];
    assert!(reasons.into_iter().any(|reason| default.contains(reason)), "{default}");
    assert_eq!(explained(PRODUCT, "--type i64"), None, "integers are multiplied by loops");
    assert_eq!(explained("A(i,j) = B(i,j) + C(j,i)", ""), None, "nothing is multiplied");
    let Run { code, stderr, .. } = run(&["tensor", PRODUCT, "--explain", "--blas", "/nowhere/libfast.so"]);
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with("error: /nowhere/libfast.so cannot be loaded: "), "{stderr}");
}

#[test]
fn every_algorithm_computes_what_the_statement_says_in_one_process_and_in_several() {
    let products = [
        "summa --grid 2x3 --chunk 4",
        "summa --grid 1x2",
        "cannon --grid 2x2",
        "cannon --grid 3x2",
        "pumma --grid 2x2",
        "johnson --grid 2x2x2",
        "johnson --grid 1x3x2",
        "solomonik --grid 2x2x2",
        "solomonik",
        "cosma",
        "cosma --grid 2x1x3",
        "none",
    ];
    let others = [
        (TTV, "ttv --grid 2x2"),
        (INNER_PRODUCT, "innerprod --grid 3"),
        (INNER_PRODUCT, "innerprod --grid 2x2"),
        (TTM, "ttm --grid 4"),
        (MTTKRP, "mttkrp --grid 2x1x2"),
    ];
    for (statement, algorithm) in products.map(|algorithm| (PRODUCT, algorithm)).into_iter().chain(others) {
        let sizes = if statement.contains('l') { "i=7,j=5,k=3,l=4" } else { "i=11,j=13,k=7" };
        for nodes in [1, 2, 4] {
            let options = format!("--type i64 --size {sizes} --verify --repeat 1 --algorithm {algorithm}");
            let report = computes_on(nodes, statement, &options);
            assert!(value(&report, "verified").ends_with(": all equal"), "{nodes} nodes, {algorithm}: {report}");
        }
    }
}

#[test]
fn without_an_algorithm_the_cheapest_schedule_is_run() {
    let statements = [
        (PRODUCT, "i=9,j=9,k=9"),
        (TTV, "i=9,j=9,k=9"),
        (INNER_PRODUCT, "i=9,j=9,k=9"),
        (TTM, "i=9,j=9,k=9,l=9"),
        (MTTKRP, "i=9,j=9,k=9,l=9"),
        ("A(i,j) = B(i,j) + C(j,i)", "i=9,j=9"),
        ("y(i) = A(i,j) * x(j) + b(i)", "i=9,j=9"),
        ("a(i) = reduce(max, j, B(i,j)) * i", "i=9,j=9"),
    ];
    for (statement, sizes) in statements {
        let report = computes(statement, &format!("--size {sizes} --type i32 --verify"));
        assert!(value(&report, "verified").ends_with(": all equal"), "{statement}: {report}");
    }
    computes("a = 3", "--verify");
    // Much work is for all processors, little for one.
    let grid = |extent: &str| {
        let explained = computes(PRODUCT, &format!("--size i={extent},j={extent},k={extent} --explain"));
        explained.lines().find_map(|line| line.strip_prefix("placements on ")).map(str::to_owned)
    };
    assert_eq!(grid("2").as_deref(), Some("1"));
    assert!(grid("3000").is_some_and(|grid| grid != "1"));
}

#[test]
fn a_grid_alone_says_how_the_loops_are_distributed() {
    let report = computes(PRODUCT, "--size i=12,j=12,k=12 --type i64 --verify --grid 3x2");
    assert_eq!(value(&report, "grid"), "3x2");
    assert!(value(&report, "verified").ends_with(": all equal"), "{report}");
}

#[test]
fn an_explanation_computes_nothing_and_tells_what_would_move() {
    let explained = computes(PRODUCT, "--size i=90000,j=90000,k=90000 --algorithm cannon --grid 3x3 --explain");
    for part in ["Cannon's algorithm\nstatement\n", "placements on 3x3\n  A: xy -> xy\n", "partitions\n", "launches\n"]
    {
        assert!(explained.contains(part), "{explained}");
    }
    // Of each operand each of nine processors fetches the two tiles of its row or column that it has not.
    let tile = 30_000_u64 * 30_000 * 8;
    let moved = format!("  B: {:.1} GB\n", (9 * 2 * tile) as f64 / 1e9);
    assert!(explained.contains(&moved), "{moved} {explained}");
}

#[test]
fn a_picture_has_all_tensors_and_steps() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("picture.svg");
    let options = format!("--size i=8,j=8,k=8 --algorithm cannon --grid 2x2 --draw {}", file.display());
    computes(PRODUCT, &options);
    let picture = std::fs::read_to_string(file).expect("it was drawn");
    assert!(picture.starts_with("<svg xmlns=") && picture.ends_with("</svg>\n"), "{picture}");
    for text in ["A: who holds what at the beginning", "B: who", "C: who", "Messages", ">step 0: ", ">step 1: "] {
        assert!(picture.contains(text), "{text}: {picture}");
    }
    assert_eq!(picture.matches("<svg").count(), picture.matches("</svg>").count());
    refuses(PRODUCT, "--draw no/such/folder.svg", 1, "cannot write `no/such/folder.svg`: there is no folder `no/such`");
}

#[test]
fn all_types_of_elements_are_computed_with() {
    for (name, element) in [
        ("f32", "f32"),
        ("f64", "f64"),
        ("i32", "i32"),
        ("i64", "i64"),
        ("c32", "Complex<f32>"),
        ("c64", "Complex<f64>"),
    ] {
        let statement = "A(i,j) = 2 * B(i,k) * C(k,j) - D(j,i)";
        let report = computes(statement, &format!("--size i=20,j=20,k=20 --verify --type {name}"));
        assert_eq!(value(&report, "elements"), element);
        assert!(report.contains("verified"), "{report}");
    }
}

#[test]
fn what_a_statement_adds_to_is_made_anew_before_each_time() {
    computes("A(i,j) += B(i,k) * C(k,j)", "--size i=9,j=9,k=9 --type i64 --verify --repeat 3");
    computes("A(i,j) = A(i,j) * B(i,j)", "--size i=9,j=9 --type i64 --verify --repeat 3");
}

#[test]
fn many_elements_are_compared_in_samples() {
    let report = computes("A(i,j) = B(j,i)", "--size i=2500,j=2500 --type i32 --repeat 1 --verify --algorithm none");
    let compared: u64 = value(&report, "verified").split(' ').next().unwrap().parse().unwrap();
    assert!((1_000_000..5_000_000).contains(&compared), "{report}");
}

#[test]
fn one_node_and_several_compute_the_same_and_the_first_prints() {
    for nodes in [1, 2, 4] {
        for algorithm in ["cannon --grid 2x2", "summa --chunk 5", "johnson", "none"] {
            let options = format!("--size i=20,j=30,k=25 --type i64 --verify --repeat 1 --algorithm {algorithm}");
            let report = computes_on(nodes, PRODUCT, &options);
            assert_eq!(report.matches("tensor\n").count(), 1, "{report}");
            assert!(value(&report, "verified").ends_with(": all equal"), "{nodes} nodes, {algorithm}: {report}");
            assert_eq!(report.contains("moved between nodes"), nodes > 1, "{report}");
        }
    }
}

#[test]
fn how_tensors_are_stored_changes_nothing() {
    let formats = "--format A={D,D}(1,0) --format B={D,D,D}(2,0,1) --format C={D,D}(1,0)";
    for nodes in [1, 2] {
        let options = format!("--size i=9,j=10,k=11,l=7 --type i64 --verify --repeat 1 {formats}");
        let report = computes_on(nodes, "A(i,l) = B(i,j,k) * C(j,l) * D(k,l)", &options);
        assert!(value(&report, "verified").ends_with(": all equal"), "{nodes} nodes: {report}");
    }
    refuses(PRODUCT, "--format D={D,D}", 2, "--format D: the statement has A, B, C");
    refuses(PRODUCT, "--format B={D}", 2, "--format B={D}(0) is for 1 dimension, and B has 2");
    let wrong = "invalid value 'B={D,X}' for '--format <NAME=FORMAT>': `{D,X}` is no format: expected levels D (dense), C (compressed), S (singleton), B (bitmap), H (hashed), R (range), E \
                 (counter), L (runlength), and the order of modes, such as `{D,C}(0,1)`; or what each level stores, such as `(i,j) -> (i/4: D, j/4: C, i%4: D, j%4: D)`; or one of dense, rows, columns, csr, csc, \
                 coo, dcsr, dcsc, csf, bcsr:RxC, ell, dia, bitmap, hash; or letters such as `ds:1,0`\n\nFor more information, try '--help'.";
    refuses(PRODUCT, "--format B={D,X}", 2, wrong);
    refuses(PRODUCT, "--format B={D,D} --format B={D,D}(1,0)", 2, "--format says twice how B is stored");
    refuses(PRODUCT, "--output a.npy --output A=a.mtx", 2, "--output says twice where A goes");
}

#[test]
fn infinities_and_nans_are_verified() {
    for statement in [
        "A(i) = B(i) / 0",
        "A(i) = max(0 / 0, B(i))",
        "A(i) = max(B(i), 0 / 0)",
        "A(i) = 1 / (B(i) / 0)",
        "a = reduce(min, i, B(i) / 0)",
        "A(i) = sqrt(B(i))",
        "A(i) = asin(4 * B(i)) + exp(10000 * B(i))",
    ] {
        for element in ["f32", "f64", "c64"] {
            if element == "c64" && ["max", "min"].iter().any(|order| statement.contains(order)) {
                continue;
            }
            for workers in ["1", "2"] {
                let options = format!("--size i=1000 --verify --repeat 1 --type {element} --workers {workers}");
                let arguments: Vec<&str> = ["tensor", statement].into_iter().chain(options.split(' ')).collect();
                let run = run(&arguments);
                assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{statement} {options}");
            }
        }
    }
}

#[test]
fn parts_shifts_masks_and_logical_reductions_are_verified_on_one_node_and_several() {
    for (statement, sizes) in [
        ("A(i,j) = B(i+1,j) - 2 * B(i,j) + B(i-1,j)", "i=40,j=30"),
        ("A(i,j) = B(i(2,42),j(0,60,2)) + C(i,j)", "j=30"),
        ("a(i) = reduce(or, j, B(i,j) > C(i,j) and not isfill(B(i,j)))", "i=40,j=30"),
        ("A(i,j) = M(i,j) ? B(i,j) + 1", "i=40,j=30"),
        ("A(i,j) = select(M(i,j) > 0, B(i,j+1), inf)", "i=40,j=30"),
    ] {
        for nodes in [1, 2] {
            let element = if statement.contains("inf") { "f64" } else { "i64" };
            let report = computes_on(nodes, statement, &format!("--size {sizes} --type {element} --verify"));
            assert!(value(&report, "verified").contains("elements in "), "{report}");
        }
    }
    refuses(
        "A(i,j) = B(i(0,10),j)",
        "--size i=20,j=3",
        2,
        "index variable i has 20 values by --size, and 10 by B(i(0,10),j)",
    );
}

#[test]
fn grids_of_many_processors_are_explained() {
    for (grid, pieces) in [("9x9x9", "A: 81 pieces"), ("1024x1024", "about 1048576 pieces")] {
        let arguments = format!("--size i=4096,j=4096,k=4096 --grid {grid} --explain");
        let arguments: Vec<&str> = ["tensor", PRODUCT].into_iter().chain(arguments.split(' ')).collect();
        let told = run(&arguments);
        assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{grid}");
        assert!(told.stdout.contains(pieces), "{}", told.stdout);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let large = "90000 points in 300 steps are 27000000 tasks, and there can be 262144 at most: take a smaller --grid, or a larger --chunk";
    refuses(PRODUCT, "--size i=7,j=5,k=3 --grid 300x300 --algorithm cannon", 2, large);
    let steps = "4 points in 1000000000 steps are 4000000000 tasks, and there can be 262144 at most: take a smaller --grid, or a larger --chunk";
    refuses(PRODUCT, "--size i=2,j=2,k=1000000000 --grid 2x2 --algorithm summa --chunk 1", 2, steps);
    let sqrt = "there is no function sqr; did you mean sqrt?\n  A(i) = sqr(B(i))\n         ^^^";
    refuses("A(i) = sqr(B(i))", "", 2, sqrt);
    refuses(
        "A(i,j) = B(i,k) * C(k,j",
        "",
        2,
        "expected ',' or ')', found the end\n  A(i,j) = B(i,k) * C(k,j\n                         ^",
    );
    refuses(PRODUCT, "--size z=4", 2, "--size z=4: the statement has the index variables i, j, k");
    refuses(PRODUCT, "--size i=4,i=5", 2, "index variable i has 4 values by --size, and 5 by --size");
    refuses(PRODUCT, "--size i=999999999,j=2,k=99999999", 2, "B of 999999999 x 99999999 elements is too large");
    refuses(
        "A(i,j,k,l,m) = 3",
        "--size i=2,j=2,k=2,l=2,m=2",
        2,
        "A has 5 dimensions; dense tensors have at most 4; sparse ones, as with --format A=csf:5, have more",
    );
    refuses(
        PRODUCT,
        "--algorithm ttv",
        2,
        "TTV computes A(i,j) = B(i,j,k) * c(k), unscheduled, not\nA(i,j) = 0\nfor i in 0..1000\n  for j in 0..1000\n    for k in 0..1000\n      A(i,j) += B(i,k) * C(k,j)\n",
    );
    refuses(
        PRODUCT,
        "--algorithm cannon --grid 4",
        2,
        "--grid 4 has 1 dimension: this algorithm takes a grid of 2, such as 2x2",
    );
    refuses(
        PRODUCT,
        "--algorithm solomonik --grid 1x2x2",
        2,
        "--grid 1x2x2: the 2.5D algorithm takes square layers, such as 2x2x1 or 2x2x2",
    );
    refuses(PRODUCT, "--algorithm none --grid 2x2", 2, "--grid is for several processors: --algorithm none uses one");
    refuses(PRODUCT, "--algorithm cannon --chunk 3", 2, "--chunk is for --algorithm summa alone");
    refuses(
        "A(i,j) = B(i,j)",
        "--grid 1000x1000",
        2,
        "1000000 points in 1 steps are 1000000 tasks, and there can be 262144 at most: take a smaller --grid, or a larger --chunk",
    );
    refuses(
        "y(i) = A(i,j) * x(j)",
        "--generate A=zipf:200 --format A=csr --size i=40,j=35 --split i=100000000",
        2,
        "100000000 points in 1 steps are 100000000 tasks, and there can be 262144 at most: take a smaller --grid, or a larger --chunk",
    );
    refuses(
        "a(i) = B(i,j) + 3",
        "--grid 2x2x1",
        2,
        "--grid 2x2x1: of the grids for this statement, worth a look are 1, 3, 4; others need an --algorithm",
    );
}
