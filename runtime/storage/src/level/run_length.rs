//! Run-length levels: every coordinate is there, and neighbours with the same element share a position.
//!
//! `pos` says where the runs of each parent begin, as in compressed levels, and `ends` where in the coordinates each
//! run ends (excluded). Coordinates that are not there are runs with the fill value.

use super::array::{Array, filled};
use super::compressed::{check_segments, first_not_below, positions, segment};
use super::error::LevelError;
use super::kind::{Assemble, Capabilities, Component, Entries, LevelData, LevelKind, Locate, Per, Place, Stored};

/// The kind of run-length levels.
pub struct RunLength;

impl LevelKind for RunLength {
    fn letter(&self) -> &'static str {
        "L"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            full: true,
            ordered: true,
            unique: true,
            branchless: false,
            locate: Locate::Search,
            assemble: Assemble::Append,
            place: Place::Last,
            has_positions: true,
            has_coordinates: true,
        }
    }

    fn components(&self) -> &'static [Stored] {
        &[Stored { name: "pos", per: Per::Offset }, Stored { name: "ends", per: Per::Position }]
    }

    fn assemble(&self, level: &mut LevelData, entries: Entries<'_>) -> Result<(), LevelError> {
        let extent = u128::from(level.bounds.end.abs_diff(level.bounds.start));
        if level.parents as u128 * extent >= MOST_COORDINATES {
            return Err(LevelError::Large { parents: level.parents, extent });
        }
        // For each parent, how far its runs reach, and how many there are.
        let mut reached = filled(level.bounds.start, level.parents)?;
        let mut starts = filled(0_usize, level.parents + 1)?;
        for entry in 0..entries.coordinates.len() {
            let (parent, coordinate) = (entries.positions[entry], entries.coordinates[entry]);
            let extends = entry > 0 && entries.positions[entry - 1] == parent && extends(&entries, entry);
            starts[parent + 1] += usize::from(coordinate > reached[parent]) + usize::from(!extends);
            reached[parent] = coordinate + 1;
        }
        for parent in 0..level.parents {
            starts[parent + 1] += starts[parent] + usize::from(reached[parent] < level.bounds.end);
        }
        let pos = positions(level, &starts)?;
        let mut ends = Array::filled(level.coordinate_width(true)?, level.bounds.end, starts[level.parents])?;
        reached.fill(level.bounds.start);
        let mut before = usize::MAX;
        for entry in 0..entries.coordinates.len() {
            let (parent, coordinate) = (entries.positions[entry], entries.coordinates[entry]);
            let free = &mut starts[parent];
            if coordinate > reached[parent] {
                ends.set(*free, coordinate);
                *free += 1;
            }
            *free += usize::from(before != parent || !extends(&entries, entry));
            ends.set(*free - 1, coordinate + 1);
            (before, reached[parent]) = (parent, coordinate + 1);
            entries.positions[entry] = *free - 1;
        }
        level.positions = ends.len();
        level.components = vec![Component { name: "pos", array: pos }, Component { name: "ends", array: ends }];
        Ok(())
    }

    fn visit(&self, level: &LevelData, parent: usize, _: i64, visit: &mut dyn FnMut(i64, usize)) {
        let ends = level.component("ends");
        let mut first = level.bounds.start;
        for position in segment(level, parent) {
            let end = ends.get(position);
            (first..end).for_each(|coordinate| visit(coordinate, position));
            first = end;
        }
    }

    fn locate(&self, level: &LevelData, parent: usize, coordinate: i64, _: i64, visit: &mut dyn FnMut(usize)) {
        if level.bounds.contains(&coordinate) {
            visit(first_not_below(level.component("ends"), segment(level, parent), coordinate + 1));
        }
    }

    fn check(&self, level: &LevelData) -> Result<(), LevelError> {
        check_segments(level, level.positions)?;
        let ends = level.expect("ends", level.positions)?;
        for parent in 0..level.parents {
            let mut first = level.bounds.start;
            for position in segment(level, parent) {
                if ends.get(position) <= first || ends.get(position) > level.bounds.end {
                    let expected = format!("ends that ascend from {} to {}", first + 1, level.bounds.end);
                    let found = ends.get(position).to_string();
                    return Err(LevelError::Broken { component: "ends", place: position, expected, found });
                }
                first = ends.get(position);
            }
            if first < level.bounds.end {
                let (expected, found) = (format!("runs up to {}", level.bounds.end), format!("runs up to {first}"));
                return Err(LevelError::Broken { component: "ends", place: parent, expected, found });
            }
        }
        Ok(())
    }
}

/// The number of coordinates from which on a level is refused: its readers visit each coordinate, stored or not, and so
/// many would take hours.
const MOST_COORDINATES: u128 = 1 << 40;

/// Whether an entry belongs to the run of the one before, which has the same parent.
fn extends(entries: &Entries<'_>, entry: usize) -> bool {
    let distance = entries.coordinates[entry] - entries.coordinates[entry - 1];
    distance == 0 || distance == 1 && (entries.same)(entry - 1, entry)
}
