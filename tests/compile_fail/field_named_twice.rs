//! A field with two privileges.

use maniple::prelude::*;

#[derive(Fields)]
struct Wire {
    current: f64,
}

#[task(leaf)]
fn twice(#[reads(current)] #[writes(current)] wires: Piece<Wire>) { //~ field `current` already stands in `reads` of this parameter
    wires.current[0] += 1.0;
}

fn main() {}
