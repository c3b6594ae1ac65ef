//! The command that says where data moves.

use super::error::Reason;
use super::select;
use crate::concrete::Statement;
use crate::notation::{IndexVariable, TensorVariable};

pub(super) fn apply(statement: &Statement, tensors: &[String], variable: &IndexVariable) -> Result<Statement, Reason> {
    select::check_list("tensors", tensors)?;
    let (outer, body) = select::find(statement, variable)?;
    if !outer.is_plain() && outer.level().is_none() && outer.communicate.is_empty() {
        return Err(Reason::CommunicatesParallel { variable: variable.clone(), tag: select::describe(outer) });
    }
    let used: Vec<TensorVariable> = body
        .sites()
        .iter()
        .flat_map(|site| std::iter::once(site.target).chain(site.value.accesses()))
        .map(|access| access.tensor.clone())
        .collect();
    for name in tensors {
        if statement.body.workspaces().iter().any(|workspace| workspace.name() == name) {
            return Err(Reason::Workspace(name.clone()));
        }
        if !statement.tensors().iter().any(|tensor| tensor.name() == name) {
            let known: Vec<_> = statement.tensors().iter().map(|tensor| tensor.name()).collect();
            return Err(Reason::NoTensor { tensor: name.clone(), tensors: known.join(", ") });
        }
        if !used.iter().any(|tensor| tensor.name() == name) {
            return Err(Reason::NotUsed { tensor: name.clone(), variable: variable.clone() });
        }
    }
    Ok(select::with_loop(statement, variable, |changed| {
        // Twice at one loop is found with all other statements that communicate a tensor twice.
        changed.communicate.extend(tensors.iter().cloned());
    }))
}
