//! The work of a program on dense tensors, and elements that are of nothing.

use std::collections::BTreeMap;

use super::Program;
use crate::notation::{Assignment, Expression, IndexVariable, Reduction, TensorVariable};

/// A reduction over a variable without values, which has none itself: NumPy refuses it, too.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{variable} has no values, and {reduction} of nothing is none: {expression}; leave it out, or combine it with a value"
)]
pub struct OfNothing {
    variable: IndexVariable,
    reduction: Reduction,
    expression: Expression,
}

/// The operations on reals that a product and a sum take.
#[derive(Clone, Copy)]
struct Costs {
    multiply: f64,
    add: f64,
}

impl Program {
    /// Operations on numbers, all in all. A product or sum of complex numbers counts as the operations on reals that it
    /// takes.
    #[must_use]
    pub fn operations(&self) -> f64 {
        let of_one = |assignment: &Assignment| {
            let extents = assignment.extents();
            let variables = &assignment.left().variables;
            let iterations = variables.iter().map(|variable| extents[variable] as f64).product();
            let is_complex = assignment.element().is_complex();
            let costs = if is_complex { Costs { multiply: 6.0, add: 2.0 } } else { Costs { multiply: 1.0, add: 1.0 } };
            let right = operations(assignment.right(), extents, iterations, costs);
            right + if assignment.accumulates() { iterations * costs.add } else { 0.0 }
        };
        self.statements().iter().map(of_one).sum()
    }

    /// The bytes of all tensors as dense ones: what must be read and written at least.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        let size = |tensor: &TensorVariable| {
            tensor.dimensions().iter().map(|&extent| extent as f64).product::<f64>() * tensor.element().size() as f64
        };
        self.tensors().iter().map(size).sum()
    }

    /// The extents of all index variables.
    #[must_use]
    pub fn extents(&self) -> BTreeMap<IndexVariable, i64> {
        self.statements().iter().flat_map(|statement| statement.extents().clone()).collect()
    }

    /// Refuses what has elements that are the least, the greatest or the like of nothing: reductions without a value
    /// that changes no other, over variables without values.
    ///
    /// # Errors
    ///
    /// [`OfNothing`] with the first such reduction.
    pub fn check_reductions(&self) -> Result<(), OfNothing> {
        fn of_nothing(expression: &Expression, extents: &BTreeMap<IndexVariable, i64>) -> Option<OfNothing> {
            match expression {
                Expression::Reduce(reduction @ (Reduction::Minimum | Reduction::Maximum), variable, _)
                    if extents.get(variable) == Some(&0) =>
                {
                    let (variable, expression) = (variable.clone(), expression.clone());
                    Some(OfNothing { variable, reduction: *reduction, expression })
                }
                other => other.operands().into_iter().find_map(|operand| of_nothing(operand, extents)),
            }
        }
        let mut filled = self.statements().iter().filter(|of| !of.left().tensor.dimensions().contains(&0));
        let found = filled.find_map(|statement| of_nothing(statement.right(), statement.extents()));
        found.map_or(Ok(()), Err)
    }
}

/// The operations of an expression that is evaluated so many times.
fn operations(expression: &Expression, extents: &BTreeMap<IndexVariable, i64>, times: f64, costs: Costs) -> f64 {
    use crate::notation::BinaryOperator::{Add, Subtract};
    let (own, times) = match expression {
        Expression::Literal(..)
        | Expression::Index(_)
        | Expression::Access(_)
        | Expression::Test(..)
        | Expression::Cast(..) => (0.0, times),
        Expression::Negate(_) | Expression::Binary(Add | Subtract, ..) => (times * costs.add, times),
        Expression::Binary(..) | Expression::Call(..) | Expression::Select(..) => (times * costs.multiply, times),
        Expression::Reduce(reduction, variable, _) => {
            let times = times * extents[variable] as f64;
            (times * if *reduction == Reduction::Product { costs.multiply } else { costs.add }, times)
        }
    };
    own + expression.operands().into_iter().map(|operand| operations(operand, extents, times, costs)).sum::<f64>()
}
