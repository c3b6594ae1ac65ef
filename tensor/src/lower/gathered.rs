//! Vectors that a kernel reads only at coordinates that levels store.
//!
//! Of such a vector a point needs no more than the elements that its part of the levels names. That is read off the kernel, whatever made it so: wherever the vector is read, the index is
//! a coordinate of a level, or the least or greatest of some.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::stored::Slot;
use crate::loops::{BinaryOperator, Expression, Kernel, Parameter, Statement};

/// The tensor and the number of a level.
pub type LevelOf = (String, usize);

/// For each dense vector that a kernel reads, and does so only at coordinates of levels: which levels these are of.
pub fn gathered(kernel: &Kernel, slots: &[Slot]) -> BTreeMap<String, BTreeSet<LevelOf>> {
    let buffers = kernel.parameters.iter().zip(slots).filter_map(|(parameter, slot)| match parameter {
        Parameter::Buffer(buffer) => Some((buffer.name.clone(), (slot, buffer.rank))),
        Parameter::Scalar(_) => None,
    });
    let mut reading =
        Reading { buffers: buffers.collect(), values: HashMap::new(), found: BTreeMap::new(), others: BTreeSet::new() };
    reading.bind(&kernel.body);
    reading.read(&kernel.body);
    let Reading { mut found, others, .. } = reading;
    found.retain(|name, _| !others.contains(name));
    found
}

struct Reading<'k> {
    /// What buffers are, and their ranks.
    buffers: HashMap<Arc<str>, (&'k Slot, usize)>,
    /// All values that each variable is given; none of an index of a loop.
    values: HashMap<Arc<str>, Vec<Option<&'k Expression>>>,
    found: BTreeMap<String, BTreeSet<LevelOf>>,
    /// The vectors that are read elsewhere too, or changed.
    others: BTreeSet<String>,
}

impl<'k> Reading<'k> {
    fn bind(&mut self, statement: &'k Statement) {
        let (variable, value) = match statement {
            Statement::Let { variable, value, .. } => (Some(variable), Some(value)),
            Statement::Set { variable, value, reduction: None } => (Some(variable), Some(value)),
            Statement::Set { variable, .. } | Statement::For { variable, .. } => (Some(variable), None),
            _ => (None, None),
        };
        if let Some(variable) = variable {
            self.values.entry(variable.name.clone()).or_default().push(value);
        }
        statement.for_each_child(&mut |child| self.bind(child));
    }

    fn read(&mut self, statement: &'k Statement) {
        if let Statement::Store { buffer, .. } = statement
            && let Some((Slot::Elements(name), _)) = self.buffers.get(&buffer.name)
        {
            self.others.insert(name.clone());
        }
        statement.for_each_expression(&mut |value| self.read_in(value));
        statement.for_each_child(&mut |child| self.read(child));
    }

    fn read_in(&mut self, value: &'k Expression) {
        if let Expression::Load { buffer, indices } = value
            && let Some((Slot::Elements(name), _)) = self.buffers.get(&buffer.name)
        {
            let mut levels = BTreeSet::new();
            match &indices[..] {
                [index] if self.is_coordinate(index, &mut Vec::new(), &mut levels) => {
                    self.found.entry(name.clone()).or_default().append(&mut levels);
                }
                _ => {
                    self.others.insert(name.clone());
                }
            }
        }
        value.for_each_operand(|operand| self.read_in(operand));
    }

    /// Whether a value is a coordinate of a level; then `levels` has it.
    fn is_coordinate(&self, value: &Expression, around: &mut Vec<Arc<str>>, levels: &mut BTreeSet<LevelOf>) -> bool {
        match value {
            Expression::Cast(_, value) => self.is_coordinate(value, around, levels),
            Expression::Binary(BinaryOperator::Minimum | BinaryOperator::Maximum, left, right) => {
                self.is_coordinate(left, around, levels) && self.is_coordinate(right, around, levels)
            }
            Expression::Load { buffer, .. } => match self.buffers.get(&buffer.name) {
                Some((Slot::Coordinates(name, level), _)) => {
                    levels.insert((name.clone(), *level));
                    true
                }
                _ => false,
            },
            Expression::Variable(variable) if !around.contains(&variable.name) => {
                around.push(variable.name.clone());
                let values = self.values.get(&variable.name);
                let is_one = values.is_some_and(|values| {
                    values.iter().all(|value| value.is_some_and(|value| self.is_coordinate(value, around, levels)))
                });
                around.pop();
                is_one
            }
            _ => false,
        }
    }
}
