//! Launches outside of any trace are watched for repeats, and traced when they come again.
//!
//! Nothing is held back: a trace that is foretold by its first launch begins at once. Should the launches turn out
//! others after a while, those replayed were replayed rightly, and the rest is analysed.

use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_realm::threads::Parker;
use maniple_realm::{Class, Realm, Spawn, fault};

use maniple_analysis::repeats::{CandidateId, Finder, JobId, Mined, Parameters};

/// The state of the search for repeats among a context's launches outside of traces.
pub(crate) struct Automatic {
    finder: Finder,
    jobs: Vec<(JobId, Arc<Pending>)>,
    /// The candidate that is being replayed, and how many of its tokens have come.
    current: Option<(CandidateId, usize)>,
}

/// Mines a slice.
type Mining = Box<dyn FnOnce() -> Mined + Send>;

/// A slice that is being mined.
struct Pending {
    state: Mutex<Progress>,
    /// The parker of a thread that waits until another one has mined the slice.
    done: Parker,
}

enum Progress {
    Waiting(JobId, Mining),
    Running,
    Done(Mined),
    Taken,
}

impl Pending {
    fn new(id: JobId, mining: Mining) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(Progress::Waiting(id, mining)), done: Parker::default() })
    }

    /// Mines the slice, unless another thread does. Should that panic, nothing was found: without traces the program is
    /// slower, and as right.
    fn run(&self) {
        let (id, mining) = {
            let mut state = self.state.lock();
            match std::mem::replace(&mut *state, Progress::Running) {
                Progress::Waiting(id, mining) => (id, mining),
                other => {
                    *state = other;
                    return;
                }
            }
        };
        let mined = fault::catch(mining).unwrap_or_else(|fault| {
            tracing::error!(%fault, "looking for launches that repeat panicked, a bug of the runtime: some may not be replayed");
            Mined::nothing(id)
        });
        *self.state.lock() = Progress::Done(mined);
        self.done.unpark();
    }

    /// Takes the findings. Mines here if no thread has begun.
    fn take(&self) -> Option<Mined> {
        self.run();
        while matches!(*self.state.lock(), Progress::Running) {
            self.done.park();
        }
        match std::mem::replace(&mut *self.state.lock(), Progress::Taken) {
            Progress::Done(mined) => Some(mined),
            _ => None,
        }
    }
}

impl Default for Automatic {
    fn default() -> Self {
        Self { finder: Finder::new(Parameters::default()), jobs: Vec::new(), current: None }
    }
}

impl Automatic {
    /// The token of the launch that comes next, if a candidate is under way.
    pub(crate) fn expected(&self) -> Option<u64> {
        let (id, at) = self.current?;
        self.finder.tokens(id)?.get(at).copied()
    }

    /// The candidate that begins with a token, if it is time for one.
    pub(crate) fn begin(&mut self, token: u64) -> Option<(CandidateId, usize)> {
        self.ingest();
        let id = self.finder.starting_with(token)?;
        let length = self.finder.tokens(id)?.len();
        self.finder.begin(id);
        self.current = Some((id, 0));
        Some((id, length))
    }

    /// Whether a launch with this token is what comes next of a candidate, which is under way or may begin with it.
    pub(crate) fn expects(&mut self, id: CandidateId, token: u64) -> bool {
        let at = match self.current {
            Some((current, at)) if current == id => at,
            Some(_) => return false,
            None => {
                self.ingest();
                if self.finder.starting_with(token) != Some(id) {
                    return false;
                }
                0
            }
        };
        self.finder.tokens(id).and_then(|all| all.get(at)) == Some(&token)
    }

    /// Takes in a launch that was [expected](Self::expects), as the beginning of the candidate if none is under way;
    /// gives whether it is.
    pub(crate) fn push_expected(&mut self, id: CandidateId, token: u64, realm: &Realm) -> bool {
        let begins = self.current.is_none();
        if begins {
            self.finder.begin(id);
            self.current = Some((id, 0));
        }
        self.push(token, realm);
        begins
    }

    /// Takes in the launch that has come.
    pub(crate) fn push(&mut self, token: u64, realm: &Realm) {
        self.ingest();
        self.mine(Some(token), realm);
        if let Some((id, at)) = &mut self.current {
            *at += 1;
            if self.finder.tokens(*id).is_none_or(|tokens| tokens.len() == *at) {
                self.current = None;
                self.finder.completed();
            }
        }
    }

    /// Something has come that is no launch, and like nothing else.
    pub(crate) fn interrupt(&mut self, realm: &Realm) {
        self.abandon();
        self.ingest();
        self.mine(None, realm);
    }

    /// The launch that has come is not the one expected.
    pub(crate) fn abandon(&mut self) {
        if let Some((_, at)) = self.current.take() {
            self.finder.abandoned(at);
        }
    }

    /// Candidates that will not come again.
    pub(crate) fn take_forgotten(&mut self) -> Vec<CandidateId> {
        self.finder.take_forgotten()
    }

    fn ingest(&mut self) {
        while let Some(due) = self.finder.due() {
            let found = self.jobs.iter().position(|(id, _)| *id == due);
            let (_, pending) = self.jobs.swap_remove(found.expect("every job was kept"));
            let mined = pending.take().expect("it is taken once");
            self.finder.ingest(mined);
        }
    }

    fn mine(&mut self, token: Option<u64>, realm: &Realm) {
        if let Some(job) = self.finder.push(token) {
            let id = job.id();
            let pending = Pending::new(id, Box::new(move || job.run()));
            self.jobs.push((id, Arc::clone(&pending)));
            realm.spawn(Spawn { class: Class::Runtime, ..Spawn::ANYWHERE }, move || pending.run());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mining_that_panics_has_found_nothing_and_lets_nobody_wait() {
        let mut finder = Finder::new(Parameters::default());
        let job = std::iter::repeat_with(|| finder.push(Some(7))).take(100_000).flatten().next();
        let pending = Pending::new(job.expect("a long stream is mined").id(), Box::new(|| panic!("on purpose")));
        pending.run();
        assert!(pending.take().is_some());
        assert!(pending.take().is_none());
    }
}
