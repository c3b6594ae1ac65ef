//! Programs: their text, what they mean, and how assignments are divided.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::concrete::Statement;
use maniple_tensor::cost::Rates;
use maniple_tensor::element::ElementType::{C64, F64, I64};
use maniple_tensor::element::Scalar;
use maniple_tensor::notation::{DenseArray, IndexVariable, NotationErrorKind, TensorVariable};
use maniple_tensor::plan::Plan;
use maniple_tensor::program::Program;

fn program(text: &str, extents: &[(&str, i64)]) -> Program {
    let extents: Vec<_> = extents.iter().map(|(name, extent)| (IndexVariable::new(name), *extent)).collect();
    Program::parse_with_extents(text, I64, &extents).unwrap_or_else(|error| panic!("{error}"))
}

fn divided(text: &str, extents: &[(&str, i64)]) -> Vec<String> {
    program(text, extents).divided(&Rates::default()).statements().iter().map(ToString::to_string).collect()
}

fn operands(tensors: &[TensorVariable], random: &mut Rng) -> BTreeMap<String, DenseArray> {
    let mut array =
        |tensor: &TensorVariable| DenseArray::from_fn(I64, tensor.dimensions(), |_| Scalar::I64(random.i64(-4..5)));
    tensors.iter().map(|tensor| (tensor.name().to_owned(), array(tensor))).collect()
}

/// Runs each statement's plan, one after the other.
fn run(program: &Program, operands: &BTreeMap<String, DenseArray>) -> BTreeMap<String, DenseArray> {
    let mut values = operands.clone();
    for statement in program.statements() {
        let plan = Plan::new(&Statement::new(statement)).expect("it has a plan");
        let (result, _) = plan.run_sequentially(&values).unwrap_or_else(|error| panic!("{statement}: {error}"));
        values.insert(statement.left().tensor.name().to_owned(), result);
    }
    values
}

#[test]
fn statements_are_apart_by_semicolons_and_lines() {
    let extents = [("i", 2), ("j", 3)];
    let expected = ["T(i) = reduce(+, j, B(i,j))", "a = reduce(+, i, T(i)) + 1"];
    for text in [
        "T(i) = B(i,j); a = T(i) + 1",
        "T(i) = B(i,j);\n a = T(i) + 1;",
        "T(i) = B(i,j)\na = T(i)\n  + 1",
        ";; T(i) =\n B(i,j)\n;a = T(i) + 1\n",
    ] {
        let statements: Vec<String> = program(text, &extents).statements().iter().map(ToString::to_string).collect();
        assert_eq!(statements, expected, "{text}");
    }
    let program = program("T(i) = B(i,j); a -= T(i); T(i) *= 2", &extents);
    let names =
        |tensors: Vec<TensorVariable>| tensors.iter().map(|tensor| tensor.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(program.tensors()), ["T", "B", "a"]);
    assert_eq!(names(program.inputs()), ["B", "a"]);
    assert_eq!(names(program.results()), ["T", "a"]);
}

#[test]
fn mistakes_in_programs_are_pointed_at() {
    let extents = [("i", 2), ("j", 3)].map(|(name, extent)| (IndexVariable::new(name), extent));
    let mistake = |text: &str| Program::parse_with_extents(text, F64, &extents).expect_err("a mistake");
    assert_eq!(
        mistake("a(i) = b(i)\nc(j) = d(j) e(j)").to_string(),
        "expected an operator, ';' or the end, found e\n  c(j) = d(j) e(j)\n              ^"
    );
    let error = mistake("a(i) = b(i); c(j) = a(j)").to_string();
    assert!(error.starts_with("index variable j has extent 3 in c(j), and 2 in a(j)"), "{error}");
    assert!(matches!(mistake("").kind, NotationErrorKind::Syntax { .. }));
    assert!(matches!(mistake("a(i) = b(i); c(j) = ").kind, NotationErrorKind::Syntax { .. }));
    let error =
        Program::parse_with_extents("a(i) min= b(i)", C64, &extents).expect_err("complex numbers have no order");
    assert!(matches!(error.kind, NotationErrorKind::ReductionNotDefined { .. }));
}

#[test]
fn old_values_are_combined_by_any_operator() {
    let old = [7, -2, 0];
    let (b, expected) = ([[1, 2], [3, 4], [-5, 6]], |combine: &dyn Fn(i64, [i64; 2]) -> i64| {
        DenseArray::from_fn(I64, &[3], |at| {
            Scalar::I64(combine(old[at[0] as usize], [[1, 2], [3, 4], [-5, 6]][at[0] as usize]))
        })
    });
    let given = BTreeMap::from([
        ("a".to_owned(), DenseArray::from_fn(I64, &[3], |at| Scalar::I64(old[at[0] as usize]))),
        ("B".to_owned(), DenseArray::from_fn(I64, &[3, 2], |at| Scalar::I64(b[at[0] as usize][at[1] as usize]))),
    ]);
    for (text, expected) in [
        ("a(i) += B(i,j)", expected(&|old, [x, y]| old + x + y)),
        ("a(i) -= B(i,j)", expected(&|old, [x, y]| old - x - y)),
        ("a(i) *= B(i,j)", expected(&|old, [x, y]| old * (x + y))),
        ("a(i) min= B(i,j)", expected(&|old, [x, y]| old.min(x + y))),
        ("a(i) max= reduce(max, j, B(i,j))", expected(&|old, [x, y]| old.max(x).max(y))),
        ("a(i) *= reduce(*, j, B(i,j)) + 1", expected(&|old, [x, y]| old * (x * y + 1))),
    ] {
        let program = program(text, &[("i", 3), ("j", 2)]);
        assert_eq!(program.evaluate(&given).expect("a value")["a"], expected, "{text}");
        assert_eq!(run(&program, &given)["a"], expected, "{text}");
        let text = program.statements()[0].to_string();
        let again = Program::parse(&text, &program.tensors()).expect("what is printed parses");
        assert_eq!(again, program, "{text}");
    }
}

#[test]
fn sums_beside_other_terms_are_statements_of_their_own() {
    let extents = [("i", 30), ("j", 30), ("k", 30)];
    assert_eq!(
        divided("A(i,j) = B(i,k) * C(k,j) + D(i,j)", &extents),
        ["A(i,j) = D(i,j)", "A(i,j) += reduce(+, k, B(i,k) * C(k,j))"]
    );
    assert_eq!(divided("A(i,j) += 2 - B(i,k) * C(k,j) - (D(i,j) - E(i,j,k))", &extents)[..1], ["A(i,j) += 2 - D(i,j)"]);
    assert_eq!(
        divided("a = B(i,j) * C(i,j) + D(i,j)", &extents),
        ["a = reduce(+, i, reduce(+, j, B(i,j) * C(i,j)))", "a += reduce(+, i, reduce(+, j, D(i,j)))"]
    );
    // What is read keeps its value until the end, and other operators can't be divided.
    for whole in [
        "A(i,j) = A(i,j) + B(i,k) * C(k,j)",
        "A(i,j) max= D(i,j) + B(i,k) * C(k,j)",
        "A(i,j) = D(i,j) + E(i,j)",
        "y(i) = reduce(max, j, A(i,j)) + b(i)",
    ] {
        assert_eq!(divided(whole, &extents).len(), 1, "{whole}");
    }
}

#[test]
fn products_of_several_tensors_are_products_of_two_where_that_is_faster() {
    let square = [("i", 300), ("j", 300), ("k", 300), ("l", 300)];
    assert_eq!(
        divided("A(i,l) = B(i,j) * C(j,k) * D(k,l)", &square),
        ["t(i,k) = reduce(+, j, B(i,j) * C(j,k))", "A(i,l) = reduce(+, k, t(i,k) * D(k,l))"]
    );
    // From the right where that is less.
    assert_eq!(
        divided("y(i) = A(i,j) * B(j,k) * x(k)", &square),
        ["t(j) = reduce(+, k, B(j,k) * x(k))", "y(i) = reduce(+, j, A(i,j) * t(j))"]
    );
    // Samples of a dense product.
    assert_eq!(
        divided("A(i,j) = B(i,j) * C(i,k) * D(k,j)", &square),
        ["t(i,j) = reduce(+, k, C(i,k) * D(k,j))", "A(i,j) = B(i,j) * t(i,j)"]
    );
    // Names that are taken are left alone, and each temporary has its own.
    let four = divided("t(i,l) += B(i,j) * C(j,k) * D(k,m) * E(m,l)", &[&square[..], &[("m", 300)]].concat());
    assert_eq!(four.len(), 3);
    assert!(
        four[0].starts_with("t_1(") && four[1].starts_with("t_2(") && four[2].starts_with("t(i,l) += "),
        "{four:?}"
    );
    // What a library or one pass over memory does well stays whole.
    for whole in ["a(i) = B(i) * C(i) * D(i)", "A(i,l) = B(i,j,k) * C(j,l) * D(k,l)", "A(i,j) = B(i,k) * C(k,j)"] {
        assert_eq!(divided(whole, &square.map(|(name, _)| (name, 100))).len(), 1, "{whole}");
    }
}

#[test]
fn products_with_parts_and_shifts_are_divided_as_others_are() {
    let square = [("i", 300), ("j", 300), ("k", 300), ("l", 300)];
    assert_eq!(
        divided("D(i,l) = A(i(0,300),j) * B(j,k+1) * C(k,l(0,600,2))", &square),
        ["t(i,k) = reduce(+, j, A(i(0,300),j) * B(j,k+1))", "D(i,l) = reduce(+, k, t(i,k) * C(k,l(0,600,2)))"]
    );
    assert_eq!(
        divided("A(i,j) = 2 * B(i,k) * c(j-1,k(5,305))", &[("i", 500), ("j", 40), ("k", 300)]),
        ["t(j,k) = 2 * c(j-1,k(5,305))", "A(i,j) = reduce(+, k, B(i,k) * t(j,k))"]
    );
    for whole in ["s = a(i(0,4)) * b(i)", "y(i) = A(i,j(0,2)) * z(j)", "C(i,k) = A(i+1,j) * B(j,k)"] {
        assert_eq!(divided(whole, &square).len(), 1, "{whole}");
    }
    // A diagonal of two parts is one variable.
    assert_eq!(divided("y(k) = A(i(0,4),i(4,8)) * B(i,j) * C(j,k)", &square).len(), 1);
}

#[test]
fn factors_that_are_numbers_go_into_the_smallest_tensor() {
    let extents = [("i", 500), ("j", 40), ("k", 500)];
    assert_eq!(
        divided("A(i,j) = 2 * alpha * B(i,k) * C(k,j)", &extents),
        ["t(k,j) = 2 * alpha * C(k,j)", "A(i,j) = reduce(+, k, B(i,k) * t(k,j))"]
    );
    assert_eq!(
        divided("A(i,j) = D(i,j) - B(i,k) * C(k,j)", &extents),
        ["A(i,j) = D(i,j)", "t(k,j) = -1 * C(k,j)", "A(i,j) += reduce(+, k, B(i,k) * t(k,j))"]
    );
    assert_eq!(divided("a(i) -= B(i,k)", &extents), ["a(i) += reduce(+, k, -B(i,k))"]);
}

/// A variable with so many values; or a part of a longer dimension or a shift, if that is asked for always or by
/// chance.
fn index((variable, extent): (&str, i64), is_part: bool, random: &mut Rng) -> String {
    match if is_part { 1 } else { random.u8(..6) } {
        0 => format!("{variable}{:+}", [-2, -1, 1, 2][random.usize(..4)]),
        1 => {
            let (low, step) = (random.i64(0..4), random.i64(1..3));
            let high = low + (extent - 1).max(0) * step + extent.min(1);
            format!("{variable}({low},{high},{step})")
        }
        _ => variable.to_owned(),
    }
}

/// A random product of some tensors, each with its own name but for one of which parts are taken.
fn term(random: &mut Rng, number: usize, extents: &[(&str, i64)]) -> String {
    let minus = if random.u8(..4) == 0 { "-" } else { "" };
    let factors = (0..random.usize(1..5)).map(|factor| {
        let mut variables = extents.to_vec();
        random.shuffle(&mut variables);
        variables.truncate(random.usize(0..4));
        let in_parts = random.u8(..5) == 0;
        let indices: Vec<String> = variables.iter().map(|variable| index(*variable, in_parts, random)).collect();
        match variables.len() {
            0 if random.bool() => random.i64(1..4).to_string(),
            0 => format!("s{number}{factor}"),
            order if in_parts => format!("P{order}({})", indices.join(",")),
            _ => format!("T{number}{factor}({})", indices.join(",")),
        }
    });
    format!("{minus}{}", factors.collect::<Vec<_>>().join(" * "))
}

/// How many programs are tried: `MANIPLE_PROGRAMS` says otherwise.
fn times(usual: u64) -> u64 {
    std::env::var("MANIPLE_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

#[test]
fn divided_programs_give_what_the_whole_ones_do() {
    let (mut longer, mut with_temporaries) = (0, 0);
    // Costs in which dividing pays for small tensors too.
    let rates = Rates { memory: 1e18, ..Rates::default() };
    for seed in 0..times(600) {
        let mut random = Rng::with_seed(seed);
        let left = ["a", "a(i)", "a(i,j)", "a(l,i)"][random.usize(..4)];
        let operator = ["=", "+=", "-=", "*=", "max="][random.usize(..5)];
        let extents: Vec<_> = ["i", "j", "k", "l"].map(|name| (name, random.i64(0..5))).into();
        let terms: Vec<String> = (0..random.usize(1..4)).map(|number| term(&mut random, number, &extents)).collect();
        let second = if random.bool() { "; b(i) = a_sum(i) * 2; a_sum(i) += b(i)" } else { "" };
        let text = format!("{left} {operator} {}{second}", terms.join([" + ", " - "][random.usize(..2)]));
        let whole = program(&text, &extents);
        let divided = whole.divided(&rates);
        let operands = operands(&whole.inputs(), &mut random);
        let expected = whole.evaluate(&operands).unwrap_or_else(|error| panic!("{text}: {error}"));
        let (defined, computed) = (divided.evaluate(&operands).expect("a value"), run(&divided, &operands));
        for (name, value) in &expected {
            assert_eq!(&defined[name], value, "seed {seed}, {name} of\n{text}\n{divided}");
            assert_eq!(&computed[name], value, "seed {seed}, {name} of\n{text}\n{divided}");
        }
        assert_eq!(divided.results(), whole.results(), "{text}");
        longer += usize::from(divided.statements().len() > whole.statements().len());
        with_temporaries += usize::from(divided.tensors().len() > whole.tensors().len());
    }
    assert!(longer > 150 && with_temporaries > 100, "{longer} were divided, {with_temporaries} with temporaries");
}
