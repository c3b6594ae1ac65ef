//! The book's chapters on tensors and on blocks: their pictures are those that the program draws today, and their transcripts what it says.

use std::path::{Path, PathBuf};
use std::process::Command;

fn book() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src")
}

/// The commands of the chapters, each with what the chapter shows of what it prints.
fn transcripts() -> Vec<(Vec<String>, String)> {
    let read = |chapter| std::fs::read_to_string(book().join(chapter)).expect("the chapter can be read");
    let text = ["tensors.md", "blocks.md"].map(read).join("\n");
    let blocks = text.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let parts = blocks.filter_map(|block| block.strip_prefix("$ maniple ")?.split_once('\n'));
    let is_shown = |shown: &str| !shown.starts_with("$ ");
    let parts = parts.filter(|(_, shown)| is_shown(shown));
    parts.map(|(line, shown)| (shlex::split(line).expect("a line of a shell"), shown.to_owned())).collect()
}

fn run(arguments: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_maniple")).args(arguments).output().expect("the program starts");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    String::from_utf8(output.stdout).expect("the program prints text")
}

#[test]
fn the_pictures_of_the_chapters_are_what_their_commands_draw() {
    let mut drawn = 0;
    for (mut arguments, _) in transcripts() {
        let Some(place) = arguments.iter().position(|argument| argument == "--draw") else { continue };
        let name = arguments[place + 1].strip_prefix("docs/src/").expect("pictures are in the book").to_owned();
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(Path::new(&name).file_name().expect("a file"));
        file.to_str().expect("its name is text").clone_into(&mut arguments[place + 1]);
        run(&arguments);
        let read = |path: &Path| std::fs::read_to_string(path).expect("the picture can be read");
        assert!(read(&book().join(&name)) == read(&file), "{name} is out of date: run the command in the chapter");
        drawn += 1;
    }
    assert_eq!(drawn, 4);
}

#[test]
fn the_explanations_of_the_chapters_are_what_the_program_says() {
    let mut compared = 0;
    for (arguments, shown) in transcripts().into_iter().filter(|(_, shown)| !shown.is_empty()) {
        assert_eq!(run(&arguments), shown, "{arguments:?}");
        compared += 1;
    }
    assert_eq!(compared, 1);
}
