//! Task launches as operations: sliced, and the slices mapped.

use std::sync::Arc;

use maniple_mapper::{Slice, TaskInfo};
use maniple_realm::Target;
use maniple_region::Provenance;
use maniple_space::AnyRect;

use super::division::{AwaySlices, Division};
use super::mapping::MappingPart;
use super::state::TaskState;
use crate::core::Chance;
use crate::launch::recording::RecordingProblem;
use crate::mapping::answer::check_slices;
use crate::mapping::point::LockedStates;
use crate::operation::lifecycle::{Mappable, MapperNumber, Operation};
use crate::support::error::Result;

impl Mappable for TaskState {
    fn name(&self) -> &str {
        self.site.name()
    }

    fn mapper(&self) -> MapperNumber {
        self.site.mapper
    }

    fn launched(&self) -> Option<&Provenance> {
        self.launched.as_ref()
    }

    fn may_wait(&self) -> bool {
        self.site.definition.may_wait()
    }

    fn points(&self) -> u64 {
        self.site.points.volume()
    }

    fn map(self: Arc<Self>, operation: &Arc<Operation>) {
        let state = &self;
        if state.site.points.is_empty() {
            operation.mark_mapped();
            operation.retire(Ok(()));
            return;
        }
        if !state.site.index_launch {
            return state.map_slice(operation, MappingPart::of(state.site.points), Chance::Another);
        }
        match state.slices() {
            Ok((slices, away)) => {
                if let (Some((recording, _)), false) = (&state.recorded, away.is_empty()) {
                    recording.fail(RecordingProblem::RunsElsewhere);
                }
                for (slice, reason) in away {
                    match state.site.bounds.is_empty() {
                        // What differs from point to point is not sent.
                        true if state.takes_per_point() => {
                            state.map_slice_later(operation, slice.domain, Target::Near(state.context.processor));
                        }
                        true => state.send_slice(operation, slice, reason),
                        false => state.map_slice_away(operation, slice),
                    }
                }
                let Some((last, others)) = slices.split_last() else { return };
                for slice in others {
                    state.map_slice_later(operation, slice.domain, Target::Near(slice.processor));
                }
                state.map_slice(operation, MappingPart::of(last.domain), Chance::Another);
            }
            Err(error) => {
                let points: Vec<_> = state.site.points.points().map(|point| (point, error.clone())).collect();
                state.lose(operation, &mut LockedStates::lock(&state.site.bounds), &points);
                state.fail_points(operation, points);
            }
        }
    }
}

impl TaskState {
    /// The slices that are mapped here, and those that go to other nodes: the mapper's, or those that thieves get.
    fn slices(&self) -> Result<(Arc<[Slice]>, AwaySlices)> {
        let (slices, away) = self.slices_as_mapped()?;
        let stolen = if away.is_empty() { self.stolen_slices() } else { None };
        let Some((here, stolen)) = stolen else { return Ok((slices, away)) };
        match self.slices_of(here) {
            Ok(slices) => Ok((slices.into(), stolen)),
            Err(error) => {
                let migration = self.context.core.migration();
                migration.into_iter().for_each(|migration| {
                    stolen.iter().for_each(|(slice, _)| migration.put_back_thief(slice.node));
                });
                Err(error)
            }
        }
    }

    fn slices_as_mapped(&self) -> Result<(Arc<[Slice]>, AwaySlices)> {
        if let Some(slices) = self.site.decisions.slices() {
            return Ok((slices, Vec::new()));
        }
        let Division { here, away } = self.divide()?;
        let slices: Arc<[Slice]> = match here[..] {
            [only] => self.slices_of(only)?.into(),
            _ => here.into_iter().map(|part| self.slices_of(part)).collect::<Result<Vec<_>>>()?.concat().into(),
        };
        if away.is_empty() {
            self.site.decisions.keep_slices(&slices);
        }
        Ok((slices, away))
    }

    /// The mapper's slices of points that are mapped here.
    fn slices_of(&self, domain: AnyRect) -> Result<Vec<Slice>> {
        let core = &self.context.core;
        let info = TaskInfo { domain, ..self.info(domain.lo(), &[]) };
        let seat = core.seat(self.whom());
        let slices = seat.call(&core.store, "slice_launch", |mapper| mapper.slice_launch(&info, core.machine()))?;
        check_slices(&slices, &domain, core.machine())?;
        Ok(slices)
    }
}
