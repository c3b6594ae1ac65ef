//! Sets of numbers, each kept once.

use rustc_hash::FxHashMap;

/// A set of numbers of a [`Sets`]. Equal sets are equal handles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Set(u32);

/// Makes sets, and keeps each only once.
///
/// A set is a binary tree over the numbers up to a limit, whose leaves are words of 64 bits; equal trees are one. So
/// two sets are compared at once, and joined in the time that walking their common part takes.
pub(crate) struct Sets {
    nodes: Vec<SetNode>,
    known: FxHashMap<SetNode, Set>,
    /// Forks above each leaf.
    height: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SetNode {
    Empty,
    Leaf(u64),
    Fork(Set, Set),
}

/// The first of the numbers that both of two sets have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Common(pub(crate) u32);

const WORD: u32 = 6;

impl Sets {
    /// Sets of numbers below a limit.
    pub(crate) fn below(limit: usize) -> Self {
        let words = limit.div_ceil(1 << WORD).max(1);
        let mut sets =
            Self { nodes: Vec::new(), known: FxHashMap::default(), height: words.next_power_of_two().ilog2() };
        sets.keep(SetNode::Empty);
        sets
    }

    /// The set without numbers.
    pub(crate) const EMPTY: Set = Set(0);

    /// The set of one number.
    pub(crate) fn of(&mut self, number: u32) -> Set {
        let mut set = self.keep(SetNode::Leaf(1 << (number % (1 << WORD))));
        for level in 0..self.height {
            let is_right = number >> (WORD + level) & 1 == 1;
            set = self.keep(if is_right { SetNode::Fork(Self::EMPTY, set) } else { SetNode::Fork(set, Self::EMPTY) });
        }
        set
    }

    /// The numbers of two sets that have none in common.
    ///
    /// # Errors
    /// The first that they have in common.
    pub(crate) fn union(&mut self, a: Set, b: Set) -> Result<Set, Common> {
        self.union_at(self.height, 0, a, b)
    }

    /// The union of two trees of a height whose numbers begin with `base`.
    fn union_at(&mut self, height: u32, base: u32, a: Set, b: Set) -> Result<Set, Common> {
        match (self.nodes[a.0 as usize], self.nodes[b.0 as usize]) {
            (SetNode::Empty, _) => Ok(b),
            (_, SetNode::Empty) => Ok(a),
            (SetNode::Fork(a_left, a_right), SetNode::Fork(b_left, b_right)) => {
                let left = self.union_at(height - 1, base, a_left, b_left)?;
                let right = self.union_at(height - 1, base + (1 << (WORD + height - 1)), a_right, b_right)?;
                Ok(self.keep(SetNode::Fork(left, right)))
            }
            (SetNode::Leaf(a), SetNode::Leaf(b)) if a & b == 0 => Ok(self.keep(SetNode::Leaf(a | b))),
            (SetNode::Leaf(a), SetNode::Leaf(b)) => Err(Common(base + (a & b).trailing_zeros())),
            (SetNode::Leaf(_), SetNode::Fork(..)) | (SetNode::Fork(..), SetNode::Leaf(_)) => {
                unreachable!("trees of one height have their leaves at one depth")
            }
        }
    }

    /// The numbers in ascending order.
    pub(crate) fn numbers(&self, set: Set) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = vec![(set, self.height, 0)];
        while let Some((set, height, base)) = open.pop() {
            match self.nodes[set.0 as usize] {
                SetNode::Empty => {}
                SetNode::Leaf(bits) => {
                    found.extend((0..1 << WORD).filter(|bit| bits >> bit & 1 == 1).map(|bit: u32| base + bit));
                }
                SetNode::Fork(left, right) => {
                    open.push((right, height - 1, base + (1 << (WORD + height - 1))));
                    open.push((left, height - 1, base));
                }
            }
        }
        found
    }

    fn keep(&mut self, node: SetNode) -> Set {
        *self.known.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            Set(self.nodes.len() as u32 - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const LIMIT: u32 = 1000;

    fn made(sets: &mut Sets, numbers: impl IntoIterator<Item = u32>) -> Set {
        numbers.into_iter().fold(Sets::EMPTY, |all, number| {
            let one = sets.of(number);
            sets.union(all, one).expect("each number is new")
        })
    }

    proptest! {
        #[test]
        fn sets_are_equal_if_their_numbers_are_and_unions_refuse_doubles(
            a in prop::collection::btree_set(0..LIMIT, 0..40),
            b in prop::collection::btree_set(0..LIMIT, 0..40),
        ) {
            let mut sets = Sets::below(LIMIT as usize);
            let (one, other) = (made(&mut sets, a.iter().copied()), made(&mut sets, b.iter().copied()));
            prop_assert_eq!(sets.numbers(one), a.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(one == other, a == b);
            let reversed = made(&mut sets, a.iter().rev().copied());
            prop_assert_eq!(one, reversed);
            match (sets.union(one, other), a.intersection(&b).next()) {
                (Err(Common(number)), Some(first)) => prop_assert_eq!(number, *first),
                (Ok(union), None) => {
                    let all: BTreeSet<u32> = a.union(&b).copied().collect();
                    prop_assert_eq!(union, made(&mut sets, all));
                }
                (found, expected) => prop_assert!(false, "{found:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn a_few_numbers_need_no_forks() {
        let mut sets = Sets::below(3);
        let (zero, two) = (sets.of(0), sets.of(2));
        let both = sets.union(two, zero).unwrap();
        assert_eq!(sets.numbers(both), [0, 2]);
    }
}
