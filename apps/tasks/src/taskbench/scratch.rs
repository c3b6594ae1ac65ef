//! The memory that some kernels work in: each point has some of its own.

use super::kernel::KernelKind;

/// The first word of every scratch, and of most kernels all words.
pub const MAGIC: u64 = 0x5C4A_7C8B;

/// Fills a scratch with [`MAGIC`].
///
/// As a floating-point number that is subnormal, with which processors compute slowly: kernels that compute with it
/// find ones behind the first word.
pub fn prepare(kernel: KernelKind, scratch: &mut [u64]) {
    scratch.fill(if kernel.computes_in_scratch() { 1.0_f64.to_bits() } else { MAGIC });
    if let Some(first) = scratch.first_mut() {
        *first = MAGIC;
    }
}

/// Whether a scratch was prepared and has not been overwritten since. No kernel changes the first word.
#[must_use]
pub fn is_intact(scratch: &[u64]) -> bool {
    scratch.first().is_none_or(|&first| first == MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_that_was_not_prepared_or_was_overwritten_is_noticed() {
        let mut scratch = [0; 3];
        assert!(!is_intact(&scratch));
        prepare(KernelKind::MemoryBound, &mut scratch);
        assert_eq!(scratch, [MAGIC; 3]);
        assert!(is_intact(&scratch));
        scratch[0] += 1;
        assert!(!is_intact(&scratch));
    }

    #[test]
    fn kernels_that_compute_find_numbers_of_ordinary_size() {
        let mut scratch = [0; 3];
        prepare(KernelKind::ComputeDgemm, &mut scratch);
        assert!(is_intact(&scratch));
        assert_eq!(scratch[1..].iter().map(|&bits| f64::from_bits(bits)).collect::<Vec<_>>(), [1.0; 2]);
    }
}
