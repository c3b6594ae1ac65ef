//! Why a command is refused.

use crate::concrete::Unit;
use crate::format::Format;
use crate::notation::IndexVariable;

/// A command is illegal for the statement that it was given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{command}: {reason}")]
pub struct ScheduleError {
    /// The command, as text.
    pub command: String,
    /// The reason why it is refused.
    pub reason: Reason,
}

/// Why a command is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum Reason {
    // Names.
    #[error("there is no loop over {variable}; there are loops over {loops}")]
    NoLoop { variable: IndexVariable, loops: String },
    #[error("{variable} is no loop any more: {relation}; use its parts")]
    Derived { variable: IndexVariable, relation: String },
    #[error("{0} is taken; choose a new name")]
    Taken(String),
    #[error("{0:?} is no name: names have letters, digits and _, and begin with no digit")]
    NoName(String),
    #[error("{0} is listed twice")]
    Twice(String),
    #[error("the list of {0} is empty")]
    Empty(&'static str),
    #[error("there are {expected} {what}, but {found} {other}; give as many")]
    Lengths { what: &'static str, expected: usize, other: &'static str, found: usize },
    // Numbers.
    #[error("the {what} is {value}; it has to be at least 1")]
    NotPositive { what: &'static str, value: i64 },
    #[error("{variable} has {extent} values, not {promised}")]
    WrongBound { variable: IndexVariable, extent: i64, promised: i64 },
    #[error("{outer} and {inner} have more pairs of values than fit 64 bits")]
    TooLarge { outer: IndexVariable, inner: IndexVariable },
    #[error("{variable} has no values")]
    NoValues { variable: IndexVariable },
    #[error(
        "the points {points} are not between 0 and {extent}, the number of values of {variable}, each greater than the one before"
    )]
    Points { points: String, variable: IndexVariable, extent: i64 },
    // Loops.
    #[error("{variable} is {tag} already; do this before")]
    Tagged { variable: IndexVariable, tag: String },
    #[error("{variable} is parallel on {unit} already; say so once, or split it and say so of one part for each")]
    ParallelTwice { variable: IndexVariable, unit: Unit },
    #[error("{inner} is not directly inside of {outer}; reorder the loops before")]
    NotDirectlyInside { outer: IndexVariable, inner: IndexVariable },
    #[error("the loops over {listed} are not directly inside of one another: {between}")]
    NotContiguous { listed: String, between: String },
    // Workspaces.
    #[error("the expression {expression} is in no assignment; these assign {values}")]
    NoExpression { expression: String, values: String },
    #[error(
        "{workspace} is taken: without a schedule there is a workspace of this name, in which {values} is gathered for the result; choose a new name"
    )]
    TakenByWorkspace { workspace: String, values: String },
    #[error("the expression {expression} is in {count} assignments; it has to be in one")]
    SeveralAssignments { expression: String, count: usize },
    #[error("{variable} is no loop around the assignment to {target}")]
    NotAround { variable: IndexVariable, target: String },
    #[error("{variable} is outside of {shared}, which both the workspace and its consumer need; reorder them before")]
    OutsideShared { variable: IndexVariable, shared: IndexVariable },
    #[error("there is no workspace {workspace}; precompute it before")]
    NoWorkspace { workspace: String },
    #[error(
        "{workspace} has {dimensions} dimensions and can't be stored as {format}: workspaces are dense, or of one dimension and a list in order {{C}} or in any {{C~o}}, a bitmap {{B}} or a hash table {{H}}"
    )]
    WorkspaceFormat { workspace: String, dimensions: usize, format: Format },
    #[error("the loop over {variable} does not run on threads; say so before, as by parallelize({variable}, threads)")]
    NotOnThreads { variable: IndexVariable },
    #[error(
        "the loop over {variable} goes through positions, of which threads are given equal numbers at once; divide it into more parts instead"
    )]
    ChunksOfPositions { variable: IndexVariable },
    // Positions.
    #[error("{variable} is a part, as {relation}; positions take the place of whole variables, so do this before")]
    PartOfLevel { variable: IndexVariable, relation: String },
    #[error("{tensor} is the result, whose positions are not known before it is computed; name an operand")]
    PositionsOfResult { tensor: String },
    #[error("{workspace} is a workspace, which has no positions before it is computed; name an operand")]
    PositionsOfWorkspace { workspace: String },
    #[error(
        "{tensor} is stored as {format}; positions are those of dense and compressed levels, with each coordinate once and in order, and without ranges"
    )]
    NoPositions { tensor: String, format: Format },
    #[error("no access has {variables} at consecutive levels: there is {accesses}, stored as {format}")]
    NoLevels { variables: String, accesses: String, format: Format },
    #[error("several accesses have {variables} at consecutive levels, {accesses}; positions are those of one")]
    SeveralAccesses { variables: String, accesses: String },
    #[error(
        "the level of {tensor}, stored as {format}, that {variable} goes through is dense, where positions are coordinates; nothing needs to be done"
    )]
    DenseLevel { variable: IndexVariable, tensor: String, format: Format },
    #[error(
        "{tensor}, stored as {format}, has one position for each entry, in all levels, and {variable} is not all of its dimensions; fuse the loops over these"
    )]
    EntryLevels { variable: IndexVariable, tensor: String, format: Format },
    #[error(
        "{target} may change where {access} stores nothing, which a loop over its positions leaves out; loop over coordinates"
    )]
    ActsWithout { target: String, access: String },
    #[error("{variable} goes through positions of {access} below {above}, and is not inside of the loops over {above}")]
    PositionsOutside { variable: IndexVariable, access: String, above: IndexVariable },
    #[error(
        "{variable} goes through positions of {access}, of which there are as many as it stores; nothing can be promised"
    )]
    BoundPositions { variable: IndexVariable, access: String },
    // Merging.
    #[error(
        "{found} has to be stored for an iteration of {variable} to have an effect; that is no intersection, which could be merged in another way"
    )]
    NothingMerged { variable: IndexVariable, found: String },
    #[error("{accesses} are united over {variable}, step by step; only intersections are merged in other ways")]
    United { variable: IndexVariable, accesses: String },
    #[error(
        "{accesses} have other elements in each iteration of the loop around {variable}; a workspace is made where one of them stays as it is for several of these"
    )]
    NothingKept { variable: IndexVariable, accesses: String },
    #[error("there is no loop around {variable}: a workspace is made where several iterations of one use it")]
    NothingAround { variable: IndexVariable },
    #[error("none of {accesses} has {variable} itself; say this before the variable that they have is changed")]
    NotNamed { variable: IndexVariable, accesses: String },
    // Parallel loops.
    #[error(
        "iterations of {variable} would write the same elements of {tensor} at the same time, \
         as {tensor} is not indexed by {missing}; allow the race as a reduction, or make another loop parallel"
    )]
    Race { variable: IndexVariable, tensor: String, missing: String },
    #[error("{variable} can't run on {unit}, as {outer} around it runs on {outer_unit} already")]
    NestedParallel { variable: IndexVariable, unit: Unit, outer: IndexVariable, outer_unit: Unit },
    // Distribution.
    #[error(
        "{variable} is distributed inside of {outer}, which is {tag}; only serial and distributed loops may be around it"
    )]
    DistributedInside { variable: IndexVariable, outer: IndexVariable, tag: String },
    #[error("{variable} is {tag}, but the workspace {workspace} is computed around it; {advice}")]
    InsideWorkspace { variable: IndexVariable, tag: &'static str, workspace: String, advice: &'static str },
    #[error("{first} and {second} are one launch, but {between} is between them; keep them together")]
    SplitLaunch { first: IndexVariable, second: IndexVariable, between: IndexVariable },
    // Communication.
    #[error("there is no tensor {tensor}; there are {tensors}")]
    NoTensor { tensor: String, tensors: String },
    #[error("{tensor} is not used inside of {variable}")]
    NotUsed { tensor: String, variable: IndexVariable },
    #[error("{0} is a workspace, which is made where it is used and never communicated")]
    Workspace(String),
    #[error("{tensor} would be communicated at {first} and at {second}, within one launch; communicate it once")]
    CommunicatedTwice { tensor: String, first: IndexVariable, second: IndexVariable },
    #[error("{variable} is inside of {outer}, which is {tag}; only serial and distributed loops fetch data")]
    CommunicatesInside { variable: IndexVariable, outer: IndexVariable, tag: String },
    #[error("{variable} is {tag}; only serial and distributed loops fetch data")]
    CommunicatesParallel { variable: IndexVariable, tag: String },
    // Rotation.
    #[error("{by} is not around {target}; only loops around it can tell how far it rotates")]
    RotatedByInner { by: IndexVariable, target: IndexVariable },
    // Substitution.
    #[error("{substitution} does not compute {found}; it computes {wanted}")]
    NoMatch { substitution: String, found: String, wanted: String },
    #[error("no library named {name} is registered, only {known}")]
    NoLibrary { name: String, known: String },
}
