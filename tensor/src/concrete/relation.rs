//! How variables are made of others.

use std::collections::BTreeMap;
use std::fmt;

use crate::notation::{Access, IndexVariable};

/// How *parents*, which are no loops any more, are recovered from *children*, which may be loops.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    /// `parent = outer * factor + inner`.
    Split {
        /// The variable that was split.
        parent: IndexVariable,
        /// The number of the block.
        outer: IndexVariable,
        /// The position in the block.
        inner: IndexVariable,
        /// The length of a block.
        factor: i64,
    },
    /// `parent = outer * length + inner`, where the length makes at most `pieces` blocks of the parent's extent.
    Divide {
        /// The variable that was divided.
        parent: IndexVariable,
        /// The number of the block.
        outer: IndexVariable,
        /// The position in the block.
        inner: IndexVariable,
        /// The number of blocks, of which the last may be empty.
        pieces: i64,
        /// The length of a block: the parent's extent over `pieces`, rounded up.
        length: i64,
    },
    /// `parent` is `inner` after the beginning of the part with the number `outer`: 0, or one of `points`.
    SplitAt {
        /// The variable that was split.
        parent: IndexVariable,
        /// The number of the part.
        outer: IndexVariable,
        /// The position in the part.
        inner: IndexVariable,
        /// The coordinates at which parts begin, except for the first part.
        points: Vec<i64>,
        /// The extent of `parent`, where the last part ends.
        extent: i64,
    },
    /// `outer = fused / extent`, `inner = fused % extent`.
    Fuse {
        /// The outer of the two variables that were fused.
        outer: IndexVariable,
        /// The inner one.
        inner: IndexVariable,
        /// The variable that runs over all pairs.
        fused: IndexVariable,
        /// The extent of `inner`.
        extent: i64,
    },
    /// `parent = bounded`.
    Bound {
        /// The variable whose extent was promised.
        parent: IndexVariable,
        /// The variable in its place.
        bounded: IndexVariable,
    },
    /// `target = (result + sum of by) % extent`.
    Rotate {
        /// The variable that was rotated.
        target: IndexVariable,
        /// The variables that tell how far.
        by: Vec<IndexVariable>,
        /// The variable in its place.
        result: IndexVariable,
        /// The extent of both.
        extent: i64,
    },
    /// The parent's values are the coordinates that an operand stores.
    Positions(Positions),
    /// `window = start + step * of`: coordinates of a part of a dimension, or of a shift, which may be beyond it. The
    /// variable that they follow stays what it is.
    Window {
        /// The coordinates.
        window: IndexVariable,
        /// The variable.
        of: IndexVariable,
        /// The coordinate where it is 0.
        start: i64,
        /// How far coordinates of neighbours are apart.
        step: i64,
        /// Whether all coordinates are in the dimension.
        inside: bool,
    },
}

/// A loop over the positions of some levels of an operand, one below the other: `parent` has the coordinates that are
/// stored there.
///
/// A position is a coordinate if everything is stored, which is the meaning of a statement by itself. Kernels for
/// [stored](crate::lower::stored) tensors visit the stored positions alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Positions {
    /// The variable in whose place positions are: that of a level, or what the variables of several levels were fused
    /// to.
    pub parent: IndexVariable,
    /// The number of a position, from the first below the position of the level above.
    pub position: IndexVariable,
    /// The operand that stores the coordinates.
    pub access: Access,
    /// The outermost of the levels.
    pub outermost: usize,
    /// The innermost of them, which is compressed.
    pub level: usize,
}

impl Positions {
    /// The variable of a level of the operand.
    pub fn variable(&self, level: usize) -> &IndexVariable {
        &self.access.variables[self.access.tensor.format().order()[level]]
    }

    /// The variables of the levels above, which tell where positions begin.
    pub(crate) fn above(&self) -> impl Iterator<Item = &IndexVariable> {
        (0..self.outermost).map(|level| self.variable(level))
    }
}

impl Relation {
    /// The variables that can be recovered.
    pub fn parents(&self) -> Vec<&IndexVariable> {
        match self {
            Self::Split { parent, .. }
            | Self::SplitAt { parent, .. }
            | Self::Divide { parent, .. }
            | Self::Bound { parent, .. } => vec![parent],
            Self::Fuse { outer, inner, .. } => vec![outer, inner],
            Self::Rotate { target, .. } => vec![target],
            Self::Positions(Positions { parent, .. }) => vec![parent],
            Self::Window { window, .. } => vec![window],
        }
    }

    /// The variables that took the place of the parents.
    pub fn children(&self) -> Vec<&IndexVariable> {
        match self {
            Self::Split { outer, inner, .. }
            | Self::SplitAt { outer, inner, .. }
            | Self::Divide { outer, inner, .. } => vec![outer, inner],
            Self::Fuse { fused, .. } => vec![fused],
            Self::Bound { bounded, .. } => vec![bounded],
            Self::Rotate { result, .. } => vec![result],
            Self::Positions(Positions { position, .. }) => vec![position],
            Self::Window { .. } => Vec::new(),
        }
    }

    /// All variables that the parents are recovered from: children, what a rotation is by, and what a window is of.
    pub fn sources(&self) -> Vec<&IndexVariable> {
        let mut sources = self.children();
        match self {
            Self::Rotate { by, .. } => sources.extend(by),
            Self::Window { of, .. } => sources.push(of),
            _ => {}
        }
        sources
    }

    /// The outer and inner variables of a split or division, and the length of a block.
    pub(crate) fn blocks(&self) -> Option<(&IndexVariable, &IndexVariable, i64)> {
        match self {
            Self::Split { outer, inner, factor, .. } => Some((outer, inner, *factor)),
            Self::Divide { outer, inner, length, .. } => Some((outer, inner, *length)),
            _ => None,
        }
    }

    /// Whether values of the children may belong to none of the parent: blocks may reach beyond the end, and parts of
    /// different lengths beyond theirs.
    pub(crate) fn is_cut(&self) -> bool {
        self.blocks().is_some() || matches!(self, Self::SplitAt { .. })
    }

    /// The value of `parent`, given those of the sources.
    pub(crate) fn recover(
        &self,
        parent: &IndexVariable,
        value: &mut dyn FnMut(&IndexVariable) -> Option<i64>,
    ) -> Option<i64> {
        Some(match self {
            Self::Split { outer, inner, factor: length, .. } | Self::Divide { outer, inner, length, .. } => {
                value(outer)? * length + value(inner)?
            }
            Self::SplitAt { outer, inner, points, .. } => {
                let begin = value(outer)?.checked_sub(1).and_then(|part| points.get(usize::try_from(part).ok()?));
                begin.copied().unwrap_or(0) + value(inner)?
            }
            Self::Fuse { outer, fused, extent, .. } => {
                let fused = value(fused)?;
                // An extent of zero has no iterations.
                let extent = (*extent).max(1);
                if parent == outer { fused / extent } else { fused % extent }
            }
            Self::Bound { bounded, .. } => value(bounded)?,
            Self::Positions(Positions { position, .. }) => value(position)?,
            Self::Rotate { by, result, extent, .. } => {
                let mut sum = value(result)?;
                for variable in by {
                    sum += value(variable)?;
                }
                sum % (*extent).max(1)
            }
            Self::Window { of, start, step, .. } => start + step * value(of)?,
        })
    }

    /// The same relation between other variables.
    pub(crate) fn rename(&self, names: &BTreeMap<IndexVariable, IndexVariable>) -> Self {
        let name = |variable: &IndexVariable| names.get(variable).unwrap_or(variable).clone();
        match self {
            Self::Split { parent, outer, inner, factor } => {
                Self::Split { parent: name(parent), outer: name(outer), inner: name(inner), factor: *factor }
            }
            Self::SplitAt { parent, outer, inner, points, extent } => Self::SplitAt {
                parent: name(parent),
                outer: name(outer),
                inner: name(inner),
                points: points.clone(),
                extent: *extent,
            },
            Self::Divide { parent, outer, inner, pieces, length } => Self::Divide {
                parent: name(parent),
                outer: name(outer),
                inner: name(inner),
                pieces: *pieces,
                length: *length,
            },
            Self::Fuse { outer, inner, fused, extent } => {
                Self::Fuse { outer: name(outer), inner: name(inner), fused: name(fused), extent: *extent }
            }
            Self::Bound { parent, bounded } => Self::Bound { parent: name(parent), bounded: name(bounded) },
            Self::Rotate { target, by, result, extent } => Self::Rotate {
                target: name(target),
                by: by.iter().map(name).collect(),
                result: name(result),
                extent: *extent,
            },
            Self::Positions(positions) => {
                let variables = positions.access.variables.iter().map(name).collect();
                let access = Access { variables, ..positions.access.clone() };
                let (parent, position) = (name(&positions.parent), name(&positions.position));
                Self::Positions(Positions { parent, position, access, ..*positions })
            }
            Self::Window { window, of, start, step, inside } => {
                Self::Window { window: name(window), of: name(of), start: *start, step: *step, inside: *inside }
            }
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Split { parent, outer, inner, factor: length }
            | Self::Divide { parent, outer, inner, length, .. } => {
                write!(formatter, "{parent} = {outer} * {length} + {inner}")
            }
            Self::SplitAt { parent, outer, inner, points, .. } => {
                write!(formatter, "{parent} = {{0")?;
                points.iter().try_for_each(|point| write!(formatter, ", {point}"))?;
                write!(formatter, "}}[{outer}] + {inner}")
            }
            Self::Fuse { outer, inner, fused, extent } => {
                write!(formatter, "{outer} = {fused} / {extent}, {inner} = {fused} % {extent}")
            }
            Self::Bound { parent, bounded } => write!(formatter, "{parent} = {bounded}"),
            Self::Rotate { target, by, result, extent } => {
                write!(formatter, "{target} = ({result}")?;
                for variable in by {
                    write!(formatter, " + {variable}")?;
                }
                write!(formatter, ") % {extent}")
            }
            Self::Positions(Positions { parent, position, access, .. }) => {
                write!(formatter, "{parent} = the coordinate of {access} at {position}")
            }
            Self::Window { window, of, start, step, .. } => write!(formatter, "{window} = {start} + {step} * {of}"),
        }
    }
}
