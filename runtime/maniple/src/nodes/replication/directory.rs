//! The pieces of distributed partitions that nodes ask each other for.
//!
//! The points of an index space are dealt to the nodes in *blocks* of about the same volume. Of a distributed partition
//! each node has what the pieces have in its own block. A node that asks for a piece which it does not know gets all
//! pieces, from all blocks.

use std::sync::Arc;
use std::task::{Wake, Waker};

use bytes::Bytes;
use maniple_analysis::distribution::{Points, Rank};
use maniple_cluster::{Job, JobBuilder, JobMessageKind, Layer, Outgoing, Received, decode, encode};
use maniple_realm::Fault;
use maniple_realm::locks::Mutex;
use maniple_realm::threads::Parker;
use maniple_region::{IndexSpaceNode, Shape, ShapeTable};
use maniple_space::{AnySpace, for_dimension, partition};
use rustc_hash::FxHashMap;

use crate::support::error::{Error, Result};

/// Asks for the pieces of a partition.
const ASK_PIECES: JobMessageKind = JobMessageKind::new(8);
/// Brings what a node has of them.
const PIECES: JobMessageKind = JobMessageKind::new(9);

/// The parts of pieces in a block, each with the number of its piece. A piece without points there is left out.
pub(super) type Parts = Vec<(usize, Points)>;

/// The pieces that a node of a job knows, and its access to those of other nodes; a handle, cheap to clone.
#[derive(Clone)]
pub(super) struct Directory {
    job: Job,
    pieces: Arc<PieceDirectory>,
}

/// The pieces of distributed partitions that this node has, for other nodes that ask, and the questions that it has
/// asked.
#[derive(Default)]
pub(super) struct PieceDirectory(Mutex<KnownPieces>);

#[derive(Default)]
struct KnownPieces {
    known: FxHashMap<u64, DirectoryEntry>,
    /// Others have asked for what is not yet here: each with the number of its question.
    asked: FxHashMap<u64, Vec<(Rank, u64)>>,
    questions: FxHashMap<u64, Arc<Question>>,
    next_question: u64,
}

struct DirectoryEntry {
    pieces: Arc<Vec<AnySpace>>,
    /// No partition of this node asks for it any more. Those of others may.
    is_gone: bool,
}

/// A question to the other nodes, and the answers that have arrived so far. All threads here that want the same pieces
/// wait for the same answers.
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

/// Says, while it is there, that a partition of this node may ask for pieces.
pub(super) struct Held {
    pieces: Arc<PieceDirectory>,
    name: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(entry) = self.pieces.0.lock().known.get_mut(&self.name) {
            entry.is_gone = true;
        }
    }
}

/// Wakes a thread that waits for pieces, should the job end meanwhile.
struct Unpark(Arc<Parker>);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Directory {
    pub(super) fn new(job: Job, pieces: Arc<PieceDirectory>) -> Self {
        Self { job, pieces }
    }

    /// Whether this node has left its job.
    pub(super) fn is_closed(&self) -> bool {
        self.job.is_closed()
    }

    /// This node's block of the points of the root above a space.
    pub(super) fn block(&self, space: &IndexSpaceNode) -> Shape {
        blocks(root(space), self.job.nodes(), space.forest().shapes()).swap_remove(self.job.rank())
    }

    /// Lets other nodes ask for the pieces of a partition by its name. These are the parts here.
    pub(super) fn register(&self, name: u64, pieces: &Arc<Vec<AnySpace>>) -> Held {
        let mut known = self.pieces.0.lock();
        known.known.insert(name, DirectoryEntry { pieces: Arc::clone(pieces), is_gone: false });
        let asked = known.asked.remove(&name);
        drop(known);
        for (to, number) in asked.into_iter().flatten() {
            self.job.send(to, answer(number, pieces));
        }
        Held { pieces: Arc::clone(&self.pieces), name }
    }

    /// Partitions for which this node does not ask any more, in order.
    pub(super) fn gone(&self) -> Vec<u64> {
        self.pieces.gone()
    }

    /// Drops those for which no node asks any more: each has said for which it does not.
    pub(super) fn forget(&self, gone: &[Vec<u64>]) {
        self.pieces.forget(gone);
    }

    /// All pieces of a distributed partition, of which these are the parts here. The thread sleeps until they have
    /// arrived: it runs nothing else meanwhile, as that might ask too.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub(super) fn ask(&self, name: u64, own: &[AnySpace]) -> Result<Vec<AnySpace>> {
        let (job, pieces) = (&self.job, &self.pieces);
        if job.nodes() == 1 {
            return Ok(own.to_vec());
        }
        if job.is_closed() {
            return Err(Error::internal(Gone));
        }
        let (parker, realm) = (Arc::new(Parker::default()), job.realm());
        let (number, question, is_new) = pieces.question(name, job.nodes() - 1);
        question.answers.lock().waiting.push(Arc::clone(&parker));
        for to in (0..job.nodes()).filter(|&to| is_new && to != job.rank()) {
            job.send(to, Outgoing::new(ASK_PIECES, Bytes::new()).with_header(&(name, number)));
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
                pieces.0.lock().questions.remove(&number);
                return Err(job.over(why).into());
            }
            if job.is_closed() {
                return Err(Error::internal(Gone));
            }
            parker.park();
        }
    }
}

impl Layer for PieceDirectory {
    /// How many questions are open, here or of others.
    fn open(&self) -> usize {
        let known = self.0.lock();
        known.asked.len() + known.questions.len()
    }

    /// Threads that have asked watch the realm.
    fn close(&self, _why: Option<&Arc<Fault>>) {}
}

impl PieceDirectory {
    /// Gives a job the messages about pieces.
    pub(super) fn register(self: &Arc<Self>, builder: JobBuilder) -> JobBuilder {
        let (asked, answered) = (Arc::clone(self), Arc::clone(self));
        builder
            .on(ASK_PIECES, "question for pieces", move |received| asked.take_question(&received))
            .on(PIECES, "pieces", move |received| answered.take_pieces(received))
            .layer(Arc::clone(self) as Arc<dyn Layer>)
    }

    /// The question for the pieces of a partition, with its number: one that is open, or a new one, that so many are to
    /// be asked.
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

    fn gone(&self) -> Vec<u64> {
        let known = self.0.lock();
        let mut gone: Vec<u64> = known.known.iter().filter(|(_, entry)| entry.is_gone).map(|(&name, _)| name).collect();
        gone.sort_unstable();
        gone
    }

    fn forget(&self, gone: &[Vec<u64>]) {
        let Some((first, others)) = gone.split_first() else { return };
        let of_all = first.iter().filter(|name| others.iter().all(|gone| gone.binary_search(name).is_ok()));
        let mut known = self.0.lock();
        let forgotten: Vec<Option<DirectoryEntry>> = of_all.map(|name| known.known.remove(name)).collect();
        drop(known);
        drop(forgotten);
    }

    /// Another node asks for pieces.
    fn take_question(&self, received: &Received<'_, '_>) -> Option<()> {
        let (name, number): (u64, u64) = received.header()?;
        let from = received.from();
        let mut known = self.0.lock();
        let pieces = match known.known.get(&name) {
            Some(entry) => Arc::clone(&entry.pieces),
            None => {
                known.asked.entry(name).or_default().push((from, number));
                return Some(());
            }
        };
        drop(known);
        received.messenger().send(from, answer(number, &pieces));
        Some(())
    }

    /// An answer has arrived. No thread may want it any more, if the job is over.
    fn take_pieces(&self, mut received: Received<'_, '_>) -> Option<()> {
        let number: u64 = received.header()?;
        let parts: Parts = decode(&received.take_payload())?;
        let mut known = self.0.lock();
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

/// The answer to a question: what the block has of the pieces.
fn answer(number: u64, pieces: &[AnySpace]) -> Outgoing {
    let parts = pieces.iter().enumerate().filter(|(_, part)| !part.is_empty());
    let parts: Parts = parts.map(|(piece, part)| (piece, Points(part.clone()))).collect();
    Outgoing::new(PIECES, encode(&parts)).with_header(&number)
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

/// The job is over, and this node has left it.
#[derive(Debug, thiserror::Error)]
#[error("the pieces of a partition are on other nodes of a job that this one has left")]
pub(super) struct Gone;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_node_asks_for_any_more_is_dropped() {
        let known = PieceDirectory::default();
        let (pieces, names) = (Arc::new(Vec::new()), [3, 5, 8]);
        for name in names {
            let entry = DirectoryEntry { pieces: Arc::clone(&pieces), is_gone: name != 5 };
            known.0.lock().known.insert(name, entry);
        }
        assert_eq!(known.gone(), [3, 8]);
        // Another node still has the third, and a third node the first.
        known.forget(&[known.gone(), vec![3, 5], vec![5, 8]]);
        assert_eq!(Arc::strong_count(&pieces), 4);
        known.forget(&[known.gone(), vec![3, 5, 8], vec![5, 8]]);
        assert_eq!((Arc::strong_count(&pieces), known.gone()), (3, vec![3]));
    }
}
