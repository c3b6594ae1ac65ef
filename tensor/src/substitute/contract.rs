//! Products of two tensors, as matrix products.

use super::element::Multiply;
use super::matrix::Matrix;
use super::{Operand, SubstituteError, check, range, start, stride};
use crate::kernel::{Team, View, run_once_each};
use crate::with_element;

/// Stores into `result`, or adds to it if it is to `accumulate`, the product of `left` and `right`, summed over the
/// indices that both have and `result` lacks. Each index must occur in at least two of the three.
///
/// Sums in an order of their own. Without `accumulate`, all elements of `result` are stored, zero where `left` and
/// `right` have nothing.
///
/// # Errors
///
/// [`SubstituteError`] says what does not fit; then nothing has been done, except for [`Team`](SubstituteError::Team).
///
/// ```
/// use maniple_tensor::kernel::{Serial, View};
/// use maniple_tensor::substitute::{Operand, contract};
///
/// // A(i,j) = B(i,k) * C(j,k)
/// let (b, c, mut a) = ([1.0, 2.0], [3.0, 4.0, 5.0, 6.0], [0.0; 2]);
/// let mut result = View::dense_mut(&mut a, &[1, 2])?;
/// contract(
///     &mut result,
///     &["i", "j"],
///     &Operand { view: &View::dense(&b, &[1, 2])?, indices: &["i", "k"] },
///     &Operand { view: &View::dense(&c, &[2, 2])?, indices: &["j", "k"] },
///     false,
///     &Serial,
/// )?;
/// drop(result);
/// assert_eq!(a, [11.0, 17.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn contract(
    result: &mut View<'_>,
    indices: &[&str],
    left: &Operand<'_, '_>,
    right: &Operand<'_, '_>,
    accumulate: bool,
    team: &dyn Team,
) -> Result<(), SubstituteError> {
    let result = Operand { view: result, indices };
    let operands = [&result, left, right];
    check(&operands)?;
    with_element!(result.view.element(), T => typed::<T>(operands, accumulate, team))
}

/// An index, or several that run as one: extent, and strides in result, left and right.
#[derive(Clone, Copy, Debug, PartialEq)]
struct IndexRun {
    extent: usize,
    strides: [isize; 3],
}

impl IndexRun {
    const ONE: Self = Self { extent: 1, strides: [0; 3] };
}

/// The class of an index, by the operands that have it.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    /// In result and left.
    Row,
    /// In result and right.
    Column,
    /// In left and right.
    Inner,
    /// In all three.
    Batch,
}

fn typed<T: Multiply>(
    operands: [&Operand<'_, '_>; 3],
    accumulate: bool,
    team: &dyn Team,
) -> Result<(), SubstituteError> {
    let mut names: Vec<&str> = Vec::new();
    for name in operands.iter().flat_map(|operand| operand.indices) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let mut runs: Vec<(Class, IndexRun)> = Vec::new();
    for &name in &names {
        let class = match operands.map(|operand| operand.indices.contains(&name)) {
            [true, true, true] => Class::Batch,
            [true, true, false] => Class::Row,
            [true, false, true] => Class::Column,
            [false, true, true] => Class::Inner,
            _ => return Err(SubstituteError::Alone { index: name.to_owned() }),
        };
        let (low, high) = range(name, &operands);
        // In bounds of views, so it fits.
        let extent = high.saturating_sub(low).max(0) as usize;
        runs.push((class, IndexRun { extent, strides: operands.map(|operand| stride(name, operand)) }));
    }
    let covered = operands[0].indices.iter().zip(operands[0].view.dimensions()).all(|(name, dimension)| {
        let (low, high) = range(name, &operands);
        dimension.extent() == 0 || (low, high) == (dimension.low, dimension.high)
    });
    let empty = runs.iter().any(|(_, run)| run.extent == 0);
    let [mut inner, mut rows, mut columns] = [Class::Inner, Class::Row, Class::Column].map(|class| fused(&runs, class));
    let batch = fused(&runs, Class::Batch);
    let longest = |runs: &mut Vec<IndexRun>| {
        let position = (0..runs.len()).max_by_key(|&position| runs[position].extent);
        position.map_or(IndexRun::ONE, |position| runs.swap_remove(position))
    };
    let [inner_run, row, column] = [longest(&mut inner), longest(&mut rows), longest(&mut columns)];
    // Several sums into one element: all but the first must add.
    let mut adds = accumulate;
    if !accumulate && (empty || !covered || inner.iter().any(|run| run.extent > 1)) {
        fill_zero::<T>(operands[0].view);
        adds = true;
    }
    if empty {
        return Ok(());
    }
    let first = operands.map(|operand| {
        let first = operand.view.address().cast::<T>();
        first.wrapping_offset(start(operand, |name| range(name, &operands).0))
    });
    let outer: Vec<IndexRun> = batch.into_iter().chain(rows).chain(columns).collect();
    let plan = ContractionPlan { first, outer, sums: inner, row, column, inner: inner_run, adds };
    plan.run(team)
}

/// The indices of `class`, those merged that run through all operands as one.
fn fused(runs: &[(Class, IndexRun)], class: Class) -> Vec<IndexRun> {
    let mut runs: Vec<IndexRun> = runs.iter().filter(|(other, _)| *other == class).map(|(_, run)| *run).collect();
    runs.retain(|run| run.extent != 1);
    runs.sort_by_key(|run| std::cmp::Reverse(run.strides.map(isize::unsigned_abs)));
    let mut merged: Vec<IndexRun> = Vec::new();
    for run in runs {
        match merged.last_mut() {
            Some(outer) if (0..3).all(|of| outer.strides[of] == run.strides[of] * run.extent as isize) => {
                *outer = IndexRun { extent: outer.extent * run.extent, strides: run.strides };
            }
            _ => merged.push(run),
        }
    }
    merged
}

/// Matrix products of one shape, at many places.
struct ContractionPlan<T> {
    /// The first elements of result, left and right.
    first: [*mut T; 3],
    /// Loops over different elements of the result.
    outer: Vec<IndexRun>,
    /// Loops that sum into the same ones.
    sums: Vec<IndexRun>,
    row: IndexRun,
    column: IndexRun,
    inner: IndexRun,
    adds: bool,
}

// SAFETY: the elements are `Send` and `Sync`; parts that different threads change are distinct.
unsafe impl<T: Multiply> Sync for ContractionPlan<T> {}

/// A chunk of a product has at least so many multiplications.
const GRAIN: usize = 1 << 15;

impl<T: Multiply> ContractionPlan<T> {
    fn run(&self, team: &dyn Team) -> Result<(), SubstituteError> {
        let outer: usize = self.outer.iter().map(|run| run.extent).product();
        let sums: usize = self.sums.iter().map(|run| run.extent).product();
        let [rows, columns, inner] = [self.row.extent, self.column.extent, self.inner.extent];
        let work = [outer, sums, rows, columns, inner].into_iter().fold(1_usize, usize::saturating_mul);
        let threads = team.size().clamp(1, (work / GRAIN).max(1));
        // Few products are cut; along the result's contiguous index, as each thread packs the whole of the other
        // operand.
        let cuts = if outer >= 2 * threads { 1 } else { threads };
        let along_columns = self.column.strides[0].unsigned_abs() <= self.row.strides[0].unsigned_abs();
        let along_columns =
            if along_columns { columns >= 16 * cuts || columns >= rows } else { rows < 16 * cuts && columns > rows };
        let length = if along_columns { columns } else { rows };
        let step = length.div_ceil(cuts).next_multiple_of(16).max(1);
        let cuts = length.div_ceil(step);
        let chunks = if cuts > 1 { cuts } else { threads.min(outer) };
        let chunk = |chunk: usize| {
            let (products, from, to) = if cuts > 1 {
                (0..outer, chunk * step, ((chunk + 1) * step).min(length))
            } else {
                (chunk * outer / chunks..(chunk + 1) * outer / chunks, 0, length)
            };
            let part = |whole, cut: bool| if cut { (from, to) } else { (0, whole) };
            let (rows, columns) = (part(rows, !along_columns), part(columns, along_columns));
            products.for_each(|product| self.products(product, rows, columns));
        };
        if chunks == 1 {
            chunk(0);
            return Ok(());
        }
        if run_once_each(team, chunks, &chunk) { Ok(()) } else { Err(SubstituteError::Team) }
    }

    /// The part of the result that the loops `outer` have at iteration `product`.
    fn products(&self, product: usize, rows: (usize, usize), columns: (usize, usize)) {
        let at = offsets(&self.outer, product);
        let sums: usize = self.sums.iter().map(|run| run.extent).product();
        for sum in 0..sums {
            let further = offsets(&self.sums, sum);
            let matrix = |of: usize, row: isize, column: isize| Matrix {
                first: self.first[of].wrapping_offset(at[of] + further[of]),
                row,
                column,
            };
            let result = matrix(0, self.row.strides[0], self.column.strides[0]).shifted(rows.0, columns.0);
            let left = matrix(1, self.row.strides[1], self.inner.strides[1]).shifted(rows.0, 0);
            let right = matrix(2, self.inner.strides[2], self.column.strides[2]).shifted(0, columns.0);
            let extents = [rows.1 - rows.0, columns.1 - columns.0, self.inner.extent];
            // SAFETY: all indices are in the ranges that the views have; the result's view is writable, so its elements
            // are distinct and nothing else uses them; no two chunks have the same ones.
            unsafe { T::multiply(extents, result, left, right, self.adds) };
        }
    }
}

/// The offsets in each operand at the given iteration of nested loops, the last one innermost.
fn offsets(runs: &[IndexRun], mut iteration: usize) -> [isize; 3] {
    let mut offsets = [0; 3];
    for run in runs.iter().rev() {
        let index = (iteration % run.extent) as isize;
        iteration /= run.extent;
        for (offset, stride) in offsets.iter_mut().zip(run.strides) {
            *offset += index * stride;
        }
    }
    offsets
}

/// Stores zeros into all of `view`, which is writable.
pub(super) fn fill_zero<T: Multiply>(view: &View<'_>) {
    let runs: Vec<IndexRun> = view
        .dimensions()
        .iter()
        .map(|dimension| IndexRun { extent: dimension.extent() as usize, strides: [dimension.stride as isize, 0, 0] })
        .collect();
    let count: usize = runs.iter().map(|run| run.extent).product();
    for iteration in 0..count {
        let place = view.address().cast::<T>().wrapping_offset(offsets(&runs, iteration)[0]);
        // SAFETY: the element is one of a writable view.
        unsafe { place.write(T::ZERO) };
    }
}
