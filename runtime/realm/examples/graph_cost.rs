//! What a node of a static graph costs: a stencil (three edges in) of several widths, run back to back.
//!
//! ```console
//! $ cargo run --release -p maniple-realm --example graph_cost
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use maniple_realm::graph::{Edge, Graph, GraphSpec, GraphWork, NodeSpec, Place};
use maniple_realm::machine::ProcessorId;
use maniple_realm::{Fault, Realm, UserEvent, WorkerContext};

struct Nothing {
    left: AtomicU64,
    realm: Realm,
    done: UserEvent,
    driver: Thread,
}

impl GraphWork for Nothing {
    fn run(&self, _: Place, _: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        Ok(())
    }

    fn poisoned(&self, _: Place, _: &Arc<Fault>) {}

    fn stage_ended(&self, _: u64, _: u32) {}

    fn run_ended(&self, run: u64) {
        if run.is_multiple_of(32) {
            self.driver.unpark();
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.realm.trigger(self.done);
        }
    }
}

/// Two steps of a stencil, the second after the first and the first after the second of the run before.
fn stencil(width: u32, workers: u32) -> GraphSpec {
    let near = |point: u32, offset: u32| {
        let points = point.saturating_sub(1)..(point + 2).min(width);
        points.map(|point| Edge { node: offset + point, needs: true }).collect::<Vec<_>>()
    };
    let node = |stage: u32, point: u32| NodeSpec {
        stage,
        home: ProcessorId(point * workers / width),
        pinned: false,
        takes: false,
        after: if stage == 1 { near(point, 0) } else { Vec::new() },
        after_previous: if stage == 0 { near(point, width) } else { Vec::new() },
    };
    let nodes = (0..2).flat_map(|stage| (0..width).map(move |point| (stage, point)));
    GraphSpec { stages: 2, nodes: nodes.map(|(stage, point)| node(stage, point)).collect() }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (workers, width) in [(1, 2), (1, 16), (2, 2), (2, 4), (2, 16), (2, 64), (4, 16)] {
        let realm = Realm::builder().workers(workers).build()?;
        let graph = Arc::new(Graph::new(&stencil(width, workers as u32), realm.processors()));
        let runs = 400_000 / u64::from(width);
        let done = realm.user_event();
        let work =
            Arc::new(Nothing { left: AtomicU64::new(runs), realm: realm.clone(), done, driver: thread::current() });
        let driver = realm.start_graph(&graph, work, 128);
        let started = Instant::now();
        for run in 0..runs {
            while !driver.is_armed(run) {
                thread::park_timeout(Duration::from_millis(1));
            }
            driver.open(run, 0);
            driver.open(run, 1);
        }
        realm.wait(done.event())?;
        let nodes = runs * 2 * u64::from(width);
        println!(
            "{workers} workers, width {width:>2}: {:>6.1} ns a node",
            started.elapsed().as_secs_f64() * 1e9 / nodes as f64
        );
    }
    Ok(())
}
