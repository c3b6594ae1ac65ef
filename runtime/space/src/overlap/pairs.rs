//! Which spaces of one list overlap which of another.

use crate::{IndexSpace, OverlapIndex};

/// For each space of a first list, the spaces of a second that it overlaps; made by
/// [`overlapping_pairs`]. In compressed row form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlapLists {
    /// The start of the list of each row in `columns`, and the end of the last list.
    starts: Vec<usize>,
    columns: Vec<u32>,
}

impl OverlapLists {
    /// The number of spaces in the first list.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether the first list was empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of overlapping pairs.
    pub fn pair_count(&self) -> usize {
        self.columns.len()
    }

    /// The spaces of the second list that overlap space `i` of the first, ascending.
    ///
    /// # Panics
    /// When `i` is not less than [`len`](Self::len).
    #[inline]
    pub fn of(&self, i: usize) -> &[u32] {
        &self.columns[self.starts[i]..self.starts[i + 1]]
    }

    /// The lists in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> + '_ {
        self.starts.windows(2).map(|ends| &self.columns[ends[0]..ends[1]])
    }
}

/// For each `a[i]`, the sorted list of all `j` with `a[i]` overlapping `b[j]`.
///
/// Indexes the rectangles of `b` and asks for each rectangle of `a`: near-linear in the
/// rectangles and the pairs of overlapping rectangles.
///
/// ```
/// use maniple_space::{overlapping_pairs, IndexSpace, Rect};
/// let tiles = |n: i64| (0..12 / n).map(|i| Rect::from(n * i..n * i + n).into()).collect();
/// let (threes, fours): (Vec<IndexSpace<1>>, Vec<_>) = (tiles(3), tiles(4));
/// let pairs = overlapping_pairs(&threes, &fours);
/// assert_eq!(pairs.of(1), [0, 1]);
/// assert_eq!(pairs.pair_count(), 6);
/// ```
///
/// # Panics
/// When `b` has more than `u32::MAX` spaces or rectangles.
pub fn overlapping_pairs<const D: usize>(a: &[IndexSpace<D>], b: &[IndexSpace<D>]) -> OverlapLists {
    let index = index_of_spaces(b);
    let mut seen = LastSeen::new(b.len());
    let mut lists = OverlapLists { starts: vec![0], columns: Vec::new() };
    for (i, space) in a.iter().enumerate() {
        let start = lists.columns.len();
        for rect in space.rects() {
            index.query(rect, |j| {
                if seen.first_time(j, i) {
                    lists.columns.push(j);
                }
            });
        }
        lists.columns[start..].sort_unstable();
        lists.starts.push(lists.columns.len());
    }
    lists
}

/// The first `i`, and for it the first `j`, for which `a[i]` overlaps `b[j]` and `counts(i, j)`. In the order of the
/// lists.
///
/// Stops at the first `i` that has one, so that lists with many more pairs than spaces cost no more than others, if
/// `counts` is not false of most.
pub fn first_overlapping_pair<const D: usize>(
    a: &[IndexSpace<D>],
    b: &[IndexSpace<D>],
    counts: impl Fn(usize, usize) -> bool,
) -> Option<(usize, usize)> {
    let index = index_of_spaces(b);
    a.iter().enumerate().find_map(|(i, space)| {
        let mut first = None;
        for rect in space.rects() {
            index.query(rect, |j| {
                let j = j as usize;
                if first.is_none_or(|first| j < first) && counts(i, j) {
                    first = Some(j);
                }
            });
        }
        first.map(|j| (i, j))
    })
}

/// An index of all rectangles of some spaces, with the number of the space as payload.
pub(crate) fn index_of_spaces<const D: usize>(spaces: &[IndexSpace<D>]) -> OverlapIndex<D> {
    assert!(u32::try_from(spaces.len()).is_ok(), "at most 2^32 - 1 spaces can be indexed");
    let entries = |(i, space)| IndexSpace::rects(space).iter().map(move |&rect| (rect, i as u32));
    OverlapIndex::new(spaces.iter().enumerate().flat_map(entries))
}

/// Drops repeated results of a query without a set to be cleared in between.
pub(crate) struct LastSeen(Vec<usize>);

impl LastSeen {
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![usize::MAX; len])
    }

    /// Whether `item` has not come up in this `query` before.
    #[inline]
    pub(crate) fn first_time(&mut self, item: u32, query: usize) -> bool {
        std::mem::replace(&mut self.0[item as usize], query) != query
    }
}
