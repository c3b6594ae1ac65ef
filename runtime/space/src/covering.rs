//! Few rectangles around many.

use crate::Rect;

/// At most `max_rects` disjoint rectangles around the given ones, which are in canonical form.
pub(crate) fn covering<const D: usize>(rects: &[Rect<D>], max_rects: usize) -> Vec<Rect<D>> {
    if rects.len() <= max_rects.max(1) {
        return rects.to_vec();
    }
    if D == 1 { keep_widest_gaps(rects, max_rects) } else { cut_greedily(rects, max_rects) }
}

/// The optimum in one dimension: of the gaps between the intervals, all but the widest are filled.
fn keep_widest_gaps<const D: usize>(rects: &[Rect<D>], max_rects: usize) -> Vec<Rect<D>> {
    let width = |i: usize| rects[i + 1].lo.0[0].wrapping_sub(rects[i].hi.0[0]) as u64;
    let kept = max_rects.saturating_sub(1);
    let mut gaps: Vec<usize> = (0..rects.len() - 1).collect();
    if kept < gaps.len() {
        gaps.select_nth_unstable_by_key(kept, |&i| std::cmp::Reverse(width(i)));
        gaps.truncate(kept);
    }
    gaps.sort_unstable();
    gaps.push(rects.len() - 1);
    let mut first = 0;
    gaps.into_iter()
        .map(|last| {
            let joined = rects[first].hull(&rects[last]);
            first = last + 1;
            joined
        })
        .collect()
}

/// A part of the set, and the best way to cut it in two.
struct CoveringPart<const D: usize> {
    rects: Vec<Rect<D>>,
    bounds: Rect<D>,
    cut: Option<Cut>,
}

/// A plane between the coordinates `at - 1` and `at`.
struct Cut {
    dimension: usize,
    at: i64,
    /// The points by which the bounds of the halves are smaller than those of the whole.
    saved: u64,
}

/// Cuts the part that gains most, by its best plane, until there are enough parts. Planes cross
/// whole parts, so the parts stay disjoint.
fn cut_greedily<const D: usize>(rects: &[Rect<D>], max_rects: usize) -> Vec<Rect<D>> {
    let mut parts = vec![CoveringPart::new(rects.to_vec())];
    while parts.len() < max_rects {
        let saved = |part: &CoveringPart<D>| part.cut.as_ref().map_or(0, |cut| cut.saved);
        let Some(best) = (0..parts.len()).max_by_key(|&i| saved(&parts[i])) else { break };
        let part = parts.swap_remove(best);
        match part.cut {
            Some(Cut { dimension, at, saved }) if saved > 0 => {
                let halves = |pick: fn((Rect<D>, Rect<D>)) -> Rect<D>| {
                    let clipped = part.rects.iter().map(|rect| pick(rect.split_at(dimension, at)));
                    CoveringPart::new(clipped.filter(|rect| !rect.is_empty()).collect())
                };
                parts.push(halves(|(below, _)| below));
                parts.push(halves(|(_, above)| above));
            }
            _ => {
                parts.push(part);
                break;
            }
        }
    }
    parts.sort_unstable_by_key(|part| part.bounds.lo);
    parts.into_iter().map(|part| part.bounds).collect()
}

impl<const D: usize> CoveringPart<D> {
    fn new(rects: Vec<Rect<D>>) -> Self {
        let bounds = rects.iter().fold(Rect::EMPTY, |hull, rect| hull.hull(rect));
        let cut = (0..D).filter_map(|dimension| best_cut(&rects, &bounds, dimension)).max_by_key(|cut| cut.saved);
        Self { rects, bounds, cut }
    }
}

/// The cut along a dimension, before the beginning of a rectangle or after the end of one, after
/// which the bounds of the two halves have the fewest points.
fn best_cut<const D: usize>(rects: &[Rect<D>], bounds: &Rect<D>, dimension: usize) -> Option<Cut> {
    let mut by_lo = rects.to_vec();
    by_lo.sort_unstable_by_key(|rect| rect.lo.0[dimension]);
    let mut by_hi = rects.to_vec();
    by_hi.sort_unstable_by_key(|rect| rect.hi.0[dimension]);

    let mut cuts: Vec<i64> = by_lo.iter().map(|rect| rect.lo.0[dimension]).collect();
    cuts.extend(by_hi.iter().filter_map(|rect| rect.hi.0[dimension].checked_add(1)));
    cuts.sort_unstable();
    cuts.dedup();
    cuts.retain(|&at| bounds.lo.0[dimension] < at && at <= bounds.hi.0[dimension]);

    // The bounds of what lies below each cut, then of what lies above, by one pass each.
    let mut below = Vec::with_capacity(cuts.len());
    let (mut hull, mut rest) = (Rect::EMPTY, by_lo.iter().peekable());
    for &at in &cuts {
        while let Some(rect) = rest.next_if(|rect| rect.lo.0[dimension] < at) {
            hull = hull.hull(rect);
        }
        below.push(hull.split_at(dimension, at).0.volume());
    }
    let (mut hull, mut rest) = (Rect::EMPTY, by_hi.iter().rev().peekable());
    let mut best: Option<Cut> = None;
    for (&at, below) in cuts.iter().zip(below).rev() {
        while let Some(rect) = rest.next_if(|rect| rect.hi.0[dimension] >= at) {
            hull = hull.hull(rect);
        }
        let halves = below.saturating_add(hull.split_at(dimension, at).1.volume());
        let saved = bounds.volume().saturating_sub(halves);
        if best.as_ref().is_none_or(|cut| saved > cut.saved) {
            best = Some(Cut { dimension, at, saved });
        }
    }
    best
}
