//! Placements of tensors when loops are distributed.

use super::grids::Distributed;
use crate::concrete::Statement;
use crate::notation::{IndexVariable, TensorVariable};
use crate::placement::{Along, Cut, Distribution, Placement};

/// A placement for each tensor that puts its parts where they are used, as far as there is one such place.
pub(super) fn placements(statement: &Statement, distributed: &Distributed) -> Vec<(TensorVariable, Placement)> {
    statement.tensors().into_iter().map(|tensor| (tensor.clone(), place(statement, tensor, distributed))).collect()
}

fn place(statement: &Statement, tensor: &TensorVariable, distributed: &Distributed) -> Placement {
    let sites = statement.body.sites();
    let mut accesses = sites.iter().flat_map(|site| std::iter::once(site.target).chain(site.value.accesses()));
    let indices: Vec<IndexVariable> =
        accesses.find(|access| access.tensor == *tensor).map(|access| access.variables.clone()).unwrap_or_default();
    let mut used = vec![false; tensor.order()];
    let mut grid = vec![Along::Fixed(0); distributed.len()];
    for (along, (variable, _)) in grid.iter_mut().zip(distributed) {
        let cut = indices.iter().enumerate().position(|(dimension, index)| index == variable && !used[dimension]);
        if let Some(dimension) = cut {
            used[dimension] = true;
            *along = Along::Partition(dimension, Cut::Blocked);
        }
    }
    // What all along a dimension of the grid need is shared out among them.
    for (along, (_, pieces)) in grid.iter_mut().zip(distributed).filter(|(along, _)| **along == Along::Fixed(0)) {
        let extents = tensor.dimensions().iter().enumerate();
        let rest = extents.filter(|(dimension, extent)| !used[*dimension] && **extent >= *pieces);
        // The longest, and of several the first.
        if let Some((dimension, _)) = rest.max_by_key(|(dimension, extent)| (**extent, std::cmp::Reverse(*dimension))) {
            used[dimension] = true;
            *along = Along::Partition(dimension, Cut::Blocked);
        }
    }
    if distributed.is_empty() {
        grid.push(Along::Fixed(0));
    }
    let dimensions = (0..tensor.order()).map(|dimension| {
        let letter = u8::try_from(dimension).ok().and_then(|number| b"xyzuvw".get(usize::from(number)).copied());
        letter.map_or_else(|| format!("x{dimension}"), |letter| char::from(letter).to_string())
    });
    Placement { levels: vec![Distribution { dimensions: dimensions.collect(), grid }] }
}
