//! Systems and tensors that programs solve and decompose, of which each of several processes makes or reads a part.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MANIPLE: &str = env!("CARGO_BIN_EXE_maniple");

/// Runs `maniple run` as so many processes.
fn run(nodes: usize, arguments: &str) -> Output {
    let mut command = Command::new(MANIPLE);
    if nodes > 1 {
        command.args(["launch", "-n", &nodes.to_string(), "--no-prefix", "--", MANIPLE]);
    }
    command.arg("run").args(arguments.split_whitespace()).env_remove("RUST_BACKTRACE").output().unwrap()
}

/// The messages of the nodes of a run, which must be refused. The launcher says that they failed, before or after.
#[track_caller]
fn refused(nodes: usize, arguments: &str) -> String {
    let output = run(nodes, arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    told.split_inclusive('\n').filter(|line| !line.starts_with("maniple launch: ")).collect()
}

/// The report of a run, which must succeed.
#[track_caller]
fn report(nodes: usize, arguments: &str) -> String {
    let output = run(nodes, arguments);
    assert!(output.status.success(), "{nodes}: {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn value<'a>(report: &'a str, name: &str) -> &'a str {
    let line = report.lines().find_map(|line| line.trim_start().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line '{name}' in\n{report}")).trim()
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A matrix with large entries on the diagonal and others at random places, in the order of the columns; below the
/// diagonal alone, or all.
fn positive(rows: usize, symmetry: &str) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    let mut lines: Vec<(usize, usize, f64)> = (0..rows).map(|row| (row, row, 8.0 + random.f64())).collect();
    for row in 1..rows {
        let value = random.f64() - 0.5;
        let column = random.usize(0..row);
        lines.push((row, column, value));
        if symmetry == "general" {
            lines.push((column, row, value));
        }
    }
    // Some entries are sums.
    lines.extend((0..rows).step_by(3).map(|row| (row, row, 0.5)));
    lines.sort_by_key(|(row, column, _)| (*column, *row));
    let mut text = format!("%%MatrixMarket matrix coordinate real {symmetry}\n{rows} {rows} {}\n", lines.len());
    for (row, column, value) in lines {
        writeln!(text, "{} {} {value}", row + 1, column + 1).unwrap();
    }
    text
}

#[test]
fn a_system_takes_the_same_steps_whoever_has_its_rows() {
    let [symmetric, general] = ["symmetric", "general"].map(|symmetry| {
        let path = file(&format!("positive-{symmetry}.mtx"), &positive(500, symmetry));
        format!("cg --matrix {} --pieces 7", path.display())
    });
    for arguments in ["cg --poisson 30 --pieces 8", &symmetric, &general] {
        let one = report(1, arguments);
        for nodes in [2, 3, 4] {
            let several = report(nodes, arguments);
            for line in ["matrix", "pieces", "iterations"] {
                assert_eq!(value(&several, line), value(&one, line), "{nodes}: {arguments}");
            }
        }
    }
    let entries = |arguments: &str| value(&report(2, arguments), "matrix").split_once('(').unwrap().1.to_owned();
    assert_eq!(entries(&symmetric), entries(&general), "the other side of the diagonal follows");
}

/// Four processes solve what has no room on one, with as much memory for each.
#[test]
fn no_node_needs_room_for_all_of_a_system() {
    // 4.5 MB: 40,000 rows of 52 bytes, 199,200 entries of 12.
    let arguments = "cg --poisson 200 --tolerance 1e-2 --workers 1 --memory 4MiB";
    let refused = run(1, arguments);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("a Poisson problem on 200 x 200 unknowns takes 4.3 MiB, more than the 4.0 MiB"), "{told}");
    report(4, arguments);
}

#[test]
fn a_matrix_that_cannot_be_solved_is_refused_with_its_line() {
    let text = positive(60, "general");
    // An entry that is given once on either side is given once more on one.
    let lines: Vec<&str> = text.lines().collect();
    let (number, line) = (2..lines.len())
        .map(|at| (at + 1, lines[at]))
        .find(|(_, line)| {
            let mut words = line.split(' ');
            words.next() != words.next()
        })
        .unwrap();
    let mut words = line.split(' ');
    let (row, column) = (words.next().unwrap(), words.next().unwrap());
    let other = text.replace(&format!("\n{line}\n"), &format!("\n{row} {column} 77\n"));
    let unsymmetric = file("one-entry-differs.mtx", &other);
    let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 4\n2 1 1\n2 2 ";
    let infinite = file("one-is-infinite.mtx", &format!("{symmetric}inf\n3 3 1\n"));
    let negative = file("one-is-negative.mtx", &format!("{symmetric}-3\n3 3 1\n"));
    let summed = file(
        "sums-are-infinite.mtx",
        &format!("{symmetric}1e308\n3 3 1\n").replace("3 3 4", "3 3 5").replace("1 1 4", "2 2 1e308\n1 1 4"),
    );
    let none = file("no-diagonal.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 1\n2 1 1\n");
    for nodes in [1, 2, 3] {
        for (path, message) in [
            (
                &unsymmetric,
                format!(
                    ":{number}: the matrix is not symmetric: entry ({row}, {column}) is 77, but ({column}, {row}) is "
                ),
            ),
            (&infinite, ":5: the value 'inf' is not finite\n".to_owned()),
            (
                &negative,
                ": row 2 has the diagonal entry -3, but those of a positive definite matrix are positive\n".to_owned(),
            ),
            (&summed, ": entry (2, 2) adds up to inf\n".to_owned()),
            (&none, ": row 1 has the diagonal entry 0, ".to_owned()),
        ] {
            let told = refused(nodes, &format!("cg --matrix {}", path.display()));
            let expected = format!("error: {}{message}", path.display());
            assert!(told.starts_with(&expected), "{nodes}: {told}");
        }
    }
}

#[test]
fn small_and_dense_matrices_are_solved_on_more_nodes_than_rows() {
    let one = file("one-by-one.mtx", "%%MatrixMarket matrix coordinate integer general\n1 1 2\n1 1 1\n1 1 2\n");
    let dense = file("all-elements.mtx", "%%MatrixMarket matrix array real symmetric\n2 2\n3\n1\n2\n");
    for nodes in [1, 3] {
        for (path, what) in [(&one, "(1 row, 1 entry)"), (&dense, "(2 rows, 4 entries)")] {
            let report = report(nodes, &format!("cg --matrix {}", path.display()));
            assert!(value(&report, "matrix").ends_with(what), "{report}");
        }
    }
}

/// Entries at random places, some of them twice.
fn tensor(extents: [usize; 3], count: usize) -> String {
    let mut random = fastrand::Rng::with_seed(3);
    let mut text = String::new();
    for number in 0..count {
        let [i, j, k] = extents.map(|extent| random.usize(0..extent) + 1);
        writeln!(text, "{i} {j} {k} {}", random.f64()).unwrap();
        if number % 10 == 0 {
            writeln!(text, "{i} {j} {k} 0.25").unwrap();
        }
    }
    writeln!(text, "{} {} {} 1", extents[0], extents[1], extents[2]).unwrap();
    text
}

#[test]
fn a_tensor_is_decomposed_in_the_same_way_whoever_has_its_entries() {
    let text = file("random.tns", &tensor([60, 50, 40], 2000)).display().to_string();
    let levels = text.replace(".tns", ".tcs");
    let converted =
        Command::new(MANIPLE).args(["tensor", "convert", &text, &levels, "--format", "sss", "--sort"]).output();
    assert!(converted.unwrap().status.success());
    let dense = text.replace(".tns", ".dense.tcs");
    let converted =
        Command::new(MANIPLE).args(["tensor", "convert", &text, &dense, "--format", "ddd", "--sort"]).output();
    assert!(converted.unwrap().status.success());
    for program in ["cp --rank 3 --iterations 4", "tucker --ranks 3,2,2 --iterations 4"] {
        let one = report(1, &format!("{program} --tensor {text}"));
        // The dense tensor has zeros, which are no entries.
        for (nodes, file) in [(1, &levels), (2, &text), (3, &text), (4, &levels), (1, &dense), (2, &dense)] {
            let several = report(nodes, &format!("{program} --tensor {file}"));
            for line in ["tensor", "entries", "iterations", "fit"] {
                assert_eq!(value(&several, line), value(&one, line), "{nodes}: {program} of {file}");
            }
        }
    }
}

#[test]
fn a_tensor_that_cannot_be_decomposed_is_refused_with_its_place() {
    let infinite = file("infinite.tns", "1 1 1 2\n2 3 1 inf\n").display().to_string();
    let broken = file("broken.tns", "1 1 1 2\n2 3 1 4\n1 2 1 x\n").display().to_string();
    for nodes in [1, 2] {
        for (path, message) in
            [(&infinite, ": the element at [1, 2, 0] is inf, and is to be finite\n"), (&broken, ":3: 'x' is not")]
        {
            let told = refused(nodes, &format!("cp --rank 1 --tensor {path}"));
            assert!(told.starts_with(&format!("error: {path}{message}")), "{nodes}: {told}");
        }
    }
}

#[test]
fn nodes_that_have_different_files_are_told_which() {
    let folder = tempfile::tempdir().unwrap();
    // As large, and as symmetric.
    for (node, last) in [(0, 3), (1, 4)] {
        let own = folder.path().join(node.to_string());
        std::fs::create_dir(&own).unwrap();
        let text = format!("%%MatrixMarket matrix array real general\n2 2\n2\n1\n1\n{last}\n");
        std::fs::write(own.join("a.mtx"), text).unwrap();
    }
    let script = format!("cd {}/$MANIPLE_RANK && exec {MANIPLE} run cg --matrix a.mtx", folder.path().display());
    let mut launch = Command::new(MANIPLE);
    let output = launch.args(["launch", "-n", "2", "--no-prefix", "--", "sh", "-c", &script]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let expected = "error: a.mtx: it is not the same on node 1 as on node 0";
    assert!(!output.status.success() && told.contains(expected), "{told}");
}
