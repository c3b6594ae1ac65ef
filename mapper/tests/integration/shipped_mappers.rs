//! Decisions of the shipped mappers, without a runtime.

use std::sync::{Arc, Mutex};

use maniple_mapper::{
    Columns, DefaultMapper, Extent, InstanceChoice, InstanceInfo, LoggingMapper, Mail, Mapper, MappingContext,
    RandomMapper, ReadyOperation, ReductionPlace, RequirementInfo, RequirementMapping, Reuse, Sharding, ShardingMapper,
    TaskInfo, TaskMapping, Validity, VariantInfo,
};
use maniple_realm::layout::LayoutConstraint;
use maniple_realm::machine::{Affinity, Machine, MemoryId, MemoryKind, NodeId, ProcessorId, ProcessorKind};
use maniple_region::operators::Sum;
use maniple_region::{FieldMask, FieldType, Forest, LogicalRegion, OperatorId, Privilege};
use maniple_space::{AnyRect, AnySpace, IndexSpace, Rect};

use super::mail::NoMail;

struct Context {
    machine: Machine,
}

impl MappingContext for Context {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn instances(&self, _: usize) -> Vec<InstanceInfo> {
        Vec::new()
    }

    fn bytes_used(&self, _: MemoryId) -> u64 {
        0
    }

    fn mail(&self) -> &dyn Mail {
        &NoMail
    }
}

/// Three processors, a fast memory and a slow one.
fn context() -> Context {
    let mut builder = Machine::builder();
    let processors = [(); 3].map(|()| builder.processor(ProcessorKind::Cpu));
    let slow = builder.memory(MemoryKind::System, 1 << 30);
    let fast = builder.memory(MemoryKind::Socket, 1 << 20);
    for processor in processors {
        builder.sees(processor, slow, Affinity { bandwidth_mb_s: 1, latency_ns: 9 });
        builder.sees(processor, fast, Affinity { bandwidth_mb_s: 9, latency_ns: 1 });
    }
    Context { machine: builder.build().unwrap() }
}

fn region() -> LogicalRegion {
    let forest = Forest::new();
    let rows: AnySpace = IndexSpace::from(Rect::<1>::from(0..100)).into();
    let fields = forest.field_space(4);
    fields.allocate("charge", FieldType::of::<f32>()).unwrap();
    forest.region(&forest.index_space(&rows), &fields).unwrap()
}

fn requirement(privilege: Privilege, is_shared: bool) -> RequirementInfo {
    let region = region();
    let fields: FieldMask = region.fields().fields();
    RequirementInfo { region, fields, privilege, is_shared }
}

fn variants() -> Vec<VariantInfo> {
    let leaf = |name, processor| VariantInfo {
        name,
        processor,
        layout: LayoutConstraint::default(),
        requirement_layouts: Vec::new(),
        is_leaf: true,
        is_inner: false,
    };
    vec![leaf("on a gpu", ProcessorKind::Gpu), leaf("on a cpu", ProcessorKind::Cpu)]
}

fn task<'a>(point: i64, points: i64, requirements: &'a [RequirementInfo], variants: &'a [VariantInfo]) -> TaskInfo<'a> {
    TaskInfo {
        name: "distribute",
        point: point.into(),
        domain: AnyRect::from(Rect::<1>::from(0..points)),
        is_index_launch: points > 1,
        requirements,
        variants,
        origin: ProcessorId(2),
        depth: 1,
        tag: 0,
    }
}

#[test]
fn points_are_dealt_out_in_blocks_and_single_tasks_stay() {
    let (context, variants) = (context(), variants());
    let mut mapper = DefaultMapper::new();
    let mut processor = |point, points| mapper.map_task(&task(point, points, &[], &variants), &context).processor.0;
    assert_eq!((0..7).map(|point| processor(point, 7)).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 2, 2]);
    assert_eq!(processor(0, 1), 2);
}

#[test]
fn the_variant_is_one_for_the_processor() {
    let (context, variants) = (context(), variants());
    let mapping = DefaultMapper::new().map_task(&task(0, 4, &[], &variants), &context);
    assert_eq!(variants[mapping.variant].name, "on a cpu");
}

#[test]
fn data_goes_to_the_best_memory_as_a_whole_first_and_in_pieces_next() {
    let (context, variants) = (context(), variants());
    let requirements = [requirement(Privilege::Read, false)];
    let mapping = DefaultMapper::new().map_task(&task(0, 4, &requirements, &variants), &context);
    let RequirementMapping::Instance(choices) = &mapping.requirements[0] else { panic!("a leaf has instances") };
    let places: Vec<_> = choices.iter().map(|choice| (choice.memory.0, choice.extent)).collect();
    assert_eq!(places, [(1, Extent::Root), (0, Extent::Root), (1, Extent::Region), (0, Extent::Region)]);
}

#[test]
fn reductions_go_in_place_only_where_nobody_meets() {
    let (context, variants) = (context(), variants());
    let reduces = Privilege::Reduce(OperatorId::of::<Sum>());
    let requirements = [requirement(reduces, false), requirement(reduces, true)];
    let place = |mapper: &mut DefaultMapper, requirement: usize| {
        let mapping = mapper.map_task(&task(0, 4, &requirements, &variants), &context);
        match &mapping.requirements[requirement] {
            RequirementMapping::Instance(choices) => choices[0].reduction,
            RequirementMapping::Virtual => panic!("a leaf has instances"),
        }
    };
    let mut mapper = DefaultMapper::new();
    assert_eq!((place(&mut mapper, 0), place(&mut mapper, 1)), (ReductionPlace::InPlace, ReductionPlace::Buffer));
    assert_eq!(place(&mut DefaultMapper::piecewise(), 0), ReductionPlace::Buffer);
}

#[test]
fn slices_have_every_point_once() {
    let variants = variants();
    for mapper in [&mut DefaultMapper::new() as &mut dyn Mapper, &mut RandomMapper::new(3)] {
        for points in [1, 2, 255, 256, 257, 10_000] {
            let slices = mapper.slice_launch(&task(0, points, &[], &variants), &context().machine);
            let mut found: Vec<i64> =
                slices.iter().flat_map(|slice| slice.domain.points()).map(|point| point.coords()[0]).collect();
            found.sort_unstable();
            assert_eq!(found, (0..points).collect::<Vec<_>>());
        }
    }
}

#[test]
fn slices_across_nodes_have_every_point_once_and_by_default_all_stays() {
    let variants = variants();
    for (mapper, all_stays) in
        [(&mut DefaultMapper::new() as &mut dyn Mapper, true), (&mut RandomMapper::new(3), false)]
    {
        for points in [2, 3, 1000] {
            let slices = mapper.slice_across_nodes(&task(0, points, &[], &variants), NodeId(2), 5);
            let mut found: Vec<i64> =
                slices.iter().flat_map(|slice| slice.domain.points()).map(|point| point.coords()[0]).collect();
            found.sort_unstable();
            assert_eq!(found, (0..points).collect::<Vec<_>>());
            assert!(slices.iter().all(|slice| if all_stays { slice.node.0 == 2 } else { slice.node.0 < 5 }));
        }
    }
}

#[test]
fn adversaries_who_answer_the_same_each_time_do_not_send_points_to_and_fro_for_ever() {
    let variants = variants();
    for seed in 0..200 {
        let mut mappers = [RandomMapper::steady(seed), RandomMapper::steady(seed + 1000)];
        let mut launch = task(0, 8, &[], &variants);
        let (mut here, mut hops) = (0, 0);
        // What goes to the other one and is to be sliced there.
        while let Some(slice) = {
            let slices = mappers[here].slice_across_nodes(&launch, NodeId(here as u16), 2);
            slices.into_iter().find(|slice| usize::from(slice.node.0) != here && slice.recurse)
        } {
            launch = TaskInfo { domain: slice.domain, point: slice.domain.lo(), ..launch };
            (here, hops) = (1 - here, hops + 1);
            assert!(hops <= 8, "seed {seed}: {} goes to and fro", slice.domain);
        }
    }
}

#[test]
fn an_adversary_with_the_same_seed_decides_alike() {
    let (context, variants) = (context(), variants());
    let requirements = [requirement(Privilege::ReadWrite, false)];
    let decisions = |seed| {
        let mut mapper = RandomMapper::new(seed);
        (0..20).map(|point| mapper.map_task(&task(point, 20, &requirements, &variants), &context)).collect::<Vec<_>>()
    };
    assert_eq!(decisions(7), decisions(7));
    assert_ne!(decisions(7), decisions(8));
}

#[test]
fn a_steady_adversary_decides_by_the_question_alone() {
    let (context, variants) = (context(), variants());
    let requirements = [requirement(Privilege::ReadWrite, false)];
    let decide =
        |mapper: &mut RandomMapper, point| mapper.map_task(&task(point, 20, &requirements, &variants), &context);
    let mut mapper = RandomMapper::steady(7);
    let decisions: Vec<_> = (0..20).map(|point| decide(&mut mapper, point)).collect();
    let backwards: Vec<_> = (0..20).rev().map(|point| decide(&mut mapper, point)).collect();
    assert!(decisions.iter().eq(backwards.iter().rev()));
    assert!(decisions.windows(2).any(|pair| pair[0] != pair[1]), "different questions have different answers");
    let others: Vec<_> = (0..20).map(|point| decide(&mut RandomMapper::steady(8), point)).collect();
    assert_ne!(decisions, others);
}

#[test]
fn a_logged_decision_names_task_point_processor_data_and_place() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    let mut mapper =
        LoggingMapper::with_sink(DefaultMapper::new(), move |line| sink.lock().unwrap().push(line.to_owned()));
    let (context, variants) = (context(), variants());
    let mut requirements = [requirement(Privilege::Read, false), requirement(Privilege::ReadWrite, false)];
    requirements[1].region = requirements[0].region.clone();
    mapper.map_task(&task(3, 4, &requirements, &variants), &context);
    let region = &requirements[0].region;
    let place = "memory 1, the whole | memory 0, the whole | memory 1 | memory 0";
    let expected = format!(
        "map distribute(3) on processor 2, variant on a cpu: reads charge and writes charge of {region} -> {place}"
    );
    assert_eq!(*lines.lock().unwrap(), [expected]);
}

#[test]
fn a_mapping_is_a_short_line() {
    let mut small = InstanceChoice::in_memory(MemoryId(0));
    let large = small.clone().whole();
    let elsewhere = InstanceChoice { columns: Columns::All, ..InstanceChoice::in_memory(MemoryId(2)) };
    assert_eq!((small.to_string(), large.to_string()), ("memory 0".to_owned(), "memory 0, the whole".to_owned()));
    small.reuse = Reuse::Exact;
    let choices = vec![large.clone(), small, InstanceChoice { extent: Extent::Region, ..large }, elsewhere];
    let mapping = TaskMapping {
        processor: ProcessorId(1),
        pinned: false,
        group: vec![ProcessorId(0), ProcessorId(1)],
        variant: 0,
        any_variant: false,
        requirements: vec![RequirementMapping::Instance(choices), RequirementMapping::Virtual],
        priority: 2,
        copy_priority: 0,
        profile: false,
        report: false,
        window: Some(3),
        validity: Validity::Once,
    };
    let expected = "processor 1, variant 0, or the first free of 0, 1, priority 2, at most 3 in flight: \
                    memory 0, the whole | the part, made for it | the part | memory 2, all fields; virtual";
    assert_eq!(mapping.to_string(), expected);
}

#[test]
fn a_selection_is_logged_only_if_it_puts_something_off() {
    struct Last;
    impl Mapper for Last {
        fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
            vec![ready.len() - 1]
        }
    }
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    let mut mapper = LoggingMapper::with_sink(Last, move |line| sink.lock().unwrap().push(line.to_owned()));
    let ready = ["copy", "fill"].map(|name| ReadyOperation { name, sequence: 0, points: 1 });
    mapper.select_operations_to_map(&ready[..1]);
    mapper.select_operations_to_map(&ready);
    assert_eq!(*lines.lock().unwrap(), ["map 1 of 2 ready: fill"]);
}

#[test]
fn a_sharding_mapper_deals_launches_as_its_function_says_and_leaves_the_rest_to_another() {
    let (context, variants, requirements) = (context(), variants(), [requirement(Privilege::Read, false)]);
    let mut sharded = ShardingMapper::new(DefaultMapper::piecewise(), |launch, nodes| match launch.name {
        "distribute" => Sharding::OnOne(nodes - 1),
        _ => Sharding::Blocked,
    });
    let task = task(1, 3, &requirements, &variants);
    assert!(matches!(sharded.shard_launch(&task, 4), Sharding::OnOne(3)));
    assert_eq!(sharded.name(), "piecewise");
    assert_eq!(sharded.map_task(&task, &context), DefaultMapper::piecewise().map_task(&task, &context));
}

/// Keeps its tasks, and leaves all else to another mapper.
struct Keeps(DefaultMapper);

impl Mapper for Keeps {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn permit_steal(&mut self, _: &str, _: NodeId) -> bool {
        false
    }
}

#[test]
fn a_mapper_that_keeps_its_tasks_keeps_those_with_data_whatever_its_inner_mapper_permits() {
    assert!(DefaultMapper::new().permit_steal_with_data("any", NodeId(1), 8));
    assert!(!Keeps(DefaultMapper::new()).permit_steal_with_data("any", NodeId(1), 8));
}
