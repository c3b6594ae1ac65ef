//! Tests of the checker with right and wrong records, one rule a test.

use crate::story;
use maniple_record::{Kind, Operation, OperationNumber, Usage, Value, Violation, check};
use maniple_region::Privilege;
use story::{DISCARD, READ, Story, WRITE, max, sum};

/// Returns the violation that the checker finds, in words.
fn wrong(story: &Story) -> String {
    check(&story.record).unwrap_err().to_string()
}

#[track_caller]
fn is_right(story: &Story) {
    check(&story.record).unwrap();
}

mod order {
    use super::*;

    #[test]
    fn a_reader_must_come_after_the_writer() {
        let mut story = Story::new();
        let memory = story.instance(&story.whole.clone());
        let whole = story.whole.clone();
        story.leaf("write", &[(&whole, DISCARD, memory)], []);
        let read = story.leaf("read", &[(&whole, READ, memory)], []);
        assert_eq!(
            wrong(&story),
            "task `write` (operation 1) and task `read` (operation 2) both use `charge` of region `nodes` at {(0)..=(9)} in instance 0, \
             one of them changes it, and neither was made to wait for the other"
        );
        story.record.operations[read.0 as usize].after.push(OperationNumber(1));
        is_right(&story);
    }

    #[test]
    fn a_writer_must_come_after_all_readers_but_these_need_no_order() {
        let mut story = Story::new();
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        let write = story.leaf("write", &[(&whole, DISCARD, memory)], []);
        let reads = [(); 3].map(|()| story.leaf("read", &[(&whole, READ, memory)], [write]));
        let last = story.leaf("last", &[(&whole, WRITE, memory)], reads);
        assert_eq!(check(&story.record).unwrap().pairs, 7);
        story.record.operations[last.0 as usize].after.remove(1);
        assert!(wrong(&story).starts_with("task `read` (operation 3) and task `last` (operation 5) both use `charge`"));
    }

    #[test]
    fn an_order_by_way_of_others_will_do() {
        let mut story = Story::new();
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        let write = story.leaf("write", &[(&whole, DISCARD, memory)], []);
        let join = story.push(Kind::Join, [write]);
        let between = story.leaf("nothing", &[], [join]);
        story.leaf("read", &[(&whole, READ, memory)], [between]);
        is_right(&story);
    }

    #[test]
    fn tasks_with_no_point_in_common_need_no_order() {
        let mut story = Story::new();
        let (memory, left, right) = (story.instance(&story.whole.clone()), story.left.clone(), story.right.clone());
        story.leaf("write", &[(&left, DISCARD, memory)], []);
        story.leaf("write", &[(&right, DISCARD, memory)], []);
        assert_eq!(check(&story.record).unwrap().pairs, 0);
    }

    #[test]
    fn reducers_into_one_buffer_must_take_turns_and_into_two_need_not() {
        let mut story = Story::new();
        let whole = story.whole.clone();
        let buffers = [(); 2].map(|()| story.buffer(&whole, sum()));
        let add = story.leaf("add", &[(&whole, Privilege::Reduce(sum()), buffers[0])], []);
        story.leaf("add", &[(&whole, Privilege::Reduce(sum()), buffers[1])], []);
        is_right(&story);
        let third = story.leaf("add", &[(&whole, Privilege::Reduce(sum()), buffers[0])], []);
        assert!(matches!(check(&story.record), Err(Violation::Unordered { .. })));
        story.record.operations[third.0 as usize].after.push(add);
        is_right(&story);
    }

    #[test]
    fn a_circle_is_named() {
        let mut story = Story::new();
        let task = story.leaf("inner", &[], []);
        let join = story.push(Kind::Join, [task, OperationNumber(3)]);
        story.push(Kind::End { task }, [join]);
        assert_eq!(
            wrong(&story),
            "these wait for each other, each for the one before: the end of task `inner` (operation 3), a join (operation 2)"
        );
    }

    #[test]
    fn only_ends_and_joins_come_after_what_is_issued_later() {
        let mut story = Story::new();
        story.leaf("early", &[], [OperationNumber(2)]);
        story.leaf("late", &[], []);
        assert!(matches!(check(&story.record), Err(Violation::Malformed { .. })));
        story.record.operations[1].kind = Kind::Join;
        is_right(&story);
    }

    #[test]
    fn a_record_that_ended_too_early_proves_nothing() {
        let mut story = Story::new();
        story.push(Kind::Join, [OperationNumber(7)]);
        assert!(wrong(&story).ends_with("it comes after operation 7, which is missing: the record ended too early"));
    }

    #[test]
    fn a_record_of_which_part_is_missing_proves_nothing() {
        let mut story = Story::new();
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        let caller = story.place();
        let caller = story.task((caller, "caller", false), &[], []);
        // What brings the values of the task's own instance home is not on record yet.
        story.leaf("read", &[(&whole, READ, memory)], [caller]);
        story.record.unfinished.insert(caller);
        assert!(wrong(&story).starts_with("task `caller` (operation 1) was under way when the record was taken"));
        assert!(story.record.to_string().contains("1: task `caller`, unfinished, after"), "{}", story.record);
    }

    #[test]
    fn what_an_earlier_record_holds_has_ended() {
        let mut story = Story::new();
        story.record.first_operation = OperationNumber(100);
        story.parent = OperationNumber(100);
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        story.leaf("write", &[(&whole, DISCARD, memory)], [OperationNumber(99), OperationNumber(100)]);
        story.leaf("read", &[(&whole, READ, memory)], [OperationNumber(101)]);
        is_right(&story);
    }

    #[test]
    fn tasks_that_interfere_are_mapped_in_program_order() {
        let mut story = Story::new();
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        let [early, late] = [(); 2].map(|()| story.place());
        let first = story.task((late, "late", true), &[(&whole, DISCARD, memory)], []);
        story.task((early, "early", true), &[(&whole, DISCARD, memory)], [first]);
        assert_eq!(
            wrong(&story),
            "task `late` (operation 1) was mapped before task `early` (operation 2), which comes earlier in program order and uses the \
             same `charge` of region `nodes` at {(0)..=(9)}"
        );
    }
}

mod values {
    use super::*;

    #[test]
    fn a_reader_must_find_what_the_last_writer_wrote() {
        let mut story = Story::new();
        let whole = story.whole.clone();
        let [here, there] = [(); 2].map(|()| story.instance(&whole));
        let first = story.leaf("first", &[(&whole, DISCARD, here)], []);
        let copy = story.copy((here, there), 0..10, [first]);
        let second = story.leaf("second", &[(&whole, WRITE, here)], [first, copy]);
        let read = story.leaf("read", &[(&whole, READ, there)], [copy, second]);
        assert_eq!(
            wrong(&story),
            "task `read` (operation 4) reads `charge` of region `nodes` at {(0)..=(9)} in instance 1 and finds what task `first` \
             (operation 1) made; by program order it should find what task `second` (operation 3) made"
        );
        // Copied again, it does.
        let again = story.copy((here, there), 0..10, [copy, second]);
        story.record.operations.swap(read.0 as usize, again.0 as usize);
        story.record.operations[again.0 as usize].after = vec![read];
        is_right(&story);
    }

    #[test]
    fn a_copy_must_have_all_points() {
        let mut story = Story::new();
        let whole = story.whole.clone();
        let [here, there] = [(); 2].map(|()| story.instance(&whole));
        let write = story.leaf("write", &[(&whole, DISCARD, here)], []);
        let copy = story.copy((here, there), 0..9, [write]);
        story.leaf("read", &[(&whole, READ, there)], [copy]);
        let wrong = wrong(&story);
        assert!(wrong.contains("at {(9)..=(9)} in instance 1 and finds what was never written"), "{wrong}");
    }

    #[test]
    fn what_nobody_wrote_is_zero() {
        let mut story = Story::new();
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        let fill = story.fill((Value::Initial, memory), 0..10, []);
        story.leaf("read", &[(&whole, READ, memory)], [fill]);
        is_right(&story);
    }

    #[test]
    fn an_instance_must_be_filled_with_the_value_that_the_region_was_given_last() {
        let mut story = Story::new();
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        let (first, second) = (story.fill_region(), story.fill_region());
        let fill = story.fill((Value::Of(second), memory), 0..10, []);
        story.leaf("read", &[(&whole, READ, memory)], [fill]);
        is_right(&story);
        let part = story.part(0..10);
        story.record.operations[fill.0 as usize].kind =
            Kind::Fill { cause: None, to: memory, parts: vec![(part, Value::Of(first))] };
        assert!(matches!(check(&story.record), Err(Violation::WrongVersion { .. })));
    }

    #[test]
    fn who_discards_may_find_anything() {
        let mut story = Story::new();
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        let write = story.leaf("write", &[(&whole, DISCARD, memory)], []);
        story.leaf("read", &[(&whole, READ, memory)], [write]);
        is_right(&story);
    }

    #[test]
    fn children_come_where_their_parent_stands_in_program_order() {
        let mut story = Story::new();
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        let (place, later) = (story.place(), story.place());
        let parent = story.task((place, "parent", false), &[(&whole, WRITE, memory)], []);
        let end = story.push(Kind::End { task: parent }, [parent]);
        let reader = story.task((later, "reader", true), &[(&whole, READ, memory)], [end]);
        // Launched last of all, but within the parent.
        story.parent = parent;
        let child = story.leaf("child", &[(&whole, DISCARD, memory)], [parent]);
        assert!(matches!(check(&story.record), Err(Violation::Unordered { .. })));
        story.record.operations[end.0 as usize].after.push(child);
        is_right(&story);
        assert_eq!(reader.0, 3);
    }

    #[test]
    fn what_was_lost_may_be_anything_until_it_is_written_again() {
        let mut story = Story::new();
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        let place = story.place();
        let usage =
            Usage { region: whole.clone(), fields: story.charge.clone(), privilege: WRITE, instances: Vec::new() };
        story.push(Kind::Lost { place, usages: vec![usage] }, []);
        story.leaf("read", &[(&whole, READ, memory)], []);
        is_right(&story);
    }

    #[test]
    fn a_task_needs_an_instance_with_room() {
        let mut story = Story::new();
        let (small, whole) = (story.instance(&story.left.clone()), story.whole.clone());
        story.leaf("write", &[(&whole, DISCARD, small)], []);
        assert!(wrong(&story).ends_with("instance 0 has no room for region `nodes`"), "{}", wrong(&story));
        let Operation { kind: Kind::Task(task), .. } = &mut story.record.operations[1] else { unreachable!() };
        task.usages[0].instances.clear();
        assert!(wrong(&story).ends_with("no instance holds its field `charge`"), "{}", wrong(&story));
    }
}

mod reductions {
    use super::*;
    use maniple_mapper::InstanceId;

    /// A region that was written, two buffers with contributions, and nothing that applies them.
    fn pending(operators: [maniple_region::OperatorId; 2]) -> (Story, InstanceId, [InstanceId; 2]) {
        let mut story = Story::new();
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        story.leaf("write", &[(&whole, DISCARD, memory)], []);
        let buffers = operators.map(|operator| {
            let buffer = story.buffer(&whole, operator);
            story.leaf("reduce", &[(&whole, Privilege::Reduce(operator), buffer)], []);
            buffer
        });
        (story, memory, buffers)
    }

    const WRITER: OperationNumber = OperationNumber(1);
    const REDUCERS: [OperationNumber; 2] = [OperationNumber(2), OperationNumber(3)];

    #[test]
    fn contributions_by_one_operator_are_applied_in_any_order() {
        for order in [[0, 1], [1, 0]] {
            let (mut story, memory, buffers) = pending([sum(), sum()]);
            let first = story.apply((buffers[order[0]], sum(), memory), [WRITER, REDUCERS[0], REDUCERS[1]]);
            let second = story.apply((buffers[order[1]], sum(), memory), [first]);
            let whole = story.whole.clone();
            story.leaf("read", &[(&whole, READ, memory)], [second]);
            assert_eq!(check(&story.record).unwrap().contributions, 4);
        }
    }

    #[test]
    fn contributions_by_several_operators_are_applied_in_program_order() {
        for (order, is_right) in [([0, 1], true), ([1, 0], false)] {
            let operators = [sum(), max()];
            let (mut story, memory, buffers) = pending(operators);
            let apply = |number: usize| (buffers[order[number]], operators[order[number]], memory);
            let first = story.apply(apply(0), [WRITER, REDUCERS[0], REDUCERS[1]]);
            let second = story.apply(apply(1), [first]);
            let whole = story.whole.clone();
            story.leaf("read", &[(&whole, READ, memory)], [second]);
            assert_eq!(check(&story.record).is_ok(), is_right, "{order:?}");
        }
    }

    #[test]
    fn every_contribution_must_have_been_applied_when_somebody_looks() {
        let (mut story, memory, buffers) = pending([sum(), sum()]);
        let only = story.apply((buffers[0], sum(), memory), [WRITER, REDUCERS[0]]);
        let whole = story.whole.clone();
        story.leaf("read", &[(&whole, READ, memory)], [only]);
        let wrong = wrong(&story);
        assert!(
            wrong.contains(
                "finds what task `write` (operation 1) made, reduced by Sum by task `reduce` (operation 2); by program order it should \
                 find what task `write` (operation 1) made, reduced by Sum by task `reduce` (operation 2) and task `reduce` (operation 3)"
            ),
            "{wrong}"
        );
    }

    #[test]
    fn no_contribution_is_applied_twice() {
        let (mut story, memory, buffers) = pending([sum(), sum()]);
        let once = story.apply((buffers[0], sum(), memory), [WRITER, REDUCERS[0]]);
        story.apply((buffers[0], sum(), memory), [once]);
        let wrong = wrong(&story);
        assert!(wrong.ends_with("what task `reduce` (operation 2) contributes is in it already"), "{wrong}");
    }

    #[test]
    fn a_buffer_is_emptied_before_it_is_used_again() {
        let (mut story, memory, buffers) = pending([sum(), sum()]);
        let whole = story.whole.clone();
        let once = story.apply((buffers[0], sum(), memory), [WRITER, REDUCERS[0]]);
        let part = story.part(0..10);
        let refill = story.push(Kind::Refill { cause: None, buffer: buffers[0], part }, [once]);
        let more = story.leaf("more", &[(&whole, Privilege::Reduce(sum()), buffers[0])], [refill]);
        story.apply((buffers[0], sum(), memory), [more, once]);
        is_right(&story);
        story.record.operations[refill.0 as usize].kind = Kind::Join;
        assert!(matches!(check(&story.record), Err(Violation::Misapplied { .. })));
    }

    #[test]
    fn what_is_in_no_buffer_is_not_applied() {
        let mut story = Story::new();
        let whole = story.whole.clone();
        let [from, to] = [(); 2].map(|()| story.instance(&whole));
        let write = story.leaf("write", &[(&whole, DISCARD, from)], []);
        story.apply((from, sum(), to), [write]);
        assert!(wrong(&story).ends_with("the buffer holds no contributions of this operator"), "{}", wrong(&story));
    }

    #[test]
    fn one_buffer_may_be_folded_into_another() {
        let (mut story, memory, buffers) = pending([sum(), sum()]);
        let whole = story.whole.clone();
        let folded = story.apply((buffers[0], sum(), buffers[1]), REDUCERS);
        let applied = story.apply((buffers[1], sum(), memory), [folded, WRITER]);
        story.leaf("read", &[(&whole, READ, memory)], [applied]);
        is_right(&story);
    }

    #[test]
    fn a_reduction_in_place_changes_the_values() {
        let mut story = Story::new();
        let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
        let write = story.leaf("write", &[(&whole, DISCARD, memory)], []);
        let reduce = story.leaf("reduce", &[(&whole, Privilege::Reduce(sum()), memory)], [write]);
        let read = story.leaf("read", &[(&whole, READ, memory)], [reduce]);
        is_right(&story);
        story.record.operations[read.0 as usize].after = vec![write];
        assert!(matches!(check(&story.record), Err(Violation::Unordered { .. })));
    }
}
