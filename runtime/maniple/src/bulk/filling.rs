//! Fills and invalidations: values that fields get without being stored.

use std::slice;
use std::sync::Arc;

use maniple_region::{Field, FieldId, FieldMask, FieldType, FieldValue, LogicalRegion, Privilege, Requirement};

use crate::bulk::operations::{of_type, one};
use crate::context::{Context, DESTRUCTION, FillOperation, NEW_FIELDS};
use crate::data::regions::Region;
use crate::launch::Filling;
use crate::nodes::replication::Replica;
use crate::support::error::Result;
use crate::support::fill::FillValue;
use crate::task::compared::Compared;

impl Context {
    /// Gives a field one value at all points of a region. Nothing is moved until a task looks: the value is stored
    /// nowhere, and the instances that held the old values are free for others when memory is short.
    ///
    /// In a [trace](Self::trace), or a stretch of launches that repeats, a fill is replayed if its value is zero or a
    /// number, and the same as in the recorded run.
    ///
    /// # Errors
    /// [`Error::PrivilegeNotHeld`](crate::Error::PrivilegeNotHeld),
    /// [`Error::MappedByParent`](crate::Error::MappedByParent), [`Error::Launch`](crate::Error::Launch) if the field
    /// holds another type, or [`Error::Region`](crate::Error::Region) if the region was destroyed.
    #[track_caller]
    pub fn fill<F, T: FieldValue, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        value: T,
    ) -> Result<()> {
        self.fill_field(region.logical(), field.id(), value)
    }

    /// Gives a field known only at run time one value at all points of a region.
    ///
    /// # Errors
    /// As [`Context::fill`].
    #[track_caller]
    pub fn fill_field<T: FieldValue>(&self, region: impl AsRef<LogicalRegion>, field: FieldId, value: T) -> Result<()> {
        let (region, ty) = (region.as_ref(), FieldType::of::<T>());
        let with = match Replica::of(&self.state) {
            // The declared type alone tells whether values have padding.
            Some(_) => Compared::one(&value, region.fields().type_of(field)?),
            None => None,
        };
        self.fill_with(region, field, ty, FillValue::of(value), with)
    }

    #[track_caller]
    fn fill_with(
        &self,
        region: &LogicalRegion,
        field: FieldId,
        ty: FieldType,
        value: FillValue,
        with: Option<Compared>,
    ) -> Result<()> {
        let requirement = of_type(region, field, ty, Privilege::Discard)?;
        self.give(Filling::new("fill", requirement, value), with)
    }

    /// Gives up the values of a field at all points of a region: from here on it reads as zero, as if it had never been
    /// written. Nothing is moved, and nothing waited for: operations launched before use the values undisturbed.
    ///
    /// The instances that hold the values stay for the operations that use the same field next, and go when their
    /// memory is needed for others. So a program that has many temporary values and reuses their fields says here which
    /// of them are dead, or the last copy of each would be kept for good.
    ///
    /// Replayed in traces, as [fills](Self::fill) are.
    ///
    /// ```
    /// use maniple::prelude::*;
    ///
    /// #[derive(Fields)]
    /// struct Cell {
    ///     value: f64,
    ///     scratch: f64,
    /// }
    ///
    /// #[task(leaf)]
    /// fn double(#[discards(scratch)] to: Piece<Cell>, #[reads(value)] from: Piece<Cell>) {
    ///     to.points().for_each(|point| to.scratch[point] = 2.0 * from.value[point]);
    /// }
    ///
    /// #[task(leaf)]
    /// fn add(#[writes(value)] to: Piece<Cell>, #[reads(scratch)] from: Piece<Cell>) {
    ///     to.points().for_each(|point| to.value[point] += from.scratch[point]);
    /// }
    ///
    /// let runtime = Runtime::builder().workers(2).build()?;
    /// let seen = runtime.run(async |cx: &Context| {
    ///     let cells = cx.region::<Cell>(4)?;
    ///     cx.fill(&cells, Cell::value, 1.0)?;
    ///     for _ in 0..10 {
    ///         cx.launch(double(&cells, &cells));
    ///         cx.launch(add(&cells, &cells));
    ///         // Of no use any more.
    ///         cx.invalidate(&cells, Cell::scratch)?;
    ///     }
    ///     let value = cx.map_read(&cells, Cell::value).await?.to_vec()[0];
    ///     let scratch = cx.map_read(&cells, Cell::scratch).await?.to_vec()[0];
    ///     Ok((value, scratch))
    /// })?;
    /// assert_eq!(seen, (3_f64.powi(10), 0.0));
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::PrivilegeNotHeld`](crate::Error::PrivilegeNotHeld) unless the task may write the field,
    /// [`Error::MappedByParent`](crate::Error::MappedByParent) if it holds some of the values mapped, or
    /// [`Error::Region`](crate::Error::Region) if the region or the field was destroyed.
    #[track_caller]
    pub fn invalidate<F, T: FieldValue, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
    ) -> Result<()> {
        let requirement = one(&region.field(field), Privilege::Discard)?;
        self.give(Filling::new(INVALIDATION, requirement, FillValue::default()), None)
    }

    /// Gives up the values of several fields, of any types: see [`Context::invalidate`].
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # #[derive(Fields)]
    /// # struct Cell { value: f64, count: u32 }
    /// # Runtime::builder().workers(1).build()?.run(async |cx| {
    /// let cells = cx.region::<Cell>(4)?;
    /// cx.fill(&cells, Cell::count, 7)?;
    /// cx.invalidate_fields(&cells, &cells.logical().fields().fields())?;
    /// assert_eq!(cx.map_read(&cells, Cell::count).await?.to_vec(), [0; 4]);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Context::invalidate`].
    #[track_caller]
    pub fn invalidate_fields(&self, region: impl AsRef<LogicalRegion>, fields: &FieldMask) -> Result<()> {
        let requirement = Requirement::new(region.as_ref().clone(), fields.clone(), Privilege::Discard);
        self.give(Filling::new(INVALIDATION, requirement, FillValue::default()), None)
    }

    /// Forgets copies of values that other nodes have: each node keeps the values that its own tasks have written, and
    /// gives up those that it got from others to read them. Values stay what they are. The next task that reads them
    /// gets them again, so this is for data that passes by block after block, and does not fit into the memory of a
    /// node together. On one node there is nothing to forget, and nothing is done.
    ///
    /// Nothing is waited for where all nodes know which of them uses what; after partitions whose pieces follow from
    /// data, nodes exchange a message with each other. Points with contributions that have not been read yet stay as
    /// they are.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # #[derive(Fields)]
    /// # struct Cell { value: f64 }
    /// # #[task(leaf)]
    /// # fn sum(#[reads(value)] cells: Piece<Cell>) -> f64 { cells.points().map(|cell| cells.value[cell]).sum() }
    /// # Runtime::builder().workers(1).build()?.run(async |cx| {
    /// let cells = cx.region::<Cell>(1_000)?;
    /// let blocks = cells.partition(10).equal()?;
    /// cx.fill(&cells, Cell::value, 1.0)?;
    /// let mut total = 0.0;
    /// for block in 0..10 {
    ///     let block = blocks.piece(block)?;
    ///     total += cx.launch(sum(&block)).await?;
    ///     // The next ones take its memory.
    ///     cx.forget_copies(&block, &cells.logical().fields().fields())?;
    /// }
    /// assert_eq!(total, 1_000.0);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Context::invalidate`], on several nodes also the job's, if it is over.
    #[track_caller]
    pub fn forget_copies(&self, region: impl AsRef<LogicalRegion>, fields: &FieldMask) -> Result<()> {
        let (here, region) = (self.here(), region.as_ref());
        let forget = || {
            let all = Requirement::new(region.clone(), fields.clone(), Privilege::Discard);
            self.state.bind_fill(&Filling::new(FORGETTING, all, FillValue::default()))?;
            let Some(replica) = Replica::of(&self.state) else { return Ok(()) };
            let given_up = replica.forget_copies(region, fields)?;
            let nothing = |requirement| Filling::new(FORGETTING, requirement, FillValue::default());
            given_up.into_iter().try_for_each(|requirement| self.give_here(nothing(requirement), |_| {}))
        };
        forget().map_err(|error: crate::Error| error.launched_at(Some(&here)))
    }

    /// Gives up all data of a region that is about to be destroyed, and whose name another will have.
    #[track_caller]
    pub(crate) fn give_up(&self, region: &LogicalRegion) -> Result<()> {
        let fields = region.fields().fields_for(&*self.state);
        let requirement = Requirement::new(region.clone(), fields, Privilege::Discard);
        self.give(Filling::new(DESTRUCTION, requirement, FillValue::default()), None)
    }

    /// Fields that took the ids of freed ones become zero before what is about to use them, in every region of the
    /// task's that has them: as a fill, which is replayed where it was recorded.
    pub(crate) fn begin_new_fields(&self, requirements: &[Requirement]) -> Result<()> {
        if !self.state.frees_fields() {
            return Ok(());
        }
        for zero in requirements.iter().filter_map(|requirement| self.state.new_fields(requirement)) {
            let requirement = Requirement::new(zero.region.clone(), zero.fields.clone(), Privilege::Discard);
            // Where the task holds old values mapped, new ones begin all the same.
            if self.give_at(Filling::new(NEW_FIELDS, requirement, FillValue::default()), None).is_err() {
                self.state.interrupt(NEW_FIELDS);
                self.state.submit_zero(zero)?;
            }
        }
        Ok(())
    }

    #[track_caller]
    fn give(&self, filling: Filling, with: Option<Compared>) -> Result<()> {
        let here = self.here();
        self.begin_new_fields(slice::from_ref(&filling.requirement))?;
        self.give_at(filling, with).map_err(|error| error.launched_at(Some(&here)))
    }

    fn give_at(&self, filling: Filling, with: Option<Compared>) -> Result<()> {
        self.give_here(filling, |Filling { name, requirement, .. }| {
            if let Some(replica) = Replica::of(&self.state) {
                let what = match *name {
                    INVALIDATION => "invalidates",
                    DESTRUCTION => "destroys",
                    _ => "fills",
                };
                replica.replace(what, &requirement.target.bound(), &requirement.fields, with);
            }
        })
    }

    /// Gives fields of this node their values, after it has told others if it is allowed.
    fn give_here(&self, filling: Filling, tell: impl FnOnce(&Filling)) -> Result<()> {
        let state = &self.state;
        let bound = state.trace_fill(&filling)?;
        tell(&filling);
        let Filling { name, value, .. } = filling;
        if let Some(bound) = bound {
            let operation = FillOperation { name, bound: bound.clone(), value };
            state.submit_here(slice::from_ref(&bound), |_, _| Arc::new(operation))?;
        }
        Ok(())
    }
}

const INVALIDATION: &str = "invalidation";

/// The name of the operation that forgets copies: it fills them with a value that is not looked at.
const FORGETTING: &str = "forgotten copies";
