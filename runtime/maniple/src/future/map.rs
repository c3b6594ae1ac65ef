//! The futures of all points of an index launch.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use maniple_realm::{After, Event, fault};
use maniple_region::{FieldValue, ReductionOperator};
use maniple_space::{AnyPoint, AnyRect};

use super::Future;
use crate::results::completion::Folding;
use crate::results::promise::{Promise, compute};
use crate::results::{Input, Results, Sources};
use crate::support::drop_caught::drop_caught;
use crate::support::error::{Error, Result};

/// The results of an index launch, one for each point.
pub struct FutureMap<T> {
    results: Arc<Results>,
    marker: PhantomData<fn() -> T>,
}

impl<T> FutureMap<T> {
    pub(crate) fn new(results: Arc<Results>) -> Self {
        Self { results, marker: PhantomData }
    }

    /// The points; of a launch [over a set](crate::Context::index_launch_over), their numbers.
    #[must_use]
    pub fn domain(&self) -> AnyRect {
        self.results.domain
    }

    /// Triggers when all results are there, poisoned if any point failed.
    #[must_use]
    pub fn event(&self) -> Event {
        self.results.completion()
    }

    pub(crate) fn results(&self) -> &Arc<Results> {
        &self.results
    }

    /// The result of one point.
    ///
    /// A task that takes the result depends on that point alone: it fails only if that point does, however the others
    /// end, and the result is there when that point has ended. It is there only when all points have ended if some ran
    /// on other nodes, which exchange the results of a launch at once; if it is `()` and the launch was replayed; and
    /// if it is of a map of functions ([`map`](Self::map)).
    ///
    /// # Errors
    /// [`Error::Launch`] for a point that the launch did not have. The failure of a launch that was refused for the
    /// number of its points.
    pub fn get(&self, point: impl Into<AnyPoint>) -> Result<Future<T>> {
        Ok(Future::new(Arc::clone(&self.results), self.index(point.into())?))
    }

    fn index(&self, point: AnyPoint) -> Result<usize> {
        let index = match self.results.over() {
            Some(points) => points.number_of(point),
            None => self.results.index_of(point),
        };
        index.ok_or_else(|| {
            let (name, domain) = (self.results.name(), self.results.domain);
            // Of a launch that was refused there may be no points.
            let refused = domain.is_empty().then(|| self.results.launch_failure()).flatten();
            refused.unwrap_or_else(|| match self.results.over() {
                Some(points) => Error::launch(name, format!("it is none of its {} points: {point}", points.len())),
                None => Error::launch(name, format!("its domain {domain} has no point {point}")),
            })
        })
    }
}

impl<T: Clone + Send + Sync + 'static> FutureMap<T> {
    pub(crate) fn value(&self, point: AnyPoint) -> Result<T> {
        self.results.get(self.index(point)?)
    }

    /// Waits for all results, in the row-major order of the points.
    ///
    /// # Errors
    /// The first failure in the order of points.
    pub async fn all(&self) -> Result<Vec<T>> {
        self.results.seen_to_end().await;
        (0..self.results.points()).map(|index| self.results.get(index)).collect()
    }

    /// The results of a function of each point's result, computed where the last of these comes in. The function must
    /// be short.
    ///
    /// A point whose result is a failure keeps it; the others have theirs.
    pub fn map<U: Clone + Send + Sync + 'static>(&self, function: impl Fn(T) -> U + Send + 'static) -> FutureMap<U> {
        const NAME: &str = "map";
        let source = Arc::clone(&self.results);
        let promise = Promise::new(NAME, source.domain, Sources::from_iter([Input::all(Arc::clone(&source))]));
        promise.results.are_over(source.over());
        let map = FutureMap::new(Arc::clone(&promise.results));
        source.realm.clone().when(After::follows(&[source.completion()]), move |_| {
            let values = source.domain.points().enumerate().map(|(index, point)| {
                let mapped = fault::catch(|| source.get(index).map(&function));
                mapped.map_err(|fault| Error::of_fault(&fault, NAME, Some(point))).flatten()
            });
            // Of a launch that was refused there may be no points to tell of it.
            promise.keep(values, source.failure());
            drop_caught("a function of futures", NAME, function);
        });
        map
    }

    /// A future of all results folded with an operator: the same on every run. In the row-major order of the points; of
    /// a launch that several nodes share, first on each node in this order, then in the order of nodes, up a tree. Of
    /// no points, the operator's identity.
    pub fn reduce<Op>(&self, _operator: Op) -> Future<T>
    where
        T: FieldValue,
        Op: ReductionOperator<T, Rhs = T>,
    {
        if let Some(shared) = self.results.shared() {
            return Future::new(Arc::clone(shared).reduce(Folding::new(Op::identity(), Op::fold)), 0);
        }
        self.fold(Op::identity(), |mut folded, value| {
            Op::fold(&mut folded, value);
            folded
        })
    }

    /// The running fold of the results with an operator, in row-major order: each point gets the fold of its own result
    /// with those of all points before it, as in running sums. Each is there when all results are. A point after one
    /// that has failed fails with it; points before have their results.
    ///
    /// Of a launch that several nodes share, each node gets what its points come to. They tell each other one value for
    /// each stretch of points that a node has side by side, and no point's: of blocks that is one a node. Floats may so
    /// be rounded otherwise on another number of nodes.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// #[task(leaf)]
    /// fn rows(#[point] point: Point<1>) -> u64 {
    ///     10 * point[0] as u64
    /// }
    ///
    /// # Runtime::builder().workers(1).build()?.run(async |cx: &Context| {
    /// let sizes = cx.index_launch(4, rows());
    /// assert_eq!(sizes.scan(Sum).all().await?, [0, 10, 30, 60]);
    /// // Where the rows of each begin.
    /// assert_eq!(sizes.exclusive_scan(Sum).all().await?, [0, 0, 10, 30]);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    pub fn scan<Op>(&self, _operator: Op) -> FutureMap<T>
    where
        T: FieldValue,
        Op: ReductionOperator<T, Rhs = T>,
    {
        self.scanned::<Op>(true)
    }

    /// As [`scan`](Self::scan), without the point's own result: the first point gets the operator's identity. A point
    /// fails with those before it, not with itself.
    pub fn exclusive_scan<Op>(&self, _operator: Op) -> FutureMap<T>
    where
        T: FieldValue,
        Op: ReductionOperator<T, Rhs = T>,
    {
        self.scanned::<Op>(false)
    }

    fn scanned<Op>(&self, inclusive: bool) -> FutureMap<T>
    where
        T: FieldValue,
        Op: ReductionOperator<T, Rhs = T>,
    {
        if let Some(shared) = self.results.shared() {
            let scanned = Arc::clone(shared).scan(Folding::new(Op::identity(), Op::fold), inclusive);
            scanned.are_over(self.results.over());
            return FutureMap::new(scanned);
        }
        const NAME: &str = "scan";
        let source = Arc::clone(&self.results);
        let promise = Promise::new(NAME, source.domain, Sources::from_iter([Input::all(Arc::clone(&source))]));
        promise.results.are_over(source.over());
        let map = FutureMap::new(Arc::clone(&promise.results));
        source.realm.clone().when(After::follows(&[source.completion()]), move |_| {
            let mut before = Ok(Op::identity());
            let values = source.domain.points().enumerate().map(|(index, point)| {
                let with = before.clone().and_then(|mut folded| {
                    let value = source.get(index)?;
                    let fold = || Op::fold(&mut folded, value);
                    fault::catch(fold).map_err(|fault| Error::of_fault(&fault, NAME, Some(point)))?;
                    Ok(folded)
                });
                let without = std::mem::replace(&mut before, with.clone());
                if inclusive { with } else { without }
            });
            let values: Vec<Result<T>> = values.collect();
            promise.keep(values, source.launch_failure());
        });
        map
    }

    /// A future of all results folded with a function, in the row-major order of the points. Of no points, `start`.
    pub fn fold<U: Clone + Send + Sync + 'static>(
        &self,
        start: U,
        function: impl Fn(U, T) -> U + Send + 'static,
    ) -> Future<U> {
        let results = Arc::clone(&self.results);
        let folded = compute("fold", Sources::from_iter([Input::all(Arc::clone(&self.results))]), move || {
            (0..results.points()).try_fold(start, |folded, index| Ok(function(folded, results.get(index)?)))
        });
        Future::new(folded, 0)
    }
}

impl<T> Clone for FutureMap<T> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.results))
    }
}

impl<T> fmt::Debug for FutureMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FutureMap({:?})", self.results)
    }
}

impl<T: Clone + Send + Sync + 'static> IntoFuture for FutureMap<T> {
    type Output = Result<()>;
    type IntoFuture = Pin<Box<dyn std::future::Future<Output = Result<()>> + Send>>;

    /// Waits for all points, whatever they return.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            self.results.seen_to_end().await;
            match self.results.error() {
                Some(error) => Err(error),
                None => Ok(()),
            }
        })
    }
}
