//! Statements on sparse tensors: each by a kernel of its own on one node, or, if a loop is distributed, as tasks on
//! all.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use maniple_files::tcs::Kind;
use maniple_tensor::compute::has_no_loop_around;
use maniple_tensor::distributed::is_made_by_tasks;
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::files::TensorFile;
use maniple_tensor::format::{Format, Level};
use maniple_tensor::kernel::{Kernels, Scoped};
use maniple_tensor::notation::{IndexVariable, TensorVariable, is_zero};
use maniple_tensor::oracle::{self, SparseMap};
use maniple_tensor::program::Program;
use maniple_tensor::storage::DynamicTensor;

use super::Answer;
use super::blocks;
use super::declared::declared;
use super::extents::index_variables;
use super::loops::{Loops, usage};
use super::operands::{Input, Inputs, MOST_ELEMENTS, generator, number, operand};
use super::options::Options;
use super::picture::arranged;
use super::problem::{check_reductions, said, schedules};
use super::tasks::{Around, Done, Made, Tasks, places};
use super::types;
use crate::error::{Error, Result};
use crate::options::place;
use crate::report::{Table, by_nodes, counted, seconds};

/// The report of a computation with sparse tensors.
#[derive(Clone, Debug)]
pub struct Report {
    /// The statements.
    pub statement: String,
    /// The extents of index variables.
    pub sizes: String,
    /// The tensors: how each is stored, and how many elements that are.
    pub tensors: Vec<String>,
    /// How many bytes of the files of tensors each node has read, where tasks read them.
    pub read: Vec<String>,
    /// How many bytes of the files of results each node has written, where tasks wrote them.
    pub written: Vec<String>,
    /// How many bytes each node has sent to others the first time, and the last time, if there are several.
    pub sent: Option<[String; 2]>,
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
        let list = |of: &[String]| (!of.is_empty()).then(|| of.join("; "));
        let table = Table::new()
            .line("statement", &self.statement)
            .line("sizes", &self.sizes)
            .line("stored", self.tensors.join("; "))
            .maybe("read", list(&self.read))
            .maybe("written", list(&self.written))
            .line("first time", seconds(self.first))
            .line("time", format_args!("{} (median of {repeats})", seconds(time)))
            .maybe("sent first", self.sent.as_ref().map(|[first, _]| first))
            .maybe("sent later", self.sent.as_ref().map(|[_, last]| last))
            .maybe("verified", checked);
        write!(f, "sparse tensors\n{table}")
    }
}

/// Whether a tensor is stored sparsely, or made so.
pub(super) fn is_asked_for(options: &Options, inputs: &Inputs) -> bool {
    let is_sparse = |format: &Format| format.levels().iter().any(|level| *level != Level::Dense) || !format.is_plain();
    // Entries of a sparse tensor that is to be stored densely.
    let has_format = |name: &String| options.format.iter().any(|(other, _)| other == name);
    let is_sparse_file =
        |(name, input): (&String, &Input)| input.file.levels().is_some() || has_format(name) && input.file.is_list();
    !options.generate.is_empty()
        || !options.fill.is_empty()
        || options.format.iter().any(|(_, format)| is_sparse(format))
        || inputs.iter().any(is_sparse_file)
}

/// The options, with the formats that `.tcs` files say where --format does not. Of other files with the entries of a
/// sparse tensor --format has to say it.
fn with_formats_of_files(options: &Options, inputs: &Inputs) -> Result<Options> {
    let mut told = options.clone();
    for (name, input) in inputs.iter().filter(|(name, _)| options.format.iter().all(|(other, _)| other != *name)) {
        input.check_named(name)?;
        told.format.extend(input.file.format().map(|format| (name.clone(), format)));
    }
    Ok(told)
}

/// Computes statements on sparse tensors, or tells how.
///
/// # Errors
/// [`Error::Usage`] if options do not fit each other, [`Error::Input`] and [`Error::Write`] for files,
/// [`Error::Verification`].
pub(super) fn run(options: &Options, inputs: Inputs) -> Result<Answer> {
    refuse_others(options)?;
    let options = &with_formats_of_files(options, &inputs)?;
    let text = &*said(&options.statement)?;
    let own = inputs.iter().map(|(name, input)| (&**name, input.file.element()));
    let element = types::of_program(options, (text, &index_variables(text)), own);
    run_as(element, options, (text, inputs))
}

/// Refuses files with blocks of which one has all coordinates of a variable from another one on than the other: what is
/// not in a block is not known to be zero.
fn check_blocks(inputs: &Inputs, program: &Program) -> Result<()> {
    for statement in program.statements() {
        let mut known: Vec<(&IndexVariable, &str, u64)> = Vec::new();
        for access in statement.right().accesses() {
            let name = access.tensor.name();
            let header = inputs.get(name).and_then(|input| input.file.levels());
            let levels = header.into_iter().flat_map(|header| &header.levels);
            for level in levels.filter(|level| level.kind == Kind::Dense) {
                let (Some(variable), start) = (access.variables.get(level.mode), level.range.start) else { continue };
                if let Some((_, other, first)) = known.iter().find(|(own, _, from)| *own == variable && *from != start)
                {
                    return Err(Error::Usage(format!(
                        "the file of {name} stores all coordinates of {variable} from {start} on, and that of {other} from {first} on: \
                         take blocks of one range, or convert the files to a format that compresses {variable}"
                    )));
                }
                known.push((variable, name, start));
            }
        }
    }
    Ok(())
}

fn run_as(element: ElementType, options: &Options, (text, mut given): (&str, Inputs)) -> Result<Answer> {
    let program = declared(options, (text, element), &mut given)?;
    check_blocks(&given, &program)?;
    check_reductions(&program)?;
    let schedules = schedules(options, &program)?;
    if options.grid.is_some() && !options.schedule.is_empty() {
        let problem = "--grid distributes the outermost loops, and --schedule those that it names";
        return Err(Error::Usage(format!("{problem}: leave one of the two out")));
    }
    let inputs: Vec<String> = program.inputs().iter().map(|tensor| tensor.name().to_owned()).collect();
    if let Some((name, _)) = options.generate.iter().find(|(name, _)| !inputs.contains(name)) {
        return Err(Error::Usage(format!("--generate {name}: the tensors that are given are {}", inputs.join(", "))));
    }
    for (number, (name, _)) in options.place.iter().enumerate() {
        if !inputs.contains(name) {
            return Err(Error::Usage(format!("--place {name}: the tensors that are given are {}", inputs.join(", "))));
        }
        if options.place[..number].iter().any(|(other, _)| other == name) {
            return Err(Error::Usage(format!("--place says twice where {name} lies")));
        }
    }
    let grid = match &options.grid {
        Some(grid) => grid.extents().iter().map(|&extent| extent as i64).collect(),
        None if place().nodes > 1 && schedules.is_empty() => vec![place().nodes as i64],
        None => Vec::new(),
    };
    let threads = options.runtime.machine().processors_of(maniple::ProcessorKind::Cpu).count();
    // A grid divides loops around all of a statement, which sums of sums have not.
    let is_divided = !grid.is_empty() && schedules.is_empty();
    let divided = program.by_terms(|statement| is_divided && has_no_loop_around(statement));
    let mut loops = Loops::new(&divided, &schedules, &grid, options)?;
    let tasks = loops.tasks()?;
    let places = places(options, &tasks.as_ref().map_or_else(|| program.inputs(), Tasks::operands))?;
    if tasks.is_none() {
        options.check_without_tasks()?;
    }
    if tasks.is_none() && (place().nodes > 1 || !options.place.is_empty()) {
        let advice = match (blocks::are_asked_for(options), grid.is_empty()) {
            (true, _) => "--split a variable of the result, or name one of those that are split with --map or --extend",
            (false, false) => {
                "no loop is around all of a statement; write each reduction as a statement with a result of its own, or run it on one node"
            }
            (false, true) => {
                "distribute a loop in each --schedule, as by 'distribute({i}, {io}, {ii}, {4})', or say --grid 4"
            }
        };
        let problem = match place().nodes {
            1 => "--place says where parts lie for tasks, and no loop is distributed".to_owned(),
            nodes => format!("this job has {nodes} nodes, and one alone would compute"),
        };
        return Err(Error::Usage(format!("{problem}: {advice}")));
    }
    let is_filled = |tensor: &&TensorVariable| !is_zero(tensor.fill());
    if let (Some(_), Some(tensor)) = (&tasks, program.tensors().iter().find(is_filled)) {
        return Err(Error::Usage(format!(
            "{tensor} is filled with {}, and tasks compute with tensors filled with 0: leave out --grid and --schedule 'distribute', or run it on one node",
            tensor.fill()
        )));
    }
    let needs_all = options.verify || options.draw.is_some();
    let (mut tensors, mut files, mut made) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for tensor in program.inputs() {
        let given = given.remove(tensor.name());
        let is_generated = options.generate.iter().any(|(name, _)| name == tensor.name());
        let is_random = given.is_none() && !is_generated && tensor.format().is_dense();
        if is_random && tasks.is_some() && !needs_all {
            made.insert(tensor.name().to_owned(), Made::Random);
            // An explanation has it too, if one node can.
            let elements = tensor.dimensions().iter().try_fold(1_i64, |count, &extent| count.checked_mul(extent));
            if !options.explain || elements.is_none_or(|elements| elements > MOST_ELEMENTS) {
                continue;
            }
        }
        let parts = given.as_ref().and_then(|input| input.parts(element));
        if let (Some(file), Some(tasks)) = (parts, &tasks)
            && file.fits(tasks.formats(&tensor).iter())
        {
            files.insert(tensor.name().to_owned(), file.clone());
            continue;
        }
        if let (None, Some(tasks), true) = (&given, &tasks, place().nodes > 1 && !is_random)
            && tasks.formats(&tensor).iter().all(is_made_by_tasks)
        {
            let (generator, seed) = generator(options, &tensor)?;
            made.insert(tensor.name().to_owned(), Made::Generated(generator, seed));
            continue;
        }
        tensors.insert(tensor.name().to_owned(), operand(options, &tensor, given)?);
    }
    if tasks.is_none() {
        loops.store_by_blocks(&mut tensors)?;
    }
    let mut inputs = tensors.clone();
    let outputs = outputs(options, &program)?;
    // What tasks make, an explanation may have too.
    let is_given = |name: &String| !made.contains_key(name);
    let given = tensors.iter().filter(|(name, _)| is_given(name));
    let given: BTreeMap<String, DynamicTensor> = given.map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
    let around = Around {
        given: &given,
        files: &files,
        made: &made,
        places: &places,
        renews: false,
        outputs: &outputs,
        needs_all,
    };
    if options.explain {
        let read = files.iter().map(|(name, file)| file.described(name));
        let of_rows = made.iter().filter_map(|(name, how)| match how {
            Made::Random => None,
            Made::Generated(kind, _) => Some(format!("operand {name}: {kind}, its rows made by tasks on all nodes\n")),
        });
        let explained = loops.explain(&tensors)? + &read.chain(of_rows).collect::<String>();
        let graph = tasks.as_ref().map_or_else(String::new, |tasks| format!("tasks:\n{}", tasks.graph()));
        let sent = match tasks.filter(|_| place().nodes > 1) {
            Some(tasks) => "\n".to_owned() + &tasks.rehearse(options, around)?,
            None => String::new(),
        };
        if let Some(file) = &options.draw {
            file.write(&drawn(&divided, &tensors, &loops))?;
        }
        return Ok(Answer::Explanation(explained + &graph + &sent));
    }
    let team = Scoped { threads };
    let (mut times, mut done) = (Vec::new(), Done::default());
    if let Some(tasks) = &tasks {
        let outcome = tasks.run(options, around)?;
        (inputs, tensors, times, done) = (outcome.inputs, outcome.tensors, outcome.times, outcome.done);
    }
    let repeats = if tasks.is_some() { 0..0 } else { 0..options.repeat + 1 };
    if !repeats.is_empty() {
        let results = program.results().into_iter().filter(|result| !tensors.contains_key(result.name()));
        check_memory(options, &tensors, results.map(|result| dense_bytes(&result)).fold(0, u64::saturating_add))?;
    }
    for _ in repeats {
        tensors.clone_from(&inputs);
        let started = Instant::now();
        for (number, statement) in divided.statements().iter().enumerate() {
            // The first time, what is known of operands says how loops run.
            let computation = loops.of(number, &tensors)?;
            let operands: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
            let result = computation.run_dynamic(&operands, Kernels::shared(), &team);
            tensors.insert(statement.left().tensor.name().to_owned(), result.map_err(usage)?);
            check_memory(options, &tensors, 0)?;
        }
        times.push(started.elapsed());
    }
    if let Some(file) = &options.draw {
        file.write(&drawn(&divided, &tensors, &loops))?;
    }
    let checked = if options.verify { Some(verified(&program, &inputs, &tensors)?) } else { None };
    for (name, file) in outputs.iter().filter(|(name, _)| place().rank.0 == 0 && !done.written.contains_key(name)) {
        if let Some(tensor) = tensors.get(name) {
            file.write(tensor)?;
        }
    }
    if place().rank.0 == 0 {
        outputs.iter().for_each(|(_, file)| tell_of_left(file));
    }
    let (first, rest) = times.split_first().map_or((Duration::ZERO, &times[..]), |(first, rest)| (*first, rest));
    let mut sorted = rest.to_vec();
    sorted.sort_unstable();
    let shown = program.tensors().into_iter().filter_map(|tensor| {
        let given = || tensors.get(tensor.name()).map(|stored| (stored.count(), tensor.format().clone()));
        let (count, format) = done.counts.get(tensor.name()).cloned().or_else(given)?;
        Some(format!("{tensor} as {format} with {}", counted(count, "element", "elements")))
    });
    let extents: BTreeMap<_, _> =
        program.statements().iter().flat_map(|statement| statement.extents().clone()).collect();
    let sizes: Vec<String> = extents.iter().map(|(variable, extent)| format!("{variable}={extent}")).collect();
    Ok(Answer::Sparse(Box::new(Report {
        statement: program.statements().iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        sizes: sizes.join(", "),
        tensors: shown.collect(),
        read: done.read.iter().map(|(name, by)| format!("{name}: {}", by_nodes(by))).collect(),
        written: done.written.iter().map(|(name, by)| format!("{name}: {}", by_nodes(by))).collect(),
        sent: (place().nodes > 1).then(|| done.sent.each_ref().map(|sent| by_nodes(sent))),
        first,
        time: (sorted.get(sorted.len() / 2).copied().unwrap_or(first), rest.len()),
        checked,
    })))
}

/// The bytes of a dense tensor; of others it is not known before.
fn dense_bytes(tensor: &TensorVariable) -> u64 {
    let bytes = |bytes: u64, extent: &i64| bytes.saturating_mul(extent.unsigned_abs());
    if tensor.format().is_dense() { tensor.dimensions().iter().fold(tensor.element().size() as u64, bytes) } else { 0 }
}

/// Refuses tensors on one node that take, with so many bytes more, more memory than data may take by --memory. What
/// tasks have is limited by the runtime.
fn check_memory(options: &Options, tensors: &BTreeMap<String, DynamicTensor>, more: u64) -> Result<()> {
    let wanted = tensors.values().map(|tensor| tensor.bytes() as u64).fold(more, u64::saturating_add);
    match options.runtime.memory {
        Some(limit) if wanted > limit => {
            Err(Error::TooLarge { what: "what tensors store".to_owned(), wanted, available: Some(limit) })
        }
        _ => Ok(()),
    }
}

/// The files that results go to, with the name of each.
fn outputs(options: &Options, program: &Program) -> Result<Vec<(String, TensorFile)>> {
    let results = program.results();
    let names: Vec<&str> = results.iter().map(TensorVariable::name).collect();
    let file = |(name, file): &(Option<String>, TensorFile)| {
        let found = names.iter().rev().find(|known| name.as_deref().is_none_or(|name| name == **known));
        let name = found.ok_or_else(|| Error::Usage(format!("--output: the results are {}", names.join(", "))))?;
        Ok(((*name).to_owned(), file.clone()))
    };
    let files: Vec<(String, TensorFile)> = options.output.iter().map(file).collect::<Result<_>>()?;
    for (number, (name, _)) in files.iter().enumerate() {
        if files[..number].iter().any(|(other, _)| other == name) {
            return Err(Error::Usage(format!("--output says twice where {name} goes")));
        }
    }
    Ok(files)
}

/// Says on the standard error which files beside one may be deleted.
fn tell_of_left(file: &TensorFile) {
    for left in file.left() {
        // The output may be closed.
        let _ = writeln!(
            io::stderr(),
            "warning: `{}` is what another program has written of this file: delete it, unless that program still runs",
            left.display()
        );
    }
}

/// Draws all tensors that there are, each in the parts that the loops make of it.
fn drawn(program: &Program, tensors: &BTreeMap<String, DynamicTensor>, loops: &Loops<'_>) -> String {
    let mut pictures = Vec::new();
    for (number, statement) in program.statements().iter().enumerate() {
        let of_statement = statement.tensors();
        let there = of_statement.iter().filter_map(|tensor| Some((tensor, tensors.get(tensor.name())?)));
        let picture = |(tensor, stored): (&TensorVariable, &DynamicTensor)| {
            stored.draw(tensor.name(), loops.parts(number, tensor.name(), tensors).as_ref())
        };
        pictures.push(there.map(picture).collect());
    }
    let titles: Vec<String> = program.statements().iter().map(ToString::to_string).collect();
    arranged(&pictures, &titles.join("; "))
}

/// Sparse statements know no algorithms.
fn refuse_others(options: &Options) -> Result<()> {
    let others = [("--algorithm", options.algorithm.is_some()), ("--chunk", options.chunk.is_some())];
    if let Some((option, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Error::Usage(format!(
            "{option} is for dense tensors: leave it out, or give all tensors dense formats"
        )));
    }
    if options.blas.is_some() {
        let problem = "--blas: loops over sparse tensors multiply by themselves, and not by a library";
        return Err(Error::Usage(format!("{problem}: leave it out, or give all tensors dense formats")));
    }
    if let Some((Some(name), element)) = options.element.iter().find(|(name, _)| name.is_some()) {
        let problem = format!("--type {name}={element}: statements with sparse tensors compute with one type");
        return Err(Error::Usage(format!("{problem}: give --type {element} for all")));
    }
    Ok(())
}

/// How far a sum of many products may be from another order of summing it, in units of its size.
fn tolerance(element: ElementType) -> f64 {
    match element {
        ElementType::F32 | ElementType::C32 => 1e-3,
        ElementType::F64 | ElementType::C64 => 1e-9,
        _ => 0.0,
    }
}

/// Compares all results with what the oracle gives.
fn verified(
    program: &Program,
    inputs: &BTreeMap<String, DynamicTensor>,
    results: &BTreeMap<String, DynamicTensor>,
) -> Result<(usize, Duration)> {
    let started = Instant::now();
    let mut maps: BTreeMap<String, SparseMap> =
        inputs.iter().map(|(name, tensor)| (name.clone(), SparseMap::of_dynamic(tensor))).collect();
    oracle::run(program.statements(), &mut maps).map_err(|error| Error::Usage(format!("--verify: {error}")))?;
    let mut count = 0;
    for result in program.results() {
        let (Some(expected), Some(found)) = (maps.get(result.name()), results.get(result.name())) else { continue };
        let is_equal = |one: Scalar, other: Scalar| {
            let (a, b) = (number(one), number(other));
            one == other || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance(found.element()) * (1.0 + a.abs())
        };
        count += found.count();
        let map = SparseMap::of_dynamic(found);
        if let Some(at) = expected.difference(&map, is_equal) {
            let (expected, found) = (expected.get(&at), map.get(&at));
            return Err(Error::Verification(format!("{result}{at:?} is {found}, and by the definition {expected}")));
        }
    }
    Ok((count, started.elapsed()))
}
