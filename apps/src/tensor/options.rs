//! The options of `maniple tensor`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgMatches, Args, FromArgMatches, Subcommand as _};
use maniple_tensor::choose::AlgorithmName;
use maniple_tensor::compute::{Blocks, Split};
use maniple_tensor::cost::Rates;
use maniple_tensor::element::ElementType;
use maniple_tensor::files::TensorFile;
use maniple_tensor::format::{Format, ParseError};
use maniple_tensor::generate::Generator;
use maniple_tensor::machine::Grid;
use maniple_tensor::placement::Placement;

use super::svg_file::SvgFile;
use super::{convert, info};
use crate::error::Error;
use crate::options::{RuntimeOptions, at_most, place, positive, whole};
use crate::output::{self, Way};
use crate::rates;

/// The long description of `maniple tensor`, which its `--help` shows.
pub const ABOUT: &str = "\
Compute with tensors: say what in index notation, and the program finds out how to run it on all processors of all nodes.

A statement names tensors and index variables: in `A(i,j) = B(i,k) * C(k,j)`, i and j are those of the result, and the product is summed over k, which is on the \
right alone. There are + - * /, numbers, min, max, sqrt and the like, and `+=`, which adds to what the result holds. A name without variables, \
such as `a` in `a = B(i,j) * C(i,j)`, is a single number. Several statements, with `;` between them, are computed one after the other.

How long an index variable is, is said with --size or follows from the files given with --input. Tensors without a file have random elements, the same for the same \
--seed, on however many nodes. An algorithm says who computes which part of the result and what is fetched when; without --algorithm, costs of many schedules are estimated and the cheapest is taken. \
None of this changes the result, which --verify compares with the definition.

The program runs the statement once to compile it and to make room, and then --repeat times, with operands that were made anew where the algorithm wants them. It prints the median time \
and what that is in arithmetic, or in bytes where memory is what limits it, and how many bytes moved between nodes.";

/// The examples that `maniple tensor --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple tensor 'A(i,j) = B(i,k) * C(k,j)' --size i=2048,j=2048,k=2048
  maniple tensor 'A(i,j) = B(i,k) * C(k,j)' --explain     how, and what it costs
  maniple tensor 'A(i,j) = B(i,k) * C(k,j)' --algorithm cannon --grid 2x2
  maniple tensor 'A(i,j) = B(i,k) * C(k,j)' --draw cannon.svg --explain
  maniple launch -n 4 -- maniple tensor 'A(i,j) = B(i,k) * C(k,j)'
  maniple tensor 'a = B(i,j,k) * C(i,j,k)' --type f32     an inner product
  maniple tensor 'y(i) = A(i,j) * x(j) + b(i)' --verify   any other statement
  maniple tensor 'A(i,j) = B(i,j) + C(j,i)' --input B=b.npy --output a.npy
  maniple tensor 'T(i,k) = B(i,j) * C(j,k); a = T(i,i)'    two statements
  maniple tensor 'A(i,j) = B(i,j) * 2' --schedule 'parallelize(j, vector)'
  maniple tensor 'y(i) = A(j,i) * x(j)' --format 'A={D,D}(1,0)'   by columns
  maniple tensor 'y(i) = A(i,j) * x(j)' --input A=web.mtx --format A=csr
  maniple tensor 'y(i) = A(i,j) * x(j)' --generate A=rmat:12 --format A=csr
  maniple launch -n 2 -- maniple tensor 'a(i) = B(i,j) * c(j)' -i B:web.tcs
          --split i=8 -o a.tcs
  maniple tensor info web.mtx                      what is in a file
  maniple tensor convert web.mtx web.npz --format csr";

/// A statement, or something else to do with tensors.
#[derive(Clone, Debug)]
pub enum CommandLine {
    /// A statement.
    Statement(Box<TensorOptions>),
    /// Something to do with files.
    File(Box<Subcommand>),
}

impl CommandLine {
    /// Whether a file goes to the standard output.
    #[must_use]
    pub fn writes_to_standard_output(&self) -> bool {
        match self {
            Self::Statement(options) => {
                let mut outputs = options.output.iter().map(|(_, file)| file.path());
                outputs.any(output::is_standard) || options.draw.as_ref().is_some_and(SvgFile::is_standard)
            }
            Self::File(file) => match &**file {
                Subcommand::Convert(options) => output::is_standard(options.to.path()),
                Subcommand::Info(options) => options.draw.as_ref().is_some_and(SvgFile::is_standard),
            },
        }
    }
}

impl Args for CommandLine {
    fn augment_args(command: clap::Command) -> clap::Command {
        let command = Subcommand::augment_subcommands(TensorOptions::augment_args(command));
        command.args_conflicts_with_subcommands(true).subcommand_negates_reqs(true)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CommandLine {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match matches.subcommand_name() {
            Some(_) => Subcommand::from_arg_matches(matches).map(|file| Self::File(Box::new(file))),
            None => TensorOptions::from_arg_matches(matches).map(|options| Self::Statement(Box::new(options))),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Commands on files of tensors.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum Subcommand {
    /// Tell what is in a file of a sparse tensor
    #[command(long_about = info::ABOUT, after_long_help = info::EXAMPLES)]
    Info(info::TensorInfoOptions),

    /// Write a sparse tensor to another file, in another form or format
    #[command(long_about = convert::ABOUT, after_long_help = convert::EXAMPLES)]
    Convert(convert::ConvertOptions),
}

/// The statement to compute, its tensors, and how.
#[derive(Args, Clone, Debug)]
pub struct TensorOptions {
    /// Statement to compute, in index notation; several statements with `;` or lines between them; or `@FILE`, a file
    /// with them
    #[arg(value_name = "STATEMENT")]
    pub statement: String,

    /// How many values index variables have, such as `i=2048,j=100` [default: from the files; else 1000 where the
    /// largest tensor is a matrix, a million where it is a vector, 100 and 31 where it has three and four dimensions]
    #[arg(long, value_name = "NAME=N,...", value_delimiter = ',', value_parser = extent)]
    pub size: Vec<(String, i64)>,

    /// The type of all elements, or of a tensor's, such as `f32` or `f64,B=f32` [default: that in which NumPy computes
    /// with what the files have; else f64]
    #[arg(long = "type", value_name = "[NAME=]TYPE,...", value_delimiter = ',', value_parser = element)]
    pub element: Vec<(Option<String>, ElementType)>,

    /// How to run it; `none` is in one piece, on one processor [default: what is expected to take the least time]
    #[arg(long, value_name = "NAME", value_parser = algorithm())]
    pub algorithm: Option<AlgorithmName>,

    /// How fast processors are, by which schedules are chosen, as `maniple info --rates` prints it; the same on all
    /// nodes [default: a core of a laptop of 2020]
    #[arg(long, value_name = "FILE")]
    pub rates: Option<PathBuf>,

    /// The grid of processors: extents such as 4, 2x2 or 2x2x2 [default: as many as the job has workers, in a shape
    /// that moves little]
    #[arg(long, value_name = "PxQ...", allow_hyphen_values = true)]
    pub grid: Option<Grid>,

    /// SUMMA: how many columns and rows are broadcast in each step [default: as wide as a tile]
    #[arg(long, value_name = "N", value_parser = chunk, allow_hyphen_values = true)]
    pub chunk: Option<i64>,

    /// How a statement runs, as commands such as `split(k, ko, ki, 16); reorder({ko, i, j, ki})`, with `;` or lines
    /// between them, or `@FILE`, a file with them. Of several statements `2:` before them says which is meant.
    /// Statements then run as they are written, and none is divided; once for each
    #[arg(long, value_name = "[N:]COMMANDS", allow_hyphen_values = true)]
    pub schedule: Vec<String>,

    /// How the values of an index variable are split into blocks: in so many ranges, `i=8`, or where ranges begin,
    /// `i=0,10,25`; once for each variable. With these, `--order`, `--extend` and `--map` a statement runs block by
    /// block, in place of a --schedule; --explain shows the commands
    #[arg(long, value_name = "NAME=N", value_parser = Split::parse)]
    pub split: Vec<(String, Split)>,

    /// In which order blocks are computed: all index variables, such as `j,i` [default: the order of the loops]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub order: Vec<String>,

    /// The variables that are summed over for whose blocks partial results are made at the same time, and then added up
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub extend: Vec<String>,

    /// The variables whose blocks say where kernels run [default: those of the result]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub map: Vec<String>,

    /// Place of a tensor's parts at the beginning, such as `B=xy -> xy`, or `B=xy -> f : ~f` for parts with as many
    /// stored elements each; once for each tensor [default: where they are used]
    #[arg(long, value_name = "NAME=PLACEMENT", value_parser = placement)]
    pub place: Vec<(String, Placement)>,

    /// Library that multiplies matrices: a BLAS of the system, by its name or path; `none`, the crate gemm; or `auto`,
    /// the first of OpenBLAS, BLIS and MKL that is installed and has kernels for this processor, else gemm [default:
    /// what the environment variable MANIPLE_BLAS says; else auto]
    #[arg(long, value_name = "LIBRARY")]
    pub blas: Option<String>,

    /// How often it is computed, after the first time
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = positive, allow_hyphen_values = true)]
    pub repeat: usize,

    /// Compare the result with the definition: all elements, or as many random ones as take a few seconds
    #[arg(long)]
    pub verify: bool,

    /// Read a tensor from a file: NumPy's .npy, or a Matrix Market `array` file (.mtx) for a matrix; sparse ones also
    /// from .tns, whose extents --size says, .npz and .tcs, which says how it is stored; or any of them from a pipe,
    /// such as /dev/stdin, whose content says what it is; on several nodes each reads a part; once for each tensor
    #[arg(short, long, value_name = "NAME=FILE", value_parser = input)]
    pub input: Vec<(String, TensorFile)>,

    /// Make a sparse tensor, such as `A=uniform:0.01` or `A=poisson:1000`: uniform, zipf, band, poisson, poisson3,
    /// rmat, arrow, hypersparse; once for each tensor
    #[arg(long, value_name = "NAME=KIND", value_parser = generate)]
    pub generate: Vec<(String, Generator)>,

    /// How a tensor is stored: `rows`, `columns`, `csr`, `csc`, `coo`, `csf:3` and other names, or levels and the
    /// dimension that each stores, such as `B={D,C}(1,0)`; once for each tensor. With a sparse one, statements run on
    /// one node unless loops are distributed, in one type [default: rows]
    #[arg(short, long, value_name = "NAME=FORMAT", value_parser = format)]
    pub format: Vec<(String, Format)>,

    /// Value of the elements of a sparse tensor that are not stored, such as `A=inf` or `E=1`; once for each tensor
    /// [default: what its file says; else 0]
    #[arg(long, value_name = "NAME=NUMBER", value_parser = fill)]
    pub fill: Vec<(String, f64)>,

    /// Write a result to a file, .npy or .mtx, sparse ones also .tns, .npz or .tcs, or to a pipe, as in
    /// mtx:/dev/stdout; the last one unless another is named; once for each result
    #[arg(short, long, value_name = "[NAME=]FILE", value_parser = output_file)]
    pub output: Vec<(Option<String>, TensorFile)>,

    /// Nodes write the file of a result one after the other, and not at once: for file systems such as NFS, on which
    /// several can't write one file
    #[arg(long)]
    pub serial_writes: bool,

    /// Tell how it would be computed, and what that would cost: loops, partitions, launches, bytes. Nothing is
    /// computed; on several nodes, sparse operands are read and moved, to count what each node sends
    #[arg(long)]
    pub explain: bool,

    /// Draw what each processor holds of each tensor, and what processors send each other in each step, as SVG
    #[arg(long, value_name = "FILE")]
    pub draw: Option<SvgFile>,

    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

/// The parser of names of algorithms.
fn algorithm() -> impl TypedValueParser<Value = AlgorithmName> {
    let names = AlgorithmName::ALL.map(|(_, name, description)| PossibleValue::new(name).help(description));
    PossibleValuesParser::new(names).map(|text| {
        let mut all = AlgorithmName::ALL.into_iter();
        all.find(|(_, name, _)| *name == text).map_or(AlgorithmName::None, |(algorithm, ..)| algorithm)
    })
}

/// Longer dimensions are surely a mistake.
const LONGEST: usize = 1 << 48;

fn extent(text: &str) -> Result<(String, i64), String> {
    let expected = || "it must be NAME=N, such as i=2048".to_owned();
    let (name, number) = text.split_once('=').ok_or_else(expected)?;
    if name.trim().is_empty() {
        return Err(expected());
    }
    whole(0, LONGEST as u64, number.trim()).map(|number| (name.trim().to_owned(), number as i64))
}

fn element(text: &str) -> Result<(Option<String>, ElementType), String> {
    let (name, element) = match text.split_once('=') {
        Some((name, element)) => (Some(name.trim().to_owned()), element.trim()),
        None => (None, text),
    };
    let found = ElementType::ALL.into_iter().find(|known| known.name() == element);
    let known = || ElementType::ALL.map(ElementType::name).join(", ");
    let element = found.ok_or_else(|| format!("'{element}' is no type: there are {}", known()))?;
    Ok((name, element))
}

fn output_file(text: &str) -> Result<(Option<String>, TensorFile), String> {
    // A path may have an equals sign, but names of tensors have no dots and slashes.
    let is_name =
        |name: &str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') && !name.is_empty();
    match text.split_once('=').filter(|(name, _)| is_name(name)) {
        Some((name, file)) => Ok((Some(name.to_owned()), file.parse()?)),
        None => Ok((None, text.parse()?)),
    }
}

fn input(text: &str) -> Result<(String, TensorFile), String> {
    let (name, file) = named(text).ok_or_else(|| "it must be NAME=FILE or NAME:FILE, such as B=b.npy".to_owned())?;
    Ok((name.to_owned(), TensorFile::input(file)?))
}

fn format(text: &str) -> Result<(String, Format), String> {
    let (name, format) =
        named(text).ok_or_else(|| "it must be NAME=FORMAT or NAME:LETTERS, such as B={D,D}(1,0) or B:ds".to_owned())?;
    let format = letters(format).unwrap_or_else(|| format.parse().map_err(|error: ParseError| error.to_string()));
    Ok((name.to_owned(), format?))
}

fn fill(text: &str) -> Result<(String, f64), String> {
    let (name, number) = named(text).ok_or_else(|| "it must be NAME=NUMBER, such as A=inf".to_owned())?;
    let number = number.parse().map_err(|_| format!("'{number}' is no number, as 1, -0.5, inf and nan are"))?;
    Ok((name.to_owned(), number))
}

/// A name, and what follows it after an equals sign or a colon.
fn named(text: &str) -> Option<(&str, &str)> {
    let end = text.find(['=', ':'])?;
    Some((&text[..end], &text[end + 1..]))
}

/// A format whose levels are letters, `d` for a dense and `s` for a compressed one, with the dimension of each if they
/// are in another order: `ds`, or `ds:1,0`.
fn letters(text: &str) -> Option<Result<Format, String>> {
    let (levels, order) = text.split_once(':').map_or((text, None), |(levels, order)| (levels, Some(order)));
    if levels.is_empty() || !levels.chars().all(|letter| "ds".contains(letter)) {
        return None;
    }
    let levels: Vec<&str> = levels.chars().map(|letter| if letter == 'd' { "D" } else { "C" }).collect();
    let order = order.map_or_else(String::new, |order| format!("({order})"));
    let format = format!("{{{}}}{order}", levels.join(","));
    Some(format.parse().map_err(|error: ParseError| format!("{text}: {error}")))
}

fn generate(text: &str) -> Result<(String, Generator), String> {
    let (name, kind) = text.split_once('=').ok_or_else(|| "it must be NAME=KIND, such as A=uniform:0.01".to_owned())?;
    Ok((name.trim().to_owned(), kind.parse::<Generator>().map_err(|error| error.to_string())?))
}

fn placement(text: &str) -> Result<(String, Placement), String> {
    let expected = || "it must be NAME=PLACEMENT, such as B=xy->xy".to_owned();
    let (name, placement) = text.split_once('=').ok_or_else(expected)?;
    Ok((name.trim().to_owned(), placement.parse::<Placement>().map_err(|error| error.to_string())?))
}

fn chunk(text: &str) -> Result<i64, String> {
    at_most(LONGEST, text).map(|number| number as i64)
}

/// The first that is there already.
fn twice<'a>(names: &[&'a str]) -> Option<&'a str> {
    names.iter().enumerate().find(|(number, name)| names[..*number].contains(name)).map(|(_, name)| *name)
}

impl TensorOptions {
    /// Refuses, before anything is read, what makes no sense together, and files that can't be written.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage), [`Error::Write`](crate::error::Error::Write).
    pub(super) fn check(&self) -> Result<(), Error> {
        let runs = self.runtime.about_a_run();
        let asked = [("--verify", self.verify), ("--output", !self.output.is_empty() && place().nodes == 1)];
        let asked = asked.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option);
        if let Some(option) = runs.chain(asked).next().filter(|_| self.explain) {
            return Err(Error::Usage(format!(
                "{option} is about what is computed, and with --explain nothing is: leave one of the two out"
            )));
        }
        let types: Vec<&str> =
            self.element.iter().map(|(name, _)| name.as_deref().unwrap_or("the type of all")).collect();
        let made: Vec<&str> = self.generate.iter().map(|(name, _)| name.as_str()).collect();
        let mut read = self.input.iter().map(|(name, _)| name.as_str());
        let placed: Vec<&str> = self.place.iter().map(|(name, _)| name.as_str()).collect();
        for (option, names) in [("--type", &types), ("--generate", &made)] {
            if let Some(name) = twice(names) {
                return Err(Error::Usage(format!("{option} says twice what {name} is")));
            }
        }
        if let Some(name) = read.find(|name| made.contains(name)) {
            return Err(Error::Usage(format!(
                "--input and --generate both say what {name} is: leave one of the two out"
            )));
        }
        if let Some(name) = twice(&placed) {
            return Err(Error::Usage(format!("--place says twice where {name} lies")));
        }
        // Node 0 writes, or makes the file that all write.
        for (_, file) in self.output.iter().filter(|_| place().rank.0 == 0) {
            output::check(file.path(), Way::Beside)?;
        }
        self.draw.as_ref().map_or(Ok(()), SvgFile::check)
    }

    /// Refuses what is told to the runtime, where it has nothing to do.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage).
    pub(super) fn check_without_tasks(&self) -> Result<(), Error> {
        match self.runtime.about_tasks().next() {
            Some(option) => Err(Error::Usage(format!(
                "{option} is about tasks, and statements with sparse tensors run as loops of one node unless they are distributed, as by --grid 4 or --schedule"
            ))),
            None => Ok(()),
        }
    }

    /// The extents of the grid.
    pub(super) fn grid_extents(&self) -> Option<Vec<i64>> {
        Some(self.grid.as_ref()?.extents().iter().map(|&extent| extent as i64).collect())
    }

    /// The blocks by which a statement runs.
    pub(super) fn blocks(&self) -> Blocks<'_> {
        Blocks { split: &self.split, order: &self.order, extend: &self.extend, map: &self.map, nodes: place().nodes }
    }

    /// How fast processors are.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) if a file is given that says nothing of it.
    pub(super) fn rates(&self) -> Result<Rates, Error> {
        self.rates.as_deref().map_or_else(|| Ok(Rates::default()), rates::read)
    }
}
