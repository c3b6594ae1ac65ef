//! Transfers as operations: executed by workers, in the order of events.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Realm;
use crate::events::{After, Event};
use crate::fault::Fault;
use crate::operation::{Spawn, Target};
use crate::profile::{Record, Tag};
use crate::transfer::{Transfer, channel, execute_all};

impl Realm {
    /// Executes transfers, one after the other, once the preconditions have triggered; gives the event of their end,
    /// poisoned by the first [`TransferError`](crate::transfer::TransferError). A large transfer that is alone and may
    /// run anywhere is shared by several workers.
    ///
    /// # Safety
    ///
    /// The requirements of [`Transfer::execute`] hold, for each transfer, from when the preconditions have triggered
    /// until the event has.
    pub unsafe fn transfer<'a>(&self, transfers: Vec<Transfer>, spawn: impl Into<Spawn<'a>>) -> Event {
        let mut spawn = spawn.into();
        let Some(first) = transfers.first() else { return self.merge(spawn.after) };
        if spawn.tag == Tag::NONE {
            spawn.tag = Tag::of(first.label());
        }
        if let [alone] = &transfers[..]
            && spawn.target == Target::Any
            && let Some(pieces) = alone.cut(self.processors().len())
        {
            let spawn_piece = |piece| self.spawn_transfers(spawn, [piece]);
            let ends: SmallVec<[Event; 16]> = pieces.into_iter().map(spawn_piece).collect();
            return self.merge(After::needs(&ends));
        }
        // Many may wait at once, and lists have room for more than there are.
        self.spawn_transfers(spawn, transfers.into_boxed_slice())
    }

    fn spawn_transfers(&self, spawn: Spawn<'_>, transfers: impl AsRef<[Transfer]> + Send + 'static) -> Event {
        let channel = self.profiler().map(|_| channel(transfers.as_ref()));
        let event = self.spawn(spawn, move || run(transfers.as_ref()));
        if let (Some(profiler), Some((from, to, bytes))) = (self.profiler(), channel) {
            profiler.record(Record::Transfer { operation: event.into(), from, to, bytes });
        }
        event
    }
}

fn run(transfers: &[Transfer]) -> Result<(), Arc<Fault>> {
    // SAFETY: promised by the caller of `Realm::transfer`.
    unsafe { execute_all(transfers) }.map_err(|error| Fault::new(error).into())
}

#[cfg(test)]
mod tests {
    use maniple_space::{AnySpace, IndexSpace, Rect};

    use super::*;
    use crate::instance::{Instance, InstanceKind};
    use crate::layout::{FieldId, FieldSpec, LayoutSpec};
    use crate::machine::{Machine, MemoryId};
    use crate::transfer::pieces::BYTES_WORTH_A_WORKER;
    use crate::transfer::{Dangling, FillValue, TransferError};

    const FIELD: FieldId = FieldId(0);

    fn realm() -> Realm {
        Realm::builder().machine(Machine::uniform(2, 1 << 30)).build().unwrap()
    }

    fn line(realm: &Realm, points: i64) -> Arc<Instance> {
        let spec = LayoutSpec::new(Rect::from(0..points).into(), vec![FieldSpec::of::<i64>(FIELD)]);
        realm.create_instance(MemoryId(0), spec.build().unwrap(), InstanceKind::Normal).unwrap().0
    }

    fn fill(instance: &Arc<Instance>, space: impl Into<AnySpace>, value: i64) -> Transfer {
        Transfer::fill(space.into(), (instance, FIELD), FillValue::of(value)).unwrap()
    }

    fn read(instance: &Instance, point: i64) -> i64 {
        // SAFETY: the tests wait for the transfers before they read.
        unsafe { instance.read(FIELD, point) }
    }

    #[test]
    fn the_transfers_of_one_operation_are_executed_in_order_after_its_preconditions() {
        let realm = realm();
        let (a, b) = (line(&realm, 10), line(&realm, 10));
        let start = realm.user_event();
        let copy = Transfer::copy(Rect::from(0..5).into(), (&a, FIELD), (&b, FIELD)).unwrap();
        let list = vec![fill(&a, Rect::from(0..10), 1), fill(&b, Rect::from(0..10), 2), copy];
        // SAFETY: nothing else uses the instances until the event.
        let done = unsafe { realm.transfer(list, &start.event()) };
        assert_eq!((realm.has_triggered(done), read(&a, 0)), (false, 0));
        realm.trigger(start);
        realm.wait(done).unwrap();
        assert_eq!((read(&b, 4), read(&b, 5)), (1, 2));
    }

    #[test]
    fn no_transfers_end_with_their_preconditions() {
        let realm = realm();
        let start = realm.user_event();
        // SAFETY: nothing is touched.
        let done = unsafe { realm.transfer(Vec::new(), &start.event()) };
        assert_eq!(done, start.event());
        realm.trigger(start);
    }

    #[test]
    fn a_large_transfer_is_cut_without_missing_a_point_and_a_scatter_is_not_cut() {
        let realm = realm();
        let points = (4 * BYTES_WORTH_A_WORKER / 8) as i64;
        let instance = line(&realm, points);
        let sparse = IndexSpace::<1>::from_rects([Rect::from(0..points / 3), Rect::from(points / 2..points)]);
        let transfer = fill(&instance, sparse.clone(), 7);
        assert_eq!(transfer.cut(2).unwrap().len(), 2);
        // SAFETY: nothing else uses the instance until the event.
        realm.wait(unsafe { realm.transfer(vec![transfer], After::NOTHING) }).unwrap();
        for point in 0..points {
            assert_eq!(read(&instance, point), if sparse.contains(point.into()) { 7 } else { 0 });
        }
        let other = line(&realm, points);
        let sides = ((&instance, FIELD), (&other, FIELD), (&other, FIELD));
        let whole = AnySpace::from(Rect::from(0..points));
        let scatter = Transfer::scatter(whole.clone(), sides.0, sides.1, sides.2, whole, Dangling::Fail).unwrap();
        assert!(scatter.cut(2).is_none());
        assert!(fill(&instance, Rect::from(0..10), 1).cut(2).is_none());
    }

    #[test]
    fn a_dangling_pointer_poisons_the_event() {
        let realm = realm();
        let [pointers, from, to] = [(); 3].map(|()| line(&realm, 4));
        let space = AnySpace::from(Rect::from(0..4));
        let targets = AnySpace::from(Rect::from(0..4));
        let sides = ((&pointers, FIELD), (&from, FIELD), (&to, FIELD));
        let gather = Transfer::gather(space, sides.0, sides.1, sides.2, targets, Dangling::Fail).unwrap();
        let list = vec![fill(&pointers, Rect::from(2..4), 4), gather, fill(&to, Rect::from(0..4), 9)];
        // SAFETY: nothing else uses the instances until the event.
        let fault = realm.wait(unsafe { realm.transfer(list, After::NOTHING) }).unwrap_err();
        let error = fault.downcast_ref::<TransferError>().unwrap();
        assert!(matches!(error, TransferError::DanglingPointer { point, .. } if *point == 2.into()), "{error}");
        assert_eq!(read(&to, 0), 0);
    }
}
