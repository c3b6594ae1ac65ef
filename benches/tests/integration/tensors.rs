//! All contestants with tensors compute the same: those that this machine has find the same answer.

use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

use maniple_benches::tensors::contest::{Scale, Stage};
use maniple_benches::tensors::{CONTESTS, kernels};
use maniple_benches::toolbox::{Rival, Toolbox};

static STAGE: LazyLock<Stage> = LazyLock::new(|| {
    let toolbox = Toolbox::new(Path::new(env!("CARGO_TARGET_TMPDIR")), 2);
    toolbox.report(&Rival::OF_TENSORS).iter().for_each(|line| println!("{line}"));
    Stage { toolbox, ours: env!("CARGO_BIN_EXE_maniple-tensors-turns").into(), scale: Scale::Small }
});

/// Programs of several threads that spin while they wait take long where cores are shared. So one runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Gives each contestant two turns.
fn everybody_is_right(contest: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let contest = CONTESTS.iter().find(|one| one.name == contest).expect("it is a contest");
    for contestant in (contest.contestants)(&STAGE) {
        let name = &contestant.name;
        let mut player = contestant.start().unwrap_or_else(|error| panic!("{name}: {error}"));
        for _ in 0..2 {
            contestant.turn(&mut player).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn everybody_multiplies_matrices_of_doubles() {
    everybody_is_right("gemm");
}

#[test]
fn everybody_multiplies_matrices_of_floats() {
    everybody_is_right("gemm32");
}

#[test]
fn two_processes_multiply_matrices() {
    everybody_is_right("two");
}

#[test]
fn four_processes_multiply_matrices() {
    everybody_is_right("four");
}

#[test]
fn everybody_reads_all_of_memory() {
    everybody_is_right("bandwidth");
}

#[test]
fn everybody_multiplies_tensors_by_matrices() {
    everybody_is_right("ttm");
}

#[test]
fn everybody_multiplies_by_khatri_rao_products() {
    ["mttkrp1", "mttkrp2", "mttkrp3"].into_iter().for_each(everybody_is_right);
}

#[test]
fn making_a_kernel_takes_time_and_finding_it_less() {
    let rows = match kernels::measure(1) {
        Ok(rows) => rows,
        Err(error) => return println!("no kernels are made: {error}"),
    };
    assert!(rows.chunks(2).all(|pair| pair[1].figure < pair[0].figure), "{rows:?}");
}

#[test]
fn who_is_found_takes_part() {
    for rival in Rival::OF_TENSORS.into_iter().filter(|&rival| STAGE.toolbox.find(rival).is_some()) {
        let names = CONTESTS.iter().flat_map(|contest| (contest.contestants)(&STAGE)).map(|one| one.name);
        assert!(
            names.collect::<Vec<_>>().iter().any(|name| name.starts_with(&rival.to_string())),
            "{rival} is nowhere"
        );
    }
}
