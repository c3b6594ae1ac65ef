//! Random spaces, fields, regions and partitions.

use std::ops::Range;

use maniple::{AnyPoint, AnyRect, Rect};

use super::{Generator, Scope, shared};
use crate::program::{
    Action, Block, Column, FieldsName, Link, Meaning, Node, PartitionName, Place, RegionName, SpaceName, Split,
};
use crate::value::{Kind, Width};

/// How far apart the rectangles of a space may be.
const FAR: i64 = 1 << 39;

/// Boxes with more points are too large to be listed point by point.
const LISTED: u64 = 1 << 12;

impl Generator {
    pub(super) fn new_space(&mut self, _scope: &Scope) -> Action {
        let name = SpaceName(self.number());
        if self.once_in(12) {
            return Action::CreateSpace(name, vec![self.no_points()]);
        }
        let whole: AnyRect = match self.random.usize(..8) {
            0 => self.box_of::<3>(3),
            1..=2 => self.box_of::<2>(7),
            _ => Rect::<1>::from(0..self.random.i64(1..=self.profile.extent)).into(),
        };
        let rects = match self.random.usize(..12) {
            0..=1 => self.some_rects(&whole, 4),
            2 => self.some_rects(&whole, 4).iter().map(|rect| self.far_away(rect)).collect(),
            // No points.
            3 if self.once_in(4) => vec![nothing(whole.lo())],
            _ => vec![whole],
        };
        Action::CreateSpace(name, rects)
    }

    /// A rectangle moved so far along some dimension that no memory holds all points between it and where it was, or
    /// left where it is.
    fn far_away(&mut self, rect: &AnyRect) -> AnyRect {
        let (along, distance) = (self.random.usize(..rect.dim()), self.random.i64(0..=2) * FAR);
        let moved = |corner: AnyPoint| -> AnyPoint {
            let mut coordinates = corner.coords().to_vec();
            coordinates[along] += distance;
            AnyPoint::new(&coordinates).unwrap_or(corner)
        };
        AnyRect::new(moved(rect.lo()), moved(rect.hi())).unwrap_or(*rect)
    }

    /// A rectangle without points.
    fn no_points(&mut self) -> AnyRect {
        match self.random.usize(..4) {
            0 => Rect::<3>::EMPTY.into(),
            1 => Rect::<2>::EMPTY.into(),
            _ => Rect::<1>::EMPTY.into(),
        }
    }

    /// A rectangle with sides of at most so many points.
    fn box_of<const D: usize>(&mut self, side: i64) -> AnyRect {
        let lo: [i64; D] = std::array::from_fn(|_| self.random.i64(-3..=3));
        Rect::new(lo, lo.map(|lo| lo + self.random.i64(0..side))).into()
    }

    /// Random rectangles inside of one.
    fn some_rects(&mut self, bounds: &AnyRect, most: usize) -> Vec<AnyRect> {
        (0..self.random.usize(1..=most)).map(|_| self.some_rect(bounds)).collect()
    }

    fn some_rect(&mut self, bounds: &AnyRect) -> AnyRect {
        let (a, b) = (self.some_point(bounds), self.some_point(bounds));
        let ends = |least: bool| -> Vec<i64> {
            let pairs = a.coords().iter().zip(b.coords());
            pairs.map(|(&a, &b)| if least { a.min(b) } else { a.max(b) }).collect()
        };
        let corner = |coords: Vec<i64>| AnyPoint::new(&coords).unwrap_or(a);
        AnyRect::new(corner(ends(true)), corner(ends(false))).unwrap_or(*bounds)
    }

    fn some_point(&mut self, bounds: &AnyRect) -> AnyPoint {
        bounds.delinear(self.random.u64(..bounds.volume().max(1)))
    }

    pub(super) fn new_fields(&mut self, scope: &Scope) -> Action {
        let name = FieldsName(self.number());
        let kinds: Vec<Kind> = (0..self.random.usize(1..=5)).map(|_| self.kind(scope)).collect();
        let limit = kinds.len() + self.random.usize(..4);
        Action::CreateFields(name, kinds, limit)
    }

    fn kind(&mut self, scope: &Scope) -> Kind {
        match self.random.usize(..12) {
            0..=3 => Kind::Long,
            4..=5 => Kind::Short,
            6 => Kind::Pair,
            7 => Kind::Trio,
            8..=9 => Kind::Number(Width::ALL[self.random.usize(..Width::ALL.len())]),
            _ => {
                let volume = self.one_of(&scope.spaces).map_or(8, |space| self.world.spaces[&space].len().max(1));
                Kind::Pointer(volume as i64)
            }
        }
    }

    pub(super) fn new_region(&mut self, scope: &Scope) -> Option<Action> {
        let name = RegionName(self.number());
        if scope.regions().len() > 6 {
            return None;
        }
        Some(Action::CreateRegion(name, self.one_of(&scope.spaces)?, self.one_of(&scope.fields)?))
    }

    /// A scratch region, or the end of one.
    pub(super) fn scratch(&mut self, scope: &Scope) -> Option<Action> {
        let known: Vec<RegionName> = scope.context.scratch.iter().copied().collect();
        if known.len() > 2 || !known.is_empty() && self.random.bool() {
            return self.one_of(&known).map(Action::Drop);
        }
        let name = RegionName(self.number());
        Some(Action::Scratch(name, self.one_of(&scope.spaces)?, self.one_of(&scope.fields)?))
    }

    /// Drops the scratch regions of a task that are left.
    pub(super) fn drop_scratch(&mut self, scope: &mut Scope, block: &mut Block) {
        for name in scope.context.scratch.clone() {
            self.attempt(scope, block, Action::Drop(name));
        }
    }

    pub(super) fn destroy(&mut self, scope: &Scope) -> Option<Action> {
        match self.random.usize(..8) {
            0 => self.one_of(&scope.own_spaces).map(Action::DestroySpace),
            1..=4 => self.one_of(&scope.own).map(Action::DestroyPartition),
            _ => self.one_of(&scope.regions()).map(Action::DestroyRegion),
        }
    }

    pub(super) fn change_fields(&mut self, scope: &Scope) -> Option<Action> {
        let own = if scope.own_fields.is_empty() && self.once_in(4) { &scope.fields } else { &scope.own_fields };
        let fields = self.one_of(own)?;
        if self.random.bool() && !scope.own_fields.is_empty() {
            return Some(Action::AllocateField(fields, self.kind(scope)));
        }
        // Now and then of one that another task has made, which must be refused.
        let any = if self.once_in(4) { self.one_of(&scope.fields) } else { None };
        let fields = any.unwrap_or(fields);
        let count = self.world.fields[&fields].len();
        Some(Action::FreeField(fields, self.random.usize(..count)))
    }

    /// A partition; if it follows from a field that holds one value everywhere, then mostly after a task that writes
    /// others.
    pub(super) fn add_partition(&mut self, scope: &mut Scope, block: &mut Block) {
        let Some(action) = self.new_partition(scope) else { return };
        if let Action::CreatePartition(_, _, split) = &action {
            for column in [split.column(), split.other_column()].into_iter().flatten() {
                self.vary(scope, block, column);
            }
        }
        self.attempt(scope, block, action);
    }

    /// Mostly has a task write a field that holds one value everywhere.
    pub(super) fn vary(&mut self, scope: &mut Scope, block: &mut Block, column: Column) {
        let Ok(cells) = self.world.cells(column.place.region, column.field) else { return };
        let first = cells.values().next().map(|cell| cell.word);
        if cells.values().all(|cell| Some(cell.word) == first) && !self.once_in(4) {
            let launch = self.writer_of(column);
            self.attempt(scope, block, Action::Launch(shared(launch)));
        }
    }

    fn new_partition(&mut self, scope: &Scope) -> Option<Action> {
        let name = PartitionName(self.number());
        if scope.partitions.len() > 12 {
            return None;
        }
        let regions = scope.regions();
        let region = self.one_of(&regions)?;
        let node = self.node_of(scope, region)?;
        if self.depth(node) > 3 {
            return None;
        }
        let split = self.new_split(scope, region, node)?;
        if let Split::Union(a, _) | Split::Intersection(a, _) | Split::Difference(a, _) = &split {
            let parent = self.world.partitions.get(a)?.parent;
            return Some(Action::CreatePartition(name, parent, split));
        }
        Some(Action::CreatePartition(name, node, split))
    }

    fn depth(&self, node: Node) -> usize {
        self.world.parent(node).map_or(0, |parent| 1 + self.depth(parent))
    }

    fn new_split(&mut self, scope: &Scope, region: RegionName, node: Node) -> Option<Split> {
        let count = if self.once_in(15) { self.random.usize(..2) } else { self.random.usize(1..=6) };
        let dim = self.world.dimension(node).ok()?;
        let bounds = self.bounds(node, dim);
        Some(match self.random.usize(..19) {
            0..=2 => Split::Equal(count),
            3 => Split::Weighted((0..count).map(|_| self.random.u64(..5)).collect()),
            4..=5 => {
                let least = if self.once_in(20) { 0 } else { 1 };
                // Of points far apart, tiles of a few rows would be too many.
                let times = if self.hull(node).is_some_and(|hull| hull.volume() > LISTED) { FAR } else { 1 };
                let shape = (0..dim).map(|_| self.random.i64(least..=9) * times).collect();
                let wide = self.random.bool();
                let halo = (0..dim).map(|_| if wide { self.random.i64(0..=2) } else { 0 }).collect();
                Split::Tiles(shape, halo)
            }
            6..=7 => {
                let colors = self.colors();
                let points = colors.points();
                let lists = points.map(|_| self.some_pieces(scope, node, &bounds)).collect();
                Split::Explicit(colors, lists)
            }
            8 => {
                let color = |generator: &mut Self| (generator.random.usize(..=count), generator.some_rect(&bounds));
                let list = (0..self.random.usize(..8)).map(|_| color(self)).collect();
                Split::Coloring(count + 1, list)
            }
            9 => Split::Within(self.one_of(&scope.partitions)?),
            10 => {
                let (a, b) = (self.one_of(&scope.partitions)?, self.one_of(&scope.partitions)?);
                match self.random.usize(..3) {
                    0 => Split::Union(a, b),
                    1 => Split::Intersection(a, b),
                    _ => Split::Difference(a, b),
                }
            }
            11 => {
                let field = self.field(region, is_number)?;
                Split::ByField(Column { place: Place { region, node }, field }, count.max(1))
            }
            12 => {
                // Into the node, by the pointers of any region.
                let sources = self.one_of(&scope.partitions)?;
                let holder = self.one_of(&scope.regions())?;
                let parent = self.world.partitions[&sources].parent;
                let field = self.field(holder, |kind| matches!(kind, Kind::Pointer(_)))?;
                if self.world.root(parent) != Ok(self.world.regions.get(&holder)?.space) {
                    return None;
                }
                Split::Image(region, sources, Column { place: Place { region: holder, node: parent }, field })
            }
            13 => {
                let field = self.field(region, |kind| matches!(kind, Kind::Pointer(_)))?;
                let targets = self.one_of(&scope.partitions)?;
                let owner = self.one_of(&scope.regions())?;
                if self.world.root(self.world.partitions[&targets].parent) != Ok(self.world.regions.get(&owner)?.space)
                {
                    return None;
                }
                Split::Preimage(Column { place: Place { region, node }, field }, owner, targets)
            }
            14 => {
                let field = self.field(region, |kind| is_number(kind) || kind == Kind::Trio)?;
                let ranges = (0..count).map(|_| self.range_of_values()).collect();
                Split::ByRanges(Column { place: Place { region, node }, field }, ranges)
            }
            15..=16 => {
                let sources = self.one_of(&scope.partitions)?;
                let holder = self.one_of(&scope.regions())?;
                let parent = self.world.partitions[&sources].parent;
                if self.world.root(parent) != Ok(self.world.regions.get(&holder)?.space) {
                    return None;
                }
                Split::Named(region, sources, self.link(Place { region: holder, node: parent })?)
            }
            _ => {
                let targets = self.one_of(&scope.partitions)?;
                let owner = self.one_of(&scope.regions())?;
                if self.world.root(self.world.partitions[&targets].parent) != Ok(self.world.regions.get(&owner)?.space)
                {
                    return None;
                }
                Split::Naming(self.link(Place { region, node })?, owner, targets)
            }
        })
    }

    /// Mostly a range of small numbers, as many values are; now and then an empty one, or of nearly all.
    fn range_of_values(&mut self) -> Range<i128> {
        let first = if self.once_in(6) { i128::from(self.random.i64(..)) * 3 } else { self.random.i64(-1..8).into() };
        let length: i128 = if self.once_in(3) { self.random.i64(..).into() } else { self.random.i64(-1..6).into() };
        first..first + length
    }

    /// How rows of a place may name others; now and then by a field that does not.
    fn link(&mut self, place: Place) -> Option<Link> {
        let meaning = self.random.usize(..9);
        let suits = |kind| match meaning {
            0..=3 => kind == Kind::Pair,
            4 => true,
            _ => is_number(kind),
        };
        let field = self.field(place.region, suits)?;
        let meaning = match meaning {
            // Pairs are rare.
            0..=3 => Meaning::Ranges,
            4..=5 => Meaning::Rows,
            6..=7 => Meaning::Firsts(self.field(place.region, suits)?),
            _ => Meaning::Offsets,
        };
        Some(Link { column: Column { place, field }, meaning })
    }

    /// The box around the points of a node, or, where they are far apart, around those near one of them.
    fn bounds(&mut self, node: Node, dim: usize) -> AnyRect {
        let hull = self.hull(node).map(|hull| {
            if hull.volume() <= LISTED {
                return hull;
            }
            let points: Vec<AnyPoint> =
                self.world.points(node).map_or_else(|_| Vec::new(), |points| points.iter().copied().collect());
            let one = points[self.random.usize(..points.len())];
            let is_near = |point: &&AnyPoint| point.coords().iter().zip(one.coords()).all(|(a, b)| (a - b).abs() <= 7);
            hull_of(points.iter().filter(is_near)).unwrap_or(hull)
        });
        hull.unwrap_or_else(|| match dim {
            1 => Rect::from_shape([1]).into(),
            2 => Rect::from_shape([1, 1]).into(),
            _ => Rect::from_shape([1, 1, 1]).into(),
        })
    }

    fn hull(&self, node: Node) -> Option<AnyRect> {
        hull_of(self.world.points(node).ok()?.iter())
    }

    fn colors(&mut self) -> AnyRect {
        if self.once_in(4) {
            let lo = [self.random.i64(-1..=1), self.random.i64(-1..=1)];
            return Rect::new(lo, [lo[0] + self.random.i64(0..=2), lo[1] + self.random.i64(0..=1)]).into();
        }
        Rect::<1>::from(0..self.random.i64(1..=5)).into()
    }

    /// Some points of a node, as rectangles; now and then more than it has.
    fn some_pieces(&mut self, _scope: &Scope, node: Node, bounds: &AnyRect) -> Vec<AnyRect> {
        if self.once_in(40) {
            return self.some_rects(bounds, 3);
        }
        let Ok(points) = self.world.points(node).cloned() else { return Vec::new() };
        match self.random.usize(..4) {
            0 => Vec::new(),
            1 => {
                let some = points.iter().filter(|_| self.random.usize(..4) == 0);
                some.filter_map(|&point| AnyRect::new(point, point).ok()).collect()
            }
            _ => {
                let around = self.some_rect(bounds);
                let inside = points.iter().filter(|&&point| around.contains(point));
                inside.filter_map(|&point| AnyRect::new(point, point).ok()).collect()
            }
        }
    }

    /// A field of a region that exists and holds something suitable.
    pub(super) fn field(&mut self, region: RegionName, suits: impl Fn(Kind) -> bool) -> Option<usize> {
        let kinds = self.world.kinds(region).ok()?;
        let fields: Vec<usize> =
            kinds.iter().enumerate().filter(|(_, kind)| kind.is_some_and(&suits)).map(|(field, _)| field).collect();
        self.one_of(&fields)
    }
}

fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Long | Kind::Short | Kind::Number(_))
}

fn hull_of<'a>(points: impl Iterator<Item = &'a AnyPoint>) -> Option<AnyRect> {
    points.fold(None, |hull: Option<AnyRect>, &point| {
        let one = AnyRect::new(point, point).ok()?;
        Some(hull.and_then(|hull| hull.hull(&one).ok()).unwrap_or(one))
    })
}

/// No points, of the dimension of a point.
fn nothing(point: AnyPoint) -> AnyRect {
    let before: Vec<i64> = point.coords().iter().map(|at| at - 1).collect();
    AnyPoint::new(&before).and_then(|before| AnyRect::new(point, before)).unwrap_or(AnyRect::from(Rect::<1>::EMPTY))
}
