//! Workspaces that remember which of their elements were set: rows in which values are gathered, in any order.
//!
//! Elements lie densely, each at its coordinate, with a flag, beside the list of those that were set (Gustavson, *Two
//! fast algorithms for sparse matrices*, 1978). Each thread makes one, once; after its use what was set is forgotten,
//! in the time that setting it took. Or they lie in a hash table, which is made for each use, as large as it may have
//! to be for that: the loops that fill it are run before to count how often they set an element (Nagasaka, Matsuoka,
//! Azad and Buluç, *High-performance sparse matrix-matrix products on Intel KNL and multicore architectures*, ICPP
//! Workshops 2018).

use super::append::sort;
use super::iterate::Merged;
use super::leaf::{Lowering, first, kind};
use super::storage::{List, ListOrder, Marks, Storage, is_list};
use crate::concrete::{Loop, StatementNode};
use crate::element::ElementType::{I32, I64, U8, U32};
use crate::element::Scalar;
use crate::format::Level;
use crate::loops::{Access as Use, Buffer, Expression, FreshNames, LoopKind, Reduction, Statement as Step};
use crate::notation::{IndexVariable, TensorVariable};

/// The multiplier of the hash function (Knuth, *The Art of Computer Programming*, volume 3, section 6.4): 2^32 divided
/// by the golden ratio.
const MULTIPLIER: u32 = 2_654_435_761;

/// Hash tables have this many times as many places as they may have elements.
const PLACES: i64 = 2;

impl List {
    /// The place of the element with this number in the list.
    pub(super) fn place(&self, number: Expression) -> Expression {
        self.places.load([number]).cast(I64)
    }

    /// The coordinate of the element with this number in the list.
    pub(super) fn coordinate(&self, number: Expression) -> Expression {
        match &self.marks {
            Marks::Flags(_) => self.place(number),
            Marks::Table(keys, _) => keys.load([self.place(number)]) - 1,
        }
    }

    /// Steps that find where the element at a coordinate is, or would be; whether it was set; and its place.
    pub(super) fn find(&self, at: &Expression, names: &mut FreshNames) -> (Vec<Step>, Expression, Expression) {
        match &self.marks {
            Marks::Flags(flags) => (Vec::new(), flags.load([at.clone()]).equal(flag(1)), at.clone()),
            Marks::Table(keys, places) => {
                let (place, key) = (names.index("place"), names.index("key"));
                let hash = (at.clone().cast(U32) * Expression::Constant(Scalar::U32(MULTIPLIER))).cast(I64);
                let first = (hash * places.value()).floor_divide(1_i64 << 32);
                let next = place.value() + 1;
                let next = next.clone().less(places.value()).select(next, 0);
                let found = keys.load([place.value()]);
                let is_other = found.clone().not_equal(0).and(found.clone().not_equal(key.value()));
                let steps = vec![
                    Step::bind(&key, at.clone() + 1),
                    Step::bind_mutable(&place, first),
                    Step::repeat_while(is_other, Step::set(&place, next)),
                ];
                (steps, found.equal(key.value()), place.value())
            }
        }
    }

    /// Sets an element, or combines it with what it was.
    pub(super) fn set(
        &self,
        at: &Expression,
        value: Expression,
        operator: Option<Reduction>,
        names: &mut FreshNames,
    ) -> Step {
        let (mut steps, is_set, place) = self.find(at, names);
        let first_value =
            operator.map_or(value.clone(), |operator| first(operator, self.values.element, value.clone()));
        let assign = Step::store(&self.values, [place.clone()], first_value);
        let store = Step::store(&self.values, [place.clone()], value);
        let combine = operator.map_or(store.clone(), |operator| store.reduce(operator));
        let mut new = vec![match &self.marks {
            Marks::Flags(flags) => Step::store(flags, [place.clone()], flag(1)),
            Marks::Table(keys, _) => Step::store(keys, [place.clone()], at.clone() + 1),
        }];
        if self.order != ListOrder::Scanned {
            new.push(Step::store(&self.places, [self.length.value()], place.cast(self.places.element)));
            new.push(Step::set(&self.length, self.length.value() + 1));
        }
        steps.push(match self.counts {
            true => Step::choose(is_set, Step::nothing(), Step::Sequence(new)),
            false => Step::choose(is_set, combine, Step::Sequence(new.into_iter().chain([assign]).collect())),
        });
        // Not flattened into what is around: the place ends here.
        Step::Sequence(steps)
    }

    /// The steps between setting elements and using them, which bring these into their order.
    fn ordered(&self, extent: Expression, names: &mut FreshNames) -> Step {
        match (self.order, &self.marks) {
            (ListOrder::Sorted, _) => sort(&self.places, &self.length, names),
            (ListOrder::Scanned, Marks::Flags(flags)) => {
                let at = names.index("at");
                // Stored in any case, so that there is nothing to branch for.
                let append = Step::Sequence(vec![
                    Step::store(&self.places, [self.length.value()], at.value().cast(self.places.element)),
                    Step::set(&self.length, self.length.value() + flags.load([at.value()]).cast(I64)),
                ]);
                Step::for_each(&at, 0, extent, append)
            }
            _ => Step::nothing(),
        }
    }

    /// The steps after which no element is set.
    fn forgotten(&self, names: &mut FreshNames) -> Step {
        // A table is made for each use.
        let Marks::Flags(flags) = &self.marks else { return Step::nothing() };
        let number = names.index("number");
        let forget = Step::store(flags, [self.place(number.value())], flag(0));
        Step::for_each(&number, 0, self.length.value(), forget)
    }
}

fn flag(value: u8) -> Expression {
    Expression::Constant(Scalar::U8(value))
}

impl Lowering<'_> {
    /// Whether iterations of a loop use lists of their own: threads make them, lanes cannot.
    pub(super) fn lists_apart(&self, outer: &Loop, body: &StatementNode) -> bool {
        let made = body.workspaces();
        let is_set_inside = body.sites().iter().all(|site| {
            !is_list(&site.target.tensor)
                || site.target.tensor == *self.statement.result()
                || made.contains(&&site.target.tensor)
        });
        is_set_inside && (kind(outer) == LoopKind::Threads || !made.into_iter().any(is_list))
    }

    pub(super) fn with_list(
        &mut self,
        workspace: &TensorVariable,
        consumer: &StatementNode,
        producer: &StatementNode,
    ) -> Step {
        let name = workspace.name();
        let is_hashed = workspace.format().levels() == [Level::Hashed];
        let mut steps = Vec::new();
        let list = match self.storage.get(name) {
            Some(Storage::List(list)) if !is_hashed => list.clone(),
            _ if is_hashed => self.make_table(workspace, producer, &mut steps),
            _ => self.make_list(workspace, producer),
        };
        // Each use has a length of its own.
        let list = List { length: self.names.index("length"), ..list };
        self.storage.insert(name.to_owned(), Storage::List(list.clone()));
        steps.extend([Step::bind_mutable(&list.length, 0), self.node(producer)]);
        let extent = self.extent_of(workspace, producer);
        let ordered = self.in_known_order(&list, consumer);
        steps.push(ordered.unwrap_or_else(|| list.ordered(extent, &mut self.names)));
        steps.push(self.node(consumer));
        steps.push(list.forgotten(&mut self.names));
        Step::Sequence(steps)
    }

    /// How many coordinates a workspace has.
    fn extent_of(&mut self, workspace: &TensorVariable, producer: &StatementNode) -> Expression {
        let variable = coordinate(workspace, producer);
        variable.map_or(0.into(), |variable| self.sizes.extent_outside(self.statement, &variable))
    }

    /// Whether coordinates of a workspace fit 32 bits.
    fn is_narrow(&self, producer: &StatementNode, workspace: &TensorVariable) -> bool {
        let extent = coordinate(workspace, producer).and_then(|variable| self.statement.extent(&variable));
        extent.is_some_and(|extent| i32::try_from(extent).is_ok())
    }

    /// Whether it only matters which elements of a workspace were set: where elements of the result are counted, values
    /// that are but appended to it don't matter.
    fn is_only_counted(&self, workspace: &TensorVariable) -> bool {
        self.is_counting
            && self.statement.body.sites().iter().all(|site| {
                let mut accesses = site.value.accesses().into_iter();
                let reads = accesses.any(|access| access.tensor.name() == workspace.name());
                !reads || site.target.tensor == *self.statement.result()
            })
    }

    /// Has the buffers made before the loop around of the thread.
    fn make_list(&mut self, workspace: &TensorVariable, producer: &StatementNode) -> List {
        let name = workspace.name();
        let index = if self.is_narrow(producer, workspace) { I32 } else { I64 };
        let [values, flags, places] = [("values", workspace.element()), ("set", U8), ("places", index)]
            .map(|(what, element)| Buffer::new(self.names.fresh(&format!("{name}_{what}")), element, 1, Use::Update));
        let extent = self.extent_of(workspace, producer);
        let is_scanned = workspace.format().levels() == [Level::Bitmap];
        // What is scanned stores a place more each time.
        let listed = if is_scanned { extent.clone() + 1 } else { extent.clone() };
        for (buffer, extent, zeroed) in [(&values, &extent, false), (&flags, &extent, true), (&places, &listed, false)]
        {
            self.made_before.push(allocated(buffer, extent, zeroed));
        }
        let order = match workspace.format().properties()[0].ordered {
            _ if is_scanned => ListOrder::Scanned,
            true => ListOrder::Sorted,
            false => ListOrder::AsSet,
        };
        let counts = self.is_only_counted(workspace);
        List { values, marks: Marks::Flags(flags), places, length: self.names.index("length"), order, counts }
    }

    /// Makes a table that has room for as many elements as the producer may set, which is counted before.
    fn make_table(&mut self, workspace: &TensorVariable, producer: &StatementNode, steps: &mut Vec<Step>) -> List {
        let name = workspace.name();
        let [values, keys, places] = [("values", workspace.element()), ("keys", I64), ("places", I64)]
            .map(|(what, element)| Buffer::new(self.names.fresh(&format!("{name}_{what}")), element, 1, Use::Update));
        let [bound, room] = ["bound", "room"].map(|what| self.names.index(what));
        self.storage.insert(name.to_owned(), Storage::Bound(bound.clone()));
        steps.extend([Step::bind_mutable(&bound, 0), self.node(producer)]);
        // There is a place that is free, at which a search ends.
        let extent = self.extent_of(workspace, producer);
        steps.push(Step::bind(&room, bound.value().minimum(extent) * PLACES + 1));
        let counts = self.is_only_counted(workspace);
        let is_used = if counts { 0.into() } else { room.value() };
        for (buffer, extent, zeroed) in
            [(&values, &is_used, false), (&keys, &room.value(), true), (&places, &room.value(), false)]
        {
            steps.push(allocated(buffer, extent, zeroed));
        }
        let (length, marks) = (self.names.index("length"), Marks::Table(keys, room));
        List { values, marks, places, length, order: ListOrder::AsSet, counts }
    }

    /// If the loop over the rest of one access does nothing but count how often an element of a workspace may be set:
    /// how many there are.
    pub(super) fn bounded(&self, body: &StatementNode, merged: &Merged) -> Option<Step> {
        let StatementNode::Assign { target, .. } = body else { return None };
        let Some(Storage::Bound(count)) = self.storage.get(target.tensor.name()) else { return None };
        Some(Step::set(count, count.value() + (merged.end.value() - merged.cursor.value()).maximum(0)))
    }
}

/// The variable of a workspace of one dimension.
fn coordinate(workspace: &TensorVariable, producer: &StatementNode) -> Option<IndexVariable> {
    let sites = producer.sites();
    let made = sites.iter().find(|site| site.target.tensor.name() == workspace.name())?;
    made.target.variables.first().cloned()
}

fn allocated(buffer: &Buffer, extent: &Expression, is_zeroed: bool) -> Step {
    let mut allocation = Step::allocate(buffer, [(0.into(), extent.clone())]);
    if let Step::Allocate { zeroed, .. } = &mut allocation {
        *zeroed = is_zeroed;
    }
    allocation
}
