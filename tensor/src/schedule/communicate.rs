//! Where data moves.

use super::command::Command;
use super::error::{Reason, ScheduleError};
use super::select;
use crate::concrete::Statement;
use crate::notation::{IndexVariable, TensorVariable};

impl Statement {
    /// Makes each iteration of the loop over `variable` fetch, at its start, all that it needs of the tensors. Further outside means fewer
    /// and larger messages, and more memory. A tensor that is communicated nowhere is fetched at the innermost distributed
    /// loop.
    ///
    /// Loops that are distributed together are one launch, and it does not matter which of them is named.
    ///
    /// # Errors
    ///
    /// If there is no such loop or tensor, the tensor is not used inside, or is communicated within the same launch already.
    pub fn communicate<T: Into<String>>(
        &self,
        tensors: impl IntoIterator<Item = T>,
        variable: impl Into<IndexVariable>,
    ) -> Result<Self, ScheduleError> {
        let tensors = tensors.into_iter().map(Into::into).collect();
        Command::Communicate { tensors, variable: variable.into() }.apply(self)
    }
}

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
