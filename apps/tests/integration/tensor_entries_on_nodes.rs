//! Text files and arrays as operands on several processes: tasks read their entries, each process its own ranges of
//! bytes.

use std::fs::{self, File};
use std::io::BufReader;

use maniple_files::npz::{Archive, Compression, Sparse};
use maniple_files::tcs::Tensor;
use maniple_files::{Order, npy};

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
fn dense_matrices_in_text_are_read_in_ranges() {
    let folder = inputs("dense-text");
    told(1, &folder, &["convert", "b.tcs", "b.mtx"]);
    let elements: String = (0..230).map(|number| format!("{number}\n")).collect();
    let dense = format!("%%MatrixMarket matrix array real general\n230 1\n{elements}");
    fs::write(folder.join("c.mtx"), dense).unwrap();
    let product = ["A(i,k) = B(i,j) * C(j,k)", "-f", "B:csr", "-i", "B:b.mtx", "-i", "C:c.mtx", "--verify"];
    for nodes in [1, 2] {
        let out = told(nodes, &folder, &[&product[..], &["--workers", "1", "--repeat", "1"]].concat());
        assert_eq!(out.contains("; C: ") && out.contains("by node 1"), nodes > 1, "{out}");
    }
    // A column is a vector, and what lists entries a dense matrix, if that is asked for.
    let column = ["a(i) = B(i,j) * c(j)", "-i", "B:b.mtx", "-i", "c:c.mtx", "--workers", "1", "--repeat", "1"];
    for nodes in [1, 3] {
        let mut results = Vec::new();
        for (format, options) in [("B:csr", &["--verify"][..]), ("B:csr", &[]), ("B:dense:2", &[])] {
            let out = told(nodes, &folder, &[&column[..], options, &["-f", format, "-o", "a.npy"]].concat());
            assert_eq!(out.contains("; c: ") && out.contains("by node 1"), nodes > 1, "{out}");
            results.push(doubles(&read(&folder, "a.npy")));
        }
        let is_near = |(one, two): (&f64, &f64)| (one - two).abs() <= 1e-9 * (1.0 + two.abs());
        assert!(results[1..].iter().all(|found| found.iter().zip(&results[0]).all(is_near)), "{results:?}");
    }
}

#[test]
fn arrays_are_read_in_ranges() {
    let folder = inputs("arrays");
    told(1, &folder, &["convert", "b.tcs", "b.npz"]);
    let archive = Archive::new(BufReader::new(File::open(folder.join("b.npz")).unwrap()));
    let sparse = Sparse::read(&mut archive.unwrap()).unwrap();
    sparse.write(File::create(folder.join("packed.npz")).unwrap(), Compression::Deflate).unwrap();
    let elements: Vec<f64> = (0..230 * 7).map(f64::from).collect();
    npy::write_array(&mut File::create(folder.join("c.npy")).unwrap(), &[230, 7], &elements).unwrap();
    let product = ["A(i,k) = B(i,j) * C(j,k)", "-f", "B:csr", "-i", "C:c.npy", "--workers", "1", "--repeat", "1"];
    let mut results = Vec::new();
    for (nodes, file, reads) in [(1, "b.npz", ""), (2, "b.npz", "BC"), (4, "b.npz", "BC"), (3, "packed.npz", "BC")] {
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
    let out = told(2, &folder, &[&product[..], &["-i", "B:b.npz", "--type", "f32", "--verify"]].concat());
    assert!(out.contains("; C: ") && out.contains("by node 1"), "{out}");
    let (code, _, error) = run(2, &folder, &[&product[..], &["-i", "B:b.npz", "--type", "u8"]].concat());
    assert_eq!(code, Some(1), "{error}");
    let says = "error: c.npy: element [36, 4] is 256.0, which is no u8: read it as elements of another type\n";
    assert!(error.starts_with(says), "{error}");
}

#[test]
fn files_with_levels_are_loaded_as_elements_of_another_type() {
    let folder = inputs("cast-levels");
    let sums = ["a(i) = B(i,j) * c(j)", "-i", "B:b.tcs", "--type", "f32", "--repeat", "1"];
    for nodes in [2, 3] {
        let out = told(nodes, &folder, &[&sums[..], &["--verify"]].concat());
        assert!(out.lines().any(|line| line.starts_with("  read") && line.contains("by node 1")), "{out}");
    }
    let text = "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 2 2\n2 3 0.5\n";
    fs::write(folder.join("halves.mtx"), text).unwrap();
    told(1, &folder, &["convert", "halves.mtx", "halves.tcs"]);
    for nodes in [1, 2] {
        let (code, _, error) = run(nodes, &folder, &[sums[0], "-i", "B:halves.tcs", "--type", "i16"]);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains("B") && error.contains("has the element 0.5, which is no i16: "), "{error}");
    }
}

#[test]
fn dense_statements_read_and_write_files_by_parts() {
    let folder = inputs("dense-statements");
    let write = |name: &str, shape: [u64; 2], order: Order| {
        let head = npy::header_of("<f8", order, &shape).unwrap();
        let numbers = (0..shape[0] * shape[1]).map(|number| (number % 11) as f64 - 4.0);
        let bytes: Vec<u8> = numbers.flat_map(f64::to_le_bytes).collect();
        fs::write(folder.join(name), [head, bytes].concat()).unwrap();
    };
    write("b.npy", [70, 40], Order::Rows);
    write("by-columns.npy", [70, 40], Order::Columns);
    write("c.npy", [40, 50], Order::Rows);
    write("a.npy", [70, 50], Order::Rows);
    let listed: String = (0..40 * 50).map(|number| format!("{}\n", number % 7)).collect();
    fs::write(folder.join("c.mtx"), format!("%%MatrixMarket matrix array integer general\n40 50\n{listed}")).unwrap();
    let column = "%%MatrixMarket matrix array real general\n40 1\n".to_owned() + &"2\n".repeat(40);
    fs::write(folder.join("column.mtx"), column).unwrap();
    let product = "A(i,j) = B(i,k) * C(k,j)";
    for arguments in [
        &[product, "-i", "B:b.npy", "-i", "C:c.npy"][..],
        &[product, "-i", "B:by-columns.npy", "-i", "C:c.mtx"],
        &[product, "-i", "B:b.npy", "-i", "C:c.mtx", "--type", "f32"],
        &[product, "-i", "C:c.npy", "-f", "C:columns", "-f", "A:columns"],
        &["A(i,j) += B(i,k) * C(k,j)", "-i", "A:a.npy", "-i", "B:b.npy", "-i", "C:c.npy"],
        &["a(i) = B(i,k) * c(k)", "-i", "B:by-columns.npy", "-i", "c:column.mtx"],
    ] {
        let mut results = Vec::new();
        for (nodes, repeat) in [(1, "1"), (2, "1"), (3, "2")] {
            let usual = ["--workers", "1", "--repeat", repeat];
            told(nodes, &folder, &[arguments, &usual, &["-o", "found.npy"]].concat());
            results.push(read(&folder, "found.npy"));
            told(nodes, &folder, &[arguments, &usual, &["--verify"]].concat());
        }
        let values = |bytes: &[u8]| bytes[npy::NpyHeader::read(&mut &bytes[..]).unwrap().start as usize..].to_vec();
        // Whole numbers, which add up to the same in any order. A result by columns is written as it is stored.
        let is_by_columns = arguments.contains(&"A:columns");
        let first = usize::from(is_by_columns);
        for found in &results[first + 1..] {
            assert!(values(found) == values(&results[first]), "{arguments:?}");
        }
    }
    // What is wrong is said as on one node.
    fs::write(
        folder.join("c.mtx"),
        format!("%%MatrixMarket matrix array integer general\n40 50\n{}", listed.replacen("3\n", "x\n", 1)),
    )
    .unwrap();
    for nodes in [1, 2] {
        let (code, _, error) = run(nodes, &folder, &[product, "-i", "B:b.npy", "-i", "C:c.mtx"]);
        assert_eq!(code, Some(1), "{error}");
        assert!(error.starts_with("error: c.mtx:6: 'x' is not a whole number\n"), "{error}");
        let (code, _, error) = run(nodes, &folder, &[product, "-i", "B:b.npy", "-o", "nowhere/a.npy"]);
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains("nowhere/a.npy"), "{error}");
    }
}

/// Each sum has loops of its own.
#[test]
fn sums_of_sums_are_computed_by_all_nodes() {
    let folder = inputs("sums-of-sums");
    let given = ["-i", "B:b.tcs", "--workers", "1", "--repeat", "2", "--size", "k=50"];
    for statement in
        ["a = B(i,j) + d(k)", "a = B(i,j) * c(j) - B(i,j) - d(k)", "a = 2 * d(k) - B(i,j) * c(j)", "a += B(i,j) + d(k)"]
    {
        let mut results = Vec::new();
        for nodes in [1, 2, 3] {
            told(nodes, &folder, &[&[statement], &given[..], &["-o", "a.npy"]].concat());
            results.push(doubles(&read(&folder, "a.npy"))[0]);
            told(nodes, &folder, &[&[statement], &given[..], &["--verify"]].concat());
        }
        let is_near = |found: &f64| (found - results[0]).abs() <= 1e-9 * (1.0 + results[0].abs());
        assert!(results.iter().all(is_near), "{statement}: {results:?}");
    }
}

/// The elements of a `.npy` file.
fn doubles(bytes: &[u8]) -> Vec<f64> {
    let start = npy::NpyHeader::read(&mut &bytes[..]).unwrap().start as usize;
    bytes[start..].chunks(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// A tensor that statements assign to begins as it is given, each time that they run.
#[test]
fn what_is_assigned_to_is_read_by_tasks_too() {
    let folder = inputs("assigned");
    told(1, &folder, &["convert", "b.tcs", "b.npz"]);
    told(1, &folder, &["convert", "b.tcs", "b.mtx"]);
    let elements: Vec<f64> = (0..310).map(f64::from).collect();
    npy::write_array(&mut File::create(folder.join("a.npy")).unwrap(), &[310], &elements).unwrap();
    let lines: String = elements.iter().enumerate().map(|(row, value)| format!("{} {value}\n", row + 1)).collect();
    fs::write(folder.join("a.tns"), &lines).unwrap();
    let listed: String = elements.iter().map(|value| format!("{value}\n")).collect();
    fs::write(folder.join("a.mtx"), format!("%%MatrixMarket matrix array real general\n310 1\n{listed}")).unwrap();
    let added = ["a(i) += B(i,j) * c(j)", "-i", "B:b.tcs"];
    let of_column = ["A(i,k) = A(i,k) + B(i,j) * C(j,k)", "-i", "B:b.tcs", "--size", "k=1"];
    let scaled = ["B(i,j) = B(i,j) * c(j)", "-f", "B:csr"];
    let later = ["b(j) = B(i,j) * a(i); a(i) = B(i,j) * b(j)", "-i", "B:b.tcs", "-f", "B:ds"];
    for (statement, inputs) in [
        (&added[..], &["-i", "a:a.npy"][..]),
        (&added, &["-i", "a:a.tns", "-f", "a:dense:1"]),
        (&added, &[]),
        (&of_column, &["-i", "A:a.mtx"]),
        (&of_column, &["-i", "A:a.mtx", "-f", "A:{D,D}(1,0)"]),
        (&scaled, &["-i", "B:b.tcs"]),
        (&scaled, &["-i", "B:b.npz"]),
        (&scaled, &["-i", "B:b.mtx"]),
        (&scaled, &["-i", "B:b.tcs", "-f", "B:dense:2"]),
        (&later, &["-i", "a:a.npy"]),
    ] {
        let formats = if inputs.contains(&"-f") { &statement[..1] } else { statement };
        let statement = if statement[0] == scaled[0] { formats } else { statement };
        let mut results = Vec::new();
        for (nodes, repeat) in [(1, "1"), (2, "1"), (3, "2")] {
            let result = format!("{nodes}.npy");
            let usual = ["--workers", "1", "--repeat", repeat, "-o", &result];
            let out = told(nodes, &folder, &[statement, inputs, &usual].concat());
            let line = out.lines().find(|line| line.starts_with("  read")).unwrap_or_default();
            let name = inputs.get(1).map_or("B", |input| &input[..1]);
            let is_by_tasks = line.contains(&format!("{name}: ")) && line.contains("by node 1");
            assert!(is_by_tasks || nodes == 1, "{statement:?} {inputs:?} on {nodes}: {out}");
            results.push(doubles(&read(&folder, &result)));
            told(nodes, &folder, &[statement, inputs, &["--repeat", repeat, "--verify"]].concat());
        }
        for found in &results[1..] {
            let pairs = || found.iter().zip(&results[0]);
            let is_near = |(one, two): (&f64, &f64)| (one - two).abs() <= 1e-9 * (1.0 + two.abs());
            assert!(found.len() == results[0].len() && pairs().all(is_near), "{statement:?} {inputs:?}");
        }
    }
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

#[test]
fn divisors_are_looked_at_by_tasks_and_wrong_ones_are_told() {
    let folder = inputs("divisors");
    let matrix = "%%MatrixMarket matrix coordinate real general\n6 6 4\n1 2 2\n2 1 4\n5 3 7\n6 6 8\n";
    fs::write(folder.join("d.mtx"), matrix).unwrap();
    for (file, at_4) in [("fits.npy", 5.0), ("zero.npy", 0.0), ("nan.npy", f64::NAN)] {
        let elements = [1.0, 2.0, 3.0, 4.0, at_4, 6.0];
        npy::write_array(&mut File::create(folder.join(file)).unwrap(), &[6], &elements).unwrap();
    }
    let (rows, sums) = (&["C(i,j) = A(i,j) / x(i)", "-f", "C:csr"][..], &["y(i) = A(i,j) / x(j)"][..]);
    for (nodes, statement) in [(1, rows), (2, rows), (3, rows), (1, sums), (2, sums), (3, sums)] {
        let options = [statement, &["-i", "A:d.mtx", "-f", "A:csr", "--split", "i=3"]].concat();
        told(nodes, &folder, &[&options[..], &["-i", "x:fits.npy", "--verify"]].concat());
        for (file, element) in [("zero.npy", "0"), ("nan.npy", "NaN")] {
            let (code, _, error) = run(nodes, &folder, &[&options[..], &["-i", &format!("x:{file}")]].concat());
            assert_eq!(code, Some(1), "{error}");
            let says = format!("x[4] is {element}, and zero divided by that is not zero");
            // A node may be ended before it has told.
            assert!((1..=nodes).contains(&error.lines().filter(|line| line.contains(&says)).count()), "{error}");
        }
    }
}
