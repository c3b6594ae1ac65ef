//! Levels: how the coordinates of one dimension, or of a part of one, are stored below those of others.
//!
//! A tensor is a tree: each level has positions, and for each of them children in the next level; the positions of the
//! last level are those of the elements. Kinds of levels differ in what they store and in what they can do (Chou,
//! Kjolstad, Amarasinghe, *Format abstraction for sparse tensor algebra compilers*, OOPSLA 2018). Each kind is one
//! file.
//!
//! To add a kind: a file with a type that implements [`LevelKind`], and its line in the list below, which makes it part
//! of formats, packing, conversions and their random tests.
//!
//! | in reading order | |
//! | --- | --- |
//! | `width`, `array` | arrays of whole numbers of a [`Width`] |
//! | `kind` | [`LevelKind`]: what a kind of level is; [`LevelData`]: a level in memory |
//! | `dense`, `compressed`, `singleton`, `bitmap`, `hashed`, `range`, `counter`, `run_length` | the kinds |

mod array;
mod error;
mod kind;
mod width;

pub use array::{Array, filled, room, with_numbers};
pub use compressed::positions;
pub use error::LevelError;
pub use kind::{
    Assemble, Capabilities, Component, Entries, LevelData, LevelKind, Line, Locate, Per, Place, Properties, Stored,
};
pub use width::Width;

/// The list of all kinds: the file of each, its type there, and what it is.
macro_rules! levels {
    ($($file:ident::$kind:ident $help:literal),* $(,)?) => {
        $(mod $file;)*

        /// How one level is stored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Level {
            $(#[doc = $help] $kind),*
        }

        impl Level {
            /// All kinds of levels.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// The implementation of levels of this kind.
            pub fn kind(self) -> &'static dyn LevelKind {
                match self {
                    $(Self::$kind => &$file::$kind),*
                }
            }

            /// A description of the kind, in a few words.
            pub fn help(self) -> &'static str {
                match self {
                    $(Self::$kind => $help),*
                }
            }
        }
    };
}

levels! {
    dense::Dense "All coordinates, one after the other.",
    compressed::Compressed "The coordinates that are there, for each parent: segments of an array of coordinates.",
    singleton::Singleton "One coordinate for each parent.",
    bitmap::Bitmap "A bit for every coordinate, which says whether it is there.",
    hashed::Hashed "A hash table of the coordinates that are there, for each parent.",
    range::Range "The coordinates along a diagonal.",
    counter::Counter "As many coordinates for each parent as the fullest one has.",
    run_length::RunLength "All coordinates; neighbours with the same element share a position.",
}
