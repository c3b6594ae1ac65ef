//! Kernels for tensors that are stored in levels, and what they are called with.

use super::leaf::Lowering;
use super::sizes::Sizes;
use super::storage::{Appended, Levels, Storage, StoredLevel, Written, is_sparse};
use crate::concrete::{Node, Statement};
use crate::element::ElementType::I64;
use crate::format::Level;
use crate::loops::{Access as Use, Buffer, Expression, Kernel, Parameter, Statement as Step};
use crate::notation::IndexVariable;

/// A kernel for tensors in levels.
#[derive(Clone, Debug)]
pub struct StoredKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// What its parameters are.
    pub slots: Vec<Slot>,
    /// Whether it gives all elements of a dense result a value, whatever they had before.
    pub overwrites: bool,
}

/// What a parameter of a [`StoredKernel`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The elements of a dense tensor, with a dimension for each of its modes.
    Elements(String),
    /// The extent of a dense level of a tensor.
    Extent(String, usize),
    /// The positions of a compressed level of a tensor.
    Positions(String, usize),
    /// The coordinates of a compressed level of a tensor.
    Coordinates(String, usize),
    /// The elements of a tensor in levels, in the order of the last one.
    Values(String),
    /// For each parent of the result, where the next element goes.
    Next,
    /// The coordinates of a mode of the result.
    ResultCoordinates(usize),
    /// The elements of the result.
    ResultValues,
    /// The value of a loop around the kernel.
    Fixed(IndexVariable),
    /// The extent of a variable.
    Size(IndexVariable),
    /// In how many parts a loop of threads is run.
    Chunks,
}

/// What becomes of the elements that a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Output {
    /// They are stored where they belong; the result is dense.
    Elements,
    /// They are counted, below each parent.
    Counts,
    /// They are written one after the other below each parent, from where `next` says on.
    Entries,
}

/// How a result with compressed levels comes to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appending {
    /// The modes of the leading dense levels, if elements are written where the result has them.
    pub parents: Vec<usize>,
    /// The modes whose coordinates are written.
    pub coordinates: Vec<usize>,
    /// Whether elements are written where the result has them, but for their order below a parent; else they are entries that have to be packed.
    pub in_place: bool,
    /// Whether no element is written twice; else the written ones are to be added up.
    pub once: bool,
}

impl Appending {
    /// That of a statement; none if its result is dense.
    pub fn new(statement: &Statement) -> Option<Self> {
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
        Some(Self { parents, coordinates, in_place, once })
    }
}

/// Whether the loops around assignments to the result go through its elements, each once: those that reduce are directly around the assignment, where a scalar takes their sum.
fn is_appended_once(statement: &Statement, node: &Node) -> bool {
    let Node::Forall(outer, body) = node else {
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
    while let Node::Forall(inner, body) = inside {
        reducing.push(&inner.variable);
        inside = body;
    }
    let depends = |variable: &IndexVariable| {
        statement.dependencies(variable).iter().any(|dependency| reducing.contains(&dependency))
    };
    matches!(inside, Node::Assign { operator: Some(_), .. }) && !target.iter().any(depends)
}

/// The kernel of a whole statement for tensors in the formats that they have in it: dense and compressed levels of whole dimensions, with coordinates in order and each there once. `narrow`
/// says whether the positions and coordinates of a tensor have 32 bits; if not, they have 64.
///
/// A dense result must be what [`Statement::initial`] says, or what the tensor is filled with, before, unless the kernel [overwrites](StoredKernel::overwrites) it.
pub fn stored(statement: &Statement, narrow: &dyn Fn(&str) -> bool, output: Output) -> StoredKernel {
    stored_leaf(statement, &[], narrow, (output, true))
}

/// The same kernel of what is inside of the loops over `fixed`, the outermost ones, whose values it takes. It overwrites elements only if it `may`: not where several such kernels
/// together make an element.
pub fn stored_leaf(
    statement: &Statement,
    fixed: &[IndexVariable],
    narrow: &dyn Fn(&str) -> bool,
    (output, may_overwrite): (Output, bool),
) -> StoredKernel {
    let may_overwrite = may_overwrite && output == Output::Elements && !statement.accumulates();
    match may_overwrite.then(|| attempt(statement, fixed, narrow, (output, true))) {
        Some(made) if made.overwrites => made,
        _ => attempt(statement, fixed, narrow, (output, false)),
    }
}

/// The same, where the loops give elements their first values, or not.
fn attempt(
    statement: &Statement,
    fixed: &[IndexVariable],
    narrow: &dyn Fn(&str) -> bool,
    (output, overwrites): (Output, bool),
) -> StoredKernel {
    let mut lowering = Lowering::new(statement, fixed);
    lowering.sizes = Sizes::parameters(statement, &mut lowering.names);
    let appending = Appending::new(statement);
    for tensor in statement.tensors().into_iter().filter(|tensor| is_sparse(tensor)) {
        let is_narrow = narrow(tensor.name());
        let storage = match &appending {
            Some(appending) if tensor == statement.result() => {
                Storage::Appended(lowering.appended(appending, is_narrow, output))
            }
            _ => Storage::Levels(Levels::new(tensor, is_narrow, &mut lowering.names)),
        };
        lowering.storage.insert(tensor.name().to_owned(), storage);
    }
    lowering.visit_all(&|_| true);
    let whole = lowering.all_positions().into_iter().filter(|(positions, _)| positions.outermost == 0);
    let counts: Vec<Step> =
        whole.collect::<Vec<_>>().into_iter().flat_map(|all| lowering.begin_positions(all)).collect();
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
    parameters.extend(lowering.chunks.clone().map(Parameter::Scalar));
    slots.push(Slot::Chunks);
    let overwrites = overwrites && !lowering.needs_initial;
    let kernel = Kernel { name: statement.result().name().to_owned(), parameters, body };
    let (kernel, sizes) = lowering.with_sizes(kernel);
    slots.extend(sizes.into_iter().map(Slot::Size));
    StoredKernel { kernel, slots, overwrites }
}

impl Lowering<'_> {
    /// Has the elements of the result appended, if it is not dense.
    pub(super) fn append_result(&mut self) {
        if let Some(appending) = Appending::new(self.statement) {
            let appended = self.appended(&appending, false, Output::Counts);
            self.storage.insert(self.statement.result().name().to_owned(), Storage::Appended(appended));
        }
    }

    fn appended(&mut self, appending: &Appending, narrow: bool, output: Output) -> Appended {
        let result = self.statement.result();
        let index = if narrow { crate::element::ElementType::I32 } else { I64 };
        let next = Buffer::new(self.names.fresh("next"), I64, 1, Use::Update);
        let coordinates = appending.coordinates.iter().map(|&mode| {
            let name = self.names.fresh(&format!("{}{mode}_crd", result.name()));
            (mode, Buffer::new(name, index, 1, Use::Update))
        });
        let coordinates = coordinates.collect();
        let name = self.names.fresh(&format!("{}_values", result.name()));
        let values = Buffer::new(name, result.element(), 1, Use::Update);
        let written = (output == Output::Entries).then_some(Written { coordinates, values });
        Appended { parents: appending.parents.clone(), next, written }
    }
}

impl Storage {
    /// Gives the parameters of a kernel that stand for this, of the tensor `name`.
    fn parameters(&self, name: &str, give: &mut dyn FnMut(Parameter, Slot)) {
        let mut buffer = |buffer: &Buffer, slot| give(Parameter::Buffer(buffer.clone()), slot);
        match self {
            Self::Buffer(elements) => buffer(elements, Slot::Elements(name.to_owned())),
            Self::Levels(Levels { levels, values }) => {
                for (level, stored) in levels.iter().enumerate() {
                    match stored {
                        StoredLevel::Dense(extent) => {
                            give(Parameter::Scalar(extent.clone()), Slot::Extent(name.to_owned(), level));
                        }
                        StoredLevel::Compressed { pos, crd, .. } => {
                            give(Parameter::Buffer(pos.clone()), Slot::Positions(name.to_owned(), level));
                            give(Parameter::Buffer(crd.clone()), Slot::Coordinates(name.to_owned(), level));
                        }
                    }
                }
                give(Parameter::Buffer(values.clone()), Slot::Values(name.to_owned()));
            }
            Self::Appended(Appended { next, written, .. }) => {
                buffer(next, Slot::Next);
                if let Some(Written { coordinates, values }) = written {
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
