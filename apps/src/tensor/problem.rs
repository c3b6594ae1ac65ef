//! The problem that is computed: statements whose index variables have extents.

use std::collections::BTreeMap;

use maniple_tensor::distributed::{EntryFile, is_made_by_tasks};
use maniple_tensor::element::ElementType;
use maniple_tensor::format::Format;
use maniple_tensor::notation::{
    Access, Assignment, Expression, IndexVariable, NotationError, NotationErrorKind, Reduction, TensorVariable,
};
use maniple_tensor::program::Program;
use maniple_tensor::schedule::Schedule;

use super::files::Array;
use super::{Options, blocks, types};
use crate::error::{Error, Result};
use crate::input::InputError;
use crate::options::place;
use crate::report::counted;

/// A tensor from a file.
#[derive(Clone, Debug)]
pub enum Input {
    /// The elements, which each node has.
    Whole(Array),
    /// A file that tasks read, each a part.
    ByTasks(EntryFile),
}

impl Input {
    fn dimensions(&self) -> &[i64] {
        match self {
            Self::Whole(array) => array.dimensions(),
            Self::ByTasks(file) => file.dimensions(),
        }
    }

    fn element(&self) -> ElementType {
        match self {
            Self::Whole(array) => array.element(),
            Self::ByTasks(file) => file.element(),
        }
    }
}

/// Whether tasks can read a file as a dense tensor with elements of a type. What is wrong otherwise is told when the
/// whole file is read.
fn fits(file: &EntryFile, element: ElementType) -> bool {
    let own = file.element();
    let is_lost = own.is_complex() && !element.is_complex() || element.is_integer() && !own.is_integer();
    is_made_by_tasks(&Format::dense(file.dimensions().len())) && !is_lost
}

/// A program, checked.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The statements as they are written.
    pub program: Program,
    /// The statements that are launched.
    pub divided: Program,
    /// The schedules of statements, by their numbers from 1.
    pub schedules: BTreeMap<usize, Schedule>,
    /// The tensors that come from files.
    pub inputs: BTreeMap<String, Input>,
}

impl Problem {
    /// The program of the command line, with the extents of its index variables, and the files.
    pub(super) fn new(options: &Options) -> Result<Self> {
        let text = &said(&options.statement)?;
        let names = index_variables(text);
        let mut inputs = BTreeMap::<String, Input>::new();
        for (name, file) in &options.input {
            // All of what is verified is looked at.
            let by_tasks = if place().nodes > 1 && !options.verify { file.by_tasks()? } else { None };
            let input = by_tasks.map_or_else(|| file.read(name).map(Input::Whole), |file| Ok(Input::ByTasks(file)))?;
            if inputs.insert(name.clone(), input).is_some() {
                return Err(Error::Usage(format!("--input says twice what {name} is")));
            }
        }
        let element =
            types::of_program(options, (text, &names), inputs.iter().map(|(name, file)| (&**name, file.element())));
        let sketch = sketched(text, element, &names)?;
        let mut extents = Extents::default();
        for (name, extent) in &options.size {
            if !names.iter().any(|known| known == name) {
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(Error::Usage(format!(
                    "--size {name}={extent}: the statement has the index variables {known}"
                )));
            }
            extents.set(name, *extent, "--size")?;
        }
        extents.set_parts(&sketch)?;
        for (name, file) in &options.input {
            let accesses = accesses(&sketch, name)?;
            let Some(input) = inputs.remove(name) else { continue };
            let (own, order) = (
                options.element.iter().rev().find(|(known, _)| known.as_ref() == Some(name)),
                accesses[0].tensor.order(),
            );
            let wanted = own.map_or(element, |(_, element)| *element);
            let unfit = |reason: String| {
                Error::Input(InputError::Unsuitable { name: file.path().display().to_string(), reason })
            };
            let input = match input {
                Input::ByTasks(entries) => match entries.with_order(order).filter(|file| fits(file, wanted)) {
                    Some(entries) => Input::ByTasks(entries),
                    None => Input::Whole(fitting(file.read(name)?, order).map_err(unfit)?),
                },
                Input::Whole(array) => Input::Whole(fitting(array, order).map_err(unfit)?),
            };
            for access in &accesses {
                extents.set_by(access, input.dimensions(), &format!("in {}", file.path().display()))?;
            }
            let input = match input {
                Input::Whole(array) => Input::Whole(array.converted(wanted).map_err(unfit)?),
                by_tasks => by_tasks,
            };
            inputs.insert(name.clone(), input);
        }
        extents.settle(&sketch)?;
        let usual = usual_extent(&sketch);
        let sized = sized(text, element, &names, |name| extents.get(name).unwrap_or(usual))?;
        let tensors = declared(options, element, &sized)?;
        // Files may have more than the parts that are taken of them.
        let tensors: Vec<TensorVariable> = tensors
            .into_iter()
            .map(|tensor| match inputs.get(tensor.name()) {
                Some(input) => tensor.with_dimensions(input.dimensions()),
                None => tensor,
            })
            .collect();
        let program = Program::parse(text, &tensors).map_err(|error| Error::Usage(error.to_string()))?;
        program.tensors().iter().try_for_each(not_too_large)?;
        check_reductions(&program)?;
        let schedules = schedules(options, &program)?;
        let divided = if schedules.is_empty() { program.divided(&options.rates()?) } else { program.clone() };
        for (name, placement) in &options.place {
            named(&mut program.tensors(), &format!("--place {name}={placement}:"), name)?;
        }
        let problem = Self { divided, program, schedules, inputs };
        for (name, file) in &options.output {
            file.takes(problem.written(name.as_deref())?.order())?;
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

/// The tensors that the program has, of the types and stored in the formats that are wished.
fn declared(options: &Options, element: ElementType, program: &Program) -> Result<Vec<TensorVariable>> {
    let of_type = |tensor: &TensorVariable, element| TensorVariable::new(tensor.name(), element, tensor.dimensions());
    let mut tensors: Vec<TensorVariable> = program.tensors().iter().map(|tensor| of_type(tensor, element)).collect();
    for (name, element) in &options.element {
        let Some(name) = name else { continue };
        let tensor = named(&mut tensors, &format!("--type {name}:"), name)?;
        *tensor = of_type(tensor, *element);
    }
    let mut known = Vec::new();
    for (name, format) in &options.format {
        let tensor = named(&mut tensors, &format!("--format {name}:"), name)?;
        format.check(tensor.order()).map_err(|error| Error::Usage(format!("--format {name}={format}: {error}")))?;
        if known.contains(&name) {
            return Err(Error::Usage(format!("--format says twice how {name} is stored")));
        }
        known.push(name);
        *tensor = tensor.stored(format.clone());
    }
    Ok(tensors)
}

/// The tensor that an option names.
fn named<'a>(tensors: &'a mut [TensorVariable], option: &str, name: &str) -> Result<&'a mut TensorVariable> {
    let names: Vec<&str> = tensors.iter().map(TensorVariable::name).collect();
    let known = names.join(", ");
    let found = tensors.iter_mut().find(|tensor| tensor.name() == name);
    found.ok_or_else(|| Error::Usage(format!("{option} the statement has {known}")))
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

/// Extents of index variables, and what says so.
#[derive(Default)]
pub(super) struct Extents {
    said: BTreeMap<String, (i64, String)>,
    /// How many values they have at least, by files that do not tell extents.
    least: BTreeMap<String, (i64, String)>,
    /// How many they have where nothing else says it: as many as a dimension has coordinates of which a shift is taken.
    shifted: BTreeMap<String, (i64, String)>,
}

impl Extents {
    pub(super) fn get(&self, name: &str) -> Option<i64> {
        self.said.get(name).map(|(extent, _)| *extent)
    }

    pub(super) fn set(&mut self, name: &str, extent: i64, source: &str) -> Result<()> {
        match self.said.insert(name.to_owned(), (extent, source.to_owned())) {
            Some((before, first)) if before != extent => Err(Error::Usage(format!(
                "index variable {name} has {before} values by {first}, and {extent} by {source}"
            ))),
            _ => Ok(()),
        }
    }

    /// Notes the least extents that an access implies: the file of its tensor has at least these coordinates.
    pub(super) fn set_least(&mut self, access: &Access, coordinates: &[i64], source: &str) {
        for (variable, &coordinates) in access.variables.iter().zip(coordinates) {
            if variable.window().is_none() && coordinates > 0 {
                let least = self.least.entry(variable.name().to_owned()).or_default();
                if coordinates > least.0 {
                    *least = (coordinates, format!("{access} {source}"));
                }
            }
        }
    }

    /// Completes the extents: by accesses of one tensor, which imply extents of each other, by the coordinates that
    /// files have at least, and by shifts.
    pub(super) fn settle(&mut self, sketch: &Program) -> Result<()> {
        self.set_alike(sketch)?;
        // The most first: it is that of all variables that have as many values.
        let mut least: Vec<_> = std::mem::take(&mut self.least).into_iter().collect();
        least.sort_by_key(|(_, (coordinates, _))| std::cmp::Reverse(*coordinates));
        for (name, (coordinates, source)) in &least {
            if self.get(name).is_none() {
                self.set(name, *coordinates, source)?;
                self.set_alike(sketch)?;
            }
            if let Some((extent, by)) = self.said.get(name).filter(|(extent, _)| extent < coordinates) {
                return Err(Error::Usage(format!(
                    "index variable {name} has {extent} values by {by}, and {source} has {coordinates} coordinates"
                )));
            }
        }
        for (name, (extent, source)) in std::mem::take(&mut self.shifted) {
            if self.get(&name).is_none() {
                self.set(&name, extent, &source)?;
                self.set_alike(sketch)?;
            }
        }
        Ok(())
    }

    /// The extents of a tensor whose file has these coordinates at least, and which is accessed so: as many as
    /// variables have values, or as parts need.
    pub(super) fn of_accesses(&self, accesses: &[&Access], coordinates: &[i64]) -> Vec<i64> {
        let extent = |(dimension, &least): (usize, &i64)| {
            let own = accesses.iter().filter_map(|access| access.variables.get(dimension));
            let needed = own.map(|variable| match variable.window() {
                None => self.get(variable.name()).unwrap_or(least),
                Some(window) => window.end.unwrap_or(least),
            });
            needed.fold(least, i64::max)
        };
        coordinates.iter().enumerate().map(extent).collect()
    }
}

impl Extents {
    /// Sets the extents that follow from the parts of dimensions that a program takes.
    pub(super) fn set_parts(&mut self, sketch: &Program) -> Result<()> {
        for access in sketch.statements().iter().flat_map(|statement| statement.right().accesses()) {
            for window in access.variables.iter().filter_map(IndexVariable::window) {
                if let Some(part) = window.extent() {
                    self.set(window.of.name(), part, &access.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// Gives variables the same extent that are used in the same dimension of a tensor, as `i` and `j` in
    /// `A(k,i) * A(k,j)`.
    fn set_alike(&mut self, sketch: &Program) -> Result<()> {
        let statements = sketch.statements().iter();
        let all = statements.flat_map(|statement| statement.right().accesses().into_iter().chain([statement.left()]));
        let all: Vec<&Access> = all.collect();
        loop {
            let known = self.said.len();
            for (number, access) in all.iter().enumerate() {
                for other in all[..number].iter().filter(|other| other.tensor.name() == access.tensor.name()) {
                    for (one, two) in access.variables.iter().zip(&other.variables) {
                        let is_plain =
                            |variable: &IndexVariable| variable.window().is_none() && variable.base() == variable;
                        if one == two || !is_plain(one) || !is_plain(two) {
                            continue;
                        }
                        let source = format!("{access} and {other}");
                        match (self.get(one.name()), self.get(two.name())) {
                            (Some(extent), _) => self.set(two.name(), extent, &source)?,
                            (None, Some(extent)) => self.set(one.name(), extent, &source)?,
                            (None, None) => {}
                        }
                    }
                }
            }
            if self.said.len() == known {
                return Ok(());
            }
        }
    }

    /// Sets the extents that an access of a tensor with these dimensions implies for its variables. Parts of dimensions
    /// have extents of their own. A shift counts only if nothing else gives its variable an extent.
    pub(super) fn set_by(&mut self, access: &Access, dimensions: &[i64], source: &str) -> Result<()> {
        for (variable, &extent) in access.variables.iter().zip(dimensions) {
            match variable.window().map(|window| (window.end, window.extent())) {
                Some((Some(end), Some(part))) => {
                    if end > extent {
                        return Err(Error::Usage(format!(
                            "{access} needs {end} coordinates, and has {extent} {source}"
                        )));
                    }
                    self.set(variable.base().name(), part, &access.to_string())?;
                }
                Some(_) => {
                    let said = || (extent, format!("{access} {source}"));
                    self.shifted.entry(variable.base().name().to_owned()).or_insert_with(said);
                }
                None => self.set(variable.base().name(), extent, &format!("{access} {source}"))?,
            }
        }
        Ok(())
    }
}

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

/// How a tensor that comes from a file is accessed.
pub(super) fn accesses<'a>(sketch: &'a Program, name: &str) -> Result<Vec<&'a Access>> {
    let inputs = sketch.inputs();
    let statements = sketch.statements().iter();
    let all = statements.flat_map(|statement| statement.right().accesses().into_iter().chain([statement.left()]));
    let read: Vec<&Access> = all.filter(|access| inputs.contains(&access.tensor)).collect();
    let found: Vec<&Access> = read.iter().copied().filter(|access| access.tensor.name() == name).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let mut names: Vec<&str> = read.iter().map(|access| access.tensor.name()).collect();
    names.sort_unstable();
    names.dedup();
    let names = if names.is_empty() { "no tensor".to_owned() } else { names.join(", ") };
    Err(Error::Usage(format!("--input {name}: the statement reads {names}")))
}

/// A tensor of `order` dimensions from a file. In a file for matrices, vectors are columns, and numbers are matrices of
/// one element.
fn fitting(array: Array, order: usize) -> std::result::Result<Array, String> {
    let dimensions = array.dimensions().to_vec();
    let kept =
        dimensions.get(..order).filter(|kept| kept.iter().product::<i64>() == dimensions.iter().product::<i64>());
    let expected = || {
        let extents: Vec<String> = dimensions.iter().map(ToString::to_string).collect();
        let found = if extents.is_empty() { "a single number".to_owned() } else { extents.join(" x ") };
        format!("expected a tensor of {}, found {found}", counted(order, "dimension", "dimensions"))
    };
    kept.and_then(|kept| array.reshaped(kept.to_vec())).ok_or_else(expected)
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

/// A program with tensors that its accesses make, all of one type, if it can be that of all.
fn read(
    element: ElementType,
    read_as: impl Fn(ElementType) -> Result<Program, NotationError>,
) -> Result<Program, NotationError> {
    read_as(element).or_else(|error| match &error.kind {
        NotationErrorKind::UnknownVariable(_) => Err(error),
        // Tensors that are declared to be of another type may have what this one lacks.
        _ => ElementType::ALL.into_iter().find_map(|other| read_as(other).ok()).ok_or(error),
    })
}

/// The program before anything is known of extents.
pub(super) fn sketched(text: &str, element: ElementType, names: &[String]) -> Result<Program> {
    let variables: Vec<IndexVariable> = names.iter().map(|name| IndexVariable::new(name)).collect();
    let sketch = read(element, |element| Program::sketch(text, element, &variables));
    sketch.map_err(|error| Error::Usage(error.to_string()))
}

/// The program with the extents of its index variables.
pub(super) fn sized(
    text: &str,
    element: ElementType,
    names: &[String],
    extent: impl Fn(&str) -> i64,
) -> Result<Program> {
    let extents: Vec<_> = names.iter().map(|name| (IndexVariable::new(name), extent(name))).collect();
    let sized = read(element, |element| Program::parse_with_extents(text, element, &extents));
    sized.map_err(|error| Error::Usage(error.to_string()))
}

/// The names of a program's index variables.
pub(super) fn index_variables(text: &str) -> Vec<String> {
    Program::index_variables(text).iter().map(|variable| variable.name().to_owned()).collect()
}

/// The extent with which the largest tensor has about a million elements.
pub(super) fn usual_extent(program: &Program) -> i64 {
    match program.tensors().iter().map(TensorVariable::order).max() {
        Some(0 | 1) | None => 1_000_000,
        Some(2) => 1000,
        Some(3) => 100,
        Some(_) => 31,
    }
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
