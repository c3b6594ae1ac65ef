//! Statements that the runtime must refuse: found from the point sets of the pieces, with no shortcut.

use super::{Context, Held, Trouble, World, known, points_of};
use crate::program::{
    Column, FieldNumber, FieldsName, Launch, Node, PartitionName, Passed, Pick, Place, RegionName, Right, Target, Use,
};

fn refuse<T>(why: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Refused(why.into()))
}

fn meaningless<T>(why: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Meaningless(why.into()))
}

/// For each requirement, for each point, its data.
pub type Targets = Vec<Vec<Node>>;

impl World {
    /// Checks a launch and finds the data of its points.
    ///
    /// # Errors
    /// If it is refused, or uses names that do not exist.
    pub fn check_launch(&self, context: &Context, launch: &Launch) -> Result<Targets, Trouble> {
        for argument in &launch.arguments {
            let (name, per_point) = match argument {
                Passed::Value(_) => continue,
                Passed::Future(name) => (name, None),
                Passed::PerPoint(name) => (name, launch.domain),
            };
            let results = self.results(*name)?;
            if results.domain != per_point || (matches!(argument, Passed::PerPoint(_)) && per_point.is_none()) {
                return meaningless("an argument for other points");
            }
        }
        let targets = self.check_uses(context, &launch.requirements, launch)?;
        if let crate::program::Body::Blocks { blocks, .. } = &launch.body
            && blocks.is_empty()
            && !points_of(launch).is_empty()
        {
            return meaningless("a task without blocks");
        }
        Ok(targets)
    }

    /// Checks requirements of a single task.
    pub(super) fn check_single(&self, context: &Context, uses: &[(Column, Right)]) -> Result<(), Trouble> {
        let requirements = uses.iter().map(|&(Column { place, field }, right)| Use {
            region: place.region,
            target: Target::Node(place.node),
            fields: vec![field],
            right,
        });
        let launch = Launch {
            name: crate::program::FutureName(0),
            domain: None,
            requirements: requirements.collect(),
            arguments: Vec::new(),
            body: crate::program::Body::Leaf,
            fault: None,
        };
        self.check_uses(context, &launch.requirements, &launch).map(|_| ())
    }

    fn check_uses(&self, context: &Context, uses: &[Use], launch: &Launch) -> Result<Targets, Trouble> {
        let mut targets = Targets::new();
        // Meaning comes first: a launch is refused only if all its names are known.
        for wanted in uses {
            self.check_region(context, wanted.region)?;
            self.check_names(wanted)?;
        }
        for wanted in uses {
            self.check_alive(wanted.region, self.bound(&wanted.target)?)?;
            let bound = self.bound(&wanted.target)?;
            self.check_held(context, wanted.region, bound, &wanted.fields, wanted.right)?;
            self.check_mapped(context, wanted)?;
            targets.push(self.resolve(wanted, launch)?);
        }
        self.check_interference(uses, &targets)?;
        for wanted in uses {
            if let Right::Reduce(operator) = wanted.right {
                for &field in &wanted.fields {
                    let kind = self.kind(wanted.region, field)?;
                    if operator.is_refused_on(kind) {
                        return refuse("the operator is not known on the field");
                    }
                    if !operator.is_on(kind) {
                        return meaningless("the bodies of tasks do not reduce such numbers");
                    }
                }
            }
        }
        Ok(targets)
    }

    fn check_names(&self, wanted: &Use) -> Result<(), Trouble> {
        let bound = self.bound(&wanted.target)?;
        let root = known(self.regions.get(&wanted.region), &wanted.region)?.space;
        let kinds = self.kinds(wanted.region)?;
        if self.root(bound)? != root || wanted.fields.iter().any(|&field| field >= kinds.len()) {
            return meaningless("a node or field of another region");
        }
        self.points(bound)?;
        match &wanted.target {
            Target::Listed(_, nodes) | Target::Piece(_, Pick::Listed(nodes)) if nodes.is_empty() => {
                meaningless("an empty list of nodes")
            }
            Target::Listed(_, nodes) | Target::Piece(_, Pick::Listed(nodes)) => {
                nodes.iter().try_for_each(|&node| match self.root(node)? == root {
                    true => self.points(node).map(|_| ()),
                    false => meaningless("a node of another region"),
                })
            }
            _ => Ok(()),
        }
    }

    fn bound(&self, target: &Target) -> Result<Node, Trouble> {
        match target {
            Target::Node(node) | Target::Listed(node, _) => Ok(*node),
            Target::Piece(partition, _) => Ok(known(self.partitions.get(partition), partition)?.parent),
        }
    }

    /// Refuses a region that the task can't name.
    pub(super) fn check_region(&self, context: &Context, region: RegionName) -> Result<(), Trouble> {
        known(self.regions.get(&region), &region)?;
        if self.dropped.contains(&region) {
            return meaningless(format!("{region:?} was dropped"));
        }
        let held = context.held.iter().any(|held| held.region == region);
        if held || context.created.contains(&region) || self.regions[&region].destroyed {
            return Ok(());
        }
        meaningless(format!("{region:?} is out of sight"))
    }

    pub(super) fn check_alive(&self, region: RegionName, node: Node) -> Result<(), Trouble> {
        if self.regions[&region].destroyed {
            return refuse("the region was destroyed");
        }
        self.check_node_alive(node)
    }

    pub(super) fn check_not_taken(&self, fields: FieldsName, field: FieldNumber) -> Result<(), Trouble> {
        match self.taken.contains(&(fields, field)) {
            true => meaningless(format!("field {field} of {fields:?} may be another by now")),
            false => Ok(()),
        }
    }

    pub(super) fn check_node_alive(&self, node: Node) -> Result<(), Trouble> {
        match node {
            Node::Root(name) if self.destroyed_spaces.contains(&name) => refuse("the index space was destroyed"),
            Node::Root(_) => Ok(()),
            Node::Piece(name, _) => {
                self.check_partition_alive(name)?;
                self.check_node_alive(known(self.partitions.get(&name), &name)?.parent)
            }
        }
    }

    fn check_partition_alive(&self, name: PartitionName) -> Result<(), Trouble> {
        match known(self.partitions.get(&name), &name)?.destroyed {
            true => refuse("the partition was destroyed"),
            false => Ok(()),
        }
    }

    fn check_held(
        &self,
        context: &Context,
        region: RegionName,
        node: Node,
        fields: &[FieldNumber],
        right: Right,
    ) -> Result<(), Trouble> {
        let kinds = self.kinds(region)?;
        if fields.iter().any(|&field| kinds[field].is_none()) {
            let space = self.regions[&region].fields;
            fields.iter().try_for_each(|&field| self.check_not_taken(space, field))?;
            return refuse("the field was freed");
        }
        if context.created.contains(&region) {
            return Ok(());
        }
        let gives = |held: &&Held| held.region == region && self.is_within(node, held.node) && held.right.covers(right);
        let holders: Vec<&Held> = context.held.iter().filter(gives).collect();
        match fields.iter().all(|field| holders.iter().any(|held| held.fields.contains(field))) {
            true => Ok(()),
            false => refuse("the privilege is not held"),
        }
    }

    /// Whether a use may be about any point of a node.
    fn reaches(&self, target: &Target, node: Node) -> Result<bool, Trouble> {
        match target {
            Target::Node(wanted) | Target::Listed(wanted, _) => self.overlap(*wanted, node),
            Target::Piece(partition, _) => {
                let pieces = known(self.partitions.get(partition), partition)?.pieces.len();
                (0..pieces).try_fold(false, |any, piece| Ok(any || self.overlap(Node::Piece(*partition, piece), node)?))
            }
        }
    }

    fn check_mapped(&self, context: &Context, wanted: &Use) -> Result<(), Trouble> {
        for (mapped, write) in &context.mapped {
            let mine = if *write { Right::Write } else { Right::Read };
            if mapped.place.region == wanted.region
                && wanted.fields.contains(&mapped.field)
                && mine.interferes_with(wanted.right)
                && self.reaches(&wanted.target, mapped.place.node)?
            {
                return refuse("the task itself has mapped the data");
            }
        }
        Ok(())
    }

    fn overlap(&self, a: Node, b: Node) -> Result<bool, Trouble> {
        let (a, b) = (self.points(a)?, self.points(b)?);
        Ok(!a.is_disjoint(b))
    }

    fn resolve(&self, wanted: &Use, launch: &Launch) -> Result<Vec<Node>, Trouble> {
        if launch.domain.is_none() && matches!(wanted.target, Target::Piece(..)) {
            return refuse("a partition for a task that is launched once");
        }
        if let Target::Piece(partition, _) = wanted.target {
            // Even over no points.
            self.check_partition_alive(partition)?;
        }
        let points = points_of(launch);
        points.iter().enumerate().map(|(number, &point)| self.target_of(wanted, number, point)).collect()
    }

    fn target_of(&self, wanted: &Use, number: usize, point: maniple::AnyPoint) -> Result<Node, Trouble> {
        let (partition, pick) = match &wanted.target {
            Target::Node(node) => return Ok(*node),
            Target::Listed(bound, nodes) => {
                let node = nodes[number % nodes.len()];
                self.check_node_alive(node)?;
                return if self.is_within(node, *bound) { Ok(node) } else { refuse("the projection leaves its bound") };
            }
            Target::Piece(partition, pick) => (*partition, pick),
        };
        let pieces = known(self.partitions.get(&partition), &partition)?;
        let count = pieces.pieces.len();
        match pick {
            Pick::Identity if point.dim() == pieces.colors.dim() && pieces.colors.contains(point) => {
                Ok(Node::Piece(partition, pieces.colors.linear(point) as usize))
            }
            Pick::Linear(factor, offset, around) => {
                let colors = pieces.colors;
                if point.dim() != colors.dim() {
                    return refuse("a projection for other dimensions");
                }
                let color = |d: usize| {
                    let (lo, hi) = (colors.lo().coords()[d], colors.hi().coords()[d]);
                    let at = factor * point.coords()[d] + offset;
                    if *around && lo <= hi { lo + (at - lo).rem_euclid(hi - lo + 1) } else { at }
                };
                let coordinates: Vec<i64> = (0..point.dim()).map(color).collect();
                let color = colors.points().find(|known| known.coords() == &coordinates[..]);
                color.map_or_else(
                    || refuse("no such color"),
                    |color| Ok(Node::Piece(partition, colors.linear(color) as usize)),
                )
            }
            Pick::Linearized | Pick::Affine(..) if count == 0 => refuse("no pieces"),
            Pick::Identity => refuse("no such color"),
            Pick::Linearized => Ok(Node::Piece(partition, number % count)),
            Pick::Affine(factor, offset) => Ok(Node::Piece(partition, (factor * number + offset) % count)),
            Pick::Listed(nodes) => {
                let node = nodes[number % nodes.len()];
                self.check_node_alive(node)?;
                let mut above = Some(node);
                while let Some(Node::Piece(name, _)) = above {
                    if name == partition {
                        return Ok(node);
                    }
                    above = self.parent(Node::Piece(name, 0));
                }
                refuse("the projection leaves its bound")
            }
        }
    }

    /// Refuses uses that interfere: of one point, or of two.
    fn check_interference(&self, uses: &[Use], targets: &Targets) -> Result<(), Trouble> {
        for (first, a) in uses.iter().enumerate() {
            for (second, b) in uses.iter().enumerate().skip(first) {
                let common = a.region == b.region && a.fields.iter().any(|field| b.fields.contains(field));
                if !common || !a.right.interferes_with(b.right) {
                    continue;
                }
                for (p, &node) in targets[first].iter().enumerate() {
                    for (q, &other) in targets[second].iter().enumerate() {
                        if (first != second || p < q) && self.overlap(node, other)? {
                            return refuse(format!("requirements {first} and {second} interfere"));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks an operation on one field.
    pub(super) fn check_one(&self, context: &Context, column: Column, right: Right) -> Result<(), Trouble> {
        self.check_single(context, &[(column, right)])
    }

    pub(super) fn check_inline(&self, context: &Context, column: Column, write: bool) -> Result<(), Trouble> {
        self.check_one(context, column, if write { Right::Write } else { Right::Read })
    }

    /// Refuses a copy whose source has too few points.
    pub(super) fn check_covers(&self, large: Place, small: Place) -> Result<(), Trouble> {
        match self.points(small.node)?.is_subset(self.points(large.node)?) {
            true => Ok(()),
            false => refuse("the source lacks points"),
        }
    }
}
