//! The rules of the loop IR, checked.

use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::element::ElementType;
use crate::operators::Domain;

/// Deeper nesting is refused, so that no thread's stack overflows.
const DEPTH: usize = 400;

/// Checks that `kernel` keeps the rules of the loop IR: names are bound once and before they are used, types and ranks
/// agree, only what may be changed is changed, and parallel loops carry nothing from one iteration to the next but
/// reductions.
///
/// That iterations of parallel loops store into different elements, and that indices are in bounds, depends on the
/// arguments. The interpreter checks it.
///
/// # Errors
///
/// The first rule that is broken.
pub fn verify(kernel: &Kernel) -> Result<(), IllFormed> {
    let mut verifier = Verifier { names: HashMap::new(), loops: Vec::new(), depth: 0 };
    let wrong = |place: &str, rule| IllFormed { kernel: kernel.name.clone(), place: place.into(), rule };
    let name: Arc<str> = kernel.name.as_str().into();
    check_name(&name).map_err(|rule| wrong(&kernel.name, rule))?;
    for parameter in &kernel.parameters {
        let name = match parameter {
            Parameter::Buffer(buffer) => verifier.bind_buffer(buffer, false),
            Parameter::Scalar(variable) => verifier.bind_variable(variable, false),
        };
        name.map_err(|rule| wrong(parameter.name(), rule))?;
    }
    verifier.statement(&kernel.body).map_err(|(place, rule)| match place {
        // What is nested too deeply cannot be printed either.
        Some(place) if !matches!(rule, Rule::Depth(_)) => wrong(&first_line(place), rule),
        _ => wrong("the body", rule),
    })
}

fn first_line(statement: &Statement) -> String {
    statement.to_string().lines().next().unwrap_or_default().to_owned()
}

fn check_name(name: &Arc<str>) -> Result<(), Rule> {
    let good = name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        && name.chars().next().is_some_and(|first| !first.is_ascii_digit());
    if good { Ok(()) } else { Err(Rule::Name(name.clone())) }
}

/// The binding of a name.
enum Bound {
    /// A variable, whether it is mutable, and how many loops enclose its binding.
    Variable { element: ElementType, mutable: bool, loops: usize },
    /// A buffer, and whether it was made by the kernel.
    Buffer(Buffer, bool),
}

/// A loop that encloses what is being checked.
struct Enclosing {
    /// `None` for a `While`.
    kind: Option<LoopKind>,
    /// In a parallel loop: for variables bound outside, how they are reduced into, and whether they are read.
    outer: HashMap<Arc<str>, (Option<Reduction>, bool)>,
}

struct Verifier {
    names: HashMap<Arc<str>, Bound>,
    loops: Vec<Enclosing>,
    depth: usize,
}

/// A broken rule, with the innermost statement that is known to break it.
type Broken<'a> = (Option<&'a Statement>, Rule);

impl Verifier {
    fn bind(&mut self, name: &Arc<str>, bound: Bound) -> Result<(), Rule> {
        check_name(name)?;
        if self.names.contains_key(name) {
            return Err(Rule::BoundTwice(name.clone()));
        }
        self.names.insert(name.clone(), bound);
        Ok(())
    }

    fn bind_buffer(&mut self, buffer: &Buffer, own: bool) -> Result<(), Rule> {
        match buffer.contiguous {
            Some(dimension) if dimension >= buffer.rank => {
                Err(Rule::Dimension { buffer: buffer.name.clone(), rank: buffer.rank, dimension })
            }
            _ => self.bind(&buffer.name, Bound::Buffer(buffer.clone(), own)),
        }
    }

    fn bind_variable(&mut self, variable: &Variable, mutable: bool) -> Result<(), Rule> {
        let loops = self.loops.len();
        self.bind(&variable.name, Bound::Variable { element: variable.element, mutable, loops })
    }

    fn deeper(&mut self) -> Result<(), Rule> {
        self.depth += 1;
        if self.depth > DEPTH { Err(Rule::Depth(DEPTH)) } else { Ok(()) }
    }

    fn statement<'a>(&mut self, statement: &'a Statement) -> Result<(), Broken<'a>> {
        self.deeper().map_err(|rule| (None, rule))?;
        let here = |rule| (Some(statement), rule);
        match statement {
            Statement::Sequence(statements) => {
                for inner in statements {
                    self.statement(inner)?;
                }
                for inner in statements {
                    if let Statement::Let { variable: Variable { name, .. }, .. }
                    | Statement::Allocate { buffer: Buffer { name, .. }, .. } = inner
                    {
                        self.names.remove(name);
                    }
                }
            }
            Statement::Let { variable, value, mutable } => {
                self.expect(value, variable.element.into()).map_err(here)?;
                self.bind_variable(variable, *mutable).map_err(here)?;
            }
            Statement::Set { variable, value, reduction } => {
                self.expect(value, variable.element.into()).map_err(here)?;
                self.set(variable, *reduction).map_err(here)?;
            }
            Statement::Store { buffer, indices, value, reduction, atomic } => {
                self.element(buffer, indices).map_err(here)?;
                self.expect(value, buffer.element.into()).map_err(here)?;
                self.store(buffer, *reduction, *atomic).map_err(here)?;
            }
            Statement::For { variable, low, high, kind, unroll, body } => {
                self.expect(low, ElementType::I64.into()).map_err(here)?;
                self.expect(high, ElementType::I64.into()).map_err(here)?;
                if *unroll == 0 {
                    return Err(here(Rule::Unroll));
                }
                self.gpu_nesting(*kind).map_err(here)?;
                self.loops.push(Enclosing { kind: Some(*kind), outer: HashMap::new() });
                self.bind_variable(variable, false).map_err(here)?;
                if variable.element != ElementType::I64 {
                    return Err(here(Rule::Type { expected: ElementType::I64.into(), found: variable.element.into() }));
                }
                self.scoped(body)?;
                self.names.remove(&variable.name);
                self.loops.pop();
            }
            Statement::While { condition, body } => {
                self.expect(condition, Type::Bool).map_err(here)?;
                self.loops.push(Enclosing { kind: None, outer: HashMap::new() });
                self.scoped(body)?;
                self.loops.pop();
            }
            Statement::If { condition, then, otherwise } => {
                self.expect(condition, Type::Bool).map_err(here)?;
                self.scoped(then)?;
                if let Some(otherwise) = otherwise {
                    self.scoped(otherwise)?;
                }
            }
            Statement::Break | Statement::Continue => match self.loops.last() {
                None => return Err(here(Rule::NoLoop)),
                Some(Enclosing { kind: Some(kind), .. }) if kind.is_parallel() && *statement == Statement::Break => {
                    return Err(here(Rule::BreaksParallel));
                }
                Some(_) => {}
            },
            Statement::Allocate { buffer, bounds, .. } => {
                if bounds.len() != buffer.rank {
                    return Err(here(Rule::Rank {
                        buffer: buffer.name.clone(),
                        rank: buffer.rank,
                        found: bounds.len(),
                    }));
                }
                for (low, high) in bounds {
                    self.expect(low, ElementType::I64.into()).map_err(here)?;
                    self.expect(high, ElementType::I64.into()).map_err(here)?;
                }
                self.bind_buffer(buffer, true).map_err(here)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// A statement whose bindings end with it, sequence or not.
    fn scoped<'a>(&mut self, statement: &'a Statement) -> Result<(), Broken<'a>> {
        self.statement(statement)?;
        if let Statement::Let { variable: Variable { name, .. }, .. }
        | Statement::Allocate { buffer: Buffer { name, .. }, .. } = statement
        {
            self.names.remove(name);
        }
        Ok(())
    }

    fn gpu_nesting(&self, kind: LoopKind) -> Result<(), Rule> {
        let name = match kind {
            LoopKind::Warp => "warps",
            LoopKind::Thread => "threads",
            _ => return Ok(()),
        };
        let within = |kind| self.loops.iter().any(|enclosing| enclosing.kind == Some(kind));
        let own = within(kind) || kind == LoopKind::Warp && within(LoopKind::Thread);
        if !within(LoopKind::Block) || own { Err(Rule::Gpu(name)) } else { Ok(()) }
    }

    fn set(&mut self, variable: &Variable, reduction: Option<Reduction>) -> Result<(), Rule> {
        let name = &variable.name;
        let loops = match self.names.get(name) {
            Some(Bound::Variable { element, mutable, loops }) if *element == variable.element => {
                if !mutable {
                    return Err(Rule::Immutable(name.clone()));
                }
                *loops
            }
            Some(_) => return Err(Rule::Differs(name.clone())),
            None => return Err(Rule::Unbound(name.clone())),
        };
        check_reduction(reduction, variable.element)?;
        for enclosing in self.loops[loops..].iter_mut().filter(|enclosing| enclosing.is_parallel()) {
            let Some(with) = reduction else { return Err(Rule::Carried(name.clone())) };
            let (reduced, read) = enclosing.outer.entry(name.clone()).or_default();
            if *read || reduced.is_some_and(|before| before != with) {
                return Err(Rule::Carried(name.clone()));
            }
            *reduced = Some(with);
        }
        Ok(())
    }

    fn store(&self, buffer: &Buffer, reduction: Option<Reduction>, atomic: bool) -> Result<(), Rule> {
        if let Some(Bound::Buffer(_, false)) = self.names.get(&buffer.name)
            && buffer.access == Access::Read
        {
            return Err(Rule::ReadOnly(buffer.name.clone()));
        }
        check_reduction(reduction, buffer.element)?;
        let possible = reduction.is_some_and(|reduction| reduction.is_atomic_for(buffer.element));
        if atomic && !possible { Err(Rule::Atomic) } else { Ok(()) }
    }

    fn buffer(&self, buffer: &Buffer) -> Result<(), Rule> {
        match self.names.get(&buffer.name) {
            Some(Bound::Buffer(bound, _)) if bound == buffer => Ok(()),
            Some(_) => Err(Rule::Differs(buffer.name.clone())),
            None => Err(Rule::Unbound(buffer.name.clone())),
        }
    }

    fn element(&mut self, buffer: &Buffer, indices: &[Expression]) -> Result<(), Rule> {
        self.buffer(buffer)?;
        if indices.len() != buffer.rank {
            return Err(Rule::Rank { buffer: buffer.name.clone(), rank: buffer.rank, found: indices.len() });
        }
        indices.iter().try_for_each(|index| self.expect(index, ElementType::I64.into()))
    }

    fn expect(&mut self, expression: &Expression, expected: Type) -> Result<(), Rule> {
        let found = self.expression(expression)?;
        if found == expected { Ok(()) } else { Err(Rule::Type { expected, found }) }
    }

    /// The type of `expression`.
    fn expression(&mut self, expression: &Expression) -> Result<Type, Rule> {
        self.deeper()?;
        let found = match expression {
            Expression::Constant(value) => value.element_type().into(),
            Expression::Bool(_) => Type::Bool,
            Expression::Variable(variable) => self.read(variable)?,
            Expression::Unary(UnaryOperator::Not, operand) => {
                self.expect(operand, Type::Bool)?;
                Type::Bool
            }
            Expression::Unary(UnaryOperator::Negate, operand) => match self.expression(operand)? {
                Type::Bool => return Err(Rule::Undefined { operator: "-", found: Type::Bool }),
                number => number,
            },
            Expression::Binary(operator, left, right) => {
                let found = self.expression(left)?;
                self.expect(right, found)?;
                binary(*operator, found)?
            }
            Expression::Cast(to, operand) => {
                let from = self.expression(operand)?;
                match from {
                    Type::Number(element) if to.is_complex() || !element.is_complex() => (*to).into(),
                    _ => return Err(Rule::Cast { from, to: *to }),
                }
            }
            Expression::Select { condition, then, otherwise } => {
                self.expect(condition, Type::Bool)?;
                let found = self.expression(then)?;
                self.expect(otherwise, found)?;
                found
            }
            Expression::Load { buffer, indices } => {
                self.element(buffer, indices)?;
                buffer.element.into()
            }
            Expression::Low(buffer, dimension) | Expression::High(buffer, dimension) => {
                self.buffer(buffer)?;
                if *dimension >= buffer.rank {
                    return Err(Rule::Dimension {
                        buffer: buffer.name.clone(),
                        rank: buffer.rank,
                        dimension: *dimension,
                    });
                }
                ElementType::I64.into()
            }
            Expression::Call(function, arguments) => self.call(*function, arguments)?,
        };
        self.depth -= 1;
        Ok(found)
    }

    fn read(&mut self, variable: &Variable) -> Result<Type, Rule> {
        let name = &variable.name;
        let Some(bound) = self.names.get(name) else { return Err(Rule::Unbound(name.clone())) };
        let Bound::Variable { element, mutable, loops } = bound else { return Err(Rule::Differs(name.clone())) };
        if *element != variable.element {
            return Err(Rule::Differs(name.clone()));
        }
        if *mutable {
            let loops = *loops;
            for enclosing in self.loops[loops..].iter_mut().filter(|enclosing| enclosing.is_parallel()) {
                let (reduced, read) = enclosing.outer.entry(name.clone()).or_default();
                if reduced.is_some() {
                    return Err(Rule::Carried(name.clone()));
                }
                *read = true;
            }
        }
        Ok(variable.element.into())
    }

    fn call(&mut self, function: Intrinsic, arguments: &[Expression]) -> Result<Type, Rule> {
        if function.operator().is_some() {
            return Err(Rule::Operator(function));
        }
        if arguments.len() != function.arguments() {
            return Err(Rule::Arguments { function, found: arguments.len() });
        }
        let found = self.expression(&arguments[0])?;
        for argument in &arguments[1..] {
            self.expect(argument, found)?;
        }
        match found {
            Type::Number(element) if function.is_defined_for(element) => Ok(found),
            _ => Err(Rule::Undefined { operator: function.name(), found }),
        }
    }
}

impl Enclosing {
    fn is_parallel(&self) -> bool {
        self.kind.is_some_and(LoopKind::is_parallel)
    }
}

fn check_reduction(reduction: Option<Reduction>, element: ElementType) -> Result<(), Rule> {
    match reduction {
        Some(reduction) if !reduction.is_defined_for(element) => {
            Err(Rule::Undefined { operator: reduction.name(), found: element.into() })
        }
        _ => Ok(()),
    }
}

/// The type of `operator`'s result for operands of type `found`.
fn binary(operator: BinaryOperator, found: Type) -> Result<Type, Rule> {
    let defined = match found {
        Type::Bool => operator.properties().domain == Domain::Truths,
        Type::Number(element) => operator.is_defined_for(element),
    };
    if !defined {
        return Err(Rule::Undefined { operator: operator.name(), found });
    }
    Ok(if operator.is_comparison() { Type::Bool } else { found })
}
