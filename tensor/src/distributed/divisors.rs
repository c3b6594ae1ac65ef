//! Divisors that are checked each time before something is computed.

use maniple::space::{AnyRect, AnySpace};
use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{Context, Error, FieldId, FieldValue, Privilege, TaskLauncher};

use super::error::DistributedError;
use super::rows::{blocks_for, in_pieces};
use super::tensor::Tensor;
use crate::element::{Element, Scalar};
use crate::notation::{DivisorError, is_divisor};
use crate::with_element;

/// The launch of tasks that look at all elements of a dense tensor, and fail if zero divided by one of them is not
/// zero. None if there are no elements.
pub(super) fn checking(cx: &Context, tensor: &Tensor) -> Result<Option<(AnyRect, TaskLauncher)>, DistributedError> {
    let variable = tensor.variable();
    let bytes = variable.dimensions().iter().product::<i64>().max(0) as usize * variable.element().size();
    let slabs = tensor.slabs(blocks_for(cx, bytes));
    let pieces: Vec<AnySpace> =
        slabs.iter().map(|slab| tensor.rect(slab).map(AnySpace::from)).collect::<Result<_, _>>()?;
    if pieces.is_empty() {
        return Ok(None);
    }
    let (name, field, modes) = (variable.name().to_owned(), tensor.field(), tensor.modes().clone());
    let element = variable.element();
    let task = TaskDefinition::new("check divisors").leaf(TaskOptions::default(), move |call| {
        let wrong = with_element!(element, T => first_wrong::<T>(call, field)?);
        match wrong {
            None => Ok(Value::new(())),
            Some((at, element)) => {
                let coordinates = modes.coordinates(&at).as_slice().to_vec();
                Err(Error::from_task(DivisorError { tensor: name.clone(), coordinates, element }))
            }
        }
    });
    in_pieces(cx, tensor.region(), field, Privilege::Read, &pieces, task).map(Some)
}

/// The place of the first element that is no divisor, and the element.
type Wrong = Option<(Vec<i64>, Scalar)>;

fn first_wrong<T: Element + FieldValue>(call: &LeafCall<'_>, field: FieldId) -> maniple::Result<Wrong> {
    let mut wrong = None;
    call.read_rows(0, field, &mut |first, elements: &[T]| {
        let place = if wrong.is_none() { elements.iter().position(|element| !is_divisor(*element)) } else { None };
        if let (Some(place), [above @ .., last]) = (place, first) {
            wrong = Some(([above, &[last + place as i64]].concat(), elements[place].to_scalar()));
        }
    })?;
    Ok(wrong)
}
