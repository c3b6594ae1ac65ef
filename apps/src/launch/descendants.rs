//! Processes that nodes of this machine have started, in whatever group or session they are: a process that leaves its
//! group and its session stays a descendant of the launcher.
//!
//! The launcher is a *subreaper* (`prctl(2)`, `PR_SET_CHILD_SUBREAPER`): the children of a process that has ended
//! become its own, not those of the system's first process. So what is left at the end can be found, and be killed,
//! generation after generation.

use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

/// The descendants of this process, which adopts those that lose their parent. They are killed when this is dropped.
#[derive(Debug)]
pub struct Descendants {
    /// Children that other code waits for.
    own: Vec<Pid>,
}

impl Descendants {
    /// Adopts orphans from now on.
    #[must_use]
    pub fn adopt() -> Self {
        // A system that does not know of it leaves orphans alone, as it did before.
        let _ = set_child_subreaper(Some(getpid()));
        Self { own: Vec::new() }
    }

    /// Notes a child that is no orphan: other code waits for it.
    pub fn except(&mut self, child: u32) {
        self.own.extend(Pid::from_raw(child.cast_signed()));
    }

    /// Takes notice of the end of orphans. Otherwise they would stay as zombies while the job runs.
    pub fn reap(&self) {
        for orphan in children().into_iter().filter(|child| !self.own.contains(child)) {
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
    }

    /// Kills all that is left. Only what has another user's rights can stay.
    pub fn end(&mut self) {
        loop {
            let killed = |child: &Pid| kill_process(*child, Signal::KILL).is_ok();
            let killed: Vec<Pid> = children().into_iter().filter(killed).collect();
            if killed.is_empty() {
                return;
            }
            // A child that has ended leaves its own children to us, for the next round.
            for child in killed {
                let _ = waitpid(Some(child), WaitOptions::empty());
            }
        }
    }
}

impl Drop for Descendants {
    fn drop(&mut self) {
        self.end();
    }
}

/// The children of all threads of this process.
fn children() -> Vec<Pid> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let lists: Vec<String> = threads.flatten().map(of_thread).collect();
    let pids = lists.iter().flat_map(|list| list.split_whitespace());
    pids.filter_map(|pid| pid.parse().ok().and_then(Pid::from_raw)).collect()
}
