//! The table.

use std::fmt;

use super::properties::Domain::{Complexes, Fractions, Integers, Numbers, Ordered, Reals, Truths};
use super::properties::Special::{Greatest, Least, One, Zero};
use super::properties::{Domain, Properties};
use crate::element::ElementType;

/// Declares an enum of operators with the properties of each.
macro_rules! table {
    ($(#[$about:meta])* $table:ident { $($(#[$doc:meta])* $variant:ident = $properties:expr;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $table {
            $($(#[$doc])* $variant,)*
        }

        impl $table {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The properties of the operator or function.
            pub fn properties(self) -> &'static Properties {
                match self {
                    $(Self::$variant => const { &$properties },)*
                }
            }

            /// The name in texts.
            pub fn name(self) -> &'static str {
                self.properties().name
            }

            /// Whether it is defined for elements of this type.
            pub fn is_defined_for(self, element: ElementType) -> bool {
                self.properties().domain.has(element)
            }
        }

        impl fmt::Display for $table {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}

const fn row(name: &'static str, stem: &'static str, arity: usize, domain: Domain) -> Properties {
    Properties::new(name, stem, arity, domain)
}

const fn comparison(name: &'static str, stem: &'static str, domain: Domain) -> Properties {
    Properties::comparison(name, stem, domain)
}

/// A function of one argument.
const fn function(name: &'static str, domain: Domain) -> Properties {
    Properties::new(name, name, 1, domain)
}

/// Zero if its only argument is, or both are.
const ARGUMENT: &[&[usize]] = &[&[0]];
const BOTH: &[&[usize]] = &[&[0, 1]];
/// Zero if either argument is.
const EITHER: &[&[usize]] = &[&[0], &[1]];

/// These are written as operators and as functions.
const REMAINDER: Properties = row("%", "remainder", 2, Ordered);
const MINIMUM: Properties =
    row("min", "min", 2, Ordered).commutative().associative().identity(Greatest).annihilator(Least).zeros(BOTH);
const MAXIMUM: Properties =
    row("max", "max", 2, Ordered).commutative().associative().identity(Least).annihilator(Greatest).zeros(BOTH);

table! {
    /// An operator of one operand.
    UnaryOperator {
        /// `-a`, of numbers.
        Negate = row("-", "negate", 1, Numbers).zeros(ARGUMENT);
        /// `!a`, of truth values.
        Not = row("!", "not", 1, Truths);
    }
}

table! {
    /// An operator of two operands of one type.
    BinaryOperator {
        /// `a + b`.
        Add = row("+", "add", 2, Numbers).commutative().associative().identity(Zero).zeros(BOTH);
        /// `a - b`.
        Subtract = row("-", "subtract", 2, Numbers).identity(Zero).zeros(BOTH);
        /// `a * b`.
        Multiply = row("*", "multiply", 2, Numbers).commutative().associative().identity(One).annihilator(Zero).zeros(EITHER);
        /// `a / b`; of integers, rounded towards zero. Zero divided by zero has no value, so a quotient need not be
        /// zero where `a` is. Of complex numbers, in a way in which nothing overflows before the quotient does.
        Divide = row("/", "divide", 2, Numbers).identity(One);
        /// `a - b * (a / b)` with the quotient rounded towards zero; of reals or integers.
        Remainder = REMAINDER;
        /// The quotient of integers rounded down.
        FloorDivide = row("floor_divide", "floor_divide", 2, Integers).identity(One);
        /// `a - b * floor(a / b)` of integers: between 0 and `b` (`b` excluded).
        FloorRemainder = row("floor_remainder", "floor_remainder", 2, Integers);
        /// The bit of `a` with the number `b`, of those of its type: 1 if it is set, else 0.
        Bit = row("bit", "bit", 2, Integers).zeros(ARGUMENT);
        /// The number of the first bit of `a` that is set, from number `b` on; if there is none, how many bits the type
        /// has.
        NextBit = row("next_bit", "next_bit", 2, Integers);
        /// The lesser; of floats IEEE 754-2019 `minimum`: NaN if either argument is, and -0 is less than +0.
        Minimum = MINIMUM;
        /// The greater; of floats IEEE 754-2019 `maximum`: NaN if either argument is, and +0 is greater than -0.
        Maximum = MAXIMUM;
        /// `a == b`: a truth value.
        Equal = comparison("==", "equal", Numbers).commutative();
        /// `a != b`: a truth value.
        NotEqual = comparison("!=", "not_equal", Numbers).commutative().zeros(BOTH);
        /// `a < b`: a truth value.
        Less = comparison("<", "less", Ordered).zeros(BOTH);
        /// `a <= b`: a truth value.
        LessEqual = comparison("<=", "less_equal", Ordered);
        /// Both, of truth values. Numbers other than zero count as true.
        And = row("&&", "and", 2, Truths).commutative().associative().identity(One).annihilator(Zero).zeros(EITHER);
        /// Either, of truth values. Numbers other than zero count as true.
        Or = row("||", "or", 2, Truths).commutative().associative().identity(Zero).annihilator(One).zeros(BOTH);
    }
}

table! {
    /// A function; its result has the type of its arguments.
    Intrinsic {
        /// The absolute value; integers wrap. Of a complex number, as a complex number without imaginary part.
        Abs = row("abs", "abs", 1, Numbers).zeros(ARGUMENT);
        /// The square root.
        Sqrt = function("sqrt", Fractions).zeros(ARGUMENT);
        /// The cube root.
        Cbrt = function("cbrt", Reals).zeros(ARGUMENT);
        /// The square.
        Square = function("square", Numbers).zeros(ARGUMENT);
        /// The third power.
        Cube = function("cube", Numbers).zeros(ARGUMENT);
        /// The sine.
        Sin = function("sin", Fractions).zeros(ARGUMENT);
        /// The cosine.
        Cos = function("cos", Fractions);
        /// The tangent.
        Tan = function("tan", Fractions).zeros(ARGUMENT);
        /// The arc sine.
        Asin = function("asin", Fractions).zeros(ARGUMENT);
        /// The arc cosine.
        Acos = function("acos", Fractions);
        /// The arc tangent.
        Atan = function("atan", Fractions).zeros(ARGUMENT);
        /// The hyperbolic sine.
        Sinh = function("sinh", Fractions).zeros(ARGUMENT);
        /// The hyperbolic cosine.
        Cosh = function("cosh", Fractions);
        /// The hyperbolic tangent.
        Tanh = function("tanh", Fractions).zeros(ARGUMENT);
        /// The inverse of the hyperbolic sine.
        Asinh = function("asinh", Fractions).zeros(ARGUMENT);
        /// The inverse of the hyperbolic cosine.
        Acosh = function("acosh", Fractions);
        /// The inverse of the hyperbolic tangent.
        Atanh = function("atanh", Fractions).zeros(ARGUMENT);
        /// The exponential function.
        Exp = function("exp", Fractions);
        /// The natural logarithm.
        Log = function("log", Fractions);
        /// The decimal logarithm.
        Log10 = function("log10", Reals);
        /// The first argument to the power of the second.
        Pow = row("pow", "pow", 2, Fractions);
        /// The remainder of a division that rounds towards zero, with the sign of the first argument:
        /// [`BinaryOperator::Remainder`].
        Mod = Properties { name: "mod", ..REMAINDER };
        /// The lesser: [`BinaryOperator::Minimum`].
        Min = MINIMUM;
        /// The greater: [`BinaryOperator::Maximum`].
        Max = MAXIMUM;
        /// The largest whole number that is not greater.
        Floor = function("floor", Reals).zeros(ARGUMENT);
        /// The least whole number that is not less.
        Ceil = function("ceil", Reals).zeros(ARGUMENT);
        /// The complex conjugate.
        Conj = function("conj", Complexes).zeros(ARGUMENT);
    }
}

impl BinaryOperator {
    /// Whether it makes a truth value of two numbers.
    pub fn is_comparison(self) -> bool {
        self.properties().compares
    }

    /// Whether it combines truth values; of numbers, whether they are other than zero.
    pub fn is_logical(self) -> bool {
        matches!(self, Self::And | Self::Or)
    }

    /// Whether integers make it fail for a right operand of zero.
    pub fn divides(self) -> bool {
        matches!(self, Self::Divide | Self::Remainder | Self::FloorDivide | Self::FloorRemainder)
    }
}

impl Intrinsic {
    /// The function called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|function| function.name() == name)
    }

    /// The number of arguments.
    pub fn arity(self) -> usize {
        self.properties().arity
    }

    /// The same as [`arity`](Self::arity).
    pub fn arguments(self) -> usize {
        self.arity()
    }

    /// The operator that the function is another name of.
    pub fn operator(self) -> Option<BinaryOperator> {
        match self {
            Self::Mod => Some(BinaryOperator::Remainder),
            Self::Min => Some(BinaryOperator::Minimum),
            Self::Max => Some(BinaryOperator::Maximum),
            _ => None,
        }
    }
}
