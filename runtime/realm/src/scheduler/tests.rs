//! The deque against a simple one: in one thread whatever is done, and in several threads all that goes in.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::prelude::*;

use super::deque::Deque;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many items go in.
    Push(u32),
    /// So many items are taken at the back.
    Pop(usize),
    Steal,
    Take,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..200_u32).prop_map(Step::Push),
        (0..150_usize).prop_map(Step::Pop),
        Just(Step::Steal),
        Just(Step::Take)
    ]
}

proptest! {
    #[test]
    fn a_deque_gives_its_owner_the_newest_and_others_the_oldest(steps in prop::collection::vec(step(), 0..60)) {
        let deque: Deque = Deque::new();
        let stealer = deque.stealer();
        let (mut model, mut next) = (VecDeque::new(), 0);
        for step in steps {
            match step {
                Step::Push(count) => (0..count).for_each(|_| {
                    deque.push(next);
                    model.push_back(next);
                    next += 1;
                }),
                Step::Pop(count) => for _ in 0..count {
                    prop_assert_eq!(deque.pop(), model.pop_back());
                },
                Step::Steal => {
                    let half = model.len().div_ceil(2).min(32);
                    let oldest: Vec<u32> = model.drain(..half).collect();
                    let stolen = stealer.steal();
                    prop_assert_eq!(stolen.as_ref().map_or(&[][..], |stolen| stolen.items()), &oldest[..]);
                }
                Step::Take => prop_assert_eq!(stealer.take(), model.pop_front()),
            }
            prop_assert_eq!(deque.is_empty(), model.is_empty());
            prop_assert_eq!(stealer.is_empty(), model.is_empty());
        }
    }
}

#[test]
fn what_goes_into_a_deque_comes_out_once_whoever_takes_it() {
    const ITEMS: u32 = 200_000;
    let deque: Deque = Deque::new();
    let stealers = [deque.stealer(), deque.stealer()];
    let is_over = AtomicBool::new(false);
    let mut out = Vec::new();
    thread::scope(|scope| {
        let thieves = stealers.map(|stealer| {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut stolen = Vec::new();
                while !is_over.load(Ordering::Acquire) {
                    stolen.extend(stealer.steal().iter().flat_map(|batch| batch.items()));
                    stolen.extend(stealer.take());
                }
                stolen
            })
        });
        // In bursts, up and down again past what others can reach.
        let mut items = 0..ITEMS;
        for burst in (1..=100).cycle() {
            let before = items.start;
            items.by_ref().take(burst).for_each(|item| deque.push(item));
            out.extend((0..burst - burst / 8).map_while(|_| deque.pop()));
            if items.start == before {
                break;
            }
        }
        out.extend(std::iter::from_fn(|| deque.pop()));
        is_over.store(true, Ordering::Release);
        out.extend(thieves.into_iter().flat_map(|thief| thief.join().unwrap()));
    });
    out.sort_unstable();
    assert_eq!(out, (0..ITEMS).collect::<Vec<_>>());
}
