//! Masks, and reductions whose terms are truth values: what is stored counts.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::kernel::{Kernels, Serial};
use maniple_tensor::notation::{DenseArray, TensorVariable, evaluate, parse};
use maniple_tensor::oracle::{SparseMap, evaluate as evaluate_sparse};
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};

use super::{a_format, dense, stored, thinned};

/// A matrix of these entries, with one more that is zero, and yet stored.
fn with_a_zero(tensor: &TensorVariable, at: &[i64], others: &[[i64; 2]]) -> SparseTensor<i64> {
    let mut entries = EntryList::new(2);
    entries.push(at, 0);
    others.iter().for_each(|other| entries.push(other, 5));
    pack(tensor.format(), tensor.dimensions(), 0, entries, Duplicates::Refuse).unwrap().tensor
}

#[test]
fn what_is_stored_counts_in_a_mask_whatever_its_value_is() {
    let kernels = Kernels::new(None, None);
    for (format, keeps_zero) in [
        ("csr", true),
        ("csc", true),
        ("dcsr", true),
        ("coo", true),
        ("{C,D}", false),
        ("bcsr:2x2", false),
        ("rows", false),
    ] {
        let tensor = |name: &str| TensorVariable::new(name, ElementType::I64, [4, 4]);
        let tensors = [tensor("M").stored(format.parse().unwrap()), tensor("B"), tensor("C")];
        let masked = parse("C(i,j) = M(i,j) ? B(i,j)", &tensors).unwrap();
        let (m, b) = (
            with_a_zero(&tensors[0], &[1, 2], &[[0, 0], [3, 1]]),
            SparseTensor::from_elements(&[4, 4], 0, (1..=16).collect::<Vec<i64>>()).unwrap(),
        );
        let operands = [("M", &m), ("B", &b)];
        let found = Computation::new(&masked).unwrap().run_by(&operands, &kernels, &Serial).unwrap();
        let seven = if keeps_zero { 7 } else { 0 };
        assert_eq!(found.values(), [1, 0, 0, 0, 0, 0, seven, 0, 0, 0, 0, 0, 0, 14, 0, 0], "{format}");
        let maps = [("M", &m), ("B", &b)].map(|(name, tensor)| (name.to_owned(), SparseMap::of_tensor(tensor)));
        assert_eq!(evaluate_sparse(&masked, &maps.into()).unwrap().to_array(), dense(&found), "{format}");
    }
}

#[test]
fn masked_products_have_at_most_the_pattern_of_the_mask_in_all_formats() {
    let (kernels, mut random) = (Kernels::new(None, None), Rng::with_seed(11));
    for round in 0..60 {
        let mut tensor = |name: &str| {
            TensorVariable::new(name, ElementType::I64, [6, 6]).stored(a_format(2, &mut random)).filled(Scalar::I64(0))
        };
        // Masks that hold all elements are conditions by value: zeros may be stored where they do not hold.
        let mask = ["csr", "csc", "dcsr", "coo", "hash", "{D,B}"][round % 6].parse().unwrap();
        let tensors = [tensor("M").stored(mask), tensor("A"), tensor("B"), tensor("C").stored("csr".parse().unwrap())];
        let text = ["C(i,j) = M(i,j) ? A(i,k) * B(k,j)", "C(i,j) = M(j,i) ? A(i,k) * B(k,j) + A(i,j) * 2"][round % 2];
        let assignment = parse(text, &tensors).unwrap();
        let arrays: BTreeMap<String, DenseArray> = tensors[..3]
            .iter()
            .map(|tensor| {
                let array =
                    DenseArray::from_fn(ElementType::I64, tensor.dimensions(), |_| Scalar::I64(random.i64(-3..4)));
                (tensor.name().to_owned(), thinned(&array, tensor, &mut random))
            })
            .collect();
        let operands: Vec<_> =
            tensors[..3].iter().map(|tensor| stored::<i64>(&arrays[tensor.name()], tensor)).collect();
        let operands: Vec<(&str, &SparseTensor<i64>)> = ["M", "A", "B"].into_iter().zip(&operands).collect();
        let computation = Computation::new(&assignment).unwrap();
        let result = computation.run_by(&operands, &kernels, &Serial).unwrap();
        result.check().unwrap();
        let shown = || {
            format!(
                "{text}\n{:?}\n{}",
                tensors.each_ref().map(|tensor| tensor.format().to_string()),
                computation.loops()
            )
        };
        assert_eq!(dense(&result), evaluate(&assignment, &arrays).unwrap(), "{}", shown());
        result.for_each(|at, _| {
            let at = if round % 2 == 0 { [at[0], at[1]] } else { [at[1], at[0]] };
            assert_ne!(arrays["M"].get(&at), Some(Scalar::I64(0)), "{at:?} {}", shown());
        });
    }
}

/// The loops of the lowered kernel go through stored elements: of a dense matrix they would go through all of its
/// elements.
#[test]
fn masks_and_logical_reductions_visit_what_is_stored() {
    let csr = |name: &str| TensorVariable::new(name, ElementType::I64, [50, 50]).stored("csr".parse().unwrap());
    let tensors = [csr("M"), csr("A"), csr("B"), csr("C"), TensorVariable::new("D", ElementType::I64, [50, 50])];
    let loops = |text: &str| Computation::new(&parse(text, &tensors).unwrap()).unwrap().loops();
    let masked = loops("C(i,j) = M(i,j) ? D(i,j) + 1");
    assert!(!masked.contains("for j in 0..") && masked.contains("M1_crd"), "{masked}");
    let paths = loops("C(i,j) = reduce(or, k, A(i,k) and B(k,j))");
    assert!(!paths.contains("for k in 0..") && !paths.contains("for j in 0.."), "{paths}");
    let all = loops("C(i,j) = not M(i,j) and A(i,j)");
    assert!(!all.contains("for j in 0.."), "{all}");
}

/// The first value of an element is no exception: of numbers, which are true unless they are zero, come truth values.
#[test]
fn logical_reductions_of_numbers_give_truth_values_also_of_single_terms() {
    let array = |seed: i64| {
        DenseArray::from_fn(ElementType::I64, &[6, 6], |at| {
            let value = (at[0] * 7 + at[1] * 5 + seed) % 11;
            Scalar::I64(if value < 8 { 0 } else { value })
        })
    };
    let (a, b) = (array(0), array(3));
    for (format, statement) in ["csr", "coo", "dcsr", "{C,D}", "{B,D}", "rows"].into_iter().flat_map(|format| {
        [
            "R(i,j) = reduce(or, k, A(i,k) * B(k,j))",
            "R(i,j) = reduce(and, k, A(i,k) + B(k,j))",
            "R(i,j) = reduce(or, k, A(i,j) * B(j,k))",
        ]
        .map(|statement| (format, statement))
    }) {
        let tensor = |name: &str, format: &str| {
            TensorVariable::new(name, ElementType::I64, [6, 6]).stored(format.parse().unwrap())
        };
        let tensors = [tensor("R", format), tensor("A", "csr"), tensor("B", "csr")];
        let assignment = parse(statement, &tensors).unwrap();
        let mut arrays: BTreeMap<String, DenseArray> =
            [("A".to_owned(), a.clone()), ("B".to_owned(), b.clone())].into();
        if assignment.accumulates() {
            arrays.insert("R".to_owned(), array(5));
        }
        let expected = evaluate(&assignment, &arrays).unwrap();
        let given: Vec<(&str, SparseTensor<i64>)> = tensors
            .iter()
            .filter_map(|tensor| Some((tensor.name(), stored(arrays.get(tensor.name())?, tensor))))
            .collect();
        let given: Vec<(&str, &SparseTensor<i64>)> = given.iter().map(|(name, tensor)| (*name, tensor)).collect();
        for looked_up in ["", "precompute(A(i,k) * B(k,j), {j}, {jw}, w)\nstore(w, {H})"] {
            let computation = Computation::new(&assignment).unwrap();
            let schedule = Schedule::parse(looked_up, &tensors).unwrap();
            let computation = computation.scheduled(&schedule).unwrap_or(computation);
            let found = computation.run_by(&given, &Kernels::new(None, None), &Serial).unwrap();
            assert_eq!(dense(&found), expected, "{statement} as {format}\n{}", computation.loops());
        }
    }
}

/// A mask with a variable that is summed over masks the terms of the sum.
#[test]
fn masks_of_terms_leave_out_those_where_nothing_is_stored() {
    let csr = |name: &str| TensorVariable::new(name, ElementType::I64, [6, 5]).stored("csr".parse().unwrap());
    let y = TensorVariable::new("y", ElementType::I64, [6]);
    let tensors = [csr("M"), csr("B"), y.clone()];
    let parsed = |text: &str| parse(text, &tensors);
    let (masked, selected) = (parsed("y(i) = M(i,j) ? B(i,j)"), parsed("y(i) = select(stored(M(i,j)), B(i,j), 0)"));
    assert_eq!(masked.as_ref().unwrap().to_string(), selected.unwrap().to_string());
    let error = parsed("y(i) max= M(i,j) ? B(i,j)").unwrap_err().to_string();
    assert!(error.contains("a variable that is not on the left"), "{error}");
    let mut random = Rng::with_seed(21);
    for text in ["y(i) = M(i,j) ? B(i,j)", "y(i) += M(i,j) ? B(i,j)", "y(i) = M(i,j) ? 1"] {
        let mut array = || DenseArray::from_fn(ElementType::I64, &[6, 5], |_| Scalar::I64(random.i64(-2..3).max(0)));
        let (m, b) = (array(), array());
        let old = DenseArray::from_fn(ElementType::I64, &[6], |at| Scalar::I64(at[0]));
        let expected: Vec<i64> = (0..6)
            .map(|row| {
                let number = |array: &DenseArray, column| match array.get(&[row, column]) {
                    Some(Scalar::I64(value)) => value,
                    other => panic!("{other:?}"),
                };
                let term = |column| if text.ends_with('1') { 1 } else { number(&b, column) };
                let sum: i64 = (0..5).filter(|&column| number(&m, column) != 0).map(term).sum();
                sum + if text.contains("+=") { row } else { 0 }
            })
            .collect();
        let given: [(&str, SparseTensor<i64>); 3] =
            [("M", stored(&m, &csr("M"))), ("B", stored(&b, &csr("B"))), ("y", stored(&old, &y))];
        let given: Vec<(&str, &SparseTensor<i64>)> = given.iter().map(|(name, tensor)| (*name, tensor)).collect();
        let assignment = parsed(text).unwrap();
        let found = Computation::new(&assignment).unwrap().run_by(&given, &Kernels::new(None, None), &Serial).unwrap();
        assert_eq!(found.values(), expected, "{text}");
    }
}
