//! Computations with sparse tensors, and by what a user would take instead: SciPy, MKL, GraphBLAS and TACO; on several
//! processes PETSc and Trilinos.
//!
//! [`works`]: what is computed, and on which data; [`ours`]: this project's program, which also writes the data for the
//! others; [`nodes`]: the same on several nodes.

pub mod nodes;
pub mod ours;
pub mod works;

use std::process::Command;

use self::works::Work;
use crate::error::Error;
use crate::tensors::contest::{Contest, Contestant, Goal, Scale, Stage};
use crate::tensors::turns::Player;
use crate::toolbox::Rival;

/// All contests.
pub static CONTESTS: &[Contest] = &[
    contest("spmv", "SpMV, Poisson's equation", "million entries/s", |stage| {
        all(stage, "spmv", "poisson:2000", "poisson:20", 0.95)
    }),
    contest("spmv-uniform", "SpMV, 8 entries a row", "million entries/s", |stage| {
        all(stage, "spmv", "uniform:2000000", "uniform:200", 0.95)
    }),
    contest("spmv-zipf", "SpMV, rows of very different lengths", "million entries/s", |stage| {
        all(stage, "spmv", "zipf:1000000", "zipf:100", 1.0)
    }),
    contest("spmv-band", "SpMV, 64 entries a row around the diagonal", "million entries/s", |stage| {
        all(stage, "spmv", "band:400000", "band:200", 1.0)
    }),
    contest("spmv-arrow", "SpMV, one long row", "million entries/s", |stage| {
        let mut contestants = all(stage, "spmv", "arrow:4000000", "arrow:200", 1.0);
        contestants.push(by_rows(stage, "spmv", "arrow:4000000", "arrow:200"));
        contestants
    }),
    contest("spmm", "SpMM with 16 columns, Poisson's equation", "million entries/s", |stage| {
        all(stage, "spmm16", "poisson:1000", "poisson:20", 1.0)
    }),
    contest("spmm-uniform", "SpMM with 16 columns, 8 entries a row", "million entries/s", |stage| {
        all(stage, "spmm16", "uniform:1000000", "uniform:200", 1.0)
    }),
    contest("spmm-zipf", "SpMM with 16 columns, rows of very different lengths", "million entries/s", |stage| {
        all(stage, "spmm16", "zipf:1000000", "zipf:100", 1.0)
    }),
    contest("spmm64", "SpMM with 64 columns, Poisson's equation", "million entries/s", |stage| {
        all(stage, "spmm64", "poisson:1000", "poisson:20", 1.0)
    }),
    contest("spadd3", "Sums of three matrices, 8 entries a row each", "million entries/s", |stage| {
        all(stage, "spadd3", "uniform:2000000", "uniform:200", 1.5)
    }),
    contest("sddmm", "Sampled products with 32 columns, 8 entries a row", "million entries/s", |stage| {
        all(stage, "sddmm32", "uniform:1000000", "uniform:200", 1.0)
    }),
    contest("spttv", "Tensor times vector, 208 entries a row", "million entries/s", |stage| {
        all(stage, "spttv", "films:48000", "films:480", 1.0)
    }),
    contest("mttkrp", "MTTKRP with 32 columns, 208 entries a row", "million entries/s", |stage| {
        all(stage, "mttkrp32", "films:48000", "films:480", 1.0)
    }),
    contest("triangles", "Triangles of a graph", "million edges/s", |stage| {
        all(stage, "triangles", "rmat:18", "rmat:8", 0.9)
    }),
    contest("spgemm", "Squares of matrices, 8 entries a row", "million entries/s", |stage| {
        all(stage, "spgemm", "uniform:200000", "uniform:200", 1.0)
    }),
    contest("spmv-2", "SpMV, Poisson's equation, two processes", "million entries/s", |stage| {
        on_processes(stage, 2, "spmv", "poisson:2000", "poisson:20", 1.0)
    }),
    contest("spmv-4", "SpMV, Poisson's equation, four processes", "million entries/s", |stage| {
        on_processes(stage, 4, "spmv", "poisson:2000", "poisson:20", 0.9)
    }),
    contest("spmm-2", "SpMM with 16 columns, Poisson's equation, two processes", "million entries/s", |stage| {
        on_processes(stage, 2, "spmm16", "poisson:1000", "poisson:20", 1.0)
    }),
    contest("spadd3-2", "Sums of three matrices, 8 entries a row each, two processes", "million entries/s", |stage| {
        on_processes(stage, 2, "spadd3", "uniform:1000000", "uniform:200", 3.0)
    }),
    contest("spmv-weak-1", "SpMV, 64 entries a row, one process of one worker", "million entries/s", |stage| {
        on_processes(stage, 1, "spmv", "band:200000", "band:100", 0.92)
    }),
    contest("spmv-weak-2", "SpMV, twice as many rows, two processes of one worker", "million entries/s", |stage| {
        on_processes(stage, 2, "spmv", "band:400000", "band:200", 0.92)
    }),
];

const fn contest(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    contestants: fn(&Stage) -> Vec<Contestant>,
) -> Contest {
    Contest { name, title, unit, contestants }
}

/// The rivals that can compute a kernel.
fn rivals(kernel: &str) -> Vec<Rival> {
    let is_of_taco = kernel != "triangles";
    let is_of_matrices = ["spmv", "spmm", "spadd3", "spgemm"].iter().any(|name| kernel.starts_with(name));
    let is_of_graphs = ["spgemm", "triangles"].contains(&kernel);
    let found = [(Rival::SciPy, is_of_matrices), (Rival::Mkl, is_of_matrices), (Rival::GraphBlas, is_of_graphs)];
    let others = [(Rival::Taco, is_of_taco), (Rival::OpenMp, kernel == "spmv")];
    let found = found.into_iter().chain(others).filter(|(_, can)| *can);
    found.map(|(rival, _)| rival).collect()
}

/// A work, and how many millions of entries are read for which answer: the data are made here once to know it, and for
/// rivals.
fn prepared(stage: &Stage, kernel: &str, full: &str, small: &str) -> Result<(Work, Goal), String> {
    let kind = match stage.scale {
        Scale::Full => full,
        Scale::Small => small,
    };
    let work = Work { kernel: kernel.to_owned(), kind: kind.to_owned() };
    let (entries, answer) = ours::prepare(&work, stage).map_err(|error| error.to_string())?;
    Ok((work, Goal { amount: entries as f64 / 1e6, answer }))
}

/// One that can't take part.
fn missing(told: String, must: f64) -> Vec<Contestant> {
    vec![
        Contestant::new("Maniple", Goal { amount: 0.0, answer: 0 }, move || Err(Error::NotBuilt(told.clone())))
            .must(must),
    ]
}

/// This project on some processes with a worker each, and PETSc and Trilinos on as many.
fn on_processes(stage: &Stage, processes: usize, kernel: &str, full: &str, small: &str, must: f64) -> Vec<Contestant> {
    let (work, goal) = match prepared(stage, kernel, full, small) {
        Ok(found) => found,
        Err(told) => return missing(told, must),
    };
    let cores = stage.toolbox.cores();
    let (program, told) = (stage.ours.clone(), work.clone());
    let ours = Contestant::new("Maniple", goal, move || {
        let mut command = Command::new(&program);
        command.args(["launch", "--no-prefix", "-n", &processes.to_string(), "--"]).arg(&program);
        command.args(["nodes", &told.kernel, &told.kind, "--workers", "1"]);
        Player::start(command)
    });
    let mut contestants = vec![ours.must(must)];
    for (rival, source) in [(Rival::Petsc, "sparse_petsc.c"), (Rival::Trilinos, "sparse_trilinos.cpp")] {
        let Some(program) = stage.toolbox.program(rival, source) else { continue };
        let program = program.map_err(|error| error.to_string());
        let arguments = ["1".to_owned(), work.kernel.clone(), work.folder(stage).display().to_string()];
        contestants.push(Contestant::new(rival.to_string(), goal, move || {
            let program = program.clone().map_err(Error::NotBuilt)?.on_processes(processes, cores);
            let mut command = program.command(arguments.clone());
            command.env("OMP_NUM_THREADS", "1");
            Player::start(command)
        }));
    }
    contestants
}

/// This project and its rivals, as far as they are there.
fn all(stage: &Stage, kernel: &str, full: &str, small: &str, must: f64) -> Vec<Contestant> {
    let (work, goal) = match prepared(stage, kernel, full, small) {
        Ok(found) => found,
        Err(told) => return missing(told, must),
    };
    let cores = stage.toolbox.cores().to_string();
    let folder = work.folder(stage);
    let mut contestants = vec![ours_on_threads(stage, "Maniple", &work, goal, &[]).must(must)];
    for rival in rivals(kernel) {
        let (source, library) = match rival {
            Rival::SciPy => ("sparse.py", Some("scipy")),
            Rival::Mkl => ("sparse.py", Some("mkl")),
            Rival::GraphBlas => ("sparse.py", Some("graphblas")),
            Rival::OpenMp => ("sparse_openmp.c", None),
            _ => ("sparse_taco.cpp", None),
        };
        let Some(program) = stage.toolbox.program(rival, source) else { continue };
        let program = program.map_err(|error| error.to_string());
        let common = [cores.clone(), work.kernel.clone(), folder.display().to_string()];
        let arguments: Vec<String> = library.map(str::to_owned).into_iter().chain(common).collect();
        let (name, cores) = (rival.to_string(), cores.clone());
        let start = move |arguments: &[String]| {
            let program = program.clone().map_err(Error::NotBuilt)?;
            let mut command = program.command(arguments.to_vec());
            command.env("MKL_NUM_THREADS", &cores).env("OMP_NUM_THREADS", &cores);
            command.env("TACO_CFLAGS", "-O3 -march=native -ffast-math -std=c99");
            Player::start(command)
        };
        if rival == Rival::OpenMp {
            let (mut reading, start) = (arguments.clone(), start.clone());
            reading[1] = "dot".to_owned();
            let name = "OpenMP, a dot product of as many bytes";
            contestants.push(Contestant::new(name, Goal { answer: 0, ..goal }, move || start(&reading)).beside());
        }
        contestants.push(Contestant::new(name, goal, move || start(&arguments)));
    }
    contestants
}

/// This project on threads of one process.
fn ours_on_threads(stage: &Stage, name: &str, work: &Work, goal: Goal, options: &'static [&'static str]) -> Contestant {
    let (program, work, threads) = (stage.ours.clone(), work.clone(), stage.toolbox.cores().to_string());
    Contestant::new(name, goal, move || {
        let mut command = Command::new(&program);
        command.args(["work", &work.kernel, &work.kind, "--threads", &threads]).args(options);
        Player::start(command)
    })
}

/// This project with the loops of a statement as it stands, rows in equal numbers on threads, for comparison.
fn by_rows(stage: &Stage, kernel: &str, full: &str, small: &str) -> Contestant {
    let name = "Maniple, as many rows for each thread";
    match prepared(stage, kernel, full, small) {
        Ok((work, goal)) => ours_on_threads(stage, name, &work, goal, &["--by-rows"]).beside(),
        Err(told) => {
            Contestant::new(name, Goal { amount: 0.0, answer: 0 }, move || Err(Error::NotBuilt(told.clone()))).beside()
        }
    }
}
