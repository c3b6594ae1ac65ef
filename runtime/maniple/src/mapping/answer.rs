//! Checking what a mapper says: whatever it answers, nothing breaks.

use maniple_mapper::{InstanceChoice, RequirementInfo, RequirementMapping, Slice, TaskInfo, TaskMapping, VariantInfo};
use maniple_realm::layout::{Arrangement, LayoutConstraint, MAX_ALIGN, padded};
use maniple_realm::machine::{Machine, ProcessorId, ProcessorKind};
use maniple_space::{AnyRect, AnySpace};

use crate::support::error::{Error, Result};

/// Checks that slices cover the points of a launch, each once.
pub(crate) fn check_slices(slices: &[Slice], domain: &AnyRect, machine: &Machine) -> Result<()> {
    let fail = |problem: String| Err(Error::mapper("slice_launch", problem));
    let mut points = 0_u64;
    for slice in slices {
        if !domain.contains_rect(&slice.domain).unwrap_or(false) {
            return fail(format!("gave the slice {}, which is not within the launch's {domain}", slice.domain));
        }
        if slice.processor.0 as usize >= machine.processors().len() {
            return fail(format!("gave a slice to {}, which the machine does not have", slice.processor));
        }
        points = points.saturating_add(slice.domain.volume());
    }
    let parts: Vec<AnySpace> = slices.iter().map(|slice| AnySpace::from(slice.domain)).collect();
    let apart = || AnySpace::are_disjoint(domain.dim(), &parts).unwrap_or(false);
    if points != domain.volume() || (slices.len() > 1 && !apart()) {
        return fail(format!("gave slices that do not have every point of {domain} exactly once"));
    }
    Ok(())
}

/// Checks everything of a mapping but its instances, and adds what the variant asks of the layout of its data to what
/// the mapper has chosen: so every instance that is found or made for the task has that layout.
pub(crate) fn checked(mut mapping: TaskMapping, task: &TaskInfo<'_>, machine: &Machine) -> Result<TaskMapping> {
    let wrong = |problem: String| Error::mapper("map_task", format!("for `{}` {problem}", task.name));
    let fail = |problem: String| Err(wrong(problem));
    let Some(processor) = machine.processors().get(mapping.processor.0 as usize) else {
        return fail(format!("chose {}, which the machine does not have", mapping.processor));
    };
    // What is left open is chosen when there are instances.
    let variant = match (mapping.any_variant, task.variants.get(mapping.variant)) {
        (true, _) => None,
        (false, Some(variant)) => Some(variant),
        (false, None) => return fail(format!("chose variant {}, of {}", mapping.variant, task.variants.len())),
    };
    if let Some(variant) = variant.filter(|variant| variant.processor != processor.kind) {
        let (name, wants, kind) = (variant.name, variant.processor, processor.kind);
        return fail(format!("chose variant {name}, for a {wants} processor, and {}, a {kind}", processor.id));
    }
    let is_leaf = variant.map_or_else(|| takes_leaves(task, processor.kind), |variant| variant.is_leaf);
    if mapping.requirements.len() != task.requirements.len() {
        let (found, wanted) = (mapping.requirements.len(), task.requirements.len());
        return fail(format!("mapped {found} requirements, of {wanted}"));
    }
    check_group(&mapping, machine).map_err(wrong)?;
    for (number, (requirement, info)) in mapping.requirements.iter_mut().zip(task.requirements).enumerate() {
        check_requirement(requirement, info, is_leaf, processor.id, machine)
            .and_then(|()| variant.map_or(Ok(()), |variant| keep_layout(requirement, number, info, variant)))
            .map_err(|problem| wrong(format!("requirement {number}: {problem}")))?;
    }
    Ok(mapping)
}

/// Checks that processors may run a task in each other's place; the error says what is wrong.
fn check_group(mapping: &TaskMapping, machine: &Machine) -> Result<(), String> {
    let TaskMapping { processor, group, requirements, .. } = mapping;
    if group.is_empty() {
        return Ok(());
    }
    machine.group(group).map_err(|error| {
        format!("named processors that cannot run it in each other's place: {error}; name those of one node and kind")
    })?;
    if !group.contains(processor) {
        return Err(format!("chose {processor}, which is none of the group that it named; name it there too"));
    }
    for (number, requirement) in requirements.iter().enumerate() {
        let RequirementMapping::Instance(choices) = requirement else { continue };
        for memory in choices.iter().map(|choice| choice.memory) {
            if let Some(blind) = group.iter().find(|&&member| machine.affinity(member, memory).is_none()) {
                return Err(format!(
                    "named a group with {blind}, which does not see {memory}, where requirement {number} is put; leave it out or choose memories \
                     that all of the group see"
                ));
            }
        }
    }
    Ok(())
}

/// Whether a task that is mapped to any variant gets one that launches nothing: if there is one for the processor, or
/// one could be made.
pub(crate) fn takes_leaves(task: &TaskInfo<'_>, processor: ProcessorKind) -> bool {
    let mut variants = task.variants_for(processor).map(|index| &task.variants[index]).peekable();
    variants.peek().is_none() || variants.any(|variant| variant.is_leaf)
}

/// Combines what a variant asks of the layout of its data with the choices for a requirement; the error says what is
/// wrong.
fn keep_layout(
    mapping: &mut RequirementMapping,
    number: usize,
    info: &RequirementInfo,
    variant: &VariantInfo,
) -> Result<(), String> {
    let RequirementMapping::Instance(choices) = mapping else { return Ok(()) };
    let wanted = &variant.layout_of(number);
    if *wanted == LayoutConstraint::default() {
        return Ok(());
    }
    check_layout(wanted, info).map_err(|problem| format!("variant `{}` {problem}", variant.name))?;
    let keep = |choice: &mut InstanceChoice| {
        let both = choice.layout.and(wanted).filter(|both| both.pad.is_none() || both.align.is_none());
        choice.layout = both.ok_or_else(|| {
            let (name, chosen) = (variant.name, &choice.layout);
            format!(
                "variant `{name}` wants its data as {wanted}, and the choice is {chosen}; leave the layout open or choose another variant"
            )
        })?;
        Ok(())
    };
    choices.iter_mut().try_for_each(keep)
}

/// Checks that there are such layouts of a requirement's data; the error says what is wrong.
fn check_layout(layout: &LayoutConstraint, info: &RequirementInfo) -> Result<(), String> {
    if let Some(Arrangement::Blocked(points)) = layout.arrangement
        && !points.is_power_of_two()
    {
        return Err(format!("wants blocks of {points} points; choose a power of two"));
    }
    if let Some(align) = layout.align
        && (!align.is_power_of_two() || align as usize > MAX_ALIGN)
    {
        return Err(format!("wants values aligned to {align} bytes; choose a power of two up to {MAX_ALIGN}"));
    }
    if let Some(pad) = layout.pad
        && (layout.align.is_some() || padded(info.region.space().space(), pad).is_none())
    {
        return Err(format!(
            "wants room for {pad} points around {}; leave that out where points are no rectangle or at the end of all numbers, or an alignment is wanted",
            info.region
        ));
    }
    let Some(order) = layout.order else { return Ok(()) };
    let has = info.region.space().space().dim();
    if order.dim() == has {
        return Ok(());
    }
    Err(format!(
        "wants an order of {} dimensions, {order:?}, but {} has {has}; leave the order open or give one of all of its dimensions",
        order.dim(),
        info.region
    ))
}

/// Checks where a requirement is to be mapped; the error says what is wrong.
pub(crate) fn check_requirement(
    mapping: &RequirementMapping,
    info: &RequirementInfo,
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
                None => choices.iter().try_for_each(|choice| check_layout(&choice.layout, info)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use maniple_realm::machine::{Affinity, MemoryKind, ProcessorKind};
    use maniple_space::Rect;

    use super::*;

    fn one_processor() -> Machine {
        let mut machine = Machine::builder();
        let processor = machine.processor(ProcessorKind::Cpu);
        let memory = machine.memory(MemoryKind::System, 1 << 20);
        machine.sees(processor, memory, Affinity { bandwidth_mb_s: 1, latency_ns: 1 });
        machine.build().unwrap()
    }

    #[test]
    fn slices_that_overlap_are_refused_however_many_points_they_have() {
        let half = AnyRect::from(Rect::<1>::new(0, i64::MAX));
        let slice = |domain| Slice { domain, processor: ProcessorId(0) };
        let machine = one_processor();
        assert!(check_slices(&[slice(half)], &half, &machine).is_ok());
        for times in [2, 3] {
            let error = check_slices(&vec![slice(half); times], &half, &machine).unwrap_err();
            assert!(error.to_string().contains("exactly once"), "{error}");
        }
    }
}
