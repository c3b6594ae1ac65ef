//! Values of fields: every one is a [`Word`] to the oracle, and a Rust type to the runtime.

use maniple::operators::{Max, Min, Sum, Xor};
use maniple::{AnyPoint, FieldType, FieldValue, OperatorId, Privilege, Ptr, ReductionOperator, register_reduction};

/// A value of any field, as the oracle keeps it.
pub type Word = u64;

/// The field struct of all regions of random programs: their fields are made at run time.
pub struct Cells;

/// The type of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `i64`.
    Long,
    /// `u32`.
    Short,
    /// An integer of another type.
    Number(Width),
    /// [`Pair`]: also a range of numbers.
    Pair,
    /// [`Trio`]: three bytes, aligned to one.
    Trio,
    /// A pointer to a row from -1 to this number, both of which may be dangling.
    Pointer(i64),
}

/// The type of an integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the types' names say it")]
pub enum Width {
    I8,
    U16,
    I32,
    U64,
}

impl Kind {
    /// Whether NumPy has a type for the values.
    #[must_use]
    pub fn is_number(self) -> bool {
        matches!(self, Self::Long | Self::Short | Self::Number(_))
    }
}

impl Width {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::I8, Self::U16, Self::I32, Self::U64];
}

/// Two integers.
pub type Pair = [u32; 2];

/// A value of odd size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Trio([u8; 3]);

// SAFETY: three bytes, of which all zero is a value.
unsafe impl bytemuck::Zeroable for Trio {}

/// A Rust type that fields hold, as seen from words.
pub trait Stored: FieldValue {
    /// The value of a word that [`Kind::make`] gave.
    fn from_word(word: Word) -> Self;
    /// The word of a value.
    fn word(self) -> Word;
}

/// The word of an integer has its bits, and zeros before them.
macro_rules! stored_integers {
    ($($ty:ty as $unsigned:ty),*) => {
        $(impl Stored for $ty {
            fn from_word(word: Word) -> Self {
                word as Self
            }

            fn word(self) -> Word {
                Word::from(self as $unsigned)
            }
        })*
    };
}

stored_integers!(i8 as u8, u16 as u16, i32 as u32, u32 as u32, i64 as u64, u64 as u64);

impl Stored for Pair {
    fn from_word(word: Word) -> Self {
        [word as u32, (word >> 32) as u32]
    }

    fn word(self) -> Word {
        Word::from(self[0]) | Word::from(self[1]) << 32
    }
}

impl Stored for Trio {
    fn from_word(word: Word) -> Self {
        Self([word as u8, (word >> 8) as u8, (word >> 16) as u8])
    }

    fn word(self) -> Word {
        Word::from(self.0[0]) | Word::from(self.0[1]) << 8 | Word::from(self.0[2]) << 16
    }
}

impl Stored for Ptr<Cells> {
    fn from_word(word: Word) -> Self {
        Self::row(word as i64)
    }

    fn word(self) -> Word {
        self.point()[0] as Word
    }
}

/// Runs an expression with the Rust type of a kind.
#[macro_export]
macro_rules! with_kind {
    ($kind:expr, $T:ident => $body:expr) => {
        match $kind {
            $crate::value::Kind::Long => {
                type $T = i64;
                $body
            }
            $crate::value::Kind::Short => {
                type $T = u32;
                $body
            }
            $crate::value::Kind::Number($crate::value::Width::I8) => {
                type $T = i8;
                $body
            }
            $crate::value::Kind::Number($crate::value::Width::U16) => {
                type $T = u16;
                $body
            }
            $crate::value::Kind::Number($crate::value::Width::I32) => {
                type $T = i32;
                $body
            }
            $crate::value::Kind::Number($crate::value::Width::U64) => {
                type $T = u64;
                $body
            }
            $crate::value::Kind::Pair => {
                type $T = $crate::value::Pair;
                $body
            }
            $crate::value::Kind::Trio => {
                type $T = $crate::value::Trio;
                $body
            }
            $crate::value::Kind::Pointer(_) => {
                type $T = maniple::Ptr<$crate::value::Cells>;
                $body
            }
        }
    };
}

impl Kind {
    /// The word of a value of this kind, made from a random word. Half of the integers are small, so that they can be
    /// colors.
    #[must_use]
    pub fn make(self, random: Word) -> Word {
        match self {
            Self::Long | Self::Short | Self::Number(_) if random.is_multiple_of(2) => (random >> 8) % 8,
            Self::Pair if random.is_multiple_of(2) => ((random >> 8) % 8) | (((random >> 16) % 12) << 32),
            Self::Long | Self::Pair => random,
            Self::Number(_) => with_kind!(self, T => <T as Stored>::from_word(random).word()),
            Self::Short => random & 0xffff_ffff,
            Self::Trio => random & 0xff_ffff,
            Self::Pointer(last) => {
                // Dangling ones are rare.
                let rows = last.max(1) as Word;
                if random.is_multiple_of(211) { (last as Word).wrapping_sub(random & 1) } else { (random >> 8) % rows }
            }
        }
    }

    /// The integer of a word that [`Kind::make`] gave. None if the kind is none of integers.
    #[must_use]
    pub fn number(self, word: Word) -> Option<i128> {
        Some(match self {
            Self::Long => (word as i64).into(),
            Self::Short => (word as u32).into(),
            Self::Number(Width::I8) => (word as i8).into(),
            Self::Number(Width::U16) => (word as u16).into(),
            Self::Number(Width::I32) => (word as i32).into(),
            Self::Number(Width::U64) => word.into(),
            Self::Pair | Self::Trio | Self::Pointer(_) => return None,
        })
    }

    /// The type that the runtime declares.
    #[must_use]
    pub fn field_type(self) -> FieldType {
        with_kind!(self, T => FieldType::of::<T>())
    }
}

/// A reduction operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    /// Built in.
    Sum,
    /// Built in.
    Max,
    /// Built in.
    Min,
    /// Built in.
    Xor,
    /// [`Stamp`], on long integers.
    Stamp,
    /// [`Tally`], on pairs.
    Tally,
}

/// Contributions smaller than the value: flips bits of both halves of a long integer.
#[derive(Default)]
pub struct Stamp;

impl ReductionOperator<i64> for Stamp {
    type Rhs = u32;

    fn identity() -> u32 {
        0
    }

    fn apply(value: &mut i64, contribution: u32) {
        *value ^= (u64::from(contribution) | u64::from(contribution) << 32) as i64;
    }

    fn fold(into: &mut u32, contribution: u32) {
        *into ^= contribution;
    }
}

/// Contributions of another type than the value: adds to both members of a pair.
#[derive(Default)]
pub struct Tally;

impl ReductionOperator<Pair> for Tally {
    type Rhs = u64;

    fn identity() -> u64 {
        0
    }

    fn apply(value: &mut Pair, contribution: u64) {
        value[0] = value[0].wrapping_add(contribution as u32);
        value[1] = value[1].wrapping_add((contribution as u32).wrapping_mul(3));
    }

    fn fold(into: &mut u64, contribution: u64) {
        *into = into.wrapping_add(contribution);
    }
}

/// Runs an expression with the Rust types of an operator and of the field that it reduces to; the other one if the
/// operator is not known on the field.
#[macro_export]
macro_rules! with_operator {
    ($operator:expr, $kind:expr, $Op:ident, $T:ident => $body:expr, else $other:expr) => {
        $crate::with_operator!(@match $operator, $kind, $Op, $T, $body, $other;
            (Sum, Long, maniple::operators::Sum, i64) (Sum, Short, maniple::operators::Sum, u32)
            (Max, Long, maniple::operators::Max, i64) (Max, Short, maniple::operators::Max, u32)
            (Min, Long, maniple::operators::Min, i64) (Min, Short, maniple::operators::Min, u32)
            (Xor, Long, maniple::operators::Xor, i64) (Xor, Short, maniple::operators::Xor, u32)
            (Stamp, Long, $crate::value::Stamp, i64)
            (Tally, Pair, $crate::value::Tally, $crate::value::Pair))
    };
    (@match $operator:expr, $kind:expr, $Op:ident, $T:ident, $body:expr, $other:expr;
        $(($name:ident, $field:ident, $op_type:ty, $type:ty))*) => {
        match ($operator, $kind) {
            $(($crate::value::Operator::$name, $crate::value::Kind::$field) => {
                type $Op = $op_type;
                type $T = $type;
                $body
            })*
            _ => $other,
        }
    };
}

impl Operator {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Sum, Self::Max, Self::Min, Self::Xor, Self::Stamp, Self::Tally];

    /// Whether the operator is defined on fields of a kind.
    #[must_use]
    pub fn is_on(self, kind: Kind) -> bool {
        matches!(
            (self, kind),
            (Self::Sum | Self::Max | Self::Min | Self::Xor, Kind::Long | Kind::Short)
                | (Self::Stamp, Kind::Long)
                | (Self::Tally, Kind::Pair)
        )
    }

    /// Whether the runtime refuses it on fields of a kind: it knows the usual operators on all integers.
    #[must_use]
    pub fn is_refused_on(self, kind: Kind) -> bool {
        let is_usual = matches!(self, Self::Sum | Self::Max | Self::Min | Self::Xor);
        !(self.is_on(kind) || is_usual && matches!(kind, Kind::Number(_)))
    }

    /// The kind of fields that hold contributions to a field of this kind.
    #[must_use]
    pub fn contributions(self, kind: Kind) -> Kind {
        match self {
            Self::Sum | Self::Max | Self::Min | Self::Xor => kind,
            Self::Stamp => Kind::Short,
            Self::Tally => Kind::Number(Width::U64),
        }
    }

    /// The privilege to reduce with the operator.
    #[must_use]
    pub fn privilege(self) -> Privilege {
        Privilege::Reduce(match self {
            Self::Sum => OperatorId::of::<Sum>(),
            Self::Max => OperatorId::of::<Max>(),
            Self::Min => OperatorId::of::<Min>(),
            Self::Xor => OperatorId::of::<Xor>(),
            Self::Stamp => OperatorId::of::<Stamp>(),
            Self::Tally => OperatorId::of::<Tally>(),
        })
    }

    /// The value after a contribution made from a random word. The oracle's own definition of every operator.
    #[must_use]
    pub fn apply(self, kind: Kind, value: Word, random: Word) -> Word {
        let short = random as u32;
        match (self, kind) {
            (Self::Sum, Kind::Long) => value.wrapping_add(random),
            (Self::Sum, _) => (value as u32).wrapping_add(short).into(),
            (Self::Max, Kind::Long) => (value as i64).max(random as i64) as Word,
            (Self::Max, _) => (value as u32).max(short).into(),
            (Self::Min, Kind::Long) => (value as i64).min(random as i64) as Word,
            (Self::Min, _) => (value as u32).min(short).into(),
            (Self::Xor, Kind::Long) => value ^ random,
            (Self::Xor, _) => (value as u32 ^ short).into(),
            (Self::Stamp, _) => value ^ (Word::from(short) << 32 | Word::from(short)),
            (Self::Tally, _) => {
                let (low, high) = (value as u32, (value >> 32) as u32);
                let (low, high) = (low.wrapping_add(short), high.wrapping_add(short.wrapping_mul(3)));
                Word::from(high) << 32 | Word::from(low)
            }
        }
    }
}

/// Makes the operators of this crate known to the runtime.
pub fn register_operators() {
    register_reduction::<Stamp, i64>();
    register_reduction::<Tally, Pair>();
}

/// A number that depends on both in every bit (the finalizer of SplitMix64, Steele et al. 2014).
#[must_use]
pub fn mix(state: Word, value: Word) -> Word {
    let mut z = (state.rotate_left(17) ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number for a point.
#[must_use]
pub fn hash_point(point: AnyPoint) -> Word {
    point.coords().iter().fold(1, |hash, &coordinate| mix(hash, coordinate as Word))
}
