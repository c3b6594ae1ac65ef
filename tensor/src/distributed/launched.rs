//! Launches that can be awaited together.

use std::future::IntoFuture;
use std::pin::Pin;

use maniple::FutureMap;

use super::error::DistributedError;

/// Launches that may be awaited. Awaiting them waits for their end, and gives the first failure; programs need not do
/// so.
#[derive(Debug, Default)]
#[must_use = "what it failed of is heard where it is awaited, or where its results are read"]
pub struct Launched {
    pub(super) steps: Vec<FutureMap<()>>,
}

impl IntoFuture for Launched {
    type Output = Result<(), DistributedError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            for step in self.steps {
                step.await?;
            }
            Ok(())
        })
    }
}
