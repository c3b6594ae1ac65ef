//! The interpreter: what kernels mean. It checks all that the compiled forms take for granted, and runs where there is
//! no compiler.

mod races;
mod resolve;

use races::{Races, Touch};
use resolve::{Element, SlotProgram, SlotStatement};

use super::memory::BufferMemory;
use super::view::fit;
use super::{Argument, KernelError};
use crate::arithmetic::{self, DivisionByZero, Value};
use crate::element::Scalar;
use crate::loops::{BinaryOperator, Checked, Kernel, Reduction};

/// Runs `kernel`, loops one iteration after the other.
///
/// With `races`, it also checks that iterations of parallel loops are independent, for the elements that they access
/// this time. This takes memory for each element.
///
/// # Errors
///
/// [`KernelError::Count`] and [`Argument`](KernelError::Argument) if arguments don't fit;
/// [`DivisionByZero`](KernelError::DivisionByZero), [`OutOfBounds`](KernelError::OutOfBounds),
/// [`Unset`](KernelError::Unset), [`Race`](KernelError::Race) and [`OutOfMemory`](KernelError::OutOfMemory) as they
/// happen; then views that the kernel updates have been updated in part.
pub fn interpret(kernel: &Checked, arguments: &mut [Argument<'_>], races: bool) -> Result<(), KernelError> {
    let kernel = kernel.kernel();
    fit(kernel, arguments)?;
    let program = resolve::resolve(kernel);
    let mut variables = Vec::with_capacity(program.variables);
    let mut buffers = Vec::with_capacity(program.buffers.len());
    for argument in arguments.iter_mut() {
        match argument {
            Argument::Scalar(value) => variables.push(*value),
            Argument::View(view) => buffers.push(BufferMemory::borrow(view)),
        }
    }
    variables.resize(program.variables, Scalar::I64(0));
    buffers.resize_with(program.buffers.len(), BufferMemory::nothing);
    let allocations = (0..buffers.len()).collect();
    let mut machine = KernelMachine {
        kernel,
        program: &program,
        variables,
        buffers,
        allocations,
        next_allocation: program.buffers.len(),
        races: races.then(Races::default),
    };
    machine.step(&program.body).map(drop)
}

fn combined(reduction: Option<Reduction>, old: Scalar, new: Scalar) -> Scalar {
    reduction.map_or(new, |reduction| arithmetic::reduce(reduction, old, new))
}

/// How a statement ended.
#[derive(PartialEq)]
enum Flow {
    Normal,
    Break,
    Continue,
}

struct KernelMachine<'a> {
    kernel: &'a Kernel,
    program: &'a SlotProgram,
    variables: Vec<Scalar>,
    buffers: Vec<BufferMemory<'a>>,
    /// A number for each buffer that tells allocations apart.
    allocations: Vec<usize>,
    next_allocation: usize,
    races: Option<Races>,
}

impl KernelMachine<'_> {
    fn step(&mut self, step: &SlotStatement) -> Result<Flow, KernelError> {
        match step {
            SlotStatement::Sequence(steps) => {
                for inner in steps {
                    let flow = self.step(inner)?;
                    if flow != Flow::Normal {
                        return Ok(flow);
                    }
                }
            }
            SlotStatement::Set { variable, value, reduction } => {
                let value = self.number(value)?;
                self.variables[*variable] = combined(*reduction, self.variables[*variable], value);
            }
            SlotStatement::Store { element, value, reduction, atomic } => {
                let value = self.number(value)?;
                self.store(element, value, *reduction, *atomic)?;
            }
            SlotStatement::For { variable, name, low, high, parallel, body } => {
                let (low, high) = (self.index(low)?, self.index(high)?);
                let checks = *parallel && self.races.is_some();
                if let (true, Some(races)) = (checks, &mut self.races) {
                    races.enter(name);
                }
                for index in low..high {
                    if let (true, Some(races)) = (checks, &mut self.races) {
                        races.iterate(index);
                    }
                    self.variables[*variable] = Scalar::I64(index);
                    if self.step(body)? == Flow::Break {
                        break;
                    }
                }
                if let (true, Some(races)) = (checks, &mut self.races) {
                    races.leave();
                }
            }
            SlotStatement::While { condition, body } => {
                while self.truth(condition)? {
                    if self.step(body)? == Flow::Break {
                        break;
                    }
                }
            }
            SlotStatement::If { condition, then, otherwise } => {
                if self.truth(condition)? {
                    return self.step(then);
                }
                if let Some(otherwise) = otherwise {
                    return self.step(otherwise);
                }
            }
            SlotStatement::Break => return Ok(Flow::Break),
            SlotStatement::Continue => return Ok(Flow::Continue),
            SlotStatement::Allocate { buffer, element, bounds, zeroed } => {
                let bounds: Vec<(i64, i64)> = bounds
                    .iter()
                    .map(|(low, high)| Ok((self.index(low)?, self.index(high)?)))
                    .collect::<Result<_, KernelError>>()?;
                self.buffers[*buffer] = BufferMemory::allocate(*element, &bounds, *zeroed)
                    .ok_or_else(|| KernelError::OutOfMemory { kernel: self.kernel.name.clone() })?;
                self.allocations[*buffer] = self.next_allocation;
                self.next_allocation += 1;
            }
        }
        Ok(Flow::Normal)
    }

    fn store(
        &mut self,
        element: &Element,
        value: Scalar,
        reduction: Option<Reduction>,
        atomic: bool,
    ) -> Result<(), KernelError> {
        let offset = self.locate(element)?;
        let touch = match reduction {
            Some(reduction) if atomic => Touch::Atomic(reduction),
            _ => Touch::Store,
        };
        self.touch(element, offset, touch)?;
        let value = match reduction {
            None => value,
            Some(_) => {
                let old = self.load_at(element, offset)?;
                combined(reduction, old, value)
            }
        };
        self.buffers[element.buffer].store(offset, value);
        Ok(())
    }

    /// The offset of an element in its buffer.
    fn locate(&mut self, element: &Element) -> Result<isize, KernelError> {
        let mut indices = [0; 8];
        // Almost all tensors have few dimensions; the others pay for their indices.
        let mut many = Vec::new();
        let indices = if element.indices.len() <= indices.len() {
            &mut indices[..element.indices.len()]
        } else {
            many.resize(element.indices.len(), 0);
            &mut many[..]
        };
        for (place, index) in indices.iter_mut().zip(&element.indices) {
            *place = self.index(index)?;
        }
        self.buffers[element.buffer].offset(indices).ok_or_else(|| KernelError::OutOfBounds {
            kernel: self.kernel.name.clone(),
            buffer: self.program.buffers[element.buffer].to_string(),
            indices: indices.to_vec(),
            bounds: self.buffers[element.buffer].bounds(),
        })
    }

    fn touch(&mut self, element: &Element, offset: isize, touch: Touch) -> Result<(), KernelError> {
        let Some(races) = &mut self.races else { return Ok(()) };
        let address = self.buffers[element.buffer].address(offset);
        races.touch(self.allocations[element.buffer], address, touch).map_err(|variable| KernelError::Race {
            kernel: self.kernel.name.clone(),
            variable: variable.to_string(),
            buffer: self.program.buffers[element.buffer].to_string(),
            indices: self.buffers[element.buffer].point(offset),
        })
    }

    fn load_at(&self, element: &Element, offset: isize) -> Result<Scalar, KernelError> {
        self.buffers[element.buffer].load(offset).ok_or_else(|| KernelError::Unset {
            kernel: self.kernel.name.clone(),
            buffer: self.program.buffers[element.buffer].to_string(),
            indices: self.buffers[element.buffer].point(offset),
        })
    }

    fn divided<T>(&self, result: Result<T, DivisionByZero>) -> Result<T, KernelError> {
        result.map_err(|DivisionByZero| KernelError::DivisionByZero { kernel: self.kernel.name.clone() })
    }

    // The verifier saw to it that types are what they are taken for: the other arms never run.

    fn number(&mut self, value: &resolve::SlotExpression) -> Result<Scalar, KernelError> {
        match self.value(value)? {
            Value::Number(value) => Ok(value),
            Value::Truth(value) => Ok(Scalar::I64(value.into())),
        }
    }

    fn index(&mut self, value: &resolve::SlotExpression) -> Result<i64, KernelError> {
        match self.value(value)? {
            Value::Number(Scalar::I64(value)) => Ok(value),
            _ => Ok(0),
        }
    }

    fn truth(&mut self, value: &resolve::SlotExpression) -> Result<bool, KernelError> {
        Ok(self.value(value)? == Value::Truth(true))
    }

    fn value(&mut self, value: &resolve::SlotExpression) -> Result<Value, KernelError> {
        use resolve::SlotExpression as Code;
        let number = match value {
            Code::Constant(value) => *value,
            Code::Bool(value) => return Ok(Value::Truth(*value)),
            Code::Variable(slot) => self.variables[*slot],
            Code::Negate(operand) => arithmetic::negate(self.number(operand)?),
            Code::Not(operand) => return Ok(Value::Truth(!self.truth(operand)?)),
            Code::Binary(BinaryOperator::And, left, right) => {
                return Ok(Value::Truth(self.truth(left)? && self.truth(right)?));
            }
            Code::Binary(BinaryOperator::Or, left, right) => {
                return Ok(Value::Truth(self.truth(left)? || self.truth(right)?));
            }
            Code::Binary(operator, left, right) => match (self.value(left)?, self.value(right)?) {
                (Value::Number(left), Value::Number(right)) => {
                    return self.divided(arithmetic::binary(*operator, left, right));
                }
                (left, _) => return Ok(left),
            },
            Code::Cast(element, operand) => arithmetic::cast(self.number(operand)?, *element),
            Code::Select(parts) => {
                let [condition, then, otherwise] = &**parts;
                return if self.truth(condition)? { self.value(then) } else { self.value(otherwise) };
            }
            Code::Load(element) => {
                let offset = self.locate(element)?;
                self.touch(element, offset, Touch::Load)?;
                self.load_at(element, offset)?
            }
            Code::Low(buffer, dimension) => Scalar::I64(self.buffers[*buffer].dimensions()[*dimension].low),
            Code::High(buffer, dimension) => Scalar::I64(self.buffers[*buffer].dimensions()[*dimension].high),
            Code::Call(function, arguments) => {
                let arguments: Vec<Scalar> =
                    arguments.iter().map(|argument| self.number(argument)).collect::<Result<_, _>>()?;
                self.divided(arithmetic::call(*function, &arguments))?
            }
        };
        Ok(Value::Number(number))
    }
}
