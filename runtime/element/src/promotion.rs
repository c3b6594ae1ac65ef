//! Types in which elements of two types are computed with.

use crate::table::ElementType;

impl ElementType {
    /// The type in which NumPy computes with elements of all these types (`numpy.result_type`), in whatever order they
    /// are named: of integers, the smallest that has all values of two, if one has, and floats of 64 bits otherwise;
    /// with floats and complex numbers, those of 32 bits as long as each of the integers has at most 16. None of no
    /// types.
    ///
    /// ```
    /// use maniple_element::ElementType::{self, *};
    ///
    /// assert_eq!(ElementType::common([U8, I8]), Some(I16));
    /// assert_eq!(ElementType::common([I64, F32]), Some(F64));
    /// assert_eq!(ElementType::common([I8, U16, F32]), Some(F32));
    /// ```
    #[must_use]
    pub fn common(types: impl IntoIterator<Item = Self>) -> Option<Self> {
        let (integers, others): (Vec<_>, Vec<_>) = types.into_iter().partition(|element| element.is_integer());
        // Integers together may need more than each of them does beside a float.
        others.into_iter().chain(integers).reduce(Self::promoted)
    }

    /// The type for two.
    fn promoted(self, other: Self) -> Self {
        if self.is_integer() && other.is_integer() {
            return self.promoted_integer(other);
        }
        let is_wide = |element: Self| match element {
            Self::Bool | Self::U8 | Self::I8 | Self::U16 | Self::I16 | Self::F32 | Self::C32 => false,
            Self::U32 | Self::I32 | Self::U64 | Self::I64 | Self::F64 | Self::C64 => true,
        };
        match (self.is_complex() || other.is_complex(), is_wide(self) || is_wide(other)) {
            (false, false) => Self::F32,
            (false, true) => Self::F64,
            (true, false) => Self::C32,
            (true, true) => Self::C64,
        }
    }

    fn promoted_integer(self, other: Self) -> Self {
        let (lesser, greater) = if self.size() <= other.size() { (self, other) } else { (other, self) };
        match (lesser, greater) {
            (Self::Bool, element) | (element, Self::Bool) => element,
            _ if lesser.is_unsigned() == greater.is_unsigned() => greater,
            // A signed type has all values of an unsigned one that is narrower.
            _ if lesser.size() < greater.size() && !greater.is_unsigned() => greater,
            _ => match greater.size() {
                1 => Self::I16,
                2 => Self::I32,
                4 => Self::I64,
                _ => Self::F64,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ElementType::{self, *};

    /// The types that NumPy 2 gives for each pair, by the order of [`ElementType::ALL`].
    const TABLE: [[ElementType; 13]; 13] = [
        [Bool, U8, I8, U16, I16, U32, I32, U64, I64, F32, F64, C32, C64],
        [U8, U8, I16, U16, I16, U32, I32, U64, I64, F32, F64, C32, C64],
        [I8, I16, I8, I32, I16, I64, I32, F64, I64, F32, F64, C32, C64],
        [U16, U16, I32, U16, I32, U32, I32, U64, I64, F32, F64, C32, C64],
        [I16, I16, I16, I32, I16, I64, I32, F64, I64, F32, F64, C32, C64],
        [U32, U32, I64, U32, I64, U32, I64, U64, I64, F64, F64, C64, C64],
        [I32, I32, I32, I32, I32, I64, I32, F64, I64, F64, F64, C64, C64],
        [U64, U64, F64, U64, F64, U64, F64, U64, F64, F64, F64, C64, C64],
        [I64, I64, I64, I64, I64, I64, I64, F64, I64, F64, F64, C64, C64],
        [F32, F32, F32, F32, F32, F64, F64, F64, F64, F32, F64, C32, C64],
        [F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, C64, C64],
        [C32, C32, C32, C32, C32, C64, C64, C64, C64, C32, C64, C32, C64],
        [C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C64],
    ];

    #[test]
    fn types_are_promoted_as_numpy_does() {
        for (one, row) in ElementType::ALL.into_iter().zip(TABLE) {
            for (other, expected) in ElementType::ALL.into_iter().zip(row) {
                assert_eq!(ElementType::common([one, other]), Some(expected), "{one} and {other}");
            }
        }
    }

    #[test]
    fn the_order_of_types_does_not_matter() {
        for one in ElementType::ALL {
            for two in ElementType::ALL {
                for three in ElementType::ALL {
                    let common = ElementType::common([one, two, three]);
                    for other in [[one, three, two], [two, one, three], [two, three, one], [three, two, one]] {
                        assert_eq!(ElementType::common(other), common, "{one}, {two}, {three}");
                    }
                }
            }
        }
    }
}
