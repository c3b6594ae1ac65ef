//! What nodes send each other when statements run, counted without computing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use maniple::FieldValue;
use maniple::prelude::*;
use maniple_tensor::distributed::{DistributedError, Rehearsal};
use maniple_tensor::element::Element;
use maniple_tensor::lower::Output;

use super::{Around, Given, Tasks, on_runtime, sent};
use crate::error::Result as AppResult;
use crate::report::by_nodes;
use crate::tensor::options::Options;

/// What nodes send in the first run, and in each of the others.
const RUNS: [&str; 2] = ["in the first run", "in each other run"];

/// What each node has sent of tensors, and in all.
type Sent = (BTreeMap<Arc<str>, u64>, u64);

impl Tasks {
    /// What each node sends to others, in lines: before the first run, when operands are read, converted and placed, in the first run, and in each of the others. Operands are read and moved as they are
    /// when the statements run; nothing is computed.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub(in crate::tensor) fn rehearse<T: Element + FieldValue>(
        &self,
        options: &Options,
        around: Around<'_, T>,
    ) -> AppResult<String> {
        let given = around.given_whole();
        on_runtime(options, (&given, around.files), async |cx, runtime| {
            self.rehearse_on((cx, runtime), options, (&given, around)).await
        })
    }

    async fn rehearse_on<T: Element + FieldValue>(
        &self,
        (cx, runtime): (&Context, &Runtime),
        options: &Options,
        (given, around): (&Given<T>, Around<'_, T>),
    ) -> Result<String, DistributedError> {
        let begun = sent(runtime);
        let (mut all, _) = self.gathered(cx, options, (given, around)).await?;
        cx.execution_fence().await?;
        let mut told = "sent to other nodes, as counted by moving it:\n".to_owned();
        tell(cx, &mut told, "before the first run", (BTreeMap::new(), sent(runtime) - begun)).await?;
        let prepared = match self.is_prepared_once(given) {
            true => Some(all.rehearsed(cx, &self.planned, &[]).await?),
            false => None,
        };
        all.made.clear();
        let is_short = all.is_short;
        let (first, mut unknown) = (all.all.clone(), BTreeSet::new());
        let mut passing: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        for run in RUNS {
            all.forget(cx)?;
            all.all.clone_from(&first);
            all.write(cx)?;
            cx.execution_fence().await?;
            let (mut of_tensors, begun) = (BTreeMap::<Arc<str>, u64>::new(), sent(runtime));
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
                add(rehearsal.run(cx, all.is_short, || sent(runtime)).await?);
            }
            for planned in self.planned.iter().filter(|_| prepared.is_none()) {
                let reads = |name: &String| planned.operands.iter().any(|(_, stored)| stored.name() == name);
                let reads_unknown = unknown.iter().any(reads);
                if reads_unknown || planned.plan.leaf().output == Output::Entries {
                    unknown.insert(planned.declared.name().to_owned());
                }
                if reads_unknown {
                    continue;
                }
                for (_, stored) in &planned.operands {
                    all.convert(cx, stored).await?;
                }
                let old = all.old(cx, planned).await?;
                let rehearsal = all.rehearsed(cx, std::slice::from_ref(planned), &old).await?;
                pass(&rehearsal);
                add(rehearsal.run(cx, all.is_short, || sent(runtime)).await?);
            }
            tell(cx, &mut told, run, (of_tensors, sent(runtime) - begun)).await?;
        }
        for (name, bytes) in passing {
            let most = by_nodes(&[bytes]);
            _ = writeln!(told, "  at most {most} of {name} on a node at a time beside what it has from the beginning");
        }
        if !unknown.is_empty() {
            let names = unknown.into_iter().collect::<Vec<_>>().join(", ");
            _ = writeln!(told, "  of {names} it is known when it is computed what is stored");
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
