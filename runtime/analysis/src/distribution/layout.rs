//! Which node uses what: the areas of the points of a launch, by the node that runs them.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use maniple_region::{Shape, ShapeTable};
use maniple_space::AnySpace;
use rustc_hash::{FxHashMap, FxHasher};

/// The number of a node, from zero.
pub type Rank = usize;

/// For each node, the points of a region tree that its share of a launch uses. Areas of different nodes may overlap,
/// unless they are written.
///
/// Equal layouts of one [`Coherence`](super::Coherence) are one value with one number.
#[derive(Debug)]
pub struct Layout {
    id: u64,
    areas: Box<[Shape]>,
    union: Shape,
    tiles: OnceLock<Option<Box<[Tile]>>>,
}

/// An area of one node or several.
#[derive(Debug)]
pub(super) struct Tile {
    pub(super) points: Shape,
    /// The nodes whose area it is, in their order.
    pub(super) holders: Vec<Rank>,
}

impl Layout {
    /// The number of the layout, which no other layout of the same [`Coherence`](super::Coherence) has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The points that a node uses.
    pub fn area(&self, node: Rank) -> &Shape {
        &self.areas[node]
    }

    /// The points that each node uses.
    pub fn areas(&self) -> &[Shape] {
        &self.areas
    }

    /// The points that any node uses.
    pub fn union(&self) -> &Shape {
        &self.union
    }

    /// The different areas, none of them empty, in the order of their first nodes; if they do not overlap.
    pub(super) fn tiles(&self) -> Option<&[Tile]> {
        self.tiles.get_or_init(|| tiles(&self.areas)).as_deref()
    }
}

/// The layouts that a program uses.
#[derive(Default)]
pub(super) struct Layouts {
    known: FxHashMap<Box<[Shape]>, Arc<Layout>>,
    /// Numbers are not used again.
    next: u64,
    /// Layouts that are not referred to are dropped when there are this many.
    sweep_at: usize,
}

/// No fewer layouts than this are swept.
const FEW_LAYOUTS: usize = 1 << 10;

impl Layouts {
    /// The layout with these areas, one a node, all of one dimension.
    pub(super) fn get(&mut self, areas: Vec<Shape>, shapes: &ShapeTable) -> Arc<Layout> {
        let id = self.next;
        let make = |areas: &[Shape]| {
            let dim = areas.first().expect("there is at least one node").space().dim();
            // At once: what is united one after the other costs, and leaves behind in the table, the square of the
            // number of nodes.
            let union = AnySpace::union_all(dim, areas.iter().map(Shape::space)).expect("areas have one dimension");
            Arc::new(Layout { id, areas: areas.into(), union: shapes.intern(&union), tiles: OnceLock::new() })
        };
        let areas = areas.into_boxed_slice();
        match self.known.get(&areas) {
            Some(known) => Arc::clone(known),
            None => {
                let layout = make(&areas);
                self.next += 1;
                if self.known.len() >= self.sweep_at.max(FEW_LAYOUTS) {
                    self.known.retain(|_, layout| Arc::strong_count(layout) > 1);
                    self.sweep_at = self.known.len() * 2;
                }
                self.known.insert(areas, Arc::clone(&layout));
                layout
            }
        }
    }
}

/// A hash of areas that is the same on every node: numbers of shapes are a node's own.
pub fn hash_of_areas(areas: &[Shape]) -> u64 {
    // What many nodes use alike is looked at once.
    let (mut hashes, mut of_all) = (FxHashMap::default(), FxHasher::default());
    for area in areas {
        let hash = *hashes.entry(area.id()).or_insert_with(|| {
            let mut hasher = FxHasher::default();
            area.space().hash(&mut hasher);
            hasher.finish()
        });
        hash.hash(&mut of_all);
    }
    of_all.finish()
}

fn tiles(areas: &[Shape]) -> Option<Box<[Tile]>> {
    let mut numbers = FxHashMap::default();
    let mut tiles: Vec<Tile> = Vec::new();
    for (node, area) in areas.iter().enumerate().filter(|(_, area)| !area.is_empty()) {
        let number = *numbers.entry(area.id()).or_insert(tiles.len());
        match tiles.get_mut(number) {
            Some(tile) => tile.holders.push(node),
            None => tiles.push(Tile { points: area.clone(), holders: vec![node] }),
        }
    }
    let Some(first) = tiles.first() else { return Some(Box::default()) };
    let dim = first.points.space().dim();
    let are_apart = AnySpace::are_disjoint(dim, tiles.iter().map(|tile| tile.points.space()));
    are_apart.expect("areas have one dimension").then(|| tiles.into())
}
