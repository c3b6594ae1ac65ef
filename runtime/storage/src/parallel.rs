//! Work divided among the threads of a team in safe code: each part is moved to the thread that does it.

use std::ops::Range;

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
    each_of(team, parts, &body)
}

/// [`each`] for all bodies with the same types.
fn each_of<S: Default, P: Send, R: Send>(
    team: &dyn Team,
    parts: Vec<P>,
    body: &(dyn Fn(&mut S, P) -> R + Sync),
) -> Vec<R> {
    let workers = team.size().min(parts.len());
    if workers <= 1 {
        let mut scratch = S::default();
        return parts.into_iter().map(|part| body(&mut scratch, part)).collect();
    }
    let results = Mutex::new(Vec::new());
    results.lock().resize_with(parts.len(), || None);
    let next = Mutex::new(parts.into_iter().enumerate());
    let work = |_| {
        let mut scratch = S::default();
        loop {
            // No thread holds the lock while it works.
            let taken = next.lock().next();
            let Some((number, part)) = taken else { return };
            let result = body(&mut scratch, part);
            results.lock()[number] = Some(result);
        }
    };
    team.run(workers, &work);
    // If the team has run nothing.
    work(0);
    let done = |result: Option<R>| result.expect("a team returns when all is done");
    results.into_inner().into_iter().map(done).collect()
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
