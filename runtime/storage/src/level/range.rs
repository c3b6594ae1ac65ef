//! Range levels: the coordinates along a diagonal, whose ends follow from the coordinate of the level above. Nothing is
//! stored; each parent has a position for every coordinate.

use std::ops::Range as Bounds;

use super::dense::{has_all_slots, place_all, slot};
use super::error::LevelError;
use super::kind::{Assemble, Capabilities, Entries, LevelData, LevelKind, Locate, Place, Stored};

/// The kind of range levels.
pub struct Range;

impl LevelKind for Range {
    fn letter(&self) -> &'static str {
        "R"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            full: true,
            ordered: true,
            unique: true,
            branchless: false,
            locate: Locate::Direct,
            assemble: Assemble::Insert,
            place: Place::Diagonal,
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

    fn visit(&self, level: &LevelData, parent: usize, along: i64, visit: &mut dyn FnMut(i64, usize)) {
        bounds(level, along).for_each(|coordinate| visit(coordinate, slot(level, parent, coordinate)));
    }

    fn locate(&self, level: &LevelData, parent: usize, coordinate: i64, along: i64, visit: &mut dyn FnMut(usize)) {
        if bounds(level, along).contains(&coordinate) {
            visit(slot(level, parent, coordinate));
        }
    }

    fn check(&self, level: &LevelData) -> Result<(), LevelError> {
        has_all_slots(level)
    }
}

/// The coordinates on the line, within bounds.
fn bounds(level: &LevelData, along: i64) -> Bounds<i64> {
    let Some(line) = &level.line else { return level.bounds.clone() };
    let shift = line.offset * along;
    // From sign * c + shift in first..end.
    let (first, end) = match line.sign {
        1 => (line.bounds.start - shift, line.bounds.end - shift),
        _ => (shift - line.bounds.end + 1, shift - line.bounds.start + 1),
    };
    first.max(level.bounds.start)..end.min(level.bounds.end)
}
