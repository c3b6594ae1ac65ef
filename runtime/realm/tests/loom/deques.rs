//! Deques of operations.

use loom::thread;

use crate::deque::Deque;
use crate::model;

/// A worker puts items in and takes some out, while another worker steals; in the end it takes out the rest. Each item
/// comes out once.
fn each_item_of_a_deque_comes_out_once<const MOST: usize>(steps: &'static [Step], steals: usize) {
    model(move || {
        let deque = Deque::<MOST>::new();
        let stealer = deque.stealer();
        let thief = thread::spawn(move || {
            let stolen = (0..steals).filter_map(|_| stealer.steal());
            stolen.flat_map(|stolen| stolen.items().to_vec()).collect::<Vec<_>>()
        });
        let (mut pushed, mut out) = (0, Vec::new());
        for step in steps {
            match step {
                Step::Push => {
                    deque.push(pushed);
                    pushed += 1;
                }
                Step::Pop => out.extend(deque.pop()),
            }
        }
        let stolen = thief.join().unwrap();
        assert!(stolen.is_sorted(), "{stolen:?}");
        out.extend(stolen);
        out.extend(std::iter::from_fn(|| deque.pop()));
        out.sort_unstable();
        assert_eq!(out, (0..pushed).collect::<Vec<_>>());
    });
}

enum Step {
    Push,
    Pop,
}

use Step::{Pop, Push};

#[test]
fn the_last_items_of_a_deque_come_out_once() {
    each_item_of_a_deque_comes_out_once::<2>(&[Push, Push, Pop, Pop], 2);
    each_item_of_a_deque_comes_out_once::<2>(&[Push, Push, Pop, Push, Pop], 1);
}

#[test]
fn items_of_a_deque_that_are_out_of_the_reach_of_others_come_out_once() {
    each_item_of_a_deque_comes_out_once::<1>(&[Push, Push, Push, Pop, Pop, Push], 2);
}

#[test]
fn items_of_a_deque_that_grows_come_out_once() {
    each_item_of_a_deque_comes_out_once::<1>(&[Push, Push, Push, Pop, Pop], 1);
}
