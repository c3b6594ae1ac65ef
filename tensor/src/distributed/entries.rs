//! The entries of tensors in levels, gone through by the tasks of all nodes: to find something out of them, or to make other tensors of them.

use maniple::space::{AnyRect, Rect};
use maniple::task::{Codec, LeafCall};
use maniple::{Context, FieldValue, Requirement, TaskLauncher};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::convert::Source;
use super::error::DistributedError;
use super::levels::Index;
use super::lists::{Lists, Wrong, check_packed, packed};
use super::numbers::{element_that_is, no_element};
use super::packing::task;
use super::pending::Pending;
use super::tensor::Tensor;
use crate::element::{Element, Scalar};
use crate::notation::TensorVariable;
use crate::with_element;

impl Tensor {
    /// Folds the entries that are stored in parts, each by a task on the node that has it: gives what the parts have come to, in their order. A part has all entries of some neighbouring positions of
    /// the outermost level, in the order in which they are stored, so all rows of a matrix by rows are in one part each. How many parts there are depends on the machine.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if its elements have another type; [`DistributedError::Dense`] if it is not in levels; [`DistributedError::Runtime`].
    pub async fn fold_entries<T: Element + FieldValue, R>(
        &self,
        cx: &Context,
        start: impl Fn() -> R + Send + Sync + 'static,
        fold: impl Fn(&mut R, &[i64], T) + Send + Sync + 'static,
    ) -> Result<Vec<R>, DistributedError>
    where
        R: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.check_in_levels::<T>()?;
        let (source, _) = Source::<T>::of(cx, self).await?;
        let (requirements, parts) = (source.requirements().to_vec(), source.parts());
        let task = task(("go through", self.variable()), Codec::of::<R>(), move |call| {
            let mut found = start();
            source.part(call)?.for_each(|at, value| fold(&mut found, at, value));
            Ok(found)
        });
        let launcher = requirements.into_iter().fold(TaskLauncher::new(&task), TaskLauncher::requirement);
        let domain = AnyRect::from(Rect::<1>::from(0..parts));
        Ok(cx.index_launch(domain, launcher.typed::<R>()).all().await?)
    }

    /// The tensor that statements call `variable`, with the entries that a function makes of those of this one: for each it calls its last argument with any number of others. Those at the same place
    /// are added. The function is called twice for each entry, and is to make the same each time. No node has all of either tensor.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if types of elements are others; [`DistributedError::Unfit`] if an entry is made outside of the extents; [`DistributedError::Dense`] and
    /// [`DistributedError::Stored`] if a tensor is not in levels, or [tasks can't pack](super::is_packed_by_tasks) the new one; [`DistributedError::Runtime`].
    pub async fn mapped<T: Element + FieldValue, U: Element + FieldValue>(
        &self,
        cx: &Context,
        variable: &TensorVariable,
        map: impl Fn(&[i64], T, &mut dyn FnMut(&[i64], U)) + Send + Sync + 'static,
    ) -> Result<Self, DistributedError> {
        self.check_in_levels::<T>()?;
        check_packed(variable)?;
        if variable.element() != U::TYPE {
            let (expected, found) = (format!("{} elements", variable.element()), format!("{} elements", U::TYPE));
            return Err(DistributedError::Shape { tensor: variable.name().to_owned(), expected, found });
        }
        let (source, tasks) = Source::<T>::of(cx, self).await?;
        let mapped = Mapped { source, map, variable: variable.clone() };
        match variable.dimensions().iter().all(|extent| i32::try_from(*extent).is_ok()) {
            true => packed_from::<i32, T, U, _>(cx, (mapped, tasks)).await,
            false => packed_from::<i64, T, U, _>(cx, (mapped, tasks)).await,
        }
    }

    /// The tensor that statements call `variable`, with the elements of this one in its type: floats are rounded, and integers must be the same numbers. Both are in levels.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Unfit`] if an element is none of the other type, as no complex number is of one that is not; as of [`mapped`](Self::mapped).
    pub fn cast<'a>(&'a self, cx: &'a Context, variable: &'a TensorVariable) -> Pending<'a, Self> {
        Box::pin(async move {
            check_packed(variable)?;
            let (cast, tasks) = with_element!(self.variable().element(), T => Cast::of::<T>(cx, self, variable).await)?;
            with_element!(variable.element(), T => match variable.dimensions().iter().all(|extent| i32::try_from(*extent).is_ok()) {
                true => packed::<i32, T, _>(cx, variable, (cast, tasks)).await,
                false => packed::<i64, T, _>(cx, variable, (cast, tasks)).await,
            })
        })
    }

    fn check_in_levels<T: Element>(&self) -> Result<(), DistributedError> {
        self.check_type(T::TYPE)?;
        match self.is_in_levels() {
            true => Ok(()),
            false => Err(DistributedError::Dense { tensor: self.variable().name().to_owned() }),
        }
    }
}

async fn packed_from<N: Index, T: Element + FieldValue, U: Element + FieldValue, F>(
    cx: &Context,
    (mapped, tasks): (Mapped<T, F>, i64),
) -> Result<Tensor, DistributedError>
where
    F: Fn(&[i64], T, &mut dyn FnMut(&[i64], U)) + Send + Sync + 'static,
{
    let variable = mapped.variable.clone();
    packed::<N, U, _>(cx, &variable, (mapped, tasks)).await
}

/// The entries of a tensor in another type than theirs.
struct Cast {
    variable: TensorVariable,
    parts: i64,
    requirements: Vec<Requirement>,
    visit: Box<Visit>,
}

/// Visits the entries of the part of a task's point.
type Visit = dyn Fn(&LeafCall<'_>, &mut dyn FnMut(&[i64], Scalar)) -> maniple::Result<()> + Send + Sync;

impl Cast {
    async fn of<T: Element + FieldValue>(
        cx: &Context,
        tensor: &Tensor,
        variable: &TensorVariable,
    ) -> Result<(Self, i64), DistributedError> {
        tensor.check_in_levels::<T>()?;
        let (source, tasks) = Source::<T>::of(cx, tensor).await?;
        let (parts, requirements) = (source.parts(), source.requirements().to_vec());
        let visit = move |call: &LeafCall<'_>, visit: &mut dyn FnMut(&[i64], Scalar)| {
            source.part(call)?.for_each(|at, value| visit(at, value.to_scalar()));
            Ok(())
        };
        Ok((Self { variable: variable.clone(), parts, requirements, visit: Box::new(visit) }, tasks))
    }
}

impl<T: Element> Lists<T> for Cast {
    type Evidence = ();

    fn parts(&self) -> i64 {
        self.parts
    }

    fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    fn for_each(&self, call: &LeafCall<'_>, mut visit: impl FnMut(&[i64], T)) -> maniple::Result<Result<(), Wrong>> {
        let mut wrong = None;
        (self.visit)(call, &mut |at, number| match element_that_is(number) {
            Some(element) => visit(at, element),
            None => wrong = wrong.take().or(Some(number)),
        })?;
        Ok(wrong.map_or(Ok(()), |number| Err(no_element::<T>(number))))
    }

    fn check(&self, _: &[()]) -> Result<(), Wrong> {
        Ok(())
    }

    fn error(&self, (_, reason): Wrong) -> DistributedError {
        DistributedError::Unfit { tensor: self.variable.name().to_owned(), reason }
    }
}

/// What is made of the entries of a tensor.
struct Mapped<T, F> {
    source: Source<T>,
    map: F,
    variable: TensorVariable,
}

impl<T: Element + FieldValue, U: Element, F> Lists<U> for Mapped<T, F>
where
    F: Fn(&[i64], T, &mut dyn FnMut(&[i64], U)) + Send + Sync + 'static,
{
    type Evidence = ();

    fn parts(&self) -> i64 {
        self.source.parts()
    }

    fn requirements(&self) -> &[Requirement] {
        self.source.requirements()
    }

    fn for_each(&self, call: &LeafCall<'_>, mut visit: impl FnMut(&[i64], U)) -> maniple::Result<Result<(), Wrong>> {
        let (extents, mut outside) = (self.variable.dimensions(), None);
        let mut within = |at: &[i64], value: U| match at.len() == extents.len()
            && at.iter().zip(extents).all(|(at, extent)| (0..*extent).contains(at))
        {
            true => visit(at, value),
            false => outside = outside.take().or_else(|| Some(at.to_vec())),
        };
        self.source.part(call)?.for_each(|at, value| (self.map)(at, value, &mut within));
        Ok(match outside {
            None => Ok(()),
            Some(at) => Err((None, format!("an entry was made at {at:?}, outside of {extents:?}"))),
        })
    }

    fn check(&self, _: &[()]) -> Result<(), Wrong> {
        Ok(())
    }

    fn error(&self, (_, reason): Wrong) -> DistributedError {
        DistributedError::Unfit { tensor: self.variable.name().to_owned(), reason }
    }
}
