//! Which node runs which points of a launch.

use std::fmt;
use std::sync::Arc;

use maniple_space::{AnyPoint, AnyRect};

/// How the points of a launch are dealt to the nodes of a job. Every node finds out by itself where each point runs, so
/// all must come to the same.
///
/// Of a task that is launched once, the point is the color of the first piece that it names, and the domain that of all
/// colors of its partition; if it names none, there is one point.
#[derive(Clone, Debug, Default)]
pub enum Sharding {
    /// Each node gets a block of neighbouring points, in the order of nodes; blocks have about the same size.
    #[default]
    Blocked,
    /// The points go around the nodes, in row-major order: for work that gets more, or less, from one end of the domain
    /// to the other.
    ///
    /// Points that do not lie side by side on a node are mapped there as launches of their own, at the cost of these.
    Cyclic,
    /// All points run on one node.
    OnOne(usize),
    /// Each point runs where a function says.
    ByPoint(ShardingFunction),
}

impl Sharding {
    /// Each point runs on the node that a function gives for it: of the point, the domain and the number of nodes, and
    /// of nothing else. The name is for messages.
    ///
    /// Every node calls it for each point of a launch, when that is launched for the first time. See also
    /// [`Sharding::Cyclic`].
    ///
    /// ```
    /// use maniple_mapper::Sharding;
    ///
    /// // Whole rows, one after the other.
    /// let rows = Sharding::by_point("rows", |point, domain, nodes| (point.coords()[0] - domain.lo().coords()[0]) as usize % nodes);
    /// assert_eq!(rows.to_string(), "by `rows`");
    /// ```
    pub fn by_point(
        name: impl Into<Arc<str>>,
        function: impl Fn(AnyPoint, &AnyRect, usize) -> usize + Send + Sync + 'static,
    ) -> Self {
        Self::ByPoint(ShardingFunction { name: name.into(), function: Arc::new(function) })
    }
}

impl fmt::Display for Sharding {
    /// As it follows the domain: `over (0)..=(7) in blocks`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked => f.write_str("in blocks"),
            Self::Cyclic => f.write_str("in cycles"),
            Self::OnOne(node) => write!(f, "on node {node}"),
            Self::ByPoint(function) => write!(f, "by `{}`", function.name),
        }
    }
}

/// A function from points to nodes, with a name.
#[derive(Clone)]
pub struct ShardingFunction {
    name: Arc<str>,
    function: Arc<NodeOf>,
}

/// Of a point, the domain, and the number of nodes.
type NodeOf = dyn Fn(AnyPoint, &AnyRect, usize) -> usize + Send + Sync;

impl ShardingFunction {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The node of a point.
    #[must_use]
    pub fn node_of(&self, point: AnyPoint, domain: &AnyRect, nodes: usize) -> usize {
        (self.function)(point, domain, nodes)
    }
}

impl fmt::Debug for ShardingFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardingFunction").field("name", &self.name).finish_non_exhaustive()
    }
}
