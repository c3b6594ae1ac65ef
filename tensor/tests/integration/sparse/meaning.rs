//! The meaning of operations does not depend on how operands are stored: NaNs, infinities and zeros, stored or not, in
//! all formats.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::element::{Element, ElementType, Scalar};
use maniple_tensor::kernel::{Compiler, Kernels};
use maniple_tensor::notation::{DenseArray, TensorVariable, cast, evaluate as evaluate_all, is_fill, parse};
use maniple_tensor::oracle::{SparseMap, evaluate};
use maniple_tensor::schedule::{Command, Schedule};
use maniple_tensor::sparse::{Computation, SparseError};
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tensor::with_element;

use super::{InTurn, a_format, times};
use crate::random::{Problem, command, positions, size};

/// The outcome of a random program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It has the values of the definition.
    Right,
    /// It has none: an integer is divided by zero, or the definition has too many points.
    Undefined,
    /// A divisor was refused, as it gives something else than zero for zero.
    Refused,
}

/// A value that an element may be filled with.
fn a_fill(element: ElementType, random: &mut Rng) -> Scalar {
    let number = |number: f64| cast(Scalar::F64(number), element);
    match random.u8(..10) {
        0 => number(1.0),
        1 => number(-2.0),
        2 if !element.is_integer() && !element.is_complex() => {
            number([f64::INFINITY, f64::NEG_INFINITY, f64::NAN][random.usize(..3)])
        }
        _ => number(0.0),
    }
}

/// An operand as a map of what it stores, some of which may be what it is filled with.
fn a_map(array: &DenseArray, tensor: &TensorVariable, stores_fill: bool, random: &mut Rng) -> SparseMap {
    let mut map = SparseMap::new(tensor.dimensions(), tensor.fill());
    let (keep, is_dense) = (random.u8(1..10), tensor.format().is_dense() && tensor.format().is_plain());
    let zeros = if stores_fill { random.u8(0..5) } else { 0 };
    DenseArray::from_fn(array.element(), array.dimensions(), |at| {
        let value = match random.u8(..10) {
            drawn if drawn < zeros || is_dense && drawn >= keep => tensor.fill(),
            _ => array.get(at).unwrap(),
        };
        // Signs of zeros are not told apart, but by conversions.
        let value = if is_fill(value, tensor.fill()) { tensor.fill() } else { value };
        let is_kept = stores_fill || !is_fill(value, tensor.fill());
        if is_dense || is_kept && random.u8(..10) < keep {
            map.set(at, value);
        }
        value
    });
    map
}

fn packed<T: Element>(map: &SparseMap, tensor: &TensorVariable) -> SparseTensor<T> {
    let mut entries = EntryList::new(map.dimensions().len());
    map.entries().iter().for_each(|(at, value)| entries.push(at, T::from_scalar(*value).unwrap()));
    let fill = T::from_scalar(tensor.fill()).unwrap();
    pack(tensor.format(), map.dimensions(), fill, entries, Duplicates::Refuse).unwrap().tensor
}

/// Whether two numbers are the same up to rounding; zeros of both signs are.
fn is_near(one: Scalar, other: Scalar) -> bool {
    let parts = |value| match cast(value, ElementType::C64) {
        Scalar::C64(value) => [value.re, value.im],
        _ => unreachable!(),
    };
    let near = |one: f64, other: f64| {
        one == other
            || one.is_nan() && other.is_nan()
            || (one - other).abs() <= 1e-9 * (1.0 + one.abs().max(other.abs()))
    };
    let near_single = |one: f64, other: f64| near(one, other) || (one - other).abs() <= 1e-4 * (1.0 + one.abs());
    let is_single = matches!(one, Scalar::F32(_) | Scalar::C32(_));
    let all = parts(one).into_iter().zip(parts(other));
    if one.element_type().is_integer() {
        return one == other;
    }
    all.into_iter().all(|(one, other)| if is_single { near_single(one, other) } else { near(one, other) })
}

fn tried<T: Element>(problem: &Problem, commands: usize, kernels: &Kernels, random: &mut Rng) -> Outcome {
    let mut declare =
        |tensor: &TensorVariable| tensor.stored(a_format(tensor.order(), random)).filled(a_fill(T::TYPE, random));
    let tensors: Vec<TensorVariable> = problem.assignment.tensors().iter().map(&mut declare).collect();
    let assignment = problem.assignment.with(&tensors).unwrap();
    // What a workspace of a schedule holds counts by its value.
    let stores_fill = commands == 0 && random.bool();
    let maps: BTreeMap<String, SparseMap> = tensors
        .iter()
        .map(|tensor| (tensor.name().to_owned(), a_map(&problem.operands[tensor.name()], tensor, stores_fill, random)))
        .collect();
    let expected = evaluate(&assignment, &maps);
    if !stores_fill {
        let arrays: BTreeMap<String, DenseArray> =
            maps.iter().map(|(name, map)| (name.clone(), map.to_array())).collect();
        match (&expected, evaluate_all(&assignment, &arrays)) {
            (Ok(expected), Ok(array)) => {
                let differs = DenseArray::from_fn(T::TYPE, array.dimensions(), |at| {
                    let (one, other) = (expected.get(at), array.get(at).unwrap());
                    assert!(
                        is_near(one, other),
                        "{one:?} and {other:?} at {at:?} of {assignment}\n{tensors:?}\n{maps:?}"
                    );
                    one
                });
                drop(differs);
            }
            (Err(_), _) => {}
            (Ok(_), Err(error)) => panic!("{error}: {assignment}"),
        }
    }
    let Ok(expected) = expected else { return Outcome::Undefined };
    let operands: Vec<(&str, SparseTensor<T>)> =
        tensors.iter().map(|tensor| (tensor.name(), packed(&maps[tensor.name()], tensor))).collect();
    let operands: Vec<(&str, &SparseTensor<T>)> = operands.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let mut computation = Computation::new(&assignment).unwrap();
    let mut applied = Vec::new();
    let mut planned = match commands > 0 && random.bool() {
        true => positions(computation.statement(), random),
        false => Vec::new(),
    };
    planned.reverse();
    for _ in 0..if commands == 0 { 0 } else { random.usize(..commands) + planned.len() } {
        let Some(command) = planned.pop().or_else(|| command(computation.statement(), random)) else { break };
        if let Ok(changed) = computation.scheduled(&Schedule { commands: vec![command.clone()] })
            && size(changed.statement()) < 30_000.0
        {
            computation = changed;
            applied.push(command);
        }
    }
    let planned = || {
        let formats = tensors.iter().map(|tensor| {
            format!("{}{:?}: {} filled with {}", tensor.name(), tensor.dimensions(), tensor.format(), tensor.fill())
        });
        let formats = formats.collect::<Vec<_>>().join("; ");
        let schedule = Schedule { commands: applied.clone() };
        format!("{assignment}\n{formats}\n{schedule}\n{}\n{maps:?}", computation.statement())
    };
    let shown = || format!("{}\n{}", planned(), computation.loops());
    let team = InTurn(random.usize(1..5));
    let told = OnPanic(&planned);
    let run = computation.run_by(&operands, kernels, &team);
    drop(told);
    let result = match run {
        Ok(result) => result,
        Err(SparseError::Divisor(error)) => {
            let divisors = assignment.checked_divisors();
            let divisor = divisors.iter().find(|divisor| divisor.name() == error.tensor);
            let element =
                maps[divisor.unwrap_or_else(|| panic!("{error}\n{}", shown())).name()].get(&error.coordinates);
            let zero = cast(Scalar::I32(0), T::TYPE);
            #[expect(clippy::eq_op, reason = "what is not a number alone differs from itself")]
            let is_divisor = element != zero && element == element;
            assert!(!is_divisor, "{error}\n{}", shown());
            return Outcome::Refused;
        }
        Err(error) => panic!("{error}\n{}", shown()),
    };
    result.check().unwrap_or_else(|error| panic!("{error}\n{}", shown()));
    // In a workspace a zero counts as no entry, and is not multiplied with what is no number.
    let counts_by_value = applied.iter().any(|command| matches!(command, Command::Precompute { .. }));
    DenseArray::from_fn(T::TYPE, result.dimensions(), |at| {
        let (found, expected) = (result.get(at).to_scalar(), expected.get(at));
        let is_left_out =
            || counts_by_value && matches!(cast(expected, ElementType::C64), Scalar::C64(value) if value.is_nan());
        assert!(is_near(found, expected) || is_left_out(), "{found} for {expected} at {at:?} of {}", shown());
        found
    });
    Outcome::Right
}

/// Tells what was run, if that panics.
struct OnPanic<'a>(&'a dyn Fn() -> String);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in {}", (self.0)());
        }
    }
}

/// So many failures are told at once.
const MOST_FAILURES: usize = 12;

/// Tries so many programs, from a seed, and tells how many were right, undefined and refused.
fn try_all(count: usize, seed: u64, commands: usize, kernels: &Kernels) -> [usize; 3] {
    let (mut outcomes, mut failures) = ([0; 3], 0);
    let types =
        [ElementType::F64, ElementType::F64, ElementType::F64, ElementType::F32, ElementType::I32, ElementType::I64];
    for number in 0..count {
        // Each has a seed of its own, so that it can be tried alone.
        let mut random = Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        let element = types[random.usize(..types.len())];
        let problem = Problem::with_all_operators(element, &mut random);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(
            || with_element!(element, T => tried::<T>(&problem, commands, kernels, &mut random)),
        ));
        match outcome {
            Ok(outcome) => outcomes[outcome as usize] += 1,
            Err(reason) => {
                eprintln!("program {number} of seed {seed}, {commands} commands");
                failures += 1;
                if failures == MOST_FAILURES {
                    std::panic::resume_unwind(reason);
                }
            }
        }
    }
    assert_eq!(failures, 0);
    outcomes
}

#[test]
fn operations_mean_the_same_in_all_formats() {
    let (times, seed) = times();
    let outcomes = try_all(600 * times, 31 + seed, 0, &Kernels::new(None, None));
    assert!(outcomes[0] > 400 * times && outcomes[1] < 150 * times && outcomes[2] < 60 * times, "{outcomes:?}");
}

#[test]
fn operations_mean_the_same_after_random_schedules() {
    let (times, seed) = times();
    let outcomes = try_all(200 * times, 57 + seed, 8, &Kernels::new(None, None));
    assert!(outcomes[0] > 130 * times, "{outcomes:?}");
}

#[test]
fn operations_mean_the_same_in_compiled_kernels() {
    let (times, seed) = times();
    let folder = tempfile::tempdir().unwrap();
    let kernels = Kernels::new(Compiler::find(), Some(folder.path().to_owned()));
    let outcomes = try_all(15 * times, 91 + seed, 0, &kernels);
    assert!(outcomes[0] > 7 * times, "{outcomes:?}");
}

const MATRICES: [&str; 12] =
    ["csr", "csc", "coo", "dcsr", "{D,B}", "bcsr:2x2", "{C,D}", "{C,D}(1,0)", "ell", "dia", "hash", "{D,L}"];

fn matrix(format: &str, fill: f64, entries: &[(i64, i64, f64)]) -> SparseTensor<f64> {
    let mut list = EntryList::new(2);
    entries.iter().for_each(|(i, j, value)| list.push(&[*i, *j], *value));
    pack(&format.parse().unwrap(), &[2, 2], fill, list, Duplicates::Refuse).unwrap().tensor
}

/// The entries of a matrix: row, column and value.
type Entries<'a> = &'a [(i64, i64, f64)];

/// The result of a statement for matrices `A` and `B` in a format and a vector `x`; the results `C` and `c` are stored
/// as is said.
fn computed(
    text: &str,
    (format, result): (&str, &str),
    (a, b): (Entries<'_>, Entries<'_>),
    x: [f64; 2],
) -> Result<Vec<f64>, SparseError> {
    computed_of_filled(text, (format, result), (0.0, a, b), x)
}

/// The same of matrices that are filled with something.
fn computed_of_filled(
    text: &str,
    (format, result): (&str, &str),
    (fill, a, b): (f64, Entries<'_>, Entries<'_>),
    x: [f64; 2],
) -> Result<Vec<f64>, SparseError> {
    let two =
        |name: &str, format: &str| TensorVariable::new(name, ElementType::F64, [2, 2]).stored(format.parse().unwrap());
    let filled = |name: &str| two(name, format).filled(Scalar::F64(fill));
    let one = |name: &str| TensorVariable::new(name, ElementType::F64, [2]);
    let tensors = [filled("A"), two("B", format), one("x"), two("C", result), one("c")];
    let assignment = parse(text, &tensors).unwrap();
    let (a, b) = (matrix(format, fill, a), matrix(format, 0.0, b));
    let x = SparseTensor::from_elements(&[2], 0.0, x.to_vec())?;
    let operands = [("A", &a), ("B", &b), ("x", &x)];
    let found = Computation::new(&assignment)?.run_by(&operands, &Kernels::new(None, None), &InTurn(2))?;
    let all = DenseArray::from_fn(ElementType::F64, found.dimensions(), |at| found.get(at).to_scalar());
    Ok(all.values().iter().map(|value| f64::from_scalar(*value).unwrap()).collect())
}

fn assert_same(found: &[f64], expected: &[f64], what: &str) {
    let is_same = |(one, other): (&f64, &f64)| one == other || one.is_nan() && other.is_nan();
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(is_same), "{what}: {found:?}");
}

#[test]
fn quotients_have_the_value_of_fill_values_where_nothing_is_stored() {
    let nan = f64::NAN;
    let (a, b) = ([(0, 1, 2.0), (1, 0, 4.0)], [(0, 1, 1.0), (1, 1, 2.0)]);
    for format in MATRICES {
        for result in ["rows", "csr", "bcsr:2x2"] {
            for (text, expected) in [
                ("C(i,j) = A(i,j) / B(i,j)", [nan, 2.0, f64::INFINITY, 0.0]),
                ("C(i,j) = A(i,j) / A(i,j)", [nan, 1.0, 1.0, nan]),
                ("C(i,j) = A(i,j) / 0", [nan, f64::INFINITY, f64::INFINITY, nan]),
                ("C(i,j) = mod(A(i,j), B(i,j))", [nan, 0.0, nan, 0.0]),
                ("C(i,j) = A(i,j) / 2", [0.0, 1.0, 2.0, 0.0]),
                ("C(i,j) = pow(A(i,j), B(i,j))", [1.0, 2.0, 1.0, 0.0]),
                ("C(i,j) = A(i,j) / B(i,j) * 0", [nan, 0.0, nan, 0.0]),
            ] {
                let found = computed(text, (format, result), (&a, &b), [1.0; 2]).unwrap();
                assert_same(&found, &expected, &format!("{text} of {format} as {result}"));
            }
        }
        let sums = computed("c(i) = A(i,j) / B(i,j)", (format, "rows"), (&a, &b), [1.0; 2]).unwrap();
        assert_same(&sums, &[nan, f64::INFINITY], format);
        let sums = computed("c(j) = A(i,j) / B(i,j)", (format, "rows"), (&a, &b), [1.0; 2]).unwrap();
        assert_same(&sums, &[nan, 2.0], format);
    }
}

#[test]
fn products_leave_out_what_has_no_entry_in_all_formats() {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    let (a, b) = ([(0, 0, nan), (1, 1, infinity)], [(0, 1, 2.0)]);
    for format in MATRICES {
        for (text, expected) in [
            ("C(i,j) = A(i,j) * B(i,j)", [0.0, 0.0, 0.0, 0.0]),
            ("C(i,j) = A(i,k) * B(k,j)", [0.0, nan, 0.0, 0.0]),
            ("C(i,j) = B(i,j) * x(j)", [0.0, infinity, 0.0, 0.0]),
            ("C(i,j) = A(i,j) + B(i,j) * x(i)", [nan, nan, 0.0, infinity]),
            ("C(i,j) = (A(i,j) + B(i,j)) * x(i)", [nan, nan, 0.0, infinity]),
            ("C(i,j) = max(B(i,j), A(i,j) * x(j))", [nan, 2.0, 0.0, infinity]),
            ("C(i,j) = x(i) / x(i) * B(i,j) + A(i,j)", [nan, nan, 0.0, infinity]),
        ] {
            let found = computed(text, (format, "rows"), (&a, &b), [nan, infinity]).unwrap();
            assert_same(&found, &expected, &format!("{text} of {format}"));
        }
    }
    // A zero that is stored between others is none of the entries, but a given one is, in formats that can tell it.
    for (format, expected) in [("csr", nan), ("coo", nan), ("bcsr:2x2", 0.0), ("{C,D}", 0.0)] {
        let found = computed("c(i) = A(i,j) * x(j)", (format, "rows"), (&[(0, 0, 0.0), (0, 1, 1.0)], &b), [nan, 1.0]);
        assert_same(&found.unwrap(), &[if expected == 0.0 { 1.0 } else { nan }, 0.0], format);
    }
}

#[test]
fn products_leave_out_what_has_no_entry_whatever_it_is_filled_with_in_all_formats() {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    for format in MATRICES {
        let stored = "c(i) = f64(stored(A(i,j))) * A(i,j)";
        let found = computed_of_filled(stored, (format, "rows"), (nan, &[(0, 0, 4.0)], &[]), [1.0; 2]);
        assert_same(&found.unwrap(), &[4.0, 0.0], &format!("{stored} of {format}"));
        // Of two numbers that are chosen from, the other one does not matter.
        let chosen = "C(i,j) = select(A(i,j), B(i,j), x(i)) * A(i,j)";
        let operands = (infinity, &[(0, 0, 0.0)][..], &[(0, 1, 2.0)][..]);
        let found = computed_of_filled(chosen, (format, "rows"), operands, [3.0; 2]);
        assert_same(&found.unwrap(), &[0.0, infinity, 0.0, 0.0], &format!("{chosen} of {format}"));
    }
}

#[test]
fn what_is_found_among_all_elements_within_a_loop_is_the_same_in_all_formats() {
    for format in MATRICES {
        for (text, expected) in [
            ("c(i) = x(i) + reduce(max, k, reduce(max, j, A(k,j)))", [5.0, 6.0]),
            ("c(i) = x(i) + reduce(max, j, reduce(max, k, A(k,j)))", [5.0, 6.0]),
            ("c(i) = x(i) + reduce(max, j, reduce(max, k, A(k,j) * A(k,j)))", [17.0, 18.0]),
        ] {
            let a = [(0, 0, 4.0), (1, 0, -1.0)];
            let found = computed(text, (format, "rows"), (&a, &a), [1.0, 2.0]).unwrap();
            assert_same(&found, &expected, &format!("{text} of {format}"));
        }
    }
}

#[test]
fn a_dense_divisor_is_refused_where_zero_divided_by_it_is_not_zero_and_what_is_stored_alone_is_visited() {
    let a = [(0, 1, 2.0), (1, 0, 4.0)];
    for format in MATRICES {
        for (text, result, expected) in [
            ("C(i,j) = A(i,j) / x(j)", "csr", &[0.0, 0.5, 2.0, 0.0][..]),
            ("c(i) = A(i,j) / x(j)", "rows", &[0.5, 2.0]),
            ("c(i) = mod(A(i,j), x(j))", "rows", &[2.0, 0.0]),
            ("c(i) = A(i,j) / x(j) * x(i)", "rows", &[1.0, 8.0]),
        ] {
            let found = computed(text, (format, result), (&a, &a), [2.0, 4.0]).unwrap();
            assert_same(&found, expected, &format!("{text} of {format}"));
            for wrong in [0.0, f64::NAN] {
                let error = computed(text, (format, result), (&a, &a), [2.0, wrong]).unwrap_err();
                assert!(matches!(&error, SparseError::Divisor(error) if error.coordinates == [1]), "{error}");
            }
        }
        // A zero where nothing is stored keeps its sign, and what is divided by it has that.
        let found = computed("c(i) = 1 / (A(i,j) / x(j))", (format, "rows"), (&a, &a), [-2.0, 4.0]).unwrap();
        assert_same(&found, &[f64::INFINITY; 2], format);
        // Elements of a dense result that are quotients are all computed.
        let found = computed("C(i,j) = A(i,j) / x(j)", (format, "rows"), (&a, &a), [2.0, 0.0]).unwrap();
        assert_same(&found, &[0.0, f64::INFINITY, 2.0, f64::NAN], format);
        let found = computed("c(i) = A(i,j) * (1 / x(j))", (format, "rows"), (&[(1, 0, 4.0)], &a), [2.0, 0.0]);
        assert_same(&found.unwrap(), &[0.0, 2.0], format);
    }
}

/// Extents are so large that visiting all coordinates would never end.
#[test]
fn reductions_visit_what_is_stored_and_combine_the_rest_at_once() {
    let most = 1_i64 << 50;
    let vector = |fill: f64, entries: &[(i64, f64)]| {
        let mut list = EntryList::new(1);
        entries.iter().for_each(|(at, value)| list.push(&[*at], *value));
        pack(&"{C}".parse().unwrap(), &[most], fill, list, Duplicates::Refuse).unwrap().tensor
    };
    let entries = [(5, 3.0), (1 << 40, 2.0), (most - 1, -4.0)];
    for (text, fill, expected) in [
        ("s = reduce(min, i, a(i))", 0.0, -4.0),
        ("s = reduce(max, i, a(i))", 0.0, 3.0),
        ("s = reduce(min, i, a(i) * a(i))", 0.0, 0.0),
        ("s = reduce(max, i, a(i) - 5)", 7.0, 2.0),
        ("s = reduce(max, i, cos(a(i)))", 0.0, 1.0),
        ("s = reduce(and, i, a(i))", 0.0, 0.0),
        ("s = reduce(and, i, a(i) + 1)", 0.0, 1.0),
        ("s = reduce(or, i, a(i) == 0)", 0.0, 1.0),
        ("s = reduce(+, i, a(i) + 1)", 0.0, (most + 1) as f64),
        ("s = reduce(+, i, a(i) == 3)", 3.0, (most - 2) as f64),
        ("s = reduce(max, i, a(i) * 2) - reduce(min, i, a(i))", 1.0, 10.0),
    ] {
        let a = TensorVariable::new("a", ElementType::F64, [most]).stored("{C}".parse().unwrap());
        let tensors = [a.filled(Scalar::F64(fill)), TensorVariable::new("s", ElementType::F64, [])];
        let assignment = parse(text, &tensors).unwrap();
        let found = Computation::new(&assignment).unwrap();
        let found = found.run_by(&[("a", &vector(fill, &entries))], &Kernels::new(None, None), &InTurn(2)).unwrap();
        assert_eq!(found.values(), [expected], "{text} filled with {fill}");
    }
    // Rows and all of a matrix, whose rows are compressed too.
    let wide = 1_i64 << 31;
    let mut list = EntryList::new(2);
    [(3, 4, 2.0), (3, 9, 8.0), (wide - 1, 0, -1.0)].iter().for_each(|(i, j, value)| list.push(&[*i, *j], *value));
    let matrix = pack(&"dcsr".parse().unwrap(), &[wide, wide], 0.0, list, Duplicates::Refuse).unwrap().tensor;
    let a = TensorVariable::new("A", ElementType::F64, [wide, wide]).stored("dcsr".parse().unwrap());
    for (text, expected) in
        [("s = reduce(min, i, reduce(min, j, A(i,j)))", -1.0), ("s = reduce(max, i, reduce(max, j, A(i,j)))", 8.0)]
    {
        let assignment = parse(text, &[a.clone(), TensorVariable::new("s", ElementType::F64, [])]).unwrap();
        let found = Computation::new(&assignment).unwrap();
        let found = found.run_by(&[("A", &matrix)], &Kernels::new(None, None), &InTurn(2)).unwrap();
        assert_eq!(found.values(), [expected], "{text}");
    }
}

/// Programs of a longer run: so many as `MANIPLE_SPARSE_PROGRAMS` says, from the seed `MANIPLE_SPARSE_SEED`.
#[test]
fn operations_mean_the_same_in_a_longer_run() {
    let said = |name| std::env::var(name).ok().and_then(|said| said.parse().ok());
    let count = said("MANIPLE_SPARSE_PROGRAMS").unwrap_or(50) as usize;
    let seed = said("MANIPLE_SPARSE_SEED").unwrap_or(1);
    let kernels = Kernels::new(None, None);
    let outcomes = [try_all(count, seed, 0, &kernels), try_all(count / 4, seed, 8, &kernels)];
    eprintln!("right, undefined and refused: {outcomes:?}");
}
