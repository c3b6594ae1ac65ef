//! How tasks of one kind migrate to other nodes: what all of them have in common, which is not sent.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use maniple_region::{
    FieldDescriptor, FieldId, FieldMask, FieldSpace, Fields, Forest, LogicalRegion, Privilege, RegionError,
};
use maniple_space::AnySpace;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::arguments::{Arguments, Own};
use super::digest::Digest;
use super::{Codec, Value};
use crate::instances::placement::PhysicalRegion;

/// How tasks of one kind migrate: how their arguments are encoded, and what their requirements are.
#[derive(Clone)]
pub struct Migratable {
    codec: Codec,
    accept: fn(Value) -> Option<Arguments>,
    digest: fn(&Arguments) -> Option<Digest>,
    requirements: Arc<[MigratedRequirement]>,
}

impl Migratable {
    /// That of tasks with such arguments and requirements.
    pub(crate) fn of<A>(requirements: Vec<MigratedRequirement>) -> Self
    where
        A: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let accept = |value: Value| Some(Arguments::known(value.downcast::<A>().ok()?, Own::Values));
        let digest = |arguments: &Arguments| Digest::of(arguments.get::<A>()?);
        Self { codec: Codec::of::<A>(), accept, digest, requirements: requirements.into() }
    }

    /// The requirements of a task, in order.
    pub(crate) fn requirements(&self) -> &[MigratedRequirement] {
        &self.requirements
    }

    /// The bytes of a task's arguments. None if they refuse, as futures do.
    pub(crate) fn encode(&self, arguments: &dyn Any) -> Option<Vec<u8>> {
        self.codec.encode(arguments)
    }

    /// The digest of a task's arguments, which nodes that launch the task compare.
    pub(crate) fn digest(&self, arguments: &Arguments) -> Option<Digest> {
        (self.digest)(arguments)
    }

    pub(crate) fn decode(&self, bytes: &[u8]) -> Option<Arguments> {
        (self.accept)(self.codec.decode(bytes)?)
    }

    /// Whether a task was launched as its declaration says. One that was put together by hand may not have been.
    pub(crate) fn fits(&self, regions: &[PhysicalRegion]) -> bool {
        regions.len() == self.requirements.len() && regions.iter().zip(&*self.requirements).all(|(r, c)| c.fits(r))
    }
}

impl fmt::Debug for Migratable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migratable").field("requirements", &self.requirements).finish()
    }
}

/// One requirement of such tasks.
#[derive(Clone, Debug)]
pub struct MigratedRequirement {
    pub(crate) privilege: Privilege,
    pub(crate) fields: FieldMask,
    /// The name of the type of a row.
    row: &'static str,
    columns: fn() -> Vec<FieldDescriptor>,
}

impl MigratedRequirement {
    /// These fields of a region with rows `F`.
    #[must_use]
    pub fn of<F: Fields>(privilege: Privilege, fields: &[FieldId]) -> Self {
        let fields = fields.iter().copied().collect();
        Self { privilege, fields, row: short_name::<F>(), columns: F::descriptors }
    }

    fn fits(&self, region: &PhysicalRegion) -> bool {
        let columns = (self.columns)();
        let has_type = |field: FieldId| {
            let known = region.region.fields().type_of(field).ok();
            known == columns.get(field.0 as usize).map(|column| column.ty)
        };
        region.privilege == self.privilege && region.fields == self.fields && self.fields.iter().all(has_type)
    }

    /// A region of this node, which stands for the other node's.
    ///
    /// # Errors
    /// If the rows have more fields than a region can.
    pub(crate) fn region(&self, forest: &Arc<Forest>, points: &AnySpace) -> Result<LogicalRegion, RegionError> {
        let columns = (self.columns)();
        let fields: Arc<FieldSpace> = forest.field_space(columns.len());
        for column in columns {
            fields.allocate(&column.name, column.ty)?;
        }
        forest.region_of(self.row, &forest.index_space(points), &fields)
    }
}

/// The name of a type without its path and parameters.
pub(crate) fn short_name<F>() -> &'static str {
    let name = std::any::type_name::<F>();
    let head = name.split('<').next().unwrap_or(name);
    head.rsplit("::").next().unwrap_or(head)
}
