//! Which variable is the outermost.

use crate::format::{Format, Level, LevelExpression};
use crate::notation::{Access, IndexVariable};

/// An order of `variables` in which each of the pairs `before` is in order, as far as that can be; if not, operands
/// have to be converted.
///
/// Variables of sparse operands come first, so that dense loops are the innermost ones; among those, `variables` says
/// which.
pub(super) fn in_order(
    variables: &[IndexVariable],
    before: &[(IndexVariable, IndexVariable)],
    is_sparse: &dyn Fn(&IndexVariable) -> bool,
) -> Vec<IndexVariable> {
    let mut ordered: Vec<IndexVariable> = Vec::new();
    while ordered.len() < variables.len() {
        let left: Vec<&IndexVariable> = variables.iter().filter(|variable| !ordered.contains(variable)).collect();
        let is_free = |variable: &&&IndexVariable| {
            before.iter().all(|(first, then)| then != **variable || ordered.contains(first))
        };
        let free: Vec<&IndexVariable> = left.iter().filter(is_free).copied().collect();
        // Where there is a circle, it is broken at the first variable, and operands are converted.
        let next = free.iter().find(|variable| is_sparse(variable)).or(free.first()).or(left.first());
        ordered.extend(next.map(|&next| next.clone()));
    }
    ordered
}

/// Which variable has to come before which, so that an access visits its levels from the first to the last, as far as
/// they are compressed.
pub(super) fn edges(
    access: &Access,
    format: &Format,
    variables: &[IndexVariable],
) -> Vec<(IndexVariable, IndexVariable)> {
    let seen = format.by_dimensions().map(|(seen, _)| seen);
    let format = seen.as_ref().unwrap_or(format);
    let of_level = |level: usize| access.variables[format.order()[level]].base();
    let is_found = |level: usize| matches!(format.levels()[level], Level::Dense | Level::Bitmap);
    let compressed = (0..format.rank()).filter(|&level| !is_found(level));
    let pairs = compressed.flat_map(|level| (0..level).map(move |above| (of_level(above), of_level(level))));
    let in_nest = |pair: &(&IndexVariable, &IndexVariable)| {
        pair.0 != pair.1 && variables.contains(pair.0) && variables.contains(pair.1)
    };
    pairs.filter(in_nest).map(|(first, then)| (first.clone(), then.clone())).collect()
}

/// Why loops use a tensor of a format in another one.
pub(super) fn why_converted(format: &Format) -> &'static str {
    let has = |level: Level| format.levels().contains(&level);
    if native(format) == *format {
        "loops go through its dimensions in another order, or through positions"
    } else if has(Level::Hashed) {
        "hash tables have no order in which loops could go through them"
    } else if has(Level::RunLength) {
        "loops would search for the run of each coordinate"
    } else if has(Level::Singleton) || format.properties().iter().any(|level| !level.unique || !level.ordered) {
        "coordinates are in no order, or there several times"
    } else {
        "its levels store parts of dimensions that loops do not go through in their order"
    }
}

/// The format in which kernels use a tensor of a format: dense, compressed, counter and bitmap levels with coordinates
/// in order and each there once, of dimensions or diagonals.
pub(super) fn native(format: &Format) -> Format {
    let is_native = |(level, properties): (&Level, &crate::format::Properties)| match level {
        Level::Dense | Level::Bitmap => true,
        Level::Compressed | Level::Counter => properties.ordered && properties.unique,
        _ => false,
    };
    if let Some((seen, _)) = format.by_dimensions()
        && seen.levels().iter().zip(seen.properties()).all(is_native)
    {
        return format.clone();
    }
    compressed(format)
}

/// Compressed levels of the dimensions that a format stores, below a dense one if it begins with one.
pub(super) fn compressed(format: &Format) -> Format {
    let rank = format.rank();
    let order = match format.is_plain() {
        true => format.order().to_vec(),
        false => order_of_levels(format),
    };
    let mut levels = vec![Level::Compressed; rank];
    // Rows are there at little cost, and found at once.
    if rank > 1 && format.levels().first() == Some(&Level::Dense) {
        levels[0] = Level::Dense;
    }
    Format::new(levels, order).unwrap_or_else(|_| Format::dense(rank))
}

/// The dimensions in the order in which the levels of a format in blocks come to them; those of other formats in their
/// own.
fn order_of_levels(format: &Format) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    for expression in format.expressions() {
        match expression {
            LevelExpression::Mode(mode) | LevelExpression::Block(mode, _) if !order.contains(mode) => order.push(*mode),
            LevelExpression::Mode(_) | LevelExpression::Block(..) | LevelExpression::Within(..) => {}
            _ => return (0..format.rank()).collect(),
        }
    }
    order
}
