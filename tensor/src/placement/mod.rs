//! Placements of the parts of a tensor on a machine: tensor distribution notation (DISTAL, section 4).
//!
//! `xy -> x` names the dimensions of a tensor, then says for each dimension of the machine's grid what happens along
//! it:
//!
//! | on the right | the grid's dimension |
//! | --- | --- |
//! | a name from the left | cuts this dimension of the tensor into contiguous blocks |
//! | `cyclic(x)`, `cyclic(x, 4)` | deals out its indices in turn, or blocks of 4 indices |
//! | `~x` | cuts what is stored into parts with as many positions each of the level that stores this dimension; where all is stored, these are blocks |
//! | `~f`, after `f :` | cuts what is stored into parts with as many elements each: `xy -> f : ~f` |
//! | a number | holds the tensor at this index only |
//! | `*` | holds copies |
//!
//! So `xy -> xy` tiles a matrix over a grid of two dimensions, `xy -> x` cuts it into blocks of rows, `xy -> xy*` tiles
//! it and copies the tiles along the third dimension, and `xy -> xy0` keeps them on one face. For a machine of several
//! levels there is one statement for each, separated by `;`: the second one distributes the piece that a processor of
//! the first grid holds over the grid inside of it.
//!
//! A dimension of extent n over g processors is cut into blocks of `n / g` rounded up, so the last ones may be smaller,
//! or empty.
//!
//! | in reading order | |
//! | --- | --- |
//! | [`Placement`] | the notation |
//! | [`Placed`] | its meaning for a tensor and a machine: which point holds what |
//! | [`Piece`] | what a point holds |
//! | [`draw()`] | a picture of it |

mod draw;
mod error;
mod parse;
mod piece;
mod placed;
#[cfg(test)]
mod tests;

pub use draw::draw;
pub use error::{ParseError, ParseErrorKind, PlacementError};
pub use piece::Piece;
pub use placed::Placed;

/// A placement of a tensor: a statement for each level of the machine.
///
/// ```
/// use maniple_tensor::placement::{Placed, Placement};
/// use maniple_tensor::rectangle::Rectangle;
///
/// let rows: Placement = "xy -> x".parse()?;
/// let placed = Placed::new(&rows, &Rectangle::whole(&[10, 4]), &"4".parse()?)?;
/// assert_eq!(placed.piece(&[3]).rectangles().collect::<Vec<_>>(), [Rectangle::new([(9, 10), (0, 4)])]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// One statement for each level, the outermost first.
    pub levels: Vec<Distribution>,
}

/// One statement: how a tensor is distributed over one grid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Distribution {
    /// The names of the tensor's dimensions.
    pub dimensions: Vec<String>,
    /// The role of each dimension of the grid.
    pub grid: Vec<Along>,
}

/// The role of a dimension of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Along {
    /// It cuts a dimension of the tensor, given by its number.
    Partition(usize, Cut),
    /// It cuts what is stored into parts with as many elements each.
    Entries,
    /// Only the processors with this index hold something.
    Fixed(usize),
    /// All its processors hold the same.
    Broadcast,
}

/// How a dimension is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Into contiguous blocks of nearly equal size.
    Blocked,
    /// Into blocks of this many indices, which are dealt out in turn.
    Cyclic(usize),
    /// Into parts with as many positions each of the level that stores it. Where all is stored, these are contiguous
    /// blocks.
    Positions,
}
