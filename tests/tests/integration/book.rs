//! What the book says of the sources is so: its pictures of the imports.

use std::fs;

use maniple_tests::imports::root;
use maniple_tests::pictures::pictures;

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
