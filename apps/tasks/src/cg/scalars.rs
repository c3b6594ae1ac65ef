//! The scalars of an iteration, as they travel through futures.
//!
//! The program does not look at them before the next iterations are launched. So that launching ahead changes nothing,
//! an iteration that comes after convergence does nothing: its step has length zero.

use serde::{Deserialize, Serialize};

/// The state of the iteration, from which the next step starts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterationState {
    /// The square of the residual's norm, below which it has converged.
    pub target: f64,
    /// r . r
    pub residual: f64,
    /// r . z, where z is the preconditioned residual.
    pub inner: f64,
    /// How much of the old direction is in the new one.
    pub beta: f64,
    /// The last direction d with d . A d not positive: the matrix is not positive definite.
    pub is_broken: bool,
}

/// The length of the step along the direction, with the state before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterationStep {
    /// The length.
    pub alpha: f64,
    is_broken: bool,
    before: IterationState,
}

/// Inner products of the new residual, of one piece or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Products {
    /// r . r
    pub residual: f64,
    /// r . z
    pub inner: f64,
}

impl Products {
    /// Adds the products of two pieces.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { residual: self.residual + other.residual, inner: self.inner + other.inner }
    }
}

impl IterationState {
    /// Before the first step.
    #[must_use]
    pub fn start(target: f64, products: Products) -> Self {
        Self { target, residual: products.residual, inner: products.inner, beta: 0.0, is_broken: false }
    }

    /// Whether the residual is small enough.
    #[must_use]
    pub fn has_converged(&self) -> bool {
        self.residual <= self.target
    }

    /// Whether there is no point in going on.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_converged() || self.is_broken || self.residual.is_nan()
    }

    /// The step along a direction d with d . A d = `curvature`.
    #[must_use]
    pub fn step(self, curvature: f64) -> IterationStep {
        if self.has_ended() {
            return IterationStep { alpha: 0.0, is_broken: self.is_broken, before: self };
        }
        let is_broken = curvature <= 0.0;
        IterationStep { alpha: if is_broken { 0.0 } else { self.inner / curvature }, is_broken, before: self }
    }
}

impl IterationStep {
    /// The state after the step.
    #[must_use]
    pub fn finish(self, products: Products) -> IterationState {
        let Self { is_broken, before, .. } = self;
        if before.has_ended() || is_broken {
            return IterationState { is_broken, beta: 0.0, ..before };
        }
        let Products { residual, inner } = products;
        IterationState { residual, inner, beta: inner / before.inner, ..before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: IterationState =
        IterationState { target: 1e-8, residual: 4.0, inner: 2.0, beta: 0.0, is_broken: false };

    #[test]
    fn a_step_is_as_long_as_the_inner_product_over_the_curvature() {
        let step = START.step(8.0);
        assert_eq!(step.alpha, 0.25);
        let after = step.finish(Products { residual: 2.0, inner: 1.0 });
        assert_eq!(after, IterationState { residual: 2.0, inner: 1.0, beta: 0.5, ..START });
    }

    #[test]
    fn what_comes_after_convergence_changes_nothing() {
        let converged = IterationState { residual: 1e-9, ..START };
        let step = converged.step(8.0);
        assert_eq!(step.alpha, 0.0);
        assert_eq!(step.finish(Products { residual: 7.0, inner: 7.0 }), converged);
    }

    #[test]
    fn a_direction_without_curvature_ends_the_iteration() {
        let after = START.step(-1.0).finish(Products::default());
        assert!(after.is_broken && after.has_ended() && !after.has_converged());
        assert!(after.step(1.0).finish(Products::default()).is_broken, "and it stays ended");
    }
}
