//! How fast this machine is, measured.

use std::time::{Duration, Instant};

use super::rates::Rates;
use crate::concrete::Statement;
use crate::concrete::Substitution;
use crate::element::ElementType::F64;
use crate::kernel::{Argument, Kernels, Serial, View};
use crate::notation::{TensorVariable, parse};
use crate::plan::Plan;

/// A product of matrices of so many rows and columns, which fit a cache.
const PRODUCT: i64 = 384;

/// A matrix of so many rows and columns fits a cache near the processor,
const NEAR: [i64; 2] = [128, 256];

/// and one of so many does not fit any that a processor has for itself.
const FAR: [i64; 2] = [8192, 2048];

/// Each thing is done so often; the fastest time counts.
const ROUNDS: usize = 5;

impl Rates {
    /// Measures one processor of this machine: products of matrices, by the library that multiplies in this process;
    /// loops over data that are near; and reading memory. The speed of messages and launches and the amount of memory
    /// are left as they are [by default](Self::default). Takes about half a second, and 140 MB of memory. None if the
    /// machine refuses one of these measurements.
    ///
    /// On a machine that does other things at the same time the numbers are too small. A kernel that no compiler can be
    /// found for is interpreted, and then loops are slow.
    #[must_use]
    pub fn measured() -> Option<Self> {
        let n = PRODUCT;
        let product = "C(i,j) = A(i,k) * B(k,j)";
        let product = seconds(product, &[("C", &[n, n]), ("A", &[n, n]), ("B", &[n, n])], true)?;
        let by_rows = |[rows, columns]: [i64; 2]| {
            seconds("y(i) = A(i,j) * x(j)", &[("y", &[rows]), ("A", &[rows, columns]), ("x", &[columns])], false)
        };
        let (near, far) = (by_rows(NEAR)?, by_rows(FAR)?);
        let count = |extents: [i64; 2]| extents.iter().product::<i64>() as f64;
        Some(Self {
            products: 2.0 * (n * n * n) as f64 / product,
            loops: 2.0 * count(NEAR) / near,
            memory: size_of::<f64>() as f64 * count(FAR) / far,
            ..Self::default()
        })
    }
}

/// How long a statement takes on one processor, by a library of products or by its kernel.
#[allow(clippy::disallowed_methods, reason = "it is the machine that is measured, without a runtime")]
fn seconds(text: &str, tensors: &[(&str, &[i64])], by_library: bool) -> Option<f64> {
    let variables: Vec<TensorVariable> =
        tensors.iter().map(|(name, extents)| TensorVariable::new(name, F64, extents.to_vec())).collect();
    let mut statement = Statement::new(&parse(text, &variables).ok()?);
    if by_library {
        let loops: Vec<_> = statement.spine().iter().map(|outer| outer.variable.clone()).collect();
        statement = statement.substitute(loops, Substitution::GEMM).ok()?;
    }
    let plan = Plan::new(&statement).ok()?;
    let mut elements: Vec<Vec<f64>> =
        tensors.iter().map(|(_, extents)| vec![1.0; extents.iter().product::<i64>() as usize]).collect();
    let kernel = Kernels::shared().get(&plan.leaf().kernel).ok()?;
    let mut fastest = Duration::MAX;
    for _ in 0..ROUNDS {
        let mut arguments: Vec<Argument<'_>> = Vec::new();
        for (number, (values, (_, extents))) in elements.iter_mut().zip(tensors).enumerate() {
            let view = if number == 0 { View::dense_mut(values, extents) } else { View::dense(values, extents) };
            arguments.push(view.ok()?.into());
        }
        arguments.extend(plan.leaf().scalars(&[]).map(Argument::from));
        let started = Instant::now();
        if !by_library || !plan.substitute(&[], &mut arguments, &Serial).ok()? {
            // SAFETY: the views have all elements of the tensors, of which the first, the result, is in no other.
            unsafe { kernel.call(&mut arguments, &Serial) }.ok()?;
        }
        fastest = fastest.min(started.elapsed());
    }
    Some(fastest.as_secs_f64()).filter(|seconds| *seconds > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_positive_and_the_rest_is_as_by_default() {
        let measured = Rates::measured().expect("the machine computes");
        for rate in [measured.products, measured.loops, measured.memory] {
            assert!(rate.is_finite() && rate > 0.0, "{measured:?}");
        }
        let Rates { products, loops, memory, .. } = Rates::default();
        assert_eq!(Rates { products, loops, memory, ..measured }, Rates::default());
    }
}
