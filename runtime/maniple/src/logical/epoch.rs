//! The users of one node, in two epochs.

use maniple_region::{FieldMask, Privilege};

use super::LogicalUser;

/// An operation that uses fields of a node's region.
#[derive(Clone, Debug)]
struct User<O> {
    operation: O,
    fields: FieldMask,
    privilege: Privilege,
}

/// Users of a node: of the *current* epoch, and of the *previous* one, all of which every current user on the same field depends on.
#[derive(Debug)]
pub(super) struct Epochs<O> {
    current: Vec<User<O>>,
    previous: Vec<User<O>>,
}

impl<O> Default for Epochs<O> {
    fn default() -> Self {
        Self { current: Vec::new(), previous: Vec::new() }
    }
}

impl<O: LogicalUser> Epochs<O> {
    pub(super) fn is_empty(&self) -> bool {
        self.current.is_empty() && self.previous.is_empty()
    }

    /// Forgets users that nobody needs to wait for.
    pub(super) fn prune(&mut self) {
        self.current.retain(|user| !user.operation.has_mapped());
        self.previous.retain(|user| !user.operation.has_mapped());
    }

    /// Calls `depend` for every user that a new use interferes with and that is not implied by others. Returns the fields on which the new
    /// use interferes with *all* current users, of which there is at least one: if it is recorded here, they make an epoch.
    pub(super) fn check(&self, fields: &FieldMask, privilege: Privilege, depend: &mut impl FnMut(&O)) -> FieldMask {
        let mut dominated = FieldMask::new();
        let mut free = FieldMask::new();
        for user in &self.current {
            let common = user.fields.intersection(fields);
            if common.is_empty() {
                continue;
            }
            if user.privilege.interferes_with(privilege) {
                depend(&user.operation);
                dominated = dominated.union(&common);
            } else {
                free = free.union(&common);
            }
        }
        let dominated = dominated.difference(&free);
        let rest = fields.difference(&dominated);
        for user in &self.previous {
            if user.fields.overlaps(&rest) && user.privilege.interferes_with(privilege) {
                depend(&user.operation);
            }
        }
        dominated
    }

    /// Records a use. On `dominated` fields it starts a new epoch.
    pub(super) fn record(&mut self, operation: &O, fields: &FieldMask, privilege: Privilege, dominated: &FieldMask) {
        if !dominated.is_empty() {
            self.previous.retain_mut(|user| narrow(user, dominated));
            let mut moved = Vec::new();
            self.current.retain_mut(|user| {
                let common = user.fields.intersection(dominated);
                if !common.is_empty() {
                    moved.push(User { fields: common, ..user.clone() });
                }
                narrow(user, dominated)
            });
            self.previous.append(&mut moved);
        }
        self.current.push(User { operation: operation.clone(), fields: fields.clone(), privilege });
    }

    /// Removes all users of `fields`, calling `depend` for each.
    pub(super) fn take_over(&mut self, fields: &FieldMask, depend: &mut impl FnMut(&O)) {
        for users in [&mut self.current, &mut self.previous] {
            users.retain_mut(|user| {
                if user.fields.overlaps(fields) {
                    depend(&user.operation);
                }
                narrow(user, fields)
            });
        }
    }
}

/// Takes fields away from a user; whether any are left.
fn narrow<O>(user: &mut User<O>, fields: &FieldMask) -> bool {
    user.fields = user.fields.difference(fields);
    !user.fields.is_empty()
}
