//! Bitmap levels: a position for every coordinate, and a bit for each that says whether the coordinate is there.
//!
//! The bits of all parents follow each other, 64 in a number of the component `bits`, the least significant one first.

use super::array::Array;
use super::width::Width;
use super::dense::{has_all_slots, place_all, slot};
use super::error::LevelError;
use super::kind::{Assemble, Capabilities, Component, Entries, LevelData, LevelKind, Locate, Per, Place, Stored};

/// The kind of bitmap levels.
pub struct Bitmap;

impl LevelKind for Bitmap {
    fn letter(&self) -> &'static str {
        "B"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            full: false,
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
        &[Stored { name: "bits", per: Per::Word }]
    }

    fn assemble(&self, level: &mut LevelData, entries: Entries<'_>) -> Result<(), LevelError> {
        level.positions = level.positions_of(level.extent())?;
        let mut bits = Array::filled(Width::I64, 0, level.positions.div_ceil(64))?;
        for (&parent, &coordinate) in entries.positions.iter().zip(entries.coordinates) {
            let position = slot(level, parent, coordinate);
            bits.set(position / 64, bits.get(position / 64) | 1 << (position % 64));
        }
        place_all(level, entries);
        level.components = vec![Component { name: "bits", array: bits }];
        Ok(())
    }

    fn visit(&self, level: &LevelData, parent: usize, _: i64, visit: &mut dyn FnMut(i64, usize)) {
        let bits = level.component("bits");
        let (first, extent) = (parent * level.extent(), level.extent());
        let mut position = first;
        while position < first + extent {
            // What is left of the word, moved down to the position.
            let word = (bits.get(position / 64) as u64) >> (position % 64);
            if word == 0 {
                position = (position / 64 + 1) * 64;
                continue;
            }
            position += word.trailing_zeros() as usize;
            if position < first + extent {
                visit(level.bounds.start + (position - first) as i64, position);
            }
            position += 1;
        }
    }

    fn locate(&self, level: &LevelData, parent: usize, coordinate: i64, _: i64, visit: &mut dyn FnMut(usize)) {
        if level.bounds.contains(&coordinate) {
            let position = slot(level, parent, coordinate);
            if level.component("bits").get(position / 64) >> (position % 64) & 1 == 1 {
                visit(position);
            }
        }
    }

    fn check(&self, level: &LevelData) -> Result<(), LevelError> {
        has_all_slots(level)?;
        let bits = level.expect("bits", level.positions.div_ceil(64))?;
        if bits.width() != Width::I64 {
            let (expected, found) = ("numbers of 64 bits".to_owned(), bits.width().to_string());
            return Err(LevelError::Broken { component: "bits", place: 0, expected, found });
        }
        let used = level.positions % 64;
        if used > 0 && bits.get(bits.len() - 1) as u64 >> used != 0 {
            let (expected, found) = ("no bits after the last position".to_owned(), "some".to_owned());
            return Err(LevelError::Broken { component: "bits", place: bits.len() - 1, expected, found });
        }
        Ok(())
    }
}
