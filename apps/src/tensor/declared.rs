//! The tensors that a program declares: their extents, types, formats and fill values, by options and files.

use std::collections::{BTreeMap, BTreeSet};

use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::files::of_order;
use maniple_tensor::notation::{Access, IndexVariable, TensorVariable, cast, is_fill, is_zero};
use maniple_tensor::program::{Extents, Program};

use super::operands::Inputs;
use super::options::TensorOptions;
use crate::error::{Error, Result, usage};
use crate::report::counted;

/// The program whose tensors have an element type, unless an option gives one of them another; with their extents,
/// formats and fill values. Files are those of its tensors then: of vectors, and with the extents that they do not
/// tell.
///
/// # Errors
/// [`Error::Usage`] if options, files and accesses do not fit each other.
pub(super) fn declared(
    options: &TensorOptions,
    text: &str,
    element: ElementType,
    inputs: &mut Inputs,
) -> Result<Program> {
    let sketch = Program::sketched(text, element).map_err(usage)?;
    for (name, file) in inputs.iter_mut() {
        let order = accesses(&sketch, name)?[0].tensor.order();
        if order > 0 && file.dimensions().len() != order {
            file.take_order(order);
        }
    }
    let mut extents = Extents::default();
    let variables = Program::index_variables(text);
    let names: Vec<&str> = variables.iter().map(IndexVariable::name).collect();
    for (name, extent) in &options.size {
        if !names.contains(&name.as_str()) {
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Error::Usage(format!("--size {name}={extent}: the statement has the index variables {known}")));
        }
        extents.set(name, *extent, "--size").map_err(usage)?;
    }
    extents.set_parts(&sketch).map_err(usage)?;
    let made = options.generate.iter().filter_map(|(name, kind)| Some((name, kind.dimensions()?, kind.to_string())));
    let read = inputs.iter().map(|(name, file)| {
        let source = match file.tells_extents() {
            true => format!("in {}", file.name().display()),
            false => "in its file".to_owned(),
        };
        (name, file.dimensions(), source)
    });
    for (name, dimensions, source) in
        read.chain(made.map(|(name, dimensions, kind)| (name, dimensions, format!("by {kind}"))))
    {
        for access in accesses(&sketch, name)? {
            if access.variables.len() != dimensions.len() {
                let (expected, found) = (access.variables.len(), dimensions.len());
                return Err(Error::Usage(format!(
                    "{name} has {} in the statement, and {found} {source}",
                    counted(expected, "dimension", "dimensions")
                )));
            }
            match inputs.get(name).is_none_or(|file| file.tells_extents()) {
                true => extents.set_by(access, &dimensions, &source).map_err(usage)?,
                false => extents.set_least(access, &dimensions, &source),
            }
        }
    }
    extents.settle(&sketch).map_err(usage)?;
    for (name, file) in inputs.iter_mut().filter(|(_, file)| !file.tells_extents()) {
        let dimensions = extents.of_accesses(&accesses(&sketch, name)?, &file.dimensions());
        file.take_extents(&dimensions);
    }
    let usual = sketch.usual_extent();
    let sized = Program::sized(text, element, |name| extents.get(name).unwrap_or(usual)).map_err(usage)?;
    let tensors = stored(options, element, &sized, inputs)?;
    Program::parse(text, &tensors).map_err(usage)
}

/// The type of all tensors of which `--type` does not say another one. Of files it is the one that NumPy
/// [promotes](ElementType::common) their types to; a file that `--type` says the type of has that one.
pub(super) fn element(options: &TensorOptions, text: &str, inputs: &Inputs) -> ElementType {
    let said = |name: Option<&str>| options.element.iter().rev().find(|(known, _)| known.as_deref() == name);
    if let Some((_, element)) = said(None) {
        return *element;
    }
    let own = inputs.iter().map(|(name, file)| said(Some(name)).map_or(file.element(), |(_, element)| *element));
    let promoted = ElementType::common(own);
    promoted.map_or(ElementType::F64, |element| Program::promoted(text, element))
}

/// The accesses of a tensor that comes from a file.
pub(super) fn accesses<'a>(sketch: &'a Program, name: &str) -> Result<Vec<&'a Access>> {
    let found = sketch.accesses_of(name);
    if !found.is_empty() {
        return Ok(found);
    }
    let inputs = sketch.inputs();
    let names: BTreeSet<&str> = inputs.iter().map(TensorVariable::name).collect();
    let names: Vec<&str> = if names.is_empty() { vec!["no tensor"] } else { names.into_iter().collect() };
    Err(Error::Usage(format!("--input {name}: the statement reads {}", names.join(", "))))
}

/// The tensor that an option names.
pub(super) fn named<'a>(tensors: &'a mut [TensorVariable], option: &str, name: &str) -> Result<&'a mut TensorVariable> {
    let names: Vec<&str> = tensors.iter().map(TensorVariable::name).collect();
    let known = names.join(", ");
    let found = tensors.iter_mut().find(|tensor| tensor.name() == name);
    found.ok_or_else(|| Error::Usage(format!("{option} the statement has {known}")))
}

/// The tensors of a program, of the types and in the formats that are asked for.
fn stored(
    options: &TensorOptions,
    element: ElementType,
    program: &Program,
    inputs: &Inputs,
) -> Result<Vec<TensorVariable>> {
    // Of the type that was asked for, also if the statement needs another one: it is said then why.
    let of_type = |tensor: &TensorVariable, element| TensorVariable::new(tensor.name(), element, tensor.dimensions());
    let mut tensors: Vec<TensorVariable> = program.tensors().iter().map(|tensor| of_type(tensor, element)).collect();
    for (name, element) in &options.element {
        let Some(name) = name else { continue };
        let tensor = named(&mut tensors, &format!("--type {name}:"), name)?;
        *tensor = of_type(tensor, *element);
    }
    let made = options.generate.iter().filter_map(|(name, kind)| Some((name.as_str(), kind.dimensions()?)));
    let read = inputs.iter().map(|(name, file)| (name.as_str(), file.dimensions()));
    let whole: BTreeMap<&str, Vec<i64>> = made.chain(read).collect();
    for tensor in &mut tensors {
        // Files may have more than the parts that are taken of them.
        if let Some(dimensions) = whole.get(tensor.name()) {
            *tensor = tensor.with_dimensions(dimensions);
        }
    }
    for (number, (name, format)) in options.format.iter().enumerate() {
        let tensor = named(&mut tensors, &format!("--format {name}:"), name)?;
        if options.format[..number].iter().any(|(before, _)| before == name) {
            return Err(Error::Usage(format!("--format says twice how {name} is stored")));
        }
        if format.rank() != tensor.order() {
            let (order, rank) = (tensor.order(), counted(format.rank(), "dimension", "dimensions"));
            let advice = of_order(format, order);
            return Err(Error::Usage(format!(
                "--format {name}={format} is for {rank}, and {name} has {order}{advice}"
            )));
        }
        *tensor = tensor.stored(format.clone());
    }
    for (name, number) in &options.fill {
        named(&mut tensors, &format!("--fill {name}={number}:"), name)?;
    }
    for tensor in &mut tensors {
        let of_file = inputs.get(tensor.name()).and_then(|file| file.fill());
        if let Some(fill) = fill(options, tensor, of_file)? {
            *tensor = tensor.filled(fill);
        }
    }
    Ok(tensors)
}

/// Returns the fill value of a tensor, which its elements have that are not stored: by `--fill`, or by its file.
fn fill(options: &TensorOptions, tensor: &TensorVariable, of_file: Option<Scalar>) -> Result<Option<Scalar>> {
    let element = tensor.element();
    let mut said = options.fill.iter().filter(|(name, _)| name == tensor.name()).map(|(_, number)| *number);
    let Some(number) = said.next() else { return Ok(of_file.map(|fill| cast(fill, element))) };
    let wrong = |problem: String| Err(Error::Usage(format!("--fill {tensor}={number}: {problem}")));
    if said.next().is_some() {
        return wrong(format!("--fill says twice what {tensor} is filled with"));
    }
    let fill = cast(Scalar::F64(number), element);
    let is_exact = !element.is_integer() || cast(fill, ElementType::F64) == Scalar::F64(number);
    if !is_exact {
        return wrong(format!("elements are of type {element}, which has no such number"));
    }
    if let Some(other) = of_file.map(|of_file| cast(of_file, element)).filter(|of_file| !is_fill(*of_file, fill)) {
        return wrong(format!("by --input, what is not stored is {other}"));
    }
    if tensor.format().is_dense() && tensor.format().is_plain() && !is_zero(fill) {
        return wrong("it is dense, and stores all elements; say another --format".to_owned());
    }
    Ok(Some(fill))
}
