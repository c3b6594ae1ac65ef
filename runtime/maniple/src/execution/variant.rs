//! The variant of a point that is mapped to any: one that can work with the instances that were chosen, or one that is
//! made for them.

use maniple_mapper::{MappingFailure, TaskInfo, TaskMapping, VariantInfo};
use maniple_realm::layout::LayoutConstraint;
use maniple_realm::machine::ProcessorKind;
use maniple_region::FieldMask;

use super::state::TaskState;
use crate::instances::placement::Chosen;
use crate::mapping::answer::takes_leaves;
use crate::mapping::point::PointError;
use crate::support::error::Error;
use crate::task::{Body, VariantRequest, WantedData};

/// Why a point is not mapped.
#[expect(clippy::large_enum_variant, reason = "it is looked at once, where it comes from")]
pub(super) enum MapError {
    Point(PointError),
    /// A variant is to be made first, when no data is locked.
    Wants(Box<VariantRequest>),
}

impl From<PointError> for MapError {
    fn from(error: PointError) -> Self {
        Self::Point(error)
    }
}

/// Why no variant was taken.
pub(super) enum Unfit {
    Wrong(Error),
    Wants(Box<VariantRequest>),
    None(MappingFailure),
}

impl From<Error> for Unfit {
    fn from(error: Error) -> Self {
        Self::Wrong(error)
    }
}

impl Unfit {
    /// The failure of which the mapper is told, so that it chooses again. An error if there is nothing to choose.
    pub(super) fn failure(self) -> std::result::Result<MappingFailure, MapError> {
        match self {
            Self::Wrong(error) => Err(PointError::Fatal(error).into()),
            Self::Wants(request) => Err(MapError::Wants(request)),
            Self::None(failure) => Ok(failure),
        }
    }
}

impl TaskState {
    /// Whether the task has none of the variants that a mapper has chosen, but could get one.
    pub(super) fn lacks_variant(&self, info: &TaskInfo<'_>, mapping: &TaskMapping) -> bool {
        self.site.definition.generator_of().is_some()
            && info.variants.get(mapping.variant).is_none_or(|variant| Some(variant.processor) != self.kind(mapping))
    }

    /// Whether the point launches nothing, as it is mapped.
    pub(super) fn is_leaf(&self, info: &TaskInfo<'_>, mapping: &TaskMapping) -> bool {
        match (mapping.any_variant, self.kind(mapping)) {
            (true, Some(kind)) => takes_leaves(info, kind),
            _ => matches!(self.site.definition.body(mapping.variant), Body::Leaf(_)),
        }
    }

    fn kind(&self, mapping: &TaskMapping) -> Option<ProcessorKind> {
        let processors = self.context.core.machine().processors();
        processors.get(mapping.processor.0 as usize).map(|processor| processor.kind)
    }

    /// The variant that is taken with the instances that were chosen.
    pub(super) fn fitting(
        &self,
        info: &TaskInfo<'_>,
        mapping: &TaskMapping,
        chosen: &Chosen,
    ) -> std::result::Result<usize, Unfit> {
        let definition = &self.site.definition;
        let kind = self.kind(mapping).ok_or_else(|| Error::mapper("map_task", "chose no processor of the machine"))?;
        let is_leaf = takes_leaves(info, kind);
        let may_be = |variant: &VariantInfo| variant.processor == kind && variant.is_leaf == is_leaf;
        let all = || definition.infos().filter(|(_, variant)| may_be(variant));
        let (numbers, fitting): (Vec<usize>, Vec<&VariantInfo>) =
            all().filter(|(_, variant)| misfit(variant, info, chosen).is_none()).unzip();
        match numbers[..] {
            [only] => return Ok(only),
            [] => {}
            _ => {
                let core = &self.context.core;
                let index = core
                    .seat(self.whom())
                    .call(&core.store, "select_fitting", |mapper| mapper.select_fitting(info, &fitting))?;
                return numbers.get(index).copied().ok_or_else(|| {
                    let problem =
                        format!("for `{}` chose variant {index} of those that fit, of {}", info.name, fitting.len());
                    Error::mapper("select_fitting", problem).into()
                });
            }
        }
        let requirements = (0..info.requirements.len()).map(|number| wanted(info, number, chosen)).collect();
        let request = VariantRequest { processor: kind, requirements };
        if definition.generator_of().is_some_and(|generator| generator.is_to_be_asked(&request)) {
            return Err(Unfit::Wants(Box::new(request)));
        }
        let requirement = all().find_map(|(_, variant)| misfit(variant, info, chosen)).unwrap_or(0);
        let layout = request.requirements.get(requirement).map_or_else(LayoutConstraint::default, |data| data.layout);
        Err(Unfit::None(MappingFailure::NoVariant { requirement, layout }))
    }

    /// The error of a point for which there is no variant, though its mapper was asked as often as it is.
    pub(super) fn no_variant(&self, mapping: &TaskMapping, failure: &MappingFailure) -> Error {
        let problem = format!(
            "for `{}` chose any variant on {}, but {failure}; choose another layout, or add a variant that asks for less",
            self.name(),
            mapping.processor
        );
        Error::mapper("map_task", problem)
    }
}

/// The first requirement whose instances a variant cannot work with.
fn misfit(variant: &VariantInfo, info: &TaskInfo<'_>, chosen: &Chosen) -> Option<usize> {
    let Chosen::Instances(selections) = chosen else { return None };
    let misfits = selections.iter().filter(|selection| {
        let number = selection.place.0;
        let (layout, region) = (variant.layout_of(number), &info.requirements[number].region);
        !selection.instances.iter().all(|(_, instance)| instance.satisfies(&layout, region))
    });
    misfits.map(|selection| selection.place.0).min()
}

/// The data that a variant has to work with.
fn wanted(info: &TaskInfo<'_>, number: usize, chosen: &Chosen) -> WantedData {
    let requirement = &info.requirements[number];
    let (region, fields) = (&requirement.region, &requirement.fields);
    let types = fields.iter().filter_map(|field| region.fields().type_of(field).ok()).collect();
    let dimensions = region.space().space().dim();
    let mut layout: Option<LayoutConstraint> = None;
    if let Chosen::Instances(selections) = chosen {
        let of_it = selections.iter().filter(|selection| selection.place.0 == number);
        for (_, instance) in of_it.flat_map(|selection| &selection.instances) {
            let one = instance.info(FieldMask::new()).layout;
            layout = Some(layout.map_or(one, |known| common(known, one)));
        }
    }
    WantedData { layout: layout.unwrap_or_default(), fields: types, dimensions, privilege: requirement.privilege }
}

/// The layout constraint that two layouts have in common.
fn common(one: LayoutConstraint, other: LayoutConstraint) -> LayoutConstraint {
    LayoutConstraint {
        arrangement: one.arrangement.filter(|_| one.arrangement == other.arrangement),
        order: one.order.filter(|_| one.order == other.order),
        align: one.align.min(other.align),
        pad: one.pad.min(other.pad),
    }
}
