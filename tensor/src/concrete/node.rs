//! Loops, assignments, and workspaces.

use std::borrow::Cow;
use std::fmt;

use crate::loops::Reduction;
use crate::notation::{Access, Expression, IndexVariable, TensorVariable};

/// A part of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementNode {
    /// A loop.
    Forall(Loop, Box<StatementNode>),
    /// One element is assigned.
    Assign {
        /// The element.
        target: Access,
        /// How the value is combined with the old one; without an operator, the old one is lost.
        operator: Option<Reduction>,
        /// The value. It has no reductions.
        value: Expression,
    },
    /// A workspace: its elements are identities (or, if they are assigned, anything) at first, then `producer` computes
    /// them, and then `consumer` uses them.
    Where {
        /// The workspace.
        workspace: TensorVariable,
        /// The node that reads the workspace.
        consumer: Box<StatementNode>,
        /// The node that writes the workspace.
        producer: Box<StatementNode>,
    },
}

/// A loop over all values of a variable, and how it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The variable.
    pub variable: IndexVariable,
    /// The execution of the iterations.
    pub execution: Execution,
    /// How many iterations are to be written one after the other in machine code; 1 leaves that to the compiler.
    pub unroll: u32,
    /// Of a loop on threads, how many iterations a thread takes at a time, whenever it has ended some; none, if all
    /// threads are given their shares at once.
    pub chunk: Option<i64>,
    /// The names of the tensors of which each iteration, at its start, fetches all that it needs.
    pub communicate: Vec<String>,
    /// How it finds where all of several operands store something.
    pub merge: Merge,
    /// The library that computes the loop and all inside of it, in place of loops.
    pub substitution: Option<Substitution>,
}

/// The execution of a loop's iterations: one after the other, or at the same time, and on which units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// One after the other.
    Serial,
    /// At the same time, on a part of one processor each.
    Parallel(Unit),
    /// At the same time, on processors of their own.
    Distributed {
        /// Loops distributed by one command have one level, and are one launch.
        level: usize,
    },
}

/// How a loop finds the coordinates at which all of several operands store something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Merge {
    /// It goes through all of them at once, step by step: as many steps as all have elements together.
    #[default]
    TwoFinger,
    /// The one that is behind leaps to where the others are: few steps if elements are far apart or come in runs
    /// (Bentley and Yao, *An almost optimal algorithm for unbounded searching*, 1976).
    Gallop,
    /// It goes through the first, and searches the others for each element: few steps if the first has few elements.
    Locate,
    /// The elements of one operand are put in a workspace with a flag for each coordinate, once for many runs of the
    /// loop, which goes through the others and looks them up: as many steps as these have elements. A schedule makes
    /// the workspace; no loop has this merge afterwards.
    Bitmap,
    /// The same with a hash table as the workspace, which takes memory for what is stored alone.
    Hash,
}

impl Merge {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::TwoFinger, Self::Gallop, Self::Locate, Self::Bitmap, Self::Hash];
}

impl std::fmt::Display for Merge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::TwoFinger => "two-finger",
            Self::Gallop => "gallop",
            Self::Locate => "locate",
            Self::Bitmap => "bitmap",
            Self::Hash => "hash",
        })
    }
}

/// A part of a processor that runs iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// The threads of a processor with several cores.
    Threads,
    /// The lanes of vector instructions.
    Vector,
}

/// The name of a [library](crate::substitute::LeafLibrary) that computes a nest of loops.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Substitution(Cow<'static, str>);

impl Substitution {
    /// Products of matrices, or of tensors regarded as matrices; among them products of a tensor with a Khatri-Rao
    /// product.
    pub const GEMM: Self = Self(Cow::Borrowed("Gemm"));

    /// A library that is [registered](crate::substitute::register).
    pub fn new(name: impl Into<String>) -> Self {
        Self(Cow::Owned(name.into()))
    }

    /// The library's name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Substitution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Loop {
    /// A serial loop.
    pub fn new(variable: IndexVariable) -> Self {
        let (execution, communicate, merge) = (Execution::Serial, Vec::new(), Merge::default());
        Self { variable, execution, unroll: 1, chunk: None, communicate, merge, substitution: None }
    }

    /// Whether nothing but the variable is known of the loop.
    pub fn is_plain(&self) -> bool {
        self.execution == Execution::Serial
            && self.unroll == 1
            && self.communicate.is_empty()
            && self.merge == Merge::default()
            && self.substitution.is_none()
    }

    /// The level, if the loop is distributed.
    pub fn level(&self) -> Option<usize> {
        match self.execution {
            Execution::Distributed { level } => Some(level),
            _ => None,
        }
    }
}

/// An [assignment](StatementNode::Assign), and the loops around it.
pub(crate) struct Site<'a> {
    /// The loops around it, from the outermost.
    pub loops: Vec<&'a Loop>,
    pub target: &'a Access,
    pub operator: Option<Reduction>,
    pub value: &'a Expression,
}

impl StatementNode {
    /// This node in loops, the first outermost.
    pub(crate) fn in_loops(self, loops: impl DoubleEndedIterator<Item = Loop>) -> Self {
        loops.rev().fold(self, |body, outer| Self::Forall(outer, Box::new(body)))
    }

    /// The nodes directly inside of this one.
    pub(crate) fn children(&self) -> Vec<&StatementNode> {
        match self {
            Self::Forall(_, body) => vec![body],
            Self::Assign { .. } => Vec::new(),
            Self::Where { consumer, producer, .. } => vec![consumer, producer],
        }
    }

    /// All loops, from the outside to the inside.
    pub fn loops(&self) -> Vec<&Loop> {
        let mut loops = Vec::new();
        if let Self::Forall(outer, _) = self {
            loops.push(outer);
        }
        loops.extend(self.children().into_iter().flat_map(StatementNode::loops));
        loops
    }

    /// All assignments.
    pub(crate) fn sites(&self) -> Vec<Site<'_>> {
        let mut sites = Vec::new();
        self.find_sites(&mut Vec::new(), &mut sites);
        sites
    }

    fn find_sites<'a>(&'a self, around: &mut Vec<&'a Loop>, sites: &mut Vec<Site<'a>>) {
        match self {
            Self::Assign { target, operator, value } => {
                sites.push(Site { loops: around.clone(), target, operator: *operator, value });
            }
            Self::Forall(outer, body) => {
                around.push(outer);
                body.find_sites(around, sites);
                around.pop();
            }
            Self::Where { consumer, producer, .. } => {
                consumer.find_sites(around, sites);
                producer.find_sites(around, sites);
            }
        }
    }

    /// The loop over `variable` and its body.
    pub(crate) fn find(&self, variable: &IndexVariable) -> Option<(&Loop, &StatementNode)> {
        match self {
            Self::Forall(outer, body) if outer.variable == *variable => Some((outer, body)),
            _ => self.children().into_iter().find_map(|child| child.find(variable)),
        }
    }

    /// The loop over `variable` with all that is inside.
    pub(crate) fn subtree(&self, variable: &IndexVariable) -> Option<&StatementNode> {
        match self {
            Self::Forall(outer, _) if outer.variable == *variable => Some(self),
            _ => self.children().into_iter().find_map(|child| child.subtree(variable)),
        }
    }

    /// The variables of the loops around the loop over `variable`, from the outermost.
    pub(crate) fn loops_around(&self, variable: &IndexVariable) -> Option<Vec<IndexVariable>> {
        match self {
            Self::Forall(outer, _) if outer.variable == *variable => Some(Vec::new()),
            Self::Forall(outer, body) => {
                let mut around = body.loops_around(variable)?;
                around.insert(0, outer.variable.clone());
                Some(around)
            }
            _ => self.children().into_iter().find_map(|child| child.loops_around(variable)),
        }
    }

    /// The workspaces that are made inside of this node.
    pub(crate) fn workspaces(&self) -> Vec<&TensorVariable> {
        let mut found: Vec<&TensorVariable> = self.children().into_iter().flat_map(StatementNode::workspaces).collect();
        if let Self::Where { workspace, .. } = self {
            found.push(workspace);
        }
        found
    }

    /// The same tree, in which the loop over `variable` and its body are what `change` makes of them.
    pub(crate) fn replace(
        self,
        variable: &IndexVariable,
        change: &mut dyn FnMut(Loop, StatementNode) -> StatementNode,
    ) -> Self {
        match self {
            Self::Forall(outer, body) if outer.variable == *variable => change(outer, *body),
            Self::Forall(outer, body) => Self::Forall(outer, Box::new(body.replace(variable, change))),
            Self::Assign { .. } => self,
            Self::Where { workspace, consumer, producer } => Self::Where {
                workspace,
                consumer: Box::new(consumer.replace(variable, change)),
                producer: Box::new(producer.replace(variable, change)),
            },
        }
    }

    /// The same tree with other accesses of what is read in the place of those for which `other` gives one.
    pub(crate) fn with_accesses(self, other: &dyn Fn(&Access) -> Option<Access>) -> Self {
        match self {
            Self::Forall(outer, body) => Self::Forall(outer, Box::new(body.with_accesses(other))),
            Self::Assign { target, operator, value } => {
                Self::Assign { target, operator, value: value.with_accesses(other) }
            }
            Self::Where { workspace, consumer, producer } => {
                let [consumer, producer] = [consumer, producer].map(|node| Box::new(node.with_accesses(other)));
                Self::Where { workspace, consumer, producer }
            }
        }
    }

    /// The same tree with other tensors in those accesses for which `other` gives one, and `targets` in what is
    /// assigned.
    pub(crate) fn with_tensors(
        self,
        other: &dyn Fn(&Access) -> Option<TensorVariable>,
        targets: &dyn Fn(&Access) -> Option<TensorVariable>,
    ) -> Self {
        match self {
            Self::Forall(outer, body) => Self::Forall(outer, Box::new(body.with_tensors(other, targets))),
            Self::Assign { target, operator, value } => {
                let tensor = targets(&target).unwrap_or_else(|| target.tensor.clone());
                let value = value.with_tensors(other);
                Self::Assign { target: Access { tensor, ..target }, operator, value }
            }
            Self::Where { workspace, consumer, producer } => {
                let sites = producer.sites();
                let made = sites.iter().find(|site| site.target.tensor == workspace);
                let workspace = made.and_then(|site| targets(site.target)).unwrap_or(workspace.clone());
                let [consumer, producer] = [consumer, producer].map(|node| Box::new(node.with_tensors(other, targets)));
                Self::Where { workspace, consumer, producer }
            }
        }
    }
}
