//! Outcomes that nodes share of what each does by itself, such as opening a file: good if it is on all nodes, else on
//! all the failure of the first of them.
//!
//! An event outside of the job may concern one node alone: a file that only this node lacks, a full disk, a shortage of
//! memory. If the node told its program of the event and the others did not, the nodes would go on differently. So
//! nodes first agree on the outcome, and the program sees the same outcome on all of them.

use std::sync::Arc;

use bytes::Bytes;
use maniple_cluster::{CollectiveName, Failure, Wait, decode, encode};
use maniple_realm::locks::Mutex;

use super::node::JobNode;
use super::operations::other;
use super::replica::Replica;
use crate::context::Context;
use crate::support::error::{Error, Result};

/// The description, for messages, of an operation that shares an outcome of the program's own.
const SHARES: &str = "shares an outcome";

/// Something that each node does by itself has begun, as the same operation of the program on all.
pub(crate) struct Agreement {
    node: Arc<JobNode>,
    name: CollectiveName,
    what: &'static str,
    is_concluded: bool,
}

impl Replica {
    /// Something begins that each node does by itself, and that each is to [conclude](Agreement::conclude), whenever it
    /// has. Nothing is waited for here.
    pub(crate) fn begin_agreement(&self, what: &'static str) -> Agreement {
        self.check.add(&self.node, other(what));
        let name = CollectiveName { operation: self.node.begin_operation(what), part: 0 };
        Agreement { node: Arc::clone(&self.node), name, what, is_concluded: false }
    }

    /// Waits until all nodes have come here, each with what has come of something that it has done by itself.
    ///
    /// # Errors
    /// The failure of the first node on which it has failed, the same on all; or the job's, if it is over.
    pub(crate) async fn share_outcome(&self, what: &'static str, wait: Wait, own: Result<()>) -> Result<()> {
        let agreement = self.begin_agreement(what);
        // It is about to wait.
        self.check.compare(&self.node);
        let (concluded, outcome) = (self.node.realm().user_event(), Arc::new(Mutex::new(Ok(()))));
        let (shared, realm) = (Arc::clone(&outcome), self.node.realm().clone());
        agreement.conclude(own, move |all| {
            *shared.lock() = all;
            realm.trigger(concluded);
        });
        self.node.wait(concluded.event(), wait).await?;
        std::mem::replace(&mut *outcome.lock(), Ok(()))
    }
}

impl Agreement {
    /// This has come of it on this node: calls with what has come of it on all, once all have concluded it. The call
    /// must be short, and is not made if the job ends before.
    pub(crate) fn conclude(mut self, own: Result<()>, done: impl FnOnce(Result<()>) + Send + 'static) {
        self.contribute(own.err().as_ref(), done);
    }

    fn contribute(&mut self, own: Option<&Error>, done: impl FnOnce(Result<()>) + Send + 'static) {
        self.is_concluded = true;
        // Empty, if all is well.
        let mine = own.map_or_else(Bytes::new, |error| encode(&self.node.tell(error)).into());
        let first = |parts: Vec<Bytes>| parts.into_iter().find(|part| !part.is_empty()).unwrap_or_default();
        let node = Arc::clone(&self.node);
        let what = self.what;
        let done = move |all: Bytes| match decode::<Failure>(&all) {
            _ if all.is_empty() => done(Ok(())),
            Some(failure) => done(Err(node.hear(failure))),
            None => done(Err(Error::launch(what, "what other nodes say of it cannot be read"))),
        };
        self.node.all_reduce(self.name, mine, Box::new(first), Box::new(done));
    }
}

impl Drop for Agreement {
    /// The others are not to wait for ever.
    fn drop(&mut self) {
        if !self.is_concluded {
            let given_up = Error::launch(self.what, "it was given up on a node before it had ended");
            self.contribute(Some(&given_up), drop);
        }
    }
}

impl Context {
    /// Shares what has come of something that each node does by itself, such as reading a file, and waits for that: if
    /// it has failed on some nodes, all get the failure of the first of them, so that all go on alike. On one node this
    /// gives back what it is given.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # Runtime::builder().workers(1).build()?.run(async |cx: &Context| {
    /// let text = std::fs::read_to_string("/proc/version").map_err(maniple::Error::application);
    /// // Without this, a node that lacks the file would leave the others waiting for it.
    /// let text = cx.share_outcome(text).await?;
    /// # drop(text);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that it is given, or [`Error::OnNode`](crate::Error::OnNode) for the failure of another node; or the
    /// error that ended the job.
    pub async fn share_outcome<T>(&self, own: Result<T>) -> Result<T> {
        let (value, own) = match own {
            Ok(value) => (Some(value), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.all_or_none(SHARES, Wait::Async, own).await?;
        value.ok_or_else(|| Error::launch(SHARES, "it has failed here, and nodes have agreed that it has not"))
    }

    /// Fails on all nodes of a replicated program if it does on one, with what that has failed with. Waits for all.
    pub(crate) async fn all_or_none(&self, what: &'static str, wait: Wait, own: Result<()>) -> Result<()> {
        match Replica::of(&self.state) {
            None => own,
            Some(replica) => replica.share_outcome(what, wait, own).await,
        }
    }
}
