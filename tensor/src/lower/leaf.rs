//! Kernels, and nodes to statements of the loop IR.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::concrete::{Execution, Loop, Positions, Statement, StatementNode, Unit};
use crate::element::{ElementType, Scalar as Constant};
use crate::loops::{Access as Use, Buffer, Expression, FreshNames, Kernel, LoopKind, Parameter, Reduction};
use crate::loops::{Statement as Step, Variable};
use crate::notation::{Access, IndexVariable, TensorVariable};

use super::background::backgrounds;
use super::sizes::Sizes;
use super::storage::{Scalar, Storage, StoragePlace, Visit};

/// The kernel of the whole statement: distributed loops run one after the other, and the result is initialised.
pub fn whole(statement: &Statement) -> Kernel {
    let mut lowering = Lowering::new(statement, &[]);
    let initial = lowering.initialise();
    let body = lowering.inside_fixed(&statement.body);
    lowering.kernel(&[], Step::sequence([initial, body]))
}

/// The kernel of what is inside of the loops over `fixed`, whose values it takes, in their order. These are loops of
/// the [spine](Statement::spine), the outermost ones; otherwise the kernel is that of the whole body for those values.
///
/// The result has to be [initialised](Statement::initial) before the first of several kernels that compute it.
pub fn leaf(statement: &Statement, fixed: &[IndexVariable]) -> Kernel {
    Lowering::new(statement, fixed).leaf(fixed)
}

/// The same kernel for tensors of any size, none of them empty: statements that differ in extents alone have one
/// kernel. After the values of `fixed` it takes the extents of the variables that are named with it.
pub fn leaf_of_any_size(statement: &Statement, fixed: &[IndexVariable]) -> (Kernel, Vec<IndexVariable>) {
    let mut lowering = Lowering::new(statement, fixed);
    lowering.sizes = Sizes::parameters(statement, &mut lowering.names);
    let kernel = lowering.leaf(fixed);
    lowering.with_sizes(kernel)
}

/// The names of all variables that are used.
fn names_in(step: &Step, names: &mut HashSet<Arc<str>>) {
    fn of(value: &Expression, names: &mut HashSet<Arc<str>>) {
        if let Expression::Variable(variable) = value {
            names.insert(variable.name.clone());
        }
        value.for_each_operand(|operand| of(operand, names));
    }
    step.for_each_expression(&mut |value| of(value, names));
    step.for_each_child(&mut |inner| names_in(inner, names));
}

/// In how many parts a loop of threads is run where each makes something before, if kernels are not told.
const PARTS: i64 = 16;

/// Whether a loop of threads is run in parts.
pub(super) enum LoopParts {
    /// If each thread has to make something before.
    AsNeeded,
    /// In parts that have about the same number of what is in the segments of positions that begin here.
    Weighted(Buffer),
    /// In any case.
    Always,
    /// In parts of so many iterations, which threads take as they come to them.
    Chunks(i64),
}

/// The kind of a loop, and its parts if it is one of threads.
pub(super) struct Division {
    pub kind: LoopKind,
    pub parts: LoopParts,
}

/// A loop around what is being lowered.
pub(super) struct Around {
    pub variable: IndexVariable,
    pub parallel: bool,
}

/// The rows of which a loop around visits a part at each end.
pub(super) struct Border {
    pub position: IndexVariable,
    /// Their coordinates.
    pub variables: Vec<IndexVariable>,
    /// How many loops are around the loop over positions.
    pub depth: usize,
    /// Whether the row where the loop is now is the first or the last.
    pub is_border: Expression,
}

pub(super) struct Lowering<'a> {
    pub statement: &'a Statement,
    pub names: FreshNames,
    /// The values of loops and of what was recovered from them.
    pub known: BTreeMap<IndexVariable, Expression>,
    pub storage: BTreeMap<String, Storage>,
    pub sizes: Sizes,
    /// The accesses of what is stored in levels, and how far each has come.
    pub visits: Vec<Visit>,
    pub places: Vec<StoragePlace>,
    /// Whether elements of the result have no value so far where a loop is: it gives them one.
    pub is_unset: bool,
    /// Whether there are elements to which no loop would give a value.
    pub needs_initial: bool,
    /// Whether elements of the result are counted, and their values don't matter.
    pub is_counting: bool,
    /// The loops over blocks that are where all of a block is inside of what was split.
    pub full: Vec<IndexVariable>,
    /// How many bodies of loops there are.
    pub bodies: usize,
    /// The steps that make workspaces once, before the loop of each thread.
    pub made_before: Vec<Step>,
    /// In how many parts a loop of threads is run, where each part makes something before; without it, in [`PARTS`].
    pub chunks: Option<Variable>,
    /// Accesses that are shifted, and their dense levels, where it is known that they are within.
    pub checked: Vec<(usize, usize)>,
    pub around: Vec<Around>,
    /// The beginnings of the positions that loops go through.
    pub begins: BTreeMap<IndexVariable, Expression>,
    /// How many positions there are, of which the kernel may be given a part.
    pub counts: BTreeMap<IndexVariable, Expression>,
    /// The rows of which loops over positions around visit a part.
    pub borders: Vec<Border>,
    /// Whether elements are appended in the order of the known coordinates of the result.
    pub follows: bool,
    /// How many loops are around the place where each workspace is made.
    made_inside: BTreeMap<String, usize>,
    /// The values that workspaces have where no operand in levels has an entry.
    pub backgrounds: BTreeMap<String, Constant>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(statement: &'a Statement, fixed: &[IndexVariable]) -> Self {
        let mut names = FreshNames::default();
        let mut storage = BTreeMap::new();
        for tensor in statement.tensors() {
            let access = if tensor == statement.result() { Use::Update } else { Use::Read };
            let buffer = Buffer::new(names.fresh(tensor.name()), tensor.element(), tensor.order(), access)
                .with_contiguous(tensor.format().contiguous());
            storage.insert(tensor.name().to_owned(), Storage::Buffer(buffer));
        }
        let known = fixed
            .iter()
            .map(|variable| (variable.clone(), Variable::index(names.fresh(variable.name())).value()))
            .collect();
        let mut lowering = Self {
            statement,
            names,
            known,
            storage,
            sizes: Sizes::Known,
            visits: Vec::new(),
            places: Vec::new(),
            is_unset: false,
            needs_initial: false,
            is_counting: false,
            full: Vec::new(),
            bodies: 0,
            made_before: Vec::new(),
            chunks: None,
            checked: Vec::new(),
            around: Vec::new(),
            begins: BTreeMap::new(),
            counts: BTreeMap::new(),
            borders: Vec::new(),
            follows: false,
            made_inside: BTreeMap::new(),
            backgrounds: backgrounds(statement),
        };
        lowering.visit_all(&|tensor| statement.body.workspaces().contains(&tensor));
        lowering
    }

    /// The kernel with the extents that it uses as parameters, after those that it has.
    pub(super) fn with_sizes(self, mut kernel: Kernel) -> (Kernel, Vec<IndexVariable>) {
        let Sizes::Parameters { parameters, lets, .. } = self.sizes else { return (kernel, Vec::new()) };
        let mut used = HashSet::new();
        names_in(&kernel.body, &mut used);
        let mut steps = vec![kernel.body];
        for step in lets.into_iter().rev() {
            if matches!(&step, Step::Let { variable, .. } if used.contains(&variable.name)) {
                names_in(&step, &mut used);
                steps.insert(0, step);
            }
        }
        kernel.body = Step::sequence(steps);
        let parameters = parameters.into_iter().filter(|(_, parameter)| used.contains(&parameter.name));
        let (variables, parameters): (Vec<_>, Vec<_>) = parameters.unzip();
        kernel.parameters.extend(parameters.into_iter().map(Parameter::Scalar));
        (kernel, variables)
    }

    fn leaf(&mut self, fixed: &[IndexVariable]) -> Kernel {
        let body = self.inside_fixed(self.statement.inside(fixed));
        self.kernel(fixed, body)
    }

    fn kernel(&self, fixed: &[IndexVariable], body: Step) -> Kernel {
        let mut parameters = Vec::new();
        for tensor in self.statement.tensors() {
            if let Some(Storage::Buffer(buffer)) = self.storage.get(tensor.name()) {
                parameters.push(Parameter::Buffer(buffer.clone()));
            }
        }
        for variable in fixed {
            if let Some(Expression::Variable(parameter)) = self.known.get(variable) {
                parameters.push(Parameter::Scalar(parameter.clone()));
            }
        }
        Kernel { name: self.statement.result().name().to_owned(), parameters, body }
    }

    /// Gives all elements of the result that the kernel has a view of their initial value.
    fn initialise(&mut self) -> Step {
        let (Some(initial), Some(Storage::Buffer(buffer))) =
            (self.statement.initial(), self.storage.get(self.statement.result().name()))
        else {
            return Step::nothing();
        };
        let buffer = buffer.clone();
        let bounds = (0..buffer.rank).map(|dimension| (buffer.low(dimension), buffer.high(dimension))).collect();
        self.fill(&buffer, bounds, initial.into())
    }

    /// Stores `value` everywhere in `bounds`.
    pub(super) fn fill(&mut self, buffer: &Buffer, bounds: Vec<(Expression, Expression)>, value: Expression) -> Step {
        let variables: Vec<Variable> = bounds.iter().map(|_| self.names.index("at")).collect();
        let store = Step::store(buffer, variables.iter().map(Variable::value), value);
        let loops = variables.iter().zip(bounds).rev();
        loops.fold(store, |body, (variable, (low, high))| Step::for_each(variable, low, high, body))
    }

    /// `node`, given what is fixed outside of the kernel.
    pub(super) fn inside_fixed(&mut self, node: &StatementNode) -> Step {
        let guards = self.guards_of_fixed();
        let entry = self.enter(None);
        let visits = self.visits_in(node);
        let body = self.located(&visits, &mut |lowering| lowering.node(node));
        let body = entry.wrap(body);
        let steps = std::mem::take(&mut self.made_before).into_iter().chain([body]);
        guards.into_iter().fold(Step::sequence(steps), |body, guard| Step::when(guard, body))
    }

    pub(super) fn node(&mut self, node: &StatementNode) -> Step {
        match node {
            node if self.has_no_effect(node) => Step::nothing(),
            StatementNode::Assign { target, operator, value } => self.assign(target, *operator, value),
            StatementNode::Where { workspace, consumer, producer } => {
                self.with_workspace(workspace, consumer, producer)
            }
            StatementNode::Forall(outer, body) => {
                self.promoted(outer, body).unwrap_or_else(|| self.forall(outer, body))
            }
        }
    }

    pub(super) fn forall(&mut self, outer: &Loop, body: &StatementNode) -> Step {
        if let Some(counted) = self.counted(outer, body) {
            return counted;
        }
        if self.is_unset
            && let Some(initialised) = self.initialised(outer, body)
        {
            return initialised;
        }
        let goes_through =
            |(positions, _): (&Positions, usize)| self.statement.descends(&outer.variable, &positions.position);
        if self.is_unset && self.changes_result(body) && self.all_positions().into_iter().any(goes_through) {
            // Elements whose coordinates are not stored get no value here.
            self.needs_initial = true;
        }
        if let Some(at_once) = self.flattened(outer, body).or_else(|| self.once(outer, body)) {
            return at_once;
        }
        if let Some(over_positions) = self.over_positions(outer, body) {
            return over_positions;
        }
        if let Some(over_levels) = self.over_levels(outer, body) {
            return over_levels;
        }
        if let Some(jammed) = self.jammed(outer, body) {
            return jammed;
        }
        let high = self.high(&outer.variable);
        self.iterations(outer, body, 0.into(), high)
    }

    /// The result of `inside` in an iteration of the loop `outer` with this value.
    pub(super) fn inside_of<R>(&mut self, outer: &Loop, value: Expression, inside: impl FnOnce(&mut Self) -> R) -> R {
        let before = (self.known.clone(), self.places.clone());
        self.known.insert(outer.variable.clone(), value);
        self.around.push(Around { variable: outer.variable.clone(), parallel: false });
        let made = inside(self);
        self.around.pop();
        (self.known, self.places) = before;
        made
    }

    /// Iterations of a loop, from `low` to before `high`.
    pub(super) fn iterations(&mut self, outer: &Loop, body: &StatementNode, low: Expression, high: Expression) -> Step {
        let variable = Variable::index(self.names.fresh(outer.variable.name()));
        let parallel = self.is_parallel(outer, body);
        let kind = if parallel { kind(outer) } else { LoopKind::Serial };
        // The index is the variable's value: a row of operands whose outermost level it is.
        let parts = self.weights(outer).map_or(LoopParts::AsNeeded, LoopParts::Weighted);
        self.loop_over(outer, body, Division { kind, parts }, &variable, low..high, |lowering| {
            lowering.iteration(outer, body, variable.value(), parallel)
        })
    }

    /// A loop with what `inside` gives.
    pub(super) fn loop_over(
        &mut self,
        outer: &Loop,
        body: &StatementNode,
        Division { kind, parts }: Division,
        variable: &Variable,
        range: Range<Expression>,
        inside: impl FnOnce(&mut Self) -> Step,
    ) -> Step {
        let parts = outer.chunk.filter(|_| kind == LoopKind::Threads).map_or(parts, LoopParts::Chunks);
        self.in_parts(body, Division { kind, parts }, range, inside, &|step, low, high, kind| {
            Step::for_each(variable, low, high, step.clone()).with_kind(kind).with_unroll(outer.unroll)
        })
    }

    /// The step that `iterations` makes of the step of `inside`, for a range. A loop of threads is run in parts if
    /// something has to be made for each thread, or if indices have weights: the beginnings of segments of rows.
    pub(super) fn in_parts(
        &mut self,
        body: &StatementNode,
        Division { mut kind, parts }: Division,
        Range { start: low, end: high }: Range<Expression>,
        inside: impl FnOnce(&mut Self) -> Step,
        iterations: &dyn Fn(&Step, Expression, Expression, LoopKind) -> Step,
    ) -> Step {
        let outside =
            (kind == LoopKind::Threads).then(|| (std::mem::take(&mut self.made_before), self.storage.clone()));
        if outside.is_some() {
            // Each thread makes its own, whatever was made for all where the same loop was serial.
            body.workspaces().into_iter().for_each(|workspace| {
                self.storage.remove(workspace.name());
            });
        }
        let step = inside(self);
        let Some((made_outside, storage)) = outside else { return iterations(&step, low, high, kind) };
        // Workspaces that were made inside are not there outside.
        self.storage = storage;
        let mut made = std::mem::replace(&mut self.made_before, made_outside);
        if made.is_empty() && matches!(parts, LoopParts::AsNeeded) {
            return iterations(&step, low, high, kind);
        }
        let mut count = self.chunks.as_ref().map_or(PARTS.into(), |chunks| chunks.value().maximum(1));
        let part = self.names.index("part");
        let (first, last) = match parts {
            LoopParts::Chunks(length) => {
                (count, kind) = ((high.clone() - low.clone()).maximum(0).ceiling_divide(length), LoopKind::Chunks);
                let begin = low + part.value() * length;
                (begin.clone(), high.minimum(begin + length))
            }
            LoopParts::Weighted(positions) => {
                let (steps, first, last) = self.balanced(&positions, &low, &high, &part, &count);
                made.extend(steps);
                (first, last)
            }
            LoopParts::AsNeeded | LoopParts::Always => {
                let length = high - low.clone();
                let begin = |part: Expression| low.clone() + (part * length.clone()).floor_divide(count.clone());
                (begin(part.value()), begin(part.value() + 1))
            }
        };
        made.push(iterations(&step, first, last, LoopKind::Serial));
        Step::for_each(&part, 0, count, Step::Sequence(made)).with_kind(kind)
    }

    /// One iteration of a loop, with this value.
    pub(super) fn iteration(&mut self, outer: &Loop, body: &StatementNode, value: Expression, parallel: bool) -> Step {
        if let Some(is_whole) = self.is_whole(outer, body, &value) {
            self.full.push(outer.variable.clone());
            let whole = self.iteration(outer, body, value.clone(), parallel);
            self.full.pop();
            return Step::choose(is_whole, whole, self.in_iteration(outer, body, value, parallel));
        }
        self.in_iteration(outer, body, value, parallel)
    }

    fn in_iteration(&mut self, outer: &Loop, body: &StatementNode, value: Expression, parallel: bool) -> Step {
        self.bodies += 1;
        let (visits, places) = (self.visits_in(body), self.places.clone());
        let step = self.inside_of(outer, value, |lowering| {
            if let Some(around) = lowering.around.last_mut() {
                around.parallel = parallel;
            }
            let entry = lowering.enter(Some(&outer.variable));
            let body = lowering.located(&visits, &mut |lowering| lowering.node(body));
            entry.wrap(body)
        });
        self.places = places;
        step
    }

    /// Whether iterations of a loop run at the same time.
    pub(super) fn is_parallel(&self, outer: &Loop, body: &StatementNode) -> bool {
        matches!(outer.execution, Execution::Parallel(_))
            && self.may_run_in_parallel(outer, body)
            && self.appends_apart(&outer.variable, body)
            && self.lists_apart(outer, body)
    }

    /// Products of complex numbers, and values of users' reductions, can't be combined by several threads at once; such
    /// loops are serial.
    fn may_run_in_parallel(&self, outer: &Loop, body: &StatementNode) -> bool {
        let private = body.workspaces();
        body.sites().iter().all(|site| {
            let tensor = &site.target.tensor;
            private.contains(&tensor)
                || site.operator.is_none_or(|operator| operator.is_atomic_for(tensor.element()))
                || self.statement.separates(&outer.variable, &site.target.variables)
        })
    }

    /// If the loop and all inside of it combine values into one element: a scalar does so, and is combined with the
    /// element at the end.
    pub(super) fn promoted(&mut self, outer: &Loop, body: &StatementNode) -> Option<Step> {
        let mut loops = vec![&outer.variable];
        let mut node = body;
        while let StatementNode::Forall(inner, body) = node {
            loops.push(&inner.variable);
            node = body;
        }
        let StatementNode::Assign { target, operator: Some(operator), .. } = node else { return None };
        let depends = |variable: &IndexVariable| {
            self.statement.dependencies(variable).iter().any(|dependency| loops.contains(&dependency))
        };
        if matches!(
            self.storage.get(target.tensor.name()),
            Some(Storage::Scalar(_) | Storage::List(_) | Storage::Bound(_))
        ) || target.variables.iter().any(depends)
        {
            return None;
        }
        if matches!(self.sizes, Sizes::Known) && loops.iter().any(|variable| self.statement.extents[*variable] == 0) {
            // Bounds know that nothing happens, and the view may be empty. Kernels for any size are not for this one.
            return Some(Step::nothing());
        }
        self.in_scalar(target, *operator, |lowering| lowering.forall(outer, body))
    }

    /// The step that combines the values of `inside` into one element, whose coordinates are known: by a scalar, which
    /// is combined with the element at the end. None if values have no identity, or there is a scalar already.
    pub(super) fn in_scalar(
        &mut self,
        target: &Access,
        operator: Reduction,
        inside: impl FnOnce(&mut Self) -> Step,
    ) -> Option<Step> {
        let name = target.tensor.name();
        if matches!(self.storage.get(name), Some(Storage::Scalar(_) | Storage::List(_) | Storage::Bound(_))) {
            return None;
        }
        let identity = operator.identity(target.tensor.element())?;
        let sum = Variable::new(self.names.fresh("sum"), target.tensor.element());
        // Where nothing is stored, nothing is appended, unless the value of nothing differs from what is not stored.
        let appends = matches!(self.storage.get(name), Some(Storage::Appended(_))) && self.leaves_out(target, operator);
        let is_set = appends.then(|| self.names.index("is_set"));
        let indices = self.indices(target);
        let scalar = Storage::Scalar(Scalar { value: sum.clone(), is_set: is_set.clone() });
        let around = self.storage.insert(name.to_owned(), scalar);
        let is_unset = self.is_unset && self.is_result(&target.tensor);
        let before = self.is_unset;
        self.is_unset = before && !is_unset;
        let inside = inside(self);
        self.is_unset = before;
        if let Some(around) = around {
            self.storage.insert(name.to_owned(), around);
        }
        let store = self.store(target, indices, sum.value(), Some(operator).filter(|_| !is_unset));
        let mut steps = vec![Step::bind_mutable(&sum, identity)];
        steps.extend(is_set.iter().map(|is_set| Step::bind_mutable(is_set, 0)));
        steps.extend([inside, is_set.map_or(store.clone(), |is_set| Step::when(is_set.value().equal(1), store))]);
        Some(Step::sequence(steps))
    }

    fn assign(&mut self, target: &Access, operator: Option<Reduction>, value: &crate::notation::Expression) -> Step {
        // What is only counted is not computed: workspaces may not even have the values.
        let zero = Reduction::Sum.identity(target.tensor.element());
        let value = match zero.filter(|_| self.is_counting && self.is_result(&target.tensor)) {
            Some(zero) => zero.into(),
            None => self.value(value),
        };
        let is_unset = self.is_unset && self.is_result(&target.tensor);
        // Of what is appended there are as many elements as values.
        let is_new = matches!(self.storage.get(target.tensor.name()), Some(Storage::Appended(_) | Storage::Beside(..)));
        match operator {
            Some(operator) if is_unset || is_new => {
                let first = first(operator, target.tensor.element(), value);
                self.store(target, self.indices(target), first, None)
            }
            _ => self.store(target, self.indices(target), value, operator),
        }
    }

    /// Combines a value with an element whose coordinates are known.
    pub(super) fn combine(&mut self, target: &Access, value: Expression, operator: Reduction) -> Step {
        self.store(target, self.indices(target), value, Some(operator))
    }

    fn store(
        &mut self,
        target: &Access,
        indices: Vec<Expression>,
        value: Expression,
        operator: Option<Reduction>,
    ) -> Step {
        let name = target.tensor.name();
        let step = match self.storage.get(name) {
            Some(Storage::Buffer(buffer)) => {
                let store = Step::store(buffer, indices, value);
                let made_inside = self.made_inside.get(name).copied().unwrap_or(0);
                let is_shared = |&number: &usize| {
                    let Around { variable, parallel } = &self.around[number];
                    *parallel && !self.statement.separates(variable, &target.variables)
                };
                let shared: Vec<usize> = (made_inside..self.around.len()).filter(is_shared).collect();
                match (operator, self.border(&target.variables, &shared)) {
                    (None, _) => return store,
                    (Some(_), _) if shared.is_empty() => store,
                    (Some(_), None) => store.atomic(),
                    (Some(operator), Some(is_border)) => {
                        let atomic = store.clone().atomic().reduce(operator);
                        return Step::choose(is_border, atomic, store.reduce(operator));
                    }
                }
            }
            Some(Storage::Scalar(Scalar { value: variable, is_set })) => {
                let set = Step::set(variable, value);
                let set = operator.map_or(set.clone(), |operator| set.reduce(operator));
                return Step::sequence(
                    [set]
                        .into_iter()
                        .chain(is_set.iter().map(|is_set| Step::set(is_set, 1).reduce(Reduction::Maximum))),
                );
            }
            Some(Storage::List(list)) => {
                return list.clone().set(&indices[0], value, operator, &mut self.names);
            }
            Some(Storage::Bound(count)) => return Step::set(count, count.value() + 1),
            Some(Storage::Beside(..)) => return self.store_beside(target, value),
            Some(Storage::Appended(appended)) => {
                let appended = appended.clone();
                return self.append(&appended, target, &indices, value);
            }
            Some(Storage::Levels(_)) | None => Step::nothing(),
        };
        match operator {
            Some(operator) => step.reduce(operator),
            None => step,
        }
    }

    fn with_workspace(
        &mut self,
        workspace: &TensorVariable,
        consumer: &StatementNode,
        producer: &StatementNode,
    ) -> Step {
        if super::storage::is_list(workspace) {
            return self.with_list(workspace, consumer, producer);
        }
        let operator =
            producer.sites().iter().find(|site| site.target.tensor == *workspace).and_then(|site| site.operator);
        let identity = operator.and_then(|operator| operator.identity(workspace.element()));
        let name: Arc<str> = self.names.fresh(workspace.name());
        let mut steps = Vec::new();
        let storage = if workspace.order() == 0 {
            let variable = Variable::new(name, workspace.element());
            let zero = Reduction::Sum.identity(workspace.element());
            // A plain assignment follows at once.
            steps.extend(identity.or(zero).map(|value| Step::bind_mutable(&variable, value)));
            Storage::Scalar(Scalar { value: variable, is_set: None })
        } else {
            let buffer = Buffer::new(name, workspace.element(), workspace.order(), Use::Update);
            let sites = producer.sites();
            let made = sites.iter().find(|site| site.target.tensor == *workspace).map(|site| site.target);
            let extents = made.map_or(&[][..], |target| &target.variables);
            let extents = extents.iter().map(|variable| self.sizes.extent(self.statement, variable));
            let bounds: Vec<_> = extents.map(|extent| (0.into(), extent)).collect();
            // Values that are left out where they are zero are not assigned.
            let zeroed = operator == Some(Reduction::Sum) || operator.is_none() && !self.visits.is_empty();
            let mut allocation = Step::allocate(&buffer, bounds.clone());
            if let Step::Allocate { zeroed: flag, .. } = &mut allocation {
                *flag = zeroed;
            }
            steps.push(allocation);
            if let (Some(identity), false) = (identity, zeroed) {
                steps.push(self.fill(&buffer, bounds, identity.into()));
            }
            Storage::Buffer(buffer)
        };
        self.storage.insert(workspace.name().to_owned(), storage);
        self.made_inside.insert(workspace.name().to_owned(), self.around.len());
        steps.push(self.node(producer));
        steps.push(self.node(consumer));
        // Not flattened into what is around: what is made here ends here.
        Step::Sequence(steps)
    }
}

/// The value of an element after its first value: the first value, combined with the identity where this changes it, as
/// truth values come of numbers.
pub(super) fn first(operator: Reduction, element: ElementType, value: Expression) -> Expression {
    match operator.identity(element).filter(|_| !operator.keeps_any()) {
        Some(identity) => Expression::combined(operator, element, identity.into(), value),
        None => value,
    }
}

/// How the iterations of a loop that is to be parallel run.
pub(super) fn kind(outer: &Loop) -> LoopKind {
    match outer.execution {
        Execution::Parallel(Unit::Threads) => LoopKind::Threads,
        Execution::Parallel(Unit::Vector) => LoopKind::Vector,
        _ => LoopKind::Serial,
    }
}
