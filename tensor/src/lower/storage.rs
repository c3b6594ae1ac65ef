//! Where elements are, and how far into its levels each access has come.

use crate::element::ElementType::{self, I64};
use crate::format::{Format, Level};
use crate::loops::{Access as Use, Buffer, Expression, Names, Variable};
use crate::notation::{Access, IndexVariable, TensorVariable};

/// Where the elements of a tensor or workspace are.
#[derive(Clone)]
pub(super) enum Storage {
    Buffer(Buffer),
    /// A workspace without dimensions.
    Scalar(Scalar),
    /// A tensor that is read, in levels some of which are compressed.
    Levels(Levels),
    /// A workspace of one dimension that remembers which of its elements were set.
    List(List),
    /// Such a workspace, of which it is only counted how often elements are set.
    Bound(Variable),
    /// A result whose elements are appended.
    Appended(Appended),
    /// The elements of a result that are stored at the positions at which an access finds those of an operand.
    Beside(Buffer, Access),
}

/// A variable that holds the element of a workspace without dimensions.
#[derive(Clone)]
pub(super) struct Scalar {
    pub value: Variable,
    /// 1 if it was set, where that matters.
    pub is_set: Option<Variable>,
}

/// The type of the numbers of a component, `pos` or `crd`, of a level of a tensor.
pub type NumberTypes<'t> = &'t dyn Fn(&str, usize, &str) -> ElementType;

/// A tensor in levels.
#[derive(Clone)]
pub(super) struct Levels {
    pub levels: Vec<StoredLevel>,
    pub values: Buffer,
}

/// What a kernel is given of a level.
#[derive(Clone)]
pub(super) enum StoredLevel {
    /// The extent.
    Dense(Variable),
    /// Positions and coordinates. Of the outermost level the kernel may be given a part.
    Compressed { pos: Buffer, crd: Buffer, ranges: bool, is_part: bool },
    /// Coordinates, of which one that is none says that nothing is stored.
    Singleton(Buffer),
    /// For each position above how many coordinates are used of its slots, the coordinates, and how many slots each has.
    Counter { used: Buffer, crd: Buffer, slots: Variable },
}

impl Levels {
    /// Those of a tensor, of which a kernel may be given a part.
    pub fn new(tensor: &TensorVariable, types: NumberTypes<'_>, names: &mut Names, is_part: bool) -> Self {
        let (name, format) = (tensor.name(), tensor.format());
        let levels = format.levels().iter().zip(format.properties()).enumerate().map(|(level, (kind, properties))| {
            let mut buffer = |what: &str| {
                Buffer::new(names.fresh(&format!("{name}{level}_{what}")), types(name, level, what), 1, Use::Read)
            };
            match kind {
                Level::Dense => StoredLevel::Dense(Variable::index(names.fresh(&format!("{name}{level}_extent")))),
                Level::Singleton => StoredLevel::Singleton(buffer("crd")),
                Level::Counter => {
                    let (used, crd) = (buffer("used"), buffer("crd"));
                    StoredLevel::Counter {
                        used,
                        crd,
                        slots: Variable::index(names.fresh(&format!("{name}{level}_slots"))),
                    }
                }
                _ => {
                    let (pos, crd, ranges) = (buffer("pos"), buffer("crd"), properties.ranges);
                    StoredLevel::Compressed { pos, crd, ranges, is_part: is_part && level == 0 }
                }
            }
        });
        let levels = levels.collect();
        let values = Buffer::new(names.fresh(&format!("{name}_values")), tensor.element(), 1, Use::Read);
        Self { levels, values }
    }
}

/// A workspace with the list of the elements that were set.
#[derive(Clone)]
pub(super) struct List {
    /// The elements, each at its place.
    pub values: Buffer,
    pub marks: Marks,
    /// The places of the elements that were set.
    pub places: Buffer,
    pub length: Variable,
    pub order: ListOrder,
    /// Whether it only matters which elements were set.
    pub counts: bool,
}

/// What tells which elements of a list were set, and what their places are.
#[derive(Clone)]
pub(super) enum Marks {
    /// For each coordinate, which is its place, whether it was.
    Flags(Buffer),
    /// A hash table: for each place the coordinate and one, or zero; and how many places there are.
    Table(Buffer, Variable),
}

/// In which order a list has its elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ListOrder {
    /// In which they were set.
    AsSet,
    /// By their coordinates, since they are sorted.
    Sorted,
    /// By their coordinates, since the list is made of all that are marked.
    Scanned,
}

/// A result whose elements are counted, or written where there is room for them, one after the other below each parent.
#[derive(Clone)]
pub(super) struct Appended {
    /// The modes of the leading dense levels, whose coordinates make a parent.
    pub parents: Vec<usize>,
    /// For each parent, how many elements there are so far, or where the next one goes.
    pub next: Buffer,
    /// What is written; nothing, if elements are counted.
    pub written: Option<Written>,
    /// Where each parent's elements are, and their coordinates, if these are known.
    pub known: Option<(Buffer, Buffer)>,
}

/// The buffers that elements are written to.
#[derive(Clone)]
pub(super) struct Written {
    /// The modes whose coordinates are written, each to a buffer.
    pub coordinates: Vec<(usize, Buffer)>,
    pub values: Buffer,
}

/// An access of something that is stored in levels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Visit {
    pub access: Access,
    pub format: Format,
}

impl Visit {
    /// The variable of a level.
    pub fn variable(&self, level: usize) -> &IndexVariable {
        &self.access.variables[self.format.order()[level]]
    }
}

/// How far an access has come.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// Nothing is stored at the coordinates so far.
    Absent,
    /// So many levels are behind it, at this position.
    Level(usize, Expression),
    /// So many levels are behind it at this position, if the variable is 1; else nothing is stored.
    Maybe(usize, Expression, Variable),
    /// All levels are behind it: the element, or the fill value if none is stored; and where it is.
    Element(Expression, Box<Place>),
}

impl Place {
    /// The same place, if the variable is 1.
    pub fn if_stored(self, is_stored: &Variable) -> Self {
        match self {
            Self::Level(level, position) => Self::Maybe(level, position, is_stored.clone()),
            other => other,
        }
    }
}

impl Storage {
    /// The coordinate of a position of a compressed level.
    pub fn coordinate(&self, level: usize, position: Expression) -> Expression {
        match self {
            Self::List(list) => list.coordinate(position),
            Self::Levels(Levels { levels, .. }) => match &levels[level] {
                StoredLevel::Compressed { crd, .. }
                | StoredLevel::Singleton(crd)
                | StoredLevel::Counter { crd, .. } => crd.load([position]).cast(I64),
                StoredLevel::Dense(_) => position,
            },
            _ => position,
        }
    }

    /// The positions below `above` in a compressed level.
    pub fn segment(&self, level: usize, above: &Expression) -> (Expression, Expression) {
        let (pos, ranges, part) = match self {
            Self::List(list) => return (0.into(), list.length.value()),
            Self::Levels(Levels { levels, .. }) => match &levels[level] {
                StoredLevel::Compressed { pos, crd, ranges, is_part } => (pos, *ranges, is_part.then_some(crd)),
                StoredLevel::Dense(extent) => return (0.into(), extent.value()),
                StoredLevel::Singleton(_) => return (above.clone(), above.clone() + 1),
                StoredLevel::Counter { used, slots, .. } => {
                    let first = above.clone() * slots.value();
                    return (first.clone(), first + used.load([above.clone()]).cast(I64));
                }
            },
            _ => return (0.into(), 0.into()),
        };
        let (first, second) = match ranges {
            true => (above.clone() * 2, above.clone() * 2 + 1),
            false => (above.clone(), above.clone() + 1),
        };
        let (begin, end) = (pos.load([first]).cast(I64), pos.load([second]).cast(I64));
        match part {
            // The root is told of all.
            Some(crd) => (begin.maximum(crd.low(0)), end.minimum(crd.high(0))),
            None => (begin, end),
        }
    }

    /// The place below a position of a compressed level.
    pub fn below(&self, level: usize, position: Expression) -> Place {
        match self {
            Self::List(list) => Place::Level(level + 1, list.place(position)),
            _ => Place::Level(level + 1, position),
        }
    }

    /// The element at a position of the last level.
    pub fn element(&self, position: Expression) -> Expression {
        match self {
            Self::Levels(Levels { values, .. }) | Self::List(List { values, .. }) => values.load([position]),
            _ => unreachable!("only what is stored in levels is visited"),
        }
    }
}

/// Whether a tensor has levels that are not dense, or do not store whole dimensions.
pub(super) fn is_sparse(tensor: &TensorVariable) -> bool {
    !(tensor.format().is_dense() && tensor.format().is_plain())
}

/// Whether a workspace remembers which of its elements were set.
pub(super) fn is_list(workspace: &TensorVariable) -> bool {
    workspace.order() == 1 && is_sparse(workspace)
}
