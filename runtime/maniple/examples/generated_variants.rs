//! Variants that are made while the program runs, for the layouts that the mapper chooses: here by a function that
//! stands for a compiler.
//!
//! Run it with `cargo run -p maniple --example generated_variants`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple::mapper::{Columns, DefaultMapper, InstanceChoice, Mapper, MappingContext, RequirementMapping, TaskInfo};
use maniple::mapper::{TaskMapping, VariantInfo};
use maniple::prelude::*;
use maniple::task::{Codec, GeneratedVariant, TaskDefinition, Value, VariantRequest};
use maniple::{Arrangement, LayoutConstraint, Privilege, Requirement};

#[derive(Fields)]
struct Sample {
    left: f64,
    right: f64,
}

/// Puts samples into arrays of structs or each field into an array, in turns, and leaves it to the runtime which
/// variant works with that.
#[derive(Clone)]
struct InTurns(DefaultMapper);

impl Mapper for InTurns {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mut mapping = self.0.map_task(task, context);
        let arrangement =
            if task.tag.is_multiple_of(2) { Arrangement::StructOfArrays } else { Arrangement::ArrayOfStructs };
        let layout = LayoutConstraint { arrangement: Some(arrangement), ..LayoutConstraint::default() };
        let memory = context.machine().memories_visible_from(mapping.processor)[0].memory;
        let choice = InstanceChoice { layout, columns: Columns::All, ..InstanceChoice::in_memory(memory) };
        mapping.requirements = vec![RequirementMapping::from(choice); task.requirements.len()];
        TaskMapping { any_variant: true, ..mapping }
    }

    fn select_fitting(&mut self, _: &TaskInfo<'_>, fitting: &[&VariantInfo]) -> usize {
        fitting.len() - 1
    }
}

/// How often something was compiled.
static COMPILED: AtomicUsize = AtomicUsize::new(0);

/// Compiles a kernel for a layout.
fn compile(request: &VariantRequest) -> Option<GeneratedVariant> {
    COMPILED.fetch_add(1, Ordering::Relaxed);
    let name = request.requirements[0].layout.to_string();
    let kernel = move |_: &maniple::task::LeafCall<'_>| Ok(Value::new(format!("a kernel for {name}")));
    Some(GeneratedVariant::new(kernel).for_layouts_of(request))
}

fn main() -> Result<()> {
    let task = Arc::new(TaskDefinition::new("mix").codec(Codec::of::<String>()).generator(compile));
    let runtime = Runtime::builder().mapper(InTurns(DefaultMapper::new())).build()?;
    runtime.run(async |cx| {
        let samples = cx.region::<Sample>(1_000)?;
        let fields = samples.logical().fields().fields();
        let mut kernels = Vec::new();
        for turn in 0..100 {
            let requirement = Requirement::new(samples.logical().clone(), fields.clone(), Privilege::Read);
            let launcher = TaskLauncher::new(&task).requirement(requirement).tag(turn);
            kernels.push(cx.launch(launcher.typed::<String>()));
        }
        println!("{}\n{}", kernels[0].clone().await?, kernels[1].clone().await?);
        assert_ne!(kernels[98].clone().await?, kernels[99].clone().await?);
        Ok(())
    })?;
    println!("compiled {} times for 100 launches", COMPILED.load(Ordering::Relaxed));
    assert_eq!(COMPILED.load(Ordering::Relaxed), 2);
    Ok(())
}
