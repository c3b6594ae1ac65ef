//! The tree of index spaces: spaces are split by partitions, whose pieces are spaces again.
//!
//! Nodes point upwards only: a piece is its partition and a color. So a handle keeps its ancestors alive, nothing
//! points in a circle, and a piece costs nothing until it is asked for.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, Weak};

use maniple_realm::locks::Mutex;
use maniple_space::{AnyPoint, AnyRect, AnySpace};
use rustc_hash::FxHasher;

use crate::deletion::{Deletions, Mark, Tombstone};
use crate::pieces::{PartitionPieces, PieceSource};
use crate::renewal::Renewals;
use crate::{Forest, RegionError, Shape};

/// The number of an index space or partition, unique within its [`Forest`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u64);

/// An index space: the rows of regions. Either created by itself, or a piece of a partition.
///
/// Two handles are equal if they name the same node of the tree; different nodes may have the same points.
#[derive(Clone)]
pub enum IndexSpaceNode {
    /// A space that was created by itself.
    Root(Arc<RootSpace>),
    /// The piece of a partition for one color, by its row-major number.
    Piece(Arc<Partitioning>, usize),
}

/// A space that was created by itself.
pub struct RootSpace {
    id: NodeId,
    forest: Arc<Forest>,
    shape: Shape,
    destroyed: Mark,
    /// Partitions below it whose names may be used again, while [that is wanted](KeptPartitions).
    renewals: Mutex<Option<Renewals<Partitioning>>>,
}

/// As long as this is there, names of partitions below an index space are used again: a partition into the same pieces
/// as one that was [given up](Self::renew) is equal to that, though an operation for which one of the two is destroyed
/// may use the other.
#[doc(hidden)]
pub struct KeptPartitions(Arc<RootSpace>);

/// A partition of an index space: for each color a subset of its points, disjoint or not, covering it or not.
pub struct Partitioning {
    id: NodeId,
    /// The number by which its deletion is known: that of the partition, unless it has that from another.
    name_number: u64,
    /// The partition that it has its number from.
    original: Option<Arc<Partitioning>>,
    this: Weak<Partitioning>,
    name: OnceLock<Box<str>>,
    parent: IndexSpaceNode,
    colors: AnyRect,
    pieces: PartitionPieces,
    first_piece: u64,
    disjoint: OnceLock<bool>,
    union: OnceLock<Shape>,
    destroyed: Mark,
}

impl IndexSpaceNode {
    pub(crate) fn root(id: NodeId, forest: Arc<Forest>, shape: Shape) -> Self {
        Self::Root(Arc::new(RootSpace { id, forest, shape, destroyed: Mark::default(), renewals: Mutex::default() }))
    }

    /// The node's number.
    #[must_use]
    pub fn id(&self) -> NodeId {
        match self {
            Self::Root(root) => root.id,
            Self::Piece(partition, color) => NodeId(partition.first_piece + *color as u64),
        }
    }

    /// The points. Those of a piece that [only other nodes know](Partitioning::piece_source) are fetched, with all
    /// other pieces.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        self.known_shape().unwrap_or_else(|| match self {
            Self::Root(root) => &root.shape,
            Self::Piece(partition, color) => &partition.pieces()[*color],
        })
    }

    /// The points, if they are known here.
    #[must_use]
    pub fn known_shape(&self) -> Option<&Shape> {
        match self {
            Self::Root(root) => Some(&root.shape),
            Self::Piece(partition, color) => partition.known_piece(*color),
        }
    }

    /// The points, as a set.
    #[must_use]
    pub fn space(&self) -> &AnySpace {
        self.shape().space()
    }

    /// The partition that this space is a piece of.
    #[must_use]
    pub fn partition(&self) -> Option<&Arc<Partitioning>> {
        match self {
            Self::Root(_) => None,
            Self::Piece(partition, _) => Some(partition),
        }
    }

    /// The forest that the space grows in.
    #[must_use]
    pub fn forest(&self) -> &Arc<Forest> {
        &self.root_space().forest
    }

    fn root_space(&self) -> &Arc<RootSpace> {
        let mut node = self;
        loop {
            match node {
                Self::Root(root) => return root,
                Self::Piece(partition, _) => node = &partition.parent,
            }
        }
    }

    /// The number of the space that this one was made of by splitting, or its own.
    #[doc(hidden)]
    #[must_use]
    pub fn root_id(&self) -> NodeId {
        self.root_space().id
    }

    /// Has names of partitions below the space's root used again: of those that are [given up](Partitioning::give_up),
    /// and if `all`, of all that are there when [the space itself is given up](KeptPartitions::renew). Nothing if that
    /// is the case already.
    #[doc(hidden)]
    #[must_use]
    pub fn keep_partitions(&self, all: bool) -> Option<KeptPartitions> {
        let root = self.root_space();
        let mut renewals = root.renewals.lock();
        if renewals.is_some() {
            return None;
        }
        *renewals = Some(Renewals::new(all));
        drop(renewals);
        Some(KeptPartitions(Arc::clone(root)))
    }

    /// A partition into these pieces with a name that is used again, or the one that is made.
    pub(crate) fn renew_or_make(
        &self,
        colors: AnyRect,
        pieces: &[Shape],
        make: impl FnOnce() -> Arc<Partitioning>,
    ) -> Arc<Partitioning> {
        let root = self.root_space();
        let mut renewals = root.renewals.lock();
        let Some(renewals) = &mut *renewals else { return make() };
        let is_same = |known: &Arc<Partitioning>| {
            let has_pieces = matches!(&known.pieces, PartitionPieces::Here(here) if **here == *pieces);
            has_pieces && known.colors == colors && known.parent == *self
        };
        match renewals.take(is_same) {
            Some(original) => Partitioning::renewed(original, self.clone(), root.forest.take_ids(1)),
            None => {
                let made = make();
                renewals.add(&made);
                made
            }
        }
    }

    /// Whether two handles are of the same name: equal ones may not be, where a name is used again.
    #[inline]
    pub(crate) fn is_same_name(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Root(a), Self::Root(b)) => Arc::ptr_eq(a, b),
            (Self::Piece(p, i), Self::Piece(q, j)) => Arc::ptr_eq(p, q) && i == j,
            _ => false,
        }
    }

    /// How many partitions lie between this space and its root.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.ancestors().count()
    }

    /// The partitions above this space, nearest first.
    pub fn ancestors(&self) -> impl Iterator<Item = &Arc<Partitioning>> {
        std::iter::successors(self.partition(), |partition| partition.parent.partition())
    }

    /// Whether `self` is `ancestor` or lies below it in the tree.
    #[must_use]
    pub fn is_within(&self, ancestor: &Self) -> bool {
        self == ancestor || self.ancestors().any(|partition| partition.parent == *ancestor)
    }

    /// Marks a space as destroyed, with all below it. For which operations, the caller remembers: see [`Deletions`].
    ///
    /// # Errors
    /// [`RegionError::PieceDestroyed`] for a piece, which lives as long as its partition.
    #[doc(hidden)]
    pub fn mark_destroyed(&self) -> Result<Tombstone, RegionError> {
        match self {
            Self::Root(root) => Ok(root.destroyed.set()),
            Self::Piece(partition, _) => Err(RegionError::PieceDestroyed { partition: partition.to_string() }),
        }
    }

    /// # Errors
    /// [`RegionError::Destroyed`] if this space, its partition or anything above is destroyed.
    pub fn check_alive(&self, deletions: &dyn Deletions) -> Result<(), RegionError> {
        match self {
            Self::Root(root) => check(&root.destroyed, root.id.0, deletions, || self.to_string()),
            Self::Piece(partition, _) => partition.check_alive(deletions),
        }
    }

    /// Whether the tree alone shows that the two spaces share no point: they lie below different pieces of a disjoint
    /// partition.
    #[must_use]
    pub fn is_disjoint_by_tree(&self, other: &Self) -> bool {
        let (mut a, mut b) = (self, other);
        let (mut above_a, mut above_b) = (a.depth(), b.depth());
        while above_a > above_b {
            a = a.parent_space();
            above_a -= 1;
        }
        while above_b > above_a {
            b = b.parent_space();
            above_b -= 1;
        }
        loop {
            match (a, b) {
                (Self::Piece(p, i), Self::Piece(q, j)) => {
                    if p.has_name_of(q) && i != j {
                        return p.is_surely_disjoint();
                    }
                    (a, b) = (&p.parent, &q.parent);
                }
                _ => return false,
            }
        }
    }

    fn parent_space(&self) -> &Self {
        match self {
            Self::Root(_) => self,
            Self::Piece(partition, _) => &partition.parent,
        }
    }

    /// Whether the two spaces share a point. Answers come from the tree where it knows, else from the points, memoised.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        !self.is_disjoint_by_tree(other) && self.forest().shapes().overlaps(self.shape(), other.shape())
    }
}

impl PartialEq for IndexSpaceNode {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Root(a), Self::Root(b)) => Arc::ptr_eq(a, b),
            (Self::Piece(p, i), Self::Piece(q, j)) => p.has_name_of(q) && i == j,
            _ => false,
        }
    }
}

impl Eq for IndexSpaceNode {}

impl Hash for IndexSpaceNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl fmt::Display for IndexSpaceNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(root) => write!(f, "index space {}", root.id.0),
            Self::Piece(partition, color) => {
                write!(f, "piece {} of {partition}", partition.colors.delinear(*color as u64))
            }
        }
    }
}

impl fmt::Debug for IndexSpaceNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Partitioning {
    pub(crate) fn new(
        id: NodeId,
        first_piece: u64,
        parent: IndexSpaceNode,
        colors: AnyRect,
        pieces: Result<Arc<[Shape]>, Arc<dyn PieceSource>>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self::known_as(id, first_piece, parent, colors, pieces, this))
    }

    fn known_as(
        id: NodeId,
        first_piece: u64,
        parent: IndexSpaceNode,
        colors: AnyRect,
        pieces: Result<Arc<[Shape]>, Arc<dyn PieceSource>>,
        this: &Weak<Self>,
    ) -> Self {
        let pieces = match pieces {
            Ok(pieces) => PartitionPieces::Here(pieces),
            Err(source) => {
                let some = (0..colors.volume()).map(|_| OnceLock::new()).collect();
                PartitionPieces::Elsewhere { source, some, all: OnceLock::new() }
            }
        };
        Self {
            id,
            name_number: id.0,
            original: None,
            this: Weak::clone(this),
            name: OnceLock::new(),
            parent,
            colors,
            pieces,
            first_piece,
            disjoint: OnceLock::new(),
            union: OnceLock::new(),
            destroyed: Mark::default(),
        }
    }

    /// A new name for a partition whose pieces are known, equal to it: below an equal parent.
    fn renewed(original: Arc<Self>, parent: IndexSpaceNode, name_number: u64) -> Arc<Self> {
        let (id, first_piece, colors) = (original.id, original.first_piece, original.colors);
        let pieces = match &original.pieces {
            PartitionPieces::Here(pieces) => Arc::clone(pieces),
            PartitionPieces::Elsewhere { .. } => original.pieces().into(),
        };
        Arc::new_cyclic(|this| {
            let mut new = Self::known_as(id, first_piece, parent, colors, Ok(pieces), this);
            (new.disjoint, new.union) = (original.disjoint.clone(), original.union.clone());
            (new.name_number, new.original) = (name_number, Some(original));
            new
        })
    }

    /// Whether two partitions are equal: the same, or one was renewed from the other, or both from the same.
    #[inline]
    pub(crate) fn has_name_of(&self, other: &Self) -> bool {
        std::ptr::eq(self.original(), other.original())
    }

    fn original(&self) -> &Self {
        self.original.as_deref().unwrap_or(self)
    }

    /// The number by which it is known [for which operations it is destroyed](Deletions).
    #[doc(hidden)]
    #[must_use]
    pub fn name_number(&self) -> u64 {
        self.name_number
    }

    /// The partition's number.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Names the partition for messages. The first name stays.
    pub fn set_name(&self, name: &str) {
        self.name.get_or_init(|| name.into());
    }

    /// The partition's name, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.get().map(|name| &**name)
    }

    /// The space that is split.
    #[must_use]
    pub fn parent(&self) -> &IndexSpaceNode {
        &self.parent
    }

    /// The colors: one piece for each point of this rectangle, numbered row-major.
    #[must_use]
    pub fn colors(&self) -> AnyRect {
        self.colors
    }

    /// The number of pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.colors.volume() as usize
    }

    /// Whether there are no pieces.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.colors.is_empty()
    }

    /// The pieces' points, in the order of their numbers. If they are [elsewhere](Self::piece_source), the first call
    /// brings them.
    #[must_use]
    pub fn pieces(&self) -> &[Shape] {
        match &self.pieces {
            PartitionPieces::Here(pieces) => pieces,
            PartitionPieces::Elsewhere { source, all, .. } => {
                if let Some(known) = all.get() {
                    return known;
                }
                // Not within the cell: a thread that waits for them may run other tasks, which ask for them too.
                let shapes = self.parent.forest().shapes();
                let pieces = source.pieces().iter().map(|piece| shapes.intern(piece)).collect();
                all.get_or_init(|| pieces)
            }
        }
    }

    /// Returns the source of the pieces of a partition that was not known here as a whole when it was made.
    #[must_use]
    pub fn piece_source(&self) -> Option<&Arc<dyn PieceSource>> {
        match &self.pieces {
            PartitionPieces::Here(_) => None,
            PartitionPieces::Elsewhere { source, .. } => Some(source),
        }
    }

    /// Whether all pieces are known here. That of a partition that gets its pieces from a [source](Self::piece_source)
    /// becomes true when a piece is asked for that is not.
    #[must_use]
    pub fn is_known(&self) -> bool {
        match &self.pieces {
            PartitionPieces::Here(_) => true,
            PartitionPieces::Elsewhere { all, .. } => all.get().is_some(),
        }
    }

    /// A piece's points, by its number, if they are known here.
    #[must_use]
    pub fn known_piece(&self, number: usize) -> Option<&Shape> {
        match &self.pieces {
            PartitionPieces::Here(pieces) => pieces.get(number),
            PartitionPieces::Elsewhere { some, all, .. } => match all.get() {
                Some(all) => all.get(number),
                None => some.get(number)?.get(),
            },
        }
    }

    /// Returns the pieces that are known here, in the order of their numbers.
    pub fn known_pieces(&self) -> impl Iterator<Item = &Shape> {
        (0..self.len()).filter_map(|number| self.known_piece(number))
    }

    /// The points of a piece have come to be known here.
    pub fn make_known(&self, number: usize, points: &AnySpace) {
        if let PartitionPieces::Elsewhere { some, .. } = &self.pieces
            && let Some(place) = some.get(number)
        {
            place.get_or_init(|| self.parent.forest().shapes().intern(points));
        }
    }

    fn spaces(&self) -> impl Iterator<Item = &AnySpace> {
        self.pieces().iter().map(Shape::space)
    }

    /// The piece of a color.
    ///
    /// # Errors
    /// [`RegionError::NoSuchColor`] when the color is outside [`Partitioning::colors`].
    pub fn piece(self: &Arc<Self>, color: AnyPoint) -> Result<IndexSpaceNode, RegionError> {
        if color.dim() != self.colors.dim() || !self.colors.contains(color) {
            return Err(RegionError::NoSuchColor { partition: self.to_string(), colors: self.colors, color });
        }
        let number = self.colors.linear(color) as usize;
        Ok(IndexSpaceNode::Piece(Arc::clone(self), number))
    }

    /// Whether no two pieces share a point. Computed once, near-linear in the pieces' rectangles.
    #[must_use]
    pub fn is_disjoint(&self) -> bool {
        if let Some(known) = self.disjoint.get().copied().or_else(|| self.piece_source()?.is_disjoint()) {
            return known;
        }
        let spaces = self.spaces();
        *self.disjoint.get_or_init(|| AnySpace::are_disjoint(self.parent.space().dim(), spaces).expect(SAME_DIMENSION))
    }

    /// Whether no two pieces share a point, as far as that can be told without asking for pieces that are elsewhere.
    #[must_use]
    pub fn is_surely_disjoint(&self) -> bool {
        match self.piece_source() {
            Some(source) if !self.is_known() => source.is_disjoint().unwrap_or(false),
            _ => self.is_disjoint(),
        }
    }

    /// Points outside of which no piece has any: all that are in some piece, or all of the parent's if not all pieces
    /// are known here.
    #[must_use]
    pub fn bound(&self) -> &Shape {
        if self.is_known() { self.union() } else { self.parent.shape() }
    }

    /// Whether every point of the parent is in some piece. Computed once, near-linear in the pieces' rectangles.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.union() == self.parent.shape()
    }

    /// All points that are in some piece. Computed once.
    #[must_use]
    pub fn union(&self) -> &Shape {
        let spaces = self.spaces();
        self.union.get_or_init(|| {
            let dim = self.parent.space().dim();
            let union = AnySpace::union_all(dim, spaces).expect(SAME_DIMENSION);
            self.parent.forest().shapes().intern(&union)
        })
    }

    /// A number that is the same for partitions of equal spaces into the same pieces, and hardly ever for others; none
    /// if the pieces are elsewhere.
    #[doc(hidden)]
    #[must_use]
    pub fn digest(&self) -> Option<u64> {
        let PartitionPieces::Here(pieces) = &self.pieces else { return None };
        let mut hasher = FxHasher::default();
        (self.parent.id(), self.colors, pieces).hash(&mut hasher);
        Some(hasher.finish())
    }

    /// The name may be used again, if [that is wanted](KeptPartitions).
    #[doc(hidden)]
    pub fn give_up(&self) {
        if let (Some(original), Some(renewals)) =
            (self.original().this.upgrade(), &mut *self.parent.root_space().renewals.lock())
        {
            renewals.free(&original);
        }
    }

    /// Marks the partition as destroyed, with all below it. For which operations, the caller remembers: see
    /// [`Deletions`].
    #[doc(hidden)]
    #[must_use]
    pub fn mark_destroyed(&self) -> Tombstone {
        self.destroyed.set()
    }

    /// # Errors
    /// [`RegionError::Destroyed`] if the partition or anything above it is destroyed.
    pub fn check_alive(&self, deletions: &dyn Deletions) -> Result<(), RegionError> {
        check(&self.destroyed, self.name_number, deletions, || self.to_string())?;
        self.parent.check_alive(deletions)
    }
}

impl fmt::Display for Partitioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.get() {
            Some(name) => write!(f, "partition `{name}`"),
            None => write!(f, "partition {}", self.id.0),
        }
    }
}

impl fmt::Debug for Partitioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} of {} by {}", self.parent, self.colors)
    }
}

impl KeptPartitions {
    /// All partitions that are there are given up.
    pub fn renew(&self) {
        self.0.renewals.lock().iter_mut().for_each(Renewals::free_all);
    }
}

impl Drop for KeptPartitions {
    fn drop(&mut self) {
        // Partitions point to their root: dropped when the lock is free again.
        let _kept = self.0.renewals.lock().take();
    }
}

const SAME_DIMENSION: &str = "pieces are subsets of their parent, checked when the partition was made";

#[inline]
fn check(
    mark: &Mark,
    number: u64,
    deletions: &dyn Deletions,
    what: impl FnOnce() -> String,
) -> Result<(), RegionError> {
    if mark.is_set() && deletions.is_destroyed(number) {
        return Err(RegionError::Destroyed { what: what() });
    }
    Ok(())
}
