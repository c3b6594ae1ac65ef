//! Tensors in levels, cut into the pieces of placements: the same as if each stored coordinate had been colored, and each piece where its processor is.

use std::sync::Arc;

use fastrand::Rng;
use maniple::space::{AnyPoint, Point};
use maniple::{LogicalPartition, Result};
use maniple_tensor::distributed::{Computation as Distributed, LevelPieces, Tensor};
use maniple_tensor::element::ElementType;
use maniple_tensor::format::{Format, Level};
use maniple_tensor::machine::Machine;
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::placement::Placement;
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::assignment;

const FORMATS: [&[&str]; 3] = [
    &["{C}"],
    &["csr", "csc", "dcsr", "dcsc", "{C,D}", "{C<i64,i64>,C<i64,i64>}"],
    &["csf:3", "{D,C,C}(2,0,1)", "{C,D,C}(1,2,0)", "{D,D,C}", "{C,C,D}(2,1,0)", "{D,C,D}"],
];

/// A tensor with random extents, of which between none and most elements are stored.
fn a_tensor(random: &mut Rng) -> (TensorVariable, SparseTensor<i64>) {
    let order = random.usize(1..4);
    let extents: Vec<i64> = (0..order).map(|_| random.i64(1..9)).collect();
    let format: Format = FORMATS[order - 1][random.usize(..FORMATS[order - 1].len())].parse().unwrap();
    let mut entries = EntryList::new(order);
    let count = random.i64(0..=extents.iter().product::<i64>());
    for number in 0..count {
        entries.push(&extents.iter().map(|&extent| random.i64(0..extent)).collect::<Vec<_>>(), number);
    }
    let stored = pack(&format, &extents, 0, entries, Duplicates::Sum).unwrap().tensor;
    (TensorVariable::new("T", ElementType::I64, extents).stored(format), stored)
}

/// The positions of each level, with that of the level above and with the coordinate.
fn tree(stored: &SparseTensor<i64>) -> Vec<Vec<(i64, i64)>> {
    let mut above = 1;
    let mut levels = Vec::new();
    for (level, (data, kind)) in stored.levels().iter().zip(stored.format().levels()).enumerate() {
        let extent = stored.dimensions()[stored.format().order()[level]];
        let positions: Vec<(i64, i64)> = match kind {
            Level::Dense => (0..above).flat_map(|parent| (0..extent).map(move |at| (parent, at))).collect(),
            _ => {
                let (pos, crd) = (data.component("pos"), data.component("crd"));
                let below = |parent: i64| {
                    let range = pos.get(parent as usize)..pos.get(parent as usize + 1);
                    range.map(move |position| (parent, crd.get(position as usize)))
                };
                (0..above).flat_map(below).collect()
            }
        };
        above = positions.len() as i64;
        levels.push(positions);
    }
    levels
}

/// For each level, the positions that belong to those of a level for which `is_own` holds: all below them, and all between the first and the last above.
fn colored(tree: &[Vec<(i64, i64)>], level: usize, is_own: impl Fn(i64, i64) -> bool) -> Vec<Vec<i64>> {
    let mut found = vec![Vec::new(); tree.len()];
    found[level] =
        (0..).zip(&tree[level]).filter(|(at, (_, coordinate))| is_own(*at, *coordinate)).map(|(at, _)| at).collect();
    for level in (1..=level).rev() {
        let parents: Vec<i64> = found[level].iter().map(|at| tree[level][*at as usize].0).collect();
        found[level - 1] = match (parents.iter().min(), parents.iter().max()) {
            (Some(first), Some(last)) => (*first..=*last).collect(),
            _ => Vec::new(),
        };
    }
    for level in level + 1..tree.len() {
        let is_below = |(_, (parent, _)): &(i64, &(i64, i64))| found[level - 1].contains(parent);
        found[level] = (0..).zip(&tree[level]).filter(is_below).map(|(at, _)| at).collect();
    }
    found
}

/// The points of a piece.
fn points(partition: &LogicalPartition, piece: i64) -> Vec<i64> {
    let region = partition.piece(AnyPoint::from(Point([piece]))).unwrap();
    let space = region.space().space();
    (0..1000).filter(|&at| space.contains(Point([at]).into())).collect()
}

fn check(pieces: &LevelPieces, stored: &SparseTensor<i64>, piece: i64, expected: &[Vec<i64>], about: &str) {
    for (level, kind) in stored.format().levels().iter().enumerate() {
        let is_compressed = *kind != Level::Dense;
        assert_eq!(pieces.coordinates(level).is_some(), is_compressed, "{about}");
        if let (Some(coordinates), Some(offsets)) = (pieces.coordinates(level), pieces.offsets(level)) {
            assert_eq!(
                points(coordinates, piece),
                expected[level],
                "piece {piece}, coordinates of level {level}, {about}"
            );
            let ends = match level.checked_sub(1).map(|above| &expected[above]) {
                None => vec![0, 1],
                Some(above) => above.iter().copied().chain(above.last().map(|last| last + 1)).collect(),
            };
            assert_eq!(points(offsets, piece), ends, "piece {piece}, offsets of level {level}, {about}");
        }
    }
    assert_eq!(&points(pieces.values(), piece), expected.last().unwrap(), "piece {piece}, elements, {about}");
}

#[test]
fn pieces_are_those_of_a_coloring_of_what_is_stored() {
    for (nodes, seeds) in [(1, 0..60), (2, 60..90), (3, 90..110)] {
        let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
            for seed in seeds.clone() {
                let mut random = Rng::with_seed(seed);
                let (variable, stored) = a_tensor(&mut random);
                let (order, tree) = (variable.format().order().to_vec(), tree(&stored));
                let tensor = Tensor::from_sparse(cx, &variable, stored.clone())?;
                let parts = random.i64(1..7);
                let machine: Machine = parts.to_string().parse().unwrap();
                let names: String = "xyz".chars().take(order.len()).collect();
                let name = |mode: usize| &names[mode..=mode];
                let block = |count: i64| (count + parts - 1) / parts;
                for level in 0..order.len() {
                    let about = format!("seed {seed}: level {level} of {} in {parts} parts", variable.format());
                    let placement: Placement = format!("{names} -> ~{}", name(order[level])).parse().unwrap();
                    let pieces = tensor.partition_levels(cx, &placement, &machine).await?;
                    let length = block(tree[level].len() as i64);
                    for part in 0..parts {
                        let own = |at: i64, _| (part * length..(part + 1) * length).contains(&at);
                        check(&pieces, &stored, part + 1, &colored(&tree, level, own), &about);
                    }
                    assert!(points(pieces.values(), 0).is_empty());
                }
                let about = format!("seed {seed}: {} in {parts} parts", variable.format());
                let placement: Placement = format!("{names} -> f : ~f").parse().unwrap();
                let pieces = tensor.partition_levels(cx, &placement, &machine).await?;
                let (last, length) = (order.len() - 1, block(stored.values().len() as i64));
                for part in 0..parts {
                    let own = |at: i64, _| (part * length..(part + 1) * length).contains(&at);
                    check(&pieces, &stored, part + 1, &colored(&tree, last, own), &about);
                }
                let about = format!("seed {seed}: blocks of {} in {parts} parts", variable.format());
                let placement: Placement = format!("{names} -> {}", name(order[0])).parse().unwrap();
                let pieces = tensor.partition_levels(cx, &placement, &machine).await?;
                let length = block(variable.dimensions()[order[0]]);
                for part in 0..parts {
                    let own = |_, at: i64| (part * length..(part + 1) * length).contains(&at);
                    check(&pieces, &stored, part + 1, &colored(&tree, 0, own), &about);
                }
                // All of it, twice.
                let placement: Placement = format!("{names} -> *").parse().unwrap();
                let pieces = tensor.partition_levels(cx, &placement, &machine).await?;
                check(&pieces, &stored, 1, &colored(&tree, 0, |_, _| true), &about);
            }
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}

/// A product in blocks of rows, or in parts with as many elements, finds the matrix where it was placed so.
#[test]
fn what_is_placed_where_it_is_used_is_not_moved() {
    let (n, nodes) = (60_i64, 3);
    let spmv = assignment("y(i) = A(i,j) * x(j)", &[("y", "dense", &[n]), ("A", "csr", &[n, n]), ("x", "dense", &[n])]);
    let (variables, machine) = (spmv.tensors(), nodes.to_string().parse::<Machine>().unwrap());
    let loops = Computation::new(&spmv).unwrap();
    let rows = loops.statement().distribute(["i"], ["io"], ["ii"], &[nodes]).unwrap();
    let commands = "fuse(i, j, f); pos(f, p, A); divide(p, po, pi, 3); distribute(po)";
    let commands: maniple_tensor::schedule::Schedule = commands.parse().unwrap();
    let equal = commands.apply(loops.statement()).unwrap();
    let mut entries = EntryList::new(2);
    // Rows of very different lengths.
    (0..n).for_each(|row| (0..=row).for_each(|column| entries.push(&[row, column], row - column)));
    let a = Arc::new(pack(&"csr".parse().unwrap(), &[n, n], 0, entries, Duplicates::Sum).unwrap().tensor);
    for (statement, placement) in [(rows, "xy -> x"), (equal, "xy -> f : ~f")] {
        let plan = Arc::new(Plan::new(&statement).unwrap());
        let moved = on_nodes(Nodes::new(nodes as usize), async |cx, runtime| -> Result<[u64; 3]> {
            let tensors = async |is_placed: bool| -> Result<u64> {
                let y = Tensor::new(cx, &variables[0])?;
                let a = Tensor::from_sparse(cx, &variables[1], Arc::clone(&a))?;
                let x = Tensor::new(cx, &variables[2])?;
                x.write_elements(cx, vec![1_i64; n as usize])?;
                x.place(cx, &"x -> *".parse().unwrap(), &machine)?.await?;
                if is_placed {
                    a.place_levels(cx, &placement.parse().unwrap(), &machine).await?.await?;
                }
                let computation = Distributed::new(cx, &plan, &[&y, &a, &x]).await?;
                cx.execution_fence().await?;
                let before = runtime.statistics().parcel_bytes_received;
                computation.launch(cx)?.await?;
                cx.execution_fence().await?;
                let moved = runtime.statistics().parcel_bytes_received - before;
                let found: Vec<i64> = y.read_elements(cx).await?;
                assert!((0..n).zip(found).all(|(row, found)| found == row * (row + 1) / 2));
                Ok(moved)
            };
            let [without, with] = [tensors(false).await?, tensors(true).await?];
            let a = Tensor::from_sparse(cx, &variables[1], Arc::clone(&a))?;
            let place = async || a.place_levels(cx, &placement.parse().unwrap(), &machine).await?.await;
            place().await?;
            cx.execution_fence().await?;
            let before = runtime.statistics().parcel_bytes_received;
            place().await?;
            cx.execution_fence().await?;
            Ok([without, with, runtime.statistics().parcel_bytes_received - before])
        });
        let moved: Vec<[u64; 3]> = moved.into_iter().map(|moved| moved.unwrap()).collect();
        let sum = |of: usize| moved.iter().map(|moved| moved[of]).sum::<u64>();
        // Elements of rows that two points share are reduced on one node.
        let most = if placement == "xy -> x" { 0 } else { 2 * 2 * 8 };
        assert!(sum(0) > most && sum(1) <= most && sum(2) == 0, "{placement}: {moved:?}");
    }
}

#[test]
fn other_ways_to_cut_levels_are_refused() {
    let results = on_nodes(Nodes::new(1), async |cx, _| -> Result<()> {
        let variable =
            |format: &str| TensorVariable::new("A", ElementType::I64, [4, 6]).stored(format.parse().unwrap());
        let tensor = |format: &str| {
            let entries = EntryList::new(2);
            let stored = pack(variable(format).format(), &[4, 6], 0_i64, entries, Duplicates::Sum).unwrap().tensor;
            Tensor::from_sparse(cx, &variable(format), stored).unwrap()
        };
        let csr = tensor("csr");
        for (placement, machine, told) in [
            (
                "xy -> y",
                "2",
                "A is stored as {D,C}(0,1), and `xy -> y` cuts it in a way that levels are not cut: cut it along one dimension of the grid",
            ),
            ("xy -> cyclic(x)", "2", "`xy -> cyclic(x)` cuts it"),
            ("xy -> x~y", "2x2", "`xy -> x~y` cuts it"),
            ("xyz -> x", "2", "`xyz -> x` names 3 dimensions, and the tensor has 2"),
        ] {
            let placed = csr.place_levels(cx, &placement.parse().unwrap(), &machine.parse().unwrap()).await;
            let error = placed.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(told), "{placement}: {error}");
        }
        let two: Machine = "2".parse().unwrap();
        let dense = Tensor::new(cx, &variable("rows"))?;
        let error = dense.place_levels(cx, &"xy -> x".parse().unwrap(), &two).await.unwrap_err().to_string();
        assert!(error.contains("A is dense, and not in levels"), "{error}");
        let error = dense.place(cx, &"xy -> f : ~f".parse().unwrap(), &two).unwrap_err().to_string();
        assert!(error.contains("no rectangles of a dense tensor"), "{error}");
        // Where all is stored, these are blocks.
        dense.place(cx, &"xy -> ~x".parse().unwrap(), &two)?.await?;
        // Nothing is stored: nothing is moved.
        tensor("dcsr").place_levels(cx, &"xy -> x".parse().unwrap(), &two).await?.await?;
        tensor("dcsr").place_levels(cx, &"xy -> f : ~f".parse().unwrap(), &two).await?.await?;
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}
