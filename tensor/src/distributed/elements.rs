//! Many elements at once: slices into tensors and back, and elements made where they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use maniple::space::AnySpace;
use maniple::task::{Codec, TaskDefinition, TaskOptions, Value};
use maniple::{Context, FieldValue, FutureMap, Privilege};

use super::error::DistributedError;
use super::lists::FileProblem;
use super::rows::{Body, blocks_for, in_pieces};
use super::tensor::Tensor;
use crate::element::Element;
use crate::rectangle::Rectangle;

impl Tensor {
    /// Sets all elements to these, in the order of their coordinates, the last dimension fastest. Each node puts its
    /// own part in place, so all of a job's nodes are given all elements.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if there are too few or too many, or they have another type.
    pub fn write_elements<T: Element + FieldValue>(
        &self,
        cx: &Context,
        elements: impl Into<Arc<Vec<T>>>,
    ) -> Result<(), DistributedError> {
        self.check_dense()?;
        let elements = elements.into();
        let whole = Rectangle::whole(self.variable().dimensions());
        if elements.len() as i64 != whole.volume() {
            return Err(DistributedError::Shape {
                tensor: self.variable().name().to_owned(),
                expected: format!("{} elements", whole.volume()),
                found: elements.len().to_string(),
            });
        }
        let dimensions = self.variable().dimensions().to_vec();
        // How far elements are apart, in the order of coordinates, that lie side by side in the region.
        let step = self.modes().last().map_or(1, |last| dimensions[last + 1..].iter().product::<i64>()) as usize;
        let blocks = blocks_for(cx, size_of_val(elements.as_slice()));
        let launched = self.put(cx, &self.slabs(blocks), move |(): &mut (), row: &[i64], into: &mut [T]| {
            let first = row.iter().zip(&dimensions).fold(0, |position, (index, extent)| position * extent + index);
            let from = &elements[first as usize..];
            match step {
                1 => into.copy_from_slice(&from[..into.len()]),
                _ => into.iter_mut().zip(from.iter().step_by(step)).for_each(|(into, from)| *into = *from),
            }
            Ok(())
        })?;
        drop(launched);
        Ok(())
    }

    /// All elements in the order of their coordinates, the last dimension fastest, as they are after all that was
    /// launched before this call.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if they have another type, [`DistributedError::Runtime`]: what has failed before.
    pub fn read_elements<'t, T: Element + FieldValue>(
        &'t self,
        cx: &Context,
    ) -> impl Future<Output = Result<Vec<T>, DistributedError>> + Send + use<'t, T> {
        let checked = self.check_dense().and_then(|()| self.check_type(T::TYPE));
        let reading = checked.map(|()| cx.read_field::<T>(self.region(), self.field()));
        async move {
            let stored = reading?.await?;
            Ok(if self.modes().are_in_order() { stored } else { self.in_order(&stored) })
        }
    }

    /// Elements in the order of their coordinates, of those in the order of the region.
    fn in_order<T: Copy>(&self, stored: &[T]) -> Vec<T> {
        let dimensions = self.variable().dimensions();
        let strides = self.modes().strides(dimensions);
        let place = |position: usize| {
            let mut rest = position as i64;
            let index = |(extent, stride): (&i64, &i64)| {
                let index = rest % extent;
                rest /= extent;
                index * stride
            };
            dimensions.iter().zip(&strides).rev().map(index).sum::<i64>() as usize
        };
        (0..stored.len()).map(|position| stored[place(position)]).collect()
    }

    /// Sets the elements in each of these rectangles to a function of their coordinates, with a task for each. Elements
    /// that are in none stay as they are. Equal rectangles count once; others do not overlap. A tensor that is made in
    /// the pieces of its placement need not move before it is used.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if the elements have another type, [`DistributedError::Runtime`].
    pub fn generate<T: Element + FieldValue>(
        &self,
        cx: &Context,
        pieces: &[Rectangle],
        value: impl Fn(&[i64]) -> T + Send + Sync + 'static,
    ) -> Result<(), DistributedError> {
        let last = self.modes().last();
        let launched = self.put(cx, pieces, move |(): &mut (), row: &[i64], into: &mut [T]| {
            let mut coordinates = [0; 4];
            let coordinates = &mut coordinates[..row.len()];
            coordinates.copy_from_slice(row);
            for element in into {
                *element = value(coordinates);
                if let Some(last) = last {
                    coordinates[last] += 1;
                }
            }
            Ok(())
        })?;
        drop(launched);
        Ok(())
    }

    /// The tensor in at most so many blocks of its first dimension, of equal size but for the last one: for
    /// [`generate`](Self::generate), about as many as the job has processors. All nodes have to name one number,
    /// whatever machines they have.
    pub fn slabs(&self, count: usize) -> Vec<Rectangle> {
        let dimensions = self.variable().dimensions();
        let Some((&rows, rest)) = dimensions.split_first() else { return vec![Rectangle::whole(dimensions)] };
        let count = count.max(1) as i64;
        let block = ((rows as u64).div_ceil(count as u64) as i64).max(1);
        let slab = |number: i64| {
            let first = std::iter::once((number * block, ((number + 1) * block).min(rows)));
            Rectangle::new(first.chain(rest.iter().map(|&extent| (0, extent))))
        };
        (0..count).map(slab).filter(|slab| !slab.is_empty()).collect()
    }

    /// Has tasks, one for each piece, set rows of elements: `row` is given what the task keeps from row to row, the
    /// coordinates of the first, and where they go. Rows run along the dimension that is stored last. Gives what is
    /// wrong for each piece, if there are some: a task ends with the first row of which something is.
    pub(super) fn put<T: Element, K: Default>(
        &self,
        cx: &Context,
        pieces: &[Rectangle],
        row: impl Fn(&mut K, &[i64], &mut [T]) -> Result<(), FileProblem> + Send + Sync + 'static,
    ) -> Result<Option<Put>, DistributedError> {
        self.check_dense()?;
        self.check_type(T::TYPE)?;
        let (field, modes) = (self.field(), self.modes().clone());
        self.put_with(
            cx,
            pieces,
            Box::new(move |call| {
                let (mut kept, mut outcome) = (K::default(), Ok(()));
                call.write_rows(0, field, &mut |at, into: &mut [T]| {
                    if outcome.is_ok() {
                        outcome = row(&mut kept, modes.coordinates(at).as_slice(), into);
                    }
                })?;
                Ok(Value::new(outcome))
            }),
        )
    }

    /// [`put`](Self::put) for elements of all types.
    fn put_with(&self, cx: &Context, pieces: &[Rectangle], body: Box<Body>) -> Result<Option<Put>, DistributedError> {
        let pieces: BTreeSet<&Rectangle> = pieces.iter().filter(|piece| !piece.is_empty()).collect();
        let pieces: Vec<AnySpace> =
            pieces.iter().map(|piece| self.rect(piece).map(AnySpace::from)).collect::<Result<_, _>>()?;
        if pieces.is_empty() {
            return Ok(None);
        }
        let task = TaskDefinition::new("make elements").codec(Codec::of::<Result<(), FileProblem>>());
        let task = task.leaf(TaskOptions::default(), body);
        let (domain, launcher) = in_pieces(cx, self.region(), self.field(), Privilege::Discard, &pieces, task)?;
        Ok(Some(cx.index_launch(domain, launcher.typed::<Result<(), FileProblem>>())))
    }
}

/// Elements that are being set: what is wrong for each piece.
type Put = FutureMap<Result<(), FileProblem>>;
