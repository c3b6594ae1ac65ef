//! Which fields a call has made accessors for that are the only way to their values.

use std::cell::{Cell, RefCell};

use maniple_region::FieldId;

/// The fields of a call's requirements that are taken. Most calls have few, with small numbers: these are bits.
#[derive(Default)]
pub(crate) struct Taken {
    /// For each of the first [`ROWS`] requirements, the fields below [`COLUMNS`].
    bits: Cell<u64>,
    others: RefCell<Vec<(usize, FieldId)>>,
}

const ROWS: usize = 8;
const COLUMNS: usize = 8;

impl Taken {
    /// Takes a field of a requirement. False if it was taken before.
    #[inline]
    pub(crate) fn take(&self, requirement: usize, field: FieldId) -> bool {
        let column = field.0 as usize;
        if requirement >= ROWS || column >= COLUMNS {
            return self.take_other(requirement, field);
        }
        let (bits, bit) = (self.bits.get(), 1 << (requirement * COLUMNS + column));
        self.bits.set(bits | bit);
        bits & bit == 0
    }

    #[cold]
    fn take_other(&self, requirement: usize, field: FieldId) -> bool {
        let mut others = self.others.borrow_mut();
        let is_free = !others.contains(&(requirement, field));
        if is_free {
            others.push((requirement, field));
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_of_each_requirement_is_taken_once() {
        let taken = Taken::default();
        let fields = || (0..20).flat_map(|requirement| (0..20).map(move |field| (requirement, FieldId(field))));
        assert!(fields().all(|(requirement, field)| taken.take(requirement, field)));
        assert!(fields().all(|(requirement, field)| !taken.take(requirement, field)));
    }
}
