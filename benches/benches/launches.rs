//! Whether a loop of a million launches grows memory.

use maniple::prelude::*;
use maniple_benches::line;

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn increment(#[writes(value)] cells: Piece<Cell>) {
    for point in cells.points() {
        cells.value[point] += 1;
    }
}

/// Resident memory of this process in MiB; zero where the system does not tell.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}

fn main() -> Result<()> {
    const LAUNCHES: usize = 1_000_000;
    let runtime = Runtime::builder().workers(2).build()?;
    let (warm, end, sum) = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        let pieces = cells.partition(4).equal()?;
        let mut warm = 0.0;
        for launch in 0..LAUNCHES {
            if launch == LAUNCHES / 10 {
                warm = resident();
            }
            // Single launches and index launches, in turn.
            if launch % 2 == 0 {
                cx.launch(increment(&cells));
            } else {
                cx.index_launch(4, increment(&pieces));
            }
        }
        let values = cx.map_read(&cells, Cell::value).await?;
        Ok((warm, resident(), (0..4).map(|row| values.values()[row]).sum::<i64>()))
    })?;
    assert_eq!(sum, 4 * LAUNCHES as i64, "every launch took effect");
    line("resident memory after 100,000 launches", warm, "MiB", "");
    line("resident memory after 1,000,000 launches", end, "MiB", "no more, but for a few pages");
    Ok(())
}
