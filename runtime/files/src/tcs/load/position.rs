//! Places in a tensor: an element, and the nodes above it.

use crate::error::ReadError;
use crate::tcs::header::TcsHeader;
use crate::tcs::layout::{TcsLevelKind, TcsPart};
use crate::tcs::source::Source;
use crate::tcs::window::Window;

/// A file with its header, in which places are looked for.
#[derive(Debug)]
pub struct Finder<'a, S: ?Sized> {
    header: &'a TcsHeader,
    /// The nodes of each level.
    nodes: Vec<u64>,
    /// `pos` and `idx` of each sparse level.
    arrays: Vec<Option<[Window<'a, S>; 2]>>,
}

impl<'a, S: Source + ?Sized> Finder<'a, S> {
    /// Looks for places in a file with this header.
    pub fn new(source: &'a S, header: &'a TcsHeader) -> Self {
        let window = |part: TcsPart| Window::new(source, header, part).scattered();
        let arrays = |level: usize| {
            header.levels[level].is_sparse().then(|| [window(TcsPart::Pos(level)), window(TcsPart::Idx(level))])
        };
        Self { header, nodes: header.nodes(), arrays: (0..header.levels.len()).map(arrays).collect() }
    }

    /// How many elements there are.
    pub fn elements(&self) -> u64 {
        self.nodes.last().copied().unwrap_or(0)
    }

    /// The node of each level that an element belongs to; for the number after that of the last element, how many nodes
    /// each level has. A node without children belongs to none.
    ///
    /// Takes a binary search for each sparse level but the first.
    ///
    /// # Errors
    /// As of the source.
    pub fn positions(&mut self, element: u64) -> Result<Vec<u64>, ReadError> {
        let mut positions = self.nodes.clone();
        if element >= self.elements() {
            return Ok(positions);
        }
        let mut below = element;
        for level in (0..positions.len()).rev() {
            positions[level] = below;
            below = match &mut self.arrays[level] {
                None => below.checked_div(self.header.levels[level].extent()).unwrap_or(0),
                Some([pos, _]) if level > 0 => segment(pos, below)?,
                Some(_) => 0,
            };
        }
        Ok(positions)
    }

    /// The number of the first element that is at `at` or after it, whose coordinates are in the order of levels.
    ///
    /// Takes a binary search for each sparse level.
    ///
    /// # Errors
    /// As of the source.
    ///
    /// # Panics
    /// If there is not a coordinate for each level.
    pub fn first_from(&mut self, at: &[u64]) -> Result<u64, ReadError> {
        let mut node = 0;
        // Once a coordinate is beyond, what is below begins with its first child.
        let mut is_beyond = false;
        for (level, &coordinate) in at.iter().enumerate() {
            let range = &self.header.levels[level].range;
            let extent = range.end - range.start;
            node = match &mut self.arrays[level] {
                None if is_beyond => node * extent,
                None => {
                    is_beyond = !range.contains(&coordinate);
                    node * extent + coordinate.clamp(range.start, range.end) - range.start
                }
                Some([pos, idx]) if is_beyond => pos.bound(node, idx.length())?,
                Some([pos, idx]) => {
                    let (mut low, mut high) = (pos.bound(node, idx.length())?, pos.bound(node + 1, idx.length())?);
                    let end = high;
                    while low < high {
                        let middle = low + (high - low) / 2;
                        if idx.number(middle)? < coordinate { low = middle + 1 } else { high = middle }
                    }
                    is_beyond = low >= end || idx.number(low)? != coordinate;
                    low
                }
            };
        }
        Ok(node)
    }

    /// How many bytes of arrays lie before a place: what an iteration from the start to there has read.
    #[must_use]
    pub fn bytes_before(&self, positions: &[u64]) -> u64 {
        let mut bytes = 0;
        // The node above all is passed at the end alone.
        let mut above = u64::from(positions == self.nodes);
        for (level, &position) in self.header.levels.iter().zip(positions) {
            if level.kind == TcsLevelKind::Sparse {
                bytes += self.header.width.bytes() * (above + position);
            }
            above = position;
        }
        bytes + self.header.number.size() as u64 * above
    }

    /// How many bytes lie before the end: all of the arrays, but the last bound of each.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.bytes_before(&self.nodes)
    }
}

/// The last segment that starts at or before a place: the one that has it.
fn segment<S: Source + ?Sized>(pos: &mut Window<'_, S>, place: u64) -> Result<u64, ReadError> {
    let (mut low, mut high) = (0, pos.length());
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if pos.number(middle)? <= place { low = middle } else { high = middle }
    }
    Ok(low)
}
