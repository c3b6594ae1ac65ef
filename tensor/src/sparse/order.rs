//! Which variable is the outermost.

use crate::format::{Format, Level};
use crate::notation::{Access, Expression, IndexVariable};

/// An order of loops, and how tensors are stored for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Order {
    pub(super) variables: Vec<IndexVariable>,
    /// The format in which each access uses its tensor: its own, unless that has to be converted.
    pub(super) formats: Vec<Format>,
}

/// An order of `variables` in which each access visits its levels from the first to the last, as far as they are compressed. Where there is none, tensors are converted.
///
/// Variables of sparse operands come first, so that dense loops are the innermost ones; among those, `variables` says which.
pub(super) fn order(variables: &[IndexVariable], right: &Expression) -> Order {
    let accesses = right.accesses();
    let mut formats: Vec<Format> = accesses.iter().map(|access| native(access.tensor.format())).collect();
    let edges = |access: &Access, format: &Format| edges(access, format, variables);
    let before: Vec<_> = accesses.iter().zip(&formats).flat_map(|(access, format)| edges(access, format)).collect();
    let is_sparse = |variable: &IndexVariable| {
        let mut sparse = accesses.iter().zip(&formats).filter(|(_, format)| !is_dense(format));
        sparse.any(|(access, _)| access.variables.contains(variable))
    };
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
    let place = |variable: &IndexVariable| ordered.iter().position(|other| other == variable);
    for (access, format) in accesses.iter().zip(&mut formats) {
        if edges(access, format).iter().any(|(first, then)| place(first) > place(then)) {
            *format = converted(format, |mode| place(&access.variables[mode]));
        }
    }
    Order { variables: ordered, formats }
}

/// A format with the levels of another one, in the order that `place` gives modes.
fn converted(format: &Format, place: impl Fn(usize) -> Option<usize>) -> Format {
    let mut modes: Vec<usize> = (0..format.rank()).collect();
    modes.sort_by_key(|&mode| place(mode));
    let kind = |mode: &usize| format.level_of(*mode).map_or(Level::Compressed, |level| format.levels()[level]);
    let mut levels: Vec<Level> = modes.iter().map(kind).collect();
    // A dense level below a compressed one would store all that is between; the first is found at once.
    levels[1..].fill(Level::Compressed);
    if format.levels().first() == Some(&Level::Dense) {
        levels[0] = Level::Dense;
    }
    Format::new(levels, modes).unwrap_or_else(|_| Format::dense(format.rank()))
}

/// Which variable has to come before which.
fn edges(access: &Access, format: &Format, variables: &[IndexVariable]) -> Vec<(IndexVariable, IndexVariable)> {
    let of_level = |level: usize| &access.variables[format.order()[level]];
    let compressed = (0..format.rank()).filter(|&level| format.levels()[level] != Level::Dense);
    let pairs = compressed.flat_map(|level| (0..level).map(move |above| (of_level(above), of_level(level))));
    let in_nest = |pair: &(&IndexVariable, &IndexVariable)| {
        pair.0 != pair.1 && variables.contains(pair.0) && variables.contains(pair.1)
    };
    pairs.filter(in_nest).map(|(first, then)| (first.clone(), then.clone())).collect()
}

fn is_dense(format: &Format) -> bool {
    format.levels().iter().all(|level| *level == Level::Dense)
}

/// The format in which kernels use a tensor of a format: dense and compressed levels of whole dimensions, with coordinates in order and each there once.
pub(super) fn native(format: &Format) -> Format {
    let is_native = |(level, properties): (&Level, &crate::format::Properties)| match level {
        Level::Dense => true,
        Level::Compressed => properties.ordered && properties.unique,
        _ => false,
    };
    if format.is_plain() && format.levels().iter().zip(format.properties()).all(is_native) {
        return format.clone();
    }
    let rank = format.rank();
    let order: Vec<usize> = if format.is_plain() { format.order().to_vec() } else { (0..rank).collect() };
    let mut levels = vec![Level::Compressed; rank];
    // Rows are there at little cost, and found at once.
    if rank > 1 && format.levels().first() == Some(&Level::Dense) {
        levels[0] = Level::Dense;
    }
    Format::new(levels, order).unwrap_or_else(|_| Format::dense(rank))
}
