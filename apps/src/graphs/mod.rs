//! Graphs as sparse matrices: three algorithms whose work is statements in index notation.
//!
//! [`pagerank`]: how important vertices are; [`bfs`]: how far they are from one; [`triangles`]: how many vertices are each other's neighbours by three; here: what they share.

pub mod bfs;
pub mod pagerank;
pub mod triangles;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use maniple::ProcessorKind;
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::format::Format;
use maniple_tensor::generate::Generator;
use maniple_tensor::kernel::{Kernels, Scoped};
use maniple_tensor::notation::{Assignment, TensorVariable, parse};
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor};

use crate::error::{Error, Result};
use crate::options::{RuntimeOptions, place};
use crate::report::{Table, counted, seconds};
use crate::tensor::operands::{MOST_ELEMENTS, read};

/// Which graph.
#[derive(Args, Clone, Debug)]
pub struct GraphOptions {
    /// A square matrix, of which each entry is an edge from its row to its column: Matrix Market (.mtx) or .tns
    #[arg(long, value_name = "FILE", conflicts_with = "generate")]
    pub matrix: Option<PathBuf>,

    /// A graph that is made: `rmat:SCALE` with 2^SCALE vertices, `poisson:SIDE`, a grid of SIDE x SIDE, and others of `maniple tensor --generate`
    #[arg(long, value_name = "KIND", default_value = "rmat:12")]
    pub generate: Generator,

    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

/// A graph: its entries, each with value 1 and each once.
struct Graph {
    vertices: i64,
    edges: EntryList<f64>,
    team: Scoped,
}

impl GraphOptions {
    fn graph(&self) -> Result<Graph> {
        if place().nodes > 1 {
            let nodes = place().nodes;
            return Err(Error::Usage(format!("graphs are on one node so far, and this job has {nodes}")));
        }
        let (dimensions, entries) = match &self.matrix {
            Some(file) => read(file)?,
            None => {
                let dimensions = self.generate.dimensions().unwrap_or_else(|| vec![4096; 2]);
                let rows = 0..dimensions[0];
                if self.generate.most_entries(&dimensions).max(dimensions[0] as f64) > MOST_ELEMENTS as f64 {
                    let problem = format!("--generate {} has too many edges for one node", self.generate);
                    return Err(Error::Usage(format!("{problem}: take a smaller one")));
                }
                let entries = self.generate.rows(&dimensions, rows, self.runtime.seed);
                (dimensions, entries.map_err(|error| Error::Usage(format!("--generate: {error}")))?)
            }
        };
        let &[vertices, columns] = &dimensions[..] else {
            let order = dimensions.len();
            return Err(Error::Usage(format!("a graph is a matrix, and this tensor has {order} dimensions")));
        };
        if vertices != columns {
            return Err(Error::Usage(format!("a graph is a square matrix, and this one is {vertices} x {columns}")));
        }
        let threads = self.runtime.machine().processors_of(ProcessorKind::Cpu).count();
        let edges = self::pack(&"csr".parse().map_err(usage)?, &dimensions, entries.map(|_| 1.0), Duplicates::First)?;
        Ok(Graph { vertices, edges: edges.entries(), team: Scoped { threads } })
    }
}

impl Graph {
    /// The graph as a matrix in a format.
    fn matrix(&self, format: &str) -> Result<SparseTensor<f64>> {
        self::pack(&format.parse().map_err(usage)?, &[self.vertices; 2], self.edges.clone(), Duplicates::First)
    }

    /// The vertices that each vertex has an edge to.
    fn neighbours(&self) -> Vec<Vec<usize>> {
        let mut neighbours = vec![Vec::new(); self.vertices as usize];
        self.edges.iter().for_each(|(at, _)| neighbours[at[0] as usize].push(at[1] as usize));
        neighbours
    }

    /// A statement on matrices (`A`, `L`) in a format, a number (`s`), and vectors: sparse ones have capital letters.
    fn statement(&self, text: &str, format: &str) -> Result<Assignment> {
        let n = self.vertices;
        let matrix =
            |name: &str| Ok::<_, Error>(TensorVariable::new(name, F64, [n, n]).stored(format.parse().map_err(usage)?));
        let mut tensors = vec![matrix("A")?, matrix("L")?, TensorVariable::new("s", F64, [])];
        tensors.extend(["d", "r", "v", "w", "x", "y"].map(|name| TensorVariable::new(name, F64, [n])));
        for name in ["X", "Y"] {
            tensors.push(TensorVariable::new(name, F64, [n]).stored("{C}".parse().map_err(usage)?));
        }
        parse(text, &tensors).map_err(usage)
    }

    /// The result of a computation.
    fn compute(
        &self,
        computation: &Computation<'_>,
        given: &[(&str, &SparseTensor<f64>)],
    ) -> Result<SparseTensor<f64>> {
        computation.run_by(given, Kernels::shared(), &self.team).map_err(usage)
    }
}

fn usage(error: impl fmt::Display) -> Error {
    Error::Usage(error.to_string())
}

fn pack(
    format: &Format,
    dimensions: &[i64],
    entries: EntryList<f64>,
    duplicates: Duplicates,
) -> Result<SparseTensor<f64>> {
    Ok(maniple_tensor::storage::pack(format, dimensions, 0.0, entries, duplicates).map_err(usage)?.tensor)
}

fn vector(elements: Vec<f64>) -> Result<SparseTensor<f64>> {
    SparseTensor::from_elements(&[elements.len() as i64], 0.0, elements).map_err(usage)
}

/// What was found of a graph.
#[derive(Clone, Debug)]
pub struct Report {
    name: &'static str,
    vertices: i64,
    edges: usize,
    found: Vec<(&'static str, String)>,
    time: Duration,
}

impl Report {
    fn new(name: &'static str, graph: &Graph, time: Duration, found: Vec<(&'static str, String)>) -> Self {
        Self { name, vertices: graph.vertices, edges: graph.edges.len(), found, time }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vertices = counted(self.vertices as usize, "vertex", "vertices");
        let table = Table::new().line("graph", format_args!("{vertices}, {}", counted(self.edges, "edge", "edges")));
        let table = self.found.iter().fold(table, |table, (what, found)| table.line(what, found));
        write!(f, "{}\n{}", self.name, table.line("time", seconds(self.time)))
    }
}
