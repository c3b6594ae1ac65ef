//! The holders of the parts of one tensor.

use std::collections::BTreeMap;

use super::message::ring;
use crate::machine::Machine;
use crate::placement::{Piece, Placed};
use crate::rectangle::Rectangle;

/// A part of a tensor, and the processors on which it is placed, in order.
pub(super) struct Home {
    pub(super) piece: Piece,
    /// The smallest rectangle with all of it, if it has elements: most homes are told apart by it.
    hull: Option<Rectangle>,
    pub(super) processors: Vec<usize>,
}

/// The homes of a tensor, on which it is placed. Homes are disjoint, and together have all its elements.
pub(super) struct Homes {
    pub(super) all: Vec<Home>,
    /// The home of each processor, if it has one.
    of: Vec<Option<usize>>,
}

impl Homes {
    pub(super) fn new(placed: &Placed) -> Self {
        let mut all = Vec::<Home>::new();
        let mut of = Vec::new();
        let mut known = BTreeMap::new();
        for (processor, point) in placed.machine().points().enumerate() {
            let home = placed.color(&point).map(|color| {
                *known.entry(color).or_insert_with(|| {
                    let piece = placed.piece(&point);
                    let hull = piece.rectangles().reduce(|first, second| first.hull(&second));
                    all.push(Home { piece, hull, processors: Vec::new() });
                    all.len() - 1
                })
            });
            if let Some(home) = home {
                all[home].processors.push(processor);
            }
            of.push(home);
        }
        Self { all, of }
    }

    /// The piece that is placed on a processor.
    pub(super) fn piece(&self, processor: usize) -> Option<&Piece> {
        Some(&self.all[self.of[processor]?].piece)
    }

    /// How many elements are placed on a processor.
    pub(super) fn volume(&self, processor: usize) -> i64 {
        self.piece(processor).map_or(0, |piece| piece.volume() as i64)
    }

    /// The number of elements of a rectangle that are not placed on a processor.
    pub(super) fn elsewhere(&self, processor: usize, rectangle: &Rectangle) -> i64 {
        let here = self.piece(processor).map_or(0, |piece| piece.within(rectangle).volume() as i64);
        rectangle.volume() - here
    }

    /// The parts of a rectangle, each with its home; those without a home elsewhere are left out.
    pub(super) fn parts<'a>(
        &'a self,
        processor: usize,
        rectangle: &'a Rectangle,
    ) -> impl Iterator<Item = (&'a Home, Rectangle)> + 'a {
        let others = self.all.iter().enumerate().filter(move |(home, _)| self.of[processor] != Some(*home));
        others.flat_map(move |(_, home)| home.within(rectangle).into_iter().map(move |part| (home, part)))
    }
}

impl Home {
    /// The parts of a rectangle that are here.
    pub(super) fn within(&self, rectangle: &Rectangle) -> Vec<Rectangle> {
        match &self.hull {
            Some(hull) if hull.overlaps(rectangle) => self.piece.within(rectangle).rectangles().collect(),
            _ => Vec::new(),
        }
    }
}

/// For each processor all others, the nearest first; those that are equally near are together.
pub(super) fn nearest(machine: &Machine) -> Vec<Vec<Vec<usize>>> {
    let size = machine.size();
    let order = |from: usize| {
        let others = (0..size).filter(|to| *to != from);
        let mut near: Vec<_> = others.map(|to| (hops(machine, from, to), to)).collect();
        near.sort_unstable();
        near.chunk_by(|first, second| first.0 == second.0)
            .map(|equal| equal.iter().map(|(_, to)| *to).collect())
            .collect()
    };
    (0..size).map(order).collect()
}

/// How far two processors are apart: the less, the nearer. Hops of an outer level count more than all of inner ones.
fn hops(machine: &Machine, mut from: usize, mut to: usize) -> u128 {
    let (mut sum, mut weight) = (0, 1);
    for grid in machine.levels().iter().rev() {
        for &extent in grid.extents().iter().rev() {
            sum += ring(from, to, extent) as u128 * weight;
            (from, to) = (from / extent, to / extent);
        }
        weight = weight.saturating_mul(grid.extents().iter().sum::<usize>() as u128 + 1);
    }
    sum
}

/// Removes `part` from `rectangles`.
pub(super) fn without(rectangles: &mut Vec<Rectangle>, part: &Rectangle) {
    if rectangles.iter().any(|rectangle| rectangle.overlaps(part)) {
        *rectangles = rectangles.iter().flat_map(|rectangle| rectangle.minus(part)).collect();
    }
}
