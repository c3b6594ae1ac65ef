//! This process's node of a job, as the runtime sees it.

use std::ops::Deref;
use std::sync::Arc;

use maniple_analysis::distribution::Rank;
use maniple_cluster::{Failure, Job, JobBuilder, Layer, Received};
use maniple_realm::net::Transport;
use maniple_realm::{Fault, Realm};

use super::batches::{self, Batches};
use super::directory::{Directory, Pieces};
use super::failure::SentErrors;
use super::guests::{self, Guests};
use super::luggage::{self, Away};
use super::slices::{self, Slices};
use crate::error::Error;
use crate::statistics::{PeerCounters, PeerStatistics};

/// A node of a job, with what the runtime does with the others.
pub(crate) struct Node {
    job: Job,
    pub(super) post: Arc<Post>,
    /// The blocks of distributed partitions.
    pub(super) directory: Directory,
    /// What was exchanged with each node.
    peers: Box<[PeerCounters]>,
}

impl Deref for Node {
    type Target = Job;

    fn deref(&self) -> &Job {
        &self.job
    }
}

/// What the handlers know that move tasks.
pub(super) struct Post {
    pub(super) rank: Rank,
    pub(super) sent_errors: SentErrors,
    pub(super) guests: Guests,
    /// Leaf tasks that are elsewhere with their data.
    pub(super) away: Away,
    pub(super) slices: Slices,
    pub(super) batches: Batches,
}

impl Layer for Post {
    fn open(&self) -> usize {
        self.guests.away() + self.away.count() + self.slices.away() + self.batches.away()
    }

    fn close(&self, why: Option<&Arc<Fault>>) {
        let over = || Error::launch("a task on another node", "it will not come back, as this node has left the job");
        let error = why.map_or_else(over, |why| Error::of_fault(why, "", None));
        self.guests.come_back(&error);
        self.away.come_back(&error);
        self.slices.come_back(&error);
        self.batches.come_back(&error);
    }

    fn recall(&self, failure: &Failure) -> Option<Fault> {
        self.sent_errors.recall(failure).map(Fault::new)
    }
}

impl Node {
    /// Joins a job. When a node of it is lost, the realm gives up.
    pub(crate) fn join(transport: Arc<dyn Transport>, realm: &Realm) -> Self {
        let post = Arc::new(Post {
            rank: usize::from(transport.rank().0),
            sent_errors: SentErrors::default(),
            guests: Guests::default(),
            away: Away::default(),
            slices: Slices::default(),
            batches: Batches::default(),
        });
        let pieces = Arc::new(Pieces::default());
        let mut builder = JobBuilder::new(transport, realm).layer(Arc::clone(&post) as Arc<dyn Layer>);
        for register in [guests::register, luggage::register, slices::register, batches::register] {
            builder = register(builder, &post);
        }
        let job = pieces.register(builder).join();
        let peers = (0..job.nodes()).map(|_| PeerCounters::default()).collect();
        Self { directory: Directory::new(job.clone(), pieces), job, post, peers }
    }

    /// What was exchanged with a node.
    pub(super) fn peer(&self, node: Rank) -> &PeerCounters {
        &self.peers[node]
    }

    /// What was exchanged with each node.
    pub(crate) fn peers(&self) -> Vec<PeerStatistics> {
        self.peers.iter().map(PeerCounters::read).collect()
    }

    /// What others are told of an error here.
    pub(crate) fn tell(&self, error: &Error) -> Failure {
        self.post.sent_errors.tell(error, self.post.rank)
    }

    /// The error of which another node tells.
    pub(crate) fn hear(&self, failure: Failure) -> Error {
        self.post.sent_errors.hear(failure)
    }
}

/// A handler of messages that move tasks.
pub(super) fn handler(
    post: &Arc<Post>,
    handle: fn(&Arc<Post>, Received<'_, '_>) -> Option<()>,
) -> impl Fn(Received<'_, '_>) -> Option<()> + Send + Sync + 'static {
    let post = Arc::clone(post);
    move |received| handle(&post, received)
}
