//! Files that are the places of values.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use maniple::prelude::*;
use maniple::{File, FileError, Machine};

#[derive(Fields)]
struct Cell {
    value: u64,
    other: u64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, what: u64) {
    cells.points().for_each(|point| cells.value[point] += what);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> u64 {
    cells.points().map(|point| cells.value[point]).sum()
}

/// A file of the test's own, which is removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(bytes: &[u8]) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("attached-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn of(values: impl Iterator<Item = u64>) -> Self {
        Self::new(&values.flat_map(u64::to_ne_bytes).collect::<Vec<u8>>())
    }

    fn values(&self) -> Vec<u64> {
        let bytes = fs::read(&self.0).unwrap();
        bytes.chunks_exact(8).map(|chunk| u64::from_ne_bytes(chunk.try_into().unwrap())).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn run<T>(program: impl AsyncFnOnce(&Context) -> Result<T>) -> Result<T> {
    Runtime::builder().workers(2).build().unwrap().run(program)
}

#[test]
fn a_file_is_read_where_tasks_need_it_and_written_when_it_is_detached() {
    // More than one chunk.
    const MANY: u64 = 3 << 20;
    let file = Scratch::of(0..MANY);
    run(async |cx| {
        let cells = cx.region::<Cell>(MANY as usize)?;
        let pieces = cells.partition(4).equal()?;
        let attached = cx.attach_file(&cells, Cell::value, File::raw(&file.0).read_write())?;
        assert_eq!(cx.index_launch(4, sum(&pieces)).reduce(Sum).await?, MANY * (MANY - 1) / 2);
        cx.index_launch(4, add(&pieces, 3));
        cx.detach_file(attached)?.await?;
        assert_eq!(cx.launch(sum(&cells)).await?, 0);
        Ok(())
    })
    .unwrap();
    assert!(file.values().into_iter().eq(3..MANY + 3));
}

#[test]
fn a_part_of_a_file_is_attached_and_the_rest_stays_as_it_is() {
    let file = Scratch::of(0..10);
    run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let halves = cells.partition(2).equal()?;
        let first = cx.attach_file(&halves.piece(0)?, Cell::value, File::raw(&file.0).at(8).read_write())?;
        let second = cx.attach_file(&halves.piece(1)?, Cell::value, File::raw(&file.0).at(48))?;
        assert_eq!(cx.launch(sum(&cells)).await?, 1 + 2 + 3 + 4 + 6 + 7 + 8 + 9);
        cx.launch(add(&cells, 100));
        cx.detach_file(first)?.await?;
        // It is read only.
        cx.detach_file(second)?.await?;
        Ok(())
    })
    .unwrap();
    assert_eq!(file.values(), [0, 101, 102, 103, 104, 5, 6, 7, 8, 9]);
}

#[test]
fn a_file_is_made_and_holds_what_the_region_has() {
    let file = Scratch::new(b"something that was there before, and is longer than what comes");
    run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        cx.fill(&cells, Cell::value, 7)?;
        let attached = cx.attach_file(&cells, Cell::value, File::raw(&file.0).create())?;
        cx.launch(add(&cells, 2));
        cx.detach_file(attached)?.await
    })
    .unwrap();
    assert_eq!((file.values(), fs::metadata(&file.0).unwrap().len()), (vec![2; 4], 32));
}

/// Blocks of this size are used again.
#[test]
fn memory_of_a_detached_file_has_nothing_of_it_for_the_next() {
    const MANY: u64 = 1 << 18;
    let (first, second, made) = (Scratch::of(1..=MANY), Scratch::of((0..MANY).map(|row| row * 3)), Scratch::new(b""));
    run(async |cx| {
        let cells = cx.region::<Cell>(MANY as usize)?;
        for file in [&first, &second, &first] {
            let attached = cx.attach_file(&cells, Cell::value, File::raw(&file.0))?;
            assert_eq!(cx.launch(sum(&cells)).await?, file.values().into_iter().sum());
            cx.detach_file(attached)?.await?;
        }
        let attached = cx.attach_file(&cells, Cell::value, File::raw(&made.0).create())?;
        cx.detach_file(attached)?.await
    })
    .unwrap();
    assert_eq!(made.values(), vec![0; MANY as usize]);
}

#[test]
fn a_file_that_is_discarded_or_dropped_is_not_written() {
    let file = Scratch::of(0..4);
    run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        let attached = cx.attach_file(&cells, Cell::value, File::raw(&file.0).read_write())?;
        cx.launch(add(&cells, 2));
        cx.detach_file(attached.discard())?.await?;
        drop(cx.attach_file(&cells, Cell::other, File::raw(&file.0).read_write())?);
        Ok(())
    })
    .unwrap();
    assert_eq!(file.values(), [0, 1, 2, 3]);
}

#[test]
fn a_file_that_is_missing_or_too_short_is_refused_with_what_to_do() {
    let file = Scratch::of(0..4);
    run(async |cx| {
        let cells = cx.region::<Cell>(4)?.named("cells");
        let missing = cx.attach_file(&cells, Cell::value, File::raw("/no/such/file"));
        let Err(Error::File(problem @ FileError::System { .. })) = &missing else { panic!("{missing:?}") };
        let message = problem.to_string();
        assert!(message.contains("open file `/no/such/file`") && message.contains("create the file"), "{message}");
        let short = cx.attach_file(&cells, Cell::value, File::raw(&file.0).at(8));
        let Err(Error::File(FileError::TooShort { offset: 8, end: 40, found: 32, .. })) = &short else {
            panic!("{short:?}")
        };
        // What was refused is not attached.
        let attached = cx.attach_file(&cells, Cell::value, File::raw(&file.0))?;
        cx.detach_file(attached)?.await
    })
    .unwrap();
}

/// A task that runs when it is let.
#[task(leaf)]
fn add_late(#[writes(value)] cells: Piece<Cell>, what: u64, gate: Gate) {
    gate.lock().unwrap().recv().unwrap();
    cells.points().for_each(|point| cells.value[point] += what);
}

type Gate = Arc<Mutex<mpsc::Receiver<()>>>;

fn gate() -> (mpsc::Sender<()>, Gate) {
    let (opener, gate) = mpsc::channel();
    (opener, Arc::new(Mutex::new(gate)))
}

fn file_error<T: std::fmt::Debug>(refused: Result<T>) -> FileError {
    match refused {
        Err(Error::File(problem)) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_to_be_written_to_a_file_before_is_read_from_it() {
    for (is_made, path_again) in [(false, false), (false, true), (true, false), (true, true)] {
        let file = Scratch::of(0..4);
        // Another path of the same file.
        let link = file.0.with_extension("link");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&file.0, &link).unwrap();
        let (opener, gate) = gate();
        run(async |cx| {
            let (a, b) = (cx.region::<Cell>(4)?, cx.region::<Cell>(4)?);
            let first = File::raw(&file.0);
            let first = if is_made { first.create() } else { first.read_write() };
            let first = cx.attach_file(&a, Cell::value, first)?;
            cx.launch(add_late(&a, 7, Arc::clone(&gate)));
            let written = cx.detach_file(first)?;
            let again = if path_again { &link } else { &file.0 };
            let second = cx.attach_file(&b, Cell::value, File::raw(again))?;
            let seen = cx.launch(sum(&b));
            assert!(!seen.is_ready() && !written.is_ready());
            opener.send(()).unwrap();
            assert_eq!(seen.await?, if is_made { 28 } else { 34 });
            written.await?;
            cx.detach_file(second)?.await
        })
        .unwrap();
        fs::remove_file(&link).unwrap();
    }
}

#[test]
fn what_is_read_from_a_file_is_what_it_had_there_in_the_program() {
    let file = Scratch::of(0..4);
    run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        let mut seen = Vec::new();
        // Nothing is awaited: each turn reads what the one before has written.
        for turn in 0..20 {
            let before = cx.attach_file(&cells, Cell::other, File::raw(&file.0))?;
            let attached = cx.attach_file(&cells, Cell::value, File::raw(&file.0).read_write())?;
            cx.launch(add(&cells, turn));
            drop(cx.detach_file(attached)?);
            drop(cx.copy_fields(&cells, &cells, &[(Cell::other.id(), Cell::value.id())]));
            seen.push(cx.launch(sum(&cells)));
            drop(cx.detach_file(before)?);
        }
        for (turn, seen) in seen.into_iter().enumerate() {
            let turn = turn as u64;
            assert_eq!(seen.await?, 6 + 2 * turn * turn.saturating_sub(1), "{turn}");
        }
        Ok(())
    })
    .unwrap();
    assert!(file.values().into_iter().eq((0..4).map(|at| at + 190)));
}

#[task]
async fn sum_of_file(cx: &Context, path: PathBuf) -> Result<u64> {
    let cells = cx.region::<Cell>(4)?;
    let attached = cx.attach_file(&cells, Cell::value, File::raw(path))?;
    let seen = cx.launch(sum(&cells)).await?;
    cx.detach_file(attached)?.await?;
    Ok(seen)
}

#[test]
fn a_task_reads_what_was_to_be_written_before_it_was_launched_and_waits_for_nothing_later() {
    let file = Scratch::of(0..4);
    let (opener, gate) = gate();
    run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        let attached = cx.attach_file(&cells, Cell::value, File::raw(&file.0).read_write())?;
        cx.launch(add_late(&cells, 7, Arc::clone(&gate)));
        let written = cx.detach_file(attached)?;
        let seen = cx.launch(sum_of_file(file.0.clone()));
        assert!(!seen.is_ready());
        opener.send(()).unwrap();
        assert_eq!(seen.await?, 34);
        written.await?;
        // What is written later waits for a task that was launched earlier and reads the file.
        let earlier = cx.launch(sum_of_file(file.0.clone()));
        let attached = cx.attach_file(&cells, Cell::value, File::raw(&file.0).read_write())?;
        cx.launch(add_all(&cells, &earlier));
        let written = cx.detach_file(attached)?;
        assert_eq!(earlier.await?, 34);
        written.await
    })
    .unwrap();
    assert!(file.values().into_iter().eq((0..4).map(|at| at + 41)));
}

#[task(leaf)]
fn add_all(#[writes(value)] cells: Piece<Cell>, what: u64) {
    cells.points().for_each(|point| cells.value[point] += what);
}

#[test]
fn what_one_attachment_is_going_to_write_no_other_writes() {
    let file = Scratch::of(0..10);
    run(async |cx| {
        let (a, b) = (cx.region::<Cell>(8)?, cx.region::<Cell>(8)?);
        let at = |offset| File::raw(&file.0).at(offset);
        let first = cx.attach_file(&a, Cell::value, at(0).read_write())?;
        for other in [at(0).read_write(), at(8).write_only(), File::raw(&file.0).create()] {
            let refused = file_error(cx.attach_file(&b, Cell::value, other));
            assert!(matches!(refused, FileError::InUse { .. }), "{refused}");
        }
        // It may be read, and so may what is apart be written.
        let read = cx.attach_file(&b, Cell::value, at(0))?;
        let (c, d) = (cx.region::<Cell>(2)?, cx.region::<Cell>(2)?);
        let apart = cx.attach_file(&c, Cell::value, at(64).read_write())?;
        cx.launch(add(&a, 1));
        cx.launch(add(&c, 100));
        drop(cx.detach_file(first)?);
        // It is detached, or is not going to be written.
        let first = cx.attach_file(&d, Cell::value, at(0).read_write())?.discard();
        let second = cx.attach_file(&a, Cell::value, at(0).read_write())?;
        cx.launch(add(&a, 1));
        cx.detach_file(second)?.await?;
        for file in [first, read, apart] {
            cx.detach_file(file)?.await?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(file.values(), [2, 3, 4, 5, 6, 7, 8, 9, 108, 109]);
}

#[test]
fn a_file_whose_place_another_has_taken_is_not_written_without_a_word() {
    let file = Scratch::of(0..4);
    run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        let attached = cx.attach_file(&cells, Cell::value, File::raw(&file.0).read_write())?;
        let other = Scratch::of(10..14);
        fs::rename(&other.0, &file.0).unwrap();
        let refused = file_error(cx.detach_file(attached)?.await);
        assert!(matches!(refused, FileError::Replaced { .. }), "{refused}");
        Ok(())
    })
    .unwrap();
    assert_eq!(file.values(), [10, 11, 12, 13]);
}

#[test]
fn a_file_waits_for_room_as_launches_do_and_takes_none_from_those_before_it() {
    const MANY: usize = 70;
    let file = Scratch::of(0..MANY as u64);
    for is_late in [false, true] {
        let runtime = Runtime::builder().machine(Machine::uniform(2, 1000)).build().unwrap();
        let (opener, gate) = gate();
        let outcome = runtime.run(async |cx| {
            let (a, b) = (cx.region::<Cell>(MANY)?, cx.region::<Cell>(MANY)?);
            let late = cx.launch(add_late(&a, 1, Arc::clone(&gate)));
            cx.invalidate(&a, Cell::value)?;
            if is_late {
                // It is mapped, and has its room.
                cx.mapping_fence().await?;
            }
            let attached = cx.attach_file(&b, Cell::value, File::raw(&file.0))?;
            let seen = cx.launch(sum(&b));
            opener.send(()).unwrap();
            late.await?;
            assert_eq!(seen.await?, (0..MANY as u64).sum::<u64>());
            cx.detach_file(attached)?.await
        });
        outcome.unwrap();
        assert!(runtime.memories()[0].peak <= 1000);
    }
}

#[test]
fn files_for_which_there_is_never_room_fail_those_who_need_them() {
    let file = Scratch::of(0..70);
    let runtime = Runtime::builder().machine(Machine::uniform(2, 1000)).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let (a, b) = (cx.region::<Cell>(70)?, cx.region::<Cell>(70)?);
        let first = cx.attach_file(&a, Cell::value, File::raw(&file.0))?;
        for file in [File::raw(&file.0), File::raw(&file.0).write_only()] {
            let second = cx.attach_file(&b, Cell::value, file)?;
            let seen = cx.launch(sum(&b)).await;
            assert!(matches!(seen, Err(Error::OutOfMemory { .. })), "{seen:?}");
            let refused = cx.detach_file(second)?.await;
            assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
        }
        assert_eq!(cx.launch(sum(&a)).await?, (0..70).sum::<u64>());
        cx.detach_file(first)?.await
    });
    outcome.unwrap();
    assert!(file.values().into_iter().eq(0..70));
}
