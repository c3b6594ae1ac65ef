//! Comparing results with what they should be.

/// The larger of two errors. Unlike `f64::max`, it takes what is no number for the largest error there is.
#[must_use]
#[inline]
pub fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b <= a { a } else { b }
}

/// Whether an error is small enough; what is no number is not.
#[must_use]
pub fn is_within(error: f64, tolerance: f64) -> bool {
    error <= tolerance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worse_error_is_the_larger_and_no_number_is_worst() {
        assert_eq!((worse(1.0, 2.0), worse(2.0, 1.0)), (2.0, 2.0));
        for error in [0.0, 1.0, f64::INFINITY, f64::NAN] {
            assert!(worse(error, f64::NAN).is_nan() && worse(f64::NAN, error).is_nan(), "{error}");
        }
        assert!(is_within(1.0, 1.0) && !is_within(1.1, 1.0) && !is_within(f64::NAN, 1.0));
    }
}
