//! Structs that do not derive `Fields`.

use maniple::prelude::*;

struct Wire {
    current: f64,
    charge: f64,
}

#[task(leaf)]
fn look(#[reads(current)] #[reduces(Sum, charge)] mut wires: Piece<Wire>) { //~ `Wire` does not derive `Fields` //~ `Wire` does not derive `Fields`
    wires.charge.fold(0, wires.current[0]);
}

#[task]
async fn pass(_cx: &Context, #[reads(current)] #[writes(charge)] _wires: Region<Wire>) {} //~ `Wire` does not derive `Fields` //~ `Wire` does not derive `Fields`

fn main() {}
