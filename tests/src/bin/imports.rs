//! Draws the pictures of what imports what into a folder:
//! `cargo run -p maniple-tests --bin imports -- docs/src/pictures`.

use std::io::Error;
use std::path::PathBuf;

fn main() -> Result<(), Error> {
    let folder = std::env::args().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| Error::other("expected a folder for the pictures, such as docs/src/pictures"))?;
    for (file, picture) in maniple_tests::pictures::pictures() {
        std::fs::write(folder.join(file), picture)?;
    }
    Ok(())
}
