//! The placement of the data of one point of an operation: the instances chosen for its requirements, as a task's body
//! and its children use them.

pub(crate) mod values;

use std::any::TypeId;
use std::sync::{Arc, OnceLock};

use maniple_mapper::{InstanceId, RequirementInfo};
use maniple_realm::layout::padded;
use maniple_realm::transfer::FewValues;
use maniple_record::Usage;
use maniple_region::{FieldId, FieldMask, LogicalRegion, Privilege};
use maniple_space::{AnySpace, IndexSpace};
use smallvec::SmallVec;

use crate::data::access::ColumnPlace;
use crate::instances::bound::Bound;
use crate::instances::instance::PhysicalInstance;
use crate::instances::selection::{Selection, bytes_of_point};
use crate::instances::state::RegionState;
use crate::instances::validity::Instances;

/// The choice of instances for an operation's data.
#[derive(Clone)]
pub(crate) enum Chosen {
    /// Nowhere: what the task launches uses the data of its parent.
    ///
    /// It is all or nothing. A task that used some instances would, with its end, stand in their history before its
    /// children have been mapped; a child could come after an operation that comes after that end, in a circle.
    Virtual,
    /// For each part of each requirement, in order.
    Instances(Vec<Selection>),
}

impl Chosen {
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual)
    }

    /// Whether some of it is in memory that may only be read, which does not serve for long.
    pub(crate) fn has_read_only(&self) -> bool {
        match self {
            Self::Virtual => false,
            Self::Instances(chosen) => {
                chosen.iter().flat_map(|one| &one.instances).any(|(_, instance)| instance.is_read_only())
            }
        }
    }

    /// Whether contributions by other operators have to be applied first, to values that no instance holds.
    pub(crate) fn needs_homes(&self) -> bool {
        match self {
            Self::Virtual => false,
            Self::Instances(chosen) => chosen.iter().any(|selection| !selection.homes.is_empty()),
        }
    }
}

/// One requirement of one task with its data.
#[derive(Clone)]
pub(crate) struct PhysicalRegion {
    pub(crate) region: LogicalRegion,
    pub(crate) fields: FieldMask,
    pub(crate) privilege: Privilege,
    pub(crate) place: Placement,
    /// Facts that were found out once for many calls: see [`PhysicalRegion::locate`].
    pub(crate) located: Option<Box<Located>>,
    /// The region's points with those around them that a task may use, if it asks for them.
    pub(crate) padded: OnceLock<Box<AnySpace>>,
}

/// The location of a requirement's data, for a task that is called again and again.
#[derive(Clone)]
pub(crate) struct Located {
    /// A copy of the region's points, since what others count references to is on its way from core to core all the
    /// time.
    space: AnySpace,
    columns: SmallVec<[ColumnPlace; 2]>,
    /// All values of all fields, if they are few, for tasks that send or receive them.
    few: Option<Box<[FewValues]>>,
}

/// Values are few if those of a field have no more bytes.
const FEW: usize = 256;

/// The placement of a requirement's data.
#[derive(Clone)]
pub(crate) enum Placement {
    Instances(Instances),
    /// Nowhere: children use the state of the parent's parent, some fields each.
    Virtual(SmallVec<[(FieldMask, Arc<RegionState>); 1]>),
}

impl Placement {
    /// The place of a requirement, with its number.
    pub(crate) fn of(bound: &Bound, number: usize, chosen: &Chosen) -> Self {
        let Chosen::Instances(chosen) = chosen else { return Self::Virtual(bound.parts.clone()) };
        let mut instances = Instances::new();
        for selection in chosen.iter().filter(|selection| selection.place.0 == number) {
            selection.instances.iter().for_each(|one| instances.push(one.clone()));
        }
        Self::Instances(instances)
    }
}

impl PhysicalRegion {
    /// The use that the requirement makes of data, and the instances of the data, for the record.
    pub(crate) fn usage(&self) -> Usage {
        let instances = match &self.place {
            Placement::Virtual(_) => Vec::new(),
            Placement::Instances(instances) => {
                instances.iter().map(|(fields, instance)| (fields.clone(), instance.id())).collect()
            }
        };
        let (region, fields) = (self.region.clone(), self.fields.clone());
        Usage { region, fields, privilege: self.privilege, instances }
    }

    /// A requirement, with its number, for one call.
    pub(crate) fn of(asked: RequirementInfo, bound: &Bound, number: usize, chosen: &Chosen) -> Self {
        let RequirementInfo { region, fields, privilege, .. } = asked;
        Self::new(region, fields, privilege, Placement::of(bound, number, chosen))
    }

    pub(crate) fn new(region: LogicalRegion, fields: FieldMask, privilege: Privilege, place: Placement) -> Self {
        Self { region, fields, privilege, place, located: None, padded: OnceLock::new() }
    }

    /// The region's points and so many around them, if these are the same as where it was asked before.
    pub(crate) fn padded(&self, pad: u32) -> Option<&AnySpace> {
        let wanted = padded(self.space(), pad)?;
        let known = self.padded.get_or_init(|| Box::new(wanted.clone()));
        (known.bounds() == wanted.bounds()).then_some(known)
    }

    /// Finds out where the fields are, for a task that is called again and again with this data. It may be one that
    /// sends or receives it.
    pub(crate) fn locate(&mut self, is_internal: bool) {
        let fields = self.region.fields();
        let place = |field| {
            let (instance, ty) = (self.instance(field)?, fields.type_of(field).ok()?);
            ColumnPlace::new(instance.storage(), field, ty, self.is_buffered(field))
        };
        let columns = self.fields.iter().filter_map(place).collect();
        let space = self.region.space().space().clone();
        let few = |field| FewValues::at(&space, (self.instance(field)?.storage(), field), FEW).ok().flatten();
        let few = if is_internal { self.fields.iter().map(few).collect() } else { None };
        self.located = Some(Box::new(Located { space, columns, few }));
    }

    /// The place of a field that is declared with type `T`, and the region's points. None if the place is not known,
    /// the type another, or the region has other dimensions.
    #[inline(always)]
    pub(crate) fn find<T: 'static, const D: usize>(&self, field: FieldId) -> Option<(&ColumnPlace, &IndexSpace<D>)> {
        let Located { space, columns, .. } = self.located.as_deref()?;
        let place = columns.iter().find(|place| place.field == field)?;
        let space = space.typed().ok()?;
        (place.ty == TypeId::of::<T>()).then_some((place, space))
    }

    /// All values, field by field, if that is known and they are few.
    pub(crate) fn few(&self) -> Option<&[FewValues]> {
        self.located.as_deref()?.few.as_deref()
    }

    /// The region's points.
    pub(crate) fn space(&self) -> &AnySpace {
        self.located.as_ref().map_or_else(|| self.region.space().space(), |located| &located.space)
    }

    /// The instances.
    pub(crate) fn instances(&self) -> impl Iterator<Item = &Arc<PhysicalInstance>> {
        let instances = match &self.place {
            Placement::Instances(instances) => instances.as_slice(),
            Placement::Virtual(_) => &[],
        };
        instances.iter().map(|(_, instance)| instance)
    }

    /// The numbers of the instances.
    pub(crate) fn instance_ids(&self) -> impl Iterator<Item = InstanceId> {
        self.instances().map(|instance| instance.id())
    }

    /// Hands the instances of a task's regions to its children. An instance is lent once, however many fields and
    /// requirements it holds: what one of the children's states leaves behind in it is found by all of them.
    pub(crate) fn lend_all(regions: &mut [Self]) {
        let mut lent = SmallVec::<[Arc<PhysicalInstance>; 4]>::new();
        for region in regions {
            let Placement::Instances(instances) = &mut region.place else { continue };
            for (_, instance) in instances {
                let known = lent.iter().find(|lent| lent.id() == instance.id()).cloned();
                *instance = known.unwrap_or_else(|| {
                    lent.push(instance.lend());
                    Arc::clone(&lent[lent.len() - 1])
                });
            }
        }
    }

    /// Whether the task's children change data in the state of its parent.
    pub(crate) fn is_borrowed(&self) -> bool {
        matches!(self.place, Placement::Virtual(_)) && self.privilege.changes_data()
    }

    /// Whether contributions to a field go into a buffer.
    pub(crate) fn is_buffered(&self, field: FieldId) -> bool {
        self.instance(field).is_some_and(|instance| instance.reduction().is_some())
    }

    /// The bytes of its fields at its points.
    pub(crate) fn bytes(&self) -> u64 {
        self.space().volume().saturating_mul(bytes_of_point(&self.region, &self.fields) as u64)
    }

    /// The instance that holds a field.
    pub(crate) fn instance(&self, field: FieldId) -> Option<&Arc<PhysicalInstance>> {
        let Placement::Instances(instances) = &self.place else { return None };
        instances.iter().find(|(fields, _)| fields.contains(field)).map(|(_, instance)| instance)
    }
}
