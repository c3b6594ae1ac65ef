use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::channel;

use maniple_space::{IndexSpace, Rect};
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::layout::{Arrangement, FieldSpec, LayoutSpec};
use crate::reduction::Reduction;

const FIELD: FieldId = FieldId(0);

fn line(points: i64) -> Layout {
    LayoutSpec::new(Rect::from(0..points).into(), vec![FieldSpec::of::<i32>(FIELD)]).build().unwrap()
}

fn create(pool: &Arc<MemoryPool>, points: i64) -> Result<(Arc<Instance>, Readiness), InstanceError> {
    Instance::create(pool, line(points), InstanceKind::Normal, |_, outcome| outcome.unwrap())
}

struct Product;

impl Reduction for Product {
    type Lhs = i32;
    type Rhs = i32;

    fn identity() -> i32 {
        1
    }

    fn apply(value: &mut i32, contribution: i32) {
        *value *= contribution;
    }

    fn fold(into: &mut i32, contribution: i32) {
        *into *= contribution;
    }
}

#[test]
fn a_new_instance_is_zero_and_its_bytes_count() {
    let pool = MemoryPool::new(MemoryId(0), 100);
    let (instance, ready) = create(&pool, 10).unwrap();
    assert_eq!((ready, pool.used()), (Readiness::Now, 40));
    for point in 0..10 {
        // SAFETY: ours alone, of this type.
        assert_eq!(unsafe { instance.read::<i32>(FIELD, point) }, 0);
    }
}

#[test]
fn instances_are_named_apart() {
    let pool = MemoryPool::new(MemoryId(2), 100);
    let [a, b] = [(); 2].map(|()| create(&pool, 1).unwrap().0.id());
    assert_ne!(a, b);
    assert_eq!(a.to_string(), "instance 0 of memory 2");
}

#[test]
fn a_full_memory_refuses_and_says_so() {
    let pool = MemoryPool::new(MemoryId(0), 100);
    let _held = create(&pool, 20).unwrap();
    assert!(matches!(create(&pool, 6), Err(InstanceError::OutOfMemory(error)) if error.requested == 24));
}

#[test]
fn an_announced_release_makes_room_for_an_instance_that_is_ready_later() {
    let pool = MemoryPool::new(MemoryId(0), 100);
    let (old, _) = create(&pool, 25).unwrap();
    old.announce_release().unwrap();
    let (sender, receiver) = channel();
    let (new, ready) = Instance::create(&pool, line(25), InstanceKind::Normal, move |instance, outcome| {
        sender.send((instance.id(), outcome)).unwrap();
    })
    .unwrap();
    assert_eq!((ready, new.base()), (Readiness::Later, None));
    // SAFETY: nothing uses the old one.
    unsafe { old.release() };
    assert_eq!(receiver.recv().unwrap(), (new.id(), Ok(())));
    assert!(new.base().is_some() && old.base().is_none());
    assert_eq!(pool.used(), 100);
}

#[test]
fn an_instance_may_be_announced_before_its_bytes_are_there() {
    let pool = MemoryPool::new(MemoryId(0), 40);
    let instances = [(); 3].map(|()| {
        let (instance, _) = create(&pool, 10).unwrap();
        instance.announce_release().unwrap();
        instance
    });
    for (index, instance) in instances.iter().enumerate() {
        assert!(instance.base().is_some());
        assert!(instances[index + 1..].iter().all(|later| later.base().is_none()));
        // SAFETY: nothing uses it.
        unsafe { instance.release() };
    }
    assert_eq!(pool.used(), 0);
}

#[test]
fn an_instance_is_destroyed_once() {
    let pool = MemoryPool::new(MemoryId(0), 40);
    let (instance, _) = create(&pool, 10).unwrap();
    instance.announce_release().unwrap();
    let again = Err(InstanceError::AlreadyDestroyed { instance: instance.id() });
    assert_eq!(instance.announce_release(), again);
    // SAFETY: nothing uses it.
    unsafe { instance.release() };
    assert_eq!(instance.announce_release(), again);
}

#[test]
fn a_dropped_instance_keeps_the_promises_made_on_its_release() {
    let pool = MemoryPool::new(MemoryId(0), 40);
    let (old, _) = create(&pool, 10).unwrap();
    old.announce_release().unwrap();
    let (new, _) = create(&pool, 10).unwrap();
    drop(old);
    assert!(new.base().is_some());
}

#[test]
fn an_instance_dropped_before_it_is_ready_frees_what_it_was_promised() {
    let pool = MemoryPool::new(MemoryId(0), 40);
    let (old, _) = create(&pool, 10).unwrap();
    old.announce_release().unwrap();
    drop(create(&pool, 10).unwrap());
    drop(old);
    assert_eq!(pool.used(), 0);
    assert_eq!(create(&pool, 10).unwrap().1, Readiness::Now);
}

#[test]
fn an_instance_that_the_system_refuses_leaves_nothing_counted() {
    let pool = MemoryPool::new(MemoryId(0), u64::MAX);
    let bytes = isize::MAX - 63;
    let spec = LayoutSpec::new(Rect::from(0..bytes as i64 - 64).into(), vec![FieldSpec::of::<u8>(FIELD)]);
    let refused = Instance::create(&pool, spec.build().unwrap(), InstanceKind::Normal, |_, _| ());
    assert!(matches!(refused, Err(InstanceError::SystemRefused(_))), "{refused:?}");
    assert_eq!(pool.used(), 0);
}

#[test]
fn a_reduction_instance_holds_identities_in_every_arrangement() {
    let pool = MemoryPool::new(MemoryId(0), 1000);
    let fields = vec![FieldSpec::of::<i32>(FIELD), FieldSpec::of::<i32>(FieldId(1))];
    for arrangement in [Arrangement::StructOfArrays, Arrangement::ArrayOfStructs, Arrangement::Blocked(4)] {
        let spec = LayoutSpec::new(Rect::from(0..10).into(), fields.clone()).arranged(arrangement);
        let kind = InstanceKind::Reduction(RawReduction::of::<Product>());
        let (instance, _) = Instance::create(&pool, spec.build().unwrap(), kind, |_, _| ()).unwrap();
        for (field, point) in (0..20).map(|index| (FieldId(index % 2), i64::from(index / 2))) {
            // SAFETY: ours alone, of this type.
            assert_eq!(unsafe { instance.read::<i32>(field, point) }, 1);
        }
    }
}

#[test]
fn an_instance_of_several_rectangles_has_the_memory_of_its_points() {
    let pool = MemoryPool::new(MemoryId(0), 80);
    let far = 1i64 << 39;
    let points = IndexSpace::<1>::from_rects([Rect::from(0..10), Rect::from(far..far + 10)]);
    let layout = LayoutSpec::new(points.clone().into(), vec![FieldSpec::of::<i32>(FIELD)]).build().unwrap();
    let kind = InstanceKind::Reduction(RawReduction::of::<Product>());
    let (instance, ready) = Instance::create(&pool, layout, kind, |_, _| ()).unwrap();
    assert_eq!((ready, pool.used()), (Readiness::Now, 80));
    for (point, value) in points.points().zip(0..) {
        // SAFETY: ours alone, of this type.
        unsafe {
            assert_eq!(instance.read::<i32>(FIELD, point), 1);
            instance.write(FIELD, point, value);
        }
    }
    for (point, value) in points.points().zip(0..) {
        // SAFETY: as above.
        assert_eq!(unsafe { instance.read::<i32>(FIELD, point) }, value);
    }
}

#[test]
fn a_reduction_instance_stores_contributions_and_nothing_else() {
    let pool = MemoryPool::new(MemoryId(0), 1000);
    let spec = LayoutSpec::new(Rect::from(0..10).into(), vec![FieldSpec::of::<u64>(FIELD)]);
    let kind = InstanceKind::Reduction(RawReduction::of::<Product>());
    let refused = Instance::create(&pool, spec.build().unwrap(), kind, |_, _| ());
    assert!(matches!(refused, Err(InstanceError::NotContributions { size: 8, rhs_size: 4, .. })));
}

#[test]
fn an_attached_vector_is_used_in_place_uncounted_and_given_back() {
    let pool = MemoryPool::new(MemoryId(0), 0);
    let instance = Instance::attach_vec(&pool, line(3), vec![1i32, 2, 3]).unwrap();
    assert_eq!(pool.used(), 0);
    // SAFETY: ours alone, of this type.
    let owner = unsafe {
        assert_eq!(instance.read::<i32>(FIELD, 1), 2);
        instance.write(FIELD, 2, 7i32);
        instance.release().unwrap()
    };
    assert_eq!(*owner.downcast::<Vec<i32>>().unwrap(), [1, 2, 7]);
}

#[test]
fn a_long_vector_need_not_start_on_a_cache_line() {
    let pool = MemoryPool::new(MemoryId(0), 0);
    let layout = line(1000);
    assert_eq!((layout.align(), layout.required_align()), (64, 4));
    let mut values = vec![3i32; 1016];
    // The first element that is not at a multiple of 64.
    let skipped = usize::from(values.as_ptr().addr().is_multiple_of(64));
    let rest = &mut values[skipped..];
    let (length, base) = (size_of_val(rest), NonNull::from(rest).cast());
    // SAFETY: the vector lives until the instance is gone, and is not used meanwhile.
    let instance = unsafe { Instance::attach(&pool, layout, InstanceKind::Normal, base, length, Box::new(())) };
    // SAFETY: ours alone, of this type.
    assert_eq!(unsafe { instance.unwrap().read::<i32>(FIELD, 999) }, 3);
    drop(values);
}

#[test]
fn an_attached_buffer_must_be_large_and_aligned_enough() {
    let pool = MemoryPool::new(MemoryId(0), 0);
    let short = Instance::attach_vec(&pool, line(3), vec![1i32, 2]);
    assert!(matches!(short, Err(InstanceError::BufferDoesNotFit { needed: 12, found: 8, .. })));
    let base = NonNull::new(std::ptr::without_provenance_mut(6)).unwrap();
    // SAFETY: refused before anything is touched.
    let crooked = unsafe { Instance::attach(&pool, line(3), InstanceKind::Normal, base, 100, Box::new(())) };
    assert!(matches!(crooked, Err(InstanceError::BufferDoesNotFit { align: 4, address: 6, .. })));
}

#[test]
#[should_panic(expected = "stores {(0)..=(9)}, not (10)")]
fn a_point_outside_is_not_read() {
    let pool = MemoryPool::new(MemoryId(0), 40);
    // SAFETY: panics before anything is touched.
    let _ = unsafe { create(&pool, 10).unwrap().0.read::<i32>(FIELD, 10) };
}

#[test]
fn an_announced_instance_that_is_dropped_before_its_bytes_come_completes_its_release() {
    let pool = MemoryPool::new(MemoryId(0), 40);
    let (first, _) = create(&pool, 10).unwrap();
    first.announce_release().unwrap();
    let (second, _) = create(&pool, 10).unwrap();
    second.announce_release().unwrap();
    drop(second);
    let (third, ready) = create(&pool, 10).unwrap();
    assert_eq!(ready, Readiness::Later);
    drop(first);
    assert!(third.base().is_some());
    assert!(create(&pool, 10).is_err(), "the third instance keeps all bytes");
    drop(third);
    assert!(matches!(create(&pool, 10), Ok((_, Readiness::Now))));
}

#[test]
fn a_long_chain_of_dropped_instances_needs_no_deep_stack() {
    let pool = MemoryPool::new(MemoryId(0), 40);
    let (first, _) = create(&pool, 10).unwrap();
    first.announce_release().unwrap();
    for _ in 0..1000 {
        let (next, _) = create(&pool, 10).unwrap();
        next.announce_release().unwrap();
    }
    let (last, _) = create(&pool, 10).unwrap();
    // On a stack that so many nested grants do not fit on.
    let small = std::thread::Builder::new().stack_size(128 << 10);
    small.spawn(move || drop(first)).unwrap().join().unwrap();
    assert!(last.base().is_some());
}

#[test]
fn a_small_instance_counts_as_a_whole() {
    let pool = MemoryPool::new(MemoryId(0), 100);
    let instance = Instance::create_in_parts(&pool, line(10)).unwrap();
    assert_eq!((pool.used(), instance.is_in_parts()), (40, false));
    assert_eq!(instance.claim(instance.layout().points()).unwrap().bytes(), 0);
    assert!(matches!(Instance::create_in_parts(&pool, line(20)), Err(InstanceError::OutOfMemory(_))));
    drop(instance);
    assert_eq!(pool.used(), 0);
}

#[test]
fn an_instance_in_parts_is_made_only_if_all_of_it_has_room_now() {
    let pool = MemoryPool::new(MemoryId(0), 1 << 20);
    let (other, _) = create(&pool, 1000).unwrap();
    assert!(matches!(Instance::create_in_parts(&pool, line(1 << 18)), Err(InstanceError::OutOfMemory(_))));
    other.announce_release().unwrap();
    assert!(Instance::create_in_parts(&pool, line(1 << 18)).is_err(), "nothing of it waits");
    drop(other);
    let instance = Instance::create_in_parts(&pool, line(1 << 18)).unwrap();
    assert_eq!((pool.used(), instance.is_in_parts()), (0, true));
    assert_eq!(instance.claim(instance.layout().points()).unwrap().bytes(), 1 << 20);
    assert!(!instance.is_in_parts());
}

#[test]
fn a_part_that_finds_no_room_does_not_count_and_one_that_is_taken_back_does_no_longer() {
    let pool = MemoryPool::new(MemoryId(0), 1 << 20);
    let instance = Instance::create_in_parts(&pool, line(1 << 18)).unwrap();
    let (other, _) = create(&pool, (1 << 18) - 4096).unwrap();
    let part = |from, to| Rect::from(from..to).into();
    assert_eq!(instance.claim(&part(0, 8192)).unwrap_err().requested, 32 << 10);
    assert_eq!(pool.used(), (1 << 20) - (16 << 10));
    let claim = instance.claim(&part(1024, 1025)).unwrap();
    assert_eq!(claim.bytes(), 4096);
    assert!(instance.unclaim(&claim).unwrap().is_empty());
    assert_eq!(pool.used(), (1 << 20) - (16 << 10));
    drop(other);
    assert_eq!(instance.claim(&part(0, 8192)).unwrap().bytes(), 32 << 10);
    // What is about to go counts no more than it does, and is as it is.
    instance.announce_release().unwrap();
    assert_eq!(instance.claim(&part(8192, 9000)).unwrap().bytes(), 0);
    assert_eq!(pool.used(), 32 << 10);
    drop(instance);
    assert_eq!(pool.used(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Create(i64),
    Announce(Index),
    Release(Index),
    Drop(Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1..10_i64).prop_map(Step::Create),
        2 => any::<Index>().prop_map(Step::Announce),
        1 => any::<Index>().prop_map(Step::Release),
        1 => any::<Index>().prop_map(Step::Drop),
    ];
    prop::collection::vec(step, 0..60)
}

/// An instance, as a program knows it.
struct Known {
    instance: Arc<Instance>,
    bytes: u64,
    announced: bool,
}

/// The bytes that were not promised back; `dropped` are instances that were dropped before their bytes came.
fn kept(live: &[Known], dropped: &[(u64, Arc<AtomicUsize>)]) -> u64 {
    let live = live.iter().filter(|known| !known.announced).map(|known| known.bytes);
    let dropped = dropped.iter().filter(|(_, ready)| ready.load(Ordering::SeqCst) == 0).map(|&(bytes, _)| bytes);
    live.chain(dropped).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Instances are created, announced, released and dropped in any order, before and after their bytes are there:
    /// what is promised is what announced releases bring, each promised instance becomes ready once, and nothing is
    /// lost.
    #[test]
    fn instances_may_go_in_any_order(steps in steps(), order: Vec<Index>) {
        let pool = MemoryPool::new(MemoryId(0), 40);
        let (mut live, mut dropped): (Vec<Known>, Vec<_>) = Default::default();
        let mut promised: Vec<(InstanceId, Arc<AtomicUsize>)> = Vec::new();
        for step in steps {
            match step {
                Step::Create(points) => {
                    let (bytes, ready) = (4 * points as u64, Arc::new(AtomicUsize::new(0)));
                    let count = Arc::clone(&ready);
                    let on_ready = move |_: &Arc<Instance>, _| _ = count.fetch_add(1, Ordering::SeqCst);
                    let fits = kept(&live, &dropped) + bytes <= 40;
                    match Instance::create(&pool, line(points), InstanceKind::Normal, on_ready) {
                        Err(_) => prop_assert!(!fits, "it would fit in the end"),
                        Ok((instance, readiness)) => {
                            prop_assert!(fits, "promised what does not come");
                            if readiness == Readiness::Later {
                                promised.push((instance.id(), ready));
                            }
                            live.push(Known { instance, bytes, announced: false });
                        }
                    }
                }
                Step::Announce(which) if !live.is_empty() => {
                    let known = which.get(&live).instance.clone();
                    let fresh = known.announce_release().is_ok();
                    let place = live.iter().position(|other| Arc::ptr_eq(&other.instance, &known)).unwrap();
                    prop_assert_eq!(fresh, !live[place].announced);
                    live[place].announced = true;
                }
                Step::Release(which) if !live.is_empty() && which.get(&live).instance.base().is_some() => {
                    let known = live.swap_remove(which.index(live.len()));
                    // SAFETY: nothing uses it.
                    unsafe { known.instance.release() };
                }
                Step::Drop(which) if !live.is_empty() => {
                    let known = live.swap_remove(which.index(live.len()));
                    let awaited = promised.iter().find(|(id, _)| *id == known.instance.id());
                    if let Some((_, ready)) = awaited && !known.announced {
                        dropped.push((known.bytes, Arc::clone(ready)));
                    }
                }
                _ => {}
            }
            prop_assert!(pool.used() <= 40);
        }
        let mut order = order.into_iter();
        while !live.is_empty() {
            live.swap_remove(order.next().map_or(0, |index| index.index(live.len())));
        }
        prop_assert_eq!((pool.used(), pool.deferred()), (0, 0));
        prop_assert!(promised.iter().all(|(_, ready)| ready.load(Ordering::SeqCst) == 1), "a promise was not kept");
        prop_assert!(matches!(pool.reserve(40, |_| ()), Ok(Grant::Now(_))));
    }
}
