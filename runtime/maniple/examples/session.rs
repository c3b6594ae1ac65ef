//! A session: a program that is no function, but calls from a loop of its own, with waits that can be interrupted.
//!
//! `cargo run -p maniple --example session`

use std::time::Duration;

use maniple::prelude::*;
use maniple::{Interrupt, Partition, Region, Session};

#[derive(Fields)]
struct Cell {
    heat: f64,
}

#[task(leaf)]
fn warm(#[writes(heat)] cells: Piece<Cell>, by: f64) {
    cells.points().for_each(|cell| cells.heat[cell] += by);
}

#[task(leaf)]
fn total(#[reads(heat)] cells: Piece<Cell>) -> f64 {
    cells.points().map(|cell| cells.heat[cell]).sum()
}

/// The state that an interpreter keeps between two lines that its user types.
struct Notebook {
    cells: Region<Cell>,
    pieces: Partition<Cell>,
    // Last, so that it is there as long as what comes from it.
    session: Session,
}

impl Notebook {
    fn open(runtime: &Runtime) -> Result<Self> {
        let session = runtime.begin()?;
        let cells = session.region::<Cell>(1000)?;
        session.fill(&cells, Cell::heat, 0.0)?;
        Ok(Self { pieces: cells.partition(4).equal()?, cells, session })
    }

    fn type_line(&self, line: &str) -> Result<Option<f64>> {
        match line.split_once(' ') {
            Some(("warm", by)) => {
                self.session.index_launch(4, warm(&self.pieces, by.parse().unwrap_or(0.0)));
                Ok(None)
            }
            _ => self.session.wait(self.session.index_launch(4, total(&self.pieces)).reduce(Sum)).map(Some),
        }
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().workers(2).build()?;
    let notebook = Notebook::open(&runtime)?;
    for line in ["warm 1", "warm 2.5", "total"] {
        if let Some(answer) = notebook.type_line(line)? {
            println!("{line}: {answer}");
            assert_eq!(answer, 3500.0);
        }
    }

    // A wait ends when it is interrupted, such as a thread that hears of Ctrl-C, or when its time is over. What was
    // waited for goes on.
    let sum = notebook.session.launch(total(&notebook.cells));
    let interrupt = Interrupt::new();
    interrupt.set();
    if notebook.session.wait_until(sum.clone(), &interrupt)?.is_none() {
        println!("interrupted");
    }
    assert_eq!(notebook.session.wait_for(sum, Duration::from_secs(600))?, Some(3500.0));

    // Waits for all that was launched, and tells what went wrong and was not seen.
    notebook.session.finish()
}
