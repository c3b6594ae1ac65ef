//! `maniple prof`: looking at profiles.
//!
//! A file is read by [`maniple::profile::Recording`] and sorted out by [`model`]: [`lanes`] are what threads did,
//! [`operations`] what came after what. Those of several processes are put [`together`](mod@together) first, by their
//! [`messages`] and [`clocks`]. From that follow [`statistics`], the [`critical_path`], and what is shown: a
//! [`summary`] in text, the [`page`], which [`page_data`] and [`columns`] feed and [`serve`] serves, and [`chrome`]'s
//! format.

pub mod chrome;
pub mod clocks;
pub mod columns;
pub mod critical_path;
pub mod lanes;
pub mod messages;
pub mod model;
#[cfg(test)]
mod nonsense;
pub mod operations;
pub mod page;
pub mod page_data;
#[cfg(test)]
mod script;
pub mod serve;
pub mod statistics;
pub mod summary;
pub mod timelines;
pub mod together;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use maniple::profile::Recording;

use crate::error::{Error, Result};
use crate::output;
use model::Profile;
use serve::PageServer;
use summary::Summary;
use together::{Together, together};

/// The long description of `maniple prof`, which its `--help` shows.
pub const ABOUT: &str = "\
Look at a profile: who did what, when, and what for.

Every simulation records a profile with --profile FILE, and so does every program that uses the library when the environment variable \
MANIPLE_PROFILE names a file. Without further options, a page is served to a browser on this machine: a timeline of all processors, memories \
and channels that can be zoomed from the whole run to single tasks; what each task waited for and who waited for it; statistics; the \
critical path; where time went. With -o the page is written as one file, which needs no network and nothing beside it.

In the page, press ? for its keys.";

/// The examples that `maniple prof --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run circuit --profile c.mprof      record a profile
  maniple prof c.mprof --open                look at it in the browser
  maniple prof c.mprof -o circuit.html       write the page, to keep or send
  maniple prof c.mprof --summary             tables in the terminal
  maniple prof c.mprof --chrome trace.json   for ui.perfetto.dev
  maniple prof c.mprof.node*                 all nodes of a job

A program of your own that uses the library records if it is told where:
  MANIPLE_PROFILE=mine.mprof ./my-program";

/// Which profile to look at, and how.
#[derive(Args, Clone, Debug)]
pub struct ProfOptions {
    /// The profile; of several processes of a job, all that are to be looked at together
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Write the page into this file, instead of serving it
    #[arg(short, long, value_name = "HTML")]
    pub output: Option<PathBuf>,

    /// Write the profile in Chrome's trace format, which Perfetto reads too
    #[arg(long, value_name = "JSON")]
    pub chrome: Option<PathBuf>,

    /// Print tables: times of tasks, where time went, the critical path
    #[arg(long)]
    pub summary: bool,

    /// Serve the page at this port [default: one that is free]
    #[arg(long, value_name = "PORT", conflicts_with_all = ["output", "chrome", "summary"])]
    pub port: Option<u16>,

    /// Open the page in the browser
    #[arg(long, conflicts_with_all = ["output", "chrome", "summary"])]
    pub open: bool,
}

/// Reads a profile, and shows it as the options say.
///
/// # Errors
/// [`Error::Profile`] if it can't be read, [`Error::Write`] if a file can't be written, [`Error::Serve`] if the page
/// can't be served, [`Error::Usage`] if a file would be written over the profile, or named twice.
pub fn run(options: &ProfOptions) -> Result<()> {
    for written in [&options.output, &options.chrome].into_iter().flatten() {
        if options.files.iter().any(|file| is_same(written, file)) {
            let file = written.display();
            return Err(Error::Usage(format!(
                "`{file}` is the profile itself: it would be overwritten; give another name"
            )));
        }
    }
    if let (Some(page), Some(trace)) = (&options.output, &options.chrome)
        && (page == trace || is_same(page, trace))
    {
        let file = page.display();
        return Err(Error::Usage(format!("`{file}` can't be both the page and the trace: give two names")));
    }
    for (number, file) in options.files.iter().enumerate() {
        if options.files[..number].iter().any(|earlier| is_same(earlier, file)) {
            return Err(Error::Usage(format!("`{}` is named twice: name each node's profile once", file.display())));
        }
    }
    for written in [&options.output, &options.chrome].into_iter().flatten() {
        output::check(written, output::Way::Over)?;
    }
    let doing = Doing::new();
    let recordings = options.files.iter().map(|file| {
        doing.say(&format!("reading {}", file.display()));
        let recording = Recording::read(file)?;
        if let Some(warning) = model::warning(recording.completeness) {
            // The reader of standard error may be gone.
            let _ = doing.aside(|| writeln!(io::stderr(), "warning: `{}`: {warning}", file.display()));
        }
        Ok(recording)
    });
    let together = together(recordings.collect::<Result<_>>()?);
    let nothing = || Error::Usage("name the profile, or several of one job".to_owned());
    let Together { recording, notes } = together.ok_or_else(nothing)?;
    for note in &notes {
        let _ = doing.aside(|| writeln!(io::stderr(), "note: {note}"));
    }
    doing.say("sorting out what came after what");
    let profile = Profile::of(recording).with_notes(notes);
    if options.summary {
        let summary = Summary(&profile).to_string();
        match doing.aside(|| io::stdout().write_all(summary.as_bytes())) {
            // The reader has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written?,
        }
    }
    if let Some(path) = &options.chrome {
        doing.say("writing the trace");
        write_file(path, |file| chrome::write(&profile, file))?;
    }
    if let Some(path) = &options.output {
        doing.say("writing the page");
        write_file(path, |file| file.write_all(page::page(&profile).as_bytes()))?;
    }
    if options.summary || options.chrome.is_some() || options.output.is_some() {
        return Ok(());
    }
    doing.say("making the page");
    let server = PageServer::bind(page::page(&profile), options.port)?;
    drop((profile, doing));
    serve::announce(&server.url(), options.open)?;
    server.serve();
    Ok(())
}

/// A line on standard error that shows what is being done, for large profiles; none where that is no terminal.
struct Doing(ProgressBar);

impl Doing {
    fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self(bar)
    }

    fn say(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// Prints something else, with the line out of its way.
    fn aside(&self, print: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.0.suspend(print)
    }
}

impl Drop for Doing {
    /// Takes the line off the screen.
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

fn write_file(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let failed = |source| Error::write(path, source);
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    write(&mut file).and_then(|()| file.flush()).map_err(failed)
}
