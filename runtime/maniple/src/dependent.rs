//! Dependent partitioning: partitions computed from data (Treichler et al., *Dependent Partitioning*, OOPSLA 2016).
//!
//! Each is a task that reads a field and returns pieces, and a partition made of them. The task is launched by the call, and ordered after whoever writes the field; the
//! caller awaits it, and other operations go on meanwhile. In a program that runs on several nodes each looks at the values that it has, and what it finds goes to
//! those nodes in whose blocks the points are (see `replication/distributed.rs`): no node knows all pieces.

use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_region::{Field, FieldMask, FieldValue, Privilege, Projection, Ptr, Requirement, Target};
use maniple_space::partition::{self, FieldRead};
use maniple_space::{AnySpace, IndexSpace, Point, Rect};
use rustc_hash::FxHashMap;

use crate::access::Read;
use crate::context::Context;
use crate::error::Result;
use crate::future::FutureMap;
use crate::launch::TaskLauncher;
use crate::regions::{Domain, Partition, Region, partition_error};
use crate::replication::Replica;
use crate::replication::dependent::PendingPartition;
use crate::task::{LeafCall, TaskDefinition, TaskOptions, Value};

impl Context {
    /// Partitions a region by a field that holds each point's color; points with a color outside of `colors` are in no piece.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub fn partition_by_field<F, T, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        colors: impl Into<Domain>,
    ) -> impl Future<Output = Result<Partition<F, D>>>
    where
        T: FieldValue + Color,
    {
        let colors = colors.into();
        let by_color = move |values: &Column<'_, T, D>, part: &IndexSpace<D>| {
            let numbered = Mapped { inner: values, map: move |color: T| color.number(colors) };
            partition::by_field(part, colors.volume() as usize, &numbered).map_err(partition_error)
        };
        let pending = self.begin_partition();
        let looking = self.parts(region, field).map(|parts| self.look(&parts, field, by_color));
        async move {
            let found = looking?.wait().await?;
            self.found(pending, region, colors, found).await
        }
    }

    /// Partitions a region by who points into it: for each piece of `sources`, the points that its pointers name. Pointers that point
    /// outside of `targets` are ignored.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub fn image<F, G: 'static, const S: usize, const T: usize>(
        &self,
        targets: &Region<G, T>,
        sources: &Partition<F, S>,
        field: Field<F, Ptr<G, T>>,
    ) -> impl Future<Output = Result<Partition<G, T>>> {
        self.image_by(targets, sources, field, Ptr::point)
    }

    /// Partitions a region by the numbers of its rows: for each piece of `sources`, the rows that its values are the numbers of. Numbers of no row are ignored.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub fn image_of_numbers<F, G, V: FieldValue + Into<i64>, const S: usize>(
        &self,
        targets: &Region<G, 1>,
        sources: &Partition<F, S>,
        field: Field<F, V>,
    ) -> impl Future<Output = Result<Partition<G, 1>>> {
        self.image_by(targets, sources, field, |number: V| Point([number.into()]))
    }

    /// As [`image`](Self::image), by what a function says that values point to.
    fn image_by<F, G, V: FieldValue, const S: usize, const T: usize>(
        &self,
        targets: &Region<G, T>,
        sources: &Partition<F, S>,
        field: Field<F, V>,
        point: fn(V) -> Point<T>,
    ) -> impl Future<Output = Result<Partition<G, T>>> {
        let pending = self.begin_partition();
        let looking = self.look_at_pieces(sources, field, |pieces| {
            let space = targets.space().clone();
            move |values: &Column<'_, V, S>, part: &IndexSpace<S>| {
                let points = Mapped { inner: values, map: point };
                Ok(partition::image(&within(&pieces, part), &points, &space))
            }
        });
        async move {
            let found = looking?.wait().await?;
            self.found(pending, targets, sources.colors(), found).await
        }
    }

    /// Partitions a region by who points into it, through a field of rectangles.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub fn image_of_rects<F, G, const S: usize, const T: usize>(
        &self,
        targets: &Region<G, T>,
        sources: &Partition<F, S>,
        field: Field<F, Rect<T>>,
    ) -> impl Future<Output = Result<Partition<G, T>>> {
        let pending = self.begin_partition();
        let looking = self.look_at_pieces(sources, field, |pieces| {
            let space = targets.space().clone();
            move |values: &Column<'_, Rect<T>, S>, part: &IndexSpace<S>| {
                Ok(partition::image_rects(&within(&pieces, part), values, &space))
            }
        });
        async move {
            let found = looking?.wait().await?;
            self.found(pending, targets, sources.colors(), found).await
        }
    }

    /// Partitions a region by offsets into it, as sparse matrices have them: point `p` of the sources holds where what belongs to it begins, and point `p + 1` where it ends. For each
    /// piece of `sources`, the points between what the first and the last point of each of its intervals hold: a piece has the point that ends it too.
    ///
    /// Offsets must not fall. A task for each piece looks at the ends of its intervals alone.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub fn image_of_offsets<F, G, V: FieldValue + Into<i64>>(
        &self,
        targets: &Region<G, 1>,
        sources: &Partition<F, 1>,
        field: Field<F, V>,
    ) -> impl Future<Output = Result<Partition<G, 1>>> {
        let (pending, colors, column) = (self.begin_partition(), sources.colors(), field.id());
        let space = targets.space().clone();
        let found =
            Arc::new(Mutex::new(vec![AnySpace::from(IndexSpace::<1>::from_rects([])); colors.volume() as usize]));
        let finds = Arc::clone(&found);
        let body = move |call: &LeafCall<'_>| -> Result<Value> {
            let offsets = call.read::<V, 1>(0, column)?;
            let between = |rect: &Rect<1>| Rect::from(offsets[rect.lo].into()..offsets[rect.hi].into());
            let points = IndexSpace::from_rects(offsets.space().rects().iter().map(between)).intersection(&space);
            finds.lock()[colors.rect().linear(call.point()) as usize] = points.into();
            Ok(Value::new(()))
        };
        let task = TaskDefinition::new("partition").leaf(TaskOptions::default(), body).dealt_in_blocks();
        let own = Target::Partition(sources.logical().clone(), Projection::Identity);
        let reads = Requirement::new(own, FieldMask::of(column), Privilege::Read);
        let launcher = TaskLauncher::new(&Arc::new(task)).requirement(reads).typed::<()>();
        let launched = Launched::OnNodes(self.index_launch(colors, launcher));
        async move {
            let pieces = Looking { launched, found }.wait().await?;
            self.found(pending, targets, colors, pieces).await
        }
    }

    /// Partitions a region by where it points to: for each piece of `targets`, the points whose pointers point into it.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub fn preimage<F, G: 'static, const S: usize, const T: usize>(
        &self,
        sources: &Region<F, S>,
        field: Field<F, Ptr<G, T>>,
        targets: &Partition<G, T>,
    ) -> impl Future<Output = Result<Partition<F, S>>> {
        self.pointing(sources, field, targets, |pointer: Ptr<G, T>| pointer.point())
    }

    /// Partitions a region by where it points to, through a field of rectangles: a point is in a piece if its rectangle touches the target's.
    ///
    /// # Errors
    /// Those of a launch that reads the field, and of [`Region::partition_into`].
    pub fn preimage_of_rects<F, G, const S: usize, const T: usize>(
        &self,
        sources: &Region<F, S>,
        field: Field<F, Rect<T>>,
        targets: &Partition<G, T>,
    ) -> impl Future<Output = Result<Partition<F, S>>> {
        self.pointing(sources, field, targets, |rect: Rect<T>| rect)
    }

    /// Partitions a region by where a field points to: what its values name, a function says.
    fn pointing<F, G, V: FieldValue, N: Named<T>, const S: usize, const T: usize>(
        &self,
        sources: &Region<F, S>,
        field: Field<F, V>,
        targets: &Partition<G, T>,
        named: fn(V) -> N,
    ) -> impl Future<Output = Result<Partition<F, S>>> {
        let (pending, parts) = (self.begin_partition(), self.parts(sources, field));
        // With pieces elsewhere, first what this node points to; then the pieces, as far as they have that.
        let looked = Arc::new(Mutex::new(None));
        let is_afar = pending.is_some() && is_distributed(targets);
        let looking = parts.map(|parts| match is_afar {
            true => {
                let (space, looks) = (targets.parent().space().clone(), Arc::clone(&looked));
                self.look(&parts, field, move |values: &Column<'_, V, S>, part: &IndexSpace<S>| {
                    let kept = Kept(part.points().map(|at| (at, named(values.read(at)))).collect());
                    let points = N::image(std::slice::from_ref(part), &kept, &space);
                    *looks.lock() = Some((kept, part.clone()));
                    Ok(points.into_iter().map(AnySpace::from).collect())
                })
            }
            false => {
                let pieces: Vec<IndexSpace<T>> = targets.pieces().cloned().collect();
                self.look(&parts, field, move |values: &Column<'_, V, S>, part: &IndexSpace<S>| {
                    let found = N::preimage(&pieces, &Mapped { inner: values, map: named }, part);
                    Ok(found.into_iter().map(AnySpace::from).collect())
                })
            }
        });
        async move {
            let mut found = looking?.wait().await?;
            if let (Some(replica), Some(pending), true) = (Replica::of(&self.state), &pending, is_afar) {
                let points = found.pop().unwrap_or_else(|| IndexSpace::<T>::from_rects([]).into());
                let pieces = replica.pieces_about(pending, &points, targets.logical().partitioning()).await?;
                let looked = looked.lock().take();
                let pieces = looked.map(|(kept, part)| N::preimage(&typed(pieces), &kept, &part));
                found = pieces.unwrap_or_default().into_iter().map(AnySpace::from).collect();
            }
            self.found(pending, sources, targets.colors(), found).await
        }
    }

    /// As [`look`](Self::look), with a function of the pieces of a partition, as far as they are in what is looked at.
    fn look_at_pieces<F, T: FieldValue, const S: usize, const P: usize, C>(
        &self,
        sources: &Partition<F, S>,
        field: Field<F, T>,
        compute: impl FnOnce(Vec<IndexSpace<S>>) -> C,
    ) -> Result<Looking>
    where
        C: Fn(&Column<'_, T, S>, &IndexSpace<S>) -> Result<Vec<IndexSpace<P>>> + Send + Sync + 'static,
    {
        let parts = self.parts(&sources.parent(), field)?;
        let compute = compute(self.pieces_within(&parts, sources)?);
        Ok(self.look(&parts, field, compute))
    }

    /// A partition is about to be computed by all nodes together.
    fn begin_partition(&self) -> Option<PendingPartition> {
        Replica::of(&self.state).map(Replica::begin_partition)
    }

    /// Where the values of a field are: the whole region, or parts of it, one a node.
    fn parts<F, T, const D: usize>(&self, region: &Region<F, D>, field: Field<F, T>) -> Result<Target> {
        match Replica::of(&self.state) {
            None => Ok(region.logical().clone().into()),
            Some(replica) => {
                // What is looked at instead may not be a part of it, and there still.
                region.logical().check_alive(&*self.state)?;
                Ok(replica.where_it_is(region.logical(), field.id())?.into())
            }
        }
    }

    /// The pieces of a partition, as far as they are in what this node looks at.
    fn pieces_within<F, const D: usize>(&self, parts: &Target, pieces: &Partition<F, D>) -> Result<Vec<IndexSpace<D>>> {
        match (Replica::of(&self.state), parts) {
            (Some(replica), Target::Partition(parts, _)) if is_distributed(pieces) => {
                replica.pieces_within(parts, pieces.logical().partitioning()).map(typed)
            }
            _ => Ok(pieces.pieces().cloned().collect()),
        }
    }

    /// Launches a task that runs a function on the values of a field: where these are. It is given the values, and the points of a part. What this node has found of each piece.
    fn look<F, T: FieldValue, const S: usize, A: Into<AnySpace>>(
        &self,
        parts: &Target,
        field: Field<F, T>,
        compute: impl Fn(&Column<'_, T, S>, &IndexSpace<S>) -> Result<Vec<A>> + Send + Sync + 'static,
    ) -> Looking {
        let (column, found) = (field.id(), Arc::new(Mutex::new(Vec::new())));
        let finds = Arc::clone(&found);
        let body = move |call: &LeafCall<'_>| -> Result<Value> {
            let values = call.read::<T, S>(0, column)?;
            let part = values.space().clone();
            let pieces = compute(&Column(values), &part)?;
            *finds.lock() = pieces.into_iter().map(Into::into).collect();
            Ok(Value::new(()))
        };
        let options = TaskOptions::default();
        let task = TaskDefinition::new("partition").leaf(options, body).dealt_in_blocks();
        let reads = Requirement::new(parts.clone(), FieldMask::of(column), Privilege::Read);
        let launcher = TaskLauncher::new(&Arc::new(task)).requirement(reads);
        let launched = match parts {
            Target::Region(..) => Launched::Once(self.launch(launcher.typed::<()>())),
            Target::Partition(parts, _) => {
                Launched::OnNodes(self.index_launch(parts.partitioning().colors(), launcher.typed::<()>()))
            }
        };
        Looking { launched, found }
    }

    /// The partition of computed pieces: of this node alone, or of all together.
    async fn found<F, const D: usize>(
        &self,
        pending: Option<PendingPartition>,
        region: &Region<F, D>,
        colors: Domain,
        pieces: Vec<AnySpace>,
    ) -> Result<Partition<F, D>> {
        let (Some(replica), Some(pending)) = (Replica::of(&self.state), pending) else {
            return region.partition_erased(colors, &pieces);
        };
        let of = (region.logical().space(), colors.rect());
        let partitioning = replica.distribute(pending, of, &pieces).await?;
        Ok(Partition::from_logical(region.logical().partition(&partitioning)?))
    }
}

/// A task that looks at values has its place in the program.
struct Looking {
    launched: Launched,
    found: Arc<Mutex<Vec<AnySpace>>>,
}

enum Launched {
    Once(crate::Future<()>),
    /// Failures anywhere are sent to all nodes.
    OnNodes(FutureMap<()>),
}

impl Looking {
    /// What this node has found of each piece.
    async fn wait(self) -> Result<Vec<AnySpace>> {
        match self.launched {
            Launched::Once(future) => future.await?,
            Launched::OnNodes(all) => all.await?,
        }
        Ok(std::mem::take(&mut *self.found.lock()))
    }
}

/// Whether the pieces of a partition are not all here.
fn is_distributed<F, const D: usize>(partition: &Partition<F, D>) -> bool {
    partition.logical().partitioning().piece_source().is_some()
}

fn typed<const D: usize>(spaces: Vec<AnySpace>) -> Vec<IndexSpace<D>> {
    let typed = |space: &AnySpace| space.typed().expect("the pieces have their parent's dimension").clone();
    spaces.iter().map(typed).collect()
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

/// What each of some points points to.
struct Kept<P, const S: usize>(FxHashMap<Point<S>, P>);

impl<P: Copy, const S: usize> FieldRead<P, S> for Kept<P, S> {
    fn read(&self, at: Point<S>) -> P {
        self.0[&at]
    }
}

/// What a field names of another space: a point, or a rectangle of points.
trait Named<const T: usize>: Copy + Send + Sync + 'static {
    /// For each of some sets, what its points name of the target.
    fn image<const S: usize>(
        sources: &[IndexSpace<S>],
        field: &impl FieldRead<Self, S>,
        target: &IndexSpace<T>,
    ) -> Vec<IndexSpace<T>>;

    /// For each of some sets, which points of the source name something in it.
    fn preimage<const S: usize>(
        targets: &[IndexSpace<T>],
        field: &impl FieldRead<Self, S>,
        source: &IndexSpace<S>,
    ) -> Vec<IndexSpace<S>>;
}

impl<const T: usize> Named<T> for Point<T> {
    fn image<const S: usize>(
        sources: &[IndexSpace<S>],
        field: &impl FieldRead<Self, S>,
        target: &IndexSpace<T>,
    ) -> Vec<IndexSpace<T>> {
        partition::image(sources, field, target)
    }

    fn preimage<const S: usize>(
        targets: &[IndexSpace<T>],
        field: &impl FieldRead<Self, S>,
        source: &IndexSpace<S>,
    ) -> Vec<IndexSpace<S>> {
        partition::preimage(targets, field, source)
    }
}

impl<const T: usize> Named<T> for Rect<T> {
    fn image<const S: usize>(
        sources: &[IndexSpace<S>],
        field: &impl FieldRead<Self, S>,
        target: &IndexSpace<T>,
    ) -> Vec<IndexSpace<T>> {
        partition::image_rects(sources, field, target)
    }

    fn preimage<const S: usize>(
        targets: &[IndexSpace<T>],
        field: &impl FieldRead<Self, S>,
        source: &IndexSpace<S>,
    ) -> Vec<IndexSpace<S>> {
        partition::preimage_rects(targets, field, source)
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
