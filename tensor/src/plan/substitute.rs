//! Leaves that a library computes.

use super::step::Plan;
use crate::kernel::{Argument, Team};
use crate::notation::IndexVariable;
use crate::substitute::{LeafViews, SubstituteError};

impl Plan {
    /// Computes the leaf by the [function of a library](super::Leaf::substituted), where `values` are those of
    /// [`Leaf::fixed`](super::Leaf::fixed), and `arguments` what its kernel would be called with: they are used in the
    /// same way, views of more than the leaf needs included. Says whether it did: it does not if no library is to
    /// compute the leaf.
    ///
    /// # Errors
    ///
    /// The errors of the function; it has none if the views fit.
    pub fn substitute(
        &self,
        values: &[i64],
        arguments: &mut [Argument<'_>],
        team: &dyn Team,
    ) -> Result<bool, SubstituteError> {
        let leaf = self.leaf();
        let Some(substituted) = &leaf.substituted else { return Ok(false) };
        let interval = |variable: &IndexVariable| {
            let interval = self.interval(variable, &leaf.fixed, values);
            (interval.low, interval.high)
        };
        let Some(mut views) = LeafViews::new(&leaf.tensors, arguments, &interval) else { return Ok(false) };
        substituted.function.call(&mut views, team)?;
        Ok(true)
    }
}
