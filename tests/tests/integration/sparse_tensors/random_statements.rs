//! Random statements on random formats, as tasks.

use std::sync::Arc;

use fastrand::Rng;
use maniple_tensor::concrete::Statement;
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::format::{Format, LevelExpression};
use maniple_tensor::lower::Output;
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::plan::{Graph, Pieces, Plan};
use maniple_tensor::schedule::Command;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};

use super::are_same;
use crate::random::{Problem, command, positions, size};

/// Formats of operands: those that loops go through, and those that are converted for them.
const FORMATS: [&[&str]; 4] = [
    &["{}"],
    &["{D}", "{C}", "{H}", "{B}", "{L}", "(i) -> (i/4: C, i%4: B)"],
    &[
        "rows",
        "columns",
        "csr",
        "csc",
        "dcsr",
        "dcsc",
        "{C,D}",
        "{C<i64,i64>,C<i64,i64>}",
        "coo",
        "coo",
        "coo",
        "ell",
        "{E,C}",
        "dia",
        "hash",
        "bitmap",
        "bcsr:2x3",
        "{D,L}",
        "{C,L}(1,0)",
        "{D,H}(1,0)",
        "{B,C}",
        "(i,j) -> (i+j: C, j: R)",
        "(i,j) -> (j-i: C, j: R)",
        "(i,j) -> (i: C, j/3: C, j%3: D)",
    ],
    &[
        "{D,B,C}",
        "{C,B,L}(1,0,2)",
        "{H,C,H}(2,0,1)",
        "{C~u,S,C}",
        "dense:3",
        "csf:3",
        "{D,C,C}(2,0,1)",
        "{C,D,C}(1,2,0)",
        "{D,D,C}",
        "{C,C,D}(2,1,0)",
        "{D,C,D}",
        "{C~u,S,S}(1,0,2)",
        "{D,E,C}",
        "{D,D,E}(1,2,0)",
    ],
];

/// Formats that results alone have: those that points assemble, and those that are made of these.
const ASSEMBLED: [&[&str]; 4] = [
    &["{}"],
    &["{C~o}", "{B}", "{H}", "{L}", "{E}"],
    &[
        "coo",
        "{C~u,S}(1,0)",
        "{D,H}",
        "{C,L}",
        "{D,C~o}",
        "{C,H}(1,0)",
        "ell",
        "bitmap",
        "dia",
        "hash",
        "bcsr:2x2",
        "{B,C}",
    ],
    &["coo:3", "{C,C,H}", "{D,C,L}(1,0,2)", "{C~u,S,S}(2,1,0)", "{D,D,B}", "{C,E,D}"],
];

/// The statement with loops over equal parts of the positions of an operand on points.
fn parts_of_positions(statement: &Statement, random: &mut Rng) -> Option<Statement> {
    let mut changed = statement.clone();
    let mut commands = positions(statement, random);
    // What goes through the positions of a part, or parts of it, stays.
    commands.retain(|command| !matches!(command, Command::Parallelize { .. }));
    let divided = commands.iter().rposition(|command| matches!(command, Command::Pos { .. }))?;
    let Command::Pos { position, .. } = &commands[divided] else { return None };
    let position = position.clone();
    for command in &commands[..=divided] {
        changed = command.apply(&changed).ok()?;
    }
    changed.divide(position, "po", "pi", random.i64(1..6)).and_then(|changed| changed.distribute_loops(["po"])).ok()
}

/// A placement of a tensor in levels, now and then: by one of its dimensions that a level stores, in blocks, in turns
/// or in equal parts, or by its elements.
fn placement(variable: &TensorVariable, random: &mut Rng) -> Option<(String, String)> {
    let format = variable.format();
    let modes = format.expressions().iter().filter_map(|level| match level {
        LevelExpression::Mode(mode) => Some(*mode),
        _ => None,
    });
    let modes: Vec<usize> = modes.collect();
    if format.is_dense() || modes.is_empty() || random.bool() {
        return None;
    }
    let names: String = "xyzw".chars().take(variable.order()).collect();
    let name = &names[modes[random.usize(..modes.len())]..][..1];
    let cut = match random.u8(..4) {
        0 => name.to_owned(),
        1 => format!("cyclic({name}, 2)"),
        2 => format!("~{name}"),
        _ => "f : ~f".to_owned(),
    };
    Some((variable.name().to_owned(), format!("{names} -> {cut}")))
}

/// The elements of a tensor of a problem, of which some are left out.
pub fn elements(problem: &Problem, variable: &TensorVariable, random: &mut Rng) -> SparseTensor<i64> {
    let (keep, array) = (random.u8(1..10), &problem.operands[variable.name()]);
    let (mut entries, mut at) = (EntryList::new(variable.order()), vec![0; variable.order()]);
    for value in array.values() {
        if let (Scalar::I64(value), true) = (*value, random.u8(..10) < keep) {
            entries.push(&at, value);
        }
        for (coordinate, extent) in at.iter_mut().zip(array.dimensions()).rev() {
            *coordinate = (*coordinate + 1) % extent.max(&1);
            if *coordinate != 0 {
                break;
            }
        }
    }
    let Scalar::I64(fill) = variable.fill() else { unreachable!("of this type") };
    pack(variable.format(), variable.dimensions(), fill, entries, Duplicates::Refuse).unwrap().tensor
}

#[test]
fn random_statements_on_random_formats_are_the_same_as_tasks() {
    let (mut random, mut tried, mut launched) = (Rng::with_seed(17), 0, 0);
    let (mut in_pieces, mut in_shares, mut assembled, mut by_entries) = (0, 0, 0, 0);
    let (mut of_others, mut to_others, mut of_own, mut of_placed, mut with_fill) = (0, 0, 0, 0, 0);
    let most = std::env::var("MANIPLE_TESTS_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(200);
    while tried < most {
        let problem = Problem::of(ElementType::I64, &mut random);
        let result = problem.assignment.left().tensor.name().to_owned();
        let mut of_result: Option<Format> = None;
        let mut declare = |variable: TensorVariable, random: &mut Rng| match FORMATS.get(variable.order()) {
            // As the result is: it may have the levels of this one.
            Some(_) if of_result.as_ref().is_some_and(|own| own.rank() == variable.order()) && random.bool() => {
                variable.stored(of_result.clone().unwrap())
            }
            // Of results, which have no more to be assembled from, every other one is dense.
            Some(formats) if variable.name() != result || random.bool() => {
                let of_results = ASSEMBLED.get(variable.order()).filter(|_| variable.name() == result && random.bool());
                let formats = of_results.unwrap_or(formats);
                let format: Format = formats[random.usize(..formats.len())].parse().unwrap();
                if variable.name() == result && !format.is_dense() {
                    of_result = Some(format.clone());
                }
                variable.stored(format)
            }
            _ => variable,
        };
        let is_filled = random.u8(..5) == 0;
        let mut filled = |variable: TensorVariable| {
            let fill = if is_filled && random.bool() { [1, -2, i64::MIN, i64::MAX][random.usize(..4)] } else { 0 };
            declare(variable, &mut random).filled(Scalar::I64(fill))
        };
        let variables = problem.assignment.tensors().into_iter().map(&mut filled);
        let variables: Vec<TensorVariable> = variables.collect();
        let Ok(assignment) = parse(&problem.assignment.to_string(), &variables) else { continue };
        let Ok(computation) = Computation::new(&assignment) else { continue };
        // The old elements of what is not dense are an operand.
        let Ok(computation) = computation.with_old_elements() else { continue };
        // What is stored entry by entry is gone through so, and else converted.
        let computation = match computation.by_entries().unwrap() {
            Some(entries) => {
                by_entries += 1;
                entries
            }
            None => computation,
        };
        let of_result = assignment.left().tensor.format();
        let forms = if of_result.is_dense() { Vec::new() } else { computation.assembled() };
        // Of some results others are assembled, and then converted.
        let computation = match forms.get(random.usize(..3)).map(|format| computation.storing(format)) {
            Some(Ok(other)) => other,
            _ => computation,
        };
        let mut statement = computation.statement().clone();
        let outer = statement.spine().first().map(|outer| outer.variable.clone());
        // Most operands have no positions that could be dealt.
        let tries = if random.bool() { 4 } else { 0 };
        if let Some(parts) = (0..tries).find_map(|_| parts_of_positions(&statement, &mut random)) {
            statement = parts;
        } else if let Some(outer) = outer
            && let Ok(distributed) = statement.distribute([outer], ["po"], ["pi"], &[random.i64(1..5)])
        {
            statement = distributed;
        }
        for _ in 0..random.usize(..6) {
            let Some(command) = command(&statement, &mut random) else { break };
            if let Ok(changed) = command.apply(&statement)
                && size(&changed) < 30_000.0
            {
                statement = changed;
            }
        }
        let Ok(plan) = Plan::new(&statement) else { continue };
        if plan.order().steps() * plan.order().points() > 60 {
            continue;
        }
        let given: Vec<(String, Arc<SparseTensor<i64>>)> = assignment
            .tensors()
            .into_iter()
            .map(|variable| (variable.name().to_owned(), Arc::new(elements(&problem, &variable, &mut random))))
            .collect();
        let placed: Vec<(String, String)> =
            assignment.tensors().iter().filter_map(|variable| placement(variable, &mut random)).collect();
        tried += 1;
        of_placed += usize::from(!placed.is_empty());
        with_fill += usize::from(assignment.tensors().iter().any(|variable| variable.fill() != Scalar::I64(0)));
        of_own += usize::from(!computation.kept().is_empty());
        assembled += usize::from(plan.leaf().output == Output::Entries);
        of_others += usize::from(!computation.conversions().is_empty());
        to_others += usize::from(plan.statement.result().format() != assignment.left().tensor.format());
        launched += usize::from(!plan.launches().is_empty());
        let graph = Graph::new(&[Arc::new(plan.clone())]);
        let has = |is_one: fn(&Pieces) -> bool| graph.partitions.iter().any(|partition| is_one(&partition.pieces));
        in_pieces += usize::from(has(|pieces| matches!(pieces, Pieces::Below(_))));
        in_shares += usize::from(has(|pieces| matches!(pieces, Pieces::Shares(_))));
        are_same((1 + tried % 4, false), &assignment, &Arc::new(plan), &given, &placed);
    }
    let of = format!("{launched} were launched, {in_pieces} with parts of levels, {in_shares} with parts of positions");
    assert!(launched > 60 && in_pieces > 20 && in_shares > 8, "{of}");
    assert!(assembled > most / 12 && by_entries > 0, "{assembled} were assembled, {by_entries} went through entries");
    assert!(of_own > most / 60, "{of_own} read what they assign");
    assert!(of_placed > most / 8 && with_fill > most / 20, "{of_placed} were placed, {with_fill} filled with others");
    assert!(of_others > most / 8 && to_others > most / 20, "{of_others} with, and {to_others} to, converted tensors");
}
