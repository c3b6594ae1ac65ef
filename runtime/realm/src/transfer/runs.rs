//! Visiting the same points in several instances at once, in runs as long as can be.
//!
//! Each instance ranks its points ([`FieldAddress::linear`]), and within each rectangle that it stores ranks are linear
//! in the coordinates. A rectangle that lies in several of them is cut into parts first. So a part is a nest of at most
//! four loops, each with a step of rank in every instance. Loops that continue each other in all instances are merged,
//! which turns whole rectangles, or whole instances, into one run. What remains of the innermost loop is handed out as
//! runs of equal steps in bytes, cut where an instance in blocks goes to its next block.

use maniple_space::Rect;

use crate::layout::{FieldAddress, FieldLayout};

/// How much of a row is visited before the next row when one side runs along rows and another across them: so many
/// cache lines of the latter stay in the cache until the neighbouring rows have used the rest of each.
const TRANSPOSED_CHUNK: usize = 32;

/// Points at equal distances in each of `N` instances.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointRun<const N: usize> {
    /// The offset of the first value from the base of each instance, in bytes.
    pub offsets: [usize; N],
    /// The bytes from one value to the next.
    pub strides: [isize; N],
    /// How many values.
    pub count: usize,
}

/// Visits every point of the rectangles once, in an order that suits the layouts, the last one before the others.
///
/// A rectangle of one row along the last dimension is visited in the order of its points.
pub(super) fn for_each_run<const D: usize, const N: usize>(
    rects: impl IntoIterator<Item = Rect<D>>,
    layouts: [&FieldLayout; N],
    mut visit: impl FnMut(PointRun<N>),
) {
    if layouts.iter().all(|layout| layout.single().is_some()) {
        return for_each_run_at(rects, layouts.map(FieldLayout::ranked), visit);
    }
    let mut joined = None;
    let mut sides = layouts.map(|layout| (layout, *layout.ranked(), 0));
    for rect in rects {
        for_each_part(rect, &mut sides, 0, &mut |run| join(&mut joined, run, &mut visit));
    }
    joined.into_iter().for_each(visit);
}

/// Keeps a run until it is known whether the next one continues it: rectangles that are apart may be stored next to
/// each other.
#[inline]
fn join<const N: usize>(joined: &mut Option<PointRun<N>>, next: PointRun<N>, visit: &mut impl FnMut(PointRun<N>)) {
    let Some(run) = joined else {
        *joined = Some(next);
        return;
    };
    let last = |side: usize| run.offsets[side] as isize + run.strides[side] * (run.count as isize - 1);
    let steps: [isize; N] = std::array::from_fn(|side| next.offsets[side] as isize - last(side));
    let fits = |run: &PointRun<N>| run.count == 1 || run.strides == steps;
    if fits(run) && fits(&next) {
        run.strides = steps;
        run.count += next.count;
    } else {
        visit(std::mem::replace(run, next));
    }
}

/// A side of a transfer: its layout, the address of the points of one stored rectangle, and that one's number.
type Part<'a> = (&'a FieldLayout, FieldAddress, usize);

/// Visits the points of a rectangle part by part: each lies in one stored rectangle of every instance. The addresses of
/// the instances before `side` are known.
fn for_each_part<const D: usize, const N: usize>(
    rect: Rect<D>,
    sides: &mut [Part<'_>; N],
    side: usize,
    visit: &mut impl FnMut(PointRun<N>),
) {
    let Some(&mut (layout, _, mut near)) = sides.get_mut(side) else {
        return for_each_run_at([rect], std::array::from_fn(|side| &sides[side].1), visit);
    };
    layout.for_each_part_near(rect, &mut near, |part, address| {
        sides[side].1 = *address;
        for_each_part(part, sides, side + 1, visit);
    });
    sides[side].2 = near;
}

/// Visits every point of rectangles that lie in one stored rectangle of every instance.
fn for_each_run_at<const D: usize, const N: usize>(
    rects: impl IntoIterator<Item = Rect<D>>,
    addresses: [&FieldAddress; N],
    mut visit: impl FnMut(PointRun<N>),
) {
    let order = loop_order::<D, N>(addresses);
    let affine = addresses.iter().all(|address| address.is_affine());
    for rect in rects {
        let Some(nest) = Nest::new(&rect, addresses, order) else { continue };
        nest.walk(|linear, steps, count| {
            if affine {
                visit(straight(addresses, linear, steps, count));
            } else {
                cut(addresses, linear, steps, count, &mut visit);
            }
        });
    }
}

/// The dimensions from the fastest: first the one in which the last instance's neighbours are nearest, then those in
/// which any instance's are.
fn loop_order<const D: usize, const N: usize>(addresses: [&FieldAddress; N]) -> [usize; D] {
    let mut order: [usize; D] = std::array::from_fn(|dimension| dimension);
    order.sort_by_key(|&dimension| addresses[N - 1].strides[dimension]);
    order[1..].sort_by_key(|&dimension| addresses.map(|address| address.strides[dimension]).into_iter().min());
    order
}

fn straight<const N: usize>(
    addresses: [&FieldAddress; N],
    linear: [i64; N],
    steps: [i64; N],
    count: usize,
) -> PointRun<N> {
    PointRun {
        offsets: std::array::from_fn(|side| addresses[side].offset_of_linear(linear[side] as usize)),
        strides: std::array::from_fn(|side| steps[side] as isize * addresses[side].pitch() as isize),
        count,
    }
}

fn cut<const N: usize>(
    addresses: [&FieldAddress; N],
    mut linear: [i64; N],
    steps: [i64; N],
    mut count: usize,
    visit: &mut impl FnMut(PointRun<N>),
) {
    while count > 0 {
        let straight_in = |side: usize| addresses[side].straight_run(linear[side] as usize, steps[side]);
        let piece = (0..N).map(straight_in).fold(count, usize::min);
        visit(straight(addresses, linear, steps, piece));
        linear = std::array::from_fn(|side| linear[side] + steps[side] * piece as i64);
        count -= piece;
    }
}

/// One loop: how often, and how far each time in the ranks of each instance.
#[derive(Clone, Copy)]
struct Loop<const N: usize> {
    count: usize,
    steps: [i64; N],
}

/// The points of one rectangle: `loops[..depth]`, the fastest first, from the ranks `start`.
struct Nest<const D: usize, const N: usize> {
    loops: [Loop<N>; D],
    depth: usize,
    start: [i64; N],
}

impl<const D: usize, const N: usize> Nest<D, N> {
    /// `None` if the rectangle is empty.
    #[inline]
    fn new(rect: &Rect<D>, addresses: [&FieldAddress; N], order: [usize; D]) -> Option<Self> {
        if rect.is_empty() {
            return None;
        }
        let start = addresses.map(|address| address.linear(rect.lo) as i64);
        let mut nest = Self { loops: [Loop { count: 1, steps: [0; N] }; D], depth: 0, start };
        for dimension in order {
            let count = rect.extent(dimension) as usize;
            if count > 1 {
                nest.surround(Loop { count, steps: addresses.map(|address| address.strides[dimension]) });
            }
        }
        Some(nest)
    }

    /// Puts a loop around those there are: merged with the outermost if it continues it.
    #[inline]
    fn surround(&mut self, new: Loop<N>) {
        if self.depth > 0 {
            let outermost = &mut self.loops[self.depth - 1];
            if new.steps == outermost.steps.map(|step| step * outermost.count as i64) {
                outermost.count *= new.count;
                return;
            }
        }
        self.loops[self.depth] = new;
        self.depth += 1;
    }

    /// Visits the innermost loop for every turn of the others: ranks at the start, steps and count.
    #[inline]
    fn walk(&self, mut visit: impl FnMut([i64; N], [i64; N], usize)) {
        let inner = self.loops[0];
        if self.depth <= 1 {
            return visit(self.start, inner.steps, inner.count);
        }
        let chunk = if self.is_transposed() { TRANSPOSED_CHUNK } else { inner.count };
        for from in (0..inner.count).step_by(chunk) {
            let mut at = step(self.start, inner.steps, from as i64);
            let mut turns = [0; D];
            loop {
                visit(at, inner.steps, chunk.min(inner.count - from));
                let Some(next) = self.turn(&mut turns, at) else { break };
                at = next;
            }
        }
    }

    /// The ranks at the next turn of the outer loops, like an odometer; `None` after the last.
    #[inline]
    fn turn(&self, turns: &mut [usize; D], mut at: [i64; N]) -> Option<[i64; N]> {
        for (turn, &Loop { count, steps }) in turns.iter_mut().zip(&self.loops[..self.depth]).skip(1) {
            *turn += 1;
            at = step(at, steps, 1);
            if *turn < count {
                return Some(at);
            }
            *turn = 0;
            at = step(at, steps, -(count as i64));
        }
        None
    }

    /// Whether some instance would rather run along the second loop.
    #[inline]
    fn is_transposed(&self) -> bool {
        (0..N).any(|side| self.loops[1].steps[side] < self.loops[0].steps[side])
    }
}

#[inline]
fn step<const N: usize>(at: [i64; N], steps: [i64; N], times: i64) -> [i64; N] {
    std::array::from_fn(|side| at[side] + steps[side] * times)
}
