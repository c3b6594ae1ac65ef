//! Graphs as sparse matrices: three algorithms whose work is statements in index notation, on any number of nodes.
//!
//! [`pagerank`]: how important vertices are; [`bfs`]: how far they are from one; [`triangles`]: how many vertices are
//! each other's neighbours by three; here: what they share. Edges are read or made where they are computed with. No
//! node has all of a graph.

pub mod bfs;
pub mod pagerank;
pub mod triangles;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use maniple::prelude::*;
use maniple_tensor::distributed::{Computation, DistributedError, Tensor, TensorMapper};
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::element::Scalar;
use maniple_tensor::files::{InputError, Readable};
use maniple_tensor::generate::Generator;
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse;

use crate::error::{Error, Result, refused_file, usage};
use crate::options::{RuntimeOptions, place, workers_of_job};
use crate::report::{ReportTable, counted, seconds};
use crate::tensor::operands::MOST_ELEMENTS;
use crate::tensor::source::{TensorSource, with_doubles};

/// Which graph.
#[derive(Args, Clone, Debug)]
pub struct GraphOptions {
    /// A square matrix, of which each entry is an edge from its row to its column: Matrix Market (.mtx) or .tns
    #[arg(long, value_name = "FILE", conflicts_with = "generate")]
    pub matrix: Option<PathBuf>,

    /// A graph that is made: `rmat:SCALE` with 2^SCALE vertices, `poisson:SIDE`, a grid of SIDE x SIDE, and others of
    /// `maniple tensor --generate`
    #[arg(long, value_name = "KIND", default_value = "rmat:12")]
    pub generate: Generator,

    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

/// The source of the edges of a graph: a file, or a generator.
enum Edges {
    File(Readable),
    Made(Generator),
}

impl GraphOptions {
    /// Runs a program on a graph, with a runtime of its own.
    ///
    /// # Errors
    /// [`Error::Usage`] and [`Error::Input`] for the graph, [`Error::Runtime`], and the program's own.
    fn run(
        &self,
        program: impl AsyncFnOnce(&DistributedGraph<'_>) -> Result<Result<GraphReport>, DistributedError>,
    ) -> Result<GraphReport> {
        let (vertices, edges) = self.edges()?;
        self.runtime.run_by(
            || Box::new(TensorMapper::new()),
            |runtime| {
                let processors = workers_of_job(runtime)?;
                let seed = self.runtime.seed;
                let run = async |cx: &Context| {
                    program(&DistributedGraph::new(cx, vertices, &edges, seed, processors).await?).await
                };
                runtime.run(async |cx| refused_file(run(cx).await))??
            },
        )
    }

    /// How many vertices there are, and where the edges come from.
    fn edges(&self) -> Result<(i64, Edges)> {
        let source = self.matrix.as_deref().map(TensorSource::open).transpose()?;
        let dimensions = match &source {
            Some(source) => source.dimensions(),
            None => {
                let dimensions = self.generate.dimensions().unwrap_or_else(|| vec![4096; 2]);
                self.generate.check(&dimensions).map_err(|error| Error::Usage(format!("--generate: {error}")))?;
                let most = self.generate.most_entries(&dimensions).max(dimensions[0] as f64);
                if most > MOST_ELEMENTS as f64 * place().nodes as f64 {
                    let nodes = counted(place().nodes, "node", "nodes");
                    let problem = format!("--generate {} has too many edges for {nodes}", self.generate);
                    return Err(Error::Usage(format!("{problem}: take a smaller one")));
                }
                dimensions
            }
        };
        let &[vertices, columns] = &dimensions[..] else {
            let order = dimensions.len();
            return Err(Error::Usage(format!("a graph is a matrix, and this tensor has {order} dimensions")));
        };
        if vertices != columns {
            return Err(Error::Usage(format!("a graph is a square matrix, and this one is {vertices} x {columns}")));
        }
        let (Some(source), Some(path)) = (source, &self.matrix) else {
            return Ok((vertices, Edges::Made(self.generate.clone())));
        };
        let file = source.readable(&matrix("A", vertices, "csr").map_err(usage)?, false)?;
        if !file.is_in_parts() && place().nodes > 1 {
            let nodes = place().nodes;
            let reason =
                format!("a file that is compressed, or has all elements, can't be read in parts, by {nodes} nodes");
            return Err(InputError::unsuitable(path, reason).into());
        }
        Ok((vertices, Edges::File(file)))
    }
}

/// A graph on all nodes.
struct DistributedGraph<'c> {
    cx: &'c Context,
    vertices: i64,
    /// How many edges it has.
    edges: usize,
    /// `A(i,j)`, by rows: 1 for each edge from a vertex to another one.
    matrix: Tensor,
    /// In so many parts loops run at the same time.
    blocks: i64,
}

impl<'c> DistributedGraph<'c> {
    async fn new(
        cx: &'c Context,
        vertices: i64,
        edges: &Edges,
        seed: u64,
        processors: usize,
    ) -> Result<Self, DistributedError> {
        let variable = matrix("A", vertices, "csr")?;
        let matrix = match edges {
            Edges::Made(generator) => Tensor::generated(cx, &variable, generator, seed).await?,
            Edges::File(file) => with_doubles(cx, file, &variable, |_| 1.0).await?,
        };
        // Entries at one place are one edge, whatever they add up to.
        matrix.fill(cx, Scalar::F64(1.0))?;
        let edges = matrix.count();
        let blocks = (processors as i64).clamp(1, vertices.max(1));
        Ok(Self { cx, vertices, edges, matrix, blocks })
    }

    /// The matrix by columns.
    async fn by_columns(&self) -> Result<Tensor, DistributedError> {
        self.matrix.converted(self.cx, &matrix("A", self.vertices, "csc")?).await
    }

    /// A number for each vertex.
    fn vector(&self, name: &str) -> Result<Tensor, DistributedError> {
        Tensor::new(self.cx, &TensorVariable::new(name, F64, [self.vertices]))
    }

    /// A number.
    fn number(&self, name: &str, value: f64) -> Result<Tensor, DistributedError> {
        let number = Tensor::new(self.cx, &TensorVariable::new(name, F64, []))?;
        number.write_elements(self.cx, vec![value])?;
        Ok(number)
    }

    /// A statement on these tensors, its outermost loop in parts that run at the same time.
    fn plan(&self, text: &str, tensors: &[TensorVariable]) -> maniple::Result<Arc<Plan>> {
        let statement = parse(text, tensors).map_err(maniple::Error::from_task)?;
        let loops = sparse::Computation::new(&statement).map_err(maniple::Error::from_task)?;
        self.plan_of(&loops)
    }

    fn plan_of(&self, loops: &sparse::Computation<'_>) -> maniple::Result<Arc<Plan>> {
        let loops = loops.on_grid(&[self.blocks]).map_err(maniple::Error::from_task)?;
        Plan::new(loops.statement()).map(Arc::new).map_err(maniple::Error::from_task)
    }

    /// Statements on these tensors, one after the other.
    async fn prepared(&self, texts: &[&str], tensors: &[&Tensor]) -> Result<Computation, DistributedError> {
        let variables: Vec<TensorVariable> = tensors.iter().map(|tensor| tensor.variable().clone()).collect();
        let plans = texts.iter().map(|text| self.plan(text, &variables)).collect::<maniple::Result<Vec<_>>>()?;
        Computation::in_order(self.cx, &plans, tensors).await
    }

    /// The number in a tensor without dimensions, when all that was launched before is done.
    async fn value(&self, number: &Tensor) -> Result<f64, DistributedError> {
        Ok(number.read_elements::<f64>(self.cx).await?[0])
    }
}

/// A matrix of so many rows and columns in a format.
fn matrix(name: &str, vertices: i64, format: &str) -> maniple::Result<TensorVariable> {
    let format = format.parse().map_err(maniple::Error::from_task)?;
    Ok(TensorVariable::new(name, F64, [vertices; 2]).stored(format))
}

/// The result of an algorithm on a graph.
#[derive(Clone, Debug)]
pub struct GraphReport {
    name: &'static str,
    vertices: i64,
    edges: usize,
    found: Vec<(&'static str, String)>,
    time: Duration,
}

impl GraphReport {
    fn new(
        name: &'static str,
        graph: &DistributedGraph<'_>,
        time: Duration,
        found: Vec<(&'static str, String)>,
    ) -> Self {
        Self { name, vertices: graph.vertices, edges: graph.edges, found, time }
    }
}

impl fmt::Display for GraphReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vertices = counted(self.vertices as usize, "vertex", "vertices");
        let table =
            ReportTable::new().line("graph", format_args!("{vertices}, {}", counted(self.edges, "edge", "edges")));
        let table = self.found.iter().fold(table, |table, (what, found)| table.line(*what, found));
        write!(f, "{}\n{}", self.name, table.line("time", seconds(self.time)))
    }
}
