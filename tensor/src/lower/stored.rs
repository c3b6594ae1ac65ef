//! Kernels for tensors that are stored in levels, and what they are called with.

use super::beside::pattern;
use super::leaf::Lowering;
use super::sizes::Sizes;
use super::storage::{Appended, Levels, NumberTypes, Storage, StoredLevel, WrittenBuffers, is_sparse};
use crate::concrete::{Statement, StatementNode};
use crate::element::ElementType::I64;
use crate::format::Level;
use crate::loops::{Access as Use, Buffer, Expression, Kernel, Parameter, Reduction, Statement as Step};
use crate::notation::{Access, IndexVariable};

/// A kernel for tensors in levels.
#[derive(Clone, Debug)]
pub struct StoredKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// The meaning of each parameter.
    pub slots: Vec<Slot>,
    /// Whether it gives all elements of a dense result a value, whatever they had before.
    pub overwrites: bool,
    /// Whether elements of a result whose levels are known are written in the order of its coordinates, whatever that
    /// is; else they are in the order in which they were written first.
    pub follows: bool,
}

/// The meaning of a parameter of a [`StoredKernel`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The elements of a dense tensor, with a dimension for each of its modes.
    Elements(String),
    /// The extent of a dense level of a tensor.
    Extent(String, usize),
    /// The positions of a compressed level of a tensor, or how many there are below each of the level above one with
    /// slots.
    Positions(String, usize),
    /// The coordinates of a level of a tensor.
    Coordinates(String, usize),
    /// The bits of a level of a tensor.
    Bits(String, usize),
    /// How many slots a level of a tensor has below each position of the one above.
    Slots(String, usize),
    /// The elements of a tensor in levels, in the order of the last one.
    Values(String),
    /// For each parent of the result, where the next element goes.
    Next,
    /// The coordinates of a mode of the result.
    ResultCoordinates(usize),
    /// The elements of the result.
    ResultValues,
    /// The beginnings of the known elements of each parent of the result, and the end of the last ones.
    KnownPositions,
    /// Their coordinates.
    KnownCoordinates,
    /// How many positions a level of a tensor has, of which the kernel may be given a part.
    Count(String, usize),
    /// The value of a loop around the kernel.
    Fixed(IndexVariable),
    /// The extent of a variable.
    Size(IndexVariable),
    /// In how many parts a loop of threads is run.
    Chunks,
}

/// The destination of the elements that a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Output {
    /// They are stored where they belong; the result is dense.
    Elements,
    /// They are counted, below each parent.
    Counts,
    /// They are written one after the other below each parent, from where `next` says on.
    Entries,
    /// The same of a result whose levels are known: only elements are written.
    Again,
    /// They are stored at the positions of the operand whose [pattern](Appending::pattern) the result has.
    Beside,
}

/// How a result with compressed levels comes to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Appending {
    /// The modes of the leading dense levels, if elements are written where the result has them.
    pub parents: Vec<usize>,
    /// The modes whose coordinates are written.
    pub coordinates: Vec<usize>,
    /// Whether elements are written where the result has them, but for their order below a parent; else they are
    /// entries that have to be packed.
    pub in_place: bool,
    /// Whether no element is written twice; else the written ones are to be added up.
    pub once: bool,
    /// The access of the operand that stores something exactly where the result does, at the same levels, or at its
    /// outer ones: the result can have these, and nothing is appended.
    pub pattern: Option<Access>,
}

impl Appending {
    /// That of a statement; none if its result is dense.
    pub fn new(statement: &Statement) -> Option<Self> {
        let appending = Self::of_loops(statement)?;
        let pattern = pattern(statement, appending.once);
        Some(Self { pattern, ..appending })
    }

    /// The same without a pattern.
    pub(super) fn of_loops(statement: &Statement) -> Option<Self> {
        let result = statement.result();
        if !is_sparse(result) {
            return None;
        }
        let (format, once) = (result.format(), is_appended_once(statement, &statement.body));
        let leading = format.levels().iter().take_while(|level| **level == Level::Dense).count();
        let last = format.properties().last();
        let in_place = once
            && !statement.accumulates()
            && format.is_plain()
            && format.levels()[leading..] == [Level::Compressed]
            && last.is_some_and(|last| last.unique && last.ordered && !last.ranges);
        let (parents, coordinates) = match in_place {
            true => (format.order()[..leading].to_vec(), format.order()[leading..].to_vec()),
            false => (Vec::new(), (0..result.order()).collect()),
        };
        Some(Self { parents, coordinates, in_place, once, pattern: None })
    }

    /// Whether what is written is in the rows of the result: below each position of its leading dense levels, of which
    /// there are some.
    pub fn is_in_rows(&self) -> bool {
        self.in_place && !self.parents.is_empty()
    }
}

/// Whether elements of the result may be appended in parts, which are then added up.
pub(crate) fn adds_up(statement: &Statement) -> bool {
    let result = statement.result();
    let zero = Reduction::Sum.identity(result.element());
    statement.reduction().is_none_or(|reduction| reduction == Reduction::Sum && zero == Some(result.fill()))
}

/// Whether the loops around assignments to the result go through its elements, each once: those that reduce are
/// directly around the assignment, where a scalar takes their sum.
fn is_appended_once(statement: &Statement, node: &StatementNode) -> bool {
    let StatementNode::Forall(outer, body) = node else {
        return node.children().into_iter().all(|child| is_appended_once(statement, child));
    };
    let sites = body.sites();
    let Some(site) = sites.iter().find(|site| site.target.tensor == *statement.result()) else { return true };
    let target = &site.target.variables;
    if statement.ancestors(&outer.variable).iter().all(|ancestor| target.contains(ancestor)) {
        return is_appended_once(statement, body);
    }
    let mut reducing = vec![&outer.variable];
    let mut inside = &**body;
    while let StatementNode::Forall(inner, body) = inside {
        reducing.push(&inner.variable);
        inside = body;
    }
    let depends = |variable: &IndexVariable| {
        statement.dependencies(variable).iter().any(|dependency| reducing.contains(&dependency))
    };
    matches!(inside, StatementNode::Assign { operator: Some(_), .. }) && !target.iter().any(depends)
}

/// The kernel of a whole statement for tensors in the formats that they have in it: dense, compressed and counter
/// levels of whole dimensions, with coordinates in order and each there once; and below a compressed one, whose
/// coordinates may be there several times, singleton ones, of tensors whose positions loops go through. `types` are
/// those of positions and coordinates; the coordinates of an appended result have the type of its last level.
///
/// A dense result must be what [`Statement::initial`] says, or what the tensor is filled with, before, unless the
/// kernel [overwrites](StoredKernel::overwrites) it.
pub fn stored(statement: &Statement, types: NumberTypes<'_>, output: Output) -> StoredKernel {
    stored_leaf(statement, &[], types, output, true)
}

/// The same kernel of what is inside of the loops over `fixed`, the outermost ones, whose values it takes. It
/// overwrites elements only if it `may`: not where several such kernels together make an element.
pub fn stored_leaf(
    statement: &Statement,
    fixed: &[IndexVariable],
    types: NumberTypes<'_>,
    output: Output,
    may_overwrite: bool,
) -> StoredKernel {
    let may_overwrite = may_overwrite && output == Output::Elements && !statement.accumulates();
    match may_overwrite.then(|| attempt(statement, fixed, types, output, true)) {
        Some(made) if made.overwrites => made,
        _ => attempt(statement, fixed, types, output, false),
    }
}

/// The same, where the loops give elements their first values, or not.
fn attempt(
    statement: &Statement,
    fixed: &[IndexVariable],
    types: NumberTypes<'_>,
    output: Output,
    overwrites: bool,
) -> StoredKernel {
    let mut lowering = Lowering::new(statement, fixed);
    lowering.sizes = Sizes::parameters(statement, &mut lowering.names);
    let appending = Appending::new(statement);
    for tensor in statement.tensors().into_iter().filter(|tensor| is_sparse(tensor)) {
        let storage = match &appending {
            Some(appending) if tensor == statement.result() => match &appending.pattern {
                Some(access) if output == Output::Beside => {
                    let name = lowering.names.fresh(&format!("{}_values", tensor.name()));
                    Storage::Beside(Buffer::new(name, tensor.element(), 1, Use::Update), access.clone())
                }
                _ => Storage::Appended(lowering.appended(appending, types, output)),
            },
            _ => Storage::Levels(Levels::new(tensor, types, &mut lowering.names, !fixed.is_empty())),
        };
        lowering.storage.insert(tensor.name().to_owned(), storage);
    }
    lowering.visit_all(&|_| true);
    let whole = lowering.all_positions().into_iter().filter(|(positions, _)| positions.outermost == 0);
    let whole: Vec<_> = whole.collect();
    // A kernel inside of other loops may be given a part of what is stored.
    let mut given = Vec::new();
    for (positions, _) in whole.iter().filter(|_| !fixed.is_empty()) {
        let count = lowering.names.index(&format!("all_{}", positions.position));
        lowering.counts.insert(positions.position.clone(), count.value());
        given.push((Parameter::Scalar(count), Slot::Count(positions.access.tensor.name().to_owned(), positions.level)));
    }
    let begin = |(positions, visit)| lowering.begin_positions(positions, visit);
    let counts: Vec<Step> = whole.into_iter().flat_map(begin).collect();
    lowering.chunks = Some(lowering.names.index("chunks"));
    let (mut parameters, mut slots) = (Vec::new(), Vec::new());
    for tensor in statement.tensors() {
        if let Some(storage) = lowering.storage.get(tensor.name()) {
            storage.parameters(tensor.name(), &mut |parameter, slot| {
                parameters.push(parameter);
                slots.push(slot);
            });
        }
    }
    lowering.is_unset = overwrites;
    lowering.is_counting = output == Output::Counts;
    let body = lowering.inside_fixed(statement.inside(fixed));
    let body = Step::sequence(counts.into_iter().chain([body]));
    for variable in fixed {
        if let Some(Expression::Variable(parameter)) = lowering.known.get(variable) {
            parameters.push(Parameter::Scalar(parameter.clone()));
            slots.push(Slot::Fixed(variable.clone()));
        }
    }
    for (parameter, slot) in given {
        parameters.push(parameter);
        slots.push(slot);
    }
    parameters.extend(lowering.chunks.clone().map(Parameter::Scalar));
    slots.push(Slot::Chunks);
    let (overwrites, follows) = (overwrites && !lowering.needs_initial, lowering.follows);
    let kernel = Kernel { name: statement.result().name().to_owned(), parameters, body };
    let (kernel, sizes) = lowering.with_sizes(kernel);
    slots.extend(sizes.into_iter().map(Slot::Size));
    StoredKernel { kernel, slots, overwrites, follows }
}

impl Lowering<'_> {
    /// Has the elements of the result appended, if it is not dense.
    pub(super) fn append_result(&mut self) {
        if let Some(appending) = Appending::of_loops(self.statement) {
            let appended = self.appended(&appending, &|_, _, _| I64, Output::Counts);
            self.storage.insert(self.statement.result().name().to_owned(), Storage::Appended(appended));
        }
    }

    fn appended(&mut self, appending: &Appending, types: NumberTypes<'_>, output: Output) -> Appended {
        let result = self.statement.result();
        let level = result.format().rank().saturating_sub(1);
        let index = |what| types(result.name(), level, what);
        let next = Buffer::new(self.names.fresh("next"), I64, 1, Use::Update);
        let coordinates = appending.coordinates.iter().map(|&mode| {
            let name = self.names.fresh(&format!("{}{mode}_crd", result.name()));
            (mode, Buffer::new(name, index("crd"), 1, Use::Update))
        });
        let coordinates = coordinates.collect();
        let name = self.names.fresh(&format!("{}_values", result.name()));
        let values = Buffer::new(name, result.element(), 1, Use::Update);
        let written = match output {
            Output::Entries => Some(WrittenBuffers { coordinates, values }),
            Output::Again => Some(WrittenBuffers { coordinates: Vec::new(), values }),
            Output::Elements | Output::Counts | Output::Beside => None,
        };
        let known = (output == Output::Again).then(|| {
            ["pos", "crd"].map(|what| {
                Buffer::new(self.names.fresh(&format!("{}{level}_{what}", result.name())), index(what), 1, Use::Read)
            })
        });
        Appended { parents: appending.parents.clone(), next, written, known: known.map(Into::into) }
    }
}

impl Storage {
    /// Gives the parameters of a kernel that stand for this, of the tensor `name`.
    fn parameters(&self, name: &str, give: &mut dyn FnMut(Parameter, Slot)) {
        let mut buffer = |buffer: &Buffer, slot| give(Parameter::Buffer(buffer.clone()), slot);
        match self {
            Self::Buffer(elements) => buffer(elements, Slot::Elements(name.to_owned())),
            Self::Levels(Levels { levels, values }) => {
                levels.iter().enumerate().for_each(|(level, stored)| stored.parameters(name, level, give));
                give(Parameter::Buffer(values.clone()), Slot::Values(name.to_owned()));
            }
            Self::Beside(values, _) => buffer(values, Slot::Values(name.to_owned())),
            Self::Appended(Appended { next, written, known, .. }) => {
                buffer(next, Slot::Next);
                if let Some((pos, crd)) = known {
                    buffer(pos, Slot::KnownPositions);
                    buffer(crd, Slot::KnownCoordinates);
                }
                if let Some(WrittenBuffers { coordinates, values }) = written {
                    for (mode, coordinates) in coordinates {
                        buffer(coordinates, Slot::ResultCoordinates(*mode));
                    }
                    buffer(values, Slot::ResultValues);
                }
            }
            Self::Scalar(_) | Self::List(_) | Self::Bound(_) => {}
        }
    }
}

impl StoredLevel {
    /// Gives the parameters of a kernel that stand for a level of the tensor `name`.
    fn parameters(&self, name: &str, level: usize, give: &mut dyn FnMut(Parameter, Slot)) {
        let mut buffer = |buffer: &Buffer, slot: fn(String, usize) -> Slot, level: usize| {
            give(Parameter::Buffer(buffer.clone()), slot(name.to_owned(), level));
        };
        match self {
            Self::Dense(extent, level) => {
                give(Parameter::Scalar(extent.clone()), Slot::Extent(name.to_owned(), *level));
            }
            Self::Compressed { pos, crd, .. } => {
                buffer(pos, Slot::Positions, level);
                buffer(crd, Slot::Coordinates, level);
            }
            Self::Singleton(crd) => buffer(crd, Slot::Coordinates, level),
            Self::Bits { bits, extent, level } => {
                buffer(bits, Slot::Bits, *level);
                give(Parameter::Scalar(extent.clone()), Slot::Extent(name.to_owned(), *level));
            }
            Self::Counter { used, crd, slots } => {
                buffer(used, Slot::Positions, level);
                buffer(crd, Slot::Coordinates, level);
                give(Parameter::Scalar(slots.clone()), Slot::Slots(name.to_owned(), level));
            }
            // The extent is that of the level above, which is stored below.
            Self::Diagonals { pos, crd, .. } => {
                buffer(pos, Slot::Positions, 0);
                buffer(crd, Slot::Coordinates, 0);
            }
        }
    }
}
