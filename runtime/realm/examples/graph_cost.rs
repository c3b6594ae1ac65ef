//! The cost of a node of a static graph: a stencil (three edges in) of several widths, run back to back.
//!
//! ```console
//! $ cargo run --release -p maniple-realm --example graph_cost
//! $ cargo run --release -p maniple-realm --example graph_cost 2 16    # two workers, width 16
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use maniple_realm::graph::{Edge, Graph, GraphPlace, GraphRuns, GraphSpec, GraphWork, NodeSpec};
use maniple_realm::machine::ProcessorId;
use maniple_realm::{Fault, Realm, UserEvent, WorkerContext};
use parking_lot::RwLock;

/// So many runs are open at a time.
const DEPTH: u64 = 64;

/// Nodes that do nothing. The end of a run opens another.
struct Nothing {
    runs: u64,
    graph: RwLock<Option<GraphRuns>>,
    realm: Realm,
    done: UserEvent,
}

impl Nothing {
    fn open(&self, run: u64) {
        if let Some(graph) = &*self.graph.read() {
            graph.open_unwatched(run, 0);
            graph.open_unwatched(run, 1);
        }
    }
}

impl GraphWork for Nothing {
    fn run(&self, _: GraphPlace, _: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        Ok(())
    }

    fn poisoned(&self, _: GraphPlace, _: &Arc<Fault>) {}

    fn stage_ended(&self, _: u64, _: u32) {}

    fn run_ended(&self, run: u64) {
        if run + DEPTH < self.runs {
            self.open(run + DEPTH);
        }
        if run + 1 == self.runs {
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
        others: Vec::new(),
        takes: false,
        after: if stage == 1 { near(point, 0) } else { Vec::new() },
        after_previous: if stage == 0 { near(point, width) } else { Vec::new() },
    };
    let nodes = (0..2).flat_map(|stage| (0..width).map(move |point| (stage, point)));
    GraphSpec { stages: 2, nodes: nodes.map(|(stage, point)| node(stage, point)).collect() }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = std::env::args().skip(1).map(|argument| argument.parse());
    let cases = match arguments.collect::<Result<Vec<u32>, _>>()?[..] {
        [workers, width] => vec![(workers, width)],
        _ => vec![(1, 2), (1, 16), (2, 2), (2, 4), (2, 16), (2, 64), (4, 16)],
    };
    for (workers, width) in cases {
        let realm = Realm::builder().workers(workers as usize).build()?;
        let graph = Arc::new(Graph::new(&stencil(width, workers), realm.processors()));
        let runs = 800_000 / u64::from(width);
        let done = realm.user_event();
        let work = Arc::new(Nothing { runs, graph: RwLock::new(None), realm: realm.clone(), done });
        let started = Instant::now();
        let graph_runs = realm.start_graph(&graph, Arc::clone(&work) as Arc<dyn GraphWork>, DEPTH as usize);
        *work.graph.write() = Some(graph_runs);
        (0..DEPTH).for_each(|run| work.open(run));
        realm.wait(done.event())?;
        *work.graph.write() = None;
        let nodes = runs * 2 * u64::from(width);
        println!(
            "{workers} workers, width {width:>2}: {:>6.1} ns a node",
            started.elapsed().as_secs_f64() * 1e9 / nodes as f64
        );
    }
    Ok(())
}
