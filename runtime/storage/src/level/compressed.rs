//! Compressed levels: the coordinates that are there, for each parent a segment of an array.
//!
//! `pos` says where segments begin and end: either as offsets, one more than there are parents, or as ranges, two
//! numbers for each parent, between which there may be holes.

use std::ops::Range;

use super::array::{Array, filled, with_numbers};
use super::error::LevelError;
use super::kind::{Assemble, Capabilities, Component, Entries, LevelData, LevelKind, Locate, Per, Place, Stored};
use crate::parallel::{chunks, each, split};

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

    fn components(&self) -> &'static [Stored] {
        &[Stored { name: "pos", per: Per::Offset }, Stored { name: "crd", per: Per::Position }]
    }

    fn assemble(&self, level: &mut LevelData, entries: Entries<'_>) -> Result<(), LevelError> {
        let unique = level.properties.unique;
        let Entries { coordinates, positions, team, .. } = &entries;
        let is_new = |entry: usize| entry == 0 || !unique || positions[entry] != positions[entry - 1] || coordinates[entry] != coordinates[entry - 1];
        let chunks = chunks(coordinates.len(), *team);
        let counted = each(*team, chunks.clone(), |_: &mut (), chunk| {
            chunk.fold((0, true), |(count, ascends), entry| {
                let follows = entry == 0 || positions[entry - 1] <= positions[entry];
                (count + usize::from(is_new(entry)), ascends & follows)
            })
        });
        let (counts, ascend): (Vec<usize>, Vec<bool>) = counted.into_iter().unzip();
        let (total, ascends) = (counts.iter().sum(), ascend.into_iter().all(|ascends| ascends));
        let mut starts = filled(0, level.parents + 1)?;
        let mut crd = Array::filled(level.coordinate_width(false)?, 0, total)?;
        if ascends {
            with_numbers!(&mut crd, crd => append(entries, unique, &counts, &mut starts, crd, |at| at as _));
        } else {
            insert(entries, unique, &mut starts, &mut crd);
        }
        level.components = vec![
            Component { name: "pos", array: self::positions(level, &starts)? },
            Component { name: "crd", array: crd },
        ];
        level.positions = total;
        Ok(())
    }

    fn visit(&self, level: &LevelData, parent: usize, _: i64, visit: &mut dyn FnMut(i64, usize)) {
        let crd = level.component("crd");
        segment(level, parent).for_each(|position| visit(crd.get(position), position));
    }

    #[allow(clippy::unnecessary_cast)] // coordinates of one of the four widths are `i64` already
    fn visit_within(
        &self,
        level: &LevelData,
        parent: usize,
        _: i64,
        positions: Range<usize>,
        visit: &mut dyn FnMut(i64, usize),
    ) {
        let segment = segment(level, parent);
        let positions = segment.start.max(positions.start)..segment.end.min(positions.end);
        with_numbers!(level.component("crd"), crd => positions.for_each(|position| visit(crd[position] as i64, position)));
    }

    fn parents(&self, level: &LevelData, positions: Range<usize>) -> Range<usize> {
        match positions.is_empty() {
            true => 0..0,
            false => parent(level, positions.start)..parent(level, positions.end - 1) + 1,
        }
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

/// Stores entries in the order in which they are, of which each of the team's chunks has so many that are new; equal
/// neighbours are one if coordinates are unique.
fn append<C: Send>(
    Entries { coordinates, positions, team, .. }: Entries<'_>,
    unique: bool,
    counts: &[usize],
    starts: &mut [usize],
    crd: &mut [C],
    narrow: impl Fn(i64) -> C + Sync,
) {
    let chunks = chunks(coordinates.len(), team);
    let total = crd.len();
    let before = |chunk: &Range<usize>| chunk.start.checked_sub(1).map(|entry| (positions[entry], coordinates[entry]));
    let befores: Vec<_> = chunks.iter().map(before).collect();
    // A chunk says where the parents start that come after that of the entry before it, up to that of its last entry.
    let ends: Vec<usize> = chunks.iter().map(|chunk| positions[chunk.end - 1] + 1).collect();
    let lengths: Vec<usize> = ends.iter().enumerate().map(|(chunk, end)| end - chunk.checked_sub(1).map_or(0, |before| ends[before])).collect();
    let (starts, rest) = starts.split_at_mut(ends.last().copied().unwrap_or(0));
    rest.fill(total);
    let firsts = counts.iter().scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count)));
    let crd = split(crd, counts.iter().copied());
    let positions = split(positions, chunks.iter().map(Range::len));
    let parts = chunks.into_iter().zip(befores).zip(firsts).zip(positions).zip(crd).zip(split(starts, lengths));
    each(team, parts.collect(), |_: &mut (), (((((chunk, mut before), first), positions), crd), starts)| {
        let (mut starts, mut place) = (starts.iter_mut(), 0);
        for (position, &coordinate) in positions.iter_mut().zip(&coordinates[chunk]) {
            let parent = *position;
            let reached = before.map_or(0, |(parent, _)| parent + 1);
            starts.by_ref().take(parent + 1 - reached).for_each(|start| *start = first + place);
            if !unique || before != Some((parent, coordinate)) {
                crd[place] = narrow(coordinate);
                place += 1;
            }
            before = Some((parent, coordinate));
            *position = first + place - 1;
        }
    });
}

/// Stores entries whose positions above do not ascend: each where the next one of its parent goes.
fn insert(entries: Entries<'_>, unique: bool, starts: &mut [usize], crd: &mut Array) {
    let Entries { coordinates, positions, .. } = entries;
    let is_new = |before: Option<(usize, i64)>, now| !unique || before != Some(now);
    let mut before = None;
    for now in positions.iter().copied().zip(coordinates.iter().copied()) {
        starts[now.0 + 1] += usize::from(is_new(before, now));
        before = Some(now);
    }
    (1..starts.len()).for_each(|parent| starts[parent] += starts[parent - 1]);
    let mut free = starts.to_vec();
    before = None;
    for (position, &coordinate) in positions.iter_mut().zip(coordinates) {
        let now = (*position, coordinate);
        if is_new(before, now) {
            crd.set(free[now.0], coordinate);
            free[now.0] += 1;
        }
        before = Some(now);
        *position = free[now.0] - 1;
    }
}

/// The array `pos` of segments that begin at `starts`, which has the end of the last one too.
///
/// # Errors
///
/// [`LevelError`] if there are too many positions, or there is no memory.
pub fn positions(level: &LevelData, starts: &[usize]) -> Result<Array, LevelError> {
    let width = level.position_width(starts.last().copied().unwrap_or(0))?;
    if !level.properties.ranges {
        let mut pos = Array::filled(width, 0, level.parents + 1)?;
        with_numbers!(&mut pos, pos => pos.iter_mut().zip(starts).for_each(|(pos, &start)| *pos = start as _));
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

/// The parent of a position; of one in a hole, a parent before it.
fn parent(level: &LevelData, position: usize) -> usize {
    let starts_after = |parent: usize| {
        // An empty range may be anywhere.
        let is_one = |segment: &Range<usize>| !level.properties.ranges || !segment.is_empty();
        let mut segments = (parent..level.parents).map(|parent| segment(level, parent));
        segments.find(is_one).is_none_or(|segment| segment.start > position)
    };
    let (mut low, mut high) = (0, level.parents);
    while low < high {
        let middle = low + (high - low) / 2;
        if starts_after(middle) { high = middle } else { low = middle + 1 }
    }
    low.saturating_sub(1)
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

/// Checks that segments ascend, do not overlap and lie within `total` positions; offsets also that they leave nothing
/// out.
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
