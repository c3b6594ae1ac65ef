//! A stencil out of core: on a file of twice the memory that the runtime is given, block by block, with files that are
//! read ahead and written behind.
//!
//! Run it with `cargo run -p maniple --example out_of_core`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use maniple::prelude::*;
use maniple::{AttachedFile, Detached, File, IndexSpace, Machine, Partition};

const ROWS: i64 = 2048;
const COLUMNS: i64 = 512;
/// Rows of a block.
const HEIGHT: i64 = 128;
const BLOCKS: i64 = ROWS / HEIGHT;

/// Bytes of a file, and of all that may be in memory.
const FILE: u64 = (ROWS * COLUMNS * 8) as u64;
const MEMORY: u64 = FILE / 2;

#[derive(Fields)]
struct Point2 {
    before: f64,
    after: f64,
}

/// The value of a point in the first file, so that the result is known.
fn value(row: i64, column: i64) -> f64 {
    ((row * 31 + column * column) % 1009) as f64
}

#[task(leaf)]
fn make(#[discards(before)] block: Piece<Point2, 2>) {
    block.points().for_each(|at| block.before[at] = value(at[0], at[1]));
}

/// Adds the four neighbours. Those above and below the block are in rows of other blocks, of which there are none at
/// the rim.
#[task(leaf)]
fn add_neighbours(
    #[reads(before)] above: Piece<Point2, 2>,
    #[reads(before)] here: Piece<Point2, 2>,
    #[reads(before)] below: Piece<Point2, 2>,
    #[discards(after)] sum: Piece<Point2, 2>,
) {
    let at = |row: i64, column: i64| {
        let point = Point([row, column]);
        let found = here.before.get(point).or_else(|| above.before.get(point)).or_else(|| below.before.get(point));
        found.unwrap_or(0.0)
    };
    for point in sum.points() {
        let (row, column) = (point[0], point[1]);
        sum.after[point] = at(row - 1, column) + at(row + 1, column) + at(row, column - 1) + at(row, column + 1);
    }
}

#[task(leaf)]
fn count_wrong(#[reads(after)] block: Piece<Point2, 2>) -> u64 {
    let at = |row: i64, column: i64| {
        let is_there = (0..ROWS).contains(&row) && (0..COLUMNS).contains(&column);
        if is_there { value(row, column) } else { 0.0 }
    };
    let expected = |row, column| at(row - 1, column) + at(row + 1, column) + at(row, column - 1) + at(row, column + 1);
    block.points().filter(|&point| block.after[point] != expected(point[0], point[1])).count() as u64
}

/// A grid in blocks, and the two files that have its fields.
struct Blocks {
    blocks: Partition<Point2, 2>,
    /// The last row of the block before, and the first of the block behind.
    above: Partition<Point2, 2>,
    below: Partition<Point2, 2>,
    before: PathBuf,
    after: PathBuf,
}

impl Blocks {
    fn new(cx: &Context, folder: &Path) -> Result<Self> {
        let grid = cx.region_over::<Point2, 2>(Rect::from_shape([ROWS, COLUMNS]))?;
        let row = |row: i64| match (0..ROWS).contains(&row) {
            true => Rect::new([row, 0], [row, COLUMNS - 1]).into(),
            false => IndexSpace::empty(),
        };
        Ok(Self {
            blocks: grid
                .partition(BLOCKS as usize)
                .by(|block| Rect::new([block[0] * HEIGHT, 0], [(block[0] + 1) * HEIGHT - 1, COLUMNS - 1]).into())?,
            above: grid.partition(BLOCKS as usize).by(|block| row(block[0] * HEIGHT - 1))?,
            below: grid.partition(BLOCKS as usize).by(|block| row((block[0] + 1) * HEIGHT))?,
            before: folder.join("before.npy"),
            after: folder.join("after.npy"),
        })
    }

    /// A file of the whole grid: what is attached to a block is that block's part of it.
    fn file(path: &Path) -> File {
        File::npy(path).within(Rect::from_shape([ROWS, COLUMNS]))
    }

    fn read(&self, cx: &Context, block: i64) -> Result<AttachedFile> {
        cx.attach_file(&self.blocks.piece(block)?, Point2::before, Self::file(&self.before))
    }

    /// The first block makes the file, the others write their parts of it.
    fn to_write(path: &Path, block: i64) -> File {
        if block == 0 { Self::file(path).create() } else { Self::file(path).write_only() }
    }
}

async fn program(cx: &Context, folder: &Path) -> Result<u64> {
    let grid = Blocks::new(cx, folder)?;
    for block in 0..BLOCKS {
        let piece = grid.blocks.piece(block)?;
        let file = cx.attach_file(&piece, Point2::before, Blocks::to_write(&grid.before, block))?;
        cx.launch(make(&piece));
        cx.detach_file(file)?.await?;
    }

    // Of the first file three blocks are there at a time, and the next one is read while one is computed; of the second
    // file, one is written meanwhile.
    let mut reading = VecDeque::from([grid.read(cx, 0)?]);
    let mut writing: VecDeque<Detached<()>> = VecDeque::new();
    for block in 0..BLOCKS {
        if block + 1 < BLOCKS {
            reading.push_back(grid.read(cx, block + 1)?);
        }
        let piece = grid.blocks.piece(block)?;
        let file = cx.attach_file(&piece, Point2::after, Blocks::to_write(&grid.after, block))?;
        cx.launch(add_neighbours(&grid.above.piece(block)?, &piece, &grid.below.piece(block)?, &piece));
        writing.push_back(cx.detach_file(file)?);
        if block > 0
            && let Some(read) = reading.pop_front()
        {
            cx.detach_file(read)?.await?;
        }
        // Only the first one: the file takes its place when that is written.
        if block == 0 || writing.len() > 1 {
            writing.pop_front().expect("one is written").await?;
        }
    }
    for file in reading {
        cx.detach_file(file)?.await?;
    }
    for file in writing {
        file.await?;
    }

    let mut wrong = 0;
    for block in 0..BLOCKS {
        let piece = grid.blocks.piece(block)?;
        let file = cx.attach_file(&piece, Point2::after, Blocks::file(&grid.after))?;
        wrong += cx.launch(count_wrong(&piece)).await?;
        cx.detach_file(file)?.await?;
    }
    Ok(wrong)
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("maniple-out-of-core-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Error::application)?;
    let runtime = Runtime::builder().machine(Machine::uniform(2, MEMORY)).build()?;
    let wrong = runtime.run(async |cx| program(cx, &folder).await);
    std::fs::remove_dir_all(&folder).map_err(Error::application)?;

    let (peak, copied) = (runtime.memories()[0].peak, runtime.statistics().bytes_copied);
    println!("{FILE} bytes a file, at most {peak} of {MEMORY} in memory at a time, {copied} copied");
    assert_eq!(wrong?, 0);
    // Only the rows beside each block are copied.
    assert!(peak <= MEMORY && copied <= (2 * BLOCKS * COLUMNS * 8) as u64);
    Ok(())
}
