//! Expressions as C, and as CUDA C.

use super::Dialect;
use crate::arithmetic::cast as cast_to;
use crate::element::{ElementType, Scalar};
use crate::loops::{BinaryOperator, Buffer, Expression, Intrinsic, Reduction, Type, UnaryOperator, Variable};

/// The type's name in the generated source.
pub(super) fn type_name(element: ElementType) -> &'static str {
    if element == ElementType::Bool { "b8" } else { element.name() }
}

/// The type of an expression that keeps the rules.
pub(super) fn type_of(expression: &Expression) -> Type {
    match expression {
        Expression::Constant(value) => value.element_type().into(),
        Expression::Variable(variable) => variable.element.into(),
        Expression::Binary(operator, left, _) if !operator.is_comparison() => type_of(left),
        Expression::Bool(_) | Expression::Binary(..) => Type::Bool,
        Expression::Unary(_, operand) => type_of(operand),
        Expression::Cast(element, _) => (*element).into(),
        Expression::Select { then, .. } => type_of(then),
        Expression::Load { buffer, .. } => buffer.element.into(),
        Expression::Low(..) | Expression::High(..) => ElementType::I64.into(),
        Expression::Call(_, arguments) => arguments.first().map_or(Type::Bool, type_of),
    }
}

/// A division of integers that may end the kernel.
pub(super) fn may_fail(expression: &Expression) -> bool {
    let own = match expression {
        Expression::Binary(operator, left, right) => {
            operator.divides() && is_integer(type_of(left)) && nonzero(right).is_none()
        }
        _ => false,
    };
    let mut fails = own;
    expression.for_each_operand(|operand| fails |= may_fail(operand));
    fails
}

fn is_integer(found: Type) -> bool {
    matches!(found, Type::Number(element) if element.is_integer())
}

/// The value of a divisor that is known not to be zero, or 1 for one that is known to be positive.
fn nonzero(divisor: &Expression) -> Option<i64> {
    match divisor {
        Expression::Binary(BinaryOperator::Maximum, _, least)
            if matches!(**least, Expression::Constant(Scalar::I64(1..))) =>
        {
            Some(1)
        }
        Expression::Constant(value) => integer(*value).filter(|&value| value != 0),
        _ => None,
    }
}

/// The value of an integer.
fn integer(value: Scalar) -> Option<i64> {
    match cast_to(value, ElementType::I64) {
        Scalar::I64(number) if value.element_type().is_integer() => Some(number),
        _ => None,
    }
}

/// Whether C computes with more bits than these integers have.
fn is_promoted(element: ElementType) -> bool {
    element.is_integer() && element.size() < 4
}

fn constant(dialect: Dialect, value: Scalar) -> String {
    let (nan, infinity) = match dialect {
        Dialect::C => ("__builtin_nan(\"\")", "__builtin_inf()"),
        Dialect::Cuda => ("__longlong_as_double(0x7ff8000000000000LL)", "__longlong_as_double(0x7ff0000000000000LL)"),
    };
    let wide = |value: f64| match value {
        _ if value.is_nan() => nan.to_owned(),
        _ if value.is_infinite() => format!("({}{infinity})", if value < 0.0 { "-" } else { "" }),
        _ => format!("({value:?})"),
    };
    let narrow = |value: f32| match value {
        _ if value.is_finite() => format!("({value:?}f)"),
        _ => format!("((f32){})", wide(value.into())),
    };
    match value {
        Scalar::I32(i32::MIN) => "(-2147483647 - 1)".to_owned(),
        Scalar::I64(i64::MIN) => "(-(i64)9223372036854775807 - 1)".to_owned(),
        Scalar::Bool(value) => format!("((b8){})", u8::from(value)),
        Scalar::U8(value) => format!("((u8){value})"),
        Scalar::U16(value) => format!("((u16){value})"),
        Scalar::U32(value) => format!("((u32){value}u)"),
        Scalar::U64(value) => format!("((u64){value}ull)"),
        Scalar::I32(value) => format!("({value})"),
        Scalar::I64(value) => format!("((i64){value})"),
        Scalar::F32(value) => narrow(value),
        Scalar::F64(value) => wide(value),
        Scalar::C32(value) => format!("make_c32({}, {})", narrow(value.re), narrow(value.im)),
        Scalar::C64(value) => format!("make_c64({}, {})", wide(value.re), wide(value.im)),
        small => format!("(({})({small}))", type_name(small.element_type())),
    }
}

/// An element as something that can be assigned to.
pub(super) fn element(dialect: Dialect, buffer: &Buffer, indices: &[Expression]) -> String {
    let name = &buffer.name;
    let offset: Vec<String> = indices
        .iter()
        .enumerate()
        .map(|(dimension, index)| format!("{} * s{dimension}_{name}", expression(dialect, index)))
        .collect();
    if offset.is_empty() { format!("b_{name}[0]") } else { format!("b_{name}[{}]", offset.join(" + ")) }
}

/// `expression` as source that can be an operand of anything.
pub(super) fn expression(dialect: Dialect, value: &Expression) -> String {
    let print = |operand: &Expression| expression(dialect, operand);
    match value {
        Expression::Constant(value) => constant(dialect, *value),
        Expression::Bool(value) => u8::from(*value).to_string(),
        Expression::Variable(variable) => format!("v_{}", variable.name),
        Expression::Unary(UnaryOperator::Not, operand) => format!("(!{})", print(operand)),
        Expression::Unary(UnaryOperator::Negate, operand) => match type_of(operand) {
            Type::Number(element) if element.is_complex() || dialect == Dialect::Cuda && element.is_integer() => {
                format!("negate_{}({})", type_name(element), print(operand))
            }
            Type::Number(element) if is_promoted(element) => format!("(({})-{})", type_name(element), print(operand)),
            _ => format!("(-{})", print(operand)),
        },
        Expression::Binary(operator, left, right) => {
            let divisor = nonzero(right);
            match type_of(left) {
                Type::Bool => format!("({} {} {})", print(left), operator.name(), print(right)),
                Type::Number(element) => binary(dialect, *operator, element, &print(left), &print(right), divisor),
            }
        }
        Expression::Cast(to, operand) => cast(*to, type_of(operand), &print(operand)),
        Expression::Select { condition, then, otherwise } => {
            format!("({} ? {} : {})", print(condition), print(then), print(otherwise))
        }
        Expression::Load { buffer, indices } => element(dialect, buffer, indices),
        Expression::Low(buffer, dimension) => format!("l{dimension}_{}", buffer.name),
        Expression::High(buffer, dimension) => format!("h{dimension}_{}", buffer.name),
        Expression::Call(function, arguments) => {
            let element = match arguments.first().map(type_of) {
                Some(Type::Number(element)) => element,
                _ => ElementType::F64,
            };
            let arguments: Vec<String> = arguments.iter().map(print).collect();
            call(dialect, *function, element, &arguments.join(", "))
        }
    }
}

fn call(dialect: Dialect, function: Intrinsic, element: ElementType, arguments: &str) -> String {
    let name = function.name();
    if element.is_complex() || element.is_integer() {
        return format!("{name}_{}({arguments})", type_name(element));
    }
    let name = match function {
        Intrinsic::Square | Intrinsic::Cube => return format!("{name}_{}({arguments})", type_name(element)),
        Intrinsic::Abs => "fabs",
        _ => name,
    };
    let prefix = if dialect == Dialect::C { "__builtin_" } else { "" };
    let suffix = if element == ElementType::F32 { "f" } else { "" };
    format!("{prefix}{name}{suffix}({arguments})")
}

/// `left operator right` for numbers. `divisor` is the right operand, if it is an integer known not to be zero.
pub(super) fn binary(
    dialect: Dialect,
    operator: BinaryOperator,
    element: ElementType,
    left: &str,
    right: &str,
    divisor: Option<i64>,
) -> String {
    use BinaryOperator::*;
    let of = type_name(element);
    let function = operator.properties().stem;
    match operator {
        Minimum | Maximum | Bit | NextBit => return format!("{function}_{of}({left}, {right})"),
        Equal if element.is_complex() => return format!("equal_{of}({left}, {right})"),
        NotEqual if element.is_complex() => return format!("(!equal_{of}({left}, {right}))"),
        Equal | NotEqual | Less | LessEqual | And | Or => return format!("({left} {} {right})", operator.name()),
        Add | Subtract | Multiply | Divide | Remainder | FloorDivide | FloorRemainder => {}
    }
    if element.is_complex() {
        return format!("{function}_{of}({left}, {right})");
    }
    if !element.is_integer() {
        let suffix = if element == ElementType::F32 { "f" } else { "" };
        return match (operator, dialect) {
            (Remainder, Dialect::C) => format!("__builtin_fmod{suffix}({left}, {right})"),
            (Remainder, Dialect::Cuda) => format!("fmod{suffix}({left}, {right})"),
            _ => format!("({left} {} {right})", operator.name()),
        };
    }
    match (divisor, dialect) {
        // C is compiled with -fwrapv; CUDA C has no such thing.
        (_, Dialect::C) if !operator.divides() && is_promoted(element) => {
            format!("(({of})({left} {} {right}))", operator.name())
        }
        (_, Dialect::C) if !operator.divides() => format!("({left} {} {right})", operator.name()),
        (_, Dialect::Cuda) if !operator.divides() => format!("{function}_{of}({left}, {right})"),
        (Some(2..), _) if matches!(operator, Divide | Remainder) => format!("({left} {} {right})", operator.name()),
        (Some(_), _) => format!("{function}_{of}({left}, {right})"),
        (None, Dialect::C) => format!("CHECKED({of}, {function}, {left}, {right})"),
        (None, Dialect::Cuda) => format!("{function}_{of}({left}, checked_{of}({right}, error))"),
    }
}

fn cast(to: ElementType, from: Type, operand: &str) -> String {
    let Type::Number(from) = from else { return operand.to_owned() };
    let (to_name, from_name) = (type_name(to), type_name(from));
    let part = if to == ElementType::C32 { "f32" } else { "f64" };
    if from == to {
        operand.to_owned()
    } else if from.is_complex() {
        format!("{from_name}_to_{to_name}({operand})")
    } else if to.is_complex() {
        format!("make_{to_name}(({part}){operand}, 0)")
    } else if to == ElementType::Bool {
        format!("((b8)({operand} != 0))")
    } else if to.is_integer() && !from.is_integer() {
        format!("{from_name}_to_{to_name}({operand})")
    } else {
        format!("(({to_name}){operand})")
    }
}

/// `target` combined with `value`, as a statement.
pub(super) fn update(
    dialect: Dialect,
    target: &str,
    element: ElementType,
    reduction: Option<Reduction>,
    value: &str,
) -> String {
    match reduction {
        None => format!("{target} = {value};"),
        Some(Reduction::Sum) if !element.is_complex() && dialect == Dialect::C => format!("{target} += {value};"),
        Some(reduction) => {
            // Names of a kernel do not begin with digits.
            let [left, right] = ["0a", "0b"].map(|name| Variable::new(name, element).value());
            let of = type_name(element);
            let combined = match (reduction, reduction.operator()) {
                (Reduction::Custom(custom), _) => {
                    expression(dialect, &Expression::of_formula(custom.formula(), &left, &right, element))
                }
                (_, Some(operator)) => binary(dialect, operator, element, "v_0a", "v_0b", None),
                (_, None) => "v_0b".to_owned(),
            };
            format!(
                "{{ const {of} v_0b = {value}; {of} *at_ = &{target}; const {of} v_0a = *at_; *at_ = {combined}; }}"
            )
        }
    }
}
