//! A plan run on one processor, point by point and step by step. Each leaf sees copies of what was fetched, and nothing
//! else.

use std::collections::BTreeMap;

use super::graph::{Graph, GraphOperation, Launching};
use super::piece::Piece;
use super::step::{Leaf, Plan, Privilege, Step, Use};
use crate::element::{ElementType, Scalar};
use crate::format::Format;
use crate::kernel::{Argument, KernelError, ViewError, interpret};
use crate::loops::{IllFormed, check};
use crate::notation::{DenseArray, IndexVariable, TensorVariable};
use crate::rectangle::Rectangle;
use crate::substitute::SubstituteError;

/// A plan could not be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// A tensor has no elements.
    #[error("no elements are given for {0}")]
    Missing(String),
    /// A part is fetched from one that does not have it. This would be a mistake in the plan.
    #[error("{tensor} {wanted} is fetched from {found}, which has not all of it")]
    NotCovered {
        /// The tensor.
        tensor: String,
        /// The part that is fetched.
        wanted: String,
        /// The part that is there.
        found: String,
    },
    /// A tensor is in levels: only the runtime has such tensors in pieces.
    #[error("{tensor} is stored as {format}; plans run one after the other on dense tensors alone")]
    Stored {
        /// The tensor.
        tensor: String,
        /// Its format.
        format: Format,
    },
    /// A kernel failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The kernel is none.
    #[error(transparent)]
    IllFormed(#[from] IllFormed),
    /// A library refused a product.
    #[error(transparent)]
    Substitute(#[from] SubstituteError),
    /// A view is none.
    #[error(transparent)]
    View(#[from] ViewError),
}

/// A function that computes a leaf, given the values of [`Leaf::fixed`] and the kernel's arguments.
pub type RunLeaf<'a> = dyn FnMut(&[i64], &mut [Argument<'_>]) -> Result<(), RunError> + 'a;

/// One fetch of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// The tensor.
    pub tensor: String,
    /// The variables with values at the step that fetched.
    pub fixed: Vec<IndexVariable>,
    /// Their values.
    pub values: Vec<i64>,
    /// The number of elements.
    pub elements: i64,
}

impl Plan {
    /// Runs the plan with the interpreter on one processor, and gives the result, and all fetches in their order.
    ///
    /// Fetched parts are copied, and the leaf runs on the copies; results are then copied back, or combined with what
    /// is there. Elements that are only written are poisoned before. So the result is right only if rectangles and
    /// privileges are.
    ///
    /// # Errors
    ///
    /// If tensors are missing, the kernel fails, or reaches outside of what was fetched.
    pub fn run_sequentially(
        &self,
        operands: &BTreeMap<String, DenseArray>,
    ) -> Result<(DenseArray, Vec<Fetched>), RunError> {
        let kernel = check(&self.leaf().kernel)?;
        self.run_with(operands, &mut |_, arguments| Ok(interpret(&kernel, arguments, true)?))
    }

    /// The same with leaves that `leaf` computes, which is given the values of [`Leaf::fixed`] and the kernel's
    /// arguments.
    ///
    /// # Errors
    ///
    /// As [`run_sequentially`](Self::run_sequentially), and those of `leaf`.
    pub fn run_with(
        &self,
        operands: &BTreeMap<String, DenseArray>,
        leaf: &mut RunLeaf<'_>,
    ) -> Result<(DenseArray, Vec<Fetched>), RunError> {
        let mut pieces = BTreeMap::new();
        let result = self.statement.result();
        check_dense(&self.leaf().tensors)?;
        for tensor in self.statement.tensors() {
            let piece = match (operands.get(tensor.name()), self.initial) {
                (_, Some(initial)) if tensor == result => Piece::filled(Rectangle::whole(tensor.dimensions()), initial),
                (Some(array), _) => Piece::of(array),
                (None, _) if tensor == result && !self.statement.accumulates() => {
                    Piece::filled(Rectangle::whole(tensor.dimensions()), poison(tensor.element()))
                }
                (None, _) => return Err(RunError::Missing(tensor.name().to_owned())),
            };
            pieces.insert(tensor.name().to_owned(), piece);
        }
        let mut run = SequentialRun { plan: self, run_leaf: leaf, fetched: Vec::new() };
        run.step(&self.root, &[], &mut pieces)?;
        let missing = || RunError::Missing(result.name().to_owned());
        Ok((pieces.remove(result.name()).ok_or_else(missing)?.to_array(), run.fetched))
    }
}

fn check_dense(tensors: &[TensorVariable]) -> Result<(), RunError> {
    match tensors.iter().find(|tensor| !tensor.format().is_dense()) {
        None => Ok(()),
        Some(tensor) => Err(RunError::Stored { tensor: tensor.name().to_owned(), format: tensor.format().clone() }),
    }
}

/// A value that no result has by chance.
fn poison(element: ElementType) -> Scalar {
    crate::notation::cast(Scalar::I64(-0x5afe_dead), element)
}

type Pieces = BTreeMap<String, Piece>;

struct SequentialRun<'a, 'l> {
    plan: &'a Plan,
    run_leaf: &'a mut RunLeaf<'l>,
    fetched: Vec<Fetched>,
}

impl SequentialRun<'_, '_> {
    fn step(&mut self, step: &Step, values: &[i64], pieces: &mut Pieces) -> Result<(), RunError> {
        let (extents, fixed, uses, body) = match step {
            Step::Launch(launch) => (launch.extents.clone(), &launch.fixed, &launch.uses, &launch.body),
            Step::Sequence(sequence) => (vec![sequence.extent], &sequence.fixed, &sequence.uses, &sequence.body),
            Step::Leaf(leaf) => return self.leaf(leaf, values, pieces),
        };
        for number in 0..extents.iter().product() {
            let mut inside = values.to_vec();
            let mut rest: i64 = number;
            inside.resize(values.len() + extents.len(), 0);
            for (value, extent) in inside[values.len()..].iter_mut().zip(&extents).rev() {
                *value = rest % extent;
                rest /= extent;
            }
            self.iteration(uses, fixed, &inside, body, pieces)?;
        }
        Ok(())
    }

    /// One point or step: fetches, runs the body, and writes back.
    fn iteration(
        &mut self,
        uses: &[Use],
        fixed: &[IndexVariable],
        values: &[i64],
        body: &Step,
        pieces: &mut Pieces,
    ) -> Result<(), RunError> {
        let mut outside = BTreeMap::new();
        for Use { tensor, privilege, .. } in uses.iter().filter(|used| used.fetched) {
            let name = tensor.name();
            let parts = self.plan.rectangles(name, fixed).parts(values);
            let rectangle = self.plan.rectangle(name, fixed, values);
            let source = pieces.get(name).ok_or_else(|| RunError::Missing(name.to_owned()))?;
            let piece = fetched(source, tensor, *privilege, rectangle, &parts)?;
            if matches!(privilege, Privilege::Read | Privilege::ReadWrite) {
                let elements = parts.iter().map(Rectangle::volume).sum();
                let (fixed, values) = (fixed.to_vec(), values.to_vec());
                self.fetched.push(Fetched { tensor: name.to_owned(), fixed, values, elements });
            }
            outside.extend(pieces.insert(name.to_owned(), piece).map(|source| (name.to_owned(), (source, parts))));
        }
        self.step(body, values, pieces)?;
        for Use { tensor, privilege, .. } in uses.iter().filter(|used| used.fetched) {
            let Some((mut source, parts)) = outside.remove(tensor.name()) else { continue };
            if let Some(piece) = pieces.get(tensor.name()) {
                put_back(&mut source, piece, *privilege, &parts);
            }
            pieces.insert(tensor.name().to_owned(), source);
        }
        Ok(())
    }

    fn leaf(&mut self, leaf: &Leaf, values: &[i64], pieces: &mut Pieces) -> Result<(), RunError> {
        run_leaf(leaf, values, pieces, self.run_leaf)
    }
}

/// The piece of a tensor that a point is given: elements that are not fetched are poisoned, or have the value with
/// which reductions begin.
fn fetched(
    source: &Piece,
    tensor: &TensorVariable,
    privilege: Privilege,
    rectangle: Rectangle,
    parts: &[Rectangle],
) -> Result<Piece, RunError> {
    let old = source.part(&rectangle).ok_or_else(|| RunError::NotCovered {
        tensor: tensor.name().to_owned(),
        wanted: rectangle.to_string(),
        found: source.rectangle().to_string(),
    })?;
    let initial = match privilege {
        Privilege::Reduce(operator) => operator.identity(tensor.element()),
        Privilege::Read | Privilege::ReadWrite | Privilege::Write => None,
    };
    let mut piece = Piece::filled(rectangle, initial.unwrap_or_else(|| poison(tensor.element())));
    if matches!(privilege, Privilege::Read | Privilege::ReadWrite) {
        parts.iter().for_each(|part| piece.merge(&old, part, None));
    }
    Ok(piece)
}

/// Has a point's part of a tensor take effect.
fn put_back(source: &mut Piece, piece: &Piece, privilege: Privilege, parts: &[Rectangle]) {
    let mut merge = |operator| parts.iter().for_each(|part| source.merge(piece, part, operator));
    match privilege {
        Privilege::Read => {}
        Privilege::ReadWrite | Privilege::Write => merge(None),
        Privilege::Reduce(operator) => merge(Some(operator)),
    }
}

fn run_leaf(leaf: &Leaf, values: &[i64], pieces: &mut Pieces, run: &mut RunLeaf<'_>) -> Result<(), RunError> {
    let mut views = Vec::new();
    for (position, tensor) in leaf.tensors.iter().enumerate() {
        let piece = pieces.remove(tensor.name()).ok_or_else(|| RunError::Missing(tensor.name().to_owned()))?;
        views.push((tensor.name().to_owned(), position == 0, piece));
    }
    let mut arguments: Vec<Argument<'_>> = Vec::new();
    for (_, written, piece) in &mut views {
        arguments.push(if *written { piece.update()? } else { piece.read()? }.into());
    }
    arguments.extend(leaf.scalars(values).map(Argument::from));
    let done = run(values, &mut arguments);
    drop(arguments);
    pieces.extend(views.into_iter().map(|(name, _, piece)| (name, piece)));
    done
}

impl Graph {
    /// Runs all plans with the interpreter on one processor, each point on copies of its pieces, and gives all tensors
    /// as they are in the end.
    ///
    /// # Errors
    ///
    /// If tensors are missing that are read, a kernel fails, or reaches outside of its pieces.
    pub fn run_sequentially(
        &self,
        operands: &BTreeMap<String, DenseArray>,
    ) -> Result<BTreeMap<String, DenseArray>, RunError> {
        let mut pieces = BTreeMap::new();
        check_dense(&self.tensors)?;
        for tensor in &self.tensors {
            let made = || Piece::filled(Rectangle::whole(tensor.dimensions()), poison(tensor.element()));
            let piece = operands.get(tensor.name()).map_or_else(made, Piece::of);
            pieces.insert(tensor.name().to_owned(), piece);
        }
        self.run(&mut |operation, step| match operation {
            GraphOperation::Partition(_) | GraphOperation::Loop { .. } => Ok(()),
            GraphOperation::Fill { tensor, value } => {
                let tensor = &self.tensors[*tensor];
                let filled = Piece::filled(Rectangle::whole(tensor.dimensions()), *value);
                pieces.insert(tensor.name().to_owned(), filled);
                Ok(())
            }
            GraphOperation::Launch(launching) => {
                let points = 0..launching.order.points();
                points.into_iter().try_for_each(|point| self.point(launching, step, point, &mut pieces))
            }
        })?;
        Ok(pieces.into_iter().map(|(name, piece)| (name, piece.to_array())).collect())
    }

    /// Runs one point of a launch.
    fn point(&self, launching: &Launching, step: i64, point: i64, pieces: &mut Pieces) -> Result<(), RunError> {
        let (mut inside, mut given) = (Pieces::new(), Vec::new());
        for fetch in &launching.fetches {
            let tensor = &self.tensors[fetch.tensor];
            let parts = fetch.colors.parts(fetch.color(&launching.order, step, point));
            let source = pieces.get(tensor.name()).ok_or_else(|| RunError::Missing(tensor.name().to_owned()))?;
            let hull = parts.iter().fold(Rectangle::empty(tensor.order()), |hull, part| hull.hull(part));
            let privilege = fetch.privilege(&launching.order, step);
            inside.insert(tensor.name().to_owned(), fetched(source, tensor, privilege, hull, &parts)?);
            given.push((tensor.name(), privilege, parts));
        }
        if launching.runs_leaf {
            let leaf = launching.plan.leaf();
            let kernel = check(&leaf.kernel)?;
            let values = launching.order.values(step, point);
            run_leaf(leaf, &values, &mut inside, &mut |_, arguments| Ok(interpret(&kernel, arguments, true)?))?;
        }
        for (name, privilege, parts) in given {
            if let (Some(source), Some(piece)) = (pieces.get_mut(name), inside.get(name)) {
                put_back(source, piece, privilege, &parts);
            }
        }
        Ok(())
    }
}
