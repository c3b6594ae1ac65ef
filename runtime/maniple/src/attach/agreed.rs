//! What all nodes do or none, of what each may be unable to do by itself.

use std::sync::Arc;

use maniple_realm::Fault;

use crate::context::Context;
use crate::error::Result;
use crate::future::Future;
use crate::replication::Replica;
use crate::results::{Origin, Results, Sources, one_point};

impl Context {
    /// Fails on all nodes of a replicated program if it does on one, with what that has failed with. Waits for all.
    pub(crate) async fn all_or_none(&self, what: &'static str, mine: Result<()>) -> Result<()> {
        match self.spread_outcome(what, &mine) {
            None => mine,
            Some(all) => all.await,
        }
    }

    /// The same, in code that is not `async`.
    pub(super) fn all_or_none_now(&self, what: &'static str, mine: Result<()>) -> Result<()> {
        match self.spread_outcome(what, &mine) {
            None => mine,
            Some(all) => all.wait(),
        }
    }

    fn spread_outcome(&self, what: &'static str, mine: &Result<()>) -> Option<Future<()>> {
        let (replica, realm) = (Replica::of(&self.state)?, self.state.core.realm());
        let end = realm.user_event();
        match mine {
            Ok(()) => realm.trigger(end),
            Err(error) => realm.poison(end, Arc::<Fault>::from(error.clone())),
        }
        let own = Results::new(realm, Origin::BuiltIn(what), one_point(), end.event(), Sources::new());
        Some(replica.spread(what, &Future::new(own, 0)))
    }
}
