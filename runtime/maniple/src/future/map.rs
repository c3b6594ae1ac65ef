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
use crate::drop_caught::drop_caught;
use crate::error::{Error, Result};
use crate::results::completion::Folding;
use crate::results::promise::{Promise, compute};
use crate::results::{Input, Results, Sources};

/// The results of an index launch, one for each point.
pub struct FutureMap<T> {
    results: Arc<Results>,
    marker: PhantomData<fn() -> T>,
}

impl<T> FutureMap<T> {
    pub(crate) fn new(results: Arc<Results>) -> Self {
        Self { results, marker: PhantomData }
    }

    /// The points.
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
    /// Whatever takes it depends on that point alone: it fails only if that point does, whatever becomes of the others, and is there when that point
    /// has ended. It is there only when all points have ended if some ran on other nodes, which exchange the results of a launch at once; if it is `()`
    /// and the launch was replayed; and if it is of a map of functions ([`map`](Self::map)).
    ///
    /// # Errors
    /// [`Error::Launch`] for a point that the launch did not have. The failure of a launch that was refused for the number of its points.
    pub fn get(&self, point: impl Into<AnyPoint>) -> Result<Future<T>> {
        Ok(Future::new(Arc::clone(&self.results), self.index(point.into())?))
    }

    fn index(&self, point: AnyPoint) -> Result<usize> {
        self.results.index_of(point).ok_or_else(|| {
            let (name, domain) = (self.results.name(), self.results.domain);
            // Of a launch that was refused there may be no points.
            let refused = domain.is_empty().then(|| self.results.launch_failure()).flatten();
            refused.unwrap_or_else(|| Error::launch(name, format!("its domain {domain} has no point {point}")))
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

    /// The results of a function of each point's result, computed where the last of these comes in. The function must be short.
    ///
    /// A point whose result is a failure keeps it; the others have theirs.
    pub fn map<U: Clone + Send + Sync + 'static>(&self, function: impl Fn(T) -> U + Send + 'static) -> FutureMap<U> {
        const NAME: &str = "map";
        let source = Arc::clone(&self.results);
        let promise = Promise::new(NAME, source.domain, Sources::from_iter([Input::all(Arc::clone(&source))]));
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

    /// A future of all results folded with an operator: the same on every run. In the row-major order of the points; of a launch that several nodes share,
    /// first on each node in this order, then in the order of nodes, up a tree. Of no points, the operator's identity.
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
