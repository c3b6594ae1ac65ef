//! Whether the nodes of a job were given the same options.
//!
//! The runtime compares what nodes do, but not all that they do it with: tasks with arguments that it does not know
//! would run on each node with what was said there, and make a mixture.

use std::ffi::OsStr;

use clap::ArgMatches;
use maniple::Runtime;

use crate::error::{Error, Result};
use crate::headings::{RECORD_HEADING, RUNTIME_HEADING};

/// The part of a command line that must be the same on all nodes: the program, its options by name, and the seed. Other
/// options of the runtime may differ, as machines do.
#[derive(Clone, Debug, Default)]
pub struct Stated(Vec<(String, String)>);

impl Stated {
    pub(crate) fn of(mut command: &clap::Command, mut matches: &ArgMatches) -> Self {
        let mut program = Vec::new();
        while let Some((name, inner)) = matches.subcommand()
            && let Some(found) = command.find_subcommand(name)
        {
            program.push(name);
            (command, matches) = (found, inner);
        }
        let mut stated = vec![("the program".to_owned(), program.join(" "))];
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            let is_of_runtime = matches!(argument.get_help_heading(), Some(RUNTIME_HEADING | RECORD_HEADING));
            // Machines may have other libraries.
            if is_of_runtime && id != "seed" || id == "blas" {
                continue;
            }
            let words = matches.try_get_raw(id).ok().flatten().into_iter().flatten().map(OsStr::to_string_lossy);
            let name = argument.get_long().map_or_else(|| id.to_owned(), |long| format!("--{long}"));
            stated.push((name, words.collect::<Vec<_>>().join(" ")));
        }
        Self(stated)
    }

    /// Has all nodes say what they were given.
    ///
    /// # Errors
    /// [`Error::Usage`] on all nodes if that is not the same; [`Error::Runtime`] if a node is lost.
    pub(crate) fn compare(&self, runtime: &Runtime) -> Result<()> {
        if self.0.is_empty() || runtime.nodes() == 1 {
            return Ok(());
        }
        let stated = self.0.clone();
        let all = runtime.run(async |cx| cx.per_node(stated).all().await)?;
        match difference(&all) {
            Some(difference) => Err(Error::Usage(format!(
                "the nodes of the job were given different options: {difference}; give all nodes the same, but for what is about a node's own \
                 runtime, such as --workers"
            ))),
            None => Ok(()),
        }
    }
}

/// The first option that a node has otherwise than node 0.
fn difference(all: &[Vec<(String, String)>]) -> Option<String> {
    let (first, others) = all.split_first()?;
    others.iter().enumerate().find_map(|(before, other)| {
        let mut pairs = first.iter().zip(other);
        let ((name, here), (_, there)) = pairs.find(|(here, there)| here != there)?;
        let value = |text: &str| if text.is_empty() { "not given".to_owned() } else { format!("`{text}`") };
        Some(format!("{name} is {} on node 0, but {} on node {}", value(here), value(there), before + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_told_with_both_values() {
        let node = |size: &str, seed: &str| {
            vec![("--size".to_owned(), size.to_owned()), ("--seed".to_owned(), seed.to_owned())]
        };
        assert_eq!(difference(&[node("4", "1"), node("4", "1")]), None);
        let told = difference(&[node("4", "1"), node("4", "1"), node("4", "2")]);
        assert_eq!(told.as_deref(), Some("--seed is `1` on node 0, but `2` on node 2"));
        let told = difference(&[node("4", "1"), node("", "2")]);
        assert_eq!(told.as_deref(), Some("--size is `4` on node 0, but not given on node 1"));
    }
}
