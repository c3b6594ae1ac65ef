//! The adversary draws every value of every answer: what it never said, no random program would be tested with.
//!
//! Answers are taken apart field by field and variant by variant, so that a new one does not compile until it is drawn.

use std::collections::BTreeSet;

use maniple_mapper::{
    Columns, Extent, InstanceChoice, InstanceId, InstanceInfo, Keep, Mail, Mapper, MappingContext, NodeSlice,
    RandomMapper, ReadyOperation, ReductionPlace, RequirementInfo, RequirementMapping, Reuse, Slice, TaskInfo,
    TaskMapping, Validity, VariantInfo,
};
use maniple_realm::layout::{Arrangement, DimensionOrder, LayoutConstraint};
use maniple_realm::machine::{Affinity, Machine, MemoryId, MemoryKind, NodeId, ProcessorId, ProcessorKind};
use maniple_region::{FieldMask, FieldType, Forest, Privilege};
use maniple_space::{AnyRect, AnySpace, IndexSpace, Rect};

use super::mail::NoMail;

/// Two instances of a region of two dimensions, on a machine with two processors and two memories.
struct Context {
    machine: Machine,
    requirement: RequirementInfo,
}

impl Context {
    fn new() -> Self {
        let mut builder = Machine::builder();
        let processors = [(); 2].map(|()| builder.processor(ProcessorKind::Cpu));
        let memories = [(); 2].map(|()| builder.memory(MemoryKind::System, 1 << 20));
        for processor in processors {
            for memory in memories {
                builder.sees(processor, memory, Affinity { bandwidth_mb_s: 1, latency_ns: 1 });
            }
        }
        let forest = Forest::new();
        let rows: AnySpace = IndexSpace::from(Rect::<2>::from_shape([4, 4])).into();
        let fields = forest.field_space(4);
        fields.allocate("charge", FieldType::of::<f32>()).unwrap();
        let region = forest.region(&forest.index_space(&rows), &fields).unwrap();
        let fields = region.fields().fields();
        let requirement = RequirementInfo { region, fields, privilege: Privilege::ReadWrite, is_shared: false };
        Self { machine: builder.build().unwrap(), requirement }
    }
}

impl MappingContext for Context {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn instances(&self, _: usize) -> Vec<InstanceInfo> {
        let instance = |id| InstanceInfo {
            id: InstanceId(id),
            memory: MemoryId(0),
            region: self.requirement.region.clone(),
            fields: self.requirement.fields.clone(),
            valid: FieldMask::new(),
            layout: LayoutConstraint::default(),
            bytes: 64,
        };
        vec![instance(7), instance(8)]
    }

    fn bytes_used(&self, _: MemoryId) -> u64 {
        0
    }

    fn mail(&self) -> &dyn Mail {
        &NoMail
    }
}

/// The decisions that were drawn: the name of each field, with its value.
#[derive(Default)]
struct Drawn(BTreeSet<(&'static str, String)>);

impl Drawn {
    fn add(&mut self, field: &'static str, value: impl std::fmt::Debug) {
        self.0.insert((field, format!("{value:?}")));
    }

    fn task(&mut self, mapping: &TaskMapping) {
        let TaskMapping {
            processor,
            pinned,
            group,
            variant,
            any_variant,
            requirements,
            priority,
            copy_priority,
            window,
            profile,
            report,
            validity,
        } = mapping;
        self.add("processor", processor);
        self.add("pinned", pinned);
        self.add("group", group);
        self.add("variant", variant);
        self.add("any variant", any_variant);
        self.add("priority", priority);
        self.add("copy priority", copy_priority);
        self.add("window", window);
        self.add("profile", profile);
        self.add("report", report);
        self.add("validity", validity);
        requirements.iter().for_each(|requirement| self.requirement(requirement));
    }

    fn requirement(&mut self, mapping: &RequirementMapping) {
        match mapping {
            RequirementMapping::Virtual => self.add("requirement", "virtual"),
            RequirementMapping::Instance(choices) => {
                self.add("requirement", "instance");
                choices.iter().for_each(|choice| self.choice(choice));
            }
        }
    }

    fn choice(&mut self, choice: &InstanceChoice) {
        let InstanceChoice { memory, reuse, extent, columns, layout, reduction, keep } = choice;
        self.add("memory", memory);
        self.add("reuse", reuse);
        self.add("extent", extent);
        self.add("columns", columns);
        self.add("reduction", reduction);
        self.add("keep", keep);
        let LayoutConstraint { arrangement, order, align, pad } = layout;
        self.add("arrangement", arrangement);
        self.add("order", order);
        self.add("align", align);
        self.add("pad", pad);
    }

    /// Fails unless each of these values was drawn, and no other.
    fn has<T: std::fmt::Debug>(&self, field: &'static str, values: &[T]) {
        let expected: BTreeSet<String> = values.iter().map(|value| format!("{value:?}")).collect();
        let found: BTreeSet<String> =
            self.0.iter().filter(|(name, _)| *name == field).map(|(_, value)| value.clone()).collect();
        assert_eq!(found, expected, "values of `{field}`");
    }

    fn has_choices(&self) {
        self.has("memory", &[MemoryId(0), MemoryId(1)]);
        self.has("reuse", &{
            let all = [Reuse::Any, Reuse::Exact, Reuse::Only(InstanceId(7)), Reuse::Only(InstanceId(8)), Reuse::Never];
            // A new one does not compile until it stands above.
            for one in all {
                match one {
                    Reuse::Any | Reuse::Exact | Reuse::Only(_) | Reuse::Never => {}
                }
            }
            all
        });
        self.has("extent", &{
            let all = [Extent::Region, Extent::Ancestor(1), Extent::Ancestor(2), Extent::Ancestor(3), Extent::Root];
            for one in all {
                match one {
                    Extent::Region | Extent::Ancestor(_) | Extent::Root => {}
                }
            }
            all
        });
        self.has("columns", &{
            let all = [Columns::Requirement, Columns::Separate, Columns::All];
            for one in all {
                match one {
                    Columns::Requirement | Columns::Separate | Columns::All => {}
                }
            }
            all
        });
        self.has("reduction", &{
            let all = [ReductionPlace::Buffer, ReductionPlace::InPlace];
            for one in all {
                match one {
                    ReductionPlace::Buffer | ReductionPlace::InPlace => {}
                }
            }
            all
        });
        self.has("keep", &{
            let all = [Keep::Rank(-1), Keep::Rank(0), Keep::Rank(1), Keep::WhileUsed];
            for one in all {
                match one {
                    Keep::Rank(_) | Keep::WhileUsed => {}
                }
            }
            all
        });
        let mut arrangements = vec![None, Some(Arrangement::StructOfArrays), Some(Arrangement::ArrayOfStructs)];
        arrangements.extend((0..6).map(|power| Some(Arrangement::Blocked(1 << power))));
        for one in arrangements.iter().flatten() {
            match one {
                Arrangement::StructOfArrays | Arrangement::ArrayOfStructs | Arrangement::Blocked(_) => {}
            }
        }
        self.has("arrangement", &arrangements);
        self.has("pad", &[None, Some(0), Some(1), Some(2)]);
        self.has("order", &[None, Some(DimensionOrder::row_major(2)), Some(DimensionOrder::column_major(2))]);
    }
}

fn variants() -> [VariantInfo; 2] {
    ["leaf", "context"].map(|name| VariantInfo {
        name,
        processor: ProcessorKind::Cpu,
        layout: LayoutConstraint::default(),
        requirement_layouts: Vec::new(),
        is_leaf: name == "leaf",
        is_inner: false,
    })
}

fn task<'a>(point: i64, requirements: &'a [RequirementInfo], variants: &'a [VariantInfo]) -> TaskInfo<'a> {
    TaskInfo {
        name: "any",
        point: point.into(),
        domain: AnyRect::from(Rect::<1>::from(0..4000)),
        is_index_launch: true,
        requirements,
        variants,
        origin: ProcessorId(0),
        depth: 1,
        tag: 0,
    }
}

/// Adversaries of both kinds.
fn mappers() -> [RandomMapper; 2] {
    [RandomMapper::new(1), RandomMapper::steady(1)]
}

#[test]
fn every_value_of_what_is_said_of_a_task_is_drawn() {
    let (context, variants) = (Context::new(), variants());
    let requirements = [context.requirement.clone()];
    for mut mapper in mappers() {
        let mut drawn = Drawn::default();
        for point in 0..4000 {
            let info = task(point, &requirements, &variants);
            drawn.task(&mapper.map_task(&info, &context));
        }
        drawn.has("processor", &[ProcessorId(0), ProcessorId(1)]);
        drawn.has("pinned", &[false, true]);
        let [first, other] = [0, 1].map(ProcessorId);
        drawn.has("group", &[vec![], vec![first], vec![other], vec![first, other]]);
        drawn.has("variant", &[0, 1]);
        drawn.has("priority", &[-2, -1, 0, 1, 2]);
        drawn.has("copy priority", &[-2, -1, 0, 1, 2]);
        drawn.has("window", &[None, Some(0), Some(1), Some(2)]);
        drawn.has("profile", &[false, true]);
        drawn.has(
            "validity",
            if mapper_is_steady(&mut mapper) { &[Validity::Once, Validity::WhileUnchanged] } else { &[Validity::Once] },
        );
        drawn.has("requirement", &["instance", "virtual"]);
        drawn.has_choices();
    }
}

/// Whether it answers the same twice.
fn mapper_is_steady(mapper: &mut RandomMapper) -> bool {
    let mut ask = || (0..8).map(|node| mapper.permit_steal("any", NodeId(node))).collect::<Vec<_>>();
    let first = ask();
    (0..8).all(|_| ask() == first)
}

#[test]
fn every_value_of_what_is_said_of_an_inline_mapping_is_drawn() {
    let context = Context::new();
    let mut drawn = Drawn::default();
    for seed in 0..2000 {
        for mut mapper in [RandomMapper::new(seed), RandomMapper::steady(seed)] {
            drawn.requirement(&mapper.map_inline(&context.requirement, ProcessorId(0), &context));
        }
    }
    drawn.has("requirement", &["instance"]);
    drawn.has_choices();
}

#[test]
fn every_value_of_the_other_answers_is_drawn() {
    let (context, variants) = (Context::new(), variants());
    let mut drawn = Drawn::default();
    let sources = context.instances(0);
    let ready = ["copy", "fill"].map(|name| ReadyOperation { name, sequence: 0, points: 1 });
    for seed in 0..200 {
        for mut mapper in [RandomMapper::new(seed), RandomMapper::steady(seed)] {
            let mut launch = task(0, &[], &variants);
            launch.domain = AnyRect::from(Rect::<1>::from(0..2));
            for Slice { domain, processor } in mapper.slice_launch(&launch, &context.machine) {
                drawn.add("points of a slice", domain.volume());
                drawn.add("processor of a slice", processor);
            }
            for NodeSlice { domain, node, recurse } in mapper.slice_across_nodes(&launch, NodeId(0), 2) {
                drawn.add("points of a node's slice", domain.volume());
                drawn.add("node of a slice", node);
                drawn.add("recurse", recurse);
            }
            drawn.add("node", mapper.select_node(&launch, NodeId(0), 2));
            drawn.add("steal", mapper.permit_steal("any", NodeId(1)));
            drawn.add("steal with data", mapper.permit_steal_with_data("any", NodeId(1), 8));
            drawn.add("sources", mapper.rank_sources(&sources, &sources[0], &context.machine));
            drawn.add("operations", mapper.select_operations_to_map(&ready));
        }
    }
    drawn.has("points of a slice", &[1, 2]);
    drawn.has("processor of a slice", &[ProcessorId(0), ProcessorId(1)]);
    drawn.has("points of a node's slice", &[1, 2]);
    drawn.has("node of a slice", &[NodeId(0), NodeId(1)]);
    drawn.has("recurse", &[false, true]);
    drawn.has("node", &[None, Some(NodeId(0)), Some(NodeId(1))]);
    drawn.has("steal", &[false, true]);
    drawn.has("steal with data", &[false, true]);
    let parts = [vec![], vec![0], vec![1], vec![0, 1], vec![1, 0]];
    drawn.has("sources", &parts);
    drawn.has("operations", &parts);
}

#[test]
fn a_layout_that_a_variant_wants_is_repeated_or_left_open_and_never_contradicted() {
    let context = Context::new();
    let (arrangement, order) = (Some(Arrangement::Blocked(4)), Some(DimensionOrder::column_major(2)));
    let layout = LayoutConstraint { arrangement, order, align: Some(32), pad: None };
    let variants = [VariantInfo { layout, ..variants()[0].clone() }];
    let requirements = [context.requirement.clone()];
    let mut drawn = Drawn::default();
    for mut mapper in mappers() {
        for point in 0..1000 {
            drawn.task(&mapper.map_task(&task(point, &requirements, &variants), &context));
        }
    }
    drawn.has("arrangement", &[None, layout.arrangement]);
    drawn.has("order", &[None, layout.order]);
    // More than enough is enough.
    drawn.has("align", &[None, Some(32), Some(256)]);
}
