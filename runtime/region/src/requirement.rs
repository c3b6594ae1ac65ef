//! Requirements: what an operation wants to do with which data.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use maniple_realm::fault;
use maniple_space::{AnyPoint, AnyRect, PointSet};

use crate::deletion::Deletions;
use crate::{Affine, Coherence, FieldMask, LogicalPartition, LogicalRegion, Privilege, RegionError, RegionTree};

/// The use of one region that one operation wants to make: fields, privilege, coherence (Bauer 2014, section 4.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// The data, or for an index launch what bounds the data of all points.
    pub target: Target,
    /// The fields.
    pub fields: FieldMask,
    /// The privilege on the fields.
    pub privilege: Privilege,
    /// How this use relates in time with others.
    pub coherence: Coherence,
}

impl Requirement {
    /// A requirement in the exclusive mode.
    #[must_use]
    pub fn new(target: impl Into<Target>, fields: FieldMask, privilege: Privilege) -> Self {
        Self { target: target.into(), fields, privilege, coherence: Coherence::Exclusive }
    }

    /// The names of the fields, for messages.
    #[must_use]
    pub fn field_names(&self) -> String {
        self.target.tree().fields().names_of(&self.fields)
    }
}

/// The data of a requirement: of every point the same region, or for each point of a launch a region found by a
/// projection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// One region. With a projection, an upper bound from which the projection picks each point's region.
    Region(LogicalRegion, Option<Projection>),
    /// An upper bound from which the projection picks each point's region.
    Partition(LogicalPartition, Projection),
}

impl Target {
    /// The region tree that the data belongs to.
    #[must_use]
    pub fn tree(&self) -> &Arc<RegionTree> {
        match self {
            Self::Region(region, _) => region.tree(),
            Self::Partition(partition, _) => partition.tree(),
        }
    }

    /// The smallest region of the tree that is known to hold the data of all points.
    #[must_use]
    pub fn bound(&self) -> LogicalRegion {
        match self {
            Self::Region(region, _) => region.clone(),
            Self::Partition(partition, _) => partition.parent(),
        }
    }

    /// The region of one point of a launch.
    ///
    /// # Errors
    /// [`RegionError::NoSuchColor`] or [`RegionError::ProjectionOutOfBounds`] when the projection leaves its upper
    /// bound, and whatever error a custom projection returns.
    pub fn region_at(&self, point: AnyPoint, domain: &AnyRect) -> Result<LogicalRegion, RegionError> {
        match self {
            Self::Region(region, None) => Ok(region.clone()),
            Self::Region(region, Some(projection)) => {
                let result = projection.project(UpperBound::Region(region), point, domain)?;
                check_bound(&result, !result.is_within(region), self, point)?;
                Ok(result)
            }
            Self::Partition(partition, projection) => {
                let result = projection.project(UpperBound::Partition(partition), point, domain)?;
                if !matches!(projection.of_points(), Projection::Custom(_)) {
                    return Ok(result);
                }
                let below = result.space().ancestors().any(|above| Arc::ptr_eq(above, partition.partitioning()));
                let inside = Arc::ptr_eq(result.tree(), partition.tree()) && below;
                check_bound(&result, !inside, self, point)?;
                Ok(result)
            }
        }
    }

    /// Whether two equal targets are of the same name: where a name is [used again](LogicalRegion::renewed), they may
    /// not be.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn is_same_name(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Region(one, _), Self::Region(other, _)) => one.is_same_name(other),
            (Self::Partition(one, _), Self::Partition(other, _)) => one.is_same_name(other),
            _ => false,
        }
    }

    /// # Errors
    /// [`RegionError::Destroyed`] if any part of the name is destroyed.
    pub fn check_alive(&self, deletions: &dyn Deletions) -> Result<(), RegionError> {
        match self {
            Self::Region(region, _) => region.check_alive(deletions),
            Self::Partition(partition, _) => partition.check_alive(deletions),
        }
    }
}

fn check_bound(result: &LogicalRegion, outside: bool, target: &Target, point: AnyPoint) -> Result<(), RegionError> {
    if outside {
        return Err(RegionError::ProjectionOutOfBounds { bound: target.to_string(), point, found: result.to_string() });
    }
    Ok(())
}

impl From<LogicalRegion> for Target {
    fn from(region: LogicalRegion) -> Self {
        Self::Region(region, None)
    }
}

impl From<LogicalPartition> for Target {
    fn from(partition: LogicalPartition) -> Self {
        Self::Partition(partition, Projection::Identity)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Region(region, _) => region.fmt(f),
            Self::Partition(partition, _) => partition.fmt(f),
        }
    }
}

/// The upper bound that a projection starts from.
#[derive(Clone, Copy, Debug)]
pub enum UpperBound<'a> {
    /// A region.
    Region(&'a LogicalRegion),
    /// A partition.
    Partition(&'a LogicalPartition),
}

/// Which region each point of an index launch gets (Bauer 2014, section 4.4).
#[derive(Clone)]
pub enum Projection {
    /// Point `p` gets the piece of color `p`.
    Identity,
    /// Point `p` gets the piece whose color has the number (row-major) of `p` in the launch domain, modulo the number
    /// of pieces.
    Linearized,
    /// Point `p` gets the piece of the color that a linear function gives, which is plain data.
    Affine(Affine),
    /// Point `p` gets the piece of the color that a function gives; pure, and the same on every call.
    Color(Arc<dyn Fn(AnyPoint) -> AnyPoint + Send + Sync>),
    /// Any pure function from upper bound, point and launch domain to a region below the bound.
    Custom(Arc<dyn CustomProjection>),
    /// Of a launch over a set of points, whose domain is their numbers: each number gets what a projection gives its
    /// point.
    Over(PointSet, Arc<Self>),
}

/// A projection that walks the region tree by itself.
pub trait CustomProjection: Send + Sync {
    /// The region of a point: pure, the same on every call, below the upper bound.
    ///
    /// # Errors
    /// Any error that keeps the projection from naming a region; the launch is refused with it.
    fn project(&self, bound: UpperBound<'_>, point: AnyPoint, domain: &AnyRect) -> Result<LogicalRegion, RegionError>;
}

impl Projection {
    fn project(&self, bound: UpperBound<'_>, point: AnyPoint, domain: &AnyRect) -> Result<LogicalRegion, RegionError> {
        let partition = match (self, bound) {
            (Self::Over(points, projection), bound) => {
                let number = usize::try_from(domain.linear(point)).ok();
                let Some(&point) = number.and_then(|number| points.points().get(number)) else {
                    return Err(RegionError::NoSuchPoint { point, points: points.len() });
                };
                return projection.project(bound, point, &points.bounds());
            }
            (Self::Custom(custom), bound) => {
                return asked(bound, point, || custom.project(bound, point, domain)).flatten();
            }
            (_, UpperBound::Partition(partition)) => partition,
            (_, UpperBound::Region(region)) => {
                return Err(RegionError::NothingToProject { region: region.to_string() });
            }
        };
        match self {
            Self::Affine(affine) => {
                let colors = partition.partitioning().colors();
                partition.piece(affine.color(point, &colors).ok_or_else(|| RegionError::ProjectionDoesNotFit {
                    partition: partition.to_string(),
                    colors,
                    point,
                    dimensions: affine.dim(),
                })?)
            }
            Self::Color(color) => partition.piece(asked(bound, point, || color(point))?),
            Self::Linearized => {
                let colors = partition.partitioning().colors();
                let pieces = colors.volume();
                if pieces == 0 {
                    return partition.piece(point);
                }
                partition.piece(colors.delinear(domain.linear(point) % pieces))
            }
            Self::Identity | Self::Custom(_) | Self::Over(..) => partition.piece(point),
        }
    }

    /// The projection of the points themselves, if this is of their numbers.
    #[must_use]
    pub fn of_points(&self) -> &Self {
        if let Self::Over(_, projection) = self { projection.of_points() } else { self }
    }

    /// Whether different points surely get different pieces.
    #[must_use]
    pub fn is_injective(&self) -> bool {
        match self.of_points() {
            Self::Identity => true,
            Self::Affine(affine) => affine.is_injective(),
            Self::Linearized | Self::Color(_) | Self::Custom(_) | Self::Over(..) => false,
        }
    }
}

/// Calls a function of the program for a point. If the function panics, the result is
/// [`RegionError::ProjectionPanicked`].
fn asked<R>(bound: UpperBound<'_>, point: AnyPoint, function: impl FnOnce() -> R) -> Result<R, RegionError> {
    fault::catch(function).map_err(|fault| {
        let bound = match bound {
            UpperBound::Region(region) => region.to_string(),
            UpperBound::Partition(partition) => partition.to_string(),
        };
        let backtrace = fault.panic().and_then(|panic| panic.backtrace.clone());
        RegionError::ProjectionPanicked { bound, point, panic: fault.to_string(), backtrace }
    })
}

/// Functions are equal if they are the same object.
impl PartialEq for Projection {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Identity, Self::Identity) | (Self::Linearized, Self::Linearized) => true,
            (Self::Affine(mine), Self::Affine(theirs)) => mine == theirs,
            (Self::Color(mine), Self::Color(theirs)) => Arc::ptr_eq(mine, theirs),
            (Self::Custom(mine), Self::Custom(theirs)) => Arc::ptr_eq(mine, theirs),
            (Self::Over(mine, one), Self::Over(theirs, other)) => mine == theirs && one == other,
            _ => false,
        }
    }
}

impl Eq for Projection {}

impl Hash for Projection {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Identity => 0_usize.hash(state),
            Self::Linearized => 1_usize.hash(state),
            Self::Affine(affine) => affine.hash(state),
            Self::Color(function) => Arc::as_ptr(function).cast::<()>().hash(state),
            Self::Custom(function) => Arc::as_ptr(function).cast::<()>().hash(state),
            Self::Over(points, projection) => (points, projection).hash(state),
        }
    }
}

impl fmt::Debug for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Over(points, projection) => return write!(f, "{projection:?} of {} points", points.len()),
            Self::Affine(affine) => return affine.fmt(f),
            Self::Identity => "identity",
            Self::Linearized => "linearized",
            Self::Color(_) => "by color",
            Self::Custom(_) => "custom",
        })
    }
}
