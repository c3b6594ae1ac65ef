//! Operands that are stored by blocks.

use maniple_tensor::format::{Format, Level, LevelExpression, Properties};
use maniple_tensor::notation::{Access, Assignment, IndexVariable, TensorVariable};

use super::options::Options;
use super::split::Split;

/// So many rows, counted in each block, are stored at most.
const MOST_ROWS: i64 = 1 << 28;

/// The operands of a statement that are better stored by blocks, as in *SuperTaco*, where loops go through blocks of a dimension that is stored below another one: else the part of a row that is in a
/// block would be searched for in each.
pub(super) fn stored_by_blocks(options: &Options, assignment: &Assignment) -> Vec<TensorVariable> {
    let length = |variable: &IndexVariable| {
        let split = options.split.iter().find(|(name, _)| name == variable.name());
        match split {
            Some((_, Split::Ranges(count))) if *count > 1 => {
                let extent = *assignment.extents().get(variable)?;
                (extent > *count).then(|| (extent + count - 1) / count)
            }
            _ => None,
        }
    };
    let accesses = assignment.right().accesses();
    let stored = |access: &&Access| {
        let (tensor, format) = (&access.tensor, access.tensor.format());
        let is_simple = |(level, properties): (&Level, &Properties)| {
            matches!(level, Level::Dense | Level::Compressed) && *properties == Properties::default()
        };
        let is_alone = accesses.iter().filter(|other| other.tensor.name() == tensor.name()).count() == 1;
        let levels = format.levels().iter().zip(format.properties());
        if !is_alone || !format.is_plain() || !levels.clone().all(is_simple) {
            return None;
        }
        let (mut outer, mut inner, mut rows) = (Vec::new(), Vec::new(), 1_i64);
        for (number, ((&mode, &level), &properties)) in
            format.order().iter().zip(format.levels()).zip(format.properties()).enumerate()
        {
            match length(&access.variables[mode]).filter(|_| number > 0 && level == Level::Compressed) {
                Some(length) => {
                    outer.push((LevelExpression::Block(mode, length), Level::Dense, Properties::default()));
                    inner.push((LevelExpression::Within(mode, length), level, properties));
                    rows = rows.saturating_mul((tensor.dimensions()[mode] + length - 1) / length);
                }
                None => inner.push((LevelExpression::Mode(mode), level, properties)),
            }
        }
        let dense = format.order().iter().zip(format.levels()).take_while(|(_, level)| **level == Level::Dense);
        rows = dense.fold(rows, |rows, (&mode, _)| rows.saturating_mul(tensor.dimensions()[mode]));
        if outer.is_empty() || rows > MOST_ROWS {
            return None;
        }
        Format::of_levels(format.rank(), [outer, inner].concat()).ok().map(|format| tensor.stored(format))
    };
    accesses.iter().filter_map(stored).collect()
}
