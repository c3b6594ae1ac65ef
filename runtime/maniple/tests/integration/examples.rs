//! The examples run, each to its end: the last thing that each does is to check its result.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn every_example_runs_and_prints_what_it_has_found() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let test = std::env::current_exe().unwrap();
    // Cargo has put this program into `deps`, and the examples beside that.
    let programs = test.parent().and_then(Path::parent).unwrap().join("examples");
    let mut count = 0;
    for source in fs::read_dir(sources).unwrap() {
        let source = source.unwrap().path();
        if source.is_dir() {
            // A part of an example.
            continue;
        }
        let name = source.file_stem().unwrap().to_str().unwrap();
        let program = programs.join(name).with_extension(std::env::consts::EXE_EXTENSION);
        let changed = |file: &Path| fs::metadata(file).and_then(|data| data.modified()).ok();
        assert!(
            changed(&program) >= changed(&source),
            "{} is not there, or older than its source: run `cargo test -p maniple`, or first `cargo build -p maniple --examples`",
            program.display()
        );
        let mut command = Command::new(&program);
        let output = command.current_dir(env!("CARGO_TARGET_TMPDIR")).env_remove("RUST_BACKTRACE").output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {}\n{out}{err}", output.status);
        let lines = out.lines().count();
        assert!((1..=30).contains(&lines), "{name} prints {lines} lines");
        count += 1;
    }
    assert!(count >= 30, "only {count} examples");
}
