//! The interface of libraries whose functions compute leaves in place of generated loops.
//!
//! A schedule names a library, `substitute({i, j, k}, NAME)`, and the library says whether it computes what these loops
//! do, and by which of its functions. `Gemm` is there from the start; [`register`](super::register) adds others.

use std::fmt;
use std::sync::Arc;

use super::SubstituteError;
use crate::bounds;
use crate::concrete::{Statement, StatementNode};
use crate::kernel::{Argument, Team, View};
use crate::loops::Reduction;
use crate::notation::{Access, Expression, IndexVariable, TensorVariable};

/// A library of functions that compute nests of loops.
///
/// ```
/// use std::sync::Arc;
///
/// use maniple_tensor::concrete::Statement;
/// use maniple_tensor::element::ElementType::F64;
/// use maniple_tensor::kernel::Team;
/// use maniple_tensor::notation::{Access, Expression, TensorVariable, parse};
/// use maniple_tensor::plan::Plan;
/// use maniple_tensor::schedule::Schedule;
/// use maniple_tensor::substitute::{LeafFunction, LeafLibrary, LeafViews, Nest, SubstituteError, register};
///
/// /// Sums of vectors: `a(i) += b(i)`.
/// #[derive(Debug)]
/// struct Vectors;
///
/// impl LeafLibrary for Vectors {
///     fn name(&self) -> &str {
///         "Vectors"
///     }
///
///     fn computes(&self) -> &str {
///         "a(i) += b(i)"
///     }
///
///     fn find(&self, nest: &Nest<'_>) -> Result<Arc<dyn LeafFunction>, String> {
///         let (target, operator, value) = nest.assignment()?;
///         match (operator, value) {
///             (Some(_), Expression::Access(of)) if of.variables == target.variables => {
///                 Ok(Arc::new(Sum { target: target.clone(), of: of.clone() }))
///             }
///             _ => Err(format!("{target} = {value}")),
///         }
///     }
/// }
///
/// #[derive(Debug)]
/// struct Sum {
///     target: Access,
///     of: Access,
/// }
///
/// impl LeafFunction for Sum {
///     fn call(&self, views: &mut LeafViews<'_, '_>, _: &dyn Team) -> Result<(), SubstituteError> {
///         let (mut result, operands) = views.split(&self.target)?;
///         let operand = operands.view(&self.of)?;
///         for at in result.dimensions()[0].low..result.dimensions()[0].high {
///             let sum = result.get::<f64>(&[at]).zip(operand.get::<f64>(&[at])).map(|(a, b)| a + b);
///             sum.is_some_and(|sum| result.set(&[at], sum));
///         }
///         Ok(())
///     }
/// }
///
/// register(Arc::new(Vectors))?;
/// let vectors = ["a", "b"].map(|name| TensorVariable::new(name, F64, [100]));
/// let schedule = "divide(i, io, ii, 4); distribute(io); substitute({ii}, Vectors)";
/// let schedule: Schedule = schedule.parse()?;
/// let statement = schedule.apply(&Statement::new(&parse("a(i) += b(i)", &vectors)?))?;
/// assert!(Plan::new(&statement)?.leaf().substituted.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait LeafLibrary: fmt::Debug + Send + Sync {
    /// The name of the library in schedules: a name as tensors have.
    fn name(&self) -> &str;

    /// A description of the computation of the library, in words, for errors.
    fn computes(&self) -> &str;

    /// The function that computes what loops do.
    ///
    /// # Errors
    ///
    /// The computation of the loops, if the library does not do it, in words: "A(i,j) = B(i,j)".
    fn find(&self, nest: &Nest<'_>) -> Result<Arc<dyn LeafFunction>, String>;
}

/// A function that computes a nest of loops on parts of tensors.
pub trait LeafFunction: fmt::Debug + Send + Sync {
    /// Computes. What is assigned with `+=` is added to what the result holds. A part may be empty.
    ///
    /// # Errors
    ///
    /// If the views don't fit.
    fn call(&self, views: &mut LeafViews<'_, '_>, team: &dyn Team) -> Result<(), SubstituteError>;
}

/// Loops that a library is to compute.
#[derive(Clone, Copy, Debug)]
pub struct Nest<'a> {
    /// The statement that they are in.
    pub statement: &'a Statement,
    /// The loops, and what they do.
    pub node: &'a StatementNode,
    /// The variables of the loops around, from the outermost.
    pub fixed: &'a [IndexVariable],
}

impl<'a> Nest<'a> {
    /// The variables of the loops, from the outermost, and what is in the innermost.
    pub fn loops(&self) -> (Vec<&'a IndexVariable>, &'a StatementNode) {
        let (mut loops, mut node) = (Vec::new(), self.node);
        while let StatementNode::Forall(inner, body) = node {
            loops.push(&inner.variable);
            node = body;
        }
        (loops, node)
    }

    /// The assignment in the innermost loop: the target, the operator that combines values with those that are there,
    /// and the value.
    ///
    /// # Errors
    ///
    /// A description of the node that is there instead, in words.
    pub fn assignment(&self) -> Result<(&'a Access, Option<Reduction>, &'a Expression), String> {
        match self.loops().1 {
            StatementNode::Assign { target, operator, value } => Ok((target, *operator, value)),
            StatementNode::Where { workspace, .. } => Err(format!("loops with the workspace {workspace} inside")),
            StatementNode::Forall(..) => Err("loops".into()),
        }
    }

    /// Whether the values of a variable of an access, where the loops around have theirs, are all those of a range.
    /// Functions get [views](LeafViews) of such ranges, so they must ask.
    pub fn is_range(&self, variable: &IndexVariable) -> bool {
        bounds::is_exact(self.statement, variable, self.fixed)
    }
}

/// The tensors of a leaf, as functions get them.
pub struct LeafViews<'a, 'v> {
    result: &'a mut View<'v>,
    operands: LeafOperands<'a, 'v>,
}

/// The tensors that a leaf reads.
#[derive(Clone, Copy)]
pub struct LeafOperands<'a, 'v> {
    tensors: &'a [TensorVariable],
    arguments: &'a [Argument<'v>],
    interval: &'a dyn Fn(&IndexVariable) -> (i64, i64),
}

impl<'a, 'v> LeafViews<'a, 'v> {
    /// Of the arguments of a leaf's kernel, of which the first is the result; `interval` gives the least value of a
    /// variable and the one after the greatest. None if the first is no view.
    pub(crate) fn new(
        tensors: &'a [TensorVariable],
        arguments: &'a mut [Argument<'v>],
        interval: &'a dyn Fn(&IndexVariable) -> (i64, i64),
    ) -> Option<Self> {
        let (Argument::View(result), arguments) = arguments.split_first_mut()? else { return None };
        Some(Self { result, operands: LeafOperands { tensors: tensors.get(1..)?, arguments, interval } })
    }

    /// The part of the result that an assignment to `target` writes, and the operands.
    ///
    /// # Errors
    ///
    /// [`SubstituteError::Rank`].
    pub fn split(&mut self, target: &Access) -> Result<(View<'_>, LeafOperands<'a, 'v>), SubstituteError> {
        check_rank(self.result, target)?;
        Ok((self.result.part_mut(&self.operands.bounds(target)), self.operands))
    }
}

impl<'a> LeafOperands<'a, '_> {
    /// The values of an access's variables.
    fn bounds(&self, access: &Access) -> Vec<(i64, i64)> {
        access.variables.iter().map(self.interval).collect()
    }

    /// The view of the elements that an access reads. Indices are those of the whole tensor.
    ///
    /// # Errors
    ///
    /// [`SubstituteError::Unknown`], if the leaf does not read the tensor, and [`SubstituteError::Rank`].
    pub fn view(&self, access: &Access) -> Result<View<'a>, SubstituteError> {
        let position = self.tensors.iter().position(|tensor| *tensor == access.tensor);
        match position.and_then(|position| self.arguments.get(position)) {
            Some(Argument::View(view)) => {
                check_rank(view, access)?;
                Ok(view.part(&self.bounds(access)))
            }
            _ => Err(SubstituteError::Unknown { tensor: access.tensor.name().to_owned() }),
        }
    }
}

fn check_rank(view: &View<'_>, access: &Access) -> Result<(), SubstituteError> {
    let dimensions = view.dimensions().len();
    if dimensions == access.variables.len() {
        return Ok(());
    }
    Err(SubstituteError::Rank { dimensions, indices: access.variables.iter().map(ToString::to_string).collect() })
}
