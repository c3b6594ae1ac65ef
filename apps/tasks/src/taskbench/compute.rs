//! Arithmetic at the speed of the processor's vector units.
//!
//! The loops are written once, over arrays of lanes, and compiled for several instruction sets; which of them is used
//! is found out when the program runs. A loop over the lanes becomes a few instructions, the lanes stay in registers.
#![allow(unsafe_code, reason = "calls of functions compiled for instruction sets that were found to be there")]

use std::hint::black_box;

/// Lanes of [`square_and_add`].
pub const LANES: usize = 64;

/// Lanes of [`multiply_and_add`].
pub const MORE_LANES: usize = 32;

/// Compiles a function for several instruction sets, with `$fused(a, b, c)` for `a * b + c`, and calls the best.
macro_rules! for_each_instruction_set {
    ($(#[$about:meta])* pub fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?, $fused:ident, $body:expr) => {
        $(#[$about])*
        pub fn $name($($argument: $type),*) $(-> $result)? {
            #[allow(clippy::too_many_arguments)]
            #[inline(always)]
            fn body($($argument: $type,)* $fused: impl Fn(f64, f64, f64) -> f64) $(-> $result)? {
                $body
            }
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn avx512($($argument: $type),*) $(-> $result)? {
                    body($($argument,)* f64::mul_add)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $type),*) $(-> $result)? {
                    body($($argument,)* f64::mul_add)
                }
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has the instructions.
                    return unsafe { avx512($($argument),*) };
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has the instructions.
                    return unsafe { avx2($($argument),*) };
                }
            }
            if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
                body($($argument,)* f64::mul_add)
            } else {
                // Without the instruction, `mul_add` is a slow library call.
                body($($argument,)* |a, b, c| a * b + c)
            }
        }
    };
}

for_each_instruction_set! {
    /// Squares each of 64 lanes and adds it to itself, so many times, and adds the lanes up: 128 operations an
    /// iteration, and 64.
    ///
    /// The lanes differ, or the compiler would compute one for all; they begin between -1 and 0 and stay there, so no
    /// value ever overflows or gets so small that the processor slows down.
    pub fn square_and_add(iterations: i64) -> f64, fused, {
        let mut lanes: [f64; LANES] = std::array::from_fn(|lane| -(lane as f64 + 1.0) / (LANES as f64 + 1.0));
        for _ in 0..iterations {
            for lane in &mut lanes {
                *lane = fused(*lane, *lane, *lane);
            }
        }
        lanes.iter().sum()
    }
}

for_each_instruction_set! {
    /// Adds to each of 32 lanes the product of two others, so many times: 64 operations an iteration.
    pub fn multiply_and_add(iterations: i64) -> f64, fused, {
        let (a, b) = (black_box([1.2345; MORE_LANES]), black_box([1.010_101; MORE_LANES]));
        let mut lanes = [0.0; MORE_LANES];
        for _ in 0..iterations {
            for (lane, sum) in lanes.iter_mut().enumerate() {
                *sum = fused(a[lane], b[lane], *sum);
            }
        }
        lanes.iter().sum()
    }
}

for_each_instruction_set! {
    /// `y += a x`.
    pub fn add_multiple(y: &mut [f64], a: f64, x: &[f64]), fused, {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = fused(a, x, *y);
        }
    }
}

for_each_instruction_set! {
    /// `c += a b` for square matrices of `n` columns, one column after the other. Four columns of `a` are added at a
    /// time, so that `c` is loaded and stored a quarter as often; nothing is blocked for the caches.
    pub fn multiply_matrices(c: &mut [f64], a: &[f64], b: &[f64], n: usize), fused, {
        for (c, b) in c.chunks_exact_mut(n).zip(b.chunks_exact(n)) {
            let mut columns = a.chunks_exact(4 * n);
            let mut factors = b.chunks_exact(4);
            for (a, b) in columns.by_ref().zip(factors.by_ref()) {
                let (first, rest) = a.split_at(n);
                let (second, rest) = rest.split_at(n);
                let (third, fourth) = rest.split_at(n);
                let four = first.iter().zip(second).zip(third.iter().zip(fourth));
                for (c, ((a0, a1), (a2, a3))) in c.iter_mut().zip(four) {
                    *c = fused(*a3, b[3], fused(*a2, b[2], fused(*a1, b[1], fused(*a0, b[0], *c))));
                }
            }
            for (a, &b) in columns.remainder().chunks_exact(n).zip(factors.remainder()) {
                for (c, &a) in c.iter_mut().zip(a) {
                    *c = fused(a, b, *c);
                }
            }
        }
    }
}

/// Copies the first half of some words to the second.
pub fn copy_half(words: &mut [u64]) {
    let half = words.len() / 2;
    let (from, to) = words.split_at_mut(half);
    to[..half].copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_word_is_left_alone() {
        let mut words = [1, 2, 3, 4, 5];
        copy_half(&mut words);
        assert_eq!(words, [1, 2, 1, 2, 5]);
    }

    #[test]
    fn lanes_are_squared_and_added_as_often_as_asked() {
        let start = |lane: usize| -(lane as f64 + 1.0) / 65.0;
        for iterations in [0, 1, 2, 7] {
            let after = |lane| (0..iterations).fold(start(lane), |value: f64, _| value * value + value);
            let expected: f64 = (0..64).map(after).sum();
            assert!((square_and_add(iterations) - expected).abs() < 1e-9, "{iterations}");
        }
    }

    #[test]
    fn no_lane_ever_overflows_or_becomes_subnormal() {
        let sum = square_and_add(1 << 20);
        assert!(sum < -1e-6 && sum > -1.0, "{sum}");
    }

    #[test]
    fn products_are_added_as_often_as_asked() {
        assert_eq!(multiply_and_add(0), 0.0);
        assert!((multiply_and_add(3) - 3.0 * 32.0 * 1.2345 * 1.010_101).abs() < 1e-9);
    }

    #[test]
    fn matrices_of_any_size_are_multiplied() {
        for n in 1..=9 {
            let a: Vec<f64> = (0..n * n).map(|index| index as f64 + 1.0).collect();
            let b: Vec<f64> = (0..n * n).map(|index| 2.0 - index as f64).collect();
            let mut c = vec![0.5; n * n];
            multiply_matrices(&mut c, &a, &b, n);
            for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let dot: f64 = (0..n).map(|k| a[k * n + row] * b[column * n + k]).sum();
                assert_eq!(c[column * n + row], 0.5 + dot, "{n}: {row}, {column}");
            }
        }
    }

    #[test]
    fn a_multiple_is_added() {
        let mut y = [1.0, 2.0, 3.0];
        add_multiple(&mut y, 2.0, &[10.0, 20.0, 30.0]);
        assert_eq!(y, [21.0, 42.0, 63.0]);
    }
}
