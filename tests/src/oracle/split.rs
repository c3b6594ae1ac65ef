//! Partitions, computed on plain sets of points.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use maniple::{AnyPoint, AnyRect, Rect};

use super::{Context, Pieces, Points, Trouble, World, known};
use crate::program::{Column, Link, Meaning, Node, PartitionName, RegionName, Right, Split};
use crate::value::Kind;

fn refuse<T>(why: &str) -> Result<T, Trouble> {
    Err(Trouble::Refused(why.to_owned()))
}

fn meaningless<T>(why: &str) -> Result<T, Trouble> {
    Err(Trouble::Meaningless(why.to_owned()))
}

fn numbers(count: usize) -> AnyRect {
    Rect::<1>::from(0..count as i64).into()
}

impl World {
    pub(super) fn split(&self, context: &Context, parent: Node, split: &Split) -> Result<Pieces, Trouble> {
        let points = self.points(parent)?;
        self.check_dimensions(parent, split)?;
        let (colors, pieces) = match split {
            Split::Equal(0) => return refuse("no pieces"),
            Split::Equal(count) => (numbers(*count), weighted(points, &vec![1; *count])),
            Split::Weighted(weights) if weights.iter().sum::<u64>() == 0 => return refuse("no weights"),
            Split::Weighted(weights) => (numbers(weights.len()), weighted(points, weights)),
            Split::Tiles(shape, halo) => tiles(points, self.dimension(parent)?, shape, halo)?,
            Split::Explicit(colors, lists) => {
                if colors.volume() != lists.len() as u64 {
                    return refuse("as many pieces as colors");
                }
                let union = |rects: &Vec<AnyRect>| rects.iter().flat_map(AnyRect::points).collect();
                (*colors, lists.iter().map(union).collect())
            }
            Split::Coloring(count, list) => (numbers(*count), coloring(*count, list)?),
            Split::Within(other) => {
                let other = known(self.partitions.get(other), other)?;
                let within = |piece: &Points| piece.intersection(points).copied().collect();
                (other.colors, other.pieces.iter().map(within).collect())
            }
            Split::Union(a, b) => self.combine(parent, *a, *b, |a, b| a | b)?,
            Split::Intersection(a, b) => self.combine(parent, *a, *b, |a, b| a & b)?,
            Split::Difference(a, b) => self.combine(parent, *a, *b, |a, b| a - b)?,
            Split::ByField(column, count) => self.by_field(context, parent, *column, *count)?,
            Split::Image(region, sources, column) => self.image(context, parent, *region, *sources, *column)?,
            Split::Preimage(column, _, targets) => self.preimage(context, parent, *column, *targets)?,
            Split::ByRanges(column, ranges) => self.by_ranges(context, parent, *column, ranges)?,
            Split::Named(region, sources, link) => self.named(context, parent, *region, *sources, *link)?,
            Split::Naming(link, _, targets) => self.naming(context, parent, *link, *targets)?,
        };
        match split {
            Split::Explicit(..) => self.check_node_alive(parent)?,
            // A partition of a region is only a name; those that follow from data look at that.
            split if split.column().is_some() => {}
            // The region that is made up for it.
            _ => self.check_node_alive(Node::Root(self.root(parent)?))?,
        }
        if !pieces.iter().all(|piece| piece.is_subset(points)) {
            return refuse("a piece sticks out");
        }
        let pieces = pieces.into_iter().map(Arc::new).collect();
        Ok(Pieces { parent, colors, pieces, destroyed: false })
    }

    /// A split of other dimensions than the space has cannot be written.
    fn check_dimensions(&self, parent: Node, split: &Split) -> Result<(), Trouble> {
        let dim = self.dimension(parent)?;
        let of = |name: &PartitionName| self.dimension(known(self.partitions.get(name), name)?.parent);
        let same = match split {
            Split::Explicit(_, lists) => lists.iter().flatten().all(|rect| rect.dim() == dim),
            Split::Coloring(_, list) => list.iter().all(|(_, rect)| rect.dim() == dim),
            Split::Within(a) => of(a)? == dim,
            Split::Union(a, b) | Split::Intersection(a, b) | Split::Difference(a, b) => of(a)? == dim && of(b)? == dim,
            _ => true,
        };
        if same { Ok(()) } else { meaningless("pieces of another dimension") }
    }

    fn combine(
        &self,
        parent: Node,
        a: PartitionName,
        b: PartitionName,
        operation: impl Fn(&BTreeSet<AnyPoint>, &BTreeSet<AnyPoint>) -> BTreeSet<AnyPoint>,
    ) -> Result<(AnyRect, Vec<BTreeSet<AnyPoint>>), Trouble> {
        let (a, b) = (known(self.partitions.get(&a), &a)?, known(self.partitions.get(&b), &b)?);
        if a.parent != parent {
            return meaningless("a combination belongs to the parent of its first");
        }
        if a.pieces.len() != b.pieces.len() {
            return refuse("different colors");
        }
        let pieces = a.pieces.iter().zip(&b.pieces).map(|(a, b)| operation(a, b));
        Ok((a.colors, pieces.collect()))
    }

    fn by_field(
        &self,
        context: &Context,
        parent: Node,
        column: Column,
        count: usize,
    ) -> Result<(AnyRect, Vec<BTreeSet<AnyPoint>>), Trouble> {
        if column.place.node != parent {
            return meaningless("a field of other rows");
        }
        if count == 0 {
            return meaningless("no colors");
        }
        let kind = self.kind(column.place.region, column.field)?;
        self.check_one(context, column, Right::Read)?;
        let mut pieces = vec![BTreeSet::new(); count];
        for (point, word) in self.sound_words(context, column)? {
            let Some(color) = kind.number(word) else { return meaningless("a field that holds no colors") };
            if let Some(piece) = usize::try_from(color).ok().and_then(|color| pieces.get_mut(color)) {
                piece.insert(point);
            }
        }
        Ok((numbers(count), pieces))
    }

    fn pointers(&self, context: &Context, column: Column) -> Result<BTreeMap<AnyPoint, AnyPoint>, Trouble> {
        if !matches!(self.kind(column.place.region, column.field)?, Kind::Pointer(_)) {
            return meaningless("a field that holds no pointers");
        }
        self.check_one(context, column, Right::Read)?;
        let words = self.sound_words(context, column)?.into_iter();
        Ok(words.map(|(point, word)| (point, AnyPoint::from(word as i64))).collect())
    }

    fn image(
        &self,
        context: &Context,
        parent: Node,
        region: RegionName,
        sources: PartitionName,
        column: Column,
    ) -> Result<(AnyRect, Vec<BTreeSet<AnyPoint>>), Trouble> {
        let sources = known(self.partitions.get(&sources), &sources)?;
        self.check_dimension(parent, region, context)?;
        if column.place.node != sources.parent {
            return meaningless("pointers of other rows");
        }
        let (pointers, targets) = (self.pointers(context, column)?, self.points(parent)?);
        let image = |piece: &Points| -> BTreeSet<AnyPoint> {
            piece.iter().map(|point| pointers[point]).filter(|target| targets.contains(target)).collect()
        };
        Ok((sources.colors, sources.pieces.iter().map(image).collect()))
    }

    fn preimage(
        &self,
        context: &Context,
        parent: Node,
        column: Column,
        targets: PartitionName,
    ) -> Result<(AnyRect, Vec<BTreeSet<AnyPoint>>), Trouble> {
        let targets = known(self.partitions.get(&targets), &targets)?;
        if column.place.node != parent || self.dimension(targets.parent)? != 1 {
            return meaningless("pointers of other rows");
        }
        let pointers = self.pointers(context, column)?;
        let leads_into = |piece: &Points| {
            let leading = pointers.iter().filter(|(_, target)| piece.contains(target));
            leading.map(|(&point, _)| point).collect()
        };
        Ok((targets.colors, targets.pieces.iter().map(leads_into).collect()))
    }

    fn by_ranges(
        &self,
        context: &Context,
        parent: Node,
        column: Column,
        ranges: &[Range<i128>],
    ) -> Result<(AnyRect, Vec<BTreeSet<AnyPoint>>), Trouble> {
        if column.place.node != parent {
            return meaningless("a field of other rows");
        }
        let values = self.numbers(context, column)?;
        let within = |range: &Range<i128>| {
            let within = values.iter().filter(|(_, value)| range.contains(value));
            within.map(|(&point, _)| point).collect()
        };
        if ranges.is_empty() {
            return refuse("no pieces");
        }
        Ok((numbers(ranges.len()), ranges.iter().map(within).collect()))
    }

    /// The integers of a column.
    fn numbers(&self, context: &Context, column: Column) -> Result<BTreeMap<AnyPoint, i128>, Trouble> {
        let kind = self.kind(column.place.region, column.field)?;
        if kind.number(0).is_none() {
            return refuse("a field of no integers");
        }
        self.check_one(context, column, Right::Read)?;
        let words = self.sound_words(context, column)?.into_iter();
        Ok(words.filter_map(|(point, word)| Some((point, kind.number(word)?))).collect())
    }

    /// The rows that each row of a place names.
    fn links(
        &self,
        context: &Context,
        Link { column, meaning }: Link,
    ) -> Result<BTreeMap<AnyPoint, Range<i128>>, Trouble> {
        let kind = self.kind(column.place.region, column.field)?;
        if meaning == Meaning::Ranges {
            if kind != Kind::Pair {
                return refuse("a field of no pairs");
            }
            self.check_one(context, column, Right::Read)?;
            let words = self.sound_words(context, column)?.into_iter();
            let range = |word: u64| i128::from(word as u32)..i128::from(word >> 32);
            return Ok(words.map(|(point, word)| (point, range(word))).collect());
        }
        let first = self.numbers(context, column)?;
        let named =
            |(&point, &number): (&AnyPoint, &i128), end: Option<&i128>| (point, number..end.map_or(number, |end| *end));
        Ok(match meaning {
            Meaning::Firsts(end) => {
                let end = self.numbers(context, Column { field: end, ..column })?;
                first.iter().map(|first| named(first, end.get(first.0))).collect()
            }
            Meaning::Offsets => first.iter().map(|offset| named(offset, first.get(&next(*offset.0)))).collect(),
            _ => first.iter().map(|(&point, &number)| (point, number..number + 1)).collect(),
        })
    }

    fn named(
        &self,
        context: &Context,
        parent: Node,
        region: RegionName,
        sources: PartitionName,
        link: Link,
    ) -> Result<(AnyRect, Vec<BTreeSet<AnyPoint>>), Trouble> {
        let sources = known(self.partitions.get(&sources), &sources)?;
        self.check_region(context, region)?;
        if self.root(parent)? != self.regions[&region].space || link.column.place.node != sources.parent {
            return meaningless("numbers of other rows");
        }
        if self.dimension(parent)? != 1 {
            return refuse("numbers of rows of several dimensions");
        }
        let (links, targets) = (self.links(context, link)?, self.points(parent)?);
        let image = |piece: &Points| -> BTreeSet<AnyPoint> {
            let is_named = |target: &&AnyPoint| piece.iter().any(|point| links[point].contains(&row(target)));
            targets.iter().filter(is_named).copied().collect()
        };
        Ok((sources.colors, sources.pieces.iter().map(image).collect()))
    }

    fn naming(
        &self,
        context: &Context,
        parent: Node,
        link: Link,
        targets: PartitionName,
    ) -> Result<(AnyRect, Vec<BTreeSet<AnyPoint>>), Trouble> {
        let targets = known(self.partitions.get(&targets), &targets)?;
        if link.column.place.node != parent {
            return meaningless("numbers of other rows");
        }
        if self.dimension(targets.parent)? != 1 {
            return refuse("numbers of rows of several dimensions");
        }
        let links = self.links(context, link)?;
        let names = |piece: &Points| {
            let naming = links.iter().filter(|(_, rows)| piece.iter().any(|target| rows.contains(&row(target))));
            naming.map(|(&point, _)| point).collect()
        };
        Ok((targets.colors, targets.pieces.iter().map(names).collect()))
    }

    /// Pointers lead to rows of one dimension.
    fn check_dimension(&self, node: Node, region: RegionName, context: &Context) -> Result<(), Trouble> {
        self.check_region(context, region)?;
        if self.dimension(node)? != 1 || self.root(node)? != self.regions[&region].space {
            return meaningless("pointers into other rows");
        }
        Ok(())
    }
}

/// The number of a row of a region of one dimension.
fn row(point: &AnyPoint) -> i128 {
    point[0].into()
}

/// The next point along the last dimension.
fn next(point: AnyPoint) -> AnyPoint {
    let mut coordinates = point.coords().to_vec();
    coordinates.last_mut().into_iter().for_each(|last| *last += 1);
    AnyPoint::new(&coordinates).unwrap_or(point)
}

/// Consecutive points in proportion to weights.
fn weighted(points: &Points, weights: &[u64]) -> Vec<BTreeSet<AnyPoint>> {
    let total: u64 = weights.iter().sum();
    let mut all = points.iter().copied();
    let (mut sum, mut dealt) = (0, 0);
    let piece = |weight: &u64| {
        sum += weight;
        let end = points.len() as u64 * sum / total;
        let piece = all.by_ref().take((end - dealt) as usize).collect();
        dealt = end;
        piece
    };
    weights.iter().map(piece).collect()
}

/// The tiles of the grid that starts at the lowest corner of the points' bounds.
fn tiles(
    points: &Points,
    dim: usize,
    shape: &[i64],
    halo: &[i64],
) -> Result<(AnyRect, Vec<BTreeSet<AnyPoint>>), Trouble> {
    if shape.len() != dim || halo.len() != dim {
        return meaningless("a tile of another dimension");
    }
    if shape.iter().any(|&side| side < 1) || halo.iter().any(|&side| side < 0) {
        return refuse("no such tiles");
    }
    let least = |d: usize| points.iter().map(|point| point.coords()[d]).min().unwrap_or(0);
    let greatest = |d: usize| points.iter().map(|point| point.coords()[d]).max().unwrap_or(0);
    let last: Vec<i64> = (0..dim).map(|d| (greatest(d) - least(d)) / shape[d]).collect();
    let origin = AnyPoint::new(&vec![0; dim]).map_err(|error| Trouble::Meaningless(error.to_string()))?;
    let last = AnyPoint::new(&last).map_err(|error| Trouble::Meaningless(error.to_string()))?;
    let colors = AnyRect::new(origin, last).map_err(|error| Trouble::Meaningless(error.to_string()))?;
    let is_inside = |color: &AnyPoint, point: &AnyPoint| {
        (0..dim).all(|d| {
            let lo = least(d) + color.coords()[d] * shape[d];
            let hi = (lo + shape[d] - 1).min(greatest(d));
            (lo - halo[d]..=hi + halo[d]).contains(&point.coords()[d])
        })
    };
    let piece = |color: AnyPoint| points.iter().filter(|point| is_inside(&color, point)).copied().collect();
    Ok((colors, colors.points().map(piece).collect()))
}

fn coloring(count: usize, list: &[(usize, AnyRect)]) -> Result<Vec<BTreeSet<AnyPoint>>, Trouble> {
    let mut pieces = vec![BTreeSet::new(); count];
    if count == 0 {
        return refuse("no colors");
    }
    for (color, rect) in list {
        let Some(piece) = pieces.get_mut(*color) else { return refuse("no such color") };
        piece.extend(rect.points());
    }
    Ok(pieces)
}
