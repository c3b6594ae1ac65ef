//! Random fills, copies and inline mappings.

use super::{Generator, Scope};
use crate::program::{
    Action, Backing, Block, Column, FieldNumber, FutureName, Indirect, Inline, Place, Statement, StatementId,
};
use crate::value::{Kind, Operator};

impl Generator {
    pub(super) fn some_column(&mut self, scope: &Scope, suits: impl Fn(Kind) -> bool) -> Option<Column> {
        let region = self.one_of(&scope.regions())?;
        let node = self.node_of(scope, region)?;
        let field = self.field(region, suits)?;
        Some(Column { place: Place { region, node }, field })
    }

    /// A fill, or now and then an invalidation.
    pub(super) fn fill(&mut self, scope: &Scope) -> Option<Action> {
        let column = self.some_column(scope, |_| true)?;
        if self.once_in(3) {
            let others = self.world.kinds(column.place.region).ok()?.iter().enumerate();
            let others = others.filter(|(field, kind)| kind.is_some() && *field != column.field);
            let mut fields: Vec<FieldNumber> = others.map(|(field, _)| field).collect();
            fields.retain(|_| self.once_in(4));
            fields.push(column.field);
            return Some(match self.once_in(2) {
                true => Action::ForgetCopies(column.place, fields),
                false => Action::Invalidate(column.place, fields),
            });
        }
        Some(Action::Fill(column, self.random.u64(..)))
    }

    /// A copy. Few of those proposed have a meaning: several are.
    pub(super) fn add_copy(&mut self, scope: &mut Scope, block: &mut Block) {
        let (kind, before) = (self.random.usize(..10), block.0.len());
        for _ in 0..12 {
            let proposed = match kind {
                0..=3 => self.copy(scope),
                4 => self.copy_fields(scope),
                5 => self.contribute(scope),
                _ => self.copy_through_pointers(scope),
            };
            let Some(action) = proposed else { continue };
            if self.attempt(scope, block, action) || block.0.len() > before {
                return;
            }
        }
    }

    fn copy(&mut self, scope: &Scope) -> Option<Action> {
        let to = self.some_column(scope, |_| true)?;
        let kind = self.world.kind(to.place.region, to.field).ok()?;
        let from = self.some_column(scope, |other| other == kind)?;
        Some(Action::Copy(FutureName(self.number()), from, to))
    }

    /// Some fields of one place to others of their kinds at another place, seldom one twice.
    fn copy_fields(&mut self, scope: &Scope) -> Option<Action> {
        let (to, from) = (self.some_column(scope, |_| true)?, self.some_column(scope, |_| true)?);
        let mut pairs = Vec::new();
        let most = if self.once_in(8) { self.random.usize(0..=1) } else { self.random.usize(2..=6) };
        for _ in 0..most {
            let destination = self.field(to.place.region, |_| true)?;
            let kind = self.world.kind(to.place.region, destination).ok()?;
            let Some(source) = self.field(from.place.region, |other| other == kind) else { continue };
            if self.once_in(6) || pairs.iter().all(|&(_, known)| known != destination) {
                pairs.push((source, destination));
            }
        }
        Some(Action::CopyFields(FutureName(self.number()), from.place, to.place, pairs))
    }

    fn contribute(&mut self, scope: &Scope) -> Option<Action> {
        // Of the last two few fields hold contributions.
        let few = if self.random.bool() { 4 } else { Operator::ALL.len() };
        let operator = self.one_of(&Operator::ALL[..few])?;
        let to = self.some_column(scope, |kind| operator.is_on(kind))?;
        let kind = operator.contributions(self.world.kind(to.place.region, to.field).ok()?);
        let from = self.some_column(scope, |other| other == kind)?;
        Some(Action::Contribute(FutureName(self.number()), operator, from, to))
    }

    fn copy_through_pointers(&mut self, scope: &Scope) -> Option<Action> {
        let pointers = self.some_column(scope, |kind| matches!(kind, Kind::Pointer(_)))?;
        let near = self.some_column(scope, |_| true)?;
        // Mostly the rows of the pointers: others lack some.
        let node = if self.once_in(6) { near.place.node } else { pointers.place.node };
        let near = Column { place: Place { node, ..near.place }, ..near };
        let kind = self.world.kind(near.place.region, near.field).ok()?;
        let far = self.some_column(scope, |other| other == kind)?;
        let name = FutureName(self.number());
        Some(match self.random.bool() {
            true => Action::Gather(name, Indirect { from: far, pointers, to: near }),
            false => Action::Scatter(name, Indirect { from: near, pointers, to: far }),
        })
    }

    /// Memory that is attached, statements while it is, and its detachment unless it is left to the region. Or the
    /// detachment of what was attached before.
    pub(super) fn add_attachment(&mut self, scope: &mut Scope, block: &mut Block) {
        if let Some(known) = self.one_of(&scope.context.attached)
            && self.random.bool()
        {
            return self.detach(scope, block, known.name);
        }
        let handle = FutureName(self.number());
        for _ in 0..6 {
            let Some(column) = self.some_column(scope, |_| true) else { continue };
            let seed = self.random.u64(..);
            let backing = match self.once_in(3) {
                true => Backing::ReadOnly,
                false if self.once_in(4) => Backing::Array { columns: self.random.bool() },
                false => Backing::Memory,
            };
            if self.attempt(scope, block, Action::Attach(handle, column, seed, backing)) {
                let (statements, before) = (self.random.usize(0..=4), block.0.len());
                if !self.is_plain && statements > 0 {
                    self.fill_block(scope, block, before + statements);
                }
                if !self.once_in(5) {
                    self.detach(scope, block, handle);
                }
                return;
            }
        }
    }

    fn detach(&mut self, scope: &mut Scope, block: &mut Block, handle: FutureName) {
        let (name, flush) = (FutureName(self.number()), !self.once_in(4));
        if scope.context.attached.iter().any(|attached| attached.name == handle) {
            self.attempt(scope, block, Action::Detach(name, handle, flush));
        }
    }

    /// An inline mapping, with statements while it is held.
    pub(super) fn add_inline(&mut self, scope: &mut Scope, block: &mut Block) {
        let Some(column) = self.some_column(scope, |_| true) else { return };
        let write = self.random.bool();
        let plain = Inline { column, write, late: self.once_in(3), during: Block::default() };
        let statements = if self.random.bool() { 0 } else { self.random.usize(1..=4) };
        // What happens meanwhile is made in a world where the mapping is held; what it makes remains known.
        let id = StatementId(self.number());
        let (mut world, mut context) = (self.world.clone(), scope.context.clone());
        let opened = world.open_inline(&mut context, id, &plain);
        if statements == 0 || opened.is_err() {
            self.attempt(scope, block, Action::Inline(plain));
            return;
        }
        let (old_world, old_scope) = (std::mem::replace(&mut self.world, world), scope.clone());
        scope.context = context;
        scope.holding = true;
        let mut during = Block::default();
        self.fill_block(scope, &mut during, statements);
        let closed = self.world.close_inline(&mut scope.context, id, &plain);
        scope.holding = old_scope.holding;
        if closed.is_err() {
            (self.world, *scope) = (old_world, old_scope);
            return;
        }
        block.0.push(Statement::new(id.0, Action::Inline(Inline { during, ..plain })));
    }
}
