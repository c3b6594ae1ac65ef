//! The `maniple` program.
fn main() {}
