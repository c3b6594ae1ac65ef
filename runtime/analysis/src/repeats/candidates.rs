//! The strings that may become traces, and which of them to begin when.
//!
//! After Yadav 2026, section 5.3.3, with one difference. There, launches are held back until a whole trace has come.
//! Here none is: a trace is begun with its first token, on the prediction that the others follow. That is believed of a
//! candidate which has just been seen, since the stream may be in a loop; and of one whose first token has foretold it
//! well, which is watched whether it is replayed or not. A wrong prediction costs; [`Restraint`] bounds how many there
//! are.

use std::cmp::Reverse;

use super::candidate::{Candidate, CandidateId};
use super::periods::least_rotation;
use super::restraint::Restraint;
use super::substrings::Repeat;
use super::trie::{PartialMatches, Seen, Trie};

/// How much is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Candidates.
    pub candidates: usize,
    /// Tokens of all candidates, common beginnings counted once. Room for a new one is made as if it had none.
    pub tokens: usize,
    /// Tokens after which a sighting counts half.
    pub half_life: u64,
}

/// Of all candidates together, failures without consequences for others, and the least wait in tokens after more,
/// halved.
const PATIENCE: u32 = 16;
const LEAST_WAIT: u64 = 16;

/// A set of candidates, and where in them a stream is. What it answers depends on nothing but the calls made before.
#[derive(Debug)]
pub(super) struct Candidates {
    limits: Limits,
    slots: Vec<Option<Candidate>>,
    trie: Trie,
    partial: PartialMatches,
    /// Tokens so far.
    now: u64,
    /// Candidates so far.
    serial: u32,
    under_way: Option<CandidateId>,
    /// Slots of those that follow themselves now, and some that did before.
    in_loop: Vec<u32>,
    restraint: Restraint,
    forgotten: Vec<CandidateId>,
    /// Empty between calls.
    seen: Vec<Seen>,
}

impl Candidates {
    /// Allocates nothing before the first candidate.
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            slots: Vec::new(),
            trie: Trie::default(),
            partial: PartialMatches::default(),
            now: 0,
            serial: 0,
            under_way: None,
            in_loop: Vec::new(),
            restraint: Restraint::new(LEAST_WAIT, PATIENCE),
            forgotten: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Adds a repeat, unless it is there already; or, if it was found in a loop, a rotation of it is that serves as
    /// well: one that is anchored, or any if this one isn't. Others may be [forgotten](Self::take_forgotten) for it.
    /// `None` if it is longer than the whole set may be, or empty.
    pub(super) fn insert(&mut self, repeat: &Repeat) -> Option<CandidateId> {
        let tokens = &*repeat.tokens;
        if tokens.is_empty() || tokens.len() > self.limits.tokens || self.limits.candidates == 0 {
            return None;
        }
        let (now, half_life) = (self.now, self.limits.half_life);
        if let Some(known) = self.find(repeat) {
            known.found_again(repeat, now, half_life);
            return Some(known.id);
        }
        self.make_room(tokens.len());
        let slot = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let id = CandidateId { serial: self.serial, slot: slot as u32 };
        self.serial += 1;
        self.trie.insert(tokens, id.slot);
        let openings = self.trie.beginning_with(tokens[0]).map_or(0, |first| first.openings);
        self.slots[slot] = Some(Candidate::new(id, repeat, now, openings));
        Some(id)
    }

    /// The candidate that is the same string, or a rotation that serves as well.
    fn find(&mut self, repeat: &Repeat) -> Option<&mut Candidate> {
        let exact = self.trie.find(&repeat.tokens).map(|slot| slot as usize);
        let serves = |candidate: &Candidate| {
            candidate.tokens.len() == repeat.tokens.len()
                && (candidate.anchored || !repeat.anchored)
                && least_rotation(&candidate.tokens).eq(least_rotation(&repeat.tokens))
        };
        let slot = exact.or_else(|| {
            let in_loop = repeat.in_succession > 1;
            self.slots.iter().position(|slot| in_loop && slot.as_ref().is_some_and(serves))
        });
        self.slots[slot?].as_mut()
    }

    /// Forgets candidates until one with so many tokens fits: first those that haven't been replayed and seen of late,
    /// and of these or those the ones with the lowest scores.
    fn make_room(&mut self, tokens: usize) {
        let Limits { candidates, tokens: most, half_life } = self.limits;
        while self.iter().count() >= candidates || self.trie.len() + tokens > most {
            let worth = |candidate: &&Candidate| {
                (candidate.is_in_use(self.now, half_life), candidate.score(self.now, half_life), candidate.id)
            };
            let others = self.iter().filter(|candidate| Some(candidate.id) != self.under_way);
            let Some(slot) = others.min_by_key(worth).map(|candidate| candidate.id.slot) else { return };
            self.remove(slot);
        }
    }

    fn remove(&mut self, slot: u32) {
        if let Some(candidate) = self.slots[slot as usize].take() {
            self.trie.remove(&candidate.tokens, slot);
            self.partial.prune(&self.trie);
            self.in_loop.retain(|&other| other != slot);
            self.forgotten.push(candidate.id);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.slots.iter().flatten()
    }

    fn get(&self, id: CandidateId) -> Option<&Candidate> {
        self.slots.get(id.slot as usize)?.as_ref().filter(|candidate| candidate.id == id)
    }

    /// The tokens of a candidate, unless it has been forgotten.
    pub(super) fn tokens(&self, id: CandidateId) -> Option<&[u64]> {
        self.get(id).map(|candidate| &*candidate.tokens)
    }

    /// Candidates forgotten since the last call: what was recorded for them is of no use any more. One that is under
    /// way is not among them.
    pub(super) fn take_forgotten(&mut self) -> Vec<CandidateId> {
        std::mem::take(&mut self.forgotten)
    }

    /// The candidate to begin with the next token, before it is [`push`](Self::push)ed: of those that may, the one with
    /// the highest [merit](Candidate::merit), then the eldest.
    ///
    /// A shorter one is passed over if it would run across the next beginning of a longer one that follows itself: that
    /// covers the whole loop.
    pub(super) fn starting_with(&self, token: u64) -> Option<CandidateId> {
        let first = self.trie.beginning_with(token).filter(|_| self.restraint.allows(self.now))?;
        let opening = first.openings + 1;
        let beginning = first.slots.iter().filter_map(|&slot| self.slots[slot as usize].as_ref());
        let eligible =
            beginning.filter(|candidate| candidate.may_begin(self.now, opening) && !self.is_in_the_way(candidate));
        let merit =
            |candidate: &&Candidate| (candidate.merit(self.now, opening, self.limits.half_life), Reverse(candidate.id));
        eligible.max_by_key(merit).map(|candidate| candidate.id)
    }

    /// Whether a longer one that follows itself would have to begin before this one, begun now, ends.
    fn is_in_the_way(&self, candidate: &Candidate) -> bool {
        let end = self.now + candidate.length();
        let mut longer = self.in_loop.iter().filter_map(|&slot| self.slots[slot as usize].as_ref());
        longer.any(|other| other.length() > candidate.length() && other.will_begin_between(self.now, end))
    }

    /// Takes in the next token of the stream; `None` for one that is like no other.
    pub(super) fn push(&mut self, token: Option<u64>) {
        self.now += 1;
        let Some(token) = token else { return self.partial.clear() };
        self.partial.step(&mut self.trie, token, &mut self.seen);
        while let Some(Seen { slot, opening }) = self.seen.pop() {
            let Some(candidate) = &mut self.slots[slot as usize] else { continue };
            candidate.sighted(self.now, opening, self.limits.half_life);
            if candidate.is_in_loop(self.now) && !self.in_loop.contains(&slot) {
                let is_in_loop =
                    |slot: u32| self.slots[slot as usize].as_ref().is_some_and(|other| other.is_in_loop(self.now));
                self.in_loop.retain(|&other| is_in_loop(other));
                self.in_loop.push(slot);
            }
        }
    }

    /// Takes in the next token of the replay under way, and does not look for others.
    pub(super) fn pass(&mut self) {
        self.now += 1;
        self.partial.clear();
    }

    /// A replay of this candidate begins with the next token.
    ///
    /// # Panics
    /// If another is under way, or the candidate has been forgotten.
    pub(super) fn begin(&mut self, id: CandidateId) {
        assert!(self.under_way.is_none(), "a replay can begin when none is under way");
        assert!(self.get(id).is_some(), "a candidate that has been forgotten can't be replayed");
        self.under_way = Some(id);
    }

    /// Whether a replay has begun and not ended.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// The replay under way has ended with the latest token.
    ///
    /// # Panics
    /// If none is under way.
    pub(super) fn completed(&mut self) {
        let (now, half_life) = (self.now, self.limits.half_life);
        if let Some((candidate, openings)) = self.end_of_replay() {
            candidate.completed(now, openings, half_life);
            self.restraint.succeeded();
        }
    }

    /// The replay under way is given up after its first `at` tokens: the next one to be pushed is another than
    /// foretold, or the replay can't go on for another reason. The less of it has come, the longer until the candidate
    /// is begun again; with every failure twice as long.
    ///
    /// # Panics
    /// If none is under way.
    pub(super) fn abandoned(&mut self, at: usize) {
        let now = self.now;
        if let Some((candidate, openings)) = self.end_of_replay() {
            candidate.abandoned(now, openings, at);
            self.restraint.failed(now, 1);
        }
    }

    /// The candidate under way, and how often its first token has come.
    fn end_of_replay(&mut self) -> Option<(&mut Candidate, u64)> {
        let id = self.under_way.take();
        assert!(id.is_some(), "a replay ends after it has begun");
        let candidate = self.slots[id?.slot as usize].as_mut()?;
        let openings = self.trie.beginning_with(candidate.tokens[0]).map_or(0, |first| first.openings);
        Some((candidate, openings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { candidates: 8, tokens: 200, half_life: 1000 };

    fn tokens(text: &str) -> Vec<u64> {
        text.bytes().map(u64::from).collect()
    }

    fn found(text: &str, in_succession: usize, anchored: bool) -> Repeat {
        Repeat { tokens: tokens(text), occurrences: 2, in_succession, anchored }
    }

    fn of(strings: &[&str]) -> (Candidates, Vec<CandidateId>) {
        let mut candidates = Candidates::new(LIMITS);
        let ids = strings.iter().map(|string| candidates.insert(&found(string, 1, true)).unwrap()).collect();
        (candidates, ids)
    }

    /// Pushes tokens; a `.` is like no other.
    fn push(candidates: &mut Candidates, text: &str) {
        text.bytes().for_each(|byte| candidates.push((byte != b'.').then_some(u64::from(byte))));
    }

    fn starting_with(candidates: &Candidates, token: char) -> Option<CandidateId> {
        candidates.starting_with(u64::from(token))
    }

    fn fail(candidates: &mut Candidates, id: CandidateId, begun: &str) {
        candidates.begin(id);
        push(candidates, begun);
        candidates.abandoned(begun.len());
    }

    #[test]
    fn what_has_just_been_seen_may_begin_again() {
        let (mut candidates, ids) = of(&["abc"]);
        assert_eq!(starting_with(&candidates, 'a'), None);
        push(&mut candidates, "ab");
        assert_eq!(starting_with(&candidates, 'c'), None);
        push(&mut candidates, "c");
        assert_eq!(starting_with(&candidates, 'a'), Some(ids[0]));
        assert_eq!(starting_with(&candidates, 'b'), None);
        push(&mut candidates, "x");
        assert_eq!(starting_with(&candidates, 'a'), None);
    }

    #[test]
    fn what_its_first_token_has_foretold_twice_may_begin_anywhere() {
        let (mut candidates, ids) = of(&["abac"]);
        push(&mut candidates, "abac.abac.");
        assert_eq!(starting_with(&candidates, 'a'), Some(ids[0]));
        push(&mut candidates, "ax");
        assert_eq!(starting_with(&candidates, 'a'), None);
    }

    #[test]
    fn what_is_like_no_other_breaks_all_matches() {
        let (mut candidates, _) = of(&["abc"]);
        push(&mut candidates, "ab.c");
        assert_eq!(starting_with(&candidates, 'a'), None);
    }

    #[test]
    fn the_longer_of_two_with_one_beginning_takes_over_when_it_follows_itself() {
        let (mut candidates, ids) = of(&["abcd", "abcdef"]);
        push(&mut candidates, "abcd.abcd.abcd.abcd.");
        assert_eq!(starting_with(&candidates, 'a'), Some(ids[0]));
        push(&mut candidates, "abcdefabcdef");
        assert_eq!(starting_with(&candidates, 'a'), Some(ids[1]));
    }

    #[test]
    fn a_shorter_one_does_not_run_across_the_beginning_of_a_longer_one_that_follows_itself() {
        let (mut candidates, ids) = of(&["cdab", "abcde"]);
        push(&mut candidates, "cdab.cdab.");
        assert_eq!(starting_with(&candidates, 'c'), Some(ids[0]));
        push(&mut candidates, "abcdeabcdeab");
        assert_eq!(starting_with(&candidates, 'c'), None);
        push(&mut candidates, "cde");
        assert_eq!(starting_with(&candidates, 'a'), Some(ids[1]));
    }

    #[test]
    fn each_failure_doubles_the_time_until_it_may_begin_again() {
        let (mut candidates, ids) = of(&["abcdef"]);
        let mut waits = Vec::new();
        for _ in 0..4 {
            push(&mut candidates, "abcdef");
            fail(&mut candidates, ids[0], "abcd");
            let mut waited = 0;
            while starting_with(&candidates, 'a').is_none() {
                push(&mut candidates, "abcdef");
                waited += 6;
            }
            waits.push(waited);
        }
        assert_eq!(waits, [12, 24, 48, 96]);
    }

    #[test]
    fn a_failure_near_the_start_counts_twice() {
        let (mut candidates, ids) = of(&["abcdef"]);
        push(&mut candidates, "abcdef");
        fail(&mut candidates, ids[0], "a");
        push(&mut candidates, "abcdefabcdefabcdef");
        assert_eq!(starting_with(&candidates, 'a'), None);
        push(&mut candidates, "abcdef");
        assert_eq!(starting_with(&candidates, 'a'), Some(ids[0]));
    }

    #[test]
    fn success_makes_up_for_failure() {
        let (mut candidates, ids) = of(&["abcdef"]);
        push(&mut candidates, "abcdef");
        fail(&mut candidates, ids[0], "abcd");
        push(&mut candidates, "abcdefabcdef");
        candidates.begin(ids[0]);
        push(&mut candidates, "abcdef");
        candidates.completed();
        assert_eq!(starting_with(&candidates, 'a'), Some(ids[0]));
        fail(&mut candidates, ids[0], "abcd");
        push(&mut candidates, "abcdefabcdef");
        assert_eq!(starting_with(&candidates, 'a'), Some(ids[0]), "as long as after the first failure");
    }

    #[test]
    fn rotations_of_a_loop_are_one_candidate_unless_one_is_known_to_begin_it() {
        let mut candidates = Candidates::new(LIMITS);
        let first = candidates.insert(&found("bca", 3, false));
        assert_eq!(candidates.insert(&found("bca", 2, false)), first);
        assert_eq!(candidates.insert(&found("cab", 2, false)), first);
        let anchored = candidates.insert(&found("abc", 3, true));
        assert_ne!(anchored, first);
        assert_eq!(candidates.insert(&found("cab", 2, true)), anchored);
        assert_ne!(candidates.insert(&found("cab", 1, true)), anchored, "which was found outside of a loop");
    }

    #[test]
    fn the_least_worthy_and_of_equals_the_eldest_is_forgotten() {
        let mut candidates = Candidates::new(Limits { candidates: 3, ..LIMITS });
        let mut insert = |text: &str| {
            let id = candidates.insert(&found(text, 1, true)).unwrap();
            (id, candidates.take_forgotten())
        };
        let (first, second, long) = (insert("abc").0, insert("bcd").0, insert("cdefg").0);
        let (third, forgotten) = insert("xyz");
        assert_eq!(forgotten, [first]);
        assert_eq!(insert("tuvwxyz").1, [second]);
        assert_eq!(insert("uvwxyztu").1, [third]);
        assert_eq!(insert("vwxyztuvw").1, [long]);
        assert_eq!(candidates.tokens(first), None);
    }

    #[test]
    fn what_is_under_way_or_has_been_replayed_of_late_is_kept() {
        let mut candidates = Candidates::new(Limits { candidates: 2, ..LIMITS });
        let short = candidates.insert(&found("ab", 1, true)).unwrap();
        candidates.begin(short);
        let long = candidates.insert(&found("tuvwxyz", 1, true)).unwrap();
        candidates.insert(&found("uvwxyzt", 1, true));
        assert_eq!(candidates.take_forgotten(), [long]);
        push(&mut candidates, "ab");
        candidates.completed();
        candidates.insert(&found("vwxyztu", 1, true));
        assert!(candidates.tokens(short).is_some());
    }

    #[test]
    fn all_candidates_together_are_limited_too() {
        let mut candidates = Candidates::new(Limits { tokens: 12, ..LIMITS });
        let first = candidates.insert(&found("abcdef", 1, true)).unwrap();
        candidates.insert(&found("abcxyz", 1, true));
        candidates.insert(&found("ghi", 1, true));
        assert_eq!(candidates.take_forgotten(), [], "three tokens are shared");
        candidates.insert(&found("mnopqr", 1, true));
        assert!(candidates.take_forgotten().contains(&first));
        assert_eq!(candidates.insert(&found("abcdefghijklm", 1, true)), None);
    }
}
