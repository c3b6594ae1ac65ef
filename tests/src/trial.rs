//! One program in one environment, against the oracle.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::environment::{Environment, Room};
use crate::execute::{Mistake, Run, Tolerance, run_program};
use crate::generate::{Profile, generate};
use crate::oracle::World;
use crate::program::Program;
use crate::value::{mix, register_operators};

/// A kind of trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Launches without nesting.
    Flat,
    /// Everything, in machines with room enough.
    Nested,
    /// Tasks that fail: what depends on them must fail, the rest must be right.
    Faulty,
    /// Little memory: what does not fail must be right.
    Tight,
    /// Mappers that answer nonsense: what does not fail must be right.
    Unsound,
}

impl Family {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Flat, Self::Nested, Self::Faulty, Self::Tight, Self::Unsound];

    fn profile(self) -> Profile {
        match self {
            Self::Flat => Profile::FLAT,
            Self::Nested => Profile::FULL,
            Self::Faulty => Profile::FAULTY,
            Self::Tight | Self::Unsound => Profile { statements: 25, ..Profile::FULL },
        }
    }

    fn tolerance(self) -> Tolerance {
        match self {
            Self::Flat | Self::Nested | Self::Faulty => Tolerance::None,
            Self::Tight | Self::Unsound => Tolerance::Errors,
        }
    }

    /// The environment of a seed.
    #[must_use]
    pub fn environment(self, seed: u64) -> Environment {
        let room = if self == Self::Tight { Room::Tight } else { Room::Enough };
        Environment::new(seed, room, self == Self::Unsound)
    }

    /// The program of a seed.
    #[must_use]
    pub fn program(self, seed: u64) -> Program {
        generate(mix(seed, self as u64), self.profile())
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|family| family.to_string() == name);
        found.ok_or_else(|| format!("expected one of {:?}", Self::ALL.map(|family| family.to_string())))
    }
}

/// What a trial is made of besides its program.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The kind.
    pub family: Family,
    /// The seed.
    pub seed: u64,
    /// A mistake made on purpose.
    pub mistake: Mistake,
    /// Counts statements and tasks.
    pub progress: Arc<AtomicU64>,
    /// How often a smaller program is tried before it is taken to be right: failures may depend on the schedule.
    pub tries: usize,
}

impl Trial {
    /// The trial of a seed.
    #[must_use]
    pub fn new(family: Family, seed: u64) -> Self {
        Self { family, seed, mistake: Mistake::None, progress: Arc::default(), tries: 8 }
    }

    /// Runs the seed's own program.
    ///
    /// # Errors
    /// What deviates from the oracle.
    pub fn run(&self) -> Result<(), Vec<String>> {
        self.run_program(self.family.program(self.seed))
    }

    /// Runs a program in the seed's environment.
    ///
    /// # Errors
    /// What deviates from the oracle.
    pub fn run_program(&self, program: Program) -> Result<(), Vec<String>> {
        register_operators();
        let environment = self.family.environment(self.seed);
        let (expected, context) = World::run(&program.body).map_err(|why| vec![format!("no meaning: {why}")])?;
        let runtime = environment.start().map_err(|error| vec![format!("cannot start: {error}")])?;
        let mut run = Run::new(program, expected);
        run.left = context.created;
        run.tolerance = self.family.tolerance();
        run.mistake = self.mistake;
        run.delays = (!self.seed.is_multiple_of(4)).then_some(self.seed);
        run.progress = Arc::clone(&self.progress);
        let run = Arc::new(run);
        run_program(&run, &runtime);
        if std::env::var_os("GRAPH").is_some() && !run.deviations().is_empty() {
            for n in runtime.take_graph() {
                println!("{:?} {:?} after {:?}", n.event, n.kind, n.after);
            }
        }
        let mut deviations = run.deviations();
        if deviations.is_empty() && self.family != Family::Faulty && run.tolerance == Tolerance::None {
            deviations.extend(leaks(&runtime));
        }
        if deviations.is_empty() { Ok(()) } else { Err(deviations) }
    }
}

/// Memory in use after all regions were destroyed.
fn leaks(runtime: &maniple::Runtime) -> Option<String> {
    let used = || -> Vec<u64> { runtime.machine().memories().iter().map(|m| runtime.bytes_used(m.id)).collect() };
    // The last worker may still be letting go of the last instance.
    for _ in 0..2000 {
        if used().iter().all(|&bytes| bytes == 0) {
            return None;
        }
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
    Some(format!("bytes still in use after all regions were destroyed: {:?}", used()))
}
