//! What must be done before an operation can use its instances.

use smallvec::SmallVec;

use crate::physical::movement::Preconditions;

/// What comes before the use of the data of one point of an operation.
pub(crate) struct Preparation {
    /// What must have ended: for each requirement, or for all of them together.
    pub(crate) after: SmallVec<[Preconditions; 1]>,
    /// Buffers that a leaf task empties itself when it begins, which is cheaper than an operation before it; by their selection's place and their
    /// position there. Nothing if others have to do it.
    pub(crate) empties: Option<Empties>,
}

/// See [`Preparation::empties`].
pub(crate) type Empties = SmallVec<[((usize, usize), usize); 1]>;

impl Preparation {
    /// Of an operation that uses no data before all of it is there.
    pub(crate) fn together() -> Self {
        Self { after: SmallVec::from_iter([Preconditions::default()]), empties: None }
    }

    /// Of one that may use some before the rest is there.
    pub(crate) fn each(requirements: usize) -> Self {
        Self { after: (0..requirements).map(|_| Preconditions::default()).collect(), empties: None }
    }

    /// Of one that looks after its buffers.
    pub(crate) fn emptying() -> Self {
        Self { empties: Some(Empties::new()), ..Self::together() }
    }

    /// The preconditions of a requirement.
    pub(crate) fn of(&mut self, requirement: usize) -> &mut Preconditions {
        let last = self.after.len() - 1;
        &mut self.after[last.min(requirement)]
    }

    /// Buffers of a selection need not be emptied after all.
    pub(crate) fn forget(&mut self, selection: (usize, usize)) {
        if let Some(empties) = &mut self.empties {
            empties.retain(|(place, _)| *place != selection);
        }
    }
}
