//! Tensors in levels, cut into the pieces of placements: the same as if each stored coordinate had been colored.
//! `sparse_traffic.rs` has where the pieces are.

use fastrand::Rng;
use maniple::space::{AnyPoint, Point};
use maniple::{LogicalPartition, Result};
use maniple_tensor::distributed::{LevelPieces, Tensor, check_placement};
use maniple_tensor::element::ElementType;
use maniple_tensor::format::{Format, Level, LevelExpression};
use maniple_tensor::machine::Machine;
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::placement::Placement;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

/// By order; of each kind of level there are some, in each place that it can have.
pub const FORMATS: [&[&str]; 4] = [
    &["{C}", "{C~o}", "{H}", "{B}", "{L}", "{E}", "(i) -> (i/4: C, i%4: B)", "(i) -> (i/2: H, i%2: D)"],
    &[
        "csr",
        "csc",
        "dcsr",
        "dcsc",
        "{C,D}",
        "{C<i64,i64>,C<i64,i64>}",
        "coo",
        "{C~u,S}(1,0)",
        "{C~u<i64,i64>,S<i64>}",
        "hash",
        "bitmap",
        "ell",
        "dia",
        "{D,L}",
        "{C,L}(1,0)",
        "{C~o,C~o}(1,0)",
        "{H,C}",
        "{D,H}(1,0)",
        "{B,C}",
        "{B,B}(1,0)",
        "{C,E}(1,0)",
        "{E,C}",
        "bcsr:2x3",
        "(i,j) -> (i+j: C, j: R)",
        "(i,j) -> (i-j: B, i: R)",
        "(i,j) -> (#i: D, i: D, j: S)",
        "(i,j) -> (#i: C, i: C~u, j: S)",
    ],
    &[
        "csf:3",
        "coo:3",
        "{D,C,C}(2,0,1)",
        "{C,D,C}(1,2,0)",
        "{D,D,C}",
        "{C,C,D}(2,1,0)",
        "{D,C,D}",
        "{D,B,C}",
        "{C,B,L}(1,0,2)",
        "{H,C,H}(2,0,1)",
        "{C,E,D}",
        "{C~u,S,C}",
    ],
    &[
        "coo:4",
        "{C,D,C,B}(3,1,0,2)",
        "csf:4",
        "{D,C,C,C}",
        "{D,D,C,C}(1,0,3,2)",
        "{D,B,H,C}(2,3,0,1)",
        "{H,C,E,D}",
        "{C,E,D,L}(2,1,3,0)",
        "{C~u,S,C,B}",
    ],
];

/// A tensor with random extents, of which between none and most elements are stored.
pub fn a_tensor(random: &mut Rng) -> (TensorVariable, SparseTensor<i64>) {
    let order = random.usize(1..=FORMATS.len());
    let most = [40, 9, 7, 4][order - 1];
    let extents: Vec<i64> = (0..order).map(|_| random.i64(1..most)).collect();
    let format: Format = FORMATS[order - 1][random.usize(..FORMATS[order - 1].len())].parse().unwrap();
    let mut entries = EntryList::new(order);
    let all = extents.iter().product::<i64>();
    let most = if random.bool() { all } else { all / 4 };
    let count = random.i64(0..=most);
    for number in 0..count {
        let at = extents.iter().map(|&extent| random.i64(0..extent)).collect::<Vec<_>>();
        entries.push(&at, if random.bool() { 7 } else { number + 1 });
    }
    let stored = pack(&format, &extents, 0, entries, Duplicates::Sum).unwrap().tensor;
    (TensorVariable::new("T", ElementType::I64, extents).stored(format), stored)
}

/// A position: that of the level above, and the coordinates that it stands for; none of a slot that has nothing.
type Position = (i64, std::ops::Range<i64>);

/// All positions of each level.
fn tree(stored: &SparseTensor<i64>) -> Vec<Vec<Position>> {
    let mut levels: Vec<Vec<Position>> = Vec::new();
    for (data, kind) in stored.levels().iter().zip(stored.format().levels()) {
        let above = levels.last().map_or(1, Vec::len);
        let number = |name: &str, at: usize| data.components.iter().find(|one| one.name == name).unwrap().array.get(at);
        let each = data.positions.checked_div(above).unwrap_or(0);
        let below = |parent: usize| match data.components.first() {
            Some(first) if first.name == "pos" => {
                first.array.get(parent) as usize..first.array.get(parent + 1) as usize
            }
            _ => parent * each..(parent + 1) * each,
        };
        let one = |at: i64| if data.bounds.contains(&at) { at..at + 1 } else { 0..0 };
        let coordinates = |parent: usize, position: usize| match kind {
            Level::Dense | Level::Bitmap | Level::Range => {
                one(data.bounds.start + (position - below(parent).start) as i64)
            }
            Level::RunLength if position == below(parent).start => 0..number("ends", position),
            Level::RunLength => number("ends", position - 1)..number("ends", position),
            _ => one(number("crd", position)),
        };
        let positions = (0..above)
            .flat_map(|parent| below(parent).map(move |position| (parent as i64, coordinates(parent, position))));
        let positions: Vec<Position> = positions.collect();
        assert_eq!(positions.len(), data.positions);
        levels.push(positions);
    }
    levels
}

/// For each level, the positions that belong to those of a level for which `is_own` holds: all below them, and above
/// all between the first and the last parent of neighbours.
fn colored(tree: &[Vec<Position>], level: usize, is_own: impl Fn(i64, &Position) -> bool) -> Vec<Vec<i64>> {
    let mut found = vec![Vec::new(); tree.len()];
    found[level] = (0..).zip(&tree[level]).filter(|(at, position)| is_own(*at, position)).map(|(at, _)| at).collect();
    for level in (1..=level).rev() {
        let parent = |at: i64| tree[level][at as usize].0;
        let mut above: Vec<i64> = Vec::new();
        for (number, &at) in found[level].iter().enumerate() {
            let follows = number > 0 && found[level][number - 1] + 1 == at;
            above.extend(if follows { parent(at - 1)..=parent(at) } else { parent(at)..=parent(at) });
        }
        above.sort_unstable();
        above.dedup();
        found[level - 1] = above;
    }
    for level in level + 1..tree.len() {
        let is_below = |(_, (parent, _)): &(i64, &Position)| found[level - 1].contains(parent);
        found[level] = (0..).zip(&tree[level]).filter(is_below).map(|(at, _)| at).collect();
    }
    found
}

/// The kind of the last level.
fn last_level(format: &Format) -> Level {
    format.levels()[format.levels().len() - 1]
}

/// The points of a piece.
fn points(partition: &LogicalPartition, piece: i64) -> Vec<i64> {
    let region = partition.piece(AnyPoint::from(Point([piece]))).unwrap();
    let space = region.space().space();
    (0..2000).filter(|&at| space.contains(Point([at]).into())).collect()
}

fn check(pieces: &LevelPieces, stored: &SparseTensor<i64>, piece: i64, expected: &[Vec<i64>], about: &str) {
    let sorted = |mut numbers: Vec<i64>| {
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    for (level, data) in stored.levels().iter().enumerate() {
        let root = vec![0];
        let above = level.checked_sub(1).map_or(&root, |above| &expected[above]);
        for component in &data.components {
            let expected = match component.name {
                // One more ends the last of neighbours.
                "pos" => sorted(above.iter().flat_map(|&at| [at, at + 1]).collect()),
                "used" => above.clone(),
                "bits" => sorted(expected[level].iter().map(|at| at / 64).collect()),
                _ => expected[level].clone(),
            };
            let found = points(pieces.component(level, component.name).unwrap(), piece);
            assert_eq!(found, expected, "piece {piece}, {} of level {level}, {about}", component.name);
        }
        let has = |name| data.components.iter().any(|component| component.name == name);
        assert_eq!(pieces.offsets(level).is_some(), has("pos"), "{about}");
        assert_eq!(pieces.coordinates(level).is_some(), has("crd") || has("ends"), "{about}");
    }
    assert_eq!(&points(pieces.values(), piece), expected.last().unwrap(), "piece {piece}, elements, {about}");
}

/// For each part, the first position of a level and the one after the last: equal parts, or of a bitmap words with as
/// many bits.
fn ends(stored: &SparseTensor<i64>, level: usize, parts: i64) -> Vec<(i64, i64)> {
    let (data, block) = (&stored.levels()[level], |count: i64| (count + parts - 1) / parts);
    let all = data.positions as i64;
    if stored.format().levels()[level] != Level::Bitmap {
        let length = block(all);
        return (0..parts).map(|part| ((part * length).min(all), ((part + 1) * length).min(all))).collect();
    }
    let bits = &data.components[0].array;
    let set: Vec<i64> = (0..all).filter(|at| bits.get((at / 64) as usize) as u64 >> (at % 64) & 1 == 1).collect();
    let begin = |part: i64| match set.get((part * block(set.len() as i64)) as usize) {
        _ if part == 0 => 0,
        // The first word of which all bits are in the part, or later ones.
        Some(at) if set.iter().any(|other| other / 64 == at / 64 && other < at) => ((at / 64 + 1) * 64).min(all),
        Some(at) => at / 64 * 64,
        None => all,
    };
    (0..parts).map(|part| (begin(part), if part + 1 == parts { all } else { begin(part + 1) })).collect()
}

/// 240 tensors, each cut in about six ways; for more, `MANIPLE_TESTS_COUNT=20000`, which takes some minutes if it is
/// optimised.
#[test]
fn pieces_are_those_of_a_coloring_of_what_is_stored() {
    let most = std::env::var("MANIPLE_TESTS_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(240_u64);
    // Jobs of so many tensors, which need little memory; most on one node, where a cut takes least.
    let jobs = (0..most).step_by(40).map(|first| first..most.min(first + 40));
    for (seeds, nodes) in jobs.zip([1, 2, 1, 3, 1, 4].into_iter().cycle()) {
        let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
            for seed in seeds.clone() {
                let mut random = Rng::with_seed(seed);
                let (variable, stored) = a_tensor(&mut random);
                let (format, tree) = (variable.format(), tree(&stored));
                let tensor = Tensor::from_sparse(cx, &variable, stored.clone())?;
                // What counts up to a number that nothing tells is not read back.
                if !format.to_string().contains("#i: D") {
                    let found = tensor.read_sparse::<i64>(cx).await?;
                    assert_eq!(found.entries(), stored.entries(), "seed {seed}: {format}");
                }
                let parts = random.i64(1..7);
                let machine: Machine = parts.to_string().parse().unwrap();
                let names: String = "xyzw".chars().take(variable.order()).collect();
                let name = |mode: usize| &names[mode..=mode];
                for (level, expression) in format.expressions().iter().enumerate() {
                    // Blocks are not cut.
                    let (mode, unit) = match *expression {
                        LevelExpression::Mode(mode) => (mode, 1),
                        LevelExpression::Block(mode, size) => (mode, size),
                        _ => continue,
                    };
                    let about = format!("seed {seed}: level {level} of {format} in {parts} parts");
                    let placement: Placement = format!("{names} -> ~{}", name(mode)).parse().unwrap();
                    let pieces = tensor.partition_levels(cx, &placement, &machine).await?;
                    for (part, (first, end)) in (0..).zip(ends(&stored, level, parts)) {
                        let own = |at: i64, _: &Position| (first..end).contains(&at);
                        check(&pieces, &stored, part + 1, &colored(&tree, level, own), &about);
                    }
                    assert!(points(pieces.values(), 0).is_empty());
                    let about = format!("seed {seed}: coordinates of level {level} of {format} in {parts} parts");
                    let units = |length: i64, unit: i64| (length + unit - 1) / unit;
                    let extent = units(variable.dimensions()[mode], unit);
                    let (block, dealt) = match random.bool() {
                        true => (units(extent, parts), name(mode).to_owned()),
                        false => {
                            let block = random.i64(1..4);
                            (units(block, unit), format!("cyclic({}, {block})", name(mode)))
                        }
                    };
                    let placement: Placement = format!("{names} -> {dealt}").parse().unwrap();
                    let pieces = tensor.partition_levels(cx, &placement, &machine).await?;
                    for part in 0..parts {
                        let own =
                            |_, (_, coordinates): &Position| coordinates.clone().any(|at| at / block % parts == part);
                        check(&pieces, &stored, part + 1, &colored(&tree, level, own), &format!("{about}, {dealt}"));
                    }
                }
                // The dimension that places along diagonals tell.
                if let ([diagonals, LevelExpression::Mode(mode)], Level::Range) =
                    (format.expressions(), last_level(format))
                {
                    let other = 1 - mode;
                    let about = format!("seed {seed}: dimension {other} of {format} in {parts} parts");
                    let extent = variable.dimensions()[other];
                    let (block, dealt) = match random.bool() {
                        true => ((extent + parts - 1) / parts, name(other).to_owned()),
                        false => (2, format!("cyclic({}, 2)", name(other))),
                    };
                    let placement: Placement = format!("{names} -> {dealt}").parse().unwrap();
                    let pieces = tensor.partition_levels(cx, &placement, &machine).await?;
                    for part in 0..parts {
                        let is_own = |_, (parent, place): &Position| {
                            let diagonal = tree[0][*parent as usize].1.start;
                            // The coordinate with which the place is on this diagonal.
                            (0..extent).any(|at| {
                                let coordinates = if other == 0 { [at, place.start] } else { [place.start, at] };
                                diagonals.value(&coordinates) == diagonal && at / block.max(1) % parts == part
                            })
                        };
                        check(&pieces, &stored, part + 1, &colored(&tree, 1, is_own), &format!("{about}, {dealt}"));
                    }
                    let placement: Placement = format!("{names} -> ~{}", name(other)).parse().unwrap();
                    let pieces = tensor.partition_levels(cx, &placement, &machine).await?;
                    for (part, (first, end)) in (0..).zip(ends(&stored, 1, parts)) {
                        let own = |at: i64, _: &Position| (first..end).contains(&at);
                        check(&pieces, &stored, part + 1, &colored(&tree, 1, own), &about);
                    }
                }
                // Two dimensions at once, along two of a grid that has copies and a face besides.
                let stored_in = |mode: usize| {
                    let stores = |expression: &LevelExpression| match *expression {
                        LevelExpression::Mode(of) if of == mode => Some(1),
                        LevelExpression::Block(of, size) if of == mode => Some(size),
                        _ => None,
                    };
                    let found = |(level, expression)| Some((level, stores(expression)?));
                    format.expressions().iter().enumerate().find_map(found)
                };
                let (one, other) = (random.usize(..variable.order()), random.usize(..variable.order()));
                if let (true, Some(first), Some(second)) = (one != other, stored_in(one), stored_in(other)) {
                    let both = [(one, first, parts), (other, second, random.i64(1..4))];
                    let (mut dealt, mut blocks) = (Vec::new(), Vec::new());
                    for (mode, (_, unit), parts) in both {
                        let units = |length: i64| (length + unit - 1) / unit;
                        let is_blocked = random.bool();
                        dealt.push(if is_blocked {
                            name(mode).to_owned()
                        } else {
                            format!("cyclic({}, 2)", name(mode))
                        });
                        let extent = units(variable.dimensions()[mode]);
                        blocks.push(if is_blocked { (extent + parts - 1) / parts } else { units(2) });
                    }
                    // Or along a grid inside of each processor of another.
                    let (inside, grid) = if random.bool() { ("", "x") } else { (&*format!("; {names} -> "), "/") };
                    let placement = format!("{names} -> {}*{inside}{}1", dealt[0], dealt[1]);
                    let about = format!("seed {seed}: {placement} of {format} in {parts}x{} parts", both[1].2);
                    let machine: Machine = format!("{parts}x2{grid}{}x2", both[1].2).parse().unwrap();
                    let placement: Placement = placement.parse().unwrap();
                    let pieces = tensor.partition_levels(cx, &placement, &machine).await?;
                    let innermost = first.0.max(second.0);
                    for part in 0..parts * both[1].2 {
                        let wanted = [part / both[1].2, part % both[1].2];
                        let is_own = |at: i64, _: &Position| {
                            (0..2).all(|cut| {
                                let (_, (level, _), parts) = both[cut];
                                // What is above.
                                let (mut here, mut above) = (innermost, at);
                                while here > level {
                                    (above, here) = (tree[here][above as usize].0, here - 1);
                                }
                                let coordinates = tree[level][above as usize].1.clone();
                                let block = blocks[cut].max(1);
                                { coordinates }.any(|at| at / block % parts == wanted[cut])
                            })
                        };
                        check(&pieces, &stored, part + 1, &colored(&tree, innermost, is_own), &about);
                    }
                    tensor.place_levels(cx, &placement, &machine).await?.await?;
                }
                let about = format!("seed {seed}: {format} in {parts} parts");
                let placement: Placement = format!("{names} -> f : ~f").parse().unwrap();
                let pieces = tensor.partition_levels(cx, &placement, &machine).await?;
                let last = tree.len() - 1;
                for (part, (first, end)) in (0..).zip(ends(&stored, last, parts)) {
                    let own = |at: i64, _: &Position| (first..end).contains(&at);
                    check(&pieces, &stored, part + 1, &colored(&tree, last, own), &about);
                }
                // All of it, twice.
                let placement: Placement = format!("{names} -> *").parse().unwrap();
                let pieces = tensor.partition_levels(cx, &placement, &machine).await?;
                let all: Vec<Vec<i64>> = tree.iter().map(|level| (0..level.len() as i64).collect()).collect();
                check(&pieces, &stored, 1, &all, &about);
                tensor.place_levels(cx, &placement, &machine).await?.await?;
            }
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
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
        for (format, placement, machine, told) in [
            (
                "csr",
                "xy -> x~y",
                "2x2",
                "A is stored as {D,C}(0,1), and `xy -> x~y` cuts it in a way that levels are not cut: cut it along one dimension of the grid",
            ),
            ("csr", "xy -> ~xy", "2x2", "`xy -> ~xy` cuts it"),
            ("csr", "xy -> x; xy -> x", "2/2", "`xy -> x; xy -> x` cuts it"),
            ("csr", "xyz -> x", "2", "`xyz -> x` names 3 dimensions, and the tensor has 2"),
        ] {
            let (placement, machine) = (placement.parse().unwrap(), machine.parse().unwrap());
            let placed = tensor(format).place_levels(cx, &placement, &machine).await;
            let error = placed.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(told), "{placement}: {error}");
            // That is known of the variable alone.
            let known = check_placement(&variable(format), &placement, &machine).unwrap_err().to_string();
            assert_eq!(known, error);
        }
        // So many rows have a part of the columns each.
        let many = TensorVariable::new("A", ElementType::I64, [1 << 20, 2, 1]).stored("{D,D,C}".parse().unwrap());
        let none = pack(many.format(), many.dimensions(), 0_i64, EntryList::new(3), Duplicates::Sum).unwrap().tensor;
        let none = Tensor::from_sparse(cx, &many, none)?;
        let cut = none.partition_levels(cx, &"xyz -> y".parse().unwrap(), &"2".parse().unwrap()).await;
        let error = cut.unwrap_err().to_string();
        assert!(error.contains("the pieces of A lie apart in more than 1048576 places"), "{error}");
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
