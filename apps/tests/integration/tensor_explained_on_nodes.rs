//! The bytes that nodes send each other by `--explain`, compared with the bytes that they send when statements run.

use std::fs::{self, File};

use maniple_files::npy;

use crate::tensor_tcs_on_nodes::{inputs, told};

/// Returns the rest of a line that begins with a text.
fn after<'a>(out: &'a str, text: &str) -> &'a str {
    let line = out.lines().find_map(|line| line.trim_start().strip_prefix(text));
    line.unwrap_or_else(|| panic!("{text}: {out}")).trim()
}

#[test]
fn what_nodes_send_is_what_the_explanation_counts() {
    let folder = inputs("explained-sends");
    told(1, &folder, &["convert", "b.tcs", "b.mtx"]);
    let elements: Vec<f64> = (0..230).map(f64::from).collect();
    npy::write_array(&mut File::create(folder.join("c.npy")).unwrap(), &[230], &elements).unwrap();
    let lines: String = (0..230).map(|number| format!("{number}\n")).collect();
    let text = format!("%%MatrixMarket matrix array real general\n230 1\n{lines}");
    fs::write(folder.join("c.mtx"), text).unwrap();
    let spmv = "a(i) = B(i,j) * c(j)";
    let shares = "fuse(i, j, f); pos(f, p, B); divide(p, po, pi, 4); distribute({po})";
    let columns = "divide(j, jo, ji, 4); reorder({jo, i, ji}); distribute(jo)";
    let rounds = "divide(i, io, ii, 4); divide(ii, ir, ic, 5); distribute(io); communicate({B, W}, ir)";
    let cases: &[&[&str]] = &[
        &[spmv, "-f", "B:csr", "-i", "B:b.mtx"],
        &[spmv, "-f", "B:csr", "-i", "B:b.mtx", "-i", "c:c.npy"],
        &[spmv, "-i", "B:b.tcs", "--place", "c=x -> x"],
        &[spmv, "-i", "B:b.tcs", "--place", "B=xy -> y"],
        &["A(i,k) = B(i,j) * C(j,k)", "-i", "B:b.tcs", "-i", "C:c.mtx"],
        &[spmv, "-f", "B:csr", "-i", "B:b.mtx", "--schedule", shares],
        &["a(j) = B(i,j) * c(i)", "-f", "B:csc", "-i", "B:b.tcs"],
        &["a(i) = B(i,j) * c(j); d(i) = a(i) + e(i)", "-i", "B:b.tcs"],
        &["A(i,j) = T(i,j,l) * c(l)", "-i", "T:t.tcs"],
        &["P(i,k) = B(i,j) * W(j,k)", "-i", "B:b.tcs", "-i", "W:w.tcs", "-f", "P:ds"],
        &["Y(i,j) = B(i,j) * D(i,k) * E(j,k)", "-i", "B:b.tcs", "-f", "Y:ds", "--size", "k=3"],
        &[
            "P(i,k) = B(i,j) * W(j,k)",
            "-i",
            "B:b.tcs",
            "-i",
            "W:w.tcs",
            "-f",
            "P:ds",
            "--schedule",
            rounds,
            "--memory",
            "64MiB",
        ],
        // What the product stores is known when it is computed.
        &["P(i,k) = B(i,j) * W(j,k); a(i) = P(i,k) * c(k)", "-i", "B:b.tcs", "-i", "W:w.tcs", "-f", "P:ds"],
        &["P(i,k) = B(i,j) * W(j,k); a(k) = P(i,k) * c(i)", "-i", "B:b.tcs", "-i", "W:w.tcs", "-f", "P:ds"],
        &[
            "P(i,k) = B(i,j) * W(j,k); Q(i,l) = P(i,k) * V(k,l); a(i) = Q(i,l)",
            "-i",
            "B:b.tcs",
            "-i",
            "W:w.tcs",
            "-f",
            "P:ds",
            "-f",
            "Q:ds",
            "-f",
            "V:csr",
            "--size",
            "l=50",
        ],
        &[spmv, "-i", "B:b.tcs", "--schedule", columns],
        &[spmv, "-i", "B:b.tcs", "--schedule", columns, "--place", "c=x -> x"],
    ];
    for case in cases {
        for nodes in [2, 4] {
            let explained = told(nodes, &folder, &[case, &["--workers", "1", "--explain"][..]].concat());
            let out = told(nodes, &folder, &[case, &["--workers", "1", "--repeat", "2"][..]].concat());
            for (line, run) in [("sent first ", "in the first run:"), ("sent later ", "in each other run:")] {
                let (found, expected) = (after(&out, line), after(&explained, run));
                assert_eq!(found, expected, "{case:?} on {nodes}, {run}\n{explained}");
            }
        }
    }
}

#[test]
fn a_vector_that_is_gathered_is_sent_element_by_element() {
    let folder = inputs("explained-gathers");
    // Each row has its own column, and the first one of the other half.
    let lines: String =
        (1..=100).map(|row| format!("{row} {row} 1\n{row} {} 1\n", if row > 50 { 1 } else { 51 })).collect();
    let text = format!("%%MatrixMarket matrix coordinate real general\n100 100 200\n{lines}");
    fs::write(folder.join("two.mtx"), text).unwrap();
    let spmv = ["a(i) = B(i,j) * c(j)", "-f", "B:csr", "-i", "B:two.mtx", "--place", "c=x -> x", "--workers", "1"];
    let out = told(2, &folder, &[&spmv[..], &["--explain"]].concat());
    assert_eq!(after(&out, "c:"), "8 B by node 0, 8 B by node 1");
    // Where the last row of the first half ends is where the next one begins, and stored with that.
    assert_eq!(after(&out, "B:"), "0 B by node 0, 4 B by node 1");
    assert_eq!(after(&out, "in the first run:"), "8 B by node 0, 12 B by node 1");
    assert_eq!(after(&out, "in each other run:"), "0 B by node 0, 0 B by node 1");
    let out = told(1, &folder, &[&spmv[..], &["--grid", "2", "--explain"]].concat());
    assert!(!out.contains("sent to other nodes"), "{out}");
}

#[test]
fn an_operand_is_stored_so_that_points_have_their_columns_alone() {
    let folder = inputs("explained-columns");
    let columns = "divide(j, jo, ji, 4); reorder({jo, i, ji}); distribute(jo)";
    let spmv = ["a(i) = B(i,j) * c(j)", "-i", "B:b.tcs", "--schedule", columns, "--workers", "1"];
    let out = told(2, &folder, &[&spmv[..], &["--explain"]].concat());
    let format = "(i,j) -> (j/58: D, i: D, j%58: C)";
    assert!(out.contains(&format!("operand B: as {format}, so that what a point uses of it is together")), "{out}");
    assert!(out.contains("B.0 = offsets of level 2 of B in 4 pieces\nB.1 = level 2 of B below B.0"), "{out}");
    // On one node all of it is near.
    let out = told(1, &folder, &[&spmv[..], &["--explain"]].concat());
    assert!(!out.contains(format), "{out}");
    told(2, &folder, &[&spmv[..], &["--verify"]].concat());
    // It has blocks of one kind, whatever other statements would have.
    let six = "2:divide(j, jo, ji, 6); reorder({jo, i, ji}); distribute(jo)";
    let both =
        ["y(i) = B(i,j) * c(j); z(i) = B(i,j) * d(j)", "-i", "B:b.tcs", "--schedule", columns, "--schedule", six];
    for last in ["--verify", "--explain"] {
        told(2, &folder, &[&both[..], &["--workers", "1", last]].concat());
    }
    // What is placed stays as it is.
    let out = told(2, &folder, &[&spmv[..], &["--place", "B=xy -> ~y", "--explain"]].concat());
    assert!(!out.contains(format), "{out}");
}

#[test]
fn what_passes_by_in_rounds_is_told() {
    let folder = inputs("explained-rounds");
    let rounds = "divide(i, io, ii, 2); divide(ii, ir, ic, 5); distribute(io); communicate({B, W}, ir)";
    let product = ["P(i,k) = B(i,j) * W(j,k)", "-i", "B:b.tcs", "-i", "W:w.tcs", "-f", "P:ds", "--schedule", rounds];
    let product = [&product[..], &["--workers", "1", "--memory", "64MiB"]].concat();
    let out = told(2, &folder, &[&product[..], &["--explain"]].concat());
    for name in ["B", "W"] {
        assert!(out.contains(&format!(" of {name} on a node at a time")), "{out}");
    }
    told(2, &folder, &[&product[..], &["--verify"]].concat());
    // Where there is room, what has come stays.
    let out = told(2, &folder, &[&product[..9], &["--workers", "1", "--explain"]].concat());
    assert!(!out.contains("on a node at a time"), "{out}");
}
