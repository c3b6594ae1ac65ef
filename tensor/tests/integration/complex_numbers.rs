//! Complex numbers of any size: quotients and functions, compiled, interpreted and by the definition.

use crate::common;
use std::collections::BTreeMap;

use maniple_tensor::element::{Complex, Element, Scalar};
use maniple_tensor::kernel::{Executable, Serial, View};
use maniple_tensor::loops::*;
use maniple_tensor::notation::{DenseArray, IndexVariable, evaluate, parse_with_extents};

/// Zeros, infinities, NaN, and numbers from the smallest to the largest.
const PARTS: [f64; 17] = [
    0.0,
    -0.0,
    5e-324,
    -1e-310,
    1e-200,
    -1e-160,
    0.5,
    -1.0,
    2.0,
    400.0,
    1e20,
    -1e154,
    1e200,
    1.7e308,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

fn same(one: f64, other: f64) -> bool {
    one == other || one.is_nan() && other.is_nan()
}

/// Whether both parts are the same, up to so many units in the last place of the number.
fn near(one: Complex<f64>, other: Complex<f64>, units: f64) -> bool {
    let is_near =
        |a: f64, b: f64| same(a, b) || (a - b).abs() <= units * f64::EPSILON * one.norm().max(f64::MIN_POSITIVE);
    is_near(one.re, other.re) && is_near(one.im, other.im)
}

fn wide<T: Element>(value: T) -> Complex<f64> {
    match value.to_scalar() {
        Scalar::C32(value) => Complex::new(value.re.into(), value.im.into()),
        Scalar::C64(value) => value,
        other => panic!("{other:?} is not complex"),
    }
}

/// `y[i] = value(x[i], z[i])` of all `x` and `z`, compiled and interpreted.
fn both<T: Element>(
    folder: &tempfile::TempDir,
    [x, z]: [&[T]; 2],
    value: impl Fn(Expression, Expression) -> Expression,
) -> Option<[Vec<T>; 2]> {
    let kernels = common::compiled(folder)?;
    let [left, right] = ["x", "z"].map(|name| Buffer::new(name, T::TYPE, 1, Access::Read));
    let result = Buffer::new("y", T::TYPE, 1, Access::Update);
    let i = Variable::index("i");
    let store = Statement::store(&result, [i.value()], value(left.load([i.value()]), right.load([i.value()])));
    let kernel = Kernel {
        name: "quotients".into(),
        body: Statement::for_each(&i, 0, result.high(0), store).with_kind(LoopKind::Vector),
        parameters: [left, right, result].map(Parameter::Buffer).into(),
    };
    let run = |executable: &Executable| {
        let mut y = x.to_vec();
        let extent = [x.len() as i64];
        let mut arguments = [
            View::dense(x, &extent).expect("fits").into(),
            View::dense(z, &extent).expect("fits").into(),
            View::dense_mut(&mut y, &extent).expect("fits").into(),
        ];
        // SAFETY: the loop is over the elements of `y`, and `x` and `z` have as many.
        unsafe { executable.call(&mut arguments, &Serial) }.expect("runs");
        drop(arguments);
        y
    };
    let compiled = kernels.get(&kernel).expect("compiles");
    assert!(compiled.is_compiled());
    Some([run(&compiled), run(&Executable::interpreted(&kernel).expect("well formed"))])
}

/// The result of `text` for `x` and `z`, by the definition.
fn defined<T: Element>(text: &str, [x, z]: [&[T]; 2]) -> Vec<Complex<f64>> {
    let extent = x.len() as i64;
    let assignment = parse_with_extents(text, T::TYPE, &[(IndexVariable::new("i"), extent)]).expect("a statement");
    let array = |elements: &[T]| DenseArray::from_elements(&[extent], elements).expect("fits");
    let operands = BTreeMap::from([("x".to_owned(), array(x)), ("z".to_owned(), array(z))]);
    let result = evaluate(&assignment, &operands).expect("has a value");
    result.values().iter().map(|&value| wide(T::from_scalar(value).expect("of one type"))).collect()
}

fn quotients<T: Element>(make: impl Fn(f64, f64) -> T) {
    let values: Vec<T> =
        PARTS.iter().flat_map(|&re| PARTS.iter().map(move |&im| (re, im))).map(|(re, im)| make(re, im)).collect();
    let pairs = || values.iter().flat_map(|&x| values.iter().map(move |&z| (x, z)));
    let (x, z): (Vec<T>, Vec<T>) = pairs().unzip();
    let expected = defined("y(i) = x(i) / z(i)", [&x, &z]);
    for (place, quotient) in expected.iter().enumerate() {
        let (a, b) = (wide(x[place]), wide(z[place]));
        // A number divided by itself or its multiple is an ordinary one.
        if a == b && a.is_finite() && a.norm() > 1e-300 {
            assert!((quotient - 1.0).norm() < 1e-15, "{a} / {b} = {quotient}");
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(found) = both(&folder, [&x, &z], |a, b| a / b) else { return };
    for (place, expected) in expected.iter().enumerate() {
        for found in [wide(found[0][place]), wide(found[1][place])] {
            assert!(near(*expected, found, 0.0), "{:?} / {:?} = {expected:e}, not {found:e}", x[place], z[place]);
        }
    }
}

#[test]
fn quotients_overflow_and_underflow_only_where_they_must() {
    quotients(Complex::<f64>::new);
    quotients(|re, im| Complex::new(re as f32, im as f32));
}

#[test]
fn functions_of_extreme_numbers_are_those_of_the_c_library_everywhere() {
    let values: Vec<Complex<f64>> =
        PARTS.iter().flat_map(|&re| PARTS.iter().map(move |&im| Complex::new(re, im))).collect();
    let folder = tempfile::tempdir().expect("a folder");
    for &function in Intrinsic::ALL {
        let text = match function.arguments() {
            1 => format!("y(i) = {}(x(i)) + 0 * z(i)", function.name()),
            _ => format!("y(i) = {}(x(i), z(i))", function.name()),
        };
        // Not all functions are defined for complex numbers.
        if parse_with_extents(&text, Complex::<f64>::TYPE, &[(IndexVariable::new("i"), 1)]).is_err() {
            continue;
        }
        let (x, z) = match function.arguments() {
            1 => (values.clone(), vec![Complex::new(0.0, 0.0); values.len()]),
            _ => values.iter().map(|&value| (value, Complex::new(0.5, -2.0))).unzip(),
        };
        let expected = defined(&text.replace(" + 0 * z(i)", ""), [&x, &z]);
        let call = |a: Expression, b: Expression| match function.arguments() {
            1 => Expression::call(function, [a]),
            _ => Expression::call(function, [a, b]),
        };
        let Some(found) = both(&folder, [&x, &z], call) else { return };
        for (place, expected) in expected.iter().enumerate() {
            for found in [found[0][place], found[1][place]] {
                assert!(near(*expected, found, 0.0), "{function:?} of {} = {expected:e}, not {found:e}", x[place]);
            }
        }
    }
}

/// Results that NumPy gives too, and other libraries do not.
#[test]
fn functions_of_large_and_small_numbers_and_on_branch_cuts() {
    let c = |re: f64, im: f64| Complex::new(re, im);
    let cases = [
        ("tanh", c(400.0, 1.0), c(1.0, 0.0)),
        ("asin", c(2.0, 0.0), c(std::f64::consts::FRAC_PI_2, 1.3169578969248166)),
        ("acos", c(2.0, 0.0), c(0.0, -1.3169578969248166)),
        ("atanh", c(2.0, 0.0), c(0.5493061443340549, std::f64::consts::FRAC_PI_2)),
        ("asin", c(0.0, 1e-200), c(0.0, 1e-200)),
        ("asinh", c(1e300, 0.0), c(691.4686750787736, 0.0)),
        ("exp", c(1e300, 0.0), c(f64::INFINITY, 0.0)),
    ];
    for (function, argument, expected) in cases {
        let found = defined(&format!("y(i) = {function}(x(i))"), [&[argument], &[argument]])[0];
        assert!(near(expected, found, 4.0), "{function} of {argument} = {expected}, not {found}");
    }
    let real = |text: &str| {
        let assignment = parse_with_extents(text, f64::TYPE, &[]).expect("a statement");
        f64::from_scalar(evaluate(&assignment, &BTreeMap::new()).expect("a value").values()[0]).expect("a number")
    };
    assert!((real("a = asinh(1e308)") - 709.889355822726).abs() < 1e-9);
    assert!((real("a = acosh(1e308)") - 709.889355822726).abs() < 1e-9);
}
