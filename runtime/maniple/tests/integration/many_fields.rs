//! Fields that are used together, singly, and together again.

use maniple::prelude::*;
use proptest::prelude::*;

#[derive(Fields)]
struct Cell {
    a: i64,
    b: i64,
    c: i64,
    d: i64,
}

#[task(leaf)]
fn all(#[writes(a, b, c, d)] cells: Piece<Cell>, amount: i64) {
    for point in cells.points() {
        cells.a[point] += amount;
        cells.b[point] += cells.a[point];
        cells.c[point] += cells.b[point];
        cells.d[point] += cells.c[point];
    }
}

#[task(leaf)]
fn first(#[discards(a)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|point| cells.a[point] = amount);
}

#[task(leaf)]
fn middle(
    #[reads(c)]
    #[writes(b)]
    cells: Piece<Cell>,
    amount: i64,
) {
    cells.points().for_each(|point| cells.b[point] = cells.c[point] - amount);
}

#[task(leaf)]
fn last(
    #[reads(a)]
    #[writes(d)]
    cells: Piece<Cell>,
    amount: i64,
) {
    cells.points().for_each(|point| cells.d[point] = amount - cells.a[point]);
}

/// Changes a row as a task of a step does.
fn step(row: &mut [i64; 4], task: usize, amount: i64) {
    let [a, b, c, d] = row;
    match task {
        0 => {
            *a += amount;
            *b += *a;
            *c += *b;
            *d += *c;
        }
        1 => *a = amount,
        2 => *b = *c - amount,
        _ => *d = amount - *a,
    }
}

const ROWS: usize = 12;

fn run(steps: &[(usize, usize, i64)]) -> Result<Vec<[i64; 4]>> {
    Runtime::builder().workers(2).build()?.run(async |cx| {
        let cells = cx.region::<Cell>(ROWS)?;
        let (halves, thirds) = (cells.partition(2).equal()?, cells.partition(3).equal()?);
        for &(task, place, amount) in steps {
            let piece = match place {
                0 => cells.clone(),
                1 | 2 => halves.piece(place as i64 - 1)?,
                _ => thirds.piece(place as i64 - 3)?,
            };
            cx.launch(match task {
                0 => all(&piece, amount),
                1 => first(&piece, amount),
                2 => middle(&piece, amount),
                _ => last(&piece, amount),
            });
        }
        let mut rows = vec![[0; 4]; ROWS];
        for (number, field) in [Cell::a, Cell::b, Cell::c, Cell::d].into_iter().enumerate() {
            let values = cx.map_read(&cells, field).await?;
            rows.iter_mut().enumerate().for_each(|(row, values_of)| values_of[number] = values[row as i64]);
        }
        Ok(rows)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn fields_keep_their_values_however_they_are_grouped(
        steps in prop::collection::vec((0..4_usize, 0..6_usize, -5..5_i64), 0..30),
    ) {
        let mut expected = vec![[0; 4]; ROWS];
        for &(task, place, amount) in &steps {
            let rows = match place {
                0 => 0..ROWS,
                1 | 2 => (place - 1) * 6..place * 6,
                _ => (place - 3) * 4..(place - 2) * 4,
            };
            expected[rows].iter_mut().for_each(|row| step(row, task, amount));
        }
        prop_assert_eq!(run(&steps).unwrap(), expected);
    }
}
