//! Memory for the pieces of a partition: on several nodes, each has that of the pieces that are its.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use maniple_cluster::{Wait, ready};
use maniple_realm::Event;
use maniple_region::{
    Field, FieldId, FieldMask, FieldType, FieldValue, LogicalPartition, LogicalRegion, Privilege, Shape,
};
use maniple_space::{AnyPoint, AnySpace, Point};

use super::handle::{Detached, Give, give};
use super::operation::FromFile;
use super::values::{FieldMemory, FieldValues};
use super::{ATTACH, DETACH};
use crate::context::{Context, ContextState};
use crate::core::Claim;
use crate::data::regions::{Domain, Partition, partition_erased};
use crate::instances::instance::PhysicalInstance;
use crate::nodes::replication::Replica;
use crate::support::error::{AttachmentError, Result};

/// Memory of type `M` for each piece of a partition: see [`Context::attach_pieces`].
///
/// Dropping the handle leaves the memory to the region, as that of [`Attached`](super::Attached) does.
#[must_use = "a handle that is dropped leaves the memory to the region"]
pub struct AttachedPieces<M> {
    claim: Arc<Claim>,
    partition: LogicalPartition,
    /// The points of the pieces of each node.
    areas: Vec<Shape>,
    /// The instances of this node's pieces, by the numbers of their colors.
    mine: Vec<(usize, Arc<PhysicalInstance>)>,
    pub(super) give: Give,
    flushes: bool,
    marker: PhantomData<fn() -> M>,
}

impl<M> AttachedPieces<M> {
    /// The same memory, to be detached without bringing the values of the region to it: what it then holds is
    /// unspecified.
    pub fn discard(mut self) -> Self {
        self.flushes = false;
        self
    }
}

impl<M> fmt::Debug for AttachedPieces<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttachedPieces(field `{}` of {})", self.claim.field_name(), self.partition)
    }
}

/// Memory of pieces that is being detached: await it to have it back.
#[must_use = "the memory is dropped if its detachment is not awaited"]
pub struct DetachedPieces<M> {
    pieces: Vec<(AnyPoint, Detached<M>)>,
}

impl<M: Send + 'static> IntoFuture for DetachedPieces<M> {
    type Output = Result<Vec<(AnyPoint, M)>>;
    type IntoFuture = Pin<Box<dyn std::future::Future<Output = Self::Output> + Send>>;

    /// The memory of each piece of this node with its color, in row-major order of these.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut all = Vec::with_capacity(self.pieces.len());
            let mut failure = None;
            for (color, detached) in self.pieces {
                match detached.await {
                    Ok(memory) => all.push((color, memory)),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            failure.map_or(Ok(all), Err)
        })
    }
}

impl<M> fmt::Debug for DetachedPieces<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.pieces.iter().map(|(color, _)| color)).finish()
    }
}

impl Context {
    /// Makes vectors the places of a field's values in the pieces of a partition, which are rectangles apart: as
    /// [`attach_vec`](Self::attach_vec) for each piece. In a program that several nodes run, each is asked for the
    /// vectors of the colors that the mapper deals to it
    /// ([`Mapper::shard_launch`](crate::mapper::Mapper::shard_launch), for a launch named `attachment` over the
    /// colors), and no node has all of them.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # #[derive(Fields)]
    /// # struct Cell { value: f64 }
    /// # #[task(leaf)]
    /// # fn double(#[writes(value)] cells: Piece<Cell>) {
    /// #     cells.points().for_each(|point| cells.value[point] *= 2.0);
    /// # }
    /// # Runtime::builder().workers(1).build()?.run(async |cx: &Context| {
    /// let cells = cx.region::<Cell>(4)?;
    /// let halves = cells.partition(2).equal()?;
    /// let values = cx.attach_pieces(&halves, Cell::value, |color| vec![color[0] as f64; 2])?;
    /// cx.launch(double(&cells));
    /// let [(_, first), (color, second)] = &cx.detach_pieces(values)?.await?[..] else { panic!() };
    /// assert_eq!((&first[..], color[0], &second[..]), (&[0.0; 2][..], 1, &[2.0; 2][..]));
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`attach_vec`](Self::attach_vec) for the pieces; and [`Error::Attachment`](crate::Error::Attachment) if some
    /// have points in common.
    pub fn attach_pieces<F, T: FieldValue, const D: usize>(
        &self,
        partition: &Partition<F, D>,
        field: Field<F, T>,
        mut source: impl FnMut(AnyPoint) -> Vec<T>,
    ) -> Result<AttachedPieces<Vec<T>>> {
        let make = |color, values: &FieldValues<'_>| {
            let mut vector = source(color);
            let memory = FieldMemory::of_vec(&mut vector);
            values.check(&memory)?;
            Ok((memory, vector, None))
        };
        // SAFETY: the elements are values of `T`; they stay where they are when the vector moves, and nothing touches
        // them before it is given back.
        unsafe { self.attach_each(partition.logical(), field.id(), FieldType::of::<T>(), give::<Vec<T>>, make) }
    }

    /// Takes the memory of pieces back: as [`detach`](Self::detach) for each piece.
    ///
    /// # Errors
    /// As [`detach`](Self::detach).
    pub fn detach_pieces<T: FieldValue>(&self, attached: AttachedPieces<Vec<T>>) -> Result<DetachedPieces<Vec<T>>> {
        self.detach_each(attached)
    }

    /// Attaches memory that is made for each piece of this node: `make` gives memory that was checked, its owner, and
    /// the load that reads into it.
    ///
    /// # Safety
    /// The memory that is made meets the conditions of [`ContextState::place`].
    pub(super) unsafe fn attach_each<M, O: Send + 'static>(
        &self,
        partition: &LogicalPartition,
        field: FieldId,
        ty: FieldType,
        give: Give,
        mut make: impl FnMut(AnyPoint, &FieldValues<'_>) -> Result<(FieldMemory, O, Option<FromFile>)>,
    ) -> Result<AttachedPieces<M>> {
        let (state, parts, parent) = (&self.state, partition.partitioning(), partition.parent());
        if !parts.is_disjoint() {
            return Err(AttachmentError::Aliased { partition: partition.to_string() }.into());
        }
        state.begin(ATTACH, &parent, &FieldMask::of(field), Privilege::Discard)?;
        let claim = state.claim(&parent, field, parts.union())?;
        let owners = match Replica::of(state) {
            Some(replica) => replica.owners(self, ATTACH, parts.colors())?,
            None => vec![0; parts.len()],
        };
        let rank = Replica::of(state).map_or(0, Replica::rank);
        let (mut mine, mut loads) = (Vec::new(), Vec::new());
        let mut make_all = || {
            for (number, color) in parts.colors().points().enumerate().filter(|(number, _)| owners[*number] == rank) {
                let region = partition.piece(color)?;
                let values = FieldValues { region: &region, field, ty };
                let (memory, owner, load) = make(color, &values)?;
                // SAFETY: promised by the caller.
                mine.push((number, unsafe { state.place(&values, memory, owner) }?));
                loads.push(load);
            }
            Ok(())
        };
        // Memory that does not suit is known to one node alone.
        let made = make_all();
        ready(self.all_or_none(ATTACH, Wait::Blocking, made))?;
        let areas = state.areas(&parent, parts.pieces(), &owners);
        self.attach_and_load(partition, &FieldMask::of(field), &areas, &mine, loads)?;
        let (partition, marker) = (partition.clone(), PhantomData);
        Ok(AttachedPieces { claim, partition, areas, mine, give, flushes: true, marker })
    }

    /// Detaches what is attached to pieces.
    pub(super) fn detach_each<M: Send + 'static>(&self, attached: AttachedPieces<M>) -> Result<DetachedPieces<M>> {
        self.detach_each_after(attached, &[])
    }

    /// The same; what is written then to files is so after these events.
    pub(super) fn detach_each_after<M: Send + 'static>(
        &self,
        attached: AttachedPieces<M>,
        written_after: &[Event],
    ) -> Result<DetachedPieces<M>> {
        let AttachedPieces { claim, partition, areas, mine, give, flushes, .. } = attached;
        let (state, fields) = (&self.state, FieldMask::of(claim.field));
        let (parts, parent) = (partition.partitioning(), partition.parent());
        let privilege = if flushes { Privilege::ReadWrite } else { Privilege::Discard };
        let bound = state.begin(DETACH, &parent, &fields, privilege)?;
        state.check_attached_here(&claim)?;
        if let Some(replica) = Replica::of(state) {
            replica.use_areas(self, DETACH, &parent, &fields, privilege, &areas)?;
            replica.zero_areas(&parent, &fields, &areas);
            state.interrupt(DETACH);
        }
        let bound_to = |number: usize| {
            let piece = partition.piece(parts.colors().delinear(number as u64))?;
            state.begin(DETACH, &piece, &fields, privilege)
        };
        let (colors, detached): (Vec<usize>, Vec<_>) = mine.into_iter().unzip();
        let bounds = colors.iter().map(|&number| bound_to(number)).collect::<Result<Vec<_>>>()?;
        let zeroed = match parts.is_complete() {
            true => bound,
            // All pieces at once, also those of other nodes.
            false => {
                let all =
                    partition_erased(&parent, Domain::from(1_usize), std::slice::from_ref(parts.union().space()))?;
                state.begin(DETACH, &all.piece(Point([0]).into())?, &fields, privilege)?
            }
        };
        let detached = bounds.into_iter().zip(detached).collect();
        let results = state.submit_detachments(detached, zeroed, give, written_after)?;
        let colors = colors.into_iter().map(|number| parts.colors().delinear(number as u64));
        Ok(DetachedPieces { pieces: colors.zip(results.into_iter().map(Detached::new)).collect() })
    }

    /// Attaches instances to those pieces of a partition, by the numbers of their colors, that are this node's. Each
    /// node has its area of the fields.
    pub(crate) fn attach_to_pieces(
        &self,
        partition: &LogicalPartition,
        fields: &FieldMask,
        areas: &[Shape],
        mine: &[(usize, Arc<PhysicalInstance>)],
    ) -> Result<()> {
        self.attach_and_load(partition, fields, areas, mine, mine.iter().map(|_| None))
    }

    /// The same, with what is read into the memory of each instance.
    fn attach_and_load(
        &self,
        partition: &LogicalPartition,
        fields: &FieldMask,
        areas: &[Shape],
        mine: &[(usize, Arc<PhysicalInstance>)],
        loads: impl IntoIterator<Item = Option<FromFile>>,
    ) -> Result<()> {
        let (state, parts) = (&self.state, partition.partitioning());
        let parent = partition.parent();
        state.begin(ATTACH, &parent, fields, Privilege::Discard)?;
        if let Some(replica) = Replica::of(state) {
            replica.use_areas(self, ATTACH, &parent, fields, Privilege::Discard, areas)?;
            state.interrupt(ATTACH);
        }
        for ((number, instance), from_file) in mine.iter().zip(loads) {
            let piece = partition.piece(parts.colors().delinear(*number as u64))?;
            let bound = state.begin(ATTACH, &piece, instance.fields(), Privilege::Discard)?;
            let load = from_file.as_ref().and_then(|file| file.load.as_ref());
            let reading = load.map(|load| (Arc::clone(&load.at), Arc::clone(&load.loading)));
            let operation = state.submit_attachment(bound, Arc::clone(instance), from_file)?;
            if let Some((at, loading)) = reading {
                state.note_reading(&at, &loading, &operation);
            }
        }
        Ok(())
    }
}

impl ContextState {
    /// The points of each node, if pieces are dealt to these owners.
    pub(crate) fn areas(&self, parent: &LogicalRegion, pieces: &[Shape], owners: &[usize]) -> Vec<Shape> {
        let (dim, shapes) = (parent.space().space().dim(), parent.space().forest().shapes());
        let mut dealt = vec![Vec::new(); Replica::of(self).map_or(1, Replica::nodes)];
        pieces.iter().zip(owners).for_each(|(piece, owner)| dealt[*owner].push(piece.space()));
        let area = |own| shapes.intern(&AnySpace::union_all(dim, own).expect("pieces have their parent's dimension"));
        dealt.into_iter().map(area).collect()
    }
}
