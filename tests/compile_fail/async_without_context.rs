//! A task that waits without a context.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[task]
async fn wait() {} //~ Context

fn main() {}
