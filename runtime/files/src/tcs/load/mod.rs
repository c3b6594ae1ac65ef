//! A tensor in a file as blocks, by many that each read a part of it (Shinde 2019, *SuperTaco*, section 4.4). All
//! functions here are pure: what runs where, and how results get from one to the other, is up to the caller.
//!
//! 1. [`Finder::end_of_piece`] finds, for each piece, where it ends, so that pieces have equally many bytes.
//! 2. [`count`] goes through a [`Piece`] and counts the entries of each block, as [`Splits`] say; [`merge`] makes a
//!    [`BlockPlan`] for each block of what all pieces have counted.
//! 3. [`write()`] goes through a piece again and writes sections of the arrays of each block.
//! 4. [`assemble`] joins the sections of a block: the same bytes as if its entries had been written one after the
//!    other.
//!
//! ```
//! use maniple_files::tcs::load::{Finder, Piece, Splits, assemble, count, merge, write};
//! use maniple_files::tcs::{Arrays, Level, TcsHeader, TcsLevelKind, Tensor, Width};
//!
//! // A vector of six coordinates as two blocks, read in three pieces.
//! let arrays = vec![Arrays { pos: vec![0, 4], idx: vec![0, 2, 3, 5] }];
//! let levels = vec![Level::new(TcsLevelKind::Sparse, 0, 6)];
//! let vector = Tensor { levels, arrays, values: vec![1.5, 2.5, 3.5, 4.5] };
//! let mut file = Vec::new();
//! vector.write(Width::Eight, &mut file)?;
//!
//! let header = TcsHeader::read(&file)?;
//! let splits = Splits::none(&[0..6]).into_equal(0, 2);
//! let mut finder = Finder::new(&file, &header);
//! let places = (0..=3).map(|piece| finder.end_of_piece(piece, 3)).collect::<Result<Vec<_>, _>>()?;
//! let piece = |number: usize| Piece::new(&file, &header, &places[number].positions..&places[number + 1].positions, &splits);
//! let counted = (0..3).map(|number| count::<f64>(piece(number), &header.levels)).collect::<Result<Vec<_>, _>>()?;
//! let plans = merge(&header, &splits, &counted)?;
//! let mut sections = Vec::new();
//! for number in 0..3 {
//!     // All that pieces have of the second block.
//!     sections.extend(write::<f64>(piece(number), number, &plans)?.remove(&[1][..]));
//! }
//! let mut block = std::io::Cursor::new(Vec::new());
//! assemble::<f64, _>(&plans[&[1][..]].header, &sections, &mut block)?;
//! let block = Tensor::<f64>::read(&block.into_inner())?;
//! assert_eq!((block.levels[0].range.clone(), block.values), (3..6, vec![3.5, 4.5]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | `position` | places: the nodes that an element belongs to, and the bytes before it |
//! | `search` | the place where a piece ends |
//! | `splits` | ranges of coordinates |
//! | `iterate` | entries between two places |
//! | `blocks` | what a piece has of each block |
//! | `assemble` | sections of a block to the block |
//! | `section` | pieces as they are in the file, for tensors that are kept as one |

mod assemble;
mod blocks;
mod iterate;
mod position;
mod search;
mod section;
mod splits;

pub use assemble::assemble;
pub use blocks::{Block, BlockPart, BlockPlan, bounds, count, merge, merge_all, write};
pub use iterate::{Found, Piece, SortedEntries};
pub use position::Finder;
pub use search::{Cut, search};
pub use section::{Pieces, Values, check_gaps, check_piece, read_numbers};
pub use splits::{SplitError, Splits};
