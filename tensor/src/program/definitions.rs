//! The definition of each result of a program, whatever statements it takes to compute it.

use super::Program;
use crate::notation::{Assignment, NotationError, Reduction, TensorVariable};

/// A result without a definition.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// It is assigned in ways that no single statement says.
    #[error("{0} is assigned several times, and used between; give what it holds each time a name of its own")]
    Unclear(TensorVariable),
    /// The sum of what is added to it is no assignment.
    #[error(transparent)]
    Notation(#[from] NotationError),
}

impl Program {
    /// The definition of each result, in terms of the program's inputs and of results that are complete by then.
    ///
    /// # Errors
    ///
    /// [`DefinitionError`] if a result is assigned in ways that no single statement says.
    pub fn definitions(&self) -> Result<Vec<Assignment>, DefinitionError> {
        let mut definitions: Vec<Assignment> = Vec::new();
        for statement in self.statements() {
            let left = &statement.left().tensor;
            let unclear = || DefinitionError::Unclear(left.clone());
            let reads =
                |definition: &Assignment| definition.right().accesses().iter().any(|access| access.tensor == *left);
            let known = definitions.iter().position(|known| known.left().tensor == *left);
            // What was read must not change any more.
            let was_read = definitions.iter().any(|other| other.left().tensor != *left && reads(other));
            if was_read || known.is_some_and(|known| reads(statement) || reads(&definitions[known])) {
                return Err(unclear());
            }
            match (known, statement.accumulation()) {
                (Some(known), Some(Reduction::Sum)) => {
                    let before = &definitions[known];
                    let both = (before.left() == statement.left()
                        && matches!(before.accumulation(), None | Some(Reduction::Sum)))
                    .then(|| before.right().clone() + statement.right().clone());
                    let both = both.ok_or_else(unclear)?;
                    definitions[known] =
                        Assignment::accumulating(statement.left().clone(), before.accumulation(), both)?;
                }
                (Some(_), Some(_)) => return Err(unclear()),
                (Some(known), None) => definitions[known] = statement.clone(),
                (None, _) => definitions.push(statement.clone()),
            }
        }
        Ok(definitions)
    }
}
