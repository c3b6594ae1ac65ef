//! The cost of a plan: operations, bytes that move, memory, and an estimate of the time.
//!
//! [`Rates`] describe a machine: how fast a processor computes, and how fast it gets data. [`Estimate`] applies them to
//! a plan and its [traffic](crate::traffic).
//!
//! | assumed | |
//! | --- | --- |
//! | computing | A leaf takes as long as its operations, or as reading and writing what it uses in memory, whichever is longer, and something to be launched. |
//! | moving | Each byte that a processor sends or gets takes its time, and so does each message. |
//! | overlap | What a step needs is fetched while the step before computes, and a part of that costs the processor no time. Nothing overlaps with what the first step fetches, nor with what leaves after the last one. |
//! | copies | Where a placement keeps copies, all but one had to be sent before. |
//! | waiting | The slowest processor counts; processors don't wait for each other within the run. |
//!
//! So times are good for comparing schedules, which is what they are used for, and not much more.
//!
//! | in reading order | |
//! | --- | --- |
//! | [`Rates`] | a machine |
//! | `measure` | this machine |
//! | [`Estimate`] | what a plan costs there |
//! | [`explain`] | a plan with its costs, as text |

mod estimate;
mod explain;
mod measure;
mod rates;

pub use estimate::Estimate;
pub use explain::explain;
pub(crate) use explain::{bytes, seconds};
pub use rates::Rates;
