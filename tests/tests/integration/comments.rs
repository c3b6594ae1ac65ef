//! Rules for comments and Markdown: their columns, and the first words of documentation.

use std::fs;
use std::path::{Path, PathBuf};

use maniple_tests::imports::root;

/// As in `rustfmt.toml`.
const COLUMNS: usize = 120;

/// All files below a folder with these endings, but for those that were built or fetched.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            let is_source = name != "target" && !name.to_string_lossy().starts_with('.');
            found.extend(is_source.then(|| files(&path, endings)).into_iter().flatten());
        } else if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            found.push(path);
        }
    }
    found
}

/// The text of a line of a comment; none of another line.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']))
}

/// The numbers of lines of text that are too long. Rows of tables cannot be wrapped, nor can code in a block.
fn too_long<'t>(lines: impl Iterator<Item = (&'t str, Option<&'t str>)>) -> Vec<usize> {
    let (mut found, mut is_code) = (Vec::new(), false);
    for (number, (line, text)) in (1..).zip(lines) {
        let Some(text) = text.map(str::trim) else {
            is_code = false;
            continue;
        };
        if text.starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !text.starts_with('|') && text.contains(' ') && line.chars().count() > COLUMNS {
            found.push(number);
        }
    }
    found
}

#[test]
fn lines_of_comments_and_markdown_hold_120_columns() {
    let all = files(&root(), &["rs", "md"]);
    assert!(all.len() > 1_000, "only {} files", all.len());
    let mut wrong = Vec::new();
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let is_markdown = path.extension().is_some_and(|ending| ending == "md");
        let numbers = match is_markdown {
            true => too_long(text.lines().map(|line| (line, Some(line)))),
            false => too_long(text.lines().map(|line| (line, comment(line)))),
        };
        wrong.extend(numbers.into_iter().map(|number| format!("{}:{number}", path.display())));
    }
    assert!(wrong.is_empty(), "lines of more than {COLUMNS} columns:\n{}", wrong.join("\n"));
}

#[test]
fn lines_that_are_too_long_are_found_but_in_tables_and_code() {
    let long = format!("a {}", "b".repeat(COLUMNS));
    let (row, code) = (format!("| {long} |"), format!("/// {long}"));
    for (lines, expected) in [
        (vec![long.as_str()], vec![1]),
        (vec!["short", row.as_str(), long.as_str()], vec![3]),
        (vec!["```text", long.as_str(), "```", long.as_str()], vec![4]),
        (vec![&long[2..]], vec![]),
    ] {
        assert_eq!(too_long(lines.iter().map(|line| (*line, Some(*line)))), expected, "{lines:?}");
    }
    let lines = ["fn f() {}", code.as_str(), "let x = 1;"];
    assert_eq!(too_long(lines.into_iter().map(|line| (line, comment(line)))), [2]);
}

/// Words with which no documentation begins: the reader would have to find the noun.
const RIDDLES: &[&str] = &["What", "Whatever", "Where", "Who", "Whoever", "Whom", "Those"];

/// Whether a line of documentation begins with such a word.
fn is_riddle(line: &str) -> bool {
    let line = line.trim_start();
    let text = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
    text.is_some_and(|text| RIDDLES.contains(&text.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default()))
}

#[test]
fn documentation_begins_with_a_noun_or_a_verb() {
    let mut wrong = Vec::new();
    for path in files(&root(), &["rs"]) {
        let text = fs::read_to_string(&path).unwrap();
        let numbers = (1..).zip(text.lines()).filter(|(_, line)| is_riddle(line));
        wrong.extend(numbers.map(|(number, line)| format!("{}:{number}: {}", path.display(), line.trim())));
    }
    assert!(wrong.is_empty(), "say what the item is, by a noun or a verb:\n{}", wrong.join("\n"));
    assert!(is_riddle("    /// What is left.") && is_riddle("//! Whom it is for.") && is_riddle("/// Where: here"));
    assert!(!is_riddle("/// Whether it is.") && !is_riddle("// What follows") && !is_riddle("/// Whereas"));
}

/// Words that stand for a thread, a node or a task without naming it.
const PRONOUNS: &[&str] = &["nobody", "somebody", "whoever", "whom"];

/// The words of a text that stand outside of code.
fn words(text: &str) -> impl Iterator<Item = String> {
    let prose = text.split('`').step_by(2);
    prose.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_')).map(str::to_lowercase)
}

#[test]
fn comments_and_chapters_name_things() {
    let mut wrong = Vec::new();
    for path in files(&root(), &["rs", "md"]) {
        let text = fs::read_to_string(&path).unwrap();
        let is_markdown = path.extension().is_some_and(|ending| ending == "md");
        if path.ends_with("CHANGELOG.md") {
            continue;
        }
        let lines = (1..).zip(text.lines()).filter(|(_, line)| {
            let prose = if is_markdown { Some(*line) } else { comment(line) };
            prose.is_some_and(|prose| words(prose).any(|word| PRONOUNS.contains(&word.as_str())))
        });
        wrong.extend(lines.map(|(number, line)| format!("{}:{number}: {}", path.display(), line.trim())));
    }
    assert!(wrong.is_empty(), "name the thread, the node or the task:\n{}", wrong.join("\n"));
    assert!(words("Nobody `whom` sees").eq(["nobody", "", "", "sees"]));
}
