//! The coherence of data between nodes: the places of current values, node by node, and the values that nodes must send
//! each other.
//!
//! Every node runs the same program, and knows by a pure function which node runs which points of a launch. So each
//! finds without a message which nodes have written what, which have copies, and which will read them: the sender knows
//! that it has to send, and the receiver that it has to wait.
//!
//! Contributions of reductions stay where they were made, in places that hold contributions instead of values, until
//! the values are read: then they are *settled*, that is sent to each point's home and folded there.

use std::ops::Range;
use std::sync::Arc;

use maniple_region::{FieldId, FieldMask, OperatorId, Privilege, Shape, ShapeTable};
use rustc_hash::FxHashMap;

use super::history::{Histories, History, HistoryEntry, Key, forget_hidden, key, push};
use super::layout::{Layout, Layouts, Rank};
use super::routes::routes;
use super::states::States;
use super::steps::{DistributionStep, Exchange, Exchanges, NodeStep, Parcel};

/// The coherence of the data of one region tree between nodes.
pub struct Coherence {
    /// The nodes of which it is found out what they do.
    whose: Range<Rank>,
    root: Shape,
    /// The target of contributions to values that all nodes have: the node of each point.
    home: Arc<Layout>,
    layouts: Layouts,
    /// Fields that were used alike, with their history. A field in none of them was not used.
    histories: Histories,
    /// The histories are those of an earlier state than the current one.
    is_behind: bool,
    /// The number of the history that is being changed.
    current: u32,
    states: States,
    fetched: FxHashMap<(Key, u64), Exchanges>,
    settled: FxHashMap<(Key, usize), (Exchanges, Arc<Layout>)>,
    homes: FxHashMap<Key, Arc<Layout>>,
    both: FxHashMap<(u64, u64), Arc<Layout>>,
}

/// The most entries of each table of remembered results.
const MEMO_LIMIT: usize = 1 << 12;

impl Coherence {
    /// The coherence of a region tree with points `root`, whose values all nodes have. `home` has for each point one
    /// node, to which contributions to such values go. The steps that are given are those of the nodes `whose`.
    pub fn new(whose: Range<Rank>, root: Shape, home: Vec<Shape>, shapes: &ShapeTable) -> Self {
        let mut layouts = Layouts::default();
        let home = layouts.get(home, shapes);
        Self {
            whose,
            root,
            home,
            layouts,
            histories: Histories::new(),
            is_behind: false,
            current: 0,
            states: States::default(),
            fetched: FxHashMap::default(),
            settled: FxHashMap::default(),
            homes: FxHashMap::default(),
            both: FxHashMap::default(),
        }
    }

    /// The coherence of a part of the region tree, with the steps of all nodes.
    pub fn within(mut self, block: &Shape, shapes: &ShapeTable) -> Self {
        self.catch_up();
        // Contributions that are on their way go where they would have gone.
        let homes: Vec<Shape> = self.home.areas().iter().map(|home| shapes.intersection(home, block)).collect();
        let mut part = Self::new(0..homes.len(), block.clone(), homes, shapes);
        for (fields, history) in &self.histories {
            let mut layout = |layout: &Layout| {
                let areas = layout.areas().iter().map(|area| shapes.intersection(area, block));
                part.layouts.get(areas.collect(), shapes)
            };
            let entries = history.iter().map(|entry| match entry {
                HistoryEntry::Everywhere(points) => HistoryEntry::Everywhere(shapes.intersection(points, block)),
                HistoryEntry::At(at) => HistoryEntry::At(layout(at)),
                HistoryEntry::Copied(to) => HistoryEntry::Copied(layout(to)),
                HistoryEntry::Reduced(operator, on) => HistoryEntry::Reduced(*operator, layout(on)),
            });
            let history = entries.collect();
            part.histories.push((fields.clone(), history));
        }
        part
    }

    /// The number of the current state: equal histories have equal numbers.
    pub fn state(&mut self) -> u64 {
        match self.states.current() {
            Some(state) => state,
            None => self.states.enter(&self.histories),
        }
    }

    /// Whether an earlier state is still remembered.
    pub fn remembers(&self, state: u64) -> bool {
        self.states.get(state).is_some()
    }

    /// Forgets all states but the current one, which has another number from now on.
    pub fn forget_states(&mut self) {
        self.catch_up();
        self.states.forget();
    }

    /// Makes an earlier state, which is [remembered](Self::remembers), the current one: the same uses were made as
    /// then.
    pub fn go_to(&mut self, state: u64) {
        self.states.set_current(Some(state));
        self.is_behind = true;
    }

    /// Makes the histories those of the current state.
    fn catch_up(&mut self) {
        if let Some(histories) =
            self.states.current().filter(|_| self.is_behind).and_then(|state| self.states.get(state))
        {
            self.histories.clone_from(histories);
        }
        self.is_behind = false;
    }

    /// The layout with these areas, one a node.
    pub fn layout(&mut self, areas: Vec<Shape>, shapes: &ShapeTable) -> Arc<Layout> {
        self.layouts.get(areas, shapes)
    }

    /// Notes that every node writes the same values.
    pub fn fill(&mut self, fields: &FieldMask, points: &Shape, shapes: &ShapeTable) {
        self.each_history(fields, |_, _, history| push(history, HistoryEntry::Everywhere(points.clone()), shapes));
    }

    /// The steps that send home earlier contributions to data that a launch uses, before the launch contributes to
    /// other data. Were they found for a later requirement of the launch, the contributions that the launch is about to
    /// make would count as sent.
    pub fn settle_for(
        &mut self,
        fields: &FieldMask,
        privilege: Privilege,
        layout: &Arc<Layout>,
        shapes: &ShapeTable,
    ) -> Vec<NodeStep> {
        let mut steps = Vec::new();
        self.each_history(fields, |this, fields, history| {
            let more = match (privilege, history.last()) {
                (Privilege::Discard, _) => return,
                (Privilege::Reduce(operator), Some(HistoryEntry::Reduced(known, _))) if *known == operator => {
                    history.pop()
                }
                _ => None,
            };
            this.settle_overlapping(fields, history, layout.union(), shapes, &mut steps);
            history.extend(more);
        });
        steps
    }

    /// Notes that each node reads its area, and returns the steps before that.
    pub fn read(&mut self, fields: &FieldMask, layout: &Arc<Layout>, shapes: &ShapeTable) -> Vec<NodeStep> {
        let mut steps = Vec::new();
        self.each_history(fields, |this, fields, history| this.fetch(fields, history, layout, shapes, &mut steps));
        steps
    }

    /// Notes that each node changes the values of its area, which is no other node's, and returns the steps before
    /// that.
    pub fn write(&mut self, fields: &FieldMask, layout: &Arc<Layout>, shapes: &ShapeTable) -> Vec<NodeStep> {
        let steps = self.read(fields, layout, shapes);
        self.discard(fields, layout, shapes);
        steps
    }

    /// Notes that each node overwrites the values of its area, which is no other node's.
    pub fn discard(&mut self, fields: &FieldMask, layout: &Arc<Layout>, shapes: &ShapeTable) {
        self.each_history(fields, |_, _, history| push(history, HistoryEntry::At(Arc::clone(layout)), shapes));
    }

    /// Notes that each node contributes to the values of its area, and returns the steps before that.
    pub fn reduce(
        &mut self,
        fields: &FieldMask,
        operator: OperatorId,
        layout: &Arc<Layout>,
        shapes: &ShapeTable,
    ) -> Vec<NodeStep> {
        let mut steps = Vec::new();
        self.each_history(fields, |this, fields, history| {
            this.contribute(fields, history, operator, layout, shapes, &mut steps);
        });
        steps
    }

    /// Forgets where copies of values are at some points, so that memory can be used for others: each node keeps the
    /// values of which no other node is the first to have them. Returns what nodes give up. Points stay as they are
    /// where contributions are pending.
    pub fn forget_copies(&mut self, fields: &FieldMask, points: &Shape, shapes: &ShapeTable) -> Vec<NodeStep> {
        let mut steps = Vec::new();
        self.each_history(fields, |this, fields, history| {
            let pending = history.iter().filter(|entry| matches!(entry, HistoryEntry::Reduced(..)));
            let points = pending.fold(points.clone(), |points, entry| shapes.difference(&points, entry.points()));
            let is_copied = |entry: &HistoryEntry| {
                matches!(entry, HistoryEntry::Copied(to) if shapes.overlaps(to.union(), &points))
            };
            if !history.iter().any(is_copied) {
                return;
            }
            for node in this.whose.clone() {
                let place = shapes.intersection(&given_up(history, node, shapes), &points);
                if !place.is_empty() {
                    let step = DistributionStep::Forget { fields: fields.clone(), place };
                    steps.push(NodeStep { node, history: this.current, step });
                }
            }
            for entry in std::mem::take(history) {
                let left = match entry {
                    HistoryEntry::Copied(to) => {
                        let areas = to.areas().iter().map(|area| shapes.difference(area, &points));
                        HistoryEntry::Copied(this.layouts.get(areas.collect(), shapes))
                    }
                    other => other,
                };
                push(history, left, shapes);
            }
        });
        steps
    }

    /// Visits the histories of fields; those of several fields are split as needed.
    fn each_history(&mut self, fields: &FieldMask, mut visit: impl FnMut(&mut Self, &FieldMask, &mut History)) {
        self.catch_up();
        self.states.set_current(None);
        let mut unknown = fields.clone();
        let mut histories = std::mem::take(&mut self.histories);
        for index in 0..histories.len() {
            let (known, history) = &mut histories[index];
            let common = known.intersection(fields);
            if common.is_empty() {
                continue;
            }
            unknown = unknown.difference(&common);
            let rest = known.difference(fields);
            if !rest.is_empty() {
                let history = history.clone();
                *known = common;
                histories.push((rest, history));
            }
            let (fields, history) = &mut histories[index];
            self.current = index as u32;
            visit(self, fields, history);
        }
        if !unknown.is_empty() {
            self.current = histories.len() as u32;
            let mut history = vec![HistoryEntry::Everywhere(self.root.clone())];
            visit(self, &unknown, &mut history);
            histories.push((unknown, history));
        }
        self.histories = histories;
    }

    /// Gives each node the values of its area.
    fn fetch(
        &mut self,
        fields: &FieldMask,
        history: &mut History,
        layout: &Arc<Layout>,
        shapes: &ShapeTable,
        steps: &mut Vec<NodeStep>,
    ) {
        self.settle_overlapping(fields, history, layout.union(), shapes, steps);
        let key = (key(history), layout.id());
        let exchanges = match self.fetched.get(&key) {
            Some(known) => Arc::clone(known),
            None => {
                let exchanges = routes(self.whose.clone(), history, layout, shapes);
                remember(&mut self.fetched, key, Arc::clone(&exchanges));
                exchanges
            }
        };
        if exchanges.iter().any(|(_, exchange)| exchange.is_needed) {
            self.exchange(fields, None, &exchanges, steps);
            push(history, HistoryEntry::Copied(Arc::clone(layout)), shapes);
        }
    }

    fn exchange(&self, fields: &FieldMask, fold: Option<OperatorId>, exchanges: &Exchanges, steps: &mut Vec<NodeStep>) {
        for (node, exchange) in exchanges.iter() {
            let step = DistributionStep::Exchange { fields: fields.clone(), fold, exchange: Arc::clone(exchange) };
            steps.push(NodeStep { node: *node, history: self.current, step });
        }
    }

    fn contribute(
        &mut self,
        fields: &FieldMask,
        history: &mut History,
        operator: OperatorId,
        layout: &Arc<Layout>,
        shapes: &ShapeTable,
        steps: &mut Vec<NodeStep>,
    ) {
        if layout.union().is_empty() {
            // Nothing overlaps what is about no points. In a history in which nothing is written any more it would stay
            // for ever, and each one make another state.
            return;
        }
        let before = match history.last() {
            // More of the same: contributions go where there are some already.
            Some(HistoryEntry::Reduced(known, before)) if *known == operator => Some(Arc::clone(before)),
            _ => None,
        };
        if before.is_some() {
            history.pop();
        }
        self.settle_overlapping(fields, history, layout.union(), shapes, steps);
        let homes = self.homes(history, shapes);
        for node in self.whose.clone() {
            let away = shapes.difference(layout.area(node), homes.area(node));
            let place = before.as_ref().map_or(away.clone(), |before| shapes.difference(&away, before.area(node)));
            if !place.is_empty() {
                let step = DistributionStep::Identity { fields: fields.clone(), operator, place };
                steps.push(NodeStep { node, history: self.current, step });
            }
        }
        let all = match before {
            None => Arc::clone(layout),
            Some(before) => self.union(&before, layout, shapes),
        };
        history.push(HistoryEntry::Reduced(operator, all));
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
        history: &mut History,
        points: &Shape,
        shapes: &ShapeTable,
        steps: &mut Vec<NodeStep>,
    ) {
        let mut has_settled = false;
        for index in 0..history.len() {
            let HistoryEntry::Reduced(operator, layout) = history[index].clone() else { continue };
            if !shapes.overlaps(layout.union(), points) {
                continue;
            }
            let key = (key(history), index);
            let (exchanges, settled) = match self.settled.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let settled = self.settle(history, index, &layout, shapes);
                    remember(&mut self.settled, key, settled.clone());
                    settled
                }
            };
            self.exchange(fields, Some(operator), &exchanges, steps);
            history[index] = HistoryEntry::At(settled);
            has_settled = true;
        }
        if has_settled {
            forget_hidden(history, shapes);
        }
    }

    /// Finds the exchanges by which contributions go home, and the layout of the values afterwards.
    fn settle(
        &mut self,
        history: &[HistoryEntry],
        index: usize,
        layout: &Layout,
        shapes: &ShapeTable,
    ) -> (Exchanges, Arc<Layout>) {
        let (whose, homes) = (self.whose.clone(), self.homes(&history[..index], shapes));
        let mut exchanges = vec![Exchange::default(); whose.len()];
        for (from, area) in layout.areas().iter().enumerate() {
            // What was overwritten since is not sent.
            let later = history[index + 1..].iter().filter(|entry| entry.hides());
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

    /// For each point a node that has the value of a field, but for contributions that are pending.
    pub fn homes_of(&mut self, field: FieldId, shapes: &ShapeTable) -> Arc<Layout> {
        self.catch_up();
        let known = self.histories.iter().find(|(fields, _)| fields.contains(field));
        let history =
            known.map_or_else(|| vec![HistoryEntry::Everywhere(self.root.clone())], |(_, history)| history.clone());
        self.homes(&history, shapes)
    }

    /// The node to which contributions to each point go: one that has its value.
    fn homes(&mut self, history: &[HistoryEntry], shapes: &ShapeTable) -> Arc<Layout> {
        let key: Key = history.iter().filter(|entry| entry.hides()).map(HistoryEntry::key).collect();
        if let Some(known) = self.homes.get(&key) {
            return Arc::clone(known);
        }
        let homes = self.home.areas().iter().enumerate().map(|(node, home)| {
            // Oldest first: what is newer takes points away, or adds them.
            history.iter().fold(home.clone(), |area, entry| match entry {
                HistoryEntry::Everywhere(points) => {
                    let kept = shapes.difference(&area, points);
                    shapes.union(&kept, &shapes.intersection(home, points))
                }
                HistoryEntry::At(layout) => {
                    let kept = shapes.difference(&area, layout.union());
                    shapes.union(&kept, layout.area(node))
                }
                HistoryEntry::Copied(_) | HistoryEntry::Reduced(..) => area,
            })
        });
        let homes = self.layouts.get(homes.collect(), shapes);
        remember(&mut self.homes, key, Arc::clone(&homes));
        homes
    }
}

/// The points of which a node has copies alone.
fn given_up(history: &[HistoryEntry], node: Rank, shapes: &ShapeTable) -> Shape {
    let nothing = shapes.difference(history[0].points(), history[0].points());
    let (copied, own) = history.iter().fold((nothing.clone(), nothing), |(copied, own), entry| match entry {
        HistoryEntry::Everywhere(points) => (copied, shapes.union(&own, points)),
        HistoryEntry::At(layout) => {
            let own = shapes.difference(&own, layout.union());
            (copied, shapes.union(&own, layout.area(node)))
        }
        HistoryEntry::Copied(layout) => (shapes.union(&copied, layout.area(node)), own),
        HistoryEntry::Reduced(..) => (copied, own),
    });
    shapes.difference(&copied, &own)
}

fn remember<K: Eq + std::hash::Hash, V>(memo: &mut FxHashMap<K, V>, key: K, value: V) {
    if memo.len() >= MEMO_LIMIT {
        memo.clear();
    }
    memo.insert(key, value);
}
