//! The same statement once more: with new names for what it makes, and the latest names of what it uses.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::program::{
    Action, Block, Body, Column, Derived, FieldsName, FutureName, Indirect, Inline, Launch, Link, Node, PartitionName,
    Passed, Pick, Place, RegionName, SpaceName, Split, Statement, StatementId, Target, Use,
};

/// Under which names the latest turn knows what the first turn has made.
#[derive(Clone, Default)]
pub(super) struct Names {
    spaces: HashMap<SpaceName, SpaceName>,
    partitions: HashMap<PartitionName, PartitionName>,
    fields: HashMap<FieldsName, FieldsName>,
    regions: HashMap<RegionName, RegionName>,
    futures: HashMap<FutureName, FutureName>,
}

impl Names {
    /// The name of a future in the latest turn.
    pub(super) fn future(&self, name: FutureName) -> FutureName {
        latest(&self.futures, name)
    }
}

fn latest<N: Copy + Eq + Hash>(names: &HashMap<N, N>, name: N) -> N {
    names.get(&name).copied().unwrap_or(name)
}

/// Makes the statements of one more turn.
pub(super) struct Turn<'a> {
    pub(super) names: &'a mut Names,
    /// Gives out numbers.
    pub(super) next: &'a mut u32,
    /// Gets the futures whose names go to others.
    pub(super) superseded: &'a mut Vec<FutureName>,
}

impl Turn<'_> {
    fn number(&mut self) -> u32 {
        *self.next += 1;
        *self.next
    }

    fn new_future(&mut self, name: FutureName) -> FutureName {
        let new = FutureName(self.number());
        self.superseded.push(self.names.futures.insert(name, new).unwrap_or(name));
        new
    }

    pub(super) fn statement(&mut self, statement: &Statement) -> Statement {
        let id = StatementId(self.number());
        Statement { id, site: statement.site, action: self.action(&statement.action) }
    }

    fn block(&mut self, block: &Block) -> Block {
        Block(block.0.iter().map(|statement| self.statement(statement)).collect())
    }

    fn action(&mut self, action: &Action) -> Action {
        match action {
            Action::CreateSpace(name, rects) => {
                let new = SpaceName(self.number());
                self.names.spaces.insert(*name, new);
                Action::CreateSpace(new, rects.clone())
            }
            Action::DestroySpace(name) => Action::DestroySpace(latest(&self.names.spaces, *name)),
            Action::CreateFields(name, kinds, limit) => {
                let new = FieldsName(self.number());
                self.names.fields.insert(*name, new);
                Action::CreateFields(new, kinds.clone(), *limit)
            }
            Action::AllocateField(fields, kind) => Action::AllocateField(latest(&self.names.fields, *fields), *kind),
            Action::FreeField(fields, field) => Action::FreeField(latest(&self.names.fields, *fields), *field),
            Action::CreateRegion(name, space, fields) => {
                let (space, fields) = (latest(&self.names.spaces, *space), latest(&self.names.fields, *fields));
                let new = RegionName(self.number());
                self.names.regions.insert(*name, new);
                Action::CreateRegion(new, space, fields)
            }
            Action::DestroyRegion(region) => Action::DestroyRegion(self.region(*region)),
            Action::Scratch(name, space, fields) => {
                let (space, fields) = (latest(&self.names.spaces, *space), latest(&self.names.fields, *fields));
                let new = RegionName(self.number());
                self.names.regions.insert(*name, new);
                Action::Scratch(new, space, fields)
            }
            Action::Drop(region) => Action::Drop(self.region(*region)),
            Action::CreatePartition(name, node, split) => {
                let (node, split) = (self.node(*node), self.split(split));
                let new = PartitionName(self.number());
                self.names.partitions.insert(*name, new);
                Action::CreatePartition(new, node, split)
            }
            Action::DestroyPartition(name) => Action::DestroyPartition(self.partition(*name)),
            Action::Launch(launch) => Action::Launch(Arc::new(self.launch(launch))),
            Action::Fill(column, word) => Action::Fill(self.column(*column), *word),
            Action::Invalidate(place, fields) => Action::Invalidate(self.place(*place), fields.clone()),
            Action::ForgetCopies(place, fields) => Action::ForgetCopies(self.place(*place), fields.clone()),
            Action::Attach(name, column, word, backing) => {
                let (column, new) = (self.column(*column), FutureName(self.number()));
                self.names.futures.insert(*name, new);
                Action::Attach(new, column, *word, *backing)
            }
            Action::Detach(name, handle, flush) => {
                let handle = self.names.future(*handle);
                Action::Detach(self.new_future(*name), handle, *flush)
            }
            Action::Copy(name, from, to) => {
                let (from, to) = (self.column(*from), self.column(*to));
                Action::Copy(self.new_future(*name), from, to)
            }
            Action::CopyFields(name, from, to, pairs) => {
                let (from, to) = (self.place(*from), self.place(*to));
                Action::CopyFields(self.new_future(*name), from, to, pairs.clone())
            }
            Action::Contribute(name, operator, from, to) => {
                let (from, to) = (self.column(*from), self.column(*to));
                Action::Contribute(self.new_future(*name), *operator, from, to)
            }
            Action::Gather(name, indirect) => {
                let indirect = self.indirect(*indirect);
                Action::Gather(self.new_future(*name), indirect)
            }
            Action::Scatter(name, indirect) => {
                let indirect = self.indirect(*indirect);
                Action::Scatter(self.new_future(*name), indirect)
            }
            Action::Inline(Inline { column, write, late, during }) => {
                let column = self.column(*column);
                Action::Inline(Inline { column, write: *write, late: *late, during: self.block(during) })
            }
            Action::MappingFence => Action::MappingFence,
            Action::ExecutionFence => Action::ExecutionFence,
            Action::Derive(name, derived) => {
                let derived = self.derived(*derived);
                Action::Derive(self.new_future(*name), derived)
            }
            Action::Wait(name) => Action::Wait(self.names.future(*name)),
            Action::Forget(name) => Action::Forget(self.names.future(*name)),
            Action::Repeat(turns) => Action::Repeat(turns.iter().map(|turn| self.block(turn)).collect()),
            Action::Traced(name, block) => Action::Traced(*name, self.block(block)),
        }
    }

    fn launch(&mut self, launch: &Launch) -> Launch {
        let Launch { name, domain, requirements, arguments, body, fault } = launch;
        let requirements = requirements.iter().map(|wanted| self.wanted(wanted)).collect();
        let arguments = arguments.iter().map(|passed| match passed {
            Passed::Value(value) => Passed::Value(*value),
            Passed::Future(name) => Passed::Future(self.names.future(*name)),
            Passed::PerPoint(name) => Passed::PerPoint(self.names.future(*name)),
        });
        let arguments = arguments.collect();
        let body = match body {
            Body::Leaf => Body::Leaf,
            Body::Blocks { inner, blocks } => {
                Body::Blocks { inner: *inner, blocks: blocks.iter().map(|block| self.block(block)).collect() }
            }
        };
        Launch { name: self.new_future(*name), domain: *domain, requirements, arguments, body, fault: *fault }
    }

    fn wanted(&self, Use { region, target, fields, right }: &Use) -> Use {
        let target = match target {
            Target::Node(node) => Target::Node(self.node(*node)),
            Target::Listed(bound, nodes) => Target::Listed(self.node(*bound), self.nodes(nodes)),
            Target::Piece(partition, pick) => {
                let pick = match pick {
                    Pick::Listed(nodes) => Pick::Listed(self.nodes(nodes)),
                    other => other.clone(),
                };
                Target::Piece(self.partition(*partition), pick)
            }
        };
        Use { region: self.region(*region), target, fields: fields.clone(), right: *right }
    }

    fn split(&self, split: &Split) -> Split {
        let partition = |name: &PartitionName| self.partition(*name);
        match split {
            Split::Within(other) => Split::Within(partition(other)),
            Split::Union(a, b) => Split::Union(partition(a), partition(b)),
            Split::Intersection(a, b) => Split::Intersection(partition(a), partition(b)),
            Split::Difference(a, b) => Split::Difference(partition(a), partition(b)),
            Split::ByField(column, count) => Split::ByField(self.column(*column), *count),
            Split::Image(region, sources, column) => {
                Split::Image(self.region(*region), partition(sources), self.column(*column))
            }
            Split::Preimage(column, region, targets) => {
                Split::Preimage(self.column(*column), self.region(*region), partition(targets))
            }
            Split::ByRanges(column, ranges) => Split::ByRanges(self.column(*column), ranges.clone()),
            Split::Named(region, sources, link) => {
                Split::Named(self.region(*region), partition(sources), self.link(*link))
            }
            Split::Naming(link, region, targets) => {
                Split::Naming(self.link(*link), self.region(*region), partition(targets))
            }
            Split::Equal(_) | Split::Weighted(_) | Split::Tiles(..) | Split::Explicit(..) | Split::Coloring(..) => {
                split.clone()
            }
        }
    }

    fn derived(&self, derived: Derived) -> Derived {
        let future = |name| self.names.future(name);
        match derived {
            Derived::Map(source) => Derived::Map(future(source)),
            Derived::Zip(left, right) => Derived::Zip(future(left), future(right)),
            Derived::Reduce(source, operator) => Derived::Reduce(future(source), operator),
            Derived::Fold(source) => Derived::Fold(future(source)),
            Derived::Point(source, point) => Derived::Point(future(source), point),
            Derived::Scan(source, operator, inclusive) => Derived::Scan(future(source), operator, inclusive),
        }
    }

    fn indirect(&self, Indirect { from, pointers, to }: Indirect) -> Indirect {
        Indirect { from: self.column(from), pointers: self.column(pointers), to: self.column(to) }
    }

    fn link(&self, Link { column, meaning }: Link) -> Link {
        Link { column: self.column(column), meaning }
    }

    fn column(&self, Column { place, field }: Column) -> Column {
        Column { place: self.place(place), field }
    }

    fn place(&self, Place { region, node }: Place) -> Place {
        Place { region: self.region(region), node: self.node(node) }
    }

    fn nodes(&self, nodes: &[Node]) -> Vec<Node> {
        nodes.iter().map(|&node| self.node(node)).collect()
    }

    fn node(&self, node: Node) -> Node {
        match node {
            Node::Root(space) => Node::Root(latest(&self.names.spaces, space)),
            Node::Piece(partition, color) => Node::Piece(self.partition(partition), color),
        }
    }

    fn partition(&self, name: PartitionName) -> PartitionName {
        latest(&self.names.partitions, name)
    }

    fn region(&self, name: RegionName) -> RegionName {
        latest(&self.names.regions, name)
    }
}
