//! What a kernel is given of a tensor that it reads.

use crate::element::ElementType::{I32, I64};
use crate::format::{Format, Level};
use crate::level::{Array, LevelData};
use crate::loops::{Access as Use, Buffer, Expression, Names, Parameter, Variable};
use crate::notation::TensorVariable;

/// A tensor that a kernel reads, as it is stored.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) levels: Vec<OperandLevel>,
    pub(super) values: Buffer,
}

/// What a kernel is given of a level.
#[derive(Clone, Debug)]
pub(super) enum OperandLevel {
    /// The extent.
    Dense(Variable),
    /// Positions and coordinates.
    Compressed { pos: Buffer, crd: Buffer, ranges: bool },
}

impl Operand {
    pub(super) fn new(tensor: &TensorVariable, format: &Format, narrow: bool, names: &mut Names) -> Self {
        let name = tensor.name();
        let index = if narrow { I32 } else { I64 };
        let levels = format.levels().iter().zip(format.properties()).enumerate().map(|(level, (kind, properties))| {
            let mut buffer =
                |what: &str| Buffer::new(names.fresh(&format!("{name}{level}_{what}")), index, 1, Use::Read);
            match kind {
                Level::Dense => OperandLevel::Dense(Variable::index(names.fresh(&format!("{name}{level}_extent")))),
                _ => OperandLevel::Compressed { pos: buffer("pos"), crd: buffer("crd"), ranges: properties.ranges },
            }
        });
        let levels = levels.collect();
        let values = Buffer::new(names.fresh(&format!("{name}_values")), tensor.element(), 1, Use::Read);
        Self { levels, values }
    }

    pub(super) fn parameters(&self) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        for level in &self.levels {
            match level {
                OperandLevel::Dense(extent) => parameters.push(Parameter::Scalar(extent.clone())),
                OperandLevel::Compressed { pos, crd, .. } => {
                    parameters.extend([Parameter::Buffer(pos.clone()), Parameter::Buffer(crd.clone())]);
                }
            }
        }
        parameters.push(Parameter::Buffer(self.values.clone()));
        parameters
    }

    /// The extent of a dense level.
    pub(super) fn extent(&self, level: usize) -> Expression {
        match &self.levels[level] {
            OperandLevel::Dense(extent) => extent.value(),
            OperandLevel::Compressed { .. } => unreachable!("compressed levels are iterated or searched"),
        }
    }

    /// The coordinate of a position of a compressed level.
    pub(super) fn coordinate(&self, level: usize, position: Expression) -> Expression {
        match &self.levels[level] {
            OperandLevel::Compressed { crd, .. } => crd.load([position]).cast(I64),
            OperandLevel::Dense(_) => unreachable!("dense levels have no coordinates"),
        }
    }

    /// The positions below `above` in a compressed level.
    pub(super) fn segment(&self, level: usize, above: Expression) -> (Expression, Expression) {
        let OperandLevel::Compressed { pos, ranges, .. } = &self.levels[level] else {
            unreachable!("dense levels have no segments")
        };
        let (first, second) = match ranges {
            true => (above.clone() * 2, above * 2 + 1),
            false => (above.clone(), above + 1),
        };
        (pos.load([first]).cast(I64), pos.load([second]).cast(I64))
    }
}

/// Whether all positions and coordinates of a level fit 32 bits.
pub(super) fn is_narrow(level: &LevelData) -> bool {
    level.components.iter().all(|component| !matches!(component.array, Array::I64(_)))
}
