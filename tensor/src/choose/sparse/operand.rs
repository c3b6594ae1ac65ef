//! Operands in the format in which loops use them, with the statistics that are known of them.

use crate::element::ElementType;
use crate::format::{Format, Level};
use crate::storage::Statistics;

/// An operand, or a workspace.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    /// Of which tensor, as it is given.
    pub name: String,
    pub format: Format,
    pub extents: Vec<f64>,
    /// How many positions each level has.
    pub positions: Vec<f64>,
    /// The bytes of all that is stored.
    pub bytes: f64,
    /// The most entries that a coordinate of the outermost level has, if one dimension is all that is there.
    pub longest: f64,
    /// Of a matrix in two levels: how many entries the coordinate of the first level has that an entry has along each
    /// dimension, on average over entries: more than [`children`](Self::children) says, if some have many.
    pub reached: Vec<f64>,
    /// Whether entries lie near to one another along each row, so that what they name in other tensors does too.
    pub is_local: bool,
}

/// Matrices whose entries are on no more diagonals than this name elements near to one another.
const LOCAL: usize = 1 << 12;

/// A format as loops over a tensor visit it: all places of a bitmap.
pub(super) fn visited(format: &Format) -> Format {
    let visited = |level: &Level| if *level == Level::Bitmap { Level::Dense } else { *level };
    let levels: Vec<Level> = format.levels().iter().map(visited).collect();
    let is_other = format.is_plain() && levels != format.levels();
    is_other.then(|| Format::new(levels, format.order()).ok()).flatten().unwrap_or_else(|| format.clone())
}

impl Operand {
    /// An operand of which this is known, a dense one, if nothing is; stored as it was when that was found out, or to
    /// be converted.
    pub fn new(
        name: &str,
        format: &Format,
        extents: &[i64],
        element: ElementType,
        known: Option<&Statistics>,
        is_converted: bool,
    ) -> Self {
        let extents: Vec<f64> = extents.iter().map(|&extent| extent as f64).collect();
        let element = element.size() as f64;
        // Of diagonals, all places are entries.
        let seen = format.by_dimensions().map(|(seen, _)| seen).filter(|_| !format.is_plain());
        let places = known.filter(|known| seen.is_some() && known.levels.len() == format.levels().len());
        let all_places = places.and_then(|known| known.levels.last()).map(|last| last.positions as f64);
        let format = seen.as_ref().unwrap_or(format);
        let order: Vec<usize> = if format.is_plain() { format.order().to_vec() } else { (0..extents.len()).collect() };
        let entries = known.map_or_else(|| extents.iter().product(), |known| known.entries as f64);
        let entries = all_places.unwrap_or(entries).max(entries);
        let known_of = |mode: usize| known.and_then(|known| known.modes.get(mode));
        let used = |mode: usize| known_of(mode).map_or(extents[mode], |known| known.used as f64);
        let own = known.filter(|known| !is_converted && seen.is_none() && known.levels.len() == format.rank());
        let mut positions = Vec::new();
        let mut bytes = 0.0;
        for (level, kind) in format.levels().iter().enumerate() {
            let (mode, above) = (order[level], positions.last().copied().unwrap_or(1.0));
            let is_last = level + 1 == format.rank();
            let found: f64 = match kind {
                _ if own.is_some() => own.map_or(0.0, |known| known.levels[level].positions as f64),
                Level::Dense => above * extents[mode],
                _ if is_last => entries,
                // Of a conversion that is still to be made: no more than there can be.
                _ => entries.min(above * used(mode)),
            };
            positions.push(found);
            if *kind != Level::Dense {
                bytes += 4.0 * (above + found);
            }
        }
        bytes += element * positions.last().copied().unwrap_or(1.0);
        let longest = order.first().and_then(|&mode| known_of(mode)).map_or(0.0, |known| known.most as f64);
        let is_local = known.and_then(|known| known.diagonals).is_some_and(|found| found.used <= LOCAL);
        let reached = match (known, &order[..]) {
            (Some(known), &[first, _]) if format.is_plain() => {
                known.pairs.iter().map(|along| along[first] / entries.max(1.0)).collect()
            }
            _ => Vec::new(),
        };
        let name = name.to_owned();
        Self { name, format: format.clone(), extents, positions, bytes, longest, reached, is_local }
    }

    /// How many positions there are below one of the level above.
    pub fn children(&self, level: usize) -> f64 {
        let above = if level == 0 { 1.0 } else { self.positions[level - 1] };
        self.positions[level] / above.max(1.0)
    }

    /// The mode of a level.
    pub fn mode(&self, level: usize) -> usize {
        if self.format.is_plain() { self.format.order()[level] } else { level }
    }
}
