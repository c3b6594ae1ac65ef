//! Statements on sparse tensors: each by a kernel of its own on one node, or, if a loop is distributed, as tasks on all.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use maniple_tensor::element::{Element, ElementType, Scalar};
use maniple_tensor::format::{Format, Level};
use maniple_tensor::generate::Generator;
use maniple_tensor::kernel::{Kernels, Scoped};
use maniple_tensor::notation::{TensorVariable, cast};
use maniple_tensor::oracle::{self, SparseMap};
use maniple_tensor::program::Program;
use maniple_tensor::storage::{self, Duplicates, EntryList, SparseTensor, pack};
use maniple_tensor::with_element;

use super::Answer;
use super::files::{Contents, SparseFile, Stored, TensorFile, format_of};
use super::loops::{Loops, usage};
use super::options::Options;
use super::picture::arranged;
use super::problem::{Extents, accesses, index_variables, said, schedules, sketched, usual_extent};
use super::values::Values;
use crate::error::{Error, Result};
use crate::input::InputError;
use crate::options::place;
use crate::report::{Table, counted, seconds};

/// What was computed with sparse tensors, and how fast.
#[derive(Clone, Debug)]
pub struct Report {
    /// The statements.
    pub statement: String,
    /// The extents of index variables.
    pub sizes: String,
    /// The tensors: how each is stored, and how many elements that are.
    pub tensors: Vec<String>,
    /// How long the first time took, with making kernels.
    pub first: Duration,
    /// The median of the other times, and how many these were.
    pub time: (Duration, usize),
    /// How many elements were compared with the definition, if that was asked for, and how long that took.
    pub checked: Option<(usize, Duration)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time, repeats) = self.time;
        let checked = self.checked.map(|(count, time)| {
            format!("{} in {}: within rounding", counted(count, "element", "elements"), seconds(time))
        });
        let table = Table::new()
            .line("statement", &self.statement)
            .line("sizes", &self.sizes)
            .line("stored", self.tensors.join("; "))
            .line("first time", seconds(self.first))
            .line("time", format_args!("{} (median of {repeats})", seconds(time)))
            .maybe("verified", checked);
        write!(f, "sparse tensors\n{table}")
    }
}

/// Whether a tensor is stored sparsely, or made so.
pub fn is_asked_for(options: &Options) -> bool {
    let is_sparse = |format: &Format| format.levels().iter().any(|level| *level != Level::Dense) || !format.is_plain();
    let has_levels = |file: &TensorFile| file.path().extension().is_some_and(|extension| extension == "tcs");
    !options.generate.is_empty()
        || options.format.iter().any(|(_, format)| is_sparse(format))
        || options.input.iter().any(|(_, file)| has_levels(file))
}

/// The options, with the formats that `.tcs` files say where --format does not.
fn with_formats_of_files(options: &Options) -> Result<Options> {
    let mut told = options.clone();
    for (name, file) in &options.input {
        if told.format.iter().any(|(other, _)| other == name) {
            continue;
        }
        let header = SparseFile::of(file.path())?.header()?;
        if let Some(format) = header.and_then(|header| format_of(&header).ok()) {
            told.format.push((name.clone(), format));
        }
    }
    Ok(told)
}

/// Computes statements on sparse tensors, or tells how.
///
/// # Errors
/// [`Error::Usage`] if options do not fit each other, [`Error::Input`] and [`Error::Write`] for files, [`Error::Verification`].
pub fn run(options: &Options) -> Result<Answer> {
    refuse_others(options)?;
    let options = &with_formats_of_files(options)?;
    let element = options.element.iter().rev().find(|(name, _)| name.is_none());
    let element = element.map_or(ElementType::F64, |(_, element)| *element);
    with_element!(element, T => run_as::<T>(options))
}

fn run_as<T: Element + Stored>(options: &Options) -> Result<Answer> {
    let text = said(&options.statement)?;
    let mut given = BTreeMap::new();
    for (name, file) in &options.input {
        if given.insert(name.clone(), read_as::<T>(file.path())?).is_some() {
            return Err(Error::Usage(format!("--input says twice what {name} is")));
        }
    }
    let program = declared(options, <T as Element>::TYPE, &text, &given)?;
    let schedules = schedules(options, &program)?;
    if options.grid.is_some() && !options.schedule.is_empty() {
        let problem = "--grid distributes the outermost loops, and --schedule those that it names";
        return Err(Error::Usage(format!("{problem}: leave one of the two out")));
    }
    let grid = match &options.grid {
        Some(grid) => grid.extents().iter().map(|&extent| extent as i64).collect(),
        None if place().nodes > 1 && schedules.is_empty() => vec![place().nodes as i64],
        None => Vec::new(),
    };
    let threads = options.runtime.machine().processors_of(maniple::ProcessorKind::Cpu).count();
    let mut loops = Loops::new(&program, &schedules, &grid, options)?;
    let tasks = loops.tasks()?;
    if tasks.is_none() && place().nodes > 1 {
        return Err(Error::Usage(format!(
            "this job has {} nodes, and one alone would compute: distribute a loop in each --schedule, as by 'distribute({{i}}, {{io}}, {{ii}}, {{4}})', or say --grid 4",
            place().nodes
        )));
    }
    let mut tensors = BTreeMap::new();
    for tensor in program.inputs() {
        tensors.insert(tensor.name().to_owned(), operand(options, &tensor, given.remove(tensor.name()))?);
    }
    let inputs = tensors.clone();
    if options.explain {
        let explained = loops.explain(&tensors)?;
        let graph = tasks.map_or_else(String::new, |tasks| format!("tasks:\n{}", tasks.graph()));
        if let (Some(file), 0) = (&options.draw, place().rank.0) {
            drawn(file, &program, &tensors, &loops)?;
        }
        return Ok(Answer::Explanation(explained + &graph));
    }
    let team = Scoped { threads };
    let mut times = Vec::new();
    if let Some(tasks) = &tasks {
        (tensors, times) = tasks.run(options, &inputs).map(|outcome| (outcome.tensors, outcome.times))?;
    }
    let repeats = if tasks.is_some() { 0..0 } else { 0..options.repeat + 1 };
    for _ in repeats {
        tensors.clone_from(&inputs);
        let started = Instant::now();
        for (number, statement) in program.statements().iter().enumerate() {
            // The first time, what is known of operands says how loops run.
            let computation = loops.of(number, &tensors)?;
            let operands: Vec<(&str, &SparseTensor<T>)> =
                tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
            let result = computation.run_by(&operands, Kernels::shared(), &team);
            tensors.insert(statement.left().tensor.name().to_owned(), result.map_err(usage)?);
        }
        times.push(started.elapsed());
    }
    if let (Some(file), 0) = (&options.draw, place().rank.0) {
        drawn(file, &program, &tensors, &loops)?;
    }
    let checked = if options.verify { Some(verified(&program, &inputs, &tensors)?) } else { None };
    for (name, file) in options.output.iter().filter(|_| place().rank.0 == 0) {
        let results = program.results();
        let of_name = |result: &&TensorVariable| name.as_deref().is_none_or(|name| name == result.name());
        let found = results.iter().rev().find(of_name).and_then(|result| tensors.get(result.name()));
        let names: Vec<&str> = results.iter().map(TensorVariable::name).collect();
        let tensor = found.ok_or_else(|| Error::Usage(format!("--output: the results are {}", names.join(", "))))?;
        SparseFile::of(file.path())?.write(tensor)?;
    }
    let (first, rest) = times.split_first().map_or((Duration::ZERO, &times[..]), |(first, rest)| (*first, rest));
    let mut sorted = rest.to_vec();
    sorted.sort_unstable();
    let shown = program.tensors().into_iter().filter_map(|tensor| {
        let stored = tensors.get(tensor.name())?;
        Some(format!("{tensor} as {} with {}", stored.format(), counted(stored.values().len(), "element", "elements")))
    });
    let extents: BTreeMap<_, _> =
        program.statements().iter().flat_map(|statement| statement.extents().clone()).collect();
    let sizes: Vec<String> = extents.iter().map(|(variable, extent)| format!("{variable}={extent}")).collect();
    Ok(Answer::Sparse(Report {
        statement: program.statements().iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        sizes: sizes.join(", "),
        tensors: shown.collect(),
        first,
        time: (sorted.get(sorted.len() / 2).copied().unwrap_or(first), rest.len()),
        checked,
    }))
}

/// Draws all tensors that there are, each in the parts that the loops make of it.
fn drawn<T: Element>(
    file: &Path,
    program: &Program,
    tensors: &BTreeMap<String, SparseTensor<T>>,
    loops: &Loops<'_>,
) -> Result<()> {
    let mut pictures = Vec::new();
    for (number, statement) in program.statements().iter().enumerate() {
        let of_statement = statement.tensors();
        let there = of_statement.iter().filter_map(|tensor| Some((tensor, tensors.get(tensor.name())?)));
        let picture = |(tensor, stored): (&TensorVariable, &SparseTensor<T>)| {
            storage::draw(stored, tensor.name(), loops.parts(number, tensor.name(), tensors).as_ref())
        };
        pictures.push(there.map(picture).collect());
    }
    let titles: Vec<String> = program.statements().iter().map(ToString::to_string).collect();
    let written = std::fs::write(file, arranged(&pictures, &titles.join("; ")));
    written.map_err(|source| Error::Write { path: file.to_owned(), source })
}

/// Sparse statements know no algorithms and no placements yet.
fn refuse_others(options: &Options) -> Result<()> {
    let others = [
        ("--algorithm", options.algorithm.is_some()),
        ("--chunk", options.chunk.is_some()),
        ("--place", !options.place.is_empty()),
    ];
    if let Some((option, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Error::Usage(format!(
            "{option} is for dense tensors: leave it out, or give all tensors dense formats"
        )));
    }
    if let Some((Some(name), element)) = options.element.iter().find(|(name, _)| name.is_some()) {
        let problem = format!("--type {name}={element}: statements with sparse tensors compute with one type");
        return Err(Error::Usage(format!("{problem}: give --type {element} for all")));
    }
    Ok(())
}

/// The program, with the extents and formats of its tensors.
fn declared<T>(
    options: &Options,
    element: ElementType,
    text: &str,
    given: &BTreeMap<String, (Vec<i64>, Read<T>)>,
) -> Result<Program> {
    let names = index_variables(text)?;
    let sketch = sketched(text, element, &names, |_| 1)?;
    let mut extents = Extents::default();
    for (name, extent) in &options.size {
        if !names.contains(name) {
            let known = names.join(", ");
            return Err(Error::Usage(format!("--size {name}={extent}: the statement has the index variables {known}")));
        }
        extents.set(name, *extent, "--size")?;
    }
    extents.set_parts(&sketch)?;
    let made = options.generate.iter().filter_map(|(name, kind)| Some((name, kind.dimensions()?, kind.to_string())));
    let read = given.iter().map(|(name, (dimensions, _))| (name, dimensions.clone(), "--input".to_owned()));
    for (name, dimensions, source) in read.chain(made) {
        for access in accesses(&sketch, name)? {
            if access.variables.len() != dimensions.len() {
                let (expected, found) = (access.variables.len(), dimensions.len());
                return Err(Error::Usage(format!(
                    "{name} has {expected} dimensions in the statement, and {found} by {source}"
                )));
            }
            extents.set_by(access, &dimensions, &format!("by {source}"))?;
        }
    }
    let usual = usual_extent(&sketch);
    let sized = sketched(text, element, &names, |name| extents.get(name).unwrap_or(usual))?;
    // Of the type that was asked for, also if the statement needs another one: it is said then why.
    let typed = |tensor: &TensorVariable| TensorVariable::new(tensor.name(), element, tensor.dimensions().to_vec());
    let mut tensors: Vec<TensorVariable> = sized.tensors().iter().map(typed).collect();
    let made = options.generate.iter().filter_map(|(name, kind)| Some((name, kind.dimensions()?)));
    let read = given.iter().map(|(name, (dimensions, _))| (name, dimensions.clone()));
    let whole: BTreeMap<&String, Vec<i64>> = made.chain(read).collect();
    for tensor in &mut tensors {
        // Files may have more than the parts that are taken of them.
        if let Some(dimensions) = whole.get(&tensor.name().to_owned()) {
            *tensor = tensor.with_dimensions(dimensions);
        }
    }
    for (number, (name, format)) in options.format.iter().enumerate() {
        if options.format[..number].iter().any(|(before, _)| before == name) {
            return Err(Error::Usage(format!("--format says twice how {name} is stored")));
        }
        let found = tensors.iter_mut().find(|tensor| tensor.name() == name);
        let tensor =
            found.ok_or_else(|| Error::Usage(format!("--format {name}: the statement has no tensor of this name")))?;
        if format.rank() != tensor.order() {
            let (order, rank) = (tensor.order(), format.rank());
            return Err(Error::Usage(format!(
                "--format {name}={format} is for {rank} dimensions, and {name} has {order}"
            )));
        }
        *tensor = tensor.stored(format.clone());
    }
    Program::parse(text, &tensors).map_err(|error| Error::Usage(error.to_string()))
}

/// The elements of a tensor: those that were read, that a generator makes, or random ones; where it is sparse, of every hundredth.
fn operand<T: Element>(
    options: &Options,
    tensor: &TensorVariable,
    given: Option<(Vec<i64>, Read<T>)>,
) -> Result<SparseTensor<T>> {
    let (format, dimensions, seed) = (tensor.format(), tensor.dimensions(), options.runtime.seed);
    let kind = options.generate.iter().find(|(name, _)| name == tensor.name()).map(|(_, kind)| kind.clone());
    let is_dense = format.is_plain() && format.levels().iter().all(|level| *level == Level::Dense);
    let entries = match (given, kind) {
        (Some((_, Read::Stored(stored))), _) if stored.format() == format => return Ok(stored),
        (Some((_, Read::Stored(stored))), _) => {
            return stored.convert(format).map_err(|error| Error::Usage(format!("{tensor}: {error}")));
        }
        (Some((_, Read::Own(entries))), _) => entries,
        (Some((_, Read::Numbers(entries))), _) => {
            let exact = |value: f64| {
                let stored = of_number::<T>(value)?;
                (!T::TYPE.is_integer() || number(stored.to_scalar()) == value).then_some(stored)
            };
            if let Some((_, value)) = entries.iter().find(|(_, value)| exact(*value).is_none()) {
                let problem = format!("{tensor} has the element {value}, which is no {}", T::TYPE);
                return Err(Error::Usage(format!("{problem}: leave --type out, or take another one")));
            }
            entries.map(|value| exact(value).unwrap_or_else(zero))
        }
        (None, None) if is_dense => {
            let count = dimensions.iter().try_fold(1_i64, |count, &extent| count.checked_mul(extent));
            if count.is_none_or(|count| count > MOST_ELEMENTS) {
                let problem = format!(
                    "{tensor} of extents {dimensions:?} is too large for a dense tensor, of which each node makes all"
                );
                return Err(Error::Usage(format!("{problem}: give it a sparse format, or take a smaller --size")));
            }
            let values = Values::random(seed, tensor);
            let mut entries = EntryList::new(dimensions.len());
            let mut at = vec![0; dimensions.len()];
            for _ in 0..dimensions.iter().product::<i64>() {
                if let Some(value) = T::from_scalar(values.get(tensor, &at)) {
                    entries.push(&at, value);
                }
                let mut dimension = at.len();
                while dimension > 0 {
                    dimension -= 1;
                    at[dimension] += 1;
                    if at[dimension] < dimensions[dimension] {
                        break;
                    }
                    at[dimension] = 0;
                }
            }
            entries
        }
        (None, kind) => {
            let kind = kind.map_or_else(|| "uniform:0.01".parse(), Ok);
            let kind: Generator = kind.map_err(|error| Error::Usage(format!("{error}")))?;
            if kind.most_entries(dimensions) > MOST_ELEMENTS as f64 {
                let problem = format!(
                    "{kind} of extents {dimensions:?} has too many elements for {tensor}, of which each node makes all"
                );
                return Err(Error::Usage(format!(
                    "{problem}: take a smaller --size, or --generate {tensor}=uniform:DENSITY"
                )));
            }
            let rows = 0..dimensions.first().copied().unwrap_or(1);
            kind.rows(dimensions, rows, seed).map_err(|error| Error::Usage(format!("--generate: {error}")))?
        }
    };
    let packed = pack(format, dimensions, zero(), entries, Duplicates::Sum);
    Ok(packed.map_err(|error| Error::Usage(format!("{tensor}: {error}")))?.tensor)
}

/// More elements of a dense tensor than this are not made on one node.
pub(crate) const MOST_ELEMENTS: i64 = 1 << 28;

/// How far a sum of many products may be from another order of summing it, in units of its size.
fn tolerance(element: ElementType) -> f64 {
    match element {
        ElementType::F32 | ElementType::C32 => 1e-3,
        ElementType::F64 | ElementType::C64 => 1e-9,
        _ => 0.0,
    }
}

fn zero<T: Element>() -> T {
    of_number(0.0).expect("all types have a zero")
}

/// A number in a type; integers are rounded towards zero.
fn of_number<T: Element>(number: f64) -> Option<T> {
    T::from_scalar(cast(Scalar::F64(number), T::TYPE))
}

/// The real part of an element.
fn number(scalar: Scalar) -> f64 {
    match cast(scalar, ElementType::C64) {
        Scalar::C64(value) => value.re,
        _ => f64::NAN,
    }
}

/// Compares all results with what the oracle gives.
fn verified<T: Element>(
    program: &Program,
    inputs: &BTreeMap<String, SparseTensor<T>>,
    results: &BTreeMap<String, SparseTensor<T>>,
) -> Result<(usize, Duration)> {
    let started = Instant::now();
    let mut maps: BTreeMap<String, SparseMap> =
        inputs.iter().map(|(name, tensor)| (name.clone(), SparseMap::of_tensor(tensor))).collect();
    oracle::run(program.statements(), &mut maps).map_err(|error| Error::Usage(format!("--verify: {error}")))?;
    let mut count = 0;
    for result in program.results() {
        let (Some(expected), Some(found)) = (maps.get(result.name()), results.get(result.name())) else { continue };
        let is_equal = |one: Scalar, other: Scalar| {
            let (a, b) = (number(one), number(other));
            one == other || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance(T::TYPE) * (1.0 + a.abs())
        };
        count += found.values().len();
        if let Some(at) = expected.difference(&SparseMap::of_tensor(found), is_equal) {
            let (expected, found) = (expected.get(&at), found.get(&at));
            return Err(Error::Verification(format!(
                "{result}{at:?} is {found:?}, and by the definition {expected:?}"
            )));
        }
    }
    Ok((count, started.elapsed()))
}

/// What was read from a file: elements of the type that is computed with, or numbers that are to be converted to it.
enum Read<T> {
    /// A tensor as a file stores it.
    Stored(SparseTensor<T>),
    Own(EntryList<T>),
    Numbers(EntryList<f64>),
}

/// Reads the entries of a file, exactly if the file has the type that is asked for, and the extents.
fn read_as<T: Stored>(path: &Path) -> Result<(Vec<i64>, Read<T>)> {
    let file = SparseFile::of(path)?;
    if file.element()? != <T as Element>::TYPE {
        return read(path).map(|(dimensions, entries)| (dimensions, Read::Numbers(entries)));
    }
    if let Some(stored) = file.stored()? {
        return Ok((stored.dimensions().to_vec(), Read::Stored(stored)));
    }
    let Contents { dimensions, fill, entries } = file.read::<T>()?;
    check_fill(path, fill != zero(), &format!("{fill:?}"))?;
    Ok((dimensions, Read::Own(entries)))
}

fn check_fill(path: &Path, is_other: bool, fill: &str) -> Result<()> {
    match is_other {
        false => Ok(()),
        true => {
            let reason = format!("what is not stored is {fill}, and must be 0 in a statement");
            Err(InputError::Unsuitable { name: path.display().to_string(), reason }.into())
        }
    }
}

/// Reads the entries of a file, and the extents.
pub(crate) fn read(path: &Path) -> Result<(Vec<i64>, EntryList<f64>)> {
    let Contents { dimensions, fill, entries } = SparseFile::of(path)?.read::<f64>()?;
    check_fill(path, fill != 0.0, &fill.to_string())?;
    Ok((dimensions, entries))
}
