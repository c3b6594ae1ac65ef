//! Compiling a rival's program, and running it.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::{Error, Result};

/// The folder of the sources of the rivals' programs.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/rivals");

/// How a program is compiled.
#[derive(Clone, Debug, Hash)]
pub struct Recipe {
    compiler: String,
    flags: Vec<String>,
    libraries: Vec<String>,
    /// Whether `compiler` runs programs as they are.
    is_script: bool,
}

impl Recipe {
    /// Optimised code for this machine, as a user who cares for speed would compile it.
    #[must_use]
    pub fn new(compiler: impl Into<String>) -> Self {
        Self { compiler: compiler.into(), flags: vec![], libraries: vec![], is_script: false }.with([
            "-O3",
            "-march=native",
            "-DNDEBUG",
        ])
    }

    /// With the system's C compiler, or the one that the environment names.
    #[must_use]
    pub fn c() -> Self {
        Self::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
    }

    /// With the system's C++ compiler, or the one that the environment names.
    #[must_use]
    pub fn cpp() -> Self {
        Self::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned())).with(["-std=c++20"])
    }

    /// With more flags.
    #[must_use]
    pub fn with<T: Into<String>>(mut self, flags: impl IntoIterator<Item = T>) -> Self {
        self.flags.extend(flags.into_iter().map(Into::into));
        self
    }

    /// A program that is not compiled, but read by another.
    #[must_use]
    pub fn script(interpreter: &str) -> Self {
        Self { compiler: interpreter.to_owned(), flags: vec![], libraries: vec![], is_script: true }
    }

    /// With more libraries.
    #[must_use]
    pub fn with_libraries<T: Into<String>>(mut self, libraries: impl IntoIterator<Item = T>) -> Self {
        self.libraries.extend(libraries.into_iter().map(Into::into));
        self
    }

    /// With the flags and libraries of a package that `pkg-config` knows. None if it knows none of that name.
    #[must_use]
    pub fn with_package(mut self, package: &str) -> Option<Self> {
        let ask = |what: &str| {
            let output = Command::new("pkg-config").args([what, package]).output().ok()?;
            let words = String::from_utf8(output.stdout).ok()?;
            output.status.success().then(|| words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        self.flags.extend(ask("--cflags")?);
        self.libraries.extend(ask("--libs")?);
        Some(self)
    }

    /// Compiles a file of `benches/rivals`, unless that was done before with the same flags.
    pub(super) fn compile(&self, source: &str, folder: &Path, launcher: Vec<String>) -> Result<Program> {
        let path = Path::new(SOURCES).join(source);
        if self.is_script {
            return Ok(Program { binary: path, launcher: vec![self.compiler.clone()] });
        }
        let mut hasher = DefaultHasher::new();
        (self, read(&path)?, headers()?).hash(&mut hasher);
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let binary = folder.join(format!("{name}-{:016x}", hasher.finish()));
        if !binary.exists() {
            fs::create_dir_all(folder).map_err(|error| Error::file(folder, error))?;
            // Another process may be at it, too. Whichever is done first, the program is whole.
            let unfinished = binary.with_extension(std::process::id().to_string());
            let arguments =
                self.flags.iter().map(OsString::from).chain([path.into(), "-o".into(), (&unfinished).into()]);
            let arguments = arguments.chain(self.libraries.iter().map(OsString::from)).chain(["-lm".into()]);
            output_of(Command::new(&self.compiler).args(arguments))?;
            fs::rename(&unfinished, &binary).map_err(|error| Error::file(&binary, error))?;
        }
        Ok(Program { binary, launcher })
    }
}

/// The texts of all that programs may include.
fn headers() -> Result<Vec<String>> {
    let folder = Path::new(SOURCES);
    let files = fs::read_dir(folder).map_err(|error| Error::file(folder, error))?;
    let paths = files.map(|file| file.map(|file| file.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(|error| Error::file(folder, error))?;
    paths.sort();
    let is_header = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "h" || extension == "hpp");
    paths.iter().filter(is_header).map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| Error::file(path, error))
}

/// A program that was compiled.
#[derive(Clone, Debug)]
pub struct Program {
    binary: PathBuf,
    launcher: Vec<String>,
}

/// The outcome of a run of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// How long the part that counts took.
    pub seconds: f64,
    /// The answer that the program found. All programs of a contest must find the same.
    pub answer: u64,
}

impl Program {
    /// Runs it.
    ///
    /// # Errors
    /// [`Error::Program`] if it cannot be started, fails, or does not print its outcome.
    pub fn run(&self, arguments: &[u64]) -> Result<Outcome> {
        let output = self.output(arguments)?;
        outcome(&output).ok_or_else(|| Error::Program {
            program: self.binary.display().to_string(),
            found: format!("it should print a line with the seconds and the answer, but printed {output:?}"),
        })
    }

    /// The same by so many processes of MPI, which share so many cores.
    #[must_use]
    pub fn on_processes(self, processes: usize, cores: usize) -> Self {
        let (processes, shared) = (processes.to_string(), processes > cores);
        let words = ["mpiexec", "-n", &processes].into_iter().chain(shared.then_some("--oversubscribe"));
        Self { launcher: words.map(str::to_owned).collect(), ..self }
    }

    /// Runs it, and gives all that it prints.
    pub(super) fn output(&self, arguments: &[u64]) -> Result<String> {
        let output = output_of(&mut self.command(arguments.iter().map(u64::to_string)))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The command that runs the program.
    #[must_use]
    pub fn command(&self, arguments: impl IntoIterator<Item = String>) -> Command {
        let mut words = self.launcher.iter().map(OsString::from).chain([OsString::from(&self.binary)]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).args(arguments);
        // Open MPI does not run for root, as which containers run, unless that is said twice.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }
}

/// Seconds and answer, which a program prints on one line.
pub(crate) fn outcome(output: &str) -> Option<Outcome> {
    let (seconds, answer) = output.trim().split_once(' ')?;
    Some(Outcome { seconds: seconds.parse().ok()?, answer: answer.parse().ok()? })
}

fn output_of(command: &mut Command) -> Result<Output> {
    let failed = |found: String, command: &Command| Error::Program { program: format!("{command:?}"), found };
    let output = command.output().map_err(|error| failed(format!("it cannot be started: {error}"), command))?;
    match output.status.success() {
        true => Ok(output),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(failed(format!("{}, after it said: {}", output.status, said.trim()), command))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_prints_seconds_and_answer() {
        assert_eq!(outcome("0.25 17\n"), Some(Outcome { seconds: 0.25, answer: 17 }));
        assert_eq!(outcome("17\n"), None);
        assert_eq!(outcome("soon 17\n"), None);
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        let error = output_of(&mut Command::new("no-such-compiler")).unwrap_err().to_string();
        assert!(error.contains("no-such-compiler") && error.contains("cannot be started"), "{error}");
    }
}
