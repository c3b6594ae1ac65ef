//! Contestants: this project's program, and those of rivals.

use std::process::Command;

use maniple_tensor::substitute::library;

use super::contest::{Contestant, Goal, Stage};
use super::turns::Player;
use super::works::Work;
use crate::error::Error;
use crate::toolbox::Rival;

/// This project on so many processes, with all cores between them.
pub fn ours(stage: &Stage, name: &str, work: &Work, amount: f64, processes: usize) -> Contestant {
    let program = stage.ours.clone();
    let workers = (stage.toolbox.cores() / processes).max(1);
    let told = work.to_string();
    Contestant::new(name, Goal { amount, answer: work.answer() }, move || {
        let mut command = Command::new(&program);
        if processes > 1 {
            command.args(["launch", "--no-prefix", "-n", &processes.to_string(), "--"]).arg(&program);
        }
        command.args(["work", &told, "--workers", &workers.to_string()]);
        Player::start(command)
    })
}

/// This project on one process by what multiplies by default, which is named, and of which this share of the fastest
/// rival's speed is asked; and by the crate `gemm`, if that is something else.
pub fn ours_by_library(stage: &Stage, work: &Work, amount: f64, must: f64) -> Vec<Contestant> {
    // The programs that are started have the same environment, and choose as this one does.
    let name = |library: &str| format!("Maniple, by {library}");
    let by_default = ours(stage, &name(library()), work, amount, 1).must(must);
    if library() == GEMM {
        return vec![by_default];
    }
    let (program, told, workers) = (stage.ours.clone(), work.to_string(), stage.toolbox.cores().to_string());
    let by_gemm = Contestant::new(name(GEMM), Goal { amount, answer: work.answer() }, move || {
        let mut command = Command::new(&program);
        command.args(["work", &told, "--workers", &workers]).env("MANIPLE_BLAS", "none");
        Player::start(command)
    });
    vec![by_default, by_gemm.beside()]
}

/// The crate that multiplies where no library does.
const GEMM: &str = "gemm";

/// A rival's program that takes part, and how.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The rival.
    pub rival: Rival,
    /// How it appears in tables.
    pub name: &'a str,
    /// The file in `benches/rivals`.
    pub source: &'a str,
    /// The arguments of the program after the number of cores.
    pub arguments: Vec<String>,
    /// How many processes, if it is for several, of which each has one thread.
    pub processes: Option<usize>,
}

/// A rival's program, if this machine has the rival. Those that multiply matrices by OpenBLAS take part a second time
/// with the kernels that are right for this processor: old versions do not know new processors, and take the slowest
/// that they have.
pub fn rival(stage: &Stage, entry: &Entry<'_>, goal: Goal) -> Vec<Contestant> {
    let Some(program) = stage.toolbox.program(entry.rival, entry.source) else { return Vec::new() };
    let program = program.map_err(|error| error.to_string());
    let multiplies = entry.rival != Rival::OpenMp && std::env::var_os(KERNELS).is_none();
    let kernels = [None, best_kernels().filter(|_| multiplies)];
    let known = kernels.into_iter().enumerate().filter(|(number, kernels)| *number == 0 || kernels.is_some());
    let contestant = |kernels: Option<&'static str>| {
        let (entry_processes, arguments, program) = (entry.processes, entry.arguments.clone(), program.clone());
        let cores = stage.toolbox.cores();
        let threads = if entry_processes.is_some() { 1 } else { cores };
        let name = kernels.map_or_else(|| entry.name.to_owned(), |kernels| format!("{}, {kernels}", entry.name));
        Contestant::new(name, goal, move || {
            let program = program.clone().map_err(Error::NotBuilt)?;
            let program = match entry_processes {
                Some(processes) => program.on_processes(processes, cores),
                None => program,
            };
            let mut command = program.command([threads.to_string()].into_iter().chain(arguments.clone()));
            command.env("OMP_NUM_THREADS", threads.to_string()).env("OPENBLAS_NUM_THREADS", threads.to_string());
            command.envs(kernels.map(|kernels| (KERNELS, kernels)));
            Player::start(command)
        })
    };
    known.map(|(_, kernels)| contestant(kernels)).collect()
}

/// The variable that tells OpenBLAS which kernels to take.
const KERNELS: &str = "OPENBLAS_CORETYPE";

/// The fastest kernels of OpenBLAS that this processor can run, where that is known and versions in use may not take
/// them: all of these know processors with AVX2, by their name or by that feature.
fn best_kernels() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
        {
            return Some("SkylakeX");
        }
    }
    None
}
