//! Dense levels: all coordinates, one after the other. Nothing is stored.

use std::ops::Range;

use super::error::LevelError;
use super::kind::{Assemble, Capabilities, Entries, LevelData, LevelKind, Locate, Place, Stored};
use crate::parallel::{chunks, each, split};

/// The kind of dense levels.
pub struct Dense;

impl LevelKind for Dense {
    fn letter(&self) -> &'static str {
        "D"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            full: true,
            ordered: true,
            unique: true,
            branchless: false,
            locate: Locate::Direct,
            assemble: Assemble::Insert,
            place: Place::Anywhere,
            has_positions: false,
            has_coordinates: false,
        }
    }

    fn components(&self) -> &'static [Stored] {
        &[]
    }

    fn assemble(&self, level: &mut LevelData, entries: Entries<'_>) -> Result<(), LevelError> {
        level.positions = level.positions_of(level.extent())?;
        place_all(level, entries);
        Ok(())
    }

    fn visit(&self, level: &LevelData, parent: usize, _: i64, visit: &mut dyn FnMut(i64, usize)) {
        let first = parent * level.extent();
        level.bounds.clone().zip(first..).for_each(|(coordinate, position)| visit(coordinate, position));
    }

    fn visit_within(
        &self,
        level: &LevelData,
        parent: usize,
        _: i64,
        positions: Range<usize>,
        visit: &mut dyn FnMut(i64, usize),
    ) {
        let first = parent * level.extent();
        for position in positions.start.max(first)..positions.end.min(first + level.extent()) {
            visit(level.bounds.start + (position - first) as i64, position);
        }
    }

    fn parents(&self, level: &LevelData, positions: Range<usize>) -> Range<usize> {
        match level.extent() {
            0 => 0..0,
            extent => positions.start / extent..positions.end.div_ceil(extent),
        }
    }

    fn locate(&self, level: &LevelData, parent: usize, coordinate: i64, _: i64, visit: &mut dyn FnMut(usize)) {
        if level.bounds.contains(&coordinate) {
            visit(slot(level, parent, coordinate));
        }
    }

    fn check(&self, level: &LevelData) -> Result<(), LevelError> {
        has_all_slots(level)
    }
}

/// The position of a coordinate where each parent has one for every coordinate.
pub(super) fn slot(level: &LevelData, parent: usize, coordinate: i64) -> usize {
    parent * level.extent() + (coordinate - level.bounds.start) as usize
}

/// Gives each entry the [slot] of its coordinate.
pub(super) fn place_all(level: &LevelData, entries: Entries<'_>) {
    let Entries { coordinates, positions, team, .. } = entries;
    let chunks = chunks(coordinates.len(), team);
    let parts = split(positions, chunks.iter().map(Range::len));
    each(team, chunks.into_iter().zip(parts).collect(), |_: &mut (), (chunk, positions)| {
        for (position, coordinate) in positions.iter_mut().zip(&coordinates[chunk]) {
            *position = slot(level, *position, *coordinate);
        }
    });
}

/// Checks that there is a position for every coordinate of every parent.
pub(super) fn has_all_slots(level: &LevelData) -> Result<(), LevelError> {
    let expected = level.positions_of(level.extent())?;
    if level.positions == expected {
        return Ok(());
    }
    let (expected, found) = (format!("{expected} positions"), level.positions.to_string());
    Err(LevelError::Broken { component: "extent", place: 0, expected, found })
}
