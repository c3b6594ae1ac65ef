//! The parts of a plan.

use std::collections::{BTreeMap, BTreeSet};

use super::space::Space;
use crate::bounds::{Bounds, Interval, RectangleOf};
use crate::concrete::Statement;
use crate::element::{ElementType, Scalar};
use crate::loops::{Kernel, Reduction};
use crate::lower::{Appending, Gathered, Output, Slot, StoredKernel, stored_leaf};
use crate::notation::{IndexVariable, TensorVariable};
use crate::rectangle::Rectangle;
use crate::substitute::Substituted;

/// How a statement runs on several processors. See [the module](super) for what to do with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The statement.
    pub statement: Statement,
    /// The value that all elements of the result must have at the beginning, if that matters.
    pub initial: Option<Scalar>,
    /// The outermost step.
    pub root: Step,
}

/// A part of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Points that run at the same time.
    Launch(Launch),
    /// Iterations that run one after the other.
    Sequence(Sequence),
    /// A kernel.
    Leaf(Box<Leaf>),
}

/// Points that run at the same time, on processors of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The number of launches around this one.
    pub depth: usize,
    /// The variable of each dimension.
    pub variables: Vec<IndexVariable>,
    /// The number of points in each dimension.
    pub extents: Vec<i64>,
    /// The variables that have a value inside: those of the steps around, from the outermost, and then the launch's
    /// own.
    pub fixed: Vec<IndexVariable>,
    /// The uses of tensors by each point.
    pub uses: Vec<Use>,
    /// The step that each point runs.
    pub body: Box<Step>,
}

/// Iterations that run one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// The variable.
    pub variable: IndexVariable,
    /// The number of iterations.
    pub extent: i64,
    /// The variables that have a value inside: those of the steps around, from the outermost, and then the sequence's
    /// own.
    pub fixed: Vec<IndexVariable>,
    /// The uses of tensors by each iteration.
    pub uses: Vec<Use>,
    /// The step that each iteration runs.
    pub body: Box<Step>,
}

/// A kernel, and what it is called with.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// The kernel. If all tensors are dense, its parameters are views of `tensors`, then the values of `fixed`, and
    /// then the extents of `sizes`.
    pub kernel: Kernel,
    /// The meaning of the kernel's parameters. Positions and coordinates of tensors in levels have 32 bits;
    /// [`Plan::kernel`] makes others.
    pub slots: Vec<Slot>,
    /// The destination of the elements that the kernel computes. If they are [entries](Output::Entries) of rows,
    /// another kernel has to count them before ([`Plan::counting`]).
    pub output: Output,
    /// If a tensor is in levels: whether the kernel gives all elements of its part of the result their first values.
    pub overwrites: bool,
    /// The tensors that the kernel reads only at coordinates of levels, and which these are.
    pub gathered: BTreeMap<String, Gathered>,
    /// The tensors, the result first.
    pub tensors: Vec<TensorVariable>,
    /// The variables of all steps around, from the outermost.
    pub fixed: Vec<IndexVariable>,
    /// The variables whose extents the kernel is given, and these extents: statements that differ in them alone have
    /// the same kernel. There are none where a loop is empty.
    pub sizes: Vec<(IndexVariable, i64)>,
    /// If the schedule says that a library is to compute the leaf: its function. The kernel computes the same.
    pub substituted: Option<Substituted>,
}

/// A tensor that a point or an iteration uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// The tensor.
    pub tensor: TensorVariable,
    /// The privilege on the tensor.
    pub privilege: Privilege,
    /// Whether the part that is used is brought near at the start of this point or iteration.
    pub fetched: bool,
}

/// A privilege on a part of a tensor: the accesses that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Privilege {
    /// Elements are read.
    Read,
    /// Elements are read and written, by this point alone.
    ReadWrite,
    /// All elements of the parts are written, by this point alone, and none is read: old ones need not be fetched.
    Write,
    /// Values are combined with elements, maybe by several points.
    Reduce(Reduction),
}

impl Plan {
    /// The part of `tensor` that is used where the variables `fixed`, those of some step, have these values: the
    /// smallest rectangle with all its elements. It is empty for a tensor that is not used, or if nothing happens
    /// there.
    pub fn rectangle(&self, tensor: &str, fixed: &[IndexVariable], values: &[i64]) -> Rectangle {
        self.rectangles(tensor, fixed).at(values)
    }

    /// [`rectangle`](Self::rectangle) as a function of the values: for more than a few of them this is quicker.
    pub fn rectangles(&self, tensor: &str, fixed: &[IndexVariable]) -> RectangleOf {
        RectangleOf::new(&self.statement, self.statement.inside(fixed), tensor, fixed)
    }

    /// The values that `variable` can have where the variables `fixed`, those of some step, have these values.
    pub fn interval(&self, variable: &IndexVariable, fixed: &[IndexVariable], values: &[i64]) -> Interval {
        let bounds = Bounds::new(&self.statement, fixed.iter().cloned().zip(values.iter().copied()));
        bounds.interval(variable).unwrap_or(Interval { low: 0, high: 0 })
    }

    /// All launches, the outermost first.
    pub fn launches(&self) -> Vec<&Launch> {
        let mut found = Vec::new();
        let mut step = &self.root;
        loop {
            step = match step {
                Step::Launch(launch) => {
                    found.push(launch);
                    &launch.body
                }
                Step::Sequence(sequence) => &sequence.body,
                Step::Leaf(_) => return found,
            };
        }
    }

    /// The kernel of the leaf where positions and coordinates of some tensors in levels are `narrow`, of 32 bits, and
    /// those of others have 64.
    pub fn kernel(&self, narrow: &dyn Fn(&str) -> bool) -> StoredKernel {
        let leaf = self.leaf();
        stored_leaf(&self.statement, &leaf.fixed, &wide_or(narrow), leaf.output, leaf.overwrites)
    }

    /// The name of the operand that has elements exactly where the result has, if the leaf stores these at the same
    /// positions: the result has the levels of this operand.
    pub fn pattern(&self) -> Option<String> {
        let appending = Appending::new(&self.statement).filter(|_| self.leaf().output == Output::Beside)?;
        appending.pattern.map(|access| access.tensor.name().to_owned())
    }

    /// The kernel that counts the elements of each row of a result whose rows are assembled.
    pub fn counting(&self, narrow: &dyn Fn(&str) -> bool) -> StoredKernel {
        stored_leaf(&self.statement, &self.leaf().fixed, &wide_or(narrow), Output::Counts, false)
    }

    /// The kernel, and what it is called with.
    pub fn leaf(&self) -> &Leaf {
        let mut step = &self.root;
        loop {
            step = match step {
                Step::Launch(launch) => &launch.body,
                Step::Sequence(sequence) => &sequence.body,
                Step::Leaf(leaf) => return leaf,
            };
        }
    }
}

impl Leaf {
    /// The spaces of a tensor that the kernel uses.
    pub fn spaces(&self, tensor: &TensorVariable) -> impl Iterator<Item = Space> {
        let spaces: BTreeSet<Space> = self.slots.iter().filter_map(|slot| Space::of(slot, tensor)).collect();
        spaces.into_iter()
    }

    /// The numbers that the kernel takes after the tensors: the values of [`fixed`](Self::fixed), and
    /// [sizes](Self::sizes).
    pub fn scalars(&self, values: &[i64]) -> impl Iterator<Item = i64> {
        values.iter().copied().chain(self.sizes.iter().map(|(_, extent)| *extent))
    }
}

/// Types of 32 bits for the numbers of tensors that are narrow, of 64 for others.
fn wide_or(narrow: &dyn Fn(&str) -> bool) -> impl Fn(&str, usize, &str) -> ElementType {
    move |name, _, _| if narrow(name) { ElementType::I32 } else { ElementType::I64 }
}
