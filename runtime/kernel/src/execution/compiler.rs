//! The system's C compiler.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use super::KernelError;

/// The compiler's flags for kernels. No `-ffast-math`: an answer must not depend on the team that computes it, save for
/// the order of sums. `-fopenmp-simd` heeds `omp simd`, and needs no OpenMP.
const FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O3",
    "-march=native",
    "-fwrapv",
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-fPIC",
    "-shared",
    "-w",
];

/// The same for compilers that don't know all of these.
const FEWER_FLAGS: &[&str] = &["-O2", "-fwrapv", "-fPIC", "-shared"];

/// Whether `a * b + c` may be rounded once, where the processor can do that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contraction {
    Allowed,
    Forbidden,
}

impl Contraction {
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Allowed => "-ffp-contract=fast",
            Self::Forbidden => "-ffp-contract=off",
        }
    }
}

/// A C compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    program: PathBuf,
    arguments: Vec<String>,
}

impl Compiler {
    /// The compiler that the environment variable `CC` names, with arguments if it has some, or else the first of `cc`,
    /// `gcc` and `clang` that is installed.
    pub fn find() -> Option<Self> {
        match std::env::var("CC") {
            Ok(command) if !command.trim().is_empty() => Self::from_command(&command),
            _ => ["cc", "gcc", "clang"].into_iter().find_map(Self::from_command),
        }
    }

    /// The compiler of the command `command`, which may have arguments; `None` if there is no such program.
    pub fn from_command(command: &str) -> Option<Self> {
        let mut words = shlex::split(command)?.into_iter();
        let program = search(Path::new(&words.next()?))?;
        Some(Self { program, arguments: words.collect() })
    }

    /// The program's file.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The text that tells this compiler, its flags, and this machine's processor apart from others: compiled code runs
    /// on like machines only.
    pub(super) fn identity(&self) -> String {
        let file = self.program.canonicalize().unwrap_or_else(|_| self.program.clone());
        let (size, time) = std::fs::metadata(&file).map_or((0, 0), |data| {
            let time = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            (data.len(), time.map_or(0, |time| time.as_nanos()))
        });
        format!("{file:?} {size} {time} {:?} {FLAGS:?} {FEWER_FLAGS:?} {}", self.arguments, processor())
    }

    /// Compiles `source` to the shared library `output`.
    pub(super) fn compile(
        &self,
        kernel: &str,
        source: &str,
        contraction: Contraction,
        output: &Path,
    ) -> Result<(), KernelError> {
        self.run(FLAGS, contraction, source, output).or_else(|first| {
            self.run(FEWER_FLAGS, contraction, source, output).map_err(|_| KernelError::Compile {
                kernel: kernel.to_owned(),
                compiler: self.program.display().to_string(),
                message: first,
            })
        })
    }

    fn run(&self, flags: &[&str], contraction: Contraction, source: &str, output: &Path) -> Result<(), String> {
        let mut arguments: Vec<OsString> = self.arguments.iter().map(Into::into).collect();
        arguments.extend(flags.iter().map(Into::into));
        arguments.push(contraction.flag().into());
        arguments.extend([OsString::from("-o"), output.into()]);
        arguments.extend(["-x", "c", "-", "-x", "none", "-lm"].map(OsString::from));
        let mut child = Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        if let Some(mut stdin) = child.stdin.take() {
            // A compiler that fails at once may not read it; then its status tells.
            let _ = stdin.write_all(source.as_bytes());
        }
        let result = child.wait_with_output().map_err(|error| error.to_string())?;
        if result.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&result.stderr);
        let start: String = said.trim().chars().take(2000).collect();
        Err(if start.is_empty() { result.status.to_string() } else { start })
    }
}

/// Looks `program` up where the shell would.
fn search(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return is_executable(program).then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    file.is_file()
}

/// The properties of the processor that `-march=native` depends on: a folder may be shared by machines with different
/// processors.
fn processor() -> String {
    let described = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let first = described.split("\n\n").next().unwrap_or_default();
    let telling = ["vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU "];
    let lines = first.lines().filter(|line| telling.iter().any(|start| line.starts_with(start)));
    lines.fold(std::env::consts::ARCH.to_owned(), |all, line| all + line)
}
