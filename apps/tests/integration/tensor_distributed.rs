//! Statements whose loops are distributed in another order, or over fewer of them, than they have by themselves.

use std::process::{Command, Stdio};

fn run(nodes: usize, options: &[&str]) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_maniple");
    let mut command = Command::new(program);
    if nodes > 1 {
        command.args(["launch", "-n", &nodes.to_string(), "--no-prefix", "--", program]);
    }
    command.arg("tensor").args(options).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    let output = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Options that give tensors these formats, and sparse ones random elements.
fn stored<'a>(formats: &[(&'a str, &'a str)]) -> Vec<String> {
    let options = formats.iter().flat_map(|(name, format)| {
        let is_operand = *format != "dense" && *name != "A";
        let made = is_operand.then(|| ["--generate".to_owned(), format!("{name}=uniform:0.1")]);
        ["--format".to_owned(), format!("{name}={format}")].into_iter().chain(made.into_iter().flatten())
    });
    options.collect()
}

/// A statement, its extents, and the formats of its tensors.
type Product = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Products whose loops begin with one that is summed over, if they follow what is stored.
const SUMMED_FIRST: &[Product] = &[
    ("A(i,j) = B(i,k) * C(k,j)", "i=23,j=19,k=17", &[("A", "csr"), ("B", "csc"), ("C", "csr")]),
    ("A(i,j) = B(i,k) * C(k,j)", "i=23,j=19,k=17", &[("A", "csc"), ("B", "csc"), ("C", "csr")]),
    ("A(i,j) = B(i,k) * C(k,j)", "i=23,j=19,k=17", &[("A", "csr"), ("B", "dense"), ("C", "csr")]),
    ("A(i,j) = B(i,k) * C(k,j)", "i=23,j=19,k=17", &[("A", "csc"), ("B", "dense"), ("C", "csr")]),
    ("A(i,j) = B(i,k) * C(k,j)", "i=23,j=19,k=17", &[("A", "bcsr:2x2"), ("B", "csc"), ("C", "dcsr")]),
    ("A(i,j) = B(k,i) * B(k,j)", "i=21,j=21,k=17", &[("A", "csr"), ("B", "csr")]),
    ("A(i,j) = B(k,i) * B(k,j)", "i=21,j=21,k=17", &[("A", "coo"), ("B", "coo")]),
    ("A(i,j,k) = B(i,j,l) * C(l,k)", "i=9,j=8,k=7,l=6", &[("A", "csf:3"), ("B", "{C,C,C}(2,0,1)"), ("C", "csr")]),
    (
        "A(i,j,k) = B(i,j,l) * C(l,k)",
        "i=9,j=8,k=7,l=6",
        &[("A", "{C,C,C}(2,0,1)"), ("B", "{C,C,C}(2,0,1)"), ("C", "csr")],
    ),
];

#[test]
fn products_by_rows_of_what_is_summed_over_are_computed_by_rows_or_columns_of_the_result() {
    for (statement, size, formats) in SUMMED_FIRST {
        let formats = stored(formats);
        let formats: Vec<&str> = formats.iter().map(String::as_str).collect();
        let common = [&[*statement, "--size", size][..], &formats].concat();
        for (nodes, grid) in [(1, &["--grid", "3"][..]), (2, &[]), (2, &["--grid", "5"])] {
            let workers: &[&str] = if nodes > 1 { &["--workers", "1"] } else { &[] };
            let all = [&common[..], grid, workers, &["--repeat", "2", "--verify"]].concat();
            let (code, out, error) = run(nodes, &all);
            assert!(code == Some(0) && out.contains("within rounding"), "{all:?} on {nodes}\n{out}\n{error}");
        }
        let (code, out, error) = run(1, &[&common[..], &["--grid", "3", "--explain"]].concat());
        assert!(code == Some(0) && out.contains("in this order points have parts of A"), "{out}\n{error}");
    }
}

#[test]
fn results_that_points_assemble_are_computed_on_grids_of_any_shape() {
    let sum: (&str, &str) = ("A(i,j) = B(i,j) + C(i,j)", "i=23,j=19");
    let sampled = ("A(i,j) = B(i,j) * P(i,k) * Q(k,j)", "i=23,j=19,k=5");
    let cube = ("A(i,j,k) = B(i,j,k) + C(i,j,k)", "i=9,j=8,k=7");
    for ((statement, size), formats) in [
        (sum, &[("A", "csr"), ("B", "csr"), ("C", "csr")][..]),
        (sum, &[("A", "csc"), ("B", "csr"), ("C", "dcsr")]),
        (sum, &[("A", "ell"), ("B", "csr"), ("C", "csr")]),
        (sum, &[("A", "dcsr"), ("B", "csc"), ("C", "csc")]),
        (sum, &[("A", "bitmap"), ("B", "csr"), ("C", "csr")]),
        (sampled, &[("A", "dcsr"), ("B", "dcsr")]),
        (cube, &[("A", "csf:3"), ("B", "csf:3"), ("C", "csf:3")]),
    ] {
        let formats = stored(formats);
        let formats: Vec<&str> = formats.iter().map(String::as_str).collect();
        let common = [&[statement, "--size", size][..], &formats].concat();
        for (nodes, grid) in [(1, "2x2"), (2, "2x3"), (1, "1x4"), (1, "40x2")] {
            let workers: &[&str] = if nodes > 1 { &["--workers", "1"] } else { &[] };
            let all = [&common[..], &["--grid", grid, "--repeat", "1", "--verify"], workers].concat();
            let (code, out, error) = run(nodes, &all);
            assert!(code == Some(0) && out.contains("within rounding"), "{all:?} on {nodes}\n{out}\n{error}");
        }
        let (code, out, error) = run(1, &[&common[..], &["--grid", "2x2", "--explain"]].concat());
        assert!(
            code == Some(0) && out.contains("grid 2x2: one loop is distributed over its 4 processors"),
            "{out}\n{error}"
        );
        // What points can assemble on the grid as it is, is not changed.
        let (code, out, _) = run(1, &[&common[..], &["--grid", "4x1", "--explain"]].concat());
        assert!(code == Some(0) && !out.contains("one loop is distributed"), "{out}");
    }
}

#[test]
fn statements_of_files_with_entries_say_how_these_are_stored() {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("the folder can be written");
        path.display().to_string()
    };
    let market = write("b.mtx", "%%MatrixMarket matrix coordinate real general\n3 4 2\n1 1 2.5\n3 4 -1\n");
    let all = write("d.mtx", "%%MatrixMarket matrix array real general\n3 4\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n");
    let entries = write("b.tns", "1 1 2.5\n3 4 -1\n");
    let product = "a(i) = B(i,j) * c(j)";
    for file in [&market, &entries] {
        let given = format!("B:{file}");
        // With no format at all, and with one for another tensor, by name or by letters.
        for formats in [&[][..], &["-f", "c:s"], &["--format", "c={C}"], &["-f", "c:s", "--split", "i=2"]] {
            let (code, out, error) = run(1, &[&[product, "-i", &given][..], formats].concat());
            let is_told = error.contains("such as --format B=csr");
            assert!(code == Some(1) && out.is_empty() && is_told, "{formats:?}: {code:?} {error}");
        }
        let (code, out, error) = run(1, &[product, "-i", &given, "-f", "B:ds", "--verify"]);
        assert!(code == Some(0) && out.contains("within rounding"), "{out}\n{error}");
    }
    // Dense tensors, and dense files, need none.
    let given = format!("B:{all}");
    let (code, out, error) = run(1, &[product, "-i", &given, "-f", "c:s", "--verify"]);
    assert!(code == Some(0) && out.contains("B as {D,D}(0,1)"), "{out}\n{error}");
}

#[test]
fn memory_that_is_short_is_told_with_what_helps() {
    let product = ["A(i,j) = B(i,k) * C(k,j)", "--size", "i=200,j=200,k=200", "--grid", "2", "--repeat", "1"];
    let formats = stored(&[("A", "csr"), ("B", "csr"), ("C", "csr")]);
    let formats: Vec<&str> = formats.iter().map(String::as_str).collect();
    let (code, _, error) = run(1, &[&product[..], &formats, &["--memory", "64KiB"]].concat());
    assert!(code == Some(1) && error.contains("hint: give data more memory with --memory"), "{code:?} {error}");
    // Also where one kernel computes, of dense results before it begins.
    let product = [&product[..3], &["--repeat", "1", "--memory", "64KiB"]].concat();
    let (code, _, error) = run(1, &[&product[..], &formats].concat());
    let expected = "error: what tensors store takes ";
    assert!(code == Some(1) && error.starts_with(expected) && error.contains("--memory"), "{code:?} {error}");
    let dense = [
        "A(i,j) = B(i,k) * C(k,j)",
        "--size",
        "i=1000000,j=1000000,k=2",
        "--memory",
        "1MiB",
        "-f",
        "B:ss",
        "-f",
        "C:ss",
    ];
    let (code, _, error) = run(1, &dense);
    assert!(code == Some(1) && error.starts_with(expected), "{code:?} {error}");
    let large = ["A(i,j) = B(i,k) * C(k,j)", "--size", "i=40000000,j=40000000,k=2", "--grid", "2", "--format", "B=csr"];
    let (code, _, error) = run(1, &[&large[..], &["--format", "C=csr", "--generate", "B=uniform:1e-6"]].concat());
    let expected = "hint: data may take most of this machine's memory: take smaller tensors with --size";
    assert!(code == Some(1) && error.contains(expected), "{code:?} {error}");
}

#[test]
fn files_that_cannot_be_written_and_those_left_behind_are_told() {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(folder.path().join("file"), "").expect("the folder can be written");
    let statement = ["A(i,j) = B(i,j) * 2", "--size", "i=4,j=4", "--repeat", "1", "-f", "B:ds"];
    for (name, format) in [("a.tcs", "A:ds"), ("a.mtx", "A:ds")] {
        for grid in [&[][..], &["--grid", "2"]] {
            for (place, told) in [("file/", "is a file, and no folder"), ("no folder/", "there is no folder `")] {
                let into = path(&format!("{place}{name}"));
                let (code, _, error) = run(1, &[&statement[..], &["-f", format, "-o", &into], grid].concat());
                assert!(code == Some(1) && error.contains(told) && !error.contains("at path"), "{code:?} {error}");
            }
        }
    }
    let left = folder.path().join(".a.tcs.00000000000000ff.part");
    std::fs::write(&left, "").expect("the folder can be written");
    for grid in [&[][..], &["--grid", "2"]] {
        let into = path("a.tcs");
        let (code, _, error) = run(1, &[&statement[..], &["-f", "A:ds", "-o", &into], grid].concat());
        let expected = format!("warning: `{}` is what another program has written", left.display());
        assert!(code == Some(0) && error.contains(&expected) && error.lines().count() == 1, "{code:?} {error}");
    }
    assert!(left.exists());
}
