//! Tensors in levels that are made where they are: each node makes a part of the rows.

use maniple::task::LeafCall;
use maniple::{Context, FieldValue, Requirement};

use super::error::DistributedError;
use super::levels::Index;
use super::lists::{Lists, Wrong, check_packed, packed, tasks_for};
use super::modes::is_in_region;
use super::pending::Pending;
use super::tensor::Tensor;
use crate::element::Element;
use crate::format::Format;
use crate::generate::{GenerateError, Generator};
use crate::notation::TensorVariable;
use crate::with_element;

impl Tensor {
    /// The tensor that statements call `variable`, with the entries that a generator makes of a seed, whatever the number of nodes. Each node makes the rows that are dealt to it, twice, and packs the
    /// blocks that are: none has all of the tensor.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Generate`] if the generator makes no tensors of these extents; [`DistributedError::Dense`] and [`DistributedError::Stored`] if [tasks make no tensor](super::is_made_by_tasks) of
    /// its format; [`DistributedError::Runtime`].
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
            let is_narrow = variable.dimensions().iter().all(|extent| i32::try_from(*extent).is_ok());
            with_element!(variable.element(), T => match is_narrow {
                true => generate::<i32, T>(cx, variable, (generator, seed)).await,
                false => generate::<i64, T>(cx, variable, (generator, seed)).await,
            })
        })
    }
}

async fn generate<N: Index, T: Element + FieldValue>(
    cx: &Context,
    variable: &TensorVariable,
    (generator, seed): (&Generator, u64),
) -> Result<Tensor, DistributedError> {
    let entry = variable.order() * size_of::<N>() + size_of::<T>();
    let bytes = generator.most_entries(variable.dimensions()) * entry as f64;
    let parts = tasks_for(cx, bytes as usize);
    let rows = Rows { variable: variable.clone(), generator: generator.clone(), seed, parts };
    packed::<N, T, _>(cx, variable, (rows, parts)).await
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

impl<T: Element> Lists<T> for Rows {
    type Evidence = ();

    fn parts(&self) -> i64 {
        self.parts
    }

    fn requirements(&self) -> &[Requirement] {
        &[]
    }

    fn for_each(&self, call: &LeafCall<'_>, visit: impl FnMut(&[i64], T)) -> maniple::Result<Result<(), Wrong>> {
        let (dimensions, part) = (self.variable.dimensions(), call.point().coords()[0]);
        let begin = |part: i64| (i128::from(dimensions[0]) * i128::from(part) / i128::from(self.parts)) as i64;
        let made = self.generator.for_each(dimensions, begin(part)..begin(part + 1), self.seed, visit);
        Ok(made.map_err(|error| (None, error.to_string())))
    }

    fn check(&self, _: &[()]) -> Result<(), Wrong> {
        // They are the same on all nodes.
        Ok(())
    }

    fn error(&self, (_, reason): Wrong) -> DistributedError {
        maniple::Error::application(reason).into()
    }
}
