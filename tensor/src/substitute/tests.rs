//! Products of all shapes, against sums written out.

use std::collections::HashMap;

use fastrand::Rng;
use num_complex::Complex;

use super::element::Multiply;
use super::*;
use crate::kernel::{Scoped, Serial, Team, View};

/// A tensor somewhere in memory: indices start anywhere, strides are those of some order of dimensions, with gaps.
#[derive(Clone)]
struct Tensor<T> {
    elements: Vec<T>,
    bounds: Vec<(i64, i64)>,
    strides: Vec<i64>,
}

impl<T: Multiply> Tensor<T> {
    fn random(rng: &mut Rng, bounds: &[(i64, i64)], make: impl Fn(i32) -> T) -> Self {
        let mut order: Vec<usize> = (0..bounds.len()).collect();
        rng.shuffle(&mut order);
        let (mut strides, mut stride) = (vec![0; bounds.len()], 1);
        for dimension in order {
            strides[dimension] = stride;
            stride *= (bounds[dimension].1 - bounds[dimension].0).max(1) + rng.i64(0..2);
        }
        let elements = (0..stride).map(|_| make(rng.i32(-4..5))).collect();
        Self { elements, bounds: bounds.to_vec(), strides }
    }

    fn view(&self) -> View<'_> {
        View::read(&self.elements, &self.bounds, &self.strides).expect("fits")
    }

    fn view_mut(&mut self) -> View<'_> {
        View::update(&mut self.elements, &self.bounds, &self.strides).expect("fits")
    }

    fn at(&self, point: &[i64]) -> Option<usize> {
        let mut offset = 0;
        for ((index, (low, high)), stride) in point.iter().zip(&self.bounds).zip(&self.strides) {
            if index < low || index >= high {
                return None;
            }
            offset += (index - low) * stride;
        }
        usize::try_from(offset).ok()
    }
}

/// Indices are below.
const SIZE: i64 = 7;

/// All assignments of indices to `names`.
fn points(names: &[&'static str]) -> Vec<HashMap<&'static str, i64>> {
    names.iter().fold(vec![HashMap::new()], |points, name| {
        points
            .iter()
            .flat_map(|point| {
                (0..SIZE).map(|index| {
                    let mut point = point.clone();
                    point.insert(*name, index);
                    point
                })
            })
            .collect()
    })
}

/// Adds up what the definition says, over all points where every operand has something.
fn expect<T: Multiply>(
    result: &mut Tensor<T>,
    accesses: &[Vec<&'static str>],
    operands: &[&Tensor<T>],
    names: &[&'static str],
    one: T,
    accumulate: bool,
) {
    if !accumulate {
        fill(result);
    }
    for point in points(names) {
        let place =
            |tensor: &Tensor<T>, access: &[&str]| tensor.at(&access.iter().map(|name| point[name]).collect::<Vec<_>>());
        let factors: Option<Vec<T>> = operands
            .iter()
            .zip(&accesses[1..])
            .map(|(operand, access)| place(operand, access).map(|at| operand.elements[at]))
            .collect();
        if let (Some(at), Some(factors)) = (place(result, &accesses[0]), factors) {
            let (last, others) = factors.split_last().expect("two or more");
            let product = others.iter().fold(one, |product, factor| T::ZERO.add_product(product, *factor));
            result.elements[at] = result.elements[at].add_product(product, *last);
        }
    }
}

fn fill<T: Multiply>(tensor: &mut Tensor<T>) {
    contract::fill_zero::<T>(&tensor.view_mut());
}

fn shuffled(rng: &mut Rng, names: &[&'static str]) -> Vec<&'static str> {
    let mut names = names.to_vec();
    rng.shuffle(&mut names);
    names
}

/// Ranges that overlap more or less; now and then empty.
fn bounds(rng: &mut Rng, names: &[&'static str]) -> Vec<(i64, i64)> {
    names.iter().map(|_| (rng.i64(0..3), rng.i64(2..=SIZE))).collect()
}

/// Products of `accesses`, with small integers as elements so that all types are exact.
fn try_contractions<T: Multiply>(accesses: [&[&'static str]; 3], names: &[&'static str], one: T, make: fn(i32) -> T) {
    for seed in 0..20 {
        let mut rng = Rng::with_seed(seed);
        let accesses = accesses.map(|access| shuffled(&mut rng, access));
        let [mut result, left, right] = accesses.clone().map(|access| {
            let bounds = bounds(&mut rng, &access);
            Tensor::random(&mut rng, &bounds, make)
        });
        let (accumulate, mut expected) = (rng.bool(), result.clone());
        expect(&mut expected, &accesses, &[&left, &right], names, one, accumulate);
        let team: &dyn Team = if rng.bool() { &Serial } else { &Scoped { threads: 3 } };
        let operands = [(&left, &accesses[1]), (&right, &accesses[2])];
        let views = operands.map(|(tensor, _)| tensor.view());
        let [left_operand, right_operand] =
            [0, 1].map(|which| Operand { view: &views[which], indices: operands[which].1 });
        contract(&mut result.view_mut(), &accesses[0], &left_operand, &right_operand, accumulate, team)
            .expect("a product");
        assert_eq!(result.elements, expected.elements, "seed {seed}: {accesses:?}");
    }
}

#[test]
fn matrix_products_with_all_transposes_of_all_types() {
    let access: [&[&str]; 3] = [&["i", "j"], &["i", "k"], &["k", "j"]];
    let names = ["i", "j", "k"];
    try_contractions::<f64>(access, &names, 1.0, f64::from);
    try_contractions::<f32>(access, &names, 1.0, |value| value as f32);
    try_contractions::<i32>(access, &names, 1, |value| value);
    try_contractions::<i64>(access, &names, 1, i64::from);
    try_contractions::<Complex<f32>>(access, &names, 1.0.into(), |value| Complex::new(value as f32, 2.0));
    try_contractions::<Complex<f64>>(access, &names, 1.0.into(), |value| Complex::new(value.into(), 2.0));
}

#[test]
fn products_of_tensors_with_matrices_vectors_and_tensors() {
    let cases: [([&[&str]; 3], &[&str]); 7] = [
        // TTM, TTV, inner product, outer product, matrix-vector, batches, two sums.
        ([&["i", "j", "l"], &["i", "j", "k"], &["k", "l"]], &["i", "j", "k", "l"]),
        ([&["i", "j"], &["i", "j", "k"], &["k"]], &["i", "j", "k"]),
        ([&[], &["i", "j", "k"], &["i", "j", "k"]], &["i", "j", "k"]),
        ([&["i", "j"], &["i"], &["j"]], &["i", "j"]),
        ([&["i"], &["k", "i"], &["k"]], &["i", "k"]),
        ([&["b", "i", "j"], &["b", "i", "k"], &["b", "k", "j"]], &["b", "i", "j", "k"]),
        ([&["i", "j"], &["i", "k", "m"], &["k", "m", "j"]], &["i", "j", "k", "m"]),
    ];
    for (accesses, names) in cases {
        try_contractions::<f64>(accesses, names, 1.0, f64::from);
        try_contractions::<i64>(accesses, names, 1, i64::from);
    }
}

#[test]
fn large_products_are_cut_among_threads() {
    for [rows, columns, inner] in [[70, 50, 40], [3, 200, 60], [200, 3, 60], [100, 1, 400]] {
        let mut rng = Rng::with_seed(7);
        let mut random = |bounds: [i64; 2]| Tensor::random(&mut rng, &bounds.map(|high| (0, high)), i64::from);
        let (left, right, mut result) = (random([rows, inner]), random([inner, columns]), random([rows, columns]));
        let mut expected = result.clone();
        let operands = |indices: &'static [&'static str], view| Operand { view, indices };
        let (left_view, right_view) = (left.view(), right.view());
        let (left, right) = (operands(&["i", "k"], &left_view), operands(&["k", "j"], &right_view));
        contract(&mut expected.view_mut(), &["i", "j"], &left, &right, true, &Serial).expect("a product");
        contract(&mut result.view_mut(), &["i", "j"], &left, &right, true, &Scoped { threads: 4 }).expect("a product");
        assert_eq!(result.elements, expected.elements);
    }
}

#[test]
fn mttkrp_in_all_orders_is_what_it_says() {
    fn all<T: Multiply>(one: T, make: fn(i32) -> T) {
        for seed in 0..20 {
            let mut rng = Rng::with_seed(seed);
            let accesses: Vec<Vec<&str>> = [&["x", "l"][..], &["x", "y", "z"], &["y", "l"], &["z", "l"]]
                .map(|access| shuffled(&mut rng, access))
                .into();
            let mut tensors: Vec<Tensor<T>> = accesses
                .iter()
                .map(|access| {
                    let bounds = bounds(&mut rng, access);
                    Tensor::random(&mut rng, &bounds, make)
                })
                .collect();
            let operands = tensors.split_off(1);
            let (mut result, accumulate) = (tensors.remove(0), rng.bool());
            let mut expected = result.clone();
            let [tensor, first, second] = &operands[..] else { panic!("three operands") };
            expect(&mut expected, &accesses, &[tensor, first, second], &["x", "y", "z", "l"], one, accumulate);
            let views = [tensor, first, second].map(Tensor::view);
            let operand = |which: usize| Operand { view: &views[which], indices: &accesses[which + 1] };
            let operands = Mttkrp { tensor: operand(0), first: operand(1), second: operand(2) };
            let team: &dyn Team = if rng.bool() { &Serial } else { &Scoped { threads: 3 } };
            mttkrp(&mut result.view_mut(), &accesses[0], &operands, accumulate, team).expect("an MTTKRP");
            let is_nan = |value: &T| format!("{value:?}").contains("NaN");
            let same = |(one, other): (&T, &T)| one == other || is_nan(one) && is_nan(other);
            assert!(
                result.elements.iter().zip(&expected.elements).all(same),
                "seed {seed}: {accesses:?}: {:?}, not {:?}",
                result.elements,
                expected.elements
            );
        }
    }
    all::<f64>(1.0, f64::from);
    // Some are infinite, each in one tensor's or in all.
    all::<f64>(1.0, |value| if value == 4 { f64::INFINITY } else { f64::from(value) });
    all::<f32>(1.0, |value| if value == -4 { f32::NAN } else { value as f32 });
    all::<i32>(1, |value| value);
    all::<Complex<f32>>(1.0.into(), |value| Complex::new(value as f32, 1.0));
}

/// A term with an infinity is NaN or an infinity, and so is the sum of such terms, whichever matrix has it.
#[test]
fn infinities_of_either_matrix_are_multiplied_with_each_term() {
    let infinity = f64::INFINITY;
    let tensor = [1.0, 2.0];
    for (first, second, expected) in
        [([infinity], [1.0, -1.0], f64::NAN), ([infinity], [1.0, 1.0], infinity), ([-1.0], [infinity, 2.0], -infinity)]
    {
        let mut result = [0.0];
        let views = [View::dense(&tensor, &[1, 1, 2]), View::dense(&first, &[1, 1]), View::dense(&second, &[2, 1])];
        let [tensor, first, second] = views.map(|view| view.expect("fits"));
        let operands = Mttkrp {
            tensor: Operand { view: &tensor, indices: &["x", "y", "z"] },
            first: Operand { view: &first, indices: &["y", "l"] },
            second: Operand { view: &second, indices: &["z", "l"] },
        };
        let mut view = View::dense_mut(&mut result, &[1, 1]).expect("fits");
        mttkrp(&mut view, &["x", "l"], &operands, false, &Serial).expect("an MTTKRP");
        assert!(result[0] == expected || result[0].is_nan() && expected.is_nan(), "{}, not {expected}", result[0]);
    }
}

#[test]
fn what_is_no_product_is_refused_with_a_reason() {
    let (matrix, floats, mut result) = ([1.0_f64; 4], [1.0_f32; 4], [0.0_f64; 4]);
    let square = View::dense(&matrix, &[2, 2]).expect("fits");
    let other = View::dense(&floats, &[2, 2]).expect("fits");
    let mut view = View::dense_mut(&mut result, &[2, 2]).expect("fits");
    let mut refused = |indices: &[&str], left: &[&str], right: &[&str], right_view: &View<'_>| {
        let left = Operand { view: &square, indices: left };
        let right = Operand { view: right_view, indices: right };
        contract(&mut view, indices, &left, &right, false, &Serial).expect_err("no product")
    };
    assert_eq!(
        refused(&["i", "i"], &["i", "k"], &["k", "i"], &square),
        SubstituteError::Repeated { index: "i".into() }
    );
    assert_eq!(refused(&["i", "j"], &["i", "k"], &["l", "j"], &square), SubstituteError::Alone { index: "k".into() });
    assert_eq!(
        refused(&["i", "j"], &["i", "k", "m"], &["k", "j"], &square),
        SubstituteError::Rank { dimensions: 2, indices: ["i", "k", "m"].map(String::from).into() }
    );
    assert_eq!(
        refused(&["i", "j"], &["i", "k"], &["k", "j"], &other),
        SubstituteError::Types(ElementType::F64, ElementType::F64, ElementType::F32)
    );
    let mut read_only = View::dense(&matrix, &[2, 2]).expect("fits");
    let operand = |indices| Operand { view: &square, indices };
    let error = contract(&mut read_only, &["i", "j"], &operand(&["i", "k"]), &operand(&["k", "j"]), false, &Serial);
    assert_eq!(error, Err(SubstituteError::ReadOnly));
    let operands = Mttkrp { tensor: operand(&["x", "y"]), first: operand(&["y", "l"]), second: operand(&["y", "l"]) };
    let error = mttkrp(&mut view, &["x", "l"], &operands, false, &Serial).expect_err("no MTTKRP");
    assert!(error.to_string().contains("B(x,y,z)"), "{error}");
}

#[test]
fn the_variables_of_a_product_are_rows_columns_and_sums() {
    use super::product::find;
    use crate::algorithms::{johnson, ttm};
    use crate::concrete::Statement;
    use crate::element::ElementType::F64;
    use crate::notation::{IndexVariable, TensorVariable, parse};

    let found = |text: &str, orders: [usize; 3], scheduled: &dyn Fn(&Statement) -> Statement| {
        let tensors = ["A", "B", "C"].iter().zip(orders);
        let tensors: Vec<_> = tensors.map(|(name, order)| TensorVariable::new(name, F64, vec![4; order])).collect();
        let statement = scheduled(&Statement::new(&parse(text, &tensors).unwrap()));
        let mut loops = statement.body.loops().into_iter();
        let fixed: Vec<_> = loops.by_ref().take_while(|outer| outer.substitution.is_none()).collect();
        let fixed: Vec<_> = fixed.iter().map(|outer| outer.variable.clone()).collect();
        let nest = Nest { statement: &statement, node: statement.inside(&fixed), fixed: &fixed };
        let product = find(&nest).unwrap();
        [product.rows, product.columns, product.sums]
            .map(|variables| variables.iter().map(IndexVariable::to_string).collect::<String>())
    };
    let product = |statement: &Statement| johnson(statement, [2, 2, 2]).unwrap().statement;
    assert_eq!(found("A(i,j) = B(i,k) * C(k,j)", [2, 2, 2], &product), ["i", "j", "k"]);
    let of_tensor = |statement: &Statement| ttm(statement, 2).unwrap().statement;
    assert_eq!(found("A(i,j,l) = B(i,j,k) * C(k,l)", [3, 3, 2], &of_tensor), ["ij", "l", "k"]);
}
