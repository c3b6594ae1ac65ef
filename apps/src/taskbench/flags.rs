//! Task Bench's own flags, which have one dash.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;

use super::graph::{Graph, Pattern, STAMP_BYTES};
use super::kernel::KernelKind;
use super::{Configuration, FIELDS};
use crate::error::{Error, Result};
use crate::options::MOST_PIECES;

/// A flag: its name with the dash, what its value is called, and what it does.
struct Flag(&'static str, Option<&'static str>, &'static str);

/// The flags by what they are about.
const FLAGS: [(&str, &[Flag]); 4] = [
    (
        "Task graph",
        &[
            Flag("-steps", Some("N"), "steps, each a row of tasks [4]"),
            Flag("-width", Some("N"), "tasks of a step: at most 1048576 [4]"),
            Flag("-type", Some("PATTERN"), "what tasks depend on [trivial]"),
            Flag("-radix", Some("N"), "how many tasks (nearest, spread, random_nearest) [3]"),
            Flag("-period", Some("N"), "after how many steps it repeats (spread, random_nearest) [3]"),
            Flag("-fraction", Some("X"), "the share of dependences that are there (random_nearest) [0.25]"),
            Flag("-and", None, "what follows is about one more graph, from the defaults on"),
        ],
    ),
    (
        "Tasks",
        &[
            Flag("-kernel", Some("KERNEL"), "what a task computes [empty]"),
            Flag("-iter", Some("N"), "how often [0]"),
            Flag("-output", Some("BYTES"), "what it writes, and tasks that depend on it read: at least 16 [16]"),
            Flag("-scratch", Some("BYTES"), "what it has to work in: a multiple of 8 [0]"),
            Flag("-sample", Some("N"), "parts of the scratch; an iteration takes one [16]"),
            Flag("-imbalance", Some("X"), "how far iterations differ (load_imbalance): 0 to 2 [0]"),
        ],
    ),
    (
        "Report",
        &[
            Flag("-v", None, "also list the dependences"),
            Flag("-vv", None, "also list them from the other side"),
            Flag("-nodes", Some("N"), "estimate what so many machines would send each other"),
        ],
    ),
    (
        "Rarely needed",
        &[
            Flag("-fields", Some("N"), "fields that the steps write in turn: 2 to 512 [FIELDS]"),
            Flag("-field", Some("N"), "accepted, since other implementations have it"),
            Flag("-skip-graph-validation", None, "do not check that every task has run"),
        ],
    ),
];

/// The flags, patterns and kernels, for the help.
#[must_use]
pub fn help() -> String {
    let mut text = String::new();
    for (title, flags) in &FLAGS {
        let rows = flags.iter().map(|Flag(name, value, about)| {
            let name = value.map_or_else(|| (*name).to_owned(), |value| format!("{name} {value}"));
            (name, about.replace("FIELDS", &FIELDS.to_string()))
        });
        section(&mut text, title, rows);
    }
    section(&mut text, "Patterns", Pattern::ALL.map(|pattern| (pattern.to_string(), pattern.about().to_owned())));
    section(&mut text, "Kernels", KernelKind::ALL.map(|kind| (kind.to_string(), kind.about().to_owned())));
    text
}

fn section(text: &mut String, title: &str, rows: impl IntoIterator<Item = (String, String)>) {
    let _ = writeln!(text, "{title}:");
    for (name, about) in rows {
        let _ = writeln!(text, "  {name:<22}  {about}");
    }
    text.push('\n');
}

/// Whether a flag takes a value; `None` for what is no flag of Task Bench.
fn takes_value(flag: &OsStr) -> Option<bool> {
    let mut flags = FLAGS.iter().flat_map(|(_, flags)| *flags);
    flags.find(|Flag(name, ..)| flag == *name).map(|Flag(_, value, _)| value.is_some())
}

/// Puts the flags of `maniple run taskbench` behind a `--`, and before it everything else that the command line has.
///
/// So both may be mixed, as in `-steps 10 --workers 2 -width 4`. A flag with a value may have two dashes, as
/// `maniple run metg` has them. Flags that are unknown, and words that belong to none, go with the flags: Task Bench
/// leaves them to the runtime that it is built on. For `maniple run metg`, names of options that have one dash get the
/// other. Other commands are left as they are.
#[must_use]
pub fn apart(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    // Right behind the program's name: what `maniple launch` is to start is not ours to change.
    if arguments.get(1..3).is_some_and(|words| words == ["run", "metg"]) {
        arguments.iter_mut().skip(3).for_each(double_dash);
        return arguments;
    }
    if arguments.get(1..3).is_none_or(|words| words != ["run", "taskbench"]) {
        return arguments;
    }
    let mut rest = arguments.split_off(3).into_iter().peekable();
    let mut flags = Vec::new();
    while let Some(word) = rest.next() {
        let bytes = word.as_encoded_bytes();
        if bytes == b"--" {
            flags.extend(rest);
            break;
        }
        let one_dash = word.to_str().and_then(|word| word.strip_prefix('-')).filter(|flag| flag.starts_with('-'));
        if let Some(flag) = one_dash.filter(|flag| takes_value(flag.as_ref()) == Some(true)) {
            flags.push(flag.into());
            flags.extend(rest.next());
        } else if bytes.starts_with(b"--") || bytes == b"-h" || bytes == b"-V" {
            let has_value = !bytes.contains(&b'=');
            arguments.push(word);
            let is_value = |next: &OsString| has_value && !next.as_encoded_bytes().starts_with(b"-");
            arguments.extend(rest.next_if(is_value));
        } else {
            let has_value = takes_value(&word).unwrap_or(false);
            flags.push(word);
            flags.extend(rest.next_if(|_| has_value));
        }
    }
    arguments.push("--".into());
    arguments.extend(flags);
    arguments
}

/// Gives the name of a flag that has one dash another.
fn double_dash(word: &mut OsString) {
    let name = word.to_str().and_then(|word| word.split('=').next());
    if name.is_some_and(|name| ["-type", "-width", "-radix", "-period"].contains(&name)) {
        *word = OsString::from_iter([OsStr::new("-"), word.as_os_str()]);
    }
}

/// Reads Task Bench's flags. What it does not know it ignores, but says so.
///
/// # Errors
/// [`Error::Usage`] if a flag lacks its value or has one that makes no sense, also together with others.
pub fn parse(flags: &[String]) -> Result<Configuration> {
    let mut configuration = Configuration::default();
    configuration.graphs.clear();
    let mut next = Unfinished::new(0);
    let mut words = flags.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-and" => {
                configuration.graphs.push(next.finish()?);
                next = Unfinished::new(configuration.graphs.len() as i64);
            }
            "-v" => configuration.verbosity += 1,
            "-vv" => configuration.verbosity += 2,
            "-skip-graph-validation" => configuration.validates = false,
            flag if takes_value(flag.as_ref()) == Some(true) => {
                let Some(value) = words.next() else {
                    return Err(Error::Usage(format!("a value is required for '{flag}' but none was supplied")));
                };
                let read =
                    configuration.set(flag, value).and_then(|known| if known { Ok(()) } else { next.set(flag, value) });
                read.map_err(|reason| Error::Usage(format!("invalid value '{value}' for '{flag}': {reason}")))?;
            }
            other => configuration.ignored.push(other.to_owned()),
        }
    }
    configuration.graphs.push(next.finish()?);
    Ok(configuration)
}

impl Configuration {
    /// Reads a flag that is not about one graph. False if it is.
    fn set(&mut self, flag: &str, value: &str) -> Result<bool, String> {
        match flag {
            "-nodes" => self.nodes = Some(whole(value, 1, MOST)?),
            "-fields" => self.fields = whole(value, 2, 512)? as usize,
            "-field" => _ = whole(value, 2, MOST)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A graph whose flags are being read.
struct Unfinished {
    graph: Graph,
    period: Option<i64>,
}

impl Unfinished {
    fn new(index: i64) -> Self {
        Self { graph: Graph::new(index), period: None }
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        let graph = &mut self.graph;
        match flag {
            "-steps" => graph.steps = whole(value, 1, MOST)?,
            "-width" => graph.width = whole(value, 1, MOST_PIECES as i64)?,
            "-type" => graph.pattern = value.parse()?,
            "-radix" => graph.radix = whole(value, 0, MOST_PIECES as i64)?,
            "-period" => self.period = Some(whole(value, 0, MOST_PIECES as i64)?),
            "-fraction" => graph.fraction = number(value, 1.0)?,
            "-kernel" => graph.kernel.kind = value.parse()?,
            "-iter" => graph.kernel.iterations = whole(value, 0, MOST)?,
            "-output" => graph.output_bytes = whole(value, STAMP_BYTES, MOST_BYTES)?,
            "-scratch" => graph.scratch_bytes = whole(value, 0, MOST_BYTES)?,
            "-sample" => graph.kernel.samples = whole(value, 0, i64::from(i32::MAX))?,
            "-imbalance" => graph.kernel.imbalance = number(value, 2.0)?,
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Graph> {
        complete(self.graph, self.period).map_err(|problem| Error::Usage(problem.said("-")))
    }
}

/// The graph, if what it is described by makes sense together.
///
/// # Errors
/// The [`GraphProblem`] of the description.
pub fn complete(mut graph: Graph, period: Option<i64>) -> Result<Graph, GraphProblem> {
    let (pattern, kernel) = (graph.pattern, &graph.kernel);
    graph.period = period.unwrap_or(if pattern.has_period() { 3 } else { 0 });
    let longest = (graph.width + graph.radix - 1) / graph.radix.max(1);
    if pattern.has_period() && graph.period == 0 {
        Err(GraphProblem::NeedsPeriod(pattern))
    } else if !pattern.has_period() && graph.period != 0 {
        Err(GraphProblem::HasNoPeriod(pattern))
    } else if pattern == Pattern::Spread && graph.radix == 0 {
        Err(GraphProblem::NeedsRadix(pattern))
    } else if pattern == Pattern::Spread && graph.period > longest {
        let Graph { width, radix, period, .. } = graph;
        Err(GraphProblem::LongPeriod { pattern, width, radix, period, longest })
    } else if graph.most_inputs().saturating_mul(graph.period.max(1)) > MOST_INPUTS {
        let Graph { width, pattern, period, .. } = graph;
        Err(GraphProblem::ManyInputs { pattern, width, period, inputs: graph.most_inputs() })
    } else if kernel.kind.needs_scratch() && graph.scratch_bytes == 0 {
        Err(GraphProblem::NeedsScratch(kernel.kind))
    } else if graph.scratch_bytes % 8 != 0 {
        Err(GraphProblem::OddScratch(graph.scratch_bytes))
    } else if kernel.kind.needs_samples() && kernel.samples == 0 {
        Err(GraphProblem::NeedsSample(kernel.kind))
    } else {
        Ok(graph)
    }
}

/// A contradiction in the description of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphProblem {
    /// A pattern that repeats after no steps.
    NeedsPeriod(Pattern),
    /// A period for a pattern that has none.
    HasNoPeriod(Pattern),
    /// A pattern in which tasks depend on no others.
    NeedsRadix(Pattern),
    /// A pattern that would wrap around.
    LongPeriod {
        /// The pattern.
        pattern: Pattern,
        /// Tasks of a step.
        width: i64,
        /// On how many tasks a task depends.
        radix: i64,
        /// After how many steps it was to repeat.
        period: i64,
        /// After how many it can.
        longest: i64,
    },
    /// A pattern in which tasks depend on so many others that memory would not suffice.
    ManyInputs {
        /// The pattern.
        pattern: Pattern,
        /// Tasks of a step.
        width: i64,
        /// After how many steps it repeats; 0 if it has no period.
        period: i64,
        /// On how many tasks the tasks of a step depend together.
        inputs: i64,
    },
    /// A kernel without memory to work in.
    NeedsScratch(KernelKind),
    /// Memory to work in that is no whole number of words.
    OddScratch(i64),
    /// A kernel without parts of its memory.
    NeedsSample(KernelKind),
}

impl GraphProblem {
    /// In words, for users who know the flags with these dashes.
    #[must_use]
    pub fn said(self, dashes: &str) -> String {
        match self {
            Self::NeedsPeriod(pattern) => {
                format!("the pattern {pattern} needs a period of at least 1: set it with {dashes}period")
            }
            Self::HasNoPeriod(pattern) => {
                format!("the pattern {pattern} has no period that could be set: drop {dashes}period")
            }
            Self::NeedsRadix(pattern) => {
                format!("the pattern {pattern} needs a radix of at least 1: set it with {dashes}radix")
            }
            Self::LongPeriod { pattern, width, radix, period, longest } => format!(
                "the pattern {pattern} with width {width} and radix {radix} has a period of at most {longest}, not {period}: \
                 set it with {dashes}period"
            ),
            Self::ManyInputs { pattern, width, period, inputs } => {
                let (others, times) = match pattern {
                    Pattern::AllToAll => ("", String::new()),
                    _ if period > 0 => (" or -radix or -period", format!(", and others in each of {period} steps")),
                    _ => (" or -radix", String::new()),
                };
                format!(
                    "the {width} tasks of a step have {inputs} inputs by the pattern {pattern}{times}, but a graph has at most {MOST_INPUTS}: \
                     take a smaller {dashes}width{}",
                    others.replace('-', dashes)
                )
            }
            Self::NeedsScratch(kernel) => {
                format!("the kernel {kernel} needs memory to work in: set it with {dashes}scratch")
            }
            Self::OddScratch(bytes) => {
                format!("a scratch of {bytes} bytes is no multiple of 8: change {dashes}scratch")
            }
            Self::NeedsSample(kernel) => {
                format!("the kernel {kernel} needs at least 1 sample: set it with {dashes}sample")
            }
        }
    }
}

/// The most inputs of all tasks of a step together, in all steps of a period: each input takes some 50 bytes while the
/// graph runs.
const MOST_INPUTS: i64 = 1 << 24;

/// More than this of anything is surely a mistake.
const MOST: i64 = 1 << 48;

/// More bytes than this a task surely has no use for.
const MOST_BYTES: i64 = 1 << 40;

fn whole(text: &str, least: i64, most: i64) -> Result<i64, String> {
    match text.parse::<i64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        Ok(number) if number < least => Err(format!("it must be at least {least}")),
        Ok(_) => Err(format!("it must be at most {most}")),
        Err(_) => Err(format!("it must be a whole number of at least {least} and at most {most}")),
    }
}

fn number(text: &str, most: f64) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number));
    number.ok_or_else(|| format!("it must be a number between 0 and {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(flags: &str) -> Result<Configuration> {
        parse(&flags.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn problem(flags: &str) -> String {
        parsed(flags).expect_err("they make no sense").to_string()
    }

    #[test]
    fn without_flags_there_is_task_benchs_default_graph() {
        let configuration = parsed("").expect("nothing is wrong");
        assert_eq!(configuration, Configuration::default());
        assert_eq!(configuration.graphs, [Graph::new(0)]);
    }

    #[test]
    fn every_flag_is_understood() {
        let text = "-steps 9 -width 8 -type spread -radix 2 -period 4 -fraction 0.5 -kernel memory_bound -iter 7 -output 48 -scratch 64 \
                    -sample 3 -imbalance 1.5 -v -vv -nodes 2 -fields 5 -field 2 -skip-graph-validation";
        let configuration = parsed(text).expect("nothing is wrong");
        let graph = Graph {
            steps: 9,
            width: 8,
            pattern: Pattern::Spread,
            radix: 2,
            period: 4,
            fraction: 0.5,
            kernel: super::super::kernel::Kernel {
                kind: KernelKind::MemoryBound,
                iterations: 7,
                samples: 3,
                imbalance: 1.5,
            },
            output_bytes: 48,
            scratch_bytes: 64,
            ..Graph::new(0)
        };
        let expected = Configuration {
            graphs: vec![graph],
            verbosity: 3,
            nodes: Some(2),
            fields: 5,
            validates: false,
            ignored: Vec::new(),
        };
        assert_eq!(configuration, expected);
    }

    #[test]
    fn flags_of_the_table_take_a_value_or_none_as_it_says() {
        for Flag(name, value, _) in FLAGS.iter().flat_map(|(_, flags)| *flags) {
            assert_eq!(takes_value(name.as_ref()), Some(value.is_some()));
            let alone = parsed(name);
            assert_eq!(alone.is_err(), value.is_some(), "{name}");
            if value.is_some() {
                let message = format!("a value is required for '{name}' but none was supplied");
                assert_eq!(problem(name), message);
                assert!(
                    problem(&format!("{name} nonsense")).starts_with(&format!("invalid value 'nonsense' for '{name}'"))
                );
            }
        }
    }

    #[test]
    fn each_graph_starts_from_the_defaults() {
        let configuration = parsed("-width 9 -type fft -and -steps 3 -and").expect("nothing is wrong");
        let expected = [
            Graph { width: 9, pattern: Pattern::Fft, ..Graph::new(0) },
            Graph { steps: 3, ..Graph::new(1) },
            Graph::new(2),
        ];
        assert_eq!(configuration.graphs, expected);
    }

    #[test]
    fn what_is_not_known_is_ignored_and_listed() {
        let configuration = parsed("-ll:cpu 2 -steps 5 stray -wide 7").expect("nothing is wrong");
        assert_eq!(configuration.graphs, [Graph { steps: 5, ..Graph::new(0) }]);
        assert_eq!(configuration.ignored, ["-ll:cpu", "2", "stray", "-wide", "7"]);
    }

    #[test]
    fn only_patterns_with_a_period_have_one() {
        let period = |flags| parsed(flags).map(|configuration| configuration.graphs[0].period).ok();
        assert_eq!(period("-type random_nearest"), Some(3));
        assert_eq!(period("-type random_nearest -period 5"), Some(5));
        assert_eq!(period("-type fft"), Some(0));
        assert_eq!(period("-type fft -period 0"), Some(0));
        assert_eq!(problem("-type fft -period 2"), "the pattern fft has no period that could be set: drop -period");
        let message = "the pattern spread needs a period of at least 1: set it with -period";
        assert_eq!(problem("-type spread -period 0"), message);
    }

    #[test]
    fn spread_must_not_wrap_around() {
        assert!(parsed("-type spread -width 9").is_ok());
        let message =
            "the pattern spread with width 4 and radix 3 has a period of at most 2, not 3: set it with -period";
        assert_eq!(problem("-type spread"), message);
        assert!(problem("-type spread -radix 0").contains("a radix of at least 1"));
    }

    #[test]
    fn a_step_has_no_more_inputs_than_fit_into_memory() {
        for fits in [
            "-width 1048576 -type stencil_1d",
            "-width 1048576 -type fft",
            "-width 1048576 -type spread",
            "-width 4096 -type all_to_all",
            "-width 4 -type nearest -radix 1048576",
        ] {
            assert!(parsed(fits).is_ok(), "{fits}");
        }
        assert_eq!(
            problem("-width 400000 -type all_to_all"),
            "the 400000 tasks of a step have 160000000000 inputs by the pattern all_to_all, but a graph has at most 16777216: take a smaller -width"
        );
        for (flags, end) in [
            ("-width 400000 -type nearest -radix 400000", "take a smaller -width or -radix"),
            ("-width 1048576 -type random_nearest -radix 8", "take a smaller -width or -radix or -period"),
            ("-width 1048576 -type spread -radix 1048576 -period 1", "take a smaller -width or -radix or -period"),
            ("-width 10 -type random_nearest -period 1048576", "take a smaller -width or -radix or -period"),
            ("-width 1048576 -type spread -radix 1024 -period 1024", "take a smaller -width or -radix or -period"),
        ] {
            assert!(problem(flags).ends_with(end), "{flags}: {}", problem(flags));
        }
    }

    #[test]
    fn kernels_have_the_memory_that_they_need() {
        assert!(problem("-kernel memory_daxpy").contains("set it with -scratch"));
        assert!(problem("-kernel compute_dgemm -scratch 100").contains("no multiple of 8"));
        assert!(problem("-kernel memory_bound -scratch 64 -sample 0").contains("at least 1 sample"));
        assert!(parsed("-kernel compute_bound -sample 0").is_ok());
    }

    #[test]
    fn values_have_limits() {
        for (flags, reason) in [
            ("-steps 0", "it must be at least 1"),
            ("-steps -1", "it must be at least 1"),
            ("-width 1048577", "it must be at most 1048576"),
            ("-output 15", "it must be at least 16"),
            ("-output 1e3", "it must be a whole number of at least 16 and at most 1099511627776"),
            ("-fraction 1.01", "it must be a number between 0 and 1"),
            ("-fraction nan", "it must be a number between 0 and 1"),
            ("-imbalance -0.1", "it must be a number between 0 and 2"),
            ("-fields 1", "it must be at least 2"),
            ("-field 1", "it must be at least 2"),
            ("-type random_spread", "Task Bench lists it, but nobody implements it"),
            ("-kernel io_bound", "Task Bench lists it, but nobody implements it"),
        ] {
            assert!(problem(flags).ends_with(reason), "{flags}: {}", problem(flags));
        }
    }

    #[test]
    fn options_and_flags_may_be_mixed() {
        let apart = |words: &str| {
            let words = apart(words.split_whitespace().map(OsString::from));
            words.iter().map(|word| word.to_str().unwrap_or_default()).collect::<Vec<_>>().join(" ")
        };
        let mixed = "maniple run taskbench -steps 10 --workers 2 -width 4 --memory=1GiB -v --seed 3";
        assert_eq!(apart(mixed), "maniple run taskbench --workers 2 --memory=1GiB --seed 3 -- -steps 10 -width 4 -v");
        assert_eq!(apart("maniple run taskbench -steps -h"), "maniple run taskbench -- -steps -h", "a value");
        assert_eq!(apart("maniple run taskbench --type fft --seed 3"), "maniple run taskbench --seed 3 -- -type fft");
        assert_eq!(apart("maniple run taskbench --steps"), "maniple run taskbench -- -steps", "its value is missing");
        assert_eq!(apart("maniple run taskbench -ll:cpu 4 -h"), "maniple run taskbench -h -- -ll:cpu 4");
        assert_eq!(apart("maniple run taskbench --workers -steps 3"), "maniple run taskbench --workers -- -steps 3");
        assert_eq!(apart("maniple run taskbench --seed 1 -- --workers"), "maniple run taskbench --seed 1 -- --workers");
        assert_eq!(apart("maniple run circuit -steps"), "maniple run circuit -steps");
        assert_eq!(apart("maniple"), "maniple");
        let launch = "maniple launch -n 2 -- maniple run taskbench -steps 3 --workers 1";
        assert_eq!(apart(launch), launch);
    }
}
