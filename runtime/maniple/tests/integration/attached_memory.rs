//! Memory of the program's that is the place of a region's values.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use maniple::machine::{Affinity, MemoryKind, ProcessorKind};
use maniple::mapper::{InstanceChoice, Mapper, MappingContext, RandomMapper, RequirementMapping, TaskInfo};
use maniple::prelude::*;
use maniple::record::check;
use maniple::{Attached, AttachmentError, Machine, MemoryId, ProcessorId};

#[derive(Fields)]
struct Cell {
    value: i64,
    other: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, what: i64) {
    cells.points().for_each(|point| cells.value[point] += what);
}

#[task(leaf)]
fn number(#[discards(value)] cells: Piece<Cell>, first: i64) {
    cells.points().for_each(|point| cells.value[point] = first + point[0]);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

#[task(leaf)]
fn sum_both(#[reads(value, other)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point] + cells.other[point]).sum()
}

#[task(leaf)]
fn contribute(#[reduces(Sum, value)] cells: Piece<Cell>, what: i64) {
    cells.points().for_each(|point| cells.value.fold(point, what));
}

#[task(leaf)]
fn fail(#[writes(value)] cells: Piece<Cell>) -> Result<()> {
    cells.points().for_each(|point| cells.value[point] = -1);
    Err(Error::application("it fails"))
}

fn run<T>(program: impl AsyncFnOnce(&Context) -> Result<T>) -> T {
    Runtime::builder().workers(2).build().unwrap().run(program).unwrap()
}

fn attachment(error: impl Into<Error>) -> AttachmentError {
    match error.into() {
        Error::Attachment(problem) => problem,
        other => panic!("{other}"),
    }
}

#[test]
fn a_vector_is_used_where_it_is_and_comes_back_without_a_copy() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let same = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(1000)?;
        let pieces = cells.partition(4).equal()?;
        let values: Vec<i64> = (0..1000).collect();
        let address = values.as_ptr();
        let attached = cx.attach_vec(&cells, Cell::value, values)?;
        cx.index_launch(4, add(&pieces, 7));
        assert_eq!(cx.index_launch(4, sum(&pieces)).reduce(Sum).await?, 999 * 500 + 7000);
        assert_eq!(cx.launch(sum_both(&cells)).await?, 999 * 500 + 7000);
        let values = cx.detach(attached)?.await?;
        assert_eq!(values, (7..1007).collect::<Vec<i64>>());
        Ok(values.as_ptr() == address)
    });
    let statistics = runtime.statistics();
    assert!(same.unwrap());
    assert_eq!((statistics.copies, statistics.bytes_copied), (0, 0), "{statistics:?}");
}

#[test]
fn both_take_their_place_in_the_program_and_the_region_is_zero_without_the_memory() {
    run(async |cx| {
        let cells = cx.region::<Cell>(3)?;
        cx.fill(&cells, Cell::value, 9)?;
        cx.fill(&cells, Cell::other, 5)?;
        let before = cx.launch(sum(&cells));
        let attached = cx.attach_vec(&cells, Cell::value, vec![1, 2, 3])?;
        let during = cx.launch(sum(&cells));
        cx.launch(add(&cells, 10));
        let detached = cx.detach(attached)?;
        let after = cx.launch(sum_both(&cells));
        cx.launch(add(&cells, 100));
        let again = cx.attach_vec(&cells, Cell::value, vec![4, 4, 4])?;
        assert_eq!((before.await?, during.await?, after.await?), (27, 6, 15));
        assert_eq!(detached.await?, [11, 12, 13]);
        assert_eq!(cx.detach(again)?.await?, [4, 4, 4]);
        Ok(())
    });
}

#[task(leaf)]
fn add_late(#[writes(value)] cells: Piece<Cell>, gate: Arc<Mutex<mpsc::Receiver<i64>>>) {
    let what = gate.lock().unwrap().recv().unwrap();
    cells.points().for_each(|point| cells.value[point] += what);
}

#[test]
fn neither_waits_for_what_was_launched_before() {
    run(async |cx| {
        let cells = cx.region::<Cell>(2)?;
        let (opener, gate) = mpsc::channel();
        let gate = Arc::new(Mutex::new(gate));
        cx.launch(add_late(&cells, Arc::clone(&gate)));
        let attached = cx.attach_vec(&cells, Cell::value, vec![1, 2])?;
        cx.launch(add_late(&cells, gate));
        let detached = cx.detach(attached)?;
        assert!(!detached.is_ready());
        opener.send(10).unwrap();
        opener.send(20).unwrap();
        let values = detached.await?;
        // The two tasks may run in either order: they use different memory.
        assert!(values == [11, 12] || values == [21, 22], "{values:?}");
        Ok(())
    });
}

#[test]
fn rows_come_in_row_major_order_and_a_longer_vector_keeps_its_rest() {
    #[derive(Fields)]
    struct Pixel {
        grey: u8,
    }
    run(async |cx| {
        let pixels = cx.region_over::<Pixel, 2>(Rect::new([5, -1], [6, 1]))?;
        let attached = cx.attach_vec(&pixels, Pixel::grey, (0..9).collect())?;
        {
            let mut mapping = cx.map_write(&pixels, Pixel::grey).await?;
            assert_eq!((mapping[[5, -1]], mapping[[5, 1]], mapping[[6, -1]]), (0, 2, 3));
            mapping[[6, 1]] = 99;
        }
        assert_eq!(cx.detach(attached)?.await?, [0, 1, 2, 3, 4, 99, 6, 7, 8]);
        let nothing = cx.region::<Pixel>(0)?;
        let attached = cx.attach_vec(&nothing, Pixel::grey, vec![7])?;
        assert_eq!(cx.detach(attached)?.await?, [7]);
        Ok(())
    });
}

/// Everything in the memory that the tag says.
#[derive(Clone)]
struct ByTag;

impl Mapper for ByTag {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        _: usize,
        _: ProcessorId,
        _: usize,
        _: &dyn MappingContext,
    ) -> RequirementMapping {
        InstanceChoice::in_memory(MemoryId(task.tag as u32)).into()
    }
}

fn two_memories(capacity: u64) -> Machine {
    let mut machine = Machine::builder();
    let near = Affinity { bandwidth_mb_s: 1000, latency_ns: 100 };
    let processor = machine.processor(ProcessorKind::Cpu);
    for capacity in [1 << 20, capacity] {
        let memory = machine.memory(MemoryKind::System, capacity);
        machine.sees(processor, memory, near);
    }
    machine.build().unwrap()
}

#[test]
fn values_that_a_mapper_has_taken_elsewhere_are_brought_back_and_only_those() {
    let runtime = Runtime::builder().machine(two_memories(1 << 20)).mapper(ByTag).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?;
        let pieces = cells.partition(4).equal()?;
        let attached = cx.attach_vec(&cells, Cell::value, vec![1; 100])?;
        cx.launch(add(&pieces.piece(2)?, 5).tag(1));
        cx.launch(contribute(&pieces.piece(0)?, 3));
        let values = cx.detach(attached)?.await?;
        assert_eq!((&values[..25], &values[25..50]), (&[4; 25][..], &[1; 25][..]));
        assert_eq!((&values[50..75], &values[75..]), (&[6; 25][..], &[1; 25][..]));
        Ok(())
    });
    outcome.unwrap();
    // There, and back.
    assert_eq!(runtime.statistics().bytes_copied, 2 * 25 * 8);
}

#[test]
fn what_is_discarded_is_not_brought_back() {
    let runtime = Runtime::builder().machine(two_memories(1 << 20)).mapper(ByTag).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?;
        let attached = cx.attach_vec(&cells, Cell::value, vec![1; 100])?;
        cx.launch(number(&cells, 5).tag(1));
        assert_eq!(cx.detach(attached.discard())?.await?.len(), 100);
        assert_eq!(cx.launch(sum(&cells)).await?, 0);
        Ok(())
    });
    outcome.unwrap();
    assert_eq!(runtime.statistics().bytes_copied, 0);
}

#[test]
fn values_that_are_to_be_read_only_are_never_written() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let table: Arc<[i64]> = (0..8).collect();
        let cells = cx.region::<Cell>(8)?;
        let halves = cells.partition(2).equal()?;
        let attached = cx.attach_read_only(&cells, Cell::value, Arc::clone(&table))?;
        let mut sums = Vec::new();
        for round in 0..10 {
            // Readers, before anything has changed, and after.
            sums.push(cx.launch(sum(&cells)).await?);
            assert_eq!(runtime.statistics().bytes_copied > 0, round > 3, "{round}");
            if round == 3 {
                cx.launch(add(&halves.piece(1)?, 10));
            }
            if round == 5 {
                cx.launch(contribute(&cells, 100));
            }
            if round == 7 {
                cx.fill(&cells, Cell::value, 1)?;
            }
        }
        assert_eq!(sums, [28, 28, 28, 28, 68, 68, 868, 868, 8, 8]);
        assert_eq!(table[..], [0, 1, 2, 3, 4, 5, 6, 7]);
        let back = cx.detach(attached)?.await?;
        assert!(Arc::ptr_eq(&back, &table));
        assert_eq!(cx.launch(sum(&cells)).await?, 0);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_loop_over_attached_memory_is_replayed_and_never_after_it_was_detached() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    replay_with_and_without_attached_memory(&runtime);
    assert!(runtime.statistics().replays > 20, "{:?}", runtime.statistics());
}

/// Mappers that decide by chance, yet alike each time, may have attached memory be the source or destination of a
/// recorded copy and nothing else.
#[test]
fn replayed_copies_from_and_to_attached_memory_do_not_outlive_it() {
    let mut replays = 0;
    for seed in 0..40 {
        let runtime = Runtime::builder().machine(two_memories(1 << 20)).workers(1);
        let runtime = runtime.mapper(RandomMapper::steady(seed)).build().unwrap();
        replay_with_and_without_attached_memory(&runtime);
        replays += runtime.statistics().replays;
    }
    assert!(replays > 400, "{replays}");
}

fn replay_with_and_without_attached_memory(runtime: &Runtime) {
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let quarters = cells.partition(4).equal()?;
        let mut expected = 0;
        for turn in 0..4 {
            let attached = cx.attach_vec(&cells, Cell::value, vec![turn; 8])?;
            for step in 0..20 {
                cx.trace("step", |cx| {
                    cx.index_launch(4, number(&quarters, step));
                    cx.index_launch(4, add(&quarters, turn));
                });
                expected = step + turn;
            }
            let values = cx.detach(attached)?.await?;
            assert_eq!(values, (expected..expected + 8).collect::<Vec<_>>());
            // The same without it.
            for step in 0..20 {
                cx.trace("step", |cx| {
                    cx.index_launch(4, number(&quarters, step));
                    cx.index_launch(4, add(&quarters, turn));
                });
            }
            assert_eq!(cx.launch(sum(&cells)).await?, 8 * expected + 28);
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_strict_trace_with_an_attachment_or_detachment_is_refused_by_name() {
    run(async |cx| {
        let cells = cx.region::<Cell>(2)?;
        let attached = cx.strict_trace("attaches", |cx| cx.attach_vec(&cells, Cell::value, vec![1, 2]));
        let Err(refused @ Error::NotReplayable { .. }) = attached else { panic!("{attached:?}") };
        assert!(refused.to_string().contains("attachment"), "{refused}");
        let attached = cx.attach_vec(&cells, Cell::value, vec![3, 4])?;
        let refused = cx.strict_trace("detaches", |cx| cx.detach(attached));
        let Err(refused @ Error::NotReplayable { .. }) = refused else { panic!("{refused:?}") };
        assert!(refused.to_string().contains("detachment"), "{refused}");
        Ok(())
    });
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>, Vec<i64>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Attaches eight values of one that are owned by something that counts when it is dropped.
fn attach_counted(cx: &Context, cells: &Region<Cell>, drops: &Arc<AtomicUsize>) -> Result<Attached<Counted>> {
    let mut owner = Counted(Arc::clone(drops), vec![1; 8]);
    let (base, length) = (NonNull::from(owner.1.as_mut_slice()).cast::<i64>(), owner.1.len());
    // SAFETY: the values are the owner's, which does nothing with them.
    unsafe { cx.attach_raw(cells, Cell::value, base, length, owner) }
}

#[test]
fn foreign_memory_comes_back_with_its_owner() {
    let drops = Arc::new(AtomicUsize::new(0));
    run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let attached = attach_counted(cx, &cells, &drops)?;
        cx.launch(add(&cells, 2));
        let owner = cx.detach(attached)?.await?;
        assert_eq!((&owner.1, drops.load(Ordering::SeqCst)), (&vec![3; 8], 0));
        Ok(())
    });
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn memory_whose_handle_is_dropped_is_the_regions_for_good() {
    let drops = Arc::new(AtomicUsize::new(0));
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let left = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        drop(attach_counted(cx, &cells, &drops)?);
        cx.launch(add(&cells, 2));
        assert_eq!(cx.launch(sum(&cells)).await?, 24);
        assert_eq!(drops.load(Ordering::SeqCst), 0);
        cx.destroy_region(&cells)?;
        cx.execution_fence().await?;
        let others = cx.region::<Cell>(8)?;
        drop(attach_counted(cx, &others, &drops)?);
        std::mem::forget(attach_counted(cx, &cx.region::<Cell>(8)?, &drops)?);
        cx.launch(sum(&others)).await
    });
    assert_eq!(left.unwrap(), 8);
    drop(runtime);
    // All but the one that was leaked in the literal sense.
    assert!((2..=3).contains(&drops.load(Ordering::SeqCst)), "{drops:?}");
}

#[test]
fn values_that_were_never_computed_fail_the_detachment_and_the_memory_is_dropped() {
    let drops = Arc::new(AtomicUsize::new(0));
    run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let attached = attach_counted(cx, &cells, &drops)?;
        let failed = cx.launch(fail(&cells));
        let detached = cx.detach(attached)?.await;
        assert!(failed.await.is_err());
        let Err(Error::TaskFailed { task, .. }) = &detached.map(|_| ()) else { panic!("it did not fail") };
        assert_eq!((task.as_str(), drops.load(Ordering::SeqCst)), ("fail", 1));
        // The region is whole again.
        assert_eq!(cx.launch(sum(&cells)).await?, 0);
        let attached = attach_counted(cx, &cells, &drops)?;
        assert!(cx.launch(fail(&cells)).await.is_err());
        assert_eq!(cx.detach(attached.discard())?.await?.1.len(), 8);
        Ok(())
    });
    assert_eq!(drops.load(Ordering::SeqCst), 2);
}

#[test]
fn a_detachment_that_fails_unseen_fails_the_task() {
    let outcome = Runtime::builder().workers(1).build().unwrap().run(async |cx| {
        let cells = cx.region::<Cell>(2)?;
        let attached = cx.attach_vec(&cells, Cell::value, vec![0; 2])?;
        cx.launch(fail(&cells));
        drop(cx.detach(attached)?);
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::TaskFailed { .. })), "{outcome:?}");
}

#[test]
fn memory_that_does_not_fit_is_refused_and_says_what_would() {
    run(async |cx| {
        let cells = cx.region::<Cell>(4)?.named("cells");
        let short = attachment(cx.attach_vec(&cells, Cell::value, vec![0; 3]).unwrap_err());
        let AttachmentError::TooShort { points: 4, found: 3, .. } = &short else { panic!("{short:?}") };
        assert_eq!(
            short.to_string(),
            "cannot attach memory to field `value` of region `cells`, which has 4 points: there are 3 values; attach memory of at least 4"
        );
        let scattered = cells.part(IndexSpace::from_rects([Rect::from(0..1), Rect::from(2..4)]))?;
        let scattered = attachment(cx.attach_vec(&scattered, Cell::value, vec![0; 4]).unwrap_err());
        assert!(matches!(scattered, AttachmentError::Scattered { .. }), "{scattered}");
        let mut bytes = vec![0_i64; 6];
        let odd = NonNull::from(bytes.as_mut_slice()).cast::<u8>().map_addr(|address| address.saturating_add(3));
        // SAFETY: it is refused.
        let odd = unsafe { cx.attach_raw(&cells, Cell::value, odd.cast(), 4, bytes) };
        assert!(matches!(attachment(odd.unwrap_err()), AttachmentError::Misaligned { align: 8, .. }));
        let wrong = cx.attach_vec(&cells, Field::<Cell, u32>::new(Cell::value.id()), vec![0; 4]);
        assert!(matches!(wrong, Err(Error::Launch { .. })), "{wrong:?}");
        Ok(())
    });
}

#[test]
fn what_is_attached_is_not_attached_again() {
    run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let halves = cells.partition(2).equal()?;
        let first = cx.attach_vec(&halves.piece(0)?, Cell::value, vec![1; 4])?;
        let again = attachment(cx.attach_vec(&cells, Cell::value, vec![2; 8]).unwrap_err());
        assert!(matches!(again, AttachmentError::AlreadyAttached { .. }), "{again}");
        // Other points, and another field.
        let second = cx.attach_vec(&halves.piece(1)?, Cell::value, vec![2; 4])?;
        let other = cx.attach_vec(&cells, Cell::other, vec![10; 8])?;
        assert_eq!(cx.launch(sum_both(&cells)).await?, 92);
        assert_eq!(cx.detach(first)?.await?, [1; 4]);
        assert_eq!(cx.launch(sum_both(&cells)).await?, 88);
        let third = cx.attach_vec(&halves.piece(0)?, Cell::value, vec![3; 4])?;
        for (attached, value) in [(third, 3), (second, 2)] {
            assert_eq!(cx.detach(attached)?.await?, [value; 4]);
        }
        assert_eq!(cx.detach(other)?.await?, [10; 8]);

        let mut bytes = vec![5_i64; 8];
        let base = NonNull::from(bytes.as_mut_slice()).cast::<i64>();
        // SAFETY: the second is refused.
        let (one, two) = unsafe {
            let one = cx.attach_raw(&cells, Cell::value, base, 8, bytes)?;
            (one, cx.attach_raw(&cells, Cell::other, base.add(7), 1, ()))
        };
        let taken = attachment(two.map(|_| ()).unwrap_err());
        assert!(matches!(taken, AttachmentError::TooShort { .. } | AttachmentError::MemoryInUse { .. }), "{taken}");
        // SAFETY: it is refused.
        let two = unsafe { cx.attach_raw(&cells.part(Rect::from(0..1))?, Cell::other, base.add(7), 1, ()) };
        let taken = attachment(two.map(|_| ()).unwrap_err());
        assert!(matches!(taken, AttachmentError::MemoryInUse { .. }), "{taken}");
        assert_eq!(cx.detach(one)?.await?, [5; 8]);
        Ok(())
    });
}

#[test]
fn a_region_with_attached_memory_is_not_destroyed_before_that_is_detached() {
    run(async |cx| {
        let cells = cx.region::<Cell>(2)?;
        let attached = cx.attach_vec(&cells, Cell::value, vec![1, 2])?;
        let refused = attachment(cx.destroy_region(&cells).unwrap_err());
        assert!(matches!(refused, AttachmentError::StillAttached { .. }), "{refused}");
        let detached = cx.detach(attached)?;
        cx.destroy_region(&cells)?;
        assert_eq!(detached.await?, [1, 2]);
        Ok(())
    });
}

#[test]
fn data_that_the_task_has_mapped_is_neither_attached_nor_detached() {
    run(async |cx| {
        let cells = cx.region::<Cell>(2)?;
        let mapping = cx.map_read(&cells, Cell::value).await?;
        let refused = cx.attach_vec(&cells, Cell::value, vec![1, 2]);
        assert!(matches!(refused, Err(Error::MappedByParent { .. })), "{refused:?}");
        drop(mapping);
        let attached = cx.attach_vec(&cells, Cell::value, vec![1, 2])?;
        let mapping = cx.map_read(&cells, Cell::value).await?;
        let refused = cx.detach(attached);
        assert!(matches!(refused, Err(Error::MappedByParent { .. })), "{refused:?}");
        // The memory was left to the region.
        assert_eq!(mapping.to_vec(), [1, 2]);
        drop(mapping);
        assert_eq!(cx.launch(sum(&cells)).await?, 3);
        Ok(())
    });
}

type Given = Arc<Mutex<Option<Attached<Vec<i64>>>>>;

#[task]
async fn attach_inside(cx: &Context, #[writes(value)] cells: Region<Cell>) -> Result<Vec<i64>> {
    let attached = cx.attach_vec(&cells, Cell::value, vec![5; 4])?;
    cx.launch(add(&cells, 1));
    let values = cx.detach(attached)?.await?;
    drop(cx.attach_vec(&cells, Cell::value, vec![20; 4])?);
    cx.launch(add(&cells, 3));
    Ok(values)
}

#[task]
async fn detach_inside(cx: &Context, #[writes(value)] cells: Region<Cell>, given: Given) -> Result<()> {
    let attached = given.lock().unwrap().take().unwrap();
    cx.launch(add(&cells, 1));
    let refused = attachment(cx.detach(attached).unwrap_err());
    assert!(matches!(refused, AttachmentError::AttachedElsewhere { .. }), "{refused}");
    Ok(())
}

#[task]
async fn make(cx: &Context, given: Given) -> Result<Region<Cell>> {
    let cells = cx.region::<Cell>(4)?;
    *given.lock().unwrap() = Some(cx.attach_vec(&cells, Cell::value, vec![7; 4])?);
    Ok(cells)
}

#[test]
fn a_task_attaches_memory_to_what_it_was_given_or_has_made() {
    run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        cx.fill(&cells, Cell::value, 1)?;
        // What it leaves to the region stays with the caller.
        assert_eq!(cx.launch(attach_inside(&cells)).await?, [6; 4]);
        assert_eq!(cx.launch(sum(&cells)).await?, 92);

        let given = Given::default();
        *given.lock().unwrap() = Some(cx.attach_vec(&cells, Cell::value, vec![3; 4])?);
        cx.launch(detach_inside(&cells, Arc::clone(&given))).await?;
        assert_eq!(cx.launch(sum(&cells)).await?, 16);

        let made = cx.launch(make(Arc::clone(&given))).await?;
        cx.launch(add(&made, 1));
        let attached = given.lock().unwrap().take().unwrap();
        assert_eq!(cx.detach(attached)?.await?, [8; 4]);
        Ok(())
    });
}

#[task]
async fn attach_and_leave(cx: &Context, #[writes(value)] cells: Region<Cell>, given: Given) -> Result<()> {
    *given.lock().unwrap() = Some(cx.attach_vec(&cells, Cell::value, vec![7; 4])?);
    Ok(())
}

/// Maps tasks that launch with their launcher's data, or with instances of their own.
#[derive(Clone)]
struct Either {
    is_virtual: bool,
}

impl Mapper for Either {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        _: usize,
        _: ProcessorId,
        _: usize,
        _: &dyn MappingContext,
    ) -> RequirementMapping {
        match self.is_virtual && task.name == "attach_and_leave" {
            true => RequirementMapping::Virtual,
            false => InstanceChoice::in_memory(MemoryId(0)).into(),
        }
    }
}

#[test]
fn what_a_task_attaches_to_data_that_it_was_given_it_detaches_itself_whatever_the_mapper_decides() {
    for is_virtual in [false, true] {
        let runtime = Runtime::builder().workers(2).mapper(Either { is_virtual }).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let (cells, given) = (cx.region::<Cell>(4)?, Given::default());
            cx.launch(attach_and_leave(&cells, Arc::clone(&given))).await?;
            let refused = attachment(cx.destroy_region(&cells).unwrap_err());
            assert!(matches!(refused, AttachmentError::StillAttached { .. }), "{refused}");
            let attached = given.lock().unwrap().take().unwrap();
            let refused = attachment(cx.detach(attached).unwrap_err());
            assert!(matches!(refused, AttachmentError::AttachedElsewhere { .. }), "{refused}");
            // It was left to the region.
            assert_eq!(cx.launch(sum(&cells)).await?, 28);
            cx.destroy_region(&cells)
        });
        outcome.unwrap();
    }
}

#[test]
fn memory_that_is_full_does_not_take_attached_values_away() {
    let runtime = Runtime::builder().machine(two_memories(2000)).mapper(ByTag).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?;
        let attached = cx.attach_vec(&cells, Cell::value, vec![1; 100])?;
        for round in 0..20 {
            // Each fills the small memory anew: copies of the attached values go, and regions that nothing names.
            assert_eq!(cx.launch(sum(&cells).tag(1)).await?, 100 + 100 * round);
            let scratch = cx.region::<Cell>(200)?;
            cx.launch(number(&scratch, 1).tag(1)).await?;
            drop(scratch);
            cx.launch(add(&cells, 1));
        }
        cx.detach(attached)?.await
    });
    assert_eq!(outcome.unwrap(), [21; 100]);
}

#[test]
fn memory_of_the_programs_counts_where_it_is_attached_and_no_longer() {
    let runtime = Runtime::builder().machine(Machine::uniform(1, 4096)).build().unwrap();
    let used = || runtime.memories()[0].used;
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?;
        let attached = cx.attach_vec(&cells, Cell::value, vec![1; 200])?;
        assert_eq!(used(), 800);
        let others = cx.region::<Cell>(450)?;
        let refused = cx.launch(number(&others, 1)).await;
        assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
        cx.detach(attached)?.await?;
        cx.launch(number(&others, 1)).await?;
        // It is there, whether there is room or not.
        drop(cx.attach_vec(&cells, Cell::value, vec![1; 100])?);
        assert!(used() > 4096);
        assert_eq!(cx.launch(sum(&cells)).await?, 100);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn what_another_task_attaches_leaves_recordings_of_other_regions_as_they_are() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let (looped, blocks) = (cx.region::<Cell>(8)?, cx.region::<Cell>(8)?);
        let turn = |step| {
            cx.trace("turn", |cx| {
                cx.launch(number(&looped, step));
                cx.launch(add(&looped, 1));
            });
        };
        let mut recorded = 0;
        for step in 0..40 {
            turn(step);
            if step == 9 {
                cx.execution_fence().await?;
                recorded = runtime.statistics().recordings;
            }
            if step >= 9 {
                let attached = cx.attach_vec(&blocks, Cell::value, vec![step; 8])?;
                cx.launch(add(&blocks, 1));
                assert_eq!(cx.detach(attached)?.await?, [step + 1; 8]);
            }
        }
        cx.execution_fence().await?;
        assert!(recorded > 0);
        assert_eq!(runtime.statistics().recordings, recorded);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn what_is_recorded_of_attached_memory_proves_that_it_was_right() {
    for seed in 0..40 {
        let runtime = Runtime::builder()
            .machine(two_memories(1 << 20))
            .mapper(RandomMapper::new(seed))
            .record_operations(true)
            .build()
            .unwrap();
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(8)?;
            let halves = cells.partition(2).equal()?;
            let mut results: Vec<(Vec<i64>, Vec<i64>)> = Vec::new();
            for round in 0..4 {
                let all = cx.attach_vec(&halves.piece(round % 2)?, Cell::value, vec![round; 4])?;
                let table: Arc<[i64]> = vec![2 * round; 8].into();
                let other = cx.attach_read_only(&cells, Cell::other, table)?;
                cx.index_launch(2, add(&halves, 1));
                let sums = cx.index_launch(2, sum_both(&halves)).all().await?;
                cx.index_launch(2, contribute(&halves, 5));
                cx.launch(number(&halves.piece(0)?, 3));
                let first = cx.detach(all)?;
                drop(cx.detach(other)?);
                results.push((first.await?, sums));
            }
            Ok(results)
        });
        check(&runtime.take_record()).unwrap();
        let found = outcome.unwrap();
        let mut model = [0_i64; 8];
        for (round, (values, sums)) in (0..4).zip(found) {
            let half = (round % 2) as usize * 4;
            model[half..half + 4].fill(round);
            model.iter_mut().for_each(|value| *value += 1);
            let sum = |half: usize| model[half..half + 4].iter().sum::<i64>() + 8 * round;
            assert_eq!(sums, [sum(0), sum(4)], "seed {seed}");
            model.iter_mut().for_each(|value| *value += 5);
            (0..4).for_each(|point| model[point] = 3 + point as i64);
            assert_eq!(values, model[half..half + 4], "seed {seed}");
            model[half..half + 4].fill(0);
        }
    }
}

#[test]
fn any_value_that_is_a_slice_can_be_read_in_place() {
    run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        let array = cx.attach_read_only(&cells, Cell::value, [1_i64, 2, 3, 4])?;
        assert_eq!(cx.launch(sum(&cells)).await?, 10);
        assert_eq!(cx.detach(array)?.await?, [1, 2, 3, 4]);
        static TABLE: [i64; 5] = [9; 5];
        drop(cx.attach_read_only(&cells, Cell::value, &TABLE)?);
        assert_eq!(cx.launch(sum(&cells)).await?, 36);
        Ok(())
    });
}

#[test]
fn each_piece_has_memory_of_its_own() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(12)?;
        let quarters = cells.partition(4).equal()?;
        let vector = |color: maniple::AnyPoint| vec![color.coords()[0]; 3];
        let attached = cx.attach_pieces(&quarters, Cell::value, vector)?;
        let again = attachment(cx.attach_vec(&cells, Cell::value, vec![0; 12]).unwrap_err());
        assert!(matches!(again, AttachmentError::AlreadyAttached { .. }), "{again}");
        cx.index_launch(4, add(&quarters, 10));
        let detached = cx.detach_pieces(attached)?.await?;
        for (number, (color, values)) in (0..).zip(&detached) {
            assert_eq!((color.coords(), &values[..]), (&[number][..], &[10 + number; 3][..]));
        }
        assert_eq!(detached.len(), 4);
        assert_eq!((cx.launch(sum(&cells)).await?, runtime.statistics().bytes_copied), (0, 0));

        // Only some points, and pieces of different sizes; the rest stays as it was.
        cx.fill(&cells, Cell::value, 1)?;
        let some = cells.partition_into(2.into(), vec![Rect::from(0..1).into(), Rect::from(4..9).into()])?;
        let attached = cx.attach_pieces(&some, Cell::value, |color| vec![7; 1 + 4 * color.coords()[0] as usize])?;
        assert_eq!(cx.launch(sum(&cells)).await?, 48);
        let detached = cx.detach_pieces(attached.discard())?.await?;
        assert_eq!(detached[1].1.len(), 5);
        assert_eq!(cx.launch(sum(&cells)).await?, 6);

        let aliased = cells.tiles([6], [1])?;
        let refused = attachment(cx.attach_pieces(&aliased, Cell::value, |_| vec![0; 8]).unwrap_err());
        assert!(matches!(refused, AttachmentError::Aliased { .. }), "{refused}");
        let refused = attachment(cx.attach_pieces(&some, Cell::value, |_| vec![0; 2]).unwrap_err());
        assert!(matches!(refused, AttachmentError::TooShort { .. }), "{refused}");
        Ok(())
    });
    outcome.unwrap();
}
