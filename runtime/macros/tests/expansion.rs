//! The output of the macros compiles without a warning against a model of the runtime, and does as was declared.

#![deny(warnings, missing_docs, clippy::all)]

mod model;

use maniple_macros::{Fields, task};
use model::{
    Arrangement, Context, FieldDescriptor, FieldId, FieldType, OperatorId, Point, Privilege, Ptr, Region, Sum,
};

#[derive(Fields)]
#[fields(crate = crate::model)]
struct Node {
    charge: f32,
    voltage: f32,
    r#type: u8,
}

#[derive(Fields)]
#[fields(crate = model)]
struct Wire {
    /// The node at which the wire starts.
    from: Ptr<Node>,
    to: Ptr<Self>,
    current: f64,
}

/// One place per accessor.
type Places = Vec<(usize, u32)>;

const TWO: usize = 2;

/// Shows every privilege.
#[task(leaf, layout = soa, crate = crate::model)]
fn distribute(
    #[reads(from, current)]
    #[writes(to)]
    wires: Piece<Wire>,
    #[reduces(Sum, charge, voltage)]
    #[layout(aos, column_major)]
    ghost: Piece<Node, TWO>,
    #[layout(align = 64)]
    #[discards(r#type)]
    mut own: model::Piece<Node, 3>,
    scale: f32,
    #[point] point: Point<2>,
    label: String,
) -> (Places, String) {
    let places = vec![
        wires.from.place(),
        wires.current.place(),
        wires.to.place(),
        ghost.charge.place(),
        ghost.voltage.place(),
        own.r#type.place(),
    ];
    let firsts = [wires.first_requirement(), ghost.first_requirement(), own.first_requirement()];
    let dimensions = [wires.dimensions(), ghost.dimensions(), own.dimensions()];
    (places, format!("{label} {scale} {point:?} {firsts:?} {dimensions:?}"))
}

fn distribute_launch() -> model::Launch<(Places, String)> {
    let (wires, ghost, own) = (Region::named("w"), Region::named("g"), Region::named("o"));
    distribute(&wires, &ghost, &own, 0.5, String::from("label"))
}

#[test]
fn members_become_fields_in_their_order() {
    let pointer = FieldType(std::any::type_name::<Ptr<Node>>());
    assert_eq!(<Wire as model::Fields>::descriptors()[0], FieldDescriptor { name: "from".into(), ty: pointer });
    assert_eq!(<Node as model::Fields>::descriptors()[2], FieldDescriptor { name: "type".into(), ty: FieldType("u8") });
    assert_eq!([Wire::from.id, Wire::to.id, Wire::current.id].map(|id| id.0), [0, 1, 2]);
    assert_eq!(Node::r#type.id, FieldId(2));
}

#[test]
fn the_members_of_a_row_go_to_the_columns_of_their_fields() {
    use model::generated::Row;
    let mut columns = <Node as Row>::Columns::default();
    for number in 0..3_u8 {
        Node { charge: number.into(), voltage: 0.5, r#type: number }.push(&mut columns);
    }
    assert_eq!((&columns.charge[..], &columns.r#type[..]), (&[0.0, 1.0, 2.0][..], &[0, 1, 2][..]));
    let mut rows = Vec::new();
    Node::each(&mut columns, &mut |field, column| rows.push((field.0, column.rows())));
    assert_eq!(rows, [(0, 3), (1, 3), (2, 3)]);
}

#[test]
fn a_launch_has_a_requirement_for_each_attribute_on_the_region_that_carries_it() {
    let builder = distribute_launch().builder;
    assert_eq!(builder.regions, [(0, "wires", "w"), (1, "ghost", "g"), (2, "own", "o")]);
    let sum = Privilege::Reduce(OperatorId::of::<Sum>());
    assert_eq!(
        builder.requirements,
        [
            (0, Privilege::Read, vec![FieldId(0), FieldId(2)]),
            (0, Privilege::ReadWrite, vec![FieldId(1)]),
            (1, sum, vec![FieldId(0), FieldId(1)]),
            (2, Privilege::Discard, vec![FieldId(2)]),
        ]
    );
}

#[test]
fn a_launch_makes_its_operators_known_for_the_types_of_their_fields() {
    distribute_launch();
    let pair = (std::any::type_name::<Sum>(), "f32");
    assert!(model::REDUCTIONS.lock().unwrap().contains(&pair));
}

#[test]
fn a_leaf_gets_its_fields_by_requirement_its_arguments_and_its_point() {
    let (places, rest) = distribute_launch().run_variant("distribute").unwrap();
    assert_eq!(places, [(0, 0), (0, 2), (1, 1), (2, 0), (2, 1), (3, 2)]);
    assert_eq!(rest, "label 0.5 Point([7, 7]) [0, 2, 3] [1, 2, 3]");
}

#[test]
fn a_task_is_registered_under_its_name_with_its_options() {
    let handle = distribute_launch().handle;
    assert_eq!((handle.name, handle.path), ("distribute", "expansion::distribute"));
    let variant = registration(handle, "distribute");
    assert_eq!(
        variant.options,
        model::generated::Options { inner: false, layout: Some(Arrangement::StructOfArrays), mapper: None }
    );
    let by_columns = model::LayoutConstraint {
        arrangement: Some(Arrangement::ArrayOfStructs),
        order: Some(model::DimensionOrder::column_major(2)),
        align: None,
        pad: None,
    };
    let aligned = model::LayoutConstraint { arrangement: None, order: None, align: Some(64), pad: None };
    // The first parameter has two requirements.
    assert_eq!((variant.layouts)(), [(2, by_columns), (3, aligned)]);
    assert_eq!(variant.processor, model::ProcessorKind::Cpu);
    assert!(matches!(variant.body, model::generated::Body::Leaf(_)) && variant.declares);
    assert_eq!(variant.place.0, module_path!());
}

fn registration(task: &model::generated::TaskHandle, variant: &str) -> &'static model::generated::VariantRegistration {
    model::generated::TASKS
        .iter()
        .find(|registration| std::ptr::eq((registration.task)(), task) && registration.variant == variant)
        .expect("the variant is registered")
}

/// A module of its own, so that a variant elsewhere must name it by path.
mod physics {
    use super::{Node, Sum, model};
    use maniple_macros::task;

    #[task(name = "total", crate = model)]
    pub(super) fn r#match(#[reduces(Sum, charge)] nodes: Piece<Node>, factor: f64) -> f64 {
        let _ = nodes.first_requirement();
        factor
    }
}

#[task(variant_of(physics::r#match), layout = aos, crate = model)]
fn doubled(#[reduces(model::Sum, charge)] rows: Piece<Node>, factor: f64) -> f64 {
    factor * 2.0
}

#[test]
fn a_variant_registers_under_the_task_that_it_is_another_way_to_run() {
    let nodes = Region::named("n");
    let launch = || physics::r#match(&nodes, 1.5);
    assert_eq!((launch().handle.name, launch().handle.path), ("total", "expansion::physics::total"));
    assert_eq!(launch().run_variant("total"), Ok(1.5));
    assert_eq!(launch().run_variant("doubled"), Ok(3.0));
    let doubled = registration(launch().handle, "doubled");
    assert_eq!((doubled.options.layout, doubled.declares), (Some(Arrangement::ArrayOfStructs), false));
}

#[task(crate = model)]
fn sendable() -> u8 {
    7
}

#[task(crate = model)]
fn at_home() -> Result<String, String> {
    Ok("here".to_owned())
}

#[test]
fn a_task_migrates_with_what_it_has_privileges_on_if_its_arguments_can_go() {
    use model::generated::{Migratable, MigratedRequirement};

    let migratable = |handle, variant| (registration(handle, variant).migratable)();
    let total = physics::r#match(&Region::named("n"), 1.5).handle;
    let charge = MigratedRequirement::of::<Node>(Privilege::Reduce(OperatorId::of::<Sum>()), &[FieldId(0)]);
    assert_eq!(migratable(total, "total"), Some(Migratable(vec![charge])));
    assert_eq!(migratable(total, "doubled"), None, "variants go as the task that they belong to");
    assert_eq!(migratable(sendable().handle, "sendable"), Some(Migratable(Vec::new())));
    assert_eq!(migratable(increment(1).handle, "increment"), Some(Migratable(Vec::new())));
    assert_eq!(migratable(pair(String::new(), 1.0).handle, "pair"), None);
    assert_eq!(migratable(distribute_launch().handle, "distribute"), None, "a string is not `Copy`");
}

#[test]
fn a_result_has_a_codec_if_its_type_has() {
    let codec = |handle, variant| (registration(handle, variant).codec)();
    assert_eq!(codec(sendable().handle, "sendable"), Some(model::generated::Codec));
    assert_eq!(codec(at_home().handle, "at_home"), None);
}

#[derive(Debug)]
struct Overflow;

impl std::fmt::Display for Overflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("overflow")
    }
}

#[task(crate = model)]
fn increment(value: u8) -> Result<u8, Overflow> {
    value.checked_add(1).ok_or(Overflow)
}

#[test]
fn a_tasks_error_reaches_the_launcher() {
    assert_eq!(increment(1).run_variant("increment"), Ok(2));
    assert_eq!(increment(255).run_variant("increment"), Err(model::Error("task: overflow".into())));
    assert_eq!(increment(255).run_free(), Err(model::Error("task: overflow".into())));
}

#[test]
fn only_a_task_without_regions_is_launched_by_its_types_too() {
    assert!(distribute_launch().free.is_none());
    assert_eq!(increment(1).run_free(), Ok(2));
    assert_eq!(nothing().run_free(), Ok(()));
    assert_eq!(pair(String::from("left"), 2.5).run_free().as_deref(), Ok("left 2.5 3 Point([7])"));
}

/// Everything that a task without regions may have.
#[task(crate = model)]
async fn pair(cx: &Context, left: String, #[point] at: Point<1>, right: f64) -> model::Result<String> {
    std::future::ready(()).await;
    Ok(format!("{left} {right} {} {at:?}", cx.depth))
}

#[task(inner, crate = model)]
async fn simulate(
    cx: &Context,
    #[reads(from)] wires: Region<Wire>,
    #[writes(charge)] nodes: Region<Node, 2>,
    steps: u32,
) -> model::Result<String> {
    std::future::ready(()).await;
    Ok(format!("{} {} {} {steps}", cx.depth, wires.name, nodes.name))
}

/// Launches itself: its name is the launching function's within its own body too.
#[task(crate = model)]
fn countdown(_cx: &Context, from: u32, #[point] _at: Point<1>) -> u32 {
    if from == 0 { 0 } else { 1 + countdown(from - 1).run_variant("countdown").unwrap_or_default() }
}

#[test]
fn a_task_with_a_context_gets_it_first_and_its_regions_by_name() {
    let (wires, nodes) = (Region::named("w"), Region::named("n"));
    let launch = simulate(&wires, &nodes, 9);
    let variant = registration(launch.handle, "simulate");
    assert!(matches!(variant.body, model::generated::Body::Context(_)) && variant.options.inner);
    assert_eq!(launch.run_variant("simulate").as_deref(), Ok("3 first second 9"));
}

#[test]
fn a_task_can_launch_itself() {
    assert_eq!(countdown(4).run_variant("countdown"), Ok(4));
}

#[task(crate = model)]
fn nothing() {}

#[test]
fn a_task_needs_neither_parameters_nor_a_value() {
    assert_eq!(nothing().run_variant("nothing"), Ok(()));
}

#[test]
fn a_task_can_be_written_within_a_function() {
    #[task(crate = crate::model)]
    fn local(call: i64, builder: i64) -> i64 {
        call - builder
    }
    assert_eq!(local(5, 3).run_variant("local"), Ok(2));
}

// Two tasks of one name, of which the build has one.
#[task(crate = model)]
#[cfg(not(test))]
fn chosen() -> u8 {
    1
}

#[task(crate = model)]
#[cfg(test)]
#[allow(clippy::unnecessary_cast)]
fn chosen() -> u8 {
    2 as u8
}

#[test]
fn a_condition_holds_for_all_of_a_task() {
    assert_eq!(chosen().run_variant("chosen"), Ok(2));
}
