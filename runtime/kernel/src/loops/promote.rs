//! Makes a kernel ready for the back ends: reductions into one element become reductions into a scalar.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::*;
use crate::element::Scalar;

/// A kernel that keeps the rules, in the form that the back ends take.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    kernel: Kernel,
}

impl Checked {
    /// The kernel as the back ends take it.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }
}

/// Verifies `kernel` and makes it ready: what a parallel loop, unless it is over blocks, reduces into the same element
/// in every iteration goes into a scalar first, and from there into the element when the loop is done. So such
/// reductions need not be atomic, and can use vector registers.
///
/// # Errors
///
/// The first rule that the kernel breaks.
pub fn check(kernel: &Kernel) -> Result<Checked, IllFormed> {
    verify(kernel)?;
    let mut names = HashSet::new();
    names.extend(kernel.parameters.iter().map(|parameter| Arc::from(parameter.name())));
    collect_names(&kernel.body, &mut names);
    let body = Promoter { names }.statement(&kernel.body);
    let kernel = Kernel { name: kernel.name.clone(), parameters: kernel.parameters.clone(), body };
    debug_assert_eq!(verify(&kernel), Ok(()));
    Ok(Checked { kernel })
}

fn collect_names(statement: &Statement, names: &mut HashSet<Arc<str>>) {
    statement.for_each_bound(&mut |name| {
        names.insert(name.clone());
    });
}

struct Promoter {
    /// All names of the kernel.
    names: HashSet<Arc<str>>,
}

/// A reduction into one element.
#[derive(PartialEq)]
struct ReductionTarget {
    buffer: Buffer,
    indices: Vec<Expression>,
    reduction: Reduction,
    /// Whether iterations of further loops may reduce into it at the same time.
    atomic: bool,
}

impl Promoter {
    fn statement(&mut self, statement: &Statement) -> Statement {
        match statement {
            Statement::Sequence(statements) => {
                Statement::Sequence(statements.iter().map(|inner| self.statement(inner)).collect())
            }
            Statement::For { variable, low, high, kind, unroll, body } => {
                // Inner loops first: what they are done with may be promoted further out.
                let body = self.statement(body);
                // Blocks of a GPU share no scalars.
                let shares = kind.is_parallel() && *kind != LoopKind::Block;
                let (targets, body) = if shares { self.promote(variable, body) } else { (Vec::new(), body) };
                let each = Statement::For {
                    variable: variable.clone(),
                    low: low.clone(),
                    high: high.clone(),
                    kind: *kind,
                    unroll: *unroll,
                    body: Box::new(body),
                };
                surround(targets, each)
            }
            Statement::While { condition, body } => {
                Statement::While { condition: condition.clone(), body: Box::new(self.statement(body)) }
            }
            Statement::If { condition, then, otherwise } => Statement::If {
                condition: condition.clone(),
                then: Box::new(self.statement(then)),
                otherwise: otherwise.as_ref().map(|otherwise| Box::new(self.statement(otherwise))),
            },
            other => other.clone(),
        }
    }

    /// Replaces reductions in `body` into elements that are the same in all iterations; gives the scalars that stand
    /// for them.
    fn promote(&mut self, variable: &Variable, body: Statement) -> (Vec<(ReductionTarget, Variable)>, Statement) {
        let mut inside = HashSet::from([variable.name.clone()]);
        collect_names(&body, &mut inside);
        let mut changed = HashSet::new();
        collect_set(&body, &mut changed);
        let invariant = |buffer: &Buffer, indices: &[Expression]| {
            !inside.contains(&buffer.name) && indices.iter().all(|index| is_invariant(index, &inside, &changed))
        };
        let uses = Uses::of(&body, &invariant);
        let mut targets: Vec<(ReductionTarget, Variable)> = Vec::new();
        let body = replace(&body, &mut |statement| {
            let Statement::Store { buffer, indices, value, reduction: Some(reduction), atomic } = statement else {
                return None;
            };
            if uses.0.get(&buffer.name) != Some(&Some(*reduction)) {
                return None;
            }
            let target = ReductionTarget {
                buffer: buffer.clone(),
                indices: indices.clone(),
                reduction: *reduction,
                atomic: *atomic,
            };
            let found = targets.iter().position(|(known, _)| *known == target).unwrap_or_else(|| {
                let name = self.fresh(&buffer.name);
                targets.push((target, Variable::new(name, buffer.element)));
                targets.len() - 1
            });
            Some(Statement::set(&targets[found].1, value.clone()).reduce(*reduction))
        });
        (targets, body)
    }

    fn fresh(&mut self, wish: &str) -> Arc<str> {
        let mut number = 0;
        loop {
            let name: Arc<str> = format!("{wish}_sum{number}").into();
            if self.names.insert(name.clone()) {
                return name;
            }
            number += 1;
        }
    }
}

/// How a loop's body uses buffers: the one operator with which it reduces into elements that are the same in all
/// iterations, or `None` if it does anything else with the buffer too.
struct Uses(HashMap<Arc<str>, Option<Reduction>>);

impl Uses {
    fn of(body: &Statement, invariant: &impl Fn(&Buffer, &[Expression]) -> bool) -> Self {
        let mut uses = Self(HashMap::new());
        uses.statement(body, invariant);
        uses
    }

    fn statement(&mut self, statement: &Statement, invariant: &impl Fn(&Buffer, &[Expression]) -> bool) {
        if let Statement::Store { buffer, indices, reduction, .. } = statement {
            let reduction = reduction.filter(|_| invariant(buffer, indices));
            let known = self.0.entry(buffer.name.clone()).or_insert(reduction);
            *known = known.filter(|known| Some(*known) == reduction);
        }
        statement.for_each_expression(&mut |expression| self.expression(expression));
        statement.for_each_child(&mut |inner| self.statement(inner, invariant));
    }

    fn expression(&mut self, expression: &Expression) {
        if let Expression::Load { buffer, .. } = expression {
            self.0.insert(buffer.name.clone(), None);
        }
        expression.for_each_operand(|operand| self.expression(operand));
    }
}

/// `each` with the scalars of `targets` bound before and stored after.
fn surround(targets: Vec<(ReductionTarget, Variable)>, each: Statement) -> Statement {
    if targets.is_empty() {
        return each;
    }
    let mut statements = Vec::with_capacity(2 * targets.len() + 1);
    for (target, scalar) in &targets {
        // The verifier saw to it that the reduction is one of the element type.
        let identity = target.reduction.identity(scalar.element).unwrap_or(Scalar::I64(0));
        statements.push(Statement::bind_mutable(scalar, identity));
    }
    statements.push(each);
    for (ReductionTarget { buffer, indices, reduction, atomic }, scalar) in targets {
        let store = Statement::store(&buffer, indices, scalar.value()).reduce(reduction);
        statements.push(if atomic { store.atomic() } else { store });
    }
    Statement::Sequence(statements)
}

/// The variables that `statement` sets.
fn collect_set(statement: &Statement, names: &mut HashSet<Arc<str>>) {
    if let Statement::Set { variable, .. } = statement {
        names.insert(variable.name.clone());
    }
    statement.for_each_child(&mut |inner| collect_set(inner, names));
}

/// Whether `index` has one value in all iterations. An index that loads has not: what it loads might change.
fn is_invariant(index: &Expression, inside: &HashSet<Arc<str>>, changed: &HashSet<Arc<str>>) -> bool {
    let own = match index {
        Expression::Load { .. } => false,
        Expression::Variable(Variable { name, .. })
        | Expression::Low(Buffer { name, .. }, _)
        | Expression::High(Buffer { name, .. }, _) => !inside.contains(name) && !changed.contains(name),
        // A failing division may be guarded inside the loop.
        Expression::Binary(operator, _, right) => {
            !operator.divides() || matches!(**right, Expression::Constant(Scalar::I64(1..)))
        }
        _ => true,
    };
    let mut invariant = own;
    index.for_each_operand(|operand| invariant &= is_invariant(operand, inside, changed));
    invariant
}

/// `statement` with each inner statement replaced for which `with` has something.
fn replace(statement: &Statement, with: &mut impl FnMut(&Statement) -> Option<Statement>) -> Statement {
    if let Some(replacement) = with(statement) {
        return replacement;
    }
    match statement {
        Statement::Sequence(statements) => {
            Statement::Sequence(statements.iter().map(|inner| replace(inner, with)).collect())
        }
        Statement::For { variable, low, high, kind, unroll, body } => Statement::For {
            variable: variable.clone(),
            low: low.clone(),
            high: high.clone(),
            kind: *kind,
            unroll: *unroll,
            body: Box::new(replace(body, with)),
        },
        Statement::While { condition, body } => {
            Statement::While { condition: condition.clone(), body: Box::new(replace(body, with)) }
        }
        Statement::If { condition, then, otherwise } => Statement::If {
            condition: condition.clone(),
            then: Box::new(replace(then, with)),
            otherwise: otherwise.as_ref().map(|otherwise| Box::new(replace(otherwise, with))),
        },
        other => other.clone(),
    }
}
