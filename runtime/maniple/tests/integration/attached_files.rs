//! Files that are the places of values.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple::prelude::*;
use maniple::{File, FileError};

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
