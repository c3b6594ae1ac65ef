//! Coherence in blocks, where no node knows all uses of a tree: each node keeps the history of the points of its own
//! block, for all nodes, and sends the others their parts of the steps that this block needs.
//!
//! Points of different blocks are independent, so a block is to its node what a whole region tree is where every node
//! knows all uses, and the same [`Coherence`] serves for both. The node that takes a step assembles it from the parts
//! of all blocks: of what goes from one node to another in one exchange there is one parcel, whatever the number of
//! blocks. Sender and receiver get the parts of the same blocks, and so of the same points.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple_region::{FieldId, FieldMask, OperatorId, Shape, ShapeTable};
use maniple_space::AnySpace;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::coherence::Coherence;
use super::layout::{Layout, Rank};
use super::points::Points;
use super::steps::{DistributionStep, Exchange, NodeStep, Parcel};

/// The coherence of one block of a region tree, and the states of all blocks together.
pub struct Blocks {
    coherence: Coherence,
    block: Shape,
    /// The number of a state of the tree, by the numbers that the blocks have for theirs. All nodes give the same.
    numbers: FxHashMap<Vec<u64>, u64>,
    /// The own block's number of each state.
    states: FxHashMap<u64, u64>,
    next: u64,
    /// The current state, unless the tree was used since the nodes agreed on one.
    current: Option<u64>,
    /// The uses since, if all were fills.
    fills: Option<Fills>,
    /// The states to which fills have led.
    filled: FxHashMap<Fills, u64>,
}

/// Fills after a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fills {
    after: u64,
    /// Points by themselves: numbers of shapes are a node's own, and are forgotten.
    of: Vec<(FieldMask, AnySpace)>,
}

/// The most states that are remembered: fewer than each block remembers by itself.
const MOST_STATES: usize = 1 << 9;

impl Blocks {
    /// The blocks of a region tree of which this node knew all uses until now.
    pub fn new(coherence: Coherence, block: Shape, shapes: &ShapeTable) -> Self {
        Self {
            coherence: coherence.within(&block, shapes),
            block,
            numbers: FxHashMap::default(),
            states: FxHashMap::default(),
            next: 0,
            current: None,
            fills: None,
            filled: FxHashMap::default(),
        }
    }

    /// The points of the own block.
    #[must_use]
    pub fn block(&self) -> &Shape {
        &self.block
    }

    /// The layout with these areas, one a node, restricted to the block.
    pub fn layout(&mut self, areas: &[Shape], shapes: &ShapeTable) -> Arc<Layout> {
        let areas = areas.iter().map(|area| shapes.intersection(area, &self.block)).collect();
        self.coherence.layout(areas, shapes)
    }

    /// Notes that every node writes the same values.
    pub fn fill(&mut self, fields: &FieldMask, points: &Shape, shapes: &ShapeTable) {
        let (here, all) = (shapes.intersection(points, &self.block), points.space().clone());
        self.coherence.fill(fields, &here, shapes);
        match (&mut self.fills, self.current.take()) {
            (Some(fills), _) => fills.of.push((fields.clone(), all)),
            (fills, Some(after)) => *fills = Some(Fills { after, of: vec![(fields.clone(), all)] }),
            (None, None) => {}
        }
    }

    /// The coherence of the own block, for a question.
    pub fn coherence(&mut self) -> &mut Coherence {
        &mut self.coherence
    }

    /// The coherence of the own block, for a use whose state is not known yet.
    pub fn change(&mut self) -> &mut Coherence {
        (self.current, self.fills) = (None, None);
        &mut self.coherence
    }

    /// The number of the current state, if nodes have [agreed](Self::agree) on one: now, or when the same fills led
    /// there before.
    pub fn state(&mut self) -> Option<u64> {
        let known = self.fills.as_ref().and_then(|fills| self.filled.get(fills)).copied();
        if let Some(known) = known.filter(|&known| self.remembers(known)) {
            self.go_to(known);
        }
        self.current
    }

    /// The own block's number of the current state.
    pub fn own_state(&mut self) -> u64 {
        self.coherence.state()
    }

    /// Gives the current state a number, from the numbers that the blocks of all nodes have for theirs.
    pub fn agree(&mut self, own_states: Vec<u64>) {
        if self.numbers.len() >= MOST_STATES {
            (self.numbers, self.states, self.fills, self.filled) = Default::default();
            self.coherence.forget_states();
        }
        let number = *self.numbers.entry(own_states).or_insert_with(|| {
            self.next += 1;
            self.next
        });
        self.states.insert(number, self.coherence.state());
        self.current = Some(number);
        // Each is an entry of its own, and there may be more of them than of states.
        if let Some(fills) = self.fills.take().filter(|_| self.filled.len() < MOST_STATES) {
            self.filled.insert(fills, number);
        }
    }

    /// Whether an earlier state is still remembered.
    pub fn remembers(&self, state: u64) -> bool {
        self.states.contains_key(&state)
    }

    /// Makes an earlier state, which is [remembered](Self::remembers), the current one: the same uses were made as
    /// then.
    pub fn go_to(&mut self, state: u64) {
        if let Some(&own) = self.states.get(&state) {
            self.coherence.go_to(own);
            (self.current, self.fills) = (Some(state), None);
        }
    }
}

/// The place of a step before a launch: the same on all nodes, which take them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StepPlace {
    /// The number of the use that needs the step.
    pub of: u32,
    history: u32,
    kind: StepKind,
    /// The number of the operator of contributions.
    operator: Option<u32>,
}

/// Kinds of steps, in order: contributions go home before others are made or values are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum StepKind {
    Settle,
    Identity,
    Fetch,
    Forget,
}

/// A node's part of a step for one block.
#[derive(Debug, Serialize, Deserialize)]
pub struct StepPart {
    place: StepPlace,
    fields: Vec<u32>,
    what: What,
}

#[derive(Debug, Serialize, Deserialize)]
enum What {
    Identity(Points),
    Forget(Points),
    Exchange(Vec<Sent>),
}

/// Points that go to another node, or come from there.
#[derive(Debug, Serialize, Deserialize)]
struct Sent {
    with: Rank,
    direction: Direction,
    is_forwarded: bool,
    points: Points,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Direction {
    Send,
    Receive,
}

/// Splits the steps that a block needs for a use of the launch into parts, and adds them to `all` with the node that
/// each is for.
pub fn split(steps: Vec<NodeStep>, of: u32, operators: &Operators, all: &mut Vec<(Rank, StepPart)>) {
    for NodeStep { node, history, step } in steps {
        let (kind, operator, fields, what) = match step {
            DistributionStep::Identity { fields, operator, place } => {
                (StepKind::Identity, Some(operator), fields, What::Identity(Points(place.space().clone())))
            }
            DistributionStep::Forget { fields, place } => {
                (StepKind::Forget, None, fields, What::Forget(Points(place.space().clone())))
            }
            DistributionStep::Exchange { fields, fold, exchange } => {
                let sent = |parcel: &Parcel, direction| Sent {
                    with: parcel.with,
                    direction,
                    is_forwarded: parcel.is_forwarded,
                    points: Points(parcel.points.space().clone()),
                };
                let there = exchange.sends.iter().chain(&exchange.forwards).map(|parcel| sent(parcel, Direction::Send));
                let back = exchange.receives.iter().map(|parcel| sent(parcel, Direction::Receive));
                let sent: Vec<Sent> = there.chain(back).collect();
                if sent.is_empty() {
                    continue;
                }
                let kind = if fold.is_some() { StepKind::Settle } else { StepKind::Fetch };
                (kind, fold, fields, What::Exchange(sent))
            }
        };
        let operator = operator.map(|operator| operators.number(operator));
        let fields = fields.iter().map(|field| field.0).collect();
        all.push((node, StepPart { place: StepPlace { of, history, kind, operator }, fields, what }));
    }
}

impl StepPart {
    /// The place of the step.
    pub fn place(&self) -> StepPlace {
        self.place
    }
}

/// The steps of a node, from its parts of all blocks.
pub fn assemble(
    parts: impl IntoIterator<Item = StepPart>,
    operators: &Operators,
    shapes: &ShapeTable,
) -> Vec<(StepPlace, DistributionStep)> {
    let mut places: BTreeMap<StepPlace, (Vec<u32>, Vec<What>)> = BTreeMap::new();
    for StepPart { place, fields, what } in parts {
        places.entry(place).or_insert_with(|| (fields, Vec::new())).1.push(what);
    }
    let mut steps = Vec::new();
    for (place, (fields, whats)) in places {
        let fields: FieldMask = fields.into_iter().map(FieldId).collect();
        let operator = place.operator.and_then(|number| operators.of(number));
        let (mut places, mut parcels) = (Vec::new(), BTreeMap::<(Direction, Rank, bool), Vec<AnySpace>>::new());
        for what in whats {
            match what {
                What::Identity(Points(place)) | What::Forget(Points(place)) => places.push(place),
                What::Exchange(sent) => {
                    for Sent { with, direction, is_forwarded, points: Points(points) } in sent {
                        parcels.entry((direction, with, is_forwarded)).or_default().push(points);
                    }
                }
            }
        }
        if let (Some(place_of_all), Some(operator)) = (union(&places, shapes), operator)
            && place.kind == StepKind::Identity
        {
            steps.push((place, DistributionStep::Identity { fields, operator, place: place_of_all }));
            continue;
        }
        if place.kind == StepKind::Forget {
            let all = union(&places, shapes).map(|place| DistributionStep::Forget { fields, place });
            steps.extend(all.map(|step| (place, step)));
            continue;
        }
        let mut exchange = Exchange::default();
        for ((direction, with, is_forwarded), points) in parcels {
            let Some(points) = union(&points, shapes) else { continue };
            let parcel = Parcel { with, number: u32::from(is_forwarded), points, is_forwarded };
            match (direction, is_forwarded) {
                (Direction::Receive, _) => exchange.receives.push(parcel),
                (Direction::Send, false) => exchange.sends.push(parcel),
                (Direction::Send, true) => exchange.forwards.push(parcel),
            }
        }
        let fold = operator.filter(|_| place.kind == StepKind::Settle);
        steps.push((place, DistributionStep::Exchange { fields, fold, exchange: Arc::new(exchange) }));
    }
    steps
}

fn union(spaces: &[AnySpace], shapes: &ShapeTable) -> Option<Shape> {
    let first = spaces.first()?;
    AnySpace::union_all(first.dim(), spaces).ok().map(|union| shapes.intern(&union))
}

/// The operators that a program has used, by numbers that are the same on all nodes.
#[derive(Default)]
pub struct Operators(Vec<OperatorId>);

impl Operators {
    /// Gives an operator a number, unless it has one. All nodes do so at the same place of the program.
    pub fn add(&mut self, operator: OperatorId) {
        if !self.0.contains(&operator) {
            self.0.push(operator);
        }
    }

    fn number(&self, operator: OperatorId) -> u32 {
        let known = self.0.iter().position(|known| *known == operator);
        known.expect("contributions are by an operator that was added") as u32
    }

    fn of(&self, number: u32) -> Option<OperatorId> {
        self.0.get(number as usize).copied()
    }
}
