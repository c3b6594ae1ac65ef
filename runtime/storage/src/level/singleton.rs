//! Singleton levels: one coordinate for each position of the level above. Where the level above has positions without
//! entries, as dense ones have, the greatest number of the width stands for none.

use std::ops::Range;

use super::array::Array;
use super::error::LevelError;
use super::kind::{Assemble, Capabilities, Component, Entries, LevelData, LevelKind, Locate, Per, Place, Stored};

/// The kind of singleton levels.
pub struct Singleton;

impl LevelKind for Singleton {
    fn letter(&self) -> &'static str {
        "S"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            full: false,
            ordered: true,
            unique: true,
            branchless: true,
            locate: Locate::Scan,
            assemble: Assemble::Append,
            place: Place::Anywhere,
            has_positions: false,
            has_coordinates: true,
        }
    }

    fn components(&self) -> &'static [Stored] {
        &[Stored { name: "crd", per: Per::Slot }]
    }

    fn assemble(&self, level: &mut LevelData, entries: Entries<'_>) -> Result<(), LevelError> {
        let width = level.coordinate_width(true)?;
        let mut crd = Array::filled(width, width.greatest(), level.parents)?;
        for (&parent, &coordinate) in entries.positions.iter().zip(entries.coordinates) {
            let first = crd.get(parent);
            if first != width.greatest() && first != coordinate {
                return Err(LevelError::Crowded { parent, first, second: coordinate });
            }
            crd.set(parent, coordinate);
        }
        level.positions = level.parents;
        level.components = vec![Component { name: "crd", array: crd }];
        Ok(())
    }

    fn visit(&self, level: &LevelData, parent: usize, _: i64, visit: &mut dyn FnMut(i64, usize)) {
        let crd = level.component("crd");
        let coordinate = crd.get(parent);
        if coordinate != crd.width().greatest() {
            visit(coordinate, parent);
        }
    }

    fn parents(&self, _: &LevelData, positions: Range<usize>) -> Range<usize> {
        positions
    }

    fn check(&self, level: &LevelData) -> Result<(), LevelError> {
        let crd = level.expect("crd", level.parents)?;
        level.expect("crd", level.positions)?;
        let is_wrong = |place: &usize| {
            let coordinate = crd.get(*place);
            coordinate != crd.width().greatest() && !level.bounds.contains(&coordinate)
        };
        match (0..crd.len()).find(is_wrong) {
            None => Ok(()),
            Some(place) => Err(LevelError::Broken {
                component: "crd",
                place,
                expected: format!("coordinates from {} to {}", level.bounds.start, level.bounds.end - 1),
                found: crd.get(place).to_string(),
            }),
        }
    }
}
