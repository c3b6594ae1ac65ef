//! Effects of tasks and copies on data.
//!
//! A leaf task first takes in its arguments and all that it only reads, in the order of requirements, fields and
//! points; then it goes through the other requirements in order. Every number that it writes, contributes or returns
//! depends on all that it has taken in so far.

use std::collections::BTreeSet;

use maniple::AnyPoint;

use super::legality::Targets;
use super::{Cell, Context, Health, Held, Results, Trouble, World, known};
use crate::program::{
    Column, Fault, FieldNumber, FutureName, Indirect, Launch, Node, Passed, Place, RegionName, Right, StatementId, Use,
};
use crate::value::{Kind, Operator, Word, hash_point, mix};

/// The value that a task with the privilege to read and write puts in place of an old one; none to leave it.
#[must_use]
pub fn rewritten(digest: Word, point: AnyPoint, old: Word) -> Option<Word> {
    let random = mix(mix(digest, hash_point(point)), old);
    (!random.is_multiple_of(4)).then(|| mix(random, 1))
}

/// The value that a task that discards writes.
#[must_use]
pub fn discarded(digest: Word, point: AnyPoint) -> Word {
    mix(mix(digest, hash_point(point)), 2)
}

/// The contributions of a task that reduces: none, one or two.
pub fn contributions(digest: Word, point: AnyPoint) -> impl Iterator<Item = Word> {
    let random = mix(mix(digest, hash_point(point)), 3);
    (0..random % 3).map(move |number| mix(random, number))
}

/// The value that a task writes in a pass to data that it has mapped itself; none to leave it.
#[must_use]
pub fn inline_value(id: StatementId, pass: Word, point: AnyPoint) -> Option<Word> {
    let random = mix(mix(id.0.into(), pass), hash_point(point));
    random.is_multiple_of(2).then(|| mix(random, 5))
}

/// The digest that a task starts from.
#[must_use]
pub fn first_digest(launch: &Launch, number: usize) -> Word {
    mix(launch.name.0.into(), number as Word)
}

impl World {
    /// The value of an argument for a point.
    fn argument(&self, argument: &Passed, number: usize) -> Result<(Word, Health), Trouble> {
        match argument {
            Passed::Value(value) => Ok((*value, Health::Sound)),
            Passed::Future(name) => Ok(self.results(*name)?.values[0]),
            Passed::PerPoint(name) => {
                let results = self.results(*name)?;
                Ok(results.values[number])
            }
        }
    }

    pub(super) fn run_leaf(
        &mut self,
        mut health: Health,
        launch: &Launch,
        number: usize,
        targets: &Targets,
    ) -> Result<(Word, Health), Trouble> {
        let mut digest = first_digest(launch, number);
        for argument in &launch.arguments {
            let (value, state) = self.argument(argument, number)?;
            digest = mix(digest, value);
            health = health.max(state);
        }
        if launch.fault.is_some_and(|(point, _)| point == number) {
            health = Health::Lost;
        }
        let columns = |wanted: &Use, requirement: usize| -> Vec<Column> {
            let place = crate::program::Place { region: wanted.region, node: targets[requirement][number] };
            wanted.fields.iter().map(|&field| Column { place, field }).collect()
        };
        // A task needs all data that it can see before it starts.
        for (requirement, wanted) in launch.requirements.iter().enumerate() {
            if matches!(wanted.right, Right::Read | Right::Write) {
                for column in columns(wanted, requirement) {
                    health = self.words(column)?.iter().map(|(_, cell)| cell.health).fold(health, Health::max);
                }
            }
        }
        for (requirement, wanted) in launch.requirements.iter().enumerate() {
            if wanted.right == Right::Read {
                for column in columns(wanted, requirement) {
                    for (_, cell) in self.words(column)? {
                        digest = mix(digest, specified(cell)?);
                    }
                }
            }
        }
        for (requirement, wanted) in launch.requirements.iter().enumerate() {
            for column in columns(wanted, requirement) {
                digest = self.change(column, wanted.right, digest, health)?;
            }
        }
        Ok((mix(digest, 4), health))
    }

    /// Changes a field as a task does, and gives the digest of all that it has seen.
    fn change(&mut self, column: Column, right: Right, mut digest: Word, task: Health) -> Result<Word, Trouble> {
        let kind = self.kind(column.place.region, column.field)?;
        let old = self.words(column)?;
        let cells = self.cells_mut(column.place.region, column.field)?;
        for (point, cell) in old {
            let (word, health) = match right {
                Right::Read => continue,
                Right::Write => {
                    let value = specified(cell)?;
                    let new = rewritten(digest, point, value).map_or(value, |random| kind.make(random));
                    digest = mix(digest, value);
                    (Some(new), task)
                }
                Right::Discard => {
                    let value = kind.make(discarded(digest, point));
                    digest = mix(digest, 1);
                    (Some(value), task)
                }
                Right::Reduce(operator) => {
                    let fold = |value, random| operator.apply(kind, value, random);
                    (cell.word.map(|word| contributions(digest, point).fold(word, fold)), cell.health.max(task))
                }
            };
            cells.insert(point, Cell { word, health });
        }
        Ok(digest)
    }

    /// Starts a task that launches.
    ///
    /// # Errors
    /// If names do not exist.
    pub fn enter(
        &mut self,
        start: Health,
        launch: &Launch,
        number: usize,
        targets: &Targets,
    ) -> Result<Context, Trouble> {
        let mut child = Context { digest: first_digest(launch, number), health: start, ..Context::default() };
        for argument in &launch.arguments {
            let (value, health) = self.argument(argument, number)?;
            child.digest = mix(child.digest, value);
            child.health = child.health.max(health);
        }
        for (requirement, wanted) in launch.requirements.iter().enumerate() {
            let node = targets[requirement][number];
            let points = std::sync::Arc::clone(self.points(node)?);
            for &field in &wanted.fields {
                let cells = self.cells_mut(wanted.region, field)?;
                for point in points.iter() {
                    let cell = cells.entry(*point).or_default();
                    if matches!(wanted.right, Right::Read | Right::Write) && cell.health > Health::Sound {
                        // Whether the task needs the data depends on whether it is mapped virtually.
                        child.health = child.health.max(Health::Doubtful);
                    }
                    if wanted.right == Right::Discard {
                        // A reader of what the task has not written yet may see anything.
                        let health = cell.health.min(Health::Doubtful);
                        *cell = Cell { word: None, health };
                    }
                }
            }
            child.held.push(Held { region: wanted.region, node, fields: wanted.fields.clone(), right: wanted.right });
        }
        if launch.fault == Some((number, Fault::PanicsAtOnce)) {
            child.health = Health::Lost;
        }
        child.start = if child.health == Health::Sound { Health::Sound } else { Health::Doubtful };
        Ok(child)
    }

    /// Ends a task that launches: its result, and the regions that it leaves behind.
    ///
    /// # Errors
    /// If names do not exist.
    pub fn leave(
        &mut self,
        launch: &Launch,
        number: usize,
        child: Context,
    ) -> Result<((Word, Health), BTreeSet<RegionName>), Trouble> {
        let faulty = launch.fault.is_some_and(|(point, _)| point == number);
        let health = if faulty { Health::Lost } else { child.health };
        if health > Health::Sound {
            for held in child.held.iter().filter(|held| held.right != Right::Read) {
                self.doubt(held)?;
            }
        }
        let mut created = child.created;
        // Those that it has not dropped end with it.
        created.retain(|region| !child.scratch.contains(region));
        self.dropped.extend(child.scratch);
        created.extend(child.pending.into_values().flatten());
        if health > Health::Sound {
            // It is unknown whether a task that fails gets as far as making regions.
            created.clear();
        }
        Ok(((mix(child.digest, 4), health), created))
    }

    /// Marks as doubtful the data that a failing task may have changed: the task that launched it can't tell how far it
    /// came.
    fn doubt(&mut self, held: &Held) -> Result<(), Trouble> {
        let points = std::sync::Arc::clone(self.points(held.node)?);
        for &field in &held.fields {
            let cells = self.cells_mut(held.region, field)?;
            for point in points.iter() {
                let cell = cells.entry(*point).or_default();
                cell.health = cell.health.max(Health::Doubtful);
            }
        }
        Ok(())
    }

    pub(super) fn fill(&mut self, context: &Context, column: Column, random: Word) -> Result<(), Trouble> {
        self.check_one(context, column, Right::Discard)?;
        let kind = self.kind(column.place.region, column.field)?;
        self.store(column, |_| Ok(Cell { word: Some(kind.make(random)), health: Health::Sound }))
    }

    pub(super) fn invalidate(
        &mut self,
        context: &Context,
        place: Place,
        fields: &[FieldNumber],
    ) -> Result<(), Trouble> {
        let columns: Vec<Column> = fields.iter().map(|&field| Column { place, field }).collect();
        columns.iter().try_for_each(|&column| self.check_one(context, column, Right::Discard))?;
        let zero = Cell { word: Some(0), health: Health::Sound };
        columns.into_iter().try_for_each(|column| self.store(column, |_| Ok(zero)))
    }

    /// Values stay what they are.
    pub(super) fn forget_copies(
        &mut self,
        context: &Context,
        place: Place,
        fields: &[FieldNumber],
    ) -> Result<(), Trouble> {
        fields.iter().try_for_each(|&field| self.check_one(context, Column { place, field }, Right::Discard))
    }

    pub(super) fn copy(
        &mut self,
        context: &mut Context,
        name: FutureName,
        from: Column,
        to: Column,
    ) -> Result<(), Trouble> {
        self.same_kind(from, to)?;
        self.check_columns(&[(from, self.dimension(to.place.node)?)])?;
        self.check_covers(from.place, to.place)?;
        self.check_single(context, &[(from, Right::Read), (to, Right::Discard)])?;
        let source: std::collections::BTreeMap<_, _> = self.words(from)?.into_iter().collect();
        let health = self.health(from)?.max(context.start);
        self.store(to, |point| Ok(Cell { word: source[&point].word, health }))?;
        self.moved(context, name, health);
        Ok(())
    }

    pub(super) fn copy_fields(
        &mut self,
        context: &mut Context,
        name: FutureName,
        from: Place,
        to: Place,
        pairs: &[(FieldNumber, FieldNumber)],
    ) -> Result<(), Trouble> {
        let columns = pairs.iter().map(|&(source, destination)| {
            (Column { place: from, field: source }, Column { place: to, field: destination })
        });
        let columns: Vec<(Column, Column)> = columns.collect();
        let dim = self.dimension(to.node)?;
        if self.dimension(from.node)? != dim {
            return Err(Trouble::Meaningless("a copy between different dimensions".into()));
        }
        let destinations: BTreeSet<FieldNumber> = pairs.iter().map(|pair| pair.1).collect();
        if destinations.len() < pairs.len() {
            return Err(Trouble::Refused("a field is to be copied to twice".into()));
        }
        for &(from, to) in &columns {
            self.same_kind(from, to)?;
            self.check_columns(&[(from, dim)])?;
        }
        let mut health = context.start;
        if !columns.is_empty() {
            self.check_covers(from, to)?;
            let sources = columns.iter().map(|&(from, _)| (from, Right::Read));
            let uses: Vec<_> = sources.chain(columns.iter().map(|&(_, to)| (to, Right::Discard))).collect();
            self.check_single(context, &uses)?;
        }
        for &(from, _) in &columns {
            health = health.max(self.health(from)?);
        }
        for (from, to) in columns {
            let source: std::collections::BTreeMap<_, _> = self.words(from)?.into_iter().collect();
            self.store(to, |point| Ok(Cell { word: source[&point].word, health }))?;
        }
        self.moved(context, name, health);
        Ok(())
    }

    pub(super) fn contribute(
        &mut self,
        context: &mut Context,
        name: FutureName,
        operator: Operator,
        from: Column,
        to: Column,
    ) -> Result<(), Trouble> {
        let kind = self.kind(to.place.region, to.field)?;
        self.check_columns(&[(from, self.dimension(to.place.node)?)])?;
        self.check_covers(from.place, to.place)?;
        self.check_single(context, &[(from, Right::Read), (to, Right::Reduce(operator))])?;
        let source: std::collections::BTreeMap<_, _> = self.words(from)?.into_iter().collect();
        let before: std::collections::BTreeMap<_, _> = self.words(to)?.into_iter().collect();
        let health = self.health(from)?.max(context.start);
        self.store(to, |point| {
            let (value, contribution) = (&before[&point], &source[&point]);
            let word = value.word.zip(contribution.word);
            let word = word.map(|(value, contribution)| operator.apply(kind, value, contribution));
            Ok(Cell { word, health: value.health.max(health) })
        })?;
        self.moved(context, name, health);
        Ok(())
    }

    pub(super) fn gather(
        &mut self,
        context: &mut Context,
        name: FutureName,
        Indirect { from, pointers, to }: &Indirect,
    ) -> Result<(), Trouble> {
        self.same_kind(*from, *to)?;
        self.check_columns(&[(*from, 1), (*pointers, self.dimension(to.place.node)?)])?;
        self.check_pointers(*pointers)?;
        self.check_covers(pointers.place, to.place)?;
        self.check_single(context, &[(*from, Right::Read), (*pointers, Right::Read), (*to, Right::Discard)])?;
        let health = self.health(*from)?.max(self.health(*pointers)?).max(context.start);
        let source: std::collections::BTreeMap<_, _> = self.words(*from)?.into_iter().collect();
        let pointer: std::collections::BTreeMap<_, _> = self.words(*pointers)?.into_iter().collect();
        self.store(*to, |point| {
            let row = AnyPoint::from(specified(pointer[&point])? as i64);
            Ok(Cell { word: known(source.get(&row), &row)?.word, health })
        })?;
        self.moved(context, name, health);
        Ok(())
    }

    pub(super) fn scatter(
        &mut self,
        context: &mut Context,
        name: FutureName,
        Indirect { from, pointers, to }: &Indirect,
    ) -> Result<(), Trouble> {
        self.same_kind(*from, *to)?;
        self.check_columns(&[(*to, 1), (*pointers, self.dimension(from.place.node)?)])?;
        self.check_pointers(*pointers)?;
        self.check_covers(pointers.place, from.place)?;
        self.check_single(context, &[(*from, Right::Read), (*pointers, Right::Read), (*to, Right::Write)])?;
        let health = self.health(*from)?.max(self.health(*pointers)?).max(self.health(*to)?).max(context.start);
        let pointer: std::collections::BTreeMap<_, _> = self.words(*pointers)?.into_iter().collect();
        let mut target: std::collections::BTreeMap<_, _> = self.words(*to)?.into_iter().collect();
        for (point, cell) in self.words(*from)? {
            let row = AnyPoint::from(specified(pointer[&point])? as i64);
            *known(target.get_mut(&row), &row)? = cell;
        }
        self.store(*to, |point| Ok(Cell { word: target[&point].word, health }))?;
        self.moved(context, name, health);
        Ok(())
    }

    fn moved(&mut self, context: &mut Context, name: FutureName, health: Health) {
        context.health = context.health.max(health);
        self.futures.insert(name, Results { domain: None, values: vec![(0, health)] });
    }

    fn same_kind(&self, from: Column, to: Column) -> Result<(), Trouble> {
        let kind = |column: Column| self.kind(column.place.region, column.field);
        match kind(from)? == kind(to)? {
            true => Ok(()),
            false => Err(Trouble::Meaningless("a copy between different kinds".into())),
        }
    }

    fn check_columns(&self, columns: &[(Column, usize)]) -> Result<(), Trouble> {
        for &(column, dim) in columns {
            if self.dimension(column.place.node)? != dim {
                return Err(Trouble::Meaningless("a copy between other dimensions".into()));
            }
        }
        Ok(())
    }

    fn check_pointers(&self, column: Column) -> Result<(), Trouble> {
        match self.kind(column.place.region, column.field)? {
            Kind::Pointer(_) => Ok(()),
            _ => Err(Trouble::Meaningless("a field that holds no pointers".into())),
        }
    }

    fn health(&self, column: Column) -> Result<Health, Trouble> {
        Ok(self.words(column)?.iter().map(|(_, cell)| cell.health).max().unwrap_or_default())
    }

    fn store(&mut self, column: Column, value: impl Fn(AnyPoint) -> Result<Cell, Trouble>) -> Result<(), Trouble> {
        let points = std::sync::Arc::clone(self.points(column.place.node)?);
        let new: Vec<_> = points.iter().map(|&point| Ok((point, value(point)?))).collect::<Result<_, _>>()?;
        self.cells_mut(column.place.region, column.field)?.extend(new);
        Ok(())
    }

    /// A task looks at what it has mapped, and changes some of it.
    pub(super) fn inline_pass(
        &mut self,
        context: &mut Context,
        id: StatementId,
        column: Column,
        write: bool,
        pass: Word,
    ) -> Result<(), Trouble> {
        let kind = self.kind(column.place.region, column.field)?;
        for (point, cell) in self.words(column)? {
            if cell.health.max(context.start) > Health::Sound {
                return Err(Trouble::Meaningless("an inline mapping of what a failed task was to write".into()));
            }
            context.digest = mix(context.digest, specified(cell)?);
            if let (true, Some(random)) = (write, inline_value(id, pass, point)) {
                let word = Some(kind.make(random));
                self.cells_mut(column.place.region, column.field)?.insert(point, Cell { word, ..cell });
            }
        }
        Ok(())
    }

    /// The values of a field that is looked at to compute a partition.
    pub(super) fn sound_words(&self, context: &Context, column: Column) -> Result<Vec<(AnyPoint, Word)>, Trouble> {
        let words = self.words(column)?.into_iter().map(|(point, cell)| match cell.health.max(context.start) {
            Health::Sound => Ok((point, specified(cell)?)),
            _ => Err(Trouble::Meaningless("a partition from what a failed task was to write".into())),
        });
        words.collect()
    }

    /// Whether two nodes have the same points.
    #[must_use]
    pub fn same_points(&self, a: Node, b: Node) -> bool {
        matches!((self.points(a), self.points(b)), (Ok(a), Ok(b)) if a == b)
    }
}

/// A value that has been written.
fn specified(cell: Cell) -> Result<Word, Trouble> {
    cell.word.ok_or_else(|| Trouble::Meaningless("reads a value that a task discarded and nobody wrote".into()))
}
