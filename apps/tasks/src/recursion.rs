//! Three recursions. Each task launches those below it, and adds up what they give.

use maniple::Result;
use maniple::prelude::*;

/// The `n`th Fibonacci number, by its definition: tasks that do nothing but launch two more.
#[task]
pub async fn fibonacci(cx: &Context, n: u32) -> Result<u64> {
    if n < 2 {
        return Ok(u64::from(n));
    }
    let first = cx.launch(fibonacci(n - 1));
    let second = cx.launch(fibonacci(n - 2));
    Ok(first.await? + second.await?)
}

/// A board on which the first rows have queens that do not attack each other. A bit for each column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Board {
    /// Rows and columns.
    pub size: u32,
    /// Columns that have a queen.
    columns: u32,
    /// Columns of the next row that a queen above attacks to the right below, and to the left.
    right: u32,
    left: u32,
}

impl Board {
    /// An empty board of at most 31 rows.
    #[must_use]
    pub fn new(size: u32) -> Self {
        Self { size, columns: 0, right: 0, left: 0 }
    }

    fn is_full(self) -> bool {
        self.columns.count_ones() == self.size
    }

    /// The board with one more queen, for each place of the next row that is not attacked.
    fn next(self) -> impl Iterator<Item = Self> {
        let mut free = !(self.columns | self.right | self.left) & ((1 << self.size) - 1);
        std::iter::from_fn(move || {
            let queen = free & free.wrapping_neg();
            free &= !queen;
            let Self { size, columns, right, left } = self;
            let next = Self { size, columns: columns | queen, right: (right | queen) >> 1, left: (left | queen) << 1 };
            (queen != 0).then_some(next)
        })
    }

    /// In how many ways it can be filled.
    #[must_use]
    pub fn count(self) -> u64 {
        if self.is_full() { 1 } else { self.next().map(Self::count).sum() }
    }
}

/// In how many ways a board can be filled with queens: a task for each board of the first `rows` rows.
#[task]
pub async fn queens(cx: &Context, board: Board, rows: u32) -> Result<u64> {
    if rows == 0 {
        return Ok(board.count());
    }
    let ways: Vec<_> = board.next().map(|board| cx.launch(queens(board, rows - 1))).collect();
    let mut sum = u64::from(board.is_full());
    for way in ways {
        sum += way.await?;
    }
    Ok(sum)
}

/// Peaks of the function that is integrated, which are very different in width.
const PEAKS: i32 = 24;

fn peak(number: i32) -> (f64, f64) {
    let centre = (0.5 + f64::from(number) * 0.618_033_988_749_894_9).fract();
    (centre, 10_f64.powf(-1.0 - f64::from(number % 8) / 2.0))
}

/// A sum of peaks (Lorentz curves).
#[must_use]
pub fn spikes(x: f64) -> f64 {
    let value = |(centre, width): (f64, f64)| 1.0 / (1.0 + ((x - centre) / width).powi(2));
    (0..PEAKS).map(peak).map(value).sum()
}

/// Its integral from 0 to 1.
#[must_use]
pub fn integral_of_spikes() -> f64 {
    let integral = |(centre, width): (f64, f64)| width * (((1.0 - centre) / width).atan() + (centre / width).atan());
    (0..PEAKS).map(peak).map(integral).sum()
}

/// An interval, with the function's values at its ends and in its middle.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Interval {
    from: f64,
    to: f64,
    values: [f64; 3],
}

impl Interval {
    /// An interval.
    #[must_use]
    pub fn new(from: f64, to: f64) -> Self {
        Self { from, to, values: [spikes(from), spikes(from.midpoint(to)), spikes(to)] }
    }

    /// The integral by Simpson's rule.
    fn simpson(self) -> f64 {
        let [first, middle, last] = self.values;
        (self.to - self.from) / 6.0 * (first + 4.0 * middle + last)
    }

    fn halves(self) -> (Self, Self) {
        let (middle, [first, value, last]) = (self.from.midpoint(self.to), self.values);
        let half =
            |from: f64, to: f64, (first, last)| Self { from, to, values: [first, spikes(from.midpoint(to)), last] };
        (half(self.from, middle, (first, value)), half(middle, self.to, (value, last)))
    }
}

/// The integral over an interval, to a tolerance: by adaptive Simpson quadrature (Lyness 1969), a task for each
/// interval that is halved.
#[task]
pub async fn quadrature(cx: &Context, interval: Interval, tolerance: f64) -> Result<f64> {
    let (left, right) = interval.halves();
    let (whole, halves) = (interval.simpson(), left.simpson() + right.simpson());
    let difference = halves - whole;
    // Narrower than this, halves are rounding.
    if difference.abs() <= 15.0 * tolerance || interval.to - interval.from < 1e-12 {
        return Ok(halves + difference / 15.0);
    }
    let left = cx.launch(quadrature(left, tolerance / 2.0));
    let right = cx.launch(quadrature(right, tolerance / 2.0));
    Ok(left.await? + right.await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_boards_have_as_many_solutions_as_are_known() {
        let counts: Vec<u64> = (1..=9).map(|size| Board::new(size).count()).collect();
        assert_eq!(counts, [1, 0, 0, 2, 10, 4, 40, 92, 352]);
    }

    #[test]
    fn the_integral_is_that_of_many_small_steps() {
        let steps = 1 << 20;
        let width = 1.0 / f64::from(steps);
        let sum: f64 =
            (0..steps).map(|step| Interval::new(f64::from(step) * width, f64::from(step + 1) * width).simpson()).sum();
        assert!((sum - integral_of_spikes()).abs() < 1e-9, "{sum} and {}", integral_of_spikes());
    }
}
