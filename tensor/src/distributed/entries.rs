//! The entries of tensors in levels, gone through by the tasks of all nodes: to find something out of them, or to make
//! other tensors of them.

use std::sync::Arc;

use maniple::space::{AnyRect, Rect};
use maniple::task::LeafCall;
use maniple::{Context, FieldValue, Requirement, TaskLauncher};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::batches::Batches;
use super::convert::ConversionSource;
use super::error::DistributedError;
use super::lists::{Evidence, FileProblem, Lists, check_packed, packed};
use super::numbers::{HAS_ELEMENT, as_element, no_element};
use super::packing::task;
use super::pending::Pending;
use super::tensor::Tensor;
use crate::element::{Element, ElementType, Scalar};
use crate::notation::TensorVariable;
use crate::with_element;

impl Tensor {
    /// Folds the entries that are stored in parts, each by a task on the node that has it: gives what the parts have
    /// come to, in their order. A part has all entries of some neighbouring positions of the outermost level, in the
    /// order in which they are stored, so all rows of a matrix by rows are in one part each. How many parts there are
    /// depends on the machine.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if its elements have another type; [`DistributedError::Dense`] if it is not in
    /// levels; [`DistributedError::Runtime`].
    pub async fn fold_entries<T: Element + FieldValue, R>(
        &self,
        cx: &Context,
        start: impl Fn() -> R + Send + Sync + 'static,
        fold: impl Fn(&mut R, &[i64], T) + Send + Sync + 'static,
    ) -> Result<Vec<R>, DistributedError>
    where
        R: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.check_in_levels(T::TYPE)?;
        let (source, _) = ConversionSource::of(cx, self).await?;
        let (requirements, parts) = (source.requirements().to_vec(), source.parts());
        let task = task("go through", self.variable(), move |call| {
            let mut found = start();
            source.part::<T>(call)?.for_each(|at, value| fold(&mut found, at, value));
            Ok(found)
        });
        let launcher = requirements.into_iter().fold(TaskLauncher::new(&task), TaskLauncher::requirement);
        let domain = AnyRect::from(Rect::<1>::from(0..parts));
        Ok(cx.index_launch(domain, launcher.typed::<R>()).all().await?)
    }

    /// The tensor that statements call `variable`, with the entries that a function makes of those of this one: for
    /// each it calls its last argument with any number of others. Those at the same place are added. The function is
    /// called twice for each entry, and is to make the same each time. No node has all of either tensor.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if types of elements are others; [`DistributedError::Unfit`] if an entry is made
    /// outside of the extents; [`DistributedError::Dense`] and [`DistributedError::Stored`] if a tensor is not in
    /// levels, or [tasks can't pack](super::is_packed_by_tasks) the new one; [`DistributedError::Runtime`].
    pub async fn mapped<T: Element + FieldValue, U: Element + FieldValue>(
        &self,
        cx: &Context,
        variable: &TensorVariable,
        map: impl Fn(&[i64], T, &mut dyn FnMut(&[i64], U)) + Send + Sync + 'static,
    ) -> Result<Self, DistributedError> {
        self.check_in_levels(T::TYPE)?;
        check_packed(variable)?;
        if variable.element() != U::TYPE {
            let (expected, found) = (format!("{} elements", variable.element()), format!("{} elements", U::TYPE));
            return Err(DistributedError::Shape { tensor: variable.name().to_owned(), expected, found });
        }
        let extents = variable.dimensions().to_vec();
        let visit: Box<Visit> = Box::new(move |source, call, into| {
            let mut outside = None;
            let mut within = |at: &[i64], value: U| match at.len() == extents.len()
                && at.iter().zip(&extents).all(|(at, extent)| (0..*extent).contains(at))
            {
                true => into.push(at, value),
                false => outside = outside.take().or_else(|| Some(at.to_vec())),
            };
            source.part::<T>(call)?.for_each(|at, value| map(at, value, &mut within));
            Ok(match outside {
                None => Ok(Evidence::default()),
                Some(at) => Err(format!("an entry was made at {at:?}, outside of {extents:?}").into()),
            })
        });
        Changed::packed(cx, self, variable, visit).await
    }

    /// The tensor that statements call `variable`, with the elements of this one in its type: floats are rounded, and
    /// integers must be the same numbers. Both are in levels.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Unfit`] if an element is none of the other type, as no complex number is of one that is not;
    /// as of [`mapped`](Self::mapped).
    pub fn cast<'a>(&'a self, cx: &'a Context, variable: &'a TensorVariable) -> Pending<'a, Self> {
        let element = variable.element();
        self.with_elements(cx, variable, Box::new(move |value| as_element(value, element)))
    }

    /// The tensor that statements call `variable`, with what a function makes of each element of this one, of whatever
    /// type. Both are in levels.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Unfit`] if it makes none of an element; as of [`mapped`](Self::mapped).
    pub fn with_elements<'a>(
        &'a self,
        cx: &'a Context,
        variable: &'a TensorVariable,
        change: Box<Change>,
    ) -> Pending<'a, Self> {
        Box::pin(async move {
            check_packed(variable)?;
            self.check_in_levels(self.variable().element())?;
            let element = variable.element();
            let visit: Box<Visit> = Box::new(move |source, call, into| {
                let change = &*change;
                with_element!(source.element(), T => changed::<T>(source, call, change, element, into))
            });
            Changed::packed(cx, self, variable, visit).await
        })
    }

    fn check_in_levels(&self, element: ElementType) -> Result<(), DistributedError> {
        self.check_type(element)?;
        match self.is_in_levels() {
            true => Ok(()),
            false => Err(DistributedError::Dense { tensor: self.variable().name().to_owned() }),
        }
    }
}

/// A function that lists the entries that are made of those of the part of a task's point.
type Visit = dyn Fn(&ConversionSource, &LeafCall<'_>, &mut Batches<'_>) -> maniple::Result<VisitResult> + Send + Sync;

/// The evidence that a visit gives, or what is wrong with the file.
type VisitResult = Result<Evidence, FileProblem>;

/// A function that makes an element of another one, or none.
type Change = dyn Fn(Scalar) -> Option<Scalar> + Send + Sync;

/// Entries that are made of those of a tensor.
struct Changed {
    source: ConversionSource,
    variable: TensorVariable,
    visit: Box<Visit>,
}

impl Changed {
    /// The tensor of what is made of the entries of another one.
    async fn packed(
        cx: &Context,
        tensor: &Tensor,
        variable: &TensorVariable,
        visit: Box<Visit>,
    ) -> Result<Tensor, DistributedError> {
        let (source, tasks) = ConversionSource::of(cx, tensor).await?;
        let changed = Self { source, variable: variable.clone(), visit };
        packed(cx, variable, Arc::new(changed), tasks).await
    }
}

impl Lists for Changed {
    fn parts(&self) -> i64 {
        self.source.parts()
    }

    fn requirements(&self) -> &[Requirement] {
        self.source.requirements()
    }

    fn list(&self, call: &LeafCall<'_>, into: &mut Batches<'_>) -> maniple::Result<Result<Evidence, FileProblem>> {
        (self.visit)(&self.source, call, into)
    }

    fn error(&self, problem: FileProblem) -> DistributedError {
        DistributedError::Unfit { tensor: self.variable.name().to_owned(), reason: problem.reason }
    }
}

/// Lists the entries of a part with other elements, of this type.
fn changed<T: Element>(
    source: &ConversionSource,
    call: &LeafCall<'_>,
    change: &Change,
    element: ElementType,
    into: &mut Batches<'_>,
) -> maniple::Result<Result<Evidence, FileProblem>> {
    let mut wrong = None;
    source.part::<T>(call)?.for_each(|at, value| match change(value.to_scalar()) {
        Some(value) => into.push_scalar(at, value),
        None => wrong = wrong.or(Some(value.to_scalar())),
    });
    Ok(wrong.map_or(Ok(Evidence::default()), |number| Err(no_element(|| HAS_ELEMENT.to_owned(), number, element))))
}
