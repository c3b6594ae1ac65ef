//! Products of tensors of higher order with matrices.

use super::contest::{Contest, Contestant, Goal, Stage};
use super::rivals::{Entry, ours, rival};
use super::works::{Method, Work};
use crate::toolbox::Rival;

/// A tensor times a matrix.
pub const TTM: Contest = Contest {
    name: "ttm",
    title: "A tensor of 200 x 200 x 200 times a matrix with 32 columns (TTM), f64, one process",
    unit: "GFLOP/s",
    contestants: |stage| contestants(stage, Method::Ttm, &[cores(stage)]),
};

/// A Khatri-Rao product by the first index.
pub const FIRST: Contest = Contest {
    name: "mttkrp1",
    title: "A tensor of 200 x 200 x 200 times a Khatri-Rao product of rank 32 (MTTKRP), first mode, f64, one process",
    unit: "GFLOP/s",
    contestants: |stage| contestants(stage, Method::First, &[cores(stage), 1, 1]),
};

/// A Khatri-Rao product by the second index.
pub const SECOND: Contest = Contest {
    name: "mttkrp2",
    title: "The same for the second mode",
    unit: "GFLOP/s",
    contestants: |stage| contestants(stage, Method::Second, &[cores(stage), 1, 1]),
};

/// A Khatri-Rao product by the third index.
pub const THIRD: Contest = Contest {
    name: "mttkrp3",
    title: "The same for the third mode",
    unit: "GFLOP/s",
    contestants: |stage| contestants(stage, Method::Third, &[cores(stage), 1, 1]),
};

fn cores(stage: &Stage) -> i64 {
    stage.toolbox.cores() as i64
}

fn contestants(stage: &Stage, method: Method, grid: &[i64]) -> Vec<Contestant> {
    let size = stage.size(200, 12);
    let extents = [size, size, size, stage.size(32, 5)];
    let work = Work::new(method, grid, &extents);
    let goal = Goal { amount: work.operations(), answer: work.answer() };
    let letters = method.accesses().join(",");
    let entry = Entry {
        rival: Rival::NumPy,
        name: "NumPy, einsum with optimize",
        source: "einsum_numpy.py",
        arguments: [letters].into_iter().chain(extents.map(|extent| extent.to_string())).collect(),
        processes: None,
    };
    let mut contestants = vec![ours(stage, "Maniple", &work, goal.amount, 1).must(1.0)];
    contestants.extend(rival(stage, &entry, goal));
    contestants
}
