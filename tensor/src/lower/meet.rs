//! Loops over the coordinates at which all of several accesses have an element, in other ways than step by step.

use super::iterate::{Driven, Merged, without_base};
use super::leaf::Lowering;
use super::storage::is_found;
use super::support::{GivenAccesses, Support, lattice};
use crate::concrete::{Merge, Statement, StatementNode};
use crate::loops::{Expression, Statement as Step, Variable};
use crate::notation::{Access, IndexVariable};

/// The points of the merge lattice of the loop over `variable`: sets of accesses with a compressed level of it, or of
/// what it is a part of, that may have an element at a coordinate where an iteration has an effect, larger ones first.
/// None, if all iterations may have one.
pub fn lattice_points<'s>(
    statement: &'s Statement,
    variable: &IndexVariable,
    body: &'s StatementNode,
) -> Vec<Vec<&'s Access>> {
    let mut lowering = Lowering::new(statement, &[]);
    lowering.append_result();
    lowering.visit_all(&|_| true);
    // As if all levels above were behind.
    let mut iterated: Vec<usize> = Vec::new();
    for visit in lowering.visits_in(body) {
        let levels = lowering.visits[visit].format.levels().to_vec();
        let of_loop = |level: &usize| {
            !is_found(levels[*level])
                && statement.dependencies(lowering.visits[visit].variable(*level)).contains(variable)
        };
        if (0..levels.len()).any(|level| of_loop(&level)) {
            iterated.push(visit);
        }
    }
    let support = lowering.effect(body, &mut GivenAccesses::iterated(&iterated));
    if iterated.len() > 16 || support.holds(&[]) {
        return Vec::new();
    }
    let sites = body.sites();
    let accesses: Vec<&Access> = sites.iter().flat_map(|site| site.value.accesses()).collect();
    let of = |&visit: &usize| accesses.iter().find(|access| lowering.visit(access) == Some(visit)).copied();
    lattice(&support, &iterated).iter().map(|point| point.iter().filter_map(of).collect()).collect()
}

impl Lowering<'_> {
    /// The loop, if it is over what all of `iterated` store, and the schedule says how these are to be merged.
    pub(super) fn met(&mut self, driven: &Driven<'_>, iterated: &[usize], support: &Support) -> Option<Step> {
        let others = |visit: usize| iterated.iter().copied().filter(|&other| other != visit).collect::<Vec<usize>>();
        let is_intersection = iterated.iter().all(|&visit| !support.holds(&others(visit)));
        if iterated.len() < 2 || !is_intersection {
            return None;
        }
        let mut steps = Vec::new();
        match driven.outer.merge {
            // Workspaces, by now.
            Merge::TwoFinger | Merge::Bitmap | Merge::Hash => return None,
            Merge::Locate => {
                // Those that are not gone through are searched where the coordinate is known.
                let first = self.begin(iterated[0], driven, &mut steps);
                steps.push(self.alone(driven, &first, true));
            }
            Merge::Gallop => {
                let merging: Vec<Merged> =
                    iterated.iter().map(|&visit| self.begin(visit, driven, &mut steps)).collect();
                steps.push(self.galloping(driven, &merging));
            }
        }
        Some(Step::Sequence(steps))
    }

    /// As long as all have elements left: what is behind leaps to where the farthest is, and where all are something is
    /// done.
    fn galloping(&mut self, driven: &Driven<'_>, merging: &[Merged]) -> Step {
        let at = self.names.index(driven.outer.variable.name());
        let places = self.places.clone();
        let mut inside = Vec::new();
        for merged in merging {
            let coordinate = self.coordinate(merged.visit, merged.level, merged.cursor.value());
            inside.push(Step::bind(&merged.coordinate, coordinate));
            self.places[merged.visit] = self.below_position(merged.visit, merged.level, merged.cursor.value());
        }
        let farthest = merging.iter().map(|merged| merged.coordinate.value()).reduce(Expression::maximum);
        inside.extend(farthest.map(|farthest| Step::bind(&at, farthest)));
        let value = without_base(at.value(), &driven.base);
        let mut met = vec![self.iteration(driven.outer, driven.body, value, false)];
        self.places = places;
        met.extend(merging.iter().map(|merged| Step::set(&merged.cursor, merged.cursor.value() + 1)));
        let is_here = |merged: &Merged| merged.coordinate.value().equal(at.value());
        let leaps: Vec<Step> = merging
            .iter()
            .map(|merged| {
                let leap = self.leap(merged, &at);
                Step::when(merged.coordinate.value().less(at.value()), leap)
            })
            .collect();
        let step = match merging.iter().map(is_here).reduce(Expression::and) {
            Some(all_here) => Step::choose(all_here, Step::Sequence(met), Step::Sequence(leaps)),
            None => Step::nothing(),
        };
        inside.push(step);
        let is_left = |merged: &Merged| merged.cursor.value().less(merged.end.value());
        match merging.iter().map(is_left).reduce(Expression::and) {
            Some(all_left) => Step::repeat_while(all_left, Step::Sequence(inside)),
            None => Step::nothing(),
        }
    }

    /// Moves the cursor to the first position whose coordinate is `least` or greater, from one whose coordinate is
    /// less.
    fn leap(&mut self, merged: &Merged, least: &Variable) -> Step {
        let [step, high] = ["step", "high"].map(|name| self.names.index(name));
        let Merged { visit, level, cursor, end, .. } = merged;
        let next = cursor.value() + step.value();
        let coordinate = self.coordinate(*visit, *level, next.clone().minimum(end.value() - 1));
        let is_before = next.clone().less(end.value()).and(coordinate.less(least.value()));
        let farther = Step::Sequence(vec![Step::set(cursor, next.clone()), Step::set(&step, step.value() * 2)]);
        Step::Sequence(vec![
            Step::bind_mutable(&step, 1),
            Step::repeat_while(is_before, farther),
            Step::bind_mutable(&high, next.minimum(end.value())),
            Step::set(cursor, cursor.value() + 1),
            self.bisect(*visit, *level, cursor, &high, least.value()),
        ])
    }
}
