//! Loops of threads in parts that have the same work, as far as one operand tells.
//!
//! Rows of a compressed level below a dense one have their sizes in its positions: each part is given rows with about
//! as many elements as the others have (as the row decomposition of Yadav et al., *SpDISTAL*, SC 2022, with weights).

use super::leaf::Lowering;
use super::storage::{Levels, Storage, StoragePlace, StoredLevel};
use crate::concrete::Loop;
use crate::element::ElementType::I64;
use crate::loops::{Buffer, Expression, Statement as Step, Variable};

impl Lowering<'_> {
    /// The offsets at which segments of the rows of a loop begin, in the first operand that has the rows compressed
    /// below its outermost level.
    pub(super) fn weights(&self, outer: &Loop) -> Option<Buffer> {
        self.visits.iter().zip(&self.places).find_map(|(visit, place)| {
            let Some(Storage::Levels(Levels { levels, .. })) = self.storage.get(visit.access.tensor.name()) else {
                return None;
            };
            match &levels[..] {
                [StoredLevel::Dense(..), StoredLevel::Compressed { pos, ranges: false, .. }, ..]
                    if *visit.variable(0) == outer.variable && matches!(place, StoragePlace::Level(0, _)) =>
                {
                    Some(pos.clone())
                }
                _ => None,
            }
        })
    }

    /// The first row of a part and that after its last one, of as many parts with about the same number of elements;
    /// and the steps that find them.
    pub(super) fn balanced(
        &mut self,
        positions: &Buffer,
        low: &Expression,
        high: &Expression,
        part: &Variable,
        parts: &Expression,
    ) -> (Vec<Step>, Expression, Expression) {
        let mut steps = Vec::new();
        let at = |row: Expression| positions.load([row]).cast(I64);
        let (begin, end) = (self.names.index("begin"), self.names.index("end"));
        steps.push(Step::bind(&begin, at(low.clone())));
        steps.push(Step::bind(&end, at(high.clone())));
        let mut bound = |part: Expression| {
            let [first, last, middle, target] =
                ["first", "last", "middle", "target"].map(|name| self.names.index(name));
            let share = ((end.value() - begin.value()) * part.clone()).floor_divide(parts.clone());
            let halve = Step::Sequence(vec![
                Step::bind(&middle, first.value() + (last.value() - first.value()).floor_divide(2)),
                Step::choose(
                    at(middle.value()).less(target.value()),
                    Step::set(&first, middle.value() + 1),
                    Step::set(&last, middle.value()),
                ),
            ]);
            steps.push(Step::bind(&target, begin.value() + share));
            steps.push(Step::bind_mutable(&first, low.clone()));
            steps.push(Step::bind_mutable(&last, high.clone()));
            steps.push(Step::repeat_while(first.value().less(last.value()), halve));
            // Rows without elements at the end belong to the last part.
            part.equal(parts.clone()).select(high.clone(), first.value())
        };
        let (first, last) = (bound(part.value()), bound(part.value() + 1));
        (steps, first, last)
    }
}
