//! The sequential oracle: a program run statement by statement on one copy of each region.
//!
//! It shares nothing with the runtime but points and rectangles: [`World`] holds sets of points and maps from points to
//! values. What may be launched is decided in `legality`, from the point sets of the pieces; what tasks compute is in
//! `effects`; how spaces are split in `split`.

mod attach;
mod effects;
mod legality;
mod results;
mod split;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use maniple::{AnyPoint, AnyRect};

pub use attach::{Attached, attached_word, memory_digest};
pub use effects::{contributions, discarded, first_digest, inline_value, rewritten};
pub use results::{mapped, reduce_words};

use crate::program::{
    Action, Block, Body, Column, FieldNumber, FieldsName, FutureName, Inline, Launch, Node, PartitionName, Place,
    RegionName, Right, SpaceName, Statement, StatementId,
};
use crate::value::{Kind, Word, mix};

/// A set of points.
pub type Points = Arc<BTreeSet<AnyPoint>>;

/// Why a statement does not happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The runtime must refuse it with an error, and it has no effect.
    Refused(String),
    /// The program has no meaning: it uses names that do not exist, or values that have not been written.
    Meaningless(String),
}

/// The outcome of a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It happens.
    Done,
    /// The runtime must refuse it.
    Refused(String),
}

/// Whether a value or result can be had, given the tasks that go wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Health {
    /// It must be there, and right.
    #[default]
    Sound,
    /// It may be there, and then must be right.
    Doubtful,
    /// A request for it must get an error.
    Lost,
}

/// One value of one field.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// The value; none if nothing says what it is.
    pub word: Option<Word>,
    /// Whether it can be had.
    pub health: Health,
}

/// The values of one field.
pub type Cells = BTreeMap<AnyPoint, Cell>;

/// A partition.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// The space that is split.
    pub parent: Node,
    /// The colors.
    pub colors: AnyRect,
    /// For each color's number the points.
    pub pieces: Vec<Points>,
    /// It was destroyed.
    pub destroyed: bool,
}

/// A region with its one copy of the data.
#[derive(Clone, Debug)]
pub struct RegionData {
    /// The rows.
    pub space: SpaceName,
    /// The columns.
    pub fields: FieldsName,
    /// It was destroyed.
    pub destroyed: bool,
    /// The values.
    pub data: BTreeMap<FieldNumber, Arc<Cells>>,
}

/// The results of a launch.
#[derive(Clone, Debug)]
pub struct Results {
    /// The points of an index launch.
    pub domain: Option<AnyRect>,
    /// For each point the result.
    pub values: Vec<(Word, Health)>,
}

impl Results {
    /// The worst of all points.
    #[must_use]
    pub fn health(&self) -> Health {
        self.values.iter().map(|value| value.1).max().unwrap_or_default()
    }
}

/// Everything that there is.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Index spaces that are no pieces.
    pub spaces: BTreeMap<SpaceName, Points>,
    /// The index spaces that were destroyed.
    pub destroyed_spaces: BTreeSet<SpaceName>,
    /// Their numbers of dimensions.
    pub dimensions: BTreeMap<SpaceName, usize>,
    /// Partitions.
    pub partitions: BTreeMap<PartitionName, Arc<Pieces>>,
    /// Field spaces: the fields that exist now.
    pub fields: BTreeMap<FieldsName, Vec<Option<Kind>>>,
    /// How many fields can exist at a time.
    pub limits: BTreeMap<FieldsName, usize>,
    /// The fields that ever existed.
    pub all_fields: BTreeMap<FieldsName, Vec<Kind>>,
    /// Freed fields whose identifiers may have been given to others since: it is unknown what using them means.
    taken: BTreeSet<(FieldsName, FieldNumber)>,
    /// Regions.
    pub regions: BTreeMap<RegionName, RegionData>,
    /// Scratch regions that were dropped: their names may stand for others.
    dropped: BTreeSet<RegionName>,
    /// Results.
    pub futures: BTreeMap<FutureName, Results>,
    /// Results that may not be asked for any more.
    forgotten: BTreeSet<FutureName>,
    /// The outcomes of the statements.
    pub verdicts: BTreeMap<StatementId, Verdict>,
}

/// A part of a region that a task holds.
#[derive(Clone, Debug)]
pub struct Held {
    /// The region.
    pub region: RegionName,
    /// The part.
    pub node: Node,
    /// The fields.
    pub fields: Vec<FieldNumber>,
    /// The privilege.
    pub right: Right,
}

/// A running task.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The parts of regions that it was given.
    pub held: Vec<Held>,
    /// Regions that it made, or that tasks made that it has waited for.
    pub created: BTreeSet<RegionName>,
    /// Field spaces that it made: only it may free fields of them.
    pub made_fields: BTreeSet<FieldsName>,
    /// Scratch regions that it made and has not dropped.
    pub scratch: BTreeSet<RegionName>,
    /// Regions made by tasks that it has not waited for.
    pub pending: BTreeMap<FutureName, BTreeSet<RegionName>>,
    /// The columns that it has mapped itself, and whether to write them.
    pub mapped: Vec<(Column, bool)>,
    /// The memory that it has attached and not detached.
    pub attached: Vec<Attached>,
    /// All that it has seen.
    pub digest: Word,
    /// Whether it can succeed.
    pub health: Health,
    /// Whether it can start: what it launches can't do better.
    pub start: Health,
}

impl World {
    /// Runs a whole program.
    ///
    /// # Errors
    /// Why it has no meaning.
    pub fn run(body: &Block) -> Result<(Self, Context), String> {
        let (mut world, mut context) = (Self::default(), Context::default());
        for statement in &body.0 {
            world.step(&mut context, statement)?;
        }
        match context.pending.values().flatten().next() {
            Some(region) => Err(format!("{region:?} is out of sight at the end")),
            None => Ok((world, context)),
        }
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// Why it has no meaning.
    pub fn step(&mut self, context: &mut Context, statement: &Statement) -> Result<Verdict, String> {
        let verdict = match self.act(context, statement) {
            Ok(()) => Verdict::Done,
            Err(Trouble::Refused(why)) => Verdict::Refused(why),
            Err(Trouble::Meaningless(why)) => return Err(format!("{:?}: {why}", statement.id)),
        };
        self.verdicts.insert(statement.id, verdict.clone());
        Ok(verdict)
    }

    fn act(&mut self, context: &mut Context, statement: &Statement) -> Result<(), Trouble> {
        match &statement.action {
            Action::CreateSpace(name, rects) => {
                let points = rects.iter().flat_map(AnyRect::points).collect();
                self.spaces.insert(*name, Arc::new(points));
                self.dimensions.insert(*name, known(rects.first(), name)?.dim());
            }
            Action::DestroySpace(name) => {
                known(self.spaces.get(name), name)?;
                if !self.destroyed_spaces.insert(*name) {
                    return Err(Trouble::Refused("destroyed before".into()));
                }
            }
            Action::CreateFields(name, kinds, limit) => {
                context.made_fields.insert(*name);
                self.limits.insert(*name, *limit);
                self.fields.insert(*name, kinds.iter().copied().map(Some).collect());
                self.all_fields.insert(*name, kinds.clone());
            }
            Action::AllocateField(fields, kind) => self.allocate_field(*fields, *kind)?,
            Action::FreeField(fields, field) => {
                self.check_not_taken(*fields, *field)?;
                if !context.made_fields.contains(fields) {
                    return Err(Trouble::Refused("the field space is not the task's own".into()));
                }
                self.check_field_unattached(context, *fields, *field)?;
                self.free_field(*fields, *field)?;
            }
            Action::CreateRegion(name, space, fields) => self.create_region(context, *name, *space, *fields)?,
            Action::DestroyRegion(name) => {
                self.check_region(context, *name)?;
                if !context.created.remove(name) {
                    return Err(Trouble::Refused("the region is not the task's own".into()));
                }
                if let Err(refused) = self.check_unattached(context, *name) {
                    context.created.insert(*name);
                    return Err(refused);
                }
                let region = known(self.regions.get_mut(name), name)?;
                (region.destroyed, region.data) = (true, BTreeMap::new());
            }
            Action::Scratch(name, space, fields) => {
                self.create_region(context, *name, *space, *fields)?;
                context.scratch.insert(*name);
            }
            Action::Drop(name) => self.drop_scratch(context, *name)?,
            Action::CreatePartition(name, node, split) => {
                let pieces = self.split(context, *node, split)?;
                self.partitions.insert(*name, Arc::new(pieces));
            }
            Action::DestroyPartition(name) => {
                let pieces = known(self.partitions.get_mut(name), name)?;
                if std::mem::replace(&mut Arc::make_mut(pieces).destroyed, true) {
                    return Err(Trouble::Refused("destroyed before".into()));
                }
            }
            Action::Launch(launch) => self.launch(context, launch)?,
            Action::Fill(column, random) => self.fill(context, *column, *random)?,
            Action::Invalidate(place, fields) => self.invalidate(context, *place, fields)?,
            Action::ForgetCopies(place, fields) => self.forget_copies(context, *place, fields)?,
            Action::Attach(name, column, seed, backing) => {
                let (column, seed, backing) = (*column, *seed, *backing);
                self.attach(context, Attached { name: *name, column, seed, backing })?;
            }
            Action::Detach(name, handle, flush) => self.detach(context, *name, *handle, *flush)?,
            Action::Copy(name, from, to) => self.copy(context, *name, *from, *to)?,
            Action::CopyFields(name, from, to, pairs) => self.copy_fields(context, *name, *from, *to, pairs)?,
            Action::Contribute(name, operator, from, to) => {
                self.contribute(context, *name, *operator, *from, *to)?;
            }
            Action::Gather(name, indirect) => self.gather(context, *name, indirect)?,
            Action::Scatter(name, indirect) => self.scatter(context, *name, indirect)?,
            Action::Inline(inline) => self.inline(context, statement.id, inline)?,
            Action::MappingFence | Action::ExecutionFence => {}
            Action::Derive(name, derived) => self.derive(*name, *derived)?,
            Action::Wait(name) => {
                let results = self.results(*name)?;
                for (value, _) in &results.values {
                    context.digest = mix(context.digest, *value);
                }
                context.health = context.health.max(results.health());
                let created = context.pending.remove(name).unwrap_or_default();
                context.created.extend(created);
            }
            Action::Forget(name) => {
                self.results(*name)?;
                if context.pending.get(name).is_some_and(|created| !created.is_empty()) {
                    return Err(Trouble::Meaningless("regions would be out of sight".into()));
                }
                self.forgotten.insert(*name);
            }
            Action::Repeat(turns) => turns.iter().try_for_each(|turn| self.block(context, turn))?,
            Action::Traced(_, block) => self.block(context, block)?,
        }
        Ok(())
    }

    fn block(&mut self, context: &mut Context, block: &Block) -> Result<(), Trouble> {
        for statement in &block.0 {
            self.step(context, statement).map_err(Trouble::Meaningless)?;
        }
        Ok(())
    }

    /// The results of something, if they can still be asked for.
    fn results(&self, name: FutureName) -> Result<&Results, Trouble> {
        match self.forgotten.contains(&name) {
            false => known(self.futures.get(&name), &name),
            true => Err(Trouble::Meaningless(format!("{name:?} was forgotten"))),
        }
    }

    fn allocate_field(&mut self, fields: FieldsName, kind: Kind) -> Result<(), Trouble> {
        let slots = known(self.fields.get_mut(&fields), &fields)?;
        if slots.iter().flatten().count() >= *known(self.limits.get(&fields), &fields)? {
            return Err(Trouble::Refused("the field space is full".into()));
        }
        let kinds = self.all_fields.entry(fields).or_default();
        let freed = slots.iter().zip(kinds.iter()).enumerate();
        let alike = freed.filter(|(_, (slot, known))| slot.is_none() && **known == kind);
        self.taken.extend(alike.map(|(field, _)| (fields, field)));
        slots.push(Some(kind));
        kinds.push(kind);
        let field = slots.len() - 1;
        for region in self.regions.values_mut().filter(|region| region.fields == fields && !region.destroyed) {
            let points = known(self.spaces.get(&region.space), &region.space)?;
            region.data.insert(field, zeros(points));
        }
        Ok(())
    }

    fn free_field(&mut self, fields: FieldsName, field: FieldNumber) -> Result<(), Trouble> {
        self.check_not_taken(fields, field)?;
        let slot = known(self.fields.get_mut(&fields), &fields)?.get_mut(field);
        if known(slot, &field)?.take().is_none() {
            return Err(Trouble::Refused("freed before".into()));
        }
        for region in self.regions.values_mut().filter(|region| region.fields == fields) {
            region.data.remove(&field);
        }
        Ok(())
    }

    fn create_region(
        &mut self,
        context: &mut Context,
        name: RegionName,
        space: SpaceName,
        fields: FieldsName,
    ) -> Result<(), Trouble> {
        self.check_node_alive(Node::Root(space))?;
        let points = known(self.spaces.get(&space), &space)?;
        let slots = known(self.fields.get(&fields), &fields)?.iter().enumerate();
        let present = slots.filter(|(_, kind)| kind.is_some());
        let data = present.map(|(field, _)| (field, zeros(points))).collect();
        self.regions.insert(name, RegionData { space, fields, destroyed: false, data });
        context.created.insert(name);
        Ok(())
    }

    /// A task drops a scratch region, of which it holds nothing.
    fn drop_scratch(&mut self, context: &mut Context, name: RegionName) -> Result<(), Trouble> {
        if !context.scratch.remove(&name) {
            return Err(Trouble::Meaningless(format!("{name:?} is no scratch region")));
        }
        let is_mapped = context.mapped.iter().any(|(column, _)| column.place.region == name);
        if is_mapped || self.check_unattached(context, name).is_err() {
            return Err(Trouble::Meaningless(format!("{name:?} is held")));
        }
        context.created.remove(&name);
        self.dropped.insert(name);
        let region = known(self.regions.get_mut(&name), &name)?;
        (region.destroyed, region.data) = (true, BTreeMap::new());
        Ok(())
    }

    fn launch(&mut self, context: &mut Context, launch: &Launch) -> Result<(), Trouble> {
        let targets = self.check_launch(context, launch)?;
        let points = points_of(launch);
        let mut values = Vec::with_capacity(points.len());
        let mut created = BTreeSet::new();
        for number in 0..points.len() {
            match &launch.body {
                Body::Leaf => values.push(self.run_leaf(context.start, launch, number, &targets)?),
                Body::Blocks { blocks, .. } => {
                    let mut child = self.enter(context.start, launch, number, &targets)?;
                    self.block(&mut child, &blocks[number % blocks.len()])?;
                    let (value, regions) = self.leave(launch, number, child)?;
                    created.extend(regions);
                    values.push(value);
                }
            }
        }
        self.finish(context, launch, values, created);
        Ok(())
    }

    /// Records the results of a launch.
    pub fn finish(
        &mut self,
        context: &mut Context,
        launch: &Launch,
        values: Vec<(Word, Health)>,
        created: BTreeSet<RegionName>,
    ) {
        context.pending.insert(launch.name, created);
        let results = Results { domain: launch.domain, values };
        context.health = context.health.max(results.health());
        self.futures.insert(launch.name, results);
    }

    fn inline(&mut self, context: &mut Context, id: StatementId, inline: &Inline) -> Result<(), Trouble> {
        self.open_inline(context, id, inline)?;
        self.block(context, &inline.during)?;
        self.close_inline(context, id, inline)
    }

    /// Maps data inline and looks at it for the first time.
    ///
    /// # Errors
    /// If it is refused, or uses names that do not exist.
    pub fn open_inline(&mut self, context: &mut Context, id: StatementId, inline: &Inline) -> Result<(), Trouble> {
        self.check_inline(context, inline.column, inline.write)?;
        if !inline.late {
            self.inline_pass(context, id, inline.column, inline.write, 0)?;
        } else {
            // What cannot be waited for must not be called.
            self.inline_pass(&mut context.clone(), id, inline.column, false, 0)?;
        }
        context.mapped.push((inline.column, inline.write));
        Ok(())
    }

    /// Looks at data for the second time and releases it.
    ///
    /// # Errors
    /// If it is gone.
    pub fn close_inline(&mut self, context: &mut Context, id: StatementId, inline: &Inline) -> Result<(), Trouble> {
        if inline.late {
            self.inline_pass(context, id, inline.column, inline.write, 0)?;
        }
        context.mapped.pop();
        self.verdicts.insert(id, Verdict::Done);
        self.inline_pass(context, id, inline.column, inline.write, 1)
    }

    /// Whether a region is a scratch region that was dropped.
    #[must_use]
    pub fn was_dropped(&self, region: RegionName) -> bool {
        self.dropped.contains(&region)
    }

    /// The rows of a node.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn points(&self, node: Node) -> Result<&Points, Trouble> {
        match node {
            Node::Root(space) => known(self.spaces.get(&space), &space),
            Node::Piece(name, color) => {
                let pieces = known(self.partitions.get(&name), &name)?;
                known(pieces.pieces.get(color), &color)
            }
        }
    }

    /// The fields of a region.
    ///
    /// # Errors
    /// If there is no such region.
    pub fn kinds(&self, region: RegionName) -> Result<&[Option<Kind>], Trouble> {
        let region = known(self.regions.get(&region), &region)?;
        known(self.fields.get(&region.fields), &region.fields).map(Vec::as_slice)
    }

    /// The kind of a field.
    ///
    /// # Errors
    /// If there is no such region or field.
    pub fn kind(&self, region: RegionName, field: FieldNumber) -> Result<Kind, Trouble> {
        known(self.kinds(region)?.get(field).copied().flatten(), &field)
    }

    /// The kind of a field that exists or existed.
    ///
    /// # Errors
    /// If there was never such a region or field.
    pub fn kind_ever(&self, region: RegionName, field: FieldNumber) -> Result<Kind, Trouble> {
        let region = known(self.regions.get(&region), &region)?;
        known(known(self.all_fields.get(&region.fields), &region.fields)?.get(field).copied(), &field)
    }

    /// The values of a field of a whole region.
    ///
    /// # Errors
    /// If there is no such region or field.
    pub fn cells(&self, region: RegionName, field: FieldNumber) -> Result<&Arc<Cells>, Trouble> {
        known(known(self.regions.get(&region), &region)?.data.get(&field), &field)
    }

    fn cells_mut(&mut self, region: RegionName, field: FieldNumber) -> Result<&mut Cells, Trouble> {
        let region = known(self.regions.get_mut(&region), &region)?;
        known(region.data.get_mut(&field), &field).map(Arc::make_mut)
    }

    /// The root of a node's tree.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn root(&self, node: Node) -> Result<SpaceName, Trouble> {
        match node {
            Node::Root(space) => Ok(space),
            Node::Piece(name, _) => self.root(known(self.partitions.get(&name), &name)?.parent),
        }
    }

    /// The number of dimensions of a node.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn dimension(&self, node: Node) -> Result<usize, Trouble> {
        let root = self.root(node)?;
        known(self.dimensions.get(&root), &root).copied()
    }

    /// Whether a node is another or below it.
    #[must_use]
    pub fn is_within(&self, node: Node, ancestor: Node) -> bool {
        node == ancestor || self.parent(node).is_some_and(|parent| self.is_within(parent, ancestor))
    }

    /// The node above a piece.
    #[must_use]
    pub fn parent(&self, node: Node) -> Option<Node> {
        match node {
            Node::Root(_) => None,
            Node::Piece(name, _) => self.partitions.get(&name).map(|pieces| pieces.parent),
        }
    }

    /// Whether any task may fail.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        self.futures.values().any(|results| results.health() > Health::Sound)
    }

    fn words(&self, column: Column) -> Result<Vec<(AnyPoint, Cell)>, Trouble> {
        let Column { place: Place { region, node }, field } = column;
        let cells = self.cells(region, field)?;
        self.points(node)?.iter().map(|&point| Ok((point, *known(cells.get(&point), &point)?))).collect()
    }
}

/// The points of a launch; a single one has the point that the runtime gives it.
#[must_use]
pub fn points_of(launch: &Launch) -> Vec<AnyPoint> {
    launch.domain.map_or_else(|| vec![AnyPoint::from(0)], |domain| domain.points().collect())
}

fn zeros(points: &Points) -> Arc<Cells> {
    let zero = Cell { word: Some(0), health: Health::Sound };
    Arc::new(points.iter().map(|&point| (point, zero)).collect())
}

fn known<T>(found: Option<T>, name: &impl std::fmt::Debug) -> Result<T, Trouble> {
    found.ok_or_else(|| Trouble::Meaningless(format!("there is no {name:?}")))
}
