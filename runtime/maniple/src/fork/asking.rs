//! Whether a mapper lets launches of a task be forks.

use std::cell::RefCell;
use std::sync::Arc;

use maniple_mapper::{TaskInfo, Validity};
use maniple_realm::machine::ProcessorId;
use maniple_space::{AnyRect, Rect};

use crate::core::RuntimeCore;
use crate::mapping::answer::checked;
use crate::mapping::lookup::Lookup;
use crate::mapping::point::LockedStates;
use crate::mapping::regions::Regions;
use crate::task::TaskDefinition;

/// Whether single launches of a task without regions may be forked, for as long as the mapper lives: it has them run
/// where they are launched, by the implementation that was launched, and would say so again. Tasks that name a mapper
/// may not. A task on this processor is about to launch the task at this depth.
#[inline]
pub(super) fn lets_fork(
    core: &Arc<RuntimeCore>,
    task: &'static Arc<TaskDefinition>,
    origin: ProcessorId,
    depth: usize,
) -> bool {
    core.fork_decisions(origin)
        .get_or_decide(&**task, || task.mapper_name().is_none() && ask(core, task, origin, depth))
}

#[cold]
fn ask(core: &Arc<RuntimeCore>, task: &TaskDefinition, origin: ProcessorId, depth: usize) -> bool {
    let domain = AnyRect::from(Rect::<1>::from(0..1));
    let info = TaskInfo {
        name: task.name(),
        point: domain.lo(),
        domain,
        is_index_launch: false,
        requirements: &[],
        variants: task.variants(),
        origin,
        depth,
        tag: 0,
    };
    let mut no_states = LockedStates::lock(&[]);
    let states = RefCell::new(&mut no_states);
    let (regions, mail) = (Regions::Asked(&[]), core.mail_of(origin));
    let lookup = Lookup { store: &core.store, bounds: &[], regions, states: &states, mail: &mail };
    let mapping = core.seat(origin).call(&core.store, "map_task", |mapper| mapper.map_task(&info, &lookup));
    // An answer that is none is for the launch to tell of.
    mapping.and_then(|mapping| checked(mapping, &info, core.machine())).is_ok_and(|mapping| {
        mapping.validity == Validity::WhileUnchanged
            && mapping.processor == origin
            && (mapping.variant, mapping.priority) == (0, 0)
            && !mapping.any_variant
            && !mapping.pinned
            && mapping.group.is_empty()
            && !mapping.profile
    })
}
