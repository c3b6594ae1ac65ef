//! Strings of tokens by their common beginnings, and where in them a stream is.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Strings, each with the slot that its owner keeps it in. A string may be the beginning of another.
#[derive(Debug, Default)]
pub(super) struct Trie {
    nodes: Vec<TrieNode>,
    /// Nodes that are not used, linked by `sibling`.
    free: Link,
    unused: usize,
    first: FxHashMap<u64, First>,
}

/// The strings that begin with one token.
#[derive(Debug)]
pub(super) struct First {
    node: u32,
    /// The slots of strings that begin with it.
    pub slots: SmallVec<[u32; 4]>,
    /// How often the token has come while a string began with it.
    pub openings: u64,
}

type Link = Option<std::num::NonZero<u32>>;

/// A node's number as a link. Numbers are one off, to make links as small as numbers.
fn link(node: u32) -> Link {
    std::num::NonZero::new(node + 1)
}

fn number(link: Link) -> Option<u32> {
    link.map(|link| link.get() - 1)
}

#[derive(Debug)]
struct TrieNode {
    token: u64,
    child: Link,
    sibling: Link,
    /// Slot of the string that ends here.
    slot: Link,
    /// Strings that pass through or end here.
    strings: u32,
}

impl Trie {
    /// Slot of a string.
    pub(super) fn find(&self, string: &[u64]) -> Option<u32> {
        let (first, rest) = string.split_first()?;
        let root = self.first.get(first)?.node;
        let end = rest.iter().try_fold(root, |node, &token| self.child(node, token))?;
        number(self.nodes[end as usize].slot)
    }

    /// Returns the strings that begin with `token`.
    pub(super) fn beginning_with(&self, token: u64) -> Option<&First> {
        self.first.get(&token)
    }

    /// Tokens of all strings, common beginnings counted once.
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - self.unused
    }

    /// Adds a string that isn't there yet and is not empty.
    pub(super) fn insert(&mut self, string: &[u64], slot: u32) {
        let Some((&token, rest)) = string.split_first() else { return };
        let mut node = match self.first.get_mut(&token) {
            Some(first) => {
                first.slots.push(slot);
                first.node
            }
            None => {
                let node = self.new_node(token, None);
                let slots = SmallVec::from_slice(&[slot]);
                self.first.insert(token, First { node, slots, openings: 0 });
                node
            }
        };
        self.nodes[node as usize].strings += 1;
        for &token in rest {
            let child = self.child(node, token).unwrap_or_else(|| {
                let child = self.new_node(token, self.nodes[node as usize].child);
                self.nodes[node as usize].child = link(child);
                child
            });
            node = child;
            self.nodes[node as usize].strings += 1;
        }
        self.nodes[node as usize].slot = link(slot);
    }

    /// Takes out a string that is there. Partial matches must be [`pruned`](PartialMatches::prune) then.
    pub(super) fn remove(&mut self, string: &[u64], slot: u32) {
        let Some((token, rest)) = string.split_first() else { return };
        let Some(first) = self.first.get_mut(token) else { return };
        first.slots.retain(|&mut other| other != slot);
        let mut node = first.node;
        if first.slots.is_empty() {
            self.first.remove(token);
        }
        for &token in rest {
            let Some(child) = self.child(node, token) else { return };
            self.leave(node);
            if self.nodes[child as usize].strings == 1 {
                self.unlink(node, child);
            }
            node = child;
        }
        self.nodes[node as usize].slot = None;
        self.leave(node);
    }

    fn child(&self, node: u32, token: u64) -> Option<u32> {
        let mut child = self.nodes[node as usize].child;
        while let Some(number) = number(child) {
            let node = &self.nodes[number as usize];
            if node.token == token {
                return Some(number);
            }
            child = node.sibling;
        }
        None
    }

    fn new_node(&mut self, token: u64, sibling: Link) -> u32 {
        let node = TrieNode { token, child: None, sibling, slot: None, strings: 0 };
        match number(self.free) {
            Some(free) => {
                self.free = self.nodes[free as usize].sibling;
                self.unused -= 1;
                self.nodes[free as usize] = node;
                free
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    /// One string less goes through a node.
    fn leave(&mut self, node: u32) {
        let left = &mut self.nodes[node as usize];
        left.strings -= 1;
        if left.strings == 0 {
            left.sibling = self.free;
            self.free = link(node);
            self.unused += 1;
        }
    }

    /// Takes a child out of the list of its siblings.
    fn unlink(&mut self, parent: u32, child: u32) {
        let after = self.nodes[child as usize].sibling;
        if self.nodes[parent as usize].child == link(child) {
            self.nodes[parent as usize].child = after;
            return;
        }
        let mut before = self.nodes[parent as usize].child;
        while let Some(node) = number(before) {
            if self.nodes[node as usize].sibling == link(child) {
                self.nodes[node as usize].sibling = after;
                return;
            }
            before = self.nodes[node as usize].sibling;
        }
    }
}

/// The partial matches of a stream: strings that begin with its latest tokens, the longest match first.
#[derive(Debug, Default)]
pub(super) struct PartialMatches(Vec<PartialMatch>);

#[derive(Clone, Copy, Debug)]
struct PartialMatch {
    node: u32,
    opening: u64,
}

/// A string has just been seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub slot: u32,
    /// The number of its [opening](First::openings).
    pub opening: u64,
}

/// Partial matches kept at a time. More come of strings with short periods in them; the newest of these are let go,
/// which begin last and were to be complete last.
const MOST_PARTIAL_MATCHES: usize = 32;

impl PartialMatches {
    /// Goes on with a token. Adds to `seen` the strings that it completes, the longest first.
    pub(super) fn step(&mut self, trie: &mut Trie, token: u64, seen: &mut Vec<Seen>) {
        let mut reach = |trie: &Trie, reached: PartialMatch| {
            let node = &trie.nodes[reached.node as usize];
            seen.extend(number(node.slot).map(|slot| Seen { slot, opening: reached.opening }));
            node.child.is_some()
        };
        self.0.retain_mut(|partial| {
            trie.child(partial.node, token).is_some_and(|node| {
                partial.node = node;
                reach(trie, *partial)
            })
        });
        if let Some(first) = trie.first.get_mut(&token) {
            first.openings += 1;
            let opened = PartialMatch { node: first.node, opening: first.openings };
            if reach(trie, opened) && self.0.len() < MOST_PARTIAL_MATCHES {
                self.0.push(opened);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Forgets matches with strings that have been removed.
    pub(super) fn prune(&mut self, trie: &Trie) {
        self.0.retain(|partial| trie.nodes[partial.node as usize].strings > 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn string() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(0..3_u64, 1..8)
    }

    proptest! {
        #[test]
        fn what_is_seen_is_what_the_stream_ends_with(
            added in prop::collection::vec(string(), 0..12),
            removed in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
            stream in prop::collection::vec(0..3_u64, 0..60),
            when in any::<prop::sample::Index>(),
        ) {
            let mut trie = Trie::default();
            let mut strings: Vec<(Vec<u64>, u32)> = Vec::new();
            for string in added {
                if trie.find(&string).is_none() {
                    trie.insert(&string, strings.len() as u32);
                    strings.push((string, strings.len() as u32));
                }
            }
            let mut partial = PartialMatches::default();
            let when = when.index(stream.len() + 1);
            for (seen, &token) in stream.iter().enumerate() {
                if seen == when {
                    for index in &removed {
                        if !strings.is_empty() {
                            let (string, slot) = strings.swap_remove(index.index(strings.len()));
                            trie.remove(&string, slot);
                            partial.prune(&trie);
                        }
                    }
                }
                let mut found = Vec::new();
                partial.step(&mut trie, token, &mut found);
                let mut slots: Vec<_> = found.iter().map(|seen| seen.slot).collect();
                let length = |slot: &u32| strings.iter().find(|string| string.1 == *slot).map(|string| string.0.len());
                prop_assert!(slots.is_sorted_by(|longer, shorter| length(longer) > length(shorter)));
                slots.sort_unstable();
                let ends_with = |string: &&(Vec<u64>, u32)| stream[..=seen].ends_with(&string.0);
                let mut expected: Vec<_> = strings.iter().filter(ends_with).map(|string| string.1).collect();
                expected.sort_unstable();
                prop_assert_eq!(slots, expected);
            }
            let beginnings: std::collections::HashSet<_> =
                strings.iter().flat_map(|(string, _)| (1..=string.len()).map(|end| &string[..end])).collect();
            prop_assert_eq!(trie.len(), beginnings.len());
        }
    }

    #[test]
    fn openings_tell_how_often_a_beginning_led_nowhere() {
        let mut trie = Trie::default();
        trie.insert(&[1, 2, 3], 0);
        let mut partial = PartialMatches::default();
        let mut seen = Vec::new();
        for token in [1, 2, 3, 1, 2, 4, 1, 1, 2, 3] {
            partial.step(&mut trie, token, &mut seen);
        }
        assert_eq!(seen, [Seen { slot: 0, opening: 1 }, Seen { slot: 0, opening: 4 }]);
    }
}
