//! The stencil of [`super::stencil`], sixteen points wide and without work: what it costs that a task comes after three
//! others.
//!
//! Sizes and answer are those of the stencil. Besides its contestants, the machine layer's static graph takes part, by
//! which traces are replayed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use maniple_realm::graph::{Edge, Graph, GraphPlace, GraphRuns, GraphSpec, GraphWork, NodeSpec};
use maniple_realm::machine::ProcessorId;
use maniple_realm::{Fault, Realm, WorkerContext};

use super::stencil;
use crate::contest::{Contest, Contestant, Measure, timed};
use crate::error::Result;
use crate::toolbox::Toolbox;
use crate::toolbox::program::Outcome;

/// The stencil without work.
pub const CONTEST: Contest = Contest {
    name: "graph",
    title: "A stencil 16 wide, without work: time of a task that comes after three",
    contestants,
    answer: stencil::CONTEST.answer,
    // The last has more steps than a graph that is built before.
    small: &[&[2, 8, 0], &[16, 22, 0], &[3, 2050, 0]],
    measure: Measure::Unit { unit: "task", count: stencil::CONTEST.answer, size: &[16, 4000, 0] },
};

fn contestants(toolbox: &Toolbox) -> Vec<Contestant> {
    let cores = toolbox.cores();
    let mut contestants = (stencil::CONTEST.contestants)(toolbox);
    contestants
        .insert(1, Contestant::new("Maniple's realm, a graph built before", cores, move |size| ours(cores, size)));
    contestants
}

/// The result that a task leaves for other tasks, alone in its cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Cell {
    step: AtomicU64,
    point: AtomicU64,
    /// How many tasks that wrote it had the right inputs.
    right: AtomicU64,
}

/// Two rows of cells, written in turn: two steps are a run of the graph.
#[derive(Debug)]
struct Stencil {
    width: usize,
    rows: [Vec<Cell>; 2],
    /// Runs of a round, after which steps count from 0 again.
    runs: u64,
    ended: AtomicU64,
    driver: Thread,
}

impl GraphWork for Stencil {
    fn run(&self, place: GraphPlace, _: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        let (row, point) = (place.node as usize / self.width, place.node as usize % self.width);
        let step = place.run % self.runs * 2 + row as u64;
        let before = &self.rows[1 - row];
        let is_from = |source: usize| {
            let cell = &before[source];
            cell.step.load(Ordering::Relaxed) + 1 == step && cell.point.load(Ordering::Relaxed) == source as u64
        };
        let is_right = step == 0 || neighbours(point, self.width).all(is_from);
        let cell = &self.rows[row][point];
        cell.step.store(step, Ordering::Relaxed);
        cell.point.store(point as u64, Ordering::Relaxed);
        // Tasks of a point come one after the other.
        cell.right.store(cell.right.load(Ordering::Relaxed) + u64::from(is_right), Ordering::Relaxed);
        Ok(())
    }

    fn poisoned(&self, _: GraphPlace, _: &Arc<Fault>) {}

    fn stage_ended(&self, _: u64, _: u32) {}

    fn run_ended(&self, run: u64) {
        let ended = self.ended.fetch_add(1, Ordering::Release) + 1;
        if run.is_multiple_of(32) || ended.is_multiple_of(self.runs) {
            self.driver.unpark();
        }
    }
}

/// The points whose outputs a task reads.
fn neighbours(point: usize, width: usize) -> std::ops::Range<usize> {
    point.saturating_sub(1)..(point + 2).min(width)
}

/// Two steps, the second after the first and the first after the second of the run before.
fn two_steps(width: usize, cores: usize) -> GraphSpec {
    let near = |point: usize, row: usize| {
        let edge = |source: usize| Edge { node: (row * width + source) as u32, needs: true };
        neighbours(point, width).map(edge).collect::<Vec<_>>()
    };
    let node = |row: usize, point: usize| NodeSpec {
        stage: row as u32,
        home: ProcessorId((point * cores / width) as u32),
        pinned: false,
        others: Vec::new(),
        takes: false,
        after: if row == 1 { near(point, 0) } else { Vec::new() },
        after_previous: if row == 0 { near(point, 1) } else { Vec::new() },
    };
    let nodes = (0..2).flat_map(|row| (0..width).map(move |point| (row, point)));
    GraphSpec { stages: 2, nodes: nodes.map(|(row, point)| node(row, point)).collect() }
}

/// Opens the runs of a round as slots get free, and waits for the last.
fn drive(graph: &GraphRuns, stencil: &Stencil, round: u64) {
    for run in round * stencil.runs..(round + 1) * stencil.runs {
        while !graph.is_armed(run) {
            thread::park_timeout(Duration::from_millis(1));
        }
        graph.open(run, 0);
        graph.open(run, 1);
    }
    while stencil.ended.load(Ordering::Acquire) < (round + 1) * stencil.runs {
        thread::park_timeout(Duration::from_millis(1));
    }
}

fn ours(cores: usize, size: &[u64]) -> Result<Outcome> {
    let realm = Realm::builder().workers(cores).build()?;
    let (width, steps) = (size[0] as usize, size[1]);
    let graph = Arc::new(Graph::new(&two_steps(width, cores), realm.processors()));
    let row = || (0..width).map(|_| Cell::default()).collect();
    let (runs, driver) = (steps / 2, thread::current());
    let stencil = Arc::new(Stencil { width, rows: [row(), row()], runs, ended: AtomicU64::new(0), driver });
    let running = realm.start_graph(&graph, Arc::<Stencil>::clone(&stencil), 128);
    drive(&running, &stencil, 0);
    stencil.rows.iter().flatten().for_each(|cell| cell.right.store(0, Ordering::Relaxed));
    timed(|| {
        drive(&running, &stencil, 1);
        Ok(stencil.rows.iter().flatten().map(|cell| cell.right.load(Ordering::Relaxed)).sum())
    })
}
