//! Whole programs, and the comparison of what they leave behind.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use maniple::{Context, Error, Field, Result, Runtime, Session};

use super::statement::go_on;
use super::{Run, Stop, Tolerance, locked, with_dimension};
use crate::oracle::Health;
use crate::program::{Action, Block, Column, FieldNumber, Node, Place, RegionName};
use crate::value::{Cells, Stored, Word};
use crate::with_kind;

/// How a program is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Way {
    /// As a function.
    #[default]
    Function,
    /// In a session, on one thread.
    Session,
    /// In a session, a few statements on one thread, and the next ones on another.
    Threads,
}

/// Runs a program as the top-level task, compares everything that is left at the end, and destroys it.
pub fn run_program(run: &Arc<Run>, runtime: &Runtime) {
    let outcome = match run.way {
        Way::Function => runtime.run(async |context| run.whole(context).await),
        Way::Session | Way::Threads => runtime.begin().and_then(|session| run.in_session(session)),
    };
    run.compare_outcome(outcome);
}

/// Runs several programs at the same time in one session, each on a thread of its own. None of them may fail.
///
/// # Errors
/// If the session cannot begin, or has failed.
pub fn run_side_by_side(runs: &[Arc<Run>], runtime: &Runtime) -> Result<()> {
    let session = runtime.begin()?;
    std::thread::scope(|scope| {
        for run in runs {
            let session = &session;
            scope.spawn(move || run.compare_outcome(session.wait(run.whole(session))));
        }
    });
    session.finish()
}

impl Run {
    /// The program with what is done at its end.
    async fn whole(self: &Arc<Self>, context: &Context) -> Result<Word> {
        let outcome = go_on(self, context, &self.program.body, 0, &mut HashMap::new()).await;
        self.at_end(context).await;
        outcome
    }

    async fn at_end(&self, context: &Context) {
        // A read of the data of a task that failed gets the failure, which is the program's no more. So some
        // programs are to fail without that.
        let is_silent = self.fate.health == Health::Lost && self.program.seed % 4 == 1;
        if !is_silent && !self.cut_short.load(Ordering::Acquire) {
            self.compare_regions(context).await;
        }
        self.destroy_everything(context);
    }

    fn in_session(self: &Arc<Self>, session: Session) -> Result<Word> {
        let outcome = match self.way {
            Way::Threads => self.on_threads(&session),
            _ => session.wait(self.whole(&session)),
        };
        let ended = session.finish();
        let digest = outcome?;
        ended.map(|()| digest)
    }

    /// Some statements on this thread, some on another one, and so on. As in a block, what comes after a statement that
    /// has failed is carried out.
    fn on_threads(self: &Arc<Self>, session: &Session) -> Result<Word> {
        let (mut digest, mut attached) = (Ok(0), HashMap::new());
        for (number, statements) in self.program.body.0.chunks(3).enumerate() {
            let block = Block(statements.to_vec());
            let before = *digest.as_ref().unwrap_or(&0);
            let mut part = || session.wait(go_on(self, session, &block, before, &mut attached));
            let outcome = match number % 2 {
                0 => part(),
                _ => std::thread::scope(|scope| scope.spawn(part).join().expect("statements do not panic")),
            };
            digest = digest.and(outcome);
            if self.cut_short.load(Ordering::Acquire) {
                break;
            }
        }
        // As at the end of a block: what was not detached is left to the regions.
        drop(attached);
        session.wait(async {
            self.at_end(session).await;
            digest
        })
    }

    /// Compares the values of all regions that are left.
    async fn compare_regions(&self, context: &Context) {
        // What a task has made on one node has no name on the others.
        let here = |name: &&RegionName| self.nodes == 1 || self.is_made_at_top_level(**name);
        // The data of a region whose index space is destroyed cannot be looked at.
        let is_open =
            |name: &&RegionName| !self.expected.destroyed_spaces.contains(&self.expected.regions[*name].space);
        for name in self.fate.created.iter().filter(here).filter(is_open) {
            for &field in self.expected.regions[name].data.keys() {
                if let Err(Stop(error)) = self.compare_field(context, *name, field).await
                    && self.tolerance == Tolerance::None
                {
                    self.deviates(format!("{name:?}.{field} cannot be compared: {error}"));
                }
            }
        }
    }

    fn is_made_at_top_level(&self, region: RegionName) -> bool {
        fn makes(block: &Block, region: RegionName) -> bool {
            block.0.iter().any(|statement| match &statement.action {
                Action::CreateRegion(name, ..) => *name == region,
                // What a task does inside of a launch is not the top level's.
                Action::Launch(_) => false,
                _ => statement.nested().iter().any(|block| makes(block, region)),
            })
        }
        makes(&self.program.body, region)
    }

    async fn compare_field(
        &self,
        context: &Context,
        region: RegionName,
        field: FieldNumber,
    ) -> std::result::Result<(), Stop> {
        let node = Node::Root(self.expected.regions[&region].space);
        let column = Column { place: Place { region, node }, field };
        let (kind, dim) = (self.kind(column)?, self.dimension(node)?);
        with_kind!(kind, T => with_dimension!(dim, D => self.compare_as::<T, D>(context, column).await))
    }

    async fn compare_as<T: Stored, const D: usize>(
        &self,
        context: &Context,
        column: Column,
    ) -> std::result::Result<(), Stop> {
        let Column { place, field } = column;
        let expected = self.expected.cells(place.region, field);
        let expected = expected.map_err(|why| Stop(Error::application(format!("{why:?}"))))?;
        let worst = expected.values().map(|cell| cell.health).max().unwrap_or_default();
        let region = self.region::<D>(place)?;
        let column_field = Field::<Cells, T>::new(self.field(place.region, field)?);
        let mapping = match context.map_read(&region, column_field).await {
            Ok(_) if worst == Health::Lost => {
                self.deviates(format!("{column:?} can be read, although a task that was to write it failed"));
                return Ok(());
            }
            Ok(mapping) => mapping,
            Err(error) => {
                self.tally.failure();
                self.was_told.store(true, Ordering::Release);
                if worst == Health::Sound && self.tolerance == Tolerance::None {
                    self.deviates(format!("{column:?} cannot be read: {error}"));
                }
                return Ok(());
            }
        };
        let values = mapping.values();
        for (point, cell) in expected.iter() {
            // What a task promised to write and did not may be anything.
            let Some(right) = cell.word else { continue };
            let found = point.typed::<D>().ok().and_then(|point| values.get(point)).map(Stored::word);
            match found {
                Some(found) if found == right => self.tally.right_cell(),
                Some(found) => {
                    self.deviates(format!("{column:?} at {point} is {found:x}, not {right:x}"));
                    break;
                }
                None => {
                    self.deviates(format!("{column:?} has no {point}"));
                    break;
                }
            }
        }
        Ok(())
    }

    fn destroy_everything(&self, context: &Context) {
        // In the same order on all nodes.
        let mut regions: Vec<_> = locked(&self.names.regions.0).drain().collect();
        regions.sort_unstable_by_key(|(name, _)| *name);
        regions.retain(|(name, _)| !self.expected.was_dropped(*name));
        for (name, region) in regions {
            let destroyed = self.expected.regions.get(&name).is_none_or(|region| region.destroyed);
            let outcome = context.destroy_region(&region);
            let at_ease = self.tolerance == Tolerance::None && !self.cut_short.load(Ordering::Acquire);
            if outcome.is_err() != destroyed && at_ease && !self.expected.has_failures() {
                self.deviates(format!("destroying {name:?} at the end gave {outcome:?}"));
            }
        }
        locked(&self.names.futures.0).clear();
    }

    /// Compares what the top-level task has returned: the digest of all that it has seen, or a failure.
    fn compare_outcome(&self, outcome: Result<Word>) {
        let right = self.fate.digest;
        match outcome {
            Ok(_) if self.fate.health == Health::Lost && self.was_told.load(Ordering::Acquire) => {}
            Ok(_) if self.fate.health == Health::Lost => {
                self.deviates("the program succeeded, although a task that it waited for failed".to_owned());
            }
            Ok(digest) if digest != right => {
                self.deviates(format!("the program has seen {digest:x}, not {right:x}"));
            }
            Ok(_) => self.tally.right_results(1),
            Err(_) if self.expected.has_failures() || self.tolerance == Tolerance::Errors => {}
            Err(error) => self.deviates(format!("the program failed: {error}")),
        }
    }
}
