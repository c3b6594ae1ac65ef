//! Statements of the book about the sources are true: its list of examples, its links, its chapters, its pictures of
//! the imports.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use maniple::mapper::{MappingRules, Mistake};
use maniple_tests::imports::root;
use maniple_tests::pictures::pictures;

/// The address of the sources on the web, as the book links to them.
const SOURCES: &str = "https://github.com/maniple/maniple/blob/main/";

/// The chapters, by their paths from the folder of the book.
fn chapters() -> Vec<PathBuf> {
    let book = root().join("docs/src");
    let mut folders = vec![book.clone()];
    let mut chapters = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "md") {
                chapters.push(entry.strip_prefix(&book).unwrap().to_owned());
            }
        }
    }
    chapters
}

#[test]
fn the_book_lists_every_example_with_the_first_paragraph_of_its_documentation() {
    let examples = fs::read_dir(root().join("runtime/maniple/examples")).unwrap();
    let row = |path: &Path| {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let text = fs::read_to_string(path).unwrap();
        let shows: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//! ")).collect();
        assert!(!shows.is_empty(), "{name} does not begin with what it shows");
        let shows = shows.join(" ");
        assert!(text.contains(&format!("cargo run -p maniple --example {name}")), "{name} does not say how to run it");
        format!("| [`{name}`]({SOURCES}runtime/maniple/examples/{name}.rs) | {shows} |")
    };
    // What is in folders is a part of an example.
    let examples = examples.map(|example| example.unwrap().path()).filter(|path| path.is_file());
    let expected: BTreeSet<String> = examples.map(|example| row(&example)).collect();
    let chapter = fs::read_to_string(root().join("docs/src/examples.md")).unwrap();
    let listed: BTreeSet<String> = chapter.lines().filter(|line| line.starts_with("| [")).map(str::to_owned).collect();
    assert_eq!(listed, expected);
}

#[test]
fn links_to_sources_lead_to_files_that_exist() {
    let mut count = 0;
    for chapter in chapters() {
        let text = fs::read_to_string(root().join("docs/src").join(&chapter)).unwrap();
        for link in text.split(SOURCES).skip(1) {
            let path = link.split([')', '#', ' ', '\n']).next().unwrap();
            assert!(root().join(path).exists(), "{} links to {path}, which is not there", chapter.display());
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} links");
}

#[test]
fn every_chapter_is_in_the_summary_and_its_samples_are_tested() {
    let summary = fs::read_to_string(root().join("docs/src/SUMMARY.md")).unwrap();
    let tested = fs::read_to_string(root().join("docs/lib.rs")).unwrap();
    for chapter in chapters().iter().map(|chapter| chapter.display().to_string()).filter(|name| name != "SUMMARY.md") {
        assert!(summary.contains(&format!("({chapter})")), "SUMMARY.md lacks {chapter}");
        assert!(tested.contains(&format!("include_str!(\"src/{chapter}\")")), "docs/lib.rs lacks {chapter}");
    }
}

#[test]
fn the_mapping_files_of_the_book_and_of_the_programs_have_no_mistakes() {
    let chapter = fs::read_to_string(root().join("docs/src/mapping-files.md")).unwrap();
    let blocks = chapter.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap().to_owned());
    let files = fs::read_dir(root().join("apps/mappings")).unwrap();
    let files = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let texts: Vec<String> = blocks.chain(files).collect();
    assert!(texts.len() > 3, "{texts:?}");
    for text in texts {
        MappingRules::parse(&text).unwrap_or_else(|mistake| panic!("{mistake}\n{text}"));
    }
}

/// The chapter on mapping files has a row for each key of a rule, and no other.
#[test]
fn the_book_lists_every_key_of_a_mapping_file() {
    let chapter = fs::read_to_string(root().join("docs/src/mapping-files.md")).unwrap();
    let row = |line: &str| {
        line.strip_prefix("| `")
            .filter(|line| !line.starts_with('['))
            .map(|line| line.split(" |").next().unwrap().replace('`', ""))
    };
    let listed: BTreeSet<String> = chapter
        .lines()
        .filter_map(row)
        .flat_map(|keys| keys.split(", ").map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let mut keys = BTreeSet::new();
    for table in ["task", "data"] {
        let mistake = MappingRules::parse(&format!("[[{table}]]\n'?' = 1\n")).unwrap_err().mistake;
        let Mistake::UnknownKey { known, .. } = mistake else { panic!("`?` is a key") };
        keys.extend(known.into_iter().map(str::to_owned));
    }
    assert_eq!(listed, keys);
}

#[test]
fn the_pictures_of_the_imports_are_those_of_the_sources() {
    let architecture = fs::read_to_string(root().join("docs/src/architecture.md")).unwrap();
    for (file, picture) in pictures() {
        assert!(architecture.contains(&format!("(pictures/{file})")), "architecture.md does not show {file}");
        let committed = fs::read_to_string(root().join("docs/src/pictures").join(file)).unwrap_or_default();
        assert!(
            committed == picture,
            "imports have changed: run `cargo run -p maniple-tests --bin imports -- docs/src/pictures`, and look at {file}"
        );
    }
}
