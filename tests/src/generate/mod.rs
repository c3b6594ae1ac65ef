//! Random programs from seeds.
//!
//! The generator runs the oracle alongside: it proposes a statement, sees what would become of it, and takes it if it
//! is legal, or now and then if it must be refused. So programs are mostly legal without knowing the rules, and never
//! without meaning.

mod data;
mod repeat;
mod shape;
mod task;
mod turn;

use std::sync::Arc;

use fastrand::Rng;

use crate::oracle::{Context, Verdict, World};
use crate::program::{
    Action, Block, Body, FieldsName, FutureName, Node, PartitionName, Program, RegionName, SpaceName, Statement,
};

/// The make-up of programs: sizes, and features that they may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The most statements at top level.
    pub statements: usize,
    /// How deep tasks launch tasks.
    pub depth: usize,
    /// Tasks go wrong on purpose.
    pub faults: bool,
    /// Fields are freed, and partitions and regions destroyed, in the middle.
    pub destruction: bool,
    /// Inline mappings.
    pub inline: bool,
    /// Of so many statements that must be refused, one is kept.
    pub refusals: usize,
    /// The most points of a region along one side.
    pub extent: i64,
    /// Of a hundred statements that are proposed, so many are loops.
    pub loops: usize,
    /// Regions that a task makes may be used by the one that launched it.
    pub hand_up: bool,
}

impl Profile {
    /// Everything but faults.
    pub const FULL: Self = Self {
        statements: 40,
        depth: 3,
        faults: false,
        destruction: true,
        inline: true,
        refusals: 6,
        extent: 40,
        loops: 1,
        hand_up: true,
    };

    /// Single and index launches without nesting.
    pub const FLAT: Self = Self { depth: 0, ..Self::FULL };

    /// With tasks that fail.
    pub const FAULTY: Self = Self { faults: true, destruction: false, depth: 2, ..Self::FULL };

    /// Little but loops.
    pub const LOOPS: Self = Self { statements: 24, depth: 1, extent: 20, loops: 20, ..Self::FULL };

    /// Little but loops, with tasks that fail.
    pub const FAULTY_LOOPS: Self = Self { faults: true, destruction: false, ..Self::LOOPS };
}

/// Makes the program of a seed.
#[must_use]
pub fn generate(seed: u64, profile: Profile) -> Program {
    let (random, world) = (Rng::with_seed(seed), World::default());
    let mut generator = Generator { random, world, next: 0, profile, is_plain: false, left_for_loops: repeat::MOST };
    let mut scope = Scope::default();
    let mut block = Block::default();
    generator.foundations(&mut scope, &mut block);
    let statements = generator.random.usize(3..=profile.statements);
    generator.fill_block(&mut scope, &mut block, statements);
    generator.wait_for_all(&mut scope, &mut block);
    generator.drop_scratch(&mut scope, &mut block);
    Program { seed, body: block }
}

/// A program in the making.
struct Generator {
    random: Rng,
    world: World,
    next: u32,
    profile: Profile,
    /// Tasks neither launch others nor go wrong: the first turn of a loop is made.
    is_plain: bool,
    /// How many more statements there may be in loops.
    left_for_loops: usize,
}

/// The names that statements of a block can use.
#[derive(Clone, Default)]
struct Scope {
    context: Context,
    depth: usize,
    spaces: Vec<SpaceName>,
    fields: Vec<FieldsName>,
    partitions: Vec<PartitionName>,
    futures: Vec<FutureName>,
    waited: Vec<FutureName>,
    /// Futures without a value.
    copies: Vec<FutureName>,
    /// Partitions made by this task, which alone may destroy them.
    own: Vec<PartitionName>,
    /// Spaces and field spaces made by this task, which alone may destroy or change them.
    own_spaces: Vec<SpaceName>,
    own_fields: Vec<FieldsName>,
    /// Launches of tasks that launch.
    nested: Vec<FutureName>,
    /// Data is mapped inline: no fences, which would wait for its release.
    holding: bool,
    /// The task promised not to look at its data.
    inner: bool,
}

impl Scope {
    fn regions(&self) -> Vec<RegionName> {
        let held = self.context.held.iter().map(|held| held.region);
        let mut regions: Vec<_> = self.context.created.iter().copied().chain(held).collect();
        regions.dedup();
        regions
    }
}

impl Generator {
    fn one_of<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        (!choices.is_empty()).then(|| choices[self.random.usize(..choices.len())].clone())
    }

    /// True once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.random.usize(..times) == 0
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// Spaces, fields and regions to begin with.
    fn foundations(&mut self, scope: &mut Scope, block: &mut Block) {
        for _ in 0..self.random.usize(1..=2) {
            let action = self.new_space(scope);
            self.attempt(scope, block, action);
            let action = self.new_fields(scope);
            self.attempt(scope, block, action);
        }
        for _ in 0..self.random.usize(1..=3) {
            if let Some(action) = self.new_region(scope) {
                self.attempt(scope, block, action);
            }
        }
        for _ in 0..self.random.usize(1..=4) {
            self.add_partition(scope, block);
        }
    }

    fn fill_block(&mut self, scope: &mut Scope, block: &mut Block, statements: usize) {
        for _ in 0..3 * statements {
            if block.0.len() >= statements {
                break;
            }
            self.add(scope, block);
        }
    }

    /// Proposes a statement and perhaps adds it.
    fn add(&mut self, scope: &mut Scope, block: &mut Block) {
        if self.random.usize(..100) < self.profile.loops {
            return self.add_repeat(scope, block);
        }
        let fences = !scope.holding;
        let action = match self.random.usize(..100) {
            0..=1 => Some(self.new_space(scope)),
            2 => Some(self.new_fields(scope)),
            3 => self.new_region(scope),
            4 => self.scratch(scope),
            5..=16 => return self.add_partition(scope, block),
            17 if self.profile.destruction => self.destroy(scope),
            18 if self.profile.destruction => self.change_fields(scope),
            19..=65 => return self.add_launch(scope, block),
            66..=71 => self.fill(scope),
            72..=78 => return self.add_copy(scope, block),
            79..=83 if self.profile.inline && !scope.inner => return self.add_inline(scope, block),
            84..=85 if fences => Some(Action::MappingFence),
            86..=87 if fences => Some(Action::ExecutionFence),
            88..=92 => self.derive(scope),
            93..=96 => self.wait(scope),
            97..=99 => return self.add_attachment(scope, block),
            _ => None,
        };
        if let Some(action) = action {
            self.attempt(scope, block, action);
        }
    }

    /// Adds a statement if it has a meaning, and unless it is one refusal too many.
    fn attempt(&mut self, scope: &mut Scope, block: &mut Block, action: Action) -> bool {
        let statement = Statement::new(self.number(), action);
        let (mut world, mut context) = (self.world.clone(), scope.context.clone());
        let Ok(verdict) = world.step(&mut context, &statement) else { return false };
        if verdict != Verdict::Done && !self.once_in(self.profile.refusals) {
            return false;
        }
        (self.world, scope.context) = (world, context);
        if verdict == Verdict::Done {
            scope.learn(&statement.action);
        }
        block.0.push(statement);
        verdict == Verdict::Done
    }

    fn derive(&mut self, scope: &Scope) -> Option<Action> {
        use crate::program::Derived;
        use crate::value::Operator;
        let name = FutureName(self.number());
        let (one, many) = self.split_futures(scope);
        let derived = match self.random.usize(..6) {
            0 => Derived::Map(self.one_of(&one)?),
            1 => Derived::Zip(self.one_of(&one)?, self.one_of(&one)?),
            2 => {
                let operator = self.one_of(&[Operator::Sum, Operator::Max, Operator::Min, Operator::Xor])?;
                Derived::Reduce(self.one_of(&many)?, operator)
            }
            3 => Derived::Fold(self.one_of(&many)?),
            4 => {
                let operator = self.one_of(&[Operator::Sum, Operator::Max, Operator::Min, Operator::Xor])?;
                Derived::Scan(self.one_of(&many)?, operator, self.random.bool())
            }
            _ => {
                let source = self.one_of(&many)?;
                let points: Vec<_> = self.world.futures[&source].domain?.points().collect();
                Derived::Point(source, if self.once_in(10) { 77.into() } else { self.one_of(&points)? })
            }
        };
        Some(Action::Derive(name, derived))
    }

    /// Single results and those of index launches.
    fn split_futures(&self, scope: &Scope) -> (Vec<FutureName>, Vec<FutureName>) {
        let launches = scope.futures.iter().copied().filter(|name| !scope.copies.contains(name));
        launches.partition(|name| self.world.futures.get(name).is_some_and(|results| results.domain.is_none()))
    }

    fn wait(&mut self, scope: &Scope) -> Option<Action> {
        self.one_of(&scope.futures).map(Action::Wait)
    }

    /// Waits for what has not been waited for, so that all regions come into sight and all results are compared.
    fn wait_for_all(&mut self, scope: &mut Scope, block: &mut Block) {
        for name in scope.futures.clone() {
            let whole = scope.depth == 0 || self.random.bool();
            if whole && !scope.waited.contains(&name) {
                self.attempt(scope, block, Action::Wait(name));
            }
        }
    }

    /// All nodes of a tree that can be named.
    fn nodes(&self, scope: &Scope, root: SpaceName) -> Vec<Node> {
        let below = scope.partitions.iter().filter(|&&name| self.world.root(Node::Piece(name, 0)) == Ok(root));
        let pieces = below.flat_map(|&name| {
            let count = self.world.partitions[&name].pieces.len();
            (0..count).map(move |color| Node::Piece(name, color))
        });
        std::iter::once(Node::Root(root)).chain(pieces).collect()
    }

    /// A node of a region that the task may use.
    fn node_of(&mut self, scope: &Scope, region: RegionName) -> Option<Node> {
        let nodes = self.nodes(scope, self.world.regions.get(&region)?.space);
        if scope.context.created.contains(&region) || self.once_in(12) {
            return if self.once_in(3) { nodes.first().copied() } else { self.one_of(&nodes) };
        }
        let held: Vec<Node> = scope.context.held.iter().filter(|h| h.region == region).map(|h| h.node).collect();
        let within = |node: &Node| held.iter().any(|&ancestor| self.world.is_within(*node, ancestor));
        let mut allowed: Vec<Node> = nodes.into_iter().filter(within).collect();
        allowed.extend(held);
        self.one_of(&allowed)
    }
}

impl Scope {
    /// Remembers the names that a statement has made.
    fn learn(&mut self, action: &Action) {
        match action {
            Action::CreateSpace(name, _) => {
                self.spaces.push(*name);
                self.own_spaces.push(*name);
            }
            Action::CreateFields(name, ..) => {
                self.fields.push(*name);
                self.own_fields.push(*name);
            }
            Action::CreatePartition(name, ..) => {
                self.partitions.push(*name);
                self.own.push(*name);
            }
            Action::Copy(name, ..)
            | Action::CopyFields(name, ..)
            | Action::Contribute(name, ..)
            | Action::Gather(name, _)
            | Action::Scatter(name, _)
            | Action::Detach(name, ..) => {
                self.futures.push(*name);
                self.copies.push(*name);
            }
            Action::Derive(name, _) => self.futures.push(*name),
            Action::Launch(launch) => {
                self.futures.push(launch.name);
                if matches!(launch.body, Body::Blocks { .. }) {
                    self.nested.push(launch.name);
                }
            }
            Action::Wait(name) => self.waited.push(*name),
            Action::Forget(name) => self.futures.retain(|known| known != name),
            _ => {}
        }
    }
}

/// Shares a launch.
fn shared<T>(value: T) -> Arc<T> {
    Arc::new(value)
}
