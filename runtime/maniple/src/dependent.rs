//! Dependent partitioning: partitions computed from data (Treichler et al., *Dependent Partitioning*, OOPSLA 2016).
//!
//! Each is a task that reads a field and returns pieces, and a partition made of them. The task is ordered after whoever writes the field; the
//! caller awaits it, and other operations go on meanwhile. In a program that runs on several nodes each looks at the values that it has, and what travels is
//! the pieces that it has found, as rectangles.

use std::sync::Arc;

use maniple_region::{Field, FieldMask, FieldValue, Privilege, Ptr, Requirement, Target};
use maniple_space::partition::{self, FieldRead};
use maniple_space::{AnyRect, AnySpace, IndexSpace, Point, Rect};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::access::Read;
use crate::context::Context;
use crate::error::Result;
use crate::launch::TaskLauncher;
use crate::regions::{Domain, Partition, Region, partition_error};
use crate::task::{Codec, LeafCall, TaskDefinition, TaskOptions, Value};

impl Context {
    /// Partitions a region by a field that holds each point's color; points with a color outside of `colors` are in no piece.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub async fn partition_by_field<F, T, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        colors: impl Into<Domain>,
    ) -> Result<Partition<F, D>>
    where
        T: FieldValue + Color,
    {
        let colors = colors.into();
        let pieces = self
            .pieces(region, field, move |values: &Column<'_, T, D>, part| {
                let numbered = Mapped { inner: values, map: move |color: T| color.number(colors) };
                partition::by_field(part, colors.volume() as usize, &numbered).map_err(partition_error)
            })
            .await?;
        region.partition_erased(colors, &pieces)
    }

    /// Partitions a region by who points into it: for each piece of `sources`, the points that its pointers name. Pointers that point
    /// outside of `targets` are ignored.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub async fn image<F, G: 'static, const S: usize, const T: usize>(
        &self,
        targets: &Region<G, T>,
        sources: &Partition<F, S>,
        field: Field<F, Ptr<G, T>>,
    ) -> Result<Partition<G, T>> {
        let pieces: Vec<IndexSpace<S>> = sources.pieces().cloned().collect();
        let space = targets.space().clone();
        let found = self
            .pieces(&sources.parent(), field, move |values: &Column<'_, Ptr<G, T>, S>, part| {
                let points = Mapped { inner: values, map: Ptr::point };
                Ok(partition::image(&within(&pieces, part), &points, &space))
            })
            .await?;
        targets.partition_erased(sources.colors(), &found)
    }

    /// Partitions a region by who points into it, through a field of rectangles.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub async fn image_of_rects<F, G, const S: usize, const T: usize>(
        &self,
        targets: &Region<G, T>,
        sources: &Partition<F, S>,
        field: Field<F, Rect<T>>,
    ) -> Result<Partition<G, T>> {
        let pieces: Vec<IndexSpace<S>> = sources.pieces().cloned().collect();
        let space = targets.space().clone();
        let found = self
            .pieces(&sources.parent(), field, move |values: &Column<'_, Rect<T>, S>, part| {
                Ok(partition::image_rects(&within(&pieces, part), values, &space))
            })
            .await?;
        targets.partition_erased(sources.colors(), &found)
    }

    /// Partitions a region by where it points to: for each piece of `targets`, the points whose pointers point into it.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub async fn preimage<F, G: 'static, const S: usize, const T: usize>(
        &self,
        sources: &Region<F, S>,
        field: Field<F, Ptr<G, T>>,
        targets: &Partition<G, T>,
    ) -> Result<Partition<F, S>> {
        let pieces: Vec<IndexSpace<T>> = targets.pieces().cloned().collect();
        let found = self
            .pieces(sources, field, move |values: &Column<'_, Ptr<G, T>, S>, part| {
                let points = Mapped { inner: values, map: Ptr::point };
                Ok(partition::preimage(&pieces, &points, part))
            })
            .await?;
        sources.partition_erased(targets.colors(), &found)
    }

    /// Partitions a region by where it points to, through a field of rectangles: a point is in a piece if its rectangle touches the target's.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub async fn preimage_of_rects<F, G, const S: usize, const T: usize>(
        &self,
        sources: &Region<F, S>,
        field: Field<F, Rect<T>>,
        targets: &Partition<G, T>,
    ) -> Result<Partition<F, S>> {
        let pieces: Vec<IndexSpace<T>> = targets.pieces().cloned().collect();
        let found = self
            .pieces(sources, field, move |values: &Column<'_, Rect<T>, S>, part| {
                Ok(partition::preimage_rects(&pieces, values, part))
            })
            .await?;
        sources.partition_erased(targets.colors(), &found)
    }

    /// Runs a function on the values of a field, as a task: in one part, or in several parts where these are. It is given the values, and the points of the part.
    async fn pieces<F, T: FieldValue, const S: usize, const P: usize>(
        &self,
        region: &Region<F, S>,
        field: Field<F, T>,
        compute: impl Fn(&Column<'_, T, S>, &IndexSpace<S>) -> Result<Vec<IndexSpace<P>>> + Send + Sync + 'static,
    ) -> Result<Vec<AnySpace>> {
        let column = field.id();
        let body = move |call: &LeafCall<'_>| -> Result<Value> {
            let values = call.read::<T, S>(0, column)?;
            let part = values.space().clone();
            Ok(Value::new(Found(compute(&Column(values), &part)?)))
        };
        let options = TaskOptions { idempotent: true, ..TaskOptions::default() };
        let task = TaskDefinition::new("partition").leaf(options, body).codec(Codec::of::<Found<P>>());
        let launcher = TaskLauncher::new(&Arc::new(task));
        let reads = |target: Target| Requirement::new(target, FieldMask::of(column), Privilege::Read);
        let Found(pieces) = match &self.state.replica {
            None => self.launch(launcher.requirement(reads(region.logical().clone().into())).typed()).await?,
            Some(replica) => {
                let parts = reads(replica.where_it_is(region.logical(), column).into());
                let domain = AnyRect::from(Rect::<1>::from(0..self.nodes() as i64));
                let found: Vec<Found<P>> = self.index_launch(domain, launcher.requirement(parts).typed()).all().await?;
                Found::united(found)
            }
        };
        Ok(pieces.into_iter().map(AnySpace::from).collect())
    }
}

/// Pieces that were found, or parts of them.
#[derive(Clone)]
struct Found<const D: usize>(Vec<IndexSpace<D>>);

impl<const D: usize> Found<D> {
    /// One piece after the other, each of whose parts are let go of: scattered points take much memory.
    fn united(parts: Vec<Self>) -> Self {
        let mut parts: Vec<_> = parts.into_iter().map(|Self(pieces)| pieces.into_iter()).collect();
        let next = || {
            let piece: Vec<IndexSpace<D>> = parts.iter_mut().filter_map(Iterator::next).collect();
            (!piece.is_empty()).then(|| IndexSpace::union_all(&piece))
        };
        Self(std::iter::from_fn(next).collect())
    }
}

/// A piece as it is sent: the bounds of each rectangle, one after the other.
struct Bounds<P>(P);

impl<const D: usize> Serialize for Bounds<&IndexSpace<D>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let bounds = |rect: &Rect<D>| rect.lo.0.into_iter().chain(rect.hi.0);
        self.0.rects().iter().flat_map(bounds).collect::<Vec<i64>>().serialize(serializer)
    }
}

impl<'a, const D: usize> Deserialize<'a> for Bounds<IndexSpace<D>> {
    fn deserialize<S: Deserializer<'a>>(deserializer: S) -> std::result::Result<Self, S::Error> {
        let rect = |bounds: &[i64]| {
            let (lo, hi) = bounds.split_at(D);
            Rect::new(std::array::from_fn(|d| lo[d]), std::array::from_fn::<i64, D, _>(|d| hi[d]))
        };
        let bounds = Vec::<i64>::deserialize(deserializer)?;
        Ok(Self(IndexSpace::from_rects(bounds.chunks_exact(2 * D).map(rect))))
    }
}

impl<const D: usize> Serialize for Found<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Bounds))
    }
}

impl<'a, const D: usize> Deserialize<'a> for Found<D> {
    fn deserialize<S: Deserializer<'a>>(deserializer: S) -> std::result::Result<Self, S::Error> {
        let pieces = Vec::<Bounds<IndexSpace<D>>>::deserialize(deserializer)?;
        Ok(Self(pieces.into_iter().map(|Bounds(piece)| piece).collect()))
    }
}

/// What pieces have of a part.
fn within<const D: usize>(pieces: &[IndexSpace<D>], part: &IndexSpace<D>) -> Vec<IndexSpace<D>> {
    pieces.iter().map(|piece| piece.intersection(part)).collect()
}

/// A value that names a color: an integer (the color's number), or a point.
pub trait Color: Copy {
    /// The number of the color among `colors`; negative if it is none of them.
    fn number(self, colors: Domain) -> i64;
}

macro_rules! integer_colors {
    ($($ty:ty),*) => {
        $(impl Color for $ty {
            fn number(self, _colors: Domain) -> i64 {
                i64::try_from(self).unwrap_or(-1)
            }
        })*
    };
}

integer_colors!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl<const C: usize> Color for Point<C> {
    fn number(self, colors: Domain) -> i64 {
        let rect = colors.rect();
        if rect.dim() == C && rect.contains(self.into()) { rect.linear(self.into()) as i64 } else { -1 }
    }
}

/// A field's values, for the partitioning functions.
struct Column<'a, T, const D: usize>(Read<'a, T, D>);

impl<T: FieldValue, const D: usize> FieldRead<T, D> for Column<'_, T, D> {
    fn read(&self, at: Point<D>) -> T {
        self.0[at]
    }
}

/// Values with a function applied.
struct Mapped<'a, I, M> {
    inner: &'a I,
    map: M,
}

impl<T: FieldValue, U: Copy, const D: usize, M: Fn(T) -> U> FieldRead<U, D> for Mapped<'_, Column<'_, T, D>, M> {
    fn read(&self, at: Point<D>) -> U {
        (self.map)(self.inner.0[at])
    }
}
