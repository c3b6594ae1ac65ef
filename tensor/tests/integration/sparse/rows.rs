//! Rows of any length by several threads.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::kernel::{Kernels, Serial, Team};
use maniple_tensor::notation::{DenseArray, TensorVariable, evaluate, parse};
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};

use super::{InTurn, dense, stored, thinned};

/// A product of a matrix, whose rows are empty, long and short, with a vector, by threads that have as many elements
/// each.
#[test]
fn threads_with_as_many_elements_each_multiply_rows_of_any_length() {
    let folder = tempfile::tempdir().unwrap();
    let compiled = Kernels::new(maniple_tensor::kernel::Compiler::find(), Some(folder.path().to_owned()));
    let interpreted = Kernels::new(None, None);
    // None at the beginning, in the middle and at the end; nearly all in one; a few, of one each.
    let rows: [&[i64]; 4] = [&[0, 0, 3, 0, 0, 1, 7, 0], &[1, 0, 90, 0, 2], &[0, 1, 1, 0, 1, 0], &[0, 0]];
    for (format, lengths) in ["csr", "dcsr", "coo"].into_iter().flat_map(|format| rows.map(|rows| (format, rows))) {
        let (height, width) = (lengths.len() as i64, 100);
        let a = TensorVariable::new("A", ElementType::I64, [height, width]).stored(format.parse().unwrap());
        let vector = |name: &str, extent| TensorVariable::new(name, ElementType::I64, [extent]);
        let assignment = parse("y(i) = A(i,j) * x(j)", &[a.clone(), vector("x", width), vector("y", height)]).unwrap();
        let mut entries = EntryList::new(2);
        for (row, &length) in (0..).zip(lengths) {
            (0..length).for_each(|place| entries.push(&[row, (place * 7 + row) % width], place + 1));
        }
        let matrix = pack(a.format(), &[height, width], 0_i64, entries, Duplicates::Refuse).unwrap().tensor;
        let x = SparseTensor::from_elements(&[width], 0, (0..width).collect()).unwrap();
        let operands = [("A", &matrix), ("x", &x)];
        let row_wise = Computation::new(&assignment).unwrap();
        let expected = row_wise.run_by(&operands, &interpreted, &Serial).unwrap();
        let name = row_wise.statement().operands()[0].name().to_owned();
        for parts in ["divide(p, po, pi, 4)", "split(p, po, pi, 3)", "divide(p, po, pi, 200)"] {
            let text = format!("fuse(i, j, f); pos(f, p, {name}); {parts}; parallelize(po, threads, reduced)");
            let balanced = row_wise.scheduled(&text.parse().unwrap()).unwrap();
            for (kernels, team) in [(&interpreted, 3), (&compiled, 3)] {
                let made = balanced.run_by(&operands, kernels, &InTurn(team)).unwrap();
                assert_eq!(made.values(), expected.values(), "{format} {lengths:?} {text}\n{}", balanced.loops());
                let threads = maniple_tensor::kernel::Scoped { threads: team };
                let made = balanced.run_by(&operands, kernels, &threads).unwrap();
                assert_eq!(made.values(), expected.values(), "{format} {lengths:?} {text}\n{}", balanced.loops());
            }
        }
    }
}

#[test]
fn rows_at_the_ends_of_parts_alone_are_combined_atomically() {
    let a = TensorVariable::new("A", ElementType::F64, [9, 9]).stored("csr".parse().unwrap());
    let vector = |name: &str| TensorVariable::new(name, ElementType::F64, [9]);
    let assignment = parse("y(i) = A(i,j) * x(j)", &[a, vector("x"), vector("y")]).unwrap();
    let schedule = "fuse(i, j, f); pos(f, p, A); divide(p, po, pi, 4); parallelize(po, threads, reduced)";
    let scheduled = Computation::new(&assignment).unwrap().scheduled(&schedule.parse().unwrap()).unwrap();
    let loops = scheduled.loops();
    let rows = loops.find("for p in first..end").expect("a loop over rows");
    let expected = "\
                for p in first..end
                    let i: i64 = p
                    block
                        let mut sum: f64 = 0.0f64
                        for p_1 in max(i64(A1_pos[p]), first_1)..min(i64(A1_pos[p + 1]), end_1)
                            let j: i64 = i64(A1_crd[p_1])
                            block
                                let p_2: i64 = po * n_pi_1 + (p_1 - begin_1)
                                sum += A_values[p_1] * x[j]
                        if p == first || p == end - 1
                            atomic y[i] += sum
                        else
                            y[i] += sum
";
    assert_eq!(&loops[rows..], expected.trim_start(), "{loops}");
}

#[test]
fn dense_rows_are_summed_in_blocks_whatever_their_length() {
    let mut random = Rng::with_seed(12);
    let folder = tempfile::tempdir().unwrap();
    let compiled = Kernels::new(maniple_tensor::kernel::Compiler::find(), Some(folder.path().to_owned()));
    let (interpreted, mut in_blocks) = (Kernels::new(None, None), 0);
    for length in [7, 8, 16, 20, 33, 64] {
        let tensor = |name: &str, extents: &[i64], format: &str| {
            TensorVariable::new(name, ElementType::I64, extents.to_vec()).stored(format.parse().unwrap())
        };
        let tensors = [
            tensor("A", &[9, 6], ["csr", "dcsr", "csc"][random.usize(..3)]),
            tensor("B", &[4, 5, 6], "csf:3"),
            tensor("C", &[5, length], "rows"),
            tensor("X", &[6, length], ["rows", "columns"][random.usize(..2)]),
            tensor("Y", &[9, length], "rows"),
            tensor("Z", &[4, length], "rows"),
        ];
        for text in [
            "Y(i,k) = A(i,j) * X(j,k)",
            "Y(i,k) += 2 * A(i,j) * X(j,k)",
            "Y(i,k) = reduce(max, j, A(i,j) * X(j,k))",
            "Z(i,l) = B(i,j,k) * C(j,l) * X(k,l)",
        ] {
            let assignment = parse(text, &tensors).unwrap();
            let computation = Computation::new(&assignment).unwrap();
            in_blocks += usize::from(computation.loops().contains("_sums: i64[0.."));
            let arrays: BTreeMap<String, DenseArray> = assignment
                .tensors()
                .iter()
                .map(|tensor| {
                    let array =
                        DenseArray::from_fn(ElementType::I64, tensor.dimensions(), |_| Scalar::I64(random.i64(-3..4)));
                    (tensor.name().to_owned(), thinned(&array, tensor, &mut random))
                })
                .collect();
            let expected = evaluate(&assignment, &arrays).unwrap();
            let operands: Vec<(&str, SparseTensor<i64>)> = tensors
                .iter()
                .filter_map(|tensor| Some((tensor.name(), stored(arrays.get(tensor.name())?, tensor))))
                .collect();
            let operands: Vec<(&str, &SparseTensor<i64>)> =
                operands.iter().map(|(name, tensor)| (*name, tensor)).collect();
            for kernels in [&interpreted, &compiled] {
                let result = computation.run_by(&operands, kernels, &InTurn(3)).unwrap();
                assert_eq!(dense(&result), expected, "{text} {length}\n{}", computation.loops());
            }
        }
    }
    assert!(in_blocks > 10, "{in_blocks} of 24");
}

/// Threads take rows as they come to them, each with a list of its own; whatever the number of threads and of rows.
#[test]
fn chunks_of_rows_give_the_result_in_whatever_order_they_are_taken() {
    let csr = |name: &str| TensorVariable::new(name, ElementType::I64, [23, 23]).stored("csr".parse().unwrap());
    let multiply = parse("Y(i,j) = A(i,k) * A(k,j)", &[csr("Y"), csr("A")]).unwrap();
    let mut random = Rng::with_seed(2);
    let array = DenseArray::from_fn(ElementType::I64, &[23, 23], |_| Scalar::I64(random.i64(-2..3).max(0)));
    let a: SparseTensor<i64> = stored(&array, &csr("A"));
    let expected = evaluate(&multiply, &[("A".to_owned(), array)].into()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let compiled = Kernels::new(maniple_tensor::kernel::Compiler::find(), Some(folder.path().to_owned()));
    for (length, members) in [(1, 1), (4, 3), (7, 40), (100, 2)] {
        let text = format!("parallelize(i, threads); chunk(i, {length})");
        let schedule = Schedule::parse(&text, &[csr("Y"), csr("A")]).unwrap();
        assert_eq!(schedule.to_string().trim_end(), text.replace("; ", "\n"));
        let computation = Computation::new(&multiply).unwrap().scheduled(&schedule).unwrap();
        assert!(computation.loops().contains("chunks for part in"), "{}", computation.loops());
        for kernels in [&Kernels::new(None, None), &compiled] {
            let team: &dyn Team = &maniple_tensor::kernel::Scoped { threads: members };
            let found = computation.run_by(&[("A", &a)], kernels, team).unwrap();
            assert_eq!(dense(&found), expected, "{length} by {members}");
        }
    }
}
