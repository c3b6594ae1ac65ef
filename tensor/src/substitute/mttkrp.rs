//! The matricised tensor times Khatri-Rao product, as matrix products.

use super::contract::fill_zero;
use super::element::Multiply;
use super::matrix::Matrix;
use super::{Operand, SubstituteError, check, range, start, stride};
use crate::kernel::{Team, View, run_once_each};
use crate::with_element;

/// The operands of `A(x,l) = B(x,y,z) * C(y,l) * D(z,l)`: `B` with its indices in any order, the matrices transposed or
/// not.
#[derive(Debug)]
pub struct Mttkrp<'a, 'v> {
    /// `B`.
    pub tensor: Operand<'a, 'v>,
    /// `C`.
    pub first: Operand<'a, 'v>,
    /// `D`.
    pub second: Operand<'a, 'v>,
}

/// Stores into `result`, or adds to it if it is to `accumulate`, the product of `operands`.
///
/// For one index of `B`, the outermost in memory, after the other, it multiplies what remains of `B` with one matrix,
/// and the result with the other one element by element: as many multiplications as a product of `B` with one matrix.
/// An infinity or NaN in the other one would not be multiplied with each term then, as it should: so the other one is
/// the matrix that has none, and if both have some, all terms are multiplied on their own.
///
/// # Errors
///
/// As [`contract`](super::contract()); [`SubstituteError::Shape`] if indices are not those of such a product.
pub fn mttkrp(
    result: &mut View<'_>,
    indices: &[&str],
    operands: &Mttkrp<'_, '_>,
    accumulate: bool,
    team: &dyn Team,
) -> Result<(), SubstituteError> {
    let result = Operand { view: result, indices };
    let operands = [&result, &operands.tensor, &operands.first, &operands.second];
    check(&operands)?;
    let names = names(operands).ok_or(SubstituteError::Shape {
        kernel: "MTTKRP",
        expected: "A(x,l) = B(x,y,z) * C(y,l) * D(z,l), with indices in any order in each access",
    })?;
    with_element!(result.view.element(), T => typed::<T>(operands, names, accumulate, team))
}

/// The indices x, y, z, l.
fn names<'a>([result, tensor, first, second]: [&Operand<'a, '_>; 4]) -> Option<[&'a str; 4]> {
    if [result, tensor, first, second].map(|operand| operand.indices.len()) != [2, 3, 2, 2] {
        return None;
    }
    let both = |left: &[&'a str], right: &[&'a str]| left.iter().copied().find(|name| right.contains(name));
    let l = first.indices.iter().copied().find(|name| second.indices.contains(name))?;
    let (x, y, z) = (
        both(result.indices, tensor.indices)?,
        both(first.indices, tensor.indices)?,
        both(second.indices, tensor.indices)?,
    );
    let good = result.indices.contains(&l)
        && !tensor.indices.contains(&l)
        && x != y
        && y != z
        && x != z
        && [y, z].iter().all(|name| !result.indices.contains(name));
    good.then_some([x, y, z, l])
}

/// The temporary has about so many elements: it stays in the cache.
const TEMPORARY: usize = 1 << 15;

/// Strides and places, all ranges starting at 0.
struct MttkrpPlan<T> {
    /// The extents of x, y, z, l.
    extents: [usize; 4],
    /// The result by x and l.
    result: Matrix<T>,
    /// The tensor: its first element, and strides of x, y, z.
    tensor: *mut T,
    strides: [isize; 3],
    /// The matrix that is multiplied element by element, by y and l.
    elementwise: Matrix<T>,
    /// The matrix of the matrix product, by z and l.
    matrix: Matrix<T>,
}

// SAFETY: the elements are `Send` and `Sync`; different threads change different x.
unsafe impl<T: Multiply> Sync for MttkrpPlan<T> {}

fn typed<T: Multiply>(
    operands: [&Operand<'_, '_>; 4],
    [x, mut y, mut z, l]: [&str; 4],
    accumulate: bool,
    team: &dyn Team,
) -> Result<(), SubstituteError> {
    let [result, tensor, mut first, mut second] = operands;
    if !accumulate {
        fill_zero::<T>(result.view);
    }
    // The matrix product is over the index with the smaller stride.
    if stride(y, tensor).abs() < stride(z, tensor).abs() {
        (y, z, first, second) = (z, y, second, first);
    }
    let has_numbers = |operand: &Operand<'_, '_>, row| {
        // SAFETY: `check` saw that the operands have this type, and the indices are in the ranges that their views
        // have.
        unsafe { has_numbers::<T>(operand, [row, l], &operands) }
    };
    let is_factored = has_numbers(first, y) || has_numbers(second, z);
    if !has_numbers(first, y) {
        (y, z, first, second) = (z, y, second, first);
    }
    let low = |name: &str| range(name, &operands).0;
    let extent = |name: &str| {
        let (low, high) = range(name, &operands);
        high.saturating_sub(low).max(0) as usize
    };
    let extents = [x, y, z, l].map(extent);
    if extents.contains(&0) {
        return Ok(());
    }
    let place = |operand: &Operand<'_, '_>| operand.view.address().cast::<T>().wrapping_offset(start(operand, low));
    let matrix = |operand: &Operand<'_, '_>, row| Matrix {
        first: place(operand),
        row: stride(row, operand),
        column: stride(l, operand),
    };
    let plan = MttkrpPlan {
        extents,
        result: matrix(result, x),
        tensor: place(tensor),
        strides: [x, y, z].map(|name| stride(name, tensor)),
        elementwise: matrix(first, y),
        matrix: matrix(second, z),
    };
    let threads = team.size().clamp(1, extents[0]);
    let chunk = |chunk: usize| {
        let (from, to) = (chunk * extents[0] / threads, (chunk + 1) * extents[0] / threads);
        match plan.strides[0].abs() >= plan.strides[1].abs() {
            _ if !is_factored => plan.by_terms(from, to),
            true => plan.by_x(from, to),
            false => plan.by_y(from, to),
        }
    };
    if threads == 1 {
        chunk(0);
        return Ok(());
    }
    if run_once_each(team, threads, &chunk) { Ok(()) } else { Err(SubstituteError::Team) }
}

/// Whether a matrix has numbers only.
///
/// # Safety
///
/// Its elements must be of type `T`.
unsafe fn has_numbers<T: Multiply>(matrix: &Operand<'_, '_>, names: [&str; 2], all: &[&Operand<'_, '_>; 4]) -> bool {
    let [rows, columns] = names.map(|name| {
        let (low, high) = range(name, all);
        high.saturating_sub(low).max(0) as usize
    });
    let first = matrix.view.address().cast::<T>().wrapping_offset(start(matrix, |name| range(name, all).0));
    let elements = Matrix { first, row: stride(names[0], matrix), column: stride(names[1], matrix) };
    // SAFETY: the elements are there, and have this type by the caller.
    (0..rows).all(|row| (0..columns).all(|column| unsafe { *elements.shifted(row, column).first }.is_number()))
}

impl<T: Multiply> MttkrpPlan<T> {
    /// Each term on its own.
    fn by_terms(&self, from: usize, to: usize) {
        let [_, y, z, l] = self.extents;
        let [x_stride, y_stride, z_stride] = self.strides;
        for (x, y, z) in (from..to).flat_map(|x| (0..y).flat_map(move |y| (0..z).map(move |z| (x, y, z)))) {
            let offset = x as isize * x_stride + y as isize * y_stride + z as isize * z_stride;
            for l in 0..l {
                // SAFETY: all indices are in the ranges that views have; these rows of the result are this chunk's
                // only.
                unsafe {
                    let factor =
                        T::ZERO.add_product(*self.tensor.wrapping_offset(offset), *self.matrix.shifted(z, l).first);
                    let place = self.result.shifted(x, l).first;
                    *place = (*place).add_product(factor, *self.elementwise.shifted(y, l).first);
                }
            }
        }
    }

    /// For each x: T(y,l) = B(x,y,z) * D(z,l), then A(x,l) += T(y,l) * C(y,l).
    fn by_x(&self, from: usize, to: usize) {
        let [_, y, z, l] = self.extents;
        let [x_stride, y_stride, z_stride] = self.strides;
        // Several x at once where they and y run as one, so that the matrices are not too small.
        let together = if x_stride == y_stride * y as isize { (TEMPORARY / (y * l)).max(1) } else { 1 };
        let mut temporary = vec![T::ZERO; together.min(to - from) * y * l];
        let mut next = from;
        while next < to {
            let count = together.min(to - next);
            let tensor = Matrix {
                first: self.tensor.wrapping_offset(next as isize * x_stride),
                row: y_stride,
                column: z_stride,
            };
            let product = Matrix { first: temporary.as_mut_ptr(), row: l as isize, column: 1 };
            // SAFETY: all indices are in the ranges that views and temporary have.
            unsafe { T::multiply([count * y, l, z], product, tensor, self.matrix, false) };
            for (number, row) in temporary[..count * y * l].chunks_exact(l).enumerate() {
                self.add(next + number / y, number % y, row);
            }
            next += count;
        }
    }

    /// For each y: T(x,l) = B(x,y,z) * D(z,l), then A(x,l) += T(x,l) * C(y,l).
    fn by_y(&self, from: usize, to: usize) {
        let [_, y, z, l] = self.extents;
        let [x_stride, y_stride, z_stride] = self.strides;
        // The temporary is laid out as the tensor is: the products are faster so.
        let rows = to - from;
        let along_x = x_stride.abs() < z_stride.abs();
        let strides = if along_x { (1, rows as isize) } else { (l as isize, 1) };
        let mut temporary = vec![T::ZERO; rows * l];
        // The sums, if they are laid out in another way than the result.
        let mut sums = vec![T::ZERO; if along_x { rows * l } else { 0 }];
        for each in 0..y {
            let offset = from as isize * x_stride + each as isize * y_stride;
            let tensor = Matrix { first: self.tensor.wrapping_offset(offset), row: x_stride, column: z_stride };
            let product = Matrix { first: temporary.as_mut_ptr(), row: strides.0, column: strides.1 };
            // SAFETY: as in `by_x`.
            unsafe { T::multiply([rows, l, z], product, tensor, self.matrix, false) };
            if along_x {
                let columns = sums.chunks_exact_mut(rows).zip(temporary.chunks_exact(rows));
                for (column, (sums, values)) in columns.enumerate() {
                    // SAFETY: the row and the column are the view's.
                    let factor = unsafe { *self.elementwise.shifted(each, column).first };
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum = sum.add_product(*value, factor);
                    }
                }
            } else {
                for (number, row) in temporary.chunks_exact(l).enumerate() {
                    self.add(from + number, each, row);
                }
            }
        }
        for (number, sum) in sums.into_iter().enumerate() {
            let place = self.result.shifted(from + number % rows, number / rows).first;
            // SAFETY: rows of the result from `from` on are this chunk's only.
            unsafe { *place = (*place).add_product(sum, T::ONE) };
        }
    }

    /// Adds `row` times row `y` of the one matrix to row `x` of the result.
    fn add(&self, x: usize, y: usize, row: &[T]) {
        let (result, factor) = (self.result.shifted(x, 0), self.elementwise.shifted(y, 0));
        if result.column == 1 && factor.column == 1 {
            // SAFETY: rows of views are there, and this one of the result is this chunk's only.
            let (result, factor) = unsafe {
                let factor = std::slice::from_raw_parts(factor.first, row.len());
                (std::slice::from_raw_parts_mut(result.first, row.len()), factor)
            };
            for ((place, value), factor) in result.iter_mut().zip(row).zip(factor) {
                *place = place.add_product(*value, *factor);
            }
            return;
        }
        for (column, value) in row.iter().enumerate() {
            let (place, factor) = (result.shifted(0, column).first, factor.shifted(0, column).first);
            // SAFETY: as above.
            unsafe { *place = (*place).add_product(*value, *factor) };
        }
    }
}
