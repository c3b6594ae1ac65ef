//! Prediction of the next launch: a program that repeats itself launches after something what it launched after it the
//! last time.

use std::sync::Arc;

/// The items that have come lately, each with the one that came after it the last time.
#[derive(Debug)]
pub(super) struct Predictor<T> {
    all: Vec<PredictorPlace<T>>,
    /// Which of them came last.
    at: usize,
}

#[derive(Debug)]
struct PredictorPlace<T> {
    what: Arc<T>,
    /// Which one came after it the last time.
    next: usize,
}

/// One that is longer is begun anew.
const LONGEST: usize = 64;

impl<T> Default for Predictor<T> {
    fn default() -> Self {
        Self { all: Vec::new(), at: 0 }
    }
}

impl<T> Predictor<T> {
    /// The expected item, if it is the one that has come.
    #[inline]
    pub(super) fn expect(&mut self, has_come: impl FnOnce(&T) -> bool) -> Option<&Arc<T>> {
        let next = self.all.get(self.at)?.next;
        let expected = self.all.get(next).filter(|expected| has_come(&expected.what))?;
        self.at = next;
        Some(&expected.what)
    }

    /// Something has come that was not expected.
    pub(super) fn turn_to(&mut self, come: &Arc<T>) {
        let known = self.all.iter().position(|known| Arc::ptr_eq(&known.what, come));
        let number = known.unwrap_or_else(|| {
            if self.all.len() == LONGEST {
                self.all.clear();
            }
            self.all.push(PredictorPlace { what: Arc::clone(come), next: 0 });
            self.all.len() - 1
        });
        if let Some(before) = self.all.get_mut(self.at) {
            before.next = number;
        }
        self.at = number;
    }

    /// Some will not come again.
    pub(super) fn forget(&mut self, is_forgotten: impl Fn(&T) -> bool) {
        if self.all.iter().any(|place| is_forgotten(&place.what)) {
            // Numbers are not what they were.
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these were expected.
    fn expected(predictor: &mut Predictor<usize>, all: &[Arc<usize>], come: impl IntoIterator<Item = usize>) -> usize {
        let is_expected = |number: usize| {
            let is_expected = predictor.expect(|expected| *expected == number).is_some();
            if !is_expected {
                predictor.turn_to(&all[number]);
            }
            is_expected
        };
        come.into_iter().map(is_expected).filter(|&is_expected| is_expected).count()
    }

    #[test]
    fn what_repeats_is_expected_from_the_second_time_on() {
        let all: Vec<_> = (0..200).map(Arc::new).collect();
        let mut predictor = Predictor::default();
        assert_eq!(expected(&mut predictor, &all, 0..5), 0);
        // Only that the first one follows the last is new.
        assert_eq!(expected(&mut predictor, &all, (0..5).cycle().take(50)), 50);
        // Another loop begins, and the first one comes back.
        assert_eq!(expected(&mut predictor, &all, [7, 8].into_iter().cycle().take(20)), 17);
        assert_eq!(expected(&mut predictor, &all, (0..5).cycle().take(50)), 49 - 1);
    }

    #[test]
    fn a_long_sequence_is_begun_anew_and_what_is_forgotten_is_kept_no_longer() {
        let all: Vec<_> = (0..200).map(Arc::new).collect();
        let mut predictor = Predictor::default();
        expected(&mut predictor, &all, 0..150);
        assert!(predictor.all.len() <= LONGEST);
        assert_eq!(Arc::strong_count(&all[0]), 1, "it was let go of");
        let mut predictor = Predictor::default();
        expected(&mut predictor, &all, 0..3);
        predictor.forget(|number| *number == 9);
        assert_eq!(Arc::strong_count(&all[1]), 2, "nothing was forgotten");
        predictor.forget(|number| *number == 1);
        assert_eq!(Arc::strong_count(&all[1]), 1);
        assert_eq!(expected(&mut predictor, &all, [0, 2, 0, 2]), 2);
    }
}
