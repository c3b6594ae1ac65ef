//! Texts that are nearly statements, formats, placements, machines, generators and schedules: each is read or refused,
//! and what is read prints as what it is.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use fastrand::Rng;
use maniple_tensor::concrete::Statement;
use maniple_tensor::cost::Rates;
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::format::Format;
use maniple_tensor::generate::Generator;
use maniple_tensor::machine::Machine;
use maniple_tensor::notation::{IndexVariable, TensorVariable, parse};
use maniple_tensor::placement::Placement;
use maniple_tensor::plan::Plan;
use maniple_tensor::program::Program;
use maniple_tensor::schedule::Schedule;

/// How many texts are tried, of each kind: `MANIPLE_TEXTS` says otherwise.
fn count() -> usize {
    std::env::var("MANIPLE_TEXTS").ok().and_then(|count| count.parse().ok()).unwrap_or(2_000)
}

/// The texts that replace parts of texts.
const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ";",
    ":",
    "~",
    "->",
    "=",
    "+",
    "-",
    "*",
    "/",
    "+=",
    "<",
    "==",
    "#",
    "\n",
    " ",
    "\0",
    "\u{e9}",
    "\u{1f980}",
    "i",
    "j",
    "ko",
    "A",
    "B",
    "sum",
    "min",
    "sqrt",
    "select",
    "reduce",
    "D",
    "C",
    "C~u",
    "C<i8>",
    "0",
    "1",
    "-1",
    "2",
    "1e308",
    "1e999",
    "0x10",
    "9223372036854775807",
    "9223372036854775808",
    "99999999999999999999999",
    "_",
    "..",
    "'",
    "\"",
    "vector",
    "threads",
    "Gemm",
    "f32",
    "i32",
    "c64",
];

/// The parts of a text: names and numbers, and all other characters by themselves.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for character in text.chars() {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        match parts.last_mut() {
            Some(last) if is_word(character) && last.chars().all(is_word) => last.push(character),
            _ => parts.push(character.to_string()),
        }
    }
    parts
}

/// A text that differs from one of `texts` in few places, with parts of another one now and then.
fn mutated(texts: &[&str], random: &mut Rng) -> String {
    let of = |random: &mut Rng| parts(texts[random.usize(..texts.len())]);
    let mut text = of(random);
    for _ in 0..random.usize(0..6) {
        let at = random.usize(..=text.len());
        let more = match random.usize(..6) {
            0..=2 => vec![PIECES[random.usize(..PIECES.len())].to_owned()],
            3 => {
                let other = of(random);
                let from = random.usize(..=other.len());
                other[from..].to_vec()
            }
            4 => text[at..].iter().take(random.usize(0..6)).cloned().collect(),
            _ => Vec::new(),
        };
        let end = (at + random.usize(0..3)).min(text.len());
        text.splice(at..end, more);
    }
    if random.usize(..200) == 0 {
        // Deeper than any stack.
        let deep = PIECES[random.usize(..6)].repeat(100_000);
        text.insert(random.usize(..=text.len()), deep);
    }
    text.concat()
}

/// Reads texts near to these; all that are read print as texts that are read as the same.
fn print_as_they_are<T: FromStr + Display + Debug + PartialEq>(texts: &[&str], seed: u64)
where
    T::Err: Display,
{
    let (mut random, mut read) = (Rng::with_seed(seed), 0);
    for _ in 0..count() {
        let text = mutated(texts, &mut random);
        match text.parse::<T>() {
            Ok(found) => {
                read += 1;
                let printed = found.to_string();
                assert_eq!(printed.parse().ok().as_ref(), Some(&found), "{text:?} prints as {printed:?}");
            }
            Err(error) => assert!(!error.to_string().is_empty(), "{text:?}"),
        }
    }
    assert!(read * 20 > count(), "{read} were read");
}

#[test]
fn formats_placements_machines_and_generators_are_read_or_refused() {
    let formats = [
        "csr",
        "{D,C}(1,0)",
        "bcsr:2x4",
        "{D,C<i32,i64>}",
        "(i,j) -> (i/4: D, j/4: C, i%4: D, j%4: D)",
        "ell",
        "dia",
        "{C,C,C}(2,0,1)",
        "{B}",
        "{H,C~o}",
        "coo",
        "ds:1,0",
        "(i,j) -> (j-i: C, i: R)",
    ];
    print_as_they_are::<Format>(&formats, 1);
    let placements =
        ["xy -> x", "xy -> xy0", "xyz -> *zx", "xy -> ~y", "xy -> f : ~f", "xy -> x/y", "x -> x; x -> x", "-> 00"];
    print_as_they_are::<Placement>(&placements, 2);
    print_as_they_are::<Machine>(&["2x2", "4", "2x3x4", "2 / 2", "1024x1024"], 3);
    let generators = ["uniform:0.3", "zipf:1000", "band:5", "poisson:100", "poisson3:10", "rmat:12,8", "arrow"];
    print_as_they_are::<Generator>(&generators, 4);
}

const SCHEDULES: &[&str] = &[
    "distribute({i, j}, {io, jo}, {ii, ji}, {2, 2}); split(k, ko, ki, 10); reorder({ko, ii, ji, ki})",
    "divide(i, io, ii, 4); distribute(io); communicate({A, B}, io)",
    "fuse(i, j, f); pos(f, p, B); divide(p, po, pi, 3); parallelize(po, threads)",
    "precompute(B(i,k) * C(k,j), {j}, {jw}, w); store(w, {C}); unroll(j, 4)",
    "parallelize(i, threads); parallelize(k, vector, reduced); chunk(i, 64)",
    "split_at(i, io, ii, {3, 5}); mergeby(k, gallop); bound(k, kb, 30)",
    "rotate(k, {i, j}, ks); substitute({i, j, k}, Gemm)",
    "precompute(B(i,k), {i}, {iw}, w); precompute(w(i) * C(k,j), {i}, {ix}, v); unroll(ix, 2); unroll(i, 3)",
];

fn tensors(is_sparse: bool) -> Vec<TensorVariable> {
    let tensor = |name: &str, extents: &[i64]| TensorVariable::new(name, F64, extents.to_vec());
    let mut all = vec![tensor("s", &[]), tensor("a", &[30]), tensor("b", &[30]), tensor("T", &[30, 30, 30])];
    all.extend(["A", "B", "C", "D"].map(|name| tensor(name, &[30, 30])));
    if is_sparse {
        all[5] = all[5].clone().stored("csr".parse().expect("a format"));
    }
    all
}

#[test]
fn statements_are_read_or_refused_and_schedules_are_legal_or_not() {
    let statements = [
        "A(i,j) = B(i,k) * C(k,j)",
        "a(i) = B(i,j) * b(j) + a(i) - 2.5",
        "A(i,j) += select(B(i,j) > 0, sqrt(C(i,j)), min(B(i,j), 1e3))",
        "s = reduce(max, i, reduce(*, j, B(i,j) + i))",
        "A(i,j) = T(i,j,k) * B(i,l) * C(l,k)",
        "a(i) = B(i(0,10),j) / b(j-1)",
        "a(i) = B(i+1,j(0,30,1)) * b(j) + a(i)",
        "s = b(i(2,12)) * b(i(12,22)) - a(i-2)",
        "A(i,j) = B(i(0,10),k+1) * C(k,l-1) * D(l,j(0,30))",
        "A(i,j) = B(j,i) & C(i,j) | !D(i,j)",
    ];
    let mut random = Rng::with_seed(5);
    let (mut read, mut legal, mut planned) = (0, 0, 0);
    for number in 0..count() {
        let tensors = tensors(number % 3 == 0);
        let text = mutated(&statements, &mut random);
        let Ok(assignment) = parse(&text, &tensors) else { continue };
        read += 1;
        let printed = assignment.to_string();
        assert_eq!(parse(&printed, &tensors).as_ref(), Ok(&assignment), "{text:?} prints as {printed:?}");
        // Divided, it is one statement or several.
        let program = Program::new(vec![assignment.clone()]).expect("it is one statement");
        assert!(!program.divided(&Rates::default()).statements().is_empty(), "{text:?}");
        let statement = Statement::new(&assignment);
        let known: Vec<TensorVariable> = statement.tensors().into_iter().cloned().collect();
        for _ in 0..4 {
            let text = mutated(SCHEDULES, &mut random);
            let Ok(schedule) = Schedule::parse(&text, &known) else { continue };
            let Ok(scheduled) = schedule.apply(&statement) else { continue };
            legal += 1;
            planned += usize::from(Plan::new(&scheduled).is_ok());
        }
    }
    assert!(
        read * 20 > count() && legal * 100 > count() && planned > 0,
        "{read} read, {legal} legal, {planned} planned"
    );
}

/// Tensors that are made by the way have one number of dimensions and one extent in each, whatever parts are taken of
/// them.
#[test]
fn statements_without_declared_tensors_are_read_or_refused() {
    let statements = [
        "y(i) = A(i(0,4)) + A(i(4,8)) * A(i)",
        "s = a(i+1) * b(i); t = s + a(j(0,3))",
        "C(i,j) = A(i+1,k) * A(k,j-1) + A(i(0,4),j(4,8))",
        "m(i) = reduce(max, k, E(i,k+1) * 2) - sqrt(b(i)) * x",
        "A(i,l) = B(i,j(0,9,2)) * C(j-1,k) * D(k,l)",
        "a(i) = select(b(i) > 0, min(b(i-1), 2), f64(c(i)))",
    ];
    let (mut random, mut read) = (Rng::with_seed(6), 0);
    let variables = ["i", "j", "k", "l"].map(IndexVariable::new);
    for _ in 0..count() {
        let text = mutated(&statements, &mut random);
        let extents: Vec<_> = variables.iter().map(|variable| (variable.clone(), random.i64(0..6))).collect();
        // What has extents is read without them too.
        let sketch = Program::sketch(&text, F64, &variables);
        let Ok(program) = Program::parse_with_extents(&text, F64, &extents) else { continue };
        read += 1;
        assert!(sketch.is_ok(), "{text:?}: {}", sketch.unwrap_err());
        // A tensor may have the name of a function, which it then stands for.
        if program.tensors().iter().any(|tensor| ["reduce", "select", "sqrt", "min"].contains(&tensor.name())) {
            continue;
        }
        let again = Program::parse(&program.to_string(), &program.tensors());
        assert_eq!(again.as_ref(), Ok(&program), "{text:?} prints as {program}");
        assert!(!program.divided(&Rates::default()).statements().is_empty(), "{text:?}");
    }
    assert!(read * 20 > count(), "{read} were read");
}
