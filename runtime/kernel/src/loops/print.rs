//! The loop IR as text, for people. Different kernels print differently, so the text also serves as a key.

use std::fmt::{self, Display, Formatter, Write};

use super::*;
use crate::element::Scalar;

fn scalar(value: Scalar, formatter: &mut Formatter<'_>) -> fmt::Result {
    match value {
        // An index needs no suffix: almost all constants are some.
        Scalar::I64(value) => write!(formatter, "{value}"),
        Scalar::Bool(value) => write!(formatter, "{}bool", u8::from(value)),
        Scalar::F32(value) if value.is_nan() => write!(formatter, "nan:{:x}f32", value.to_bits()),
        Scalar::F64(value) if value.is_nan() => write!(formatter, "nan:{:x}f64", value.to_bits()),
        Scalar::F32(value) => write!(formatter, "{value:?}f32"),
        Scalar::F64(value) => write!(formatter, "{value:?}f64"),
        Scalar::C32(value) => write!(formatter, "({:?}, {:?})c32", value.re, value.im),
        Scalar::C64(value) => write!(formatter, "({:?}, {:?})c64", value.re, value.im),
        integer => write!(formatter, "{integer}{}", integer.element_type().name()),
    }
}

fn list<T>(
    items: &[T],
    formatter: &mut Formatter<'_>,
    mut each: impl FnMut(&T, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            formatter.write_str(", ")?;
        }
        each(item, formatter)?;
    }
    Ok(())
}

/// How tightly the operator binds if it is written between its operands; `None` if it is written like a function.
fn precedence(operator: BinaryOperator) -> Option<u8> {
    use BinaryOperator::*;
    Some(match operator {
        Or => 1,
        And => 2,
        Equal | NotEqual | Less | LessEqual => 3,
        Add | Subtract => 4,
        Multiply | Divide | Remainder => 5,
        FloorDivide | FloorRemainder | Bit | NextBit | Minimum | Maximum => return None,
    })
}

/// Writes `expression`, in parentheses if it binds less than `least`.
fn expression(value: &Expression, least: u8, formatter: &mut Formatter<'_>) -> fmt::Result {
    match value {
        Expression::Constant(value) => scalar(*value, formatter),
        Expression::Bool(value) => write!(formatter, "{value}"),
        Expression::Variable(variable) => formatter.write_str(&variable.name),
        Expression::Unary(operator, operand) => {
            formatter.write_str(operator.name())?;
            let constant = matches!(**operand, Expression::Constant(_) | Expression::Unary(..));
            expression(operand, if constant { 7 } else { 6 }, formatter)
        }
        Expression::Binary(operator, left, right) => match precedence(*operator) {
            Some(precedence) => {
                let open = precedence < least;
                if open {
                    formatter.write_char('(')?;
                }
                // Comparisons don't associate; the others group from the left.
                expression(left, precedence + u8::from(operator.is_comparison()), formatter)?;
                write!(formatter, " {} ", operator.name())?;
                expression(right, precedence + 1, formatter)?;
                if open {
                    formatter.write_char(')')?;
                }
                Ok(())
            }
            None => write!(formatter, "{}({left}, {right})", operator.name()),
        },
        Expression::Cast(element, operand) => write!(formatter, "{}({operand})", element.name()),
        Expression::Select { condition, then, otherwise } => {
            write!(formatter, "select({condition}, {then}, {otherwise})")
        }
        Expression::Load { buffer, indices } => element(buffer, indices, formatter),
        Expression::Low(buffer, dimension) => write!(formatter, "low({}, {dimension})", buffer.name),
        Expression::High(buffer, dimension) => write!(formatter, "high({}, {dimension})", buffer.name),
        Expression::Call(intrinsic, arguments) => {
            write!(formatter, "{}(", intrinsic.name())?;
            list(arguments, formatter, |argument, formatter| argument.fmt(formatter))?;
            formatter.write_char(')')
        }
    }
}

fn element(buffer: &Buffer, indices: &[Expression], formatter: &mut Formatter<'_>) -> fmt::Result {
    write!(formatter, "{}[", buffer.name)?;
    list(indices, formatter, |index, formatter| index.fmt(formatter))?;
    formatter.write_char(']')
}

/// `=` or `+=`, ...: and what closes the value again.
fn assignment(reduction: Option<Reduction>) -> String {
    match reduction {
        None => "=".to_owned(),
        Some(Reduction::Custom(custom)) => format!("{}=", custom.label()),
        Some(reduction) => format!("{reduction}="),
    }
}

fn statement(value: &Statement, depth: usize, formatter: &mut Formatter<'_>) -> fmt::Result {
    let indent = |formatter: &mut Formatter<'_>| write!(formatter, "{:1$}", "", 4 * depth);
    if let Statement::Sequence(statements) = value {
        return statements.iter().try_for_each(|inner| match inner {
            // What an inner sequence binds ends with it, so it must be told apart.
            Statement::Sequence(_) => {
                indent(formatter)?;
                formatter.write_str("block\n")?;
                statement(inner, depth + 1, formatter)
            }
            _ => statement(inner, depth, formatter),
        });
    }
    indent(formatter)?;
    match value {
        Statement::Sequence(_) => Ok(()),
        Statement::Let { variable, value, mutable } => {
            let mutable = if *mutable { "mut " } else { "" };
            writeln!(formatter, "let {mutable}{}: {} = {value}", variable.name, variable.element.name())
        }
        Statement::Set { variable, value, reduction } => {
            writeln!(formatter, "{} {} {value}", variable.name, assignment(*reduction))
        }
        Statement::Store { buffer, indices, value, reduction, atomic } => {
            if *atomic {
                formatter.write_str("atomic ")?;
            }
            element(buffer, indices, formatter)?;
            writeln!(formatter, " {} {value}", assignment(*reduction))
        }
        Statement::For { variable, low, high, kind, unroll, body } => {
            let kind = match kind {
                LoopKind::Serial => "",
                LoopKind::Threads => "threads ",
                LoopKind::Chunks => "chunks ",
                LoopKind::Vector => "vector ",
                LoopKind::Block => "block ",
                LoopKind::Warp => "warp ",
                LoopKind::Thread => "thread ",
            };
            write!(formatter, "{kind}for {} in {low}..{high}", variable.name)?;
            if *unroll != 1 {
                write!(formatter, " unroll {unroll}")?;
            }
            formatter.write_char('\n')?;
            statement(body, depth + 1, formatter)
        }
        Statement::While { condition, body } => {
            writeln!(formatter, "while {condition}")?;
            statement(body, depth + 1, formatter)
        }
        Statement::If { condition, then, otherwise } => {
            writeln!(formatter, "if {condition}")?;
            statement(then, depth + 1, formatter)?;
            if let Some(otherwise) = otherwise {
                indent(formatter)?;
                formatter.write_str("else\n")?;
                statement(otherwise, depth + 1, formatter)?;
            }
            Ok(())
        }
        Statement::Break => formatter.write_str("break\n"),
        Statement::Continue => formatter.write_str("continue\n"),
        Statement::Allocate { buffer, bounds, scope, zeroed } => {
            let zeroed = if *zeroed { " zeroed" } else { "" };
            let scope = if *scope == Scope::Block { "shared " } else { "" };
            write!(formatter, "allocate {scope}{}: {}[", buffer.name, buffer.element.name())?;
            list(bounds, formatter, |(low, high), formatter| write!(formatter, "{low}..{high}"))?;
            writeln!(formatter, "]{zeroed}")
        }
    }
}

impl Display for Expression {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        expression(self, 0, formatter)
    }
}

impl Display for Statement {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        statement(self, 0, formatter)
    }
}

impl Display for Kernel {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "kernel {}(", self.name)?;
        list(&self.parameters, formatter, |parameter, formatter| match parameter {
            Parameter::Scalar(variable) => {
                write!(formatter, "{}: {}", variable.name, variable.element.name())
            }
            Parameter::Buffer(buffer) => {
                let access = match buffer.access {
                    Access::Read => "read",
                    Access::Update => "update",
                };
                write!(formatter, "{}: {access} {}[{}]", buffer.name, buffer.element.name(), buffer.rank)?;
                // The last dimension is the usual one.
                match buffer.contiguous {
                    contiguous if contiguous == buffer.rank.checked_sub(1) => Ok(()),
                    None => formatter.write_str(" strided"),
                    Some(dimension) => write!(formatter, " contiguous in {dimension}"),
                }
            }
        })?;
        formatter.write_str(")\n")?;
        statement(&self.body, 1, formatter)
    }
}
