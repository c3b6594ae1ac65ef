//! The storage of elements, and how far into its levels each access has come.

use crate::element::ElementType::{self, I64};
use crate::format::{Format, Level, StoredDimension};
use crate::loops::{Access as Use, Buffer, Expression, FreshNames, Variable};
use crate::notation::{Access, IndexVariable, TensorVariable};

/// The storage of the elements of a tensor or workspace.
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

/// A tensor in levels, as [loops over dimensions](Format::by_dimensions) see them.
#[derive(Clone)]
pub(super) struct Levels {
    pub levels: Vec<StoredLevel>,
    pub values: Buffer,
}

/// The buffers and numbers that a kernel is given of a level.
#[derive(Clone)]
pub(super) enum StoredLevel {
    /// The extent, and the number of the stored level.
    Dense(Variable, usize),
    /// Positions and coordinates. Of the outermost level the kernel may be given a part.
    Compressed { pos: Buffer, crd: Buffer, ranges: bool, is_part: bool },
    /// Coordinates, of which one that is none says that nothing is stored.
    Singleton(Buffer),
    /// For each position above how many coordinates are used of its slots, the coordinates, and how many slots each
    /// has.
    Counter { used: Buffer, crd: Buffer, slots: Variable },
    /// A bit for each coordinate, the extent, and the number of the stored level.
    Bits { bits: Buffer, extent: Variable, level: usize },
    /// The positions and coordinates of diagonals, below a dense level with this extent; the coordinate is that of the
    /// diagonal and the one above with this sign.
    Diagonals { pos: Buffer, crd: Buffer, along: Variable, sign: i64 },
}

impl Levels {
    /// The levels of a tensor, of which a kernel may be given a part.
    pub fn new(tensor: &TensorVariable, types: NumberTypes<'_>, names: &mut FreshNames, is_part: bool) -> Self {
        let format = tensor.format();
        let stored = format.by_dimensions().map_or(StoredDimension::Plain, |(_, stored)| stored);
        let mut level = |level: usize| StoredLevel::new(tensor, level, types, names, is_part);
        let levels = match stored {
            StoredDimension::Plain => (0..format.levels().len()).map(level).collect(),
            StoredDimension::Diagonals(sign) => match (level(0), level(1)) {
                (StoredLevel::Compressed { pos, crd, .. }, StoredLevel::Dense(along, number)) => {
                    vec![StoredLevel::Dense(along.clone(), number), StoredLevel::Diagonals { pos, crd, along, sign }]
                }
                _ => unreachable!("diagonals are compressed, and what is along them is not stored"),
            },
        };
        let values = Buffer::new(names.fresh(&format!("{}_values", tensor.name())), tensor.element(), 1, Use::Read);
        Self { levels, values }
    }
}

impl StoredLevel {
    /// A level that a tensor stores.
    fn new(
        tensor: &TensorVariable,
        level: usize,
        types: NumberTypes<'_>,
        names: &mut FreshNames,
        is_part: bool,
    ) -> Self {
        let (name, format) = (tensor.name(), tensor.format());
        let extent = |names: &mut FreshNames| Variable::index(names.fresh(&format!("{name}{level}_extent")));
        let mut buffer = |what: &str| {
            Buffer::new(names.fresh(&format!("{name}{level}_{what}")), types(name, level, what), 1, Use::Read)
        };
        match format.levels()[level] {
            Level::Dense | Level::Range => Self::Dense(extent(names), level),
            Level::Singleton => Self::Singleton(buffer("crd")),
            Level::Bitmap => {
                let bits = Buffer::new(names.fresh(&format!("{name}{level}_bits")), I64, 1, Use::Read);
                Self::Bits { bits, extent: extent(names), level }
            }
            Level::Counter => {
                let (used, crd) = (buffer("used"), buffer("crd"));
                Self::Counter { used, crd, slots: Variable::index(names.fresh(&format!("{name}{level}_slots"))) }
            }
            _ => {
                let (pos, crd, ranges) = (buffer("pos"), buffer("crd"), format.properties()[level].ranges);
                Self::Compressed { pos, crd, ranges, is_part: is_part && level == 0 }
            }
        }
    }

    /// The coordinate of a position below `above`.
    fn coordinate(&self, above: &Expression, position: Expression) -> Expression {
        match self {
            Self::Compressed { crd, .. } | Self::Singleton(crd) | Self::Counter { crd, .. } => {
                crd.load([position]).cast(I64)
            }
            Self::Dense(..) | Self::Bits { .. } => position,
            Self::Diagonals { crd, sign, .. } => {
                let diagonal = crd.load([position]).cast(I64);
                if *sign < 0 { diagonal - above.clone() } else { diagonal + above.clone() }
            }
        }
    }

    /// The positions that a loop goes through below `above`.
    fn segment(&self, above: &Expression) -> (Expression, Expression) {
        let (pos, ranges, part) = match self {
            Self::Compressed { pos, crd, ranges, is_part } => (pos, *ranges, is_part.then_some(crd)),
            Self::Dense(extent, _) | Self::Bits { extent, .. } => return (0.into(), extent.value()),
            Self::Singleton(_) => return (above.clone(), above.clone() + 1),
            Self::Counter { used, slots, .. } => {
                let first = above.clone() * slots.value();
                return (first.clone(), first + used.load([above.clone()]).cast(I64));
            }
            Self::Diagonals { pos, .. } => return (pos.load([0.into()]).cast(I64), pos.load([1.into()]).cast(I64)),
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

    /// The position that the next level has above it, where a loop has reached a position below `above`.
    fn below(&self, above: &Expression, position: Expression) -> Expression {
        match self {
            Self::Diagonals { along, .. } => position * along.value() + above.clone(),
            _ => position,
        }
    }

    /// The position that the next level has above it, where a coordinate of a dense or bitmap level is reached.
    fn located(&self, above: &Expression, at: Expression) -> Expression {
        match self {
            Self::Dense(extent, _) | Self::Bits { extent, .. } => match above {
                Expression::Constant(_) => at,
                above => above.clone() * extent.value() + at,
            },
            _ => at,
        }
    }

    /// Whether there may be positions at the ends that have coordinates outside of the dimension.
    pub fn is_padded(&self) -> bool {
        matches!(self, Self::Diagonals { .. })
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

/// The marks of a list, which tell which elements were set, and at what places.
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
    /// The buffers that are written; none, if elements are counted.
    pub written: Option<WrittenBuffers>,
    /// The places of each parent's elements, and their coordinates, if these are known.
    pub known: Option<(Buffer, Buffer)>,
}

/// The buffers that elements are written to.
#[derive(Clone)]
pub(super) struct WrittenBuffers {
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
pub(super) enum StoragePlace {
    /// Nothing is stored at the coordinates so far.
    Absent,
    /// So many levels are behind it, at this position.
    Level(usize, Expression),
    /// So many levels are behind it at this position, if the variable is 1; else nothing is stored.
    Maybe(usize, Expression, Variable),
    /// All levels are behind it: the element, or the fill value if none is stored; and where it is.
    Element(Expression, Box<StoragePlace>),
}

impl StoragePlace {
    /// The same place, if the variable is 1.
    pub fn if_stored(self, is_stored: &Variable) -> Self {
        match self {
            Self::Level(level, position) => Self::Maybe(level, position, is_stored.clone()),
            other => other,
        }
    }
}

impl Storage {
    /// The coordinate of a position below `above` in a level that is not dense.
    pub fn coordinate(&self, level: usize, above: &Expression, position: Expression) -> Expression {
        match self {
            Self::List(list) => list.coordinate(position),
            Self::Levels(Levels { levels, .. }) => levels[level].coordinate(above, position),
            _ => position,
        }
    }

    /// The positions below `above` that a loop over a level goes through.
    pub fn segment(&self, level: usize, above: &Expression) -> (Expression, Expression) {
        match self {
            Self::List(list) => (0.into(), list.length.value()),
            Self::Levels(Levels { levels, .. }) => levels[level].segment(above),
            _ => (0.into(), 0.into()),
        }
    }

    /// The place below a position that a loop over a level goes through.
    pub fn below(&self, level: usize, above: &Expression, position: Expression) -> StoragePlace {
        match self {
            Self::List(list) => StoragePlace::Level(level + 1, list.place(position)),
            Self::Levels(Levels { levels, .. }) => StoragePlace::Level(level + 1, levels[level].below(above, position)),
            _ => StoragePlace::Level(level + 1, position),
        }
    }

    /// The position below `above` of a coordinate of a dense or bitmap level.
    pub fn located(&self, level: usize, above: &Expression, at: Expression) -> Expression {
        match self {
            Self::Levels(Levels { levels, .. }) => levels[level].located(above, at),
            _ => at,
        }
    }

    /// Whether the position of a bitmap level has something stored; none for levels that have it everywhere.
    pub fn is_set(&self, level: usize, position: &Expression) -> Option<Expression> {
        let Self::Levels(Levels { levels, .. }) = self else { return None };
        let StoredLevel::Bits { bits, .. } = &levels[level] else { return None };
        let word = bits.load([position.clone() / 64]);
        Some(word.bit(position.clone() % 64).not_equal(0))
    }

    /// Whether a level may have coordinates outside of its dimension.
    pub fn is_padded(&self, level: usize) -> bool {
        matches!(self, Self::Levels(Levels { levels, .. }) if levels[level].is_padded())
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

/// Whether the position of a coordinate in levels of a kind follows from the one above, whatever is stored.
pub(super) fn is_found(kind: Level) -> bool {
    matches!(kind, Level::Dense | Level::Bitmap)
}

/// Whether a workspace remembers which of its elements were set.
pub(super) fn is_list(workspace: &TensorVariable) -> bool {
    workspace.order() == 1 && is_sparse(workspace)
}
