//! Blocks that are used again, one after another, for bytes that are written before they are read.
//!
//! To make the pages of a block, the system clears them, which takes longer than to read a file of as many bytes. A
//! stream through blocks of one size makes them once.

use std::sync::Arc;

use super::{Block, SystemRefused};
use crate::locks::Mutex;

/// Smaller blocks cost little.
const SMALLEST: usize = 1 << 20;

/// Blocks that are kept for others of the same size and alignment, up to so many bytes.
#[derive(Debug)]
pub(super) struct Spares {
    most: usize,
    kept: Mutex<Vec<(SpareShape, Block)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpareShape {
    bytes: usize,
    align: usize,
}

impl Spares {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, kept: Mutex::default() })
    }

    /// A block, one that is kept if there is one.
    pub(super) fn block(self: &Arc<Self>, bytes: usize, align: usize) -> Result<ReusedBlock, SystemRefused> {
        let shape = SpareShape { bytes, align };
        let kept = {
            let mut kept = self.kept.lock();
            let place = kept.iter().position(|(found, _)| *found == shape);
            place.map(|place| kept.swap_remove(place).1)
        };
        let block = kept.map_or_else(|| Block::zeroed(bytes, align), Ok)?;
        Ok(ReusedBlock { block: Some(block), shape, spares: Arc::clone(self) })
    }

    /// Keeps a block in place of older ones, which are given back to the system.
    fn keep(&self, shape: SpareShape, block: Block) {
        if !(SMALLEST..=self.most).contains(&shape.bytes) {
            return;
        }
        // To give memory back takes a while: after the lock.
        let _old: Vec<_> = {
            let mut kept = self.kept.lock();
            kept.push((shape, block));
            let (mut bytes, mut old) = (kept.iter().map(|(shape, _)| shape.bytes).sum::<usize>(), 0);
            while bytes > self.most {
                bytes -= kept[old].0.bytes;
                old += 1;
            }
            kept.drain(..old).collect()
        };
    }
}

/// Bytes of any values. When they are dropped, they may be [used again](super::MemoryPool::reused_block).
#[derive(Debug)]
pub struct ReusedBlock {
    /// Taken when it is dropped.
    block: Option<Block>,
    shape: SpareShape,
    spares: Arc<Spares>,
}

impl ReusedBlock {
    /// The block.
    ///
    /// # Panics
    /// Never: the block is there until this is dropped.
    #[must_use]
    pub fn block(&self) -> &Block {
        self.block.as_ref().expect("the block is there until it is dropped")
    }
}

impl Drop for ReusedBlock {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.spares.keep(self.shape, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_block_is_used_again_for_one_of_its_size_and_alignment() {
        let spares = Spares::new(8 * MIB);
        let block = |bytes, align| spares.block(bytes, align).unwrap();
        let base = |block: &ReusedBlock| block.block().base();
        let first = block(2 * MIB, 64);
        let place = base(&first);
        drop(first);
        let others = [block(2 * MIB, 128), block(3 * MIB, 64)];
        assert!(others.iter().all(|other| base(other) != place));
        assert_eq!(base(&block(2 * MIB, 64)), place);
    }

    #[test]
    fn no_more_is_kept_than_there_may_be_and_small_blocks_are_not() {
        let spares = Spares::new(8 * MIB);
        let held = || spares.kept.lock().iter().map(|(shape, _)| shape.bytes / MIB).collect::<Vec<_>>();
        let blocks = [3, 4, 2, 9].map(|size| spares.block(size * MIB, 16).unwrap());
        drop(spares.block(MIB - 1, 16).unwrap());
        assert_eq!(held(), [0; 0]);
        blocks.into_iter().for_each(drop);
        assert_eq!(held(), [4, 2]);
    }
}
