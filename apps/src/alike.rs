//! Agreement of nodes on what each finds for itself, such as the contents of a folder: the result is good if all nodes
//! have one, and the same one.

use maniple::Runtime;

use crate::error::{Error, Result};

/// Returns the result of this node if all nodes have found the same, as far as the digests tell. Every node of the job
/// calls this.
///
/// # Errors
/// The error of this node if it has failed, or else [`Error::Usage`] for the first other node that has failed;
/// [`Error::Usage`] if a node has found something else; [`Error::Runtime`] if a node is lost.
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
