//! One string that may become a trace: how often it comes, and how well its coming is foretold.

use super::restraint::Restraint;
use super::substrings::Repeat;

/// Names a candidate. Never used again for another, and the same in every run of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CandidateId {
    pub(super) serial: u32,
    pub(super) slot: u32,
}

/// Sightings are counted to this many, so that a better trace that appears later can win.
const MOST_SIGHTINGS: usize = 8;

/// Sightings are counted in fractions of this, for decay.
const SIGHTING: u64 = 1 << 16;

/// Clean predictions that are remembered, and those that it takes to begin a candidate by its first token alone.
const MOST_CONFIDENCE: u32 = 7;
const TRUSTED: u32 = 2;

/// A string of tokens that has repeated.
///
/// *Sighted* means that its last token has come, whether or not it was replayed. Positions are counted in tokens of the
/// stream.
#[derive(Debug)]
pub(super) struct Candidate {
    pub id: CandidateId,
    pub tokens: Box<[u64]>,
    /// See [`Repeat::anchored`].
    pub anchored: bool,
    /// How often its first token comes in it.
    openings_within: u64,
    /// Sightings without overlap, in fractions, as of the last of them.
    sightings: u64,
    /// The ends of the last sighting, and of the last that overlaps none before.
    ended: Option<u64>,
    counted: u64,
    /// If the last two followed each other without a gap: where the next will end if the loop goes on.
    due: Option<u64>,
    /// Which coming of its first token opened the last sighting, or the last failure.
    opening: u64,
    /// In how many of the last sightings, failures being deducted, every coming of its first token opened it: a
    /// saturating counter.
    confidence: u32,
    /// Whether it has been replayed to its end.
    replayed: bool,
    restraint: Restraint,
}

impl Candidate {
    /// A repeat up to `now`, when its first token had come `opening` times.
    pub(super) fn new(id: CandidateId, repeat: &Repeat, now: u64, opening: u64) -> Self {
        let tokens = &repeat.tokens;
        Self {
            id,
            tokens: tokens.as_slice().into(),
            anchored: repeat.anchored,
            openings_within: tokens.iter().filter(|token| **token == tokens[0]).count() as u64,
            sightings: repeat.occurrences.min(MOST_SIGHTINGS) as u64 * SIGHTING,
            ended: None,
            counted: now,
            due: None,
            opening,
            confidence: 0,
            replayed: false,
            restraint: Restraint::new(tokens.len() as u64, 1),
        }
    }

    pub(super) fn length(&self) -> u64 {
        self.tokens.len() as u64
    }

    /// It has been found again, in tokens up to `now`.
    pub(super) fn found_again(&mut self, repeat: &Repeat, now: u64, half_life: u64) {
        let found = repeat.occurrences.min(MOST_SIGHTINGS) as u64 * SIGHTING;
        self.sightings = self.decayed_sightings(now, half_life).max(found);
        self.counted = self.counted.max(now.saturating_sub(self.length()));
        self.anchored |= repeat.anchored && repeat.tokens[..] == self.tokens[..];
    }

    /// It ended with the latest token; `opening` is which coming of its first token began it.
    pub(super) fn sighted(&mut self, now: u64, opening: u64, half_life: u64) {
        let start = now - self.length();
        if start >= self.counted {
            let follows = self.ended.is_some() && start == self.counted;
            self.due = follows.then_some(now + self.length());
            self.sightings = (self.decayed_sightings(now, half_life) + SIGHTING).min(MOST_SIGHTINGS as u64 * SIGHTING);
            self.confidence = (self.confidence_in(opening) + 1).min(MOST_CONFIDENCE);
            (self.counted, self.opening) = (now, opening);
        }
        self.ended = Some(now);
    }

    /// Whether it may be begun with the next token, which is the `opening`th coming of its first: it has just been
    /// seen, so that the stream may be in a loop, or that token has told well that it comes; and it is not held back
    /// for failures.
    pub(super) fn may_begin(&self, now: u64, opening: u64) -> bool {
        self.restraint.allows(now) && (self.ended == Some(now) || self.confidence_in(opening) >= TRUSTED)
    }

    /// Returns the confidence that is left at this coming of the first token. Each coming since that did not open the
    /// candidate halves it.
    fn confidence_in(&self, opening: u64) -> u32 {
        let misses = opening.saturating_sub(self.opening + self.openings_within);
        self.confidence.checked_shr(misses.min(32) as u32).unwrap_or(0)
    }

    /// Whether it follows itself, unless the loop has ended since it was last seen.
    pub(super) fn is_in_loop(&self, now: u64) -> bool {
        self.due.is_some_and(|due| due >= now)
    }

    /// Whether it is in a loop, and expected to begin anew strictly between two positions.
    pub(super) fn will_begin_between(&self, now: u64, end: u64) -> bool {
        self.due.is_some_and(|due| now < due && due < end && self.restraint.allows(due))
    }

    /// Length times sightings, these capped and decayed; a sixteenth more if it has been replayed, as recording another
    /// has its cost (Yadav 2026, section 5.3.3). The bonus is small so that a trace that leaves out a tenth of a loop
    /// gives way to one that covers it.
    pub(super) fn score(&self, now: u64, half_life: u64) -> u64 {
        let score = self.length() * self.decayed_sightings(now, half_life);
        if self.replayed { score + score / 16 } else { score }
    }

    /// Whether it has been replayed, and was seen of late.
    pub(super) fn is_in_use(&self, now: u64, half_life: u64) -> bool {
        self.replayed && self.decayed_sightings(now, half_life) >= SIGHTING
    }

    /// Returns the merit of beginning it now, compared with other candidates that may be begun. The first criterion is
    /// whether it follows itself, and has never failed without making up for it. The second is its score, weighted by
    /// the confidence that its first token foretells it, and halved for every such failure.
    pub(super) fn merit(&self, now: u64, opening: u64, half_life: u64) -> (bool, u64) {
        let promise = self.score(now, half_life) * u64::from(1 + self.confidence_in(opening));
        let debt = self.restraint.debt();
        (debt == 0 && self.due == Some(now + self.length()), promise.checked_shr(debt).unwrap_or(0))
    }

    fn decayed_sightings(&self, now: u64, half_life: u64) -> u64 {
        let half_lives = now.saturating_sub(self.counted) / half_life;
        self.sightings.checked_shr(half_lives.min(64) as u32).unwrap_or(0)
    }

    /// It was replayed to its end, which is the latest token; its first token has come `opening` times.
    pub(super) fn completed(&mut self, now: u64, opening: u64, half_life: u64) {
        if self.ended != Some(now) {
            // It was not looked for, or its partial match was let go among too many.
            self.sighted(now, (opening + 1).saturating_sub(self.openings_within).max(self.opening), half_life);
        }
        self.replayed = true;
        self.restraint.succeeded();
    }

    /// It was begun, but given up after its first `at` tokens.
    pub(super) fn abandoned(&mut self, now: u64, opening: u64, at: usize) {
        self.confidence /= 2;
        self.opening = opening;
        self.restraint.failed(now, if at * 2 < self.tokens.len() { 2 } else { 1 });
    }
}
