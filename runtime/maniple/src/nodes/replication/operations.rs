//! Operations of the program, as nodes compare and describe them: see [`DeterminismCheck`].

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use maniple_cluster::{Describe, DeterminismCheck, Differing, Named};
use maniple_region::{FieldMask, LogicalRegion, Requirement, Target};
use maniple_space::for_dimension;
use rustc_hash::FxHasher;

use super::sharding::Shares;
use crate::launch::LaunchSite;
use crate::results::Origin;
use crate::task::TaskDefinition;
use crate::task::compared::Compared;
use crate::task::digest::Digest;

/// The comparison of a program's operations between nodes.
pub(crate) type Check = DeterminismCheck<ProgramOperation>;

/// An operation of the program, with the digest that is the same on all nodes, if the operation is.
pub(crate) type Digested = (u64, ProgramOperation);

impl Named for TaskDefinition {
    fn name(&self) -> &str {
        TaskDefinition::name(self)
    }
}

/// An operation of the program.
pub(crate) enum ProgramOperation {
    /// Of which task over what, how it is dealt to nodes, and with which arguments, if they can be compared.
    Launch(Arc<LaunchSite>, Arc<str>, Option<Digest>),
    /// A use of data: its description, the region, the fields, and the digest of the values, if they are compared.
    Use(&'static str, LogicalRegion, FieldMask, Option<Compared>),
    /// The mappers that the node has by names.
    Mappers(Arc<[Box<str>]>),
    /// A use of the results of an operation: its description, the number of the operation, and the origin of the
    /// results.
    Results(&'static str, u64, Origin),
    Other(&'static str),
}

impl Describe for ProgramOperation {
    fn describe(&self) -> String {
        match self {
            Self::Launch(site, dealt, digest) => {
                let over = if site.index_launch { format!(" over {}", site.domain) } else { String::new() };
                let data = site.bounds.iter().map(|bound| {
                    let Requirement { target, privilege, .. } = &bound.requirement;
                    format!("{privilege} {} of {target}", bound.requirement.field_names())
                });
                let data = data.collect::<Vec<_>>().join(", ");
                let with = digest.as_ref().map(Digest::to_string).filter(|with| !with.is_empty());
                let with = with.map_or_else(String::new, |with| format!(" with arguments {with}"));
                format!(
                    "launches task `{}`{over}{with} {dealt}{}{data}",
                    site.name(),
                    if data.is_empty() { "" } else { ", which " }
                )
            }
            Self::Use(what, region, fields, with) => {
                let points = for_dimension!(region.space().space(), |space| space.volume());
                let with = with.map_or_else(String::new, |with| format!(" with {with}"));
                let names = region.fields().names_of(fields);
                let fields = if names.is_empty() { names } else { format!(", fields {names}") };
                format!("{what} {region} ({points} points){with}{fields}")
            }
            Self::Mappers(names) if names.is_empty() => "has no mapper with a name".to_owned(),
            Self::Mappers(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                format!("has the mappers {}, in this order", names.join(", "))
            }
            Self::Results(what, operation, of) => {
                format!("{what} the results of operation {operation}, `{}`", of.name())
            }
            Self::Other(what) => (*what).to_owned(),
        }
    }

    /// Observations are what mappers have answered for tunables.
    fn explain(differing: &[Differing<'_>]) -> String {
        let explain = |Differing { name, observed: [(one, here), (other, there)] }: &Differing<'_>| {
            format!("; the mapper of node {one} answers {here} for tunable `{name}`, that of node {other} {there}")
        };
        let all: String = differing.iter().map(explain).collect();
        if all.is_empty() { all } else { all + ": take one answer for all nodes by `Context::per_node`" }
    }
}

/// The description, for messages, of a look at pieces of a distributed partition.
pub(super) const LOOKS: &str = "looks at pieces of a distributed partition";

/// The description, for messages, of an operation that gives up copies of values which other nodes have.
pub(super) const FORGETS: &str = "forgets copies of";

/// An operation without data.
pub(crate) fn other(what: &'static str) -> Digested {
    (digest_of(what), ProgramOperation::Other(what))
}

/// A use of the results of an operation, given by the number of the operation and their origin.
pub(crate) fn use_of_results(what: &'static str, operation: u64, of: &Origin) -> Digested {
    (digest_of((what, operation)), ProgramOperation::Results(what, operation, of.clone()))
}

fn digest_of(what: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    hasher.finish()
}

/// The digest of a launch, its shares and what they use, which is the same for the same launch on every node. Of each
/// requirement: the number of its region, if it is known, and a number that says which node uses what.
pub(crate) fn digest_of_launch(
    site: &LaunchSite,
    shares: &Shares,
    used: impl Iterator<Item = (Option<u64>, u64)>,
) -> u64 {
    let mut hasher = FxHasher::default();
    shares.hash(&mut hasher);
    // Neither names of partitions nor projections are compared, but what comes of them.
    used.for_each(|used| used.hash(&mut hasher));
    site.name().hash(&mut hasher);
    (site.domain, site.index_launch, site.tag, site.mapper).hash(&mut hasher);
    for bound in &site.bounds {
        let Requirement { target, fields, privilege, .. } = &bound.requirement;
        (fields, privilege.to_string()).hash(&mut hasher);
        if let Target::Partition(partition, _) = target {
            if partition.partitioning().piece_source().is_none() {
                partition.partitioning().union().space().hash(&mut hasher);
            }
            partition.partitioning().colors().hash(&mut hasher);
        }
        target.bound().space().space().hash(&mut hasher);
    }
    hasher.finish()
}

/// The digest of a launch with its arguments.
pub(crate) fn digest_with(launch: u64, arguments: Option<&Digest>) -> u64 {
    let Some(arguments) = arguments else { return launch };
    let mut hasher = FxHasher::default();
    (launch, arguments).hash(&mut hasher);
    hasher.finish()
}

/// The digest of something that is done to fields of a whole region, whose own number is known or not, with values or
/// not.
pub(crate) fn digest_of_use(
    what: &str,
    region: &LogicalRegion,
    known_as: Option<u64>,
    fields: &FieldMask,
    with: Option<Compared>,
) -> u64 {
    let mut hasher = FxHasher::default();
    (what, known_as, fields, with).hash(&mut hasher);
    region.space().space().hash(&mut hasher);
    hasher.finish()
}

/// The mappers that a node has by names: other nodes know them by their places in this list.
pub(crate) fn mappers(names: &Arc<[Box<str>]>) -> Digested {
    (digest_of(("mappers", names)), ProgramOperation::Mappers(Arc::clone(names)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunables_that_were_answered_differently_are_named() {
        let differing = [Differing { name: "pieces", observed: [(0, 4), (2, 2)] }];
        let said = "; the mapper of node 0 answers 4 for tunable `pieces`, that of node 2 2: take one answer for all nodes by `Context::per_node`";
        assert_eq!(ProgramOperation::explain(&differing), said);
        assert_eq!(ProgramOperation::explain(&[]), "");
    }
}
