//! `.npy` files whose pieces are read and written by several nodes.

use std::fs;

use maniple::prelude::*;
use maniple::{File, FileError, Runtime};
use maniple_files::npy::{NpyHeader, read_elements};
use maniple_tests::nodes::{Nodes, on_nodes};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn number(#[discards(value)] cells: Piece<Cell, 2>) {
    cells.points().for_each(|at| cells.value[at] = 1000 * at[0] + at[1]);
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell, 2>) {
    cells.points().for_each(|at| cells.value[at] += 7);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell, 2>) -> i64 {
    cells.points().map(|at| cells.value[at] * (at[0] + 3 * at[1] + 1)).sum()
}

const ROWS: i64 = 12;
const COLUMNS: i64 = 10;

fn elements(path: &std::path::Path) -> Vec<i64> {
    let mut file = fs::File::open(path).unwrap();
    let header = NpyHeader::read(&mut file).unwrap();
    read_elements::<i64>(&header, &mut file, None).unwrap().by_rows().elements
}

#[test]
fn each_node_reads_and_writes_its_pieces_of_an_array() {
    for nodes in [1, 2, 3, 5] {
        for columns in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("array.npy");
            let file = || if columns { File::npy(&path).columns() } else { File::npy(&path) };
            let seen = on_nodes(Nodes::new(nodes), async |cx: &Context, runtime: &Runtime| {
                let cells = cx.region_over::<Cell, 2>(Rect::from_shape([ROWS, COLUMNS]))?;
                let tiles = cells.blocks([5, 4])?;
                let attached = cx.attach_file_pieces(&tiles, Cell::value, file().create())?;
                cx.index_launch(tiles.colors(), number(&tiles));
                cx.detach_file_pieces(attached).await?;
                // All nodes have written, and none has another's values.
                let made = elements(&path);
                cx.per_node(()).all().await?;
                let attached = cx.attach_file_pieces(&tiles, Cell::value, file().read_write())?;
                cx.index_launch(tiles.colors(), add(&tiles));
                let total = cx.index_launch(tiles.colors(), sum(&tiles)).reduce(Sum).await?;
                cx.detach_file_pieces(attached).await?;
                assert_eq!(runtime.statistics().parcel_bytes_sent, 0);
                Ok((made, elements(&path), total))
            });
            let expected: Vec<i64> =
                Rect::from_shape([ROWS, COLUMNS]).points().map(|at| 1000 * at[0] + at[1]).collect();
            let added: Vec<i64> = expected.iter().map(|value| value + 7).collect();
            let weighted = Rect::from_shape([ROWS, COLUMNS]).points().zip(&added);
            let total: i64 = weighted.map(|(at, value)| value * (at[0] + 3 * at[1] + 1)).sum();
            for seen in seen {
                assert_eq!(seen.unwrap(), (expected.clone(), added.clone(), total), "on {nodes} nodes");
            }
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}

#[task(leaf)]
fn fail_on(#[point] point: Point<2>, #[writes(value)] _cells: Piece<Cell, 2>, bad: Point<2>) -> Result<()> {
    if point == bad { Err(Error::application("it is bad")) } else { Ok(()) }
}

#[test]
fn a_file_that_one_node_cannot_write_is_whole_on_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array.npy");
    fs::write(&path, "before").unwrap();
    let outcomes = on_nodes(Nodes::new(3), async |cx: &Context, _: &Runtime| {
        let cells = cx.region_over::<Cell, 2>(Rect::from_shape([ROWS, COLUMNS]))?;
        let tiles = cells.blocks([4, 10])?;
        let attached = cx.attach_file_pieces(&tiles, Cell::value, File::npy(&path).create())?;
        drop(cx.index_launch(tiles.colors(), fail_on(&tiles, Point([2, 0]))));
        Ok(cx.detach_file_pieces(attached).await)
    });
    let mut elsewhere = 0;
    for outcome in outcomes {
        // The failure of the task is the program's too; what the file's end was is seen where that did not come first.
        match outcome {
            Ok(Err(Error::File(FileError::OnNode { node, problem, .. }))) => {
                assert!(node == 2 && problem.contains("it is bad"), "{node}: {problem}");
                elsewhere += 1;
            }
            Ok(Ok(())) => panic!("it is whole"),
            Ok(Err(error)) | Err(error) => assert!(error.to_string().contains("it is bad"), "{error}"),
        }
    }
    assert!(elsewhere <= 2);
    assert_eq!(fs::read(&path).unwrap(), b"before");
}
