//! Which instances current data may be copied from (the example of Bauer 2014, section 5.3.2).
//!
//! Fields `a` and `b`; a region, a part of it, and a part of that. There are five instances, numbered in the order in
//! which they are made: 0 holds both fields of the whole, 1 holds `a` of the whole, 2 holds both of the part, where `a`
//! has been written since, 3 holds `a` of the smallest part, and 4 needs both there.

use std::sync::{Arc, Mutex};

use maniple::Machine;
use maniple::ProcessorId;
use maniple::mapper::{
    Columns, InstanceChoice, InstanceInfo, Mapper, MappingContext, RequirementMapping, Reuse, TaskInfo,
};
use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: i64,
    b: i64,
}

#[task(leaf)]
fn write_both(#[discards(a, b)] cells: Piece<Cell>) {
    for point in cells.points() {
        cells.a[point] = point[0];
        cells.b[point] = 10 * point[0];
    }
}

#[task(leaf)]
fn read_first(#[reads(a)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.a[point]).sum()
}

#[task(leaf)]
fn write_first(
    #[writes(a)]
    #[reads(b)]
    cells: Piece<Cell>,
) {
    for point in cells.points() {
        cells.a[point] += cells.b[point];
    }
}

#[task(leaf)]
fn read_both(#[reads(a, b)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.a[point] + cells.b[point]).sum()
}

/// Sources, each with the fields said to be current in it, and the destination.
type Question = (Vec<(u64, Vec<u32>)>, u64);
type Asked = Arc<Mutex<Vec<Question>>>;

/// Makes a new instance for every task, and notes which sources it may rank.
#[derive(Clone)]
struct Scripted {
    asked: Asked,
    backwards: bool,
}

impl Mapper for Scripted {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        requirement: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let memory = context.machine().memories_visible_from(processor)[0].memory;
        let mut choice = InstanceChoice::in_memory(memory);
        // The second requirement of `write_first` shares the instance that the first one got.
        choice.reuse = if requirement == 1 { Reuse::Exact } else { Reuse::Never };
        choice.columns = if task.name == "write_first" { Columns::All } else { Columns::Requirement };
        choice.into()
    }

    fn rank_sources(&mut self, sources: &[InstanceInfo], destination: &InstanceInfo, _: &Machine) -> Vec<usize> {
        assert!(destination.valid.is_empty(), "{destination:?}");
        let current = |source: &InstanceInfo| source.valid.iter().map(|field| field.0).collect();
        let sources_with_fields = sources.iter().map(|source| (source.id.0, current(source))).collect();
        self.asked.lock().unwrap().push((sources_with_fields, destination.id.0));
        // A ranking may leave sources out.
        if self.backwards { vec![sources.len() - 1] } else { Vec::new() }
    }
}

fn sources(backwards: bool) -> (Vec<Question>, i64) {
    let asked = Asked::default();
    let mapper = Scripted { asked: Arc::clone(&asked), backwards };
    let runtime = Runtime::builder().workers(2).mapper(mapper).build().unwrap();
    let result = runtime.run(async |cx| {
        let whole = cx.region::<Cell>(8)?;
        let part = whole.partition(2).equal()?.piece(0)?;
        let smallest = part.partition(2).equal()?.piece(0)?;
        cx.launch(write_both(&whole));
        cx.launch(read_first(&whole));
        cx.launch(write_first(&part)).await?;
        cx.launch(read_first(&smallest)).await?;
        asked.lock().unwrap().clear();
        cx.launch(read_both(&smallest)).await
    });
    let asked = asked.lock().unwrap().clone();
    (asked, result.unwrap())
}

#[test]
fn each_field_comes_from_the_instances_that_hold_its_newest_values() {
    let (mut asked, result) = sources(false);
    asked.sort();
    // Field `b` from the instances of the whole or of the part, `a` from those of the part or of the smallest part.
    let b = vec![(0, vec![1]), (2, vec![1])];
    let a = vec![(2, vec![0]), (3, vec![0])];
    assert_eq!(asked, [(b, 4), (a, 4)]);
    assert_eq!(result, 10 + 1 + 10);
}

#[test]
fn a_partial_ranking_still_fills_all_fields() {
    assert_eq!(sources(true).1, 10 + 1 + 10);
}
