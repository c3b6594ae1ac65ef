//! The words of mapping files for the choices that there are.

use maniple_realm::machine::{MemoryKind, ProcessorKind};

use super::data::{Deal, PrivilegeKind, ReuseKind, Share};
use crate::{Columns, Extent, ReductionPlace, Validity};

/// A choice among few things, each with a word.
pub(super) trait Words: Sized + Clone + PartialEq + 'static {
    /// The name of the choice in messages about wrong words.
    const WHAT: &'static str;
    /// All words.
    const ALL: &'static [(&'static str, Self)];

    /// The word, if there is one.
    fn word(&self) -> Option<&'static str> {
        Self::ALL.iter().find(|(_, value)| value == self).map(|(word, _)| *word)
    }
}

macro_rules! words {
    ($type:ty, $what:literal: $($word:literal => $value:expr),+ $(,)?) => {
        impl Words for $type {
            const WHAT: &'static str = $what;
            const ALL: &'static [(&'static str, Self)] = &[$(($word, $value)),+];
        }
    };
}

words!(ProcessorKind, "a kind of processor": "cpu" => Self::Cpu, "gpu" => Self::Gpu);
words!(MemoryKind, "a kind of memory":
    "system" => Self::System, "socket" => Self::Socket, "framebuffer" => Self::Framebuffer, "zero-copy" => Self::ZeroCopy);
words!(Deal, "a way to deal points":
    "blocks" => Self::Blocks, "cycles" => Self::Cycles, "first-free" => Self::FirstFree);
words!(Share, "a way to deal points": "stay" => Self::Stay, "blocks" => Self::Blocks, "cycles" => Self::Cycles);
words!(Validity, "a validity": "once" => Self::Once, "while-unchanged" => Self::WhileUnchanged);
words!(PrivilegeKind, "a privilege":
    "reads" => Self::Reads, "writes" => Self::Writes, "discards" => Self::Discards, "reduces" => Self::Reduces);
words!(ReuseKind, "a kind of reuse": "any" => Self::Any, "exact" => Self::Exact, "never" => Self::Never);
words!(Columns, "columns": "requirement" => Self::Requirement, "separate" => Self::Separate, "all" => Self::All);
words!(Extent, "an extent": "region" => Self::Region, "root" => Self::Root);
words!(ReductionPlace, "a place of contributions": "buffer" => Self::Buffer, "in-place" => Self::InPlace);
