//! Programs that must not compile, and what the compiler must say.
//!
//! Each file in `compile_fail/` is a program with a mistake and, behind `//~` on its line, words of the error there;
//! behind another `//~` on that line, of the next error there. There is no other error. The rest of the text may differ
//! between compiler versions and is not compared.

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

/// The numbers of the lines where errors are, and what is said of each, without the source's comments.
fn errors_of(said: &str) -> Vec<(usize, String)> {
    let mut errors: Vec<(usize, String)> = Vec::new();
    let mut is_within = false;
    for line in said.lines() {
        if let Some(kind) =
            ["error", "warning", "Some errors", "For more"].iter().find(|start| line.starts_with(**start))
        {
            is_within = *kind == "error" && !line.starts_with("error: could not compile");
            if is_within {
                errors.push((0, String::new()));
            }
        }
        let Some((number, text)) = errors.last_mut().filter(|_| is_within) else { continue };
        if let Some((_, place)) = line.split_once("--> ").filter(|_| *number == 0) {
            *number = place.rsplit(':').nth(1).unwrap().parse().unwrap();
        }
        *text += line.split("//~").next().unwrap_or_default();
        text.push('\n');
    }
    errors
}

/// The numbers of the lines where errors are expected, and words of each.
fn expected_in(source: &str) -> Vec<(usize, String)> {
    let lines = source.lines().zip(1..);
    lines
        .flat_map(|(line, number)| line.split("//~").skip(1).map(move |words| (number, words.trim().to_owned())))
        .collect()
}

#[test]
fn every_program_is_refused_with_the_right_words() {
    let cases = cases();
    let package = package(&cases);
    let mut wrong = Vec::new();
    for (name, path) in &cases {
        let source = std::fs::read_to_string(path).unwrap();
        let expected = expected_in(&source);
        let (compiles, said) = check(&package, name);
        if name.starts_with("pass_") {
            if !compiles {
                wrong.push(format!("{name} must compile, but: {said}"));
            }
            continue;
        }
        assert!(!expected.is_empty(), "{name} does not say what the compiler should");
        if compiles {
            wrong.push(format!("{name} compiles"));
        }
        let mut errors = errors_of(&said);
        for (line, words) in expected {
            match errors.iter().position(|(number, text)| *number == line && text.contains(&words)) {
                Some(found) => drop(errors.remove(found)),
                None => wrong.push(format!("{name}: the compiler does not say {words:?} of line {line}, but: {said}")),
            }
        }
        if !errors.is_empty() {
            wrong.push(format!("{name}: the compiler also says {errors:?}"));
        }
    }
    assert!(cases.len() >= 12 && wrong.is_empty(), "{}", wrong.join("\n\n"));
}
