//! Copies, gathers and scatters.

use maniple::{Context, Error, Field, Future, Ptr};

use super::{Run, Stop, with_dimension};
use crate::program::{Action, Column, Indirect};
use crate::value::{Cells, Stored};
use crate::with_kind;

impl Run {
    /// Launches a copy.
    pub(super) fn bulk(&self, context: &Context, action: &Action) -> Result<Future<()>, Stop> {
        match action {
            Action::Copy(_, from, to) => {
                let dim = self.dimension(to.place.node)?;
                with_kind!(self.kind(*from)?, T => with_dimension!(dim, D => {
                    let (from, to) = (self.column::<T, D>(*from)?, self.column::<T, D>(*to)?);
                    Ok(context.copy((&from.0, from.1), (&to.0, to.1)))
                }))
            }
            Action::Gather(_, Indirect { from, pointers, to }) => {
                let dim = self.dimension(to.place.node)?;
                with_kind!(self.kind(*from)?, T => with_dimension!(dim, D => {
                    let (from, to) = (self.column::<T, 1>(*from)?, self.column::<T, D>(*to)?);
                    let pointers = self.column::<Ptr<Cells>, D>(*pointers)?;
                    Ok(context.gather((&from.0, from.1), (&pointers.0, pointers.1), (&to.0, to.1)))
                }))
            }
            Action::Scatter(_, Indirect { from, pointers, to }) => {
                let dim = self.dimension(from.place.node)?;
                with_kind!(self.kind(*from)?, T => with_dimension!(dim, D => {
                    let (from, to) = (self.column::<T, D>(*from)?, self.column::<T, 1>(*to)?);
                    let pointers = self.column::<Ptr<Cells>, D>(*pointers)?;
                    Ok(context.scatter((&from.0, from.1), (&pointers.0, pointers.1), (&to.0, to.1)))
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
