//! Random programs as plain data.
//!
//! A program is a block of statements; a launch of a task with a context has a block for each point. All names are
//! unique in the whole program, so that what a name stands for does not depend on where it is used. That holds for
//! loops as well: they are written out turn by turn, with new names in each, and statements of different turns that are
//! one statement of the loop have its *site* in common.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use maniple::{AnyPoint, AnyRect};

use crate::value::{Kind, Operator, Word};

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident $letter:literal;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        })*
    };
}

names! {
    /// Names a statement.
    StatementId "#";
    /// Names a place in the text of a program: where a statement of a loop stands, whichever the turn.
    Site "~";
    /// Names a trace.
    TraceName "trace";
    /// Names an index space that is no piece.
    SpaceName "space";
    /// Names a partition of an index space.
    PartitionName "split";
    /// Names a field space.
    FieldsName "fields";
    /// Names a region.
    RegionName "region";
    /// Names the result of a launch, or of a function of such results.
    FutureName "future";
}

/// The number of a field in its field space, in the order of allocation; never used again.
pub type FieldNumber = usize;

/// An index space: one that is no piece, or the piece of a partition for a color's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// No piece.
    Root(SpaceName),
    /// A piece.
    Piece(PartitionName, usize),
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(space) => write!(f, "{space:?}"),
            Self::Piece(partition, color) => write!(f, "{partition:?}[{color}]"),
        }
    }
}

/// A region, or part of one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The region tree.
    pub region: RegionName,
    /// The rows.
    pub node: Node,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{:?}", self.region, self.node)
    }
}

/// A field of a part of a region.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The rows.
    pub place: Place,
    /// The field.
    pub field: FieldNumber,
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}.{}", self.place, self.field)
    }
}

/// Statements in program order.
#[derive(Clone, Default)]
pub struct Block(pub Vec<Statement>);

impl Block {
    /// The number of statements, nested ones too.
    #[must_use]
    pub fn count(&self) -> usize {
        let mut count = 0;
        self.each(&mut |_| count += 1);
        count
    }

    /// Visits all statements in reading order, nested ones too.
    pub fn each<'a>(&'a self, visit: &mut impl FnMut(&'a Statement)) {
        for statement in &self.0 {
            visit(statement);
            statement.nested().iter().for_each(|block| block.each(visit));
        }
    }

    /// The block with each statement, those nested in it first, replaced by others.
    #[must_use]
    pub fn rewritten(&self, replace: &mut impl FnMut(Statement) -> Vec<Statement>) -> Self {
        let mut statements = Vec::with_capacity(self.0.len());
        for statement in &self.0 {
            let mut statement = statement.clone();
            for block in statement.nested_mut() {
                *block = block.rewritten(replace);
            }
            statements.extend(replace(statement));
        }
        Self(statements)
    }
}

/// One step of a program.
#[derive(Clone)]
pub struct Statement {
    /// Its number.
    pub id: StatementId,
    /// The place in the text where the statement stands.
    pub site: Site,
    /// The action of the statement.
    pub action: Action,
}

impl Statement {
    /// A statement that stands in a place of its own.
    #[must_use]
    pub fn new(number: u32, action: Action) -> Self {
        Self { id: StatementId(number), site: Site(number), action }
    }

    /// The blocks inside it.
    #[must_use]
    pub fn nested(&self) -> &[Block] {
        match &self.action {
            Action::Launch(launch) => match &launch.body {
                Body::Blocks { blocks, .. } => blocks,
                Body::Leaf => &[],
            },
            Action::Inline(inline) => std::slice::from_ref(&inline.during),
            Action::Repeat(turns) => turns,
            Action::Traced(_, block) => std::slice::from_ref(block),
            _ => &[],
        }
    }

    /// Visits the results of launches that it uses, and those that the blocks inside it use.
    pub(crate) fn visit_used(&self, visit: &mut impl FnMut(FutureName)) {
        match &self.action {
            Action::Wait(name) => visit(*name),
            Action::Derive(_, derived) => match *derived {
                Derived::Map(name)
                | Derived::Reduce(name, _)
                | Derived::Fold(name)
                | Derived::Point(name, _)
                | Derived::Scan(name, ..) => visit(name),
                Derived::Zip(one, two) => [one, two].into_iter().for_each(&mut *visit),
            },
            Action::Launch(launch) => {
                for passed in &launch.arguments {
                    if let Passed::Future(name) | Passed::PerPoint(name) = passed {
                        visit(*name);
                    }
                }
            }
            _ => {}
        }
        for block in self.nested() {
            block.0.iter().for_each(|statement| statement.visit_used(visit));
        }
    }

    fn nested_mut(&mut self) -> &mut [Block] {
        match &mut self.action {
            Action::Launch(launch) if matches!(launch.body, Body::Blocks { .. }) => {
                match &mut Arc::make_mut(launch).body {
                    Body::Blocks { blocks, .. } => blocks,
                    Body::Leaf => &mut [],
                }
            }
            Action::Inline(inline) => std::slice::from_mut(&mut inline.during),
            Action::Repeat(turns) => turns,
            Action::Traced(_, block) => std::slice::from_mut(block),
            _ => &mut [],
        }
    }
}

/// The memory or file that is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backing {
    /// A vector.
    Memory,
    /// A slice that is to be read only.
    ReadOnly,
    /// A `.npy` file, by rows or by columns.
    Array {
        /// It is by columns.
        columns: bool,
    },
}

/// The action of a statement.
#[derive(Clone, Debug)]
pub enum Action {
    /// Makes an index space of the points of some rectangles.
    CreateSpace(SpaceName, Vec<AnyRect>),
    /// Destroys an index space that is no piece.
    DestroySpace(SpaceName),
    /// Makes a field space with some fields, and room for so many.
    CreateFields(FieldsName, Vec<Kind>, usize),
    /// Adds a field.
    AllocateField(FieldsName, Kind),
    /// Removes a field.
    FreeField(FieldsName, FieldNumber),
    /// Makes a region.
    CreateRegion(RegionName, SpaceName, FieldsName),
    /// Destroys a region.
    DestroyRegion(RegionName),
    /// Makes a scratch region.
    Scratch(RegionName, SpaceName, FieldsName),
    /// Drops a scratch region: nothing names it any more.
    Drop(RegionName),
    /// Splits an index space.
    CreatePartition(PartitionName, Node, Split),
    /// Destroys a partition.
    DestroyPartition(PartitionName),
    /// Launches a task.
    Launch(Arc<Launch>),
    /// Gives all points one value.
    Fill(Column, Word),
    /// Gives up the values of some fields.
    Invalidate(Place, Vec<FieldNumber>),
    /// Gives up copies of some fields that other nodes have the values of.
    ForgetCopies(Place, Vec<FieldNumber>),
    /// Attaches memory, or a file, that this number says the contents of, and names it.
    Attach(FutureName, Column, Word, Backing),
    /// Detaches memory of this name, with the values that the data has or not: the result is what it holds.
    Detach(FutureName, FutureName, bool),
    /// Copies from the first to the second.
    Copy(FutureName, Column, Column),
    /// Copies several fields from the first to the second.
    CopyFields(FutureName, Place, Place, Vec<(FieldNumber, FieldNumber)>),
    /// Contributes the first to the second.
    Contribute(FutureName, Operator, Column, Column),
    /// Copies `from[pointer[p]]` to `to[p]`.
    Gather(FutureName, Indirect),
    /// Copies `from[p]` to `to[pointer[p]]`.
    Scatter(FutureName, Indirect),
    /// Maps data for the launching task itself.
    Inline(Inline),
    /// Fences mapping.
    MappingFence,
    /// Fences execution.
    ExecutionFence,
    /// Makes a future of futures.
    Derive(FutureName, Derived),
    /// Waits for a future; the value counts into the result of the block.
    Wait(FutureName),
    /// Lets go of a future: the program does not ask for it any more.
    Forget(FutureName),
    /// A loop, turn by turn.
    Repeat(Vec<Block>),
    /// Statements that are marked as a trace.
    Traced(TraceName, Block),
}

/// A copy through pointers.
#[derive(Clone, Copy, Debug)]
pub struct Indirect {
    /// The source.
    pub from: Column,
    /// The pointers.
    pub pointers: Column,
    /// The destination.
    pub to: Column,
}

/// An inline mapping, held while statements are carried out.
#[derive(Clone, Debug)]
pub struct Inline {
    /// The data.
    pub column: Column,
    /// Whether it is changed.
    pub write: bool,
    /// The data is waited for only after what is done meanwhile, and looked at twice then.
    pub late: bool,
    /// The statements that run meanwhile.
    pub during: Block,
}

/// How a partition is computed.
#[derive(Clone, Debug)]
pub enum Split {
    /// By volume.
    Equal(usize),
    /// By weights.
    Weighted(Vec<u64>),
    /// In tiles of a shape, grown by a halo.
    Tiles(Vec<i64>, Vec<i64>),
    /// By lists of rectangles, which must lie inside: the colors and for each its rectangles.
    Explicit(AnyRect, Vec<Vec<AnyRect>>),
    /// Rectangles with the numbers of their colors, of so many.
    Coloring(usize, Vec<(usize, AnyRect)>),
    /// Another partition's pieces, as far as they are inside.
    Within(PartitionName),
    /// Of each color the points of both.
    Union(PartitionName, PartitionName),
    /// Of each color the common points.
    Intersection(PartitionName, PartitionName),
    /// Of each color the points of the first that the second lacks.
    Difference(PartitionName, PartitionName),
    /// By a field that holds colors, into so many.
    ByField(Column, usize),
    /// The points of the region that the pointers of each piece of a partition name; the column is of the partition's
    /// parent.
    Image(RegionName, PartitionName, Column),
    /// The points whose pointers lead into each piece of a partition; of the column's place, which is split.
    Preimage(Column, RegionName, PartitionName),
    /// By ranges of the values of a field.
    ByRanges(Column, Vec<Range<i128>>),
    /// As an image, by a field of which only the runtime knows the type.
    Named(RegionName, PartitionName, Link),
    /// As a preimage, by such a field.
    Naming(Link, RegionName, PartitionName),
}

impl Split {
    /// The values that it follows from.
    #[must_use]
    pub fn column(&self) -> Option<Column> {
        match self {
            Self::ByField(column, _)
            | Self::Image(_, _, column)
            | Self::Preimage(column, ..)
            | Self::ByRanges(column, _)
            | Self::Named(_, _, Link { column, .. })
            | Self::Naming(Link { column, .. }, ..) => Some(*column),
            _ => None,
        }
    }

    /// The other values that it follows from, of those that follow from two columns.
    #[must_use]
    pub fn other_column(&self) -> Option<Column> {
        match self {
            Self::Named(_, _, Link { column, meaning: Meaning::Firsts(end) })
            | Self::Naming(Link { column, meaning: Meaning::Firsts(end) }, ..) => {
                Some(Column { field: *end, ..*column })
            }
            _ => None,
        }
    }
}

/// How rows of a place name rows of one dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The values.
    pub column: Column,
    /// The meaning of the values.
    pub meaning: Meaning,
}

/// The meaning of the numbers of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// Numbers of rows.
    Rows,
    /// Pairs, of a first row and the one that ends the range.
    Ranges,
    /// First rows of ranges, of which this field has those that end them.
    Firsts(usize),
    /// First rows of ranges, each of which ends at the first row of the next one.
    Offsets,
}

/// A task launch.
#[derive(Clone)]
pub struct Launch {
    /// Names the results, and seeds what the task computes.
    pub name: FutureName,
    /// The points of an index launch; none for a single launch.
    pub domain: Option<AnyRect>,
    /// The parts of regions that the task uses.
    pub requirements: Vec<Use>,
    /// Values passed to it.
    pub arguments: Vec<Passed>,
    /// The body of the task.
    pub body: Body,
    /// The point, by its number, that goes wrong on purpose, and how.
    pub fault: Option<(usize, Fault)>,
}

/// How a task goes wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It panics before it does anything.
    PanicsAtOnce,
    /// It panics when it has done everything.
    PanicsAtEnd,
    /// It returns an error when it has done everything.
    Fails,
}

/// A region requirement.
#[derive(Clone, PartialEq, Eq)]
pub struct Use {
    /// The region.
    pub region: RegionName,
    /// Which part.
    pub target: Target,
    /// The fields.
    pub fields: Vec<FieldNumber>,
    /// The privilege on them.
    pub right: Right,
}

/// Which part of a region each point gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// All the same.
    Node(Node),
    /// Below this one, those listed by the point's number.
    Listed(Node, Vec<Node>),
    /// A piece.
    Piece(PartitionName, Pick),
}

/// Which piece a point gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pick {
    /// The color that is the point.
    Identity,
    /// The color whose number is the point's.
    Linearized,
    /// The color `factor * point + offset` in each coordinate, around the colors or not: plain data.
    Linear(i64, i64, bool),
    /// The color with the number `factor * number + offset`, modulo the number of colors.
    Affine(usize, usize),
    /// The nodes below the partition listed by the point's number.
    Listed(Vec<Node>),
}

/// A privilege.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Reads.
    Read,
    /// Reads and writes.
    Write,
    /// Writes all.
    Discard,
    /// Reduces.
    Reduce(Operator),
}

impl Right {
    /// Whether two uses of the same data must be ordered.
    #[must_use]
    pub fn interferes_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Read, Self::Read) => false,
            (Self::Reduce(a), Self::Reduce(b)) => a != b,
            _ => true,
        }
    }

    /// Whether a task that holds this may launch a task that wants the other.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        matches!(self, Self::Write | Self::Discard) || self == other
    }
}

/// An argument of a task.
#[derive(Clone, Copy, Debug)]
pub enum Passed {
    /// A number.
    Value(Word),
    /// A result.
    Future(FutureName),
    /// For each point the result of the same point.
    PerPoint(FutureName),
}

/// The body of a task.
#[derive(Clone, Debug)]
pub enum Body {
    /// Looks at and changes its data.
    Leaf,
    /// Runs a block for each point.
    Blocks {
        /// Declared as a task that never looks at its data.
        inner: bool,
        /// One a point.
        blocks: Vec<Block>,
    },
}

/// A future computed from others.
#[derive(Clone, Copy, Debug)]
pub enum Derived {
    /// A function of one.
    Map(FutureName),
    /// A function of two.
    Zip(FutureName, FutureName),
    /// All results of an index launch, reduced.
    Reduce(FutureName, Operator),
    /// All results of an index launch, folded in order.
    Fold(FutureName),
    /// The result of one point.
    Point(FutureName, AnyPoint),
    /// The results of an index launch, each combined with those before it, itself included or not.
    Scan(FutureName, Operator, bool),
}

/// A program and the seed that it was made from.
#[derive(Clone, Debug)]
pub struct Program {
    /// The seed.
    pub seed: u64,
    /// The statements of the program.
    pub body: Block,
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.id)?;
        if self.site.0 != self.id.0 {
            write!(f, "at {:?} ", self.site)?;
        }
        match &self.action {
            Action::Launch(launch) => launch.fmt(f),
            Action::Repeat(_) | Action::Traced(..) => self.action.fmt(f),
            action @ Action::Inline(inline) if !inline.during.0.is_empty() => action.fmt(f),
            // One line each, whatever the format asked for.
            action => write!(f, "{action:?}"),
        }
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} = launch", self.name)?;
        if let Some(domain) = self.domain {
            write!(f, " over {domain}")?;
        }
        write!(f, " {:?}", self.requirements)?;
        if !self.arguments.is_empty() {
            write!(f, " with {:?}", self.arguments)?;
        }
        if let Some((point, fault)) = self.fault {
            write!(f, " where number {point} {fault:?}")?;
        }
        match &self.body {
            Body::Leaf => Ok(()),
            Body::Blocks { inner, blocks } => {
                f.write_str(if *inner { " inner " } else { " " })?;
                f.debug_list().entries(blocks).finish()
            }
        }
    }
}

impl fmt::Debug for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} of {:?} {:?}", self.right, self.fields, self.region, self.target)
    }
}

impl fmt::Debug for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read => f.write_str("reads"),
            Self::Write => f.write_str("writes"),
            Self::Discard => f.write_str("discards"),
            Self::Reduce(operator) => write!(f, "reduces({operator:?})"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#?}", self.body)
    }
}
