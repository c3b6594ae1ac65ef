//! A field that owns something.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[derive(Fields)]
struct Named {
    name: String, //~ `String` cannot be the value of a field
}

fn main() {}
