//! Entries as lines of text, written in parts by several threads.

use std::io::{self, Write};
use std::ops::Range;

use maniple_element::{Scalar, with_scalar};

use crate::in_order;
use crate::lines::Entries;
use crate::number::Number;
use crate::parallel::Parallel;

/// So many lines are a part of what a thread writes at a time: their text fits the cache of a core.
const LINES: usize = 1 << 13;

/// Writes the lines of entries that `add` gives for each part, by several threads, in the order of parts. These are
/// lines of `.tns` files, and of Matrix Market files below their [head](crate::matrix_market::write_head). The lines of
/// some parts for each thread are in memory at the same time: a part should have some thousands.
///
/// ```
/// use maniple_files::{InTurn, write_parts};
///
/// let mut text = Vec::new();
/// write_parts(&mut text, 2, &InTurn, |part, lines| lines.add(&[part as i64, 2], 1.5))?;
/// assert_eq!(text, b"1 3 1.5\n2 3 1.5\n");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As of `into`.
pub fn write_parts(
    into: &mut (impl Write + Send),
    parts: usize,
    parallel: &dyn Parallel,
    add: impl Fn(usize, &mut EntryLines) + Sync,
) -> io::Result<()> {
    in_order::write(into, parts, parallel, |part, lines: &mut EntryLines| {
        lines.clear();
        add(part, lines);
    })
}

/// Writes all entries.
pub(crate) fn write<T: Number>(
    into: &mut (impl Write + Send),
    entries: &Entries<T>,
    parallel: &dyn Parallel,
) -> io::Result<()> {
    let (count, rank) = (entries.values.len(), entries.coordinates.len());
    write_parts(into, count.div_ceil(LINES), parallel, |part, lines| {
        let mut at = vec![0; rank];
        for entry in part * LINES..count.min((part + 1) * LINES) {
            at.iter_mut().zip(&entries.coordinates).for_each(|(at, all)| *at = all[entry]);
            lines.add(&at, entries.values[entry]);
        }
    })
}

/// Lines of entries, in memory.
#[derive(Clone, Debug, Default)]
pub struct EntryLines {
    text: Vec<u8>,
    /// The coordinates of the last line but for its last one, and where the text has them.
    leading: Vec<i64>,
    written: Range<usize>,
}

impl EntryLines {
    /// Adds the line of an entry, whose coordinates are counted from 0, one for each dimension.
    #[inline]
    pub fn add<T: Number>(&mut self, coordinates: &[i64], value: T) {
        let (leading, last) = coordinates.split_at(coordinates.len().saturating_sub(1));
        let start = self.text.len();
        // Inline: there are one or two.
        if !self.written.is_empty() && leading.iter().eq(&self.leading) {
            // Entries of one row are side by side.
            self.text.extend_from_within(self.written.clone());
        } else {
            leading.iter().for_each(|&at| self.add_coordinate(at));
            self.leading.clear();
            self.leading.extend_from_slice(leading);
        }
        self.written = start..self.text.len();
        last.iter().for_each(|&at| self.add_coordinate(at));
        value.write(&mut self.text).expect("memory takes all");
        self.text.push(b'\n');
    }

    /// Adds the line of an entry whose element has any type.
    pub fn add_scalar(&mut self, coordinates: &[i64], value: Scalar) {
        with_scalar!(value, value => self.add(coordinates, value));
    }

    #[inline]
    fn add_coordinate(&mut self, at: i64) {
        self.text.extend_from_slice(itoa::Buffer::new().format(at + 1).as_bytes());
        self.text.push(b' ');
    }

    fn clear(&mut self) {
        self.text.clear();
        self.written = 0..0;
    }
}

impl AsRef<[u8]> for EntryLines {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}
