//! When leaves run: steps one after the other, each with points at the same time.

use super::step::{Plan, Privilege, Step, Use};
use crate::notation::IndexVariable;

/// The runs of a plan's leaf: one for each *step*, which is a combination of the values of all sequences, and *point*,
/// which is one of the values of all launches. A sequence inside of a launch is regarded as if it were around it: that
/// is the same, as points do not depend on each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOrder {
    /// Of the leaf's variables, from the outermost: whether it is a launch's, and its extent.
    variables: Vec<(bool, i64)>,
}

impl PlanOrder {
    fn count(&self, of_launches: bool) -> i64 {
        self.variables.iter().filter(|(launched, _)| *launched == of_launches).map(|(_, extent)| extent).product()
    }

    /// The number of points.
    pub fn points(&self) -> i64 {
        self.count(true)
    }

    /// The number of steps.
    pub fn steps(&self) -> i64 {
        self.count(false)
    }

    /// The number of points in each dimension of each launch, the outermost first: points are numbered with the last
    /// one running fastest.
    pub fn extents(&self) -> Vec<i64> {
        self.variables.iter().filter(|(launched, _)| *launched).map(|(_, extent)| *extent).collect()
    }

    /// Whether this is the first point, and the first step, of all with the same values of the `depth` outermost
    /// variables.
    pub fn is_first(&self, step: i64, point: i64, depth: usize) -> bool {
        self.values(step, point)[depth..].iter().all(|value| *value == 0)
    }

    /// The first step with the same values of the `depth` outermost variables as this one.
    pub fn first_of(&self, step: i64, depth: usize) -> i64 {
        let inside = self.variables[depth..].iter().filter(|(launched, _)| !launched);
        let steps = inside.map(|(_, extent)| extent).product::<i64>().max(1);
        step / steps * steps
    }

    /// The sequences, the outermost first: the positions of their variables, and their extents.
    pub fn sequences(&self) -> impl Iterator<Item = (usize, i64)> + '_ {
        let all = self.variables.iter().enumerate();
        all.filter(|(_, (launched, _))| !launched).map(|(position, (_, extent))| (position, *extent))
    }

    /// The value of each of [`Leaf::fixed`](super::Leaf::fixed), given the numbers of a step and a point; of loops
    /// without iterations, 0.
    pub fn values(&self, mut step: i64, mut point: i64) -> Vec<i64> {
        let mut values = vec![0; self.variables.len()];
        for (value, &(launched, extent)) in values.iter_mut().zip(&self.variables).rev() {
            let number = if launched { &mut point } else { &mut step };
            *value = *number % extent.max(1);
            *number /= extent.max(1);
        }
        values
    }
}

impl Plan {
    /// When leaves run.
    pub fn order(&self) -> PlanOrder {
        let mut variables = Vec::new();
        let mut step = &self.root;
        loop {
            step = match step {
                Step::Launch(launch) => {
                    variables.extend(launch.extents.iter().map(|&extent| (true, extent)));
                    &launch.body
                }
                Step::Sequence(sequence) => {
                    variables.push((false, sequence.extent));
                    &sequence.body
                }
                Step::Leaf(_) => return PlanOrder { variables },
            };
        }
    }

    /// The last fetch of a tensor on the way to the leaf: the variables with values there, and the privilege. A tensor
    /// that no step fetches is used whole.
    pub fn innermost_fetch(&self, tensor: &str) -> (&[IndexVariable], Privilege) {
        let (mut fixed, mut privilege) = (&[][..], self.outside(tensor));
        for (variables, used) in self.uses(tensor).into_iter().filter(|(_, used)| used.fetched) {
            (fixed, privilege) = (variables, used.privilege);
        }
        (fixed, privilege)
    }

    /// The fetches of a tensor that is read, before the last one, from the outermost: the variables with values there.
    /// Each fetch takes a part of the part that the one before has fetched.
    pub fn outer_fetches(&self, tensor: &str) -> Vec<&[IndexVariable]> {
        let reads = self.uses(tensor).into_iter().filter(|(_, used)| used.fetched && used.privilege == Privilege::Read);
        let mut fetches: Vec<_> = reads.map(|(fixed, _)| fixed).collect();
        fetches.pop();
        fetches
    }

    /// The privilege on a tensor outside of all steps.
    fn outside(&self, tensor: &str) -> Privilege {
        if self.statement.result().name() == tensor { Privilege::ReadWrite } else { Privilege::Read }
    }

    /// The uses of a tensor from the outermost step, with the variables that have values there.
    fn uses(&self, tensor: &str) -> Vec<(&[IndexVariable], &Use)> {
        let (mut found, mut step) = (Vec::new(), &self.root);
        loop {
            let (fixed, uses, body) = match step {
                Step::Launch(launch) => (&launch.fixed, &launch.uses, &launch.body),
                Step::Sequence(sequence) => (&sequence.fixed, &sequence.uses, &sequence.body),
                Step::Leaf(_) => return found,
            };
            found.extend(uses.iter().find(|used| used.tensor.name() == tensor).map(|used| (&fixed[..], used)));
            step = body;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_values_where_no_points_are() {
        let order = PlanOrder { variables: vec![(false, 3), (true, 0), (true, 2)] };
        assert_eq!((order.steps(), order.points()), (3, 0));
        assert_eq!(order.values(2, 0), [2, 0, 0]);
    }
}
