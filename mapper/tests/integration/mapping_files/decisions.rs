//! Decisions of a mapper that obeys a mapping file.

use fastrand::Rng;
use maniple_mapper::{
    DefaultMapper, Extent, InstanceChoice, InstanceInfo, Mail, Mapper, MappingContext, MappingRules, ReadyOperation,
    ReductionPlace, RequirementInfo, RequirementMapping, Reuse, RuleMapper, RulesInUse, Sharding, TaskInfo,
    TaskMapping, Tunable, Validity, VariantInfo,
};
use maniple_realm::layout::{Arrangement, DimensionOrder, LayoutConstraint};
use maniple_realm::machine::{Affinity, Machine, MemoryId, MemoryKind, NodeId, ProcessorId, ProcessorKind};
use maniple_region::{FieldMask, FieldType, Forest, Privilege};
use maniple_space::{AnyPoint, AnyRect, AnySpace, IndexSpace, Rect};

use super::super::mail::NoMail;
use super::NAMES;

/// Two CPUs and a GPU; system, zero-copy and framebuffer memory, of which the CPUs do not see the last.
fn machine() -> Machine {
    let mut builder = Machine::builder();
    let cpus = [(); 2].map(|()| builder.processor(ProcessorKind::Cpu));
    let gpu = builder.processor(ProcessorKind::Gpu);
    let [system, shared, own] =
        [MemoryKind::System, MemoryKind::ZeroCopy, MemoryKind::Framebuffer].map(|kind| builder.memory(kind, 1 << 20));
    let affinity = |bandwidth_mb_s| Affinity { bandwidth_mb_s, latency_ns: 1 };
    for cpu in cpus {
        builder.sees(cpu, system, affinity(9)).sees(cpu, shared, affinity(5));
    }
    builder.sees(gpu, own, affinity(9)).sees(gpu, shared, affinity(5));
    builder.build().unwrap()
}

struct Context(Machine);

impl MappingContext for Context {
    fn machine(&self) -> &Machine {
        &self.0
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

/// Reads one field of the piece of a region with 16 rows, and writes another.
fn requirements() -> Vec<RequirementInfo> {
    let forest = Forest::new();
    let rows: AnySpace = IndexSpace::from(Rect::<1>::from(0..16)).into();
    let fields = forest.field_space(4);
    let charge = fields.allocate("charge", FieldType::of::<f32>()).unwrap();
    let voltage = fields.allocate("voltage", FieldType::of::<f64>()).unwrap();
    let region = forest.region(&forest.index_space(&rows), &fields).unwrap();
    region.tree().set_name("grid");
    let of = |field, privilege| RequirementInfo {
        region: region.clone(),
        fields: FieldMask::of(field),
        privilege,
        is_shared: false,
    };
    vec![of(charge, Privilege::Read), of(voltage, Privilege::ReadWrite)]
}

fn variants() -> Vec<VariantInfo> {
    let variant = |name, processor, is_leaf| VariantInfo {
        name,
        processor,
        layout: LayoutConstraint::default(),
        requirement_layouts: Vec::new(),
        is_leaf,
        is_inner: !is_leaf,
    };
    let mut fast = variant("fast", ProcessorKind::Cpu, true);
    fast.layout.arrangement = Some(Arrangement::StructOfArrays);
    vec![
        variant("plain", ProcessorKind::Cpu, true),
        fast,
        variant("device", ProcessorKind::Gpu, true),
        variant("inner", ProcessorKind::Cpu, false),
    ]
}

/// A mapper that obeys a mapping file, with the requirements and the variants of the task that it is asked about.
struct Asked {
    mapper: RuleMapper<DefaultMapper>,
    context: Context,
    requirements: Vec<RequirementInfo>,
    variants: Vec<VariantInfo>,
}

impl Asked {
    #[track_caller]
    fn with(text: &str) -> Self {
        Self::on(text, NodeId(0))
    }

    fn on(text: &str, node: NodeId) -> Self {
        let rules = RulesInUse::new(MappingRules::parse(text).unwrap());
        let mapper = RuleMapper::new(DefaultMapper::new(), &rules, node);
        Self { mapper, context: Context(machine()), requirements: requirements(), variants: variants() }
    }

    fn info<'a>(
        &self,
        (point, points): (i64, i64),
        requirements: &'a [RequirementInfo],
        variants: &'a [VariantInfo],
    ) -> TaskInfo<'a> {
        TaskInfo {
            name: "update",
            point: point.into(),
            domain: AnyRect::from(Rect::<1>::from(0..points)),
            is_index_launch: points > 1,
            requirements,
            variants,
            origin: ProcessorId(1),
            depth: 1,
            tag: 5,
        }
    }

    fn ask<T>(
        &mut self,
        at: (i64, i64),
        ask: impl FnOnce(&mut RuleMapper<DefaultMapper>, &TaskInfo<'_>, &Context) -> T,
    ) -> T {
        let (requirements, variants) = (self.requirements.clone(), self.variants.clone());
        let info = self.info(at, &requirements, &variants);
        ask(&mut self.mapper, &info, &self.context)
    }

    fn map(&mut self, at: (i64, i64)) -> TaskMapping {
        self.ask(at, |mapper, info, context| mapper.map_task(info, context))
    }

    fn processors(&mut self, points: i64) -> Vec<u32> {
        (0..points).map(|point| self.map((point, points)).processor.0).collect()
    }

    fn choices(&mut self, requirement: usize) -> Vec<InstanceChoice> {
        match self.map((0, 1)).requirements.swap_remove(requirement) {
            RequirementMapping::Instance(choices) => choices,
            RequirementMapping::Virtual => panic!("virtual"),
        }
    }
}

#[test]
fn a_file_that_says_nothing_changes_nothing() {
    let mut asked = Asked::with("");
    for at in [(0, 1), (0, 6), (3, 6), (5, 6)] {
        let expected = asked.ask(at, |_, info, context| DefaultMapper::new().map_task(info, context));
        assert_eq!(asked.map(at), expected);
    }
}

#[test]
fn points_are_dealt_to_the_processors_that_are_named() {
    assert_eq!(Asked::with("[[task]]\nprocessors = [1]").processors(4), [1, 1, 1, 1]);
    assert_eq!(Asked::with("[[task]]\nprocessors = 'cpu'").processors(4), [0, 0, 1, 1]);
    assert_eq!(Asked::with("[[task]]\nprocessors = 'cpu'\ndeal = 'cycles'").processors(4), [0, 1, 0, 1]);
    assert_eq!(Asked::with("[[task]]\ndeal = 'cycles'").processors(4), [0, 1, 2, 0]);
    assert_eq!(Asked::with("[[task]]\nprocessors = 'gpu'").processors(2), [2, 2]);
    // Of processors that there are not, none; then the mapper beneath decides.
    assert_eq!(Asked::with("[[task]]\nprocessors = [7]").processors(3), [0, 1, 2]);
    // A single task stays where its parent is, if it may.
    assert_eq!(Asked::with("[[task]]\nprocessors = 'cpu'").processors(1), [1]);
    assert_eq!(Asked::with("[[task]]\nprocessors = 0").processors(1), [0]);
}

#[test]
fn the_first_processor_that_is_free_runs_what_a_rule_leaves_to_several() {
    let group = |text: &str, at| {
        let mapping = Asked::with(text).map(at);
        let group: Vec<u32> = mapping.group.iter().map(|processor| processor.0).collect();
        (mapping.processor.0, group)
    };
    let rule = "[[task]]\ndeal = 'first-free'\n";
    assert_eq!(group(&format!("{rule}processors = [1, 0]"), (3, 4)), (1, vec![0, 1]));
    assert_eq!(group(&format!("{rule}processors = 'cpu'"), (0, 1)), (1, vec![0, 1]));
    assert_eq!(group(&format!("{rule}processors = 0"), (3, 4)), (0, vec![0]));
    // Of all, those of the kind that the task is on.
    assert_eq!(group(rule, (0, 4)), (0, vec![0, 1]));
    assert_eq!(group(rule, (3, 4)).1, [2]);
    // Of processors that there are not, none.
    assert_eq!(group(&format!("{rule}processors = [0, 7]"), (0, 1)).1, [0]);
    assert!(group(&format!("{rule}processors = 7"), (0, 4)).1.is_empty());
    // Where the data is seen by one of them alone.
    let data = "[[data]]\nmemory = 'framebuffer'\n";
    assert_eq!(group(&format!("{rule}processors = [0, 1, 2]\n{data}"), (2, 3)).1, [2]);
}

#[test]
fn variants_bring_their_processors() {
    let mut asked = Asked::with("[[task]]\nvariant = 'device'");
    let mapping = asked.map((0, 4));
    assert_eq!((mapping.processor, mapping.variant), (ProcessorId(2), 2));
    let mut asked = Asked::with("[[task]]\nvariant = 'fast'\nprocessors = 0");
    let mapping = asked.map((3, 4));
    assert_eq!((mapping.processor, mapping.variant), (ProcessorId(0), 1));
    // There is no such implementation for that processor.
    let mut asked = Asked::with("[[task]]\nvariant = 'device'\nprocessors = 0");
    assert_eq!(asked.map((0, 1)).processor, ProcessorId(1));
}

#[test]
fn data_follows_the_task_to_memories_that_its_processor_sees() {
    let mut asked = Asked::with("[[task]]\nprocessors = 'gpu'");
    let mapping = asked.map((0, 4));
    let RequirementMapping::Instance(choices) = &mapping.requirements[0] else { panic!("a leaf has instances") };
    let visible = |choice: &InstanceChoice| asked.context.0.affinity(mapping.processor, choice.memory).is_some();
    assert!(!choices.is_empty() && choices.iter().all(visible), "{choices:?}");
}

#[test]
fn the_last_rule_that_decides_something_is_obeyed_in_that() {
    let text = "
        [[task]]
        priority = 1
        window = 7
        pinned = true
        [[task]]
        name = 'upd*'
        priority = 2
        [[task]]
        name = 'other'
        priority = 3
        [[task]]
        tag = 5
        validity = 'once'
        [[task]]
        tag = 4
        priority = 4
        [[task]]
        node = 1
        priority = 5";
    let mapping = Asked::with(text).map((0, 1));
    assert_eq!((mapping.priority, mapping.pinned, mapping.validity), (2, true, Validity::Once));
    assert_eq!(mapping.window, Some(7));
    assert_eq!(Asked::on(text, NodeId(1)).map((0, 1)).priority, 5);
}

#[test]
fn rules_about_data_ask_for_names_numbers_privileges_and_sizes() {
    let obeyed = |condition: &str| {
        let text = format!("[[data]]\n{condition}\nreuse = 'exact'");
        let mut asked = Asked::with(&text);
        [0, 1].map(|requirement| asked.choices(requirement)[0].reuse == Reuse::Exact)
    };
    assert_eq!(obeyed(""), [true, true]);
    assert_eq!(obeyed("field = 'voltage'"), [false, true]);
    assert_eq!(obeyed("field = ['charge', 'x']"), [true, false]);
    assert_eq!(obeyed("region = 'grid'"), [true, true]);
    assert_eq!(obeyed("region = 'g*s'"), [false, false]);
    assert_eq!(obeyed("partition = '*'"), [false, false]);
    assert_eq!(obeyed("requirement = 1"), [false, true]);
    assert_eq!(obeyed("privilege = 'reads'"), [true, false]);
    assert_eq!(obeyed("min_bytes = 65"), [false, true]);
    assert_eq!(obeyed("max_bytes = 64"), [true, false]);
    assert_eq!(obeyed("processor = 'gpu'"), [false, false]);
    assert_eq!(obeyed("task = 'update'"), [true, true]);
    assert_eq!(obeyed("node = 1"), [false, false]);
}

#[test]
fn data_is_put_where_it_is_wanted_first_and_where_it_would_be_else_if_there_is_no_room() {
    let plain = Asked::with("").choices(0);
    let mut asked = Asked::with(
        "[[data]]\nmemory = ['framebuffer', 'zero-copy']\nextent = 'region'\narrangement = 'array-of-structs'\norder = 'column-major'\nalign = 64\nreduction = 'in-place'",
    );
    let choices = asked.choices(0);
    let first = &choices[0];
    assert_eq!((first.memory, first.extent), (MemoryId(1), Extent::Region));
    let layout = LayoutConstraint {
        arrangement: Some(Arrangement::ArrayOfStructs),
        order: Some(DimensionOrder::column_major(1)),
        align: Some(64),
        pad: None,
    };
    assert_eq!((first.layout, first.reduction), (layout, ReductionPlace::InPlace));
    assert!(choices.ends_with(&plain), "{choices:#?}");
}

#[test]
fn what_a_variant_wants_of_a_layout_is_left_to_it() {
    let mut asked = Asked::with("[[task]]\nvariant = 'fast'\n[[data]]\narrangement = 16\norder = [1, 0]");
    assert!(asked.choices(0).iter().all(|choice| choice.layout == LayoutConstraint::default()));
}

#[test]
fn only_tasks_that_launch_are_mapped_virtually() {
    let all = "[[task]]\nvirtual = true";
    assert!(matches!(Asked::with(all).map((0, 1)).requirements[0], RequirementMapping::Instance(_)));
    let inner = format!("{all}\nvariant = 'inner'");
    assert_eq!(
        Asked::with(&inner).map((0, 1)).requirements,
        [RequirementMapping::Virtual, RequirementMapping::Virtual]
    );
}

#[test]
fn launches_are_cut_and_dealt_as_rules_say() {
    let mut asked = Asked::with("[[task]]\nslice = 3\nspread = [1, 9]\nmigrate = 'cycles'\nsharding = [2, 0]");
    let volumes: Vec<u64> = asked
        .ask((0, 8), |mapper, info, context| mapper.slice_launch(info, context.machine()))
        .iter()
        .map(|slice| slice.domain.volume())
        .collect();
    assert_eq!((volumes.iter().sum::<u64>(), volumes.iter().max()), (8, Some(&3)));
    let slices = asked.ask((0, 8), |mapper, info, _| mapper.slice_across_nodes(info, NodeId(0), 4));
    assert_eq!(slices.iter().map(|slice| (slice.node.0, slice.domain.volume())).collect::<Vec<_>>(), [(1, 8)]);
    let nodes: Vec<_> =
        (0..4).map(|point| asked.ask((point, 8), |mapper, info, _| mapper.select_node(info, NodeId(0), 3))).collect();
    assert_eq!(nodes, [0, 1, 2, 0].map(|node| Some(NodeId(node))));
    let Sharding::ByPoint(sharding) = asked.ask((0, 8), |mapper, info, _| mapper.shard_launch(info, 3)) else {
        panic!("two nodes")
    };
    let domain = AnyRect::from(Rect::<1>::from(0..8));
    let nodes: Vec<usize> = (0..8).map(|point| sharding.node_of(AnyPoint::from(point), &domain, 3)).collect();
    assert_eq!(nodes, [2, 2, 2, 2, 0, 0, 0, 0]);
    // Of those nodes the job has one only.
    assert!(matches!(asked.ask((0, 8), |mapper, info, _| mapper.shard_launch(info, 2)), Sharding::OnOne(0)));
}

#[test]
fn no_slice_has_more_points_than_a_rule_says_whatever_the_shape() {
    let mut random = Rng::with_seed(3);
    for _ in 0..300 {
        let most = random.u64(1..=9);
        let shape = std::array::from_fn(|_| random.i64(0..6));
        let domain = AnyRect::from(Rect::<3>::from_shape(shape));
        let mut asked = Asked::with(&format!("[[task]]\nslice = {most}"));
        let slices = asked
            .ask((0, 8), |mapper, info, context| mapper.slice_launch(&TaskInfo { domain, ..*info }, context.machine()));
        let mut points: Vec<AnyPoint> = slices.iter().flat_map(|slice| slice.domain.points()).collect();
        points.sort_unstable();
        assert_eq!(points, domain.points().collect::<Vec<_>>(), "{domain}");
        assert!(slices.iter().all(|slice| slice.domain.volume() <= most), "at most {most} of {domain}: {slices:?}");
    }
}

#[test]
fn what_is_said_of_thieves_copies_and_tunables_is_obeyed() {
    let text = "
        [[task]]
        name = 'mine'
        steal = false
        [[task]]
        name = 'small'
        steal = '1 KiB'
        [copies]
        from = 'zero-copy'
        [operations]
        at_once = 2
        [tunables]
        pieces = 17";
    let mut mapper = Asked::with(text).mapper;
    assert!(
        !mapper.permit_steal("mine", NodeId(1))
            && mapper.permit_steal("small", NodeId(1))
            && mapper.permit_steal("other", NodeId(1))
    );
    assert!(!mapper.permit_steal_with_data("mine", NodeId(1), 0));
    assert!(
        mapper.permit_steal_with_data("small", NodeId(1), 1024)
            && !mapper.permit_steal_with_data("small", NodeId(1), 1025)
    );
    let mut tunable = |name| mapper.tunable(&Tunable::named(name), &machine());
    assert_eq!((tunable("pieces"), tunable("processors")), (Some(17), Some(2)));
    let ready: Vec<_> = (0..4).map(|sequence| ReadyOperation { name: "a", sequence, points: 1 }).collect();
    assert_eq!(mapper.select_operations_to_map(&ready), [0, 1]);
    let region = requirements().remove(0).region;
    let source = |memory: u32| InstanceInfo {
        id: maniple_mapper::InstanceId(memory.into()),
        memory: MemoryId(memory),
        region: region.clone(),
        fields: FieldMask::new(),
        valid: FieldMask::new(),
        layout: LayoutConstraint::default(),
        bytes: 0,
    };
    assert_eq!(mapper.rank_sources(&[source(0), source(2), source(1)], &source(0), &machine())[0], 2);
}

#[test]
fn rules_that_meet_nothing_are_told_with_the_names_that_were_meant() {
    let text = "
        [[task]]
        name = 'updaet'
        priority = 1
        [[task]]
        name = 'update'
        priority = 1
        [[task]]
        name = 'elsewhere'
        node = 1
        priority = 1
        [[data]]
        region = 'gird'
        field = 'volt*'
        extent = 'root'";
    let rules = RulesInUse::new(MappingRules::parse(text).unwrap());
    assert!(rules.unused().is_empty(), "nothing was mapped yet");
    let mapper = RuleMapper::new(DefaultMapper::new(), &rules, NodeId(0));
    let mut asked = Asked { mapper, context: Context(machine()), requirements: requirements(), variants: variants() };
    asked.map((0, 1));
    drop(asked);
    assert_eq!(
        rules.unused(),
        [
            "[[task]] 1 has met no task; there was no task `updaet`: did you mean `update`?",
            "[[data]] 1 has met no data; there was no region `gird`: did you mean `grid`?"
        ]
    );
}

#[test]
fn what_a_machine_or_a_program_has_not_is_told() {
    let text = "
        [[task]]
        name = ['update', 'sun', 'made_later']
        processors = [0, 3]
        [[task]]
        node = 1
        processors = [9]
        [[data]]
        node = 1
        memory = 'framebuffer'
        [[data]]
        task = 'inline mapping'
        memory = ['socket', 7]";
    let rules = MappingRules::parse(text).unwrap();
    assert_eq!(
        rules.lacks(&machine(), NodeId(0)),
        [
            "[[task]] 1: the machine has no processor 3; it has 3",
            "[[data]] 2: the machine has no socket memory",
            "[[data]] 2: the machine has no memory 7; it has 3"
        ]
    );
    assert_eq!(
        rules.unknown_tasks(&["update", "sum"]),
        [
            "[[task]] 1: the program declares no task `sun`; did you mean `sum`?",
            "[[task]] 1: the program declares no task `made_later`"
        ]
    );
}

#[test]
fn whatever_rules_say_an_answer_is_one_that_the_runtime_accepts() {
    let machine = machine();
    for seed in 0..2000 {
        let rules = MappingRules::random(seed, &NAMES);
        let text = rules.to_string();
        let mut asked = Asked::with(&text);
        let mapping = asked.map(((seed % 5) as i64, 5));
        let variant = &asked.variants[mapping.variant];
        assert_eq!(variant.processor, machine.processor(mapping.processor).kind, "{text}");
        assert!(mapping.group.is_empty() || mapping.group.contains(&mapping.processor), "{text}");
        assert!(mapping.group.is_empty() || machine.group(&mapping.group).is_ok(), "{text}");
        for requirement in &mapping.requirements {
            match requirement {
                RequirementMapping::Virtual => assert!(!variant.is_leaf, "{text}"),
                RequirementMapping::Instance(choices) => {
                    assert!(!choices.is_empty(), "{text}");
                    for choice in choices {
                        let mut run_by = mapping.group.iter().chain([&mapping.processor]);
                        assert!(run_by.all(|&by| machine.affinity(by, choice.memory).is_some()), "{text}");
                        assert!(choice.layout.and(&variant.layout).is_some(), "{text}");
                        assert!(choice.layout.align.is_none() || choice.layout.pad.is_none(), "{text}");
                        assert!(choice.layout.order.is_none_or(|order| order.dim() == 1), "{text}");
                    }
                }
            }
        }
        let slices = asked.ask((0, 5), |mapper, info, _| mapper.slice_across_nodes(info, NodeId(1), 3));
        assert_eq!(slices.iter().map(|slice| slice.domain.volume()).sum::<u64>(), 5, "{text}");
        assert!(slices.iter().all(|slice| slice.node.0 < 3), "{text}");
        let node = asked.ask((4, 5), |mapper, info, _| mapper.select_node(info, NodeId(1), 3));
        assert!(node.is_none_or(|node| node.0 < 3), "{text}");
    }
}
