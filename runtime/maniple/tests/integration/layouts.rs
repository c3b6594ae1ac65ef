//! A variant gets the layouts that it asks of its data, whatever the mapper says.

use std::collections::BTreeSet;
use std::sync::Arc;

use maniple::mapper::{
    Columns, DefaultMapper, InstanceChoice, Mapper, MappingContext, ReductionPlace, RequirementInfo,
    RequirementMapping, TaskInfo, TaskMapping, Validity,
};
use maniple::prelude::*;
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{
    Arrangement, DimensionOrder, LayoutConstraint, Machine, OperatorId, Privilege, ProcessorId, Requirement,
};

#[derive(Fields)]
struct Cell {
    left: f64,
    right: f64,
}

/// Chooses this of the layout, and all fields in one instance; reductions go into buffers.
#[derive(Clone)]
struct Chooses(LayoutConstraint);

impl Chooses {
    fn choice(&self, processor: ProcessorId, machine: &Machine) -> RequirementMapping {
        let memory = machine.memories_visible_from(processor)[0].memory;
        let reduction = ReductionPlace::Buffer;
        InstanceChoice { layout: self.0, columns: Columns::All, reduction, ..InstanceChoice::in_memory(memory) }.into()
    }
}

impl Mapper for Chooses {
    fn map_requirement(
        &mut self,
        _: &TaskInfo<'_>,
        _: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        self.choice(processor, context.machine())
    }

    fn map_inline(
        &mut self,
        _: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        self.choice(processor, context.machine())
    }
}

/// Says the same with another variant, whatever that wants.
#[derive(Clone)]
struct Second(DefaultMapper);

impl Mapper for Second {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        TaskMapping { variant: 1, ..self.0.map_task(task, context) }
    }
}

/// Any, but asked each time.
#[derive(Clone)]
struct Forgets(Chooses);

impl Mapper for Forgets {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        TaskMapping { validity: Validity::Once, ..self.0.map_task(task, context) }
    }
}

fn arranged(arrangement: Arrangement) -> LayoutConstraint {
    LayoutConstraint { arrangement: Some(arrangement), ..LayoutConstraint::default() }
}

fn ordered(order: DimensionOrder) -> LayoutConstraint {
    LayoutConstraint { order: Some(order), ..LayoutConstraint::default() }
}

const OPEN: LayoutConstraint = LayoutConstraint { arrangement: None, order: None, align: None, pad: None };

/// Tasks that return how many bytes apart neighbours in the first dimension are in the first field; a variant for each
/// layout.
fn measuring(layouts: &[LayoutConstraint]) -> Arc<TaskDefinition> {
    let options = |layout: &LayoutConstraint| TaskOptions { layout: *layout, ..TaskOptions::default() };
    let task = layouts.iter().fold(TaskDefinition::new("measure"), |task, layout| {
        task.leaf(options(layout), |call| {
            let field = call.region(0)?.fields().fields().iter().next().unwrap();
            Ok(Value::new(call.strided::<f64>(0, field)?.strides()[0]))
        })
    });
    Arc::new(task)
}

fn launch<const D: usize>(
    cx: &Context,
    task: &Arc<TaskDefinition>,
    cells: &Region<Cell, D>,
    privilege: Privilege,
) -> maniple::Future<isize> {
    let requirement = Requirement::new(cells.logical().clone(), cells.logical().fields().fields(), privilege);
    cx.launch(TaskLauncher::new(task).requirement(requirement).typed::<isize>())
}

fn runtime(mapper: impl Mapper + Clone + Sync + 'static) -> Runtime {
    Runtime::builder().workers(2).mapper(mapper).build().unwrap()
}

#[test]
fn a_variant_gets_the_layout_that_it_wants_where_the_mapper_leaves_it_open() {
    for (wanted, stride) in [(Arrangement::StructOfArrays, 8), (Arrangement::ArrayOfStructs, 16)] {
        let measure = measuring(&[arranged(wanted)]);
        let run = async |cx: &Context| {
            let cells = cx.region::<Cell>(8)?;
            let mut found = Vec::new();
            // Also where the decision is remembered, and where a trace is replayed.
            for _ in 0..20 {
                found.push(launch(cx, &measure, &cells, Privilege::ReadWrite).await?);
            }
            Ok(found)
        };
        assert_eq!(runtime(Chooses(OPEN)).run(run).unwrap(), [stride; 20]);
        assert_eq!(runtime(Forgets(Chooses(OPEN))).run(run).unwrap(), [stride; 20]);
        let named = async |cx: &Context| {
            let cells = cx.region::<Cell>(8)?;
            let mut found = Vec::new();
            for _ in 0..20 {
                found.push(cx.trace("step", |cx| launch(cx, &measure, &cells, Privilege::ReadWrite)));
            }
            let mut strides = Vec::new();
            for future in found {
                strides.push(future.await?);
            }
            Ok(strides)
        };
        let runtime = runtime(Chooses(OPEN));
        assert_eq!(runtime.run(named).unwrap(), [stride; 20]);
        assert!(runtime.statistics().replays > 0, "{:?}", runtime.statistics());
    }
}

/// The strides of the first field of each requirement.
fn strides_of_all(call: &maniple::task::LeafCall<'_>, requirements: usize) -> Result<Value> {
    let strides = (0..requirements).map(|number| {
        let field = call.region(number)?.fields().fields().iter().next().unwrap();
        Ok(call.strided::<f64>(number, field)?.strides().to_vec())
    });
    Ok(Value::new(strides.collect::<Result<Vec<Vec<isize>>>>()?))
}

#[test]
fn each_requirement_gets_the_layout_that_is_asked_of_it() {
    let everything = TaskOptions { layout: arranged(Arrangement::StructOfArrays), ..TaskOptions::default() };
    let task = TaskDefinition::new("strides")
        .leaf(everything, |call| strides_of_all(call, 3))
        .layout_of(1, arranged(Arrangement::ArrayOfStructs))
        .layout_of(2, ordered(DimensionOrder::column_major(2)));
    let task = Arc::new(task);
    for mapper in [Chooses(OPEN), Chooses(ordered(DimensionOrder::column_major(2)))] {
        let is_by_columns = mapper.0 != OPEN;
        let outcome = runtime(mapper).run(async |cx| {
            let region = || cx.region_over::<Cell, 2>(Rect::from_shape([4, 8]));
            let regions = [region()?, region()?, region()?];
            let mut found = Vec::new();
            for _ in 0..5 {
                let launcher = regions.iter().fold(TaskLauncher::new(&task), |launcher, cells| {
                    let fields = cells.logical().fields().fields();
                    launcher.requirement(Requirement::new(cells.logical().clone(), fields, Privilege::ReadWrite))
                });
                found.push(cx.launch(launcher.typed::<Vec<Vec<isize>>>()).await?);
            }
            Ok(found)
        });
        let (first, second) = if is_by_columns { ([8, 32], [16, 64]) } else { ([64, 8], [128, 16]) };
        let expected = vec![first.to_vec(), second.to_vec(), vec![8, 32]];
        assert_eq!(outcome.unwrap(), vec![expected; 5], "by columns: {is_by_columns}");
    }
}

#[test]
fn a_choice_that_clashes_with_what_one_requirement_wants_is_an_error_that_names_it() {
    let task = TaskDefinition::new("strides")
        .leaf(TaskOptions::default(), |call| strides_of_all(call, 2))
        .layout_of(1, ordered(DimensionOrder::row_major(2)));
    let task = Arc::new(task);
    let outcome = runtime(Chooses(ordered(DimensionOrder::column_major(2)))).run(async |cx| {
        let cells = cx.region_over::<Cell, 2>(Rect::from_shape([4, 8]))?;
        let launcher = (0..2).fold(TaskLauncher::new(&task), |launcher, _| {
            let (region, fields) = (cells.logical().clone(), cells.logical().fields().fields());
            launcher.requirement(Requirement::new(region, fields, Privilege::Read))
        });
        cx.launch(launcher.typed::<Vec<Vec<isize>>>()).await
    });
    let Err(Error::Mapper { call: "map_task", problem, .. }) = outcome else { panic!("{outcome:?}") };
    assert!(problem.contains("requirement 1") && problem.contains("order [0, 1]"), "{problem}");
}

/// How far apart rows are, and neighbours in a row, in either region.
#[task(leaf)]
fn spacing(
    #[reads(left, right)]
    #[layout(aos, column_major)]
    first: Piece<Cell, 2>,
    #[layout(column_major)]
    #[reads(left)]
    #[writes(right)]
    second: Piece<Cell, 2>,
) -> [isize; 4] {
    let apart = |one: &f64, other: &f64| std::ptr::from_ref(other) as isize - std::ptr::from_ref(one) as isize;
    [
        apart(&first.left[[0, 0]], &first.left[[1, 0]]),
        apart(&first.left[[0, 0]], &first.left[[0, 1]]),
        apart(&second.left[[0, 0]], &second.left[[1, 0]]),
        apart(&second.right[[0, 0]], &second.right[[0, 1]]),
    ]
}

#[test]
fn a_parameter_says_the_layout_of_its_region() {
    let outcome = runtime(DefaultMapper::new()).run(async |cx| {
        let region = || cx.region_over::<Cell, 2>(Rect::from_shape([4, 8]));
        let (first, second) = (region()?, region()?);
        cx.launch(spacing(&first, &second)).await
    });
    assert_eq!(outcome.unwrap(), [16, 64, 8, 32]);
}

#[test]
fn the_first_values_of_what_is_aligned_are_at_a_multiple_whatever_else_is_there() {
    let mut instances = BTreeSet::new();
    for (align, arrangement) in [64, 256, 4096]
        .into_iter()
        .flat_map(|align| [(align, Arrangement::StructOfArrays), (align, Arrangement::ArrayOfStructs)])
    {
        let layout = LayoutConstraint { align: Some(align), ..arranged(arrangement) };
        let addresses =
            TaskDefinition::new("addresses").leaf(TaskOptions { layout, ..TaskOptions::default() }, |call| {
                let fields = call.region(0)?.fields().fields();
                let address = |field| Ok(call.strided::<f64>(0, field)?.address().addr());
                Ok(Value::new(fields.iter().map(address).collect::<Result<Vec<usize>>>()?))
            });
        let addresses = Arc::new(addresses);
        for mapper in [Chooses(OPEN), Chooses(LayoutConstraint { align: Some(16), ..OPEN })] {
            let outcome = runtime(mapper).run(async |cx| {
                let cells = cx.region::<Cell>(1000)?;
                // The values are in the program's memory, and in an instance for all pieces.
                let _attached = cx.attach_vec(&cells, Cell::left, (0..1000).map(f64::from).collect())?;
                cx.launch(double(&cells));
                let pieces = cells.partition_into(
                    3.into(),
                    vec![Rect::from(0..7).into(), Rect::from(7..500).into(), Rect::from(500..1000).into()],
                )?;
                let all = Requirement::new(
                    maniple::Target::from(pieces.logical().clone()),
                    cells.logical().fields().fields(),
                    Privilege::ReadWrite,
                );
                let mut found = Vec::new();
                for _ in 0..3 {
                    let launcher = TaskLauncher::new(&addresses).requirement(all.clone()).typed::<Vec<usize>>();
                    found.extend(cx.index_launch(3, launcher).all().await?);
                }
                assert_eq!(cx.map_read(&cells, Cell::left).await?[777], 2.0 * 777.0);
                Ok(found)
            });
            for addresses in outcome.unwrap() {
                let count = if arrangement == Arrangement::StructOfArrays { 2 } else { 1 };
                assert!(
                    addresses[..count].iter().all(|at| at.is_multiple_of(align as usize)),
                    "{addresses:x?} by {align}"
                );
                instances.insert(addresses);
            }
        }
    }
    assert!(instances.len() >= 6, "{instances:?}");
}

#[test]
fn an_alignment_that_no_address_has_is_an_error() {
    for align in [0, 3, 48, 1 << 22, u32::MAX] {
        let measure = measuring(&[LayoutConstraint { align: Some(align), ..OPEN }]);
        let outcome = runtime(Chooses(OPEN)).run(async |cx| {
            let cells = cx.region::<Cell>(8)?;
            launch(cx, &measure, &cells, Privilege::ReadWrite).await
        });
        let Err(Error::Mapper { call: "map_task", problem, .. }) = outcome else { panic!("{outcome:?}") };
        assert!(problem.contains(&format!("aligned to {align} bytes")), "{problem}");
    }
}

#[task(leaf)]
fn double(#[writes(left)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.left[cell] *= 2.0);
}

#[test]
fn variants_that_want_other_layouts_of_the_same_data_get_them_in_turn() {
    let tasks = [Arrangement::StructOfArrays, Arrangement::ArrayOfStructs].map(|wanted| measuring(&[arranged(wanted)]));
    let outcome = runtime(Chooses(OPEN)).run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let mut found = Vec::new();
        for turn in 0..6 {
            found.push(launch(cx, &tasks[turn % 2], &cells, Privilege::ReadWrite).await?);
        }
        Ok(found)
    });
    assert_eq!(outcome.unwrap(), [8, 16, 8, 16, 8, 16]);
}

#[test]
fn a_mapper_that_takes_another_variant_than_the_one_it_wraps_leaves_the_layout_to_the_runtime() {
    let measure = measuring(&[arranged(Arrangement::StructOfArrays), arranged(Arrangement::ArrayOfStructs)]);
    let outcome = runtime(Second(DefaultMapper::new())).run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        launch(cx, &measure, &cells, Privilege::ReadWrite).await
    });
    assert_eq!(outcome.unwrap(), 16);
}

#[test]
fn a_choice_that_clashes_with_what_the_variant_wants_is_an_error_that_names_both() {
    let measure = measuring(&[arranged(Arrangement::StructOfArrays)]);
    let outcome = runtime(Chooses(arranged(Arrangement::Blocked(32)))).run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        launch(cx, &measure, &cells, Privilege::ReadWrite).await
    });
    let Err(error @ Error::Mapper { call: "map_task", .. }) = outcome else { panic!("{outcome:?}") };
    let said = error.to_string();
    for words in
        ["`measure`", "variant `leaf`", "struct of arrays", "blocks of 32", "requirement 0", "leave the layout open"]
    {
        assert!(said.contains(words), "{words:?} is not in {said:?}");
    }
}

#[test]
fn the_order_of_dimensions_is_part_of_the_layout_for_values_and_for_contributions() {
    let (rows, columns) = (ordered(DimensionOrder::row_major(2)), ordered(DimensionOrder::column_major(2)));
    let tasks = [rows, columns].map(|order| measuring(&[order]));
    for privilege in [Privilege::ReadWrite, Privilege::Reduce(OperatorId::of::<Sum>())] {
        let outcome = runtime(Chooses(arranged(Arrangement::StructOfArrays))).run(async |cx| {
            let cells = cx.region_over::<Cell, 2>(Rect::from_shape([4, 8]))?;
            maniple::register_reduction::<Sum, f64>();
            let mut found = Vec::new();
            for turn in 0..6 {
                found.push(launch(cx, &tasks[turn % 2], &cells, privilege).await?);
                // So that buffers are free.
                cx.map_read(&cells, Cell::left).await?;
                cx.map_read(&cells, Cell::right).await?;
            }
            Ok(found)
        });
        assert_eq!(outcome.unwrap(), [64, 8, 64, 8, 64, 8], "{privilege}");
    }
}

#[test]
fn an_order_of_another_number_of_dimensions_is_an_error() {
    let order = ordered(DimensionOrder::column_major(2));
    for (mapper, variant, call) in [(order, OPEN, "map_task"), (OPEN, order, "map_task")] {
        let measure = measuring(&[variant]);
        let outcome = runtime(Chooses(mapper)).run(async |cx| {
            let cells = cx.region::<Cell>(8)?;
            launch(cx, &measure, &cells, Privilege::ReadWrite).await
        });
        let Err(Error::Mapper { call: found, problem, .. }) = outcome else { panic!("{outcome:?}") };
        assert!(found == call && problem.contains("2 dimensions") && problem.contains("has 1"), "{problem}");
    }
    let outcome = runtime(Chooses(order)).run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        cx.map_read(&cells, Cell::left).await.map(|_| ())
    });
    let Err(Error::Mapper { call: "map_inline", problem, .. }) = outcome else { panic!("{outcome:?}") };
    assert!(problem.contains("2 dimensions"), "{problem}");
}

#[test]
fn blocks_that_are_no_power_of_two_are_an_error_even_where_one_field_makes_no_blocks() {
    let measure = measuring(&[OPEN]);
    let outcome = runtime(Chooses(arranged(Arrangement::Blocked(3)))).run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        launch(cx, &measure, &cells, Privilege::ReadWrite).await
    });
    let Err(Error::Mapper { call: "map_task", problem, .. }) = outcome else { panic!("{outcome:?}") };
    assert!(problem.contains("blocks of 3") && problem.contains("power of two"), "{problem}");
}

#[task(leaf)]
fn total_sum(#[reads(left)] cells: Piece<Cell>) -> u32 {
    let _ = cells;
    0
}

#[task(leaf, variant_of(total_sum))]
fn sum(#[reads(left)] cells: Piece<Cell>) -> u32 {
    let _ = cells;
    1
}

#[task(leaf, variant_of(total_sum))]
fn a_sum(#[reads(left)] cells: Piece<Cell>) -> u32 {
    let _ = cells;
    2
}

#[test]
fn the_function_that_declares_a_task_is_its_first_variant_whatever_others_are_called() {
    let outcome = runtime(DefaultMapper::new()).run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        cx.launch(total_sum(&cells)).await
    });
    assert_eq!(outcome.unwrap(), 0);
}
