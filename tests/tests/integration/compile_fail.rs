//! Programs that must not compile, and what the compiler must say.
//!
//! Each file in `compile_fail/` is a program with one mistake and, behind `//~`, words that the compiler's first complaint must contain. So
//! that other compiler versions may phrase the rest as they like, nothing else is compared.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs, by name.
fn cases() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("compile_fail");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    cases.sort();
    cases
}

/// A package with every program as a binary of its own.
fn package(cases: &[(String, PathBuf)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    std::fs::create_dir_all(&folder).unwrap();
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/maniple").canonicalize().unwrap();
    let mut manifest = format!(
        "[package]\nname = \"compile-fail\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\nmaniple = {{ path = {runtime:?} }}\n"
    );
    for (name, path) in cases {
        manifest += &format!("\n[[bin]]\nname = {name:?}\npath = {path:?}\n");
    }
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    // The same versions of everything as in the workspace, so that nothing new is fetched.
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    folder
}

fn check(package: &Path, name: &str) -> (bool, String) {
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--bin", name])
        .current_dir(package)
        .env("CARGO_TARGET_DIR", package.join("target"))
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn every_program_is_refused_with_the_right_words() {
    let cases = cases();
    let package = package(&cases);
    let mut wrong = Vec::new();
    for (name, path) in &cases {
        let source = std::fs::read_to_string(path).unwrap();
        let expected: Vec<&str> = source.lines().filter_map(|line| line.split("//~").nth(1)).map(str::trim).collect();
        let (compiles, errors) = check(&package, name);
        if name.starts_with("pass_") {
            if !compiles {
                wrong.push(format!("{name} must compile, but: {errors}"));
            }
            continue;
        }
        assert!(!expected.is_empty(), "{name} does not say what the compiler should");
        if compiles {
            wrong.push(format!("{name} compiles"));
        }
        for words in expected {
            if !errors.contains(words) {
                wrong.push(format!("{name}: the compiler does not say {words:?} but: {errors}"));
            }
        }
    }
    assert!(cases.len() >= 12 && wrong.is_empty(), "{}", wrong.join("\n\n"));
}
