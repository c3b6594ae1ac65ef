//! The problem that is computed: statements whose index variables have extents.

use std::collections::BTreeMap;

use maniple_tensor::compute::BlocksError;
use maniple_tensor::element::ElementType;
use maniple_tensor::files::{FileInParts, InputError, Opened, TensorFile};
use maniple_tensor::notation::{Assignment, TensorVariable};
use maniple_tensor::program::{DefinitionError, Program};
use maniple_tensor::schedule::Schedule;

use super::TensorOptions;
use super::declared::{accesses, declared, element, named};
use super::operands::{Inputs, check_named, no_imaginary_parts};
use crate::error::{Error, Result, usage};
use crate::report::counted;

/// A program, checked.
#[derive(Clone, Debug)]
pub struct TensorProblem {
    /// The statements as they are written.
    pub program: Program,
    /// The statements that are launched.
    pub divided: Program,
    /// The definitions of results, if these are to be compared with them.
    pub definitions: Vec<Assignment>,
    /// The schedules of statements, by their numbers from 1.
    pub schedules: BTreeMap<usize, Schedule>,
    /// The tensors that tasks read from files.
    pub files: BTreeMap<String, FileInParts>,
    /// The files of results.
    pub outputs: Vec<(String, TensorFile)>,
}

impl TensorProblem {
    /// The program of the command line, with the extents of its index variables, and the files.
    pub(super) fn new(options: &TensorOptions, mut inputs: Inputs) -> Result<Self> {
        let text = &said(&options.statement)?;
        inputs.iter().try_for_each(|(name, file)| check_named(name, file))?;
        let element = element(options, text, &inputs);
        let sketch = Program::sketched(text, element).map_err(usage)?;
        let mut files = BTreeMap::new();
        for (name, file) in &mut inputs {
            let order = accesses(&sketch, name)?[0].tensor.order();
            let own = options.element.iter().rev().find(|(known, _)| known.as_ref() == Some(name));
            let wanted = own.map_or(element, |(_, element)| *element);
            files.insert(name.clone(), fitting(file, order, wanted)?);
        }
        let program = declared(options, text, element, &mut inputs)?;
        program.tensors().iter().try_for_each(not_too_large)?;
        program.check_reductions().map_err(usage)?;
        let schedules = schedules(options, &program)?;
        let divided = if schedules.is_empty() { program.divided(&options.rates()?) } else { program.clone() };
        for (name, placement) in &options.place {
            named(&mut program.tensors(), &format!("--place {name}={placement}:"), name)?;
        }
        let outputs = outputs(options, &program, false)?;
        for (name, file) in &outputs {
            let result = program.results().into_iter().find(|result| result.name() == name);
            takes(file, result.map_or(0, |result| result.order()))?;
        }
        let definitions = if options.verify { program.definitions() } else { Ok(Vec::new()) };
        let definitions = definitions.map_err(|error| match error {
            DefinitionError::Unclear(_) => Error::Usage(format!("--verify: {error}")),
            other => usage(other),
        })?;
        Ok(Self { program, divided, definitions, schedules, files, outputs })
    }

    /// The type of the elements, or the types of the tensors.
    #[must_use]
    pub fn elements(&self) -> String {
        let tensors = self.program.tensors();
        match tensors.iter().all(|tensor| tensor.element() == tensors[0].element()) {
            true => tensors[0].element().to_string(),
            false => {
                tensors.iter().map(|tensor| format!("{tensor}: {}", tensor.element())).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// The files that results go to, with the name of each: that of the last one, if none is said.
pub(super) fn outputs(
    options: &TensorOptions,
    program: &Program,
    is_sparse: bool,
) -> Result<Vec<(String, TensorFile)>> {
    let results = program.results();
    let names: Vec<&str> = results.iter().map(TensorVariable::name).collect();
    let mut files: Vec<(String, TensorFile)> = Vec::new();
    for (name, file) in &options.output {
        let found = names.iter().rev().find(|known| name.as_deref().is_none_or(|name| name == **known));
        let found = found.ok_or_else(|| {
            let name = name.as_ref().filter(|_| !is_sparse).map_or_else(String::new, |name| format!(" {name}"));
            Error::Usage(format!("--output{name}: the results are {}", names.join(", ")))
        })?;
        if files.iter().any(|(other, _)| other == found) {
            return Err(Error::Usage(format!("--output says twice where {found} goes")));
        }
        files.push(((*found).to_owned(), file.clone()));
    }
    Ok(files)
}

/// Returns the text of an argument: itself, or the contents of the file that it names after `@`.
pub(super) fn said(argument: &str) -> Result<String> {
    let Some(file) = argument.strip_prefix('@') else { return Ok(argument.to_owned()) };
    std::fs::read_to_string(file).map_err(|error| Error::Usage(format!("{file}: {error}")))
}

/// The schedules of statements.
pub(super) fn schedules(options: &TensorOptions, program: &Program) -> Result<BTreeMap<usize, Schedule>> {
    let mut schedules = BTreeMap::new();
    if options.blocks().are_asked_for() {
        schedules.insert(1, by_blocks(options, program)?);
    }
    for argument in &options.schedule {
        let text = said(argument)?;
        let number = text.split_once(':').and_then(|(number, _)| number.trim().parse::<i128>().ok());
        let statements = program.statements().len();
        if let Some(number) = number.filter(|number| !(1..=statements as i128).contains(number)) {
            let expected = counted(statements, "statement", "statements");
            return Err(Error::Usage(format!("--schedule {number}: the program has {expected}, numbered from 1")));
        }
        let number = number.map(|number| number as usize);
        // The number leaves room, so that columns stay what they are.
        let commands = match (number, text.split_once(':')) {
            (Some(_), Some((number, commands))) => format!("{}{commands}", " ".repeat(number.len() + 1)),
            _ => text,
        };
        let schedule = Schedule::parse(&commands, &program.tensors()).map_err(|error| {
            let file = argument.strip_prefix('@').map_or_else(|| "--schedule".to_owned(), str::to_owned);
            Error::Usage(format!("{file}: {error}"))
        })?;
        if schedules.insert(number.unwrap_or(1), schedule).is_some() {
            return Err(Error::Usage(format!("--schedule says twice how statement {} runs", number.unwrap_or(1))));
        }
    }
    Ok(schedules)
}

/// The schedule of a program of one statement that runs by blocks.
fn by_blocks(options: &TensorOptions, program: &Program) -> Result<Schedule> {
    let [assignment] = program.statements() else {
        return Err(Error::Usage("--split and what belongs to it are for one statement".to_owned()));
    };
    if !options.schedule.is_empty() || options.grid.is_some() || options.algorithm.is_some() {
        let problem = "--split, --order, --extend and --map say how a statement runs";
        return Err(Error::Usage(format!("{problem}: leave --schedule, --grid and --algorithm out")));
    }
    let text = options.blocks().commands(assignment).map_err(|error| match error {
        BlocksError::Unfit(problem) => Error::Usage(format!("--{problem}")),
        other => usage(other),
    })?;
    Schedule::parse(&text, &program.tensors()).map_err(|error| Error::Usage(format!("--split: {text}: {error}")))
}

/// More elements can't be numbered safely.
const MOST_ELEMENTS: i64 = 1 << 48;
/// Regions have no more.
const MOST_DIMENSIONS: usize = 4;

/// The file of a dense tensor of `order` dimensions, whose elements become those of a type. In a file for matrices,
/// vectors are columns, and numbers are matrices of one element.
fn fitting(file: &mut Opened, order: usize, wanted: ElementType) -> Result<FileInParts> {
    let unfit = |file: &Opened, reason: String| Error::from(InputError::unsuitable(file.name(), reason));
    let dimensions = file.dimensions();
    if dimensions.len() != order && !file.take_order(order) {
        let extents: Vec<String> = dimensions.iter().map(ToString::to_string).collect();
        let found = if extents.is_empty() { "a single number".to_owned() } else { extents.join(" x ") };
        let expected = counted(order, "dimension", "dimensions");
        return Err(unfit(file, format!("expected a tensor of {expected}, found {found}")));
    }
    let own = file.element();
    if own.is_complex() && !wanted.is_complex() {
        return Err(unfit(file, no_imaginary_parts(own, wanted)));
    }
    if !own.is_integer() && wanted.is_integer() {
        let (own, wanted) = (own.name(), wanted.name());
        let reason = format!("its elements are {own}, and {wanted} has no fractions: say --type {own}");
        return Err(unfit(file, reason));
    }
    let parts = file.parts().cloned();
    parts
        .ok_or_else(|| unfit(file, "the tensor is stored in levels: it is for statements on sparse tensors".to_owned()))
}

/// Checks that a dense tensor of so many dimensions can be written to a file.
fn takes(file: &TensorFile, order: usize) -> Result<()> {
    let name = file.path().display();
    if file.is_matrix_market() && order > 2 {
        return Err(Error::Usage(format!(
            "{name}: Matrix Market files hold matrices; write a tensor of {order} dimensions to a .npy file"
        )));
    }
    if !file.is_matrix_market() && !file.is_numpy() {
        return Err(Error::Usage(format!("{name}: dense tensors are written to .npy and .mtx files")));
    }
    Ok(())
}

fn not_too_large(tensor: &TensorVariable) -> Result<()> {
    let count = tensor.dimensions().iter().try_fold(1_i64, |product, &extent| product.checked_mul(extent));
    if count.is_none_or(|count| count > MOST_ELEMENTS) {
        let extents: Vec<String> = tensor.dimensions().iter().map(ToString::to_string).collect();
        return Err(Error::Usage(format!("{tensor} of {} elements is too large", extents.join(" x "))));
    }
    if tensor.order() > MOST_DIMENSIONS {
        let order = tensor.order();
        return Err(Error::Usage(format!(
            "{tensor} has {order} dimensions; dense tensors have at most {MOST_DIMENSIONS}; sparse ones, as with --format {tensor}=csf:{order}, have more"
        )));
    }
    Ok(())
}
