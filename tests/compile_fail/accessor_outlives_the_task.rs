//! An accessor carried out of its task.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

use std::sync::Mutex;

static KEPT: Mutex<Option<maniple::access::Read<'static, f64, 1>>> = Mutex::new(None);

#[task(leaf)]
fn keep(#[reads(a)] cells: Piece<Cell>) {
    *KEPT.lock().unwrap() = Some(cells.a); //~ borrowed data escapes
}

fn main() {}
