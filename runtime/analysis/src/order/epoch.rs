//! The uses of one node, in two epochs.

use maniple_region::{FieldMask, Privilege};
use smallvec::SmallVec;

use super::{Contributions, OrderedOperation};

/// Operations with one privilege on the same fields of a node's region.
#[derive(Debug)]
struct Class<O> {
    fields: FieldMask,
    privilege: Privilege,
    users: SmallVec<[O; 2]>,
    /// Operations that have been mapped are dropped when there are this many.
    sweep_at: usize,
}

/// The uses between two changes of how a node is used, by what they do: a loop launches many operations of one kind,
/// and a new use does not look at those that it does not interfere with.
#[derive(Debug)]
struct Epoch<O>(SmallVec<[Class<O>; 2]>);

/// The uses of a node: those of the *current* epoch, and those of the *previous* one, all of which every current use of
/// the same field depends on.
#[derive(Debug)]
pub(super) struct Epochs<O> {
    current: Epoch<O>,
    previous: Epoch<O>,
}

impl<O> Default for Epochs<O> {
    fn default() -> Self {
        Self { current: Epoch::default(), previous: Epoch::default() }
    }
}

impl<O> Default for Epoch<O> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<O: OrderedOperation + Clone> Epochs<O> {
    pub(super) fn is_empty(&self) -> bool {
        self.current.0.is_empty() && self.previous.0.is_empty()
    }

    /// Forgets operations that no other needs to wait for.
    pub(super) fn sweep(&mut self) {
        for epoch in [&mut self.current, &mut self.previous] {
            epoch.0.iter_mut().for_each(Class::sweep);
            epoch.0.retain(|class| !class.users.is_empty());
        }
    }

    /// Calls `depend` for every operation that a new use interferes with and that is not implied by others. Returns the
    /// fields on which the new use interferes with *all* current uses, of which there is at least one: if it is
    /// recorded here, they become an epoch.
    #[inline]
    pub(super) fn check(
        &self,
        fields: &FieldMask,
        privilege: Privilege,
        contributions: Contributions,
        depend: &mut impl FnMut(&O),
    ) -> FieldMask {
        // Most nodes on a path have no uses of the fields.
        match self.current.has(fields) || self.previous.has(fields) {
            true => self.check_overlapping(fields, privilege, contributions, depend),
            false => FieldMask::new(),
        }
    }

    fn check_overlapping(
        &self,
        fields: &FieldMask,
        privilege: Privilege,
        contributions: Contributions,
        depend: &mut impl FnMut(&O),
    ) -> FieldMask {
        let (mut dominated, mut shared) = (FieldMask::new(), FieldMask::new());
        for class in self.current.0.iter().filter(|class| class.fields.overlaps(fields)) {
            if contributions.conflict(class.privilege, privilege) {
                dominated = dominated.union(&class.fields);
                class.users.iter().for_each(&mut *depend);
            } else {
                shared = shared.union(&class.fields);
            }
        }
        dominated = dominated.intersection(fields).difference(&shared);
        if dominated != *fields {
            self.previous.depend_on(&fields.difference(&dominated), privilege, contributions, depend);
        }
        dominated
    }

    /// Records a use. On `dominated` fields it starts a new epoch.
    pub(super) fn record(&mut self, operation: &O, fields: &FieldMask, privilege: Privilege, dominated: &FieldMask) {
        if !dominated.is_empty() {
            self.previous.take_out(dominated, |_| ());
            self.current.take_out(dominated, |class| self.previous.add(class));
        }
        match self.current.class(fields, privilege) {
            Some(known) => known.add(operation.clone()),
            None => {
                let users = SmallVec::from_iter([operation.clone()]);
                self.current.0.push(Class { fields: fields.clone(), privilege, users, sweep_at: MANY_USERS });
            }
        }
    }

    /// Removes all uses of `fields`, calling `depend` for each.
    pub(super) fn take_over(&mut self, fields: &FieldMask, depend: &mut impl FnMut(&O)) {
        for epoch in [&mut self.current, &mut self.previous] {
            epoch.take_out(fields, |class| class.users.iter().for_each(&mut *depend));
        }
    }
}

impl<O: OrderedOperation + Clone> Epoch<O> {
    #[inline]
    fn has(&self, fields: &FieldMask) -> bool {
        self.0.iter().any(|class| class.fields.overlaps(fields))
    }

    fn class(&mut self, fields: &FieldMask, privilege: Privilege) -> Option<&mut Class<O>> {
        self.0.iter_mut().find(|class| class.fields == *fields && class.privilege == privilege)
    }

    fn add(&mut self, class: Class<O>) {
        match self.class(&class.fields, class.privilege) {
            Some(known) => class.users.into_iter().for_each(|user| known.add(user)),
            None => self.0.push(class),
        }
    }

    fn depend_on(
        &self,
        fields: &FieldMask,
        privilege: Privilege,
        contributions: Contributions,
        depend: &mut impl FnMut(&O),
    ) {
        let conflicts =
            |class: &&Class<O>| contributions.conflict(class.privilege, privilege) && class.fields.overlaps(fields);
        for class in self.0.iter().filter(conflicts) {
            class.users.iter().for_each(&mut *depend);
        }
    }

    /// Takes fields away from all uses; gives what was taken to `taken`.
    fn take_out(&mut self, fields: &FieldMask, mut taken: impl FnMut(Class<O>)) {
        let mut narrowed: SmallVec<[Class<O>; 1]> = SmallVec::new();
        let mut index = 0;
        while index < self.0.len() {
            if !self.0[index].fields.overlaps(fields) {
                index += 1;
                continue;
            }
            let mut class = self.0.swap_remove(index);
            let rest = class.fields.difference(fields);
            if !rest.is_empty() {
                narrowed.push(Class { fields: rest, users: class.users.clone(), ..class });
                class.fields = class.fields.intersection(fields);
            }
            taken(class);
        }
        narrowed.into_iter().for_each(|class| self.add(class));
    }
}

/// So few operations are not swept.
const MANY_USERS: usize = 8;

impl<O: OrderedOperation + Clone> Class<O> {
    fn add(&mut self, user: O) {
        if self.users.len() >= self.sweep_at {
            self.sweep();
            self.sweep_at = MANY_USERS.max(2 * self.users.len());
        }
        self.users.push(user);
    }

    /// Forgets operations that no other needs to wait for.
    fn sweep(&mut self) {
        self.users.retain(|user| !user.is_mapped());
    }
}
