//! Lays a star of neighbours on every point of a grid, again and again: the stencil of the Parallel Research Kernels
//! (Van der Wijngaart and Mattson 2014).
//!
//! [`kernel`]: the arithmetic; [`tasks`]: the grid as a region, and what is computed; here: how the grid is cut into
//! tiles with halos, what is launched, and whether the result is right.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::Args;
use maniple::prelude::*;
pub use maniple_tasks::stencil::{kernel, tasks};

use self::tasks::{Cell, add_stars, copy_tile, largest_error, make_slope, raise};
use crate::error::{Error as AppError, Result as AppResult};
use crate::options::{MOST_PIECES, RuntimeOptions, default_from_command_line, positive, workers_of_job};
use crate::progress::Progress;
use crate::report::{ReportTable, amount, rate, scientific, seconds};
use crate::state::{Loaded, Saving, StateOptions, Subject};
use crate::verify::{is_within, worse};

/// The largest relative error that rounding can explain. A tile that sees a neighbour's values a step late is off by
/// more.
pub const TOLERANCE: f64 = 1e-8;

/// The long description of `maniple run stencil`, which its `--help` shows.
pub const ABOUT: &str = "\
Lay a star of neighbours on every point of a two-dimensional grid, again and again: the stencil of the Parallel Research Kernels.

A time step has two launches with a task for each tile of the grid: the first adds to each point's output a weighted sum of the inputs \
around it, up to RADIUS points away in the four directions; the second raises every input by one. The first reads a tile and a halo around it, \
which overlaps the neighbours' tiles; the second writes the tiles. From that alone the runtime knows which tasks must wait for which, and \
where memories are apart, what must be copied.

The input rises evenly to begin with, so the star's sum is known: after S steps every output is 2 S, but for a rim of RADIUS points that stays \
0. The largest relative difference is printed. A tile that saw its neighbour's values a step late would be far off.";

/// The examples that `maniple run stencil --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run stencil                               1000 x 1000 points
  maniple run stencil --size 4000 --steps 100       larger than the caches
  maniple run stencil --size 600x800 --tiles 3x4 --radius 4
  maniple run stencil --tiles 4 --mapper piecewise  halos are copied
  maniple run stencil --save grid                   store the grid as .npy files
  maniple run stencil --load grid --save grid       go on, and again";

/// The advice to a user whose run found too little memory.
pub(crate) const ON_MEMORY: &str = "\
give data more memory with --memory, or take a smaller grid with --size; the mapper `default` needs least, however many --tiles there are";

/// The grid to work on, and how.
#[derive(Args, Clone, Debug)]
pub struct StencilOptions {
    /// Points of the grid: N for a square, or ROWSxCOLUMNS; in all at most 281474976710656
    #[arg(long, value_name = "N|NxM", default_value = "1000", allow_hyphen_values = true)]
    pub size: Extents,

    /// Time steps
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = positive, allow_hyphen_values = true)]
    pub steps: usize,

    /// Tiles that the grid is cut into: PxQ, or P for PxP; in all at most 1048576 [default: one row of tiles for each
    /// processor, each as wide as the grid]
    #[arg(long, value_name = "PxQ", allow_hyphen_values = true)]
    pub tiles: Option<Extents>,

    /// How far the star reaches: 1 to 4
    #[arg(long, value_name = "R", default_value_t = 2, value_parser = radius, allow_hyphen_values = true)]
    pub radius: usize,

    /// Mark a time step as a trace, to be recorded and replayed, instead of leaving it to the runtime to find that the
    /// steps repeat
    #[arg(long, conflicts_with = "no_tracing")]
    pub trace: bool,

    /// The state that the simulation begins with, and the file for the one at its end.
    #[command(flatten)]
    pub state: StateOptions,

    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

default_from_command_line!(StencilOptions);

fn radius(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|radius| (1..=4).contains(radius));
    number.ok_or_else(|| "it must be 1, 2, 3 or 4".to_owned())
}

/// Rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
}

impl FromStr for Extents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rows, columns) = text.split_once(['x', 'X']).unwrap_or((text, text));
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => positive(text),
            false => Err("it must be a whole number of at least 1, or two such as 300x200".to_owned()),
        };
        Ok(Self { rows: number(rows)?, columns: number(columns)? })
    }
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.rows, self.columns)
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct StencilReport {
    /// The grid.
    pub size: Extents,
    /// The tiles.
    pub tiles: Extents,
    /// How far the star reaches.
    pub radius: usize,
    /// Time steps.
    pub steps: usize,
    /// Tasks that ran in the time steps.
    pub tasks: u64,
    /// How long the time steps took.
    pub time: Duration,
    /// The largest difference from the closed form, relative to it.
    pub largest_relative_error: f64,
}

impl fmt::Display for StencilReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = (self.size.rows * self.size.columns * self.steps) as u64;
        let table = ReportTable::new()
            .line("grid", self.size)
            .line("tiles", self.tiles)
            .line("radius", self.radius)
            .line("steps", self.steps)
            .line("tasks run", self.tasks)
            .line("time", seconds(self.time))
            .line("points/s", amount(rate(points, self.time)))
            .line(
                "largest relative error",
                format_args!("{} (at most {TOLERANCE:.0e} is right)", scientific(self.largest_relative_error)),
            );
        write!(f, "stencil\n{table}")
    }
}

/// Runs the stencil and compares the result with its closed form.
///
/// # Errors
/// [`AppError::Usage`] if there are more tiles than points or the grid is smaller than the star,
/// [`AppError::Verification`] if the result is wrong, [`AppError::Runtime`] if a task fails, for instance for want of
/// memory.
pub fn run(options: &StencilOptions) -> AppResult<StencilReport> {
    options.runtime.run(|runtime| run_on(runtime, options))
}

/// Runs the stencil on a runtime that was started before; of the options' own, only what is said of progress counts.
///
/// # Errors
/// As [`run`].
pub fn run_on(runtime: &Runtime, options: &StencilOptions) -> AppResult<StencilReport> {
    let grid = Grid::new(options, workers_of_job(runtime)?)?;
    let of = || {
        Subject::from(
            [("size", grid.size.to_string()), ("radius", grid.radius.to_string())]
                .map(|(name, value)| (name.to_owned(), value)),
        )
    };
    let StateOptions { load, save } = &options.state;
    let open = |folder| Loaded::open_on(runtime, folder, "stencil", &of(), &["input", "output"]);
    let loaded = load.as_deref().map(open).transpose()?;
    let saving = save.as_deref().map(|folder| Saving::prepare_on(runtime, folder, "stencil", of())).transpose()?;
    let report = runtime.run(async |cx| simulate(cx, &grid, options, runtime, loaded.clone(), saving.clone()).await)?;
    let error = report.largest_relative_error;
    if is_within(error, TOLERANCE) {
        return Ok(report);
    }
    Err(AppError::Verification(format!(
        "the result differs from its closed form by {} relative to it, more than {TOLERANCE:.0e}",
        scientific(error)
    )))
}

/// More points than this can't be counted.
const MOST_POINTS: usize = 1 << 48;

/// A grid that makes sense, and its tiles.
#[derive(Clone, Copy)]
struct Grid {
    size: Extents,
    tiles: Extents,
    radius: usize,
}

impl Grid {
    fn new(options: &StencilOptions, processors: usize) -> AppResult<Self> {
        let &StencilOptions { size, radius, .. } = options;
        let tiles = options.tiles.unwrap_or(Extents { rows: processors.clamp(1, size.rows), columns: 1 });
        if size.rows.checked_mul(size.columns).is_none_or(|points| points > MOST_POINTS) {
            return Err(AppError::Usage(format!("a grid of {size} points is too large: at most {MOST_POINTS} in all")));
        }
        if size.rows <= 2 * radius || size.columns <= 2 * radius {
            return Err(AppError::Usage(format!(
                "a grid of {size} points has no room for a star of radius {radius}: at least {0} x {0}",
                2 * radius + 1
            )));
        }
        if tiles.rows.saturating_mul(tiles.columns) > MOST_PIECES {
            return Err(AppError::Usage(format!("{tiles} tiles are too many: at most {MOST_PIECES} in all")));
        }
        if tiles.rows > size.rows || tiles.columns > size.columns {
            return Err(AppError::Usage(format!("{tiles} tiles are more than the grid has points: {size}")));
        }
        Ok(Self { size, tiles, radius })
    }

    fn points(&self) -> Rect<2> {
        Rect::from_shape([self.size.rows as i64, self.size.columns as i64])
    }

    /// The points that the star around which does not leave the grid.
    fn inner(&self) -> Rect<2> {
        self.points().grow(Point([-(self.radius as i64); 2]))
    }

    fn colors(&self) -> Domain {
        Rect::from_shape([self.tiles.rows as i64, self.tiles.columns as i64]).into()
    }

    /// The points of a tile: all tiles have the same size, to within one row and column.
    fn tile(&self, color: AnyPoint) -> Rect<2> {
        let cut = |points: usize, tiles: usize, tile: i64| (points as i128 * i128::from(tile) / tiles as i128) as i64;
        let row = |tile| cut(self.size.rows, self.tiles.rows, tile);
        let column = |tile| cut(self.size.columns, self.tiles.columns, tile);
        let (y, x) = (color[0], color[1]);
        Rect::new([row(y), column(x)], [row(y + 1) - 1, column(x + 1) - 1])
    }
}

async fn simulate(
    cx: &Context,
    grid: &Grid,
    options: &StencilOptions,
    runtime: &Runtime,
    loaded: Option<Loaded>,
    saving: Option<Saving>,
) -> Result<StencilReport> {
    let steps = options.steps;
    let steps_before = loaded.as_ref().map_or(0, |loaded| loaded.steps);
    let (inner, radius, colors) = (grid.inner(), grid.radius, grid.colors());
    let cells = cx.region_over::<Cell, 2>(grid.points())?;
    let tiles = cells.partition(colors).by(|color| grid.tile(color).into())?;
    let surroundings = cells.around(&tiles, [radius as i64; 2])?;
    match loaded {
        Some(loaded) => load(cx, grid, &tiles, &loaded).await?,
        None => cx.index_launch(colors, make_slope(&tiles)).await?,
    }

    let progress = Progress::steps(steps, &options.runtime);
    let launch_step = |cx: &Context| {
        cx.index_launch(colors, add_stars(&tiles, &surroundings, inner, radius));
        let raised = cx.index_launch(colors, raise(&tiles));
        progress.advance_after(&raised);
        raised
    };
    let (started, before) = (Instant::now(), runtime.statistics().tasks);
    let mut last = None;
    for _ in 0..steps {
        last = Some(match options.trace {
            true => cx.trace("step", launch_step),
            false => launch_step(cx),
        });
    }
    if let Some(raised) = last {
        // What is raised was read before: everything has ended.
        raised.await?;
    }
    let time = started.elapsed();
    // The tasks of a replay are counted when all of it has ended.
    cx.execution_fence().await?;
    let tasks = cx.per_node(runtime.statistics().tasks - before).reduce(Sum).await?;
    let all_steps = steps_before + steps;
    let errors = cx.index_launch(colors, largest_error(&tiles, inner, all_steps));
    let largest_relative_error = errors.fold(0.0, worse).await?;
    if let Some(saving) = saving
        && is_within(largest_relative_error, TOLERANCE)
    {
        save(cx, grid, &tiles, saving, runtime, all_steps).await?;
    }
    let &Grid { size, tiles, radius } = grid;
    Ok(StencilReport { size, tiles, radius, steps, tasks, time, largest_relative_error })
}

/// A grid like the one that is computed, and its tiles: each is on the node on which the tile is that it is like.
fn like(cx: &Context, grid: &Grid) -> Result<(Region<Cell, 2>, Partition<Cell, 2>)> {
    let cells = cx.region_over::<Cell, 2>(grid.points())?;
    let tiles = cells.partition(grid.colors()).by(|color| grid.tile(color).into())?;
    Ok((cells, tiles))
}

/// Reads a grid that was stored: each node its tiles.
async fn load(cx: &Context, grid: &Grid, tiles: &Partition<Cell, 2>, loaded: &Loaded) -> Result<()> {
    let (cells, stored) = like(cx, grid)?;
    let input = cx.attach_file_pieces(&stored, Cell::input, loaded.array("input"))?;
    let output = cx.attach_file_pieces(&stored, Cell::output, loaded.array("output"))?;
    cx.index_launch(grid.colors(), copy_tile(&stored, tiles)).await?;
    cx.detach_file_pieces(input).await?;
    cx.detach_file_pieces(output).await?;
    cx.destroy_region(cells)
}

/// Stores a grid: each node its tiles.
async fn save(
    cx: &Context,
    grid: &Grid,
    tiles: &Partition<Cell, 2>,
    saving: Saving,
    runtime: &Runtime,
    steps: usize,
) -> Result<()> {
    let mut storing = saving.begin(cx).await?;
    let (cells, stored) = like(cx, grid)?;
    let input = cx.attach_file_pieces(&stored, Cell::input, storing.array("input"))?;
    let output = cx.attach_file_pieces(&stored, Cell::output, storing.array("output"))?;
    cx.index_launch(grid.colors(), copy_tile(tiles, &stored));
    cx.detach_file_pieces(input).await?;
    cx.detach_file_pieces(output).await?;
    cx.destroy_region(cells)?;
    storing.finish(cx, runtime, steps).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_one_number_or_two() {
        assert_eq!("7".parse(), Ok(Extents { rows: 7, columns: 7 }));
        assert_eq!("7x9".parse(), Ok(Extents { rows: 7, columns: 9 }));
        for text in ["", "0", "-3", "3x", "x3", "0x4", "3x-4", "3x4x5", "a"] {
            assert!(text.parse::<Extents>().is_err(), "{text}");
        }
        let huge = "3x99999999999999999999".parse::<Extents>();
        assert_eq!(huge, Err("it must be at most 18446744073709551615".to_owned()));
    }

    #[test]
    fn tiles_cover_the_grid_once() {
        let size = Extents { rows: 11, columns: 7 };
        let grid = Grid { size, tiles: Extents { rows: 4, columns: 7 }, radius: 1 };
        let tiles: Vec<Rect<2>> = grid.colors().rect().points().map(|color| grid.tile(color)).collect();
        assert_eq!(tiles.iter().map(Rect::volume).sum::<u64>(), 77);
        assert!(tiles.iter().all(|tile| !tile.is_empty() && grid.points().contains_rect(tile)));
    }
}
