//! Tests of the checks of the interpreter.

use super::*;
use crate::element::ElementType::{F64, I32, I64};
use crate::element::{Element, Scalar};
use crate::loops::*;

fn checked(parameters: Vec<Parameter>, body: Statement) -> Checked {
    check(&Kernel { name: "k".into(), parameters, body }).expect("the kernel keeps the rules")
}

/// The value of an expression of integers.
fn evaluate(value: Expression) -> Result<i64, KernelError> {
    let result = Buffer::new("result", I64, 0, Access::Update);
    let kernel = checked(vec![Parameter::Buffer(result.clone())], Statement::store(&result, [], value));
    let mut elements = [0_i64];
    interpret(&kernel, &mut [View::dense_mut(&mut elements, &[]).expect("fits").into()], true)?;
    Ok(elements[0])
}

fn value(value: i64) -> Expression {
    value.into()
}

#[test]
fn integers_wrap() {
    assert_eq!(evaluate(value(i64::MAX) + 1), Ok(i64::MIN));
    assert_eq!(evaluate(-value(i64::MIN)), Ok(i64::MIN));
    assert_eq!(evaluate(value(i64::MIN) / -1), Ok(i64::MIN));
    assert_eq!(evaluate(value(i64::MIN) % value(-1)), Ok(0));
    assert_eq!(evaluate(Expression::call(Intrinsic::Abs, [value(i64::MIN)])), Ok(i64::MIN));
}

#[test]
fn quotients_are_rounded_to_zero_or_down() {
    for (left, right, quotient, remainder, down, modulo) in [
        (7, 2, 3, 1, 3, 1),
        (-7, 2, -3, -1, -4, 1),
        (7, -2, -3, 1, -4, -1),
        (-7, -2, 3, -1, 3, -1),
        (-6, 2, -3, 0, -3, 0),
    ] {
        assert_eq!(evaluate(value(left) / right), Ok(quotient));
        assert_eq!(evaluate(value(left) % right), Ok(remainder));
        assert_eq!(evaluate(value(left).floor_divide(right)), Ok(down));
        assert_eq!(evaluate(value(left).floor_remainder(right)), Ok(modulo));
    }
    let bits: Vec<_> = (0..64).map(|number| evaluate(value(-3).bit(number))).collect();
    assert!(bits.iter().enumerate().all(|(number, bit)| *bit == Ok(i64::from(number != 1))), "{bits:?}");
    assert_eq!(evaluate(value(4).bit(66)), Ok(1));
    for (number, from, expected) in [
        (40, 0, 3),
        (40, 3, 3),
        (40, 4, 5),
        (40, 6, 64),
        (0, 0, 64),
        (-8, 0, 3),
        (i64::MIN, 0, 63),
        (1, 64, 64),
        (1, -1, 64),
    ] {
        assert_eq!(evaluate(value(number).next_bit(from)), Ok(expected), "{number} from {from}");
    }
    assert_eq!(evaluate(value(7).ceiling_divide(2)), Ok(4));
    assert_eq!(evaluate(value(-7).ceiling_divide(2)), Ok(-3));
}

#[test]
fn dividing_an_integer_by_zero_is_an_error() {
    let error = Err(KernelError::DivisionByZero { kernel: "k".into() });
    for operator in
        [BinaryOperator::Divide, BinaryOperator::Remainder, BinaryOperator::FloorDivide, BinaryOperator::FloorRemainder]
    {
        assert_eq!(evaluate(value(1).binary(operator, 0)), error);
    }
    // What is not needed is not evaluated.
    let bad = || (value(1) / 0).equal(0);
    assert_eq!(evaluate(Expression::Bool(true).or(bad()).select(1, value(1) / 0)), Ok(1));
    assert_eq!(evaluate(Expression::Bool(false).and(bad()).select(value(1) / 0, 2)), Ok(2));
}

#[test]
fn casts_of_floats_saturate() {
    let cast = |value: f64| evaluate(Expression::constant(value).cast(I32).cast(I64));
    assert_eq!(cast(1e300), Ok(i32::MAX.into()));
    assert_eq!(cast(-1e300), Ok(i32::MIN.into()));
    assert_eq!(cast(f64::NAN), Ok(0));
    assert_eq!(cast(-1.9), Ok(-1));
}

/// Runs `body` over `a`, a buffer of the elements 0 to 9 at the indices 10 to 19.
fn over(body: impl Fn(&Buffer) -> Statement) -> Result<Vec<f64>, KernelError> {
    let a = Buffer::new("a", F64, 1, Access::Update);
    let body = body(&a);
    let kernel = checked(vec![Parameter::Buffer(a)], body);
    let mut elements: Vec<f64> = (0..10).map(f64::from).collect();
    let view = View::update(&mut elements, &[(10, 20)], &[1]).expect("fits");
    interpret(&kernel, &mut [view.into()], true)?;
    Ok(elements)
}

#[test]
fn accesses_beside_a_view_are_errors_at_both_ends() {
    let store = |index: i64| over(|a| Statement::store(a, [index.into()], Scalar::F64(7.0)));
    assert_eq!(store(10).expect("in bounds")[0], 7.0);
    assert_eq!(store(19).expect("in bounds")[9], 7.0);
    for index in [9, 20, i64::MIN, i64::MAX] {
        let error = store(index).expect_err("out of bounds");
        assert!(matches!(&error, KernelError::OutOfBounds { indices, .. } if *indices == [index]), "{error}");
    }
}

#[test]
fn parallel_iterations_that_share_an_element_are_found() {
    let i = Variable::index("i");
    let each = |kind, body: fn(&Buffer, Expression) -> Statement| {
        over(|a| Statement::for_each(&i, 11, 19, body(a, i.value())).with_kind(kind))
    };
    let races: [fn(&Buffer, Expression) -> Statement; 5] = [
        // Two store one element.
        |a, i| Statement::store(a, [(i / 2) + 5], Scalar::F64(1.0)),
        // One loads what its neighbour stores, later or earlier.
        |a, i| Statement::store(a, [i.clone()], a.load([i + 1])),
        |a, i| Statement::store(a, [i.clone()], a.load([i - 1])),
        // Two reduce into one element, which is not atomic unless they say so.
        |a, i| Statement::store(a, [(i / 2) + 5], Scalar::F64(1.0)).reduce(Reduction::Sum),
        // One element is reduced into and also loaded.
        |a, i| Statement::store(a, [10.into()], a.load([i - 1])).reduce(Reduction::Sum).atomic(),
    ];
    for body in races {
        for kind in [LoopKind::Threads, LoopKind::Vector, LoopKind::Block] {
            let error = each(kind, body).expect_err("a race");
            assert!(matches!(&error, KernelError::Race { variable, buffer, .. } if variable == "i" && buffer == "a"));
        }
        assert!(each(LoopKind::Serial, body).is_ok());
    }
    let fine: [fn(&Buffer, Expression) -> Statement; 3] = [
        |a, i| Statement::store(a, [i.clone()], a.load([i]) + Scalar::F64(1.0)),
        |a, i| Statement::store(a, [(i / 2) + 5], Scalar::F64(1.0)).reduce(Reduction::Sum).atomic(),
        |a, _| Statement::store(a, [10.into()], Scalar::F64(1.0)).reduce(Reduction::Sum),
    ];
    for body in fine {
        assert_eq!(each(LoopKind::Threads, body), each(LoopKind::Serial, body));
    }
}

#[test]
fn what_was_never_stored_cannot_be_loaded() {
    let run = |zeroed| {
        over(|a| {
            let t = Buffer::new("t", F64, 1, Access::Update);
            let allocate = Statement::Allocate {
                buffer: t.clone(),
                bounds: vec![(5.into(), 8.into())],
                scope: Scope::Private,
                zeroed,
            };
            Statement::Sequence(vec![allocate, Statement::store(a, [10.into()], t.load([6.into()]))])
        })
    };
    assert_eq!(run(true).expect("zeros")[0], 0.0);
    let error = run(false).expect_err("not stored");
    assert_eq!(error, KernelError::Unset { kernel: "k".into(), buffer: "t".into(), indices: vec![6] });
}

#[test]
fn buffers_that_fit_nowhere_are_errors() {
    let error = over(|_| {
        let t = Buffer::new("t", F64, 2, Access::Update);
        Statement::allocate(&t, [(0.into(), i64::MAX.into()), (0.into(), 8.into())])
    });
    assert_eq!(error, Err(KernelError::OutOfMemory { kernel: "k".into() }));
}

#[test]
fn loops_end_as_they_say() {
    // Adds 1 to a[10 + n] for each n that is reached.
    let count = |statement: fn(Statement, Expression) -> Statement| {
        let i = Variable::index("i");
        over(|a| {
            let add = Statement::store(a, [i.value() + 10], Scalar::F64(0.0));
            Statement::for_each(&i, 0, 10, statement(add, i.value()))
        })
        .map(|elements| elements.iter().map(|element| u8::from(*element == 0.0)).collect::<Vec<_>>())
    };
    assert_eq!(count(|add, _| add), Ok(vec![1; 10]));
    let broken = count(|add, i| Statement::Sequence(vec![Statement::when(i.equal(3), Statement::Break), add]));
    assert_eq!(broken, Ok(vec![1, 1, 1, 0, 0, 0, 0, 0, 0, 0]));
    let continued = count(|add, i| Statement::Sequence(vec![Statement::when(i.equal(3), Statement::Continue), add]));
    assert_eq!(continued, Ok(vec![1, 1, 1, 0, 1, 1, 1, 1, 1, 1]));
}

#[test]
fn arguments_must_fit_the_parameters() {
    let a = Buffer::new("a", F64, 1, Access::Update);
    let kernel = checked(vec![Parameter::Buffer(a)], Statement::nothing());
    let run = |argument: Argument<'_>| {
        interpret(&kernel, &mut [argument], true).map_err(|error| error.to_string()).expect_err("does not fit")
    };
    let (mut floats, mut integers) = ([0.0_f64; 4], [0_i64; 4]);
    assert_eq!(
        interpret(&kernel, &mut [], true),
        Err(KernelError::Count { kernel: "k".into(), expected: 1, found: 0 })
    );
    assert_eq!(
        run(2.5_f32.into()),
        "kernel `k` takes a writable view of f64 in 1 dimensions for `a`, and a number of type f32 is given"
    );
    for view in [
        View::dense(&floats, &[4]).expect("fits"),
        View::dense_mut(&mut integers, &[4]).expect("fits"),
        View::dense_mut(&mut floats.clone(), &[2, 2]).expect("fits"),
    ] {
        run(view.into());
    }
    assert_eq!(interpret(&kernel, &mut [View::dense_mut(&mut floats, &[4]).expect("fits").into()], true), Ok(()));
}

#[test]
fn views_stay_in_their_slice() {
    let elements = [0_i32; 12];
    let view = |bounds: &[(i64, i64)], strides: &[i64]| View::read(&elements, bounds, strides).is_ok();
    assert!(view(&[(5, 8), (0, 4)], &[4, 1]));
    assert!(view(&[(0, 0), (0, i64::MAX)], &[4, 1]));
    assert!(!view(&[(0, 4), (0, 4)], &[4, 1]));
    assert!(!view(&[(0, 3), (0, 4)], &[4, 2]));
    assert!(!view(&[(0, 2)], &[-1]));
    assert!(!view(&[(i64::MIN, i64::MAX)], &[0]));
    assert!(!view(&[(0, i64::MAX), (0, i64::MAX)], &[i64::MAX, i64::MAX]));
    assert!(!view(&[(0, 2)], &[1, 1]));
}

#[test]
fn parts_of_views_have_the_points_that_are_left() {
    let elements: Vec<i64> = (0..12).collect();
    let view = || View::read(&elements, &[(5, 8), (-2, 2)], &[4, 1]).expect("fits");
    let kernel = {
        let (a, sum) = (Buffer::new("a", I64, 2, Access::Read), Buffer::new("sum", I64, 0, Access::Update));
        let [i, j] = ["i", "j"].map(Variable::index);
        let add = Statement::store(&sum, [], a.load([i.value(), j.value()])).reduce(Reduction::Sum);
        let columns = Statement::for_each(&j, a.low(1), a.high(1), add);
        let rows = Statement::for_each(&i, a.low(0), a.high(0), columns);
        checked(vec![Parameter::Buffer(a), Parameter::Buffer(sum)], rows)
    };
    let sum = |view: View<'_>| {
        let mut sum = [0_i64];
        let arguments = &mut [view.into(), View::dense_mut(&mut sum, &[]).expect("fits").into()];
        interpret(&kernel, arguments, true).expect("in bounds");
        sum[0]
    };
    assert_eq!(sum(view()), 66);
    assert_eq!(sum(view().part(&[(6, 7)])), 4 + 5 + 6 + 7);
    assert_eq!(sum(view().part(&[(i64::MIN, 6), (-1, i64::MAX)])), 1 + 2 + 3);
    assert_eq!(sum(view().part(&[(7, 100), (1, 2)]).part(&[(0, 8)])), 11);
    for empty in [[(8, 9), (0, 1)], [(0, 5), (0, 1)], [(7, 6), (0, 1)], [(i64::MAX, i64::MIN), (0, 1)]] {
        assert_eq!(sum(view().part(&empty)), 0);
    }
}

#[test]
fn points_of_a_view_that_is_changed_are_different_elements() {
    let mut elements = vec![0_i32; 100];
    let mut view = |bounds: &[(i64, i64)], strides: &[i64]| View::update(&mut elements, bounds, strides).is_ok();
    assert!(view(&[(0, 3), (0, 4)], &[4, 1]));
    assert!(view(&[(0, 3), (0, 4)], &[1, 3]));
    assert!(view(&[(0, 3), (0, 4), (0, 1)], &[20, 5, 0]));
    assert!(!view(&[(0, 3), (0, 4)], &[3, 1]));
    assert!(!view(&[(0, 3)], &[0]));
}

/// `x.to_scalar()` and back is `x`, whatever the type.
#[test]
fn elements_survive_a_round_trip_through_memory() {
    fn round_trip<T: Element>(elements: [T; 2]) {
        let source = Buffer::new("source", T::TYPE, 1, Access::Read);
        let target = Buffer::new("target", T::TYPE, 1, Access::Update);
        let i = Variable::index("i");
        let copy = Statement::store(&target, [value(1) - i.value()], source.load([i.value()]));
        let kernel = checked(
            vec![Parameter::Buffer(source), Parameter::Buffer(target)],
            Statement::for_each(&i, 0, 2, copy).with_kind(LoopKind::Threads),
        );
        let mut result = [elements[0]; 2];
        let arguments = &mut [
            View::dense(&elements, &[2]).expect("fits").into(),
            View::dense_mut(&mut result, &[2]).expect("fits").into(),
        ];
        interpret(&kernel, arguments, true).expect("runs");
        assert_eq!(result, [elements[1], elements[0]]);
    }
    round_trip([1_i32, -2]);
    round_trip([1_i64 << 40, -2]);
    round_trip([1.5_f32, -2.0]);
    round_trip([1.5e300_f64, -2.0]);
    round_trip([num_complex::Complex::new(1.5_f32, 2.0), num_complex::Complex::new(0.5, -1.0)]);
    round_trip([num_complex::Complex::new(1.5e300_f64, 2.0), num_complex::Complex::new(0.5, -1.0)]);
}
