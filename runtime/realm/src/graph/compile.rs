//! Compiling a graph: redundant edges go, nodes get places in lanes, successors are packed.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{Edge, GraphSpec, NodeSpec};

/// A graph that is ready to run: see [`Realm::start_graph`](crate::Realm::start_graph).
#[derive(Debug)]
pub struct Graph {
    /// For each worker, where its nodes begin and end among `nodes`: in the order in which it looks at them.
    pub(super) lanes: Vec<Range<u32>>,
    /// Whether any of a lane's nodes is pinned.
    pub(super) pins: Vec<bool>,
    /// Groups of lanes: of each lane, whether it belongs to the group.
    pub(super) groups: Vec<Box<[bool]>>,
    /// The nodes, lane by lane, and after them the junctions.
    pub(super) nodes: Vec<GraphNode>,
    /// The index of the first junction among `nodes`.
    first_junction: usize,
    /// The predecessors of nodes and junctions, node by node.
    before: Vec<Predecessor>,
    /// The lanes, but for its own, of what comes after each node.
    lanes_after: Lists<u32>,
    pub(super) shifts: Vec<Shift>,
    /// For each lane, how many shifts have nodes.
    pub(super) shifts_of_lane: Vec<u32>,
    /// The shifts of each stage.
    shifts_of_stage: Vec<Vec<u32>>,
    /// How many lanes have nodes, and how many stages have none: a run has ended when all of these have.
    pub(super) parts: u32,
}

/// A node in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct GraphNode {
    /// Its index in the specification; of a junction, none.
    pub(super) index: u32,
    pub(super) stage: u32,
    /// The shift that it belongs to.
    pub(super) shift: u32,
    pub(super) lane: u32,
    pub(super) pinned: bool,
    /// If it is pinned: one more than the number of the group of lanes whose workers may run it too, or 0.
    pub(super) group: u8,
    /// It fails if its stage does.
    pub(super) takes: bool,
    /// Several nodes of its lane come after it.
    pub(super) leads_several: bool,
    /// The begin and the end of the node's list of predecessors, in the graph's `before`.
    before: (u32, u32),
}

/// The nodes of one stage that follow one another in a lane. Each lane's shifts begin at a multiple of
/// [`NODES_IN_A_LINE`]; between are shifts without nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Shift {
    lane: u32,
    stage: u32,
    /// The places of its nodes.
    places: Range<u32>,
}

impl Shift {
    /// How many nodes it has.
    #[inline]
    pub(super) fn nodes(&self) -> u32 {
        self.places.end - self.places.start
    }

    /// The place of its node, if that is the only one.
    #[inline]
    pub(super) fn only(&self) -> Option<usize> {
        (self.nodes() == 1).then_some(self.places.start as usize)
    }
}

/// Junctions have no lane, and no index.
pub(super) const JUNCTION: u32 = u32::MAX;

/// Lists, packed.
#[derive(Debug)]
struct Lists<T> {
    first: Vec<u32>,
    items: Vec<T>,
}

/// A predecessor of a node: its place, and two flags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predecessor(u32);

/// The predecessor's failure is the node's too.
const NEEDS: u32 = 1;
/// The predecessor is one of the run before.
const PREVIOUS: u32 = 2;
const FLAGS: u32 = 2;

/// A lane starts on cache lines of its own: words of eight bytes, two lines at a time.
pub(super) const NODES_IN_A_LINE: usize = 16;

/// Nodes beyond this number keep edges that others imply: finding them takes time and memory that grow with the square.
const MANY_NODES: usize = 4096;

/// So many nodes after so many others get a junction between.
const CROWD: usize = 8;

/// A cursor of a lane has 24 bits for a node.
const MOST_NODES_OF_LANE: usize = 1 << 24;

impl Graph {
    /// Compiles a graph for workers that serve these processors, in order. A node whose home is none of them goes to
    /// the first.
    ///
    /// Takes time that grows with the square of the number of nodes up to 4096 of them, and with their edges beyond.
    ///
    /// # Panics
    /// If a node comes after one that is not before it in the list, or names a stage or a node that does not exist; or
    /// if there are 2^30 nodes, or 2^24 of one worker.
    #[must_use]
    pub fn new(spec: &GraphSpec, processors: &[crate::machine::ProcessorId]) -> Self {
        check(spec);
        let after = reduce(&spec.nodes);
        let places = place(spec, processors);
        let pins =
            |lane: &Range<u32>| places.nodes[lane.start as usize..lane.end as usize].iter().any(|node| node.pinned);
        let mut graph = Self {
            pins: places.lanes.iter().map(pins).collect(),
            groups: places.groups,
            lanes: places.lanes,
            first_junction: places.nodes.len(),
            nodes: places.nodes,
            before: Vec::new(),
            lanes_after: Lists::pack(&[]),
            shifts_of_lane: vec![0; processors.len()],
            shifts_of_stage: vec![Vec::new(); spec.stages as usize],
            shifts: places.shifts,
            parts: 0,
        };
        for (number, shift) in graph.shifts.iter().enumerate().filter(|(_, shift)| shift.nodes() > 0) {
            graph.shifts_of_lane[shift.lane as usize] += 1;
            graph.shifts_of_stage[shift.stage as usize].push(number as u32);
        }
        let lanes_with_nodes = graph.shifts_of_lane.iter().filter(|&&shifts| shifts > 0).count();
        let stages_without = graph.shifts_of_stage.iter().filter(|shifts| shifts.is_empty()).count();
        graph.parts = (lanes_with_nodes + stages_without) as u32;
        graph.connect(&after, &places.position);
        graph.note_what_comes_after();
        graph
    }

    /// The number of nodes, junctions and gaps included.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn stages(&self) -> usize {
        self.shifts_of_stage.len()
    }

    /// Whether the worker of a lane that is not a pinned node's own may run it all the same.
    pub(super) fn is_for(&self, node: &GraphNode, lane: usize) -> bool {
        let group = usize::from(node.group).checked_sub(1).and_then(|group| self.groups.get(group));
        group.is_some_and(|lanes| lanes.get(lane).copied().unwrap_or(false))
    }

    pub(super) fn shifts_of_stage(&self, stage: u32) -> &[u32] {
        &self.shifts_of_stage[stage as usize]
    }

    pub(super) fn junctions(&self) -> usize {
        self.nodes.len() - self.first_junction
    }

    /// The number of the junction at this place, if there is one.
    #[inline]
    pub(super) fn junction(&self, place: usize) -> Option<usize> {
        place.checked_sub(self.first_junction)
    }

    /// The predecessors of the node or junction at this place.
    #[inline]
    pub(super) fn before(&self, place: usize) -> &[Predecessor] {
        let (first, end) = self.nodes[place].before;
        &self.before[first as usize..end as usize]
    }

    /// The lanes, but for its own, of nodes that come after the one at this place.
    #[inline]
    pub(super) fn lanes_after(&self, place: usize) -> &[u32] {
        self.lanes_after.of(place)
    }

    /// Packs the edges, with junctions where crowds meet.
    fn connect(&mut self, after: &[After], position: &[u32]) {
        let mut before: Vec<Vec<Predecessor>> = vec![Vec::new(); self.nodes.len()];
        let mut crowds: FxHashMap<&After, Vec<usize>> = FxHashMap::default();
        for (node, after) in after.iter().enumerate() {
            crowds.entry(after).or_default().push(node);
        }
        let mut crowds: Vec<_> = crowds.into_iter().collect();
        crowds.sort_unstable_by_key(|(_, nodes)| nodes[0]);
        for (after, nodes) in crowds {
            let same = after.same.iter().map(|edge| Predecessor::new(position, edge, false));
            let previous = after.previous.iter().map(|edge| Predecessor::new(position, edge, true));
            let all: Vec<Predecessor> = same.chain(previous).collect();
            if nodes.len() >= CROWD && all.len() >= CROWD {
                let junction = Edge { node: self.nodes.len() as u32, needs: true };
                self.nodes.push(GraphNode::nowhere());
                before.push(all);
                for node in nodes {
                    before[position[node] as usize].push(Predecessor(junction.node << FLAGS | NEEDS));
                }
            } else {
                for node in nodes {
                    before[position[node] as usize].clone_from(&all);
                }
            }
        }
        for (place, list) in before.iter_mut().enumerate() {
            // What other workers run is first, as that is what the node will wait for.
            list.sort_by_key(|predecessor| self.nodes[predecessor.place()].lane == self.nodes[place].lane);
            let first = self.before.len() as u32;
            self.before.append(list);
            self.nodes[place].before = (first, self.before.len() as u32);
        }
    }

    /// Finds for each node the other lanes whose workers are to be woken, and whether several nodes of its own lane
    /// come after it.
    fn note_what_comes_after(&mut self) {
        let mut lanes_after: Vec<FxHashMap<u32, u32>> = vec![FxHashMap::default(); self.nodes.len()];
        // Junctions come before nodes only, and have the last places: what comes after one is known when it is its
        // turn.
        for place in 0..self.nodes.len() {
            let lanes = match self.junction(place) {
                None => [(self.nodes[place].lane, 1)].into_iter().collect(),
                Some(_) => lanes_after[place].clone(),
            };
            for predecessor in self.before(place) {
                for (&lane, &nodes) in &lanes {
                    *lanes_after[predecessor.place()].entry(lane).or_default() += nodes;
                }
            }
        }
        let mut others = Vec::new();
        for (node, lanes) in self.nodes.iter_mut().zip(lanes_after) {
            node.leads_several = lanes.get(&node.lane).is_some_and(|&nodes| nodes > 1);
            let mut lanes: Vec<u32> = lanes.into_keys().filter(|&lane| lane != node.lane).collect();
            lanes.sort_unstable();
            others.push(lanes);
        }
        self.lanes_after = Lists::pack(&others);
    }
}

impl GraphNode {
    /// A junction, or a gap between lanes.
    fn nowhere() -> Self {
        Self {
            index: JUNCTION,
            stage: 0,
            shift: 0,
            lane: JUNCTION,
            pinned: false,
            group: 0,
            takes: false,
            leads_several: false,
            before: (0, 0),
        }
    }
}

impl Predecessor {
    fn new(position: &[u32], edge: &Edge, previous: bool) -> Self {
        let flags = if edge.needs { NEEDS } else { 0 } | if previous { PREVIOUS } else { 0 };
        Self(position[edge.node as usize] << FLAGS | flags)
    }

    #[inline]
    pub(super) fn place(self) -> usize {
        (self.0 >> FLAGS) as usize
    }

    /// Whether its failure is that of the node after it.
    pub(super) fn needs(self) -> bool {
        self.0 & NEEDS != 0
    }

    #[inline]
    pub(super) fn is_of_previous_run(self) -> bool {
        self.0 & PREVIOUS != 0
    }
}

impl<T: Clone> Lists<T> {
    fn pack(lists: &[Vec<T>]) -> Self {
        let mut packed = Self { first: Vec::with_capacity(lists.len() + 1), items: Vec::new() };
        for list in lists {
            packed.first.push(packed.items.len() as u32);
            packed.items.extend_from_slice(list);
        }
        packed.first.push(packed.items.len() as u32);
        packed
    }

    #[inline]
    fn of(&self, number: usize) -> &[T] {
        &self.items[self.first[number] as usize..self.first[number + 1] as usize]
    }
}

fn check(spec: &GraphSpec) {
    let mut last = 0;
    for (number, node) in spec.nodes.iter().enumerate() {
        assert!(node.stage < spec.stages, "node {number} is of stage {}, but there are {}", node.stage, spec.stages);
        assert!(node.stage >= last, "node {number} is of stage {}, and a later one came before", node.stage);
        last = node.stage;
        let earlier = node.after.iter().all(|edge| (edge.node as usize) < number);
        assert!(earlier, "node {number} comes after a node that is not before it in the list");
        let known = node.after_previous.iter().all(|edge| (edge.node as usize) < spec.nodes.len());
        assert!(known, "node {number} comes after a node that does not exist");
    }
}

/// The places of all nodes in lanes and shifts.
struct Places {
    lanes: Vec<Range<u32>>,
    nodes: Vec<GraphNode>,
    /// The place of each node of the specification.
    position: Vec<u32>,
    shifts: Vec<Shift>,
    groups: Vec<Box<[bool]>>,
}

impl Places {
    /// One more than the number of a group of lanes; 0 if there is none, or are too many: then the node's own worker
    /// runs it.
    fn group(&mut self, members: &[crate::machine::ProcessorId], processors: &[crate::machine::ProcessorId]) -> u8 {
        if members.is_empty() {
            return 0;
        }
        let group: Box<[bool]> = processors.iter().map(|processor| members.contains(processor)).collect();
        let known = self.groups.iter().position(|known| *known == group);
        let number = known.unwrap_or(self.groups.len());
        if number == self.groups.len() && number < usize::from(u8::MAX) {
            self.groups.push(group);
        }
        u8::try_from(number + 1).unwrap_or(0)
    }
}

fn place(spec: &GraphSpec, processors: &[crate::machine::ProcessorId]) -> Places {
    let lane_of = |node: &NodeSpec| processors.iter().position(|&processor| processor == node.home).unwrap_or(0);
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); processors.len()];
    for (number, node) in spec.nodes.iter().enumerate() {
        members[lane_of(node)].push(number as u32);
    }
    let longest = members.iter().map(Vec::len).max().unwrap_or(0);
    assert!(longest < MOST_NODES_OF_LANE, "a worker has {longest} nodes of a graph: fewer than 2^24 can be told apart");
    let (position, groups) = (vec![0; spec.nodes.len()], Vec::new());
    let mut places = Places { lanes: Vec::new(), nodes: Vec::new(), position, shifts: Vec::new(), groups };
    for (lane, members) in members.iter().enumerate() {
        let lane = lane as u32;
        let (first, first_shift) = (places.nodes.len() as u32, places.shifts.len());
        for &number in members {
            let NodeSpec { stage, pinned, takes, .. } = spec.nodes[number as usize];
            let place = places.nodes.len() as u32;
            match places.shifts[first_shift..].last_mut() {
                Some(shift) if shift.stage == stage => shift.places.end += 1,
                _ => places.shifts.push(Shift { lane, stage, places: place..place + 1 }),
            }
            let shift = places.shifts.len() as u32 - 1;
            places.position[number as usize] = place;
            let group = places.group(&spec.nodes[number as usize].others, processors);
            places.nodes.push(GraphNode {
                index: number,
                stage,
                shift,
                lane,
                pinned,
                group,
                takes,
                ..GraphNode::nowhere()
            });
        }
        places.lanes.push(first..places.nodes.len() as u32);
        let whole_lines = places.nodes.len().next_multiple_of(NODES_IN_A_LINE);
        places.nodes.resize(whole_lines, GraphNode::nowhere());
        let whole_lines = places.shifts.len().next_multiple_of(NODES_IN_A_LINE);
        places.shifts.resize(whole_lines, Shift::default());
    }
    places
}

/// The edges to the predecessors of a node; without edges that others imply, unless there are more than [`MANY_NODES`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct After {
    pub(super) same: Vec<Edge>,
    pub(super) previous: Vec<Edge>,
}

/// Drops edges that others imply. Those of a run are looked at together with those of the run before: nodes `0..n` are
/// the earlier run's, `n..2n` the later one's.
fn reduce(nodes: &[NodeSpec]) -> Vec<After> {
    let count = nodes.len();
    if count > MANY_NODES {
        return unreduced(nodes);
    }
    let mut ancestors = Ancestors::new(2 * count);
    for (number, node) in nodes.iter().enumerate() {
        ancestors.add(number, merged(&node.after));
    }
    let later = |(number, node): (usize, &NodeSpec)| {
        let mut edges = merged(&node.after_previous);
        edges.extend(merged(&node.after).iter().map(|edge| Edge { node: edge.node + count as u32, ..*edge }));
        let kept = ancestors.add(count + number, edges);
        let (same, previous) = kept.into_iter().partition::<Vec<_>, _>(|edge| edge.node as usize >= count);
        let same = same.into_iter().map(|edge| Edge { node: edge.node - count as u32, ..edge }).collect();
        After { same, previous }
    };
    nodes.iter().enumerate().map(later).collect()
}

pub(super) fn unreduced(nodes: &[NodeSpec]) -> Vec<After> {
    nodes.iter().map(|node| After { same: merged(&node.after), previous: merged(&node.after_previous) }).collect()
}

/// The edges in ascending order, each node once.
fn merged(edges: &[Edge]) -> Vec<Edge> {
    let mut edges = edges.to_vec();
    edges.sort_unstable_by_key(|edge| (edge.node, !edge.needs));
    edges.dedup_by_key(|edge| edge.node);
    edges
}

/// For each node, all that come before it, and those of them with which it fails: sets of bits.
struct Ancestors {
    words: usize,
    all: Vec<u64>,
    needed: Vec<u64>,
}

impl Ancestors {
    fn new(nodes: usize) -> Self {
        let words = nodes.div_ceil(64);
        Self { words, all: vec![0; nodes * words], needed: vec![0; nodes * words] }
    }

    /// Adds a node, after all that come before it. Gives the edges, ascending, without those that the others imply.
    fn add(&mut self, node: usize, edges: Vec<Edge>) -> Vec<Edge> {
        let mut kept = Vec::new();
        // Nearest first: what is further is implied by what is nearer, never the other way round.
        for &edge in edges.iter().rev() {
            let known = if edge.needs { &self.needed } else { &self.all };
            if !contains(&known[node * self.words..], edge.node as usize) {
                kept.push(edge);
                absorb(&mut self.all, self.words, node, edge.node as usize);
                if edge.needs {
                    absorb(&mut self.needed, self.words, node, edge.node as usize);
                }
            }
        }
        kept.reverse();
        kept
    }
}

fn contains(bits: &[u64], node: usize) -> bool {
    bits[node / 64] >> (node % 64) & 1 != 0
}

/// Adds a node and its ancestors to those of a later one.
fn absorb(sets: &mut [u64], words: usize, later: usize, node: usize) {
    let (before, after) = sets.split_at_mut(later * words);
    for (mine, theirs) in after[..words].iter_mut().zip(&before[node * words..]) {
        *mine |= theirs;
    }
    after[node / 64] |= 1 << (node % 64);
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All that come before each node of two runs, by following every edge.
    pub(in super::super) fn closure(after: &[After], needed_only: bool) -> Vec<Vec<bool>> {
        let count = after.len();
        let mut before = vec![vec![false; 2 * count]; 2 * count];
        for run in 0..2 {
            for (number, node) in after.iter().enumerate() {
                let same = node.same.iter().map(|edge| (edge, edge.node as usize + run * count));
                let previous = node.previous.iter().filter(|_| run == 1).map(|edge| (edge, edge.node as usize));
                for (edge, earlier) in same.chain(previous).collect::<Vec<_>>() {
                    if edge.needs || !needed_only {
                        let inherited = before[earlier].clone();
                        let mine = &mut before[number + run * count];
                        mine.iter_mut().zip(inherited).for_each(|(mine, theirs)| *mine |= theirs);
                        mine[earlier] = true;
                    }
                }
            }
        }
        before
    }

    pub(in super::super) fn specs() -> impl Strategy<Value = Vec<NodeSpec>> {
        let edges = || proptest::collection::vec((0_u32..1000, any::<bool>()), 0..6);
        proptest::collection::vec((edges(), edges(), any::<bool>()), 1..30).prop_map(|lists| {
            let count = lists.len() as u32;
            let edge = |bound: u32| move |&(node, needs): &(u32, bool)| Edge { node: node % bound, needs };
            let node = |(number, (after, previous, crowded)): (usize, &(Vec<_>, Vec<_>, bool))| {
                // Many with the same many before have a junction.
                let is_of_crowd = *crowded && number >= 9;
                let after = match number {
                    0 => Vec::new(),
                    _ if is_of_crowd => (0..9).map(|node| Edge { node, needs: node % 3 != 1 }).collect(),
                    _ => after.iter().map(edge(number as u32)).collect(),
                };
                let previous = if is_of_crowd { &previous[..0] } else { previous };
                NodeSpec {
                    stage: 0,
                    home: crate::machine::ProcessorId(0),
                    pinned: false,
                    others: Vec::new(),
                    takes: false,
                    after,
                    after_previous: previous.iter().map(edge(count)).collect(),
                }
            };
            lists.iter().enumerate().map(node).collect()
        })
    }

    proptest! {
        #[test]
        fn fewer_edges_imply_the_same_order_and_the_same_failures(nodes in specs()) {
            let all = unreduced(&nodes);
            let reduced = reduce(&nodes);
            prop_assert_eq!(closure(&all, false), closure(&reduced, false));
            prop_assert_eq!(closure(&all, true), closure(&reduced, true));
            let edges = |after: &[After]| after.iter().map(|after| after.same.len() + after.previous.len()).sum::<usize>();
            prop_assert!(edges(&reduced) <= edges(&all));
        }
    }

    #[test]
    fn an_edge_that_two_others_imply_goes() {
        let node = |after: &[u32]| NodeSpec {
            stage: 0,
            home: crate::machine::ProcessorId(0),
            pinned: false,
            others: Vec::new(),
            takes: false,
            after: after.iter().map(|&node| Edge { node, needs: true }).collect(),
            after_previous: Vec::new(),
        };
        let reduced = reduce(&[node(&[]), node(&[0]), node(&[0, 1])]);
        assert_eq!(reduced[2].same, [Edge { node: 1, needs: true }]);
    }
}
