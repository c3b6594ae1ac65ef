//! A misspelt field with each privilege, used several times, and in a body.

use maniple::prelude::*;

#[derive(Fields)]
struct Wire {
    current: f64,
    resistance: f64,
}

#[derive(Fields)]
struct Node {
    charge: f64,
    voltage: f64,
}

#[task(leaf)]
fn reads(#[reads(curent)] wires: Piece<Wire>) -> f64 { //~ no field `curent` on type `FieldsOfWire`
    wires.points().map(|point| wires.curent[point]).sum()
}

#[task(leaf)]
fn writes(#[reads(resistance)] #[writes(curent)] wires: Piece<Wire>) { //~ no field `curent` on type `FieldsOfWire`
    for point in wires.points() {
        wires.curent[point] += wires.resistance[point];
    }
}

#[task(leaf)]
fn discards(#[discards(curent, resistance)] wires: Piece<Wire>) { //~ no field `curent` on type `FieldsOfWire`
    for point in wires.points() {
        wires.curent[point] = 1.0;
        wires.resistance[point] = wires.curent[point];
    }
}

#[task(leaf)]
fn reduces(#[reduces(Sum, curent)] wires: Piece<Wire>) { //~ no field `curent` on type `FieldsOfWire`
    for point in wires.points() {
        wires.curent.fold(point, 1.0);
        wires.curent.fold(point, 2.0);
    }
}

#[task]
async fn parent(cx: &Context, #[writes(curent)] wires: Region<Wire>) -> Result<f64> { //~ no field `curent` on type `FieldsOfWire`
    cx.launch(writes(&wires));
    cx.launch(reads(&wires)).await
}

/// Two parameters, each with a mistake.
#[task(leaf)]
fn both(
    #[reads(curent)] wires: Piece<Wire>, //~ no field `curent` on type `FieldsOfWire`
    #[writes(charg)] nodes: Piece<Node>, //~ no field `charg` on type `FieldsOfNode`
    factor: f64,
) {
    nodes.charg[0] = factor * wires.curent[0];
}

#[task(leaf, variant_of(writes))]
fn variant(#[reads(resistance)] #[writes(curent)] wires: Piece<Wire>) { //~ no field `curent` on type `FieldsOfWire`
    wires.curent[0] = wires.resistance[0];
}

#[task(leaf)]
fn body(#[reads(resistance)] #[writes(current)] wires: Piece<Wire>) {
    wires.curent[0] = wires.resistance[0]; //~ no field `curent` on type `wires_as_declared_by_body
}

fn main() {}
