//! Statements of kernels: loops, lets, stores.

use std::sync::Arc;

use super::{Buffer, Expression, Reduction, Variable};

/// The threads or units that run the iterations of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// One after the other.
    Serial,
    /// The threads of a team, each a chunk.
    Threads,
    /// The threads of a team, each the next iteration when it has ended one.
    Chunks,
    /// The lanes of a vector unit.
    Vector,
    /// The blocks of a GPU's grid. On a CPU: one after the other.
    Block,
    /// The warps of a block. On a CPU: one after the other.
    Warp,
    /// The threads of a block, or of a warp. On a CPU: one after the other.
    Thread,
}

impl LoopKind {
    /// Whether iterations may run at the same time, or in any order.
    pub fn is_parallel(self) -> bool {
        self != Self::Serial
    }

    /// Whether the threads of a team run iterations.
    pub fn is_of_team(self) -> bool {
        matches!(self, Self::Threads | Self::Chunks)
    }
}

/// The scope of a buffer that a kernel makes for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// It belongs to the threads that run this statement.
    Private,
    /// All threads of a GPU's block share it. On a CPU the same as [`Private`](Self::Private).
    Block,
}

/// A step of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// One after the other. What is bound in a sequence ends with it.
    Sequence(Vec<Statement>),
    /// Binds a variable until the end of the sequence.
    Let {
        /// The new variable.
        variable: Variable,
        /// Its value.
        value: Expression,
        /// Whether it may be [`Set`](Self::Set) later.
        mutable: bool,
    },
    /// Changes a variable bound by a mutable let.
    Set {
        /// The variable.
        variable: Variable,
        /// The new value.
        value: Expression,
        /// If there is one, the new value is that of the old one and `value` combined.
        reduction: Option<Reduction>,
    },
    /// Changes an element.
    Store {
        /// The buffer.
        buffer: Buffer,
        /// The point, in global coordinates.
        indices: Vec<Expression>,
        /// The new value.
        value: Expression,
        /// If there is one, the new value is that of the old one and `value` combined.
        reduction: Option<Reduction>,
        /// Whether other iterations of an enclosing parallel loop may reduce into the same element at the same time.
        atomic: bool,
    },
    /// Runs `body` for each index from `low` to `high`, `high` excluded. Both are evaluated once, before.
    For {
        /// The index.
        variable: Variable,
        /// The first index.
        low: Expression,
        /// The index after the last.
        high: Expression,
        /// The threads or units that run the iterations.
        kind: LoopKind,
        /// How often the body is to be repeated in the machine code, as far as that does not become too large; 1 for
        /// the compiler's choice.
        unroll: u32,
        /// The statement that runs for each index.
        body: Box<Statement>,
    },
    /// Runs `body` as long as `condition` holds.
    While {
        /// Evaluated before each run.
        condition: Expression,
        /// The statement that is repeated.
        body: Box<Statement>,
    },
    /// Runs one of two statements.
    If {
        /// A truth value.
        condition: Expression,
        /// Runs if it holds.
        then: Box<Statement>,
        /// Runs if it doesn't.
        otherwise: Option<Box<Statement>>,
    },
    /// Ends the innermost loop, which is serial.
    Break,
    /// Goes on with the next iteration of the innermost loop.
    Continue,
    /// Makes a buffer, with contiguous elements in row-major order, until the end of the sequence.
    Allocate {
        /// The new buffer.
        buffer: Buffer,
        /// For each dimension the lowest index and the one after the highest.
        bounds: Vec<(Expression, Expression)>,
        /// The scope of the buffer.
        scope: Scope,
        /// Whether all elements are 0 at the beginning. Otherwise they must be stored before they are loaded.
        zeroed: bool,
    },
}

/// The most statements that the body of an unrolled loop becomes in the machine code.
const MOST_REPEATED: u64 = 1024;

impl Statement {
    /// Nothing.
    pub fn nothing() -> Self {
        Self::Sequence(Vec::new())
    }

    /// One after the other; sequences among `statements` that bind nothing are merged into it.
    pub fn sequence(statements: impl IntoIterator<Item = Statement>) -> Self {
        let mut flat = Vec::new();
        for statement in statements {
            match statement {
                Self::Sequence(inner) if !inner.iter().any(Self::binds) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        match <[Statement; 1]>::try_from(flat) {
            Ok([only]) if !only.binds() => only,
            Ok([only]) => Self::Sequence(vec![only]),
            Err(flat) => Self::Sequence(flat),
        }
    }

    /// Binds `variable` to `value` until the end of the sequence.
    pub fn bind(variable: &Variable, value: impl Into<Expression>) -> Self {
        Self::Let { variable: variable.clone(), value: value.into(), mutable: false }
    }

    /// The same for a variable that may be set later.
    pub fn bind_mutable(variable: &Variable, value: impl Into<Expression>) -> Self {
        Self::Let { variable: variable.clone(), value: value.into(), mutable: true }
    }

    /// Sets a variable that was bound mutable.
    pub fn set(variable: &Variable, value: impl Into<Expression>) -> Self {
        Self::Set { variable: variable.clone(), value: value.into(), reduction: None }
    }

    /// Stores `value` at the point `indices` of `buffer`.
    pub fn store(buffer: &Buffer, indices: impl IntoIterator<Item = Expression>, value: impl Into<Expression>) -> Self {
        Self::Store {
            buffer: buffer.clone(),
            indices: indices.into_iter().collect(),
            value: value.into(),
            reduction: None,
            atomic: false,
        }
    }

    /// Makes this set or store combine its value with what is there. Other statements stay as they are.
    pub fn reduce(mut self, with: Reduction) -> Self {
        if let Self::Set { reduction, .. } | Self::Store { reduction, .. } = &mut self {
            *reduction = Some(with);
        }
        self
    }

    /// Lets other iterations of a parallel loop reduce into the same element. Statements that are no stores stay as
    /// they are.
    pub fn atomic(mut self) -> Self {
        if let Self::Store { atomic, .. } = &mut self {
            *atomic = true;
        }
        self
    }

    /// Runs `body` for each `variable` from `low` to `high`, `high` excluded, one after the other.
    pub fn for_each(
        variable: &Variable,
        low: impl Into<Expression>,
        high: impl Into<Expression>,
        body: Statement,
    ) -> Self {
        Self::For {
            variable: variable.clone(),
            low: low.into(),
            high: high.into(),
            kind: LoopKind::Serial,
            unroll: 1,
            body: Box::new(body),
        }
    }

    /// Makes this loop run as `with` says. Other statements stay as they are.
    pub fn with_kind(mut self, with: LoopKind) -> Self {
        if let Self::For { kind, .. } = &mut self {
            *kind = with;
        }
        self
    }

    /// Repeats the body of this loop `factor` times in the machine code. Other statements stay as they are.
    pub fn with_unroll(mut self, factor: u32) -> Self {
        if let Self::For { unroll, .. } = &mut self {
            *unroll = factor;
        }
        self
    }

    /// Runs `body` as long as `condition` holds.
    pub fn repeat_while(condition: Expression, body: Statement) -> Self {
        Self::While { condition, body: Box::new(body) }
    }

    /// Runs `then` if `condition` holds.
    pub fn when(condition: Expression, then: Statement) -> Self {
        Self::If { condition, then: Box::new(then), otherwise: None }
    }

    /// Runs `then` if `condition` holds, else `otherwise`.
    pub fn choose(condition: Expression, then: Statement, otherwise: Statement) -> Self {
        Self::If { condition, then: Box::new(then), otherwise: Some(Box::new(otherwise)) }
    }

    /// Makes a private buffer of zeros with the given bounds until the end of the sequence.
    pub fn allocate(buffer: &Buffer, bounds: impl IntoIterator<Item = (Expression, Expression)>) -> Self {
        Self::Allocate {
            buffer: buffer.clone(),
            bounds: bounds.into_iter().collect(),
            scope: Scope::Private,
            zeroed: true,
        }
    }

    /// How often the body of a loop is repeated in the machine code where `unroll` asks for it: not so often that
    /// compiling all of it takes long.
    pub(crate) fn copies(unroll: u32, body: &Self) -> u32 {
        u32::try_from(MOST_REPEATED / body.repeated().max(1)).unwrap_or(u32::MAX).min(unroll).max(1)
    }

    /// How many statements it is in the machine code, with those that are repeated there.
    fn repeated(&self) -> u64 {
        let mut inside = 0_u64;
        self.for_each_child(&mut |inner| inside = inside.saturating_add(inner.repeated()));
        match self {
            Self::Sequence(_) => inside,
            Self::For { unroll, body, .. } => {
                inside.saturating_mul(Self::copies(*unroll, body).into()).saturating_add(1)
            }
            _ => inside.saturating_add(1),
        }
    }

    /// Whether it binds a name for the statements after it.
    fn binds(&self) -> bool {
        matches!(self, Self::Let { .. } | Self::Allocate { .. })
    }
}

/// Walks over statements.
impl Statement {
    /// Calls `visit` with each direct inner statement.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Statement)) {
        match self {
            Self::Sequence(statements) => statements.iter().for_each(visit),
            Self::For { body, .. } | Self::While { body, .. } => visit(body),
            Self::If { then, otherwise, .. } => {
                visit(then);
                otherwise.as_deref().into_iter().for_each(visit);
            }
            _ => {}
        }
    }

    /// Calls `visit` with each expression that belongs to this statement itself.
    pub fn for_each_expression<'a>(&'a self, visit: &mut dyn FnMut(&'a Expression)) {
        match self {
            Self::Let { value, .. } | Self::Set { value, .. } => visit(value),
            Self::Store { indices, value, .. } => {
                indices.iter().for_each(&mut *visit);
                visit(value);
            }
            Self::For { low, high, .. } => {
                visit(low);
                visit(high);
            }
            Self::While { condition, .. } | Self::If { condition, .. } => visit(condition),
            Self::Allocate { bounds, .. } => bounds.iter().for_each(|(low, high)| {
                visit(low);
                visit(high);
            }),
            Self::Sequence(_) | Self::Break | Self::Continue => {}
        }
    }

    /// Calls `visit` with the name of each variable and buffer that is bound in it, at any depth.
    pub fn for_each_bound<'a>(&'a self, visit: &mut dyn FnMut(&'a Arc<str>)) {
        match self {
            Self::Let { variable, .. } | Self::For { variable, .. } => visit(&variable.name),
            Self::Allocate { buffer, .. } => visit(&buffer.name),
            _ => {}
        }
        self.for_each_child(&mut |inner| inner.for_each_bound(visit));
    }
}
