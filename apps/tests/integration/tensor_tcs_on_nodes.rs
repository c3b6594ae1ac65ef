//! `.tcs` files as operands and results of statements on several processes, as tasks read and write them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use maniple_files::tcs::{TcsHeader, Tensor};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tcs-on-nodes-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The exit code of `maniple tensor` on so many nodes, and what they print on standard output and standard error,
/// without what the launcher says of nodes that fail, before or after these.
pub(crate) fn run(nodes: usize, folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_maniple");
    let mut command = Command::new(program);
    if nodes > 1 {
        command.args(["launch", "-n", &nodes.to_string(), "--no-prefix", "--", program]);
    }
    command.arg("tensor").args(arguments).env_remove("RUST_BACKTRACE").stdin(Stdio::null()).current_dir(folder);
    let output = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    let error = text(output.stderr);
    let error = error.split_inclusive('\n').filter(|line| !line.starts_with("maniple launch: ")).collect();
    (output.status.code(), text(output.stdout), error)
}

#[track_caller]
pub(crate) fn told(nodes: usize, folder: &Path, arguments: &[&str]) -> String {
    let (code, out, error) = run(nodes, folder, arguments);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{arguments:?} on {nodes}\n{out}");
    out
}

pub(crate) fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

/// A folder with a matrix and a tensor of random elements.
pub(crate) fn inputs(name: &str) -> PathBuf {
    let folder = folder(name);
    let generate = |statement: &str, size: &str, format: &str, file: &str| {
        let made = ["--size", size, "--generate", "X=uniform:0.2", "-f", &format!("Y:{format}"), "-o", file];
        told(1, &folder, &[&[statement], &made[..], &["-f", &format!("X:{format}")]].concat());
    };
    generate("Y(i,j) = X(i,j)", "i=310,j=230", "ds", "b.tcs");
    generate("Y(i,j,l) = X(i,j,l)", "i=19,j=17,l=12", "sss", "t.tcs");
    generate("Y(i,j) = X(i,j)", "i=230,j=90", "ds", "w.tcs");
    folder
}

#[test]
fn each_node_has_a_block_of_the_result_where_no_split_says_so() {
    let folder = inputs("dealt");
    let spmv = ["a(i) = B(i,j) * c(j)", "-i", "B:b.tcs", "--workers", "1", "--repeat", "1"];
    told(1, &folder, &[&spmv[..], &["-o", "one.tcs"]].concat());
    let expected = Tensor::<f64>::read(&read(&folder, "one.tcs")).unwrap();
    for blocks in [
        &["--split", "j=5"][..],
        &["--split", "j=5", "--order", "j,i"],
        &["--split", "i=8", "--map", "j"],
        &["--split", "i=1"],
        &["--order", "j,i"],
    ] {
        for nodes in [2, 3] {
            told(nodes, &folder, &[&spmv[..], blocks, &["--verify"]].concat());
            let out = told(nodes, &folder, &[&spmv[..], blocks, &["-o", "found.tcs"]].concat());
            let line = out.lines().find(|line| line.starts_with("  written")).unwrap_or_else(|| panic!("{out}"));
            assert!(line.contains("by node 1"), "{out}");
            let found = Tensor::<f64>::read(&read(&folder, "found.tcs")).unwrap();
            assert_eq!(found.values.len(), expected.values.len());
            let pairs = found.values.iter().zip(&expected.values);
            assert!(pairs.clone().all(|(one, two)| (one - two).abs() < 1e-9), "{blocks:?} on {nodes}");
        }
    }
}

#[test]
fn partial_results_of_a_number_are_made_on_all_nodes() {
    let folder = inputs("numbers");
    for blocks in
        [&["--split", "j=5"][..], &["--split", "i=8"], &["--split", "i=2", "--split", "j=2"], &["--order", "j,i"]]
    {
        for nodes in [1, 2, 3] {
            let sum = ["a = B(i,j) * c(j)", "-i", "B:b.tcs", "--workers", "1", "--repeat", "1", "--verify"];
            let out = told(nodes, &folder, &[&sum[..], blocks].concat());
            assert!(out.contains("within rounding"), "{blocks:?} on {nodes}: {out}");
        }
    }
}

#[test]
fn products_of_files_are_the_same_files_on_any_nodes_in_any_blocks() {
    let folder = inputs("products");
    let spmv = ["a(i) = B(i,j) * c(j)", "-i", "B:b.tcs"];
    let ttm = ["A(i,j,k) = T(i,j,l) * C(k,l)", "-i", "T:t.tcs", "--size", "k=5"];
    let product = ["P(i,k) = B(i,j) * W(j,k)", "-i", "B:b.tcs", "-i", "W:w.tcs", "-f", "P:ds"];
    let scaled = ["S(i,j) = B(i,j) * c(j)", "-i", "B:b.tcs", "-f", "S:ds"];
    for (statement, blocks) in [
        (&spmv[..], &["--split", "i=8"][..]),
        (&spmv, &["--split", "i=4", "--split", "j=3", "--order", "j,i"]),
        (&spmv, &["--split", "i=0,5,5,310"]),
        (&ttm, &["--split", "i=3", "--split", "l=2", "--order", "l,i,j,k"]),
        (&ttm, &["--split", "i=3", "--split", "k=2", "--map", "i"]),
        (&product, &["--split", "i=6"]),
        (&scaled, &["--split", "i=4"]),
    ] {
        let mut files = Vec::new();
        for nodes in [1, 2, 4] {
            let file = format!("{nodes}.tcs");
            // Whole numbers, which add up to the same in any order.
            let numbers = ["--workers", "1", "--repeat", "1", "-o", &file];
            let out = told(nodes, &folder, &[statement, blocks, &numbers].concat());
            for part in ["  read", "  written"] {
                let line = out.lines().find(|line| line.starts_with(part)).unwrap_or_else(|| panic!("{out}"));
                assert_eq!(nodes > 1, line.contains("by node 1"), "{out}");
            }
            files.push(Tensor::<f64>::read(&read(&folder, &file)).unwrap());
        }
        for other in &files[1..] {
            assert_eq!(
                (&other.levels, &other.arrays),
                (&files[0].levels, &files[0].arrays),
                "{statement:?} {blocks:?}"
            );
            let pairs = other.values.iter().zip(&files[0].values);
            assert!(pairs.clone().all(|(one, two)| (one - two).abs() < 1e-9), "{statement:?} {blocks:?}");
        }
        told(2, &folder, &[statement, blocks, &["--workers", "1", "--repeat", "1", "--verify"]].concat());
    }
}

#[test]
fn partial_results_that_are_added_up_are_stored_too() {
    let folder = inputs("extended");
    let spmv = ["a(i) = B(i,j) * c(j)", "-i", "B:b.tcs", "--workers", "1", "--repeat", "1"];
    told(1, &folder, &[&spmv[..], &["--split", "i=2", "-o", "one.tcs"]].concat());
    let expected = Tensor::<f64>::read(&read(&folder, "one.tcs")).unwrap();
    for blocks in [
        &["--split", "i=2", "--split", "j=3", "--order", "j,i", "--extend", "j"][..],
        &["--split", "j=5", "--extend", "j"],
        &["--split", "j=7", "--extend", "j"],
        &["--split", "i=3", "--split", "j=2", "--map", "i,j"],
    ] {
        told(2, &folder, &[&spmv[..], blocks, &["-o", "two.tcs"]].concat());
        let found = Tensor::<f64>::read(&read(&folder, "two.tcs")).unwrap();
        let pairs = found.values.iter().zip(&expected.values);
        assert!(pairs.clone().all(|(one, two)| (one - two).abs() < 1e-9), "{blocks:?}");
    }
}

#[test]
fn nodes_write_one_after_the_other_where_that_is_asked_for() {
    let folder = inputs("serial");
    let scaled = ["S(i,j) = B(i,j) * 2", "-i", "B:b.tcs", "-f", "S:ds", "--workers", "1", "--repeat", "1"];
    told(2, &folder, &[&scaled[..], &["-o", "together.tcs"]].concat());
    told(2, &folder, &[&scaled[..], &["-o", "in_turn.tcs", "--serial-writes"]].concat());
    assert!(read(&folder, "together.tcs") == read(&folder, "in_turn.tcs"));
}

#[test]
fn an_explanation_reads_no_more_than_headers() {
    let folder = inputs("explained");
    let mut damaged = read(&folder, "b.tcs");
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    std::fs::write(folder.join("b.tcs"), damaged).unwrap();
    let spmv = ["a(i) = B(i,j) * c(j)", "-i", "B:b.tcs", "--split", "i=8"];
    let out = told(1, &folder, &[&spmv[..], &["--explain"]].concat());
    let header = TcsHeader::read(&read(&folder, "b.tcs")).unwrap();
    let expected = format!("{} bytes of b.tcs, read by tasks on all nodes", header.bytes() - header.start());
    assert!(out.contains(&expected), "{out}");
    for nodes in [1, 2] {
        let (code, _, error) = run(nodes, &folder, &[&spmv[..], &["-o", "a.tcs"]].concat());
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains("error: b.tcs: val is damaged: its checksum is"), "{error}");
        assert!(!folder.join("a.tcs").exists());
    }
}

#[test]
fn results_that_cannot_be_written_are_told_in_a_line() {
    let folder = inputs("unwritten");
    let spmv = ["a(i) = B(i,j) * c(j)", "-i", "B:b.tcs", "--split", "i=8", "-o", "none/a.tcs"];
    for nodes in [1, 2] {
        let (code, _, error) = run(nodes, &folder, &spmv);
        assert_eq!(code, Some(1), "{error}");
        // What the launcher says may come first.
        let told = "error: cannot write `none/a.tcs`: there is no folder `none`";
        assert!(error.lines().any(|line| line == told), "{error}");
    }
    let (code, _, error) = run(1, &folder, &["a = B(i,j) * c(j)", "-i", "B:b.tcs", "--split", "i=2", "-o", "a.tcs"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("such files hold tensors of 1 to 8 dimensions, and the tensor has 0"), "{error}");
}
