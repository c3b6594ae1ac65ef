//! The meaning of a statement, by evaluation.
//!
//! The loops run as they stand. At each assignment, coordinates are recovered, and nothing happens where one of them is
//! beyond its end. Slow, and simple enough to be believed: schedules are tested against it before anything is lowered.

use std::collections::BTreeMap;

use super::node::StatementNode;
use super::statement::Statement;
use crate::element::Scalar;
use crate::notation::{
    Access, DenseArray, DivisionByZero, EvaluateError, Expression, ExpressionValues, IndexVariable, cast,
    evaluate_expression, is_among, reduce,
};

/// The result of `statement` on `operands`, by name. If the statement accumulates, or reads its result, the result's
/// old elements are among them.
///
/// # Errors
///
/// If operands are missing, or an integer is divided by zero.
pub fn evaluate(statement: &Statement, operands: &BTreeMap<String, DenseArray>) -> Result<DenseArray, EvaluateError> {
    let result = statement.result();
    let mut arrays = operands.clone();
    if !arrays.contains_key(result.name()) || statement.initial().is_some() {
        let initial = statement.initial().unwrap_or_else(|| cast(Scalar::I64(0), result.element()));
        let array = DenseArray::from_fn(result.element(), result.dimensions(), |_| initial);
        arrays.insert(result.name().to_owned(), array);
    }
    for tensor in statement.tensors() {
        if !arrays.contains_key(tensor.name()) {
            return Err(EvaluateError::Missing(tensor.name().to_owned()));
        }
    }
    let mut machine = EvaluationMachine { statement, arrays, loops: BTreeMap::new() };
    machine.run(statement.body())?;
    machine.arrays.remove(result.name()).ok_or_else(|| EvaluateError::Missing(result.name().to_owned()))
}

struct EvaluationMachine<'a> {
    statement: &'a Statement,
    arrays: BTreeMap<String, DenseArray>,
    loops: BTreeMap<IndexVariable, i64>,
}

impl EvaluationMachine<'_> {
    fn run(&mut self, node: &StatementNode) -> Result<(), DivisionByZero> {
        match node {
            StatementNode::Forall(outer, body) => {
                for value in 0..self.statement.extents[&outer.variable] {
                    self.loops.insert(outer.variable.clone(), value);
                    self.run(body)?;
                }
                self.loops.remove(&outer.variable);
                Ok(())
            }
            StatementNode::Where { workspace, consumer, producer } => {
                let mut array = DenseArray::zeros(workspace.element(), workspace.dimensions());
                let sites = producer.sites();
                let writer = sites.iter().find(|site| site.target.tensor == *workspace);
                if let Some(identity) =
                    writer.and_then(|site| site.operator).and_then(|operator| operator.identity(workspace.element()))
                {
                    array = DenseArray::from_fn(workspace.element(), workspace.dimensions(), |_| identity);
                }
                self.arrays.insert(workspace.name().to_owned(), array);
                self.run(producer)?;
                self.run(consumer)
            }
            StatementNode::Assign { target, operator, value } => {
                if !self.statement.is_inside(&|variable| self.loops.get(variable).copied()) {
                    return Ok(());
                }
                let value = evaluate_expression(value, self)?;
                let coordinates = self.coordinates(target);
                let array = self.arrays.get_mut(target.tensor.name()).expect("results and workspaces have arrays");
                let new = match (operator, array.get(&coordinates)) {
                    (Some(operator), Some(old)) => reduce(*operator, old, value),
                    _ => value,
                };
                array.set(&coordinates, new);
                Ok(())
            }
        }
    }

    fn coordinates(&self, access: &Access) -> Vec<i64> {
        access.variables.iter().map(|variable| self.index(variable)).collect()
    }
}

impl ExpressionValues for EvaluationMachine<'_> {
    fn index(&self, variable: &IndexVariable) -> i64 {
        self.statement
            .recover(variable, &|variable| self.loops.get(variable).copied())
            .expect("the variables of an assignment are recovered from the loops around it")
    }

    fn load(&self, access: &Access) -> Scalar {
        let array = self.arrays.get(access.tensor.name());
        array.and_then(|array| array.get(&self.coordinates(access))).unwrap_or(access.tensor.fill())
    }

    fn extent(&self, variable: &IndexVariable) -> i64 {
        self.statement.extents[variable]
    }

    fn set_index(&mut self, variable: &IndexVariable, value: i64) {
        self.loops.insert(variable.clone(), value);
    }

    fn is_checked(&self, divisor: &Expression) -> bool {
        is_among(divisor, &self.statement.divisors)
    }
}
