//! The commands as methods of statements.

use super::command::Command;
use super::error::ScheduleError;
use super::parallelize::Races;
use crate::concrete::{Merge, Statement, Substitution, Unit};
use crate::format::Format;
use crate::notation::{Expression, IndexVariable};

impl Statement {
    /// Splits the loop over `variable` into blocks of `factor` iterations: `outer` counts the blocks, and `inner`,
    /// directly inside, the iterations of a block. The last block may be shorter.
    ///
    /// # Errors
    ///
    /// If there is no such loop, something was decided about it already, names are taken, or `factor` is less than 1.
    pub fn split(
        &self,
        variable: impl Into<IndexVariable>,
        outer: impl Into<IndexVariable>,
        inner: impl Into<IndexVariable>,
        factor: i64,
    ) -> Result<Self, ScheduleError> {
        let (variable, outer, inner) = (variable.into(), outer.into(), inner.into());
        Command::Split { variable, outer, inner, factor }.apply(self)
    }

    /// Splits the loop over `variable` into parts: the first begins at 0, each other one at one of the `points`, which
    /// ascend. `outer` counts the parts, and `inner`, directly inside, the iterations of a part.
    ///
    /// # Errors
    ///
    /// If there is no such loop, something was decided about it already, names are taken, or the points are not between
    /// 0 and the number of values and ascend.
    pub fn split_at(
        &self,
        variable: impl Into<IndexVariable>,
        outer: impl Into<IndexVariable>,
        inner: impl Into<IndexVariable>,
        points: &[i64],
    ) -> Result<Self, ScheduleError> {
        let (variable, outer, inner) = (variable.into(), outer.into(), inner.into());
        Command::SplitAt { variable, outer, inner, points: points.to_vec() }.apply(self)
    }

    /// Divides the loop over `variable` into `pieces` blocks of equal length, rounded up: `outer` counts the blocks,
    /// and `inner`, directly inside, the iterations of a block. Blocks at the end may be shorter, or empty.
    ///
    /// # Errors
    ///
    /// If there is no such loop, something was decided about it already, names are taken, or `pieces` is less than 1.
    pub fn divide(
        &self,
        variable: impl Into<IndexVariable>,
        outer: impl Into<IndexVariable>,
        inner: impl Into<IndexVariable>,
        pieces: i64,
    ) -> Result<Self, ScheduleError> {
        let (variable, outer, inner) = (variable.into(), outer.into(), inner.into());
        Command::Divide { variable, outer, inner, pieces }.apply(self)
    }

    /// Makes the loop over `outer` and the one over `inner`, directly inside of it, one loop over `fused`, which has
    /// all pairs of their values in the same order.
    ///
    /// # Errors
    ///
    /// If there are no such loops, something was decided about one of them already, or the name is taken.
    pub fn fuse(
        &self,
        outer: impl Into<IndexVariable>,
        inner: impl Into<IndexVariable>,
        fused: impl Into<IndexVariable>,
    ) -> Result<Self, ScheduleError> {
        Command::Fuse { outer: outer.into(), inner: inner.into(), fused: fused.into() }.apply(self)
    }

    /// Promises that `variable` has `extent` values; `bounded` takes its place. A schedule that was made for certain
    /// extents says so by this, and is refused for others.
    ///
    /// # Errors
    ///
    /// If the promise is wrong, there is no such loop, something was decided about it already, or the name is taken.
    pub fn bound(
        &self,
        variable: impl Into<IndexVariable>,
        bounded: impl Into<IndexVariable>,
        extent: i64,
    ) -> Result<Self, ScheduleError> {
        Command::Bound { variable: variable.into(), bounded: bounded.into(), extent }.apply(self)
    }

    /// Puts a loop over the positions of an operand in the place of the loop over `variable`: it visits what `tensor`
    /// stores, in the order in which it does. `variable` is that of a compressed level, whose positions below each
    /// position of the level above are visited, or what the variables of several levels, the last compressed, were
    /// [fused](Self::fuse) to, the outermost first: then one loop visits all that is stored below each position of the
    /// level above these.
    ///
    /// Divided, such a loop has blocks of as many elements each, however they are spread over rows (Senanayake et al.,
    /// *A sparse iteration space transformation framework for sparse tensor algebra*, OOPSLA 2020).
    ///
    /// # Errors
    ///
    /// If there is no such loop, something was decided about it already, the name is taken, `variable` is no such
    /// variable of one access to an operand, that level is dense, what is inside of the loop has an effect where the
    /// operand stores nothing, or the loop is not inside of those that tell where its positions begin.
    pub fn pos(
        &self,
        variable: impl Into<IndexVariable>,
        position: impl Into<IndexVariable>,
        tensor: &str,
    ) -> Result<Self, ScheduleError> {
        Command::Pos { variable: variable.into(), position: position.into(), tensor: tensor.to_owned() }.apply(self)
    }

    /// Says how the loop over `variable` finds the coordinates at which several operands, all of which an iteration
    /// needs, store something. Without this it goes through them [step by step](Merge::TwoFinger).
    ///
    /// By [bitmap](Merge::Bitmap) or [hash table](Merge::Hash), it is one command for two: a
    /// [`precompute`](Self::precompute) of the operand that has the same elements in all iterations of the loop around,
    /// and a [`store`](Self::store) of its workspace.
    ///
    /// # Errors
    ///
    /// If there is no such loop, or it does not intersect what several operands store in compressed levels; by bitmap
    /// or hash table also if each of these depends on the loop around.
    pub fn mergeby(&self, variable: impl Into<IndexVariable>, merge: Merge) -> Result<Self, ScheduleError> {
        Command::MergeBy { variable: variable.into(), merge }.apply(self)
    }

    /// Puts loops that are directly inside of one another into the given order, the first outermost. Loops keep what
    /// was decided about them.
    ///
    /// # Errors
    ///
    /// If other loops or workspaces are between them, or loops of one launch would be separated.
    pub fn reorder<V: Into<IndexVariable>>(&self, order: impl IntoIterator<Item = V>) -> Result<Self, ScheduleError> {
        Command::Reorder { order: order.into_iter().map(Into::into).collect() }.apply(self)
    }

    /// Computes `expression`, a part of the right side, into a workspace before it is used. The workspace is indexed by
    /// `variables` where it is used, and by new loops over `workspace_variables` where it is computed.
    ///
    /// Loops around the use, from the innermost: those over `variables` get a copy around the computation; those that
    /// only the computation needs go there, and sum in the workspace; those that only the use needs stay with it; the
    /// first that both need, and all around it, stay around both.
    ///
    /// # Errors
    ///
    /// If the expression is in no or several assignments, one of the variables is no loop around it, or is outside of a
    /// loop that both need, lists differ in length, or names are taken.
    pub fn precompute<V: Into<IndexVariable>, W: Into<IndexVariable>>(
        &self,
        expression: impl Into<Expression>,
        variables: impl IntoIterator<Item = V>,
        workspace_variables: impl IntoIterator<Item = W>,
        workspace: &str,
    ) -> Result<Self, ScheduleError> {
        Command::Precompute {
            expression: Box::new(expression.into()),
            variables: variables.into_iter().map(Into::into).collect(),
            workspace_variables: workspace_variables.into_iter().map(Into::into).collect(),
            workspace: workspace.to_owned(),
        }
        .apply(self)
    }

    /// Stores a workspace of one dimension so that it remembers which of its elements were set; loops over it visit no
    /// others. `{C}` is a list in the order of coordinates, `{C~o}` one in the order in which they were set, and `{B}`
    /// has a flag for each coordinate, all of which are looked at: each thread makes these once, with room for all
    /// coordinates. `{H}` is a hash table, made for each use with room for what may be set in it. `{D}` stores all
    /// elements, as workspaces do at first.
    ///
    /// # Errors
    ///
    /// If there is no such workspace, or it can't be stored so.
    pub fn store(&self, workspace: &str, format: Format) -> Result<Self, ScheduleError> {
        Command::Store { workspace: workspace.to_owned(), format }.apply(self)
    }

    /// Has threads take `length` iterations of the parallel loop over `variable` at a time, whenever one has ended
    /// those that it had, and not their shares of all at once: for iterations that take very different times, of which
    /// nothing is known before. What each thread makes once, as lists that rows are gathered in, is then made for each
    /// `length` iterations.
    ///
    /// # Errors
    ///
    /// If there is no such loop, it is not on threads or goes through positions, or `length` is not positive.
    pub fn chunk(&self, variable: impl Into<IndexVariable>, length: i64) -> Result<Self, ScheduleError> {
        Command::Chunk { variable: variable.into(), length }.apply(self)
    }

    /// Runs the iterations of the loop over `variable` at the same time on `unit`s of one processor.
    ///
    /// # Errors
    ///
    /// If there is no such loop, something was decided about it already, a loop around it is parallel already (lanes
    /// may be inside of threads), or iterations would write the same elements and `races` forbids it.
    pub fn parallelize(
        &self,
        variable: impl Into<IndexVariable>,
        unit: Unit,
        races: Races,
    ) -> Result<Self, ScheduleError> {
        Command::Parallelize { variable: variable.into(), unit, races }.apply(self)
    }

    /// Writes `factor` iterations of the loop over `variable` one after the other in machine code. What remains runs
    /// one by one.
    ///
    /// If all that the loop does is a loop that reduces into an element of its own, the iterations run at once, in one
    /// such loop.
    ///
    /// # Errors
    ///
    /// If there is no such loop, it is distributed or communicates, or `factor` is less than 1.
    pub fn unroll(&self, variable: impl Into<IndexVariable>, factor: u32) -> Result<Self, ScheduleError> {
        Command::Unroll { variable: variable.into(), factor }.apply(self)
    }

    /// Lets a library compute the loops over `variables`, which are directly inside of one another, and have nothing
    /// but an assignment inside.
    ///
    /// # Errors
    ///
    /// If the loops are not the innermost ones, something was decided about them already, or the library does not
    /// compute what they compute.
    pub fn substitute<V: Into<IndexVariable>>(
        &self,
        variables: impl IntoIterator<Item = V>,
        substitution: Substitution,
    ) -> Result<Self, ScheduleError> {
        let variables = variables.into_iter().map(Into::into).collect();
        Command::Substitute { variables, substitution }.apply(self)
    }

    /// Tiles the loops over `targets` onto a grid of processors: each is divided into as many blocks as the grid has
    /// processors in its dimension, the loops over blocks (`outer`) are put outside of those within them (`inner`), and
    /// become one launch.
    ///
    /// Distributing loops over the result's dimensions brings operands to results; distributing a reduction makes
    /// results be reduced across processors. Distributing `inner` loops again describes a hierarchy, such as the
    /// processors within each node.
    ///
    /// # Errors
    ///
    /// If lists differ in length, the loops are not directly inside of one another, there is something else than serial
    /// and distributed loops around them, or one of them can't be divided.
    pub fn distribute<T: Into<IndexVariable>, O: Into<IndexVariable>, I: Into<IndexVariable>>(
        &self,
        targets: impl IntoIterator<Item = T>,
        outer: impl IntoIterator<Item = O>,
        inner: impl IntoIterator<Item = I>,
        grid: &[i64],
    ) -> Result<Self, ScheduleError> {
        let targets = targets.into_iter().map(Into::into).collect();
        let outer = outer.into_iter().map(Into::into).collect();
        let inner = inner.into_iter().map(Into::into).collect();
        Command::Distribute { targets, outer, inner, grid: grid.to_vec() }.apply(self)
    }

    /// Makes loops that are directly inside of one another one launch, as they are.
    ///
    /// # Errors
    ///
    /// If something else is between them, something was decided about one of them already, or there is something else
    /// than serial and distributed loops around them.
    pub fn distribute_loops<V: Into<IndexVariable>>(
        &self,
        variables: impl IntoIterator<Item = V>,
    ) -> Result<Self, ScheduleError> {
        Command::DistributeLoops { variables: variables.into_iter().map(Into::into).collect() }.apply(self)
    }

    /// Makes each iteration of the loop over `variable` fetch, at its start, all that it needs of the tensors. Further
    /// outside means fewer and larger messages, and more memory. A tensor that is communicated nowhere is fetched at
    /// the innermost distributed loop.
    ///
    /// Loops that are distributed together are one launch, and it does not matter which of them is named.
    ///
    /// # Errors
    ///
    /// If there is no such loop or tensor, the tensor is not used inside, or is communicated within the same launch
    /// already.
    pub fn communicate<T: Into<String>>(
        &self,
        tensors: impl IntoIterator<Item = T>,
        variable: impl Into<IndexVariable>,
    ) -> Result<Self, ScheduleError> {
        let tensors = tensors.into_iter().map(Into::into).collect();
        Command::Communicate { tensors, variable: variable.into() }.apply(self)
    }

    /// Lets each iteration of the loops over `by`, which are around the loop over `target`, begin `target` at the sum
    /// of their values; `result` counts from there, and starts over from zero at the end. Processors of a launch that
    /// would need the same data at the same time then need different data, which a neighbour had before (Cannon, 1969).
    ///
    /// # Errors
    ///
    /// If there are no such loops, the loops over `by` are not around, something was decided about `target` already, it
    /// has no values, or the name is taken.
    pub fn rotate<V: Into<IndexVariable>>(
        &self,
        target: impl Into<IndexVariable>,
        by: impl IntoIterator<Item = V>,
        result: impl Into<IndexVariable>,
    ) -> Result<Self, ScheduleError> {
        let by = by.into_iter().map(Into::into).collect();
        Command::Rotate { target: target.into(), by, result: result.into() }.apply(self)
    }
}
