//! Results of which it is not known before how much they store, assembled by the points of a launch.
//!
//! The rows of a result are dealt to the points. A first launch counts the elements of each row; each point tells how
//! many it has, and the sums of these are where each point's elements begin. Then there is room for all of them, and a
//! second launch writes them: coordinates, elements, and where each row begins (the two phases of Chou, Kjolstad,
//! Amarasinghe, PLDI 2020, between whose halves SpDISTAL, SC 2022, section 5.2, has a scan). On any number of nodes the
//! result is stored alike, and nothing of it leaves the node that makes it.
//!
//! Loops inside of the launch that fetch something give a launch for each of their steps, which has rows of its own.
//!
//! This applies to a compressed level below dense ones. A result that has other levels is assembled in
//! [blocks](super::blocks).

use std::sync::Arc;

use bytemuck::AnyBitPattern;
use maniple::task::{LeafCall, TaskDefinition};
use maniple::{Context, FieldId, FieldMask, FutureMap, Privilege, Requirement, Target, TaskLauncher};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::computation::{Preparation, find};
use super::divisors::checking;
use super::error::DistributedError;
use super::fetch::Fetching;
use super::fields::{ElementRow, Required, field_type, index_type, is_narrow, only, updated};
use super::leaf::{Kernel, MadeViews, run_leaf};
use super::levels::{Component, Levels, components};
use super::mapper::passing;
use super::packing::{Blocks, set_all, task};
use super::pending::Pending;
use super::tensor::Tensor;
use crate::element::ElementType;
use crate::format::Level;
use crate::lower::{Appending, Output};
use crate::plan::{GraphOperation, Launching, Plan};
use crate::storage::Number;

/// The result of a plan that its points assemble, of which it is not known before how much is stored. Where a
/// compressed level is below dense ones, this waits until all elements are counted, and not until they are computed;
/// where other levels are, until it is known how many positions these have.
///
/// # Errors
///
/// As of [`Computation::new`](super::Computation::new); [`DistributedError::InPlace`] if the plan's result is there
/// before, [`DistributedError::Rows`].
pub fn assemble<'a>(cx: &'a Context, plan: &'a Arc<Plan>, tensors: &'a [&'a Tensor]) -> Pending<'a, Tensor> {
    Box::pin(async move { run(cx, plan, tensors, false).await })
}

/// The same in little memory: after each step of a loop that fetches something, nodes [forget](Context::forget_copies)
/// what they got from others for this step alone, and a step begins when the one before the last has ended. All steps
/// run twice, and move what they use each time: the first time elements are counted, the second time they are written.
///
/// # Errors
///
/// As of [`assemble`].
pub fn assemble_in_steps<'a>(cx: &'a Context, plan: &'a Arc<Plan>, tensors: &'a [&'a Tensor]) -> Pending<'a, Tensor> {
    Box::pin(async move { run(cx, plan, tensors, true).await })
}

async fn run(cx: &Context, plan: &Arc<Plan>, tensors: &[&Tensor], forgets: bool) -> Result<Tensor, DistributedError> {
    let result = plan.statement.result();
    let name = || result.name().to_owned();
    if plan.leaf().output != Output::Entries {
        return Err(DistributedError::InPlace { tensor: name() });
    }
    for divisor in &plan.statement.divisors {
        if let Some((domain, launcher)) = checking(cx, find(tensors, divisor)?)? {
            cx.index_launch(domain, launcher.typed::<()>()).await?;
        }
    }
    let (graph, preparation) = Preparation::new(cx, std::slice::from_ref(plan), tensors).await?;
    let Some(launching) = assembling(&graph.operations) else {
        return Err(DistributedError::InPlace { tensor: name() });
    };
    let is_in_rows = Appending::new(&plan.statement).is_some_and(|appending| appending.is_in_rows());
    let assembly = Assembly::new(cx, &preparation, launching, forgets, is_in_rows)?;
    match is_in_rows {
        true => assembly.run().await,
        false => assembly.run_in_blocks().await,
    }
}

/// The launch whose points assemble the result, at each step.
fn assembling(operations: &[GraphOperation]) -> Option<&Launching> {
    operations.iter().find_map(|operation| match operation {
        GraphOperation::Launch(launching) => Some(launching).filter(|launching| launching.runs_leaf),
        GraphOperation::Loop { body, .. } => assembling(body),
        _ => None,
    })
}

/// A function that gives the requirements of points beside operands, by the blocks of their turns.
pub(super) type Given<'a> = dyn Fn(&Blocks<'_>) -> Vec<Requirement> + Sync + 'a;

/// An assembly. Each point has a *turn* at each step: turns are numbered point by point.
pub(super) struct Assembly<'a> {
    pub(super) preparation: &'a Preparation<'a>,
    pub(super) launching: &'a Launching,
    /// Whether nodes forget what they got from others for a step alone.
    forgets: bool,
    /// The rows of each turn, or the block of coordinates of the outermost level. There is a point of it for each turn.
    pub(super) blocks: Blocks<'a>,
    /// How many rows there are.
    parents: i64,
    /// Whether coordinates have 32 bits.
    pub(super) is_narrow: bool,
}

impl<'a> Assembly<'a> {
    fn new(
        cx: &'a Context,
        preparation: &'a Preparation<'a>,
        launching: &'a Launching,
        forgets: bool,
        is_in_rows: bool,
    ) -> Result<Self, DistributedError> {
        let plan = &launching.plan;
        let result = plan.statement.result();
        let colors = Arc::new(plan.rectangles(result.name(), &plan.leaf().fixed).colors());
        let (order, dimensions) = (result.format().order(), result.dimensions());
        let dense = result.format().levels().iter().take_while(|level| **level == Level::Dense).count();
        // The levels whose positions are there whatever is computed: their rows, or blocks of the first.
        let leading = &order[..if is_in_rows { order.len() - 1 } else { 1 }];
        let parents = order[..dense].iter().try_fold(1_i64, |rows, &mode| rows.checked_mul(dimensions[mode]));
        let parents = parents.filter(|rows| *rows < i64::MAX / size_of::<i64>() as i64);
        let parents = parents.ok_or_else(|| DistributedError::ManyRows { tensor: result.name().to_owned() })?;
        let parts = (0..colors.count()).map(|color| {
            let parts = colors.parts(color);
            let bounds: Vec<Vec<(i64, i64)>> =
                parts.iter().filter(|part| !part.is_empty()).map(|part| part.bounds().collect()).collect();
            match &bounds[..] {
                [] => Some((0, 0)),
                [bounds] => contiguous(leading, bounds, dimensions),
                _ => None,
            }
        });
        let parts: Option<Vec<(i64, i64)>> = parts.collect();
        let parts = parts.ok_or_else(|| DistributedError::Rows { tensor: result.name().to_owned() })?;
        let is_narrow = is_narrow(dimensions);
        let order = Arc::clone(&launching.order);
        let (steps, turns) = (order.steps().max(1), order.points() * order.steps());
        let of_point = Arc::new(move |turn| colors.at(&order.values(turn % steps, turn / steps)));
        let blocks = Blocks { cx, points: turns, of_point, parts };
        Ok(Self { preparation, launching, forgets, blocks, parents, is_narrow })
    }

    async fn run(&self) -> Result<Tensor, DistributedError> {
        let (plan, blocks, cx) = (&self.launching.plan, &self.blocks, self.blocks.cx);
        let index = index_type(self.is_narrow);
        let [counts] =
            made(components(cx, self.parents as usize, &[("counts", field_type(ElementType::I64), ElementType::I64)])?);
        let by_rows = blocks.partition(&counts, &blocks.parts)?;
        let counting = self.counting_rows(self.kernel(Output::Counts, index)?, counts.field);
        let given = |blocks: &Blocks<'_>| vec![blocks.own(&by_rows, counts.field, Privilege::Discard)];
        let totals = self.in_steps(&counting, &given).await?;
        let (intervals, total) = blocks.intervals(&totals);

        let is_narrow = self.is_narrow && i32::try_from(total).is_ok();
        if is_narrow != self.is_narrow {
            // Positions need more than 32 bits.
            cx.destroy_region(&counts.region)?;
            return Box::pin(Self { is_narrow, blocks: blocks.clone(), ..*self }.run()).await;
        }
        let result = plan.statement.result();
        let dense = result.format().levels().iter().zip(result.format().order());
        let positions = dense.scan(1_usize, |rows, (level, &mode)| {
            *rows = if *level == Level::Dense { *rows * result.dimensions()[mode] as usize } else { total as usize };
            Some(*rows)
        });
        let positions: Vec<usize> = positions.collect();
        let levels = Levels::with_room(cx, result.element(), is_narrow, result.format().levels(), positions)?;
        let last = result.format().rank() - 1;
        let (Some(pos), Some(crd)) = (levels.offsets(last), levels.coordinates(last)) else {
            return Err(DistributedError::InPlace { tensor: result.name().to_owned() });
        };
        let values = levels.values();
        // Where the last row ends; where rows begin is written by the points.
        set_all(cx, pos, total)?;
        let starts: Vec<i64> = intervals.iter().map(|(start, _)| *start).collect();
        let (of_rows, of_elements) = (blocks.partition(pos, &blocks.parts)?, blocks.partition(crd, &intervals)?);
        let fields = [&counts, pos, crd, values].map(|component| (component.field, component.element));
        let task = self.writing_rows(self.kernel(Output::Entries, index)?, fields, Arc::from(starts));
        let both = FieldMask::of(crd.field).union(&FieldMask::of(values.field));
        let given = |blocks: &Blocks<'_>| {
            let elements = Target::Partition(of_elements.clone(), blocks.projection());
            vec![
                blocks.own(&by_rows, counts.field, Privilege::Read),
                blocks.own(&of_rows, pos.field, Privilege::Discard),
                Requirement::new(elements, both.clone(), Privilege::Discard),
            ]
        };
        let _launched = self.launch_steps::<i64>(&task, &given).await?;
        cx.destroy_region(&counts.region)?;
        Tensor::in_levels(result, levels)
    }

    /// The kernel that counts, or writes coordinates of a type.
    pub(super) fn kernel(&self, output: Output, of_coordinates: ElementType) -> Result<Kernel, DistributedError> {
        let plan = &self.launching.plan;
        let is_narrow = |name: &str| match name == plan.statement.result().name() {
            true => of_coordinates == ElementType::I32,
            false => self.preparation.is_narrow(self.launching, name),
        };
        let made = if output == Output::Counts { plan.counting(&is_narrow) } else { plan.kernel(&is_narrow) };
        self.preparation.called(self.launching, &made.kernel, &made.slots)
    }

    /// The task that counts the elements of each row, and gives how many there are of all.
    fn counting_rows(&self, kernel: Kernel, counts: FieldId) -> Arc<TaskDefinition> {
        let leaf = self.leaf(kernel);
        let first = self.launching.fetches.len();
        self.task("count", move |call| {
            let mut counts = call.write::<i64, 1>(first, counts)?;
            let Some(rows) = only(counts.space().rects()) else { return Ok(0_i64) };
            let mut counts = counts.span_mut(rows);
            counts.fill(0);
            leaf(call, MadeViews { next: Some(updated(&mut counts, rows)?), ..MadeViews::default() })?;
            Ok(counts.iter().sum())
        })
    }

    /// The task that writes the elements of each row, given their numbers, and where it begins.
    fn writing_rows(
        &self,
        kernel: Kernel,
        [counts, pos, crd, values]: [(FieldId, ElementType); 4],
        starts: Arc<[i64]>,
    ) -> Arc<TaskDefinition> {
        let (leaf, color) = (self.leaf(kernel), self.color());
        let first = self.launching.fetches.len();
        let required = move |place, (field, element)| Required { requirement: first + place, field, element };
        self.task("assemble", move |call| {
            let counts = call.read::<i64, 1>(first, counts.0)?;
            let Some(rows) = only(counts.space().rects()) else { return Ok(0_i64) };
            let start = starts[color(call)?];
            let mut next: Vec<i64> = counts.span(rows).to_vec();
            let mut end = start;
            for count in &mut next {
                (*count, end) = (end, end + *count);
            }
            required(1, pos).set_numbers(call, &next)?;
            let segments: Vec<i64> = next.iter().chain([&end]).map(|begin| begin - start).collect();
            let (index, crd, values) = (crd.1, required(2, crd), required(2, values));
            let Some(elements) = crd.only(call)? else { return Ok(0) };
            let (mut crd, mut values) = (crd.write(call)?, values.write(call)?);
            let (mut crd, mut values) = (crd.row(elements), values.row(elements));
            let made = MadeViews {
                next: Some(updated(&mut next, rows)?),
                coordinates: vec![Some(crd.argument()?)],
                values: Some(values.argument()?),
            };
            leaf(call, made)?;
            match index {
                ElementType::I32 => sort_segments::<i32>(&segments, &mut *crd, &mut *values),
                _ => sort_segments::<i64>(&segments, &mut *crd, &mut *values),
            }
            Ok(end - start)
        })
    }

    /// A function that runs a kernel for a turn.
    pub(super) fn leaf(
        &self,
        kernel: Kernel,
    ) -> impl Fn(&LeafCall<'_>, MadeViews<'_>) -> maniple::Result<()> + Send + Sync + 'static {
        let (plan, order) = (Arc::clone(&self.launching.plan), Arc::clone(&self.launching.order));
        let points = (order.points() as usize).div_ceil(self.blocks.cx.nodes());
        move |call, made| {
            let values = order.values(*call.arguments::<i64>()?, call.point().coords()[0]);
            run_leaf(call, &plan, &values, &kernel, points, made)
        }
    }

    /// A function that gives the number of the block of a turn.
    pub(super) fn color(&self) -> impl Fn(&LeafCall<'_>) -> maniple::Result<usize> + Send + Sync + 'static {
        let (of_point, steps) = (Arc::clone(&self.blocks.of_point), self.steps());
        move |call| Ok(of_point(call.point().coords()[0] * steps + *call.arguments::<i64>()?) as usize)
    }

    fn steps(&self) -> i64 {
        self.launching.order.steps()
    }

    /// The points of a step, with the blocks of their turns.
    fn at(&self, step: i64) -> Blocks<'a> {
        let (of_turn, steps) = (Arc::clone(&self.blocks.of_point), self.steps());
        let of_point = Arc::new(move |point: i64| of_turn(point * steps + step));
        Blocks { points: self.launching.order.points(), of_point, ..self.blocks.clone() }
    }

    pub(super) fn task<R: Serialize + DeserializeOwned + Send + Sync + 'static>(
        &self,
        what: &str,
        run: impl Fn(&LeafCall<'_>) -> maniple::Result<R> + Send + Sync + 'static,
    ) -> Arc<TaskDefinition> {
        task(what, self.launching.plan.statement.result(), run)
    }

    /// Launches a task at each step, with what operands points are given then, and what follows from the blocks of
    /// their turns: what each turn gives.
    pub(super) async fn in_steps<R: Clone + Send + Sync + 'static>(
        &self,
        task: &Arc<TaskDefinition>,
        given: &Given<'_>,
    ) -> Result<Vec<R>, DistributedError> {
        let mut of_steps = Vec::new();
        for launched in self.launch_steps::<R>(task, given).await? {
            of_steps.push(launched.all().await?.into_iter());
        }
        let points = self.launching.order.points();
        Ok((0..points).flat_map(|_| of_steps.iter_mut().filter_map(Iterator::next).collect::<Vec<R>>()).collect())
    }

    /// The same, of which no more than two steps are under way at a time if nodes forget what they got for one.
    async fn launch_steps<R: Clone + Send + Sync + 'static>(
        &self,
        task: &Arc<TaskDefinition>,
        given: &Given<'_>,
    ) -> Result<Vec<FutureMap<R>>, DistributedError> {
        let (cx, mut launched) = (self.blocks.cx, Vec::<FutureMap<R>>::new());
        let mut fetches = self.preparation.fetches(self.launching);
        let passed = fetches.iter().map(Fetching::passes).enumerate().filter(|_| self.forgets);
        let passed: Vec<_> = passed.filter_map(|(number, passed)| Some((number, passed?))).collect();
        let tag = passing(passed.iter().map(|(number, _)| *number));
        for step in 0..self.steps() {
            let blocks = self.at(step);
            let operands = fetches.iter_mut().map(|fetching| Ok(fetching.requirement(step)?.1));
            let operands = operands.collect::<Result<Vec<_>, DistributedError>>()?;
            let all = operands.into_iter().chain(given(&blocks));
            let launcher = all.fold(TaskLauncher::new(task), TaskLauncher::requirement).arguments(step).tag(tag);
            launched.push(cx.index_launch(blocks.domain(), launcher.typed::<R>()));
            passed.iter().try_for_each(|(_, (region, fields))| cx.forget_copies(region, fields))?;
            if self.forgets
                && let [.., before, _] = &launched[..]
            {
                before.all().await?;
            }
        }
        Ok(launched)
    }
}

/// Sorts the entries of each segment by their coordinates.
fn sort_segments<C: Number + AnyBitPattern>(
    segments: &[i64],
    coordinates: &mut dyn ElementRow,
    values: &mut dyn ElementRow,
) {
    let (mut keys, mut order) = (Vec::new(), Vec::new());
    for segment in segments.windows(2) {
        let first = segment[0] as usize;
        let own: &[C] = &bytemuck::cast_slice(coordinates.bytes())[first..segment[1] as usize];
        if own.is_sorted() {
            continue;
        }
        keys.clear();
        keys.extend(own.iter().zip(0..).map(|(&coordinate, place)| coordinate.key(place)));
        keys.sort_unstable();
        order.clear();
        order.extend(keys.iter().map(|&key| C::place(key)));
        coordinates.reorder(first, &order);
        values.reorder(first, &order);
    }
}

/// As many components as were asked for.
pub(super) fn made<const N: usize>(components: Vec<Component>) -> [Component; N] {
    components.try_into().unwrap_or_else(|_| unreachable!("there is a component for each field"))
}

/// The numbers of rows that have these coordinates in the leading dimensions, if they follow one another.
fn contiguous(leading: &[usize], bounds: &[(i64, i64)], dimensions: &[i64]) -> Option<(i64, i64)> {
    let mut rows = (0, 1);
    for &mode in leading {
        let ((low, high), extent) = (bounds[mode], dimensions[mode]);
        rows = match rows {
            (first, end) if end - first == 1 => (first * extent + low, first * extent + high),
            (first, end) if (low, high) == (0, extent) => (first * extent, end * extent),
            _ => return None,
        };
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of memory.
    struct Numbers<T>(Vec<T>);

    impl<T: crate::element::Element> ElementRow for Numbers<T> {
        fn bytes(&self) -> &[u8] {
            bytemuck::cast_slice(&self.0)
        }

        fn set(&mut self, _: &[usize], _: &[u8]) {}

        fn reorder(&mut self, first: usize, order: &[usize]) {
            let before = self.0.clone();
            order.iter().zip(first..).for_each(|(from, to)| self.0[to] = before[first + from]);
        }

        fn argument(&mut self) -> maniple::Result<crate::kernel::Argument<'_>> {
            updated(&mut self.0, maniple::space::Rect::from(0..1))
        }
    }

    #[test]
    fn segments_are_sorted_by_their_coordinates_and_equal_ones_keep_their_order() {
        let (segments, values) = ([0, 3, 3, 5, 8], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let (mut narrow, mut wide) = (Numbers(vec![5, 0, 2, 0, 1, 4, 4, 3]), Numbers(vec![5_i64, 0, 2, 0, 1, 4, 4, 3]));
        let (mut of_narrow, mut of_wide) = (Numbers(values.to_vec()), Numbers(values.to_vec()));
        sort_segments::<i32>(&segments, &mut narrow, &mut of_narrow);
        sort_segments::<i64>(&segments, &mut wide, &mut of_wide);
        assert_eq!(narrow.0, [0, 2, 5, 0, 1, 3, 4, 4]);
        assert_eq!(wide.0, [0, 2, 5, 0, 1, 3, 4, 4]);
        assert_eq!(of_narrow.0, [1.0, 2.0, 0.0, 3.0, 4.0, 7.0, 5.0, 6.0]);
        assert_eq!(of_wide.0, of_narrow.0);
    }
}
