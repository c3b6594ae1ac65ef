//! Launches, as programs make them.

use std::panic::Location;
use std::sync::Arc;

use maniple_region::Provenance;
use maniple_space::{AnyRect, PointSet, Rect};

use crate::context::Context;
use crate::data::regions::Domain;
use crate::future::{Future, FutureMap};
use crate::launch::{Described, Launch, TaskLauncher};
use crate::nodes::replication::Replica;
use crate::operation::lifecycle::MapperNumber;
use crate::results::Results;
use crate::support::error::Error;
use crate::trace::submission::refused;

impl Context {
    /// Launches a task once. Returns at once; the task takes effect at this place in program order.
    ///
    /// A launch that is refused (a privilege that is not held, requirements that interfere, a region that was
    /// destroyed, a partition where only one of its pieces can be meant) gives a future that fails.
    #[track_caller]
    #[inline]
    pub fn launch<T>(&self, task: Launch<T>) -> Future<T> {
        match self.fork(task, Location::caller()) {
            Ok(future) => future,
            Err(launcher) => self.launch_ordinarily(launcher, self.here()),
        }
    }

    /// The same, at a place of the program.
    pub(crate) fn launch_from<T>(&self, task: Launch<T>, launched: Provenance) -> Future<T> {
        match self.fork(task, launched.location()) {
            Ok(future) => future,
            Err(launcher) => self.launch_ordinarily(launcher, launched),
        }
    }

    /// Forks a task if it may be.
    #[inline]
    fn fork<T>(
        &self,
        task: Launch<T>,
        launched: &'static Location<'static>,
    ) -> std::result::Result<Future<T>, TaskLauncher> {
        let mut fork = match task.described {
            Described::Free(fork) => fork,
            Described::Launcher(launcher) => return Err(launcher),
        };
        match self.may_fork() && self.state.fork(&mut fork, launched) {
            true => Ok(Future::of_fork(fork)),
            false => Err(fork.into()),
        }
    }

    fn launch_ordinarily<T>(&self, launcher: TaskLauncher, launched: Provenance) -> Future<T> {
        Future::new(self.submit_task(launcher, launched, AnyRect::from(Rect::<1>::from(0..1)), false), 0)
    }

    /// Launches a task once for each point of a domain. Returns at once; the points run side by side, at this place in
    /// program order.
    ///
    /// Analysed once, whatever the number of points. A launch that is refused (as for [`Context::launch`], or points
    /// that interfere with one another, or a projection that leaves its bound) gives futures that fail.
    #[track_caller]
    pub fn index_launch<T>(&self, domain: impl Into<Domain>, task: Launch<T>) -> FutureMap<T> {
        FutureMap::new(self.submit_task(task.into_launcher(), self.here(), domain.into().rect(), true))
    }

    /// Launches a task once for each point of a set, which need not be a rectangle: of tiles, those that are refined;
    /// of pieces, those that are not empty. As [`index_launch`](Self::index_launch) in all else: one operation, whose
    /// points run side by side.
    ///
    /// Bodies and projections get the points of the set. Mappers get their numbers in row-major order, and deal and
    /// slice those.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # use maniple::{IndexSpace, PointSet};
    /// # #[derive(Fields)]
    /// # struct Cell { heat: f64 }
    /// # #[task(leaf)]
    /// # fn refine(#[point] tile: Point<2>, #[writes(heat)] cells: Piece<Cell, 2>) -> i64 { tile[0] + tile[1] }
    /// # Runtime::builder().workers(1).build()?.run(async |cx: &Context| {
    /// let cells = cx.region_over::<Cell, 2>(Rect::from_shape([100, 100]))?;
    /// let tiles = cells.blocks([10, 10])?;
    /// let diagonal = IndexSpace::from_points((0..10).map(|number| Point([number, number])));
    /// // Made once for many launches.
    /// let diagonal = PointSet::from(&diagonal);
    /// let sums = cx.index_launch_over(&diagonal, refine(&tiles));
    /// assert_eq!(sums.get([3, 3])?.await?, 6);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    #[track_caller]
    pub fn index_launch_over<T>(&self, points: impl Into<PointSet>, task: Launch<T>) -> FutureMap<T> {
        let points = points.into();
        let domain = Domain::from(points.len()).rect();
        let launcher = task.into_launcher().over(points.clone());
        let results = self.submit_task(launcher, self.here(), domain, true);
        results.are_over(Some(&points));
        FutureMap::new(results)
    }

    /// The place in the program at which the caller launches.
    #[track_caller]
    #[inline]
    pub(crate) fn here(&self) -> Provenance {
        Provenance::here(self.said.clone())
    }

    /// Whether a task without regions needs no launch of its own: forks are for the usual mapper, and know no more of
    /// their launch than its place in the source.
    #[inline]
    fn may_fork(&self) -> bool {
        !self.state.is_replicated() && self.said.is_none() && self.mapper == MapperNumber::USUAL
    }

    fn submit_task(
        &self,
        mut launcher: TaskLauncher,
        launched: Provenance,
        domain: AnyRect,
        index_launch: bool,
    ) -> Arc<Results> {
        launcher.note_provenance(launched);
        launcher.check_points();
        self.state.fetch_pieces(launcher.requirements(), &[domain]);
        if self.state.frees_fields()
            && let Err(error) = self.begin_new_fields(launcher.requirements())
        {
            return self.failed(launcher.definition(), domain, &error.launched_at(launcher.provenance()));
        }
        let Some(replica) = Replica::of(&self.state) else {
            return self.submit_local(launcher, domain, None, index_launch);
        };
        let definition = Arc::clone(launcher.definition());
        let provenance = launcher.provenance().cloned();
        let refused = refused(&mut launcher, &domain, self);
        let launched = refused.and_then(|()| replica.launch(self, launcher, domain, index_launch));
        let place = |error: Error| error.launched_at(provenance.as_ref());
        launched.unwrap_or_else(|error| self.failed(&definition, domain, &place(error)))
    }
}
