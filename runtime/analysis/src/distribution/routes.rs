//! Routes: the parcels that nodes send each other so that each node has the values of its area.
//!
//! Values come from the nodes that got them last: those that have written them, or that have received copies since. So
//! tiles that go around a grid of processors, a step at a time, come from a neighbour and not from where they were at
//! the beginning.
//!
//! Values that several nodes miss alike, such as a region that all read, are forwarded along binomial trees, in
//! `O(log n)` rounds, so that no node sends them to all.

use std::ops::Range;
use std::sync::Arc;

use maniple_region::{Shape, ShapeTable};
use rustc_hash::FxHashMap;

use super::history::HistoryEntry;
use super::layout::{Layout, Rank, Tile};
use super::steps::{Exchange, Exchanges, Parcel};

/// From this many nodes on that miss the same, they forward it. Fewer are served one after the other: that is no
/// slower.
const MANY: usize = 4;

/// Finds the exchanges of the nodes `whose` by which each node gets the values of its area. No contributions to the
/// values are pending.
pub(super) fn routes(whose: Range<Rank>, history: &[HistoryEntry], layout: &Layout, shapes: &ShapeTable) -> Exchanges {
    let mut routes = Routes {
        sent: vec![FxHashMap::default(); whose.len()],
        exchanges: vec![Exchange::default(); whose.len()],
        whose,
        shapes,
        all: layout.areas().len(),
    };
    if let Some(HistoryEntry::At(last) | HistoryEntry::Copied(last)) = history.last()
        && last.id() == layout.id()
    {
        return routes.finish();
    }
    let mut missing = not_there(history, layout, shapes);
    for entry in history.iter().rev() {
        // Copies that overlap in parts do not say which node is to send what: the node that has written the values
        // sends them.
        if let HistoryEntry::At(last) | HistoryEntry::Copied(last) = entry
            && let Some(tiles) = last.tiles()
        {
            routes.add(&missing, last, tiles);
            missing.iter_mut().for_each(|missing| subtract(missing, last.union(), shapes));
        }
    }
    routes.finish()
}

/// Returns for each node the part of its area of which it has no values.
fn not_there(history: &[HistoryEntry], layout: &Layout, shapes: &ShapeTable) -> Vec<Shape> {
    let of_node = |(node, area): (Rank, &Shape)| {
        // What nothing newer than the entry tells of; and what was written elsewhere. The first entry tells of all the
        // rest.
        let (mut rest, mut missing) = (area.clone(), None);
        for entry in history.iter().rev() {
            match entry {
                HistoryEntry::Everywhere(points) => subtract(&mut rest, points, shapes),
                HistoryEntry::Copied(copied) => subtract(&mut rest, copied.area(node), shapes),
                HistoryEntry::At(owners) => {
                    subtract(&mut rest, owners.area(node), shapes);
                    if shapes.overlaps(&rest, owners.union()) {
                        let more = shapes.intersection(&rest, owners.union());
                        missing = Some(missing.map_or(more.clone(), |missing| shapes.union(&missing, &more)));
                        subtract(&mut rest, owners.union(), shapes);
                    }
                }
                HistoryEntry::Reduced(..) => {}
            }
        }
        debug_assert!(rest.is_empty(), "each value is on some node");
        missing.unwrap_or(rest)
    };
    layout.areas().iter().enumerate().map(of_node).collect()
}

fn subtract(points: &mut Shape, gone: &Shape, shapes: &ShapeTable) {
    if !points.is_empty() {
        *points = shapes.difference(points, gone);
    }
}

/// The exchange under construction.
struct Routes<'a> {
    whose: Range<Rank>,
    shapes: &'a ShapeTable,
    /// How many nodes there are.
    all: usize,
    /// Of each, the parcels to each other node so far.
    sent: Vec<FxHashMap<Rank, u32>>,
    exchanges: Vec<Exchange>,
}

impl Routes<'_> {
    /// Nodes that have tiles send others what these miss of them.
    fn add(&mut self, missing: &[Shape], has: &Layout, tiles: &[Tile]) {
        let is_own = |node: &Rank| self.whose.contains(node);
        // Each node is in one tile at most.
        let own: Vec<&Tile> = tiles.iter().filter(|tile| tile.holders.iter().any(is_own)).collect();
        let all: Vec<&Tile> = tiles.iter().collect();
        for (points, nodes) in alike(missing) {
            if !self.shapes.overlaps(points, has.union()) {
                continue;
            }
            self.exchanges.iter_mut().for_each(|exchange| exchange.is_needed = true);
            let tiles = if nodes.iter().any(|node| self.whose.contains(node)) { &all } else { &own };
            for tile in tiles {
                if self.shapes.overlaps(points, &tile.points) {
                    let parcel = self.shapes.intersection(points, &tile.points);
                    self.hand_out(&parcel, &nodes, &tile.holders);
                }
            }
        }
    }

    /// Lets nodes that miss the same points receive them from those that hold them.
    fn hand_out(&mut self, points: &Shape, nodes: &[Rank], holders: &[Rank]) {
        let all = self.all;
        if nodes.len() < MANY {
            for &to in nodes {
                // The nearest one, on a ring of all nodes.
                let distance = |holder: &&Rank| away(to, **holder, all).min(away(**holder, to, all));
                let Some(&from) = holders.iter().min_by_key(distance) else { continue };
                self.pass(from, to, points, false);
            }
            return;
        }
        for (number, &root) in holders.iter().enumerate() {
            let share = |number: usize| number * nodes.len() / holders.len();
            let members = &nodes[share(number)..share(number + 1)];
            for (position, &to) in members.iter().enumerate() {
                // A node waits for all that it receives before it passes anything on. That ends, because in every tree,
                // whatever its root, it waits for nodes with smaller numbers.
                let above = parent(position + 1).filter(|&above| above > 0);
                let from = above.map_or(root, |above| members[above - 1]);
                self.pass(from, to, points, above.is_some());
            }
        }
    }

    /// Lets a node send points to another: its own, or some that it has received.
    fn pass(&mut self, from: Rank, to: Rank, points: &Shape, received: bool) {
        let place = |node: Rank| self.whose.contains(&node).then(|| node - self.whose.start);
        let (sender, receiver) = (place(from), place(to));
        if let Some(place) = sender {
            let sent = self.sent[place].entry(to).or_default();
            let number = *sent;
            let parcel = Parcel { with: to, number, points: points.clone(), is_forwarded: received };
            *sent += 1;
            let Exchange { sends, forwards, .. } = &mut self.exchanges[place];
            if received { forwards } else { sends }.push(parcel);
        }
        if let Some(place) = receiver.filter(|_| from != to) {
            let parcel = Parcel { is_forwarded: received, ..Parcel::new(from, points.clone()) };
            self.exchanges[place].receives.push(parcel);
        }
    }

    fn finish(self) -> Exchanges {
        let mut exchanges = self.exchanges;
        for exchange in &mut exchanges {
            // Those of one sender in the order in which it counts them.
            exchange.receives.sort_by_key(|parcel| parcel.with);
            for same in exchange.receives.chunk_by_mut(|one, other| one.with == other.with) {
                same.iter_mut().zip(0..).for_each(|(parcel, number)| parcel.number = number);
            }
        }
        self.whose.zip(exchanges.into_iter().map(Arc::new)).collect()
    }
}

/// How many places `to` is after `from` on a ring of `all` nodes.
fn away(from: Rank, to: Rank, all: usize) -> usize {
    (to + all - from) % all
}

/// The nodes that miss points, grouped by what they miss.
fn alike(missing: &[Shape]) -> Vec<(&Shape, Vec<Rank>)> {
    let mut numbers = FxHashMap::default();
    let mut alike: Vec<(&Shape, Vec<Rank>)> = Vec::new();
    for (node, points) in missing.iter().enumerate().filter(|(_, points)| !points.is_empty()) {
        let number = *numbers.entry(points.id()).or_insert(alike.len());
        match alike.get_mut(number) {
            Some((_, nodes)) => nodes.push(node),
            None => alike.push((points, vec![node])),
        }
    }
    alike
}

/// The node above another in a binomial tree whose root is 0.
fn parent(node: Rank) -> Option<Rank> {
    (node > 0).then(|| node & (node - 1))
}
