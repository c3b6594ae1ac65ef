//! Schedules by blocks: how each index variable is split, in which order blocks are computed, and where (Shinde,
//! *SuperTaco*, MIT 2019).
//!
//! They become ordinary commands: blocks of variables that say where kernels run are the points of a launch, as are
//! those of variables over which partial results are made at the same time; all other blocks are steps, in the order
//! that is asked for.

use std::collections::BTreeSet;
use std::fmt::Write;

use maniple_tensor::concrete::Statement;
use maniple_tensor::notation::{Assignment, Expression, IndexVariable};
use maniple_tensor::program::Program;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;

use super::loops::usage;
use super::options::Options;
use super::split::Split;
use crate::error::{Error, Result};
use crate::options::place;

/// Whether blocks are asked for.
pub(super) fn are_asked_for(options: &Options) -> bool {
    !(options.split.is_empty() && options.order.is_empty() && options.extend.is_empty() && options.map.is_empty())
}

/// The schedule of a program of one statement.
///
/// # Errors
/// [`Error::Usage`] if the options do not fit the statement, or each other.
pub(super) fn schedule(options: &Options, program: &Program) -> Result<Schedule> {
    let [assignment] = program.statements() else {
        return Err(Error::Usage("--split and what belongs to it are for one statement".to_owned()));
    };
    if !options.schedule.is_empty() || options.grid.is_some() || options.algorithm.is_some() {
        let problem = "--split, --order, --extend and --map say how a statement runs";
        return Err(Error::Usage(format!("{problem}: leave --schedule, --grid and --algorithm out")));
    }
    let text = commands(options, assignment)?;
    Schedule::parse(&text, &program.tensors()).map_err(|error| Error::Usage(format!("--split: {text}: {error}")))
}

/// The loops of a statement, from the outermost, as far as there is nothing between them.
fn loops(assignment: &Assignment) -> Result<Vec<String>> {
    let names = |statement: &Statement| -> Vec<String> {
        statement.spine().iter().map(|outer| outer.variable.name().to_owned()).collect()
    };
    let is_sparse = assignment.tensors().iter().any(|tensor| !tensor.format().is_dense());
    if !is_sparse {
        return Ok(names(&Statement::new(assignment)));
    }
    let computation = Computation::new(assignment).map_err(usage)?;
    Ok(names(computation.statement()))
}

fn commands(options: &Options, assignment: &Assignment) -> Result<String> {
    let loops = loops(assignment)?;
    let known = |option: &str, name: &String| match loops.contains(name) {
        true => Ok(()),
        false => {
            let variables: Vec<&str> = assignment.extents().keys().map(IndexVariable::name).collect();
            let problem = match (variables.contains(&&**name), loops.is_empty()) {
                (false, _) if variables.is_empty() => "the statement has no index variables".to_owned(),
                (false, _) => format!("the index variables of the statement are {}", variables.join(", ")),
                (true, true) => {
                    "the statement is a sum of sums, of which no loop is around all others; write each as a statement of its own".to_owned()
                }
                (true, false) => {
                    let all = loops.join(", ");
                    format!("the loops around all others are {all}; only those can be split and ordered")
                }
            };
            Err(Error::Usage(format!("{option} {name}: {problem}")))
        }
    };
    for (option, names) in [("--order", &options.order), ("--extend", &options.extend), ("--map", &options.map)] {
        names.iter().try_for_each(|name| known(option, name))?;
        if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
            return Err(Error::Usage(format!("{option} {}: a variable is there twice", names.join(","))));
        }
    }
    if !options.order.is_empty() && options.order.len() != loops.len() {
        let found = options.order.join(",");
        return Err(Error::Usage(format!("--order {found}: it must name each of {} once", loops.join(", "))));
    }
    let target = &assignment.left().variables;
    let is_free = |name: &String| target.iter().any(|variable| variable.name() == name);
    if let Some(free) = options.extend.iter().find(|name| is_free(name)) {
        return Err(Error::Usage(format!(
            "--extend {free}: {free} is a variable of the result; partial results are made for variables that are summed over"
        )));
    }
    let mut text = String::new();
    let mut split = Vec::new();
    for (name, how) in &options.split {
        known("--split", name)?;
        if split.contains(name) {
            return Err(Error::Usage(format!("--split says twice how {name} is split")));
        }
        let extent =
            assignment.extents().iter().find(|(variable, _)| variable.name() == name).map(|(_, extent)| *extent);
        let made = match how {
            Split::Ranges(1) => continue,
            Split::Ranges(count) => format!("divide({name}, {name}_block, {name}_in, {count})"),
            Split::At(points) => {
                if let Some(pair) = points.windows(2).find(|pair| pair[0] > pair[1]) {
                    let problem = format!("--split {name}: {} comes after {}", pair[1], pair[0]);
                    return Err(Error::Usage(format!("{problem}: points must not decrease")));
                }
                if let Some(point) = points.iter().find(|point| extent.is_some_and(|extent| **point > extent)) {
                    let extent = extent.unwrap_or(0);
                    return Err(Error::Usage(format!(
                        "--split {name}: {point} is beyond the extent {extent} of {name}"
                    )));
                }
                let mut distinct = points.clone();
                // Ranges without values would have nothing to do.
                distinct.dedup();
                distinct.retain(|point| extent.is_none_or(|extent| *point < extent));
                let list = distinct.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
                if distinct.is_empty() {
                    continue;
                }
                format!("split_at({name}, {name}_block, {name}_in, {{{list}}})")
            }
        };
        check_added(assignment, "--split", name)?;
        let _ = writeln!(text, "{made}");
        split.push(name.clone());
    }
    let order = if options.order.is_empty() { &loops } else { &options.order };
    let is_mapped = |name: &String| match options.map.is_empty() {
        true => is_free(name),
        false => options.map.contains(name),
    };
    // On several nodes, blocks of a number are made at once, as no variable says where kernels run.
    let is_number = place().nodes > 1 && !order.iter().any(is_mapped);
    let is_extended = |name: &String| is_number || options.extend.contains(name);
    if place().nodes > 1 && !split.iter().any(|name| is_mapped(name) || is_extended(name)) {
        // Nothing says which node has what: each has a block of the first variable that says where kernels run.
        if let Some(name) = order.iter().find(|name| is_mapped(name)).or(order.first()) {
            check_added(assignment, "--map", name)?;
            let _ = writeln!(text, "divide({name}, {name}_block, {name}_in, {})", place().nodes);
            split.push(name.clone());
        }
    }
    let blocks = |is_one: &dyn Fn(&String) -> bool| -> Vec<String> {
        order.iter().filter(|name| split.contains(name) && is_one(name)).map(|name| format!("{name}_block")).collect()
    };
    let mapped = blocks(&is_mapped);
    let extended = blocks(&|name| !is_mapped(name) && is_extended(name));
    let steps = blocks(&|name| !is_mapped(name) && !is_extended(name));
    let points = [mapped, extended].concat();
    if split.is_empty() {
        return Ok(text);
    }
    let inner = |name: &String| if split.contains(name) { format!("{name}_in") } else { name.clone() };
    let all = [points.clone(), steps.clone(), loops.iter().map(inner).collect()].concat();
    let _ = writeln!(text, "reorder({{{}}})", all.join(", "));
    if !points.is_empty() {
        let _ = writeln!(text, "distribute({{{}}})", points.join(", "));
    }
    if let Some(innermost) = steps.last() {
        // Of each operand a point has no more than the block of a step.
        let operands: BTreeSet<&str> =
            assignment.right().accesses().iter().map(|access| access.tensor.name()).collect();
        let operands: Vec<&str> = operands.into_iter().collect();
        let _ = writeln!(text, "communicate({{{}}}, {innermost})", operands.join(", "));
    }
    Ok(text)
}

/// Refuses to split a variable that is summed over in some terms alone.
fn check_added(assignment: &Assignment, option: &str, name: &str) -> Result<()> {
    let is_free = assignment.left().variables.iter().any(|variable| variable.name() == name);
    if is_free || !is_added_to(assignment.right(), name) {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{option} {name}: {name} is not in all terms of the sum, and those without it would be added for each block"
    )))
}

/// Whether a sum at the top of an expression has terms with a variable and terms without it.
fn is_added_to(expression: &Expression, name: &str) -> bool {
    let terms = terms(expression);
    let has = |term: &&Expression| {
        term.accesses().iter().any(|access| access.variables.iter().any(|variable| variable.name() == name))
    };
    terms.len() > 1 && !terms.iter().all(has) && terms.iter().any(has)
}

fn terms(expression: &Expression) -> Vec<&Expression> {
    use maniple_tensor::notation::BinaryOperator::{Add, Subtract};
    match expression {
        Expression::Binary(Add | Subtract, left, right) => [terms(left), terms(right)].concat(),
        other => vec![other],
    }
}
