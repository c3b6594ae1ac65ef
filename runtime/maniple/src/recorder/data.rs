//! What is done with data, as records say it.

use maniple_record::{Contribution, Kind, LaunchNumber, Part, Usage};
use maniple_region::{FieldMask, Shape};

use crate::physical::movement::{Movement, Source};
use crate::physical::set::PendingReduction;
use crate::task::call::{PhysicalRegion, Placement};

/// What a requirement does with data, and where.
pub(crate) fn usage(physical: &PhysicalRegion) -> Usage {
    let PhysicalRegion { region, fields, privilege, place, .. } = physical;
    let instances = match place {
        Placement::Virtual(_) => Vec::new(),
        Placement::Instances(instances) => {
            instances.iter().map(|(fields, instance)| (fields.clone(), instance.id())).collect()
        }
    };
    Usage { region: region.clone(), fields: fields.clone(), privilege: *privilege, instances }
}

/// What movements with one source and destination are.
pub(crate) fn movements(movements: &[&Movement], cause: Option<LaunchNumber>) -> Kind {
    let first = movements.first().expect("an operation moves something");
    let to = first.destination.id();
    let part = |movement: &Movement| Part { fields: movement.fields.clone(), points: movement.shape.space().clone() };
    if let Source::Instance(from) = &first.source {
        return Kind::Copy {
            cause,
            from: from.id(),
            to,
            parts: movements.iter().map(|&movement| part(movement)).collect(),
        };
    }
    let filled = |movement: &&Movement| match &movement.source {
        Source::Fill(value) => Some((part(movement), value.recorded())),
        Source::Instance(_) => None,
    };
    Kind::Fill { cause, to, parts: movements.iter().filter_map(filled).collect() }
}

/// What applying buffers to fields of a set of points is: what `Application`s carry out.
pub(crate) fn contributions(pending: &[PendingReduction], whole: &Shape, fields: &FieldMask) -> Vec<Contribution> {
    let contribution = |reduction: &PendingReduction| {
        let fields = fields.intersection(reduction.buffer.fields());
        let points = reduction.cover.shape(whole)?.space().clone();
        Some(Contribution {
            buffer: reduction.buffer.id(),
            operator: reduction.operator,
            part: Part { fields, points },
        })
    };
    pending.iter().filter_map(contribution).collect()
}
