//! The book's chapters on tensors and on blocks: their pictures are those that the program draws today, and their
//! transcripts what it says.

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

/// The rows of the tables of a chapter whose first column has this name, without quotes.
fn rows(chapter: &str, column: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(book().join(chapter)).expect("the chapter can be read");
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&format!("| {column} | `")));
    let first: Vec<&str> = lines.by_ref().skip(2).take_while(|line| line.starts_with('|')).collect();
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    first.into_iter().map(cells).collect()
}

/// Computes on two nodes, and compares the result with the definition; gives what is explained before.
fn verified(statement: &str, options: &[String]) -> String {
    let program = env!("CARGO_BIN_EXE_maniple");
    let around =
        ["launch", "-n", "2", "--no-prefix", "--", program, "tensor", statement, "--workers", "1", "--repeat", "1"];
    let run = |last: &str| {
        let mut command = Command::new(program);
        let output = command.args(around).args(options).arg(last).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        // Each node warns of equal parts that are blocks.
        let said: Vec<&str> = said.lines().filter(|line| !line.contains("makes blocks: write")).collect();
        assert_eq!(said, [""; 0], "{statement} {options:?}");
        assert!(output.status.success(), "{statement} {options:?}");
        String::from_utf8(output.stdout).expect("the program prints text")
    };
    assert!(run("--verify").contains("within rounding"), "{statement} {options:?}");
    run("--explain")
}

#[test]
fn levels_are_distributed_as_the_table_of_the_book_says() {
    let unquoted = |cell: &str| cell.trim_matches('`').to_owned();
    let rows = rows("sparse.md", "level");
    assert!(rows.len() >= 9, "{rows:?}");
    for row in rows {
        let [_, format, blocks, parts, _, _, loops] = &row[..] else { panic!("{row:?}") };
        for place in [blocks, parts] {
            let options = ["--generate", "A=uniform:0.2", "--size", "i=40,j=30", "--grid", "2", "--format"];
            let options = options.map(str::to_owned).into_iter();
            let placed = [unquoted(format), "--place".to_owned(), unquoted(place)];
            let told = verified("y(i) = A(i,j) * x(j)", &options.chain(placed).collect::<Vec<_>>());
            let expected = match &**loops {
                "as it is" => None,
                "by entries" => Some("equal parts of level 1 of A".to_owned()),
                of => Some(format!("A is converted to {} where it is placed", unquoted(of.trim_start_matches("of ")))),
            };
            match expected {
                Some(expected) => assert!(told.contains(&expected), "{row:?}\n{told}"),
                None => assert!(!told.contains("is converted"), "{row:?}\n{told}"),
            }
        }
    }
}

#[test]
fn loops_go_through_levels_as_the_table_of_the_book_says() {
    let unquoted = |cell: &str| cell.trim_matches('`').to_owned();
    let rows = rows("sparse.md", "what is stored");
    assert!(rows.len() >= 8, "{rows:?}");
    for row in rows {
        let [_, format, loops, ..] = &row[..] else { panic!("{row:?}") };
        let options = ["--generate", "A=uniform:0.2", "--size", "i=40,j=31", "--grid", "3", "--format"];
        let options: Vec<String> = options.map(str::to_owned).into_iter().chain([unquoted(format)]).collect();
        let told = verified("y(i) = A(i,j) * x(j)", &options);
        match loops.strip_prefix("of ") {
            Some(other) => assert!(told.contains(&format!("A is converted to {} where", unquoted(other))), "{told}"),
            None => assert!(!told.contains("is converted") && loops != "of", "{row:?}\n{told}"),
        }
    }
}

#[test]
fn statements_are_distributed_as_the_table_of_the_book_says() {
    let text = std::fs::read_to_string(book().join("sparse.md")).expect("the chapter can be read");
    let lines = text.lines().skip_while(|line| !line.starts_with("| statement | options |")).skip(2);
    let lines: Vec<&str> = lines.take_while(|line| line.starts_with('|')).collect();
    assert!(lines.len() >= 16, "{lines:?}");
    for line in lines {
        let cells: Vec<&str> = line.split('`').collect();
        let [_, statement, _, options, _, ..] = cells[..] else { panic!("{line}") };
        let mut options = shlex::split(options).expect("options of a shell");
        let is_sparse = |name: &&str| options.iter().any(|own| own.starts_with(&format!("{name}=")));
        let sparse: Vec<&str> = ["A", "B", "C"].into_iter().filter(|name| is_sparse(name)).collect();
        for name in sparse {
            options.extend(["--generate".to_owned(), format!("{name}=uniform:0.1")]);
        }
        let sizes = [("i", 30), ("j", 30), ("k", 30), ("l", 5)].into_iter();
        let sizes = sizes
            .filter(|(name, _)| statement.contains(&format!("{name},")) || statement.contains(&format!("{name})")));
        let sizes: Vec<String> = sizes.map(|(name, size)| format!("{name}={size}")).collect();
        options.extend(["--size".to_owned(), sizes.join(",")]);
        verified(statement, &options);
    }
}
