//! Memory of the program's that is the place of values.

use super::{Cell, Context, Health, Results, Trouble, World, known};
use crate::program::{Backing, Column, FieldNumber, FieldsName, FutureName, RegionName, Right};
use crate::value::{Kind, Word, mix};

/// The value of a vector at a row-major number.
#[must_use]
pub fn attached_word(kind: Kind, seed: Word, number: usize) -> Word {
    kind.make(mix(seed, number as Word))
}

/// The digest of memory that comes back.
#[must_use]
pub fn memory_digest(words: impl Iterator<Item = Word>) -> Word {
    words.fold(11, mix)
}

/// Memory that a task has attached.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Its name.
    pub name: FutureName,
    /// The column to which it is attached.
    pub column: Column,
    /// The seed of its first values.
    pub seed: Word,
    /// The kind of the memory.
    pub backing: Backing,
}

impl World {
    pub(super) fn attach(&mut self, context: &mut Context, attached: Attached) -> Result<(), Trouble> {
        let Attached { column, seed, .. } = attached;
        self.check_one(context, column, Right::Discard)?;
        let points = std::sync::Arc::clone(self.points(column.place.node)?);
        if !is_rectangle(&points) {
            return Err(Trouble::Refused("the points are scattered".into()));
        }
        for other in &context.attached {
            let is_same = other.column.place.region == column.place.region && other.column.field == column.field;
            if is_same && !self.points(other.column.place.node)?.is_disjoint(&points) {
                return Err(Trouble::Refused("other memory is attached".into()));
            }
        }
        let kind = self.kind(column.place.region, column.field)?;
        if matches!(attached.backing, Backing::Array { .. }) && !kind.is_number() {
            return Err(Trouble::Refused("NumPy has no such numbers".into()));
        }
        let words = points.iter().enumerate().map(|(number, &point)| (point, attached_word(kind, seed, number)));
        let cells = words.map(|(point, word)| (point, Cell { word: Some(word), health: Health::Sound }));
        let cells: Vec<_> = cells.collect();
        self.cells_mut(column.place.region, column.field)?.extend(cells);
        context.attached.push(attached);
        Ok(())
    }

    pub(super) fn detach(
        &mut self,
        context: &mut Context,
        name: FutureName,
        handle: FutureName,
        flush: bool,
    ) -> Result<(), Trouble> {
        let position = context.attached.iter().position(|attached| attached.name == handle);
        let Attached { column, seed, backing, .. } = context.attached.remove(*known(position.as_ref(), &handle)?);
        let read_only = backing == Backing::ReadOnly;
        let flush = flush && !read_only;
        self.check_one(context, column, if flush { Right::Write } else { Right::Discard })?;
        let kind = self.kind(column.place.region, column.field)?;
        let (mut health, words) = (context.start, self.words(column)?);
        let digest = match (flush, read_only) {
            (true, _) => {
                let mut seen = Vec::with_capacity(words.len());
                for (_, cell) in &words {
                    health = health.max(cell.health);
                    let unwritten =
                        || Trouble::Meaningless("memory comes back with values that were never written".into());
                    seen.push(cell.word.ok_or_else(unwritten)?);
                }
                memory_digest(seen.into_iter())
            }
            (false, true) => memory_digest((0..words.len()).map(|number| attached_word(kind, seed, number))),
            (false, false) => memory_digest(std::iter::once(words.len() as Word)),
        };
        let zeros = words.into_iter().map(|(point, _)| (point, Cell { word: Some(0), health: Health::Sound }));
        let zeros: Vec<_> = zeros.collect();
        self.cells_mut(column.place.region, column.field)?.extend(zeros);
        context.health = context.health.max(health);
        self.futures.insert(name, Results { domain: None, values: vec![(digest, health)] });
        Ok(())
    }

    /// Refuses to destroy a region to which the task has attached memory.
    pub(super) fn check_unattached(&self, context: &Context, region: RegionName) -> Result<(), Trouble> {
        match context.attached.iter().any(|attached| attached.column.place.region == region) {
            true => Err(Trouble::Refused("memory is attached to the region".into())),
            false => Ok(()),
        }
    }

    /// Refuses to free a field to which the task has attached memory.
    pub(super) fn check_field_unattached(
        &self,
        context: &Context,
        fields: FieldsName,
        field: FieldNumber,
    ) -> Result<(), Trouble> {
        let is_it = |region: RegionName| self.regions.get(&region).is_some_and(|region| region.fields == fields);
        let mut columns = context.attached.iter().map(|attached| attached.column);
        match columns.any(|column| column.field == field && is_it(column.place.region)) {
            true => Err(Trouble::Refused("memory is attached to the field".into())),
            false => Ok(()),
        }
    }
}

/// Whether points are all those of a rectangle.
fn is_rectangle(points: &super::Points) -> bool {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return true };
    let sides = (0..first.dim()).map(|dimension| {
        let coordinates = || points.iter().map(|point| point.coords()[dimension]);
        let low = coordinates().min().unwrap_or(first.coords()[dimension]);
        let high = coordinates().max().unwrap_or(last.coords()[dimension]);
        (high - low + 1) as u128
    });
    sides.product::<u128>() == points.len() as u128
}
