//! Loops over the coordinates of a bitmap level whose bits are set.

use super::leaf::{Lowering, kind};
use super::storage::{Levels, Storage, StoragePlace, StoredLevel};
use super::support::GivenAccesses;
use crate::concrete::{Loop, StatementNode};
use crate::loops::{LoopKind, Statement as Step};

/// How many bits a word has.
const BITS: i64 = 64;

impl Lowering<'_> {
    /// The loop from one set bit of an access to the next, if an iteration has no effect where none is set: word by
    /// word, as the bits of several positions above may share one. None if no access of `visits` has such a level of
    /// the loop's variable next, or if iterations run at the same time.
    pub(super) fn over_bits(&mut self, outer: &Loop, body: &StatementNode, visits: &[usize]) -> Option<Step> {
        if self.is_parallel(outer, body) && kind(outer) != LoopKind::Serial {
            return None;
        }
        let (visit, level, bits, above, extent) = visits.iter().find_map(|&visit| {
            let StoragePlace::Level(level, above) = &self.places[visit] else { return None };
            // Workspaces are made inside of loops.
            let stored = self.storage.get(self.visits[visit].access.tensor.name());
            let Some(Storage::Levels(Levels { levels, .. })) = stored else { return None };
            let StoredLevel::Bits { bits, extent, .. } = levels.get(*level)? else { return None };
            let is_own = *self.visits[visit].variable(*level) == outer.variable;
            let has_effect = || self.effect(body, &mut GivenAccesses::iterated(&[visit])).holds(&[]);
            (is_own && !has_effect()).then(|| (visit, *level, bits.clone(), above.clone(), extent.clone()))
        })?;
        if self.is_unset && self.changes_result(body) {
            self.needs_initial = true;
        }
        let [begin, end, word, set, bit, position] =
            ["begin", "end", "word", "set", "bit", "p"].map(|name| self.names.index(name));
        let at = self.names.index(outer.variable.name());
        let high = self.high(&outer.variable);
        let first = word.value() * BITS;
        let low = (begin.value() - first.clone()).maximum(0);
        let stop = (end.value() - first.clone()).minimum(BITS);
        let (there, element) = self.with_element(visit, level, body, &position);
        let step = self.with_place(visit, there, |lowering| lowering.iteration(outer, body, at.value(), false));
        let inside = [Step::bind(&position, first + bit.value()), Step::bind(&at, position.value() - begin.value())];
        let next = Step::set(&bit, set.value().next_bit(bit.value() + 1));
        let inside = inside.into_iter().chain(element).chain([step, next]).collect();
        let of_word = Step::Sequence(vec![
            Step::bind(&set, bits.load([word.value()])),
            Step::bind_mutable(&bit, set.value().next_bit(low)),
            Step::repeat_while(bit.value().less(stop), Step::Sequence(inside)),
        ]);
        let until = (end.value() + (BITS - 1)) / BITS;
        Some(Step::Sequence(vec![
            Step::bind(&begin, above * extent.value()),
            Step::bind(&end, begin.value() + high),
            Step::for_each(&word, begin.value() / BITS, until, of_word),
        ]))
    }
}
