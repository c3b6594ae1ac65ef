//! Types of whole numbers.

use std::fmt;

/// The type of the numbers of an [`Array`](super::Array). What is computed with them is computed in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Width {
    /// 8 bits, without sign.
    U8,
    /// 16 bits.
    I16,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
}

impl Width {
    /// All widths, the narrowest first.
    pub const ALL: [Self; 4] = [Self::U8, Self::I16, Self::I32, Self::I64];

    /// The bytes of a number.
    pub fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::I16 => 2,
            Self::I32 => 4,
            Self::I64 => 8,
        }
    }

    /// The least number.
    pub fn least(self) -> i64 {
        match self {
            Self::U8 => 0,
            Self::I16 => i16::MIN.into(),
            Self::I32 => i32::MIN.into(),
            Self::I64 => i64::MIN,
        }
    }

    /// The greatest number.
    pub fn greatest(self) -> i64 {
        match self {
            Self::U8 => u8::MAX.into(),
            Self::I16 => i16::MAX.into(),
            Self::I32 => i32::MAX.into(),
            Self::I64 => i64::MAX,
        }
    }

    /// The narrowest of `widths` that holds all numbers from `least` to `greatest`; the last one if none does.
    pub fn narrowest(widths: &[Self], least: i64, greatest: i64) -> Self {
        let holds = |width: &&Self| width.least() <= least && greatest <= width.greatest();
        widths.iter().find(holds).or(widths.last()).copied().unwrap_or(Self::I64)
    }

    /// The width with this name: `u8`, `i16`, `i32` or `i64`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|width| width.to_string() == name)
    }
}

impl fmt::Display for Width {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_width_holds_both_ends() {
        let narrowest = |least, greatest| Width::narrowest(&Width::ALL, least, greatest);
        assert_eq!([narrowest(0, 255), narrowest(0, 256), narrowest(-1, 0)], [Width::U8, Width::I16, Width::I16]);
        assert_eq!([narrowest(0, i64::from(i32::MAX)), narrowest(0, 1 << 31)], [Width::I32, Width::I64]);
    }
}
