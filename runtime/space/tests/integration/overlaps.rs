//! The indices find exactly the rectangles that overlap.

use crate::model;
use maniple_space::{BoxHandle, DynamicBoxTree, OverlapIndex, Rect, overlapping_pairs};
use model::{anchor, rects, spaces};
use proptest::collection::vec;
use proptest::prelude::*;

/// A step of a test on a tree of boxes.
#[derive(Clone, Debug)]
enum Step<const D: usize> {
    Insert(Rect<D>),
    Remove(prop::sample::Index),
    Query(Rect<D>),
}

/// Many rectangles, so that trees become several levels high.
fn many<const D: usize>() -> impl Strategy<Value = Vec<Rect<D>>> {
    anchor().prop_flat_map(|at| vec(rects(at), 0..20)).prop_map(|lists| lists.concat())
}

fn steps<const D: usize>() -> impl Strategy<Value = Vec<Step<D>>> {
    let kind = (any::<prop::sample::Index>(), 0..5);
    (many(), vec(kind, 140)).prop_map(|(rects, kinds)| {
        let step = |(rect, (index, kind))| match kind {
            0..3 => Step::Insert(rect),
            3 => Step::Remove(index),
            _ => Step::Query(rect),
        };
        rects.into_iter().zip(kinds).map(step).collect()
    })
}

in_each_dimension! {
    fn an_index_finds_exactly_what_overlaps<const D: usize>(
        (entries, queries) in anchor::<D>().prop_flat_map(|at| {
            (vec(rects(at), 0..20).prop_map(|lists| lists.concat()), rects(at))
        }),
    ) {
        let index = OverlapIndex::new((0..).zip(&entries).map(|(i, &rect)| (rect, i)));
        for query in &queries {
            let mut found = Vec::new();
            index.query(query, |payload| found.push(payload as usize));
            found.sort();
            let expected: Vec<usize> = (0..entries.len()).filter(|&i| entries[i].overlaps(query)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    fn a_changing_tree_finds_exactly_what_it_holds<const D: usize>(steps in steps::<D>()) {
        let mut tree = DynamicBoxTree::new();
        let mut held: Vec<(BoxHandle, u32, Rect<D>)> = Vec::new();
        for (key, step) in (0u32..).zip(steps) {
            match step {
                Step::Insert(rect) => held.push((tree.insert(rect, key), key, rect)),
                Step::Remove(index) if !held.is_empty() => {
                    let (handle, key, _) = held.swap_remove(index.index(held.len()));
                    prop_assert_eq!(tree.remove(handle), Some(key));
                    prop_assert_eq!(tree.remove(handle), None);
                }
                Step::Remove(_) => {}
                Step::Query(query) => {
                    let mut found = Vec::new();
                    tree.query(&query, |key| found.push(key));
                    found.sort();
                    let overlapping = held.iter().filter(|entry| entry.2.overlaps(&query));
                    let mut expected: Vec<u32> = overlapping.map(|entry| entry.1).collect();
                    expected.sort();
                    prop_assert_eq!(found, expected);
                }
            }
            prop_assert_eq!(tree.len(), held.len());
        }
    }

    fn pairs_are_those_that_overlap<const D: usize>(a in spaces::<D>(), b in spaces::<D>()) {
        let pairs = overlapping_pairs(&a, &b);
        prop_assert_eq!(pairs.len(), a.len());
        for (i, a) in a.iter().enumerate() {
            let expected: Vec<u32> = (0u32..).zip(&b).filter(|(_, b)| a.overlaps(b)).map(|(j, _)| j).collect();
            prop_assert_eq!(pairs.of(i), expected);
        }
        let total: usize = pairs.iter().map(<[u32]>::len).sum();
        prop_assert_eq!(pairs.pair_count(), total);
    }
}
