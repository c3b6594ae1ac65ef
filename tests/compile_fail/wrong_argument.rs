//! An argument of another type.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[task(leaf)]
fn scale(factor: f64) -> f64 {
    factor
}

fn launch(cx: &Context) {
    cx.launch(scale("two")); //~ `&str` cannot be passed for a parameter of type `f64`
}

fn main() {}
