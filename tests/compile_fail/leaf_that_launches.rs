//! A leaf with a context to launch from.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[task(leaf)]
fn restless(cx: &Context) { //~ leaf
    let _ = cx;
}

fn main() {}
