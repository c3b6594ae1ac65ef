//! The regions and tasks of the circuit (Bauer 2014, section 2.2).

use maniple::prelude::*;

use super::graph::CircuitShape;

/// The length of a step.
pub const TIME_STEP: f64 = 0.1;

/// One node of the circuit. Each member is a field of the region.
#[derive(Fields)]
pub struct Node {
    /// The piece that owns the node.
    pub piece: u32,
    /// How much charge it holds a volt.
    pub capacitance: f64,
    /// The share of the voltage that it loses in a step.
    pub leakage: f64,
    /// Charge that has come in during this step.
    pub charge: f64,
    /// The voltage.
    pub voltage: f64,
}

/// One wire of the circuit.
#[derive(Fields)]
pub struct Wire {
    /// The node where it starts.
    pub from: Ptr<Node>,
    /// The node where it ends.
    pub to: Ptr<Node>,
    /// The resistance.
    pub resistance: f64,
    /// The current, from start to end.
    pub current: f64,
}

/// Makes the nodes and wires of one piece.
#[task(leaf)]
pub fn make_piece(
    #[point] piece: Point<1>,
    #[discards(piece, capacitance, leakage, charge, voltage)] nodes: Piece<Node>,
    #[discards(from, to, resistance, current)] wires: Piece<Wire>,
    shape: CircuitShape,
) {
    let number = piece[0] as usize;
    for (node, values) in nodes.points().zip(shape.nodes_of(number)) {
        nodes.piece[node] = number as u32;
        nodes.capacitance[node] = values.capacitance;
        nodes.leakage[node] = values.leakage;
        nodes.charge[node] = 0.0;
        nodes.voltage[node] = values.voltage;
    }
    for (wire, values) in wires.points().zip(shape.wires_of(number)) {
        wires.from[wire] = Ptr::row(values.from as i64);
        wires.to[wire] = Ptr::row(values.to as i64);
        wires.resistance[wire] = values.resistance;
        wires.current[wire] = 0.0;
    }
}

/// Ohm's law on each wire. Its ends are among the piece's private nodes, its shared nodes, or other pieces' shared
/// nodes, its ghosts.
#[task(leaf)]
pub fn calc_new_currents(
    #[reads(from, to, resistance)]
    #[writes(current)]
    wires: Piece<Wire>,
    #[reads(voltage)] private: Piece<Node>,
    #[reads(voltage)] shared: Piece<Node>,
    #[reads(voltage)] ghost: Piece<Node>,
) {
    let voltage = |node: Ptr<Node>| {
        let owned = private.voltage.get(node).or_else(|| shared.voltage.get(node));
        owned.unwrap_or_else(|| ghost.voltage[node])
    };
    for row in wires.rows() {
        let (from, to, resistance) = (wires.from.span(row), wires.to.span(row), wires.resistance.span(row));
        for (wire, current) in wires.current.span_mut(row).iter_mut().enumerate() {
            *current = (voltage(from[wire]) - voltage(to[wire])) / resistance[wire];
        }
    }
}

/// Moves each wire's charge from its start to its end. Reducers run side by side: addition commutes.
#[task(leaf)]
pub fn distribute_charge(
    #[reads(from, to, current)] wires: Piece<Wire>,
    #[reduces(Sum, charge)] private: Piece<Node>,
    #[reduces(Sum, charge)] shared: Piece<Node>,
    #[reduces(Sum, charge)] ghost: Piece<Node>,
) {
    let mut add = |node: Ptr<Node>, charge: f64| {
        if !private.charge.try_fold(node, charge) && !shared.charge.try_fold(node, charge) {
            ghost.charge.fold(node, charge);
        }
    };
    for row in wires.rows() {
        let (from, to, current) = (wires.from.span(row), wires.to.span(row), wires.current.span(row));
        for (wire, current) in current.iter().enumerate() {
            add(from[wire], -TIME_STEP * current);
            add(to[wire], TIME_STEP * current);
        }
    }
}

/// Turns the charge that came in into voltage.
#[task(leaf)]
pub fn update_voltages(
    #[reads(capacitance, leakage)]
    #[writes(charge, voltage)]
    private: Piece<Node>,
    #[reads(capacitance, leakage)]
    #[writes(charge, voltage)]
    shared: Piece<Node>,
) {
    // Two parameters with the same privileges are two types; a macro treats them alike.
    macro_rules! update {
        ($nodes:ident) => {
            for node in $nodes.points() {
                $nodes.voltage[node] += $nodes.charge[node] / $nodes.capacitance[node];
                $nodes.voltage[node] *= 1.0 - $nodes.leakage[node];
                $nodes.charge[node] = 0.0;
            }
        };
    }
    update!(private);
    update!(shared);
}

/// How many nodes there are.
#[task(leaf)]
pub fn count(#[reads(piece)] nodes: Piece<Node>) -> u64 {
    nodes.space().volume()
}

/// Copies the state of nodes to others like them: into those that are stored, or out of those that were.
#[task(leaf)]
pub fn copy_state(#[reads(charge, voltage)] from: Piece<Node>, #[discards(charge, voltage)] to: Piece<Node>) {
    for row in from.rows() {
        to.charge.span_mut(row).copy_from_slice(&from.charge.span(row));
        to.voltage.span_mut(row).copy_from_slice(&from.voltage.span(row));
    }
}
