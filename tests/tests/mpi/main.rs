//! Random programs on ranks of `mpirun`: each is a job of its own, as MPI starts once in a process.
//!
//! If there is no `mpirun`, nothing is tested, and the output says so; with `MANIPLE_NEEDS_MPI` that is a failure.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

use std::process::Command;

use maniple_tests::trial::Family;

#[test]
fn programs_on_ranks_equal_the_oracle() {
    let (mut runs, mut parcels) = (0, 0);
    for (ranks, family) in [2, 4].into_iter().flat_map(|ranks| Family::ALL.map(|family| (ranks, family))) {
        for seed in [ranks, 40 + ranks] {
            let options = format!("--family {family} --seed {seed} --count 1");
            let mut command = Command::new("mpirun");
            command.args(["--oversubscribe", "-n", &ranks.to_string(), env!("CARGO_BIN_EXE_stress")]);
            command.args(options.split_whitespace());
            // Containers have one user.
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            let output = match command.output() {
                Ok(output) => output,
                Err(error) => {
                    assert!(std::env::var_os("MANIPLE_NEEDS_MPI").is_none(), "mpirun: {error}");
                    eprintln!("\nNOT TESTED: there is no mpirun: {error}\n");
                    return;
                }
            };
            let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
            assert!(output.status.success(), "{options} on {ranks} ranks: {said}");
            assert_eq!(said.matches("1 programs, 0 failures; ").count(), ranks, "{options}: {said}");
            runs += 1;
            let last = said.lines().filter(|line| line.contains("1 programs, 0 failures; ")).next_back().unwrap();
            let counts = last.split([' ', ';', ',']).filter_map(|word| word.parse::<usize>().ok());
            parcels += counts.last().unwrap();
        }
    }
    assert!(parcels > runs, "{parcels} parcels in {runs} programs");
}
