//! What each node of a job finds for itself, such as what is in a folder: good if it is on all nodes, and the same
//! there.

use maniple::Runtime;

use crate::error::{Error, Result};

/// What a node has found, if all nodes have found the same, as far as its digest tells. Each node comes here.
///
/// # Errors
/// What this node has failed with, or else [`Error::Usage`] for the first other node that has failed; [`Error::Usage`]
/// for one that has found something else; [`Error::Runtime`] if a node is lost.
pub(crate) fn on_all_nodes<T>(
    runtime: &Runtime,
    what: &str,
    own: Result<T>,
    digest: impl FnOnce(&T) -> u64,
) -> Result<T> {
    if runtime.nodes() == 1 {
        return own;
    }
    let said = own.as_ref().map(digest).map_err(ToString::to_string);
    let all = runtime.run(async |cx| cx.per_node(said).all().await)?;
    let own = own?;
    let failed = all.iter().enumerate().find_map(|(node, said)| Some((node, said.as_ref().err()?)));
    if let Some((node, problem)) = failed {
        return Err(Error::Usage(format!("on node {node}: {problem}")));
    }
    match all.iter().position(|said| *said != all[0]) {
        None => Ok(own),
        Some(node) => Err(Error::Usage(format!(
            "{what} is not the same on node {node} as on node 0: all nodes must have the same files"
        ))),
    }
}
