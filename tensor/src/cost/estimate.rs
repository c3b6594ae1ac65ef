//! What a plan costs.

use super::rates::{Rates, weight};
use crate::bounds::IterationsOf;
use crate::notation::TensorVariable;
use crate::placement::{Placed, Placement};
use crate::plan::Plan;
use crate::rectangle::Rectangle;
use crate::traffic::{Cause, Traffic, processor_of};

/// What a plan costs on a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Operations on elements, by all processors.
    pub operations: f64,
    /// The most operations of one processor.
    pub most_operations: f64,
    /// Bytes that are sent.
    pub moved: u64,
    /// Bytes that had to be sent before, for placements that keep copies.
    pub copied: u64,
    /// The most bytes that one processor sends or gets.
    pub most_moved: u64,
    /// Messages.
    pub messages: usize,
    /// Leaves that run: points times steps.
    pub leaves: i64,
    /// The most bytes that one processor has at a time.
    pub memory: u64,
    /// The time for computing, of the slowest processor.
    pub computing: f64,
    /// The time for moving data, of the slowest processor, were nothing else to do.
    pub moving: f64,
    /// The time for all.
    pub seconds: f64,
}

/// What one processor does in each step.
#[derive(Clone, Default)]
struct Timeline {
    operations: f64,
    computing: Vec<f64>,
    /// Before each step, and after the last one.
    moving: Vec<f64>,
    before: f64,
}

impl Timeline {
    /// The time for all, if data is fetched while the step before computes, and a part of that is not noticed.
    fn seconds(&self, overlap: f64) -> f64 {
        let last = self.computing.len().saturating_sub(1);
        let steps = self.computing.iter().zip(&self.moving[1..]).enumerate().map(|(step, (computing, moving))| {
            // What is sent after the last step waits for it.
            let hidden = if step == last { 0.0 } else { overlap * computing.min(*moving) };
            computing + moving - hidden
        });
        self.before + self.moving[0] + steps.sum::<f64>()
    }
}

impl Estimate {
    /// What `plan` costs, when `traffic` is what it moves with these placements.
    pub fn new(plan: &Plan, traffic: &Traffic, placements: &[(TensorVariable, Placement)], rates: &Rates) -> Self {
        let processors = traffic.machine().size();
        let steps = traffic.steps().max(1) as usize;
        let empty = Timeline { computing: vec![0.0; steps], moving: vec![0.0; steps + 1], ..Timeline::default() };
        let mut timelines = vec![empty; processors];
        let leaves = compute(plan, rates, &mut timelines);
        transfer(traffic, rates, &mut timelines);
        let copied = copies(traffic, placements);
        for (timeline, copied) in timelines.iter_mut().zip(&copied) {
            if *copied > 0 {
                timeline.before = *copied as f64 / rates.network + rates.latency;
            }
        }
        let most = |of: &dyn Fn(&Timeline) -> f64| timelines.iter().map(of).fold(0.0, f64::max);
        let (sent, received) = (traffic.sent(), traffic.received());
        Self {
            operations: timelines.iter().map(|timeline| timeline.operations).sum(),
            most_operations: most(&|timeline| timeline.operations),
            moved: traffic.bytes(),
            copied: copied.iter().sum(),
            most_moved: sent.into_iter().chain(received).max().unwrap_or(0),
            messages: traffic.messages().len(),
            leaves,
            memory: traffic.memory().iter().copied().max().unwrap_or(0),
            computing: most(&|timeline| timeline.computing.iter().sum()),
            moving: most(&|timeline| timeline.before + timeline.moving.iter().sum::<f64>()),
            seconds: most(&|timeline| timeline.seconds(rates.overlap)),
        }
    }
}

/// Adds what leaves take, and says how many there are.
fn compute(plan: &Plan, rates: &Rates, timelines: &mut [Timeline]) -> i64 {
    let (leaf, order) = (plan.leaf(), plan.order());
    let iterations = IterationsOf::new(&plan.statement, &leaf.fixed);
    let used: Vec<_> = leaf
        .tensors
        .iter()
        .map(|tensor| (plan.rectangles(tensor.name(), &leaf.fixed), tensor.element().size()))
        .collect();
    let rate = if leaf.product.is_some() || leaf.khatri_rao.is_some() { rates.products } else { rates.loops };
    let weight = weight(plan.statement.result().element());
    for step in 0..order.steps() {
        for point in 0..order.points() {
            let values = order.values(step, point);
            let operations = iterations.operations(&values) as f64;
            let bytes: i64 = used.iter().map(|(rectangles, size)| rectangles.at(&values).volume() * *size as i64).sum();
            let timeline = &mut timelines[processor_of(point, order.points(), timelines.len())];
            timeline.operations += operations;
            timeline.computing[step as usize] +=
                (operations * weight / rate).max(bytes as f64 / rates.memory) + rates.launch;
        }
    }
    order.steps() * order.points()
}

/// Adds what messages take, for who sends and for who gets them.
fn transfer(traffic: &Traffic, rates: &Rates, timelines: &mut [Timeline]) {
    for message in traffic.messages() {
        let place = message.step.max(0) as usize + usize::from(message.cause != Cause::Fetch);
        let time = message.bytes as f64 / rates.network + rates.latency;
        timelines[message.from].moving[place] += time;
        timelines[message.to].moving[place] += time;
    }
}

/// The bytes on each processor that are placed on one before too.
fn copies(traffic: &Traffic, placements: &[(TensorVariable, Placement)]) -> Vec<u64> {
    let mut sums = vec![0; traffic.machine().size()];
    let result = &traffic.tensors()[0];
    for (tensor, placement) in placements.iter().filter(|(tensor, _)| tensor != result) {
        let Ok(placed) = Placed::new(placement, &Rectangle::whole(tensor.dimensions()), traffic.machine()) else {
            continue;
        };
        let mut seen = std::collections::BTreeSet::new();
        for (sum, point) in sums.iter_mut().zip(traffic.machine().points()) {
            if placed.color(&point).is_some_and(|color| !seen.insert(color)) {
                *sum += placed.piece(&point).volume() as u64 * tensor.element().size() as u64;
            }
        }
    }
    sums
}
