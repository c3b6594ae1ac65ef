//! Launches in launches: what is fetched around a launch comes to one processor of the group, once, and the others take
//! their parts from there.

use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType::I64;
use maniple_tensor::machine::Machine;
use maniple_tensor::notation::{IndexVariable, TensorVariable, parse_with_extents};
use maniple_tensor::placement::Placement;
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::ScheduleError;
use maniple_tensor::traffic::{Cause, Traffic};

const N: i64 = 8;

/// Rows over two groups; in each, columns over two processors, in four steps over the sum. All of C is fetched for the
/// group first if `around`.
fn plan(around: bool) -> Plan {
    let extents = ["i", "j", "k"].map(|name| (IndexVariable::new(name), N));
    let product = parse_with_extents("A(i,j) = B(i,k) * C(k,j)", I64, &extents).unwrap();
    let scheduled = || -> Result<Statement, ScheduleError> {
        let groups = Statement::new(&product).distribute(["i"], ["io"], ["ii"], &[2])?;
        let groups = if around { groups.communicate(["C"], "io")? } else { groups };
        let steps = groups.divide("k", "ko", "ki", 4)?.reorder(["ko", "j", "ii", "ki"])?;
        steps.distribute(["j"], ["jo"], ["ji"], &[2])?.communicate(["A", "B", "C"], "jo")
    };
    Plan::new(&scheduled().unwrap()).unwrap()
}

fn traffic(plan: &Plan, placements: [&str; 3]) -> Traffic {
    let machine: Machine = "2/2".parse().unwrap();
    let placed = ["A", "B", "C"].into_iter().zip(placements);
    let placed: Vec<(TensorVariable, Placement)> =
        placed.map(|(name, text)| (TensorVariable::new(name, I64, [N, N]), text.parse().unwrap())).collect();
    Traffic::new(plan, &machine, &placed).unwrap()
}

#[test]
fn what_is_fetched_around_a_launch_comes_once_and_before() {
    let places = ["xy -> x; xy -> y", "xy -> x; xy -> *", "xy -> 0; xy -> 0"];
    let of_c = |traffic: &Traffic| -> Vec<(i64, usize, usize, i64)> {
        let messages = traffic.messages().iter().filter(|message| traffic.tensors()[message.tensor].name() == "C");
        messages.map(|message| (message.step, message.from, message.to, message.elements)).collect()
    };
    // Each processor fetches its two rows by four columns for each step, from the one that has all of C or the other
    // group's.
    let apart = traffic(&plan(false), places);
    assert_eq!(of_c(&apart).len(), 4 * 3);
    assert!(of_c(&apart).iter().all(|(.., elements)| *elements == N));
    assert_eq!(apart.between(|processor| processor / 2), (2 * N * N / 2 * 8) as u64);
    // The first processor of the other group gets all of it before the first step; each neighbour its parts from its
    // group's first.
    let plan = plan(true);
    assert_eq!(plan.outer_fetches("C"), [&["io".into()][..]]);
    assert!(plan.outer_fetches("A").is_empty() && plan.outer_fetches("B").is_empty());
    let together = traffic(&plan, places);
    let mut expected = vec![(0, 0, 1, N), (0, 0, 2, N * N), (0, 2, 3, N)];
    expected.extend((1..4).flat_map(|step| [(step, 0, 1, N), (step, 2, 3, N)]));
    assert_eq!(of_c(&together), expected);
    assert_eq!(together.between(|processor| processor / 2), (N * N * 8) as u64);
    assert!(together.messages().iter().all(|message| message.cause == Cause::Fetch));
    // Beside its tiles of A and B, processor 2 has all of C.
    assert_eq!(together.memory()[2], ((N * N / 4 + N * N / 2 + N * N) * 8) as u64);
}
