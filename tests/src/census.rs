//! Census of random programs: a test is worth only what its programs do.

use std::collections::BTreeMap;
use std::fmt;

use crate::environment::Automatic;
use crate::oracle::{Pieces, Verdict, World, points_of};
use crate::program::{
    Action, Backing, Block, Body, Derived, Inline, Launch, Node, PartitionName, Passed, Pick, Right, Split, Statement,
    Target, Use,
};
use crate::trial::Trial;

/// How often each thing occurs in some programs, by its name.
///
/// Statements that must be refused count by the reason only, and all others by what they are.
#[derive(Clone, Debug, Default)]
pub struct Census(BTreeMap<String, u64>);

impl Census {
    /// How often a thing occurs; 0 if there is no such thing.
    #[must_use]
    pub fn of(&self, thing: &str) -> u64 {
        self.0.get(thing).copied().unwrap_or_default()
    }

    /// Counts what a trial's program consists of, and what it runs in.
    pub fn count(&mut self, trial: &Trial) {
        let (program, environment) = (trial.program(), trial.environment());
        self.one(format!("family {}", trial.family));
        self.one(format!("mapper {:?}", environment.mapper));
        if environment.rules.is_some() {
            self.one("mapping file");
        }
        self.one(format!("workers {}", environment.workers));
        self.one(format!("window {}", environment.window));
        self.one(match environment.tracing {
            None => "no tracing",
            Some(Automatic::Off) => "tracing",
            Some(Automatic::On) => "automatic tracing",
        });
        match World::run(&program.body) {
            Ok((world, _)) => self.block(&world, &program.body, 0),
            Err(_) => self.one("no meaning"),
        }
    }

    fn one(&mut self, thing: impl Into<String>) {
        *self.0.entry(thing.into()).or_default() += 1;
    }

    fn block(&mut self, world: &World, block: &Block, depth: usize) {
        for statement in &block.0 {
            match world.verdicts.get(&statement.id) {
                Some(Verdict::Refused(why)) => {
                    let why: String = why.chars().filter(|c| !c.is_ascii_digit()).collect();
                    self.one(format!("refused: {why}"));
                }
                _ => self.statement(world, statement, depth),
            }
        }
    }

    fn statement(&mut self, world: &World, statement: &Statement, depth: usize) {
        match &statement.action {
            Action::CreateSpace(_, rects) => {
                let dim = rects.first().map_or(0, |rect| rect.dim());
                self.one(format!("space of {dim} dimensions"));
                let hull = rects.iter().copied().reduce(|hull, rect| hull.hull(&rect).unwrap_or(hull));
                match hull.map_or(0, |hull| hull.volume()) {
                    0 => self.one("space without points"),
                    volume if volume > 1 << 32 => self.one("space of points far apart"),
                    _ => {}
                }
            }
            Action::DestroySpace(_) => self.one("index space destroyed"),
            Action::CreateFields(_, kinds, _) => {
                kinds.iter().for_each(|kind| self.one(format!("field {}", name(kind))))
            }
            Action::AllocateField(..) => self.one("field allocated later"),
            Action::FreeField(..) => self.one(if depth == 0 { "field freed" } else { "field freed by a nested task" }),
            Action::CreateRegion(..) => self.one(if depth == 0 { "region" } else { "region of a nested task" }),
            Action::DestroyRegion(_) => {
                self.one(if depth == 0 { "region destroyed" } else { "region destroyed by a nested task" });
            }
            Action::CreatePartition(partition, node, split) => self.partition(world, *partition, *node, split),
            Action::DestroyPartition(_) => self.one("partition destroyed"),
            Action::Launch(launch) => self.launch(world, launch, depth),
            Action::Fill(..) => self.one("fill"),
            Action::Scratch(..) => self.one("scratch region"),
            Action::Drop(..) => self.one("scratch region dropped"),
            Action::Invalidate(..) => self.one("invalidation"),
            Action::ForgetCopies(..) => self.one("copies forgotten"),
            Action::Attach(_, _, _, backing) => self.one(match backing {
                Backing::Memory => "memory attached",
                Backing::ReadOnly => "memory attached to be read only",
                Backing::Array { .. } => "array attached",
            }),
            Action::Detach(_, _, flush) => {
                self.one(if *flush { "memory detached" } else { "memory detached without its values" });
            }
            Action::Copy(..) => self.one("copy"),
            Action::CopyFields(_, _, _, pairs) if pairs.len() > 1 => self.one("copy of several fields"),
            Action::CopyFields(..) => self.one("copy of fields, one or none"),
            Action::Contribute(_, operator, ..) => self.one(format!("copy with operator {operator:?}")),
            Action::Gather(..) => self.one("gather"),
            Action::Scatter(..) => self.one("scatter"),
            Action::Inline(inline) => self.inline(world, inline, depth),
            Action::MappingFence => self.one("mapping fence"),
            Action::ExecutionFence => self.one("execution fence"),
            Action::Derive(_, derived) => self.one(match derived {
                Derived::Map(_) => "future mapped",
                Derived::Zip(..) => "futures zipped",
                Derived::Reduce(..) => "future map reduced",
                Derived::Fold(_) => "future map folded",
                Derived::Point(..) => "future of a future map",
                Derived::Scan(_, _, true) => "future map scanned",
                Derived::Scan(_, _, false) => "future map scanned without each itself",
            }),
            Action::Wait(_) => self.one(if depth == 0 { "wait" } else { "wait in a nested task" }),
            Action::Forget(_) => self.one("result that nobody asks for any more"),
            Action::Repeat(turns) => self.repeat(world, turns, depth),
            Action::Traced(_, block) => {
                self.one(if depth == 0 { "trace" } else { "trace in a nested task" });
                self.block(world, block, depth);
            }
        }
    }

    fn repeat(&mut self, world: &World, turns: &[Block], depth: usize) {
        self.one(if depth == 0 { "loop" } else { "loop in a nested task" });
        if turns.len() >= 10 {
            self.one("loop of ten turns or more");
        }
        let names = turns.iter().flat_map(|turn| &turn.0).filter_map(|statement| match &statement.action {
            Action::Traced(name, _) => Some(name),
            _ => None,
        });
        let names: std::collections::BTreeSet<_> = names.collect();
        self.one(match names.len() {
            0 => "loop without a trace",
            1 => "loop with a trace",
            _ => "loop with several traces",
        });
        let sites = |turn: &Block| {
            let mut sites = Vec::new();
            turn.each(&mut |statement| {
                if !matches!(statement.action, Action::Forget(_)) {
                    sites.push(statement.site);
                }
            });
            sites
        };
        let turns_alike = turns.windows(2).filter(|pair| sites(&pair[0]) == sites(&pair[1])).count();
        (0..turns.len()).for_each(|_| self.one("turn"));
        (0..turns_alike).for_each(|_| self.one("turn like the one before"));
        turns.iter().for_each(|turn| self.block(world, turn, depth));
    }

    fn inline(&mut self, world: &World, inline: &Inline, depth: usize) {
        self.one(if inline.write { "inline mapping that writes" } else { "inline mapping that reads" });
        if !inline.during.0.is_empty() {
            self.one("inline mapping held while other statements run");
        }
        if inline.late {
            self.one("inline mapping that is waited for late");
        }
        self.block(world, &inline.during, depth);
    }

    fn partition(&mut self, world: &World, partition: PartitionName, node: Node, split: &Split) {
        let split = match split {
            Split::Tiles(_, halo) if halo.iter().any(|&halo| halo > 0) => "Tiles with a halo".to_owned(),
            Split::Named(_, _, link) | Split::Naming(link, ..) => format!("{} by {}", name(split), name(&link.meaning)),
            split => name(split),
        };
        self.one(format!("split {split}"));
        if let Node::Piece(..) = node {
            self.one("partition of a piece");
        }
        let (Some(pieces), Ok(whole)) = (world.partitions.get(&partition), world.points(node)) else { return };
        let total: usize = pieces.pieces.iter().map(|piece| piece.len()).sum();
        let covered = pieces.pieces.iter().flat_map(|piece| piece.iter()).collect::<std::collections::BTreeSet<_>>();
        self.one(if is_aliased(pieces) { "partition aliased" } else { "partition disjoint" });
        self.one(if covered.len() == whole.len() { "partition complete" } else { "partition incomplete" });
        if total > 0 && pieces.pieces.iter().filter(|piece| !piece.is_empty()).count() > 1 {
            self.one(format!("split {split} with several pieces that are not empty"));
        }
    }

    fn launch(&mut self, world: &World, launch: &Launch, depth: usize) {
        self.one(match launch.domain {
            None => "launch of one task",
            Some(_) if points_of(launch).is_empty() => "launch over no points",
            Some(_) => "launch over points",
        });
        self.one(format!("launch at depth {depth}"));
        launch.requirements.iter().for_each(|wanted| self.requirement(world, wanted));
        for argument in &launch.arguments {
            self.one(match argument {
                Passed::Value(_) => "argument that is a value",
                Passed::Future(_) => "argument that is a future",
                Passed::PerPoint(_) => "argument that is a future map",
            });
        }
        if let Some((_, fault)) = launch.fault {
            self.one(format!("fault {fault:?}"));
        }
        if let Body::Blocks { inner, blocks } = &launch.body {
            self.one(if *inner { "launch of an inner task" } else { "launch of a task with a context" });
            blocks.iter().for_each(|block| self.block(world, block, depth + 1));
        }
    }

    fn requirement(&mut self, world: &World, wanted: &Use) {
        self.one(match wanted.right {
            Right::Read => "privilege reads".to_owned(),
            Right::Write => "privilege writes".to_owned(),
            Right::Discard => "privilege discards".to_owned(),
            Right::Reduce(operator) => format!("privilege reduces({operator:?})"),
        });
        self.one(match &wanted.target {
            Target::Node(_) => "target that is a region".to_owned(),
            Target::Listed(..) => "target below a region by a custom projection".to_owned(),
            Target::Piece(_, Pick::Listed(_)) => "target below a partition by a custom projection".to_owned(),
            Target::Piece(_, pick) => format!("target that is a piece by projection {}", name(pick)),
        });
        if let Target::Piece(partition, _) = wanted.target
            && world.partitions.get(&partition).is_some_and(|pieces| is_aliased(pieces))
        {
            self.one("target in an aliased partition");
        }
    }
}

fn is_aliased(pieces: &Pieces) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    !pieces.pieces.iter().flat_map(|piece| piece.iter()).all(|point| seen.insert(point))
}

/// The name of a variant.
fn name(value: &impl fmt::Debug) -> String {
    format!("{value:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(thing, count)| writeln!(f, "{count:>9}  {thing}"))
    }
}
