//! Text files and arrays as operands on several processes: tasks read their entries, each process its own ranges of bytes.

use std::fs::{self, File};
use std::io::BufReader;

use maniple_files::npy;
use maniple_files::npz::{Archive, Compression, Sparse};
use maniple_files::tcs::Tensor;

use crate::tensor_tcs_on_nodes::{inputs, read, run, told};

#[test]
fn results_are_the_same_whichever_files_operands_are_in() {
    let folder = inputs("text");
    for [from, to] in
        [["b.tcs", "b.mtx"], ["t.tcs", "t.tns"], ["b.tcs", "b.npz"], ["t.tcs", "t.npz"], ["t.tcs", "t.npy"]]
    {
        told(1, &folder, &["convert", from, to]);
    }
    let spmv = ["a(i) = B(i,j) * c(j)", "-f", "B:csr"];
    let columns = ["a(j) = B(i,j) * c(i)", "-f", "B:csc"];
    let ttv = ["A(i,j) = T(i,j,l) * c(l)", "-f", "T:csf:3"];
    for (statement, levels, file) in [
        (&spmv[..], "B:b.tcs", "B:b.mtx"),
        (&columns, "B:b.tcs", "B:b.mtx"),
        (&ttv, "T:t.tcs", "T:t.tns"),
        (&spmv, "B:b.tcs", "B:b.npz"),
        (&columns, "B:b.tcs", "B:b.npz"),
        (&ttv, "T:t.tcs", "T:t.npz"),
        (&ttv, "T:t.tcs", "T:t.npy"),
    ] {
        let usual = ["--workers", "1", "--repeat", "1", "-o"];
        told(1, &folder, &[statement, &["-i", levels], &usual, &["right.tcs"]].concat());
        let right = Tensor::<f64>::read(&read(&folder, "right.tcs")).unwrap();
        for (nodes, file) in [(1, file), (2, file), (4, file), (2, levels)] {
            let out = told(nodes, &folder, &[statement, &["-i", file], &usual, &["found.tcs"]].concat());
            let line = out.lines().find(|line| line.starts_with("  read"));
            assert_eq!(nodes > 1, line.is_some_and(|line| line.contains("by node 1")), "{out}");
            let found = Tensor::<f64>::read(&read(&folder, "found.tcs")).unwrap();
            assert_eq!((&found.levels, &found.arrays), (&right.levels, &right.arrays));
            let pairs = found.values.iter().zip(&right.values);
            assert!(pairs.clone().all(|(one, two)| (one - two).abs() < 1e-9), "{statement:?} of {file} on {nodes}");
        }
        told(2, &folder, &[statement, &["-i", file, "--workers", "1", "--repeat", "1", "--verify"]].concat());
    }
}

#[test]
fn a_line_that_makes_no_sense_is_told_once() {
    let folder = inputs("wrong-text");
    told(1, &folder, &["convert", "b.tcs", "b.mtx"]);
    let spmv = ["a(i) = B(i,j) * c(j)", "-f", "B:csr", "-i", "B:b.mtx", "-o", "a.tcs"];
    let out = told(2, &folder, &[&spmv[..], &["--explain"]].concat());
    assert!(out.contains("operand B: the lines of b.mtx, extents [310, 230], read by tasks on all nodes"), "{out}");
    let text = fs::read_to_string(folder.join("b.mtx")).unwrap();
    let line = text.lines().nth(999).unwrap();
    fs::write(folder.join("b.mtx"), text.replace(&format!("\n{line}\n"), "\n1 x 2\n")).unwrap();
    for nodes in [1, 2] {
        let (code, _, error) = run(nodes, &folder, &spmv);
        assert_eq!(code, Some(1), "{error}");
        let told = error.lines().filter(|line| line.starts_with("error: b.mtx:1000: "));
        assert!(told.count() >= 1, "{error}");
        assert!(!folder.join("a.tcs").exists());
    }
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

#[test]
fn arrays_are_read_in_ranges_where_that_can_be_and_whole_otherwise() {
    let folder = inputs("arrays");
    told(1, &folder, &["convert", "b.tcs", "b.npz"]);
    let archive = Archive::new(BufReader::new(File::open(folder.join("b.npz")).unwrap()));
    let sparse = Sparse::read(&mut archive.unwrap()).unwrap();
    sparse.write(File::create(folder.join("packed.npz")).unwrap(), Compression::Deflate).unwrap();
    let elements: Vec<f64> = (0..230 * 7).map(f64::from).collect();
    npy::write_array(&mut File::create(folder.join("c.npy")).unwrap(), &[230, 7], &elements).unwrap();
    let product = ["A(i,k) = B(i,j) * C(j,k)", "-f", "B:csr", "-i", "C:c.npy", "--workers", "1", "--repeat", "1"];
    let mut results = Vec::new();
    for (nodes, file, reads) in [(1, "b.npz", ""), (2, "b.npz", "BC"), (4, "b.npz", "BC"), (2, "packed.npz", "C")] {
        let out = told(nodes, &folder, &[&product[..], &["-i", &format!("B:{file}"), "-o", "a.npy"]].concat());
        let line = out.lines().find(|line| line.starts_with("  read")).unwrap_or_default();
        for name in ["B", "C"] {
            assert_eq!(
                line.contains(&format!("{name}: ")) && line.contains("by node 1"),
                reads.contains(name),
                "{out}"
            );
        }
        results.push(read(&folder, "a.npy"));
        // Written as they are by tasks on all nodes.
        let line = out.lines().find(|line| line.starts_with("  written")).unwrap_or_default();
        assert_eq!(line.contains("by node 1"), nodes > 1, "{out}");
        told(nodes, &folder, &[&product[..], &["-i", &format!("B:{file}"), "--verify"]].concat());
    }
    assert!(results.iter().all(|result| *result == results[0]));
    let out = told(2, &folder, &[&product[..], &["-i", "B:b.npz", "--explain"]].concat());
    assert!(out.contains("operand B: the elements of b.npz, extents [310, 230], read by tasks on all nodes"), "{out}");
    // Of another type than is computed with.
    let out = told(2, &folder, &[&product[..], &["-i", "B:b.npz", "--type", "f32"]].concat());
    assert!(!out.lines().any(|line| line.starts_with("  read")), "{out}");
}

#[test]
fn text_is_read_by_tasks_as_numbers_of_the_type_that_is_asked_for() {
    let folder = inputs("text-types");
    told(1, &folder, &["convert", "b.tcs", "b.mtx"]);
    let (mut lines, mut count) = (String::new(), 0);
    for row in 1..=310 {
        for column in (row % 7 + 1..=230).step_by(7) {
            lines += &format!("{row} {column} {}\n", row * column % 5 + 1);
            count += 1;
        }
    }
    let head = format!("%%MatrixMarket matrix coordinate integer general\n310 230 {count}\n");
    fs::write(folder.join("whole.mtx"), head + &lines).unwrap();
    for (file, element) in [("b.mtx", "f32"), ("whole.mtx", "i32"), ("whole.mtx", "f32"), ("whole.mtx", "u8")] {
        let input = format!("B:{file}");
        let sums = ["a(i) = B(i,j)", "-f", "B:csr", "-i", &input, "-o", "a.npy", "--type", element, "--verify"];
        let mut results = Vec::new();
        for nodes in [1, 2, 3] {
            let out = told(nodes, &folder, &sums);
            let is_by_tasks = out.lines().any(|line| line.starts_with("  read") && line.contains("by node 1"));
            assert_eq!(is_by_tasks, nodes > 1, "{file} as {element}: {out}");
            results.push(read(&folder, "a.npy"));
        }
        assert!(results.iter().all(|result| *result == results[0]), "{file} as {element}");
    }
}

#[test]
fn results_are_the_same_text_on_any_nodes() {
    let folder = inputs("written-text");
    let scaled = ["S(i,j) = B(i,j) * c(j)", "-i", "B:b.tcs"];
    let sparse = ["U(i,j,l) = T(i,j,l) * c(l)", "-i", "T:t.tcs"];
    let sums = ["a(i) = B(i,j) * c(j)", "-i", "B:b.tcs", "-f", "a:{C}"];
    for (statement, format, file) in [
        (&scaled[..], "S:ds", "mtx"),
        (&scaled, "S:ds", "tns"),
        (&scaled, "S:csc", "mtx"),
        (&scaled, "S:coo", "mtx"),
        (&sparse, "U:sss", "tns"),
        (&sparse, "U:csf:3", "tns"),
        (&sums, "B:ds", "mtx"),
        (&sums, "B:ds", "tns"),
    ] {
        let mut texts = Vec::new();
        for (nodes, serial) in [(1, false), (2, false), (4, false), (3, true)] {
            let name = format!("{nodes}.{file}");
            let options = ["-f", format, "--workers", "1", "--repeat", "1", "-o", &name];
            let others: &[&str] = if serial { &["--serial-writes"] } else { &[] };
            let out = told(nodes, &folder, &[statement, &options, others].concat());
            let line = out.lines().find(|line| line.starts_with("  written"));
            assert_eq!(nodes > 1, line.is_some_and(|line| line.contains("by node 1")), "{statement:?} {format}: {out}");
            texts.push(String::from_utf8(read(&folder, &name)).unwrap());
            let left = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
            assert!(left.into_iter().all(|name| !name.to_string_lossy().contains(".part")), "{statement:?} {format}");
        }
        assert!(texts[0].lines().count() > 200, "{}", texts[0]);
        assert!(texts.iter().all(|text| *text == texts[0]), "{statement:?} {format} {file}");
    }
    // What can't be written leaves nothing.
    fs::create_dir(folder.join("taken.mtx")).unwrap();
    let (code, _, error) = run(2, &folder, &[&scaled[..], &["-f", "S:ds", "-o", "taken.mtx"]].concat());
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("taken.mtx"), "{error}");
}
