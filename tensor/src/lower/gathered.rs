//! Tensors that a kernel reads only at coordinates that levels store.
//!
//! Of such a vector a point needs no more than the elements that its part of the levels names, and of a matrix the
//! rows. That is read off the kernel, whatever made it so: wherever a dense tensor is read, its index in one dimension
//! is a coordinate of a level, or the least or greatest of some; and wherever it is looked up what is below a row of a
//! tensor in levels, the row is such a coordinate.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::stored::Slot;
use crate::loops::{BinaryOperator, Expression, Kernel, Parameter, Statement};

/// The tensor and the number of a level.
pub type LevelOf = (String, usize);

/// The places at which a kernel reads a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// The dimension in which it does so at coordinates of levels alone; of a tensor in levels 0, for the one of its
    /// outermost level.
    pub dimension: usize,
    /// Which levels these are.
    pub levels: BTreeSet<LevelOf>,
}

/// The tensors that a kernel reads, and does so only at coordinates of levels.
pub fn gathered(kernel: &Kernel, slots: &[Slot]) -> BTreeMap<String, Gathered> {
    let buffers = kernel.parameters.iter().zip(slots).filter_map(|(parameter, slot)| match parameter {
        Parameter::Buffer(buffer) => Some((buffer.name.clone(), (slot, buffer.rank))),
        Parameter::Scalar(_) => None,
    });
    let mut reading =
        Reading { buffers: buffers.collect(), values: HashMap::new(), found: BTreeMap::new(), others: BTreeSet::new() };
    reading.bind(&kernel.body);
    reading.read(&kernel.body);
    let Reading { found, others, .. } = reading;
    let is_read_there_alone = |(name, _): &(String, _)| !others.contains(name);
    let one = |(name, dimensions): (String, Dimensions)| {
        let (dimension, levels) = dimensions.into_iter().min_by_key(|(_, levels)| levels.len())?;
        Some((name, Gathered { dimension, levels }))
    };
    found.into_iter().filter(is_read_there_alone).filter_map(one).collect()
}

/// For each dimension of a tensor in which it is read at coordinates of levels alone: which ones.
type Dimensions = BTreeMap<usize, BTreeSet<LevelOf>>;

struct Reading<'k> {
    /// The slots of buffers, and their ranks.
    buffers: HashMap<Arc<str>, (&'k Slot, usize)>,
    /// All values that each variable is given; none of an index of a loop.
    values: HashMap<Arc<str>, Vec<Option<&'k Expression>>>,
    found: BTreeMap<String, Dimensions>,
    /// The tensors that are read elsewhere too, or changed.
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
        if let Expression::Load { buffer, indices } = value {
            match self.buffers.get(&buffer.name) {
                Some((Slot::Elements(name), _)) => self.read_at(name, indices.iter().enumerate()),
                // A row begins at its own offset, and ends at the next one.
                Some((Slot::Positions(name, 1), _)) => self.read_at(name, indices.iter().map(|row| (0, row_of(row)))),
                Some((
                    Slot::Positions(name, _) | Slot::Bits(name, _) | Slot::Slots(name, _) | Slot::Count(name, _),
                    _,
                )) => {
                    self.others.insert(name.clone());
                }
                _ => {}
            }
        }
        value.for_each_operand(|operand| self.read_in(operand));
    }

    /// A tensor is read at these indices.
    fn read_at<'i>(&mut self, name: &str, indices: impl Iterator<Item = (usize, &'i Expression)>) {
        let mut here = Dimensions::new();
        for (dimension, index) in indices {
            let mut levels = BTreeSet::new();
            if self.is_coordinate(index, &mut Vec::new(), &mut levels) {
                here.insert(dimension, levels);
            }
        }
        match self.found.get_mut(name) {
            None => _ = self.found.insert(name.to_owned(), here),
            Some(known) => {
                known.retain(|dimension, _| here.contains_key(dimension));
                known
                    .iter_mut()
                    .for_each(|(dimension, levels)| levels.extend(here.remove(dimension).unwrap_or_default()));
            }
        }
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

/// The row at whose offset, or the next one, a value is.
fn row_of(place: &Expression) -> &Expression {
    match place {
        Expression::Binary(BinaryOperator::Add, row, one) if **one == Expression::constant(1_i64) => row,
        row => row,
    }
}
