//! Random launches.

use maniple::{AnyRect, Rect};

use super::{Generator, Scope, shared};
use crate::oracle::{Trouble, Verdict, points_of};
use crate::program::{
    Action, Block, Body, Column, Fault, FieldNumber, FutureName, Launch, Node, PartitionName, Passed, Pick, RegionName,
    Right, Statement, Target, Use,
};
use crate::value::Operator;

impl Generator {
    pub(super) fn add_launch(&mut self, scope: &mut Scope, block: &mut Block) {
        let Some(mut launch) = self.new_launch(scope) else { return };
        // Tasks without data are rare: there is little to see.
        if launch.requirements.is_empty() && !self.once_in(4) {
            return;
        }
        let nested = scope.depth < self.profile.depth && !self.is_plain && self.once_in(3);
        if self.profile.faults && !self.is_plain && self.once_in(10) {
            let points = points_of(&launch).len().max(1);
            let fault = self.one_of(&[Fault::PanicsAtOnce, Fault::PanicsAtEnd, Fault::Fails]);
            launch.fault = fault.map(|fault| (self.random.usize(..points), fault));
        }
        if !nested || points_of(&launch).len() > 6 || self.world.check_launch(&scope.context, &launch).is_err() {
            self.attempt(scope, block, Action::Launch(shared(launch)));
            return;
        }
        let (world, random) = (self.world.clone(), scope.clone());
        if self.nest(scope, block, launch).is_err() {
            (self.world, *scope) = (world, random);
        }
    }

    /// Makes the blocks of a launch, point by point, and adds it.
    fn nest(&mut self, scope: &mut Scope, block: &mut Block, mut launch: Launch) -> Result<(), Trouble> {
        let targets = self.world.check_launch(&scope.context, &launch)?;
        let inner = self.once_in(3);
        let earlier = self.shared_futures(scope);
        let (mut blocks, mut values, mut created) = (Vec::new(), Vec::new(), std::collections::BTreeSet::new());
        for number in 0..points_of(&launch).len() {
            let context = self.world.enter(scope.context.start, &launch, number, &targets)?;
            let mut child = Scope {
                context,
                depth: scope.depth + 1,
                inner,
                spaces: scope.spaces.clone(),
                fields: scope.fields.clone(),
                partitions: scope.partitions.clone(),
                futures: earlier.clone(),
                ..Scope::default()
            };
            let mut statements = Block::default();
            let count = self.random.usize(..=6);
            self.fill_block(&mut child, &mut statements, count);
            self.complete_discards(&mut child, &mut statements);
            self.wait_for_all(&mut child, &mut statements);
            self.drop_scratch(&mut child, &mut statements);
            blocks.push(statements);
            let (value, regions) = self.world.leave(&launch, number, child.context)?;
            values.push(value);
            if self.profile.hand_up {
                created.extend(regions);
            }
        }
        self.world.finish(&mut scope.context, &launch, values, created);
        launch.body = Body::Blocks { inner, blocks };
        let action = Action::Launch(shared(launch));
        scope.learn(&action);
        let statement = Statement::new(self.number(), action);
        self.world.verdicts.insert(statement.id, Verdict::Done);
        block.0.push(statement);
        Ok(())
    }

    /// Results of earlier launches that a task comes to know without being given them as arguments, and may wait for:
    /// not those that fail, nor on several nodes.
    fn shared_futures(&mut self, scope: &Scope) -> Vec<FutureName> {
        if self.profile.faults || !self.profile.hand_up || !self.once_in(2) {
            return Vec::new();
        }
        scope.futures.iter().copied().filter(|name| !scope.copies.contains(name)).collect()
    }

    /// Mostly writes what the task promised to write.
    fn complete_discards(&mut self, scope: &mut Scope, block: &mut Block) {
        for held in scope.context.held.clone() {
            for &field in &held.fields {
                if held.right == Right::Discard && !self.once_in(8) {
                    let place = crate::program::Place { region: held.region, node: held.node };
                    let column = Column { place, field };
                    let random = self.random.u64(..);
                    self.attempt(scope, block, Action::Fill(column, random));
                }
            }
        }
    }

    fn new_launch(&mut self, scope: &Scope) -> Option<Launch> {
        let name = FutureName(self.number());
        let leader = if self.once_in(3) { None } else { self.usable_partition(scope) };
        let domain = leader.map(|leader| self.domain(leader));
        let mut launch =
            Launch { name, domain, requirements: Vec::new(), arguments: Vec::new(), body: Body::Leaf, fault: None };
        launch.arguments = self.arguments(scope, domain);
        let wanted = if self.once_in(12) { 0 } else { self.random.usize(1..=4) };
        for _ in 0..wanted {
            let Some(requirement) = self.requirement(scope, leader, &launch) else { continue };
            launch.requirements.push(requirement);
            // One that gets in the way of the others is mostly taken back.
            if self.world.check_launch(&scope.context, &launch).is_err() && !self.once_in(12) {
                launch.requirements.pop();
            }
        }
        Some(launch)
    }

    /// A task that writes all of a column.
    pub(super) fn writer_of(&mut self, Column { place, field }: Column) -> Launch {
        let target = Target::Node(place.node);
        let written = Use { region: place.region, target, fields: vec![field], right: Right::Discard };
        Launch {
            name: FutureName(self.number()),
            domain: None,
            requirements: vec![written],
            arguments: Vec::new(),
            body: Body::Leaf,
            fault: None,
        }
    }

    fn usable_partition(&mut self, scope: &Scope) -> Option<PartitionName> {
        let roots: Vec<_> =
            scope.regions().iter().filter_map(|name| Some(self.world.regions.get(name)?.space)).collect();
        let usable = |name: &&PartitionName| {
            self.world.root(Node::Piece(**name, 0)).is_ok_and(|root| roots.contains(&root))
                && !self.world.partitions[*name].destroyed
        };
        let usable: Vec<_> = scope.partitions.iter().filter(usable).copied().collect();
        self.one_of(&usable)
    }

    /// Mostly the colors of a partition.
    fn domain(&mut self, leader: PartitionName) -> AnyRect {
        let colors = self.world.partitions[&leader].colors;
        match self.random.usize(..12) {
            0 => Rect::<1>::from(0..self.random.i64(0..=7)).into(),
            1 => Rect::from_shape([self.random.i64(1..=3), self.random.i64(1..=2)]).into(),
            2 => {
                let parts = colors.split(2);
                self.one_of(&parts).unwrap_or(colors)
            }
            _ => colors,
        }
    }

    fn arguments(&mut self, scope: &Scope, domain: Option<AnyRect>) -> Vec<Passed> {
        let (one, many) = self.split_futures(scope);
        let fitting: Vec<FutureName> =
            many.into_iter().filter(|name| domain.is_some() && self.world.futures[name].domain == domain).collect();
        let mut arguments = Vec::new();
        while self.once_in(2) && arguments.len() < 4 {
            let passed = match self.random.usize(..4) {
                0 => Some(Passed::Value(self.random.u64(..))),
                1 | 2 => self.one_of(&one).map(Passed::Future),
                _ => self.one_of(&fitting).map(Passed::PerPoint),
            };
            arguments.extend(passed);
        }
        arguments
    }

    fn requirement(&mut self, scope: &Scope, leader: Option<PartitionName>, launch: &Launch) -> Option<Use> {
        let mut region = self.one_of(&scope.regions())?;
        let right = self.right();
        let target = match leader {
            Some(leader) if !self.once_in(6) => {
                // The leader's own tree, mostly: that is where the domain fits.
                let root = self.world.root(Node::Piece(leader, 0)).ok()?;
                let mut of_tree = scope.regions();
                of_tree.retain(|name| self.world.regions.get(name).is_some_and(|region| region.space == root));
                region = self.one_of(&of_tree).unwrap_or(region);
                let same = self.one_of(&of_tree).is_some() && !self.once_in(3);
                let partition = if same { leader } else { self.partition_of(scope, region)? };
                Target::Piece(partition, self.pick(scope, partition, launch))
            }
            Some(_) if self.random.bool() => {
                let (bound, nodes) = (self.node_of(scope, region)?, self.listed(scope, region, launch));
                Target::Listed(bound, nodes)
            }
            _ => Target::Node(self.node_of(scope, region)?),
        };
        // What is held by a task is usable through the pieces below it only.
        let fields = self.fields(scope, region, right)?;
        Some(Use { region, target, fields, right })
    }

    fn partition_of(&mut self, scope: &Scope, region: RegionName) -> Option<PartitionName> {
        let root = self.world.regions.get(&region)?.space;
        let of_tree = |name: &&PartitionName| self.world.root(Node::Piece(**name, 0)) == Ok(root);
        let partitions: Vec<_> = scope.partitions.iter().filter(of_tree).copied().collect();
        self.one_of(&partitions)
    }

    fn pick(&mut self, scope: &Scope, partition: PartitionName, launch: &Launch) -> Pick {
        let fits = launch.domain == Some(self.world.partitions[&partition].colors);
        match self.random.usize(..10) {
            0..=5 if fits => Pick::Identity,
            6 => Pick::Affine(self.random.usize(1..=3), self.random.usize(..5)),
            7 => {
                let below = |node: &Node| self.is_below(*node, partition);
                let root = self.world.root(Node::Piece(partition, 0));
                let nodes = root.map(|root| self.nodes(scope, root)).unwrap_or_default();
                let nodes: Vec<Node> = nodes.into_iter().filter(below).collect();
                let points = points_of(launch).len().max(1);
                let listed: Vec<Node> = (0..points).filter_map(|_| self.one_of(&nodes)).collect();
                if listed.is_empty() { Pick::Linearized } else { Pick::Listed(listed) }
            }
            8 if self.once_in(4) => Pick::Identity,
            8 => Pick::Linear(self.random.i64(-1..=2), self.random.i64(-2..=2), !self.once_in(4)),
            _ => Pick::Linearized,
        }
    }

    fn is_below(&self, node: Node, partition: PartitionName) -> bool {
        match node {
            Node::Root(_) => false,
            Node::Piece(name, _) => {
                name == partition || self.world.parent(node).is_some_and(|parent| self.is_below(parent, partition))
            }
        }
    }

    fn listed(&mut self, scope: &Scope, region: RegionName, launch: &Launch) -> Vec<Node> {
        let points = points_of(launch).len().max(1);
        (0..points).filter_map(|_| self.node_of(scope, region)).collect()
    }

    fn right(&mut self) -> Right {
        match self.random.usize(..12) {
            0..=3 => Right::Read,
            4..=6 => Right::Write,
            7..=8 => Right::Discard,
            _ => Right::Reduce(self.one_of(&Operator::ALL).unwrap_or(Operator::Sum)),
        }
    }

    /// Some fields of a region: those held, mostly, and those that an operator is known on.
    fn fields(&mut self, scope: &Scope, region: RegionName, right: Right) -> Option<Vec<FieldNumber>> {
        let kinds = self.world.kinds(region).ok()?;
        let created = scope.context.created.contains(&region);
        let held =
            |field: usize| scope.context.held.iter().any(|held| held.region == region && held.fields.contains(&field));
        let usable = kinds.iter().enumerate().filter(|&(field, kind)| {
            let known = |kind| !matches!(right, Right::Reduce(operator) if !operator.is_on(kind));
            kind.is_some_and(known) && (created || held(field))
        });
        let mut usable: Vec<FieldNumber> = usable.map(|(field, _)| field).collect();
        let refused = kinds.iter().enumerate().filter(|&(field, kind)| {
            let unknown = |kind| matches!(right, Right::Reduce(operator) if operator.is_refused_on(kind));
            kind.is_some_and(unknown) && (created || held(field))
        });
        let refused: Vec<FieldNumber> = refused.map(|(field, _)| field).collect();
        if !refused.is_empty() && self.once_in(25) {
            usable = refused;
        }
        if self.once_in(25) {
            usable = (0..self.world.kinds(region).ok()?.len()).collect();
        }
        self.random.shuffle(&mut usable);
        let most = usable.len().min(3);
        usable.truncate(if most == 0 { 0 } else { self.random.usize(1..=most) });
        usable.sort_unstable();
        (!usable.is_empty()).then_some(usable)
    }
}
