//! Loops that are chosen for sparse tensors: whatever is chosen, the result is the same; and what is known of tensors
//! is what there is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;
use maniple_tensor::choose::{Processors, choose_sparse};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::generate::Generator;
use maniple_tensor::kernel::Kernels;
use maniple_tensor::notation::{Assignment, DenseArray, TensorVariable, evaluate, parse};
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, Statistics, pack};

use crate::random::Problem;
use crate::sparse::{InTurn, a_format, dense, stored, thinned, times};

#[test]
fn all_candidates_for_random_assignments_give_what_evaluation_gives() {
    let (times, seed) = times();
    let (kernels, mut random) = (Kernels::new(None, None), Rng::with_seed(17 + seed));
    let (mut computed, mut names) = (0, BTreeSet::new());
    for _ in 0..200 * times {
        let problem = Problem::new(&mut random);
        let declare = |tensor: &TensorVariable| tensor.stored(a_format(tensor.order(), &mut random.clone()));
        let tensors: Vec<TensorVariable> = problem.assignment.tensors().iter().map(declare).collect();
        let assignment = problem.assignment.with(&tensors).unwrap();
        let array = |tensor: &TensorVariable| {
            let array = thinned(&problem.operands[tensor.name()], tensor, &mut random.clone());
            (tensor.name().to_owned(), array)
        };
        let arrays: BTreeMap<String, DenseArray> = tensors.iter().map(array).collect();
        random.u8(..);
        let Ok(expected) = evaluate(&assignment, &arrays) else { continue };
        let operands: Vec<(&str, SparseTensor<i64>)> =
            tensors.iter().map(|tensor| (tensor.name(), stored(&arrays[tensor.name()], tensor))).collect();
        let known = operands.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.statistics().clone())).collect();
        let choice = choose_sparse(&assignment, &known, &Processors { threads: 3, ..Processors::default() }).unwrap();
        let given: Vec<(&str, &SparseTensor<i64>)> = operands.iter().map(|(name, tensor)| (*name, tensor)).collect();
        for candidate in choice.candidates().iter().take(12) {
            let shown = || format!("{assignment}\n{}\n{}", candidate.name, candidate.computation.statement());
            let estimate = &candidate.estimate;
            let numbers = [estimate.seconds, estimate.steps, estimate.imbalance, estimate.converting, estimate.memory];
            assert!(numbers.iter().all(|number| number.is_finite() && *number >= 0.0), "{estimate:?}\n{}", shown());
            let found = candidate.computation.run_by(&given, &kernels, &InTurn(3));
            let found = found.unwrap_or_else(|error| panic!("{error}\n{}", shown()));
            assert_eq!(dense(&found), expected, "{}\n{arrays:?}", shown());
            names.extend(candidate.name.split("; ").nth(1).and_then(|what| what.split(' ').next()).map(str::to_owned));
            computed += 1;
        }
    }
    assert!(computed > 300 * times, "{computed}");
    for name in ["rows", "parts", "gallop", "locate", "bitmap", "hash"] {
        assert!(names.contains(name), "{name} in {names:?}");
    }
}

/// The expected numbers are counted by looking at all coordinates of entries.
#[test]
fn statistics_of_random_tensors_are_what_counting_gives() {
    let mut random = Rng::with_seed(3);
    for round in 0..200 {
        let order = random.usize(1..4);
        let dimensions: Vec<i64> = (0..order).map(|_| random.i64(1..12)).collect();
        let tensor =
            TensorVariable::new("T", ElementType::I64, dimensions.clone()).stored(a_format(order, &mut random));
        let array = DenseArray::from_fn(ElementType::I64, &dimensions, |_| Scalar::I64(random.i64(-1..5)));
        let made: SparseTensor<i64> = stored(&thinned(&array, &tensor, &mut random), &tensor);
        let found = made.statistics();
        let (mut entries, mut along) = (0, vec![BTreeMap::<i64, usize>::new(); order]);
        let (mut diagonals, mut blocks) = (BTreeSet::new(), BTreeSet::new());
        made.for_each(|at, _| {
            entries += 1;
            along.iter_mut().zip(at).for_each(|(counts, &at)| *counts.entry(at).or_default() += 1);
            if let [row, column] = *at {
                diagonals.insert(column - row);
                blocks.insert((row / 4, column / 4));
            }
        });
        assert_eq!(found.entries, entries, "{round}");
        for (mode, counts) in found.modes.iter().zip(&along) {
            assert_eq!((mode.used, mode.most), (counts.len(), counts.values().copied().max().unwrap_or(0)), "{round}");
        }
        let mut all = Vec::new();
        made.for_each(|at, _| all.push(at.to_vec()));
        for (first, second) in (0..order).flat_map(|first| (0..order).map(move |second| (first, second))) {
            let meets = |one: &Vec<i64>| all.iter().filter(|other| one[first] == other[second]).count();
            let is_square = dimensions[first] == dimensions[second];
            let expected = if is_square { all.iter().map(meets).sum() } else { 0 };
            assert_eq!(found.pairs[first][second], expected as f64, "{round}");
        }
        if order == 2 {
            let told = found.diagonals.unwrap();
            let ends = (diagonals.first().copied().unwrap_or(0), diagonals.last().copied().unwrap_or(0));
            assert_eq!((told.used, (told.first, told.last)), (diagonals.len(), ends), "{round}");
            let full = entries as f64 / (16 * blocks.len().max(1)) as f64;
            assert!(found.blocks.contains(&(4, full)), "{round}: {:?}, {full}", found.blocks);
        }
        assert_eq!(found.levels.last().map(|last| last.positions), Some(made.values().len()), "{round}");
        // It is kept, and does not matter for whether two tensors are equal.
        assert!(Arc::ptr_eq(found, made.statistics()) && made == made.convert(made.format()).unwrap());
    }
}

fn matrix(format: &str, extents: [i64; 2], generator: &str) -> SparseTensor<f64> {
    let entries: EntryList<f64> = generator.parse::<Generator>().unwrap().rows(&extents, 0..extents[0], 1).unwrap();
    pack(&format.parse().unwrap(), &extents, 0.0, entries, Duplicates::First).unwrap().tensor
}

fn known(tensors: &[(&str, &SparseTensor<f64>)]) -> BTreeMap<String, Arc<Statistics>> {
    tensors.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.statistics().clone())).collect()
}

fn assignment(text: &str, tensors: &[(&str, &str, &[i64])]) -> Assignment {
    let declared = tensors.iter().map(|(name, format, extents)| {
        TensorVariable::new(name, ElementType::F64, *extents).stored(format.parse().unwrap())
    });
    parse(text, &declared.collect::<Vec<_>>()).unwrap()
}

#[test]
fn what_is_chosen_follows_from_what_is_stored() {
    let chosen = |statement: &Assignment, tensors: &[(&str, &SparseTensor<f64>)], processors: Processors| {
        let choice = choose_sparse(statement, &known(tensors), &processors).unwrap();
        choice.into_best().name
    };
    let csr: &[i64] = &[4000, 4000];
    let product = assignment("Y(i,j) = A(i,k) * B(k,j)", &[("Y", "csr", csr), ("A", "csr", csr), ("B", "csr", csr)]);
    let sparse = matrix("csr", [4000, 4000], "uniform:0.001");
    let full = matrix("csr", [4000, 4000], "uniform:0.05");
    let two = Processors::default();
    // Rows are gathered; in a bitmap, if nearly all of each is set.
    assert_eq!(chosen(&product, &[("A", &sparse), ("B", &sparse)], two), "i, k, j");
    assert_eq!(chosen(&product, &[("A", &full), ("B", &full)], two), "i, k, j; rows gathered in a bitmap");
    // One row that has most of the elements is divided, if threads can't share it otherwise.
    let wide: &[i64] = &[100, 250_000];
    let multiply =
        assignment("y(i) = A(i,j) * x(j)", &[("y", "{D}", &[100]), ("A", "csr", wide), ("x", "{D}", &[250_000])]);
    let mut entries = EntryList::new(2);
    (0..250_000).for_each(|column| entries.push(&[7, column], 1.0));
    (0..100).for_each(|row| entries.push(&[row, 249_999], 1.0));
    let skewed = pack(&"csr".parse().unwrap(), wide, 0.0, entries, Duplicates::First).unwrap().tensor;
    let eight = Processors { threads: 8, ..two };
    assert_eq!(chosen(&multiply, &[("A", &skewed)], eight), "i, j; parts of as many elements of A");
    assert_eq!(chosen(&multiply, &[("A", &matrix("csr", [100, 250_000], "uniform:0.01"))], eight), "i, j");
    // Few elements are looked for among many.
    let masked =
        assignment("s = a(i) * b(i)", &[("s", "{}", &[]), ("a", "{C}", &[1_000_000]), ("b", "{C}", &[1_000_000])]);
    let vector = |count: i64| {
        let mut entries = EntryList::new(1);
        (0..count).for_each(|at| entries.push(&[at * (1_000_000 / count)], 1.0));
        pack(&"{C}".parse().unwrap(), &[1_000_000], 0.0, entries, Duplicates::First).unwrap().tensor
    };
    assert_eq!(chosen(&masked, &[("a", &vector(50)), ("b", &vector(500_000))], two), "i; locate over i");
    assert_eq!(chosen(&masked, &[("a", &vector(500_000)), ("b", &vector(500_000))], two), "i");
    // What does not fit into memory is not taken if something else does.
    let large: &[i64] = &[1000, 8_000_000];
    let product = assignment(
        "Y(i,j) = A(i,k) * B(k,j)",
        &[("Y", "csr", large), ("A", "csr", &[1000, 1000]), ("B", "csr", large)],
    );
    let (a, b) = (matrix("csr", [1000, 1000], "uniform:0.01"), matrix("csr", [1000, 8_000_000], "uniform:1e-6"));
    let little = Processors { capacity: Some(30_000_000), ..two };
    let choice = choose_sparse(&product, &known(&[("A", &a), ("B", &b)]), &little).unwrap();
    assert!(choice.best().name.ends_with("rows gathered in a hash table"), "{}", choice.explain());
}

/// Rows of a dense operand are gone through in blocks, which lie as near as whole rows.
#[test]
fn rows_that_are_summed_in_blocks_cost_what_whole_rows_do() {
    let n = 900;
    let a = matrix("csr", [n, n], "poisson:30");
    let multiply = assignment(
        "Y(i,k) = A(i,j) * X(j,k)",
        &[("Y", "rows", &[n, 16]), ("A", "csr", &[n, n]), ("X", "rows", &[n, 16])],
    );
    let choice = choose_sparse(&multiply, &known(&[("A", &a)]), &Processors::default()).unwrap();
    assert_eq!(choice.best().name, "i, j, k", "{}", choice.explain());
}
