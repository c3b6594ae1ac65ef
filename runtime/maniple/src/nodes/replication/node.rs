//! This process's node of a job, as the runtime sees it.

use std::ops::Deref;
use std::sync::Arc;

use maniple_analysis::distribution::Rank;
use maniple_cluster::{Failure, Job};
use maniple_realm::Realm;
use maniple_realm::net::Transport;

use super::directory::{Directory, PieceDirectory};
use super::failure::SentErrors;
use super::network;
use crate::migration::Migration;
use crate::support::error::Error;
use crate::support::statistics::{PeerCounters, PeerStatistics};

/// A node of a job, with what the runtime does with the others.
pub(crate) struct JobNode {
    job: Job,
    migration: Arc<Migration>,
    /// The blocks of distributed partitions.
    pub(super) directory: Directory,
    errors: Arc<SentErrors>,
    /// The counters of the traffic with each node.
    peers: Box<[PeerCounters]>,
}

impl Deref for JobNode {
    type Target = Job;

    fn deref(&self) -> &Job {
        &self.job
    }
}

impl JobNode {
    /// Joins a job. When a node of it is lost, the realm gives up.
    pub(crate) fn join(transport: Arc<dyn Transport>, realm: &Realm) -> Self {
        let (errors, pieces) = (Arc::default(), Arc::new(PieceDirectory::default()));
        let (job, migration) = network::join(transport, realm, &errors, |builder| pieces.register(builder));
        let peers = (0..job.nodes()).map(|_| PeerCounters::default()).collect();
        Self { directory: Directory::new(job.clone(), pieces), job, migration, errors, peers }
    }

    /// The migration of tasks between this node and the others.
    #[inline]
    pub(crate) fn migration(&self) -> &Arc<Migration> {
        &self.migration
    }

    /// The counters of the traffic with a node.
    pub(super) fn peer(&self, node: Rank) -> &PeerCounters {
        &self.peers[node]
    }

    /// The statistics of the traffic with each node.
    pub(crate) fn peers(&self) -> Vec<PeerStatistics> {
        self.peers.iter().map(PeerCounters::read).collect()
    }

    /// The failure that tells other nodes of an error on this node.
    pub(crate) fn tell(&self, error: &Error) -> Failure {
        self.errors.tell(error, self.job.rank())
    }

    /// The error of which another node tells.
    pub(crate) fn hear(&self, failure: Failure) -> Error {
        self.errors.hear(failure)
    }
}
