//! `.npy` files that are the places of values.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple::prelude::*;
use maniple::{AnyRect, Complex64, File, FileError, FileError::Differs, Machine, Partition};
use maniple_files::Order;
use maniple_files::npy::header_of;

#[derive(Fields)]
struct Cell {
    value: i32,
    wave: Complex64,
    trio: [u8; 3],
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell, 2>, what: i32) {
    cells.points().for_each(|point| cells.value[point] += what);
}

#[task(leaf)]
fn check(#[reads(value)] cells: Piece<Cell, 2>, first: i32) {
    for point in cells.points() {
        assert_eq!(cells.value[point], number(point) + first);
    }
}

#[task(leaf)]
fn fail(#[writes(value)] _cells: Piece<Cell, 2>) -> Result<()> {
    Err(Error::application("it fails"))
}

const ROWS: i64 = 13;
const COLUMNS: i64 = 7;

fn number(point: Point<2>) -> i32 {
    (point[0] * 100_000 + point[1]) as i32
}

/// A folder of the test's own, which is removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("arrays-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("array.npy")
    }

    fn with(bytes: &[u8]) -> Self {
        let folder = Self::new();
        fs::write(folder.file(), bytes).unwrap();
        folder
    }

    fn names(&self) -> Vec<String> {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The bytes that NumPy would store.
fn array(order: Order, big_endian: bool, first: i32) -> Vec<u8> {
    let descr = if big_endian { ">i4" } else { "<i4" };
    let mut bytes = header_of(descr, order, &[ROWS as u64, COLUMNS as u64]).unwrap();
    let mut put = |row, column| {
        let value = number(Point([row, column])) + first;
        bytes.extend(if big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
    };
    match order {
        Order::Rows => (0..ROWS).for_each(|row| (0..COLUMNS).for_each(|column| put(row, column))),
        Order::Columns => (0..COLUMNS).for_each(|column| (0..ROWS).for_each(|row| put(row, column))),
    }
    bytes
}

fn grid(cx: &Context) -> Result<maniple::Region<Cell, 2>> {
    Ok(cx.region_over::<Cell, 2>(Rect::from_shape([ROWS, COLUMNS]))?.named("grid"))
}

fn run<T>(program: impl AsyncFnOnce(&Context) -> Result<T>) -> Result<T> {
    Runtime::builder().workers(2).build().unwrap().run(program)
}

#[test]
fn an_array_is_read_and_written_in_the_order_and_bytes_in_which_it_is_stored() {
    for (order, big_endian) in
        [(Order::Rows, false), (Order::Rows, true), (Order::Columns, false), (Order::Columns, true)]
    {
        let folder = Folder::with(&array(order, big_endian, 0));
        run(async |cx| {
            let grid = grid(cx)?;
            let tiles = grid.blocks([4, 3])?;
            let file = cx.attach_file(&grid, Cell::value, File::npy(folder.file()).read_write())?;
            cx.index_launch(tiles.colors(), check(&tiles, 0)).await?;
            cx.index_launch(tiles.colors(), add(&tiles, 5));
            cx.detach_file(file)?.await?;
            // The same, piece by piece.
            let file = cx.attach_file_pieces(&tiles, Cell::value, File::npy(folder.file()).read_write())?;
            cx.launch(check(&grid, 5)).await?;
            cx.index_launch(tiles.colors(), add(&tiles, 2));
            cx.detach_file_pieces(file).await?;
            let file = cx.attach_file_pieces(&tiles, Cell::value, File::npy(folder.file()).read_write())?;
            cx.launch(add(&grid, 9));
            cx.detach_file_pieces(file.discard()).await
        })
        .unwrap();
        assert!(fs::read(folder.file()).unwrap() == array(order, big_endian, 7), "{order:?} {big_endian}");
    }
}

#[test]
fn an_array_is_made_that_numpy_would_have_stored_and_not_before_it_is_whole() {
    for order in [Order::Rows, Order::Columns] {
        let folder = Folder::new();
        run(async |cx| {
            let grid = grid(cx)?;
            let created = || match order {
                Order::Rows => File::npy(folder.file()).create(),
                Order::Columns => File::npy(folder.file()).create().columns(),
            };
            let source = cx.attach_vec(&grid, Cell::value, grid.space().points().map(number).collect())?;
            let copy = self::grid(cx)?;
            let copied = copy.blocks([5, 5])?;
            // Not written: discarded, and of a task that fails.
            drop(cx.detach_file(cx.attach_file(&copy, Cell::value, created())?.discard())?);
            let failing = cx.attach_file_pieces(&copied, Cell::value, created())?;
            cx.launch(fail(&copy));
            assert!(cx.detach_file_pieces(failing).await.is_err());
            cx.execution_fence().await?;
            assert!(!folder.file().exists());
            for pieces in [false, true] {
                match pieces {
                    false => {
                        let file = cx.attach_file(&copy, Cell::value, created())?;
                        cx.copy(grid.field(Cell::value), copy.field(Cell::value));
                        cx.detach_file(file)?.await?;
                    }
                    true => {
                        let file = cx.attach_file_pieces(&copied, Cell::value, created())?;
                        cx.copy(grid.field(Cell::value), copy.field(Cell::value));
                        cx.detach_file_pieces(file).await?;
                    }
                }
                assert!(fs::read(folder.file()).unwrap() == array(order, cfg!(target_endian = "big"), 0));
                fs::write(folder.file(), "before").unwrap();
            }
            // It is left as it was.
            let file = cx.attach_file(&copy, Cell::value, created())?;
            assert_eq!(folder.names().len(), 2, "{:?}", folder.names());
            cx.launch(fail(&copy));
            assert!(cx.detach_file(file)?.await.is_err());
            cx.detach(source)?.await?;
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read(folder.file()).unwrap(), b"before");
        assert_eq!(folder.names(), ["array.npy"]);
    }
}

#[test]
fn a_part_of_an_array_is_attached_where_the_file_is_said_to_have_more() {
    let folder = Folder::with(&array(Order::Rows, false, 0));
    run(async |cx| {
        let whole = Rect::from_shape([ROWS, COLUMNS]);
        let file = || File::npy(folder.file()).within(whole);
        let part = cx.region_over::<Cell, 2>(Rect::new([3, 2], [6, 4]))?;
        let attached = cx.attach_file(&part, Cell::value, file().read_write())?;
        cx.launch(check(&part, 0)).await?;
        cx.launch(add(&part, 40));
        cx.detach_file(attached)?.await?;
        // What is there is not read.
        let row = cx.region_over::<Cell, 2>(Rect::new([0, 0], [0, COLUMNS - 1]))?;
        let attached = cx.attach_file(&row, Cell::value, file().write_only())?;
        cx.launch(add(&row, 1));
        cx.detach_file(attached)?.await?;
        let outside = cx.region_over::<Cell, 2>(Rect::new([3, 2], [ROWS, 4]))?;
        let refused = cx.attach_file(&outside, Cell::value, file()).unwrap_err().to_string();
        assert!(refused.contains("give another to `File::within`"), "{refused}");
        let line = cx.region::<Cell>(10)?;
        let refused = cx.attach_file(&line, Cell::value, file());
        assert!(matches!(refused, Err(Error::File(FileError::NotWithin { .. }))), "{refused:?}");
        Ok(())
    })
    .unwrap();
    let bytes = fs::read(folder.file()).unwrap();
    let values: Vec<i32> = bytes[bytes.len() - (4 * ROWS * COLUMNS) as usize..]
        .chunks_exact(4)
        .map(|value| i32::from_le_bytes(value.try_into().unwrap()))
        .collect();
    for (point, value) in Rect::from_shape([ROWS, COLUMNS]).points().zip(values) {
        let expected = match point {
            Point([0, _]) => 1,
            Point([3..=6, 2..=4]) => number(point) + 40,
            _ => number(point),
        };
        assert_eq!(value, expected, "{point:?}");
    }
}

/// Attaches an array of other bytes to the grid.
fn refused(bytes: &[u8], file: impl Fn(File) -> File) -> FileError {
    let folder = Folder::with(bytes);
    let found = run(async |cx| {
        let grid = grid(cx)?;
        let tiles = grid.blocks([5, 5])?;
        let pieces = cx.attach_file_pieces(&tiles, Cell::value, file(File::npy(folder.file())));
        let whole = cx.attach_file(&grid, Cell::value, file(File::npy(folder.file())));
        let (Err(Error::File(pieces)), Err(Error::File(whole))) = (pieces, whole) else { panic!("it is attached") };
        assert_eq!(pieces.to_string(), whole.to_string());
        // What was refused is not attached.
        drop(cx.attach_file(&grid, Cell::value, File::raw(folder.file()).write_only().create())?);
        Ok(whole)
    });
    found.unwrap()
}

#[test]
fn an_array_that_is_not_the_fields_is_refused_with_what_was_expected_and_what_was_found() {
    let any = |file: File| file;
    let header = |descr: &str, order, shape: &[u64]| {
        let mut bytes = header_of(descr, order, shape).unwrap();
        bytes.resize(bytes.len() + 8 * shape.iter().product::<u64>() as usize, 0);
        bytes
    };
    let shape = [ROWS as u64, COLUMNS as u64];
    for descr in ["<i8", "<f4", "|u1", "<u4", "|i4", "|S4"] {
        let Differs { what: "elements of type", expected, found, .. } =
            refused(&header(descr, Order::Rows, &shape), any)
        else {
            panic!("{descr}")
        };
        assert!(expected.starts_with("'<i4'") && found.contains(descr), "{expected} {found}");
    }
    for shape in [&[COLUMNS as u64, ROWS as u64][..], &[91], &[13, 7, 1], &[], &[13, 0]] {
        let problem = refused(&header("<i4", Order::Rows, shape), any);
        let Differs { what: "the shape", expected, .. } = &problem else { panic!("{shape:?}: {problem}") };
        assert_eq!(expected, "(13, 7)");
        assert!(problem.to_string().contains("of region `grid` needs (13, 7)"), "{problem}");
    }
    let Differs { what: "its elements", expected, found, .. } =
        refused(&array(Order::Rows, false, 0), |file| file.columns())
    else {
        panic!("the order is another")
    };
    assert_eq!((&expected[..], &found[..]), ("by columns", "by rows"));
    assert!(matches!(refused(&array(Order::Columns, false, 0), |file| file.rows()), Differs { .. }));
    // Broken files.
    let whole = array(Order::Rows, false, 0);
    let cut = refused(&whole[..whole.len() - 1], any);
    assert!(matches!(cut, FileError::TooShort { end, found, .. } if end == found + 1), "{cut}");
    for bytes in [&whole[..50], b"", b"PK\x03\x04", b"no array at all"] {
        let problem = refused(bytes, any);
        assert!(matches!(problem, FileError::Npy { .. }), "{problem}");
    }
}

#[test]
fn values_that_numpy_does_not_have_are_refused_and_complex_numbers_are_not() {
    let folder = Folder::new();
    run(async |cx| {
        let line = cx.region::<Cell>(3)?;
        let made = cx.attach_file(&line, Cell::wave, File::npy(folder.file()).create())?;
        cx.detach_file(made)?.await?;
        assert_eq!(&fs::read(folder.file()).unwrap()[..30], &header_of("<c16", Order::Rows, &[3]).unwrap()[..30]);
        let refused = cx.attach_file(&line, Cell::trio, File::npy(folder.file()).create());
        let Err(Error::File(problem @ FileError::NotNumbers { .. })) = refused else { panic!("{refused:?}") };
        assert!(problem.to_string().contains("`[u8; 3]` have no type in .npy files"), "{problem}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_is_no_regular_file_is_neither_replaced_nor_waited_for() {
    let folder = Folder::new();
    fs::create_dir(folder.file()).unwrap();
    let pipe = folder.file().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    run(async |cx| {
        let line = cx.region::<Cell>(3)?;
        for path in [folder.file(), pipe.clone(), PathBuf::from("/dev/null")] {
            for file in [File::npy(&path).create(), File::npy(&path), File::raw(&path), File::raw(&path).write_only()] {
                let refused = cx.attach_file(&line, Cell::value, file);
                assert!(matches!(refused, Err(Error::File(FileError::NotRegular { .. }))), "{refused:?}");
            }
        }
        let refused = cx.attach_file(&line, Cell::value, File::npy("/no/such/folder/x.npy").create());
        assert!(matches!(refused, Err(Error::File(FileError::System { action: "create", .. }))), "{refused:?}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn arrays_of_no_points_and_of_one_are_made_and_read() {
    for rows in [0, 1] {
        let folder = Folder::new();
        run(async |cx| {
            let area = Rect::from_shape([rows, 1]);
            let cells = cx.region_over::<Cell, 2>(area)?;
            let one: Partition<Cell, 2> = cells.blocks([1, 1])?;
            let file = cx.attach_file_pieces(&one, Cell::value, File::npy(folder.file()).create())?;
            cx.launch(add(&cells, 3));
            cx.detach_file_pieces(file).await?;
            let file = cx.attach_file(&cells, Cell::value, File::npy(folder.file()))?;
            cx.launch(check(&cells, 3)).await?;
            cx.detach_file(file)?.await
        })
        .unwrap();
    }
}

#[test]
fn values_of_files_count_in_memory_and_make_room_for_themselves() {
    const LENGTH: i64 = 1 << 15;
    let folder = Folder::new();
    let runtime = Runtime::builder().machine(Machine::uniform(2, 3 * 4 * LENGTH as u64)).build().unwrap();
    runtime
        .run(async |cx| {
            let whole: AnyRect = Rect::from_shape([8, LENGTH]).into();
            let file = || File::npy(folder.file()).within(whole);
            let lines: Vec<_> = (0..8)
                .map(|line| cx.region_over::<Cell, 2>(Rect::new([line, 0], [line, LENGTH - 1])))
                .collect::<Result<_>>()?;
            cx.detach_file(cx.attach_file(&lines[0], Cell::value, file().create())?)?.await?;
            for line in &lines {
                let attached = cx.attach_file(line, Cell::value, file().write_only())?;
                cx.launch(add(line, 1));
                cx.detach_file(attached)?.await?;
                // A copy that nothing needs: the next line takes its place.
                cx.launch(add(line, 5)).await?;
                cx.invalidate(line, Cell::value)?;
            }
            // Values that were given up are, once that has its turn.
            cx.execution_fence().await?;
            let held: Vec<_> =
                lines[..3].iter().map(|line| cx.attach_file(line, Cell::value, file())).collect::<Result<_>>()?;
            let without_room = cx.attach_file(&lines[3], Cell::value, file())?;
            let refused = cx.detach_file(without_room)?.await;
            assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
            for file in held {
                cx.detach_file(file)?.await?;
            }
            drop(cx.attach_file(&lines[3], Cell::value, file())?);
            // Larger than memory can be.
            let huge = cx.region_over::<Cell, 2>(Rect::from_shape([1 << 40, 1 << 20]))?;
            for file in [File::npy(folder.file()), File::npy(folder.file()).create()] {
                assert!(cx.attach_file(&huge, Cell::value, file).is_err());
            }
            Ok(())
        })
        .unwrap();
    let peak = runtime.memories()[0].peak;
    assert!(peak <= 3 * 4 * LENGTH as u64 && peak >= 2 * 4 * LENGTH as u64, "{peak}");
}
