//! The bytes that nodes send each other when statements run, counted with no more computation than that needs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use maniple::prelude::*;
use maniple_tensor::distributed::{DistributedError, Rehearsal};
use maniple_tensor::lower::Output;

use super::{Around, Tasks, on_runtime, sent, write_given};
use crate::error::Result as AppResult;
use crate::report::by_nodes;
use crate::tensor::options::Options;

/// The runs that are told apart: the first run, and each of the others.
const RUNS: [&str; 2] = ["in the first run", "in each other run"];

/// The bytes that a node has sent of each tensor, and in all.
type Sent = (BTreeMap<Arc<str>, u64>, u64);

impl Tasks {
    /// Returns the bytes that each node sends to others, in lines: before the first run, when operands are read,
    /// converted and placed, in the first run, and in each of the others. Operands are read and moved as they are when
    /// the statements run. Nothing is computed, but for results whose stored elements are not known otherwise, if later
    /// statements read them.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub(in crate::tensor) fn rehearse(&self, options: &Options, around: Around<'_>) -> AppResult<String> {
        on_runtime(options, around, async |cx, runtime| self.rehearse_on((cx, runtime), options, around).await)
    }

    async fn rehearse_on(
        &self,
        (cx, runtime): (&Context, &Runtime),
        options: &Options,
        around: Around<'_>,
    ) -> Result<String, DistributedError> {
        let begun = sent(runtime);
        let (mut all, _) = self.gathered(cx, options, around).await?;
        cx.execution_fence().await?;
        let mut told = "sent to other nodes, as counted by moving it:\n".to_owned();
        tell(cx, &mut told, "before the first run", (BTreeMap::new(), sent(runtime) - begun)).await?;
        let statements = &self.0;
        let prepared = match statements.are_prepared_once(|name| all.has(name)) {
            true => Some(all.rehearsed(cx, statements.all()).await?),
            false => None,
        };
        all.keep_all();
        let (is_short, first) = (all.forgets(), all.clone());
        let mut passing: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        for run in RUNS {
            all.forget(cx)?;
            all.clone_from(&first);
            all.restore(cx).await?;
            write_given(cx, &all, around.given)?;
            cx.execution_fence().await?;
            let (mut of_tensors, mut begun) = (BTreeMap::<Arc<str>, u64>::new(), sent(runtime));
            let mut add = |moved: BTreeMap<Arc<str>, u64>| {
                moved.into_iter().for_each(|(name, bytes)| *of_tensors.entry(name).or_default() += bytes);
            };
            let mut pass = |rehearsal: &Rehearsal| {
                for (name, bytes) in rehearsal.passing().iter().filter(|_| is_short) {
                    let most = passing.entry(Arc::clone(name)).or_default();
                    *most = *bytes.max(most);
                }
            };
            if let Some(rehearsal) = &prepared {
                pass(rehearsal);
                add(rehearsal.run(cx, is_short, || sent(runtime)).await?);
            }
            for (number, planned) in statements.all().iter().enumerate().filter(|_| prepared.is_none()) {
                for stored in planned.operands() {
                    all.convert(cx, stored).await?;
                }
                let rehearsal = all.rehearsed(cx, std::slice::from_ref(planned)).await?;
                pass(&rehearsal);
                add(rehearsal.run(cx, is_short, || sent(runtime)).await?);
                let is_read =
                    || statements.all()[number + 1..].iter().any(|later| later.reads(planned.declared().name()));
                if planned.plan().leaf().output == Output::Entries && is_read() {
                    cx.execution_fence().await?;
                    let before = sent(runtime);
                    all.compute(cx, planned).await?;
                    cx.execution_fence().await?;
                    // What that sends has been counted.
                    begun += sent(runtime) - before;
                }
            }
            tell(cx, &mut told, run, (of_tensors, sent(runtime) - begun)).await?;
        }
        for (name, bytes) in passing {
            let most = by_nodes(&[bytes]);
            _ = writeln!(told, "  at most {most} of {name} on a node at a time beside what it has from the beginning");
        }
        Ok(told)
    }
}

/// Adds what nodes have sent, of each tensor and of all that is for none.
async fn tell(cx: &Context, told: &mut String, when: &str, (of_tensors, all): Sent) -> Result<(), DistributedError> {
    let other = all - of_tensors.values().sum::<u64>();
    let whole = cx.per_node(all).all().await?;
    _ = writeln!(told, "  {when}: {}", by_nodes(&whole));
    let parts = of_tensors.iter().map(|(name, bytes)| (&**name, *bytes)).chain([("what goes before", other)]);
    for (name, bytes) in parts {
        let by = cx.per_node(bytes).all().await?;
        if by.iter().any(|bytes| *bytes > 0) && !of_tensors.is_empty() {
            _ = writeln!(told, "    {name}: {}", by_nodes(&by));
        }
    }
    Ok(())
}
