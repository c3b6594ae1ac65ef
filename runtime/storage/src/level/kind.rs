//! Kinds of levels: their capabilities, and how they are filled, walked and checked.

use std::ops::Range;

use maniple_kernel::execution::Team;

use super::array::Array;
use super::error::LevelError;
use super::width::Width;

/// The properties that the positions and coordinates of all levels of a kind have in common, whatever the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Every coordinate has a position: a tensor whose last level is full cannot tell an element that is stored from
    /// one that is not.
    pub full: bool,
    /// Positions follow the order of coordinates.
    pub ordered: bool,
    /// No coordinate is there twice below one parent.
    pub unique: bool,
    /// Every position of the level above has exactly one position here.
    pub branchless: bool,
    /// How the position of a coordinate is found.
    pub locate: Locate,
    /// How results are written.
    pub assemble: Assemble,
    /// The place of such levels in a format.
    pub place: Place,
    /// Whether there is an array of positions, whose width can be chosen.
    pub has_positions: bool,
    /// Whether there is an array of coordinates, whose width can be chosen.
    pub has_coordinates: bool,
}

/// How the position of a coordinate is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locate {
    /// By looking at all.
    Scan,
    /// By a binary search.
    Search,
    /// In constant time.
    Direct,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assemble {
    /// In the order of positions.
    Append,
    /// In any order, once it is known how much there is.
    Insert,
}

/// The place of levels of a kind in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Anywhere.
    Anywhere,
    /// As the last level, since positions depend on the elements.
    Last,
    /// Below a level that stores a difference or sum with the dimension that the level stores.
    Diagonal,
}

/// A component of levels of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The name of the component: `pos`, `crd`.
    pub name: &'static str,
    /// The objects for each of which the component has a number.
    pub per: Per,
}

/// The objects for each of which a component has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Each position of the level above, and one more: what is below a position begins at its number, and ends at the
    /// next one.
    Offset,
    /// Each position of the level above.
    Parent,
    /// Each position.
    Position,
    /// Each position, of which some have nothing: these have the greatest number of the width.
    Slot,
    /// 64 positions, with a bit for each.
    Word,
}

impl Per {
    /// How many numbers there are, for so many positions above and here.
    pub fn count(self, parents: usize, positions: usize) -> usize {
        match self {
            Self::Offset => parents + 1,
            Self::Parent => parents,
            Self::Position | Self::Slot => positions,
            Self::Word => positions.div_ceil(64),
        }
    }
}

/// The choices for one level of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Properties {
    /// Whether a coordinate is there once at most below one parent.
    pub unique: bool,
    /// Whether coordinates ascend.
    pub ordered: bool,
    /// Whether positions are a range for each parent, with holes between them, and not offsets.
    pub ranges: bool,
    /// The type of positions; none: the narrowest of `i32` and `i64`.
    pub positions: Option<Width>,
    /// The type of coordinates; none: the narrowest.
    pub coordinates: Option<Width>,
}

impl Default for Properties {
    fn default() -> Self {
        Self { unique: true, ordered: true, ranges: false, positions: None, coordinates: None }
    }
}

/// The line that coordinates of a [range level](super::Level::Range) lie on: those `c` for which
/// `sign * c + offset * d` is within `bounds`, where `d` is the coordinate of `level`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// A level above.
    pub level: usize,
    /// 1 or -1.
    pub sign: i64,
    /// 1 or -1.
    pub offset: i64,
    /// The coordinates of the other dimension.
    pub bounds: Range<i64>,
}

/// A part of what a level stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// The name of the component: `pos`, `crd`.
    pub name: &'static str,
    /// The numbers.
    pub array: Array,
}

/// One level of a tensor in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelData {
    /// The coordinates that there may be.
    pub bounds: Range<i64>,
    /// The properties that were chosen for the level.
    pub properties: Properties,
    /// The line on which the coordinates of a range level may lie.
    pub line: Option<Line>,
    /// How many positions the level above has.
    pub parents: usize,
    /// How many positions there are.
    pub positions: usize,
    /// The stored components.
    pub components: Vec<Component>,
}

impl LevelData {
    /// The number of coordinates that there may be.
    pub fn extent(&self) -> usize {
        (self.bounds.end - self.bounds.start).max(0) as usize
    }

    /// The number of positions if each parent has `each`.
    ///
    /// # Errors
    ///
    /// [`LevelError::Large`].
    pub fn positions_of(&self, each: usize) -> Result<usize, LevelError> {
        let positions = self.parents.checked_mul(each).filter(|&positions| positions <= isize::MAX as usize);
        positions.ok_or(LevelError::Large { parents: self.parents, extent: each as u128 })
    }

    /// The component called `name`.
    ///
    /// # Panics
    ///
    /// If there is none, which [`LevelKind::check`] has refused.
    pub fn component(&self, name: &str) -> &Array {
        let component = self.components.iter().find(|component| component.name == name);
        &component.expect("levels are checked before they are used").array
    }

    /// The component called `name`, which must have `length` numbers.
    ///
    /// # Errors
    ///
    /// [`LevelError::Broken`] if there is none, or it has another length.
    pub fn expect(&self, name: &'static str, length: usize) -> Result<&Array, LevelError> {
        let found = self.components.iter().find(|component| component.name == name);
        match found {
            Some(component) if component.array.len() == length => Ok(&component.array),
            _ => Err(LevelError::Broken {
                component: name,
                place: found.map_or(0, |component| component.array.len()),
                expected: format!("{length} numbers"),
                found: if found.is_some() { "its end" } else { "none" }.to_owned(),
            }),
        }
    }

    /// The width of an array of numbers from `least` to `greatest`: the one that was chosen, if it holds them, or the
    /// narrowest of `widths`.
    ///
    /// # Errors
    ///
    /// [`LevelError::Narrow`].
    pub fn width(
        component: &'static str,
        chosen: Option<Width>,
        widths: &[Width],
        least: i64,
        greatest: i64,
    ) -> Result<Width, LevelError> {
        match chosen {
            None => Ok(Width::narrowest(widths, least, greatest)),
            Some(width) if width.least() <= least && greatest <= width.greatest() => Ok(width),
            Some(width) => Err(LevelError::Narrow { component, greatest, width }),
        }
    }

    /// The width of positions up to `count`.
    ///
    /// # Errors
    ///
    /// [`LevelError::Narrow`].
    pub fn position_width(&self, count: usize) -> Result<Width, LevelError> {
        Self::width("pos", self.properties.positions, &[Width::I32, Width::I64], 0, count as i64)
    }

    /// The width of coordinates, and with `marker` of one number more.
    ///
    /// # Errors
    ///
    /// [`LevelError::Narrow`].
    pub fn coordinate_width(&self, marker: bool) -> Result<Width, LevelError> {
        let greatest = (self.bounds.end - i64::from(!marker)).max(self.bounds.start);
        Self::width("crd", self.properties.coordinates, &Width::ALL, self.bounds.start.min(0), greatest)
    }
}

/// The entries of a tensor, as a level sees them when it is filled: those of one parent are side by side and their
/// coordinates ascend.
pub struct Entries<'a> {
    /// The coordinate of each entry.
    pub coordinates: &'a [i64],
    /// In: the position of each entry in the level above. Out: its position here.
    pub positions: &'a mut [usize],
    /// Whether two entries have the same value.
    pub same: &'a dyn Fn(usize, usize) -> bool,
    /// The threads that may share the work.
    pub team: &'a dyn Team,
}

impl Entries<'_> {
    /// Whether an entry has a position that the one before it has not.
    pub fn is_new(&self, parent: &[usize], entry: usize, unique: bool) -> bool {
        entry == 0
            || !unique
            || parent[entry] != parent[entry - 1]
            || self.coordinates[entry] != self.coordinates[entry - 1]
    }
}

/// A kind of level. To add one, write a file with an implementation, and a line in the list of [`Level`](super::Level).
pub trait LevelKind: Sync {
    /// The letter in formats.
    fn letter(&self) -> &'static str;

    /// The capabilities of levels of this kind.
    fn capabilities(&self) -> Capabilities;

    /// The components that levels of this kind store, in the order of [`LevelData::components`].
    /// [Ranges](Properties::ranges) have two numbers for each position above in place of offsets.
    fn components(&self) -> &'static [Stored];

    /// Stores `entries`: fills components and [`positions`](LevelData::positions), and gives each entry its position.
    /// `level` has its bounds, properties and parents; and for positions how many each parent has at least, if the kind
    /// gives all as many.
    ///
    /// # Errors
    ///
    /// [`LevelError`] if widths, memory or the kind do not allow it.
    fn assemble(&self, level: &mut LevelData, entries: Entries<'_>) -> Result<(), LevelError>;

    /// Visits coordinate and position of all children of `parent`. `along` is the coordinate of the level that the
    /// [line](LevelData::line) names; without a line, anything.
    fn visit(&self, level: &LevelData, parent: usize, along: i64, visit: &mut dyn FnMut(i64, usize));

    /// [`visit`](Self::visit)s those children alone whose positions are within a range.
    fn visit_within(
        &self,
        level: &LevelData,
        parent: usize,
        along: i64,
        positions: Range<usize>,
        visit: &mut dyn FnMut(i64, usize),
    ) {
        self.visit(level, parent, along, &mut |coordinate, position| {
            if positions.contains(&position) {
                visit(coordinate, position);
            }
        });
    }

    /// A range of positions of the level above, among them all whose children are within a range of positions: as few
    /// as are found fast.
    fn parents(&self, level: &LevelData, positions: Range<usize>) -> Range<usize> {
        let _ = positions;
        0..level.parents
    }

    /// Visits the positions of `coordinate` among the children of `parent`.
    fn locate(&self, level: &LevelData, parent: usize, coordinate: i64, along: i64, visit: &mut dyn FnMut(usize)) {
        self.visit(level, parent, along, &mut |found, position| {
            if found == coordinate {
                visit(position);
            }
        });
    }

    /// Checks all that other functions, and kernels, take for granted.
    ///
    /// # Errors
    ///
    /// [`LevelError::Broken`].
    fn check(&self, level: &LevelData) -> Result<(), LevelError>;
}
