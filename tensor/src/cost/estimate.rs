//! Estimates of the cost of a plan.

use super::rates::{Rates, weight};
use crate::bounds::{IterationsOf, RectangleOf};
use crate::notation::TensorVariable;
use crate::placement::{Along, Placed, Placement};
use crate::plan::{Plan, PlanOrder};
use crate::rectangle::Rectangle;
use crate::traffic::{Cause, Load, Loads, Sample, Traffic, points_of};

/// The estimated cost of a plan on a machine.
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

/// The work of one processor in each step.
#[derive(Clone, Default)]
struct Timeline {
    operations: f64,
    computing: Vec<f64>,
    /// Before each step, and after the last one.
    moving: Vec<f64>,
    before: f64,
    /// The bytes that are sent, and those that are received.
    bytes: (f64, f64),
}

impl Timeline {
    fn new(steps: usize) -> Self {
        Self { computing: vec![0.0; steps], moving: vec![0.0; steps + 1], ..Self::default() }
    }

    /// The time for computing, if each step stands for so many.
    fn computing(&self, weights: &[f64]) -> f64 {
        self.computing.iter().zip(weights).map(|(computing, weight)| computing * weight).sum()
    }

    /// The same for moving data.
    fn moving(&self, weights: &[f64]) -> f64 {
        self.before
            + self.moving.iter().zip(weights.iter().chain(&[1.0])).map(|(moving, weight)| moving * weight).sum::<f64>()
    }

    /// The time for all, if data is fetched while the step before computes, and a part of that is not noticed.
    fn seconds(&self, overlap: f64, weights: &[f64]) -> f64 {
        let last = self.computing.len().saturating_sub(1);
        let hidden = self.computing.iter().zip(weights).enumerate().map(|(step, (computing, weight))| {
            // What is sent after the last step waits for it. A step that stands for several is followed by one like it.
            let next = if *weight > 1.0 { step } else { step + 1 };
            if step == last { 0.0 } else { weight * overlap * computing.min(self.moving[next]) }
        });
        self.computing(weights) + self.moving(weights) - hidden.sum::<f64>()
    }
}

impl Estimate {
    /// Estimates the cost of `plan`, which moves `traffic` with these placements. If the traffic is
    /// [estimated](Traffic::estimated), so are operations, by the same processors and steps.
    pub fn new(plan: &Plan, traffic: &Traffic, placements: &[(TensorVariable, Placement)], rates: &Rates) -> Self {
        if !traffic.is_listed()
            && let Ok(loads) = Loads::new(plan, traffic.machine(), placements)
        {
            return Self::of_loads(plan, traffic, placements, &loads, rates);
        }
        let processors = traffic.machine().size();
        let steps: Sample = (0..traffic.steps().max(1)).map(|step| (step, 1.0)).collect();
        let mut timelines = vec![Timeline::new(steps.len()); processors];
        let leaves = Leaves::new(plan, rates);
        for (processor, timeline) in timelines.iter_mut().enumerate() {
            leaves.compute(&steps, processor, processors, timeline);
        }
        transfer(traffic, rates, &mut timelines);
        let copied = copies(traffic, placements);
        for (timeline, copied) in timelines.iter_mut().zip(&copied) {
            if *copied > 0 {
                timeline.before = *copied as f64 / rates.network + rates.latency;
            }
        }
        let (copied, messages) = (copied.iter().sum(), traffic.messages().len());
        Self { copied, messages, ..Self::of(plan, traffic, &timelines, &steps, rates.overlap) }
    }

    /// By what some processors do in some steps.
    fn of_loads(
        plan: &Plan,
        traffic: &Traffic,
        placements: &[(TensorVariable, Placement)],
        loads: &Loads,
        rates: &Rates,
    ) -> Self {
        let (leaves, size) = (Leaves::new(plan, rates), traffic.machine().size());
        let (mut timelines, mut messages) = (Vec::new(), 0.0);
        for (number, &(processor, weight)) in loads.processors.iter().enumerate() {
            let mut timeline = Timeline::new(loads.steps.len());
            leaves.compute(&loads.steps, processor as usize, size, &mut timeline);
            for (tensor, of) in &loads.of {
                let bytes = tensor.element().size() as f64;
                messages += weight * timeline.load(&of[number], bytes, &loads.steps, rates);
                if of[number].is_copy && tensor != &loads.of[0].0 {
                    timeline.before += of[number].placed * bytes / rates.network + rates.latency;
                }
            }
            timelines.push(timeline);
        }
        let operations = IterationsOf::new(&plan.statement, &[]).operations(&[]) as f64;
        // Each message has two ends.
        let (copied, messages) = (copied(traffic, placements), (messages / 2.0).round() as usize);
        Self { operations, copied, messages, ..Self::of(plan, traffic, &timelines, &loads.steps, rates.overlap) }
    }

    /// An estimate of what processors do in these steps, without copies and messages.
    fn of(plan: &Plan, traffic: &Traffic, timelines: &[Timeline], steps: &Sample, overlap: f64) -> Self {
        let most = |of: &dyn Fn(&Timeline) -> f64| timelines.iter().map(of).fold(0.0, f64::max);
        let weights: Vec<f64> = steps.iter().map(|(_, weight)| *weight).collect();
        Self {
            operations: timelines.iter().map(|timeline| timeline.operations).sum(),
            most_operations: most(&|timeline| timeline.operations),
            moved: traffic.bytes(),
            copied: 0,
            most_moved: most(&|timeline| timeline.bytes.0.max(timeline.bytes.1)).round() as u64,
            messages: 0,
            leaves: plan.order().steps() * plan.order().points(),
            memory: traffic.most_memory(),
            computing: most(&|timeline| timeline.computing(&weights)),
            moving: most(&|timeline| timeline.moving(&weights)),
            seconds: most(&|timeline| timeline.seconds(overlap, &weights)),
        }
    }
}

impl Timeline {
    /// Adds what a processor gets and sends of a tensor with so many bytes for each element. Gives the number of
    /// messages.
    fn load(&mut self, load: &Load, size: f64, steps: &Sample, rates: &Rates) -> f64 {
        let weights = steps.iter().map(|(_, weight)| *weight).chain([1.0]);
        let mut messages = 0.0;
        for (place, weight) in weights.enumerate() {
            let (sent, received) = (load.sent[place] * size, load.received[place] * size);
            self.bytes = (self.bytes.0 + weight * sent, self.bytes.1 + weight * received);
            self.moving[place] += (sent + received) / rates.network + load.messages[place] * rates.latency;
            messages += weight * load.messages[place];
        }
        messages
    }
}

/// The leaves of a plan, and the rates that give the time that they take.
struct Leaves {
    order: PlanOrder,
    iterations: IterationsOf,
    /// The part of each tensor that a leaf uses, and the number of bytes of an element.
    used: Vec<(RectangleOf, i64)>,
    /// Seconds for an operation, for a byte, and for a leaf.
    costs: (f64, f64, f64),
}

impl Leaves {
    fn new(plan: &Plan, rates: &Rates) -> Self {
        let leaf = plan.leaf();
        let used =
            |tensor: &TensorVariable| (plan.rectangles(tensor.name(), &leaf.fixed), tensor.element().size() as i64);
        let rate = if leaf.substituted.is_some() { rates.products } else { rates.loops };
        Self {
            order: plan.order(),
            iterations: IterationsOf::new(&plan.statement, &leaf.fixed),
            used: leaf.tensors.iter().map(used).collect(),
            costs: (weight(plan.statement.result().element()) / rate, 1.0 / rates.memory, rates.launch),
        }
    }

    /// Adds what one of so many processors does in these steps.
    fn compute(&self, steps: &Sample, processor: usize, processors: usize, timeline: &mut Timeline) {
        let (of_operation, of_byte, of_leaf) = self.costs;
        for (place, &(step, stands_for)) in steps.iter().enumerate() {
            for point in points_of(processor, self.order.points(), processors) {
                let values = self.order.values(step, point);
                let operations = self.iterations.operations(&values) as f64;
                let bytes: i64 = self.used.iter().map(|(part, size)| part.at(&values).volume() * size).sum();
                timeline.operations += operations * stands_for;
                timeline.computing[place] += (operations * of_operation).max(bytes as f64 * of_byte) + of_leaf;
            }
        }
    }
}

/// Adds what messages take, for the sender and for the receiver of each.
fn transfer(traffic: &Traffic, rates: &Rates, timelines: &mut [Timeline]) {
    for message in traffic.messages() {
        let place = message.step.max(0) as usize + usize::from(message.cause != Cause::Fetch);
        let time = message.bytes as f64 / rates.network + rates.latency;
        timelines[message.from].moving[place] += time;
        timelines[message.to].moving[place] += time;
        timelines[message.from].bytes.0 += message.bytes as f64;
        timelines[message.to].bytes.1 += message.bytes as f64;
    }
}

/// The bytes that had to be sent before, for all copies that placements keep but the first.
fn copied(traffic: &Traffic, placements: &[(TensorVariable, Placement)]) -> u64 {
    let result = &traffic.tensors()[0];
    let of = |(tensor, placement): &(TensorVariable, Placement)| {
        let along = placement.levels.iter().flat_map(|level| &level.grid).zip(traffic.machine().extents());
        let copies: usize = along.filter(|(along, _)| **along == Along::Broadcast).map(|(_, extent)| extent).product();
        Rectangle::whole(tensor.dimensions()).volume() as u64 * tensor.element().size() as u64 * (copies as u64 - 1)
    };
    placements.iter().filter(|(tensor, _)| tensor != result).map(of).sum()
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
