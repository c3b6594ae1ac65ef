//! What is computed: a statement whose index variables have extents.

use std::collections::BTreeMap;

use maniple_tensor::element::ElementType;
use maniple_tensor::format::Format;
use maniple_tensor::notation::{
    self, Access, Assignment, Expression, IndexVariable, NotationErrorKind, Reduction, TensorVariable,
    parse_with_extents,
};

use super::Options;
use super::files::Array;
use crate::error::{Error, Result};
use crate::input::InputError;
use crate::report::counted;

/// A statement, checked.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The statement.
    pub assignment: Assignment,
    /// The tensors that come from files.
    pub inputs: BTreeMap<String, Array>,
}

impl Problem {
    /// The statement of the command line, with the extents of its index variables, and the files.
    pub(super) fn new(options: &Options) -> Result<Self> {
        let text = &options.statement;
        let names = index_variables(text)?;
        let mut inputs = BTreeMap::new();
        for (name, file) in &options.input {
            if inputs.insert(name.clone(), file.read()?).is_some() {
                return Err(Error::Usage(format!("--input says twice what {name} is")));
            }
        }
        let element = match options.element {
            Some(element) => element.into(),
            None => options.input.first().map_or(ElementType::F64, |(name, _)| inputs[name].element()),
        };
        let sketch = parse(text, element, &names, |_| 1)?;
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
        for (name, file) in &options.input {
            let accesses = accesses(&sketch, name)?;
            let Some(array) = inputs.remove(name) else { continue };
            let unfit = |reason: String| {
                Error::Input(InputError::Unsuitable { name: file.path().display().to_string(), reason })
            };
            let array = fitting(array, accesses[0].tensor.order()).map_err(unfit)?;
            for access in &accesses {
                for (variable, &extent) in access.variables.iter().zip(array.dimensions()) {
                    extents.set(variable.name(), extent, &format!("{access} in {}", file.path().display()))?;
                }
            }
            let array = array.converted(element).map_err(unfit)?;
            inputs.insert(name.clone(), array);
        }
        let usual = usual_extent(&sketch);
        let assignment = parse(text, element, &names, |name| extents.get(name).unwrap_or(usual))?;
        assignment.tensors().iter().try_for_each(not_too_large)?;
        if let Some(file) = &options.output {
            file.takes(assignment.left().tensor.order())?;
        }
        let tensors = stored(&options.format, &assignment)?;
        let assignment = notation::parse(text, &tensors).map_err(|error| Error::Usage(error.to_string()))?;
        Ok(Self { assignment, inputs })
    }

    /// The result.
    #[must_use]
    pub fn result(&self) -> TensorVariable {
        self.assignment.left().tensor.clone()
    }

    /// Whether the result's old elements count.
    #[must_use]
    pub fn reads_result(&self) -> bool {
        let left = &self.assignment.left().tensor;
        self.assignment.accumulates() || self.assignment.right().accesses().iter().any(|access| access.tensor == *left)
    }

    /// Operations on numbers, all in all. A product or sum of complex numbers counts as the operations on reals that it takes.
    #[must_use]
    pub fn operations(&self) -> f64 {
        let extents = self.assignment.extents();
        let variables = &self.assignment.left().variables;
        let iterations = variables.iter().map(|variable| extents[variable] as f64).product();
        let (multiply, add) = if self.assignment.element().is_complex() { (6.0, 2.0) } else { (1.0, 1.0) };
        let right = operations(self.assignment.right(), extents, iterations, (multiply, add));
        right + if self.assignment.accumulates() { iterations * add } else { 0.0 }
    }

    /// The bytes of all tensors: what must be read and written at least.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        let size = |tensor: &TensorVariable| {
            tensor.dimensions().iter().map(|&extent| extent as f64).product::<f64>() * tensor.element().size() as f64
        };
        self.assignment.tensors().iter().map(size).sum()
    }
}

/// The tensors that the statement has, stored as is wished.
fn stored(wishes: &[(String, Format)], assignment: &Assignment) -> Result<Vec<TensorVariable>> {
    let (mut tensors, mut known) = (assignment.tensors(), Vec::new());
    for (name, format) in wishes {
        let Some(tensor) = tensors.iter_mut().find(|tensor| tensor.name() == name) else {
            let names: Vec<&str> = tensors.iter().map(|tensor| tensor.name()).collect();
            return Err(Error::Usage(format!("--format {name}: the statement has {}", names.join(", "))));
        };
        format.check(tensor.order()).map_err(|error| Error::Usage(format!("--format {name}={format}: {error}")))?;
        if known.contains(&name) {
            return Err(Error::Usage(format!("--format says twice how {name} is stored")));
        }
        known.push(name);
        *tensor = tensor.stored(format.clone());
    }
    Ok(tensors)
}

/// More elements can't be numbered safely.
const MOST_ELEMENTS: i64 = 1 << 48;
/// Regions have no more.
const MOST_DIMENSIONS: usize = 4;

/// Extents of index variables, and who says so.
#[derive(Default)]
struct Extents(BTreeMap<String, (i64, String)>);

impl Extents {
    fn get(&self, name: &str) -> Option<i64> {
        self.0.get(name).map(|(extent, _)| *extent)
    }

    fn set(&mut self, name: &str, extent: i64, source: &str) -> Result<()> {
        if extent == 0 {
            return Err(Error::Usage(format!("index variable {name} has no values by {source}")));
        }
        match self.0.insert(name.to_owned(), (extent, source.to_owned())) {
            Some((before, first)) if before != extent => Err(Error::Usage(format!(
                "index variable {name} has {before} values by {first}, and {extent} by {source}"
            ))),
            _ => Ok(()),
        }
    }
}

/// How a tensor that comes from a file is accessed.
fn accesses<'a>(sketch: &'a Assignment, name: &str) -> Result<Vec<&'a Access>> {
    let mut read = sketch.right().accesses();
    if sketch.accumulates() {
        read.push(sketch.left());
    }
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

/// A tensor of `order` dimensions from a file. In a file for matrices, vectors are columns, and numbers are matrices of one element.
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
        return Err(Error::Usage(format!("{tensor} has {order} dimensions; tensors have at most {MOST_DIMENSIONS}")));
    }
    Ok(())
}

fn parse(text: &str, element: ElementType, names: &[String], extent: impl Fn(&str) -> i64) -> Result<Assignment> {
    let extents: Vec<_> = names.iter().map(|name| (IndexVariable::new(name), extent(name))).collect();
    parse_with_extents(text, element, &extents).map_err(|error| Error::Usage(error.to_string()))
}

/// The names of a statement's index variables: what tensors are indexed by.
fn index_variables(text: &str) -> Result<Vec<String>> {
    let mut known: Vec<(IndexVariable, i64)> = Vec::new();
    while let Err(error) = parse_with_extents(text, ElementType::F64, &known) {
        // Each time, the first that is not known yet.
        match &error.kind {
            NotationErrorKind::UnknownVariable(name) if known.iter().all(|(known, _)| known.name() != name) => {
                known.push((IndexVariable::new(name), 1));
            }
            _ => break,
        }
    }
    // Other mistakes are told when it is read with its own type.
    Ok(known.into_iter().map(|(variable, _)| variable.name().to_owned()).collect())
}

/// The extent with which the largest tensor has about a million elements.
fn usual_extent(assignment: &Assignment) -> i64 {
    match assignment.tensors().iter().map(TensorVariable::order).max() {
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
        Expression::Literal(..) | Expression::Index(_) | Expression::Access(_) | Expression::Cast(..) => (0.0, times),
        Expression::Negate(_) | Expression::Binary(Add | Subtract, ..) => (times * add, times),
        Expression::Binary(..) | Expression::Call(..) => (times * multiply, times),
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
