//! The update of the data's states after replays: the recorded launches are analysed once more, with nothing issued.

use std::sync::Arc;

use maniple_analysis::validity::Places;
use maniple_realm::graph::GraphPlace;
use maniple_realm::{Event, Fault};
use rustc_hash::FxHashMap;

use super::nodes::Stage;
use super::template::Template;
use crate::context::{ContextState, FillNumbers};
use crate::instances::issuing::{Ends, Issuing};
use crate::instances::places::KnownPlaces;
use crate::instances::validity::Preparation;
use crate::launch::FillSite;
use crate::launch::recording::recording::RecordingStep;
use crate::mapping::decisions::MappedPoint;
use crate::mapping::point::{LockedStates, PointMapping};
use crate::mapping::regions::Regions;
use crate::support::error::Error;

/// How nodes ended that did not end well.
pub(super) type Faults = FxHashMap<GraphPlace, Arc<Fault>>;

/// The first run in which something failed.
pub(super) fn first_run(faults: &Faults) -> u64 {
    faults.keys().map(|place| place.run).min().unwrap_or(0)
}

impl Template {
    /// Brings the states to where the first `steps` launches and fills of a run have left the data. Everything has
    /// ended. `numbers` are those of the run's fills, while a record is kept.
    pub(super) fn catch_up(
        &self,
        context: &Arc<ContextState>,
        run: u64,
        steps: usize,
        sequence: u64,
        faults: &Faults,
        numbers: Option<&[FillNumbers]>,
    ) {
        for (&step, order) in self.steps[..steps].iter().zip(sequence..) {
            match step {
                RecordingStep::Launch(stage) => {
                    self.stages[stage].catch_up(context, order, &|node| faults.get(&GraphPlace { node, run }));
                }
                RecordingStep::Fill(number) => {
                    let FillSite { bound, value, .. } = &*self.fills[number].site;
                    let region = bound.requirement.target.bound();
                    for (part, (fields, state)) in bound.parts.iter().enumerate() {
                        let recorded = numbers.and_then(|numbers| numbers.get(number)?.get(part).copied()?);
                        state.lock().validity.fill(&region, fields, value.recorded_as(recorded));
                    }
                }
            }
        }
    }
}

impl Stage {
    fn catch_up<'f>(&self, context: &Arc<ContextState>, sequence: u64, fault: &dyn Fn(u32) -> Option<&'f Arc<Fault>>) {
        let core = &context.core;
        let end = |node: u32| match fault(node) {
            None => Event::NONE,
            Some(fault) => core.store.poisoned(Error::of_fault(fault, self.site.name(), None)),
        };
        let mut states = LockedStates::lock(&self.site.bounds);
        for (index, point) in self.points.iter().enumerate() {
            let ends = Ends::new(point.transfers.iter().map(|&node| end(node)).collect());
            let placed = PointMapping {
                store: &core.store,
                seat: core.seat(context.whom(self.site.mapper)),
                bounds: &self.site.bounds,
                regions: Regions::Mapped(&point.mapped.physical),
                order: (sequence, index as u64),
                place: None,
                may_wait: false,
                reduces_twice: &self.site.sharing.reduces_twice,
                issuing: Issuing::Again(&ends),
                copy_priority: 0,
            };
            let MappedPoint { chosen, places, .. } = &*point.mapped;
            let (mut known, mut found) = (places.as_ref().map(KnownPlaces::take), Places::new());
            let found = known.as_deref_mut().unwrap_or(&mut found);
            placed.prepare(&mut states, chosen, found, &mut Preparation::together());
            placed.commit(&mut states, chosen, found, end(point.task));
            if let (Some(places), Some(known)) = (places, known) {
                places.put_back(known);
            }
        }
    }
}
