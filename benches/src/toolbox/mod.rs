//! Which rivals this machine has, and how programs against them are built.
//!
//! Here: what each rival needs, and looking for it. A rival is found when a small program that uses it compiles, links
//! and runs; the program tells the version. Nothing is ever installed. [`program`]: compiling and running the rivals'
//! programs.

pub mod program;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use self::program::{Program, Recipe};
use crate::error::Result;

/// Something that runs tasks or computes with tensors, beside this project. Rayon is a dependency and always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// The compiler's own OpenMP.
    OpenMp,
    /// A message passing library, one process a core.
    Mpi,
    /// StarPU 1.3 or later.
    StarPu,
    /// Taskflow 3 or later.
    Taskflow,
    /// Matrix products by OpenBLAS.
    OpenBlas,
    /// Matrix products of several processes, by ScaLAPACK on Open MPI and OpenBLAS.
    ScaLapack,
    /// NumPy.
    NumPy,
    /// SciPy.
    SciPy,
    /// Sparse matrices by Intel's MKL, which Python calls.
    Mkl,
    /// Sparse matrices by SuiteSparse GraphBLAS, which Python calls.
    GraphBlas,
    /// Sparse tensors by TACO.
    Taco,
    /// Sparse matrices on several processes, by PETSc.
    Petsc,
    /// The same, by Trilinos.
    Trilinos,
}

impl Rival {
    /// The rivals that run tasks.
    pub const OF_TASKS: [Self; 4] = [Self::OpenMp, Self::Mpi, Self::StarPu, Self::Taskflow];

    /// The rivals that compute with tensors, and OpenMP, by which memory is measured too.
    pub const OF_TENSORS: [Self; 4] = [Self::OpenMp, Self::OpenBlas, Self::ScaLapack, Self::NumPy];

    /// The rivals that compute with sparse tensors.
    pub const OF_SPARSE: [Self; 6] = [Self::SciPy, Self::Mkl, Self::GraphBlas, Self::Taco, Self::Petsc, Self::Trilinos];

    const COUNT: usize = 13;

    /// How to get it where it is missing.
    #[must_use]
    pub fn how_to_get(self) -> &'static str {
        match self {
            Self::OpenMp => "use a C compiler with OpenMP: gcc, or clang and libomp-dev",
            Self::Mpi => "apt install libopenmpi-dev openmpi-bin",
            Self::StarPu => "apt install libstarpu-dev pkg-config",
            Self::Taskflow => {
                "apt install libtaskflow-cpp-dev g++, or set TASKFLOW_INCLUDE to a folder that has taskflow/taskflow.hpp"
            }
            Self::OpenBlas => "apt install libopenblas-dev",
            Self::ScaLapack => "apt install libscalapack-openmpi-dev openmpi-bin libopenblas-dev",
            Self::NumPy => "apt install python3-numpy libopenblas0-pthread",
            Self::SciPy => "apt install python3-scipy, or pip install scipy",
            Self::Mkl => "pip install mkl numpy",
            Self::GraphBlas => "pip install python-graphblas",
            Self::Taco => "build it with -DOPENMP=ON in its folder `build`, and set TACO_ROOT to the folder",
            Self::Petsc => "apt install petsc-dev openmpi-bin pkg-config",
            Self::Trilinos => "apt install libtrilinos-tpetra-dev libtrilinos-kokkos-kernels-dev openmpi-bin g++",
        }
    }

    /// A program that prints the version.
    fn probe(self) -> &'static str {
        match self {
            Self::OpenMp => "probe_openmp.c",
            Self::Mpi => "probe_mpi.c",
            Self::StarPu => "probe_starpu.c",
            Self::Taskflow => "probe_taskflow.cpp",
            Self::OpenBlas => "probe_openblas.c",
            Self::ScaLapack => "probe_scalapack.c",
            Self::NumPy => "probe_numpy.py",
            Self::SciPy => "probe_scipy.py",
            Self::Mkl => "probe_mkl.py",
            Self::GraphBlas => "probe_graphblas.py",
            Self::Taco => "probe_taco.cpp",
            Self::Petsc => "probe_petsc.c",
            Self::Trilinos => "probe_trilinos.cpp",
        }
    }

    /// The ways to build a program that uses it, of which the first that works is taken.
    fn recipes(self) -> Vec<Recipe> {
        match self {
            Self::OpenMp => vec![Recipe::c().with(["-fopenmp"])],
            Self::Mpi => vec![Recipe::new("mpicc")],
            Self::StarPu => {
                let packages = ["starpu-1.4", "starpu-1.3"];
                packages.iter().filter_map(|package| Recipe::c().with_package(package)).collect()
            }
            Self::Taskflow => {
                let plain = Recipe::cpp().with(["-pthread"]);
                let told = std::env::var("TASKFLOW_INCLUDE").ok();
                let told = told.map(|folder| plain.clone().with([format!("-I{folder}")]));
                let packaged = plain.clone().with_package("Taskflow");
                told.into_iter().chain(packaged).chain([plain]).collect()
            }
            Self::OpenBlas => {
                let packaged = Recipe::c().with_package("openblas");
                packaged.into_iter().chain([Recipe::c().with_libraries(["-lopenblas"])]).collect()
            }
            Self::ScaLapack => vec![Recipe::new("mpicc").with_libraries(["-lscalapack-openmpi", "-lopenblas"])],
            Self::Petsc => {
                let packages = ["PETSc", "petsc"].into_iter();
                packages.filter_map(|package| Recipe::new("mpicc").with_package(package)).collect()
            }
            Self::Trilinos => {
                let libraries = [
                    "tpetraext",
                    "tpetra",
                    "tpetraclassic",
                    "kokkoskernels",
                    "kokkoscore",
                    "teuchoskokkoscomm",
                    "teuchoscomm",
                    "teuchosparameterlist",
                    "teuchoscore",
                ];
                // Its own headers warn.
                let flags = ["-std=c++20", "-w", "-fopenmp", "-I/usr/include/trilinos"];
                let named = libraries.map(|library| format!("-ltrilinos_{library}"));
                vec![Recipe::new("mpicxx").with(flags).with_libraries(named)]
            }
            // The first may be one that the user installed, without NumPy.
            Self::Taco => {
                let root = std::env::var("TACO_ROOT").ok();
                let built = |root: String| {
                    let includes = ["include", "build/include"].map(|folder| format!("-I{root}/{folder}"));
                    let libraries = ["-L", "-Wl,-rpath,"].map(|flag| format!("{flag}{root}/build/lib"));
                    let recipe = Recipe::cpp().with(["-fopenmp".to_owned()]).with(includes);
                    recipe.with_libraries(libraries).with_libraries(["-ltaco", "-ldl"])
                };
                root.map(built).into_iter().collect()
            }
            Self::NumPy | Self::SciPy | Self::Mkl | Self::GraphBlas => {
                ["python3", "/usr/bin/python3"].map(Recipe::script).to_vec()
            }
        }
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OpenMp => "OpenMP",
            Self::Mpi => "MPI",
            Self::StarPu => "StarPU",
            Self::Taskflow => "Taskflow",
            Self::OpenBlas => "OpenBLAS",
            Self::ScaLapack => "ScaLAPACK",
            Self::NumPy => "NumPy",
            Self::SciPy => "SciPy",
            Self::Mkl => "MKL",
            Self::GraphBlas => "GraphBLAS",
            Self::Taco => "TACO",
            Self::Petsc => "PETSc",
            Self::Trilinos => "Trilinos",
        })
    }
}

/// A rival that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The version that the rival's program prints.
    pub version: String,
    recipe: Recipe,
}

/// The rivals of this machine. Looks for each when it is first asked for, and compiles programs when they are first
/// wanted.
#[derive(Debug)]
pub struct Toolbox {
    folder: PathBuf,
    cores: usize,
    found: [OnceLock<Option<Found>>; Rival::COUNT],
    /// Held while a program is compiled, so that no other thread compiles the same one.
    compiling: Mutex<()>,
}

impl Toolbox {
    /// Keeps compiled programs in a folder, from run to run. Programs use so many cores.
    #[must_use]
    pub fn new(folder: &Path, cores: usize) -> Self {
        Self { folder: folder.join("rivals"), cores, found: Default::default(), compiling: Mutex::new(()) }
    }

    /// The folder in which compiled programs, and their input, are kept.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many cores each contestant may use.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// A rival, if it is there.
    #[must_use]
    pub fn find(&self, rival: Rival) -> Option<&Found> {
        self.found[rival as usize].get_or_init(|| self.look_for(rival)).as_ref()
    }

    fn look_for(&self, rival: Rival) -> Option<Found> {
        let found = |recipe: Recipe| {
            let probe = self.build(rival, &recipe, rival.probe()).ok()?;
            let version = probe.output(&[]).ok()?.trim().to_owned();
            Some(Found { version, recipe })
        };
        rival.recipes().into_iter().find_map(found)
    }

    /// A program against a rival, compiled from a file of `benches/rivals`. None if the rival is missing.
    #[must_use]
    pub fn program(&self, rival: Rival, source: &str) -> Option<Result<Program>> {
        Some(self.build(rival, &self.find(rival)?.recipe, source))
    }

    fn build(&self, rival: Rival, recipe: &Recipe, source: &str) -> Result<Program> {
        let _alone = self.compiling.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let launcher = match rival {
            Rival::Mpi | Rival::ScaLapack | Rival::Petsc | Rival::Trilinos => {
                vec!["mpiexec".to_owned(), "-n".to_owned(), self.cores.to_string()]
            }
            _ => Vec::new(),
        };
        recipe.compile(source, &self.folder, launcher)
    }

    /// Lines on the rivals that were found, and on how to get the others.
    #[must_use]
    pub fn report(&self, rivals: &[Rival]) -> Vec<String> {
        let line = |rival: Rival| match self.find(rival) {
            Some(found) => format!("{rival:<9} {}", found.version),
            None => format!("{rival:<9} not found ({})", rival.how_to_get()),
        };
        rivals.iter().map(|&rival| line(rival)).collect()
    }
}
