//! Blocks, statement by statement.

use std::collections::HashMap;
use std::future::Future as StdFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use maniple::operators::{Max, Min, Sum, Xor};
use maniple::{AnySpace, Context, Error, Field, FieldId, FieldMask, Result};

use super::attach::{Attached, attach_array, attach_values};
use super::{Handle, Mistake, Run, Stop, Tolerance, locked, with_dimension};
use crate::oracle::{Health, Verdict, attached_word, inline_value, mapped};
use crate::program::{
    Action, Backing, Block, Column, Derived, FieldNumber, FieldsName, FutureName, Inline, Node, Place, RegionName,
    SpaceName, Statement, StatementId,
};
use crate::value::{Cells, Kind, Operator, Stored, Word, mix};
use crate::with_kind;

/// A block in execution.
pub(super) struct Frame<'a> {
    pub(super) run: &'a Arc<Run>,
    pub(super) context: &'a Context,
    digest: Word,
    /// The first failure that was waited for.
    failure: Option<Error>,
    /// Memory that is attached.
    attached: &'a mut HashMap<FutureName, Attached>,
}

pub(super) type Boxed<'a, T> = Pin<Box<dyn StdFuture<Output = T> + Send + 'a>>;

/// Runs the block of a task and gives the digest of all that it has seen.
pub(super) fn run_block<'a>(
    run: &'a Arc<Run>,
    context: &'a Context,
    block: &'a Block,
    digest: Word,
) -> Boxed<'a, Result<Word>> {
    Box::pin(async move {
        let mut attached = HashMap::new();
        // What a task that cannot go on was to write is lost with it, and reads as that.
        run_in(run, context, block, digest, &mut attached).await.unwrap_or_else(|Stop(error)| Err(error))
    })
}

/// Runs a part of the top level's block, where memory is attached that parts before have attached.
pub(super) fn go_on<'a>(
    run: &'a Arc<Run>,
    context: &'a Context,
    block: &'a Block,
    digest: Word,
    attached: &'a mut HashMap<FutureName, Attached>,
) -> Boxed<'a, Result<Word>> {
    Box::pin(async move {
        run_in(run, context, block, digest, attached).await.unwrap_or_else(|Stop(error)| {
            run.cut_short.store(true, Ordering::Release);
            Err(error)
        })
    })
}

/// Runs a block: what it has come to, or why it cannot go on.
fn run_in<'a>(
    run: &'a Arc<Run>,
    context: &'a Context,
    block: &'a Block,
    digest: Word,
    attached: &'a mut HashMap<FutureName, Attached>,
) -> Boxed<'a, std::result::Result<Result<Word>, Stop>> {
    Box::pin(async move {
        let mut frame = Frame { run, context, digest, failure: None, attached };
        let outcome = frame.run(block).await;
        if let Err(Stop(error)) = outcome {
            // No other task is told of the regions of a task that fails, and how far it came with them is unknown.
            block.each(&mut |statement| {
                if let Action::CreateRegion(name, ..) | Action::Scratch(name, ..) = statement.action {
                    run.names.regions.remove(name);
                    run.names.scratch.remove(name);
                }
            });
            if run.tolerance == Tolerance::None {
                run.deviates(format!("a block in `{}` cannot go on: {error}", context.task()));
            }
            return Err(Stop(error));
        }
        Ok(frame.failure.map_or(Ok(frame.digest), Err))
    })
}

impl Frame<'_> {
    pub(super) fn run<'b>(&'b mut self, block: &'b Block) -> Boxed<'b, std::result::Result<(), Stop>> {
        Box::pin(async move {
            for statement in self.run.mistake.order(block) {
                self.run.tally.statement();
                let name = || format!("{:?} in `{}`", statement.id, self.context.task());
                self.run.trace('>', name);
                self.statement(statement).await?;
                self.run.trace('<', name);
            }
            Ok(())
        })
    }

    async fn statement(&mut self, statement: &Statement) -> std::result::Result<(), Stop> {
        let (run, context) = (self.run, self.context);
        let names = &run.names;
        let outcome = match &statement.action {
            Action::CreateSpace(name, rects) => self.create_space(*name, rects),
            Action::DestroySpace(name) => context.destroy_index_space(&names.spaces.get(*name)?),
            Action::CreateFields(name, kinds, limit) => self.create_fields(*name, kinds, *limit),
            Action::AllocateField(name, kind) => self.allocate_field(*name, *kind),
            Action::FreeField(name, field) => {
                let (fields, ids) = names.fields.get(*name)?;
                context.free_field(&fields, ids[*field])
            }
            Action::CreateRegion(name, space, fields) => {
                let (rows, (fields, _)) = (names.spaces.get(*space)?, names.fields.get(*fields)?);
                context.logical_region(&rows, &fields).map(|region| names.regions.insert(*name, region))
            }
            Action::DestroyRegion(name) => context.destroy_region(&names.regions.get(*name)?),
            Action::Scratch(name, space, fields) => self.make_scratch(*name, *space, *fields)?,
            Action::Drop(name) => {
                // Tasks that were launched before still look the name up.
                names.scratch.remove(*name);
                Ok(())
            }
            Action::CreatePartition(name, node, split) => {
                let made = run.partition(context, *node, split).await?;
                made.map(|partitioning| names.partitions.insert(*name, partitioning))
            }
            Action::DestroyPartition(name) => context.destroy_partition(names.partitions.get(*name)?),
            Action::Launch(launch) => {
                let handle = run.launch(context, launch, statement.site)?;
                self.refusal(statement.id, &handle).await
            }
            Action::Fill(column, random) => self.fill(*column, *random)?,
            Action::Invalidate(place, fields) => self.invalidate(*place, fields)?,
            Action::ForgetCopies(place, fields) => self.forget_copies(*place, fields)?,
            Action::Attach(name, column, seed, backing) => self.attach(*name, *column, *seed, *backing)?,
            Action::Detach(name, handle, flush) => self.detach(*name, *handle, *flush)?,
            Action::Copy(name, ..)
            | Action::CopyFields(name, ..)
            | Action::Contribute(name, ..)
            | Action::Gather(name, _)
            | Action::Scatter(name, _) => {
                let handle = Handle::Unit(run.bulk(context, &statement.action)?);
                names.futures.insert(*name, handle.clone());
                self.refusal(statement.id, &handle).await
            }
            Action::Inline(inline) => self.inline(statement.id, inline).await?,
            Action::MappingFence => {
                context.mapping_fence();
                Ok(())
            }
            Action::ExecutionFence => {
                context.execution_fence();
                Ok(())
            }
            Action::Derive(name, derived) => self.derive(*name, *derived)?,
            Action::Wait(name) => {
                self.wait(*name).await?;
                Ok(())
            }
            Action::Forget(name) => {
                if let Ok(Handle::Memory(memory)) = names.futures.get(*name) {
                    locked(&names.files).extend(memory.file);
                }
                if names.handed.get(*name).is_err() {
                    names.futures.remove(*name);
                }
                Ok(())
            }
            Action::Repeat(turns) => {
                for turn in turns {
                    self.run(turn).await?;
                }
                Ok(())
            }
            Action::Traced(name, block) => {
                self.traced(*name, block).await?;
                Ok(())
            }
        };
        self.judge(statement, outcome)
    }

    /// Compares whether a statement was refused.
    fn judge(&mut self, statement: &Statement, outcome: Result<()>) -> std::result::Result<(), Stop> {
        let expected = self.run.expected.verdicts.get(&statement.id).cloned().unwrap_or(Verdict::Done);
        let outcome = match self.run.mistake {
            Mistake::MissedRefusal => {
                outcome.or_else(|error| if expected == Verdict::Done { Err(error) } else { Ok(()) })
            }
            _ => outcome,
        };
        match (expected, outcome) {
            (Verdict::Done, Ok(())) => Ok(()),
            (Verdict::Refused(_), Err(_)) => {
                self.run.tally.refusal();
                Ok(())
            }
            (Verdict::Refused(why), Ok(())) => {
                self.run.deviates(format!("{statement:?} was not refused, although {why}"));
                Err(Stop(Error::application("a statement that must be refused has had effects")))
            }
            (Verdict::Done, Err(error)) => {
                if self.run.tolerance == Tolerance::None {
                    self.run.deviates(format!("{statement:?} was refused: {error}"));
                }
                Err(Stop(error))
            }
        }
    }

    /// The error of a launch that must be refused; others are not waited for.
    async fn refusal(&self, id: StatementId, handle: &Handle) -> Result<()> {
        if !matches!(self.run.expected.verdicts.get(&id), Some(Verdict::Refused(_))) {
            return Ok(());
        }
        match handle {
            Handle::One(future) => future.clone().await.map(|_| ()),
            Handle::Many(map) => map.clone().await,
            Handle::Unit(future) => future.clone().await,
            Handle::Memory(_) => Ok(()),
        }
    }

    fn create_space(&self, name: SpaceName, rects: &[maniple::AnyRect]) -> Result<()> {
        let points = space_of(rects, rects.first().map_or(1, maniple::AnyRect::dim));
        self.run.names.spaces.insert(name, self.context.index_space(&points));
        Ok(())
    }

    fn make_scratch(
        &self,
        name: RegionName,
        space: SpaceName,
        fields: FieldsName,
    ) -> std::result::Result<Result<()>, Stop> {
        let names = &self.run.names;
        let (rows, (fields, _)) = (names.spaces.get(space)?, names.fields.get(fields)?);
        with_dimension!(rows.space().dim(), D => {
            Ok(self.context.scratch_region::<D>(&rows, &fields).map(|scratch| {
                names.regions.insert(name, scratch.logical().clone());
                names.scratch.insert(name, Arc::new(scratch));
            }))
        })
    }

    fn create_fields(&self, name: FieldsName, kinds: &[Kind], limit: usize) -> Result<()> {
        let fields = self.context.field_space(limit);
        let allocate = |(number, kind): (usize, &Kind)| fields.allocate(&format!("f{number}"), kind.field_type());
        let ids = kinds.iter().enumerate().map(allocate).collect::<std::result::Result<Vec<FieldId>, _>>()?;
        self.run.names.fields.insert(name, (fields, ids));
        Ok(())
    }

    fn allocate_field(&self, name: FieldsName, kind: Kind) -> Result<()> {
        let mut fields = locked(&self.run.names.fields.0);
        let Some((space, ids)) = fields.get_mut(&name) else { return Err(Error::application("no such fields")) };
        ids.push(space.allocate(&format!("f{}", ids.len()), kind.field_type())?);
        Ok(())
    }

    fn fill(&self, column: Column, random: Word) -> std::result::Result<Result<()>, Stop> {
        let run = self.run;
        if run.mistake == Mistake::LostFill {
            return Ok(Ok(()));
        }
        let Column { place, field } = column;
        let kind = run.kind(column)?;
        let (dim, id) = (run.dimension(place.node)?, run.field(place.region, field)?);
        with_kind!(kind, T => with_dimension!(dim, D => {
            let region = run.region::<D>(place)?;
            Ok(self.context.fill_field(&region, id, <T as Stored>::from_word(kind.make(random))))
        }))
    }

    fn fields(&self, place: Place, fields: &[FieldNumber]) -> std::result::Result<FieldMask, Stop> {
        fields.iter().map(|&field| self.run.field(place.region, field)).collect()
    }

    fn forget_copies(&self, place: Place, fields: &[FieldNumber]) -> std::result::Result<Result<()>, Stop> {
        let (run, ids) = (self.run, self.fields(place, fields)?);
        with_dimension!(run.dimension(place.node)?, D => Ok(self.context.forget_copies(&run.region::<D>(place)?, &ids)))
    }

    fn invalidate(&self, place: Place, fields: &[FieldNumber]) -> std::result::Result<Result<()>, Stop> {
        let run = self.run;
        if run.mistake == Mistake::LostFill {
            return Ok(Ok(()));
        }
        let ids = self.fields(place, fields)?;
        with_dimension!(run.dimension(place.node)?, D => {
            Ok(self.context.invalidate_fields(&run.region::<D>(place)?, &ids))
        })
    }

    fn attach(
        &mut self,
        name: FutureName,
        column: Column,
        seed: Word,
        backing: Backing,
    ) -> std::result::Result<Result<()>, Stop> {
        let run = self.run;
        let kind = run.kind(column)?;
        let (dim, id) = (run.dimension(column.place.node)?, run.field(column.place.region, column.field)?);
        let attached = with_dimension!(dim, D => {
            let region = run.region::<D>(column.place)?;
            let words: Vec<Word> =
                (0..region.volume() as usize).map(|number| attached_word(kind, seed, number)).collect();
            let memory = |words: Vec<Word>| with_kind!(kind, T => {
                let values: Vec<T> = words.into_iter().map(<T as Stored>::from_word).collect();
                attach_values(self.context, &region, id, values, backing == Backing::ReadOnly)
            });
            match backing {
                // On several nodes each would make a file of its own.
                Backing::Array { columns } if run.nodes == 1 || !kind.is_number() => {
                    match attach_array(self.context, &region, id, kind, &words, columns) {
                        // The system has no room for the block.
                        Err(Error::OutOfMemory { .. }) => memory(words),
                        other => other,
                    }
                }
                _ => memory(words),
            }
        });
        Ok(attached.map(|attached| _ = self.attached.insert(name, attached)))
    }

    fn detach(&mut self, name: FutureName, handle: FutureName, flush: bool) -> std::result::Result<Result<()>, Stop> {
        let Some(attached) = self.attached.remove(&handle) else {
            return Err(Stop(Error::application(format!("there is no memory {handle:?}"))));
        };
        Ok(attached(self.context, flush).map(|memory| self.run.names.futures.insert(name, Handle::Memory(memory))))
    }

    async fn inline(&mut self, id: StatementId, inline: &Inline) -> std::result::Result<Result<()>, Stop> {
        let column = inline.column;
        let (kind, dim) = (self.run.kind(column)?, self.run.dimension(column.place.node)?);
        with_kind!(kind, T => with_dimension!(dim, D => self.inline_as::<T, D>(id, inline).await))
    }

    async fn inline_as<T: Stored, const D: usize>(
        &mut self,
        id: StatementId,
        inline: &Inline,
    ) -> std::result::Result<Result<()>, Stop> {
        let Inline { column, write, late, during } = inline;
        let kind = self.run.kind(*column)?;
        let region = self.run.region::<D>(column.place)?;
        let field = self.run.field(column.place.region, column.field)?;
        if *write {
            let mapping = self.context.map_write(&region, Field::<Cells, T>::new(field));
            if *late && self.is_allowed(id) {
                self.run(during).await?;
            }
            let mut mapping = match mapping.await {
                Ok(mapping) => mapping,
                Err(error) => return Ok(Err(error)),
            };
            for pass in 0..2 {
                {
                    let mut values = mapping.values();
                    for point in values.space().points() {
                        self.digest = mix(self.digest, self.seen(values[point].word()));
                        if let Some(random) = inline_value(id, pass, point.into()) {
                            values[point] = T::from_word(kind.make(random));
                        }
                    }
                }
                if pass == 0 && !late {
                    self.run(during).await?;
                }
            }
        } else {
            let mapping = self.context.map_read(&region, Field::<Cells, T>::new(field));
            if *late && self.is_allowed(id) {
                self.run(during).await?;
            }
            let mapping = match mapping.await {
                Ok(mapping) => mapping,
                Err(error) => return Ok(Err(error)),
            };
            for pass in 0..2 {
                for point in region.space().points() {
                    self.digest = mix(self.digest, self.seen(mapping.values()[point].word()));
                }
                if pass == 0 && !late {
                    self.run(during).await?;
                }
            }
        }
        Ok(Ok(()))
    }

    /// Whether a statement is not one to be refused.
    fn is_allowed(&self, id: StatementId) -> bool {
        !matches!(self.run.expected.verdicts.get(&id), Some(Verdict::Refused(_)))
    }

    fn seen(&self, word: Word) -> Word {
        let spoil = self.run.mistake == Mistake::WrongLook && word.is_multiple_of(3);
        if spoil { word ^ 1 } else { word }
    }

    fn derive(&self, name: FutureName, derived: Derived) -> std::result::Result<Result<()>, Stop> {
        let futures = &self.run.names.futures;
        let one = |name| match futures.get(name)? {
            Handle::One(future) => Ok(future),
            _ => Err(Stop(Error::application("no single result"))),
        };
        let many = |name| match futures.get(name)? {
            Handle::Many(map) => Ok(map),
            _ => Err(Stop(Error::application("no results of an index launch"))),
        };
        let future = match derived {
            Derived::Map(source) => one(source)?.map(mapped),
            Derived::Zip(left, right) => one(left)?.zip_with(&one(right)?, mix),
            Derived::Reduce(source, Operator::Max) => many(source)?.reduce(Max),
            Derived::Reduce(source, Operator::Min) => many(source)?.reduce(Min),
            Derived::Reduce(source, Operator::Xor) => many(source)?.reduce(Xor),
            Derived::Reduce(source, _) => many(source)?.reduce(Sum),
            Derived::Fold(source) => many(source)?.fold(7, mix),
            Derived::Point(source, point) => match many(source)?.get(point) {
                Ok(future) => future,
                Err(error) => return Ok(Err(error)),
            },
            Derived::Scan(source, operator, inclusive) => {
                let source = many(source)?;
                let scanned = match (operator, inclusive) {
                    (Operator::Max, true) => source.scan(Max),
                    (Operator::Max, false) => source.exclusive_scan(Max),
                    (Operator::Min, true) => source.scan(Min),
                    (Operator::Min, false) => source.exclusive_scan(Min),
                    (Operator::Xor, true) => source.scan(Xor),
                    (Operator::Xor, false) => source.exclusive_scan(Xor),
                    (_, true) => source.scan(Sum),
                    (_, false) => source.exclusive_scan(Sum),
                };
                futures.insert(name, Handle::Many(scanned));
                return Ok(Ok(()));
            }
        };
        futures.insert(name, Handle::One(future));
        Ok(Ok(()))
    }

    /// Waits for a future and compares what comes.
    async fn wait(&mut self, name: FutureName) -> std::result::Result<(), Stop> {
        // At top level no worker is blocked, and futures can be waited for without `await`.
        let blocking = self.is_at_top() && name.0.is_multiple_of(2);
        let values = match self.run.names.futures.get(name)? {
            Handle::One(future) if blocking => future.wait().map(|value| vec![value]),
            Handle::One(future) => future.await.map(|value| vec![value]),
            Handle::Many(map) => map.all().await,
            Handle::Unit(future) => future.await.map(|()| vec![0]),
            Handle::Memory(memory) => memory.digest().await.map(|digest| vec![digest]),
        };
        let Some(expected) = self.run.expected.futures.get(&name) else {
            self.run.deviates(format!("{name:?} is not known to the oracle"));
            return Ok(());
        };
        match values {
            Ok(values) => {
                let right: Vec<Word> = expected.values.iter().map(|value| value.0).collect();
                if expected.health() == Health::Lost {
                    self.run.deviates(format!("{name:?} did not fail"));
                } else if values != right {
                    self.run.deviates(format!("{name:?} is {values:x?}, not {right:x?}"));
                } else {
                    self.run.tally.right_results(right.len());
                }
                self.digest = values.into_iter().fold(self.digest, mix);
            }
            Err(error) => {
                self.run.tally.failure();
                if expected.health() == Health::Sound && self.run.tolerance == Tolerance::None {
                    self.run.deviates(format!("{name:?} failed: {error}"));
                }
                self.failure.get_or_insert(error);
            }
        }
        self.run.let_go_of_regions_out_of_sight(name);
        Ok(())
    }
}

impl Run {
    /// The launch with these results has ended. Regions made by points that may have failed have no name any more: the
    /// runtime is to forget it, with all that is known of it.
    fn let_go_of_regions_out_of_sight(&self, results: FutureName) {
        let Some(expected) = self.expected.futures.get(&results) else { return };
        if expected.health() == Health::Sound {
            return;
        }
        self.program.body.each(&mut |statement| {
            let Action::Launch(launch) = &statement.action else { return };
            let blocks = statement.nested().iter().zip(&expected.values).filter(|_| launch.name == results);
            for (block, _) in blocks.filter(|(_, (_, health))| *health > Health::Sound) {
                block.each(&mut |inside| {
                    if let Action::CreateRegion(name, ..) | Action::Scratch(name, ..) = inside.action {
                        self.names.regions.remove(name);
                        self.names.scratch.remove(name);
                    }
                });
            }
        });
    }

    pub(super) fn kind(&self, column: Column) -> std::result::Result<Kind, Stop> {
        let kind = self.expected.kind_ever(column.place.region, column.field);
        kind.map_err(|why| Stop(Error::application(format!("{why:?}"))))
    }

    pub(super) fn dimension(&self, node: Node) -> std::result::Result<usize, Stop> {
        Ok(self.node(node)?.space().dim())
    }
}

/// The points of rectangles.
pub(super) fn space_of(rects: &[maniple::AnyRect], dim: usize) -> AnySpace {
    with_dimension!(dim, D => {
        let rects = rects.iter().filter_map(|rect| rect.typed::<D>().ok());
        maniple::IndexSpace::<D>::from_rects(rects).into()
    })
}
