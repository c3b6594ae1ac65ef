//! `maniple tensor info` and `maniple tensor convert`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder for the files of one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("convert").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The exit code, and what is printed on standard output and standard error.
fn run(folder: &Path, line: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.arg("tensor").args(line.split(' ')).env_remove("RUST_BACKTRACE").stdin(Stdio::null()).current_dir(folder);
    let output = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[track_caller]
fn told(folder: &Path, line: &str) -> String {
    let (code, out, error) = run(folder, line);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{line}\n{out}");
    out
}

#[track_caller]
fn refused(folder: &Path, line: &str, code: i32, message: &str) {
    let (found, _, error) = run(folder, line);
    assert_eq!((found, error), (Some(code), format!("error: {message}\n")), "{line}");
}

const TRIDIAGONAL: &str =
    "%%MatrixMarket matrix coordinate real symmetric\n4 4 7\n1 1 2\n2 1 -1\n2 2 2\n3 2 -1\n3 3 2\n4 3 -1\n4 4 2\n";

#[test]
fn info_tells_what_is_in_a_matrix() {
    let folder = folder("info");
    std::fs::write(folder.join("a.mtx"), TRIDIAGONAL).unwrap();
    assert_eq!(
        told(&folder, "info a.mtx"),
        "a.mtx
  order      2
  extents    4 x 4
  entries    10 of type f64
  density    62.5%
  rows       3 entries at most, 2.50 on average; 0 of 4 have none
  columns    3 entries at most, 2.50 on average; 0 of 4 have none
  diagonals  3 of 7, from -1 to 1
  symmetric  yes
  blocks     those with entries are full to 62.5% of 2 x 2, 62.5% of 4 x 4
  formats    {D,D}(0,1) (most elements are there), dia (few full diagonals), ell (rows are equally long), csr (for products by rows), coo (to build and to sort)
"
    );
    let text = "%%MatrixMarket matrix coordinate integer general\n9 3 4\n1 1 5\n2 1 7\n1 1 -5\n2 2 0\n";
    std::fs::write(folder.join("b.mtx"), text).unwrap();
    assert_eq!(
        told(&folder, "info b.mtx"),
        "b.mtx
  order      2
  extents    9 x 3
  entries    3 of type i64; 2 of them 0, as what is not stored; 1 more at the same places were added
  density    11.1%
  rows       2 entries at most, 0.33 on average; 7 of 9 have none
  columns    2 entries at most, 1.00 on average; 1 of 3 have none
  diagonals  2 of 11, from -1 to 0
  symmetric  no
  blocks     those with entries are full to 75.0% of 2 x 2
  formats    dcsr (most rows are empty), coo (to build and to sort)
"
    );
}

#[test]
fn info_tells_what_is_in_tensors_and_in_what_has_no_entries() {
    let folder = folder("info-tensors");
    std::fs::write(folder.join("t.tns"), "# a comment\n1 1 2 1.5\n3 1 2 2.5\n3 4 1 1\n").unwrap();
    assert_eq!(
        told(&folder, "info t.tns"),
        "t.tns
  order        3
  extents      3 x 4 x 2
  entries      3 of type f64
  density      12.5%
  dimension 0  2 entries at most, 1.00 on average; 1 of 3 have none
  dimension 1  2 entries at most, 0.75 on average; 2 of 4 have none
  dimension 2  2 entries at most, 1.50 on average; 0 of 2 have none
  formats      csf:3 (what is not there takes no room), coo (to build and to sort)
"
    );
    std::fs::write(folder.join("none.mtx"), "%%MatrixMarket matrix coordinate complex general\n5 6 0\n").unwrap();
    let none = told(&folder, "info none.mtx");
    assert!(none.contains("entries    0 of type Complex<f64>") && none.contains("diagonals  0 of 10\n"), "{none}");
}

#[test]
fn tensors_go_from_any_form_to_any_other_and_back() {
    let folder = folder("forms");
    std::fs::write(folder.join("a.mtx"), TRIDIAGONAL).unwrap();
    assert_eq!(told(&folder, "convert a.mtx first.mtx"), "first.mtx: 4 x 4 with 10 entries as {C~u,S}(0,1)\n");
    let first = std::fs::read_to_string(folder.join("first.mtx")).unwrap();
    assert!(
        first.starts_with("%%MatrixMarket matrix coordinate real general\n4 4 10\n1 1 2.0\n1 2 -1.0\n2 1 -1.0\n"),
        "{first}"
    );
    for format in ["csr", "csc", "coo", "bcsr:2x2", "bcsr:3x3", "dia", "ell", "hash", "rows"] {
        told(&folder, &format!("convert a.mtx b.npz --format {format}"));
        for between in ["c.tns", "c.npy", "c.mtx", "c.npz"] {
            told(&folder, &format!("convert b.npz {between}"));
            told(&folder, &format!("convert {between} last.mtx"));
            let last = std::fs::read_to_string(folder.join("last.mtx")).unwrap();
            assert_eq!(last, first, "by {format} and {between}");
        }
    }
    // What is three-dimensional, complex or whole stays so.
    std::fs::write(folder.join("t.tns"), "2 1 2 1.5\n1 3 1 -2\n").unwrap();
    told(&folder, "convert t.tns t.npz --format csf:3");
    told(&folder, "convert t.npz again.tns");
    assert_eq!(std::fs::read_to_string(folder.join("again.tns")).unwrap(), "1 3 1 -2.0\n2 1 2 1.5\n");
    for (kind, value) in [("complex", "1.5 -2.0"), ("integer", "9007199254740993")] {
        let text = format!("%%MatrixMarket matrix coordinate {kind} general\n2 3 1\n2 3 {value}\n");
        std::fs::write(folder.join("n.mtx"), &text).unwrap();
        told(&folder, "convert n.mtx n.npz");
        told(&folder, "convert n.npz m.mtx");
        assert_eq!(std::fs::read_to_string(folder.join("m.mtx")).unwrap(), text);
    }
}

#[test]
fn what_cannot_be_converted_leaves_everything_as_it_was() {
    let folder = folder("refused");
    std::fs::write(folder.join("wrong.mtx"), "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n3 1 1\n")
        .unwrap();
    std::fs::write(folder.join("t.tns"), "1 1 1 1\n").unwrap();
    std::fs::write(folder.join("out.mtx"), "as it was").unwrap();
    std::fs::create_dir(folder.join("folder.mtx")).unwrap();
    for line in ["info wrong.mtx", "convert wrong.mtx out.mtx"] {
        refused(&folder, line, 1, "wrong.mtx:4: row 3 is not between 1 and 2");
    }
    let order = "out.mtx: such files hold tensors of at most 2 dimensions, and the tensor has 3; take .tns or .npz";
    refused(&folder, "convert t.tns out.mtx", 2, order);
    refused(
        &folder,
        "convert t.tns a.npz --format csr",
        2,
        "--format {D,C}(0,1) is for 2 dimensions, and t.tns has 3: take csf:3 or coo:3",
    );
    refused(&folder, "info none.mtx", 1, "none.mtx: cannot be read: No such file or directory (os error 2)");
    refused(&folder, "info folder.mtx", 1, "folder.mtx: cannot be read: is a directory");
    let (code, _, error) = run(&folder, "convert t.tns missing/a.tns");
    assert!(code == Some(1) && error.starts_with("error: cannot write `missing/a.tns`"), "{error}");
    let (code, _, error) = run(&folder, "info a.txt");
    assert!(
        code == Some(2) && error.contains("must end with .npy (NumPy), .mtx (Matrix Market), .tns (FROSTT)"),
        "{error}"
    );
    // A failure in the middle of a write leaves no file either.
    std::fs::write(
        folder.join("large.mtx"),
        "%%MatrixMarket matrix coordinate real general\n999999999 999999999 1\n1 1 1\n",
    )
    .unwrap();
    let (code, _, error) = run(&folder, "convert large.mtx large.npy");
    assert!(
        code == Some(1) && error.contains("large.npy") && error.contains("which the system does not give"),
        "{error}"
    );
    // The system would promise eight terabytes.
    let [low, high] = [1_u64, 1 << 40];
    let text = format!("%%MatrixMarket matrix coordinate real general\n{high} {high} 1\n{low} {high} 1\n");
    std::fs::write(folder.join("large.mtx"), text).unwrap();
    let (code, _, error) = run(&folder, "convert large.mtx large.npz --format csr");
    assert!(code == Some(1) && error.contains("which the system does not give"), "{error}");
    assert_eq!(std::fs::read_to_string(folder.join("out.mtx")).unwrap(), "as it was");
    let mut left: Vec<String> =
        std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, ["folder.mtx", "large.mtx", "out.mtx", "t.tns", "wrong.mtx"]);
}

#[test]
fn statements_and_files_do_not_mix() {
    let folder = folder("mixed");
    let (code, _, error) = run(&folder, "--verify info a.mtx");
    assert!(code == Some(2) && error.starts_with("error:"), "{error}");
    let (code, ..) = run(&folder, "a=b --size i=3");
    assert_eq!(code, Some(2));
    for command in ["info", "convert"] {
        let help = told(&folder, &format!("{command} --help"));
        assert!(help.contains("Examples:") && help.contains(".npz"), "{help}");
        let examples = help.split_once("Examples:").unwrap().1;
        assert!(examples.lines().all(|line| line.len() <= 80), "{examples}");
    }
}

#[test]
fn bad_files_are_refused_in_a_line_with_their_place_and_nothing_is_written() {
    let folder = folder("bad");
    let matrix = |kind: &str, rest: &str| format!("%%MatrixMarket matrix coordinate {kind}\n{rest}").into_bytes();
    let real = |rest: &str| matrix("real general", rest);
    let endless = |before: &str| [before.as_bytes(), &vec![b'7'; 3 << 20]].concat();
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty.mtx", Vec::new(), ":1: "),
        ("truncated.mtx", real("3 3 3\n1 1 1\n2 2 2\n"), ":4: the file ends after 2 of 3 entries"),
        ("cut.mtx", real("3 3 2\n1 1 1\n2 "), ":4: expected 'ROW COLUMN VALUE', found '2'"),
        ("more.mtx", real("3 3 1\n1 1 1\n2 2 2\n"), ":4: '2 2 2' is too much"),
        ("promised.mtx", real("3 3 99999999999999\n1 1 1\n"), ":3: the file ends after 1 of 99999999999999 entries"),
        ("extents.mtx", real("99999999999999999999 3 1\n1 1 1\n"), ":2: "),
        ("zero.mtx", real("3 3 2\n1 1 1\n0 1 1\n"), ":4: row 0 is not between 1 and 3"),
        ("beyond.mtx", real("3 3 1\n1 4 1\n"), ":3: column 4 is not between 1 and 3"),
        ("words.mtx", real("3 3 1\none 1 1\n"), ":3: the row 'one' is not a whole number"),
        ("nan.mtx", matrix("integer general", "3 3 1\n1 1 nan\n"), ":3: 'nan' is not a whole number"),
        ("upper.mtx", matrix("real symmetric", "3 3 1\n1 2 1\n"), ":3: entry (1, 2) is above the diagonal"),
        ("skew.mtx", matrix("real skew-symmetric", "3 3 1\n2 2 1\n"), ":3: entry (2, 2) is on the diagonal"),
        ("square.mtx", matrix("real symmetric", "3 4 1\n1 1 1\n"), ":2: the matrix is 3 by 4"),
        ("short.mtx", real("3\n1 1 1\n"), ":2: expected 'ROWS COLUMNS ENTRIES', found '3'"),
        ("binary.mtx", real("3 3 1\n\0\u{1}\u{2}\n"), ":3: expected 'ROW COLUMN VALUE'"),
        (
            "endless.mtx",
            endless("%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 "),
            ":3: the line that starts with '1 1 7",
        ),
        ("junk.mtx", endless(""), ":1: "),
        ("gzip.mtx", b"\x1f\x8b\x08\0\0\0".to_vec(), ":1: the file is packed with gzip"),
        (
            "vector.mtx",
            b"%%MatrixMarket vector coordinate real general\n1 1\n1 1\n".to_vec(),
            ":1: the object is 'vector'",
        ),
        ("kind.mtx", matrix("text general", "1 1 1\n1 1 1\n"), ":1: the field 'text' is none of"),
        ("symmetry.mtx", matrix("real diagonal", "1 1 1\n1 1 1\n"), ":1: the symmetry 'diagonal' is none of"),
        ("zero.tns", b"1 1 1\n1 0 1\n".to_vec(), ":2: coordinate 0 is below 1"),
        ("other.tns", b"1 1 1\n# fine\n1 1 1 1\n".to_vec(), ":3: expected 2 coordinates and a value"),
        ("words.tns", b"1 1 1\n1 x 1\n".to_vec(), ":2: the coordinate 'x' is not a whole number"),
        ("value.tns", b"1 1 1\n1 1 pi\n".to_vec(), ":2: 'pi' is not a number"),
        ("endless.tns", endless("1 1 "), ":1: the line that starts with"),
        ("empty.npz", Vec::new(), ": this is no .npz file: it is empty"),
        ("text.npz", b"1 1 1\n".to_vec(), ": this is no .npz file: it starts with"),
        ("cut.npz", b"PK\x03\x04\0\0\0\0".to_vec(), ": this is no .npz file"),
        ("empty.npy", Vec::new(), ": "),
    ];
    for (name, bytes, message) in &cases {
        std::fs::write(folder.join(name), bytes).unwrap();
        for line in [format!("info {name}"), format!("convert {name} out.tns"), format!("convert {name} {name}.npz")] {
            let (code, out, error) = run(&folder, &line);
            assert_eq!((code, out.as_str(), error.lines().count()), (Some(1), "", 1), "{line}: {error}");
            assert!(error.starts_with(&format!("error: {name}{message}")), "{line}: {error}");
        }
    }
    // Line ends may be mixed.
    std::fs::write(folder.join("mixed.mtx"), real("3 3 2\r\n1 1 1\n2 2 2\r\n")).unwrap();
    assert!(told(&folder, "info mixed.mtx").contains("entries    2 "));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/zero", folder.join("device.mtx")).unwrap();
        refused(
            &folder,
            "info device.mtx",
            1,
            "device.mtx: expected a plain file, found a pipe or device: write it to a file first",
        );
        std::fs::remove_file(folder.join("device.mtx")).unwrap();
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), cases.len() + 1);
}
