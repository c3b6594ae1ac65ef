//! Smaller programs with the same failure.

use std::sync::Arc;
use std::time::Duration;

use crate::oracle::World;
use crate::program::{Action, Block, Body, Launch, Program};
use crate::trial::Trial;

/// After how long without progress a program counts as hanging.
const PATIENCE: Duration = Duration::from_secs(2);

/// Drops statements, requirements, arguments and fields as long as some deviation remains, and gives the smallest program found.
///
/// A failure may depend on the schedule: a smaller program is taken to be right only after so many tries.
#[must_use]
pub fn shrink(trial: &Trial, program: Program, deviations: &[String], tries: usize) -> Program {
    let hunt = &Hunt { trial, deviations, tries };
    let mut smallest = program;
    loop {
        let before = size(&smallest.body);
        for width in [32, 8, 3, 1] {
            smallest = drop_statements(hunt, smallest, width);
        }
        smallest = simplify(hunt, smallest);
        if size(&smallest.body) == before {
            return smallest;
        }
    }
}

/// What is being looked for.
struct Hunt<'a> {
    trial: &'a Trial,
    deviations: &'a [String],
    tries: usize,
}

/// Whether some deviation of one run is like one of another: the same but for names and values.
#[must_use]
pub fn are_alike(some: &[String], others: &[String]) -> bool {
    some.iter().any(|one| others.iter().any(|other| kind(one) == kind(other)))
}

/// A deviation without its numbers.
fn kind(deviation: &str) -> String {
    let words = deviation.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    words.take(6).collect::<Vec<_>>().join(" ")
}

impl Hunt<'_> {
    /// Whether a program has a meaning and still deviates as the first one did.
    fn fails(&self, program: &Program) -> bool {
        let run = || self.trial.watch(program.clone(), PATIENCE).deviations;
        World::run(&program.body).is_ok() && (0..self.tries).any(|_| are_alike(&run(), self.deviations))
    }
}

fn drop_statements(hunt: &Hunt<'_>, mut program: Program, width: usize) -> Program {
    let mut end = count(&program.body);
    while end > 0 {
        let start = end.saturating_sub(width);
        let smaller = Program { body: without(&program.body, &mut 0, start..end), ..program.clone() };
        if hunt.fails(&smaller) {
            program = smaller;
        }
        end = start.min(count(&program.body));
    }
    program
}

/// The number of statements, nested ones too.
#[must_use]
pub fn count(block: &Block) -> usize {
    let mut count = 0;
    block.each(&mut |_| count += 1);
    count
}

/// A measure of how much there is to read.
fn size(block: &Block) -> usize {
    format!("{block:?}").len()
}

/// The block without some of its statements, by their numbers in reading order.
fn without(block: &Block, next: &mut usize, dropped: std::ops::Range<usize>) -> Block {
    let mut kept = Vec::new();
    for statement in &block.0 {
        let number = *next;
        *next += 1;
        let mut statement = statement.clone();
        match &mut statement.action {
            Action::Launch(launch) => {
                let launch = Arc::make_mut(launch);
                if let Body::Blocks { blocks, .. } = &mut launch.body {
                    blocks.iter_mut().for_each(|block| *block = without(block, next, dropped.clone()));
                }
            }
            Action::Inline(inline) => inline.during = without(&inline.during, next, dropped.clone()),
            _ => {}
        }
        if !dropped.contains(&number) {
            kept.push(statement);
        }
    }
    Block(kept)
}

/// Simplifies launches one by one.
fn simplify(hunt: &Hunt<'_>, mut program: Program) -> Program {
    for number in 0..count(&program.body) {
        let mut edit = 0;
        while let Some(body) = edited(&program.body, &mut 0, number, edit) {
            let smaller = Program { body, ..program.clone() };
            if hunt.fails(&smaller) {
                program = smaller;
            } else {
                edit += 1;
            }
        }
    }
    program
}

/// The block with one edit of the launch that is a statement; none if it has no such edit.
fn edited(block: &Block, next: &mut usize, number: usize, edit: usize) -> Option<Block> {
    let mut block = block.clone();
    for statement in &mut block.0 {
        let mine = *next == number;
        *next += 1;
        match &mut statement.action {
            Action::Launch(launch) => {
                let launch = Arc::make_mut(launch);
                if mine {
                    return simpler(launch, edit).then_some(block);
                }
                if let Body::Blocks { blocks, .. } = &mut launch.body {
                    for inner in blocks {
                        if let Some(edited) = edited(inner, next, number, edit) {
                            *inner = edited;
                            return Some(block);
                        }
                        if *next > number {
                            return None;
                        }
                    }
                }
            }
            Action::Inline(inline) if !mine => {
                if let Some(edited) = edited(&inline.during, next, number, edit) {
                    inline.during = edited;
                    return Some(block);
                }
            }
            _ => {}
        }
        if *next > number {
            return None;
        }
    }
    None
}

/// Makes one edit to a launch, if there are so many.
fn simpler(launch: &mut Launch, mut edit: usize) -> bool {
    if edit < launch.requirements.len() {
        launch.requirements.remove(edit);
        return true;
    }
    edit -= launch.requirements.len();
    if edit < launch.arguments.len() {
        launch.arguments.remove(edit);
        return true;
    }
    edit -= launch.arguments.len();
    for requirement in &mut launch.requirements {
        if requirement.fields.len() > 1 {
            if edit < requirement.fields.len() {
                requirement.fields.remove(edit);
                return true;
            }
            edit -= requirement.fields.len();
        }
    }
    let plain = matches!(&launch.body, Body::Blocks { blocks, .. } if blocks.iter().all(|block| block.0.is_empty()));
    if plain && edit == 0 {
        launch.body = Body::Leaf;
    }
    plain && edit == 0
}
