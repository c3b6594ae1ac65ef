//! The contests: what is done, and how this project and its rivals do it.
//!
//! Each contestant does the same thing twice in each run. The second time counts, so that none pays for waking threads
//! and memory touched first.

pub(crate) mod chain;
pub(crate) mod empty;
mod fibonacci;
mod graph;
mod queens;
mod stencil;

use crate::contest::{Contest, Contestant};
use crate::error::Result;
use crate::toolbox::{Rival, Toolbox};

/// All contests.
pub static CONTESTS: &[Contest] =
    &[stencil::CONTEST, graph::CONTEST, fibonacci::CONTEST, queens::CONTEST, empty::CONTEST, chain::CONTEST];

/// A rival's program: whose, how it is called, and in which file of `benches/rivals` it is.
type Source = (Rival, &'static str, &'static str);

/// The programs of those rivals that this machine has.
fn found(toolbox: &Toolbox, sources: &[Source]) -> Vec<Contestant> {
    let contestant = |&(rival, name, source): &Source| {
        Some(Contestant::rival(name, toolbox.cores(), toolbox.program(rival, source)?))
    };
    sources.iter().filter_map(contestant).collect()
}

fn rayon_pool(cores: usize) -> Result<rayon::ThreadPool> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(cores).build()?)
}
