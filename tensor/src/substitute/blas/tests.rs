//! Libraries against the crate `gemm`, where the system has one.

use std::ffi::{c_int, c_void};

use fastrand::Rng;
use num_complex::Complex;

use super::super::element::Multiply;
use super::super::matrix::{Matrix, Number};
use super::choice::first;
use super::library::{Candidate, may_be_shared};
use super::product::{Call, LEAST, Numbers, is_large};
use super::*;

/// The first library that is installed, whatever its kernels are for.
fn installed() -> Option<Blas> {
    let found = first(|name| Ok(Candidate::load(name)?.accept()?));
    if let Err(refusals) = &found {
        eprintln!("products by a BLAS are not tested: {refusals:?}");
    }
    found.ok()
}

/// A matrix of small integers, by rows or by columns, whose lines have a gap.
struct Stored<T> {
    elements: Vec<T>,
    row: isize,
    column: isize,
}

impl<T: Number> Stored<T> {
    fn new(rng: &mut Rng, rows: usize, columns: usize, by_rows: bool, make: fn(i32) -> T) -> Self {
        let (lines, elements) = if by_rows { (rows, columns) } else { (columns, rows) };
        let line = elements + rng.usize(0..3);
        let (row, column) = if by_rows { (line as isize, 1) } else { (1, line as isize) };
        Self { elements: (0..lines * line).map(|_| make(rng.i32(-4..5))).collect(), row, column }
    }

    fn matrix(&mut self) -> Matrix<T> {
        Matrix { first: self.elements.as_mut_ptr(), row: self.row, column: self.column }
    }
}

/// Products of all orientations: by the library, and by `gemm`.
fn compare<T: Numbers + Multiply>(blas: &Blas, extents: [usize; 3], make: fn(i32) -> T) {
    let [rows, columns, inner] = extents;
    for way in 0..16 {
        let mut rng = Rng::with_seed(way);
        let [of_result, of_left, of_right, accumulate] = [1, 2, 4, 8].map(|bit| way & bit != 0);
        let mut left = Stored::new(&mut rng, rows, inner, of_left, make);
        let mut right = Stored::new(&mut rng, inner, columns, of_right, make);
        let mut found = Stored::new(&mut rng, rows, columns, of_result, make);
        let mut expected = Stored { elements: found.elements.clone(), ..found };
        // SAFETY: the matrices are of these extents, and nothing else uses them.
        unsafe {
            let [left, right] = [left.matrix(), right.matrix()];
            assert!(blas.multiply_any(extents, found.matrix(), left, right, accumulate), "{extents:?}, way {way}");
            T::multiply(extents, expected.matrix(), left, right, accumulate);
        }
        assert!(found.elements == expected.elements, "{extents:?}, way {way}");
    }
}

#[test]
fn a_library_multiplies_as_gemm_does_in_every_orientation() {
    let Some(blas) = installed() else { return };
    for extents in [[1, 1, 1], [1, 7, 5], [7, 1, 5], [7, 5, 1], [3, 4, 5], [65, 70, 67], [130, 64, 200]] {
        compare::<f32>(&blas, extents, |value| value as f32);
        compare::<f64>(&blas, extents, f64::from);
        compare::<Complex<f32>>(&blas, extents, |value| Complex::new(value as f32, 2.0));
        compare::<Complex<f64>>(&blas, extents, |value| Complex::new(value.into(), -1.0));
    }
}

#[test]
fn several_threads_use_a_library_at_the_same_time() {
    let Some(blas) = installed() else { return };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let blas = &blas;
            scope.spawn(move || compare::<f64>(blas, [LEAST + thread, 90, 100], f64::from));
        }
    });
}

#[test]
fn small_matrices_and_those_without_a_contiguous_side_are_left_to_gemm() {
    let mut elements = [0.0_f64; 4];
    let mut matrix = |row, column| Matrix { first: elements.as_mut_ptr(), row, column };
    let [by_rows, by_columns, spread, overlapping, reversed] =
        [matrix(100, 1), matrix(1, 100), matrix(200, 2), matrix(1, 1), matrix(-100, 1)];
    let extents = [70, 80, 90];
    assert!(Call::new(extents, by_rows, by_rows, by_columns).is_some());
    assert!(Call::new(extents, by_columns, by_columns, by_rows).is_some());
    for other in [spread, overlapping, reversed] {
        assert_eq!(Call::new(extents, other, by_rows, by_rows), None);
        assert_eq!(Call::new(extents, by_rows, other, by_rows), None);
        assert_eq!(Call::new(extents, by_rows, by_rows, other), None);
    }
    let (far, many) = (matrix(1 << 31, 1), [70, 80, 1 << 31]);
    assert_eq!(Call::new(extents, by_rows, far, by_rows), None, "a stride that 32 bits do not hold");
    assert_eq!(Call::new(many, by_rows, by_rows, by_rows), None, "an extent that 32 bits do not hold");
    assert!(is_large([LEAST, 80, 90]) && !is_large([LEAST - 1, 80, 90]));
}

#[test]
fn a_single_row_or_column_may_have_any_stride() {
    let mut elements = [0.0_f64; 4];
    let mut matrix = |row, column| Matrix { first: elements.as_mut_ptr(), row, column };
    let [square, odd] = [matrix(100, 1), matrix(7, 9)];
    assert!(Call::new([1, 80, 1], matrix(7, 1), odd, matrix(7, 1)).is_some());
    assert!(Call::new([70, 1, 90], matrix(1, 7), square, matrix(1, 3)).is_some());
}

#[test]
fn what_is_no_library_is_refused_with_a_reason() {
    let error = Choice::of("/nowhere/libfast.so").expect_err("there is no such file");
    let said = error.to_string();
    assert!(said.starts_with("/nowhere/libfast.so cannot be loaded: ") && said.contains("give a path"), "{said}");
}

#[test]
fn a_library_that_gets_products_wrong_is_refused() {
    /// Leaves the result as it is.
    macro_rules! idle {
        ($factor:ty, $matrix:ty) => {{
            unsafe extern "C" fn idle(
                _: c_int,
                _: c_int,
                _: c_int,
                _: c_int,
                _: c_int,
                _: c_int,
                _: $factor,
                _: *const $matrix,
                _: c_int,
                _: *const $matrix,
                _: c_int,
                _: $factor,
                _: *mut $matrix,
                _: c_int,
            ) {
            }
            idle
        }};
    }
    let blas = Blas {
        name: "libidle.so".to_owned(),
        single: idle!(f32, f32),
        double: idle!(f64, f64),
        complex_single: idle!(*const c_void, c_void),
        complex_double: idle!(*const c_void, c_void),
    };
    assert!(!blas.is_right());
}

#[cfg(target_os = "linux")]
#[test]
fn a_library_without_matrices_is_refused() {
    let error = Choice::of("libc.so.6").map(|_| ()).expect_err("it is no BLAS");
    assert_eq!(error, BlasError::Missing { library: "libc.so.6".into(), function: "cblas_sgemm".into() });
}

#[test]
fn a_library_that_was_built_for_something_else_is_refused() {
    let with = |config, parallel| may_be_shared("lib", config, Some(parallel));
    let library = || "lib".to_owned();
    assert_eq!(with("OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Zen MAX_THREADS=64", 1), Ok(()));
    let long = with("OpenBLAS 0.3.31 USE64BITINT DYNAMIC_ARCH Haswell MAX_THREADS=64", 1);
    assert_eq!(long, Err(BlasError::Integers { library: library() }));
    let alone = with("OpenBLAS 0.3.21 DYNAMIC_ARCH Zen SINGLE_THREADED", 0);
    assert_eq!(alone, Err(BlasError::OneThread { library: library() }));
    assert_eq!(with("OpenBLAS 0.3.21 DYNAMIC_ARCH USE_LOCKING Zen SINGLE_THREADED", 0), Ok(()));
    assert_eq!(may_be_shared("lib", "", None), Ok(()), "others are not asked");
}
