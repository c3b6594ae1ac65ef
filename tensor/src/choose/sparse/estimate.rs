//! Estimates of the cost of a statement's loops, by how the entries of its operands are spread.
//!
//! Loops are gone through from the outermost, with how often each is run: what several operands store in common is
//! counted as if their entries were spread evenly, so that a part of them is common that follows from their densities.
//! Steps cost what they were found to cost on machines of 2020 and later, in nanoseconds; what matters is their ratios.

use std::collections::BTreeMap;

use super::operand::Operand;
use crate::concrete::{Execution, Loop, Merge, Positions, Relation, Statement, StatementNode, Unit};
use crate::format::Level;
use crate::lower::{Appending, is_alike_elsewhere, lattice_points};
use crate::notation::{Access, IndexVariable, TensorVariable};

/// A step of a loop over a dense level.
const DENSE: f64 = 0.4;
/// A step of a loop over what one operand stores.
const STORED: f64 = 0.6;
/// A step of a loop that merges what several store, whose branches are not foreseen.
const MERGED: f64 = 3.0;
/// A step of a search.
const SEARCHED: f64 = 3.0;
/// The arithmetic of an iteration.
const COMPUTED: f64 = 0.3;
/// To append an element to the result.
const APPENDED: f64 = 2.0;
/// To sort an element, for each doubling of how many there are.
const SORTED: f64 = 1.5;
/// To pack an entry that was not written in its place.
const PACKED: f64 = 30.0;
/// To convert an entry to another format.
const CONVERTED: f64 = 12.0;
/// To find an element of a hash table that is in a cache.
const HASHED: f64 = 12.0;
/// To make a hash table.
const TABLE: f64 = 300.0;
/// To look at a flag of a workspace that has one for each coordinate.
const FLAG: f64 = 0.5;
/// To combine a value with an element that other threads may have values for too.
const ATOMIC: f64 = 10.0;
/// To have a page of memory for the first time, and the bytes of one.
const PAGE: (f64, f64) = (250.0, 4096.0);
/// An atomic addition at the border of a part, and finding the first row of one.
const BORDER: f64 = 1e3;

/// Bytes of a level of cache, and what it costs to get an element from memory that is no larger; the last one is what
/// it costs from memory.
const CACHES: [(f64, f64); 3] = [(32e3, 0.2), (2e6, 0.8), (32e6, 2.5)];
const MEMORY: f64 = 6.0;
/// To get an element near to the one before.
const NEAR: f64 = 0.2;
/// Bytes that come from memory at once.
const LINE: f64 = 64.0;

/// The estimated cost of a computation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SparseEstimate {
    /// Seconds of one run.
    pub seconds: f64,
    /// How many steps its loops take, all together.
    pub steps: f64,
    /// How much longer it takes than if each thread had the same work.
    pub imbalance: f64,
    /// Seconds in which operands are converted, which are in `seconds`.
    pub converting: f64,
    /// The most bytes that there are at a time: of operands as they are given and as they are converted, of the result,
    /// and of what threads gather in.
    pub memory: f64,
}

/// How far an access has come.
#[derive(Clone)]
struct AccessState {
    access: Access,
    level: usize,
    /// How likely it is that something is stored at the coordinates so far.
    present: f64,
}

pub(super) struct Walk<'a> {
    statement: &'a Statement,
    operands: BTreeMap<String, Operand>,
    /// The variables whose values are known, and of these the loops around.
    known: Vec<IndexVariable>,
    loops: Vec<IndexVariable>,
    time: f64,
    steps: f64,
    /// How many elements the result has, and those that were written to it.
    written: f64,
    /// The bytes of a thread's workspaces.
    gathered: f64,
}

impl<'a> Walk<'a> {
    pub fn new(statement: &'a Statement, operands: BTreeMap<String, Operand>) -> Self {
        Self {
            statement,
            operands,
            known: Vec::new(),
            loops: Vec::new(),
            time: 0.0,
            steps: 0.0,
            written: 0.0,
            gathered: 0.0,
        }
    }

    /// Estimates the cost of the loops as they run on so many threads, which together get so many bytes a second from
    /// memory.
    pub fn estimate(mut self, threads: usize, memory: f64) -> SparseEstimate {
        let body = self.statement.body();
        let states = self.states(body);
        self.node(body, 1.0, states);
        let result = self.statement.result();
        let is_sparse = !result.format().is_dense();
        let all: f64 = result.dimensions().iter().map(|&extent| extent as f64).product();
        let element = result.element().size() as f64;
        let appending = Appending::new(self.statement);
        let stored = if is_sparse { self.written * (element + 8.0) } else { all * element };
        let appending = appending.filter(|appending| appending.pattern.is_none());
        if let Some(appending) = &appending {
            // Loops run twice: to count, and to write.
            self.time *= 1.6;
            self.time += self.written * if appending.in_place { APPENDED } else { PACKED };
        }
        let (parallel, imbalance) = self.parallel(threads, appending.as_ref());
        let moved: f64 = self.operands.values().map(|operand| operand.bytes).sum::<f64>() + 2.0 * stored;
        // Of what is searched, steps get a line of cache each.
        let moved = moved.min(self.steps * LINE);
        let seconds = (self.time * 1e-9 / parallel * imbalance).max(moved / memory);
        let memory =
            self.operands.values().map(|operand| operand.bytes).sum::<f64>() + stored + self.gathered * parallel.ceil();
        SparseEstimate { seconds, steps: self.steps, imbalance, converting: 0.0, memory }
    }

    /// On how many threads the loops run, and how much longer it takes than if all had the same work.
    fn parallel(&self, threads: usize, appending: Option<&Appending>) -> (f64, f64) {
        let spine = self.statement.spine();
        let is_threaded = |outer: &&&Loop| outer.execution == Execution::Parallel(Unit::Threads);
        let Some(outer) = spine.first().filter(is_threaded) else { return (1.0, 1.0) };
        let of_result = |mode: &usize| self.statement.separates(&outer.variable, &self.target_variable(*mode));
        if appending.is_some_and(|appending| !appending.parents.iter().any(of_result)) {
            return (1.0, 1.0);
        }
        // Parts of positions have the same number each, and rows about as many as the longest of them allows.
        if self.statement.positions().next().is_some() {
            return (threads as f64, 1.0);
        }
        let sites = self.statement.body().sites();
        let mut skew: f64 = 1.0;
        for access in sites.iter().flat_map(|site| site.value.accesses()) {
            let Some(operand) = self.operands.get(access.tensor.name()) else { continue };
            let is_outermost = operand.format.rank() > 1
                && access.variables[operand.mode(0)] == outer.variable
                && !operand.format.is_dense();
            if is_outermost {
                let part = operand.positions.last().copied().unwrap_or(1.0) / threads as f64;
                skew = skew.max(operand.longest / part.max(1.0));
            }
        }
        (threads as f64, skew.min(threads as f64))
    }

    /// The variable of a mode of the result.
    fn target_variable(&self, mode: usize) -> Vec<IndexVariable> {
        let sites = self.statement.body().sites();
        let site = sites.iter().find(|site| site.target.tensor == *self.statement.result());
        site.and_then(|site| site.target.variables.get(mode)).cloned().into_iter().collect()
    }

    /// All accesses in a node of what is stored in levels.
    fn states(&self, node: &StatementNode) -> Vec<AccessState> {
        let mut states: Vec<AccessState> = Vec::new();
        for access in node.sites().iter().flat_map(|site| site.value.accesses()) {
            let is_known = states
                .iter()
                .any(|state| state.access.variables == access.variables && state.access.tensor == access.tensor);
            if !access.tensor.format().is_dense() && !is_known {
                states.push(AccessState { access: access.clone(), level: 0, present: 1.0 });
            }
        }
        states
    }

    /// A node that is run so many times; gives how often something is assigned in it.
    fn node(&mut self, node: &StatementNode, times: f64, mut states: Vec<AccessState>) -> f64 {
        match node {
            StatementNode::Forall(outer, body) => {
                let variable = &outer.variable;
                self.located(&mut states, times);
                let iterations = self.iterations(&mut states, variable, outer.merge, body, times);
                self.known.push(variable.clone());
                self.loops.push(variable.clone());
                let values: Vec<IndexVariable> = self.recovered(variable);
                self.known.extend(values.iter().cloned());
                let assigned = self.node(body, times * iterations, states);
                self.known.truncate(self.known.len() - 1 - values.len());
                self.loops.pop();
                assigned
            }
            StatementNode::Assign { target, value, .. } => {
                self.located(&mut states, times);
                let present = states.iter().map(|state| state.present).fold(1.0, f64::min);
                let times = times * present;
                self.time += times * COMPUTED;
                for access in value.accesses().into_iter().filter(|access| access.tensor.format().is_dense()) {
                    self.time += times * self.fetched(access, access.tensor.element().size() as f64);
                }
                self.assigned(target, times);
                times
            }
            StatementNode::Where { workspace, consumer, producer } => {
                if workspace.order() != 1 || workspace.format().is_dense() {
                    let assigned = self.node(producer, times, states.clone());
                    let mut inside = states;
                    inside.extend(self.states(consumer));
                    inside.dedup_by(|one, other| one.access == other.access);
                    self.node(consumer, times, inside);
                    return assigned;
                }
                let mut inside = states.clone();
                inside.retain(|state| state.access.tensor != *workspace);
                let set = self.node(producer, times, inside) / times.max(1.0);
                self.gathering(workspace, producer, times, set);
                let mut inside = states;
                inside.retain(|state| state.access.tensor != *workspace);
                inside.extend(self.states(consumer).into_iter().filter(|state| state.access.tensor == *workspace));
                self.node(consumer, times, inside)
            }
        }
    }

    /// A workspace of which `set` elements are set, each of so many times, and what it costs to order and forget them.
    fn gathering(&mut self, workspace: &TensorVariable, producer: &StatementNode, times: f64, set: f64) {
        let extent = self.extent(workspace, producer);
        let different = extent * (1.0 - (-set / extent.max(1.0)).exp());
        let mut operand =
            Operand::new(workspace.name(), workspace.format(), &[extent as i64], workspace.element(), None, false);
        operand.positions = vec![different];
        operand.bytes = 0.0;
        self.operands.insert(workspace.name().to_owned(), operand);
        let element = workspace.element().size() as f64;
        let room = match workspace.format().levels() {
            [Level::Hashed] => {
                self.time += times * (TABLE + 2.0 * set * FLAG);
                2.0 * set.min(extent) * (element + 16.0)
            }
            [Level::Bitmap] => {
                self.time += times * extent * FLAG;
                extent * (element + 5.0)
            }
            _ => extent * (element + 5.0),
        };
        let is_sorted = workspace.format().properties()[0].ordered || !self.statement.result().format().is_dense();
        if workspace.format().levels() != [Level::Bitmap] && is_sorted {
            // In the workspace, or in the result.
            self.time += times * different * SORTED * different.max(2.0).log2();
        }
        if workspace.format().levels() != [Level::Hashed] {
            // Elements, flags and places of what is set are on pages of their own if there are many more, at least as
            // long as there are pages that were not used before.
            let (cost, page) = PAGE;
            self.time += (3.0 * times * set).min(room / page) * cost;
        }
        self.gathered = self.gathered.max(room);
    }

    fn extent(&self, workspace: &TensorVariable, producer: &StatementNode) -> f64 {
        let sites = producer.sites();
        let made = sites.iter().find(|site| site.target.tensor == *workspace);
        made.and_then(|site| self.statement.extent(&site.target.variables[0])).unwrap_or(1) as f64
    }

    /// Adds the cost of storing a value in its place, so many times.
    fn assigned(&mut self, target: &Access, times: f64) {
        if target.tensor == *self.statement.result() {
            self.written += times;
        }
        if target.tensor.format().is_dense() {
            // What does not change with the innermost loop is in a register.
            if self.loops.last().is_some_and(|innermost| self.changes(innermost, target)) {
                // Of parts of positions, several may have elements of a column.
                let mut positions = self.statement.positions();
                if positions.any(|positions| target.variables.contains(innermost_of(positions))) {
                    self.time += times * ATOMIC;
                }
                self.time += times * self.fetched(target, target.tensor.element().size() as f64);
            }
            return;
        }
        let sites = self.statement.body().sites();
        let Some(site) = sites.iter().find(|site| site.target.tensor == target.tensor) else { return };
        let extent = self.statement.extent(&site.target.variables[0]).unwrap_or(1) as f64;
        let element = target.tensor.element().size() as f64;
        self.time += times
            * match target.tensor.format().levels() {
                [Level::Hashed] => HASHED,
                _ if target.tensor == *self.statement.result() => 0.0,
                _ => 1.0 + latency(extent * (element + 5.0)),
            };
    }

    fn changes(&self, variable: &IndexVariable, access: &Access) -> bool {
        access.variables.iter().any(|own| own == variable || self.statement.dependencies(own).contains(variable))
    }

    /// The cost of getting an element of a dense tensor: none, if the innermost loop does not change the element, and
    /// little, if the loop goes along the tensor.
    fn fetched(&self, access: &Access, element: f64) -> f64 {
        let Some(innermost) = self.loops.last() else { return 0.0 };
        if !self.changes(innermost, access) {
            return 0.0;
        }
        let contiguous = access.tensor.format().order().last().map(|&mode| access.variables[mode].clone());
        let extent = |variable: &IndexVariable| self.statement.extent(variable).unwrap_or(1) as f64;
        // What outer loops keep as it is, as long as all others run.
        let fixed = self.loops.iter().take_while(|outer| access.variables.contains(outer)).count();
        let fixed = &self.loops[..fixed.min(self.loops.len() - 1)];
        let size = access.variables.iter().filter(|own| !fixed.contains(own)).map(extent).product::<f64>() * element;
        let is_along = contiguous.as_ref().is_some_and(|contiguous| self.is_along(innermost, contiguous));
        // What one matrix of few diagonals names is near to what it named before.
        let is_local = self.operands.values().any(|operand| operand.is_local);
        if is_along && (is_local || !self.is_driven(innermost)) { NEAR } else { latency(size) }
    }

    /// Whether a loop goes through the values of a variable, or those of a block of it, one after the other.
    fn is_along(&self, innermost: &IndexVariable, variable: &IndexVariable) -> bool {
        let is_block = |relation: &Relation| match relation {
            Relation::Split { parent, inner, .. } | Relation::Divide { parent, inner, .. } => {
                parent == variable && inner == innermost
            }
            _ => false,
        };
        innermost == variable || self.statement.relations().iter().any(is_block)
    }

    /// Whether a loop visits what is stored, and so not all values.
    fn is_driven(&self, variable: &IndexVariable) -> bool {
        let sites = self.statement.body().sites();
        let mut accesses = sites.iter().flat_map(|site| site.value.accesses());
        accesses.any(|access| {
            let format = access.tensor.format();
            let compressed = (0..format.rank()).filter(|&level| format.levels()[level] != Level::Dense);
            format.is_plain()
                && compressed.into_iter().any(|level| access.variables[format.order()[level]] == *variable)
        })
    }

    /// How many entries a row of a matrix has, where its number is the coordinate of another entry of the same matrix
    /// that the loops around go through.
    fn reached(&self, state: &AccessState, states: &[AccessState]) -> Option<f64> {
        let operand = self.operands.get(state.access.tensor.name()).filter(|_| state.level == 1)?;
        let row = &state.access.variables[operand.mode(0)];
        let through = states.iter().find(|other| {
            let of = self.operands.get(other.access.tensor.name());
            let is_same = of.is_some_and(|of| of.name == operand.name && other.level == of.format.rank());
            is_same && other.access.variables.contains(row)
        })?;
        let mode = through.access.variables.iter().position(|variable| variable == row)?;
        operand.reached.get(mode).copied()
    }

    /// Whether a loop finds the elements of a workspace by coordinates, and does not go through them, if it goes
    /// through others.
    fn is_looked_up(&self, state: &AccessState) -> bool {
        let tensor = &state.access.tensor;
        let is_workspace = self.statement.body().workspaces().iter().any(|made| made.name() == tensor.name());
        let is_list = match tensor.format().levels() {
            [Level::Compressed] => !tensor.format().properties()[0].ordered,
            levels => levels == [Level::Hashed],
        };
        is_workspace && is_list
    }

    /// The cost of finding an element of a workspace.
    fn looking_up(&self, state: &AccessState, extent: f64) -> f64 {
        match state.access.tensor.format().levels() {
            [Level::Hashed] => HASHED,
            // Flags have a byte each.
            _ => FLAG + latency(extent),
        }
    }

    /// The variables that are known once `variable` is.
    fn recovered(&self, variable: &IndexVariable) -> Vec<IndexVariable> {
        let sites = self.statement.body().sites();
        let used = sites.iter().flat_map(|site| site.value.accesses()).flat_map(|access| access.variables.clone());
        let mut found: Vec<IndexVariable> = Vec::new();
        for own in used {
            let depends = self.statement.dependencies(&own);
            let is_known = |dependency: &IndexVariable| *dependency == *variable || self.known.contains(dependency);
            if own != *variable && depends.contains(variable) && depends.iter().all(is_known) && !found.contains(&own) {
                found.push(own);
            }
        }
        found
    }

    /// Brings accesses as far as variables are known: through dense levels at once, through others by searches.
    fn located(&mut self, states: &mut [AccessState], times: f64) {
        for state in states {
            let Some(operand) = self.operands.get(state.access.tensor.name()) else { continue };
            while state.level < operand.format.rank() {
                let mode = operand.mode(state.level);
                if !self.known.contains(&state.access.variables[mode]) {
                    break;
                }
                if operand.format.levels()[state.level] != Level::Dense {
                    let children = operand.children(state.level);
                    self.time += times * state.present * SEARCHED * (children + 1.0).log2();
                    self.steps += times * state.present * (children + 1.0).log2();
                    state.present *= (children / operand.extents[mode].max(1.0)).min(1.0);
                }
                state.level += 1;
            }
        }
    }

    /// How many iterations a loop has each time.
    fn iterations(
        &mut self,
        states: &mut [AccessState],
        variable: &IndexVariable,
        merge: Merge,
        body: &StatementNode,
        times: f64,
    ) -> f64 {
        let extent = self.statement.extent(variable).unwrap_or(1) as f64;
        let statement = self.statement;
        let operands = &self.operands;
        let reached: Vec<Option<f64>> = states.iter().map(|state| self.reached(state, states)).collect();
        let driven = |(state, reached): (&AccessState, &Option<f64>)| {
            let operand = operands.get(state.access.tensor.name())?;
            let mode = (state.level < operand.format.rank()).then(|| operand.mode(state.level))?;
            let own = &state.access.variables[mode];
            let is_driven = own == variable || statement.dependencies(own).contains(variable);
            (is_driven && operand.format.levels()[state.level] != Level::Dense)
                .then(|| (reached.unwrap_or_else(|| operand.children(state.level)) * state.present).min(extent))
        };
        if let Some(positions) =
            statement.positions().find(|positions| statement.descends(variable, &positions.position))
        {
            // Of all positions, each part has its own.
            let operand = self.operands.get(positions.access.tensor.name());
            let all = operand.map_or(extent, |operand| operand.positions[positions.level]);
            let loops = statement.body().loops();
            let others = loops.iter().filter(|other| {
                other.variable != *variable && statement.descends(&other.variable, &positions.position)
            });
            let parts: f64 = others.map(|other| statement.extent(&other.variable).unwrap_or(1) as f64).product();
            let is_inner = self.known.iter().any(|known| statement.descends(known, &positions.position));
            let count = if is_inner { all / parts.max(1.0) } else { extent };
            for state in states
                .iter_mut()
                .filter(|state| is_inner && state.access.tensor.name() == positions.access.tensor.name())
            {
                state.level = positions.level + 1;
            }
            self.time += times * count * if is_inner { STORED + 0.3 } else { BORDER };
            self.steps += times * count;
            return count;
        }
        let counts: Vec<Option<f64>> = states.iter().zip(&reached).map(driven).collect();
        let merged: Vec<f64> = counts.iter().flatten().copied().collect();
        let looked_up = states.iter().zip(&counts).filter(|(state, count)| count.is_some() && self.is_looked_up(state));
        let lookup: f64 = looked_up.clone().map(|(state, _)| self.looking_up(state, extent)).sum();
        let listed: f64 = looked_up.filter_map(|(_, count)| *count).sum();
        let looked_up = lookup > 0.0 && listed < merged.iter().sum();
        if merged.is_empty() {
            self.time += times * extent * DENSE;
            self.steps += times * extent;
            return extent;
        }
        let mut points = lattice_points(statement, variable, body);
        let total: f64 = merged.iter().sum();
        if points.is_empty() && merged.len() == 1 && is_alike_elsewhere(statement, variable, body) {
            points.push(Vec::new());
        }
        let (iterations, steps, cost) = match &points[..] {
            [] => (extent, extent, MERGED),
            [point] if point.len() > 1 || merged.len() > 1 => {
                let common = merged.iter().fold(extent, |common, count| common * (count / extent.max(1.0)).min(1.0));
                let least = merged.iter().copied().fold(f64::INFINITY, f64::min);
                match merge {
                    _ if looked_up => (common, total - listed, STORED + lookup),
                    Merge::TwoFinger | Merge::Bitmap | Merge::Hash => (common, total, MERGED),
                    Merge::Gallop => {
                        let leaps = 1.0 + (total / least.max(1.0)).max(1.0).log2();
                        (common, least * merged.len() as f64 * leaps, MERGED)
                    }
                    Merge::Locate => {
                        let searches: f64 = merged[1..].iter().map(|count| (count + 1.0).log2()).sum();
                        (common, merged[0] * (1.0 + searches), SEARCHED)
                    }
                }
            }
            _ if merged.len() > 1 => (total.min(extent), total, MERGED),
            _ => (total, total, STORED),
        };
        self.time += times * steps * cost;
        self.steps += times * steps;
        for (state, count) in states.iter_mut().zip(&counts) {
            if let Some(count) = count {
                state.level += 1;
                // At an iteration of others it may have nothing.
                state.present = if points.len() == 1 { 1.0 } else { (count / iterations.max(1.0)).min(1.0) };
            }
        }
        // An element of a union that is not there is no reason not to assign.
        if points.len() != 1 {
            states
                .iter_mut()
                .zip(&counts)
                .filter(|(_, count)| count.is_some())
                .for_each(|(state, _)| state.present = 1.0);
        }
        iterations
    }
}

/// The variable of the innermost level whose positions a loop goes through.
fn innermost_of(positions: &Positions) -> &IndexVariable {
    let format = positions.access.tensor.format();
    &positions.access.variables[format.order()[positions.level]]
}

/// The cost of getting an element from data of so many bytes, which are accessed in any order.
fn latency(bytes: f64) -> f64 {
    CACHES.iter().find(|(size, _)| bytes <= *size).map_or(MEMORY, |(_, cost)| *cost)
}

/// The seconds in which an operand is converted, on so many threads.
pub(super) fn converting(operand: &Operand, threads: usize) -> f64 {
    let entries = operand.positions.last().copied().unwrap_or(1.0);
    entries * CONVERTED * 1e-9 / threads as f64
}
