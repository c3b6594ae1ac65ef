//! Statements on sparse tensors: each by a kernel of its own on one node, or, if a loop is distributed, as tasks on
//! all.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Instant;

use maniple_files::tcs::TcsLevelKind;
use maniple_tensor::choose::Processors;
use maniple_tensor::compute::{LoopWishes, Loops, Made, Sources, Statements, has_no_loop_around};
use maniple_tensor::distributed::is_made_by_tasks;
use maniple_tensor::files::{FileInParts, Opened, TensorFile};
use maniple_tensor::format::{Format, Level};
use maniple_tensor::notation::{IndexVariable, TensorVariable, is_zero};
use maniple_tensor::oracle::{self, VerifyError};
use maniple_tensor::program::Program;
use maniple_tensor::storage::DynamicTensor;

use super::Answer;
use super::declared::{declared, element};
use super::operands::{Inputs, MOST_ELEMENTS, check_named, generator, operand, parts};
use super::options::TensorOptions;
use super::picture::arranged;
use super::problem::{outputs, said, schedules};
use super::report::TensorReport;
use super::tasks::{Around, TaskOutcome, check_tasks, places, rehearse, run as run_tasks};
use crate::error::{Error, Result, usage};
use crate::options::place;
use crate::report::{by_nodes, counted, seconds};

/// Whether a tensor is stored sparsely, or made so.
pub(super) fn is_asked_for(options: &TensorOptions, inputs: &Inputs) -> bool {
    let is_sparse = |format: &Format| format.levels().iter().any(|level| *level != Level::Dense) || !format.is_plain();
    // Entries of a sparse tensor that is to be stored densely.
    let has_format = |name: &String| options.format.iter().any(|(other, _)| other == name);
    let is_sparse_file =
        |(name, file): (&String, &Opened)| file.levels().is_some() || has_format(name) && file.is_list();
    !options.generate.is_empty()
        || !options.fill.is_empty()
        || options.format.iter().any(|(_, format)| is_sparse(format))
        || inputs.iter().any(is_sparse_file)
}

/// The options, with the formats that `.tcs` files say where --format does not. Of other files with the entries of a
/// sparse tensor --format has to say it.
fn with_formats_of_files(options: &TensorOptions, inputs: &Inputs) -> Result<TensorOptions> {
    let mut told = options.clone();
    for (name, file) in inputs.iter().filter(|(name, _)| options.format.iter().all(|(other, _)| other != *name)) {
        check_named(name, file)?;
        told.format.extend(file.format().map(|format| (name.clone(), format)));
    }
    Ok(told)
}

/// Computes statements on sparse tensors, or tells how.
///
/// # Errors
/// [`Error::Usage`] if options do not fit each other, [`Error::Input`] and [`Error::Write`] for files,
/// [`Error::Verification`].
pub(super) fn run(options: &TensorOptions, mut given: Inputs) -> Result<Answer> {
    refuse_others(options)?;
    let options = &with_formats_of_files(options, &given)?;
    let text = &*said(&options.statement)?;
    let element = element(options, text, &given);
    let program = declared(options, text, element, &mut given)?;
    check_blocks(&given, &program)?;
    program.check_reductions().map_err(usage)?;
    let schedules = schedules(options, &program)?;
    if options.grid.is_some() && !options.schedule.is_empty() {
        let problem = "--grid distributes the outermost loops, and --schedule those that it names";
        return Err(Error::Usage(format!("{problem}: leave one of the two out")));
    }
    let inputs: Vec<String> = program.inputs().iter().map(|tensor| tensor.name().to_owned()).collect();
    if let Some((name, _)) = options.generate.iter().find(|(name, _)| !inputs.contains(name)) {
        return Err(Error::Usage(format!("--generate {name}: the tensors that are given are {}", inputs.join(", "))));
    }
    if let Some((name, _)) = options.place.iter().find(|(name, _)| !inputs.contains(name)) {
        return Err(Error::Usage(format!("--place {name}: the tensors that are given are {}", inputs.join(", "))));
    }
    let grid = match options.grid_extents() {
        Some(grid) => grid,
        None if place().nodes > 1 && schedules.is_empty() => vec![place().nodes as i64],
        None => Vec::new(),
    };
    let machine = options.runtime.machine();
    let threads = machine.processors_of(maniple::ProcessorKind::Cpu).count();
    let capacity = machine.memories().iter().map(|memory| memory.capacity).max();
    let processors = Processors { threads, memory: options.rates()?.memory * threads as f64, capacity };
    // A grid divides loops around all of a statement, which sums of sums have not.
    let is_divided = !grid.is_empty() && schedules.is_empty();
    let divided = program.by_terms(|statement| is_divided && has_no_loop_around(statement));
    let wishes = LoopWishes {
        schedules: &schedules,
        grid: &grid,
        nodes: place().nodes,
        is_kept: &|tensor| options.place.iter().any(|(name, _)| name == tensor.name()),
        length: &|statement, variable| options.blocks().length(statement, variable),
    };
    let mut loops = Loops::new(divided.statements(), wishes, processors)?;
    let tasks = if loops.are_distributed() { Some(loops.planned().map_err(usage)?) } else { None };
    if let Some(tasks) = &tasks {
        tasks.all().iter().try_for_each(|planned| check_tasks(planned.plan()))?;
    }
    let places = places(options, &tasks.as_ref().map_or_else(|| program.inputs(), Statements::operands))?;
    match &tasks {
        Some(_) => refuse_filled(&program)?,
        None => refuse_without_tasks(options, grid.is_empty())?,
    }
    let Operands { mut tensors, files, made } = operands(options, &program, given, tasks.as_ref())?;
    if tasks.is_none() {
        loops.store_by_blocks(&mut tensors).map_err(usage)?;
    }
    let outputs = outputs(options, &program, true)?;
    // What tasks make, an explanation may have too.
    let is_given = |name: &String| !made.contains_key(name);
    let given = tensors.iter().filter(|(name, _)| is_given(name));
    let given: BTreeMap<String, DynamicTensor> = given.map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
    let sources = Sources { given: &given, files: &files, made: &made, places: &places, renews: false };
    let around = Around { sources, outputs: &outputs, needs_all: needs_all(options) };
    if options.explain {
        let read = files.iter().map(|(name, file)| file.described(name));
        let of_rows = made.iter().filter_map(|(name, how)| match how {
            Made::Random(_) => None,
            Made::Generated(kind, _) => Some(format!("operand {name}: {kind}, its rows made by tasks on all nodes\n")),
        });
        let explained = loops.explain(&tensors)? + &read.chain(of_rows).collect::<String>();
        let graph = tasks.as_ref().map_or_else(String::new, |tasks| format!("tasks:\n{}", tasks.graph(place().nodes)));
        let sent = match tasks.filter(|_| place().nodes > 1) {
            Some(tasks) => "\n".to_owned() + &rehearse(&tasks, options, around)?,
            None => String::new(),
        };
        if let Some(file) = &options.draw {
            file.write(&drawn(&divided, &tensors, &loops))?;
        }
        return Ok(Answer::Explanation(explained + &graph + &sent));
    }
    let outcome = match &tasks {
        Some(tasks) => run_tasks(tasks, options, around)?,
        None => run_alone(options, &program, &mut loops, tensors)?,
    };
    let (inputs, tensors) = (&outcome.inputs, &outcome.tensors);
    if let Some(file) = &options.draw {
        file.write(&drawn(&divided, tensors, &loops))?;
    }
    let checked = if options.verify { Some(verified(&program, inputs, tensors)?) } else { None };
    for (name, file) in outputs.iter().filter(|(name, _)| !outcome.written.contains_key(name)) {
        if let Some(tensor) = tensors.get(name).filter(|_| place().rank.0 == 0) {
            file.write(tensor)?;
        }
    }
    if place().rank.0 == 0 {
        outputs.iter().for_each(|(_, file)| tell_of_left(file));
    }
    Ok(Answer::Report(Box::new(reported(&program, &outcome, checked))))
}

/// The report of what was computed, and compared.
fn reported(program: &Program, outcome: &TaskOutcome, checked: Option<String>) -> TensorReport {
    let stored = program.tensors().into_iter().filter_map(|tensor| {
        let given = || outcome.tensors.get(tensor.name()).map(|stored| (stored.count(), tensor.format().clone()));
        let (count, format) = outcome.counts.get(tensor.name()).cloned().or_else(given)?;
        Some(format!("{tensor} as {format} with {}", counted(count, "element", "elements")))
    });
    let list = |of: &BTreeMap<String, Vec<u64>>| {
        let each = of.iter().map(|(name, by)| format!("{name}: {}", by_nodes(by)));
        (!of.is_empty()).then(|| each.collect::<Vec<_>>().join("; "))
    };
    let [first, later] = outcome.sent.each_ref().map(|sent| (place().nodes > 1).then(|| by_nodes(sent)));
    TensorReport::new("sparse tensors", program)
        .line("stored", stored.collect::<Vec<_>>().join("; "))
        .maybe("read", list(&outcome.read))
        .maybe("written", list(&outcome.written))
        .times(&outcome.times)
        .maybe("sent first", first)
        .maybe("sent later", later)
        .maybe("verified", checked)
}

/// The operands of statements.
#[derive(Default)]
struct Operands {
    /// Tensors that each node has whole.
    tensors: BTreeMap<String, DynamicTensor>,
    /// Tensors that tasks read.
    files: BTreeMap<String, FileInParts>,
    /// Tensors that tasks make.
    made: BTreeMap<String, Made>,
}

/// Whether each node needs the operands and the results whole.
fn needs_all(options: &TensorOptions) -> bool {
    options.verify || options.draw.is_some()
}

/// The operands of a program, as tasks need them, if statements run as tasks.
fn operands(
    options: &TensorOptions,
    program: &Program,
    mut given: Inputs,
    tasks: Option<&Statements>,
) -> Result<Operands> {
    let Operands { mut tensors, mut files, mut made } = Operands::default();
    for tensor in program.inputs() {
        let given = given.remove(tensor.name());
        let is_generated = options.generate.iter().any(|(name, _)| name == tensor.name());
        let is_random = given.is_none() && !is_generated && tensor.format().is_dense();
        if is_random && tasks.is_some() && !needs_all(options) {
            made.insert(tensor.name().to_owned(), Made::Random(options.runtime.seed));
            // An explanation has it too, if one node can.
            let elements = tensor.dimensions().iter().try_fold(1_i64, |count, &extent| count.checked_mul(extent));
            if !options.explain || elements.is_none_or(|elements| elements > MOST_ELEMENTS) {
                continue;
            }
        }
        let parts = given.as_ref().and_then(|file| parts(file, tensor.element()));
        if let (Some(file), Some(tasks)) = (parts, tasks)
            && file.fits(tasks.formats(&tensor).iter())
        {
            files.insert(tensor.name().to_owned(), file.clone());
            continue;
        }
        if let (None, Some(tasks), true) = (&given, tasks, place().nodes > 1 && !is_random)
            && tasks.formats(&tensor).iter().all(is_made_by_tasks)
        {
            let (generator, seed) = generator(options, &tensor)?;
            made.insert(tensor.name().to_owned(), Made::Generated(generator, seed));
            continue;
        }
        tensors.insert(tensor.name().to_owned(), operand(options, &tensor, given)?);
    }
    Ok(Operands { tensors, files, made })
}

/// Runs statements on this node, as often as is asked for, and once more before.
fn run_alone(
    options: &TensorOptions,
    program: &Program,
    loops: &mut Loops<'_>,
    inputs: BTreeMap<String, DynamicTensor>,
) -> Result<TaskOutcome> {
    let results = program.results().into_iter().filter(|result| !inputs.contains_key(result.name()));
    check_memory(options, &inputs, results.map(|result| dense_bytes(&result)).fold(0, u64::saturating_add))?;
    let (mut tensors, mut times) = (BTreeMap::new(), Vec::new());
    for _ in 0..options.repeat + 1 {
        tensors.clone_from(&inputs);
        let started = Instant::now();
        loops.run(&mut tensors, |tensors| check_memory(options, tensors, 0))?;
        times.push(started.elapsed());
    }
    Ok(TaskOutcome { inputs, tensors, times, ..TaskOutcome::default() })
}

/// Refuses tensors that tasks do not compute with.
fn refuse_filled(program: &Program) -> Result<()> {
    match program.tensors().iter().find(|tensor| !is_zero(tensor.fill())) {
        Some(tensor) => Err(Error::Usage(format!(
            "{tensor} is filled with {}, and tasks compute with tensors filled with 0: leave out --grid and --schedule 'distribute', or run it on one node",
            tensor.fill()
        ))),
        None => Ok(()),
    }
}

/// Refuses what is said of tasks where there are none, and several nodes.
fn refuse_without_tasks(options: &TensorOptions, is_without_grid: bool) -> Result<()> {
    options.check_without_tasks()?;
    if place().nodes == 1 && options.place.is_empty() {
        return Ok(());
    }
    let advice = match (options.blocks().are_asked_for(), is_without_grid) {
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
    Err(Error::Usage(format!("{problem}: {advice}")))
}

/// Refuses files with blocks of which one has all coordinates of a variable from another one on than the other: what is
/// not in a block is not known to be zero.
fn check_blocks(inputs: &Inputs, program: &Program) -> Result<()> {
    for statement in program.statements() {
        let mut known: Vec<(&IndexVariable, &str, u64)> = Vec::new();
        for access in statement.right().accesses() {
            let name = access.tensor.name();
            let header = inputs.get(name).and_then(Opened::levels);
            let levels = header.into_iter().flat_map(|header| &header.levels);
            for level in levels.filter(|level| level.kind == TcsLevelKind::Dense) {
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

/// The bytes of a dense tensor; of others it is not known before.
fn dense_bytes(tensor: &TensorVariable) -> u64 {
    let bytes = |bytes: u64, extent: &i64| bytes.saturating_mul(extent.unsigned_abs());
    if tensor.format().is_dense() { tensor.dimensions().iter().fold(tensor.element().size() as u64, bytes) } else { 0 }
}

/// Refuses tensors on one node that take, with so many bytes more, more memory than data may take by --memory. What
/// tasks have is limited by the runtime.
fn check_memory(options: &TensorOptions, tensors: &BTreeMap<String, DynamicTensor>, more: u64) -> Result<()> {
    let wanted = tensors.values().map(|tensor| tensor.bytes() as u64).fold(more, u64::saturating_add);
    match options.runtime.memory {
        Some(limit) if wanted > limit => {
            Err(Error::TooLarge { what: "what tensors store".to_owned(), wanted, available: Some(limit) })
        }
        _ => Ok(()),
    }
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
fn refuse_others(options: &TensorOptions) -> Result<()> {
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

/// Compares all results with what the oracle gives, and says what was compared.
fn verified(
    program: &Program,
    inputs: &BTreeMap<String, DynamicTensor>,
    results: &BTreeMap<String, DynamicTensor>,
) -> Result<String> {
    let started = Instant::now();
    match oracle::verify(program.statements(), &program.results(), inputs, results) {
        Ok(count) => {
            let compared = counted(count, "element", "elements");
            Ok(format!("{compared} in {}: within rounding", seconds(started.elapsed())))
        }
        Err(VerifyError::Oracle(error)) => Err(Error::Usage(format!("--verify: {error}"))),
        Err(differs) => Err(Error::Verification(differs.to_string())),
    }
}
