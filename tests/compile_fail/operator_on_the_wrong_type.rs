//! A reduction operator that is not defined on the field.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}


#[derive(Fields)]
struct Other {
    flag: bool,
}

#[task(leaf)]
fn add(#[reduces(Sum, flag)] others: Piece<Other>) { //~ is not defined on fields of type `bool`
    let _ = others;
}

fn main() {}
