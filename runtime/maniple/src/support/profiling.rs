//! Labels and tags for the profiler of the runtime's realm, if there is one, and the file of a profile.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use maniple_realm::machine::NodeId;
use maniple_realm::profile::{Kind, LabelId, Profiler, Tag, common};
use maniple_region::Provenance;
use maniple_space::AnyRect;

/// The tag in a profile of the runtime's operations that map.
pub(crate) const MAPPING: Tag = Tag::of(common::MAPPING);

/// The labels of a launch, each point of which is one span or more.
#[derive(Clone, Copy)]
pub(crate) struct LaunchLabels {
    task: LabelId,
    mapping: LabelId,
}

impl LaunchLabels {
    /// The labels of a launch of this task; a launch of a single task has no domain.
    pub(crate) fn new(
        profiler: &Profiler,
        task: &str,
        domain: Option<&AnyRect>,
        launched: Option<&Provenance>,
    ) -> Self {
        let launched = launched.map(ToString::to_string);
        let label = |kind| profiler.label_of_launch(kind, task, domain, launched.as_deref());
        Self { task: label(Kind::Task), mapping: label(Kind::Mapping) }
    }

    pub(crate) fn task(self, point: usize) -> Tag {
        Tag { label: self.task, index: point as u32 }
    }

    pub(crate) fn mapping(self, point: usize) -> Tag {
        Tag { label: self.mapping, index: point as u32 }
    }
}

/// Calls the analysis of a launch, and records it under a name.
pub(crate) fn analysing<R>(profiler: Option<&Profiler>, name: &str, analyse: impl FnOnce() -> R) -> R {
    let Some(profiler) = profiler else { return analyse() };
    let (tag, start) = (Tag::of(profiler.label(Kind::Analysis, name, None)), profiler.now_ns());
    let result = analyse();
    profiler.span(tag, profiler.current(), start);
    result
}

/// The environment variable that names the file of a profile.
pub(crate) const VARIABLE: &str = "MANIPLE_PROFILE";

/// The file that the environment names for the profile of the next runtime of this process. The first runtime has the
/// file that was named, and the others `FILE.2`, `FILE.3` and so on; `%p` is replaced by the number of the process.
pub(crate) fn wanted_by_environment() -> Option<PathBuf> {
    static RUNTIMES: AtomicU32 = AtomicU32::new(0);
    let named = std::env::var_os(VARIABLE).filter(|named| !named.is_empty())?;
    Some(numbered(named, RUNTIMES.fetch_add(1, Ordering::Relaxed) + 1, std::process::id()))
}

fn numbered(named: OsString, runtime: u32, process: u32) -> PathBuf {
    let mut file = match named.to_str() {
        Some(text) => text.replace("%p", &process.to_string()).into(),
        None => named,
    };
    if runtime > 1 {
        file.push(format!(".{runtime}"));
    }
    file.into()
}

/// The file of one node of several.
pub(crate) fn of_node(file: &Path, rank: NodeId) -> PathBuf {
    let mut file = file.as_os_str().to_owned();
    file.push(format!(".node{}", rank.0));
    file.into()
}

/// Dropped after a realm whose profile only the environment knows of: tells if that ended early, as nothing else does.
pub(crate) struct TellProblems(pub(crate) Profiler);

impl Drop for TellProblems {
    fn drop(&mut self) {
        if let Err(error) = self.0.outcome() {
            // There may be no subscriber.
            let _ = writeln!(std::io::stderr(), "maniple: {VARIABLE}: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_of_a_process_have_files_of_their_own() {
        let file = |named: &str, runtime| numbered(named.into(), runtime, 42).display().to_string();
        assert_eq!([file("a.mprof", 1), file("a.mprof", 2)], ["a.mprof", "a.mprof.2"]);
        assert_eq!([file("a-%p.mprof", 1), file("a-%p.mprof", 3)], ["a-42.mprof", "a-42.mprof.3"]);
    }
}
