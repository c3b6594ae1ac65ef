//! One element by the definition.

use crate::element::{Complex, ElementType, Scalar};
use crate::notation::{Assignment, Point, TensorVariable, Value, cast, evaluate_expression, reduce};

/// The element of any tensor of a program at some coordinates.
pub type Load<'a> = dyn Fn(&TensorVariable, &[i64]) -> Scalar + Sync + 'a;

/// The element of the result at these coordinates.
pub(super) fn defined(assignment: &Assignment, coordinates: &[i64], load: &Load<'_>) -> Value {
    // Dense tensors have all elements, so that no divisor is checked.
    let value = evaluate_expression(assignment.right(), &mut Point::new(assignment, coordinates, load, &[]))?;
    Ok(match assignment.accumulation() {
        Some(operator) => reduce(operator, load(&assignment.left().tensor, coordinates), value),
        None => value,
    })
}

/// A number of any type.
pub(super) fn complex(scalar: Scalar) -> Complex<f64> {
    match cast(scalar, ElementType::C64) {
        Scalar::C64(value) => value,
        // Nothing else comes of that cast.
        _ => Complex::new(f64::NAN, f64::NAN),
    }
}
