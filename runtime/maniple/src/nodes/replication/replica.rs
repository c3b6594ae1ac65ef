//! The knowledge of a node about the program that it runs with others, one launch after the other.

use std::sync::Arc;

use maniple_analysis::distribution::{Blocks, Coherence, Operators};
use maniple_cluster::Rounds;
use maniple_realm::locks::Mutex;
use maniple_region::{FieldMask, LogicalRegion, TreeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::directory::blocks;
use super::knowledge::{Knowledge, shapes};
use super::node::JobNode;
use super::operations::{Check, mappers};
use super::plan::LaunchPlan;
use super::predictor::Predictor;
use super::preparation::ExchangedPieces;
use crate::context::{ContextPart, ContextState};
use crate::support::error::Result;

/// A program that runs on several nodes, as one of them sees it.
pub(crate) struct Replica {
    pub(super) node: Arc<JobNode>,
    pub(super) check: Arc<Check>,
    pub(super) program: Mutex<ReplicaProgram>,
}

impl ContextPart for Replica {
    fn made(&self, region: &LogicalRegion) {
        self.make(region);
    }

    fn destroyed(&self, _context: &ContextState, region: &LogicalRegion) {
        self.destroy(region);
    }

    fn zeroed(&self, region: &LogicalRegion, fields: &FieldMask) {
        self.replace("fills", region, fields, None);
    }

    fn forget_trees(&self, trees: &[TreeId]) {
        trees.iter().for_each(|&tree| self.forget(tree));
    }
}

/// The state of a program: all that follows from its operations so far.
#[derive(Default)]
pub(super) struct ReplicaProgram {
    pub(super) trees: FxHashMap<TreeId, Knowledge>,
    pub(super) plans: FxHashMap<u64, Arc<LaunchPlan>>,
    pub(super) predictor: Predictor<LaunchPlan>,
    /// How many plans are of launches over distributed partitions.
    pub(super) plans_of_distributed: usize,
    /// The regions that it has made and that are there: as which one each was made.
    pub(super) regions: FxHashMap<TreeId, u64>,
    pub(super) regions_made: u64,
    pub(super) pieces: ExchangedPieces,
    pub(super) operators: Operators,
}

impl Replica {
    /// The replica of a task, if the task is a program that runs on several nodes.
    #[inline]
    pub(crate) fn of(context: &ContextState) -> Option<&Self> {
        context.parts.program.get()
    }

    /// A program begins, on a node that has mappers of these names.
    pub(crate) fn new(node: &Arc<JobNode>, names_of_mappers: &Arc<[Box<str>]>) -> Self {
        let check = Check::begin(node);
        if !names_of_mappers.is_empty() {
            check.add(node, mappers(names_of_mappers));
        }
        Self { node: Arc::clone(node), check, program: Mutex::default() }
    }

    /// The numbers that this node itself has for the states of trees, which other nodes may number differently.
    pub(super) fn own_states(&self, roots: &[LogicalRegion]) -> Vec<u64> {
        let mut program = self.program.lock();
        let states = roots.iter().map(|root| match self.knowledge(&mut program, root) {
            Knowledge::InBlocks(blocks) => blocks.own_state(),
            Knowledge::Whole(coherence) => coherence.state(),
        });
        states.collect()
    }

    /// All nodes have said what they call the states of trees.
    pub(super) fn agree_on(&self, roots: &[LogicalRegion], states: &[Vec<u64>]) {
        let mut program = self.program.lock();
        for (number, root) in roots.iter().enumerate() {
            if let Knowledge::InBlocks(blocks) = self.knowledge(&mut program, root) {
                blocks.agree(states.iter().filter_map(|states| states.get(number).copied()).collect());
            }
        }
    }

    /// The number of the state that each tree is in, if nodes have agreed on it.
    pub(super) fn states(&self, program: &mut ReplicaProgram, roots: &[LogicalRegion]) -> Option<SmallVec<[u64; 2]>> {
        let state = |root: &LogicalRegion| match self.knowledge(program, root) {
            Knowledge::Whole(coherence) => Some(coherence.state()),
            Knowledge::InBlocks(blocks) => blocks.state(),
        };
        roots.iter().map(state).collect()
    }

    /// Nodes agree on the states of trees.
    pub(super) fn agree(&self, roots: &[LogicalRegion], rounds: &mut Rounds<'_>) -> Result<()> {
        // It is about to wait.
        self.check.compare(&self.node);
        let exchanged = rounds.exchange::<Vec<u64>, ()>(self.own_states(roots), Vec::new())?;
        self.agree_on(roots, &exchanged.values);
        Ok(())
    }

    /// The knowledge about the places of a region tree's values.
    pub(super) fn knowledge<'a>(&self, program: &'a mut ReplicaProgram, root: &LogicalRegion) -> &'a mut Knowledge {
        program.trees.entry(root.tree().id()).or_insert_with(|| {
            let (rank, shapes) = (self.node.rank(), shapes(root));
            let home = blocks(root.space(), self.node.nodes(), shapes);
            Knowledge::Whole(Box::new(Coherence::new(rank..rank + 1, root.space().shape().clone(), home, shapes)))
        })
    }

    /// From now on each node knows of a region tree what is to be known of its own block. Plans of launches that use it
    /// no longer hold.
    pub(super) fn go_to_blocks(&self, program: &mut ReplicaProgram, root: &LogicalRegion) {
        let tree = root.tree().id();
        let Knowledge::Whole(_) = self.knowledge(program, root) else { return };
        let Some(Knowledge::Whole(coherence)) = program.trees.remove(&tree) else { return };
        let block = self.node.directory.block(root.space());
        let block = shapes(root).intersection(&block, root.space().shape());
        let blocks = Blocks::new(*coherence, block, shapes(root));
        program.trees.insert(tree, Knowledge::InBlocks(Box::new(blocks)));
        program.plans.retain(|_, plan| !plan.site.uses(tree));
        program.predictor.forget(|plan| plan.site.uses(tree));
    }
}
