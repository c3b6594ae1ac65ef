//! Machines, as tensors see them: grids of abstract processors, and grids of grids.

use std::fmt;
use std::str::FromStr;

/// A grid of processors, each with a memory of its own.
///
/// ```
/// use maniple_tensor::machine::Grid;
///
/// let grid: Grid = "2x3".parse()?;
/// assert_eq!(grid.extents(), [2, 3]);
/// assert_eq!(grid.points().nth(4), Some(vec![1, 1]));
/// assert_eq!(grid.number(&[1, 1]), Some(4));
/// # Ok::<(), maniple_tensor::machine::MachineError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    extents: Vec<usize>,
}

/// Processors that may be machines themselves: a grid of nodes, then a grid of processors in each node, and so on.
///
/// A point of the machine is a point of each grid, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    levels: Vec<Grid>,
}

/// A machine that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// No processor at all.
    #[error("a grid needs an extent of at least 1 in each dimension, and {0:?} is none")]
    Empty(Vec<usize>),
    /// More processors than can be counted.
    #[error("a machine of {0:?} has too many processors")]
    Large(Vec<usize>),
    /// A machine without grids.
    #[error("a machine needs at least one grid")]
    NoLevel,
    /// Not the text of a machine.
    #[error(
        "`{0}` is no machine: expected extents of at least 1, such as `4`, `2x3`, or `2x2/4` for a grid of 4 in each processor of a grid of 2 times 2"
    )]
    Text(String),
}

impl Grid {
    /// A grid of `extents`. No extent makes a grid of one processor.
    ///
    /// # Errors
    ///
    /// [`MachineError::Empty`], [`MachineError::Large`].
    pub fn new(extents: impl Into<Vec<usize>>) -> Result<Self, MachineError> {
        let extents = extents.into();
        if extents.contains(&0) {
            return Err(MachineError::Empty(extents));
        }
        match extents.iter().try_fold(1_usize, |size, extent| size.checked_mul(*extent)) {
            Some(size) if size <= isize::MAX as usize => Ok(Self { extents }),
            _ => Err(MachineError::Large(extents)),
        }
    }

    /// How many processors there are in each dimension.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// How many dimensions there are.
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// How many processors there are.
    pub fn size(&self) -> usize {
        self.extents.iter().product()
    }

    /// All points, the last dimension running fastest.
    pub fn points(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        (0..self.size()).map(|number| self.point(number))
    }

    /// The number of a point in [`points`](Self::points), if it is one.
    pub fn number(&self, point: &[usize]) -> Option<usize> {
        let inside =
            point.len() == self.rank() && point.iter().zip(&self.extents).all(|(index, extent)| index < extent);
        inside.then(|| point.iter().zip(&self.extents).fold(0, |number, (index, extent)| number * extent + index))
    }

    fn point(&self, mut number: usize) -> Vec<usize> {
        let mut point = vec![0; self.rank()];
        for (index, extent) in point.iter_mut().zip(&self.extents).rev() {
            *index = number % extent;
            number /= extent;
        }
        point
    }
}

impl Machine {
    /// A machine of grids, the outermost first.
    ///
    /// # Errors
    ///
    /// [`MachineError::NoLevel`], [`MachineError::Large`].
    pub fn new(levels: impl Into<Vec<Grid>>) -> Result<Self, MachineError> {
        let levels = levels.into();
        if levels.is_empty() {
            return Err(MachineError::NoLevel);
        }
        let extents: Vec<usize> = levels.iter().flat_map(|grid| grid.extents.clone()).collect();
        Grid::new(extents)?;
        Ok(Self { levels })
    }

    /// The grids, the outermost first.
    pub fn levels(&self) -> &[Grid] {
        &self.levels
    }

    /// The extents of all grids, one after the other.
    pub fn extents(&self) -> Vec<usize> {
        self.levels.iter().flat_map(|grid| grid.extents.iter().copied()).collect()
    }

    /// How many processors there are.
    pub fn size(&self) -> usize {
        self.levels.iter().map(Grid::size).product()
    }

    /// All points; processors of one node follow each other.
    pub fn points(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        let all = Grid { extents: self.extents() };
        (0..self.size()).map(move |number| all.point(number))
    }

    /// The point with a number.
    pub(crate) fn point(&self, number: usize) -> Vec<usize> {
        Grid { extents: self.extents() }.point(number)
    }

    /// The number of a point in [`points`](Self::points), if it is one. Placements and computations number processors
    /// alike, by this.
    pub fn number(&self, point: &[usize]) -> Option<usize> {
        Grid { extents: self.extents() }.number(point)
    }
}

impl From<Grid> for Machine {
    fn from(grid: Grid) -> Self {
        Self { levels: vec![grid] }
    }
}

impl FromStr for Grid {
    type Err = MachineError;

    /// Reads `2x3`.
    fn from_str(text: &str) -> Result<Self, MachineError> {
        let wrong = |_| MachineError::Text(text.to_owned());
        let extents: Result<Vec<usize>, _> = text.split('x').map(|extent| extent.trim().parse()).collect();
        Self::new(extents.map_err(wrong)?)
    }
}

impl FromStr for Machine {
    type Err = MachineError;

    /// Reads `2x3`, or `2x3/4` for a machine of two levels.
    fn from_str(text: &str) -> Result<Self, MachineError> {
        Self::new(text.split('/').map(Grid::from_str).collect::<Result<Vec<_>, _>>()?)
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents: Vec<String> = self.extents.iter().map(ToString::to_string).collect();
        formatter.write_str(if extents.is_empty() { "1".to_owned() } else { extents.join("x") }.as_str())
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels: Vec<String> = self.levels.iter().map(ToString::to_string).collect();
        formatter.write_str(&levels.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_and_machines_are_read_as_they_are_written() {
        for text in ["1", "4", "2x3", "2x3x4x5x6", "2x2/4", "2/3x1/2"] {
            assert_eq!(text.parse::<Machine>().expect("a machine").to_string(), text);
        }
        for text in ["", "x", "2x", "-1", "2*2", "2//2", "2x2/"] {
            assert!(matches!(text.parse::<Machine>(), Err(MachineError::Text(_))), "{text}");
        }
        assert_eq!("2x0".parse::<Grid>(), Err(MachineError::Empty(vec![2, 0])));
        let large = format!("{0}x{0}/{0}", 1_u64 << 31);
        assert!(matches!(large.parse::<Machine>(), Err(MachineError::Large(_))));
    }

    #[test]
    fn points_are_numbered_as_they_come() {
        let machine: Machine = "2x3/2".parse().expect("a machine");
        assert_eq!(machine.size(), 12);
        for (number, point) in machine.points().enumerate() {
            assert_eq!(machine.number(&point), Some(number));
        }
        assert_eq!(machine.points().nth(7), Some(vec![1, 0, 1]));
        assert_eq!(machine.number(&[2, 0, 0]), None);
        assert_eq!(machine.number(&[0, 0]), None);
    }
}
