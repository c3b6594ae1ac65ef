//! Where current values are, node by node, and what nodes must send each other: found out by each node alone.
//!
//! Every node runs the same program, and knows by a pure function which node runs which points of a launch. So each can tell, without a message, who
//! has written what, who has copies, and who will want them: the sender knows that it has to send, and the receiver that it has to wait. What is
//! kept is a list of layouts, not of pieces: a launch costs the same for any number of points, and what follows from two layouts is remembered.
//!
//! Of each field, the list of [`Entry`]s tells the story, newest last; what is older and hidden is dropped. Reductions stay where they were made, in
//! places that hold contributions instead of values, until somebody wants the values: then they are *settled*, that is sent to each point's
//! home and folded there.

use std::ops::Range;
use std::sync::Arc;

use maniple_region::{FieldId, FieldMask, OperatorId, Privilege, Shape, ShapeTable};
use rustc_hash::FxHashMap;

use super::layout::{Layout, Layouts, Rank};
use super::missing::missing;
use super::states::{States, Stories};

/// Values that one node sends another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parcel {
    /// The other node.
    pub(crate) with: Rank,
    /// Its number among those of an exchange from the same node to the same other one: both count alike.
    pub(crate) number: u32,
    pub(crate) points: Shape,
    /// Who sends it has received it in the same exchange.
    pub(super) is_passed_on: bool,
}

impl Parcel {
    /// The first between two nodes.
    pub(super) fn new(with: Rank, points: Shape) -> Self {
        Self { with, number: 0, points, is_passed_on: false }
    }
}

/// What a node sends and receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) sends: Vec<Parcel>,
    /// In the order of nodes.
    pub(crate) receives: Vec<Parcel>,
    /// What it passes on of what it has received.
    pub(crate) forwards: Vec<Parcel>,
    /// Some node sends something.
    pub(super) is_needed: bool,
}

/// What a node does before its points of a launch, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It prepares a place for contributions: all points become the operator's identity.
    Identity { fields: FieldMask, operator: OperatorId, place: Shape },
    /// It exchanges values with others; contributions, with an operator, are folded into the values that are there.
    Exchange { fields: FieldMask, fold: Option<OperatorId>, exchange: Arc<Exchange> },
}

/// Which node does it, and for which of the stories, by their numbers: those of one tree have the same numbers wherever they are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeStep {
    pub(crate) node: Rank,
    pub(super) story: u32,
    pub(crate) step: Step,
}

/// What nodes send and receive so that each has what it wants: those of which it was to be found out, in their order.
pub(super) type Exchanges = Arc<[(Rank, Arc<Exchange>)]>;

/// One thing that happened to a field.
#[derive(Clone)]
pub(super) enum Entry {
    /// Every node has the values of these points.
    Everywhere(Shape),
    /// Each node has the values of its area, and no other has.
    At(Arc<Layout>),
    /// Each node has copies of the values of its area, as they were then.
    Copied(Arc<Layout>),
    /// Each node has contributed to its area. Outside of its home it has contributions there, and no values.
    Reduced(OperatorId, Arc<Layout>),
}

/// The order in which the data of one launch is prepared, whose uses have these privileges: contributions last, and those by one operator together. With anything
/// else between two of them, the later would have the earlier sent home, and that before they are made.
pub(crate) fn order_of_uses(privileges: &[Privilege]) -> Vec<usize> {
    let first_alike = |privilege: &Privilege| match privilege {
        Privilege::Reduce(_) => 1 + privileges.iter().position(|other| other == privilege).unwrap_or_default(),
        _ => 0,
    };
    let mut order: Vec<_> = (0..privileges.len()).collect();
    order.sort_by_key(|&number| first_alike(&privileges[number]));
    order
}

/// What a list of entries is, for remembering what followed from it.
type Key = Vec<(u8, u64)>;

/// The coherence of the data of one region tree between nodes.
pub(crate) struct Coherence {
    /// The nodes of which it is found out what they do.
    whose: Range<Rank>,
    root: Shape,
    /// Where contributions go to values that everybody has.
    home: Arc<Layout>,
    layouts: Layouts,
    /// Fields that were used alike, each with what happened to them. Fields that are in none have happened to nothing.
    stories: Stories,
    /// The stories are those of an earlier state than the current one.
    is_behind: bool,
    /// The number of the story that is being told.
    telling: u32,
    states: States,
    brought: FxHashMap<(Key, u64), Exchanges>,
    settled: FxHashMap<(Key, usize), (Exchanges, Arc<Layout>)>,
    homes: FxHashMap<Key, Arc<Layout>>,
    both: FxHashMap<(u64, u64), Arc<Layout>>,
}

/// What happened to a field, newest last.
pub(super) type Story = Vec<Entry>;

/// What is remembered is forgotten when it is so much.
const MEMO_LIMIT: usize = 1 << 12;

impl Coherence {
    /// Of a region tree whose values everybody has. Where contributions to such values go, `home` says: to each point of the root one node. What some of the nodes do
    /// is found out.
    pub(crate) fn new(whose: Range<Rank>, root: Shape, home: Vec<Shape>, shapes: &ShapeTable) -> Self {
        let mut layouts = Layouts::default();
        let home = layouts.get(home, shapes);
        Self {
            whose,
            root,
            home,
            layouts,
            stories: Stories::new(),
            is_behind: false,
            telling: 0,
            states: States::default(),
            brought: FxHashMap::default(),
            settled: FxHashMap::default(),
            homes: FxHashMap::default(),
            both: FxHashMap::default(),
        }
    }

    /// The same of a part of the region tree: what all nodes do about these points.
    pub(super) fn within(mut self, block: &Shape, shapes: &ShapeTable) -> Self {
        self.catch_up();
        // Contributions that are on their way go where they would have gone.
        let homes: Vec<Shape> = self.home.areas().iter().map(|home| shapes.intersection(home, block)).collect();
        let mut part = Self::new(0..homes.len(), block.clone(), homes, shapes);
        for (fields, story) in &self.stories {
            let mut layout = |layout: &Layout| {
                let areas = layout.areas().iter().map(|area| shapes.intersection(area, block));
                part.layouts.get(areas.collect(), shapes)
            };
            let entries = story.iter().map(|entry| match entry {
                Entry::Everywhere(points) => Entry::Everywhere(shapes.intersection(points, block)),
                Entry::At(at) => Entry::At(layout(at)),
                Entry::Copied(to) => Entry::Copied(layout(to)),
                Entry::Reduced(operator, on) => Entry::Reduced(*operator, layout(on)),
            });
            let story = entries.collect();
            part.stories.push((fields.clone(), story));
        }
        part
    }

    /// The number of what is known: the same whenever the same is.
    pub(crate) fn state(&mut self) -> u64 {
        match self.states.current() {
            Some(state) => state,
            None => self.states.enter(&self.stories),
        }
    }

    /// Whether a state of before is still remembered.
    pub(crate) fn remembers(&self, state: u64) -> bool {
        self.states.get(state).is_some()
    }

    /// Forgets all states but the current one, which has another number from now on.
    pub(super) fn forget_states(&mut self) {
        self.catch_up();
        self.states.forget();
    }

    /// The same has happened as when it came to this state before, which is [remembered](Self::remembers).
    pub(crate) fn go_to(&mut self, state: u64) {
        self.states.set_current(Some(state));
        self.is_behind = true;
    }

    /// Tells the stories up to now.
    fn catch_up(&mut self) {
        if let Some(stories) = self.states.current().filter(|_| self.is_behind).and_then(|state| self.states.get(state))
        {
            self.stories.clone_from(stories);
        }
        self.is_behind = false;
    }

    /// The layout with these areas, one a node.
    pub(crate) fn layout(&mut self, areas: Vec<Shape>, shapes: &ShapeTable) -> Arc<Layout> {
        self.layouts.get(areas, shapes)
    }

    /// Every node writes the same values.
    pub(crate) fn fill(&mut self, fields: &FieldMask, points: &Shape, shapes: &ShapeTable) {
        self.each_story(fields, |_, _, story| push(story, Entry::Everywhere(points.clone()), shapes));
    }

    /// Contributions are about to be made to other data of a launch that uses these: sends home those made before that are in the way. Were that found out only
    /// afterwards, for a later requirement of the launch, those that the launch is about to make would count as sent.
    pub(crate) fn settle_for(
        &mut self,
        fields: &FieldMask,
        privilege: Privilege,
        layout: &Arc<Layout>,
        shapes: &ShapeTable,
    ) -> Vec<NodeStep> {
        let mut steps = Vec::new();
        self.each_story(fields, |this, fields, story| {
            let more = match (privilege, story.last()) {
                (Privilege::Discard, _) => return,
                (Privilege::Reduce(operator), Some(Entry::Reduced(known, _))) if *known == operator => story.pop(),
                _ => None,
            };
            this.settle_overlapping(fields, story, (layout.union(), shapes), &mut steps);
            story.extend(more);
        });
        steps
    }

    /// Each node reads its area.
    pub(crate) fn read(&mut self, fields: &FieldMask, layout: &Arc<Layout>, shapes: &ShapeTable) -> Vec<NodeStep> {
        let mut steps = Vec::new();
        self.each_story(fields, |this, fields, story| this.bring(fields, story, (layout, shapes), &mut steps));
        steps
    }

    /// Each node changes the values of its area, which is nobody else's.
    pub(crate) fn write(&mut self, fields: &FieldMask, layout: &Arc<Layout>, shapes: &ShapeTable) -> Vec<NodeStep> {
        let steps = self.read(fields, layout, shapes);
        self.discard(fields, layout, shapes);
        steps
    }

    /// Each node overwrites the values of its area, which is nobody else's.
    pub(crate) fn discard(&mut self, fields: &FieldMask, layout: &Arc<Layout>, shapes: &ShapeTable) {
        self.each_story(fields, |_, _, story| push(story, Entry::At(Arc::clone(layout)), shapes));
    }

    /// Each node contributes to the values of its area.
    pub(crate) fn reduce(
        &mut self,
        fields: &FieldMask,
        operator: OperatorId,
        layout: &Arc<Layout>,
        shapes: &ShapeTable,
    ) -> Vec<NodeStep> {
        let mut steps = Vec::new();
        self.each_story(fields, |this, fields, story| {
            this.contribute(fields, story, (operator, layout, shapes), &mut steps);
        });
        steps
    }

    /// Visits the stories of fields, which are taken apart as needed.
    fn each_story(&mut self, fields: &FieldMask, mut visit: impl FnMut(&mut Self, &FieldMask, &mut Story)) {
        self.catch_up();
        self.states.set_current(None);
        let mut unknown = fields.clone();
        let mut stories = std::mem::take(&mut self.stories);
        for index in 0..stories.len() {
            let (known, story) = &mut stories[index];
            let common = known.intersection(fields);
            if common.is_empty() {
                continue;
            }
            unknown = unknown.difference(&common);
            let rest = known.difference(fields);
            if !rest.is_empty() {
                let story = story.clone();
                *known = common;
                stories.push((rest, story));
            }
            let (fields, story) = &mut stories[index];
            self.telling = index as u32;
            visit(self, fields, story);
        }
        if !unknown.is_empty() {
            self.telling = stories.len() as u32;
            let mut story = vec![Entry::Everywhere(self.root.clone())];
            visit(self, &unknown, &mut story);
            stories.push((unknown, story));
        }
        self.stories = stories;
    }

    /// Gives each node the values of its area.
    fn bring(
        &mut self,
        fields: &FieldMask,
        story: &mut Story,
        (layout, shapes): (&Arc<Layout>, &ShapeTable),
        steps: &mut Vec<NodeStep>,
    ) {
        self.settle_overlapping(fields, story, (layout.union(), shapes), steps);
        let key = (key(story), layout.id());
        let exchanges = match self.brought.get(&key) {
            Some(known) => Arc::clone(known),
            None => {
                let exchanges = missing(self.whose.clone(), story, layout, shapes);
                remember(&mut self.brought, key, Arc::clone(&exchanges));
                exchanges
            }
        };
        if exchanges.iter().any(|(_, exchange)| exchange.is_needed) {
            self.exchange((fields, None), &exchanges, steps);
            push(story, Entry::Copied(Arc::clone(layout)), shapes);
        }
    }

    fn exchange(
        &self,
        (fields, fold): (&FieldMask, Option<OperatorId>),
        exchanges: &Exchanges,
        steps: &mut Vec<NodeStep>,
    ) {
        for (node, exchange) in exchanges.iter() {
            let step = Step::Exchange { fields: fields.clone(), fold, exchange: Arc::clone(exchange) };
            steps.push(NodeStep { node: *node, story: self.telling, step });
        }
    }

    fn contribute(
        &mut self,
        fields: &FieldMask,
        story: &mut Story,
        (operator, layout, shapes): (OperatorId, &Arc<Layout>, &ShapeTable),
        steps: &mut Vec<NodeStep>,
    ) {
        if layout.union().is_empty() {
            // Nothing overlaps what is about no points. In a story in which nothing is written any more it would stay for ever, and each one make another state.
            return;
        }
        let before = match story.last() {
            // More of the same: contributions go where there are some already.
            Some(Entry::Reduced(known, before)) if *known == operator => Some(Arc::clone(before)),
            _ => None,
        };
        if before.is_some() {
            story.pop();
        }
        self.settle_overlapping(fields, story, (layout.union(), shapes), steps);
        let homes = self.homes(story, shapes);
        for node in self.whose.clone() {
            let away = shapes.difference(layout.area(node), homes.area(node));
            let place = before.as_ref().map_or(away.clone(), |before| shapes.difference(&away, before.area(node)));
            if !place.is_empty() {
                let step = Step::Identity { fields: fields.clone(), operator, place };
                steps.push(NodeStep { node, story: self.telling, step });
            }
        }
        let all = match before {
            None => Arc::clone(layout),
            Some(before) => self.union(&before, layout, shapes),
        };
        story.push(Entry::Reduced(operator, all));
    }

    /// The layout in which each node has what it has in any of two.
    fn union(&mut self, one: &Arc<Layout>, other: &Arc<Layout>, shapes: &ShapeTable) -> Arc<Layout> {
        if one.id() == other.id() {
            return Arc::clone(one);
        }
        let key = (one.id(), other.id());
        if let Some(known) = self.both.get(&key) {
            return Arc::clone(known);
        }
        let areas = one.areas().iter().zip(other.areas()).map(|(one, other)| shapes.union(one, other));
        let both = self.layouts.get(areas.collect(), shapes);
        remember(&mut self.both, key, Arc::clone(&both));
        both
    }

    /// Sends contributions home that are about any of some points.
    fn settle_overlapping(
        &mut self,
        fields: &FieldMask,
        story: &mut Story,
        (points, shapes): (&Shape, &ShapeTable),
        steps: &mut Vec<NodeStep>,
    ) {
        let mut has_settled = false;
        for index in 0..story.len() {
            let Entry::Reduced(operator, layout) = story[index].clone() else { continue };
            if !shapes.overlaps(layout.union(), points) {
                continue;
            }
            let key = (key(story), index);
            let (exchanges, settled) = match self.settled.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let settled = self.settle(story, (index, &layout), shapes);
                    remember(&mut self.settled, key, settled.clone());
                    settled
                }
            };
            self.exchange((fields, Some(operator)), &exchanges, steps);
            story[index] = Entry::At(settled);
            has_settled = true;
        }
        if has_settled {
            forget_hidden(story, shapes);
        }
    }

    /// What is sent when contributions go home, and where the values are then.
    fn settle(
        &mut self,
        story: &[Entry],
        (index, layout): (usize, &Layout),
        shapes: &ShapeTable,
    ) -> (Exchanges, Arc<Layout>) {
        let (whose, homes) = (self.whose.clone(), self.homes(&story[..index], shapes));
        let mut exchanges = vec![Exchange::default(); whose.len()];
        for (from, area) in layout.areas().iter().enumerate() {
            // What was overwritten since is nobody's business.
            let later = story[index + 1..].iter().filter(|entry| entry.hides());
            let area = later.fold(area.clone(), |area, entry| shapes.difference(&area, entry.points()));
            let targets = if whose.contains(&from) { 0..homes.areas().len() } else { whose.clone() };
            for to in targets.filter(|&to| to != from && shapes.overlaps(&area, homes.area(to))) {
                let points = shapes.intersection(&area, homes.area(to));
                if whose.contains(&from) {
                    let parcel = Parcel::new(to, points.clone());
                    exchanges[from - whose.start].sends.push(parcel);
                }
                if whose.contains(&to) {
                    exchanges[to - whose.start].receives.push(Parcel::new(from, points));
                }
            }
        }
        let settled = homes.areas().iter().map(|home| shapes.intersection(home, layout.union())).collect();
        (whose.zip(exchanges.into_iter().map(Arc::new)).collect(), self.layouts.get(settled, shapes))
    }

    /// For each point a node that has the value of a field, apart from what is still to be contributed to it.
    pub(crate) fn homes_of(&mut self, field: FieldId, shapes: &ShapeTable) -> Arc<Layout> {
        self.catch_up();
        let known = self.stories.iter().find(|(fields, _)| fields.contains(field));
        let story = known.map_or_else(|| vec![Entry::Everywhere(self.root.clone())], |(_, story)| story.clone());
        self.homes(&story, shapes)
    }

    /// The node to which contributions to each point go: one that has its value.
    fn homes(&mut self, story: &[Entry], shapes: &ShapeTable) -> Arc<Layout> {
        let key: Key = story.iter().filter(|entry| entry.hides()).map(Entry::key).collect();
        if let Some(known) = self.homes.get(&key) {
            return Arc::clone(known);
        }
        let homes = self.home.areas().iter().enumerate().map(|(node, home)| {
            // Oldest first: what is newer takes points away, or adds them.
            story.iter().fold(home.clone(), |area, entry| match entry {
                Entry::Everywhere(points) => {
                    let kept = shapes.difference(&area, points);
                    shapes.union(&kept, &shapes.intersection(home, points))
                }
                Entry::At(layout) => {
                    let kept = shapes.difference(&area, layout.union());
                    shapes.union(&kept, layout.area(node))
                }
                Entry::Copied(_) | Entry::Reduced(..) => area,
            })
        });
        let homes = self.layouts.get(homes.collect(), shapes);
        remember(&mut self.homes, key, Arc::clone(&homes));
        homes
    }
}

impl Entry {
    pub(super) fn key(&self) -> (u8, u64) {
        match self {
            Self::Everywhere(shape) => (0, shape.id()),
            Self::At(layout) => (1, layout.id()),
            Self::Copied(layout) => (2, layout.id()),
            Self::Reduced(_, layout) => (3, layout.id()),
        }
    }

    /// All points that it is about.
    fn points(&self) -> &Shape {
        match self {
            Self::Everywhere(shape) => shape,
            Self::At(layout) | Self::Copied(layout) | Self::Reduced(_, layout) => layout.union(),
        }
    }

    /// Whether older values of its points are no values any more.
    fn hides(&self) -> bool {
        matches!(self, Self::Everywhere(_) | Self::At(_))
    }
}

fn key(story: &[Entry]) -> Key {
    story.iter().map(Entry::key).collect()
}

fn remember<K: Eq + std::hash::Hash, V>(memo: &mut FxHashMap<K, V>, key: K, value: V) {
    if memo.len() >= MEMO_LIMIT {
        memo.clear();
    }
    memo.insert(key, value);
}

/// Adds what happened, and forgets what nobody can tell any more.
fn push(story: &mut Story, entry: Entry, shapes: &ShapeTable) {
    if entry.points().is_empty() {
        return;
    }
    if let Entry::Copied(layout) = &entry {
        story.retain(|older| !matches!(older, Entry::Copied(copied) if copied.id() == layout.id()));
    }
    let hides = entry.hides();
    story.push(entry);
    if hides {
        forget_hidden(story, shapes);
    }
}

/// Forgets what is hidden by all that came later together. Otherwise a loop that writes a region in parts would make its story longer and longer, and never come
/// back to a state.
fn forget_hidden(story: &mut Story, shapes: &ShapeTable) {
    let mut hidden: Option<Shape> = None;
    // Newest first.
    for place in (0..story.len()).rev() {
        let (points, hides) = (story[place].points(), story[place].hides());
        hidden = match hidden {
            Some(hidden) if shapes.is_subset(points, &hidden) => {
                story.remove(place);
                Some(hidden)
            }
            Some(hidden) if hides => Some(shapes.union(&hidden, points)),
            None if hides => Some(points.clone()),
            hidden => hidden,
        };
    }
}
