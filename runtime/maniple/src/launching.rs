//! Launches, as programs make them.

use std::sync::Arc;

use maniple_space::{AnyRect, Rect};

use crate::context::Context;
use crate::fork::Fork;
use crate::future::{Future, FutureMap};
use crate::launch::{Described, Launch, TaskLauncher};
use crate::operation::MapperNumber;
use crate::regions::Domain;
use crate::replication::Replica;
use crate::results::Results;
use crate::submission::refused;

impl Context {
    /// Launches a task once. Returns at once; the task takes effect at this place in program order.
    ///
    /// A launch that is refused (a privilege that is not held, requirements that interfere, a region that was destroyed, a partition where only
    /// one of its pieces can be meant) gives a future that fails.
    pub fn launch<T>(&self, task: Launch<T>) -> Future<T> {
        let launcher = match task.described {
            Described::Free(mut fork) => match self.may_fork(&fork) && self.state.fork(&mut fork) {
                true => return Future::of_fork(fork),
                false => fork.into(),
            },
            Described::Launcher(launcher) => launcher,
        };
        Future::new(self.submit_task(launcher, AnyRect::from(Rect::<1>::from(0..1)), false), 0)
    }

    /// Launches a task once for each point of a domain. Returns at once; the points run side by side, at this place in program order.
    ///
    /// Analysed once, whatever the number of points. A launch that is refused (as for [`Context::launch`], or points that interfere with one
    /// another, or a projection that leaves its bound) gives futures that fail.
    pub fn index_launch<T>(&self, domain: impl Into<Domain>, task: Launch<T>) -> FutureMap<T> {
        FutureMap::new(self.submit_task(task.into_launcher(), domain.into().rect(), true))
    }

    /// Whether a task without regions needs no launch of its own: forks are for the usual mapper.
    #[inline]
    fn may_fork(&self, fork: &Fork) -> bool {
        !self.state.is_replicated()
            && self.mapper == MapperNumber::USUAL
            && fork.head().definition().mapper_name().is_none()
    }

    fn submit_task(&self, mut launcher: TaskLauncher, domain: AnyRect, index_launch: bool) -> Arc<Results> {
        self.state.fetch_pieces(launcher.requirements(), &[domain]);
        let Some(replica) = Replica::of(&self.state) else {
            return self.submit_local(launcher, (domain, None, index_launch));
        };
        let definition = Arc::clone(launcher.definition());
        let refused = refused(&mut launcher, &domain, self);
        let launched = refused.and_then(|()| replica.launch(self, launcher, (domain, index_launch)));
        launched.unwrap_or_else(|error| self.failed(&definition, domain, &error))
    }
}
