//! Coherence in blocks, where no node knows who uses what of the whole: each keeps the stories of the points of its own block, for all nodes, and tells the others what
//! they have to do about these.
//!
//! Points of different blocks have nothing to do with one another, so a block is to its node what a whole region tree is to a node where everything is known
//! everywhere, and the same [`Coherence`] serves for both. What is to be done about all blocks is put together by the node that does it: of what goes from one node to
//! another in one exchange there is one parcel, whatever blocks it is about. Sender and receiver hear of the same blocks, and so of the same points.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple_region::{FieldId, FieldMask, OperatorId, Shape, ShapeTable};
use maniple_space::AnySpace;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::coherence::{Coherence, Exchange, NodeStep, Parcel, Step};
use super::layout::{Layout, Rank};
use super::points::Points;

/// See the [module](self).
pub(super) struct Blocks {
    /// Of the points of the own block.
    pub(super) coherence: Coherence,
    pub(super) block: Shape,
    /// What number a state has that is known in this way to the blocks, each of which has a number of its own for it. All nodes give the same.
    numbers: FxHashMap<Vec<u64>, u64>,
    /// The own block's number for each.
    states: FxHashMap<u64, u64>,
    next: u64,
    /// The current one, unless something has happened since nodes met.
    current: Option<u64>,
    /// What has happened since, if it was fills alone.
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

/// So many states are remembered: fewer than each block would remember by itself.
const MOST_STATES: usize = 1 << 9;

impl Blocks {
    /// Of a region tree of which this node knew all until now.
    pub(super) fn new(coherence: Coherence, block: Shape, shapes: &ShapeTable) -> Self {
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

    /// The layout with these areas, one a node, as far as they are in the block.
    pub(super) fn layout(&mut self, areas: &[Shape], shapes: &ShapeTable) -> Arc<Layout> {
        let areas = areas.iter().map(|area| shapes.intersection(area, &self.block)).collect();
        self.coherence.layout(areas, shapes)
    }

    /// Every node writes the same values.
    pub(super) fn fill(&mut self, fields: &FieldMask, points: &Shape, shapes: &ShapeTable) {
        let (here, all) = (shapes.intersection(points, &self.block), points.space().clone());
        self.coherence.fill(fields, &here, shapes);
        match (&mut self.fills, self.current.take()) {
            (Some(fills), _) => fills.of.push((fields.clone(), all)),
            (fills, Some(after)) => *fills = Some(Fills { after, of: vec![(fields.clone(), all)] }),
            (None, None) => {}
        }
    }

    /// Something happens of which it is not known where it leads.
    pub(super) fn change(&mut self) -> &mut Coherence {
        (self.current, self.fills) = (None, None);
        &mut self.coherence
    }

    /// The number of the current state, if nodes have [agreed](Self::agree) on one: now, or when the same fills led there before.
    pub(super) fn state(&mut self) -> Option<u64> {
        let known = self.fills.as_ref().and_then(|fills| self.filled.get(fills)).copied();
        if let Some(known) = known.filter(|&known| self.remembers(known)) {
            self.go_to(known);
        }
        self.current
    }

    /// What the own block calls the current state.
    pub(super) fn own_state(&mut self) -> u64 {
        self.coherence.state()
    }

    /// All nodes have said what their blocks call the current state.
    pub(super) fn agree(&mut self, own_states: Vec<u64>) {
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

    /// Whether a state of before is still remembered.
    pub(super) fn remembers(&self, state: u64) -> bool {
        self.states.contains_key(&state)
    }

    /// The same has happened as when it came to this state before, which is [remembered](Self::remembers).
    pub(super) fn go_to(&mut self, state: u64) {
        if let Some(&own) = self.states.get(&state) {
            self.coherence.go_to(own);
            (self.current, self.fills) = (Some(state), None);
        }
    }
}

/// Which step before a launch something belongs to: the same on all nodes, which do them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    /// The number of the use for which it is done.
    pub(super) of: u32,
    story: u32,
    kind: Kind,
    /// The number of the operator of contributions.
    operator: Option<u32>,
}

/// In the order in which coherence asks for them: contributions go home before others are made, or values are brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Kind {
    Settle,
    Identity,
    Bring,
}

/// What a block tells a node to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Told {
    place: Place,
    fields: Vec<u32>,
    what: What,
}

#[derive(Debug, Serialize, Deserialize)]
enum What {
    Identity(Points),
    Exchange(Vec<Sent>),
}

/// Points that go to another node, or come from there.
#[derive(Debug, Serialize, Deserialize)]
struct Sent {
    with: Rank,
    way: Way,
    is_passed_on: bool,
    points: Points,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Way {
    There,
    Back,
}

/// What is to be told to whom of what a block asks for, for a use of the launch.
pub(super) fn told(steps: Vec<NodeStep>, of: u32, operators: &Operators, all: &mut Vec<(Rank, Told)>) {
    for NodeStep { node, story, step } in steps {
        let (kind, operator, fields, what) = match step {
            Step::Identity { fields, operator, place } => {
                (Kind::Identity, Some(operator), fields, What::Identity(Points(place.space().clone())))
            }
            Step::Exchange { fields, fold, exchange } => {
                let sent = |parcel: &Parcel, way| Sent {
                    with: parcel.with,
                    way,
                    is_passed_on: parcel.is_passed_on,
                    points: Points(parcel.points.space().clone()),
                };
                let there = exchange.sends.iter().chain(&exchange.forwards).map(|parcel| sent(parcel, Way::There));
                let back = exchange.receives.iter().map(|parcel| sent(parcel, Way::Back));
                let sent: Vec<Sent> = there.chain(back).collect();
                if sent.is_empty() {
                    continue;
                }
                let kind = if fold.is_some() { Kind::Settle } else { Kind::Bring };
                (kind, fold, fields, What::Exchange(sent))
            }
        };
        let operator = operator.map(|operator| operators.number(operator));
        let fields = fields.iter().map(|field| field.0).collect();
        all.push((node, Told { place: Place { of, story, kind, operator }, fields, what }));
    }
}

impl Told {
    pub(super) fn place(&self) -> Place {
        self.place
    }
}

/// The steps of a node, of what all blocks have told it.
pub(super) fn put_together(
    told: impl IntoIterator<Item = Told>,
    operators: &Operators,
    shapes: &ShapeTable,
) -> Vec<(Place, Step)> {
    let mut places: BTreeMap<Place, (Vec<u32>, Vec<What>)> = BTreeMap::new();
    for Told { place, fields, what } in told {
        places.entry(place).or_insert_with(|| (fields, Vec::new())).1.push(what);
    }
    let mut steps = Vec::new();
    for (place, (fields, whats)) in places {
        let fields: FieldMask = fields.into_iter().map(FieldId).collect();
        let operator = place.operator.and_then(|number| operators.of(number));
        let (mut places, mut parcels) = (Vec::new(), BTreeMap::<(Way, Rank, bool), Vec<AnySpace>>::new());
        for what in whats {
            match what {
                What::Identity(Points(place)) => places.push(place),
                What::Exchange(sent) => {
                    for Sent { with, way, is_passed_on, points: Points(points) } in sent {
                        parcels.entry((way, with, is_passed_on)).or_default().push(points);
                    }
                }
            }
        }
        if let (Some(place_of_all), Some(operator)) = (union(&places, shapes), operator)
            && place.kind == Kind::Identity
        {
            steps.push((place, Step::Identity { fields, operator, place: place_of_all }));
            continue;
        }
        let mut exchange = Exchange::default();
        for ((way, with, is_passed_on), points) in parcels {
            let Some(points) = union(&points, shapes) else { continue };
            let parcel = Parcel { with, number: u32::from(is_passed_on), points, is_passed_on };
            match (way, is_passed_on) {
                (Way::Back, _) => exchange.receives.push(parcel),
                (Way::There, false) => exchange.sends.push(parcel),
                (Way::There, true) => exchange.forwards.push(parcel),
            }
        }
        let fold = operator.filter(|_| place.kind == Kind::Settle);
        steps.push((place, Step::Exchange { fields, fold, exchange: Arc::new(exchange) }));
    }
    steps
}

fn union(spaces: &[AnySpace], shapes: &ShapeTable) -> Option<Shape> {
    let first = spaces.first()?;
    AnySpace::union_all(first.dim(), spaces).ok().map(|union| shapes.intern(&union))
}

/// The operators that the program has used, by numbers that are the same on all nodes.
#[derive(Default)]
pub(super) struct Operators(Vec<OperatorId>);

impl Operators {
    /// The program uses an operator: all nodes say so at the same place.
    pub(super) fn add(&mut self, operator: OperatorId) {
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
