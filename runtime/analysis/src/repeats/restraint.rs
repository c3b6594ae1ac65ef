//! Holding back after failures.

/// Holds back what failed, the longer the more failures there were that no success has made up for: twice as long with
/// every `patience` of them.
///
/// In n steps there are at most `patience * (1 + log2(n / (patience * base) + 2))` failures more than successes, as one
/// that counts more lets fewer come after it: logarithmically many.
#[derive(Clone, Debug)]
pub(super) struct Restraint {
    /// Steps without attempts once patience has first been lost, halved.
    base: u64,
    patience: u32,
    /// Failures that are not made up for, by weight.
    debt: u32,
    until: u64,
}

impl Restraint {
    pub(super) fn new(base: u64, patience: u32) -> Self {
        Self { base, patience, debt: 0, until: 0 }
    }

    pub(super) fn allows(&self, now: u64) -> bool {
        now >= self.until
    }

    /// Failures that are not made up for.
    pub(super) fn debt(&self) -> u32 {
        self.debt
    }

    /// A failure that counts as `weight`, at least 1.
    pub(super) fn failed(&mut self, now: u64, weight: u32) {
        self.debt += weight;
        // Longer than any program, and far from overflow.
        let doublings = (self.debt / self.patience).min(40);
        if doublings > 0 {
            self.until = now + (self.base << doublings);
        }
    }

    pub(super) fn succeeded(&mut self) {
        self.debt = self.debt.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn failures_lengthen_the_wait_and_successes_make_up_for_them() {
        let mut restraint = Restraint::new(10, 2);
        let mut wait = |success: bool| {
            if success {
                restraint.succeeded();
            }
            restraint.failed(1000, 1);
            (1000..).take_while(|&now| !restraint.allows(now)).count()
        };
        assert_eq!([false, false, false, false, true, true, false].map(&mut wait), [0, 20, 20, 40, 40, 40, 40]);
    }

    proptest! {
        #[test]
        fn failures_are_as_many_as_successes_and_a_logarithm_of_time(
            successes in prop::collection::vec(any::<bool>(), 3_000), base in 1..40_u64, patience in 1..9_u32, odds in 0..4,
        ) {
            let mut restraint = Restraint::new(base, patience);
            let (mut failed, mut succeeded) = (0, 0);
            for (now, &success) in successes.iter().enumerate() {
                if !restraint.allows(now as u64) {
                    continue;
                }
                if success && odds > 0 {
                    restraint.succeeded();
                    succeeded += 1;
                } else {
                    restraint.failed(now as u64, 1);
                    failed += 1;
                }
                let waits = now as f64 / (f64::from(patience) * base as f64);
                let bound = f64::from(succeeded) + f64::from(patience) * (1.0 + (waits + 2.0).log2());
                prop_assert!(f64::from(failed) <= bound, "{failed} failures, {bound}");
            }
        }
    }
}
