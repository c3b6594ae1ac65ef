//! Random machines, mappers and limits to run programs in. None may change a result.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use fastrand::Rng;

use maniple::machine::{Affinity, MemoryKind};
use maniple::mapper::{
    DefaultMapper, InstanceChoice, InstanceId, InstanceInfo, LoggingMapper, Mapper, MappingContext, MappingRules,
    RandomMapper, ReadyOperation, RequirementInfo, RequirementMapping, Reuse, Sharding, ShardingMapper, Slice,
    TaskInfo, TaskMapping, VariantInfo, Vocabulary,
};
use maniple::net::Transport;
use maniple::{
    Arrangement, DimensionOrder, Error, LayoutConstraint, Machine, MemoryId, ProcessorId, ProcessorKind, Runtime,
};

use crate::lifetime::Lifetime;
use crate::value::mix;

/// The names of mappers besides the usual one, which each environment has.
pub const NAMES_OF_MAPPERS: [&str; 2] = ["left", "right"];

/// The environment in which a program runs.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Seeds mappers.
    pub seed: u64,
    /// Worker threads.
    pub workers: usize,
    /// The most operations of a task in flight.
    pub window: usize,
    /// The machine.
    pub machine: Machine,
    /// The mapper.
    pub mapper: MapperKind,
    /// The rules of the mapping file that is laid over the mapper. The nodes of a job take the rules of the job's seed
    /// instead.
    pub rules: Option<MappingRules>,
    /// Whether the runtime looks for traces itself; none if it has no traces at all.
    pub tracing: Option<Automatic>,
}

/// Whether traces are looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Automatic {
    /// Stretches that repeat are found, besides those that the program names.
    On,
    /// Only what the program names is a trace.
    Off,
}

/// A job on several nodes, as one of them sees it.
pub struct Job {
    /// The node's network.
    pub transport: Arc<dyn Transport>,
    /// The seed of shardings and of the mapping file, the same on all nodes.
    pub seed: u64,
    /// That of the node's runtime.
    pub lifetime: Lifetime,
}

/// How a launch is dealt to nodes: by chance, but the same on all.
fn sharding(seed: u64, launch: &TaskInfo<'_>, nodes: usize) -> Sharding {
    let mut hasher = DefaultHasher::new();
    (seed, launch.name, launch.domain, launch.tag).hash(&mut hasher);
    let mut random = Rng::with_seed(hasher.finish());
    match random.usize(..6) {
        0..=1 => Sharding::Blocked,
        2 => Sharding::Cyclic,
        3 => Sharding::OnOne(random.usize(..nodes)),
        // Runs of points, or each by itself.
        _ => {
            let (salt, run) = (random.u64(..), random.u64(1..4));
            Sharding::by_point("chance", move |point, domain, nodes| {
                (mix(salt, domain.linear(point) / run) % nodes as u64) as usize
            })
        }
    }
}

/// The rules of the mapping file of a seed, for one seed in three: drawn by chance, about the names that random
/// programs give.
#[must_use]
pub fn rules(seed: u64) -> Option<MappingRules> {
    let names = Vocabulary {
        tasks: &["task0", "task1", "task2", "task3", "task5", "inline mapping"],
        variants: &["leaf", "context"],
        regions: &["Cells"],
        partitions: &[],
        fields: &["f0", "f1", "f2"],
    };
    seed.is_multiple_of(3).then(|| MappingRules::random(mix(seed, 0x70_6d1), &names))
}

/// Which mapper decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapperKind {
    /// [`DefaultMapper::new`].
    Default,
    /// [`DefaultMapper::piecewise`].
    Piecewise,
    /// [`RandomMapper`].
    Random,
    /// [`RandomMapper::steady`], whose decisions can be replayed.
    Steady,
    /// [`LoggingMapper`] around a [`RandomMapper`].
    Logged,
    /// [`UnsoundMapper`].
    Unsound,
}

/// The behaviour of mappers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Minds {
    /// Most decide by chance.
    Any,
    /// Most decide the same each time.
    Steady,
    /// They answer nonsense now and then.
    Unsound,
}

/// How much room memories have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Every processor sees a memory with room for everything.
    Enough,
    /// Programs may run out of it.
    Tight,
}

impl Environment {
    /// The environment of a seed.
    #[must_use]
    pub fn new(seed: u64, room: Room, minds: Minds) -> Self {
        let mut random = Rng::with_seed(seed ^ 0x5eed);
        let processors = random.usize(1..=4);
        let mapper = match (minds, random.usize(..10)) {
            (Minds::Unsound, _) => MapperKind::Unsound,
            (_, 0) => MapperKind::Default,
            (_, 1) => MapperKind::Piecewise,
            (_, 2) => MapperKind::Logged,
            (Minds::Steady, 3..) | (Minds::Any, 3..=4) => MapperKind::Steady,
            _ => MapperKind::Random,
        };
        let windows = [1, 2, 3, 8, 64, 1024];
        Self {
            seed,
            workers: random.usize(1..=processors),
            window: windows[random.usize(..windows.len())],
            machine: machine(&mut random, processors, room),
            mapper,
            rules: rules(seed),
            tracing: match random.usize(..10) {
                0 => None,
                1..=3 => Some(Automatic::Off),
                _ => Some(Automatic::On),
            },
        }
    }

    /// Starts a runtime, perhaps as a node of a job, with or without a record of what it does, and a trace of what
    /// mappers decide.
    ///
    /// # Errors
    /// As [`maniple::RuntimeBuilder::build`].
    pub fn start(&self, record: bool, trace: bool, job: Option<Job>) -> Result<Runtime, Error> {
        let (kind, seed) = (self.mapper, self.seed);
        let shardings = job.as_ref().map(|job| (job.seed, job.lifetime.clone()));
        let factory = move |kind: MapperKind, seed: u64, processor: ProcessorId| -> Box<dyn Mapper> {
            let seed = seed.wrapping_add(processor.0.into());
            let mapper: Box<dyn Mapper> = match kind {
                MapperKind::Default => boxed(DefaultMapper::new(), trace),
                MapperKind::Piecewise => boxed(DefaultMapper::piecewise(), trace),
                MapperKind::Random => boxed(RandomMapper::new(seed), trace),
                MapperKind::Steady => boxed(RandomMapper::steady(seed), trace),
                MapperKind::Logged => Box::new(LoggingMapper::with_sink(RandomMapper::new(seed), |line| {
                    assert!(!line.is_empty(), "a decision has a text");
                })),
                MapperKind::Unsound => boxed(UnsoundMapper::new(seed), trace),
            };
            match &shardings {
                Some((seed, lifetime)) => {
                    let (seed, lifetime) = (*seed, lifetime.clone());
                    Box::new(ShardingMapper::new(mapper, move |launch, nodes| {
                        lifetime.hold();
                        sharding(seed, launch, nodes)
                    }))
                }
                None => mapper,
            }
        };
        let builder = Runtime::builder().machine(self.machine.clone()).workers(self.workers).window(self.window);
        let builder = builder.tracing(self.tracing.is_some()).automatic_tracing(self.tracing == Some(Automatic::On));
        let rules = job.as_ref().map_or_else(|| self.rules.clone(), |job| rules(job.seed));
        let builder = match rules {
            Some(rules) => builder.mapping_rules(rules),
            None => builder,
        };
        let builder = match job {
            Some(job) => builder.network(job.transport),
            None => builder,
        };
        // Of the same mind, but otherwise in detail.
        let factory = Arc::new(factory);
        let builder = NAMES_OF_MAPPERS.iter().zip(1_u64..).fold(builder, |builder, (name, number)| {
            let factory = Arc::clone(&factory);
            builder.mapper_named_for(name, move |_, processor| factory(kind, mix(seed, number), processor))
        });
        builder.mapper_for(move |_, processor| factory(kind, seed, processor)).record_operations(record).build()
    }
}

fn boxed(mapper: impl Mapper + 'static, trace: bool) -> Box<dyn Mapper> {
    if trace { Box::new(LoggingMapper::with_sink(mapper, |line| eprintln!("{line}"))) } else { Box::new(mapper) }
}

/// Processors that see one to three memories each, not all the same, and not all large.
fn machine(random: &mut Rng, processors: usize, room: Room) -> Machine {
    const PLENTY: u64 = 1 << 28;
    let mut builder = Machine::builder();
    let processors: Vec<ProcessorId> = (0..processors).map(|_| builder.processor(ProcessorKind::Cpu)).collect();
    let count = random.usize(1..=3);
    let mut memories: Vec<(MemoryId, bool)> = Vec::new();
    for number in 0..count {
        let (capacity, large) = match room {
            Room::Tight => (random.u64(64..4096), true),
            Room::Enough if number == 0 || random.bool() => (PLENTY, true),
            Room::Enough => (random.u64(0..2048), false),
        };
        let memory = builder.memory(MemoryKind::System, capacity);
        // Programs are small: by pages of the system all instances would count as a whole. Without another draw, so
        // that seeds stay those of the same programs.
        match (capacity as usize + number + processors.len()) % 3 {
            0 => {}
            page => _ = builder.pages(memory, [8, 48][page - 1]),
        }
        memories.push((memory, large));
    }
    for &processor in &processors {
        let large: Vec<MemoryId> = memories.iter().filter(|memory| memory.1).map(|memory| memory.0).collect();
        let home = large[random.usize(..large.len())];
        for &(memory, _) in &memories {
            if memory == home || random.bool() {
                let affinity = Affinity { bandwidth_mb_s: random.u32(1..1000), latency_ns: random.u32(1..1000) };
                builder.sees(processor, memory, affinity);
            }
        }
    }
    builder.build().unwrap_or_else(|_| Machine::uniform(1, PLENTY))
}

/// A mapper whose answers sometimes make no sense, and that sometimes panics.
pub struct UnsoundMapper {
    inner: RandomMapper,
    random: Rng,
}

impl UnsoundMapper {
    /// A mapper whose whims follow from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let inner = if seed.is_multiple_of(2) { RandomMapper::new(seed) } else { RandomMapper::steady(seed) };
        Self { inner, random: Rng::with_seed(!seed) }
    }

    fn whim(&mut self) -> Option<usize> {
        (self.random.usize(..25) == 0).then(|| self.random.usize(..9))
    }

    fn spoil(&mut self, mapping: &mut RequirementMapping, whim: usize) {
        let bogus = InstanceChoice::in_memory(MemoryId(99));
        *mapping = match whim {
            0 => RequirementMapping::Virtual,
            1 => RequirementMapping::Instance(Vec::new()),
            2 => bogus.into(),
            _ => {
                let mut choices = match std::mem::replace(mapping, RequirementMapping::Virtual) {
                    RequirementMapping::Instance(choices) => choices,
                    RequirementMapping::Virtual => vec![bogus],
                };
                let layouts = [
                    LayoutConstraint::default(),
                    LayoutConstraint { arrangement: Some(Arrangement::Blocked(3)), ..LayoutConstraint::default() },
                    LayoutConstraint { arrangement: Some(Arrangement::Blocked(2)), ..LayoutConstraint::default() },
                    LayoutConstraint { order: Some(DimensionOrder::column_major(4)), ..LayoutConstraint::default() },
                ];
                let layout = layouts[self.random.usize(..layouts.len())];
                for choice in &mut choices {
                    (choice.reuse, choice.layout) = (Reuse::Only(InstanceId(u64::MAX)), layout);
                }
                RequirementMapping::Instance(choices)
            }
        };
    }
}

impl Mapper for UnsoundMapper {
    fn slice_launch(&mut self, launch: &TaskInfo<'_>, machine: &Machine) -> Vec<Slice> {
        let mut slices = self.inner.slice_launch(launch, machine);
        match self.whim() {
            Some(0) => panic!("a mapper's whim in slice_launch"),
            Some(1) => drop(slices.pop()),
            Some(2) => slices.extend(slices.first().copied()),
            Some(3) => slices.iter_mut().for_each(|slice| slice.processor = ProcessorId(99)),
            _ => {}
        }
        slices
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mut mapping = self.inner.map_task(task, context);
        match self.whim() {
            Some(0) => panic!("a mapper's whim in map_task"),
            Some(1) => mapping.processor = ProcessorId(99),
            Some(2) => mapping.variant = 99,
            Some(3) => drop(mapping.requirements.pop()),
            Some(4) => mapping.group = vec![mapping.processor, ProcessorId(self.random.u32(..9))],
            Some(whim) => {
                mapping.requirements.iter_mut().for_each(|requirement| self.spoil(requirement, whim - 5));
            }
            None => {}
        }
        mapping
    }

    fn select_fitting(&mut self, task: &TaskInfo<'_>, fitting: &[&VariantInfo]) -> usize {
        match self.whim() {
            Some(0) => panic!("a mapper's whim in select_fitting"),
            Some(_) => fitting.len(),
            None => self.inner.select_fitting(task, fitting),
        }
    }

    fn map_inline(
        &mut self,
        requirement: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let mut mapping = self.inner.map_inline(requirement, processor, context);
        match self.whim() {
            Some(0) => panic!("a mapper's whim in map_inline"),
            Some(whim) => self.spoil(&mut mapping, whim % 4),
            None => {}
        }
        mapping
    }

    fn rank_sources(&mut self, sources: &[InstanceInfo], destination: &InstanceInfo, machine: &Machine) -> Vec<usize> {
        match self.whim() {
            Some(0) => panic!("a mapper's whim in rank_sources"),
            Some(1) => vec![99, 0, 0],
            _ => self.inner.rank_sources(sources, destination, machine),
        }
    }

    fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
        match self.whim() {
            Some(0) => panic!("a mapper's whim in select_operations_to_map"),
            Some(1) => vec![99, 0, 0],
            Some(2) => Vec::new(),
            _ => self.inner.select_operations_to_map(ready),
        }
    }
}
