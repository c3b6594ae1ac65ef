//! Hashed levels: for each parent a table of slots, at most half of which are taken.
//!
//! `pos` has the offsets of tables, whose lengths are powers of two or 0. A coordinate is in the first slot, from the
//! one that its hash names on and around the end, that was free when it came (linear probing; Knuth, *The Art of
//! Computer Programming* 3, section 6.4, algorithm L). The greatest number of the width of `crd` stands for a free
//! slot.

use std::ops::Range;

use super::array::Array;
use super::compressed::{check_segments, positions, segment};
use super::error::LevelError;
use super::kind::{Assemble, Capabilities, Component, Entries, LevelData, LevelKind, Locate, Per, Place, Stored};

/// The kind of hashed levels.
pub struct Hashed;

impl LevelKind for Hashed {
    fn letter(&self) -> &'static str {
        "H"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            full: false,
            ordered: false,
            unique: true,
            branchless: false,
            locate: Locate::Direct,
            assemble: Assemble::Insert,
            place: Place::Anywhere,
            has_positions: true,
            has_coordinates: true,
        }
    }

    fn components(&self) -> &'static [Stored] {
        &[Stored { name: "pos", per: Per::Offset }, Stored { name: "crd", per: Per::Slot }]
    }

    fn assemble(&self, level: &mut LevelData, entries: Entries<'_>) -> Result<(), LevelError> {
        let width = level.coordinate_width(true)?;
        let mut starts = super::array::filled(0_usize, level.parents + 1)?;
        for entry in 0..entries.coordinates.len() {
            starts[entries.positions[entry] + 1] += usize::from(entries.is_new(entries.positions, entry, true));
        }
        for parent in 0..level.parents {
            let taken = starts[parent + 1];
            starts[parent + 1] = starts[parent] + if taken == 0 { 0 } else { (2 * taken).next_power_of_two() };
        }
        let pos = positions(level, &starts)?;
        let mut crd = Array::filled(width, width.greatest(), starts[level.parents])?;
        for (position, &coordinate) in entries.positions.iter_mut().zip(entries.coordinates) {
            let table = starts[*position]..starts[*position + 1];
            let is_its = |slot: &usize| [coordinate, width.greatest()].contains(&crd.get(*slot));
            *position = probes(table, coordinate).find(is_its).expect("half of the slots are free");
            crd.set(*position, coordinate);
        }
        level.positions = crd.len();
        level.components = vec![Component { name: "pos", array: pos }, Component { name: "crd", array: crd }];
        Ok(())
    }

    fn visit(&self, level: &LevelData, parent: usize, _: i64, visit: &mut dyn FnMut(i64, usize)) {
        let crd = level.component("crd");
        let taken = segment(level, parent).filter(|&position| crd.get(position) != crd.width().greatest());
        taken.for_each(|position| visit(crd.get(position), position));
    }

    fn locate(&self, level: &LevelData, parent: usize, coordinate: i64, _: i64, visit: &mut dyn FnMut(usize)) {
        let crd = level.component("crd");
        if level.bounds.contains(&coordinate) {
            let taken = |position: &usize| crd.get(*position) != crd.width().greatest();
            let mut taken = probes(segment(level, parent), coordinate).take_while(taken);
            taken.find(|&position| crd.get(position) == coordinate).into_iter().for_each(visit);
        }
    }

    fn check(&self, level: &LevelData) -> Result<(), LevelError> {
        check_segments(level, level.positions)?;
        let crd = level.expect("crd", level.positions)?;
        let broken = |component, place, expected: &str, found: i64| {
            Err(LevelError::Broken { component, place, expected: expected.to_owned(), found: found.to_string() })
        };
        for parent in 0..level.parents {
            let table = segment(level, parent);
            if !table.is_empty() && !table.len().is_power_of_two() {
                return broken("pos", parent, "tables whose lengths are powers of two", table.len() as i64);
            }
            for position in table {
                let coordinate = crd.get(position);
                if coordinate == crd.width().greatest() {
                    continue;
                }
                let mut found = None;
                self.locate(level, parent, coordinate, 0, &mut |position| found = Some(position));
                if found != Some(position) {
                    return broken("crd", position, "coordinates within bounds, once, where their hash leads", coordinate);
                }
            }
        }
        Ok(())
    }
}

/// The slots of a table in the order in which `coordinate` is looked for.
fn probes(table: Range<usize>, coordinate: i64) -> impl Iterator<Item = usize> {
    // The golden ratio (Knuth, section 6.4).
    let hash = (coordinate as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) as u128;
    let first = ((hash * table.len() as u128) >> 64) as usize;
    let start = table.start + first;
    (start..table.end).chain(table.start..start)
}
