//! Repeats in a stream of launches, and the choice of the part to replay next. A launch is known by a token alone.
//!
//! Automatic tracing after Yadav 2026, section 5.3: tokens in, candidates for replays out. From below:
//!
//! 1. `suffix_array.rs`, `periods.rs`: strings;
//! 2. `substrings.rs`: which substrings repeat without overlap and cover much of a stream;
//! 3. `sampler.rs`, `pace.rs`: which slices of a stream are looked through when, `recent.rs`: its latest tokens;
//! 4. `trie.rs`: where in the strings found a stream is;
//! 5. `candidate.rs`, `candidates.rs`: which of them to replay when, `restraint.rs`: and when not, after failures;
//! 6. `finder.rs`: all of it as a state machine, to be driven with a token a launch.
//!
//! Everything is a function of the tokens and of how replays ended: nodes that launch the same tasks decide the same.

mod candidate;
mod candidates;
mod finder;
mod pace;
mod periods;
mod recent;
mod restraint;
mod sampler;
mod substrings;
mod suffix_array;
mod trie;

pub use candidate::CandidateId;
pub use finder::{Finder, JobId, Mined, MiningJob, Parameters};

#[cfg(test)]
mod tests;
