//! How workspaces are stored.

use super::error::Reason;
use crate::concrete::Statement;
use crate::format::{Format, Level, Properties};

pub(super) fn apply(statement: &Statement, workspace: &str, format: &Format) -> Result<Statement, Reason> {
    let workspaces = statement.body.workspaces();
    let Some(found) = workspaces.iter().find(|made| made.name() == workspace) else {
        return Err(Reason::NoWorkspace { workspace: workspace.to_owned() });
    };
    let is_listed =
        |properties: &Properties| *properties == Properties { ordered: properties.ordered, ..Properties::default() };
    let is_list = found.order() == 1
        && matches!(format.levels(), [Level::Compressed | Level::Bitmap | Level::Hashed])
        && format.properties().iter().all(is_listed);
    if !(is_list || *format == Format::dense(found.order())) {
        let (workspace, dimensions, format) = (workspace.to_owned(), found.order(), format.clone());
        return Err(Reason::WorkspaceFormat { workspace, dimensions, format });
    }
    // What was not set is what it would be at first.
    let sites = statement.body.sites();
    let operator = sites.iter().find(|site| site.target.tensor == **found).and_then(|site| site.operator);
    let fill = operator.and_then(|operator| operator.identity(found.element())).unwrap_or(found.fill());
    let stored = found.stored(format.clone()).filled(fill);
    Ok(statement.with_tensors(&|access| (access.tensor.name() == workspace).then(|| stored.clone())))
}
