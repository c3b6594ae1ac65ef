//! The end of a stream.

/// Keeps the latest items, up to a capacity.
#[derive(Debug)]
pub(super) struct Recent<T> {
    /// Grows to the capacity, then the oldest is overwritten.
    items: Vec<T>,
    oldest: usize,
    capacity: usize,
}

impl<T: Copy> Recent<T> {
    /// Allocates nothing before the first item.
    pub(super) fn new(capacity: usize) -> Self {
        Self { items: Vec::new(), oldest: 0, capacity }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn push(&mut self, item: T) {
        if self.items.len() < self.capacity {
            self.items.push(item);
        } else {
            self.items[self.oldest] = item;
            self.oldest += 1;
            if self.oldest == self.capacity {
                self.oldest = 0;
            }
        }
    }

    /// The latest `count`, or all that there are, in two parts.
    pub(super) fn latest(&self, count: usize) -> [&[T]; 2] {
        let (newer, older) = self.items.split_at(self.oldest);
        let newer = &newer[newer.len().saturating_sub(count)..];
        [&older[(older.len() + newer.len()).saturating_sub(count).min(older.len())..], newer]
    }

    /// Sets the latest `count`, or all that there are.
    pub(super) fn fill_latest(&mut self, count: usize, item: T) {
        let (newer, older) = self.items.split_at_mut(self.oldest);
        let from = newer.len().saturating_sub(count);
        let newer = &mut newer[from..];
        let from = (older.len() + newer.len()).saturating_sub(count).min(older.len());
        older[from..].fill(item);
        newer.fill(item);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_latest_items_are_kept(capacity in 1..20_usize, pushed in 0..60_usize, count in 0..30_usize, filled in 0..30_usize) {
            let mut recent = Recent::new(capacity);
            for item in 0..pushed {
                recent.push(item);
            }
            let from = pushed.saturating_sub(count.min(capacity));
            prop_assert_eq!(recent.latest(count).concat(), (from..pushed).collect::<Vec<_>>());
            recent.fill_latest(filled, 1000);
            let marked = pushed - filled.min(pushed);
            let expected = (from..pushed).map(|item| if item < marked { item } else { 1000 });
            prop_assert_eq!(recent.latest(count).concat(), expected.collect::<Vec<_>>());
        }
    }
}
