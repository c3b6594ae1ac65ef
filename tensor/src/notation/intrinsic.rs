//! The functions that expressions may call.

use std::fmt;

use crate::element::ElementType;

macro_rules! intrinsics {
    ($($variant:ident $name:literal $arity:literal $on:ident $help:literal),* $(,)?) => {
        /// A function that expressions may call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Intrinsic {
            $(#[doc = $help] $variant),*
        }

        impl Intrinsic {
            /// All functions.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in texts.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }

            /// The number of arguments.
            pub fn arity(self) -> usize {
                match self {
                    $(Self::$variant => $arity),*
                }
            }

            fn domain(self) -> Domain {
                match self {
                    $(Self::$variant => Domain::$on),*
                }
            }
        }
    };
}

/// The types that a function is defined for.
enum Domain {
    All,
    /// Those that have an order.
    Ordered,
    /// Real and complex numbers.
    Fractions,
    Reals,
    Complex,
}

intrinsics! {
    Abs "abs" 1 All "The absolute value; integers wrap. Of a complex number, with an imaginary part of zero.",
    Sqrt "sqrt" 1 Fractions "The square root.",
    Cbrt "cbrt" 1 Reals "The cube root.",
    Square "square" 1 All "The square.",
    Cube "cube" 1 All "The third power.",
    Sin "sin" 1 Fractions "The sine.",
    Cos "cos" 1 Fractions "The cosine.",
    Tan "tan" 1 Fractions "The tangent.",
    Asin "asin" 1 Fractions "The arc sine.",
    Acos "acos" 1 Fractions "The arc cosine.",
    Atan "atan" 1 Fractions "The arc tangent.",
    Sinh "sinh" 1 Fractions "The hyperbolic sine.",
    Cosh "cosh" 1 Fractions "The hyperbolic cosine.",
    Tanh "tanh" 1 Fractions "The hyperbolic tangent.",
    Asinh "asinh" 1 Fractions "The inverse hyperbolic sine.",
    Acosh "acosh" 1 Fractions "The inverse hyperbolic cosine.",
    Atanh "atanh" 1 Fractions "The inverse hyperbolic tangent.",
    Exp "exp" 1 Fractions "The exponential function.",
    Log "log" 1 Fractions "The natural logarithm.",
    Log10 "log10" 1 Reals "The decimal logarithm.",
    Pow "pow" 2 Fractions "The first argument to the power of the second.",
    Mod "mod" 2 Ordered "The remainder of a division that rounds towards zero.",
    Min "min" 2 Ordered "The smaller one; of floats IEEE 754-2019 `minimum`: NaN if either is, and -0 is smaller than +0.",
    Max "max" 2 Ordered "The larger one; of floats IEEE 754-2019 `maximum`: NaN if either is, and +0 is larger than -0.",
    Floor "floor" 1 Reals "The largest whole number that is not larger.",
    Ceil "ceil" 1 Reals "The smallest whole number that is not smaller.",
    Conj "conj" 1 Complex "The complex conjugate.",
}

impl Intrinsic {
    /// The function called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|intrinsic| intrinsic.name() == name)
    }

    /// Whether the function is defined for elements of this type.
    pub fn is_defined_for(self, element: ElementType) -> bool {
        match self.domain() {
            Domain::All => true,
            Domain::Ordered => !element.is_complex(),
            Domain::Fractions => !element.is_integer(),
            Domain::Complex => element.is_complex(),
            Domain::Reals => !element.is_integer() && !element.is_complex(),
        }
    }
}

impl fmt::Display for Intrinsic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
