//! The operators of the loop IR.

use std::fmt;

use num_complex::Complex;

use crate::element::{ElementType, Scalar};

/// An operator of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOperator {
    /// `-a`, of numbers.
    Negate,
    /// `!a`, of truth values.
    Not,
}

/// An operator of two operands of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOperator {
    /// `a + b`.
    Add,
    /// `a - b`.
    Subtract,
    /// `a * b`.
    Multiply,
    /// `a / b`; of integers, rounded towards zero. Of complex numbers, in a way in which nothing overflows before the quotient does.
    Divide,
    /// `a - b * (a / b)` with the quotient rounded towards zero; of reals or integers.
    Remainder,
    /// The quotient of integers rounded down.
    FloorDivide,
    /// `a - b * floor(a / b)` of integers: between 0 and `b` (`b` excluded).
    FloorRemainder,
    /// The lesser; of floats IEEE 754-2019 `minimum`: NaN if either is, and -0 is less than +0.
    Minimum,
    /// The greater; of floats IEEE 754-2019 `maximum`: NaN if either is, and +0 is greater than -0.
    Maximum,
    /// `a == b`: a truth value.
    Equal,
    /// `a != b`: a truth value.
    NotEqual,
    /// `a < b`: a truth value.
    Less,
    /// `a <= b`: a truth value.
    LessEqual,
    /// Both, of truth values.
    And,
    /// Either, of truth values.
    Or,
}

impl BinaryOperator {
    /// The name, as the text form writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::FloorDivide => "floor_divide",
            Self::FloorRemainder => "floor_remainder",
            Self::Minimum => "min",
            Self::Maximum => "max",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::And => "&&",
            Self::Or => "||",
        }
    }

    /// Whether it makes a truth value of two numbers.
    pub fn is_comparison(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual | Self::Less | Self::LessEqual)
    }

    /// Whether it combines truth values.
    pub fn is_logical(self) -> bool {
        matches!(self, Self::And | Self::Or)
    }

    /// Whether it needs an order, which complex numbers lack.
    pub fn needs_order(self) -> bool {
        matches!(
            self,
            Self::Minimum
                | Self::Maximum
                | Self::Less
                | Self::LessEqual
                | Self::Remainder
                | Self::FloorDivide
                | Self::FloorRemainder
        )
    }

    /// Whether it is for integers only.
    pub fn needs_integers(self) -> bool {
        matches!(self, Self::FloorDivide | Self::FloorRemainder)
    }

    /// Whether integers make it fail for a right operand of zero.
    pub fn divides(self) -> bool {
        matches!(self, Self::Divide | Self::Remainder | Self::FloorDivide | Self::FloorRemainder)
    }
}

/// A commutative and associative operator with an identity, in which many values may be combined in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum; identity 0.
    Sum,
    /// The product; identity 1.
    Product,
    /// The least; identity the greatest value of the type (infinity for floats). A NaN wins.
    Minimum,
    /// The greatest; identity the least value of the type (minus infinity for floats). A NaN wins.
    Maximum,
}

impl Reduction {
    /// The operator called `name` in texts, where `sum` and `product` can stand for `+` and `*`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "+" | "sum" => Some(Self::Sum),
            "*" | "product" => Some(Self::Product),
            "min" => Some(Self::Minimum),
            "max" => Some(Self::Maximum),
            _ => None,
        }
    }

    /// Whether the operator is defined for elements of this type.
    pub fn is_defined_for(self, element: ElementType) -> bool {
        self.identity(element).is_some()
    }

    /// The operator that combines two values.
    pub fn operator(self) -> BinaryOperator {
        match self {
            Self::Sum => BinaryOperator::Add,
            Self::Product => BinaryOperator::Multiply,
            Self::Minimum => BinaryOperator::Minimum,
            Self::Maximum => BinaryOperator::Maximum,
        }
    }

    /// The identity of elements of type `element`; none for the least and greatest of complex numbers.
    pub fn identity(self, element: ElementType) -> Option<Scalar> {
        Some(match (self, element) {
            (Self::Sum | Self::Product, _) => {
                let value = if self == Self::Sum { 0 } else { 1 };
                match element {
                    ElementType::I32 => Scalar::I32(value),
                    ElementType::I64 => Scalar::I64(value.into()),
                    ElementType::F32 => Scalar::F32(value as f32),
                    ElementType::F64 => Scalar::F64(value.into()),
                    ElementType::C32 => Scalar::C32(Complex::new(value as f32, 0.0)),
                    ElementType::C64 => Scalar::C64(Complex::new(value.into(), 0.0)),
                }
            }
            (Self::Minimum, ElementType::I32) => Scalar::I32(i32::MAX),
            (Self::Minimum, ElementType::I64) => Scalar::I64(i64::MAX),
            (Self::Minimum, ElementType::F32) => Scalar::F32(f32::INFINITY),
            (Self::Minimum, ElementType::F64) => Scalar::F64(f64::INFINITY),
            (Self::Maximum, ElementType::I32) => Scalar::I32(i32::MIN),
            (Self::Maximum, ElementType::I64) => Scalar::I64(i64::MIN),
            (Self::Maximum, ElementType::F32) => Scalar::F32(f32::NEG_INFINITY),
            (Self::Maximum, ElementType::F64) => Scalar::F64(f64::NEG_INFINITY),
            (Self::Minimum | Self::Maximum, ElementType::C32 | ElementType::C64) => return None,
        })
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Sum => "+",
            Self::Product => "*",
            Self::Minimum => "min",
            Self::Maximum => "max",
        })
    }
}

macro_rules! intrinsics {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $arguments:literal;)*) => {
        /// A function of floats or complex numbers; its result has the type of its arguments.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Intrinsic {
            $($(#[$doc])* $name,)*
        }

        impl Intrinsic {
            /// All intrinsics.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name, as notation, C and CUDA write it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// How many arguments it takes.
            pub fn arguments(self) -> usize {
                match self { $(Self::$name => $arguments,)* }
            }
        }
    };
}

intrinsics! {
    /// The absolute value, of integers too. Of complex numbers, as a complex number without imaginary part.
    Abs = "abs", 1;
    /// The square root.
    Sqrt = "sqrt", 1;
    /// The cube root. Of reals only.
    Cbrt = "cbrt", 1;
    /// The exponential.
    Exp = "exp", 1;
    /// The natural logarithm.
    Log = "log", 1;
    /// The decimal logarithm.
    Log10 = "log10", 1;
    /// The sine.
    Sin = "sin", 1;
    /// The cosine.
    Cos = "cos", 1;
    /// The tangent.
    Tan = "tan", 1;
    /// The arc sine.
    Asin = "asin", 1;
    /// The arc cosine.
    Acos = "acos", 1;
    /// The arc tangent.
    Atan = "atan", 1;
    /// The hyperbolic sine.
    Sinh = "sinh", 1;
    /// The hyperbolic cosine.
    Cosh = "cosh", 1;
    /// The hyperbolic tangent.
    Tanh = "tanh", 1;
    /// The inverse of the hyperbolic sine.
    Asinh = "asinh", 1;
    /// The inverse of the hyperbolic cosine.
    Acosh = "acosh", 1;
    /// The inverse of the hyperbolic tangent.
    Atanh = "atanh", 1;
    /// The first argument to the power of the second.
    Pow = "pow", 2;
    /// The largest integer that is not greater. Of reals only.
    Floor = "floor", 1;
    /// The least integer that is not less. Of reals only.
    Ceil = "ceil", 1;
    /// The complex conjugate. Of complex numbers only.
    Conj = "conj", 1;
}
