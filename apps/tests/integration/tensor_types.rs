//! In which type statements compute, with tensors from files: that of NumPy, for dense and for sparse tensors, and what
//! that type cannot hold is refused.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use maniple_files::npz::{ArrayValues, Compression, Sparse, Structure};
use maniple_files::{Complex, Number, npy};

use crate::tensor_tcs_on_nodes::{read, run, told};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("types-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A row of these elements, as `NAME.npy` and as `NAME.npz` by coordinates.
fn arrays<T: Number>(folder: &Path, name: &str, elements: &[T], values: fn(Vec<T>) -> ArrayValues) {
    let shape = vec![1, elements.len() as u64];
    let file = |ending: &str| File::create(folder.join(format!("{name}.{ending}"))).unwrap();
    npy::write_array(&mut file("npy"), &shape, elements).unwrap();
    let columns = (0..elements.len() as i64).collect();
    let structure = Structure::Coordinates(vec![vec![0; elements.len()], columns]);
    let sparse = Sparse::new(shape, structure, values(elements.to_vec()), None).unwrap();
    sparse.write(file("npz"), Compression::None).unwrap();
}

/// A file for each type, with its extremes.
fn of_all_types(folder: &Path) {
    arrays(folder, "b1", &[true, false, true, true], ArrayValues::Bool);
    arrays(folder, "u1", &[u8::MAX, 0, 1, 128], ArrayValues::U8);
    arrays(folder, "i1", &[i8::MAX, i8::MIN, 1, -1], ArrayValues::I8);
    arrays(folder, "i2", &[i16::MAX, i16::MIN, 1, -1], ArrayValues::I16);
    arrays(folder, "u4", &[u32::MAX, 0, 1, 1 << 31], ArrayValues::U32);
    arrays(folder, "i4", &[i32::MAX, i32::MIN, 1, -1], ArrayValues::I32);
    arrays(folder, "i8", &[i64::MAX, i64::MIN, (1 << 53) + 1, -1], ArrayValues::I64);
    arrays(folder, "f4", &[f32::MAX, f32::MIN_POSITIVE / 8.0, -0.1, f32::INFINITY], ArrayValues::F32);
    arrays(folder, "f8", &[f64::MAX, f64::MIN_POSITIVE / 8.0, -0.1, f64::INFINITY], ArrayValues::F64);
    arrays(folder, "c8", &[Complex::new(f32::MAX, -0.1), Complex::new(0.0, 1.0)].repeat(2), ArrayValues::C32);
    arrays(folder, "c16", &[Complex::new(f64::MAX, -0.1), Complex::new(0.0, 1.0)].repeat(2), ArrayValues::C64);
}

const TYPES: [&str; 11] = ["b1", "u1", "i1", "i2", "u4", "i4", "i8", "f4", "f8", "c8", "c16"];

/// The type of the elements of a `.npy` file, as its header has it.
fn descr(npy: &[u8]) -> String {
    let header = String::from_utf8_lossy(&npy[10..]).into_owned();
    header.split('\'').nth(3).unwrap()[1..].to_owned()
}

/// The elements of a `.npy` file, which is what comes after the header.
fn elements(npy: &[u8]) -> &[u8] {
    &npy[npy.iter().position(|&byte| byte == b'\n').unwrap() + 1..]
}

const ONCE: [&str; 4] = ["--workers", "1", "--repeat", "1"];

#[test]
fn what_a_file_has_is_what_a_statement_copies_in_every_type_and_format() {
    let folder = folder("copies");
    of_all_types(&folder);
    for name in TYPES {
        let (npy, npz) = (format!("B={name}.npy"), format!("B={name}.npz"));
        let right = read(&folder, &format!("{name}.npy"));
        told(1, &folder, &["convert", &format!("{name}.npz"), "b.tcs"]);
        for (input, format) in [
            (&npy[..], None),
            (&npy, Some("ds")),
            (&npy, Some("coo")),
            (&npz, Some("ds")),
            (&npz, Some("dense:2")),
            (&npz, Some("{D,C}(1,0)")),
            ("B=b.tcs", None),
            ("B=b.tcs", Some("bitmap")),
        ] {
            let formats = format.map(|format| [format!("B:{format}"), format!("A:{format}")]);
            let formats: Vec<&str> = formats.iter().flatten().flat_map(|format| ["-f", format]).collect();
            let copy = [&["A(i,j) = B(i,j)", "-i", input, "-o", "a.npy", "--verify"], &ONCE[..], &formats].concat();
            told(1, &folder, &copy);
            assert_eq!(read(&folder, "a.npy"), right, "{input} as {format:?}");
        }
        // Files of sparse tensors have the type, too.
        for file in ["a.npz", "a.tcs"] {
            told(
                1,
                &folder,
                &[&["A(i,j) = B(i,j)", "-i", &npz, "-f", "B:ds", "-f", "A:ds", "-o", file], &ONCE[..]].concat(),
            );
            told(1, &folder, &["convert", file, "again.npy"]);
            assert_eq!(read(&folder, "again.npy"), right, "{name} in {file}");
        }
    }
}

#[test]
fn text_keeps_all_digits() {
    let folder = folder("text");
    for (field, lines) in [
        ("integer", "1 1 9223372036854775807\n1 2 -9223372036854775808\n2 1 9007199254740993\n"),
        ("real", "1 1 1.7976931348623157e+308\n1 2 5e-324\n2 1 -0.1\n"),
        ("complex", "1 1 1.7976931348623157e+308 -0.1\n1 2 5e-324 inf\n2 1 -0.1 1.0\n"),
    ] {
        let text = format!("%%MatrixMarket matrix coordinate {field} general\n2 2 3\n{lines}");
        fs::write(folder.join("b.mtx"), &text).unwrap();
        for nodes in [1, 2] {
            for format in ["ds", "coo"] {
                let formats = [&format!("B:{format}")[..], &format!("A:{format}")];
                let options = ["-i", "B:b.mtx", "-o", "a.mtx", "-f", formats[0], "-f", formats[1]];
                told(nodes, &folder, &[&["A(i,j) = B(i,j)"], &options[..], &ONCE].concat());
                assert_eq!(String::from_utf8(read(&folder, "a.mtx")).unwrap(), text, "{format} on {nodes}");
            }
        }
    }
    // SciPy writes what has no sign so.
    let unsigned = |last: &str| {
        let lines = format!("1 1 9223372036854775807\n2 1 {last}\n");
        let text = format!("%%MatrixMarket matrix coordinate unsigned-integer general\n2 1 2\n{lines}");
        fs::write(folder.join("u.mtx"), text).unwrap();
        lines
    };
    let copy = ["A(i,j) = B(i,j)", "-i", "B:u.mtx", "-f", "B:ds", "-f", "A:ds", "-o", "a.mtx"];
    let lines = unsigned("7");
    told(1, &folder, &["info", "u.mtx"]);
    told(1, &folder, &[&copy[..], &ONCE].concat());
    let written = String::from_utf8(read(&folder, "a.mtx")).unwrap();
    assert_eq!(written, format!("%%MatrixMarket matrix coordinate unsigned-integer general\n2 1 2\n{lines}"));
    let lines = unsigned("18446744073709551615");
    for nodes in [1, 2] {
        told(nodes, &folder, &[&copy[..], &ONCE].concat());
        let written = String::from_utf8(read(&folder, "a.mtx")).unwrap();
        assert_eq!(written, format!("%%MatrixMarket matrix coordinate unsigned-integer general\n2 1 2\n{lines}"));
        let (code, _, error) = run(nodes, &folder, &[&copy[..], &["--type", "i64"]].concat());
        let says = "u.mtx:4: the value '18446744073709551615' does not fit int64";
        assert!(code == Some(1) && error.contains(says), "{code:?} {error}");
    }
}

#[test]
fn tensors_without_a_type_are_read_to_the_last_digit_of_the_one_that_is_asked_for() {
    let folder = folder("tns");
    let text = "1 1 9007199254740993\n2 3 -9223372036854775808\n3 2 4.0\n";
    fs::write(folder.join("b.tns"), text).unwrap();
    for nodes in [1, 2] {
        let copy = ["A(i,j) = B(i,j)", "-i", "B:b.tns", "-f", "B:ds", "-f", "A:ds", "-o", "a.tns", "--type", "i64"];
        told(nodes, &folder, &[&copy[..], &ONCE].concat());
        let written = String::from_utf8(read(&folder, "a.tns")).unwrap();
        assert_eq!(written, text.replace("4.0", "4"), "{nodes} nodes");
        let (code, _, error) = run(nodes, &folder, &[&copy[..10], &["i32"]].concat());
        assert!(code == Some(1) && error.contains("b.tns:1: the value '9007199254740993' is too large"), "{error}");
    }
}

#[test]
fn files_of_several_types_are_computed_in_the_type_to_which_numpy_promotes_them() {
    let folder = folder("promotion");
    arrays(&folder, "b1", &[true, true, false, true], ArrayValues::Bool);
    arrays(&folder, "u1", &[255, 2, 0, 7_u8], ArrayValues::U8);
    arrays(&folder, "i1", &[-128, 2, 0, 7_i8], ArrayValues::I8);
    arrays(&folder, "i2", &[-300, 2, 0, 7_i16], ArrayValues::I16);
    arrays(&folder, "u4", &[u32::MAX, 2, 0, 7], ArrayValues::U32);
    arrays(&folder, "i4", &[i32::MIN, 2, 0, 7], ArrayValues::I32);
    arrays(&folder, "i8", &[1 << 53, 2, 0, 7_i64], ArrayValues::I64);
    arrays(&folder, "f4", &[-0.5, 2.0, 0.0, 7.0_f32], ArrayValues::F32);
    arrays(&folder, "f8", &[-0.1, 2.0, 0.0, 7.0_f64], ArrayValues::F64);
    arrays(&folder, "c8", &[Complex::new(0.5_f32, -1.0); 4], ArrayValues::C32);
    arrays(&folder, "c16", &[Complex::new(0.1_f64, -1.0); 4], ArrayValues::C64);
    // Of numpy.result_type.
    for (one, two, expected) in [
        ("b1", "u1", "u1"),
        ("u1", "i1", "i2"),
        ("u1", "i2", "i2"),
        ("i2", "u4", "i8"),
        ("u4", "i4", "i8"),
        ("u4", "u1", "u4"),
        ("i4", "i8", "i8"),
        ("i2", "f4", "f4"),
        ("i4", "f4", "f8"),
        ("i8", "f8", "f8"),
        ("b1", "f4", "f4"),
        ("f4", "c8", "c8"),
        ("i8", "c8", "c16"),
        ("f8", "c8", "c16"),
        ("c8", "c16", "c16"),
    ] {
        let mut results = Vec::new();
        for (nodes, sum, formats) in [
            (1, [one, two], &[][..]),
            (1, [two, one], &[]),
            (1, [one, two], &["-f", "B:ds", "-f", "C:ds"]),
            (1, [two, one], &["-f", "B:ds", "-f", "C:coo", "-f", "A:ds"]),
            (2, [one, two], &["-f", "B:ds", "-f", "C:ds"]),
            (2, [two, one], &[]),
        ] {
            let ending = if formats.is_empty() { "npy" } else { "npz" };
            let inputs = [format!("B={}.{ending}", sum[0]), format!("C={}.{ending}", sum[1])];
            let options = ["A(i,j) = B(i,j) + C(i,j)", "-i", &inputs[0], "-i", &inputs[1], "-o", "a.npy"];
            told(nodes, &folder, &[&options[..], formats, &ONCE].concat());
            let found = read(&folder, "a.npy");
            assert_eq!(descr(&found), expected, "{sum:?} {formats:?}");
            results.push(found);
        }
        assert!(results.iter().all(|result| *result == results[0]), "{one} {two}");
    }
}

#[test]
fn what_the_type_cannot_hold_is_refused() {
    let folder = folder("refused");
    of_all_types(&folder);
    arrays(&folder, "f0", &[0.5; 4], ArrayValues::F64);
    for nodes in [1, 2] {
        for formats in [&[][..], &["-f", "B:ds", "-f", "C:ds"]] {
            let ending = if formats.is_empty() { "npy" } else { "npz" };
            let (integers, floats) = (format!("B=i8.{ending}"), format!("C=f0.{ending}"));
            let sum = ["A(i,j) = B(i,j) + C(i,j)", "-i", &integers, "-i", &floats, "-o", "a.npy"];
            let (code, _, error) = run(nodes, &folder, &[&sum[..], formats].concat());
            assert!(matches!(code, Some(1 | 2)) && error.contains("which is no f64"), "{formats:?}: {error}");
            let complex = format!("B=c16.{ending}");
            let copy = ["A(i,j) = B(i,j)", "-i", &complex, "--type", "f64"];
            let (code, _, error) = run(nodes, &folder, &[&copy[..], &formats[..formats.len().min(2)]].concat());
            let says = "its elements are c64, and f64 has no imaginary parts: say --type c64";
            assert!(code == Some(1) && error.contains(says), "{formats:?}: {error}");
        }
    }
    assert!(!folder.join("a.npy").exists());
    let matrix = "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 2 3\n";
    fs::write(folder.join("c.mtx"), matrix).unwrap();
    let (code, _, error) = run(1, &folder, &["y(i) = B(i,j)", "-i", "B:c.mtx", "-f", "B:ds", "--type", "f64"]);
    assert!(code == Some(1) && error.contains("say --type c64"), "{error}");
    // Without a type, it is that of the file.
    told(1, &folder, &["y(i) = B(i,j)", "-i", "B:c.mtx", "-f", "B:ds", "-o", "y.npy"]);
    assert_eq!(descr(&read(&folder, "y.npy")), "c16");
}

#[test]
fn numbers_in_a_statement_are_weak_as_in_numpy() {
    let folder = folder("weak");
    of_all_types(&folder);
    for (right, file, expected) in [
        ("B(i,j) * 2", "i1", "i1"),
        ("B(i,j) + 255", "u1", "u1"),
        ("B(i,j) * 0.5", "i1", "f8"),
        ("B(i,j) * 0.5", "f4", "f4"),
        ("B(i,j) * 2.0", "i4", "f8"),
        ("sqrt(abs(B(i,j)))", "i2", "f8"),
        ("sqrt(abs(B(i,j)))", "f4", "f4"),
        ("B(i,j) + B(i,j)", "b1", "b1"),
        ("B(i,j) * 1", "b1", "i8"),
        ("B(i,j) + 2", "b1", "i8"),
        ("B(i,j) * 0.5", "b1", "f8"),
        ("B(i,j) + j", "b1", "i8"),
        ("B(i,j) / 2", "i4", "i4"),
    ] {
        for formats in [&[][..], &["-f", "B:ds"]] {
            let input = format!("B={file}.{}", if formats.is_empty() { "npy" } else { "npz" });
            let statement = format!("A(i,j) = {right}");
            told(1, &folder, &[&[&statement, "-i", &input, "-o", "a.npy", "--verify"], formats, &ONCE].concat());
            assert_eq!(descr(&read(&folder, "a.npy")), expected, "{right} of {file} {formats:?}");
        }
    }
    for (right, file, says) in [("B(i,j) * 300", "u1", "300 is no u8"), ("B(i,j) + -1", "u1", "-1 is no u8")] {
        for formats in [&[][..], &["-f", "B:ds"]] {
            let input = format!("B={file}.npy");
            let (code, _, error) =
                run(1, &folder, &[&[&format!("A(i,j) = {right}")[..], "-i", &input], formats].concat());
            assert!(code == Some(2) && error.contains(says), "{right}: {error}");
        }
    }
    // What is said with --type holds.
    told(
        1,
        &folder,
        &[&["A(i,j) = B(i,j) + 1", "-i", "B=b1.npy", "-o", "a.npy", "--type", "bool"], &ONCE[..]].concat(),
    );
    assert_eq!((descr(&read(&folder, "a.npy")), elements(&read(&folder, "a.npy"))), ("b1".to_owned(), &[1; 4][..]));
}

#[test]
fn sums_keep_the_type_of_their_terms() {
    let folder = folder("sums");
    arrays(&folder, "b1", &[true, true, false, true], ArrayValues::Bool);
    arrays(&folder, "u1", &[255, 2, 0, 7_u8], ArrayValues::U8);
    for (file, expected) in [("b1", 1_u8), ("u1", 8)] {
        for formats in [&[][..], &["-f", "B:ds"]] {
            let input = format!("B={file}.{}", if formats.is_empty() { "npy" } else { "npz" });
            told(1, &folder, &[&["a(i) = B(i,j)", "-i", &input, "-o", "a.npy", "--verify"], formats, &ONCE].concat());
            let found = read(&folder, "a.npy");
            assert_eq!((descr(&found).as_str(), elements(&found)), (file, &[expected][..]));
        }
    }
}

#[test]
fn random_elements_have_the_type_of_the_files() {
    let folder = folder("random");
    let mut text = String::from("%%MatrixMarket matrix coordinate integer general\n4 4 4\n");
    (1..=4).for_each(|row| _ = writeln!(text, "{row} {row} 1"));
    fs::write(folder.join("b.mtx"), text).unwrap();
    for nodes in [1, 2] {
        told(
            nodes,
            &folder,
            &[&["y(i) = B(i,j) * x(j)", "-i", "B:b.mtx", "-f", "B:ds", "-o", "y.npy"], &ONCE[..]].concat(),
        );
        assert_eq!(descr(&read(&folder, "y.npy")), "i8");
    }
}

/// A `.npy` file of floats of so many rows and columns.
fn floats(folder: &Path, name: &str, shape: &[u64]) {
    let elements: Vec<f64> = (0..shape.iter().product()).map(|number: u64| number as f64 + 1.0).collect();
    npy::write_array(&mut File::create(folder.join(name)).unwrap(), shape, &elements).unwrap();
}

#[test]
fn dimensions_without_coordinates_are_computed_with_as_numpy_does() {
    let folder = folder("empty");
    for (name, shape) in
        [("a30.npy", &[3, 0][..]), ("a00.npy", &[0, 0]), ("a04.npy", &[0, 4]), ("v0.npy", &[0]), ("v3.npy", &[3])]
    {
        floats(&folder, name, shape);
    }
    let header = "%%MatrixMarket matrix coordinate real general";
    fs::write(folder.join("m30.mtx"), format!("{header}\n3 0 0\n")).unwrap();
    fs::write(folder.join("m00.mtx"), format!("{header}\n0 0 0\n")).unwrap();
    let zeros = |count: usize| vec![0.0; count];
    let cases: &[(&str, &[&str], Vec<f64>, &str)] = &[
        ("C(i,j) = A(i,k) * A(j,k)", &["-i", "A=a30.npy"], zeros(9), "(3, 3)"),
        ("C(i,j) = A(i,k) * B(k,j)", &["-i", "A=a30.npy", "-i", "B=a04.npy"], zeros(12), "(3, 4)"),
        ("C(i,j) = A(i,k) * B(k,j)", &["-i", "A=a00.npy", "-i", "B=a04.npy"], zeros(0), "(0, 4)"),
        ("C(i,j) = A(i,j) + A(i,j)", &["-i", "A=a00.npy"], zeros(0), "(0, 0)"),
        ("C(i,j) = A(i,j) * 2", &["-i", "A=a30.npy"], zeros(0), "(3, 0)"),
        ("s = A(i,j)", &["-i", "A=a30.npy"], zeros(1), "()"),
        ("s = v(i) * v(i)", &["-i", "v=v0.npy"], zeros(1), "()"),
        ("s = reduce(*, i, v(i))", &["-i", "v=v0.npy"], vec![1.0], "()"),
        ("y(i) = A(i,j) + x(i)", &["-i", "A=a30.npy", "-i", "x=v3.npy"], vec![1.0, 2.0, 3.0], "(3,)"),
        ("y(j) = reduce(max, i, A(j,i))", &["-i", "A=a00.npy"], zeros(0), "(0,)"),
        ("y(i) = x(i)", &["--size", "i=0"], zeros(0), "(0,)"),
        ("C(i,j) = B(i,k) * D(k,j)", &["--size", "i=2,j=2,k=0"], zeros(4), "(2, 2)"),
        ("T(i,k) = A(i,j) * A(k,j); s = T(i,k)", &["-i", "A=a30.npy"], zeros(1), "()"),
        ("C(i,j) = A(i,k) * A(j,k)", &["-i", "A=m30.mtx", "-f", "A:ds", "-f", "C:ds"], zeros(9), "(3, 3)"),
        ("C(i,j) = A(i,j) + A(j,i)", &["-i", "A=m00.mtx", "-f", "A:ds", "-f", "C:coo"], zeros(0), "(0, 0)"),
    ];
    for (statement, options, expected, shape) in cases {
        let named = |name: &str| {
            statement.contains(&format!("{name}(i,")) && !options.contains(&"-f") && !statement.contains(';')
        };
        let sparse = [named("A").then_some("A:ds"), named("C").then_some("C:ds")];
        let sparse: Vec<&str> = sparse.iter().flatten().flat_map(|format| ["-f", format]).collect();
        for (nodes, formats) in [(1, &[][..]), (1, &sparse), (2, &[]), (2, &sparse), (3, &[])] {
            let all = [&[statement, "-o", "out.npy"], *options, formats, &ONCE].concat();
            told(nodes, &folder, &[&all[..], &["--verify"]].concat());
            told(nodes, &folder, &all);
            let found = read(&folder, "out.npy");
            let values: Vec<f64> =
                elements(&found).chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect();
            assert_eq!(&values, expected, "{statement} {options:?} {formats:?} on {nodes}");
            let header = String::from_utf8_lossy(&found).into_owned();
            assert!(header.contains(&format!("'shape': {shape}")), "{header}");
            fs::remove_file(folder.join("out.npy")).unwrap();
        }
    }
    // The least of nothing is nothing.
    for formats in [&[][..], &["-f", "A:ds"]] {
        let (code, _, error) =
            run(1, &folder, &[&["y(i) = reduce(min, j, A(i,j))", "-i", "A=a30.npy"], formats].concat());
        assert!(code == Some(2) && error.contains("j has no values, and min of nothing is none"), "{error}");
    }
    // What is written is read.
    for file in ["e.npz", "e.mtx", "e.tcs"] {
        let copy = ["C(i,j) = A(i,j)", "-i", "A=a30.npy", "-f", "A:ds", "-f", "C:ds", "-o", file];
        told(1, &folder, &[&copy[..], &ONCE].concat());
        told(1, &folder, &["info", file]);
        told(1, &folder, &["convert", file, "e.npy"]);
        assert_eq!(read(&folder, "e.npy"), read(&folder, "a30.npy"), "{file}");
    }
}
