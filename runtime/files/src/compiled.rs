//! What reads text, compiled here for each type of elements, for speed, and not once more in each crate that reads.

use num_complex::Complex;

use crate::entry_text::PartOfText;
use crate::error::ReadError;
use crate::lines::Entries;
use crate::matrix_market::{self, MatrixMarketHeader};
use crate::parallel::Parallel;
use crate::tns;

/// The extents of a tensor, and its entries.
type Tensor<T> = (Vec<u64>, Entries<T>);

/// A type for which this crate has the code that reads text.
#[doc(hidden)]
pub trait Compiled: Sized {
    /// As of [`matrix_market::read_entries`].
    fn matrix_entries(text: &[u8], parallel: &dyn Parallel) -> Result<(MatrixMarketHeader, Entries<Self>), ReadError>;

    /// As of [`tns::read_entries`].
    fn tensor_entries(
        text: &[u8],
        base: u64,
        extents: Option<&[u64]>,
        parallel: &dyn Parallel,
    ) -> Result<Tensor<Self>, ReadError>;

    /// As of [`EntryText::read_part`](crate::EntryText::read_part).
    fn visit_lines(lines: &PartOfText<'_>, visit: &mut dyn FnMut(&[u64], Self)) -> Result<u64, ReadError>;
}

macro_rules! compiled {
    ($($ty:ty),*) => {$(
        impl Compiled for $ty {
            fn matrix_entries(text: &[u8], parallel: &dyn Parallel) -> Result<(MatrixMarketHeader, Entries<Self>), ReadError> {
                matrix_market::entries_of(text, parallel)
            }

            fn tensor_entries(
                text: &[u8],
                base: u64,
                extents: Option<&[u64]>,
                parallel: &dyn Parallel,
            ) -> Result<Tensor<Self>, ReadError> {
                tns::entries_of(text, base, extents, parallel)
            }

            fn visit_lines(lines: &PartOfText<'_>, visit: &mut dyn FnMut(&[u64], Self)) -> Result<u64, ReadError> {
                lines.visit(visit)
            }
        }
    )*};
}

compiled!(bool, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, Complex<f32>, Complex<f64>);
