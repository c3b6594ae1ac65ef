//! The rules of the loop IR, one by one.

use super::*;
use crate::element::ElementType::{C64, F64, I64};
use crate::element::Scalar;

fn kernel(parameters: Vec<Parameter>, body: Statement) -> Kernel {
    Kernel { name: "k".into(), parameters, body }
}

fn vector(name: &str, access: Access) -> Buffer {
    Buffer::new(name, F64, 1, access)
}

fn rule(parameters: &[Buffer], body: Statement) -> Rule {
    let parameters = parameters.iter().cloned().map(Parameter::Buffer).collect();
    verify(&kernel(parameters, body)).expect_err("the rule is broken").rule
}

#[test]
fn names_are_identifiers() {
    for name in ["", "2x", "a b", "ä", "a;"] {
        let variable = Variable::index(name);
        assert_eq!(rule(&[], Statement::bind(&variable, 0)), Rule::Name(name.into()));
    }
    assert!(verify(&kernel(vec![], Statement::bind(&Variable::index("_int_2"), 0))).is_ok());
}

#[test]
fn a_name_is_bound_once_on_a_path_and_again_on_another() {
    let i = Variable::index("i");
    let each = |body| Statement::for_each(&i, 0, 4, body);
    assert_eq!(rule(&[], each(each(Statement::nothing()))), Rule::BoundTwice("i".into()));
    let twice = Statement::sequence([each(Statement::nothing()), each(Statement::nothing())]);
    assert_eq!(verify(&kernel(vec![], twice)), Ok(()));
    assert_eq!(rule(&[vector("i", Access::Read)], each(Statement::nothing())), Rule::BoundTwice("i".into()));
}

#[test]
fn names_are_bound_before_they_are_used() {
    let (i, a) = (Variable::index("i"), vector("a", Access::Update));
    assert_eq!(
        rule(std::slice::from_ref(&a), Statement::store(&a, [i.value()], Scalar::F64(0.0))),
        Rule::Unbound("i".into())
    );
    assert_eq!(rule(&[], Statement::store(&a, [0.into()], Scalar::F64(0.0))), Rule::Unbound("a".into()));
    // What a sequence binds ends with it.
    let inner = Statement::Sequence(vec![Statement::bind(&i, 1)]);
    let outer = Statement::Sequence(vec![inner, Statement::store(&a, [i.value()], Scalar::F64(0.0))]);
    assert_eq!(rule(&[a], outer), Rule::Unbound("i".into()));
}

#[test]
fn types_agree() {
    let a = vector("a", Access::Update);
    let wrong = Statement::store(&a, [0.into()], 1);
    assert_eq!(rule(std::slice::from_ref(&a), wrong), Rule::Type { expected: F64.into(), found: I64.into() });
    let index = Expression::constant(1.0);
    let wrong = Statement::store(&a, [index.clone()], Scalar::F64(0.0));
    assert_eq!(rule(std::slice::from_ref(&a), wrong), Rule::Type { expected: I64.into(), found: F64.into() });
    let wrong = Statement::when(index.clone(), Statement::nothing());
    assert_eq!(rule(&[], wrong), Rule::Type { expected: Type::Bool, found: F64.into() });
    let wrong = Statement::store(&a, [0.into()], index + 1);
    assert_eq!(rule(&[a], wrong), Rule::Type { expected: F64.into(), found: I64.into() });
}

#[test]
fn operators_are_for_the_types_that_have_them() {
    let z = Variable::new("z", C64);
    let of = |value: Expression| {
        let body = Statement::bind(&Variable::new("y", C64), value);
        verify(&kernel(vec![Parameter::Scalar(z.clone())], body)).expect_err("undefined").rule
    };
    let undefined = |operator| Rule::Undefined { operator, found: C64.into() };
    assert_eq!(of(z.value().minimum(z.value())), undefined("min"));
    assert_eq!(of(z.value().less(z.value())), undefined("<"));
    assert_eq!(of(z.value() % z.value()), undefined("%"));
    assert_eq!(of(z.value().floor_divide(z.value())), undefined("floor_divide"));
    assert_eq!(of(Expression::call(Intrinsic::Floor, [z.value()])), undefined("floor"));
    assert_eq!(of(z.value().cast(F64)), Rule::Cast { from: C64.into(), to: F64 });
    assert_eq!(
        of(Expression::call(Intrinsic::Pow, [z.value()])),
        Rule::Arguments { function: Intrinsic::Pow, found: 1 }
    );
}

#[test]
fn accesses_have_an_index_for_each_dimension() {
    let a = vector("a", Access::Update);
    let wrong = Statement::store(&a, [], Scalar::F64(0.0));
    assert_eq!(rule(std::slice::from_ref(&a), wrong), Rule::Rank { buffer: "a".into(), rank: 1, found: 0 });
    let wrong = Statement::bind(&Variable::index("n"), a.high(1));
    let dimension = Rule::Dimension { buffer: "a".into(), rank: 1, dimension: 1 };
    assert_eq!(rule(std::slice::from_ref(&a), wrong), dimension);
    assert_eq!(rule(&[a.with_contiguous(Some(1))], Statement::nothing()), dimension);
}

#[test]
fn only_what_may_change_is_changed() {
    let a = vector("a", Access::Read);
    assert_eq!(
        rule(std::slice::from_ref(&a), Statement::store(&a, [0.into()], Scalar::F64(0.0))),
        Rule::ReadOnly("a".into())
    );
    let n = Variable::index("n");
    let wrong = Statement::Sequence(vec![Statement::bind(&n, 0), Statement::set(&n, 1)]);
    assert_eq!(rule(&[], wrong), Rule::Immutable("n".into()));
}

#[test]
fn parallel_loops_carry_nothing_but_one_reduction() {
    let (i, s) = (Variable::index("i"), Variable::index("s"));
    let around = |kind, body| {
        let each = Statement::for_each(&i, 0, 4, body).with_kind(kind);
        kernel(vec![], Statement::Sequence(vec![Statement::bind_mutable(&s, 0), each]))
    };
    let add = || Statement::set(&s, i.value()).reduce(Reduction::Sum);
    let bad = [
        Statement::set(&s, i.value()),
        Statement::Sequence(vec![add(), Statement::set(&s, 1).reduce(Reduction::Product)]),
        Statement::set(&s, s.value() + 1).reduce(Reduction::Sum),
        Statement::Sequence(vec![add(), Statement::when(s.value().less(3), Statement::nothing())]),
    ];
    for kind in [LoopKind::Threads, LoopKind::Vector, LoopKind::Block] {
        assert_eq!(verify(&around(kind, add())), Ok(()));
        for body in &bad {
            let found = verify(&around(kind, body.clone())).expect_err("carried");
            assert_eq!(found.rule, Rule::Carried("s".into()));
        }
    }
    for body in bad {
        assert_eq!(verify(&around(LoopKind::Serial, body)), Ok(()));
    }
}

#[test]
fn parallel_loops_are_not_broken() {
    let i = Variable::index("i");
    let broken = Statement::for_each(&i, 0, 4, Statement::Break);
    assert_eq!(verify(&kernel(vec![], broken.clone())), Ok(()));
    assert_eq!(rule(&[], broken.with_kind(LoopKind::Vector)), Rule::BreaksParallel);
    assert_eq!(rule(&[], Statement::Break), Rule::NoLoop);
    assert_eq!(rule(&[], Statement::Continue), Rule::NoLoop);
}

#[test]
fn warps_and_threads_are_of_a_block() {
    let each = |name: &str, kind, body| Statement::for_each(&Variable::index(name), 0, 4, body).with_kind(kind);
    let thread = each("t", LoopKind::Thread, Statement::nothing());
    assert_eq!(rule(&[], thread.clone()), Rule::Gpu("threads"));
    assert_eq!(rule(&[], each("w", LoopKind::Warp, Statement::nothing())), Rule::Gpu("warps"));
    let twice = each("b", LoopKind::Block, each("s", LoopKind::Thread, thread.clone()));
    assert_eq!(rule(&[], twice), Rule::Gpu("threads"));
    let good = each("b", LoopKind::Block, each("w", LoopKind::Warp, thread));
    assert_eq!(verify(&kernel(vec![], good)), Ok(()));
}

#[test]
fn deep_nesting_is_refused_and_no_stack_overflows() {
    let mut value = Expression::index(0);
    for _ in 0..5000 {
        value = value + 1;
    }
    assert!(matches!(rule(&[], Statement::bind(&Variable::index("n"), value)), Rule::Depth(_)));
}

#[test]
fn errors_say_where_and_what_to_do() {
    let a = vector("a", Access::Update);
    let body = Statement::for_each(&Variable::index("i"), a.low(0), a.high(0), Statement::store(&a, [0.into()], 1));
    let error = verify(&kernel(vec![Parameter::Buffer(a)], body)).expect_err("types differ");
    assert_eq!(error.to_string(), "kernel `k`, at `a[0] = 1`: expected f64, found i64: insert a cast");
}

#[test]
fn a_reduction_into_one_element_goes_through_a_scalar_in_parallel_loops() {
    let (a, x) = (Buffer::new("a", F64, 0, Access::Update), vector("x", Access::Read));
    let i = Variable::index("i");
    let body = Statement::store(&a, [], x.load([i.value()])).reduce(Reduction::Sum);
    let each = Statement::for_each(&i, x.low(0), x.high(0), body);
    let parameters = vec![Parameter::Buffer(a), Parameter::Buffer(x)];
    let serial = kernel(parameters.clone(), each.clone());
    assert_eq!(check(&serial).expect("legal").kernel(), &serial);
    let parallel = check(&kernel(parameters, each.with_kind(LoopKind::Vector))).expect("legal");
    assert_eq!(
        parallel.kernel().body.to_string(),
        "let mut a_sum0: f64 = 0.0f64\n\
         vector for i in low(x, 0)..high(x, 0)\n\
         \x20   a_sum0 += x[i]\n\
         a[] += a_sum0\n"
    );
}

#[test]
fn what_is_atomic_stays_atomic_for_the_loops_around() {
    let (y, x) = (vector("y", Access::Update), vector("x", Access::Read));
    let (i, j) = (Variable::index("i"), Variable::index("j"));
    let store = Statement::store(&y, [i.value() / 2], x.load([j.value()])).reduce(Reduction::Sum).atomic();
    let inner = Statement::for_each(&j, 0, 4, store).with_kind(LoopKind::Vector);
    let outer = Statement::for_each(&i, 0, 4, inner).with_kind(LoopKind::Threads);
    let checked = check(&kernel(vec![Parameter::Buffer(y), Parameter::Buffer(x)], outer)).expect("legal");
    assert!(checked.kernel().to_string().contains("atomic y[i / 2] += y_sum0"), "{}", checked.kernel());
}

#[test]
fn text_has_the_parentheses_that_it_needs_and_no_more() {
    let [a, b, c] = ["a", "b", "c"].map(|name| Variable::index(name).value());
    let text = |value: Expression| value.to_string();
    assert_eq!(text((a.clone() + b.clone()) * c.clone()), "(a + b) * c");
    assert_eq!(text(a.clone() + b.clone() * c.clone()), "a + b * c");
    assert_eq!(text(a.clone() - (b.clone() - c.clone())), "a - (b - c)");
    assert_eq!(text(a.clone() - b.clone() - c.clone()), "a - b - c");
    assert_eq!(text(-(a.clone() + b.clone())), "-(a + b)");
    assert_eq!(text(!a.clone().less(b.clone()).and(b.less(c))), "!(a < b && b < c)");
    assert_eq!(text(a.ceiling_divide(4)), "-floor_divide(-a, 4)");
}

#[test]
fn bodies_are_repeated_as_often_as_their_code_stays_small() {
    let (i, j, to) = (Variable::index("i"), Variable::index("j"), vector("to", Access::Update));
    let store = || Statement::store(&to, [i.value()], Expression::Constant(Scalar::F64(1.0)));
    assert_eq!(Statement::copies(4, &store()), 4);
    assert_eq!(Statement::copies(0, &store()), 1);
    let once = Statement::copies(u32::MAX, &store());
    assert!(once >= 1000, "{once}");
    let inner = Statement::for_each(&j, 0, 9, store()).with_unroll(100);
    // The copies of the inner loop are copied too.
    let outer = Statement::copies(u32::MAX, &inner);
    assert!((2..=once / 100).contains(&outer), "{outer}");
    let all = Statement::sequence((0..2000).map(|_| store()));
    assert_eq!(Statement::copies(u32::MAX, &all), 1);
}
