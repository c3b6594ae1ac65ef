//! Commands that are refused, with the reason. The statement stays as it was.

use maniple_tensor::concrete::{Merge, Statement, Substitution, Unit};
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::notation::{IndexVariable, TensorVariable, parse_with_extents};
use maniple_tensor::schedule::{Races, ScheduleError};

fn statement(text: &str) -> Statement {
    let extents = [("i", 10), ("j", 12), ("k", 14), ("l", 0)].map(|(name, extent)| (IndexVariable::new(name), extent));
    Statement::new(&parse_with_extents(text, F64, &extents).expect("the text is fine"))
}

type Change = fn(&Statement) -> Result<Statement, ScheduleError>;

/// Refuses `change` of `statement` with exactly `message`.
fn refused(statement: &Statement, message: &str, change: Change) {
    let before = statement.clone();
    match change(statement) {
        Ok(changed) => panic!("expected: {message}\nfound:\n{changed}"),
        Err(error) => assert_eq!(error.to_string(), message),
    }
    assert_eq!(*statement, before, "{message}");
}

#[test]
fn splits_and_divisions() {
    let product = statement("A(i,j) = B(i,k) * C(k,j)");
    let table: [(&str, Change); 15] = [
        ("split_at(i, a, b, {}): the list of points is empty", |s| s.split_at("i", "a", "b", &[])),
        (
            "split_at(i, a, b, {4, 4}): the points 4, 4 are not between 0 and 10, the number of values of i, each greater than the one before",
            |s| s.split_at("i", "a", "b", &[4, 4]),
        ),
        (
            "split_at(i, a, b, 10): the points 10 are not between 0 and 10, the number of values of i, each greater than the one before",
            |s| s.split_at("i", "a", "b", &[10]),
        ),
        ("split(x, a, b, 2): there is no loop over x; there are loops over i, j, k", |s| s.split("x", "a", "b", 2)),
        ("split(i, a, b, 0): the factor is 0; it has to be at least 1", |s| s.split("i", "a", "b", 0)),
        ("split(i, a, b, -3): the factor is -3; it has to be at least 1", |s| s.split("i", "a", "b", -3)),
        ("divide(i, a, b, 0): the number of pieces is 0; it has to be at least 1", |s| s.divide("i", "a", "b", 0)),
        ("split(i, j, b, 2): j is taken; choose a new name", |s| s.split("i", "j", "b", 2)),
        ("split(i, a, i, 2): i is taken; choose a new name", |s| s.split("i", "a", "i", 2)),
        ("divide(i, A, b, 2): A is taken; choose a new name", |s| s.divide("i", "A", "b", 2)),
        ("split(i, a, a, 2): a is listed twice", |s| s.split("i", "a", "a", 2)),
        ("split(i, a b, c, 2): \"a b\" is no name: names have letters, digits and _, and begin with no digit", |s| {
            s.split("i", "a b", "c", 2)
        }),
        ("split(i, c, d, 2): i is no loop any more: i = a * 5 + b; use its parts", |s| {
            s.split("i", "a", "b", 5)?.split("i", "c", "d", 2)
        }),
        ("split(i, a, b, 2): i is distributed already; do this before", |s| {
            s.distribute_loops(["i"])?.split("i", "a", "b", 2)
        }),
        ("divide(i, a, b, 2): i is parallel on threads already; do this before", |s| {
            s.parallelize("i", Unit::Threads, Races::Forbidden)?.divide("i", "a", "b", 2)
        }),
    ];
    for (message, change) in table {
        refused(&product, message, change);
    }
}

#[test]
fn fusions_bounds_and_orders() {
    let product = statement("A(i,j) = B(i,k) * C(k,j)");
    let table: [(&str, Change); 14] = [
        ("fuse(i, k, f): k is not directly inside of i; reorder the loops before", |s| s.fuse("i", "k", "f")),
        ("fuse(j, i, f): i is not directly inside of j; reorder the loops before", |s| s.fuse("j", "i", "f")),
        ("fuse(i, i, f): i is not directly inside of i; reorder the loops before", |s| s.fuse("i", "i", "f")),
        ("fuse(i, j, k): k is taken; choose a new name", |s| s.fuse("i", "j", "k")),
        ("fuse(i, j, f): j is unrolled already; do this before", |s| s.unroll("j", 2)?.fuse("i", "j", "f")),
        ("bound(i, a, 11): i has 10 values, not 11", |s| s.bound("i", "a", 11)),
        ("unroll(i, 0): the factor is 0; it has to be at least 1", |s| s.unroll("i", 0)),
        ("chunk(i, 4): the loop over i does not run on threads; say so before, as by parallelize(i, threads)", |s| {
            s.chunk("i", 4)
        }),
        ("chunk(i, 0): the length is 0; it has to be at least 1", |s| {
            s.parallelize("i", Unit::Threads, Races::Forbidden)?.chunk("i", 0)
        }),
        (
            "reorder({i, k}): the loops over i, k are not directly inside of one another: j is directly inside of i",
            |s| s.reorder(["i", "k"]),
        ),
        ("reorder({i, j, i}): i is listed twice", |s| s.reorder(["i", "j", "i"])),
        ("reorder({}): the list of variables is empty", |s| s.reorder([""; 0])),
        ("reorder({i, x}): there is no loop over x; there are loops over i, j, k", |s| s.reorder(["i", "x"])),
        ("reorder({io, k, jo}): io and jo are one launch, but k is between them; keep them together", |s| {
            s.distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[2, 2])?
                .reorder(["io", "jo", "k", "ii", "ji"])?
                .reorder(["io", "k", "jo"])
        }),
    ];
    for (message, change) in table {
        refused(&product, message, change);
    }
    let two = statement("a(i) = B(i,j) + C(i,k)");
    refused(
        &two,
        "reorder({i, j}): the loops over i, j are not directly inside of one another: the workspace t is made inside of i",
        |s| s.reorder(["i", "j"]),
    );
    let huge = TensorVariable::new("A", F64, [1 << 32, 1 << 32]);
    refused(
        &Statement::new(&huge.at(["i", "j"]).assign(1.0).unwrap()),
        "fuse(i, j, f): i and j have more pairs of values than fit 64 bits",
        |s| s.fuse("i", "j", "f"),
    );
}

#[test]
fn workspaces() {
    let product = statement("A(i,j) = B(i,k) * C(k,j)");
    let table: [(&str, Change); 7] = [
        (
            "precompute(B(i,j), {}, {}, w): the expression B(i,j) is in no assignment; these assign B(i,k) * C(k,j)",
            |s| {
                let b = s.operands()[0].clone();
                s.precompute(b.at(["i", "j"]), [""; 0], [""; 0], "w")
            },
        ),
        ("precompute(B(i,k), k, {a, b}, w): there are 1 variables, but 2 workspace variables; give as many", |s| {
            let b = s.operands()[0].clone();
            s.precompute(b.at(["i", "k"]), ["k"], ["a", "b"], "w")
        }),
        ("precompute(B(i,k), {k, k}, {a, b}, w): k is listed twice", |s| {
            let b = s.operands()[0].clone();
            s.precompute(b.at(["i", "k"]), ["k", "k"], ["a", "b"], "w")
        }),
        ("precompute(B(i,k), k, j, w): j is taken; choose a new name", |s| {
            let b = s.operands()[0].clone();
            s.precompute(b.at(["i", "k"]), ["k"], ["j"], "w")
        }),
        ("precompute(B(i,k), k, a, C): C is taken; choose a new name", |s| {
            let b = s.operands()[0].clone();
            s.precompute(b.at(["i", "k"]), ["k"], ["a"], "C")
        }),
        ("precompute(B(i,k), x, a, w): there is no loop over x; there are loops over i, j, k", |s| {
            let b = s.operands()[0].clone();
            s.precompute(b.at(["i", "k"]), ["x"], ["a"], "w")
        }),
        (
            "distribute(ja): ja is distributed, but the workspace w is computed around it; \
          distribute or communicate around the workspace, not inside of its computation",
            |s| {
                let c = s.operands()[1].clone();
                s.reorder(["i", "k", "j"])?.precompute(c.at(["k", "j"]), ["j"], ["ja"], "w")?.distribute_loops(["ja"])
            },
        ),
    ];
    for (message, change) in table {
        refused(&product, message, change);
    }
    refused(
        &statement("A(i,j) = C(k,j) * B(i,k) * B(i,k)"),
        "precompute(C(k,j) * B(i,k), i, a, w): \
         i is outside of k, which both the workspace and its consumer need; reorder them before",
        |s| {
            let (c, b) = (s.operands()[0].clone(), s.operands()[1].clone());
            s.precompute(c.at(["k", "j"]) * b.at(["i", "k"]), ["i"], ["a"], "w")
        },
    );
    refused(
        &statement("a(i) = B(i,j) * b(i) + C(i,k) * b(i)"),
        "precompute(b(i), {}, {}, w): the expression b(i) is in 2 assignments; it has to be in one",
        |s| {
            let b = TensorVariable::new("b", F64, [10]);
            s.precompute(b.at(["i"]), [""; 0], [""; 0], "w")
        },
    );
    refused(
        &statement("a(i) = B(i,j) + C(i,k)"),
        "precompute(B(i,j), k, q, w): k is no loop around the assignment to t",
        |s| {
            let b = s.operands()[0].clone();
            s.precompute(b.at(["i", "j"]), ["k"], ["q"], "w")
        },
    );
}

#[test]
fn parallel_loops() {
    let product = statement("A(i,j) = B(i,k) * C(k,j)");
    let table: [(&str, Change); 7] = [
        (
            "parallelize(k, threads): iterations of k would write the same elements of A at the same time, \
             as A is not indexed by k; allow the race as a reduction, or make another loop parallel",
            |s| s.parallelize("k", Unit::Threads, Races::Forbidden),
        ),
        (
            "parallelize(ko, vector): iterations of ko would write the same elements of A at the same time, \
             as A is not indexed by k; allow the race as a reduction, or make another loop parallel",
            |s| s.split("k", "ko", "ki", 2)?.parallelize("ko", Unit::Vector, Races::Forbidden),
        ),
        (
            "parallelize(f, threads): iterations of f would write the same elements of A at the same time, \
             as A is not indexed by k; allow the race as a reduction, or make another loop parallel",
            |s| s.fuse("j", "k", "f")?.parallelize("f", Unit::Threads, Races::Forbidden),
        ),
        ("parallelize(j, threads): j can't run on threads, as i around it runs on threads already", |s| {
            s.parallelize("i", Unit::Threads, Races::Forbidden)?.parallelize("j", Unit::Threads, Races::Forbidden)
        }),
        ("parallelize(j, threads): j can't run on threads, as i around it runs on vector already", |s| {
            s.parallelize("i", Unit::Vector, Races::Forbidden)?.parallelize("j", Unit::Threads, Races::Forbidden)
        }),
        ("parallelize(i, threads): i is distributed already; do this before", |s| {
            s.distribute_loops(["i"])?.parallelize("i", Unit::Threads, Races::Forbidden)
        }),
        ("parallelize(i, threads): i is communicating B already; do this before", |s| {
            s.communicate(["B"], "i")?.parallelize("i", Unit::Threads, Races::Forbidden)
        }),
    ];
    for (message, change) in table {
        refused(&product, message, change);
    }
}

#[test]
fn distribution_and_communication() {
    let product = statement("A(i,j) = B(i,k) * C(k,j)");
    let table: [(&str, Change); 19] = [
        ("distribute({i, j}, io, {ii, ji}, {2, 2}): there are 2 targets, but 1 outer variables; give as many", |s| {
            s.distribute(["i", "j"], ["io"], ["ii", "ji"], &[2, 2])
        }),
        ("distribute({i, j}, {io, jo}, ii, {2, 2}): there are 2 targets, but 1 inner variables; give as many", |s| {
            s.distribute(["i", "j"], ["io", "jo"], ["ii"], &[2, 2])
        }),
        (
            "distribute({i, j}, {io, jo}, {ii, ji}, 4): there are 2 targets, but 1 extents of the grid; give as many",
            |s| s.distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[4]),
        ),
        ("distribute(i, io, ii, 0): the number of pieces is 0; it has to be at least 1", |s| {
            s.distribute(["i"], ["io"], ["ii"], &[0])
        }),
        (
            "distribute({i, k}, {io, ko}, {ii, ki}, {2, 2}): \
             the loops over i, k are not directly inside of one another: j is directly inside of i",
            |s| s.distribute(["i", "k"], ["io", "ko"], ["ii", "ki"], &[2, 2]),
        ),
        ("distribute({}, {}, {}, {}): the list of variables is empty", |s| {
            s.distribute([""; 0], [""; 0], [""; 0], &[])
        }),
        (
            "distribute(j): j is distributed inside of i, which is parallel on threads; \
          only serial and distributed loops may be around it",
            |s| s.parallelize("i", Unit::Threads, Races::Forbidden)?.distribute_loops(["j"]),
        ),
        (
            "distribute(j): j is distributed inside of i, which is unrolled; \
          only serial and distributed loops may be around it",
            |s| s.unroll("i", 2)?.distribute_loops(["j"]),
        ),
        ("distribute(i): i is distributed already; do this before", |s| {
            s.distribute_loops(["i"])?.distribute_loops(["i"])
        }),
        ("communicate(D, i): there is no tensor D; there are A, B, C", |s| s.communicate(["D"], "i")),
        ("communicate(B, x): there is no loop over x; there are loops over i, j, k", |s| s.communicate(["B"], "x")),
        ("communicate({}, i): the list of tensors is empty", |s| s.communicate([""; 0], "i")),
        ("communicate({B, B}, i): B is listed twice", |s| s.communicate(["B", "B"], "i")),
        ("communicate(B, j): B would be communicated at i and at j, within one launch; communicate it once", |s| {
            s.communicate(["B"], "i")?.communicate(["B"], "j")
        }),
        ("communicate(B, ii): B would be communicated at io and at ii, within one launch; communicate it once", |s| {
            s.distribute(["i"], ["io"], ["ii"], &[2])?.communicate(["B"], "io")?.communicate(["B"], "ii")
        }),
        ("communicate(B, i): i is parallel on threads; only serial and distributed loops fetch data", |s| {
            s.parallelize("i", Unit::Threads, Races::Forbidden)?.communicate(["B"], "i")
        }),
        (
            "communicate(B, j): j is inside of i, which is parallel on threads; only serial and distributed loops fetch data",
            |s| s.parallelize("i", Unit::Threads, Races::Forbidden)?.communicate(["B"], "j"),
        ),
        ("communicate(w, i): w is a workspace, which is made where it is used and never communicated", |s| {
            let b = s.operands()[0].clone();
            s.reorder(["j", "i", "k"])?.precompute(b.at(["i", "k"]), ["k"], ["a"], "w")?.communicate(["w"], "i")
        }),
        ("communicate(C, a): C is not used inside of a", |s| {
            let b = s.operands()[0].clone();
            s.precompute(b.at(["i", "k"]), ["k"], ["a"], "w")?.communicate(["C"], "a")
        }),
    ];
    for (message, change) in table {
        refused(&product, message, change);
    }
    refused(
        &statement("a(i) = B(i,j) + C(i,k)"),
        "distribute(j): j is distributed, but the workspace t is computed around it; \
         distribute or communicate around the workspace, not inside of its computation",
        |s| s.distribute_loops(["j"]),
    );
}

#[test]
fn rotations_and_substitutions() {
    let product = statement("A(i,j) = B(i,k) * C(k,j)");
    let table: [(&str, Change); 9] = [
        ("rotate(i, k, r): k is not around i; only loops around it can tell how far it rotates", |s| {
            s.rotate("i", ["k"], "r")
        }),
        ("rotate(k, k, r): k is not around k; only loops around it can tell how far it rotates", |s| {
            s.rotate("k", ["k"], "r")
        }),
        ("rotate(k, {}, r): the list of variables to rotate by is empty", |s| s.rotate("k", [""; 0], "r")),
        ("rotate(k, {i, i}, r): i is listed twice", |s| s.rotate("k", ["i", "i"], "r")),
        ("rotate(k, i, j): j is taken; choose a new name", |s| s.rotate("k", ["i"], "j")),
        ("rotate(k, x, r): there is no loop over x; there are loops over i, j, k", |s| s.rotate("k", ["x"], "r")),
        ("rotate(j, i, r): j is distributed already; do this before", |s| {
            s.distribute_loops(["j"])?.rotate("j", ["i"], "r")
        }),
        (
            "substitute({i, j}, Gemm): Gemm does not compute loops with a loop over k inside; \
             it computes sums of products of two tensors, A += B * C, or MTTKRP",
            |s| s.substitute(["i", "j"], Substitution::GEMM),
        ),
        ("substitute({i, j, k}, Gemm): k is parallel on vector already; do this before", |s| {
            s.parallelize("k", Unit::Vector, Races::Reduced)?.substitute(["i", "j", "k"], Substitution::GEMM)
        }),
    ];
    for (message, change) in table {
        refused(&product, message, change);
    }
    refused(
        &statement("A(i,j) = B(i,k) + C(k,j)"),
        "substitute({i, j}, Gemm): Gemm does not compute loops with the workspace t inside; \
         it computes sums of products of two tensors, A += B * C, or MTTKRP",
        |s| s.substitute(["i", "j"], Substitution::GEMM),
    );
    refused(
        &statement("A(i,j) = b(i) * c(j)"),
        "substitute({i, j}, Gemm): Gemm does not compute A(i,j) = b(i) * c(j); \
         it computes sums of products of two tensors, A += B * C, or MTTKRP",
        |s| s.substitute(["i", "j"], Substitution::GEMM),
    );
    refused(&statement("s = b(l)"), "rotate(l, i, r): there is no loop over i; there are loops over l", |s| {
        s.rotate("l", ["i"], "r")
    });
    refused(&statement("A(i,l) = b(l)"), "rotate(l, i, r): l has no values", |s| s.rotate("l", ["i"], "r"));
}

#[test]
fn iterations_that_are_rotated_differently_may_meet() {
    let column_sums = statement("a(j) = B(i,j)").reorder(["i", "j"]).and_then(|sums| sums.rotate("j", ["i"], "r"));
    let column_sums = column_sums.expect("a rotation changes no answer");
    // For each i, different r are different j.
    assert!(column_sums.parallelize("r", Unit::Threads, Races::Forbidden).is_ok());
    refused(
        &column_sums.reorder(["r", "i"]).expect("neither does the order"),
        "parallelize(r, threads): iterations of r would write the same elements of a at the same time, \
         as a is not indexed by r; allow the race as a reduction, or make another loop parallel",
        |s| s.parallelize("r", Unit::Threads, Races::Forbidden),
    );
}

/// A statement whose tensors are stored as `formats` say, others densely.
fn stored(text: &str, formats: &[(&str, &str)]) -> Statement {
    let square = [("A", vec![10, 12]), ("B", vec![10, 12]), ("E", vec![10, 12]), ("S", vec![10, 10])];
    let others = [("x", vec![12]), ("y", vec![10]), ("s", vec![])];
    let tensors: Vec<TensorVariable> = square
        .into_iter()
        .chain(others)
        .map(|(name, extents)| {
            let tensor = TensorVariable::new(name, F64, extents);
            match formats.iter().find(|(other, _)| *other == name) {
                Some((_, format)) => tensor.stored(format.parse().expect("a format")),
                None => tensor,
            }
        })
        .collect();
    Statement::new(&maniple_tensor::notation::parse(text, &tensors).expect("the text is fine"))
}

#[test]
fn positions() {
    let multiply = stored("y(i) = A(i,j) * x(j)", &[("A", "csr")]);
    let table: [(&str, Change); 16] = [
        ("pos(k, p, A): there is no loop over k; there are loops over i, j", |s| s.pos("k", "p", "A")),
        ("pos(j, i, A): i is taken; choose a new name", |s| s.pos("j", "i", "A")),
        ("pos(j, p, B): there is no tensor B; there are A, x", |s| s.pos("j", "p", "B")),
        ("pos(i, p, y): y is the result, whose positions are not known before it is computed; name an operand", |s| {
            s.pos("i", "p", "y")
        }),
        (
            "pos(i, p, A): the level of A, stored as {D,C}(0,1), that i goes through is dense, where positions are coordinates; nothing needs to be done",
            |s| s.pos("i", "p", "A"),
        ),
        ("pos(i, p, x): no access has i at consecutive levels: there is x(j), stored as {D}(0)", |s| {
            s.pos("i", "p", "x")
        }),
        ("pos(f, p, A): no access has j, i at consecutive levels: there is A(i,j), stored as {D,C}(0,1)", |s| {
            s.reorder(["j", "i"])?.fuse("j", "i", "f")?.pos("f", "p", "A")
        }),
        (
            "pos(ji, p, A): ji is a part, as j = jo * 4 + ji; positions take the place of whole variables, so do this before",
            |s| s.split("j", "jo", "ji", 4)?.pos("ji", "p", "A"),
        ),
        (
            "pos(p, q, A): p is a part, as j = the coordinate of A(i,j) at p; positions take the place of whole variables, so do this before",
            |s| s.pos("j", "p", "A")?.pos("p", "q", "A"),
        ),
        ("pos(j, p, A): p goes through positions of A(i,j) below i, and is not inside of the loops over i", |s| {
            s.reorder(["j", "i"])?.pos("j", "p", "A")
        }),
        ("reorder({p, i}): p goes through positions of A(i,j) below i, and is not inside of the loops over i", |s| {
            s.pos("j", "p", "A")?.reorder(["p", "i"])
        }),
        (
            "bound(pi, q, 5): pi goes through positions of A(i,j), of which there are as many as it stores; nothing can be promised",
            |s| s.pos("j", "p", "A")?.split("p", "po", "pi", 5)?.bound("pi", "q", 5),
        ),
        (
            "chunk(p, 4): the loop over p goes through positions, of which threads are given equal numbers at once; divide it into more parts instead",
            |s| s.pos("j", "p", "A")?.parallelize("p", Unit::Threads, Races::Reduced)?.chunk("p", 4),
        ),
        ("pos(j, p, A): j is unrolled already; do this before", |s| s.unroll("j", 2)?.pos("j", "p", "A")),
        (
            "parallelize(po, threads): iterations of po would write the same elements of y at the same time, as y is not indexed by j; allow the race as a reduction, or make another loop parallel",
            |s| {
                let positions = s.fuse("i", "j", "f")?.pos("f", "p", "A")?;
                positions.divide("p", "po", "pi", 8)?.parallelize("po", Unit::Threads, Races::Forbidden)
            },
        ),
        ("pos(jw, p, w): w is a workspace, which has no positions before it is computed; name an operand", |s| {
            let x = TensorVariable::new("x", F64, [12]);
            s.precompute(x.at(["j"]), ["j"], ["jw"], "w")?.pos("jw", "p", "w")
        }),
    ];
    for (message, change) in table {
        refused(&multiply, message, change);
    }
    let refuse = |text: &str, formats: &[(&str, &str)], message: &str, change: Change| {
        refused(&stored(text, formats), message, change);
    };
    // What is left out has to have no effect.
    refuse(
        "y(i) = reduce(+, j, A(i,j) + x(j))",
        &[("A", "csr")],
        "pos(j, p, A): y(i) may change where A(i,j) stores nothing, which a loop over its positions leaves out; loop over coordinates",
        |s| s.pos("j", "p", "A"),
    );
    refuse(
        "E(i,j) = A(i,j) + B(i,j)",
        &[("A", "csr"), ("B", "csr")],
        "pos(f, p, B): E(i,j) may change where B(i,j) stores nothing, which a loop over its positions leaves out; loop over coordinates",
        |s| s.fuse("i", "j", "f")?.pos("f", "p", "B"),
    );
    refuse(
        "y(i) = A(i,j)",
        &[("A", "coo")],
        "pos(j, p, A): A, stored as {C~u,S}(0,1), has one position for each entry, in all levels, and j is not all of its dimensions; fuse the loops over these",
        |s| s.pos("j", "p", "A"),
    );
    refuse(
        "s = S(i,j) * S(j,i)",
        &[("S", "dcsr")],
        "pos(i, p, S): several accesses have i at consecutive levels, S(i,j), S(j,i); positions are those of one",
        |s| s.pos("i", "p", "S"),
    );
}

#[test]
fn merging() {
    let products = stored("y(i) = A(i,j) * B(i,j)", &[("A", "csr"), ("B", "csr")]);
    let table: [(&str, Change); 6] = [
        (
            "mergeby(j, bitmap): A(i,j), B(i,j) have other elements in each iteration of the loop around j; a workspace is made where one of them stays as it is for several of these",
            |s| s.mergeby("j", Merge::Bitmap),
        ),
        (
            "mergeby(i, hash): nothing has to be stored for an iteration of i to have an effect; that is no intersection, which could be merged in another way",
            |s| s.mergeby("i", Merge::Hash),
        ),
        ("mergeby(k, gallop): there is no loop over k; there are loops over i, j", |s| s.mergeby("k", Merge::Gallop)),
        (
            "mergeby(i, gallop): nothing has to be stored for an iteration of i to have an effect; that is no intersection, which could be merged in another way",
            |s| s.mergeby("i", Merge::Gallop),
        ),
        ("split(j, jo, ji, 4): j is merged by locate already; do this before", |s| {
            s.mergeby("j", Merge::Locate)?.split("j", "jo", "ji", 4)
        }),
        ("pos(j, p, A): j is merged by gallop already; do this before", |s| {
            s.mergeby("j", Merge::Gallop)?.pos("j", "p", "A")
        }),
    ];
    for (message, change) in table {
        refused(&products, message, change);
    }
    let table: [(&str, &str, Change); 2] = [
        (
            "E(i,j) = A(i,j) + B(i,j)",
            "mergeby(j, locate): A(i,j), B(i,j) are united over j, step by step; only intersections are merged in other ways",
            |s| s.mergeby("j", Merge::Locate),
        ),
        (
            "y(i) = A(i,j) * x(j)",
            "mergeby(j, locate): A(i,j) has to be stored for an iteration of j to have an effect; that is no intersection, which could be merged in another way",
            |s| s.mergeby("j", Merge::Locate),
        ),
    ];
    for (text, message, change) in table {
        refused(&stored(text, &[("A", "csr"), ("B", "csr")]), message, change);
    }
    refused(
        &stored("s = A(i,j) * B(i,j)", &[("A", "dcsr"), ("B", "dcsr")]),
        "mergeby(i, bitmap): there is no loop around i: a workspace is made where several iterations of one use it",
        |s| s.mergeby("i", Merge::Bitmap),
    );
    refused(
        &stored("s = A(i,k) * B(j,k) * S(i,j)", &[("A", "csr"), ("B", "csr"), ("S", "csr")]),
        "mergeby(ki, hash): none of A(i,k), B(j,k) has ki itself; say this before the variable that they have is changed",
        |s| s.split("k", "ko", "ki", 4)?.mergeby("ki", Merge::Hash),
    );
}
