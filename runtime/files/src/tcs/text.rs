//! Files of text to `.tcs` files.

use std::fs::File;
use std::io::BufReader;
use std::ops::Add;
use std::path::Path;

use maniple_element::ElementType;
use num_complex::Complex;

use super::convert::{Survey, survey, write};
use super::entries::{EntryStream, Matrix};
use super::layout::{TcsLevelKind, Width};
use super::plan::{ConvertError, Duplicates, Extent, StoragePlan};
use super::sort::sort;
use crate::error::ReadError;
use crate::matrix_market::{Reader, Symmetry};
use crate::number::Number;
use crate::tns;

/// So many bytes of entries are sorted at once.
const MEMORY: usize = 16 << 20;

/// A text file of entries.
#[derive(Clone, Copy, Debug)]
pub struct TextFile<'a> {
    /// The path of the file.
    pub path: &'a Path,
    /// Whether it is a Matrix Market file; otherwise a `.tns` file.
    pub is_matrix: bool,
    /// The extents, where the file does not tell them, and they are not those of the smallest tensor that has all
    /// entries.
    pub extents: Option<&'a [u64]>,
}

/// How the entries of text are to be stored; those at the same place are added up.
#[derive(Clone, Debug)]
pub struct TextPlan {
    /// As [`StoragePlan::kinds`].
    pub kinds: Vec<TcsLevelKind>,
    /// As [`StoragePlan::order`].
    pub order: Vec<usize>,
    /// As [`StoragePlan::width`].
    pub width: Width,
    /// The type that holds all elements.
    pub element: ElementType,
}

/// Makes room in a file for a tensor.
type Reserve<'a> = &'a dyn Fn(&File, &Survey) -> Result<(), ConvertError>;

impl TextFile<'_> {
    fn open(&self) -> Result<BufReader<File>, ReadError> {
        Ok(BufReader::with_capacity(1 << 20, File::open(self.path)?))
    }

    /// Whether entries follow from others by symmetry.
    pub fn is_half(&self) -> bool {
        let reader = || Reader::new(self.open()?);
        self.is_matrix && reader().is_ok_and(|reader| reader.header().symmetry != Symmetry::General)
    }

    /// The number of dimensions.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn order(&self) -> Result<usize, ReadError> {
        if self.is_matrix { Ok(2) } else { tns::Reader::<_, f64>::new(self.open()?).map(|reader| reader.order()) }
    }

    /// The type that holds all elements.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn element(&self) -> Result<ElementType, ReadError> {
        match self.is_matrix {
            true => Ok(Reader::new(self.open()?)?.header().field.number()),
            false => Ok(ElementType::F64),
        }
    }

    /// Writes a file with its entries, in little memory: reads it twice, or sorts it into a file in `scratch` first.
    /// `reserve` is called before anything is written.
    ///
    /// # Errors
    /// [`ConvertError`].
    pub fn convert(
        &self,
        plan: TextPlan,
        scratch: Option<&Path>,
        into: &mut File,
        reserve: Reserve<'_>,
    ) -> Result<Survey, ConvertError> {
        match plan.element {
            ElementType::I64 => self.convert_as(plan, i64::wrapping_add, scratch, into, reserve),
            ElementType::U64 => self.convert_as(plan, u64::wrapping_add, scratch, into, reserve),
            ElementType::C64 => self.convert_as(plan, Complex::<f64>::add, scratch, into, reserve),
            _ => self.convert_as(plan, f64::add, scratch, into, reserve),
        }
    }

    fn convert_as<T: Number>(
        &self,
        plan: TextPlan,
        sum: fn(T, T) -> T,
        scratch: Option<&Path>,
        into: &mut File,
        reserve: Reserve<'_>,
    ) -> Result<Survey, ConvertError> {
        let TextPlan { kinds, order, width, .. } = plan;
        let duplicates = Duplicates::Add(sum);
        if self.is_matrix {
            let header = *Reader::new(self.open()?)?.header();
            let extents = vec![Extent::Given(0..header.rows), Extent::Given(0..header.columns)];
            let plan = StoragePlan { kinds, order, extents, width, duplicates };
            converted(&plan, || Ok(Matrix::new(Reader::new(self.open()?)?)), scratch, into, reserve)
        } else {
            let given = |extents: &[u64]| extents.iter().map(|&extent| Extent::Given(0..extent)).collect();
            let extents = self.extents.map_or_else(|| vec![Extent::FromZero; kinds.len()], given);
            let plan = StoragePlan { kinds, order, extents, width, duplicates };
            converted(&plan, || tns::Reader::new(self.open()?), scratch, into, reserve)
        }
    }
}

fn converted<T: Number, S: EntryStream<T>>(
    plan: &StoragePlan<T>,
    open: impl Fn() -> Result<S, ReadError>,
    scratch: Option<&Path>,
    into: &mut File,
    reserve: Reserve<'_>,
) -> Result<Survey, ConvertError> {
    let Some(folder) = scratch else {
        let found = survey(open()?, plan)?;
        reserve(into, &found)?;
        write(&found, open()?, plan, into)?;
        return Ok(found);
    };
    let scratch = tempfile::tempfile_in(folder).map_err(ConvertError::Write)?;
    let mut sorted = sort(open()?, plan, scratch, MEMORY)?;
    let found = survey(sorted.entries().map_err(ConvertError::Write)?, plan)?;
    reserve(into, &found)?;
    write(&found, sorted.entries().map_err(ConvertError::Write)?, plan, into)?;
    Ok(found)
}
