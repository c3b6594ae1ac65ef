//! Task Bench's random numbers: a hash of what they are for.

use siphasher::sip::SipHasher24;

const KEY: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0];

/// A number between 0 and 1 that follows from others: their SipHash-2-4 (Aumasson and Bernstein 2012), as a fraction of
/// 2^64.
#[must_use]
pub fn uniform<const N: usize>(seed: [i64; N]) -> f64 {
    let mut bytes = [[0; 8]; N];
    for (bytes, number) in bytes.iter_mut().zip(seed) {
        *bytes = number.to_le_bytes();
    }
    let hash = SipHasher24::new_with_key(&KEY).hash(bytes.as_flattened());
    hash as f64 / 2_f64.powi(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SipHash-2-4 of the bytes 0, 1, 2, ... under the key 0, 1, ..., 15: the first of the vectors that its authors
    /// published.
    #[test]
    fn the_hash_is_siphash_2_4() {
        let key: [u8; 16] = std::array::from_fn(|index| index as u8);
        let message: [u8; 15] = std::array::from_fn(|index| index as u8);
        let vectors = [
            (0, 0x726f_db47_dd0e_0e31),
            (1, 0x74f8_39c5_93dc_67fd),
            (2, 0x0d6c_8009_d9a9_4f5a),
            (8, 0x93f5_f579_9a93_2462),
            (15, 0xa129_ca61_49be_45e5),
        ];
        for (length, expected) in vectors {
            assert_eq!(SipHasher24::new_with_key(&key).hash(&message[..length]), expected, "{length} bytes");
        }
    }

    /// Compares with numbers that Task Bench's own library computes.
    #[test]
    fn numbers_are_those_of_task_bench() {
        assert_eq!(uniform([0, 3, 0, 1, 2]), 0.916_872_347_157_932_1);
        assert_eq!(uniform([1, 5, 2, 7, 6]), 0.780_370_697_007_485_8);
        assert_eq!(uniform([1, 2, 3]), 0.525_210_659_887_147_7);
    }
}
