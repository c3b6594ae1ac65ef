//! Pictures of a record: which task waited for which, and why.
//!
//! In reading order:
//!
//! - `graph`: nodes and edges with their words, and what a picture leaves out; `operations` and `launches` make them of
//!   a record;
//! - `dot`: the graph in the language of Graphviz;
//! - `layers`, `layout`: where boxes and lines go on a page; `svg`: the page.

mod dot;
mod graph;
mod launches;
mod layers;
mod layout;
mod operations;
mod svg;

pub use graph::{Class, Edge, Graph, Node};
pub use svg::TooLarge;
