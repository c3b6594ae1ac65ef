//! Fields of a struct that does not exist.

use maniple::prelude::*;

#[derive(Fields)]
struct Wire {
    current: f64,
}

#[task(leaf)]
fn look(#[reads(current)] wires: Piece<Wier>) -> f64 { //~ cannot find type `Wier` //~ cannot find type `Wier`
    wires.current[0]
}

fn main() {}
