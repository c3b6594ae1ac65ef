//! All contestants with sparse tensors find the same answer.

use std::path::Path;

use maniple_benches::sparse::CONTESTS;
use maniple_benches::tensors::contest::{Scale, Stage};
use maniple_benches::toolbox::{Rival, Toolbox};

#[test]
fn everybody_computes_the_same_with_sparse_matrices() {
    let toolbox = Toolbox::new(Path::new(env!("CARGO_TARGET_TMPDIR")), 2);
    toolbox.report(&Rival::OF_SPARSE).iter().for_each(|line| println!("{line}"));
    let stage = Stage { toolbox, ours: env!("CARGO_BIN_EXE_maniple-sparse-turns").into(), scale: Scale::Small };
    for contest in CONTESTS {
        for contestant in (contest.contestants)(&stage) {
            let name = format!("{}: {}", contest.name, contestant.name);
            let mut player = contestant.start().unwrap_or_else(|error| panic!("{name}: {error}"));
            for _ in 0..2 {
                contestant.turn(&mut player).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
}
