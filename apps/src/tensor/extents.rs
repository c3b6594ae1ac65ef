//! The extents of index variables, and what says them: options, the tensors of files, parts and shifts.

use std::collections::BTreeMap;

use maniple_tensor::element::ElementType;
use maniple_tensor::notation::{Access, IndexVariable, NotationError, NotationErrorKind, TensorVariable};
use maniple_tensor::program::Program;

use crate::error::{Error, Result};

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

/// The tensor that an option names.
pub(super) fn named<'a>(tensors: &'a mut [TensorVariable], option: &str, name: &str) -> Result<&'a mut TensorVariable> {
    let names: Vec<&str> = tensors.iter().map(TensorVariable::name).collect();
    let known = names.join(", ");
    let found = tensors.iter_mut().find(|tensor| tensor.name() == name);
    found.ok_or_else(|| Error::Usage(format!("{option} the statement has {known}")))
}
