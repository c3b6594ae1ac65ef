//! Results whose elements are appended: first counted, then written where there is room for them.
//!
//! The leading dense levels of a result make *parents*: rows, for compressed rows. Below each, elements are counted in
//! one run of the loops, and written in another one, one after the other (Kjolstad et al., *Tensor algebra compilation
//! with workspaces*, CGO 2019; Chou et al., PLDI 2020, for the query before). Iterations that differ in their parents
//! may run at the same time.

use super::leaf::{Around, Lowering};
use super::storage::{Appended, List, ListOrder, Marks, Storage};
use crate::concrete::StatementNode;
use crate::element::ElementType::I64;
use crate::loops::{Expression, Statement as Step, Variable};
use crate::notation::{Access, Expression as Value, IndexVariable};

impl Lowering<'_> {
    /// Appends an element.
    pub(super) fn append(
        &mut self,
        appended: &Appended,
        target: &Access,
        indices: &[Expression],
        value: Expression,
    ) -> Step {
        let parent = self.parent_of(appended, target, |mode| indices[mode].clone());
        let Some(written) = &appended.written else {
            let count = appended.next.load([parent.clone()]) + 1;
            return Step::store(&appended.next, [parent], count);
        };
        let at = self.names.index("at");
        let mut steps = vec![Step::bind(&at, appended.next.load([parent.clone()]))];
        for (mode, buffer) in &written.coordinates {
            steps.push(Step::store(buffer, [at.value()], indices[*mode].clone().cast(buffer.element)));
        }
        steps.push(Step::store(&written.values, [at.value()], value));
        steps.push(Step::store(&appended.next, [parent], at.value() + 1));
        // Not flattened into what is around: `at` ends here.
        Step::Sequence(steps)
    }

    /// The number of the parent at the coordinates `at` of each of its modes.
    fn parent_of(&self, appended: &Appended, target: &Access, at: impl Fn(usize) -> Expression) -> Expression {
        appended.parents.iter().fold(Expression::index(0), |above, &mode| match above {
            Expression::Constant(_) => at(mode),
            above => above * self.sizes.extent(self.statement, &target.variables[mode]) + at(mode),
        })
    }

    /// Whether iterations of a loop append below different parents, as far as anything is appended inside.
    pub(super) fn appends_apart(&self, variable: &IndexVariable, body: &StatementNode) -> bool {
        body.sites().iter().all(|site| match self.storage.get(site.target.tensor.name()) {
            Some(Storage::Appended(appended)) => {
                let parents: Vec<IndexVariable> =
                    appended.parents.iter().map(|&mode| site.target.variables[mode].clone()).collect();
                self.statement.separates(variable, &parents)
            }
            Some(Storage::Beside(..)) => self.statement.separates(variable, &site.target.variables),
            _ => true,
        })
    }
}

impl Lowering<'_> {
    /// The steps that give the list of what is set in a workspace the order of the result's known coordinates, if all
    /// of it is appended next. Where the list has more or fewer than these, it is sorted, as then they are all in
    /// order.
    pub(super) fn in_known_order(&mut self, list: &List, consumer: &StatementNode) -> Option<Step> {
        let StatementNode::Forall(outer, body) = consumer else { return None };
        let StatementNode::Assign { target, value: Value::Access(read), .. } = &**body else { return None };
        let appended = match (self.storage.get(target.tensor.name()), self.storage.get(read.tensor.name())) {
            (Some(Storage::Appended(appended)), Some(Storage::List(_))) => appended.clone(),
            _ => return None,
        };
        let ((pos, crd), Marks::Flags(_)) = (appended.known.clone()?, &list.marks) else { return None };
        let at = |mode: usize| self.recovered(&target.variables[mode]);
        if list.order != ListOrder::AsSet || !appended.parents.iter().all(|&mode| at(mode).is_some()) {
            return None;
        }
        // The list has the coordinates of the result, and all of those below a parent.
        let last = target.tensor.format().order().last().map(|&mode| &target.variables[mode]);
        let is_whole = last == Some(&outer.variable)
            && read.variables == [outer.variable.clone()]
            && self.statement.recovery(&outer.variable).is_none();
        let parents: Vec<&IndexVariable> = appended.parents.iter().map(|&mode| &target.variables[mode]).collect();
        let is_of_parents = |around: &Around| {
            self.statement.ancestors(&around.variable).iter().all(|ancestor| parents.contains(&ancestor))
        };
        if !is_whole || !self.around.iter().all(is_of_parents) {
            return None;
        }
        let parent = self.parent_of(&appended, target, |mode| at(mode).unwrap_or(0.into()));
        let [first, end, number] = ["first", "end", "number"].map(|name| self.names.index(name));
        let coordinate = crd.load([first.value() + number.value()]).cast(list.places.element);
        let relist = Step::store(&list.places, [number.value()], coordinate);
        let is_all = list.length.value().equal(end.value() - first.value());
        self.follows = true;
        Some(Step::Sequence(vec![
            Step::bind(&first, pos.load([parent.clone()]).cast(I64)),
            Step::bind(&end, pos.load([parent + 1]).cast(I64)),
            Step::choose(
                is_all,
                Step::for_each(&number, 0, list.length.value(), relist),
                sort(&list.places, &list.length, &mut self.names),
            ),
        ]))
    }
}

/// `length` numbers of `buffer` in ascending order, by Shell's method (Shell, *A high-speed sorting procedure*, 1959)
/// with gaps that shrink by 2.2 (Gonnet and Baeza-Yates, 1991).
pub(super) fn sort(buffer: &crate::loops::Buffer, length: &Variable, names: &mut crate::loops::FreshNames) -> Step {
    let [gap, place, to] = ["gap", "place", "to"].map(|name| names.index(name));
    let moved = Variable::new(names.fresh("moved"), buffer.element);
    let before = to.value() - gap.value();
    let is_out_of_order = moved.value().less(buffer.load([before.clone().maximum(0)]));
    let insert = Step::Sequence(vec![
        Step::bind(&moved, buffer.load([place.value()])),
        Step::bind_mutable(&to, place.value()),
        Step::repeat_while(
            gap.value().less_equal(to.value()).and(is_out_of_order),
            Step::Sequence(vec![
                Step::store(buffer, [to.value()], buffer.load([before.clone()])),
                Step::set(&to, before),
            ]),
        ),
        Step::store(buffer, [to.value()], moved.value()),
    ]);
    let smaller = (gap.value() * 5).floor_divide(11);
    let next = gap.value().equal(2).select(1, smaller);
    Step::Sequence(vec![
        Step::bind_mutable(&gap, length.value().floor_divide(2)),
        Step::repeat_while(
            Expression::index(0).less(gap.value()),
            Step::Sequence(vec![Step::for_each(&place, gap.value(), length.value(), insert), Step::set(&gap, next)]),
        ),
    ])
}
