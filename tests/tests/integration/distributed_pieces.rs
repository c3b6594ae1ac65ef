//! Partitions that are found in the data of programs on several nodes: each node knows the pieces that it uses, and no
//! others.

use std::sync::Arc;

use maniple::prelude::*;
use maniple::space::Rect;
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{Error, Requirement};
use maniple_tests::nodes::{Nodes, on_nodes};
use maniple_tests::scattered::{CELLS, COLORS, Cell, color, count, gather, next, parts, scatter, total};

/// How many pieces are known here.
fn known(partition: &Partition<Cell>) -> usize {
    partition.logical().partitioning().known_pieces().count()
}

/// The values and sums after so many steps, by an array alone.
fn expected(steps: usize) -> i64 {
    let (mut values, mut sums): (Vec<i64>, Vec<i64>) = ((0..CELLS).collect(), vec![0; CELLS as usize]);
    for _ in 0..steps {
        for cell in 0..CELLS {
            sums[cell as usize] += values[next(cell) as usize];
        }
        for cell in 0..CELLS {
            values[next(cell) as usize] += sums[cell as usize] % 1000;
        }
    }
    values.iter().map(|value| value * 3).sum::<i64>() + sums.iter().sum::<i64>()
}

#[test]
fn a_node_knows_the_pieces_that_it_uses_and_no_others() {
    for nodes in [1, 2, 3, 8] {
        let outcomes = on_nodes(Nodes::new(nodes), async |cx, _| {
            let (_, own, reached) = parts(cx).await?;
            assert_eq!((known(&own), known(&reached)), (0, 0), "nobody uses them yet");
            for _ in 0..12 {
                cx.index_launch(0..COLORS, gather(&own, &reached));
                cx.index_launch(0..COLORS, scatter(&own, &reached));
            }
            let sum: i64 = cx.index_launch(0..COLORS, total(&own)).reduce(Sum).await?;
            Ok((sum, known(&own), known(&reached)))
        });
        for outcome in outcomes {
            let (sum, own, reached) = outcome.unwrap();
            assert_eq!(sum, expected(12), "{nodes} nodes");
            let share = (COLORS as usize).div_ceil(nodes);
            assert!(own <= share && reached <= share, "{own} and {reached} of {COLORS} pieces on one of {nodes} nodes");
        }
    }
}

#[test]
fn who_asks_for_a_piece_that_is_elsewhere_gets_it() {
    let outcomes = on_nodes(Nodes::new(3), async |cx, runtime| {
        let (cells, own, reached) = parts(cx).await?;
        // On one node alone: no other node has to do anything for that.
        if runtime.node() == 1 {
            for number in 0..COLORS {
                let expected: Vec<i64> = (0..CELLS).filter(|&cell| color(cell) == number).collect();
                let points = |piece: &Region<Cell>| piece.space().points().map(|point| point[0]).collect::<Vec<_>>();
                assert_eq!(points(&own.piece(number)?), expected);
                let mut named: Vec<i64> = expected.into_iter().map(next).collect();
                named.sort_unstable();
                named.dedup();
                assert_eq!(points(&reached.piece(number)?), named);
            }
        }
        cx.index_launch(0..COLORS, gather(&own, &reached));
        let third: i64 = cx.launch(total(&own.piece(3)?)).await?;
        let all: i64 = cx.launch(total(&cells)).await?;
        Ok((third, all))
    });
    let values = |of: &dyn Fn(i64) -> bool| (0..CELLS).filter(|&cell| of(cell)).map(|cell| 3 * cell + next(cell)).sum();
    let expected: (i64, i64) = (values(&|cell| color(cell) == 3), values(&|_| true));
    outcomes.into_iter().for_each(|outcome| assert_eq!(outcome.unwrap(), expected));
}

#[test]
fn a_task_that_looks_at_a_piece_of_another_node_gets_it() {
    let outcomes = on_nodes(Nodes::new(2), async |cx, _| {
        let (_, own, _) = parts(cx).await?;
        let (all, color) = (own.clone(), own.parent().logical().fields().fields());
        let look = move |call: &maniple::task::LeafCall<'_>| -> Result<Value> {
            let other = COLORS - 1 - call.point().coords()[0];
            Ok(Value::new(all.piece(other)?.space().volume()))
        };
        let task = TaskDefinition::new("look").leaf(TaskOptions::default(), look);
        let task = task.codec(maniple::task::Codec::of::<u64>());
        let reads = Requirement::new(own.logical().clone(), color, maniple::Privilege::Read);
        let launch = TaskLauncher::new(&Arc::new(task)).requirement(reads).typed::<u64>();
        cx.index_launch(0..COLORS, launch).all().await
    });
    for outcome in outcomes {
        let volume = |number: i64| (0..CELLS).filter(|&cell| color(cell) == COLORS - 1 - number).count() as u64;
        assert_eq!(outcome.unwrap(), (0..COLORS).map(volume).collect::<Vec<_>>());
    }
}

#[test]
fn sets_of_pieces_are_computed_where_they_are() {
    for nodes in [1, 2, 5] {
        let outcomes = on_nodes(Nodes::new(nodes), async |cx, _| {
            let (cells, own, reached) = parts(cx).await?;
            let blocks = cells.partition(cx.colors(COLORS as usize)).equal()?;
            let few = cells.partition(2).by_coloring(&[(0, Rect::from(100..200)), (1, Rect::from(700..704))])?;
            let all = [
                own.union(&reached)?,
                own.intersection(&reached)?,
                reached.difference(&own)?,
                blocks.difference(&reached)?,
                own.intersection(&blocks)?,
                own.intersection_with_all(&few)?,
                reached.difference_from_all(&few)?,
                few.intersection_with_all(&own.difference(&reached)?)?,
            ];
            let mut counts = Vec::new();
            for partition in &all {
                let colors = partition.colors();
                counts.push(cx.index_launch(colors, count(partition)).all().await?);
            }
            if nodes > 1 {
                let is_known = |partition: &Partition<Cell>| partition.logical().partitioning().is_known();
                assert!(!all.iter().chain([&own, &reached]).any(is_known), "none was brought here as a whole");
            }
            let volumes = |partition: &Partition<Cell>| partition.pieces().map(|piece| piece.volume()).collect();
            Ok((counts, all.iter().map(volumes).collect::<Vec<Vec<u64>>>()))
        });
        let member = |number: i64, cell: i64| color(cell) == number;
        let named = |number: i64, cell: i64| (0..CELLS).any(|from| member(number, from) && next(from) == cell);
        let block = |number: i64, cell: i64| cell / (CELLS / COLORS) == number;
        let few = |cell: i64| (100..200).contains(&cell) || (700..704).contains(&cell);
        let of = |colors: i64, is_in: &dyn Fn(i64, i64) -> bool| -> Vec<u64> {
            (0..colors).map(|number| (0..CELLS).filter(|&cell| is_in(number, cell)).count() as u64).collect()
        };
        let expected = [
            of(COLORS, &|number, cell| member(number, cell) || named(number, cell)),
            of(COLORS, &|number, cell| member(number, cell) && named(number, cell)),
            of(COLORS, &|number, cell| named(number, cell) && !member(number, cell)),
            of(COLORS, &|number, cell| block(number, cell) && !named(number, cell)),
            of(COLORS, &|number, cell| member(number, cell) && block(number, cell)),
            of(COLORS, &|number, cell| member(number, cell) && few(cell)),
            of(COLORS, &|number, cell| named(number, cell) && !few(cell)),
            of(2, &|number, cell| {
                let is_in = if number == 0 { (100..200).contains(&cell) } else { (700..704).contains(&cell) };
                is_in && !named(color(cell), cell)
            }),
        ];
        for outcome in outcomes {
            let (counts, volumes) = outcome.unwrap();
            assert_eq!(counts, expected, "{nodes} nodes");
            assert_eq!(volumes, expected, "{nodes} nodes");
        }
    }
}

#[test]
fn partitions_of_found_pieces_are_found_without_bringing_them() {
    let outcomes = on_nodes(Nodes::new(4), async |cx, _| {
        let (cells, own, reached) = parts(cx).await?;
        let again = cx.image(&cells, &reached, Cell::next).await?;
        let sources = cx.preimage(&cells, Cell::next, &own).await?;
        for partition in [&own, &reached, &again, &sources] {
            assert_eq!(known(partition), 0);
        }
        let count_of = async |partition: &Partition<Cell>| cx.index_launch(0..COLORS, count(partition)).all().await;
        Ok((count_of(&again).await?, count_of(&sources).await?))
    });
    // Each cell is pointed to by as many as point to its image: the function is a permutation, as 11 and 960 have no
    // divisor in common.
    let own = |number: i64| (0..CELLS).filter(|&cell| color(cell) == number).count() as u64;
    let expected: Vec<u64> = (0..COLORS).map(own).collect();
    outcomes.into_iter().for_each(|outcome| assert_eq!(outcome.unwrap(), (expected.clone(), expected.clone())));
}

#[test]
fn what_is_written_through_overlapping_pieces_is_refused_on_all_nodes_alike() {
    #[task(leaf)]
    fn clear(#[writes(value)] cells: Piece<Cell>) {
        cells.points().for_each(|cell| cells.value[cell] = 0);
    }
    let outcomes = on_nodes(Nodes::new(3), async |cx, _| {
        let (_, own, reached) = parts(cx).await?;
        let both = own.union(&reached)?;
        let refused = cx.index_launch(0..COLORS, clear(&both)).await.unwrap_err();
        // The job goes on.
        cx.index_launch(0..COLORS, clear(&own));
        let sum: i64 = cx.index_launch(0..COLORS, total(&own)).reduce(Sum).await?;
        Ok((refused.to_string(), sum))
    });
    for outcome in outcomes {
        let (refused, sum) = outcome.unwrap();
        assert!(refused.contains("`clear`") && refused.contains("value"), "{refused}");
        assert_eq!(sum, 0);
    }
}

#[test]
fn nodes_that_launch_over_other_pieces_are_told_so() {
    let outcomes = on_nodes(Nodes::new(3), async |cx, runtime| {
        let (_, own, reached) = parts(cx).await?;
        let of = if runtime.node() == 2 { &reached } else { &own };
        cx.index_launch(0..COLORS, count(of)).all().await
    });
    for outcome in outcomes {
        let error = outcome.unwrap_err();
        assert!(error.to_string().contains("launches task `count`"), "{error}");
    }
}

#[test]
fn a_node_that_finds_no_partition_where_others_do_ends_the_job() {
    let outcomes = on_nodes(Nodes::new(3), async |cx, runtime| {
        let (cells, own, _) = parts(cx).await?;
        if runtime.node() != 0 {
            cx.image(&cells, &own, Cell::next).await?;
        }
        cx.index_launch(0..COLORS, count(&own)).all().await
    });
    for outcome in outcomes {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::NodesDiffer { .. }), "{error}");
    }
}

#[test]
fn a_node_that_fails_while_others_wait_for_it_ends_the_job() {
    let outcomes = on_nodes(Nodes::new(3), async |cx, runtime| {
        let (_, own, reached) = parts(cx).await?;
        if runtime.node() == 1 {
            return Err(Error::application("node 1 has had enough".to_owned()));
        }
        cx.index_launch(0..COLORS, gather(&own, &reached)).await?;
        // Not here either.
        let volume: u64 = own.pieces().map(|piece| piece.volume()).sum();
        assert_eq!(volume, CELLS as u64);
        Ok(())
    });
    for outcome in outcomes {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("node 1 has had enough"), "{error}");
    }
}

#[test]
fn values_are_the_same_whatever_else_uses_the_region_between() {
    let run = |nodes: usize| {
        let outcomes = on_nodes(Nodes::new(nodes), async |cx, _| {
            let (cells, own, reached) = parts(cx).await?;
            let blocks = cells.partition(5).equal()?;
            let mut seen = Vec::new();
            for step in 0..6 {
                cx.index_launch(0..COLORS, gather(&own, &reached));
                cx.index_launch(0..COLORS, scatter(&own, &reached));
                match step % 3 {
                    0 => seen.push(cx.map_read(&cells, Cell::value).await?.to_vec()),
                    1 => cx.fill(&blocks.piece(2)?, Cell::value, step)?,
                    _ => {
                        let piece = own.piece(step)?;
                        let mut sums = cx.map_write(&piece, Cell::sum).await?;
                        piece.space().points().for_each(|cell| sums[cell] = 7);
                    }
                }
                seen.push(cx.index_launch(5, total(&blocks)).all().await?);
            }
            Ok(seen)
        });
        let mut outcomes: Vec<_> = outcomes.into_iter().map(|outcome: Result<_>| outcome.unwrap()).collect();
        let first = outcomes.pop().unwrap();
        assert!(outcomes.iter().all(|other| *other == first));
        first
    };
    let one = run(1);
    assert_eq!(one.len(), 8);
    for nodes in [2, 3, 7] {
        assert_eq!(run(nodes), one, "{nodes} nodes");
    }
}

#[test]
fn partitions_that_a_program_no_longer_has_are_not_kept_for_ever() {
    const ROUNDS: usize = 600;
    let outcomes = on_nodes(Nodes::new(2), async |cx, _| {
        let (cells, ..) = parts(cx).await?;
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            let own = cx.partition_by_field(&cells, Cell::color, cx.colors(COLORS as usize)).await?;
            cx.index_launch(0..COLORS, count(&own)).await?;
            all.push(Arc::downgrade(own.logical().partitioning()));
        }
        Ok(all.iter().filter(|partition| partition.strong_count() > 0).count())
    });
    for outcome in outcomes {
        let kept = outcome.unwrap();
        assert!(kept < ROUNDS / 2, "{kept} of {ROUNDS} are still there");
    }
}
