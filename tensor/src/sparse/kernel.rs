//! The kernel of an assignment, with its parameters.

use std::collections::BTreeMap;

use super::error::SparseError;
use super::nest::{Nest, Nested};
use super::operand::Operand;
use super::order::order;
use super::places::{Places, Visited};
use crate::element::ElementType::I64;
use crate::format::{Format, Level};
use crate::loops::{
    Access as Use, Buffer, Expression, Kernel, Names, Parameter, Reduction, Statement as Step, Variable,
};
use crate::notation::{self, Assignment, IndexVariable};

/// What becomes of the values that a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// They are stored densely, in the order of the levels.
    Dense,
    /// They are counted.
    Counted,
    /// Their coordinates and they themselves are written one after the other.
    Written,
}

/// A kernel, and what it is called with.
pub(super) struct Made {
    pub(super) kernel: Kernel,
    pub(super) operands: Vec<Operand>,
    /// The variables whose extents come after the operands.
    pub(super) extents: Vec<IndexVariable>,
    /// The variable of the row in which values are gathered before they are written, if they are.
    pub(super) gathers: Option<IndexVariable>,
}

/// How an assignment is computed.
pub(super) struct Plan<'a> {
    assignment: &'a Assignment,
    /// The loops, of the result's variables and those reduced over.
    variables: Vec<IndexVariable>,
    /// What is computed inside of them.
    value: &'a notation::Expression,
    /// The operator in which values of one element are combined.
    reduction: Option<Reduction>,
    visited: Vec<Visited>,
    operands: Vec<(notation::TensorVariable, Format)>,
    pub(super) is_dense: bool,
}

impl<'a> Plan<'a> {
    /// Loops for an assignment: over all variables in one nest where all reductions are around the whole value and combine as the result does, else over the result's variables with
    /// reductions inside.
    pub(super) fn new(assignment: &'a Assignment) -> Self {
        let left = assignment.left();
        let format = left.tensor.format();
        let is_dense = format.is_plain() && format.levels().iter().all(|level| *level == Level::Dense);
        let of_levels = |mode: &usize| left.variables[*mode].clone();
        let modes: Vec<usize> = if format.is_plain() { format.order().to_vec() } else { (0..format.rank()).collect() };
        let mut variables: Vec<IndexVariable> = modes.iter().map(of_levels).collect();
        let (mut value, mut reductions) = (assignment.right(), Vec::new());
        let mut reduced = Vec::new();
        while let notation::Expression::Reduce(reduction, variable, operand) = value {
            reductions.push(*reduction);
            reduced.push(variable.clone());
            value = operand;
        }
        reductions.dedup();
        let accumulation = assignment.accumulation();
        let is_one_nest = match reductions[..] {
            [] => true,
            [reduction] => {
                accumulation.is_none_or(|accumulation| accumulation == reduction)
                    && (is_dense || reduction == Reduction::Sum)
                    && !has_reductions(value)
            }
            _ => false,
        };
        let reduction = if is_one_nest && !reductions.is_empty() {
            variables.extend(reduced);
            reductions.first().copied()
        } else {
            value = assignment.right();
            accumulation
        };
        let order = order(&variables, value);
        let mut operands: Vec<(notation::TensorVariable, Format)> = Vec::new();
        let visited = value.accesses().into_iter().zip(order.formats).map(|(access, format)| {
            let is_known =
                |(tensor, known): &(notation::TensorVariable, Format)| *tensor == access.tensor && *known == format;
            let operand = operands.iter().position(is_known).unwrap_or_else(|| {
                operands.push((access.tensor.clone(), format.clone()));
                operands.len() - 1
            });
            Visited { access: access.clone(), format, operand }
        });
        let visited = visited.collect();
        Self { assignment, variables: order.variables, value, reduction, visited, operands, is_dense }
    }

    /// The operands: tensors, each in the format in which it is used.
    pub(super) fn operands(&self) -> impl Iterator<Item = (&str, &Format)> {
        self.operands.iter().map(|(tensor, format)| (tensor.name(), format))
    }

    /// The operator in which values of one element are combined, the old one among them.
    pub(super) fn reduction(&self) -> Option<Reduction> {
        self.reduction
    }

    /// The kernel for operands whose positions and coordinates are narrow or not.
    pub(super) fn kernel(&self, narrow: &[bool], output: Output) -> Result<Made, SparseError> {
        let left = self.assignment.left();
        let element = left.tensor.element();
        let mut names = Names::default();
        let operands = self.operands.iter().zip(narrow);
        let operands: Vec<Operand> =
            operands.map(|((tensor, format), narrow)| Operand::new(tensor, format, *narrow, &mut names)).collect();
        let mut parameters: Vec<Parameter> = operands.iter().flat_map(Operand::parameters).collect();
        let extents: Vec<IndexVariable> = self.assignment.extents().keys().cloned().collect();
        let sizes: BTreeMap<IndexVariable, Variable> = extents
            .iter()
            .map(|variable| (variable.clone(), Variable::index(names.fresh(&format!("n_{variable}")))))
            .collect();
        parameters.extend(extents.iter().map(|variable| Parameter::Scalar(sizes[variable].clone())));
        let is_sum = |reduction: &Reduction| *reduction == Reduction::Sum;
        // Elsewhere a zero is a value as any other.
        let skips_zeros = self.reduction.iter().all(is_sum) && only_sums(self.value);
        let is_result = |variable: &IndexVariable| left.variables.contains(variable);
        // All of the result's variables have values at this depth.
        let complete = self.variables.iter().rposition(is_result).map_or(0, |last| last + 1);
        let first_reduced = self.variables.iter().position(|variable| !is_result(variable)).unwrap_or(complete);
        let gathers = (output != Output::Dense && first_reduced + 1 < complete).then(|| {
            self.variables[first_reduced..complete].iter().filter(|variable| is_result(variable)).collect::<Vec<_>>()
        });
        let gathers = gathers.and_then(|inner| <[_; 1]>::try_from(inner).ok()).map(|[only]| only.clone());
        let mut sink = Sink::new(self, output, (gathers.as_ref(), element), &mut names);
        parameters.extend(sink.parameters());
        let mut nest =
            Nest { names, operands: operands.clone(), extents: sizes, known: BTreeMap::new(), visited: &self.visited };
        let accesses = 0..self.visited.len();
        let nested = |variables, is_parallel| Nested {
            variables,
            value: self.value,
            accesses: accesses.clone(),
            skips_zeros,
            is_parallel,
        };
        let is_parallel = output == Output::Dense && self.variables.first().is_some_and(is_result);
        let places = Places::new(&self.visited);
        let body = if let Some(gathered) = &gathers {
            let (outer, inner) = self.variables.split_at(first_reduced);
            nest.loops(&nested(outer, false), &places, &mut |nest, places| {
                let gather = nest.loops(&nested(inner, false), places, &mut |nest, places| {
                    let (mut steps, mut first) = (Vec::new(), 0);
                    let value = nest.value(self.value, places, (&mut first, &mut steps))?;
                    steps.push(sink.gather(nest.known[gathered].clone(), value));
                    Ok(Step::Sequence(steps))
                })?;
                Ok(sink.gathered(nest, gathered, gather))
            })?
        } else if complete < self.variables.len() {
            let (outer, inner) = self.variables.split_at(complete);
            nest.loops(&nested(outer, is_parallel), &places, &mut |nest, places| {
                let total = Variable::new(nest.names.fresh("sum"), element);
                let some = nest.names.index("some");
                let reduction = self.reduction.unwrap_or(Reduction::Sum);
                let identity = reduction.identity(element);
                let identity = identity.map_or_else(|| Expression::index(0).cast(element), Expression::Constant);
                let step = nest.loops(&nested(inner, false), places, &mut |nest, places| {
                    let (mut steps, mut first) = (Vec::new(), 0);
                    let value = nest.value(self.value, places, (&mut first, &mut steps))?;
                    steps.push(Step::set(&total, value).reduce(reduction));
                    if output != Output::Dense {
                        steps.push(Step::set(&some, 1));
                    }
                    Ok(Step::Sequence(steps))
                })?;
                let put = sink.put(nest, total.value());
                Ok(match output {
                    Output::Dense => Step::Sequence(vec![Step::bind_mutable(&total, identity), step, put]),
                    _ => Step::Sequence(vec![
                        Step::bind_mutable(&total, identity),
                        Step::bind_mutable(&some, 0),
                        step,
                        Step::when(some.value().equal(1), put),
                    ]),
                })
            })?
        } else {
            nest.loops(&nested(&self.variables, is_parallel), &places, &mut |nest, places| {
                let (mut steps, mut first) = (Vec::new(), 0);
                let value = nest.value(self.value, places, (&mut first, &mut steps))?;
                steps.push(sink.put(nest, value));
                Ok(Step::Sequence(steps))
            })?
        };
        let body = sink.around(body);
        let kernel = Kernel { name: left.tensor.name().to_owned(), parameters, body };
        Ok(Made { kernel, operands, extents, gathers })
    }
}

fn has_reductions(value: &notation::Expression) -> bool {
    matches!(value, notation::Expression::Reduce(..)) || value.operands().into_iter().any(has_reductions)
}

fn only_sums(value: &notation::Expression) -> bool {
    let here = !matches!(value, notation::Expression::Reduce(reduction, ..) if *reduction != Reduction::Sum);
    here && value.operands().into_iter().all(only_sums)
}

/// Where computed values go.
struct Sink<'p, 'a> {
    plan: &'p Plan<'a>,
    output: Output,
    /// The elements of a dense result, or values that are written.
    values: Buffer,
    /// Of what is written, the coordinates in each dimension.
    coordinates: Vec<Buffer>,
    /// How many values there are, in one element.
    count: Buffer,
    written: Variable,
    row: Option<Row>,
}

/// A row in which values are gathered: the value of each coordinate, the number of the row in which it was set last, and the coordinates of this row.
struct Row {
    values: Buffer,
    set_in: Buffer,
    list: Buffer,
    number: Variable,
    length: Variable,
}

impl<'p, 'a> Sink<'p, 'a> {
    fn new(
        plan: &'p Plan<'a>,
        output: Output,
        (gathers, element): (Option<&IndexVariable>, crate::element::ElementType),
        names: &mut Names,
    ) -> Self {
        let rank = plan.assignment.left().variables.len();
        let values = Buffer::new(names.fresh("result_values"), element, 1, Use::Update);
        let coordinates =
            (0..rank).map(|mode| Buffer::new(names.fresh(&format!("result{mode}_crd")), I64, 1, Use::Update));
        let coordinates = coordinates.collect();
        let count = Buffer::new(names.fresh("count"), I64, 1, Use::Update);
        let row = gathers.map(|_| Row {
            values: Buffer::new(names.fresh("row_values"), element, 1, Use::Update),
            set_in: Buffer::new(names.fresh("row_set_in"), I64, 1, Use::Update),
            list: Buffer::new(names.fresh("row_list"), I64, 1, Use::Update),
            number: names.index("row"),
            length: names.index("length"),
        });
        Self { plan, output, values, coordinates, count, written: names.index("written"), row }
    }

    /// In this order: of a dense result its elements; of others the count, coordinates and values if they are written, and the row.
    fn parameters(&self) -> Vec<Parameter> {
        let mut buffers = Vec::new();
        match self.output {
            Output::Dense => buffers.push(&self.values),
            Output::Counted => buffers.push(&self.count),
            Output::Written => {
                buffers.push(&self.count);
                buffers.extend(&self.coordinates);
                buffers.push(&self.values);
            }
        }
        buffers.extend(self.row.iter().flat_map(|row| [&row.values, &row.set_in, &row.list]));
        buffers.into_iter().cloned().map(Parameter::Buffer).collect()
    }

    /// One value, at the coordinates that are known.
    fn put(&mut self, nest: &Nest<'_>, value: Expression) -> Step {
        let left = self.plan.assignment.left();
        match self.output {
            Output::Dense => {
                let format = left.tensor.format();
                let position = format.order().iter().fold(Expression::index(0), |above, &mode| {
                    let variable = &left.variables[mode];
                    match above {
                        Expression::Constant(_) => nest.known[variable].clone(),
                        above => above * nest.extents[variable].value() + nest.known[variable].clone(),
                    }
                });
                let store = Step::store(&self.values, [position], value);
                match self.plan.reduction {
                    Some(reduction) => store.reduce(reduction),
                    None => store,
                }
            }
            _ => self.write(left.variables.iter().map(|variable| nest.known[variable].clone()).collect(), value),
        }
    }

    fn write(&self, at: Vec<Expression>, value: Expression) -> Step {
        let mut steps = Vec::new();
        if self.output == Output::Written {
            let coordinates = self.coordinates.iter().zip(at);
            steps.extend(coordinates.map(|(buffer, at)| Step::store(buffer, [self.written.value()], at)));
            steps.push(Step::store(&self.values, [self.written.value()], value));
        }
        steps.push(Step::set(&self.written, self.written.value() + 1));
        Step::Sequence(steps)
    }

    /// One value of the row.
    fn gather(&self, at: Expression, value: Expression) -> Step {
        let Some(row) = &self.row else { return Step::nothing() };
        let reduction = self.plan.reduction.unwrap_or(Reduction::Sum);
        Step::choose(
            row.set_in.load([at.clone()]).equal(row.number.value()),
            Step::store(&row.values, [at.clone()], value.clone()).reduce(reduction),
            Step::Sequence(vec![
                Step::store(&row.set_in, [at.clone()], row.number.value()),
                Step::store(&row.list, [row.length.value()], at.clone()),
                Step::set(&row.length, row.length.value() + 1),
                Step::store(&row.values, [at], value),
            ]),
        )
    }

    /// A row: gathered, then written.
    fn gathered(&self, nest: &mut Nest<'_>, gathered: &IndexVariable, gather: Step) -> Step {
        let Some(row) = &self.row else { return gather };
        let left = self.plan.assignment.left();
        let (place, at) = (nest.names.index("place"), nest.names.index("at"));
        let coordinate = |variable: &IndexVariable| {
            if variable == gathered { at.value() } else { nest.known[variable].clone() }
        };
        let write = self.write(left.variables.iter().map(coordinate).collect(), row.values.load([at.value()]));
        let write = Step::Sequence(vec![Step::bind(&at, row.list.load([place.value()])), write]);
        Step::Sequence(vec![
            Step::set(&row.number, row.number.value() + 1),
            Step::set(&row.length, 0),
            gather,
            Step::for_each(&place, 0, row.length.value(), write),
        ])
    }

    /// The whole kernel.
    fn around(&self, body: Step) -> Step {
        if self.output == Output::Dense {
            return body;
        }
        let mut steps = vec![Step::bind_mutable(&self.written, 0)];
        steps.extend(
            self.row.iter().flat_map(|row| [Step::bind_mutable(&row.number, 0), Step::bind_mutable(&row.length, 0)]),
        );
        steps.extend([body, Step::store(&self.count, [Expression::index(0)], self.written.value())]);
        Step::Sequence(steps)
    }
}
