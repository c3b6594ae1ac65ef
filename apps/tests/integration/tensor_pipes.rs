//! Tensors from pipes, and to them.

use std::io::Write;
use std::process::{Command, Stdio};

/// The exit code, and what is printed on standard output and standard error, of a program that reads these bytes.
fn piped(arguments: &[&str], bytes: &[u8]) -> (Option<i32>, Vec<u8>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.arg("tensor").args(arguments).env_remove("RUST_BACKTRACE").current_dir(env!("CARGO_TARGET_TMPDIR"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that refuses its options reads nothing.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    let output = child.wait_with_output().unwrap();
    (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

const MATRIX: &[u8] = b"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 0.5\n3 1 2\n";
const LINES: &[u8] = b"1 2 0.5\n3 1 2\n";

#[test]
fn tensors_come_through_pipes_in_all_forms() {
    let mut forms = vec![(MATRIX.to_vec(), "mtx"), (LINES.to_vec(), "tns")];
    for ending in ["npz", "tcs", "npy"] {
        let (code, out, error) = piped(&["convert", "/dev/stdin", &format!("{ending}:/dev/stdout")], MATRIX);
        assert_eq!(code, Some(0), "{error}");
        assert!(error.starts_with("/dev/stdout: 3 x 3 with 2 entries"), "{error}");
        forms.push((out, ending));
    }
    for (bytes, ending) in &forms {
        // What it is follows from what is in it, or is said.
        for name in ["/dev/stdin".to_owned(), format!("{ending}:/dev/stdin")] {
            let (code, out, error) = piped(&["convert", &name, "mtx:/dev/stdout"], bytes);
            assert_eq!(code, Some(0), "{name}: {error}");
            let text = String::from_utf8(out).unwrap();
            assert!(text.ends_with(" 2\n1 2 0.5\n3 1 2.0\n"), "{name}: {text}");
            let input = format!("A={name}");
            let line = ["y(i) = A(i,j) * 2", "-i", &input, "-f", "A=csr", "-o", "mtx:/dev/stdout", "--verify"];
            let (code, out, error) = piped(&line, bytes);
            assert_eq!(code, Some(0), "{name}: {error}");
            let text = String::from_utf8(out).unwrap();
            assert!(
                text.starts_with("%%MatrixMarket") && text.ends_with("1.0\n0.0\n4.0\n")
                    || text.ends_with("1 1 1.0\n3 1 4.0\n"),
                "{name}: {text}"
            );
            assert!(error.contains("within rounding"), "the report is apart: {error}");
        }
        let (code, out, error) = piped(&["info", "/dev/stdin"], bytes);
        assert!(code == Some(0) && String::from_utf8(out).unwrap().contains("entries"), "{ending}: {error}");
    }
}

#[test]
fn what_a_pipe_is_to_get_must_be_said() {
    let (code, _, error) = piped(&["convert", "/dev/stdin", "/dev/stdout"], MATRIX);
    assert!(code == Some(2) && error.contains("as in mtx:/dev/stdout"), "{error}");
    let (code, _, error) = piped(&["y(i) = x(i)", "--size", "i=3", "-o", "/dev/stdout"], MATRIX);
    assert!(code == Some(2) && error.contains("as in mtx:/dev/stdout"), "{error}");
    let (code, out, error) = piped(&["y(i) = 2 * 3", "--size", "i=2", "-o", "mtx:/dev/stdout"], MATRIX);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(String::from_utf8(out).unwrap(), "%%MatrixMarket matrix array real general\n2 1\n6.0\n6.0\n");
}
