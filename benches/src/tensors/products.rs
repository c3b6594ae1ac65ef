//! Products of matrices, in one process and in several.

use maniple_tensor::element::ElementType;

use super::contest::{Contest, Contestant, Goal, Stage};
use super::rivals::{Entry, ours, ours_by_library, rival};
use super::works::{Method, Work};
use crate::toolbox::Rival;

/// In one process, elements of 64 bits.
pub const DOUBLE: Contest = Contest {
    name: "gemm",
    title: "A product of matrices of 2048 x 2048, f64, one process",
    unit: "GFLOP/s",
    contestants: |stage| one_process(stage, ElementType::F64, 64),
};

/// In one process, elements of 32 bits.
pub const SINGLE: Contest = Contest {
    name: "gemm32",
    title: "A product of matrices of 2048 x 2048, f32, one process",
    unit: "GFLOP/s",
    contestants: |stage| one_process(stage, ElementType::F32, 32),
};

/// On two processes.
pub const TWO: Contest = Contest {
    name: "two",
    title: "A product of matrices of 2048 x 2048, f64, two processes",
    unit: "GFLOP/s",
    contestants: |stage| several(stage, [1, 2]),
};

/// On four processes.
pub const FOUR: Contest = Contest {
    name: "four",
    title: "A product of matrices of 2048 x 2048, f64, four processes",
    unit: "GFLOP/s",
    contestants: |stage| several(stage, [2, 2]),
};

fn one_process(stage: &Stage, element: ElementType, bits: u64) -> Vec<Contestant> {
    let size = stage.size(2048, 40);
    // Some eight tiles a core: a worker that is free takes the next, so a core that others slow down has fewer.
    let grid = [(8 * stage.toolbox.cores()).isqrt() as i64; 2];
    let work = Work { element, ..Work::new(Method::Gemm, &grid, &[size; 3]) };
    let goal = Goal { amount: work.operations(), answer: work.answer() };
    let entry = Entry {
        rival: Rival::OpenBlas,
        name: "OpenBLAS",
        source: "gemm_openblas.c",
        arguments: [size, bits].map(|number| number.to_string()).to_vec(),
        processes: None,
    };
    let mut contestants = ours_by_library(stage, &work, goal.amount, 0.95);
    contestants.extend(rival(stage, &entry, goal));
    contestants
}

/// The side of a block of ScaLAPACK's distribution: the fastest where this was tried.
const BLOCK: u64 = 64;

fn several(stage: &Stage, grid: [i64; 2]) -> Vec<Contestant> {
    let size = stage.size(2048, 60);
    let processes = (grid[0] * grid[1]) as usize;
    let work = |method| Work::new(method, &grid, &[size; 3]);
    let goal = Goal { amount: work(Method::Summa).operations(), answer: work(Method::Summa).answer() };
    let mut contestants: Vec<_> = [("Maniple, SUMMA", Method::Summa), ("Maniple, Cannon", Method::Cannon)]
        .map(|(name, method)| ours(stage, name, &work(method), goal.amount, processes).must(1.0))
        .into();
    let arguments = [grid[0] as u64, grid[1] as u64, size, BLOCK.min(size / 4)];
    let entry = Entry {
        rival: Rival::ScaLapack,
        name: "ScaLAPACK, pdgemm",
        source: "pdgemm_scalapack.c",
        arguments: arguments.map(|number| number.to_string()).to_vec(),
        processes: Some(processes),
    };
    contestants.extend(rival(stage, &entry, goal));
    contestants
}
