//! `min` and `max` are IEEE 754-2019 `minimum` and `maximum`: a NaN anywhere makes the result NaN, and -0 is less than
//! +0, whatever the loop, its length, and how it is run.

use crate::common;
use maniple_kernel::element::{Element, ElementType};
use maniple_kernel::execution::{Executable, Kernels, Scoped, View, interpret};
use maniple_kernel::loops::*;

/// `a[] = reduction over i of x[i]`, in loops of this kind.
fn reduction(element: ElementType, reduction: Reduction, kind: LoopKind) -> Kernel {
    let (x, a) = (Buffer::new("x", element, 1, Access::Read), Buffer::new("a", element, 0, Access::Update));
    let i = Variable::index("i");
    let mut body = Statement::store(&a, [], x.load([i.value()])).reduce(reduction);
    if kind == LoopKind::Block {
        body = body.atomic();
    }
    Kernel {
        name: "extreme".into(),
        body: Statement::for_each(&i, x.low(0), x.high(0), body).with_kind(kind),
        parameters: vec![Parameter::Buffer(x), Parameter::Buffer(a)],
    }
}

/// `y[i] = operator(x[i], z[i])`.
fn elementwise(element: ElementType, operator: BinaryOperator, kind: LoopKind) -> Kernel {
    let [x, z] = ["x", "z"].map(|name| Buffer::new(name, element, 1, Access::Read).with_contiguous(Some(0)));
    let y = Buffer::new("y", element, 1, Access::Update).with_contiguous(Some(0));
    let i = Variable::index("i");
    let value = x.load([i.value()]).binary(operator, z.load([i.value()]));
    Kernel {
        name: "extremes".into(),
        body: Statement::for_each(&i, 0, y.high(0), Statement::store(&y, [i.value()], value)).with_kind(kind),
        parameters: [x, z, y].map(Parameter::Buffer).into(),
    }
}

const KINDS: [LoopKind; 4] = [LoopKind::Serial, LoopKind::Vector, LoopKind::Threads, LoopKind::Block];

/// A float of either precision.
trait Float: Element + From<f32> {
    fn is(self, expected: Self) -> bool;
}

macro_rules! float {
    ($($type:ty),*) => {$(
        impl Float for $type {
            fn is(self, expected: Self) -> bool {
                self.is_nan() && expected.is_nan() || self.to_bits() == expected.to_bits()
            }
        }
    )*};
}

float!(f32, f64);

fn reduced<T: Float>(executable: &Executable, elements: &[T], start: T) -> [T; 2] {
    let (mut compiled, mut interpreted) = ([start], [start]);
    let extent = [elements.len() as i64];
    let view = || View::dense(elements, &extent).expect("fits").into();
    let mut arguments = [view(), View::dense_mut(&mut compiled, &[]).expect("fits").into()];
    // SAFETY: the loop is over the elements of `x`.
    unsafe { executable.call(&mut arguments, &Scoped { threads: 3 }) }.expect("runs");
    let kernel = check(executable.kernel()).expect("well formed");
    let mut arguments = [view(), View::dense_mut(&mut interpreted, &[]).expect("fits").into()];
    interpret(&kernel, &mut arguments, false).expect("runs");
    [compiled[0], interpreted[0]]
}

fn reductions<T: Float>(kernels: &Kernels) {
    let [nan, infinity] = [f32::NAN, f32::INFINITY].map(T::from);
    for (operator, start, zeros) in
        [(Reduction::Maximum, T::from(-f32::INFINITY), [-0.0, 0.0]), (Reduction::Minimum, infinity, [0.0, -0.0])]
    {
        for kind in KINDS {
            let executable = kernels.get(&reduction(T::TYPE, operator, kind)).expect("compiles");
            let check = |elements: &[T], start, expected: T| {
                for found in reduced(&executable, elements, start) {
                    assert!(found.is(expected), "{operator:?} {kind:?} of {elements:?}: {found:?}, not {expected:?}");
                }
            };
            check(&[], start, start);
            for length in 1..=40_usize {
                let falling: Vec<T> = (0..length).rev().map(|number| T::from(number as f32 - 5.0)).collect();
                let expected = if operator == Reduction::Maximum { falling[0] } else { falling[length - 1] };
                check(&falling, start, expected);
                check(&falling, nan, nan);
                for place in 0..length {
                    for sign in [nan, T::from(-f32::NAN)] {
                        let mut elements = falling.clone();
                        elements[place] = sign;
                        check(&elements, start, nan);
                    }
                    // The last zero wins, wherever it is.
                    let mut elements = vec![T::from(zeros[0]); length];
                    elements[place] = T::from(zeros[1]);
                    check(&elements, start, T::from(zeros[1]));
                }
            }
        }
    }
}

#[test]
fn a_nan_in_any_place_makes_a_reduction_nan_and_zeros_have_an_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(kernels) = common::compiled(&folder) else { return };
    reductions::<f32>(&kernels);
    reductions::<f64>(&kernels);
}

fn pairs<T: Float>(kernels: &Kernels) {
    let values = [f32::NAN, -f32::NAN, -f32::INFINITY, -1.5, -0.0, 0.0, 1e-40, 2.0, f32::INFINITY].map(T::from);
    let nan = T::from(f32::NAN);
    // The values are in order, after the NaNs.
    let expected = |operator: BinaryOperator, one: usize, other: usize| match operator {
        _ if one.min(other) < 2 => nan,
        BinaryOperator::Minimum => values[one.min(other)],
        _ => values[one.max(other)],
    };
    let places: Vec<(usize, usize)> =
        (0..values.len()).flat_map(|one| (0..values.len()).map(move |other| (one, other))).collect();
    let (x, z): (Vec<T>, Vec<T>) = places.iter().map(|&(one, other)| (values[one], values[other])).unzip();
    for operator in [BinaryOperator::Minimum, BinaryOperator::Maximum] {
        for kind in [LoopKind::Serial, LoopKind::Vector, LoopKind::Threads] {
            let executable = kernels.get(&elementwise(T::TYPE, operator, kind)).expect("compiles");
            let mut results = [vec![T::from(7.0); x.len()], vec![T::from(7.0); x.len()]];
            for (number, y) in results.iter_mut().enumerate() {
                let extent = [x.len() as i64];
                let mut arguments = [
                    View::dense(&x, &extent).expect("fits").into(),
                    View::dense(&z, &extent).expect("fits").into(),
                    View::dense_mut(y, &extent).expect("fits").into(),
                ];
                match number {
                    // SAFETY: the loop is over the elements of `y`, and `x` and `z` have as many.
                    0 => unsafe { executable.call(&mut arguments, &Scoped { threads: 3 }) },
                    _ => interpret(&check(executable.kernel()).expect("well formed"), &mut arguments, false),
                }
                .expect("runs");
            }
            for (place, &(one, other)) in places.iter().enumerate() {
                for found in [results[0][place], results[1][place]] {
                    assert!(
                        found.is(expected(operator, one, other)),
                        "{operator:?} of {:?} and {:?}, {kind:?}: {found:?}",
                        values[one],
                        values[other]
                    );
                }
            }
        }
    }
}

#[test]
fn the_order_of_arguments_does_not_matter() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(kernels) = common::compiled(&folder) else { return };
    pairs::<f32>(&kernels);
    pairs::<f64>(&kernels);
}
