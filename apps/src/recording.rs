//! Uses of the record of a run: a proof that the run was right, and a drawing of it.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use maniple::Runtime;
use maniple::environment::Place;
use maniple::record::{Graph, Proof, Record, check};

use crate::error::{Error, Result};
use crate::headings::RECORD_HEADING;
use crate::output::{self, Way};

/// Options for a record of the run. None of this can change a result.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = RECORD_HEADING)]
pub struct RecordOptions {
    /// Prove that the run was right: that tasks and copies that get in each other's way were made to wait for each
    /// other, and that every task saw what it would have seen if all had run one after another
    #[arg(long)]
    pub check: bool,

    /// Draw what waited for what, into a file that ends in .svg (for a browser) or .dot (for Graphviz). Best of few
    /// pieces and steps
    #[arg(long, value_name = "FILE")]
    pub graph: Option<GraphFile>,

    /// Contents of the picture: `tasks` (with the copies, fills and reductions between them), or `launches` (with the
    /// fields that make one wait for another)
    #[arg(long, value_name = "WHAT", default_value = "tasks", requires = "graph", hide_possible_values = true)]
    pub graph_of: Subject,

    /// Draw also lines that others imply
    #[arg(long, requires = "graph")]
    pub graph_all: bool,
}

/// The advice to a user whose graph is too large.
const ON_SIZE: &str = "here that is fewer steps or pieces, --graph-of launches, or a file that ends in .dot";

/// The contents of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// Tasks, copies, fills and reductions, with what each was made to wait for.
    #[default]
    Tasks,
    /// Launches, with the data that makes one wait for another.
    Launches,
}

/// A file for a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphFile {
    path: PathBuf,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Dot,
    Svg,
}

impl FromStr for GraphFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        if let Some(missing) = directory.filter(|directory| !directory.is_dir()) {
            return Err(format!("there is no directory `{}`: make it first, or name another file", missing.display()));
        }
        if path.is_dir() {
            return Err("it is a directory: name a file in it".to_owned());
        }
        let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
        match ending.as_deref() {
            Some("svg") => Ok(Self { path, format: Format::Svg }),
            Some("dot" | "gv") => Ok(Self { path, format: Format::Dot }),
            _ => Err("its name must end in .svg or .dot, which says what to write".to_owned()),
        }
    }
}

impl fmt::Display for GraphFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl GraphFile {
    /// The file of this node, if there are several: its own part of the graph, `graph.node1.svg`.
    fn of_node(&self, node: usize, nodes: usize) -> Self {
        let mut own = self.clone();
        if nodes > 1 {
            let ending = self.path.extension().unwrap_or_default().to_string_lossy().into_owned();
            own.path.set_extension(format!("node{node}.{ending}"));
        }
        own
    }
}

impl RecordOptions {
    /// Whether a record must be kept.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.check || self.graph.is_some()
    }

    /// Refuses a graph that can't be written.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn check_writable(&self, place: &Place) -> Result<()> {
        let file = self.graph.as_ref().map(|file| file.of_node(usize::from(place.rank.0), place.nodes));
        file.map_or(Ok(()), |file| output::check(&file.path, Way::Over))
    }

    /// Does with the record of a runtime on which nothing runs any more what is asked for, and says on standard error
    /// what has come of it.
    ///
    /// # Errors
    /// [`Error::Check`] if the record is no proof; [`Error::Graph`] if the graph is too large or can't be written.
    pub fn conclude(&self, runtime: &Runtime) -> Result<()> {
        if !self.is_wanted() {
            return Ok(());
        }
        let record = runtime.take_record();
        let drawn = self
            .graph
            .as_ref()
            .map_or(Ok(()), |file| self.draw(&record, &file.of_node(runtime.node(), runtime.nodes())));
        if self.check {
            let Proof { operations, replayed, pairs, reads, .. } = check(&record).map_err(Box::new)?;
            say(format_args!(
                "check: {operations} operations, {replayed} of them replayed, {pairs} pairs that must be in order and are, {reads} reads of the \
                 right values"
            ));
        }
        drawn
    }

    fn draw(&self, record: &Record, file: &GraphFile) -> Result<()> {
        let graph = match self.graph_of {
            Subject::Tasks => Graph::of_operations(record, self.graph_all),
            Subject::Launches => Graph::of_launches(record, self.graph_all),
        };
        let fail = |problem: String| Error::Graph { file: file.path.clone(), problem };
        let text = match file.format {
            Format::Dot => graph.to_dot(),
            Format::Svg => graph.to_svg().map_err(|error| fail(format!("{error}; {ON_SIZE}")))?,
        };
        std::fs::write(&file.path, text).map_err(|error| fail(error.to_string()))?;
        say(format_args!("graph: {} nodes and {} edges in {file}", graph.nodes.len(), graph.edges.len()));
        Ok(())
    }
}

fn say(what: fmt::Arguments<'_>) {
    // The reader of standard error may be gone.
    let _ = writeln!(io::stderr(), "{what}");
}
