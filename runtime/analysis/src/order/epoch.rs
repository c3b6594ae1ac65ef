//! The uses of one node, in two epochs.

use maniple_region::{FieldMask, Privilege};
use smallvec::SmallVec;

use super::Operation;

/// Operations with one privilege on the same fields of a node's region.
#[derive(Debug)]
struct Class<O> {
    fields: FieldMask,
    privilege: Privilege,
    users: Vec<O>,
    /// Operations that have been mapped are dropped when there are this many.
    sweep_at: usize,
}

/// The uses between two changes of how a node is used, by what they do: a loop launches many operations of one kind, and a new use does not look at
/// those that it does not interfere with.
#[derive(Debug)]
struct Epoch<O>(SmallVec<[Class<O>; 2]>);

/// The uses of a node: those of the *current* epoch, and those of the *previous* one, all of which every current use of the same field depends on.
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

impl<O: Operation + Clone> Epochs<O> {
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

    /// Calls `depend` for every operation that a new use interferes with and that is not implied by others. Returns the fields on which the new use interferes
    /// with *all* current uses, of which there is at least one: if it is recorded here, they become an epoch.
    pub(super) fn check(&self, fields: &FieldMask, privilege: Privilege, depend: &mut impl FnMut(&O)) -> FieldMask {
        let mut dominated = FieldMask::new();
        for class in &self.current.0 {
            if class.privilege.interferes_with(privilege) {
                dominated = dominated.union(&class.fields.intersection(fields));
            }
        }
        for class in &self.current.0 {
            if !class.privilege.interferes_with(privilege) {
                dominated = dominated.difference(&class.fields);
            }
        }
        self.current.depend_on(fields, privilege, depend);
        self.previous.depend_on(&fields.difference(&dominated), privilege, depend);
        dominated
    }

    /// Records a use. On `dominated` fields it starts a new epoch.
    pub(super) fn record(&mut self, operation: &O, fields: &FieldMask, privilege: Privilege, dominated: &FieldMask) {
        if !dominated.is_empty() {
            self.previous.take_out(dominated, |_, _, _| ());
            let previous = &mut self.previous;
            self.current.take_out(dominated, |fields, privilege, users| previous.add(fields, privilege, users));
        }
        self.current.add(fields.clone(), privilege, std::slice::from_ref(operation));
    }

    /// Removes all uses of `fields`, calling `depend` for each.
    pub(super) fn take_over(&mut self, fields: &FieldMask, depend: &mut impl FnMut(&O)) {
        for epoch in [&mut self.current, &mut self.previous] {
            epoch.take_out(fields, |_, _, users| users.iter().for_each(&mut *depend));
        }
    }
}

impl<O: Operation + Clone> Epoch<O> {
    fn add(&mut self, fields: FieldMask, privilege: Privilege, users: &[O]) {
        match self.0.iter_mut().find(|class| class.privilege == privilege && class.fields == fields) {
            Some(class) => class.add(users),
            None => self.0.push(Class { fields, privilege, users: users.to_vec(), sweep_at: MANY_USERS }),
        }
    }

    fn depend_on(&self, fields: &FieldMask, privilege: Privilege, depend: &mut impl FnMut(&O)) {
        let interferes =
            |class: &&Class<O>| class.privilege.interferes_with(privilege) && class.fields.overlaps(fields);
        for class in self.0.iter().filter(interferes) {
            class.users.iter().for_each(&mut *depend);
        }
    }

    /// Takes fields away from all uses; gives what was taken to `taken`.
    fn take_out(&mut self, fields: &FieldMask, mut taken: impl FnMut(FieldMask, Privilege, &[O])) {
        let mut narrowed: SmallVec<[Class<O>; 1]> = SmallVec::new();
        self.0.retain(|class| {
            if !class.fields.overlaps(fields) {
                return true;
            }
            taken(class.fields.intersection(fields), class.privilege, &class.users);
            let rest = class.fields.difference(fields);
            if !rest.is_empty() {
                narrowed.push(Class { fields: rest, users: std::mem::take(&mut class.users), ..*class });
            }
            false
        });
        for class in narrowed {
            self.add(class.fields, class.privilege, &class.users);
        }
    }
}

/// So few operations are not swept.
const MANY_USERS: usize = 8;

impl<O: Operation + Clone> Class<O> {
    fn add(&mut self, users: &[O]) {
        if self.users.len() >= self.sweep_at {
            self.sweep();
            self.sweep_at = MANY_USERS.max(2 * self.users.len());
        }
        self.users.extend_from_slice(users);
    }

    /// Forgets operations that no other needs to wait for.
    fn sweep(&mut self) {
        self.users.retain(|user| !user.is_mapped());
    }
}
