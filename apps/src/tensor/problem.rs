//! The problem that is computed: statements whose index variables have extents.

use std::collections::BTreeMap;

use maniple_tensor::element::ElementType;
use maniple_tensor::files::{FileInParts, InputError, TensorFile};
use maniple_tensor::notation::{Assignment, Expression, IndexVariable, Reduction, TensorVariable};
use maniple_tensor::program::Program;
use maniple_tensor::schedule::Schedule;

use super::declared::declared;
use super::extents::{accesses, index_variables, named, sketched};
use super::operands::{Input, Inputs, no_imaginary_parts};
use super::{Options, blocks, types};
use crate::error::{Error, Result};
use crate::report::counted;

/// A program, checked.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The statements as they are written.
    pub program: Program,
    /// The statements that are launched.
    pub divided: Program,
    /// The schedules of statements, by their numbers from 1.
    pub schedules: BTreeMap<usize, Schedule>,
    /// The tensors that tasks read from files.
    pub files: BTreeMap<String, FileInParts>,
}

impl Problem {
    /// The program of the command line, with the extents of its index variables, and the files.
    pub(super) fn new(options: &Options, mut inputs: Inputs) -> Result<Self> {
        let text = &said(&options.statement)?;
        let names = index_variables(text);
        inputs.iter().try_for_each(|(name, input)| input.check_named(name))?;
        let own = inputs.iter().map(|(name, input)| (&**name, input.file.element()));
        let element = types::of_program(options, (text, &names), own);
        let sketch = sketched(text, element, &names)?;
        let mut files = BTreeMap::new();
        for (name, input) in &mut inputs {
            let order = accesses(&sketch, name)?[0].tensor.order();
            let own = options.element.iter().rev().find(|(known, _)| known.as_ref() == Some(name));
            let wanted = own.map_or(element, |(_, element)| *element);
            files.insert(name.clone(), fitting(input, order, wanted)?);
        }
        let program = declared(options, (text, element), &mut inputs)?;
        program.tensors().iter().try_for_each(not_too_large)?;
        check_reductions(&program)?;
        let schedules = schedules(options, &program)?;
        let divided = if schedules.is_empty() { program.divided(&options.rates()?) } else { program.clone() };
        for (name, placement) in &options.place {
            named(&mut program.tensors(), &format!("--place {name}={placement}:"), name)?;
        }
        let problem = Self { divided, program, schedules, files };
        let mut written = Vec::new();
        for (name, file) in &options.output {
            let result = problem.written(name.as_deref())?;
            takes(file, result.order())?;
            if written.contains(&result) {
                return Err(Error::Usage(format!("--output says twice where {result} goes")));
            }
            written.push(result);
        }
        if options.verify {
            problem.definitions()?;
        }
        Ok(problem)
    }

    /// The result that is called `name`; without a name, the last one.
    pub(super) fn written(&self, name: Option<&str>) -> Result<TensorVariable> {
        let results = self.program.results();
        let found = match name {
            Some(name) => results.iter().find(|tensor| tensor.name() == name),
            None => results.last(),
        };
        found.cloned().ok_or_else(|| {
            let names: Vec<&str> = results.iter().map(TensorVariable::name).collect();
            Error::Usage(format!("--output {}: the results are {}", name.unwrap_or_default(), names.join(", ")))
        })
    }

    /// Returns the definition of each result, in terms of the program's inputs and of results that are complete by
    /// then.
    ///
    /// # Errors
    /// [`Error::Usage`] if a result is assigned in ways that no single statement says.
    pub(super) fn definitions(&self) -> Result<Vec<Assignment>> {
        let mut definitions: Vec<Assignment> = Vec::new();
        let unclear = |tensor: &TensorVariable| {
            Error::Usage(format!(
                "--verify: {tensor} is assigned several times, and used between; give what it holds each time a name of its own"
            ))
        };
        for statement in self.program.statements() {
            let left = &statement.left().tensor;
            let reads =
                |definition: &Assignment| definition.right().accesses().iter().any(|access| access.tensor == *left);
            let known = definitions.iter().position(|known| known.left().tensor == *left);
            // What was read must not change any more.
            let was_read = definitions.iter().any(|other| other.left().tensor != *left && reads(other));
            if was_read || known.is_some_and(|known| reads(statement) || reads(&definitions[known])) {
                return Err(unclear(left));
            }
            match (known, statement.accumulation()) {
                (Some(known), Some(Reduction::Sum)) => {
                    let before = &definitions[known];
                    let both = (before.left() == statement.left()
                        && matches!(before.accumulation(), None | Some(Reduction::Sum)))
                    .then(|| before.right().clone() + statement.right().clone());
                    let both = both.ok_or_else(|| unclear(left))?;
                    definitions[known] =
                        Assignment::accumulating(statement.left().clone(), before.accumulation(), both)
                            .map_err(|error| Error::Usage(error.to_string()))?;
                }
                (Some(_), Some(_)) => return Err(unclear(left)),
                (Some(known), None) => definitions[known] = statement.clone(),
                (None, _) => definitions.push(statement.clone()),
            }
        }
        Ok(definitions)
    }

    /// Operations on numbers, all in all. A product or sum of complex numbers counts as the operations on reals that it
    /// takes.
    #[must_use]
    pub fn operations(&self) -> f64 {
        let of_one = |assignment: &Assignment| {
            let extents = assignment.extents();
            let variables = &assignment.left().variables;
            let iterations = variables.iter().map(|variable| extents[variable] as f64).product();
            let (multiply, add) = if assignment.element().is_complex() { (6.0, 2.0) } else { (1.0, 1.0) };
            let right = operations(assignment.right(), extents, iterations, (multiply, add));
            right + if assignment.accumulates() { iterations * add } else { 0.0 }
        };
        self.divided.statements().iter().map(of_one).sum()
    }

    /// The bytes of all tensors: what must be read and written at least.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        let size = |tensor: &TensorVariable| {
            tensor.dimensions().iter().map(|&extent| extent as f64).product::<f64>() * tensor.element().size() as f64
        };
        self.program.tensors().iter().map(size).sum()
    }

    /// The statements in one line.
    #[must_use]
    pub fn text(&self) -> String {
        self.program.statements().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
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

    /// The extents of all index variables.
    #[must_use]
    pub fn extents(&self) -> BTreeMap<IndexVariable, i64> {
        self.program.statements().iter().flat_map(|statement| statement.extents().clone()).collect()
    }
}

/// Returns the text of an argument: itself, or the contents of the file that it names after `@`.
pub(super) fn said(argument: &str) -> Result<String> {
    let Some(file) = argument.strip_prefix('@') else { return Ok(argument.to_owned()) };
    std::fs::read_to_string(file).map_err(|error| Error::Usage(format!("{file}: {error}")))
}

/// The schedules of statements.
pub(super) fn schedules(options: &Options, program: &Program) -> Result<BTreeMap<usize, Schedule>> {
    let mut schedules = BTreeMap::new();
    if blocks::are_asked_for(options) {
        schedules.insert(1, blocks::schedule(options, program)?);
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

/// More elements can't be numbered safely.
const MOST_ELEMENTS: i64 = 1 << 48;
/// Regions have no more.
const MOST_DIMENSIONS: usize = 4;

/// Refuses what has elements that are the least, the greatest or the like of nothing: reductions without a value that
/// changes no other, over variables without values. NumPy refuses them, too.
pub(super) fn check_reductions(program: &Program) -> Result<()> {
    fn of_nothing<'e>(expression: &'e Expression, extents: &BTreeMap<IndexVariable, i64>) -> Option<&'e Expression> {
        match expression {
            Expression::Reduce(Reduction::Minimum | Reduction::Maximum, variable, _)
                if extents.get(variable) == Some(&0) =>
            {
                Some(expression)
            }
            other => other.operands().into_iter().find_map(|operand| of_nothing(operand, extents)),
        }
    }
    for statement in program.statements() {
        let is_empty = statement.left().tensor.dimensions().contains(&0);
        if let Some(found) = of_nothing(statement.right(), statement.extents()).filter(|_| !is_empty) {
            let Expression::Reduce(reduction, variable, _) = found else { continue };
            let problem = format!("{variable} has no values, and {reduction} of nothing is none: {found}");
            return Err(Error::Usage(format!("{problem}; leave it out, or combine it with a value")));
        }
    }
    Ok(())
}

/// The file of a dense tensor of `order` dimensions, whose elements become those of a type. In a file for matrices,
/// vectors are columns, and numbers are matrices of one element.
fn fitting(input: &mut Input, order: usize, wanted: ElementType) -> Result<FileInParts> {
    let unfit = |input: &Input, reason: String| Error::from(InputError::unsuitable(input.named.path(), reason));
    let dimensions = input.file.dimensions();
    if dimensions.len() != order && !input.file.take_order(order) {
        let extents: Vec<String> = dimensions.iter().map(ToString::to_string).collect();
        let found = if extents.is_empty() { "a single number".to_owned() } else { extents.join(" x ") };
        let expected = counted(order, "dimension", "dimensions");
        return Err(unfit(input, format!("expected a tensor of {expected}, found {found}")));
    }
    let own = input.file.element();
    if own.is_complex() && !wanted.is_complex() {
        return Err(unfit(input, no_imaginary_parts(own, wanted)));
    }
    if !own.is_integer() && wanted.is_integer() {
        let (own, wanted) = (own.name(), wanted.name());
        let reason = format!("its elements are {own}, and {wanted} has no fractions: say --type {own}");
        return Err(unfit(input, reason));
    }
    let parts = input.file.parts().cloned();
    parts.ok_or_else(|| {
        unfit(input, "the tensor is stored in levels: it is for statements on sparse tensors".to_owned())
    })
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

/// The operations of an expression that is evaluated so many times.
fn operations(
    expression: &Expression,
    extents: &BTreeMap<IndexVariable, i64>,
    times: f64,
    (multiply, add): (f64, f64),
) -> f64 {
    use maniple_tensor::notation::BinaryOperator::{Add, Subtract};
    let (own, times) = match expression {
        Expression::Literal(..)
        | Expression::Index(_)
        | Expression::Access(_)
        | Expression::Test(..)
        | Expression::Cast(..) => (0.0, times),
        Expression::Negate(_) | Expression::Binary(Add | Subtract, ..) => (times * add, times),
        Expression::Binary(..) | Expression::Call(..) | Expression::Select(..) => (times * multiply, times),
        Expression::Reduce(reduction, variable, _) => {
            let times = times * extents[variable] as f64;
            (times * if *reduction == Reduction::Product { multiply } else { add }, times)
        }
    };
    own + expression
        .operands()
        .into_iter()
        .map(|operand| operations(operand, extents, times, (multiply, add)))
        .sum::<f64>()
}
