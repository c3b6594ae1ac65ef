//! Figures of files of tensors: the times to read, write and convert them, and to compute with them in blocks.
//!
//! [`matrix`]: the file that is read; [`levels`]: `.tcs` files, beside the time in which the system reads and writes as
//! many bytes; [`text`]: text and archives, beside SciPy and NumPy; [`blocks`]: statements in more blocks, and on more
//! workers.

pub mod blocks;
pub mod levels;
pub mod matrix;
pub mod text;

use std::path::PathBuf;

use crate::error::Result;
use crate::targets::findings::Row;
use crate::toolbox::Toolbox;

/// Figures that are measured together.
pub struct Figures {
    /// How it is asked for.
    pub name: &'static str,
    /// The quantity that is measured, and its rival.
    pub about: &'static str,
    /// Measures it.
    pub measure: fn(&Stage) -> Result<Vec<Row>>,
}

/// All figures.
pub static FIGURES: &[Figures] = &[
    Figures {
        name: "load",
        about: "a .tcs file read by the tasks of one process, beside cat; and the memory of each of two",
        measure: levels::load,
    },
    Figures { name: "store", about: "a .tcs file written by tasks, beside plain writes", measure: levels::store },
    Figures { name: "convert", about: "text to a .tcs file, on one core", measure: text::convert },
    Figures { name: "text", about: "Matrix Market files read and written, beside SciPy", measure: text::matrix_market },
    Figures { name: "archive", about: "a .npz file read, beside NumPy", measure: text::archive },
    Figures { name: "splits", about: "sums in 10 and 20 blocks, beside one", measure: blocks::sums },
    Figures { name: "workers", about: "a product in 8 blocks on two workers, beside one", measure: blocks::workers },
];

/// The setting in which figures are measured.
#[derive(Debug)]
pub struct Stage {
    /// The rivals, and how many cores may be used.
    pub toolbox: Toolbox,
    /// The program of this package that runs as several nodes.
    pub ours: PathBuf,
    /// The folder in which files are made.
    pub folder: PathBuf,
    /// The bytes of the `.tcs` file; text has a tenth.
    pub bytes: u64,
    /// How often each program runs. The median counts.
    pub rounds: usize,
}

impl Stage {
    /// How many cores may be used.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.toolbox.cores()
    }

    /// A number of rows, columns or entries that is this one with a `.tcs` file of 2 GB, and smaller with a smaller
    /// one.
    #[must_use]
    pub fn scaled(&self, number: u64) -> u64 {
        let share = (self.bytes as f64 / 2e9).min(1.0);
        ((number as f64 * share) as u64).max(50)
    }
}
