//! Text files as operands on several processes: tasks read their lines, each process its own ranges of bytes.

use std::fs;

use maniple_files::tcs::Tensor;

use crate::tensor_tcs_on_nodes::{inputs, read, run, told};

#[test]
fn results_are_the_same_whichever_files_operands_are_in() {
    let folder = inputs("text");
    for [from, to] in [["b.tcs", "b.mtx"], ["t.tcs", "t.tns"]] {
        told(1, &folder, &["convert", from, to]);
    }
    let spmv = ["a(i) = B(i,j) * c(j)", "-f", "B:csr"];
    let columns = ["a(j) = B(i,j) * c(i)", "-f", "B:csc"];
    let ttv = ["A(i,j) = T(i,j,l) * c(l)", "-f", "T:csf:3"];
    for (statement, levels, text) in
        [(&spmv[..], "B:b.tcs", "B:b.mtx"), (&columns, "B:b.tcs", "B:b.mtx"), (&ttv, "T:t.tcs", "T:t.tns")]
    {
        let usual = ["--workers", "1", "--repeat", "1", "-o"];
        told(1, &folder, &[statement, &["-i", levels], &usual, &["right.tcs"]].concat());
        let right = Tensor::<f64>::read(&read(&folder, "right.tcs")).unwrap();
        for (nodes, file) in [(1, text), (2, text), (4, text), (2, levels)] {
            let out = told(nodes, &folder, &[statement, &["-i", file], &usual, &["found.tcs"]].concat());
            let line = out.lines().find(|line| line.starts_with("  read"));
            assert_eq!(nodes > 1, line.is_some_and(|line| line.contains("by node 1")), "{out}");
            let found = Tensor::<f64>::read(&read(&folder, "found.tcs")).unwrap();
            assert_eq!((&found.levels, &found.arrays), (&right.levels, &right.arrays));
            let pairs = found.values.iter().zip(&right.values);
            assert!(pairs.clone().all(|(one, two)| (one - two).abs() < 1e-9), "{statement:?} of {file} on {nodes}");
        }
        told(2, &folder, &[statement, &["-i", text, "--workers", "1", "--repeat", "1", "--verify"]].concat());
    }
}

#[test]
fn a_line_that_makes_no_sense_is_told_once() {
    let folder = inputs("wrong-text");
    told(1, &folder, &["convert", "b.tcs", "b.mtx"]);
    let text = fs::read_to_string(folder.join("b.mtx")).unwrap();
    let line = text.lines().nth(999).unwrap();
    fs::write(folder.join("b.mtx"), text.replace(&format!("\n{line}\n"), "\n1 x 2\n")).unwrap();
    let spmv = ["a(i) = B(i,j) * c(j)", "-f", "B:csr", "-i", "B:b.mtx", "-o", "a.tcs"];
    for nodes in [1, 2] {
        let (code, _, error) = run(nodes, &folder, &spmv);
        assert_eq!(code, Some(1), "{error}");
        let told = error.lines().filter(|line| line.starts_with("error: b.mtx:1000: "));
        assert!(told.count() >= 1, "{error}");
        assert!(!folder.join("a.tcs").exists());
    }
    let out = told(2, &folder, &[&spmv[..], &["--explain"]].concat());
    assert!(out.contains("operand B: the lines of b.mtx, extents [310, 230], read by tasks on all nodes"), "{out}");
}

#[test]
fn dense_matrices_in_text_are_operands_on_any_nodes() {
    let folder = inputs("dense-text");
    told(1, &folder, &["convert", "b.tcs", "b.mtx"]);
    let elements: String = (0..230).map(|number| format!("{number}\n")).collect();
    let dense = format!("%%MatrixMarket matrix array real general\n230 1\n{elements}");
    fs::write(folder.join("c.mtx"), dense).unwrap();
    let product = ["A(i,k) = B(i,j) * C(j,k)", "-f", "B:csr", "-i", "B:b.mtx", "-i", "C:c.mtx", "--verify"];
    for nodes in [1, 2] {
        told(nodes, &folder, &[&product[..], &["--workers", "1", "--repeat", "1"]].concat());
    }
}
