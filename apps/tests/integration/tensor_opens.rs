//! How often the files of operands are opened: once by each node, whatever their kind is.

use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;

/// Runs the program, and counts how often a file is opened meanwhile. After each time that it is opened it is read,
/// so that no two events are alike, which the system would tell as one.
#[track_caller]
fn opened(file: &Path, arguments: &[&str]) -> usize {
    let events = init(CreateFlags::NONBLOCK).unwrap();
    add_watch(&events, file, WatchFlags::OPEN | WatchFlags::ACCESS).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    let run = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).status();
    assert!(run.unwrap().success(), "{arguments:?}");
    let mut room = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(&events, &mut room);
    let mut count = 0;
    loop {
        match reader.next() {
            Ok(event) => count += usize::from(event.events().contains(ReadFlags::OPEN)),
            Err(Errno::AGAIN) => return count,
            Err(error) => panic!("{error}"),
        }
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("opens-{name}"))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A matrix of 40 rows and columns in files of all kinds, and the format that is to be given for each.
fn files() -> Vec<(PathBuf, Option<&'static str>)> {
    let lines: Vec<String> = (1..=40).map(|row| format!("{row} {} {}.5\n", row * 7 % 40 + 1, row)).collect();
    let market = path("a.mtx");
    let head = "%%MatrixMarket matrix coordinate real general\n40 40 40\n";
    std::fs::write(&market, head.to_owned() + &lines.concat()).unwrap();
    let converted = |name: &str| {
        let to = path(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
        command.args(["tensor", "convert", text(&market), text(&to)]).stdout(Stdio::null());
        assert!(command.status().unwrap().success());
        to
    };
    let (tns, npz, tcs, npy) = (converted("a.tns"), converted("a.npz"), converted("a.tcs"), converted("a.npy"));
    vec![(market, Some("csr")), (tns, Some("csr")), (npz, Some("csr")), (tcs, None), (npy, None)]
}

#[test]
fn the_file_of_an_operand_is_opened_once() {
    for (file, format) in files() {
        let input = format!("A={}", text(&file));
        let format = format.map(|format| format!("A={format}"));
        let mut statement = vec!["tensor", "y(i) = A(i,j) * x(j)", "--input", &input, "--repeat", "1"];
        statement.extend(format.iter().flat_map(|format| ["--format", format]));
        assert_eq!(opened(&file, &statement), 1, "{}", file.display());
        let verified: Vec<&str> = statement.iter().copied().chain(["--verify"]).collect();
        assert_eq!(opened(&file, &verified), 1, "{}, verified", file.display());
        let nodes = ["launch", "-n", "2", "--", env!("CARGO_BIN_EXE_maniple")];
        let nodes: Vec<&str> = nodes.into_iter().chain(statement).collect();
        // What two nodes do at the same time the system may tell as one.
        assert!((1..=2).contains(&opened(&file, &nodes)), "{} by two nodes", file.display());
    }
}
