//! The dispatch of a context's fills: into the session under way, a new one, or the stream.

use std::slice;
use std::sync::Arc;

use super::session::Check;
use super::stream::{Tracing, may_be_found};
use super::trace::TraceId;
use crate::context::ContextState;
use crate::instances::bound::Bound;
use crate::launch::{FillSite, Filling};
use crate::support::error::Result;

impl ContextState {
    /// Takes a fill into a session, if it belongs there. If not, any session has been left: gives the data, of a fill
    /// that was found to be allowed.
    ///
    /// # Errors
    /// Why it is not allowed. Then it counts for nothing.
    pub(crate) fn trace_fill(self: &Arc<Self>, filling: &Filling) -> Result<Option<Bound>> {
        if self.core.is_tracing() {
            self.throttle()?;
            if self.tracing().replay_fill(self, filling) {
                return Ok(None);
            }
        }
        let bound = self.bind_fill(filling)?;
        let mut tracing = self.tracing();
        if tracing.is_elsewhere() {
            tracing.interrupt(self);
            return Ok(Some(bound));
        }
        tracing.strict.filled(self, filling);
        let site = Arc::new(FillSite::new(filling, bound));
        let is_taken = match tracing.book.depth {
            _ if !self.core.is_tracing() => false,
            _ if !filling.is_comparable() => {
                tracing.interrupt(self);
                false
            }
            0 => tracing.fill_outside(self, &site),
            _ => tracing.fill_inside(&site),
        };
        Ok((!is_taken).then(|| site.bound.clone()))
    }

    /// Checks that a fill is allowed, and finds the state of its data. Fields that took the ids of freed ones become
    /// zero before it.
    ///
    /// # Errors
    /// Why it is not allowed.
    pub(crate) fn bind_fill(self: &Arc<Self>, filling: &Filling) -> Result<Bound> {
        self.fetch_pieces(slice::from_ref(&filling.requirement), &[]);
        let mut renewed = Vec::new();
        let bound = self.bind_and(filling.name, filling.requirement.clone(), &mut |zero| renewed.push(zero));
        if !renewed.is_empty() {
            self.interrupt("new fields in the place of freed ones");
        }
        // Also if the fill is refused: the next operation will not be told.
        renewed.into_iter().try_for_each(|zero| self.submit_zero(zero))?;
        let bound = bound?;
        self.check_inline(filling.name, slice::from_ref(&bound))?;
        Ok(bound)
    }
}

impl Tracing {
    /// Replays a fill, if a replay is under way that expects it. If not, nothing has happened.
    fn replay_fill(&mut self, context: &ContextState, filling: &Filling) -> bool {
        let Some((id, session)) = self.session().filter(|_| !self.is_elsewhere()) else { return false };
        let mut locked = session.lock();
        let Some(token) = locked.expected_fill(filling) else { return false };
        let begins = match (id, self.book.depth) {
            (TraceId::Named(_), 1..) => false,
            (TraceId::Found(id), 0) => {
                if !self.automatic.expects(id, token) {
                    return false;
                }
                self.automatic.push_expected(id, token, context.core.realm())
            }
            _ => return false,
        };
        locked.take_expected_fill();
        drop(locked);
        self.strict.filled(context, filling);
        if begins {
            self.forget_candidates();
        }
        true
    }

    /// Within a trace that the program has named.
    fn fill_inside(&mut self, site: &Arc<FillSite>) -> bool {
        self.session().is_some_and(|(_, session)| session.lock().take_fill(site, Check::None))
    }

    /// Takes in a fill outside of the traces that the program has named. Whether a session has it now.
    fn fill_outside(&mut self, context: &Arc<ContextState>, site: &Arc<FillSite>) -> bool {
        if let Some((TraceId::Named(_), _)) = self.session() {
            self.close();
        }
        if !may_be_found(context) {
            return false;
        }
        let realm = context.core.realm();
        let take = |tracing: &Self| {
            let session = tracing.session();
            session.is_some_and(|(_, session)| session.lock().take_fill(site, Check::Token(site.token)))
        };
        if let Some(expected) = self.automatic.expected() {
            if expected == site.token && take(self) {
                self.automatic.push(expected, realm);
                return true;
            }
            self.automatic.abandon();
            self.close();
        }
        let mut is_taken = false;
        let begun = self.automatic.begin(site.token);
        self.forget_candidates();
        if let Some((id, length)) = begun {
            self.go_to(context, id, length);
            is_taken = take(self);
            if !is_taken {
                self.automatic.abandon();
            }
        }
        if !is_taken {
            self.close();
        }
        self.automatic.push(site.token, realm);
        is_taken
    }
}
