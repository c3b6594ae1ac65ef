//! From a stream of tokens to the traces to replay.

use super::candidate::CandidateId;
use super::candidates::{Candidates, Limits};
use super::pace::Pace;
use super::recent::Recent;
use super::substrings::{Repeat, find_repeats};

/// How a stream is mined. Sizes are in tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// The shortest trace.
    pub shortest: usize,
    /// How often the stream is mined at first, and when it turns to something new. The buffer is a power of two of it.
    pub finest_unit: usize,
    /// How often the stream is mined when it does not repeat. The buffer is a power of two of it.
    pub coarsest_unit: usize,
    /// How many of the latest tokens are kept: loops of at most half of that are found.
    pub buffer: usize,
    /// Slices that are mined at once, by [`Finder::push`], as that takes no longer than to hand them over.
    pub at_once: usize,
    /// Candidates that are kept.
    pub candidates: usize,
}

impl Default for Parameters {
    /// The finest unit is 16 tokens, in place of the 250 of the thesis. That finds a loop of two launches after 8
    /// iterations in place of 125, and one of 10 launches before its sixth has ended, wherever it begins. Mining 16 to
    /// 64 tokens costs a few microseconds, no more than to launch two tasks without a trace; where nothing comes of it
    /// for a whole buffer, the unit grows to that of the thesis.
    ///
    /// The shortest trace is that short as a run costs little, and a compiled graph of a few iterations no longer fits
    /// the first cache.
    fn default() -> Self {
        Self { shortest: 4, finest_unit: 16, coarsest_unit: 256, buffer: 8192, at_once: 64, candidates: 64 }
    }
}

/// The most repeats that are taken over from one slice: those that cover most of it.
const MOST_REPEATS: usize = 8;

/// Slices are mined if more than one in so many of their tokens is not replayed.
const WORTHWHILE: usize = 64;

/// Finds what repeats in a stream, and says when to replay which of it.
///
/// For each token: take in what is [`due`](Self::due); if no replay is under way, ask for the one
/// [`starting_with`](Self::starting_with) the token and [`begin`](Self::begin) it, or not; [`push`](Self::push) the
/// token, and have a worker run the [`MiningJob`] that it returns. When the last token of a replay has been pushed, it
/// is [`completed`](Self::completed); when another token comes than the replay foretells, it is
/// [`abandoned`](Self::abandoned) before that is pushed.
///
/// All that it answers depends on nothing but these calls: a job's results count from a fixed token on, however long it
/// takes. If it isn't done by then the caller has to wait; or to run it, if no thread has begun to.
#[derive(Debug)]
pub struct Finder {
    parameters: Parameters,
    recent: Recent<u64>,
    /// Which of the recent tokens lie in replays.
    covered: Recent<bool>,
    pace: Pace,
    candidates: Candidates,
    now: u64,
    /// Tokens that are like no other, so far.
    unique: u64,
    jobs: u64,
    /// Jobs whose results have not been taken in, by the token that they are due at.
    outstanding: Vec<Outstanding>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Outstanding {
    at: u64,
    job: JobId,
}

/// Names a job of one finder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JobId(u64);

/// A slice of a stream to be mined, on any thread.
#[derive(Debug)]
pub struct MiningJob {
    id: JobId,
    tokens: Vec<u64>,
    shortest: usize,
}

/// The result of a job: the repeats that it has found.
#[derive(Debug)]
pub struct Mined {
    id: JobId,
    repeats: Vec<Repeat>,
}

impl Mined {
    /// The result of a job that did not complete: no repeats.
    pub fn nothing(id: JobId) -> Self {
        Self { id, repeats: Vec::new() }
    }
}

impl MiningJob {
    /// The job's name.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Mines the slice: about 0.1 microseconds a token.
    pub fn run(self) -> Mined {
        let mut repeats = find_repeats(&self.tokens, self.shortest);
        // Stable: of those that cover as much, the longest are first.
        repeats.sort_by_key(|repeat| std::cmp::Reverse(repeat.tokens.len() * repeat.occurrences));
        repeats.truncate(MOST_REPEATS);
        Mined { id: self.id, repeats }
    }
}

impl Finder {
    /// Allocates nothing before the first token.
    ///
    /// # Panics
    /// If the buffer is not a power of two of both units.
    pub fn new(parameters: Parameters) -> Self {
        let Parameters { finest_unit, coarsest_unit, buffer, candidates, .. } = parameters;
        let limits = Limits { candidates, tokens: 4 * buffer, half_life: buffer as u64 };
        Self {
            parameters,
            recent: Recent::new(buffer),
            covered: Recent::new(buffer),
            pace: Pace::new(finest_unit, coarsest_unit, buffer),
            candidates: Candidates::new(limits),
            now: 0,
            unique: 0,
            jobs: 0,
            outstanding: Vec::new(),
        }
    }

    /// The job whose results are to be taken in before anything else is done.
    #[inline]
    pub fn due(&self) -> Option<JobId> {
        self.outstanding.first().filter(|next| next.at <= self.now).map(|next| next.job)
    }

    /// Takes in what a job has found.
    ///
    /// # Panics
    /// If that is not [`due`](Self::due).
    pub fn ingest(&mut self, mined: Mined) {
        assert_eq!(self.due(), Some(mined.id), "results are taken in when they are due, not before");
        self.outstanding.remove(0);
        self.insert(&mined.repeats);
    }

    fn insert(&mut self, repeats: &[Repeat]) {
        for repeat in repeats {
            self.candidates.insert(repeat);
        }
    }

    /// The candidate to begin with this token, which is pushed next.
    #[inline]
    pub fn starting_with(&self, token: u64) -> Option<CandidateId> {
        self.candidates.starting_with(token)
    }

    /// A replay begins with the next token.
    ///
    /// # Panics
    /// If another is under way.
    pub fn begin(&mut self, id: CandidateId) {
        self.candidates.begin(id);
    }

    /// The replay under way has ended with the latest token.
    ///
    /// # Panics
    /// If none is under way.
    pub fn completed(&mut self) {
        self.candidates.completed();
    }

    /// The replay under way is given up after its first `at` tokens.
    ///
    /// # Panics
    /// If none is under way.
    pub fn abandoned(&mut self, at: usize) {
        self.candidates.abandoned(at);
        self.covered.fill_latest(at, false);
        self.pace.uncover(at);
    }

    /// The tokens of a candidate, unless it has been forgotten.
    #[inline]
    pub fn tokens(&self, id: CandidateId) -> Option<&[u64]> {
        self.candidates.tokens(id)
    }

    /// Candidates that have been forgotten since the last call: what was recorded for them is of no use any more.
    pub fn take_forgotten(&mut self) -> Vec<CandidateId> {
        self.candidates.take_forgotten()
    }

    /// Takes in the next token of the stream; `None` for one that is like no other, and can be no part of a trace.
    /// Returns a slice to be mined, the results of which are due after as many tokens more as it has.
    ///
    /// # Panics
    /// If results are [`due`](Self::due).
    pub fn push(&mut self, token: Option<u64>) -> Option<MiningJob> {
        assert!(self.due().is_none(), "results that are due are taken in before the next token");
        self.now += 1;
        // What covers a stream for long is not given up for what might be longer.
        if self.pace.is_at_rest() && self.candidates.is_under_way() {
            self.candidates.pass();
        } else {
            self.candidates.push(token);
        }
        let token = token.unwrap_or_else(|| {
            self.unique += 1;
            u64::MAX - self.unique
        });
        let size = self.slice(token)?;
        let tokens = self.recent.latest(size).concat();
        let job = MiningJob { id: JobId(self.jobs), tokens, shortest: self.parameters.shortest };
        self.jobs += 1;
        if size <= self.parameters.at_once {
            self.insert(&job.run().repeats);
            return None;
        }
        let next = Outstanding { at: self.now + size as u64, job: job.id };
        self.outstanding.insert(self.outstanding.partition_point(|other| other < &next), next);
        Some(job)
    }

    /// Keeps a token. Returns how many of the latest are to be mined now.
    fn slice(&mut self, token: u64) -> Option<usize> {
        let covered = self.candidates.is_under_way();
        self.recent.push(token);
        self.covered.push(covered);
        let size = self.pace.step(covered)?;
        let uncovered = self.covered.latest(size).into_iter().flatten().filter(|covered| !**covered).count();
        if size == self.recent.capacity() {
            self.pace.buffer_passed(uncovered);
        }
        (uncovered * WORTHWHILE > size).then_some(size)
    }

    /// Slices that have been mined, or are.
    #[cfg(test)]
    pub(super) fn jobs_so_far(&self) -> u64 {
        self.jobs
    }
}
