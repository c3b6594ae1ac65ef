//! Smaller programs with the same failure.

use std::sync::Arc;
use std::time::Duration;

use crate::oracle::World;
use crate::program::{Action, Block, Body, Launch, Program, Site, Statement};
use crate::trial::Trial;

/// After how long without progress a program counts as hanging.
const PATIENCE: Duration = Duration::from_secs(2);

/// Drops statements, turns of loops, requirements, arguments and fields, and unwraps loops and traces, as long as some
/// deviation remains, and gives the smallest program found.
///
/// A failure may depend on the schedule: a smaller program is taken to be right only after so many tries.
#[must_use]
pub fn shrink(trial: &Trial, program: Program, deviations: &[String], tries: usize) -> Program {
    let hunt = &Hunt { trial, deviations, tries };
    let mut smallest = program;
    loop {
        let before = size(&smallest.body);
        for width in [32, 8, 3, 1] {
            smallest = drop_sites(hunt, smallest, width);
        }
        smallest = drop_turns(hunt, smallest);
        for width in [32, 8, 3, 1] {
            smallest = drop_statements(hunt, smallest, width);
        }
        smallest = simplify(hunt, unwrap(hunt, smallest));
        if size(&smallest.body) == before {
            return smallest;
        }
    }
}

/// The deviations that are being looked for.
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

    /// The program after a change, if the change makes it smaller and it still deviates; otherwise the program itself.
    fn smaller(&self, program: Program, change: impl FnOnce(&Block) -> Block) -> Program {
        let changed = Program { body: change(&program.body), ..program.clone() };
        if size(&changed.body) < size(&program.body) && self.fails(&changed) { changed } else { program }
    }
}

/// Drops statements with the same site in all turns of a loop together.
fn drop_sites(hunt: &Hunt<'_>, mut program: Program, width: usize) -> Program {
    let mut end = sites(&program.body).len();
    while end > 0 {
        let start = end.saturating_sub(width);
        let sites = sites(&program.body);
        let dropped = sites.get(start..end.min(sites.len())).unwrap_or_default();
        let keep = |statement: Statement| if dropped.contains(&statement.site) { vec![] } else { vec![statement] };
        program = hunt.smaller(program, |body| body.rewritten(&mut |statement| keep(statement)));
        end = start;
    }
    program
}

/// Drops statements one by one, or so many at a time: those with these numbers in the order in which blocks end.
fn drop_statements(hunt: &Hunt<'_>, mut program: Program, width: usize) -> Program {
    let mut end = program.body.count();
    while end > 0 {
        let start = end.saturating_sub(width);
        program = hunt.smaller(program, |body| {
            let mut number = 0;
            body.rewritten(&mut |statement| {
                number += 1;
                if (start..end).contains(&(number - 1)) { vec![] } else { vec![statement] }
            })
        });
        end = start.min(program.body.count());
    }
    program
}

/// Drops turns of loops.
fn drop_turns(hunt: &Hunt<'_>, mut program: Program) -> Program {
    let mut loops = Vec::new();
    program.body.each(&mut |statement| {
        if let Action::Repeat(turns) = &statement.action {
            loops.push((statement.id, turns.len()));
        }
    });
    for (id, turns) in loops {
        for width in [16, 4, 1] {
            let mut end = turns;
            while end > 0 {
                let start = end.saturating_sub(width);
                program = hunt.smaller(program, |body| {
                    body.rewritten(&mut |mut statement| {
                        if let (true, Action::Repeat(turns)) = (statement.id == id, &mut statement.action) {
                            let end = end.min(turns.len());
                            turns.drain(start.min(end)..end);
                        }
                        vec![statement]
                    })
                });
                end = start;
            }
        }
    }
    program
}

/// Has statements in the place of the loop, trace or mapping that they are in.
fn unwrap(hunt: &Hunt<'_>, mut program: Program) -> Program {
    let mut wraps = Vec::new();
    program.body.each(&mut |statement| {
        if matches!(statement.action, Action::Repeat(_) | Action::Traced(..) | Action::Inline(_))
            && !wraps.contains(&statement.site)
        {
            wraps.push(statement.site);
        }
    });
    for site in wraps {
        program = hunt.smaller(program, |body| {
            body.rewritten(&mut |statement| {
                let is_meant = statement.site == site;
                match statement.action {
                    Action::Repeat(turns) if is_meant => turns.into_iter().flat_map(|turn| turn.0).collect(),
                    Action::Traced(_, block) if is_meant => block.0,
                    Action::Inline(inline) if is_meant => inline.during.0,
                    _ => vec![statement],
                }
            })
        });
    }
    program
}

/// All sites in reading order.
fn sites(block: &Block) -> Vec<Site> {
    let mut sites = Vec::new();
    block.each(&mut |statement| {
        if !sites.contains(&statement.site) {
            sites.push(statement.site);
        }
    });
    sites
}

/// A measure of how much there is to read.
fn size(block: &Block) -> usize {
    format!("{block:?}").len()
}

/// Simplifies launches one by one, those of one site together.
fn simplify(hunt: &Hunt<'_>, mut program: Program) -> Program {
    for site in sites(&program.body) {
        let mut edit = 0;
        while let Some(body) = edited(&program.body, site, edit) {
            let before = size(&program.body);
            program = hunt.smaller(program, |_| body.clone());
            if size(&program.body) == before {
                edit += 1;
            }
        }
    }
    program
}

/// The block with one edit of the launches of a site; none if they have no such edit.
fn edited(block: &Block, site: Site, edit: usize) -> Option<Block> {
    let mut is_changed = false;
    let changed = block.rewritten(&mut |mut statement| {
        if let (true, Action::Launch(launch)) = (statement.site == site, &mut statement.action) {
            is_changed |= simpler(Arc::make_mut(launch), edit);
        }
        vec![statement]
    });
    is_changed.then_some(changed)
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
    if launch.fault.is_some() {
        if edit == 0 {
            launch.fault = None;
            return true;
        }
        edit -= 1;
    }
    let plain = matches!(&launch.body, Body::Blocks { blocks, .. } if blocks.iter().all(|block| block.0.is_empty()));
    if plain && edit == 0 {
        launch.body = Body::Leaf;
    }
    plain && edit == 0
}
