//! Workspaces that remember which of their elements were set: rows in which values are gathered, in any order.
//!
//! Elements lie densely, beside the list of the coordinates that were set (Gustavson, *Two fast algorithms for sparse matrices*, 1978). Each thread makes one, once; after its use what was
//! set is forgotten, in the time that setting it took.

use super::append::sort;
use super::leaf::{Lowering, kind};
use super::storage::{List, Storage, is_list};
use crate::concrete::{Loop, Node};
use crate::element::ElementType::{I32, I64};
use crate::loops::{Access as Use, Buffer, Expression, LoopKind, Reduction, Statement as Step};
use crate::notation::TensorVariable;

impl List {
    /// Sets an element, or combines it with what it was.
    pub(super) fn set(&self, indices: &[Expression], value: Expression, operator: Option<Reduction>) -> Step {
        let at = indices[0].clone();
        let store = Step::store(&self.values, [at.clone()], value.clone());
        let combine = operator.map_or(store.clone(), |operator| store.clone().reduce(operator));
        let first = vec![
            Step::store(&self.listed, [at.clone()], Expression::index(1).cast(I32)),
            Step::store(&self.coordinates, [self.length.value()], at.clone()),
            Step::set(&self.length, self.length.value() + 1),
        ];
        let is_listed = self.listed.load([at]).equal(Expression::index(1).cast(I32));
        match self.counts {
            true => Step::choose(is_listed, Step::nothing(), Step::Sequence(first)),
            false => Step::choose(is_listed, combine, Step::Sequence(first.into_iter().chain([store]).collect())),
        }
    }
}

impl Lowering<'_> {
    /// Whether iterations of a loop use lists of their own: threads make them, lanes cannot.
    pub(super) fn lists_apart(&self, outer: &Loop, body: &Node) -> bool {
        let made = body.workspaces();
        let is_set_inside = body.sites().iter().all(|site| {
            !is_list(&site.target.tensor)
                || site.target.tensor == *self.statement.result()
                || made.contains(&&site.target.tensor)
        });
        is_set_inside && (kind(outer) == LoopKind::Threads || !made.into_iter().any(is_list))
    }

    pub(super) fn with_list(&mut self, workspace: &TensorVariable, consumer: &Node, producer: &Node) -> Step {
        let name = workspace.name();
        let list = match self.storage.get(name) {
            Some(Storage::List(list)) => list.clone(),
            _ => self.make_list(workspace, producer),
        };
        // Each use has a length of its own.
        let list = List { length: self.names.index("length"), ..list };
        self.storage.insert(name.to_owned(), Storage::List(list.clone()));
        let mut steps = vec![Step::bind_mutable(&list.length, 0), self.node(producer)];
        if list.ordered {
            steps.push(sort(&list.coordinates, &list.length, &mut self.names));
        }
        steps.push(self.node(consumer));
        let place = self.names.index("place");
        let forget =
            Step::store(&list.listed, [list.coordinates.load([place.value()])], Expression::index(0).cast(I32));
        steps.push(Step::for_each(&place, 0, list.length.value(), forget));
        Step::Sequence(steps)
    }

    /// Has the buffers made before the loop around of the thread.
    fn make_list(&mut self, workspace: &TensorVariable, producer: &Node) -> List {
        let name = workspace.name();
        let mut buffer =
            |what: &str, element| Buffer::new(self.names.fresh(&format!("{name}_{what}")), element, 1, Use::Update);
        let (values, listed, coordinates) =
            (buffer("values", workspace.element()), buffer("listed", I32), buffer("coordinates", I64));
        let sites = producer.sites();
        let made = sites.iter().find(|site| site.target.tensor.name() == name);
        let extent = made.map_or(0.into(), |site| self.sizes.extent_outside(self.statement, &site.target.variables[0]));
        for (buffer, is_zeroed) in [(&values, false), (&listed, true), (&coordinates, false)] {
            let mut allocation = Step::allocate(buffer, [(0.into(), extent.clone())]);
            if let Step::Allocate { zeroed, .. } = &mut allocation {
                *zeroed = is_zeroed;
            }
            self.made_before.push(allocation);
        }
        let ordered = workspace.format().properties()[0].ordered;
        // Where elements of the result are counted, values that are but appended to it don't matter.
        let counts = self.is_counting
            && self.statement.body.sites().iter().all(|site| {
                let reads = site.value.accesses().iter().any(|access| access.tensor.name() == name);
                !reads || site.target.tensor == *self.statement.result()
            });
        let length = self.names.index("length");
        List { values, listed, coordinates, length, ordered, counts }
    }
}
