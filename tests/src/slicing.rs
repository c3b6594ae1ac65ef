//! Mappers that slice launches across nodes, and programs under them.

use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, Mapper, NodeSlice, TaskInfo};
use maniple::record::check;
use maniple::{AnyRect, Context, Machine, Result, Runtime, Statistics};

use crate::nodes::{Connections, each_node};

/// The slices that a mapper makes of a launch, on a node of so many.
pub type Slicing = fn(&TaskInfo<'_>, NodeId, usize) -> Vec<NodeSlice>;

/// Slices as it is told, and keeps all else.
#[derive(Clone)]
pub struct Slices(pub Slicing, pub DefaultMapper);

impl Mapper for Slices {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.1)
    }

    fn slice_across_nodes(&mut self, launch: &TaskInfo<'_>, here: NodeId, nodes: usize) -> Vec<NodeSlice> {
        (self.0)(launch, here, nodes)
    }

    fn permit_steal(&mut self, _: &str, _: NodeId) -> bool {
        false
    }

    fn permit_steal_with_data(&mut self, _: &str, _: NodeId, _: u64) -> bool {
        false
    }
}

/// As it is told.
#[must_use]
pub fn slices(slicing: Slicing) -> Slices {
    Slices(slicing, DefaultMapper::new())
}

/// A slice for a node.
#[must_use]
pub fn slice(domain: AnyRect, node: usize, recurse: bool) -> NodeSlice {
    NodeSlice { domain, node: NodeId(node as u16), recurse }
}

/// One slice a node.
#[must_use]
pub fn evenly(launch: &TaskInfo<'_>, _: NodeId, nodes: usize) -> Vec<NodeSlice> {
    launch.domain.split(nodes).into_iter().enumerate().map(|(node, part)| slice(part, node, false)).collect()
}

/// All stays.
#[must_use]
pub fn keep(launch: &TaskInfo<'_>, here: NodeId, _: usize) -> Vec<NodeSlice> {
    vec![slice(launch.domain, here.0.into(), true)]
}

/// Half stays, half goes to the next node, which does the same with it.
#[must_use]
pub fn halve(launch: &TaskInfo<'_>, here: NodeId, nodes: usize) -> Vec<NodeSlice> {
    let here = usize::from(here.0);
    let parts = launch.domain.split(2);
    let node = |part: usize| (here + part) % nodes;
    parts.into_iter().enumerate().map(|(part, points)| slice(points, node(part), true)).collect()
}

/// Of two nodes, all goes to the other one, which does the same with it.
#[must_use]
pub fn pass_on(launch: &TaskInfo<'_>, here: NodeId, _: usize) -> Vec<NodeSlice> {
    vec![slice(launch.domain, 1 - usize::from(here.0), true)]
}

/// Runs a program on so many nodes: what each has come to, what it has done, and how many frames it has sent, if they
/// are [counted](Connections::frames).
///
/// # Panics
/// If a node cannot be started, panics, or has done what makes no sense by its record.
pub fn on_nodes<T: Send>(
    mapper: &(impl Mapper + Clone + Sync + 'static),
    nodes: usize,
    program: impl AsyncFn(&Context) -> Result<T> + Sync,
) -> Vec<(Result<T>, Statistics, u64)> {
    let connections = Connections::new(nodes);
    each_node(nodes, |node| {
        let builder = Runtime::builder().machine(Machine::uniform(2, 1 << 24)).workers(2).mapper(mapper.clone());
        let transport = connections.node(node);
        let runtime = builder.record_operations(true).network(transport).build().expect("a node starts");
        let value = runtime.run(async |cx| program(cx).await);
        check(&runtime.take_record()).expect("the record makes sense");
        (value, runtime.statistics(), connections.frames(node))
    })
}

/// A sum over nodes.
pub fn sum<T>(outcomes: &[(T, Statistics, u64)], of: fn(&Statistics) -> u64) -> u64 {
    outcomes.iter().map(|(_, statistics, _)| of(statistics)).sum()
}
