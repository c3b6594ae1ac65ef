//! Which parts of an instance count as used, of one whose bytes count page by page.
//!
//! The system makes a page of a large block when it is first touched. So an instance that is for more points than its
//! node uses takes the memory of those that it uses, and that is what is counted: a caller that gives points of it to a
//! task [claims](super::Instance::claim) them before. Smaller ones are counted so, too, though the allocator may have
//! made their pages before.

use std::ops::Range;

use maniple_space::{AnySpace, for_dimension};
use smallvec::SmallVec;

use crate::layout::Layout;

/// Pages that count as used since they were [claimed](super::Instance::claim).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Numbers of pages, in ascending order.
    pages: SmallVec<[Range<usize>; 1]>,
    bytes: u64,
}

impl Claim {
    /// The bytes of its pages.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn add(&mut self, page: usize, bytes: usize) {
        self.bytes += bytes as u64;
        match self.pages.last_mut() {
            Some(last) if last.end == page => last.end += 1,
            _ => self.pages.push(page..page + 1),
        }
    }
}

/// The pages of an instance, and which of them count.
#[derive(Debug)]
pub(super) struct InstanceParts {
    bytes: usize,
    page: usize,
    /// A bit for each page: set if it counts.
    counted: Vec<u64>,
    /// How many pages do not count.
    left: usize,
}

impl InstanceParts {
    /// Of an instance of so many bytes, in pages of so many, none of which counts.
    pub(super) fn of(bytes: usize, page: usize) -> Self {
        let pages = bytes.div_ceil(page);
        Self { bytes, page, counted: vec![0; pages.div_ceil(64)], left: pages }
    }

    /// Whether all pages count.
    pub(super) fn is_whole(&self) -> bool {
        self.left == 0
    }

    /// Counts the pages in which values of some points lie: gives those that did not count before.
    pub(super) fn count(&mut self, layout: &Layout, points: &AnySpace) -> Claim {
        let mut claim = Claim::default();
        let page = self.page;
        layout.for_each_run(points, page, |run| {
            for number in run.start / page..run.end.div_ceil(page) {
                let (word, bit) = (number / 64, 1 << (number % 64));
                if self.counted[word] & bit == 0 {
                    self.counted[word] |= bit;
                    self.left -= 1;
                    claim.add(number, page.min(self.bytes - number * page));
                }
            }
        });
        claim
    }

    /// Counts the pages of a claim no longer.
    pub(super) fn uncount(&mut self, claim: &Claim) {
        for number in claim.pages.iter().cloned().flatten() {
            self.counted[number / 64] &= !(1 << (number % 64));
            self.left += 1;
        }
    }
}

impl Layout {
    /// Calls `visit` with the ranges of bytes in which the values of some points lie, of those that are stored. Ranges
    /// at most `gap` bytes apart may be visited as one.
    fn for_each_run(&self, points: &AnySpace, gap: usize, mut visit: impl FnMut(Range<usize>)) {
        for_dimension!(points, |points| {
            let Ok(stored) = self.bounds().typed() else { return };
            for (_, field) in self.fields().filter(|(_, field)| field.size() > 0) {
                let mut near = 0;
                let rects = points.rects().iter().map(|rect| rect.intersection(&stored));
                for rect in rects.filter(|rect| rect.volume() > 0) {
                    field.for_each_part_near(rect, &mut near, |part, address| {
                        address.for_each_run(part, gap, &mut visit);
                    });
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use maniple_space::{AnyPoint, AnyRect, IndexSpace, Rect};
    use proptest::prelude::*;

    use super::*;
    use crate::layout::tests::layouts;

    /// The pages of all values, one by one.
    fn pages_of(layout: &Layout, points: &[AnyPoint], page: usize) -> Vec<usize> {
        let values = layout.fields().flat_map(|(_, field)| {
            points.iter().map(move |&point| (field.offset_any(point), field.size())).filter(|(_, size)| *size > 0)
        });
        let mut pages: Vec<usize> = values.flat_map(|(first, size)| first / page..=(first + size - 1) / page).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// Points of those that a layout stores: some rectangles of them.
    fn parts(layout: &Layout, cuts: &[(prop::sample::Index, prop::sample::Index)]) -> AnySpace {
        let stored = layout.points();
        for_dimension!(stored, |points| {
            let all: Vec<_> = points.points().collect();
            let corner = |index: &prop::sample::Index| all[index.index(all.len())];
            let rects = cuts.iter().filter(|_| !all.is_empty()).map(|(one, other)| {
                let (one, other) = (corner(one), corner(other));
                let low = std::array::from_fn(|d| one.0[d].min(other.0[d]));
                let high = std::array::from_fn(|d| one.0[d].max(other.0[d]));
                Rect::new(low, high)
            });
            IndexSpace::from_rects(rects).intersection(points).into()
        })
    }

    fn points_of(space: &AnySpace) -> Vec<AnyPoint> {
        for_dimension!(space, |space| space.points().map(AnyPoint::from).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Pages of any size, so that small layouts have many.
        #[test]
        fn what_is_counted_has_all_values_and_hardly_more(
            spec in (1..=4_usize).prop_flat_map(layouts),
            cuts in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 0..3),
            page in prop::sample::select(vec![1_usize, 8, 16, 64, 256]),
        ) {
            let Ok(layout) = spec.build() else { return Ok(()) };
            let points = parts(&layout, &cuts);
            let mut visited = Vec::new();
            layout.for_each_run(&points, page, |run| visited.extend(run.start / page..run.end.div_ceil(page)));
            visited.sort_unstable();
            visited.dedup();
            let wanted = pages_of(&layout, &points_of(&points), page);
            prop_assert!(wanted.iter().all(|page| visited.binary_search(page).is_ok()), "{wanted:?}, not {visited:?}");
            // Gaps that are joined are within pages that have a value each. Between structs may be what is no value.
            if layout.spec().arrangement == crate::layout::Arrangement::StructOfArrays {
                prop_assert_eq!(visited, wanted);
            }
        }
    }

    #[test]
    fn pages_that_count_are_not_counted_again_and_the_last_has_what_is_left() {
        let spec = crate::layout::LayoutSpec::new(
            AnyRect::from(Rect::<1>::from(0..100_000)).into(),
            vec![crate::layout::FieldSpec::of::<u32>(crate::layout::FieldId(0))],
        );
        let layout = spec.build().unwrap();
        let mut parts = InstanceParts::of(layout.bytes(), 4096);
        let mut count = |from, to| parts.count(&layout, &AnyRect::from(Rect::<1>::from(from..to)).into());
        assert_eq!(count(10, 10).bytes(), 0);
        assert_eq!(count(10, 20).bytes(), 4096);
        assert_eq!(count(0, 1024).bytes(), 0);
        let claim = count(1000, 2049);
        assert_eq!(claim.bytes(), 2 * 4096);
        assert_eq!(count(99_999, 100_000).bytes(), 400_000 % 4096);
        parts.uncount(&claim);
        assert_eq!(parts.count(&layout, &AnyRect::from(Rect::<1>::from(0..2048)).into()).bytes(), 4096);
        let rest = parts.count(&layout, layout.points()).bytes();
        assert!(parts.is_whole());
        assert_eq!(rest, 400_000 - 2 * 4096 - 400_000 % 4096);
    }
}
