//! Work divided among the threads of a team in safe code: each part is moved to the thread that does it.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple_kernel::execution::{Scoped, Team};
use parking_lot::Mutex;

/// Below so many entries, a thread takes longer to start than to do its share.
const ENOUGH: usize = 1 << 16;

/// A team of as many threads as there are processors, or one if there are few entries.
pub fn threads(entries: usize) -> Scoped {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    Scoped { threads: if entries < ENOUGH { 1 } else { all() } }
}

/// Does `body` with each part, and gives the results in the order of parts. Whichever thread is free takes the next
/// part; each thread has a scratch value of its own.
pub fn each<S: Default, P: Send, R: Send>(
    team: &dyn Team,
    parts: Vec<P>,
    body: impl Fn(&mut S, P) -> R + Sync,
) -> Vec<R> {
    let places = |part| Mutex::new((Some(part), None));
    let places: Vec<Mutex<(Option<P>, Option<R>)>> = parts.into_iter().map(places).collect();
    share(team, places.len(), &|next| {
        let mut scratch = S::default();
        while let Some(place) = next().and_then(|number| places.get(number)) {
            let part = place.lock().0.take().expect("each part is taken once");
            // No lock that another thread waits for is held meanwhile.
            let result = body(&mut scratch, part);
            place.lock().1 = Some(result);
        }
    });
    let done = |place: Mutex<(Option<P>, Option<R>)>| place.into_inner().1.expect("a team returns when all is done");
    places.into_iter().map(done).collect()
}

/// Takes the next number, if there is one.
type Next<'a> = dyn FnMut() -> Option<usize> + 'a;

/// Does `work` in the threads of a team, which take the numbers below `count` from what they are given, each once.
fn share(team: &dyn Team, count: usize, work: &(dyn Fn(&mut Next<'_>) + Sync)) {
    let taken = AtomicUsize::new(0);
    let next = || Some(taken.fetch_add(1, Ordering::Relaxed)).filter(|&number| number < count);
    let workers = team.size().min(count);
    if workers > 1 {
        team.run(workers, &|_| work(&mut { next }));
    }
    // If the team has run nothing.
    work(&mut { next });
}

/// `0..count` in at most `parts` ranges of about the same length.
pub fn ranges(count: usize, parts: usize) -> Vec<Range<usize>> {
    let length = count.div_ceil(parts.max(1)).max(1);
    (0..count).step_by(length).map(|first| first..(first + length).min(count)).collect()
}

/// `0..count` in as many ranges as a team shares well, even if some of its threads have other work.
pub fn chunks(count: usize, team: &dyn Team) -> Vec<Range<usize>> {
    ranges(count, if team.size() > 1 { 4 * team.size() } else { 1 })
}

/// The parts of a slice that have these lengths, one after the other.
///
/// # Panics
///
/// If the slice is shorter.
pub fn split<T>(mut slice: &mut [T], lengths: impl IntoIterator<Item = usize>) -> Vec<&mut [T]> {
    let next = |length| slice.split_off_mut(..length).expect("the slice has all lengths");
    lengths.into_iter().map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs chunks twice, or not at all.
    struct Unruly(usize);

    impl Team for Unruly {
        fn size(&self) -> usize {
            3
        }

        fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
            (0..self.0).for_each(|_| (0..chunks).for_each(body));
        }
    }

    #[test]
    fn each_part_is_done_once_whatever_the_team_does() {
        for team in [&Unruly(0) as &dyn Team, &Unruly(2), &Scoped { threads: 4 }, &Scoped { threads: 0 }] {
            let mut numbers = [0; 100];
            let parts = split(&mut numbers, ranges(100, 7).into_iter().map(|range| range.len()));
            let lengths = each(team, parts, |_: &mut (), part| {
                part.iter_mut().for_each(|number| *number += 1);
                part.len()
            });
            assert_eq!((lengths.len(), lengths.iter().sum::<usize>(), numbers), (7, 100, [1; 100]));
        }
        assert_eq!(ranges(0, 3), []);
    }
}
