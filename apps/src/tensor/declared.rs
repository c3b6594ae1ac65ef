//! The tensors that a program declares: their extents, types, formats and fill values, by options and files.

use std::collections::BTreeMap;

use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::files::of_order;
use maniple_tensor::notation::{TensorVariable, cast, is_fill, is_zero};
use maniple_tensor::program::Program;

use super::extents::{Extents, accesses, index_variables, named, sized, sketched, usual_extent};
use super::operands::Inputs;
use super::options::Options;
use crate::error::{Error, Result};
use crate::report::counted;

/// The program whose tensors have an element type, unless an option gives one of them another; with their extents,
/// formats and fill values. Files are those of its tensors then: of vectors, and with the extents that they do not
/// tell.
///
/// # Errors
/// [`Error::Usage`] if options, files and accesses do not fit each other.
pub(super) fn declared(
    options: &Options,
    (text, element): (&str, ElementType),
    inputs: &mut Inputs,
) -> Result<Program> {
    let names = index_variables(text);
    let sketch = sketched(text, element, &names)?;
    for (name, input) in inputs.iter_mut() {
        let order = accesses(&sketch, name)?[0].tensor.order();
        if order > 0 && input.file.dimensions().len() != order {
            input.file.take_order(order);
        }
    }
    let mut extents = Extents::default();
    for (name, extent) in &options.size {
        if !names.contains(name) {
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Error::Usage(format!("--size {name}={extent}: the statement has the index variables {known}")));
        }
        extents.set(name, *extent, "--size")?;
    }
    extents.set_parts(&sketch)?;
    let made = options.generate.iter().filter_map(|(name, kind)| Some((name, kind.dimensions()?, kind.to_string())));
    let read = inputs.iter().map(|(name, input)| {
        let source = match input.file.tells_extents() {
            true => format!("in {}", input.named.path().display()),
            false => "in its file".to_owned(),
        };
        (name, input.file.dimensions(), source)
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
            match inputs.get(name).is_none_or(|input| input.file.tells_extents()) {
                true => extents.set_by(access, &dimensions, &source)?,
                false => extents.set_least(access, &dimensions, &source),
            }
        }
    }
    extents.settle(&sketch)?;
    for (name, input) in inputs.iter_mut().filter(|(_, input)| !input.file.tells_extents()) {
        let dimensions = extents.of_accesses(&accesses(&sketch, name)?, &input.file.dimensions());
        input.file.take_extents(&dimensions);
    }
    let usual = usual_extent(&sketch);
    let sized = sized(text, element, &names, |name| extents.get(name).unwrap_or(usual))?;
    let tensors = stored(options, element, (&sized, inputs))?;
    Program::parse(text, &tensors).map_err(|error| Error::Usage(error.to_string()))
}

/// The tensors of a program, of the types and in the formats that are asked for.
fn stored(
    options: &Options,
    element: ElementType,
    (program, inputs): (&Program, &Inputs),
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
    let read = inputs.iter().map(|(name, input)| (name.as_str(), input.file.dimensions()));
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
        let of_file = inputs.get(tensor.name()).and_then(|input| input.file.fill());
        if let Some(fill) = fill(options, tensor, of_file)? {
            *tensor = tensor.filled(fill);
        }
    }
    Ok(tensors)
}

/// Returns the fill value of a tensor, which its elements have that are not stored: by `--fill`, or by its file.
fn fill(options: &Options, tensor: &TensorVariable, of_file: Option<Scalar>) -> Result<Option<Scalar>> {
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
