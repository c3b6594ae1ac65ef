//! The stages and nodes of a template's graph, and their work.

use std::sync::Arc;

use maniple_realm::transfer::Transfer;
use maniple_space::{AnyPoint, AnyRect};

use super::whole::Mark;
use crate::instances::placement::PhysicalRegion;
use crate::launch::LaunchSite;
use crate::launch::recording::recording::PointTape;
use crate::task::LeafBody;

/// One launch.
pub(super) struct Stage {
    pub(super) site: Arc<LaunchSite>,
    pub(super) points: Vec<PointTape>,
    /// The part of a launch of the program as which it was replayed last.
    pub(super) mark: Mark,
}

/// The work of one node of the graph.
pub(super) enum TraceNode {
    Task(Box<TaskNode>),
    Transfers(Vec<Transfer>),
}

/// One point of a launch.
pub(super) struct TaskNode {
    pub(super) stage: u32,
    pub(super) point: AnyPoint,
    pub(super) index: usize,
    pub(super) body: LeafBody,
    pub(super) profile: bool,
    /// Copies of what the launch site knows, where no launching task counts references.
    pub(super) name: Box<str>,
    pub(super) domain: AnyRect,
    pub(super) regions: Box<[PhysicalRegion]>,
}
