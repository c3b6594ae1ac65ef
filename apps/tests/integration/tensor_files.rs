//! Tensors from and to files, with `maniple tensor`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A file with these bytes, for one test; its path as text.
fn file(name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = path(name);
    std::fs::write(&path, bytes).expect("a temporary file can be written");
    path.to_str().expect("its name is text").to_owned()
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(arguments).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    command.output().expect("the program can be started")
}

/// Computes a statement once and gives the bytes of the result's file.
#[track_caller]
fn computed(statement: &str, options: &[&str], output: &str) -> Vec<u8> {
    let output = path(output);
    let name = output.to_str().expect("its name is text");
    let arguments: Vec<&str> =
        ["tensor", statement, "--repeat", "1", "--verify", "--output", name].iter().chain(options).copied().collect();
    let run = run(&arguments);
    let told = String::from_utf8_lossy(&run.stderr);
    assert_eq!((run.status.code(), told.as_ref()), (Some(0), ""), "{arguments:?}");
    std::fs::read(output).expect("the result was written")
}

#[track_caller]
fn refuses(statement: &str, options: &[&str], code: i32, message: &str) {
    let arguments: Vec<&str> = ["tensor", statement].iter().chain(options).copied().collect();
    let run = run(&arguments);
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!((run.status.code(), told), (Some(code), format!("error: {message}\n")), "{arguments:?}");
}

/// Returns a file as NumPy writes it: version 1.0, the header with spaces up to a multiple of 64 bytes, then the
/// elements.
fn numpy(descr: &str, fortran_order: bool, shape: &str, elements: &[u8]) -> Vec<u8> {
    let order = if fortran_order { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(elements);
    bytes
}

fn bytes<const N: usize, const B: usize>(values: [[u8; B]; N]) -> Vec<u8> {
    values.concat()
}

/// The elements of a file, which is what comes after the header.
fn elements(npy: &[u8]) -> &[u8] {
    let end = npy.iter().position(|&byte| byte == b'\n').expect("a header ends");
    &npy[end + 1..]
}

#[test]
fn elements_of_numpy_files_are_where_numpy_has_them() {
    let by_rows: Vec<u8> = bytes([1_i32, 2, 3, 4, 5, 6].map(i32::to_le_bytes));
    let by_columns: Vec<u8> = bytes([1_i32, 4, 2, 5, 3, 6].map(i32::to_le_bytes));
    let big_endian: Vec<u8> = bytes([1_i32, 2, 3, 4, 5, 6].map(i32::to_be_bytes));
    let files = [
        file("rows.npy", numpy("<i4", false, "(2, 3)", &by_rows)),
        file("columns.npy", numpy("<i4", true, "(2, 3)", &by_columns)),
        file("big.npy", numpy(">i4", false, "(2, 3)", &big_endian)),
    ];
    for (number, file) in files.iter().enumerate() {
        let output = format!("numpy{number}.npy");
        let transposed = computed("A(j,i) = B(i,j)", &["--input", &format!("B={file}")], &output);
        assert_eq!(elements(&transposed), bytes([1_i32, 4, 2, 5, 3, 6].map(i32::to_le_bytes)), "{file}");
        assert!(String::from_utf8_lossy(&transposed).contains("'shape': (3, 2"), "{file}");
    }
    let cube: Vec<u8> = bytes([0_i32, 4, 2, 6, 1, 5, 3, 7].map(i32::to_le_bytes));
    let cube = file("cube.npy", numpy("<i4", true, "(2, 2, 2)", &cube));
    let copied = computed("A(i,j,k) = B(i,j,k)", &["--input", &format!("B={cube}")], "cube-copied.npy");
    assert_eq!(elements(&copied), bytes([0_i32, 1, 2, 3, 4, 5, 6, 7].map(i32::to_le_bytes)));
}

#[test]
fn all_types_are_read_and_written_as_numpy_names_them() {
    let types: [(&str, Vec<u8>); 6] = [
        ("<f4", bytes([1.5_f32, -2.25].map(f32::to_le_bytes))),
        ("<f8", bytes([1.5_f64, -2.25].map(f64::to_le_bytes))),
        ("<i4", bytes([15_i32, -225].map(i32::to_le_bytes))),
        ("<i8", bytes([1_i64 << 40, -225].map(i64::to_le_bytes))),
        ("<c8", bytes([1.5_f32, -2.25, 0.5, 8.0].map(f32::to_le_bytes))),
        ("<c16", bytes([1.5_f64, -2.25, 0.5, 8.0].map(f64::to_le_bytes))),
    ];
    for (descr, values) in types {
        let name = &descr[1..];
        let input = file(&format!("{name}.npy"), numpy(descr, false, "(2,)", &values));
        let written = computed("a(i) = b(i)", &["--input", &format!("b={input}")], &format!("{name}-copied.npy"));
        assert_eq!(elements(&written), values, "{descr}");
        let header = String::from_utf8_lossy(&written);
        assert!(header.contains(&format!("'descr': '{descr}'")) && header.contains("'shape': (2,"), "{header}");
    }
}

#[test]
fn numbers_without_dimensions_are_files_too() {
    let three = file("three.npy", numpy("<f8", false, "()", &3_f64.to_le_bytes()));
    let result = computed("a = b * 2", &["--input", &format!("b={three}")], "six.npy");
    assert_eq!(elements(&result), 6_f64.to_le_bytes());
    let market = computed("a = b * 2", &["--input", &format!("b={three}")], "six.mtx");
    assert_eq!(String::from_utf8_lossy(&market), "%%MatrixMarket matrix array real general\n1 1\n6.0\n");
}

#[test]
fn matrix_market_files_have_columns_and_symmetries() {
    let cases = [
        ("real general\n% a comment\n2 3\n1\n4\n2\n5\n3\n6.5\n", "real", "2 3\n1.0\n4.0\n2.0\n5.0\n3.0\n6.5\n"),
        ("real symmetric\n2 2\n1\n2\n3D0\n", "real", "2 2\n1.0\n2.0\n2.0\n3.0\n"),
        ("integer skew-symmetric\n3 3\n1\n2\n3\n", "integer", "3 3\n0\n1\n2\n-1\n0\n3\n-2\n-3\n0\n"),
        ("complex hermitian\n2 2\n1 0\n2 3\n4 0\n", "complex", "2 2\n1.0 0.0\n2.0 3.0\n2.0 -3.0\n4.0 0.0\n"),
        ("integer general\n1 1\n9007199254740993\n", "integer", "1 1\n9007199254740993\n"),
    ];
    for (number, (text, field, expected)) in cases.into_iter().enumerate() {
        let input = file(&format!("in{number}.mtx"), format!("%%MatrixMarket matrix array {text}"));
        let output = computed("A(i,j) = B(i,j)", &["--input", &format!("B={input}")], &format!("out{number}.mtx"));
        let expected = format!("%%MatrixMarket matrix array {field} general\n{expected}");
        assert_eq!(String::from_utf8_lossy(&output), expected);
    }
}

#[test]
fn a_vector_is_a_column_and_numbers_may_become_others_that_hold_them() {
    let vector = file("vector.mtx", "%%MatrixMarket matrix array integer general\n3 1\n1\n2\n3\n");
    let input = format!("b={vector}");
    let doubled = computed("a(i) = 2 * b(i)", &["--input", &input], "vector-doubled.mtx");
    assert_eq!(String::from_utf8_lossy(&doubled), "%%MatrixMarket matrix array integer general\n3 1\n2\n4\n6\n");
    let halved = computed("a(i) = b(i) / 2", &["--input", &input, "--type", "f32"], "vector-halved.npy");
    assert_eq!(elements(&halved), bytes([0.5_f32, 1.0, 1.5].map(f32::to_le_bytes)));
}

#[test]
fn several_nodes_read_and_write_the_same_files() {
    let values: Vec<u8> = (0..12_i64).flat_map(i64::to_le_bytes).collect();
    let input = file("shared.npy", numpy("<i8", false, "(3, 4)", &values));
    let output = path("shared-out.npy");
    let mut results = Vec::new();
    for nodes in ["1", "2", "4"] {
        let (input, output) = (format!("B={input}"), output.to_str().expect("its name is text"));
        let program = [env!("CARGO_BIN_EXE_maniple"), "tensor", "A(i,j) = B(i,k) * B(j,k)", "--repeat", "1"];
        let files = ["--input", &input, "--output", output, "--verify", "--workers", "1"];
        let arguments: Vec<&str> =
            ["launch", "-n", nodes, "--"].iter().chain(&program).chain(&files).copied().collect();
        let run = run(&arguments);
        assert_eq!(String::from_utf8_lossy(&run.stderr), "", "{nodes} nodes");
        results.push(std::fs::read(output).expect("the result was written"));
        std::fs::remove_file(output).expect("it is there");
    }
    assert!(results.iter().all(|result| *result == results[0]));
    assert_eq!(elements(&results[0])[..8], 14_i64.to_le_bytes());
}

#[test]
fn files_that_cannot_be_used_are_refused_with_the_reason() {
    let copy = "A(i,j) = B(i,j)";
    let refused = |name: &str, content: Vec<u8>, reason: &str| {
        let file = file(name, content);
        refuses(copy, &["--input", &format!("B={file}")], 1, &format!("{file}{reason}"));
    };
    refused(
        "short.npy",
        numpy("<f8", false, "(2, 2)", &[0; 24]),
        ": it says that it has 2 x 2 elements, but has only 24 bytes of them",
    );
    refused(
        "promises.npy",
        numpy("<f8", false, "(1000000, 1000000)", &[0; 24]),
        ": it says that it has 1000000 x 1000000 elements, but has only 24 bytes of them",
    );
    for (shape, told) in [
        ("(4294967296, 4294967296, 2)", "4294967296 x 4294967296 x 2"),
        ("(0, 9223372036854775808, 4)", "0 x 9223372036854775808 x 4"),
        ("[18446744073709551615]", "18446744073709551615"),
    ] {
        refused(
            "huge.npy",
            numpy("<f8", false, shape, &[0; 24]),
            &format!(": it says that it has {told} elements, which are more than can be counted"),
        );
    }
    refused(
        "deep.npy",
        numpy("<f8", false, &"(".repeat(5000), &[]),
        ": its header has 5001 brackets, and describes no plain array",
    );
    refused(
        "header.npy",
        numpy("<f8", false, &" ".repeat(20_000), &[]),
        ": its header has 20086 bytes, and such headers have at most 10000",
    );
    refused(
        "long.npy",
        numpy("<f16", false, "(1, 1)", &[0; 16]),
        ": its elements are '<f16'; they must be bool, integers of 8, 16, 32 or 64 bits, float16, float32, float64, complex64 or complex128: convert it with NumPy's astype",
    );
    refused("line.npy", numpy("<f8", false, "(2,)", &[0; 16]), ": expected a tensor of 2 dimensions, found 2");
    refused(
        "text.npy",
        b"hello world".to_vec(),
        r": this is no .npy file: it starts with 'hello worl', not '\x93NUMPY'",
    );
    let market = |text: &str| format!("%%MatrixMarket matrix {text}").into_bytes();
    refused(
        "sparse.mtx",
        market("coordinate real general\n1 1 1\n1 1 1\n"),
        ": the tensor is sparse: say how to store it, such as --format B=csr",
    );
    refused("wide.mtx", market("array real symmetric\n1 2\n"), ":2: the matrix is 1 by 2; a symmetric one is square");
    refused("broken.mtx", market("array real general\n2 1\n1\n"), ":3: the file ends after 1 of 2 entries");
    refused(
        "long.mtx",
        market("array real general\n1 1\n1\n2\n"),
        ":4: '2' is too much: the file says that it has 1 entry",
    );
    refused("pair.mtx", market("array complex general\n1 1\n1\n"), ":3: expected 'REAL IMAGINARY', found '1'");
    let missing = path("missing.npy");
    let missing = missing.to_str().expect("its name is text");
    let reason = format!("{missing}: cannot be read: No such file or directory (os error 2)");
    refuses(copy, &["--input", &format!("B={missing}")], 1, &reason);
}

#[test]
fn headers_that_python_2_wrote_are_read() {
    let values: Vec<u8> = (0..6_i64).flat_map(i64::to_le_bytes).collect();
    for (number, shape) in ["(2L, 3L)", "(2L,3)", "(2, 3L,)"].into_iter().enumerate() {
        let input = file(&format!("python2-{number}.npy"), numpy("<i8", false, shape, &values));
        let written =
            computed("A(i,j) = B(i,j)", &["--input", &format!("B={input}")], &format!("python3-{number}.npy"));
        assert_eq!(elements(&written), values, "{shape}");
    }
}

#[test]
fn comments_may_be_in_any_encoding() {
    let content =
        b"%%MatrixMarket matrix array real general\r\n% Universit\xe4t Z\xfcrich\r\n\r\n  2 1  \r\n1 \r\n\r\n2"
            .to_vec();
    let input = file("latin1.mtx", content);
    let output = computed("a(i) = b(i)", &["--input", &format!("b={input}")], "latin1-out.mtx");
    assert_eq!(String::from_utf8_lossy(&output), "%%MatrixMarket matrix array real general\n2 1\n1.0\n2.0\n");
}

#[test]
fn infinities_and_nans_are_read_and_written() {
    let input = file("infinite.mtx", "%%MatrixMarket matrix array real general\n3 1\ninf\n-Infinity\nNaN\n");
    let arguments = ["--input", &format!("b={input}"), "--type", "f32"];
    let output = computed("a(i) = b(i) + 1", &arguments, "infinite-out.mtx");
    assert_eq!(String::from_utf8_lossy(&output), "%%MatrixMarket matrix array real general\n3 1\ninf\n-inf\nNaN\n");
}

#[test]
fn what_is_too_large_for_a_type_is_refused_with_its_place() {
    let values = bytes([1.0, 2.0, 3.0, 4.0, -1e300, 6.0].map(f64::to_le_bytes));
    let floats = file("large.npy", numpy("<f8", false, "(2, 3)", &values));
    let integers =
        file("large-integers.npy", numpy("<i8", false, "(2,)", &bytes([1_i64, 1 << 40].map(i64::to_le_bytes))));
    for (statement, input, wanted, told) in [
        (
            "A(i,j) = B(i,j)",
            &floats,
            "f32",
            "element [1, 1] is -1e300, which is no f32: read it as elements of another type",
        ),
        (
            "A(i,j) = B(i,j)",
            &floats,
            "c32",
            "element [1, 1] is -1e300, which is no c32: read it as elements of another type",
        ),
        (
            "A(i) = B(i)",
            &integers,
            "i32",
            "element [1] is 1099511627776, which is no i32: read it as elements of another type",
        ),
    ] {
        let arguments = ["--input", &format!("B={input}"), "--type", wanted];
        refuses(statement, &arguments, 1, &format!("{input}: {told}"));
    }
    let market = file("large.mtx", "%%MatrixMarket matrix array real general\n1 1\n1e999\n");
    refuses(
        "a = b",
        &["--input", &format!("b={market}")],
        1,
        &format!("{market}:3: the value '1e999' is too large for 64 bits"),
    );
}

#[test]
fn inputs_may_be_pipes_of_either_form() {
    let numpy_values = bytes([1.5, 2.5].map(f64::to_le_bytes));
    let market = b"%%MatrixMarket matrix array real general\n2 1\n1.5\n2.5\n".to_vec();
    for (content, name) in [(numpy("<f8", false, "(2,)", &numpy_values), "numpy"), (market, "market")] {
        let output = path(&format!("piped-{name}.npy"));
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_maniple"));
        command
            .args(["tensor", "a(i) = 2 * b(i)", "--input", "b=/dev/stdin", "--repeat", "1", "--output"])
            .arg(&output);
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped());
        let mut child = command.spawn().expect("the program can be started");
        std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), &content).expect("it is read");
        let run = child.wait_with_output().expect("it ends");
        assert_eq!((run.status.code(), String::from_utf8_lossy(&run.stderr).as_ref()), (Some(0), ""), "{name}");
        assert_eq!(
            elements(&std::fs::read(&output).expect("written")),
            bytes([3.0, 5.0].map(f64::to_le_bytes)),
            "{name}"
        );
    }
}

#[test]
fn headers_that_make_no_sense_are_refused_in_a_line() {
    let npy = |header: &str| {
        let mut content = b"\x93NUMPY\x01\x00".to_vec();
        content.extend((header.len() as u16).to_le_bytes());
        content.extend(header.bytes());
        content
    };
    let dictionary =
        "its header must be a dictionary such as {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}, and is";
    for (number, (header, told)) in [
        ("{'descr': <f8}\n", format!("{dictionary} '{{'descr': <f8}}'")),
        ("", format!("{dictionary} ''")),
        ("{'descr': '<f8', 'fortran_order': False}\n", "its header has no 'shape'".to_owned()),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 2)}\n",
            "the 'shape' in its header is no tuple of whole numbers from 0 on".to_owned(),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let input = file(&format!("nonsense{number}.npy"), npy(header));
        refuses("A(i,j) = B(i,j)", &["--input", &format!("B={input}")], 1, &format!("{input}: {told}"));
    }
    let cut = file("cut.npy", &npy("{'descr': '<f8'")[..14]);
    refuses(
        "a = b",
        &["--input", &format!("b={cut}")],
        1,
        &format!("{cut}: it ends after 4 bytes of its header, which has 15"),
    );
}

#[test]
fn counts_that_lie_are_found_at_once() {
    let lies = "%%MatrixMarket matrix array real general\n1 281474976710656\n1\n";
    let input = file("lies.mtx", lies);
    let told = format!("{input}:3: the file ends after 1 of 281474976710656 entries");
    refuses("A(i,j) = B(i,j)", &["--input", &format!("B={input}")], 1, &told);
}

#[test]
fn files_and_statements_have_to_fit() {
    let matrix = file("fit.npy", numpy("<f8", false, "(2, 3)", &[0; 48]));
    let (b, c) = (format!("B={matrix}"), format!("C={matrix}"));
    refuses(
        "A(i,j) = B(i,k) * C(k,j)",
        &["--input", &b, "--input", &c],
        2,
        &format!("index variable k has 3 values by B(i,k) in {matrix}, and 2 by C(k,j) in {matrix}"),
    );
    refuses(
        "A(i,j) = B(i,j)",
        &["--input", &b, "--size", "i=5"],
        2,
        &format!("index variable i has 5 values by --size, and 2 by B(i,j) in {matrix}"),
    );
    refuses("A(i,j) = B(i,j)", &["--input", &c], 2, "--input C: the statement reads B");
    refuses("A(i,j) = B(i,j)", &["--input", &b, "--input", &b], 2, "--input says twice what B is");
    refuses(
        "A(i,j) = B(i,j)",
        &["--input", &b, "--type", "i32"],
        1,
        &format!("{matrix}: its elements are f64, and i32 has no fractions: say --type f64"),
    );
    refuses(
        "A(i,j,k) = B(i,j)",
        &["--input", &b, "--output", "a.mtx"],
        2,
        "a.mtx: Matrix Market files hold matrices; write a tensor of 3 dimensions to a .npy file",
    );
}
