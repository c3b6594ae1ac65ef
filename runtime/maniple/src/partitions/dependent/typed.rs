//! Partitions of regions that follow from fields whose types the program names.

use maniple_region::{Field, FieldValue, Ptr};
use maniple_space::{AnySpace, IndexSpace, Point, Rect};

use super::computation::Computation;
use super::integers::Integers;
use super::values::DependentValues;
use crate::context::Context;
use crate::data::regions::{Domain, Partition, Region};
use crate::support::error::Result;

impl Context {
    /// Partitions a region by a field that holds each point's color; points with a color outside of `colors` are in no
    /// piece.
    ///
    /// # Errors
    /// The errors of a launch that reads the field, and of [`Region::partition_into`].
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
        let numbers = Integers::of(field.id(), move |color: T| color.number(colors));
        self.typed(self.begin_by_number(region.logical(), DependentValues::points(numbers), colors))
    }

    /// Partitions a region by the pointers into it: for each piece of `sources`, the points that its pointers name.
    /// Pointers that point outside of `targets` are ignored.
    ///
    /// # Errors
    /// The errors of a launch that reads the field, and of [`Region::partition_into`].
    pub fn image<F, G: 'static, const S: usize, const T: usize>(
        &self,
        targets: &Region<G, T>,
        sources: &Partition<F, S>,
        field: Field<F, Ptr<G, T>>,
    ) -> impl Future<Output = Result<Partition<G, T>>> {
        let pointers = Integers::of(field.id(), Ptr::<G, T>::point);
        self.typed(self.begin_image(targets.logical(), sources.logical(), DependentValues::points(pointers)))
    }

    /// Partitions a region by the numbers of its rows: for each piece of `sources`, the rows that its values are the
    /// numbers of. Numbers of no row are ignored.
    ///
    /// # Errors
    /// The errors of a launch that reads the field, and of [`Region::partition_into`].
    pub fn image_of_numbers<F, G, V: FieldValue + Into<i64>, const S: usize>(
        &self,
        targets: &Region<G, 1>,
        sources: &Partition<F, S>,
        field: Field<F, V>,
    ) -> impl Future<Output = Result<Partition<G, 1>>> {
        let numbers = Integers::of(field.id(), V::into);
        self.typed(self.begin_image(targets.logical(), sources.logical(), DependentValues::points(numbers)))
    }

    /// Partitions a region by what points into it, through a field of rectangles.
    ///
    /// # Errors
    /// The errors of a launch that reads the field, and of [`Region::partition_into`].
    pub fn image_of_rects<F, G, const S: usize, const T: usize>(
        &self,
        targets: &Region<G, T>,
        sources: &Partition<F, S>,
        field: Field<F, Rect<T>>,
    ) -> impl Future<Output = Result<Partition<G, T>>> {
        let rects = Integers::of(field.id(), |rect: Rect<T>| rect);
        self.typed(self.begin_image(targets.logical(), sources.logical(), DependentValues::rects(rects)))
    }

    /// Partitions a region by offsets into it, as sparse matrices have them: point `p` of the sources holds where what
    /// belongs to it begins, and point `p + 1` where it ends. For each piece of `sources`, the points between what the
    /// first and the last point of each of its intervals hold: a piece has the point that ends it too. For pieces that
    /// do not, and offsets that may fall, see [`Relation::Offsets`](crate::Relation::Offsets).
    ///
    /// Offsets must not fall. A task for each piece looks at the ends of its intervals alone.
    ///
    /// # Errors
    /// The errors of a launch that reads the field, and of [`Region::partition_into`].
    pub fn image_of_offsets<F, G, V: FieldValue + Into<i64>>(
        &self,
        targets: &Region<G, 1>,
        sources: &Partition<F, 1>,
        field: Field<F, V>,
    ) -> impl Future<Output = Result<Partition<G, 1>>> {
        let (pending, space) = (self.begin_partition(), targets.space().clone());
        let offsets = DependentValues::points(Integers::of(field.id(), V::into));
        let nothing = AnySpace::from(IndexSpace::<1>::empty());
        let looking = self.look_at_each(sources.logical(), offsets, &nothing, move |offsets| {
            let sources: &IndexSpace<1> = offsets.space().typed().expect("the sources have one dimension");
            let at = |point| offsets.read(Rect::from_point(point));
            let between = |rect: &Rect<1>| Rect::from(at(rect.lo)..at(rect.hi));
            IndexSpace::from_rects(sources.rects().iter().map(between)).intersection(&space).into()
        });
        let (region, colors) = (targets.logical().clone(), sources.colors());
        self.typed(Ok(Computation { pending, looking, afar: None, region, colors }))
    }

    /// Partitions a region by where it points to: for each piece of `targets`, the points whose pointers point into it.
    ///
    /// # Errors
    /// The errors of a launch that reads the field, and of [`Region::partition_into`].
    pub fn preimage<F, G: 'static, const S: usize, const T: usize>(
        &self,
        sources: &Region<F, S>,
        field: Field<F, Ptr<G, T>>,
        targets: &Partition<G, T>,
    ) -> impl Future<Output = Result<Partition<F, S>>> {
        let pointers = Integers::of(field.id(), Ptr::<G, T>::point);
        self.typed(self.begin_preimage(sources.logical(), DependentValues::points(pointers), targets.logical()))
    }

    /// Partitions a region by where it points to, through a field of rectangles: a point is in a piece if its rectangle
    /// touches the target's.
    ///
    /// # Errors
    /// The errors of a launch that reads the field, and of [`Region::partition_into`].
    pub fn preimage_of_rects<F, G, const S: usize, const T: usize>(
        &self,
        sources: &Region<F, S>,
        field: Field<F, Rect<T>>,
        targets: &Partition<G, T>,
    ) -> impl Future<Output = Result<Partition<F, S>>> {
        let rects = Integers::of(field.id(), |rect: Rect<T>| rect);
        self.typed(self.begin_preimage(sources.logical(), DependentValues::rects(rects), targets.logical()))
    }

    async fn typed<F, const D: usize>(&self, computation: Result<Computation>) -> Result<Partition<F, D>> {
        Ok(Partition::from_logical(self.finish(computation?).await?))
    }
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
