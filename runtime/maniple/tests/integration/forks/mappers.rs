//! The decisions of mappers about tasks without regions.

use std::sync::{Arc, Mutex};

use maniple::machine::{Machine, ProcessorId};
use maniple::mapper::{DefaultMapper, Mapper, RandomMapper, TaskInfo, Validity};
use maniple::prelude::*;

use super::{Queens, fib, place, runtime, same};

/// Decisions that hold once only, so that nothing is forked.
#[derive(Clone)]
struct Undecided;

impl Mapper for Undecided {
    fn validity(&mut self, _: &TaskInfo<'_>) -> Validity {
        Validity::Once
    }
}

#[test]
fn recursion_gives_the_same_under_any_mapper() {
    let run = |builder: maniple::RuntimeBuilder| {
        let runtime = builder.workers(2).build().unwrap();
        assert_eq!(runtime.run_task(fib(12)).unwrap(), 144);
        assert_eq!(runtime.run_task(place(Queens::new(), 6)).unwrap(), 4);
    };
    run(Runtime::builder().mapper(DefaultMapper::piecewise()));
    run(Runtime::builder().mapper(Undecided));
    run(Runtime::builder().mapper(Elsewhere));
    (0..3).for_each(|seed| run(Runtime::builder().mapper(RandomMapper::new(seed))));
}

/// Sends every task to the processor after its parent's.
#[derive(Clone)]
struct Elsewhere;

impl Mapper for Elsewhere {
    fn select_processor(&mut self, task: &TaskInfo<'_>, machine: &Machine) -> ProcessorId {
        ProcessorId((task.origin.0 + 1) % machine.processors().len() as u32)
    }
}

#[task]
async fn processors(cx: &Context, depth: u32) -> Result<Vec<ProcessorId>> {
    let mut all = vec![cx.processor()];
    if depth > 0 {
        all.extend(cx.launch(processors(depth - 1)).await?);
    }
    Ok(all)
}

#[test]
fn a_mapper_that_sends_tasks_elsewhere_is_obeyed() {
    let runtime = Runtime::builder().workers(3).mapper(Elsewhere).build().unwrap();
    let all = runtime.run_task(processors(5)).unwrap();
    assert_eq!(all, [1, 2, 0, 1, 2, 0].map(ProcessorId));
}

#[test]
fn a_mapper_is_asked_once_about_a_task_for_as_long_as_its_decision_holds() {
    let one = runtime(1);
    one.run_task(fib(12)).unwrap();
    // By the top-level task and by those on the worker, which is the same processor.
    let statistics = one.statistics();
    assert_eq!(statistics.mapper_calls, 1);
    assert_eq!((statistics.launches, statistics.tasks), (465, 465));

    let undecided = Runtime::builder().workers(1).mapper(Undecided).build().unwrap();
    undecided.run_task(fib(12)).unwrap();
    assert!(undecided.statistics().mapper_calls > 465);
    assert_eq!((undecided.statistics().launches, undecided.statistics().tasks), (465, 465));
}

/// Gives each task a priority, so that nothing can be forked, and notes the tags.
#[derive(Clone)]
struct Tagged(Arc<Mutex<Vec<u64>>>);

impl Mapper for Tagged {
    fn priority(&mut self, task: &TaskInfo<'_>) -> i32 {
        self.0.lock().unwrap().push(task.tag);
        0
    }
}

#[test]
fn a_tag_reaches_the_mapper_also_of_a_task_that_is_forked_without() {
    let tags = Arc::new(Mutex::new(Vec::new()));
    let runtime = Runtime::builder().workers(1).mapper(Tagged(Arc::clone(&tags))).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let all = [cx.launch(same(1)), cx.launch(same(2)), cx.launch(same(3).tag(7))];
        Ok((all[0].clone().await?, all[1].clone().await?, all[2].clone().await?))
    });
    assert_eq!(outcome.unwrap(), (1, 2, 3));
    assert_eq!(*tags.lock().unwrap(), [0, 7]);
}
