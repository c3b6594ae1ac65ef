//! No mapper changes a result: each simulation under adversaries that decide at random, with its own check of the
//! result.

use maniple_apps::options::{MapperChoice, RuntimeOptions};
use maniple_apps::stencil::Extents;
use maniple_apps::{cg, circuit, stencil};

const SEEDS: u64 = 60;

/// Runs a simulation under many adversaries, numbers of workers and windows.
fn under_adversaries<R>(simulate: impl Fn(RuntimeOptions) -> maniple_apps::error::Result<R>) {
    for seed in 0..SEEDS {
        let runtime = RuntimeOptions {
            workers: Some(1 + seed as usize % 4),
            mapper: MapperChoice::Random(Some(seed)),
            window: [1, 3, 1024][seed as usize % 3],
            ..Default::default()
        };
        if let Err(error) = simulate(runtime.clone()) {
            panic!("{error}, with {runtime:?}");
        }
    }
}

#[test]
fn the_stencil_sees_no_stale_halo() {
    let (size, tiles) = (Extents { rows: 4, columns: 4 }, Some(Extents { rows: 2, columns: 2 }));
    under_adversaries(|runtime| {
        let shape = stencil::StencilOptions { size, tiles, steps: 3, radius: 1, ..Default::default() };
        stencil::run(&stencil::StencilOptions { runtime, ..shape })
    });
}

#[test]
fn the_circuit_loses_no_charge() {
    under_adversaries(|runtime| {
        let size = circuit::CircuitOptions {
            pieces: 3,
            nodes_per_piece: 5,
            wires_per_piece: 9,
            inside: 50,
            ..Default::default()
        };
        circuit::run(&circuit::CircuitOptions { steps: 4, runtime, ..size })
    });
}

#[test]
fn the_memory_of_the_circuit_follows_its_nodes_wires_and_ghosts() {
    // Some two megabytes of values. Each piece has a few ghosts, which lie all over the circuit.
    let size =
        circuit::CircuitOptions { pieces: 200, nodes_per_piece: 100, wires_per_piece: 200, ..Default::default() };
    for mapper in [MapperChoice::Default, MapperChoice::Piecewise] {
        let runtime = RuntimeOptions { memory: Some(8 << 20), mapper, ..Default::default() };
        if let Err(error) = circuit::run(&circuit::CircuitOptions { steps: 2, runtime, ..size.clone() }) {
            panic!("{error}, with {mapper:?}");
        }
    }
}

#[test]
fn conjugate_gradients_take_the_same_steps() {
    let alone = cg::run(&cg::CgOptions { poisson: 5, pieces: Some(4), ..Default::default() });
    let iterations = alone.map(|report| report.iterations).expect("the default mapper converges");
    under_adversaries(|runtime| {
        let report = cg::run(&cg::CgOptions { poisson: 5, pieces: Some(4), runtime, ..Default::default() })?;
        assert_eq!(report.iterations, iterations);
        Ok(report)
    });
}
