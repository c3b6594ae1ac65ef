//! A mapper with shardings of one's own.

use std::sync::Arc;

use crate::{Mapper, Sharding, TaskInfo};

/// Deals launches to nodes as a function says, and leaves all else to another mapper.
///
/// ```
/// use maniple_mapper::{DefaultMapper, Sharding, ShardingMapper};
///
/// // Later points have more to do.
/// let mapper = ShardingMapper::new(DefaultMapper::new(), |launch, _nodes| match launch.name {
///     "eliminate" => Sharding::Cyclic,
///     _ => Sharding::Blocked,
/// });
/// # drop(mapper);
/// ```
#[derive(Clone)]
pub struct ShardingMapper<M> {
    inner: M,
    sharding: Arc<ShardingOf>,
}

/// Of a launch and the number of nodes.
type ShardingOf = dyn Fn(&TaskInfo<'_>, usize) -> Sharding + Send + Sync;

impl<M: Mapper> ShardingMapper<M> {
    /// A mapper that deals launches as the function says, under the rules of [`Mapper::shard_launch`].
    pub fn new(inner: M, sharding: impl Fn(&TaskInfo<'_>, usize) -> Sharding + Send + Sync + 'static) -> Self {
        Self { inner, sharding: Arc::new(sharding) }
    }
}

impl<M: Mapper> Mapper for ShardingMapper<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn shard_launch(&mut self, launch: &TaskInfo<'_>, nodes: usize) -> Sharding {
        (self.sharding)(launch, nodes)
    }

    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }
}
