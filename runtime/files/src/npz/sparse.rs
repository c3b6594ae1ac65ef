//! Sparse arrays, as their files store them.

use super::archive::wrong;
use super::array::{ArrayValues, each};
use crate::error::{Problem, ReadError};

/// The places of the elements of a sparse array.
#[derive(Clone, Debug, PartialEq)]
pub enum Structure {
    /// For each dimension, the coordinate of each element, in any order (`coo`).
    Coordinates(Vec<Vec<i64>>),
    /// Compressed rows or columns (`csr`, `csc`), and arrays whose dimensions are taken together into rows and columns
    /// (`gcxs`): the elements of row `r` are those from `starts[r]` to `starts[r + 1]` (excluded).
    Compressed {
        /// The dimensions that make up a row; the others, in ascending order, make up a column.
        rows: Vec<usize>,
        /// The number of the element at which each row begins; at the end, the number of elements.
        starts: Vec<i64>,
        /// The column of each element.
        columns: Vec<i64>,
    },
    /// Compressed rows of dense blocks (`bsr`), which are stored by rows.
    Blocks {
        /// The extents of a block.
        size: [u64; 2],
        /// The number of the block at which each row of blocks begins; at the end, the number of blocks.
        starts: Vec<i64>,
        /// The column of each block.
        columns: Vec<i64>,
    },
    /// Diagonals (`dia`): element `(d, j)` is in column `j`, and in row `j - offsets[d]` if there is one.
    Diagonals {
        /// Which diagonals are stored.
        offsets: Vec<i64>,
        /// The elements stored of each.
        length: u64,
    },
}

/// The form of a [`Structure`], before its arrays are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Coordinates,
    Compressed { rows: Vec<usize> },
    Blocks { size: [u64; 2] },
    Diagonals { length: u64 },
}

/// How many numbers arrays have.
pub(crate) struct Lengths {
    /// The starts of rows; 0 if they are not stored.
    pub(crate) starts: u64,
    /// Coordinates, columns or offsets, in each of their arrays.
    pub(crate) indices: Vec<u64>,
    pub(crate) values: u64,
}

impl Structure {
    fn form(&self) -> Form {
        match self {
            Self::Coordinates(_) => Form::Coordinates,
            Self::Compressed { rows, .. } => Form::Compressed { rows: rows.clone() },
            Self::Blocks { size, .. } => Form::Blocks { size: *size },
            Self::Diagonals { length, .. } => Form::Diagonals { length: *length },
        }
    }

    fn lengths(&self, values: usize) -> Lengths {
        let (starts, indices) = match self {
            Self::Coordinates(all) => (0, all.iter().map(Vec::len).collect()),
            Self::Compressed { starts, columns, .. } | Self::Blocks { starts, columns, .. } => {
                (starts.len(), vec![columns.len()])
            }
            Self::Diagonals { offsets, .. } => (0, vec![offsets.len()]),
        };
        let indices = indices.into_iter().map(|length: usize| length as u64).collect();
        Lengths { starts: starts as u64, indices, values: values as u64 }
    }
}

impl Form {
    /// The dimensions that do not make up a row of compressed ones.
    pub(crate) fn inner(&self, dimensions: usize) -> Vec<usize> {
        let rows = if let Self::Compressed { rows } = self { &rows[..] } else { &[] };
        (0..dimensions).filter(|dimension| !rows.contains(dimension)).collect()
    }

    /// Of each array of indices, what they must be less than; of diagonals nothing.
    pub(crate) fn extents(&self, shape: &[u64]) -> Vec<u64> {
        match self {
            Self::Coordinates => shape.to_vec(),
            Self::Compressed { .. } => vec![extent_of(&self.inner(shape.len()), shape)],
            Self::Blocks { size } => vec![shape[1] / size[1]],
            Self::Diagonals { .. } => Vec::new(),
        }
    }

    /// How many rows there are of compressed ones, or of blocks.
    pub(crate) fn rows(&self, shape: &[u64]) -> u64 {
        match self {
            Self::Compressed { rows } => {
                let is_row = |dimension: &usize| rows.contains(dimension);
                extent_of(&(0..shape.len()).filter(is_row).collect::<Vec<_>>(), shape)
            }
            Self::Blocks { size } => shape[0] / size[0],
            Self::Coordinates | Self::Diagonals { .. } => 0,
        }
    }

    /// Checks what can be without reading arrays.
    pub(crate) fn check(&self, shape: &[u64], lengths: &Lengths) -> Result<(), String> {
        if shape.len() > MOST_DIMENSIONS {
            return Err(format!("its shape has {} dimensions, and may have {MOST_DIMENSIONS}", shape.len()));
        }
        if product(shape.iter().map(|&extent| extent.max(1))).is_none() {
            return Err(format!("its shape is {shape:?}, which is too large"));
        }
        let (count, of_indices) = (lengths.values, lengths.indices.first().copied().unwrap_or(0));
        let elements = |name: &str, found: u64| match found == count {
            true => Ok(()),
            false => {
                Err(format!("'{name}' has {found} numbers, and there are {count} elements: expected one for each"))
            }
        };
        let is_matrix = || match shape.len() {
            2 => Ok(()),
            found => Err(format!("its shape has {found} dimensions, and must have 2")),
        };
        match self {
            Self::Coordinates => {
                if lengths.indices.len() != shape.len() {
                    let (found, expected) = (lengths.indices.len(), shape.len());
                    return Err(format!("it has coordinates of {found} dimensions, and its shape has {expected}"));
                }
                let mut all = lengths.indices.iter().enumerate();
                return all.try_for_each(|(dimension, &found)| match found == count {
                    true => Ok(()),
                    false => Err(format!(
                        "it has {found} {}, and there are {count} elements: expected one for each",
                        coordinates_of(dimension)
                    )),
                });
            }
            Self::Compressed { rows } => {
                elements("indices", of_indices)?;
                let is_row = |dimension: &usize| rows.contains(dimension);
                if rows.len() > shape.len()
                    || rows.iter().any(|dimension| *dimension >= shape.len())
                    || rows.len() != (0..shape.len()).filter(is_row).count()
                {
                    let (found, most) = (crate::text::shown(format!("{rows:?}")), shape.len().saturating_sub(1));
                    return Err(format!("its compressed axes are {found}, and must be some of 0 to {most}, each once"));
                }
            }
            Self::Blocks { size } => {
                is_matrix()?;
                let ([rows, columns], [height, width]) = ([shape[0], shape[1]], *size);
                if !size.iter().zip(shape).all(|(&size, &extent)| size > 0 && extent % size == 0) {
                    return Err(format!("blocks of {height} x {width} do not fill a matrix of {rows} x {columns}"));
                }
                if product([of_indices, height, width]) != Some(count) {
                    return Err(format!(
                        "'indices' has {of_indices} numbers for blocks of {height} x {width}, and there are {count} elements"
                    ));
                }
            }
            Self::Diagonals { length } => {
                is_matrix()?;
                if product([of_indices, *length]) != Some(count) {
                    return Err(format!(
                        "'offsets' has {of_indices} numbers, and there are {count} elements of diagonals of {length}"
                    ));
                }
                return Ok(());
            }
        }
        match (lengths.starts, self.rows(shape) + 1) {
            (found, expected) if found != expected => {
                Err(format!("'indptr' has {found} numbers, and must have {expected}"))
            }
            _ => Ok(()),
        }
    }
}

/// As many dimensions as NumPy has.
const MOST_DIMENSIONS: usize = 64;

/// The number of coordinates of some dimensions that are taken together.
fn extent_of(dimensions: &[usize], shape: &[u64]) -> u64 {
    product(dimensions.iter().map(|&dimension| shape[dimension])).unwrap_or(0)
}

/// The name of the coordinates of a dimension in messages.
pub(crate) fn coordinates_of(dimension: usize) -> String {
    format!("coordinates of dimension {dimension}")
}

/// A sparse array, whose structure was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse {
    shape: Vec<u64>,
    structure: Structure,
    values: ArrayValues,
    fill: ArrayValues,
}

/// The product of some extents, if it can be counted.
fn product(extents: impl IntoIterator<Item = u64>) -> Option<u64> {
    extents.into_iter().try_fold(1_u64, u64::checked_mul).filter(|product| i64::try_from(*product).is_ok())
}

impl Sparse {
    /// A sparse array of these parts. `fill` is the value of what is not stored; none is zero.
    ///
    /// # Errors
    /// [`Problem::Malformed`] if an index leads outside, indices and elements differ in number, or rows do not ascend.
    pub fn new(
        shape: Vec<u64>,
        structure: Structure,
        values: ArrayValues,
        fill: Option<ArrayValues>,
    ) -> Result<Self, ReadError> {
        let fill = fill.unwrap_or_else(|| ArrayValues::zero(values.number()));
        let sparse = Self { shape, structure, values, fill };
        sparse.check().map_err(|reason| wrong(Problem::Malformed(reason)))?;
        Ok(sparse)
    }

    /// The extent of each dimension.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The places of the elements.
    #[must_use]
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// The elements.
    #[must_use]
    pub fn values(&self) -> &ArrayValues {
        &self.values
    }

    /// The value of what is not stored, once.
    #[must_use]
    pub fn fill(&self) -> &ArrayValues {
        &self.fill
    }

    fn check(&self) -> Result<(), String> {
        if self.values.number().is_none() || self.fill.number() != self.values.number() || self.fill.len() != 1 {
            return Err("its elements and its fill value must be numbers of one type".to_owned());
        }
        let form = self.structure.form();
        form.check(&self.shape, &self.structure.lengths(self.values.len()))?;
        let extents = form.extents(&self.shape);
        match &self.structure {
            Structure::Coordinates(all) => all
                .iter()
                .zip(extents)
                .enumerate()
                .try_for_each(|(dimension, (all, extent))| within(&coordinates_of(dimension), all, extent)),
            Structure::Compressed { starts, columns, .. } | Structure::Blocks { starts, columns, .. } => {
                let (first, end) = (starts.first().copied().unwrap_or(0), starts.last().copied().unwrap_or(0));
                check_ends(first, end, columns.len() as u64)?;
                ascending(starts)?;
                within("indices", columns, extents[0])
            }
            Structure::Diagonals { offsets, .. } => apart_from_each_other(offsets),
        }
    }

    /// For each dimension, the coordinates of all entries, and the place of the element of each, in the order in which
    /// [`for_each`](Self::for_each) visits them.
    #[must_use]
    pub fn entries(&self) -> (Vec<Vec<i64>>, Vec<usize>) {
        let (mut coordinates, mut places) = (vec![Vec::new(); self.shape.len()], Vec::new());
        self.for_each(|at, place| {
            coordinates.iter_mut().zip(at).for_each(|(all, &at)| all.push(at as i64));
            places.push(place);
        });
        (coordinates, places)
    }

    /// Visits the coordinates of all entries, each with the place of its element in [`values`](Self::values), in the
    /// order of the file. Zeros of blocks and of diagonals are no entries, nor is what a diagonal has outside of the
    /// matrix.
    pub fn for_each(&self, mut visit: impl FnMut(&[u64], usize)) {
        let mut at = vec![0; self.shape.len()];
        let row_of = |starts: &[i64], row: usize| starts[row] as usize..starts[row + 1] as usize;
        match &self.structure {
            Structure::Coordinates(all) => {
                for place in 0..self.values.len() {
                    at.iter_mut().zip(all).for_each(|(at, all)| *at = all[place] as u64);
                    visit(&at, place);
                }
            }
            Structure::Compressed { rows, starts, columns } => {
                let inner = self.structure.form().inner(self.shape.len());
                for row in 0..starts.len() - 1 {
                    apart(row as u64, rows, &self.shape, &mut at);
                    for place in row_of(starts, row) {
                        apart(columns[place] as u64, &inner, &self.shape, &mut at);
                        visit(&at, place);
                    }
                }
            }
            Structure::Blocks { size, starts, columns } => {
                let each = (size[0] * size[1]) as usize;
                for (row, block) in
                    (0..starts.len() - 1).flat_map(|row| row_of(starts, row).map(move |block| (row, block)))
                {
                    for place in (block * each..(block + 1) * each).filter(|&place| !self.values.is_zero(place)) {
                        let within = (place - block * each) as u64;
                        at[0] = row as u64 * size[0] + within / size[1];
                        at[1] = columns[block] as u64 * size[1] + within % size[1];
                        visit(&at, place);
                    }
                }
            }
            Structure::Diagonals { offsets, length } => {
                for (diagonal, &offset) in offsets.iter().enumerate() {
                    for column in 0..(*length).min(self.shape[1]) {
                        let place = diagonal * *length as usize + column as usize;
                        let row = (column as i64).checked_sub(offset).and_then(|row| u64::try_from(row).ok());
                        if let Some(row) = row.filter(|row| *row < self.shape[0] && !self.values.is_zero(place)) {
                            at.copy_from_slice(&[row, column]);
                            visit(&at, place);
                        }
                    }
                }
            }
        }
    }

    /// The number of elements that are stored, whatever they are.
    #[must_use]
    pub fn stored(&self) -> usize {
        each!(&self.values, elements => elements.len(), 0)
    }
}

/// Takes a number apart into the coordinates of some dimensions, the last of which varies fastest.
pub(crate) fn apart(mut number: u64, dimensions: &[usize], shape: &[u64], at: &mut [u64]) {
    for &dimension in dimensions.iter().rev() {
        at[dimension] = number % shape[dimension].max(1);
        number /= shape[dimension].max(1);
    }
}

pub(crate) fn within(name: &str, indices: &[i64], extent: u64) -> Result<(), String> {
    match indices.iter().find(|index| **index < 0 || **index as u64 >= extent) {
        None => Ok(()),
        Some(index) => {
            Err(format!("'{name}' has the number {index}, and must have numbers from 0 on that are less than {extent}"))
        }
    }
}

/// Checks where the first row begins, and where the last one ends.
pub(crate) fn check_ends(first: i64, end: i64, count: u64) -> Result<(), String> {
    match first == 0 && end as u64 == count {
        true => Ok(()),
        false => Err(format!("'indptr' goes from {first} to {end}, and must go from 0 to {count}")),
    }
}

pub(crate) fn ascending(starts: &[i64]) -> Result<(), String> {
    match starts.windows(2).find(|pair| pair[0] > pair[1]) {
        None => Ok(()),
        Some(pair) => Err(format!("'indptr' has {} after {}, and must not descend", pair[1], pair[0])),
    }
}

pub(crate) fn apart_from_each_other(offsets: &[i64]) -> Result<(), String> {
    let mut sorted = offsets.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("'offsets' has the diagonal {} twice", pair[0])),
        None => Ok(()),
    }
}
