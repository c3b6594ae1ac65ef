//! Rows that tasks have made, as many as they found: once a launch has ended, they are the rows of a region.
//!
//! The vectors of each point's rows stay where they are, and become the places of the values by
//! [attachment](crate::external::attach). Where each point's rows begin is a sum over the points before it: of the
//! numbers of rows, which nodes tell each other.

mod rows;

use std::sync::Arc;

use maniple_cluster::Wait;
use maniple_region::FieldType;
use maniple_space::Rect;

use crate::context::Context;
use crate::data::regions::{Partition, Region};
use crate::external::attach::FieldValues;
use crate::future::FutureMap;
use crate::nodes::replication::Replica;
use crate::results::completion::Measure;
use crate::results::promise::measured;
use crate::results::{Local, Results};
use crate::support::error::{AttachmentError, Error, Result};

use self::rows::Taken;
pub use self::rows::{Output, Row, RowColumn};

/// The name of the operation that gathers the rows that a launch has made.
const COLLECT: &str = "collects";

impl Context {
    /// A region of all rows that the points of a launch have made, and its partition by the points: the piece of each
    /// has its rows, in the order in which it made them, and pieces follow one another in the row-major order of the
    /// points. Waits until all points have ended. No row is copied: the task's vectors are the places of the values.
    ///
    /// ```
    /// use maniple::prelude::*;
    ///
    /// #[derive(Fields)]
    /// struct Rod {
    ///     heat: f64,
    /// }
    ///
    /// /// A place that is hot.
    /// #[derive(Fields)]
    /// struct Hot {
    ///     at: i64,
    ///     heat: f64,
    /// }
    ///
    /// #[task(leaf)]
    /// fn hot(#[reads(heat)] rod: Piece<Rod>) -> Output<Hot> {
    ///     let hot = rod.points().filter(|&at| rod.heat[at] > 50.0);
    ///     hot.map(|at| Hot { at: at[0], heat: rod.heat[at] }).collect()
    /// }
    ///
    /// # Runtime::builder().workers(2).build()?.run(async |cx: &Context| {
    /// let rod = cx.region::<Rod>(6)?;
    /// let values = cx.attach_vec(&rod, Rod::heat, vec![60.0, 10.0, 70.0, 20.0, 30.0, 80.0])?;
    /// let thirds = rod.partition(3).equal()?;
    /// let (spots, pieces) = cx.collect(cx.index_launch(3, hot(&thirds))).await?;
    /// assert_eq!(cx.map_read(&spots, Hot::at).await?.to_vec(), [0, 2, 5]);
    /// assert_eq!(pieces.pieces().map(|piece| piece.volume()).collect::<Vec<_>>(), [1, 1, 1]);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// Of a launch [over a set of points](Self::index_launch_over) the colors are the numbers of the points in it. The
    /// rows count in memory from then on.
    ///
    /// In a program that several nodes run, all nodes get the region, and the rows stay on the node that made them
    /// until others use them.
    ///
    /// # Errors
    /// The first failure in the order of points; then the rows of the others are dropped. [`Error::OutOfMemory`] if a
    /// memory has no room for the rows, on all nodes if it is so on one. [`Error::Attachment`] if a point's columns
    /// differ in length, or the outputs were collected before.
    pub async fn collect<F: Row>(&self, outputs: FutureMap<Output<F>>) -> Result<(Region<F>, Partition<F>)>
    where
        F::Columns: Send,
    {
        let results = outputs.results();
        let rank = Replica::of(&self.state).map_or(0, Replica::rank);
        let measure: Measure = Arc::new(move |value| {
            let output = value.downcast_ref::<Output<F>>();
            let output = output.ok_or_else(|| Error::launch(COLLECT, "a result is no output of such rows"))?;
            Ok((rank as u64, output.rows()? as u64))
        });
        let counts = match results.shared() {
            Some(shared) => Arc::clone(shared).measured(COLLECT, measure),
            None => measured(COLLECT, results, measure),
        };
        let counts = FutureMap::<(u64, u64)>::new(counts).all().await?;
        let mine: u64 = counts.iter().filter(|(node, _)| *node == rank as u64).map(|(_, rows)| rows).sum();
        let row: u64 = F::descriptors().iter().map(|field| field.ty.size as u64).sum();
        let room = self.state.room_for(row.saturating_mul(mine), results.name(), fields_of::<F>(), "its rows").await;
        self.all_or_none(COLLECT, Wait::Async, room).await?;
        self.adopt(&outputs, &counts)
    }

    /// Makes the region, each point of which has been measured: the node that has its rows, and how many.
    fn adopt<F: Row>(&self, outputs: &FutureMap<Output<F>>, counts: &[(u64, u64)]) -> Result<(Region<F>, Partition<F>)>
    where
        F::Columns: Send,
    {
        let (state, domain) = (&self.state, outputs.domain());
        let mut end = 0_i64;
        let mut pieces = Vec::with_capacity(counts.len());
        for &(_, rows) in counts {
            let start = end;
            let grown = i64::try_from(rows).ok().and_then(|rows| end.checked_add(rows));
            end = grown.ok_or(maniple_region::RegionError::TooManyRows { rows: usize::MAX })?;
            pieces.push(Rect::<1>::from(start..end).into());
        }
        let region = self.region_over::<F, 1>(Rect::<1>::from(0..end))?;
        let partition = region.partition_of(domain.into(), pieces)?;
        let logical = partition.logical();
        let mut mine = Vec::new();
        for (points, results) in local(outputs.results()) {
            for (index, point) in points.points().enumerate() {
                let Some(Ok(value)) = results.value(index) else { continue };
                let output = value.downcast_ref::<Output<F>>().ok_or(AttachmentError::Collected)?;
                let (piece, number) = (logical.piece(point)?, domain.linear(point) as usize);
                let mut failure = None;
                let mut columns = output.take().ok_or(AttachmentError::Collected)?;
                F::each(&mut columns, &mut |field, column| {
                    if column.rows() == 0 || failure.is_some() {
                        return;
                    }
                    let placed = piece.fields().type_of(field).map_err(Error::from).and_then(|ty: FieldType| {
                        let Taken { memory, ty: found, owner } = column.take();
                        if found != ty.type_id {
                            return Err(Error::launch(
                                COLLECT,
                                format!("a column of {piece} is not of its field's type"),
                            ));
                        }
                        let values = FieldValues { region: &piece, field, ty };
                        values.check(&memory)?;
                        // SAFETY: the memory is that of the owner, a vector of the field's type, as was checked, which
                        // nothing touches before it is dropped.
                        unsafe { state.place(&values, memory, owner) }
                    });
                    match placed {
                        Ok(instance) => mine.push((number, instance)),
                        Err(error) => failure = Some(error),
                    }
                });
                failure.map_or(Ok(()), Err)?;
            }
        }
        if end > 0 {
            let owners: Vec<usize> = counts.iter().map(|(node, _)| *node as usize).collect();
            let areas = state.areas(region.logical(), logical.partitioning().pieces(), &owners);
            self.attach_to_pieces(logical, &region.logical().fields().fields(), &areas, &mine)?;
        }
        Ok((region, partition))
    }
}

fn fields_of<F: Row>() -> String {
    F::descriptors().into_iter().map(|field| field.name).collect::<Vec<_>>().join(", ")
}

/// The points of a launch that run here, with their results.
fn local(results: &Arc<Results>) -> Local {
    match results.shared() {
        Some(shared) => shared.local().clone(),
        None => Local::from_iter([(results.domain, Arc::clone(results))]),
    }
}
