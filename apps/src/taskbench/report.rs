//! The output of Task Bench, to the letter: other programs read it.

use std::fmt;
use std::time::Duration;

use super::Configuration;
use super::dependences::DependenceTable;
use super::graph::{Graph, Interval};

/// The report of a run: its configuration, and how long it took.
#[derive(Clone, Debug)]
pub struct TaskbenchReport {
    /// The configuration of the run.
    pub configuration: Configuration,
    /// The totals of all graphs.
    pub totals: Totals,
    /// How long it took.
    pub elapsed: Duration,
}

/// The work in all graphs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tasks.
    pub tasks: u128,
    /// Inputs of tasks.
    pub dependences: u128,
    /// Inputs that a task on another machine would write, if there were several.
    pub nonlocal_dependences: u128,
    /// Floating-point operations.
    pub flops: u128,
    /// Bytes of scratch that kernels go over.
    pub bytes: u128,
    /// Bytes of inputs from the same machine.
    pub local_transfer: u128,
    /// Bytes of inputs from other machines.
    pub nonlocal_transfer: u128,
}

impl Totals {
    /// Counts the work, and the bytes that the configuration's machines would have to send each other.
    #[must_use]
    pub fn of(configuration: &Configuration) -> Self {
        let mut totals = Self::default();
        let nodes = configuration.nodes.unwrap_or(1);
        configuration.graphs.iter().for_each(|graph| totals.add(graph, nodes));
        totals
    }

    fn add(&mut self, graph: &Graph, nodes: i64) {
        let table = DependenceTable::of(graph);
        let (mut dependences, mut local) = (0, 0);
        for (step, point) in graph.tasks() {
            let (before, home) = (graph.window(step - 1), home(point, nodes, graph.width));
            for interval in table.of_point(graph.set_at(step), point) {
                let interval = interval.intersection(before);
                dependences += interval.len() as u128;
                local += interval.intersection(home).len() as u128;
            }
            self.tasks += 1;
            self.flops += graph.kernel.flops(graph.kernel.iterations_of(graph.index, step, point), graph.scratch_bytes);
            self.bytes += graph.kernel.bytes(graph.scratch_bytes);
        }
        self.dependences += dependences;
        self.nonlocal_dependences += dependences - local;
        self.local_transfer += local * graph.output_bytes as u128;
        self.nonlocal_transfer += (dependences - local) * graph.output_bytes as u128;
    }
}

/// The points that would be on the same machine as a point.
fn home(point: i64, nodes: i64, width: i64) -> Interval {
    let product = |a: i64, b: i64, c: i64| (i128::from(a) * i128::from(b) / i128::from(c)) as i64;
    let node = product(point, nodes, width);
    Interval { first: product(node, width, nodes), last: product(node + 1, width, nodes) - 1 }
}

impl fmt::Display for TaskbenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { configuration, totals, elapsed } = self;
        let seconds = elapsed.as_secs_f64();
        let a_second = |count: u128| Exponential(count as f64 / seconds);
        write!(f, "{configuration}")?;
        writeln!(f, "Total Tasks {}", totals.tasks)?;
        writeln!(f, "Total Dependencies {}", totals.dependences)?;
        match configuration.nodes {
            Some(nodes) => {
                let local = totals.dependences - totals.nonlocal_dependences;
                writeln!(f, "  Local Dependencies {local} (estimated)")?;
                writeln!(f, "  Nonlocal Dependencies {} (estimated)", totals.nonlocal_dependences)?;
                writeln!(f, "  Number of Nodes (used for estimate) {nodes}")?;
            }
            None => writeln!(f, "  Unable to estimate local/nonlocal dependencies")?,
        }
        writeln!(f, "Total FLOPs {}", totals.flops)?;
        writeln!(f, "Total Bytes {}", totals.bytes)?;
        writeln!(f, "Elapsed Time {} seconds", Exponential(seconds))?;
        writeln!(f, "FLOP/s {}", a_second(totals.flops))?;
        writeln!(f, "B/s {}", a_second(totals.bytes))?;
        writeln!(f, "Transfer (estimated):")?;
        match configuration.nodes {
            Some(_) => {
                writeln!(f, "  Local Bytes {}", totals.local_transfer)?;
                writeln!(f, "  Nonlocal Bytes {}", totals.nonlocal_transfer)?;
                writeln!(f, "  Local Bandwidth {} B/s", a_second(totals.local_transfer))?;
                writeln!(f, "  Nonlocal Bandwidth {} B/s", a_second(totals.nonlocal_transfer))
            }
            None => writeln!(f, "  Unable to estimate local/nonlocal transfer"),
        }
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Running Task Benchmark")?;
        writeln!(f, "  Configuration:")?;
        for (index, graph) in self.graphs.iter().enumerate() {
            writeln!(f, "    Task Graph {}:", index + 1)?;
            write_graph(f, graph)?;
            if self.verbosity > 0 {
                (0..graph.steps).try_for_each(|step| write_step(f, graph, step, self.verbosity > 1))?;
            }
        }
        Ok(())
    }
}

fn write_graph(f: &mut fmt::Formatter<'_>, graph: &Graph) -> fmt::Result {
    let kernel = &graph.kernel;
    writeln!(f, "      Time Steps: {}", graph.steps)?;
    writeln!(f, "      Max Width: {}", graph.width)?;
    writeln!(f, "      Dependence Type: {}", graph.pattern)?;
    writeln!(f, "      Radix: {}", graph.radix)?;
    writeln!(f, "      Period: {}", graph.period)?;
    writeln!(f, "      Fraction Connected: {:.6}", graph.fraction)?;
    writeln!(f, "      Kernel:")?;
    writeln!(f, "        Type: {}", kernel.kind)?;
    writeln!(f, "        Iterations: {}", kernel.iterations)?;
    writeln!(f, "        Samples: {}", kernel.samples)?;
    writeln!(f, "        Imbalance: {:.6}", kernel.imbalance)?;
    writeln!(f, "      Output Bytes: {}", graph.output_bytes)?;
    writeln!(f, "      Scratch Bytes: {}", graph.scratch_bytes)
}

/// The points of a step and what each depends on; with `both_sides`, also what depends on the points of the step
/// before.
fn write_step(f: &mut fmt::Formatter<'_>, graph: &Graph, step: i64, both_sides: bool) -> fmt::Result {
    let (now, before, set) = (graph.window(step), graph.window(step - 1), graph.set_at(step));
    let (offset, width, last_offset, last_width) = (now.first, now.len(), before.first, before.len());
    writeln!(
        f,
        "      Timestep {step} (offset {offset}, width {width}, last offset {last_offset}, last width {last_width}):"
    )?;
    write!(f, "        Points:")?;
    write_points(f, &[now], now)?;
    writeln!(f, "        Dependencies:")?;
    for point in now.points() {
        write!(f, "          Point {point}:")?;
        write_points(f, &graph.dependences(set, point), before)?;
    }
    if both_sides {
        writeln!(f, "        Reverse Dependencies:")?;
        for point in before.points() {
            write!(f, "          Point {point}:")?;
            write_points(f, &graph.reverse_dependences(set, point), now)?;
        }
    }
    Ok(())
}

fn write_points(f: &mut fmt::Formatter<'_>, intervals: &[Interval], window: Interval) -> fmt::Result {
    let mut points = intervals.iter().flat_map(|interval| interval.intersection(window).points());
    points.try_for_each(|point| write!(f, " {point}"))?;
    writeln!(f)
}

/// A number as C prints it by `%e`: six decimals, and an exponent with a sign and at least two digits.
struct Exponential(f64);

impl fmt::Display for Exponential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.6e}", self.0);
        match text.split_once('e') {
            Some((mantissa, exponent)) => {
                let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
                write!(f, "{mantissa}e{sign}{digits:0>2}")
            }
            None => f.write_str(&text.to_lowercase()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taskbench::graph::Pattern;
    use crate::taskbench::kernel::{Kernel, KernelKind};

    fn totals(graphs: Vec<Graph>, nodes: Option<i64>) -> Totals {
        Totals::of(&Configuration { graphs, nodes, ..Configuration::default() })
    }

    fn graph(pattern: Pattern, width: i64, steps: i64) -> Graph {
        Graph { pattern, width, steps, ..Graph::new(0) }
    }

    #[test]
    fn numbers_are_printed_as_c_prints_them() {
        let print = |number: f64| Exponential(number).to_string();
        assert_eq!(print(0.0), "0.000000e+00");
        assert_eq!(print(0.001_234_567_8), "1.234568e-03");
        assert_eq!(print(1.5e9), "1.500000e+09");
        assert_eq!(print(2.5e-120), "2.500000e-120");
        assert_eq!((print(f64::INFINITY), print(f64::NAN)), ("inf".to_owned(), "nan".to_owned()));
    }

    #[test]
    fn inputs_are_counted_where_the_step_before_has_them() {
        let dependences = |pattern, width, steps| totals(vec![graph(pattern, width, steps)], None).dependences;
        assert_eq!(dependences(Pattern::Trivial, 4, 4), 0);
        assert_eq!(dependences(Pattern::NoComm, 4, 4), 12, "the first step has none");
        assert_eq!(dependences(Pattern::Stencil1d, 4, 3), 2 * (2 + 3 + 3 + 2));
        assert_eq!(dependences(Pattern::Tree, 4, 4), 2 + 4 + 4);
        assert_eq!(dependences(Pattern::Dom, 2, 3), 1 + 1 + 2, "two points after one, one after two");
        assert_eq!(dependences(Pattern::AllToAll, 5, 3), 50);
    }

    #[test]
    fn graphs_are_added_up() {
        let kernel = Kernel { kind: KernelKind::ComputeBound, iterations: 2, ..Graph::new(0).kernel };
        let first = Graph { kernel, ..graph(Pattern::NoComm, 3, 5) };
        let both = totals(vec![first, graph(Pattern::Tree, 4, 3)], None);
        assert_eq!((both.tasks, both.dependences, both.flops), (15 + 7, 12 + 6, 15 * (256 + 64)));
    }

    #[test]
    fn several_machines_have_equal_shares_of_the_points() {
        let stencil = Graph { output_bytes: 100, ..graph(Pattern::Stencil1d, 6, 2) };
        let totals = totals(vec![stencil], Some(3));
        assert_eq!((totals.dependences, totals.nonlocal_dependences), (16, 4), "two borders, from both sides");
        assert_eq!((totals.local_transfer, totals.nonlocal_transfer), (1200, 400));
    }
}
