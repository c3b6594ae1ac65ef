//! One kernel serves tensors of any size.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple_tensor::choose::choose;
use maniple_tensor::concrete::Statement;
use maniple_tensor::cost::Rates;
use maniple_tensor::element::ElementType::I64;
use maniple_tensor::kernel::Scoped;
use maniple_tensor::notation::{DenseArray, IndexVariable, evaluate, parse_with_extents};
use maniple_tensor::plan::{Plan, RunError};

use crate::common;

fn statement(text: &str, extents: &[(&str, i64)]) -> maniple_tensor::notation::Assignment {
    let extents: Vec<_> = extents.iter().map(|(name, extent)| (IndexVariable::new(name), *extent)).collect();
    parse_with_extents(text, I64, &extents).expect("a statement")
}

/// Elements that differ from one another, for all tensors that are read.
fn operands(assignment: &maniple_tensor::notation::Assignment) -> BTreeMap<String, DenseArray> {
    let mut random = fastrand::Rng::with_seed(1);
    let elements = |dimensions: &[i64], random: &mut fastrand::Rng| {
        DenseArray::from_fn(I64, dimensions, |_| maniple_tensor::element::Scalar::I64(random.i64(-9..10)))
    };
    let tensors = assignment.tensors();
    tensors.iter().map(|tensor| (tensor.name().to_owned(), elements(tensor.dimensions(), &mut random))).collect()
}

#[test]
fn a_hundred_sizes_take_one_compilation() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(kernels) = common::compiled(&folder) else { return };
    for (text, name) in [
        ("y(i) = A(i,j) * x(j) + b(i)", "sums in scalars"),
        ("A(i,j) = B(i,j) + 2 * B(i,j)", "elementwise"),
        ("y(i) = reduce(max, j, A(i,j) * x(j))", "a reduction"),
    ] {
        let mut executables = Vec::new();
        for size in 0..100 {
            let assignment = statement(text, &[("i", 1 + size % 7 + size / 2), ("j", 1 + size)]);
            let plan =
                Plan::new(&choose(&assignment, 1, &Rates::default()).best().algorithm.statement).expect("a plan");
            let executable = kernels.get(&plan.leaf().kernel).expect("a kernel");
            let operands = operands(&assignment);
            let (found, _) = plan
                .run_with(&operands, &mut |_, arguments| {
                    // SAFETY: the interpreter found nothing wrong with the plan, in the tests of plans.
                    unsafe { executable.call(arguments, &Scoped { threads: 2 }) }.map_err(RunError::from)
                })
                .expect("it runs");
            assert_eq!(found, evaluate(&assignment, &operands).expect("a value"), "{text}, size {size}");
            executables.push(executable);
        }
        assert!(executables.iter().all(|one| Arc::ptr_eq(one, &executables[0])), "{name}: more than one kernel");
    }
    let made = std::fs::read_dir(folder.path().join("kernels")).expect("kernels are there");
    let libraries = made.filter(|file| {
        file.as_ref().is_ok_and(|file| file.path().extension().is_some_and(|extension| extension == "so"))
    });
    assert_eq!(libraries.count(), 3);
}

#[test]
fn blocks_of_a_fixed_length_and_promised_extents_are_numbers_in_kernels() {
    let scheduled = |i: i64, j: i64| {
        let statement = Statement::new(&statement("A(i,j) = B(i,j) + 1", &[("i", i), ("j", j)]));
        let statement = statement.split("i", "io", "ii", 32).expect("splits").bound("j", "jb", j).expect("bounds");
        Plan::new(&statement).expect("a plan").leaf().clone()
    };
    let leaf = scheduled(100, 10);
    assert_eq!(
        leaf.kernel.to_string(),
        "kernel A(A: update i64[2], B: read i64[2], n_i: i64)\n\
         \x20   let n_io: i64 = -floor_divide(-n_i, 32)\n\
         \x20   for io in 0..n_io\n\
         \x20       for ii in 0..min(32, n_i - io * 32)\n\
         \x20           let i: i64 = io * 32 + ii\n\
         \x20           for jb in 0..10\n\
         \x20               A[i, jb] = B[i, jb] + 1\n"
    );
    assert_eq!(leaf.sizes, [("i".into(), 100)]);
    assert_eq!(scheduled(7, 10).kernel, leaf.kernel);
    assert_ne!(scheduled(100, 11).kernel, leaf.kernel);
}

#[test]
fn empty_loops_have_kernels_of_their_own() {
    let assignment = statement("y(i) = A(i,j) * x(j) + b(i)", &[("i", 3), ("j", 0)]);
    let plan = Plan::new(&Statement::new(&assignment)).expect("a plan");
    assert!(plan.leaf().sizes.is_empty());
    let operands = operands(&assignment);
    assert_eq!(
        plan.run_sequentially(&operands).expect("it runs").0,
        evaluate(&assignment, &operands).expect("a value")
    );
}
