//! The circuit by one thread on plain vectors.

use super::graph::{CircuitShape, NodeValues, WireValues};
use super::tasks::TIME_STEP;
use crate::verify::worse;

/// The voltages of all nodes after so many steps.
#[must_use]
pub fn voltages(shape: &CircuitShape, steps: usize) -> Vec<f64> {
    let nodes: Vec<NodeValues> = (0..shape.pieces).flat_map(|piece| shape.nodes_of(piece)).collect();
    let wires: Vec<WireValues> = (0..shape.pieces).flat_map(|piece| shape.wires_of(piece)).collect();
    let mut voltage: Vec<f64> = nodes.iter().map(|node| node.voltage).collect();
    let mut charge = vec![0.0; nodes.len()];
    for _ in 0..steps {
        for wire in &wires {
            let current = (voltage[wire.from] - voltage[wire.to]) / wire.resistance;
            charge[wire.from] -= TIME_STEP * current;
            charge[wire.to] += TIME_STEP * current;
        }
        for ((node, voltage), charge) in nodes.iter().zip(&mut voltage).zip(&mut charge) {
            *voltage += std::mem::take(charge) / node.capacitance;
            *voltage *= 1.0 - node.leakage;
        }
    }
    voltage
}

/// The largest error of any value relative to its reference.
///
/// Voltages start above zero, and no step makes one zero or negative, so each can be compared with itself.
#[must_use]
pub fn largest_relative_error(found: impl IntoIterator<Item = f64>, reference: &[f64]) -> f64 {
    let error = |(found, &reference): (f64, &f64)| (found - reference).abs() / reference;
    found.into_iter().zip(reference).map(error).fold(0.0, worse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::TOLERANCE;

    #[test]
    fn charge_flows_until_only_leakage_is_left() {
        let shape = CircuitShape { pieces: 2, nodes_per_piece: 5, wires_per_piece: 40, percent_inside: 50, seed: 3 };
        let after = voltages(&shape, 2000);
        let (low, high) = after.iter().fold((f64::MAX, 0.0f64), |(low, high), &v| (low.min(v), high.max(v)));
        assert!(low > 1.0 && high < 2.0 && high - low < 0.01, "{low} to {high}");
    }

    #[test]
    fn a_step_or_a_wire_too_few_is_no_rounding_error() {
        let shape = CircuitShape { pieces: 2, nodes_per_piece: 50, wires_per_piece: 200, percent_inside: 50, seed: 3 };
        let reference = voltages(&shape, 100);
        for wrong in [voltages(&shape, 99), voltages(&CircuitShape { wires_per_piece: 199, ..shape }, 100)] {
            assert!(largest_relative_error(wrong, &reference) > 1e5 * TOLERANCE);
        }
    }

    #[test]
    fn an_error_is_seen_wherever_it_is_and_also_if_it_is_no_number() {
        assert_eq!(largest_relative_error([1.0, 2.0], &[1.0, 2.0]), 0.0);
        assert_eq!(largest_relative_error([1.0, 3.0], &[1.0, 2.0]), 0.5);
        assert!(largest_relative_error([f64::NAN, 2.0], &[1.0, 2.0]).is_nan());
    }
}
