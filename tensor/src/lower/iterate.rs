//! Loops over what is stored: where accesses have compressed levels of a variable, its loop merges their coordinates.
//!
//! A loop iterates over the levels of those accesses whose variable it drives: its own variable, or one that it
//! completes, as the loop over `ii` does with `i = io * 32 + ii` inside of the loop over `io`, which then visits the
//! coordinates from `io * 32` on. All other levels are [found](super::locate) once their variables are known.
//!
//! Several accesses that are iterated in one loop are merged as the algebra of the operators says (Kjolstad et al.,
//! *The tensor algebra compiler*, OOPSLA 2017, section 5).

use std::collections::BTreeMap;

use super::leaf::{Division, LoopParts, Lowering, kind};
use super::storage::{ListOrder, Storage, StoragePlace, Visit, is_found, is_sparse};
use super::support::{GivenAccesses, Support, lattice};
use crate::concrete::{Loop, Relation, Site, StatementNode};
use crate::format::{Format, Level};
use crate::loops::{Expression, LoopKind, Statement as Step, Variable};
use crate::notation::{Access, IndexVariable, TensorVariable, Test};

/// The most accesses for which a merging loop has a case for each set of them.
const MOST_MERGED: usize = 6;

/// The most elements that are passed on the way to the next one, where a search could find it.
const MOST_PASSED: i64 = 16;

/// The most bodies of loops in a kernel, in cases for what is stored. Further ones find it out while they run.
const MOST_BODIES: usize = 300;

/// A function that makes the step for accesses that have come as far as they can.
pub(super) type Inside<'f, L> = &'f mut dyn FnMut(&mut L) -> Step;

/// A loop, and the coordinates that its variable begins at, as far as they are others than its own.
pub(super) struct Driven<'a> {
    pub outer: &'a Loop,
    pub body: &'a StatementNode,
    /// The base, which is added to the variable's value to give the coordinate.
    pub base: Option<Expression>,
    /// How far the coordinates of neighbouring values are apart: more than 1 only where one access alone is gone
    /// through.
    step: i64,
    /// The end of the variable's values.
    high: Expression,
}

impl Driven<'_> {
    /// How many values the variable has.
    pub fn high(&self) -> Expression {
        self.high.clone()
    }
}

/// An access that is merged with others.
pub(super) struct Merged {
    pub visit: usize,
    pub level: usize,
    pub cursor: Variable,
    pub end: Variable,
    pub coordinate: Variable,
}

impl<'a> Lowering<'a> {
    /// The number of an access among those of what is stored in levels.
    pub(super) fn visit(&self, access: &Access) -> Option<usize> {
        let is_it = |visit: &Visit| {
            visit.access.tensor.name() == access.tensor.name() && visit.access.variables == access.variables
        };
        self.visits.iter().position(is_it)
    }

    /// Visits all accesses of tensors and workspaces that are not dense, among those for which `is_one` holds.
    pub(super) fn visit_all(&mut self, is_one: &dyn Fn(&TensorVariable) -> bool) {
        let sites = self.statement.body.sites();
        let positions = self.statement.positions().map(|positions| &positions.access);
        for access in sites.iter().flat_map(|site| site.value.accesses()).chain(positions) {
            let tensor = &access.tensor;
            if is_sparse(tensor) && is_one(tensor) && self.visit(access).is_none() {
                self.visits.push(Visit { access: access.clone(), format: self.seen(tensor) });
                self.places.push(StoragePlace::Level(0, Expression::index(0)));
            }
        }
    }

    /// The format of a tensor or workspace as loops over its dimensions see it.
    fn seen(&self, tensor: &TensorVariable) -> Format {
        // What is marked in a workspace is listed before it is visited.
        let is_listed =
            tensor.format().levels() == [Level::Bitmap] && self.statement.body.workspaces().contains(&tensor);
        match is_listed {
            true => Format::new([Level::Compressed], [0]).ok(),
            false => tensor.format().by_dimensions().map(|(seen, _)| seen),
        }
        .unwrap_or_else(|| tensor.format().clone())
    }

    /// The accesses in a node that are stored in levels, and those whose positions it goes through.
    pub(super) fn visits_in(&self, node: &StatementNode) -> Vec<usize> {
        let mut visits = Vec::new();
        for (positions, visit) in self.all_positions() {
            let goes_through = |outer: &&Loop| self.statement.descends(&outer.variable, &positions.position);
            if !visits.contains(&visit) && node.loops().iter().any(goes_through) {
                visits.push(visit);
            }
        }
        for site in node.sites() {
            for access in site.value.accesses() {
                visits.extend(self.visit(access).filter(|visit| !visits.contains(visit)));
            }
        }
        visits
    }

    /// The storage of an access.
    pub(super) fn stored(&self, visit: usize) -> &Storage {
        &self.storage[self.visits[visit].access.tensor.name()]
    }

    /// The next level of an access, its kind and the position above it; none if all levels are behind, or nothing is
    /// stored.
    pub(super) fn next(&self, visit: usize) -> Option<(usize, Level, Expression)> {
        let (StoragePlace::Level(level, above) | StoragePlace::Maybe(level, above, _)) = &self.places[visit] else {
            return None;
        };
        let kind = *self.visits[visit].format.levels().get(*level)?;
        Some((*level, kind, above.clone()))
    }

    /// The position above the level that is next.
    fn above(&self, visit: usize) -> Expression {
        match &self.places[visit] {
            StoragePlace::Level(_, above) | StoragePlace::Maybe(_, above, _) => above.clone(),
            StoragePlace::Absent | StoragePlace::Element(..) => 0.into(),
        }
    }

    /// The coordinate of a position in the next level of an access.
    pub(super) fn coordinate(&self, visit: usize, level: usize, position: Expression) -> Expression {
        self.stored(visit).coordinate(level, &self.above(visit), position)
    }

    /// The place below a position in the next level of an access.
    pub(super) fn below_position(&self, visit: usize, level: usize, position: Expression) -> StoragePlace {
        self.stored(visit).below(level, &self.above(visit), position)
    }

    /// The positions below `above` in the next level of an access: none, if nothing turns out to be stored.
    pub(super) fn segment(&self, visit: usize, level: usize, above: &Expression) -> (Expression, Expression) {
        let (low, high) = self.stored(visit).segment(level, above);
        match &self.places[visit] {
            StoragePlace::Maybe(.., is_stored) => {
                let or_none = |end: Expression| is_stored.value().equal(1).select(end, 0);
                (or_none(low), or_none(high))
            }
            _ => (low, high),
        }
    }

    /// Whether the kernel is so large that what is stored is found out while it runs.
    pub(super) fn is_large(&self) -> bool {
        self.bodies > MOST_BODIES
    }

    /// `inside`, with an access elsewhere.
    pub(super) fn with_place<R>(
        &mut self,
        visit: usize,
        place: StoragePlace,
        inside: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let before = std::mem::replace(&mut self.places[visit], place);
        let made = inside(self);
        self.places[visit] = before;
        made
    }

    /// The base that the loop over `variable` adds to its values to give those of `target`: no expression if it is the
    /// same variable, and none at all if the loop does not go through the values of `target` one by one.
    pub(super) fn base(&self, variable: &IndexVariable, target: &IndexVariable) -> Option<Option<Expression>> {
        if variable == target {
            return Some(None);
        }
        match self.statement.recovery(target)? {
            relation @ (Relation::Split { .. } | Relation::Divide { .. }) => {
                let (outer, inner, length) = self.sizes.blocks(self.statement, relation)?;
                let above = self.base(variable, inner)?;
                let base = self.recovered(outer)? * length;
                Some(Some(match above {
                    Some(above) => base + above,
                    None => base,
                }))
            }
            relation @ Relation::SplitAt { inner, .. } => {
                let above = self.base(variable, inner)?;
                let begin = self.part_begin(relation)?;
                Some(Some(above.map_or(begin.clone(), |above| begin + above)))
            }
            Relation::Bound { bounded, .. } => self.base(variable, bounded),
            Relation::Window { of, start, step: 1, .. } => {
                let start = Expression::index(*start);
                Some(Some(match self.base(variable, of)? {
                    Some(base) => base + start,
                    None => start,
                }))
            }
            _ => None,
        }
    }

    /// The accesses whose next level is one of the loop's variable and is neither dense nor a bitmap, and the base that
    /// the loop adds to its values: the same for all of them.
    pub(super) fn iterated(&self, outer: &Loop, visits: &[usize]) -> (Vec<usize>, Option<Expression>) {
        let mut driven = Vec::new();
        for &visit in visits {
            let Some((level, kind, _)) = self.next(visit) else { continue };
            if is_found(kind) {
                continue;
            }
            let target = self.visits[visit].variable(level).clone();
            if let Some(found) = self.base(&outer.variable, &target).filter(|_| !self.known.contains_key(&target)) {
                driven.push((visit, found));
            }
        }
        // One base for all; those with others are found by searches.
        let plain = driven.iter().position(|(_, base)| base.is_none()).unwrap_or(0);
        let base = driven.get(plain).and_then(|(_, base)| base.clone());
        let iterated = driven.iter().filter(|(_, own)| *own == base).map(|(visit, _)| *visit).collect();
        (iterated, base)
    }

    /// The access whose elements a loop over every so many coordinates of a dimension goes through, where it has no
    /// effect without them: with the coordinate of its first value, and how far those of the next ones are apart.
    fn strided(&self, outer: &Loop, body: &StatementNode, visits: &[usize]) -> Option<(usize, Expression, i64)> {
        visits.iter().find_map(|&visit| {
            let (level, ..) = self.next(visit).filter(|(_, kind, _)| !is_found(*kind))?;
            let target = self.visits[visit].variable(level);
            let Some(Relation::Window { of, start, step, .. }) = self.statement.recovery(target) else { return None };
            let is_set = matches!(self.stored(visit), Storage::List(list) if list.order == ListOrder::AsSet);
            let is_known = self.known.contains_key(target);
            if is_set || is_known || *step < 2 || self.effect(body, &mut GivenAccesses::iterated(&[visit])).holds(&[]) {
                return None;
            }
            let before = self.base(&outer.variable, of)?;
            let first = before.map_or((*start).into(), |before| before * *step + *start);
            Some((visit, first, *step))
        })
    }

    /// The loop, if accesses inside of it have levels of its variable that are next.
    pub(super) fn over_levels(&mut self, outer: &Loop, body: &StatementNode) -> Option<Step> {
        let visits = self.visits_in(body);
        if visits.is_empty() {
            return None;
        }
        let (mut iterated, mut base) = self.iterated(outer, &visits);
        let strided = if iterated.is_empty() { self.strided(outer, body, &visits) } else { None };
        let mut step = 1;
        if let Some((visit, own, by)) = strided {
            (iterated, base, step) = (vec![visit], Some(own), by);
        }
        let mut support = self.effect(body, &mut GivenAccesses::iterated(&iterated));
        if iterated.len() > 1 || support.holds(&[]) || base.is_some() {
            // Coordinates that do not ascend cannot be merged, but found at once.
            iterated
                .retain(|&visit| !matches!(self.stored(visit), Storage::List(list) if list.order == ListOrder::AsSet));
            support = self.effect(body, &mut GivenAccesses::iterated(&iterated));
        }
        let is_full = iterated.is_empty() || support.holds(&[]);
        if self.is_unset && self.changes_result(body) && (support == Support::Never || !is_full) {
            self.needs_initial = true;
        }
        if support == Support::Never {
            return Some(Step::nothing());
        }
        let high = self.high(&outer.variable);
        if iterated.is_empty() {
            if let Some(over_bits) = self.over_bits(outer, body, &visits) {
                return Some(over_bits);
            }
            return Some(self.iterations(outer, body, 0.into(), high));
        }
        let driven = Driven { outer, body, base, step, high };
        if let Some(met) = self.met(&driven, &iterated, &support) {
            return Some(met);
        }
        Some(match support.holds(&[]) {
            true => self.at_once(&driven, &iterated).unwrap_or_else(|| self.everywhere(&driven, &iterated)),
            false if iterated.len() > 1 && (self.is_large() || iterated.len() > MOST_MERGED) => {
                self.united(&driven, &iterated, &support)
            }
            false => self.merged(&driven, &iterated, &support),
        })
    }

    /// A loop over all values, at some of which accesses have elements.
    fn everywhere(&mut self, driven: &Driven<'_>, iterated: &[usize]) -> Step {
        let at = Variable::index(self.names.fresh(driven.outer.variable.name()));
        let (mut steps, mut inside, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for &visit in iterated {
            let merged = self.begin(visit, driven, &mut steps);
            let here = self.names.index("here");
            let coordinate = self.coordinate(visit, merged.level, merged.cursor.value());
            let value = with_base(at.value(), &driven.base);
            let is_here = merged.cursor.value().less(merged.end.value()).and(coordinate.equal(value));
            inside.push(Step::bind(&here, is_here.select(1, 0)));
            found.push((merged, here));
        }
        inside.push(self.cases(&found, at.value(), driven));
        let advance =
            |(merged, here): &(Merged, Variable)| Step::set(&merged.cursor, merged.cursor.value() + here.value());
        inside.extend(found.iter().map(advance));
        steps.push(Step::for_each(&at, 0, driven.high.clone(), Step::Sequence(inside)));
        Step::Sequence(steps)
    }

    /// The step at a value, in cases of which accesses have an element there.
    fn cases(&mut self, found: &[(Merged, Variable)], at: Expression, driven: &Driven<'_>) -> Step {
        let Some(((merged, here), others)) = found.split_first() else {
            return self.iteration(driven.outer, driven.body, at, false);
        };
        let there = self.below_position(merged.visit, merged.level, merged.cursor.value());
        if found.len() > MOST_MERGED || self.is_large() {
            return self.with_place(merged.visit, maybe(there, here), |lowering| lowering.cases(others, at, driven));
        }
        let then = self.with_place(merged.visit, there, |lowering| lowering.cases(others, at.clone(), driven));
        let otherwise =
            self.with_place(merged.visit, StoragePlace::Absent, |lowering| lowering.cases(others, at, driven));
        Step::choose(here.value().equal(1), then, otherwise)
    }

    /// Loops over the coordinates at which accesses have elements: one for each point of the merge lattice.
    fn merged(&mut self, driven: &Driven<'_>, iterated: &[usize], support: &Support) -> Step {
        let points = lattice(support, iterated);
        let mut steps = Vec::new();
        if let ([point], [visit]) = (&points[..], iterated)
            && point[..] == [*visit]
        {
            let merged = self.begin(*visit, driven, &mut steps);
            let scan = self.alone(driven, &merged, true);
            steps.push(if driven.step <= MOST_PASSED {
                scan
            } else {
                // Few values are found sooner than all elements between them are passed.
                let passed = merged.end.value() - merged.cursor.value();
                let search = self.iterations(driven.outer, driven.body, 0.into(), driven.high.clone());
                Step::choose(passed.less_equal(driven.high.clone() * MOST_PASSED), scan, search)
            });
            return Step::sequence(steps);
        }
        let merging: Vec<Merged> = iterated.iter().map(|&visit| self.begin(visit, driven, &mut steps)).collect();
        let of = |visit: &usize| merging.iter().find(|merged| merged.visit == *visit).expect("it is iterated");
        for (number, point) in points.iter().enumerate() {
            let before = self.places.clone();
            iterated.iter().filter(|visit| !point.contains(visit)).for_each(|&visit| {
                self.places[visit] = StoragePlace::Absent;
            });
            if let [visit] = &point[..] {
                steps.push(self.alone(driven, of(visit), false));
                self.places = before;
                continue;
            }
            let mut inside = Vec::new();
            for visit in point {
                let merged = of(visit);
                let coordinate = self.coordinate(*visit, merged.level, merged.cursor.value());
                inside.push(Step::bind(&merged.coordinate, coordinate));
            }
            let least = point.iter().map(|visit| of(visit).coordinate.value()).reduce(Expression::minimum);
            let at = self.names.index(driven.outer.variable.name());
            inside.extend(least.map(|least| Step::bind(&at, least)));
            let is_leaf = matches!(driven.body, StatementNode::Assign { .. })
                && !self.asks_what_is_stored(driven.body, point)
                && point.iter().all(|visit| of(visit).level + 1 == self.visits[*visit].format.rank());
            if is_leaf {
                inside.push(self.selected(driven, support, point, &of, &at));
                let is_left = |visit: &usize| of(visit).cursor.value().less(of(visit).end.value());
                let all_left = point.iter().map(is_left).reduce(Expression::and);
                steps.extend(all_left.map(|left| Step::repeat_while(left, Step::Sequence(inside))));
                self.places = before;
                continue;
            }
            // Of the points from here on, the first whose accesses all have an element here.
            let mut cases = Step::nothing();
            for case in points[number..].iter().rev().filter(|case| case.iter().all(|visit| point.contains(visit))) {
                let before = self.places.clone();
                for visit in point {
                    let merged = of(visit);
                    self.places[*visit] = match case.contains(visit) {
                        true => self.below_position(*visit, merged.level, merged.cursor.value()),
                        false => StoragePlace::Absent,
                    };
                }
                let then = self.iteration(driven.outer, driven.body, without_base(at.value(), &driven.base), false);
                self.places = before;
                let is_here = |visit: &usize| of(visit).coordinate.value().equal(at.value());
                let all_here = case.iter().map(is_here).reduce(Expression::and);
                cases = all_here.map_or(then.clone(), |here| Step::choose(here, then, cases));
            }
            inside.push(cases);
            for visit in point {
                let Merged { cursor, coordinate, .. } = of(visit);
                let is_here = coordinate.value().equal(at.value());
                inside.push(Step::set(cursor, cursor.value() + is_here.select(1, 0)));
            }
            let is_left = |visit: &usize| of(visit).cursor.value().less(of(visit).end.value());
            let all_left = point.iter().map(is_left).reduce(Expression::and);
            steps.extend(all_left.map(|left| Step::repeat_while(left, Step::Sequence(inside))));
            self.places = before;
        }
        Step::Sequence(steps)
    }

    /// Whether a node asks whether some of these accesses have an element, and not only which.
    fn asks_what_is_stored(&self, node: &StatementNode, visits: &[usize]) -> bool {
        let is_one = |access: &Access| self.visit(access).is_some_and(|visit| visits.contains(&visit));
        node.sites()
            .iter()
            .any(|site| site.value.tests().iter().any(|(test, access)| *test == Test::Stored && is_one(access)))
    }

    /// One loop over the coordinates at which any access has an element, whatever is left of others.
    fn united(&mut self, driven: &Driven<'_>, iterated: &[usize], support: &Support) -> Step {
        let mut steps = Vec::new();
        let merging: Vec<Merged> = iterated.iter().map(|&visit| self.begin(visit, driven, &mut steps)).collect();
        let (mut inside, mut is_here) = (Vec::new(), BTreeMap::new());
        let is_left = |merged: &Merged| merged.cursor.value().less(merged.end.value());
        for merged in &merging {
            let coordinate = self.coordinate(merged.visit, merged.level, merged.cursor.value());
            inside.push(Step::bind(&merged.coordinate, is_left(merged).select(coordinate, i64::MAX)));
        }
        let at = self.names.index(driven.outer.variable.name());
        let least = merging.iter().map(|merged| merged.coordinate.value()).reduce(Expression::minimum);
        inside.extend(least.map(|least| Step::bind(&at, least)));
        let before = self.places.clone();
        for merged in &merging {
            let here = self.names.index("here");
            inside.push(Step::bind(&here, merged.coordinate.value().equal(at.value()).select(1, 0)));
            let below = self.below_position(merged.visit, merged.level, merged.cursor.value());
            self.places[merged.visit] = match is_needed(support, iterated, merged.visit) {
                true => below,
                false => maybe(below, &here),
            };
            is_here.insert(merged.visit, here);
        }
        let condition = support.condition(&|visit| match is_here.get(&visit) {
            Some(here) => here.value().equal(1),
            None => Expression::Bool(false),
        });
        let value = without_base(at.value(), &driven.base);
        let step = self.iteration(driven.outer, driven.body, value, false);
        self.places = before;
        inside.push(condition.map_or(step.clone(), |condition| Step::when(condition, step)));
        let advance =
            |merged: &Merged| Step::set(&merged.cursor, merged.cursor.value() + is_here[&merged.visit].value());
        inside.extend(merging.iter().map(advance));
        let any_left = merging.iter().map(is_left).reduce(Expression::or);
        steps.extend(any_left.map(|left| Step::repeat_while(left, Step::Sequence(inside))));
        Step::Sequence(steps)
    }

    /// The step at the coordinate `at`, where accesses may have elements, without a branch for each access: elements
    /// that are not stored are fill values.
    fn selected<'m>(
        &mut self,
        driven: &Driven<'_>,
        support: &Support,
        point: &[usize],
        of: &dyn Fn(&usize) -> &'m Merged,
        at: &Variable,
    ) -> Step {
        let (mut steps, mut is_here) = (Vec::new(), BTreeMap::new());
        let is_of_result = |site: &Site<'_>| site.target.tensor == *self.statement.result();
        // What is only counted is not loaded.
        let counts = self.is_counting && driven.body.sites().iter().all(is_of_result);
        for visit in point {
            let Merged { cursor, coordinate, level, .. } = of(visit);
            let here = self.names.index("here");
            steps.push(Step::bind(&here, coordinate.value().equal(at.value()).select(1, 0)));
            let tensor = &self.visits[*visit].access.tensor;
            let element = Variable::new(self.names.fresh(tensor.name()), tensor.element());
            let fill = Expression::Constant(tensor.fill());
            let below = self.below_position(*visit, *level, cursor.value());
            let stored = match &below {
                StoragePlace::Level(_, position) if !counts => self.stored(*visit).element(position.clone()),
                _ => fill.clone(),
            };
            // Loaded in any case, so that there is nothing to branch for.
            steps.push(Step::bind(&element, stored));
            self.places[*visit] = match is_needed(support, point, *visit) {
                true => StoragePlace::Element(element.value(), Box::new(below)),
                false => {
                    let element = here.value().equal(1).select(element.value(), fill);
                    StoragePlace::Element(element, Box::new(below.if_stored(&here)))
                }
            };
            is_here.insert(*visit, here);
        }
        let value = without_base(at.value(), &driven.base);
        let step = self.iteration(driven.outer, driven.body, value, false);
        let all = lattice(support, point).len() == (1 << point.len()) - 1;
        let stored = |visit: usize| match is_here.get(&visit) {
            Some(here) => here.value().equal(1),
            None => Expression::Bool(false),
        };
        let condition = if all { None } else { support.condition(&stored) };
        steps.push(condition.map_or(step.clone(), |condition| Step::when(condition, step)));
        for visit in point {
            steps.push(Step::set(&of(visit).cursor, of(visit).cursor.value() + is_here[visit].value()));
        }
        Step::Sequence(steps)
    }

    /// A loop over the elements of one access from where it is. `first` says that it has not been merged before.
    pub(super) fn alone(&mut self, driven: &Driven<'_>, merged: &Merged, first: bool) -> Step {
        if let Some(counted) = self.bounded(driven.body, merged) {
            return counted;
        }
        let (position, at) = (self.names.index("p"), self.names.index(driven.outer.variable.name()));
        let coordinate = self.coordinate(merged.visit, merged.level, position.value());
        let (there, element) = self.with_element(merged.visit, merged.level, driven.body, &position);
        let parallel = first && self.is_parallel(driven.outer, driven.body);
        // Lanes have nothing to pass over.
        let is_whole = driven.step == 1 || kind(driven.outer) != LoopKind::Vector;
        let kind = if parallel && is_whole { kind(driven.outer) } else { LoopKind::Serial };
        let (division, segment) =
            (Division { kind, parts: LoopParts::AsNeeded }, merged.cursor.value()..merged.end.value());
        self.loop_over(driven.outer, driven.body, division, &position, segment, |lowering| {
            let step = lowering.with_place(merged.visit, there, |lowering| {
                lowering.iteration(driven.outer, driven.body, at.value(), parallel)
            });
            let distance = without_base(coordinate, &driven.base);
            if driven.step > 1 {
                let is_value = distance.clone().floor_remainder(driven.step).equal(0);
                let at = Step::bind(&at, distance.floor_divide(driven.step));
                return Step::when(is_value, Step::Sequence([at].into_iter().chain(element).chain([step]).collect()));
            }
            let at = Step::bind(&at, distance);
            Step::Sequence([at].into_iter().chain(element).chain([step]).collect())
        })
    }

    /// The place below a position; if it is that of an element which loops inside use, with the step that loads it
    /// once.
    pub(super) fn with_element(
        &mut self,
        visit: usize,
        level: usize,
        body: &StatementNode,
        position: &Variable,
    ) -> (StoragePlace, Option<Step>) {
        let place = self.below_position(visit, level, position.value());
        let Visit { access, format } = &self.visits[visit];
        let is_last = level + 1 == format.rank() && !matches!(body, StatementNode::Assign { .. });
        let (StoragePlace::Level(_, position), true, false) = (&place, is_last, self.is_counting) else {
            return (place, None);
        };
        let element = Variable::new(self.names.fresh(access.tensor.name()), access.tensor.element());
        let load = Step::bind(&element, self.stored(visit).element(position.clone()));
        (StoragePlace::Element(element.value(), Box::new(place)), Some(load))
    }

    /// Binds the positions of an access that a loop visits.
    pub(super) fn begin(&mut self, visit: usize, driven: &Driven<'_>, steps: &mut Vec<Step>) -> Merged {
        let (level, above) = match self.next(visit) {
            Some((level, _, above)) => (level, above),
            None => (0, 0.into()),
        };
        let (low, high) = self.segment(visit, level, &above);
        let (cursor, end) = (self.names.index("p"), self.names.index("end"));
        let coordinate = self.names.index(driven.outer.variable.name());
        steps.extend([Step::bind_mutable(&cursor, low), Step::bind_mutable(&end, high)]);
        if let Some(base) = &driven.base {
            // A part of the coordinates: from the first that is not below the base, to the last below the end.
            let values = driven.high.clone().maximum(0);
            let last = base.clone() + if driven.step == 1 { values } else { values * driven.step };
            let (first, until) = (self.names.index("p"), self.names.index("p"));
            steps.push(Step::bind_mutable(&first, end.value()));
            steps.push(self.bisect(visit, level, &cursor, &first, base.clone()));
            steps.push(Step::bind_mutable(&until, cursor.value()));
            steps.push(self.bisect(visit, level, &until, &end, last));
        }
        if self.stored(visit).is_padded(level) {
            // What is before and after the dimension comes first and last, and is little.
            let is_left = cursor.value().less(end.value());
            let is_before = self.coordinate(visit, level, cursor.value()).less(0);
            steps.push(Step::repeat_while(is_left.clone().and(is_before), Step::set(&cursor, cursor.value() + 1)));
            let extent = self.sizes.extent(self.statement, self.visits[visit].variable(level));
            let is_after = extent.less_equal(self.coordinate(visit, level, end.value() - 1));
            steps.push(Step::repeat_while(is_left.and(is_after), Step::set(&end, end.value() - 1)));
        }
        Merged { visit, level, cursor, end, coordinate }
    }
}

/// Whether something is done only where this access, among others, has an element.
fn is_needed(support: &Support, iterated: &[usize], visit: usize) -> bool {
    let others: Vec<usize> = iterated.iter().copied().filter(|&other| other != visit).collect();
    !support.holds(&others)
}

fn with_base(value: Expression, base: &Option<Expression>) -> Expression {
    match base {
        Some(base) => value + base.clone(),
        None => value,
    }
}

pub(super) fn without_base(coordinate: Expression, base: &Option<Expression>) -> Expression {
    match base {
        Some(base) => coordinate - base.clone(),
        None => coordinate,
    }
}

/// A place that is there, where there is something if the variable is 1.
pub(super) fn maybe(place: StoragePlace, is_stored: &Variable) -> StoragePlace {
    match place {
        StoragePlace::Level(level, position) => StoragePlace::Maybe(level, position, is_stored.clone()),
        other => other,
    }
}
