//! Files of tensors: read, written and converted by this project, beside what the system takes for as many bytes, SciPy
//! and NumPy.
//!
//! ```console
//! $ cargo bench -p maniple-benches --bench files                  # everything
//! $ cargo bench -p maniple-benches --bench files -- load store    # some of it
//! $ cargo bench -p maniple-benches --bench files -- --help
//! ```

use std::fs::{self, File};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::Parser;
use maniple_benches::files::{FIGURES, Stage};
use maniple_benches::machine;
use maniple_benches::targets::findings::table;
use maniple_benches::toolbox::{Rival, Toolbox};

/// Read, write and convert files of tensors, beside what the system takes for as many bytes, SciPy and NumPy, and print
/// what each figure must be.
///
/// Programs that are compared run in turn, and medians count. Files are made in --folder the first time, and stay
/// there. Nothing is installed: of what is missing no row is printed. Nothing fails because it is slow.
#[derive(Parser)]
#[command(name = "files", bin_name = "cargo bench -p maniple-benches --bench files --")]
struct Options {
    /// Figures to measure [default: everything]: names that --list prints
    figures: Vec<String>,

    /// List what is measured, and measure nothing
    #[arg(long)]
    list: bool,

    /// Cores that may be used [default: all]
    #[arg(long, value_name = "N")]
    cores: Option<NonZero<usize>>,

    /// How often each program runs
    #[arg(long, value_name = "N", default_value_t = NonZero::new(5).expect("5 is not 0"))]
    rounds: NonZero<usize>,

    /// The size of the .tcs file that is loaded, in millions of bytes [default: 2000, or a sixth of the room on the
    /// disk]
    #[arg(long, value_name = "MB")]
    megabytes: Option<NonZero<u64>>,

    /// Folder for the files [default: in the target folder]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Options that cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let known = |name: &&String| FIGURES.iter().any(|figures| figures.name == **name);
    if let Some(unknown) = options.figures.iter().find(|name| !known(name)) {
        let names: Vec<_> = FIGURES.iter().map(|figures| figures.name).collect();
        eprintln!("there is no figure {unknown}; there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    if options.list {
        FIGURES.iter().for_each(|figures| println!("{:<10} {}", figures.name, figures.about));
        return ExitCode::SUCCESS;
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = options.folder.unwrap_or_else(|| target.join("files"));
    if let Err(error) = fs::create_dir_all(&folder) {
        eprintln!("{}: {error}", folder.display());
        return ExitCode::FAILURE;
    }
    let cores = options.cores.or_else(|| available_parallelism().ok()).map_or(1, NonZero::get);
    let bytes = options.megabytes.map_or_else(|| 2_000_000_000.min(room(&folder) / 6), |size| size.get() * 1_000_000);
    let ours = env!("CARGO_BIN_EXE_maniple-sparse-turns").into();
    let stage = Stage { toolbox: Toolbox::new(target, cores), ours, folder, bytes, rounds: options.rounds.get() };
    let rivals = stage.toolbox.report(&[Rival::SciPy, Rival::NumPy]);
    machine::report().iter().chain(&rivals).for_each(|line| println!("{line}"));
    println!("{:<9} {} MB in {}\n", "file", stage.bytes / 1_000_000, stage.folder.display());
    let wanted = |name: &str| options.figures.is_empty() || options.figures.iter().any(|wanted| wanted == name);
    let (mut rows, mut failed) = (Vec::new(), false);
    for figures in FIGURES.iter().filter(|figures| wanted(figures.name)) {
        match (figures.measure)(&stage) {
            Ok(found) => rows.extend(found),
            Err(error) => {
                eprintln!("{}: {error}", figures.name);
                failed = true;
            }
        }
    }
    println!("{}", table("Files", &rows));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The bytes that may be written in a folder; none if that cannot be found out.
fn room(folder: &Path) -> u64 {
    let disk = File::open(folder).ok().and_then(|folder| rustix::fs::fstatvfs(folder).ok());
    disk.map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}
