//! Counter levels: as many slots for each parent as the fullest one needs (ELLPACK; Rice and Boisvert, *Solving
//! Elliptic Problems Using ELLPACK*, 1985).
//!
//! `used` says how many slots of each parent are taken. The others repeat the last coordinate, or have the least one,
//! so that a loop may read them all; their elements have the fill value.

use super::array::Array;
use super::width::Width;
use super::compressed::check_coordinates;
use super::error::LevelError;
use super::kind::{Assemble, Capabilities, Component, Entries, LevelData, LevelKind, Locate, Per, Place, Stored};

/// The kind of counter levels.
pub struct Counter;

impl LevelKind for Counter {
    fn letter(&self) -> &'static str {
        "E"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            full: false,
            ordered: true,
            unique: true,
            branchless: true,
            locate: Locate::Scan,
            assemble: Assemble::Insert,
            place: Place::Anywhere,
            has_positions: false,
            has_coordinates: true,
        }
    }

    fn components(&self) -> &'static [Stored] {
        &[Stored { name: "used", per: Per::Parent }, Stored { name: "crd", per: Per::Position }]
    }

    fn assemble(&self, level: &mut LevelData, entries: Entries<'_>) -> Result<(), LevelError> {
        let mut counts = super::array::filled(0_usize, level.parents)?;
        for entry in 0..entries.coordinates.len() {
            counts[entries.positions[entry]] += usize::from(entries.is_new(entries.positions, entry, true));
        }
        let slots = counts.iter().copied().max().unwrap_or(0).max(level.positions);
        level.positions = level.positions_of(slots)?;
        let width = level.coordinate_width(false)?;
        let mut crd = Array::filled(width, level.bounds.start, level.positions)?;
        let mut used = Array::filled(Width::narrowest(&Width::ALL, 0, slots as i64), 0, level.parents)?;
        let mut before = (usize::MAX, 0);
        for (position, &coordinate) in entries.positions.iter_mut().zip(entries.coordinates) {
            let parent = *position;
            if before != (parent, coordinate) {
                let taken = used.get(parent) as usize;
                (taken..slots).for_each(|slot| crd.set(parent * slots + slot, coordinate));
                used.set(parent, taken as i64 + 1);
            }
            before = (parent, coordinate);
            *position = parent * slots + used.get(parent) as usize - 1;
        }
        level.components = vec![Component { name: "used", array: used }, Component { name: "crd", array: crd }];
        Ok(())
    }

    fn visit(&self, level: &LevelData, parent: usize, _: i64, visit: &mut dyn FnMut(i64, usize)) {
        let (crd, used) = (level.component("crd"), level.component("used").get(parent) as usize);
        let first = parent * slots(level);
        (first..first + used).for_each(|position| visit(crd.get(position), position));
    }

    fn check(&self, level: &LevelData) -> Result<(), LevelError> {
        let slots = slots(level);
        let crd = level.expect("crd", level.parents * slots)?;
        level.expect("crd", level.positions)?;
        let used = level.expect("used", level.parents)?;
        for parent in 0..level.parents {
            let taken = used.get(parent);
            let broken = |component, place, expected: String, found: i64| {
                Err(LevelError::Broken { component, place, expected, found: found.to_string() })
            };
            if taken < 0 || taken as usize > slots {
                return broken("used", parent, format!("numbers from 0 to {slots}"), taken);
            }
            let (first, end) = (parent * slots, parent * slots + taken as usize);
            check_coordinates(level, crd, first..end)?;
            let last = if taken == 0 { level.bounds.start } else { crd.get(end - 1) };
            if let Some(place) = (end..first + slots).find(|&place| crd.get(place) != last) {
                return broken("crd", place, format!("{last} in slots that are not used"), crd.get(place));
            }
        }
        Ok(())
    }
}

/// The slots of each parent.
fn slots(level: &LevelData) -> usize {
    level.positions.checked_div(level.parents).unwrap_or(0)
}
