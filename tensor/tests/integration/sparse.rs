//! Kernels for sparse tensors, against the evaluation of all elements.

mod masks;
mod meaning;
mod rows;

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::element::{Element, ElementType, Scalar};
use maniple_tensor::format::Format;
use maniple_tensor::kernel::{Kernels, Serial, Team};
use maniple_tensor::notation::{DenseArray, TensorVariable, cast, evaluate, parse};
use maniple_tensor::schedule::{Command, Schedule};
use maniple_tensor::sparse::{Computation, SparseError};
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tensor::with_element;

use crate::random::{Problem, command, merging, parts, positions, size};

/// A team of so many members that run in turn.
pub(crate) struct InTurn(pub usize);

impl Team for InTurn {
    fn size(&self) -> usize {
        self.0
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        (0..chunks).for_each(body);
    }
}

/// Formats of tensors of each order.
const FORMATS: [&[&str]; 4] = [
    &["{}"],
    &["{D}", "{C}", "{B}", "{H}", "{C~u}", "{C<ranges>}"],
    &[
        "rows",
        "columns",
        "csr",
        "csc",
        "dcsr",
        "dcsc",
        "coo",
        "{C,D}",
        "{C,D}(1,0)",
        "{D,B}",
        "bcsr:2x3",
        "(i,j) -> (i/2: D, j/3: D, i%2: D, j%3: D)",
        "ell",
        "dia",
        "hash",
        "{C<ranges>,C<ranges>}",
        "{C<i64,i64>,C<i64,i64>}",
    ],
    &["dense:3", "csf:3", "coo:3", "{D,C,C}(2,0,1)", "{C,D,C}(1,2,0)", "{D,D,C}", "{C,C,D}(2,1,0)", "{D,C,D}"],
];

pub(crate) fn stored<T: Element>(array: &DenseArray, tensor: &TensorVariable) -> SparseTensor<T> {
    let mut entries = EntryList::new(array.dimensions().len());
    let fill = T::from_scalar(tensor.fill()).unwrap();
    let mut at = vec![0; array.dimensions().len()];
    for value in array.values() {
        let value = T::from_scalar(*value).unwrap();
        if value != fill {
            entries.push(&at, value);
        }
        for dimension in (0..at.len()).rev() {
            at[dimension] += 1;
            if at[dimension] < array.dimensions()[dimension] {
                break;
            }
            at[dimension] = 0;
        }
    }
    pack(tensor.format(), array.dimensions(), fill, entries, Duplicates::Refuse).unwrap().tensor
}

pub(crate) fn dense<T: Element>(tensor: &SparseTensor<T>) -> DenseArray {
    DenseArray::from_fn(T::TYPE, tensor.dimensions(), |at| tensor.get(at).to_scalar())
}

pub(crate) fn a_format(order: usize, random: &mut Rng) -> Format {
    match FORMATS.get(order) {
        Some(formats) => formats[random.usize(..formats.len())].parse().unwrap(),
        None => Format::dense(order),
    }
}

/// The same array, in which most elements are what the tensor is filled with.
pub(crate) fn thinned(array: &DenseArray, tensor: &TensorVariable, random: &mut Rng) -> DenseArray {
    let keep = random.u8(1..10);
    DenseArray::from_fn(array.element(), array.dimensions(), |at| match random.u8(..10) < keep {
        true => array.get(at).unwrap(),
        false => tensor.fill(),
    })
}

/// Computes the same on tensors in random formats, after so many random commands. None if an integer is divided by
/// zero.
fn try_formats(problem: &Problem, most_commands: usize, kernels: &Kernels, random: &mut Rng) -> Option<Vec<Command>> {
    with_element!(problem.assignment.element(), T => try_formats_of::<T>(problem, most_commands, kernels, random))
}

fn try_formats_of<T: Element>(
    problem: &Problem,
    most_commands: usize,
    kernels: &Kernels,
    random: &mut Rng,
) -> Option<Vec<Command>> {
    let mut declare = |tensor: &TensorVariable| {
        let fill = if random.u8(..4) == 0 { [1, -2, i64::MIN, i64::MAX][random.usize(..4)] } else { 0 };
        tensor.stored(a_format(tensor.order(), random)).filled(cast(Scalar::I64(fill), T::TYPE))
    };
    let tensors: Vec<TensorVariable> = problem.assignment.tensors().iter().map(&mut declare).collect();
    let text = problem.assignment.to_string();
    let assignment = problem.assignment.with(&tensors).unwrap();
    let arrays: BTreeMap<String, DenseArray> = tensors
        .iter()
        .map(|tensor| (tensor.name().to_owned(), thinned(&problem.operands[tensor.name()], tensor, random)))
        .collect();
    let expected = evaluate(&assignment, &arrays).ok()?;
    let operands: Vec<(&str, SparseTensor<T>)> =
        tensors.iter().filter_map(|tensor| Some((tensor.name(), stored(arrays.get(tensor.name())?, tensor)))).collect();
    let operands: Vec<(&str, &SparseTensor<T>)> = operands.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let mut computation = Computation::new(&assignment).unwrap();
    let mut commands = Vec::new();
    let mut planned = match most_commands > 0 && random.bool() {
        true => positions(computation.statement(), random),
        false => Vec::new(),
    };
    planned.reverse();
    for _ in 0..random.usize(..=most_commands) + planned.len() {
        let statement = computation.statement();
        let drawn = match random.u8(..16) {
            0 => parts(statement, &commands.len().to_string(), random),
            1 | 2 => merging(statement, random),
            _ => command(statement, random),
        };
        let Some(command) = planned.pop().or(drawn) else { break };
        // An illegal one leaves the computation as it is.
        if let Ok(changed) = computation.scheduled(&Schedule { commands: vec![command.clone()] })
            && size(changed.statement()) < 30_000.0
        {
            computation = changed;
            commands.push(command);
        }
    }
    let shown = || {
        let text = format!("{text}\n{}{}", Schedule { commands: commands.clone() }, computation.statement());
        let formats = tensors
            .iter()
            .map(|tensor| format!("{}: {} filled with {:?}", tensor.name(), tensor.format(), tensor.fill()));
        format!("{text}\n{}\n{}", formats.collect::<Vec<_>>().join("; "), computation.loops())
    };
    let team = InTurn(random.usize(1..5));
    match computation.run_by(&operands, kernels, &team) {
        Ok(result) => {
            result.check().unwrap_or_else(|error| panic!("{error}\n{}", shown()));
            assert_eq!(result.format(), assignment.left().tensor.format());
            assert_eq!(dense(&result), expected, "{}\n{arrays:?}", shown());
            if !assignment.accumulates() {
                let mut again = result;
                again.values_mut().fill(T::from_scalar(cast(Scalar::I64(-77), T::TYPE)).unwrap());
                computation.run_into(&operands, kernels, &team, &mut again).unwrap();
                assert_eq!(dense(&again), expected, "into a tensor\n{}\n{arrays:?}", shown());
                let mut values = random.clone();
                let others = operands.iter().map(|(name, tensor)| (*name, with_other_values(tensor, &mut values)));
                let others: Vec<(&str, SparseTensor<T>)> = others.collect();
                let of_others: BTreeMap<_, _> =
                    others.iter().map(|(name, tensor)| ((*name).to_owned(), dense(tensor))).collect();
                if let Ok(expected) = evaluate(&assignment, &of_others) {
                    let others: Vec<(&str, &SparseTensor<T>)> =
                        others.iter().map(|(name, tensor)| (*name, tensor)).collect();
                    computation.run_into(&others, kernels, &team, &mut again).unwrap();
                    assert_eq!(dense(&again), expected, "of other values\n{}\n{of_others:?}", shown());
                }
            }
            Some(commands)
        }
        Err(error) => panic!("{error}\n{}", shown()),
    }
}

/// The same levels with other elements, none of them the fill value, which masks take for nothing in one format and for
/// something in another.
pub(crate) fn with_other_values<T: Element>(tensor: &SparseTensor<T>, random: &mut Rng) -> SparseTensor<T> {
    let mut other = tensor.clone();
    let fill = tensor.fill().to_scalar();
    let mut draw = || {
        let mut drawn = std::iter::repeat_with(|| cast(Scalar::I64(random.i64(-3..4)), T::TYPE));
        drawn.find(|value| *value != fill).and_then(T::from_scalar).unwrap()
    };
    other.values_mut().iter_mut().for_each(|value| *value = draw());
    assert!(other.shares_levels(tensor));
    other
}

/// How often what is random is tried: `MANIPLE_SPARSE_TIMES` times as often as usual, with other numbers.
pub(crate) fn times() -> (usize, u64) {
    let times = std::env::var("MANIPLE_SPARSE_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    (times, 100 * (times as u64 - 1))
}

#[test]
fn random_assignments_on_random_formats_are_what_evaluation_gives() {
    let (times, seed) = times();
    let (kernels, mut random) = (Kernels::new(None, None), Rng::with_seed(5 + seed));
    let tried = (0..300 * times).filter(|_| {
        let problem = Problem::with_own_reductions(&mut random);
        try_formats(&problem, 0, &kernels, &mut random).is_some()
    });
    let tried = tried.count();
    assert!(tried > 240 * times, "{tried} were computed");
}

/// Truth values and small integers, which wrap soon.
#[test]
fn random_assignments_of_small_integers_are_what_evaluation_gives() {
    let (times, seed) = times();
    let mut random = Rng::with_seed(11 + seed);
    let folder = tempfile::tempdir().unwrap();
    let compiled = Kernels::new(maniple_tensor::kernel::Compiler::find(), Some(folder.path().to_owned()));
    let kernels = Kernels::new(None, None);
    let types = ElementType::ALL.into_iter().filter(|element| element.is_integer() && *element != ElementType::I64);
    for element in types.collect::<Vec<_>>() {
        let mut tried = [0; 2];
        for number in 0..60 * times {
            let problem = Problem::of(element, &mut random);
            let is_compiled = number % 12 == 0;
            let kernels = if is_compiled { &compiled } else { &kernels };
            let commands = if number % 2 == 0 { 0 } else { 6 };
            tried[usize::from(is_compiled)] +=
                usize::from(try_formats(&problem, commands, kernels, &mut random).is_some());
        }
        assert!(tried[0] > 30 * times && tried[1] > times, "{tried:?} of {element}");
    }
}

#[test]
fn random_schedules_keep_the_results_of_random_assignments_on_random_formats() {
    let (times, seed) = times();
    let (kernels, mut random) = (Kernels::new(None, None), Rng::with_seed(8 + seed));
    let mut applied = BTreeMap::<String, usize>::new();
    for _ in 0..1000 * times {
        let problem = Problem::with_own_reductions(&mut random);
        for command in try_formats(&problem, 12, &kernels, &mut random).unwrap_or_default() {
            let command = command.to_string();
            *applied.entry(command[..command.find('(').unwrap()].to_owned()).or_default() += 1;
        }
    }
    for name in ["split", "divide", "fuse", "reorder", "pos", "bound", "precompute", "store", "rotate", "parallelize"] {
        assert!(["split_at", "mergeby", "chunk"].iter().all(|name| applied.contains_key(*name)), "{applied:?}");
        assert!(applied.get(name).is_some_and(|count| *count >= 10), "{name} in {applied:?}");
    }
}

#[test]
fn random_assignments_by_compiled_kernels_are_what_evaluation_gives() {
    let (times, seed) = times();
    let mut random = Rng::with_seed(6 + seed);
    let folder = tempfile::tempdir().unwrap();
    let kernels = Kernels::new(maniple_tensor::kernel::Compiler::find(), Some(folder.path().to_owned()));
    let tried = (0..40 * times).filter(|_| {
        let problem = Problem::with_own_reductions(&mut random);
        try_formats(&problem, 8, &kernels, &mut random).is_some()
    });
    assert!(tried.count() > 10);
}

#[test]
fn what_does_not_fit_the_assignment_is_refused() {
    let vector = |name: &str, extent: i64| TensorVariable::new(name, ElementType::I64, [extent]);
    let sparse = |name: &str| vector(name, 4).stored("{C}".parse().unwrap());
    let given = |extent: usize| SparseTensor::from_elements(&[extent as i64], 0, vec![1_i64; extent]).unwrap();
    // The result is read by its name, and what is given for it is too small.
    let double = parse("y(i) = y(i) * 2", &[vector("y", 4)]).unwrap();
    let error = Computation::new(&double).unwrap().run(&[("y", &given(3))]);
    assert!(matches!(error, Err(SparseError::Extents { expected, found, .. }) if (expected[0], found[0]) == (4, 3)));
    let copy = parse("y(i) = x(i)", &[vector("x", 4), vector("y", 4)]).unwrap();
    let copy = Computation::new(&copy).unwrap();
    assert!(matches!(copy.run::<i64>(&[]), Err(SparseError::Missing(name)) if name == "x"));
    let ones = SparseTensor::from_elements(&[4], 1, vec![1_i64; 4]).unwrap();
    assert!(matches!(copy.run(&[("x", &ones)]), Err(SparseError::OtherFill { .. })));
    let of_floats = SparseTensor::from_elements(&[4], 0.0, vec![1.0; 4]).unwrap();
    assert!(copy.run(&[("x", &of_floats)]).is_err());
    // Elements that are not there are zero in products and minima too.
    let multiply = parse("y(i) *= x(i)", &[sparse("x"), vector("y", 4)]).unwrap();
    let entries = EntryList::new(1);
    let none = pack(&"{C}".parse().unwrap(), &[4], 0_i64, entries, Duplicates::Sum).unwrap().tensor;
    let zeros = Computation::new(&multiply).unwrap().run(&[("x", &none), ("y", &given(4))]).unwrap();
    assert_eq!(zeros.values(), [0; 4]);
}

/// The reports of wrong answers and crashes that other compilers have had, for all formats of two levels that are dense
/// or compressed, in both orders.
#[test]
fn statements_that_are_hard_for_others_are_right_in_all_formats() {
    let formats: Vec<Format> = ["D,D", "D,C", "C,D", "C,C"]
        .iter()
        .flat_map(|levels| ["0,1", "1,0"].map(|order| format!("{{{levels}}}({order})").parse().unwrap()))
        .collect();
    let (kernels, mut random) = (Kernels::new(None, None), Rng::with_seed(7));
    let statements = [
        "E(i,j) = A(i,k) * B(k,j)",
        "E(i,j) = A(k,i) * d(k) * A(k,j)",
        "E(i,j) = A(k,i) * A(k,j)",
        "E(i,j) = A(i,j) + A(j,i)",
        "E(i,j) = A(i,k) * B(k,l) * C(l,j)",
        "E(i,j) = (A(i,j) + B(i,j)) * (A(i,j) + B(i,j) + C(i,j))",
        "E(i,j) = A(i,j) - B(j,i) * 2",
        "e(i) = A(i,i)",
        "e(i) = A(i,j) * d(j) + d(i)",
        "e(i) = 3 * A(j,i) * d(j)",
        "s = A(i,j) * B(i,j)",
        "E(i,j) = d(i) * A(i,j) * d(j)",
        "E(i,j) += A(i,k) * B(k,j)",
        "E(i,j) = max(A(i,j), B(i,j))",
        "e(i) = reduce(max, j, A(i,j) * B(i,j))",
        "E(i,j) = A(i,j) + 1",
        "e(i) = reduce(min, j, A(i,j) + d(j))",
        "E(i,j) = select(A(i,j) < B(i,j), A(i,j) * 2, C(i,j))",
        "E(i,j) = reduce(or, k, A(i,k) and B(k,j))",
        "e(i) = reduce(and, j, A(i,j) or d(j))",
        "E(i,j) = not A(i,j) and B(j,i)",
        "E(i,j) = A(i,j) ? B(i,k) * C(k,j)",
        "E(i,j) = A(j,i) ? B(i,j) + 1",
        "E(i,j) += A(i,j) ? B(i,j)",
        "e(i) -= A(i,j) * d(j)",
        "E(i,j) = A(i+1,j) - A(i,j-1)",
        "e(i) = A(i,i+1) * d(i-1) + d(i+2)",
        "e(i) = A(i+1,i) * g(i+1)",
        "e(i) = d(i+1) + g(i+1) - g(i-1) * d(i-1)",
        "E(i,j) = isfill(A(i,j)) * B(i,j) + stored(C(j,i)) * 3",
    ];
    for statement in statements {
        for _ in 0..20 {
            let mut tensor = |name: &str, order: usize| {
                let format = if order == 2 { formats[random.usize(..8)].clone() } else { a_format(order, &mut random) };
                // One is longer: its shifts are not those of the others.
                let extent = if name == "g" { 7 } else { 5 };
                TensorVariable::new(name, ElementType::I64, vec![extent; order]).stored(format)
            };
            let tensors = [
                tensor("A", 2),
                tensor("B", 2),
                tensor("C", 2),
                tensor("E", 2),
                tensor("g", 1),
                tensor("d", 1),
                tensor("e", 1),
                tensor("s", 0),
            ];
            let assignment = parse(statement, &tensors).unwrap();
            let arrays: BTreeMap<String, DenseArray> = assignment
                .tensors()
                .iter()
                .map(|tensor| {
                    let array =
                        DenseArray::from_fn(ElementType::I64, tensor.dimensions(), |_| Scalar::I64(random.i64(-3..4)));
                    (tensor.name().to_owned(), thinned(&array, tensor, &mut random))
                })
                .collect();
            let problem = Problem { assignment, operands: arrays };
            let expected = evaluate(&problem.assignment, &problem.operands).unwrap();
            let operands: Vec<(String, SparseTensor<i64>)> = problem
                .assignment
                .tensors()
                .iter()
                .map(|tensor| (tensor.name().to_owned(), stored(&problem.operands[tensor.name()], tensor)))
                .collect();
            let operands: Vec<(&str, &SparseTensor<i64>)> =
                operands.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
            let computation = Computation::new(&problem.assignment).unwrap();
            let result = computation.run_by(&operands, &kernels, &Serial).unwrap();
            result.check().unwrap();
            assert_eq!(dense(&result), expected, "{statement}\n{:?}\n{}", problem.operands, computation.loops());
        }
    }
}

#[test]
fn sums_of_eight_matrices_are_merged_in_one_loop() {
    let names = ["A", "B", "C", "D", "E", "F", "G", "H"];
    let tensor = |name: &str| TensorVariable::new(name, ElementType::I64, [4, 9]).stored("csr".parse().unwrap());
    let mut tensors: Vec<TensorVariable> = names.iter().map(|name| tensor(name)).collect();
    tensors.push(tensor("S"));
    let text = format!("S(i,j) = {}", names.map(|name| format!("{name}(i,j)")).join(" + "));
    let assignment = parse(&text, &tensors).unwrap();
    let computation = Computation::new(&assignment).unwrap();
    let (kernels, mut random) = (Kernels::new(None, None), Rng::with_seed(9));
    for _ in 0..5 {
        let mut array = |tensor: &TensorVariable| {
            let array = DenseArray::from_fn(ElementType::I64, tensor.dimensions(), |_| Scalar::I64(random.i64(-3..4)));
            thinned(&array, tensor, &mut random)
        };
        let arrays: BTreeMap<String, DenseArray> =
            tensors.iter().map(|tensor| (tensor.name().to_owned(), array(tensor))).collect();
        let operands: Vec<_> = tensors[..8].iter().map(|tensor| stored(&arrays[tensor.name()], tensor)).collect();
        let operands: Vec<(&str, &SparseTensor<i64>)> = names.into_iter().zip(&operands).collect();
        let sum = computation.run_by(&operands, &kernels, &Serial).unwrap();
        sum.check().unwrap();
        assert_eq!(dense(&sum), evaluate(&assignment, &arrays).unwrap());
    }
}

#[test]
fn positions_of_one_operand_are_not_taken_for_rows_of_another() {
    let csr =
        |name: &str, rows: i64| TensorVariable::new(name, ElementType::I64, [rows, 3]).stored("csr".parse().unwrap());
    let tensors = [csr("A", 40), csr("B", 3), TensorVariable::new("s", ElementType::I64, [])];
    let assignment = parse("s = A(k,i) * B(i,j)", &tensors).unwrap();
    let schedule = "parallelize(i, threads, reduced)".parse().unwrap();
    let computation = Computation::new(&assignment).unwrap().scheduled(&schedule).unwrap();
    // Every element is there: positions of A go far beyond the rows of B.
    let ones = |tensor: &TensorVariable| {
        stored::<i64>(&DenseArray::from_fn(ElementType::I64, tensor.dimensions(), |_| Scalar::I64(1)), tensor)
    };
    let (a, b) = (ones(&tensors[0]), ones(&tensors[1]));
    let sum = computation.run_by(&[("A", &a), ("B", &b)], &Kernels::new(None, None), &Serial).unwrap();
    assert_eq!(sum.values(), [40 * 3 * 3]);
}

/// Many more, to look for trouble: as many as the environment says, from a seed that it may give.
#[test]
fn random_schedules_of_a_longer_run_keep_results() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (kernels, first) = (Kernels::new(None, None), number("MANIPLE_SPARSE_SEED").unwrap_or(1));
    for seed in first..first + number("MANIPLE_SPARSE_PROGRAMS").unwrap_or(50) {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::with_own_reductions(&mut random);
        let tried = std::panic::AssertUnwindSafe(|| try_formats(&problem, 12, &kernels, &mut random));
        if let Err(failure) = std::panic::catch_unwind(tried) {
            eprintln!("MANIPLE_SPARSE_SEED={seed}");
            std::panic::resume_unwind(failure);
        }
    }
}

/// In kernels with so many cases that what is stored is found out while they run, an access whose shifted variable
/// leaves its dimension reads no element either.
#[test]
fn shifts_leave_dimensions_in_kernels_of_many_cases_too() {
    let given: [(&str, &str, i64, &[i64]); 7] = [
        ("R", "{C~u,S}", -2, &[2, 1]),
        ("T1", "{C,D,C}(1,2,0)", -2, &[5, 4, 5]),
        ("T2", "{C,C,D}(2,1,0)", 0, &[5, 2, 5]),
        ("T3", "{C,C,C}", 0, &[1, 5, 4]),
        ("T4", "{C}", 0, &[4]),
        ("T5", "{D,C}", -2, &[4, 1]),
        ("T7", "{D,C}", 0, &[1, 5]),
    ];
    let tensor = |(name, format, fill, extents): (&str, &str, i64, &[i64])| {
        let tensor = TensorVariable::new(name, ElementType::I64, extents.to_vec());
        tensor.stored(format.parse().unwrap()).filled(Scalar::I64(fill))
    };
    let tensors = given.map(tensor);
    let text = "R(j,l) += reduce(+, i, reduce(+, k, max(T1(i,k,i), T2(i-2,j,i)) * (T3(l,i,k) + T4(k)) * \
                (min(-3, T5(k-1,l)) * (5 - T7(l,i)))))";
    let assignment = parse(text, &tensors).unwrap();
    let computation = Computation::new(&assignment).unwrap();
    assert!(computation.loops().contains("select(here"), "there are many cases");
    let mut random = Rng::with_seed(7);
    for _ in 0..20 {
        let arrays: BTreeMap<String, DenseArray> = given
            .iter()
            .map(|(name, _, fill, extents)| {
                let mut draw = |_: &[i64]| Scalar::I64(if random.bool() { *fill } else { random.i64(-9..10) });
                ((*name).to_owned(), DenseArray::from_fn(ElementType::I64, extents, &mut draw))
            })
            .collect();
        let operands: Vec<(&str, SparseTensor<i64>)> =
            tensors.iter().map(|tensor| (tensor.name(), stored(&arrays[tensor.name()], tensor))).collect();
        let operands: Vec<(&str, &SparseTensor<i64>)> = operands.iter().map(|(name, tensor)| (*name, tensor)).collect();
        let found = computation.run_by(&operands, &Kernels::new(None, None), &Serial).unwrap();
        assert_eq!(dense(&found), evaluate(&assignment, &arrays).unwrap());
    }
}
