//! Tensors that are made where they are: each node makes a part of the rows.

use std::sync::Arc;

use maniple::Context;
use maniple::task::LeafCall;

use super::batches::Batches;
use super::error::DistributedError;
use super::fields::{index_type, is_narrow};
use super::lists::{Evidence, FileProblem, Lists, check_packed, packed, tasks_for};
use super::modes::is_in_region;
use super::pending::Pending;
use super::tensor::Tensor;
use crate::format::Format;
use crate::generate::{GenerateError, Generator, RandomElements};
use crate::notation::TensorVariable;
use crate::rectangle::Rectangle;
use crate::with_element;

impl Tensor {
    /// The tensor that statements call `variable`, with the entries that a generator makes of a seed, whatever the
    /// number of nodes. Each node makes the rows that are dealt to it, twice, and packs the blocks that are: none has
    /// all of the tensor.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Generate`] if the generator makes no tensors of these extents; [`DistributedError::Dense`]
    /// and [`DistributedError::Stored`] if [tasks make no tensor](super::is_made_by_tasks) of its format;
    /// [`DistributedError::Runtime`].
    pub fn generated<'a>(
        cx: &'a Context,
        variable: &'a TensorVariable,
        generator: &'a Generator,
        seed: u64,
    ) -> Pending<'a, Self> {
        Box::pin(async move {
            if is_in_region(variable.format()) {
                let listed = variable.stored(Format::coordinates(variable.order()));
                let listed = Box::pin(Self::generated(cx, &listed, generator, seed)).await?;
                let dense = listed.converted(cx, variable).await?;
                listed.destroy(cx)?;
                return Ok(dense);
            }
            check_packed(variable)?;
            generator.check(variable.dimensions()).map_err(|error| no_such(variable, error))?;
            let index = index_type(is_narrow(variable.dimensions()));
            let entry = variable.order() * index.size() + variable.element().size();
            let bytes = generator.most_entries(variable.dimensions()) * entry as f64;
            let parts = tasks_for(cx, bytes as usize);
            let rows = Rows { variable: variable.clone(), generator: generator.clone(), seed, parts };
            packed(cx, variable, Arc::new(rows), parts).await
        })
    }

    /// Gives a dense tensor random elements, each piece by a task.
    ///
    /// # Errors
    ///
    /// As of [`generate`](Self::generate).
    pub fn fill_randomly(
        &self,
        cx: &Context,
        pieces: &[Rectangle],
        elements: RandomElements,
    ) -> Result<(), DistributedError> {
        let dimensions = self.variable().dimensions().to_vec();
        with_element!(self.variable().element(), T => {
            self.generate(cx, pieces, move |point| elements.at::<T>(&dimensions, point))
        })
    }
}

fn no_such(variable: &TensorVariable, error: GenerateError) -> DistributedError {
    DistributedError::Generate { tensor: variable.name().to_owned(), error }
}

/// The rows of a tensor in so many parts.
struct Rows {
    variable: TensorVariable,
    generator: Generator,
    seed: u64,
    parts: i64,
}

impl Lists for Rows {
    fn parts(&self) -> i64 {
        self.parts
    }

    fn list(&self, call: &LeafCall<'_>, into: &mut Batches<'_>) -> maniple::Result<Result<Evidence, FileProblem>> {
        let (dimensions, part) = (self.variable.dimensions(), call.point().coords()[0]);
        let begin = |part: i64| (i128::from(dimensions[0]) * i128::from(part) / i128::from(self.parts)) as i64;
        let rows = begin(part)..begin(part + 1);
        let made = with_element!(self.variable.element(), T => {
            self.generator.for_each(dimensions, rows, self.seed, |at, value: T| into.push(at, value))
        });
        Ok(made.map(|()| Evidence::default()).map_err(|error| error.to_string().into()))
    }

    fn error(&self, problem: FileProblem) -> DistributedError {
        maniple::Error::application(problem.reason).into()
    }
}
