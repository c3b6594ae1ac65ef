//! A library: solves linear systems with a matrix that has 2 on its diagonal and -1 beside it, by conjugate gradients.
//!
//! Its users see [`solve`] and [`install`]. Its tasks name a mapper of the library's own, so that they are mapped with
//! the library's knowledge of them, whatever mapper the program has; and its regions are made, used and destroyed
//! within the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple::mapper::{DefaultMapper, Mapper, MappingContext, TaskInfo, TaskMapping};
use maniple::prelude::*;
use maniple::{Field, Partition, Region, RuntimeBuilder};

/// The name of the library's mapper.
const MAPPER: &str = "solver";

/// So many tasks work side by side.
const PIECES: usize = 4;

/// The count of points that the library's mapper was asked to map, for programs that want to know.
#[derive(Clone, Default)]
pub struct Asked(Arc<AtomicU64>);

impl Asked {
    /// How many points of the library's tasks it has mapped.
    pub fn points(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Knows the library's tasks: all of them are on the critical path, so that they go before the program's, and each
/// works on a piece, for which it has an instance.
#[derive(Clone)]
struct SolverMapper {
    inner: DefaultMapper,
    asked: Asked,
}

impl Mapper for SolverMapper {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        self.asked.0.fetch_add(1, Ordering::Relaxed);
        TaskMapping { priority: 10, ..self.inner.map_task(task, context) }
    }
}

/// Gives a runtime that is being built the library's mapper.
pub fn install(builder: RuntimeBuilder) -> (RuntimeBuilder, Asked) {
    let asked = Asked::default();
    let mapper = SolverMapper { inner: DefaultMapper::piecewise(), asked: asked.clone() };
    (builder.mapper_named(MAPPER, mapper), asked)
}

#[derive(Fields)]
struct Row {
    x: f64,
    residual: f64,
    direction: f64,
    product: f64,
}

#[task(leaf, mapper = "solver")]
fn begin(#[discards(x, residual, direction)] rows: Piece<Row>, right: Arc<Vec<f64>>) -> f64 {
    let mut square = 0.0;
    for row in rows.points() {
        let value = right[row[0] as usize];
        (rows.x[row], rows.residual[row], rows.direction[row]) = (0.0, value, value);
        square += value * value;
    }
    square
}

/// Multiplies the direction by the matrix, and gives the part of their product that is the piece's.
#[task(leaf, mapper = "solver")]
fn multiply(#[reads(direction)] around: Piece<Row>, #[discards(product)] rows: Piece<Row>) -> f64 {
    let direction = |row: i64| around.direction.get(row).unwrap_or(0.0);
    let mut dot = 0.0;
    for row in rows.points() {
        rows.product[row] = 2.0 * direction(row[0]) - direction(row[0] - 1) - direction(row[0] + 1);
        dot += direction(row[0]) * rows.product[row];
    }
    dot
}

#[task(leaf, mapper = "solver")]
fn step(
    #[reads(direction, product)]
    #[writes(x, residual)]
    rows: Piece<Row>,
    length: f64,
) -> f64 {
    let mut square = 0.0;
    for row in rows.points() {
        rows.x[row] += length * rows.direction[row];
        rows.residual[row] -= length * rows.product[row];
        square += rows.residual[row] * rows.residual[row];
    }
    square
}

#[task(leaf, mapper = "solver")]
fn turn(
    #[reads(residual)]
    #[writes(direction)]
    rows: Piece<Row>,
    share: f64,
) {
    rows.points().for_each(|row| rows.direction[row] = rows.residual[row] + share * rows.direction[row]);
}

/// Solves the system for a right side, and puts the solution into a field of the program's. The steps that it took.
///
/// # Errors
/// The runtime's; and [`Error::Application`] if the program's region has other rows than the right side.
pub async fn solve<F>(cx: &Context, right: Vec<f64>, (into, field): (&Region<F>, Field<F, f64>)) -> Result<usize> {
    let length = right.len();
    if into.volume() != length as u64 {
        return Err(Error::application(format!("{into:?} has no {length} rows")));
    }
    let rows = cx.region::<Row>(length)?;
    let pieces = rows.partition(PIECES.min(length)).equal()?;
    let steps = iterate(cx, right, &rows, &pieces).await?;
    cx.copy(rows.field(Row::x), into.field(field));
    cx.destroy_region(rows)?;
    Ok(steps)
}

async fn iterate(cx: &Context, right: Vec<f64>, rows: &Region<Row>, pieces: &Partition<Row>) -> Result<usize> {
    let (colors, most) = (pieces.colors(), 2 * right.len());
    let around = rows.around(pieces, [1])?;
    let mut square = cx.index_launch(colors, begin(pieces, Arc::new(right))).reduce(Sum);
    for steps in 0..most {
        if square.clone().await? < 1e-18 {
            return Ok(steps);
        }
        // The lengths are futures: nothing waits for them but the tasks that use them.
        let dot = cx.index_launch(colors, multiply(&around, pieces)).reduce(Sum);
        let length = square.zip_with(&dot, |square, dot| square / dot);
        let next = cx.index_launch(colors, step(pieces, &length)).reduce(Sum);
        let share = next.zip_with(&square, |next, square| next / square);
        cx.index_launch(colors, turn(pieces, &share));
        square = next;
    }
    Ok(most)
}
