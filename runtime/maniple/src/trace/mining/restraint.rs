//! Holding back after failures.

/// Holds back what failed, twice as long with every failure that no success has made up for.
///
/// In n steps there are at most `free + log2(n / base + 2)` failures more than successes, if each failure has a weight of 1: only a wait twice
/// as long as the last can lead to a larger debt. One more, if weights are 1 and 2.
#[derive(Clone, Debug)]
pub(super) struct Restraint {
    /// Steps without attempts after the first failure that is not free, halved.
    base: u64,
    /// Debts with no consequence.
    free: u32,
    /// Failures that are not made up for.
    debt: u32,
    until: u64,
}

impl Restraint {
    pub(super) fn new(base: u64, free: u32) -> Self {
        Self { base, free, debt: 0, until: 0 }
    }

    pub(super) fn allows(&self, now: u64) -> bool {
        now >= self.until
    }

    /// Failures that are not made up for, by weight.
    pub(super) fn debt(&self) -> u32 {
        self.debt
    }

    /// A failure that counts as `weight`.
    pub(super) fn failed(&mut self, now: u64, weight: u32) {
        self.debt += weight;
        // Longer than any program, and far from overflow.
        let doublings = self.debt.saturating_sub(self.free).min(40);
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
    fn each_failure_doubles_the_wait_and_each_success_halves_it() {
        let mut restraint = Restraint::new(10, 1);
        let mut wait = |success: bool| {
            if success {
                restraint.succeeded();
            }
            restraint.failed(1000, 1);
            (1000..).take_while(|&now| !restraint.allows(now)).count()
        };
        assert_eq!([false, false, false, false, true, true].map(&mut wait), [0, 20, 40, 80, 80, 80]);
    }

    proptest! {
        #[test]
        fn failures_are_as_many_as_successes_and_a_logarithm_of_time(
            successes in prop::collection::vec(any::<bool>(), 3_000), base in 1..40_u64, free in 0..5_u32, odds in 0..4,
        ) {
            let mut restraint = Restraint::new(base, free);
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
                let bound = f64::from(succeeded + free) + (now as f64 / base as f64 + 2.0).log2();
                prop_assert!(f64::from(failed) <= bound, "{failed} failures, {bound}");
            }
        }
    }
}
