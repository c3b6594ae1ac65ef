//! Whether the checker of records means anything where launches were replayed: it finds nothing wrong with what the
//! graphs of traces do, and everything wrong with what is made wrong on purpose.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple::mapper::DefaultMapper;
use maniple::prelude::*;
use maniple::record::{Record, check};
use maniple_tests::mutation::Mutation;
use maniple_tests::naive;

#[derive(Fields)]
struct Cell {
    value: i64,
    sum: i64,
}

#[task(leaf)]
fn spread(#[reads(value)] cells: Piece<Cell>, #[reduces(Sum, sum)] near: Piece<Cell>) {
    let sum: i64 = cells.points().map(|point| cells.value[point]).sum();
    near.points().for_each(|point| near.sum.fold(point, sum % 97));
}

#[task(leaf)]
fn gather(
    #[reads(sum)]
    #[writes(value)]
    cells: Piece<Cell>,
) -> i64 {
    cells.points().for_each(|point| cells.value[point] = (cells.value[point] + cells.sum[point]) % 1009);
    cells.points().map(|point| cells.value[point]).sum()
}

#[task(leaf)]
fn look(#[reads(value)] cells: Piece<Cell>, factor: i64) -> i64 {
    cells.points().map(|point| factor * cells.value[point]).sum()
}

/// A loop of which most steps are replayed, with something of everything: contributions in buffers, copies, results, a
/// step that is left in the middle, launches between.
async fn program(cx: &Context) -> Result<()> {
    let cells = cx.region::<Cell>(8)?;
    let (tiles, near) = (cells.blocks([4])?, cells.tiles([4], [1])?);
    cx.fill(&cells, Cell::value, 7)?;
    let mut factor = cx.launch(look(&cells, 1));
    for step in 0..9 {
        factor = cx.trace("step", |cx| {
            cx.index_launch(tiles.colors(), spread(&tiles, &near));
            let sum = cx.index_launch(tiles.colors(), gather(&tiles)).reduce(Sum);
            if step == 7 { sum } else { cx.index_launch(tiles.colors(), look(&near, &sum)).reduce(Sum) }
        });
        if step % 4 == 3 {
            factor = cx.launch(look(&cells, &factor));
        }
    }
    factor.await?;
    Ok(())
}

/// Mutations of each kind of each record.
const MUTATIONS: usize = 5;

fn records() -> impl Iterator<Item = Record> {
    [DefaultMapper::new(), DefaultMapper::piecewise()].into_iter().map(|mapper| {
        let runtime = Runtime::builder().workers(2).mapper(mapper).record_operations(true).build().unwrap();
        runtime.run(program).unwrap();
        let record = runtime.take_record();
        assert!(record.replayed.len() > 40, "{:?}", runtime.statistics());
        record
    })
}

#[test]
fn the_checker_notices_of_replays_too_what_a_look_at_every_pair_and_point_notices() {
    let (mut random, mut noticed) = (Rng::with_seed(7), BTreeMap::new());
    for record in records() {
        assert_eq!(check(&record).err(), None);
        assert_eq!(naive::verdict(&record), Ok(()));
        for mutation in Mutation::ALL {
            for mutated in (0..MUTATIONS).filter_map(|_| mutation.of(&record, &mut random)) {
                let (found, expected) = (check(&mutated), naive::verdict(&mutated));
                assert_eq!(found.is_err(), expected.is_err(), "{mutation:?}: {found:?}, by points {expected:?}");
                *noticed.entry(mutation).or_insert(0) += u64::from(found.is_err());
            }
        }
    }
    for mutation in Mutation::ALL {
        assert!(noticed[&mutation] > 0, "{noticed:?}");
    }
}
