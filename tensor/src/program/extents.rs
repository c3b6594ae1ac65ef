//! The extents of index variables, and what says them: options, the tensors of files, parts and shifts.

use std::collections::BTreeMap;

use super::Program;
use crate::element::ElementType;
use crate::notation::{Access, IndexVariable, NotationError, NotationErrorKind, TensorVariable};

/// Extents that do not fit each other: which, and what says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExtentError(String);

type Result<T> = std::result::Result<T, ExtentError>;

/// Extents of index variables, and what says so.
#[derive(Default)]
pub struct Extents {
    said: BTreeMap<String, (i64, String)>,
    /// How many values they have at least, by files that do not tell extents.
    least: BTreeMap<String, (i64, String)>,
    /// How many they have where nothing else says it: as many as a dimension has coordinates of which a shift is taken.
    shifted: BTreeMap<String, (i64, String)>,
}

impl Extents {
    /// The extent of a variable, if it is known.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<i64> {
        self.said.get(name).map(|(extent, _)| *extent)
    }

    /// Sets the extent of a variable, with its source in words.
    ///
    /// # Errors
    ///
    /// [`ExtentError`] if it has another one.
    pub fn set(&mut self, name: &str, extent: i64, source: &str) -> Result<()> {
        match self.said.insert(name.to_owned(), (extent, source.to_owned())) {
            Some((before, first)) if before != extent => Err(ExtentError(format!(
                "index variable {name} has {before} values by {first}, and {extent} by {source}"
            ))),
            _ => Ok(()),
        }
    }

    /// Notes the least extents that an access implies: the file of its tensor has at least these coordinates.
    pub fn set_least(&mut self, access: &Access, coordinates: &[i64], source: &str) {
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
    ///
    /// # Errors
    ///
    /// [`ExtentError`] if they do not fit each other.
    pub fn settle(&mut self, sketch: &Program) -> Result<()> {
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
                return Err(ExtentError(format!(
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
    #[must_use]
    pub fn of_accesses(&self, accesses: &[&Access], coordinates: &[i64]) -> Vec<i64> {
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

    /// Sets the extents that follow from the parts of dimensions that a program takes.
    ///
    /// # Errors
    ///
    /// [`ExtentError`].
    pub fn set_parts(&mut self, sketch: &Program) -> Result<()> {
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
        let all: Vec<&Access> = sketch.accesses().collect();
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
    ///
    /// # Errors
    ///
    /// [`ExtentError`] if they do not fit those that are known.
    pub fn set_by(&mut self, access: &Access, dimensions: &[i64], source: &str) -> Result<()> {
        for (variable, &extent) in access.variables.iter().zip(dimensions) {
            match variable.window().map(|window| (window.end, window.extent())) {
                Some((Some(end), Some(part))) => {
                    if end > extent {
                        return Err(ExtentError(format!(
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

impl Program {
    /// The accesses of an input of a name, in the order of the text.
    #[must_use]
    pub fn accesses_of(&self, name: &str) -> Vec<&Access> {
        let inputs = self.inputs();
        let is_read = |access: &&Access| access.tensor.name() == name && inputs.contains(&access.tensor);
        self.accesses().filter(is_read).collect()
    }

    /// All accesses, of each assignment those on the right first.
    fn accesses(&self) -> impl Iterator<Item = &Access> {
        self.statements()
            .iter()
            .flat_map(|statement| statement.right().accesses().into_iter().chain([statement.left()]))
    }

    /// The extent with which the largest tensor has about a million elements.
    #[must_use]
    pub fn usual_extent(&self) -> i64 {
        match self.tensors().iter().map(TensorVariable::order).max() {
            Some(0 | 1) | None => 1_000_000,
            Some(2) => 1000,
            Some(3) => 100,
            Some(_) => 31,
        }
    }

    /// The same as [`sketch`](Self::sketch), of a text whose index variables are not known yet. If the type cannot be
    /// that of all tensors, it is another one: tensors that are declared to be of another type may have what this one
    /// lacks.
    ///
    /// # Errors
    ///
    /// As of [`parse`](Self::parse).
    pub fn sketched(text: &str, element: ElementType) -> std::result::Result<Self, NotationError> {
        let variables = Self::index_variables(text);
        read(element, |element| Self::sketch(text, element, &variables))
    }

    /// The same as [`parse_with_extents`](Self::parse_with_extents), of all index variables, and of another type if
    /// this one cannot be that of all tensors.
    ///
    /// # Errors
    ///
    /// As of [`parse`](Self::parse).
    pub fn sized(
        text: &str,
        element: ElementType,
        extent: impl Fn(&str) -> i64,
    ) -> std::result::Result<Self, NotationError> {
        let variables = Self::index_variables(text).into_iter();
        let extents: Vec<_> = variables.map(|variable| (variable.clone(), extent(variable.name()))).collect();
        read(element, |element| Self::parse_with_extents(text, element, &extents))
    }
}

/// A program with tensors that its accesses make, all of one type, if it can be that of all.
fn read(
    element: ElementType,
    read_as: impl Fn(ElementType) -> std::result::Result<Program, NotationError>,
) -> std::result::Result<Program, NotationError> {
    read_as(element).or_else(|error| match &error.kind {
        NotationErrorKind::UnknownVariable(_) => Err(error),
        _ => ElementType::ALL.into_iter().find_map(|other| read_as(other).ok()).ok_or(error),
    })
}
