//! Variants that are chosen when there are instances, and variants that are made for them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use maniple::mapper::{
    Columns, DefaultMapper, InstanceChoice, Mapper, MappingContext, MappingFailure, RequirementInfo,
    RequirementMapping, TaskInfo, TaskMapping, VariantInfo,
};
use maniple::prelude::*;
use maniple::task::{Codec, GeneratedVariant, TaskDefinition, TaskOptions, Value, VariantRequest};
use maniple::{
    Arrangement, DimensionOrder, Error, FieldId, LayoutConstraint, Privilege, ProcessorId, ProcessorKind, Requirement,
};

#[derive(Fields)]
struct Cell {
    left: f64,
    right: f64,
}

const SOA: LayoutConstraint =
    LayoutConstraint { arrangement: Some(Arrangement::StructOfArrays), order: None, align: None, pad: None };
const AOS: LayoutConstraint =
    LayoutConstraint { arrangement: Some(Arrangement::ArrayOfStructs), order: None, align: None, pad: None };

/// Says what a mapper did.
type Log = Arc<Mutex<Vec<String>>>;

/// Maps to any variant; all fields of the region in one instance, arranged so. Takes the last of those that fit, if it
/// is to choose.
#[derive(Clone)]
struct Any {
    arrangement: Option<Arrangement>,
    chooses_last: bool,
    log: Log,
    inner: DefaultMapper,
}

impl Any {
    fn new(arrangement: impl Into<Option<Arrangement>>) -> Self {
        Self { arrangement: arrangement.into(), chooses_last: false, log: Log::default(), inner: DefaultMapper::new() }
    }
}

impl Mapper for Any {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mut mapping = self.inner.map_task(task, context);
        let memory = context.machine().memories_visible_from(mapping.processor)[0].memory;
        let layout = LayoutConstraint { arrangement: self.arrangement, ..LayoutConstraint::default() };
        let choice = InstanceChoice { layout, columns: Columns::All, ..InstanceChoice::in_memory(memory) };
        mapping.requirements.iter_mut().for_each(|requirement| *requirement = choice.clone().into());
        // What it says of the variant does not count.
        TaskMapping { variant: 99, any_variant: true, ..mapping }
    }

    fn map_inline(&mut self, _: &RequirementInfo, _: ProcessorId, context: &dyn MappingContext) -> RequirementMapping {
        InstanceChoice::in_memory(context.machine().memories()[0].id).into()
    }

    fn select_fitting(&mut self, task: &TaskInfo<'_>, fitting: &[&VariantInfo]) -> usize {
        let names: Vec<&str> = fitting.iter().map(|variant| variant.name).collect();
        self.log.lock().unwrap().push(format!("of {names:?}"));
        if self.chooses_last { fitting.len() - 1 } else { self.inner.select_fitting(task, fitting) }
    }

    fn mapping_failed(&mut self, _: &TaskInfo<'_>, failure: &MappingFailure) {
        self.log.lock().unwrap().push(failure.to_string());
    }
}

/// A task whose variants say which they are, and check that they got what they asked for.
fn task(variants: &[(&'static str, LayoutConstraint)]) -> TaskDefinition {
    let task = TaskDefinition::new("which").codec(Codec::of::<String>());
    variants.iter().fold(task, |task, &(name, layout)| {
        let body = move |call: &maniple::task::LeafCall<'_>| {
            // How far apart the values of a field are, in bytes.
            match layout.arrangement {
                Some(Arrangement::StructOfArrays) => assert_eq!(call.strided::<f64>(0, FieldId(0))?.strides(), [8]),
                Some(Arrangement::ArrayOfStructs) => assert_eq!(call.strided::<f64>(0, FieldId(0))?.strides(), [16]),
                _ => {}
            }
            Ok(Value::new(name.to_owned()))
        };
        let body = maniple::task::Body::Leaf(Arc::new(body));
        task.variant(name, ProcessorKind::Cpu, TaskOptions { layout, ..TaskOptions::default() }, body)
    })
}

fn launch(task: &Arc<TaskDefinition>, cells: &Region<Cell>) -> Launch<String> {
    let fields = cells.logical().fields().fields();
    TaskLauncher::new(task).requirement(Requirement::new(cells.logical().clone(), fields, Privilege::Read)).typed()
}

fn run(task: TaskDefinition, mapper: &Any, times: usize) -> Result<Vec<String>> {
    let (task, runtime) = (Arc::new(task), Runtime::builder().workers(2).mapper(mapper.clone()).build()?);
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(16)?;
        let mut all = Vec::new();
        for launched in (0..times).map(|_| cx.launch(launch(&task, &cells))).collect::<Vec<_>>() {
            all.push(launched.await?);
        }
        Ok(all)
    })
}

#[test]
fn of_the_variants_that_can_work_with_the_instances_the_most_special_is_taken() {
    let variants = [("any", LayoutConstraint::default()), ("soa", SOA), ("aos", AOS)];
    for (arrangement, expected) in
        [(Arrangement::StructOfArrays, "soa"), (Arrangement::ArrayOfStructs, "aos"), (Arrangement::Blocked(4), "any")]
    {
        let mapper = Any::new(arrangement);
        assert_eq!(run(task(&variants), &mapper, 3).unwrap(), [expected; 3]);
        let log = mapper.log.lock().unwrap();
        // Of one alone the mapper is not asked.
        assert_eq!(log.is_empty(), expected == "any", "{log:?}");
    }
}

#[test]
fn the_mapper_chooses_among_those_that_fit() {
    let variants = [("soa", SOA), ("aos", AOS), ("any", LayoutConstraint::default())];
    let mapper = Any { chooses_last: true, ..Any::new(Arrangement::StructOfArrays) };
    assert_eq!(run(task(&variants), &mapper, 1).unwrap(), ["any"]);
    assert_eq!(*mapper.log.lock().unwrap(), [r#"of ["soa", "any"]"#]);
}

#[test]
fn where_no_variant_fits_the_mapper_hears_of_it_three_times_and_the_launch_fails() {
    let mapper = Any::new(Arrangement::Blocked(4));
    let error = run(task(&[("soa", SOA), ("aos", AOS)]), &mapper, 1).unwrap_err();
    assert!(matches!(error, Error::Mapper { .. }), "{error:?}");
    assert!(error.to_string().contains("no variant for the processor can work with requirement 0 as"), "{error}");
    let log = mapper.log.lock().unwrap();
    assert_eq!(log.len(), 3, "{log:?}");
    assert!(log.iter().all(|line| line.contains("blocks of 4")), "{log:?}");
}

#[test]
fn a_variant_is_made_once_for_many_launches_and_used_wherever_it_fits() {
    let asked: Arc<Mutex<Vec<VariantRequest>>> = Arc::default();
    let note = Arc::clone(&asked);
    let task = task(&[("aos", AOS)]).generator(move |request| {
        note.lock().unwrap().push(request.clone());
        Some(GeneratedVariant::new(|_| Ok(Value::new("made".to_owned()))).for_layouts_of(request))
    });
    // The default mapper does not leave the choice open.
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let shared = Arc::new(task.clone());
    let outcome = runtime.run(async |cx| cx.launch(launch(&shared, &cx.region::<Cell>(16)?)).await);
    assert_eq!((outcome.unwrap(), asked.lock().unwrap().len()), ("aos".to_owned(), 0));
    let soa = Any::new(Arrangement::StructOfArrays);
    assert_eq!(run(task.clone(), &soa, 10_000).unwrap(), vec!["made"; 10_000]);
    assert_eq!(run(task.clone(), &Any::new(Arrangement::ArrayOfStructs), 3).unwrap(), ["aos"; 3]);
    // Of the process, not of the runtime.
    assert_eq!(run(task.clone(), &soa, 3).unwrap(), ["made"; 3]);
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let (request, data) = (&asked[0], &asked[0].requirements[0]);
    assert_eq!((request.processor, request.requirements.len()), (ProcessorKind::Cpu, 1));
    assert_eq!((data.layout.arrangement, data.dimensions), (Some(Arrangement::StructOfArrays), 1));
    assert_eq!((data.fields.len(), data.privilege), (2, Privilege::Read));
}

#[test]
fn a_variant_that_asks_for_less_than_was_requested_serves_other_requests() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let task = task(&[]).generator(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Some(GeneratedVariant::new(|_| Ok(Value::new("made".to_owned()))))
    });
    for arrangement in [Arrangement::StructOfArrays, Arrangement::ArrayOfStructs, Arrangement::Blocked(4)] {
        assert_eq!(run(task.clone(), &Any::new(arrangement), 5).unwrap(), ["made"; 5]);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn a_generator_that_panics_or_makes_none_or_too_special_a_variant_counts_as_none() {
    type Make = fn(&VariantRequest) -> Option<GeneratedVariant>;
    let makers: [Make; 3] = [
        |_| None,
        |_| panic!("as always"),
        |_| Some(GeneratedVariant::new(|_| Ok(Value::new("made".to_owned()))).layout_of(0, AOS)),
    ];
    for make in makers {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let task = task(&[("aos", AOS)]).generator(move |request| {
            count.fetch_add(1, Ordering::Relaxed);
            make(request)
        });
        let mapper = Any::new(Arrangement::StructOfArrays);
        for _ in 0..2 {
            let error = run(task.clone(), &mapper, 1).unwrap_err();
            assert!(error.to_string().contains("no variant"), "{error}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert_eq!(mapper.log.lock().unwrap().len(), 6);
        assert_eq!(run(task, &Any::new(Arrangement::ArrayOfStructs), 1).unwrap(), ["aos"]);
    }
}

#[test]
fn launches_of_generated_variants_are_replayed() {
    let task = Arc::new(task(&[]).generator(|request| {
        Some(GeneratedVariant::new(|_| Ok(Value::new("made".to_owned()))).for_layouts_of(request))
    }));
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(16)?;
        let mut last = None;
        for _ in 0..50 {
            last = Some(cx.trace("step", |cx| cx.launch(launch(&task, &cells))));
        }
        last.expect("there was one").await
    });
    assert_eq!(outcome.unwrap(), "made");
    assert!(runtime.statistics().replays > 30, "{:?}", runtime.statistics());
}

#[test]
fn a_task_with_neither_variants_nor_a_generator_is_refused() {
    let error = run(task(&[]), &Any::new(None), 1).unwrap_err();
    assert!(error.to_string().contains("has no implementation"), "{error}");
}

/// Asks for another order of three dimensions, in blocks of another size, with each tag.
#[derive(Clone)]
struct Arranged(Any);

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

impl Mapper for Arranged {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mut mapping = self.0.map_task(task, context);
        let memory = context.machine().memories_visible_from(mapping.processor)[0].memory;
        let tag = task.tag as usize;
        let arrangement = Some(Arrangement::Blocked(1 << (1 + tag / ORDERS.len())));
        let order = DimensionOrder::new(&ORDERS[tag % ORDERS.len()]).ok();
        let layout = LayoutConstraint { arrangement, order, ..LayoutConstraint::default() };
        let choice = InstanceChoice { layout, columns: Columns::All, ..InstanceChoice::in_memory(memory) };
        mapping.requirements.iter_mut().for_each(|requirement| *requirement = choice.clone().into());
        mapping
    }
}

#[test]
fn a_task_has_as_many_variants_as_there_are_kinds_of_data_for_it() {
    const KINDS: u64 = 12 * ORDERS.len() as u64;
    let makes = Arc::new(AtomicUsize::new(0));
    let made = Arc::clone(&makes);
    let task = TaskDefinition::new("task").codec(Codec::of::<i64>()).generator(move |request| {
        made.fetch_add(1, Ordering::Relaxed);
        Some(GeneratedVariant::new(|_| Ok(Value::new(1_i64))).for_layouts_of(request))
    });
    let (task, mapper) = (Arc::new(task), Arranged(Any::new(None)));
    let runtime = Runtime::builder().workers(2).mapper(mapper).build().unwrap();
    let sum = runtime.run(async |cx| {
        let cells = cx.region_over::<Cell, 3>(Rect::from_shape([2, 2, 2]))?;
        let mut sum = 0;
        for _ in 0..2 {
            for tag in 0..KINDS {
                let fields = [FieldId(0), FieldId(1)].into_iter().collect();
                let requirement = Requirement::new(cells.logical().clone(), fields, Privilege::ReadWrite);
                sum += cx.launch(TaskLauncher::new(&task).requirement(requirement).tag(tag).typed::<i64>()).await?;
            }
        }
        Ok(sum)
    });
    assert_eq!(sum.unwrap(), 2 * KINDS as i64);
    assert_eq!(makes.load(Ordering::Relaxed), KINDS as usize);
}
