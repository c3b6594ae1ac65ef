//! Computations that are bound by memory: a tensor times a vector, and inner products.

use super::contest::{Contest, Contestant, Goal, Stage};
use super::rivals::{Entry, ours, rival};
use super::works::{Method, Work};
use crate::toolbox::Rival;

/// Beside loops that copy and read memory.
pub const CONTEST: Contest = Contest {
    name: "bandwidth",
    title: "Tensors of 400 x 400 x 400, f64, one process: bytes that are read and written",
    unit: "GB/s",
    contestants,
};

fn contestants(stage: &Stage) -> Vec<Contestant> {
    let size = stage.size(400, 20);
    // Several a core: a worker that is free takes the next.
    let pieces = 4 * stage.toolbox.cores() as i64;
    let elements = size * size * size;
    let gigabytes = |elements: u64| elements as f64 * 8e-9;
    let vector = Work::new(Method::Ttv, &[pieces, 1], &[size; 3]);
    let inner = Work::new(Method::Innerprod, &[pieces], &[size; 3]);
    let mut contestants = vec![
        ours(stage, "Maniple, TTV", &vector, gigabytes(elements + size * size + size), 1).must(0.85),
        ours(stage, "Maniple, innerprod", &inner, gigabytes(2 * elements), 1).must(0.85),
    ];
    // Elements are 1, 2 and 3 in turn.
    let powers = |power: u32| (0..elements).map(|index| (1 + index % 3).pow(power)).sum();
    for (number, (name, arrays, answer)) in
        [("a copy", 2, elements), ("a dot product", 2, powers(2)), ("a sum", 1, powers(1))].into_iter().enumerate()
    {
        let entry = Entry {
            rival: Rival::OpenMp,
            name: &format!("OpenMP, {name}"),
            source: "bandwidth_openmp.c",
            arguments: vec![elements.to_string(), number.to_string()],
            processes: None,
        };
        contestants.extend(rival(stage, &entry, Goal { amount: gigabytes(arrays * elements), answer }));
    }
    contestants
}
