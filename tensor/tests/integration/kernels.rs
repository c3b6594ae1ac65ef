//! Kernels compute what assignments mean, whatever the schedule.

use crate::common;
use crate::random;
use std::ops::Range;

use fastrand::Rng;
use maniple_tensor::concrete::{Statement, Unit};
use maniple_tensor::element::ElementType::I64;
use maniple_tensor::kernel::{Scoped, interpret};
use maniple_tensor::loops::check;
use maniple_tensor::lower;
use maniple_tensor::notation::{self, IndexVariable, parse_with_extents};
use maniple_tensor::schedule::{Races, ScheduleError};
use random::{Problem, result, schedule};

#[test]
fn kernels_of_random_schedules_give_the_result_of_random_assignments() {
    for seed in 0..200 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let (statement, _) = schedule(&problem.assignment, &mut random);
        let expected = notation::evaluate(&problem.assignment, &problem.operands).unwrap();
        let kernel = lower::whole(&statement);
        let checked = check(&kernel).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{statement}\n{kernel}"));
        let found = result(&statement, &problem.operands, |arguments| {
            interpret(&checked, arguments, true)
                .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{statement}\n{kernel}"));
        });
        assert_eq!(found, expected, "seed {seed}\n{}\n{statement}\n{kernel}", problem.assignment);
    }
}

/// Parts of different lengths, split, fused and reordered by further commands.
#[test]
fn kernels_of_parts_of_different_lengths_give_the_result_of_random_assignments() {
    let mut several = 0;
    for seed in 0..300 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let mut statement = Statement::new(&problem.assignment);
        for number in 0..8 {
            let drawn = match number % 4 {
                0 => random::parts(&statement, &number.to_string(), &mut random),
                _ => random::command(&statement, &mut random),
            };
            if let Some(Ok(changed)) = drawn.map(|command| command.apply(&statement))
                && random::size(&changed) < 30_000.0
            {
                statement = changed;
            }
        }
        several += usize::from(statement.to_string().contains("part_i"));
        let expected = notation::evaluate(&problem.assignment, &problem.operands).unwrap();
        let evaluated = maniple_tensor::concrete::evaluate(&statement, &problem.operands).unwrap();
        assert_eq!(evaluated, expected, "seed {seed}\n{}\n{statement}", problem.assignment);
        let kernel = lower::whole(&statement);
        let checked = check(&kernel).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{statement}\n{kernel}"));
        let found = result(&statement, &problem.operands, |arguments| {
            interpret(&checked, arguments, true)
                .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{statement}\n{kernel}"));
        });
        assert_eq!(found, expected, "seed {seed}\n{}\n{statement}\n{kernel}", problem.assignment);
    }
    assert!(several > 100, "{several}");
}

/// The same, compiled and on several threads.
fn compiled(seeds: Range<u64>) {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let Some(kernels) = common::compiled(&folder) else { return };
    for seed in seeds {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let (statement, _) = schedule(&problem.assignment, &mut random);
        let kernel = lower::whole(&statement);
        let executable = kernels.get(&kernel).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{kernel}"));
        assert!(executable.is_compiled());
        let found = result(&statement, &problem.operands, |arguments| {
            // SAFETY: `kernels_of_random_schedules...` interprets the same kernels with the same arguments, and finds
            // no mistakes.
            let done = unsafe { executable.call(arguments, &Scoped { threads: 3 }) };
            done.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{kernel}"));
        });
        let expected = notation::evaluate(&problem.assignment, &problem.operands).expect("there is an answer");
        assert_eq!(found, expected, "seed {seed}\n{}\n{statement}\n{kernel}", problem.assignment);
    }
}

#[test]
fn compiled_kernels_do_too() {
    compiled(0..100);
}

#[test]
fn compiled_kernels_do_too_for_others() {
    compiled(100..200);
}

fn product(extents: [i64; 3]) -> Statement {
    let extents: Vec<_> =
        ["i", "j", "k"].into_iter().zip(extents).map(|(name, extent)| (IndexVariable::new(name), extent)).collect();
    Statement::new(&parse_with_extents("A(i,j) = B(i,k) * C(k,j)", I64, &extents).expect("the text is fine"))
}

/// The body of the kernel of what is inside of the loops over `fixed`.
fn body(statement: Result<Statement, ScheduleError>, fixed: &[&str]) -> String {
    let fixed: Vec<IndexVariable> = fixed.iter().map(|&name| name.into()).collect();
    let kernel = lower::leaf(&statement.expect("the schedule is legal"), &fixed).to_string();
    kernel.lines().skip(1).map(|line| format!("{}\n", &line[4..])).collect()
}

#[test]
fn loops_over_blocks_that_fit_have_no_conditions() {
    let tiled = product([64, 64, 64])
        .distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[2, 2])
        .and_then(|tiled| tiled.split("k", "ko", "ki", 16))
        .and_then(|tiled| tiled.reorder(["ko", "ii", "ki", "ji"]))
        .and_then(|tiled| tiled.parallelize("ji", Unit::Vector, Races::Forbidden));
    assert_eq!(
        body(tiled, &["io", "jo", "ko"]),
        "for ii in 0..32
    let i: i64 = io * 32 + ii
    for ki in 0..16
        let k: i64 = ko * 16 + ki
        vector for ji in 0..32
            let j: i64 = jo * 32 + ji
            A[i, j] += B[i, k] * C[k, j]
"
    );
}

#[test]
fn blocks_that_are_cut_end_the_innermost_of_their_loops_early() {
    let outer_inside = product([10, 4, 4]).split("i", "io", "ii", 3).and_then(|split| split.reorder(["ii", "io"]));
    let kernel = body(outer_inside, &[]);
    assert!(kernel.starts_with("for ii in 0..3\n    for io in 0..min(4, -floor_divide(-(10 - ii), 3))\n"), "{kernel}");
    let twice = product([10, 4, 4]).split("i", "io", "ii", 4).and_then(|split| split.split("ii", "iio", "iii", 3));
    let kernel = body(twice, &["io"]);
    assert!(
        kernel.contains("for iio in 0..2\n    for iii in 0..min(min(3, 10 - io * 4 - iio * 3), 4 - iio * 3)\n"),
        "{kernel}"
    );
}

#[test]
fn a_cut_block_in_a_fused_loop_is_a_condition() {
    let fused = product([10, 4, 4])
        .split("i", "io", "ii", 3)
        .and_then(|split| split.reorder(["io", "j", "ii"]))
        .and_then(|split| split.fuse("j", "ii", "f"));
    let kernel = body(fused, &["io"]);
    assert!(kernel.contains("if i < 10"), "{kernel}");
}

#[test]
fn iterations_that_reduce_run_at_once_where_their_loop_is_unrolled() {
    let kernel = body(product([4, 7, 5]).unroll("j", 2), &["i"]);
    assert_eq!(
        kernel,
        "for j in 0..3
    let mut sum: i64 = 0
    let mut sum_1: i64 = 0
    for k in 0..5
        block
            sum += B[i, k] * C[k, j * 2 + 0]
        block
            let k_1: i64 = k
            sum_1 += B[i, k_1] * C[k_1, j * 2 + 1]
    A[i, j * 2 + 0] += sum
    A[i, j * 2 + 1] += sum_1
for j_1 in 6..7 unroll 2
    let mut sum_2: i64 = 0
    for k_2 in 0..5
        sum_2 += B[i, k_2] * C[k_2, j_1]
    A[i, j_1] += sum_2
"
    );
}

#[test]
fn loops_are_unrolled_no_further_than_they_go() {
    let whole = body(product([4, 7, 5]).unroll("j", 7), &["i"]);
    assert_eq!(body(product([4, 7, 5]).unroll("j", u32::MAX), &["i"]), whole);
    assert_eq!(body(product([4, 1, 5]).unroll("j", 9), &["i"]), body(product([4, 1, 5]).unroll("j", 1), &["i"]));
    // No more iterations are taken together than there are registers for, however many there are.
    let long = body(product([4, 1_000_000, 5]).unroll("j", 1_000_000), &["i"]);
    assert!(long.matches("let mut sum").count() <= 33, "{long}");
}

#[test]
fn unrolled_loops_give_the_result_whatever_remains() {
    for columns in 0..9 {
        for factor in 2..5 {
            let extents = ["i", "j", "k"].map(IndexVariable::new).into_iter().zip([2, columns, 3]).collect::<Vec<_>>();
            let assignment = parse_with_extents("A(i,j) = B(i,k) * C(k,j)", I64, &extents).unwrap();
            let cut = Statement::new(&assignment).split("j", "jo", "ji", 5).unwrap();
            let statement = cut.unroll("ji", factor).unwrap();
            let operands = random::operands(&assignment, &mut Rng::with_seed(1));
            let kernel = lower::whole(&statement);
            let checked = check(&kernel).unwrap();
            let found = result(&statement, &operands, |arguments| interpret(&checked, arguments, true).unwrap());
            assert_eq!(found, notation::evaluate(&assignment, &operands).unwrap(), "{columns} by {factor}\n{kernel}");
        }
    }
}

#[test]
fn names_of_c_are_good_names() {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let Some(kernels) = common::compiled(&folder) else { return };
    let extents = [("for", 3), ("main", 4)].map(|(name, extent)| (IndexVariable::new(name), extent));
    let assignment = parse_with_extents("int(for) = double(for,main) * size_t(main)", I64, &extents).unwrap();
    let executable = kernels.get(&lower::whole(&Statement::new(&assignment))).unwrap();
    assert!(executable.is_compiled());
}
