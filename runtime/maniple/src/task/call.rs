//! The call of a task, as its body sees it.

use std::sync::Arc;

use maniple_realm::Realm;
use maniple_realm::instance::Instance;
use maniple_realm::machine::ProcessorId;
use maniple_realm::reduction::RawReduction;
use maniple_realm::transfer::{FewValues, InstanceField, ReductionMode};
use maniple_region::{
    FieldId, FieldMask, FieldType, FieldValue, LogicalRegion, OperatorId, Privilege, ReductionOperator,
};
use maniple_space::{AnyPoint, AnyRect, AnySpace, IndexSpace, PointSet};
use smallvec::SmallVec;

use crate::context::Context;
use crate::data::access::{Column, PieceInfo, Read, Reduce, Rows, RowsMut, Strided, Write};
use crate::data::regions::Region;
use crate::instances::placement::PhysicalRegion;
use crate::support::error::{Error, Result};
use crate::task::Workers;
use crate::task::arguments::Arguments;
use crate::task::taken::Taken;

/// The call of a body that launches nothing: its point, its arguments, and accessors to its regions.
///
/// Accessors are checked: the field must be in the requirement, have the type asked for, and the privilege must allow
/// what the accessor does. A field can be taken for writing or reducing once a call.
pub struct LeafCall<'a> {
    pub(crate) task: &'a str,
    pub(crate) point: &'a AnyPoint,
    pub(crate) domain: &'a AnyRect,
    /// The points of a launch over a set, whose domain is their numbers.
    pub(crate) over: Option<&'a PointSet>,
    pub(crate) processor: ProcessorId,
    pub(crate) realm: &'a Realm,
    pub(crate) regions: &'a [PhysicalRegion],
    pub(crate) arguments: &'a Arguments,
    pub(crate) taken: Taken,
}

impl<'a> LeafCall<'a> {
    /// The task's name.
    #[must_use]
    pub fn task(&self) -> &'a str {
        self.task
    }

    /// The point of the index launch; of a single launch, the only point of its domain.
    #[must_use]
    pub fn point(&self) -> AnyPoint {
        self.over.map_or(*self.point, |points| points.points()[self.point[0] as usize])
    }

    /// All points of the launch; of a launch over a set, a rectangle around them.
    #[must_use]
    pub fn domain(&self) -> AnyRect {
        self.over.map_or(*self.domain, PointSet::bounds)
    }

    /// The processor that the body runs on.
    #[must_use]
    pub fn processor(&self) -> ProcessorId {
        self.processor
    }

    /// The workers of this node, which help with loops of the body.
    #[must_use]
    pub fn workers(&self) -> Workers<'a> {
        Workers::of(self.realm)
    }

    /// The same call for several threads, each of which makes its accessors itself. They may read: none knows what the
    /// others have taken.
    pub(crate) fn for_readers(&self) -> impl Fn() -> LeafCall<'a> + Sync + 'a {
        let &Self { task, point, domain, over, processor, realm, regions, arguments, .. } = self;
        move || Self { task, point, domain, over, processor, realm, regions, arguments, taken: Taken::default() }
    }

    /// The launch's arguments.
    ///
    /// # Errors
    /// [`Error::Launch`] if they are of another type.
    pub fn arguments<A: 'static>(&self) -> Result<&'a A> {
        let found = self.arguments.get();
        found.ok_or_else(|| wrong_arguments::<A>(self.task))
    }

    /// The region of a requirement.
    ///
    /// # Errors
    /// [`Error::Launch`] if the launch has no such requirement.
    pub fn region(&self, requirement: usize) -> Result<&'a LogicalRegion> {
        Ok(&self.requirement(requirement)?.region)
    }

    /// The points of a requirement's region.
    ///
    /// # Errors
    /// [`Error::Launch`] if the launch has no such requirement, or its region another dimension.
    #[inline(always)] // As for `read`.
    pub fn piece<F: 'static, const D: usize>(&self, requirement: usize) -> Result<PieceInfo<'a, F, D>> {
        if let Some(physical) = self.regions.get(requirement)
            && let Ok(space) = physical.space().typed()
        {
            return Ok(PieceInfo::new(&physical.region, space));
        }
        Err(self.no_piece::<D>(requirement))
    }

    /// Reads a field of a requirement with the privilege `reads`.
    ///
    /// # Errors
    /// [`Error::Access`] if field, type, dimension or privilege do not fit.
    #[inline(always)] // Else the accessor is copied from return value to return value, which takes longer than to make it.
    pub fn read<T: FieldValue, const D: usize>(&self, requirement: usize, field: FieldId) -> Result<Read<'a, T, D>> {
        if let Some(physical) = self.regions.get(requirement)
            && physical.privilege == Privilege::Read
            && let Some((place, space)) = physical.find::<T, D>(field)
        {
            // SAFETY: as in `find_column`. The place is that of the requirement's field in the requirement's instance.
            return Ok(Read::new(unsafe { Column::at(place, space) }));
        }
        self.find_and_read(requirement, field)
    }

    /// As [`read`](Self::read), where it is to be found out first where the field is.
    #[inline(never)]
    fn find_and_read<T: FieldValue, const D: usize>(
        &self,
        requirement: usize,
        field: FieldId,
    ) -> Result<Read<'a, T, D>> {
        let physical = self.readable(requirement, field)?;
        Ok(Read::new(self.find_column::<T, T, D>(physical, requirement, field)?))
    }

    /// Reads a field of a requirement with the privilege `reads`, whatever the region's dimension: calls `visit` with
    /// all values in the row-major order of their points, row by row or in parts of rows, and the coordinates of the
    /// first of each. Costs nothing where the layout keeps values together, a copy otherwise.
    ///
    /// # Errors
    /// [`Error::Access`] if field, type or privilege do not fit.
    pub fn read_rows<T: FieldValue>(
        &self,
        requirement: usize,
        field: FieldId,
        visit: &mut dyn FnMut(&[i64], &[T]),
    ) -> Result<()> {
        let (rows, mut copies) = (self.rows(requirement, field, FieldType::of::<T>())?, Vec::new());
        rows.for_each(&mut |first, values| match values.as_slice() {
            Some(values) => visit(first, values),
            None => {
                copies.clear();
                copies.extend(values.typed::<T>());
                visit(first, &copies);
            }
        });
        Ok(())
    }

    /// Reads and writes a field of a requirement with the privilege `writes` or `discards`, as
    /// [`read_rows`](Self::read_rows) reads one: what `visit` does to the values it does to the field.
    ///
    /// # Errors
    /// [`Error::Access`] if field, type or privilege do not fit, or the field is taken already.
    pub fn write_rows<T: FieldValue>(
        &self,
        requirement: usize,
        field: FieldId,
        visit: &mut dyn FnMut(&[i64], &mut [T]),
    ) -> Result<()> {
        self.rows_mut(requirement, field, FieldType::of::<T>())?.for_each(visit);
        Ok(())
    }

    fn rows_mut(&self, requirement: usize, field: FieldId, ty: FieldType) -> Result<RowsMut<'a>> {
        let physical = self.writable(requirement, field)?;
        let instance = self.mapped(physical, requirement, field, ty)?;
        self.take(requirement, field)?;
        // SAFETY: as in `column_within`.
        let rows = unsafe { RowsMut::new(instance, field, ty, physical.space()) };
        rows.ok_or_else(|| self.not_mapped(requirement, field))
    }

    /// As [`read`](Self::read), for code that knows the field's type at run time.
    pub(crate) fn rows(&self, requirement: usize, field: FieldId, ty: FieldType) -> Result<Rows<'a>> {
        let physical = self.readable(requirement, field)?;
        let instance = self.mapped(physical, requirement, field, ty)?;
        // SAFETY: as in `column_within`.
        unsafe { Rows::new(instance, field, ty, physical.space()) }.ok_or_else(|| self.not_mapped(requirement, field))
    }

    /// A requirement with the privilege `reads`.
    fn readable(&self, requirement: usize, field: FieldId) -> Result<&'a PhysicalRegion> {
        let physical = self.requirement(requirement)?;
        match physical.privilege {
            Privilege::Read => Ok(physical),
            other => Err(self.denied(requirement, field, format!("its privilege is `{other}`, not `reads`"))),
        }
    }

    /// A requirement with the privilege `writes` or `discards`.
    fn writable(&self, requirement: usize, field: FieldId) -> Result<&'a PhysicalRegion> {
        let physical = self.requirement(requirement)?;
        if physical.privilege.writes() {
            return Ok(physical);
        }
        let problem = format!("its privilege is `{}`, not `writes` or `discards`", physical.privilege);
        Err(self.denied(requirement, field, problem))
    }

    /// Reads and writes a field of a requirement with the privilege `writes` or `discards`.
    ///
    /// # Errors
    /// [`Error::Access`] if field, type, dimension or privilege do not fit, or the field is taken already.
    #[inline(always)] // As for `read`.
    pub fn write<T: FieldValue, const D: usize>(&self, requirement: usize, field: FieldId) -> Result<Write<'a, T, D>> {
        if let Some(physical) = self.regions.get(requirement)
            && physical.privilege.writes()
            && let Some((place, space)) = physical.find::<T, D>(field)
            && self.taken.take(requirement, field)
        {
            // SAFETY: as in `find_column`. The place is that of the requirement's field in the requirement's instance.
            return Ok(Write::new(unsafe { Column::at(place, space) }));
        }
        self.find_and_write(requirement, field)
    }

    /// As [`write`](Self::write), where it is to be found out first where the field is.
    #[inline(never)]
    fn find_and_write<T: FieldValue, const D: usize>(
        &self,
        requirement: usize,
        field: FieldId,
    ) -> Result<Write<'a, T, D>> {
        let physical = self.writable(requirement, field)?;
        self.take(requirement, field)?;
        Ok(Write::new(self.find_column::<T, T, D>(physical, requirement, field)?))
    }

    /// Reads and writes a field of a requirement with the privilege `writes` or `discards`, with room for so many
    /// points around the region, on both sides of each dimension. The accessor reaches those too: they are zero at
    /// first, belong to this call alone, and are lost at its end. The requirement's data needs a
    /// [layout](crate::LayoutConstraint::pad) with as much room.
    ///
    /// # Errors
    /// [`Error::Access`] as of [`write`](Self::write), and if there is no such room: the layout does not ask for it, or
    /// the points are no rectangle.
    pub fn write_padded<T: FieldValue, const D: usize>(
        &self,
        requirement: usize,
        field: FieldId,
        pad: u32,
    ) -> Result<Write<'a, T, D>> {
        let physical = self.writable(requirement, field)?;
        let denied = |problem: String| self.denied(requirement, field, problem);
        let has_room = physical.instance(field).is_some_and(|instance| instance.has_room(&physical.region, pad));
        let Some(padded) = physical.padded(pad).filter(|_| has_room) else {
            return Err(denied(format!("there is no room for {pad} points around it; ask for that by the layout")));
        };
        let own: &IndexSpace<D> = physical.space().typed().map_err(|error| denied(error.to_string()))?;
        let space = padded.typed().map_err(|error| denied(error.to_string()))?;
        self.take(requirement, field)?;
        let column = self.column_within::<T, T, D>(physical, requirement, field, space)?;
        // SAFETY: the instance has room for these points, in which no values of others lie: it is for this very region,
        // which only this call uses now, and the field is taken.
        unsafe { column.begin_around(&own.bounds()) };
        Ok(Write::new(column))
    }

    /// Reduces to a field of a requirement with the privilege `reduces(Op)`.
    ///
    /// # Errors
    /// [`Error::Access`] if field, type, dimension or privilege do not fit, or the field is taken already.
    #[inline(always)] // As for `read`.
    pub fn reduce<Op: ReductionOperator<T>, T: FieldValue, const D: usize>(
        &self,
        requirement: usize,
        field: FieldId,
    ) -> Result<Reduce<'a, Op, T, D>> {
        if let Some(physical) = self.regions.get(requirement)
            && physical.privilege == Privilege::Reduce(OperatorId::of::<Op>())
            && let Some((place, space)) = physical.find::<T, D>(field)
            && self.taken.take(requirement, field)
        {
            return Ok(match place.is_buffer {
                // SAFETY: as in `find_column`. The place is that of the requirement's field in the requirement's
                // instance.
                true => Reduce::into_buffer(unsafe { Column::at(place, space) }),
                // SAFETY: as above.
                false => Reduce::in_place(unsafe { Column::at(place, space) }),
            });
        }
        self.find_and_reduce(requirement, field)
    }

    /// As [`reduce`](Self::reduce), where it is to be found out first where the field is.
    #[inline(never)]
    fn find_and_reduce<Op: ReductionOperator<T>, T: FieldValue, const D: usize>(
        &self,
        requirement: usize,
        field: FieldId,
    ) -> Result<Reduce<'a, Op, T, D>> {
        let physical = self.requirement(requirement)?;
        let operator = OperatorId::of::<Op>();
        if physical.privilege != Privilege::Reduce(operator) {
            let problem = format!("its privilege is `{}`, not `reduces({operator})`", physical.privilege);
            return Err(self.denied(requirement, field, problem));
        }
        self.take(requirement, field)?;
        match physical.is_buffered(field) {
            true => Ok(Reduce::into_buffer(self.find_column::<T, Op::Rhs, D>(physical, requirement, field)?)),
            false => Ok(Reduce::in_place(self.find_column::<T, T, D>(physical, requirement, field)?)),
        }
    }

    /// The addresses of the values of a field, with whatever privilege the requirement has: contributions begin as the
    /// operator's identity, or are combined with what is there. For code that is given addresses: the caller vouches
    /// that it stays within the points, and changes nothing that may only be read. Points that are a rectangle lie in
    /// one view whatever the mapper says.
    ///
    /// # Errors
    /// [`Error::Access`] if the field, its type `T` or the requirement do not fit, its points are no rectangle, the
    /// instance is stored in blocks, or the field is to be changed and taken already.
    pub fn strided<T: FieldValue>(&self, requirement: usize, field: FieldId) -> Result<Strided<'a>> {
        let mut parts = self.find_strided::<T>(requirement, field)?;
        match (parts.pop(), parts.len()) {
            (Some(only), 0) => Ok(only),
            (_, others) => {
                let problem = format!("its values lie in {} rectangles, not one; take `strided_parts`", others + 1);
                Err(self.denied(requirement, field, problem))
            }
        }
    }

    /// As [`strided`](Self::strided), for points that are no rectangle: those of the result together are the region's.
    ///
    /// # Errors
    /// [`Error::Access`] if the field, its type `T` or the requirement do not fit, the instance is stored in blocks, or
    /// the field is to be changed and taken already.
    pub fn strided_parts<T: FieldValue>(&self, requirement: usize, field: FieldId) -> Result<Vec<Strided<'a>>> {
        Ok(self.find_strided::<T>(requirement, field)?.into_vec())
    }

    /// As [`strided`](Self::strided), for points that are no rectangle: address and strides for the rectangle around
    /// them, and the points. At other points of that rectangle there are no values, or such as others may be using:
    /// they must not be touched.
    ///
    /// # Errors
    /// [`Error::Access`] as of [`strided`](Self::strided), and if the rectangle around the points is not stored in one
    /// piece, as the points lie too far apart: what is between them is stored if it is about as much as they are, or if
    /// the mapper has chosen an instance for more than they.
    pub fn strided_around<T: FieldValue>(
        &self,
        requirement: usize,
        field: FieldId,
    ) -> Result<(Strided<'a>, &'a AnySpace)> {
        let (physical, instance, is_writable) = self.find_instance::<T>(requirement, field)?;
        match Strided::around(instance, field, physical.space(), is_writable) {
            Some(around) => {
                self.take_if(is_writable, requirement, field)?;
                Ok((around, physical.space()))
            }
            // The field is not taken, so that its parts still can be.
            None => {
                let problem =
                    "what is between its points is not stored, or the layout is in blocks; take `strided_parts`";
                Err(self.denied(requirement, field, problem.to_owned()))
            }
        }
    }

    fn find_strided<T: FieldValue>(&self, requirement: usize, field: FieldId) -> Result<SmallVec<[Strided<'a>; 1]>> {
        let (physical, instance, is_writable) = self.find_instance::<T>(requirement, field)?;
        self.take_if(is_writable, requirement, field)?;
        let parts = Strided::of(instance, field, physical.space(), is_writable);
        parts.ok_or_else(|| {
            self.denied(requirement, field, "its values have no strides: the layout is in blocks".to_owned())
        })
    }

    fn take_if(&self, is_writable: bool, requirement: usize, field: FieldId) -> Result<()> {
        if is_writable { self.take(requirement, field) } else { Ok(()) }
    }

    /// A requirement, the instance of a field of type `T`, and whether that may be changed; then it has to be taken.
    fn find_instance<T: FieldValue>(
        &self,
        requirement: usize,
        field: FieldId,
    ) -> Result<(&'a PhysicalRegion, &'a Instance, bool)> {
        let physical = self.requirement(requirement)?;
        let instance = self.mapped(physical, requirement, field, FieldType::of::<T>())?;
        Ok((physical, instance, physical.privilege != Privilege::Read))
    }

    /// The fields of a requirement.
    pub(crate) fn fields(&self, requirement: usize) -> Result<&'a FieldMask> {
        Ok(&self.requirement(requirement)?.fields)
    }

    /// A field of a requirement, where it is stored.
    pub(crate) fn storage_of(&self, requirement: usize, field: FieldId) -> Result<InstanceField> {
        let instance = self.requirement(requirement)?.instance(field);
        let none = || Error::launch(self.task, format!("requirement {requirement} is not mapped to memory"));
        Ok((instance.ok_or_else(none)?.storage(), field).into())
    }

    /// All values of a requirement, field by field, if that is known and they are few.
    pub(crate) fn few(&self, requirement: usize) -> Option<&'a [FewValues]> {
        self.regions.get(requirement)?.few()
    }

    /// The field of a requirement that has one, where it is stored.
    pub(crate) fn storage(&self, requirement: usize) -> Result<InstanceField> {
        let none = || Error::launch(self.task, format!("requirement {requirement} has no field"));
        self.storage_of(requirement, self.fields(requirement)?.iter().next().ok_or_else(none)?)
    }

    /// How contributions to the field of a requirement that reduces are put where it is stored.
    pub(crate) fn reduction(&self, requirement: usize) -> Result<(RawReduction, ReductionMode)> {
        let physical = self.requirement(requirement)?;
        let none = || Error::launch(self.task, format!("requirement {requirement} does not reduce to a field"));
        let field = physical.fields.iter().next().ok_or_else(none)?;
        let Privilege::Reduce(operator) = physical.privilege else { return Err(none()) };
        let reduction = operator.reduction_on(physical.region.fields().type_of(field)?);
        let raw = *reduction.ok_or_else(|| Error::no_reduction(operator, &physical.region, field))?;
        let is_buffer = physical.instance(field).is_some_and(|instance| instance.reduction().is_some());
        Ok((raw, if is_buffer { ReductionMode::Fold } else { ReductionMode::Apply }))
    }

    #[inline]
    fn requirement(&self, number: usize) -> Result<&'a PhysicalRegion> {
        let none = || {
            Error::launch(
                self.task,
                format!("it has {} requirements, but its body asks for number {number}", self.regions.len()),
            )
        };
        self.regions.get(number).ok_or_else(none)
    }

    fn take(&self, requirement: usize, field: FieldId) -> Result<()> {
        match self.taken.take(requirement, field) {
            true => Ok(()),
            false => {
                Err(self.denied(requirement, field, "an accessor for it was made before; make one and keep it".into()))
            }
        }
    }

    /// The column of a field of type `T`, of which the instance holds values of type `Stored`: the field's own, or
    /// contributions to it.
    fn find_column<T: FieldValue, Stored, const D: usize>(
        &self,
        physical: &'a PhysicalRegion,
        requirement: usize,
        field: FieldId,
    ) -> Result<Column<'a, Stored, D>> {
        let space = physical.space().typed().map_err(|error| self.denied(requirement, field, error.to_string()))?;
        self.column_within::<T, Stored, D>(physical, requirement, field, space)
    }

    /// The same for these points: the region's, and others of which the caller knows that the instance has room for
    /// them.
    fn column_within<T: FieldValue, Stored, const D: usize>(
        &self,
        physical: &'a PhysicalRegion,
        requirement: usize,
        field: FieldId,
        space: &'a IndexSpace<D>,
    ) -> Result<Column<'a, Stored, D>> {
        let instance = self.mapped(physical, requirement, field, FieldType::of::<T>())?;
        // SAFETY: the field's declared type was checked above, buffers hold the operator's contributions by
        // construction, and all instances are filled or written before they are valid; selection gave an instance that
        // covers the region. The task's preconditions came before this call and its event comes after, so the physical
        // analysis keeps away the operations that interfere; within the task, requirements that interfere were refused
        // at the launch and a field is taken for writing once a call. The instance outlives the call, which owns it.
        unsafe { Column::new(instance, field, space) }.ok_or_else(|| self.not_mapped(requirement, field))
    }

    /// The instance of a field that holds values of a type.
    fn mapped(
        &self,
        physical: &'a PhysicalRegion,
        requirement: usize,
        field: FieldId,
        ty: FieldType,
    ) -> Result<&'a Instance> {
        if !physical.fields.contains(field) {
            return Err(self.denied(requirement, field, "the requirement does not have it; declare it".into()));
        }
        let declared = physical.region.fields().type_of(field)?;
        if declared != ty {
            return Err(self.denied(requirement, field, format!("it holds {declared:?}, not {ty:?}")));
        }
        let instance = physical.instance(field).ok_or_else(|| self.not_mapped(requirement, field))?;
        Ok(instance.storage())
    }

    #[cold]
    fn not_mapped(&self, requirement: usize, field: FieldId) -> Error {
        self.denied(requirement, field, "it is not mapped to memory".into())
    }

    #[cold]
    fn no_piece<const D: usize>(&self, requirement: usize) -> Error {
        match self.requirement(requirement).map(|physical| physical.space().typed::<D>()) {
            Err(error) => error,
            Ok(Err(error)) => Error::launch(self.task, format!("requirement {requirement}: {error}")),
            Ok(Ok(_)) => unreachable!("then there is a piece"),
        }
    }

    #[cold]
    fn denied(&self, requirement: usize, field: FieldId, problem: String) -> Error {
        let region = self.regions.get(requirement).map(|physical| &physical.region);
        Error::Access {
            task: self.task.to_owned(),
            requirement,
            field: region.map_or_else(|| format!("#{}", field.0), |region| region.fields().name_of(field)),
            region: region.map_or_else(String::new, ToString::to_string),
            problem,
        }
    }
}

/// The call of a body that launches: its point, its arguments, its regions' names, and the context to launch in.
pub struct ContextCall {
    pub(crate) context: Context,
    pub(crate) point: AnyPoint,
    pub(crate) domain: AnyRect,
    pub(crate) regions: Arc<[LogicalRegion]>,
    pub(crate) arguments: Arguments,
}

impl ContextCall {
    /// The context to launch in.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The point of the index launch; of a single launch, the only point of its domain.
    #[must_use]
    pub fn point(&self) -> AnyPoint {
        self.point
    }

    /// All points of the launch.
    #[must_use]
    pub fn domain(&self) -> AnyRect {
        self.domain
    }

    /// The launch's arguments.
    ///
    /// # Errors
    /// [`Error::Launch`] if they are of another type.
    pub fn arguments<A: 'static>(&self) -> Result<&A> {
        let found = self.arguments.get();
        found.ok_or_else(|| wrong_arguments::<A>(self.context.task()))
    }

    /// The region of a requirement.
    ///
    /// # Errors
    /// [`Error::Launch`] if the launch has no such requirement, or its region another dimension.
    pub fn region<F: 'static, const D: usize>(&self, requirement: usize) -> Result<Region<F, D>> {
        let count = self.regions.len();
        let none = || {
            Error::launch(
                self.context.task(),
                format!("it has {count} requirements, but its body asks for number {requirement}"),
            )
        };
        Region::try_from_logical(self.regions.get(requirement).ok_or_else(none)?.clone())
    }
}

fn wrong_arguments<A>(task: &str) -> Error {
    Error::launch(task, format!("its arguments are not a {}", std::any::type_name::<A>()))
}
