//! A slice of another node's launch is run here, as a launch of these points.

use std::future::poll_fn;
use std::sync::Arc;

use maniple_realm::After;
use maniple_space::AnyRect;

use super::{Description, Outcome};
use crate::context::{Context, ContextState, Owned};
use crate::core::RuntimeCore;
use crate::error::Error;
use crate::future::{Origin, Results, Sources};
use crate::launch::TaskLauncher;
use crate::task::registry::find;

/// What slices are launched by.
const GUEST: &str = "a slice for another node";

/// Runs a slice of another node's launch, and calls when all its points have ended: with what has come of each, in their order.
pub(crate) fn host(
    core: &Arc<RuntimeCore>,
    description: &Description,
    done: impl FnOnce(Vec<Outcome>) + Send + 'static,
) {
    let Some((launcher, domain, points)) = understand(description) else {
        let problem = "another node has sent a slice of this task, which is not to be found here; start the same program on all nodes";
        return done(description.refused(&Error::launch(description.path(), problem)));
    };
    let arrived = description.arrived();
    core.store.counters.slices_received.add(1);
    let core = Arc::clone(core);
    let realm = core.realm().clone();
    realm.spawn_async(After::default(), async move {
        let processor = core.processor_here();
        let origin = (Origin::BuiltIn(GUEST), None, None);
        let mut state = ContextState::new(&core, origin, processor, 0, Vec::new());
        if let Some(state) = Arc::get_mut(&mut state) {
            state.arrived = Some(arrived);
        }
        let context = Context { state: Arc::clone(&state) };
        let owned = Owned::new(state);
        let results = context.submit_local(launcher, (domain, Some(points), true));
        let closed = owned.close(Ok(()));
        poll_fn(|cx| owned.poll_drained(cx.waker())).await;
        let outcomes = outcomes(&results, points);
        // Of failures the other node is told point by point; of others there is nothing that could have failed.
        let _ = owned.conclude(closed);
        done(outcomes);
    });
}

/// The launch: all points, and those of the slice. None if it means nothing here.
fn understand(description: &Description) -> Option<(TaskLauncher, AnyRect, AnyRect)> {
    let definition = find(description.path())?;
    let (_, luggage) = definition.luggage()?;
    let (domain, points) = description.rects()?;
    let arguments = luggage.decode(&description.arguments)?;
    let launcher = TaskLauncher::of_free(definition, arguments, Sources::new()).tag(description.tag);
    luggage.requirements().is_empty().then_some((launcher, domain, points))
}

/// What has come of each point of a launch that has ended.
fn outcomes(results: &Results, points: AnyRect) -> Vec<Outcome> {
    let not_sendable = || Error::NotSendable { task: results.task().to_owned() };
    let codec = results.definition().and_then(|definition| definition.result_codec());
    let encode = |value: &dyn std::any::Any| codec.and_then(|codec| codec.encode(value)).ok_or_else(not_sendable);
    let whole = results.launch_failure();
    let outcome = |index: usize| match results.value(index) {
        Some(Ok(value)) => encode(value),
        Some(Err(error)) => Err(error.clone()),
        // What is not kept is `()`.
        None => whole.clone().map_or_else(|| encode(&()), Err),
    };
    (0..points.volume() as usize).map(outcome).collect()
}
