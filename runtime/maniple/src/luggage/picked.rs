//! The node that the mapper picks for a leaf task.

use maniple_mapper::TaskInfo;
use maniple_realm::machine::NodeId;

use crate::error::{Error, Result};
use crate::point_task::PointTask;
use crate::task_operation::TaskState;

impl TaskState {
    /// The node that the mapper picks, if it is to be asked, and wants a certain one.
    pub(crate) fn ask_for_node(&self, info: &TaskInfo<'_>, variant: usize) -> Result<Option<NodeId>> {
        let core = &self.context.core;
        let may_go = self.is_mobile && info.variants[variant].is_leaf;
        let Some(node) = core.node().filter(|_| may_go) else { return Ok(None) };
        let seat = core.seat(self.context.processor);
        let picked =
            seat.call(&core.store, "select_node", |mapper| mapper.select_node(info, node.id(), node.nodes()))?;
        match picked {
            Some(picked) if usize::from(picked.0) >= node.nodes() => {
                let problem = format!("for `{}` chose {picked}, but the job has {} nodes", info.name, node.nodes());
                Err(Error::mapper("select_node", problem))
            }
            picked => Ok(picked),
        }
    }
}

impl PointTask {
    /// Whether the mapper has picked another node for it.
    pub(crate) fn goes_elsewhere(&self) -> bool {
        let here = self.state.context.core.node().map(|node| node.id());
        self.mapped.node.is_some_and(|node| Some(node) != here)
    }
}
