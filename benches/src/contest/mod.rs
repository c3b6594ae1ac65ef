//! Programs that do the same, one after the other, over and over: so all meet the same noise.

pub mod granularity;

use std::time::Instant;

use crate::error::{Error, Result};
use crate::median;
use crate::table::{Table, figure};
use crate::toolbox::Toolbox;
use crate::toolbox::program::{Outcome, Program};

/// A contest: its subject, its contestants, and the evaluation of their times.
pub struct Contest {
    /// How it is asked for.
    pub name: &'static str,
    /// The subject of the contest, in a few words.
    pub title: &'static str,
    /// All that are on this machine. The first is this project's, which the others are compared with.
    pub contestants: fn(&Toolbox) -> Vec<Contestant>,
    /// The answer that every contestant must find, at a size.
    pub answer: fn(&[u64]) -> u64,
    /// Sizes that take no time, for tests.
    pub small: &'static [&'static [u64]],
    /// The evaluation of the times.
    pub measure: Measure,
}

/// The figure that is computed from the times.
pub enum Measure {
    /// The time of each of many units.
    Unit {
        /// The name of a unit.
        unit: &'static str,
        /// How many there are at a size.
        count: fn(&[u64]) -> u64,
        /// At which size they are counted.
        size: &'static [u64],
    },
    /// The smallest tasks with which half of the time is spent on work: sizes are width, steps and iterations of a
    /// task.
    Granularity,
}

/// How long and how often things are measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How often each program runs. The median counts, or the best where the measure says so.
    pub rounds: usize,
    /// Seconds of work in a run, where that can be chosen.
    pub budget: f64,
}

impl Contest {
    /// Runs all contestants in turn, and lays the figures side by side.
    #[must_use]
    pub fn measure(&self, toolbox: &Toolbox, effort: Effort) -> Table {
        let contestants = (self.contestants)(toolbox);
        match self.measure {
            Measure::Unit { unit, count, size } => self.units(contestants, effort.rounds, unit, count(size), size),
            Measure::Granularity => granularity::table(self, contestants, toolbox.cores(), effort),
        }
    }

    fn units(&self, mut contestants: Vec<Contestant>, rounds: usize, unit: &str, count: u64, size: &[u64]) -> Table {
        let mut times: Vec<Result<Vec<f64>>> = contestants.iter().map(|_| Ok(Vec::new())).collect();
        for _ in 0..rounds {
            for (contestant, times) in contestants.iter_mut().zip(&mut times) {
                let Ok(earlier) = times else { continue };
                match contestant.run(size, (self.answer)(size)) {
                    Ok(outcome) => earlier.push(outcome.seconds * 1e9 / count as f64),
                    Err(error) => *times = Err(error),
                }
            }
        }
        let column = format!("ns a {unit}");
        let mut table = Table::new(self.title, &["", &column, "least", "most", "ours / this"]);
        let ours = times.first().and_then(|times| times.as_ref().ok()).map_or(f64::NAN, |times| median(times.clone()));
        for (contestant, times) in contestants.iter().zip(times) {
            let cells = match times {
                Ok(mut times) => {
                    times.sort_by(f64::total_cmp);
                    let median = median(times.clone());
                    [median, times[0], times[times.len() - 1], ours / median].map(figure).to_vec()
                }
                Err(error) => vec![format!("failed: {error}")],
            };
            table.row([contestant.name().to_owned()].into_iter().chain(cells));
        }
        table
    }
}

/// Does what there is to do, at a size.
type Run = dyn FnMut(&[u64]) -> Result<Outcome>;

/// One of the programs that do the same.
pub struct Contestant {
    name: String,
    /// How many cores it keeps busy.
    cores: usize,
    run: Box<Run>,
}

impl Contestant {
    /// A program that is given a size, which each contest describes, and uses so many cores.
    pub fn new(name: impl Into<String>, cores: usize, run: impl FnMut(&[u64]) -> Result<Outcome> + 'static) -> Self {
        Self { name: name.into(), cores, run: Box::new(run) }
    }

    /// A rival's program, which is given the number of cores and the size. One that could not be built fails whenever
    /// it is run.
    #[must_use]
    pub fn rival(name: impl Into<String>, cores: usize, program: Result<Program>) -> Self {
        let program = program.map_err(|error| error.to_string());
        Self::new(name, cores, move |size| {
            let program = program.as_ref().map_err(|error| Error::NotBuilt(error.clone()))?;
            program.run(&[&[cores as u64], size].concat())
        })
    }

    /// How it appears in tables.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many cores it keeps busy.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Runs it, and sees whether its answer is right.
    ///
    /// # Errors
    /// The program's; [`Error::Answer`] if it finds something else.
    pub fn run(&mut self, size: &[u64], expected: u64) -> Result<Outcome> {
        let outcome = (self.run)(size)?;
        match outcome.answer == expected {
            true => Ok(outcome),
            false => Err(Error::Answer { expected, found: outcome.answer }),
        }
    }
}

/// Runs something in this process and notes how long it takes.
///
/// # Errors
/// The errors of `run`.
pub fn timed(run: impl FnOnce() -> Result<u64>) -> Result<Outcome> {
    let start = Instant::now();
    let answer = run()?;
    Ok(Outcome { seconds: start.elapsed().as_secs_f64(), answer })
}
