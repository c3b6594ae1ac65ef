//! Logical regions: data named by rows and columns, without place or layout.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use maniple_space::AnyPoint;

use crate::deletion::{Deletions, Mark, Tombstone};
use crate::{FieldSpace, IndexSpaceNode, Partitioning, RegionError, endings};

/// The number of a region tree: all regions made by splitting one region share it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TreeId(pub u64);

/// A region tree: one region and everything below it.
///
/// Messages call it by its name if it has one, else by what its rows are and its number: ``region `nodes` ``,
/// `Node region 3`, `region 3`.
pub struct RegionTree {
    id: TreeId,
    /// The number by which its deletion is known: that of the tree, unless it has that from another.
    name_number: u64,
    /// The tree that it has its number from.
    original: Option<Arc<RegionTree>>,
    /// The type name of a row; empty if it was not given.
    row: &'static str,
    name: OnceLock<Box<str>>,
    root: IndexSpaceNode,
    fields: Arc<FieldSpace>,
    destroyed: Mark,
    /// The top-level task that had it has ended.
    ended: AtomicBool,
}

impl RegionTree {
    fn new(id: u64, name_number: u64, row: &'static str, root: IndexSpaceNode, fields: Arc<FieldSpace>) -> Self {
        let (name, ended) = (OnceLock::new(), AtomicBool::new(false));
        let (original, destroyed) = (None, Mark::default());
        Self { id: TreeId(id), name_number, original, row, name, root, fields, destroyed, ended }
    }

    /// The tree's number.
    #[must_use]
    pub fn id(&self) -> TreeId {
        self.id
    }

    /// The rows of the whole tree.
    #[must_use]
    pub fn root(&self) -> &IndexSpaceNode {
        &self.root
    }

    /// The columns.
    #[must_use]
    pub fn fields(&self) -> &Arc<FieldSpace> {
        &self.fields
    }

    /// The name that it was given, if any.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.get().map(|name| &**name)
    }

    /// Returns the name of the type of a row; empty if that is not known.
    #[must_use]
    pub fn row(&self) -> &'static str {
        self.row
    }

    /// Names the region for messages. The first name stays.
    pub fn set_name(&self, name: &str) {
        self.name.get_or_init(|| name.into());
    }

    /// The number by which it is known [for which operations it is destroyed](Deletions).
    #[doc(hidden)]
    #[must_use]
    pub fn name_number(&self) -> u64 {
        self.name_number
    }

    /// Marks the tree as destroyed. For which operations, the caller remembers: see [`Deletions`].
    #[doc(hidden)]
    #[must_use]
    pub fn mark_destroyed(&self) -> Tombstone {
        self.destroyed.set()
    }

    /// Marks the tree ended with the top-level task that had it: nothing new can be launched on it.
    pub fn end_with_run(&self) {
        self.ended.store(true, Ordering::Release);
        endings::count();
    }

    /// # Errors
    /// [`RegionError::Ended`] if the tree ended with its run.
    pub fn check_run(&self) -> Result<(), RegionError> {
        match self.original.as_deref().unwrap_or(self).ended.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(RegionError::Ended { what: self.to_string() }),
        }
    }

    /// # Errors
    /// [`RegionError::Destroyed`] if the tree is destroyed; [`RegionError::Ended`] if it is of an earlier run.
    pub fn check_alive(&self, deletions: &dyn Deletions) -> Result<(), RegionError> {
        if self.destroyed.is_set() && deletions.is_destroyed(self.name_number) {
            return Err(RegionError::Destroyed { what: self.to_string() });
        }
        self.check_run()
    }
}

impl fmt::Display for RegionTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.get() {
            Some(name) => write!(f, "region `{name}`"),
            None if self.row.is_empty() => write!(f, "region {}", self.id.0),
            None => write!(f, "{} region {}", self.row, self.id.0),
        }
    }
}

/// A logical region: an index space crossed with a field space. A name for data, with no place and no layout.
#[derive(Clone)]
pub struct LogicalRegion {
    tree: Arc<RegionTree>,
    space: IndexSpaceNode,
}

impl LogicalRegion {
    pub(crate) fn root(id: u64, row: &'static str, space: IndexSpaceNode, fields: Arc<FieldSpace>) -> Self {
        Self { tree: Arc::new(RegionTree::new(id, id, row, space.clone(), fields)), space }
    }

    /// A new name for the whole region, for a task that has destroyed it and gives its data up: equal to it, but not
    /// destroyed.
    #[doc(hidden)]
    #[must_use]
    pub fn renewed(&self) -> Self {
        let Self { tree: original, .. } = self.original();
        let (space, fields) = (original.root.clone(), Arc::clone(&original.fields));
        let name_number = space.forest().take_ids(1);
        let mut tree = RegionTree::new(original.id.0, name_number, original.row, space.clone(), fields);
        tree.original = Some(original);
        Self { tree: Arc::new(tree), space }
    }

    /// The region by the name that its tree had first.
    #[doc(hidden)]
    #[must_use]
    pub fn original(&self) -> Self {
        let tree = self.tree.original.as_ref().unwrap_or(&self.tree);
        Self { tree: Arc::clone(tree), space: self.space.clone() }
    }

    /// Whether two handles are of the same name: equal ones may not be, where a name is used again.
    #[inline]
    pub(crate) fn is_same_name(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tree, &other.tree) && self.space.is_same_name(&other.space)
    }

    /// The tree that the region belongs to.
    #[must_use]
    pub fn tree(&self) -> &Arc<RegionTree> {
        &self.tree
    }

    /// The rows.
    #[must_use]
    pub fn space(&self) -> &IndexSpaceNode {
        &self.space
    }

    /// The columns.
    #[must_use]
    pub fn fields(&self) -> &Arc<FieldSpace> {
        &self.tree.fields
    }

    /// The whole region that this one is a part of, or itself.
    #[must_use]
    pub fn root_region(&self) -> Self {
        self.with_space(self.tree.root.clone())
    }

    /// The region of the same tree over another index space of the tree: see [`LogicalRegion::check_place`].
    #[must_use]
    pub fn with_space(&self, space: IndexSpaceNode) -> Self {
        Self { tree: Arc::clone(&self.tree), space }
    }

    /// The parts of this region that a partition of its index space names.
    ///
    /// # Errors
    /// [`RegionError::OtherParent`] when the partition splits another space.
    pub fn partition(&self, partitioning: &Arc<Partitioning>) -> Result<LogicalPartition, RegionError> {
        if *partitioning.parent() != self.space {
            return Err(RegionError::OtherParent {
                partition: partitioning.to_string(),
                parent: partitioning.parent().to_string(),
                space: self.to_string(),
            });
        }
        Ok(LogicalPartition { tree: Arc::clone(&self.tree), partitioning: Arc::clone(partitioning) })
    }

    /// Whether `self` is `ancestor` or a part of it by the tree.
    #[must_use]
    pub fn is_within(&self, ancestor: &Self) -> bool {
        Arc::ptr_eq(&self.tree, &ancestor.tree) && self.space.is_within(&ancestor.space)
    }

    /// # Errors
    /// [`RegionError::NotInTree`] if the region was named by [`LogicalRegion::with_space`] over a space of another
    /// tree.
    pub fn check_place(&self) -> Result<(), RegionError> {
        if self.space.is_within(&self.tree.root) {
            return Ok(());
        }
        Err(RegionError::NotInTree { space: self.space.to_string(), tree: self.tree.to_string() })
    }

    /// # Errors
    /// [`RegionError::Destroyed`] if the region, its partition or its space is destroyed; [`RegionError::Ended`] if the
    /// region is of an earlier run.
    pub fn check_alive(&self, deletions: &dyn Deletions) -> Result<(), RegionError> {
        self.tree.check_alive(deletions)?;
        self.space.check_alive(deletions)
    }
}

impl AsRef<Self> for LogicalRegion {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl PartialEq for LogicalRegion {
    fn eq(&self, other: &Self) -> bool {
        self.tree.id == other.tree.id && self.space == other.space
    }
}

impl Eq for LogicalRegion {}

impl Hash for LogicalRegion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.tree.id, self.space.id()).hash(state);
    }
}

impl fmt::Display for LogicalRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.space {
            IndexSpaceNode::Root(_) => self.tree.fmt(f),
            piece => write!(f, "{piece} of {}", self.tree),
        }
    }
}

impl fmt::Debug for LogicalRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The parts of a region that a partition names.
#[derive(Clone)]
pub struct LogicalPartition {
    tree: Arc<RegionTree>,
    partitioning: Arc<Partitioning>,
}

impl PartialEq for LogicalPartition {
    fn eq(&self, other: &Self) -> bool {
        self.tree.id() == other.tree.id() && self.partitioning.has_name_of(&other.partitioning)
    }
}

impl Eq for LogicalPartition {}

impl Hash for LogicalPartition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.tree.id(), self.partitioning.id()).hash(state);
    }
}

impl LogicalPartition {
    #[inline]
    pub(crate) fn is_same_name(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tree, &other.tree) && Arc::ptr_eq(&self.partitioning, &other.partitioning)
    }

    /// The tree that the partition belongs to.
    #[must_use]
    pub fn tree(&self) -> &Arc<RegionTree> {
        &self.tree
    }

    /// How the rows are split.
    #[must_use]
    pub fn partitioning(&self) -> &Arc<Partitioning> {
        &self.partitioning
    }

    /// The region that is split.
    #[must_use]
    pub fn parent(&self) -> LogicalRegion {
        LogicalRegion { tree: Arc::clone(&self.tree), space: self.partitioning.parent().clone() }
    }

    /// The region of a color.
    ///
    /// # Errors
    /// [`RegionError::NoSuchColor`] when the partition has no such color.
    pub fn piece(&self, color: AnyPoint) -> Result<LogicalRegion, RegionError> {
        let space = self.partitioning.piece(color).map_err(|error| match error {
            RegionError::NoSuchColor { colors, color, .. } => {
                RegionError::NoSuchColor { partition: self.to_string(), colors, color }
            }
            other => other,
        })?;
        Ok(LogicalRegion { tree: Arc::clone(&self.tree), space })
    }

    /// # Errors
    /// [`RegionError::Destroyed`] if the region or the partition is destroyed; [`RegionError::Ended`] if the region is
    /// of an earlier run.
    pub fn check_alive(&self, deletions: &dyn Deletions) -> Result<(), RegionError> {
        self.tree.check_alive(deletions)?;
        self.partitioning.check_alive(deletions)
    }
}

impl AsRef<Partitioning> for LogicalPartition {
    fn as_ref(&self) -> &Partitioning {
        &self.partitioning
    }
}

impl fmt::Display for LogicalPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.partitioning, self.tree)
    }
}

impl fmt::Debug for LogicalPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
