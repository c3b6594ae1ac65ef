//! Sparse arrays, as their files store them.

use super::archive::wrong;
use super::array::{Values, each};
use crate::error::{Problem, ReadError};

/// Where the elements of a sparse array are.
#[derive(Clone, Debug, PartialEq)]
pub enum Structure {
    /// For each dimension, the coordinate of each element, in any order (`coo`).
    Coordinates(Vec<Vec<i64>>),
    /// Compressed rows or columns (`csr`, `csc`), and arrays whose dimensions are taken together into rows and columns (`gcxs`): the elements of row `r` are those from `starts[r]` to
    /// `starts[r + 1]` (excluded).
    Compressed {
        /// The dimensions that make up a row; the others, in ascending order, make up a column.
        rows: Vec<usize>,
        /// Where rows begin.
        starts: Vec<i64>,
        /// The column of each element.
        columns: Vec<i64>,
    },
    /// Compressed rows of dense blocks (`bsr`), which are stored by rows.
    Blocks {
        /// The extents of a block.
        size: [u64; 2],
        /// Where rows of blocks begin.
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

/// A sparse array, whose structure was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse {
    shape: Vec<u64>,
    structure: Structure,
    values: Values,
    fill: Values,
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
    pub fn new(shape: Vec<u64>, structure: Structure, values: Values, fill: Option<Values>) -> Result<Self, ReadError> {
        let fill = fill.unwrap_or_else(|| Values::zero(values.number()));
        let sparse = Self { shape, structure, values, fill };
        sparse.check().map_err(|reason| wrong(Problem::Malformed(reason)))?;
        Ok(sparse)
    }

    /// The extent of each dimension.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Where the elements are.
    #[must_use]
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// The elements.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The value of what is not stored, once.
    #[must_use]
    pub fn fill(&self) -> &Values {
        &self.fill
    }

    fn check(&self) -> Result<(), String> {
        let (shape, count) = (&self.shape, self.values.len());
        if product(shape.iter().map(|&extent| extent.max(1))).is_none() {
            return Err(format!("its shape is {shape:?}, which is too large"));
        }
        if self.values.number().is_none() || self.fill.number() != self.values.number() || self.fill.len() != 1 {
            return Err("its elements and its fill value must be numbers of one type".to_owned());
        }
        let elements = |name: &str, found: usize| match found == count {
            true => Ok(()),
            false => {
                Err(format!("'{name}' has {found} numbers, and there are {count} elements: expected one for each"))
            }
        };
        let is_matrix = || match shape.len() {
            2 => Ok(()),
            found => Err(format!("its shape has {found} dimensions, and must have 2")),
        };
        match &self.structure {
            Structure::Coordinates(all) => {
                if all.len() != shape.len() {
                    return Err(format!(
                        "it has coordinates of {} dimensions, and its shape has {}",
                        all.len(),
                        shape.len()
                    ));
                }
                all.iter().zip(shape).enumerate().try_for_each(|(dimension, (all, &extent))| {
                    elements("coords", all.len())?;
                    within(&format!("coordinates of dimension {dimension}"), all, extent)
                })
            }
            Structure::Compressed { rows, starts, columns } => {
                elements("indices", columns.len())?;
                let is_row = |dimension: &usize| rows.contains(dimension);
                if rows.iter().any(|dimension| *dimension >= shape.len())
                    || rows.len() != (0..shape.len()).filter(is_row).count()
                {
                    return Err(format!(
                        "its compressed axes are {rows:?}, and must be some of 0 to {}, each once",
                        shape.len()
                    ));
                }
                let (inner, outer): (Vec<usize>, Vec<usize>) =
                    (0..shape.len()).partition(|dimension| !is_row(dimension));
                let of =
                    |dimensions: &[usize]| product(dimensions.iter().map(|&dimension| shape[dimension])).unwrap_or(0);
                ascending(starts, of(&outer), count as u64)?;
                within("indices", columns, of(&inner))
            }
            Structure::Blocks { size, starts, columns } => {
                is_matrix()?;
                let whole = size.iter().zip(shape).all(|(&size, &extent)| size > 0 && extent % size == 0);
                if !whole {
                    return Err(format!(
                        "blocks of {} x {} do not fill a matrix of {} x {}",
                        size[0], size[1], shape[0], shape[1]
                    ));
                }
                let blocks = product([columns.len() as u64, size[0], size[1]]);
                if blocks != Some(count as u64) {
                    return Err(format!(
                        "'indices' has {} numbers for blocks of {} x {}, and there are {count} elements",
                        columns.len(),
                        size[0],
                        size[1]
                    ));
                }
                ascending(starts, shape[0] / size[0], columns.len() as u64)?;
                within("indices", columns, shape[1] / size[1])
            }
            Structure::Diagonals { offsets, length } => {
                is_matrix()?;
                if product([offsets.len() as u64, *length]) != Some(count as u64) {
                    return Err(format!(
                        "'offsets' has {} numbers, and there are {count} elements of diagonals of {length}",
                        offsets.len()
                    ));
                }
                let mut sorted = offsets.clone();
                sorted.sort_unstable();
                match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                    Some(pair) => Err(format!("'offsets' has the diagonal {} twice", pair[0])),
                    None => Ok(()),
                }
            }
        }
    }

    /// Visits the coordinates of all entries, each with the place of its element in [`values`](Self::values), in the order of the file. Zeros of blocks and of diagonals are no entries, nor
    /// is what a diagonal has outside of the matrix.
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
                let inner: Vec<usize> = (0..self.shape.len()).filter(|dimension| !rows.contains(dimension)).collect();
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
fn apart(mut number: u64, dimensions: &[usize], shape: &[u64], at: &mut [u64]) {
    for &dimension in dimensions.iter().rev() {
        at[dimension] = number % shape[dimension].max(1);
        number /= shape[dimension].max(1);
    }
}

fn within(name: &str, indices: &[i64], extent: u64) -> Result<(), String> {
    match indices.iter().find(|index| **index < 0 || **index as u64 >= extent) {
        None => Ok(()),
        Some(index) => {
            Err(format!("'{name}' has the number {index}, and must have numbers from 0 on that are less than {extent}"))
        }
    }
}

fn ascending(starts: &[i64], rows: u64, count: u64) -> Result<(), String> {
    if starts.len() as u64 != rows + 1 {
        return Err(format!("'indptr' has {} numbers, and must have {}", starts.len(), rows + 1));
    }
    if starts[0] != 0 || starts[rows as usize] as u64 != count {
        return Err(format!(
            "'indptr' goes from {} to {}, and must go from 0 to {count}",
            starts[0], starts[rows as usize]
        ));
    }
    match starts.windows(2).find(|pair| pair[0] > pair[1]) {
        None => Ok(()),
        Some(pair) => Err(format!("'indptr' has {} after {}, and must not descend", pair[1], pair[0])),
    }
}
