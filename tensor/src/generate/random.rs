//! Random numbers that are the same wherever and in whatever order they are drawn.

/// A sequence of random numbers: SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*,
/// OOPSLA 2014).
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of the part of a tensor that these numbers name.
    pub(crate) fn of(seed: u64, part: &[i64]) -> Self {
        let mut random = Self(seed);
        for &number in part {
            random = Self(random.next() ^ number as u64);
        }
        random
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number from 0 to `end` (excluded), which is at least 1.
    pub(crate) fn below(&mut self, end: i64) -> i64 {
        ((u128::from(self.next()) * end as u128) >> 64) as i64
    }

    /// A number from 0 to 1 (excluded).
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// How many of `count` independent trials succeed, each with a probability: exact for few, and for many as a normal
    /// distribution has it.
    pub(crate) fn successes(&mut self, count: u64, probability: f64) -> u64 {
        if count <= 64 {
            return (0..count).filter(|_| self.fraction() < probability).count() as u64;
        }
        let mean = count as f64 * probability;
        // The sum of twelve fractions is nearly normal, with variance 1.
        let normal: f64 = (0..12).map(|_| self.fraction()).sum::<f64>() - 6.0;
        (mean + normal * (mean * (1.0 - probability)).sqrt()).round().clamp(0.0, count as f64) as u64
    }

    /// The value of an entry: a whole number from 1 to 9, so that sums and products are exact.
    pub(crate) fn value(&mut self) -> f64 {
        self.below(9) as f64 + 1.0
    }
}
