//! The inner loop of inner products, on plain slices.

/// How many sums run side by side, for the processor's vector units: additions of one sum have to wait for each other.
const LANES: usize = 8;

/// The inner product of two vectors.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (chunks_a, chunks_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = chunks_a.remainder().iter().zip(chunks_b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in chunks_a.zip(chunks_b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_product_has_every_element_once() {
        for length in [0, 1, 7, 8, 9, 31] {
            let a: Vec<f64> = (0..length).map(f64::from).collect();
            let b: Vec<f64> = (0..length).map(|i| f64::from(i % 5)).collect();
            assert_eq!(dot(&a, &b), a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>());
        }
    }
}
