//! Leaf kernels by libraries, which beat generated loops by far where they apply.
//!
//! [`LeafLibrary`]: what a library is asked, and [`register`], which adds one. The one that is there from the start
//! multiplies matrices: //! [`contract`] multiplies two tensors and sums over the indices that the result lacks: matrix
//! products with any transposes, and products of a tensor with a matrix or vector. [`mttkrp`] is the matricised tensor
//! times Khatri-Rao product, cast to matrix products.
//!
//! Operands are views with names for their dimensions. Indices are global: each runs over what all operands that have
//! it have in common, so that views of clipped pieces, and of larger instances, do the right thing.
//!
//! Elements of floats and complex numbers are multiplied by a [BLAS](use_library) of the system that knows the
//! processor, or by the crate `gemm`; integers by plain loops.

mod blas;
mod contract;
mod element;
mod functions;
mod gemm;
mod khatri_rao;
mod matrix;
mod mttkrp;
mod product;
mod registry;
#[cfg(test)]
mod tests;

use crate::element::ElementType;
use crate::kernel::View;

pub use blas::{BlasError, library, library_reason, use_library};
pub use contract::contract;
pub use functions::{LeafFunction, LeafLibrary, LeafOperands, LeafViews, Nest};
pub use khatri_rao::KhatriRao;
pub use mttkrp::{Mttkrp, mttkrp};
pub use product::Product;
pub use registry::{RegisterError, Substituted, find, names, register};

/// A tensor, with a name for each dimension.
#[derive(Debug)]
pub struct Operand<'a, 'v> {
    /// The elements.
    pub view: &'a View<'v>,
    /// The index of each dimension.
    pub indices: &'a [&'a str],
}

/// Why a kernel is not what a library can compute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubstituteError {
    /// Not an index for each dimension.
    #[error("a view of {dimensions} dimensions is given the {} indices {indices:?}", indices.len())]
    Rank {
        /// How many dimensions the view has.
        dimensions: usize,
        /// The indices.
        indices: Vec<String>,
    },
    /// An index twice in one access.
    #[error("index `{index}` occurs twice in one access: a diagonal is no matrix product")]
    Repeated {
        /// The index.
        index: String,
    },
    /// An index in only one of the accesses.
    #[error("index `{index}` occurs in one access only: sum over it, or broadcast along it, separately")]
    Alone {
        /// The index.
        index: String,
    },
    /// Operands of different types.
    #[error("a product needs operands of one type, and these are of {0}, {1} and {2}")]
    Types(ElementType, ElementType, ElementType),
    /// The result may not be changed.
    #[error("the result's view may not be changed")]
    ReadOnly,
    /// Indices are not those of the kernel.
    #[error("this is no {kernel}: it is {expected}")]
    Shape {
        /// The kernel.
        kernel: &'static str,
        /// The form of the kernel.
        expected: &'static str,
    },
    /// A tensor that the leaf does not read.
    #[error("the function asks for {tensor}, which its loops do not read")]
    Unknown {
        /// The tensor.
        tensor: String,
    },
    /// Anything else that a registered function says.
    #[error("{0}")]
    Other(String),
    /// The team did not run each of its chunks.
    #[error("the team did not run all chunks of a product")]
    Team,
}

/// The range of an index: what all operands that have it have in common.
fn range(index: &str, operands: &[&Operand<'_, '_>]) -> (i64, i64) {
    let mut range = (i64::MIN, i64::MAX);
    for operand in operands {
        for (name, dimension) in operand.indices.iter().zip(operand.view.dimensions()) {
            if *name == index {
                range = (range.0.max(dimension.low), range.1.min(dimension.high));
            }
        }
    }
    range
}

/// The stride of `index` in `operand`, or 0.
fn stride(index: &str, operand: &Operand<'_, '_>) -> isize {
    let dimensions = operand.indices.iter().zip(operand.view.dimensions());
    dimensions.filter(|(name, _)| **name == index).map(|(_, dimension)| dimension.stride as isize).sum()
}

/// The offset in elements of the first element of `operand` that is used, if `low` gives the least value of each index.
fn start(operand: &Operand<'_, '_>, low: impl Fn(&str) -> i64) -> isize {
    let dimensions = operand.indices.iter().zip(operand.view.dimensions());
    dimensions.map(|(name, dimension)| ((low(name) - dimension.low) * dimension.stride) as isize).sum()
}

/// Checks what all kernels need of their operands, of which the first is the result.
fn check(operands: &[&Operand<'_, '_>]) -> Result<(), SubstituteError> {
    for operand in operands {
        if operand.indices.len() != operand.view.dimensions().len() {
            return Err(SubstituteError::Rank {
                dimensions: operand.view.dimensions().len(),
                indices: operand.indices.iter().map(|index| (*index).to_owned()).collect(),
            });
        }
        for (number, index) in operand.indices.iter().enumerate() {
            if operand.indices[..number].contains(index) {
                return Err(SubstituteError::Repeated { index: (*index).to_owned() });
            }
        }
    }
    let types: Vec<ElementType> = operands.iter().map(|operand| operand.view.element()).collect();
    if let Some(other) = types.iter().find(|element| **element != types[0]) {
        return Err(SubstituteError::Types(types[0], types[1], *other));
    }
    if operands[0].view.is_writable() { Ok(()) } else { Err(SubstituteError::ReadOnly) }
}
