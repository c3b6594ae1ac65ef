//! The search for cuts of a tensor into pieces of equally many bytes.

use super::position::Finder;
use crate::error::ReadError;
use crate::tcs::source::Source;

/// The least number up to `most` for which `holds` is true, where it is so for all greater ones, and for `most`; and
/// how often it was asked.
///
/// Looks from `guess` outwards, in steps that double, and then between the last two steps: the better the guess, the
/// fewer questions, as the logarithm of its error.
///
/// # Errors
/// As of `holds`.
pub fn search<E>(most: u64, guess: u64, mut holds: impl FnMut(u64) -> Result<bool, E>) -> Result<(u64, u32), E> {
    let mut asked = 0;
    let mut ask = |number: u64| {
        asked += 1;
        holds(number)
    };
    // It is false below `low`, and true from `high` on.
    let (mut low, mut high) = (0, most);
    let guess = guess.min(most);
    let mut step = 1;
    if guess == most || ask(guess)? {
        high = guess;
        while high > low {
            let next = guess.saturating_sub(step);
            if !ask(next)? {
                low = next + 1;
                break;
            }
            high = next;
            step = step.saturating_mul(2);
        }
    } else {
        low = guess + 1;
        loop {
            let next = guess.saturating_add(step);
            if next >= most {
                break;
            }
            if ask(next)? {
                high = next;
                break;
            }
            low = next + 1;
            step = step.saturating_mul(2);
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if ask(middle)? { high = middle } else { low = middle + 1 }
    }
    Ok((high, asked))
}

/// The result of a search for a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The node of each level, as of [`Finder::positions`].
    pub positions: Vec<u64>,
    /// How many places were looked at.
    pub probes: u32,
}

impl<S: Source + ?Sized> Finder<'_, S> {
    /// The first element before which there are at least `bytes` bytes of arrays, or the end: the place where a piece
    /// of so many bytes ends. The guess is where it would be if all elements had as many bytes above them.
    ///
    /// # Errors
    /// As of the source.
    pub fn cut(&mut self, bytes: u64) -> Result<Cut, ReadError> {
        let elements = self.elements();
        let guess = u128::from(elements) * u128::from(bytes) / u128::from(self.total_bytes().max(1));
        let (element, probes) = search(elements, guess as u64, |element| {
            let positions = self.positions(element)?;
            Ok::<_, ReadError>(self.bytes_before(&positions) >= bytes)
        })?;
        Ok(Cut { positions: self.positions(element)?, probes })
    }

    /// The place where a piece ends: the last one of `pieces` at the end of the tensor, and the one before the first at
    /// its start. Each of them can be looked for on its own.
    ///
    /// # Errors
    /// As of the source.
    pub fn end_of_piece(&mut self, piece: u64, pieces: u64) -> Result<Cut, ReadError> {
        let bytes = u128::from(self.total_bytes()) * u128::from(piece) / u128::from(pieces.max(1));
        self.cut(bytes as u64)
    }
}
