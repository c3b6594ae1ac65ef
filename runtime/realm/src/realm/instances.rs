//! Creating and releasing instances in the order of events.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Realm;
use crate::events::{After, Event};
use crate::fault::Fault;
use crate::instance::{Instance, InstanceError, InstanceKind, PromiseBroken, Readiness};
use crate::layout::Layout;
use crate::machine::MemoryId;
use crate::operation::{Class, Spawn};
use crate::profile::{Tag, common};

impl Realm {
    /// Makes an instance in a memory of the machine, and gives the event after which its bytes are there:
    /// [`Event::NONE`] if they are there at once, poisoned by a [`PromiseBroken`] if the system refuses them in the
    /// end.
    ///
    /// Room may come from instances whose destruction has been asked for but not happened
    /// ([`destroy_instance`](Self::destroy_instance)); it is promised in the order of requests, and only if it is sure
    /// to come. Filling a reduction instance with identities happens here, on this thread, if its bytes are there at
    /// once.
    ///
    /// ```
    /// use maniple_realm::instance::InstanceKind;
    /// use maniple_realm::layout::{FieldId, FieldSpec, LayoutSpec};
    /// use maniple_realm::machine::{Machine, MemoryId};
    /// use maniple_realm::{Event, Realm};
    /// use maniple_space::Rect;
    ///
    /// let realm = Realm::builder().machine(Machine::uniform(2, 1000)).build()?;
    /// let spec = LayoutSpec::new(Rect::from(0..100).into(), vec![FieldSpec::of::<f64>(FieldId(0))]);
    /// let (old, _) = realm.create_instance(MemoryId(0), spec.clone().build()?, InstanceKind::Normal)?;
    /// // The memory is full, but the first instance goes when `last_use` has triggered.
    /// let last_use = realm.user_event();
    /// // SAFETY: nothing uses the first instance after `last_use`.
    /// unsafe { realm.destroy_instance(&old, &last_use.event())? };
    /// let (new, ready) = realm.create_instance(MemoryId(0), spec.build()?, InstanceKind::Normal)?;
    /// assert!(!realm.has_triggered(ready));
    /// realm.trigger(last_use);
    /// realm.wait(ready)?;
    /// assert!(new.base().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Instance::create`].
    ///
    /// # Panics
    ///
    /// If the machine has no such memory.
    pub fn create_instance(
        &self,
        memory: MemoryId,
        layout: Layout,
        kind: InstanceKind,
    ) -> Result<(Arc<Instance>, Event), InstanceError> {
        let (realm, ready) = (self.downgrade(), self.user_event());
        let created = Instance::create(self.memory_pool(memory), layout, kind, move |_, outcome| {
            // A realm that is gone has no waiters left.
            let Some(realm) = realm.upgrade() else { return };
            match outcome {
                Ok(()) => realm.trigger(ready),
                Err(refused) => realm.poison(ready, Fault::new(PromiseBroken { memory, refused })),
            }
        });
        match created {
            Ok((instance, Readiness::Later)) => {
                let event = instance.ready.get_or_init(|| ready).event();
                Ok((instance, event))
            }
            at_once => {
                self.trigger(ready);
                at_once.map(|(instance, _)| (instance, Event::NONE))
            }
        }
    }

    /// Releases an instance once it is ready and these have triggered, poisoned or not; gives the event of the release.
    /// Its bytes are promised to others from now on. The owner of an external buffer is dropped.
    ///
    /// # Errors
    ///
    /// If that was asked for before, or another realm has promised its bytes.
    ///
    /// # Safety
    ///
    /// Nothing uses the bytes of the instance after the events. None of the events waits for an instance that is
    /// created in the same memory after this call.
    pub unsafe fn destroy_instance<'a>(
        &self,
        instance: &Arc<Instance>,
        after: impl Into<After<'a>>,
    ) -> Result<Event, InstanceError> {
        if instance.ready.get().is_some_and(|ready| ready.realm != self.operations().id) {
            return Err(InstanceError::OtherRealm { instance: instance.id() });
        }
        instance.announce_release()?;
        let after = after.into();
        let mut events: SmallVec<[Event; 8]> = SmallVec::from_slice(after.needs);
        events.extend_from_slice(after.follows);
        events.push(instance.ready());
        let tag = Tag::of(common::RELEASE);
        let spawn = Spawn { class: Class::Runtime, tag, ..Spawn::after(After::follows(&events)) };
        let instance = Arc::clone(instance);
        // SAFETY: all uses are over by then, by the caller's promise.
        Ok(self.spawn(spawn, move || drop(unsafe { instance.release() })))
    }
}

#[cfg(test)]
mod tests {
    use maniple_space::Rect;

    use super::*;
    use crate::layout::{FieldId, FieldSpec, LayoutSpec};
    use crate::machine::Machine;

    const MEMORY: MemoryId = MemoryId(0);

    fn realm(capacity: u64) -> Realm {
        Realm::builder().machine(Machine::uniform(2, capacity)).build().unwrap()
    }

    fn create(realm: &Realm, bytes: i64) -> Result<(Arc<Instance>, Event), InstanceError> {
        let spec = LayoutSpec::new(Rect::from(0..bytes).into(), vec![FieldSpec::of::<u8>(FieldId(0))]);
        realm.create_instance(MEMORY, spec.build().unwrap(), InstanceKind::Normal)
    }

    #[test]
    fn an_instance_that_fits_is_ready_at_once() {
        let realm = realm(100);
        let (instance, ready) = create(&realm, 100).unwrap();
        assert!(ready.is_none() && instance.base().is_some());
        assert!(matches!(create(&realm, 1), Err(InstanceError::OutOfMemory(_))));
    }

    #[test]
    fn a_chain_of_instances_passes_the_same_bytes_on() {
        let realm = realm(100);
        let (first, _) = create(&realm, 100).unwrap();
        let start = realm.user_event();
        // SAFETY: nothing uses the instances.
        unsafe { realm.destroy_instance(&first, &start.event()) }.unwrap();
        let mut last = Event::NONE;
        for _ in 0..100 {
            let (next, ready) = create(&realm, 60).unwrap();
            assert!(!realm.has_triggered(ready));
            // SAFETY: as above.
            last = unsafe { realm.destroy_instance(&next, After::NOTHING) }.unwrap();
        }
        realm.trigger(start);
        realm.wait(last).unwrap();
        assert_eq!((realm.memory_pool(MEMORY).used(), realm.memory_pool(MEMORY).peak()), (0, 100));
    }

    #[test]
    fn a_promise_that_the_system_does_not_keep_names_memory_and_bytes() {
        // More than any system gives, which the memory has when the first byte is back.
        let bytes = 1_i64 << 52;
        let realm = realm(bytes as u64);
        let (first, _) = create(&realm, 1).unwrap();
        let start = realm.user_event();
        // SAFETY: nothing uses the instance.
        unsafe { realm.destroy_instance(&first, &start.event()) }.unwrap();
        let (_second, ready) = create(&realm, bytes).unwrap();
        realm.trigger(start);
        let fault = realm.wait(ready).unwrap_err();
        let broken: &PromiseBroken = fault.downcast_ref().unwrap();
        assert_eq!((broken.memory, broken.refused.bytes), (MEMORY, 1 << 52));
    }

    #[test]
    fn a_promised_instance_that_is_dropped_becomes_ready_when_its_bytes_come_and_gives_them_back() {
        let realm = realm(100);
        let (old, _) = create(&realm, 100).unwrap();
        let start = realm.user_event();
        // SAFETY: nothing uses the instance.
        let released = unsafe { realm.destroy_instance(&old, &start.event()) }.unwrap();
        let (new, ready) = create(&realm, 100).unwrap();
        drop(new);
        assert!(!realm.has_triggered(ready));
        realm.trigger(start);
        realm.wait(released).unwrap();
        assert!(realm.has_triggered(ready));
        assert_eq!((realm.memory_pool(MEMORY).used(), realm.memory_pool(MEMORY).deferred()), (0, 0));
    }

    #[test]
    fn an_instance_is_released_even_after_poison_since_its_uses_are_over() {
        let realm = realm(100);
        let (instance, _) = create(&realm, 100).unwrap();
        let user = realm.user_event();
        // SAFETY: nothing uses the instance.
        let released = unsafe { realm.destroy_instance(&instance, &user.event()) }.unwrap();
        realm.poison(user, Fault::new("a task that used the instance failed"));
        realm.wait(released).unwrap();
        assert_eq!(realm.memory_pool(MEMORY).used(), 0);
    }

    #[test]
    fn a_promised_instance_of_another_realm_is_not_destroyed_here() {
        let [ours, theirs] = [(); 2].map(|()| realm(100));
        let (old, _) = create(&theirs, 100).unwrap();
        old.announce_release().unwrap();
        let (promised, ready) = create(&theirs, 100).unwrap();
        // SAFETY: nothing uses the instance.
        let refused = unsafe { ours.destroy_instance(&promised, After::NOTHING) };
        assert_eq!(refused, Err(InstanceError::OtherRealm { instance: promised.id() }));
        drop(old);
        theirs.wait(ready).unwrap();
        // SAFETY: as above.
        theirs.wait(unsafe { theirs.destroy_instance(&promised, After::NOTHING) }.unwrap()).unwrap();
        assert_eq!(theirs.memory_pool(MEMORY).used(), 0);
    }

    #[test]
    fn destroying_twice_is_an_error() {
        let realm = realm(100);
        let (instance, _) = create(&realm, 100).unwrap();
        // SAFETY: nothing uses the instance.
        let twice = [(); 2].map(|()| unsafe { realm.destroy_instance(&instance, After::NOTHING) });
        assert!(twice[0].is_ok());
        assert!(matches!(twice[1], Err(InstanceError::AlreadyDestroyed { .. })));
    }

    #[test]
    fn an_instance_may_outlive_its_realm_and_be_dropped_with_others_waiting_for_it() {
        let realm = realm(100);
        let (old, _) = create(&realm, 100).unwrap();
        old.announce_release().unwrap();
        let (new, _) = create(&realm, 100).unwrap();
        drop(realm);
        drop(old);
        assert!(new.base().is_some());
    }
}
