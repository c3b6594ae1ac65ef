//! The options of the runtime, which every simulation has.

use std::fmt;
use std::io::{self, Write};
use std::num::IntErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use maniple::environment::Place;
use maniple::mapper::{DefaultMapper, LoggingMapper, Mapper, RandomMapper};
use maniple::prelude::Sum;
use maniple::profile::Profiler;
use maniple::{Machine, ProcessorKind, Runtime, Topology, topology};

use crate::error::{Error, Result};
use crate::headings::RUNTIME_HEADING;
use crate::recording::RecordOptions;
use crate::report::bytes_apart;
use crate::stated::Stated;

/// The help text of `--workers`.
pub(crate) const WORKERS_HELP: &str =
    "Worker threads, each a processor of the machine: at most 1024 [default: one a core]";

/// The help text of `--memory`.
pub(crate) const MEMORY_HELP: &str = "\
Bytes of system memory that data may take (instances and reduction buffers; tables of the runtime come on top), such as 512MiB or 2GiB; K, M, G, T and KiB, MiB, GiB, TiB are powers of 1024, KB, MB, GB, \
TB powers of 1000 [default: three quarters of what is there]";

/// The runtime that a simulation runs on. None of this can change a result.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = RUNTIME_HEADING)]
pub struct RuntimeOptions {
    /// Worker threads.
    #[arg(long, value_name = "N", value_parser = worker_count, allow_hyphen_values = true, help = WORKERS_HELP)]
    pub workers: Option<usize>,

    /// Mapper that decides where tasks run and where data lives: `default`, `piecewise` (a piece of data has memory of
    /// its own, and neighbours' data is copied), `random` or `random:SEED` (an adversary), `log` (the default, telling
    /// every decision on standard error)
    #[arg(long, value_name = "NAME", default_value_t = MapperChoice::Default)]
    pub mapper: MapperChoice,

    /// A file that says where tasks run and where data lives, in TOML; what it does not say is left to the mapper.
    /// `maniple info --mapping FILE` explains it, the book's chapter on mapping files has its keys
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,

    /// Bytes of system memory.
    #[arg(long, value_name = "SIZE", value_parser = memory_size, allow_hyphen_values = true, help = MEMORY_HELP)]
    pub memory: Option<u64>,

    /// The most operations that the program may run ahead
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = positive, allow_hyphen_values = true)]
    pub window: usize,

    /// Record what every worker does into this file, for `maniple prof FILE`; `%p` in it stands for the number of the
    /// process
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Seed of all random choices: a whole number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,

    /// Analyse and map every launch anew: nothing is recorded and replayed, neither marked stretches of the program nor
    /// ones that repeat
    #[arg(long)]
    pub no_tracing: bool,

    /// Do not look for launches that repeat: only what the program marks is recorded and replayed
    #[arg(long)]
    pub no_automatic_tracing: bool,

    /// Show no progress on the terminal: it takes a little time
    #[arg(long)]
    pub no_progress: bool,

    /// Options for a record of the run.
    #[command(flatten)]
    pub record: RecordOptions,

    /// Values that must be the same on all nodes; none without a command line.
    #[arg(skip)]
    pub stated: Stated,
}

/// Returns the place of this process in its job. If that can't be found, the process counts as alone: the error is
/// reported when the runtime starts.
pub(crate) fn place() -> Place {
    Place::find().unwrap_or_else(|_| Place::alone())
}

/// This machine, with so many workers and so much memory if that is said.
pub(crate) fn machine(workers: Option<usize>, memory: Option<u64>) -> Machine {
    // Nodes of a job on one machine share its cores and its memory.
    let neighbours = place().neighbours;
    let mut topology = match workers {
        Some(workers) => Topology::read("/".as_ref(), workers),
        None if neighbours == 1 => Topology::detect(),
        None => Topology::read("/".as_ref(), place().cores()),
    };
    let Some(capacity) = memory else { return topology.machine(topology::INSTANCE_SHARE / neighbours as f64) };
    let found = topology.memory().max(1);
    for domain in &mut topology.domains {
        domain.memory = (u128::from(capacity) * u128::from(domain.memory) / u128::from(found)) as u64;
    }
    topology.machine(1.0)
}

/// How many workers the job has: what defaults follow from. Machines may be unequal, so each node says how many it has,
/// and all come to the same.
pub(crate) fn workers_of_job(runtime: &Runtime) -> Result<usize> {
    let own = runtime.machine().processors_of(ProcessorKind::Cpu).count();
    if runtime.nodes() == 1 {
        return Ok(own);
    }
    let all = runtime.run(async |cx| cx.per_node(own as u64).reduce(Sum).await)?;
    Ok(all as usize)
}

/// Returns a warning if more memory is wanted than was found. It is no error: the memory that was found may be wrong,
/// and data may never take so much.
#[must_use]
pub fn memory_warning(wanted: u64, found: u64) -> Option<String> {
    if wanted <= found {
        return None;
    }
    let (wanted, found) = bytes_apart(wanted, found);
    Some(format!(
        "--memory {wanted} is more than the {found} that this process may use; the system may end it when data takes more"
    ))
}

impl RuntimeOptions {
    /// The machine that these options describe.
    #[must_use]
    pub fn machine(&self) -> Machine {
        machine(self.workers, self.memory)
    }

    /// The bytes that data may take.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.machine().memories().iter().map(|memory| memory.capacity).sum()
    }

    /// Starts the runtime, runs a program on it, ends it, and does with the record of the run what is asked for. Then
    /// its profile, if one was asked for, is whole.
    ///
    /// # Errors
    /// The errors of [`RuntimeOptions::start`], and the program's; else [`Error::AfterRun`], with an error of
    /// [`RecordOptions::conclude`], or with [`Error::ProfileLost`] if the profile could not be written.
    pub fn run<T: fmt::Display>(&self, program: impl FnOnce(&Runtime) -> Result<T>) -> Result<T> {
        self.run_by(|| Box::new(DefaultMapper::new()), program)
    }

    /// The same with another mapper in the place of the default one.
    ///
    /// # Errors
    /// As [`RuntimeOptions::run`].
    pub(crate) fn run_by<T: fmt::Display>(
        &self,
        usual: fn() -> Box<dyn Mapper>,
        program: impl FnOnce(&Runtime) -> Result<T>,
    ) -> Result<T> {
        let runtime = self.start_by(usual)?;
        let profiler = runtime.profiler().cloned();
        let outcome = program(&runtime).inspect_err(|error| runtime.note_failure(error));
        let concluded = self.record.conclude(&runtime);
        drop(runtime);
        let outcome = outcome?;
        match concluded.and_then(|()| self.tell_of_profile(profiler)) {
            Ok(()) => Ok(outcome),
            Err(error) => Err(Error::AfterRun { report: outcome.to_string(), error: Box::new(error) }),
        }
    }

    /// The options that are given and are about a run: what it did, and whether that was right.
    pub(crate) fn about_a_run(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("--check", self.record.check),
            ("--graph", self.record.graph.is_some()),
            ("--profile", self.profile.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// The options that are given and are about tasks: what they did, and where they run.
    pub(crate) fn about_tasks(&self) -> impl Iterator<Item = &'static str> {
        let given = [("--mapping", self.mapping.is_some()), ("--mapper", self.mapper != MapperChoice::Default)];
        self.about_a_run().chain(given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option))
    }

    /// Says where the profile is, if one was asked for.
    fn tell_of_profile(&self, profiler: Option<Profiler>) -> Result<()> {
        if let (Some(file), Some(profiler)) = (&self.profile, profiler) {
            profiler.outcome()?;
            let place = place();
            // One node speaks for all, each of which has written its own.
            if place.rank.0 == 0 {
                // Each node is a process of its own.
                let (process, nodes) = if place.nodes > 1 { ("*".to_owned(), ".node*") } else { (own_number(), "") };
                let file = with_process(file, &process);
                // The reader of standard error may be gone.
                let _ = writeln!(io::stderr(), "profile: look at it with `maniple prof {}{nodes}`", file.display());
            }
        }
        Ok(())
    }

    /// Whether progress may be shown: not if it is unwanted, or a mapper writes to standard error.
    #[must_use]
    pub fn shows_progress(&self) -> bool {
        !self.no_progress && self.mapper != MapperChoice::Log
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// If the system does not give the threads, or the file of the profile can't be written; [`Error::Usage`] if
    /// command lines of the job's nodes differ in what they may not.
    pub fn start(&self) -> Result<Runtime> {
        self.start_by(|| Box::new(DefaultMapper::new()))
    }

    fn start_by(&self, usual: fn() -> Box<dyn Mapper>) -> Result<Runtime> {
        let (choice, seed) = (self.mapper, self.seed);
        let mapper = move |processor: u32| -> Box<dyn Mapper> {
            match choice {
                MapperChoice::Default => usual(),
                MapperChoice::Piecewise => Box::new(DefaultMapper::piecewise()),
                MapperChoice::Random(own) => {
                    Box::new(RandomMapper::new(own.unwrap_or(seed).wrapping_add(u64::from(processor))))
                }
                MapperChoice::Log => Box::new(LoggingMapper::with_sink(DefaultMapper::new(), |line| {
                    // The reader of standard error may be gone.
                    let _ = writeln!(io::stderr(), "mapper: {line}");
                })),
            }
        };
        self.record.check_writable(&place())?;
        let builder = Runtime::builder().machine(self.machine()).window(self.window);
        let builder = builder.tracing(!self.no_tracing).automatic_tracing(!self.no_automatic_tracing);
        let mut builder = builder.record_operations(self.record.is_wanted());
        if let Some(file) = &self.profile {
            builder = builder.profile(with_process(file, &own_number()));
        }
        if let Some(file) = &self.mapping {
            builder = builder.mapping_file(file);
        }
        let runtime = builder.mapper_for(move |_, processor| mapper(processor.0)).build()?;
        self.stated.compare(&runtime)?;
        Ok(runtime)
    }
}

/// The number of this process.
fn own_number() -> String {
    std::process::id().to_string()
}

/// The file of a process, for whose number `%p` stands.
fn with_process(file: &Path, process: &str) -> PathBuf {
    file.to_str().map_or_else(|| file.to_owned(), |text| text.replace("%p", process).into())
}

/// A mapper by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapperChoice {
    /// [`DefaultMapper::new`].
    #[default]
    Default,
    /// [`DefaultMapper::piecewise`].
    Piecewise,
    /// [`RandomMapper`], from its own seed or the program's.
    Random(Option<u64>),
    /// [`LoggingMapper`] around the default one.
    Log,
}

impl FromStr for MapperChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None => match text {
                "default" => Ok(Self::Default),
                "piecewise" => Ok(Self::Piecewise),
                "random" => Ok(Self::Random(None)),
                "log" => Ok(Self::Log),
                _ => Err("there are the mappers default, piecewise, random, random:SEED and log".to_owned()),
            },
            Some(("random", text)) => match seed(text) {
                Ok(seed) => Ok(Self::Random(Some(seed))),
                Err(reason) => Err(format!("the seed of `random:SEED` is '{text}', but {reason}")),
            },
            Some((name, _)) => Err(format!("the mapper `{name}` takes no argument")),
        }
    }
}

impl fmt::Display for MapperChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Piecewise => f.write_str("piecewise"),
            Self::Random(None) => f.write_str("random"),
            Self::Random(Some(seed)) => write!(f, "random:{seed}"),
            Self::Log => f.write_str("log"),
        }
    }
}

/// Gives options their defaults as the command line has them, so that those are said in one place.
macro_rules! default_from_command_line {
    ($options:ty) => {
        impl Default for $options {
            fn default() -> Self {
                let command = <$options as clap::Args>::augment_args(clap::Command::new("defaults"));
                let matches = command.get_matches_from(["defaults"]);
                <$options as clap::FromArgMatches>::from_arg_matches(&matches).expect("every option has a default")
            }
        }
    };
}
pub(crate) use default_from_command_line;

default_from_command_line!(RuntimeOptions);

/// Reads a whole number of at least 1.
///
/// # Errors
/// A description of the expected text.
pub fn positive(text: &str) -> Result<usize, String> {
    at_most(usize::MAX, text)
}

/// The runtime starts no more workers than this.
const MOST_WORKERS: usize = 1024;

/// More pieces than this are surely a mistake.
pub(crate) const MOST_PIECES: usize = 1 << 20;

pub(crate) fn worker_count(text: &str) -> Result<usize, String> {
    at_most(MOST_WORKERS, text)
}

/// Reads a number of pieces.
///
/// # Errors
/// A description of the expected text.
pub fn piece_count(text: &str) -> Result<usize, String> {
    at_most(MOST_PIECES, text)
}

/// Reads a whole number from 1 to the most.
pub(crate) fn at_most(most: usize, text: &str) -> Result<usize, String> {
    whole(1, most as u64, text).map(|number| number as usize)
}

fn seed(text: &str) -> Result<u64, String> {
    whole(0, u64::MAX, text)
}

/// Reads a whole number between two others.
pub(crate) fn whole(least: u64, most: u64, text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(number) if number < least => Err(format!("it must be at least {least}")),
        Ok(number) if number <= most => Ok(number),
        Err(error) if *error.kind() != IntErrorKind::PosOverflow => {
            Err(format!("it must be a whole number of at least {least}"))
        }
        _ => Err(format!("it must be at most {most}")),
    }
}

/// Reads a size in bytes: a number, and optionally a unit. KiB, MiB, GiB, TiB (also K, M, G, T) are powers of 1024; KB,
/// MB, GB, TB powers of 1000.
///
/// # Errors
/// A description of the expected text.
pub fn memory_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err("it must be a number of bytes such as 4096, 512MiB or 2GiB".to_owned()),
    };
    let bytes = match (number.parse::<u64>(), number.parse::<f64>()) {
        (Ok(whole), _) => whole.checked_mul(scale),
        (_, Ok(part)) if part * (scale as f64) < u64::MAX as f64 => Some((part * scale as f64) as u64),
        (_, Ok(_)) => None,
        _ => return Err("it must be a number of bytes such as 4096, 512MiB or 2GiB".to_owned()),
    };
    match bytes {
        Some(0) => Err("it must be at least one byte".to_owned()),
        Some(bytes) => Ok(bytes),
        None => Err("no machine has so much".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        assert_eq!(memory_size("4096"), Ok(4096));
        assert_eq!(memory_size("64KiB"), Ok(65536));
        assert_eq!(memory_size("1.5G"), Ok(3 << 29));
        assert_eq!(memory_size("2 MB"), Ok(2_000_000));
    }

    #[test]
    fn sizes_that_are_none_are_refused() {
        for text in ["", "0", "-5", "12 apples", "1..2", "GiB", "99999999999TiB", "0.1"] {
            assert!(memory_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_are_at_least_one() {
        assert_eq!(positive("7"), Ok(7));
        for text in ["0", "-3", "1.5", "", "x"] {
            assert!(positive(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_that_are_too_large_are_told_from_what_is_no_number() {
        let huge = "99999999999999999999";
        assert_eq!(piece_count(huge), Err("it must be at most 1048576".to_owned()));
        assert_eq!(worker_count("1025"), Err("it must be at most 1024".to_owned()));
        assert_eq!(seed(huge), Err("it must be at most 18446744073709551615".to_owned()));
        for text in ["-1", "x", "1.5", "", "-99999999999999999999"] {
            assert_eq!(seed(text), Err("it must be a whole number of at least 0".to_owned()), "{text}");
            assert_eq!(piece_count(text), Err("it must be a whole number of at least 1".to_owned()), "{text}");
        }
        assert_eq!((seed("0"), piece_count("1048576"), worker_count("1024")), (Ok(0), Ok(1 << 20), Ok(1024)));
    }

    #[test]
    fn more_memory_than_there_is_gets_a_warning() {
        assert_eq!(memory_warning(4096, 4096), None);
        let warning = memory_warning(100 << 40, 8 << 30).expect("it is more");
        assert!(warning.starts_with("--memory 100.0 TiB is more than the 8.0 GiB that"), "{warning}");
    }

    #[test]
    fn mappers_are_printed_as_they_are_read() {
        for text in ["default", "piecewise", "random", "random:7", "log"] {
            assert_eq!(text.parse::<MapperChoice>().map(|mapper| mapper.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "fast", "random:", "random:x", "log:3"] {
            assert!(text.parse::<MapperChoice>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_machine_has_the_workers_and_the_memory_asked_for() {
        let options = RuntimeOptions { workers: Some(3), memory: Some(1 << 20), ..Default::default() };
        let machine = options.machine();
        assert_eq!(machine.processors().len(), 3);
        let capacity = options.capacity();
        assert!(capacity <= 1 << 20 && capacity > (1 << 20) - 64, "{capacity}");
    }
}
