//! Random loops.
//!
//! A loop has one or two *texts*. The first turn of a text is made as any block is; later turns are copies of it under
//! new names, but for planned deviations: what is left out, what comes in between, which tasks go wrong, which results
//! are carried from one turn to the next. Mostly part of a text is a trace.

use std::collections::BTreeSet;

use super::turn::{Names, Turn};
use super::{Generator, Scope, shared};
use crate::oracle::{Health, Verdict};
use crate::program::{
    Action, Block, Column, Fault, FutureName, Launch, Node, Passed, Place, RegionName, Site, Statement, StatementId,
    TraceName,
};
use crate::value::mix;

/// The most statements in all loops of a program together.
pub(super) const MOST: usize = 300;

/// The text that the turns of a loop have in common.
struct Text {
    trace: Option<TraceName>,
    /// The sites of the trace and of its turns.
    site: Option<Site>,
    /// Before the trace, in it, and after it.
    parts: [Vec<Statement>; 3],
    /// The latest names of what the first turn made.
    names: Names,
    /// Launches that are given a result of the turn before, by the name that it had in the first turn.
    carried: Vec<(Site, Passed)>,
}

/// How the turns of a loop differ.
struct Plan {
    turns: usize,
    /// The texts of the turns, over and over.
    order: Vec<usize>,
    deviations: Vec<Deviation>,
    /// Of so many launches, one goes wrong; 0 for none.
    faults: usize,
    /// Results are mostly let go of after the next turn.
    forgets: bool,
    /// Values differ from turn to turn.
    values_differ: bool,
    /// Launches and fills alone: nothing that ends a replay.
    only_launches: bool,
    /// Tasks may launch tasks.
    nests: bool,
}

/// A turn that is being made of a text.
struct NextTurn<'t> {
    number: usize,
    plan: &'t Plan,
    text: &'t mut Text,
    /// The names of the turn before.
    before: Names,
}

/// A change that is made in every so many turns.
struct Deviation {
    every: usize,
    first: usize,
    what: Change,
}

#[derive(Clone, Copy)]
enum Change {
    /// The statement with this number in a part is left out.
    LeaveOut(usize, usize),
    /// Another one comes before it.
    Insert(usize, usize),
    /// The statement and the one before it change places.
    Swap(usize, usize),
    /// The statements of the trace stand outside of it.
    Untraced,
}

impl Generator {
    /// A loop, unless there were enough of them.
    pub(super) fn add_repeat(&mut self, scope: &mut Scope, block: &mut Block) {
        if self.left_for_loops < 10 || self.is_plain {
            return;
        }
        let mut plan = self.plan(scope);
        let mut texts: Vec<Option<Text>> = plan.order.iter().map(|_| None).collect();
        let (id, mut turns, mut sources) = (StatementId(self.number()), Vec::new(), Vec::new());
        for number in 0..plan.turns {
            if self.left_for_loops == 0 {
                break;
            }
            let which = plan.order[number % plan.order.len()];
            let turn = match texts[which].take() {
                None => {
                    let (text, turn) = self.first_turn(scope, &plan);
                    self.plan_deviations(&mut plan, &text);
                    texts[which] = Some(text);
                    turn
                }
                Some(mut text) => {
                    let turn = self.next_turn(scope, &plan, number, &mut text, &mut sources);
                    texts[which] = Some(text);
                    turn
                }
            };
            self.left_for_loops = self.left_for_loops.saturating_sub(turn.count());
            turns.push(turn);
        }
        self.world.verdicts.insert(id, Verdict::Done);
        block.0.push(Statement::new(id.0, Action::Repeat(turns)));
    }

    fn plan(&mut self, scope: &Scope) -> Plan {
        let orders: [&[usize]; 8] = [&[0], &[0], &[0], &[0], &[0], &[0, 1], &[0, 0, 1], &[0, 0, 0, 0, 1, 1]];
        let nests = scope.depth < self.profile.depth && self.once_in(8);
        let most = if nests || scope.depth > 0 { 8 } else { 40 };
        Plan {
            turns: self.random.usize(2..=most),
            order: self.one_of(&orders).map_or(vec![0], <[usize]>::to_vec),
            deviations: Vec::new(),
            faults: if self.profile.faults && !self.once_in(3) { self.random.usize(20..=80) } else { 0 },
            forgets: !self.once_in(3),
            values_differ: self.random.bool(),
            only_launches: self.random.bool(),
            nests,
        }
    }

    /// Plans the deviations of later turns from a text.
    fn plan_deviations(&mut self, plan: &mut Plan, text: &Text) {
        let count = [0, 0, 1, 1, 1, 2][self.random.usize(..6)];
        for _ in 0..count {
            let part = if self.once_in(4) { self.random.usize(..3) } else { 1 };
            let place = self.random.usize(..=text.parts[part].len());
            let what = match self.random.usize(..8) {
                0..=2 => Change::LeaveOut(part, place),
                3..=5 => Change::Insert(part, place),
                6 => Change::Swap(part, place),
                _ => Change::Untraced,
            };
            // Often enough for replays in between, and seldom enough.
            let every = if self.once_in(3) { 1000 } else { self.random.usize(2..=9) };
            plan.deviations.push(Deviation { every, first: self.random.usize(1..=9), what });
        }
    }

    /// Makes a text, and its first turn.
    fn first_turn(&mut self, scope: &mut Scope, plan: &Plan) -> (Text, Block) {
        let trace = (!self.once_in(4)).then(|| TraceName(self.random.u32(..3)));
        let around = if plan.only_launches { 8 } else { 3 };
        let sizes = [usize::from(self.once_in(around)), self.random.usize(1..=5), usize::from(self.once_in(around))];
        let was_plain = std::mem::replace(&mut self.is_plain, !plan.nests);
        let parts: Vec<Vec<Statement>> = sizes
            .iter()
            .enumerate()
            .map(|(part, &size)| {
                let mut block = Block::default();
                let may_wait = scope.depth == 0 || part != 1;
                // Temporary data of each turn.
                let (before, made, partitions) =
                    (scope.context.scratch.clone(), scope.context.created.clone(), scope.own.len());
                if part == 1 && self.once_in(3) {
                    let is_made = self.profile.destruction && self.random.bool();
                    let action = if is_made { self.new_region(scope) } else { self.scratch(scope) };
                    action.into_iter().for_each(|action| _ = self.attempt(scope, &mut block, action));
                    if may_wait && self.profile.destruction && self.once_in(3) {
                        self.add_partition(scope, &mut block);
                    }
                }
                let temporary = scope.own[partitions..].to_vec();
                for _ in 0..4 * size {
                    if block.0.len() >= size {
                        break;
                    }
                    self.add_to_loop(scope, &mut block, plan, may_wait);
                }
                for name in scope.context.scratch.difference(&before).copied().collect::<Vec<_>>() {
                    self.attempt(scope, &mut block, Action::Drop(name));
                }
                temporary
                    .into_iter()
                    .for_each(|name| _ = self.attempt(scope, &mut block, Action::DestroyPartition(name)));
                if part == 1 && self.profile.destruction {
                    for name in scope.context.created.difference(&made).copied().collect::<Vec<_>>() {
                        self.attempt(scope, &mut block, Action::DestroyRegion(name));
                    }
                }
                block.0
            })
            .collect();
        self.is_plain = was_plain;
        let parts: [Vec<Statement>; 3] = parts.try_into().unwrap_or_default();
        let carried = self.carry(&parts);
        let mut text = Text { trace, site: None, parts, names: Names::default(), carried };
        let parts = text.parts.clone();
        let turn = self.put_together(&mut text, parts, false);
        (text, turn)
    }

    /// A statement for the first turn.
    fn add_to_loop(&mut self, scope: &mut Scope, block: &mut Block, plan: &Plan, may_wait: bool) {
        let fences = !scope.holding;
        let action = match self.random.usize(..100) {
            _ if plan.only_launches && !self.once_in(6) => return self.add_launch(scope, block),
            _ if plan.only_launches => self.fill(scope),
            0..=69 => return self.add_launch(scope, block),
            70..=76 => self.fill(scope),
            77..=83 => return self.add_copy(scope, block),
            84..=87 => self.derive(scope),
            88..=90 if may_wait => self.wait(scope),
            91..=93 if may_wait && self.profile.inline && !scope.inner => return self.add_inline(scope, block),
            94 if fences => Some(Action::MappingFence),
            95 if fences => Some(Action::ExecutionFence),
            96..=97 if may_wait && plan.turns <= 8 => return self.add_partition(scope, block),
            98 if plan.turns <= 8 => self.new_region(scope),
            99 => return self.add_attachment(scope, block),
            _ => None,
        };
        if let Some(action) = action {
            self.attempt(scope, block, action);
        }
    }

    /// Chooses results that go from one turn to the next.
    fn carry(&mut self, parts: &[Vec<Statement>; 3]) -> Vec<(Site, Passed)> {
        let statements = parts.iter().flatten();
        let launches: Vec<(Site, &Launch)> = statements
            .filter_map(|statement| match &statement.action {
                Action::Launch(launch) if self.world.futures.contains_key(&launch.name) => {
                    Some((statement.site, &**launch))
                }
                _ => None,
            })
            .collect();
        let mut carried = Vec::new();
        for &(site, launch) in &launches {
            if self.once_in(3)
                && let Some((_, source)) = self.one_of(&launches)
            {
                match source.domain {
                    None => carried.push((site, Passed::Future(source.name))),
                    domain if domain == launch.domain => carried.push((site, Passed::PerPoint(source.name))),
                    _ => {}
                }
            }
        }
        carried
    }

    /// Makes the next turn of a text.
    fn next_turn(
        &mut self,
        scope: &mut Scope,
        plan: &Plan,
        number: usize,
        text: &mut Text,
        superseded: &mut Vec<FutureName>,
    ) -> Block {
        let is_due = |deviation: &&Deviation| number % deviation.every == deviation.first % deviation.every;
        let changes: Vec<Change> = plan.deviations.iter().filter(is_due).map(|deviation| deviation.what).collect();
        let before = text.names.clone();
        let next = &mut NextTurn { number, plan, text, before };
        let mut parts: [Block; 3] = Default::default();
        for (part, made) in parts.iter_mut().enumerate() {
            let mut statements = next.text.parts[part].clone();
            for change in &changes {
                if let &Change::Swap(changed, place) = change
                    && changed == part
                    && (1..statements.len()).contains(&place)
                {
                    statements.swap(place - 1, place);
                }
            }
            for place in 0..=statements.len() {
                let is = |change: &Change, what: fn(usize, usize) -> Change| match (*change, what(part, place)) {
                    (Change::LeaveOut(a, b), Change::LeaveOut(c, d)) => (a, b) == (c, d),
                    (Change::Insert(a, b), Change::Insert(c, d)) => (a, b) == (c, d),
                    _ => false,
                };
                if changes.iter().any(|change| is(change, Change::Insert)) {
                    let was_plain = std::mem::replace(&mut self.is_plain, !plan.nests);
                    let may_wait = scope.depth == 0 || part != 1;
                    let any = Plan { only_launches: false, order: Vec::new(), deviations: Vec::new(), ..*plan };
                    self.add_to_loop(scope, made, &any, may_wait);
                    self.is_plain = was_plain;
                }
                if let Some(statement) = statements.get(place)
                    && !changes.iter().any(|change| is(change, Change::LeaveOut))
                {
                    self.repeat_statement(scope, made, next, statement, superseded);
                }
            }
        }
        self.heal(scope, &mut parts[2]);
        if plan.forgets {
            self.forget(scope, &mut parts[2], superseded);
        }
        let is_untraced = changes.iter().any(|change| matches!(change, Change::Untraced));
        self.put_together(next.text, parts.map(|part| part.0), is_untraced)
    }

    /// Adds a copy of a statement, if it has a meaning in this turn.
    fn repeat_statement(
        &mut self,
        scope: &mut Scope,
        block: &mut Block,
        NextTurn { number, plan, text, before }: &mut NextTurn<'_>,
        statement: &Statement,
        superseded: &mut Vec<FutureName>,
    ) {
        let (names, known) = (text.names.clone(), superseded.len());
        let mut copy = Turn { names: &mut text.names, next: &mut self.next, superseded }.statement(statement);
        match &mut copy.action {
            Action::Fill(_, word) if plan.values_differ => *word = mix(*word, *number as u64),
            Action::Launch(launch) => {
                let mut changed = Launch::clone(launch);
                let points = crate::oracle::points_of(&changed).len().max(1);
                for passed in &mut changed.arguments {
                    if let (Passed::Value(value), true) = (passed, plan.values_differ) {
                        *value = mix(*value, *number as u64);
                    }
                }
                let carried = text.carried.iter().filter(|(site, _)| *site == statement.site);
                changed.arguments.extend(carried.map(|(_, passed)| match *passed {
                    Passed::Future(name) => Passed::Future(before.future(name)),
                    Passed::PerPoint(name) => Passed::PerPoint(before.future(name)),
                    value @ Passed::Value(_) => value,
                }));
                if plan.faults > 0 && self.once_in(plan.faults) {
                    let fault = self.one_of(&[Fault::PanicsAtOnce, Fault::PanicsAtEnd, Fault::Fails]);
                    changed.fault = fault.map(|fault| (self.random.usize(..points), fault));
                }
                *launch = shared(changed);
            }
            _ => {}
        }
        let (mut world, mut context) = (self.world.clone(), scope.context.clone());
        let Ok(verdict) = world.step(&mut context, &copy) else {
            text.names = names;
            superseded.truncate(known);
            return;
        };
        if !self.profile.hand_up {
            // What tasks have made is theirs.
            context.pending.values_mut().for_each(BTreeSet::clear);
            let known = &scope.context.created;
            context.created.retain(|region| known.contains(region) || makes(&copy, *region));
        }
        (self.world, scope.context) = (world, context);
        if verdict == Verdict::Done {
            self.learn_copy(scope, &copy);
        } else {
            text.names = names;
            superseded.truncate(known);
        }
        block.0.push(copy);
    }

    /// Remembers the names that a statement has made, and those that statements inside it have made for the same task.
    fn learn_copy(&self, scope: &mut Scope, copy: &Statement) {
        if self.world.verdicts.get(&copy.id) != Some(&Verdict::Done) {
            return;
        }
        scope.learn(&copy.action);
        if !matches!(copy.action, Action::Launch(_)) {
            copy.nested().iter().flat_map(|block| &block.0).for_each(|inside| self.learn_copy(scope, inside));
        }
    }

    /// Now and then fills what failed tasks were to write, so that things can go on.
    fn heal(&mut self, scope: &mut Scope, block: &mut Block) {
        if !self.profile.faults || !self.once_in(3) {
            return;
        }
        for region in scope.regions() {
            let Some(data) = self.world.regions.get(&region) else { continue };
            let is_unsound = |cells: &crate::oracle::Cells| cells.values().any(|cell| cell.health > Health::Sound);
            let unsound: Vec<_> = data.data.iter().filter(|(_, cells)| is_unsound(cells)).map(|(&f, _)| f).collect();
            let mut nodes = vec![Node::Root(data.space)];
            if !scope.context.created.contains(&region) {
                nodes = scope.context.held.iter().filter(|held| held.region == region).map(|held| held.node).collect();
            }
            for (field, node) in unsound.into_iter().flat_map(|field| nodes.iter().map(move |&node| (field, node))) {
                let word = self.random.u64(..);
                self.attempt(scope, block, Action::Fill(Column { place: Place { region, node }, field }, word));
            }
        }
    }

    /// Lets go of most results of the turn before.
    fn forget(&mut self, scope: &mut Scope, block: &mut Block, superseded: &mut Vec<FutureName>) {
        for name in std::mem::take(superseded) {
            // Results of tasks that launch tell of regions that those have made.
            if scope.futures.contains(&name) && !scope.nested.contains(&name) && !self.once_in(4) {
                self.attempt(scope, block, Action::Forget(name));
            }
        }
    }

    /// Puts the parts of a turn together, the middle one as a trace.
    fn put_together(&mut self, text: &mut Text, parts: [Vec<Statement>; 3], is_untraced: bool) -> Block {
        let [mut all, inside, after] = parts;
        match text.trace.filter(|_| !is_untraced) {
            Some(trace) => {
                let mut traced = Statement::new(self.number(), Action::Traced(trace, Block(inside)));
                traced.site = *text.site.get_or_insert(traced.site);
                self.world.verdicts.insert(traced.id, Verdict::Done);
                all.push(traced);
            }
            None => all.extend(inside),
        }
        all.extend(after);
        Block(all)
    }
}

/// Whether a task makes a region by this statement, and not by what it launches.
fn makes(statement: &Statement, region: RegionName) -> bool {
    match &statement.action {
        Action::CreateRegion(name, ..) => *name == region,
        Action::Launch(_) => false,
        _ => statement.nested().iter().flat_map(|block| &block.0).any(|inside| makes(inside, region)),
    }
}
