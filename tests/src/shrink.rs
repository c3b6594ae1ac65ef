//! Smaller programs with the same failure.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::oracle::World;
use crate::program::{Action, Block, Body, Launch, Program, Statement};
use crate::trial::Trial;

/// After how long a small program counts as hanging.
const PATIENCE: Duration = Duration::from_secs(2);

/// Drops statements, requirements, arguments and fields as long as some deviation remains, and gives the smallest program found.
#[must_use]
pub fn shrink(trial: &Trial, program: Program, deviations: &[String]) -> Program {
    let trial = &Hunt { trial, kinds: deviations.iter().map(|deviation| kind(deviation)).collect() };
    let mut smallest = program;
    loop {
        let before = size(&smallest.body);
        for width in [32, 8, 3, 1] {
            smallest = drop_statements(trial, smallest, width);
        }
        smallest = simplify(trial, smallest);
        if size(&smallest.body) == before {
            return smallest;
        }
    }
}

/// What is being looked for.
struct Hunt<'a> {
    trial: &'a Trial,
    kinds: Vec<String>,
}

/// A deviation without its numbers.
fn kind(deviation: &str) -> String {
    let words = deviation.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    words.take(6).collect::<Vec<_>>().join(" ")
}

/// Whether a program has a meaning and still deviates as it did, or hangs.
fn fails(hunt: &Hunt<'_>, program: &Program) -> bool {
    let same = |deviation: &String| hunt.kinds.contains(&kind(deviation));
    World::run(&program.body).is_ok()
        && (0..hunt.trial.tries).any(|_| run_patiently(hunt.trial, program).iter().any(same))
}

/// How one run of a program deviates. A run that hangs is left behind.
fn run_patiently(trial: &Trial, program: &Program) -> Vec<String> {
    let (sender, receiver) = mpsc::channel();
    let (trial, program) = (trial.clone(), program.clone());
    std::thread::spawn(move || {
        // Nobody listens any more if this took too long.
        let _ = sender.send(trial.run_program(program));
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(outcome) => outcome.err().unwrap_or_default(),
        Err(_) => vec!["hang".to_owned()],
    }
}

fn drop_statements(trial: &Hunt<'_>, mut program: Program, width: usize) -> Program {
    let mut end = count(&program.body);
    while end > 0 {
        let start = end.saturating_sub(width);
        let smaller = Program { body: without(&program.body, &mut 0, start..end), ..program.clone() };
        if fails(trial, &smaller) {
            program = smaller;
        }
        end = start.min(count(&program.body));
    }
    program
}

/// The number of statements, nested ones too.
fn count(block: &Block) -> usize {
    block.0.iter().map(|statement| 1 + nested(statement).map(count).sum::<usize>()).sum()
}

fn nested(statement: &Statement) -> impl Iterator<Item = &Block> {
    let blocks: &[Block] = match &statement.action {
        Action::Launch(launch) => match &launch.body {
            Body::Blocks { blocks, .. } => blocks,
            Body::Leaf => &[],
        },
        Action::Inline(inline) => std::slice::from_ref(&inline.during),
        _ => &[],
    };
    blocks.iter()
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
fn simplify(trial: &Hunt<'_>, mut program: Program) -> Program {
    for number in 0..count(&program.body) {
        let mut edit = 0;
        while let Some(body) = edited(&program.body, &mut 0, number, edit) {
            let smaller = Program { body, ..program.clone() };
            if fails(trial, &smaller) {
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
