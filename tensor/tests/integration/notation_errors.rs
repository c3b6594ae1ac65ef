//! Mistakes in index notation: what is said, and the place that is pointed at.

use maniple_tensor::element::ElementType::{self, C64, F64, I32, I64};
use maniple_tensor::notation::{Assignment, Expression, IndexVariable, TensorVariable, parse, parse_with_extents};

fn tensors() -> Vec<TensorVariable> {
    let tensor = |name, element: ElementType, dimensions: &[i64]| TensorVariable::new(name, element, dimensions);
    vec![
        tensor("A", F64, &[4, 5]),
        tensor("B", F64, &[4, 6]),
        tensor("C", F64, &[6, 5]),
        tensor("b", F64, &[4]),
        tensor("s", F64, &[]),
        tensor("N", I64, &[4]),
        tensor("M", I32, &[4]),
        tensor("Z", C64, &[4]),
        tensor("Y", C64, &[4]),
        tensor("a_x", F64, &[]),
        tensor("bad", F64, &[-1]),
    ]
}

#[test]
fn each_mistake_is_named_and_pointed_at() {
    // The text, with the place in brackets, and the message.
    let table = [
        // Syntax.
        ("[]", "expected the name of a result, found the end"),
        ("[3] = s", "expected the name of a result, found 3"),
        ("s [s]", "expected '=' or '+=', found s"),
        ("s = []", "expected a number, a tensor, a function or '(', found the end"),
        ("s = s + [*] s", "expected a number, a tensor, a function or '(', found '*'"),
        ("s = (s + s[]", "expected an operator or ')', found the end"),
        ("s = s [s]", "expected an operator or the end, found s"),
        ("s = s [)]", "expected an operator or the end, found ')'"),
        ("s = s [#] s", "expected an expression, found '#'"),
        ("b(i) = B(i,[)]", "expected an index variable, found ')'"),
        ("b(i) = B(i,[3])", "expected an index variable, found 3"),
        ("b(i[=] b(i)", "expected ',' or ')', found '='"),
        ("b_{i[)] = b(i)", "expected ',' or '}', found ')'"),
        ("s = max(s, s[]", "expected an operator, ',' or ')', found the end"),
        ("s = stored([b(i) + 1])", "stored takes an element of a tensor, such as B(i,j)"),
        ("b(i) = [b(i) + 1] ? s", "what is before '?' takes an element of a tensor, such as M(i,j)"),
        ("s = reduce([/], i, b(i))", "expected one of +, *, min, max, or, and, any, found '/'"),
        ("s = reduce(+ [b](i))", "expected ',', found b"),
        ("s = f64(s[,] s)", "expected ')': a cast has one operand, found ','"),
        ("N(i) = [99999999999999999999]", "the number 99999999999999999999 is too large"),
        ("s = [1e999]", "the number 1e999 is too large"),
        (
            "b(i) = B(i,[j(2,7)])",
            "B(i,j(2,7)) takes a part of a dimension with 6 coordinates: parts are written i(low,high) or i(low,high,step), from 0 up to the extent, with a step of at least 1",
        ),
        ("b(i) = B(i,j(0[)])", "expected ',': a part is i(low,high) or i(low,high,step), found ')'"),
        ("b(i) = B(i,j+[i])", "expected a whole number: a shift is i+1 or i-1, found i"),
        (
            "s = x(i(0,3,[-]1))",
            "expected a whole number: a part is i(low,high) or i(low,high,step), from 0 on, with a step of at least 1, found '-'",
        ),
        ("s = [x](2)", "there is no function x; there are abs"),
        ("s = [x](i*2)", "there is no function x; there are abs"),
        ("s = [x](i+1*2)", "there is no function x; there are abs"),
        ("s = [x](i+1)", "no tensor is called x; there are A"),
        (
            "[b(i+1)] = B(i,j)",
            "b(i+1) is assigned in part, which would leave other elements unassigned; take parts of operands",
        ),
        ("b(i) = A([i](0,2),j)", "index variable i has extent 4 in b(i), and 2 in A(i(0,2),j)"),
        // Names.
        ("A(i,j) = B(i,k) * [D](k,j)", "no tensor is called D; there are A, B, C, b, s, N, M, Z, Y, a_x, bad"),
        ("[x] = s", "no tensor is called x; there are A, B, C, b, s, N, M, Z, Y, a_x, bad"),
        ("s = [k] + max(k, s)", "index variable k has no extent: no tensor is indexed by it"),
        ("s = reduce(+, [k, s])", "index variable k has no extent: no tensor is indexed by it"),
        (
            "s = [gamma](2 * s)",
            "there is no function gamma; there are abs, sqrt, cbrt, square, cube, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh, exp, log, log10, pow, mod, min, max, floor, ceil, conj, select, stored, isfill and reduce; tensors are indexed by variables, shifts by whole numbers such as i+1 and i-1, and parts such as i(0,8) and i(0,8,2)",
        ),
        ("b(i) = [sqr](a(i))", "there is no function sqr; did you mean sqrt?"),
        ("b(i) = [maximum](a(i), 2)", "there is no function maximum; did you mean max?"),
        ("b(i) = 2 * [ASIN](a(i) / 2)", "there is no function ASIN; did you mean asin?"),
        (
            "b(i) = [foo](i, a(i))",
            "there is no function foo; there are abs, sqrt, cbrt, square, cube, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh, exp, log, log10, pow, mod, min, max, floor, ceil, conj, select, stored, isfill and reduce; tensors are indexed by variables, shifts by whole numbers such as i+1 and i-1, and parts such as i(0,8) and i(0,8,2)",
        ),
        ("b(i) = [tan2](i + 1)", "there is no function tan2; did you mean tan?"),
        ("s = [min(s)]", "min takes 2 arguments, not 1"),
        ("s = [sqrt(s, s)]", "sqrt takes 1 argument, not 2"),
        ("b([s]) = b(s) * s", "both a tensor and an index variable are called s; give one of them another name"),
        // Shapes.
        ("A(i,j) = [B(i)] * C(i,j)", "B has 2 dimensions, but 1 index variable"),
        ("[A(i)] = b(i)", "A has 2 dimensions, but 1 index variable"),
        ("s = [b]", "b has 1 dimension, but 0 index variables"),
        ("A(i,j) = B(i,k) * C([j],k)", "index variable j has extent 5 in A(i,j), and 6 in C(j,k)"),
        ("b(i) = B(i,[i])", "index variable i has extent 4 in b(i), and 6 in B(i,i)"),
        ("s = [bad(i)]", "dimension 0 of bad has the negative extent -1"),
        // The result.
        ("b(i) = [b(j)]", "b(j) is read while b(i) is written; they must have the same index variables"),
        ("s = reduce(+, [i, b(i)]) * b(i)", "i is reduced over here, but used outside of the reduction too"),
        ("b(i) = reduce(max, [i, b(i)])", "i is reduced over here, but used outside of the reduction too"),
        // Types.
        ("b(i) = b(i) * [N(i)]", "expected f64, found i64; cast it, as in f64(...)"),
        ("N(i) = [M(i)] + N(i)", "expected i64, found i32; cast it, as in i64(...)"),
        ("N(i) = [f64(N(i))]", "expected i64, found f64; cast it, as in i64(...)"),
        ("N(i) = [2.5] * N(i)", "2.5 is no i64"),
        ("M(i) = [3000000000]", "3000000000 is no i32"),
        ("N(i) = [sqrt(N(i))]", "sqrt is not defined for i64"),
        ("Z(i) = [max(Z(i), Z(i))]", "max is not defined for Complex<f64>"),
        ("b(i) = [f64(Z(i))]", "Complex<f64> can't be cast to f64: the imaginary part would be lost"),
        ("Z(i) = reduce(min, [j, Y(j)])", "a reduction with min is not defined for Complex<f64>"),
    ];
    for (marked, message) in table {
        let (start, end) = (marked.find('[').unwrap(), marked.find(']').unwrap() - 1);
        let text = marked.replace(['[', ']'], "");
        let error = parse(&text, &tensors()).expect_err(&text);
        let said = error.to_string();
        let mut lines = said.lines();
        let first = lines.next().unwrap();
        assert!(first.starts_with(message), "{text}: {said}");
        let span = error.span().unwrap();
        assert_eq!((span.start, span.end), (start, end), "{said}");
        assert_eq!(lines.next(), Some(format!("  {text}").as_str()));
        let carets = format!("  {}{}", " ".repeat(start), "^".repeat((end - start).max(1)));
        assert_eq!(lines.next(), Some(carets.as_str()), "{said}");
    }
}

#[test]
fn a_mistake_in_the_second_line_is_shown_in_that_line() {
    let error = parse("A(i,j) = B(i,k)\n * D(k,j)", &tensors()).unwrap_err();
    assert!(error.to_string().ends_with("\n   * D(k,j)\n     ^"), "{error}");
}

#[test]
fn deep_expressions_are_refused() {
    for text in [format!("s = {}s{}", "(".repeat(5000), ")".repeat(5000)), format!("s = {}s", "-".repeat(5000))] {
        let error = parse(&text, &tensors()).unwrap_err().to_string();
        assert!(error.starts_with("the expression is nested more than 400 deep"), "{error}");
    }
    assert!(parse(&format!("s = s{}", " + s".repeat(5000)), &tensors()).is_err());
    assert!(parse(&format!("s = s{}", " + s".repeat(100)), &tensors()).is_ok());
}

#[test]
fn no_text_panics() {
    let letters =
        ["A(i,j)", "b(i)", "s", "+", "-", "*", "/", "=", "+=", "(", ")", "{", "}", "_", ",", "i", "3", ".5", "é", "1e"];
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let text: String = (0..8)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                letters[(state >> 33) as usize % letters.len()]
            })
            .collect();
        if let Err(error) = parse(&format!("s ={text}"), &tensors()) {
            let _ = error.to_string();
        }
    }
}

#[test]
fn mistakes_in_rust_have_the_same_words() {
    let two = TensorVariable::new("B", F64, [3]);
    let other = TensorVariable::new("B", F64, [4]);
    let matrix = TensorVariable::new("A", F64, [4, 4]);
    let said = |assignment: Result<Assignment, _>| match assignment {
        Ok(assignment) => assignment.to_string(),
        Err(error) => format!("{error}"),
    };
    assert_eq!(
        said(TensorVariable::new("s", F64, []).scalar().assign(two.at(["i"]) * other.at(["j"]))),
        "two tensors are called B; give one of them another name"
    );
    assert_eq!(
        said(matrix.at(["i", "i"]).assign(1.0)),
        "i occurs twice in A(i,i), which would leave other elements unassigned; use two variables"
    );
    assert_eq!(
        said(TensorVariable::new("a-b", F64, [3]).at(["i"]).assign(1.0)),
        "\"a-b\" is no name: names have letters, digits and _, and begin with no digit"
    );
    assert_eq!(
        said(two.at([""]).assign(1.0)).lines().next(),
        Some("\"\" is no name: names have letters, digits and _, and begin with no digit")
    );
    assert_eq!(
        said(two.at(["i"]).assign(Expression::typed(1_i32))),
        "expected f64, found i32; cast it, as in f64(...)"
    );
}

#[test]
fn a_variable_without_extent_is_pointed_at() {
    let extents = [(IndexVariable::new("i"), 4)];
    let error = parse_with_extents("a(i) = B(i,k)", F64, &extents).unwrap_err().to_string();
    assert_eq!(error, "index variable k has no extent: no tensor is indexed by it\n  a(i) = B(i,k)\n             ^");
}
