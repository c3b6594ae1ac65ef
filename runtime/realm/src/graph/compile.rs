//! Compiling a graph: redundant edges go, nodes get places in lanes, successors are packed.

use rustc_hash::FxHashMap;

use super::{Edge, GraphSpec, NodeSpec};

/// A graph that is ready to run: see [`Realm::start_graph`](crate::Realm::start_graph).
#[derive(Debug)]
pub struct Graph {
    /// For each worker, where its nodes begin and end among `nodes`: in the order in which it looks at them.
    pub(super) lanes: Vec<std::ops::Range<u32>>,
    /// The nodes, lane by lane, and after them the junctions.
    pub(super) nodes: Vec<Node>,
    /// What comes after each node, in the same run.
    pub(super) next: Successors,
    /// What comes after each node, in the next run.
    pub(super) next_run: Successors,
    /// For each shift, how many nodes it has. A shift is the nodes of one stage that follow one another in a lane. Each lane's begin at a multiple of
    /// [`WORDS_IN_A_LINE`]; between are shifts without nodes.
    pub(super) nodes_of_shift: Vec<u32>,
    /// For each lane, how many shifts have nodes.
    pub(super) shifts_of_lane: Vec<u32>,
    /// The shifts of each stage.
    shifts_of_stage: Vec<Vec<u32>>,
    /// How many lanes have nodes, and how many stages have none: a run has ended when all of these have.
    pub(super) parts: u32,
}

/// A node in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Its index in the specification; of a junction, none.
    pub(super) index: u32,
    pub(super) stage: u32,
    /// The shift that it belongs to.
    pub(super) shift: u32,
    pub(super) lane: u32,
    pub(super) pinned: bool,
    /// It fails if its stage does.
    pub(super) takes: bool,
    /// How many predecessors end before it in the first run, and in each later one.
    pub(super) predecessors: [u32; 2],
}

/// Junctions have no lane.
pub(super) const JUNCTION: u32 = u32::MAX;

/// Lists of successors, packed.
#[derive(Debug, Default)]
pub(super) struct Successors {
    first: Vec<u32>,
    edges: Vec<Successor>,
}

/// A node that comes after another: its place, doubled, plus one if it fails with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Successor(u32);

/// A lane starts on a cache line of its own.
const WORDS_IN_A_LINE: u32 = 8;

/// Nodes beyond this number keep edges that others imply: finding them takes time and memory that grow with the square.
const MANY_NODES: usize = 4096;

/// So many nodes after so many others get a junction between.
const CROWD: usize = 4;

impl Graph {
    /// Compiles a graph for workers that serve these processors, in order. A node whose home is none of them goes to the first.
    ///
    /// Takes time that grows with the square of the number of nodes up to 4096 of them, and with their edges beyond.
    ///
    /// # Panics
    /// If a node comes after one that is not before it in the list, or names a stage or a node that does not exist.
    #[must_use]
    pub fn new(spec: &GraphSpec, processors: &[crate::machine::ProcessorId]) -> Self {
        check(spec);
        let after = reduce(&spec.nodes);
        let places = place(spec, processors);
        let mut graph = Self {
            lanes: places.lanes,
            nodes: places.nodes,
            next: Successors::default(),
            next_run: Successors::default(),
            shifts_of_lane: vec![0; processors.len()],
            shifts_of_stage: vec![Vec::new(); spec.stages as usize],
            nodes_of_shift: places.shifts.iter().map(|shift| shift.nodes).collect(),
            parts: 0,
        };
        for (number, shift) in places.shifts.iter().enumerate().filter(|(_, shift)| shift.nodes > 0) {
            graph.shifts_of_lane[shift.lane as usize] += 1;
            graph.shifts_of_stage[shift.stage as usize].push(number as u32);
        }
        let lanes_with_nodes = graph.shifts_of_lane.iter().filter(|&&shifts| shifts > 0).count();
        let stages_without = graph.shifts_of_stage.iter().filter(|shifts| shifts.is_empty()).count();
        graph.parts = (lanes_with_nodes + stages_without) as u32;
        graph.connect(&after, &places.position);
        graph
    }

    /// The number of nodes, junctions and gaps included.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn stages(&self) -> usize {
        self.shifts_of_stage.len()
    }

    pub(super) fn shifts_of_stage(&self, stage: u32) -> &[u32] {
        &self.shifts_of_stage[stage as usize]
    }

    /// Packs the edges, with junctions where crowds meet.
    fn connect(&mut self, after: &[After], position: &[u32]) {
        let mut next: Vec<Vec<Successor>> = vec![Vec::new(); self.nodes.len()];
        let mut next_run = next.clone();
        let mut crowds: FxHashMap<&After, Vec<usize>> = FxHashMap::default();
        for (node, after) in after.iter().enumerate() {
            crowds.entry(after).or_default().push(node);
        }
        let mut crowds: Vec<_> = crowds.into_iter().collect();
        crowds.sort_unstable_by_key(|(_, nodes)| nodes[0]);
        for (after, nodes) in crowds {
            let meets = nodes.len() >= CROWD && after.same.len() + after.previous.len() >= CROWD;
            if meets {
                let junction = self.add_junction(&mut next, &mut next_run);
                self.follow(junction, after, position, (&mut next, &mut next_run));
                let in_first_run = !after.same.is_empty();
                for &node in &nodes {
                    self.link(junction, position[node], true, &mut next);
                    // In the first run nothing comes before a junction of nodes of the run before, and so nothing ends there.
                    self.nodes[position[node] as usize].predecessors[0] -= u32::from(!in_first_run);
                }
            } else {
                for &node in &nodes {
                    self.follow(position[node], after, position, (&mut next, &mut next_run));
                }
            }
        }
        for lists in [&mut next, &mut next_run] {
            for (place, list) in lists.iter_mut().enumerate() {
                // Whom other workers wait for comes first.
                list.sort_by_key(|successor| self.nodes[successor.place()].lane == self.nodes[place].lane);
            }
        }
        self.next = Successors::pack(&next);
        self.next_run = Successors::pack(&next_run);
    }

    fn add_junction(&mut self, next: &mut Vec<Vec<Successor>>, next_run: &mut Vec<Vec<Successor>>) -> u32 {
        let junction = Node {
            index: JUNCTION,
            stage: 0,
            shift: 0,
            lane: JUNCTION,
            pinned: false,
            takes: false,
            predecessors: [0; 2],
        };
        self.nodes.push(junction);
        next.push(Vec::new());
        next_run.push(Vec::new());
        self.nodes.len() as u32 - 1
    }

    fn follow(
        &mut self,
        later: u32,
        after: &After,
        position: &[u32],
        (next, next_run): (&mut [Vec<Successor>], &mut [Vec<Successor>]),
    ) {
        for edge in &after.same {
            self.link(position[edge.node as usize], later, edge.needs, next);
        }
        for edge in &after.previous {
            next_run[position[edge.node as usize] as usize].push(Successor::new(later, edge.needs));
            self.nodes[later as usize].predecessors[1] += 1;
        }
    }

    fn link(&mut self, earlier: u32, later: u32, needs: bool, next: &mut [Vec<Successor>]) {
        next[earlier as usize].push(Successor::new(later, needs));
        let predecessors = &mut self.nodes[later as usize].predecessors;
        *predecessors = predecessors.map(|count| count + 1);
    }
}

impl Successor {
    fn new(place: u32, needs: bool) -> Self {
        Self(place << 1 | u32::from(needs))
    }

    pub(super) fn place(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(super) fn needs(self) -> bool {
        self.0 & 1 != 0
    }
}

impl Successors {
    fn pack(lists: &[Vec<Successor>]) -> Self {
        let mut packed = Self::default();
        for list in lists {
            packed.first.push(packed.edges.len() as u32);
            packed.edges.extend_from_slice(list);
        }
        packed.first.push(packed.edges.len() as u32);
        packed
    }

    #[inline]
    pub(super) fn of(&self, place: usize) -> &[Successor] {
        &self.edges[self.first[place] as usize..self.first[place + 1] as usize]
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

/// Where everything is.
struct Places {
    lanes: Vec<std::ops::Range<u32>>,
    nodes: Vec<Node>,
    /// The place of each node of the specification.
    position: Vec<u32>,
    shifts: Vec<Shift>,
}

#[derive(Clone, Copy)]
struct Shift {
    lane: u32,
    stage: u32,
    nodes: u32,
}

fn place(spec: &GraphSpec, processors: &[crate::machine::ProcessorId]) -> Places {
    let lane_of = |node: &NodeSpec| processors.iter().position(|&processor| processor == node.home).unwrap_or(0);
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); processors.len()];
    for (number, node) in spec.nodes.iter().enumerate() {
        members[lane_of(node)].push(number as u32);
    }
    let mut places =
        Places { lanes: Vec::new(), nodes: Vec::new(), position: vec![0; spec.nodes.len()], shifts: Vec::new() };
    let gap =
        Node { index: JUNCTION, stage: 0, shift: 0, lane: JUNCTION, pinned: false, takes: false, predecessors: [0; 2] };
    for (lane, members) in members.iter().enumerate() {
        let lane = lane as u32;
        let (first, first_shift) = (places.nodes.len() as u32, places.shifts.len());
        for &number in members {
            let NodeSpec { stage, pinned, takes, .. } = spec.nodes[number as usize];
            match places.shifts[first_shift..].last_mut() {
                Some(shift) if shift.stage == stage => shift.nodes += 1,
                _ => places.shifts.push(Shift { lane, stage, nodes: 1 }),
            }
            let shift = places.shifts.len() as u32 - 1;
            places.position[number as usize] = places.nodes.len() as u32;
            places.nodes.push(Node { index: number, stage, shift, lane, pinned, takes, predecessors: [0; 2] });
        }
        places.lanes.push(first..places.nodes.len() as u32);
        let whole_lines = (places.nodes.len() as u32).next_multiple_of(WORDS_IN_A_LINE);
        places.nodes.resize(whole_lines as usize, gap);
        let whole_lines = places.shifts.len().next_multiple_of(WORDS_IN_A_LINE as usize);
        places.shifts.resize(whole_lines, Shift { lane, stage: 0, nodes: 0 });
    }
    places
}

/// What a node comes after, without what is implied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct After {
    pub(super) same: Vec<Edge>,
    pub(super) previous: Vec<Edge>,
}

/// Drops edges that others imply. Those of a run are looked at together with those of the run before: nodes `0..n` are the earlier run's,
/// `n..2n` the later one's.
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
        proptest::collection::vec((edges(), edges()), 1..24).prop_map(|lists| {
            let count = lists.len() as u32;
            let edge = |bound: u32| move |&(node, needs): &(u32, bool)| Edge { node: node % bound, needs };
            let node = |(number, (after, previous)): (usize, &(Vec<_>, Vec<_>))| NodeSpec {
                stage: 0,
                home: crate::machine::ProcessorId(0),
                pinned: false,
                takes: false,
                after: if number == 0 { Vec::new() } else { after.iter().map(edge(number as u32)).collect() },
                after_previous: previous.iter().map(edge(count)).collect(),
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
            takes: false,
            after: after.iter().map(|&node| Edge { node, needs: true }).collect(),
            after_previous: Vec::new(),
        };
        let reduced = reduce(&[node(&[]), node(&[0]), node(&[0, 1])]);
        assert_eq!(reduced[2].same, [Edge { node: 1, needs: true }]);
    }
}
