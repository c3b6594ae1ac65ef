//! Whole streams against a replayer that follows the rules and does nothing else.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::candidate::CandidateId;
use super::finder::{Finder, MiningJob, Parameters};

/// The outcome of replaying a stream.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Outcome {
    /// For each token, whether it was in a replay that was completed.
    covered: Vec<bool>,
    completed: usize,
    abandoned: usize,
    /// Candidates in the order in which they were begun, and where.
    begun: Vec<(usize, CandidateId)>,
}

impl Outcome {
    /// How much of the tokens from `from` on was replayed.
    fn coverage(&self, from: usize) -> f64 {
        let tail = &self.covered[from..];
        tail.iter().filter(|covered| **covered).count() as f64 / tail.len() as f64
    }
}

/// A replay under way, after its first tokens.
struct Replay {
    id: CandidateId,
    at: usize,
}

/// Replays what it is told to.
struct Replayer {
    finder: Finder,
    replay: Option<Replay>,
    jobs: VecDeque<MiningJob>,
    /// Time spent on jobs.
    mining: Duration,
    outcome: Outcome,
}

impl Replayer {
    fn new(parameters: Parameters) -> Self {
        Self {
            finder: Finder::new(parameters),
            replay: None,
            jobs: VecDeque::new(),
            mining: Duration::ZERO,
            outcome: Outcome::default(),
        }
    }

    fn push(&mut self, token: Option<u64>) {
        while let Some(due) = self.finder.due() {
            let index = self.jobs.iter().position(|job| job.id() == due).unwrap();
            let job = self.jobs.remove(index).unwrap();
            let start = Instant::now();
            let mined = job.run();
            self.mining += start.elapsed();
            self.finder.ingest(mined);
        }
        let finder = &self.finder;
        let foretold = |replay: &Replay| finder.tokens(replay.id).map(|tokens| tokens[replay.at]);
        if let Some(Replay { at, .. }) = self.replay.take_if(|replay| foretold(replay) != token) {
            self.finder.abandoned(at);
            self.outcome.abandoned += 1;
        }
        if let (None, Some(token)) = (&self.replay, token)
            && let Some(id) = self.finder.starting_with(token)
        {
            self.finder.begin(id);
            self.replay = Some(Replay { id, at: 0 });
            self.outcome.begun.push((self.outcome.covered.len(), id));
        }
        self.jobs.extend(self.finder.push(token));
        self.outcome.covered.push(false);
        if let Some(replay) = &mut self.replay {
            replay.at += 1;
            if replay.at == self.finder.tokens(replay.id).unwrap().len() {
                self.finder.completed();
                self.outcome.completed += 1;
                let end = self.outcome.covered.len();
                self.outcome.covered[end - replay.at..].fill(true);
                self.replay = None;
            }
        }
    }
}

fn replay(parameters: Parameters, stream: impl IntoIterator<Item = Option<u64>>) -> Outcome {
    let mut replayer = Replayer::new(parameters);
    stream.into_iter().for_each(|token| replayer.push(token));
    replayer.outcome
}

fn mine(stream: impl IntoIterator<Item = u64>) -> Outcome {
    replay(Parameters::default(), stream.into_iter().map(Some))
}

fn body(name: u64, length: u64) -> Vec<u64> {
    (0..length).map(|index| name * 1000 + index).collect()
}

fn random(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 20
    })
}

#[test]
fn short_loops_are_replayed_before_their_twentieth_iteration_and_wholly_from_then_on() {
    for period in 2..=20 {
        let stream = body(1, period).repeat(200);
        let outcome = mine(stream);
        let period = period as usize;
        assert!(outcome.begun[0].0 < 20 * period, "period {period}: {:?}", outcome.begun[0]);
        assert!(outcome.coverage(20 * period) > 0.99, "period {period}: {}", outcome.coverage(20 * period));
        assert_eq!(outcome.abandoned, 0, "period {period}");
    }
}

#[test]
fn loops_of_every_length_that_fits_twice_into_the_buffer_are_replayed_wholly() {
    for period in [21, 50, 100, 333, 1000, 2500, 4000] {
        let outcome = mine(body(1, period).repeat(60));
        let period = period as usize;
        assert!(outcome.coverage(40 * period) > 0.99, "period {period}: {}", outcome.coverage(40 * period));
        assert_eq!(outcome.abandoned, 0, "period {period}");
    }
}

#[test]
fn a_prologue_and_an_epilogue_are_not_replayed() {
    for prologue in [1, 7, 30, 100, 500] {
        let loops = body(1, 10).repeat(100);
        let stream = [random(1).take(prologue).collect(), loops, random(2).take(500).collect()].concat();
        let outcome = mine(stream);
        assert!(outcome.begun[0].0 < prologue + 200, "{:?}", outcome.begun[0]);
        assert!(outcome.covered[prologue + 200..prologue + 990].iter().all(|covered| *covered), "{prologue}");
        let loop_end = prologue + 1000;
        assert!(outcome.covered[..prologue].iter().chain(&outcome.covered[loop_end..]).all(|covered| !covered));
        assert!(outcome.abandoned <= 1, "more than the iteration that the loop ends in");
    }
}

#[test]
fn loops_that_alternate_are_one_loop() {
    let stream = [body(1, 12), body(2, 15)].concat().repeat(200);
    let outcome = mine(stream);
    assert!(outcome.coverage(1000) > 0.99, "{}", outcome.coverage(1000));
    assert_eq!(outcome.abandoned, 0);
}

#[test]
fn loops_that_alternate_at_random_are_both_replayed() {
    let stream: Vec<u64> = random(3).take(400).flat_map(|choice| body(choice % 2, 12)).collect();
    let outcome = mine(stream);
    assert!(outcome.coverage(2400) > 0.9, "{}", outcome.coverage(2400));
    assert!(outcome.abandoned < 20, "{}", outcome.abandoned);
}

#[test]
fn a_loop_with_a_loop_in_it_is_replayed_wholly() {
    for (inner, iterations, rest) in [(3, 5, 4), (2, 20, 1), (10, 7, 10), (8, 3, 50)] {
        let outer = [body(1, inner).repeat(iterations), body(2, rest)].concat();
        let outcome = mine(outer.repeat(200));
        let late = outer.len() * 100;
        assert!(outcome.coverage(late) > 0.99, "{inner} {iterations} {rest}: {}", outcome.coverage(late));
        assert!(outcome.abandoned < 10, "{}", outcome.abandoned);
    }
}

#[test]
fn a_loop_around_something_that_never_repeats_is_replayed_up_to_that() {
    let iteration = |_| body(1, 12).into_iter().map(Some).chain([None]);
    let outcome = replay(Parameters::default(), (0..200).flat_map(iteration));
    assert!(outcome.coverage(600) > 0.9, "{}", outcome.coverage(600));
    assert_eq!(outcome.abandoned, 0);
}

#[test]
fn a_loop_with_a_check_now_and_then_is_replayed_between() {
    let iteration = |index| [body(1, 10), if index % 7 == 0 { body(2, 3) } else { Vec::new() }].concat();
    let outcome = mine((0..500).flat_map(iteration));
    assert!(outcome.coverage(2000) > 0.95, "{}", outcome.coverage(2000));
    assert!(outcome.abandoned < 10, "{}", outcome.abandoned);
}

#[test]
fn a_loop_that_goes_on_after_an_interruption_is_replayed_by_its_iterations() {
    for (period, before) in [(2, 450), (3, 300), (5, 111), (12, 60)] {
        let body: Vec<_> = body(1, period).into_iter().map(Some).collect();
        let stream = [body.repeat(before), vec![None], body.repeat(2000)].concat();
        let mut replayer = Replayer::new(Parameters::default());
        stream.into_iter().for_each(|token| replayer.push(token));
        let length = period * (Parameters::default().shortest as u64).div_ceil(period);
        let Replayer { finder, outcome, .. } = replayer;
        let lengths = outcome.begun.iter().map(|(_, id)| finder.tokens(*id).map(<[u64]>::len));
        assert!(lengths.collect::<Vec<_>>().iter().all(|found| *found == Some(length as usize)), "period {period}");
        assert!(
            outcome.coverage(20 * period as usize) > 0.97,
            "period {period}: {}",
            outcome.coverage(20 * period as usize)
        );
    }
}

#[test]
fn a_body_that_changes_costs_one_failure_and_is_replayed_anew() {
    let (mut before, mut after) = (body(1, 12), body(1, 12));
    before[9] = 77;
    after[9] = 88;
    let outcome = mine([before.repeat(2000), after.repeat(200)].concat());
    assert!(outcome.coverage(24_000 + 240) > 0.9, "{}", outcome.coverage(24_240));
    assert!(outcome.abandoned <= 2, "{}", outcome.abandoned);
}

#[test]
#[should_panic(expected = "when they are due")]
fn results_are_not_taken_in_before_they_are_due() {
    let mut finder = Finder::new(Parameters::default());
    let job = body(1, 128).into_iter().find_map(|token| finder.push(Some(token))).unwrap();
    finder.ingest(job.run());
}

#[test]
#[should_panic(expected = "before the next token")]
fn results_that_are_due_are_not_passed_over() {
    let mut finder = Finder::new(Parameters::default());
    body(1, 257).into_iter().for_each(|token| drop(finder.push(Some(token))));
}

#[test]
fn a_stream_that_never_repeats_is_never_replayed() {
    let outcome = mine(random(4).take(50_000));
    assert_eq!(outcome.begun, []);
}

#[test]
fn what_is_unlike_anything_is_in_no_replay() {
    let outcome = replay(Parameters::default(), std::iter::repeat_n(None, 10_000));
    assert_eq!(outcome.begun, []);
}

/// Failures are at most as many as successes, and a logarithm of the stream's length: see `Restraint`.
fn failures_allowed(outcome: &Outcome) -> f64 {
    let tokens = outcome.covered.len() as f64;
    outcome.completed as f64 + 16.0 * (1.0 + (tokens / 256.0 + 2.0).log2())
}

#[test]
fn an_opponent_who_breaks_every_replay_breaks_a_logarithm_of_the_stream() {
    for break_at in [1, 4, 7] {
        // No shorter ones, which would end before they are broken.
        let mut replayer = Replayer::new(Parameters { shortest: 8, ..Parameters::default() });
        let mut fresh = 1_000_000;
        for _ in 0..500 {
            let loops = body(fresh, 8).repeat(12);
            fresh += 1;
            for token in loops {
                let breaks = replayer.replay.as_ref().is_some_and(|replay| replay.at == break_at);
                replayer.push(Some(if breaks { random(fresh).next().unwrap() } else { token }));
                fresh += u64::from(breaks);
            }
        }
        let outcome = replayer.outcome;
        assert_eq!(outcome.completed, 0);
        assert!(outcome.abandoned > 16, "the opponent found nothing to break");
        assert!(outcome.abandoned as f64 <= failures_allowed(&outcome), "{}", outcome.abandoned);
    }
}

#[test]
fn after_an_opponent_has_gone_a_loop_is_replayed_before_as_much_time_again() {
    let mut replayer = Replayer::new(Parameters::default());
    for index in 0..5_000 {
        let breaks = replayer.replay.is_some();
        replayer.push(Some(if breaks { 1_000_000 + index } else { index % 10 }));
    }
    let loops = body(1, 10).repeat(2_000);
    loops.iter().for_each(|&token| replayer.push(Some(token)));
    assert!(replayer.outcome.coverage(12_000) > 0.95, "{}", replayer.outcome.coverage(12_000));
}

#[test]
fn mining_rests_while_a_loop_goes_on_and_wakes_for_another() {
    let mut replayer = Replayer::new(Parameters::default());
    let mined = |replayer: &mut Replayer, stream: Vec<u64>| {
        let before = replayer.finder.jobs_so_far();
        stream.iter().for_each(|&token| replayer.push(Some(token)));
        replayer.finder.jobs_so_far() - before
    };
    assert!(mined(&mut replayer, body(1, 10).repeat(1_000)) > 0);
    assert_eq!(mined(&mut replayer, body(1, 10).repeat(100_000)), 0);
    let from = replayer.outcome.covered.len();
    assert!(mined(&mut replayer, body(2, 10).repeat(20)) > 0);
    assert!(replayer.outcome.coverage(from + 100) > 0.9, "{}", replayer.outcome.coverage(from + 100));
}

/// Pieces of streams: a body of a few tokens, repeated.
fn streams() -> impl Strategy<Value = Vec<Option<u64>>> {
    let part = (prop::collection::vec(0..12_u64, 1..30), 1..40_usize, any::<bool>());
    prop::collection::vec(part, 1..12).prop_map(|parts| {
        let tokens = |(body, power, unique): &(Vec<u64>, usize, bool)| {
            let body = body.iter().copied().map(Some).collect::<Vec<_>>();
            let mut tokens = body.repeat(*power);
            tokens.extend(unique.then_some(None));
            tokens
        };
        parts.iter().flat_map(tokens).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn failures_are_bounded_in_any_stream(stream in streams(), repetitions in 1..5_usize) {
        let outcome = replay(Parameters::default(), stream.repeat(repetitions));
        prop_assert!(outcome.abandoned as f64 <= failures_allowed(&outcome), "{}", outcome.abandoned);
    }

    #[test]
    fn what_is_begun_does_not_depend_on_anything_but_the_stream(stream in streams(), few in 1..6_usize) {
        let parameters = Parameters { candidates: few, buffer: 512, ..Parameters::default() };
        let rename = |token: Option<u64>| token.map(|token| !(token * 77));
        let outcome = replay(parameters, stream.clone());
        prop_assert_eq!(&outcome, &replay(parameters, stream.iter().copied()));
        prop_assert_eq!(&outcome, &replay(parameters, stream.iter().copied().map(rename)));
    }

    #[test]
    fn any_loop_is_replayed_in_the_end(body in prop::collection::vec(0..6_u64, 1..60), before in prop::collection::vec(0..6_u64, 0..100)) {
        let stream = [before, body.repeat(3000 / body.len())].concat();
        let outcome = mine(stream);
        // Not all of it: see the next test.
        prop_assert!(outcome.coverage(2000) > 0.9, "{} {}", outcome.coverage(2000), outcome.abandoned);
    }
}

#[test]
fn of_a_loop_that_is_nearly_all_one_launch_the_few_others_may_be_left_out() {
    let before = [0, 0, 0, 0, 0, 0, 0, 4, 1, 1, 1, 3, 5, 4, 3];
    let body = [&[4, 5, 4, 5][..], &[0; 51]].concat();
    let covered = mine([&before[..], &body.repeat(54)].concat()).coverage(2000);
    assert!((0.9..1.0).contains(&covered), "{covered}");
}

/// `cargo test --release -p maniple-analysis --lib time_of_a_token -- --ignored --nocapture`
#[test]
#[ignore = "prints times"]
fn time_of_a_token() {
    let nested = [body(1, 2).repeat(20), body(2, 1)].concat();
    let kinds: [(&str, Vec<u64>); 6] = [
        ("loop of 3", body(1, 3)),
        ("loop of 10", body(1, 10)),
        ("loop of 100", body(1, 100)),
        ("loop of 1,000", body(1, 1000)),
        ("20 times 2, then 1", nested),
        ("never repeats", random(5).take(1_000_000).collect()),
    ];
    println!("{:<20}{:>16}{:>16}{:>12}", "ns a token", "first 8,192", "at rest", "coverage");
    for (kind, body) in kinds {
        let mut stream = body.iter().copied().cycle().map(Some);
        let mut replayer = Replayer::new(Parameters::default());
        replayer.outcome.covered.reserve(1_000_000);
        replayer.outcome.begun.reserve(500_000);
        // Without the time of jobs. The median of 64 parts, as others may use the machine.
        let mut time = |tokens: usize| {
            let part = tokens / 64;
            let parts = (0..64).map(|_| {
                let mining = replayer.mining;
                let start = Instant::now();
                stream.by_ref().take(part).for_each(|token| replayer.push(token));
                (start.elapsed() - (replayer.mining - mining)).as_nanos() as f64 / part as f64
            });
            let mut parts: Vec<f64> = parts.collect();
            parts.sort_by(f64::total_cmp);
            parts[32]
        };
        let first = time(8192);
        time(100_000);
        let rest = time(500_000);
        let coverage = replayer.outcome.coverage(108_192);
        println!("{kind:<20}{first:>16.1}{rest:>16.1}{coverage:>12.3}");
    }
}
