//! Pieces that other nodes know, fetched before they are needed where nothing may wait.

use maniple_region::{IndexSpaceNode, LogicalRegion, Projection, Requirement, Target};
use maniple_space::AnyRect;

use super::ContextState;

impl ContextState {
    /// Fetches pieces that only other nodes know and that will be used, at points of these domains if the target is for
    /// several: later no thread waits for them, as a thread that looks at them then may hold what others need. Launches
    /// of a program that runs on several nodes see to the pieces of their points by themselves.
    pub(crate) fn fetch_pieces(&self, requirements: &[Requirement], domains: &[AnyRect]) {
        if self.core.forest().has_distributed_pieces() {
            requirements.iter().for_each(|requirement| self.fetch_pieces_of(&requirement.target, domains));
        }
    }

    fn fetch_pieces_of(&self, target: &Target, domains: &[AnyRect]) {
        let fetch = |region: &LogicalRegion| {
            let mut space = region.space();
            while let IndexSpaceNode::Piece(partition, _) = space {
                let _ = space.shape();
                space = partition.parent();
            }
        };
        fetch(&target.bound());
        if self.is_replicated() {
            return;
        }
        match target {
            Target::Region(_, None) => {}
            Target::Partition(partition, projection) if !matches!(projection.of_points(), Projection::Custom(_)) => {
                let _ = partition.partitioning().pieces();
            }
            // What it names may be anything. If it can't be named, the launch will be refused.
            Target::Region(..) | Target::Partition(..) => {
                for domain in domains {
                    domain.points().filter_map(|point| target.region_at(point, domain).ok()).for_each(|at| fetch(&at));
                }
            }
        }
    }
}
