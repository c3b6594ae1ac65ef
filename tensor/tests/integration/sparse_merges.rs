//! Ways to merge what several operands store, and what kernels read.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::kernel::{Kernels, Serial};
use maniple_tensor::notation::{DenseArray, IndexVariable, TensorVariable, evaluate, parse};
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::SparseTensor;

use crate::sparse::{InTurn, dense, stored, thinned};

/// Products of vectors in all ways of merging, of which one is a workspace.
#[test]
fn intersections_are_merged_as_the_schedule_says() {
    let (kernels, mut random) = (Kernels::new(None, None), Rng::with_seed(11));
    let vector = |name: &str| TensorVariable::new(name, ElementType::I64, [60]).stored("{C}".parse().unwrap());
    let tensors = [vector("a"), vector("b"), vector("c"), TensorVariable::new("s", ElementType::I64, [])];
    for (text, schedule) in [
        ("s = a(i) * b(i) * c(i)", ""),
        ("s = a(i) * b(i) * c(i)", "split(i, io, ii, 7); "),
        ("s = a(i) * b(i) * c(i)", "split(i, io, ii, 7); precompute(b(i), ii, iw, w); store(w, {C}); "),
        ("s = (a(i) + b(i)) * c(i) * b(i)", ""),
    ] {
        let assignment = parse(text, &tensors).unwrap();
        for merge in ["two-finger", "gallop", "locate"] {
            let variable = if schedule.contains("ii") { "ii" } else { "i" };
            let text_of_schedule = format!("{schedule}mergeby({variable}, {merge})");
            let schedule = Schedule::parse(&text_of_schedule, &tensors).unwrap();
            let scheduled = Computation::new(&assignment).unwrap().scheduled(&schedule);
            if text.contains('+') {
                let error = scheduled.err().map(|error| error.to_string()).unwrap_or_default();
                let expected = format!(
                    "mergeby(i, {merge}): a(i), b(i), c(i) are united over i, step by step; only intersections are merged in other ways"
                );
                assert_eq!(error, expected);
                continue;
            }
            let scheduled = scheduled.unwrap();
            for _ in 0..20 {
                let mut sparse = |tensor: &TensorVariable| {
                    let array = DenseArray::from_fn(ElementType::I64, &[60], |_| Scalar::I64(random.i64(1..4)));
                    thinned(&array, tensor, &mut random)
                };
                let arrays: BTreeMap<String, DenseArray> =
                    tensors[..3].iter().map(|tensor| (tensor.name().to_owned(), sparse(tensor))).collect();
                let expected = evaluate(&assignment, &arrays).unwrap();
                let operands: Vec<_> =
                    tensors[..3].iter().map(|tensor| stored::<i64>(&arrays[tensor.name()], tensor)).collect();
                let operands: Vec<_> = ["a", "b", "c"].into_iter().zip(&operands).collect();
                let result = scheduled.run_by(&operands, &kernels, &Serial).unwrap();
                assert_eq!(dense(&result), expected, "{text_of_schedule}\n{arrays:?}\n{}", scheduled.loops());
            }
        }
    }
}

/// Sums over what rows have in common, of which one is looked up in a workspace.
#[test]
fn rows_that_many_iterations_need_are_looked_up() {
    let (kernels, mut random) = (Kernels::new(None, None), Rng::with_seed(12));
    let matrix = |name: &str| TensorVariable::new(name, ElementType::I64, [9, 9]).stored("csr".parse().unwrap());
    let dense = |name: &str, extents: &[i64]| TensorVariable::new(name, ElementType::I64, extents.to_vec());
    let all = [matrix("A"), matrix("B"), matrix("C"), dense("s", &[]), dense("y", &[9]), matrix("Y")];
    for (text, looked_up) in [
        ("s = A(i,j) * A(i,k) * A(j,k)", "w(kw) = A(i,kw)"),
        ("y(i) = A(i,j) * B(i,k) * C(j,k)", "w(kw) = B(i,kw)"),
        ("y(i) = A(i,j) * B(j,k) * C(i,k)", "w(kw) = C(i,kw)"),
        ("Y(i,j) = A(i,j) * B(i,k) * C(j,k)", "w(kw) = B(i,kw)"),
        // The one that stays for more loops.
        ("y(i) = A(i,j) * B(j,k) * B(k,l) * C(i,l)", "w(lw) = C(i,lw)"),
    ] {
        let assignment = parse(text, &all).unwrap();
        let variable = if text.contains('l') { "l" } else { "k" };
        for merge in ["bitmap", "hash"] {
            let computation = Computation::new(&assignment).unwrap();
            let free = computation.free_loops();
            let order: Vec<IndexVariable> = ["i", "j", "k", "l"]
                .into_iter()
                .filter_map(|name| free.iter().find(|own| own.name() == name).cloned())
                .collect();
            let schedule = Schedule::parse(&format!("mergeby({variable}, {merge})"), &all).unwrap();
            let scheduled = computation.in_order(&order).unwrap().scheduled(&schedule).unwrap();
            let shown = scheduled.statement().to_string();
            assert!(shown.contains(looked_up) && !shown.contains("merged by"), "{shown}");
            for computation in [scheduled.scheduled(&Schedule::default()).unwrap(), scheduled.on_threads().unwrap()] {
                for _ in 0..10 {
                    let operands: Vec<TensorVariable> = assignment
                        .tensors()
                        .into_iter()
                        .filter(|tensor| tensor.name() != assignment.left().tensor.name())
                        .collect();
                    let mut sparse = |tensor: &TensorVariable| {
                        let array = DenseArray::from_fn(ElementType::I64, &[9, 9], |_| Scalar::I64(random.i64(1..4)));
                        thinned(&array, tensor, &mut random)
                    };
                    let arrays: BTreeMap<String, DenseArray> =
                        operands.iter().map(|tensor| (tensor.name().to_owned(), sparse(tensor))).collect();
                    let expected = evaluate(&assignment, &arrays).unwrap();
                    let given: Vec<(&str, SparseTensor<i64>)> =
                        operands.iter().map(|tensor| (tensor.name(), stored(&arrays[tensor.name()], tensor))).collect();
                    let given: Vec<_> = given.iter().map(|(name, tensor)| (*name, tensor)).collect();
                    let result = computation.run_by(&given, &kernels, &InTurn(3)).unwrap();
                    assert_eq!(self::dense(&result), expected, "{arrays:?}\n{}", computation.loops());
                }
            }
        }
    }
}

/// Many narrow numbers are read as they are stored, and few in 32 bits.
#[test]
fn coordinates_of_all_widths_are_read() {
    let kernels = Kernels::new(None, None);
    for (columns, rows) in [(200, 100), (300, 100), (300, 2), (200, 2)] {
        let extents = [rows, columns];
        let csr = TensorVariable::new("A", ElementType::I64, extents).stored("csr".parse().unwrap());
        let x = TensorVariable::new("x", ElementType::I64, [columns]);
        let y = TensorVariable::new("y", ElementType::I64, [rows]);
        let assignment = parse("y(i) = A(i,j) * x(j)", &[y, csr.clone(), x.clone()]).unwrap();
        let computation = Computation::new(&assignment).unwrap();
        let a = DenseArray::from_fn(ElementType::I64, &extents, |at| Scalar::I64(at[0] + 3 * at[1] + 1));
        let b = DenseArray::from_fn(ElementType::I64, &[columns], |at| Scalar::I64(at[0] % 7));
        let expected = evaluate(&assignment, &[("A".into(), a.clone()), ("x".into(), b.clone())].into()).unwrap();
        let (a, b) = (stored::<i64>(&a, &csr), stored::<i64>(&b, &x));
        let result = computation.run_by(&[("A", &a), ("x", &b)], &kernels, &Serial).unwrap();
        assert_eq!(dense(&result), expected);
    }
}

/// Sums over dense rows are in the lanes of vectors.
#[test]
fn dense_rows_are_summed_on_lanes() {
    let tensors = [("Y", "csr"), ("A", "csr"), ("C", "rows"), ("D", "rows")]
        .map(|(name, format)| TensorVariable::new(name, ElementType::F64, [40, 40]).stored(format.parse().unwrap()));
    let assignment = parse("Y(i,j) = A(i,j) * C(i,k) * D(j,k)", &tensors).unwrap();
    let text = Computation::new(&assignment).unwrap().loops();
    assert!(text.contains("vector for k in"), "{text}");
}

#[test]
fn leaps_are_of_twice_the_length_each() {
    let vector = |name: &str| TensorVariable::new(name, ElementType::F64, [60]).stored("{C}".parse().unwrap());
    let tensors = [vector("a"), vector("b"), TensorVariable::new("s", ElementType::F64, [])];
    let assignment = parse("s = a(i) * b(i)", &tensors).unwrap();
    let scheduled = Computation::new(&assignment).unwrap().scheduled(&"mergeby(i, gallop)".parse().unwrap()).unwrap();
    let expected = "
                if i < i_2
                    let mut step: i64 = 1
                    while p + step < end && i64(a0_crd[min(p + step, end - 1)]) < i_2
                        p = p + step
                        step = step * 2
                    let mut high: i64 = min(p + step, end)
                    p = p + 1
                    while p < high
                        let middle: i64 = p + floor_divide(high - p, 2)
                        if i64(a0_crd[middle]) < i_2
                            p = middle + 1
                        else
                            high = middle
";
    assert!(scheduled.loops().contains(expected), "{}", scheduled.loops());
}
