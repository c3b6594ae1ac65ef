//! An argument that cannot be handed to several points.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

struct Unique;

#[task(leaf)] //~ `Unique: Clone` is not satisfied //~ `Unique: Clone` //~ `Unique: Clone`
fn consume(unique: Unique) {
    let _ = unique;
}

fn launch(cx: &Context) {
    cx.launch(consume(Unique)); //~ `Unique` must be `Clone + Send + Sync + 'static`
}

fn main() {}
