//! The oracle for sparse tensors, against the evaluator for dense ones.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::notation::{
    self, Assignment, DenseArray, EvaluateError, TensorVariable, Test, cast, is_fill, parse,
};
use maniple_tensor::oracle::{OracleError, SparseMap, evaluate, run};

use crate::random::{Problem, operands, same};

/// Elements for all tensors: mostly a fill value, which is zero or another one.
///
/// Entries with the fill value are stored where the statement does not ask whether they are.
fn sparse(assignment: &Assignment, random: &mut Rng) -> BTreeMap<String, SparseMap> {
    let asks = assignment.right().tests().iter().any(|(test, _)| *test == Test::Stored);
    let dense = operands(assignment, random);
    let sparse = |(name, array): (String, DenseArray)| {
        let fill = match array.values() {
            [] => cast(Scalar::I64(0), array.element()),
            values if random.u8(..4) == 0 => values[random.usize(..values.len())],
            _ => cast(Scalar::I64(random.i64(0..2)), array.element()),
        };
        let density = random.u8(..101);
        let mut map = SparseMap::new(array.dimensions(), fill);
        DenseArray::from_fn(array.element(), array.dimensions(), |coordinates| {
            let value = array.get(coordinates).unwrap();
            if random.u8(..100) < density && !(asks && is_fill(value, fill)) {
                map.set(coordinates, value);
            }
            value
        });
        (name, map)
    };
    dense.into_iter().map(sparse).collect()
}

fn agrees(element: ElementType, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut random = Rng::with_seed(seed);
        let assignment = Problem::of(element, &mut random).assignment;
        let maps = sparse(&assignment, &mut random);
        let filled =
            |tensor: TensorVariable| tensor.filled(maps.get(tensor.name()).map_or(tensor.fill(), SparseMap::fill));
        let tensors: Vec<TensorVariable> = assignment.tensors().into_iter().map(filled).collect();
        let assignment = assignment.with(&tensors).unwrap();
        let arrays = maps.iter().map(|(name, map)| (name.clone(), map.to_array())).collect();
        let context = format!("seed {seed}: {assignment}\n{maps:#?}");
        match (evaluate(&assignment, &maps), notation::evaluate(&assignment, &arrays)) {
            (Ok(map), Ok(array)) => assert!(same(&map.to_array(), &array), "{context}\n{map:?}\n{array:?}"),
            (Err(OracleError::DivisionByZero(_)), Err(EvaluateError::DivisionByZero(_))) => {}
            (map, array) => panic!("{context}\n{map:?}\n{array:?}"),
        }
    }
}

#[test]
fn random_assignments_of_integers_mean_what_they_mean_for_dense_tensors() {
    agrees(ElementType::I64, 0..1500);
    agrees(ElementType::I32, 0..300);
    agrees(ElementType::Bool, 0..150);
    agrees(ElementType::U8, 0..150);
}

#[test]
fn random_assignments_of_floats_mean_what_they_mean_for_dense_tensors() {
    agrees(ElementType::F64, 0..700);
    agrees(ElementType::C32, 0..300);
}

fn map<const N: usize, const M: usize>(dimensions: [i64; N], entries: [([i64; N], f64); M]) -> SparseMap {
    let mut map = SparseMap::new(&dimensions, Scalar::F64(0.0));
    entries.into_iter().for_each(|(at, value)| assert!(map.set(&at, Scalar::F64(value))));
    map
}

fn parsed(text: &str, tensors: &[(&str, &[i64])]) -> Assignment {
    let tensors: Vec<_> =
        tensors.iter().map(|(name, extents)| TensorVariable::new(name, ElementType::F64, *extents)).collect();
    parse(text, &tensors).unwrap()
}

const HUGE: i64 = 1 << 40;

#[test]
fn extents_may_be_far_larger_than_what_could_be_visited() {
    let matrix = map([HUGE, HUGE], [([5, 7], 2.0), ([5, HUGE - 1], 3.0), ([HUGE - 1, 7], 4.0)]);
    let mut tensors = BTreeMap::from([
        ("B".to_owned(), matrix.clone()),
        ("C".to_owned(), matrix),
        ("x".to_owned(), map([HUGE], [([7], 10.0), ([HUGE - 1], 1.0)])),
    ]);
    let square: &[i64] = &[HUGE, HUGE];
    let extents = [("A", square), ("B", square), ("C", square), ("x", &[HUGE]), ("y", &[HUGE]), ("s", &[])];
    let program = ["y(i) = B(i,j) * x(j)", "A(i,j) = B(i,j) + 2 * C(j,i)", "s = B(i,j) * C(i,j)"]
        .map(|text| parsed(text, &extents));
    run(&program, &mut tensors).unwrap();
    assert_eq!(tensors["y"], map([HUGE], [([5], 23.0), ([HUGE - 1], 40.0)]));
    let sum = [
        ([5, 7], 2.0),
        ([5, HUGE - 1], 3.0),
        ([7, 5], 4.0),
        ([7, HUGE - 1], 8.0),
        ([HUGE - 1, 5], 6.0),
        ([HUGE - 1, 7], 4.0),
    ];
    assert_eq!(tensors["A"], map([HUGE, HUGE], sum));
    assert_eq!(tensors["s"], map([], [([], 29.0)]));
}

#[test]
fn what_would_take_too_long_is_an_error_that_names_the_part() {
    let row =
        BTreeMap::from([("b".to_owned(), map([HUGE], [([3], 1.0)])), ("c".to_owned(), map([HUGE], [([4], 1.0)]))]);
    let sum = parsed("A(i,j) = b(i) + c(j)", &[("A", &[HUGE, HUGE]), ("b", &[HUGE]), ("c", &[HUGE])]);
    assert_eq!(
        evaluate(&sum, &row).unwrap_err().to_string(),
        "`b(i) + c(j)` has values at more than 10000000 points: use smaller extents, or fill values with which it has fewer"
    );
}

#[test]
fn fill_values_take_part_as_any_element_does() {
    // Distances of paths: what is not there is infinitely far.
    let mut graph = SparseMap::new(&[HUGE, HUGE], Scalar::F64(f64::INFINITY));
    graph.set(&[0, 1], Scalar::F64(2.0));
    graph.set(&[1, 5], Scalar::F64(3.0));
    let tensors = BTreeMap::from([("B".to_owned(), graph)]);
    let step = parsed("A(i,j) = reduce(min, k, B(i,k) + B(k,j))", &[("A", &[HUGE, HUGE]), ("B", &[HUGE, HUGE])]);
    let paths = evaluate(&step, &tensors).unwrap();
    assert_eq!((paths.fill(), paths.get(&[0, 5])), (Scalar::F64(f64::INFINITY), Scalar::F64(5.0)));
    assert_eq!(paths.entries().len(), 1);
}

#[test]
fn differences_are_found_in_entries_and_in_fill_values() {
    let equal = |one: Scalar, other: Scalar| one == other;
    let one = map([2, 2], [([0, 1], 1.0), ([1, 1], 0.0)]);
    assert_eq!(one.difference(&map([2, 2], [([0, 1], 1.0)]), equal), None);
    assert_eq!(one.difference(&map([2, 2], [([0, 1], 1.0), ([1, 0], 2.0)]), equal), Some(vec![1, 0]));
    let other_fill = SparseMap::of_array(&one.to_array(), Scalar::F64(9.0));
    assert_eq!(other_fill.difference(&one, equal), None);
    let mut huge = SparseMap::new(&[HUGE], Scalar::F64(1.0));
    huge.set(&[0], Scalar::F64(0.0));
    assert_eq!(huge.difference(&map([HUGE], []), equal), Some(vec![1]));
}
