//! Tensors to test and measure with, made from a seed: sparse ones by a [`Generator`], dense ones of [random
//! elements](RandomElements).
//!
//! Any rows can be made without the others: the nodes of a job make their own, and together they have what one would
//! have made. Rows of a seed are the same on every machine.
//!
//! ```
//! use maniple_tensor::generate::Generator;
//!
//! let poisson: Generator = "poisson:3".parse()?;
//! let dimensions = poisson.dimensions().unwrap_or_default();
//! let entries = poisson.rows::<f64>(&dimensions, 4..5, 0)?;
//! let columns: Vec<_> = entries.iter().map(|(at, value)| (at[1], value)).collect();
//! assert_eq!(columns, [(1, -1.0), (3, -1.0), (4, 4.0), (5, -1.0), (7, -1.0)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod elements;
pub(crate) mod random;
mod rmat;
mod rows;
mod text;

use std::ops::Range;

use crate::element::{Element, ElementType, Scalar};
use crate::notation::cast;
use crate::storage::{DynamicEntries, EntryList};
use crate::with_element;
pub use elements::{RandomElement, RandomElements};
pub use text::ParseError;

/// A kind of sparse tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// Entries at all places with the same probability.
    Uniform {
        /// The probability.
        density: f64,
    },
    /// Rows, and the other coordinates, of very different frequency: a power law.
    Zipf {
        /// How many there are, if they have room.
        entries: i64,
    },
    /// A matrix with so many entries a row, around the diagonal.
    Band {
        /// How many.
        width: i64,
    },
    /// The matrix of the Laplace equation on a grid, a star of five or seven points.
    Poisson {
        /// The unknowns in each dimension of the grid.
        side: i64,
        /// The dimensions of the grid: 2 or 3.
        dimensions: u32,
    },
    /// The matrix of a graph with 2 to the power of `scale` vertices, few of which have many edges.
    Rmat {
        /// The logarithm of the number of vertices.
        scale: u32,
        /// The edges a vertex, of which some are at the same place.
        edges: i64,
    },
    /// A matrix with entries in the first row, the first column and the diagonal.
    Arrow,
    /// So many entries in a tensor of any extents, at most one in a row.
    Hypersparse {
        /// How many.
        entries: i64,
    },
}

/// A tensor that a generator does not make.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{generator} makes {makes}, and no tensor of extents {dimensions:?}")]
pub struct GenerateError {
    /// The generator.
    generator: Generator,
    /// The tensors that the generator makes, in words.
    makes: String,
    /// The extents that were asked for.
    dimensions: Vec<i64>,
}

impl Generator {
    /// The extents of what it makes, if they do not depend on what is asked for.
    pub fn dimensions(&self) -> Option<Vec<i64>> {
        let extent = match self {
            Self::Poisson { side, dimensions } => side.pow(*dimensions),
            Self::Rmat { scale, .. } => 1 << scale,
            _ => return None,
        };
        Some(vec![extent; 2])
    }

    /// About how many entries a tensor of extents `dimensions` has at most.
    pub fn most_entries(&self, dimensions: &[i64]) -> f64 {
        let rows = dimensions.first().map_or(1.0, |&rows| rows as f64);
        match self {
            Self::Uniform { density } => density * dimensions.iter().map(|&extent| extent as f64).product::<f64>(),
            Self::Zipf { entries } | Self::Hypersparse { entries } => *entries as f64,
            Self::Band { width } => rows * *width as f64,
            Self::Poisson { dimensions, .. } => rows * f64::from(2 * dimensions + 1),
            Self::Rmat { scale, edges } => *edges as f64 * 2_f64.powi(*scale as i32),
            Self::Arrow => 3.0 * rows,
        }
    }

    /// The entries of a tensor of extents `dimensions` whose first coordinate is in `rows`, each once, in ascending
    /// order. Values are whole numbers from 1 to 9, where the kind says nothing else.
    ///
    /// # Errors
    ///
    /// [`GenerateError`] if there is no such tensor of these extents.
    pub fn rows<T: Element>(
        &self,
        dimensions: &[i64],
        rows: Range<i64>,
        seed: u64,
    ) -> Result<EntryList<T>, GenerateError> {
        let mut entries = EntryList::new(dimensions.len());
        self.for_each(dimensions, rows, seed, |at, value| entries.push(at, value))?;
        Ok(entries)
    }

    /// The entries of [`rows`](Self::rows), with elements of a type that is known at run time only.
    ///
    /// # Errors
    ///
    /// [`GenerateError`] if there is no such tensor of these extents.
    pub fn dynamic_rows(
        &self,
        element: ElementType,
        dimensions: &[i64],
        rows: Range<i64>,
        seed: u64,
    ) -> Result<DynamicEntries, GenerateError> {
        with_element!(element, T => self.rows::<T>(dimensions, rows, seed).map(DynamicEntries::from))
    }

    /// Visits the same entries, in the same order.
    ///
    /// # Errors
    ///
    /// [`GenerateError`] if there is no such tensor of these extents.
    pub fn for_each<T: Element>(
        &self,
        dimensions: &[i64],
        rows: Range<i64>,
        seed: u64,
        mut visit: impl FnMut(&[i64], T),
    ) -> Result<(), GenerateError> {
        self.check(dimensions)?;
        let rows = rows.start.max(0)..rows.end.min(dimensions[0]);
        if rows.is_empty() || dimensions.contains(&0) {
            return Ok(());
        }
        let mut visit = |at: &[i64], value: f64| {
            // Any type has whole numbers.
            if let Some(value) = T::from_scalar(cast(Scalar::F64(value), T::TYPE)) {
                visit(at, value);
            }
        };
        match self {
            Self::Uniform { density } => rows::uniform(*density, dimensions, rows, seed, &mut visit),
            Self::Zipf { entries } => rows::zipf(*entries, dimensions, rows, seed, &mut visit),
            Self::Band { width } => rows::band(*width, dimensions, rows, seed, &mut visit),
            Self::Poisson { side, dimensions } => rows::poisson(*side, *dimensions, rows, &mut visit),
            Self::Arrow => rows::arrow(dimensions, rows, seed, &mut visit),
            Self::Hypersparse { entries } => rows::hypersparse(*entries, dimensions, rows, seed, &mut visit),
            Self::Rmat { scale, edges } => {
                for at in rmat::places(*scale, (*edges as u64) << scale, rows, seed) {
                    visit(&at, random::Random::of(seed, &at).value());
                }
            }
        }
        Ok(())
    }

    /// Checks that there is a tensor of these extents.
    ///
    /// # Errors
    ///
    /// [`GenerateError`] if there is none.
    pub fn check(&self, dimensions: &[i64]) -> Result<(), GenerateError> {
        let refuse =
            |makes: String| Err(GenerateError { generator: self.clone(), makes, dimensions: dimensions.to_vec() });
        let is_countable =
            |extents: &[i64]| extents.iter().try_fold(1_i64, |all, &extent| all.checked_mul(extent)).is_some();
        match (self, self.dimensions()) {
            _ if dimensions.is_empty() || dimensions.iter().any(|extent| *extent < 0) => {
                refuse("tensors of one dimension or more, none negative".to_owned())
            }
            (_, Some(own)) if own != dimensions => refuse(format!("a matrix of extents {own:?}")),
            (Self::Band { .. } | Self::Arrow, _) if dimensions.len() != 2 => refuse("matrices".to_owned()),
            (Self::Uniform { .. }, _) if !is_countable(&dimensions[1..]) => {
                refuse("rows of up to 2^63 places".to_owned())
            }
            _ => Ok(()),
        }
    }
}
