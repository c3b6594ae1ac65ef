//! Compressed levels: the coordinates that are there, for each parent a segment of an array.
//!
//! `pos` says where segments begin and end: either as offsets, one more than there are parents, or as ranges, two numbers for each parent, between which there may be holes.

use std::ops::Range;

use super::array::Array;
use super::error::LevelError;
use super::kind::{Assemble, Capabilities, Component, Entries, LevelData, LevelKind, Locate, Place};

/// The kind of compressed levels.
pub struct Compressed;

impl LevelKind for Compressed {
    fn letter(&self) -> &'static str {
        "C"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            full: false,
            ordered: true,
            unique: true,
            branchless: false,
            locate: Locate::Search,
            assemble: Assemble::Insert,
            place: Place::Anywhere,
            has_positions: true,
            has_coordinates: true,
        }
    }

    fn assemble(&self, level: &mut LevelData, entries: Entries<'_>) -> Result<(), LevelError> {
        let unique = level.properties.unique;
        let count = |entry: &usize| entries.is_new(entries.positions, *entry, unique);
        let total = (0..entries.coordinates.len()).filter(count).count();
        let width = level.coordinate_width(false)?;
        // What the segments take, from which the next free place of each follows: positions above need not ascend with entries.
        let mut free = super::array::filled(0_usize, level.parents + 1)?;
        for entry in (0..entries.coordinates.len()).filter(count) {
            free[entries.positions[entry] + 1] += 1;
        }
        (0..level.parents).for_each(|parent| free[parent + 1] += free[parent]);
        let pos = positions(level, &free)?;
        let mut crd = Array::filled(width, 0, total)?;
        let mut before = (usize::MAX, 0);
        for (position, &coordinate) in entries.positions.iter_mut().zip(entries.coordinates) {
            let parent = *position;
            let is_new = !unique || before != (parent, coordinate);
            before = (parent, coordinate);
            if is_new {
                crd.set(free[parent], coordinate);
                free[parent] += 1;
            }
            *position = free[parent] - 1;
        }
        level.positions = total;
        level.components = vec![Component { name: "pos", array: pos }, Component { name: "crd", array: crd }];
        Ok(())
    }

    fn visit(&self, level: &LevelData, parent: usize, _: i64, visit: &mut dyn FnMut(i64, usize)) {
        let crd = level.component("crd");
        segment(level, parent).for_each(|position| visit(crd.get(position), position));
    }

    fn locate(&self, level: &LevelData, parent: usize, coordinate: i64, _: i64, visit: &mut dyn FnMut(usize)) {
        let (crd, segment) = (level.component("crd"), segment(level, parent));
        if level.properties.ordered {
            let first = first_not_below(crd, segment.clone(), coordinate);
            (first..segment.end).take_while(|&position| crd.get(position) == coordinate).for_each(visit);
        } else {
            segment.filter(|&position| crd.get(position) == coordinate).for_each(visit);
        }
    }

    fn check(&self, level: &LevelData) -> Result<(), LevelError> {
        check_segments(level, level.positions)?;
        let crd = level.expect("crd", level.positions)?;
        let mut seen = Vec::new();
        for parent in 0..level.parents {
            let segment = segment(level, parent);
            check_coordinates(level, crd, segment.clone())?;
            if level.properties.unique && !level.properties.ordered {
                seen.clear();
                seen.extend(segment.clone().map(|position| crd.get(position)));
                seen.sort_unstable();
                if let Some(pair) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
                    let (expected, found) = ("each coordinate once below a parent".to_owned(), format!("{} twice", pair[0]));
                    return Err(LevelError::Broken { component: "crd", place: segment.start, expected, found });
                }
            }
        }
        Ok(())
    }
}

/// The array `pos` of segments that begin at `starts`, which has the end of the last one too.
pub(super) fn positions(level: &LevelData, starts: &[usize]) -> Result<Array, LevelError> {
    let width = level.position_width(starts.last().copied().unwrap_or(0))?;
    if !level.properties.ranges {
        let mut pos = Array::filled(width, 0, level.parents + 1)?;
        starts.iter().enumerate().for_each(|(place, &start)| pos.set(place, start as i64));
        return Ok(pos);
    }
    let mut pos = Array::filled(width, 0, 2 * level.parents)?;
    for parent in 0..level.parents {
        pos.set(2 * parent, starts[parent] as i64);
        pos.set(2 * parent + 1, starts[parent + 1] as i64);
    }
    Ok(pos)
}

/// The positions of the children of `parent`.
pub(super) fn segment(level: &LevelData, parent: usize) -> Range<usize> {
    let pos = level.component("pos");
    let (first, second) = if level.properties.ranges { (2 * parent, 2 * parent + 1) } else { (parent, parent + 1) };
    pos.get(first) as usize..pos.get(second) as usize
}

/// The first position in a segment of ascending coordinates whose coordinate is `coordinate` or greater.
pub(super) fn first_not_below(crd: &Array, segment: Range<usize>, coordinate: i64) -> usize {
    let (mut low, mut high) = (segment.start, segment.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if crd.get(middle) < coordinate { low = middle + 1 } else { high = middle }
    }
    low
}

/// Checks that segments ascend, do not overlap and lie within `total` positions; offsets also that they leave nothing out.
pub(super) fn check_segments(level: &LevelData, total: usize) -> Result<(), LevelError> {
    let ranges = level.properties.ranges;
    let length = level.parents.checked_mul(2).filter(|_| ranges).unwrap_or(level.parents + 1);
    let pos = level.expect("pos", length)?;
    let broken = |place: usize, expected: String| LevelError::Broken { component: "pos", place, expected, found: pos.get(place).to_string() };
    let mut before = 0;
    for place in 0..length {
        let number = pos.get(place);
        // An empty range may be anywhere.
        let is_empty = ranges && pos.get(place | 1) == pos.get(place & !1);
        if number < 0 || number as u64 > total as u64 {
            return Err(broken(place, format!("numbers from 0 to {total}")));
        }
        if !is_empty && number < before {
            return Err(broken(place, format!("numbers that do not descend, {before} or more")));
        }
        before = if is_empty { before } else { number };
    }
    match () {
        () if !ranges && pos.get(0) != 0 => Err(broken(0, "0 first".to_owned())),
        () if !ranges && before != total as i64 => Err(broken(level.parents, format!("{total} last"))),
        () => Ok(()),
    }
}

/// Checks that the coordinates of a segment are within bounds, and ascend if they are to.
pub(super) fn check_coordinates(level: &LevelData, crd: &Array, segment: Range<usize>) -> Result<(), LevelError> {
    let properties = level.properties;
    for position in segment.clone() {
        let coordinate = crd.get(position);
        let broken = |expected: String| LevelError::Broken { component: "crd", place: position, expected, found: coordinate.to_string() };
        if !level.bounds.contains(&coordinate) {
            return Err(broken(format!("coordinates from {} to {}", level.bounds.start, level.bounds.end - 1)));
        }
        if position > segment.start && properties.ordered {
            let before = crd.get(position - 1);
            let least = before + i64::from(properties.unique);
            if coordinate < least {
                return Err(broken(format!("ascending coordinates below a parent, {least} or more after {before}")));
            }
        }
    }
    Ok(())
}
