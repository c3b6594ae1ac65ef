//! Checking what a mapper says: whatever it answers, nothing breaks.

use maniple_mapper::{RequirementMapping, Slice, TaskInfo, TaskMapping};
use maniple_realm::machine::{Machine, ProcessorId};
use maniple_space::{AnyRect, AnySpace};

use crate::error::{Error, Result};

/// Checks that slices cover the points of a launch, each once.
pub(crate) fn check_slices(slices: &[Slice], domain: &AnyRect, machine: &Machine) -> Result<()> {
    let fail = |problem: String| Err(Error::mapper("slice_launch", problem));
    let mut points = 0;
    for slice in slices {
        if !domain.contains_rect(&slice.domain).unwrap_or(false) {
            return fail(format!("gave the slice {}, which is not within the launch's {domain}", slice.domain));
        }
        if slice.processor.0 as usize >= machine.processors().len() {
            return fail(format!("gave a slice to {}, which the machine does not have", slice.processor));
        }
        points += slice.domain.volume();
    }
    let parts: Vec<AnySpace> = slices.iter().map(|slice| AnySpace::from(slice.domain)).collect();
    let apart = || AnySpace::are_disjoint(domain.dim(), &parts).unwrap_or(false);
    if points != domain.volume() || (slices.len() > 1 && !apart()) {
        return fail(format!("gave slices that do not have every point of {domain} exactly once"));
    }
    Ok(())
}

/// Checks everything of a mapping but its instances.
pub(crate) fn check_mapping(mapping: &TaskMapping, task: &TaskInfo<'_>, machine: &Machine) -> Result<()> {
    let fail = |problem: String| Err(Error::mapper("map_task", format!("for `{}` {problem}", task.name)));
    let Some(processor) = machine.processors().get(mapping.processor.0 as usize) else {
        return fail(format!("chose {}, which the machine does not have", mapping.processor));
    };
    let Some(variant) = task.variants.get(mapping.variant) else {
        return fail(format!("chose variant {}, of {}", mapping.variant, task.variants.len()));
    };
    if variant.processor != processor.kind {
        let (name, wants, kind) = (variant.name, variant.processor, processor.kind);
        return fail(format!("chose variant {name}, for a {wants} processor, and {}, a {kind}", processor.id));
    }
    if mapping.requirements.len() != task.requirements.len() {
        let (found, wanted) = (mapping.requirements.len(), task.requirements.len());
        return fail(format!("mapped {found} requirements, of {wanted}"));
    }
    for (number, requirement) in mapping.requirements.iter().enumerate() {
        check_requirement(requirement, variant.is_leaf, processor.id, machine)
            .or_else(|problem| fail(format!("requirement {number}: {problem}")))?;
    }
    Ok(())
}

/// Checks where a requirement is to be mapped; the error says what is wrong.
pub(crate) fn check_requirement(
    mapping: &RequirementMapping,
    is_leaf: bool,
    processor: ProcessorId,
    machine: &Machine,
) -> Result<(), String> {
    match mapping {
        RequirementMapping::Virtual if is_leaf => Err("is virtual, but what uses it is a leaf".to_owned()),
        RequirementMapping::Virtual => Ok(()),
        RequirementMapping::Instance(choices) if choices.is_empty() => Err("has no choice of instance".to_owned()),
        RequirementMapping::Instance(choices) => {
            let unseen = choices.iter().find(|choice| machine.affinity(processor, choice.memory).is_none());
            match unseen {
                Some(choice) => Err(format!("is put in {}, which {processor} does not see", choice.memory)),
                None => Ok(()),
            }
        }
    }
}
