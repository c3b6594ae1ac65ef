//! Copies, gathers and scatters.

use maniple::{Context, Error, Field, Future, Ptr, ReductionOperator};

use super::{Run, Stop, with_dimension};
use crate::program::{Action, Column, FieldNumber, Indirect};
use crate::value::{Cells, Stored};
use crate::{with_kind, with_operator};

impl Run {
    /// Launches a copy.
    pub(super) fn bulk(&self, context: &Context, action: &Action) -> Result<Future<()>, Stop> {
        match action {
            Action::Copy(_, from, to) => {
                let dim = self.dimension(to.place.node)?;
                with_kind!(self.kind(*from)?, T => with_dimension!(dim, D => {
                    let (from, to) = (self.column::<T, D>(*from)?, self.column::<T, D>(*to)?);
                    Ok(context.copy(from.0.field(from.1), to.0.field(to.1)))
                }))
            }
            Action::CopyFields(_, from, to, pairs) => {
                let dim = self.dimension(to.node)?;
                let pair = |&(source, destination): &(FieldNumber, FieldNumber)| {
                    Ok((self.field(from.region, source)?, self.field(to.region, destination)?))
                };
                let pairs = pairs.iter().map(pair).collect::<Result<Vec<_>, Stop>>()?;
                with_dimension!(dim, D => {
                    let (from, to) = (self.region::<D>(*from)?, self.region::<D>(*to)?);
                    Ok(context.copy_fields(&from, &to, &pairs))
                })
            }
            Action::Contribute(_, operator, from, to) => {
                let dim = self.dimension(to.place.node)?;
                with_operator!(*operator, self.kind(*to)?, Op, T => with_dimension!(dim, D => {
                    let from = self.column::<<Op as ReductionOperator<T>>::Rhs, D>(*from)?;
                    let to = self.column::<T, D>(*to)?;
                    Ok(context.contribute(Op::default(), from.0.field(from.1), to.0.field(to.1)))
                }), else Err(Stop(Error::application("an operator that is not known on the field"))))
            }
            Action::Gather(_, Indirect { from, pointers, to }) => {
                let dim = self.dimension(to.place.node)?;
                with_kind!(self.kind(*from)?, T => with_dimension!(dim, D => {
                    let (from, to) = (self.column::<T, 1>(*from)?, self.column::<T, D>(*to)?);
                    let pointers = self.column::<Ptr<Cells>, D>(*pointers)?;
                    Ok(context.gather(from.0.field(from.1), pointers.0.field(pointers.1), to.0.field(to.1)))
                }))
            }
            Action::Scatter(_, Indirect { from, pointers, to }) => {
                let dim = self.dimension(from.place.node)?;
                with_kind!(self.kind(*from)?, T => with_dimension!(dim, D => {
                    let (from, to) = (self.column::<T, D>(*from)?, self.column::<T, 1>(*to)?);
                    let pointers = self.column::<Ptr<Cells>, D>(*pointers)?;
                    Ok(context.scatter(from.0.field(from.1), pointers.0.field(pointers.1), to.0.field(to.1)))
                }))
            }
            other => Err(Stop(Error::application(format!("{other:?} is no copy")))),
        }
    }

    #[allow(clippy::type_complexity, reason = "a pair that is taken apart at once")]
    pub(super) fn column<T: Stored, const D: usize>(
        &self,
        column: Column,
    ) -> Result<(maniple::Region<Cells, D>, Field<Cells, T>), Stop> {
        let Column { place, field } = column;
        Ok((self.region(place)?, Field::new(self.field(place.region, field)?)))
    }
}
