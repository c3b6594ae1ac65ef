//! The users of one node, in two epochs.

use maniple_region::{FieldMask, Privilege};
use smallvec::SmallVec;

use super::LogicalUser;

/// An operation that uses fields of a node's region.
#[derive(Clone, Debug)]
struct User<O> {
    operation: O,
    fields: FieldMask,
    privilege: Privilege,
}

/// Users that came between two changes of how a node is used.
#[derive(Debug)]
struct Epoch<O> {
    users: Vec<User<O>>,
    /// What they do, all together: tells at a glance that a new use interferes with none of them.
    uses: SmallVec<[(Privilege, FieldMask); 2]>,
    /// Users that have been mapped are dropped when there are this many.
    sweep_at: usize,
}

/// Users of a node: of the *current* epoch, and of the *previous* one, all of which every current user on the same field depends on.
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
        Self { users: Vec::new(), uses: SmallVec::new(), sweep_at: 8 }
    }
}

impl<O: LogicalUser> Epochs<O> {
    pub(super) fn is_empty(&self) -> bool {
        self.current.users.is_empty() && self.previous.users.is_empty()
    }

    /// Forgets users that nobody needs to wait for.
    pub(super) fn sweep(&mut self) {
        for epoch in [&mut self.current, &mut self.previous] {
            epoch.users.retain(|user| !user.operation.has_mapped());
        }
    }

    /// Calls `depend` for every user that a new use interferes with and that is not implied by others. Returns the fields on which the new
    /// use interferes with *all* current users, of which there is at least one: if it is recorded here, they make an epoch.
    pub(super) fn check(&self, fields: &FieldMask, privilege: Privilege, depend: &mut impl FnMut(&O)) -> FieldMask {
        let mut dominated = FieldMask::new();
        for (used, common) in &self.current.uses {
            if used.interferes_with(privilege) {
                dominated = dominated.union(&common.intersection(fields));
            }
        }
        for (used, common) in &self.current.uses {
            if !used.interferes_with(privilege) {
                dominated = dominated.difference(common);
            }
        }
        self.current.depend_on(fields, privilege, depend);
        self.previous.depend_on(&fields.difference(&dominated), privilege, depend);
        dominated
    }

    /// Records a use. On `dominated` fields it starts a new epoch.
    pub(super) fn record(&mut self, operation: &O, fields: &FieldMask, privilege: Privilege, dominated: &FieldMask) {
        if !dominated.is_empty() {
            self.previous.take_out(dominated, |_| ());
            let previous = &mut self.previous;
            self.current.take_out(dominated, |user| previous.push(user));
        }
        self.current.push(User { operation: operation.clone(), fields: fields.clone(), privilege });
    }

    /// Removes all users of `fields`, calling `depend` for each.
    pub(super) fn take_over(&mut self, fields: &FieldMask, depend: &mut impl FnMut(&O)) {
        for epoch in [&mut self.current, &mut self.previous] {
            epoch.take_out(fields, |user| depend(&user.operation));
        }
    }
}

impl<O: LogicalUser> Epoch<O> {
    fn push(&mut self, user: User<O>) {
        if self.users.len() >= self.sweep_at {
            self.users.retain(|user| !user.operation.has_mapped());
            self.sweep_at = 8.max(2 * self.users.len());
        }
        match self.uses.iter_mut().find(|(privilege, _)| *privilege == user.privilege) {
            Some((_, fields)) => *fields = fields.union(&user.fields),
            None => self.uses.push((user.privilege, user.fields.clone())),
        }
        self.users.push(user);
    }

    fn depend_on(&self, fields: &FieldMask, privilege: Privilege, depend: &mut impl FnMut(&O)) {
        let interferes =
            |used: Privilege, common: &FieldMask| used.interferes_with(privilege) && common.overlaps(fields);
        if !self.uses.iter().any(|(used, common)| interferes(*used, common)) {
            return;
        }
        for user in self.users.iter().filter(|user| interferes(user.privilege, &user.fields)) {
            depend(&user.operation);
        }
    }

    /// Takes fields away from all users; gives what was taken to `taken`.
    fn take_out(&mut self, fields: &FieldMask, mut taken: impl FnMut(User<O>)) {
        if !self.uses.iter().any(|(_, used)| used.overlaps(fields)) {
            return;
        }
        self.users.retain_mut(|user| {
            let common = user.fields.intersection(fields);
            if !common.is_empty() {
                taken(User { fields: common, ..user.clone() });
            }
            narrow(user, fields)
        });
        self.uses.iter_mut().for_each(|(_, used)| *used = used.difference(fields));
        self.uses.retain(|(_, used)| !used.is_empty());
    }
}

/// Takes fields away from a user; whether any are left.
fn narrow<O>(user: &mut User<O>, fields: &FieldMask) -> bool {
    user.fields = user.fields.difference(fields);
    !user.fields.is_empty()
}
