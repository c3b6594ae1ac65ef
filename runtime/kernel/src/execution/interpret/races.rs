//! Finds iterations of parallel loops that are in each other's way.

use std::collections::HashMap;
use std::sync::Arc;

use crate::loops::Reduction;

/// How an element is accessed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Touch {
    Load,
    Store,
    /// A reduction that other iterations may do at the same time.
    Atomic(Reduction),
}

/// Which iterations did something.
#[derive(Clone, Copy)]
enum Who {
    One(i64),
    Several,
}

impl Who {
    fn is_other_than(self, iteration: i64) -> bool {
        !matches!(self, Self::One(one) if one == iteration)
    }

    fn and(self, iteration: i64) -> Self {
        if self.is_other_than(iteration) { Self::Several } else { self }
    }
}

/// The accesses to an element in one run of a loop.
#[derive(Default)]
struct History {
    loaded: Option<Who>,
    /// The last way in which it was changed.
    changed: Option<(Who, Touch)>,
}

struct Running {
    variable: Arc<str>,
    iteration: i64,
    /// By allocation and address.
    elements: HashMap<(usize, usize), History>,
}

/// The parallel loops that are running, and what their iterations have accessed.
#[derive(Default)]
pub(super) struct Races {
    running: Vec<Running>,
}

impl Races {
    pub(super) fn enter(&mut self, variable: &Arc<str>) {
        self.running.push(Running { variable: variable.clone(), iteration: 0, elements: HashMap::new() });
    }

    pub(super) fn iterate(&mut self, iteration: i64) {
        if let Some(running) = self.running.last_mut() {
            running.iteration = iteration;
        }
    }

    pub(super) fn leave(&mut self) {
        self.running.pop();
    }

    /// Notes an access; gives the loop of which another iteration interferes.
    pub(super) fn touch(&mut self, allocation: usize, address: usize, touch: Touch) -> Result<(), Arc<str>> {
        for Running { variable, iteration, elements } in &mut self.running {
            let history = elements.entry((allocation, address)).or_default();
            let changed_by_other = |history: &History| {
                history.changed.is_some_and(|(who, how)| {
                    who.is_other_than(*iteration) && !(how == touch && matches!(touch, Touch::Atomic(_)))
                })
            };
            if changed_by_other(history) {
                return Err(variable.clone());
            }
            if touch == Touch::Load {
                let who = history.loaded.map_or(Who::One(*iteration), |who| who.and(*iteration));
                history.loaded = Some(who);
            } else {
                if history.loaded.is_some_and(|who| who.is_other_than(*iteration)) {
                    return Err(variable.clone());
                }
                // A store of this iteration's own counts more than its reductions: others may not come after it.
                let who = history.changed.map_or(Who::One(*iteration), |(who, _)| who.and(*iteration));
                let how = match history.changed {
                    Some((_, before)) if before != touch => Touch::Store,
                    _ => touch,
                };
                history.changed = Some((who, how));
            }
        }
        Ok(())
    }
}
