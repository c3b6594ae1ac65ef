//! Shorter and shorter tasks: which lengths are tried, how often, and what follows from the times.
//!
//! Several programs can be measured side by side. Each length is then tried in all of them, one after the other, before
//! the next: what disturbs the machine for a while disturbs them all.

use std::time::Duration;

/// Tasks of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepRow {
    /// Iterations of a task.
    pub iterations: i64,
    /// Seconds that a core spends a task.
    pub granularity: f64,
}

/// How granularity depends on the length of tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// From long tasks to short ones.
    pub rows: Vec<SweepRow>,
}

impl Curve {
    /// The seconds that an iteration takes where it is fastest.
    #[must_use]
    pub fn iteration(&self) -> f64 {
        let iteration = |row: &SweepRow| row.granularity / row.iterations as f64;
        self.rows.iter().map(iteration).fold(f64::INFINITY, f64::min)
    }

    /// The part of a row's time that is spent on iterations, if they are as fast as in the best row.
    #[must_use]
    pub fn efficiency(&self, row: SweepRow) -> f64 {
        row.iterations as f64 * self.iteration() / row.granularity
    }

    /// METG(50%) in seconds: the granularity of the shortest tasks that are efficient. None if there are no rows.
    ///
    /// Lengths are halved from row to row, so the number is up to half larger than where the efficiency falls below a
    /// half: see [`crossing`](Self::crossing).
    #[must_use]
    pub fn metg(&self) -> Option<f64> {
        self.shortest_efficient().map(|row| self.rows[row].granularity)
    }

    /// The granularity in seconds at which the efficiency crosses a half, on a straight line between the two rows
    /// around it. Without a row below a half, as [`metg`](Self::metg).
    #[must_use]
    pub fn crossing(&self) -> Option<f64> {
        let last = self.shortest_efficient()?;
        let above = self.rows[last];
        let Some(&below) = self.rows.get(last + 1) else { return Some(above.granularity) };
        let (high, low) = (self.efficiency(above), self.efficiency(below));
        let share = (high - 0.5) / (high - low);
        Some(above.granularity + share * (below.granularity - above.granularity))
    }

    fn shortest_efficient(&self) -> Option<usize> {
        self.rows.iter().rposition(|row| self.efficiency(*row) >= 0.5)
    }
}

/// Something that is measured: runs tasks of so many iterations for so many steps, and tells how long all of them took,
/// and how many there were.
pub type Run<'a, E> = Box<dyn FnMut(i64, i64) -> Result<(Duration, u128), E> + 'a>;

/// How lengths of tasks are tried.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Tasks of a step.
    pub width: usize,
    /// Cores whose time counts.
    pub cores: usize,
    /// Runs for each length, of which the fastest counts.
    pub repetitions: usize,
    /// Seconds that a run should take if nothing were lost.
    pub budget: f64,
    /// Iterations of the long tasks that show what one takes.
    pub long: i64,
    /// Iterations of the longest tasks after that.
    pub first: i64,
}

/// Steps of the long tasks.
const LONG_STEPS: i64 = 4;

/// The cost of a task beside its iterations, in seconds: a guess, which affects only the number of steps.
const OVERHEAD: f64 = 2e-6;

/// The efficiency below which a sweep ends: it is then far below a half.
const ENOUGH: f64 = 0.2;

impl Sweep {
    /// From tasks of milliseconds to as short ones as necessary.
    #[must_use]
    pub fn new(width: usize, cores: usize, repetitions: usize, budget: f64) -> Self {
        Self { width, cores, repetitions, budget, long: 1 << 20, first: 1 << 17 }
    }

    /// Measures one program.
    ///
    /// # Errors
    /// The errors of the program.
    pub fn of<E>(&self, run: impl FnMut(i64, i64) -> Result<(Duration, u128), E>) -> Result<Curve, E> {
        let curve = self.side_by_side(vec![Box::new(run)]).pop();
        curve.unwrap_or_else(|| Ok(Curve::default()))
    }

    /// Measures several programs, which take turns. One that fails is left out from then on.
    pub fn side_by_side<'a, E: 'a>(&self, runs: Vec<Run<'a, E>>) -> Vec<Result<Curve, E>> {
        let mut descents: Vec<_> = runs.into_iter().map(Descent::new).collect();
        let halved = |&iterations: &i64| Some(iterations / 2).filter(|&half| half > 0);
        let shorter = std::iter::successors(Some(self.first), halved);
        for iterations in std::iter::once(self.long).chain(shorter) {
            for _ in 0..self.repetitions {
                let going_on = descents.iter_mut().filter(|descent| descent.goes_on());
                going_on.for_each(|descent| descent.run(self, iterations));
            }
            descents.iter_mut().for_each(|descent| descent.end_row(iterations));
        }
        descents.into_iter().map(Descent::end).collect()
    }

    /// So many steps that tasks with so many seconds of work fill the budget.
    fn steps(&self, work: f64) -> i64 {
        let steps = self.budget * self.cores as f64 / (self.width as f64 * (work + OVERHEAD));
        (steps as i64).clamp(10, 20_000)
    }
}

/// A program on its way to shorter tasks.
struct Descent<'a, E> {
    run: Run<'a, E>,
    curve: Curve,
    /// The smallest granularity that the present length has shown.
    granularity: f64,
    failure: Option<E>,
}

impl<'a, E> Descent<'a, E> {
    fn new(run: Run<'a, E>) -> Self {
        Self { run, curve: Curve::default(), granularity: f64::INFINITY, failure: None }
    }

    /// The seconds that an iteration of a long task takes, once that is known.
    fn iteration(&self) -> Option<f64> {
        self.curve.rows.first().map(|row| row.granularity / row.iterations as f64)
    }

    fn goes_on(&self) -> bool {
        let work = |row: &SweepRow| row.iterations as f64 * self.iteration().unwrap_or(f64::INFINITY);
        self.failure.is_none() && self.curve.rows.last().is_none_or(|row| work(row) / row.granularity >= ENOUGH)
    }

    fn run(&mut self, sweep: &Sweep, iterations: i64) {
        let steps = self.iteration().map_or(LONG_STEPS, |iteration| sweep.steps(iterations as f64 * iteration));
        match (self.run)(iterations, steps) {
            Ok((elapsed, tasks)) => {
                let granularity = elapsed.as_secs_f64() * sweep.cores as f64 / tasks as f64;
                self.granularity = self.granularity.min(granularity);
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn end_row(&mut self, iterations: i64) {
        let granularity = std::mem::replace(&mut self.granularity, f64::INFINITY);
        if granularity.is_finite() {
            self.curve.rows.push(SweepRow { iterations, granularity });
        }
    }

    fn end(self) -> Result<Curve, E> {
        self.failure.map_or(Ok(self.curve), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of which a task costs so many seconds beside its iterations, a nanosecond each. Every other run is
    /// disturbed.
    fn costs(overhead: f64, sweep: &Sweep) -> impl FnMut(i64, i64) -> Result<(Duration, u128), String> + use<> {
        let (width, cores) = (sweep.width as i64, sweep.cores as f64);
        let mut runs = 0;
        move |iterations, steps| {
            runs += 1;
            let disturbed = if runs % 2 == 1 { 3.0 } else { 1.0 };
            let task = (iterations as f64 * 1e-9 + overhead) * disturbed;
            let tasks = steps * width;
            Ok((Duration::from_secs_f64(task * tasks as f64 / cores), tasks as u128))
        }
    }

    fn sweep(budget: f64) -> Sweep {
        Sweep::new(2, 2, 2, budget)
    }

    #[test]
    fn the_smallest_tasks_that_are_efficient_are_found() {
        let sweep = sweep(0.4);
        let curve = sweep.of(costs(3e-6, &sweep)).expect("nothing fails");
        // 4.1 us of work are more than the overhead, 2.05 us are less.
        let metg = curve.metg().expect("long tasks are efficient");
        assert!((metg - 7.096e-6).abs() < 1e-8, "{metg}");
        let crossing = curve.crossing().expect("long tasks are efficient");
        assert!((5.8e-6..6.2e-6).contains(&crossing), "about twice the overhead: {crossing}");
    }

    #[test]
    fn the_sweep_ends_where_most_of_the_time_is_lost() {
        let sweep = sweep(0.4);
        let (mut runs, mut costs) = (0, costs(3e-6, &sweep));
        let curve = sweep.of(|iterations, steps| {
            runs += 1;
            costs(iterations, steps)
        });
        let rows = curve.expect("nothing fails").rows;
        let iterations: Vec<i64> = rows.iter().map(|row| row.iterations).collect();
        assert_eq!(iterations, [1 << 20, 131_072, 65_536, 32_768, 16_384, 8192, 4096, 2048, 1024, 512]);
        assert_eq!(runs, 2 * iterations.len(), "each length as often as asked");
    }

    #[test]
    fn without_overhead_the_sweep_goes_down_to_single_iterations() {
        let sweep = sweep(0.4);
        let curve = sweep.of(costs(0.0, &sweep)).expect("nothing fails");
        assert_eq!(curve.rows.last().map(|row| row.iterations), Some(1));
        assert!(curve.metg().is_some_and(|metg| metg < 2e-9));
        assert_eq!(curve.crossing(), curve.metg(), "no row is below a half");
    }

    #[test]
    fn programs_side_by_side_take_turns_and_find_what_each_would_alone() {
        let sweep = sweep(0.01);
        let overheads = [1e-6, 20e-6];
        let alone = overheads.map(|overhead| sweep.of(costs(overhead, &sweep)));
        let order = std::cell::RefCell::new(Vec::new());
        let runs = overheads.iter().enumerate().map(|(number, &overhead)| {
            let (mut costs, order) = (costs(overhead, &sweep), &order);
            let run = move |iterations, steps| {
                order.borrow_mut().push(number);
                costs(iterations, steps)
            };
            Box::new(run) as Run<'_, String>
        });
        let together = sweep.side_by_side(runs.collect());
        assert_eq!(together, alone);
        assert_eq!(order.borrow()[..6], [0, 1, 0, 1, 0, 1]);
        assert_eq!(order.borrow().last(), Some(&0), "the slower one is done first");
    }

    #[test]
    fn a_program_that_fails_does_not_keep_others_from_being_measured() {
        let sweep = sweep(0.01);
        let fails = |_, _| Err("no such program".to_owned());
        let curves = sweep.side_by_side(vec![Box::new(fails), Box::new(costs(1e-6, &sweep))]);
        assert_eq!(curves[0], Err("no such program".to_owned()));
        assert_eq!(curves[1], sweep.of(costs(1e-6, &sweep)));
    }

    #[test]
    fn steps_fill_the_budget_within_limits() {
        assert_eq!(sweep(0.4).steps(98e-6), 4000);
        assert_eq!(sweep(0.4).steps(0.0), 20_000);
        assert_eq!(sweep(0.0).steps(98e-6), 10);
    }
}
