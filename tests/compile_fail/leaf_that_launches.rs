//! A leaf with a context to launch from.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[task(leaf)] //~ a leaf task launches nothing
fn restless(cx: &Context) {
    let _ = cx;
}

fn main() {}
