//! Names that are used again.
//!
//! A loop that makes an object, uses it and destroys it names another object in each iteration, though it does the
//! same. An object that is made in the place of a destroyed one may be *renewed* from that instead. It has the same
//! number, and so is equal to the old one; only for the question whether it is [destroyed](crate::deletion) is it
//! another name. An analysis that remembers the operations on the old object can repeat them on the new one.

use std::sync::Arc;

/// So many names wait to be used again at most.
const MOST: usize = 64;

/// Names of one kind below one index space: those in use, if that is to be known, and those that may be used again.
#[derive(Debug)]
pub(crate) struct Renewals<T> {
    collects: bool,
    taken: Vec<Arc<T>>,
    free: Vec<Arc<T>>,
}

impl<T> Renewals<T> {
    /// `collects` says whether what is made may be used again without having been destroyed: when [all](Self::free_all)
    /// is.
    pub(crate) fn new(collects: bool) -> Self {
        Self { collects, taken: Vec::new(), free: Vec::new() }
    }

    /// A name that is free and fits. Of several the first that became free.
    pub(crate) fn take(&mut self, fits: impl FnMut(&Arc<T>) -> bool) -> Option<Arc<T>> {
        let place = self.free.iter().position(fits)?;
        let name = self.free.remove(place);
        self.add(&name);
        Some(name)
    }

    /// A name was made.
    pub(crate) fn add(&mut self, name: &Arc<T>) {
        if self.collects && self.taken.len() < MOST {
            self.taken.push(Arc::clone(name));
        }
    }

    /// A name may be used again.
    pub(crate) fn free(&mut self, name: &Arc<T>) {
        self.taken.retain(|taken| !Arc::ptr_eq(taken, name));
        if self.free.iter().any(|free| Arc::ptr_eq(free, name)) {
            return;
        }
        if self.free.len() == MOST {
            self.free.remove(0);
        }
        self.free.push(Arc::clone(name));
    }

    /// All names that are in use may be used again.
    pub(crate) fn free_all(&mut self) {
        for name in std::mem::take(&mut self.taken) {
            self.free(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use maniple_space::{AnyRect, AnySpace, IndexSpace, Rect};
    use proptest::prelude::*;

    use super::{MOST, Renewals};
    use crate::deletion::Deletions;
    use crate::{FieldId, FieldMask, Forest, Privilege, Requirement};

    /// The set of destroyed names.
    struct Destroyed<const N: usize>([u64; N]);

    impl<const N: usize> Deletions for Destroyed<N> {
        fn is_destroyed(&self, number: u64) -> bool {
            self.0.contains(&number)
        }

        fn times_freed(&self, _: u64, _: FieldId) -> u32 {
            0
        }
    }

    fn line(range: std::ops::Range<i64>) -> AnySpace {
        IndexSpace::from(Rect::<1>::from(range)).into()
    }

    #[test]
    fn a_renewed_region_is_equal_and_destroyed_by_itself() {
        let forest = Forest::new();
        let region = forest.region(&forest.index_space(&line(0..4)), &forest.field_space(1)).unwrap();
        let _mark = region.tree().mark_destroyed();
        let (first, second) = (region.renewed(), region.renewed().renewed());
        assert!(region == first && first == second && first.tree().id() == region.tree().id());
        let all = Destroyed([region.tree().name_number()]);
        assert!(
            region.check_alive(&all).is_err() && first.check_alive(&all).is_ok() && second.check_alive(&all).is_ok()
        );
        let _mark = first.tree().mark_destroyed();
        let all = Destroyed([region.tree().name_number(), first.tree().name_number()]);
        assert!(first.check_alive(&all).is_err() && second.check_alive(&all).is_ok());
        let of = |region: &crate::LogicalRegion| Requirement::new(region.clone(), FieldMask::new(), Privilege::Read);
        assert_eq!(of(&first), of(&second));
        assert!(
            of(&first).target.is_same_name(&of(&first).target) && !of(&first).target.is_same_name(&of(&second).target)
        );
        assert!(!first.is_within(&second), "privileges on the one are none on the other");
        // A task that has ended one of the names has ended all.
        region.tree().end_with_run();
        assert!(second.tree().check_run().is_err());
    }

    #[test]
    fn a_partition_into_the_same_pieces_is_renewed_while_that_is_wanted() {
        let forest = Forest::new();
        let rows = forest.index_space(&line(0..4));
        let colors = AnyRect::from(Rect::<1>::from(0..2));
        let split = |at: i64| forest.partition(&rows, colors, &[line(0..at), line(at..4)]).unwrap();
        let before = split(2);
        assert_ne!(before.id(), split(2).id(), "by itself each is another one");
        let kept = rows.keep_partitions(true).unwrap();
        assert!(rows.keep_partitions(true).is_none());
        let (one, other) = (split(2), split(2));
        assert_ne!(one.id(), other.id(), "both are there");
        let lower = one.piece(0.into()).unwrap();
        let halves = |below| forest.partition(below, colors, &[line(0..1), line(1..2)]).unwrap();
        let below = halves(&lower);
        kept.renew();
        assert!(![one.id(), other.id()].contains(&split(1).id()));
        let again = split(2);
        assert_eq!(again.id(), one.id());
        assert_eq!(again.piece(0.into()).unwrap(), lower);
        assert_eq!(halves(&again.piece(0.into()).unwrap()).id(), below.id());
        let _mark = one.mark_destroyed();
        let destroyed = Destroyed([one.name_number()]);
        assert!(one.check_alive(&destroyed).is_err() && again.check_alive(&destroyed).is_ok());
        drop(kept);
        assert_ne!(split(2).id(), other.id());
    }

    proptest! {
        #[test]
        fn a_name_is_in_use_or_free_and_never_both(acts in proptest::collection::vec((0..3, 0_usize..100), 0..400)) {
            let mut names = Renewals::new(true);
            let (mut all, mut used): (Vec<Arc<usize>>, Vec<usize>) = (Vec::new(), Vec::new());
            for (act, number) in acts {
                match act {
                    0 => {
                        let name = names.take(|name| **name % 3 == number % 3).unwrap_or_else(|| {
                            let name = Arc::new(all.len());
                            all.push(Arc::clone(&name));
                            names.add(&name);
                            name
                        });
                        prop_assert!(!used.contains(&name), "{name} is in use");
                        used.push(*name);
                    }
                    1 if !used.is_empty() => {
                        let name = used.swap_remove(number % used.len());
                        names.free(&all[name]);
                    }
                    2 if used.len() <= MOST => {
                        names.free_all();
                        used.clear();
                    }
                    _ => {}
                }
                prop_assert!(names.free.len() <= MOST && names.taken.len() <= MOST);
            }
        }
    }
}
