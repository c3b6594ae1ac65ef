//! Arrays of whole numbers, each as narrow as its numbers allow.

use std::sync::LazyLock;

use maniple::Topology;

use super::error::LevelError;
use super::width::Width;

/// Numbers of one width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Array {
    /// Of [`Width::U8`].
    U8(Vec<u8>),
    /// Of [`Width::I16`].
    I16(Vec<i16>),
    /// Of [`Width::I32`].
    I32(Vec<i32>),
    /// Of [`Width::I64`].
    I64(Vec<i64>),
}

/// Does the same with the vector of each width.
#[macro_export]
macro_rules! with_numbers {
    ($array:expr, $numbers:ident => $result:expr) => {
        match $array {
            $crate::level::Array::U8($numbers) => $result,
            $crate::level::Array::I16($numbers) => $result,
            $crate::level::Array::I32($numbers) => $result,
            $crate::level::Array::I64($numbers) => $result,
        }
    };
}
pub use with_numbers;

/// `count` times `value`. Zeros are pages that the system makes when they are first written to, by whichever thread.
///
/// # Errors
///
/// [`LevelError::Memory`] instead of the end of the process.
pub fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>, LevelError> {
    let bytes = count as u128 * size_of::<T>() as u128;
    check_room(bytes)?;
    // Whether there is room: `vec!` alone knows how to get zeros, and does not ask.
    Vec::<T>::new().try_reserve_exact(count).map_err(|_| LevelError::Memory { bytes })?;
    let numbers = vec![value; count];
    take_large_pages(&numbers);
    Ok(numbers)
}

/// Refuses more than the whole memory of the machine: the system may promise it, and end the process that writes to it.
///
/// # Errors
///
/// [`LevelError::Memory`].
pub fn check_room(bytes: u128) -> Result<(), LevelError> {
    static MEMORY: LazyLock<u64> = LazyLock::new(|| Topology::detect().memory());
    // A small array is no question.
    match bytes > 1 << 30 && bytes > u128::from(*MEMORY) {
        true => Err(LevelError::Memory { bytes }),
        false => Ok(()),
    }
}

/// Room for `count` elements.
///
/// # Errors
///
/// [`LevelError::Memory`].
pub fn room<T>(count: usize) -> Result<Vec<T>, LevelError> {
    let mut elements = Vec::new();
    let bytes = count as u128 * size_of::<T>() as u128;
    check_room(bytes)?;
    elements.try_reserve_exact(count).map_err(|_| LevelError::Memory { bytes })?;
    take_large_pages(&elements);
    Ok(elements)
}

/// Asks the system for large pages where a vector was not written to yet: with small ones, making them takes longer
/// than filling them. NumPy does so too.
fn take_large_pages<T>(vector: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4 << 10;
        let start = vector.as_ptr() as usize;
        let end = (start + vector.capacity() * size_of::<T>()) / PAGE * PAGE;
        let start = start.next_multiple_of(PAGE);
        if end.saturating_sub(start) >= 4 << 20 {
            // SAFETY: the pages lie within the vector's own memory, and the advice changes nothing that can be read
            // there. Whether it is taken does not matter.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
        }
    }
}

impl Array {
    /// `count` times `value`, which the width holds.
    ///
    /// # Errors
    ///
    /// [`LevelError::Memory`].
    pub fn filled(width: Width, value: i64, count: usize) -> Result<Self, LevelError> {
        Ok(match width {
            Width::U8 => Self::U8(filled(value as u8, count)?),
            Width::I16 => Self::I16(filled(value as i16, count)?),
            Width::I32 => Self::I32(filled(value as i32, count)?),
            Width::I64 => Self::I64(filled(value, count)?),
        })
    }

    /// The width of the numbers.
    pub fn width(&self) -> Width {
        match self {
            Self::U8(_) => Width::U8,
            Self::I16(_) => Width::I16,
            Self::I32(_) => Width::I32,
            Self::I64(_) => Width::I64,
        }
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        with_numbers!(self, numbers => numbers.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number at `place`.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    #[allow(clippy::unnecessary_cast)] // of one width of four
    pub fn get(&self, place: usize) -> i64 {
        with_numbers!(self, numbers => numbers[place] as i64)
    }

    /// Replaces the number at `place`; the width holds `value`.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    pub fn set(&mut self, place: usize, value: i64) {
        with_numbers!(self, numbers => numbers[place] = value as _);
    }

    /// Copies the numbers from `first` on, as many as `into` has.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    #[allow(clippy::unnecessary_cast)] // of one width of four
    pub fn read(&self, first: usize, into: &mut [i64]) {
        let range = first..first + into.len();
        with_numbers!(self, numbers => into.iter_mut().zip(&numbers[range]).for_each(|(into, &number)| *into = number as i64));
    }

    /// The bytes of all numbers.
    pub fn bytes(&self) -> usize {
        self.len() * self.width().size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_keep_what_their_width_holds() {
        for width in Width::ALL {
            let mut array = Array::filled(width, 0, 3).expect("three numbers");
            array.set(0, width.least());
            array.set(2, width.greatest());
            assert_eq!([array.get(0), array.get(1), array.get(2)], [width.least(), 0, width.greatest()]);
            assert_eq!((array.bytes(), Width::named(&width.to_string())), (3 * width.size(), Some(width)));
        }
        let error = Array::filled(Width::I64, 0, usize::MAX / 32).expect_err("no machine has this much");
        assert!(matches!(error, LevelError::Memory { bytes } if bytes > 1 << 60));
    }
}
