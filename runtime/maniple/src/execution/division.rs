//! How the mapper divides an index launch between nodes.

use std::sync::Arc;

use maniple_mapper::{Mapper, NodeSlice, TaskInfo};
use maniple_space::{AnyRect, AnySpace};
use smallvec::{SmallVec, smallvec};

use super::state::TaskState;
use crate::core::RuntimeCore;
use crate::mapping::Whom;
use crate::migration::{Migration, Reason};
use crate::support::error::{Error, Result};

/// A slice is sent on so often at most: a mapper that sends it on more often would do so for ever.
const MOST_HOPS: u32 = 64;

/// The points of a launch: what stays here, and what goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Division {
    pub(crate) here: SmallVec<[AnyRect; 1]>,
    pub(crate) away: AwaySlices,
}

/// Slices of a launch that go to other nodes, and why.
pub(crate) type AwaySlices = Vec<(NodeSlice, Reason)>;

impl Division {
    fn all_here(points: AnyRect) -> Self {
        Self { here: smallvec![points], away: Vec::new() }
    }
}

impl TaskState {
    /// Divides an index launch that is about to be mapped into points that stay here and slices that go to other nodes.
    pub(crate) fn divide(&self) -> Result<Division> {
        let points = self.site.points;
        let Some(migration) = self.divides() else { return Ok(Division::all_here(points)) };
        let core = &self.context.core;
        let slices = ask(core, migration, self.whom(), &self.info(points.lo(), &[]), self.hops())?;
        let (here, away): (Vec<_>, Vec<_>) = slices.into_iter().partition(|slice| slice.node == migration.node());
        let sliced = |slice: NodeSlice| (slice, Reason::Sliced { recurse: slice.recurse });
        let here = here.into_iter().map(|slice| slice.domain).collect();
        Ok(Division { here, away: away.into_iter().map(sliced).collect() })
    }

    /// Whether the mapper may slice the launch across nodes: tasks without regions, or leaf tasks with their data,
    /// whose arguments and results others understand.
    fn divides(&self) -> Option<&Arc<Migration>> {
        let migration = self.context.core.migration().filter(|_| self.is_mobile && self.site.index_launch)?;
        let definition = &self.site.definition;
        let (_, migratable) = definition.migratable()?;
        let is_as_declared = self.site.bounds.len() == migratable.requirements().len();
        let may_go = self.site.bounds.is_empty() || definition.variants().iter().any(|variant| variant.is_leaf);
        let is_asked_for = self.context.arrived.is_none_or(|arrived| arrived.recurse);
        (is_as_declared && may_go && is_asked_for && definition.result_codec().is_some()).then_some(migration)
    }

    /// The points that are mapped here, and the slices that thieves get, of an index launch without regions that the
    /// mapper keeps here: equal parts, if points would have to wait for a worker here.
    pub(crate) fn stolen_slices(&self) -> Option<(AnyRect, AwaySlices)> {
        let core = &self.context.core;
        let migration = core.migration().filter(|migration| self.is_mobile && migration.has_thieves())?;
        let points = self.site.points;
        let can_go = self.site.index_launch
            && self.site.bounds.is_empty()
            && self.site.definition.result_codec().is_some()
            && self.site.definition.migratable().is_some_and(|(_, migratable)| migratable.requirements().is_empty())
            && self.hops() < MOST_HOPS
            && !self.waits_or_is_recorded();
        if !can_go || points.volume() <= core.realm().processors().len() as u64 {
            return None;
        }
        let permits = |thief| core.permits_steal(self.name(), self.whom(), thief);
        let thieves = migration.take_thieves((points.volume() as usize - 1).min(migration.nodes() - 1), permits);
        if thieves.is_empty() {
            return None;
        }
        let mut parts = points.split(thieves.len() + 1).into_iter();
        let here = parts.next()?;
        let stolen =
            parts.zip(thieves).map(|(domain, node)| (NodeSlice { domain, node, recurse: false }, Reason::Stolen));
        Some((here, stolen.collect()))
    }

    /// How often the points of the launch were sent from node to node to be here.
    pub(super) fn hops(&self) -> u32 {
        self.context.arrived.map_or(0, |arrived| arrived.hops)
    }
}

const CALL: &str = "slice_across_nodes";

/// Asks a mapper to slice a launch, or a slice that was sent on `hops` times, across nodes. Returns the slices that are
/// not empty.
pub(crate) fn ask(
    core: &RuntimeCore,
    migration: &Migration,
    whom: Whom,
    info: &TaskInfo<'_>,
    hops: u32,
) -> Result<Vec<NodeSlice>> {
    let ask = |mapper: &mut dyn Mapper| mapper.slice_across_nodes(info, migration.node(), migration.nodes());
    let mut slices = core.seat(whom).call(&core.store, CALL, ask)?;
    let points = info.domain;
    check(&slices, points, migration.nodes())?;
    slices.retain(|slice| !slice.domain.is_empty());
    if hops >= MOST_HOPS && slices.iter().any(|slice| slice.node != migration.node()) {
        let problem = format!(
            "sends points {points} of `{}` on, which were sent {hops} times before: what is to run where it has come must be given without \
             `recurse`, or be kept there",
            info.name
        );
        return Err(Error::mapper(CALL, problem));
    }
    Ok(slices)
}

/// Checks that slices have the points, each once, and that the nodes are there.
fn check(slices: &[NodeSlice], points: AnyRect, nodes: usize) -> Result<()> {
    let fail = |problem: String| Err(Error::mapper(CALL, problem));
    let expected =
        || format!("expected were slices that have every point of {points} exactly once, on nodes 0 to {}", nodes - 1);
    for slice in slices {
        if !points.contains_rect(&slice.domain).unwrap_or(false) {
            return fail(format!("gave the slice {}, which sticks out: {}", slice.domain, expected()));
        }
        if usize::from(slice.node.0) >= nodes {
            return fail(format!(
                "gave the slice {} to {}, which there is not: {}",
                slice.domain,
                slice.node,
                expected()
            ));
        }
    }
    if let [one] = slices
        && one.domain == points
    {
        return Ok(());
    }
    let of = |slice: &NodeSlice| AnySpace::from(slice.domain);
    let mut had = AnySpace::empty(points.dim()).map_err(Error::internal)?;
    for slice in slices {
        let (slice, domain) = (of(slice), slice.domain);
        let twice = had.intersection(&slice).map_err(Error::internal)?;
        if !twice.is_empty() {
            return fail(format!("gave {twice} in slice {domain} and in one before: {}", expected()));
        }
        had = had.union(&slice).map_err(Error::internal)?;
    }
    let missing = AnySpace::from(points).difference(&had).map_err(Error::internal)?;
    match missing.is_empty() {
        true => Ok(()),
        false => fail(format!("gave {missing} to no node: {}", expected())),
    }
}

#[cfg(test)]
mod tests {
    use maniple_realm::machine::NodeId;
    use maniple_space::Rect;

    use super::*;

    fn rect(from: i64, to: i64) -> AnyRect {
        AnyRect::from(Rect::<1>::from(from..to))
    }

    fn problem(slices: &[(i64, i64, u16)]) -> Option<String> {
        let slice = |&(from, to, node): &_| NodeSlice { domain: rect(from, to), node: NodeId(node), recurse: false };
        let slices: Vec<NodeSlice> = slices.iter().map(slice).collect();
        check(&slices, rect(0, 10), 3).err().map(|error| error.to_string())
    }

    #[test]
    fn slices_have_each_point_once_on_nodes_that_there_are() {
        for good in [&[(0, 10, 2)][..], &[(5, 10, 0), (0, 5, 0)], &[(0, 1, 2), (1, 1, 0), (1, 10, 1)]] {
            assert_eq!(problem(good), None);
        }
        for (bad, expected) in [
            (&[][..], "gave {(0)..=(9)} to no node"),
            (&[(0, 3, 0), (5, 10, 1)], "gave {(3)..=(4)} to no node"),
            (&[(0, 6, 0), (4, 10, 1)], "gave {(4)..=(5)} in slice (4)..=(9) and in one before"),
            (&[(0, 5, 0), (5, 11, 1)], "gave the slice (5)..=(10), which sticks out"),
            (&[(0, 5, 0), (5, 10, 3)], "gave the slice (5)..=(9) to node 3, which there is not"),
        ] {
            let problem = problem(bad).unwrap_or_else(|| panic!("{bad:?} is fine"));
            assert!(problem.contains(expected), "{problem}");
            assert!(problem.contains("every point of (0)..=(9) exactly once, on nodes 0 to 2"), "{problem}");
        }
    }
}
