//! Refusing launches that would interfere with themselves.
//!
//! Requirements of one task must not interfere with one another, and points of one index launch neither: the runtime
//! would have no order for them. Most launches are seen to be safe at a glance, from the projection and the partition
//! (Soi et al., *Index Launches*, SC'21); the rest are checked point by point.

use std::collections::hash_map::Entry;

use maniple_mapper::RequirementInfo;
use maniple_region::deletion::Deletions;
use maniple_region::{IndexSpaceNode, LogicalRegion, Partitioning, Projection, Requirement, Shape, Target};
use maniple_space::{AnyPoint, AnyRect, AnySpace};
use rustc_hash::FxHashMap;

use crate::instances::bound::Bound;
use crate::support::error::{Error, Result};

/// Relations among the requirements of a launch, as far as its mapping must know them.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    /// For each requirement: different points may use the same data, through it or through it and an earlier one.
    pub(crate) shared: Vec<bool>,
    /// For each requirement: another requirement of some point may reduce to the same data.
    pub(crate) reduces_twice: Vec<bool>,
}

impl Sharing {
    /// The sharing of a launch that is not mapped as it is.
    pub(crate) fn unknown(requirements: usize) -> Self {
        Self { shared: vec![false; requirements], reduces_twice: vec![false; requirements] }
    }
}

/// Knowledge of the points of regions.
pub(crate) trait View {
    /// The points of a space; none if they are not known, as no point of the node that looks at them uses them.
    fn points(&self, space: &IndexSpaceNode) -> Option<Shape>;

    /// All points of pieces of a partition that are known.
    fn union(&self, partition: &Partitioning) -> Shape;

    /// Whether no two pieces that are known share a point.
    fn is_disjoint(&self, partition: &Partitioning) -> bool;
}

/// The knowledge with which a launch is checked.
#[derive(Clone, Copy)]
pub(crate) struct CheckContext<'a> {
    pub(crate) view: &'a dyn View,
    /// The deletions that precede the task that launches.
    pub(crate) deletions: &'a dyn Deletions,
}

/// The knowledge of this node: of partitions that are not known as a whole, the pieces that points of this node use.
pub(crate) struct Here;

impl View for Here {
    fn points(&self, space: &IndexSpaceNode) -> Option<Shape> {
        space.known_shape().cloned()
    }

    fn union(&self, partition: &Partitioning) -> Shape {
        if partition.is_known() {
            return partition.union().clone();
        }
        let (parent, shapes) = (partition.parent(), partition.parent().forest().shapes());
        let known = AnySpace::union_all(parent.space().dim(), partition.known_pieces().map(Shape::space));
        shapes.intern(&known.expect("pieces have their parent's dimension"))
    }

    fn is_disjoint(&self, partition: &Partitioning) -> bool {
        partition.is_surely_disjoint()
    }
}

/// Knowledge of all points. Pieces that are not here are brought.
pub(crate) struct Everywhere;

impl View for Everywhere {
    fn points(&self, space: &IndexSpaceNode) -> Option<Shape> {
        Some(space.shape().clone())
    }

    fn union(&self, partition: &Partitioning) -> Shape {
        partition.union().clone()
    }

    fn is_disjoint(&self, partition: &Partitioning) -> bool {
        partition.is_disjoint()
    }
}

/// Refuses a launch whose requirements or points interfere, as far as that is known.
pub(crate) fn check(
    operation: &str,
    bounds: &[Bound],
    domain: &AnyRect,
    index_launch: bool,
    context: CheckContext<'_>,
) -> Result<Sharing> {
    let CheckContext { view, deletions } = context;
    let mut sharing = Sharing { shared: vec![false; bounds.len()], reduces_twice: vec![false; bounds.len()] };
    for (number, Bound { requirement, .. }) in bounds.iter().enumerate() {
        if !index_launch {
            check_single(operation, requirement)?;
        }
        let meet = index_launch && domain.volume() > 1 && !points_apart(requirement, view);
        sharing.shared[number] = meet;
        if meet && requirement.privilege.interferes_with(requirement.privilege) {
            check_points(operation, requirement, domain, context)?;
        } else {
            check_projection(requirement, domain, deletions)?;
        }
        for (other, Bound { requirement: earlier, .. }) in bounds[..number].iter().enumerate() {
            let interfere = requirement.privilege.interferes_with(earlier.privilege);
            if !(interfere || requirement.privilege.changes_data()) || !may_overlap(requirement, earlier, view) {
                continue;
            }
            if interfere {
                check_pair(operation, earlier, requirement, domain, context)?;
            } else {
                sharing.shared[number] = true;
                sharing.reduces_twice[number] = true;
                sharing.reduces_twice[other] = true;
            }
        }
    }
    Ok(sharing)
}

/// Refuses a partition for a task that is launched once: there is no point that would pick a piece.
fn check_single(operation: &str, requirement: &Requirement) -> Result<()> {
    match &requirement.target {
        Target::Region(..) => Ok(()),
        Target::Partition(partition, _) => {
            let (operation, partition) = (operation.to_owned(), partition.to_string());
            Err(Error::NoPieceNamed { operation, partition, launched: None })
        }
    }
}

/// Whether different points surely have no point of data in common.
fn points_apart(requirement: &Requirement, view: &dyn View) -> bool {
    match &requirement.target {
        Target::Region(..) => false,
        Target::Partition(partition, projection) => {
            projection.is_injective() && view.is_disjoint(partition.partitioning())
        }
    }
}

/// Whether two requirements share fields and maybe points, going by their bounds.
fn may_overlap(a: &Requirement, b: &Requirement, view: &dyn View) -> bool {
    if a.target.tree().id() != b.target.tree().id() || !a.fields.overlaps(&b.fields) {
        return false;
    }
    let (bound_a, bound_b) = (a.target.bound(), b.target.bound());
    if !bound_a.space().overlaps(bound_b.space()) {
        return false;
    }
    match (&a.target, &b.target) {
        (Target::Partition(p, _), Target::Partition(q, _)) => {
            let shapes = bound_a.space().forest().shapes();
            shapes.overlaps(&view.union(p.partitioning()), &view.union(q.partitioning()))
        }
        (Target::Partition(p, _), Target::Region(region, _)) | (Target::Region(region, _), Target::Partition(p, _)) => {
            let shapes = region.space().forest().shapes();
            shapes.overlaps(&view.union(p.partitioning()), region.space().shape())
        }
        (Target::Region(..), Target::Region(..)) => true,
    }
}

/// Refuses a projection that leaves its bound at some point of the domain. Of the identity the corners tell.
fn check_projection(requirement: &Requirement, domain: &AnyRect, deletions: &dyn Deletions) -> Result<()> {
    match &requirement.target {
        Target::Region(_, None) => {}
        Target::Partition(_, Projection::Identity) => {
            if !domain.is_empty() {
                requirement.target.region_at(domain.lo(), domain)?;
                requirement.target.region_at(domain.hi(), domain)?;
            }
        }
        target => {
            for point in domain.points() {
                region_at(target, point, domain, deletions)?;
            }
        }
    }
    Ok(())
}

/// The data of a point. A custom projection may name what was destroyed.
fn region_at(target: &Target, point: AnyPoint, domain: &AnyRect, deletions: &dyn Deletions) -> Result<LogicalRegion> {
    let region = target.region_at(point, domain)?;
    let is_custom = match target {
        Target::Region(_, projection) => projection.is_some(),
        Target::Partition(_, projection) => matches!(projection.of_points(), Projection::Custom(_)),
    };
    if is_custom {
        region.check_alive(deletions)?;
    }
    Ok(region)
}

/// Refuses a requirement with which points of the launch interfere. If they do, that is found at the first data that
/// two of them use: it takes no more steps and no more memory than there are points, however many of them interfere.
fn check_points(operation: &str, requirement: &Requirement, domain: &AnyRect, context: CheckContext<'_>) -> Result<()> {
    let used = Used::by(requirement, domain, context, true)?;
    let meet = used.twice.or_else(|| used.first_overlap(&used, |first, second| first < second));
    match meet {
        Some((first, second)) => Err(points_interfere(operation, requirement, first, second)),
        None => Ok(()),
    }
}

/// Refuses two requirements that interfere: within one point, or from point to point.
fn check_pair(
    operation: &str,
    a: &Requirement,
    b: &Requirement,
    domain: &AnyRect,
    context: CheckContext<'_>,
) -> Result<()> {
    let (used_a, used_b) = (Used::by(a, domain, context, false)?, Used::by(b, domain, context, false)?);
    let Some((point_a, point_b)) = used_a.first_overlap(&used_b, |_, _| true) else { return Ok(()) };
    if point_a != point_b {
        let writer = if a.privilege.changes_data() { a } else { b };
        return Err(points_interfere(operation, writer, point_a, point_b));
    }
    Err(requirements_interfere(operation, a, b))
}

/// Refuses a point whose requirements interfere after all. Projections are asked again when a point is mapped, and a
/// function that breaks its promise and answers otherwise must not give a task the same data twice.
pub(crate) fn check_point(operation: &str, bounds: &[Bound], point: &[RequirementInfo]) -> Result<()> {
    for (number, Bound { requirement, .. }) in bounds.iter().enumerate() {
        for (other, Bound { requirement: earlier, .. }) in bounds[..number].iter().enumerate() {
            if (may_change(requirement) || may_change(earlier))
                && requirement.privilege.interferes_with(earlier.privilege)
                && may_overlap(requirement, earlier, &Here)
                && point[number].region.space().overlaps(point[other].region.space())
            {
                return Err(requirements_interfere(operation, earlier, requirement));
            }
        }
    }
    Ok(())
}

/// Whether a projection may answer otherwise the next time: because it breaks its promise, or because what it names was
/// destroyed.
pub(super) fn may_change(requirement: &Requirement) -> bool {
    match &requirement.target {
        Target::Region(_, projection) => projection.is_some(),
        Target::Partition(_, projection) => {
            matches!(projection.of_points(), Projection::Color(_) | Projection::Custom(_))
        }
    }
}

/// Whether a requirement that was allowed before still names data that is there, at every point.
pub(crate) fn is_still_there(requirement: &Requirement, domain: &AnyRect, deletions: &dyn Deletions) -> bool {
    requirement.target.check_alive(deletions).is_ok()
        && (!may_change(requirement) || check_projection(requirement, domain, deletions).is_ok())
}

fn requirements_interfere(operation: &str, a: &Requirement, b: &Requirement) -> Error {
    Error::RequirementsInterfere {
        operation: operation.to_owned(),
        first: a.privilege.to_string(),
        second: b.privilege.to_string(),
        fields: a.target.tree().fields().names_of(&a.fields.intersection(&b.fields)),
        region: a.target.bound().root_region().to_string(),
        launched: None,
    }
}

fn points_interfere(operation: &str, requirement: &Requirement, first: AnyPoint, second: AnyPoint) -> Error {
    Error::PointsInterfere {
        operation: operation.to_owned(),
        first,
        second,
        privilege: requirement.privilege.to_string(),
        fields: requirement.field_names(),
        region: requirement.target.to_string(),
        launched: None,
    }
}

/// The data that points of a launch use.
struct Used {
    /// Each piece of data that is known, at the first point that uses it: a projection may name the same one often.
    pieces: Vec<(AnyPoint, Shape)>,
    /// The first two points that use the same.
    twice: Option<(AnyPoint, AnyPoint)>,
}

impl Used {
    /// The data that the points use through a requirement; if `until_twice`, only up to the first data that two points
    /// use.
    fn by(requirement: &Requirement, domain: &AnyRect, context: CheckContext<'_>, until_twice: bool) -> Result<Self> {
        let CheckContext { view, deletions } = context;
        let mut used = Self { pieces: Vec::new(), twice: None };
        if let Target::Region(region, None) = &requirement.target {
            let points = view.points(region.space()).filter(|points| !points.is_empty());
            let mut users = domain.points();
            if let (Some(first), Some(points)) = (users.next(), points) {
                used.pieces.push((first, points));
                used.twice = users.next().map(|second| (first, second));
            }
            return Ok(used);
        }
        let mut seen = FxHashMap::default();
        for point in domain.points() {
            let region = region_at(&requirement.target, point, domain, deletions)?;
            let Some(points) = view.points(region.space()).filter(|points| !points.is_empty()) else { continue };
            match seen.entry(points.id()) {
                Entry::Vacant(entry) => {
                    entry.insert(point);
                    used.pieces.push((point, points));
                }
                Entry::Occupied(first) if used.twice.is_none() => {
                    used.twice = Some((*first.get(), point));
                    if until_twice {
                        break;
                    }
                }
                Entry::Occupied(_) => {}
            }
        }
        Ok(used)
    }

    fn spaces(&self) -> impl Iterator<Item = &AnySpace> {
        self.pieces.iter().map(|(_, points)| points.space())
    }

    /// Two points, one of each, whose data has points in common, and for whose pieces `counts` holds.
    fn first_overlap(&self, other: &Self, counts: impl Fn(usize, usize) -> bool) -> Option<(AnyPoint, AnyPoint)> {
        let dim = self.pieces.first()?.1.space().dim();
        let pair = AnySpace::first_overlapping_pair(dim, self.spaces(), other.spaces(), counts).ok()??;
        Some((self.pieces[pair.0].0, other.pieces[pair.1].0))
    }
}
