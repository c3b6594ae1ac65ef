//! Partitions that were found in the data, whose pieces no node has as a whole.
//!
//! The points of an index space are dealt to the nodes in *blocks* of about the same volume. A node has of every such partition what its pieces have in its own block, and
//! the pieces that its tasks use; so a partition takes all nodes together as much memory as one would need for it. What a set operation has in a block follows from what its
//! operands have there: it needs no message. Who asks for a piece that is not here gets all of them, from all blocks.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

use bytes::Bytes;
use maniple_analysis::distribution::{Points, Rank};
use maniple_realm::fault::unwind_unavailable;
use maniple_realm::locks::Mutex;
use maniple_realm::net::{Endpoint, Incoming};
use maniple_realm::threads::Parker;
use maniple_realm::{Event, Fault, Realm};
use maniple_region::{IndexSpaceNode, Partitioning, PieceSource, Shape, ShapeTable};
use maniple_space::{AnyRect, AnySpace, IndexSpace, for_dimension, partition};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::meeting::Waiting;
use super::node::{ASK_PIECES, Letter, Node, PIECES, Post, decode, encode};
use crate::error::{Error, Result};
use crate::mapping::waiting::must_not_wait;

/// What a block has of pieces: those that have something there, by number.
pub(super) type Parts = Vec<(usize, Points)>;

/// See the [module](self).
pub(crate) struct Found {
    node: Arc<Node>,
    parent: IndexSpaceNode,
    colors: AnyRect,
    /// This node's block of the points.
    own: Shape,
    origin: Origin,
    /// What the pieces have in the block.
    block: OnceLock<Arc<Partitioning>>,
    identity: OnceLock<u64>,
    /// Which nodes were told of which pieces, as far as the block has them.
    told: Mutex<FxHashSet<(Rank, usize)>>,
}

/// How the pieces came about.
enum Origin {
    /// Nodes have found them together.
    Data { name: u64, pieces: Arc<Vec<AnySpace>>, is_disjoint: bool, _held: Held },
    /// From two partitions of points of the same root.
    Operation(SetOperation, [Arc<Partitioning>; 2]),
}

/// What is made of two partitions, color by color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SetOperation {
    /// Of the pieces of a color.
    Union,
    Intersection,
    Difference,
    /// Of a piece with whatever is in some piece of the other.
    IntersectionWithAll,
    DifferenceFromAll,
}

impl Found {
    /// Pieces that were found, of which these are in the own block. Other nodes ask for them by the name.
    pub(super) fn new(
        (node, name): (&Arc<Node>, u64),
        (parent, colors): (&IndexSpaceNode, AnyRect),
        (own, pieces, is_disjoint): (Shape, Vec<AnySpace>, bool),
    ) -> Arc<Self> {
        let pieces = Arc::new(pieces);
        let held = Held::new(node, name, &pieces);
        Arc::new(Self {
            node: Arc::clone(node),
            parent: parent.clone(),
            colors,
            own,
            origin: Origin::Data { name, pieces, is_disjoint, _held: held },
            block: OnceLock::new(),
            identity: OnceLock::new(),
            told: Mutex::default(),
        })
    }

    /// Where the pieces of a partition are, if it was found.
    pub(crate) fn of(partitioning: &Partitioning) -> Option<&Self> {
        let source: &dyn Any = &**partitioning.elsewhere()?;
        source.downcast_ref()
    }

    /// The result of an operation on two partitions of one root, of which at least one was found. None if neither was, or if their blocks are not the same: then it is to
    /// be made of whole pieces.
    pub(crate) fn combined(
        operation: SetOperation,
        [one, other]: [&Arc<Partitioning>; 2],
    ) -> Option<(IndexSpaceNode, AnyRect, Arc<dyn PieceSource>)> {
        let found = Self::of(one).or_else(|| Self::of(other))?;
        let may_stick_out = operation == SetOperation::Union && !other.parent().is_within(one.parent());
        if may_stick_out || root(one.parent()) != root(other.parent()) {
            return None;
        }
        let (parent, colors) = (one.parent().clone(), one.colors());
        let combined = Self {
            node: Arc::clone(&found.node),
            parent: parent.clone(),
            colors,
            own: found.own.clone(),
            origin: Origin::Operation(operation, [Arc::clone(one), Arc::clone(other)]),
            block: OnceLock::new(),
            identity: OnceLock::new(),
            told: Mutex::default(),
        };
        Some((parent, colors, Arc::new(combined)))
    }

    /// The same on every node for the same partition, and hardly ever for another.
    pub(super) fn identity(&self) -> u64 {
        *self.identity.get_or_init(|| {
            let mut hasher = FxHasher::default();
            match &self.origin {
                Origin::Data { name, .. } => name.hash(&mut hasher),
                Origin::Operation(operation, operands) => {
                    operation.hash(&mut hasher);
                    for operand in operands {
                        match Self::of(operand) {
                            Some(found) => found.identity().hash(&mut hasher),
                            None => operand.pieces().iter().for_each(|piece| piece.space().hash(&mut hasher)),
                        }
                    }
                }
            }
            hasher.finish()
        })
    }

    /// What the pieces have in this node's block, as a partition.
    pub(super) fn block(&self) -> &Arc<Partitioning> {
        self.block.get_or_init(|| match &self.origin {
            Origin::Data { pieces, .. } => self.partition(pieces),
            Origin::Operation(operation, operands) => {
                let [one, other] = operands.each_ref().map(|operand| in_block(operand, &self.own));
                self.partition(&operation.apply(&one, &other))
            }
        })
    }

    fn partition(&self, pieces: &[AnySpace]) -> Arc<Partitioning> {
        self.parent.forest().partition_of_subsets(&self.parent, self.colors, pieces)
    }

    /// What the block has of pieces of which a node was not told before.
    pub(super) fn tell(&self, to: Rank, pieces: impl IntoIterator<Item = usize>) -> Parts {
        let (block, mut told) = (self.block(), self.told.lock());
        let new = pieces.into_iter().filter(|&piece| told.insert((to, piece)));
        let parts = new.map(|piece| (piece, block.pieces()[piece].space()));
        parts.filter(|(_, part)| !part.is_empty()).map(|(piece, part)| (piece, Points(part.clone()))).collect()
    }

    /// # Errors
    /// The job's, if it is over.
    fn all(&self) -> Result<Vec<AnySpace>> {
        match &self.origin {
            Origin::Data { name, pieces, .. } => self.node.ask_for_pieces(*name, pieces),
            Origin::Operation(operation, [one, other]) => {
                let spaces = |of: &Partitioning| of.pieces().iter().map(|piece| piece.space().clone()).collect();
                let (one, other): (Vec<_>, Vec<_>) = (spaces(one), spaces(other));
                Ok(operation.apply(&one, &other))
            }
        }
    }
}

impl PieceSource for Found {
    fn pieces(&self) -> Vec<AnySpace> {
        if must_not_wait() {
            unwind_unavailable(ASKED_BY_MAPPER.to_owned());
        }
        assert!(Realm::may_wait(), "{ASKED_IN_CALLBACK}");
        match self.all() {
            Ok(pieces) => pieces,
            // The job ends with its own error, whatever becomes of who asks.
            Err(error) if !self.node.post.is_closed() => {
                unwind_unavailable(format!("the pieces of a partition are on other nodes: {error}"))
            }
            // Whoever asks has kept the partition for longer than the runtime.
            Err(_) => panic!("{Gone}; look at them before"),
        }
    }

    fn is_disjoint(&self) -> Option<bool> {
        match &self.origin {
            Origin::Data { is_disjoint, .. } => Some(*is_disjoint),
            Origin::Operation(SetOperation::Union, _) => None,
            // Parts of pieces that are apart.
            Origin::Operation(_, [one, _]) => match Self::of(one) {
                Some(found) => found.is_disjoint().filter(|&is_disjoint| is_disjoint),
                None => one.is_disjoint().then_some(true),
            },
        }
    }
}

/// What a mapper is told that asks for more than it may.
const ASKED_BY_MAPPER: &str = "a mapper may look at pieces that are known on this node, as those that the task uses are \
     (`Partitioning::known_piece`), and not ask other nodes for more";

/// What a function is told that is applied to a result where this comes in.
const ASKED_IN_CALLBACK: &str = "a function of a result must not wait, and the pieces of a partition are on other nodes; \
     look at them before, where the function is made";

impl SetOperation {
    /// # Errors
    /// If it takes as many pieces of one as of the other, and they are not.
    pub(crate) fn check(self, one: usize, other: usize) -> std::result::Result<(), partition::PartitionError> {
        match self {
            Self::Union | Self::Intersection | Self::Difference if one != other => {
                Err(partition::PartitionError::LengthsDiffer { left: one, right: other })
            }
            _ => Ok(()),
        }
    }

    /// The pieces that come of these, as many of one as of the other.
    pub(crate) fn apply(self, one: &[AnySpace], other: &[AnySpace]) -> Vec<AnySpace> {
        let Some(first) = one.first() else { return Vec::new() };
        for_dimension!(first.dim(), D => {
            let typed = |spaces: &[AnySpace]| -> Vec<IndexSpace<D>> {
                let typed = |space: &AnySpace| space.typed().expect("pieces of one root have one dimension").clone();
                spaces.iter().map(typed).collect()
            };
            let (one, other) = (typed(one), typed(other));
            let pieces = match self {
                Self::Union => partition::pairwise_union(&one, &other),
                Self::Intersection => partition::pairwise_intersection(&one, &other),
                Self::Difference => partition::pairwise_difference(&one, &other),
                Self::IntersectionWithAll => {
                    let all = IndexSpace::union_all(&other);
                    Ok(one.iter().map(|piece| piece.intersection(&all)).collect())
                }
                Self::DifferenceFromAll => {
                    let all = IndexSpace::union_all(&other);
                    Ok(one.iter().map(|piece| piece.difference(&all)).collect())
                }
            };
            let pieces = pieces.expect("there are as many pieces of one as of the other");
            pieces.into_iter().map(AnySpace::from).collect()
        })
    }
}

/// What the pieces of a partition have in a block.
pub(super) fn in_block(partitioning: &Partitioning, block: &Shape) -> Vec<AnySpace> {
    match Found::of(partitioning) {
        Some(found) => found.block().pieces().iter().map(|piece| piece.space().clone()).collect(),
        None => {
            let part = |piece: &Shape| piece.space().intersection(block.space());
            let parts = partitioning.pieces().iter().map(part);
            parts.map(|part| part.expect("pieces of one root have one dimension")).collect()
        }
    }
}

/// The space that was not cut out of another.
pub(super) fn root(space: &IndexSpaceNode) -> &IndexSpaceNode {
    space.ancestors().last().map_or(space, |partition| partition.parent())
}

/// The blocks of a root space, by node.
pub(super) fn blocks(root: &IndexSpaceNode, nodes: usize, shapes: &ShapeTable) -> Vec<Shape> {
    for_dimension!(root.space(), |space| {
        let pieces = partition::equal(space, nodes).expect("there is at least one node");
        pieces.into_iter().map(|piece| shapes.intern(&piece.into())).collect()
    })
}

/// Says, while it is there, that somebody here may ask for pieces.
struct Held {
    node: Arc<Node>,
    name: u64,
}

impl Held {
    fn new(node: &Arc<Node>, name: u64, pieces: &Arc<Vec<AnySpace>>) -> Self {
        node.post.register_pieces(node, name, pieces);
        Self { node: Arc::clone(node), name }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(entry) = self.node.post.finds.0.lock().known.get_mut(&self.name) {
            entry.is_gone = true;
        }
    }
}

/// What this node has of partitions that were found, for others who ask, and what it has asked for.
#[derive(Default)]
pub(super) struct Finds(Mutex<Known>);

#[derive(Default)]
struct Known {
    known: FxHashMap<u64, Entry>,
    /// Others have asked for what is not yet here: each with the number of its question.
    asked: FxHashMap<u64, Vec<(Rank, u64)>>,
    questions: FxHashMap<u64, Arc<Question>>,
    next_question: u64,
}

struct Entry {
    pieces: Arc<Vec<AnySpace>>,
    /// Nobody here asks for it any more. Others may.
    is_gone: bool,
}

/// What was asked, and what has come so far. Everybody here who wants the same waits for the same answers.
struct Question {
    name: u64,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    come: Vec<Parts>,
    missing: usize,
    waiting: Vec<Arc<Parker>>,
}

/// Wakes a thread that waits for pieces, should the job end meanwhile.
struct Unpark(Arc<Parker>);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Finds {
    /// How many questions are open, here or of others.
    pub(super) fn open(&self) -> usize {
        let known = self.0.lock();
        known.asked.len() + known.questions.len()
    }

    /// The question for the pieces of a partition, with its number: one that is open, or a new one, that so many are to be asked.
    fn question(&self, name: u64, others: usize) -> (u64, Arc<Question>, bool) {
        let mut known = self.0.lock();
        if let Some((&number, open)) = known.questions.iter().find(|(_, question)| question.name == name) {
            return (number, Arc::clone(open), false);
        }
        let number = known.next_question;
        known.next_question += 1;
        let question = Arc::new(Question { name, answers: Mutex::default() });
        question.answers.lock().missing = others;
        known.questions.insert(number, Arc::clone(&question));
        (number, question, true)
    }

    /// Partitions for which nobody here asks any more, in order.
    pub(super) fn gone(&self) -> Vec<u64> {
        let known = self.0.lock();
        let mut gone: Vec<u64> = known.known.iter().filter(|(_, entry)| entry.is_gone).map(|(&name, _)| name).collect();
        gone.sort_unstable();
        gone
    }

    /// Lets go of those for which no node asks any more: each has said for which it does not.
    pub(super) fn forget(&self, gone: &[Vec<u64>]) {
        let Some((first, others)) = gone.split_first() else { return };
        let of_all = first.iter().filter(|name| others.iter().all(|gone| gone.binary_search(name).is_ok()));
        let mut known = self.0.lock();
        let forgotten: Vec<Option<Entry>> = of_all.map(|name| known.known.remove(name)).collect();
        drop(known);
        drop(forgotten);
    }
}

impl Node {
    /// All pieces of a partition that was found, of which these are the parts here. The thread sleeps until they have come: it runs nothing else meanwhile, as that might ask too.
    fn ask_for_pieces(&self, name: u64, own: &[AnySpace]) -> Result<Vec<AnySpace>> {
        if self.nodes() == 1 {
            return Ok(own.to_vec());
        }
        if self.post.is_closed() {
            return Err(Error::internal(Gone));
        }
        let (parker, realm) = (Arc::new(Parker::default()), self.realm());
        let (number, question, is_new) = self.post.finds.question(name, self.nodes() - 1);
        question.answers.lock().waiting.push(Arc::clone(&parker));
        for to in (0..self.nodes()).filter(|&to| is_new && to != self.rank()) {
            self.post.send(&self.endpoint, to, Letter::new(ASK_PIECES, Bytes::new()).with_header(&(name, number)));
        }
        let waker = Waker::from(Arc::new(Unpark(Arc::clone(&parker))));
        let watch = realm.watch_for_breakdown(&waker);
        loop {
            let answers = question.answers.lock();
            if answers.missing == 0 {
                return Ok(united(own, answers.come.iter().flatten()));
            }
            drop(answers);
            if let Some(why) = realm.breakdown().or_else(|| watch.as_ref().err()) {
                self.post.finds.0.lock().questions.remove(&number);
                return Err(self.why(why));
            }
            if self.post.is_closed() {
                return Err(Error::internal(Gone));
            }
            parker.park();
        }
    }

    /// This node's block of the points of the root above a space.
    pub(super) fn block(&self, space: &IndexSpaceNode) -> Shape {
        blocks(root(space), self.nodes(), space.forest().shapes()).swap_remove(self.rank())
    }

    /// Waits for something that other nodes bring.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub(super) async fn wait_for(&self, event: Event, waiting: Waiting) -> Result<()> {
        let waited = match waiting {
            Waiting::Here => self.realm().wait(event),
            Waiting::Later => self.realm().event_future(event).await,
        };
        waited.map_err(|fault| self.why(&fault))
    }

    fn why(&self, fault: &Fault) -> Error {
        Error::of_fault(self.realm().breakdown().map_or(fault, |why| why), "", None)
    }
}

/// Pieces, with what others have of them.
pub(super) fn united<'a>(own: &[AnySpace], others: impl IntoIterator<Item = &'a (usize, Points)>) -> Vec<AnySpace> {
    let mut all: Vec<Vec<AnySpace>> = own.iter().map(|part| vec![part.clone()]).collect();
    for (piece, Points(part)) in others {
        if let Some(parts) = all.get_mut(*piece) {
            parts.push(part.clone());
        }
    }
    let unite = |parts: Vec<AnySpace>| AnySpace::union_all(parts[0].dim(), &parts).expect("parts have one dimension");
    all.into_iter().map(unite).collect()
}

impl Post {
    fn register_pieces(self: &Arc<Self>, node: &Node, name: u64, pieces: &Arc<Vec<AnySpace>>) {
        let mut known = self.finds.0.lock();
        known.known.insert(name, Entry { pieces: Arc::clone(pieces), is_gone: false });
        let asked = known.asked.remove(&name);
        drop(known);
        for (to, number) in asked.into_iter().flatten() {
            self.answer(&node.endpoint, to, (number, pieces));
        }
    }

    fn answer(self: &Arc<Self>, endpoint: &Arc<Endpoint>, to: Rank, (number, pieces): (u64, &[AnySpace])) {
        let parts = pieces.iter().enumerate().filter(|(_, part)| !part.is_empty());
        let parts: Parts = parts.map(|(piece, part)| (piece, Points(part.clone()))).collect();
        self.send(endpoint, to, Letter::new(PIECES, encode(&parts)).with_header(&number));
    }

    /// Another node asks for pieces.
    pub(super) fn take_question(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let (name, number): (u64, u64) = decode(incoming.header())?;
        let from = usize::from(incoming.from().0);
        let mut known = self.finds.0.lock();
        let pieces = match known.known.get(&name) {
            Some(entry) => Arc::clone(&entry.pieces),
            None => {
                known.asked.entry(name).or_default().push((from, number));
                return Some(());
            }
        };
        drop(known);
        self.answer(incoming.endpoint(), from, (number, &pieces));
        Some(())
    }

    /// An answer comes. Nobody may want it any more, if the job is over.
    pub(super) fn take_pieces(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let number: u64 = decode(incoming.header())?;
        let parts: Parts = decode(&self.take_payload(incoming))?;
        let mut known = self.finds.0.lock();
        let Some(question) = known.questions.get(&number).cloned() else { return Some(()) };
        let mut answers = question.answers.lock();
        answers.come.push(parts);
        answers.missing = answers.missing.checked_sub(1)?;
        if answers.missing == 0 {
            known.questions.remove(&number);
            drop(known);
            answers.waiting.drain(..).for_each(|waiting| waiting.unpark());
        }
        Some(())
    }
}

/// The job is over, and this node has left it.
#[derive(Debug, thiserror::Error)]
#[error("the pieces of a partition are on other nodes of a job that this one has left")]
struct Gone;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_nodes_have_let_go_of_is_kept_no_longer() {
        let finds = Finds::default();
        let (pieces, names) = (Arc::new(Vec::new()), [3, 5, 8]);
        for name in names {
            let entry = Entry { pieces: Arc::clone(&pieces), is_gone: name != 5 };
            finds.0.lock().known.insert(name, entry);
        }
        assert_eq!(finds.gone(), [3, 8]);
        // Another node still has the third, and a third node the first.
        finds.forget(&[finds.gone(), vec![3, 5], vec![5, 8]]);
        assert_eq!(Arc::strong_count(&pieces), 4);
        finds.forget(&[finds.gone(), vec![3, 5, 8], vec![5, 8]]);
        assert_eq!((Arc::strong_count(&pieces), finds.gone()), (3, vec![3]));
    }
}
