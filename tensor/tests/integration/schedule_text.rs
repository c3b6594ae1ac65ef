//! Schedules as text.

use fastrand::Rng;
use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::notation::{Expression, IndexVariable, TensorVariable, parse_with_extents};
use maniple_tensor::schedule::{Command, Schedule};

use crate::random;

fn has_numbers(expression: &Expression) -> bool {
    matches!(expression, Expression::Literal(..)) || expression.operands().into_iter().any(has_numbers)
}

#[test]
fn commands_that_are_printed_parse_to_the_same() {
    let mut expressions = 0;
    for seed in 0..400 {
        let mut random = Rng::with_seed(seed);
        let assignment = random::Problem::new(&mut random).assignment;
        let statement = Statement::new(&assignment);
        // Legal or not: text is text.
        let mut commands: Vec<Command> = (0..8).filter_map(|_| random::command(&statement, &mut random)).collect();
        commands.extend(random::schedule(&assignment, &mut random).1);
        commands.extend(random::parts(&statement, "", &mut random));
        // Numbers in an expression take the type that they have in the statement, and so are not written with it.
        commands.retain(|command| match command {
            Command::Precompute { expression, .. } => !has_numbers(expression),
            _ => true,
        });
        let mut tensors: Vec<TensorVariable> = Vec::new();
        for command in &commands {
            if let Command::Precompute { expression, .. } = command {
                tensors.extend(expression.accesses().into_iter().map(|access| access.tensor.clone()));
                expressions += 1;
            }
        }
        for command in &commands {
            let parsed =
                Schedule::parse(&command.to_string(), &tensors).unwrap_or_else(|error| panic!("{command}: {error}"));
            assert_eq!(parsed.commands, std::slice::from_ref(command), "seed {seed}");
            if !matches!(command, Command::Precompute { .. }) {
                assert_eq!(command.to_string().parse::<Command>().as_ref(), Ok(command));
            }
        }
        let schedule = Schedule { commands };
        assert_eq!(Schedule::parse(&schedule.to_string(), &tensors), Ok(schedule), "seed {seed}");
    }
    assert!(expressions > 100, "{expressions} expressions");
}

fn product() -> Statement {
    let extents = ["i", "j", "k"].map(|name| (IndexVariable::new(name), 100));
    Statement::new(&parse_with_extents("A(i,j) = B(i,k) * C(k,j)", F64, &extents).expect("a statement"))
}

#[test]
fn commands_are_apart_by_semicolons_and_lines_and_may_be_commented() {
    let text = "# SUMMA\n\
                distribute({i, j}, {io, jo}, {ii, ji}, {2, 2}) ; split( k,ko, ki , 10 ); # chunks; of 10\n\
                \n\
                reorder({ko,\n  ii, ji, ki})\n\
                communicate({A}, jo); communicate({B, C}, ko);\n";
    let expected = product()
        .distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[2, 2])
        .and_then(|statement| statement.split("k", "ko", "ki", 10))
        .and_then(|statement| statement.reorder(["ko", "ii", "ji", "ki"]))
        .and_then(|statement| statement.communicate(["A"], "jo"))
        .and_then(|statement| statement.communicate(["B", "C"], "ko"));
    let schedule: Schedule = text.parse().expect("a schedule");
    assert_eq!(schedule.apply(&product()), expected);
    assert_eq!("".parse(), Ok(Schedule::default()));
}

#[test]
fn mistakes_are_told_with_line_and_column() {
    for (text, message) in [
        (
            "split(i, io, ii, 32)\n  splitt(j, jo, ji, 2)",
            "line 2, column 3: expected one of split, split_at, divide, fuse, bound, pos, mergeby, reorder, precompute, store, unroll, chunk, parallelize, distribute, communicate, rotate, \
             substitute, found `splitt(j, jo, ji, 2)`",
        ),
        ("split(i, io, ii, x)", "line 1, column 18: expected a number, found `x`"),
        (
            "split(i, io, ii)",
            "line 1, column 1: expected split(VARIABLE, OUTER, INNER, FACTOR), found `split(i, io, ii)`",
        ),
        ("\n\nreorder({i, 2j})", "line 3, column 13: expected an index variable, found `2j`"),
        ("reorder({i, j)", "line 1, column 9: expected a list with `}` at its end, found `{i, j`"),
        ("parallelize(i, gpu)", "line 1, column 16: expected threads or vector, found `gpu`"),
        ("parallelize(i, vector, racy)", "line 1, column 24: expected `reduced`, found `racy`"),
        ("split_at(i, io, ii, {3, x})", "line 1, column 25: expected a number, found `x`"),
        ("mergeby(i, heap)", "line 1, column 12: expected two-finger, gallop, locate, bitmap or hash, found `heap`"),
        ("unroll i", "line 1, column 8: expected unroll(VARIABLE, FACTOR), found `i`"),
        ("fuse(i, , f)", "line 1, column 9: expected an index variable, found nothing"),
    ] {
        assert_eq!(text.parse::<Schedule>().expect_err(text).to_string(), message);
    }
    let tensors = product().tensors().into_iter().cloned().collect::<Vec<_>>();
    let error = Schedule::parse("precompute(B(i,k) * D(k,j), {}, {}, w)", &tensors).expect_err("there is no D");
    assert_eq!(
        error.to_string(),
        "line 1, column 21: expected an expression (no tensor is called D; there are A, B, C), found `D(k,j)`"
    );
}
