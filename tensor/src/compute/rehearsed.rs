//! The bytes that nodes send each other when statements run, counted with no more computation than that needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple::Context;

use super::planned::{Planned, Statements};
use super::sources::Sources;
use super::tensors::Tensors;
use crate::distributed::{DistributedError, Rehearsal};
use crate::lower::Output;

/// The bytes that each node has sent to others.
pub struct Sent {
    /// The bytes of each tensor.
    pub of_tensors: BTreeMap<Arc<str>, Vec<u64>>,
    /// The bytes of all tensors, and of what is for none.
    pub all: Vec<u64>,
}

/// The bytes that statements move between nodes.
pub struct Rehearsed {
    /// The bytes before the first run, when operands are read, converted and placed.
    pub before: Sent,
    /// The bytes of the first run, and of each of the others.
    pub runs: [Sent; 2],
    /// The most bytes of tensors that a node has at a time beside what it has from the beginning, if nodes forget what
    /// they got.
    pub passing: BTreeMap<Arc<str>, u64>,
}

impl Sent {
    /// Gathers from all nodes what each has sent.
    async fn of(cx: &Context, own: BTreeMap<Arc<str>, u64>, all: u64) -> Result<Self, DistributedError> {
        let mut of_tensors = BTreeMap::new();
        for (name, bytes) in own {
            of_tensors.insert(name, cx.per_node(bytes).all().await?);
        }
        Ok(Self { of_tensors, all: cx.per_node(all).all().await? })
    }
}

impl Sources<'_> {
    /// The bytes that nodes send each other when statements run on these tensors; `sent` says how many this node has
    /// sent so far. Operands are read and moved as they are when the statements run. Nothing is computed, but for
    /// results whose stored elements are not known otherwise, if later statements read them.
    ///
    /// # Errors
    ///
    /// As of [`gathered`](Self::gathered), and [`DistributedError`] if a task fails.
    pub async fn rehearsed(
        &self,
        cx: &Context,
        statements: &Statements,
        forgets: bool,
        sent: impl Fn() -> u64,
    ) -> Result<Rehearsed, DistributedError> {
        let begun = sent();
        let mut all = self.gathered(cx, statements, forgets).await?.tensors;
        cx.execution_fence().await?;
        let before = Sent::of(cx, BTreeMap::new(), sent() - begun).await?;
        let prepared = match statements.are_prepared_once(|name| all.has(name)) {
            true => Some(all.rehearsed(cx, statements.all()).await?),
            false => None,
        };
        all.keep_all();
        let mut rehearsing = Rehearsing { statements: statements.all(), first: all.clone(), all, prepared, sent };
        let mut passing = BTreeMap::new();
        let runs =
            [self.run(cx, &mut rehearsing, &mut passing).await?, self.run(cx, &mut rehearsing, &mut passing).await?];
        Ok(Rehearsed { before, runs, passing })
    }

    /// Rehearses one run.
    async fn run(
        &self,
        cx: &Context,
        rehearsing: &mut Rehearsing<'_, impl Fn() -> u64>,
        passing: &mut BTreeMap<Arc<str>, u64>,
    ) -> Result<Sent, DistributedError> {
        let Rehearsing { statements, first, all, prepared, sent } = rehearsing;
        let is_short = all.forgets();
        all.forget(cx)?;
        all.clone_from(first);
        all.restore(cx).await?;
        self.renew(cx, all).await?;
        cx.execution_fence().await?;
        let (mut of_tensors, mut begun) = (BTreeMap::<Arc<str>, u64>::new(), sent());
        let mut add = |moved: BTreeMap<Arc<str>, u64>| {
            moved.into_iter().for_each(|(name, bytes)| *of_tensors.entry(name).or_default() += bytes);
        };
        let mut pass = |rehearsal: &Rehearsal| {
            for (name, bytes) in rehearsal.passing().iter().filter(|_| is_short) {
                let most = passing.entry(Arc::clone(name)).or_default();
                *most = *bytes.max(most);
            }
        };
        if let Some(rehearsal) = prepared {
            pass(rehearsal);
            add(rehearsal.run(cx, is_short, &*sent).await?);
        }
        for (number, planned) in statements.iter().enumerate().filter(|_| prepared.is_none()) {
            for stored in planned.operands() {
                all.convert(cx, stored).await?;
            }
            let rehearsal = all.rehearsed(cx, std::slice::from_ref(planned)).await?;
            pass(&rehearsal);
            add(rehearsal.run(cx, is_short, &*sent).await?);
            let is_read = || statements[number + 1..].iter().any(|later| later.reads(planned.declared().name()));
            if planned.plan().leaf().output == Output::Entries && is_read() {
                cx.execution_fence().await?;
                let before = sent();
                all.compute(cx, planned).await?;
                cx.execution_fence().await?;
                // What that sends has been counted.
                begun += sent() - before;
            }
        }
        let moved = sent() - begun;
        Sent::of(cx, of_tensors, moved).await
    }
}

/// Statements that are rehearsed.
struct Rehearsing<'a, S> {
    statements: &'a [Planned],
    /// The tensors before the first run.
    first: Tensors,
    all: Tensors,
    /// All statements, if they are prepared once.
    prepared: Option<Rehearsal>,
    /// Gives the bytes that this node has sent.
    sent: S,
}
