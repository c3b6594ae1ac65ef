//! Whether the checker of records means anything: it finds nothing wrong with what the runtime does, and everything
//! wrong with what is made wrong on purpose.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple::record::{Record, check};
use maniple_tests::mutation::Mutation;
use maniple_tests::naive;
use maniple_tests::trial::{Family, Trial};
use maniple_tests::watch::silence_planned_panics;

/// Programs of each family.
const PROGRAMS: u64 = 12;

/// The most operations of a record. To look at every pair of them takes its time, and loops make long records.
const LONGEST: usize = 300;

/// Mutations of each kind of each record.
const MUTATIONS: usize = 4;

fn records() -> impl Iterator<Item = (Trial, Record)> {
    silence_planned_panics();
    let trials = Family::ALL.into_iter().flat_map(|family| (0..PROGRAMS).map(move |seed| Trial::new(family, seed)));
    trials.filter_map(|trial| {
        let outcome = Trial { check: true, ..trial.clone() }.run();
        assert!(outcome.is_right(), "{} {}: {:?}", trial.family, trial.seed, outcome.deviations);
        let record = outcome.records.only();
        (record.operations.len() <= LONGEST).then_some((trial, record))
    })
}

#[test]
fn the_checker_notices_exactly_what_a_look_at_every_pair_and_point_notices() {
    let mut noticed: BTreeMap<Mutation, (u64, u64)> = BTreeMap::new();
    for (trial, record) in records() {
        assert_eq!(naive::verdict(&record), Ok(()), "{} {}", trial.family, trial.seed);
        let mut random = Rng::with_seed(trial.seed);
        for mutation in Mutation::ALL {
            for _ in 0..MUTATIONS {
                let Some(mutated) = mutation.of(&record, &mut random) else { continue };
                let (found, expected) = (check(&mutated), naive::verdict(&mutated));
                assert_eq!(
                    found.is_err(),
                    expected.is_err(),
                    "{mutation:?} of {} {}: {found:?}, by points {expected:?}\n{record}\n{mutated}",
                    trial.family,
                    trial.seed
                );
                let counts = noticed.entry(mutation).or_default();
                counts.0 += 1;
                counts.1 += u64::from(found.is_err());
            }
        }
    }
    println!("tried, noticed: {noticed:?}");
    for mutation in Mutation::ALL {
        let (tried, noticed) = noticed[&mutation];
        assert!(noticed >= 10, "{mutation:?} has shown only {noticed} times, of {tried}");
    }
}
